"""Sampling of regression models by weighted tempered Gibbs sampling (Zanella and Roberts 2019, section 4)."""

import numpy as np

from .jit import njit_cached, njit_fastsum, njit_helper
from .permutations import GAMMA, mixed

TINY = 1e-9
MOST_ODDS = 1e13  # larger odds are the same to every decision
TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53


@njit_fastsum
def subtract_multiple(row, factor, other):
    """Subtract ``factor * other`` from ``row`` in place."""
    for j in range(len(row)):
        row[j] -= factor * other[j]


@njit_helper
def removal_odds(gram, products, left, members, n_rows, slab, out):
    """Fill out[a] with the evidence for member a of a model, given the other members (a log Bayes factor)."""
    n_members, n_targets = len(members), products.shape[1]
    system = np.empty((n_members, n_members))
    for a in range(n_members):
        for b in range(n_members):
            system[a, b] = gram[members[a], members[b]]
        system[a, a] += 1.0 / slab
    inverse = np.linalg.inv(system)
    for a in range(n_members):
        out[a] = 0.5 * n_targets * np.log(inverse[a, a] / slab)
        for target in range(n_targets):
            coefficient = 0.0
            for b in range(n_members):
                coefficient += inverse[a, b] * products[members[b], target]
            out[a] += 0.5 * n_rows * np.log1p(coefficient**2 / inverse[a, a] / left[target])


@njit_cached
def sample_models(gram, products, n_rows, log_prior, log_size, slab, exploration, seed, models, sizes, weights):
    """Sample sets of atoms from the posterior of a linear model with a normal prior of variance ``slab``.

    ``gram`` and ``products`` are inner products of the atoms with each other and with the targets, whose sum of squares
    is ``n_rows``. ``log_prior[j]`` is the prior log odds of atom j, and ``log_size[k]`` is added where a model of k
    atoms gets one more. Each step includes or excludes one atom; an atom is drawn with a probability in proportion to
    the odds of its other state plus ``exploration``, and the state gets the weight that corrects for this.

    Fills models[step, :sizes[step]] with the atoms of the model of each step, and weights[step] with its weight.
    """
    n_atoms, n_targets = products.shape
    most = models.shape[1]
    members, n_members = np.empty(most, np.int64), 0
    rows = np.empty((most, n_atoms))  # of the inverse Cholesky factor of the members times their rows of ``gram``
    steps_of_targets = np.empty((most, n_targets))
    is_member = np.zeros(n_atoms, np.bool_)
    variances = np.diag(gram).copy() + 1.0 / slab  # of the atoms given the members
    effects = products.copy()  # products of the atoms with what the members leave of the targets
    left = np.full(n_targets, n_rows)
    odds, rates, evidence = np.empty(n_atoms), np.empty(n_atoms), np.empty(most)
    state = mixed(np.uint64(seed) * GAMMA)
    for step in range(len(models)):
        for j in range(n_atoms):
            if not is_member[j]:
                variance = max(variances[j], TINY)
                value = log_prior[j] + log_size[n_members] - 0.5 * n_targets * np.log(variance * slab)
                for target in range(n_targets):
                    share = effects[j, target] ** 2 / (variance * left[target])
                    value -= 0.5 * n_rows * np.log(max(1.0 - share, TINY))
                odds[j] = min(np.exp(min(value, 30.0)), MOST_ODDS)
        if n_members:
            removal_odds(gram, products, left, members[:n_members], n_rows, slab, evidence[:n_members])
            for a in range(n_members):
                j = members[a]
                odds[j] = min(np.exp(min(evidence[a] + log_prior[j] + log_size[n_members - 1], 30.0)), MOST_ODDS)
        total = 0.0
        for j in range(n_atoms):
            if is_member[j]:
                rates[j] = 1.0 + exploration * (1.0 + odds[j]) / max(odds[j], TINY)
            else:
                rates[j] = 0.0 if n_members == most else odds[j] + exploration * (1.0 + odds[j])
            total += rates[j]
        models[step, :n_members] = members[:n_members]
        sizes[step] = n_members
        weights[step] = 1.0 / total
        state += GAMMA
        threshold, j = total * (np.float64(mixed(state) >> np.uint64(11)) * TO_UNIT), 0
        while j < n_atoms - 1 and threshold >= rates[j]:
            threshold -= rates[j]
            j += 1
        first = n_members
        if is_member[j]:
            is_member[j] = False
            first = 0
            while members[first] != j:
                first += 1
            for a in range(n_members - 1, first - 1, -1):
                for i in range(n_atoms):
                    variances[i] += rows[a, i] ** 2
                for target in range(n_targets):
                    subtract_multiple(effects[:, target], -steps_of_targets[a, target], rows[a])
                    left[target] += steps_of_targets[a, target] ** 2
            members[first : n_members - 1] = members[first + 1 : n_members].copy()
            n_members -= 1
        else:
            is_member[j] = True
            members[n_members] = j
            n_members += 1
        for a in range(first, n_members):
            j = members[a]
            deviation, row = np.sqrt(max(variances[j], TINY)), rows[a]
            row[:] = gram[j]
            row[j] += 1.0 / slab
            for b in range(a):
                subtract_multiple(row, rows[b, j], rows[b])
            for target in range(n_targets):
                steps_of_targets[a, target] = effects[j, target] / deviation
            for i in range(n_atoms):
                row[i] /= deviation
                variances[i] -= row[i] ** 2
            for target in range(n_targets):
                subtract_multiple(effects[:, target], steps_of_targets[a, target], row)
                left[target] = max(left[target] - steps_of_targets[a, target] ** 2, TINY * n_rows)
