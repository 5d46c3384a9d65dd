"""``probewise compare`` end to end: printed tables, files, plots, resumed studies and Ctrl-C."""

import errno
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import probewise
from probewise import BIF, DAF
from probewise.io import read_table
from probewise.stopping import MaxProbes
from probewise.study import CLASSIFIERS, Study, trial_ledger

COMMAND = [sys.executable, "-m", "probewise"]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "80"}
QUICK = ["--methods", "daf,bif", "--classifiers", "naive_bayes", "--trials", 3, "--sizes", "1,4", "--n-probes", 50]


@pytest.fixture
def compare(succeed):
    return lambda *arguments: succeed("compare", *arguments)


def cells(text, title):
    """The rows of the printed table whose header starts with the title."""
    blocks = [block for block in re.split(r"\n\s*\n", text) if block.strip().startswith(title)]
    assert len(blocks) == 1
    return [line.split() for line in blocks[0].strip().splitlines()[2:]]


@pytest.mark.slow
def test_end_to_end(data, tmp_path, compare, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out, plot = tmp_path / "table.csv", tmp_path / "picture.svg"
    options = ["--methods", "daf,bif,all", "--classifiers", "knn,linear", "--trials", 4, "--sizes", "1,5,20"]
    options += ["--n-probes", 200, "--random-state", 3, "--n-jobs", 1, "--out", out, "--plot", plot]
    printed = compare(data, "--target", "label", *options)
    table = read_table(data, target="label")
    study = Study(
        {"daf": DAF(stop=MaxProbes(200)), "bif": BIF(), "all": None},
        {name: CLASSIFIERS[name]() for name in ("knn", "linear")},
        trials=4,
        sizes=[1, 5, 20],
        random_state=3,
    )
    result = study.compare(table.X, table.y)

    written = pl.read_csv(out)
    for name, column in result.table().items():
        if name != "seconds":
            assert written[name].to_list() == column.tolist()
    assert plot.read_text().startswith("<?xml")
    for c, classifier in enumerate(("knn", "linear")):
        rows = cells(printed.out, f"accuracy, {classifier}")
        assert [row[0] for row in rows] == ["daf", "bif", "all"]
        means = result.accuracy[:, :, c].mean(axis=0)
        wanted = np.column_stack([means, means.mean(axis=1)])
        np.testing.assert_allclose([[float(cell) for cell in row[1:]] for row in rows], wanted, atol=5.1e-4)
    rows = cells(printed.out, "stability, CW_rel")
    found = [[float(cell) for cell in row[1:-1]] for row in rows]
    np.testing.assert_allclose(found, result.stability()["cw_rel"], atol=5.1e-4)
    verdict = result.verdict()
    rows = cells(printed.out.split("\n4 trials")[0], "difference in accuracy")
    assert [row[:4] for row in rows] == [
        [first, "-", second, classifier]
        for first, second, classifier in zip(verdict["first"], verdict["second"], verdict["classifier"], strict=True)
    ]
    np.testing.assert_allclose([float(row[4]) for row in rows], verdict["difference"], atol=5.1e-4)
    np.testing.assert_allclose([float(row[5]) for row in rows], verdict["p_value"], atol=5.1e-4)
    np.testing.assert_allclose([float(row[6]) for row in rows], verdict["p_holm"], atol=5.1e-4)
    assert "corrected resampled t-test" in printed.out
    assert f"the table is in {out}" in printed.err
    assert f"the plot is in {plot}" in printed.err
    assert max(map(len, printed.out.split("\n4 trials")[0].splitlines())) <= 80


def test_quiet_prints_the_tables_and_nothing_else(data, tmp_path, compare):
    plot = tmp_path / "p.png"
    printed = compare(data, "--target", "label", *QUICK, "-q", "--n-jobs", 1, "--plot", plot)
    assert printed.err == ""
    assert "accuracy, naive_bayes" in printed.out
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_one_method_needs_no_verdict(data, compare):
    options = ["--methods", "bif", "--classifiers", "knn", "--trials", 2, "--n-jobs", 1, "--sizes", 3]
    printed = compare(data, "--target", "label", *options)
    assert "difference" not in printed.out


def test_every_selector_of_the_library_can_be_named(refuse, data):
    message = refuse("compare", data, "--target", "label", "--methods", "daf,magic")
    for name in probewise.__all__:
        if hasattr(getattr(probewise, name), "get_support"):
            assert re.search(rf"\b{name.lower()}\b", message)


def test_the_better_method_is_named_if_the_difference_is_significant(tmp_path, compare):
    random = np.random.default_rng(0)
    y = np.arange(200) % 2
    columns = {f"x{k}": random.standard_normal(200) for k in range(30)}
    columns["x29"] = y + 0.3 * random.standard_normal(200)
    pl.DataFrame({**columns, "y": y}).write_csv(tmp_path / "d.csv")
    options = ["--methods", "bif,all", "--classifiers", "knn", "--sizes", 1, "--trials", 10, "--n-jobs", 1, "-q"]
    printed = compare(tmp_path / "d.csv", "--target", "y", *options)
    row = cells(printed.out.split("\n10 trials")[0], "difference in accuracy")[0]
    assert row[-1] == "bif"
    assert float(row[-2]) < 0.05


# ---- the stored study


def test_a_resumed_study_ends_as_if_never_stopped(data, tmp_path, compare, refuse):
    study, options = tmp_path / "study.jsonl", [data, "--target", "label", *QUICK, "-q", "--n-jobs", 1]
    compare(*options, "--trials", 2, "--random-state", 4, "--ledger", study)
    tables = {}
    for name, more in {"resumed": ["--ledger", study], "whole": ["--random-state", 4]}.items():
        compare(*options, "--trials", 4, *more, "--out", tmp_path / f"{name}.csv")
        tables[name] = pl.read_csv(tmp_path / f"{name}.csv").drop("seconds")
    assert tables["resumed"].equals(tables["whole"])
    message = refuse("compare", *options, "--ledger", study, "--ignore", "f03")
    assert "holds another study: its shape is [90, 30], not [90, 29]" in message


@pytest.mark.slow
@pytest.mark.usefixtures("sigint")
@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.exhaustive), 2])
def test_ctrl_c_gives_the_trials_so_far_and_the_study_can_be_resumed(data, tmp_path, compare, jobs):
    study, options = tmp_path / "study.jsonl", [data, "--target", "label", "--methods", "daf,bif", "--sizes", "1,4"]
    options += ["--n-probes", 1000, "--classifiers", "naive_bayes", "--ledger", study]
    arguments = [*COMMAND, "compare", *map(str, options), "--trials", "500", "--n-jobs", str(jobs)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "env": ENVIRONMENT}
    with subprocess.Popen(arguments, **pipes, start_new_session=True) as process:
        end = time.monotonic() + 90
        while not study.exists() or study.read_bytes().count(b"\n") < 3:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, "no trial was finished"
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the workers too
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "accuracy, naive_bayes" in out
    assert "Traceback" not in err
    trials = int(re.search(r"interrupted after (\d+) of 500 trials: these are the results so far", err)[1])
    more = ["--trials", trials, "--out", tmp_path / "t.csv", "-q", "--n-jobs", 1]
    assert compare(*options, *more).out == out
    assert (pl.read_csv(tmp_path / "t.csv").filter(pl.col("selector") == "daf")["probes"] == 1000).all()


# ---- files


def test_without_matplotlib_a_plot_is_refused_before_any_work(data, tmp_path, refuse, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(Study, "compare", lambda *arguments, **named: pytest.fail("work was started"))
    message = refuse("compare", data, "--target", "label", "--plot", tmp_path / "p.png")
    assert "need the report extra: pip install 'probewise[report]'" in message


def test_sparse_tables_are_compared_without_making_them_dense(tmp_path, compare):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = (rng.random((80, 30)) < 0.1) * rng.integers(1, 5, (80, 30))
    X[:, 4] = np.where(rng.random(80) < 0.9, 3 * y, 0)
    path = tmp_path / "text.svmlight"
    dump_svmlight_file(sp.csr_matrix(X), y, str(path))
    compare(path, "--methods", "fsdd,all", "--trials", "2", "--sizes", "1,3", "-q", "--n-jobs", "1")


def test_a_full_disk_gives_the_trials_so_far(data, tmp_path, succeed, monkeypatch):
    """Every write after the third fails: the header and two trials are in the file."""
    n_writes, write = [], os.write

    def full(file, content):
        if bytes(content[:1]) == b"{":
            n_writes.append(len(content))
        if len(n_writes) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, content)

    ledger = tmp_path / "study.ledger"
    options = ["--methods", "fsdd", "--trials", 5, "--sizes", "1,2", "--n-jobs", 1, "-q"]
    with monkeypatch.context() as patch:
        patch.setattr(trial_ledger.os, "write", full)
        printed = succeed("compare", data, "--target", "label", *options, "--ledger", ledger, code=3)
    assert "interrupted after 2 of 5 trials ([Errno 28] No space left on device" in printed.err
    assert str(ledger) in printed.err
    assert len(ledger.read_text().splitlines()) == 3
    succeed("compare", data, "--target", "label", *options, "--ledger", ledger)
    assert len(ledger.read_text().splitlines()) == 6
