"""Input and result of the tests: the validated table, and p-values, q-values and named features."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import false_discovery_control, rankdata
from sklearn.utils import check_array, check_consistent_length

from ..criteria.base import Target
from ..evaluation.covariates import Covariates
from ..validation.errors import ParameterError
from ..validation.parameters import (
    SHARE,
    check_parameter,
    checked_groups,
    checked_weights,
    outcome_array,
    require_two_weighted,
)
from ..validation.tables import explained, require_plain

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MIN_ROWS = 4
ROWS_PER_STRATUM = 10  # on average; with fewer, residuals are permuted among all rows


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with a positive weight: X, class codes or numbers, weights, and codes of groups and strata."""

    X: Any  # dense or CSC, of all rows
    rows: Ints | None  # rows that are used; None: all rows
    target: NDArray[Any]
    n_classes: int  # 0 for numbers
    weights: Floats | None
    groups: Ints | None
    strata: Ints
    covariates: Covariates | None = None  # regressed out of X and of the target, which is then numbers
    is_ranked: bool = True  # whether numbers are replaced by their normal scores

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        strata: Any = None,
        adjust: Any = None,
        task: str = "auto",
    ) -> Table:
        require_plain(X, y)
        with explained(X):
            X = check_array(
                X, accept_sparse="csc", ensure_all_finite="allow-nan", dtype="numeric", ensure_min_samples=MIN_ROWS
            )
            X = X.astype(np.float64) if X.dtype.kind == "O" else X
        y = outcome_array(y)
        check_consistent_length(X, y)
        weights = checked_weights(sample_weight, len(y))
        if y.ndim == 1:
            require_two_weighted(y, weights)
        rows = None if weights is None or weights.all() else np.flatnonzero(weights)
        used = slice(None) if rows is None else rows
        target = Target.of(y[used], task)
        if weights is not None:
            weights = None if np.ptp(weights[used]) == 0 else weights[used] / weights[used].mean()
        groups = None if groups is None else _codes("groups", groups, len(y))[used]
        strata = np.zeros(len(target.values), np.int64) if strata is None else _codes("strata", strata, len(y))[used]
        if len(np.unique(np.column_stack([strata, target.values]), axis=0)) == len(np.unique(strata)):
            raise ParameterError("y has one value in each stratum, so nothing remains to test: give other strata")
        table = cls(X, rows, target.values, target.n_classes, weights, groups, strata)
        return table if adjust is None else table._adjusted(target, adjust)

    def _adjusted(self, target: Target, adjust: Any) -> Table:
        """The table with covariates regressed out of the columns and of the target.

        Where each combination of covariates has several rows, permutations stay within these strata.
        """
        covariates = Covariates.of(adjust, self.X.shape[0])
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        if self.rows is not None:
            X, covariates = X[self.rows], Covariates(covariates.values[self.rows])
        covariates = replace(covariates, weights=self.weights)
        if (is_missing := np.isnan(X)).any():
            X = np.where(
                is_missing, np.where(is_missing, 0.0, X).sum(axis=0) / np.maximum(1, (~is_missing).sum(axis=0)), X
            )
        strata = np.unique(np.column_stack([self.strata, covariates.values]), axis=0, return_inverse=True)[1].ravel()
        are_few = ROWS_PER_STRATUM * (strata.max() + 1) <= self.n_rows
        return replace(
            self,
            X=covariates.residual_columns(X),
            rows=None,
            target=covariates.residual_target(target),
            n_classes=0,
            strata=strata if are_few else self.strata,
            covariates=covariates,
            is_ranked=not target.is_classification,
        )

    @property
    def scores(self) -> Floats:
        """(targets, rows): normal scores of numbers, or the indicator of each class (of one of two classes)."""
        if self.n_classes:
            indicators = np.eye(self.n_classes)[:, self.target]
            return indicators[1:] if self.n_classes == 2 else indicators
        scores = np.atleast_2d(self.target.T)
        scores = np.stack([normal_scores(row) for row in scores]) if self.is_ranked else scores
        return scores if self.covariates is None else self.covariates.residuals(scores.T).T

    @property
    def lost_freedom(self) -> float:
        """Share of the degrees of freedom that covariates take from permutations of all rows."""
        if self.covariates is None or self.strata.any():
            return 0.0
        return self.covariates.rank / (self.n_rows - 1)

    @property
    def n_rows(self) -> int:
        return len(self.target)

    @property
    def n_independent(self) -> int:
        """Number of independent rows: the number of groups, if there are groups."""
        return self.n_rows if self.groups is None else len(np.unique(self.groups))

    @property
    def n_effective(self) -> float:
        """Number of independent rows of equal weight that would give the same precision."""
        if self.weights is None:
            return float(self.n_independent)
        return self.n_independent * float(self.weights.sum() ** 2 / (self.weights**2).sum()) / self.n_rows

    @property
    def n_columns(self) -> int:
        return int(self.X.shape[1])

    def columns(self, which: Any) -> Floats:
        """(columns, rows): the values of some columns, each contiguous in memory."""
        part = self.X[:, which]
        part = part.toarray() if sp.issparse(part) else part
        part = part if self.rows is None else part[self.rows]
        return np.ascontiguousarray(part.T, dtype=np.float64)


def _codes(name: str, labels: Any, n_rows: int) -> Ints:
    return np.unique(np.asarray(checked_groups(labels, n_rows, name)), return_inverse=True)[1].astype(np.int64)


def normal_scores(values: NDArray[Any]) -> Floats:
    """Normal quantiles of the ranks of the values, standardized; equal values get equal scores."""
    scores = ndtri((rankdata(values) - 0.5) / len(values))
    return np.asarray((scores - scores.mean()) / (scores.std() or 1.0))


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """Similar columns, most probable first; the q-value of the set and that of the first column alone."""

    columns: Ints
    q_value: float
    q_single: float


@dataclass(frozen=True, eq=False)
class Discoveries:
    """p-values and q-values of all columns, and the columns named at a false discovery rate.

    Attributes
    ----------
    p_values, q_values : array of shape (n_features,)
        A column with a q-value of at most ``fdr`` is named.
    fdr : float
        The allowed expected share of false discoveries.
    neighborhoods : list of Neighborhood
        Sets of similar columns that were tested as one.
    """

    p_values: Floats
    q_values: Floats
    fdr: float = 0.1
    neighborhoods: list[Neighborhood] = field(default_factory=list)

    @property
    def clusters(self) -> list[Ints]:
        """Named neighborhoods of which no single column is named; the first column represents the others."""
        return [found.columns for found in self.neighborhoods if found.q_value <= self.fdr < found.q_single]

    @property
    def mask(self) -> NDArray[np.bool_]:
        """The named columns."""
        return np.asarray(self.q_values <= self.fdr)

    def at(self, fdr: float) -> Discoveries:
        """Repeat the naming at another false discovery rate."""
        check_parameter("fdr", fdr, SHARE)
        return replace(self, fdr=fdr)

    def __repr__(self) -> str:
        n_named = int(self.mask.sum())
        return f"Discoveries({n_named:,} of {len(self.p_values):,} features at a false discovery rate of {self.fdr:g})"


def q_values(p_values: Floats) -> Floats:
    """p-values adjusted by the method of Benjamini and Hochberg."""
    return np.asarray(false_discovery_control(p_values)) if len(p_values) else p_values
