"""Several targets: J is the mean over them; one ranking, tests of any relation, and a score per target."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from probewise import BIF, DAF, FSDD, Tournament
from probewise.criteria import KNN, Average, Linear, NaiveBayes
from probewise.engine.probes import Subsets
from probewise.evaluation import nested_score
from probewise.inference import associated, needed
from probewise.report import summarize
from probewise.report.html import render_html
from probewise.report.markdown import render_markdown
from probewise.stopping import MaxProbes

SHORT = {"n_probes": 400, "random_state": 0}
SUBSETS = Subsets.of([[0, 1], [1, 2, 5], list(range(8))])


def table(n_rows=80, n_features=30, seed=0):
    """Targets of different units: the first follows feature 0, the second features 1 and 2, the third is noise."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows, n_features))
    noise = random.standard_normal((n_rows, 3))
    return X, np.column_stack([X[:, 0], 100 * (X[:, 1] - X[:, 2]), 0 * X[:, 0]]) + [0.3, 30, 1] * noise


def labels(n_rows=80):
    X, Y = table(n_rows)
    return X, (Y > 0).astype(int)


@pytest.mark.parametrize("criterion", [KNN(3), Linear(), Average((KNN(5), Linear(2.0)))])
@pytest.mark.parametrize("cv", [3, "loo"])
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 80)])
def test_j_is_the_mean_over_targets(criterion, cv, scoring, weights):
    X, Y = table()
    options = {"scoring": scoring} | ({} if weights is None else {"sample_weight": weights})
    each = [criterion.bind(X, y, cv, **options)(SUBSETS) for y in Y.T]
    np.testing.assert_allclose(criterion.bind(X, Y, cv, **options)(SUBSETS), np.mean(each, axis=0), atol=1e-12)


@pytest.mark.parametrize("criterion", [KNN(3, missing="median"), Linear(missing="median")])
def test_j_with_missing_values_is_the_mean_over_targets(criterion):
    X, Y = table()
    X[::7, 1] = np.nan
    each = [criterion.bind(X, y, 3)(SUBSETS) for y in Y.T]
    np.testing.assert_allclose(criterion.bind(X, Y, 3)(SUBSETS), np.mean(each, axis=0), atol=1e-12)


def test_more_features_than_rows_and_sparse_tables():
    sparse = pytest.importorskip("scipy.sparse")
    X, Y = table(20, 30)
    wide = Subsets.of([list(range(30)), [3]])
    for cv in (3, "loo"):
        each = [Linear().bind(X, y, cv)(wide) for y in Y.T]
        np.testing.assert_allclose(Linear().bind(X, Y, cv)(wide), np.mean(each, axis=0), atol=1e-9)
    got = Linear().bind(sparse.csr_matrix(X), Y, 3)(wide)
    np.testing.assert_allclose(got, Linear().bind(X, Y, 3)(wide), atol=1e-9)


@pytest.mark.parametrize("data", [table, labels])
@pytest.mark.parametrize("n_rows", [80, 220])  # filters protect features from 200 rows on
def test_features_of_all_targets_come_first(data, n_rows):
    X, Y = data(n_rows)
    tournament = Tournament(3, **SHORT).fit(X, Y)
    assert tournament.support_[:3].all()
    assert tournament.stands_out()[:3].all()
    workers = Tournament(3, n_jobs=2, **SHORT).fit(X, Y)
    np.testing.assert_array_equal(tournament.scores_, workers.scores_)
    daf = DAF(3, stop=MaxProbes(800), criterion="linear", random_state=0).fit(X, Y)
    assert daf.support_[:3].all()
    assert set(np.argsort(BIF(criterion="linear").fit(X, Y).ranking_)[:2].tolist()) <= {0, 1, 2}


def test_tests_name_features_of_any_target():
    X, Y = table(150)
    assert associated(X, Y, random_state=0).mask[:3].all()
    assert needed(X, Y, random_state=0).mask[:3].all()
    same, alone = (associated(X, y, random_state=0).p_values for y in (Y[:, [0]], Y[:, 0]))
    np.testing.assert_array_equal(same, alone)


def test_noise_is_named_as_rarely_as_stated():
    named = 0
    for seed in range(20):
        X, Y = table(60, 40, seed)
        named += associated(X, Y[np.random.default_rng(seed).permutation(60)], random_state=0).mask.any()
    assert named <= 20 * (0.1 + 2 * np.sqrt(0.1 * 0.9 / 20))


def test_a_large_table_is_sampled_by_the_first_target():
    X, Y = table(2100, 8)
    tournament = Tournament(3, n_probes=200, random_state=0).fit(X, Y)
    assert tournament.run_.settings.rows_used == 2000
    assert tournament.support_[:3].all()


def test_a_stopped_run_continues(tmp_path):
    X, Y = table()
    whole = Tournament(3, **SHORT).fit(X, Y)
    path = tmp_path / "run"
    with pytest.warns(ConvergenceWarning, match="time limit"):
        Tournament(3, ledger=path, time_limit=1e-9, **SHORT).fit(X, Y)
    resumed = Tournament(3, ledger=path, **SHORT).fit(X, Y)
    np.testing.assert_array_equal(whole.scores_, resumed.scores_)


@pytest.mark.parametrize("selector", [FSDD(), DAF(criterion=NaiveBayes(), stop=MaxProbes(50))])
def test_methods_for_one_target_say_so(selector):
    with pytest.raises(ValueError, match="features are ranked for one target"):
        selector.fit(*table())


def test_texts_and_missing_targets_are_refused():
    X, Y = table()
    with pytest.raises(ValueError, match="a column of 0 and 1 for each label"):
        Tournament(3, **SHORT).fit(X, np.array(["a", "b"])[(Y > 0) * 1])
    Y[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"in 1 rows \(first: row 4\)"):
        Tournament(3, **SHORT).fit(X, Y)
    with pytest.raises(ValueError, match="for several targets use one of r2"):
        Tournament(3, scoring="max_error", **SHORT).fit(*table())


@pytest.mark.slow
def test_the_report_has_a_score_for_each_target():
    pandas = pytest.importorskip("pandas")
    X, Y = table()
    tournament = Tournament(3, **SHORT).fit(X, Y)
    assert nested_score(tournament, X, Y, repeats=1).curve.measure == "R²"
    summary = summarize(tournament, X, pandas.DataFrame(Y, columns=["alt", "ast", "urea"]))
    found = summary["several"]
    assert found["targets"] == ["alt", "ast", "urea"]
    assert found["scores"]["r2"][0] > 0.5 > 0.2 > found["scores"]["r2"][2]
    assert np.shape(found["correlation"]) == (20, 3)
    for page in (render_markdown(summary), render_html(summary)):
        assert "urea" in page
        assert "Correlation of the best features with each target" in page
