"""Levels of columns that do not look at classes: what is known of a column, and values that are levels themselves."""

import numpy as np

from .intervals import between
from .jit import njit_cached, njit_helper
from .order import sort_few


@njit_cached
def describe(values, means, deviations, low, high, common):
    """Of each row: mean, population standard deviation, extremes, and the value of more than half, or NaN."""
    n = values.shape[1]
    for c in range(values.shape[0]):
        line = values[c]
        total = 0.0
        for i in range(n):
            total += line[i] - line[0]
        mean = total / n
        square = 0.0
        least = most = candidate = line[0]
        votes = 0  # Boyer and Moore: a value of more than half is the candidate at the end
        for i in range(n):
            apart = line[i] - line[0] - mean
            square += apart * apart
            least, most = min(least, line[i]), max(most, line[i])
            if votes == 0:
                candidate = line[i]
            votes += 1 if line[i] == candidate else -1
        means[c], deviations[c] = line[0] + mean, np.sqrt(square / n)
        low[c], high[c] = least, most
        common[c] = candidate if votes > 0 and 2 * np.sum(line == candidate) > n else np.nan


@njit_cached
def keep_values(values, common, n_kept, cuts, n_cuts):
    """Cut rows of at most ``n_kept`` values between any two of them, others around their common value, too."""
    seen = np.empty(n_kept)
    for c in range(values.shape[0]):
        n_seen = _few_values(values[c], seen)
        if n_seen <= n_kept:
            sort_few(seen[:n_seen])
            for k in range(n_seen - 1):
                cuts[c, k] = between(seen[k], seen[k + 1])
            n_cuts[c] = n_seen - 1
        elif not np.isnan(common[c]):
            n_cuts[c] = _cut_around(common[c], values[c], cuts[c], n_cuts[c])


@njit_helper
def _few_values(line, seen):
    """How many values there are, those kept in ``seen``; one more than its room where they are more."""
    found = 0
    for i in range(len(line)):
        k = 0
        while k < found and seen[k] != line[i]:
            k += 1
        if k == len(seen):
            return k + 1
        if k == found:
            seen[k] = line[i]
            found += 1
    return found


@njit_helper
def _cut_around(value, line, cuts, n_cuts):
    """Put cuts next to a value among the others, in place of those that separate no more; gives how many there are."""
    below, above = -np.inf, np.inf
    for i in range(len(line)):
        if line[i] < value:
            below = max(below, line[i])
        elif line[i] > value:
            above = min(above, line[i])
    found = 0
    for k in range(n_cuts):
        if cuts[k] < below or cuts[k] >= above:
            cuts[found] = cuts[k]
            found += 1
    if below > -np.inf:
        cuts[found] = between(below, value)
        found += 1
    if above < np.inf:
        cuts[found] = between(value, above)
        found += 1
    sort_few(cuts[:found])
    return found
