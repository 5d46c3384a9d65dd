"""``probewise rank`` and ``probewise demo`` end to end: output, limits, ledgers, Ctrl-C and odd names."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import probewise
from probewise import BIF, DAF, Tournament
from probewise.cli import app, console, run
from probewise.cli.console import print_ranking
from probewise.datasets import make_madelon
from probewise.io import read_table
from probewise.stopping import MaxProbes, MaxTime

COMMAND = [sys.executable, "-m", "probewise"]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "80"}


@pytest.fixture
def write(tmp_path):
    def write(columns, name="data.csv"):
        pl.DataFrame(columns).write_csv(tmp_path / name)
        return tmp_path / name

    return write


@pytest.fixture
def rank(succeed):
    return lambda *arguments: succeed("rank", *arguments)


def table_rows(text):
    """The cells of a printed ranking, row by row."""
    return [line.split() for line in text.splitlines() if re.match(r"\s+\d+ ", line)]


# ---- output


def test_rank_prints_the_ranking_of_daf(data, rank):
    printed = rank(data, "--target", "label", "--method", "daf", "--n-probes", 800, "--top", 7, "--random-state", 3)
    table = read_table(data, target="label")
    daf = DAF(stop=MaxProbes(800), random_state=3).fit(table.X, table.y)
    best = np.argsort(daf.ranking_)[:7]
    rows = table_rows(printed.out)
    assert [row[0] for row in rows] == list("1234567")
    assert [row[1] for row in rows] == [table.feature_names[feature] for feature in best]
    np.testing.assert_allclose([float(row[2]) for row in rows], daf.scores_[best] - daf.scores_.mean(), atol=5e-4)
    np.testing.assert_allclose([float(row[3]) for row in rows], daf.std_errors_[best], atol=5e-4)
    assert [int(row[4].replace(",", "")) for row in rows] == daf.run_.feature_tally.counts[best].tolist()
    assert "the limit of 800 probes was reached" in printed.err
    assert "probes" not in printed.out


def test_out_contains_the_whole_ranking(data, tmp_path, rank):
    out = tmp_path / "ranking.csv"
    printed = rank(data, "--target", "label", "--method", "daf", "--n-probes", 100, "--top", 3, "--out", out)
    frame = pl.read_csv(out)
    of_run = [
        "above_average",
        "std_error",
        "probed",
        "related",
        "q_related",
        "needed",
        "q_needed",
        "rank_low",
        "rank_high",
        "in_top",
    ]
    effect = ["higher_in", "difference", "difference_low", "difference_high"]
    assert frame.columns == ["feature", "rank", "score", *of_run, *effect]
    assert (frame["rank_low"] <= frame["rank_high"]).all()
    assert frame["rank"].to_list() == list(range(1, 31))
    assert frame["score"].is_sorted(descending=True)
    assert frame["feature"][:3].to_list() == [row[1] for row in table_rows(printed.out)]
    assert len(table_rows(printed.out)) == 3
    assert f"all 30 features are in {out}" in printed.err


def test_every_parameter_reaches_daf(data, tmp_path, refuse, monkeypatch):
    seen = {}

    def fit(self, X, y):
        seen.update(self.get_params(deep=False), columns=X.columns)
        raise ValueError("seen")

    monkeypatch.setattr(DAF, "fit", fit)
    options = "--method DAF --criterion KNN --cv 5 --task classification --scoring roc_auc --keep f04"
    limits = "--n-probes 70 --time-limit 7 --n-features-to-select 6 --fdr 0.2"
    of_run = f"--random-state 11 --n-jobs 2 --device cpu --ledger {tmp_path / 'l'}"
    refuse("rank", data, *f"--target label --ignore f00 --ignore f03 {options} {limits} {of_run}".split())
    assert seen["criterion"].task == "classification"
    assert seen["stop"] == MaxProbes(70) | MaxTime(7)
    assert {"f00", "f03", "label"}.isdisjoint(seen["columns"])
    expected = {
        "cv": 5,
        "scoring": "roc_auc",
        "scale": "auto",
        "keep": [2],
        "n_features_to_select": 6,
        "fdr": 0.2,
        "random_state": 11,
        "n_jobs": 2,
        "ledger": tmp_path / "l",
        "verbose": 1,
    }
    assert {name: seen[name] for name in expected} == expected


@pytest.mark.parametrize(("method", "kind"), [([], Tournament), (["--method", "daf"], DAF)])
def test_defaults_are_those_of_the_selector_except_seed_workers_and_scale(data, monkeypatch, method, kind):
    seen = {}
    monkeypatch.setattr(kind, "fit", lambda self, X, y: seen.update(self.get_params(deep=False)) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(["rank", str(data), "--target", "label", *method])
    usual = kind().get_params(deep=False)
    changed = {name for name in usual if seen[name] != usual[name]}
    assert changed - {"scale"} == {"random_state", "n_jobs", "verbose"}
    assert (seen["random_state"], seen["n_jobs"], seen["scale"]) == (0, -1, "auto")


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ([], "settled: two halves"),
        (["--time-limit", 0.001], "the time limit of 0.001 s"),
        (["--time-limit", "1h30m", "--n-probes", 60], "the limit of 60 probes"),
    ],
)
def test_each_limit_ends_the_run(data, rank, limits, reason):
    assert reason in rank(data, "--target", "label", "--method", "daf", *limits).err


def test_tournament_is_the_default_and_a_resumed_run_keeps_its_method_and_budget(data, tmp_path, rank, refuse):
    options, ledger = [data, "--target", "label", "--n-probes", 200, "--random-state", 3], tmp_path / "run.ledger"
    printed = rank(*options, "--ledger", ledger)
    table = read_table(data, target="label")
    best = np.argsort(Tournament(n_probes=200, random_state=3).fit(table.X, table.y).ranking_)[:20]
    assert [row[1] for row in table_rows(printed.out)] == [table.feature_names[feature] for feature in best]
    resumed = rank(data, "--target", "label", "--ledger", ledger)
    assert resumed.out == printed.out
    more = refuse("rank", *options[:3], "--n-probes", 300, "--ledger", ledger)
    assert "holds a tournament planned for 200 probes: leave out n_probes=300" in more


def test_leave_one_out_is_the_default(data, rank):
    options = [data, "--target", "label", "--n-probes", 50, "-q", "--criterion", "knn"]
    loo = rank(*options, "--cv", "loo").out
    assert loo == rank(*options).out
    assert loo != rank(*options, "--cv", "3").out


def test_quiet_prints_the_ranking_and_nothing_else(data, rank):
    printed = rank(data, "--target", "label", "--n-probes", 60, "--quiet")
    assert printed.err == ""
    assert len(table_rows(printed.out)) == 20


@pytest.mark.slow
def test_regression_for_fractions_and_by_request(write, rank, refuse):
    random = np.random.default_rng(0)
    columns = {f"x{k}": random.standard_normal(80) for k in range(6)}
    price = 3 * columns["x2"] + 0.1 * random.standard_normal(80)
    path = write({**columns, "price": price})
    assert table_rows(rank(path, "--target", "price", "--n-probes", 300).out)[0][1] == "x2"
    whole = write({**columns, "price": (1000 * price).round().astype(int)})
    for task in ([], ["--task", "regression"]):
        printed = rank(whole, "--target", "price", "--n-probes", 300, *task)
        assert table_rows(printed.out)[0][1] == "x2"
    assert "task='regression'" in refuse("rank", whole, "--target", "price", "--task", "classification")


def test_many_whole_numbers_as_classes_are_pointed_out(write, rank):
    random = np.random.default_rng(0)
    path = write({"a": random.random(90), "b": random.random(90), "age": 20 + np.arange(90) % 30})
    fast = ["--target", "age", "--method", "daf", "--n-probes", 20, "--n-jobs", 1]
    note = "y has 30 distinct whole numbers and is read as a quantity; if these are classes, give them as text"
    assert note in rank(path, *fast).err
    assert note not in rank(path, *fast, "--task", "classification").err


def test_a_feature_that_was_never_probed_has_a_dash_as_its_score(data, tmp_path, rank):
    out = tmp_path / "r.csv"
    options = ["--method", "daf", "--n-probes", 1, "--top", 30, "--out", out]
    printed = rank(data, "--target", "label", *options)
    assert {tuple(row[2:5]) for row in table_rows(printed.out)} <= {("-", "-", "0"), ("-", "-", "1")}
    assert pl.read_csv(out)["score"].null_count() == 30


@pytest.mark.parametrize(
    ("command", "printed_line"),
    [
        ("rank --n-probes 60", "feature"),
        ("compare --methods bif --classifiers naive_bayes --trials 2 --sizes 1", "accuracy, naive_bayes"),
    ],
)
def test_a_result_that_cannot_be_written_is_still_printed(data, tmp_path, succeed, monkeypatch, command, printed_line):
    def full(path, columns):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("probewise.cli.console.write_ranking", full)
    command, *options = command.split()
    options += ["--target", "label", "-q", "--n-jobs", 1, "--out", tmp_path / "r.csv"]
    printed = succeed(command, data, *options, code=2)
    assert printed_line in printed.out
    assert command == "compare" or len(table_rows(printed.out)) == 20
    assert printed.err == f"probewise: No space left on device: {tmp_path}/r.csv\n"


def test_a_ranking_or_a_report_on_standard_output(data, tmp_path, rank, succeed, refuse):
    options = [data, "--target", "label", "--n-probes", 60, "--top", 3]
    printed = rank(*options, "--out", "-")
    assert pl.read_csv(io.StringIO(printed.out))["rank"].to_list() == list(range(1, 31))
    assert len(table_rows(printed.err)) == 3
    assert "all 30 features are in standard output" in printed.err
    summary = json.loads(rank(*options, "--report", "-", "-q", "--ledger", tmp_path / "l").out)
    assert summary["repeat"]["command"].startswith("probewise rank")
    assert json.loads(succeed("report", tmp_path / "l", "--out", "-").out).keys() == summary.keys()
    assert json.loads(succeed("diff", tmp_path / "l", tmp_path / "l", "--out", "-").out)["features"] == 30
    both = refuse("rank", *options, "--out", "-", "--report", "-")
    assert "--out - and --report -: only one of them can go to standard output" in both


@pytest.mark.parametrize("method", ["tournament", "fsdd"])
def test_a_feature_that_determines_the_target_is_pointed_out(write, rank, method):
    random = np.random.default_rng(0)
    table = {"label": [0, 1] * 30, "a code": [3, 5] * 30, "x": random.standard_normal(60)}
    options = ["--target", "label", "--method", method, *(["--n-probes", 50] if method == "tournament" else [])]
    path = write(table)
    assert re.search(
        r"possible target leakage: a code .*\(--ignore 'a code'\), then rank again", rank(path, *options).err
    )
    assert "leakage" not in rank(path, *options, "-q").err
    assert "leakage" not in rank(path, *options, "--ignore", "a code").err


def test_rank_with_a_report_visits_at_most_55_modules(data, tmp_path):
    arguments = ["rank", str(data), "--target", "label", "--n-probes", "400", "--n-jobs", "1"]
    arguments += ["--report", str(tmp_path / "r.html")]
    assert run(arguments) == 0  # modules are imported, kernels are compiled
    source, files = Path(probewise.__file__).parent, set()

    def note(frame, event, argument):
        files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        assert run(arguments) == 0
    finally:
        sys.setprofile(before)
    modules = {path.relative_to(source).as_posix() for path in map(Path, files) if path.is_relative_to(source)}
    assert len([name for name in modules if name.endswith(".py") and not name.startswith("kernels/")]) <= 55


# ---- odd names

ODD = ["[red]x", "[/]", "a b", "žluťoučký", ":smile:", "two\nlines", "\x1b[31mred", "漢字", "back\\"]


def odd_table(write, names):
    random = np.random.default_rng(1)
    columns = {name: random.standard_normal(60) for name in names}
    return write({**columns, "label": [0, 1] * 30})


def test_odd_names_are_printed_literally(write, rank):
    printed = rank(odd_table(write, ODD), "--target", "label", "--n-probes", 50, "-q")
    for name in ["[red]x", "[/]", "a b", "žluťoučký", ":smile:", "two\\nlines", "\\x1b[31mred", "漢字", "back\\"]:
        assert f" {name} " in printed.out
    assert "\x1b" not in printed.out


def test_odd_names_in_messages_stay_on_one_line(write, refuse):
    path = write({"[bold]\nx": ["u", "v"], "label": [0, 1]})
    assert "'[bold]\\nx' ('u' in data row 1)" in refuse("rank", path, "--target", "label")


def test_long_names_are_complete_without_a_terminal(write, rank):
    names = [letter * 300 for letter in "abc"]
    rows = table_rows(rank(odd_table(write, names), "--target", "label", "--n-probes", 50, "-q").out)
    assert sorted(row[1] for row in rows) == names
    assert all(len(row) == 9 for row in rows)


def test_long_names_are_folded_in_a_narrow_terminal(write, rank, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    path = odd_table(write, [letter * 100 for letter in "XYZ"])
    plain = re.sub(r"\x1b\[[\d;]*m", "", rank(path, "--target", "label", "--n-probes", 50, "-q").out)
    assert "…" not in plain
    assert [plain.count(letter) for letter in "XYZ"] == [100, 100, 100]
    assert all(re.fullmatch(r"-?\d\.\d+", row[2]) and row[4].isdigit() for row in table_rows(plain))
    assert len(table_rows(plain)) == 3


# ---- ledger and resume


def test_a_resumed_run_ends_as_if_never_stopped(data, tmp_path, rank):
    ledger, options = tmp_path / "run.ledger", [data, "--target", "label", "-q", "--method", "daf"]
    rank(*options, "--random-state", 5, "--n-probes", 230, "--ledger", ledger)
    resumed = rank(*options, "--n-probes", 600, "--ledger", ledger)
    whole = rank(*options, "--random-state", 5, "--n-probes", 600)
    assert resumed.out == whole.out


def test_a_ledger_is_started_and_then_continued(data, tmp_path, rank):
    new = [data, "--target", "label", "--n-probes", 60, "--ledger"]
    (tmp_path / "empty").write_bytes(b"")
    started = [rank(*new, tmp_path / name) for name in ("no", "empty", "no")]
    assert started[0].out == started[1].out == started[2].out == rank(*new[:-1]).out


def test_the_ledger_of_another_run_is_refused(data, tmp_path, rank, refuse):
    ledger, options = tmp_path / "run.ledger", ["rank", data, "--target", "label", "--ledger"]
    rank(data, "--target", "label", "--n-probes", 60, "--ledger", ledger)
    assert "holds another run: its seed is 0, not 1" in refuse(*options, ledger, "--random-state", 1)
    assert "its shape is" in refuse(*options, ledger, "--ignore", "f01")


# ---- Ctrl-C


def wait_for_blocks(ledger, process, blocks=4, seconds=90):
    """Wait until the run has written some blocks: its write-ahead log has grown that many times."""
    log, sizes = ledger.with_name(ledger.name + "-wal"), set()
    end = time.monotonic() + seconds
    while len(sizes) <= blocks:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no block was written"
        if log.exists():
            sizes.add(log.stat().st_size)
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.usefixtures("sigint")
def test_ctrl_c_gives_the_ranking_so_far_and_the_run_can_be_resumed(data, tmp_path, rank):
    data = [data, "--target", "label", "--method", "daf"]
    ledger, options = tmp_path / "run.ledger", [*data, "--ledger", tmp_path / "run.ledger"]
    arguments = [*COMMAND, "rank", *map(str, options), "--n-probes", "100000000"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "env": ENVIRONMENT}
    with subprocess.Popen(arguments, **pipes) as process:
        wait_for_blocks(ledger, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert len(table_rows(out)) == 20
    assert "this is the ranking so far" in err
    assert "Traceback" not in err
    assert "Warning" not in err
    n_probes = int(re.search(r"interrupted after ([\d,]+) probes", err)[1].replace(",", ""))
    resumed = rank(*options, "--n-probes", n_probes + 75, "-q")
    whole = rank(*data, "--n-probes", n_probes + 75, "-q")
    assert resumed.out == whole.out


@pytest.mark.parametrize(("command", "kind"), [("rank", Tournament), ("compare", DAF)])
def test_ctrl_c_before_the_first_probe_is_reported(data, succeed, monkeypatch, command, kind):
    def fit(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, "fit", fit)
    printed = succeed(command, data, "--target", "label", "--n-jobs", 1, code=130)
    assert printed.out == ""
    assert "interrupted before there was a result" in printed.err


@pytest.mark.parametrize(("n_written", "where"), [(0, "summarize"), (1, "save")])
def test_ctrl_c_while_reports_are_written_leaves_the_ranking(data, tmp_path, succeed, monkeypatch, n_written, where):
    calls, original = [], getattr(console, where)

    def interrupting(*arguments, **named):
        calls.append(arguments)
        if len(calls) > n_written:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    monkeypatch.setattr(console, where, interrupting)
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    options = ["--target", "label", "--n-probes", 60, "--out", tmp_path / "ranking.csv"]
    printed = succeed("rank", data, *options, "--report", paths[0], "--report", paths[1], code=3)
    assert len(table_rows(printed.out)) == 20
    missing = ", ".join(map(str, paths[n_written:]))
    assert printed.err.splitlines()[-1] == f"probewise: interrupted before there was a report in {missing}"
    assert "before there was a result" not in printed.err
    assert [path.exists() for path in paths] == [n_written > 0, False]
    assert (tmp_path / "ranking.csv").exists()


@pytest.mark.usefixtures("sigint")
def test_ctrl_c_while_the_ranking_is_printed_waits_until_it_is_complete(data, tmp_path, succeed, monkeypatch):
    def interrupting(columns, top):
        signal.raise_signal(signal.SIGINT)
        print_ranking(columns, top)

    monkeypatch.setattr(console, "print_ranking", interrupting)
    options = ["--target", "label", "--n-probes", 60, "--report", tmp_path / "report.json"]
    printed = succeed("rank", data, *options, code=3)
    assert len(table_rows(printed.out)) == 20
    assert "interrupted before there was a report in" in printed.err.splitlines()[-1]


def test_ctrl_c_while_a_stored_run_is_reported(data, tmp_path, succeed, rank, monkeypatch):
    def interrupting(*arguments, **named):
        raise KeyboardInterrupt

    rank(data, "--target", "label", "--n-probes", 60, "--ledger", tmp_path / "run.ledger")
    monkeypatch.setattr(console, "summarize", interrupting)
    printed = succeed("report", tmp_path / "run.ledger", "--out", tmp_path / "a.json", code=130)
    assert printed.err == "probewise: interrupted before there was a result\n"


@pytest.mark.usefixtures("sigint")
def test_ctrl_c_after_the_result_changes_nothing(monkeypatch):
    """Workers are stopped while Python exits, which printed a traceback."""
    monkeypatch.setattr(app, "run", lambda arguments: 3)
    with pytest.raises(SystemExit, match="3"):
        app.main()
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_while_modules_are_imported_prints_one_line(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    ran = subprocess.run(
        [*COMMAND, "rank"],
        env={**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 130
    assert ran.stderr == "probewise: interrupted before there was a result\n"


# ---- demo


@pytest.mark.slow
def test_demo_shows_features_that_tournament_finds_and_bif_misses(succeed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = succeed("demo", "--random-state", "1").out
    rows = table_rows(shown)
    assert len(rows) == 20
    truth = make_madelon(random_state=1)
    informative = {truth.feature_names[feature] for feature in truth.informative}
    assert {row[1] for row in rows if row[-1] == "✓"} == informative & {row[1] for row in rows}
    bif = BIF().fit(truth.X, truth.y)
    ranks = dict(zip(truth.feature_names, bif.ranking_.tolist(), strict=True))
    assert [int(row[5]) for row in rows] == [ranks[row[1]] for row in rows]
    by_tournament, by_bif = map(int, re.search(r"Tournament puts (\d+) of the 20 .*, BIF (\d+)\.", shown).groups())
    assert by_tournament == len(informative & {row[1] for row in rows}) > by_bif
    assert by_bif == sum(ranks[name] <= 20 for name in informative)
    missed = re.search(r"missed by BIF: (.*)\.", shown)[1].split(", ")
    assert missed == sorted(name for name in informative if name in {r[1] for r in rows} and ranks[name] > 20)
    assert re.search(r"[\d,]+ probes in [\d.]+ s, [\d,]+ per second", shown)
    assert "Stop reason: the limit of 2,500 probes was reached." in shown
