"""Products of the matrix of inclusion, probes by features, with a vector, without making the matrix."""

import numpy as np

from .jit import njit_cached


@njit_cached
def number_columns(last, probed, n_rounds, place, shared_by):
    """The column of each feature: those of the last round first, in each round those that were probed, in order, then
    one for all others. Writes ``place`` and how many share a column, and gives the number of columns of each round's
    features."""
    free, shared, ends = np.zeros(n_rounds, np.int64), np.zeros(n_rounds, np.int64), np.zeros(n_rounds, np.int64)
    for feature in range(len(last)):
        if probed[feature]:
            free[last[feature]] += 1
        else:
            shared[last[feature]] += 1
    n_columns = 0
    for number in range(n_rounds - 1, -1, -1):
        n_probed, n_shared = free[number], shared[number]
        free[number], shared[number] = n_columns, n_columns + n_probed
        n_columns += n_probed
        if n_shared > 0:
            shared_by[n_columns] = n_shared
            n_columns += 1
        ends[number] = n_columns
    for feature in range(len(last)):
        number = last[feature]
        if probed[feature]:
            place[feature] = free[number]
            free[number] += 1
        else:
            place[feature] = shared[number]
    return ends


@njit_cached
def times(indices, offsets, start, stop, weights, out):
    """out[i] = sum of the weights of the features of probe i, from start to stop."""
    for probe in range(start, stop):
        total = 0.0
        for position in range(offsets[probe], offsets[probe + 1]):
            total += weights[indices[position]]
        out[probe] = total


@njit_cached
def transposed_times(indices, offsets, values, out):
    """out[f] += sum of the values of the probes that hold f."""
    for probe in range(len(values)):
        value = values[probe]
        for position in range(offsets[probe], offsets[probe + 1]):
            out[indices[position]] += value


@njit_cached
def fill_columns(indices, offsets, starts, start, stop, probes):
    """The probes that hold each feature from start to stop, in order, from where they begin."""
    free = starts[start:stop].copy()
    for probe in range(len(offsets) - 1):
        for position in range(offsets[probe], offsets[probe + 1]):
            column = indices[position]
            if start <= column < stop:
                probes[free[column - start]] = probe
                free[column - start] += 1


@njit_cached
def summed(starts, probes, start, stop, values, out):
    """out[f] = sum of the values of the probes that hold f, from start to stop."""
    for column in range(start, stop):
        total = 0.0
        for position in range(starts[column], starts[column + 1]):
            total += values[probes[position]]
        out[column] = total
