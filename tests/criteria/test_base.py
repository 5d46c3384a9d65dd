"""The contract of every criterion: equal to scikit-learn for any splitter, groups and labels, in any batch.

Class labels of any type become the codes that numpy gives them.
"""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from probewise.criteria import KNN, SVM, Linear, NaiveBayes
from probewise.criteria.base import Target
from probewise.engine.probes import ProbePlan, Subsets
from probewise.executors import executor

CRITERIA = {
    "knn": (KNN(), KNeighborsClassifier(3, algorithm="brute")),
    "linear": (Linear(), RidgeClassifier()),
    "naive_bayes": (NaiveBayes(), GaussianNB()),
    "svm": (SVM(), LinearSVC(random_state=0)),
    "rbf": (SVM("rbf"), SVC()),
}
SUBSETS = ProbePlan(30, max_size=25, seed=1).draw(0, 4)
names = pytest.mark.parametrize("name", CRITERIA)
layouts = pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])


def table(n=90, n_classes=3):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % n_classes)
    X = 2 * rng.standard_normal((n, 30)) + 1
    X[:, :15] += y[:, None] * rng.uniform(size=15)
    X[:, 3] = 7  # constant
    X[:, 4] = X[:, 5]  # duplicate
    return X, y


def by_sklearn(estimator, X, y, subsets=SUBSETS, cv=3, **options):
    return [cross_val_score(estimator, X[:, s], y, cv=cv, **options).mean() for s in subsets]


@pytest.mark.matrix(pairs=True)
@names
@layouts
@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize(
    "cv",
    [
        5,
        "loo",
        StratifiedKFold(4, shuffle=True, random_state=0),
        StratifiedKFold(20),
        ShuffleSplit(3, test_size=0.3, random_state=0),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
        TimeSeriesSplit(3),
        LeaveOneOut(),
        KFold(3),
        [(np.arange(45), np.arange(45, 90)), (np.arange(30, 90), np.arange(30))],
    ],
    ids=str,
)
def test_any_splitter(name, make, is_sorted, cv):
    """If rows are sorted by class, training rows may lack a class, which naive Bayes then never predicts."""
    criterion, estimator = CRITERIA[name]
    X, y = table()
    if is_sorted and name == "naive_bayes":
        order = np.roll(np.argsort(y, kind="stable"), 40 if isinstance(cv, KFold | list) else 0)
        X, y = X[order], y[order]
    is_loo = cv == "loo" or isinstance(cv, LeaveOneOut)
    subsets = Subsets.of(list(SUBSETS)[: 1 if is_loo else 3])
    expected = by_sklearn(estimator, X, y, subsets, LeaveOneOut() if is_loo else cv)
    np.testing.assert_allclose(criterion.bind(make(X), y, cv)(subsets), expected, rtol=1e-12)


@names
def test_groups_stay_together(name):
    criterion, estimator = CRITERIA[name]
    X, y = table()
    groups = np.arange(90) // 10
    expected = by_sklearn(estimator, X, y, cv=GroupKFold(4), groups=groups)
    np.testing.assert_allclose(criterion.bind(X, y, GroupKFold(4), groups=groups)(SUBSETS), expected, rtol=1e-12)


@names
def test_text_labels(name):
    criterion, estimator = CRITERIA[name]
    X, y = table()
    labels = np.array(["c", "a", "b"])[y]
    np.testing.assert_allclose(criterion.bind(X, labels)(SUBSETS), by_sklearn(estimator, X, labels), rtol=1e-12)


@pytest.mark.matrix(pairs=True)
@names
@layouts
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cv", [3, "loo"])
def test_a_value_depends_neither_on_its_batch_nor_on_its_worker(name, make, dtype, cv):
    X, y = table()
    score = CRITERIA[name][0].bind(make(X.astype(dtype)), y, 3 if name in ("svm", "rbf") else cv)
    values, single = score(SUBSETS).tolist(), [Subsets.of([subset]) for subset in SUBSETS]
    assert [score(subset)[0] for subset in single] == values
    assert [value[0] for value in executor(2, prefer=CRITERIA[name][0].prefer)(score, single)] == values
    assert pickle.loads(pickle.dumps(score))(SUBSETS).tolist() == values
    assert score(Subsets.of([])).tolist() == []


@pytest.mark.parametrize(("name", "remedy"), [("knn", "KNeighborsClassifier"), ("naive_bayes", "GaussianNB")])
def test_another_scoring_is_refused_with_the_remedy(name, remedy):
    X, y = table()
    with pytest.raises(ValueError, match=rf"scoring='neg_log_loss'.*{remedy}"):
        CRITERIA[name][0].bind(X, y, scoring="neg_log_loss")


# ---- class labels


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("spread", [2, 7, 100])
def test_integer_labels(dtype, spread):
    rng = np.random.default_rng(spread)
    y = (rng.integers(0, spread, 300) - (spread // 2 if np.issubdtype(dtype, np.signedinteger) else 0)).astype(dtype)
    target = Target.of(y, "classification")
    classes, codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(target.classes, classes)
    np.testing.assert_array_equal(target.values, codes)
    assert target.classes.dtype == dtype


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-128, 127] * 200, dtype=np.int8),
        np.array([2**63 + 5, 2**63 + 7], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1], dtype=np.int64),
        np.array(["b", "a", "c"]),
        np.array([True, False]),
        np.array([1.0, 2.0, 1.0]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_extreme_and_other_labels(labels):
    target = Target.of_classes(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(target.classes, classes)
    np.testing.assert_array_equal(target.values, codes)


def test_a_continuous_target_is_refused():
    with pytest.raises(ValueError, match="y is continuous"):
        Target.of_classes(np.array([0.5, 1.25, 3.0]))
