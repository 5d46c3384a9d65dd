"""Products of the matrix of inclusion, probes by features, with a vector, without making the matrix."""

from .jit import kernel


@kernel
def times(indices, offsets, weights, mean, out):
    """out[i] = sum over the features of probe i of (weight - mean)."""
    for probe in range(len(out)):
        total = 0.0
        for position in range(offsets[probe], offsets[probe + 1]):
            total += weights[indices[position]] - mean
        out[probe] = total


@kernel
def transposed_times(indices, offsets, values, out):
    """out[f] += sum of the values of the probes that hold f; returns the sum over probes of value x size."""
    total = 0.0
    for probe in range(len(values)):
        value = values[probe]
        for position in range(offsets[probe], offsets[probe + 1]):
            out[indices[position]] += value
        total += value * (offsets[probe + 1] - offsets[probe])
    return total
