"""Votes of the nearest neighbours by distance: the probability that they give to each row's own class.

Of a tested row the neighbours at squared distances d_1, ..., d_k have the weights softmax(-d / T). T is a fifth of the
mean, over all tested rows, of the squared distance to the fifth neighbour, so that J does not depend on the scale.
"""

import math

import numpy as np

from .jit import inline, kernel
from .scores import PROBABILITY, score_and_outcomes
from .vectors import LANES, lowest_bit, not_below_one, popcount

TILE = 256  # rows whose distances to all others are held at a time
GROUPS = 2 * LANES  # of candidates, whose nearest bound the distance of the k-th nearest: serves k up to as many
TYPICAL = 5  # the neighbour whose distance sets the temperature


@kernel
def soft_scores(lines, indices, offsets, tested, fold, groups, k, labels, weights, row_groups, shares, means, scores):
    """J of each probe, from columns as lines (features, rows).

    Test t is of row tested[t] in fold[t]; weights are of tests, or none. Row j trains it unless groups[fold[t], j] is
    fold[t]; a single line of groups serves all folds: then it says in which fold each row is.
    """
    n = lines.shape[1]
    near, others = np.empty((len(tested), k), lines.dtype), np.empty((len(tested), k), np.int32)
    squares, closeness, predicted = np.empty(n, lines.dtype), np.empty(n, lines.dtype), np.empty(len(tested))
    peaks = np.empty(GROUPS, lines.dtype)
    zero, two, infinite = lines.dtype.type(0), lines.dtype.type(2), lines.dtype.type(np.inf)  # no float64 among float32
    is_all = n <= TILE and np.array_equal(tested, np.arange(n))
    for probe in range(len(scores)):
        chosen = indices[offsets[probe] : offsets[probe + 1]]
        values = np.empty((len(chosen), n), lines.dtype)
        squares[:] = 0
        for f in range(len(chosen)):
            line, to = lines[chosen[f]], values[f]
            for i in range(n):
                to[i] = line[i]
                squares[i] += line[i] * line[i]
        for first in range(0, len(tested), TILE):
            stop = min(first + TILE, len(tested))
            own = values if is_all else _take(values, tested[first:stop])
            products = np.dot(own.T, values)
            for t in range(first, stop):
                line, own_fold = products[t - first], fold[t]
                group, square = groups[own_fold if len(groups) > 1 else 0], squares[tested[t]]
                for j in range(n):
                    distance = square + squares[j] - two * line[j]
                    distance = distance if distance > zero else zero
                    closeness[j] = -infinite if group[j] == own_fold else -distance
                _keep_nearest(closeness, peaks, near[t], others[t])
        temperature = 0.0
        for t in range(len(tested)):
            temperature += near[t, min(TYPICAL, k) - 1]
        temperature = max(temperature / len(tested) / 5.0, 1e-300)
        for t in range(len(tested)):
            total, right = 0.0, 0.0
            for q in range(k):
                vote = math.exp((np.float64(near[t, 0]) - near[t, q]) / temperature)
                total += vote
                if labels[others[t, q]] == labels[tested[t]]:
                    right += vote
            predicted[t] = right / total
        scores[probe] = score_and_outcomes(PROBABILITY, labels, predicted, weights, 0, row_groups, shares, means[probe])


@inline
def _take(values, rows):
    taken = np.empty((len(values), len(rows)), values.dtype)
    for f in range(len(values)):
        for i in range(len(rows)):
            taken[f, i] = values[f, rows[i]]
    return taken


@inline
def _keep_nearest(closeness, peaks, near, others):
    """The places of the largest of closeness, descending, and minus their values; the lower place of equals."""
    n, near[:], others[:] = len(closeness), np.inf, 0
    limit = _limit(closeness, peaks, len(near))
    whole = n - n % LANES
    for first in range(0, whole, LANES):
        places = not_below_one(closeness, first, limit)
        while places:
            place = first + lowest_bit(places)
            places &= places - np.uint64(1)
            _insert(-closeness[place], place, near, others)
    for place in range(whole, n):
        if closeness[place] >= limit:
            _insert(-closeness[place], place, near, others)


@inline
def _insert(distance, place, near, others):
    q = len(near) - 1
    if distance < near[q]:
        while q > 0 and near[q - 1] > distance:
            near[q] = near[q - 1]
            others[q] = others[q - 1]
            q -= 1
        near[q] = distance
        others[q] = place


@inline
def _limit(closeness, peaks, k):
    """The k-th largest of the maxima of groups: k groups hold a candidate that is as near."""
    n = len(closeness)
    if k > GROUPS or n < GROUPS:
        return closeness.dtype.type(-np.inf)
    peaks[:] = closeness[:GROUPS]
    whole = n - n % GROUPS
    for first in range(GROUPS, whole, GROUPS):
        for group in range(GROUPS):
            value = closeness[first + group]
            peaks[group] = value if value > peaks[group] else peaks[group]
    for place in range(whole, n):
        peaks[place - whole] = max(peaks[place - whole], closeness[place])
    limit = closeness.dtype.type(-np.inf)
    for group in range(GROUPS):
        if peaks[group] > limit:
            reached = popcount(not_below_one(peaks, 0, peaks[group])) + popcount(
                not_below_one(peaks, LANES, peaks[group])
            )
            limit = peaks[group] if reached >= k else limit
    return limit
