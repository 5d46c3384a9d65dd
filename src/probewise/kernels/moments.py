"""Mean and scatter of every column in every class, in one pass over the data in memory order.

The scatter is the sum of squared distances from the mean. A run is a sequence of rows of the same class. Means are
stored as offsets from an origin, which is a value of the column, and the sums over a run use distances from its first
value, so a column far from zero loses no digits. Runs are combined by Chan's formula, so rounding errors do not grow
with the number of rows.
"""

import numba
import numpy as np

from .jit import njit_cached, njit_helper

ROWS = 1024  # rows sorted by class at a time: they are close in memory, and rounding errors stay small
STRIP = 1024  # columns summed at a time: their sums stay in the cache


def runs_of_classes(codes, n_classes):
    """Row numbers sorted by class within blocks of ROWS rows, the class of every run, and the borders of the runs."""
    run_of_row = np.arange(len(codes)) // ROWS * n_classes + codes
    rows = np.argsort(run_of_row, kind="stable")
    runs, begins = np.unique(run_of_row[rows], return_index=True)
    return rows.astype(np.uint64), runs % n_classes, np.append(begins, len(codes))


@njit_cached
def moments_of_rows(matrix, start, rows, classes, begins, origins, offsets, scatters):
    """Add the columns from ``start`` on of a matrix in C order to offsets and scatters of 0; NaN gives NaN."""
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
            for position in range(begin + 1, end, 8):
                for k in range(8):  # the run's first row, at distance 0, pads the last eight rows
                    eight[k] = rows[position + k] if position + k < end else rows[begin]
                a, b, c, d = eight[0], eight[1], eight[2], eight[3]
                e, f, g, h = eight[4], eight[5], eight[6], eight[7]
                add_eight_rows(
                    matrix[a, left:right], matrix[b, left:right], matrix[c, left:right], matrix[d, left:right],
                    matrix[e, left:right], matrix[f, left:right], matrix[g, left:right], matrix[h, left:right],
                    shift, total, square,
                )  # fmt: skip
            strip_offsets, strip_scatters = offsets[i, first:last], scatters[i, first:last]
            add_run(end - begin, seen[i], origin, shift, total, square, strip_offsets, strip_scatters)
            seen[i] += end - begin


@njit_helper
def begin_run(first_row, shifts, totals, squares):
    for j in range(len(shifts)):
        shifts[j] = first_row[j]
        totals[j] = 0.0
        squares[j] = 0.0


@njit_helper
def add_eight_rows(a, b, c, d, e, f, g, h, shifts, totals, squares):
    """Add eight rows to the sums at once, which loads and stores the sums once and overlaps eight reads."""
    for j in range(len(shifts)):
        p, q, r, s = a[j] - shifts[j], b[j] - shifts[j], c[j] - shifts[j], d[j] - shifts[j]
        t, u, v, w = e[j] - shifts[j], f[j] - shifts[j], g[j] - shifts[j], h[j] - shifts[j]
        totals[j] += ((p + q) + (r + s)) + ((t + u) + (v + w))
        squares[j] += ((p * p + q * q) + (r * r + s * s)) + ((t * t + u * u) + (v * v + w * w))


@njit_helper
def add_run(count, n_before, origins, shifts, totals, squares, offsets, scatters):
    """Add a run of ``count`` rows, as sums of distances from ``shifts``, to ``n_before`` rows (Chan's formula)."""
    share = count / (n_before + count)
    for j in range(len(shifts)):
        mean = totals[j] / count
        step = (shifts[j] - origins[j]) + mean - offsets[j]
        offsets[j] += step * share
        scatters[j] += (squares[j] - totals[j] * mean) + step * step * (share * n_before)


@njit_cached
def moments_of_columns(columns, start, features, rows, classes, begins, origins, counts, offsets, scatters):
    """Compute the moments of ``features``, whose values are in ``columns`` from ``start`` on; NaN is not counted."""
    values = np.empty(ROWS)
    for number in range(len(features)):
        column, j = columns[start + number], features[number]
        for i in range(len(counts)):
            counts[i, j] = 0
            offsets[i, j] = 0.0
            scatters[i, j] = 0.0
        origin = np.nan
        for run in range(len(classes)):
            begin, end, i = begins[run], begins[run + 1], classes[run]
            take(column, rows[begin:end], values)
            shift = first_not_nan(values[: end - begin])
            if shift != shift:  # all values of the run are NaN
                continue
            if origin != origin:
                origin = shift
            count, total, square = sums_without_nan(values[: end - begin], shift)
            mean = total / count
            share = count / (counts[i, j] + count)
            step = (shift - origin) + mean - offsets[i, j]
            offsets[i, j] += step * share
            scatters[i, j] += (square - total * mean) + step * step * (share * counts[i, j])
            counts[i, j] += count
        origins[j] = origin if origin == origin else 0.0


@njit_helper
def take(column, rows, values):
    for k in range(len(rows)):
        values[k] = column[rows[k]]


@njit_helper
def first_not_nan(values):
    for value in values:
        if value == value:
            return value
    return np.nan


def sums_without_nan(values, shift):
    """Number of values that are not NaN, and the sums of their distances from ``shift`` and of the squares."""
    count = total = square = 0.0
    for k in range(len(values)):
        is_known = values[k] == values[k]
        distance = values[k] - shift if is_known else 0.0
        count += 1.0 if is_known else 0.0
        total += distance
        square += distance * distance
    return count, total, square


# The compiler may reorder the sums to use vectors; the order depends only on the number of values.
sums_without_nan = numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc"})(sums_without_nan)


@njit_cached
def moments_of_stored(data, indices, indptr, by_column, codes, origins, counts, missing, offsets, scatters):
    """Add the stored values of a CSC matrix (``by_column``) or CSR matrix one by one (Welford's algorithm)."""
    for major in range(len(indptr) - 1):
        for position in range(indptr[major], indptr[major + 1]):
            j = major if by_column else indices[position]
            i = codes[indices[position] if by_column else major]
            value = data[position]
            if value != value:
                missing[i, j] += 1
                continue
            distance = value - origins[j]
            step = distance - offsets[i, j]
            counts[i, j] += 1
            offsets[i, j] += step / counts[i, j]
            scatters[i, j] += step * (distance - offsets[i, j])


@njit_cached
def add_zeros(n_rows, missing, origins, counts, offsets, scatters):
    """Add the values that are not stored, which are zeros, to the moments of each class (Chan's formula)."""
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
def variances(counts, offsets, scatters, between, within, total):
    """Variance of the class means, mean variance within classes (divided by n - 1), and variance of all values.

    The variances of a column are NaN if fewer than two classes have values. ``counts`` has one column for each feature,
    or a single column for all features.
    """
    width = counts.shape[1]
    all_n, all_means, all_n_classes = np.empty(STRIP), np.empty(STRIP), np.empty(STRIP)
    for left in range(0, len(between), STRIP):
        right = min(left + STRIP, len(between))
        n, mean, n_classes = all_n[: right - left], all_means[: right - left], all_n_classes[: right - left]
        strip_between, strip_within, strip_total = between[left:right], within[left:right], total[left:right]
        for j in range(len(n)):
            n[j] = 0.0
            mean[j] = 0.0
            n_classes[j] = 0.0
            strip_between[j] = 0.0
            strip_within[j] = 0.0
            strip_total[j] = 0.0
        for i in range(len(offsets)):
            class_offsets, class_scatters = offsets[i, left:right], scatters[i, left:right]
            for j in range(len(n)):
                count = np.float64(counts[i, left + j if width > 1 else 0])
                share = count / max(n[j] + count, 1.0)
                step = class_offsets[j] - mean[j]
                strip_between[j] += step * step * (share * n[j])
                strip_within[j] += class_scatters[j] * (count / max(count - 1.0, 1.0))
                strip_total[j] += class_scatters[j]
                mean[j] += step * share
                n[j] += count
                n_classes[j] += 1.0 if count > 0.0 else 0.0
        for j in range(len(n)):
            divisor = n[j] if n_classes[j] > 1.0 else np.nan
            strip_total[j] = (strip_total[j] + strip_between[j]) / divisor
            strip_between[j] /= divisor
            strip_within[j] /= divisor
