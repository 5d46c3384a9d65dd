"""FCBF, fast correlation-based filter: features that no better feature makes superfluous."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..engine.tally import positions
from ..validation.parameters import is_finite
from .discretized import StepwiseFilter


@dataclass(eq=False, repr=False)
class FCBF(StepwiseFilter):
    """Takes features by what they tell of the class, and leaves out those that one taken before tells more of.

    In the order of SU(f, C), symmetrical uncertainty with the class: f is taken, and every later g with
    SU(g, f) >= SU(g, C) leaves: f is an approximate Markov blanket of it. How many are taken comes out.

    Parameters
    ----------
    threshold : float, default=0.0
        Features with a smaller or equal symmetrical uncertainty with the class are not looked at; from 0 to below 1.
    discretization : str or int, default="mdl"
        "mdl", as in the paper's experiments, or another one of `DFE`.
    discrete_features, n_jobs
        As in `DFE`.

    Attributes
    ----------
    order_ : array of shape (n_selected,)
        The features taken, the best first.
    scores_ : array of shape (n_features,)
        Symmetrical uncertainty with the class.
    ranking_, support_ : array of shape (n_features,)
        Ranks, 1 is best: those taken in order, then the rest by ``scores_``; and which features are taken.
    redundancy_, partners_ : array of shape (n_features,)
        The largest symmetrical uncertainty with another feature taken, and that feature (-1: none);
        ``explain(feature)`` says it in words.
    cut_points_, classes_
        As in `DFE`.

    Notes
    -----
    Ties go to the lower column. If no feature passes the threshold, the first is kept, so that a pipeline can go on.

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

    _: KW_ONLY
    threshold: float = 0.0
    discretization: str | int = "mdl"

    def fit(self, X: Any, y: Any) -> FCBF:
        """Discretise, then take features one after the other."""
        if not is_finite(self.threshold) or not 0 <= self.threshold < 1:
            raise ValueError(f"threshold={self.threshold!r}: give a number from 0 to below 1")
        codes, classes, map = self._encoded(X, y, self.discretization)
        to_class = codes.against(classes, map=map).uncertainty
        self._start(codes.n_columns)
        by_worth, is_open, order = positions(to_class).argsort(), to_class > self.threshold, list[int]()
        is_open[by_worth[0]] = True
        for feature in by_worth.tolist():
            if is_open[feature]:
                order.append(feature)
                others = np.delete(np.arange(codes.n_columns), feature)
                likeness = codes.against(feature, others, map=map).uncertainty
                self._compare(others, likeness, feature)
                is_open[others[likeness >= to_class[others]]] = False
        self._keep_order(order, to_class)
        return self

    def _n_selected(self, n_features: int) -> int:
        return len(self.order_) if hasattr(self, "order_") else n_features
