"""Mean and scatter of every column inside every class, in one pass over the data as it lies in memory.

Scatter is the sum of squared distances from the mean. Means are kept as offsets from an origin, one of the column's
own values, and every run of rows is summed as distances from its first value: no digits are lost to a column that
lies far from zero. Runs join by Chan's formula, so rounding does not grow with the number of rows.
"""

import numba
import numpy as np

from .jit import njit_cached, njit_helper

ROWS = 1024  # rows put in order of class together: near in memory, and rounding stays small
STRIP = 1024  # columns summed together: their sums stay in the cache


@njit_cached
def runs_of_classes(codes, n_classes):
    """Rows in order of class inside blocks of ROWS: the rows, the class of every run, and where runs begin and end."""
    n_rows = len(codes)
    rows = np.empty(n_rows, np.uint64)
    classes = np.empty(n_rows, np.int64)
    begins = np.empty(n_rows + 1, np.int64)
    places = np.empty(n_classes, np.int64)
    n_runs = 0
    for block in range(0, n_rows, ROWS):
        block_end = min(block + ROWS, n_rows)
        for i in range(n_classes):
            places[i] = 0
        for row in range(block, block_end):
            places[codes[row]] += 1
        place = block
        for i in range(n_classes):
            count = places[i]
            places[i] = place
            if count:
                classes[n_runs] = i
                begins[n_runs] = place
                n_runs += 1
            place += count
        for row in range(block, block_end):
            rows[places[codes[row]]] = row
            places[codes[row]] += 1
    begins[n_runs] = n_rows
    return rows, classes[:n_runs].copy(), begins[: n_runs + 1].copy()


@njit_cached
def moments_of_rows(matrix, start, rows, classes, begins, origins, offsets, scatters):
    """Of the columns from ``start`` on of a matrix in C order; offsets and scatters begin as 0. NaN gives NaN."""
    shifts, totals, squares = np.empty(STRIP), np.empty(STRIP), np.empty(STRIP)
    seen = np.empty(len(offsets), np.int64)
    eight = np.empty(8, np.uint64)
    for first in range(0, len(origins), STRIP):
        last = min(first + STRIP, len(origins))
        left, right = start + first, start + last
        origin = origins[first:last]
        shift, total, square = shifts[: len(origin)], totals[: len(origin)], squares[: len(origin)]
        begin_run(matrix[rows[0], left:right], origin, total, square)
        for i in range(len(seen)):
            seen[i] = 0
        for run in range(len(classes)):
            begin, end, i = begins[run], begins[run + 1], classes[run]
            begin_run(matrix[rows[begin], left:right], shift, total, square)
            for place in range(begin + 1, end, 8):
                for k in range(8):  # the run's first row, at distance 0, stands in for rows after its last
                    eight[k] = rows[place + k] if place + k < end else rows[begin]
                a, b, c, d = eight[0], eight[1], eight[2], eight[3]
                e, f, g, h = eight[4], eight[5], eight[6], eight[7]
                add_eight_rows(
                    matrix[a, left:right], matrix[b, left:right], matrix[c, left:right], matrix[d, left:right],
                    matrix[e, left:right], matrix[f, left:right], matrix[g, left:right], matrix[h, left:right],
                    shift, total, square,
                )  # fmt: skip
            strip_offsets, strip_scatters = offsets[i, first:last], scatters[i, first:last]
            join_run(end - begin, seen[i], origin, shift, total, square, strip_offsets, strip_scatters)
            seen[i] += end - begin


@njit_helper
def begin_run(line, shifts, totals, squares):
    for j in range(len(shifts)):
        shifts[j] = line[j]
        totals[j] = 0.0
        squares[j] = 0.0


@njit_helper
def add_eight_rows(a, b, c, d, e, f, g, h, shifts, totals, squares):
    """Eight at once: the sums are fetched and stored once for eight, and eight reads are under way together."""
    for j in range(len(shifts)):
        p, q, r, s = a[j] - shifts[j], b[j] - shifts[j], c[j] - shifts[j], d[j] - shifts[j]
        t, u, v, w = e[j] - shifts[j], f[j] - shifts[j], g[j] - shifts[j], h[j] - shifts[j]
        totals[j] += ((p + q) + (r + s)) + ((t + u) + (v + w))
        squares[j] += ((p * p + q * q) + (r * r + s * s)) + ((t * t + u * u) + (v * v + w * w))


@njit_helper
def join_run(count, before, origins, shifts, totals, squares, offsets, scatters):
    """Chan's formula: ``count`` rows, as sums of their distances from ``shifts``, join ``before`` rows."""
    share = count / (before + count)
    for j in range(len(shifts)):
        mean = totals[j] / count
        step = (shifts[j] - origins[j]) + mean - offsets[j]
        offsets[j] += step * share
        scatters[j] += (squares[j] - totals[j] * mean) + step * step * (share * before)


@njit_cached
def moments_of_columns(columns, start, into, rows, classes, begins, origins, counts, offsets, scatters):
    """Of the rows of ``columns`` from ``start`` on, one for each place in ``into``; NaN is left out, not counted."""
    values = np.empty(ROWS)
    for place in range(len(into)):
        line, j = columns[start + place], into[place]
        for i in range(len(counts)):
            counts[i, j] = 0
            offsets[i, j] = 0.0
            scatters[i, j] = 0.0
        origin = np.nan
        for run in range(len(classes)):
            begin, end, i = begins[run], begins[run + 1], classes[run]
            take(line, rows[begin:end], values)
            shift = first_known(values[: end - begin])
            if shift != shift:
                continue
            if origin != origin:
                origin = shift
            count, total, square = sums_of_known(values[: end - begin], shift)
            mean = total / count
            share = count / (counts[i, j] + count)
            step = (shift - origin) + mean - offsets[i, j]
            offsets[i, j] += step * share
            scatters[i, j] += (square - total * mean) + step * step * (share * counts[i, j])
            counts[i, j] += count
        origins[j] = origin if origin == origin else 0.0


@njit_helper
def take(line, rows, values):
    for place in range(len(rows)):
        values[place] = line[rows[place]]


@njit_helper
def first_known(values):
    for place in range(len(values)):
        if values[place] == values[place]:
            return values[place]
    return np.nan


def sums_of_known(values, shift):
    """How many values are not NaN, and the sums of their distances from ``shift`` and of the squares."""
    count = total = square = 0.0
    for place in range(len(values)):
        known = values[place] == values[place]
        distance = values[place] - shift if known else 0.0
        count += 1.0 if known else 0.0
        total += distance
        square += distance * distance
    return count, total, square


# The order of the sum is the compiler's, so that it can use vectors; it depends on the number of values only.
sums_of_known = numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc"})(sums_of_known)


@njit_cached
def moments_of_stored(data, indices, indptr, by_column, codes, origins, counts, missing, offsets, scatters):
    """Of the stored values of a compressed matrix, lines of which are columns or rows, one by one (Welford)."""
    for line in range(len(indptr) - 1):
        for place in range(indptr[line], indptr[line + 1]):
            j = line if by_column else indices[place]
            i = codes[indices[place] if by_column else line]
            value = data[place]
            if value != value:
                missing[i, j] += 1
                continue
            distance = value - origins[j]
            step = distance - offsets[i, j]
            counts[i, j] += 1
            offsets[i, j] += step / counts[i, j]
            scatters[i, j] += step * (distance - offsets[i, j])


@njit_cached
def join_zeros(n_rows, missing, origins, counts, offsets, scatters):
    """Chan's formula: the rows of each class that have no stored value join as zeros."""
    for i in range(len(n_rows)):
        for j in range(len(origins)):
            zeros = n_rows[i] - missing[i, j] - counts[i, j]
            if zeros > 0:
                share = zeros / (counts[i, j] + zeros)
                step = -origins[j] - offsets[i, j]
                offsets[i, j] += step * share
                scatters[i, j] += step * step * (share * counts[i, j])
                counts[i, j] += zeros


@njit_cached
def variances(counts, offsets, scatters, between, within, whole):
    """Of every column: variance of the class means, mean of the classes' own (n - 1), and of all values.

    NaN where fewer than two classes have a value. ``counts`` has one column for all, or one for each.
    """
    width = counts.shape[1]
    n_values, means, present = np.empty(STRIP), np.empty(STRIP), np.empty(STRIP)
    for left in range(0, len(between), STRIP):
        right = min(left + STRIP, len(between))
        n, mean, n_classes = n_values[: right - left], means[: right - left], present[: right - left]
        strip_between, strip_within, strip_whole = between[left:right], within[left:right], whole[left:right]
        for j in range(len(n)):
            n[j] = 0.0
            mean[j] = 0.0
            n_classes[j] = 0.0
            strip_between[j] = 0.0
            strip_within[j] = 0.0
            strip_whole[j] = 0.0
        for i in range(len(offsets)):
            class_offsets, class_scatters = offsets[i, left:right], scatters[i, left:right]
            for j in range(len(n)):
                count = np.float64(counts[i, left + j if width > 1 else 0])
                share = count / max(n[j] + count, 1.0)
                step = class_offsets[j] - mean[j]
                strip_between[j] += step * step * (share * n[j])
                strip_within[j] += class_scatters[j] * (count / max(count - 1.0, 1.0))
                strip_whole[j] += class_scatters[j]
                mean[j] += step * share
                n[j] += count
                n_classes[j] += 1.0 if count > 0.0 else 0.0
        for j in range(len(n)):
            values = n[j] if n_classes[j] > 1.0 else np.nan
            strip_whole[j] = (strip_whole[j] + strip_between[j]) / values
            strip_between[j] /= values
            strip_within[j] /= values
