"""Feature tables (X): refused types, NaN and infinity, ranges of columns, categories as numbers, and scaling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.utils import gen_batches
from sklearn.utils.validation import validate_data

from .errors import ParameterError
from .parameters import plain_labels
from .stores import Stored, column_slices, lies_by_columns, readable_type, row_blocks

TAKE_CATEGORIES = ", or use a method that takes categories, such as DAF, Tournament, ReliefF, EFS or MRMR"
Floats = NDArray[np.float64]
REMEDY = "impute or leave out those columns or rows"
CATEGORIES = ("category", "Categorical", "Enum")
TEXTS = ("object", "str", "string", "String", "Utf8")
ANY_WIDTH = (0.0, np.inf)
SQUARED = (1e-150, 1e150)  # smallest and largest range of a column whose sums of squares neither vanish nor overflow


def validated(
    estimator: Any, X: Any, y: Any = None, *, with_target: bool = True, several: bool = False, **options: Any
) -> tuple[Any, Any]:
    """X and y checked by scikit-learn's ``validate_data`` and by the stricter checks of this module."""
    require_plain(X, y)
    with explained(X):
        if with_target:
            y = None if y is None else plain_labels(y, several=several)
            X, y = validate_data(estimator, X, y, multi_output=np.ndim(y) == 2 and y.shape[1] > 1, **options)
        else:
            X = validate_data(estimator, X, **options)
        if X.dtype.kind == "O":
            X = X.astype(np.float64)
        if sp.issparse(X):
            X = canonical(X.astype(readable_type(X.dtype), copy=False))
    return X, y


def canonical(X: Any) -> Any:
    """A compressed sparse matrix with one entry per cell, in order; the caller's matrix is not changed."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


# ---- types that are refused


def require_plain(X: Any, y: Any = None) -> None:
    """Refuse, before any conversion, input that would be misread or cannot be read."""
    for name, part in (("X", X), ("y", y)):
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise ValueError(
                f"{name} is a masked array with {np.ma.count_masked(part)} masked cells: "
                "fill them in, or leave out their rows or columns"
            )
        if _kind(part) == "c":
            raise ValueError(
                f"Complex data not supported: {name} is {part.dtype}; give real numbers, such as {name}.real"
            )
    if sp.issparse(y):
        raise TypeError("y is a sparse matrix: give an array, such as y.toarray()")
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise TypeError(f"X is a {type(X).__name__}, which holds no rows yet: call its collect() first")
    if X is None or isinstance(X, str | bytes | set | frozenset | Iterator) or type(X) is dict:
        raise TypeError(
            f"X is of type {type(X).__name__}: give an array, a frame or a sparse matrix, a row for each sample"
        )
    if _kind(X) == "V":
        raise TypeError("X is an array of records: make a data frame or an array of numbers of it")
    if sp.issparse(X):
        _require_valid_indices(X)
    if is_frame(X):
        _require_plain_frame(X)
    elif _kind(X) in ("M", "m"):
        raise ValueError(f"X is of type {X.dtype}: turn dates or times into numbers, such as days since the first")


def _kind(part: Any) -> str | None:
    return getattr(getattr(part, "dtype", None), "kind", None)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and len(getattr(X, "shape", ())) == 2


def _require_valid_indices(X: Any) -> None:
    """Refuse a sparse matrix whose indices point outside of it, because kernels would crash the process."""
    try:  # in a new matrix of the same arrays, because the check may shorten them
        if X.format in ("csr", "csc", "bsr"):
            type(X)((X.data, X.indices, X.indptr), shape=X.shape).check_format()
        elif X.format == "coo":
            type(X)((X.data, X.coords), shape=X.shape)
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"X is a damaged sparse matrix of shape {X.shape}: its indices or indptr point outside of it; "
            "build the matrix again"
        ) from error


def _require_plain_frame(X: Any) -> None:
    """Refuse a data frame that is empty, has two columns of one name, or contains dates."""
    if 0 in X.shape:
        what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
        raise ValueError(f"Found array with 0 {what} (shape={tuple(X.shape)}): X is an empty frame")
    require_distinct_names(X)
    dates = [getattr(kind, "is_temporal", bool)() or getattr(kind, "kind", "") in ("M", "m") for kind in X.dtypes]
    if any(dates):
        raise ValueError(
            f"Input X holds dates or times in {some_columns(np.flatnonzero(dates), len(dates), X.columns)}: "
            f"turn them into numbers, such as days since the first, or leave them out{_other_decisions(X, dates)}"
        )


def require_distinct_names(X: Any) -> None:
    """Refuse a data frame with two columns of one name."""
    names, seen = list(X.columns), set()
    for name in names:
        if name in seen:
            raise ValueError(f"X has {names.count(name)} columns of the name {name!r}: rename them or leave some out")
        seen.add(name)


@contextmanager
def explained(X: Any) -> Iterator[None]:
    """Explain errors in the conversion of X: name columns that are not numeric, and rows of unequal length."""
    try:
        yield
    except (ValueError, TypeError) as error:
        _require_number_columns(X, error)
        if isinstance(X, Sequence) and len({np.size(row) for row in X}) > 1:
            sizes = sorted({np.size(row) for row in X})
            raise ValueError(
                f"rows of X differ in length, from {sizes[0]} to {sizes[-1]} cells: make them equal"
            ) from error
        raise


def _other_decisions(X: Any, dates: Sequence[bool] = ()) -> str:
    """Other columns of a frame that need a decision, and the function that makes it."""
    columns = [X[name] for name in X.columns]
    is_text = [not any(dates[k : k + 1]) and not _holds_numbers(column) for k, column in enumerate(columns)]
    has_gaps = [bool((column.isna() if hasattr(X, "iloc") else column.is_null()).any()) for column in columns]
    found = {"text": is_text if any(dates) else (), "missing values": has_gaps}
    parts = [
        f"{what} in {some_columns(np.flatnonzero(mask), len(columns), X.columns)}"
        for what, mask in found.items()
        if any(mask)
    ]
    also = f"; X also has {' and '.join(parts)}" if parts else ""
    return f"{also}; probewise.prepare(X) makes numbers and categories of all columns and lists its decisions"


def _require_number_columns(X: Any, error: ValueError | TypeError) -> None:
    """Name the columns of a frame, or of an array of objects, that are not numeric."""
    if is_frame(X):
        columns: Any = (X.iloc[:, place] if hasattr(X, "iloc") else X.to_series(place) for place in range(X.shape[1]))
    elif isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 2:
        columns = X.T
    else:
        return
    bad = np.flatnonzero([not _holds_numbers(column) for column in columns])
    if len(bad):
        names, kinds = np.asarray(X.columns) if is_frame(X) else None, kinds_of_columns(X)
        others = "" if kinds is None or not are_categories(kinds)[bad].any() else TAKE_CATEGORIES
        raise (TypeError if isinstance(error, TypeError) else ValueError)(
            f"Input X holds other than numbers in {some_columns(bad, X.shape[1], names)}: "
            f"encode them as numbers or leave them out{others}{_other_decisions(X) if is_frame(X) else ''} "
            f"({next(iter(str(error).splitlines()), '')})"
        ) from error


def _holds_numbers(column: Any) -> bool:
    if _kind(column) in ("b", "i", "u", "f"):
        return True
    try:
        np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column).astype(np.float64)
    except (ValueError, TypeError):
        return False
    return True


def require_numbers(X: Any) -> None:
    """Check a stored table, which is read by columns, as scikit-learn checks an array."""
    shape = tuple(X.shape)
    if len(shape) != 2:
        raise ValueError(f"Expected 2D array, got {len(shape)}D array instead: X has the shape {shape}")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X holds values of type {X.dtype}: give numbers")
    for count, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count < 1:
            raise ValueError(f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required.")


# ---- NaN, infinity and ranges


def some_columns(columns: NDArray[np.int64], n_columns: int, names: NDArray[Any] | None) -> str:
    """The number of these columns, and the first five by name (or by number if they have no names)."""
    shown = [repr(str(names[column])) if names is not None else str(column) for column in columns[:5]]
    more = ", ..." if len(columns) > 5 else ""
    return f"{len(columns)} of {n_columns} columns ({', '.join(shown)}{more})"


def columns_not_finite(X: Any, *, allow_nan: bool = False) -> NDArray[np.int64]:
    """The columns that contain infinity or, unless it is allowed, NaN."""
    if X.dtype.kind != "f" or (sp.issparse(X) and np.isfinite(X.data).all()):
        return np.empty(0, np.int64)
    low, high = extremes(X, allow_nan=allow_nan)
    return np.flatnonzero(np.isinf(low) | np.isinf(high) | (np.isnan(low) & (not allow_nan)))


def require_finite(
    X: Any,
    names: NDArray[Any] | None,
    remedy: str = REMEDY,
    *,
    allow_nan: bool = False,
    widths: tuple[float, float] = ANY_WIDTH,
) -> None:
    """Refuse columns with infinity, with NaN (unless allowed), or with a range that is too large or too small."""
    if X.dtype.kind != "f" or (sp.issparse(X) and _are_moderate(X.data, widths)):
        return
    low, high = extremes(X, allow_nan=allow_nan)
    bad = np.flatnonzero(np.isinf(low) | np.isinf(high) | (np.isnan(low) & (not allow_nan)))
    if len(bad):
        what = "infinity" if allow_nan else "NaN or infinity"
        raise ParameterError(f"Input X contains {what} in {some_columns(bad, X.shape[1], names)}: {remedy}")
    require_width(low, high, names, widths)


def _are_moderate(values: NDArray[Any], widths: tuple[float, float]) -> bool:
    """Whether the nonzero values of a sparse matrix cannot make the range of any column too large or too small."""
    sizes = np.abs(values[values != 0])
    return not len(sizes) or (float(sizes.max()) < widths[1] / 2 and float(sizes.min()) >= widths[0])


def require_width(
    low: NDArray[np.float64], high: NDArray[np.float64], names: NDArray[Any] | None, widths: tuple[float, float]
) -> None:
    """Refuse columns, given by their extremes, whose range is too large or too small; constant columns are accepted."""
    least, most = widths
    with np.errstate(over="ignore", invalid="ignore"):
        width = high - low
    for bad, what in ((width > most, "large"), ((width > 0) & (width < least), "small")):
        if bad.any():
            where = np.flatnonzero(bad)
            raise ValueError(
                f"Input X holds values too {what} to be computed with in {some_columns(where, len(width), names)}: "
                f"their ranges, max - min, reach {width[where].max() if what == 'large' else width[where].min():.3g}; "
                f"scale those columns to ranges between {least:g} and {most:g}, or leave them out"
            )


def extremes(X: Any, *, allow_nan: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Minimum and maximum of every column; NaN if a column contains NaN or, if allowed, only NaN."""
    if sp.issparse(X):
        X = canonical(X.tocsc())
        ends = (X.nanmin(axis=0), X.nanmax(axis=0)) if allow_nan else (X.min(axis=0), X.max(axis=0))
        low, high = (end.toarray().ravel().astype(np.float64) for end in ends)
        return low, high
    least, largest = (np.fmin, np.fmax) if allow_nan else (np.minimum, np.maximum)
    start = np.nan if allow_nan else np.inf
    low, high = np.full(X.shape[1], start), np.full(X.shape[1], -start)
    known = X.extremes if isinstance(X, Stored) else {}
    if allow_nan in known:
        return known[allow_nan]
    if isinstance(X, Stored) or lies_by_columns(X):
        for part in column_slices(X):
            columns = X[:, part]
            low[part], high[part] = least.reduce(columns, axis=0), largest.reduce(columns, axis=0)
        known[allow_nan] = low, high
        return low, high
    for rows in row_blocks(X):
        low, high = least(low, least.reduce(rows, axis=0)), largest(high, largest.reduce(rows, axis=0))
    return low, high


# ---- categories


def number_categories(
    X: Any, missing: float = np.nan, also: NDArray[np.int32] | None = None
) -> tuple[Any, NDArray[np.bool_] | None]:
    """X with numbers in place of categories, and the mask of columns that hold categories or booleans.

    X is a copy if it is a data frame with categories. A missing category becomes the number ``missing``. Text in the
    columns ``also`` is read as categories. The mask is None if X is neither a frame nor an array of booleans.
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
        # polars' own category codes depend on the order in which the process met the categories
        codes = [X.to_series(column).cast(str).rank("dense") - 1 for column in categories]
        X = X.with_columns(codes if np.isnan(missing) else [code.cast(float).fill_null(missing) for code in codes])
    return X, np.isin(kinds, (*CATEGORIES, "bool", "boolean", "Boolean"))


def are_categories(kinds: NDArray[Any], also: NDArray[np.int32] | None = None) -> NDArray[np.bool_]:
    """Mask of the columns that hold categories, by the names of their types; text counts in the columns ``also``."""
    mask = np.isin(kinds, CATEGORIES)
    if also is not None:
        mask[also] |= np.isin(kinds[also], TEXTS)
    return mask


def kinds_of_columns(X: Any) -> NDArray[Any] | None:
    """Names of the types of the columns of a pandas or polars frame; None if X is not a frame."""
    if hasattr(X, "iloc") and hasattr(X, "dtypes") and getattr(X, "ndim", 0) == 2:
        return np.array([str(kind) for kind in X.dtypes])
    if hasattr(X, "with_columns") and hasattr(X, "to_series"):
        return np.array([str(kind).split("(")[0] for kind in X.schema.values()])
    return None


# ---- scaling

CELLS_AT_A_TIME = 2**18


def scaled(X: Any, scale: str | None, categorical: NDArray[np.bool_] | None = None, weights: Any = None) -> Any:
    """X with scaled columns, or X itself if nothing changes; missing values and categories stay as they are.

    "standard" divides by the standard deviation, and subtracts the mean from columns of a dense table. "largest"
    divides by the largest absolute value, "nonzero" by the mean absolute value of the values that are not 0. "rank"
    replaces values by their ranks, from 0 to 1.
    """
    if scale is None:
        return X
    sizes_of = {"largest": _largest, "nonzero": _sizes_of_nonzeros}.get(scale)
    if sp.issparse(X):
        return _divided(X, sizes_of(X) if sizes_of else moments(X, weights)[1])
    if scale == "standard" and _is_standard(X, weights):
        return X
    out = np.empty(X.shape, np.result_type(X.dtype, np.float32), order="F")
    for columns in gen_batches(X.shape[1], max(1, CELLS_AT_A_TIME // X.shape[0])):
        part = X[:, columns]
        if scale == "standard":
            means, deviations = moments(part, weights)
            out[:, columns] = (part - means) / np.where(deviations > 0, deviations, 1.0)
        elif sizes_of:
            sizes = sizes_of(part)
            out[:, columns] = part / np.where(sizes > 0, sizes, 1.0)
        else:
            out[:, columns] = rankdata(part, axis=0, nan_policy="omit") / part.shape[0]
    if categorical is not None:
        out[:, categorical] = X[:, categorical]
    return out


def moments(X: Any, weights: Any = None) -> tuple[Floats, Floats]:
    """Means and standard deviations of the columns, without missing values."""
    means, deviations = np.empty(X.shape[1]), np.empty(X.shape[1])
    X = X.tocsc() if sp.issparse(X) else X
    for columns in gen_batches(X.shape[1], max(1, CELLS_AT_A_TIME // X.shape[0])):
        part = np.asarray(X[:, columns].toarray() if sp.issparse(X) else X[:, columns], dtype=np.float64)
        is_known = np.isfinite(part)
        if weights is None and is_known.all():  # twice as fast as the general formula
            mean = part.sum(axis=0) / len(part)
            variance = ((part - mean) ** 2).sum(axis=0) / len(part)
        else:
            weight = np.ones((len(part), 1)) if weights is None else np.asarray(weights, dtype=np.float64)[:, None]
            total = np.maximum((weight * is_known).sum(axis=0), np.finfo(float).tiny)
            mean = np.nansum(weight * part, axis=0) / total
            variance = np.nansum(weight * (part - mean) ** 2, axis=0) / total
        means[columns], deviations[columns] = mean, np.sqrt(variance)
    return means, deviations


def _is_standard(X: Any, weights: Any) -> bool:
    means, deviations = moments(X, weights)
    even = (deviations == 0) | (np.abs(deviations - 1) < 1e-3)
    return X.dtype.kind == "f" and bool((even & (np.abs(means) < 1e-3)).all())


def _largest(X: Any) -> Floats:
    largest = abs(X).max(axis=0).toarray() if sp.issparse(X) else np.fmax.reduce(np.abs(X), axis=0)
    return np.nan_to_num(np.asarray(largest, dtype=np.float64).ravel())  # 1 / 1e-40 overflows in float32


def _sizes_of_nonzeros(X: Any) -> Floats:
    """Mean absolute value of the values of each column that are not 0; 0 where there are none."""
    sizes, is_nonzero = abs(X).astype(np.float64), X != 0
    if not sp.issparse(X):
        sizes = np.nan_to_num(sizes, posinf=0.0)
        is_nonzero &= sizes > 0
    return np.asarray(sizes.sum(axis=0)).ravel() / np.maximum(np.asarray(is_nonzero.sum(axis=0)).ravel(), 1)


def _divided(X: Any, by: Floats) -> Any:
    """Sparse columns, divided by positive numbers; X itself if all are 1."""
    if (np.abs(by[by > 0] - 1) < 1e-6).all():
        return X
    factors = sp.diags_array(1 / np.where(by > 0, by, 1.0))
    return (X @ factors).asformat(X.format).astype(np.result_type(X.dtype, np.float32))
