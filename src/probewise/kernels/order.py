"""Places in descending order, by radix: linear in the number of scores, and equal ones stay in their order."""

import numpy as np

from .jit import kernel, part

BITS = 11
DIGITS = 1 << BITS
HIGH = np.uint64(31)  # the first 33 bits of a key go into the first sort, with 31 for the index
LOW = np.uint64(2**31 - 1)
SHORT = 16


@kernel
def places(scores):
    """The place of each score in descending order, from 0; ties to the lower index, NaN last."""
    n = len(scores)
    packed, sorted_ = np.empty(n, np.uint64), np.empty(n, np.uint64)
    bits = scores.view(np.uint64)
    for i in range(n):
        packed[i] = (_key(bits[i]) & ~LOW) | np.uint64(i)
    _sort(packed, sorted_, n, HIGH)
    start = 0
    for place in range(1, n + 1):
        if place == n or sorted_[place] >> HIGH != sorted_[start] >> HIGH:
            if place - start > 1:
                _settle(sorted_, bits, start, place)
            start = place
    out = packed.view(np.int64)
    for place in range(n):
        out[sorted_[place] & LOW] = place
    return out


@part
def _key(bits):
    """A whole number in the descending order of numbers: minus zero as zero, NaN last."""
    sign = np.uint64(1) << np.uint64(63)
    if bits & ~sign > np.uint64(0x7FF0000000000000):
        return ~np.uint64(0)
    return bits if bits > sign else ~(bits | sign)


@part
def _sort(packed, room, n, shift):
    """By the bits from ``shift`` up, stable; the result is in ``room``."""
    counts = np.zeros((3, DIGITS), np.int64)
    mask = np.uint64(DIGITS - 1)
    for i in range(n):
        key = packed[i] >> shift
        counts[0, key & mask] += 1
        counts[1, key >> np.uint64(BITS) & mask] += 1
        counts[2, key >> np.uint64(2 * BITS) & mask] += 1
    for turn in range(3):
        start = 0
        for digit in range(DIGITS):
            start, counts[turn, digit] = start + counts[turn, digit], start
        for i in range(n):
            digit = packed[i] >> shift + np.uint64(BITS * turn) & mask
            room[counts[turn, digit]] = packed[i]
            counts[turn, digit] += 1
        packed, room = room, packed


@part
def _settle(sorted_, bits, start, stop):
    """Sort those whose first bits are equal by the rest of their keys."""
    if stop - start > SHORT:
        rest = np.uint64(64) - HIGH
        first, second = np.empty(stop - start, np.uint64), np.empty(stop - start, np.uint64)
        held = sorted_[start:stop].copy()
        for i in range(stop - start):
            first[i] = (_key(bits[held[i] & LOW]) & LOW) << rest | np.uint64(i)
        _sort(first, second, stop - start, rest)
        for i in range(stop - start):
            sorted_[start + i] = held[second[i] & ((np.uint64(1) << rest) - np.uint64(1))]
        return
    for place in range(start + 1, stop):
        own = sorted_[place]
        key = _key(bits[own & LOW])
        before = place - 1
        while before >= start and _key(bits[sorted_[before] & LOW]) > key:
            sorted_[before + 1] = sorted_[before]
            before -= 1
        sorted_[before + 1] = own
