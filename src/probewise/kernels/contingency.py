"""Codes of columns as bit sets, and their joint counts with one other column: c log2 c summed over the cells.

A narrow column (few levels) is a bit set for each level but the first; a wide one is a row of level numbers. Sums are
of whole numbers (see `intervals.entropy_table`): the same bits in any order.
"""

import numpy as np

from .jit import njit_cached, njit_helper
from .vectors import popcount

NARROW = 16  # levels of the widest column that is kept as bit sets: with more they would take more room than codes
BLOCK = 64  # columns met by as many others at a time
MOST_PAIRED = 256  # rows for which pairs of rows are kept as bit sets
BASE_BITS = 64  # levels of the widest other column that is met as bit sets


@njit_cached
def encode(values, start, cuts, offsets, levels, place, planes, wide):
    """The level of each value, the number of cuts below it, into the bit sets or the wide row of its column."""
    n_columns, n = values.shape
    n_words = (n + 63) // 64
    below = np.empty(n, np.int64)
    for c in range(n_columns):
        column = start + c
        line = values[c]
        own = cuts[offsets[column] : offsets[column + 1]]
        at = place[column]
        if levels[column] > NARROW:
            _encode_wide(line, own, below, wide[at])
        elif len(own) == 1:
            _encode_two(line, own[0], planes[at : at + n_words])
        elif len(own) > 1:
            _encode_narrow(line, own, planes[at : at + len(own) * n_words], n_words)


@njit_helper
def _encode_wide(line, own, below, out):
    """How many of the ascending cuts are below each value: by halves of the cuts, each for all values at once."""
    below[:] = 0
    left = len(own)
    while left > 0:
        half = (left + 1) // 2
        for i in range(len(line)):
            at = below[i]
            below[i] = at + (half if own[np.uint64(at + half - 1)] < line[i] else 0)
        left -= half
    for i in range(len(line)):
        out[i] = below[i]


@njit_helper
def _encode_two(line, cut, words):
    n = len(line)
    for w in range(len(words)):
        bits = np.uint64(0)
        for i in range(64 * w, min(64 * w + 64, n)):
            bits |= np.uint64(line[i] > cut) << np.uint64(i & 63)
        words[w] = bits


@njit_helper
def _encode_narrow(line, own, words, n_words):
    """Above each cut first, then, from the last down, what is above one cut but not the next."""
    for level in range(len(own)):
        _encode_two(line, own[level], words[level * n_words : (level + 1) * n_words])
    for w in range(n_words * (len(own) - 1)):
        words[w] &= ~words[w + n_words]


@njit_cached
def decode(column, levels, place, planes, wide, out):
    """The levels of one column."""
    n = len(out)
    n_words = (n + 63) // 64
    if levels[column] > NARROW:
        for i in range(n):
            out[i] = wide[place[column], i]
        return
    for i in range(n):
        out[i] = 0
    for level in range(1, levels[column]):
        first = place[column] + (level - 1) * n_words
        for i in range(n):
            bit = (planes[first + i // 64] >> np.uint64(i & 63)) & np.uint64(1)
            out[i] += level * bit


@njit_cached
def joint(columns, levels, place, planes, wide, base, n_base, table, sums, cells):
    """For each of the columns: the sum of c log2 c over the cells it makes with ``base``, and the cells not empty."""
    n = len(base)
    n_words = (n + 63) // 64
    rows, starts = np.empty(n, np.int64), np.empty(n_base + 2, np.int64)
    _sort_by_level(base, n_base, rows, starts)
    starts = starts[: n_base + 1]
    margin = starts[1:] - starts[:-1]
    masks = np.zeros((n_base - 1) * n_words if n_base <= BASE_BITS else 0, np.uint64)
    if n_base <= BASE_BITS:
        for i in range(n):
            if base[i] > 0:
                masks[(base[i] - 1) * n_words + i // 64] |= np.uint64(1) << np.uint64(i & 63)
    groups = _by_size(rows, starts)
    counts = np.zeros(min(n_base, BASE_BITS), np.int64)
    seen = np.zeros(_most(levels, columns), np.int64)
    codes = np.zeros(n, np.int64)
    for k in range(len(columns)):
        column = columns[k]
        K = levels[column]
        at = place[column]
        if K <= NARROW and n_base <= BASE_BITS and (K - 1) * (n_base - 1) * n_words <= 2 * n:
            sums[k], cells[k] = _count_bits(planes, at, K, masks, n_base, n_words, margin, counts, table)
        elif K <= NARROW:
            decode(column, levels, place, planes, wide, codes)
            sums[k], cells[k] = _count_rows(codes, groups, seen, table)
        else:
            sums[k], cells[k] = _count_rows(wide[at], groups, seen, table)


@njit_helper
def _most(levels, columns):
    most = 1
    for k in range(len(columns)):
        most = max(most, levels[columns[k]])
    return most


@njit_helper
def _sort_by_level(base, n_base, rows, starts):
    """Rows sorted by level, where each level starts, and where the last one ends; starts has room for one more."""
    for level in range(n_base + 2):
        starts[level] = 0
    for i in range(len(base)):
        starts[base[i] + 2] += 1
    for level in range(2, n_base + 1):
        starts[level] += starts[level - 1]
    for i in range(len(base)):
        rows[starts[base[i] + 1]] = i
        starts[base[i] + 1] += 1


@njit_helper
def _count_bits(planes, at, K, masks, n_base, n_words, margin, left, table):
    """Bit sets from ``at`` on against those of the base; what no bit set holds is level 0."""
    for m in range(n_base):
        left[m] = margin[m]
    total, cells = np.int64(0), 0
    words = np.uint64(n_words)
    for level in range(1, K):
        start = np.uint64(at + (level - 1) * n_words)
        size = np.int64(0)
        for w in range(words):
            size += popcount(planes[start + w])
        other = np.uint64(0)
        for m in range(1, n_base):
            both = np.int64(0)
            for w in range(words):
                both += popcount(planes[start + w] & masks[other + w])
            other += words
            total += table[np.uint64(both)]
            cells += both > 0
            left[m] -= both
            size -= both
        total += table[np.uint64(size)]
        cells += size > 0
        left[0] -= size
    for m in range(n_base):
        total += table[np.uint64(left[m])]
        cells += left[m] > 0
    return total, cells


@njit_helper
def _by_size(rows, starts):
    """The rows of levels that have one, two, three, and more of them; how many levels have one, two and three; and
    where the rows of the others begin, and end."""
    ordered, begins = np.empty(len(rows), np.int64), np.empty(len(starts), np.int64)
    n_levels = np.zeros(3, np.int64)
    filled, n_begun = 0, 0
    for size in range(1, 5):
        for level in range(len(starts) - 1):
            own = starts[level + 1] - starts[level]
            if own == size or own > size == 4:
                if size < 4:
                    n_levels[size - 1] += 1
                else:
                    begins[n_begun] = filled
                    n_begun += 1
                for position in range(starts[level], starts[level + 1]):
                    ordered[filled] = rows[position]
                    filled += 1
    begins[n_begun] = filled
    return ordered, n_levels, begins[: n_begun + 1]


@njit_helper
def _count_rows(codes, groups, seen, table):
    """Row by row, one level of the base after the other; ``seen`` is all zero before and after.

    Three rows have none, one or three pairs of the same code.
    """
    rows, n_levels, begins = groups
    of_pairs = n_levels[0]
    of_threes = of_pairs + 2 * n_levels[1]
    same, alone, all_three = 0, 0, 0
    for at in range(of_pairs, of_threes, 2):
        same += codes[rows[at]] == codes[rows[at + 1]]
    for at in range(of_threes, of_threes + 3 * n_levels[2], 3):
        a, b, c = codes[rows[at]], codes[rows[at + 1]], codes[rows[at + 2]]
        n_same = np.int64(a == b) + np.int64(a == c) + np.int64(b == c)
        alone += n_same & 1
        all_three += n_same >> 1
    alone -= all_three
    total = (same + alone) * table[2] + all_three * table[3]
    cells = n_levels[0] + 2 * n_levels[1] - same + 3 * n_levels[2] - alone - 2 * all_three
    for group in range(len(begins) - 1):
        for at in range(begins[group], begins[group + 1]):
            code = codes[rows[at]]
            count = seen[code]
            seen[code] = count + 1
            total += table[count + 1] - table[count]
            cells += count == 0
        for at in range(begins[group], begins[group + 1]):
            seen[codes[rows[at]]] = 0
    return total, cells


@njit_cached
def largest_gain(order, start, stop, levels, place, planes, wide, entropies, kappas, table, best):
    """The largest I / log2 cells of order[i], start <= i < stop, with any order[j], j < i, or 0 if none beats best[0].

    I is at most the smaller entropy. Joint cells are at least those of either, and one more where the two have equally
    many but differ in entropy. Of wide columns, P pairs of rows that agree in both leave a sum of c log2 c of at most
    2 P and at least n - P cells. A pair of columns whose bound is not above the best known is not counted.
    """
    n = wide.shape[1]
    logs = np.log2(np.arange(n + 2) + 0.0)
    by_pairs = n <= MOST_PAIRED
    n_sets = (n * (n - 1) // 2 + 63) // 64 if by_pairs else 1
    mine, theirs = np.zeros((stop - start, n_sets), np.uint64), np.zeros((BLOCK, n_sets), np.uint64)
    room = _room(n, _most(levels, order))
    agree = np.zeros((stop - start, BLOCK), np.int64)
    if by_pairs:
        _agreeing(order, start, stop, levels, place, wide, room, mine)
    nothing = _by_size(room[2][:0], room[3][:1])
    found, known = 0.0, best[0]
    for first in range(0, stop, BLOCK):
        last = min(first + BLOCK, stop)
        if by_pairs:
            _agreeing(order, first, last, levels, place, wide, room, theirs)
        for i in range(start, stop):
            f = order[i]
            if kappas[f] < 2 or entropies[f] / logs[kappas[f]] <= known:
                continue
            if by_pairs and levels[f] > NARROW:
                for j in range(last - first):
                    agree[i - start, j] = _in_both(mine[i - start], theirs[j])
            decoded, groups = False, nothing
            for j in range(first, min(last, i)):
                g = order[j]
                least = max(kappas[f], kappas[g])
                if kappas[f] == kappas[g] and entropies[f] != entropies[g]:
                    least += 1
                if min(entropies[f], entropies[g]) <= known * logs[least]:
                    continue
                if by_pairs and levels[f] > NARROW and levels[g] > NARROW:
                    pairs = agree[i - start, j - first]
                    most = float(entropies[f] + entropies[g] - table[n] + pairs * table[2])
                    if most <= known * logs[max(least, n - pairs)]:
                        continue
                if not decoded:
                    decode(f, levels, place, planes, wide, room[0])
                    _sort_by_level(room[0], levels[f], room[2], room[3])
                    groups = _by_size(room[2], room[3][: levels[f] + 1])
                    decoded = True
                if levels[g] > NARROW:
                    joint_sum, cells = _count_rows(wide[place[g]], groups, room[4], table)
                else:
                    decode(g, levels, place, planes, wide, room[1])
                    joint_sum, cells = _count_rows(room[1], groups, room[4], table)
                gain = float(entropies[f] + entropies[g] - (table[n] - joint_sum)) / logs[cells]
                if gain > known:
                    known = gain
                    found = gain
        known = max(known, best[0])
    return found


@njit_helper
def _in_both(one, two):
    both = np.int64(0)
    for w in range(len(one)):
        both += popcount(one[w] & two[w])
    return both


@njit_helper
def _room(n, most):
    """Codes of two columns, rows by level, where each level starts, and counters."""
    return (
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(most + 2, np.int64),
        np.zeros(most, np.int64),
    )


@njit_helper
def _agreeing(order, start, stop, levels, place, wide, room, out):
    """For each wide column the set of pairs of rows of equal level, as bits."""
    n = wide.shape[1]
    latest, earlier = room[4], room[0]
    for i in range(start, stop):
        sets = out[i - start]
        for w in range(len(sets)):
            sets[w] = 0
        if levels[order[i]] > NARROW:
            codes = wide[place[order[i]]]
            for level in range(levels[order[i]]):
                latest[level] = -1
            for a in range(n):
                earlier[a] = latest[codes[a]]
                latest[codes[a]] = a
                b = earlier[a]
                while b >= 0:
                    pair = a * (a - 1) // 2 + b
                    sets[pair >> 6] |= np.uint64(1) << np.uint64(pair & 63)
                    b = earlier[b]
            for level in range(levels[order[i]]):
                latest[level] = 0


@njit_cached
def add_shared(joint, base, columns, all_, unit, taken, sums, likeness, partners):
    """Add I(base; column) to the sums; where their likeness is the largest so far, keep it and the base."""
    for k in range(len(joint)):
        shared = all_ - base - columns[k] + joint[k]
        sums[k] += shared / unit
        both = 2 * all_ - base - columns[k]
        if k != taken and 2.0 * shared > likeness[k] * both:
            likeness[k] = 2.0 * shared / both
            partners[k] = taken
