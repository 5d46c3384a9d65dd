"""Products of the matrix of inclusion, probes by features, with a vector, without making the matrix."""

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
def fill_columns(indices, offsets, starts, start, stop, probes):
    """The probes that hold each feature from start to stop, in order, from where they begin."""
    free = starts[start:stop].copy()
    for probe in range(len(offsets) - 1):
        for position in range(offsets[probe], offsets[probe + 1]):
            column = indices[position]
            if start <= column < stop:
                probes[free[column - start]] = probe
                free[column - start] += 1


@kernel
def summed(starts, probes, start, stop, values, out):
    """out[f] = sum of the values of the probes that hold f, from start to stop."""
    for column in range(start, stop):
        total = 0.0
        for position in range(starts[column], starts[column + 1]):
            total += values[probes[position]]
        out[column] = total
