"""Scaling of columns before probing: standardization, ranks, and the choice of the scale "auto"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.utils import gen_batches

from .errors import ParameterError
from .stores import Stored

Floats = NDArray[np.float64]
SCALES = ("auto", "standard", "rank", None)
LARGEST_COPY = 2**30  # bytes, up to which "auto" makes a scaled copy
CELLS_AT_A_TIME = 2**18
SIMILAR = 10.0  # ratio to the median deviation; below it columns are left alone: genes of one chip ranked better so
UNEVEN = 100.0  # ratio of large to small deviations, above which the large ones dominate distances


def require_scale(scale: Any) -> None:
    if scale not in SCALES:
        raise ParameterError(f"scale={scale!r}: choose 'standard', 'rank', 'auto' or None")


def scale_for(scale: str | None, X: Any) -> str | None:
    """The scale to use: "auto" means "standard" if columns differ much in scale and a copy of X fits in memory."""
    if scale == "rank" and sp.issparse(X):
        raise ParameterError("scale='rank' would fill a sparse table: use scale='standard', or None")
    if scale is not None and scale != "auto" and isinstance(X, Stored):
        raise ParameterError(f"scale={scale!r} copies the table, which is not in memory: use scale=None")
    if scale != "auto":
        return scale
    if isinstance(X, Stored) or not _can_be_copied(X):
        return None
    return None if not sp.issparse(X) and _are_similar(_positive_deviations(X)) else "standard"


def _can_be_copied(X: Any) -> bool:
    n_bytes = X.nnz * 8 if sp.issparse(X) else X.shape[0] * X.shape[1] * max(4, X.dtype.itemsize)
    return bool(n_bytes <= LARGEST_COPY)


def _are_similar(deviations: Floats) -> bool:
    return not len(deviations) or bool(np.abs(np.log(deviations / np.median(deviations))).max() < np.log(SIMILAR))


def scaled(X: Any, scale: str | None, categorical: NDArray[np.bool_] | None = None, weights: Any = None) -> Any:
    """X with scaled columns, or X itself if nothing changes; missing values and categories stay as they are.

    "standard" subtracts the mean and divides by the standard deviation. Sparse columns are divided by their largest
    absolute value instead, so that zeros stay zeros. "rank" replaces values by their ranks, from 0 to 1.
    """
    if scale is None:
        return X
    if sp.issparse(X):
        return _divided_by_largest(X)
    if scale == "standard" and _is_standard(X, weights):
        return X
    out = np.empty(X.shape, np.result_type(X.dtype, np.float32), order="F")
    for columns in _column_batches(X):
        part = X[:, columns]
        if scale == "standard":
            means, deviations = _moments(part, weights)
            out[:, columns] = (part - means) / np.where(deviations > 0, deviations, 1.0)
        else:
            out[:, columns] = rankdata(part, axis=0, nan_policy="omit") / part.shape[0]
    if categorical is not None:
        out[:, categorical] = X[:, categorical]
    return out


def uneven_widths(X: Any, scale: str | None = None) -> tuple[float, float] | None:
    """The 5% and 95% quantiles of the columns' deviations, if they differ so much that large ones dominate distances.

    None if they do not, or if scale "auto" has already found that they do not.
    """
    if isinstance(X, Stored) or sp.issparse(X) or (scale == "auto" and _can_be_copied(X)):
        return None
    deviations = _positive_deviations(X)
    if len(deviations) < 2:
        return None
    low, high = (float(width) for width in np.quantile(deviations, [0.05, 0.95]))
    return (low, high) if high > UNEVEN * low else None


def _column_batches(X: Any) -> Iterator[slice]:
    return gen_batches(X.shape[1], max(1, CELLS_AT_A_TIME // X.shape[0]))


def _moments(X: Any, weights: Any = None) -> tuple[Floats, Floats]:
    """Means and standard deviations of the columns, without missing values."""
    parts = [_moments_of(np.asarray(X[:, columns], dtype=np.float64), weights) for columns in _column_batches(X)]
    means, deviations = zip(*parts, strict=True)
    return np.concatenate(means), np.concatenate(deviations)


def _moments_of(part: Floats, weights: Any) -> tuple[Floats, Floats]:
    is_known = np.isfinite(part)
    if weights is None and is_known.all():  # twice as fast as the general formula
        mean = part.sum(axis=0) / len(part)
        return mean, np.sqrt(((part - mean) ** 2).sum(axis=0) / len(part))
    weight = np.ones((len(part), 1)) if weights is None else np.asarray(weights, dtype=np.float64)[:, None]
    total = np.maximum((weight * is_known).sum(axis=0), np.finfo(float).tiny)
    mean = np.nansum(weight * part, axis=0) / total
    return mean, np.sqrt(np.nansum(weight * (part - mean) ** 2, axis=0) / total)


def _positive_deviations(X: Any) -> Floats:
    deviations = _moments(X)[1]
    return deviations[deviations > 0]


def _is_standard(X: Any, weights: Any) -> bool:
    means, deviations = _moments(X, weights)
    even = (deviations == 0) | (np.abs(deviations - 1) < 1e-3)
    return X.dtype.kind == "f" and bool((even & (np.abs(means) < 1e-3)).all())


def _divided_by_largest(X: Any) -> Any:
    largest = np.asarray(abs(X).max(axis=0).toarray()).ravel()
    if (np.abs(largest[largest > 0] - 1) < 1e-6).all():
        return X
    factors = sp.diags_array(1 / np.where(largest > 0, largest, 1.0))
    return (X @ factors).asformat(X.format).astype(np.result_type(X.dtype, np.float32))
