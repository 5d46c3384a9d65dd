"""Columns of X for the criteria: gathered for a subset, centered, feature-major, with missing values filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from ..engine.probes import Subsets
from ..kernels import columns as kernels
from ..kernels.jit import read_only
from ..validation.contents import STRATEGIES
from ..validation.errors import ParameterError
from ..validation.stores import Stored, as_dense
from ..validation.tables import SQUARED, canonical, columns_not_finite, some_columns
from .base import Floats, Folds, Target
from .scoring import Measure, ScoresPredictions

Probes = tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64]]  # XT, rows of XT per subset, offsets
CELLS_AT_A_TIME = 2**19  # 4 MiB of float64: stays in the cache
CELLS_HELD = 2**25  # 256 MiB of float64: up to this size a transposed copy of X halves the time to gather a probe


class SubsetColumns:
    """Columns of a subset as a small dense matrix, without a copy of X; sparse X stays sparse.

    Rows come in the order of ``rows``. Columns of dense data are centered: distances do not change, and float32 keeps
    more digits. From a `Stored` table only the requested columns are read.
    """

    def __init__(self, X: Any, rows: NDArray[np.int64], *, missing: bool = False) -> None:
        self.is_sparse = sp.issparse(X)
        self.X: Any = X.tocsc() if self.is_sparse else as_dense(X)
        self.is_stored = isinstance(self.X, Stored)
        if isinstance(self.X, np.ndarray):
            self.X = read_only(self.X)
        self.dtype = np.dtype(np.float32 if self.X.dtype in (np.float32, np.float16) else np.float64)
        self.n_rows, self.n_features = self.X.shape
        self.rows = rows
        if self.is_sparse:
            self.place = np.empty(self.n_rows, np.int64)
            self.place[rows] = np.arange(len(rows))
            self.is_incomplete = np.zeros(self.n_features, bool)
        else:
            self.centers, self.is_incomplete = column_centers(self.X, missing=missing)

    def only(self, rows: slice) -> SubsetColumns:
        """Columns of some of the rows of dense data; from a store, these rows are read now."""
        part = copy(self)
        part.rows = self.rows[rows]
        if self.is_stored:
            part.X, part.rows = read_only(self.X.rows(part.rows)), np.arange(len(part.rows))
            part.is_stored = False
        return part

    def take(self, subset: NDArray[np.int32], out: NDArray[Any], *, centered: bool = True) -> None:
        """Write the columns of a subset to ``out``."""
        if self.is_sparse:
            kernels.take_sparse(self.X.data, self.X.indices, self.X.indptr, self.place, subset, out)
        else:
            matrix, places, centers = self.X, subset, self.centers
            if self.is_stored:
                matrix, places = self.X.gather(subset)
                centers = np.empty(matrix.shape[1])
                centers[places] = self.centers[subset]
                matrix = read_only(matrix)
            shifts = centers[places] if centered else np.zeros(len(places))
            kernels.take_dense(matrix, self.rows, places, np.argsort(places), shifts, out)


def column_centers(X: Any, *, missing: bool = False) -> tuple[Floats, NDArray[np.bool_]]:
    """Center of every column of dense X, and whether it contains NaN, which is an error unless ``missing``.

    A center is the mean, rounded to a multiple of a power of two near the mean absolute deviation: subtracting it is
    exact for whole numbers, so equal distances stay equal. The memory layout of X makes no difference.
    """
    centers, is_incomplete = np.empty(X.shape[1]), np.zeros(X.shape[1], bool)
    parts = gen_batches(X.shape[1], max(1, CELLS_AT_A_TIME // max(1, X.shape[0])))
    for features in X.column_slices() if isinstance(X, Stored) else parts:
        XT = np.array(X[:, features].T, np.float64, order="C")
        if missing:
            is_incomplete[features] = np.isnan(XT).any(axis=1)
            for row in np.flatnonzero(is_incomplete[features]).tolist():
                known = XT[row][~np.isnan(XT[row])]
                XT[row] = _centers(known[None])[0] if len(known) else 0.0
        centers[features] = _centers(XT)
    return centers, is_incomplete


def _centers(XT: Floats) -> Floats:
    """Centers of the rows of XT, which is overwritten."""
    first = XT[:, :1].copy()
    with np.errstate(over="ignore", invalid="ignore"):
        XT -= first
        width = (XT.max(axis=1) - XT.min(axis=1)).max(initial=0.0)
    if not width <= SQUARED[1]:
        raise ParameterError(
            "X contains NaN, infinity or values too large to be squared: leave out or scale columns, or let "
            "missing='median' of KNN or Linear fill missing values inside the folds"
        )
    shift = XT.mean(axis=1, keepdims=True)
    XT -= shift
    deviation = np.abs(XT, out=XT).mean(axis=1, keepdims=True)
    unit = np.exp2(np.ceil(np.log2(np.where(deviation > 0, np.maximum(deviation, 1e-300), 1.0))))
    return np.where(deviation > 0, unit * np.rint((first + shift) / unit), first)[:, 0]


@dataclass(eq=False)
class FeatureMajor:
    """The transpose XT of X (features, rows), for kernels that score many probes in one call.

    If XT is small enough, it is made on the first call and kept; otherwise each call makes the part that its probes
    need. Dense columns are centered if ``centered``; ``places`` reorders the rows.
    """

    columns: SubsetColumns
    dtype: Any = np.float64
    _: KW_ONLY
    centered: bool = True
    places: NDArray[np.int64] | None = None

    def scored(self, subsets: Subsets, score: Callable[[Probes], Floats]) -> Floats:
        """J of subsets, which ``score`` computes for the probes of a batch."""
        scores = np.empty(len(subsets))
        for part, XT, indices, offsets in self.batches(subsets):
            scores[part] = score((XT, indices, offsets))
        return scores

    def batches(self, subsets: Subsets) -> Iterator[tuple[slice, NDArray[Any], NDArray[np.int32], NDArray[np.int64]]]:
        """Batches of subsets, as (which subsets, XT, their features as rows of XT, offsets)."""
        if self.are_few and not self.columns.is_stored:
            yield slice(0, len(subsets)), self.XT, subsets.indices, subsets.offsets
            return
        start, n_rows = 0, len(self.columns.rows)
        while start < len(subsets):
            most = subsets.offsets[start] + CELLS_HELD // n_rows
            stop = max(start + 1, int(np.searchsorted(subsets.offsets, most, side="right")) - 1)
            offsets = subsets.offsets[start : stop + 1]
            features, places = np.unique(subsets.indices[offsets[0] : offsets[-1]], return_inverse=True)
            yield slice(start, stop), self._take(features), places.astype(np.int32), offsets - offsets[0]
            start = stop

    @property
    def are_few(self) -> bool:
        """Whether XT is small enough to be kept. A stored table gives the same answer, and so the same bits of J."""
        return len(self.columns.rows) * self.columns.n_features <= CELLS_HELD

    @cached_property
    def XT(self) -> NDArray[Any]:
        n_rows = len(self.columns.rows if self.places is None else self.places)
        XT = np.empty((self.columns.n_features, n_rows), self.dtype)
        step = max(1, CELLS_AT_A_TIME // max(1, len(self.columns.rows)))
        for start in range(0, len(XT), step):
            features = np.arange(start, min(start + step, len(XT)), dtype=np.int32)
            XT[features] = self._take(features)
        return XT

    def _take(self, features: NDArray[np.int32]) -> NDArray[Any]:
        values = np.empty((len(self.columns.rows), len(features)), self.dtype)
        self.columns.take(features, values, centered=self.centered)
        return np.ascontiguousarray(values.T if self.places is None else values.T[:, self.places])

    def __getstate__(self) -> dict[str, Any]:
        """State without XT, which another process makes itself."""
        return {name: value for name, value in self.__dict__.items() if name != "XT"}


def about_middles(X: Any) -> Any:
    """Sparse X in CSC format, with the median subtracted from columns that are mostly far from 0.

    Their squares would lose digits. The fit of a model with an intercept does not change.
    """
    X = canonical(X.tocsc())
    full = np.flatnonzero(2 * np.diff(X.indptr) > X.shape[0])
    values = X[:, full].toarray().astype(np.float64)
    medians = np.median(values, axis=0) if len(full) else np.empty(0)
    is_far = np.abs(medians) > np.abs(values - medians).mean(axis=0)
    if not is_far.any():
        return X
    rest = np.setdiff1d(np.arange(X.shape[1]), full[is_far])
    shifted = sp.csc_matrix(values[:, is_far] - medians[is_far])
    order = np.argsort(np.concatenate([rest, full[is_far]]), kind="stable")
    return sp.hstack([X[:, rest], shifted], format="csc")[:, order]


def on_scaled_columns(*model: Any) -> Any:
    """A pipeline that fills missing values with the median and standardizes the columns, before the model, if any."""
    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler(), *model)


def require_fillable(X: Any, missing: Any) -> None:
    """Refuse an unknown strategy for missing values, and missing values in sparse X that have to be filled."""
    if missing is None:
        return
    if missing not in STRATEGIES:
        raise ParameterError(f"missing={missing!r}: choose 'mean', 'median', or None, which refuses NaN")
    if sp.issparse(X):
        bad = columns_not_finite(X)
        if len(bad):
            raise ParameterError(
                f"X is sparse and contains NaN or infinity in {some_columns(bad, X.shape[1], None)}, and "
                f"missing={missing!r} fills dense tables only: give X.toarray(), or fill those cells first"
            )


def refuse_filling(missing: Any, where: str) -> None:
    raise ParameterError(
        f"X contains NaN, and with {where} missing={missing!r} cannot fill it inside the folds: fill X first, or use "
        "another cv and scoring"
    )


@dataclass(frozen=True)
class Missing:
    """Columns of dense X that contain NaN, and the values that replace NaN in each fold."""

    columns: NDArray[np.int64]  # incomplete columns, ascending
    number: NDArray[np.int64]  # for each column of X its position in ``columns``, or -1
    fills: Floats  # (folds, incomplete columns): replacement for NaN minus the center of the column

    @classmethod
    def in_columns(cls, X: Any, folds: Folds, missing: str | None) -> tuple[SubsetColumns, Missing]:
        """The columns of X, and the missing values in them; rows are in fold order if each is tested once."""
        order = folds.order if folds.is_partition else np.arange(folds.n_rows)
        columns = SubsetColumns(X, order, missing=missing is not None)
        incomplete = np.flatnonzero(columns.is_incomplete)
        if len(incomplete) and folds.is_loo:
            refuse_filling(missing, "cv='loo'")
        number = np.full(columns.n_features, -1)
        number[incomplete] = np.arange(len(incomplete))
        fills = np.empty((len(folds.splits), len(incomplete)))
        step = max(1, CELLS_AT_A_TIME // folds.n_rows)
        imputer = SimpleImputer(strategy=missing, keep_empty_features=True)  # 0 if all training values are missing
        for start in range(0, len(incomplete), step):
            values = np.asarray(columns.X[:, incomplete[start : start + step]], dtype=np.float64)
            for fold, (train, _) in enumerate(folds.splits):
                fills[fold, start : start + step] = imputer.fit(values[train]).statistics_
        if len(incomplete):
            fills -= columns.centers[incomplete]
        return columns, cls(incomplete, number, fills)

    def in_each(self, indices: NDArray[Any], offsets: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each subset contains an incomplete column."""
        if not len(self.columns) or len(offsets) < 2:
            return np.zeros(len(offsets) - 1, bool)
        return np.logical_or.reduceat(self.number[indices] >= 0, offsets[:-1])


@dataclass(frozen=True)
class BoundToColumns(ScoresPredictions):
    """Base of bound criteria that gather columns and fill missing values; rows are in the order of the columns."""

    columns: SubsetColumns
    target: Target
    folds: Folds
    measure: Measure
    missing: Missing
