"""Codes of columns as bit sets, and their joint counts with one other column: c log2 c summed over the cells.

A narrow column (few levels) is a bit set for each level but the first; a wide one is a row of level numbers. Sums are
of whole numbers (see `intervals.entropy_table`): the same bits in any order.
"""

import numpy as np

from .jit import kernel, part
from .lanes import popcount

NARROW = 4  # levels of the widest column that is kept as bit sets


@kernel
def load_dense(matrix, start, out):
    """out[c] = column start + c of a matrix."""
    n_columns, n = out.shape
    for i in range(n):
        line = matrix[i]
        for c in range(n_columns):
            out[c, i] = line[start + c]


@kernel
def load_sparse(data, indices, indptr, start, out):
    """The same from compressed columns."""
    for c in range(out.shape[0]):
        line = out[c]
        for i in range(len(line)):
            line[i] = 0.0
        for position in range(indptr[start + c], indptr[start + c + 1]):
            line[indices[position]] += data[position]


@kernel
def spread(values, means, deviations):
    """Mean and population standard deviation of each row."""
    n = values.shape[1]
    for c in range(values.shape[0]):
        line = values[c]
        total = 0.0
        for i in range(n):
            total += line[i] - line[0]
        mean = total / n
        square = 0.0
        for i in range(n):
            apart = line[i] - line[0] - mean
            square += apart * apart
        means[c] = line[0] + mean
        deviations[c] = np.sqrt(square / n)


@kernel
def encode(values, start, cuts, offsets, levels, place, planes, wide):
    """The level of each value, the number of cuts below it, into the bit sets or the wide row of its column."""
    n_columns, n = values.shape
    n_words = (n + 63) // 64
    for c in range(n_columns):
        column = start + c
        line = values[c]
        own = cuts[offsets[column] : offsets[column + 1]]
        at = place[column]
        if levels[column] > NARROW:
            _encode_wide(line, own, wide[at])
        elif len(own) == 1:
            _encode_two(line, own[0], planes[at : at + n_words])
        elif len(own) > 1:
            _encode_narrow(line, own, planes[at : at + len(own) * n_words], n_words)


@part
def _encode_wide(line, own, out):
    for i in range(len(line)):
        out[i] = _level(line[i], own)


@part
def _level(value, own):
    """How many of the ascending cuts are below the value."""
    low, high = 0, len(own)
    while low < high:
        middle = (low + high) // 2
        if own[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@part
def _encode_two(line, cut, words):
    n = len(line)
    for w in range(len(words)):
        bits = np.uint64(0)
        for i in range(64 * w, min(64 * w + 64, n)):
            bits |= np.uint64(line[i] > cut) << np.uint64(i & 63)
        words[w] = bits


@part
def _encode_narrow(line, own, words, n_words):
    """Above each cut first, then, from the last down, what is above one cut but not the next."""
    for level in range(len(own)):
        _encode_two(line, own[level], words[level * n_words : (level + 1) * n_words])
    for w in range(n_words * (len(own) - 1)):
        words[w] &= ~words[w + n_words]


@kernel
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


@kernel
def joint(columns, levels, place, planes, wide, base, n_base, table, sums, cells):
    """For each of the columns: the sum of c log2 c over the cells it makes with ``base``, and the cells not empty."""
    n = len(base)
    n_words = (n + 63) // 64
    margin, rows, starts = _by_level(base, n_base)
    masks = np.zeros((n_base - 1) * n_words if n_base <= 64 else 0, np.uint64)
    if n_base <= 64:
        for i in range(n):
            if base[i] > 0:
                masks[(base[i] - 1) * n_words + i // 64] |= np.uint64(1) << np.uint64(i & 63)
    counts = np.zeros((NARROW, min(n_base, 64)), np.int64)
    widest = 1
    for k in range(len(columns)):
        widest = max(widest, levels[columns[k]])
    seen = np.zeros(widest, np.int64)
    codes = np.zeros(n, np.int64)
    for k in range(len(columns)):
        column = columns[k]
        K = levels[column]
        at = place[column]
        if K <= NARROW and n_base <= 64 and (K - 1) * (n_base - 1) * n_words <= 2 * n:
            sums[k], cells[k] = _count_bits(
                planes[at : at + (K - 1) * n_words], K, masks, n_base, n_words, margin, counts, table
            )
        elif K <= NARROW:
            decode(column, levels, place, planes, wide, codes)
            sums[k], cells[k] = _count_rows(codes, rows, starts, seen, table)
        else:
            sums[k], cells[k] = _count_rows(wide[at], rows, starts, seen, table)


@part
def _by_level(base, n_base):
    """How many rows have each level, and the rows sorted by it with where each level starts."""
    margin = np.zeros(n_base, np.int64)
    for i in range(len(base)):
        margin[base[i]] += 1
    starts = np.zeros(n_base + 1, np.int64)
    for level in range(n_base):
        starts[level + 1] = starts[level] + margin[level]
    following = starts.copy()
    rows = np.empty(len(base), np.int64)
    for i in range(len(base)):
        rows[following[base[i]]] = i
        following[base[i]] += 1
    return margin, rows, starts


@part
def _count_bits(words, K, masks, n_base, n_words, margin, counts, table):
    for m in range(n_base):
        counts[0, m] = margin[m]
    for level in range(1, K):
        own = words[(level - 1) * n_words : level * n_words]
        rest = np.int64(0)
        for w in range(n_words):
            rest += popcount(own[w])
        for m in range(1, n_base):
            other = masks[(m - 1) * n_words : m * n_words]
            both = np.int64(0)
            for w in range(n_words):
                both += popcount(own[w] & other[w])
            counts[level, m] = both
            counts[0, m] -= both
            rest -= both
        counts[level, 0] = rest
        counts[0, 0] -= rest
    total, cells = np.int64(0), 0
    for level in range(K):
        for m in range(n_base):
            total += table[counts[level, m]]
            cells += counts[level, m] > 0
    return total, cells


@part
def _count_rows(codes, rows, starts, seen, table):
    """Row by row, one level of the base after the other; ``seen`` is all zero before and after."""
    total, cells = np.int64(0), 0
    for level in range(len(starts) - 1):
        for position in range(starts[level], starts[level + 1]):
            seen[codes[rows[position]]] += 1
        for position in range(starts[level], starts[level + 1]):
            code = codes[rows[position]]
            if seen[code] > 0:
                total += table[seen[code]]
                cells += 1
                seen[code] = 0
    return total, cells


@kernel
def largest_gain(order, start, stop, levels, place, planes, wide, entropies, kappas, table, best):
    """The largest I / log2 cells of order[i], start <= i < stop, with any order[j], j < i, or 0 if none beats best[0].

    I is at most the smaller entropy. Joint cells are at least those of either, and one more where the two have equally
    many but differ in entropy: a pair whose bound is not above the best known is not counted.
    """
    n = wide.shape[1]
    n_words = (n + 63) // 64
    seen = np.zeros(np.max(levels), np.int64)
    counts = np.zeros((NARROW, NARROW), np.int64)
    mine, other = np.zeros(n, np.int64), np.zeros(n, np.int64)
    found = 0.0
    known = 0.0
    for i in range(start, stop):
        f = order[i]
        K = levels[f]
        known = max(known, best[0])
        if kappas[f] < 2 or entropies[f] / np.log2(float(kappas[f])) <= known:
            continue
        decode(f, levels, place, planes, wide, mine)
        margin, rows, starts = _by_level(mine, K)
        words = planes[place[f] : place[f] + (K - 1) * n_words] if K <= NARROW else planes[:0]
        for j in range(i):
            g = order[j]
            least = max(kappas[f], kappas[g])
            if kappas[f] == kappas[g] and entropies[f] != entropies[g]:
                least += 1
            if min(entropies[f], entropies[g]) <= known * np.log2(float(least)):
                continue
            if K <= NARROW and levels[g] <= NARROW:
                theirs = planes[place[g] : place[g] + (levels[g] - 1) * n_words]
                joint_sum, cells = _count_bits(theirs, levels[g], words, K, n_words, margin, counts, table)
            else:
                decode(g, levels, place, planes, wide, other)
                joint_sum, cells = _count_rows(other, rows, starts, seen, table)
            gain = float(entropies[f] + entropies[g] - (table[n] - joint_sum)) / np.log2(float(cells))
            if gain > known:
                known = gain
                found = gain
    return found
