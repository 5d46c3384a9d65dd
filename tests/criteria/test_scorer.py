"""Any estimator, tree or function is a criterion; its values are those of scikit-learn's `cross_val_score`."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from probewise.criteria import KNN, Function, Linear, Scorer, Tree, as_criterion
from probewise.engine.probes import ProbePlan

SUBSETS = ProbePlan(15, max_size=10, seed=1).draw(0, 4)


def table(n=90, n_classes=3):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = rng.standard_normal((n, 15)) + 0.4 * y[:, None]
    X[:, 3] = 7  # constant
    X[:, 4] = X[:, 5]  # duplicate: splits of a tree tie
    return X, y


def by_sklearn(estimator, X, y, cv=3, **options):
    return [cross_val_score(estimator, X[:, s], y, cv=cv, **options).mean() for s in SUBSETS]


@pytest.mark.parametrize(
    ("estimator", "scoring", "cv"),
    [
        (GaussianNB(), None, 3),
        (GaussianNB(), "balanced_accuracy", 4),
        (make_pipeline(StandardScaler(), LogisticRegression()), "neg_log_loss", ShuffleSplit(2, random_state=0)),
        (Ridge(), None, 3),
    ],
)
def test_values_are_those_of_cross_val_score(estimator, scoring, cv):
    X, y = table()
    ours = Scorer(estimator).bind(X, y, cv, scoring=scoring)(SUBSETS)
    assert ours.tolist() == by_sklearn(estimator, X, y, cv, scoring=scoring)


def test_sparse_stays_sparse():
    class Sparse(Ridge):
        def fit(self, X, y):
            assert sp.issparse(X)
            return super().fit(X, y)

    X, y = table()
    X[X < 0] = 0
    np.testing.assert_allclose(
        Scorer(Sparse(solver="lsqr", tol=1e-12)).bind(sp.csr_matrix(X), y)(SUBSETS),
        Scorer(Ridge()).bind(X, y)(SUBSETS),
        rtol=1e-6,
    )


@pytest.mark.parametrize("criterion", [Scorer(DecisionTreeClassifier(random_state=0)), Tree()], ids=str)
def test_splitters_and_groups(criterion):
    X, y = table()
    tree, groups = DecisionTreeClassifier(random_state=0), np.arange(90) // 9
    expected = by_sklearn(tree, X, y, GroupKFold(5), groups=groups)
    assert criterion.bind(X, y, GroupKFold(5), groups=groups)(SUBSETS).tolist() == expected
    cv = ShuffleSplit(3, random_state=0)
    assert criterion.bind(X, y, cv)(SUBSETS).tolist() == by_sklearn(tree, X, y, cv)


def test_an_open_random_state_is_seeded():
    X, y = table()
    forest = make_pipeline(RandomForestClassifier(5))
    first, second = (Scorer(forest).bind(X, y)(SUBSETS) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert forest.get_params()["randomforestclassifier__random_state"] is None


def test_errors_of_an_estimator_are_raised():
    X, y = table()
    with pytest.raises(ValueError, match="alpha"):
        Scorer(Ridge(alpha=-1)).bind(X, y)(SUBSETS)
    with pytest.raises(ValueError, match="no score method"):
        Scorer(StandardScaler()).bind(X, y)
    with pytest.raises(ValueError, match="only one class"):
        Scorer(GaussianNB()).bind(X, np.zeros(90))


def test_an_unsupervised_score_works():
    X, y = table()
    values = Scorer(KMeans(2)).bind(X, y)(SUBSETS)
    assert values.shape == (4,)


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("n_classes", [2, 3, 30])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, np.float32])
@pytest.mark.parametrize("options", [{}, {"max_depth": 2, "min_samples_leaf": 5}], ids=str)
def test_a_tree_of_classes_equals_sklearn(n_classes, make, options):
    X, y = table(n_classes=n_classes)
    X = make(X)
    labels = np.array([f"class {code:02}" for code in range(n_classes)])[y]
    expected = by_sklearn(DecisionTreeClassifier(**options, random_state=0), X, labels)
    assert Tree(**options).bind(X, labels)(SUBSETS).tolist() == expected


def test_a_tree_of_numbers_equals_sklearn():
    X, y = table()
    reference = DecisionTreeRegressor(random_state=0, max_depth=3)
    assert Tree(max_depth=3).bind(X, X[:, 0] + y)(SUBSETS).tolist() == by_sklearn(reference, X, X[:, 0] + y)
    assert Tree(max_depth=3, task="regression").bind(X, y)(SUBSETS).tolist() == by_sklearn(reference, X, y, KFold(3))


def test_a_tree_takes_missing_values():
    X, y = table()
    X[::7, 0] = np.nan
    assert Tree().allow_nan
    assert Tree().bind(X, y)(SUBSETS).tolist() == by_sklearn(DecisionTreeClassifier(random_state=0), X, y)


def test_a_tree_refuses_bad_input():
    X, y = table()
    with pytest.raises(ValueError, match="scoring='r2' is not a score for classes"):
        Tree().bind(X, y, scoring="r2")
    with pytest.raises(ValueError, match="scoring='accuracy' is not a score for numbers"):
        Tree(task="regression").bind(X, y, scoring="accuracy")
    with pytest.raises(ValueError, match="only one class"):
        Tree().bind(X, np.zeros(90))


def spread(X, y):
    return X.std() + y.mean()


def test_a_function_is_a_criterion():
    X, y = table()
    expected = [spread(X[:, s], y) for s in SUBSETS]
    np.testing.assert_allclose(Function(spread).bind(X, y)(SUBSETS), expected)
    with pytest.raises(ValueError, match="scoring='f1'"):
        Function(spread).bind(X, y, scoring="f1")


def test_names_objects_estimators_and_functions_become_criteria():
    assert isinstance(as_criterion("knn"), KNN)
    assert isinstance(as_criterion("linear"), Linear)
    assert isinstance(as_criterion("auto"), KNN)
    assert isinstance(as_criterion("auto", np.zeros((5000, 3))), KNN)
    assert isinstance(as_criterion("auto", np.zeros((5001, 3))), Linear)
    assert isinstance(as_criterion("auto", sp.csr_matrix((5, 3))), Linear)
    own = KNN(5)
    assert as_criterion(own) is own
    assert isinstance(as_criterion(Ridge()), Scorer)
    assert isinstance(as_criterion(spread), Function)
    for bad in ("best", 3, None, KNN, Ridge):
        with pytest.raises(ValueError, match="criterion="):
            as_criterion(bad)


TRAVELERS = [KNN(), Scorer(GaussianNB()), Tree(max_depth=4), Function(spread)]


@pytest.mark.parametrize("criterion", TRAVELERS, ids=lambda criterion: type(criterion).__name__)
def test_bound_criteria_travel_to_other_processes(criterion):
    X, y = table()
    score = criterion.bind(X, y)
    assert pickle.loads(pickle.dumps(score))(SUBSETS).tolist() == score(SUBSETS).tolist()
