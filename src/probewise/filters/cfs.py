"""CFS, correlation-based feature selection: features correlated with the class, but not with each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cache
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.tally import positions
from ..validation.errors import ParameterError
from ..validation.parameters import check_parameter, whole_number
from .discretized import Floats, StepwiseFilter

Correlations = Callable[[int], Floats]  # maps a feature to its correlations with all features


@dataclass(eq=False, repr=False)
class CFS(StepwiseFilter):
    """Search for the subset with the highest merit; the search determines the number of features.

    Merit(S) = k r_cf / sqrt(k + k (k - 1) r_ff), where k is the number of features, r_cf the mean symmetrical
    uncertainty between feature and class, and r_ff that between two features. Correlations are computed when the search
    needs them, without a matrix of all pairs.

    For a numeric target, nothing is discretized: |r|, Pearson's absolute correlation, takes the place of the
    symmetrical uncertainty (Hall 2000).

    Parameters
    ----------
    discretization : str or int, default="mdl"
        "mdl", as used by the author of CFS, or another method of `DFE`.
    search : {"best_first", "hill_climbing", "add_or_remove"}, default="best_first"
        "best_first" returns to other subsets and stops after ``max_stale`` expansions without improvement;
        "hill_climbing" stops at the first. "add_or_remove" is hill climbing that can also remove a feature, as in the
        2004 paper.
    start : {"empty", "full"}, default="empty"
        First subset of "add_or_remove": no feature, or all features, which takes time proportional to the square of
        their number and keeps many more features. The other searches start without features.
    max_stale : int, default=5
        Number of expansions without improvement after which the best-first search stops.
    discrete_features, n_jobs
        See `DFE`.

    Attributes
    ----------
    order_, merits_ : array of shape (n_selected,)
        The selected subset in the order in which its features were added (features of the first subset: best first),
        and the merit after each step.
    scores_ : array of shape (n_features,)
        Symmetrical uncertainty with the class.
    n_expanded_ : int
        Number of expanded subsets, which are those whose neighbors were evaluated.
    ranking_, support_, redundancy_, partners_, cut_points_, classes_
        See `MRMR`; redundancy is the symmetrical uncertainty with another feature of the subset.

    Notes
    -----
    If no feature has information about the class, the lowest column is selected, so that a pipeline does not fail.

    References
    ----------
    M. Hall, *Correlation-based feature selection for discrete and numeric class machine learning*, ICML 2000.
    Y. Wu, A. Zhang, *Feature selection for classifying high-dimensional numerical data*, CVPR 2004, eq. 3, 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import CFS
    >>> X, y = load_iris(return_X_y=True)
    >>> CFS().fit(X, y).get_support(indices=True).tolist()
    [2, 3]
    """

    n_features_to_select = None
    _takes_numbers = _chooses_size = True

    _: KW_ONLY
    discretization: str | int = "mdl"
    search: str = "best_first"
    start: str = "empty"
    max_stale: int = 5

    def fit(self, X: Any, y: Any) -> CFS:
        """Discretize the features, then search."""
        check_parameter("search", self.search, "best_first", "hill_climbing", "add_or_remove")
        check_parameter("max_stale", self.max_stale, whole_number(1))
        if self.start not in (("empty", "full") if self.search == "add_or_remove" else ("empty",)):
            raise ParameterError(f"start={self.start!r} must be 'empty', or 'full' with search='add_or_remove'")
        codes, classes, map = self._encoded(X, y, self.discretization)
        with_class = codes.against(classes, map=map).uncertainty
        # From the full set, the search needs the correlations of all pairs, which would not fit in memory.
        cached = cache if self.start == "empty" else lambda function: function
        correlations = cached(lambda feature: codes.against(feature, map=map).uncertainty)
        if self.search == "add_or_remove":
            order, merits, self.n_expanded_ = climb(with_class, correlations, self.start == "full")
        else:
            max_stale = self.max_stale if self.search == "best_first" else 1
            best, self.n_expanded_ = search(with_class, correlations, max_stale)
            order, merits = list(best.members), list(best.merits)
        order = order or [0]
        self.merits_ = np.array(merits)
        self._rank_by_order(order, with_class)
        self._reset_redundancy(codes.n_columns)
        for feature in order:
            others = np.delete(np.arange(codes.n_columns), feature)
            self._update_redundancy(others, correlations(feature)[others], feature)
        return self


@dataclass(frozen=True)
class Subset:
    """Features in the order in which they were added, with the sums that determine the merits of larger subsets."""

    members: tuple[int, ...]
    merits: tuple[float, ...]
    class_sum: float
    pair_sum: float
    with_members: Floats

    def children_merits(self, with_class: Floats) -> Floats:
        """Merit of this subset plus each feature; -inf for features that it contains."""
        k = len(self.members) + 1
        merits = np.round((self.class_sum + with_class) / np.sqrt(k + 2 * (self.pair_sum + self.with_members)), 12)
        merits[list(self.members)] = -np.inf
        return merits

    def plus(self, feature: int, merit: float, with_class: Floats, correlations: Correlations) -> Subset:
        return Subset(
            (*self.members, feature),
            (*self.merits, merit),
            self.class_sum + with_class[feature],
            self.pair_sum + self.with_members[feature],
            self.with_members + correlations(feature),
        )


class Queue:
    """Children of the expanded subsets, best first; of equally good children, the first one added comes first."""

    def __init__(self) -> None:
        self.parents: list[tuple[Subset, Floats, NDArray[np.int64]]] = []
        # -merit of the best remaining child of each parent, the number of the parent, and the rank of the child
        self.best: list[tuple[float, int, int]] = []

    def add(self, parent: Subset, merits: Floats) -> None:
        self.parents.append((parent, merits, positions(merits).argsort()))
        self._push(len(self.parents) - 1, 0)

    def pop(self) -> tuple[Subset, int, float] | None:
        """Parent of the best remaining child, the feature that the child adds, and the child's merit."""
        if not self.best or self.best[0][0] == np.inf:
            return None
        minus_merit, number, rank = heappop(self.best)
        self._push(number, rank + 1)
        parent, _, order = self.parents[number]
        return parent, int(order[rank]), -minus_merit

    def _push(self, number: int, rank: int) -> None:
        _, merits, order = self.parents[number]
        if rank < len(order):
            heappush(self.best, (-float(merits[order[rank]]), number, rank))


def search(with_class: Floats, correlations: Correlations, max_stale: int) -> tuple[Subset, int]:
    """Best-first search: the subset with the highest merit, and the number of expanded subsets."""
    subset = best = Subset((), (), 0.0, 0.0, np.zeros(len(with_class)))
    queue, expanded, stale = Queue(), {frozenset[int]()}, 0
    while True:
        merits = subset.children_merits(with_class)
        queue.add(subset, merits)
        feature = int(np.argmax(merits))
        if merits[feature] > (best.merits[-1] if best.merits else 0.0):
            best = subset.plus(feature, float(merits[feature]), with_class, correlations)
            stale = 0
        else:
            stale += 1
        child = None
        while stale < max_stale and (child := queue.pop()) is not None:
            parent, feature, merit = child
            members = frozenset((*parent.members, feature))
            if members not in expanded:
                break
        if child is None:
            return best, len(queue.parents)
        expanded.add(members)
        subset = parent.plus(feature, merit, with_class, correlations)


def climb(with_class: Floats, correlations: Correlations, full: bool) -> tuple[list[int], list[float], int]:
    """Hill climbing that adds or removes one feature per step: the subset, the merits, and the number of expansions."""
    order, merits = (positions(with_class).argsort().tolist() if full else []), list[float]()
    inside, with_members = np.full(len(with_class), full), np.zeros(len(with_class))
    for feature in order:
        with_members += _with_others(correlations, feature)
    while True:
        merit, flipped = _neighbor_merits(inside, with_class, with_members)
        feature = int(np.argmax(flipped))
        if flipped[feature] <= merit:
            return order, merits, len(merits) + 1
        if inside[feature]:
            order.remove(feature)
        else:
            order.append(feature)
        with_members += (-1 if inside[feature] else 1) * _with_others(correlations, feature)
        inside[feature] ^= True
        merits.append(float(flipped[feature]))


def _with_others(correlations: Correlations, feature: int) -> Floats:
    row = correlations(feature).copy()
    row[feature] = 0.0
    return row


def _neighbor_merits(inside: NDArray[np.bool_], with_class: Floats, with_members: Floats) -> tuple[float, Floats]:
    """Merit of a subset, and its merit after each feature is added or, if the subset contains it, removed.

    ``with_members`` are the sums of the correlations of each feature with the members of the subset.
    """
    k, class_sum, pair_sum = int(inside.sum()), with_class[inside].sum(), with_members[inside].sum() / 2
    sign = np.where(inside, -1, 1)
    sizes = k + sign
    widths = np.sqrt(np.maximum(sizes + 2 * (pair_sum + sign * with_members), 1.0))
    flipped: Floats = np.where(sizes > 0, (class_sum + sign * with_class) / widths, 0.0)
    return float(np.round(class_sum / np.sqrt(max(k + 2 * pair_sum, 1.0)), 12)), np.round(flipped, 12)
