"""The 2011 paper's runner: published numbers as they stand there, one run for all coefficients, and going on."""

import logging
from dataclasses import replace
from threading import Timer, current_thread, main_thread

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import SVC

from probewise import DAF
from probewise.criteria import Function
from probewise.datasets import Dataset, load, make_madelon
from probewise.engine.ledger import Ledger, LedgerInUse
from probewise.stopping import MaxProbes
from reproductions import replays
from reproductions.base import Cell, published
from reproductions.daf_2011 import experiment as daf_2011
from reproductions.daf_2011 import remarks
from reproductions.daf_2011.data import informative
from reproductions.daf_2011.experiment import Effort, Settings
from reproductions.linear_svm import LinearSVM
from reproductions.replays import Ledgers, Replay, first_probes
from reproductions.work import Reproduction

TINY = Settings(
    trials=3,
    parts={"Madelon": Effort(200, (2, 5, 20))},
    figure_6=(50, 200),
    taus=(2, 10, 30),
    tau_probes=100,
    tau_trials=2,
)


@pytest.fixture(scope="module")
def made():
    return make_madelon(240, 30, random_state=0)


@pytest.fixture(scope="module")
def source(made):
    return lambda name: Dataset(name, made.X, made.y)


def numbers(outcome):
    """Everything but the clock."""
    clock = ("time limit", "BIF takes at most", "SFFS takes", "SFFS takes more than", "seconds")
    return {(cell.where, cell.row, cell.column): cell.ours for cell in outcome.cells if cell.column not in clock}


@pytest.fixture(scope="module")
def outcome(source):
    return daf_2011.run(Reproduction(TINY, source, None, seed=1))


def test_the_published_numbers():
    known = {each.place: (each.value, each.unit) for each in published("daf-2011")}
    assert len(known) == len(published("daf-2011")) == 51
    assert known["Table I", "Reuters", "features"] == (10105, "count")
    assert known["Table II", "Madelon", "J evaluations"] == (25000, "count")
    assert known["Table II", "Spambase", "mean probes without it"] == (80500, "count")
    assert known["Section V", "Spambase", "SFFS takes"] == (16, "min")
    for name in daf_2011.SETUPS:  # Table II adds up
        held, left = (known["Table II", name, f"mean probes with{end}"][0] for end in (" a feature", "out it"))
        assert held + left == known["Table II", name, "J evaluations"][0]
        tau, features = known["Table II", name, "largest probe"][0], known["Table I", name, "features"][0]
        assert held == pytest.approx((held + left) * (tau + 1) / 2 / features, rel=0.06)
        assert tau == daf_2011.SETUPS[name].tau


def test_the_profiles_hold_all_four_sets():
    for settings in daf_2011.PROFILES.values():
        assert list(settings.parts) == list(daf_2011.SETUPS)
        assert settings.figure_6[-1] == settings.parts["Madelon"].probes
    assert daf_2011.PROFILES["full"].parts["Madelon"].probes == 25_000


@pytest.mark.parametrize("coefficient", ["daf0", "daf1", "daf2"])
def test_a_replay_is_the_run_itself(made, tmp_path, coefficient):
    daf = DAF(max_probe_size=10, stop=MaxProbes(150), random_state=3)
    direct = clone(daf).set_params(coefficient=coefficient).fit(made.X, made.y)
    replay = Replay(daf, ledgers=Ledgers(tmp_path / "new"), coefficient=coefficient).fit(made.X, made.y)
    np.testing.assert_array_equal(replay.scores_, direct.scores_)
    assert replay.n_probes_ == 150


def test_a_run_is_made_once_and_its_beginning_is_the_shorter_run(made, tmp_path):
    calls = []

    def j(X, y):
        calls.append(1)
        return float(X[:, 0].std())

    named = Function(j, name="spread")  # it captures what changes
    daf = DAF(criterion=named, max_probe_size=10, stop=MaxProbes(150), random_state=3)
    for options in ({}, {"coefficient": "daf1"}, {"n_probes": 60}, {"n_probes": 150}):
        replay = Replay(daf, ledgers=Ledgers(tmp_path), **options).fit(made.X, made.y)
    assert len(calls) == 150
    shorter = clone(daf).set_params(stop=MaxProbes(60)).fit(made.X, made.y)
    whole = clone(daf).fit(made.X, made.y)
    np.testing.assert_array_equal(first_probes(whole.run_, 60).tally.daf0(), shorter.scores_)
    np.testing.assert_array_equal(replay.scores_, whole.scores_)
    assert Replay(daf, ledgers=Ledgers(tmp_path), n_probes=60).fit(made.X, made.y).n_probes_ == 60


def test_a_run_that_another_reads_is_waited_for(made, tmp_path, monkeypatch):
    daf = DAF(max_probe_size=10, stop=MaxProbes(50), random_state=3)
    replay = Replay(daf, ledgers=Ledgers(tmp_path)).fit(made.X, made.y)
    other = Ledger(Ledgers(tmp_path).file(made.X, made.y, daf))
    soon = Timer(0.2, other.close)
    soon.start()
    np.testing.assert_array_equal(clone(replay).fit(made.X, made.y).scores_, replay.scores_)
    soon.join()
    monkeypatch.setattr(replays, "PATIENCE", 0.05)
    with Ledger(other.path), pytest.raises(LedgerInUse, match="in use"):
        clone(replay).fit(made.X, made.y)


class OnDevice(DAF):
    """Says where it is fitted, and with how many probes; a list of its own would be a part of what it is."""

    def fit(self, X, y):
        logging.getLogger("fits").warning("%s %s", current_thread() is main_thread(), self.stop.n_probes)
        return DAF.fit(self.set_params(device="cpu"), X, y)


def test_a_device_makes_the_runs_ahead_of_the_workers(source, outcome, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(daf_2011, "DAF", OnDevice)
    ahead = daf_2011.run(Reproduction(TINY, source, tmp_path, seed=1, device="cuda"))
    assert numbers(ahead) == numbers(outcome)
    fits = [record.args for record in caplog.records if record.name == "fits"]
    assert fits == [(False, 200)] * 6 + [(False, 100)] * 6  # of eq. 4 and with a largest probe; three taus
    caplog.clear()
    again = daf_2011.run(Reproduction(TINY, source, tmp_path, seed=1, device="cuda"))
    assert not [record for record in caplog.records if record.name == "fits"]
    assert numbers(again) == numbers(outcome)


def test_a_device_makes_the_runs_of_figure_6_where_madelon_s_are_gone(source, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(daf_2011, "DAF", OnDevice)
    daf_2011.run(Reproduction(TINY, source, tmp_path, seed=1, device="cuda", only=["Figure 6"]))
    fits = [record.args for record in caplog.records if record.name == "fits"]
    assert fits == [(False, 200)] * TINY.trials  # none by a worker, of which a GPU has no room for many


def test_what_a_device_cannot_do_is_said_where_its_runs_are_needed(source, tmp_path, monkeypatch):
    def refuse(self, X, y):
        raise ValueError("there is no such device")

    monkeypatch.setattr(DAF, "fit", refuse)
    with pytest.raises(ValueError, match="there is no such device"):
        daf_2011.run(Reproduction(TINY, source, tmp_path, seed=1, device="cuda"))


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_the_linear_svm_is_scikit_learn_s(C):
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=300)
    X = sp.csr_array(rng.poisson(0.1 + 0.4 * (y[:, None] == np.arange(20) % 5)).astype(float))
    ours, theirs = LinearSVM(C).fit(X[:200], y[:200]), SVC(kernel="linear", C=C).fit(X[:200], y[:200])
    np.testing.assert_array_equal(ours.predict(X[200:]), theirs.predict(X[200:]))
    np.testing.assert_array_equal(ours._machine.dual_coef_, theirs.dual_coef_.toarray())
    np.testing.assert_array_equal(ours._machine.intercept_, theirs.intercept_)


def test_informative_columns_are_found_without_labels(made):
    large = make_madelon(1000, 60, random_state=0)
    found = informative(Dataset("madelon", large.X, large.y))
    assert set(found) <= set(large.informative)
    assert len(found) >= 18


@pytest.mark.shared_data
def test_informative_columns_of_the_real_madelon(real_data):
    arrays = real_data("madelon")
    found = informative(Dataset("madelon", arrays["X"], arrays["y"]))
    assert len(found) == 20
    assert found[:3].tolist() == [28, 48, 64]


def test_every_figure_has_its_numbers(outcome):
    found = numbers(outcome)
    for selector in ("DAF0", "DAF1", "DAF2", "DAF0 centred", "DAF2 centred", "DAF0, Bernoulli", "BIF", "SFFS"):
        for where in (
            "Figure 4a, accuracy of 3-NN, Madelon",
            "Figure 4b, accuracy of SVM (rbf), Madelon",
            "Figure 4c, CW_rel, Madelon",
        ):
            assert 0 <= found[where, selector, "d = 5"] <= 1
    assert found["Figure 6, accuracy of 3-NN, Madelon", "200 probes", "d = 5"] == pytest.approx(
        found["Figure 4a, accuracy of 3-NN, Madelon", "DAF0", "d = 5"]
    )
    assert ("Figure 7, accuracy of 3-NN, Madelon", "tau = 10", "d = 20") in found
    assert found["Table II", "Madelon", "J evaluations"] == 200
    held = found["Table II", "Madelon", "mean probes with a feature"]
    assert held == pytest.approx(200 * 15.5 / 30, rel=0.1)
    assert held != 200 * 15.5 / 30  # counted, not computed
    assert found["Table II", "Madelon", "least probes with a feature"] <= held
    assert {cell.published for cell in outcome.cells if cell.where == "Table I" and cell.row == "Madelon"} == {
        500,
        2,
        2000,
    }
    assert len(outcome.claims) == 13
    assert all(claim.ours and claim.where and claim.evidence for claim in outcome.claims)


@pytest.mark.slow
def test_it_goes_on_where_it_was_ended(source, outcome, tmp_path):
    steps = []
    fewer = replace(TINY, trials=2)
    daf_2011.run(Reproduction(fewer, source, tmp_path, seed=1))
    before = {path.name: path.read_bytes() for path in (tmp_path / "runs").iterdir()}
    resumed = daf_2011.run(Reproduction(TINY, source, tmp_path, seed=1, progress=steps.append))
    for name, content in before.items():
        assert (tmp_path / "runs" / name).read_bytes().startswith(content)
    assert numbers(resumed) == numbers(outcome)
    titles = dict.fromkeys(step.split(",")[0] for step in steps)
    assert list(titles) == ["Madelon", "Figure 6"]  # figure 7 has all its splits
    assert "Madelon, study: 3 of 3 trials" in "".join(steps)
    assert not any("ledgers" in path.name for path in (tmp_path / "runs").iterdir())
    written = {path.name for path in resumed.write(tmp_path).files}
    assert written == {
        "results.csv",
        "results.md",
        "claims.csv",
        "claims.md",
        "settings.json",
        "figure-4.png",
        "figure-6.png",
        "figure-7.png",
    }


def test_the_other_sets_and_floating_search(made, tmp_path):
    X = np.abs(made.X[:, :12]).round(2)
    tiny = replace(TINY, trials=2, parts={"Spambase": Effort(100, (1, 3))})
    outcome = daf_2011.run(Reproduction(tiny, lambda name: Dataset(name, X, made.y), tmp_path, seed=0))
    found = numbers(outcome)
    assert ("Figure 5a, accuracy of 3-NN, Spambase", "SFFS", "d = 3") in found
    assert sum("SFFS" in claim.text for claim in outcome.claims) == 3
    assert not any("Nogueira" in claim.ours for claim in outcome.claims)


def test_what_is_said_of_reuters(made, tmp_path):
    X = np.abs(made.X[:, :14]).round(1)
    tiny = replace(
        TINY,
        trials=2,
        parts={"Reuters": Effort(60, (2, 4))},
        wide_taus=(2, 5, 10_000),
        wide_held=10,
        wide_trials=2,
        svm_probes=10,
    )
    source = lambda name: Dataset(name, sp.csr_array(X), made.y)  # noqa: E731
    outcome = daf_2011.run(Reproduction(tiny, source, tmp_path, seed=0))
    found = numbers(outcome)
    assert {row for where, row, _ in found if where.startswith("Reuters twice")} >= {"60 probes", "120 probes"}
    assert {row for where, row, _ in found if where.startswith("Reuters tau")} >= {"tau = 2", "tau = 5", "tau = 14"}
    plain = found["Figure 2a, accuracy of SVM (linear), Reuters", "DAF0", "d = 4"]
    assert found["Reuters twice, accuracy of SVM (linear), Reuters", "60 probes", "d = 4"] == plain
    assert 0 <= found["Reuters, the SVM as J, one split", "DAF0, SVM as J", "d = 4"] <= 1
    assert any("the linear SVM itself as J" in claim.text for claim in outcome.claims)


@pytest.mark.shared_data
def test_the_paper_s_sets_are_as_the_paper_says(real_data):
    for name in ("gisette_valid", "madelon", "spambase"):
        real_data(name)
    from conftest import DATA

    shapes = {name: daf_2011.prepared(load(daf_2011.SETUPS[name].file, DATA))[0].shape for name in daf_2011.SETUPS}
    assert shapes == {"Reuters": (8936, 9946), "Gisette": (1000, 5000), "Madelon": (2000, 500), "Spambase": (4601, 57)}


def test_a_part_alone_gives_its_own_numbers(source, outcome):
    alone = daf_2011.run(Reproduction(TINY, source, None, seed=1, only=["Figure 7"]))
    found = numbers(alone)
    assert [claim.where for claim in alone.claims] == ["section V-C, figure 7"] * 2 + ["section V-C, remark"]
    assert {place for place, value in found.items() if value is not None and place[0].startswith("Figure")} == {
        place for place in numbers(outcome) if place[0].startswith("Figure 7")
    }
    assert all(numbers(outcome)[place] == value for place, value in found.items() if value is not None)


# ---- what is remarked

FEW = remarks.Effort(2, 100, (2, 5), (10, 20), 3, (5, 20), (4, 12))


def test_remarks_have_their_runs_and_rows(made, tmp_path):
    settings = replace(TINY, parts={"Madelon": TINY.parts["Madelon"], "Spambase": Effort(100, (1, 3))}, remarks=FEW)
    source = lambda name: Dataset(name, np.abs(made.X), made.y)  # noqa: E731
    said = []
    how = Reproduction(settings, source, tmp_path, seed=1, only=["Remarks"], progress=said.append)
    outcome = daf_2011.run(how)
    assert said[-1].startswith("Remarks: 11 of 11")
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"remarks.jsonl"}
    assert daf_2011.run(replace(how, progress=None)).claims == outcome.claims
    assert len(outcome.claims) == 7
    assert all(claim.where and claim.evidence for claim in outcome.claims)
    found = numbers(outcome)
    assert found["Section V-B, subsets that SFFS evaluates, Madelon", "Madelon", "20, 3 of them"] > 3 * 17
    assert 0 < found["Section V-B, J and accuracy, Spambase", "SFFS, J", "split 1"] <= 1
    assert -1 <= found["Section V-C, two runs that agree, Madelon", "20", "split 1"] <= 1
    assert {column for where, _, column in found if where.startswith("Section III-A")} == {
        *("1 to 8", "9 to 15", "16 to 22", "23 to 30"),
    }


def test_j_of_a_game_without_sizes_has_the_same_spread(made):
    game = DAF(criterion=Function(lambda X, y: float(X.shape[1]), name="size"), stop=MaxProbes(400), random_state=0)
    assert max(remarks.spread_of_j(game.fit(made.X, made.y).run_).values()) < 1e-12


def test_verdicts_on_remarks_follow_the_numbers():
    def holds(**found):
        return remarks.remark_claims(found)[0].holds

    assert holds(spread={"Set": {"1 to 2": 0.1, "3 to 4": 0.2}})
    assert not holds(spread={"Set": {"1 to 2": 0.2, "3 to 4": 0.1}})
    split = {"3-NN": 0.9, "linear discriminant": 0.6, "3-NN, best alone": 0.55}
    assert holds(**{"non-linear": {"0": split}})
    assert not holds(**{"non-linear": {"0": split | {"linear discriminant": 0.85}}})
    gaps = [{"SFFS": [0.9, 0.8 + k / 100], "DAF0": [0.85, 0.84], "BIF": [0.8, 0.8]} for k in range(3)]
    assert holds(**{"over-fitting": dict(zip("012", gaps, strict=True))})
    even = [{"SFFS": [0.9, 0.88 + k / 50], "DAF0": [0.85, 0.84], "BIF": [0.8, 0.8]} for k in range(3)]
    assert holds(**{"over-fitting": dict(zip("012", even, strict=True))}) is None
    few = {"50, 3 of them": 10.0, "500, 3 of them": 90.0}
    assert holds(slow={"Madelon": {"50": 100.0, "500": 1500.0} | few})
    assert not holds(slow={"Madelon": {"50": 100.0, "500": 900.0} | few})
    assert holds(contexts={"0": {"10": 0.2, "30": 0.4}, "1": {"10": 0.3, "30": 0.25}})
    assert not holds(sizes={"0": {"10": 0.2, "30": 0.4}})


def test_the_lead_in_high_dimension_is_compared_between_sets():
    def lead(**points):
        found = [Cell("Table I", name, "features", None, 1000.0) for name in points]
        for name, lead in points.items():
            for where in ("a, accuracy of 3-NN", "b, accuracy of SVM (rbf)"):
                figure = f"Figure {daf_2011.SETUPS[name].figure}{where}, {name}"
                found += [Cell(figure, "DAF0", f"d = {k}", None, 0.7 + k / 100 + lead / 100) for k in (1, 2)]
                found += [Cell(figure, "BIF", f"d = {k}", None, 0.7 + k / 100) for k in (1, 2)]
                found.append(Cell(figure, "BIF, deviation", "d = 1", None, 0.01))
        return daf_2011.over_sets(found)

    (claim,) = lead(Reuters=3, Gisette=4, Madelon=1, Spambase=2)
    assert claim.holds
    assert "Gisette (1,000 features) +4.00" in claim.ours
    assert not lead(Reuters=3, Gisette=4, Madelon=9, Spambase=2)[0].holds
    assert lead(Reuters=3, Gisette=4) == []
