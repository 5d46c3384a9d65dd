"""Naive Bayes from moments equals scikit-learn's GaussianNB on the same folds, wherever the data is kept."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
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

from probewise.criteria import naive_bayes
from probewise.criteria.naive_bayes import NaiveBayes
from probewise.engine.probes import ProbePlan, Subsets
from probewise.executors import executor
from probewise.kernels import bayes as kernels


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


@pytest.mark.parametrize("make", [np.asarray, sp.csc_matrix])
def test_a_class_with_as_few_rows_as_folds(make):
    X, _ = table()
    y = np.arange(120) % 2
    y[:3] = 2
    assert_same(NaiveBayes().bind(make(X), y)(SUBSETS), by_sklearn(X, y))


@pytest.mark.parametrize("make", [np.asfortranarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.coo_array])
def test_any_layout_gives_the_same(make):
    X, y = counts()
    expected = NaiveBayes().bind(X, y)(SUBSETS)
    layout = make(X)
    before = layout.copy()
    assert_same(NaiveBayes().bind(layout, y)(SUBSETS), expected)
    assert abs(layout - before).sum() == 0


def test_views_and_entries_in_parts():
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


def test_float32_equals_sklearn_in_float32():
    X, y = table()
    X = X.astype(np.float32)
    np.testing.assert_allclose(NaiveBayes().bind(X, y)(SUBSETS), by_sklearn(X, y), atol=1.5 / 120)


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


@pytest.mark.matrix
@pytest.mark.parametrize(
    "cv",
    [
        5,
        StratifiedKFold(4, shuffle=True, random_state=0),
        ShuffleSplit(3, test_size=0.3, random_state=0),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
        TimeSeriesSplit(3),
        LeaveOneOut(),
        KFold(3),
        [(np.arange(60), np.arange(60, 120)), (np.arange(30, 120), np.arange(30))],
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("sort", [False, True], ids=["mixed", "sorted"])
def test_any_splitter(cv, make, sort):
    """With rows sorted by class, training rows may lack a class that is then never told."""
    X, y = table()
    if sort:
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
        if isinstance(cv, KFold | list):
            X, y = np.roll(X, 50, axis=0), np.roll(y, 50)
    few = ProbePlan(30, max_size=25, seed=1).draw(0, 3)
    assert_same(NaiveBayes().bind(make(X), y, cv)(few), by_sklearn(X, y, few, cv))


def test_groups_stay_together():
    X, y = table()
    groups = np.arange(120) // 10
    expected = by_sklearn(X, y, cv=GroupKFold(4), groups=groups)
    assert_same(NaiveBayes().bind(X, y, GroupKFold(4), groups=groups)(SUBSETS), expected)


def test_more_features_than_rows_and_more_rows_than_a_tile():
    X, y = table(n=20, d=200, n_classes=2)
    subsets = ProbePlan(200, seed=0).draw(0, 5)
    assert_same(NaiveBayes().bind(X, y)(subsets), by_sklearn(X, y, subsets))
    X, y = table(n=6500, n_classes=2)
    assert_same(NaiveBayes().bind(X, y)(SUBSETS), by_sklearn(X, y))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_constant_columns_alone_leave_the_prior(make):
    X, y = table()
    y = np.where(y == 0, 1, y)
    X[:, 8] = 1e7
    subsets = Subsets.of([[3], [3, 8]])
    most_frequent = [np.mean(y[test] == 1) for _, test in StratifiedKFold(3).split(X, y)]
    assert_same(NaiveBayes().bind(make(X), y)(subsets), [np.mean(most_frequent)] * 2)


def test_without_smoothing_a_column_constant_in_a_class_says_nothing():
    X, y = table()
    with_it, without = Subsets.of([[0, 1, 7], [7]]), Subsets.of([[0, 1], [3]])
    score = NaiveBayes(var_smoothing=0).bind(X, y)
    assert score(with_it).tolist() == score(without).tolist()
    assert_same(score(without)[:1], by_sklearn(X, y, [[0, 1]], var_smoothing=0))


@pytest.mark.matrix
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("cv", [3, 10, ShuffleSplit(3, random_state=0)], ids=str)
def test_what_is_kept_in_memory_changes_no_bit(make, cv, monkeypatch):
    X, y = table()
    kept = NaiveBayes().bind(make(X), y, cv)
    moments = 32 * len(kept.folds.splits) * 30 * 3
    for limit in (moments, 0):
        monkeypatch.setattr(naive_bayes, "MEMORY_LIMIT", limit)
        score = NaiveBayes().bind(make(X), y, cv)
        assert score(SUBSETS).tolist() == kept(SUBSETS).tolist()
        assert score.models is None or score.models[0].columns is None
    assert score.models is None


def test_rows_near_the_border_are_told_in_float64():
    """Test rows are so near to where two classes cost the same that float32 cannot say on which side."""
    train = np.concatenate([np.linspace(-1, 1, 50), np.linspace(2, 4, 50), np.linspace(9, 11, 50)])
    border = 1.5 + np.array([-1e-9, 1e-9, -1e-12, 1e-12])
    x, y = np.concatenate([train, border]), np.concatenate([np.repeat([0, 1, 2], 50), [0, 1, 0, 1]])
    X = np.column_stack([x, x, np.full(154, 7.0), x * 1e-20, x * 1e20])
    score = NaiveBayes().bind(X, y, [(np.arange(150), np.arange(150, 154))])
    assert score(Subsets.of([[0], [0, 1], [0, 2], [3], [4], [0, 1, 2, 3, 4]])).tolist() == [1.0] * 6


@pytest.mark.parametrize("smoothing", [0, 1e-9, 2e-5, 0.1])
def test_float32_is_off_by_less_than_its_bound(smoothing):
    X, y = table(n_classes=4)
    X[:, 3] = X[:, 7] = X[:, 0]
    model = NaiveBayes().bind(X, y).models[0]
    bend, slope = np.empty((2, 3, 25), np.float32)
    less, start, rows = np.empty(3), np.empty(4), len(model.truth)
    quick, exact = np.empty((3, rows), np.float32), np.empty((4, rows))
    center, scale = np.empty((2, 4, 25))
    for subset in SUBSETS:
        bound = kernels.difference_model(subset, model.moments, model.standard, smoothing, bend, slope, less)
        kernels.find_differences(model.standard.columns, subset, bend, slope, 0, rows, quick)
        kernels.probe_model(subset, model.moments, smoothing, center, scale, start)
        kernels.find_costs(model.columns, subset, center, scale, start, 0, rows, exact)
        assert 0 < bound < kernels.DOUBT
        np.testing.assert_allclose(quick + less[:, None], exact[1:] - exact[0], rtol=0, atol=bound / 2)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_of_equal_classes_the_first_wins(make):
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


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("cv", [3, 10])
def test_a_value_depends_neither_on_its_batch_nor_on_threads_nor_on_the_journey(make, cv):
    X, y = table()
    score = NaiveBayes().bind(make(X), y, cv)
    values = score(SUBSETS).tolist()
    assert [score(Subsets.of([subset]))[0] for subset in SUBSETS] == values
    assert [v[0] for v in executor(4)(score, [Subsets.of([subset]) for subset in SUBSETS])] == values
    assert pickle.loads(pickle.dumps(score))(SUBSETS).tolist() == values
    assert score(Subsets.of([])).tolist() == []


def test_text_labels():
    X, y = table()
    labels = np.array(["c", "a", "b"])[y]
    assert_same(NaiveBayes().bind(X, labels)(SUBSETS), by_sklearn(X, labels))


@pytest.mark.parametrize(
    ("parameters", "y", "words"),
    [
        ({}, np.zeros(120), "only one class"),
        ({}, np.linspace(0, 1, 120), r"NaiveBayes needs classes.*KNN\(task='regression'\)"),
        ({"var_smoothing": -1}, None, "var_smoothing=-1 must be 0 or more"),
        ({"var_smoothing": np.nan}, None, "var_smoothing=nan"),
        ({}, np.array([0] * 118 + [1, 1]), "class 1 has n_samples=2, fewer than cv=3"),
        ({}, np.zeros((120, 2)), "y is"),
    ],
)
def test_bad_input_is_named(parameters, y, words):
    X, labels = table()
    with pytest.raises(ValueError, match=words):
        NaiveBayes(**parameters).bind(X, labels if y is None else y)


def test_another_scoring_is_refused_with_the_remedy():
    X, y = table()
    assert len(NaiveBayes().bind(X, y, scoring="accuracy")(SUBSETS)) == len(SUBSETS)
    with pytest.raises(ValueError, match=r"scoring='neg_log_loss'.*GaussianNB"):
        NaiveBayes().bind(X, y, scoring="neg_log_loss")


def test_the_ledger_tells_two_settings_apart():
    assert NaiveBayes().describe() == "NaiveBayes(var_smoothing=1e-09)"
    assert NaiveBayes().describe() != NaiveBayes(var_smoothing=0.1).describe()
