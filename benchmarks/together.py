"""On truth known by construction: what stands in for what, and how often the size curve takes noise for more."""

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
    """Of what a feature is worth without another, the share that is gone with it: 1 and more for a perfect stand-in."""
    for noise, tau in product((0.0, 0.7), (10, 40)):
        copies, others = [], []
        for seed, criterion in product(SEEDS, (KNN(), Linear(), NaiveBayes())):
            X, y = with_copies(seed, noise)
            daf = DAF(criterion=criterion, max_probe_size=tau, stop=MaxProbes(3000), random_state=seed).fit(X, y)
            found = daf.run_.interactions(top=20)
            place = {column: k for k, column in enumerate(found.features.tolist())}
            same, different = [(0, 3), (0, 4), (3, 4)], [(0, 1), (0, 2), (1, 2), (2, 3), (1, 4)]
            for pairs, shares in ((same, copies), (different, others)):
                for first, second in ((place[a], place[b]) for a, b in pairs if a in place and b in place):
                    worth = max(found.worth[first, second], found.worth[second, first])
                    shares.append(-found.contrast[first, second] / worth)
        kind = f"copies, noise {noise}" if noise else "exact copies"
        gone, other = (f"{min(part):.2f} to {max(part):.2f}" for part in (copies, others))
        print(f"probes of up to {tau}: share gone, {kind} {gone}; different things {other}", flush=True)


def with_copies(seed, noise):
    """0, 1 and 2 tell different things; 3 and 4 are 0 again, but for the noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 40))
    y = X[:, 0] + X[:, 1] + X[:, 2] + 0.5 * rng.standard_normal(400) > 0
    X[:, 3:5] = X[:, [0]] + noise * rng.standard_normal((400, 2))
    return X, y


def show_noise() -> None:
    """How often a nested curve of FSDD's ranking is said to beat guessing, on tables of nothing but noise."""
    for criterion, (n_rows, n_features) in product((KNN(), Linear()), ((100, 200), (60, 1000))):
        passed = sum(beats(criterion, n_rows, n_features, seed) for seed in range(TABLES))
        print(
            f"pure noise, {n_rows} rows, {n_features} features, {type(criterion).__name__}: "
            f"{passed} of {TABLES} curves beat guessing",
            flush=True,
        )


def beats(criterion, n_rows, n_features, seed):
    X, y = np.random.default_rng(seed).standard_normal((n_rows, n_features)), np.arange(n_rows) % 2
    sizes, target = spaced_sizes(n_features), Target.of(y)

    def choose(rows):
        return columns_at_sizes(FSDD().fit(X[rows], y[rows]), sizes.tolist())

    splits, scorer = splits_for(5, target), SubsetScorer(criterion, "")
    return curve_along(choose, (X, None), y, target, sizes, splits, scorer, nested=True).beats_guessing
