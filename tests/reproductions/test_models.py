"""The C4.5-like tree against a literal twin, and the linear SVM in J against scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

import naive
from probewise.engine.probes import Subsets
from reproductions.c45 import C45, LEAF, pessimistic_errors
from reproductions.daf_2011.svm import SquaredHingeSVM


def as_nested(tree, node=0):
    if tree.feature_[node] == LEAF:
        return tree.classes_[tree.counts_[node].argmax()]
    left = tree.left_[node]
    children = as_nested(tree, left), as_nested(tree, left + 1)
    return int(tree.feature_[node]), float(tree.threshold_[node]), *children


def n_leaves(nested):
    return sum(map(n_leaves, nested[2:])) if isinstance(nested, tuple) else 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("confidence", [0.25, 1.0])
def test_the_tree_equals_its_twin(seed, confidence):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (60, 3)) + (rng.normal(size=(60, 3)) if seed % 2 else 0.0)
    y = (X[:, 0] + X[:, 1] > 5).astype(int) + (rng.random(60) < 0.2)
    tree = C45(confidence).fit(X, y)
    assert as_nested(tree) == naive.c45(X, y, confidence)
    expected = [naive.c45_predict(naive.c45(X, y, confidence), row) for row in X]
    assert tree.predict(X).tolist() == expected


def test_pruning_makes_the_tree_smaller_and_keeps_the_accuracy():
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(y)) < 0.3, rng.permutation(y), y)
    whole, pruned = C45(1.0).fit(X, noisy), C45().fit(X, noisy)
    assert n_leaves(as_nested(pruned)) < n_leaves(as_nested(whole))
    assert cross_val_score(C45(), *load_iris(return_X_y=True), cv=10).mean() > 0.92


def test_pessimistic_errors_are_the_binomial_limit():
    for n, errors in ((6, 0), (20, 3), (9, 9)):
        rate = pessimistic_errors(n, errors, 0.25) / n
        assert binom.cdf(errors, n, rate) == pytest.approx(0.25 if errors < n else 1.0, abs=1e-6)
    assert pessimistic_errors(6, 0, 0.25) / 6 == pytest.approx(0.206, abs=0.001)  # Quinlan's example


def test_one_class_and_constant_columns_give_a_leaf():
    assert C45().fit(np.zeros((5, 2)), [1, 1, 1, 1, 1]).predict(np.ones((2, 2))).tolist() == [1, 1]
    assert as_nested(C45().fit(np.zeros((5, 2)), [0, 1, 1, 0, 1])) == 1


def text(n=150, d=30, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.poisson(0.1, (n, d)) + (rng.random((n, d)) < 0.4) * (np.arange(d) % 7 == y[:, None])
    return sp.csr_matrix(X, dtype=np.float64), y


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_the_criterion_is_that_of_linear_svc(C):
    X, y = text(400)
    bound = SquaredHingeSVM(C, tol=1e-5).bind(X, y)
    subsets = [[3], [0, 1, 2, 7], list(range(12)), list(range(30))]
    model = LinearSVC(C=C, dual=False, tol=1e-8)
    expected = [cross_val_score(model, X[:, subset], y, cv=list(bound.folds.splits)).mean() for subset in subsets]
    np.testing.assert_allclose(bound(Subsets.of(subsets)), expected, atol=0.006)  # two rows of 400
    quick = SquaredHingeSVM(C).bind(X, y)(Subsets.of(subsets))
    np.testing.assert_allclose(quick, expected, atol=0.02)


def test_scores_do_not_depend_on_the_batch():
    X, y = text()
    bound = SquaredHingeSVM().bind(X, y)
    together = bound(Subsets.of([[1, 2], [5, 6, 7]]))
    assert together.tolist() == [float(bound(Subsets.of([each]))[0]) for each in ([1, 2], [5, 6, 7])]
