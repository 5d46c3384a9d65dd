"""The scripts in examples/: each one runs, has a docstring, is short, and is shown on the site."""

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_examples_page():
    page = (ROOT / "docs" / "examples.md").read_text()
    assert SCRIPTS
    for script in SCRIPTS:
        text = script.read_text()
        assert ast.get_docstring(ast.parse(text)), f"{script.name} has no docstring"
        assert text.count("\n") < 40, f"{script.name} is long"
        assert f'--8<-- "examples/{script.name}"' in page, f"{script.name} is not on the page"
