"""Cross-validated k-nearest-neighbour scores of feature subsets, on CPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..kernels import neighbors as kernels
from ..kernels import votes
from ..kernels.integers import largest_integer
from ..kernels.products import ROWS
from ..validation.tables import SQUARED
from .base import Criterion, Floats, Folds, Target
from .columns import BoundToColumns, ColumnLines, Missing, Probes, SubsetColumns, refuse_filling, require_fillable
from .scoring import NO_GROUPS, GroupsOfTests, Measure, Outcomes, ScoredTests, bind_target

LARGEST_BASE = 2**28  # bytes of distances kept between candidates of `plus_each`
FEW_ROWS = 500  # up to so many, all subsets are scored in one compiled call
FEW_FEATURES = 8  # below, rounding to integers costs more time than their products save
MOST_ROUNDING = 0.05  # of the typical distance: with more, most pairs of rows would need their exact distance


class KNN(Criterion):
    """Cross-validated score of a k-nearest-neighbour vote (or mean) with Euclidean distances.

    Equal to ``cross_val_score`` of scikit-learn's ``KNeighborsClassifier`` or ``KNeighborsRegressor`` on the same
    folds. ``scoring`` of ``bind``, or of the selector, is "accuracy" for classes or "r2" for numbers if None, or any
    other score of predictions that scikit-learn knows by name or as a scorer. ``sample_weight`` counts in the
    score; neighbours vote alike. Among rows at equal distance chance decides, fixed once for each pair of rows, so that
    the order of rows has no say; among equally frequent classes the lower wins. scikit-learn leaves the first open, so
    values can differ where distances tie.

    With ``scoring="probability"`` J is the mean, over tested rows, of the vote for the row's own class: its neighbours
    at squared distances d count softmax(-d / T), T being a fifth of the mean squared distance to the fifth neighbour
    (or the last, if there are fewer) of all tested rows. J then changes with every small change of the distances,
    where the accuracy changes only with a vote; ten neighbours are a good number. With ``cv="loo"`` each row is
    left out by itself, and a score is that of all rows together.

    Distances come from products in float32, or of dense columns with many rows rounded to 16 bits where the processor
    has AVX512-VNNI, with a margin that no rounding can exceed; where that leaves a neighbour open, differences in
    float64 decide. So units, offsets and a column with -999,999,999 for what is missing do no harm but that of their
    distances; probabilities of float32 data are in float32.

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
    >>> from probewise.engine.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> millimetres = (10 * X).round()
    >>> KNN(n_neighbors=3).bind(millimetres, y, cv=3)(Subsets.of([[0, 1], [0, 1, 2, 3]])).round(3)
    array([0.773, 0.973])
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
    ) -> BoundKNN:
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
        columns = SubsetColumns(X, folds.row_order, missing=self.missing is not None)
        if measure.is_probability and columns.is_incomplete.any():
            refuse_filling(self.missing, f"scoring={measure.name!r}")
        return BoundKNN(columns, target, folds, measure, Missing.of(columns, folds, self.missing), self.n_neighbors)


@dataclass(frozen=True)
class BoundKNN(BoundToColumns):
    """X, seen with its rows in fold order, and what the kernels need."""

    n_neighbors: int

    def _scores(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        scores, by_group = np.empty(len(subsets)), groups.outcomes(len(subsets))
        is_incomplete = self.missing.in_each(subsets.indices, subsets.offsets)
        is_tall = self.folds.n_rows > FEW_ROWS and kernels.INTEGERS_AVAILABLE
        rounding = self._rounding(subsets, subsets.sizes) if is_tall and not self.measure.is_probability else None
        rest = ~is_incomplete
        if rounding is not None:
            by_integers = rest & rounding.pays & (subsets.sizes >= FEW_FEATURES)
            rest &= ~by_integers
            self._score_by_integers(subsets, by_integers, rounding, by_group, scores)
        if rest.any():
            some = subsets if rest.all() else subsets.only(rest)
            scores[rest], by_group.means[rest] = self.lines.scored(some, groups, self.votes.score)
        for k in np.flatnonzero(is_incomplete).tolist():
            scores[k] = self._score_filled(subsets[k], by_group.of_subsets(k))
        return scores, by_group.means

    def _score_filled(self, subset: NDArray[np.int32], by_group: Outcomes) -> float:
        """Each fold fills missing values in its own way, so that each has its own distances."""
        values, scores = np.empty((self.folds.n_rows, len(subset))), np.empty(len(self.folds.splits))
        self.columns.take(subset, values)
        rows, places = np.nonzero(np.isnan(values))
        which = self.missing.number[subset[places]]
        for fold in range(len(scores)):
            values[rows, places] = self.missing.fills[fold, which]
            lines = values.T if self.lines.places is None else values.T[:, self.lines.places]
            scores[fold] = self.votes_of_folds.score_fold(fold, np.ascontiguousarray(lines), by_group)
        return float(scores.mean())

    def _score_by_integers(
        self, subsets: Subsets, chosen: NDArray[np.bool_], rounding: Rounding, by_group: Outcomes, scores: Floats
    ) -> None:
        """One subset after another by 16-bit integers, in work space made once."""
        n_rows, largest = self.folds.n_rows, int(subsets.sizes.max())
        padded, width = (n_rows // kernels.BLOCK + 2) * kernels.BLOCK, (largest + 1) // 2
        room = (
            np.zeros(2 * padded * width, np.int16),
            np.zeros(padded * width, np.int32),
            np.zeros(padded, np.int32),
            np.empty(kernels.TILE * min(padded, kernels.PANEL), np.float32),
            kernels.room_to_work(n_rows, self.n_neighbors, np.float32),
        )
        every, predicted = np.empty(n_rows * largest), np.empty(n_rows)
        for k in np.flatnonzero(chosen).tolist():
            subset = subsets[k]
            values = every[: n_rows * len(subset)].reshape(-1, len(subset))
            self.columns.take(subset, values, centred=False)
            kernels.vote_by_integers(
                values, self.columns.centers[subset], rounding.scale[k], rounding.slack[k], self.fold_end,
                self.tie_keys, self.n_neighbors, self.truth, predicted, *room,
            )  # fmt: skip
            scores[k] = self.votes.tests.score_one(predicted, by_group.of_subsets(k))

    @cached_property
    def fold_end(self) -> NDArray[np.int64] | None:
        """Where the fold of each row ends, in fold order; None where rows have no such order."""
        return np.repeat(self.folds.borders[1:], self.folds.test_sizes) if self.folds.is_partition else None

    @cached_property
    def lines(self) -> ColumnLines:
        """Columns as they are; tests follow the rows where these are not tested once each."""
        places = None if self.folds.is_partition else np.append(np.arange(self.folds.n_rows), self.folds.order)
        return ColumnLines(self.columns, self.columns.dtype, centred=False, places=places)

    @cached_property
    def votes(self) -> Votes:
        return Votes(self.target, self.folds, self.measure, self.n_neighbors, self.columns.dtype)

    @property
    def exact_share(self) -> float:
        return self.votes.exact_share

    @cached_property
    def votes_of_folds(self) -> Votes:
        return Votes(self.target, self.folds, self.measure, self.n_neighbors, np.float64, one_by_one=True)

    @cached_property
    def tie_keys(self) -> NDArray[np.int64]:
        """Of the rows in the present order."""
        return votes.tie_keys(self.folds.n_rows)[self.columns.rows]

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
        pays &= self.measure.of_predictions is None and not self.measure.is_probability
        if rounding is None or not pays or not 0 < 4 * n_pairs <= LARGEST_BASE:
            return super()._plus_each(subset, candidates)
        base = np.empty(n_pairs, np.float32)
        return self._plus_each_to_base(subset, candidates, rounding.scale[0], rounding.slack[0], base)

    def _plus_each_to_base(
        self, subset: NDArray[np.int32], candidates: NDArray[np.int32], scale: float, slack: float, base: NDArray[Any]
    ) -> Floats:
        """Distances of rounded values, kept in float32 for all pairs of rows; exact ones decide."""
        n_rows, size = self.folds.n_rows, len(subset)
        exact, left, right = np.empty((n_rows, size + 1)), np.empty((n_rows, size + 2)), np.empty((n_rows, size + 2))
        self.columns.take(subset, left[:, :size])
        self.columns.take(subset, exact[:, :size], centred=False)
        left[:, :size] = np.rint(left[:, :size] * scale)
        kernels.add_norms(left, right)
        products = np.empty(kernels.TILE * min(n_rows, kernels.PANEL))
        kernels.distances_across_folds(left, right, self.fold_end, products, base)
        work = kernels.room_to_work(n_rows, self.n_neighbors, np.float32)
        scores, extra, predicted = np.empty(len(candidates)), left[:, :1], np.empty(n_rows)
        for k, candidate in enumerate(candidates):
            one = np.array([candidate], np.int32)
            self.columns.take(one, extra)
            self.columns.take(one, exact[:, size:], centred=False)
            kernels.neighbors_with_one_more(
                base, np.rint(extra[:, 0] * scale).astype(np.float32), exact, slack, self.fold_end, self.tie_keys,
                self.n_neighbors, products.view(np.float32), work,
            )  # fmt: skip
            kernels.vote_of_neighbors(work[4], self.n_neighbors, self.truth, predicted)
            scores[k] = self.votes.tests.score_one(predicted, NO_GROUPS.outcomes(1).of_subsets(0))
        return scores

    def _rounding(self, subsets: Subsets, sizes: Any) -> Rounding | None:
        """How each subset would be rounded to 16 bits; None where that cannot be done."""
        return None  # the 16-bit path is going
        if self.fold_end is None or self.columns.is_sparse or self.n_neighbors > kernels.GROUPS or not len(subsets):
            return None
        extent, starts = self.columns.extent, subsets.offsets[:-1]
        reach = np.maximum.reduceat(extent.reach[subsets.indices], starts)
        apart = np.sqrt(2 * np.add.reduceat(extent.distance[subsets.indices] ** 2, starts))
        largest = largest_integer(np.asarray(sizes))
        is_exact = np.logical_and.reduceat(extent.is_whole[subsets.indices], starts)
        is_exact &= 4 * sizes * reach**2 <= votes.EXACT
        scale = np.where(is_exact | (reach == 0), 1.0, largest / np.where(reach == 0, 1.0, reach))
        slack = np.where(is_exact, 0.0, 2 * np.sqrt(sizes))
        return Rounding(scale, slack, slack < MOST_ROUNDING * apart * scale)

    @cached_property
    def truth(self) -> tuple[Any, ...]:
        """What kernels are told of tests, which are all rows in fold order."""
        return self.votes.tests.truth, self.target.n_classes, self.measure.code


class Rounding(NamedTuple):
    """Per subset: the factor before rounding, how far off two distances may be together, whether that is little."""

    scale: Floats
    slack: Floats
    pays: NDArray[np.bool_]


class Votes:
    """J of many subsets in one compiled call, whatever the folds: hard votes in float32, soft ones in the type of X.

    ``one_by_one``: whether each fold is to be scored by a call of its own.
    """

    def __init__(
        self, target: Target, folds: Folds, measure: Measure, n_neighbors: int, dtype: Any, *, one_by_one: bool = False
    ) -> None:
        self.target, self.folds, self.measure, self.n_neighbors = target, folds, measure, n_neighbors
        kind = np.dtype(dtype) if measure.is_probability else np.dtype(np.float32)
        self.precision = np.array([np.finfo(kind).eps, np.finfo(kind).tiny], kind)
        self.is_alone = folds.is_partition and bool(np.all(folds.test_sizes == 1)) and not one_by_one
        self._extents: tuple[Any, Any] = None, None
        self.n_found, self.n_exact = 0, 0

    def score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None:
        lines, indices, offsets = probes
        columns = lines, *self._extents_of(lines)
        for some in self.tests.pieces(len(scores)):
            predicted, own = np.empty((len(scores[some]), len(self.tests.truth))), offsets[some.start : some.stop + 1]
            self.n_exact += votes.vote_probes(
                columns, (indices, own), self.layout, self.n_neighbors, self.truth, self.precision, predicted
            )
            self.n_found += predicted.size
            self.tests.score(predicted, by_group.of_subsets(some), scores[some])

    def score_fold(self, fold: int, lines: NDArray[Any], by_group: Outcomes) -> float:
        """The score of one fold, of a single subset of all lines, which are its own."""
        tests, trains, train, _ = self.layout
        own = slice(tests[fold] - tests[0], tests[fold + 1] - tests[0])
        some = tests[fold : fold + 2], trains[fold : fold + 2], train, False
        probe = np.arange(len(lines), dtype=np.int32), np.array([0, len(lines)])
        columns = lines, *extents(lines)
        predicted = np.empty((1, own.stop - own.start))
        votes.vote_probes(columns, probe, some, self.n_neighbors, self.truth, self.precision, predicted)
        known = self.measure.tests(self.tests.truth[own], self.tests.weights[own], self.target.n_classes)
        return known.score_one(predicted[0], by_group.of_tests(own))

    @property
    def exact_share(self) -> float:
        """Of the tests so far, those whose neighbours only exact distances told: these take several times as long."""
        return self.n_exact / max(1, self.n_found)

    @cached_property
    def layout(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], bool]:
        """Where each fold's tests start among the columns, where its training rows start in a list, that list."""
        folds, everything = self.folds, np.arange(self.folds.n_rows)
        if self.is_alone:
            tests, parts = np.array([0, folds.n_rows]), [everything]
        elif folds.is_partition:
            tests = folds.borders
            parts = [np.delete(everything, own) for own in folds.parts]
        else:
            tests = folds.n_rows + folds.borders
            once = np.unique if self.measure.is_probability else np.asarray
            parts = [once(train) for train, _ in folds.splits]
        train = np.concatenate([*parts, np.zeros(ROWS, np.int64)])
        return tests, np.cumsum([0, *map(len, parts)]), train, self.is_alone

    @cached_property
    def truth(self) -> tuple[Any, ...]:
        """What the kernel is told of columns."""
        n, order = self.folds.n_rows, self.folds.order
        of_rows = votes.tie_keys(n)
        rows = order if self.folds.is_partition else np.append(np.arange(n), order)
        keys = np.append(of_rows[rows], np.zeros(votes.WIDEST, np.int64))
        keepers = np.zeros(1 << (n - 1).bit_length(), np.int64)
        keepers[keys[:n]] = np.arange(n)
        targets = self.target.values[rows].astype(np.float64)
        return targets, keys, keepers, self.target.n_classes, self.measure.code

    @cached_property
    def tests(self) -> ScoredTests:
        return self.measure.tests_of(self.folds, self.target.values, self.target.n_classes)

    def _extents_of(self, lines: NDArray[Any]) -> Any:
        """Those of the lines that are held are found once."""
        known, found = self._extents
        if known is not lines:
            found = extents(lines)
            self._extents = lines, found
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without what another process makes for itself."""
        return self.__dict__ | {"_extents": (None, None)}


def extents(lines: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    middles, reach = np.empty(len(lines), lines.dtype), np.empty(len(lines), lines.dtype)
    is_whole = np.empty(len(lines), bool)
    votes.extents(lines, middles, reach, is_whole)
    return middles, reach, is_whole
