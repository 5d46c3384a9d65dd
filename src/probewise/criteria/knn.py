"""k nearest neighbours, cross-validated: accuracy for classes, R^2 for numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import neighbors as kernels
from ..probes import Subsets
from .base import Columns, Criterion, Floats, Folds, Target

LARGEST_BASE = 2**28
FEW_FEATURES = 8
MOST_ROUNDING = 0.05


class KNN(Criterion):
    """Cross-validated score of a k-nearest-neighbour vote (or mean) with Euclidean distances.

    Equal to ``cross_val_score`` of scikit-learn's ``KNeighborsClassifier`` (accuracy) or
    ``KNeighborsRegressor`` (R^2) on the same folds. Among rows at equal distance the lower row number wins,
    among equally frequent classes the lower; scikit-learn leaves the first open, so values can differ where
    distances tie.

    On processors with AVX512-VNNI, dense columns are rounded to 16 bits to find candidates, with a margin that no
    rounding can exceed, and distances in float64 decide among these: the result is that of float64. On others
    float32 data is measured in float32, where near-ties may fall the other way, and all other data in float64.

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
        sizes = [len(test) for _, test in folds.splits]
        return cls(Columns(X, folds.order), target, folds, n_neighbors, np.repeat(np.cumsum(sizes), sizes))

    def __call__(self, subsets: Subsets) -> Floats:
        if self.fold_end is None or self.columns.is_sparse:
            desk = Desk(self, int(subsets.sizes.max(initial=0)))
            return np.array([self._score(subset, desk) for subset in subsets], dtype=np.float64)
        by_integers = self._by_integers_pays(subsets)
        scores = np.empty(len(subsets))
        for batch, function in ((by_integers, self._by_integers), (~by_integers, self._by_floats)):
            if batch.any():
                scores[batch] = function(Subsets.of([subsets[k] for k in np.flatnonzero(batch).tolist()]))
        return scores

    def plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """J of the subset with each candidate added: distances add up over features, so each costs one pass.

        Distances are of values rounded as in `_by_integers`, kept in float32; exact ones decide.
        """
        largest = Subsets.of([np.concatenate([subset, candidates])])
        n_pairs = 0 if self.fold_end is None else kernels.pairs_across_folds(self.fold_end)
        if (
            not 0 < 4 * n_pairs <= LARGEST_BASE
            or not len(subset)
            or not self._can_be_rounded(largest, len(subset) + 1)[0]
        ):
            return self(Subsets.of([np.append(subset, candidate) for candidate in candidates]))
        scale, slack = self._rounding(largest, len(subset) + 1)
        n_rows, size = self.folds.n_rows, len(subset)
        desk = Desk(self, size, np.float64)
        left, right = desk.sides_of(subset)
        exact = np.empty((n_rows, size + 1))
        exact[:, :size] = left[:, :size]
        left[:, :size] = np.rint(left[:, :size] * scale)
        kernels.add_norms(left, right)
        base = np.empty(n_pairs, np.float32)
        kernels.distances_across_folds(left, right, self.fold_end, desk.products, base)
        products, work = desk.products.view(np.float32), kernels.room_to_work(n_rows, self.n_neighbors, np.float32)
        scores = np.empty(len(candidates))
        for k, candidate in enumerate(candidates):
            self.columns.take(np.array([candidate], np.int32), exact[:, size:])
            extra = np.rint(exact[:, size] * scale).astype(np.float32)
            kernels.neighbors_with_one_more(
                base, extra, exact, slack, self.fold_end, self.columns.rows, self.n_neighbors, products, work
            )
            scores[k] = self._fold_scores(work[4])
        return scores

    def _rounding(self, subset: Subsets, size: int) -> tuple[float, float]:
        """The factor before rounding, and how far off two distances of ``size`` rounded features may be together."""
        extent, features = self.columns.extent, subset.indices
        reach, largest = extent.reach[features].max(), np.sqrt(2**31 / (4 * size)) - 2
        if extent.is_whole[features].all() and reach <= largest:
            return 1.0, 0.0
        return (float(largest / reach) if reach else 1.0), 2.0 * float(np.sqrt(size))

    def _can_be_rounded(self, subsets: Subsets, sizes: Any) -> NDArray[np.bool_]:
        """Which subsets lose so little when rounded to 16 bits that few candidates need a second look."""
        if self.columns.is_sparse or self.n_neighbors > kernels.GROUPS:
            return np.zeros(len(subsets), dtype=bool)
        extent, starts = self.columns.extent, subsets.offsets[:-1]
        reach = np.maximum.reduceat(extent.reach[subsets.indices], starts)
        apart = np.sqrt(2 * np.add.reduceat(extent.spread[subsets.indices] ** 2, starts))
        largest = np.sqrt(2**31 / (4 * np.asarray(sizes)))
        rounding = 2 * np.sqrt(sizes) * reach / largest
        whole = np.logical_and.reduceat(extent.is_whole[subsets.indices], starts)
        return (whole & (reach < largest - 2)) | (rounding < MOST_ROUNDING * apart)

    def _by_integers_pays(self, subsets: Subsets) -> NDArray[np.bool_]:
        if not kernels.INTEGERS_AVAILABLE or not len(subsets):
            return np.zeros(len(subsets), dtype=bool)
        return (subsets.sizes >= FEW_FEATURES) & self._can_be_rounded(subsets, subsets.sizes)

    def _by_integers(self, subsets: Subsets) -> Floats:
        n_rows, largest = self.folds.n_rows, int(subsets.sizes.max())
        padded = (n_rows // kernels.BLOCK + 2) * kernels.BLOCK
        width = (largest + 1) // 2
        room = (
            np.empty(n_rows * largest),
            np.zeros(2 * padded * width, np.int16),
            np.zeros(padded * width, np.int32),
            np.zeros(padded, np.int32),
            np.empty(kernels.TILE * min(padded, kernels.PANEL), np.float32),
            kernels.room_to_work(n_rows, self.n_neighbors, np.float32),
        )
        scores = np.empty(len(subsets))
        extent = self.columns.extent
        kernels.batch_scores_by_integers(
            self.columns.X, extent.centers, extent.reach, extent.is_whole, subsets.indices, subsets.offsets,
            self.columns.rows, self.fold_end, self.borders, self.n_neighbors, self.targets, self.n_classes,
            *room, scores,
        )  # fmt: skip
        return scores

    def _by_floats(self, subsets: Subsets) -> Floats:
        desk = Desk(self, int(subsets.sizes.max()))
        scores = np.empty(len(subsets))
        kernels.batch_scores(
            self.columns.X, self.columns.centers, subsets.indices, subsets.offsets, self.columns.rows, self.fold_end,
            self.borders, self.n_neighbors, self.targets, self.n_classes, desk.sides, desk.products, desk.work, scores,
        )  # fmt: skip
        return scores

    def _score(self, subset: NDArray[np.int32], desk: Desk) -> float:
        left, right = desk.sides_of(subset)
        order, k = self.columns.rows, self.n_neighbors
        if self.fold_end is not None:
            kernels.neighbors_across_folds(left, right, self.fold_end, order, k, desk.products, desk.work)
            return self._fold_scores(desk.rows)
        total = 0.0
        for train, test in self.folds.splits:
            kernels.neighbors_between(left, right, test, train, order, k, desk.products, desk.work)
            near = desk.rows[: len(test), :k]
            total += kernels.fold_score(near, self.targets[test], self.targets, self.n_classes)
        return total / len(self.folds.splits)

    def _fold_scores(self, rows: NDArray[np.int64]) -> float:
        return kernels.mean_fold_score(rows, self.borders, self.n_neighbors, self.targets, self.n_classes)

    @property
    def float_dtype(self) -> np.dtype[Any]:
        """Where integers do the bulk of the work, floats can afford to be float64."""
        return np.dtype(np.float64) if kernels.INTEGERS_AVAILABLE else self.columns.dtype

    @property
    def targets(self) -> NDArray[Any]:
        return self.target.values[self.columns.rows]

    @property
    def n_classes(self) -> int:
        return 0 if self.target.classes is None else len(self.target.classes)

    @property
    def borders(self) -> NDArray[np.int64]:
        """Where folds start and end in fold order."""
        return np.cumsum([0] + [len(test) for _, test in self.folds.splits])


class Desk:
    """Room to work with floats on subsets up to a size, laid out once per batch."""

    def __init__(self, bound: BoundKNN, largest: int, dtype: Any = None) -> None:
        n_rows, dtype = bound.folds.n_rows, np.dtype(dtype or bound.float_dtype)
        self.columns = bound.columns
        self.sides = np.empty(n_rows * (largest + 2), dtype), np.empty(n_rows * (largest + 2), dtype)
        width = n_rows if bound.fold_end is None else min(n_rows, kernels.PANEL)
        self.products = np.empty(kernels.TILE * width, dtype)
        self.work = kernels.room_to_work(n_rows, bound.n_neighbors, dtype)
        self.rows = self.work[4]

    def sides_of(self, subset: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The two sides of the matrix product whose entries are closeness."""
        n_rows, width = len(self.columns.rows), len(subset) + 2
        left, right = (side[: n_rows * width].reshape(n_rows, width) for side in self.sides)
        self.columns.take(subset, left[:, :-2])
        kernels.add_norms(left, right)
        return left, right
