"""Separability: equal to its formulas and to k-means, and finite for poor data."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans

from probewise.criteria import separability
from probewise.criteria.separability import Separability
from probewise.engine.probes import ProbePlan, Subsets
from probewise.engine.tally import Tally
from probewise.executors import executor

DISTANCES = ["mahalanobis", "bhattacharyya", "divergence"]
MEASURES = [*DISTANCES, "clusters"]
SUBSETS = ProbePlan(20, max_size=12, seed=1).draw(0, 10)


def table(n=150, d=20, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_classes), 1 + np.arange(n_classes) * 2)[np.arange(n) % n_classes**2])
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) * rng.uniform(0.1, 10, d)
    X[:, : d // 2] += 3 * y[:, None] * rng.uniform(size=d // 2)
    X[y == 1, 1] *= 3
    return X, y


# The formulas, literally


def covariance(rows, all_rows, shrinkage):
    d = rows.shape[1]
    mean, out = rows.mean(axis=0), np.zeros((d, d))
    for row in rows:
        out += np.outer(row - mean, row - mean) / len(rows)
    for i in range(d):
        for k in range(d):
            out[i, k] *= 1 - shrinkage if i != k else 1
        out[i, i] += 1e-6 * np.var(all_rows[:, i])
    return out


def mahalanobis(m, S_i, S_j, W):
    return m @ np.linalg.inv(W) @ m


def bhattacharyya(m, S_i, S_j, W):
    A = (S_i + S_j) / 2
    logs = [np.linalg.slogdet(matrix)[1] for matrix in (A, S_i, S_j)]
    return m @ np.linalg.inv(A) @ m / 8 + (logs[0] - (logs[1] + logs[2]) / 2) / 2


def divergence(m, S_i, S_j, W):
    inverse_i, inverse_j = np.linalg.inv(S_i), np.linalg.inv(S_j)
    return m @ (inverse_i + inverse_j) @ m / 2 + np.trace(inverse_i @ S_j + inverse_j @ S_i) / 2 - len(m)


def class_distance(distance, X, y, shrinkage=0.1):
    X = X[:, np.ptp(X, axis=0) > 0]
    classes = np.unique(y)
    p = [np.mean(y == c) for c in classes]
    means = [X[y == c].mean(axis=0) for c in classes]
    S = [covariance(X[y == c], X, shrinkage) for c in classes]
    W = sum(p[c] * S[c] for c in range(len(classes)))
    total = 0.0
    for i in range(len(classes)):
        for j in range(i + 1, len(classes)):
            total += p[i] * p[j] * distance(means[i] - means[j], S[i], S[j], W)
    return total


def share_between(X, labels):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    within = sum(np.sum((Z[labels == c] - Z[labels == c].mean(axis=0)) ** 2) for c in np.unique(labels))
    return 1 - within / np.sum(Z**2)


TWINS = {"mahalanobis": mahalanobis, "bhattacharyya": bhattacharyya, "divergence": divergence}


@pytest.fixture(params=["stored", "computed for each probe"])
def path(request, monkeypatch):
    """Standardized columns are stored or computed for each probe."""
    monkeypatch.setattr(separability, "CELLS_AT_A_TIME", 500)
    if request.param != "stored":
        monkeypatch.setattr(separability, "MEMORY_LIMIT", 0)


@pytest.mark.matrix(pairs=True)
@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("measure", DISTANCES)
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("shrinkage", [0, 0.1, 1])
def test_equals_the_twin(measure, n_classes, shrinkage):
    X, y = table(n_classes=n_classes)
    expected = [class_distance(TWINS[measure], X[:, s], y, shrinkage) for s in SUBSETS]
    values = Separability(measure, shrinkage=shrinkage).bind(X, y)(SUBSETS)
    np.testing.assert_allclose(values, expected, rtol=1e-8)


@pytest.mark.matrix(pairs=True)
@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("make", [np.asfortranarray, sp.csr_matrix, sp.csc_array])
def test_any_layout_gives_the_same(measure, make):
    X, y = table()
    X[np.abs(X) < 5] = 0
    layout = make(X)
    before = layout.copy()
    expected = Separability(measure).bind(X, y)(SUBSETS)
    np.testing.assert_allclose(Separability(measure).bind(layout, y)(SUBSETS), expected, rtol=1e-9)
    assert abs(layout - before).sum() == 0


@pytest.mark.matrix(pairs=True)
@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("dtype", [np.float32, np.int16, bool])
def test_any_number_type(measure, dtype):
    X, y = table()
    X = X > 0 if dtype is bool else X.astype(dtype)
    expected = Separability(measure).bind(X.astype(float), y)(SUBSETS)
    np.testing.assert_allclose(Separability(measure).bind(X, y)(SUBSETS), expected, rtol=1e-5)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("measure", MEASURES)
def test_shift_and_unit_of_a_column_do_not_matter(measure):
    X, y = table()
    rng = np.random.default_rng(1)
    moved = X * np.exp(rng.uniform(-10, 10, 20)) * rng.choice([-1, 1], 20) + rng.uniform(-1e3, 1e3, 20)
    moved[:, 0] = X[:, 0] + 1e7
    expected = Separability(measure).bind(X, y)(SUBSETS)
    np.testing.assert_allclose(Separability(measure).bind(moved, y)(SUBSETS), expected, rtol=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_order_of_rows_and_columns_does_not_matter(measure):
    X, y = table()
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(150), rng.permutation(20)
    place = np.argsort(columns)
    expected = Separability(measure).bind(X, y)(SUBSETS)
    moved = Separability(measure).bind(X[rows][:, columns], y[rows])
    np.testing.assert_allclose(moved(Subsets.of([place[s] for s in SUBSETS])), expected, rtol=1e-9)


@pytest.mark.parametrize("measure", DISTANCES)
@pytest.mark.parametrize("shrinkage", [0, 0.3])
def test_distances_never_decrease_when_a_feature_is_added(measure, shrinkage):
    X, y = table(n=60)
    growing = Subsets.of([np.arange(size) for size in range(1, 21)])
    values = Separability(measure, shrinkage=shrinkage).bind(X, y)(growing)
    assert np.all(np.diff(values) > -1e-9)
    assert values[0] >= 0


@pytest.mark.matrix(pairs=True)
@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("shrinkage", [0, 0.1, 1])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_poor_data_gives_a_finite_value(measure, shrinkage, make):
    """Constant, duplicate and one-sided columns, a class of one row, more columns than rows."""
    X, y = table(n=30, d=80, n_classes=2)
    y[7] = 2
    X[:, 3] = 0.1
    X[:, 4] = X[:, 5]
    X[y == 0, 6] = 3.3
    subsets = Subsets.of([[3], [4, 5], [6], [3, 6], [7], np.arange(80), []])
    values = Separability(measure, shrinkage=shrinkage).bind(make(X), y)(subsets)
    assert np.all(np.isfinite(values))
    assert np.all(values > -1e-9)
    np.testing.assert_allclose(values[[0, 6]], 0, atol=1e-12)
    np.testing.assert_allclose(values[2], values[3], rtol=1e-9)
    if measure in TWINS and shrinkage:
        expected = [class_distance(TWINS[measure], X[:, s], y, shrinkage) for s in [[4, 5], [6], np.arange(80)]]
        np.testing.assert_allclose(values[[1, 2, 5]], expected, rtol=1e-5)


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
def test_real_clusters_are_found(n_clusters):
    rng = np.random.default_rng(n_clusters)
    labels = np.arange(200) % n_clusters
    X = rng.uniform(-100, 100, (n_clusters, 20))[labels] + rng.standard_normal((200, 20))
    subsets = Subsets.of([np.arange(20), np.arange(15), np.arange(5, 20)])
    values = Separability("clusters", n_clusters=n_clusters).bind(X, None)(subsets)
    np.testing.assert_allclose(values, [share_between(X[:, s], labels) for s in subsets], rtol=1e-9)


@pytest.mark.parametrize("n_clusters", [2, 4])
def test_clusters_are_about_as_good_as_the_best_of_many_starts(n_clusters):
    X, _ = table()
    values = Separability("clusters", n_clusters=n_clusters).bind(X, None)(SUBSETS)
    for value, subset in zip(values, SUBSETS, strict=True):
        Z = (X[:, subset] - X[:, subset].mean(axis=0)) / X[:, subset].std(axis=0)
        best = 1 - KMeans(n_clusters, n_init=10, random_state=0).fit(Z).inertia_ / np.sum(Z**2)
        assert 0.85 * best <= value <= best + 0.01


def test_noise_lowers_the_cluster_score_and_columns_that_agree_are_found():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 40))
    X[:50, :6] += 2.5
    score = Separability("clusters").bind(X, None)
    alone, crowded, noise = score(Subsets.of([np.arange(6), np.arange(40), np.arange(6, 40)]))
    assert 1 > alone > crowded > noise > 0
    probes = ProbePlan(40, max_size=20, seed=0).draw(0, 600)
    coefficients = Tally.of(probes, score(probes), 40).daf0()
    assert set(np.argsort(-coefficients)[:6]) == set(range(6))


@pytest.mark.parametrize("measure", MEASURES)
def test_a_value_depends_neither_on_its_batch_nor_on_its_worker(measure):
    X, y = table()
    score = Separability(measure).bind(X, y)
    values = [v[0] for v in executor(1)(score, [Subsets.of([subset]) for subset in SUBSETS])]
    assert [v[0] for v in executor(4)(score, [Subsets.of([subset]) for subset in SUBSETS])] == values
    assert next(executor(1)(score, [SUBSETS])).tolist() == values
    assert next(executor(1)(pickle.loads(pickle.dumps(score)), [SUBSETS])).tolist() == values
    assert score(Subsets.of([])).tolist() == []
    assert score.folds.splits == ()
    assert score.folds.n_rows == 150


def test_text_labels_and_folds_do_not_matter():
    X, y = table()
    labels = np.array(["c", "a", "b"])[y]
    expected = Separability().bind(X, y)(SUBSETS)
    np.testing.assert_allclose(Separability().bind(X, labels, cv=7, groups=y)(SUBSETS), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "y", "words"),
    [
        ({"measure": "euclid"}, "labels", r"measure='euclid' is not known.*'clusters'"),
        ({"shrinkage": 1.5}, "labels", "shrinkage=1.5 must be from 0"),
        ({"shrinkage": np.nan}, "labels", "shrinkage=nan"),
        ({}, None, "y=None and measure='bhattacharyya' needs classes.*measure='clusters'"),
        ({}, np.linspace(0, 1, 150), "y is continuous and measure='bhattacharyya' needs classes"),
        ({}, np.zeros(150), "only one class"),
        ({"measure": "clusters", "n_clusters": 1}, None, "n_clusters=1 must be a whole number from 2 to"),
        ({"measure": "clusters", "n_clusters": 2.5}, None, "n_clusters=2.5 must be a whole number"),
        (
            {"measure": "clusters", "n_clusters": 150},
            None,
            "n_clusters=150 must be a whole number from 2 to n_rows - 1",
        ),
    ],
)
def test_bad_input_is_named(parameters, y, words):
    X, labels = table()
    with pytest.raises(ValueError, match=words):
        Separability(**parameters).bind(X, labels if isinstance(y, str) else y)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy"])
def test_scoring_is_refused(measure, scoring):
    X, y = table()
    with pytest.raises(ValueError, match=f"scoring='{scoring}' has no meaning for Separability"):
        Separability(measure).bind(X, y, scoring=scoring)
