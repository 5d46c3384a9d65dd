"""Missing values: what stands in for them in each fold, from the rows that fold trains on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..checks.errors import Parameter, ParameterError
from ..checks.stores import Stored
from ..checks.tables import columns_not_finite, some_columns
from .base import CELLS_AT_A_TIME, Columns, Floats, Folds

STRATEGIES = ("mean", "median")


def require_strategy(missing: Any) -> None:
    if missing is not None and missing not in STRATEGIES:
        raise ParameterError(Parameter("missing", missing), ": choose 'mean', 'median', or None, which refuses NaN")


def require_no_sparse_gaps(X: Any, missing: str | None) -> None:
    """A sparse table has one kind of value that is not stored, and it is 0."""
    if missing is not None and sp.issparse(X):
        bad = columns_not_finite(X)
        if len(bad):
            raise ParameterError(
                f"X is sparse and contains NaN or infinity in {some_columns(bad, X.shape[1], None)}, and ",
                Parameter("missing", missing),
                " fills dense tables only: give X.toarray(), or fill those cells first",
            )


@dataclass(frozen=True)
class Gaps:
    """The columns of dense X that hold NaN.

    columns : their numbers, ascending.
    number : for each column of X which of them it is; -1: it has no gaps.
    fills : (folds, columns), what fills them in a fold, less the column's centre.
    """

    columns: NDArray[np.int64]
    number: NDArray[np.int64]
    fills: Floats

    @classmethod
    def of(cls, columns: Columns, folds: Folds, missing: str | None) -> Gaps:
        has_gaps = np.zeros(columns.n_features, bool) if columns.is_sparse else columns.extent.has_gaps
        found = np.flatnonzero(has_gaps)
        number = np.full(columns.n_features, -1)
        number[found] = np.arange(len(found))
        fills = np.empty((len(folds.splits), len(found)))
        step = max(1, CELLS_AT_A_TIME // folds.n_rows)
        for start in range(0, len(found), step):
            values = _values(columns.X, found[start : start + step])
            for fold, (train, _) in enumerate(folds.splits):
                fills[fold, start : start + step] = _middle(values[train], missing)
        if len(found):
            fills -= columns.centers[found]
        return cls(found, number, fills)

    def in_each(self, indices: NDArray[Any], offsets: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each subset holds a column with gaps."""
        if not len(self.columns) or len(offsets) < 2:
            return np.zeros(len(offsets) - 1, bool)
        return np.logical_or.reduceat(self.number[indices] >= 0, offsets[:-1])

    def any_in(self, subset: NDArray[Any]) -> bool:
        return bool(len(self.columns)) and bool((self.number[subset] >= 0).any())


def _values(X: Any, columns: NDArray[np.int64]) -> Floats:
    matrix, places = X.gather(columns) if isinstance(X, Stored) else (X, columns)
    return np.asarray(matrix[:, places], dtype=np.float64)


def _middle(values: Floats, missing: str | None) -> Floats:
    """Mean or median of what is known in each column; 0 where nothing is."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    if missing == "mean":
        return np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1)
    ordered = np.sort(values, axis=0)  # NaN goes last
    low, high = np.maximum(count - 1, 0) // 2, count // 2
    middle = 0.5 * (_at(ordered, low) + _at(ordered, np.minimum(high, len(values) - 1)))
    return np.where(count > 0, middle, 0.0)


def _at(ordered: Floats, rows: NDArray[np.int64]) -> Floats:
    return np.take_along_axis(ordered, rows[None, :], axis=0)[0]
