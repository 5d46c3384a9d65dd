"""What is admitted as a table and as labels: what would be misread, or crash a kernel, is refused with a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from .errors import Parameter, ParameterError
from .inputs import require_finite_target, some_columns
from .stored import readable_type


def admitted(estimator: Any, X: Any, y: Any = None, *, with_target: bool = True, **options: Any) -> tuple[Any, Any]:
    """X and y as scikit-learn's ``validate_data`` gives them, and what it lets pass refused or put right."""
    require_plain(X, y)
    with explained(X):
        if with_target:
            X, y = validate_data(estimator, X, None if y is None else plain_labels(y), **options)
        else:
            X = validate_data(estimator, X, **options)
        if X.dtype.kind == "O":
            X = X.astype(np.float64)
        if sp.issparse(X):
            X = canonical(X.astype(readable_type(X.dtype), copy=False))
    return X, y


def canonical(X: Any) -> Any:
    """A compressed sparse matrix with one entry for each cell, in order; the caller's is left as it is."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def require_plain(X: Any, y: Any = None) -> None:
    """Refuse, before anything is converted, what would be misread or could not be read: a clear error for each."""
    for name, part in (("X", X), ("y", y)):
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise ValueError(
                f"{name} is a masked array with {np.ma.count_masked(part)} masked cells: "
                "fill them in, or leave out their rows or columns"
            )
        if getattr(getattr(part, "dtype", None), "kind", None) == "c":
            raise ValueError(
                f"Complex data not supported: {name} is {part.dtype}; give real numbers, such as {name}.real"
            )
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise TypeError(f"X is a {type(X).__name__}, which holds no rows yet: call its collect() first")
    if X is None or isinstance(X, str | bytes | set | frozenset | Iterator) or type(X) is dict:
        raise TypeError(
            f"X is of type {type(X).__name__}: give an array, a frame or a sparse matrix, a row for each sample"
        )
    if getattr(getattr(X, "dtype", None), "kind", None) == "V":
        raise TypeError(
            "X is an array of records: give a frame made of it, or an array of numbers, a row for each sample"
        )
    if sp.issparse(X):
        _require_sound(X)
    if is_frame(X):
        _require_names(X)
    _require_no_dates(X)


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas' or polars' kind."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and len(getattr(X, "shape", ())) == 2


def _require_sound(X: Any) -> None:
    """A sparse matrix whose numbers point outside of it would crash the process."""
    fine = True
    if X.format in ("csr", "csc", "bsr"):
        blocks = X.blocksize if X.format == "bsr" else (1, 1)
        across, along = (X.shape[0] // blocks[0], X.shape[1] // blocks[1])[:: -1 if X.format == "csc" else 1]
        starts, n_stored = X.indptr, len(X.indices)
        fine = len(starts) == across + 1 and starts[0] == 0 and bool((starts[1:] >= starts[:-1]).all())
        fine = fine and starts[-1] <= n_stored == len(X.data) and _are_within(X.indices[: starts[-1]], along)
    elif X.format == "coo":
        fine = all(_are_within(places, size) for places, size in zip(X.coords, X.shape, strict=True))
    if not fine:
        raise ValueError(
            f"X is a damaged sparse matrix of shape {X.shape}: its indices or indptr point outside of it; make it anew"
        )


def _are_within(places: NDArray[Any], size: int) -> bool:
    return not len(places) or (int(places.min()) >= 0 and int(places.max()) < size)


def _require_names(X: Any) -> None:
    if 0 in X.shape:
        what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
        raise ValueError(f"Found array with 0 {what} (shape={tuple(X.shape)}): X is a frame that holds nothing")
    names = list(X.columns)
    if len(set(names)) < len(names):
        seen: set[Any] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"X has {names.count(twice)} columns of the name {twice!r}: rename them or leave some out")


def _require_no_dates(X: Any) -> None:
    if is_frame(X):
        kinds = list(X.dtypes)
        dates = [getattr(kind, "is_temporal", bool)() or getattr(kind, "kind", "") in ("M", "m") for kind in kinds]
        if any(dates):
            raise ValueError(
                f"Input X holds dates or times in {some_columns(np.flatnonzero(dates), len(kinds), X.columns)}: "
                "turn them into numbers, such as days since the first, or leave them out"
            )
    elif getattr(getattr(X, "dtype", None), "kind", None) in ("M", "m"):
        raise ValueError(f"X is of type {X.dtype}: turn dates or times into numbers, such as days since the first")


@contextmanager
def explained(X: Any) -> Iterator[None]:
    """An error in converting X told in terms of X: columns that hold other than numbers, rows of unequal length."""
    try:
        yield
    except (ValueError, TypeError) as error:
        _require_number_columns(X, error)
        if isinstance(X, Sequence) and len({np.size(row) for row in X}) > 1:
            sizes = sorted({np.size(row) for row in X})
            raise ValueError(f"rows of X differ in length, from {sizes[0]} to {sizes[-1]} cells: mend them") from error
        raise


def _require_number_columns(X: Any, error: ValueError | TypeError) -> None:
    """Name the columns of a frame, or of an array of objects, that hold other than numbers."""
    if is_frame(X):
        columns: Any = (X.iloc[:, place] if hasattr(X, "iloc") else X.to_series(place) for place in range(X.shape[1]))
    elif isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 2:
        columns = X.T
    else:
        return
    bad = np.flatnonzero([not _holds_numbers(column) for column in columns])
    if len(bad):
        names = np.asarray(X.columns) if is_frame(X) else None
        raise (TypeError if isinstance(error, TypeError) else ValueError)(
            f"Input X holds other than numbers in {some_columns(bad, X.shape[1], names)}: "
            f"encode them as numbers or leave them out ({next(iter(str(error).splitlines()), '')})"
        ) from error


def _holds_numbers(column: Any) -> bool:
    if getattr(column.dtype, "kind", "O") in "biuf":
        return True
    try:
        np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column).astype(np.float64)
    except (ValueError, TypeError):
        return False
    return True


def plain_labels(y: Any) -> NDArray[Any]:
    """y as an array of one kind: numbers kept as objects as numbers; labels of several kinds, or missing, refused."""
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {y.shape}: y has {y.shape[1]} columns, and features are "
            "ranked for one target; give them one at a time, such as y[:, 0]"
        )
    if y.dtype.kind != "O":
        require_finite_target(y)
        return y
    lost = np.flatnonzero([_is_missing(label) for label in y.ravel()])
    if len(lost):
        raise ValueError(
            f"Input y contains NaN or None in {len(lost)} rows (first: row {lost[0]}): leave those rows out"
        )
    kinds = {_kind(label) for label in y.ravel()}
    if len(kinds) > 1:
        raise ValueError(
            f"Unknown label type: y holds labels of several kinds ({', '.join(sorted(kinds))}): "
            "give labels of one kind, for example y.astype(str)"
        )
    return np.array(y.tolist()) if kinds == {"number"} else y


def checked_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """A weight of 0 or more for each row, not all 0; None where none are given."""
    if sample_weight is None:
        return None
    try:
        weights = _check_sample_weight(
            sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True, copy=True
        )
        if not weights.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
    except (ValueError, TypeError) as error:
        raise ParameterError(
            Parameter("sample_weight"),
            f" cannot be used: {' '.join(str(error).split())} Give a number of 0 or more for each of the {n_rows} "
            "rows, not all 0",
        ) from error
    return np.asarray(weights, dtype=np.float64)


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas' NA is neither equal nor unequal to anything
        return True


def _kind(label: Any) -> str:
    if isinstance(label, bool | int | float | np.number | np.bool_):
        return "number"
    return "str" if isinstance(label, str) else type(label).__name__
