"""The support vector machines equal scikit-learn's on the same folds: the same J, and the same path to it."""

import pickle
import platform

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
from sklearn.svm import SVC, SVR

from probewise.criteria import svm
from probewise.criteria.svm import SVM
from probewise.engine.probes import ProbePlan, Subsets
from probewise.executors import executor
from probewise.kernels import smo

SUBSETS = ProbePlan(30, max_size=25, seed=1).draw(0, 6)
KERNELS = pytest.mark.parametrize("kernel", ["linear", "rbf"])


def table(n=120, d=30, n_classes=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = 2 * rng.standard_normal((n, d)) + 3
    X[:, : d // 2] += y[:, None] * rng.uniform(size=d // 2) / n_classes
    X[:, 3] = 7  # constant
    X[:, 4] = X[:, 5]  # duplicate
    return (np.rint(X) if np.dtype(dtype).kind in "iu" else X).astype(dtype), y


def by_sklearn(estimator, X, y, subsets, cv=3, **options):
    return [cross_val_score(estimator, X[:, s], y, cv=cv, **options).mean() for s in subsets]


def assert_same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


@KERNELS
@pytest.mark.parametrize("n_classes", [2, 3, 10, 33])
def test_accuracy_equals_sklearn(kernel, n_classes):
    X, y = table(n=max(120, 3 * n_classes), n_classes=n_classes)
    assert_same(SVM(kernel).bind(X, y)(SUBSETS), by_sklearn(SVC(kernel=kernel), X, y, SUBSETS))


@KERNELS
def test_a_class_with_as_few_rows_as_folds(kernel):
    X, y = table()
    y = np.where(np.arange(120) < 3, 3, y)
    X[:3] += 5
    assert_same(SVM(kernel).bind(X, y)(SUBSETS), by_sklearn(SVC(kernel=kernel), X, y, SUBSETS))
    X, y = table(n=99, n_classes=33)
    assert_same(SVM(kernel).bind(X, y)(SUBSETS), by_sklearn(SVC(kernel=kernel), X, y, SUBSETS))


@pytest.mark.matrix(times=2)
@KERNELS
@pytest.mark.parametrize("make", [np.asfortranarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array])
@pytest.mark.parametrize("share", [0.5, 0.98])
def test_any_layout_equals_sklearn(kernel, make, share):
    X, y = table()
    X[np.random.default_rng(1).uniform(size=X.shape) < share] = 0
    layout = make(X)
    before = layout.copy()
    ours = SVM(kernel).bind(layout, y)(SUBSETS)
    assert_same(ours, by_sklearn(SVC(kernel=kernel), layout, y, SUBSETS))
    assert abs(layout - before).sum() == 0


@KERNELS
def test_entries_stored_twice_add_up(kernel):
    X, y = table()
    X[:, ::2] = 0
    once = sp.csc_matrix(X)
    twice = sp.csc_matrix((np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr), once.shape)
    assert_same(SVM(kernel).bind(twice, y)(SUBSETS), by_sklearn(SVC(kernel=kernel), once, y, SUBSETS))


@pytest.mark.matrix
@KERNELS
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint8, bool])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_any_number_type_equals_sklearn(kernel, dtype, make):
    X, y = table(n=90)
    X = make((X > 3) if dtype is bool else X.clip(0).astype(dtype))
    assert_same(SVM(kernel).bind(X, y)(SUBSETS), by_sklearn(SVC(kernel=kernel), X, y, SUBSETS))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "linear", "C": 0.01},
        {"kernel": "linear", "C": 5},
        {"kernel": "rbf", "C": 0.3, "gamma": "auto"},
        {"kernel": "rbf", "C": 100.0, "gamma": 0.02},
        {"kernel": "rbf", "gamma": 0},
    ],
    ids=str,
)
def test_parameters_mean_what_they_mean_in_sklearn(options):
    X, y = table()
    assert_same(SVM(**options).bind(X, y)(SUBSETS), by_sklearn(SVC(**options), X, y, SUBSETS))


@KERNELS
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_regression_equals_sklearn(kernel, make):
    X, y = table()
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.5] = 0
    X = make(X)
    target = 0.2 * y + 0.3 * np.random.default_rng(0).standard_normal(len(y))
    assert_same(SVM(kernel).bind(X, target)(SUBSETS), by_sklearn(SVR(kernel=kernel), X, target, SUBSETS))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_regression_on_rounded_numbers_equals_sklearn(make):
    """Steps tie up to rounding here, so that another order of summation takes another path."""
    X, y = table()
    X = make(X.clip(0).round(1))
    target = y + np.random.default_rng(0).standard_normal(len(y))
    assert_same(SVM().bind(X, target)(SUBSETS), by_sklearn(SVR(kernel="linear"), X, target, SUBSETS))


def test_a_whole_number_target_can_be_a_quantity():
    X, y = table(n_classes=40)
    ours = SVM("rbf", C=3, task="regression").bind(X, y)(SUBSETS)
    assert_same(ours, by_sklearn(SVR(C=3), X, y, SUBSETS, cv=KFold(3)))


@pytest.mark.parametrize("n_rows", [90, 500])
@pytest.mark.parametrize(
    ("kernel", "C", "is_long"),
    [("linear", 0.02, False), ("linear", 1.0, True), ("rbf", 1.0, False), ("rbf", 200.0, True)],
)
def test_the_path_is_libsvms(kernel, C, is_long, n_rows):
    """Weights and offset to rounding, where the tolerance of the solver would allow 1e-3."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n_rows, 20)), np.arange(n_rows) // (n_rows // 2)
    X += 0.2 * y[:, None]
    reference = SVC(kernel=kernel, C=C, gamma=0.05).fit(X, y)
    K = svm._products(X, exactly=True)
    if kernel == "rbf":
        K = np.exp(-0.05 * svm._squared_distances(K))
    room = smo.Room.of(n_rows)
    smo.add_class(np.arange(n_rows), 0, n_rows // 2, 0, 1.0, room.state, room.ids)
    smo.add_class(np.arange(n_rows), n_rows // 2, n_rows, n_rows // 2, -1.0, room.state, room.ids)
    offset = smo.solve(K, n_rows, C, *room)
    weights = np.zeros(n_rows)
    weights[reference.support_] = -reference.dual_coef_[0]
    to_the_bit = kernel == "linear" and platform.machine() in ("x86_64", "AMD64")
    np.testing.assert_allclose(room.state[smo.BUFFER, :n_rows], weights, rtol=0, atol=0 if to_the_bit else 1e-7 * C)
    np.testing.assert_allclose(offset, reference.intercept_[0], rtol=0, atol=0 if to_the_bit else 1e-7)
    assert not is_long or reference.n_iter_[0] > 2 * n_rows  # variables are set aside, and looked at again


def test_a_row_on_the_border_goes_to_the_later_class():
    X, y = np.array([[-1.0], [1], [-1], [1], [0], [0]]), np.array([0, 1, 0, 1, 1, 1])
    cv = [(np.arange(4), np.array([4, 5]))]
    assert SVM().bind(X, y, cv)(Subsets.of([[0]])) == by_sklearn(SVC(kernel="linear"), X, y, [[0]], cv=cv) == [1]


@pytest.mark.matrix
@KERNELS
@pytest.mark.parametrize(
    "cv",
    [
        5,
        StratifiedKFold(4, shuffle=True, random_state=0),
        ShuffleSplit(3, test_size=0.3, random_state=0),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
        TimeSeriesSplit(3),
        LeaveOneOut(),
        [(np.arange(30), np.arange(30, 60)), (np.arange(20, 60), np.arange(20))],
    ],
    ids=str,
)
def test_any_splitter(kernel, cv):
    X, y = table(n=60)
    subsets = Subsets.of(list(SUBSETS)[:2])
    assert_same(SVM(kernel).bind(X, y, cv)(subsets), by_sklearn(SVC(kernel=kernel), X, y, subsets, cv=cv))


def test_a_class_that_a_training_fold_lacks():
    X, y = table()
    cv = [(np.flatnonzero(y != 1), np.arange(120)), (np.arange(120), np.arange(50))]
    assert_same(SVM().bind(X, y, cv)(SUBSETS), by_sklearn(SVC(kernel="linear"), X, y, SUBSETS, cv=cv))


def test_groups_stay_together():
    X, y = table()
    groups = np.arange(120) // 10
    expected = by_sklearn(SVC(), X, y, SUBSETS, cv=GroupKFold(4), groups=groups)
    assert_same(SVM("rbf").bind(X, y, GroupKFold(4), groups=groups)(SUBSETS), expected)


@KERNELS
def test_more_features_than_rows(kernel):
    X, y = table(n=30, d=200)
    subsets = ProbePlan(200, seed=0).draw(0, 5)
    assert_same(SVM(kernel).bind(X, y)(subsets), by_sklearn(SVC(kernel=kernel), X, y, subsets))


@KERNELS
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_constant_columns_and_equal_rows(kernel, make):
    X, y = table()
    X[60:] = X[:60]
    X[:, 6] = 0
    subsets = Subsets.of([[3], [3, 6], [6], [0, 3, 4, 5]])
    assert_same(SVM(kernel).bind(make(X), y)(subsets), by_sklearn(SVC(kernel=kernel), X, y, subsets))


def test_text_labels():
    X, y = table()
    labels = np.array(["c", "a", "b"])[y]
    assert_same(SVM().bind(X, labels)(SUBSETS), by_sklearn(SVC(kernel="linear"), X, labels, SUBSETS))


@KERNELS
def test_a_value_depends_neither_on_its_batch_nor_on_its_worker(kernel):
    X, y = table()
    score = SVM(kernel).bind(X, y)
    together = score(SUBSETS).tolist()
    alone = [Subsets.of([subset]) for subset in SUBSETS]
    assert np.concatenate([score(subset) for subset in alone]).tolist() == together
    assert np.concatenate(list(executor(2, prefer=SVM.prefer)(score, alone))).tolist() == together
    assert pickle.loads(pickle.dumps(score))(SUBSETS).tolist() == together


@pytest.mark.matrix(times=2)
@KERNELS
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("most_rows", [30, 110])  # less than two classes have, less than there are
@pytest.mark.parametrize("shift", [0, 0.25])
def test_many_rows_are_left_to_sklearn(kernel, make, most_rows, shift, monkeypatch):
    X, y = table()
    X, y = make(np.where(X > 1, X, 0)), y + shift
    expected = SVM(kernel).bind(X, y)(SUBSETS)
    original, calls = svm.BoundScorer, []
    monkeypatch.setattr(svm, "BoundScorer", lambda *arguments: calls.append(1) or original(*arguments))
    monkeypatch.setattr(svm, "MOST_ROWS", most_rows)
    assert_same(SVM(kernel).bind(X, y)(SUBSETS), expected)
    assert calls


@KERNELS
def test_tuning_takes_the_best_of_the_grid_on_all_features(kernel):
    X, y = table(n=90)
    scale = 1 / (30 * X.var())
    gammas = [share * scale for share in svm.GAMMA_GRID] if kernel == "rbf" else ["scale"]
    grid = [(C, gamma) for C in svm.C_GRID for gamma in gammas]
    scores = [cross_val_score(SVC(kernel=kernel, C=C, gamma=gamma), X, y, cv=3).mean() for C, gamma in grid]
    assert max(scores) > min(scores)
    tuned = SVM(kernel, C=77, tune=True).bind(X, y)
    best_C, best_gamma = grid[int(np.argmax(scores))]
    assert best_C == tuned.C
    assert tuned.gamma == best_gamma if kernel == "linear" else np.isclose(tuned.gamma, best_gamma)
    reference = SVC(kernel=kernel, C=tuned.C, gamma=tuned.gamma)
    assert_same(tuned(SUBSETS), by_sklearn(reference, X, y, SUBSETS))


def test_tuning_takes_the_smallest_of_equals():
    X, y = table()
    X += 10 * y[:, None]
    assert min(svm.C_GRID) == SVM(tune=True).bind(X, y).C


def test_tuning_on_wide_data_sees_evenly_spaced_features(monkeypatch):
    X, y = table(n=90)
    monkeypatch.setattr(svm, "TUNED_FEATURES", 10)
    wide, narrow = SVM("rbf", tune=True).bind(X, y), SVM("rbf", tune=True).bind(X[:, ::3], y)
    assert (wide.C, wide.gamma) == (narrow.C, narrow.gamma)


@pytest.mark.parametrize(
    ("options", "y", "words"),
    [
        ({"kernel": "poly"}, None, "kernel='poly': choose"),
        ({"C": 0}, None, "C=0 must be a positive number"),
        ({"C": "1"}, None, "C='1' must be"),
        ({"gamma": "wide"}, None, "gamma='wide': choose"),
        ({"gamma": -1}, None, "gamma=-1: choose"),
        ({"task": "ranking"}, None, "task='ranking'"),
        ({}, np.zeros(120), "only one class"),
        ({}, np.array([0] * 118 + [1, 1]), "class 1 has n_samples=2, fewer than cv=3"),
    ],
)
def test_bad_input_is_named(options, y, words):
    X, labels = table()
    with pytest.raises(ValueError, match=words):
        SVM(**options).bind(X, labels if y is None else y)


def test_a_training_fold_of_one_class_is_named():
    X, y = table(n_classes=2)
    with pytest.raises(ValueError, match="only class b: use a cv"):
        SVM().bind(X, np.array(["a", "b"])[y], [(np.flatnonzero(y == 1), np.flatnonzero(y == 0))])


def test_columns_beyond_float32_are_named():
    X, y = table()
    with pytest.raises(ValueError, match="columns are too large"):
        SVM().bind(X * 1e20, y)(SUBSETS)


def test_another_scoring_is_refused_with_the_remedy():
    X, y = table()
    assert len(SVM().bind(X, y, scoring="accuracy")(SUBSETS)) == len(SUBSETS)
    with pytest.raises(ValueError, match=r"scoring='neg_log_loss'.*SVC\(kernel='rbf'\)"):
        SVM("rbf").bind(X, y, scoring="neg_log_loss")
    with pytest.raises(ValueError, match=r"scoring='accuracy'.*SVR"):
        SVM(task="regression").bind(X, y, scoring="accuracy")
