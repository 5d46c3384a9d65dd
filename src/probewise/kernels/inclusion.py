"""Products of the matrix of inclusion, probes by features, with a vector, without making the matrix."""

import numpy as np

from .jit import kernel


@kernel
def times(indices, offsets, start, stop, weights, out):
    """out[i] = sum of the weights of the features of probe i, from start to stop."""
    for probe in range(start, stop):
        total = 0.0
        for position in range(offsets[probe], offsets[probe + 1]):
            total += weights[indices[position]]
        out[probe] = total


@kernel
def transposed_times(indices, offsets, values, out):
    """out[f] += sum of the values of the probes that hold f."""
    for probe in range(len(values)):
        value = values[probe]
        for position in range(offsets[probe], offsets[probe + 1]):
            out[indices[position]] += value


@kernel
def by_column(indices, offsets, n_columns):
    """Where the probes of each feature begin, and the probes, in order."""
    starts = np.zeros(n_columns + 1, np.int64)
    for position in range(len(indices)):
        starts[indices[position] + 1] += 1
    for column in range(n_columns):
        starts[column + 1] += starts[column]
    free, probes = starts[:-1].copy(), np.empty(len(indices), np.int32)
    for probe in range(len(offsets) - 1):
        for position in range(offsets[probe], offsets[probe + 1]):
            column = indices[position]
            probes[free[column]] = probe
            free[column] += 1
    return starts, probes


@kernel
def summed(starts, probes, start, stop, values, out):
    """out[f] = sum of the values of the probes that hold f, from start to stop."""
    for column in range(start, stop):
        total = 0.0
        for position in range(starts[column], starts[column + 1]):
            total += values[probes[position]]
        out[column] = total
