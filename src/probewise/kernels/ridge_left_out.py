"""Predictions for rows that are left out of ridge regression, from the decisions of `ridge_decisions`."""

import math

import numpy as np

from .jit import njit_cached, njit_helper
from .scores import PROBABILITY, ROC_AUC

SLOPE = 2.0  # probabilities are softmax(SLOPE * decisions), decisions being of targets 1 and -1


@njit_cached
def predict_left_out(decisions, borders, known, truth, measure, n_classes, predicted):
    """Fill predicted (probes, tests) from decisions (probes, tests, outputs).

    Fold f tests borders[f], ..., borders[f + 1] - 1 and knows the classes known[f].
    """
    for probe in range(len(predicted)):
        for fold in range(len(borders) - 1):
            for i in range(borders[fold], borders[fold + 1]):
                if n_classes:
                    predicted[probe, i] = _prediction(decisions[probe, i], known[fold], int(truth[i]), measure)
                else:
                    predicted[probe, i] = decisions[probe, i, 0]


@njit_helper
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
