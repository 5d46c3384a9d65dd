"""Ridge regression with a free intercept: decisions for rows that are left out of the fit, one by one or by folds.

Rows come in problems. The folds of a partition are one problem, and each segment of its rows is left out in turn. Any
other split is a problem of its own, whose last segment is left out. There are four ways to the same decisions:

- by sums, if folds are few and large: products of columns are summed within segments, and each fold solves the system
  (features, features) of the other segments (here, and in `ridge_sums` for tall and for sparse tables);
- by columns, with fewer features than rows: one system (features, features) for all folds. If H is the matrix that maps
  targets to fitted values and e are the residuals of the fit to all rows, the rows F that are left out have the
  residuals (I - H_FF)^-1 e_F;
- by rows, with as many features as rows to train on or more: one system (rows, rows). If P is the inverse of the
  products of rows plus alpha I, minus the part of the intercept, the residuals are (P_FF)^-1 (P t)_F. For few folds
  each solves a system of its training rows instead, which takes less time;
- by QR factorization, where the pivots of the others show that too many digits were lost.

Rows are weighted by the roots of their weights.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from .factor import LEAST_PIVOT, dot, factor, inverse, ridge_weights, scaled_factor, solve, solve_lower, subtract
from .jit import longest, njit_cached, njit_helper, njit_inline
from .products import ROWS as ROWS_OF_PRODUCTS
from .products import tile_products
from .ridge_sums import centered, other_segments
from .vectors import LANES

MOST_SEGMENTS = 16  # with sums of their own
ADDING = 20.0  # time to add a number to the sums of other segments, in units of a multiplication inside a product
ABREAST = 16  # features that are read together, so that their cache misses overlap


class Problem(NamedTuple):
    """Rows, and the borders of their segments. All segments from number ``first`` on are left out in turn.

    ``in_order``: whether rows are 0, 1, 2, ...
    """

    rows: Any
    borders: Any
    first: int
    in_order: bool

    @property
    def n_tested(self):
        return int(self.borders[-1] - self.borders[self.first])


class Fit(NamedTuple):
    """The fit to all rows: targets (outputs, rows), roots of the weights, and the penalty."""

    targets: Any
    roots: Any
    alpha: Any


def decide(XT, indices, offsets, problems, fit, decisions):
    """Fill decisions (probes, tested rows, outputs) in the fastest way; return which probes have enough digits left.

    XT (features, rows) has columns of X minus a value near their center.
    """
    sizes, start, are_sure = np.diff(offsets), 0, np.ones(len(offsets) - 1, np.bool_)
    for problem in problems:
        way = _fastest(sizes, problem)
        for name in np.unique(way).tolist():
            which = np.flatnonzero(way == name)
            WAYS[name](XT, indices, offsets, problem, fit, start, decisions, which, are_sure)
        start += problem.n_tested
    return are_sure


def _fastest(sizes, problem):
    """The name of the way with the fewest operations for each size of a probe."""
    n, d, tested = len(problem.rows), sizes.astype(np.float64), np.diff(problem.borders)[problem.first :]
    left = (n - tested).astype(np.float64)
    are_apart = (left**3).sum() < 1.2 * n**3  # systems of their own take less time than one with its inverse
    n_segments, own = len(problem.borders) - 1, tested[tested > 1].astype(np.float64)
    by_sums = len(tested) * d**3 + ADDING * len(tested) * (n_segments - 1) * d * d
    by_columns = d**3 + n * d * d + (own**2).sum() * d + (own**3).sum()
    is_by_sums = (by_sums < by_columns) & (n_segments <= MOST_SEGMENTS)
    by_rows = sizes >= (left.min() if are_apart else n)
    return np.where(by_rows, "folds of rows" if are_apart else "rows", np.where(is_by_sums, "sums", "columns"))


@njit_helper
def _gather(XT, features, problem, borders, roots, values):
    """The columns of a probe, times the roots of the weights: for each segment a matrix (features, rows) in values."""
    rows, d = problem.rows, len(features)
    for group in range(0, d, ABREAST):
        for s in range(len(borders) - 1):
            begin, m = borders[s], borders[s + 1] - borders[s]
            own_rows, own_roots = rows[begin : begin + m], roots[begin : begin + m]
            for first in range(0, m, LANES):
                last = min(first + LANES, m)
                for f in range(group, min(d, group + ABREAST)):
                    line, to = XT[features[f]], values[begin * d + f * m :]
                    if problem.in_order:
                        line = line[begin:]
                        for i in range(first, last):
                            to[i] = line[i] * own_roots[i]
                    else:
                        for i in range(first, last):
                            to[i] = line[own_rows[i]] * roots[own_rows[i]]


@njit_helper
def _sides(fit, rows):
    """Roots of rows, and their weighted targets (outputs, rows)."""
    roots, sides = np.empty(len(rows)), np.empty((len(fit.targets), len(rows)))
    for i in range(len(rows)):
        roots[i] = fit.roots[rows[i]]
        for c in range(len(sides)):
            sides[c, i] = roots[i] * fit.targets[c, rows[i]]
    return roots, sides


@njit_cached
def by_sums(XT, indices, offsets, problem, fit, start, decisions, which, are_sure):
    rows, borders, first = problem.rows, problem.borders, problem.first
    k, n_segments, largest = len(fit.targets), len(borders) - 1, longest(offsets)
    room, sizes = np.empty(len(rows) * largest), np.empty(n_segments)
    all_scatters = np.empty(n_segments * largest * (largest + k))
    for number in which:
        features = indices[offsets[number] : offsets[number + 1]]
        d = len(features)
        means, scatters = np.empty((n_segments, d + k)), all_scatters[: n_segments * d * (d + k)]
        scatters = scatters.reshape(n_segments, d, d + k)
        _gather(XT, features, problem, borders, fit.roots, room)
        for s in range(n_segments):
            begin, end = borders[s], borders[s + 1]
            values = room[begin * d : end * d].reshape(d, end - begin)
            roots, sides = _sides(fit, rows[begin:end])
            sizes[s] = dot(roots, roots)
            centered(values, roots, sizes[s], means[s, :d])
            centered(sides, roots, sizes[s], means[s, d:])
            scatters[s, :, :d] = np.dot(values, values.T)
            scatters[s, :, d:] = np.dot(values, sides.T)
        scatter, weights, mean = np.empty((d, d)), np.empty((k, d)), np.empty(d + k)
        for s in range(first, n_segments):
            begin, end = borders[s], borders[s + 1]
            other_segments(scatters, means, sizes, s, scatter, weights, mean)
            are_sure[number] &= ridge_weights(scatter, fit.alpha, weights)
            values = np.dot(weights, room[begin * d : end * d].reshape(d, end - begin))
            for c in range(k):
                level = mean[d + c] + dot(weights[c], means[s, :d]) - dot(weights[c], mean[:d])
                for i in range(begin, end):
                    place = start + i - borders[first]
                    decisions[number, place, c] = level + values[c, i - begin] / fit.roots[rows[i]]


@njit_cached
def by_columns(XT, indices, offsets, problem, fit, start, decisions, which, are_sure):
    n = len(problem.rows)
    room, whole = np.empty(longest(offsets) * n), np.array([0, n])
    for number in which:
        features = indices[offsets[number] : offsets[number + 1]]
        _gather(XT, features, problem, whole, fit.roots, room)
        values = room[: len(features) * n].reshape(len(features), n)
        are_sure[number] &= _from_columns(values, problem, fit, decisions[number, start:])


@njit_inline
def _from_columns(values, problem, fit, decisions):
    """Decisions from the weighted columns, which are overwritten. False if too few digits are left."""
    d, n = values.shape
    roots, residuals = _sides(fit, problem.rows)
    total, scale = dot(roots, roots), np.empty(d)
    centered(values, roots, total, np.empty(d))
    centered(residuals, roots, total, np.empty(len(residuals)))
    L, least = scaled_factor(np.dot(values, values.T), fit.alpha, scale)
    if not least >= LEAST_PIVOT:
        return False
    for f in range(d):
        for i in range(n):
            values[f, i] *= scale[f]
    solve_lower(L, values)
    by_row = values.T.copy()
    subtract(residuals, np.dot(np.dot(residuals, by_row), values))
    for s in range(problem.first, len(problem.borders) - 1):
        begin, end = problem.borders[s], problem.borders[s + 1]
        own = by_row[begin:end]
        if end - begin == 1:
            left = 1.0 - dot(own[0], own[0]) - roots[begin] * roots[begin] / total
            if not left >= LEAST_PIVOT:
                return False
            for c in range(len(residuals)):
                residuals[c, begin] /= left
            continue
        rest = np.dot(own, own.T)
        for i in range(end - begin):
            share, line = roots[begin + i] / total, rest[i]
            for j in range(end - begin):
                line[j] = -line[j] - share * roots[begin + j]
            line[i] += 1.0
        if not _leave_out(rest, residuals, begin, end):
            return False
    _set_decisions(residuals, problem, fit, decisions)
    return True


@njit_helper
def _leave_out(rest, residuals, begin, end):
    """residuals[:, begin:end] become rest^-1 times themselves. False if a pivot is too small."""
    L, least = factor(rest)
    if not least >= LEAST_PIVOT:
        return False
    own = residuals[:, begin:end].copy()
    solve(L, own)
    for c in range(len(residuals)):
        for i in range(begin, end):
            residuals[c, i] = own[c, i - begin]
    return True


@njit_helper
def _set_decisions(residuals, problem, fit, decisions):
    begin = problem.borders[problem.first]
    for i in range(begin, len(problem.rows)):
        row = problem.rows[i]
        for c in range(len(residuals)):
            decisions[i - begin, c] = fit.targets[c, row] - residuals[c, i] / fit.roots[row]


@njit_cached
def by_rows(XT, indices, offsets, problem, fit, start, decisions, which, are_sure):
    products = np.empty((len(problem.rows), len(problem.rows)))
    values = np.empty(longest(offsets) * (len(problem.rows) + LANES))
    for number in which:
        _row_products(XT, indices[offsets[number] : offsets[number + 1]], problem, fit, values, products)
        are_sure[number] &= _from_rows(products, problem, fit, decisions[number, start:])


@njit_cached
def by_folds_of_rows(XT, indices, offsets, problem, fit, start, decisions, which, are_sure):
    products = np.empty((len(problem.rows), len(problem.rows)))
    values = np.empty(longest(offsets) * (len(problem.rows) + LANES))
    for number in which:
        _row_products(XT, indices[offsets[number] : offsets[number + 1]], problem, fit, values, products)
        for s in range(problem.first, len(problem.borders) - 1):
            are_sure[number] &= _from_training_rows(products, problem, s, fit, decisions[number, start:])


@njit_helper
def _row_products(XT, features, problem, fit, values, products):
    """Products of all pairs of weighted rows, plus c r r^T, where r are the roots of the weights.

    The intercept makes the fit independent of c. It is chosen as the size of a usual row, against cancellation when
    the intercept is eliminated; the harmonic mean of the sizes is not affected by a row far from all others.
    """
    d, n, rows = len(features), len(products), problem.rows
    found, places = np.empty((n + ROWS_OF_PRODUCTS) * LANES), np.zeros(n + ROWS_OF_PRODUCTS, np.int64)
    for i in range(n):
        places[i] = i // LANES * LANES * d + i % LANES
    for group in range(0, d, ABREAST):  # panels (features, LANES rows), so that the products read memory in order
        for first in range(0, n, LANES):
            last = min(LANES, n - first)
            for f in range(group, min(d, group + ABREAST)):
                line, to = XT[features[f]], values[first * d + f * LANES :]
                if problem.in_order and last == LANES:
                    for i in range(LANES):
                        to[i] = line[first + i] * fit.roots[first + i]
                else:
                    for i in range(last):
                        to[i] = line[rows[first + i]] * fit.roots[rows[first + i]]
    for first in range(0, n, LANES):
        tile_products(values, d, LANES, places, (first, n, first * d, LANES), found)
        for i in range(first, n):
            for j in range(first, min(i + 1, first + LANES)):
                products[i, j] = products[j, i] = found[(i - first) * LANES + j - first]
    inverse_sizes = 0.0
    for i in range(n):
        inverse_sizes += 1.0 / (products[i, i] / fit.roots[rows[i]] ** 2 + fit.alpha)
    for i in range(n):
        share, line = fit.roots[rows[i]] / inverse_sizes, products[i]
        for j in range(n):
            line[j] += share * fit.roots[rows[j]]


@njit_helper
def _from_training_rows(products, problem, s, fit, decisions):
    """Decisions for segment s from the system of all other rows. False if too few digits are left."""
    begin, end, k = problem.borders[s], problem.borders[s + 1], len(fit.targets)
    m, offset = len(products) - end + begin, problem.borders[problem.first]
    roots, outputs = _sides(fit, problem.rows)
    system, sides, weights = np.empty((m, m)), np.empty((k + 1, m)), np.zeros((k, len(products)))
    for i in range(m):
        row = i if i < begin else i + end - begin
        line, to = products[row], system[i]
        for j in range(begin):
            to[j] = line[j]
        for j in range(begin, m):
            to[j] = line[j + end - begin]
        for c in range(k):
            sides[c, i] = outputs[c, row]
        sides[k, i] = roots[row]
    if not ridge_weights(system, fit.alpha, sides):
        return False
    level = dot(sides[k, :begin], roots[:begin]) + dot(sides[k, begin:], roots[end:])
    for c in range(k):
        share = (dot(sides[k, :begin], outputs[c, :begin]) + dot(sides[k, begin:], outputs[c, end:])) / level
        for i in range(m):
            weights[c, i if i < begin else i + end - begin] = sides[c, i] - share * sides[k, i]
        for i in range(begin, end):
            decisions[i - offset, c] = share
    values = np.dot(weights, products[begin:end].T)
    for i in range(begin, end):
        for c in range(k):
            decisions[i - offset, c] += values[c, i - begin] / roots[i]
    return True


@njit_inline
def _from_rows(products, problem, fit, decisions):
    """Decisions from the products of weighted rows, which are overwritten. False if too few digits are left."""
    n, k = len(products), len(fit.targets)
    roots, outputs = _sides(fit, problem.rows)
    sides, scale, unit = np.empty((k + 1, n)), np.empty(n), np.ones(n)
    L, least = scaled_factor(products, fit.alpha, scale)
    if not least >= LEAST_PIVOT:
        return False
    for i in range(n):
        for c in range(k):
            sides[c, i] = scale[i] * outputs[c, i]
        sides[k, i] = scale[i] * roots[i]
    by_column, by_row = inverse(L)
    solved = np.dot(np.dot(sides, by_row), by_column)
    level = dot(solved[k], sides[k])
    for c in range(k):
        share = dot(solved[k], sides[c]) / level
        for i in range(n):
            solved[c, i] -= share * solved[k, i]
    for s in range(problem.first, len(problem.borders) - 1):
        begin, end = problem.borders[s], problem.borders[s + 1]
        own = by_row[begin:end]
        if end - begin == 1:
            square = dot(own[0], own[0])
            left = 1.0 - solved[k, begin] * solved[k, begin] / (level * square)
            if not left >= LEAST_PIVOT:
                return False
            for c in range(k):
                solved[c, begin] /= left * square
            continue
        rest = np.dot(own, own.T)
        for i in range(begin, end):
            unit[i] = 1.0 / math.sqrt(rest[i - begin, i - begin])
        for i in range(begin, end):
            share, line = solved[k, i] / level, rest[i - begin]
            for j in range(begin, end):
                line[j - begin] = (line[j - begin] - share * solved[k, j]) * unit[i] * unit[j]
        for c in range(k):
            for i in range(begin, end):
                solved[c, i] *= unit[i]
        if not _leave_out(rest, solved[:k], begin, end):
            return False
    for c in range(k):
        for i in range(n):
            solved[c, i] *= unit[i] / scale[i]
    _set_decisions(solved[:k], problem, fit, decisions)
    return True


def by_qr(train, targets, roots, alpha, test):
    """Decisions (rows, outputs) for test rows, from targets (outputs, rows) of the rows to train on.

    No product of columns is computed: the penalty joins them as additional rows or columns, and a QR factorization
    keeps the digits of columns of any size beside each other, the more so if long rows come first (A. J. Cox and
    N. J. Higham, *Stability of Householder QR factorization for weighted least squares problems*, 1998).
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


WAYS = {"sums": by_sums, "columns": by_columns, "rows": by_rows, "folds of rows": by_folds_of_rows}
