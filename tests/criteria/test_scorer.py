"""Any estimator, scoring, splitter or function is a criterion; its values are scikit-learn's own."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, ShuffleSplit, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probewise.criteria import KNN, Function, Linear, Scorer, as_criterion
from probewise.engine.probes import ProbePlan

SUBSETS = ProbePlan(15, max_size=10, seed=1).draw(0, 4)


def table(n=90):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return rng.standard_normal((n, 15)) + 0.4 * y[:, None], y


@pytest.mark.parametrize(
    ("estimator", "scoring", "cv"),
    [
        (GaussianNB(), None, 3),
        (GaussianNB(), "balanced_accuracy", 4),
        (make_pipeline(StandardScaler(), LogisticRegression()), "neg_log_loss", ShuffleSplit(2, random_state=0)),
        (Ridge(), None, 3),
    ],
)
def test_values_are_sklearns(estimator, scoring, cv):
    X, y = table()
    ours = Scorer(estimator).bind(X, y, cv, scoring=scoring)(SUBSETS)
    theirs = [cross_val_score(estimator, X[:, s], y, cv=cv, scoring=scoring).mean() for s in SUBSETS]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


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


def test_groups_reach_the_splitter():
    X, y = table()
    groups = np.arange(90) // 9
    theirs = [cross_val_score(GaussianNB(), X[:, s], y, cv=GroupKFold(5), groups=groups).mean() for s in SUBSETS]
    np.testing.assert_allclose(Scorer(GaussianNB()).bind(X, y, GroupKFold(5), groups=groups)(SUBSETS), theirs)


def test_an_open_random_state_is_closed():
    X, y = table()
    forest = make_pipeline(RandomForestClassifier(5))
    first, second = (Scorer(forest).bind(X, y)(SUBSETS) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert forest.get_params()["randomforestclassifier__random_state"] is None


def test_what_an_estimator_raises_is_raised():
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


def test_descriptions_tell_criteria_apart_and_name_no_address():
    """That they are the same in every process is shown in test_identity.py."""
    described = [
        KNN(3).describe(),
        KNN(5).describe(),
        Scorer(Ridge()).describe(),
        Scorer(Ridge(alpha=2)).describe(),
        Scorer(make_pipeline(StandardScaler(), Ridge())).describe(),
        Scorer(make_pipeline(StandardScaler(), Ridge(alpha=2))).describe(),
        Function(spread).describe(),
        Function(lambda X, y: X.sum()).describe(),
        Function(lambda X, y: X.max()).describe(),
    ]
    assert len(set(described)) == len(described)
    assert not any("0x" in text for text in described)


@pytest.mark.parametrize("criterion", [KNN(), Scorer(GaussianNB()), Function(spread)])
def test_bound_criteria_travel_to_other_processes(criterion):
    X, y = table()
    score = criterion.bind(X, y)
    assert pickle.loads(pickle.dumps(score))(SUBSETS).tolist() == score(SUBSETS).tolist()
