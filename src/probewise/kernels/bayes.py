"""Gaussian naive Bayes from moments: class means and variances, and how many test rows they tell right.

A class c costs a row x the sum over the probe's features f of (x_f - m_cf)^2 / 2 v_cf + log(v_cf) / 2, less the
log of its prior: minus its log posterior, but for a constant. The cheapest class wins, the first of several.
"""

import math

import numpy as np

from .jit import kernel

BLOCK = 64
TILE = 2048


@kernel
def dense_moments(matrix, rows, starts, mean, variance):
    """Mean and variance of every column in class c, whose rows are rows[starts[c]:starts[c + 1]]; each (N, classes).

    Two passes, from the first row as origin: digits survive a mean far above the spread, and a constant column
    has a variance of exactly 0.
    """
    n_features, n_classes = mean.shape
    origin, center = np.empty(BLOCK), np.empty(BLOCK)
    total, square = np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, n_features, BLOCK):
        width = min(BLOCK, n_features - first)
        for c in range(n_classes):
            members = rows[starts[c] : starts[c + 1]]
            total[:] = 0.0
            square[:] = 0.0
            for k in range(width):
                origin[k] = matrix[members[0], first + k]
            for row in members:
                for k in range(width):
                    total[k] += np.float64(matrix[row, first + k]) - origin[k]
            for k in range(width):
                center[k] = origin[k] + total[k] / len(members)
                total[k] = 0.0
            for row in members:
                for k in range(width):
                    off = np.float64(matrix[row, first + k]) - center[k]
                    total[k] += off
                    square[k] += off * off
            for k in range(width):
                mean[first + k, c] = center[k]
                variance[first + k, c] = max(0.0, square[k] - total[k] * total[k] / len(members)) / len(members)


@kernel
def sparse_moments(data, indices, indptr, class_of, times, sizes, mean, variance):
    """The same from compressed columns, zeros counted; row r is taken times[r] times, sizes are those of the classes."""
    n_features, n_classes = mean.shape
    stored = np.empty(n_classes, np.int64)
    origin, total = np.empty(n_classes), np.empty(n_classes)
    shifted, square = np.empty(n_classes), np.empty(n_classes)
    for feature in range(n_features):
        stored[:] = 0
        total[:] = 0.0
        shifted[:] = 0.0
        square[:] = 0.0
        for position in range(indptr[feature], indptr[feature + 1]):
            row = indices[position]
            if times[row]:
                c, value = class_of[row], np.float64(data[position])
                if stored[c] == 0:
                    origin[c] = value
                stored[c] += times[row]
                total[c] += times[row] * value
                shifted[c] += times[row] * (value - origin[c])
        for c in range(n_classes):
            full = stored[c] == sizes[c]
            mean[feature, c] = origin[c] + shifted[c] / sizes[c] if full else total[c] / sizes[c]
        for position in range(indptr[feature], indptr[feature + 1]):
            row = indices[position]
            if times[row]:
                off = np.float64(data[position]) - mean[feature, class_of[row]]
                square[class_of[row]] += times[row] * off * off
        for c in range(n_classes):
            zeros = sizes[c] - stored[c]
            variance[feature, c] = (square[c] + zeros * mean[feature, c] * mean[feature, c]) / sizes[c]


@kernel
def probe_model(features, mean, variance, spread, smoothing, log_prior, center, scale, start):
    """The probe's own model: center m and scale sqrt(1 / 2 v) of (class, feature), and each class's cost at its mean.

    v is the variance and ``smoothing`` times the largest spread in the probe. A feature for which that is 0 in
    some class gets scale 0: it says nothing.
    """
    n_classes = mean.shape[1]
    epsilon = 0.0
    for feature in features:
        epsilon = max(epsilon, spread[feature])
    epsilon *= smoothing
    for c in range(n_classes):
        start[c] = -log_prior[c]
    for k in range(len(features)):
        feature = features[k]
        least = variance[feature, 0]
        for c in range(1, n_classes):
            least = min(least, variance[feature, c])
        silent = least + epsilon <= 0.0
        for c in range(n_classes):
            v = 1.0 if silent else variance[feature, c] + epsilon
            center[c, k] = mean[feature, c]
            scale[c, k] = 0.0 if silent else math.sqrt(0.5 / v)
            start[c] += 0.5 * math.log(v)


@kernel
def add_one(cost, x, m, s):
    for row in range(len(cost)):
        t = (x[row] - m) * s
        cost[row] += t * t


@kernel
def add_four(cost, x0, x1, x2, x3, m, s):
    """Four features at a time: the costs are read and written once for all."""
    m0, m1, m2, m3 = m[0], m[1], m[2], m[3]
    s0, s1, s2, s3 = s[0], s[1], s[2], s[3]
    for row in range(len(cost)):
        t0 = (x0[row] - m0) * s0
        t1 = (x1[row] - m1) * s1
        t2 = (x2[row] - m2) * s2
        t3 = (x3[row] - m3) * s3
        cost[row] += (t0 * t0 + t1 * t1) + (t2 * t2 + t3 * t3)


@kernel
def add_costs(values, columns, center, scale, first, stop, cost):
    """Add what the probe's columns cost rows first, ..., stop - 1 in each class, to the head of each row of cost."""
    n_classes, height, width = len(cost), stop - first, len(columns)
    whole = width - width % 4
    for k in range(0, whole, 4):
        x0, x1 = values[columns[k], first:stop], values[columns[k + 1], first:stop]
        x2, x3 = values[columns[k + 2], first:stop], values[columns[k + 3], first:stop]
        for c in range(n_classes):
            add_four(cost[c, :height], x0, x1, x2, x3, center[c, k : k + 4], scale[c, k : k + 4])
    for k in range(whole, width):
        for c in range(n_classes):
            add_one(cost[c, :height], values[columns[k], first:stop], center[c, k], scale[c, k])


@kernel
def count_right(cost, truth, winner):
    """How many rows are cheapest in their true class, the first of equals; the first row of cost is overwritten."""
    winner[:] = 0
    least = cost[0]
    for c in range(1, len(cost)):
        line = cost[c]
        for row in range(len(truth)):
            better = line[row] < least[row]
            winner[row] = c if better else winner[row]
            least[row] = line[row] if better else least[row]
    right = 0
    for row in range(len(truth)):
        right += winner[row] == truth[row]
    return right


@kernel
def dense_accuracy(values, truth, columns, features, offsets, mean, variance, spread, smoothing, log_prior, accuracy):
    """The share of rows told right, for each probe; values (columns, rows) holds the test rows.

    Position i of a probe is feature features[i] of the moments and row columns[i] of values. A row of a class
    without moments has a truth of -1.
    """
    n_classes, n_rows = mean.shape[1], len(truth)
    room = np.max(np.diff(offsets))
    center, scale = np.empty((n_classes, room)), np.empty((n_classes, room))
    start, cost = np.empty(n_classes), np.empty((n_classes, min(TILE, n_rows)))
    winner = np.empty(min(TILE, n_rows), np.int64)
    for probe in range(len(accuracy)):
        begin, end = offsets[probe], offsets[probe + 1]
        probe_model(features[begin:end], mean, variance, spread, smoothing, log_prior, center, scale, start)
        right = 0
        for first in range(0, n_rows, TILE):
            stop = min(first + TILE, n_rows)
            for c in range(n_classes):
                cost[c] = start[c]
            add_costs(values, columns[begin:end], center, scale, first, stop, cost)
            right += count_right(cost, truth[first:stop], winner)
        accuracy[probe] = right / n_rows


@kernel
def sparse_accuracy(
    data, indices, indptr, truth, features, offsets, mean, variance, spread, smoothing, log_prior, accuracy
):
    """The same from compressed columns: every row starts from what zeros cost, stored values make the difference."""
    n_classes, n_rows = mean.shape[1], len(truth)
    room = np.max(np.diff(offsets))
    center, scale = np.empty((n_classes, room)), np.empty((n_classes, room))
    start, pull, sharp = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    cost = np.empty((n_rows, n_classes))
    for probe in range(len(accuracy)):
        chosen = features[offsets[probe] : offsets[probe + 1]]
        probe_model(chosen, mean, variance, spread, smoothing, log_prior, center, scale, start)
        for c in range(n_classes):
            for k in range(len(chosen)):
                t = center[c, k] * scale[c, k]
                start[c] += t * t
        for row in range(n_rows):
            cost[row] = start
        for k in range(len(chosen)):
            for c in range(n_classes):
                sharp[c] = scale[c, k]
                pull[c] = 2.0 * center[c, k] * scale[c, k]
            for position in range(indptr[chosen[k]], indptr[chosen[k] + 1]):
                value = np.float64(data[position])
                line = cost[indices[position]]
                for c in range(n_classes):
                    t = value * sharp[c]
                    line[c] += t * (t - pull[c])
        right = 0
        for row in range(n_rows):
            right += np.argmin(cost[row]) == truth[row]
        accuracy[probe] = right / n_rows


@kernel
def take_columns(matrix, rows, columns, out):
    """out[k, i] = matrix[rows[i], columns[k]]."""
    for k in range(len(columns)):
        for i in range(len(rows)):
            out[k, i] = matrix[rows[i], columns[k]]
