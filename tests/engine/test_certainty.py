"""Certainty: intervals and probabilities have the stated properties and hold as often as stated."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from probewise import DAF
from probewise.datasets import make_madelon
from probewise.engine.certainty import Certainty, moderated_errors
from probewise.engine.ledger import Ledger
from probewise.engine.probes import ProbePlan
from probewise.engine.tally import Tally, positions
from probewise.stopping import MaxProbes

sys.path.insert(0, str(Path(__file__).parents[2]))
trust = pytest.importorskip("benchmarks.trust")


def example(n_features=40, seed=0, error=0.3):
    rng = np.random.default_rng(seed)
    errors = error * rng.uniform(0.8, 1.2, n_features)
    return Certainty(rng.normal(size=n_features) + errors * rng.normal(size=n_features), errors)


def sampled(posterior, n_samples=20_000, seed=0):
    """True ranks drawn at random from the posterior of each feature."""
    rng = np.random.default_rng(seed)
    chances = np.cumsum(posterior.probabilities[posterior.bins.of_feature], axis=1)
    cells = (rng.random((n_samples, len(chances), 1)) > chances).sum(axis=2)
    truths = cells + rng.random(cells.shape)
    return (-truths).argsort(axis=1).argsort(axis=1) + 1


certainties = st.builds(
    lambda values, errors: Certainty(values[: len(errors)], errors[: len(values)]),
    st.lists(st.floats(-5, 5) | st.just(float("nan")), min_size=1, max_size=30),
    st.lists(st.floats(0, 3), min_size=1, max_size=30),
)


@given(certainties, st.integers(1, 30))
def test_chances_and_ranks_are_such_as_can_be(certainty, k):
    k = min(k, certainty.n_features)
    chances = certainty.in_top(k)
    assert chances.sum() == pytest.approx(k)
    assert chances.min() >= 0
    assert chances.max() <= 1 + 1e-12
    low, high = certainty.rank_intervals().T
    assert low.min() >= 1
    assert (low <= high).all()
    assert high.max() <= certainty.n_features


@pytest.mark.parametrize("n_features", [2, 5, 40])
@pytest.mark.parametrize("error", [0.05, 0.3, 2.0])
def test_ranks_are_those_of_truths_drawn_from_the_posterior(n_features, error):
    certainty = example(n_features, error=error)
    ranks, k = sampled(certainty._posterior), max(1, n_features // 4)
    np.testing.assert_allclose(certainty.in_top(k), (ranks <= k).mean(axis=0), atol=0.04)
    low, high = certainty.rank_intervals(0.9).T
    assert ((ranks >= low) & (ranks <= high)).mean(axis=0).min() > 0.86


def test_permuted_columns_give_permuted_answers():
    certainty, order = example(), np.random.default_rng(1).permutation(40)
    other = Certainty(certainty.coefficients[order], certainty.std_errors[order])
    np.testing.assert_array_equal(other.rank_intervals(), certainty.rank_intervals()[order])
    np.testing.assert_array_equal(other.in_top(7), certainty.in_top(7)[order])


def test_other_units_and_zeros_change_nothing():
    certainty = example()
    other = Certainty(1000 * certainty.coefficients + 77, 1000 * certainty.std_errors)
    np.testing.assert_allclose(other.in_top(7), certainty.in_top(7), atol=0.02)
    np.testing.assert_allclose(other.rank_intervals(), certainty.rank_intervals(), atol=1)


def test_smaller_errors_give_narrower_answers():
    sharp, blurred = example(error=0.1), example(error=1.0)
    for level in (0.5, 0.95):
        assert np.ptp(sharp.intervals(level), axis=1).sum() < np.ptp(blurred.intervals(level), axis=1).sum()
        assert np.ptp(sharp.rank_intervals(level), axis=1).sum() < np.ptp(blurred.rank_intervals(level), axis=1).sum()
    assert sharp.in_top(10).max() > blurred.in_top(10).max()


def test_higher_levels_hold_lower_ones():
    certainty = example()
    for ask in (certainty.intervals, certainty.rank_intervals):
        narrow, wide = ask(0.5), ask(0.9)
        assert (wide[:, 0] <= narrow[:, 0]).all()
        assert (narrow[:, 1] <= wide[:, 1]).all()


def test_intervals_are_normal():
    low, high = Certainty([1.0], [0.5]).intervals(0.95)[0]
    assert (low, high) == pytest.approx((1 - 1.959964 * 0.5, 1 + 1.959964 * 0.5))


def test_features_never_judged_are_last_and_change_nothing_for_others():
    judged = example(10)
    values, errors = (np.insert(part, [0, 5, 5], np.nan) for part in (judged.coefficients, judged.std_errors))
    certainty, known = Certainty(values, errors), np.isfinite(values)
    assert np.isnan(certainty.intervals()[~known]).all()
    np.testing.assert_array_equal(certainty.rank_intervals()[~known], [[11, 13]] * 3)
    np.testing.assert_array_equal(certainty.rank_intervals()[known], judged.rank_intervals())
    np.testing.assert_array_equal(certainty.in_top(4)[known], judged.in_top(4))
    np.testing.assert_array_equal(certainty.in_top(4)[~known], 0)
    np.testing.assert_allclose(certainty.in_top(11)[~known], 1 / 3)


def test_nothing_judged_at_all():
    certainty = Certainty([np.nan] * 4, [np.nan] * 4)
    np.testing.assert_array_equal(certainty.rank_intervals(), [[1, 4]] * 4)
    np.testing.assert_allclose(certainty.in_top(1), 0.25)


def test_one_feature():
    certainty = Certainty([0.3], [0.1])
    assert certainty.rank_intervals().tolist() == [[1, 1]]
    assert certainty.in_top(1).tolist() == [1.0]


@pytest.mark.parametrize("error", [0.0, 0.1])
def test_of_equal_features_every_rank_is_possible(error):
    certainty = Certainty(np.full(50, 0.2), np.full(50, error))
    np.testing.assert_allclose(certainty.in_top(10), 0.2)
    np.testing.assert_array_equal(certainty.rank_intervals(0.8), [[6, 45]] * 50)


def test_without_errors_the_order_is_certain():
    values = np.random.default_rng(0).normal(size=60)
    certainty = Certainty(values, np.zeros(60))
    np.testing.assert_array_equal(certainty.rank_intervals(), np.tile(positions(values) + 1, (2, 1)).T)
    np.testing.assert_allclose(certainty.in_top(7), positions(values) < 7, atol=1e-6)


def test_many_features_are_judged_by_bins():
    few, many = example(300), example(300)
    copies = Certainty(np.tile(many.coefficients, 100), np.tile(many.std_errors, 100))
    np.testing.assert_allclose(copies.in_top(3000)[:300], few.in_top(30), atol=0.03)
    assert (copies.rank_intervals() <= 30_000).all()


def test_the_table_is_best_first():
    certainty = Certainty([0.1, 0.9, np.nan, 0.5], [0.1, 0.1, 0.1, 0.1])
    table = certainty.table(["a", "b", "c", "d"], top=2)
    assert table["feature"] == ["b", "d", "a", "c"]
    assert table["rank"].tolist() == [1, 2, 3, 4]
    assert table["in_top"][:2].tolist() == certainty.in_top(2)[[1, 3]].tolist()
    assert {len(column) for column in table.values()} == {4}


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda sure: sure.in_top(0), "k=0 must be a whole number from 1 to the 2 features"),
        (lambda sure: sure.in_top(3), "k=3"),
        (lambda sure: sure.intervals(1.0), "level=1.0 must be above 0 and below 1"),
        (lambda sure: sure.rank_intervals(0), "level=0"),
        (lambda sure: sure.table(["a"]), "names has 1 names, but there are 2"),
    ],
    ids=["no top", "top of more", "level 1", "level 0", "names"],
)
def test_what_cannot_be_asked(ask, told):
    with pytest.raises(ValueError, match=told):
        ask(Certainty([1.0, 2.0], [1.0, 1.0]))


# ---- errors from probes


@pytest.fixture(scope="module")
def played():
    """A plan, a ledger and the tally of 410 probes of a small game."""
    game = trust.sparse(30)
    subsets, values = game.probes(0, 0, 410)
    ledger = Ledger()
    ledger.append(values, seconds=1.0)
    plan = ProbePlan(30, game.largest, seed=1000 * game.seed)
    return plan, ledger, Tally.of(subsets, values, 30, float(values[0]))


@pytest.mark.parametrize("groups", [2, 7, 50])
@pytest.mark.parametrize("coefficient", ["daf0", "daf1"])
def test_jackknife_is_its_twin(played, coefficient, groups):
    plan, ledger, tally = played
    found, errors = trust.jackknife(plan, ledger, 20, groups=groups, coefficient=coefficient)
    np.testing.assert_allclose(found, getattr(tally, coefficient)(), rtol=1e-9)
    subsets = [subset.tolist() for subset in plan.draw(0, 410)]
    twin = naive.jackknife(subsets, ledger.values(), 30, 20, min(groups, 21), getattr(naive, coefficient))
    np.testing.assert_allclose(errors, twin, rtol=1e-6)


def test_jackknife_and_welch_agree(played):
    plan, ledger, tally = played
    errors = trust.jackknife(plan, ledger, 10)[1]
    assert np.mean(errors / tally.std_errors()) == pytest.approx(1, abs=0.1)


def test_jackknife_needs_two_groups(played):
    with pytest.raises(ValueError, match="two groups or more"):
        trust.jackknife(*played[:2], 1000)


def test_steady_errors_are_welchs_where_probes_are_many():
    game = trust.sparse(30)
    tally = Tally.of(*game.probes(0, 0, 5000), 30)
    np.testing.assert_allclose(moderated_errors(tally), tally.std_errors(), rtol=0.02)
    np.testing.assert_allclose(moderated_errors(tally, "daf1"), tally.std_errors("daf1"), rtol=0.02)


def test_a_single_probe_does_not_make_sure():
    plan, values = ProbePlan(500, 10, seed=1), np.random.default_rng(0).normal(size=60)
    tally = Tally.of(plan.draw(0, 60), values, 500)
    once = tally.counts == 1
    assert tally.std_errors()[once].max() < 0.3
    assert moderated_errors(tally)[once].min() > 0.7
    np.testing.assert_array_equal(np.isnan(moderated_errors(tally)), tally.counts == 0)


# ---- in a run


@pytest.fixture(scope="module")
def madelon():
    data = make_madelon(n_samples=120, n_features=30, random_state=0)
    return data.X, data.y


def test_daf_says_how_sure_it_is(madelon):
    daf = DAF(stop=MaxProbes(300), random_state=0).fit(*madelon)
    certainty = daf.run_.certainty()
    np.testing.assert_array_equal(certainty.coefficients, daf.scores_)
    np.testing.assert_allclose(certainty.std_errors, daf.std_errors_, rtol=0.05)
    assert certainty.is_of(daf.ranking_)
    for name in ("daf1", "daf2", "regression"):
        np.testing.assert_array_equal(daf.run_.certainty(name).coefficients, daf.run_.coefficient(name)[0])
        assert daf.run_.certainty(name).in_top(5).sum() == pytest.approx(5)
    with pytest.raises(ValueError, match="coefficient='daf9'"):
        daf.run_.certainty("daf9")


def test_a_ranking_by_more_than_coefficients_is_another():
    certainty = Certainty([0.1, 0.9, 0.5], [0.1, 0.1, 0.1])
    assert certainty.is_of(np.array([3, 1, 2]))
    assert not certainty.is_of(np.array([2, 1, 3]))


# ---- the short form of `python -m benchmarks trust`


def test_the_closed_form_is_the_truth():
    game = trust.sparse(30)
    tally = Tally.of(*game.probes(0, 0, 50_000), 30)
    assert np.std((tally.daf0() - game.truth) / tally.std_errors()) == pytest.approx(1, abs=0.35)


# 30 runs of 100 features are 3,000 intervals: their share has a standard error of about 0.5 points, more with
# what the features of a run have in common. Ranks are promised within 2 points on 200 runs; here are 12.
@pytest.mark.parametrize("make", [trust.sparse, trust.dense, trust.by_size], ids=["sparse", "dense", "by size"])
def test_coefficient_intervals_hold_as_often_as_they_say(make):
    held = trust.coefficient_coverage(make(100), 800, 30)
    for level, share in held.items():
        assert share == pytest.approx(level, abs=0.025)


def test_coefficient_intervals_hold_where_each_feature_was_in_few_probes():
    held = trust.coefficient_coverage(trust.wide(1000), 400, 6)
    for level, share in held.items():
        assert share == pytest.approx(level, abs=0.025)


@pytest.mark.parametrize("make", [trust.sparse, trust.gapped, trust.dense], ids=["sparse", "gapped", "dense"])
def test_rank_intervals_hold_as_often_as_they_say(make):
    held, _, _ = trust.rank_coverage(make(100), 1000, 12)
    for level, share in held.items():
        assert level - 0.04 < share


def test_chances_are_neither_too_bold_nor_too_shy():
    for count, said, true in trust.top_calibration(trust.dense(100), 2000, 30):
        assert said == pytest.approx(true, abs=0.03 + 2 * np.sqrt(said * (1 - said) / count))
