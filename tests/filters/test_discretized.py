"""DFE, EFS, CFS, FCBF, MRMR, JMI and CMIM equal their equations, on small random tables and on real genes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import naive
from probewise import CFS, CMIM, DFE, EFS, FCBF, FSDD, JMI, MRMR, ReliefF
from probewise.datasets import make_madelon
from probewise.discretize import Discretizer
from probewise.information import entropy
from sampling import examples

GREEDY = [
    ("mid", MRMR()),
    ("miq", MRMR(scheme="quotient")),
    ("jmi", JMI(levels="sigma")),
    ("cmim", CMIM(levels="sigma")),
]
greedy = pytest.mark.parametrize(("name", "selector"), GREEDY, ids=[name for name, _ in GREEDY])


@st.composite
def tables(draw):
    """Codes already, with copies and near copies, and classes that depend on some."""
    n, d = draw(st.integers(6, 40)), draw(st.integers(2, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.integers(0, rng.integers(1, 6, d), (n, d))
    X[:, -1] = np.where(rng.random(n) < 0.8, X[:, 0], X[:, -1])
    y = np.where(rng.random(n) < 0.7, X[:, 0] + X[:, d // 2], rng.integers(0, 3, n)) % 3
    y[:2] = 0, 1
    return X, y


@pytest.mark.parametrize("selector", [DFE(2), EFS(2), CFS(), FCBF(), MRMR(2), JMI(2), CMIM(2), ReliefF(2)], ids=str)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_with_categories(selector, library):
    """Ranked as their codes are, a missing one by itself, and given back as they came."""
    rng = np.random.default_rng(0)
    y, codes = np.arange(60) % 3, rng.integers(-1, 3, (60, 2))
    codes[:, 0] = np.where(rng.random(60) < 0.8, y, codes[:, 0])
    numbers = rng.standard_normal((60, 2)) + y[:, None]
    texts = [[None if code < 0 else "xyz"[code] for code in column] for column in codes.T]
    names = ["kind", "sort", "a", "b"]
    frame = pd.DataFrame(dict(zip(names, [*texts, *numbers.T], strict=True)))
    frame = frame.astype({"kind": "category", "sort": "category"})
    expected = clone(selector).set_params(discrete_features=[0, 1]).fit(np.column_stack([codes, numbers]), y)
    X = frame if library == "pandas" else pl.DataFrame(frame)
    fitted = clone(selector).fit(X, y)
    np.testing.assert_array_equal(fitted.ranking_, expected.ranking_)
    np.testing.assert_array_equal(fitted.scores_, expected.scores_)
    chosen = fitted.set_output(transform=library).transform(X)
    assert {**dict(X.dtypes if library == "pandas" else X.schema)}["kind"] == chosen["kind"].dtype
    assert list(chosen.columns) == fitted.get_feature_names_out().tolist()


def test_a_method_without_categories_names_others():
    frame = pd.DataFrame({"kind": pd.Categorical(list("xyxyxy")), "a": np.arange(6.0)})
    with pytest.raises(ValueError, match=r"'kind'.*leave them out, or use a method that takes categories, such as DAF"):
        FSDD().fit(frame, np.arange(6) % 2)


def columns(X):
    return [column.tolist() for column in X.T]


@examples(200)
@given(tables())
def test_dfe(data):
    X, y = data
    expected = [naive.balanced_gain(column, y.tolist()) for column in columns(X)]
    np.testing.assert_allclose(DFE(discrete_features=True).fit(X, y).scores_, expected, atol=1e-10)


@examples(200)
@given(
    tables(),
    st.integers(1, 7),
    st.sampled_from([0.0, 1e-6, 0.05, 0.2, ("top", 1), ("top", 3), ("top", 99)]),
    st.sampled_from(["all", "undetermined", None]),
)
def test_efs(data, size, threshold, normalize):
    X, y = data
    size = min(size, X.shape[1])
    rank = ("top", min(threshold[1], X.shape[1])) if isinstance(threshold, tuple) else threshold
    selected, discarded = naive.efs(columns(X), y.tolist(), size, rank, normalize)
    efs = EFS(size, threshold=threshold, normalize=normalize, discrete_features=True).fit(X, y)
    assert efs.order_.tolist() == [f for f, _ in selected]
    np.testing.assert_allclose(efs.importances_, [value for _, value in selected], atol=1e-9)
    assert np.flatnonzero(efs.discarded_).tolist() == sorted(discarded)
    np.testing.assert_allclose(efs.scores_[sorted(discarded)], [discarded[f] for f in sorted(discarded)], atol=1e-9)
    assert efs.ranking_[efs.order_].tolist() == list(range(1, len(selected) + 1))
    for feature in range(X.shape[1]):
        if efs.partners_[feature] >= 0:
            likeness = naive.extended_balanced_gain(*(X[:, f].tolist() for f in (feature, efs.partners_[feature])))
            assert efs.redundancy_[feature] == pytest.approx(likeness / efs.largest_correlation_, abs=1e-9)


@examples(150)
@given(tables())
@pytest.mark.parametrize("search", ["best_first", "hill_climbing"])
def test_cfs(search, data):
    X, y = data
    expected = getattr(naive, f"cfs_{search}")(columns(X), y.tolist())
    cfs = CFS(search=search, discrete_features=True).fit(X, y)
    assert cfs.order_.tolist() == (expected or [0])
    if expected:
        assert cfs.merits_[-1] == pytest.approx(naive.cfs_merit(columns(X), y.tolist(), expected), abs=1e-9)


@examples(100)
@given(tables())
@pytest.mark.parametrize("start", ["empty", "full"])
def test_cfs_that_adds_or_removes(start, data):
    X, y = data
    expected = naive.cfs_add_or_remove(columns(X), y.tolist(), start == "full")
    cfs = CFS(search="add_or_remove", start=start, discrete_features=True).fit(X, y)
    assert sorted(cfs.order_.tolist()) == (sorted(expected) or [0])
    assert cfs.n_expanded_ == len(cfs.merits_) + 1
    if len(cfs.merits_):
        assert cfs.merits_[-1] == pytest.approx(naive.cfs_merit(columns(X), y.tolist(), expected), abs=1e-9)
        assert np.all(np.diff(cfs.merits_) > 0)


@examples(100)
@given(tables(), st.sampled_from([0.0, 0.2]))
def test_fcbf(data, threshold):
    X, y = data
    expected = naive.fcbf(columns(X), y.tolist(), threshold)
    fcbf = FCBF(threshold=threshold, discrete_features=True).fit(X, y)
    assert fcbf.order_.tolist() == (expected or [int(np.argmax(fcbf.scores_))])
    for g in set(range(X.shape[1])) - set(fcbf.order_.tolist()):
        assert fcbf.scores_[g] <= max(threshold, fcbf.redundancy_[g])  # nothing leaves without a reason


@examples(100)
@given(tables(), st.integers(1, 7))
@greedy
def test_greedy_information(name, selector, data, size):
    X, y = data
    size = min(size, X.shape[1])
    order, values = naive.greedy_information(columns(X), y.tolist(), size, name)
    selector = type(selector)(**{**selector.get_params(), "n_features_to_select": size, "discrete_features": True})
    fitted = selector.fit(X, y)
    assert fitted.order_.tolist() == order
    np.testing.assert_allclose(fitted.gains_, values, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["leukemia", pytest.param("lymphoma", marks=pytest.mark.exhaustive)])
def test_real_genes(name, real_data):
    """Every method on all genes equals its twin; the twin of a search sees the 40 genes with the largest gain."""
    data = real_data(name)
    X, y = data["X"], data["y"]
    dfe = DFE(40, discretization="greedy").fit(X, y)
    codes = Discretizer("greedy").fit_transform(X, y)
    sample = np.arange(0, X.shape[1], 97)
    expected = [naive.balanced_gain(codes[:, f].tolist(), y.tolist()) for f in sample]
    np.testing.assert_allclose(dfe.scores_[sample], expected, atol=1e-10)
    for f in sample[:12]:
        assert np.allclose(dfe.cut_points_[f], naive.greedy_cuts(X[:, f].astype(float), y.tolist()))
    some = codes[:, dfe.get_support(indices=True)]
    selected, _ = naive.efs(columns(some), y.tolist(), 8, 1e-6)
    assert EFS(8, discrete_features=True).fit(some, y).order_.tolist() == [f for f, _ in selected]
    assert CFS(discrete_features=True).fit(some, y).order_.tolist() == naive.cfs_best_first(columns(some), y.tolist())
    for method, selector in GREEDY:
        order, _ = naive.greedy_information(columns(some), y.tolist(), 5, method)
        selector = type(selector)(**{**selector.get_params(), "n_features_to_select": 5, "discrete_features": True})
        assert selector.fit(some, y).order_.tolist() == order


def test_madelon_by_jmi():
    """JMI finds all features that are informative in combination; MRMR, which ignores the class in pairs, does not."""
    data = make_madelon(2000, random_state=0)
    found = {type(s).__name__: set(s.fit(data.X, data.y).order_) & set(data.informative) for s in (JMI(20), MRMR(20))}
    assert len(found["JMI"]) == 20
    assert len(found["MRMR"]) < 15


RNG = np.random.default_rng(1)
CLASS = np.arange(120) % 2
THE_CLASS = {  # columns that tell all about it
    "balanced 0/1": CLASS,
    "balanced -5/5": 10.0 * CLASS - 5,
    "far from 0": 1e9 + CLASS,
    "ternary": np.where(CLASS == 1, 7.0, RNG.integers(0, 2, 120) * 500),
    "mostly zero": np.where(np.arange(120) < 40, np.exp(3 * RNG.standard_normal(120)), 0),
    "skewed": np.where(np.arange(120) < 5, 1e6, 1.0),
}


@pytest.mark.parametrize("make", [np.asarray, sp.csc_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("selector", [MRMR(1), MRMR(1, levels="mean"), JMI(1), CMIM(1)], ids=str)
def test_a_column_that_determines_the_class_comes_first(selector, make):
    for name, column in THE_CLASS.items():
        y = (column > 0).astype(int) if name == "mostly zero" else CLASS
        y = (column > 1).astype(int) if name == "skewed" else y
        X = np.random.default_rng(0).standard_normal((120, 6))
        X[:, 3] = column
        fitted = selector.fit(make(X), y)
        assert fitted.order_.tolist() == [3], name
        assert fitted.relevance_[3] == pytest.approx(entropy(y)), name


@pytest.mark.parametrize("selector", [EFS(3), MRMR(3), JMI(3), CMIM(3), CFS(), FCBF()], ids=lambda s: type(s).__name__)
def test_a_copy_is_explained_by_its_original(selector):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = pd.DataFrame(rng.standard_normal((80, 6)), columns=[f"gene {i}" for i in range(6)])
    X["gene 2"] += 2.5 * y
    X["gene 4"] = X["gene 2"] * 3 + 1
    fitted = selector.fit(X, y)
    assert fitted.order_[0] == 2
    assert fitted.partners_[4] == 2
    assert "1.00 like gene 2 (rank 1)" in fitted.explain("gene 4")
    assert fitted.explain(2).startswith("gene 2: rank 1 of 6")


@pytest.mark.parametrize(
    "selector", [EFS(4), CFS(), FCBF(), MRMR(4), JMI(4), CMIM(4), DFE(4)], ids=lambda s: type(s).__name__
)
def test_permuted_columns_give_permuted_answers(selector):
    rng = np.random.default_rng(4)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 12)) + rng.standard_normal(12) * y[:, None]
    permutation = rng.permutation(12)
    plain = {name: getattr(selector.fit(X, y), name).copy() for name in ("scores_", "support_")}
    permuted = selector.fit(X[:, permutation], y)
    for name, values in plain.items():
        np.testing.assert_allclose(getattr(permuted, name), values[permutation], atol=1e-12)


def test_bad_parameters():
    X, y = np.random.default_rng(0).random((20, 4)), np.arange(20) % 2
    for selector, words in [
        (EFS(normalize="some"), "normalize='some'"),
        (EFS(threshold="low"), "threshold='low'"),
        (EFS(threshold=("top", 0)), "threshold=\\('top', 0\\)"),
        (CFS(search="random"), "search='random'"),
        (CFS(max_stale=0), "max_stale=0"),
        (FCBF(threshold=1), "threshold=1 must be a number from 0 to below 1"),
        (FCBF(threshold=True), "threshold=True"),
        (CFS(search="add_or_remove", start="half"), "start='half'"),
        (CFS(start="full"), "'full' with search='add_or_remove'"),
        (MRMR(scheme="ratio"), "scheme='ratio'"),
        (MRMR(levels="five"), "levels='five' must be 'optimal'"),
        (DFE(discretization="none"), "discretization='none' must be 'optimal'"),
    ]:
        with pytest.raises(ValueError, match=words):
            selector.fit(X, y)
    with pytest.raises(ValueError, match="y is continuous"):
        JMI().fit(X, X[:, 0])


# ---- numeric targets


def similarity(one, other):
    return abs(np.corrcoef(one, other)[0, 1])


def numeric_table(n_rows=80, n_features=9, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows, n_features))
    X[:, 4] = X[:, 1] + 0.2 * random.standard_normal(n_rows)
    X[:, 7] = 3.0
    return X, X[:, 1] - 0.6 * X[:, 2] + 0.4 * X[:, 6] + 0.3 * random.standard_normal(n_rows)


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")  # the twin divides by 0
@pytest.mark.parametrize("seed", range(4))
def test_numeric_targets_are_filtered_by_correlations(seed, monkeypatch):
    X, y = numeric_table(seed=seed)
    twin_of = [np.delete(X, 7, axis=1).T, [0, 1, 2, 3, 4, 5, 6, 8]]
    monkeypatch.setattr(naive, "symmetrical_uncertainty", similarity)
    monkeypatch.setattr(naive, "mutual_information", lambda one, other: -np.log2(1 - similarity(one, other) ** 2) / 2)
    columns, numbers = twin_of
    for scheme, method in (("difference", "mid"), ("quotient", "miq")):
        order, values = naive.greedy_information(columns, y, 5, method)
        fitted = MRMR(5, scheme=scheme).fit(X, y)
        assert fitted.order_.tolist() == [numbers[k] for k in order]
        np.testing.assert_allclose(fitted.gains_, values, rtol=1e-7)  # quotients of numbers rounded to 12 decimals
    fcbf = FCBF(threshold=0.15).fit(X, y)
    assert fcbf.order_.tolist() == [numbers[k] for k in naive.fcbf(columns, y, 0.15)]
    assert fcbf.order_[0] in (1, 4)
    assert not {1, 4} <= set(fcbf.order_)
    assert CFS().fit(X, y).order_.tolist() == [numbers[k] for k in naive.cfs_best_first(columns, y)]
    np.testing.assert_allclose(fcbf.scores_, [*(similarity(x, y) for x in X.T[:7]), 0.0, similarity(X[:, 8], y)])
    assert "like 1 (rank 1)" in FCBF().fit(X[:, [0, 1, 2, 4]], X[:, 1] + 1e-3 * y).explain(3)


def test_whole_numbers_that_are_a_quantity_are_numbers_and_categories_are_refused():
    X, y = numeric_table(200)
    ages = np.round(50 + 10 * y)
    assert np.argsort(MRMR(3).fit(X, ages).ranking_)[0] in (1, 4)
    np.testing.assert_allclose(FCBF().fit(1e9 * X, 1e9 * y).scores_, FCBF().fit(X, y).scores_, atol=1e-11)
    frame = pd.DataFrame(X).assign(kind=pd.Categorical(np.where(y > 0, "a", "b")))
    with pytest.raises(ValueError, match="categorical columns need classes"):
        FCBF().fit(frame.rename(columns=str), y)
