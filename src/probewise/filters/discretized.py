"""Base classes of the filters on discretized columns: MRMR, JMI, CMIM, EFS, DFE, CFS and FCBF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._selector import MISSING_CATEGORY, Accepts, Selector
from ..criteria.base import Target
from ..discretize import SUPERVISED, cut_points, encode, require_method
from ..engine.tally import positions
from ..executors import Map, in_turn, threads
from ..information import DECIMALS
from ..validation.errors import ParameterError
from ..validation.parameters import discrete_columns
from ..validation.tables import SQUARED, number_categories

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Correlated:
    """Columns of a table with a numeric target: correlations in place of the counts of `Codes`."""

    columns: Floats  # with mean 0 and length 1; constant columns are 0

    @classmethod
    def of(cls, X: Any) -> Correlated:
        columns = np.array(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        columns[:, np.ptp(columns, axis=0) == 0] = 0.0
        columns -= columns.mean(axis=0)
        length = np.sqrt((columns**2).sum(axis=0))
        return cls(columns / np.where(length > 0, length, 1.0))

    @property
    def n_columns(self) -> int:
        return self.columns.shape[1]

    def against(self, base: Any, columns: Integers | None = None, *, map: Map | None = None) -> Correlations:
        """Correlations of ``base``, a column of numbers or the number of one, with each column."""
        target = self.columns[:, base] if np.ndim(base) == 0 else Correlated.of(np.asarray(base)[:, None]).columns[:, 0]
        others = self.columns if columns is None else self.columns[:, columns]
        return Correlations(np.minimum(np.round(np.abs(target @ others), DECIMALS), 1.0))


@dataclass(frozen=True, eq=False)
class Correlations:
    """Absolute correlations, and the information that columns with a normal distribution would share."""

    uncertainty: Floats

    @property
    def information(self) -> Floats:
        return np.round(-0.5 * np.log2(np.maximum(1 - self.uncertainty**2, 1e-12)), DECIMALS)

    def add_to(self, sums: Floats, taken: int, redundancy: Floats, partners: Integers) -> None:
        """Add the information to ``sums``; store the largest correlation so far and its column ``taken``."""
        sums += self.information
        is_larger = (self.uncertainty > redundancy) & (np.arange(len(sums)) != taken)
        redundancy[is_larger], partners[is_larger] = self.uncertainty[is_larger], taken


@dataclass(eq=False, repr=False)
class DiscretizedFilter(Selector):
    """Base class of filters that use interval codes of the columns and the classes of y."""

    _: KW_ONLY
    discrete_features: Any = "auto"
    n_jobs: int | None = None

    _takes_numbers = False  # as targets

    @property
    def _accepts(self) -> Accepts:
        method = getattr(self, "discretization", None) or getattr(self, "levels", None)
        # Methods that use only the order of values take columns of any width.
        return Accepts(stores=True, categories=True, widths=None if method in SUPERVISED else SQUARED)

    def _encoded(self, X: Any, y: Any, method: str | int | Callable[[int, int], int]) -> tuple[Any, NDArray[Any], Map]:
        """Codes of X, class codes of y, and a thread map; ``method`` may be a function of (n_rows, n_classes).

        With a numeric target, `Correlated` columns in place of codes, for the filters that take numbers.
        """
        if not callable(method):
            require_method("levels" if hasattr(self, "levels") else "discretization", method)
        X, is_category = number_categories(X, MISSING_CATEGORY)
        X, y = self._checked(X, y)
        X = X.tocsc() if hasattr(X, "tocsc") else X
        target = Target.of(y) if self._takes_numbers else Target.of_classes(y)
        names = getattr(self, "feature_names_in_", None)
        if not target.is_classification:
            if is_category is not None and is_category.any():
                raise ParameterError("categorical columns need classes: cut y into classes, or use DAF or Tournament")
            return Correlated.of(X), target.values, in_turn
        discrete = discrete_columns(self.discrete_features, X.shape[1], names, is_category)
        map = threads(self.n_jobs)
        self.classes_ = np.asarray(target.classes)
        method = method(len(y), len(self.classes_)) if callable(method) else method
        self.cut_points_ = cut_points(X, target.values, method, discrete=discrete, map=map)
        return encode(X, self.cut_points_, map=map), target.values, map


class StepwiseFilter(DiscretizedFilter):
    """Base class of filters that select one feature at a time; the other features are ranked by their last value."""

    order_: Integers
    redundancy_: Floats
    partners_: Integers

    _chooses_size = False  # whether the method determines the number of features itself

    def _n_selected(self, n_features: int) -> int:
        if not self._chooses_size:
            return super()._n_selected(n_features)
        return len(self.order_) if hasattr(self, "order_") else n_features

    def _reset_redundancy(self, n_features: int) -> None:
        self.redundancy_ = np.zeros(n_features)
        self.partners_ = np.full(n_features, -1, dtype=np.int64)

    def _update_redundancy(self, columns: Integers, similarity: Floats, selected: int) -> None:
        """Store the largest similarity of each column with a selected feature, and that feature."""
        is_larger = similarity > self.redundancy_[columns]
        self.redundancy_[columns[is_larger]] = similarity[is_larger]
        self.partners_[columns[is_larger]] = selected

    def _rank_by_order(self, order: list[int], values: Floats) -> None:
        """Set the ranking: the selected features in order, then the others by ``values``."""
        self.order_ = np.array(order, dtype=np.int64)
        self.scores_ = values
        rest = np.ones(len(values), dtype=bool)
        rest[self.order_] = False
        self.ranking_ = np.empty(len(values), dtype=np.int64)
        self.ranking_[self.order_] = np.arange(len(order)) + 1
        self.ranking_[rest] = positions(values[rest]) + len(order) + 1

    def explain(self, feature: int | str) -> str:
        """One line about a feature (number or name): rank, value, and the selected feature it is most similar to."""
        check_is_fitted(self, "order_")
        names = getattr(self, "feature_names_in_", np.arange(len(self.scores_)))
        column = int(np.flatnonzero(names == feature)[0]) if isinstance(feature, str) else int(feature)
        sentence = f"{names[column]}: rank {self.ranking_[column]} of {len(names)}, value {self.scores_[column]:.3g}"
        partner = self.partners_[column]
        if partner < 0:
            return sentence
        return f"{sentence}, {self.redundancy_[column]:.2f} like {names[partner]} (rank {self.ranking_[partner]})"


def first_best(values: Floats, is_candidate: NDArray[np.bool_]) -> int:
    """The lowest candidate column with the largest value; values that differ only by rounding count as equal."""
    values = np.where(is_candidate, values, -np.inf)
    best = values.max()
    return int(np.argmax(values >= best - 1e-10 * max(1.0, abs(best))))
