"""k nearest neighbours, cross-validated: accuracy for classes, R^2 for numbers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import neighbors as kernels
from ..probes import Subsets
from .base import Columns, Criterion, Floats, Folds, Target


class KNN(Criterion):
    """Cross-validated score of a k-nearest-neighbour vote (or mean) with Euclidean distances.

    Equal to ``cross_val_score`` of scikit-learn's ``KNeighborsClassifier`` (accuracy) or
    ``KNeighborsRegressor`` (R^2) on the same folds. Among rows at equal distance the lower row number wins,
    among equally frequent classes the lower; scikit-learn leaves the first open, so values can differ where
    distances tie. float32 data is measured in float32, where near-ties may fall the other way; all other
    data in float64.

    Parameters
    ----------
    n_neighbors : how many neighbours vote; the papers use 3.
    task : "classification", "regression", or "auto": regression if y is continuous, that is has fractions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.criteria import KNN
    >>> from probewise.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> millimetres = (10 * X).round()
    >>> KNN(n_neighbors=3).bind(millimetres, y, cv=3)(Subsets.of([[0, 1], [0, 1, 2, 3]])).round(3)
    array([0.74 , 0.973])
    """

    def __init__(self, n_neighbors: int = 3, *, task: str = "auto") -> None:
        self.n_neighbors = n_neighbors
        self.task = task

    def bind(self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None) -> BoundKNN:
        target = Target.of(y, self.task)
        default = "accuracy" if target.is_classification else "r2"
        if scoring not in (None, default):
            raise ValueError(
                f"scoring={scoring!r}: KNN measures {default!r} here; for another score give the estimator, "
                "for example criterion=KNeighborsClassifier(3)"
            )
        folds = Folds.of(cv, np.asarray(y), is_classification=target.is_classification, groups=groups)
        if not 1 <= self.n_neighbors <= folds.smallest_train:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} must be from 1 to the rows of the smallest training fold, "
                f"n_samples={folds.smallest_train}"
            )
        return BoundKNN.of(X, target, folds, self.n_neighbors)


@dataclass(frozen=True)
class BoundKNN:
    """X, seen with its rows in fold order, and what the kernels need."""

    columns: Columns
    target: Target
    folds: Folds
    n_neighbors: int
    fold_end: NDArray[np.int64] | None

    @classmethod
    def of(cls, X: Any, target: Target, folds: Folds, n_neighbors: int) -> BoundKNN:
        if not folds.is_partition:
            return cls(Columns(X, np.arange(folds.n_rows)), target, folds, n_neighbors, None)
        order = np.concatenate([np.sort(test) for _, test in folds.splits])
        sizes = [len(test) for _, test in folds.splits]
        return cls(Columns(X, order), target, folds, n_neighbors, np.repeat(np.cumsum(sizes), sizes))

    def __call__(self, subsets: Subsets) -> Floats:
        n_rows, dtype = self.folds.n_rows, self.columns.dtype
        room = n_rows * (int(subsets.sizes.max(initial=0)) + 2)
        left, right = np.empty(room, dtype), np.empty(room, dtype)
        products = np.empty(kernels.TILE * n_rows, dtype)
        best = np.empty((n_rows, self.n_neighbors), dtype)
        rows = np.empty((n_rows, self.n_neighbors), np.int64)
        scores = np.empty(len(subsets))
        for k, subset in enumerate(subsets):
            width = len(subset) + 2
            a, b = (part[: n_rows * width].reshape(n_rows, width) for part in (left, right))
            self.columns.take(subset, a[:, :-2])
            kernels.add_norms(a, b)
            scores[k] = self._score(a, b, products, best, rows)
        return scores

    def _score(self, left: Any, right: Any, products: Any, best: Any, rows: Any) -> float:
        if self.fold_end is not None:
            order = self.columns.rows
            kernels.neighbors_across_folds(left, right, self.fold_end, order, products, best, rows)
            starts = np.unique(np.concatenate([[0], self.fold_end]))
            parts = [(rows[a:b], order[a:b]) for a, b in pairwise(starts)]
            return float(np.mean([self._fold_score(near, test) for near, test in parts]))
        scores = []
        for train, test in self.folds.splits:
            near = rows[: len(test)]
            kernels.neighbors_between(left, right, test, train, products, best[: len(test)], near)
            scores.append(self._fold_score(near, test))
        return float(np.mean(scores))

    def _fold_score(self, near: NDArray[np.int64], test: NDArray[np.int64]) -> float:
        values = self.target.values
        if self.target.classes is not None:
            return kernels.vote_accuracy(near, values, values[test], len(self.target.classes))
        return kernels.mean_r2(near, values, values[test])
