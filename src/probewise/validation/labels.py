"""Validation of labels and sample weights (y, sample_weight)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_non_negative

from .errors import ParameterError, warn


def require_finite_target(y: NDArray[Any]) -> None:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        bad = np.flatnonzero(~np.isfinite(y))
        raise ValueError(
            f"Input y contains NaN or infinity in {len(bad)} rows (first: row {bad[0]}): leave those rows out"
        )


def plain_labels(y: Any) -> NDArray[Any]:
    """y as an array of one kind; numbers stored as objects become numbers, missing and mixed labels are refused."""
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {y.shape}: y has {y.shape[1]} columns, and features are "
            "ranked for one target; give one column at a time, such as y[:, 0]"
        )
    if y.dtype.kind != "O":
        require_finite_target(y)
        return y
    missing = np.flatnonzero([_is_missing(label) for label in y.ravel()])
    if len(missing):
        raise ValueError(
            f"Input y contains NaN or None in {len(missing)} rows (first: row {missing[0]}): leave those rows out"
        )
    kinds = {_kind(label) for label in y.ravel()}
    if len(kinds) > 1:
        raise ValueError(
            f"Unknown label type: y holds labels of several kinds ({', '.join(sorted(kinds))}): "
            "give labels of one kind, for example y.astype(str)"
        )
    return np.array(y.tolist()) if kinds == {"number"} else y


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        return True


def _kind(label: Any) -> str:
    if isinstance(label, bool | int | float | np.number | np.bool_):
        return "number"
    return "str" if isinstance(label, str) else type(label).__name__


def warn_of_another_order(X: Any, y: Any) -> None:
    """Warn if X and y are pandas objects with the same index in a different order: rows are matched by position."""
    if not all(type(part).__module__.split(".")[0] == "pandas" for part in (X, y)) or X.index.equals(y.index):
        return
    try:
        same_rows = X.index.is_unique and X.index.sort_values().equals(y.index.sort_values())
    except TypeError:  # an index of mixed types cannot be sorted
        return
    if same_rows:
        warn(
            "y has the index of X in another order, and rows are matched by position, not by index: "
            "give y.loc[X.index] if they should be matched by index"
        )


def checked_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Weights as an array, or None if there are none; refused unless they are non-negative and not all 0."""
    if sample_weight is None:
        return None
    try:
        values = np.full(n_rows, sample_weight) if np.isscalar(sample_weight) else sample_weight
        weights = check_array(values, dtype=np.float64, ensure_2d=False, copy=True, input_name="sample_weight")
        if weights.ndim != 1:
            raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
        if len(weights) != n_rows:
            raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
        check_non_negative(weights, "`sample_weight`")
        if not weights.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
    except (ValueError, TypeError) as error:
        raise ParameterError(
            f"sample_weight cannot be used: {' '.join(str(error).split())} "
            f"Give a number of 0 or more for each of the {n_rows} rows, not all 0"
        ) from error
    return weights


def require_two_weighted(y: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
    """Refuse weights that are 0 for all classes, or all values of y, but one."""
    if weights is not None and len(left := np.unique(y[weights > 0])) == 1:
        raise ParameterError(
            f"sample_weight is 0 for all rows but those with y = {left.tolist()[0]!r}: no feature can distinguish them"
        )
