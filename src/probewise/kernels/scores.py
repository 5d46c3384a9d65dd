"""Scores of predictions, as scikit-learn's metrics define them, with weights of the rows.

truth holds class numbers, or numbers to be predicted. predicted holds a class number, for the area under the curve a
decision that is higher where class 1 is likelier, the probability of the row's own class, or a number. weights has no
entries where all rows count alike.

Kernels that predict leave the scoring to a call of its own: what a kernel calls is compiled into it, and all scores in
every one of them would take a minute.
"""

import numpy as np

from .jit import njit_cached, njit_helper

ACCURACY, BALANCED_ACCURACY, F1_MACRO, ROC_AUC, R2, SQUARED_ERROR, PROBABILITY, ABSOLUTE_ERROR, PREDICTION = range(9)
ERRORS = R2, SQUARED_ERROR, ABSOLUTE_ERROR  # what scores of numbers are made of
FEW_PAIRS = 2**20


def score_probes(measure, truth, predicted, weights, n_classes, borders, groups, shares, means, scores):
    """The mean of the scores of tests from border to border, of each probe; larger is better.

    predicted is (probes, tests). Where there are groups of rows, their outcomes are added to means.
    """
    known = measure, truth, predicted, weights, borders
    if measure in (BALANCED_ACCURACY, F1_MACRO, ROC_AUC):
        _score_by_classes(*known, n_classes, scores)
    elif measure in ERRORS:
        _score_by_errors(*known, scores)
    else:
        _score_by_rows(*known, scores)
    if len(groups):
        add = _add_errors if measure in ERRORS else _add_outcomes
        add(*known, groups, shares, means)


@njit_cached
def _score_by_rows(measure, truth, predicted, weights, borders, scores):
    for probe in range(len(predicted)):
        total = 0.0
        for fold in range(len(borders) - 1):
            own = slice(borders[fold], borders[fold + 1])
            predictions, own_weights = predicted[probe, own], weights[own] if len(weights) else weights
            if measure == ACCURACY:
                total += _accuracy(truth[own], predictions, own_weights)
            elif measure == PROBABILITY:
                total += _mean(predictions, own_weights)
        scores[probe] = total / (len(borders) - 1)


@njit_cached
def _score_by_errors(measure, truth, predicted, weights, borders, scores):
    for probe in range(len(predicted)):
        total = 0.0
        for fold in range(len(borders) - 1):
            own = slice(borders[fold], borders[fold + 1])
            predictions, own_weights = predicted[probe, own], weights[own] if len(weights) else weights
            if measure == R2:
                total += _r2(truth[own], predictions, own_weights)
            else:
                errors, weight = _errors(measure, truth[own], predictions, own_weights)
                total += -errors / weight
        scores[probe] = total / (len(borders) - 1)


@njit_cached
def _score_by_classes(measure, truth, predicted, weights, borders, n_classes, scores):
    for probe in range(len(predicted)):
        total = 0.0
        for fold in range(len(borders) - 1):
            own = slice(borders[fold], borders[fold + 1])
            predictions, own_weights = predicted[probe, own], weights[own] if len(weights) else weights
            if measure == ROC_AUC:
                total += _area(truth[own], predictions, own_weights)
            else:
                counts = _by_class(truth[own], predictions, own_weights, n_classes)
                total += _mean_recall(counts) if measure == BALANCED_ACCURACY else _mean_f1(counts)
        scores[probe] = total / (len(borders) - 1)


@njit_cached
def _add_outcomes(measure, truth, predicted, weights, borders, groups, shares, means):
    """means[probe, g] += the outcomes of tests that are of group g (-1: of none), times their shares in it.

    Of scores that are not a mean over rows the outcomes are the predictions: with a group for each row they are had.
    """
    are_predictions = measure in (PROBABILITY, PREDICTION, ROC_AUC)
    for probe in range(len(predicted)):
        for row in range(borders[0], borders[-1]):
            if groups[row] >= 0:
                prediction = predicted[probe, row]
                outcome = prediction if are_predictions else np.float64(prediction == truth[row])
                means[probe, groups[row]] += shares[row] * outcome


@njit_cached
def _add_errors(measure, truth, predicted, weights, borders, groups, shares, means):
    """The same of numbers that were predicted: squared errors as shares in R^2, squared or absolute ones."""
    for fold in range(len(borders) - 1):
        own = slice(borders[fold], borders[fold + 1])
        own_weights = weights[own] if len(weights) else weights
        level, slope = 0.0, -1.0
        if measure == R2:
            scatter, weight = _scatter(truth[own], own_weights)
            level, slope = 1.0, -weight / scatter if scatter > 0.0 else 0.0
        for probe in range(len(predicted)):
            if slope == 0.0:  # all to be predicted are equal: each row has the score of all
                level = _r2(truth[own], predicted[probe, own], own_weights)
            for row in range(own.start, own.stop):
                if groups[row] >= 0:
                    error = truth[row] - predicted[probe, row]
                    outcome = -abs(error) if measure == ABSOLUTE_ERROR else level + slope * error**2
                    means[probe, groups[row]] += shares[row] * outcome


@njit_helper
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


@njit_helper
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


@njit_helper
def _mean_recall(counts):
    """Mean over the classes that have rows here of the share predicted rightly."""
    hits, _, owned, _ = counts
    total, count = 0.0, 0
    for c in range(len(owned)):
        if owned[c] > 0.0:
            total += hits[c] / owned[c]
            count += 1
    return total / count


@njit_helper
def _mean_f1(counts):
    """Mean over the classes met, in truth or in predictions, of 2 hits / (rows + claims)."""
    hits, claims, owned, met = counts
    total, count = 0.0, 0
    for c in range(len(owned)):
        if met[c]:
            count += 1
            if owned[c] + claims[c] > 0.0:
                total += 2.0 * hits[c] / (owned[c] + claims[c])
    return total / count


@njit_helper
def _area(truth, predicted, weights):
    """The chance that a row of class 1 has the higher decision than one of class 0; equal ones count a half."""
    n_ones = 0
    for row in range(len(truth)):
        n_ones += truth[row] == 1
    n_pairs = float(len(truth) - n_ones) * n_ones
    if len(weights) or n_pairs > FEW_PAIRS:
        return _area_in_order(truth, predicted, weights)
    zeros, ones = np.empty(len(truth) - n_ones), np.empty(n_ones)
    i = j = 0
    for row in range(len(truth)):
        if truth[row] == 1:
            ones[j] = predicted[row]
            j += 1
        else:
            zeros[i] = predicted[row]
            i += 1
    return 0.5 * _wins_of_pairs(zeros, ones) / n_pairs


@njit_helper
def _wins_of_pairs(zeros, ones):
    """How many zeros each one is above, and how many it is not below: vector instructions outrun a sort."""
    total = 0
    for i in range(len(ones)):
        value = ones[i]
        for k in range(len(zeros)):
            total += zeros[k] < value
            total += zeros[k] <= value
    return total


@njit_helper
def _area_in_order(truth, predicted, weights):
    order = np.argsort(predicted)
    won, lower, total = 0.0, 0.0, 0.0
    start = 0
    while start < len(order):
        zero_weight, one_weight = 0.0, 0.0
        stop = start
        while stop < len(order) and predicted[order[stop]] == predicted[order[start]]:
            weight = weights[order[stop]] if len(weights) else 1.0
            if truth[order[stop]] == 1:
                one_weight += weight
            else:
                zero_weight += weight
            stop += 1
        won += one_weight * (lower + 0.5 * zero_weight)
        lower += zero_weight
        total += one_weight
        start = stop
    return won / (lower * total)


@njit_helper
def _r2(truth, predicted, weights):
    """1 less the squared errors as a share of the squared distances from the mean; 1 or 0 where there are none."""
    unexplained, _ = _errors(R2, truth, predicted, weights)
    scatter, _ = _scatter(truth, weights)
    if scatter == 0.0:
        return 1.0 if unexplained == 0.0 else 0.0
    return 1.0 - unexplained / scatter


@njit_helper
def _scatter(truth, weights):
    """The sum of squared distances from the mean, and the weight of all rows."""
    mean, total, scatter = 0.0, 0.0, 0.0
    for row in range(len(truth)):
        weight = weights[row] if len(weights) else 1.0
        mean += weight * truth[row]
        total += weight
    mean /= total
    for row in range(len(truth)):
        scatter += (weights[row] if len(weights) else 1.0) * (truth[row] - mean) ** 2
    return scatter, total


@njit_helper
def _errors(measure, truth, predicted, weights):
    """The sum of squared, or absolute, errors, and the weight of all rows."""
    errors, total = 0.0, 0.0
    for row in range(len(truth)):
        weight, error = weights[row] if len(weights) else 1.0, truth[row] - predicted[row]
        errors += weight * (abs(error) if measure == ABSOLUTE_ERROR else error**2)
        total += weight
    return errors, total


@njit_helper
def _mean(predicted, weights):
    total, weight = 0.0, 0.0
    for row in range(len(predicted)):
        own = weights[row] if len(weights) else 1.0
        total += own * predicted[row]
        weight += own
    return total / weight
