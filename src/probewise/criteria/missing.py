"""Missing values in dense X: what fills them in each fold, from the rows that fold trains on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer

from ..checks.errors import Parameter, ParameterError
from ..checks.stores import Stored
from ..checks.tables import columns_not_finite, some_columns
from .base import Floats, Folds, Target
from .columns import CELLS_AT_A_TIME, SubsetColumns
from .scoring import Measure, OutcomesByGroup

STRATEGIES = ("mean", "median")


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
            values = _values(columns.X, found[start : start + step])
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


def _values(X: Any, columns: NDArray[np.int64]) -> Floats:
    matrix, places = X.gather(columns) if isinstance(X, Stored) else (X, columns)
    return np.asarray(matrix[:, places], dtype=np.float64)
