"""Products of the matrix of inclusion, probes by features, with a vector, without making the matrix."""

from .jit import kernel


@kernel
def times(indices, offsets, weights, out):
    """out[i] = sum of the weights of the features of probe i."""
    for probe in range(len(out)):
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
