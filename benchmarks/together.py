"""False positives of the size curve on noise."""

from itertools import product

import numpy as np

from probewise import FSDD
from probewise.criteria import KNN, Linear
from probewise.criteria.base import Target
from probewise.evaluation.sizes import SubsetScorer, columns_at_sizes, curve_along, spaced_sizes, splits_for

TABLES = 200


def main() -> None:
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
