"""Missing values filled inside the folds, as by scikit-learn's imputer before the model."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import LeaveOneOut, RepeatedStratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from probewise import BIF, DAF, SFFS
from probewise.criteria import KNN, Linear, Tree
from probewise.criteria.columns import column_centers
from probewise.criteria.knn import BoundKNN
from probewise.engine.probes import ProbePlan, Subsets
from probewise.stopping import MaxProbes
from probewise.validation.stores import Stored

SUBSETS = Subsets.of([*ProbePlan(20, max_size=14, seed=3).draw(0, 4), [3, 0], [1, 2], range(20)])
MODELS = {
    "knn": (KNN, KNeighborsClassifier(3, algorithm="brute"), KNeighborsRegressor(3, algorithm="brute")),
    "linear": (Linear, RidgeClassifier(), Ridge()),
}
CVS = {
    "folds": 3,
    "repeated": RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
    "leave one out": LeaveOneOut(),
}
models = pytest.mark.parametrize("name", MODELS)
strategies = pytest.mark.parametrize("missing", ["mean", "median"])


def table(n=60, n_classes=2, incomplete=(0, 1, 5, 9), share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.minimum(np.arange(n) % (n_classes + 1), n_classes - 1))  # unequal: no mean is on a border
    X = rng.standard_normal((n, 20)) * rng.uniform(0.5, 3, 20) + 5
    X[:, :8] += 0.8 * y[:, None]
    for column in incomplete:
        X[rng.uniform(size=n) < share, column] = np.nan
    return X, y


def by_sklearn(model, missing, X, y, cv=3, **options):
    pipeline = make_pipeline(SimpleImputer(strategy=missing, keep_empty_features=True), model)
    return [cross_val_score(pipeline, X[:, s], y, cv=cv, **options).mean() for s in SUBSETS]


@pytest.mark.matrix(pairs=True)
@models
@strategies
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cv", CVS)
def test_equals_an_imputer_before_the_model(name, missing, n_classes, cv):
    criterion, model, _ = MODELS[name]
    X, y = table(n=25 if cv == "leave one out" else 60, n_classes=n_classes)
    before = X.copy()
    ours = criterion(missing=missing).bind(X, y, CVS[cv])(SUBSETS)
    np.testing.assert_allclose(ours, by_sklearn(model, missing, X, y, CVS[cv]), rtol=1e-9)
    np.testing.assert_array_equal(X, before)


@pytest.mark.matrix(pairs=True)
@models
@strategies
@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error"])
def test_numbers_to_predict(name, missing, scoring):
    criterion, _, model = MODELS[name]
    X, _ = table()
    y = X[:, 3] + X[:, 7] + 0.1 * np.random.default_rng(0).standard_normal(len(X))
    ours = criterion(missing=missing).bind(X, y, scoring=scoring)(SUBSETS)
    np.testing.assert_allclose(ours, by_sklearn(model, missing, X, y, scoring=scoring), rtol=1e-9)


@models
@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc"])
def test_with_another_score(name, scoring):
    criterion, model, _ = MODELS[name]
    X, y = table()
    ours = criterion(missing="median").bind(X, y, scoring=scoring)(SUBSETS)
    np.testing.assert_allclose(ours, by_sklearn(model, "median", X, y, scoring=scoring), rtol=1e-9)


@strategies
@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy"])
def test_many_rows_for_the_features(missing, scoring):
    """Linear uses sums of all columns for tables with many rows, but not for columns with missing values."""
    X, y = table(n=400, n_classes=3)
    score = Linear(missing=missing).bind(X, y, scoring=scoring)
    np.testing.assert_allclose(score(SUBSETS), by_sklearn(RidgeClassifier(), missing, X, y, scoring=scoring), rtol=1e-9)


@models
@strategies
def test_a_column_without_training_values_is_filled_with_zero(name, missing):
    criterion, model, _ = MODELS[name]
    X, y = table()
    X[20:, 1] = np.nan  # values only in rows that the first split tests
    X[:, 9] = np.nan
    splits = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    ours = criterion(missing=missing).bind(X, y, splits)(SUBSETS)
    np.testing.assert_allclose(ours, by_sklearn(model, missing, X, y, splits), rtol=1e-9)


@models
def test_every_column_is_incomplete(name):
    criterion, model, _ = MODELS[name]
    X, y = table(incomplete=range(20), share=0.1)
    ours = criterion(missing="mean").bind(X, y)(SUBSETS)
    np.testing.assert_allclose(ours, by_sklearn(model, "mean", X, y), rtol=1e-9)


@models
def test_complete_columns_have_the_bits_of_the_plain_criterion(name, monkeypatch):
    criterion = MODELS[name][0]
    X, y = table(incomplete=())
    plain = criterion().bind(X, y)(SUBSETS)
    assert criterion(missing="mean").bind(X, y)(SUBSETS).tobytes() == plain.tobytes()
    X[3, 0] = np.nan
    without = Subsets.of([subset for subset in SUBSETS if 0 not in subset])
    monkeypatch.setattr(BoundKNN, "_score_filled", None)  # must not be called
    ours = criterion(missing="mean").bind(X, y)(without)
    np.testing.assert_allclose(ours, [value for s, value in zip(SUBSETS, plain, strict=True) if 0 not in s], rtol=1e-12)


@models
@pytest.mark.parametrize("make", [np.asfortranarray, np.float32, Stored], ids=["by columns", "float32", "stored"])
def test_any_layout(name, make):
    X, y = table()
    criterion = MODELS[name][0](missing="median")
    ours = criterion.bind(make(X), y)(SUBSETS)
    np.testing.assert_allclose(ours, criterion.bind(X, y)(SUBSETS), atol=0.04 if make is np.float32 else 1e-12)


def test_the_center_of_an_incomplete_column_is_that_of_its_values():
    X, _ = table()
    X[:, 7] = np.nan
    centers, is_incomplete = column_centers(X, missing=True)
    np.testing.assert_array_equal(np.flatnonzero(is_incomplete), [0, 1, 5, 7, 9])
    assert centers[7] == 0
    for column in np.setdiff1d(np.arange(20), [7]):
        known = X[~np.isnan(X[:, column])][:, [column]]
        assert column_centers(known)[0][0] == centers[column]


@pytest.mark.matrix
@pytest.mark.parametrize("criterion", [KNN(missing="median"), Linear(missing="mean")], ids=str)
@pytest.mark.parametrize("selector", [BIF(2), SFFS(2), DAF(2, stop=MaxProbes(400), random_state=0)], ids=type)
def test_selectors_take_missing_values(criterion, selector):
    X, y = table(n=90)
    X[:, [5, 13]] += 4 * y[:, None]
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(20)])
    fitted = selector.set_params(criterion=criterion).fit(frame, y)
    chosen = fitted.get_support(indices=True)
    assert {5, 13} & set(chosen)
    np.testing.assert_array_equal(fitted.transform(frame), X[:, chosen])
    frame.loc[3, "gene 6"] = np.inf
    with pytest.raises(ValueError, match=r"contains infinity in 1 of 20 columns \('gene 6'\)"):
        selector.fit(frame, y)


@pytest.mark.parametrize(
    ("criterion", "remedy"),
    [("auto", r"KNN\(missing='median'\)"), ("linear", r"Linear\(missing='median'\)"), ("naive_bayes", "impute")],
)
def test_missing_values_are_refused_with_a_remedy(criterion, remedy):
    X, y = table()
    with pytest.raises(ValueError, match=rf"NaN or infinity in 4 of 20 columns \(0, 1, 5, 9\): .*{remedy}"):
        BIF(criterion=criterion).fit(X, y)
    with pytest.raises(ValueError, match="missing='median'"):
        KNN().bind(X, y)


@models
def test_bad_strategies_and_sparse_tables_are_refused(name):
    X, y = table()
    criterion = MODELS[name][0]
    with pytest.raises(ValueError, match="missing='mode': choose 'mean', 'median', or None"):
        criterion(missing="mode").bind(X, y)
    with pytest.raises(ValueError, match="X is sparse and contains NaN or infinity in 4 of 20 columns"):
        BIF(criterion=criterion(missing="mean")).fit(sp.csr_matrix(X), y)


def test_criteria_that_allow_missing_values():
    X, y = table()
    assert np.isfinite(BIF(criterion=Tree()).fit(X, y).scores_).all()
    assert KNN(missing="mean").allow_nan
    assert not KNN().allow_nan
