"""Missing values: filled without a change of the scoring and the folds; constant and empty columns rank last."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.impute import SimpleImputer

from probewise import DAF, Tournament
from probewise.engine.ledger import LedgerError
from probewise.evaluation import size_curve
from probewise.stopping import MaxProbes
from probewise.validation.contents import filled
from probewise.validation.stores import Stored

SELECTORS = [Tournament(n_probes=300, random_state=0), DAF(stop=MaxProbes(300), random_state=0)]
selectors = pytest.mark.parametrize("selector", SELECTORS, ids=["tournament", "daf"])


def table(n=200, n_features=30, share=0.05):
    random = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = random.standard_normal((n, n_features))
    X[:, [3, 8]] += 1.5 * y[:, None]
    X[random.random(X.shape) < share] = np.nan
    return X, y


@selectors
@pytest.mark.parametrize("missing", ["mean", "median"])
def test_same_scores_as_a_table_filled_beforehand(selector, missing):
    X, y = table()
    fitted = selector.set_params(missing=missing).fit(X, y)
    by_hand = SimpleImputer(strategy=missing).fit_transform(X)
    scores = fitted.scores_
    np.testing.assert_allclose(scores, selector.set_params(missing=None).fit(by_hand, y).scores_, atol=1e-9)


def test_scoring_and_folds_do_not_depend_on_missing_values():
    X, y = table()
    with pytest.warns(UserWarning, match=r"missing values in 30 of 30 columns .* are filled with the median"):
        incomplete = Tournament(n_probes=300, random_state=0).fit(X, y).run_.settings
    complete = Tournament(n_probes=300, random_state=0).fit(np.nan_to_num(X), y).run_.settings
    assert (incomplete.scoring, incomplete.cv) == (complete.scoring, complete.cv) == ("probability", "loo")


@pytest.mark.slow
def test_few_missing_values_hardly_change_the_ranking():
    """A table with 6% positives: with accuracy in place of probability no true feature would come first."""
    random = np.random.default_rng(1)
    y = (random.random(1500) < 0.06).astype(int)
    X = random.standard_normal((1500, 80))
    informative = random.choice(80, 6, replace=False)
    X[:, informative] += 0.8 * y[:, None]
    X[random.random(X.shape) < 0.02] = np.nan
    tournament = Tournament(6, n_probes=600, missing="median", random_state=0).fit(X, y)
    assert len(set(informative) & set(tournament.get_support(indices=True))) >= 5


@selectors
def test_none_refuses_missing_values(selector):
    X, y = table()
    with pytest.raises(ValueError, match="contains NaN or infinity in 30 of 30 columns"):
        selector.set_params(missing=None).fit(X, y)
    with pytest.raises(ValueError, match="missing='mode' must be"):
        selector.set_params(missing="mode").fit(X, y)


@pytest.mark.parametrize("make", [sp.csr_matrix, Stored], ids=["sparse", "stored"])
def test_tables_that_are_not_copied_are_refused(make):
    X, y = table()
    with pytest.raises(ValueError, match="contains NaN or infinity in 30 of 30 columns"):
        Tournament(n_probes=100, missing="median").fit(make(X), y)


@selectors
def test_constant_and_empty_columns_are_named_and_rank_last(selector, tmp_path):
    X, y = table(share=0)
    X[:, 5], X[:, 20] = 7.0, np.nan
    lines = []
    selector.set_params(missing="auto", ledger=tmp_path / "run.ledger", verbose=lines.append)
    with pytest.warns(UserWarning, match=r"columns without any value rank last: 1 of 30 columns \(20\)"):
        selector.fit(X, y)
    assert "Constant or empty columns rank last: 2 of 30 columns (5, 20)." in lines[0]
    assert set(selector.ranking_[[5, 20]]) == {29, 30}
    assert selector.set_params(missing="median").fit(X, y).n_probes_ == 300  # resumed
    with pytest.raises(LedgerError, match="missing"):
        selector.set_params(missing="mean").fit(X, y)
    selector.set_params(ledger=None, verbose=0)


@pytest.mark.parametrize("other", [1e6, 0.0])
def test_rows_of_weight_0_do_not_count(other):
    X, _ = table()
    weights = (np.arange(len(X)) < 150).astype(float)
    X[150:, 0] = other
    no_columns = np.zeros(30, bool)
    expected = SimpleImputer(strategy="mean").fit(X[:150]).statistics_[0]
    assert filled(X, "mean", categorical=no_columns, weights=weights)[np.isnan(X[:, 0]), 0] == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["auto", "linear", "svm", "naive_bayes"])
def test_held_out_scores_fill_inside_the_folds(criterion):
    X, y = table()
    tournament = Tournament(n_probes=40, criterion=criterion, missing="median", random_state=0).fit(X, y)
    curve = size_curve(tournament, X, y, nested=True)
    assert curve.mean.max() > 0.7
