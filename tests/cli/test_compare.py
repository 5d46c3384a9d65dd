"""``probewise compare`` end to end: tables printed and written, pictures drawn, runs resumed, one line for a fault."""

import contextlib
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

from probewise import BIF, DAF
from probewise.cli import run
from probewise.datasets import make_madelon
from probewise.io import read_table
from probewise.stopping import MaxProbes
from probewise.study import CLASSIFIERS, Study

COMMAND = [sys.executable, "-m", "probewise"]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "80"}
QUICK = ["--methods", "daf,bif", "--classifiers", "naive_bayes", "--trials", 3, "--sizes", "1,4", "--probes", 50]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A small table of Madelon's recipe with text labels, as CSV."""
    made = make_madelon(90, 20, random_state=0)
    path = tmp_path_factory.mktemp("data") / "madelon.csv"
    labels = pl.Series(np.where(made.y == 1, "yes", "no"))
    pl.from_numpy(made.X, schema=made.feature_names, orient="row").with_columns(label=labels).write_csv(path)
    return path


def compared(capsys, *arguments):
    """What ``probewise compare`` prints when all goes well."""
    assert run(["compare", *map(str, arguments)]) == 0
    return capsys.readouterr()


def refusal(capsys, *arguments):
    """The one line that says what is wrong."""
    assert run(["compare", *map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("probewise: ")
    return printed.err


def cells(text, title):
    """The rows of the printed table whose header begins with the title."""
    blocks = [block for block in re.split(r"\n\s*\n", text) if block.strip().startswith(title)]
    assert len(blocks) == 1
    return [line.split() for line in blocks[0].strip().splitlines()[2:]]


@pytest.mark.slow
def test_end_to_end(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out, plot = tmp_path / "table.csv", tmp_path / "picture.svg"
    options = ["--methods", "daf,bif,all", "--classifiers", "knn,linear", "--trials", 4, "--sizes", "1,5,20"]
    options += ["--probes", 200, "--seed", 3, "--n-jobs", 1, "--out", out, "--plot", plot]
    printed = compared(capsys, data, "--target", "label", *options)
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
    assert f"the picture is in {plot}" in printed.err
    assert max(map(len, printed.out.split("\n4 trials")[0].splitlines())) <= 80


def test_quiet_prints_the_tables_and_nothing_else(data, tmp_path, capsys):
    plot = tmp_path / "p.png"
    printed = compared(capsys, data, "--target", "label", *QUICK, "-q", "--jobs", 1, "--plot", plot)
    assert printed.err == ""
    assert "accuracy, naive_bayes" in printed.out
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_one_method_needs_no_verdict(data, capsys):
    options = ["--methods", "bif", "--classifiers", "knn", "--trials", 2, "--jobs", 1, "--sizes", 3]
    printed = compared(capsys, data, "--target", "label", *options)
    assert "difference" not in printed.out


def test_every_selector_of_the_library_can_be_named(capsys, data):
    import probewise

    message = refusal(capsys, data, "--target", "label", "--methods", "daf,magic")
    assert "--methods 'magic' is not known: choose from all, " in message
    for name in probewise.__all__:
        if hasattr(getattr(probewise, name), "get_support"):
            assert re.search(rf"\b{name.lower()}\b", message)


def test_the_better_one_is_named_where_chance_is_unlikely(tmp_path, capsys):
    random = np.random.default_rng(0)
    y = np.arange(200) % 2
    columns = {f"x{k}": random.standard_normal(200) for k in range(30)}
    columns["x29"] = y + 0.3 * random.standard_normal(200)
    pl.DataFrame({**columns, "y": y}).write_csv(tmp_path / "d.csv")
    options = ["--methods", "bif,all", "--classifiers", "knn", "--sizes", 1, "--trials", 10, "--jobs", 1, "-q"]
    printed = compared(capsys, tmp_path / "d.csv", "--target", "y", *options)
    row = cells(printed.out.split("\n10 trials")[0], "difference in accuracy")[0]
    assert row[-1] == "bif"
    assert float(row[-2]) < 0.05


# ---- the run file


def test_a_run_goes_on_and_ends_as_if_never_stopped(data, tmp_path, capsys):
    kept, basis = tmp_path / "study.jsonl", [data, "--target", "label", *QUICK, "-q", "--jobs", 1]
    compared(capsys, *basis, "--trials", 2, "--seed", 4, "--ledger", kept)
    assert "add --resume to go on with it" in refusal(capsys, *basis, "--ledger", kept)
    tables = {}
    for name, options in {"resumed": ["--ledger", kept, "--resume"], "whole": ["--seed", 4]}.items():
        compared(capsys, *basis, "--trials", 4, *options, "--out", tmp_path / f"{name}.csv")
        tables[name] = pl.read_csv(tmp_path / f"{name}.csv").drop("seconds")
    assert tables["resumed"].equals(tables["whole"])
    message = refusal(capsys, *basis, "--ledger", kept, "--resume", "--ignore", "f03")
    assert "has another study: its shape is [90, 20], not [90, 19]" in message


def test_resume_needs_something_to_resume(data, tmp_path, capsys):
    assert "--resume needs --ledger" in refusal(capsys, data, "--target", "label", "--resume")
    new = [data, "--target", "label", "--methods", "fsdd", "--trials", 2, "--sizes", 2, "--jobs", 1, "--resume"]
    assert "it begins" in compared(capsys, *new, "--ledger", tmp_path / "no").err
    assert "it begins" not in compared(capsys, *new, "--run", tmp_path / "no").err


@contextlib.contextmanager
def ctrl_c_heard():
    """Children hear SIGINT even where this process was started with it ignored, as in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_gives_the_trials_so_far_and_the_run_can_go_on(data, tmp_path, capsys, monkeypatch):
    kept, fit, fits = tmp_path / "study.jsonl", DAF.fit, []
    basis = ["compare", data, "--target", "label", *QUICK, "--ledger", kept, "--jobs", 1]

    def interrupted(self, *given, **named):
        fits.append(self)
        if len(fits) == 3:
            raise KeyboardInterrupt
        return fit(self, *given, **named)

    monkeypatch.setattr(DAF, "fit", interrupted)
    assert run([*map(str, basis), "--trials", "9"]) == 3
    printed = capsys.readouterr()
    assert "interrupted after 2 of 9 trials: these are the results so far" in printed.err
    resumed = compared(capsys, *basis[1:], "--trials", 2, "--resume", "-q")
    assert resumed.out == printed.out
    assert len(fits) == 3


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.exhaustive), 2])
def test_ctrl_c_gives_the_trials_so_far_and_the_run_can_go_on(data, tmp_path, capsys, jobs):
    kept, basis = tmp_path / "study.jsonl", [data, "--target", "label", "--methods", "daf,bif", "--sizes", "1,4"]
    basis += ["--probes", 1000, "--classifiers", "naive_bayes", "--ledger", kept]
    arguments = [*COMMAND, "compare", *map(str, basis), "--trials", "500", "--jobs", str(jobs)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "env": ENVIRONMENT}
    with ctrl_c_heard(), subprocess.Popen(arguments, **pipes, start_new_session=True) as process:
        end = time.monotonic() + 90
        while not kept.exists() or kept.read_bytes().count(b"\n") < 3:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, "no trial was finished"
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "accuracy, naive_bayes" in out
    assert "Traceback" not in err
    trials = int(re.search(r"interrupted after (\d+) of 500 trials: these are the results so far", err)[1])
    resumed = compared(capsys, *basis, "--trials", trials, "--resume", "--out", tmp_path / "t.csv", "-q", "--jobs", 1)
    assert resumed.out == out
    assert (pl.read_csv(tmp_path / "t.csv").filter(pl.col("selector") == "daf")["probes"] == 1000).all()


def test_ctrl_c_before_the_first_trial_says_so(data, capsys, monkeypatch):
    def fit(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(DAF, "fit", fit)
    assert run(["compare", str(data), "--target", "label", "--jobs", "1"]) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "interrupted before there was a result" in printed.err


# ---- bad input


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--target", "labels"], "no target column 'labels' in the table: did you mean 'label'?"),
        (["--methods", "magic"], "--methods 'magic' is not known: choose from all, bif"),
        (["--methods", ","], "--methods ',' is not known"),
        (["--classifiers", "oracle"], "--classifiers 'oracle' is not known: choose from knn, linear"),
        (["--sizes", "1,many"], "--sizes '1,many' is no list of whole numbers: write 5,10,20"),
        (["--sizes", "1,50"], "sizes=[1, 50] must be whole numbers from 1 to the number of features, 20"),
        (["--trials", "0"], "'--trials'"),
        (["--test-size", "2"], "test_size"),
        (["--methods", "bif", "--probes", "9"], "--probes and --time have no meaning for --methods bif"),
        (["--time", "0"], "'--time': 0 is not above 0"),
        (["--out", "table.docx"], "name it .csv"),
        (["--plot", "picture.txt"], "a picture cannot be written to picture.txt: name it"),
        (["--plot", "no-such-folder/p.png"], "does not exist"),
        (["--ledger", "no-such-folder/r"], "does not exist"),
        (["--jobs", "0"], "n_jobs"),
        (["--wrong"], "--wrong"),
    ],
)
def test_bad_values_are_named(data, capsys, options, reason):
    assert reason in refusal(capsys, data, "--target", "label", *options)


def test_numbers_to_predict_are_refused(tmp_path, capsys):
    random = np.random.default_rng(0)
    pl.DataFrame({"a": random.standard_normal(30), "price": random.standard_normal(30)}).write_csv(tmp_path / "d.csv")
    assert "y is continuous" in refusal(capsys, tmp_path / "d.csv", "--target", "price")


def test_what_is_written_never_overwrites_what_was_read(data, tmp_path, capsys):
    before = data.read_bytes()
    assert "--out" in refusal(capsys, data, "--target", "label", "--out", data)
    both = tmp_path / "both.svg"
    kept = ["--ledger", both, "--plot", both]
    assert f"--plot {both} would overwrite {both}" in refusal(capsys, data, "--target", "label", *kept)
    assert data.read_bytes() == before


def test_results_that_cannot_be_written_are_still_printed(data, tmp_path, capsys, monkeypatch):
    def full(path, columns):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("probewise.io.write_ranking", full)
    out = tmp_path / "t.csv"
    arguments = ["compare", data, "--target", "label", *QUICK, "-q", "--jobs", 1, "--out", out]
    assert run([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert "accuracy, naive_bayes" in printed.out
    assert printed.err == f"probewise: No space left on device: {out}\n"


def test_without_matplotlib_a_picture_is_refused_before_any_work(data, tmp_path, capsys, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(Study, "compare", lambda *given, **named: pytest.fail("work was begun"))
    error = refusal(capsys, data, "--target", "label", "--plot", tmp_path / "p.png")
    assert error == "probewise: plots need the report extra: pip install 'probewise[report]'\n"


def test_help_shows_the_command(capsys):
    assert run(["compare", "--help"]) == 0
    text = capsys.readouterr().out
    for part in (
        "--methods",
        "--classifiers",
        "--trials",
        "--sizes",
        "--ledger",
        "--plot",
        "Example: probewise compare",
    ):
        assert part in text


def test_sparse_tables_are_compared_sparse(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = (rng.random((80, 30)) < 0.1) * rng.integers(1, 5, (80, 30))
    X[:, 4] = np.where(rng.random(80) < 0.9, 3 * y, 0)
    path = tmp_path / "text.svmlight"
    dump_svmlight_file(sp.csr_matrix(X), y, str(path))
    code = run(["compare", str(path), "--methods", "fsdd,all", "--trials", "2", "--sizes", "1,3", "-q", "--jobs", "1"])
    assert code == 0
