"""SVM: equal to scikit-learn's machines on the same folds; tuning; errors."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from probewise.criteria import svm
from probewise.criteria.svm import SVM
from probewise.engine.probes import ProbePlan, Subsets

SUBSETS = ProbePlan(30, max_size=25, seed=1).draw(0, 3)
KERNELS = pytest.mark.parametrize("kernel", ["linear", "rbf"])
CLASSIFIERS = {"linear": LinearSVC(random_state=0), "rbf": SVC()}


def linear_regressor(**parameters):
    model = LinearSVR(epsilon=0.1, random_state=0, **parameters)
    return TransformedTargetRegressor(model, transformer=StandardScaler(with_std=False))


def table(n=90, d=30, n_classes=3):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % n_classes)
    X = 2 * rng.standard_normal((n, d)) + 1
    X[:, : d // 2] += y[:, None] * rng.uniform(size=d // 2) / n_classes
    X[:, 3] = 7  # constant
    X[:, 4] = X[:, 5]  # duplicate
    return X, y


def by_sklearn(estimator, X, y, subsets=SUBSETS, cv=3, **options):
    return [cross_val_score(estimator, X[:, s], y, cv=cv, **options).mean() for s in subsets]


@KERNELS
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("make", [np.asfortranarray, sp.csr_matrix, sp.csc_array])
def test_classes_equal_sklearn_for_any_layout(kernel, n_classes, make):
    X, y = table(n_classes=n_classes)
    X[X < 1] = 0
    layout, labels = make(X), np.array(list("cabdefghij"))[y]
    before = layout.copy()
    np.testing.assert_array_equal(
        SVM(kernel).bind(layout, labels)(SUBSETS), by_sklearn(CLASSIFIERS[kernel], layout, labels)
    )
    assert abs(layout - before).sum() == 0


@pytest.mark.parametrize(
    ("criterion", "estimator"),
    [
        (SVM(C=0.01), LinearSVC(C=0.01, random_state=0)),
        (SVM("rbf", C=0.3, gamma="auto"), SVC(C=0.3, gamma="auto")),
        (SVM("rbf", C=100.0, gamma=0.02), SVC(C=100.0, gamma=0.02)),
        (SVM("rbf", gamma=0), SVC(gamma=0)),
    ],
    ids=str,
)
def test_parameters_have_the_meaning_of_sklearn(criterion, estimator):
    X, y = table()
    np.testing.assert_array_equal(criterion.bind(X, y)(SUBSETS), by_sklearn(estimator, X, y))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("offset", [0, 1000])
def test_numbers_equal_sklearn(make, offset):
    """liblinear penalizes the intercept, so the target is centered first: J does not depend on its mean."""
    X, y = table()
    target = offset + X[:, 0] + 0.2 * y + 0.3 * np.random.default_rng(0).standard_normal(len(y))
    subsets = Subsets.of([[0, 1], range(25)])
    for criterion, estimator in ((SVM(C=2), linear_regressor(C=2)), (SVM("rbf"), SVR())):
        found = criterion.bind(make(X), target)(subsets)
        np.testing.assert_array_equal(found, by_sklearn(estimator, make(X), target, subsets))
        assert found[0] > 0.4


def test_a_whole_number_target_can_be_a_quantity():
    X, y = table(n_classes=40)
    found = SVM("rbf", C=3, task="regression").bind(X, y)(SUBSETS)
    np.testing.assert_array_equal(found, by_sklearn(SVR(C=3), X, y, cv=KFold(3)))


def test_columns_of_any_scale_end_without_a_warning():
    X, y = table()
    X *= 10.0 ** np.arange(-15, 15)
    for criterion in (SVM(), SVM(task="regression"), SVM("rbf")):
        assert np.isfinite(criterion.bind(X, y)(SUBSETS)).all()


@KERNELS
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_tuning_takes_the_best_of_the_grid_on_all_features(kernel, make):
    X, y = table()
    gammas = [multiple / (30 * X.var()) for multiple in svm.GAMMA_GRID] if kernel == "rbf" else ["scale"]
    grid = [(C, gamma) for C in svm.C_GRID for gamma in gammas]

    def estimator(C, gamma):
        return SVC(C=C, gamma=gamma) if kernel == "rbf" else LinearSVC(C=C, random_state=0)

    scores = [cross_val_score(estimator(*parameters), X, y, cv=3).mean() for parameters in grid]
    assert max(scores) > min(scores)
    tuned = SVM(kernel, C=77, tune=True).bind(make(X), y)
    best_C, best_gamma = grid[int(np.argmax(scores))]
    assert best_C == tuned.C
    assert tuned.gamma == best_gamma if kernel == "linear" else np.isclose(tuned.gamma, best_gamma)
    np.testing.assert_array_equal(tuned(SUBSETS), by_sklearn(estimator(tuned.C, tuned.gamma), make(X), y))


def test_tuning_takes_the_smallest_of_equals():
    X, y = table()
    assert min(svm.C_GRID) == SVM(tune=True).bind(X + 10 * y[:, None], y).C


def test_tuning_on_wide_data_uses_evenly_spaced_features(monkeypatch):
    X, y = table()
    monkeypatch.setattr(svm, "TUNED_FEATURES", 10)
    wide, narrow = SVM("rbf", tune=True).bind(X, y), SVM("rbf", tune=True).bind(X[:, ::3], y)
    assert (wide.C, wide.gamma) == (narrow.C, narrow.gamma)


@pytest.mark.parametrize(
    ("options", "y", "words"),
    [
        ({"kernel": "poly"}, None, "kernel='poly': choose"),
        ({"C": 0}, None, "C=0 must be a positive number"),
        ({"C": "1"}, None, "C='1' must be a positive number"),
        ({"gamma": "wide"}, None, "gamma='wide': choose 'scale', 'auto' or a number of at least 0"),
        ({"gamma": -1}, None, "gamma=-1: choose"),
        ({"task": "ranking"}, None, "task='ranking'"),
        ({}, np.zeros(90), "only one class"),
        ({}, np.array([0] * 88 + [1, 1]), "class 1 has n_samples=2, fewer than cv=3"),
    ],
)
def test_bad_input_is_named(options, y, words):
    X, labels = table()
    with pytest.raises(ValueError, match=words):
        SVM(**options).bind(X, labels if y is None else y)(SUBSETS)


@KERNELS
def test_a_training_fold_of_one_class_is_refused(kernel):
    X, y = table(n_classes=2)
    score = SVM(kernel).bind(X, y, [(np.flatnonzero(y == 1), np.flatnonzero(y == 0))])
    with pytest.raises(ValueError, match=r"1 class|only one class"):
        score(SUBSETS)


def test_another_scoring_is_refused_with_the_remedy():
    X, y = table()
    with pytest.raises(ValueError, match=r"scoring='neg_log_loss'.*criterion=SVC\(\)"):
        SVM("rbf").bind(X, y, scoring="neg_log_loss")
    with pytest.raises(ValueError, match=r"scoring='accuracy'.*LinearSVR"):
        SVM(task="regression").bind(X, y, scoring="accuracy")
