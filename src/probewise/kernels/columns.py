"""Columns of a wide matrix: those of a probe, as a small dense matrix, or a run of neighbours; their extent."""

import numpy as np

from .jit import njit_cached


@njit_cached
def take_dense(matrix, rows, columns, ascending, centers, out):
    """out[i, k] = matrix[rows[i], columns[k]] - centers[k], read in the order of memory: that of ``ascending`` k.

    Row by row is also the faster way where the matrix lies by columns: what is fetched serves the next rows.
    """
    ordered, own_centers = np.empty(len(columns), np.uint64), np.empty(len(columns))
    for k in range(len(columns)):
        ordered[k], own_centers[k] = columns[ascending[k]], centers[ascending[k]]
    for i in range(len(rows)):
        line, to = matrix[rows[i]], out[i]
        for k in range(len(ordered)):
            to[ascending[k]] = line[ordered[k]] - own_centers[k]


@njit_cached
def take_sparse(data, indices, indptr, place, columns, out):
    """The same from compressed columns, without centring; place[r] is where row r goes."""
    out[:] = 0
    for k in range(len(columns)):
        for position in range(indptr[columns[k]], indptr[columns[k] + 1]):
            out[place[indices[position]], k] += data[position]


@njit_cached
def load_dense(matrix, start, out):
    """out[c] = column start + c of a matrix."""
    n_columns, n = out.shape
    for i in range(n):
        line = matrix[i]
        for c in range(n_columns):
            out[c, i] = line[start + c]


@njit_cached
def load_sparse(data, indices, indptr, start, out):
    """The same from compressed columns."""
    for c in range(out.shape[0]):
        line = out[c]
        for i in range(len(line)):
            line[i] = 0.0
        for position in range(indptr[start + c], indptr[start + c + 1]):
            line[indices[position]] += data[position]


@njit_cached
def ranges(matrix, start, piece, totals, low, high, is_whole):
    """Of the columns from ``start`` on: sums of distances from the first value, extremes, and whether all are whole.

    Rows are added in their order, ``piece`` rows together, and the sums of pieces in theirs: whatever the order of
    memory, the sums are the same.
    """
    n_columns = len(totals)
    origin, part = np.empty(n_columns), np.empty(n_columns)
    for j in range(n_columns):
        origin[j] = low[j] = high[j] = matrix[0, start + j]
        totals[j] = 0.0
        is_whole[j] = True
    for first in range(0, len(matrix), piece):
        part[:] = 0.0
        for i in range(first, min(first + piece, len(matrix))):
            line = matrix[i, start : start + n_columns]
            for j in range(n_columns):
                value = np.float64(line[j])
                part[j] += value - origin[j]
                low[j] = min(low[j], value)
                high[j] = max(high[j], value)
                is_whole[j] &= value == np.rint(value)
        for j in range(n_columns):
            totals[j] += part[j]


@njit_cached
def distances(matrix, start, piece, centers, totals):
    """Of the columns from ``start`` on: sums of distances from a centre, added as in `ranges`."""
    n_columns = len(totals)
    part = np.empty(n_columns)
    totals[:] = 0.0
    for first in range(0, len(matrix), piece):
        part[:] = 0.0
        for i in range(first, min(first + piece, len(matrix))):
            line = matrix[i, start : start + n_columns]
            for j in range(n_columns):
                part[j] += abs(line[j] - centers[j])
        for j in range(n_columns):
            totals[j] += part[j]
