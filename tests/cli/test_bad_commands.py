"""Bad files, bad columns and bad options to every command: exit code 2 and one line that says what to do about it."""

import gzip

import numpy as np
import polars as pl
import pytest

from probewise.cli import run

ROWS = 24


def columns(**more):
    rng = np.random.default_rng(0)
    labels = ["no", "yes"] * (ROWS // 2)
    return {"a": rng.normal(size=ROWS), "b": rng.integers(0, 9, ROWS), "label": labels, **more}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a good table in many formats, and bad ones, to work in."""
    monkeypatch.chdir(tmp_path)
    good = pl.DataFrame(columns())
    good.write_csv("good.csv")
    good.write_parquet("good.parquet")
    good.write_ipc("good.arrow")
    (tmp_path / "folder").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def csv(**more):
    return pl.DataFrame(columns(**more)).write_csv()


FILES = {
    "empty.csv": "",
    "blank.csv": "\n\n",
    "header.csv": "a,b,label\n",
    "one.csv": "label\nyes\nno\n",
    "ragged.csv": "a,b,label\n1,2,yes\n1,no\n",
    "quote.csv": 'a,b,label\n1,2,"yes\n3,4,no\n',
    "latin.csv": "a,b,label\n1,2,\xe9t\xe9\n".encode("latin-1"),
    "binary.csv": bytes(range(256)) * 4,
    "twice.csv": "a,a,label\n1,2,yes\n3,4,no\n",
    "unnamed.csv": ",a,label\n0,1,yes\n1,2,no\n",
    "same.csv": "a,label,label\n1,yes,2\n3,no,4\n",
    "text.csv": csv(c=["high"] * ROWS),
    "holes.csv": csv(c=[None, *range(ROWS - 1)]),
    "infinite.csv": csv(c=["inf", *map(str, range(ROWS - 1))]),
    "lost.csv": csv(label=[None, *["yes", "no"] * 11, "yes"]),
    "constant.csv": csv(label=["yes"] * ROWS),
    "rare.csv": csv(label=["maybe", *["yes", "no"] * 11, "yes"]),
    "huge.csv": csv(c=[1e300, -1e300] * (ROWS // 2)),
    "tiny.csv": csv(c=[1e-200, 0.0] * (ROWS // 2)),
    "huge-target.csv": csv(label=[1e300 * i + 0.5 for i in range(ROWS)]),
    "short.csv.gz": gzip.compress(csv().encode())[:-20],
    "not.csv.gz": csv(),
    "not.csv.zst": csv(),
    "not.parquet": csv(),
    "not.arrow": csv(),
    "not.npz": csv(),
    "not.npy": csv(),
    "not.arff": csv(),
    "not.libsvm": csv(),
    "table.xlsx": b"PK\x03\x04",
    "table.xls": b"PK\x03\x04",
    "table": csv(),
    "labels.csv": "id,label\n1,yes\n2,no\n",
    "not.ledger": csv(),
    "empty.ledger": b"",
    "not.run": '{"probewise study": 1',
    "old.run": '{"probewise study": 99}\n',
    "odd.run": '{"probewise study": 1, "settings": []}\n',
    "array.run": "[]\n",
}
REFUSED_TABLES = {
    "missing.csv": "there is no file missing.csv",
    "folder": "folder has an unknown format: name it .csv",
    "table.xlsx": "table.xlsx",  # damaged, or the extra is not there
    "table.xls": "table.xls has an unknown format: name it .csv",
    "table": "table has an unknown format: name it .csv",
    "empty.csv": "empty.csv is empty",
    "blank.csv": "blank.csv has no header: its first line is blank",
    "header.csv": "header.csv has a header but no rows",
    "one.csv": "one.csv has no columns besides the target 'label': is the separator right?",
    "ragged.csv": "ragged.csv: data row 2 has 2 cells and the header 3: correct the row",
    "quote.csv": "quote.csv: close the quote in the last data row, '1,2,\"yes\\n3,4,no'",
    "latin.csv": "latin.csv is not UTF-8 text (byte 0xe9 after",
    "binary.csv": "binary.csv is not UTF-8 text",
    "twice.csv": "columns 0 and 1 (counted from 0) have the same name, 'a': rename one",
    "unnamed.csv": "column 0 has no name and may be a saved row index: ignore it (ignore=['0']) or name it",
    "same.csv": "column 2 has the same name as the target, 'label': rename it or ignore it",
    "text.csv": "is not numeric: 'c' ('high' in data row 1); encode it as numbers, ignore it (ignore=['c'])",
    "infinite.csv": "infinite in 1 of 3 feature columns: 'c' (first in data row 1); fill them in",
    "lost.csv": "the target 'label' is missing or infinite in 1 of 24 rows (first: data row 1): fill it in",
    "short.csv.gz": "short.csv.gz cannot be decompressed",
    "not.csv.gz": "not.csv.gz cannot be decompressed",
    "not.csv.zst": "not.csv.zst cannot be decompressed (not a zst file): is the file complete?",
    "not.parquet": "not.parquet cannot be read as Parquet",
    "not.arrow": "not.arrow cannot be read as Arrow",
    "not.npz": "not.npz cannot be read as NPZ",
    "not.npy": "not.npy cannot be read as NPY",
    "not.arff": "not.arff cannot be read as ARFF: it has no line @data",
    "not.libsvm": "not.libsvm cannot be read as svmlight",
}
REFUSED_BY_METHODS = {
    "constant.csv": "one class",
    "rare.csv": "class",
    "huge.csv": "'c'",
    "tiny.csv": "'c'",
}
RANK = ["rank", "good.csv", "--target", "label", "--probes", "20", "--jobs", "1"]
COMPARE = [
    "compare",
    "good.csv",
    "--target",
    "label",
    "--methods",
    "fsdd",
    "--trials",
    "1",
    "--sizes",
    "1",
    "--jobs",
    "1",
]
REFUSED_OPTIONS = {
    "inclusion, too small": (
        ["rank", "good.csv", "--target", "label", "--method", "daf", "--inclusion", "1e-6", "--probes", "9"],
        "--inclusion 1e-06 leaves probes of 2 features empty, and they are drawn again without end: give at",
    ),
    # which columns
    "rank, no target": (["rank", "good.csv"], "choose the target column (target=...)"),
    "rank, a misspelt target": (
        [*RANK, "--target", "labels"],
        "there is no target column 'labels' in the table: did you mean",
    ),
    "rank, a target beyond the end": ([*RANK, "--target", "99"], "there is no target column '99'"),
    "rank, a target with too many digits": ([*RANK, "--target", "9" * 5000], "there is no target column"),
    "rank, an empty target": ([*RANK, "--target", ""], "there is no target column ''"),
    "rank, the target ignored": ([*RANK, "--ignore", "label"], "cannot be both the target and ignored"),
    "rank, all ignored": ([*RANK, "--ignore", "a", "--ignore", "b"], "no columns besides the target"),
    "rank, text as an id of another file": (
        [*RANK, "--target-file", "labels.csv"],
        "labels.csv has 2 rows and the table 24",
    ),
    "rank, an id that is not there": ([*RANK, "--id", "name"], "there is no id column 'name'"),
    "rank, features in cells": (
        [*RANK, "--features-in", "cells"],
        "features_in='cells' must be 'columns' or 'rows'",
    ),
    "rank, features in rows of Parquet": (
        ["rank", "good.npz", "--features-in", "rows", "--target", "a"],
        "there is no file",
    ),
    # what comes out
    "rank, out over the table": (
        [*RANK, "--out", "good.csv"],
        "--out good.csv would overwrite good.csv: choose another",
    ),
    "rank, select over the table": ([*RANK, "--select", "good.csv"], "--select good.csv would overwrite good.csv"),
    "rank, out to a folder": ([*RANK, "--out", "folder"], "folder has no format that can be written"),
    "rank, a report to text": ([*RANK, "--report", "r.txt"], ".html"),
    "rank, json to markdown": ([*RANK, "--json", "r.md"], "--json r.md: name it *.json"),
    "rank, keep without select": ([*RANK, "--n-features", "1"], "--n-features needs --select FILE"),
    "rank, keep more than there are": (
        [*RANK, "--select", "s.csv", "--n-features", "9"],
        "--n-features 9 is more than the 2 features",
    ),
    # how
    "rank, an unknown method": (
        [*RANK, "--method", "magic"],
        "--method 'magic' is not known: choose one of tournament, daf",
    ),
    "rank, probes for a filter": ([*RANK, "--method", "fsdd"], "--probes: --method fsdd makes no probes; leave it out"),
    "rank, a device that is not there": ([*RANK, "--device", "abacus"], "abacus"),
    "rank, inclusion 0": ([*RANK, "--inclusion", "0"], "--inclusion 0.0 must be a probability above 0 and below 1"),
    "rank, inclusion nan": ([*RANK, "--inclusion", "nan"], "--inclusion nan must be a probability"),
    "rank, an endless time": ([*RANK, "--time", "-inf"], "'--time': -inf is not above 0"),
    "rank, as many folds as rows": ([*RANK, "--cv", "24"], "fewer than --cv 24 folds: use a smaller cv"),
    "rank, a ledger that is a table": ([*RANK, "--ledger", "good.csv"], "good.csv exists already: add --resume"),
    "rank, resuming a table": ([*RANK, "--ledger", "good.csv", "--resume"], "good.csv is not a Probewise ledger"),
    "rank, resume without a ledger": ([*RANK, "--resume"], "--resume needs --ledger FILE"),
    "rank, an unknown option": ([*RANK, "--wrong"], "--wrong"),
    # compare
    "compare, no such file": (["compare", "missing.csv", "--target", "label"], "there is no file missing.csv"),
    "compare, holes": (
        ["compare", "holes.csv", "--target", "label"],
        "values are missing or infinite in 1 of 3 feature columns: 'c' (first in data row 1); fill them in",
    ),
    "compare, an unknown method": ([*COMPARE, "--methods", "magic"], "--methods 'magic' is not known: choose from all"),
    "compare, no method": ([*COMPARE, "--methods", ","], "--methods ',' is not known"),
    "compare, an unknown classifier": ([*COMPARE, "--classifiers", "oracle"], "--classifiers 'oracle' is not known"),
    "compare, sizes of words": (
        [*COMPARE, "--sizes", "one"],
        "--sizes 'one' is no list of whole numbers: write 5,10,20",
    ),
    "compare, sizes beyond the end": (
        [*COMPARE, "--sizes", "1,3"],
        "--sizes [1, 3] with 2 features: give whole numbers",
    ),
    "compare, sizes of many digits": ([*COMPARE, "--sizes", "9" * 5000], "no list of whole numbers"),
    "compare, nothing to test on": ([*COMPARE, "--test-size", "0"], "test_size"),
    "compare, nothing to train on": ([*COMPARE, "--test-size", "24"], "test_size"),
    "compare, out over the table": ([*COMPARE, "--out", "good.csv"], "would overwrite good.csv: choose another file"),
    "compare, a picture as text": ([*COMPARE, "--plot", "p.txt"], "a picture cannot be written to p.txt: name it"),
    "compare, a run that is a table": ([*COMPARE, "--ledger", "good.csv"], "good.csv exists already: add --resume"),
    "compare, resuming a table": (
        [*COMPARE, "--ledger", "good.csv", "--resume"],
        "good.csv is not the run of a Probewise study",
    ),
    "compare, resuming an old run": (
        [*COMPARE, "--ledger", "old.run", "--resume"],
        "old.run has study format 99; this version",
    ),
    "compare, resuming an odd run": (
        [*COMPARE, "--ledger", "odd.run", "--resume"],
        "odd.run is damaged in line 1: remove",
    ),
    "compare, fractions": (
        [*COMPARE, "--target", "a", "--ignore", "label"],
        "y is continuous: a study compares accuracy",
    ),
    # report
    "report, nothing to write": (["report", "not.ledger"], "a report needs --out FILE: .html, .md or .json"),
    "report, no such run": (["report", "missing.ledger", "--out", "r.md"], "there is no run at missing.ledger"),
    "report, a folder": (["report", "folder", "--out", "r.md"], "there is no run at folder"),
    "report, a table": (
        ["report", "not.ledger", "--out", "r.md"],
        "not.ledger is not a Probewise ledger: choose another file",
    ),
    "report, an empty file": (["report", "empty.ledger", "--out", "r.md"], "empty.ledger"),
    "report, a run cut short": (["report", "not.run", "--out", "r.md"], "not.run"),
    "report, an odd run": (["report", "odd.run", "--out", "r.md"], "odd.run is damaged"),
    "report, a list": (
        ["report", "array.run", "--out", "r.md"],
        "array.run is not a Probewise ledger: choose another file",
    ),
    "report, over the run": (["report", "old.run", "--out", "old.run"], "old.run"),
    "report, a target without data": (["report", "old.run", "--out", "r.md", "--target", "x"], "need --data TABLE"),
    # convert, and none
    "convert, to text": (["convert", "good.csv", "out.csv", "--target", "label"], ".npy"),
    "convert, what is damaged": (
        ["convert", "not.npz", "out.npy", "--target", "label"],
        "not.npz cannot be read as NPZ",
    ),
    "an unknown command": (["rang", "good.csv"], "rang"),
}


def listed(folder):
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


def refusal(capfd, arguments):
    """The one line; nothing else is printed, by whatever library."""
    code = run(arguments)
    printed = capfd.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1), printed.err
    assert printed.err.startswith("probewise: ")
    assert "Traceback" not in printed.err
    return printed.err


@pytest.mark.matrix
@pytest.mark.parametrize("name", REFUSED_TABLES)
@pytest.mark.parametrize("command", ["rank", "compare"])
def test_a_table_that_cannot_be_read_is_refused_in_one_line(here, capfd, name, command):
    before = listed(here)
    assert REFUSED_TABLES[name] in refusal(capfd, [command, name, "--target", "label"])
    assert listed(here) == before


@pytest.mark.parametrize("name", REFUSED_BY_METHODS)
@pytest.mark.parametrize("method", ["daf", "bif", "fsdd", "mrmr"])
def test_a_table_that_cannot_be_used_is_refused_in_one_line(here, capfd, name, method):
    if (name, method) in (("rare.csv", "fsdd"), ("rare.csv", "mrmr")):
        pytest.skip("a class of one row is a class to a filter")
    before = listed(here)
    options = ["--probes", "20"] if method == "daf" else []
    said = refusal(capfd, ["rank", name, "--target", "label", "--method", method, "--jobs", "1", *options])
    assert REFUSED_BY_METHODS[name] in said
    assert listed(here) == before


def test_a_target_that_cannot_be_squared_is_refused_in_one_line(here, capfd):
    said = refusal(capfd, ["rank", "huge-target.csv", "--target", "label", "--probes", "20", "--jobs", "1"])
    assert "y is too large to be computed with" in said


@pytest.mark.parametrize("name", REFUSED_OPTIONS)
def test_options_that_cannot_be_meant_are_refused_in_one_line(here, capfd, name):
    arguments, reason = REFUSED_OPTIONS[name]
    before = listed(here)
    assert reason in refusal(capfd, arguments)
    assert {name: content for name, content in listed(here).items() if name in before} == before


OVER = {  # what would be lost, and the options that would overwrite it
    "a sidecar": ("t.npy.json", ["rank", "t.npy", "--target", "label", "--json", "t.npy.json"]),
    "costs": ("costs.csv", ["rank", "good.csv", "--target", "label", "--costs", "costs.csv", "--out", "costs.csv"]),
    "groups": ("g.csv", ["rank", "good.csv", "--target", "label", "--feature-groups", "g.csv", "--select", "g.csv"]),
    "a hard link": ("good.csv", ["rank", "good.csv", "--target", "label", "--out", "link.csv"]),
    "a report": ("r.json", ["rank", "good.csv", "--target", "label", "--out", "r.json", "--json", "./r.json"]),
    "a plot": ("p.png", ["compare", "good.csv", "--target", "label", "--plot", "p.png", "--out", "p.png"]),
    "the table of a report": ("good.csv", ["report", "old.run", "--data", "good.csv", "--out", "link.html"]),
}


@pytest.mark.parametrize("name", OVER)
def test_outputs_that_are_inputs_are_refused(here, capfd, name):
    lost, arguments = OVER[name]
    np.save("t.npy", np.arange(6.0).reshape(3, 2))
    for file in ("t.npy.json", "costs.csv", "g.csv"):
        (here / file).write_text("{}")
    for link in ("link.csv", "link.html"):
        (here / link).hardlink_to(here / "good.csv")
    before = listed(here)
    said = refusal(capfd, arguments)
    assert "would overwrite" in said or "cannot be written" in said or "no format" in said
    assert lost in said
    assert listed(here) == before


def test_a_lack_of_memory_is_told_in_one_line(here, capfd, monkeypatch):
    def none(*_, **__):
        raise MemoryError

    monkeypatch.setattr("probewise.io.reading.open_source", none)
    assert "not enough memory for this table: use fewer columns or rows" in refusal(capfd, RANK)
