"""Every example in the docstrings, the README and docs/ is run as written, and prints what the page says it does."""

import doctest
import importlib
import importlib.util
import io
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
SAME = doctest.OutputChecker()
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


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
    """Workers are threads unless a page says otherwise: they are there at once, and give the same."""
    with joblib.parallel_config(backend="threading"):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name_of)
@pytest.mark.usefixtures("threads")
def test_page(page, tmp_path, monkeypatch, real_data):
    """Blocks run from top to bottom, in one folder that holds ``genes.csv``, and know the names of those before.

    A ``text`` block right after a ``python`` block is what that prints; in a ``console`` block the lines after a
    command are what it prints, if there are any. ``...`` stands for anything.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text, names, printed = page.read_text(), {"__name__": "__main__"}, None
    for name in re.findall(r'\bload\("(\w+)"\)', text):
        real_data(name)  # or the page is skipped
        monkeypatch.setenv("PROBEWISE_DATA", str(DATA))
    make_table(tmp_path / "genes.csv")
    for block in FENCE.finditer(text):
        language, body = block.groups()
        line = text.count("\n", 0, block.start()) + 1
        if language == "text" and printed is not None:
            assert_prints(body, printed.getvalue(), f"{page.name}:{line}")
        printed = None
        if language == "python":
            with redirect_stdout(io.StringIO()) as printed:
                exec(compile("\n" * line + body, page.name, "exec"), names)
        if language == "console":
            run_session(body, f"{page.name}:{line}")


def run_session(session, place):
    for command, expected in re.findall(r"^\$ probewise (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        with redirect_stdout(io.StringIO()) as printed:
            assert run(shlex.split(command, comments=True)) == 0, f"{place}: {command}"
        if expected.strip():
            assert_prints(expected, printed.getvalue(), place)


def assert_prints(expected, printed, place):
    assert SAME.check_output(expected.strip(), printed.strip(), LOOSELY), f"{place} prints\n{printed}\nnot\n{expected}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target, _ in LINK.findall(FENCE.sub("", page.read_text())):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{name_of(page)} links to {target}"


def test_the_version_to_cite_is_this_one():
    assert f"\nversion: {probewise.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{probewise.__version__}}}" in (ROOT / "docs" / "cite.md").read_text()


def test_words_lead_to_the_glossary():
    """Where they first come up, and mean what the glossary says: not in code, nor as an author's initial."""
    spec = importlib.util.spec_from_file_location("words", ROOT / "docs" / "words.py")
    words = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(words)
    assert words.meanings().keys() == words.SPELLED.keys() == {"probe", "J", "block", "look", "ledger"}
    page = "<h2>Probes</h2><p><code>probe</code> J. Liang; two probes, a ledger, a probe; a first look at J, blocks</p>"
    made = words.on_page_content(page, SimpleNamespace(file=SimpleNamespace(src_uri="a.md"), url="methods/a.html"))
    links = re.findall(r'href="\.\./glossary\.html#(\w+)" title="[^"]{20,}">(\w+)</a>', made)
    assert links == [("probe", "probes"), ("ledger", "ledger"), ("j", "J")]
    assert re.sub("<a.*?>|</a>", "", made) == page


def test_comparisons_are_measured():
    """Every number in the tables of compared.md is one of benchmarks/README.md."""
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
