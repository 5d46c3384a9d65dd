"""The page of a run that goes on: written now and then, as a whole, with share done and time left."""

import math

import numpy as np
import pytest

from probewise import DAF
from probewise.cli import run
from probewise.engine.progress import Glimpse, watched_by
from probewise.engine.tally import TallySheet
from probewise.report import live
from probewise.report.live import LivePage
from probewise.stopping import MaxProbes, MaxTime, Settled, State


@pytest.fixture
def state(hostile):
    return State(400, 30.0, DAF(stop=MaxProbes(400), random_state=0).fit(np.eye(8, 3), [0, 1] * 4).tally_)


def test_the_share_done_is_that_of_the_rule(state):
    assert MaxProbes(1600).share_done(state) == 0.25
    assert MaxTime(60).share_done(state) == 0.5
    assert (MaxProbes(1600) | MaxTime(60)).share_done(state) == 0.5
    assert (MaxProbes(1600) & MaxTime(60)).share_done(state) == 0.25
    assert Settled().share_done(state) is None
    assert (Settled() | MaxTime(60)).share_done(state) == 0.5
    assert (Settled() & MaxTime(60)).share_done(state) is None
    assert MaxTime(10).share_done(state) == 1.0
    assert Glimpse(state, None, "DAF", 0.25).seconds_left == 90
    assert Glimpse(state, None, "DAF", None).seconds_left is None


def test_the_page_says_how_far_it_is(state, hostile, tmp_path):
    names = [hostile[0], "second", "third"]
    page = LivePage(tmp_path / "run.html", "Which features of <b>a table</b> matter?")
    page.write(Glimpse(state, names, "DAF", 0.25))
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert '<meta http-equiv="refresh" content="60">' in text
    assert "25 % done, about 90 s left." in text
    assert "&lt;b&gt;a table&lt;/b&gt;" in text
    assert "<img" not in text
    assert "second" in text
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]
    page.write(Glimpse(state, None, "Tournament", None))
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "% done" not in text
    assert "x2" in text


def test_nothing_known_yet_is_no_trouble():
    empty = State(0, 0.0, TallySheet(4).view())
    assert "The run goes on" in LivePage("x.html", "?").render(Glimpse(empty, None, "DAF", 0.0))


def test_it_is_renewed_at_most_every_minute(state, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    written = []
    monkeypatch.setattr(LivePage, "write", lambda self, glimpse: written.append(now[0]))
    page = LivePage("x.html", "?")
    for second in range(200):
        now[0] = 1000.0 + second
        page(Glimpse(state, None, "DAF", 0.1))
    assert written == [1010.0, 1070.0, 1130.0, 1190.0]


def test_a_disk_that_is_full_does_not_end_the_run(state, tmp_path):
    LivePage(tmp_path / "no" / "x.html", "?").write(Glimpse(state, None, "DAF", 0.1))


def test_runs_show_themselves(madelon):
    seen = []
    with watched_by(seen.append):
        DAF(stop=MaxProbes(800), random_state=0).fit(*madelon)
    assert [glimpse.state.n_probes for glimpse in seen][-1] == 800
    assert seen[-1].share == 1.0
    assert list(seen[-1].names) == madelon[0].columns
    assert math.isclose(seen[0].share, seen[0].state.n_probes / 800)
    DAF(stop=MaxProbes(100), random_state=0).fit(*madelon)
    assert seen[-1].state.n_probes == 800


def test_rank_writes_it_while_it_runs(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    rows = [",".join(f"{value:.3f}" for value in row) + f",{k % 2}" for k, row in enumerate(rng.normal(size=(30, 5)))]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,e,label", *rows]))
    monkeypatch.setattr(live, "FIRST", -1.0)
    monkeypatch.setattr(live, "EVERY", 0.0)
    kept = []
    monkeypatch.setattr(LivePage, "write", lambda self, glimpse: kept.append(self.render(glimpse)))
    out = tmp_path / "run.html"
    rank = ["rank", str(tmp_path / "t.csv"), "--target", "label", "--method", "daf", "--probes", "200", "-q"]
    assert run([*rank, "--report", str(out), "--report", str(tmp_path / "run.md")]) == 0
    assert "Which features of t.csv matter to predict label?" in kept[0]
    assert "100 % done" in kept[-1]
    assert 'http-equiv="refresh"' not in out.read_text(encoding="utf-8")
