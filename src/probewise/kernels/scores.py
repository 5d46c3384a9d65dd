"""What the predictions for a fold are worth, as scikit-learn's metrics define it, and with weights of the rows.

truth holds class numbers, or numbers to be predicted. told holds what was predicted: a class number, for the area
under the curve a decision that is higher where class 1 is likelier, or a number. weights has no entries where all rows
count alike.
"""

import numpy as np

from .jit import kernel, part

ACCURACY, BALANCED_ACCURACY, F1_MACRO, ROC_AUC, R2, SQUARED_ERROR = range(6)
FEW_PAIRS = 2**20


@kernel
def score(measure, truth, told, weights, n_classes):
    """The score of one fold; larger is better."""
    if measure == ACCURACY:
        return _accuracy(truth, told, weights)
    if measure == ROC_AUC:
        return _area(truth, told, weights)
    if measure == R2:
        return _r2(truth, told, weights)
    if measure == SQUARED_ERROR:
        return _minus_squared_error(truth, told, weights)
    hits, claims, owned, met = _by_class(truth, told, weights, n_classes)
    return _mean_recall(hits, owned) if measure == BALANCED_ACCURACY else _mean_f1(hits, claims, owned, met)


@part
def _accuracy(truth, told, weights):
    """The share of rows, or of their weight, told right."""
    if len(weights) == 0:
        right = 0
        for row in range(len(truth)):
            right += told[row] == truth[row]
        return right / len(truth)
    right_weight, total = 0.0, 0.0
    for row in range(len(truth)):
        total += weights[row]
        if told[row] == truth[row]:
            right_weight += weights[row]
    return right_weight / total


@part
def _by_class(truth, told, weights, n_classes):
    """Of each class: weight of its rows told right, of rows said to be of it, of its rows, and whether it is met."""
    hits, claims, owned = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    met = np.zeros(n_classes, np.bool_)
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        own, said = int(truth[row]), int(told[row])
        owned[own] += weight
        claims[said] += weight
        met[own] = True
        met[said] = True
        if own == said:
            hits[own] += weight
    return hits, claims, owned, met


@part
def _mean_recall(hits, owned):
    """Mean over the classes that have rows here of the share told right."""
    total, count = 0.0, 0
    for c in range(len(owned)):
        if owned[c] > 0.0:
            total += hits[c] / owned[c]
            count += 1
    return total / count


@part
def _mean_f1(hits, claims, owned, met):
    """Mean over the classes met, in truth or in what was said, of 2 hits / (rows + claims)."""
    total, count = 0.0, 0
    for c in range(len(owned)):
        if met[c]:
            count += 1
            if owned[c] + claims[c] > 0.0:
                total += 2.0 * hits[c] / (owned[c] + claims[c])
    return total / count


@part
def _area(truth, told, weights):
    """The chance that a row of class 1 has the higher decision than one of class 0; equal ones count a half."""
    if len(weights):
        return _weighted_area(truth, told, weights)
    n_ones = 0
    for row in range(len(truth)):
        n_ones += truth[row] == 1
    zeros, ones = np.empty(len(truth) - n_ones), np.empty(n_ones)
    i = j = 0
    for row in range(len(truth)):
        if truth[row] == 1:
            ones[j] = told[row]
            j += 1
        else:
            zeros[i] = told[row]
            i += 1
    n_pairs = float(len(zeros)) * len(ones)
    twice_won = _wins_of_pairs(zeros, ones) if n_pairs <= FEW_PAIRS else _wins_in_order(zeros, ones)
    return 0.5 * twice_won / n_pairs


@part
def _wins_of_pairs(zeros, ones):
    """How many zeros each one is above, and how many it is not below: vector instructions outrun a sort."""
    total = 0
    for i in range(len(ones)):
        value = ones[i]
        for k in range(len(zeros)):
            total += zeros[k] < value
            total += zeros[k] <= value
    return total


@part
def _wins_in_order(zeros, ones):
    zeros.sort()
    ones.sort()
    below, equal, total = 0, 0, 0
    for value in ones:
        while below < len(zeros) and zeros[below] < value:
            below += 1
        equal = max(equal, below)
        while equal < len(zeros) and zeros[equal] == value:
            equal += 1
        total += below + equal
    return total


@part
def _weighted_area(truth, told, weights):
    order = np.argsort(told)
    won, lower, total = 0.0, 0.0, 0.0
    start = 0
    while start < len(order):
        zero_weight, one_weight = 0.0, 0.0
        stop = start
        while stop < len(order) and told[order[stop]] == told[order[start]]:
            if truth[order[stop]] == 1:
                one_weight += weights[order[stop]]
            else:
                zero_weight += weights[order[stop]]
            stop += 1
        won += one_weight * (lower + 0.5 * zero_weight)
        lower += zero_weight
        total += one_weight
        start = stop
    return won / (lower * total)


@part
def _r2(truth, told, weights):
    """1 less the squared errors as a share of the squared distances from the mean; 1 or 0 where there are none."""
    mean, total = 0.0, 0.0
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        mean += weight * truth[row]
        total += weight
    mean /= total
    unexplained, spread = 0.0, 0.0
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        unexplained += weight * (truth[row] - told[row]) ** 2
        spread += weight * (truth[row] - mean) ** 2
    if spread == 0.0:
        return 1.0 if unexplained == 0.0 else 0.0
    return 1.0 - unexplained / spread


@part
def _minus_squared_error(truth, told, weights):
    unexplained, total = 0.0, 0.0
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        unexplained += weight * (truth[row] - told[row]) ** 2
        total += weight
    return -unexplained / total
