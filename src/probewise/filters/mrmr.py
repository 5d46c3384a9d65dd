"""MRMR, JMI and CMIM: step by step the feature with the most information about the class, given those taken."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from ..executors import Map
from ..information import Codes, Shared
from .discretized import Floats, Integers, StepwiseFilter, first_of_the_best

ROWS_A_CELL = 15  # for each joint level of two features and the class, which need rows to be counted on


@dataclass(eq=False, repr=False)
class InformationFilter(StepwiseFilter):
    """The greedy loop: the subclass owes ``_worth``, what each feature is worth after the latest one was taken."""

    n_features_to_select: Any = None
    _: KW_ONLY
    levels: str | int = "auto"

    def fit(self, X: Any, y: Any) -> Self:
        """Discretise, then take features one after the other."""
        codes, classes, map = self._encoded(X, y, _enough_rows_a_cell if self.levels == "auto" else self.levels)
        self.relevance_ = codes.against(classes, map=map).information
        worth, last = self.relevance_, self.relevance_.copy()
        self._start(codes.n_columns)
        self._sum = np.zeros(codes.n_columns)
        is_open = np.ones(codes.n_columns, dtype=bool)
        order: list[int] = []
        for _ in range(self._n_selected(codes.n_columns)):
            if order:
                worth = self._worth(codes, classes, order[-1], len(order), map)
                last[is_open] = worth[is_open]
            order.append(first_of_the_best(worth, is_open))
            is_open[order[-1]] = False
        del self._sum
        self.gains_ = last[order]
        self._keep_order(order, last)
        return self

    @abstractmethod
    def _worth(self, codes: Codes, classes: Integers, taken: int, n_taken: int, map: Map) -> Floats:
        """What each feature is worth now; ``taken`` is the latest of ``n_taken`` features."""

    def _against(self, codes: Codes, taken: int, sums: Floats, map: Map) -> Shared:
        """The features against the latest one, their information added to ``sums``; keeps what each is most like."""
        shared = codes.against(taken, map=map)
        shared.add_to(sums, taken, self.redundancy_, self.partners_)
        return shared


@dataclass(eq=False, repr=False)
class MRMR(InformationFilter):
    """Minimum redundancy, maximum relevance: I(f; C), less the mean of what f shares with the features taken.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Features to take: a number, a share in (0, 1], or None for half. A smaller number may be set after ``fit``; of a
        larger one the rest come by their last value.
    levels : str or int, default="sigma"
        How numbers become levels: "sigma", three at the mean less and plus one standard deviation; "mean", two; a
        number of equal widths; "auto", two to ten of equal width, as many as leave 15 rows for each joint level of two
        features and the class; or "optimal", "greedy", "mdl" of `probewise.discretize.Discretizer`. A column of at most
        three values has a level for each of them, a value that more than half of the rows share one of its own.
    scheme : {"difference", "quotient"}, default="difference"
        MID, I(f; C) - mean I(f; g), or MIQ, I(f; C) / mean I(f; g).
    discrete_features, n_jobs
        As in `DFE`.

    Attributes
    ----------
    order_, gains_ : array of shape (n_taken,)
        The features taken, in order, and what each was worth at that step.
    relevance_ : array of shape (n_features,)
        I(f; C) in bits.
    scores_ : array of shape (n_features,)
        Worth when taken, or at the last step for the others.
    ranking_, support_ : array of shape (n_features,)
        Ranks, 1 is best: those taken in order, then the rest by ``scores_``, ties to the lower column; and which
        features are selected.
    redundancy_, partners_ : array of shape (n_features,)
        The largest symmetrical uncertainty with a feature taken, and that feature (-1: none); ``explain(feature)`` says
        it in words.
    cut_points_, classes_
        As in `DFE`.

    Notes
    -----
    Departures: with the paper's borders alone, mean and deviation, both values of a balanced 0/1 column are within, and
    such a column tells nothing, even if it is the class. So a column of at most three values keeps them as levels, a
    value that most rows share is one, and a value on a border is beyond it where no other value is.

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

    def fit(self, X: Any, y: Any) -> Self:
        """Discretise, then take features one after the other."""
        if self.scheme not in ("difference", "quotient"):
            raise ValueError(f"scheme={self.scheme!r}: choose 'difference' or 'quotient'")
        return super().fit(X, y)

    def _worth(self, codes: Codes, classes: Integers, taken: int, n_taken: int, map: Map) -> Floats:
        self._against(codes, taken, self._sum, map)
        redundancy = self._sum / n_taken
        if self.scheme == "difference":
            return self.relevance_ - redundancy
        return self.relevance_ / np.maximum(redundancy, 1e-12)


class JMI(InformationFilter):
    """Joint mutual information: the mean, over the features taken, of what f and each together say of the class.

    J(f) = mean over g of I(f, g; C); sees two features that have information only together.
    Parameters and attributes are those of `MRMR`, but for ``scheme``, and ``levels`` is "auto": joint levels of two
    features and the class need rows to be counted on.

    References
    ----------
    H. Yang, J. Moody, *Data visualization and feature selection*, NIPS 1999.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import JMI
    >>> X, y = load_iris(return_X_y=True)
    >>> JMI(3).fit(X, y).order_.tolist()
    [2, 3, 1]
    """

    def _worth(self, codes: Codes, classes: Integers, taken: int, n_taken: int, map: Map) -> Floats:
        shared = self._against(codes, taken, np.zeros(codes.n_columns), map)
        self._sum += shared.joint_entropy - _with_class(codes, classes, taken, map).joint_entropy
        self._sum += codes.against(classes, np.empty(0, np.int64)).base_entropy
        return self._sum / n_taken


class CMIM(InformationFilter):
    """Conditional mutual information: the least that f adds about the class when one of the features taken is known.

    J(f) = min over g of I(f; C | g). Parameters and attributes are those of `JMI`.

    References
    ----------
    F. Fleuret, *Fast binary feature selection with conditional mutual information*, JMLR 5, 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import CMIM
    >>> X, y = load_iris(return_X_y=True)
    >>> CMIM(3).fit(X, y).order_.tolist()
    [2, 3, 1]
    """

    def _worth(self, codes: Codes, classes: Integers, taken: int, n_taken: int, map: Map) -> Floats:
        shared = self._against(codes, taken, np.zeros(codes.n_columns), map)
        together = _with_class(codes, classes, taken, map)
        more = shared.joint_entropy - shared.base_entropy + together.base_entropy - together.joint_entropy
        self._sum = more if n_taken == 1 else np.minimum(self._sum, more)
        return np.minimum(self._sum, self.relevance_)


def _enough_rows_a_cell(n_rows: int, n_classes: int) -> int:
    return int(np.clip(np.sqrt(n_rows / (ROWS_A_CELL * n_classes)), 2, 10))


def _with_class(codes: Codes, classes: Integers, taken: int, map: Map) -> Shared:
    """Every feature against the feature taken and the class as one."""
    return codes.against(codes.column(taken) * (classes.max() + 1) + classes, map=map)
