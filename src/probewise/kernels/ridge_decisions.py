"""Ridge regression with a free intercept: what it says of rows that are left out of the fit, one by one or by folds.

Rows come in problems. The folds of a partition are one: each segment of its rows is left out in turn. Any other split
is a problem by itself, of which the last segment is left out. There are four ways to the same decisions:

- by folds: products of columns in each segment are added up, and each fold solves its system (features, features);
- by columns: one system (features, features) for all folds. With H the matrix that maps targets to fitted values, rows
  F that are left out have the residuals (I - H_FF)^-1 e_F, e being those of the fit to all rows;
- by rows: one system (rows, rows) for all folds, the small one where features are as many as rows or more: there it
  takes no more time than the others. With P the inverse of the products of rows plus alpha I, less what the intercept
  takes of it, they are (P_FF)^-1 (P t)_F;
- by rows apart: each of few folds solves its system (rows to train on, rows to train on).

Rows are weighted by the roots r of their weights. No way is trusted where its pivots say that digits were lost: the
next is tried, and in the end there is no score.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from .jit import njit_cached, njit_inline
from .ridge_ways import from_columns, from_folds, from_rows, from_rows_apart, row_products
from .vectors import LANES

MOST_SEGMENTS = 16  # whose sums are kept
ONE_SYSTEM = 1.2  # times the n^3 of n rows: where systems of their own take more, all folds come from one
FACTORING = 1.0  # a factor of n rows takes n^3 / 6 multiplications, each six times as long as in a product of matrices
ADDING = 20.0  # times as long as those, adding up what others than a fold have: measured
FEW_ROWS = 1000  # for which the way by rows is tried where another has lost digits
FOLDS, COLUMNS, ROWS, APART = range(4)  # the ways


class Problem(NamedTuple):
    """Rows, segments of which start and end at borders; in_order: whether rows are 0, 1, 2, ...

    ``first`` is 0 where every segment is left out in turn, or 1: all but the first.
    """

    rows: Any
    borders: Any
    first: int
    in_order: bool

    @property
    def n_tested(self):
        return int(self.borders[-1] - self.borders[self.first])


class Fit(NamedTuple):
    """What is fitted to all rows: targets (outputs, rows), roots of weights, and the penalty."""

    targets: Any
    roots: Any
    alpha: Any


class Probe(NamedTuple):
    """A probe in a problem: lines of all features, those chosen, and which fill stands in for their gaps."""

    lines: Any
    chosen: Any
    gaps: Any
    fill: Any
    problem: Any


class Room(NamedTuple):
    """Work space for the largest probe and a problem, as lines of numbers."""

    values: Any
    square: Any


def decide(lines, indices, offsets, gaps, fills, problems, fit, decisions):
    """Fill decisions (probes, tested rows, outputs) in the ways that take the fewest operations; which are sure?

    lines (features, rows) are columns about a value in their middle. gaps[i], where there are any, says which fill of
    fills[p] stands in for NaN in the feature at place i of indices, in problem p.
    """
    sizes, start = np.diff(offsets), 0
    are_sure, no_fill = np.ones(len(sizes), np.bool_), np.empty(0)
    for number, problem in enumerate(problems):
        fill = fills[number] if len(gaps) else no_fill
        todo = (lines, indices, offsets, gaps, fill), problem, fit, start, decisions
        way, sure_here = _fastest(sizes, problem), np.ones(len(sizes), np.bool_)
        for kind, decide_so in ((FOLDS, by_folds), (COLUMNS, by_columns), (ROWS, by_rows), (APART, by_rows_apart)):
            some = np.flatnonzero(way == kind)
            if len(some):
                decide_so(*todo, _room(sizes[some], problem, len(fit.targets)), some, sure_here)
        lost = np.flatnonzero(~sure_here & (way < ROWS))
        if len(lost) and len(problem.rows) <= FEW_ROWS:
            sure_here[lost] = True
            decide_so = by_rows_apart if _is_apart_faster(problem) else by_rows
            decide_so(*todo, _room(sizes[lost], problem, len(fit.targets)), lost, sure_here)
        are_sure &= sure_here
        start += problem.n_tested
    return are_sure


def _fastest(sizes, problem):
    """The way that takes the fewest operations, for each size of a probe."""
    n, d, tested = len(problem.rows), sizes.astype(np.float64), np.diff(problem.borders)[problem.first :]
    by_folds = FACTORING * len(tested) * d**3 + ADDING * len(tested) * (len(problem.borders) - 2) * d * d
    own = tested[tested > 1].astype(np.float64)
    by_columns = FACTORING * d**3 + n * d * d + (own**2).sum() * d + FACTORING * (own**3).sum()
    few = len(problem.borders) - 1 <= MOST_SEGMENTS
    n_rows, by_rows = (n - tested.min(), APART) if _is_apart_faster(problem) else (n, ROWS)
    return np.where(sizes >= n_rows, by_rows, np.where((by_folds < by_columns) & few, FOLDS, COLUMNS))


def _is_apart_faster(problem):
    """Whether systems of all rows but a segment, together, take less time than one of all rows."""
    n_left = len(problem.rows) - np.diff(problem.borders)[problem.first :].astype(np.float64)
    return (n_left**3).sum() < ONE_SYSTEM * len(problem.rows) ** 3


def _room(sizes, problem, n_targets):
    widest, n = int(sizes.max()), len(problem.rows)
    side, segments = min(widest, n), min(len(problem.borders) - 1, MOST_SEGMENTS)
    return Room(np.empty(widest * (n + LANES)), np.empty(segments * side * (side + n_targets)))


@njit_inline
def _asked(probes, problem, number):
    lines, indices, offsets, gaps, fill = probes
    own = slice(offsets[number], offsets[number + 1])
    return Probe(lines, indices[own], gaps[own] if len(gaps) else gaps, fill, problem)


@njit_cached
def by_folds(probes, problem, fit, start, decisions, room, which, are_sure):
    for number in which:
        probe = _asked(probes, problem, number)
        are_sure[number] &= from_folds(probe, fit, room, decisions[number, start:])


@njit_cached
def by_columns(probes, problem, fit, start, decisions, room, which, are_sure):
    for number in which:
        probe = _asked(probes, problem, number)
        are_sure[number] &= from_columns(probe, fit, room, decisions[number, start:])


@njit_cached
def by_rows(probes, problem, fit, start, decisions, room, which, are_sure):
    products = np.empty((len(problem.rows), len(problem.rows)))
    for number in which:
        row_products(_asked(probes, problem, number), fit.roots, room, products)
        are_sure[number] &= from_rows(products, problem, fit, decisions[number, start:])


@njit_cached
def by_rows_apart(probes, problem, fit, start, decisions, room, which, are_sure):
    products = np.empty((len(problem.rows), len(problem.rows)))
    for number in which:
        row_products(_asked(probes, problem, number), fit.roots, room, products)
        are_sure[number] &= from_rows_apart(products, problem, fit, decisions[number, start:])


@njit_cached
def by_rows_plus_each(lines, subset, candidates, problem, fit, decisions, are_sure):
    """The decisions of a probe with each candidate added, from products of rows, which only gain a term."""
    n = len(problem.rows)
    room = Room(np.empty(len(subset) * (n + LANES)), np.empty(0))
    products, own = np.empty((n, n)), np.empty((n, n))
    row_products(Probe(lines, subset, np.empty(0, np.int64), np.empty(0), problem), fit.roots, room, products)
    for candidate in range(len(candidates)):
        line = lines[candidates[candidate]] * fit.roots
        for i in range(n):
            for j in range(n):
                own[i, j] = products[i, j] + line[i] * line[j]
        are_sure[candidate] = from_rows(own, problem, fit, decisions[candidate])


def decisions_exactly(train, targets, roots, alpha, test):
    """Decisions (rows, outputs) for test rows, from targets (outputs, rows) of those to train on.

    No product of columns is made: the penalty joins them as rows or columns of their own, and a QR factorisation keeps
    the digits of columns of any size beside each other, the more so as long rows come first (A. J. Cox, N. J. Higham,
    *Stability of Householder QR factorization for weighted least squares problems*, 1998).
    """
    shares = roots**2 / (roots @ roots)
    mean, level = shares @ train, targets @ shares
    apart, sides = (train - mean) * roots[:, None], ((targets.T - level) * roots[:, None])
    n, d = apart.shape
    unit = np.ones(n) if d > n else np.exp2(-np.round(np.log2(np.sqrt((apart * apart).sum(axis=0) + alpha))))
    table = np.vstack([apart.T if d > n else apart * unit, np.diag(math.sqrt(alpha) * unit)])
    order = np.argsort(-np.abs(table).max(axis=1), kind="stable")
    Q, R, pivots = scipy.linalg.qr(table[order], mode="economic", pivoting=True)
    weights = np.empty((max(d, n + d if d > n else 0), len(targets)))
    if d > n:
        weights[order] = Q @ scipy.linalg.solve_triangular(R, sides[pivots], trans="T")
    else:
        sides = np.vstack([sides, np.zeros((d, len(targets)))])
        weights[pivots] = scipy.linalg.solve_triangular(R, Q.T @ sides[order])
        weights *= unit[:, None]
    return level + (test - mean) @ weights[:d]
