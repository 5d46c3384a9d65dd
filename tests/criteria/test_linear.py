"""The closed form equals scikit-learn's ridge on the same folds, dense and sparse."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import cross_val_score

from probewise.criteria import Linear
from probewise.engine.probes import ProbePlan

SUBSETS = ProbePlan(30, max_size=25, seed=1).draw(0, 6)
FEW = ProbePlan(30, max_size=25, seed=1).draw(0, 3)


def table(n=150, d=30, n_classes=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = 3 * rng.standard_normal((n, d)) + 5
    X[:, : d // 2] += 2 * (y[:, None] == np.arange(d // 2) % n_classes)
    X[:, 3] = 7  # constant
    X[:, 4] = X[:, 5]  # duplicate
    X[np.abs(X) < 2] = 0
    return (np.rint(X) if np.dtype(dtype).kind in "iu" else X).astype(dtype), y


def by_sklearn(estimator, X, y, subsets=SUBSETS, cv=3, **options):
    X = X.toarray() if sp.issparse(X) else X
    X = X.astype(np.float64)
    return [cross_val_score(estimator, X[:, s], y, cv=cv, **options).mean() for s in subsets]


layouts = pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_array])


@pytest.mark.matrix(times=2)
@layouts
@pytest.mark.parametrize("n_classes", [2, 3, 33])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_accuracy_equals_sklearn(make, n_classes, alpha):
    X, y = table(n_classes=n_classes)
    ours = Linear(alpha, task="classification").bind(make(X), y)(SUBSETS)
    np.testing.assert_allclose(ours, by_sklearn(RidgeClassifier(alpha), X, y), rtol=1e-12)


@pytest.mark.matrix
@layouts
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8])
def test_r2_equals_sklearn(make, dtype):
    X, y = table(dtype=dtype)
    target = X[:, 0].astype(float) + np.random.default_rng(0).standard_normal(len(y))
    data = make(X)
    before = data.copy()
    np.testing.assert_allclose(Linear().bind(data, target)(SUBSETS), by_sklearn(Ridge(), X, target), rtol=1e-6)
    assert abs(data - before).sum() == 0


@pytest.mark.matrix
@layouts
@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8])
def test_other_number_types(make, dtype):
    X, y = table(dtype=dtype)
    np.testing.assert_allclose(Linear().bind(make(X), y)(SUBSETS), by_sklearn(RidgeClassifier(), X, y), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_a_class_that_is_not_in_training_is_never_chosen(make, n_classes):
    X, y = table(n=60, n_classes=n_classes)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    splits = [(np.flatnonzero(y != 0), np.flatnonzero(y == 0)), (np.flatnonzero(y == 0), np.flatnonzero(y != 0))]
    ours = Linear().bind(make(X), y, splits)(SUBSETS)
    np.testing.assert_allclose(ours, 0)


def test_more_features_than_rows():
    X, y = table(n=20, d=200)
    subsets = ProbePlan(200, seed=0).draw(0, 5)
    np.testing.assert_allclose(Linear().bind(X, y)(subsets), by_sklearn(RidgeClassifier(), X, y, subsets))
    expected = by_sklearn(Ridge(), X, X[:, 0] + y, subsets)
    np.testing.assert_allclose(Linear(task="regression").bind(X, X[:, 0] + y)(subsets), expected, rtol=1e-8)


def test_a_class_with_as_few_rows_as_folds():
    X, y = table()
    y = np.where(np.arange(150) < 147, y % 2, 2)
    np.testing.assert_allclose(Linear().bind(X, y)(SUBSETS), by_sklearn(RidgeClassifier(), X, y), rtol=1e-12)


def test_columns_far_from_zero_and_of_huge_scale():
    X, y = table()
    target = X[:, 0] + y
    shifted = X + 1e7
    np.testing.assert_allclose(Linear().bind(shifted, target)(SUBSETS), by_sklearn(Ridge(), X, target), rtol=1e-5)
    assert np.isfinite(Linear(1e-9).bind(X * 1e9, y)(SUBSETS)).all()


def test_bad_input_is_named():
    X, y = table()
    with pytest.raises(ValueError, match="alpha=0"):
        Linear(0).bind(X, y)
    with pytest.raises(ValueError, match="scoring='f1'"):
        Linear().bind(X, y, scoring="f1")
    with pytest.raises(ValueError, match="only one class"):
        Linear().bind(X, np.zeros(150))
