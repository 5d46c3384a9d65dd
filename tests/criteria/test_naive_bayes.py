"""NaiveBayes: equal to scikit-learn's GaussianNB on the same folds, for any layout, type and size of X."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import ShuffleSplit, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from probewise.criteria import SVM, Separability, naive_bayes
from probewise.criteria.device import to_device
from probewise.criteria.naive_bayes import NaiveBayes
from probewise.engine.probes import ProbePlan, Subsets
from probewise.validation.stores import Stored


def table(n=120, d=30, n_classes=3, seed=0):
    return columns(np.random.default_rng(seed).permutation(np.arange(n) % n_classes), d, seed)


def counts(n_classes=3, seed=0):
    """Small whole numbers, most of them 0, as in text; classes of different size, so that posteriors do not tie."""
    y = np.repeat(np.arange(n_classes), 6 + 3 * np.arange(n_classes))
    X, y = columns(np.random.default_rng(seed).permutation(y), 30, seed)
    return np.maximum(0, np.rint((X - X.mean(axis=0)) / X.std(axis=0).clip(1e-9))), y


def columns(y, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((len(y), d)) * rng.uniform(1, 20, d) + 40
    X[:, : d // 2] += 6 * y[:, None] * rng.uniform(size=d // 2)
    X[:, 3] = 0.1  # constant
    X[:, 4] = X[:, 5]  # duplicate
    X[:, 6] *= 1000
    X[y == 0, 7] = 0.3  # constant in one class
    return X, y


SUBSETS = ProbePlan(30, max_size=25, seed=1).draw(0, 8)


def by_sklearn(X, y, subsets=SUBSETS, cv=3, groups=None, **parameters):
    estimator = GaussianNB(**parameters)
    return [cross_val_score(estimator, X[:, s], y, cv=cv, groups=groups, error_score="raise").mean() for s in subsets]


def assert_same(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 10, 33])
@pytest.mark.parametrize("data", [table, counts])
def test_equals_sklearn(n_classes, data):
    X, y = data(n_classes=n_classes)
    expected = by_sklearn(X, y)
    assert len(set(expected)) > 4
    for layout in (X, sp.csr_matrix(X)):
        assert_same(NaiveBayes().bind(layout, y)(SUBSETS), expected)


@pytest.mark.parametrize("make", [np.asfortranarray, sp.csr_matrix, sp.csc_array, sp.coo_array, Stored])
def test_any_layout_equals_sklearn(make):
    """One class has only as many rows as there are folds."""
    X, y = counts()
    y[np.flatnonzero(y == 2)[3:]] = 1
    layout = make(X)
    before = None if make is Stored else layout.copy()
    assert_same(NaiveBayes().bind(layout, y)(SUBSETS), by_sklearn(X, y))
    assert before is None or abs(layout - before).sum() == 0


def test_views_and_duplicate_entries():
    X, y = counts()
    expected = by_sklearn(X, y)
    wide = np.repeat(X, 2, axis=1)
    assert_same(NaiveBayes().bind(wide[:, ::2], y)(SUBSETS), expected)
    whole = sp.csc_matrix(X)
    halves = sp.csc_matrix(
        (np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape
    )
    assert_same(NaiveBayes().bind(halves, y)(SUBSETS), expected)
    assert halves.nnz == 2 * whole.nnz


@pytest.mark.matrix
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, np.uint8, np.uint16, bool])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_any_number_type_is_counted_in_float64(dtype, make):
    X, y = counts()
    X = X.astype(dtype)
    assert_same(NaiveBayes().bind(make(X), y)(SUBSETS), by_sklearn(X.astype(float), y))


@pytest.mark.parametrize("shift", [1e6, 1e12])
def test_a_mean_far_above_the_spread_changes_nothing(shift):
    X, y = counts()
    expected = by_sklearn(X, y)
    assert_same(NaiveBayes().bind(X + shift, y)(SUBSETS), expected)


@pytest.mark.matrix
@pytest.mark.parametrize("var_smoothing", [1e-9, 1e-3, 1.0])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_smoothing_follows_the_largest_variance_of_the_subset(var_smoothing, make):
    X, y = table()
    expected = by_sklearn(X, y, var_smoothing=var_smoothing)
    assert_same(NaiveBayes(var_smoothing=var_smoothing).bind(make(X), y)(SUBSETS), expected)
    if var_smoothing == 1.0:
        with_the_largest = by_sklearn(X, y, [[*s, 6] for s in SUBSETS], var_smoothing=1.0)
        assert not np.allclose(expected, with_the_largest)


def test_more_features_than_rows_and_many_rows():
    X, y = table(n=20, d=200, n_classes=2)
    subsets = ProbePlan(200, seed=0).draw(0, 5)
    assert_same(NaiveBayes().bind(X, y)(subsets), by_sklearn(X, y, subsets))
    X, y = table(n=6500, n_classes=2)
    assert_same(NaiveBayes().bind(X, y)(SUBSETS), by_sklearn(X, y))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_constant_columns_predict_the_most_frequent_class(make):
    X, y = table()
    y = np.where(y == 0, 1, y)
    X[:, 8] = 1e7
    subsets = Subsets.of([[3], [3, 8]])
    most_frequent = [np.mean(y[test] == 1) for _, test in StratifiedKFold(3).split(X, y)]
    assert_same(NaiveBayes().bind(make(X), y)(subsets), [np.mean(most_frequent)] * 2)


def test_without_smoothing_a_column_constant_in_a_class_is_not_used():
    X, y = table()
    with_it, without = Subsets.of([[0, 1, 7], [7]]), Subsets.of([[0, 1], [3]])
    score = NaiveBayes(var_smoothing=0).bind(X, y)
    assert score(with_it).tolist() == score(without).tolist()
    assert_same(score(without)[:1], by_sklearn(X, y, [[0, 1]], var_smoothing=0))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, Stored])
@pytest.mark.parametrize("cv", [3, "loo", ShuffleSplit(3, random_state=0)], ids=str)
def test_models_that_do_not_fit_in_memory_change_no_bit(make, cv, monkeypatch):
    X, y = table()
    subsets = Subsets.of([*SUBSETS, []])
    expected = NaiveBayes().bind(make(X), y, cv)
    monkeypatch.setattr(naive_bayes, "MEMORY_LIMIT", 0)
    monkeypatch.setattr(naive_bayes, "CELLS_AT_A_TIME", 500)
    monkeypatch.setattr("probewise.criteria.scoring.MOST_PREDICTIONS", 8000)
    score = NaiveBayes().bind(make(X), y, cv)
    assert score.models is None
    assert score(subsets).tolist() == expected(subsets).tolist()


def test_rows_near_the_border_of_two_classes():
    """float32 could not decide on which side of the border these test rows are."""
    train = np.concatenate([np.linspace(-1, 1, 50), np.linspace(2, 4, 50), np.linspace(9, 11, 50)])
    border = 1.5 + np.array([-1e-9, 1e-9, -1e-12, 1e-12])
    x, y = np.concatenate([train, border]), np.concatenate([np.repeat([0, 1, 2], 50), [0, 1, 0, 1]])
    X = np.column_stack([x, x, np.full(154, 7.0), x * 1e-20, x * 1e20])
    score = NaiveBayes().bind(X, y, [(np.arange(150), np.arange(150, 154))])
    assert score(Subsets.of([[0], [0, 1], [0, 2], [3], [4], [0, 1, 2, 3, 4]])).tolist() == [1.0] * 6


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_the_first_of_equal_classes_wins(make):
    X, _ = table(n=40)
    twice, y = np.tile(X, (2, 1)), np.repeat([0, 1], 40)
    score = NaiveBayes().bind(make(twice), y, [(np.arange(80), np.arange(40)), (np.arange(80), np.arange(40, 80))])
    assert_same(score(SUBSETS), 0.5)
    first = NaiveBayes().bind(make(twice), y, [(np.arange(80), np.arange(40))])
    assert_same(first(SUBSETS), 1.0)


def test_training_rows_may_repeat():
    X, y = counts(n_classes=5)
    cv = [(np.random.default_rng(0).integers(0, len(y), 60), np.arange(len(y)))]
    expected = by_sklearn(X, y, cv=cv)
    for layout in (X, sp.csr_matrix(X)):
        assert_same(NaiveBayes().bind(layout, y, cv)(SUBSETS), expected)


@pytest.mark.parametrize(
    ("parameters", "y", "words"),
    [
        ({}, np.zeros(120), "only one class"),
        ({}, np.linspace(0, 1, 120), "NaiveBayes needs classes.*criterion='knn' or 'linear'"),
        ({"var_smoothing": -1}, None, "var_smoothing=-1 must be a number of at least 0"),
        ({"var_smoothing": np.nan}, None, "var_smoothing=nan"),
        ({}, np.array([0] * 118 + [1, 1]), "class 1 has n_samples=2, fewer than cv=3"),
        ({}, np.linspace(0, 1, 240).reshape(120, 2), "y is continuous and NaiveBayes needs classes"),
    ],
)
def test_bad_input_is_named(parameters, y, words):
    X, labels = table()
    with pytest.raises(ValueError, match=words):
        NaiveBayes(**parameters).bind(X, labels if y is None else y)


def test_the_ledger_distinguishes_two_settings():
    assert NaiveBayes().describe() == "NaiveBayes(var_smoothing=1e-09)"
    assert NaiveBayes().describe() != NaiveBayes(var_smoothing=0.1).describe()


@pytest.mark.parametrize("n_rows", [1, 2, 5, 30])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_moments_without_each_row(n_rows, is_weighted):
    """Columns far from 0, constant, and constant but for one row."""
    rng = np.random.default_rng(n_rows)
    columns = np.array([rng.normal(size=n_rows) + 1e6, np.full(n_rows, 0.1), np.full(n_rows, 0.1)])
    columns[2, 0] = 1e9
    weights = rng.uniform(size=n_rows) * (np.arange(n_rows) != 3) if is_weighted else np.ones(n_rows)
    mean, variance = naive_bayes.moments_without_each(columns, weights)
    assert (variance[1] == 0).all()
    assert variance[2, 0] == 0
    for row in range(n_rows):
        others = np.delete(np.arange(n_rows), row)
        if len(others):
            share = weights[others] / weights[others].sum()
            expected = (columns[:, others] * share).sum(axis=1)
            squares = (columns[:, others] - expected[:, None]) ** 2
            np.testing.assert_allclose(mean[:, row], expected, rtol=1e-12)
            np.testing.assert_allclose(variance[:, row], (squares * share).sum(axis=1), rtol=1e-8, atol=1e-25)


def test_sparse_moments_equal_dense_ones():
    X, y = table()
    X[np.abs(X - 40) < 20] = 0
    X[:, 9] = 1e9 + np.arange(120)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 2.0], 120)
    mean, variance = naive_bayes.sparse_moments(sp.csc_matrix(X), y, weights, 4)
    for c in range(3):
        expected = naive_bayes.moments(X.T[:, y == c], weights[y == c])
        np.testing.assert_allclose(mean[:, c], expected[0], rtol=1e-12)
        np.testing.assert_allclose(variance[:, c], expected[1], rtol=1e-9)
    assert (variance[3] == 0).all()


@pytest.mark.parametrize("criterion", [NaiveBayes(), SVM(), Separability(), Separability("clusters")], ids=str)
def test_a_gpu_is_refused(criterion, monkeypatch):
    monkeypatch.setattr("probewise.criteria.device.find", lambda device: "cuda")
    bound = criterion.bind(*table())
    name = type(criterion).__name__
    with pytest.raises(
        ValueError, match=rf"device='cuda': {name} runs on the CPU only: .*criterion='knn', 'linear' or an"
    ):
        to_device(bound, "cuda")
    assert to_device(bound, "auto") is bound
