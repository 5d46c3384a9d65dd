"""Predictions of Gaussian naive Bayes for many probes, from the means and variances of single features.

The cost of class c for a row x is minus its log posterior, up to a constant of the row:
-log prior_c + sum over the features f of the probe of (x_f - m_cf)^2 / 2 v_cf + log(v_cf) / 2.
The class of least cost wins, the first of several. Squares are summed as they are: expanding them would lose the
digits of classes that have next to no variance.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .jit import longest, njit_cached, njit_helper
from .scores import PROBABILITY, ROC_AUC

FAR = 100.0  # standard deviations: zeros this far from a class mean are summed row by row, against cancellation


class Model(NamedTuple):
    """Test rows by column, and the Gaussians of the training rows.

    Column f of the test rows is data[indptr[f]:indptr[f + 1]]. Where ``is_sparse``, ``indices`` has the rows of these
    values, and all other rows hold 0. The test rows share one model, or each has its own (leave-one-out): ``log_prior``
    is (models, classes), with -inf for classes without training rows, and ``pooled``, the variance over all classes, is
    (features, models). ``mean`` and ``variance`` are (features, classes); in leave-one-out ``own_mean`` and
    ``own_variance`` (features, rows) replace them for the class of the row, which loses that row.
    """

    is_sparse: bool
    data: Any
    indices: Any
    indptr: Any
    mean: Any
    variance: Any
    pooled: Any
    log_prior: Any
    own_mean: Any
    own_variance: Any


@njit_cached
def predict(model, features, offsets, labels, smoothing, measure, first, predicted):
    """Fill predicted[:, first:first + len(labels)] with the classes that the probes predict for the test rows.

    For ROC_AUC it is the log odds of class 1 instead, for PROBABILITY the posterior of the row's label.
    """
    n_models, n_classes = model.log_prior.shape
    n_rows, size = len(labels) // n_models, longest(offsets)
    center, weight = np.empty((n_classes, size)), np.empty((n_classes, size))
    start, column, cost = np.empty(n_classes), np.empty(n_rows), np.empty((n_classes, n_rows))
    for probe in range(len(predicted)):
        chosen = features[offsets[probe] : offsets[probe + 1]]
        for number in range(n_models):
            row = number * n_rows
            _fit(model, number, labels[row], chosen, smoothing, center, weight, start)
            cost[:] = 0.0
            for k in range(len(chosen)):
                begin, end = model.indptr[chosen[k]], model.indptr[chosen[k] + 1]
                if model.is_sparse:
                    values, rows = model.data[begin:end], model.indices[begin:end]
                    _add_sparse(values, rows, center[:, k], weight[:, k], start, column, cost)
                    continue
                for c in range(n_classes):
                    if n_rows > 1:
                        values = model.data[begin + row : begin + row + n_rows]
                        _add_squares(values, center[c, k], weight[c, k], cost[c])
                    else:  # numba's slices would take three quarters of the time
                        off = model.data[begin + row] - center[c, k]
                        cost[c, 0] += off * off * weight[c, k]
            tests = slice(first + row, first + row + n_rows)
            _decide(cost, start, labels[row : row + n_rows], measure, predicted[probe, tests])


@njit_helper
def _fit(model, number, label, features, smoothing, center, weight, start):
    """Means and 1 / 2 v of the probe's features, and the cost of each class at its mean; unused columns weigh 0."""
    widest = 0.0
    for feature in features:
        widest = max(widest, model.pooled[feature, number])
    for c in range(len(start)):
        start[c] = -model.log_prior[number, c]
    for k in range(len(features)):
        feature, least = features[k], np.inf
        for c in range(len(start)):
            mean, variance = model.mean[feature, c], model.variance[feature, c]
            if c == label and len(model.own_mean):
                mean, variance = model.own_mean[feature, number], model.own_variance[feature, number]
            center[c, k] = mean
            weight[c, k] = variance + smoothing * widest
            if start[c] < np.inf:
                least = min(least, weight[c, k])
        is_used = model.pooled[feature, number] > 0.0 and least > 0.0
        for c in range(len(start)):
            if is_used and start[c] < np.inf:
                start[c] += 0.5 * math.log(weight[c, k])
                weight[c, k] = 0.5 / weight[c, k]
            else:
                weight[c, k] = 0.0


@njit_helper
def _add_squares(values, center, weight, cost):
    for row in range(len(cost)):
        off = values[row] - center
        cost[row] += off * off * weight


@njit_helper
def _add_sparse(values, rows, center, weight, start, column, cost):
    """Add the cost of zeros to ``start``, and to ``cost`` what stored values cost more than zeros."""
    is_far = False
    for c in range(len(start)):
        is_far |= 2.0 * center[c] * center[c] * weight[c] > FAR * FAR
    if is_far:
        column[:] = 0.0
        for place in range(len(rows)):
            column[rows[place]] = values[place]
    for c in range(len(start)):
        if is_far:
            _add_squares(column, center[c], weight[c], cost[c])
            continue
        start[c] += center[c] * center[c] * weight[c]
        for place in range(len(rows)):
            cost[c, rows[place]] += values[place] * (values[place] - 2.0 * center[c]) * weight[c]


@njit_helper
def _decide(cost, start, labels, measure, predicted):
    for row in range(len(predicted)):
        if measure == ROC_AUC:
            predicted[row] = (cost[0, row] + start[0]) - (cost[1, row] + start[1])
            continue
        winner, least = 0, np.inf
        for c in range(len(start)):
            if cost[c, row] + start[c] < least:
                winner, least = c, cost[c, row] + start[c]
        predicted[row] = winner
        if measure == PROBABILITY:
            total = 0.0
            for c in range(len(start)):
                total += math.exp(least - (cost[c, row] + start[c]))
            predicted[row] = math.exp(least - (cost[labels[row], row] + start[labels[row]])) / total
