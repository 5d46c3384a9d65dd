"""The built-in k-NN equals scikit-learn's on the same folds, and the literal twin where distances tie."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import LeaveOneOut, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import naive
from probewise.criteria import KNN
from probewise.engine.probes import ProbePlan, Subsets


def table(n=120, d=30, n_classes=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.standard_normal((n, d)) * 10 + 40
    X[:, : d // 2] += 6 * y[:, None] * rng.uniform(size=d // 2)
    X[:, 3] = 7  # constant
    X[:, 4] = X[:, 5]  # duplicate
    return (np.rint(X) if np.dtype(dtype).kind in "iu" else X).astype(dtype), y


SUBSETS = ProbePlan(30, max_size=25, seed=1).draw(0, 6)
FEW = ProbePlan(30, max_size=25, seed=1).draw(0, 3)


def by_sklearn(estimator, X, y, subsets, cv=3, **options):
    return [cross_val_score(estimator, X[:, s], y, cv=cv, **options).mean() for s in subsets]


@pytest.mark.matrix
@pytest.mark.parametrize("n_classes", [2, 3, 10, 33, 50])
@pytest.mark.parametrize("n_neighbors", [1, 3, 7])
def test_accuracy_equals_sklearn(n_classes, n_neighbors):
    X, y = table(n=max(120, 3 * n_classes), n_classes=n_classes)
    ours = KNN(n_neighbors, task="classification").bind(X, y, cv=3)(SUBSETS)
    reference = KNeighborsClassifier(n_neighbors, algorithm="brute")
    np.testing.assert_allclose(ours, by_sklearn(reference, X, y, SUBSETS), rtol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_any_layout_gives_the_same(make):
    X, y = table()
    X[np.abs(X - 40) < 8] = 0
    expected = KNN().bind(X, y)(SUBSETS)
    layout = make(X)
    before = layout.copy()
    np.testing.assert_allclose(KNN().bind(layout, y)(SUBSETS), expected, rtol=1e-12)
    assert (abs(layout - before)).sum() == 0
    np.testing.assert_allclose(KNN().bind(X[::1, :], y)(SUBSETS), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.int64, bool])
def test_any_number_type_equals_the_twin(dtype):
    """Integers tie often: keys decide, as in the twin."""
    X, y = table(n=60)
    X = (X > 42) if dtype is bool else np.rint(X / 4).astype(dtype)
    splits = list(StratifiedKFold(3).split(X, y))
    expected = [naive.knn_score(X[:, s].astype(float), y, splits, 3, True) for s in SUBSETS]
    np.testing.assert_allclose(KNN().bind(X, y)(SUBSETS), expected, rtol=1e-12)


def test_float32_far_from_zero_keeps_its_digits():
    X, y = table()
    shifted = (X + 1e5).astype(np.float32)
    reference = KNeighborsClassifier(3, algorithm="brute")
    expected = by_sklearn(reference, shifted.astype(np.float64), y, SUBSETS)
    np.testing.assert_allclose(KNN().bind(shifted, y)(SUBSETS), expected, atol=1.5 / 120)


def test_float32_ordinary_data_equals_sklearn():
    X, y = table(dtype=np.float32)
    expected = by_sklearn(KNeighborsClassifier(3, algorithm="brute"), X, y, SUBSETS)
    np.testing.assert_allclose(KNN().bind(X, y)(SUBSETS), expected, rtol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_regression_equals_sklearn(make):
    X, y = table()
    target = X[:, 0] + 0.5 * np.random.default_rng(0).standard_normal(len(y))
    expected = by_sklearn(KNeighborsRegressor(3, algorithm="brute"), X, target, SUBSETS)
    np.testing.assert_allclose(KNN().bind(make(X), target)(SUBSETS), expected, rtol=1e-9)


def test_a_whole_number_target_can_be_a_quantity():
    X, y = table(n_classes=40)
    expected = by_sklearn(KNeighborsRegressor(3, algorithm="brute"), X, y, SUBSETS)
    np.testing.assert_allclose(KNN(task="regression").bind(X, y)(SUBSETS), expected, rtol=1e-9)


def test_more_features_than_rows_and_many_rows():
    X, y = table(n=20, d=200)
    subsets = ProbePlan(200, seed=0).draw(0, 5)
    expected = by_sklearn(KNeighborsClassifier(3, algorithm="brute"), X, y, subsets)
    np.testing.assert_allclose(KNN().bind(X, y)(subsets), expected)
    X, y = table(n=1111, n_classes=2)
    expected = by_sklearn(KNeighborsClassifier(3, algorithm="brute"), X, y, SUBSETS)
    np.testing.assert_allclose(KNN().bind(X, y)(SUBSETS), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "y", "words"),
    [
        ({}, np.zeros(120), "only one class"),
        ({"n_neighbors": 81}, None, "n_neighbors=81 must be from 1 to"),
        ({"n_neighbors": 0}, None, "n_neighbors=0"),
        ({"task": "ranking"}, None, "task='ranking'"),
        ({}, np.array([0] * 118 + [1, 1]), "class 1 has n_samples=2, fewer than cv=3"),
        ({}, np.zeros((120, 2)), "y has only one value"),
    ],
)
def test_bad_input_is_named(options, y, words):
    X, labels = table()
    with pytest.raises(ValueError, match=words):
        KNN(**options).bind(X, labels if y is None else y)


@pytest.mark.matrix(times=3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [7, 31, 33, 64, 500, 1300])
@pytest.mark.parametrize("n_neighbors", [1, 2, 8, 12])
def test_neighbors_are_found_at_every_tile_and_lane_border(dtype, n, n_neighbors):
    """Whole numbers, so that ties are many and exact; against the twin's sort by (distance, key)."""
    rng = np.random.default_rng(n)
    X = rng.integers(0, 6, (n, 4)).astype(dtype)
    y = rng.permutation(np.arange(n) % 2)
    if n_neighbors > n // 3:
        return
    splits = list(StratifiedKFold(3).split(X, y))
    keys, twins = np.array(naive.tie_keys(n)), []
    for train, test in splits:
        distances = ((X[test][:, None] - X[train][None]) ** 2).sum(axis=2)
        near = np.take(train, np.lexsort((keys[test][:, None] ^ keys[train], distances))[:, :n_neighbors])
        votes = y[near].mean(axis=1)
        twins.append(np.mean((votes > 0.5) == y[test]))
    ours = KNN(n_neighbors).bind(X, y)(Subsets.of([range(4)]))
    np.testing.assert_allclose(ours, [np.mean(twins)], rtol=1e-12)


def made(kind, n, d=40):
    rng = np.random.default_rng(5)
    if kind == "normal":
        return rng.standard_normal((n, d))
    if kind == "tenths":  # not whole, and full of ties
        return rng.integers(0, 3, (n, d)) / 10
    if kind == "whole":
        return rng.integers(0, 3, (n, d)).astype(float)
    if kind == "copies":  # every row three times
        return np.repeat(rng.standard_normal((n // 3 + 1, d)), 3, axis=0)[:n]
    if kind == "heavy tails":
        return rng.standard_cauchy((n, d))
    if kind == "one wide column":
        return rng.standard_normal((n, d)) * np.where(np.arange(d) == 9, 1e6, 1.0)
    if kind == "one row far off":
        return rng.standard_normal((n, d)) + np.where(np.arange(n) == 17, 1e6, 0.0)[:, None]
    return np.full((n, d), 0.3)  # constant


@pytest.mark.parametrize(
    "kind", ["normal", "tenths", "whole", "copies", "heavy tails", "one wide column", "one row far off", "constant"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [160, 533])
def test_comparing_each_pair_of_rows_once_changes_nothing(kind, dtype, n, monkeypatch):
    """Tables with many rows are searched in pairs; here across the borders of tiles, with folds of different sizes."""
    monkeypatch.setattr("probewise.criteria.knn.FEWEST_ROWS", 1)
    X = made(kind, n).astype(dtype)
    y = np.random.default_rng(1).integers(0, 3, n)
    subsets = ProbePlan(40, max_size=40, seed=2).draw(0, 12)
    score = KNN().bind(X, y)
    assert score.layout.in_pairs
    in_pairs = score(subsets)
    monkeypatch.setattr("probewise.criteria.knn.FEWEST_ROWS", 10**9)
    apart = KNN().bind(X, y)
    assert not apart.layout.in_pairs
    np.testing.assert_array_equal(in_pairs, apart(subsets))


@pytest.mark.parametrize("scoring", ["accuracy", "probability"])
def test_the_order_of_rows_has_no_effect_where_distances_tie(scoring):
    """Rows sorted by class, features of two values: if ties went to the lowest row, J would be that of chance."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 150)
    X = (rng.random((300, 16)) < np.where(y[:, None] == 1, 0.85, 0.15)).astype(float)
    X[:, 8:] = 1.0  # not informative
    alone = Subsets.of([[feature, *range(8, 16)] for feature in range(8)])
    ours = KNN().bind(X, y, scoring=scoring)(alone)
    mixed = rng.permutation(300)
    assert ours.mean() > (0.73 if scoring == "accuracy" else 0.7)
    assert abs(ours.mean() - KNN().bind(X[mixed], y[mixed], scoring=scoring)(alone).mean()) < 0.03


WIDE = {
    "sentinel": lambda X: np.where((np.arange(len(X))[:, None] % 5 == 0) & (np.arange(12) == 2), -999_999_999.0, X),
    "offset": lambda X: X + 1e9,
    "scales": lambda X: X * 10.0 ** np.linspace(-6, 6, 12),
    "large whole numbers": lambda X: np.rint(3000 * X),
    "huge": lambda X: X * 1e30,
    "tiny": lambda X: X * 1e-30,
    "one far row": lambda X: X + np.where(np.arange(len(X))[:, None] == 7, 1e12, 0.0),
    "two values far apart": lambda X: np.where(np.arange(12) < 6, 1e5 * (X > 0), X),
}


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_neighbors", [3, 9])
@pytest.mark.parametrize("way", ["folds", "pairs", "loo", "soft"])
def test_neighbors_are_those_of_exact_distances(kind, dtype, make, n_neighbors, way, monkeypatch):
    """In folds, in pairs of rows, with one row left out, and as probabilities."""
    n = 150 if way == "pairs" else 60
    monkeypatch.setattr("probewise.criteria.knn.FEWEST_ROWS", 1 if way == "pairs" else 10**9)
    rng = np.random.default_rng(2)
    y = rng.permutation(np.arange(n) % 3)
    X = WIDE[kind](rng.standard_normal((n, 12)) + y[:, None]).astype(dtype)
    subsets = Subsets.of([np.arange(12), [2, 5, 7], [0, 1, 2, 3, 8, 9, 10, 11]])
    soft = way == "soft"
    ours = KNN(n_neighbors).bind(make(X), y, "loo" if way == "loo" else 3, scoring="probability" if soft else None)(
        subsets
    )
    splits = list(LeaveOneOut().split(X) if way == "loo" else StratifiedKFold(3).split(X, y))
    twin = naive.soft_knn if soft else lambda *args: naive.knn_score(*args, True)
    expected = [twin(X[:, s].astype(np.float64), y, splits, n_neighbors) for s in subsets]
    np.testing.assert_allclose(ours, expected, rtol=1e-3 if soft and dtype == np.float32 else 1e-7)
