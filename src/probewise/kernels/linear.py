"""Ridge regression in closed form, cross-validated: sums of groups of rows in, a factor per fold, predictions out.

K targets are fitted at once. Of dense rows means and products about these are known, of sparse rows plain sums: their
number n, column sums s (d), Gram matrix G (d, d), target sums t (K) and products of columns with targets M (d, K).
Those of groups add up: what a fold leaves for training is the sum of the others.
"""

import numpy as np

from .factor import LEAST_PIVOT, dot, ridge_weights
from .jit import longest, njit_cached, njit_inline

ROWS_AT_A_TIME = 256


@njit_cached
def ridge(means, scatter, target_means, products, alpha, weights, intercepts):
    """Weights (d, K) and intercepts (K) of min |X w + b - t|^2 + alpha |w|^2; are digits enough left?"""
    d, k = products.shape
    sides = np.ascontiguousarray(products.T)
    is_sure = ridge_weights(scatter.copy(), alpha, sides)
    for c in range(k):
        intercepts[c] = target_means[c] - dot(means, sides[c])
        for i in range(d):
            weights[i, c] = sides[c, i]
    return is_sure


@njit_cached
def ridge_of_few(n, sums, gram, target_sums, products, alpha, weights, intercepts):
    """As `ridge`, from plain sums s, a Gram matrix (its upper part) that is mostly zeros, and products about 0.

    They stay zeros if the means are taken off afterwards: with H = G + alpha I and u = H^-1 s, the inverse of
    H - s s^T / n is H^-1 + u u^T / (n - s^T u).
    """
    d, k = products.shape
    system, solved = np.empty((d, d + k + 1)), np.empty((d, k + 1))
    for i in range(d):
        for j in range(i, d):
            system[i, j] = gram[i, j]
        system[i, i] += alpha
        for c in range(k):
            system[i, d + c] = products[i, c]
        system[i, d + k] = sums[i]
    is_sure = _eliminate(system)
    _substitute(system, solved)
    u = solved[:, k].copy()
    rest = n - np.dot(sums, u)
    if rest < 1e-6 * n:  # columns that hardly vary: more than six of float64's sixteen digits would be lost
        scatter, own = np.empty((d, d)), np.empty((d, k))
        for i in range(d):
            mean = sums[i] / n
            for j in range(i, d):
                scatter[i, j] = scatter[j, i] = gram[i, j] - mean * sums[j]
            for c in range(k):
                own[i, c] = products[i, c] - mean * target_sums[c]
        return ridge(sums / n, scatter, target_sums / n, own, alpha, weights, intercepts)
    for c in range(k):
        share = target_sums[c] / n
        along = 0.0
        for i in range(d):
            weights[i, c] = solved[i, c] - u[i] * share
            along += sums[i] * weights[i, c]
        for i in range(d):
            weights[i, c] += u[i] * along / rest
        intercepts[c] = share
        for i in range(d):
            intercepts[c] -= sums[i] / n * weights[i, c]
    return is_sure


@njit_inline
def _eliminate(system):
    """Cholesky factor U of the left square part in its upper triangle, and U^-T times the rest, row by row.

    Is every pivot large enough beside the diagonal that it comes from?
    """
    d, width = system.shape
    least = np.empty(d)
    for i in range(d):
        least[i] = LEAST_PIVOT * system[i, i]
    is_sure = True
    for i in range(d):
        is_sure &= system[i, i] >= least[i]
        root = np.sqrt(max(system[i, i], least[i]))
        system[i, i] = root
        for j in range(i + 1, width):
            system[i, j] /= root
        for later in range(i + 1, d):
            factor = system[i, later]
            if factor != 0.0:
                for j in range(later, width):
                    system[later, j] -= factor * system[i, j]
    return is_sure


@njit_inline
def _substitute(system, weights):
    """Solve U weights = the columns of the eliminated system right of its square part."""
    d, k = weights.shape
    for i in range(d - 1, -1, -1):
        for c in range(k):
            weights[i, c] = system[i, d + c]
        for j in range(i + 1, d):
            factor = system[i, j]
            if factor != 0.0:
                for c in range(k):
                    weights[i, c] -= factor * weights[j, c]
        for c in range(k):
            weights[i, c] /= system[i, i]


@njit_cached
def predict_probes(
    matrix, rows, borders, centers, indices, offsets, missing, fills, weights, intercepts, allowed, is_label, predicted
):
    """What every probe predicts for every row in fold order, into predicted (probes, rows): see `predict`.

    One walk over the matrix serves the whole batch, a tile of rows at a time while it is in the cache. weights holds,
    probe after probe, a (d, K) matrix per fold; rows are in fold order, fold f is borders[f]..borders[f + 1]. Where
    values are missing, NaN in the column at place i of indices is fills[f, missing[i]] in fold f.
    """
    n_folds, n_probes, k = len(borders) - 1, len(offsets) - 1, intercepts.shape[2]
    room = np.empty(ROWS_AT_A_TIME * longest(offsets))
    for fold in range(n_folds):
        for first in range(borders[fold], borders[fold + 1], ROWS_AT_A_TIME):
            height = min(ROWS_AT_A_TIME, borders[fold + 1] - first)
            for probe in range(n_probes):
                d, begin = offsets[probe + 1] - offsets[probe], offsets[probe]
                values = room[: height * d].reshape(height, d)
                _gather(matrix, rows, first, centers, indices[begin : begin + d], values)
                if len(missing):
                    _fill(values, missing[begin : begin + d], fills[fold])
                start = (begin * n_folds + fold * d) * k
                coefficients, own = weights[start : start + d * k].reshape(d, k), intercepts[probe, fold]
                predict(values, coefficients, own, allowed[fold], is_label, predicted[probe, first : first + height])


@njit_inline
def _gather(matrix, rows, first, centers, columns, values):
    """The centred columns of as many rows, from the one at place ``first`` on, as there are lines in values."""
    for i in range(len(values)):
        row = rows[first + i]
        for j in range(len(columns)):
            column = columns[j]
            values[i, j] = matrix[row, column] - centers[column]


@njit_inline
def _fill(values, missing, fills):
    """NaN in column j becomes fills[missing[j]]; a complete column has -1."""
    for j in range(len(missing)):
        if missing[j] >= 0:
            for i in range(len(values)):
                if np.isnan(values[i, j]):
                    values[i, j] = fills[missing[j]]


@njit_cached
def predict(values, weights, intercepts, allowed, is_label, predictions):
    """Of rows of values (n, d) the class whose decision is highest among those allowed, or the (first) decision."""
    decisions = np.dot(values, weights)
    for row in range(len(values)):
        if is_label:
            predictions[row] = _decide(decisions[row], intercepts, allowed)
        else:
            predictions[row] = decisions[row, 0] + intercepts[0]


@njit_inline
def _decide(decisions, intercepts, allowed):
    """The class: of several, the first of the highest; of two, with one decision, the second if it is above 0."""
    if len(decisions) == 1:
        if allowed[0] and allowed[1]:
            return int(decisions[0] + intercepts[0] > 0)
        return int(allowed[1])
    winner = -1
    highest = -np.inf
    for c in range(len(decisions)):
        decision = decisions[c] + intercepts[c]
        if allowed[c] and (winner < 0 or decision > highest):
            winner = c
            highest = decision
    return winner


@njit_cached
def label_products(values, labels, products):
    """products (d, classes) = sums of the columns of values (n, d) by class."""
    products[:] = 0.0
    for row in range(len(values)):
        for column in range(values.shape[1]):
            products[column, labels[row]] += values[row, column]


@njit_cached
def rows_of_columns(data, indices, indptr, place, subset, starts, columns, values):
    """The probe's entries row by row: those of row r (as placed) are at starts[r]..starts[r + 1]."""
    starts[:] = 0
    for k in range(len(subset)):
        for position in range(indptr[subset[k]], indptr[subset[k] + 1]):
            starts[place[indices[position]] + 1] += 1
    for row in range(len(starts) - 1):
        starts[row + 1] += starts[row]
    for k in range(len(subset)):
        for position in range(indptr[subset[k]], indptr[subset[k] + 1]):
            row = place[indices[position]]
            columns[starts[row]] = k
            values[starts[row]] = data[position]
            starts[row] += 1
    for row in range(len(starts) - 1, 0, -1):
        starts[row] = starts[row - 1]
    starts[0] = 0


@njit_cached
def sparse_sums(starts, columns, values, first, last, targets, row_weights, is_label, sums, gram, products):
    """Column sums, Gram matrix (upper part) and products with targets, or by label, of rows first..last - 1."""
    sums[:] = 0.0
    gram[:] = 0.0
    products[:] = 0.0
    for row in range(first, last):
        for a in range(starts[row], starts[row + 1]):
            column, value = columns[a], values[a] * row_weights[row] if len(row_weights) else values[a]
            sums[column] += value
            if is_label:
                products[column, int(targets[row])] += value
            else:
                products[column, 0] += value * targets[row]
            for b in range(a, starts[row + 1]):
                gram[min(column, columns[b]), max(column, columns[b])] += value * values[b]


@njit_inline
def _add_entries(starts, columns, values, row, weights, decisions):
    """The decisions of a row, less the intercepts."""
    decisions[:] = 0.0
    for a in range(starts[row], starts[row + 1]):
        value, column = values[a], columns[a]
        for c in range(len(decisions)):
            decisions[c] += value * weights[column, c]


@njit_cached
def sparse_predict(starts, columns, values, first, last, weights, intercepts, allowed, is_label, predictions):
    """As `predict`, for rows first..last - 1."""
    decisions = np.zeros(len(intercepts))
    blank = _decide(decisions, intercepts, allowed) if is_label else intercepts[0]
    for row in range(first, last):
        predictions[row - first] = blank
        if starts[row] == starts[row + 1]:
            continue
        _add_entries(starts, columns, values, row, weights, decisions)
        label_or_number = _decide(decisions, intercepts, allowed) if is_label else decisions[0] + intercepts[0]
        predictions[row - first] = label_or_number
