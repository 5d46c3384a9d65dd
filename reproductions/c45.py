"""A decision tree like C4.5 (Quinlan 1993): gain ratio, binary splits of numbers, pessimistic pruning."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

CONFIDENCE, MIN_LEAF = 0.25, 2
LEAF = -1


class C45(ClassifierMixin, BaseEstimator):
    """C4.5 for numeric features, with its default options (minimum of 2 rows in a branch, confidence 25%).

    At each node the threshold of every feature is the one with the largest information gain, reduced by log2(number of
    thresholds) / rows (release 8). Among features whose gain is at least the average gain, the largest gain ratio
    wins. After growing, a subtree becomes a leaf if that does not raise the pessimistic number of errors: the upper
    confidence limit of the binomial error rate times the rows. C4.5 may also replace a subtree by its largest branch
    ("subtree raising"); this tree does not.

    Parameters
    ----------
    confidence : float, default=0.25
        Level of the pessimistic error estimate; smaller values prune more. 1 does not prune.
    min_leaf : int, default=2
        Smallest number of rows in each branch.

    References
    ----------
    J. R. Quinlan, *C4.5: programs for machine learning*, 1993; *Improved use of continuous attributes in C4.5*, JAIR 4,
    1996.
    """

    def __init__(self, confidence: float = CONFIDENCE, *, min_leaf: int = MIN_LEAF) -> None:
        self.confidence = confidence
        self.min_leaf = min_leaf

    def fit(self, X: Any, y: Any) -> C45:
        X = np.ascontiguousarray(np.asarray(X, dtype=np.float64).T)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.n_features_in_ = len(X)
        self.feature_, self.threshold_, self.left_, self.counts_ = grow(X, codes, len(self.classes_), self.min_leaf)
        if self.confidence < 1:
            self._prune(0)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self, "feature_")
        X = np.asarray(X, dtype=np.float64)
        nodes = np.zeros(len(X), dtype=np.int64)
        while (inner := self.feature_[nodes] != LEAF).any():
            at = nodes[inner]
            right = X[inner, self.feature_[at]] > self.threshold_[at]
            nodes[inner] = self.left_[at] + right
        return self.classes_[self.counts_[nodes].argmax(axis=1)]

    def _prune(self, node: int) -> float:
        """Pessimistic number of errors of the subtree, after it was pruned."""
        counts = self.counts_[node]
        as_leaf = pessimistic_errors(counts.sum(), counts.sum() - counts.max(), self.confidence)
        if self.feature_[node] == LEAF:
            return as_leaf
        as_tree = self._prune(self.left_[node]) + self._prune(self.left_[node] + 1)
        if as_leaf <= as_tree + 0.1:  # C4.5's constant
            self.feature_[node] = LEAF
            return as_leaf
        return as_tree


def pessimistic_errors(n_rows: float, n_errors: float, confidence: float) -> float:
    """Rows times the upper confidence limit of the error rate (Clopper and Pearson's, which C4.5 approximates)."""
    return float(n_rows * beta.ppf(1 - confidence, n_errors + 1, n_rows - n_errors)) if n_errors < n_rows else n_rows


@numba.njit(cache=True, nogil=True)
def entropy(counts, total):
    found = 0.0
    for count in counts:
        if count > 0:
            found -= count / total * np.log2(count / total)
    return found


@numba.njit(cache=True, nogil=True)
def best_threshold(values, y, n_classes, min_leaf):
    """Gain, gain ratio and threshold of one feature; a gain of -1 if no threshold is allowed."""
    n = len(y)
    order = np.argsort(values, kind="mergesort")
    right = np.zeros(n_classes)
    for label in y:
        right[label] += 1
    whole, left = entropy(right, n), np.zeros(n_classes)
    least = max(min_leaf, min(25, int(0.1 * n / n_classes)))  # C4.5's smallest branch
    best, at, n_thresholds = -1.0, -1, 0
    for k in range(n - 1):
        left[y[order[k]]] += 1
        right[y[order[k]]] -= 1
        if values[order[k]] < values[order[k + 1]] and k + 1 >= least and n - k - 1 >= least:
            n_thresholds += 1
            share = (k + 1) / n
            gain = whole - share * entropy(left, k + 1) - (1 - share) * entropy(right, n - k - 1)
            if gain > best:
                best, at = gain, k
    if at < 0:
        return -1.0, 0.0, 0.0
    gain, share = best - np.log2(n_thresholds) / n, (at + 1) / n
    split = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
    return gain, gain / split, (values[order[at]] + values[order[at + 1]]) / 2


@numba.njit(cache=True, nogil=True)
def grow(X, y, n_classes, min_leaf):
    """Feature (LEAF for a leaf), threshold, left child (the right one follows it) and class counts of each node."""
    n = len(y)
    feature = np.full(2 * n + 1, LEAF, np.int64)
    threshold, left = np.zeros(2 * n + 1), np.zeros(2 * n + 1, np.int64)
    counts = np.zeros((2 * n + 1, n_classes), np.int64)
    rows, n_nodes = [np.arange(n)], 1
    node = 0
    while node < n_nodes:
        here = rows[node]
        for i in here:
            counts[node, y[i]] += 1
        if len(here) >= 2 * min_leaf and counts[node].max() < len(here):
            labels = y[here]
            gains, ratios, cuts = np.zeros(len(X)), np.zeros(len(X)), np.zeros(len(X))
            for f in range(len(X)):
                gains[f], ratios[f], cuts[f] = best_threshold(X[f][here], labels, n_classes, min_leaf)
            useful = gains > 0
            if useful.any():
                useful &= gains >= gains[useful].mean() - 1e-9
                chosen = np.argmax(np.where(useful, ratios, -1.0))
                goes_left = X[chosen][here] <= cuts[chosen]
                feature[node], threshold[node], left[node] = chosen, cuts[chosen], n_nodes
                rows.append(here[goes_left])
                rows.append(here[~goes_left])
                n_nodes += 2
        node += 1
    return feature[:n_nodes], threshold[:n_nodes], left[:n_nodes], counts[:n_nodes]
