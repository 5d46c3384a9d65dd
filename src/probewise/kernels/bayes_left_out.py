"""Gaussian naive Bayes with every row left out once: its share is taken out of its class's moments.

Without a row x of weight w, a class of weight W, mean m and sum of squares S has the mean m - w (x - m) / (W - w) and
the sum of squares S - w (x - m)^2 W / (W - w). A class costs a row what it costs in `bayes`.
"""

import math

import numpy as np

from .bayes import posterior
from .jit import njit_cached, njit_helper, njit_inline
from .scores import PROBABILITY, ROC_AUC

LOST = 1e-6  # a sum of squares that is smaller than this share of what it was has lost digits: it is made anew
MOST = 1e150  # products of variances stay below, so that one logarithm serves many of them


@njit_cached
def predict_one_out(lines, indices, offsets, labels, weights, n_classes, smoothing, measure, predicted):
    """What each probe predicts of each row, from columns as lines (features, rows); weights are of rows, or none."""
    n = lines.shape[1]
    sizes, counts = np.zeros(n_classes), np.zeros(n_classes, np.int64)
    for i in range(n):
        weight = weights[i] if len(weights) else 1.0
        sizes[labels[i]] += weight
        counts[labels[i]] += weight > 0.0
    total, none = sizes.sum(), weights[:0]
    cost, product, known = np.empty((n, n_classes)), np.empty((n, n_classes)), np.empty((n, n_classes), np.bool_)
    widest = np.empty(n)
    mean, square = np.empty(n_classes), np.empty(n_classes)
    variance, center = np.empty(n_classes), np.empty(n_classes)
    for i in range(n):
        for c in range(n_classes):
            known[i, c] = counts[c] - (c == labels[i] and (len(weights) == 0 or weights[i] > 0.0)) > 0
    for probe in range(len(predicted)):
        chosen = indices[offsets[probe] : offsets[probe + 1]]
        product[:] = 1.0
        widest[:] = 0.0
        for i in range(n):
            weight = weights[i] if len(weights) else 1.0
            for c in range(n_classes):
                size = sizes[c] - weight if c == labels[i] else sizes[c]
                cost[i, c] = -math.log(size / (total - weight)) if known[i, c] else np.inf
        for feature in chosen:
            line = lines[feature]
            middle, pooled = _moments(line)
            for i in range(n):
                rest = _without(pooled, line[i] - middle, 1.0, float(n))
                if rest < LOST * pooled:
                    rest = _moments_without(line, labels, none, i, -1)[1]
                widest[i] = max(widest[i], rest / (n - 1))
        for feature in chosen:
            line = lines[feature]
            middle, pooled = _moments(line)
            _class_moments(line, labels, weights, sizes, mean, square)
            for i in range(n):
                rest = _without(pooled, line[i] - middle, 1.0, float(n))
                if pooled == 0.0 or (rest < LOST * pooled and _moments_without(line, labels, none, i, -1)[1] == 0.0):
                    continue
                epsilon, least = smoothing * widest[i], np.inf
                for c in range(n_classes):
                    size, center[c], rest = sizes[c], mean[c], square[c]
                    if c == labels[i] and known[i, c]:
                        weight, off = weights[i] if len(weights) else 1.0, line[i] - mean[c]
                        size -= weight
                        center[c] -= weight * off / size
                        rest = _without(square[c], off, weight, sizes[c]) if square[c] > 0.0 else 0.0
                        if rest < LOST * square[c]:
                            center[c], rest = _moments_without(line, labels, weights, i, c)
                    variance[c] = rest / size + epsilon
                    if known[i, c]:
                        least = min(least, variance[c])
                if least <= 0.0:
                    continue
                for c in range(n_classes):
                    if known[i, c]:
                        off = line[i] - center[c]
                        cost[i, c] += 0.5 * off * off / variance[c]
                        product[i, c] *= variance[c]
                        if not 1.0 / MOST < product[i, c] < MOST:
                            cost[i, c] += 0.5 * math.log(product[i, c])
                            product[i, c] = 1.0
        for i in range(n):
            for c in range(n_classes):
                cost[i, c] += 0.5 * math.log(product[i, c])
            predicted[probe, i] = _prediction(cost[i], labels[i], measure)


@njit_inline
def _moments(line):
    """Mean and sum of squares about it; of a constant line exactly 0."""
    n, first, total, square = len(line), line[0], 0.0, 0.0
    for i in range(n):
        total += line[i] - first
    middle = first + total / n
    total = 0.0
    for i in range(n):
        off = line[i] - middle
        total += off
        square += off * off
    return middle, max(0.0, square - total * total / n)


@njit_inline
def _class_moments(line, labels, weights, sizes, mean, square):
    """The same for each class, with weights; from its first row."""
    first, total = mean, np.zeros(len(sizes))
    square[:] = -1.0
    for i in range(len(line)):
        c = labels[i]
        if square[c] < 0.0:
            first[c] = line[i]
            square[c] = 0.0
        total[c] += (weights[i] if len(weights) else 1.0) * (line[i] - first[c])
    for c in range(len(sizes)):
        mean[c] = first[c] + total[c] / sizes[c] if sizes[c] > 0.0 else 0.0
        square[c] = 0.0
    for i in range(len(line)):
        off = line[i] - mean[labels[i]]
        square[labels[i]] += (weights[i] if len(weights) else 1.0) * off * off


@njit_inline
def _without(square, off, weight, size):
    """A sum of squares without a row."""
    return square - weight * off * off * size / (size - weight)


@njit_helper
def _moments_without(line, labels, weights, left_out, own):
    """Mean and sum of squares of the class ``own``, or of all rows (-1), without a row; of equal ones exactly 0."""
    first, total, size, mean, square = np.nan, 0.0, 0.0, 0.0, 0.0
    for twice in range(2):
        for i in range(len(line)):
            weight = weights[i] if len(weights) else 1.0
            if i != left_out and (own < 0 or labels[i] == own) and weight > 0.0:
                first = line[i] if np.isnan(first) else first
                off = line[i] - first - mean
                if twice:
                    square += weight * off * off
                else:
                    total += weight * off
                    size += weight
        if not twice and size > 0.0:
            mean = total / size
    return first + mean, square


@njit_inline
def _prediction(cost, own, measure):
    """The posterior of the own class, for the area under the curve the log of the odds, or else the cheapest class."""
    if measure == ROC_AUC:
        return cost[0] - cost[1]
    winner = np.argmin(cost)
    if measure != PROBABILITY:
        return float(winner)
    return posterior(cost, own)
