"""``n_features_to_select="stands_out"`` on planted data and on noise; p-values of units; saved selectors."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedGroupKFold

import naive
from probewise import DAF, Tournament, inference
from probewise.inference import associated, needed
from probewise.stopping import MaxProbes

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


# ---- truth known by construction


def test_noise_is_not_kept_and_it_says_so():
    """At a rate of 0.1, a tenth of noise tables keeps something: 4 of 40, at most 7 (two standard errors more)."""
    kept = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NOTHING)
        for seed in range(40):
            kept.append(int(daf(random_state=seed, stop=MaxProbes(50)).fit(*noise(seed=seed)).stands_out().sum()))
    assert sum(count > 0 for count in kept) <= 7
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
    with pytest.raises(ValueError, match="n_features_to_select='auto' was set after fit: fit again"):
        by_number.set_params(n_features_to_select="auto").get_support()


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


# ---- tests of features on the data of fit


@pytest.mark.parametrize("kind", [DAF, Tournament])
def test_p_values_are_those_of_the_data_of_fit(kind):
    X, y = planted()
    groups, weights = np.arange(100) // 2, np.linspace(0.5, 1.5, 100)
    limit = {"stop": MaxProbes(100)} if kind is DAF else {"n_probes": 100}
    folds = StratifiedGroupKFold(3)
    fitted = kind(criterion="linear", cv=folds, random_state=3, **limit).fit(X, y, groups=groups, sample_weight=weights)
    expected = associated(X, y, groups=groups, sample_weight=weights, random_state=3)
    np.testing.assert_array_equal(fitted.p_values_, expected.p_values)
    np.testing.assert_array_equal(fitted.q_values_, expected.q_values)
    np.testing.assert_array_equal(fitted.stands_out(0.3), expected.at(0.3).mask)
    best = np.argsort(fitted.ranking_)[:20]
    expected = needed(X, y, candidates=best, groups=groups, sample_weight=weights, random_state=3)
    np.testing.assert_array_equal(fitted.needed(0.3), expected.at(0.3).mask)


def test_a_unit_has_the_smallest_p_value_of_its_columns_times_their_number():
    X, y = planted()
    fitted = daf(5, feature_groups=[[3, 4, 5], [8, 9]], keep=[30]).fit(X, y)
    one_by_one = associated(X, y, random_state=0).p_values
    expected = one_by_one.copy()
    expected[[3, 4, 5]] = min(1, 3 * one_by_one[[3, 4, 5]].min())
    expected[[8, 9]] = min(1, 2 * one_by_one[[8, 9]].min())
    expected[30] = np.nan
    np.testing.assert_array_equal(fitted.p_values_, expected)
    units = np.setdiff1d(np.arange(40), [4, 5, 9, 30])  # the first feature of each unit
    assert fitted.stands_out(0.5)[units].tolist() == naive.discoveries(expected[units].tolist(), 0.5)
    assert not fitted.stands_out(0.5)[30]
    assert fitted.needed()[[3, 4, 5, 17]].all()
    assert not fitted.needed()[[8, 30]].any()


def test_a_category_that_is_needed():
    X, y = planted()
    frame = pd.DataFrame(X).add_prefix("gene ")
    frame["smokes"] = pd.Categorical(np.where(np.random.default_rng(0).random(100) < 0.9, y, 1 - y))
    fitted = daf(5).fit(frame, y)
    assert fitted.stands_out()[[3, 17, 40]].all()
    assert fitted.needed()[[3, 17, 40]].all()


def test_fit_computes_no_p_values_and_a_saved_selector_keeps_those_it_has(monkeypatch):
    X, y = planted()
    calls = []
    monkeypatch.setattr(inference, "associated", lambda *a, **k: calls.append(1) or associated(*a, **k))
    fitted = daf(5).fit(X, y)
    assert not calls
    bare = pickle.loads(pickle.dumps(fitted))
    with pytest.raises(ValueError, match=r"call probewise\.inference\.associated\(X, y\)"):
        bare.stands_out()
    assert len(pickle.dumps(fitted)) < 0.9 * X.nbytes + len(pickle.dumps(fitted.run_))
    known = fitted.stands_out()
    fitted.stands_out(0.2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).stands_out(), known)
    assert calls == [1]


def test_features_of_a_store_are_not_tested(tmp_path):
    X, y = planted()
    np.save(tmp_path / "X.npy", X.astype(">f8"))
    fitted = daf(5, criterion="knn").fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    for test in (fitted.stands_out, fitted.needed):
        with pytest.raises(ValueError, match="X is in a store"):
            test()
