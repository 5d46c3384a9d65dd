"""Places in descending order, by radix: linear in the number of scores, and equal ones stay in their order."""

import numpy as np

from .jit import kernel, part

BITS = 11
DIGITS = 1 << BITS
HIGH = np.uint64(31)  # the first 33 bits of a key go into the first sort, with 31 for the index
SHORT = 16


@kernel
def places(scores):
    """The place of each score in descending order, from 0; ties to the lower index, NaN last."""
    n = len(scores)
    keys, packed, room = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64)
    sign = np.uint64(1) << np.uint64(63)
    bits = (scores + 0.0).view(np.uint64)  # minus zero is zero
    for i in range(n):
        keys[i] = bits[i] if bits[i] & sign else ~(bits[i] | sign)
        if np.isnan(scores[i]):
            keys[i] = ~np.uint64(0)
        packed[i] = (keys[i] >> HIGH) << HIGH | np.uint64(i)
    order = np.empty(n, np.int64)
    _sort(packed, room, n, HIGH)
    index = (np.uint64(1) << HIGH) - np.uint64(1)
    for place in range(n):
        order[place] = np.int64(room[place] & index)
    start = 0
    for place in range(1, n + 1):
        if place == n or room[place] >> HIGH != room[start] >> HIGH:
            if place - start > 1:
                _settle(order, keys, start, place, packed)
            start = place
    out = np.empty(n, np.int64)
    for place in range(n):
        out[order[place]] = place
    return out


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
def _settle(order, keys, start, stop, packed):
    """Sort those whose first bits are equal by the rest."""
    if stop - start > SHORT:
        low = (np.uint64(1) << HIGH) - np.uint64(1)
        first, second = packed[start:stop], np.empty(stop - start, np.uint64)
        held = order[start:stop].copy()
        rest = np.uint64(64) - HIGH
        for i in range(stop - start):
            first[i] = (keys[held[i]] & low) << rest | np.uint64(i)
        _sort(first, second, stop - start, rest)
        for i in range(stop - start):
            order[start + i] = held[second[i] & ((np.uint64(1) << rest) - np.uint64(1))]
        return
    for place in range(start + 1, stop):
        own = order[place]
        before = place - 1
        while before >= start and keys[order[before]] > keys[own]:
            order[before + 1] = order[before]
            before -= 1
        order[before + 1] = own
