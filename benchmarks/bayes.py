"""Naive Bayes against a loop over scikit-learn's GaussianNB, same arrays, same run; and the class distances' speed.

Floor: a probe of mean size 75 (tau = 150) reads 75 columns of every row once, and does two multiplications
and two additions per value and class.
"""

import sys
import warnings

import joblib
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from benchmarks.measure import best_seconds, machine, print_table
from probewise.criteria.naive_bayes import NaiveBayes
from probewise.criteria.separability import Separability
from probewise.datasets import make_madelon
from probewise.executors import executor
from probewise.probes import ProbePlan

WORKERS = 2
BLOCK = 50
TAU = 150


def tall(n_rows=5_000, n_features=1_000, n_classes=10):
    """Classes that differ a little in the mean of 50 columns."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    X[:, :50] += 0.5 * rng.standard_normal((n_classes, 50), dtype=np.float32)[y]
    return X, y


def by_blocks(score, plan, n_probes):
    """J of the first probes, blocks over threads as in DAF."""
    blocks = range(n_probes // BLOCK)
    return np.concatenate(
        list(executor(WORKERS)(lambda block: score(plan.draw(block * BLOCK, (block + 1) * BLOCK)), blocks))
    )


def loop_part(X, y, splits, subsets):
    return [cross_val_score(GaussianNB(), X[:, subset], y, cv=splits).mean() for subset in subsets]


def by_loop(parallel, X, y, splits, subsets):
    size = max(1, len(subsets) // (4 * WORKERS))
    parts = [subsets[k : k + size] for k in range(0, len(subsets), size)]
    return np.concatenate(parallel(joblib.delayed(loop_part)(X, y, splits, part) for part in parts))


def compare(name, X, y, n_ours, n_loop):
    plan = ProbePlan(X.shape[1], max_size=TAU, seed=0)
    score = NaiveBayes().bind(X, y, cv=3)
    splits = list(StratifiedKFold(3).split(X, y))
    subsets = list(plan.draw(0, n_loop))
    with joblib.Parallel(WORKERS) as parallel:
        theirs = by_loop(parallel, X, y, splits, subsets)
        loop_speed = n_loop / best_seconds(lambda: by_loop(parallel, X, y, splits, subsets), 2)
    difference = np.abs(by_blocks(score, plan, n_loop) - theirs).max()
    our_speed = n_ours / best_seconds(lambda: by_blocks(score, plan, n_ours), 5)
    return [name, f"{our_speed:,.0f}", f"{loop_speed:,.0f}", f"{our_speed / loop_speed:.0f}x", f"{difference:.1e}"]


def speeds(name, X, y, n_probes):
    plan = ProbePlan(X.shape[1], max_size=TAU, seed=0)
    row = [name]
    for measure in ("mahalanobis", "bhattacharyya", "divergence", "clusters"):
        score = Separability(measure).bind(X, y)
        by_blocks(score, plan, 2 * BLOCK)
        row.append(f"{n_probes / best_seconds(lambda score=score: by_blocks(score, plan, n_probes), 1):,.0f}")
    return row


def main():
    warnings.simplefilter("ignore")
    madelon, (X, y) = make_madelon(random_state=0), tall()
    print(machine())
    print_table(
        f"NaiveBayes and cross_val_score(GaussianNB()), 3 folds, tau = {TAU}, float32, two workers each",
        ["data", "probes/s", "loop: probes/s", "ratio", "largest difference of J"],
        [
            compare("Madelon's recipe, 1,000 x 500", madelon.X, madelon.y, 20_000, 400),
            compare("5,000 x 1,000, 10 classes", X, y, 2_000, 100),
        ],
    )
    print_table(
        f"Separability, tau = {TAU}, two threads: probes/s",
        ["data", "mahalanobis", "bhattacharyya", "divergence", "clusters"],
        [
            speeds("Madelon's recipe, 1,000 x 500", madelon.X, madelon.y, 1_000),
            speeds("5,000 x 1,000, 10 classes", X, y, 200),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
