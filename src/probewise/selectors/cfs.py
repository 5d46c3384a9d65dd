"""CFS, correlation-based feature selection: the subset that goes with the class but not with itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..executors import Map
from ..information import Codes
from ..probing.tally import positions
from .coded import OrderedSelector

Floats = NDArray[np.float64]


class CFS(OrderedSelector):
    """Searches for the subset with the highest merit; how many features it holds comes out of the search.

    Merit(S) = k r_cf / sqrt(k + k (k - 1) r_ff), the means of the symmetrical uncertainty between feature and class
    and between two features. Correlations are computed when the search asks for them: no matrix of all pairs.

    Parameters
    ----------
    discretization : "mdl" (as its author), "optimal", "greedy", "mean", "sigma" or a number of equal widths; see
        `probewise.discretize.Discretizer`.
    search : "best_first", which goes back to other subsets and stops after ``max_stale`` expansions that gain
        nothing, or "hill_climbing", which stops at the first.
    max_stale : patience of the best-first search.
    discrete_features : columns used as they are: "auto" for category and boolean columns, True, False, a mask,
        column numbers or names.
    n_jobs : threads; the result is the same for any number.

    Attributes
    ----------
    order_ : the subset found, in the order its features were added. merits_ : the merit after each.
    scores_ : array (n_features,), symmetrical uncertainty with the class.
    ranking_ : array (n_features,), 1 is best: the subset in its order, then the rest by ``scores_``.
    support_ : array (n_features,), which features are in the subset.
    redundancy_, partners_ : arrays (n_features,), the largest symmetrical uncertainty with another feature of the
        subset, and that feature (-1: none); ``explain(feature)`` puts them into a sentence.
    n_expanded_ : subsets expanded by the search.
    cut_points_ : the cut points of each feature. classes_ : the labels of y.

    Notes
    -----
    Ties go to the lower column. Forward from the empty set. If no feature tells anything about the class, the one in
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

    def __init__(
        self,
        *,
        discretization: str | int = "mdl",
        search: str = "best_first",
        max_stale: int = 5,
        discrete_features: Any = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.discretization = discretization
        self.search = search
        self.max_stale = max_stale
        self.discrete_features = discrete_features
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> CFS:
        """Discretise, then search."""
        if self.search not in ("best_first", "hill_climbing"):
            raise ValueError(f"search={self.search!r}: choose 'best_first' or 'hill_climbing'")
        if not isinstance(self.max_stale, int | np.integer) or self.max_stale < 1:
            raise ValueError(f"max_stale={self.max_stale!r}: give a whole number of at least 1")
        codes, classes, map = self._encoded(X, y, self.discretization)
        to_class = codes.against(classes, map=map).uncertainty
        correlations = Correlations(codes, map)
        max_stale = self.max_stale if self.search == "best_first" else 1
        best, self.n_expanded_ = search(to_class, correlations, max_stale)
        order = list(best.members) or [0]
        self.merits_ = best.merits(to_class, correlations)
        self._keep_order(order, to_class)
        self.redundancy_, self.partners_ = _closest(order, correlations, codes.n_columns)
        return self

    def _n_selected(self, n_features: int) -> int:
        return len(self.order_) if hasattr(self, "order_") else n_features


class Correlations:
    """Symmetrical uncertainty of a feature with all others, computed when first asked for."""

    def __init__(self, codes: Codes, map: Map) -> None:
        self.codes = codes
        self.map = map
        self.known: dict[int, Floats] = {}

    def of(self, feature: int) -> Floats:
        if feature not in self.known:
            self.known[feature] = self.codes.against(feature, map=self.map).uncertainty
        return self.known[feature]


@dataclass(frozen=True)
class Node:
    """A subset in the order it was built, with the sums its merit and its children's are made of."""

    members: tuple[int, ...]
    class_sum: float
    pair_sum: float
    merit: float
    to_members: Floats

    @classmethod
    def empty(cls, n_features: int) -> Node:
        return cls((), 0.0, 0.0, 0.0, np.zeros(n_features))

    def children_merits(self, to_class: Floats) -> Floats:
        """The merit of this subset plus each feature; -inf for its own."""
        k = len(self.members) + 1
        merits = np.round((self.class_sum + to_class) / np.sqrt(k + 2 * (self.pair_sum + self.to_members)), 12)
        merits[list(self.members)] = -np.inf
        return merits

    def plus(self, feature: int, merit: float, to_class: Floats, correlations: Correlations) -> Node:
        return Node(
            (*self.members, feature),
            self.class_sum + to_class[feature],
            self.pair_sum + self.to_members[feature],
            merit,
            self.to_members + correlations.of(feature),
        )

    def merits(self, to_class: Floats, correlations: Correlations) -> Floats:
        """Along the way to this subset."""
        node, merits = Node.empty(len(to_class)), []
        for feature in self.members:
            merits.append(node.children_merits(to_class)[feature])
            node = node.plus(feature, merits[-1], to_class, correlations)
        return np.array(merits)


class Fringe:
    """Children of the subsets expanded so far, the best of them first; of equal ones the one met first."""

    def __init__(self) -> None:
        self.parents: list[tuple[Node, Floats, NDArray[np.int64]]] = []
        self.taken: list[int] = []

    def add(self, parent: Node, merits: Floats) -> None:
        self.parents.append((parent, merits, positions(merits).argsort()))
        self.taken.append(0)

    def pop(self) -> tuple[Node, int, float] | None:
        """A parent, the feature that makes its best child not yet taken, and the child's merit."""
        heads = [self._head(number) for number in range(len(self.parents))]
        if not heads or max(heads) == -np.inf:
            return None
        number = int(np.argmax(heads))
        parent, _, order = self.parents[number]
        feature = int(order[self.taken[number]])
        self.taken[number] += 1
        return parent, feature, heads[number]

    def _head(self, number: int) -> float:
        _, merits, order = self.parents[number]
        return float(merits[order[self.taken[number]]]) if self.taken[number] < len(order) else -np.inf


def search(to_class: Floats, correlations: Correlations, max_stale: int) -> tuple[Node, int]:
    """The subset with the highest merit met, and how many were expanded."""
    node = best = Node.empty(len(to_class))
    fringe, expanded, stale = Fringe(), {frozenset[int]()}, 0
    while True:
        merits = node.children_merits(to_class)
        fringe.add(node, merits)
        feature = int(np.argmax(merits))
        if merits[feature] > best.merit:
            best = node.plus(feature, float(merits[feature]), to_class, correlations)
            stale = 0
        else:
            stale += 1
        child = None
        while stale < max_stale and (child := fringe.pop()) is not None:
            parent, feature, merit = child
            members = frozenset((*parent.members, feature))
            if members not in expanded:
                break
        if child is None:
            return best, len(fringe.parents)
        expanded.add(members)
        node = parent.plus(feature, merit, to_class, correlations)


def _closest(order: list[int], correlations: Correlations, n_features: int) -> tuple[Floats, NDArray[np.int64]]:
    redundancy, partners = np.zeros(n_features), np.full(n_features, -1, dtype=np.int64)
    for feature in order:
        likeness = correlations.of(feature).copy()
        likeness[feature] = -1.0
        partners[likeness > redundancy] = feature
        redundancy = np.maximum(redundancy, likeness)
    return redundancy, partners
