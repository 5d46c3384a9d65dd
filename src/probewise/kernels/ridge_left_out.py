"""Scores of ridge regression on rows that are left out of the fit, from the decisions of `ridge_decisions`."""

import math

import numpy as np

from .jit import kernel, part
from .ridge_decisions import Probe, Room, decide, from_products, room_for, row_products
from .scores import PROBABILITY, ROC_AUC, score_and_outcomes

SLOPE = 2.0  # probabilities are softmax(SLOPE * decisions), decisions being of targets 1 and -1


@kernel
def left_out_scores(
    lines, indices, offsets, gaps, fills, problems, fit, truth, known, measure, weights, n_classes, is_pooled, groups,
    shares, means, scores,
):  # fmt: skip
    """The score of each probe, over all rows left out or as the mean of its folds; NaN where digits were lost.

    lines (features, rows) are columns about a value in their middle. gaps[i], where there are any, says which fill of
    fills[fold] stands in for NaN in the feature at place i of indices. truth and weights are of tested rows, fold after
    fold; fold f knows the classes known[f].
    """
    n_targets, n_tested = len(fit.targets), len(truth)
    decisions, predicted = np.empty((n_tested, n_targets)), np.empty(n_tested)
    room = room_for(offsets, problems, n_targets)
    no_gaps, no_fill = np.empty(0, np.int64), np.empty(0)
    for probe in range(len(scores)):
        span = slice(offsets[probe], offsets[probe + 1])
        own_gaps = gaps[span] if len(gaps) else no_gaps
        done, is_sure = 0, True
        for p in range(len(problems.starts) - 1):
            borders = problems.borders[problems.starts[p] : problems.starts[p + 1]]
            fill = fills[p] if len(gaps) else no_fill
            width = borders[-1] - borders[problems.first]
            if is_sure:
                asked = Probe(
                    lines, indices[span], own_gaps, fill, problems.rows, borders, problems.first, problems.in_order
                )
                is_sure = decide(asked, fit, room, decisions[done : done + width])
            done += width
        scores[probe] = np.nan
        if is_sure:
            scores[probe] = score_decisions(
                decisions, problems, truth, known, measure, weights, n_classes, is_pooled, groups, shares,
                means[probe], predicted,
            )  # fmt: skip


@kernel
def plus_each_scores(
    lines, subset, candidates, problems, fit, truth, known, measure, weights, n_classes, is_pooled, scores
):
    """The score of a probe with each candidate added, from products of rows, which only gain a term."""
    n, n_targets = len(fit.roots), len(fit.targets)
    decisions, predicted, means = np.empty((n, n_targets)), np.empty(n), np.empty(0)
    room = Room(np.empty(len(subset) * n), np.empty(0))
    products, own = np.empty((n, n)), np.empty((n, n))
    no_groups, no_fill = np.empty(0, np.int64), np.empty(0)
    probe = Probe(lines, subset, no_groups, no_fill, problems.rows, problems.borders, problems.first, problems.in_order)
    row_products(probe, fit.roots, room, products)
    for candidate in range(len(candidates)):
        line = lines[candidates[candidate]] * fit.roots
        for i in range(n):
            for j in range(n):
                own[i, j] = products[i, j] + line[i] * line[j]
        scores[candidate] = np.nan
        if from_products(own, problems.rows, problems.borders, problems.first, fit, decisions):
            scores[candidate] = score_decisions(
                decisions, problems, truth, known, measure, weights, n_classes, is_pooled, no_groups, no_fill, means,
                predicted,
            )  # fmt: skip


@kernel
def score_decisions(
    decisions, problems, truth, known, measure, weights, n_classes, is_pooled, groups, shares, means, predicted
):
    """The score of decisions (tested rows, outputs), and the mean outcomes of groups; predicted is work space."""
    fold, start, begin, total = 0, 0, 0, 0.0
    for p in range(len(problems.starts) - 1):
        borders = problems.borders[problems.starts[p] : problems.starts[p + 1]]
        for segment in range(problems.first, len(borders) - 1):
            stop = start + borders[segment + 1] - borders[segment]
            for i in range(start, stop):
                if n_classes:
                    predicted[i] = _prediction(decisions[i], known[fold], int(truth[i]), measure)
                else:
                    predicted[i] = decisions[i, 0]
            fold += 1
            start = stop
            if not is_pooled or stop == len(truth):  # one call: each is compiled as a copy of all scores
                own = slice(begin, stop)
                total += score_and_outcomes(
                    measure, truth[own], predicted[own], weights[own], n_classes, groups[own], shares[own], means
                )
                begin = stop
    return total if is_pooled else total / fold


@part
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
