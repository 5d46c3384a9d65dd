"""Ridge regression by sums, for tall and for sparse tables: moments of the segments, predictions of each fold.

The moments of a segment are its total weight, the means of the columns and targets, and the products of columns with
columns and targets about these means. Each fold adds up the moments of all other segments and solves one system.
"""

import math
from itertools import pairwise

import numpy as np

from .factor import LEAST_PIVOT, dot, ridge_weights
from .jit import njit_cached, njit_helper
from .scores import PROBABILITY, ROC_AUC

ROWS_AT_A_TIME = 512
SLOPE = 2.0  # probabilities are softmax(SLOPE * decisions), where the decisions are fitted to targets 1 and -1


@njit_helper
def centered(lines, roots, total, means):
    """Subtract the weighted mean from lines of numbers that are multiplied by the roots of their weights."""
    for f in range(len(lines)):
        line = lines[f]
        mean = dot(line, roots) / total
        for i in range(len(line)):
            line[i] -= mean * roots[i]
        means[f] = mean


@njit_helper
def other_segments(scatters, means, sizes, s, scatter, weights, mean):
    """All segments but s together: scatter, products with targets (into weights), and means of columns and targets.

    Products about the means of segments are added up, and those of the means. Nothing is subtracted, so no digits are
    lost.
    """
    d, total = len(scatter), 0.0
    mean[:] = 0.0
    scatter[:] = 0.0
    weights[:] = 0.0
    for other in range(len(sizes)):
        total += sizes[other] if other != s else 0.0
    for other in range(len(sizes)):
        if other != s:
            mean += sizes[other] / total * means[other]
    for other in range(len(sizes)):
        if other != s:
            away = means[other] - mean
            for f in range(d):
                share, line, to = sizes[other] * away[f], scatters[other, f], scatter[f]
                for j in range(d):
                    to[j] += line[j] + share * away[j]
                for c in range(len(weights)):
                    weights[c, f] += line[d + c] + share * away[d + c]


def moments(XT, borders, fit):
    """Moments of all features in each segment: (segments, features, features + outputs), means and total weights."""
    scatters, means, sizes = [], [], []
    for begin, end in pairwise(borders):
        roots = fit.roots[begin:end]
        values, sides = XT[:, begin:end] * roots, fit.targets[:, begin:end] * roots
        sizes.append(roots @ roots)
        means.append(np.concatenate([values @ roots, sides @ roots]) / sizes[-1])
        values -= np.outer(means[-1][: len(XT)], roots)
        sides -= np.outer(means[-1][len(XT) :], roots)
        scatters.append(np.hstack([values @ values.T, values @ sides.T]))
    return np.array(scatters), np.array(means), np.array(sizes)


@njit_cached
def predict_tall(XT, indices, features, offsets, table, borders, alpha, tests, predicted, are_sure):
    """Predictions (probes, rows) from the `moments` of all features, in which each probe looks up its own.

    ``features`` are the features of the probes, ``indices`` the lines of XT that have them.
    """
    all_scatters, all_means, sizes = table
    known, truth, measure, n_classes = tests
    n_segments, p = len(sizes), all_scatters.shape[1]
    k = all_means.shape[1] - p
    decisions = np.empty((k, ROWS_AT_A_TIME))
    by_test = decisions.T
    for probe in range(len(predicted)):
        own, lines = features[offsets[probe] : offsets[probe + 1]], indices[offsets[probe] : offsets[probe + 1]]
        d = len(own)
        columns = np.append(own, np.arange(p, p + k))
        scatters, means = np.empty((n_segments, d, d + k)), np.empty((n_segments, d + k))
        for s in range(n_segments):
            for j in range(d + k):
                means[s, j] = all_means[s, columns[j]]
            for f in range(d):
                line, to = all_scatters[s, own[f]], scatters[s, f]
                for j in range(d + k):
                    to[j] = line[columns[j]]
        scatter, weights, mean = np.empty((d, d)), np.empty((k, d)), np.empty(d + k)
        for s in range(n_segments):
            other_segments(scatters, means, sizes, s, scatter, weights, mean)
            are_sure[probe] &= ridge_weights(scatter, alpha, weights)
            for begin in range(borders[s], borders[s + 1], ROWS_AT_A_TIME):
                n = min(ROWS_AT_A_TIME, borders[s + 1] - begin)
                for c in range(k):
                    decisions[c, :n] = mean[d + c] - dot(weights[c], mean[:d])
                for f in range(d):
                    line = XT[lines[f], begin : begin + n]
                    for c in range(k):
                        weight, to = weights[c, f], decisions[c]
                        for i in range(n):
                            to[i] += weight * line[i]
                for i in range(n):
                    predicted[probe, begin + i] = prediction(by_test, i, known, s, truth[begin + i], measure, n_classes)


@njit_cached
def predict_sparse(X, place, indices, offsets, borders, fit, tests, predicted, are_sure):
    """Predictions (probes, rows) from sparse X in CSC format; place[row] is the position of a row in fold order."""
    data, rows, indptr = X
    known, truth, measure, n_classes = tests
    n, k, n_segments, most = borders[-1], len(fit.targets), len(borders) - 1, 0
    for probe in range(len(predicted)):
        count = 0
        for f in indices[offsets[probe] : offsets[probe + 1]]:
            count += indptr[f + 1] - indptr[f]
        most = max(most, count)
    starts, columns, values = np.empty(n + 1, np.int64), np.empty(most, np.int64), np.empty(most)
    targets, sizes = np.ascontiguousarray(fit.targets.T), np.zeros(n_segments)
    means_of_targets, level, decisions = np.zeros((n_segments, k)), np.empty(k), np.empty((1, k))
    for s in range(n_segments):
        for i in range(borders[s], borders[s + 1]):
            sizes[s] += fit.roots[i] ** 2
            means_of_targets[s] += fit.roots[i] ** 2 * targets[i]
        means_of_targets[s] /= sizes[s]
    for probe in range(len(predicted)):
        features = indices[offsets[probe] : offsets[probe + 1]]
        d = len(features)
        _by_row(data, rows, indptr, place, features, starts, columns, values)
        scatters, means = np.zeros((n_segments, d, d + k)), np.zeros((n_segments, d + k))
        for s in range(n_segments):
            entries = starts, columns, values, borders[s], borders[s + 1]
            means[s, d:] = means_of_targets[s]
            are_sure[probe] &= _sparse_moments(entries, fit.roots, targets, sizes[s], scatters[s], means[s])
        scatter, weights, mean = np.empty((d, d)), np.empty((k, d)), np.empty(d + k)
        for s in range(n_segments):
            other_segments(scatters, means, sizes, s, scatter, weights, mean)
            are_sure[probe] &= ridge_weights(scatter, fit.alpha, weights)
            by_column = weights.T.copy()
            for c in range(k):
                level[c] = decisions[0, c] = mean[d + c] - dot(weights[c], mean[:d])
            blank = prediction(decisions, 0, known, s, truth[borders[s]], measure, n_classes)
            for i in range(borders[s], borders[s + 1]):
                if starts[i] == starts[i + 1] and measure != PROBABILITY:
                    predicted[probe, i] = blank
                    continue
                for c in range(k):
                    decisions[0, c] = level[c]
                for a in range(starts[i], starts[i + 1]):
                    value, line = values[a], by_column[columns[a]]
                    for c in range(k):
                        decisions[0, c] += value * line[c]
                predicted[probe, i] = prediction(decisions, 0, known, s, truth[i], measure, n_classes)


@njit_helper
def _by_row(data, rows, indptr, place, features, starts, columns, values):
    """The entries of a probe row by row: those of row r are at starts[r]..starts[r + 1] - 1."""
    starts[:] = 0
    for f in features:
        for at in range(indptr[f], indptr[f + 1]):
            starts[place[rows[at]] + 1] += 1
    for row in range(len(starts) - 1):
        starts[row + 1] += starts[row]
    for k in range(len(features)):
        for at in range(indptr[features[k]], indptr[features[k] + 1]):
            row = place[rows[at]]
            columns[starts[row]] = k
            values[starts[row]] = data[at]
            starts[row] += 1
    for row in range(len(starts) - 1, 0, -1):
        starts[row] = starts[row - 1]
    starts[0] = 0


@njit_helper
def _sparse_moments(entries, roots, targets, size, scatter, mean):
    """Moments of rows begin..end - 1 from plain sums: zeros cost nothing. False if too few digits are left."""
    starts, columns, values, begin, end = entries
    d, k = len(scatter), targets.shape[1]
    for row in range(begin, end):
        for a in range(starts[row], starts[row + 1]):
            column, value = columns[a], values[a] * roots[row] * roots[row]
            mean[column] += value
            line, own = scatter[column], targets[row]
            for b in range(starts[row], starts[row + 1]):
                line[columns[b]] += value * values[b]
            for c in range(k):
                line[d + c] += value * own[c]
    is_sure = True
    for f in range(d):
        mean[f] /= size
    for f in range(d):
        share, line, square = size * mean[f], scatter[f], scatter[f, f]
        if share != 0.0:
            for j in range(d + k):
                line[j] -= share * mean[j]
            is_sure &= line[f] >= LEAST_PIVOT * square
    return is_sure


@njit_cached
def predict(decisions, borders, tests, predicted):
    """Predictions (probes, tests) from decisions (probes, tests, outputs); fold f tests borders[f]..borders[f + 1] - 1.

    tests: the classes that each fold trains on (folds, classes), true targets, the measure, and the number of classes.
    """
    known, truth, measure, n_classes = tests
    for probe in range(len(predicted)):
        own = decisions[probe]
        for fold in range(len(borders) - 1):
            for i in range(borders[fold], borders[fold + 1]):
                predicted[probe, i] = prediction(own, i, known, fold, truth[i], measure, n_classes)


@njit_helper
def prediction(decisions, at, known, fold, truth, measure, n_classes):
    """The number, the decision (for the area under the curve), the probability of the row's own class, or the class.

    The decisions of the test are decisions[at].
    """
    first, n_outputs = decisions[at, 0], decisions.shape[1]
    if n_classes == 0 or measure == ROC_AUC:
        return first
    if n_outputs == 1 and known[fold, 0] and known[fold, 1]:
        return 1.0 / (1.0 + math.exp(2.0 * SLOPE * (1 - 2 * truth) * first)) if measure == PROBABILITY else first > 0.0
    winner, highest, total, right = -1, -np.inf, 0.0, 0.0
    for c in range(n_classes):
        decision = decisions[at, c] if n_outputs > 1 else (2 * c - 1) * first
        if known[fold, c] and decision > highest:
            winner, highest = c, decision
    if measure != PROBABILITY:
        return winner
    for c in range(n_classes):
        if known[fold, c]:
            odds = math.exp(SLOPE * ((decisions[at, c] if n_outputs > 1 else (2 * c - 1) * first) - highest))
            total += odds
            right = odds if c == truth else right
    return right / total
