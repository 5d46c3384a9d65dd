"""Covariates: encoded as numbers, and regressed out of columns and of the target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from ..criteria.base import Floats, Target
from ..validation.errors import ParameterError
from ..validation.stores import Stored
from ..validation.tables import CATEGORIES, kinds_of_columns
from .survival import adjusted_residuals

CELLS_AT_A_TIME = 2**22
DEPENDENT = 1e-8  # singular value, relative to the largest, of a direction that other covariates determine
EXPLAINED = 1e-6  # length of a residual, relative to that of the values, that is rounding error
SPARE_ROWS = 4  # more than there are independent covariates
REMEDY = "give numbers or categories, one row for each sample and one column for each covariate"


@dataclass(frozen=True, eq=False)
class Covariates:
    """Encoded covariates (rows, columns): numbers, and a column of 0 and 1 for each category but the first.

    A missing number is replaced by the median, and a column says where; a missing category is a category.
    """

    values: Floats
    weights: Floats | None = None

    @classmethod
    def of(cls, adjust: Any, n_rows: int, weights: Floats | None = None) -> Covariates:
        """The covariates in an array, a data frame or a list; an error where they cannot be used."""
        kinds = kinds_of_columns(adjust)
        if kinds is None:
            table = np.asarray(adjust)
            columns = [table] if table.ndim == 1 else list(table.T) if table.ndim == 2 else []
            kinds = np.full(len(columns), "")
        else:
            columns = [np.asarray(adjust[name]) for name in adjust.columns]
        if not columns or len(columns[0]) != n_rows:
            shape = getattr(adjust, "shape", np.shape(adjust))
            raise ParameterError(f"adjust has the shape {tuple(shape)}, and there are {n_rows:,} rows: {REMEDY}")
        encoded = [
            _encoded(column, number, kind in CATEGORIES)
            for number, (column, kind) in enumerate(zip(columns, kinds.tolist(), strict=True))
        ]
        covariates = cls(np.hstack(encoded), weights)
        if not 0 < covariates.rank <= n_rows - SPARE_ROWS:
            many = "no column that varies" if not covariates.rank else f"{covariates.rank:,} independent columns"
            raise ParameterError(f"adjust has {many}, and there are {n_rows:,} rows: give a few covariates that vary")
        return covariates

    @property
    def rank(self) -> int:
        return self.basis.shape[1]

    @cached_property
    def basis(self) -> Floats:
        """Independent columns that span the centered covariates, orthonormal with the weights."""
        weights = np.ones(len(self.values)) if self.weights is None else self.weights
        centered = self.values - weights @ self.values / weights.sum()
        scale = np.abs(centered).max(axis=0)
        centered = centered / np.where(scale > 0, scale, 1.0)
        singular, right = np.linalg.svd(centered * np.sqrt(weights)[:, None], full_matrices=False)[1:]
        used = singular > DEPENDENT * max(float(singular.max(initial=0.0)), 1e-300)
        return np.asarray(centered @ (right[used].T / singular[used]))

    def residuals(self, values: Floats) -> Floats:
        """Values (rows, columns) minus their regression on the covariates; the means stay.

        Columns that the covariates determine become constant.
        """
        basis = self.basis
        weighted = basis if self.weights is None else basis * self.weights[:, None]
        left = values - basis @ (weighted.T @ values)
        means = values.mean(axis=0)
        rest = np.sqrt(((left - means) ** 2).sum(axis=0))
        is_explained = rest <= EXPLAINED * np.sqrt((values**2).sum(axis=0))
        return np.where(is_explained, means, left)

    def residual_columns(self, X: Any) -> Any:
        """Residuals of the columns of a table; float32 stays float32."""
        if sp.issparse(X) or isinstance(X, Stored | np.memmap):
            kind = "sparse: give X.toarray()" if sp.issparse(X) else "not in memory: load it"
            raise ParameterError(f"adjust changes every value of X, and X is {kind}")
        if not np.isfinite(X).all():
            raise ParameterError("adjust needs complete columns: use missing='median' or 'mean'")
        out = np.empty(X.shape, np.float32 if X.dtype == np.float32 else np.float64, order="F")
        for part in gen_batches(X.shape[1], max(1, CELLS_AT_A_TIME // len(X))):
            out[:, part] = self.residuals(X[:, part].astype(np.float64))
        return out

    def residual_target(self, target: Target) -> Floats:
        """Residuals of the target as numbers: one column for each class (one for two classes), or for each target.

        For a survival outcome these are the martingale residuals of the Cox model with the covariates.
        """
        if target.survival is not None:
            return adjusted_residuals(target.survival, self.basis * np.sqrt(len(self.values)))
        values = target.values[:, None] if target.values.ndim == 1 else target.values
        if target.classes is not None:
            values = (values == np.arange(target.n_classes)).astype(np.float64)[:, 1 if target.n_classes == 2 else 0 :]
        left = self.residuals(values.astype(np.float64))
        left = left[:, np.ptp(left, axis=0) > 0]
        if not left.shape[1]:
            raise ParameterError(
                "adjust determines y, so nothing remains that features could explain: leave out the covariate that "
                "encodes the target, or design a study in which the two are not confounded"
            )
        return left[:, 0] if left.shape[1] == 1 else left


def _encoded(column: NDArray[Any], number: int, is_category: bool) -> Floats:
    """The columns of numbers of one covariate."""
    is_missing = np.array([value is None or value != value for value in column.tolist()], dtype=bool)
    known = column[~is_missing]
    try:
        numbers = None if is_category or column.dtype.kind in "SU" else known.astype(np.float64)
    except (TypeError, ValueError):  # text
        numbers = None
    if numbers is None:
        labels = np.array([f"{value}" for value in column.tolist()])
        levels = np.unique(labels)
        if 2 * len(levels) > len(labels):
            raise ParameterError(f"covariate {number} of adjust has {len(levels):,} categories: merge rare ones")
        return (labels[:, None] == levels[1:]).astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ParameterError(f"covariate {number} of adjust has an infinite value: correct it or leave the row out")
    values = np.full(len(column), np.median(numbers) if len(numbers) else 0.0)
    values[~is_missing] = numbers
    return np.column_stack([values, is_missing] if is_missing.any() else [values]).astype(np.float64)
