"""Cholesky factors of small symmetric matrices, with what their pivots say of the digits that are left."""

import math

import numpy as np

from .jit import njit_fastsum, njit_helper

LEAST_PIVOT = 1e-9  # as a share of the diagonal; below, fewer than six or seven of sixteen digits are left


@njit_helper
def factor(matrix):
    """Cholesky factor L of a matrix and its least pivot; the matrix itself and 0 if it has none."""
    least = 0.0
    try:
        found = np.linalg.cholesky(matrix)
        least = np.inf
        for i in range(len(found)):
            least = min(least, found[i, i] * found[i, i])
    except Exception:  # numba knows no other
        found = matrix
    return found, least


@njit_helper
def scaled_factor(matrix, alpha, scale):
    """The same for the matrix plus alpha I, scaled to a diagonal of 1: the scale of its rows goes into scale."""
    n = len(matrix)
    for i in range(n):
        scale[i] = 1.0 / math.sqrt(matrix[i, i] + alpha)
    for i in range(n):
        own, line = scale[i], matrix[i]
        for j in range(n):
            line[j] *= own * scale[j]
        line[i] = 1.0
    return factor(matrix)


@njit_fastsum
def dot(a, b):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit_helper
def solve(L, sides):
    """Every line x of sides becomes L^-T L^-1 x."""
    for x in range(len(sides)):
        side = sides[x]
        for i in range(len(L)):
            side[i] = (side[i] - dot(L[i, :i], side[:i])) / L[i, i]
        for i in range(len(L) - 1, -1, -1):
            side[i] /= L[i, i]
            value, line = side[i], L[i]
            for j in range(i):
                side[j] -= value * line[j]


@njit_helper
def ridge_weights(scatter, alpha, sides):
    """Every line x of sides becomes (scatter + alpha I)^-1 x; scatter is overwritten. Are its pivots large enough?"""
    scale = np.empty(len(scatter))
    L, least = scaled_factor(scatter, alpha, scale)
    for x in range(len(sides)):
        sides[x] *= scale
    if least >= LEAST_PIVOT:
        solve(L, sides)
    for x in range(len(sides)):
        sides[x] *= scale
    return least >= LEAST_PIVOT
