"""Design matrices of feature subsets for `Linear`: what is known of groups of rows, and their scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..kernels import linear as kernels
from .base import Floats
from .scoring import Outcomes

if TYPE_CHECKING:
    from .linear import BoundLinear

Rows = slice | NDArray[np.int64]


@dataclass(frozen=True)
class Moments:
    """What ridge regression needs to know of a group of rows: means, and products about them.

    ``products`` (columns, targets) and ``target_means`` are those of classes, 1 for a class's own rows and 0 for
    others, or of y.
    """

    n: float
    means: Floats
    scatter: Floats
    products: Floats
    target_means: Floats

    def only(self, subset: NDArray[np.int32]) -> Moments:
        """Those of some of the columns."""
        scatter = self.scatter[subset[:, None], subset]
        return Moments(self.n, self.means[subset], scatter, self.products[subset], self.target_means)

    def filled(self, incomplete: NDArray[np.int64], fills: Floats) -> Moments:
        """Those of columns with those at ``incomplete`` filled; their indicators come after all columns."""
        if not len(incomplete):
            return self
        d = len(self.means) - len(incomplete)
        means, scatter, products = self.means[:d].copy(), self.scatter[:d, :d].copy(), self.products[:d].copy()
        mixed = self.scatter[:d, d:] * fills
        means[incomplete] += fills * self.means[d:]
        products[incomplete] += fills[:, None] * self.products[d:]
        scatter[:, incomplete] += mixed
        scatter[incomplete] += mixed.T
        scatter[np.ix_(incomplete, incomplete)] += np.outer(fills, fills) * self.scatter[d:, d:]
        return Moments(self.n, means, scatter, products, self.target_means)

    def fit(self, n_classes: int, alpha: float, weights: Floats, intercepts: Floats) -> bool:
        """Fill in weights and intercepts; are digits enough left?"""
        targets, products = self.target_means, self.products
        if n_classes:  # of class c, the target is 1 for its rows and -1 for all others
            own = slice(1, 2) if n_classes == 2 else slice(None)
            targets, products = 2 * targets[own] - 1, 2 * products[:, own]
        return kernels.ridge(self.means, self.scatter, targets, products, alpha, weights, intercepts)

    def __add__(self, other: Moments) -> Moments:
        """Those of both groups together, by the formula of T. F. Chan, G. H. Golub and R. J. LeVeque (1979)."""
        n = self.n + other.n
        away, targets_away = other.means - self.means, other.target_means - self.target_means
        share, scaled = other.n / n, (self.n * (other.n / n)) * away
        return Moments(
            n,
            self.means + share * away,
            self.scatter + other.scatter + np.outer(scaled, away),
            self.products + other.products + np.outer(scaled, targets_away),
            self.target_means + share * targets_away,
        )


class Design(ABC):
    """The design matrix of a probe, with moments and scores of groups of rows; dense or sparse."""

    size: int
    incomplete = which = np.empty(0, np.int64)  # places of columns with missing values, and which of those they are

    def __init__(self, bound: BoundLinear) -> None:
        self.columns, self.target, self.targets = bound.columns, bound.target, bound.targets
        self.measure, self.weights, self.missing = bound.measure, bound.weights, bound.missing
        self.n_targets = max(1, self.target.n_classes)

    @abstractmethod
    def load(self, subset: Any) -> Design: ...

    @abstractmethod
    def sums(self, rows: Any) -> Any: ...

    @abstractmethod
    def score(
        self, rows: Rows, weights: Floats, intercepts: Floats, allowed: NDArray[np.bool_], by_group: Outcomes
    ) -> float: ...

    def _target_sums(self, rows: Rows) -> Floats:
        targets = self.targets[rows]
        weights = self.weights[rows] if self.measure.is_weighted else None
        if self.target.classes is None:
            return np.array([targets.sum() if weights is None else weights @ targets])
        return np.bincount(targets, weights, minlength=self.n_targets).astype(np.float64)

    def _score_predictions(self, rows: Rows, predictions: Floats, by_group: Outcomes) -> float:
        weights = self.weights[rows] if self.measure.is_weighted else self.weights
        tests = self.measure.tests(self.targets[rows], weights, self.target.n_classes)
        return tests.score_one(predictions, by_group)


class DenseDesign(Design):
    def __init__(self, bound: BoundLinear, largest: int) -> None:
        super().__init__(bound)
        self.room = np.empty(len(self.targets) * (largest + min(largest, len(self.missing.columns))))

    def load(self, subset: NDArray[np.int32]) -> DenseDesign:
        self.size = len(subset)
        if len(self.missing.columns):
            self.incomplete = np.flatnonzero(self.missing.number[subset] >= 0)
            self.which = self.missing.number[subset[self.incomplete]]
        n_rows, width = len(self.targets), len(subset) + len(self.incomplete)
        self.values = self.room[: n_rows * width].reshape(n_rows, width)
        self.columns.take(subset, self.values[:, : self.size] if len(self.incomplete) else self.values)
        for indicator, place in enumerate(self.incomplete.tolist(), start=self.size):
            self.values[:, indicator] = np.isnan(self.values[:, place])
            self.values[self.values[:, indicator] > 0, place] = 0.0
        return self

    def sums(self, rows: Rows) -> Moments:
        weights = self.weights[rows] if self.measure.is_weighted else None
        means, apart = _about_means(self.values[rows], weights)
        weighted = apart if weights is None else apart * weights[:, None]
        n = float(len(apart) if weights is None else weights.sum())
        target_means = self._target_sums(rows) / n
        return Moments(n, means, apart.T @ weighted, self._products(rows, weighted, target_means), target_means)

    def _products(self, rows: Rows, weighted: Floats, target_means: Floats) -> Floats:
        """Of columns about their means, times weights, with the targets."""
        products = np.empty((weighted.shape[1], self.n_targets))
        if self.target.classes is None:
            products[:, 0] = (self.targets[rows] - target_means[0]) @ weighted
        else:
            kernels.label_products(weighted, self.targets[rows], products)
        return products

    def score(
        self, rows: Rows, weights: Floats, intercepts: Floats, allowed: NDArray[np.bool_], by_group: Outcomes
    ) -> float:
        values = self.values[rows]
        predictions = np.empty(len(values))
        kernels.predict(values, weights, intercepts, allowed, self.measure.is_of_labels, predictions)
        return self._score_predictions(rows, predictions, by_group)


class GrownDesign(DenseDesign):
    """A loaded design that takes on one candidate column at a time; what the others give is not computed again."""

    def __init__(self, loaded: DenseDesign, parts: list[slice], candidates: NDArray[np.int32]) -> None:
        vars(self).update(vars(loaded))
        n_rows, size = loaded.values.shape
        self.size = size + 1
        self.values = np.empty((n_rows, size + 1))
        self.values[:, :size] = loaded.values
        self.extra = np.empty((n_rows, len(candidates)))
        self.columns.take(candidates, self.extra)
        self.known = {(part.start, part.stop): self._known(loaded, part) for part in parts}

    def _known(self, loaded: DenseDesign, part: slice) -> tuple[Moments, Moments, Floats]:
        """Moments of the loaded columns, of the candidates each by itself, and products of both."""
        weights = self.weights[part] if self.measure.is_weighted else None
        old, (means, apart) = loaded.sums(part), _about_means(self.extra[part], weights)
        weighted = apart if weights is None else apart * weights[:, None]
        products = self._products(part, weighted, old.target_means)
        own = Moments(old.n, means, (apart * weighted).sum(axis=0), products, old.target_means)
        return old, own, (loaded.values[part] - old.means).T @ weighted

    def load(self, candidate: Any) -> GrownDesign:
        """The candidate of this number in the last column."""
        self.candidate = int(candidate)
        self.values[:, -1] = self.extra[:, self.candidate]
        return self

    def sums(self, rows: Rows) -> Moments:
        if not isinstance(rows, slice) or (rows.start, rows.stop) not in self.known:
            return super().sums(rows)
        old, own, cross = self.known[rows.start, rows.stop]
        d, k = len(old.means), self.candidate
        scatter = np.empty((d + 1, d + 1))
        scatter[:d, :d] = old.scatter
        scatter[:d, d] = scatter[d, :d] = cross[:, k]
        scatter[d, d] = own.scatter[k]
        products = np.vstack([old.products, own.products[k]])
        return Moments(old.n, np.append(old.means, own.means[k]), scatter, products, old.target_means)


def _about_means(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Means of the columns, and the columns less these."""
    means = values.mean(axis=0) if weights is None else weights @ values / weights.sum()
    return means, values - means


@dataclass(frozen=True)
class Sums:
    """What is known of a group of rows of which most entries are 0: plain sums, so that zeros stay zeros."""

    n: float
    sums: Floats
    gram: Floats
    products: Floats
    target_sums: Floats

    def filled(self, incomplete: NDArray[np.int64], fills: Floats) -> Sums:
        return self

    def fit(self, n_classes: int, alpha: float, weights: Floats, intercepts: Floats) -> bool:
        """As `Moments.fit`."""
        targets, products = self.target_sums, self.products
        if n_classes:
            own = slice(1, 2) if n_classes == 2 else slice(None)
            targets, products = 2 * targets[own] - self.n, 2 * products[:, own] - self.sums[:, None]
        return kernels.ridge_of_few(self.n, self.sums, self.gram, targets, products, alpha, weights, intercepts)

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


class SparseDesign(Design):
    """The probe's stored entries, row by row; rows without any cost nothing."""

    def __init__(self, bound: BoundLinear, subsets: Subsets) -> None:
        super().__init__(bound)
        entries = np.diff(self.columns.X.indptr)
        most = max((int(entries[subset].sum()) for subset in subsets), default=0)
        self.starts = np.empty(len(self.targets) + 1, np.int64)
        self.entries = np.empty(most, np.int64), np.empty(most)

    def load(self, subset: NDArray[np.int32]) -> SparseDesign:
        X = self.columns.X
        kernels.rows_of_columns(X.data, X.indices, X.indptr, self.columns.place, subset, self.starts, *self.entries)
        self.size = len(subset)
        return self

    def sums(self, rows: Rows) -> Sums:
        assert isinstance(rows, slice)
        sums, gram = np.empty(self.size), np.empty((self.size, self.size))
        products = np.empty((self.size, self.n_targets))
        is_label = self.target.classes is not None
        kernels.sparse_sums(
            self.starts, *self.entries, rows.start, rows.stop, self.targets, self.weights, is_label,
            sums, gram, products,
        )  # fmt: skip
        n = self.weights[rows].sum() if self.measure.is_weighted else rows.stop - rows.start
        return Sums(n, sums, gram, products, self._target_sums(rows))

    def score(
        self, rows: Rows, weights: Floats, intercepts: Floats, allowed: NDArray[np.bool_], by_group: Outcomes
    ) -> float:
        assert isinstance(rows, slice)
        place = (self.starts, *self.entries, rows.start, rows.stop, weights, intercepts)
        predictions = np.empty(rows.stop - rows.start)
        kernels.sparse_predict(*place, allowed, self.measure.is_of_labels, predictions)
        return self._score_predictions(rows, predictions, by_group)
