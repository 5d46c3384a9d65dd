"""MRMR, JMI and CMIM: stepwise filters that maximize information about the class, given the selected features."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from ..executors import Map
from ..information import Codes, Shared
from ..validation.parameters import check_parameter
from .discretized import Floats, Integers, StepwiseFilter, first_best

ROWS_PER_CELL = 15  # for each joint level of two features and the class, so that the counts are reliable


@dataclass(eq=False, repr=False)
class InformationFilter(StepwiseFilter):
    """Base class with the greedy loop; ``_values`` of the subclass evaluates the features at each step."""

    n_features_to_select: Any = None
    _: KW_ONLY
    levels: str | int = "auto"

    def fit(self, X: Any, y: Any) -> Self:
        """Discretize the features, then select one at a time."""
        codes, classes, map = self._encoded(X, y, _automatic_levels if self.levels == "auto" else self.levels)
        self.relevance_ = codes.against(classes, map=map).information
        values, last_values = self.relevance_, self.relevance_.copy()
        self._reset_redundancy(codes.n_columns)
        accumulated, is_candidate = np.zeros(codes.n_columns), np.ones(codes.n_columns, dtype=bool)
        order: list[int] = []
        for _ in range(self._n_selected(codes.n_columns)):
            if order:
                values, accumulated = self._values(codes, classes, order[-1], len(order), accumulated, map)
                last_values[is_candidate] = values[is_candidate]
            order.append(first_best(values, is_candidate))
            is_candidate[order[-1]] = False
        self.gains_ = last_values[order]
        self._rank_by_order(order, last_values)
        return self

    @abstractmethod
    def _values(
        self, codes: Codes, classes: Integers, latest: int, n_selected: int, accumulated: Floats, map: Map
    ) -> tuple[Floats, Floats]:
        """Value of each feature, after ``latest`` was added to the selected features; and the accumulated sums."""

    def _against(self, codes: Codes, latest: int, sums: Floats, map: Map) -> Shared:
        """Joint counts of all features with the latest one; adds their mutual information to ``sums``."""
        shared = codes.against(latest, map=map)
        shared.add_to(sums, latest, self.redundancy_, self.partners_)
        return shared


@dataclass(eq=False, repr=False)
class MRMR(InformationFilter):
    """Minimum redundancy, maximum relevance: I(f; C) minus the mean of I(f; g) over the selected features g.

    For a numeric target, nothing is discretized: I is that of normal variables with correlation r, -log2(1 - r^2) / 2.

    Parameters
    ----------
    n_features_to_select, discrete_features, n_jobs
        See `DFE`. A larger number after ``fit`` adds features by their last value.
    levels : str or int, default="sigma"
        Discretization of numbers: "sigma" (three levels, split one standard deviation below and above the mean), "mean"
        (two levels), a number of intervals of equal width, "auto" (two to ten intervals of equal width, as many as
        leave 15 rows for each joint level of two features and the class), or "optimal", "greedy" or "mdl" of
        `probewise.discretize.Discretizer`. With the unsupervised methods, a column with at most three distinct values
        has one level for each, and a value that more than half of the rows share has a level of its own.
    scheme : {"difference", "quotient"}, default="difference"
        MID, I(f; C) - mean I(f; g), or MIQ, I(f; C) / mean I(f; g).

    Attributes
    ----------
    order_, gains_ : array of shape (n_selected,)
        The selected features in order, and the value of each at that step.
    relevance_ : array of shape (n_features,)
        I(f; C) in bits.
    scores_ : array of shape (n_features,)
        Value of a selected feature when it was selected, and of any other feature at the last step.
    ranking_, support_ : array of shape (n_features,)
        Ranks (1 is best: the selected features in order, then the others by ``scores_``, ties go to the lower column),
        and the mask of selected features.
    redundancy_, partners_ : array of shape (n_features,)
        The largest symmetrical uncertainty with a selected feature, and that feature (-1 if there is none);
        ``explain(feature)`` describes both.
    cut_points_, classes_
        See `DFE`.

    Notes
    -----
    Departures: with the paper's cuts alone, at one standard deviation from the mean, both values of a balanced 0/1
    column are in the middle level, so the column has no information, even if it is the class. Therefore a column with
    at most three distinct values has one level for each, a value that most rows share is a level, and a value on a cut
    is in the outer level if no other value is.

    References
    ----------
    H. Peng, F. Long, C. Ding, *Feature selection based on mutual information*, IEEE TPAMI 27, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import MRMR
    >>> X, y = load_iris(return_X_y=True)
    >>> MRMR(3).fit(X, y).order_.tolist()
    [2, 3, 1]
    """

    _: KW_ONLY
    levels: str | int = "sigma"
    scheme: str = "difference"

    _takes_numbers = True

    def fit(self, X: Any, y: Any) -> Self:
        """Discretize the features, then select one at a time."""
        check_parameter("scheme", self.scheme, "difference", "quotient")
        return super().fit(X, y)

    def _values(
        self, codes: Codes, classes: Integers, latest: int, n_selected: int, accumulated: Floats, map: Map
    ) -> tuple[Floats, Floats]:
        self._against(codes, latest, accumulated, map)
        redundancy = accumulated / n_selected
        is_difference = self.scheme == "difference"
        values = self.relevance_ - redundancy if is_difference else self.relevance_ / np.maximum(redundancy, 1e-12)
        return values, accumulated


class JMI(InformationFilter):
    """Joint mutual information: the mean over the selected features g of I(f, g; C).

    JMI can find two features that have information about the class only together. Parameters and attributes are those
    of `MRMR`, without ``scheme``. The default of ``levels`` is "auto", because joint counts of two features and the
    class are only reliable with enough rows.

    References
    ----------
    H. Yang, J. Moody, *Data visualization and feature selection*, NIPS 1999.

    """

    def _values(
        self, codes: Codes, classes: Integers, latest: int, n_selected: int, accumulated: Floats, map: Map
    ) -> tuple[Floats, Floats]:
        shared = self._against(codes, latest, np.zeros(codes.n_columns), map)
        # I(f, g; C) = H(f, g) - H(f, g, C) + H(C)
        accumulated += shared.joint_entropy - _with_class(codes, classes, latest, map).joint_entropy
        accumulated += codes.against(classes, np.empty(0, np.int64)).base_entropy
        return accumulated / n_selected, accumulated


class CMIM(InformationFilter):
    """Conditional mutual information maximization: the minimum over the selected features g of I(f; C | g).

    Parameters and attributes are those of `JMI`.

    References
    ----------
    F. Fleuret, *Fast binary feature selection with conditional mutual information*, JMLR 5, 2004.

    """

    def _values(
        self, codes: Codes, classes: Integers, latest: int, n_selected: int, accumulated: Floats, map: Map
    ) -> tuple[Floats, Floats]:
        shared = self._against(codes, latest, np.zeros(codes.n_columns), map)
        joint = _with_class(codes, classes, latest, map)
        # I(f; C | g) = H(f, g) - H(g) + H(g, C) - H(f, g, C)
        conditional = shared.joint_entropy - shared.base_entropy + joint.base_entropy - joint.joint_entropy
        accumulated = conditional if n_selected == 1 else np.minimum(accumulated, conditional)
        return np.minimum(accumulated, self.relevance_), accumulated


def _automatic_levels(n_rows: int, n_classes: int) -> int:
    return int(np.clip(np.sqrt(n_rows / (ROWS_PER_CELL * n_classes)), 2, 10))


def _with_class(codes: Codes, classes: Integers, latest: int, map: Map) -> Shared:
    """Joint counts of every feature with the pair of the latest feature and the class."""
    return codes.against(codes.column(latest) * (classes.max() + 1) + classes, map=map)
