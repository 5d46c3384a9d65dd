"""Progress: data is never read as markup, nothing is shown by default, and output goes where it can be seen."""

import builtins
import io
import re
import sys
import time
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from probewise import DAF, FSDD, SFFS, Tournament
from probewise.criteria import KNN, Average, Linear
from probewise.datasets import make_madelon
from probewise.engine.probes import Subsets
from probewise.engine.schedule import SECONDS_PER_FEATURE, SECONDS_PER_PROBE, Schedule, TournamentPlan
from probewise.engine.tally import Tally
from probewise.progress import (
    ProgressState,
    RateLimited,
    Throttled,
    TopFeatures,
    live_line,
    live_progress,
    one_line,
    panel,
)
from probewise.stopping import Look, MaxProbes, MaxTime, Settled, State
from probewise.study import Study

NAMES = ["[/]", "[red]gene", "a\nb", "x" * 100]


@pytest.fixture
def state():
    tally = Tally.of(Subsets.of([[0, 1], [1, 2], [2, 3], [3]]), np.array([0.4, 0.3, 0.2, 0.1]), 4)
    look = Look(4, 1.0, value_change=0.01, relative_change=0.5, overlap={2: 0.5})
    return State(4, 2.0, tally, (look,))


def test_names_are_text(state):
    console = Console(file=io.StringIO(), width=200)
    console.print(panel(ProgressState(state, TopFeatures(NAMES)(state), "DAF", 0.5), 1000.0))
    shown = console.file.getvalue()
    for text in (
        "[/]",
        "[red]gene",
        "a\\nb",
        "1,000 probes/s",
        "mean change of the scores: 50.0% of the first look",
        "50% of the top 2",
    ):
        assert text in shown
    assert "x" * 41 not in shown
    assert one_line(ProgressState(state, TopFeatures(NAMES)(state), "DAF", None), 1000.0).count("\n") == 0
    assert one_line(ProgressState(state, TopFeatures(None)(state), "DAF", None), 1000.0).endswith("top: 0, 1, 2, 3")


def test_a_tournament_shows_its_current_ranking():
    data = make_madelon(150, 120, random_state=0)
    states = []
    tournament = Tournament(n_probes=1200, random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TopFeatures, "__call__", lambda self, state, is_last: states.append(state) or [])
        tournament.set_params(verbose=1).fit(data.X, data.y)
    assert states[-1].n_probes == 1200
    best = np.argsort(tournament.ranking_)[:8]
    assert TopFeatures(None)(states[-1], is_last=True) == [str(feature) for feature in best]
    daf0 = np.argsort(-tournament.run_.tally.daf0())[:8]
    assert daf0.tolist() != best.tolist()  # the sums of all rounds rank features that were dropped


def test_the_current_ranking_is_not_computed_all_the_time(state):
    calls = []
    slow = replace(state, current_scores=lambda: calls.append(time.sleep(0.01)) or np.arange(4.0))
    top = TopFeatures(["a", "b", "c", "d"])
    assert [top(slow)[0] for _ in range(5)] == ["d"] * 5
    assert len(calls) == 1
    top(slow, is_last=True)
    assert len(calls) == 2


def test_lines_are_rare_and_speed_is_of_this_session(state):
    shown = []
    throttled = Throttled(0.0, lambda state, speed: shown.append(speed))
    throttled(state)
    throttled(State(104, 3.0, state.tally))
    assert shown[1] == 100.0
    rare = Throttled(1e9, lambda state, speed: shown.append(speed))
    rare(state)
    assert len(shown) == 2


def test_the_time_left_counts_what_is_ahead(state, monkeypatch):
    """A second once, a probe of round one takes two thousandths, of round two one; a regression between takes half."""
    seen = []
    monkeypatch.setattr("probewise.progress.REFRESH_SECONDS", 0.0)
    monkeypatch.setattr(
        "probewise.progress.one_line", lambda progress_state, _: seen.append(progress_state.seconds_left)
    )
    options = {"effort": lambda n: (min(n, 100) * 2 + max(n - 100, 0), 0.5 * (n > 100))}
    with live_progress(bool, stop=MaxProbes(300), **options) as progress:
        for n, seconds in ((10, 1.02), (50, 1.1), (100, 1.2), (150, 1.75), (300, 1.9)):
            progress(State(n, seconds, state.tally))
    with live_progress(bool, stop=MaxProbes(300) | MaxTime(4), **options) as progress:
        progress(State(100, 2.0, state.tally))
    np.testing.assert_allclose(seen[1:], [0.8, 0.7, 0.15, 0, 2.0], atol=1e-9)


def test_a_first_block_says_little_of_the_time_left(state, monkeypatch):
    """It includes one-time work, so it is shown only if the next block is far off, or if there is none."""
    for n_probes, seconds, expected in ((300, 0.9, [60]), (300, 1.1, [50, 60]), (50, 0.9, [50])):
        displayed = []
        show = lambda progress_state, _, displayed=displayed: displayed.append(progress_state.state.n_probes)  # noqa: E731
        monkeypatch.setattr("probewise.progress.REFRESH_SECONDS", 0.0)
        monkeypatch.setattr("probewise.progress.one_line", show)
        with live_progress(bool, stop=MaxProbes(n_probes), effort=lambda n: (n, 0.0)) as progress:
            for n in (50, 60)[: 1 + (n_probes > 50)]:
                progress(State(n, seconds * n / 50, state.tally))
        assert displayed == expected


def test_efforts_of_a_tournament():
    schedule = Schedule.of_budget(1000, 2000, 50)
    plan = TournamentPlan(1000, 100)
    whole, seconds = schedule.effort(plan, 2000)
    of_round = 2000 * SECONDS_PER_PROBE * np.log10(1000 / 80) + 1000 * SECONDS_PER_FEATURE
    assert seconds == pytest.approx(len(schedule.ends) * of_round)
    assert schedule.effort(plan, 0) == (0, 0)
    first, none = schedule.effort(plan, schedule.ends[0] - 1)
    assert none == 0
    assert first / (schedule.ends[0] - 1) > (whole - first) / (2000 - schedule.ends[0])  # later probes are smaller


def test_the_share_done_is_that_of_the_rule(state):
    state = State(400, 30.0, state.tally)
    assert MaxProbes(1600).share_done(state) == 0.25
    assert MaxTime(60).share_done(state) == 0.5
    assert (MaxProbes(1600) | MaxTime(60)).share_done(state) == 0.5
    assert (MaxProbes(1600) & MaxTime(60)).share_done(state) == 0.25
    assert Settled().share_done(state) is None
    assert (Settled() | MaxTime(60)).share_done(state) == 0.5
    assert (Settled() & MaxTime(60)).share_done(state) is None
    assert MaxTime(10).share_done(state) == 1.0
    assert ProgressState(state, [], "DAF", 0.25).seconds_left == 90
    assert ProgressState(state, [], "DAF", None).seconds_left is None


def test_nothing_is_shown_by_default(state, capsys):
    with live_progress(0) as progress:
        assert progress is None
    with live_progress(1) as progress:
        progress.last = -1e9
        progress(state)
    assert "DAF: 4 probes" in capsys.readouterr().err


def test_one_line_stays(state, capsys):
    """Also of a run too short to show anything while it ran; none where the caller gets the lines, or it failed."""
    with live_progress(1) as progress:
        progress(state)
        assert capsys.readouterr().err == ""
    stamp, line = re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (.*)\n", capsys.readouterr().err).groups()
    assert line == one_line(ProgressState(state, TopFeatures(None)(state), "DAF", None), float("nan"))
    assert datetime.fromisoformat(stamp) <= datetime.now()
    with live_progress(1):
        pass
    with live_progress(lambda line: None) as progress:
        progress(state)
    with pytest.raises(ZeroDivisionError), live_progress(1) as progress:
        [progress(state), 1 / 0]
    assert capsys.readouterr().err == ""


def test_what_is_held_back_is_shown_at_the_end():
    shown = []
    limited = RateLimited(1e9, shown.append)
    for line in ("first", "second", "third"):
        limited(line)
    assert shown == ["first"]
    limited.finish()
    limited.finish()
    assert shown == ["first", "third"]


def test_what_is_not_known_yet_is_left_out(state):
    first = State(4, 2.0, state.tally, (Look(4, 1.0, value_change=np.nan),))
    assert (
        one_line(ProgressState(first, TopFeatures(None)(first), "DAF", None), np.nan)
        == "DAF: 4 probes, 2 s, top: 0, 1, 2, 3"
    )


def test_a_log_says_when_how_far_and_how_long_still(state, capsys):
    with live_progress(1, stop=MaxProbes(16)) as progress:
        progress.last = -1e9
        progress(state)
        line = capsys.readouterr().err
    capsys.readouterr()
    said = "DAF: 4 probes, 2 s, 25% done, about 6.0 s left"
    assert re.match(rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d {said}", line)
    with live_progress(1, stop=MaxProbes(4)) as progress:
        progress(state)
    assert "done" not in capsys.readouterr().err


# ---- a function of the caller's


@pytest.fixture(scope="module")
def data():
    made = make_madelon(80, 20, random_state=0)
    return made.X, made.y


def test_a_run_calls_a_progress_function(data, capsys):
    lines = []
    DAF(criterion="linear", stop=MaxProbes(800), random_state=0, verbose=lines.append).fit(*data)
    assert lines[-1].startswith("DAF: 800 probes, ")
    assert all(line.startswith("DAF: ") for line in lines)
    assert capsys.readouterr() == ("", "")


def test_a_search_calls_a_progress_function(data):
    lines = []
    fitted = SFFS(2, criterion="linear", verbose=lines.append).fit(*data)
    assert lines[0].startswith("SFFS: starting")
    assert f"{fitted.n_evaluations_} subsets" in lines[-1]


def test_a_study_calls_a_progress_function(data):
    lines = []
    study = Study({"fsdd": FSDD()}, {"nn": KNeighborsClassifier(1)}, trials=3, sizes=[2], verbose=lines.append)
    study.compare(*data)
    assert lines[0].startswith("study: 1 of 3 trials")
    assert lines[-1].startswith("study: 3 of 3 trials")


def test_a_function_changes_no_result(data):
    quiet = DAF(criterion="linear", stop=MaxProbes(400), random_state=0)
    told = clone(quiet).set_params(verbose=print)
    np.testing.assert_array_equal(
        clone(told).set_params(verbose=[].append).fit(*data).scores_, quiet.fit(*data).scores_
    )


def fail_after(verbose, *lines):
    with live_line(verbose) as progress:
        for line in lines:
            progress(line)
        raise RuntimeError("broken")


def test_a_failed_run_has_no_last_word():
    lines = []
    with pytest.raises(RuntimeError, match="broken"):
        fail_after(lines.append, "one", "two")
    assert lines == ["one"]


# ---- a terminal and a notebook


def test_a_terminal_shows_a_display_that_goes_away(state, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with live_progress(1) as progress:
        progress.last = -1e9
        progress(state)
    assert "DAF: starting" in screen.getvalue()
    assert "4 probes" in screen.getvalue()
    with live_line(1) as progress:
        progress("[red]not markup")
    assert "[red]not markup" in screen.getvalue()


class ZMQInteractiveShell:
    """The class name by which rich recognizes a notebook."""


@pytest.fixture
def notebook(monkeypatch):
    """The contents that the output of a notebook cell showed, in order."""
    shown = []

    def display(thing, *, display_id=False):
        shown.append(thing)
        return SimpleNamespace(update=shown.append) if display_id else None

    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return shown


def test_a_notebook_shows_a_table_that_becomes_a_line(state, notebook, capsys):
    with live_progress(1) as progress:
        assert str(notebook[-1]) == "DAF: starting"
        progress.last = -1e9
        progress(state)
        assert isinstance(notebook[-1], Table)
        bundle = notebook[-1]._repr_mimebundle_([], [])
    assert "4 probes" in bundle["text/html"]
    assert str(notebook[-2]) == ""
    assert str(notebook[-1]).startswith("DAF: 4 probes")
    assert capsys.readouterr() == ("", "")


def test_a_notebook_is_left_tidy_by_a_failure(notebook):
    with pytest.raises(RuntimeError, match="broken"):
        fail_after(1, "study: 1 of 3 trials")
    assert [str(thing) for thing in notebook] == ["", "study: 1 of 3 trials", ""]


@pytest.mark.parametrize("criterion", ["knn", Average((KNN(10), Linear()))])
def test_verbose_says_when_exact_distances_take_time(criterion):
    X, y = np.random.default_rng(0).standard_normal((60, 30)), np.arange(60) % 2
    options = {"criterion": criterion, "scale": None, "stop": MaxProbes(60), "random_state": 0}
    if criterion != "knn":
        options |= {"cv": "loo", "scoring": "probability"}
    far = X.copy()
    far[::4, :10] = -999_999_999
    said = {name: [] for name in ("plain", "far")}
    for name, table in (("plain", X), ("far", far)):
        DAF(verbose=said[name].append, **options).fit(table, y)
    assert not any("exact" in line for line in said["plain"])
    assert sum("exact distances" in line for line in said["far"]) == 1
