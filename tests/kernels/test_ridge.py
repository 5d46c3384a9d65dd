"""Decisions of ridge regression for rows left out: all ways agree, and digits lost in one problem are reported."""

from itertools import pairwise

import numpy as np
import pytest

from naive import exact_ridge_decisions
from probewise.kernels import ridge
from probewise.kernels.ridge import WAYS, Fit, Problem, by_qr, decide


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_digits_lost_in_one_problem_are_not_found_again_in_another(order):
    XT = np.random.default_rng(0).standard_normal((2, 24))
    XT[1, :12] = XT[0, :12] = 1e9 * XT[0, :12]  # the same column twice, far larger than the penalty
    borders = np.array([0, 9, 12])
    problems = [Problem(np.arange(12), borders, 1, False), Problem(np.arange(12, 24), borders, 1, False)]
    fit, decisions = Fit(np.where(np.arange(24) % 2, 1.0, -1.0)[None], np.ones(24), 1.0), np.empty((1, 6, 1))
    probe = XT, np.arange(2, dtype=np.int32), np.array([0, 2])
    alone = [decide(*probe, [problem], fit, decisions)[0] for problem in problems]
    assert alone == [False, True]
    assert not decide(*probe, [problems[number] for number in order], fit, decisions)[0]


def weighted_probes(n):
    rng = np.random.default_rng(n)
    XT, sizes = rng.standard_normal((300, n)), np.array([3, n // 2, 3 * n // 4, n])
    indices = np.concatenate([rng.permutation(300)[:size] for size in sizes]).astype(np.int32)
    fit = Fit(np.where(rng.random((3, n)) < 0.5, 1.0, -1.0), np.sqrt(rng.uniform(0.5, 2.0, n)), 1.0)
    return (XT, indices, np.append(0, np.cumsum(sizes))), fit


@pytest.mark.parametrize("n_folds", [2, 3, 5, 12])
@pytest.mark.parametrize("n", [31, 48, 100])
def test_all_ways_agree(n_folds, n, monkeypatch):
    (XT, indices, offsets), fit = weighted_probes(n)
    borders, decisions = np.linspace(0, n, n_folds + 1).astype(np.int64), {}
    problem = Problem(np.arange(n), borders, 0, True)
    for way in WAYS:
        monkeypatch.setattr(ridge, "_fastest", lambda sizes, problem, way=way: np.full(len(sizes), way))
        decisions[way] = np.empty((4, n, 3))
        assert decide(XT, indices, offsets, [problem], fit, decisions[way]).all()
    decisions["qr"] = np.empty((4, n, 3))
    for probe, (begin, end) in enumerate(pairwise(offsets)):
        X = XT[indices[begin:end]].T
        for first, last in pairwise(borders):
            train, test = np.delete(np.arange(n), np.s_[first:last]), np.arange(first, last)
            qr = by_qr(X[train], fit.targets[:, train], fit.roots[train], fit.alpha, X[test])
            decisions["qr"][probe, first:last] = qr
    for way in decisions:
        np.testing.assert_allclose(decisions[way], decisions["qr"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e9])
def test_systems_of_rows_need_no_penalty(scale):
    """With as many features as rows to train on: of 40 rows in three folds 27."""
    n, n_features = 40, 30
    rng = np.random.default_rng(0)
    X, targets = scale * rng.standard_normal((n, n_features)), np.where(np.arange(n) % 2, 1.0, -1.0)
    borders, decisions = np.array([0, 13, 26, n]), np.empty((1, n, 1))
    probe = X.T.copy(), np.arange(n_features, dtype=np.int32), np.array([0, n_features])
    problem, fit = Problem(np.arange(n), borders, 0, True), Fit(targets[None], np.ones(n), 1.0)
    assert decide(*probe, [problem], fit, decisions).all()
    for begin, end in pairwise(borders):
        train, test = np.setdiff1d(np.arange(n), np.arange(begin, end)), np.arange(begin, end)
        expected = exact_ridge_decisions(X, targets[:, None], train, test, 1.0)
        np.testing.assert_allclose(decisions[0, begin:end], expected, rtol=1e-6)
