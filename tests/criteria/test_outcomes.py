"""Outcomes of groups of rows equal those of the naive twin, and add up to J."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import LeaveOneOut, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import naive
from probewise.criteria import KNN, SVM, Average, Linear, NaiveBayes, Scorer, Tree
from probewise.criteria.base import Folds
from probewise.engine.probes import ProbePlan, Subsets

SUBSETS = ProbePlan(20, max_size=14, seed=3).draw(0, 4)
LAST = len(SUBSETS) - 1
GROUPS = np.random.default_rng(2).permutation(np.arange(40) % 5)
CVS = {
    "folds": StratifiedKFold(3, shuffle=True, random_state=1),
    "loo": "loo",
    "some rows twice, some never": [(np.arange(25), np.arange(39, 20, -1)), (np.arange(20, 40), np.arange(15))],
}
OF_CLASSES = {
    "knn": (KNN(3), KNeighborsClassifier(3, algorithm="brute")),
    "linear": (Linear(), RidgeClassifier()),
    "naive_bayes": (NaiveBayes(), GaussianNB()),
}
OF_NUMBERS = {"knn": (KNN(3), KNeighborsRegressor(3, algorithm="brute")), "linear": (Linear(), Ridge())}
WITHOUT_WEIGHTS = {
    "svm": (SVM(), LinearSVC(random_state=0), "accuracy"),
    "svm, balanced": (SVM(), LinearSVC(random_state=0), "balanced_accuracy"),
    "tree": (Tree(), DecisionTreeClassifier(random_state=0), "accuracy"),
    "estimator": (Scorer(GaussianNB()), GaussianNB(), None),
    "estimator, balanced": (Scorer(GaussianNB()), GaussianNB(), "balanced_accuracy"),
}


def table(n=40):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 1, 2, 2, 2], -(-n // 6))[:n])
    X = rng.standard_normal((n, 20))
    X[:, :6] += 0.7 * y[:, None]
    return X, y


def weights_of(is_weighted):
    return np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], 40) if is_weighted else None


def bind(criterion, X, y, cv, scoring, weights):
    return criterion.bind(X, y, CVS[cv], scoring=scoring, **({} if weights is None else {"sample_weight": weights}))


def splits_of(cv, y):
    is_classification = y.dtype.kind == "i"
    return list(Folds.of(LeaveOneOut() if cv == "loo" else CVS[cv], y, is_classification=is_classification).splits)


def predictions(estimator, X, y, cv, weights=None):
    """Pairs (rows, predictions) of rows that are scored together."""
    fit = {} if weights is None else {"sample_weight": weights}
    parts = []
    for train, test in splits_of(cv, y):
        own = {name: values[train] for name, values in fit.items()}
        parts.append((test, estimator.fit(X[train], y[train], **own).predict(X[test])))
    if cv == "loo":
        return [tuple(np.concatenate(part) for part in zip(*parts, strict=True))]
    return parts


def check(bound, scoring, y, parts, weights, groups=GROUPS):
    """Compare the outcomes of the last subset with the naive twin."""
    J, shares, means = naive.outcomes_by_group(scoring, y, parts, groups, weights)
    scores, found = bound.outcomes(SUBSETS, groups)
    np.testing.assert_array_equal(scores, bound(SUBSETS))
    assert found.dtype == np.float32
    np.testing.assert_allclose(scores[LAST], J, rtol=1e-9)
    np.testing.assert_allclose(bound.row_shares, [shares[row] for row in range(len(y))], rtol=1e-12)
    np.testing.assert_allclose(found[LAST], [means[group] for group in range(groups.max() + 1)], rtol=1e-5, atol=1e-6)


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("name", OF_CLASSES)
@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy"])
@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_of_classes(name, scoring, cv, is_weighted):
    (X, y), weights, (criterion, estimator) = table(), weights_of(is_weighted), OF_CLASSES[name]
    in_fit = None if name == "knn" else weights
    check(
        bind(criterion, X, y, cv, scoring, weights),
        scoring,
        y,
        predictions(estimator, X[:, SUBSETS[LAST]], y, cv, in_fit),
        weights,
    )


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", "neg_mean_absolute_error"])
@pytest.mark.parametrize("cv", ["folds", "loo"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_of_numbers(name, scoring, cv, is_weighted):
    (X, classes), weights, (criterion, estimator) = table(), weights_of(is_weighted), OF_NUMBERS[name]
    y = X[:, 0] + 0.5 * classes
    cv = "some rows twice, some never" if cv == "folds" else cv
    in_fit = None if name == "knn" else weights
    check(
        bind(criterion, X, y, cv, scoring, weights),
        scoring,
        y,
        predictions(estimator, X[:, SUBSETS[LAST]], y, cv, in_fit),
        weights,
    )


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
@pytest.mark.parametrize("cv", ["folds", "some rows twice, some never"])
def test_of_criteria_without_weights(name, cv):
    (X, y), (criterion, estimator, scoring) = table(), WITHOUT_WEIGHTS[name]
    parts = predictions(estimator, X[:, SUBSETS[LAST]], y, cv)
    check(bind(criterion, X, y, cv, scoring, None), scoring or "accuracy", y, parts, None)


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error"])
def test_numbers_of_an_estimator(scoring):
    X, classes = table()
    y = X[:, 0] + 0.5 * classes
    bound, chosen = Scorer(Ridge()).bind(X, y, 4, scoring=scoring), X[:, SUBSETS[LAST]]
    splits = bound.folds.splits
    parts = [(test, Ridge().fit(chosen[train], y[train]).predict(chosen[test])) for train, test in splits]
    check(bound, scoring, y, parts, None)
    assert Scorer(Ridge()).bind(X, y, 4, scoring="neg_max_error").row_shares is None


def test_tall_tables():
    """Linear keeps sums of all columns."""
    X, y = (np.concatenate([part] * 5) for part in table())
    X = X + 0.1 * np.random.default_rng(5).standard_normal(X.shape)
    groups, numbers = np.arange(200) % 3, X[:, 0] + y
    bounds = [Linear().bind(X, y), Linear().bind(X, numbers), Linear().bind(X, y, scoring="balanced_accuracy")]
    bounds += [Linear().bind(sp.csr_matrix(np.where(X > 0.4, X, 0)), y)]
    for bound in bounds:
        scores, means = bound.outcomes(SUBSETS, groups)
        np.testing.assert_array_equal(scores, bound(SUBSETS))
        np.testing.assert_allclose(means @ np.bincount(groups, bound.row_shares), scores, rtol=1e-5)
        np.testing.assert_allclose(bound.outcomes(SUBSETS, np.zeros(200, int))[1][:, 0], scores, rtol=1e-5)


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_soft_votes(cv, is_weighted):
    """J is a mean over all tests, not over folds."""
    (X, y), weights = table(), weights_of(is_weighted)
    splits = splits_of(cv, y)
    votes = naive.soft_votes(X[:, SUBSETS[LAST]], y, splits, 6)
    parts = [(np.concatenate([test for _, test in splits]), votes)]
    check(bind(KNN(6), X, y, cv, "probability", weights), "probability", y, parts, weights)


def test_rows_in_no_group_and_in_any_form_of_X():
    X, y = table()
    groups = np.where(GROUPS == 4, -1, GROUPS)
    X[np.abs(X) < 0.3] = 0
    expected = KNN().bind(X, y).outcomes(SUBSETS, groups)
    assert expected[1].shape == (len(SUBSETS), 4)
    all_groups = KNN().bind(X, y).outcomes(SUBSETS, GROUPS)[1]
    np.testing.assert_array_equal(expected[1], all_groups[:, :4])
    for ours, theirs in zip(KNN().bind(sp.csr_matrix(X), y).outcomes(SUBSETS, groups), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    few = Subsets.of([[0, 1], [2]])
    filled = np.where(np.arange(40)[:, None] == 7, np.nan, X)
    scores, means = KNN(missing="mean").bind(filled, y).outcomes(few, np.zeros(40, int))
    np.testing.assert_allclose(means[:, 0], scores, rtol=1e-6)


def test_rows_of_a_constant_fold_have_the_score_of_the_fold():
    X, _ = table()
    y = np.where(np.arange(40) < 20, 1.0, X[:, 0])
    splits = [(np.arange(20, 40), np.arange(10)), (np.arange(10, 20), np.arange(10, 15)), (np.arange(20), [20, 21, 22])]
    scores, means = KNN().bind(X, y, splits).outcomes(SUBSETS, np.zeros(40, int))
    np.testing.assert_allclose(means[:, 0], scores, rtol=1e-5)


@pytest.mark.parametrize("scoring", ["f1_macro", "roc_auc"])
def test_other_scores_are_no_means(scoring):
    X, y = table()
    bound = KNN().bind(X, np.minimum(y, 1), scoring=scoring)
    assert bound.row_shares is None
    with pytest.raises(ValueError, match=f"scoring='{scoring}' is not a mean over rows"):
        bound.outcomes(SUBSETS, GROUPS)


def test_of_an_average():
    X, y = table()
    both = Average((KNN(3), KNN(5))).bind(X, y, 3)
    scores, means = both.outcomes(SUBSETS, GROUPS)
    np.testing.assert_array_equal(scores, both(SUBSETS))
    parts = [part.outcomes(SUBSETS, GROUPS)[1] for part in both.parts]
    np.testing.assert_allclose(means, np.mean(parts, axis=0), rtol=1e-6)
    np.testing.assert_array_equal(both.row_shares, both.parts[0].row_shares)
    assert Average((KNN(),)).bind(X, np.minimum(y, 1), 3, scoring="roc_auc").row_shares is None
