"""DFE, the dynamic feature extraction of the EFS paper: features ranked by balanced information gain."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from ..information import balanced_gain
from .discretized import DiscretizedFilter


@dataclass(eq=False, repr=False)
class DFE(DiscretizedFilter):
    """Rank features by the balanced information gain of their best discretization.

    B_g(f) = I(C; f) / log2 kappa, where kappa is the number of intervals. `EFS` builds on this filter and also
    considers that two features may carry the same information.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to select, a share in (0, 1], or None for half. May be changed after ``fit``.
    discretization : str or int, default="optimal"
        "optimal" (the largest possible B_g), "greedy" (top-down, faster), "mdl", "mean", "sigma" or a number of
        intervals of equal width, as in `probewise.discretize.Discretizer`.
    discrete_features : "auto", bool or array-like, default="auto"
        Features in which every value is a level: "auto" (columns of a frame with a category or boolean type, or all
        columns of a boolean array), True, False, a mask, column numbers or column names.
    n_jobs : int or None, default=None
        Number of threads; the result does not depend on it.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        B_g.
    ranking_, support_ : array of shape (n_features,)
        Ranks (1 is best, ties go to the lower column), and the mask of selected features.
    cut_points_ : sequence of arrays
        Cut points of each feature; empty if no cut is worth its cost.
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
        """Discretize and score every feature."""
        codes, classes, _ = self._encoded(X, y, self.discretization)
        self._rank_by(balanced_gain(codes, classes))
        return self
