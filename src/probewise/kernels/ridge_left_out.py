"""Ridge regression with a free intercept: what it says of rows that are left out of the fit, one by one or by folds.

Leaving out row i changes its residual from e_i to e_i / (1 - h_i), h_i being its leverage: one inverse serves all
rows and targets. With more features than rows it is that of the matrix (rows, rows) of products of rows. Rows are
weighted by the roots r of their weights; u = r / |r| is what the intercept fits.

Matrices are scaled to a diagonal of 1 before they are inverted, and RIDGE is added: copies of a column, with alpha
too small to be seen beside them, do not make them singular.
"""

import math

import numpy as np

from .jit import inline, kernel
from .scores import PROBABILITY, ROC_AUC, score_and_outcomes

RIDGE = 1e-12
SLOPE = 2.0  # probabilities are softmax(SLOPE * decisions), decisions being of targets 1 and -1


@kernel
def one_out_scores(
    lines, indices, offsets, targets, roots, alpha, truth, counts, measure, weights, groups, shares, means, scores
):
    """The score of each probe over all rows, each left out once.

    lines (features, rows) are columns, targets (rows, K) what is fitted: 1 or -1 for each class (of two, for the
    second), or a number. roots are those of the rows' weights, above 0. counts holds the rows of each class, empty for
    numbers; a class whose only row is left out is not known.
    """
    n, n_targets = targets.shape
    decisions, predicted = np.empty((n, n_targets)), np.empty(n)
    known = np.ones(max(len(counts), 1), np.bool_)
    total = np.dot(roots, roots)
    u = roots / math.sqrt(total)
    shifted = np.empty((n, n_targets))
    level = np.zeros(n_targets)
    for c in range(n_targets):
        for i in range(n):
            level[c] += roots[i] * roots[i] / total * targets[i, c]
        for i in range(n):
            shifted[i, c] = roots[i] * (targets[i, c] - level[c])
    for probe in range(len(scores)):
        values = _weighted(lines, indices[offsets[probe] : offsets[probe + 1]], roots, total)
        if len(values) > n:
            _by_rows(values, shifted, u, alpha, decisions)
        else:
            _by_columns(values, shifted, u, alpha, decisions)
        for i in range(n):
            for c in range(n_targets):
                decisions[i, c] = targets[i, c] - decisions[i, c] / roots[i]
        for i in range(n):
            if len(counts):
                own = int(truth[i])
                for c in range(len(counts)):
                    known[c] = counts[c] - (c == own) * (len(weights) == 0 or weights[i] > 0.0) > 0
                predicted[i] = _prediction(decisions[i], known, own, measure)
            else:
                predicted[i] = decisions[i, 0]
        scores[probe] = score_and_outcomes(
            measure, truth, predicted, weights, len(counts), groups, shares, means[probe]
        )


@kernel
def fold_probabilities(
    lines, indices, offsets, targets, roots, alpha, truth, known, train, trains, test, tests, weights, groups, shares,
    means, scores,
):  # fmt: skip
    """The mean probability of the tested rows' own classes, for each probe.

    Fold f trains on train[trains[f]:trains[f + 1]] and tests test[tests[f]:tests[f + 1]], and knows the classes
    known[f]; weights are of the tested rows, or none.
    """
    n_targets, predicted = targets.shape[1], np.empty(len(test))
    for probe in range(len(scores)):
        chosen = indices[offsets[probe] : offsets[probe + 1]]
        for fold in range(len(trains) - 1):
            rows, asked = train[trains[fold] : trains[fold + 1]], test[tests[fold] : tests[fold + 1]]
            own_roots = roots[rows]
            total = np.dot(own_roots, own_roots)
            part, values = np.empty((len(chosen), len(rows))), np.empty((len(chosen), len(asked)))
            for f in range(len(chosen)):
                line, mean = lines[chosen[f]], 0.0
                for i in range(len(rows)):
                    mean += own_roots[i] * own_roots[i] / total * line[rows[i]]
                for i in range(len(rows)):
                    part[f, i] = own_roots[i] * (line[rows[i]] - mean)
                for i in range(len(asked)):
                    values[f, i] = line[asked[i]] - mean
            level, shifted = np.zeros(n_targets), np.empty((len(rows), n_targets))
            for c in range(n_targets):
                for i in range(len(rows)):
                    level[c] += own_roots[i] * own_roots[i] / total * targets[rows[i], c]
                for i in range(len(rows)):
                    shifted[i, c] = own_roots[i] * (targets[rows[i], c] - level[c])
            decisions = np.dot(values.T, _coefficients(part, shifted, alpha))
            for i in range(len(asked)):
                for c in range(n_targets):
                    decisions[i, c] += level[c]
                own = int(truth[asked[i]])
                predicted[tests[fold] + i] = _prediction(decisions[i], known[fold], own, PROBABILITY)
        scores[probe] = score_and_outcomes(PROBABILITY, truth, predicted, weights, 0, groups, shares, means[probe])


@inline
def _weighted(lines, chosen, roots, total):
    """The probe's columns less their weighted means, times the roots of the weights."""
    n = lines.shape[1]
    values = np.empty((len(chosen), n))
    for f in range(len(chosen)):
        line, to, mean = lines[chosen[f]], values[f], 0.0
        for i in range(n):
            mean += roots[i] * roots[i] * line[i]
        mean /= total
        for i in range(n):
            to[i] = roots[i] * (line[i] - mean)
    return values


@inline
def _inverse(matrix, alpha):
    """The inverse of matrix + alpha I."""
    n = len(matrix)
    scale = np.empty(n)
    for i in range(n):
        scale[i] = 1.0 / math.sqrt(matrix[i, i] + alpha)
    for i in range(n):
        for j in range(n):
            matrix[i, j] *= scale[i] * scale[j]
        matrix[i, i] = 1.0 + RIDGE
    inverse = np.linalg.inv(matrix)
    for i in range(n):
        for j in range(n):
            inverse[i, j] *= scale[i] * scale[j]
    return inverse


@inline
def _by_columns(values, targets, u, alpha, residuals):
    """Residuals of rows left out, from the inverse (features, features)."""
    solved = np.dot(_inverse(np.dot(values, values.T), alpha), values)
    fitted = np.dot(solved.T, np.dot(values, targets))
    leverage = u * u
    for f in range(len(values)):
        for i in range(len(u)):
            leverage[i] += values[f, i] * solved[f, i]
    for i in range(len(u)):
        rest = max(1.0 - leverage[i], RIDGE)
        for c in range(targets.shape[1]):
            residuals[i, c] = (targets[i, c] - fitted[i, c]) / rest


@inline
def _by_rows(values, targets, u, alpha, residuals):
    """The same from the inverse (rows, rows); along u, where it holds nothing, a value of the size of others is put."""
    n = len(u)
    matrix = np.dot(values.T, values)
    along = 0.0
    for i in range(n):
        along += matrix[i, i] / n
    for i in range(n):
        for j in range(n):
            matrix[i, j] += along * u[i] * u[j]
    inverse = _inverse(matrix, alpha)
    solved = np.dot(inverse, targets)
    for i in range(n):
        rest = inverse[i, i] - u[i] * u[i] / (along + alpha)
        for c in range(targets.shape[1]):
            residuals[i, c] = solved[i, c] / rest


@inline
def _coefficients(values, targets, alpha):
    if len(values) > len(targets):
        return np.dot(values, np.dot(_inverse(np.dot(values.T, values), alpha), targets))
    return np.dot(_inverse(np.dot(values, values.T), alpha), np.dot(values, targets))


@inline
def _prediction(decisions, known, own, measure):
    """The probability of the own class, for the area under the curve the decision, or else the class."""
    if measure == ROC_AUC:
        return decisions[0]
    winner, highest = -1, -np.inf
    for c in range(len(known)):
        decision = decisions[c] if len(decisions) > 1 else (2 * c - 1) * decisions[0]
        if known[c] and decision > highest:
            winner, highest = c, decision
    if measure != PROBABILITY:
        return float(winner)
    if not known[own]:
        return 0.0
    total, right = 0.0, 0.0
    for c in range(len(known)):
        if known[c]:
            decision = decisions[c] if len(decisions) > 1 else (2 * c - 1) * decisions[0]
            odds = math.exp(SLOPE * (decision - highest))
            total += odds
            if c == own:
                right = odds
    return right / total
