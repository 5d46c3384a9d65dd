"""Scores of the predictions for a fold, as scikit-learn's metrics define them, with weights of the rows.

truth holds class numbers, or numbers to be predicted. predicted holds a class number, for the area under the curve a
decision that is higher where class 1 is likelier, the probability of the row's own class, or a number. weights has no
entries where all rows count alike.
"""

import numpy as np

from .jit import kernel, part

ACCURACY, BALANCED_ACCURACY, F1_MACRO, ROC_AUC, R2, SQUARED_ERROR, PROBABILITY, ABSOLUTE_ERROR, PREDICTION = range(9)
FEW_PAIRS = 2**20


@kernel
def score(measure, truth, predicted, weights, n_classes):
    """The score of one fold; larger is better."""
    if measure == ACCURACY:
        return _accuracy(truth, predicted, weights)
    if measure == ROC_AUC:
        return _area(truth, predicted, weights)
    if measure == R2:
        return _r2(truth, predicted, weights)
    if measure == SQUARED_ERROR:
        return _minus_squared_error(truth, predicted, weights)
    if measure == ABSOLUTE_ERROR:
        return _minus_absolute_error(truth, predicted, weights)
    if measure == PREDICTION:  # what a score is made of elsewhere: see `add_outcomes`
        return 0.0
    if measure == PROBABILITY:
        return _mean(predicted, weights)
    hits, claims, owned, met = _by_class(truth, predicted, weights, n_classes)
    return _mean_recall(hits, owned) if measure == BALANCED_ACCURACY else _mean_f1(hits, claims, owned, met)


@kernel
def score_and_outcomes(measure, truth, predicted, weights, n_classes, groups, shares, means):
    """The score, and where there are groups of rows their outcomes: see `add_outcomes`."""
    if len(groups):
        add_outcomes(measure, truth, predicted, weights, groups, shares, means)
    return score(measure, truth, predicted, weights, n_classes)


@kernel
def add_outcomes(measure, truth, predicted, weights, groups, shares, means):
    """means[g] += the outcomes of rows scored together that are of group g (-1: of none), times their shares in it.

    Of scores that are not a mean over rows the outcomes are the predictions: with a group for each row they are had.
    """
    level, scale = (1.0, -_inverse_mean_scatter(truth, weights)) if measure == R2 else (0.0, -1.0)
    if scale == 0.0:  # all to be predicted are equal: each row has the score of all
        level = _r2(truth, predicted, weights)
    for row in range(len(predicted)):
        if groups[row] >= 0:
            if measure in (R2, SQUARED_ERROR):
                outcome = level + scale * (truth[row] - predicted[row]) ** 2
            elif measure == ABSOLUTE_ERROR:
                outcome = -abs(truth[row] - predicted[row])
            elif measure in (PROBABILITY, PREDICTION, ROC_AUC):
                outcome = predicted[row]
            else:
                outcome = np.float64(predicted[row] == truth[row])
            means[groups[row]] += shares[row] * outcome


@part
def _inverse_mean_scatter(truth, weights):
    """1 / the mean squared distance from the mean; 0 where there is none."""
    mean, total, scatter = 0.0, 0.0, 0.0
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        mean += weight * truth[row]
        total += weight
    mean /= total
    for row in range(len(truth)):
        scatter += (weights[row] if len(weights) else 1.0) * (truth[row] - mean) ** 2
    return total / scatter if scatter > 0.0 else 0.0


@part
def _accuracy(truth, predicted, weights):
    """The share of rows, or of their weight, predicted rightly."""
    if len(weights) == 0:
        right = 0
        for row in range(len(truth)):
            right += predicted[row] == truth[row]
        return right / len(truth)
    right_weight, total = 0.0, 0.0
    for row in range(len(truth)):
        total += weights[row]
        if predicted[row] == truth[row]:
            right_weight += weights[row]
    return right_weight / total


@part
def _by_class(truth, predicted, weights, n_classes):
    """Of each class: weight of rows rightly predicted, of all predicted, of its own, and whether there are any."""
    hits, claims, owned = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    met = np.zeros(n_classes, np.bool_)
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        own, other = int(truth[row]), int(predicted[row])
        owned[own] += weight
        claims[other] += weight
        met[own] = True
        met[other] = True
        if own == other:
            hits[own] += weight
    return hits, claims, owned, met


@part
def _mean_recall(hits, owned):
    """Mean over the classes that have rows here of the share predicted rightly."""
    total, count = 0.0, 0
    for c in range(len(owned)):
        if owned[c] > 0.0:
            total += hits[c] / owned[c]
            count += 1
    return total / count


@part
def _mean_f1(hits, claims, owned, met):
    """Mean over the classes met, in truth or in predictions, of 2 hits / (rows + claims)."""
    total, count = 0.0, 0
    for c in range(len(owned)):
        if met[c]:
            count += 1
            if owned[c] + claims[c] > 0.0:
                total += 2.0 * hits[c] / (owned[c] + claims[c])
    return total / count


@part
def _area(truth, predicted, weights):
    """The chance that a row of class 1 has the higher decision than one of class 0; equal ones count a half."""
    if len(weights):
        return _weighted_area(truth, predicted, weights)
    n_ones = 0
    for row in range(len(truth)):
        n_ones += truth[row] == 1
    zeros, ones = np.empty(len(truth) - n_ones), np.empty(n_ones)
    i = j = 0
    for row in range(len(truth)):
        if truth[row] == 1:
            ones[j] = predicted[row]
            j += 1
        else:
            zeros[i] = predicted[row]
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
def _weighted_area(truth, predicted, weights):
    order = np.argsort(predicted)
    won, lower, total = 0.0, 0.0, 0.0
    start = 0
    while start < len(order):
        zero_weight, one_weight = 0.0, 0.0
        stop = start
        while stop < len(order) and predicted[order[stop]] == predicted[order[start]]:
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
def _r2(truth, predicted, weights):
    """1 less the squared errors as a share of the squared distances from the mean; 1 or 0 where there are none."""
    mean, total = 0.0, 0.0
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        mean += weight * truth[row]
        total += weight
    mean /= total
    unexplained, scatter = 0.0, 0.0
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        unexplained += weight * (truth[row] - predicted[row]) ** 2
        scatter += weight * (truth[row] - mean) ** 2
    if scatter == 0.0:
        return 1.0 if unexplained == 0.0 else 0.0
    return 1.0 - unexplained / scatter


@part
def _minus_squared_error(truth, predicted, weights):
    unexplained, total = 0.0, 0.0
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        unexplained += weight * (truth[row] - predicted[row]) ** 2
        total += weight
    return -unexplained / total


@part
def _minus_absolute_error(truth, predicted, weights):
    unexplained, total = 0.0, 0.0
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        unexplained += weight * abs(truth[row] - predicted[row])
        total += weight
    return -unexplained / total


@part
def _mean(predicted, weights):
    total, weight = 0.0, 0.0
    for row in range(len(predicted)):
        own = weights[row] if len(weights) else 1.0
        total += own * predicted[row]
        weight += own
    return total / weight
