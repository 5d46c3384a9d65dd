"""``rank --report`` and ``report``: the summary through the command line, and one line for each error."""

import json
import zipfile
from importlib.util import find_spec

import numpy as np
import pytest

from probewise.cli import run


@pytest.fixture(scope="module")
def table(madelon, tmp_path_factory):
    import polars as pl

    X, y = madelon
    path = tmp_path_factory.mktemp("table") / "table.csv"
    X.with_columns(label=pl.Series(y)).write_csv(path)
    return path


def refusal(capsys, *arguments):
    assert run([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.slow
def test_rank_writes_reports_and_report_makes_them_again(table, tmp_path, capsys):
    paths = [tmp_path / f"first.{ending}" for ending in ("html", "md", "json")]
    ledger = tmp_path / "run.ledger"
    arguments = ["rank", table, "--target", "label", "--n-probes", 800, "--ledger", ledger]
    for path in paths:
        arguments += ["--report", path]
    assert run(list(map(str, arguments))) == 0
    said = capsys.readouterr().err
    assert all(f"the report is in {path}" in said for path in paths)
    first = json.loads(paths[2].read_text(encoding="utf-8"))
    assert first["header"]["title"] == "Which features of table.csv predict label?"
    assert first["repeat"]["command"].startswith(f"probewise rank {table} --target label --n-probes 800")
    names = {}
    exec(first["repeat"]["code"], names)  # it reads the table too
    best = [names["table"].feature_names[column] for column in np.argsort(names["tournament"].ranking_, kind="stable")]
    assert best == first["ranking"]["columns"]["feature"]
    assert first["run"]["stop_reason"] == "the limit of 800 probes was reached"

    again = tmp_path / "again.json"
    arguments = ["report", ledger, "--data", table, "--target", "label", "--out", again]
    assert run(list(map(str, arguments))) == 0
    second = json.loads(again.read_text(encoding="utf-8"))
    assert first["nested_score"] is not None
    assert all("use rank --report" in second["omitted"][part] for part in ("nested_score", "selection"))
    for name in ("columns", "labels"):  # selection frequencies come from runs on halves of the samples
        del first["ranking"][name]["selected_in"]
    for part in ("ranking", "data", "convergence", "interactions"):
        assert first[part] == second[part], part

    assert run(["report", str(ledger), "--out", str(again), "-q"]) == 0
    assert json.loads(again.read_text(encoding="utf-8"))["sizes"] is None
    assert capsys.readouterr().err.count("\n") == 1


def test_an_excel_file_holds_the_ranking(table, tmp_path, capsys, monkeypatch):
    rank = ["rank", str(table), "--target", "label", "--method", "fsdd", "-q", "--out", str(tmp_path / "ranking.xlsx")]
    if find_spec("xlsxwriter") is not None:
        assert run(rank) == 0
        with zipfile.ZipFile(tmp_path / "ranking.xlsx") as book:
            strings = book.read("xl/sharedStrings.xml").decode()
            assert book.read("xl/worksheets/sheet1.xml").count(b"<row ") == 41
        assert all(f"<t>{name}</t>" in strings for name in ("feature", "higher_in", "difference_high"))
    monkeypatch.setattr("probewise.io.writing.find_spec", lambda name: None)
    capsys.readouterr()
    assert "writing Excel needs xlsxwriter, in the excel extra: pip install 'probewise[excel]'" in refusal(
        capsys, *rank
    )


def test_report_of_a_study(study, table, tmp_path, capsys):
    out = tmp_path / "study.md"
    assert run(["report", str(study[1]), "--out", str(out)]) == 0
    assert "## Comparison of methods" in out.read_text(encoding="utf-8")


def test_a_sparse_table_keeps_its_names(tmp_path, capsys):
    random = np.random.default_rng(0)
    lines = []
    for row in range(30):
        cells = " ".join(f"{k + 1}:{random.uniform() + row % 2 * (k == 2):.3f}" for k in range(6))
        lines.append(f"{row % 2} {cells}\n")
    (tmp_path / "t.svm").write_text("".join(lines))
    out = tmp_path / "r.json"
    assert run(["rank", str(tmp_path / "t.svm"), "--n-probes", "60", "-q", "--report", str(out)]) == 0
    summary = json.loads(out.read_text(encoding="utf-8"))
    printed = capsys.readouterr().out
    assert all(name in printed for name in summary["ranking"]["columns"]["feature"])


def test_errors_come_before_any_work(table, saved_run, tmp_path, capsys):
    ledger = saved_run[1]
    rank = ["rank", table, "--target", "label", "--report"]
    assert "name it .html, .md or .json" in refusal(capsys, *rank, tmp_path / "a.pdf")
    assert "does not exist" in refusal(capsys, *rank, tmp_path / "no" / "a.html")
    same = tmp_path / "a.json"
    assert "--report" in refusal(capsys, *rank, same, "--out", same)
    assert "there is no run at" in refusal(capsys, "report", tmp_path / "none", "--out", same)
    assert "need --data DATA" in refusal(capsys, "report", ledger, "--target", "label", "--out", same)
    other = ["--data", table, "--target", "label", "--ignore", "0"]
    assert "39 features, the data of the run" in refusal(capsys, "report", ledger, *other, "--out", same)


def test_warnings_of_the_run_are_printed_once_and_come_first_in_the_report(tmp_path, capsys):
    import polars as pl

    random = np.random.default_rng(0)
    ages = np.arange(60) % 30 + 30  # may be classes
    numbers = {f"g{number}": ages / 10 + random.standard_normal(60) for number in range(4)}
    pl.DataFrame({**numbers, "batch": np.arange(60) % 7, "age": ages}).write_csv(tmp_path / "ages.csv")
    command = ["rank", tmp_path / "ages.csv", "--target", "age", "--n-probes", 60, "--report", tmp_path / "report.json"]
    assert run(list(map(str, command))) == 0
    said = capsys.readouterr().err
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    for words in ("y has 30 distinct whole numbers", "column 'batch' has 7 values in 60 rows"):
        assert said.count(words) == 1, said
        assert sum(f"Check the data first: {words}" in paragraph for paragraph in report["verdict"][:2]) == 1
    assert "training samples" in report["predictions"]["model"]
    assert report["predictions"]["r2"] == pytest.approx(report["nested_score"]["score"], abs=0.1)
