"""Gathering of the columns of a subset from a wide matrix."""

import numpy as np

from .jit import njit_cached


@njit_cached
def take_dense(matrix, rows, columns, ascending, centers, out):
    """out[i, k] = matrix[rows[i], columns[k]] - centers[k], read in memory order: ``ascending`` sorts the columns."""
    ordered, shifts = np.empty(len(columns), np.uint64), np.empty(len(columns))
    for k in range(len(columns)):
        ordered[k], shifts[k] = columns[ascending[k]], centers[ascending[k]]
    for i in range(len(rows)):
        values, target_row = matrix[rows[i]], out[i]
        for k in range(len(ordered)):
            target_row[ascending[k]] = values[ordered[k]] - shifts[k]


@njit_cached
def take_sparse(data, indices, indptr, position_of, columns, out):
    """Columns of a CSC matrix, not centered; row r goes to row position_of[r]."""
    out[:] = 0
    for k in range(len(columns)):
        for position in range(indptr[columns[k]], indptr[columns[k] + 1]):
            out[position_of[indices[position]], k] += data[position]
