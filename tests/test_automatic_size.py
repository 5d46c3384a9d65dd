"""``n_features_to_select="stands_out"``: discoveries against a naive twin, and the truth of planted data."""

import warnings

import numpy as np
import pandas as pd
import pytest
from benchmarks.discoveries import outcomes_of
from hypothesis import given
from hypothesis import strategies as st

import naive
from probewise import DAF
from probewise.engine.certainty import discoveries
from probewise.stopping import MaxProbes
from sampling import examples

NOTHING = "no feature stands out at a false discovery rate of 0.1: the best one is selected"


def planted(n=100, d=40, seed=0, informative=(3, 17)):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, d))
    X[:, list(informative)] += 2.0 * y[:, None]
    return X, y


def noise(n=100, d=40, seed=0):
    return planted(n, d, seed, ())


def daf(n_features_to_select="stands_out", **options):
    options.setdefault("criterion", "naive_bayes")
    options.setdefault("stop", MaxProbes(1000))
    options.setdefault("random_state", 0)
    return DAF(n_features_to_select, **options)


@given(st.lists(st.floats(0, 1).map(lambda p: round(p, 3)), min_size=1, max_size=40), st.sampled_from([0.05, 0.1, 0.5]))
@examples(150)
def test_discoveries_against_benjamini_and_hochberg(p, q):
    assert discoveries(np.array(p), q).tolist() == naive.discoveries(p, q)


def test_discoveries_without_evidence_and_with_missing_p_values():
    assert not discoveries(np.ones(3), 0.1).any()
    assert discoveries(np.array([np.nan, 0.02, 0.02, 0.9]), 0.05).tolist() == [False, True, True, False]


# ---- truth known by construction


def test_noise_is_not_kept_and_it_says_so():
    """At q = 0.1 a table of noise may keep something once in ten times; here 1 of 12 at most."""
    kept = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NOTHING)
        for seed in range(12):
            kept.append(int(daf(random_state=seed).fit(*noise(seed=seed)).stands_out().sum()))
    assert sum(count > 0 for count in kept) <= 1
    with pytest.warns(UserWarning, match=NOTHING):
        fitted = daf(random_state=1).fit(*noise(seed=1))
    assert fitted.support_.tolist() == (fitted.ranking_ == 1).tolist()


@pytest.mark.parametrize("criterion", ["naive_bayes", "knn", "linear"])
def test_strong_signals_are_kept(criterion):
    fitted = daf(criterion=criterion, stop=MaxProbes(600)).fit(*planted())
    assert fitted.support_[[3, 17]].all()
    assert fitted.support_.sum() <= 3
    assert (fitted.p_values_[[3, 17]] < 0.01).all()
    assert fitted.p_values_.shape == (40,)


@pytest.mark.slow
@pytest.mark.parametrize("correlated", [False, True], ids=["alone", "in blocks"])
def test_the_rate_is_held(correlated):
    """A short form of ``python -m benchmarks discoveries``: 30 runs, 5 of 200 features informative."""
    kept, false, found = outcomes_of(200, 5, correlated=correlated, criterion="naive_bayes", runs=30).T
    assert false.mean() <= 0.1 + 2 * false.std(ddof=1) / np.sqrt(30)
    assert found.mean() > 0.8
    assert kept.mean() > 4


# ---- before and after fit


def test_what_may_be_changed_after_fit():
    X, y = planted(informative=(3, 17, 20))
    X[:, 20] -= 1.5 * y
    fitted = daf().fit(X, y)
    strict, lenient = fitted.set_params(fdr=1e-9).support_, fitted.set_params(fdr=0.9).support_
    assert strict.sum() < lenient.sum()
    assert (strict <= lenient).all()
    assert lenient.tolist() == naive.discoveries(fitted.p_values_.tolist(), 0.9)
    assert fitted.set_params(n_features_to_select=7).support_.sum() == 7
    assert fitted.transform(X).shape == (100, 7)
    by_number = daf(7).fit(X, y)
    assert by_number.support_.sum() == 7
    assert (
        by_number.set_params(n_features_to_select="stands_out").support_.tolist() == daf().fit(X, y).support_.tolist()
    )
    with pytest.raises(ValueError, match="n_features_to_select='size_curve' was set after fit: fit again"):
        by_number.set_params(n_features_to_select="size_curve").get_support()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fdr": 0.0}, "fdr=0.0 must be a share above 0 and below 1"),
        ({"fdr": 1}, "fdr=1 must be a share above 0 and below 1"),
        ({"fdr": float("nan")}, "fdr=nan must be a share"),
        ({"fdr": "small"}, "fdr='small' must be a share"),
        ({"n_features_to_select": "some"}, "n_features_to_select='some' with 40 features"),
    ],
    ids=range(5),
)
def test_what_cannot_be_meant(options, words):
    with pytest.raises(ValueError, match=words):
        daf(**options).fit(*planted())


def test_with_all_that_can_be_said_of_features():
    X, y = planted()
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(40)])
    frame["gene 5"] = pd.Categorical(np.where(y == 1, "a", "b"))
    groups = [["gene 3", "gene 4"], ["gene 8", "gene 9"]]
    fitted = daf(feature_groups=groups, keep=["gene 30"]).fit(frame, y)
    names = fitted.get_feature_names_out().tolist()
    assert names[:3] == ["gene 3", "gene 4", "gene 5"]
    assert "gene 30" in names
    assert np.isnan(fitted.p_values_[[30]]).all()
    assert fitted.p_values_[3] == fitted.p_values_[4]


def test_kept_features_are_selected_beside_the_best_one():
    with pytest.warns(UserWarning, match="no feature stands out"):
        fitted = daf(keep=[2], fdr=1e-6).fit(*noise())
    assert fitted.support_.tolist() == ((np.arange(40) == 2) | (fitted.ranking_ == 1)).tolist()
