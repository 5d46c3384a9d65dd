"""What every selector shares: checked input, a ranking from scores, and how many features are kept."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..criteria import Criterion, as_criterion
from ..inputs import require_finite, require_finite_target
from ..tally import positions


class RankingSelector(SelectorMixin, BaseEstimator):
    """A selector that scores every feature; the subclass owes ``fit``, which ends in ``_keep(scores)``.

    ``n_features_to_select`` is read when features are selected, so it may be changed after ``fit``: a number,
    a share in (0, 1], or None for half. What input a method can use it says by the three names below.
    """

    n_features_to_select: Any
    scores_: NDArray[np.float64]
    ranking_: NDArray[np.int64]

    _takes_nan: Any = False
    _takes_sparse: Any = True
    _needs_target: Any = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_target
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.allow_nan = self._takes_nan
        return tags

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        """X and y as arrays, X not copied; a clear error where the method cannot use them."""
        options = {
            "accept_sparse": ("csr", "csc") if self._takes_sparse else False,
            "dtype": "numeric",
            "ensure_all_finite": False,
            "reset": reset,
        }
        if y is None and not self._needs_target:
            X = validate_data(self, X, **options)
        else:
            X, y = validate_data(self, X, y, **options)
            require_finite_target(y)
        if not self._takes_nan:
            require_finite(X, getattr(self, "feature_names_in_", None))
        self._n_selected(X.shape[1])
        return X, y

    def _keep(self, scores: NDArray[np.float64]) -> None:
        self.scores_ = scores
        self.ranking_ = positions(scores) + 1

    @property
    def support_(self) -> NDArray[np.bool_]:
        """Which features are selected."""
        return self._get_support_mask()

    def report(self, path: str | PathLike[str], X: Any = None, y: Any = None) -> Path:
        """Write a report of the fitted selector, in the format that the name says: .html, .md or .json.

        With X and y, the data of ``fit``, it also says how many features are enough, which are alike, and how they rank
        on their own.
        """
        check_is_fitted(self, "ranking_")
        report = import_module("probewise.report")  # it stands above us: loaded when asked for
        report.require_report_path(path)
        return report.save(report.summarize(self, X, y), path)

    @property
    def _repr_html_(self) -> Any:
        diagram = super()._repr_html_  # an AttributeError where diagrams are not wanted
        return lambda: diagram() + self._top_features()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._top_features()
        return bundle

    def _top_features(self) -> str:
        return import_module("probewise.report.notebook").top_features(self) if hasattr(self, "ranking_") else ""

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "ranking_")
        return self.ranking_ <= self._n_selected(len(self.ranking_))

    def _n_selected(self, n_features: int) -> int:
        asked = self.n_features_to_select
        if asked is None:
            return max(1, n_features // 2)
        if isinstance(asked, int | np.integer) and not isinstance(asked, bool) and 1 <= asked <= n_features:
            return int(asked)
        if isinstance(asked, float | np.floating) and 0 < asked <= 1:
            return max(1, int(asked * n_features))
        raise ValueError(
            f"n_features_to_select={asked!r} with {n_features} features: "
            f"give a number from 1 to {n_features}, a share in (0, 1], or None for half"
        )


class WrapperSelector(RankingSelector):
    """A selector whose input is as its ``criterion`` wants it."""

    criterion: Any

    @property
    def _takes_nan(self) -> bool:
        return self._criterion_or_default().allow_nan

    @property
    def _needs_target(self) -> bool:
        return self._criterion_or_default().needs_target

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        as_criterion(self.criterion)
        return super()._checked(X, y, reset=reset)

    def _criterion_or_default(self) -> Criterion:
        """The criterion meant, or, before parameters are checked, what stands in for one that is not known."""
        try:
            return as_criterion(self.criterion)
        except ValueError:
            return as_criterion("auto")
