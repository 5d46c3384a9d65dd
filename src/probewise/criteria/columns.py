"""Columns of X for a subset, gathered and centred; what is known of every column; what fills missing values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer

from ..engine.probes import Subsets
from ..kernels import columns as kernels
from ..kernels.jit import read_only
from ..validation.errors import Parameter, ParameterError, Setting
from ..validation.stores import Stored, as_dense, column_blocks
from ..validation.tables import SQUARED, canonical, columns_not_finite, some_columns
from .base import Floats, Folds, Target
from .scoring import GroupsOfTests, Measure, Outcomes, OutcomesByGroup

Probes = tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64]]  # lines, places of features among them, offsets
STRATEGIES = ("mean", "median")
CELLS_AT_A_TIME = 2**19  # 4 MiB of float64: stays in the cache
CELLS_HELD = 2**25  # 256 MiB of float64: a copy of X by columns, from which a probe is gathered in half the time


class SubsetColumns:
    """A probe's columns of X as a small dense matrix, from X as it is: no copy of X, sparse stays sparse.

    Rows come out in the order given. Columns of dense data are centred: distances do not change, and float32
    keeps its digits. Of X in a store only the columns asked for are read.
    """

    def __init__(self, X: Any, rows: NDArray[np.int64], *, missing: bool = False) -> None:
        self.is_sparse = sp.issparse(X)
        self.X: Any = X.tocsc() if self.is_sparse else as_dense(X)
        if isinstance(self.X, np.ndarray):
            self.X = read_only(self.X)
        self.dtype = np.dtype(np.float32 if self.X.dtype in (np.float32, np.float16) else np.float64)
        self.n_rows, self.n_features = self.X.shape
        self.rows = rows
        if self.is_sparse:
            self.place = np.empty(self.n_rows, np.int64)
            self.place[rows] = np.arange(len(rows))
        else:
            self.extent = Extent(self.X, missing=missing)
            self.centers = self.extent.centers

    @property
    def is_stored(self) -> bool:
        return isinstance(self.X, Stored)

    def only(self, rows: slice) -> SubsetColumns:
        """The same for some of the rows (of dense data), in their order here; from a store these are read now."""
        part = copy(self)
        part.rows = self.rows[rows]
        if self.is_stored:
            part.X, part.rows = read_only(self.X.rows(part.rows)), np.arange(len(part.rows))
        return part

    def take(self, subset: NDArray[np.int32], out: NDArray[Any], *, centred: bool = True) -> None:
        if self.is_sparse:
            kernels.take_sparse(self.X.data, self.X.indices, self.X.indptr, self.place, subset, out)
        else:
            matrix, places, centers = self.held(subset)
            own = centers[places] if centred else np.zeros(len(places))
            kernels.take_dense(matrix, self.rows, places, np.argsort(places), own, out)

    def held(self, subset: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[np.int32], Floats]:
        """Of dense data: a matrix that holds these columns, where in it each of them is, and its columns' centres."""
        if not self.is_stored:
            return self.X, subset, self.centers
        matrix, places = self.X.gather(subset)
        centers = np.empty(matrix.shape[1])
        centers[places] = self.centers[subset]
        return read_only(matrix), places, centers


@dataclass(eq=False)
class ColumnLines:
    """Columns of X as lines of a matrix (features, rows), for kernels that take many probes in one call.

    All of them, made at the first call and kept, where that is little; or those that some probes need. Dense ones are
    centred, if so wished; ``places`` says which row comes where, if not each in its turn.
    """

    columns: SubsetColumns
    dtype: Any = np.float64
    _: KW_ONLY
    centred: bool = True
    places: NDArray[np.int64] | None = None

    def scored(
        self, subsets: Subsets, groups: GroupsOfTests, score: Callable[[Probes, Outcomes, Floats], None]
    ) -> tuple[Floats, Floats]:
        """J and mean outcomes, which ``score`` fills in for the probes of a batch from their columns."""
        scores, by_group = np.empty(len(subsets)), groups.outcomes(len(subsets))
        for some, held, indices, offsets in self.batches(subsets):
            score((held, indices, offsets), by_group.of_subsets(some), scores[some])
        return scores, by_group.means

    def batches(self, subsets: Subsets) -> Iterator[tuple[slice, NDArray[Any], NDArray[np.int32], NDArray[np.int64]]]:
        """(which subsets, lines, places of their features among the lines, offsets)."""
        n_rows = len(self.columns.rows)
        if self.are_held:
            yield slice(0, len(subsets)), self.lines, subsets.indices, subsets.offsets
            return
        start = 0
        while start < len(subsets):
            most = subsets.offsets[start] + CELLS_HELD // n_rows
            stop = max(start + 1, int(np.searchsorted(subsets.offsets, most, side="right")) - 1)
            offsets = subsets.offsets[start : stop + 1]
            features, places = np.unique(subsets.indices[offsets[0] : offsets[-1]], return_inverse=True)
            yield slice(start, stop), self._take(features), places.astype(np.int32), offsets - offsets[0]
            start = stop

    @property
    def are_held(self) -> bool:
        """Whether all columns are kept as lines."""
        return not self.columns.is_stored and self.are_few

    @property
    def are_few(self) -> bool:
        """Whether all columns could be kept, in memory or not: a table in a store gives the same bits."""
        return len(self.columns.rows) * self.columns.n_features <= CELLS_HELD

    @cached_property
    def lines(self) -> NDArray[Any]:
        """Of all columns."""
        n_rows = len(self.columns.rows if self.places is None else self.places)
        lines = np.empty((self.columns.n_features, n_rows), self.dtype)
        step = max(1, CELLS_AT_A_TIME // max(1, len(self.columns.rows)))
        for start in range(0, len(lines), step):
            some = np.arange(start, min(start + step, len(lines)), dtype=np.int32)
            lines[some] = self._take(some)
        return lines

    def _take(self, features: NDArray[np.int32]) -> NDArray[Any]:
        values = np.empty((len(self.columns.rows), len(features)), self.dtype)
        self.columns.take(features, values, centred=self.centred)
        return np.ascontiguousarray(values.T if self.places is None else values.T[:, self.places])

    def __getstate__(self) -> dict[str, Any]:
        """Without the lines: another process makes its own."""
        return {name: value for name, value in self.__dict__.items() if name != "lines"}


class Extent:
    """Per column of dense data: a centre, the mean distance from it, the largest, and whether all values are whole.

    The centre is the mean rounded to a power of two near the mean distance, or to a whole number where all values are:
    then whole numbers stay exact, and so do their ties. X is walked through once, some columns at a time. Where
    ``missing`` values are allowed, NaN is passed over, and ``is_incomplete`` says in which columns there is some.
    """

    def __init__(self, X: Any, *, missing: bool = False) -> None:
        n_features = X.shape[1]
        self.centers, self.distance, self.reach = (np.empty(n_features) for _ in range(3))
        self.is_whole, self.is_incomplete = np.empty(n_features, dtype=bool), np.zeros(n_features, dtype=bool)
        self.missing = missing
        piece = max(1, 2**20 // max(1, n_features))
        for part, matrix in column_blocks(X):
            step = max(1, CELLS_AT_A_TIME // max(1, len(matrix)))
            for start in range(0, matrix.shape[1], step):
                stop = min(start + step, matrix.shape[1])
                self._fill(slice(part.start + start, part.start + stop), read_only(matrix), start, piece)

    def _fill(self, part: slice, matrix: NDArray[Any], start: int, piece: int) -> None:
        """The columns ``part`` of X, which are those from ``start`` on of a matrix."""
        low, high, totals = (np.empty(part.stop - part.start) for _ in range(3))
        kernels.ranges(matrix, start, piece, totals, low, high, self.is_whole[part])
        incomplete = np.flatnonzero(np.isnan(totals)) if self.missing else np.empty(0, np.int64)
        low[incomplete] = high[incomplete] = totals[incomplete] = 0.0
        if not (np.isfinite(totals).all() and (high - low).max(initial=0.0) <= SQUARED[1]):
            raise ParameterError(
                "X contains NaN, infinity or values too large to be squared: leave out or scale columns, or fill gaps "
                "inside the folds with ",
                Setting("missing", "median"),
                " in KNN or Linear",
            )
        mean = matrix[0, start : start + len(totals)].astype(np.float64) + totals / len(matrix)
        kernels.distances(matrix, start, piece, mean, totals)
        distance = totals / len(matrix)
        flat = self.is_whole[part] | (distance == 0)
        grid = np.exp2(np.ceil(np.log2(np.where(flat, 1.0, np.maximum(distance, 1e-300)))))
        self.centers[part] = np.where(low == high, low, grid * np.rint(mean / grid))
        kernels.distances(matrix, start, piece, self.centers[part], totals)
        self.distance[part] = totals / len(matrix)
        self.reach[part] = np.maximum(high - self.centers[part], self.centers[part] - low)
        for place in incomplete.tolist():
            self._fill_from_known(part.start + place, matrix[:, start + place])

    def _fill_from_known(self, column: int, values: NDArray[Any]) -> None:
        known = values[~np.isnan(values)]
        own = slice(column, column + 1)
        self.is_incomplete[own] = True
        self.centers[own] = self.distance[own] = self.reach[own] = 0.0
        if len(known):
            self._fill(own, read_only(np.ascontiguousarray(known[:, None])), 0, len(known))


def about_middles(X: Any) -> Any:
    """Sparse X by columns; those mostly stored and far from 0 less their medians, or squares would lose digits."""
    X = canonical(X.tocsc())
    stored = np.flatnonzero(2 * np.diff(X.indptr) > X.shape[0])
    values = X[:, stored].toarray().astype(np.float64)
    middles = np.median(values, axis=0) if len(stored) else np.empty(0)
    far = np.abs(middles) > np.abs(values - middles).mean(axis=0)
    if not far.any():
        return X
    near = np.setdiff1d(np.arange(X.shape[1]), stored[far])
    moved = sp.csc_matrix(values[:, far] - middles[far])
    order = np.argsort(np.concatenate([near, stored[far]]), kind="stable")
    return sp.hstack([X[:, near], moved], format="csc")[:, order]


def require_fillable(X: Any, missing: Any) -> None:
    """Refuse an unknown strategy, and one for sparse X, in which what is not stored is 0."""
    if missing is None:
        return
    if missing not in STRATEGIES:
        raise ParameterError(Parameter("missing", missing), ": choose 'mean', 'median', or None, which refuses NaN")
    if sp.issparse(X):
        bad = columns_not_finite(X)
        if len(bad):
            raise ParameterError(
                f"X is sparse and contains NaN or infinity in {some_columns(bad, X.shape[1], None)}, and ",
                Parameter("missing", missing),
                " fills dense tables only: give X.toarray(), or fill those cells first",
            )


def refuse_filling(missing: Any, where: str) -> None:
    raise ParameterError(
        f"X contains NaN, and with {where} ",
        Parameter("missing", missing),
        " cannot fill it inside the folds: fill X first, or use another cv and scoring",
    )


@dataclass(frozen=True)
class Missing:
    """The columns of dense X that hold NaN."""

    columns: NDArray[np.int64]  # their numbers, ascending
    number: NDArray[np.int64]  # for each column of X which of them it is; -1 where it is complete
    fills: Floats  # (folds, columns): what fills them in a fold, less the column's centre

    @classmethod
    def of(cls, columns: SubsetColumns, folds: Folds, missing: str | None) -> Missing:
        found = np.flatnonzero([] if columns.is_sparse else columns.extent.is_incomplete)
        if len(found) and folds.is_loo:
            refuse_filling(missing, "cv='loo'")
        number = np.full(columns.n_features, -1)
        number[found] = np.arange(len(found))
        fills = np.empty((len(folds.splits), len(found)))
        step = max(1, CELLS_AT_A_TIME // folds.n_rows)
        imputer = SimpleImputer(strategy=missing, keep_empty_features=True)  # 0 where a fold knows no value
        for start in range(0, len(found), step):
            values = np.asarray(columns.X[:, found[start : start + step]], dtype=np.float64)
            for fold, (train, _) in enumerate(folds.splits):
                fills[fold, start : start + step] = imputer.fit(values[train]).statistics_
        if len(found):
            fills -= columns.centers[found]
        return cls(found, number, fills)

    def in_each(self, indices: NDArray[Any], offsets: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each subset holds an incomplete column."""
        if not len(self.columns) or len(offsets) < 2:
            return np.zeros(len(offsets) - 1, bool)
        return np.logical_or.reduceat(self.number[indices] >= 0, offsets[:-1])

    def any_in(self, subset: NDArray[Any]) -> bool:
        return bool(len(self.columns)) and bool((self.number[subset] >= 0).any())


@dataclass(frozen=True)
class BoundToColumns(OutcomesByGroup):
    """What criteria that gather columns, and fill missing values, have when bound; rows are in the columns' order."""

    columns: SubsetColumns
    target: Target
    folds: Folds
    measure: Measure
    missing: Missing

    def plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """J of the subset with each candidate added; that of a complete one does not depend on the others."""
        scores, is_incomplete = np.empty(len(candidates)), self.missing.number[candidates] >= 0
        for chosen in (is_incomplete, ~is_incomplete):
            if chosen.any():
                scores[chosen] = self._plus_each(subset, candidates[chosen])
        return scores

    def _plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        return super().plus_each(subset, candidates)


@dataclass(frozen=True)
class BoundLeftOut(OutcomesByGroup):
    """A criterion of all probes of a batch in one compiled call: columns of X as lines, rows in their own order."""

    lines: ColumnLines
    target: Target
    folds: Folds
    measure: Measure

    def _scores(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        return self.lines.scored(subsets, groups, self._score)

    @abstractmethod
    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None: ...

    @property
    def columns(self) -> SubsetColumns:
        return self.lines.columns
