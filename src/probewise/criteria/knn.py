"""Cross-validated k-nearest-neighbour scores of feature subsets, on CPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..checks.tables import SQUARED
from ..kernels import neighbors as kernels
from ..kernels.integers import largest_integer
from ..probing.probes import Subsets
from .base import Criterion, Floats, Folds, Target
from .columns import SubsetColumns
from .left_out import SoftKNN, column_lines
from .missing import BoundToColumns, Missing, require_fillable
from .scoring import NO_GROUPS, Measure, Outcomes, OutcomesByGroup, RowGroups, bind_target

LARGEST_BASE = 2**28  # bytes of distances kept between candidates of `plus_each`
FEW_FEATURES = 8  # below, rounding to integers costs more time than their products save
MOST_ROUNDING = 0.05  # of the typical distance: with more, most pairs of rows would need their exact distance

NO_OUTCOMES: Outcomes = (NO_GROUPS.group, NO_GROUPS.share, np.empty(0))


class KNN(Criterion):
    """Cross-validated score of a k-nearest-neighbour vote (or mean) with Euclidean distances.

    Equal to ``cross_val_score`` of scikit-learn's ``KNeighborsClassifier`` or ``KNeighborsRegressor`` on the same
    folds. ``scoring`` of ``bind``, or of the selector, is "accuracy", "balanced_accuracy", "f1_macro" or "roc_auc" for
    classes, "r2" or "neg_mean_squared_error" for numbers, the first of each if None. ``sample_weight`` counts in the
    score; neighbours vote alike. Among rows at equal distance the lower row number wins,
    among equally frequent classes the lower; scikit-learn leaves the first open, so values can differ where
    distances tie.

    With ``scoring="probability"`` J is the mean, over tested rows, of the vote for the row's own class: its neighbours
    at squared distances d count softmax(-d / T), T being a fifth of the mean squared distance to the fifth neighbour
    (or the last, if there are fewer) of all tested rows. J then changes with every small change of the distances,
    where the accuracy changes only with a vote; ten neighbours are a good number. With ``cv="loo"`` each row is
    left out by itself, and a score is that of all rows together.

    On processors with AVX512-VNNI, dense columns are rounded to 16 bits to find candidates, with a margin that no
    rounding can exceed, and distances in float64 decide among these: the result is that of float64. On others
    float32 data is measured in float32, where near-ties may fall the other way, and all other data in float64.

    Parameters
    ----------
    n_neighbors : int, default=3
        How many neighbours vote; the papers use 3.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is regression if y is continuous, that is has fractions.
    missing : {"mean", "median"} or None, default=None
        What stands in for NaN in dense X: mean or median of the column among the training rows of each fold, as a
        ``SimpleImputer`` before the classifier would fill it (0 where a fold knows no value). Subsets with such a
        column take a slower way. None refuses NaN.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.criteria import KNN
    >>> from probewise.probing.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> millimetres = (10 * X).round()
    >>> KNN(n_neighbors=3).bind(millimetres, y, cv=3)(Subsets.of([[0, 1], [0, 1, 2, 3]])).round(3)
    array([0.74 , 0.973])
    """

    streams = True
    goes_by_width = True
    widths = SQUARED

    def __init__(self, n_neighbors: int = 3, *, task: str = "auto", missing: str | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.task = task
        self.missing = missing

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundKNN | SoftKNN:
        require_fillable(X, self.missing)
        estimators = f"KNeighborsClassifier({self.n_neighbors})", f"KNeighborsRegressor({self.n_neighbors})"
        target, folds, measure = bind_target(self, y, cv, groups, scoring, sample_weight, estimators=estimators)
        most = folds.smallest_train
        if measure.is_probability and not folds.is_loo:  # a row that a fold trains on twice is one neighbour
            most = min(len(np.unique(train)) for train, _ in folds.splits)
        if not 1 <= self.n_neighbors <= most:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} must be from 1 to the rows of the smallest training fold, "
                f"n_samples={most}"
            )
        if measure.is_probability:
            lines = column_lines(X, self.missing, measure, float32=True)
            return SoftKNN(lines, target, folds, measure, self.n_neighbors)
        return BoundKNN.of(X, target, folds, self.n_neighbors, measure, self.missing)

    def describe(self) -> str:
        """As ever, with the only metric there is: ledgers are older than its omission."""
        return super().describe().replace("KNN(", "KNN(metric='euclidean', ", 1)


@dataclass(frozen=True)
class BoundKNN(OutcomesByGroup, BoundToColumns):
    """X, seen with its rows in fold order, and what the kernels need."""

    n_neighbors: int
    fold_end: NDArray[np.int64] | None

    @classmethod
    def of(
        cls, X: Any, target: Target, folds: Folds, n_neighbors: int, measure: Measure, missing: str | None
    ) -> BoundKNN:
        fold_end, order = None, np.arange(folds.n_rows)
        if folds.is_partition:
            fold_end, order = np.repeat(np.cumsum(folds.test_sizes), folds.test_sizes), folds.order
        columns = SubsetColumns(X, order, missing=missing is not None)
        return cls(columns, target, folds, measure, Missing.of(columns, folds, missing), n_neighbors, fold_end)

    def _scores(self, subsets: Subsets, groups: RowGroups) -> tuple[Floats, Floats]:
        rounding = self._rounding(subsets, subsets.sizes) if kernels.INTEGERS_AVAILABLE else None
        is_incomplete = self.missing.in_each(subsets.indices, subsets.offsets)
        scores, means = np.empty(len(subsets)), np.zeros((len(subsets), groups.n_groups))
        largest = int(subsets.sizes.max(initial=1))
        integers, floats = IntegerScorer(self, largest), FloatScorer(self, largest)
        for k, subset in enumerate(subsets):
            by_group = groups.group, groups.share, means[k]
            if is_incomplete[k]:
                scores[k] = floats.score_filled(subset, by_group)
            elif rounding is not None and rounding.pays[k] and len(subset) >= FEW_FEATURES:
                scores[k] = integers.score(subset, rounding.scale[k], rounding.slack[k], by_group)
            else:
                scores[k] = floats.score(subset, by_group)
        return scores, means

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        from .knn_device import DeviceKNN

        return DeviceKNN(self, device)

    def _plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """Distances add up over features, so each candidate costs one pass."""
        together = Subsets.of([np.concatenate([subset, candidates])])
        rounding = self._rounding(together, len(subset) + 1)
        n_pairs = 0 if self.fold_end is None else kernels.pairs_across_folds(self.fold_end)
        is_complete = not self.missing.any_in(together.indices)
        pays = rounding is not None and rounding.pays[0] and is_complete and len(subset) > 0
        if rounding is None or not pays or not 0 < 4 * n_pairs <= LARGEST_BASE:
            return super()._plus_each(subset, candidates)
        base = np.empty(n_pairs, np.float32)
        return self._plus_each_to_base(subset, candidates, rounding.scale[0], rounding.slack[0], base)

    def _plus_each_to_base(
        self, subset: NDArray[np.int32], candidates: NDArray[np.int32], scale: float, slack: float, base: NDArray[Any]
    ) -> Floats:
        """Distances of rounded values, kept in float32 for all pairs of rows; exact ones decide."""
        n_rows, size = self.folds.n_rows, len(subset)
        floats = FloatScorer(self, size, np.float64)
        left, right = floats.sides_of(subset)
        exact = np.empty((n_rows, size + 1))
        exact[:, :size] = left[:, :size]
        left[:, :size] = np.rint(left[:, :size] * scale)
        kernels.add_norms(left, right)
        kernels.distances_across_folds(left, right, self.fold_end, floats.products, base)
        products, work = floats.products.view(np.float32), kernels.room_to_work(n_rows, self.n_neighbors, np.float32)
        scores = np.empty(len(candidates))
        for k, candidate in enumerate(candidates):
            self.columns.take(np.array([candidate], np.int32), exact[:, size:])
            extra = np.rint(exact[:, size] * scale).astype(np.float32)
            kernels.neighbors_with_one_more(
                base, extra, exact, slack, self.fold_end, self.columns.rows, self.n_neighbors, products, work
            )
            scores[k] = self.fold_scores(work[4], NO_OUTCOMES)
        return scores

    def _rounding(self, subsets: Subsets, sizes: Any) -> Rounding | None:
        """How each subset would be rounded to 16 bits; None where that cannot be done."""
        if self.fold_end is None or self.columns.is_sparse or self.n_neighbors > kernels.GROUPS or not len(subsets):
            return None
        extent, starts = self.columns.extent, subsets.offsets[:-1]
        reach = np.maximum.reduceat(extent.reach[subsets.indices], starts)
        apart = np.sqrt(2 * np.add.reduceat(extent.distance[subsets.indices] ** 2, starts))
        largest = largest_integer(np.asarray(sizes))
        is_exact = np.logical_and.reduceat(extent.is_whole[subsets.indices], starts) & (reach <= largest)
        scale = np.where(is_exact | (reach == 0), 1.0, largest / np.where(reach == 0, 1.0, reach))
        slack = np.where(is_exact, 0.0, 2 * np.sqrt(sizes))
        return Rounding(scale, slack, slack < MOST_ROUNDING * apart * scale)

    def fold_scores(self, rows: NDArray[np.int64], by_group: Outcomes) -> float:
        """Mean score over folds from each row's neighbours."""
        return kernels.mean_fold_score(
            rows, self.borders, self.n_neighbors, self.targets, self.target.n_classes, self.measure.code, self.weights,
            *by_group,
        )  # fmt: skip

    def fold_score(self, rows: NDArray[np.int64], fold: int, by_group: Outcomes) -> float:
        """Score of one fold from the neighbours of its rows."""
        (_, test), (group, share, means) = self.places[fold], by_group
        near, weights = rows[: len(test), : self.n_neighbors], self.weights[test] if len(self.weights) else self.weights
        own = slice(self.test_starts[fold], self.test_starts[fold + 1])
        return kernels.fold_score(
            near, self.targets[test], self.targets, self.target.n_classes, self.measure.code, weights,
            group[own], share[own], means,
        )  # fmt: skip

    @cached_property
    def test_starts(self) -> NDArray[np.int64]:
        return np.cumsum([0, *self.folds.test_sizes])

    @cached_property
    def tests(self) -> Any:
        return super().tests if self.fold_end is not None else tuple(test for _, test in self.folds.splits)

    @property
    def float_dtype(self) -> np.dtype[Any]:
        """Where integers do the bulk of the work, floats can afford to be float64."""
        return np.dtype(np.float64) if kernels.INTEGERS_AVAILABLE else self.columns.dtype

    @cached_property
    def places(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
        """Train and test rows of each fold, by their places in the present order."""
        if self.fold_end is None:
            return tuple(self.folds.splits)
        everything = np.arange(self.folds.n_rows)
        parts = [everything[a:b] for a, b in zip(self.borders[:-1], self.borders[1:], strict=True)]
        return tuple((np.delete(everything, part), part) for part in parts)


class Rounding(NamedTuple):
    """Per subset: the factor before rounding, how far off two distances may be together, whether that is little."""

    scale: Floats
    slack: Floats
    pays: NDArray[np.bool_]


class IntegerScorer:
    """Scores one subset after another by 16-bit integers, in work space made once."""

    def __init__(self, bound: BoundKNN, largest: int) -> None:
        self.bound, self.largest = bound, largest

    def score(self, subset: NDArray[np.int32], scale: float, slack: float, by_group: Outcomes) -> float:
        bound, values = self.bound, self.room[0][: self.bound.folds.n_rows * len(subset)].reshape(-1, len(subset))
        bound.columns.take(subset, values)
        return kernels.score_by_integers(
            values, scale, slack, bound.fold_end, bound.columns.rows, bound.borders, bound.n_neighbors,
            bound.targets, bound.target.n_classes, bound.measure.code, bound.weights, *by_group,
            *self.room[1:],
        )  # fmt: skip

    @cached_property
    def room(self) -> tuple[Any, ...]:
        n_rows, width = self.bound.folds.n_rows, (self.largest + 1) // 2
        padded = (n_rows // kernels.BLOCK + 2) * kernels.BLOCK
        return (
            np.empty(n_rows * self.largest),
            np.zeros(2 * padded * width, np.int16),
            np.zeros(padded * width, np.int32),
            np.zeros(padded, np.int32),
            np.empty(kernels.TILE * min(padded, kernels.PANEL), np.float32),
            kernels.room_to_work(n_rows, self.bound.n_neighbors, np.float32),
        )


class FloatScorer:
    """Scores one subset after another by floats, in work space made once."""

    def __init__(self, bound: BoundKNN, largest: int, dtype: Any = None) -> None:
        self.bound, self.columns, self.largest = bound, bound.columns, largest
        self.dtype = np.dtype(dtype or bound.float_dtype)

    @cached_property
    def sides(self) -> tuple[NDArray[Any], NDArray[Any]]:
        size = self.bound.folds.n_rows * (self.largest + 2)
        return np.empty(size, self.dtype), np.empty(size, self.dtype)

    @cached_property
    def products(self) -> NDArray[Any]:
        n_rows = self.bound.folds.n_rows
        return np.empty(
            kernels.TILE * (n_rows if self.bound.fold_end is None else min(n_rows, kernels.PANEL)), self.dtype
        )

    @cached_property
    def products_of_all(self) -> NDArray[Any]:
        return np.empty(kernels.TILE * self.bound.folds.n_rows, self.dtype)

    @cached_property
    def work(self) -> tuple[NDArray[Any], ...]:
        return kernels.room_to_work(self.bound.folds.n_rows, self.bound.n_neighbors, self.dtype)

    def sides_of(self, subset: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The two sides of the matrix product whose entries are closeness."""
        n_rows, width = self.bound.folds.n_rows, len(subset) + 2
        left, right = (side[: n_rows * width].reshape(n_rows, width) for side in self.sides)
        self.columns.take(subset, left[:, :-2])
        kernels.add_norms(left, right)
        return left, right

    def score(self, subset: NDArray[np.int32], by_group: Outcomes) -> float:
        bound, order, k = self.bound, self.columns.rows, self.bound.n_neighbors
        left, right = self.sides_of(subset)
        if bound.fold_end is not None:
            kernels.neighbors_across_folds(left, right, bound.fold_end, order, k, self.products, self.work)
            return bound.fold_scores(self.work[4], by_group)
        total = 0.0
        for fold, (train, test) in enumerate(bound.places):
            kernels.neighbors_between(left, right, test, train, order, k, self.products, self.work)
            total += bound.fold_score(self.work[4], fold, by_group)
        return total / len(bound.places)

    def score_filled(self, subset: NDArray[np.int32], by_group: Outcomes) -> float:
        """Each fold fills missing values in its own way, so that each has its own distances."""
        bound, order, k = self.bound, self.columns.rows, self.bound.n_neighbors
        left, right = self.sides_of(subset)
        rows, places = np.nonzero(np.isnan(left[:, :-2]))
        which = bound.missing.number[subset[places]]
        total = 0.0
        for fold, (train, test) in enumerate(bound.places):
            left[rows, places] = bound.missing.fills[fold, which]
            kernels.add_norms(left, right)
            kernels.neighbors_between(left, right, test, train, order, k, self.products_of_all, self.work)
            total += bound.fold_score(self.work[4], fold, by_group)
        return total / len(bound.places)
