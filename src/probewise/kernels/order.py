"""Places in descending order, by radix: linear in the number of scores, and equal ones stay in their order.

And a few numbers sorted in place.
"""

import numpy as np

from .jit import njit_cached, njit_helper

BITS = 11
DIGITS = 1 << BITS
SHORT = 64


@njit_cached
def places(scores):
    """The place of each score in descending order, from 0; ties to the lower index, NaN last.

    The first bits of a score's key are sorted with its index in the bits left over; the rest decides among equals.
    """
    n = len(scores)
    low = np.uint64(20 if n <= 1 << 20 else 31)
    index = (np.uint64(1) << low) - np.uint64(1)
    packed, room = np.empty(n, np.uint64), np.empty(n, np.uint64)
    bits = scores.view(np.uint64)
    for i in range(n):
        packed[i] = (_key(bits[i]) & ~index) | np.uint64(i)
    ordered, free = _sort(packed, room, n, low)
    start = np.int64(0)  # with a plain 0 numba would compile `_settle` twice
    for place in range(1, n + 1):
        if place == n or ordered[place] >> low != ordered[start] >> low:
            if place - start > 1:
                _settle(ordered, bits, start, place, low)
            start = place
    out = free.view(np.int64)
    for place in range(n):
        out[ordered[place] & index] = place
    return out


@njit_helper
def _key(bits):
    """A whole number in the descending order of numbers: minus zero as zero, NaN last."""
    sign = np.uint64(1) << np.uint64(63)
    if bits & ~sign > np.uint64(0x7FF0000000000000):
        return ~np.uint64(0)
    return bits if bits > sign else ~(bits | sign)


@njit_helper
def _sort(packed, room, n, shift):
    """By the bits from ``shift`` up, stable: the array that holds the result, and the other one."""
    turns = (64 - np.int64(shift) + BITS - 1) // BITS
    counts = np.zeros((turns, DIGITS), np.int64)
    mask = np.uint64(DIGITS - 1)
    for i in range(n):
        key = packed[i] >> shift
        for turn in range(turns):
            counts[turn, key & mask] += 1
            key >>= np.uint64(BITS)
    for turn in range(turns):
        at = shift + np.uint64(BITS * turn)
        following = counts[turn]
        if n == 0 or following[packed[0] >> at & mask] == n:
            continue
        start = 0
        for digit in range(DIGITS):
            start, following[digit] = start + following[digit], start
        for i in range(n):
            digit = packed[i] >> at & mask
            room[following[digit]] = packed[i]
            following[digit] += 1
        packed, room = room, packed
    return packed, room


@njit_helper
def _settle(ordered, bits, start, stop, low):
    """Sort those whose first bits are equal by the rest of their keys."""
    index = (np.uint64(1) << low) - np.uint64(1)
    if stop - start > SHORT:
        rest = np.uint64(64) - low
        first, second = np.empty(stop - start, np.uint64), np.empty(stop - start, np.uint64)
        held = ordered[start:stop].copy()
        for i in range(stop - start):
            first[i] = (_key(bits[held[i] & index]) & index) << rest | np.uint64(i)
        settled, _ = _sort(first, second, stop - start, rest)
        for i in range(stop - start):
            ordered[start + i] = held[settled[i] & ((np.uint64(1) << rest) - np.uint64(1))]
        return
    for place in range(start + 1, stop):
        own = ordered[place]
        key = _key(bits[own & index])
        before = place - 1
        while before >= start and _key(bits[ordered[before] & index]) > key:
            ordered[before + 1] = ordered[before]
            before -= 1
        ordered[before + 1] = own


@njit_helper
def sort_few(numbers):
    """Sort in ascending order, by insertion: numba's own sorts take seconds to compile."""
    for count in range(1, len(numbers)):
        value, place = numbers[count], count
        while place > 0 and numbers[place - 1] > value:
            numbers[place] = numbers[place - 1]
            place -= 1
        numbers[place] = value
