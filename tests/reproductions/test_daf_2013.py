"""The 2013 paper's runner: each rule stops where it would have, C and C2 are DAF's own, and runs go on."""

import math
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone

from probewise import DAF
from probewise.datasets import Dataset, make_madelon
from probewise.plots import ConvergenceDisplay, expected_change
from probewise.stopping import MaxProbes, MinCoverage, OrderChange, RelativeChange, Settled
from reproductions.base import published
from reproductions.daf_2013 import experiment as daf_2013
from reproductions.daf_2013.experiment import Settings, watched
from reproductions.daf_2013.games import all_equal, furthest, games, in_the_limit, one_probe_more, to_the_limit
from reproductions.work import Reproduction

TINY = Settings(
    trials=2, probes={"Madelon": 4_000}, counts=(200, 2_000, 4_000), sizes={"Madelon": (2, 10)}, at_stops={"Madelon": 5}
)


@pytest.fixture(scope="module")
def made():
    return make_madelon(100, 40, random_state=0)


@pytest.fixture(scope="module")
def outcome(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return folder, daf_2013.run(Reproduction(TINY, lambda name: Dataset(name, made.X, made.y), folder, seed=1))


def numbers(outcome):
    return {(cell.where, cell.row, cell.column): cell.ours for cell in outcome.cells}


def test_the_published_numbers():
    known = {each.place: each.value for each in published("daf-2013")}
    assert len(known) == 11
    assert known["Section 4", "all sets", "relative C2 to stop at"] == RelativeChange().threshold == 0.01
    assert known["Section 4", "all sets", "probes between looks"] == daf_2013.LOOK
    assert known["Section 4", "all sets", "largest probe"] == daf_2013.LARGEST_PROBE


def test_rules_stop_in_the_replay_where_they_stop_the_run(made):
    rules = {
        "order": OrderChange(0.8),
        "relative": RelativeChange(0.2),
        "coverage": MinCoverage(100),
        "settled": Settled(3, 0.6),
        "never": OrderChange(1e-9),
    }
    daf = DAF(stop=MaxProbes(4_000), check_every=400, random_state=0)
    history, stops = watched(clone(daf).fit(made.X, made.y).run_, rules)
    for name, rule in rules.items():
        alone = clone(daf).set_params(stop=rule | MaxProbes(4_000)).fit(made.X, made.y)
        assert stops.get(name, 4_000) == alone.n_probes_
        if name == "never":
            assert name not in stops
            for column, values in history.items():
                np.testing.assert_array_equal(values, alone.history_[column])


def test_expected_change_is_the_law_of_averages():
    expected = expected_change(200)
    assert math.isnan(expected[0])
    assert expected[1] == pytest.approx(1)
    assert expected[10] == pytest.approx(0.1348, abs=1e-4)
    assert np.argmax(expected < 0.01) == 141  # look 142
    random = np.random.default_rng(0)
    means = random.standard_normal((40, 4000)).cumsum(axis=0) / np.arange(1, 41)[:, None]
    changes = np.abs(np.diff(means, axis=0)).mean(axis=1)
    np.testing.assert_allclose(changes / changes[0], expected[1:40], rtol=0.06)


def test_accuracy_curves_and_stops(outcome):
    found = numbers(outcome[1])
    assert 0 < found["Figure 2, accuracy on Madelon by probes", "2,000 probes", "d = 10"] <= 1
    assert found["Figure 2, C and C2 on Madelon", "look 2, 800 probes", "relative C2"] == pytest.approx(1)
    assert found["Where rules stop on Madelon", "end of the run", "probes"] == 4_000
    assert found["Where rules stop on Madelon", "C = 0", "splits stopped"] == 0
    assert found["Where rules stop on Madelon", "every feature in 100 probes", "splits stopped"] == 2
    assert len(outcome[1].claims) == 12
    settles = next(claim for claim in outcome[1].claims if "converges reasonably fast" in claim.text)
    assert settles.holds is False  # ten looks: a tenth is expected after the fifteenth
    assert "C2 is a tenth of its first value never" in settles.ours
    assert [claim.holds for claim in outcome[1].claims if claim.where == "section 5"] == [True, None]


def test_it_goes_on_where_it_was_ended(made, outcome, tmp_path):
    folder, whole = outcome
    kept = (folder / "runs" / "watched.jsonl").read_bytes()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "watched.jsonl").write_bytes(b"".join(kept.splitlines(keepends=True)[:2]) + b'{"tri')
    steps = []
    again = daf_2013.run(
        Reproduction(
            TINY, lambda name: Dataset(name, made.X, made.y), tmp_path, seed=1, progress=lambda line: steps.append(line)
        )
    )
    assert len(steps) == 1
    assert numbers(again) == numbers(whole)
    assert not list((tmp_path / "runs").rglob("*.sqlite"))
    names = {path.name for path in again.write(tmp_path).files}
    assert names == {
        "results.csv",
        "claims.csv",
        "claims.md",
        "results.md",
        "settings.json",
        "figures-1-and-2.svg",
        "c-and-c2.png",
    }


def test_the_display_shows_c_and_c2_of_a_run(made):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    daf = DAF(stop=MaxProbes(2_000), random_state=0).fit(made.X, made.y)
    display = ConvergenceDisplay.from_estimator(daf, name="run")
    (change,), (relative, expected) = (axes.lines for axes in display.axes_)
    np.testing.assert_array_equal(change.get_ydata(), daf.history_["order_change"])
    np.testing.assert_array_equal(relative.get_ydata(), daf.history_["relative_change"])
    np.testing.assert_allclose(expected.get_ydata(), expected_change(5)[1:])
    plt.close("all")


def test_the_limit_of_a_game_is_the_mean_over_all_subsets():
    subsets = [s for size in range(1, 9) for s in combinations(range(8), size)]
    additive = {s: sum(s) / 28 for s in subsets}  # a feature adds its number
    limit = in_the_limit(additive)
    assert (np.diff(limit) > 0).all()
    shares = {s: 1 / 8 / math.comb(8, len(s)) for s in subsets}
    with_3 = np.average([additive[s] for s in subsets if 3 in s], weights=[shares[s] for s in subsets if 3 in s])
    without = np.average(
        [additive[s] for s in subsets if 3 not in s], weights=[shares[s] for s in subsets if 3 not in s]
    )
    assert limit[3] == pytest.approx(with_3 - without)
    (first, _), *_, (last, errors) = to_the_limit(0).values()
    assert last < first
    assert errors < 4


def test_one_more_probe_changes_every_coefficient():
    change, held = one_probe_more(1_000, seed=0)
    assert (change > 0).all()
    assert 1 <= held.sum() <= 200
    assert change[held].mean() > change[~held].mean()


def test_where_all_features_are_equal_c_falls_with_the_root_of_the_looks():
    looked = all_equal(40, 100, seed=1)
    places = np.argsort(np.argsort(-looked, axis=1), axis=1)
    numbers, claims = games(40, 100, seed=1)
    change = np.abs(np.diff(places, axis=0)).mean(axis=1)
    assert [numbers["Proposition 1, all features equal", f"look {k}", "C"] for k in range(2, 41)] == change.tolist()
    assert change[-1] / change[0] == pytest.approx(np.sqrt(2 / 40), rel=0.3)
    assert furthest(looked[26:]) < furthest(looked)
    assert [claim.holds for claim in claims] == [False, True, False, True]
