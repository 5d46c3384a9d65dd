"""Scores of predictions with weights of the rows, as scikit-learn's metrics define them.

``truth`` is class codes or numbers. ``predicted`` is class codes, decisions (for the area under the ROC curve: higher
means class 1 is likelier), probabilities of the true class, or numbers. ``weights`` is empty if all rows count the
same.

Kernels that predict do not call these: a called function is compiled into each caller, and all scores in every
kernel would take a minute to compile.
"""

import numpy as np

from .jit import njit_cached, njit_helper

ACCURACY, BALANCED_ACCURACY, F1_MACRO, ROC_AUC, R2, SQUARED_ERROR, PROBABILITY, ABSOLUTE_ERROR, PREDICTION = range(9)
ERRORS = R2, SQUARED_ERROR, ABSOLUTE_ERROR  # scores made of errors of numbers


def score_probes(measure, truth, predicted, weights, n_classes, borders, scores):
    """Write the score of each probe: the mean over folds, which are the tests from border to border.

    ``predicted`` is (probes, tests).
    """
    tests = measure, truth, predicted, weights, borders
    if measure in (BALANCED_ACCURACY, F1_MACRO, ROC_AUC):
        _score_by_classes(*tests, n_classes, scores)
    elif measure in ERRORS:
        _score_by_errors(*tests, scores)
    else:
        _score_by_rows(*tests, scores)


@njit_cached
def _score_by_rows(measure, truth, predicted, weights, borders, scores):
    """Accuracy or mean probability of a fold."""
    for probe in range(len(predicted)):
        score = 0.0
        for fold in range(len(borders) - 1):
            won, total = 0.0, 0.0
            for row in range(borders[fold], borders[fold + 1]):
                weight, prediction = _weight(weights, row), predicted[probe, row]
                total += weight
                if measure != ACCURACY:
                    won += weight * prediction
                elif prediction == truth[row]:
                    won += weight
            score += won / total
        scores[probe] = score / (len(borders) - 1)


@njit_cached
def _score_by_errors(measure, truth, predicted, weights, borders, scores):
    for probe in range(len(predicted)):
        score = 0.0
        for fold in range(len(borders) - 1):
            tests = slice(borders[fold], borders[fold + 1])
            fold_weights = weights[tests] if len(weights) else weights
            if measure == R2:
                score += _r2(truth[tests], predicted[probe, tests], fold_weights)
            else:
                errors, total = _errors(measure, truth[tests], predicted[probe, tests], fold_weights)
                score += -errors / total
        scores[probe] = score / (len(borders) - 1)


@njit_cached
def _score_by_classes(measure, truth, predicted, weights, borders, n_classes, scores):
    for probe in range(len(predicted)):
        score = 0.0
        for fold in range(len(borders) - 1):
            tests = slice(borders[fold], borders[fold + 1])
            fold_weights = weights[tests] if len(weights) else weights
            if measure == ROC_AUC:
                score += _roc_auc(truth[tests], predicted[probe, tests], fold_weights)
            else:
                score += _mean_over_classes(measure, truth[tests], predicted[probe, tests], fold_weights, n_classes)
        scores[probe] = score / (len(borders) - 1)


@njit_helper
def _weight(weights, row):
    return weights[row] if len(weights) else 1.0


@njit_helper
def _mean_over_classes(measure, truth, predicted, weights, n_classes):
    """Mean recall of the classes with true rows, or mean F1 of the classes that are true or predicted anywhere."""
    hits, claimed, true = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    occurs = np.zeros(n_classes, np.bool_)
    for row in range(len(truth)):
        weight, label, claim = _weight(weights, row), int(truth[row]), int(predicted[row])
        true[label] += weight
        claimed[claim] += weight
        occurs[label] = True
        occurs[claim] = True
        if label == claim:
            hits[label] += weight
    total, count = 0.0, 0
    for c in range(n_classes):
        if measure == BALANCED_ACCURACY and true[c] > 0.0:
            total += hits[c] / true[c]
            count += 1
        elif measure == F1_MACRO and occurs[c]:
            total += 2.0 * hits[c] / (true[c] + claimed[c]) if true[c] + claimed[c] > 0.0 else 0.0
            count += 1
    return total / count


@njit_helper
def _roc_auc(truth, predicted, weights):
    """Probability that a row of class 1 has a higher decision than a row of class 0; ties count one half."""
    order = np.argsort(predicted)
    won, lower, total = 0.0, 0.0, 0.0
    start = 0
    while start < len(order):
        zero_weight, one_weight = 0.0, 0.0
        stop = start
        while stop < len(order) and predicted[order[stop]] == predicted[order[start]]:
            weight = _weight(weights, order[stop])
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
    """1 - squared errors / squared deviations from the mean; 1 or 0 if there are no deviations."""
    unexplained, total = _errors(R2, truth, predicted, weights)
    mean, scatter = 0.0, 0.0
    for row in range(len(truth)):
        mean += _weight(weights, row) * truth[row]
    mean /= total
    for row in range(len(truth)):
        scatter += _weight(weights, row) * (truth[row] - mean) ** 2
    if scatter == 0.0:
        return 1.0 if unexplained == 0.0 else 0.0
    return 1.0 - unexplained / scatter


@njit_helper
def _errors(measure, truth, predicted, weights):
    """Sum of squared or absolute errors, and the weight of all rows."""
    errors, total = 0.0, 0.0
    for row in range(len(truth)):
        weight, error = _weight(weights, row), truth[row] - predicted[row]
        errors += weight * (abs(error) if measure == ABSOLUTE_ERROR else error**2)
        total += weight
    return errors, total
