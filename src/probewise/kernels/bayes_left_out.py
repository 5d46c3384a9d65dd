"""Gaussian naive Bayes with every row left out once: its share is taken out of its class's moments.

Without a row x of weight w, a class of weight W, mean m and sum of squares S has the mean m - w (x - m) / (W - w) and
the sum of squares S - w (x - m)^2 W / (W - w). A class costs a row what it costs in `bayes`.
"""

import math

import numpy as np

from .bayes import posterior
from .jit import inline, kernel
from .scores import PROBABILITY, ROC_AUC, score_and_outcomes

NOTHING = 1e-12  # a sum of squares that is smaller than this share of what it was is rounding
MOST = 1e150  # products of variances stay below, so that one logarithm serves many of them


@kernel
def one_out_scores(
    lines, indices, offsets, labels, weights, n_classes, smoothing, measure, groups, shares, means, scores
):
    """The score of each probe over all rows, from columns as lines (features, rows); weights are of rows, or none."""
    n = lines.shape[1]
    sizes, counts = np.zeros(n_classes), np.zeros(n_classes, np.int64)
    for i in range(n):
        weight = weights[i] if len(weights) else 1.0
        sizes[labels[i]] += weight
        counts[labels[i]] += weight > 0.0
    total = sizes.sum()
    cost, product, known = np.empty((n, n_classes)), np.empty((n, n_classes)), np.empty((n, n_classes), np.bool_)
    widest, predicted = np.empty(n), np.empty(n)
    mean, square = np.empty(n_classes), np.empty(n_classes)
    variance, center = np.empty(n_classes), np.empty(n_classes)
    for i in range(n):
        for c in range(n_classes):
            known[i, c] = counts[c] - (c == labels[i] and (len(weights) == 0 or weights[i] > 0.0)) > 0
    for probe in range(len(scores)):
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
                widest[i] = max(widest[i], _without(pooled, line[i] - middle, 1.0, float(n)) / (n - 1))
        for feature in chosen:
            line = lines[feature]
            middle, pooled = _moments(line)
            _class_moments(line, labels, weights, sizes, mean, square)
            for i in range(n):
                if _without(pooled, line[i] - middle, 1.0, float(n)) == 0.0:
                    continue
                epsilon, least = smoothing * widest[i], np.inf
                for c in range(n_classes):
                    size, center[c], rest = sizes[c], mean[c], square[c]
                    if c == labels[i] and known[i, c]:
                        weight, off = weights[i] if len(weights) else 1.0, line[i] - mean[c]
                        size -= weight
                        center[c] -= weight * off / size
                        rest = 0.0 if counts[c] == 2 and weight > 0.0 else _without(square[c], off, weight, sizes[c])
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
            predicted[i] = _prediction(cost[i], labels[i], measure)
        scores[probe] = score_and_outcomes(measure, labels, predicted, weights, n_classes, groups, shares, means[probe])


@inline
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


@inline
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


@inline
def _without(square, off, weight, size):
    """A sum of squares without a row."""
    rest = square - weight * off * off * size / (size - weight)
    return rest if rest > NOTHING * square else 0.0


@inline
def _prediction(cost, own, measure):
    """The posterior of the own class, for the area under the curve the log of the odds, or else the cheapest class."""
    if measure == ROC_AUC:
        return cost[0] - cost[1]
    winner = np.argmin(cost)
    if measure != PROBABILITY:
        return float(winner)
    return posterior(cost, own)
