"""Relevance feedback: the loop equals its naive twin, does not depend on workers, and feedback improves precision."""

import dataclasses
from itertools import pairwise

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import naive
from probewise.feedback import relevance_feedback
from probewise.forest import AdaptiveRandomForestClassifier


def images(classes=4, each=40, d=12, apart=2.0, seed=0):
    """Rows of several classes in turn; each class is shifted in one column, and the other columns are noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(classes * each) % classes
    X = rng.standard_normal((len(y), d))
    X[np.arange(len(y)), y] += apart
    return X, y


def center_score(X, positive, rows):
    """How much nearer a row is to the mean of the positives than to the mean of the negatives."""
    positive = np.asarray(positive)
    centers = [X[positive].mean(axis=0), X[~positive].mean(axis=0)]
    return ((rows - centers[1]) ** 2).sum(axis=1) - ((rows - centers[0]) ** 2).sum(axis=1)


class Centers(RidgeClassifier):
    """A nearest-center classifier, simple enough for the naive twin."""

    def fit(self, X, y):
        self.X_, self.y_, self.classes_ = X, y == 1, np.unique(y)
        return self

    def decision_function(self, X):
        return center_score(self.X_, self.y_, X)

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


@pytest.mark.parametrize("ranked_by", ["score", "distance"])
@pytest.mark.parametrize(("initial", "rounds", "returned"), [(5, 10, 20), (1, 3, 7), (2, 0, 160), (40, 1, 1)])
def test_the_loop_equals_the_twin(initial, rounds, returned, ranked_by):
    X, y = images()
    counts = {"initial": initial, "rounds": rounds, "returned": returned}
    result = relevance_feedback(X, y, Centers(), **counts, ranked_by=ranked_by, random_state=initial)
    assert result.precision.shape == result.seconds.shape == result.n_features.shape == (rounds + 1, 4)
    for column, query in enumerate(result.queries):
        start, nearest = result.initial_rows, ranked_by == "distance"
        expected, new = naive.relevance_feedback(X, y, center_score, start, query, rounds, returned, nearest)
        np.testing.assert_allclose(result.precision[:, column], expected)
        np.testing.assert_allclose(result.new_precision[:, column], new)
    assert (result.selection_seconds + result.training_seconds <= result.seconds).all()
    np.testing.assert_allclose(result.mean_precision, result.precision.mean(axis=1))


def test_the_same_number_of_rows_of_each_class_is_labeled_from_the_start():
    X, y = images()
    result = relevance_feedback(X, y, GaussianNB(), initial=3, rounds=0, random_state=0)
    assert np.bincount(y[result.initial_rows]).tolist() == [3, 3, 3, 3]
    assert len(set(result.initial_rows)) == 12
    other = relevance_feedback(X, y, GaussianNB(), initial=3, rounds=0, random_state=1)
    assert other.initial_rows.tolist() != result.initial_rows.tolist()


def test_feedback_finds_the_rows_of_separate_classes():
    X, y = images(apart=3.0)
    result = relevance_feedback(X, y, AdaptiveRandomForestClassifier(20), rounds=4, random_state=0)
    assert result.mean_precision[0] < result.mean_precision[-1]
    assert result.mean_precision[-1] > 0.97
    assert (result.seconds > 0).all()
    assert (result.n_features == 12).all()


def test_precision_of_noise_is_chance_except_for_labeled_rows():
    """Labeled rows may be returned again, and count; with pure noise nothing else is better than chance."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 5)), np.arange(2000) % 4
    result = relevance_feedback(X, y, KNeighborsClassifier(1), initial=15, rounds=0, returned=200, random_state=0)
    nearest = KNeighborsClassifier(1).fit(X[result.initial_rows], y[result.initial_rows])
    for column, query in enumerate(result.queries):
        alike = np.flatnonzero(nearest.predict(X) == query)[:200]
        assert result.precision[0, column] == pytest.approx(np.mean(y[alike] == query))
    assert result.mean_precision[0] == pytest.approx(0.25, abs=0.05)


def test_ties_are_ranked_by_row_number():
    X, y = np.zeros((60, 2)), np.repeat([0, 1, 2], 20)
    result = relevance_feedback(X, y, DecisionTreeClassifier(), returned=25, rounds=2, random_state=0)
    assert result.precision.tolist() == [[20 / 25, 5 / 25, 0.0]] * 3


def test_the_selector_is_fitted_on_the_labeled_rows_in_every_round():
    calls = []

    def score(X, y):
        calls.append((len(y), int(y.sum())))
        return f_classif(X, y)

    X, y = images(d=300)
    plain = relevance_feedback(X, y, GaussianNB(), rounds=4, random_state=0)
    chosen = relevance_feedback(X, y, GaussianNB(), selector=SelectKBest(score, k=3), rounds=4, random_state=0)
    assert (chosen.n_features == 3).all()
    assert chosen.mean_n_features.tolist() == [3.0] * 5
    assert chosen.mean_precision[-1] > plain.mean_precision[-1]
    assert len(calls) == 20
    assert calls[::5] == [(20, 5)] * 4
    for query in range(4):
        rows, positives = zip(*calls[5 * query : 5 * query + 5], strict=True)
        assert all(a <= b <= a + 20 for a, b in pairwise(rows))
        assert positives[-1] > positives[0]


@pytest.mark.parametrize(
    ("classifier", "backend"),
    [
        (AdaptiveRandomForestClassifier(5), "threading"),
        (DecisionTreeClassifier(), "threading"),
        (SVC(), "threading"),
        pytest.param(AdaptiveRandomForestClassifier(5), "loky", marks=pytest.mark.slow),
    ],
)
def test_results_depend_on_the_seed_and_not_on_the_workers(classifier, backend):
    X, y = images()
    with joblib.parallel_config(backend=backend):
        runs = [relevance_feedback(X, y, classifier, rounds=2, random_state=5, n_jobs=n) for n in (None, 1, 2)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.precision, runs[0].precision)
        np.testing.assert_array_equal(run.n_features, runs[0].n_features)
        np.testing.assert_array_equal(run.initial_rows, runs[0].initial_rows)


def test_a_query_does_not_depend_on_the_others():
    X, y = images()
    names = np.array(["bus", "cat", "dog", "elephant"])[y]
    model = DecisionTreeClassifier(max_depth=2)
    every = relevance_feedback(X, names, model, rounds=3, random_state=0)
    two = relevance_feedback(X, names, model, rounds=3, random_state=0, queries=["dog", "bus"])
    assert every.queries.tolist() == ["bus", "cat", "dog", "elephant"]
    assert two.queries.tolist() == ["dog", "bus"]
    np.testing.assert_array_equal(two.precision, every.precision[:, [2, 0]])


def test_the_random_state_of_the_classifier_is_kept():
    X, y = images()
    model = DecisionTreeClassifier(splitter="random", random_state=1)
    first, second = (
        relevance_feedback(X, y, model, initial=40, rounds=1, random_state=seed).precision for seed in (0, 1)
    )
    np.testing.assert_array_equal(first, second)


def test_sparse_tables_and_unchanged_input():
    X, y = images()
    X[np.abs(X) < 0.5] = 0
    before, model = X.copy(), SVC()
    dense = relevance_feedback(X, y, model, rounds=2, random_state=0)
    sparse = relevance_feedback(sp.csr_array(X), y, model, rounds=2, random_state=0)
    np.testing.assert_allclose(sparse.precision, dense.precision, atol=0.051)
    np.testing.assert_array_equal(X, before)
    assert not hasattr(model, "classes_")
    with pytest.raises(dataclasses.FrozenInstanceError):
        dense.precision = None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": 0}, "initial=0 must be a whole number of at least 1"),
        ({"initial": 41}, "initial=41, but class 0 has 40 rows"),
        ({"rounds": -1}, "rounds=-1 must be a whole number of at least 0"),
        ({"rounds": 2.5}, "rounds=2.5"),
        ({"returned": 0}, "returned=0"),
        ({"returned": 161}, "returned=161 must be at most 160, the number of rows"),
        ({"queries": [7]}, r"queries contains 7, which is not a class in y: \[0, 1, 2, 3\]"),
        ({"queries": []}, "queries is empty"),
        ({"ranked_by": "age"}, "ranked_by='age' must be 'score' or 'distance'"),
        ({"classifier": LinearRegression()}, "neither decision_function nor predict_proba"),
    ],
)
def test_bad_arguments_are_named(options, message):
    X, y = images()
    with pytest.raises(ValueError, match=message):
        relevance_feedback(X, y, **{"classifier": GaussianNB(), **options})


def test_one_class_is_an_error():
    with pytest.raises(ValueError, match="only one class, 3"):
        relevance_feedback(np.zeros((30, 2)), np.full(30, 3), GaussianNB())


@pytest.mark.slow
@pytest.mark.shared_data
def test_feedback_improves_precision_on_real_images(real_data):
    data = real_data("msrcv1")
    result = relevance_feedback(data["X"], data["y"], AdaptiveRandomForestClassifier(), rounds=4, random_state=0)
    assert result.precision.shape == (5, 7)
    assert result.mean_precision[0] > 0.7
    assert result.mean_precision[-1] > result.mean_precision[0] + 0.05
