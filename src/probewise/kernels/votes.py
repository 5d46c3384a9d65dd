"""Predictions of k nearest neighbors for many feature subsets in one call: votes, means and probabilities.

For probabilities the neighbors at squared distances d_1, ..., d_k vote with the weights softmax(-d / T). T is a fifth
of the mean, over all tested rows, of the squared distance to the fifth neighbor, so that J does not depend on the
scale.
"""

import math

import numpy as np

from .jit import longest, njit_cached, njit_helper, sort_few
from .neighbors import WIDEST, exact_distance, find_neighbors, load_subset, workspace
from .scores import PROBABILITY, ROC_AUC

TYPICAL = 5  # the neighbor whose distance sets the temperature
NEARLY = 2e-4  # error of a distance that a probability may have, relative to the distance of that neighbor
SAMPLE = 15  # values of a column, whose median is its center
E = tuple(1.0 / math.factorial(n) for n in range(14))  # coefficients of the exponential series


@njit_cached
def extents(XT):
    """Per feature: a center (the median of a few values), the largest distance from it, and whether all are whole."""
    n = XT.shape[1]
    centers, reach, is_whole = np.empty(len(XT), XT.dtype), np.empty(len(XT), XT.dtype), np.empty(len(XT), np.bool_)
    sample = np.empty(min(n, SAMPLE), XT.dtype)
    for f in range(len(XT)):
        line = XT[f]
        for place in range(len(sample)):
            sample[place] = line[place * n // len(sample)]
        sort_few(sample)
        center = sample[len(sample) // 2]
        widest, whole = XT.dtype.type(0), True
        for i in range(n):
            widest = max(widest, abs(line[i] - center))
            whole &= line[i] == np.rint(line[i])
        centers[f], reach[f], is_whole[f] = center, widest, whole or widest == 0
    return centers, reach, is_whole


@njit_cached
def vote_probes(columns, probes, folds, k, truth, precision, predicted):
    """Write predictions (probes, tests) of the neighbors; return the number of tests that needed exact distances.

    columns: XT (features, columns) and its `extents`. probes: indices and offsets. folds: see `neighbors`; train has
    ROWS more entries. truth: targets (targets, columns), keys of columns (WIDEST more), the column that has each key,
    the number of classes, and the measure. precision: eps and tiny of the floating-point type of the products.
    With several targets ``predicted`` has the tests of each target in turn.
    """
    XT, indices, offsets = columns[0], probes[0], probes[1]
    tests, trains = folds[0], folds[1]
    targets, keys, keepers, n_classes, measure = truth
    kind, first, last = precision.dtype, tests[0], tests[-1]
    stride = XT.shape[1] + WIDEST
    values, squares, lowered = np.zeros(longest(offsets) * stride, kind), np.zeros(stride, kind), np.zeros(stride, kind)
    work = workspace(XT.shape[1], longest(trains), k, kind)
    near, apart = np.empty((last - first, k), np.int64), np.empty((last - first, k))
    labels, n_exact = targets[0].astype(np.int64), 0
    for probe in range(len(predicted)):
        features = indices[offsets[probe] : offsets[probe + 1]]
        subset = load_subset(columns, features, precision, len(keepers), values, squares, lowered)
        n_exact += find_neighbors(subset, folds, keys, keepers, k, work, near, apart)
        if measure == PROBABILITY:
            _refine_distances(subset, first, near, apart)
            _probabilities(near, apart, targets[0], targets[0, first:last], predicted[probe])
        elif n_classes and measure != ROC_AUC:
            _vote(near, labels, predicted[probe])
        else:
            _average(near, targets, predicted[probe])  # of two classes: the share of class 1
    return n_exact


@njit_helper
def _refine_distances(subset, first, near, apart):
    """Sort neighbors by squared distance, from lower bounds in ``apart``; exact where the error may be too large."""
    n_tests, k = near.shape
    error, squares = subset.error, subset.squares
    for test in range(n_tests):
        own = squares[first + test]
        for q in range(k):
            apart[test, q] = max(0.0, apart[test, q] + np.float64(error * (own + squares[near[test, q]])))
        _sort(apart, near, test)
        most = NEARLY * apart[test, min(TYPICAL, k) - 1]
        is_changed = False
        for q in range(k):
            if error > 0 and np.float64(2 * error * (own + squares[near[test, q]]) + subset.least) > most:
                exact = exact_distance(subset, first + test, near[test, q])
                apart[test, q] = exact * subset.scale * subset.scale
                is_changed = True
        if is_changed:
            _sort(apart, near, test)


@njit_helper
def _sort(apart, near, test):
    for q in range(1, near.shape[1]):
        distance, row, at = apart[test, q], near[test, q], q
        while at > 0 and apart[test, at - 1] > distance:
            apart[test, at] = apart[test, at - 1]
            near[test, at] = near[test, at - 1]
            at -= 1
        apart[test, at] = distance
        near[test, at] = row


@njit_helper
def _probabilities(near, apart, targets, own, predicted):
    """The share of the votes, weighted by distance, for each row's own class; apart is overwritten."""
    n_tests, k = near.shape
    temperature = 0.0
    for test in range(n_tests):
        temperature += apart[test, min(TYPICAL, k) - 1]
    temperature = max(temperature / n_tests / 5.0, 1e-300)
    for test in range(n_tests):
        for q in range(k - 1, -1, -1):
            apart[test, q] = (apart[test, 0] - apart[test, q]) / temperature
    _exponentials(apart.reshape(n_tests * k))
    for test in range(n_tests):
        total, right = 0.0, 0.0
        for q in range(k):
            total += apart[test, q]
            right += apart[test, q] if targets[near[test, q]] == own[test] else 0.0
        predicted[test] = right / total


@njit_helper
def _exponentials(numbers):
    """exp(x) of numbers that are at most 0, in place: 2^whole times a polynomial of the rest, in vectors."""
    powers = np.empty(len(numbers), np.int64)
    scales = powers.view(np.float64)
    for i in range(len(numbers)):
        x = max(numbers[i], -700.0)
        whole = np.rint(x * 1.4426950408889634)
        rest = (x - whole * 0.6931471803691238) - whole * 1.9082149292705877e-10
        high = ((rest * E[13] + E[12]) * rest + E[11]) * rest + E[10]
        high = (((high * rest + E[9]) * rest + E[8]) * rest + E[7]) * rest + E[6]
        numbers[i] = (((((high * rest + E[5]) * rest + E[4]) * rest + E[3]) * rest + E[2]) * rest + 1.0) * rest + 1.0
        powers[i] = (np.int64(whole) + 1023) << 52
    for i in range(len(numbers)):
        numbers[i] *= scales[i]


@njit_helper
def _vote(near, labels, predicted):
    """The most frequent label among the neighbors, the lowest of several."""
    n_tests, k = near.shape
    for test in range(n_tests):
        winner = 0
        for q in range(k):
            label, times = labels[near[test, q]], 0
            for other in range(k):
                times += labels[near[test, other]] == label
            winner = max(winner, (times << 32) - label)
        predicted[test] = -winner & 0xFFFFFFFF


@njit_helper
def _average(near, targets, predicted):
    """The mean of each target of the neighbors."""
    n_tests, k = near.shape
    for t in range(len(targets)):
        for test in range(n_tests):
            total = 0.0
            for q in range(k):
                total += targets[t, near[test, q]]
            predicted[t * n_tests + test] = total / k
