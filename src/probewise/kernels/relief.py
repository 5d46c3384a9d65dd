"""What Relief needs of rows: sums of differences over columns, the nearest of each class, and weighted differences.

A tile (columns, rows) holds scaled columns, for which diff(a, b) = |a - b|, or, where capped, min(|a - b|, 1).

The neighbours of a row are a line of slots, those of class c from starts[c] to starts[c + 1] - 1: a heap with the
farthest first. near (n, slots) holds their rows, -1 where empty, and far (n, slots) their distances.
"""

import numpy as np

from .jit import inline, kernel, part

TOGETHER = 8  # columns added at a time: a tile has a multiple of it, the last ones 0 where need be
LINES, CHUNK = 64, 256  # lines of sums, and a length of them, that stay in the cache while columns pass
ABREAST = 4  # neighbours weighed at a time: near has a multiple of it


@kernel
def lay_dense(X, rows, start, width, low, divisor, tile):
    """tile[f, r] = (X[rows[r], start + f] - low) / divisor of the column, for f < width, and 0 after."""
    full = len(rows) // 8 * 8
    for r in range(0, full, 8):
        x0, x1, x2, x3 = X[rows[r]], X[rows[r + 1]], X[rows[r + 2]], X[rows[r + 3]]
        x4, x5, x6, x7 = X[rows[r + 4]], X[rows[r + 5]], X[rows[r + 6]], X[rows[r + 7]]
        for f in range(width):
            line, column = tile[f], np.uint64(start + f)
            line[r], line[r + 1], line[r + 2], line[r + 3] = x0[column], x1[column], x2[column], x3[column]
            line[r + 4], line[r + 5], line[r + 6], line[r + 7] = x4[column], x5[column], x6[column], x7[column]
    for r in range(full, len(rows)):
        for f in range(width):
            tile[f, r] = X[rows[r], start + f]
    _scale(start, width, low, divisor, tile)


@kernel
def lay_sparse(data, indices, indptr, place, start, width, low, divisor, tile):
    """The same from compressed columns; place[row] is where a row goes, or -1."""
    for f in range(width):
        line = tile[f]
        for r in range(len(line)):
            line[r] = 0.0
        for position in range(indptr[start + f], indptr[start + f + 1]):
            if place[indices[position]] >= 0:
                line[place[indices[position]]] += data[position]
    _scale(start, width, low, divisor, tile)


@part
def _scale(start, width, low, divisor, tile):
    for f in range(len(tile)):
        line = tile[f]
        if f < width:
            base, by = low[start + f], divisor[start + f]
            for r in range(len(line)):
                line[r] = (line[r] - base) / by
        else:
            for r in range(len(line)):
                line[r] = 0.0


@kernel
def add_diffs(left, right, begin, capped, sums):
    """sums[i, j] += diff(left[f, i], right[f, j]) over all f, for j >= begin + i."""
    n_columns, height = left.shape
    width = right.shape[1]
    for start in range(0, width, CHUNK):
        end = min(start + CHUNK, width)
        for top in range(0, height, LINES):
            for f in range(0, n_columns, TOGETHER):
                for i in range(top, min(top + LINES, height)):
                    first = np.uint64(max(start, begin + i))
                    if capped:
                        _add_capped(left, i, right, f, first, np.uint64(end), sums[i])
                    else:
                        _add_plain(left, i, right, f, first, np.uint64(end), sums[i])


@part
def _add_plain(left, i, right, f, first, end, out):
    a0, a1, a2, a3 = left[f, i], left[f + 1, i], left[f + 2, i], left[f + 3, i]
    a4, a5, a6, a7 = left[f + 4, i], left[f + 5, i], left[f + 6, i], left[f + 7, i]
    b0, b1, b2, b3 = right[f], right[f + 1], right[f + 2], right[f + 3]
    b4, b5, b6, b7 = right[f + 4], right[f + 5], right[f + 6], right[f + 7]
    for j in range(first, end):
        out[j] += ((abs(a0 - b0[j]) + abs(a1 - b1[j])) + (abs(a2 - b2[j]) + abs(a3 - b3[j]))) + (
            (abs(a4 - b4[j]) + abs(a5 - b5[j])) + (abs(a6 - b6[j]) + abs(a7 - b7[j]))
        )


@part
def _add_capped(left, i, right, f, first, end, out):
    a0, a1, a2, a3 = left[f, i], left[f + 1, i], left[f + 2, i], left[f + 3, i]
    a4, a5, a6, a7 = left[f + 4, i], left[f + 5, i], left[f + 6, i], left[f + 7, i]
    b0, b1, b2, b3 = right[f], right[f + 1], right[f + 2], right[f + 3]
    b4, b5, b6, b7 = right[f + 4], right[f + 5], right[f + 6], right[f + 7]
    for j in range(first, end):
        out[j] += ((_capped(a0, b0[j]) + _capped(a1, b1[j])) + (_capped(a2, b2[j]) + _capped(a3, b3[j]))) + (
            (_capped(a4, b4[j]) + _capped(a5, b5[j])) + (_capped(a6, b6[j]) + _capped(a7, b7[j]))
        )


@part
def _capped(a, b):
    apart = abs(a - b)
    return apart if apart < 1.0 else 1.0


@kernel
def choose(distances, begin, rows, others, codes, starts, limits, other_limits, near, far, other_near, other_far):
    """Offer others to rows, and rows to others, if not too far: pairs (i, j) with j >= begin + i.

    codes are the classes of all rows. limits (rows, classes), other_limits (classes, others) say what is too far, and
    come down as slots are filled.
    """
    other_codes = codes[others]
    for i in range(len(distances)):
        line, row, limit = distances[i], rows[i], limits[i]
        own = codes[row]
        first, end, other_limit = starts[own], starts[own + 1], other_limits[own]
        for j in range(max(0, begin + i), len(line)):
            distance = _rounded(line[j])
            code = other_codes[j]
            if distance <= limit[code]:
                _offer(near, far, i, starts[code], starts[code + 1], others[j], distance)
                limit[code] = min(limit[code], far[i, starts[code]])
            if distance <= other_limit[j]:
                _offer(other_near, other_far, j, first, end, row, distance)
                other_limit[j] = min(other_limit[j], other_far[j, first])


@kernel
def merge(near, far, more_near, more_far, starts, rows, limits):
    """Offer to every row the neighbours found for it elsewhere, and note how far its farthest are."""
    for i in range(len(near)):
        for code in range(len(starts) - 1):
            first, end = starts[code], starts[code + 1]
            for slot in range(first, end):
                if more_near[i, slot] >= 0 and more_far[i, slot] <= far[i, first]:
                    _offer(near, far, i, first, end, more_near[i, slot], more_far[i, slot])
            limits[rows[i], code] = far[i, first]


@inline
def _rounded(distance):
    """To 34 binary digits, by Veltkamp's splitting: sums that differ by rounding alone become equal."""
    large = distance * 524289.0
    return large - (large - distance)


@inline
def _comes_after(distance, row, other_distance, other_row):
    return distance > other_distance or (distance == other_distance and row > other_row)


@part
def _offer(near, far, i, first, end, row, distance):
    """Let the row take the place of the farthest in slots first..end - 1 of line i, if it comes before that one."""
    if not _comes_after(far[i, first], near[i, first], distance, row):
        return
    place = first
    while True:
        child = 2 * place - first + 1
        if child >= end:
            break
        if child + 1 < end and _comes_after(far[i, child + 1], near[i, child + 1], far[i, child], near[i, child]):
            child += 1
        if not _comes_after(far[i, child], near[i, child], distance, row):
            break
        far[i, place] = far[i, child]
        near[i, place] = near[i, child]
        place = child
    far[i, place] = distance
    near[i, place] = row


@kernel
def add_weighted_diffs(tile, rows, near, weights, capped, sums):
    """sums[f] += weights[t, s] diff(tile[rows[t], f], tile[near[t, s], f]) over t and s, for a tile (rows, columns)."""
    for t in range(len(near)):
        for s in range(0, near.shape[1], ABREAST):
            if capped:
                _weigh_capped(tile, rows[t], near[t], weights[t], s, sums)
            else:
                _weigh_plain(tile, rows[t], near[t], weights[t], s, sums)


@part
def _weigh_plain(tile, row, near, weights, s, sums):
    a, b0, b1, b2, b3 = tile[row], tile[near[s]], tile[near[s + 1]], tile[near[s + 2]], tile[near[s + 3]]
    w0, w1, w2, w3 = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
    for f in range(len(sums)):
        sums[f] += (w0 * abs(a[f] - b0[f]) + w1 * abs(a[f] - b1[f])) + (w2 * abs(a[f] - b2[f]) + w3 * abs(a[f] - b3[f]))


@part
def _weigh_capped(tile, row, near, weights, s, sums):
    a, b0, b1, b2, b3 = tile[row], tile[near[s]], tile[near[s + 1]], tile[near[s + 2]], tile[near[s + 3]]
    w0, w1, w2, w3 = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
    for f in range(len(sums)):
        sums[f] += (w0 * _capped(a[f], b0[f]) + w1 * _capped(a[f], b1[f])) + (
            w2 * _capped(a[f], b2[f]) + w3 * _capped(a[f], b3[f])
        )
