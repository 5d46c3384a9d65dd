"""Coded columns as bit sets, and their joint counts with another column: sums of c log2 c over the cells.

A narrow column (few levels) is one bit set for each level but the first, a wide column one array of level numbers; both
start at starts[column], in ``bit_sets`` or ``wide_codes``. All sums are whole numbers (see `intervals.entropy_table`),
so they do not depend on the order of summation.
"""

import numpy as np

from .jit import njit_cached, njit_helper
from .vectors import popcount

NARROW = 16  # most levels of a narrow column: with more, bit sets would take more memory than level numbers
BLOCK = 64  # columns that are compared with the same number of others at a time
MOST_PAIRED = 256  # most rows for which the pairs of rows are kept as bit sets
BASE_BITS = 64  # most levels of a base that is compared as bit sets


@njit_cached
def encode(values, start, cuts, offsets, levels, starts, bit_sets, wide_codes):
    """Store the level (number of cuts below) of each value; values[c] is column start + c."""
    n_columns, n = values.shape
    n_words = (n + 63) // 64
    below = np.empty(n, np.int64)
    for c in range(n_columns):
        column = start + c
        column_cuts = cuts[offsets[column] : offsets[column + 1]]
        first = starts[column]
        if levels[column] > NARROW:
            _encode_wide(values[c], column_cuts, below, wide_codes[first])
        else:
            for level in range(len(column_cuts)):
                _set_bits(values[c], column_cuts[level], bit_sets[first + level * n_words :][:n_words])
            for w in range(first, first + n_words * (len(column_cuts) - 1)):
                bit_sets[w] &= ~bit_sets[w + n_words]  # above a cut, but not above the next


@njit_helper
def _encode_wide(values, cuts, below, codes):
    """Count the cuts below each value by binary search, one step for all values at a time."""
    below[:] = 0
    n_left = len(cuts)
    while n_left > 0:
        half = (n_left + 1) // 2
        for i in range(len(values)):
            at = below[i]
            below[i] = at + (half if cuts[np.uint64(at + half - 1)] < values[i] else 0)
        n_left -= half
    for i in range(len(values)):
        codes[i] = below[i]


@njit_helper
def _set_bits(values, cut, words):
    n = len(values)
    for w in range(len(words)):
        bits = np.uint64(0)
        for i in range(64 * w, min(64 * w + 64, n)):
            bits |= np.uint64(values[i] > cut) << np.uint64(i & 63)
        words[w] = bits


@njit_cached
def decode(column, levels, starts, bit_sets, wide_codes, out):
    """Write the levels of one column into ``out``."""
    n = len(out)
    n_words = (n + 63) // 64
    if levels[column] > NARROW:
        for i in range(n):
            out[i] = wide_codes[starts[column], i]
        return
    for i in range(n):
        out[i] = 0
    for level in range(1, levels[column]):
        first = starts[column] + (level - 1) * n_words
        for i in range(n):
            out[i] += level * ((bit_sets[first + i // 64] >> np.uint64(i & 63)) & np.uint64(1))


@njit_cached
def joint(columns, levels, starts, bit_sets, wide_codes, base, n_base, table, sums, cells):
    """Sum of c log2 c over the cells that each column forms with ``base``, and the number of cells that occur."""
    n = len(base)
    n_words = (n + 63) // 64
    rows, level_starts = np.empty(n, np.int64), np.empty(n_base + 2, np.int64)
    _sort_by_level(base, n_base, rows, level_starts)
    level_starts = level_starts[: n_base + 1]
    base_bits = np.zeros((n_base - 1) * n_words if n_base <= BASE_BITS else 0, np.uint64)
    if n_base <= BASE_BITS:
        for i in range(n):
            if base[i] > 0:
                base_bits[(base[i] - 1) * n_words + i // 64] |= np.uint64(1) << np.uint64(i & 63)
    groups = _by_size(rows, level_starts)
    counts = np.zeros(min(n_base, BASE_BITS), np.int64)
    seen = np.zeros(_most_levels(levels, columns), np.int64)
    codes = np.zeros(n, wide_codes.dtype)
    for k in range(len(columns)):
        column = columns[k]
        n_levels = levels[column]
        if n_levels > NARROW:
            sums[k], cells[k] = _count_rows(wide_codes[starts[column]], groups, seen, table)
        elif n_base <= BASE_BITS and (n_levels - 1) * (n_base - 1) * n_words <= 2 * n:
            start = starts[column]
            sums[k], cells[k] = _count_bits(bit_sets, start, n_levels, base_bits, level_starts, n_words, counts, table)
        else:
            decode(column, levels, starts, bit_sets, wide_codes, codes)
            sums[k], cells[k] = _count_rows(codes, groups, seen, table)


@njit_helper
def _most_levels(levels, columns):
    most = 1
    for k in range(len(columns)):
        most = max(most, levels[columns[k]])
    return most


@njit_helper
def _sort_by_level(base, n_base, rows, starts):
    """Sort the rows by level; starts[level] is where a level starts and starts[n_base] the end (one more is used)."""
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
def _count_bits(bits, start, n_levels, base_bits, base_starts, n_words, uncounted, table):
    """Count the cells of a narrow column with the base; rows in no bit set are of level 0."""
    n_base = len(base_starts) - 1
    for m in range(n_base):
        uncounted[m] = base_starts[m + 1] - base_starts[m]
    total, cells = np.int64(0), 0
    words, start = np.uint64(n_words), np.uint64(start)
    for _ in range(1, n_levels):
        rest = np.int64(0)
        for w in range(words):
            rest += popcount(bits[start + w])
        base_start = np.uint64(0)
        for m in range(1, n_base):
            both = np.int64(0)
            for w in range(words):
                both += popcount(bits[start + w] & base_bits[base_start + w])
            base_start += words
            total += table[np.uint64(both)]
            cells += both > 0
            uncounted[m] -= both
            rest -= both
        total += table[np.uint64(rest)]
        cells += rest > 0
        uncounted[0] -= rest
        start += words
    for m in range(n_base):
        total += table[np.uint64(uncounted[m])]
        cells += uncounted[m] > 0
    return total, cells


@njit_helper
def _by_size(rows, starts):
    """Rows of the levels with 1, 2, 3 and more rows, in this order, for `_count_rows`.

    Returns the rows, the number of levels with 1, 2 and 3 rows, and where each larger level begins, with their end.
    """
    ordered, begins = np.empty(len(rows), np.int64), np.empty(len(starts), np.int64)
    n_levels = np.zeros(5, np.int64)
    n_ordered = 0
    for size in range(1, 5):
        for level in range(len(starts) - 1):
            if min(starts[level + 1] - starts[level], 4) == size:
                begins[n_levels[4]] = n_ordered
                n_levels[size] += 1
                for position in range(starts[level], starts[level + 1]):
                    ordered[n_ordered] = rows[position]
                    n_ordered += 1
    begins[n_levels[4]] = n_ordered
    return ordered, n_levels[1:4], begins[: n_levels[4] + 1]


@njit_helper
def _count_rows(codes, groups, seen, table):
    """Count the cells of a column with a base row by row, level by level of the base; ``seen`` stays all zero.

    Levels with up to three rows are counted by comparing codes, which makes EFS on 1,000 x 5,000 twice as fast: with
    normalize="all" most bases have hundreds of levels. Three codes have 0, 1 or 3 equal pairs.
    """
    rows, n_levels, begins = groups
    pairs_begin = n_levels[0]
    triples_begin = pairs_begin + 2 * n_levels[1]
    equal, one_equal, all_equal = 0, 0, 0
    for at in range(pairs_begin, triples_begin, 2):
        equal += codes[rows[at]] == codes[rows[at + 1]]
    for at in range(triples_begin, triples_begin + 3 * n_levels[2], 3):
        a, b, c = codes[rows[at]], codes[rows[at + 1]], codes[rows[at + 2]]
        n_equal = np.int64(a == b) + np.int64(a == c) + np.int64(b == c)
        one_equal += n_equal == 1
        all_equal += n_equal == 3
    total = (equal + one_equal) * table[2] + all_equal * table[3]
    cells = n_levels[0] + 2 * n_levels[1] - equal + 3 * n_levels[2] - one_equal - 2 * all_equal
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
def largest_gain(order, start, stop, levels, starts, bit_sets, wide_codes, entropies, kappas, table, best):
    """Largest I / log2 cells of order[i], start <= i < stop, with any order[j], j < i; 0 if none is above best[0].

    A pair of columns is not counted if a bound shows that it cannot win. I is at most the smaller entropy. The joint
    cells are at least the levels of either column, and one more if both have equally many levels but differ in entropy.
    For two wide columns that agree in P pairs of rows, the sum of c log2 c is at most 2 P, and there are at least
    n - P cells; this bound makes EFS on 100 x 20,000 six times as fast.
    """
    n = wide_codes.shape[1]
    most = _most_levels(levels, order)
    logs = np.empty(n + 2)
    for k in range(n + 2):
        logs[k] = np.log2(float(k))
    by_pairs = n <= MOST_PAIRED
    n_sets = (n * (n - 1) // 2 + 63) // 64 if by_pairs else 1
    left_pairs, right_pairs = np.zeros((stop - start, n_sets), np.uint64), np.zeros((BLOCK, n_sets), np.uint64)
    agreeing = np.zeros((stop - start, BLOCK), np.int64)
    left_codes, right_codes, rows = np.zeros(n, np.int64), np.zeros(n, wide_codes.dtype), np.zeros(n, np.int64)
    level_starts, seen = np.zeros(most + 2, np.int64), np.zeros(most, np.int64)
    if by_pairs:
        _agreeing_pairs(order[start:stop], levels, starts, wide_codes, left_pairs)
    groups = _by_size(rows[:0], level_starts[:1])
    largest, known = 0.0, best[0]
    for first in range(0, stop, BLOCK):
        last = min(first + BLOCK, stop)
        if by_pairs:
            _agreeing_pairs(order[first:last], levels, starts, wide_codes, right_pairs)
        for i in range(start, stop):
            f = order[i]
            if kappas[f] < 2 or entropies[f] / logs[kappas[f]] <= known:
                continue
            if by_pairs and levels[f] > NARROW:
                for j in range(last - first):
                    agreeing[i - start, j] = _n_common(left_pairs[i - start], right_pairs[j])
            is_decoded = False
            for j in range(first, min(last, i)):
                g = order[j]
                fewest = max(kappas[f], kappas[g])
                if kappas[f] == kappas[g] and entropies[f] != entropies[g]:
                    fewest += 1
                if min(entropies[f], entropies[g]) <= known * logs[fewest]:
                    continue
                if by_pairs and levels[f] > NARROW and levels[g] > NARROW:
                    n_pairs = agreeing[i - start, j - first]
                    bound = float(entropies[f] + entropies[g] - table[n] + n_pairs * table[2])
                    if bound <= known * logs[max(fewest, n - n_pairs)]:
                        continue
                if not is_decoded:
                    decode(f, levels, starts, bit_sets, wide_codes, left_codes)
                    _sort_by_level(left_codes, levels[f], rows, level_starts)
                    groups = _by_size(rows, level_starts[: levels[f] + 1])
                    is_decoded = True
                if levels[g] > NARROW:
                    joint_sum, cells = _count_rows(wide_codes[starts[g]], groups, seen, table)
                else:
                    decode(g, levels, starts, bit_sets, wide_codes, right_codes)
                    joint_sum, cells = _count_rows(right_codes, groups, seen, table)
                gain = float(entropies[f] + entropies[g] - (table[n] - joint_sum)) / logs[cells]
                if gain > known:
                    known = largest = gain
        known = max(known, best[0])
    return largest


@njit_helper
def _n_common(words, other_words):
    count = np.int64(0)
    for w in range(len(words)):
        count += popcount(words[w] & other_words[w])
    return count


@njit_helper
def _agreeing_pairs(columns, levels, starts, wide_codes, out):
    """Bit set of the pairs of rows with equal level, for each wide column; pair (a, b), a > b, is a (a - 1) / 2 + b."""
    n = wide_codes.shape[1]
    latest, earlier = np.empty(_most_levels(levels, columns), np.int64), np.empty(n, np.int64)  # rows of the same level
    for c in range(len(columns)):
        pairs = out[c]
        pairs[:] = 0
        if levels[columns[c]] > NARROW:
            codes = wide_codes[starts[columns[c]]]
            latest[:] = -1
            for a in range(n):
                earlier[a] = latest[codes[a]]
                latest[codes[a]] = a
                b = earlier[a]
                while b >= 0:
                    pair = a * (a - 1) // 2 + b
                    pairs[pair >> 6] |= np.uint64(1) << np.uint64(pair & 63)
                    b = earlier[b]


@njit_cached
def add_shared(joint, base, columns, all_, unit, taken, sums, redundancy, partners):
    """Add I(base; column) to ``sums``; where the symmetrical uncertainty is the largest so far, store it and ``taken``.

    ``joint``, ``base``, ``columns`` and ``all_`` are sums of c log2 c; ``unit`` times a bit is one.
    """
    for k in range(len(joint)):
        shared = all_ - base - columns[k] + joint[k]
        sums[k] += shared / unit
        both = 2 * all_ - base - columns[k]
        if k != taken and 2.0 * shared > redundancy[k] * both:
            redundancy[k] = 2.0 * shared / both
            partners[k] = taken
