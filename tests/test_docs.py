"""Examples in the docstrings, the README and docs/: each one runs as written and prints the output on the page."""

import doctest
import html
import importlib
import importlib.util
import io
import os
import pkgutil
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import joblib
import pytest

import probewise
from conftest import DATA
from probewise.cli import run

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(probewise.__path__, "probewise.")
    if module.name not in ("probewise.cli.app", "probewise.__main__")
]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
CHECKER = doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    if name.startswith("probewise.kernels.device.") or name.endswith("_device"):
        pytest.importorskip("torch", reason="torch is not installed: make test-device")
        pytest.importorskip("triton", reason="triton is not installed: make test-device")
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0


@pytest.fixture
def threads():
    """Use threads as workers unless a page says otherwise: they start at once and give the same results."""
    with joblib.parallel_config(backend="threading"):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name_of)
@pytest.mark.usefixtures("threads")
def test_page(page, tmp_path, monkeypatch, real_data):
    """The blocks of a page run from top to bottom, with shared variables, in a folder that contains ``genes.csv``.

    A ``text`` block right after a ``python`` block is its expected output. In a ``console`` block, the lines after a
    command, if any, are its expected output. ``...`` matches any text. With PROBEWISE_REFRESH=1 in the environment, the
    outputs on the page are replaced by the new ones.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text, names, printed, outdated = page.read_text(), {"__name__": "__main__"}, None, []
    for name in re.findall(r'\bload\("(\w+)"\)', text):
        real_data(name)  # skips the page where the data are missing
        monkeypatch.setenv("PROBEWISE_DATA", str(DATA))
    make_table(tmp_path / "genes.csv")
    for block in FENCE.finditer(text):
        language, body = block.groups()
        line = text.count("\n", 0, block.start()) + 1
        if language == "text" and printed is not None and not is_printed(body, printed.getvalue()):
            outdated.append((line, block.start(2), body, printed.getvalue()))
        printed = None
        if language == "python":
            with redirect_stdout(io.StringIO()) as printed:
                exec(compile("\n" * line + body, page.name, "exec"), names)
        if language == "console":
            outdated += [(line, block.start(2) + start, *pair) for start, *pair in outdated_in_session(body)]
    if os.environ.get("PROBEWISE_REFRESH"):
        for _, start, expected, new in reversed(outdated):
            lines = "".join(f"{shown.rstrip()}\n" for shown in new.rstrip().splitlines())
            text = text[:start] + lines + text[start + len(expected) :]
        page.write_text(text)
    else:
        messages = [f"{page.name}:{line} prints\n{new}\nnot\n{expected}" for line, _, expected, new in outdated]
        assert not outdated, "\n".join(messages)


def outdated_in_session(session):
    """Position, text and new text of each output in a console block that is not printed any more."""
    for match in re.finditer(r"^\$ probewise (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        command, expected = match.groups()
        with redirect_stdout(io.StringIO()) as printed:
            assert run(shlex.split(command, comments=True)) == 0, command
        if expected.strip() and not is_printed(expected, printed.getvalue()):
            yield match.start(2), expected, printed.getvalue()


def is_printed(expected, printed):
    return CHECKER.check_output(expected.strip(), printed.strip(), FLAGS)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_exist(page):
    for target, _ in LINK.findall(FENCE.sub("", page.read_text())):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{name_of(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_included_files_and_benchmarks_exist(page):
    text = page.read_text()
    named = [f"benchmarks/{name}.py" for name in re.findall(r"python -m benchmarks ([a-z]\w*)", text)]
    for path in [*named, *re.findall(r'--8<-- "([^":]+)', text)]:
        assert (ROOT / path).exists(), f"{name_of(page)} names {path}"


@pytest.mark.slow
@pytest.mark.usefixtures("threads")
def test_picture_of_the_demo():
    """The picture in the README shows the output of ``probewise demo``; times and the last digits may differ."""
    with redirect_stdout(io.StringIO()) as printed:
        assert run(["demo"]) == 0
    texts = re.findall(r"<text[^>]*>(.*?)</text>", (ROOT / "docs" / "demo.svg").read_text())
    shown = words_of(html.unescape(" ".join(texts)))
    assert shown[shown.index("$") :] == ["$", "make", "demo", *words_of(printed.getvalue())]


def words_of(text):
    text = re.sub(r"in [\d.]+ \w+, [\d,]+ per second", "", " ".join(text.split()))
    return re.sub(r"(\d\.\d{3})\d+", r"\1", text).split()


def test_every_benchmark_can_be_imported():
    from benchmarks.__main__ import LONG, QUICK

    assert all(importlib.util.find_spec(f"benchmarks.{name}") for name in (*QUICK, *LONG))


def test_cited_version():
    assert f"\nversion: {probewise.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{probewise.__version__}}}" in (ROOT / "docs" / "cite.md").read_text()


def test_glossary_links():
    """The first use of a word is linked, but not in code or headings, nor as an author's initial."""
    spec = importlib.util.spec_from_file_location("glossary_links", ROOT / "docs" / "glossary_links.py")
    glossary_links = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(glossary_links)
    assert glossary_links.PATTERNS.keys() <= glossary_links.definitions().keys()
    page = "<h2>Probes</h2><p><code>probe</code> J. Liang; two probes, a ledger, a probe; a first look at J, blocks</p>"
    file = SimpleNamespace(src_uri="a.md")
    linked = glossary_links.on_page_content(page, SimpleNamespace(file=file, url="methods/a.html"))
    links = re.findall(r'href="\.\./glossary\.html#(\w+)" title="[^"]{20,}">(\w+)</a>', linked)
    assert links == [("probe", "probes"), ("ledger", "ledger"), ("j", "J")]
    assert re.sub("<a.*?>|</a>", "", linked) == page


def test_numbers_of_comparisons():
    """Every number in the tables of compared.md is also in benchmarks/README.md."""
    number = re.compile(r"\d[\d,.]*\d|\d")
    measured = set(number.findall((ROOT / "benchmarks" / "README.md").read_text()))
    shown = [line for line in (ROOT / "docs" / "compared.md").read_text().splitlines() if line.startswith("|")]
    assert {value for line in shown for value in number.findall(line)} <= measured


def make_table(path):
    from probewise.datasets import make_madelon

    data = make_madelon(n_samples=120, n_features=60, random_state=0)
    labels = ["healthy", "ill"]
    lines = [",".join([*data.feature_names, "diagnosis"])]
    lines += [",".join([*map(str, row), labels[label]]) for row, label in zip(data.X, data.y, strict=True)]
    path.write_text("\n".join(lines))
