"""The four ways of `ridge_decisions`, for one probe: from its columns in folds or at once, and from products of rows.

Each writes decisions (rows left out, outputs), and says whether every pivot left digits enough.
"""

import math

import numpy as np

from .factor import LEAST_PIVOT, dot, factor, ridge_weights, scaled_factor, solve
from .jit import njit_helper, njit_inline
from .products import ROWS as ROWS_OF_PRODUCTS
from .products import tile_products
from .vectors import LANES

ROWS_OF_FACTOR = 16  # solved one by one; what they take from those before is one product of matrices


@njit_helper
def _gather(probe, begin, end, roots, values):
    """Rows begin, ..., end - 1 of the problem's rows as columns of values, times their roots."""
    rows = probe.problem.rows[begin:end]
    for f in range(len(probe.chosen)):
        if f < len(probe.chosen):
            pass  # fetch(probe.lines, probe.chosen[f])
        line, to = probe.lines[probe.chosen[f]], values[f]
        if probe.problem.in_order:
            for i in range(end - begin):
                to[i] = line[begin + i] * roots[begin + i]
        else:
            for i in range(end - begin):
                to[i] = line[rows[i]] * roots[rows[i]]
        if len(probe.gaps) and probe.gaps[f] >= 0:
            for i in range(end - begin):
                if np.isnan(to[i]):
                    to[i] = probe.fill[probe.gaps[f]] * roots[rows[i]]


@njit_helper
def _gather_panels(probe, roots, values):
    """The same of all rows, in panels of LANES rows (features, rows); line by line, for each is read from afar once."""
    rows, d = probe.problem.rows, len(probe.chosen)
    for f in range(d):
        if f < d:
            pass  # fetch(probe.lines, probe.chosen[f])
        line = probe.lines[probe.chosen[f]]
        for first in range(0, len(rows), LANES):
            to, last = values[first * d + f * LANES :], min(LANES, len(rows) - first)
            if probe.problem.in_order and last == LANES:
                for i in range(LANES):
                    to[i] = line[first + i] * roots[first + i]
            else:
                for i in range(last):
                    to[i] = line[rows[first + i]] * roots[rows[first + i]]
            if len(probe.gaps) and probe.gaps[f] >= 0:
                for i in range(last):
                    if np.isnan(to[i]):
                        to[i] = probe.fill[probe.gaps[f]] * roots[rows[first + i]]


@njit_helper
def _take_off(values, others):
    """values -= others; numba's own way takes seconds to compile."""
    for i in range(len(values)):
        to, line = values[i], others[i]
        for k in range(len(to)):
            to[k] -= line[k]


@njit_helper
def _solve_lower(L, values):
    """values (n, m) become L^-1 values, some rows at a time."""
    n = len(L)
    for first in range(0, n, ROWS_OF_FACTOR):
        last = min(n, first + ROWS_OF_FACTOR)
        if first:
            _take_off(values[first:last], np.dot(L[first:last, :first].copy(), values[:first]))
        for i in range(first, last):
            line = values[i]
            for j in range(first, i):
                share, other = L[i, j], values[j]
                for k in range(len(line)):
                    line[k] -= share * other[k]
            share = 1.0 / L[i, i]
            for k in range(len(line)):
                line[k] *= share


@njit_helper
def from_folds(probe, fit, room, decisions):
    """Of every segment products of columns, and with targets, about its means; then of all but the one left out."""
    rows, borders, first = probe.problem.rows, probe.problem.borders, probe.problem.first
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
    for s in range(first, n_segments):
        _all_others(scatters, means, sizes, s, scatter, weights, mean)
        if not ridge_weights(scatter, fit.alpha, weights):
            return False
        found = np.dot(weights, _segment(probe, s, room))
        for c in range(k):
            level = mean[d + c]
            for f in range(d):
                level += (means[s, f] - mean[f]) * weights[c, f]
            for i in range(borders[s], borders[s + 1]):
                decisions[i - borders[first], c] = level + found[c, i - borders[s]] / fit.roots[rows[i]]
    return True


@njit_helper
def _segment(probe, s, room):
    """Where the values of a segment's rows are kept (features, rows)."""
    d, begin, end = len(probe.chosen), probe.problem.borders[s], probe.problem.borders[s + 1]
    return room.values[begin * d : end * d].reshape(d, end - begin)


@njit_helper
def _sides(fit, rows):
    """Roots of rows, and their weighted targets (outputs, rows)."""
    roots, sides = np.empty(len(rows)), np.empty((len(fit.targets), len(rows)))
    for i in range(len(rows)):
        roots[i] = fit.roots[rows[i]]
        for c in range(len(sides)):
            sides[c, i] = roots[i] * fit.targets[c, rows[i]]
    return roots, sides


@njit_helper
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


@njit_inline
def from_columns(probe, fit, room, decisions):
    rows, borders, first = probe.problem.rows, probe.problem.borders, probe.problem.first
    n, d, k = len(rows), len(probe.chosen), len(fit.targets)
    values = room.values[: n * d].reshape(d, n)
    _gather(probe, borders[0], n, fit.roots, values)
    roots, residuals = _sides(fit, rows)
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
        for i in range(n):
            values[f, i] *= scale[f]
    _solve_lower(L, values)
    by_row = values.T.copy()
    _take_off(residuals, np.dot(np.dot(residuals, by_row), values))
    for s in range(first, len(borders) - 1):
        begin, end = borders[s], borders[s + 1]
        if end - begin == 1:
            left = 1.0 - dot(by_row[begin], by_row[begin]) - roots[begin] * roots[begin] / total
            if not left >= LEAST_PIVOT:
                return False
            for c in range(k):
                residuals[c, begin] /= left
            continue
        own = by_row[begin:end]
        rest = np.dot(own, own.T)
        for i in range(end - begin):
            share, line = roots[begin + i] / total, rest[i]
            for j in range(end - begin):
                line[j] = -line[j] - share * roots[begin + j]
            line[i] += 1.0
        if not _left_out(rest, residuals, begin, end):
            return False
    _set_decisions(residuals, probe.problem, fit, decisions)
    return True


@njit_helper
def _take_off_mean(line, roots, total):
    """Take off a line of weighted numbers what the intercept would take: their mean, which is given back."""
    mean = dot(line, roots) / total
    for i in range(len(line)):
        line[i] -= mean * roots[i]
    return mean


@njit_helper
def _left_out(rest, residuals, begin, end):
    """residuals[:, begin:end] become rest^-1 times themselves; is every pivot large enough?"""
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


@njit_inline
def row_products(probe, roots, room, products):
    """Products of all pairs of a problem's weighted rows, from panels of LANES rows each."""
    d, n = len(probe.chosen), len(products)
    places, found = np.zeros(n + ROWS_OF_PRODUCTS, np.int64), np.empty((n + ROWS_OF_PRODUCTS) * LANES)
    for i in range(n):
        places[i] = i // LANES * LANES * d + i % LANES
    _gather_panels(probe, roots, room.values)
    for first in range(0, n, LANES):
        tile_products(room.values, d, LANES, places, (first, n, first * d, LANES), found)
        for i in range(first, n):
            for j in range(first, min(i + 1, first + LANES)):
                products[i, j] = products[j, i] = found[(i - first) * LANES + j - first]


@njit_helper
def _add_usual_size(products, roots, alpha):
    """An intercept makes it all the same what is added along the roots: a row's usual size, for then nothing is lost
    where it is taken off again. One of the smaller sizes is usual, so that a row far from all others is none."""
    inverse_sizes = 0.0
    for i in range(len(products)):
        inverse_sizes += 1.0 / (products[i, i] / (roots[i] * roots[i]) + alpha)
    for i in range(len(products)):
        share, line = roots[i] / inverse_sizes, products[i]
        for j in range(len(products)):
            line[j] += share * roots[j]


@njit_inline
def from_rows_apart(products, problem, fit, decisions):
    """The decisions from products of weighted rows, which are overwritten: each segment from those of all others."""
    n, k, borders = len(products), len(fit.targets), problem.borders
    roots, outputs = _sides(fit, problem.rows)
    _add_usual_size(products, roots, fit.alpha)
    for s in range(problem.first, len(borders) - 1):
        begin, end = borders[s], borders[s + 1]
        m = n - end + begin
        own, sides, weights = np.empty((m, m)), np.empty((k + 1, m)), np.zeros((k, n))
        for i in range(m):
            row = i if i < begin else i + end - begin
            line, to = products[row], own[i]
            for j in range(begin):
                to[j] = line[j]
            for j in range(begin, m):
                to[j] = line[j + end - begin]
            for c in range(k):
                sides[c, i] = outputs[c, row]
            sides[k, i] = roots[row]
        if not ridge_weights(own, fit.alpha, sides):
            return False
        level = dot(sides[k, :begin], roots[:begin]) + dot(sides[k, begin:], roots[end:])
        for c in range(k):
            share = (dot(sides[k, :begin], outputs[c, :begin]) + dot(sides[k, begin:], outputs[c, end:])) / level
            for i in range(m):
                weights[c, i if i < begin else i + end - begin] = sides[c, i] - share * sides[k, i]
            for i in range(begin, end):
                decisions[i - borders[problem.first], c] = share
        found = np.dot(weights, products[begin:end].T)
        for i in range(begin, end):
            for c in range(k):
                decisions[i - borders[problem.first], c] += found[c, i - begin] / roots[i]
    return True


@njit_inline
def from_rows(products, problem, fit, decisions):
    """The decisions from products of weighted rows, which are overwritten."""
    n, k, borders = len(products), len(fit.targets), problem.borders
    roots, outputs = _sides(fit, problem.rows)
    _add_usual_size(products, roots, fit.alpha)
    sides = np.empty((k + 1, n))
    scale, unit = np.empty(n), np.empty(n)
    unit[:] = 1.0
    L, least = scaled_factor(products, fit.alpha, scale)
    if not least >= LEAST_PIVOT:
        return False
    for i in range(n):
        for c in range(k):
            sides[c, i] = scale[i] * outputs[c, i]
        sides[k, i] = scale[i] * roots[i]
    inverse = np.empty((n, n))
    inverse[:] = 0.0
    for i in range(n):
        inverse[i, i] = 1.0
    _solve_lower(L, inverse)
    by_row = inverse.T.copy()
    solved = np.dot(np.dot(sides, by_row), inverse)
    level = dot(solved[k], sides[k])
    for c in range(k):
        share = dot(solved[k], sides[c]) / level
        for i in range(n):
            solved[c, i] -= share * solved[k, i]
    for s in range(problem.first, len(borders) - 1):
        begin, end = borders[s], borders[s + 1]
        if end - begin == 1:
            square = dot(by_row[begin], by_row[begin])
            left = 1.0 - solved[k, begin] * solved[k, begin] / (level * square)
            if not left >= LEAST_PIVOT:
                return False
            for c in range(k):
                solved[c, begin] /= left * square
            continue
        own = by_row[begin:end]
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
        if not _left_out(rest, solved[:k], begin, end):
            return False
    for c in range(k):
        for i in range(n):
            solved[c, i] *= unit[i] / scale[i]
    _set_decisions(solved[:k], problem, fit, decisions)
    return True
