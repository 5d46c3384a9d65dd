"""Rare classes: equal weights of the classes in a tournament, and the sample of rows that keeps rare classes."""

import numpy as np
import pytest
from sklearn.feature_selection import f_classif
from sklearn.utils.class_weight import compute_sample_weight

from probewise import Tournament
from probewise._probing import prepare
from probewise.tournament import MAX_ROWS, default_criterion


def rare(seed, n=1000, n_features=200, share=0.06, effect=0.8, n_informative=8):
    random = np.random.default_rng(seed)
    y = (random.random(n) < share).astype(int)
    X = random.standard_normal((n, n_features))
    informative = random.choice(n_features, n_informative, replace=False)
    X[:, informative] += effect * y[:, None]
    return X, y, set(informative.tolist())


def top(order, informative):
    return len(informative & set(order[: len(informative)].tolist()))


@pytest.mark.slow
def test_default_is_near_the_univariate_test_where_that_is_best():
    """The informative features are independent, so that the F test is hard to beat."""
    by_f_test = by_default = unweighted = 0
    for seed in range(3):
        X, y, informative = rare(seed)
        by_f_test += top(np.argsort(-f_classif(X, y)[0]), informative)
        tournament = Tournament(n_probes=500, random_state=0)
        by_default += top(np.argsort(tournament.fit(X, y).ranking_), informative)
        tournament.set_params(scoring="probability")
        unweighted += top(np.argsort(tournament.fit(X, y).ranking_), informative)
    assert by_f_test >= 20
    assert by_default >= by_f_test - 4
    assert by_default > unweighted


def test_default_weights_are_those_of_balanced_classes():
    X, y, _ = rare(0, n=300, n_features=30, share=0.1)
    tournament = Tournament(n_probes=200, random_state=0).fit(X, y)
    assert tournament.class_weight_ == "balanced"
    by_hand = Tournament(n_probes=200, random_state=0)
    by_hand.fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    assert by_hand.class_weight_ is None
    np.testing.assert_array_equal(tournament.run_.ledger.values(), by_hand.run_.ledger.values())


@pytest.mark.filterwarnings("ignore:J is .* for all probes")  # accuracy on noise
@pytest.mark.parametrize(
    ("sizes", "is_rare"),
    [
        ([79, 21], False),
        ([81, 19], True),
        ([100, 100, 100, 40], False),
        ([100, 100, 100, 30], True),
        ([46, 10, 9, 11, 6, 6, 4, 2, 2], False),  # many tiny classes
    ],
)
def test_weights_depend_on_the_rarest_class(sizes, is_rare):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.random.default_rng(0).standard_normal((len(y), 5))
    assert (Tournament(n_probes=20, random_state=0).fit(X, y).class_weight_ == "balanced") == is_rare
    assert Tournament(n_probes=20, random_state=0, scoring="accuracy", cv=2).fit(X, y).class_weight_ is None


def sample_of(y, weights=None, X=None):
    tournament = Tournament()
    X = np.arange(2 * len(y), dtype=float).reshape(-1, 2) if X is None else X
    data = prepare(tournament, default_criterion(len(y)), X, y, groups=None, sample_weight=weights)
    return tournament._sample_of_rows(data, 0)


@pytest.mark.parametrize(
    ("sizes", "drawn"),
    [
        ([4960, 40], [1960, 40]),  # rare rows are all kept
        ([49_400, 600], [1500, 500]),  # up to half of an equal share
        ([20_000, 150, 30], [1819, 150, 30]),
        ([3000, 2000], [1200, 800]),  # shares of classes that are not rare
    ],
)
def test_sample_keeps_rare_classes(sizes, drawn):
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows = sample_of(y)
    assert len(np.unique(rows)) == len(rows) <= MAX_ROWS
    np.testing.assert_allclose(np.bincount(y[rows]), drawn, atol=1)


def test_sample_has_no_rows_of_weight_0():
    y = np.arange(6000) % 2
    weights = (np.arange(6000) % 3 > 0).astype(float)
    rows = sample_of(y, weights)
    assert len(rows) == MAX_ROWS
    assert weights[rows].all()
    weights[3000:] = 0
    np.testing.assert_array_equal(sample_of(y, weights), np.flatnonzero(weights)[:2000])


def test_sample_of_numbers_covers_their_range():
    y = np.random.default_rng(0).standard_normal(5000)
    rows = sample_of(y)
    assert len(rows) == MAX_ROWS
    np.testing.assert_allclose(np.quantile(y[rows], [0.1, 0.5, 0.9]), np.quantile(y, [0.1, 0.5, 0.9]), atol=0.02)


def test_feature_importances_are_shares_of_the_scores():
    X, y, _ = rare(0, n=300, n_features=30, share=0.4)
    tournament = Tournament(n_probes=300, random_state=0).fit(X, y)
    importances = tournament.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances.min() == 0
    assert int(np.argmax(importances)) == int(np.nanargmax(tournament.scores_))
