"""Base classes of the filters on discretised columns: MRMR, JMI, CMIM, EFS, DFE, CFS and FCBF."""

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
from ..executors import Map, threads
from ..information import Codes
from ..validation.tables import SQUARED, discrete_columns, number_categories

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(eq=False, repr=False)
class DiscretisedFilter(Selector):
    """A filter that sees each column as interval codes and y as classes."""

    _: KW_ONLY
    discrete_features: Any = "auto"
    n_jobs: int | None = None

    @property
    def _accepts(self) -> Accepts:
        method = getattr(self, "discretization", None) or getattr(self, "levels", None)
        # Methods that use only the order of values take columns of any width.
        return Accepts(stores=True, categories=True, widths=None if method in SUPERVISED else SQUARED)

    def _encoded(self, X: Any, y: Any, method: str | int | Callable[[int, int], int]) -> tuple[Codes, Integers, Map]:
        """X as codes, y as class codes, and a map over threads; a method may depend on how many rows and classes."""
        if not callable(method):
            require_method("levels" if hasattr(self, "levels") else "discretization", method)
        X, found = number_categories(X, MISSING_CATEGORY)
        X, y = self._checked(X, y)
        X = X.tocsc() if hasattr(X, "tocsc") else X
        target = Target.of_classes(y)
        names = getattr(self, "feature_names_in_", None)
        discrete = discrete_columns(self.discrete_features, X.shape[1], names, found)
        map = threads(self.n_jobs)
        self.classes_ = np.asarray(target.classes)
        method = method(len(y), len(self.classes_)) if callable(method) else method
        self.cut_points_ = cut_points(X, target.values, method, discrete=discrete, map=map)
        return encode(X, self.cut_points_, map=map), target.values, map


class StepwiseFilter(DiscretisedFilter):
    """One that takes features one after the other: ``order_`` first, then the rest by their last value."""

    order_: Integers
    redundancy_: Floats
    partners_: Integers

    def _start(self, n_features: int) -> None:
        self.redundancy_ = np.zeros(n_features)
        self.partners_ = np.full(n_features, -1, dtype=np.int64)

    def _compare(self, columns: Integers, likeness: Floats, taken: int) -> None:
        """Keep by how much, and with which feature taken, each column is the most alike."""
        closer = likeness > self.redundancy_[columns]
        self.redundancy_[columns[closer]] = likeness[closer]
        self.partners_[columns[closer]] = taken

    def _keep_order(self, order: list[int], values: Floats) -> None:
        self.order_ = np.array(order, dtype=np.int64)
        self.scores_ = values
        rest = np.ones(len(values), dtype=bool)
        rest[self.order_] = False
        self.ranking_ = np.empty(len(values), dtype=np.int64)
        self.ranking_[self.order_] = np.arange(len(order)) + 1
        self.ranking_[rest] = positions(values[rest]) + len(order) + 1

    def explain(self, feature: int | str) -> str:
        """One sentence on a feature: when it was taken, or which feature taken it is most like.

        Parameters
        ----------
        feature : int or str
            Column number, or name where ``fit`` saw a frame.
        """
        check_is_fitted(self, "order_")
        names = getattr(self, "feature_names_in_", np.arange(len(self.scores_)))
        column = int(np.flatnonzero(names == feature)[0]) if isinstance(feature, str) else int(feature)
        sentence = f"{names[column]}: rank {self.ranking_[column]} of {len(names)}, value {self.scores_[column]:.3g}"
        partner = self.partners_[column]
        if partner < 0:
            return sentence
        return f"{sentence}, {self.redundancy_[column]:.2f} like {names[partner]} (rank {self.ranking_[partner]})"


def first_of_the_best(values: Floats, is_open: NDArray[np.bool_]) -> int:
    """The lowest open column with the largest value; what differs by rounding only is equal."""
    values = np.where(is_open, values, -np.inf)
    best = values.max()
    return int(np.argmax(values >= best - 1e-10 * max(1.0, abs(best))))
