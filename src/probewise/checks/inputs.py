"""What a user passes in: cells that cannot be used are named, columns that are discrete already are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .errors import Message, ParameterError
from .stored import Stored, lies_by_columns, stretches

BYTES_AT_A_TIME = 2**24
REMEDY: Message = ("impute or leave out those columns or rows",)
CATEGORIES = ("category", "Categorical", "Enum")
TEXTS = ("object", "str", "string", "String", "Utf8")
SQUARED = (1e-150, 1e150)  # how wide a column may be for sums of squares neither to vanish nor to overflow


def require_finite_target(y: NDArray[Any]) -> None:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        bad = np.flatnonzero(~np.isfinite(y))
        raise ValueError(
            f"Input y contains NaN or infinity in {len(bad)} rows (first: row {bad[0]}): leave those rows out"
        )


def require_finite(X: Any, names: NDArray[Any] | None, remedy: Message = REMEDY) -> None:
    bad = columns_not_finite(X)
    if len(bad):
        raise ParameterError(f"Input X contains NaN or infinity in {some_columns(bad, X.shape[1], names)}: ", *remedy)


def require_widths(
    X: Any,
    names: NDArray[Any] | None,
    widths: tuple[float, float] = SQUARED,
    *,
    allow_nan: bool = False,
    remedy: Message = REMEDY,
) -> None:
    """Refuse columns that hold NaN (if not allowed) or infinity, or are too wide or too narrow, in one pass."""
    if X.dtype.kind != "f" or (sp.issparse(X) and _are_moderate(X.data, widths)):
        return
    if X.dtype.itemsize <= 4 and widths == SQUARED and not allow_nan:
        require_finite(X, names, remedy)  # float32 has no number too large or too small for that
        return
    low, high = extremes(X, allow_nan=allow_nan)
    bad = np.flatnonzero(np.isinf(low) | np.isinf(high) | (np.isnan(low) & (not allow_nan)))
    if len(bad):
        what = "infinity" if allow_nan else "NaN or infinity"
        raise ParameterError(f"Input X contains {what} in {some_columns(bad, X.shape[1], names)}: ", *remedy)
    require_width(low, high, names, widths)


def _are_moderate(values: NDArray[Any], widths: tuple[float, float]) -> bool:
    """Whether values that are not 0 can make no column too wide or too narrow."""
    sizes = np.abs(values[values != 0])
    return not len(sizes) or (float(sizes.max()) < widths[1] / 2 and float(sizes.min()) >= widths[0])


def require_width(
    low: NDArray[np.float64], high: NDArray[np.float64], names: NDArray[Any] | None, widths: tuple[float, float]
) -> None:
    """Refuse columns, of these extremes, too wide or too narrow to be computed with; constant ones are neither."""
    least, most = widths
    with np.errstate(over="ignore", invalid="ignore"):
        width = high - low
    for bad, what in ((width > most, "large"), ((width > 0) & (width < least), "small")):
        if bad.any():
            where = np.flatnonzero(bad)
            raise ValueError(
                f"Input X holds values too {what} to be computed with in {some_columns(where, len(width), names)}: "
                f"their widths, max - min, reach {width[where].max() if what == 'large' else width[where].min():.3g}; "
                f"scale those columns to widths between {least:g} and {most:g}, for example by their largest absolute "
                "values, or leave them out"
            )


def some_columns(columns: NDArray[np.int64], n_columns: int, names: NDArray[Any] | None) -> str:
    """How many of them, and the first few by name, or by number where they have none."""
    shown = [repr(str(names[column])) if names is not None else str(column) for column in columns[:5]]
    more = ", ..." if len(columns) > 5 else ""
    return f"{len(columns)} of {n_columns} columns ({', '.join(shown)}{more})"


def extremes(X: Any, *, allow_nan: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and the largest value of every column, found piece by piece; NaN is one, or passed over."""
    least, largest = (np.fmin, np.fmax) if allow_nan else (np.minimum, np.maximum)
    if sp.issparse(X):
        return _sparse_extremes(X, least, largest)
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    if allow_nan:
        low[:], high[:] = np.nan, np.nan
    by_columns = isinstance(X, Stored) or lies_by_columns(X)
    if by_columns:
        for part in stretches(X):
            columns = X[:, part]
            low[part], high[part] = least.reduce(columns, axis=0), largest.reduce(columns, axis=0)
        return low, high
    step = max(1, BYTES_AT_A_TIME // max(1, X.itemsize * X.shape[1]))
    for start in range(0, len(X), step):
        low = least(low, least.reduce(X[start : start + step], axis=0))
        high = largest(high, largest.reduce(X[start : start + step], axis=0))
    return low, high


def _sparse_extremes(X: Any, least: Any, largest: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of the values stored and, in columns that are not full, 0."""
    coordinates = X.tocoo()
    low, high = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    full = np.bincount(coordinates.col, minlength=X.shape[1]) >= X.shape[0]
    low[full], high[full] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        least.at(low, coordinates.col, coordinates.data)
        largest.at(high, coordinates.col, coordinates.data)
    return low, high


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
    if isinstance(X, Stored) or lies_by_columns(X):
        for part in stretches(X):
            fine[part] = np.isfinite(X[:, part]).all(axis=0)
        return np.flatnonzero(~fine)
    step = max(1, BYTES_AT_A_TIME // max(1, X.itemsize * X.shape[1]))
    for start in range(0, len(X), step):
        fine &= np.isfinite(X[start : start + step]).all(axis=0)
    return np.flatnonzero(~fine)


def require_numbers(X: Any) -> None:
    """What scikit-learn checks of an array, for one that is read by columns."""
    shape = tuple(X.shape)
    if len(shape) != 2:
        raise ValueError(f"Expected 2D array, got {len(shape)}D array instead: X has the shape {shape}")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X holds values of type {X.dtype}: give numbers")
    for count, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count < 1:
            raise ValueError(f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required.")


def number_categories(
    X: Any, missing: float = np.nan, also: NDArray[np.int32] | None = None
) -> tuple[Any, NDArray[np.bool_] | None]:
    """A frame with its categories as numbers, and which columns are categories or booleans; the rest as it is.

    A frame is a pandas or polars one; the user's own is left alone. A missing category becomes NaN, or the number
    given. Text in the columns named ``also`` is taken as categories. For anything else than a frame only an array of
    booleans is known to be discrete (None: not known).
    """
    kinds = kinds_of_columns(X)
    if kinds is None:
        kind = getattr(X, "dtype", None)
        return X, np.ones(X.shape[1], dtype=bool) if kind == np.bool_ and X.ndim == 2 else None
    categories = np.flatnonzero(are_categories(kinds, also))
    if len(categories) and hasattr(X, "iloc"):
        X = X.copy(deep=False)
        for column in categories:
            codes = X.iloc[:, column].astype("category").cat.codes
            X.isetitem(column, codes.where(codes >= 0, missing))
    elif len(categories):
        texts = [X.to_series(column) for column in categories]
        codes = [text.cast(str).rank("dense") - 1 for text in texts]  # its own numbers are those of the process
        X = X.with_columns(codes if np.isnan(missing) else [code.cast(float).fill_null(missing) for code in codes])
    return X, np.isin(kinds, (*CATEGORIES, "bool", "boolean", "Boolean"))


def are_categories(kinds: NDArray[Any], also: NDArray[np.int32] | None = None) -> NDArray[np.bool_]:
    """Which columns of a frame are categories by their types; of those named ``also``, those of text."""
    found = np.isin(kinds, CATEGORIES)
    if also is not None:
        found[also] |= np.isin(kinds[also], TEXTS)
    return found


def kinds_of_columns(X: Any) -> NDArray[Any] | None:
    """Names of the types of the columns of a pandas or polars frame; None for anything else."""
    if hasattr(X, "iloc") and hasattr(X, "dtypes") and getattr(X, "ndim", 0) == 2:
        return np.array([str(kind) for kind in X.dtypes])
    if hasattr(X, "with_columns") and hasattr(X, "to_series"):
        return np.array([str(kind).split("(")[0] for kind in X.schema.values()])
    return None


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
