"""Per-feature sums over probes: the inner loop of the tally."""

import numpy as np

from .jit import njit_cached, njit_inline


@njit_cached
def add_probes(table, totals, indices, offsets, values):
    """Add (1, value, value**2) to the totals and to the table row of every feature of every probe, in order."""
    for probe in range(len(values)):
        value = values[probe]
        square = value * value
        totals[0] += 1.0
        totals[1] += value
        totals[2] += square
        for position in range(offsets[probe], offsets[probe + 1]):
            feature = indices[position]
            table[feature, 0] += 1.0
            table[feature, 1] += value
            table[feature, 2] += square


@njit_inline
def _difference(inside, with_it, n_probes, total):
    """DAF0 of a feature in so many of the probes, with that sum of values: NaN where it is in none or in all."""
    outside = n_probes - inside
    difference = with_it / inside - (total - with_it) / outside
    return difference if inside > 0.0 and outside > 0.0 else np.nan


@njit_cached
def renew_differences(table, n_probes, total, known):
    """Bring DAF0 in ``known`` up to date; mean absolute change of those defined both times, and how many were not."""
    change = 0.0
    compared = 0
    for feature in range(len(known)):
        now = _difference(table[feature, 0], table[feature, 1], n_probes, total)
        difference = abs(now - known[feature])
        known[feature] = now
        if difference == difference:
            change += difference
            compared += 1
    return (change / compared if compared else np.nan), len(known) - compared


def top_features(table, n_probes, total, top):
    """The ``top`` features of highest DAF0, best first; fewer if fewer have one."""
    inside, with_it = table[:, 0], table[:, 1]
    with np.errstate(all="ignore"):
        scores = with_it / inside - (total - with_it) / (n_probes - inside)
    scores[(inside == 0) | (inside == n_probes)] = np.nan
    best = np.argsort(-scores, kind="stable")[:top]
    return best[~np.isnan(scores[best])]
