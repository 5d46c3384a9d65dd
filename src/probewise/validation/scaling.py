"""Columns brought to one scale before they are probed: distances and penalties go by the width of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.utils import gen_batches

from .errors import Parameter, ParameterError
from .stores import Stored

SCALES = ("auto", "standard", "rank", None)
LARGEST_COPY = 2**30  # bytes, up to which "auto" makes a scaled copy
CELLS_AT_A_TIME = 2**18
ALIKE = 10.0  # the farthest from the median width; genes on one chip were ranked better as they are
UNEVEN = 100.0  # between the widths of usual columns, from which the wide ones rule distances


def require_scale(scale: Any) -> None:
    if scale not in SCALES:
        raise ParameterError(Parameter("scale", scale), ": choose 'standard', 'rank', 'auto' or None")


def scale_for(scale: str | None, X: Any) -> str | None:
    """The scale meant: "auto" is "standard" for a table in memory of uneven columns, if a copy is affordable."""
    if scale == "rank" and sp.issparse(X):
        raise ParameterError(Parameter("scale", scale), " would fill a sparse table: use scale='standard', or None")
    if scale is not None and scale != "auto" and isinstance(X, Stored):
        raise ParameterError(Parameter("scale", scale), " copies the table, which is not in memory: use scale=None")
    if scale != "auto":
        return scale
    if isinstance(X, Stored) or not _is_affordable(X):
        return None
    return None if not sp.issparse(X) and _are_alike(X) else "standard"


def _is_affordable(X: Any) -> bool:
    n_bytes = X.nnz * 8 if sp.issparse(X) else X.shape[0] * X.shape[1] * max(4, X.dtype.itemsize)
    return bool(n_bytes <= LARGEST_COPY)


def scaled(X: Any, scale: str | None, categorical: NDArray[np.bool_] | None = None, weights: Any = None) -> Any:
    """X with its columns on one scale, missing values and categories as they are; X itself where that changes nothing.

    "standard" takes off the mean and divides by the deviation; sparse columns are divided by their largest size, so
    that zeros stay. "rank" puts ranks, from 0 to 1, for values.
    """
    if scale is None:
        return X
    if sp.issparse(X):
        return _by_largest(X)
    if scale == "standard" and _is_standard(X, weights):
        return X
    out = np.empty(X.shape, np.result_type(X.dtype, np.float32), order="F")
    for some in _some_columns(X):
        out[:, some] = _standard(X[:, some], weights) if scale == "standard" else _ranks(X[:, some])
    if categorical is not None:
        out[:, categorical] = X[:, categorical]
    return out


def uneven_widths(X: Any, asked: str | None = None) -> tuple[float, float] | None:
    """The deviations between which nine in ten columns lie, if they are so uneven that the wide ones rule distances.

    Where "auto" was asked for and left the columns as they are, it has seen that they are not.
    """
    if isinstance(X, Stored) or sp.issparse(X) or (asked == "auto" and _is_affordable(X)):
        return None
    deviations = _deviations(X)
    if len(deviations) < 2:
        return None
    low, high = (float(width) for width in np.quantile(deviations, [0.05, 0.95]))
    return (low, high) if high > UNEVEN * low else None


def _some_columns(X: Any) -> Iterator[slice]:
    return gen_batches(X.shape[1], max(1, CELLS_AT_A_TIME // X.shape[0]))


def _moments(X: Any, weights: Any = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and deviations of columns, some at a time."""
    parts = [_moments_of(np.asarray(X[:, some], dtype=np.float64), weights) for some in _some_columns(X)]
    means, deviations = zip(*parts, strict=True)
    return np.concatenate(means), np.concatenate(deviations)


def _moments_of(part: NDArray[np.float64], weights: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    is_known = np.isfinite(part)
    if weights is None and is_known.all():  # the same, in half the time
        mean = part.sum(axis=0) / len(part)
        return mean, np.sqrt(((part - mean) ** 2).sum(axis=0) / len(part))
    share = np.ones((len(part), 1)) if weights is None else np.asarray(weights, dtype=np.float64)[:, None]
    known = np.maximum((share * is_known).sum(axis=0), np.finfo(float).tiny)
    mean = np.nansum(share * part, axis=0) / known
    return mean, np.sqrt(np.nansum(share * (part - mean) ** 2, axis=0) / known)


def _deviations(X: Any) -> NDArray[np.float64]:
    """Of the columns that are not constant."""
    deviations = _moments(X)[1]
    return deviations[deviations > 0]


def _are_alike(X: Any) -> bool:
    """Whether columns may be in one unit, in which a wider one may tell more."""
    deviations = _deviations(X)
    return not len(deviations) or bool(np.abs(np.log(deviations / np.median(deviations))).max() < np.log(ALIKE))


def _is_standard(X: Any, weights: Any) -> bool:
    means, deviations = _moments(X, weights)
    even = (deviations == 0) | (np.abs(deviations - 1) < 1e-3)
    return X.dtype.kind == "f" and bool((even & (np.abs(means) < 1e-3)).all())


def _standard(part: NDArray[Any], weights: Any) -> NDArray[np.float64]:
    means, deviations = _moments(part, weights)
    return np.asarray((part - means) / np.where(deviations > 0, deviations, 1.0))


def _ranks(part: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(rankdata(part, axis=0, nan_policy="omit") / part.shape[0])


def _by_largest(X: Any) -> Any:
    largest = np.asarray(abs(X).max(axis=0).toarray()).ravel()
    if (np.abs(largest[largest > 0] - 1) < 1e-6).all():
        return X
    factors = sp.diags_array(1 / np.where(largest > 0, largest, 1.0))
    return (X @ factors).asformat(X.format).astype(np.result_type(X.dtype, np.float32))
