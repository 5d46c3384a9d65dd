"""Random subsets from counter-based random numbers: Philox, unbiased integers, Floyd's sampling, geometric gaps.

All arithmetic is on integers, so subsets are the same on every platform. The random words of probe ``i`` are
Philox4x32-10 (Salmon et al. 2011) at the counters (j, low i, high i, 0), j = 0, 1, ..., with the seed as key.
"""

import numpy as np

from .jit import njit_cached, njit_inline

MASK32 = np.uint64(0xFFFFFFFF)
SHIFT32 = np.uint64(32)
ONE = np.uint64(1)
MULTIPLIER_0 = np.uint64(0xD2511F53)
MULTIPLIER_1 = np.uint64(0xCD9E8D57)
WEYL_0 = np.uint64(0x9E3779B9)
WEYL_1 = np.uint64(0xBB67AE85)
HASH = np.uint64(0x9E3779B97F4A7C15)


@njit_inline
def philox(c0, c1, c2, c3, k0, k1):
    """Four 32-bit words, in 64-bit integers, for one counter and key."""
    for _ in range(10):
        product_0 = MULTIPLIER_0 * c0
        product_1 = MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (
            (product_1 >> SHIFT32) ^ c1 ^ k0,
            product_1 & MASK32,
            (product_0 >> SHIFT32) ^ c3 ^ k1,
            product_0 & MASK32,
        )
        k0 = (k0 + WEYL_0) & MASK32
        k1 = (k1 + WEYL_1) & MASK32
    return c0, c1, c2, c3


# A stream is an array of 8 words: 0-3 the current words, 4 the number of them used so far, 5 the next j, 6-7 unused.
@njit_inline
def open_stream(stream):
    stream[4] = np.uint64(4)
    stream[5] = np.uint64(0)


@njit_inline
def next_word(stream, seed, probe):
    used = stream[4]
    if used == np.uint64(4):
        stream[0], stream[1], stream[2], stream[3] = philox(
            stream[5], probe & MASK32, probe >> SHIFT32, np.uint64(0), seed & MASK32, seed >> SHIFT32
        )
        stream[5] += ONE
        used = np.uint64(0)
    stream[4] = used + ONE
    return stream[used]


@njit_inline
def below(bound, stream, seed, probe):
    """Unbiased integer in [0, bound), bound < 2**32 (Lemire's multiplication with rejection)."""
    while True:  # a single call of next_word, because every call is inlined
        product = next_word(stream, seed, probe) * bound
        low = product & MASK32
        if low >= bound or low >= ((ONE << SHIFT32) - bound) % bound:
            return product >> SHIFT32


@njit_cached
def uniform_offsets(n_features, max_size, seed, start, stop):
    """Offsets of probes with sizes uniform in 1..min(n_features, max_size)."""
    offsets = np.zeros(stop - start + 1, np.int64)
    stream = np.empty(8, np.uint64)
    bound = np.uint64(min(n_features, max_size))
    for row in range(stop - start):
        open_stream(stream)
        size = below(bound, stream, np.uint64(seed), np.uint64(start + row)) + ONE
        offsets[row + 1] = offsets[row] + np.int64(size)
    return offsets


@njit_cached
def uniform_indices(n_features, max_size, seed, start, offsets):
    """Distinct features of probes start, start + 1, ... by Floyd's sampling, with one random number per feature."""
    n_probes = len(offsets) - 1
    indices = np.empty(offsets[-1], np.int32)
    stream = np.empty(8, np.uint64)
    seed = np.uint64(seed)
    size_bound = np.uint64(min(n_features, max_size))
    bits = 4
    while (1 << bits) < 2 * min(n_features, max_size):
        bits += 1
    slot_shift = np.uint64(64 - bits)
    slot_mask = np.uint64((1 << bits) - 1)
    # Features of the current probe: a hash set with open addressing; entries of earlier probes count as empty.
    seen = np.zeros(1 << bits, np.uint64)
    for row in range(n_probes):
        probe = np.uint64(start + row)
        mark = np.uint64(row + 1) << SHIFT32
        open_stream(stream)
        below(size_bound, stream, seed, probe)
        position = offsets[row]
        size = offsets[row + 1] - position
        for last in range(n_features - size, n_features):
            entry = mark | below(np.uint64(last + 1), stream, seed, probe)
            slot = (entry * HASH) >> slot_shift
            while seen[slot] >= mark and seen[slot] != entry:
                slot = (slot + ONE) & slot_mask
            if seen[slot] == entry:
                entry = mark | np.uint64(last)
                slot = (entry * HASH) >> slot_shift
                while seen[slot] >= mark:
                    slot = (slot + ONE) & slot_mask
            seen[slot] = entry
            indices[position] = np.int32(entry & MASK32)
            position += 1
    return indices


@njit_inline
def next_gap(tail, stream, seed, probe):
    """Number of features to skip before the next one in the probe; tail[k] = 2**64 (1 - p)**(k + 1)."""
    gap = 0
    while True:
        word = (next_word(stream, seed, probe) << SHIFT32) | next_word(stream, seed, probe)
        low, high = 0, len(tail)
        while low < high:
            middle = (low + high) // 2
            if word < tail[middle]:
                low = middle + 1
            else:
                high = middle
        gap += low
        if low < len(tail):
            return gap


@njit_cached
def bernoulli_offsets(n_features, tail, seed, start, stop):
    """Offsets of Bernoulli probes; an empty probe is drawn again."""
    offsets = np.zeros(stop - start + 1, np.int64)
    stream = np.empty(8, np.uint64)
    for row in range(stop - start):
        open_stream(stream)
        size = 0
        while size == 0:
            feature = next_gap(tail, stream, np.uint64(seed), np.uint64(start + row))
            while feature < n_features:
                size += 1
                feature += 1 + next_gap(tail, stream, np.uint64(seed), np.uint64(start + row))
        offsets[row + 1] = offsets[row] + size
    return offsets


@njit_cached
def bernoulli_indices(n_features, tail, seed, start, offsets):
    """Features of Bernoulli probes start, start + 1, ..., in ascending order."""
    indices = np.empty(offsets[-1], np.int32)
    stream = np.empty(8, np.uint64)
    for row in range(len(offsets) - 1):
        open_stream(stream)
        position = offsets[row]
        while position == offsets[row]:
            feature = next_gap(tail, stream, np.uint64(seed), np.uint64(start + row))
            while feature < n_features:
                indices[position] = feature
                position += 1
                feature += 1 + next_gap(tail, stream, np.uint64(seed), np.uint64(start + row))
    return indices
