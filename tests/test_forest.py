"""The adaptive random forest: scikit-learn's checks, the clustering, and the training data of the forest."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from probewise import forest as module
from probewise.forest import AdaptiveRandomForestClassifier


@parametrize_with_checks([AdaptiveRandomForestClassifier(10, random_state=0)])
def test_sklearn_checks(estimator, check):
    check(estimator)


def rare(n=400, d=8, positives=25, seed=0):
    """The first rows are positive and differ in two columns; the others form four clusters."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) < positives
    X = rng.standard_normal((n, d))
    X[:, 2:] += 6 * (np.arange(n) % 4)[:, None]
    X[y, :2] += 3
    return X, y


def test_every_center_is_the_mean_of_the_nearest_negatives():
    X, y = rare()
    centers = AdaptiveRandomForestClassifier(n_clusters=4, random_state=0).fit(X, y).centroids_
    negatives = X[~y]
    nearest = ((negatives[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    means = [negatives[nearest == k].mean(axis=0) for k in range(4)]
    np.testing.assert_allclose(centers, means, rtol=1e-6)
    assert sorted(np.bincount(nearest)) == sorted(np.bincount(np.arange(25, 400) % 4))


@pytest.mark.parametrize(("n_clusters", "expected"), [(None, 25), (7, 7), (1, 1), (375, 375), (1000, 375)])
def test_number_of_centers(n_clusters, expected):
    X, y = rare()
    fitted = AdaptiveRandomForestClassifier(3, n_clusters=n_clusters, random_state=0).fit(X, y)
    assert fitted.centroids_.shape == (expected, 8)


def test_the_forest_is_trained_on_all_positives_and_the_centers(monkeypatch):
    calls = []

    class Watched(RandomForestClassifier):
        def fit(self, X, y):
            calls.append((X, y))
            return super().fit(X, y)

    monkeypatch.setattr(module, "RandomForestClassifier", Watched)
    X, y = rare()
    fitted = AdaptiveRandomForestClassifier(3, n_clusters=6, random_state=0).fit(X, y)
    [(rows, labels)] = calls
    np.testing.assert_array_equal(rows, np.vstack([X[y], fitted.centroids_]))
    assert labels.tolist() == [True] * 25 + [False] * 6


def test_few_distinct_negatives_are_used_instead_of_centers():
    X, y = rare(n=40, positives=30)
    X = np.vstack([X, X[30:], X[30:]])
    y = np.append(y, [False] * 20)
    centers = AdaptiveRandomForestClassifier(3, random_state=0).fit(X, y).centroids_
    np.testing.assert_array_equal(centers, np.unique(X[30:40], axis=0))


def test_it_is_about_as_accurate_as_a_forest_on_all_rows():
    X, y = rare(n=1500, positives=50)
    half = np.arange(1500) % 2 == 0
    adaptive = AdaptiveRandomForestClassifier(random_state=0).fit(X[half], y[half])
    plain = RandomForestClassifier(60, random_state=0).fit(X[half], y[half])
    scores = [roc_auc_score(y[~half], model.predict_proba(X[~half])[:, 1]) for model in (adaptive, plain)]
    assert min(scores) > 0.97
    assert scores[0] > scores[1] - 0.02


@pytest.mark.parametrize(
    ("labels", "positive", "expected"),
    [
        (("no", "yes"), None, "yes"),
        (("no", "yes"), "no", "no"),
        ((0, 1), None, 1),
        ((-1, 4), -1, -1),
        ((False, True), None, True),
    ],
)
def test_which_label_is_positive(labels, positive, expected):
    X, is_positive = rare()
    label = labels[1 - labels.index(expected)], expected
    y = np.where(is_positive, label[1], label[0])
    fitted = AdaptiveRandomForestClassifier(10, positive=positive, random_state=0).fit(X, y)
    assert fitted.positive_ == expected
    assert len(fitted.centroids_) == 25
    assert fitted.classes_.tolist() == sorted(labels)
    assert (fitted.predict(X) == y).mean() > 0.9
    np.testing.assert_array_equal(fitted.predict(X[is_positive]) == expected, [True] * 25)


def test_importances():
    X, y = rare()
    fitted = AdaptiveRandomForestClassifier(random_state=0).fit(X, y)
    assert fitted.feature_importances_.sum() == pytest.approx(1)
    assert set(fitted.feature_importances_.argsort()[-2:]) == {0, 1}


def test_results_depend_on_the_seed_and_not_on_the_workers():
    X, y = rare()
    model = AdaptiveRandomForestClassifier(20, random_state=3)
    probability = clone(model).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(probability, clone(model).fit(X, y).predict_proba(X))
    np.testing.assert_array_equal(probability, clone(model).set_params(n_jobs=2).fit(X, y).predict_proba(X))
    assert (probability != clone(model).set_params(random_state=4).fit(X, y).predict_proba(X)).any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 must be a whole number of at least 1, or None"),
        ({"n_clusters": 2.5}, "n_clusters=2.5"),
        ({"n_clusters": True}, "n_clusters=True"),
        ({"positive": "maybe"}, r"positive='maybe' must be one of the classes in y, \[False, True\]"),
        ({"n_estimators": 0}, "n_estimators"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        AdaptiveRandomForestClassifier(**parameters).fit(*rare())


def test_bad_input_is_named():
    X, y = rare()
    with pytest.raises(ValueError, match="only one class, 1"):
        AdaptiveRandomForestClassifier().fit(X, np.ones(400, int))
    with pytest.raises(ValueError, match="3 classes; make it one class against the rest"):
        AdaptiveRandomForestClassifier().fit(X, np.arange(400) % 3)
    X[5, [1, 6]] = np.nan
    with pytest.raises(ValueError, match=r"in 2 of 8 columns \(1, 6\)"):
        AdaptiveRandomForestClassifier().fit(X, y)
