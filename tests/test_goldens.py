"""What version 0.1.0 gave, bit by bit: old ledgers are read and gone on with, and rankings and texts stay as they were.

The files were made once, by goldens/make.py, before the modules moved. Nothing here knows where a module is.
"""

import json
import math
import shutil

import numpy as np
import pytest

from goldens import cases

# What of a summary is compared; not: versions, made, repeat, and anything called seconds.
SUMMARY = (
    *("format", "asked", "data", "convergence", "sizes", "alone", "likeness", "interactions", "study", "screen"),
    *("features", "run", "gaps", "ranking"),
)
ABOUT_LUCK = (
    "honest",
    "stands_out",
    "standing_out",
    "rate",
    "revealed",
    "n_revealed",
    "outdone",
    "n_outdone",
    "which_rows",
)
# Parts made by products of matrices or by functions of SciPy: there the last bits are a matter of the machine.
LOOSE = ("sizes", "alone", "likeness", "interactions", "in_top", "p_value")
REL = 1e-9


def golden(name):
    return json.loads((cases.HERE / name).read_text(encoding="utf-8"))


def same(ours, theirs, *, exact=True, where="", ignored=()):
    """Equal in type and value, floats to the last bit, or nearly where that is not a matter of ours."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), where
        assert set(ours) - set(ignored) == set(theirs) - set(ignored), where
        for name in theirs:
            if name not in ignored:
                same(ours[name], theirs[name], exact=exact and name not in LOOSE, where=f"{where}/{name}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list), where
        assert len(ours) == len(theirs), where
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, exact=exact, where=f"{where}/{place}")
    elif isinstance(theirs, float) and not exact:
        assert ours == pytest.approx(theirs, rel=REL, abs=1e-12), where
    else:
        assert (type(ours), ours) == (type(theirs), theirs), where
        assert not isinstance(theirs, float) or math.copysign(1, ours) == math.copysign(1, theirs), where


def same_summary(ours, theirs, *, exact=True):
    known = [name for name in SUMMARY if name in ours or name in theirs]
    ours, theirs = ({name: _without_luck(told.get(name)) for name in known} for told in (ours, theirs))
    same(ours, theirs, exact=exact)


def _without_luck(part):
    """What stands out was a matter of probes, and is one of rows, of which these ledgers know nothing."""
    if isinstance(part, dict):
        return {name: _without_luck(value) for name, value in part.items() if name not in ABOUT_LUCK}
    return part


# ---- ledgers

every_run = pytest.mark.parametrize("name", cases.RUNS)


@pytest.fixture
def ledger(name, tmp_path):
    """A copy: a golden is never opened, since opening a ledger may write to it."""
    return shutil.copy(cases.HERE / f"{name}.ledger", tmp_path / "run.ledger")


@every_run
def test_a_run_in_a_ledger_is_known_again_and_gone_on_with(name, ledger):
    """First nothing is left to do, then some probes are; a run without a ledger gives the same numbers."""
    kept, known = cases.RUNS[name], golden(f"{name}.json")
    resumed, warned = kept.fit(ledger=ledger)
    same(cases.observed(resumed, warned), known["fit"], exact=kept.exact)
    later, warned = kept.fit(kept.later, ledger=ledger)
    same(cases.observed(later, warned), known["later"], exact=kept.exact)
    assert later.ledger_.values(0, kept.n_probes).tobytes() == resumed.ledger_.values().tobytes()
    again, before = kept.fit()[0].ledger_.values(), resumed.ledger_.values()
    if kept.ties:  # in some probes, of levels only
        assert 0.8 < np.mean(again == before) < 1
    else:
        same(again.tolist(), before.tolist(), exact=kept.exact)


@every_run
def test_the_summary_of_a_ledger(name, ledger):
    kept, known = cases.RUNS[name], golden(f"{name}.json")["summary"]
    told = kept.summaries(ledger)
    same_summary(told["alone"], known["alone"], exact=kept.exact)
    same_summary(told["with data"], known["with data"], exact=kept.exact)


def test_the_goldens_are_what_they_are_meant_to_be():
    """Rounds that narrow, a screen that cuts, decoys that are beaten, probes that fail."""
    features = {name: golden(f"{name}.json")["summary"]["alone"]["features"] for name in ("narrowed", "decoys")}
    assert len(features["narrowed"]["rounds"]) >= 3
    assert features["decoys"]["decoys"]["beaten_by"] > 0
    assert golden("screened-number.json")["summary"]["alone"]["screen"]["passed"] == 12
    assert golden("failures.json")["fit"]["failed"] > 0
    assert sum(path.stat().st_size for path in cases.HERE.iterdir() if path.is_file()) < 2**20
    versions = {
        name: (cases.HERE / f"{name}.ledger").read_bytes()[60:64] for name in cases.RUNS
    }  # SQLite's user_version
    assert {name for name in versions if versions[name] == b"\0\0\0\1"} == {"first-plain", "first-screened"}
    assert set(versions.values()) == {b"\0\0\0\1", b"\0\0\0\2"}


# ---- rankings


@pytest.mark.parametrize("name", cases.RANKINGS)
def test_rankings(name):
    same(cases.ranked(name), golden("rankings.json")[name], exact=cases.RANKINGS[name][2])


# ---- the command line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where commands are run, one after the other: some use what one before has written."""
    return tmp_path_factory.mktemp("commands")


@pytest.mark.parametrize("name", cases.COMMANDS)
def test_commands(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    cases.put_table()
    if name == "report" and not (folder / "run.ledger").exists():
        cases.printed("kept")
    assert cases.printed(name) == (cases.HERE / f"command-{name}.txt").read_text(encoding="utf-8")
    for file in cases.WRITTEN.get(name, ()):
        found = cases.written(file)
        if isinstance(found, str):
            assert found == (cases.HERE / f"command-{file}").read_text(encoding="utf-8")
        else:
            same_summary(found, golden(f"command-{file}"))
