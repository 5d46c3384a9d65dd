"""Covariates: residuals, rankings, tests and held-out scores that are adjusted for them."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline

import naive
from probewise import DAF, Tournament
from probewise.criteria.base import Target
from probewise.evaluation import adjusted_scores, nested_score, selection_frequency, size_curve
from probewise.evaluation.covariates import Covariates
from probewise.inference import associated, needed, pairs
from probewise.report import summarize
from probewise.stopping import MaxProbes

DTYPE = [("event", "?"), ("time", "f8")]
SHORT = {"n_probes": 400, "random_state": 0}


def confounded(seed=0, n_rows=120, n_features=40, kind="numbers", own=1.0):
    """Features 0 to 9 depend on the batch only; feature 20 changes y beyond batch and age (``own``)."""
    random = np.random.default_rng(seed)
    batch, age = random.integers(0, 3, n_rows), random.normal(60, 10, n_rows)
    X = random.standard_normal((n_rows, n_features))
    X[:, :10] += 2 * batch[:, None]
    line = 1.5 * batch + age / 10 + own * X[:, 20]
    y = line + 0.5 * random.standard_normal(n_rows)
    if kind == "classes":
        y = np.array(["no", "yes"])[(y > np.median(y)) * 1]
    if kind == "three classes":
        y = np.digitize(y, np.quantile(y, [0.33, 0.67]))
    if kind == "survival":
        time, end = random.exponential(np.exp(-(line - line.mean()))), random.exponential(3, n_rows)
        y = np.array(list(zip(time < end, np.minimum(time, end), strict=True)), dtype=DTYPE)
    return X, y, np.column_stack([np.array(["a", "b", "c"], dtype=object)[batch], age])


KINDS = ["numbers", "classes", "three classes", "survival"]


@pytest.mark.parametrize("weights", [None, np.linspace(0, 2, 50)])
def test_residuals_equal_those_of_least_squares(weights):
    random = np.random.default_rng(0)
    C, X = random.standard_normal((50, 3)), random.standard_normal((50, 4))
    C[:, 2] = C[:, 0] + C[:, 1]  # dependent
    left = Covariates(C, weights).residuals(X)
    model = LinearRegression().fit(C, X, sample_weight=weights)
    expected = X - model.predict(C)
    np.testing.assert_allclose(left - left[0], expected - expected[0], atol=1e-10)
    assert Covariates(C, weights).rank == 2


def test_a_column_that_covariates_determine_becomes_constant():
    C = np.random.default_rng(0).standard_normal((40, 2))
    X = np.column_stack([C @ [1.0, 2.0] + 5, C[:, 0] ** 2]).astype(np.float32)
    left = Covariates(C).residual_columns(X)
    assert np.ptp(left[:, 0]) == 0
    assert left[:, 1].std() > 0.5
    assert left.dtype == np.float32


def test_residuals_of_survival_equal_their_twin():
    X, y, _ = confounded(kind="survival", n_rows=40)
    left = Covariates(X[:, :2]).residual_target(Target.of(y))
    expected = naive.adjusted_martingale_residuals(y["event"], y["time"], X[:, :2])
    np.testing.assert_allclose(left, expected, atol=2e-3)


def test_numbers_categories_and_missing_values_are_encoded():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    age = [50.0, np.nan, 70, 60, 50, 40]
    batch = ["a", "b", None, "a", "b", "c"]
    expected = np.array([[50, 50, 70, 60, 50, 40], [0, 1, 0, 0, 0, 0]]).T  # the median, and where it stands
    kind = pandas.Categorical([2, 1, 1, 2, 1, 1])
    frame = pandas.DataFrame({"age": age, "kind": kind})
    twice = Covariates.of(pandas.concat([frame, frame]), 12).values
    np.testing.assert_array_equal(twice[:6], np.column_stack([expected, [1, 0, 0, 1, 0, 0]]))
    texts = polars.DataFrame({"batch": ["a", "b", None, "a", "b", "a", "b", "a"]})
    assert Covariates.of(texts, 8).values.shape == (8, 2)  # None is a category
    assert Covariates.of(np.array(age), 6).values.tolist() == expected.tolist()
    with pytest.raises(ValueError, match=r"covariate 0 of adjust has 4 categories"):
        Covariates.of(np.array(batch, dtype=object), 6)


@pytest.mark.parametrize(
    ("adjust", "message"),
    [
        (np.zeros((120, 2)), "adjust has no column that varies"),
        (np.zeros(7), r"adjust has the shape \(7,\), and there are 120 rows"),
        (np.eye(120), "adjust has 119 independent columns"),
        (np.full(120, np.inf), "covariate 0 of adjust has an infinite value"),
    ],
)
def test_unusable_covariates_are_refused(adjust, message):
    X, y, _ = confounded()
    with pytest.raises(ValueError, match=message):
        Tournament(5, **SHORT).fit(X, y, adjust=adjust)


def test_a_target_that_covariates_determine_is_refused():
    X, y, _ = confounded(kind="classes")
    with pytest.raises(ValueError, match="adjust determines y, so nothing remains"):
        Tournament(5, **SHORT).fit(X, y, adjust=y)


def test_sparse_tables_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    X, y, C = confounded()
    with pytest.raises(ValueError, match=r"X is sparse: give X.toarray\(\)"):
        Tournament(5, **SHORT).fit(sparse.csr_matrix(X), y, adjust=C)


@pytest.mark.parametrize("kind", KINDS)
def test_the_feature_beyond_the_covariates_is_found(kind):
    X, y, C = confounded(kind=kind)
    plain, adjusted = Tournament(5, **SHORT).fit(X, y), Tournament(5, **SHORT).fit(X, y, adjust=C)
    assert adjusted.ranking_[20] == 1
    assert (plain.ranking_[:10] <= 5).any()
    assert adjusted.fit_arguments_ == ["adjust"]
    daf = DAF(5, criterion="linear", stop=MaxProbes(400), random_state=0).fit(X, y, adjust=C)
    assert daf.ranking_[20] == 1
    assert adjusted.stands_out()[20]
    assert not adjusted.stands_out()[:10].any()
    assert plain.stands_out()[:10].all()


@pytest.mark.parametrize("kind", KINDS)
def test_tests_of_features_are_adjusted(kind):
    X, y, C = confounded(kind=kind, own=1.5)
    options = {"adjust": C, "random_state": 0}
    assert associated(X, y, **options).mask[20]
    assert not associated(X, y, **options).mask[:10].any()
    assert needed(X, y, **options).mask[20]
    assert not needed(X, y, **options).mask[:10].any()
    tables = [confounded(seed, kind=kind, own=1.5) for seed in range(8)]
    named = [len(pairs(X, y, adjust=C, random_state=0).pairs) > 0 for X, y, C in tables]
    assert sum(named) <= 3  # a tenth of the tables is allowed; of eight tables, four have pairs once in 200 times


@pytest.mark.parametrize("kind", ["numbers", "classes", "survival"])
def test_noise_is_named_as_rarely_as_stated(kind):
    """y depends on covariates only: at most a tenth of 20 tables, plus two standard errors, have a named feature."""
    named = 0
    for seed in range(20):
        X, y, C = confounded(seed, n_rows=80, kind=kind, own=0.0)
        named += associated(X, y, adjust=C, random_state=0).mask.any()
    assert named <= 20 * (0.1 + 2 * np.sqrt(0.1 * 0.9 / 20))


@pytest.mark.parametrize("kind", KINDS)
def test_workers_and_permuted_columns_do_not_change_the_answer(kind):
    X, y, C = confounded(kind=kind, n_rows=60)
    expected = Tournament(5, **SHORT).fit(X, y, adjust=C)
    again = Tournament(5, n_jobs=2, **SHORT).fit(X, y, adjust=C)
    np.testing.assert_array_equal(expected.scores_, again.scores_)
    weighted = Tournament(5, **SHORT).fit(X, y, adjust=C, sample_weight=np.full(60, 2.0))
    assert weighted.ranking_[20] <= 5


def test_a_ledger_knows_its_covariates(tmp_path):
    X, y, C = confounded(kind="survival", n_rows=60)
    whole = Tournament(5, ledger=tmp_path / "a", **SHORT).fit(X, y, adjust=C)
    resumed = Tournament(5, ledger=tmp_path / "a", **SHORT).fit(X, y, adjust=C)
    np.testing.assert_array_equal(whole.scores_, resumed.scores_)
    for other in ({"adjust": C[:, 1]}, {}):
        with pytest.raises(ValueError, match="its adjust is"):
            Tournament(5, ledger=tmp_path / "a", **SHORT).fit(X, y, **other)
    summary = summarize(tmp_path / "a", X, y, adjust=C)  # the target of the ledger is the outcome, not its residuals
    assert summary["adjustment"]["names"] == ["covariate 1", "covariate 2"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_covariates_features_and_both(kind):
    X, y, C = confounded(kind=kind, n_rows=150, own=2.0)
    tournament = Tournament(5, n_probes=200, random_state=0).fit(X, y, adjust=C)
    score = nested_score(tournament, X, y, adjust=C, repeats=1)
    found = adjusted_scores(score, X, y, Target.of(y), C)
    assert len(found.both) == 5
    assert found.summary("both")[0] > found.summary("covariates")[0]
    assert found.adds
    noise = X[np.random.default_rng(0).permutation(len(X))]
    tournament = Tournament(5, n_probes=200, random_state=0).fit(noise, y, adjust=C)
    score = nested_score(tournament, noise, y, adjust=C, repeats=1)
    assert not adjusted_scores(score, noise, y, Target.of(y), C).adds


def test_size_curves_and_selection_frequencies_take_covariates():
    X, y, C = confounded(n_rows=60)
    tournament = Tournament(5, **SHORT).fit(X, y, adjust=C)
    assert selection_frequency(tournament, X, y, adjust=C, n_pairs=2, top=3).frequencies[20] > 0.5
    assert size_curve(tournament, X, y, adjust=C, sizes=[1, 3], nested=True, n_probes=200).nested


def test_covariates_pass_through_pipelines_and_grid_search():
    X, y, C = confounded(n_rows=60)
    pipeline = Pipeline([("select", Tournament(3, **SHORT)), ("predict", KNeighborsRegressor())])
    search = GridSearchCV(pipeline, {"select__n_features_to_select": [1, 3]}, cv=3)
    search.fit(X, y, select__adjust=Covariates.of(C, 60).values)
    assert search.best_estimator_["select"].ranking_[20] == 1


@pytest.mark.slow
def test_the_report_says_that_nothing_remains():
    X, y, C = confounded(1, kind="classes", own=0.0)  # a table without a false discovery
    tournament = Tournament(5, n_probes=100, random_state=0).fit(X, y, adjust=C)
    summary = summarize(tournament, X, y, adjust=C)
    assert "nothing remains beyond covariate 1 and covariate 2" in " ".join(summary["verdict"])
    assert "do not convincingly add" in " ".join(summary["verdict"])
    assert set(summary["adjustment"]["scores"]) == {"covariates", "features", "both", "gain"}
    assert sum(summary["ranking"]["columns"]["unadjusted"]) >= 10
    assert not any(summary["ranking"]["columns"]["related"])
