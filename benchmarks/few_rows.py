"""Probes per second on one core for tables with few rows, compared with a few lines of numpy and with scikit-learn.

All sides score the same subsets of the same table, in turns, in one process with one thread; the best of several turns
counts. J is compared too.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_limits

from benchmarks.measure import print_table
from probewise.criteria import KNN, Linear
from probewise.engine.probes import ProbePlan

SHAPES = [(50, 5_000), (100, 20_000), (200, 100_000)]
SIZES = [100, 1000]  # largest probes
ROUNDS = 5
N_CLASSES = 3


def table(n_rows, n_features):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n_rows) % N_CLASSES)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    X[:, :50] += 0.5 * y[:, None].astype(np.float32)
    return X.astype(np.float64), y


def distances(XT, subset):
    values = XT[subset]
    squares = np.einsum("fi,fi->i", values, values)
    return squares[:, None] + squares - 2 * (values.T @ values)


def numpy_votes(X, y, k=3):
    """k-NN in ten lines of numpy (gather, product, argpartition, vote), in the three folds of `KNN`."""
    folds = KNN(k).bind(X[:, :1], y, 3).folds.splits
    XT = np.ascontiguousarray(X.T, dtype=np.float32)

    def score(subset):
        apart, right = distances(XT, subset), 0.0
        for train, test in folds:
            near = np.argpartition(apart[np.ix_(test, train)], k, axis=1)[:, :k]
            votes = (y[train][near][:, :, None] == np.arange(N_CLASSES)).sum(axis=1)
            right += (votes.argmax(axis=1) == y[test]).mean()
        return right / len(folds)

    return score


def numpy_soft(X, y, k=10):
    """k-NN with votes weighted by distance and one row left out, in numpy."""
    XT = np.ascontiguousarray(X.T, dtype=np.float32)

    def score(subset):
        apart = np.maximum(distances(XT, subset), 0)
        np.fill_diagonal(apart, np.inf)
        near = np.argpartition(apart, k, axis=1)[:, :k]
        far = np.take_along_axis(apart, near, axis=1)
        temperature = np.partition(far, 4, axis=1)[:, 4].mean() / 5
        votes = np.exp((far.min(axis=1, keepdims=True) - far) / temperature)
        return ((votes * (y[near] == y[:, None])).sum(axis=1) / votes.sum(axis=1)).mean()

    return score


def numpy_ridge(X, y, alpha=1.0):
    """Dual ridge regression in numpy: the products of rows once, and one system of the training rows for each fold."""
    folds = Linear().bind(X[:, :1], y, 3).folds.splits
    XT, targets = np.ascontiguousarray(X.T), np.where(y[:, None] == np.arange(N_CLASSES), 1.0, -1.0)

    def score(subset):
        values, right = XT[subset], 0.0
        products = values.T @ values
        for train, test in folds:
            system, mean = products[np.ix_(train, train)], targets[train].mean(axis=0)
            center = system.mean(axis=0)
            centered = system - center - center[:, None] + center.mean()
            weights = np.linalg.solve(centered + alpha * np.eye(len(train)), targets[train] - mean)
            decisions = (products[np.ix_(test, train)] - center) @ (weights - weights.mean(axis=0)) + mean
            right += (decisions.argmax(axis=1) == y[test]).mean()
        return right / len(folds)

    return score


def numpy_ridge_left_out(X, y, alpha=1.0):
    """Dual ridge regression in numpy with one row left out, in closed form; J is the probability of the own class."""
    XT, targets = np.ascontiguousarray(X.T), np.where(y[:, None] == np.arange(N_CLASSES), 1.0, -1.0)

    def score(subset):
        values = XT[subset]
        inverse = np.linalg.inv(values.T @ values + alpha * np.eye(len(y)))
        sums = inverse.sum(axis=0)
        inverse -= np.outer(sums, sums / sums.sum())  # the intercept
        decisions = targets - inverse @ targets / np.diag(inverse)[:, None]
        odds = np.exp(2 * (decisions - decisions.max(axis=1, keepdims=True)))
        return (odds[np.arange(len(y)), y] / odds.sum(axis=1)).mean()

    return score


def ridge_loop(X, y):
    """The usual loop over scikit-learn's ``cross_val_score``."""
    return lambda subset: cross_val_score(RidgeClassifier(), X[:, subset], y, cv=3).mean()


@dataclass
class Case:
    """A criterion with the options of ``bind``, the numpy code it is compared with, and a loop over scikit-learn."""

    criterion: Any
    options: dict[str, Any]
    numpy: Any
    loop: Any = None


SOFT = {"cv": "loo", "scoring": "probability"}
CASES = {
    "KNN(3), 3 folds": Case(KNN(3), {}, numpy_votes),
    "KNN(10), probability, leave-one-out": Case(KNN(10), SOFT, numpy_soft),
    "Linear, 3 folds": Case(Linear(), {}, numpy_ridge, ridge_loop),
    "Linear, probability, leave-one-out": Case(Linear(), SOFT, numpy_ridge_left_out),
}


def seconds(job):
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def compare(case, X, y, size):
    """Probes per second of ours and of the others; largest |dJ|."""
    plan = ProbePlan(X.shape[1], max_size=size, seed=0)
    ours = case.criterion.bind(X, y, **case.options)
    subsets = {"ours": plan.draw(0, 400), "numpy": plan.draw(0, 60), "loop": plan.draw(0, 20)}
    jobs = {"ours": ours}
    for name, peer in (("numpy", case.numpy), ("loop", case.loop)):
        if peer is not None:
            score = peer(X, y)
            jobs[name] = lambda subsets, score=score: np.array([score(subset) for subset in subsets])
    J = {name: job(subsets[name]) for name, job in jobs.items()}  # compiles
    best = dict.fromkeys(jobs, np.inf)
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            best[name] = min(best[name], seconds(lambda job=job, name=name: job(subsets[name])))
    differences = [np.abs(J["ours"][: len(J[name])] - J[name]).max() for name in ("numpy", "loop") if name in J]
    return {name: len(subsets[name]) / best[name] for name in jobs}, max(differences)


def main():
    rows = []
    with threadpool_limits(1):
        for n_rows, n_features in SHAPES:
            X, y = table(n_rows, n_features)
            for name, case in CASES.items():
                for size in SIZES:
                    speed, difference = compare(case, X, y, size)
                    loop = speed.get("loop")
                    rows.append(
                        [
                            f"{n_rows} x {n_features:,}",
                            name,
                            size,
                            f"{speed['ours']:,.0f}",
                            f"{speed['numpy']:,.0f}",
                            f"{speed['ours'] / speed['numpy']:.1f}",
                            f"{loop:,.0f}" if loop else "",
                            f"{speed['ours'] / loop:.0f}" if loop else "",
                            f"{difference:.1e}",
                        ]
                    )
                    print("  ".join(map(str, rows[-1])), flush=True)
    header = ["table", "criterion", "tau", "probes/s", "numpy", "ratio", "loop", "ratio", "max |dJ|"]
    print_table("Few rows, one core", header, rows)


if __name__ == "__main__":
    main()
