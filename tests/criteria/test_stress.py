"""Columns of very different scale and offset: J as in arithmetic with sixty digits, dense and sparse."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

import naive
from probewise.criteria import Linear, NaiveBayes
from probewise.criteria.base import Folds
from probewise.engine.probes import ProbePlan, Subsets
from stress import CASES, SHAPES, folds_of, subsets_of, table


def exactly(X, y, splits, subset, alpha=1.0, weights=None):
    """Accuracy of all rows, mean accuracy of the folds, and whether no decision is nearly a tie."""
    classes = np.unique(y)
    outputs = np.where(y[:, None] == (classes if len(classes) > 2 else classes[1:]), 1.0, -1.0)
    right, margins = [], []
    for train, test in splits:
        decisions = naive.exact_ridge_decisions(X[:, subset], outputs, train, test, alpha, weights)
        both = np.hstack([-decisions, decisions]) if len(classes) == 2 else decisions
        right.append(classes[np.argmax(both, axis=1)] == y[test])
        ordered = np.sort(both, axis=1)
        margins.append(((ordered[:, -1] - ordered[:, -2]) / np.abs(ordered).max(axis=1)).min())
    return np.concatenate(right).mean(), np.mean([part.mean() for part in right]), min(margins) > 1e-9


def problem(case, shape, form):
    """The table as it is stored, the numbers that it holds, classes, cv, its splits, and some subsets."""
    n, n_features, sizes = SHAPES[shape]
    X, y = table(*case, n, n_features)
    if form == "float32":
        X = X.astype(np.float32).astype(np.float64)
    data = sp.csr_matrix(X) if form == "sparse" else X.astype(form)
    return data, X, y, *folds_of(shape, y), subsets_of(n_features, sizes)


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["float64", "int64", "float32", "sparse"])
def test_linear(case, shape, form):
    data, X, y, cv, splits, subsets = problem(case, shape, form)
    bound = Linear().bind(data, y, cv)
    for subset in subsets:
        pooled, by_folds, is_clear = exactly(X, y, splits, subset)
        if is_clear:
            expected = pooled if shape == "loo" else by_folds
            assert bound(Subsets.of([subset]))[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("case", [*CASES, ("constant in every class", 1e6), ("constant in every class", 1e9)], ids=str)
@pytest.mark.parametrize("shape", ["few rows", "loo"])
@pytest.mark.parametrize("form", ["float64", "int64", "float32", "sparse"])
def test_naive_bayes(case, shape, form):
    data, X, y, cv, splits, subsets = problem(case, shape, form)
    bound, long = NaiveBayes().bind(data, y, cv), X.astype(np.longdouble)
    for subset in subsets:
        right, is_clear = [], True
        for train, test in splits:
            posteriors = [naive.bayes_posteriors(long[:, subset], y, row, train, 1e-9) for row in test]
            right.append([max(each, key=each.get) == y[row] for each, row in zip(posteriors, test, strict=True)])
            is_clear &= all(np.diff(sorted(each.values())[-2:])[0] > 1e-6 for each in posteriors)
        expected = np.concatenate(right).mean() if shape == "loo" else np.mean([np.mean(part) for part in right])
        if is_clear:
            assert bound(Subsets.of([subset]))[0] == pytest.approx(expected, abs=1e-12)


def test_informative_columns_beside_a_billion_times_larger_ones():
    """Twenty large columns of noise must not hide the three informative ones."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 6000)
    X = rng.standard_normal((6000, 40))
    X[:, :3] += 0.4 * y[:, None]
    X[:, 20:] *= 1e9
    probes = ProbePlan(40, max_size=20, seed=0).draw(0, 30)
    scores = Linear().bind(X, y, 3)(probes)
    model = RidgeClassifier(solver="svd")
    expected = [cross_val_score(model, X[:, subset], y, cv=3).mean() for subset in list(probes)[:5]]
    np.testing.assert_allclose(scores[:5], expected, atol=1e-12)
    with_one = np.array([(subset < 3).any() for subset in probes])
    assert scores[with_one].min() > scores[~with_one].max()


def test_a_time_stamp_among_the_columns():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.standard_normal((300, 12))
    X[:, 0] = 1.7e18 + 1e16 * (rng.random(300) + 0.3 * y)
    X[:, 1:4] += 0.2 * y[:, None]
    probes = Subsets.of([[0], [0, 1], [0, 1, 2, 3], [1, 2, 3], range(12)])
    splits = list(Folds.of(3, y, is_classification=True).splits)
    expected = [exactly(X, y, splits, subset)[1] for subset in probes]
    for form in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(Linear().bind(form, y, 3)(probes), expected, atol=1e-12)


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error"])
@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_far_from_zero(shape, scoring):
    n, n_features, sizes = SHAPES[shape]
    X, _ = table("ratio", 1e6, n, n_features)
    y = X[:, 0] + X[:, 2] + 0.5 * np.arange(n)
    cv = "loo" if shape == "loo" else 3
    probes = Subsets.of(subsets_of(n_features, sizes))
    near, far = (Linear().bind(X, y + offset, cv, scoring=scoring)(probes) for offset in (0, 2.0**44))
    np.testing.assert_allclose(far, near, rtol=1e-7)


def test_weights_and_missing_values_with_more_features_than_rows():
    rng = np.random.default_rng(3)
    y, X = np.arange(30) % 3, rng.standard_normal((30, 50))
    X[:, :4] += y[:, None]
    weights = rng.choice([0.0, 0.5, 2.0], 30)
    folds = list(StratifiedKFold(3).split(X, y))
    subset = np.arange(0, 45, dtype=np.int32)
    right = []
    for train, test in folds:
        outputs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
        decisions = naive.exact_ridge_decisions(X[:, subset], outputs, train, test, 1.0, weights)
        right.append(np.average(decisions.argmax(axis=1) == y[test], weights=weights[test]))
    found = Linear().bind(X, y, folds, sample_weight=weights)(Subsets.of([subset]))
    np.testing.assert_allclose(found, np.mean(right), rtol=1e-12)
    X[rng.random(X.shape) < 0.1] = np.nan
    expected = []
    for train, test in folds:
        filled = np.where(np.isnan(X), np.nanmedian(X[train], axis=0), X)
        expected.append(exactly(filled, y, [(train, test)], subset)[1])
    np.testing.assert_allclose(Linear(missing="median").bind(X, y, folds)(Subsets.of([subset])), np.mean(expected))
