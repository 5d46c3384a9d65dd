"""The caller's numpy error state, subnormal numbers, constant tables, and labels of groups."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import probewise
from probewise import BIF, DAF, SFFS, Tournament
from probewise.criteria import KNN
from probewise.engine.probes import Subsets
from probewise.inference import associated
from probewise.stopping import MaxProbes
from probewise.validation.errors import ParameterError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 8)), np.arange(40) % 2
SELECTORS = {
    "Tournament": Tournament(3, n_probes=200, random_state=0),
    "DAF": DAF(3, stop=MaxProbes(200), random_state=0),
    "SFFS": SFFS(2),
    **{name: getattr(probewise, name)(3) for name in ["BIF", "FSDD", "ReliefF", "MRMR", "JMI", "CMIM", "EFS", "DFE"]},
}


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("table", ["binary", "constant column", "sparse"])
def test_an_error_state_that_raises_changes_nothing(name, table):
    tables = {"binary": (X > 0).astype(float), "constant column": np.c_[X, np.ones(40)]}
    Z = tables[table] if table in tables else sp.csr_array(np.where(X > 0, X, 0.0))
    expected = SELECTORS[name].fit(Z, Y).scores_
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(SELECTORS[name].fit(Z, Y).scores_, expected)


@pytest.mark.parametrize("scale", [1e-39, 1e-42, 1e-45])
@pytest.mark.parametrize("scoring", [None, "probability"])
def test_neighbors_in_float32_tables_of_subnormal_numbers(scale, scoring):
    """The factor that scales them to 1 overflowed in float32, and neighbors were rows that do not exist."""
    Z = (np.round(5 * X) * scale).astype(np.float32)
    subsets = Subsets.of([[0], [0, 1, 2], list(range(8))])
    exact = np.round(Z.astype(np.float64) / scale)
    J = KNN(3).bind(Z, Y, 3, scoring=scoring)(subsets)
    np.testing.assert_allclose(J, KNN(3).bind(exact, Y, 3, scoring=scoring)(subsets), atol=0.2)
    assert np.isfinite(Tournament(3, n_probes=100, random_state=0, scale=None).fit(Z, Y).scores_).all()


def test_neighbors_in_float64_tables_of_subnormal_numbers():
    Z = np.round(5 * X) * 1e-312
    subsets = Subsets.of([[0], [0, 1, 2], list(range(8))])
    assert np.isfinite(KNN(3).bind(Z, Y, 3)(subsets)).all()


def test_a_sparse_float32_table_of_subnormal_numbers_is_scaled():
    Z = sp.csr_array((np.where(X > 0, X, 0.0) * 1e-40).astype(np.float32))
    fitted = Tournament(3, n_probes=100, random_state=0, scale="standard").fit(Z, Y)
    assert np.isfinite(fitted.scores_).all()


def test_a_huge_constant_under_an_error_state_that_raises():
    with np.errstate(all="raise"), warnings.catch_warnings(action="ignore"):
        fitted = SELECTORS["DAF"].fit(np.c_[np.full(40, 1e308), X], Y)
    assert np.isfinite(fitted.scores_).all()


@pytest.mark.parametrize("y", [Y, RNG.normal(size=40)])
@pytest.mark.parametrize("n_features", [3, 24])
def test_constant_columns_are_tied_with_a_warning(y, n_features):
    with pytest.warns(UserWarning, match="for all probes: the scores are tied, and the ranking is the order"):
        fitted = Tournament(3, n_probes=300, random_state=0).fit(np.ones((40, n_features)), y)
    assert fitted.ranking_.tolist() == list(range(1, n_features + 1))


BAD_GROUPS = {
    "None": ([None] * 40, r"groups has no label \(None or NaN\) in 40 rows \(first: row 0\): give one label for each"),
    "one None": ([*range(39), None], r"in 1 rows \(first: row 39\)"),
    "NaN": ([np.nan, *range(39)], r"in 1 rows \(first: row 0\)"),
    "NaT": (np.array(["NaT", *range(39)], dtype="M8[D]"), "no label"),
    "pandas NA": (pd.array([pd.NA, *range(39)]), "no label"),
    "two columns": (np.ones((40, 2)), r"groups has 2 dimensions \(shape \(40, 2\)\): give one label for each"),
    "one column": (np.ones((40, 1)), "groups has 2 dimensions"),
    "a number": (3, "groups has 0 dimensions"),
    "unequal lists": ([[1, 2], [3]] * 20, "groups has 2 dimensions"),
    "several kinds": (np.array(["a", 1] * 20, dtype=object), r"labels of several kinds \(number, str\)"),
    "too few": (np.arange(39), "inconsistent numbers of samples, 39"),
}


@pytest.mark.parametrize("name", BAD_GROUPS)
@pytest.mark.parametrize("selector", [Tournament(3), DAF(3), SFFS(2), BIF(3)])
def test_groups_that_cannot_be_used(name, selector):
    groups, words = BAD_GROUPS[name]
    with pytest.raises(ValueError, match=words):
        selector.fit(X, Y, groups=groups)
    with pytest.raises(ValueError, match=words):
        KNN(3).bind(X, Y, 3, groups=groups)


@pytest.mark.parametrize("name", BAD_GROUPS)
@pytest.mark.parametrize("parameter", ["groups", "strata"])
def test_tests_of_features_refuse_the_same_groups_and_strata(name, parameter):
    groups, words = BAD_GROUPS[name]
    with pytest.raises(ParameterError, match=words.replace("groups", parameter)):
        associated(X, Y, **{parameter: groups})
