"""Separability of the classes in a feature subset: distances between Gaussian class models, or a k-means score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..validation.errors import ParameterError
from ..validation.stores import as_dense
from ..validation.tables import SQUARED, canonical
from .base import Criterion, Floats, Folds, Target, kind_of_target, require_few_classes
from .naive_bayes import CELLS_AT_A_TIME, MEMORY_LIMIT, dense_columns, moments

ScoreFunction = Callable[[Floats, Floats, NDArray[np.int64]], float]  # of values, means and class sizes
RIDGE = 1e-6  # share of a column's variance over all rows: covariances stay positive definite, and J finite
MOST_STEPS = 20  # of k-means


@dataclass(eq=False, repr=False)
class Separability(Criterion):
    """Distance between Gaussian models of the classes on the subset's columns, or how clustered the rows are.

    With class shares p, means m and covariances S, J is the sum over pairs of classes of p_i p_j d_ij, where,
    with m = m_i - m_j,

        "mahalanobis"     d = m' W^-1 m,  W the sum of p_c S_c over all classes
        "bhattacharyya"   d = 1/8 m' A^-1 m + 1/2 ln( |A| / sqrt(|S_i| |S_j|) ),  A = (S_i + S_j) / 2
        "divergence"      d = 1/2 m' (S_i^-1 + S_j^-1) m + 1/2 tr(S_i^-1 S_j + S_j^-1 S_i) - |subset|

    The first measures differences of means only; the others also measure differences of variance and correlation. All
    are computed on all rows: there is no cross-validation, and ``cv`` and ``groups`` are not used.

    ``measure="clusters"`` needs no y and ignores it. Columns are standardized, the rows are divided into
    ``n_clusters`` clusters by k-means, and J is the share of the scatter between the clusters:

        J = 1 - (sum of squared distances to the mean of the own cluster) / (sum of squared distances to the mean).

    Columns that agree on a grouping of the rows score near 1 together, and a column that does not take part in it
    lowers J; J does not grow with the size of the subset. It cannot distinguish two real groups from one long cloud:
    correlated columns score as well. k-means always starts the same way: the cluster of largest scatter is cut in two
    at its mean, across the line from there to its farthest row, until there are enough clusters.

    Parameters
    ----------
    measure : {"mahalanobis", "bhattacharyya", "divergence", "clusters"}, default="bhattacharyya"
        The distance, or the share of scatter between clusters.
    shrinkage : float, default=0.1
        Share, from 0 to 1, by which every covariance is shrunk towards its diagonal. Larger values are more stable if
        a class has few rows for the size of the probes; 1 treats features as independent. A ridge of 1e-6 of the
        column's variance over all rows is always added, so J is finite for constant columns, classes of one row, and
        more columns than rows.
    n_clusters : int, default=2
        Number of clusters, 2 or more; only for "clusters".

    Notes
    -----
    The three distances never decrease when a feature is added, so they cannot compare subsets of different size; a
    search that does needs a cross-validated criterion. DAF compares probes with a feature to probes without it, and
    sizes are drawn alike for every feature, so the growth adds the same to every coefficient, and some noise, which
    ``coefficient="daf2"`` and a smaller ``max_probe_size`` reduce.

    References
    ----------
    P. A. Devijver, J. Kittler, *Pattern Recognition: A Statistical Approach*, Prentice-Hall 1982, chapter 5
    (probabilistic distance measures for normal classes).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.criteria import Separability
    >>> from probewise.engine.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> subsets = Subsets.of([[0, 1], [2, 3], [0, 1, 2, 3]])
    >>> Separability("bhattacharyya").bind(X, y)(subsets).round(2)
    array([0.57, 3.11, 4.33])
    >>> Separability("clusters", n_clusters=3).bind(X, None)(subsets).round(2)
    array([0.66, 0.94, 0.77])
    """

    streams = True
    widths = SQUARED

    measure: str = "bhattacharyya"
    _: KW_ONLY
    shrinkage: float = 0.1
    n_clusters: int = 2

    @property
    def needs_target(self) -> bool:  # type: ignore[override]
        return self.measure != "clusters"

    def bind(
        self, X: Any, y: Any, cv: Any = None, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundSeparability:
        if scoring is not None:
            raise ParameterError(f"scoring={scoring!r} has no meaning for Separability, which predicts nothing")
        if sample_weight is not None:
            raise ParameterError("sample_weight: Separability does not use weights; use criterion='linear' or 'knn'")
        X = canonical(X.tocsc()) if sp.issparse(X) else as_dense(X)
        codes = self._codes(y) if self.needs_target else np.zeros(X.shape[0], np.int64)
        bound = BoundSeparability(X, codes, Folds((), len(codes)), self._score_function(X.shape[0]))
        if sp.issparse(X) or 8 * X.shape[0] * X.shape[1] > MEMORY_LIMIT:
            return bound
        return replace(bound, columns=bound.standardized(np.arange(X.shape[1])))

    def _score_function(self, n_rows: int) -> ScoreFunction:
        if self.measure == "clusters":
            if not 2 <= self.n_clusters < n_rows or self.n_clusters != int(self.n_clusters):
                raise ParameterError(f"n_clusters={self.n_clusters!r} must be a whole number from 2 to n_rows - 1")
            return partial(cluster_share, n_clusters=int(self.n_clusters))
        if self.measure not in MEASURES:
            names = ", ".join(repr(name) for name in (*MEASURES, "clusters"))
            raise ParameterError(f"measure={self.measure!r} is not known: choose one of {names}")
        if not 0 <= self.shrinkage <= 1:
            raise ParameterError(f"shrinkage={self.shrinkage!r} must be from 0 (none) to 1 (only the diagonal is used)")
        return partial(MEASURES[self.measure], shrinkage=float(self.shrinkage))

    def _codes(self, y: Any) -> NDArray[np.int64]:
        if y is None or kind_of_target(np.asarray(y)).startswith("continuous"):
            reason = "y=None" if y is None else "y is continuous"
            raise ParameterError(
                f"{reason} and measure={self.measure!r} needs classes: give class labels, or measure='clusters', "
                "which needs none"
            )
        target = Target.of(y, "classification")
        if self.measure == "bhattacharyya":
            remedy = "use KNN, or measure='mahalanobis' or 'divergence'"
            require_few_classes(target.classes, "measure='bhattacharyya', which compares every pair of them,", remedy)
        return target.values


@dataclass(frozen=True)
class BoundSeparability:
    """X, and all its columns standardized if these fit in memory."""

    X: Any
    codes: NDArray[np.int64]
    folds: Folds
    score: ScoreFunction
    columns: tuple[Floats, Floats] | None = None

    def __call__(self, subsets: Subsets) -> Floats:
        scores, sizes = np.zeros(len(subsets)), np.bincount(self.codes)
        for k, subset in enumerate(subsets):
            if len(subset):
                values, means = self.standardized(subset) if self.columns is None else (c[subset] for c in self.columns)
                scores[k] = self.score(values, means, sizes)
        return scores

    def standardized(self, features: NDArray[Any]) -> tuple[Floats, Floats]:
        """Standardized columns (features, rows), rows by class and centered in each class, and their class means."""
        order, sizes = np.argsort(self.codes, kind="stable"), np.bincount(self.codes)
        values, means = np.empty((len(features), len(order))), np.empty((len(features), len(sizes)))
        step = max(1, CELLS_AT_A_TIME // len(order))
        for part in (slice(start, start + step) for start in range(0, len(features), step)):
            with np.errstate(over="ignore", invalid="ignore"):
                columns = dense_columns(self.X, features[part])[:, order]
                mean, variance = moments(columns, np.ones(len(order)))
            if not np.isfinite(variance).all():
                reason = "X contains NaN, infinity or values too large to be squared"
                raise ParameterError(f"{reason}: leave out or scale columns")
            scale = np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0)
            columns = (columns - mean[:, None]) * scale[:, None]
            means[part] = np.add.reduceat(columns, np.cumsum(sizes) - sizes, axis=1) / sizes
            values[part] = columns - np.repeat(means[part], sizes, axis=1)
        return values, means


def mahalanobis(values: Floats, means: Floats, sizes: NDArray[np.int64], shrinkage: float) -> float:
    """Sum over classes of p_c m_c' W^-1 m_c, which equals the sum over pairs because the overall mean is 0."""
    pooled = _covariances(values, sizes.sum(keepdims=True), shrinkage)[0]
    return float(np.sum(means * np.linalg.solve(pooled, means), axis=0) @ sizes / sizes.sum())


def bhattacharyya(values: Floats, means: Floats, sizes: NDArray[np.int64], shrinkage: float) -> float:
    """Sum over pairs of classes, one class against all later ones at a time."""
    covariances, shares, total = _covariances(values, sizes, shrinkage), sizes / sizes.sum(), 0.0
    logs = np.linalg.slogdet(covariances)[1]
    for i in range(len(sizes) - 1):
        later = slice(i + 1, None)
        middle, m = 0.5 * (covariances[i] + covariances[later]), (means[:, [i]] - means[:, later]).T
        distance = np.sum(m * np.linalg.solve(middle, m[..., None])[..., 0], axis=1)
        ratio = np.linalg.slogdet(middle)[1] - 0.5 * (logs[i] + logs[later])
        total += float(shares[i] * shares[later] @ (0.125 * distance + 0.5 * ratio))
    return total


def divergence(values: Floats, means: Floats, sizes: NDArray[np.int64], shrinkage: float) -> float:
    """1/2 (sum over classes of p_c (tr(S_c^-1 T) + m_c' S_c^-1 m_c) - d), T = sum over classes of p_c (S_c + m_c m_c').

    It equals the sum over pairs because the overall mean is 0.
    """
    covariances, shares = _covariances(values, sizes, shrinkage), sizes / sizes.sum()
    scatter = np.tensordot(shares, covariances, 1) + means * shares @ means.T
    ratios = np.linalg.solve(covariances, scatter + means.T[:, :, None] * means.T[:, None, :])
    return 0.5 * (float(shares @ np.trace(ratios, axis1=1, axis2=2)) - len(values))


def _covariances(values: Floats, sizes: NDArray[np.int64], shrinkage: float) -> Floats:
    """Covariances (groups, d, d) of the columns in groups of rows, shrunk towards their diagonals, with the ridge."""
    groups, eye = np.split(values, np.cumsum(sizes)[:-1], axis=1), np.eye(len(values))
    covariances = np.stack([group @ group.T / group.shape[1] for group in groups])
    return np.asarray(covariances * (1.0 - shrinkage * (1.0 - eye)) + RIDGE * eye)


def cluster_share(values: Floats, means: Floats, sizes: NDArray[np.int64], n_clusters: int) -> float:
    """Share of the scatter of the rows that lies between the clusters of k-means."""
    rows, total, labels = np.ascontiguousarray(values.T), np.sum(values * values), np.zeros(sizes.sum(), np.int64)
    if total == 0.0:
        return 0.0

    def centers() -> tuple[Floats, Floats]:
        members = (labels == np.arange(n_clusters)[:, None]).astype(np.float64)
        counts = members.sum(axis=1)
        return counts, members @ rows / np.maximum(counts, 1.0)[:, None]

    for new in range(1, n_clusters):
        center = centers()[1]
        distance = np.sum((rows - center[labels]) ** 2, axis=1)
        widest = np.argmax(np.bincount(labels, distance, new))
        inside = np.flatnonzero(labels == widest)
        farthest = rows[inside[np.argmax(distance[inside])]]
        labels[inside[(rows[inside] - center[widest]) @ (farthest - center[widest]) > 0.0]] = new
    for _ in range(MOST_STEPS):
        counts, center = centers()
        half = np.where(counts > 0, 0.5 * np.sum(center * center, axis=1), np.inf)
        nearest = np.argmax(rows @ center.T - half, axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
    counts, center = centers()
    return min(1.0, float(counts @ np.sum(center * center, axis=1) / total))


MEASURES = {"mahalanobis": mahalanobis, "bhattacharyya": bhattacharyya, "divergence": divergence}
