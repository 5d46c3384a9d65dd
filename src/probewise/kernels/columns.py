"""A probe's columns out of a wide matrix, as rows of a small dense one."""

import numpy as np

from .jit import kernel


@kernel
def take_dense(matrix, rows, columns, centers, out):
    """out[i, k] = matrix[rows[i], columns[k]] - centers[columns[k]], read in the order of memory."""
    ascending = np.argsort(columns)
    ordered = columns[ascending].astype(np.uint64)
    own_centers = centers[columns[ascending]]
    for i in range(len(rows)):
        line, to = matrix[rows[i]], out[i]
        for k in range(len(ordered)):
            to[ascending[k]] = line[ordered[k]] - own_centers[k]


@kernel
def take_sparse(data, indices, indptr, place, columns, out):
    """The same from compressed columns, without centring; place[r] is where row r goes."""
    out[:] = 0
    for k in range(len(columns)):
        for position in range(indptr[columns[k]], indptr[columns[k] + 1]):
            out[place[indices[position]], k] += data[position]
