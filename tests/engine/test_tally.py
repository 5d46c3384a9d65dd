"""Tallies keep their digits, and give the papers' coefficients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import naive
from probewise.engine.ledger import Ledger
from probewise.engine.probes import ProbePlan, Subsets
from probewise.engine.tally import Tally, positions, size_deviations, size_scaled_tally


def probes(n_features=12, max_size=6, n=300, seed=0, scale=1.0, level=0.0):
    subsets = ProbePlan(n_features, max_size=max_size, seed=seed).draw(0, n)
    values = level + scale * np.random.default_rng(seed).uniform(size=n)
    return subsets, values


@pytest.mark.parametrize("n", [1, 2, 5, 300])
def test_coefficients_equal_the_twin(n):
    subsets, values = probes(n=n)
    tally = Tally.of(subsets, values, 12, shift=0.4)
    np.testing.assert_allclose(tally.daf0(), naive.daf0(subsets, values, 12), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(tally.std_errors(), naive.welch(subsets, values, 12), rtol=1e-9, atol=1e-9)
    least = naive.coverage(subsets, 12)
    assert [tally.covers(number) for number in (least, least + 1)] == [True, False]
    assert tally.mean == pytest.approx(np.mean(values))
    if n >= 300:
        np.testing.assert_allclose(tally.daf1(), naive.daf1(subsets, values, 12), rtol=1e-12)
        spread = naive.daf0(subsets, values, 12) / naive.daf1(subsets, values, 12)
        np.testing.assert_allclose(tally.std_errors("daf1"), naive.welch(subsets, values, 12) / spread, rtol=1e-10)


@pytest.mark.parametrize(("n", "max_size"), [(20, 6), (300, 6), (2000, 6), (400, 40)])
def test_daf2_equals_the_twin(n, max_size):
    plan = ProbePlan(50, max_size=max_size, seed=3)
    subsets = plan.draw(0, n)
    values = np.random.default_rng(0).uniform(size=n) * (1 + subsets.sizes)
    ledger = Ledger()
    ledger.append(values, seconds=0)
    np.testing.assert_allclose(
        size_scaled_tally(plan, ledger).daf0(), naive.daf2(subsets, values, 50), rtol=1e-9, atol=1e-12
    )


def test_sizes_that_never_vary_are_pooled_with_their_neighbors():
    subsets = Subsets.of([[0]] * 50 + [[0, 1]] * 50)
    values = np.array([1.0] * 50 + [0.0, 1.0] * 25)
    deviations = size_deviations([(subsets, values)], 2)
    assert deviations[2] == pytest.approx(0.5)
    assert deviations[1] == pytest.approx(np.std(values))
    assert size_deviations([(subsets, np.ones(100))], 2).tolist() == [1, 1, 1]


def test_a_feature_never_in_or_never_out_has_no_coefficient():
    tally = Tally.of(Subsets.of([[0, 1], [0]]), np.array([0.5, 0.75]), 3)
    assert np.isnan(tally.daf0()).tolist() == [True, False, True]
    assert np.isnan(tally.std_errors()).tolist() == [True, False, True]
    assert np.isnan(tally.daf1()).tolist() == [True, False, True]


def test_a_large_level_loses_no_digits():
    """Values 10^9 times their spread: the shift keeps the spread."""
    subsets, values = probes(n=1000, level=1e9)
    tally = Tally.of(subsets, values, 12, shift=float(values[0]))
    exact = naive.daf0(subsets, values - 1e9, 12)
    np.testing.assert_allclose(tally.daf0(), exact, atol=1e-9)
    np.testing.assert_allclose(tally.std_errors(), naive.welch(subsets, values - 1e9, 12), rtol=1e-5)


def test_positions_break_ties_by_the_lower_index_and_put_nan_last():
    scores = np.array([0.5, np.nan, 0.9, 0.5, -np.inf, np.nan])
    assert positions(scores).tolist() == [1, 4, 0, 2, 3, 5]
    assert np.argsort(positions(scores)).tolist() == naive.order(scores)


# ---- positions


def by_stable_sort(scores):
    order = np.argsort(-scores, kind="stable")
    places = np.empty(len(scores), np.int64)
    places[order] = np.arange(len(scores))
    return places


@given(arrays(np.float64, st.integers(0, 60), elements=st.floats(allow_nan=True, allow_infinity=True, width=64)))
def test_any_numbers(scores):
    np.testing.assert_array_equal(positions(scores), by_stable_sort(scores))


@pytest.mark.parametrize("spread", [0.0, 1e-12, 1e-9, 1.0])
@pytest.mark.parametrize("n", [1, 17, 3000])
def test_close_numbers_and_ties(spread, n):
    rng = np.random.default_rng(n)
    scores = 1.0 + spread * rng.integers(-500, 500, n)
    scores[rng.random(n) < 0.1] = np.nan
    scores[rng.random(n) < 0.1] = -0.0
    np.testing.assert_array_equal(positions(scores), by_stable_sort(scores))
    np.testing.assert_array_equal(positions(scores[::2]), by_stable_sort(scores[::2]))
