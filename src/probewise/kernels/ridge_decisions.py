"""Ridge regression with a free intercept: what it says of rows that are left out of the fit, one by one or by folds.

Rows come in problems. The folds of a partition are one: each segment of its rows is left out in turn. Any other split
is a problem by itself, of which the last segment is left out. There are three ways to the same decisions:

- by folds: products of columns in each segment are added up, and each fold solves its system (features, features);
- by columns: one system (features, features) for all folds. With H the matrix that maps targets to fitted values, rows
  F that are left out have the residuals (I - H_FF)^-1 e_F, e being those of the fit to all rows;
- by rows: one system (rows, rows) for all folds, the small one where features are as many as rows or more: there it
  takes no more time than the others. With P the inverse of the products of rows plus alpha I, less what the intercept
  takes of it, they are (P_FF)^-1 (P t)_F.

Rows are weighted by the roots r of their weights. No way is trusted where its pivots say that digits were lost: the
next is tried, and in the end there is no score.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from .factor import LEAST_PIVOT, dot, factor, ridge_weights, scaled_factor, solve
from .jit import part

ROWS_OF_FACTOR = 16  # solved one by one; what they take from those before is one product of matrices
STRIPS = 3  # of rows, whose products with each other are made apart: half of them by symmetry
MOST_SEGMENTS = 16  # whose sums are kept
FACTORING = 1.0  # a factor of n rows takes n^3 / 6 multiplications, each six times as long as in a product of matrices
FEW_ROWS = 1000  # for which the way by rows is tried where another has lost digits


class Problems(NamedTuple):
    """Segments of problem p start at borders[starts[p]:starts[p + 1] - 1], and the last of them ends at the next.

    Borders are places in rows. ``first`` is 0 where every segment is left out in turn, or 1: all but the first.
    ``in_order``: whether rows are 0, 1, 2, ...
    """

    rows: Any
    borders: Any
    starts: Any
    first: Any
    in_order: Any


class Fit(NamedTuple):
    """What is fitted to all rows: targets (outputs, rows), roots of weights, and the penalty."""

    targets: Any
    roots: Any
    alpha: Any


class Probe(NamedTuple):
    """A probe in a problem: lines of all features, those chosen, which fill stands in for their gaps, and the rows."""

    lines: Any
    chosen: Any
    gaps: Any
    fill: Any
    rows: Any
    borders: Any
    first: Any
    in_order: Any


class Room(NamedTuple):
    """Work space for the largest probe and problem, as lines of numbers."""

    values: Any
    square: Any


@part
def room_for(offsets, problems, n_targets):
    widest, longest, most = 1, 1, 1
    for probe in range(len(offsets) - 1):
        widest = max(widest, offsets[probe + 1] - offsets[probe])
    for p in range(len(problems.starts) - 1):
        first, last = problems.starts[p], problems.starts[p + 1] - 1
        longest = max(longest, problems.borders[last] - problems.borders[first])
        most = max(most, last - first)
    side = min(widest, longest)
    square = min(most, MOST_SEGMENTS) * side * (side + n_targets)
    return Room(np.empty(widest * longest), np.empty(max(square, longest * longest if widest >= longest else 0)))


@part
def decide(probe, fit, room, decisions):
    """The decisions for the rows left out of a problem, in the way that takes the fewest operations; are they sure?"""
    n, d, segments = probe.borders[-1] - probe.borders[0], len(probe.chosen), len(probe.borders) - 1
    if d < n:
        by_folds = FACTORING * (segments - probe.first) * float(d) ** 3
        by_columns = FACTORING * float(d) ** 3 + float(n) * d * d
        for s in range(probe.first, segments):
            m = float(probe.borders[s + 1] - probe.borders[s])
            by_columns += m * m * d + FACTORING * m**3 if m > 1.0 else 0.0
        if by_folds < by_columns and segments <= MOST_SEGMENTS:
            is_sure = _by_folds(probe, fit, room, decisions)
        else:
            is_sure = _by_columns(probe, fit, room, decisions)
        if is_sure or n > FEW_ROWS:
            return is_sure
    return _by_rows(probe, fit, room, decisions)


@part
def _gather(probe, begin, end, roots, values):
    """Rows begin, ..., end - 1 of the problem's rows as columns of values, times their roots."""
    rows = probe.rows[begin:end]
    for f in range(len(probe.chosen)):
        line, to = probe.lines[probe.chosen[f]], values[f]
        if probe.in_order:
            for i in range(end - begin):
                to[i] = line[begin + i] * roots[begin + i]
        else:
            for i in range(end - begin):
                to[i] = line[rows[i]] * roots[rows[i]]
        if len(probe.gaps) and probe.gaps[f] >= 0:
            for i in range(end - begin):
                if np.isnan(to[i]):
                    to[i] = probe.fill[probe.gaps[f]] * roots[rows[i]]


@part
def _solve_lower(L, values):
    """values (n, m) become L^-1 values, some rows at a time."""
    n = len(L)
    for first in range(0, n, ROWS_OF_FACTOR):
        last = min(n, first + ROWS_OF_FACTOR)
        if first:
            values[first:last] -= np.dot(L[first:last, :first].copy(), values[:first])
        for i in range(first, last):
            line = values[i]
            for j in range(first, i):
                share, other = L[i, j], values[j]
                for k in range(len(line)):
                    line[k] -= share * other[k]
            share = 1.0 / L[i, i]
            for k in range(len(line)):
                line[k] *= share


@part
def _by_folds(probe, fit, room, decisions):
    """Of every segment products of columns, and with targets, about its means; then of all but the one left out."""
    rows, borders = probe.rows, probe.borders
    d, k, n_segments = len(probe.chosen), len(fit.targets), len(borders) - 1
    scatters = room.square[: n_segments * d * (d + k)].reshape(n_segments, d, d + k)
    means, sizes = np.empty((n_segments, d + k)), np.empty(n_segments)
    for s in range(n_segments):
        values = _segment(probe, s, room)
        _gather(probe, borders[s], borders[s + 1], fit.roots, values)
        roots, sides = _sides(fit, rows[borders[s] : borders[s + 1]])
        sizes[s] = dot(roots, roots)
        for f in range(d):
            means[s, f] = _take_off_mean(values[f], roots, sizes[s])
        for c in range(k):
            means[s, d + c] = _take_off_mean(sides[c], roots, sizes[s])
        scatters[s, :, :d] = np.dot(values, values.T)
        scatters[s, :, d:] = np.dot(values, sides.T)
    scatter, weights, mean = np.empty((d, d)), np.empty((k, d)), np.empty(d + k)
    for s in range(probe.first, n_segments):
        _all_others(scatters, means, sizes, s, scatter, weights, mean)
        if not ridge_weights(scatter, fit.alpha, weights):
            return False
        found = np.dot(weights, _segment(probe, s, room))
        for c in range(k):
            level = mean[d + c]
            for f in range(d):
                level += (means[s, f] - mean[f]) * weights[c, f]
            for i in range(borders[s], borders[s + 1]):
                decisions[i - borders[probe.first], c] = level + found[c, i - borders[s]] / fit.roots[rows[i]]
    return True


@part
def _segment(probe, s, room):
    """Where the values of a segment's rows are kept (features, rows)."""
    d, begin, end = len(probe.chosen), probe.borders[s] - probe.borders[0], probe.borders[s + 1] - probe.borders[0]
    return room.values[begin * d : end * d].reshape(d, end - begin)


@part
def _sides(fit, rows):
    """Roots of rows, and their weighted targets (outputs, rows)."""
    roots, sides = np.empty(len(rows)), np.empty((len(fit.targets), len(rows)))
    for i in range(len(rows)):
        roots[i] = fit.roots[rows[i]]
        for c in range(len(sides)):
            sides[c, i] = roots[i] * fit.targets[c, rows[i]]
    return roots, sides


@part
def _all_others(scatters, means, sizes, s, scatter, weights, mean):
    """All segments but s together: scatter, products with targets (into weights), and means of columns and targets.

    Scatters about means of their own add up, with that of these means: nothing is taken off again, so nothing is lost.
    """
    d, total = len(scatter), 0.0
    mean[:] = 0.0
    for other in range(len(sizes)):
        total += sizes[other] if other != s else 0.0
    for other in range(len(sizes)):
        if other != s:
            mean += sizes[other] / total * means[other]
    scatter[:] = 0.0
    weights[:] = 0.0
    for other in range(len(sizes)):
        if other != s:
            away = means[other] - mean
            for f in range(d):
                share, line, to = sizes[other] * away[f], scatters[other, f], scatter[f]
                for j in range(d):
                    to[j] += line[j] + share * away[j]
                for c in range(len(weights)):
                    weights[c, f] += line[d + c] + share * away[d + c]


@part
def _by_columns(probe, fit, room, decisions):
    rows, borders, first = probe.rows, probe.borders, probe.first
    n, d, k = borders[-1] - borders[0], len(probe.chosen), len(fit.targets)
    values = room.values[: n * d].reshape(d, n)
    _gather(probe, borders[0], borders[-1], fit.roots, values)
    roots, residuals = _sides(fit, rows[borders[0] : borders[-1]])
    total = dot(roots, roots)
    for f in range(d):
        _take_off_mean(values[f], roots, total)
    for c in range(k):
        _take_off_mean(residuals[c], roots, total)
    gram = np.dot(values, values.T)
    scale = np.empty(d)
    L, least = scaled_factor(gram, fit.alpha, scale)
    if not least >= LEAST_PIVOT:
        return False
    for f in range(d):
        values[f] *= scale[f]
    _solve_lower(L, values)
    by_row = np.ascontiguousarray(values.T)
    residuals -= np.dot(np.dot(residuals, by_row), values)
    for s in range(first, len(borders) - 1):
        begin, end = borders[s] - borders[0], borders[s + 1] - borders[0]
        own = by_row[begin:end]
        rest = _products(own)
        for i in range(end - begin):
            share, line = roots[begin + i] / total, rest[i]
            for j in range(end - begin):
                line[j] = -line[j] - share * roots[begin + j]
            line[i] += 1.0
        if not _left_out(rest, residuals, begin, end):
            return False
    _set_decisions(residuals, rows, borders, first, fit, decisions)
    return True


@part
def _take_off_mean(line, roots, total):
    """Take off a line of weighted numbers what the intercept would take: their mean, which is given back."""
    mean = dot(line, roots) / total
    for i in range(len(line)):
        line[i] -= mean * roots[i]
    return mean


@part
def _products(values):
    return np.dot(values, values.T) if len(values) > 1 else np.full((1, 1), dot(values[0], values[0]))


@part
def _left_out(rest, residuals, begin, end):
    """residuals[:, begin:end] become rest^-1 times themselves; is every pivot large enough?"""
    if end - begin == 1:
        for c in range(len(residuals)):
            residuals[c, begin] /= rest[0, 0]
        return rest[0, 0] >= LEAST_PIVOT
    L, least = factor(rest)
    if not least >= LEAST_PIVOT:
        return False
    own = residuals[:, begin:end].copy()
    solve(L, own)
    residuals[:, begin:end] = own
    return True


@part
def _set_decisions(residuals, rows, borders, first, fit, decisions):
    for i in range(borders[first], borders[-1]):
        row = rows[i]
        for c in range(len(residuals)):
            residual = residuals[c, i - borders[0]] / fit.roots[row]
            decisions[i - borders[first], c] = fit.targets[c, row] - residual


@part
def _by_rows(probe, fit, room, decisions):
    n = probe.borders[-1] - probe.borders[0]
    products = room.square[: n * n].reshape(n, n) if n * n <= len(room.square) else np.empty((n, n))
    row_products(probe, fit.roots, room, products)
    return from_products(products, probe.rows, probe.borders, probe.first, fit, decisions)


@part
def row_products(probe, roots, room, products):
    """Products of all pairs of a problem's weighted rows; strips of rows are gathered apart."""
    begin, d, n = probe.borders[0], len(probe.chosen), len(products)
    step = (n + STRIPS - 1) // STRIPS
    for a in range(0, n, step):
        a_stop = min(n, a + step)
        left = room.values[a * d : a_stop * d].reshape(d, a_stop - a)
        _gather(probe, begin + a, begin + a_stop, roots, left)
        for b in range(0, a_stop, step):
            b_stop = min(n, b + step)
            right = room.values[b * d : b_stop * d].reshape(d, b_stop - b)
            found = np.dot(left.T, right)
            for i in range(a, a_stop):
                for j in range(b, b_stop):
                    products[i, j] = found[i - a, j - b]
    for i in range(n):
        for j in range(i):
            products[j, i] = products[i, j]


@part
def from_products(products, rows, borders, first, fit, decisions):
    """The decisions from products of weighted rows, which are overwritten.

    An intercept makes it all the same what is added along the roots: a row's usual size, for then nothing is lost
    where it is taken off again. One of the smaller sizes is usual, so that a row far from all others is none.
    """
    n, k = len(products), len(fit.targets)
    roots, outputs = _sides(fit, rows[borders[0] : borders[-1]])
    sides, inverse_sizes = np.empty((k + 1, n)), 0.0
    for i in range(n):
        inverse_sizes += 1.0 / (products[i, i] / (roots[i] * roots[i]) + fit.alpha)
    for i in range(n):
        share, line = roots[i] / inverse_sizes, products[i]
        for j in range(n):
            line[j] += share * roots[j]
    scale, unit = np.empty(n), np.ones(n)
    L, least = scaled_factor(products, fit.alpha, scale)
    if not least >= LEAST_PIVOT:
        return False
    for c in range(k):
        sides[c] = scale * outputs[c]
    sides[k] = scale * roots
    inverse = np.zeros((n, n))
    for i in range(n):
        inverse[i, i] = 1.0
    _solve_lower(L, inverse)
    by_row = np.ascontiguousarray(inverse.T)
    solved = np.dot(np.dot(sides, by_row), inverse)
    level = dot(solved[k], sides[k])
    for c in range(k):
        share = dot(solved[k], sides[c]) / level
        for i in range(n):
            solved[c, i] -= share * solved[k, i]
    for s in range(first, len(borders) - 1):
        begin, end = borders[s] - borders[0], borders[s + 1] - borders[0]
        own = by_row[begin:end]
        rest = _products(own)
        for i in range(begin, end):
            unit[i] = 1.0 / math.sqrt(rest[i - begin, i - begin])
        for i in range(begin, end):
            share, line = solved[k, i] / level, rest[i - begin]
            for j in range(begin, end):
                line[j - begin] = (line[j - begin] - share * solved[k, j]) * unit[i] * unit[j]
        for c in range(k):
            for i in range(begin, end):
                solved[c, i] *= unit[i]
        if not _left_out(rest, solved[:k], begin, end):
            return False
    for c in range(k):
        for i in range(n):
            solved[c, i] *= unit[i] / scale[i]
    _set_decisions(solved[:k], rows, borders, first, fit, decisions)
    return True


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
