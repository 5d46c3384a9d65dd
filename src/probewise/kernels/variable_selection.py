"""Sampling of regression models by weighted tempered Gibbs sampling (Zanella and Roberts 2019, section 4).

Two classes are modeled by a normal variable that is positive in the second class (Albert and Chib 1993). It is sampled
together with the models, at a constant rate (Jankowiak 2023).
"""

import numpy as np

from .factor import dot, factor, inverse
from .jit import njit_cached, njit_fastsum, njit_helper
from .permutations import GAMMA, mixed

TINY = 1e-9
MOST_ODDS = 1e13  # larger odds are the same to every decision
LATENT_RATE, SWEEPS = 5.0, 2  # rate of draws of the normal variable behind two classes; draws in a row
TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53


@njit_fastsum
def subtract_multiple(row, factor, other):
    """Subtract ``factor * other`` from ``row`` in place."""
    for j in range(len(row)):
        row[j] -= factor * other[j]


@njit_helper
def uniform(state):
    """A random number in (0, 1), and the next state."""
    state += GAMMA
    return (np.float64(mixed(state) >> np.uint64(11)) + 0.5) * TO_UNIT, state


@njit_helper
def normal(state):
    """A standard normal number (Box and Muller), and the next state."""
    radius, state = uniform(state)
    angle, state = uniform(state)
    return np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle), state


@njit_helper
def normal_above(limit, state):
    """A standard normal number above a limit (Robert 1995), and the next state."""
    if limit <= 0:
        value, state = normal(state)
        while value < limit:
            value, state = normal(state)
        return value, state
    rate = 0.5 * (limit + np.sqrt(limit**2 + 4))
    while True:
        share, state = uniform(state)
        level, state = uniform(state)
        value = limit - np.log(share) / rate
        if level <= np.exp(-0.5 * (value - rate) ** 2):
            return value, state


@njit_helper
def draw_latent(gram, atoms, signs, strata, members, slab, latent, state):
    """Draw effects of the members given ``latent``, and ``latent`` given them; return the next state."""
    n_members, n_rows = len(members), len(latent)
    system, fitted = np.empty((n_members, n_members)), np.zeros(n_rows)
    effects, noise = np.empty(n_members), np.empty(n_members)
    for a in range(n_members):
        for b in range(n_members):
            system[a, b] = gram[members[a], members[b]]
        system[a, a] += 1.0 / slab
        effects[a] = np.dot(atoms[members[a]], latent)
        noise[a], state = normal(state)
    root = factor(system)[0]
    for a in range(n_members):  # effects become L^-T (L^-1 effects + noise)
        effects[a] = (effects[a] - dot(root[a, :a], effects[:a])) / root[a, a]
    for a in range(n_members - 1, -1, -1):
        value = effects[a] + noise[a]
        for b in range(a + 1, n_members):
            value -= root[b, a] * effects[b]
        effects[a] = value / root[a, a]
    for a in range(n_members):
        subtract_multiple(fitted, -effects[a], atoms[members[a]])
    n_strata = 0
    for row in range(n_rows):
        n_strata = max(n_strata, strata[row] + 1)
    sums, counts = np.zeros(n_strata), np.zeros(n_strata)
    for row in range(n_rows):
        sums[strata[row]] += latent[row]
        counts[strata[row]] += 1.0
    for stratum in range(len(sums)):
        deviate, state = normal(state)
        sums[stratum] = sums[stratum] / counts[stratum] + deviate / np.sqrt(counts[stratum])
    for row in range(n_rows):
        fitted[row] += sums[strata[row]]
        deviate, state = normal_above(-signs[row] * fitted[row], state)
        latent[row] = fitted[row] + signs[row] * deviate
    return state


@njit_helper
def removal_odds(gram, products, left, members, n_rows, slab, out):
    """Fill out[a] with the evidence for member a of a model, given the other members (a log Bayes factor).

    ``n_rows`` is 0 where the variance of the noise is 1.
    """
    n_members, n_targets = len(members), products.shape[1]
    system = np.empty((n_members, n_members))
    for a in range(n_members):
        for b in range(n_members):
            system[a, b] = gram[members[a], members[b]]
        system[a, a] += 1.0 / slab
    root, columns = inverse(factor(system)[0])  # the inverse of the system is root.T @ root; columns is root.T
    left_sides = np.zeros((n_targets, n_members))  # root @ products of the members
    for target in range(n_targets):
        for a in range(n_members):
            for b in range(a + 1):
                left_sides[target, a] += root[a, b] * products[members[b], target]
    for a in range(n_members):
        variance = dot(columns[a], columns[a])
        out[a] = 0.5 * n_targets * np.log(variance / slab)
        for target in range(n_targets):
            gain = dot(columns[a], left_sides[target]) ** 2 / variance
            out[a] += 0.5 * (n_rows * np.log1p(gain / left[target]) if n_rows else gain)


@njit_cached
def sample_models(
    gram, products, n_rows, latent_of, log_prior, log_size, slab, exploration, seed, models, sizes, weights
):
    """Sample sets of atoms from the posterior of a linear model with a normal prior of variance ``slab``.

    ``gram`` and ``products`` are inner products of the atoms with each other and with the targets, whose sum of squares
    is ``n_rows``; the variance of the noise is unknown. For two classes ``n_rows`` is 0, the variance is 1, and
    ``latent_of`` holds the atoms (atoms, rows), 1 or -1 for the class of each row, and the stratum of each row, which
    has an intercept of its own.
    ``log_prior[j]`` is the prior log odds of atom j, and ``log_size[k]`` is added where a model of k atoms gets one
    more. Each step includes or excludes one atom; an atom is drawn with a probability in proportion to the odds of its
    other state plus ``exploration``, and the state gets the weight that corrects for this.

    Fills models[step, :sizes[step]] with the atoms of the model of each step, and weights[step] with its weight.
    """
    atoms, signs, strata = latent_of
    n_atoms, n_targets = products.shape
    products = products.copy()
    most = models.shape[1]
    members, n_members = np.empty(most, np.int64), 0
    rows = np.empty((most, n_atoms))  # of the inverse Cholesky factor of the members times their rows of ``gram``
    steps_of_targets = np.empty((most, n_targets))
    is_member = np.zeros(n_atoms, np.bool_)
    variances = np.empty(n_atoms)  # of the atoms given the members
    for j in range(n_atoms):
        variances[j] = gram[j, j] + 1.0 / slab
    effects = products.copy()  # products of the atoms with what the members leave of the targets
    left = np.empty(n_targets)
    left[:] = n_rows
    odds, rates, evidence = np.empty(n_atoms), np.empty(n_atoms), np.empty(most)
    state = mixed(np.uint64(seed) * GAMMA)
    latent, is_latent_drawn = signs.copy(), len(signs) > 0
    rate_of_latent = LATENT_RATE if is_latent_drawn else 0.0
    for step in range(len(models)):
        if is_latent_drawn:
            for _ in range(SWEEPS):
                state = draw_latent(gram, atoms, signs, strata, members[:n_members], slab, latent, state)
            products[:, 0] = np.dot(atoms, latent)
            effects[:, 0] = products[:, 0]
            for a in range(n_members):
                j = members[a]
                steps_of_targets[a, 0] = effects[j, 0] / rows[a, j]
                subtract_multiple(effects[:, 0], steps_of_targets[a, 0], rows[a])
        for j in range(n_atoms):
            if not is_member[j]:
                variance = max(variances[j], TINY)
                value = log_prior[j] + log_size[n_members] - 0.5 * n_targets * np.log(variance * slab)
                for target in range(n_targets):
                    gain = effects[j, target] ** 2 / variance
                    if n_rows:
                        gain = -n_rows * np.log(max(1.0 - gain / left[target], TINY))
                    value += 0.5 * gain
                odds[j] = min(np.exp(min(value, 30.0)), MOST_ODDS)
        if n_members:
            removal_odds(gram, products, left, members[:n_members], n_rows, slab, evidence[:n_members])
            for a in range(n_members):
                j = members[a]
                odds[j] = min(np.exp(min(evidence[a] + log_prior[j] + log_size[n_members - 1], 30.0)), MOST_ODDS)
        total = rate_of_latent
        for j in range(n_atoms):
            if is_member[j]:
                rates[j] = 1.0 + exploration * (1.0 + odds[j]) / max(odds[j], TINY)
            else:
                rates[j] = 0.0 if n_members == most else odds[j] + exploration * (1.0 + odds[j])
            total += rates[j]
        models[step, :n_members] = members[:n_members]
        sizes[step] = n_members
        weights[step] = 1.0 / total
        share, state = uniform(state)
        threshold, j = total * share - rate_of_latent, 0
        is_latent_drawn = threshold < 0
        if is_latent_drawn:
            continue
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
            n_members -= 1
            for a in range(first, n_members):
                members[a] = members[a + 1]
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
