"""Filters on columns as they come: any scale and offset, sentinels, columns constant within a class, copies, all types.

Every score is held against exact fractions of the very numbers that the table holds.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from probewise import CFS, CMIM, DFE, EFS, FSDD, JMI, MRMR, ReliefF
from sampling import covering

ROWS = 30
Y = np.arange(ROWS) % 2
SCALES = (1.0, 1e4, 1e8, 1e12)
OFFSETS = (0.0, 1e3, 1e9, 1e12)
SENTINELS = (None, -99.0, -999_999_999.0)
FORMS = ("shifted", "noise", "constant within class", "few values", "mostly zero")
TREATMENTS = list(product(SCALES, OFFSETS, SENTINELS, FORMS))
SOME = [TREATMENTS[place] for place in sorted(covering(TREATMENTS, pairs=True))]


def column(scale, offset, sentinel, form, rng):
    noise = rng.standard_normal(ROWS)
    values = {
        "shifted": noise + 1.5 * Y,
        "noise": noise,
        "constant within class": np.where(Y == 1, noise[0], noise[1]),
        "few values": rng.integers(0, 3, ROWS) + Y,
        "mostly zero": np.where(rng.random(ROWS) < 0.3, noise + Y, 0.0),
    }[form]
    out = scale * 16 * values + offset
    if sentinel is not None:
        out[rng.random(ROWS) < 0.15] = sentinel
    return out


def table(treatments, dtype, make):
    """The columns, the first of them twice, and the numbers that they hold in the type."""
    rng = np.random.default_rng(5)
    X = np.stack([column(*treatment, rng) for treatment in treatments], axis=1)
    X = np.concatenate([X, X[:, :1]], axis=1)
    X = (np.rint(X) if dtype is np.int64 else X).astype(dtype)
    return make(X), X.astype(np.float64)


def relevance(codes):
    return [naive.mutual_information(list(code), Y.tolist()) for code in codes]


def fsdd(X, exact):
    np.testing.assert_allclose(FSDD().fit(X, Y).scores_, naive.fsdd(exact, Y), rtol=1e-9, atol=1e-11)


def relieff(X, exact):
    """With a constant column its range is 0, and it is 0 apart."""
    fractions = np.array([[Fraction(value) for value in row] for row in exact], dtype=object)
    truth = naive.relieff(fractions, Y, 5, range(ROWS), np.zeros(exact.shape[1], dtype=bool))
    np.testing.assert_allclose(ReliefF(n_neighbors=5).fit(X, Y).scores_, truth, rtol=1e-9, atol=1e-11)


def stepwise(selector, name, method):
    def check(X, exact):
        codes = [naive.levels(values.tolist(), method) for values in exact.T]
        fitted = selector.fit(X, Y)
        np.testing.assert_allclose(fitted.relevance_, relevance(codes), atol=1e-10)
        order, worth = naive.greedy_information(codes, Y.tolist(), 3, name)
        assert fitted.order_.tolist() == order
        np.testing.assert_allclose(fitted.gains_, worth, atol=1e-9)

    return check


def cut(exact, cuts):
    return [naive.interval_codes(values, cuts(values.tolist(), Y.tolist())) for values in exact.T]


def dfe(X, exact):
    truth = [naive.balanced_gain(list(codes), Y.tolist()) for codes in cut(exact, naive.greedy_cuts)]
    np.testing.assert_allclose(DFE(discretization="greedy").fit(X, Y).scores_, truth, atol=1e-10)


def efs(X, exact):
    codes = [list(codes) for codes in cut(exact, naive.greedy_cuts)]
    selected, _ = naive.efs(codes, Y.tolist(), 3, 1e-6)
    fitted = EFS(3, discretization="greedy").fit(X, Y)
    assert fitted.order_.tolist() == [feature for feature, _ in selected]
    np.testing.assert_allclose(fitted.importances_, [value for _, value in selected], atol=1e-9)


def cfs(X, exact):
    codes = [list(codes) for codes in cut(exact, naive.mdl_cuts)]
    assert CFS(search="hill_climbing").fit(X, Y).order_.tolist() == naive.cfs_hill_climbing(codes, Y.tolist())


METHODS = {
    "FSDD": fsdd,
    "ReliefF": relieff,
    "MRMR": stepwise(MRMR(3), "mid", "sigma"),
    "MRMR mean": stepwise(MRMR(3, levels="mean"), "mid", "mean"),
    "JMI": stepwise(JMI(3), "jmi", 2),
    "CMIM": stepwise(CMIM(3, levels=4), "cmim", 4),
    "DFE": dfe,
    "EFS": efs,
    "CFS": cfs,
}
KINDS = {"dense": np.ascontiguousarray, "by columns": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array}


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("method", METHODS)
def test_every_score_is_that_of_exact_arithmetic(method, dtype, kind):
    METHODS[method](*table(SOME, dtype, KINDS[kind]))


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("CFS", "EFS")])
def test_every_combination_of_scale_offset_sentinel_and_form(method, dtype):
    METHODS[method](*table(TREATMENTS, dtype, np.asarray))
