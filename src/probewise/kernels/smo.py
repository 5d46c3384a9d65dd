"""Sequential minimal optimisation for support vector machines, along libsvm's own path.

It minimises  1/2 a'Qa + term'a  for 0 <= a <= C, sign'a = 0, where Q_ij = sign_i sign_j K_ij, by steps
on two variables. Everything that decides the path is libsvm's, in its order of operations: K rounded to float32
except for its diagonal, ties to the last variable, idle variables set aside now and then. To let the loops
become vector instructions, v = -sign * gradient is kept instead of the gradient (a change of signs only), and
largest values are found among integers whose order is that of the numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .jit import njit_cached

TOLERANCE = 1e-3
EPSILON = 0.1
TAU = 1e-12
MOST_STEPS = 10_000_000
LANES = 16
V, ALPHA, BAR, DIAGONAL, UP, DOWN, SIGN, TERM, BUFFER = range(9)
ROW, SLOT, PLACE, ORIGIN = range(4)
MAGNITUDE = 2**63 - 1
POSITIVE = 1  # the key of the least positive number
FINITE = 2**52 - 2**63  # the key of the least finite number


class Room(NamedTuple):
    """Memory for problems of up to so many variables; each variable is a column of ``state`` and ``ids``.

    state : v, the variable a, v if all free variables were 0, K_ii, 0 if sign * a may grow (else -inf), 0 if it may
        fall (else inf), sign, term, and a buffer.
    bits : the same memory as integers.
    ids : its row of K, its row of ``cache`` (-1: none yet), its number at the start, and row of K by this number.
    cache : rows of K as float32, in the present order of variables.
    """

    state: NDArray[np.float64]
    bits: NDArray[np.int64]
    ids: NDArray[np.int64]
    cache: NDArray[np.float32]

    @classmethod
    def of(cls, length: int) -> Room:
        wide = -(-length // LANES) * LANES
        state = np.empty((9, wide))
        ids = np.empty((4, wide), np.int64)
        return cls(state, state.view(np.int64), ids, np.empty((length, wide), np.float32))


@njit_cached
def dot_all(matrix, products):
    """One dot product of BLAS for each pair of rows, as libsvm takes them; a matrix product rounds in another way."""
    for i in range(len(matrix)):
        row = matrix[i]
        for j in range(i + 1):
            products[i, j] = products[j, i] = np.dot(row, matrix[j])


@njit_cached
def vote(K, rows, starts, seen, C, state, bits, ids, cache, winners):
    """Of each row seen, the class that wins most duels; among equals the first."""
    n_classes = len(starts) - 1
    votes = np.zeros((len(seen), n_classes), np.int64)
    values = np.empty(len(seen))
    for a in range(n_classes):
        for b in range(a + 1, n_classes):
            add_class(rows, starts[a], starts[a + 1], 0, 1.0, state, ids)
            length = add_class(rows, starts[b], starts[b + 1], starts[a + 1] - starts[a], -1.0, state, ids)
            offset = solve(K, length, C, state, bits, ids, cache)
            decide(K, seen, length, offset, state, ids, values)
            for t in range(len(seen)):
                votes[t, a if values[t] > 0 else b] += 1
    for t in range(len(seen)):
        winners[t] = 0
        for c in range(1, n_classes):
            if votes[t, c] > votes[t, winners[t]]:
                winners[t] = c


@njit_cached
def margins(K, rows, starts, seen, C, state, bits, ids, cache, values):
    """Of two classes, how far each row seen is on the side of the second."""
    add_class(rows, starts[0], starts[1], 0, 1.0, state, ids)
    length = add_class(rows, starts[1], starts[2], starts[1] - starts[0], -1.0, state, ids)
    offset = solve(K, length, C, state, bits, ids, cache)
    decide(K, seen, length, offset, state, ids, values)
    for t in range(len(seen)):
        values[t] = -values[t]


@njit_cached
def add_class(rows, first, stop, length, sign, state, ids):
    """Add a class to the problem; its length then."""
    for k in range(first, stop):
        ids[ORIGIN, length], state[SIGN, length], state[TERM, length] = rows[k], sign, -1.0
        length += 1
    return length


@njit_cached
def regress(K, rows, targets, seen, C, state, bits, ids, cache, predicted):
    """The value of the regression at each row seen; two variables per training row, for errors up and down."""
    n = len(rows)
    for k in range(n):
        ids[ORIGIN, k], state[SIGN, k], state[TERM, k] = rows[k], 1.0, EPSILON - targets[k]
        ids[ORIGIN, n + k], state[SIGN, n + k], state[TERM, n + k] = rows[k], -1.0, EPSILON + targets[k]
    offset = solve(K, 2 * n, C, state, bits, ids, cache)
    for k in range(n):
        state[BUFFER, k] += state[BUFFER, n + k]
    decide(K, seen, n, offset, state, ids, predicted)


@njit_cached
def decide(K, seen, length, offset, state, ids, values):
    """sum over k of weight_k K(k, seen) - offset, summed in libsvm's order."""
    for t in range(len(seen)):
        values[t] = 0
    for k in range(length):
        weight, row = state[BUFFER, k], ids[ORIGIN, k]
        if weight != 0:
            for t in range(len(seen)):
                values[t] += weight * K[row, seen[t]]
    for t in range(len(seen)):
        values[t] -= offset


@njit_cached
def solve(K, length, C, state, bits, ids, cache):
    """The offset; sign * a goes to the buffer, in the order of ``ORIGIN``.

    What runs at every step calls nothing in turn: numba counts references to arrays where functions do.
    """
    filled = np.zeros(1, np.int64)
    start(K, length, C, state, ids)
    active, until_shrinking, was_restored, is_last_look = length, min(length, 1000) + 1, False, False
    steps = 0
    while True:
        steps += 1
        if steps > MOST_STEPS:
            raise ValueError(
                "a support vector machine came to no end in 10,000,000 steps: "
                "bring the columns to a common scale, as StandardScaler does, or give a smaller C"
            )
        until_shrinking -= 1
        if until_shrinking == 0:
            until_shrinking = min(length, 1000)
            active, was_restored = shrink(C, state, ids, cache, filled, active, length, was_restored)
        width = padded(active)
        i, j = last_largest(bits, FINITE, width), -1
        if i >= 0:
            if ids[SLOT, i] < 0:
                fill(K, ids, cache, filled, length, i)
            write_gains(state, cache, ids[SLOT, i], i, width)
            j = last_largest(bits, POSITIVE, width)
        if j < 0 or (state[V, i] - state[V, j] < TOLERANCE and is_optimal(state, active)):
            if is_last_look:
                break
            restore(C, state, ids, cache, active, length)
            active, until_shrinking, is_last_look = length, 2, True
            continue
        is_last_look = False
        if ids[SLOT, j] < 0:
            fill(K, ids, cache, filled, length, j)
        slot_i, slot_j = ids[SLOT, i], ids[SLOT, j]
        old_i, old_j = state[ALPHA, i], state[ALPHA, j]
        change_pair(C, state, cache[slot_i, j], i, j)
        move(state, cache, slot_i, slot_j, i, j, old_i, old_j, width)
        follow_bound(C, state, cache, slot_i, i, old_i, length)
        follow_bound(C, state, cache, slot_j, j, old_j, length)
    for k in range(length):
        state[BUFFER, ids[PLACE, k]] = state[SIGN, k] * state[ALPHA, k]
    return offset_of(C, state, length)


@njit_cached
def start(K, length, C, state, ids):
    for i in range(length):
        row = ids[ORIGIN, i]
        ids[ROW, i], ids[SLOT, i], ids[PLACE, i] = row, -1, i
        state[ALPHA, i], state[BAR, i], state[DIAGONAL, i] = 0.0, 0.0, K[row, row]
        state[V, i] = 0.0 - state[SIGN, i] * state[TERM, i]  # 0.0 - 0.0 is never -0.0, whose bits would sort apart
        mark(C, state, i)
    for i in range(length, padded(length)):
        state[V, i], state[DIAGONAL, i] = 0.0, 1.0
    hide(state, length, padded(length))
    write_heights(state, padded(length))


@njit_cached
def padded(length):
    return (length + LANES - 1) // LANES * LANES


@njit_cached
def hide(state, first, stop):
    """Variables that fill up the last vector are never chosen."""
    for t in range(first, stop):
        state[UP, t], state[DOWN, t] = -np.inf, np.inf


@njit_cached
def mark(C, state, i):
    """Where variable i may go."""
    may_grow, may_fall = state[ALPHA, i] < C, state[ALPHA, i] > 0
    if state[SIGN, i] < 0:
        may_grow, may_fall = may_fall, may_grow
    state[UP, i] = 0.0 if may_grow else -np.inf
    state[DOWN, i] = 0.0 if may_fall else np.inf


@njit_cached
def last_largest(bits, floor, width):
    """The last place of the largest number in the buffer; -1 if all keys are below ``floor``."""
    best, found = floor, -1
    for t in range(width):
        key = bits[BUFFER, t] ^ ((bits[BUFFER, t] >> 63) & MAGNITUDE)
        if key >= best:
            best = key
            found = t
    return found


@njit_cached
def write_heights(state, width):
    """v where it may grow, else -inf."""
    for t in range(width):
        state[BUFFER, t] = state[V, t] + state[UP, t]


@njit_cached
def write_gains(state, cache, slot, i, width):
    """How much the objective falls by a step on i and each other, times two; negative where it cannot."""
    highest, own = state[V, i], state[DIAGONAL, i]
    for t in range(width):
        slope = highest - (state[V, t] + state[DOWN, t])
        curvature = (own + state[DIAGONAL, t]) - 2.0 * cache[slot, t]
        state[BUFFER, t] = slope * abs(slope) / (curvature if curvature > 0 else TAU)


@njit_cached
def fill(K, ids, cache, filled, length, i):
    """Give variable i its row of K, in the present order of variables."""
    slot = ids[SLOT, i] = filled[0]
    filled[0] += 1
    row = ids[ROW, i]
    for t in range(length):
        cache[slot, t] = K[row, ids[ROW, t]]
    for t in range(length, padded(length)):
        cache[slot, t] = 0


@njit_cached
def change_pair(C, state, value, i, j):
    """Change variables i and j to the best within their bounds; ``value`` is K_ij."""
    a, b, sign = state[ALPHA, i], state[ALPHA, j], state[SIGN, i]
    curvature = (state[DIAGONAL, i] + state[DIAGONAL, j]) - 2.0 * value
    change = sign * ((state[V, i] - state[V, j]) / (curvature if curvature > 0 else TAU))
    if sign != state[SIGN, j]:
        a, b = along_difference(C, a - b, a + change, b + change)
    else:
        a, b = along_sum(C, a + b, a + change, b - change)
    state[ALPHA, i], state[ALPHA, j] = a, b
    mark(C, state, i)
    mark(C, state, j)


@njit_cached
def along_difference(C, difference, a, b):
    if difference > 0:
        if b < 0:
            a, b = difference, 0.0
        if a > C:
            a, b = C, C - difference
    else:
        if a < 0:
            a, b = 0.0, -difference
        if b > C:
            a, b = C + difference, C
    return a, b


@njit_cached
def along_sum(C, total, a, b):
    if total > C:
        if a > C:
            a, b = C, total - C
        if b > C:
            a, b = total - C, C
    else:
        if b < 0:
            a, b = total, 0.0
        if a < 0:
            a, b = 0.0, total
    return a, b


@njit_cached
def move(state, cache, slot_i, slot_j, i, j, old_i, old_j, width):
    """Let v follow variables i and j."""
    change_i = state[SIGN, i] * (state[ALPHA, i] - old_i)
    change_j = state[SIGN, j] * (state[ALPHA, j] - old_j)
    for t in range(width):
        v = state[V, t] - (cache[slot_i, t] * change_i + cache[slot_j, t] * change_j)
        state[V, t] = v
        state[BUFFER, t] = v + state[UP, t]


@njit_cached
def follow_bound(C, state, cache, slot, i, old, length):
    """Keep the share of v that comes from variables at C."""
    is_there = state[ALPHA, i] >= C
    if is_there != (old >= C):
        change = state[SIGN, i] * (C if is_there else -C)
        for t in range(length):
            state[BAR, t] -= change * cache[slot, t]


@njit_cached
def is_optimal(state, active):
    highest, lowest = extremes(state, active)
    return highest - lowest < TOLERANCE


@njit_cached
def extremes(state, active):
    highest, lowest = -np.inf, np.inf
    for t in range(active):
        highest = max(highest, state[V, t] + state[UP, t])
        lowest = min(lowest, state[V, t] + state[DOWN, t])
    return highest, lowest


@njit_cached
def shrink(C, state, ids, cache, filled, active, length, was_restored):
    """Set idle variables aside; once, when the end is near, look at all of them again first."""
    highest, lowest = extremes(state, active)
    if not was_restored and highest - lowest <= 10 * TOLERANCE:
        restore(C, state, ids, cache, active, length)
        active, was_restored = length, True
    return set_aside(C, state, ids, cache, filled, active, highest, lowest), was_restored


@njit_cached
def set_aside(C, state, ids, cache, filled, active, highest, lowest):
    """Move variables that will hardly leave their bound to the end; how many remain."""
    i = 0
    while i < active:
        if is_idle(C, state, i, highest, lowest):
            active -= 1
            while active > i and is_idle(C, state, active, highest, lowest):
                active -= 1
            if active > i:
                swap(state, ids, cache, filled, i, active)
        i += 1
    hide(state, active, padded(active))
    write_heights(state, padded(active))
    return active


@njit_cached
def is_idle(C, state, i, highest, lowest):
    if 0 < state[ALPHA, i] < C:
        return False
    return state[V, i] < lowest if state[UP, i] == 0 else state[V, i] > highest


@njit_cached
def swap(state, ids, cache, filled, i, j):
    for r in range(BUFFER):
        state[r, i], state[r, j] = state[r, j], state[r, i]
    for r in range(ORIGIN):
        ids[r, i], ids[r, j] = ids[r, j], ids[r, i]
    for slot in range(filled[0]):
        cache[slot, i], cache[slot, j] = cache[slot, j], cache[slot, i]


@njit_cached
def restore(C, state, ids, cache, active, length):
    """v of the variables set aside, from that of those at C and the free ones, whose rows are in the cache."""
    for t in range(active, length):
        state[V, t] = state[BAR, t] - state[SIGN, t] * state[TERM, t]
        mark(C, state, t)
    for i in range(active):
        if 0 < state[ALPHA, i] < C:
            slot, weight = ids[SLOT, i], state[SIGN, i] * state[ALPHA, i]
            for t in range(active, length):
                state[V, t] -= weight * cache[slot, t]
    write_heights(state, padded(length))


@njit_cached
def offset_of(C, state, length):
    """Mean of -v over free variables; without any, the middle of where it may lie."""
    n_free, total, highest, lowest = 0, 0.0, -np.inf, np.inf
    for i in range(length):
        value = -state[V, i]
        if 0 < state[ALPHA, i] < C:
            n_free += 1
            total += value
        elif state[UP, i] == 0:
            lowest = min(lowest, value)
        else:
            highest = max(highest, value)
    return total / n_free if n_free > 0 else (highest + lowest) / 2
