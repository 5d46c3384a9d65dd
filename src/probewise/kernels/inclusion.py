"""Products of the inclusion matrix (probes by features) with vectors, without building the matrix."""

import numpy as np

from .jit import njit_cached


def number_columns(last, probed, n_rounds):
    """Columns of the regression: the column of each feature, how many features share it, and the columns of each round.

    Features that reached later rounds come first. All features of a round that no probe contains share a column.
    """
    group = 2 * (n_rounds - 1 - last) + ~probed
    order = np.argsort(group, kind="stable")
    is_new = np.append(True, np.diff(group[order]) != 0) | probed[order]
    column_of = np.empty(len(last), np.int32)
    column_of[order] = np.cumsum(is_new) - 1
    ends = np.searchsorted(group[order[is_new]], 2 * np.arange(n_rounds, 0, -1))
    return column_of, np.bincount(column_of).astype(np.float64), ends


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
