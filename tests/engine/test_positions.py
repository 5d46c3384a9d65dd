"""`positions` equals a stable descending sort, for every kind of number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from probewise.engine.tally import positions


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
