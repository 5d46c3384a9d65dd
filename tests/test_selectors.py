"""Every selector: scikit-learn's own checks, and further ones."""

import pickle
from copy import copy
from functools import cache

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data, parametrize_with_checks

from probewise import BIF, CFS, CMIM, DAF, DFE, EFS, FCBF, FSDD, JMI, MRMR, SFFS, ReliefF
from probewise.criteria import KNN, NAMES, Separability
from probewise.stopping import MaxProbes

WRAPPERS = [BIF(), DAF(stop=MaxProbes(400), random_state=0), SFFS()]
FILTERS = [FSDD(), DFE(), EFS(), MRMR(), JMI(), CMIM(), ReliefF()]
SELECTORS = [*WRAPPERS, *FILTERS]


def spread(X, y):
    return float(X.std())


def label(criterion):
    return getattr(criterion, "__name__", str(criterion))


def over(selectors):
    return pytest.mark.parametrize("selector", selectors, ids=lambda s: type(s).__name__)


rankers = over([BIF(), DAF(stop=MaxProbes(400), random_state=0), *FILTERS])
wrappers = over(WRAPPERS)
filters = over([*FILTERS, CFS(), FCBF()])
every_selector = over(SELECTORS)
any_selector = over([*SELECTORS, CFS(), FCBF()])


def expected_to_fail(estimator):
    if type(estimator) not in (BIF, DAF, SFFS):
        return {}
    reason = "weights count in the score of k-NN, but not in its votes"
    checks = {"check_sample_weight_equivalence_on_dense_data": reason}
    if isinstance(estimator.n_features_to_select, str):  # p-values and the size curve count rows
        checks["check_sample_weight_equivalence_on_sparse_data"] = reason
    return checks


BY_FILTERS_OF_THE_SAME_KIND = [DFE(), JMI(), CMIM(), CFS(), FCBF()]
IN_OTHER_WAYS = [
    DAF(random_state=0),
    DAF("stands_out", stop=MaxProbes(200), random_state=0),
    DAF("auto", stop=MaxProbes(100), random_state=0),
]


nothing_found = pytest.mark.filterwarnings(
    "ignore:no feature stands out", "ignore:no number of features", "ignore:the number of features was not chosen"
)


@parametrize_with_checks([*WRAPPERS, FSDD(), EFS(), MRMR(), ReliefF()], expected_failed_checks=expected_to_fail)
@nothing_found
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.matrix
@parametrize_with_checks([*BY_FILTERS_OF_THE_SAME_KIND, *IN_OTHER_WAYS], expected_failed_checks=expected_to_fail)
@nothing_found
def test_sklearn_checks_of_others(estimator, check):
    """Filters that share all but a formula with one above, and DAF with other options."""
    check(estimator)


@pytest.mark.filterwarnings("ignore:.*rows are nearly equal")
@pytest.mark.matrix
@wrappers
@pytest.mark.parametrize("criterion", ["linear", "naive_bayes"])
def test_a_weight_of_two_is_a_row_twice_where_the_model_knows_weights(selector, criterion):
    weighted = clone(selector).set_params(criterion=criterion)
    check_sample_weight_equivalence_on_dense_data(type(selector).__name__, weighted)


def table(n=90, d=12, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d)) + 20
    X[:, [2, 7]] += 2.0 * y[:, None]
    return X, y


@every_selector
def test_good_features_come_first(selector):
    X, y = table()
    fitted = clone(selector).set_params(n_features_to_select=2).fit(X, y)
    assert fitted.get_support(indices=True).tolist() == [2, 7]
    assert sorted(fitted.ranking_) == list(range(1, 13))
    if not isinstance(selector, JMI):  # its values grow with the number of selected features
        assert fitted.scores_[fitted.ranking_ == 1] == fitted.scores_.max()
    assert fitted.transform(X).shape == (90, 2)


@cache
def fitted_once(selector):
    return clone(selector).fit(*table())


@rankers
@pytest.mark.parametrize(
    ("asked", "kept"), [(None, 6), (1, 1), (12, 12), (np.int64(3), 3), (0.25, 3), (1.0, 12), (0.001, 1)]
)
def test_how_many_may_change_after_fit(selector, asked, kept):
    X, _ = table()
    fitted = copy(fitted_once(selector))
    fitted.n_features_to_select = asked
    assert fitted.support_.sum() == kept
    assert fitted.transform(X).shape[1] == kept
    assert (fitted.ranking_[fitted.support_] <= kept).all()


@pytest.mark.matrix(times=2)
@every_selector
@pytest.mark.parametrize("asked", [0, 13, -1, 1.5, 0.0, "many", True])
def test_an_impossible_number_is_refused_before_work(selector, asked):
    X, y = table()
    with pytest.raises(ValueError, match=f"n_features_to_select={asked!r} with 12 features"):
        clone(selector).set_params(n_features_to_select=asked).fit(X, y)


@pytest.mark.matrix
@every_selector
@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame])
def test_frames_in_names_out(selector, frame):
    X, y = table()
    names = [f"gene {i}" for i in range(12)]
    data = frame(dict(zip(names, X.T, strict=True)))
    fitted = clone(selector).set_params(n_features_to_select=2).fit(data, y)
    assert fitted.get_feature_names_out().tolist() == ["gene 2", "gene 7"]
    plain = clone(selector).set_params(n_features_to_select=2).fit(X, y)
    np.testing.assert_allclose(fitted.scores_, plain.scores_, rtol=1e-12)
    kind = "pandas" if frame is pd.DataFrame else "polars"
    out = fitted.set_output(transform=kind).transform(data)
    assert isinstance(out, frame)
    assert list(out.columns) == ["gene 2", "gene 7"]


@every_selector
def test_pickle_clone_pipeline_and_grid_search(selector):
    X, y = table()
    fitted = clone(selector).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).ranking_, fitted.ranking_)
    assert clone(fitted).get_params().keys() == fitted.get_params().keys()
    search = GridSearchCV(
        make_pipeline(clone(selector), GaussianNB()),
        {f"{type(selector).__name__.lower()}__n_features_to_select": [1, 2, 6]},
        cv=2,
    ).fit(X, y)
    assert search.best_score_ > 0.8


@pytest.mark.matrix(times=2)
@every_selector
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix])
def test_any_type_and_layout_and_nothing_is_changed(selector, dtype, make):
    X, y = table()
    X = np.rint(10 * (X - 20)).clip(0, 200).astype(dtype)
    data = make(X)
    before = data.copy()
    if "criterion" in selector.get_params():
        selector = clone(selector).set_params(criterion="knn")
    fitted = clone(selector).fit(data, y)
    np.testing.assert_allclose(fitted.scores_, clone(selector).fit(X.astype(np.float64), y).scores_, atol=1e-12)
    assert abs(data - before).sum() == 0
    assert data.dtype == dtype


@wrappers
def test_regression_targets(selector):
    X, _ = table()
    y = X[:, 4] + X[:, 9] + 0.1 * np.random.default_rng(0).standard_normal(90)
    fitted = clone(selector).set_params(n_features_to_select=2).fit(X, y)
    assert fitted.get_support(indices=True).tolist() == [4, 9]


@any_selector
def test_any_number_of_workers(selector):
    X, y = table()
    one, two, four = (clone(selector).set_params(n_jobs=n).fit(X, y) for n in (1, 2, 4))
    assert one.scores_.tobytes() == two.scores_.tobytes() == four.scores_.tobytes()


@pytest.mark.matrix
@wrappers
@pytest.mark.parametrize("criterion", [KNN(1), GaussianNB(), "knn", spread], ids=label)
def test_any_criterion(selector, criterion):
    X, y = table()
    stop = {"stop": MaxProbes(100)} if isinstance(selector, DAF) else {}
    fitted = clone(selector).set_params(criterion=criterion, **stop).fit(X, y)
    assert np.isfinite(fitted.scores_).all()


@pytest.mark.matrix(times=2)
@wrappers
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_every_criterion_by_its_name(selector, name, make):
    X, y = table()
    stop = {"stop": MaxProbes(100)} if isinstance(selector, DAF) else {}
    fitted = clone(selector).set_params(criterion=name, n_features_to_select=2, **stop).fit(make(X), y)
    assert {2, 7} & set(fitted.get_support(indices=True).tolist())


@any_selector
def test_constant_and_duplicate_columns_are_legal(selector):
    X, y = table()
    X[:, 0] = 5
    X[:, 11] = X[:, 2]
    assert clone(selector).fit(X, y).ranking_[0] > 2


def test_bif_equals_the_criterion_alone_and_breaks_ties_by_the_lower_index():
    X, y = table(d=600)
    X[:, 599] = X[:, 2]
    fitted = BIF(criterion=KNN(3)).fit(X, y)
    from probewise.engine.probes import Subsets

    expected = KNN(3).bind(X, y)(Subsets.of(np.arange(600)[:, None]))
    np.testing.assert_allclose(fitted.scores_, expected, rtol=1e-11)
    assert fitted.ranking_[599] == fitted.ranking_[2] + 1


def test_bif_permuted_columns_give_permuted_scores():
    X, y = table()
    permutation = np.random.default_rng(3).permutation(12)
    np.testing.assert_array_equal(BIF().fit(X[:, permutation], y).scores_, BIF().fit(X, y).scores_[permutation])


@wrappers
@pytest.mark.parametrize("criterion", [spread, Separability("clusters")], ids=label)
def test_a_criterion_that_needs_no_target_needs_none(selector, criterion):
    X, _ = table()
    fitted = clone(selector).set_params(criterion=criterion, n_features_to_select=3).fit(X)
    assert fitted.transform(X).shape == (90, 3)
    with pytest.raises(ValueError, match="y"):
        clone(selector).set_params(criterion="knn").fit(X)


@pytest.mark.parametrize("selector", [FSDD(), BIF(), DAF(stop=MaxProbes(20))], ids=lambda one: type(one).__name__)
def test_rows_of_y_in_another_order_give_a_warning(selector):
    X, y = pd.DataFrame(np.eye(6, 3), index=list("abcdef")), pd.Series([0, 1] * 3, index=list("fedcba"))
    with pytest.warns(UserWarning, match=r"y has the index of X in another order.*y\.loc\[X\.index\]") as told:
        selector.fit(X, y)
    assert told[0].filename == __file__
    selector.fit(X, y.loc[X.index])
    selector.fit(X, y.reset_index(drop=True))  # other names: there is nothing to compare
    selector.fit(X, y.to_numpy())
