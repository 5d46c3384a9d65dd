"""CFS, correlation-based feature selection: a subset correlated with the class, its features not with each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cache
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.tally import positions
from ..validation.parameters import is_whole
from .discretized import Floats, StepwiseFilter

Correlations = Callable[[int], Floats]  # of a feature with all


@dataclass(eq=False, repr=False)
class CFS(StepwiseFilter):
    """Searches for the subset with the highest merit; how many features it holds comes out of the search.

    Merit(S) = k r_cf / sqrt(k + k (k - 1) r_ff), the means of the symmetrical uncertainty between feature and class
    and between two features. Correlations are computed when the search asks for them: no matrix of all pairs.

    Parameters
    ----------
    discretization : str or int, default="mdl"
        "mdl", as its author, or another one of `DFE`.
    search : {"best_first", "hill_climbing", "add_or_remove"}, default="best_first"
        Best first goes back to other subsets and stops after ``max_stale`` expansions that gain nothing; hill climbing
        stops at the first. "add_or_remove" is hill climbing that may also take a feature out again (the 2004 paper's).
    start : {"empty", "full"}, default="empty"
        Where "add_or_remove" begins: without a feature, or with all of them, which takes features × features and keeps
        many more. The other searches begin without a feature.
    max_stale : int, default=5
        Patience of the best-first search.
    discrete_features, n_jobs
        As in `DFE`.

    Attributes
    ----------
    order_, merits_ : array of shape (n_selected,)
        The subset found, in the order its features were added (of those it began with: best first), and the merit after
        each step.
    scores_ : array of shape (n_features,)
        Symmetrical uncertainty with the class.
    ranking_, support_ : array of shape (n_features,)
        Ranks, 1 is best: the subset in its order, then the rest by ``scores_``; and which features are in the subset.
    redundancy_, partners_ : array of shape (n_features,)
        The largest symmetrical uncertainty with another feature of the subset, and that feature (-1: none);
        ``explain(feature)`` says it in words.
    n_expanded_ : int
        Subsets expanded by the search: those whose neighbours' merits were looked at.
    cut_points_, classes_
        As in `DFE`.

    Notes
    -----
    Ties go to the lower column. If no feature has information about the class, the one in
    the lowest column is kept, so that a pipeline can go on.

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

    _: KW_ONLY
    discretization: str | int = "mdl"
    search: str = "best_first"
    start: str = "empty"
    max_stale: int = 5

    def fit(self, X: Any, y: Any) -> CFS:
        """Discretise, then search."""
        if self.search not in ("best_first", "hill_climbing", "add_or_remove"):
            raise ValueError(f"search={self.search!r}: choose 'best_first', 'hill_climbing' or 'add_or_remove'")
        if self.start not in (("empty", "full") if self.search == "add_or_remove" else ("empty",)):
            raise ValueError(f"start={self.start!r}: choose 'empty', or 'full' with search='add_or_remove'")
        if not is_whole(self.max_stale, 1):
            raise ValueError(f"max_stale={self.max_stale!r}: give a whole number of at least 1")
        codes, classes, map = self._encoded(X, y, self.discretization)
        to_class = codes.against(classes, map=map).uncertainty
        known = cache if self.start == "empty" else lambda function: function  # all pairs would not fit in memory
        correlations = known(lambda feature: codes.against(feature, map=map).uncertainty)
        if self.search == "add_or_remove":
            order, merits, self.n_expanded_ = climb(to_class, correlations, self.start == "full")
        else:
            best, self.n_expanded_ = search(
                to_class, correlations, self.max_stale if self.search == "best_first" else 1
            )
            order, merits = list(best.members), list(best.merits)
        order = order or [0]
        self.merits_ = np.array(merits)
        self._keep_order(order, to_class)
        self._start(codes.n_columns)
        for feature in order:
            others = np.delete(np.arange(codes.n_columns), feature)
            self._compare(others, correlations(feature)[others], feature)
        return self

    def _n_selected(self, n_features: int) -> int:
        return len(self.order_) if hasattr(self, "order_") else n_features


@dataclass(frozen=True)
class Subset:
    """Features in the order they were added, with the sums that its merit and its children's are made of."""

    members: tuple[int, ...]
    merits: tuple[float, ...]
    class_sum: float
    pair_sum: float
    to_members: Floats

    def children_merits(self, to_class: Floats) -> Floats:
        """The merit of this subset plus each feature; -inf for its own."""
        k = len(self.members) + 1
        merits = np.round((self.class_sum + to_class) / np.sqrt(k + 2 * (self.pair_sum + self.to_members)), 12)
        merits[list(self.members)] = -np.inf
        return merits

    def plus(self, feature: int, merit: float, to_class: Floats, correlations: Correlations) -> Subset:
        return Subset(
            (*self.members, feature),
            (*self.merits, merit),
            self.class_sum + to_class[feature],
            self.pair_sum + self.to_members[feature],
            self.to_members + correlations(feature),
        )


class Queue:
    """Children of the subsets expanded so far, the best of them first; of equal ones the one met first."""

    def __init__(self) -> None:
        self.parents: list[tuple[Subset, Floats, NDArray[np.int64]]] = []
        self.best: list[tuple[float, int, int]] = []  # -merit of a parent's best child left, the parent, and its place

    def add(self, parent: Subset, merits: Floats) -> None:
        self.parents.append((parent, merits, positions(merits).argsort()))
        self._push(len(self.parents) - 1, 0)

    def pop(self) -> tuple[Subset, int, float] | None:
        """A parent, the feature that makes its best child not yet taken, and the child's merit."""
        if not self.best or self.best[0][0] == np.inf:
            return None
        minus_merit, number, place = heappop(self.best)
        self._push(number, place + 1)
        parent, _, order = self.parents[number]
        return parent, int(order[place]), -minus_merit

    def _push(self, number: int, place: int) -> None:
        _, merits, order = self.parents[number]
        if place < len(order):
            heappush(self.best, (-float(merits[order[place]]), number, place))


def search(to_class: Floats, correlations: Correlations, max_stale: int) -> tuple[Subset, int]:
    """The subset with the highest merit met, and how many were expanded."""
    subset = best = Subset((), (), 0.0, 0.0, np.zeros(len(to_class)))
    queue, expanded, stale = Queue(), {frozenset[int]()}, 0
    while True:
        merits = subset.children_merits(to_class)
        queue.add(subset, merits)
        feature = int(np.argmax(merits))
        if merits[feature] > (best.merits[-1] if best.merits else 0.0):
            best = subset.plus(feature, float(merits[feature]), to_class, correlations)
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
        subset = parent.plus(feature, merit, to_class, correlations)


def climb(to_class: Floats, correlations: Correlations, full: bool) -> tuple[list[int], list[float], int]:
    """Adds or removes the feature that raises the merit most: the subset, the merits, and how many were expanded."""
    order, merits = (positions(to_class).argsort().tolist() if full else []), list[float]()
    inside, to_others = np.full(len(to_class), full), np.zeros(len(to_class))
    for feature in order:
        to_others += _with_others(correlations, feature)
    while True:
        now, flipped = _neighbours(inside, to_class, to_others)
        feature = int(np.argmax(flipped))
        if flipped[feature] <= now:
            return order, merits, len(merits) + 1
        if inside[feature]:
            order.remove(feature)
        else:
            order.append(feature)
        to_others += (-1 if inside[feature] else 1) * _with_others(correlations, feature)
        inside[feature] ^= True
        merits.append(float(flipped[feature]))


def _with_others(correlations: Correlations, feature: int) -> Floats:
    found = correlations(feature).copy()
    found[feature] = 0.0
    return found


def _neighbours(inside: NDArray[np.bool_], to_class: Floats, to_others: Floats) -> tuple[float, Floats]:
    """The merit of a subset, and with each feature added or, if it is in, removed; ``to_others`` sums over members."""
    k, class_sum, pair_sum = int(inside.sum()), to_class[inside].sum(), to_others[inside].sum() / 2
    sign = np.where(inside, -1, 1)
    sizes = k + sign
    widths = np.sqrt(np.maximum(sizes + 2 * (pair_sum + sign * to_others), 1.0))
    flipped: Floats = np.where(sizes > 0, (class_sum + sign * to_class) / widths, 0.0)
    return float(np.round(class_sum / np.sqrt(max(k + 2 * pair_sum, 1.0)), 12)), np.round(flipped, 12)
