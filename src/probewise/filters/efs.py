"""EFS, efficient feature selection: balanced information gain, less the redundancy with the features taken."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..executors import Map
from ..information import Codes, balanced_gain
from ..validation.parameters import is_whole
from .discretized import StepwiseFilter, first_of_the_best


@dataclass(eq=False, repr=False)
class EFS(StepwiseFilter):
    """Takes the most important feature, step by step: informative, and unlike those taken before.

    Imp(f) = B_g(f) (1 - max over the features taken of Corrn(f, g)), where Corr(f, g) = I(f; g) / log2 of the joint
    cells that occur and Corrn is Corr over its largest value. Features whose importance falls below ``threshold``
    are discarded for good, which loses nothing: importance never rises.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Features to take: a number, a share in (0, 1], or None for half. A smaller number may be set after ``fit``; of a
        larger one the rest come by importance at the end.
    discretization, discrete_features, n_jobs
        As in `DFE`.
    threshold : float or tuple, default=1e-6
        Features less important are discarded; ``("top", 900)`` is the 900th largest B_g, the paper's way on genes.
        Higher is faster and ranks fewer features in company.
    normalize : {"all", "undetermined", None}, default="all"
        What Corr is divided by: "all", the largest of any two features (eq. 10; exact, most pairs are ruled out by a
        bound); "undetermined", of any two that pass the threshold at first; None, nothing.

    Attributes
    ----------
    gains_ : array of shape (n_features,)
        B_g.
    order_, importances_ : array of shape (n_taken,)
        The features taken, in order, and their importance at that step, never rising.
    scores_ : array of shape (n_features,)
        The last importance of each feature.
    ranking_, support_ : array of shape (n_features,)
        Ranks, 1 is best, features taken first, ties to the lower column; and which features are selected.
    redundancy_, partners_ : array of shape (n_features,)
        The largest Corrn with a feature taken, and that feature (-1: none); ``explain(feature)`` says it in words.
    discarded_ : array of bool of shape (n_features,)
        Discarded by the threshold.
    threshold_, largest_correlation_ : float
        The threshold as a number, and what Corr was divided by.
    cut_points_, classes_
        As in `DFE`.

    References
    ----------
    Y. Wu, A. Zhang, *Feature selection for classifying high-dimensional numerical data*, CVPR 2004, Algorithm 1,
    eq. 5-12.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import EFS
    >>> X, y = load_iris(return_X_y=True)
    >>> efs = EFS(2).fit(X, y)
    >>> efs.order_.tolist(), efs.explain(3)
    ([2, 0], '3: rank 4 of 4, value 0, 1.00 like 2 (rank 1)')
    """

    n_features_to_select: Any = None
    _: KW_ONLY
    discretization: str | int = "optimal"
    threshold: Any = 1e-6
    normalize: str | None = "all"

    def fit(self, X: Any, y: Any) -> EFS:
        """Discretise, score, and take features one after the other."""
        if self.normalize not in ("all", "undetermined", None):
            raise ValueError(f"normalize={self.normalize!r}: choose 'all', 'undetermined' or None")
        rank = _rank_of(self.threshold)
        codes, classes, map = self._encoded(X, y, self.discretization)
        self.gains_ = balanced_gain(codes, classes)
        kth = None if rank is None else np.sort(self.gains_)[::-1][min(rank, len(self.gains_)) - 1]
        self.threshold_ = float(self.threshold if kth is None else kth)
        is_open = self.gains_ >= self.threshold_
        self.largest_correlation_ = self._largest_correlation(codes, is_open, map)
        self._take(codes, is_open, map)
        return self

    def _largest_correlation(self, codes: Codes, is_open: NDArray[np.bool_], map: Map) -> float:
        if self.normalize is None:
            return 1.0
        columns = np.arange(codes.n_columns) if self.normalize == "all" else np.flatnonzero(is_open)
        return codes.largest_extended_gain(columns, map=map) or 1.0

    def _take(self, codes: Codes, is_open: NDArray[np.bool_], map: Map) -> None:
        """Algorithm 1, steps 9-13."""
        importance = self.gains_.copy()
        self._start(codes.n_columns)
        self.discarded_ = ~is_open
        order: list[int] = []
        while len(order) < self._n_selected(codes.n_columns) and is_open.any():
            taken = first_of_the_best(importance, is_open)
            order.append(taken)
            is_open[taken] = False
            rest = np.flatnonzero(is_open)
            likeness = np.minimum(1.0, codes.against(taken, rest, map=map).extended_gain / self.largest_correlation_)
            self._compare(rest, likeness, taken)
            importance[rest] = np.round(self.gains_[rest] * (1 - self.redundancy_[rest]), 12)
            fallen = rest[importance[rest] < self.threshold_]
            self.discarded_[fallen] = True
            is_open[fallen] = False
        self.importances_ = importance[order]
        self._keep_order(order, importance)


def _rank_of(threshold: Any) -> int | None:
    """k of ("top", k), None for a plain number."""
    if isinstance(threshold, tuple | list) and len(threshold) == 2 and threshold[0] == "top":
        if is_whole(threshold[1], 1):
            return int(threshold[1])
    elif isinstance(threshold, int | float | np.number) and not isinstance(threshold, bool) and np.isfinite(threshold):
        return None
    raise ValueError(f"threshold={threshold!r}: give a number, or ('top', k) for the k-th largest gain, k at least 1")
