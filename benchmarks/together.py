"""Redundant pairs on artificial data with known copies, and false positives of the size curve on noise."""

from itertools import product

import numpy as np

from probewise import DAF, FSDD
from probewise.criteria import KNN, Linear, NaiveBayes
from probewise.criteria.base import Target
from probewise.evaluation.sizes import SubsetScorer, columns_at_sizes, curve_along, spaced_sizes, splits_for
from probewise.stopping import MaxProbes

SEEDS = range(4)
TABLES = 200


def main() -> None:
    show_shares()
    show_noise()


def show_shares() -> None:
    """Print which share of the effect of a feature disappears if another is present; 1 or more for a perfect copy."""
    for noise, tau in product((0.0, 0.7), (10, 40)):
        copies, others = [], []
        for seed, criterion in product(SEEDS, (KNN(), Linear(), NaiveBayes())):
            X, y = with_copies(seed, noise)
            daf = DAF(criterion=criterion, max_probe_size=tau, stop=MaxProbes(3000), random_state=seed).fit(X, y)
            interactions = daf.run_.interactions(top=20)
            index_of = {column: k for k, column in enumerate(interactions.features.tolist())}
            same, different = [(0, 3), (0, 4), (3, 4)], [(0, 1), (0, 2), (1, 2), (2, 3), (1, 4)]
            for pairs, shares in ((same, copies), (different, others)):
                for first, second in ((index_of[a], index_of[b]) for a, b in pairs if a in index_of and b in index_of):
                    effect = max(interactions.worth[first, second], interactions.worth[second, first])
                    shares.append(-interactions.contrast[first, second] / effect)
        kind = f"copies with noise {noise}" if noise else "exact copies"
        of_copies, of_others = (f"{min(part):.2f} to {max(part):.2f}" for part in (copies, others))
        print(f"probes of up to {tau}: shared effect of {kind} {of_copies}, of other pairs {of_others}", flush=True)


def with_copies(seed, noise):
    """A table in which features 0, 1 and 2 are informative, and 3 and 4 are copies of 0 plus noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 40))
    y = X[:, 0] + X[:, 1] + X[:, 2] + 0.5 * rng.standard_normal(400) > 0
    X[:, 3:5] = X[:, [0]] + noise * rng.standard_normal((400, 2))
    return X, y


def show_noise() -> None:
    """Print how often a nested size curve of FSDD claims to be better than guessing, on pure noise."""
    for criterion, (n_rows, n_features) in product((KNN(), Linear()), ((100, 200), (60, 1000))):
        n_false = sum(beats_guessing(criterion, n_rows, n_features, seed) for seed in range(TABLES))
        print(
            f"pure noise, {n_rows} rows, {n_features} features, {type(criterion).__name__}: "
            f"{n_false} of {TABLES} curves claim to be better than guessing",
            flush=True,
        )


def beats_guessing(criterion, n_rows, n_features, seed):
    X, y = np.random.default_rng(seed).standard_normal((n_rows, n_features)), np.arange(n_rows) % 2
    sizes, target = spaced_sizes(n_features), Target.of(y)

    def choose(rows):
        return columns_at_sizes(FSDD().fit(X[rows], y[rows]), sizes.tolist())

    splits, scorer = splits_for(5, target), SubsetScorer(criterion, "")
    return curve_along(choose, (X, None), y, target, sizes, splits, scorer, nested=True).beats_guessing
