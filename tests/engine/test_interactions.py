"""Interactions and redundant features where the truth is known by construction: XOR pairs, copies, noise, games."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from probewise import DAF
from probewise.criteria import KNN, Linear, NaiveBayes
from probewise.datasets import make_madelon
from probewise.engine.interactions import Group, Interactions, correlations, interactions_between
from probewise.engine.ledger import Ledger
from probewise.engine.probes import ProbePlan
from probewise.engine.run import Run
from probewise.engine.schedule import TournamentPlan
from probewise.engine.settings import Settings
from probewise.engine.tally import Tally
from probewise.stopping import MaxProbes

CRITERIA = [KNN(), Linear(), NaiveBayes()]
NAMES = ["knn", "linear", "naive_bayes"]


def xor_pairs(seed, *, n_rows=600, n_features=40, n_pairs=3):
    """Most of the pairs (0, 1), (2, 3), ... have one sign: then y is 1; one label in 20 is flipped."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    votes = sum(np.sign(X[:, 2 * k] * X[:, 2 * k + 1]) for k in range(n_pairs))
    return X, (votes > 0) ^ (rng.random(n_rows) < 0.05)


def with_copies(seed, noise):
    """0, 1 and 2 tell different things; 3 and 4 are 0 again, but for the noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 30))
    y = X[:, 0] + X[:, 1] + X[:, 2] + 0.5 * rng.standard_normal(400) > 0
    X[:, 3:5] = X[:, [0]] + noise * rng.standard_normal((400, 2))
    return X, y


def run_of(plan, ledger):
    return Run(plan, ledger, Tally.empty(plan.n_features), Settings.of_features(plan.n_features))


def game(J, n_features, n_probes, seed=0, **options):
    """A ledger of a game: J is a function of the set of features."""
    plan, ledger = ProbePlan(n_features, seed=seed, **options), Ledger()
    ledger.append(np.array([J(set(probe.tolist())) for probe in plan.draw(0, n_probes)]), seconds=1.0)
    return plan, ledger


def played(J, n_features, n_probes, **options):
    names = [f"x{column}" for column in range(n_features)]
    return interactions_between(run_of(*game(J, n_features, n_probes, **options)), np.arange(n_features), names)


def made(contrast, *, std_error=0.01, worth=0.1, p=1e-9, n=None, beyond=True):
    """Interactions with the contrasts given for pairs, 0 for the rest."""
    n = n or 1 + max(max(pair) for pair in contrast)
    values, p_values = np.zeros((n, n)), np.ones((n, n))
    for (first, second), value in contrast.items():
        values[[first, second], [second, first]] = value
        p_values[[first, second], [second, first]] = p
    values[np.diag_indices(n)] = np.nan
    flat = np.full((n, n), std_error)
    names = tuple("abcdefgh"[:n])
    of_all = np.full(n, beyond)
    return Interactions(np.arange(n) * 10, names, values, flat, np.full((n, n), worth), flat, p_values, of_all)


# ---- pairs


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_planted_pairs_come_out_on_top(seed):
    X, y = xor_pairs(seed)
    daf = DAF(max_probe_size=15, stop=MaxProbes(4000), random_state=seed).fit(X, y)
    pairs = daf.run_.interactions().pairs()
    assert {frozenset(pair.columns) for pair in pairs[:3]} == {frozenset(pair) for pair in ((0, 1), (2, 3), (4, 5))}
    assert all(pair.kind == "together" and pair.p < 0.001 for pair in pairs[:3])
    assert daf.run_.redundancy(X) == []


@pytest.mark.parametrize("n_features", [30, 100])
def test_one_pair_among_few_and_among_many(n_features):
    X, y = xor_pairs(7, n_features=n_features, n_pairs=1)
    daf = DAF(max_probe_size=20, stop=MaxProbes(4000), random_state=0).fit(X, y)
    best = daf.run_.interactions().pairs()[0]
    assert (sorted(best.columns), best.kind) == ([0, 1], "together")


def test_a_pair_is_told_with_its_numbers():
    X, y = xor_pairs(0, n_pairs=1)
    names = [f"gene {column}" for column in range(40)]
    daf = DAF(max_probe_size=15, stop=MaxProbes(2000), random_state=0).fit(pd.DataFrame(X, columns=names), y)
    found = daf.run_.interactions(top=8)
    pairs = found.pairs()
    assert len(pairs) == 28
    assert [abs(pair.z) for pair in pairs] == sorted((abs(pair.z) for pair in pairs), reverse=True)
    for pair in pairs:
        assert (pair.first, pair.second) == tuple(names[column] for column in pair.columns)
        assert pair.z == pytest.approx(pair.contrast / pair.std_error)
        assert (pair.kind == "") == (pair.p >= 0.05)
    assert list(found.features) == np.argsort(daf.ranking_)[:8].tolist()


def test_a_game_of_two_that_help_and_two_that_replace():
    rng = np.random.default_rng(0)

    def J(S):
        return 2.0 * ({0, 1} <= S) + 1.0 * bool({2, 3} & S) + 0.5 * (4 in S) + 0.5 * (5 in S) + rng.normal(0, 0.3)

    found = played(J, 30, 3000, inclusion=0.5)
    kinds = {pair.columns: pair.kind for pair in found.pairs()}
    assert kinds[0, 1] == "together"
    assert kinds[2, 3] == "instead"
    assert found.contrast[0, 1] == pytest.approx(2, abs=0.3)
    assert found.contrast[2, 3] == pytest.approx(-1, abs=0.3)
    assert found.worth[2, 3] > found.worth[4, 5] > 0.1
    groups = found.groups()
    assert [(group.features, group.evidence) for group in groups] == [((2, 3), ("probes",))]
    assert str(groups[0]) == "x2 and x3 are redundant; x2 alone is enough"


def test_a_game_without_luck_has_no_error_and_no_division_by_zero():
    found = played(lambda S: 1.0 * ({0, 1} <= S), 4, 400)
    assert found.pairs()[0].columns == (0, 1)
    assert all(np.isfinite([pair.z, pair.p]).all() for pair in found.pairs())
    flat = played(lambda S: 3.0, 4, 400)
    assert [pair.kind for pair in flat.pairs()] == [""] * 6
    assert flat.groups() == []


def test_chance_is_held_at_5_percent_for_all_pairs_together():
    """J is noise: few of 100 runs have a significant pair, even where cells contain a dozen probes."""
    called = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        found = played(lambda S, rng=rng: rng.normal(), 8, 120, seed=seed)
        called += any(pair.kind for pair in found.pairs())
    assert called <= 12


def test_pairs_that_hardly_met_are_not_told():
    found = played(lambda S: float(len(S)), 200, 300, max_size=2)
    assert found.pairs() == []
    assert found.groups() == []
    assert np.isnan(found.contrast).all()


def test_rounds_in_which_a_feature_could_not_be_drawn_say_nothing_of_it():
    """From probe 1,000 on only 0 to 4 are drawn, and J is 5 more: that is no merit of a pair."""
    plan, rng = TournamentPlan(10, 10, seed=0).with_round(1000, np.arange(5)), np.random.default_rng(0)
    ledger = Ledger()
    values = [
        5.0 * (probe >= 1000) + 1.0 * ({0, 7} <= set(plan.probe(probe).tolist())) + rng.normal(0, 0.2)
        for probe in range(3000)
    ]
    ledger.append(np.array(values), seconds=1.0)
    found = interactions_between(run_of(plan, ledger), np.arange(10), [f"x{k}" for k in range(10)])
    first, rest = ledger_of(values[:1000]), [pair for pair in combinations(range(10), 2) if max(pair) > 4]
    alone = interactions_between(run_of(plan, first), np.arange(10), found.names)
    for pair in rest:
        assert found.contrast[pair] == pytest.approx(alone.contrast[pair])
        assert found.std_error[pair] == pytest.approx(alone.std_error[pair])
    assert found.std_error[0, 1] < alone.std_error[0, 1]
    assert found.pairs()[0].columns == (0, 7)


def ledger_of(values):
    ledger = Ledger()
    ledger.append(np.array(values), seconds=1.0)
    return ledger


# ---- groups


@pytest.mark.matrix
@pytest.mark.parametrize("criterion", CRITERIA, ids=NAMES)
@pytest.mark.parametrize("noise", [0.0, 0.2], ids=["exact", "noisy"])
def test_copies_are_one_group_by_the_probes_and_by_the_columns(criterion, noise):
    X, y = with_copies(1, noise)
    daf = DAF(criterion=criterion, max_probe_size=15, stop=MaxProbes(4000), random_state=0).fit(X, y)
    by_probes, by_both = daf.run_.redundancy(), daf.run_.redundancy(X)
    assert [set(group.features) for group in by_both] == [{0, 3, 4}]
    assert by_both[0].features[0] == min((0, 3, 4), key=lambda column: daf.ranking_[column])
    assert set(by_both[0].evidence) <= {"columns", "both"}
    assert len(by_probes) == 1
    assert set(by_probes[0].features) <= {0, 3, 4}
    assert set(by_probes[0].evidence) == {"probes"}


@pytest.mark.parametrize("criterion", CRITERIA, ids=NAMES)
def test_features_that_tell_different_things_are_no_group(criterion):
    """Each is worth less beside the other, for less is left to be told; that is not enough."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 30))
    y = X[:, 0] + X[:, 1] + X[:, 2] > 0
    daf = DAF(criterion=criterion, max_probe_size=15, stop=MaxProbes(4000), random_state=0).fit(X, y)
    found = daf.run_.interactions()
    assert set(found.features[:3].tolist()) == {0, 1, 2}
    if not isinstance(criterion, KNN):
        assert all(found.contrast[first, second] < 0 for first, second in combinations(range(3), 2))
    assert daf.run_.redundancy() == daf.run_.redundancy(X) == []


@pytest.mark.parametrize("criterion", CRITERIA[:2], ids=NAMES[:2])
def test_noise_is_no_group(criterion):
    """On given rows noise is good or bad by chance, and more probes do not change that."""
    for seed in range(5):
        X, y = np.random.default_rng(seed).standard_normal((150, 20)), np.arange(150) % 2
        daf = DAF(criterion=criterion, max_probe_size=10, stop=MaxProbes(1500), random_state=seed).fit(X, y)
        assert daf.run_.redundancy() == daf.run_.redundancy(X) == []


def test_madelon_with_a_copy():
    data = make_madelon(400, 50, random_state=1)
    X, y = data.X.copy(), data.y
    best = DAF(stop=MaxProbes(1500), random_state=0).fit(X, y)
    original, spare = int(np.argmin(best.ranking_)), int(np.argmax(best.ranking_))
    X[:, spare] = X[:, original]
    daf = DAF(max_probe_size=25, stop=MaxProbes(2500), random_state=0).fit(X, y)
    held = [group for group in daf.run_.redundancy(X) if original in group.features]
    assert len(held) == 1
    assert spare in held[0].features


def test_likeness_is_overruled_by_a_difference_that_helps_but_for_the_very_same():
    found = made({(0, 1): 0.5, (0, 2): -0.01})
    alike = np.full((3, 3), 0.95)
    assert [group.names for group in found.groups(alike)] == [("a", "c")]
    same = np.where(np.eye(3, dtype=bool), 1, np.ones((3, 3)))
    assert [group.names for group in found.groups(same)] == [("a", "b", "c")]
    assert found.groups() == []


def test_members_are_held_against_the_first_so_that_chains_do_not_form():
    chain = np.eye(4)
    for first in range(3):
        chain[first, first + 1] = chain[first + 1, first] = 0.95
    groups = made({}, n=4).groups(chain)
    assert [group.names for group in groups] == [("a", "b"), ("c", "d")]
    assert groups[0].features == (0, 10)


def test_most_of_the_worth_must_be_gone_and_there_must_be_some():
    assert made({(0, 1): -0.095}, worth=0.1).groups() == [Group((0, 10), ("a", "b"), ("probes",))]
    assert made({(0, 1): -0.08}, worth=0.1).groups() == []
    assert made({(0, 1): -0.095}, worth=0.1, p=0.2).groups() == []
    assert made({(0, 1): -0.095}, worth=0.015).groups() == []
    lucky = made({(0, 1): -0.095}, worth=0.1, beyond=False)
    assert lucky.groups() == lucky.groups(np.full((2, 2), 0.4)) == []
    assert lucky.groups(np.full((2, 2), 0.6)) == [Group((0, 10), ("a", "b"), ("probes",))]


def test_evidence_is_told_for_each_member():
    found = made({(0, 1): -0.1, (0, 2): -0.1})
    alike = np.eye(4)
    alike[0, [2, 3]] = alike[[2, 3], 0] = 0.99
    (group,) = found_with(found, 4).groups(alike)
    assert (group.names, group.evidence) == (("a", "b", "c", "d"), ("probes", "both", "columns"))
    assert str(group) == "a, b, c and d are redundant; a alone is enough"


def found_with(found, n):
    return made({(0, 1): float(found.contrast[0, 1]), (0, 2): float(found.contrast[0, 2])}, n=n)


# ---- columns and tables


def test_correlations_are_absolute_and_know_gaps_and_constants():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((60, 4))
    values[:, 1], values[:, 3] = -values[:, 0], 2.0
    expected = np.abs(np.corrcoef(values[:, :3].T))
    np.testing.assert_allclose(correlations(values)[:3, :3], expected, atol=1e-12)
    assert np.isnan(correlations(values)[3]).all()
    gaps = values.copy()
    gaps[:20, 2] = np.nan
    np.testing.assert_allclose(correlations(gaps)[0, 2], abs(np.corrcoef(values[20:, [0, 2]].T)[0, 1]))
    assert correlations(gaps)[0, 1] == pytest.approx(1)


def test_any_table_gives_the_same_groups(tmp_path):
    X, y = with_copies(0, 0.1)
    daf = DAF(criterion="linear", max_probe_size=15, stop=MaxProbes(1500), random_state=0).fit(X, y)
    expected = daf.run_.redundancy(X)
    assert len(expected) == 1
    np.save(tmp_path / "X.npy", X)
    for table in (X.tolist(), sp.csr_array(X), np.load(tmp_path / "X.npy", mmap_mode="r")):
        assert daf.run_.redundancy(table) == expected
    with pytest.raises(ValueError, match="X has 7 columns, but the run has 30 features"):
        daf.run_.redundancy(X[:, :7])


def test_what_cannot_be_asked(tmp_path):
    X, y = with_copies(0, 0.1)
    daf = DAF(stop=MaxProbes(100), random_state=0).fit(X, y)
    for top in (1, 0, 2.5, True):
        with pytest.raises(ValueError, match=f"top={top} must be a whole number of at least 2"):
            daf.run_.interactions(top=top)
