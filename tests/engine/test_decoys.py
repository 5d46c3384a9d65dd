"""How many features beat shuffled copies of features: against literal twins, and the truth of planted data."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from benchmarks.discoveries import realised
from hypothesis import given
from hypothesis import strategies as st

import naive
from probewise import DAF
from probewise.engine.certainty import discoveries
from probewise.engine.decoys import FEWEST, MOST, Decoys, chances
from probewise.engine.ledger import LedgerError
from probewise.engine.probes import Subsets
from probewise.report import render_markdown, summarize
from probewise.stopping import MaxProbes
from sampling import examples

NONE_KEPT = "no feature beats the decoys at a false-discovery rate of 0.1: none is kept"


def planted(n=100, d=40, seed=0, informative=(3, 17)):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, d))
    X[:, list(informative)] += 2.0 * y[:, None]
    return X, y


def noise(n=100, d=40, seed=0):
    return planted(n, d, seed, ())


def daf(n_features_to_select="auto", **options):
    options.setdefault("criterion", "naive_bayes")
    options.setdefault("stop", MaxProbes(1000))
    options.setdefault("random_state", 0)
    options.setdefault("how_many", "decoys")
    options.setdefault("min_features_to_select", 0)
    return DAF(n_features_to_select, **options)


# ---- chances and discoveries


numbers = st.floats(-1, 1).map(lambda value: round(value, 2)) | st.just(float("nan"))


@given(st.lists(numbers, min_size=1, max_size=20), st.lists(numbers, max_size=60))
@examples(150)
def test_chances_against_a_literal_count(scores, decoys):
    found = chances(np.array(scores), np.array(decoys))
    np.testing.assert_allclose(found, naive.chances(scores, decoys), rtol=1e-9)
    assert ((found >= 0) & (found <= 1)).all()


@given(st.lists(st.floats(0, 1).map(lambda p: round(p, 3)), min_size=1, max_size=40), st.sampled_from([0.05, 0.1, 0.5]))
@examples(150)
def test_discoveries_against_benjamini_and_hochberg(p, q):
    assert discoveries(np.array(p), q).tolist() == naive.discoveries(p, q)


def test_equal_decoys_and_few_of_them():
    assert chances(np.array([1.0, 0.0]), np.zeros(9)).tolist() == [1.0, 1.0]
    np.testing.assert_allclose(chances(np.array([1.0, -1.0]), np.zeros(20)), [1 / 21, 1.0])
    assert not discoveries(np.ones(3), 0.1).any()
    assert discoveries(np.array([np.nan, 0.02, 0.02, 0.9]), 0.05).tolist() == [False, True, True, False]


def test_chances_beyond_all_decoys_go_on_falling():
    decoys = np.random.default_rng(0).standard_normal(1000)
    found = chances(np.linspace(2, 12, 50), decoys)
    assert (np.diff(found) < 0).all()
    assert found[-1] < 1e-6


# ---- what decoys are


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix], ids=["C", "F", "sparse"])
@pytest.mark.parametrize(("d", "n_decoys"), [(7, FEWEST), (300, 300), (1200, MOST)])
def test_decoys_are_shuffled_copies(make, d, n_decoys):
    X = np.arange(20.0 * d).reshape(20, d) + 1
    columns = Subsets.of(np.arange(d)[:, None])
    made = Decoys.of(make(X), columns, 5)
    seen = made.matrix.toarray() if sp.issparse(made.matrix) else made.matrix
    assert seen.shape == (20, d + n_decoys)
    np.testing.assert_array_equal(seen[:, :d], X)
    for decoy, unit in zip(made.columns, made.originals, strict=True):
        assert sorted(seen[:, decoy[0]]) == X[:, unit].tolist()
    assert (seen[:, d:] != X[:, made.originals]).any(axis=0).all()
    counts = np.bincount(made.originals, minlength=d)
    assert counts.max() - counts.min() <= 1
    again, other = Decoys.of(make(X), columns, 5), Decoys.of(make(X), columns, 6)
    assert np.array_equal(again.originals, made.originals)
    assert (again.matrix != made.matrix).sum() == 0
    assert (other.matrix != made.matrix).sum() > 0


def test_columns_of_a_unit_are_shuffled_alike():
    X = np.random.default_rng(0).standard_normal((30, 5))
    X[:, 1] = -X[:, 0]
    made = Decoys.of(X, Subsets.of([[0, 1], [2], [3], [4]]), 0)
    for decoy, unit in zip(made.columns, made.originals, strict=True):
        assert len(decoy) == (2 if unit == 0 else 1)
        if unit == 0:
            np.testing.assert_array_equal(made.matrix[:, decoy[1]], -made.matrix[:, decoy[0]])


# ---- truth known by construction


def test_noise_is_not_kept_and_it_says_so():
    """At q = 0.1 a table of noise may keep something once in ten times; here 1 of 12 at most."""
    kept = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NONE_KEPT)
        for seed in range(12):
            kept.append(int(daf(random_state=seed).fit(*noise(seed=seed)).support_.sum()))
    assert sum(count > 0 for count in kept) <= 1
    with pytest.warns(UserWarning, match=NONE_KEPT):
        fitted = daf().fit(*noise())
    with pytest.warns(UserWarning, match="No features were selected"):
        assert fitted.transform(noise()[0]).shape == (100, 0)
    assert len(fitted.get_feature_names_out()) == 0


@pytest.mark.parametrize("criterion", ["naive_bayes", "knn", "linear"])
def test_strong_signals_are_kept(criterion):
    fitted = daf(criterion=criterion, stop=MaxProbes(600)).fit(*planted())
    assert fitted.support_[[3, 17]].all()
    assert fitted.support_.sum() <= 3
    assert (fitted.p_values_[[3, 17]] < 0.01).all()
    assert fitted.p_values_.shape == (40,)


def test_many_features_alone_do_not_make_it_empty():
    X, y = planted(200, 5000)
    fitted = daf(stop=MaxProbes(4000)).fit(X, y)
    assert fitted.units_.n_decoys == MOST
    assert fitted.support_[[3, 17]].all()
    assert fitted.support_.sum() <= 3


@pytest.mark.slow
@pytest.mark.parametrize("correlated", [False, True], ids=["alone", "in blocks"])
def test_the_rate_is_held(correlated):
    """A short form of ``python -m benchmarks discoveries``: 30 runs, 5 of 200 features informative."""
    kept, false, found = realised(200, 5, correlated=correlated, criterion="naive_bayes", runs=30).T
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
    with pytest.raises(ValueError, match="n_features_to_select='auto' was not asked for when fit: fit again, or give"):
        by_number.set_params(n_features_to_select="auto").get_support()
    assert by_number.fit(X, y).support_.tolist() == daf().fit(X, y).support_.tolist()


def test_p_values_are_of_the_coefficient_of_the_run():
    X, y = planted()
    for name in ("daf0", "daf1", "daf2", "regression"):
        fitted = daf(coefficient=name).fit(X, y)
        scores = fitted.run_.unit_coefficient(name)[0]
        np.testing.assert_allclose(fitted.p_values_, naive.chances(scores[:40], scores[40:]), rtol=1e-9)
        assert fitted.p_values_[[3, 17]].max() < 0.05


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fdr": 0.0}, "fdr=0.0 must be a share above 0 and below 1"),
        ({"fdr": 1}, "fdr=1 must be a share above 0 and below 1"),
        ({"fdr": float("nan")}, "fdr=nan must be a share"),
        ({"fdr": "small"}, "fdr='small' must be a share"),
        ({"how_many": "all"}, "how_many='all': choose one of stands_out, decoys, size"),
        ({"screen": 10}, "by decoys needs screen=None: what passed a screen is better than luck already"),
        ({"n_features_to_select": "some"}, "n_features_to_select='some' with 40 features"),
    ],
    ids=range(8),
)
def test_what_cannot_be_meant(options, words):
    with pytest.raises(ValueError, match=words):
        daf(**options).fit(*planted())


def test_a_run_with_decoys_is_not_one_without(tmp_path):
    X, y = planted()
    daf(ledger=tmp_path / "run.ledger").fit(X, y)
    with pytest.raises(LedgerError, match="its units is"):
        daf(3, ledger=tmp_path / "run.ledger").fit(X, y)
    fitted = daf(ledger=tmp_path / "run.ledger", random_state=None).fit(X, y)  # the ledger's own seed and decoys
    assert fitted.support_.tolist() == daf().fit(X, y).support_.tolist()


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix], ids=["csr", "csc"])
def test_sparse(make):
    X, y = planted()
    X = np.rint(np.abs(X)) * (np.abs(X) > 1)
    X[:, 3] = y * 2.0
    options = {"criterion": "linear", "stop": MaxProbes(200), "max_probe_size": 20}
    fitted = daf(**options).fit(make(X), y)
    assert fitted.support_[3]
    dense = daf(**options).fit(X, y).ledger_.values()
    assert np.isclose(fitted.ledger_.values(), dense, rtol=1e-6).mean() >= 0.99  # of whole numbers decisions tie


def test_with_all_that_can_be_said_of_features():
    X, y = planted()
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(40)])
    frame["gene 5"] = pd.Categorical(np.where(y == 1, "a", "b"))
    groups = [["gene 3", "gene 4"], ["gene 8", "gene 9"]]
    fitted = daf(feature_groups=groups, keep=["gene 30"], drop=["gene 17"]).fit(frame, y)
    names = fitted.get_feature_names_out().tolist()
    assert names[:3] == ["gene 3", "gene 4", "gene 5"]
    assert "gene 30" in names
    assert "gene 17" not in names
    assert np.isnan(fitted.p_values_[[17, 30]]).all()
    assert fitted.p_values_[3] == fitted.p_values_[4]
    assert fitted.units_.n_decoys == FEWEST
    dear = daf(costs={"gene 5": 1e6}).fit(frame, y)
    assert dear.support_[5]  # what it costs says nothing about whether it is real


def test_noise_with_something_kept():
    with pytest.warns(UserWarning, match="none is kept; give more probes, .*; what keep names stays"):
        fitted = daf(keep=[2], fdr=1e-6).fit(*noise())
    assert np.flatnonzero(fitted.support_).tolist() == [2]


# ---- the report


def test_the_report_says_how_many_beat_how_many(tmp_path):
    X, y = planted()
    fitted = daf(ledger=tmp_path / "run.ledger").fit(X, y)
    found = int(fitted.support_.sum())
    for run in (fitted, tmp_path / "run.ledger"):
        summary = summarize(run)
        assert summary["features"]["decoys"] == {"made": 100, "beaten_by": found, "rate": 0.1}
        assert len(summary["ranking"]["columns"]["p_value"]) == 40
        told = f"100 decoys took part; {found} features beat them at a false-discovery rate of 0.1"
        assert told in render_markdown(summary)


# ---- groups of rows


def test_decoys_of_grouped_rows_are_shuffled_by_whole_groups():
    """What is the same in all rows of a patient is so in every decoy of it."""
    groups = np.repeat([7, 3, 5, 9], 5)[np.random.default_rng(0).permutation(20)]
    X = np.stack([groups, groups * 10.0, np.arange(20)], axis=1)
    decoys = Decoys.of(X, Subsets.of([[0], [1, 2]]), seed=1, groups=groups.tolist())
    made = decoys.matrix[:, 3:]
    moved = set()
    for decoy in range(len(decoys.originals)):
        columns = decoys.columns[decoy] - 3
        first = made[:, columns[0]]
        assert all(len(set(first[groups == group])) == 1 for group in (3, 5, 7, 9))
        assert sorted(first) == sorted(X[:, [0, 1][len(columns) - 1]])
        moved.add(tuple(first))
    assert len(moved) > 10


def test_the_run_of_decoys_by_groups_is_another_run(tmp_path):
    X, y = planted()
    options = {"stop": MaxProbes(100), "check_every": 100, "ledger": tmp_path / "run.ledger"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        daf(**options).fit(X, y)
        with pytest.raises(LedgerError, match="its units is"):
            daf(**options).fit(X, y, groups=np.arange(100) // 2)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            daf(**options).fit(X, y, groups=[1, 2])
