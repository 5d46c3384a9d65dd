"""Products of the inclusion matrix (probes by features) with vectors, without building the matrix."""

import numpy as np

from .jit import njit_cached


@njit_cached
def number_columns(last, probed, n_rounds, column_of, shared_by):
    """Write the column of each feature and how many features share a column; return the columns of each round."""
    next_column, shared_column = np.zeros(n_rounds, np.int64), np.zeros(n_rounds, np.int64)
    ends = np.zeros(n_rounds, np.int64)
    for feature in range(len(last)):
        if probed[feature]:
            next_column[last[feature]] += 1
        else:
            shared_column[last[feature]] += 1
    n_columns = 0
    for number in range(n_rounds - 1, -1, -1):
        n_probed, n_shared = next_column[number], shared_column[number]
        next_column[number], shared_column[number] = n_columns, n_columns + n_probed
        n_columns += n_probed
        if n_shared > 0:
            shared_by[n_columns] = n_shared
            n_columns += 1
        ends[number] = n_columns
    for feature in range(len(last)):
        number = last[feature]
        if probed[feature]:
            column_of[feature] = next_column[number]
            next_column[number] += 1
        else:
            column_of[feature] = shared_column[number]
    return ends


@njit_cached
def times(indices, offsets, start, stop, weights, out):
    """out[i] = sum of the weights of list i, such as the features of probe i, for lists start to stop."""
    for probe in range(start, stop):
        total = 0.0
        for position in range(offsets[probe], offsets[probe + 1]):
            total += weights[indices[position]]
        out[probe] = total


@njit_cached
def transposed_times(indices, offsets, values, out):
    """out[f] += sum of the values of the probes that contain f."""
    for probe in range(len(values)):
        value = values[probe]
        for position in range(offsets[probe], offsets[probe + 1]):
            out[indices[position]] += value


@njit_cached
def fill_columns(indices, offsets, starts, start, stop, probes):
    """Write the probes that contain each feature from start to stop, in order; ``starts``: first position of each."""
    next_position = starts[start:stop].copy()
    for probe in range(len(offsets) - 1):
        for position in range(offsets[probe], offsets[probe + 1]):
            column = indices[position]
            if start <= column < stop:
                probes[next_position[column - start]] = probe
                next_position[column - start] += 1
