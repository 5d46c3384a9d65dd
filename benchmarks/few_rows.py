"""Probes per second on one core for tables with few rows, compared with short numpy and scikit-learn versions.

Both sides score the same subsets of the same table, in turn, in one process with one thread. The best of several turns
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


def distances(columns, subset):
    values = columns[subset]
    squares = np.einsum("fi,fi->i", values, values)
    return squares[:, None] + squares - 2 * (values.T @ values)


def numpy_votes(X, y, k=3):
    """Ten lines of numpy: gather, product, argpartition, vote; in three folds as `KNN` has them."""
    folds = KNN(k).bind(X[:, :1], y, 3).folds.splits
    columns = np.ascontiguousarray(X.T, dtype=np.float32)

    def score(subset):
        apart, right = distances(columns, subset), 0.0
        for train, test in folds:
            near = np.argpartition(apart[np.ix_(test, train)], k, axis=1)[:, :k]
            votes = (y[train][near][:, :, None] == np.arange(N_CLASSES)).sum(axis=1)
            right += (votes.argmax(axis=1) == y[test]).mean()
        return right / len(folds)

    return lambda subsets: np.array([score(subset) for subset in subsets])


def numpy_soft(X, y, k=10):
    """Distance-weighted votes with leave-one-out."""
    columns = np.ascontiguousarray(X.T, dtype=np.float32)

    def score(subset):
        apart = np.maximum(distances(columns, subset), 0)
        np.fill_diagonal(apart, np.inf)
        near = np.argpartition(apart, k, axis=1)[:, :k]
        far = np.take_along_axis(apart, near, axis=1)
        temperature = np.partition(far, 4, axis=1)[:, 4].mean() / 5
        votes = np.exp((far.min(axis=1, keepdims=True) - far) / temperature)
        return ((votes * (y[near] == y[:, None])).sum(axis=1) / votes.sum(axis=1)).mean()

    return lambda subsets: np.array([score(subset) for subset in subsets])


def ridge_loop(X, y):
    """The usual loop over `cross_val_score`."""
    return lambda subsets: np.array([cross_val_score(RidgeClassifier(), X[:, s], y, cv=3).mean() for s in subsets])


@dataclass
class Case:
    """A criterion, its options, its peer, and the number of probes per turn on both sides."""

    criterion: Any
    options: dict[str, Any]
    peer: Any
    probes: int = 400
    peer_probes: int = 60


CASES = {
    "KNN(3), 3 folds / numpy": Case(KNN(3), {}, numpy_votes),
    "KNN(10), soft, loo / numpy": Case(KNN(10), {"cv": "loo", "scoring": "probability"}, numpy_soft),
    "Linear, 3 folds / RidgeClassifier": Case(Linear(), {}, ridge_loop, peer_probes=20),
}


def seconds(job):
    started = time.perf_counter()
    values = job()
    return time.perf_counter() - started, values


def compare(case, X, y, size):
    """Probes per second of ours, of ours with the outcomes of 64 groups of rows, and of the peer; largest |dJ|."""
    plan = ProbePlan(X.shape[1], max_size=size, seed=0)
    subsets, few = plan.draw(0, case.probes), plan.draw(0, case.peer_probes)
    bound, theirs = case.criterion.bind(X, y, **case.options), case.peer(X, y)
    groups = np.arange(len(y)) % 64
    jobs = {
        "ours": (lambda: bound(subsets), len(subsets)),
        "with outcomes": (lambda: bound.outcomes(subsets, groups)[0], len(subsets)),
        "peer": (lambda: theirs(few), len(few)),
    }
    J = {name: job() for name, (job, _) in jobs.items()}  # compiles
    best = dict.fromkeys(jobs, np.inf)
    for _ in range(ROUNDS):
        for name, (job, _) in jobs.items():
            best[name] = min(best[name], seconds(job)[0])
    return {name: n / best[name] for name, (_, n) in jobs.items()}, np.abs(J["ours"][: len(few)] - J["peer"]).max()


def main():
    rows = []
    with threadpool_limits(1):
        for n_rows, n_features in SHAPES:
            X, y = table(n_rows, n_features)
            for name, case in CASES.items():
                for size in SIZES:
                    speed, off = compare(case, X, y, size)
                    rows.append(
                        [
                            f"{n_rows} x {n_features:,}",
                            name,
                            size,
                            f"{speed['ours']:,.0f}",
                            f"{speed['peer']:,.0f}",
                            f"{speed['ours'] / speed['peer']:.1f}",
                            f"{speed['with outcomes'] / speed['ours']:.2f}",
                            f"{off:.1e}",
                        ]
                    )
                    print("  ".join(map(str, rows[-1])), flush=True)
    header = ["table", "ours / theirs", "tau", "probes/s", "theirs", "ratio", "with outcomes", "max |dJ|"]
    print_table("Few rows, one core", header, rows)


if __name__ == "__main__":
    main()
