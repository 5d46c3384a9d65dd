"""Unsupervised discretization: statistics of columns, and cuts that give single values a level of their own."""

import numpy as np

from .intervals import between
from .jit import njit_cached, njit_helper, sort_few


@njit_cached
def describe(values, means, deviations, low, high, common):
    """Mean, population standard deviation, minimum, maximum and majority value (or NaN) of each row of ``values``."""
    n = values.shape[1]
    for c in range(values.shape[0]):
        column = values[c]
        total = 0.0
        for i in range(n):
            total += column[i] - column[0]
        mean = total / n
        square = 0.0
        least = most = candidate = column[0]
        votes = 0  # Boyer and Moore: a value in more than half of the rows is the candidate at the end
        for i in range(n):
            distance = column[i] - column[0] - mean
            square += distance * distance
            least, most = min(least, column[i]), max(most, column[i])
            if votes == 0:
                candidate = column[i]
            votes += 1 if column[i] == candidate else -1
        means[c], deviations[c] = column[0] + mean, np.sqrt(square / n)
        low[c], high[c] = least, most
        common[c] = candidate if votes > 0 and 2 * np.sum(column == candidate) > n else np.nan


@njit_cached
def keep_values(values, common, max_levels, cuts, n_cuts):
    """Cut columns with at most ``max_levels`` distinct values between all of them, others around the majority value."""
    seen = np.empty(max_levels)
    for c in range(values.shape[0]):
        n_seen = _distinct_values(values[c], seen)
        if n_seen <= max_levels:
            sort_few(seen[:n_seen])
            for k in range(n_seen - 1):
                cuts[c, k] = between(seen[k], seen[k + 1])
            n_cuts[c] = n_seen - 1
        elif not np.isnan(common[c]):
            n_cuts[c] = _cut_around(common[c], values[c], cuts[c], n_cuts[c])


@njit_helper
def _distinct_values(column, seen):
    """Store the distinct values in ``seen`` and return their number, or len(seen) + 1 if there are more."""
    n_seen = 0
    for i in range(len(column)):
        k = 0
        while k < n_seen and seen[k] != column[i]:
            k += 1
        if k == len(seen):
            return k + 1
        if k == n_seen:
            seen[k] = column[i]
            n_seen += 1
    return n_seen


@njit_helper
def _cut_around(value, column, cuts, n_cuts):
    """Add a cut on each side of a value, remove the cuts that they replace, and return the number of cuts."""
    below, above = -np.inf, np.inf
    for i in range(len(column)):
        if column[i] < value:
            below = max(below, column[i])
        elif column[i] > value:
            above = min(above, column[i])
    n_new = 0
    for k in range(n_cuts):
        if cuts[k] < below or cuts[k] >= above:
            cuts[n_new] = cuts[k]
            n_new += 1
    if below > -np.inf:
        cuts[n_new] = between(below, value)
        n_new += 1
    if above < np.inf:
        cuts[n_new] = between(value, above)
        n_new += 1
    sort_few(cuts[:n_new])
    return n_new
