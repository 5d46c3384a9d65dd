"""The command does what it says: real runs, real signals, and one line for whatever is wrong."""

import contextlib
import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from probewise import BIF, DAF, Tournament, __version__
from probewise.cli import run
from probewise.cli.options import seconds_in
from probewise.datasets import make_madelon
from probewise.io import read_table
from probewise.stopping import MaxProbes, MinCoverage

COMMAND = [sys.executable, "-m", "probewise"]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "80"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A small table of Madelon's recipe with text labels, as CSV."""
    made = make_madelon(90, 30, random_state=0)
    path = tmp_path_factory.mktemp("data") / "madelon.csv"
    labels = pl.Series(np.where(made.y == 1, "yes", "no"))
    pl.from_numpy(made.X, schema=made.feature_names, orient="row").with_columns(label=labels).write_csv(path)
    return path


@pytest.fixture
def write(tmp_path):
    def put(columns, name="data.csv"):
        pl.DataFrame(columns).write_csv(tmp_path / name)
        return tmp_path / name

    return put


def command(*arguments, **options):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        env=ENVIRONMENT,
        timeout=120,
        check=False,
        **options,
    )


def ranked(capsys, *arguments):
    """What ``probewise rank`` prints when all goes well."""
    assert run(["rank", *map(str, arguments)]) == 0
    return capsys.readouterr()


def refusal(capsys, *arguments):
    """The one line that says what is wrong."""
    assert run([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("probewise: ")
    return printed.err


def table_rows(text):
    """The cells of a printed ranking, row by row."""
    return [line.split() for line in text.splitlines() if re.match(r"\s+\d+ ", line)]


# ---- rank


def test_rank_prints_what_daf_finds(data):
    done = command("rank", data, "--target", "label", "--method", "daf", "--probes", 800, "--top", 7, "--seed", 3)
    assert done.returncode == 0
    table = read_table(data, target="label")
    daf = DAF(stop=MaxProbes(800), random_state=3).fit(table.X, table.y)
    best = np.argsort(daf.ranking_)[:7]
    rows = table_rows(done.stdout)
    assert [row[0] for row in rows] == list("1234567")
    assert [row[1] for row in rows] == [table.feature_names[feature] for feature in best]
    np.testing.assert_allclose([float(row[2]) for row in rows], daf.scores_[best] - daf.scores_.mean(), atol=5e-4)
    np.testing.assert_allclose([float(row[3]) for row in rows], daf.std_errors_[best], atol=5e-4)
    assert [int(row[4].replace(",", "")) for row in rows] == daf.tally_.counts[best].tolist()
    assert "the limit of 800 probes was reached" in done.stderr
    assert "probes" not in done.stdout


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".json", ".tsv"])
def test_out_holds_the_whole_ranking(data, tmp_path, capsys, ending):
    out = tmp_path / f"ranking{ending}"
    printed = ranked(capsys, data, "--target", "label", "--method", "daf", "--probes", 100, "--top", 3, "--out", out)
    readers = {".tsv": lambda p: pl.read_csv(p, separator="\t"), ".parquet": pl.read_parquet, ".json": pl.read_json}
    frame = readers.get(ending, pl.read_csv)(out)
    sure = ["rank_low", "rank_high", "in_top"]
    way = ["higher_in", "difference", "difference_low", "difference_high"]
    run = ["above_average", "std_error", "probed", "p_value", "stands_out"]
    assert frame.columns == ["feature", "rank", "score", *run, *sure, *way]
    assert (frame["rank_low"] <= frame["rank_high"]).all()
    assert frame["rank"].to_list() == list(range(1, 31))
    assert frame["score"].is_sorted(descending=True)
    assert frame["feature"][:3].to_list() == [row[1] for row in table_rows(printed.out)]
    assert len(table_rows(printed.out)) == 3
    assert f"all 30 features are in {out}" in printed.err


def test_every_parameter_reaches_daf(data, tmp_path, capsys, monkeypatch):
    seen = {}

    def fit(self, X, y):
        seen.update(self.get_params(deep=False), columns=X.columns)
        raise ValueError("seen")

    monkeypatch.setattr(DAF, "fit", fit)
    options = "--criterion knn --coefficient daf1 --max-probe-size 9 --inclusion 0.25 --check-every 100 --cv 5"
    run_options = f"--seed 11 --jobs 2 --task classification --ledger {tmp_path / 'l'} --probes 70 --coverage 7"
    arguments = f"{data} --target label --ignore f00 --ignore f03 {options} {run_options}".split()
    refusal(capsys, "rank", *arguments)
    assert seen["criterion"].task == "classification"
    assert seen["stop"] == MaxProbes(70) | MinCoverage(7)
    assert {"f00", "f03", "label"}.isdisjoint(seen["columns"])
    expected = {
        "coefficient": "daf1",
        "max_probe_size": 9,
        "inclusion": 0.25,
        "check_every": 100,
        "cv": 5,
        "random_state": 11,
        "n_jobs": 2,
        "ledger": tmp_path / "l",
        "verbose": 1,
    }
    assert {name: seen[name] for name in expected} == expected


@pytest.mark.parametrize(("method", "kind"), [([], Tournament), (["--method", "daf"], DAF)])
def test_defaults_are_those_of_the_selector_and_the_command_repeats(data, monkeypatch, method, kind):
    seen = {}
    monkeypatch.setattr(kind, "fit", lambda self, X, y: seen.update(self.get_params(deep=False)) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(["rank", str(data), "--target", "label", *method])
    usual = kind().get_params(deep=False)
    different = {name for name in usual if name != "criterion" and seen[name] != usual[name]}
    assert different == {"random_state", "n_jobs", "verbose"}
    assert (seen["random_state"], seen["n_jobs"]) == (0, -1)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (["--coverage", 30], "in and out of at least 30 probes"),
        (["--settled", 30], "settled: two halves"),
        (["--settled", 30, "--confidence", 0.9], "certified: with 90 % confidence at least 27 of the top 30"),
        (["--relative-change", 0.9], "below 0.9"),
        (["--time", 0.001], "the time limit of 0.001 s"),
        (["--time", 1000, "--probes", 60], "the limit of 60 probes"),
    ],
)
def test_each_limit_ends_the_run(data, capsys, limits, reason):
    printed = ranked(capsys, data, "--target", "label", "--check-every", 50, *limits)
    assert reason in printed.err
    assert "ranked by DAF, as only DAF knows --" in printed.err


def test_a_tournament_unless_said_otherwise(data, tmp_path, capsys):
    """With the tables in memory as in Python; a run that goes on keeps its method and its budget."""
    options, ledger = [data, "--target", "label", "--probes", 200, "--seed", 3], tmp_path / "run.ledger"
    printed = ranked(capsys, *options, "--ledger", ledger)
    assert "DAF" not in printed.err
    table = read_table(data, target="label")
    best = np.argsort(Tournament(n_probes=200, random_state=3).fit(table.X, table.y).ranking_)[:20]
    assert [row[1] for row in table_rows(printed.out)] == [table.feature_names[feature] for feature in best]
    resumed = ranked(capsys, data, "--target", "label", "--ledger", ledger, "--resume")
    assert resumed.out == printed.out
    more = refusal(capsys, "rank", *options[:3], "--probes", 300, "--ledger", ledger, "--resume")
    assert "holds a tournament of 200 probes, by which its rounds are planned: leave out --probes 300" in more
    assert "only --method daf knows it" in refusal(capsys, "rank", *options, "--method", "tournament", "--settled", 5)


def test_one_row_left_out(data, capsys):
    options = [data, "--target", "label", "--probes", 50, "-q", "--criterion", "knn"]
    alone = ranked(capsys, *options, "--cv", "loo").out
    assert alone == ranked(capsys, *options).out
    assert alone != ranked(capsys, *options, "--cv", "3").out


def test_quiet_prints_the_ranking_and_nothing_else(data, capsys):
    printed = ranked(capsys, data, "--target", "label", "--probes", 60, "--quiet")
    assert printed.err == ""
    assert len(table_rows(printed.out)) == 20


@pytest.mark.slow
def test_regression_by_the_look_of_the_target_and_by_request(write, capsys):
    random = np.random.default_rng(0)
    columns = {f"x{k}": random.standard_normal(80) for k in range(6)}
    price = 3 * columns["x2"] + 0.1 * random.standard_normal(80)
    path = write({**columns, "price": price})
    assert table_rows(ranked(capsys, path, "--target", "price", "--probes", 300).out)[0][1] == "x2"
    whole = write({**columns, "price": (1000 * price).round().astype(int)})
    assert "--task regression" in refusal(capsys, "rank", whole, "--target", "price")
    printed = ranked(capsys, whole, "--target", "price", "--probes", 300, "--task", "regression")
    assert table_rows(printed.out)[0][1] == "x2"


def test_whole_numbers_that_may_be_a_quantity(write, capsys):
    random = np.random.default_rng(0)
    path = write({"a": random.random(90), "b": random.random(90), "age": np.arange(90) % 30})
    fast = ["--target", "age", "--method", "daf", "--probes", 20, "--jobs", 1]
    said = "the target is read as 30 classes; --task regression if it is a quantity"
    assert said in ranked(capsys, path, *fast).err
    assert said not in ranked(capsys, path, *fast, "--task", "classification").err


def test_a_feature_never_probed_has_a_dash_for_a_score(data, tmp_path, capsys):
    out = tmp_path / "r.csv"
    options = ["--probes", 1, "--max-probe-size", 1, "--top", 30, "--out", out]
    printed = ranked(capsys, data, "--target", "label", *options)
    assert table_rows(printed.out)[-1][2:5] == ["-", "-", "0"]
    assert pl.read_csv(out)["score"].null_count() == 30


def test_a_ranking_that_cannot_be_written_is_still_printed(data, tmp_path, capsys, monkeypatch):
    def full(path, columns):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("probewise.io.write_ranking", full)
    assert run(["rank", str(data), "--target", "label", "--probes", "60", "-q", "--out", f"{tmp_path}/r.csv"]) == 2
    printed = capsys.readouterr()
    assert len(table_rows(printed.out)) == 20
    assert printed.err == f"probewise: No space left on device: {tmp_path}/r.csv\n"


# ---- names are data

ODD = ["[red]x", "[/]", "a b", "žluťoučký", ":smile:", "two\nlines", "\x1b[31mred", "漢字", "back\\"]


def odd_table(write, names):
    random = np.random.default_rng(1)
    columns = {name: random.standard_normal(60) for name in names}
    return write({**columns, "label": [0, 1] * 30})


@pytest.mark.parametrize("method", ["tournament", "fsdd"])
def test_the_target_in_other_words_is_pointed_out(write, capsys, method):
    random = np.random.default_rng(0)
    table = {"label": [0, 1] * 30, "a code": [3, 5] * 30, "x": random.standard_normal(60)}
    options = ["--target", "label", "--method", method, *(["--probes", 50] if method == "tournament" else [])]
    said = "beware: a code tells the target of every row on its own: if it is the target in other words, or was noted"
    path = write(table)
    assert f"{said} after it, leave it out (--ignore 'a code') and rank again" in ranked(capsys, path, *options).err
    assert "beware" not in ranked(capsys, path, *options, "-q").err
    assert "beware" not in ranked(capsys, path, *options, "--ignore", "a code").err


def test_odd_names_are_printed_as_they_are(write, capsys):
    printed = ranked(capsys, odd_table(write, ODD), "--target", "label", "--probes", 50, "-q")
    for name in ["[red]x", "[/]", "a b", "žluťoučký", ":smile:", "two\\nlines", "\\x1b[31mred", "漢字", "back\\"]:
        assert f" {name} " in printed.out
    assert "\x1b" not in printed.out


def test_odd_names_in_messages_stay_on_one_line(write, capsys):
    path = write({"[bold]\nx": ["u", "v"], "label": [0, 1]})
    assert "'[bold]\\nx' ('u' in data row 1)" in refusal(capsys, "rank", path, "--target", "label")


def test_long_names_lose_nothing_without_a_terminal(write, capsys):
    names = [letter * 300 for letter in "abc"]
    rows = table_rows(ranked(capsys, odd_table(write, names), "--target", "label", "--probes", 50, "-q").out)
    assert sorted(row[1] for row in rows) == names
    assert all(len(row) == 8 for row in rows)


def test_long_names_are_folded_in_a_narrow_terminal(write, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    path = odd_table(write, [letter * 100 for letter in "XYZ"])
    plain = re.sub(r"\x1b\[[\d;]*m", "", ranked(capsys, path, "--target", "label", "--probes", 50, "-q").out)
    assert "…" not in plain
    assert [plain.count(letter) for letter in "XYZ"] == [100, 100, 100]
    assert all(re.fullmatch(r"-?\d\.\d+", row[2]) and row[4].isdigit() for row in table_rows(plain))
    assert len(table_rows(plain)) == 3


# ---- ledger and resume


def test_a_resumed_run_ends_as_if_never_stopped(data, tmp_path, capsys):
    ledger, options = tmp_path / "run.ledger", [data, "--target", "label", "-q", "--method", "daf"]
    ranked(capsys, *options, "--seed", 5, "--probes", 230, "--ledger", ledger)
    resumed = ranked(capsys, *options, "--probes", 600, "--ledger", ledger, "--resume")
    whole = ranked(capsys, *options, "--seed", 5, "--probes", 600)
    assert resumed.out == whole.out


def test_an_existing_ledger_needs_resume(data, tmp_path, capsys):
    ledger = tmp_path / "run.ledger"
    ranked(capsys, data, "--target", "label", "--probes", 60, "--ledger", ledger)
    message = refusal(capsys, "rank", data, "--target", "label", "--ledger", ledger)
    assert "add --resume to go on with it, or choose another file" in message


def test_resume_needs_something_to_resume(data, tmp_path, capsys):
    assert "--resume needs --ledger" in refusal(capsys, "rank", data, "--target", "label", "--resume")
    new = [data, "--target", "label", "--probes", 60, "--resume", "--ledger"]
    (tmp_path / "empty").write_bytes(b"")
    begun = [ranked(capsys, *new, tmp_path / name) for name in ("no", "empty", "no")]
    assert f"there is no run in {tmp_path / 'no'} yet: it begins" in begun[0].err
    assert "it begins" not in begun[2].err
    assert begun[0].out == begun[1].out == begun[2].out == ranked(capsys, *new[:-2]).out


def test_names_of_methods_lengths_of_time_and_workers_as_people_write_them(data, capsys):
    options = [data, "--target", "label", "--probes", 60, "-q"]
    plain = ranked(capsys, *options, "--method", "daf", "--criterion", "knn").out
    written = ["--method", "DAF", "--criterion", "KNN", "--coefficient", "DAF0", "--time", "1h30m", "--n-jobs", 1]
    assert ranked(capsys, *options, *written).out == plain
    assert "'fast' is no length of time: write seconds, or as 90s, 5m, 1h30m" in refusal(
        capsys, "rank", *options, "--time", "fast"
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0.5", 0.5), ("5m", 300), ("5 min", 300), ("1h30m", 5400), ("2d", 172800), ("1e3", 1000)],
)
def test_lengths_of_time(text, seconds):
    assert seconds_in(text) == seconds


# ---- standard output


def test_a_ranking_or_a_report_alone_on_standard_output(data, tmp_path, capsys):
    options = [data, "--target", "label", "--probes", 60, "--top", 3]
    printed = ranked(capsys, *options, "--out", "-")
    assert pl.read_csv(io.StringIO(printed.out))["rank"].to_list() == list(range(1, 31))
    assert len(table_rows(printed.err)) == 3
    assert "all 30 features are in standard output" in printed.err
    summary = json.loads(ranked(capsys, *options, "--json", "-", "-q", "--ledger", tmp_path / "l").out)
    assert summary["asked"]["method"] == "Tournament"
    assert run(["report", str(tmp_path / "l"), "--out", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert run(["diff", str(tmp_path / "l"), str(tmp_path / "l"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 30
    both = refusal(capsys, "rank", *options, "--out", "-", "--json", "-")
    assert "--out -, --json -: one of them can be on standard output" in both


def test_a_foreign_ledger_is_refused(data, tmp_path, capsys):
    ledger, options = tmp_path / "run.ledger", ["rank", data, "--target", "label", "--resume", "--ledger"]
    ranked(capsys, data, "--target", "label", "--probes", 60, "--ledger", ledger)
    assert "holds another run: its seed is 0, not 1" in refusal(capsys, *options, ledger, "--seed", 1)
    assert "its shape is" in refusal(capsys, *options, ledger, "--ignore", "f01")
    (tmp_path / "text").write_text("not a ledger at all " * 100)
    assert "is not a Probewise ledger" in refusal(capsys, *options, tmp_path / "text")


# ---- Ctrl-C


@contextlib.contextmanager
def ctrl_c_heard():
    """Children hear SIGINT even where this process was started with it ignored, as in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for_blocks(ledger, process, blocks=4, seconds=90):
    """Until the run has written some blocks: its write-ahead log has grown that many times."""
    log, sizes = ledger.with_name(ledger.name + "-wal"), set()
    end = time.monotonic() + seconds
    while len(sizes) <= blocks:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no block was written"
        if log.exists():
            sizes.add(log.stat().st_size)
        time.sleep(0.01)


@pytest.mark.slow
def test_ctrl_c_gives_the_ranking_so_far_and_the_run_can_go_on(data, tmp_path, capsys):
    data = [data, "--target", "label", "--method", "daf"]
    ledger, options = tmp_path / "run.ledger", [*data, "--ledger", tmp_path / "run.ledger"]
    arguments = [*COMMAND, "rank", *map(str, options), "--probes", "100000000"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "env": ENVIRONMENT}
    with ctrl_c_heard(), subprocess.Popen(arguments, **pipes) as process:
        wait_for_blocks(ledger, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert len(table_rows(out)) == 20
    assert "this is the ranking so far" in err
    assert "Traceback" not in err
    assert "Warning" not in err
    n_probes = int(re.search(r"interrupted after ([\d,]+) probes", err)[1].replace(",", ""))
    resumed = ranked(capsys, *options, "--resume", "--probes", n_probes + 75, "-q")
    whole = ranked(capsys, *data, "--probes", n_probes + 75, "-q")
    assert resumed.out == whole.out


def test_ctrl_c_before_the_first_probe_says_so(data, capsys, monkeypatch):
    def fit(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(Tournament, "fit", fit)
    assert run(["rank", str(data), "--target", "label"]) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "interrupted before there was a ranking" in printed.err


# ---- bad input


def test_a_real_command_refuses_in_one_line_with_code_2(tmp_path):
    done = command("rank", tmp_path / "no.csv", "--target", "label")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"probewise: there is no file {tmp_path / 'no.csv'}\n"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"a": [1, 2], "other": [0, 1]}, "no target column 'label'"),
        ({"a": ["u", "v"], "label": [0, 1]}, "1 of 1 columns is not numeric: 'a' ('u' in data row 1)"),
        ({"a": [1.5, 2.5], "label": ["x", None]}, "the target 'label' is missing"),
        ({"a": range(9), "label": ["x"] * 9}, "only one class"),
        ({"a": range(9), "label": ["x"] * 7 + ["y"] * 2}, "fewer than --cv 3 folds"),
    ],
)
def test_tables_that_cannot_be_ranked(write, capsys, columns, reason):
    method = ["--method", "daf"] if "folds" in reason else []
    assert reason in refusal(capsys, "rank", write(columns), "--target", "label", *method)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--criterion", "magic"], "--criterion 'magic' is not known: choose one of auto, knn"),
        (["--coefficient", "daf9"], "--coefficient 'daf9' is not known: choose one of daf0"),
        (["--inclusion", "1.5"], "--inclusion 1.5 must be a probability"),
        (["--max-probe-size", "0"], "'--max-probe-size'"),
        (["--probes", "0"], "'--probes'"),
        (["--probes", "many"], "'--probes'"),
        (["--time", "0"], "'--time': 0 is not above 0"),
        (["--time", "nan"], "'--time'"),
        (["--relative-change", "-1"], "'--relative-change'"),
        (["--coverage", "0"], "'--coverage'"),
        (["--settled", "-3"], "'--settled'"),
        (["--confidence", "0.9"], "--confidence 0.9 needs --settled K"),
        (["--settled", "3", "--confidence", "95"], "--confidence 95 must be above 0 and below 1"),
        (["--check-every", "0"], "'--check-every'"),
        (["--cv", "1"], "--cv '1': write a number of folds, at least 2, or loo"),
        (["--cv", "60"], "fewer than --cv 60 folds"),
        (["--top", "0"], "'--top'"),
        (["--seed", "-1"], "'--seed'"),
        (["--seed", str(2**70)], "Seed must be between 0 and"),
        (["--jobs", "0"], "n_jobs"),
        (["--task", "guess"], "--task 'guess' is not known: choose one of auto, classification, regression"),
        (["--task", "regression"], "--task regression needs numbers, and the target 'label' holds text"),
        (["--ignore", "f99"], "no ignored column 'f99'"),
        (["--out", "ranking.docx"], "name it .csv"),
        (["--out", "no-such-folder/r.csv"], "does not exist"),
        (["--ledger", "no-such-folder/l"], "does not exist"),
        (["--wrong"], "--wrong"),
    ],
)
def test_bad_values_are_named(data, capsys, options, reason):
    assert reason in refusal(capsys, "rank", data, "--target", "label", "--probes", "60", *options)


def test_out_never_overwrites_what_was_read(data, capsys):
    before = data.read_bytes()
    assert "would overwrite" in refusal(capsys, "rank", data, "--target", "label", "--out", data)
    assert data.read_bytes() == before


def test_missing_arguments(data, capsys):
    assert "DATA" in refusal(capsys, "rank")
    assert "(target=...)" in refusal(capsys, "rank", data)
    assert "'wrong'" in refusal(capsys, "wrong")


def test_a_missing_extra_is_one_sentence(data, capsys, monkeypatch):
    sentence = "needs the cli extra: pip install 'probewise[cli]'\n"
    monkeypatch.setitem(sys.modules, "polars", None)
    assert refusal(capsys, "rank", data, "--target", "label").endswith(sentence)
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "probewise.cli.app")
    with pytest.raises(SystemExit) as ended:
        importlib.import_module("probewise.cli.app")
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"probewise: the command line {sentence}")


# ---- help, version, demo


def test_version(capsys):
    assert run(["--version"]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (f"probewise {__version__}\n", "")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_shows_the_commands_and_an_example(capsys, arguments):
    assert run(arguments) == 0
    text = capsys.readouterr().out
    for part in ("rank", "demo", "--version", "probewise rank data.csv --target label"):
        assert part in text


def test_help_of_rank_names_every_parameter_of_daf_a_person_sets(capsys):
    assert run(["rank", "--help"]) == 0
    short = capsys.readouterr().out
    first = [line.split()[1] for line in short.splitlines() if line.startswith("│ --")]
    ten = ["target", "id", "missing", "method", "time", "top", "out", "report", "ledger", "resume"]
    assert first == [f"--{name}" for name in [*ten, "help-all", "help"]]
    assert run(["rank", "--help-all"]) == 0
    text = capsys.readouterr().out
    assert run(["rank", "--help"]) == 0
    assert capsys.readouterr().out == short
    assert {"The table", "What comes out", "How to judge", "The run"} < set(re.findall(r"╭─ ([\w ]+) ─", text))
    assert "--narrow" not in text  # on its way out
    not_for_people = {"n_features_to_select", "min_features_to_select", "block_size", "device", "narrow"}
    spelled = {"stop": "probes", "n_jobs": "jobs", "random_state": "seed", "verbose": "quiet"}
    spelled |= {"keep": "keep-features", "drop": "drop-features"}
    spelled |= {"categorical_features": "categorical", "how_many": "auto", "rows": "no-rows"}
    for name in DAF().get_params(deep=False).keys() - not_for_people:
        assert f"--{spelled.get(name, name).replace('_', '-')}" in text
    assert "Example: probewise rank" in text


def test_old_names_of_options_work_and_say_the_new_ones(data, tmp_path, capsys):
    (tmp_path / "g.csv").write_text("feature,group\nf03,pair\nf04,pair\n")
    start, end = [data, "--target", "label", "--probes", 60], ["--select", tmp_path / "s.csv"]
    old = "--groups f00 --cv 3 --group two=f01,f02 --keep-feature f05 --drop-feature=f06 --keep 2 --groups-file"
    new = "--row-groups f00 --cv 3 --feature-groups two=f01,f02 --keep-features f05 --drop-features=f06 --n-features 2"
    before = ranked(capsys, *start, *end, *old.split(), tmp_path / "g.csv")
    after = ranked(capsys, *start, *end, *new.split(), "--feature-groups", tmp_path / "g.csv")
    assert before.out == after.out
    told = [line.removeprefix("probewise: ") for line in before.err.splitlines() if " is called " in line]
    assert told[:2] == ["--groups is called --row-groups now", "--group is called --feature-groups now"]
    assert len(told) == 6
    assert "is called" not in after.err
    assert "is called" not in ranked(capsys, *start, *end, "--keep", 2, "-q").err


@pytest.mark.slow
def test_demo_shows_what_tournament_finds_and_bif_misses(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["demo", "--time", "2", "--seed", "1"]) == 0
    shown = capsys.readouterr().out
    rows = table_rows(shown)
    assert len(rows) == 20
    truth = make_madelon(random_state=1)
    informative = {truth.feature_names[feature] for feature in truth.informative}
    assert {row[1] for row in rows if row[-1] == "✓"} == informative & {row[1] for row in rows}
    bif = BIF().fit(truth.X, truth.y)
    places = dict(zip(truth.feature_names, bif.ranking_.tolist(), strict=True))
    assert [int(row[5]) for row in rows] == [places[row[1]] for row in rows]
    found, by_bif = map(int, re.search(r"Tournament puts (\d+) of the 20 .*, BIF (\d+)\.", shown).groups())
    assert found == len(informative & {row[1] for row in rows}) > by_bif
    assert by_bif == sum(places[name] <= 20 for name in informative)
    missed = re.search(r"missed by BIF: (.*)\.", shown)[1].split(", ")
    assert missed == sorted(name for name in informative if name in {r[1] for r in rows} and places[name] > 20)
    assert re.search(r"[\d,]+ probes in [\d.]+ s, [\d,]+ a second", shown)
    assert "Stop reason: the time limit of 2 s was reached." in shown
