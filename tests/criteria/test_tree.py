"""The tree criterion is scikit-learn's tree on the same folds."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from probewise.criteria import Tree
from probewise.engine.probes import ProbePlan

SUBSETS = ProbePlan(15, max_size=10, seed=1).draw(0, 4)


def table(n=90, n_classes=3):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = rng.standard_normal((n, 15)) + 0.4 * y[:, None]
    X[:, 3] = 7  # constant
    X[:, 4] = X[:, 5]  # duplicate: splits tie
    return X, y


def by_sklearn(estimator, X, y, cv=3, **options):
    return [cross_val_score(estimator, X[:, s], y, cv=cv, **options).mean() for s in SUBSETS]


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("n_classes", [2, 3, 30])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, np.float32])
@pytest.mark.parametrize("options", [{}, {"max_depth": 2, "min_samples_leaf": 5}], ids=str)
def test_accuracy_equals_sklearn(n_classes, make, options):
    X, y = table(n_classes=n_classes)
    X = make(X)
    labels = np.array([f"class {code:02}" for code in range(n_classes)])[y]
    expected = by_sklearn(DecisionTreeClassifier(**options, random_state=0), X, labels)
    assert Tree(**options).bind(X, labels)(SUBSETS).tolist() == expected


def test_regression_equals_sklearn():
    X, y = table()
    reference = DecisionTreeRegressor(random_state=0, max_depth=3)
    assert Tree(max_depth=3).bind(X, X[:, 0] + y)(SUBSETS).tolist() == by_sklearn(reference, X, X[:, 0] + y)
    assert Tree(max_depth=3, task="regression").bind(X, y)(SUBSETS).tolist() == by_sklearn(reference, X, y, KFold(3))


def test_any_splitter_and_groups():
    X, y = table()
    reference, groups = DecisionTreeClassifier(random_state=0), np.arange(90) // 9
    cv = ShuffleSplit(3, random_state=0)
    assert Tree().bind(X, y, cv)(SUBSETS).tolist() == by_sklearn(reference, X, y, cv)
    expected = by_sklearn(reference, X, y, GroupKFold(5), groups=groups)
    assert Tree().bind(X, y, GroupKFold(5), groups=groups)(SUBSETS).tolist() == expected


def test_missing_values_are_taken():
    X, y = table()
    X[::7, 0] = np.nan
    assert Tree().allow_nan
    assert Tree().bind(X, y)(SUBSETS).tolist() == by_sklearn(DecisionTreeClassifier(random_state=0), X, y)


def test_it_travels_to_other_processes_and_tells_its_parameters():
    X, y = table()
    score = Tree(max_depth=4).bind(X, y)
    assert len(score.folds.splits) == 3
    assert pickle.loads(pickle.dumps(score))(SUBSETS).tolist() == score(SUBSETS).tolist()
    assert Tree(max_depth=4).describe() == "Tree(max_depth=4, min_samples_leaf=1, task='auto')"


def test_bad_input_is_named():
    X, y = table()
    with pytest.raises(ValueError, match=r"scoring='f1' is of two classes and y has 3"):
        Tree().bind(X, y, scoring="f1")
    with pytest.raises(ValueError, match=r"scoring='accuracy'.*DecisionTreeRegressor\(\)"):
        Tree(task="regression").bind(X, y, scoring="accuracy")
    with pytest.raises(ValueError, match="only one class"):
        Tree().bind(X, np.zeros(90))
    assert Tree().bind(X, y, scoring="accuracy")(SUBSETS).shape == (4,)
