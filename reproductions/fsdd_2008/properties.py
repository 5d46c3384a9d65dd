"""Liang, Yang, Winstanley 2008: what the paper proves of FSDD, counted: the best subsets, scale, beta, and time."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.preprocessing import minmax_scale, scale

from probewise.filters.fsdd import FSDD

from ..base import Place
from ..work import least_seconds

Floats = NDArray[np.float64]
OPTIMAL, INVARIANT, BY_BETA, GROWTH = "Section 2.2", "Section 2.3", "Section 4, order by beta", "Section 3.4"
EXHAUSTIVE = 13  # features, at most, of which all subsets are looked at
BETAS = (0.1, 1, 5, 10, 20, 50, 100)
TIMES = 4


def properties(name: str, X: Floats, y: NDArray[Any]) -> dict[Place, float]:
    """Properties of one data set."""
    scores = FSDD().fit(X, y).scores_
    scaled = {"to deviation 1": scale(X), "to [0, 1]": minmax_scale(X), "by -3, and more": -3 * X + 7 * X.std(axis=0)}
    found = {(INVARIANT, name, way): _apart(scores, FSDD().fit(table, y).scores_) for way, table in scaled.items()}
    for beta in BETAS:
        other = FSDD(beta=beta).fit(X, y).scores_
        found[BY_BETA, name, f"{beta:g}"] = float(spearmanr(scores, other, nan_policy="omit").statistic)
    if X.shape[1] <= EXHAUSTIVE:
        found |= {(OPTIMAL, name, str(size)): share for size, share in best_subsets(X, y).items()}
    return found


def _apart(first: Floats, second: Floats) -> float:
    return float(np.nanmax(np.abs(first - second)))


def best_subsets(X: Floats, y: NDArray[Any]) -> dict[int, float]:
    """By size, the share of all subsets that exceed d_b - 2 d_w of FSDD's first features: 0 if these are the best.

    The distances are those of definitions 1 to 3, from every pair of rows and of class means; beta in the sense of
    the definitions is 2, in that of eq. 2 it is 4.
    """
    worth = np.array([by_definitions(column, y) for column in X.T])  # distances are sums over features
    order = np.argsort(FSDD(beta=4).fit(X, y).ranking_)
    found = {}
    for size in range(1, len(worth) + 1):
        ours = worth[order[:size]].sum()
        every = np.array([worth[list(subset)].sum() for subset in combinations(range(len(worth)), size)])
        found[size] = float(np.mean(every > ours + 1e-9))
    return found


def by_definitions(column: Floats, y: NDArray[Any], beta: float = 2.0) -> float:
    """d_b - beta d_w of one feature: eq. 4 and 5, from the distances between points."""
    z = (column / column.std())[:, None]
    classes = [z[y == label] for label in np.unique(y)]
    shares, centres = np.array([len(c) / len(y) for c in classes]), np.array([c.mean() for c in classes])
    within = sum(share * pdist(c, "sqeuclidean").mean() for share, c in zip(shares, classes, strict=True))
    between = 0.5 * shares @ (centres[:, None] - centres) ** 2 @ shares
    return float(between - beta * within)


def growth(name: str, X: Floats, y: NDArray[Any]) -> dict[Place, float]:
    """How many times as long FSDD takes for four times the rows, and four times the features, of twice the table."""
    X, y = np.tile(X, (2, 2)), np.tile(y, 2)
    plain = _seconds(X, y)
    longer = _seconds(np.tile(X, (TIMES, 1)), np.tile(y, TIMES))
    wider = _seconds(np.tile(X, (1, TIMES)), y)
    return {
        (GROWTH, name, f"{TIMES} times the rows"): longer / plain,
        (GROWTH, name, f"{TIMES} times the features"): wider / plain,
    }


def _seconds(X: Floats, y: NDArray[Any]) -> float:
    """Run time on one thread."""
    return least_seconds(lambda: FSDD().fit(X, y))
