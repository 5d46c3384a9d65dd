"""Every example in the docstrings, the README and docs/ is run as written."""

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import probewise

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(probewise.__path__, "probewise.")
    if module.name not in ("probewise.cli", "probewise.__main__")
]


def blocks(language):
    return [
        pytest.param(page, block, id=f"{page.name}-{number}")
        for page in PAGES
        for number, block in enumerate(re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL))
    ]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0


@pytest.mark.parametrize(("page", "code"), blocks("python"))
def test_python_examples(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"{page.name}", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(("page", "session"), blocks("console"))
def test_commands(page, session, tmp_path):
    """Lines that start with ``$ probewise`` are run, in order, beside a small table made for them."""
    make_table(tmp_path / "genes.csv")
    commands = [line[2:].split("  #")[0] for line in session.splitlines() if line.startswith("$ probewise")]
    for command in commands:
        words = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def make_table(path):
    from probewise.datasets import make_madelon

    data = make_madelon(n_samples=120, n_features=60, random_state=0)
    labels = ["healthy", "ill"]
    lines = [",".join([*data.feature_names, "diagnosis"])]
    lines += [",".join([*map(str, row), labels[label]]) for row, label in zip(data.X, data.y, strict=True)]
    path.write_text("\n".join(lines))
