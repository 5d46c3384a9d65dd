"""EFS, efficient feature selection: balanced information gain, reduced by the redundancy with selected features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..executors import Map
from ..information import Codes, balanced_gain
from ..validation.errors import ParameterError
from ..validation.parameters import check_parameter, is_whole
from .discretized import StepwiseFilter, first_best


@dataclass(eq=False, repr=False)
class EFS(StepwiseFilter):
    """Select the most important feature at each step: informative, and different from the selected features.

    Imp(f) = B_g(f) (1 - max over the selected features g of Corrn(f, g)), where Corr(f, g) = I(f; g) / log2 of the
    number of joint cells that occur, and Corrn is Corr divided by its largest value. Features whose importance falls
    below ``threshold`` are discarded for good, which is safe because importance never rises.

    Parameters
    ----------
    n_features_to_select, discretization, discrete_features, n_jobs
        See `DFE`. A larger number after ``fit`` adds features by their final importance.
    threshold : float or tuple, default=1e-6
        Features with a lower importance are discarded; ``("top", 900)`` is the 900th largest B_g, as in the paper's
        experiments on genes. A higher threshold is faster, and fewer features are ranked by their redundancy.
    normalize : {"all", "undetermined", None}, default="all"
        Divisor of Corr: "all" is the largest Corr of any two features (eq. 10; exact, but a bound rules out most
        pairs), "undetermined" that of any two features that pass the threshold at first, None is 1.

    Attributes
    ----------
    gains_ : array of shape (n_features,)
        B_g.
    order_, importances_ : array of shape (n_selected,)
        The selected features in order, and their importance at that step, which never rises.
    scores_ : array of shape (n_features,)
        The last importance of each feature.
    discarded_ : array of bool of shape (n_features,)
        Mask of the features discarded by the threshold.
    threshold_, largest_correlation_ : float
        The threshold as a number, and the divisor of Corr.
    ranking_, support_, redundancy_, partners_, cut_points_, classes_
        See `MRMR`; redundancy is Corrn.

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
        """Discretize and score the features, then select one at a time."""
        check_parameter("normalize", self.normalize, "all", "undetermined", None)
        rank = _rank_of(self.threshold)
        codes, classes, map = self._encoded(X, y, self.discretization)
        self.gains_ = balanced_gain(codes, classes)
        kth = None if rank is None else np.sort(self.gains_)[::-1][min(rank, len(self.gains_)) - 1]
        self.threshold_ = float(self.threshold if kth is None else kth)
        is_candidate = self.gains_ >= self.threshold_
        self.largest_correlation_ = 1.0
        if self.normalize is not None:
            columns = np.arange(codes.n_columns) if self.normalize == "all" else np.flatnonzero(is_candidate)
            self.largest_correlation_ = codes.largest_extended_gain(columns, map=map) or 1.0
        self._select(codes, is_candidate, map)
        return self

    def _select(self, codes: Codes, is_candidate: NDArray[np.bool_], map: Map) -> None:
        """Select one feature at a time: steps 9 to 13 of algorithm 1."""
        importance = self.gains_.copy()
        self._reset_redundancy(codes.n_columns)
        self.discarded_ = ~is_candidate
        order: list[int] = []
        while len(order) < self._n_selected(codes.n_columns) and is_candidate.any():
            best = first_best(importance, is_candidate)
            order.append(best)
            is_candidate[best] = False
            rest = np.flatnonzero(is_candidate)
            similarity = np.minimum(1.0, codes.against(best, rest, map=map).extended_gain / self.largest_correlation_)
            self._update_redundancy(rest, similarity, best)
            importance[rest] = np.round(self.gains_[rest] * (1 - self.redundancy_[rest]), 12)
            discarded = rest[importance[rest] < self.threshold_]
            self.discarded_[discarded] = True
            is_candidate[discarded] = False
        self.importances_ = importance[order]
        self._rank_by_order(order, importance)


def _rank_of(threshold: Any) -> int | None:
    """k if the threshold is ("top", k), None if it is a number."""
    if isinstance(threshold, tuple | list) and len(threshold) == 2 and threshold[0] == "top":
        if is_whole(threshold[1], 1):
            return int(threshold[1])
    elif isinstance(threshold, int | float | np.number) and not isinstance(threshold, bool) and np.isfinite(threshold):
        return None
    raise ParameterError(
        f"threshold={threshold!r} must be a number, or ('top', k) for the k-th largest gain with k of at least 1"
    )
