"""Gaussian naive Bayes: class means and variances of columns, and predictions from them.

A class c costs a row x the sum over the probe's features f of (x_f - m_cf)^2 / 2 v_cf + log(v_cf) / 2, less the
log of its prior: minus its log posterior, but for a constant. The cheapest class wins, the first of several.

Costs are found in float32 first, as differences to those of the first class, which are quadratic in x. The rounding
of these has a bound; rows for which it leaves doubt are predicted again in float64.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .jit import longest, njit_cached
from .scores import PROBABILITY, ROC_AUC

BLOCK = 64  # columns whose sums are kept together
TILE = 2048  # rows whose costs stay in the cache
SMALL = 1e-4  # smoothing, as a share of a variance, for which four terms of a series are exact in float64
ROUNDING = 2.0**-24
DOUBT = 0.02  # the largest error of a difference of costs in float32: with more, most rows would be predicted twice


class Gaussians(NamedTuple):
    """What training rows say: mean, variance (features, classes), variance over all classes, log of class shares."""

    mean: Any
    variance: Any
    pooled: Any
    log_prior: Any


class Standard(NamedTuple):
    """The same in units in which a column's training rows have mean 0 and variance 1, and the test rows in float32.

    columns (features, rows) and their largest size; mean, precision 1 / v and log of v (features, classes).
    """

    columns: Any
    reach: Any
    mean: Any
    precision: Any
    logarithm: Any


@njit_cached
def dense_moments(matrix, rows, starts, weights, mean, variance):
    """Mean and variance of every column in class c, whose rows are rows[starts[c]:starts[c + 1]]; each (N, classes).

    Row r counts weights[r] times, or, where there are no weights, once.

    Two passes, from the first row as origin: digits survive a mean far above the deviations, and a constant column
    has a variance of exactly 0.
    """
    n_features, n_classes = mean.shape
    origin, center = np.empty(BLOCK), np.empty(BLOCK)
    total, square = np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, n_features, BLOCK):
        width = min(BLOCK, n_features - first)
        for c in range(n_classes):
            members = rows[starts[c] : starts[c + 1]]
            size = 0.0
            for row in members:
                size += weights[row] if len(weights) else 1.0
            total[:] = 0.0
            square[:] = 0.0
            for k in range(width):
                origin[k] = matrix[members[0], first + k]
            for row in members:
                weight = weights[row] if len(weights) else 1.0
                for k in range(width):
                    total[k] += weight * (np.float64(matrix[row, first + k]) - origin[k])
            for k in range(width):
                center[k] = origin[k] + total[k] / size
                total[k] = 0.0
            for row in members:
                weight = weights[row] if len(weights) else 1.0
                for k in range(width):
                    off = np.float64(matrix[row, first + k]) - center[k]
                    total[k] += weight * off
                    square[k] += weight * off * off
            for k in range(width):
                mean[first + k, c] = center[k]
                variance[first + k, c] = max(0.0, square[k] - total[k] * total[k] / size) / size


@njit_cached
def sparse_moments(data, indices, indptr, class_of, times, counts, sizes, mean, variance):
    """The same from compressed columns, zeros counted; row r is taken times[r] times.

    Class c has counts[c] rows that are taken at all, and sizes[c] is the sum of their times.
    """
    n_features, n_classes = mean.shape
    stored, weight = np.empty(n_classes, np.int64), np.empty(n_classes)
    origin, total = np.empty(n_classes), np.empty(n_classes)
    shifted, square = np.empty(n_classes), np.empty(n_classes)
    for feature in range(n_features):
        stored[:] = 0
        weight[:] = 0.0
        total[:] = 0.0
        shifted[:] = 0.0
        square[:] = 0.0
        for position in range(indptr[feature], indptr[feature + 1]):
            row = indices[position]
            if times[row]:
                c, value = class_of[row], np.float64(data[position])
                if stored[c] == 0:
                    origin[c] = value
                stored[c] += 1
                weight[c] += times[row]
                total[c] += times[row] * value
                shifted[c] += times[row] * (value - origin[c])
        for c in range(n_classes):
            full = stored[c] == counts[c]
            mean[feature, c] = origin[c] + shifted[c] / sizes[c] if full else total[c] / sizes[c]
        for position in range(indptr[feature], indptr[feature + 1]):
            row = indices[position]
            if times[row]:
                off = np.float64(data[position]) - mean[feature, class_of[row]]
                square[class_of[row]] += times[row] * off * off
        for c in range(n_classes):
            zeros = sizes[c] - weight[c] if stored[c] < counts[c] else 0.0
            variance[feature, c] = (square[c] + zeros * mean[feature, c] * mean[feature, c]) / sizes[c]


@njit_cached
def smoothing_of(features, pooled, smoothing):
    """What is added to every variance: a share of the largest in the probe."""
    largest = 0.0
    for feature in features:
        largest = max(largest, pooled[feature])
    return smoothing * largest


@njit_cached
def probe_model(features, moments, smoothing, center, scale, start):
    """The probe's own model: center m and scale sqrt(1 / 2 v) of (class, feature), and each class's cost at its mean.

    A feature that is constant, or has nothing to divide by in some class, gets scale 0: it says nothing.
    """
    n_classes = len(start)
    epsilon = smoothing_of(features, moments.pooled, smoothing)
    for c in range(n_classes):
        start[c] = -moments.log_prior[c]
    for k in range(len(features)):
        feature = features[k]
        least = moments.variance[feature, 0]
        for c in range(1, n_classes):
            least = min(least, moments.variance[feature, c])
        silent = moments.pooled[feature] == 0.0 or least + epsilon <= 0.0
        for c in range(n_classes):
            v = 1.0 if silent else moments.variance[feature, c] + epsilon
            center[c, k] = moments.mean[feature, c]
            scale[c, k] = 0.0 if silent else math.sqrt(0.5 / v)
            start[c] += 0.5 * math.log(v)


@njit_cached
def add_square(cost, x, m, s):
    for row in range(len(cost)):
        t = (x[row] - m) * s
        cost[row] += t * t


@njit_cached
def add_four_squares(cost, x0, x1, x2, x3, m, s):
    """Four features at a time: the costs are read and written once for all."""
    m0, m1, m2, m3 = m[0], m[1], m[2], m[3]
    s0, s1, s2, s3 = s[0], s[1], s[2], s[3]
    for row in range(len(cost)):
        t0 = (x0[row] - m0) * s0
        t1 = (x1[row] - m1) * s1
        t2 = (x2[row] - m2) * s2
        t3 = (x3[row] - m3) * s3
        cost[row] += (t0 * t0 + t1 * t1) + (t2 * t2 + t3 * t3)


@njit_cached
def find_costs(values, columns, center, scale, start, first, stop, cost):
    """What the probe's columns cost rows first, ..., stop - 1 in each class, at the head of each row of cost."""
    height, width = stop - first, len(columns)
    whole = width - width % 4
    for c in range(len(cost)):
        cost[c, :height] = start[c]
    for k in range(0, whole, 4):
        x0, x1 = values[columns[k], first:stop], values[columns[k + 1], first:stop]
        x2, x3 = values[columns[k + 2], first:stop], values[columns[k + 3], first:stop]
        for c in range(len(cost)):
            add_four_squares(cost[c, :height], x0, x1, x2, x3, center[c, k : k + 4], scale[c, k : k + 4])
    for k in range(whole, width):
        for c in range(len(cost)):
            add_square(cost[c, :height], values[columns[k], first:stop], center[c, k], scale[c, k])


@njit_cached
def choose(cost, predicted, winner):
    """The class in which each row is cheapest, the first of equals; the first row of cost is overwritten."""
    winner[:] = 0
    least = cost[0]
    for c in range(1, len(cost)):
        line = cost[c]
        for row in range(len(predicted)):
            better = line[row] < least[row]
            winner[row] = c if better else winner[row]
            least[row] = line[row] if better else least[row]
    for row in range(len(predicted)):
        predicted[row] = winner[row]


@njit_cached
def posterior(cost, own):
    """The probability of a class from the costs of all; 0 of one that is not among them, or costs infinitely much."""
    if own >= len(cost):
        return 0.0
    least, total = cost.min(), 0.0
    for c in range(len(cost)):
        total += math.exp(least - cost[c])
    return math.exp(least - cost[own]) / total


@njit_cached
def predict_exactly(values, columns, center, scale, start, begin, end, measure, truth, cost, winner, predicted):
    """Classes of the rows begin, ..., end - 1, in float64, or what else the measure is of.

    For the area under the curve the log odds of class 1, for the probability that of the row's own class.
    """
    for first in range(begin, end, TILE):
        stop = min(first + TILE, end)
        find_costs(values, columns, center, scale, start, first, stop, cost)
        if measure == ROC_AUC:
            for row in range(stop - first):
                predicted[first + row] = cost[0, row] - cost[1, row]
        elif measure == PROBABILITY:
            for row in range(stop - first):
                predicted[first + row] = posterior(cost[:, row], truth[first + row])
        else:
            choose(cost, predicted[first:stop], winner)


@njit_cached
def predict_dense(values, truth, columns, features, offsets, moments, smoothing, measure, predicted):
    """What each probe predicts, into predicted (probes, rows); values (columns, rows) holds the test rows.

    Position i of a probe is feature features[i] of the moments and row columns[i] of values. Classes without moments
    have the last numbers.
    """
    n_known, n_rows = len(moments.log_prior), len(truth)
    room, tile = longest(offsets), min(TILE, n_rows)
    center, scale, start = np.empty((n_known, room)), np.empty((n_known, room)), np.empty(n_known)
    cost, winner = np.empty((n_known, tile)), np.empty(tile, np.int64)
    for probe in range(len(predicted)):
        begin, end = offsets[probe], offsets[probe + 1]
        probe_model(features[begin:end], moments, smoothing, center, scale, start)
        predict_exactly(
            values, columns[begin:end], center, scale, start, 0, n_rows, measure, truth, cost, winner, predicted[probe]
        )


@njit_cached
def to_standard(values, origin, pooled, columns, reach):
    """Fill the columns and reach of a Standard; a constant column becomes 0."""
    for feature in range(len(values)):
        unit = 1.0 / math.sqrt(pooled[feature]) if pooled[feature] > 0.0 else 0.0
        reach[feature] = 0.0
        for row in range(values.shape[1]):
            z = np.float32((values[feature, row] - origin[feature]) * unit)
            columns[feature, row] = z
            reach[feature] = max(reach[feature], abs(z))


@njit_cached
def difference_model(features, moments, standard, smoothing, bend, slope, start):
    """Cost of class c + 1 less that of class 0 as start[c] + the sum of (bend z + slope) z over standard columns z.

    Where the smoothing is small beside a variance, a series puts it in. Returns a bound on what float32 does to
    the difference of two costs (infinite: use another way): each term is off by less than 6 roundings of its
    largest size |bend| reach^2 + |slope| reach, and takes part in at most width / 4 + 5 sums.
    """
    epsilon = smoothing_of(features, moments.pooled, smoothing)
    n_others = len(start)
    size = np.zeros(n_others)
    for c in range(n_others):
        start[c] = moments.log_prior[0] - moments.log_prior[c + 1]
    for k in range(len(features)):
        feature = features[k]
        pooled, reach = moments.pooled[feature], standard.reach[feature]
        share = epsilon / pooled
        for c in range(n_others + 1):
            m, p, log_v = standard.mean[feature, c], standard.precision[feature, c], standard.logarithm[feature, c]
            r = share * p
            if pooled == 0.0:
                p = 0.0
                log_v = 0.0
            elif r < SMALL:
                p *= 1.0 - r * (1.0 - r * (1.0 - r))
                log_v += r * (1.0 - r * (0.5 - r / 3.0))
            else:
                v = moments.variance[feature, c] / pooled + share
                if not v > 0.0:
                    return np.inf
                p = 1.0 / v
                log_v = math.log(v)
            if c == 0:
                p0, m0, constant0 = p, m, p * m * m + log_v
            else:
                bend[c - 1, k] = 0.5 * (p - p0)
                slope[c - 1, k] = p0 * m0 - p * m
                start[c - 1] += 0.5 * (p * m * m + log_v - constant0)
                size[c - 1] += (abs(0.5 * (p - p0)) * reach + abs(p0 * m0 - p * m)) * reach
    largest = 0.0
    for c in range(n_others):
        largest = max(largest, size[c])
    return 2.0 * ROUNDING * (len(features) / 4 + 16) * largest


@njit_cached
def add_quadratic(cost, z, a, b):
    for row in range(len(cost)):
        cost[row] += (a * z[row] + b) * z[row]


@njit_cached
def add_four_quadratics(cost, z0, z1, z2, z3, a, b):
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    for row in range(len(cost)):
        q0 = (a0 * z0[row] + b0) * z0[row]
        q1 = (a1 * z1[row] + b1) * z1[row]
        q2 = (a2 * z2[row] + b2) * z2[row]
        q3 = (a3 * z3[row] + b3) * z3[row]
        cost[row] += (q0 + q1) + (q2 + q3)


@njit_cached
def find_differences(values, features, bend, slope, first, stop, cost):
    """What rows first, ..., stop - 1 cost in the other classes more than in class 0, less the start."""
    height, width = stop - first, len(features)
    whole = width - width % 4
    cost[:] = 0.0
    for k in range(0, whole, 4):
        z0, z1 = values[features[k], first:stop], values[features[k + 1], first:stop]
        z2, z3 = values[features[k + 2], first:stop], values[features[k + 3], first:stop]
        for c in range(len(cost)):
            add_four_quadratics(cost[c, :height], z0, z1, z2, z3, bend[c, k : k + 4], slope[c, k : k + 4])
    for k in range(whole, width):
        for c in range(len(cost)):
            add_quadratic(cost[c, :height], values[features[k], first:stop], bend[c, k], slope[c, k])


@njit_cached
def find_two_cheapest(cost, start, height, least, second, winner):
    """The cheapest class of each row, its cost and that of the next, all less the cost of class 0."""
    least[:] = 0.0
    second[:] = np.inf
    winner[:] = 0
    for c in range(len(cost)):
        line, constant = cost[c], start[c]
        for row in range(height):
            value = line[row] + constant
            better = value < least[row]
            second[row] = min(second[row], max(value, least[row]))
            least[row] = min(value, least[row])
            winner[row] = c + 1 if better else winner[row]


@njit_cached
def predict_quickly(standard, features, bend, slope, start, bound, cost, least, second, winner, predicted, doubtful):
    """Classes of the rows, and how many of them are in doubt; doubtful receives those."""
    n_rows, n_doubtful = len(predicted), 0
    for first in range(0, n_rows, TILE):
        stop = min(first + TILE, n_rows)
        find_differences(standard.columns, features, bend, slope, first, stop, cost)
        find_two_cheapest(cost, start, stop - first, least, second, winner)
        for row in range(stop - first):
            predicted[first + row] = winner[row]
        for row in range(stop - first):
            if not second[row] - least[row] > bound:
                doubtful[n_doubtful] = first + row
                n_doubtful += 1
    return n_doubtful


@njit_cached
def predict_by_standard(values, standard, truth, features, offsets, moments, smoothing, measure, predicted):
    """What `predict_dense` gives, from float32 where that leaves no doubt; the order of all rows is always in doubt."""
    n_known, n_rows = len(moments.log_prior), len(truth)
    room, tile = longest(offsets), min(TILE, n_rows)
    center, scale, start = np.empty((n_known, room)), np.empty((n_known, room)), np.empty(n_known)
    cost, winner = np.empty((n_known, tile)), np.empty(tile, np.int64)
    bend, slope = np.empty((n_known - 1, room), np.float32), np.empty((n_known - 1, room), np.float32)
    less, difference = np.empty(n_known - 1), np.empty((n_known - 1, tile), np.float32)
    least, second, doubtful = np.empty(tile), np.empty(tile), np.empty(n_rows, np.int64)
    for probe in range(len(predicted)):
        chosen, line = features[offsets[probe] : offsets[probe + 1]], predicted[probe]
        n_doubtful = n_rows
        if measure != ROC_AUC and measure != PROBABILITY:
            bound = difference_model(chosen, moments, standard, smoothing, bend, slope, less)
            if bound <= DOUBT:
                n_doubtful = predict_quickly(
                    standard, chosen, bend, slope, less, bound, difference, least, second, winner, line, doubtful
                )
        if n_doubtful > 0:
            probe_model(chosen, moments, smoothing, center, scale, start)
        if n_doubtful == n_rows:
            predict_exactly(values, chosen, center, scale, start, 0, n_rows, measure, truth, cost, winner, line)
        else:
            for row in doubtful[:n_doubtful]:
                predict_exactly(values, chosen, center, scale, start, row, row + 1, measure, truth, cost, winner, line)


@njit_cached
def predict_sparse(data, indices, indptr, truth, features, offsets, moments, smoothing, measure, predicted):
    """What `predict_dense` gives, from compressed columns: rows start at the cost of zeros, stored values change it.

    In a column where zeros cost very much, all rows are visited: what is added and taken off again would hide the rest.
    """
    n_known, n_rows = len(moments.log_prior), len(truth)
    room = longest(offsets)
    center, scale = np.empty((n_known, room)), np.empty((n_known, room))
    start, pull, column = np.empty(n_known), np.empty(n_known), np.empty(n_rows)
    cost = np.empty((n_rows, n_known))
    for probe in range(len(predicted)):
        chosen = features[offsets[probe] : offsets[probe + 1]]
        probe_model(chosen, moments, smoothing, center, scale, start)
        for k in range(len(chosen)):
            if not is_far(center[:, k], scale[:, k]):
                for c in range(n_known):
                    start[c] += (center[c, k] * scale[c, k]) ** 2
        for row in range(n_rows):
            cost[row] = start
        for k in range(len(chosen)):
            stored = slice(indptr[chosen[k]], indptr[chosen[k] + 1])
            if is_far(center[:, k], scale[:, k]):
                column[:] = 0.0
                column[indices[stored]] = data[stored]
                for row in range(n_rows):
                    for c in range(n_known):
                        cost[row, c] += ((column[row] - center[c, k]) * scale[c, k]) ** 2
                continue
            for c in range(n_known):
                pull[c] = 2.0 * center[c, k] * scale[c, k]
            for position in range(stored.start, stored.stop):
                value = np.float64(data[position])
                line = cost[indices[position]]
                for c in range(n_known):
                    t = value * scale[c, k]
                    line[c] += t * (t - pull[c])
        for row in range(n_rows):
            if measure == PROBABILITY:
                predicted[probe, row] = posterior(cost[row], truth[row])
            else:
                predicted[probe, row] = cost[row, 0] - cost[row, 1] if measure == ROC_AUC else np.argmin(cost[row])


@njit_cached
def is_far(center, scale):
    """Whether a zero is more than a hundred deviations from the mean of some class."""
    farthest = 0.0
    for c in range(len(center)):
        farthest = max(farthest, abs(center[c] * scale[c]))
    return farthest > 100.0


@njit_cached
def take_columns(matrix, rows, columns, out):
    """out[k, i] = matrix[rows[i], columns[k]]."""
    for k in range(len(columns)):
        for i in range(len(rows)):
            out[k, i] = matrix[rows[i], columns[k]]
