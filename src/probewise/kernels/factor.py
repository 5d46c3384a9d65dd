"""Cholesky factors of small symmetric matrices, and solutions with a check of the digits that are left."""

import math

import numpy as np

from .jit import njit_fastsum, njit_helper

LEAST_PIVOT = 1e-9  # relative to the diagonal; below it, fewer than six or seven of sixteen digits are left
ROWS = 16  # of a factor, solved one by one; the contribution of the rows before them is one product of matrices
FEW_SIDES = 4  # right-hand sides that are solved one by one; more are solved side by side


@njit_fastsum
def dot(a, b):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit_helper
def factor(matrix):
    """Cholesky factor L of a matrix and its least pivot, or the matrix itself and 0 if it has no factor."""
    least = 0.0
    try:
        L = np.linalg.cholesky(matrix)
        least = np.inf
        for i in range(len(L)):
            least = min(least, L[i, i] * L[i, i])
    except Exception:  # numba knows no other
        L = matrix
    return L, least


@njit_helper
def scaled_factor(matrix, alpha, scale):
    """`factor` of the matrix plus alpha I, scaled to a diagonal of 1; the scale of its rows goes into ``scale``."""
    n = len(matrix)
    for i in range(n):
        scale[i] = 1.0 / math.sqrt(matrix[i, i] + alpha)
    for i in range(n):
        own, line = scale[i], matrix[i]
        for j in range(n):
            line[j] *= own * scale[j]
        line[i] = 1.0
    return factor(matrix)


@njit_helper
def subtract(values, others):
    """values -= others; numba's own operator takes seconds to compile."""
    for i in range(len(values)):
        to, line = values[i], others[i]
        for k in range(len(to)):
            to[k] -= line[k]


@njit_helper
def solve_lower(L, values):
    """values (n, m) become L^-1 values."""
    n = len(L)
    for first in range(0, n, ROWS):
        last = min(n, first + ROWS)
        if first:
            subtract(values[first:last], np.dot(L[first:last, :first].copy(), values[:first]))
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
def inverse(L):
    """L^-1 and its transpose."""
    by_column = np.zeros((len(L), len(L)))
    for i in range(len(L)):
        by_column[i, i] = 1.0
    solve_lower(L, by_column)
    return by_column, by_column.T.copy()


@njit_helper
def solve(L, sides):
    """Every line x of sides becomes L^-T L^-1 x."""
    if len(sides) > FEW_SIDES:
        by_side = sides.T.copy()
        solve_lower(L, by_side)
        for i in range(len(L) - 1, -1, -1):
            line, share = by_side[i], 1.0 / L[i, i]
            for c in range(len(line)):
                line[c] *= share
            for j in range(i):
                share, to = L[i, j], by_side[j]
                for c in range(len(line)):
                    to[c] -= share * line[c]
        for x in range(len(sides)):  # numba would compile the text of an error message for sides[:] = by_side.T
            side = sides[x]
            for i in range(len(side)):
                side[i] = by_side[i, x]
        return
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
    """Every line x of sides becomes (scatter + alpha I)^-1 x; scatter is overwritten. False if a pivot is too small."""
    scale = np.empty(len(scatter))
    L, least = scaled_factor(scatter, alpha, scale)
    if not least >= LEAST_PIVOT:
        return False
    for x in range(len(sides)):
        sides[x] *= scale
    solve(L, sides)
    for x in range(len(sides)):
        sides[x] *= scale
    return True
