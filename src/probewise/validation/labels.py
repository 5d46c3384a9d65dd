"""Labels and weights of rows (y, sample_weight): what is refused, and the arrays that remain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_non_negative

from .errors import Parameter, ParameterError, warn


def require_finite_target(y: NDArray[Any]) -> None:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        bad = np.flatnonzero(~np.isfinite(y))
        raise ValueError(
            f"Input y contains NaN or infinity in {len(bad)} rows (first: row {bad[0]}): leave those rows out"
        )


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


def warn_of_another_order(X: Any, y: Any) -> None:
    """Say so where y has the row names of X in another order: rows are taken as they come."""
    if not all(type(part).__module__.split(".")[0] == "pandas" for part in (X, y)) or X.index.equals(y.index):
        return
    try:
        same_rows = X.index.is_unique and X.index.sort_values().equals(y.index.sort_values())
    except TypeError:  # names of several kinds
        return
    if same_rows:
        warn(
            "y has the index of X in another order, and rows are taken as they come, not by index: "
            "give y.loc[X.index] if they belong together by it"
        )


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas' NA is neither equal nor unequal to anything
        return True


def _kind(label: Any) -> str:
    if isinstance(label, bool | int | float | np.number | np.bool_):
        return "number"
    return "str" if isinstance(label, str) else type(label).__name__


def checked_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """A weight of 0 or more for each row, not all 0; None where none are given."""
    if sample_weight is None:
        return None
    try:
        given = np.full(n_rows, sample_weight) if np.isscalar(sample_weight) else sample_weight
        weights = check_array(given, dtype=np.float64, ensure_2d=False, copy=True, input_name="sample_weight")
        if weights.ndim != 1:
            raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
        if len(weights) != n_rows:
            raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
        check_non_negative(weights, "`sample_weight`")
        if not weights.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
    except (ValueError, TypeError) as error:
        raise ParameterError(
            Parameter("sample_weight"),
            f" cannot be used: {' '.join(str(error).split())} Give a number of 0 or more for each of the {n_rows} "
            "rows, not all 0",
        ) from error
    return weights


def require_two_weighted(y: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
    """Refuse weights that leave one class, or one number, alone."""
    if weights is not None and len(left := np.unique(y[weights > 0])) == 1:
        raise ParameterError(
            Parameter("sample_weight"),
            f" is 0 for all rows but those with y = {left.tolist()[0]!r}: features cannot be told apart by them",
        )
