"""Missing values: filled with the mean or median of their column; columns that are constant or empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.utils import gen_batches

from .errors import warn
from .stores import Stored
from .tables import columns_not_finite, extremes, require_finite, some_columns

STRATEGIES = ("mean", "median")
CELLS_AT_A_TIME = 2**20


def filled(
    X: Any,
    missing: str | None,
    *,
    categorical: NDArray[np.bool_],
    weights: NDArray[np.float64] | None = None,
    names: NDArray[Any] | None = None,
) -> Any:
    """A copy of X with missing values replaced by the mean or median of their column, or X if none is missing.

    "auto" is the median, with a warning. The statistics are those of the rows with a weight; a column without values
    is filled with 0. Missing categories stay, because they are levels of their own.
    """
    if missing is None or X.dtype.kind != "f":
        return X
    if sp.issparse(X) or isinstance(X, Stored):
        require_finite(X, names, f"fill them first, because missing={missing!r} only fills dense tables in memory")
        return X
    require_finite(X, names, allow_nan=True)
    incomplete = columns_not_finite(X)
    incomplete = incomplete[~categorical[incomplete]]
    if not len(incomplete):
        return X
    if missing == "auto":
        empty = np.flatnonzero(np.isnan(X).all(axis=0))
        words = f"; {some_columns(empty, X.shape[1], names)} are empty and rank last" if len(empty) else ""
        warn(
            f"missing values in {some_columns(incomplete, X.shape[1], names)} are filled with the median of the "
            f"column (missing='median'); missing=None refuses them{words}"
        )
    X, counts = X.copy(order="K"), slice(None) if weights is None else weights > 0
    imputer = SimpleImputer(strategy="median" if missing == "auto" else missing, keep_empty_features=True)
    for part in gen_batches(len(incomplete), max(1, CELLS_AT_A_TIME // len(X))):
        columns = incomplete[part]
        X[:, columns] = imputer.fit(X[:, columns][counts]).transform(X[:, columns])
    return X


def uninformative_columns(X: Any) -> NDArray[np.int64]:
    """Columns that are constant or have no values; none where that is true of all columns."""
    low, high = extremes(X, allow_nan=True)
    columns = np.flatnonzero((low == high) | np.isnan(low))
    return columns if len(columns) < len(low) else columns[:0]
