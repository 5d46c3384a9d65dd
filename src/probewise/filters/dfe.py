"""DFE, the paper's dynamic feature extraction: features ranked by balanced information gain alone."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from ..information import balanced_gain
from .discretized import DiscretisedFilter


@dataclass(eq=False, repr=False)
class DFE(DiscretisedFilter):
    """Ranks features by the balanced information gain of their best discretisation.

    B_g(f) = I(C; f) / log2 kappa, kappa the number of intervals. The filter EFS builds on; it does not see that two
    features say the same (see `EFS`).

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Features to keep: a number, a share in (0, 1], or None for half. May be changed after ``fit``.
    discretization : str or int, default="optimal"
        "optimal" (the largest B_g there is), "greedy" (top-down, faster), "mdl", "mean", "sigma" or a number of equal
        widths, as in `probewise.discretize.Discretizer`.
    discrete_features : "auto", bool or array-like, default="auto"
        Columns used as they are: "auto" for category and boolean columns, True, False, a mask, numbers or names.
    n_jobs : int or None, default=None
        Threads; the result is the same for any number.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        B_g.
    ranking_, support_ : array of shape (n_features,)
        Ranks, 1 is best, ties to the lower column; and which features are selected.
    cut_points_ : sequence of arrays
        The cut points of each feature; none where no cut pays.
    classes_ : array
        The labels of y.

    References
    ----------
    Y. Wu, A. Zhang, *Feature selection for classifying high-dimensional numerical data*, CVPR 2004, eq. 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import DFE
    >>> X, y = load_iris(return_X_y=True)
    >>> DFE(2).fit(X, y).scores_.round(6).tolist()
    [0.557233, 0.283126, 0.918296, 0.918296]
    """

    n_features_to_select: Any = None
    _: KW_ONLY
    discretization: str | int = "optimal"

    def fit(self, X: Any, y: Any) -> DFE:
        """Discretise every feature and score it."""
        codes, classes, _ = self._encoded(X, y, self.discretization)
        self._rank_by(balanced_gain(codes, classes))
        return self
