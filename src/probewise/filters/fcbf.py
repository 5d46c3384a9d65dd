"""FCBF, fast correlation-based filter: features that no better feature makes redundant."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..engine.tally import positions
from ..validation.errors import ParameterError
from ..validation.parameters import is_finite
from .discretized import StepwiseFilter


@dataclass(eq=False, repr=False)
class FCBF(StepwiseFilter):
    """Select features by their information about the class, without those that a better feature makes redundant.

    Features are visited in descending order of SU(f, C), the symmetrical uncertainty with the class. When f is
    selected, every later g with SU(g, f) >= SU(g, C) is dropped, because f is an approximate Markov blanket of g. The
    method determines the number of features itself.

    For a numeric target, nothing is discretized: |r|, Pearson's absolute correlation, takes the place of SU.

    Parameters
    ----------
    threshold : float, default=0.0
        Features whose symmetrical uncertainty with the class is not above this number (from 0 to below 1) are dropped.
    discretization : str or int, default="mdl"
        "mdl", as in the paper's experiments, or another method of `DFE`.
    discrete_features, n_jobs
        See `DFE`.

    Attributes
    ----------
    order_ : array of shape (n_selected,)
        The selected features, best first.
    scores_ : array of shape (n_features,)
        Symmetrical uncertainty with the class.
    ranking_, support_, redundancy_, partners_, cut_points_, classes_
        See `MRMR`.

    Notes
    -----
    If no feature passes the threshold, the best one is selected, so that a pipeline does not fail.

    References
    ----------
    L. Yu, H. Liu, *Feature selection for high-dimensional data: a fast correlation-based filter solution*, ICML 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import FCBF
    >>> X, y = load_iris(return_X_y=True)
    >>> FCBF().fit(X, y).get_support(indices=True).tolist()
    [2, 3]
    """

    n_features_to_select = None
    _takes_numbers = _chooses_size = True

    _: KW_ONLY
    threshold: float = 0.0
    discretization: str | int = "mdl"

    def fit(self, X: Any, y: Any) -> FCBF:
        """Discretize the features, then select one at a time."""
        if not is_finite(self.threshold) or not 0 <= self.threshold < 1:
            raise ParameterError(f"threshold={self.threshold!r} must be a number from 0 to below 1")
        codes, classes, map = self._encoded(X, y, self.discretization)
        with_class = codes.against(classes, map=map).uncertainty
        self._reset_redundancy(codes.n_columns)
        best_first, is_candidate, order = positions(with_class).argsort(), with_class > self.threshold, list[int]()
        is_candidate[best_first[0]] = True
        for feature in best_first.tolist():
            if is_candidate[feature]:
                order.append(feature)
                others = np.delete(np.arange(codes.n_columns), feature)
                similarity = codes.against(feature, others, map=map).uncertainty
                self._update_redundancy(others, similarity, feature)
                is_candidate[others[similarity >= with_class[others]]] = False
        self._rank_by_order(order, with_class)
        return self
