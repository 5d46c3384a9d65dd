"""What a user passes in: cells that cannot be used are named, columns that are discrete already are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

BYTES_AT_A_TIME = 2**24


def require_finite_target(y: NDArray[Any]) -> None:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        bad = np.flatnonzero(~np.isfinite(y))
        raise ValueError(
            f"Input y contains NaN or infinity in {len(bad)} rows (first: row {bad[0]}): leave those rows out"
        )


def require_finite(X: Any, names: NDArray[Any] | None) -> None:
    bad = columns_not_finite(X)
    if len(bad):
        shown = [repr(str(names[column])) if names is not None else str(column) for column in bad[:5]]
        more = ", ..." if len(bad) > 5 else ""
        raise ValueError(
            f"Input X contains NaN or infinity in {len(bad)} of {X.shape[1]} columns "
            f"({', '.join(shown)}{more}): impute or leave out those columns or rows"
        )


def columns_not_finite(X: Any) -> NDArray[np.int64]:
    """The columns that hold NaN or infinity, found piece by piece."""
    if X.dtype.kind != "f":
        return np.empty(0, np.int64)
    if sp.issparse(X):
        if np.isfinite(X.data).all():
            return np.empty(0, np.int64)
        coordinates = X.tocoo()
        return np.unique(coordinates.col[~np.isfinite(coordinates.data)]).astype(np.int64)
    fine = np.ones(X.shape[1], dtype=bool)
    step = max(1, BYTES_AT_A_TIME // max(1, X.itemsize * X.shape[1]))
    for start in range(0, len(X), step):
        fine &= np.isfinite(X[start : start + step]).all(axis=0)
    return np.flatnonzero(~fine)


def number_categories(X: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """A frame with its categories as numbers, and which columns are categories or booleans; the rest as it is.

    A frame is a pandas or polars one; the user's own is left alone. A missing category becomes NaN. For anything
    else than a frame only an array of booleans is known to be discrete (None: not known).
    """
    if hasattr(X, "iloc") and hasattr(X, "dtypes") and getattr(X, "ndim", 0) == 2:
        kinds = np.array([str(kind) for kind in X.dtypes])
        categories = np.flatnonzero(kinds == "category")
        if len(categories):
            X = X.copy(deep=False)
            for column in categories:
                codes = X.iloc[:, column].cat.codes
                X.isetitem(column, codes.where(codes >= 0, np.nan))
        return X, np.isin(kinds, ("category", "bool", "boolean"))
    if hasattr(X, "with_columns") and hasattr(X, "schema"):
        kinds = np.array([str(kind).split("(")[0] for kind in X.schema.values()])
        categories = np.flatnonzero(np.isin(kinds, ("Categorical", "Enum")))
        if len(categories):
            X = X.with_columns([X.to_series(column).to_physical() for column in categories])
        return X, np.isin(kinds, ("Categorical", "Enum", "Boolean"))
    kind = getattr(X, "dtype", None)
    return X, np.ones(X.shape[1], dtype=bool) if kind == np.bool_ and X.ndim == 2 else None


def discrete_columns(
    discrete_features: Any, n_features: int, names: NDArray[Any] | None, found: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """Which columns are discrete: those said (True, False, a mask, numbers or names), or, for "auto", those found."""
    if isinstance(discrete_features, str) and discrete_features == "auto":
        return np.zeros(n_features, dtype=bool) if found is None else found
    if isinstance(discrete_features, bool | np.bool_):
        return np.full(n_features, bool(discrete_features))
    asked = np.asarray(discrete_features)
    mask = np.zeros(n_features, dtype=bool)
    if asked.dtype == bool and asked.shape == (n_features,):
        return asked
    if asked.ndim == 1 and asked.dtype.kind in "iu" and ((asked >= 0) & (asked < n_features)).all():
        mask[asked] = True
        return mask
    if asked.ndim == 1 and len(asked) == 0:
        return mask
    if asked.ndim == 1 and names is not None and np.isin(asked, names).all():
        return np.isin(names, asked)
    raise ValueError(
        f"discrete_features={discrete_features!r} with {n_features} features: give 'auto', True, False, a mask of "
        f"{n_features} booleans, column numbers from 0 to {n_features - 1}, or, for a frame, column names"
    )
