"""What Relief needs of rows: sums of differences over columns, the nearest of each class, and weighted differences.

A tile (columns, rows) holds scaled columns, for which diff(a, b) = |a - b|, or, where capped, min(|a - b|, 1). Its
lines, and those of sums, may have more room than there are rows: what is there has no meaning.

The neighbours of a row are a line of slots, those of class c from starts[c] to starts[c + 1] - 1: a heap with the
farthest first. near (n, slots) holds their rows, -1 where empty, and far (n, slots) their distances.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .jit import njit_cached, njit_helper, njit_inline
from .vectors import address_in, plus, repeated

LANES, VECTORS, ROWS = 8, 2, 4  # what keeps all sums of a block of rows and others in registers
OTHERS = LANES * VECTORS
ABREAST = 4  # neighbours weighed at a time: near has a multiple of it

DOUBLE = ir.DoubleType()
DOUBLES = ir.VectorType(DOUBLE, LANES)


def room(n_rows):
    """How long lines must be: a multiple of OTHERS, and not one of a page, whose lines would share their cache."""
    return -(-n_rows // OTHERS) * OTHERS + LANES


@njit_cached
def lay_dense(X, rows, start, low, divisor, tile):
    """tile[f, r] = (X[rows[r], start + f] - low) / divisor of the column."""
    full = len(rows) // 8 * 8
    for r in range(0, full, 8):
        x0, x1, x2, x3 = X[rows[r]], X[rows[r + 1]], X[rows[r + 2]], X[rows[r + 3]]
        x4, x5, x6, x7 = X[rows[r + 4]], X[rows[r + 5]], X[rows[r + 6]], X[rows[r + 7]]
        for f in range(len(tile)):
            line, column = tile[f], np.uint64(start + f)
            line[r], line[r + 1], line[r + 2], line[r + 3] = x0[column], x1[column], x2[column], x3[column]
            line[r + 4], line[r + 5], line[r + 6], line[r + 7] = x4[column], x5[column], x6[column], x7[column]
    for r in range(full, len(rows)):
        for f in range(len(tile)):
            tile[f, r] = X[rows[r], start + f]
    _scale(start, low, divisor, tile, len(rows))


@njit_cached
def lay_sparse(data, indices, indptr, place, n_rows, start, low, divisor, tile):
    """The same from compressed columns, for n_rows rows; place[row] is where a row goes, or -1."""
    for f in range(len(tile)):
        line = tile[f]
        for r in range(n_rows):
            line[r] = 0.0
        for position in range(indptr[start + f], indptr[start + f + 1]):
            if place[indices[position]] >= 0:
                line[place[indices[position]]] += data[position]
    _scale(start, low, divisor, tile, n_rows)


@njit_helper
def _scale(start, low, divisor, tile, n_rows):
    for f in range(len(tile)):
        line, base, by = tile[f], low[start + f], divisor[start + f]
        for r in range(n_rows):
            line[r] = (line[r] - base) / by


def _block_adder(capped):
    @intrinsic
    def add_block(typing_context, left, i, left_room, right, j, right_room, n_columns, sums, at, sums_room):
        """sums += diff of ROWS rows from i on and OTHERS others from j on, over n_columns; at is where sums start."""

        def generate(context, builder, signature, arguments):
            left, i, left_room, right, j, right_room, n_columns, sums, at, sums_room = arguments

            def address(array, number, index, kind):
                return address_in(context, builder, array, signature.args[number], index, kind)

            one = ir.Constant(DOUBLES, [ir.Constant(DOUBLE, 1.0)] * LANES)
            size = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(DOUBLES, [DOUBLES]), f"llvm.fabs.v{LANES}f64"
            )

            def diff(a, b):
                apart = builder.call(size, [builder.fsub(a, b)])
                return builder.select(builder.fcmp_ordered("<", apart, one), apart, one) if capped else apart

            lines = [builder.add(at, builder.mul(sums_room, ir.Constant(at.type, r))) for r in range(ROWS)]
            places = [
                [address(sums, 7, plus(builder, line, LANES * v), DOUBLES) for v in range(VECTORS)] for line in lines
            ]
            totals = [
                [cgutils.alloca_once_value(builder, builder.load(place, align=8)) for place in line] for line in places
            ]
            with cgutils.for_range(builder, n_columns) as loop:
                own_at = builder.add(i, builder.mul(loop.index, left_room))
                other_at = builder.add(j, builder.mul(loop.index, right_room))
                others = [
                    builder.load(address(right, 3, plus(builder, other_at, LANES * v), DOUBLES), align=8)
                    for v in range(VECTORS)
                ]
                for r in range(ROWS):
                    own = builder.load(address(left, 0, plus(builder, own_at, r), DOUBLE), align=8)
                    own = repeated(builder, own, DOUBLES)
                    for total, other in zip(totals[r], others, strict=True):
                        builder.store(builder.fadd(builder.load(total), diff(own, other)), total)
            for r in range(ROWS):
                for total, place in zip(totals[r], places[r], strict=True):
                    builder.store(builder.load(total), place, align=8)
            return context.get_dummy_value()

        number = types.int64
        return types.void(left, number, number, right, number, number, number, sums, number, number), generate

    return add_block


_add_plain = _block_adder(capped=False)
_add_capped = _block_adder(capped=True)


@njit_cached
def add_diffs(left, height, right, width, begin, capped, sums):
    """sums[i, j] += diff(left[f, i], right[f, j]) over all f, for i < height, j < width and j >= begin + i."""
    n_columns, left_room = left.shape
    right_room, sums_room = right.shape[1], sums.shape[1]
    for j in range(0, width, OTHERS):
        for i in range(0, height, ROWS):
            if begin + i < j + OTHERS:
                at = i * sums_room + j
                if capped:
                    _add_capped(left, i, left_room, right, j, right_room, n_columns, sums, at, sums_room)
                else:
                    _add_plain(left, i, left_room, right, j, right_room, n_columns, sums, at, sums_room)


@njit_helper
def _capped(a, b):
    apart = abs(a - b)
    return apart if apart < 1.0 else 1.0


@njit_cached
def choose(distances, begin, rows, others, codes, starts, limits, other_limits, near, far, other_near, other_far):
    """Offer others to rows, and rows to others, if not too far: pairs (i, j) with j >= begin + i.

    codes are the classes of all rows. limits (rows, classes), other_limits (classes, others) say what is too far, and
    come down as slots are filled.
    """
    other_codes = codes[others]
    for i in range(len(rows)):
        line, row, limit = distances[i], rows[i], limits[i]
        own = codes[row]
        first, end, other_limit = starts[own], starts[own + 1], other_limits[own]
        for j in range(max(0, begin + i), len(others)):
            distance = _rounded(line[j])
            code = other_codes[j]
            if distance <= limit[code]:
                _offer(near, far, i, starts[code], starts[code + 1], others[j], distance)
                limit[code] = min(limit[code], far[i, starts[code]])
            if distance <= other_limit[j]:
                _offer(other_near, other_far, j, first, end, row, distance)
                other_limit[j] = min(other_limit[j], other_far[j, first])


@njit_cached
def merge(near, far, more_near, more_far, starts, rows, limits):
    """Offer to every row the neighbours found for it elsewhere, and note how far its farthest are."""
    for i in range(len(near)):
        for code in range(len(starts) - 1):
            first, end = starts[code], starts[code + 1]
            for slot in range(first, end):
                if more_near[i, slot] >= 0 and more_far[i, slot] <= far[i, first]:
                    _offer(near, far, i, first, end, more_near[i, slot], more_far[i, slot])
            limits[rows[i], code] = far[i, first]


@njit_inline
def _rounded(distance):
    """To 34 binary digits, by Veltkamp's splitting: sums that differ by rounding alone become equal."""
    large = distance * 524289.0
    return large - (large - distance)


@njit_inline
def _comes_after(distance, row, other_distance, other_row):
    return distance > other_distance or (distance == other_distance and row > other_row)


@njit_helper
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


@njit_cached
def add_weighted_diffs(tile, rows, near, weights, capped, sums):
    """sums[f] += weights[t, s] diff(tile[rows[t], f], tile[near[t, s], f]) over t and s, for a tile (rows, columns)."""
    for t in range(len(near)):
        for s in range(0, near.shape[1], ABREAST):
            if capped:
                _weigh_capped(tile, rows[t], near[t], weights[t], s, sums)
            else:
                _weigh_plain(tile, rows[t], near[t], weights[t], s, sums)


@njit_helper
def _weigh_plain(tile, row, near, weights, s, sums):
    a, b0, b1, b2, b3 = tile[row], tile[near[s]], tile[near[s + 1]], tile[near[s + 2]], tile[near[s + 3]]
    w0, w1, w2, w3 = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
    for f in range(len(sums)):
        sums[f] += (w0 * abs(a[f] - b0[f]) + w1 * abs(a[f] - b1[f])) + (w2 * abs(a[f] - b2[f]) + w3 * abs(a[f] - b3[f]))


@njit_helper
def _weigh_capped(tile, row, near, weights, s, sums):
    a, b0, b1, b2, b3 = tile[row], tile[near[s]], tile[near[s + 1]], tile[near[s + 2]], tile[near[s + 3]]
    w0, w1, w2, w3 = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
    for f in range(len(sums)):
        sums[f] += (w0 * _capped(a[f], b0[f]) + w1 * _capped(a[f], b1[f])) + (
            w2 * _capped(a[f], b2[f]) + w3 * _capped(a[f], b3[f])
        )
