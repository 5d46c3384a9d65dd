"""Attributes of a fitted selector that has a run of probes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .criteria import Criterion
from .engine.probes import Subsets
from .engine.run import Run
from .engine.settings import DEFAULT_FDR
from .engine.units import Units, one_hot
from .validation.parameters import require_rate
from .validation.scaling import scaled


class RunResultsMixin:
    """Results that `DAF` and `Tournament` read from ``run_``."""

    run_: Run
    criterion_: Criterion
    ranking_: NDArray[np.int64]

    @property
    def n_probes_(self) -> int:
        """Number of probes scored."""
        return self.run_.tally.n_probes

    @property
    def stop_reason_(self) -> str:
        """Why the run stopped, in words."""
        return self.run_.stop_reason or ""

    @property
    def history_(self) -> dict[str, NDArray[Any]]:
        """The measures of convergence at every look."""
        check_is_fitted(self, "run_")
        return self.run_.history

    @property
    def std_errors_(self) -> NDArray[np.float64]:
        """Standard errors of the scores, over other rows and probes where known, else over other probes."""
        return self.run_.std_errors()

    @property
    def p_values_(self) -> NDArray[np.float64]:
        """The p-value of each feature: univariate and conditional tests combined."""
        return self.run_.require_rows("p_values_", self.run_.p_values())

    def stands_out(self, fdr: float = DEFAULT_FDR) -> NDArray[np.bool_]:
        """Mask of the features that are related to the target at this false discovery rate.

        Parameters
        ----------
        fdr : float, default=0.1
            The expected share of false discoveries among the returned features that is allowed.
        """
        check_is_fitted(self, "run_")
        require_rate("fdr", fdr)
        return self.run_.require_rows("stands_out", self.run_.stands_out(fdr))

    # ---- support

    @property
    def _units(self) -> Units:
        return self.run_.settings.units

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "ranking_")
        selected = self.ranking_ <= n_selected_units(self, self._units)
        selected[self._units.kept] = True
        return selected

    def _criterion_input(self, X: Any) -> tuple[Any, Subsets | None]:
        settings, names = self.run_.settings, getattr(self, "feature_names_in_", None)
        is_category = np.isin(np.arange(X.shape[1]), () if settings.categorical is None else settings.categorical)
        X = scaled(X, settings.scale, is_category)
        return one_hot(X, is_category, names) if is_category.any() else (X, None)


def n_selected_units(selector: Any, units: Units) -> int:
    """The number of selected ranks; an error where it is less than the number of features in ``keep``."""
    n_selected: int = selector._n_selected(units.n_ranks)
    if n_selected < len(units.kept):
        raise ValueError(
            f"n_features_to_select={selector.n_features_to_select!r} is less than the {len(units.kept)} features of "
            "keep: give at least as many"
        )
    return n_selected
