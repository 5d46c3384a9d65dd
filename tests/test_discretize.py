"""Cut points: the optimum equals its twin, greedy and MDL follow their papers, and codes apply to new data."""

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive
from probewise.discretize import Discretizer, cut_points, encode
from probewise.executors import threads
from probewise.information import balanced_gain
from sampling import examples


@parametrize_with_checks([Discretizer(), Discretizer("sigma")])
def test_sklearn_checks(estimator, check):
    check(estimator)


@st.composite
def columns(draw, max_rows=13):
    n = draw(st.integers(2, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.integers(0, draw(st.integers(1, 20)), n) / draw(st.sampled_from([1, 3, 7]))
    return x, np.unique(rng.integers(0, draw(st.integers(2, 4)), n), return_inverse=True)[1]


def gain(x, y, cuts):
    return naive.balanced_gain(naive.interval_codes(x, cuts), y)


@examples(300)
@given(columns())
def test_optimal_is_the_best_of_every_multisplit(data):
    x, y = data
    (cuts,) = cut_points(x[:, None], y, "optimal")
    assert gain(x, y, cuts) == pytest.approx(gain(x, y, naive.optimal_cuts(x, y.tolist())), abs=1e-9)
    assert set(cuts.round(9)) <= set(np.round(naive.possible_cuts(x, y.tolist()), 9))


@examples(300)
@given(columns(max_rows=30))
@pytest.mark.parametrize("method", ["greedy", "mdl"])
def test_greedy_and_mdl_equal_their_twins(method, data):
    x, y = data
    (cuts,) = cut_points(x[:, None], y, method)
    expected = getattr(naive, f"{method}_cuts")(x, y.tolist())
    np.testing.assert_allclose(cuts, expected, atol=1e-12)


def best_by_size(x, y):
    """The largest balanced gain by dynamic programming over all sizes, without any shortcut."""
    edges = [-np.inf, *naive.possible_cuts(x, y), np.inf]
    n, blocks = len(x), len(edges) - 1
    labels = np.unique(y)
    counts = np.array([[np.sum((x < edge) & (y == c)) for c in labels] for edge in edges])

    def cost(i, j):
        c = counts[j] - counts[i]
        c = c[c > 0]
        return c.sum() * np.log2(c.sum()) - (c * np.log2(c)).sum()

    costs = np.array([[cost(i, j) if i < j else np.inf for j in range(blocks + 1)] for i in range(blocks + 1)])
    least, best = costs[0], 0.0
    for kappa in range(2, blocks + 1):
        least = np.min(least[:, None] + costs, axis=0)
        best = max(best, (costs[0, blocks] - least[blocks]) / n / np.log2(kappa))
    return best


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_optimal_at_a_hundred_blocks_and_more(strength, n_classes):
    rng = np.random.default_rng(int(10 * strength) + n_classes)
    for shape in ("shift", "wave"):
        y = rng.integers(0, n_classes, 150)
        x = rng.standard_normal(150) + (strength * y if shape == "shift" else strength * np.sin(7 * y))
        x = np.concatenate([x, -x[:20] * 2])
        y = np.concatenate([y, y[:20]])
        (cuts,) = cut_points(x[:, None], y, "optimal")
        assert gain(x, y.tolist(), cuts) == pytest.approx(best_by_size(x, y), abs=1e-9)


@pytest.mark.slow
def test_optimal_of_a_coarse_search_is_the_best_of_a_fine_one():
    """Long columns are searched by cells; no other partition tried is better."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 4000)
    centers = np.array([[-2, 1], [0, 3], [-1, 2.5]])
    x = centers[y, rng.integers(0, 2, 4000)] + 0.4 * rng.standard_normal(4000)
    X = np.stack([x, rng.standard_normal(4000), rng.standard_normal(4000) + 0.5 * y], axis=1)
    best = [balanced_gain(encode(X, cut_points(X, y, m)), y) for m in ("optimal", "greedy", "mdl", "mean", 4)]
    assert all((best[0] >= other - 1e-12).all() for other in best[1:])
    (cuts,) = cut_points(X[:, :1], y, "optimal")
    base = gain(x, y.tolist(), cuts)
    possible = np.array(naive.possible_cuts(x, y.tolist()))
    for place in range(len(cuts)):
        for move in (-200, -30, -3, -1, 1, 3, 30, 200):
            moved = cuts.copy()
            moved[place] = possible[np.clip(np.searchsorted(possible, cuts[place]) + move, 0, len(possible) - 1)]
            assert gain(x, y.tolist(), np.sort(moved)) <= base + 1e-12


def test_iris():
    X, y = load_iris(return_X_y=True)
    cuts = cut_points(X, y, "optimal")
    np.testing.assert_allclose([c[0] for c in cuts], [5.55, 3.35, 2.45, 0.8])
    gains = balanced_gain(encode(X, cuts), y)
    np.testing.assert_allclose(gains, [0.557233, 0.283126, 0.918296, 0.918296], atol=5e-7)


@pytest.mark.matrix
@pytest.mark.parametrize("method", ["optimal", "greedy", "mdl", "mean", "sigma", 5])
@pytest.mark.parametrize("make", [np.asfortranarray, sp.csc_matrix, lambda X: X.astype(np.float32)])
def test_any_layout_and_any_number_of_threads(method, make):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (70, 30)) * rng.integers(0, 2, (70, 30)) / 1.0
    y = rng.integers(0, 3, 70)
    one = cut_points(X, y, method)
    for other in (cut_points(make(X), y, method), cut_points(X, y, method, map=threads(3))):
        assert one.values.tobytes() == other.values.tobytes()
        assert one.offsets.tobytes() == other.offsets.tobytes()
    codes = [encode(data, one, map=threads(2)) for data in (X, make(X))]
    expected = np.stack([np.searchsorted(one[c], X[:, c], side="left") for c in range(30)])
    for coded in codes:
        np.testing.assert_array_equal(np.stack([coded.column(c) for c in range(30)]), expected)


def test_levels_at_the_mean_and_one_deviation():
    x = np.array([[0.0], [1.0], [2.0], [3.0], [14.0]])  # mean 4, deviation 5.099
    assert Discretizer("mean").fit_transform(x).ravel().tolist() == [0, 0, 0, 0, 1]
    assert Discretizer("sigma").fit_transform(x).ravel().tolist() == [1, 1, 1, 1, 2]
    edges = np.array([[-1.0], [1.0], [-1.0], [1.0]])  # exactly one deviation away, but few values are levels
    assert Discretizer("sigma").fit_transform(edges).ravel().tolist() == [0, 1, 0, 1]
    assert Discretizer("sigma").fit_transform(np.full((3, 1), 7.0)).ravel().tolist() == [0, 0, 0]
    assert Discretizer(4).fit_transform(np.arange(9.0)[:, None]).ravel().tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3]


@examples(200)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=20), st.integers(0, 25), st.sampled_from([0, -3, 2**40]))
@pytest.mark.parametrize("method", ["mean", "sigma", 2, 4])
def test_levels_equal_their_twin(method, values, n_common, offset):
    """Values on a border, few values, one that most rows have: the same rows are in one level."""
    x = [value + offset for value in [*values, *[values[0]] * n_common]]
    levels = Discretizer(method).fit_transform(np.array(x, dtype=float)[:, None]).ravel().tolist()
    expected = naive.levels(x, method)
    assert len(set(zip(levels, expected, strict=True))) == len(set(levels)) == len(set(expected))


def test_cut_points_apply_to_new_data():
    X, y = load_iris(return_X_y=True)
    fitted = Discretizer().fit(X, y)
    assert fitted.transform([[5.55, 0, 2.46, -1e9], [5.551, 9, 2.45, 1e9]]).tolist() == [[0, 0, 1, 0], [1, 1, 0, 1]]
    assert fitted.transform(X).max(axis=0).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_what_is_discrete_is_used_as_it_is(frame):
    rng = np.random.default_rng(1)
    colours = rng.choice(["red", "green", "blue", "grey"], 60)
    data = {"colour": colours, "flag": rng.random(60) < 0.5, "count": rng.integers(0, 6, 60), "size": rng.random(60)}
    y = rng.integers(0, 2, 60)
    if frame == "pandas":
        X = pd.DataFrame(data).astype({"colour": "category"})
    else:
        X = polars.DataFrame(data).with_columns(polars.col("colour").cast(polars.Categorical))
    before = X.copy() if frame == "pandas" else X.clone()
    fitted = Discretizer("optimal").fit(X, y)
    codes = fitted.transform(X)
    assert len(fitted.cut_points_[0]) == 3
    assert len({(a, b) for a, b in zip(codes[:, 0], colours, strict=True)}) == 4
    assert codes[:, 1].tolist() == data["flag"].astype(int).tolist()
    told = Discretizer("optimal", discrete_features=["count"]).fit(X, y)
    assert told.transform(X)[:, 2].tolist() == data["count"].tolist()
    assert X.equals(before)
    numbers = np.asarray(data["count"])[:, None]
    assert Discretizer("optimal", discrete_features=True).fit_transform(numbers, y).ravel().tolist() == list(
        numbers[:, 0]
    )


def test_adjacent_numbers_are_distinguished():
    low = 1.0
    high = np.nextafter(low, 2)
    x = np.array([low] * 5 + [high] * 5)[:, None]
    assert Discretizer("greedy").fit_transform(x, [0] * 5 + [1] * 5).ravel().tolist() == [0] * 5 + [1] * 5


def test_bad_input():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="method='best' must be 'optimal'"):
        Discretizer("best").fit(X, y)
    with pytest.raises(ValueError, match="method=1 must be"):
        Discretizer(1).fit(X, y)
    with pytest.raises(ValueError, match=r"discrete_features=\[9\] with 4 features"):
        Discretizer(discrete_features=[9]).fit(X, y)
    with pytest.raises(ValueError, match="y is continuous"):
        Discretizer().fit(X, X[:, 0] + 0.123)
    with pytest.raises(ValueError, match="NaN or infinity in 2 of 4"):
        Discretizer().fit(np.where(X == 5.1, np.nan, X), y)
    missing = pd.DataFrame({"a": pd.Categorical(["x", None, "y"])})
    with pytest.raises(ValueError, match=r"NaN or infinity in 1 of 1 columns \('a'\)"):
        Discretizer("mean").fit(missing)
