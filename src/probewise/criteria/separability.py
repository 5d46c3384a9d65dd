"""Distances between classes in feature subsets, from means and covariances; or how clustered the rows are. On CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..executors import one_blas_thread
from ..kernels import separability as kernels
from ..validation.errors import Parameter, ParameterError, Setting
from ..validation.stores import as_dense
from ..validation.tables import SQUARED, canonical
from .base import Criterion, Floats, Folds, Target
from .columns import SubsetColumns
from .naive_bayes import class_moments, pooled_variance

MEASURES = {
    "mahalanobis": kernels.mahalanobis,
    "bhattacharyya": kernels.bhattacharyya,
    "divergence": kernels.divergence,
}
RIDGE = 1e-6  # of a column's variance over all rows: covariances stay positive, and J finite
TABLE_FEATURES = 2000  # of which all covariances are kept
TABLE_BYTES = 2**30
ROWS_AT_A_TIME = 2048
ROUNDS = 20  # of k-means


class Separability(Criterion):
    """Distance between the classes of Gaussian models on the subset's columns, or how clustered its rows are.

    With class shares p, means m and covariances S, J is the sum over pairs of classes of p_i p_j d_ij, where,
    with m = m_i - m_j,

        "mahalanobis"     d = m' W^-1 m,  W the sum of p_c S_c over all classes
        "bhattacharyya"   d = 1/8 m' A^-1 m + 1/2 ln( |A| / sqrt(|S_i| |S_j|) ),  A = (S_i + S_j) / 2
        "divergence"      d = 1/2 m' (S_i^-1 + S_j^-1) m + 1/2 tr(S_i^-1 S_j + S_j^-1 S_i) - |subset|

    The first sees only differences of means; the others see differences of variance and correlation too. Of the
    two, the divergence has no ceiling where a class has almost no variance, the Bhattacharyya distance grows with
    the logarithm. All are on all rows: there is no cross-validation, ``cv`` and ``groups`` play no part.

    ``measure="clusters"`` needs no y (and ignores it). Columns are standardised, rows are parted into
    ``n_clusters`` by k-means, and J is the share of the scatter that lies between the clusters:

        J = 1 - (sum of squared distances to the own cluster's mean) / (sum of squared distances to the mean),

    which is the mean, over the subset's columns, of the share of variance that one and the same partition
    explains. So columns that agree on a grouping of the rows score near 1 together, and a column that takes no
    part in it lowers J: unlike a likelihood or a scatter it does not grow with the subset, and unlike a
    neighbour graph it needs no scale. It cannot tell two real groups from one long cloud: columns that merely
    go together score as well. The start is the same every time: the part of largest scatter is cut in two at
    its mean, across the line from there to its farthest row, until there are enough parts; then rows move to the
    nearest mean, at most 20 times.

    Parameters
    ----------
    measure : {"mahalanobis", "bhattacharyya", "divergence", "clusters"}, default="bhattacharyya"
        Which distance, or the share of scatter between clusters.
    shrinkage : float, default=0.1
        Share, from 0 to 1, by which every covariance is drawn towards its own diagonal. More is calmer where a class
        has few rows for the size of the probes; 1 is independent features, which rewards each feature by itself; 0
        trusts the covariances. A ridge of 1e-6 of the column's variance over all rows is added always, so that J is
        finite for constant columns, classes of one row, and more columns than rows.
    n_clusters : int, default=2
        Number of clusters, 2 or more; only for "clusters".

    Notes
    -----
    The three distances never fall when a feature is added, whatever the feature: they grow with the size of the
    subset, the more so the fewer the rows. So they do not tell which of two subsets of different size is better;
    for a search that compares sizes use a cross-validated criterion. DAF is not misled: it compares probes with
    a feature to probes without it, sizes are drawn alike for every feature, and the growth adds the same to
    every coefficient. It does add noise to them, of which ``coefficient="daf2"`` and a smaller
    ``max_probe_size`` leave less.

    J does not change when a constant is added to a column or a column is rescaled.

    For up to 2,000 features the covariances of all pairs are kept (8 bytes each per class, up to 1 GiB), and a
    probe looks up its own; beyond, it makes them from its columns. The cost of "bhattacharyya" grows with the
    pairs of classes, of the others with the classes.

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

    def __init__(self, measure: str = "bhattacharyya", *, shrinkage: float = 0.1, n_clusters: int = 2) -> None:
        self.measure = measure
        self.shrinkage = shrinkage
        self.n_clusters = n_clusters

    @property
    def needs_target(self) -> bool:  # type: ignore[override]
        return self.measure != "clusters"

    def bind(
        self, X: Any, y: Any, cv: Any = None, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundSeparability | BoundClusters:
        if scoring is not None:
            raise ParameterError(
                Parameter("scoring", scoring),
                " has no meaning for Separability, which predicts nothing: leave it out",
            )
        if sample_weight is not None:
            raise ParameterError(
                Parameter("sample_weight"),
                ": Separability knows no weights; leave them out, or use ",
                Setting("criterion", "linear"),
                " or 'knn'",
            )
        X = canonical(X.tocsc()) if sp.issparse(X) else as_dense(X)
        if self.measure == "clusters":
            if not 2 <= self.n_clusters < X.shape[0] or self.n_clusters != int(self.n_clusters):
                raise ValueError(
                    f"n_clusters={self.n_clusters} must be a whole number from 2 to the rows less one, {X.shape[0] - 1}"
                )
            return BoundClusters.of(X, int(self.n_clusters))
        if self.measure not in MEASURES:
            names = ", ".join(repr(name) for name in (*MEASURES, "clusters"))
            raise ValueError(f"measure={self.measure!r} is not known: choose one of {names}")
        if not 0 <= self.shrinkage <= 1:
            raise ValueError(f"shrinkage={self.shrinkage!r} must be from 0 (none) to 1 (the diagonal alone)")
        return BoundSeparability.of(X, self._codes(y), self.measure, float(self.shrinkage))

    def _codes(self, y: Any) -> NDArray[np.int64]:
        target = None if y is None else Target.of(y)
        if target is None or target.classes is None:
            what = "y=None" if y is None else "y is continuous"
            raise ValueError(
                f"{what} and measure={self.measure!r} needs classes: give class labels, or measure='clusters', "
                "which needs none"
            )
        return target.values


@dataclass(frozen=True)
class BoundSeparability:
    """Standardised class means, and covariances of all columns where they fit; rows are seen class by class."""

    columns: SubsetColumns
    folds: Folds
    measure: str
    shrinkage: float
    prior: Floats
    mean: Floats
    shift: Floats
    scale: Floats
    starts: NDArray[np.int64]
    table: Floats | None

    @classmethod
    def of(cls, X: Any, codes: NDArray[np.int64], measure: str, shrinkage: float) -> BoundSeparability:
        order = np.argsort(codes, kind="stable")
        columns = SubsetColumns(X, order)
        _, prior, mean, variance = class_moments(X, codes, order)
        scale = _inverse_root(pooled_variance(mean, variance, prior))
        away = mean - mean[:, :1]
        starts = np.concatenate([[0], np.cumsum(np.bincount(codes))])
        standard = np.ascontiguousarray((away - (away @ prior)[:, None]).T) * scale
        shift = np.ascontiguousarray(mean.T) - _origin(columns)
        n_tables = 1 if measure == "mahalanobis" else len(prior)
        table = None
        if X.shape[1] <= TABLE_FEATURES and 8 * n_tables * X.shape[1] ** 2 <= TABLE_BYTES:
            table = _covariances(np.asarray(X) if columns.is_stored else X, order, starts, mean, scale, n_tables)
        folds = Folds((), len(codes))
        return cls(columns, folds, measure, shrinkage, prior, standard, shift, scale, starts, table)

    def __call__(self, subsets: Subsets) -> Floats:
        largest, n_rows = int(subsets.sizes.max(initial=0)), self.folds.n_rows
        groups = self.starts if self.measure != "mahalanobis" else self.starts[[0, -1]]
        values = np.empty(0 if self.table is not None else n_rows * largest)
        room = np.empty((len(groups) - 1) * largest**2)
        square, vector = np.empty(largest**2), np.empty(largest)
        scores = np.empty(len(subsets))
        for k, subset in enumerate(subsets):
            d = len(subset)
            if d == 0:
                scores[k] = 0.0
                continue
            covariance = room[: (len(groups) - 1) * d * d].reshape(len(groups) - 1, d, d)
            if self.table is not None:
                kernels.take_covariances(self.table, subset, covariance)
            else:
                rows = values[: n_rows * d].reshape(n_rows, d)
                self.columns.take(subset, rows)
                kernels.standardize(rows, self.starts, self.shift, self.scale, subset)
                kernels.covariances(rows, groups, covariance)
            kernels.regularize(covariance, self.shrinkage, RIDGE)
            mean, work = np.ascontiguousarray(self.mean[:, subset]), square[: d * d].reshape(d, d)
            scores[k] = MEASURES[self.measure](covariance, mean, self.prior, work, vector[:d])
        return scores

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        from .separability_device import DeviceSeparability

        return DeviceSeparability(self, device)


@dataclass(frozen=True)
class BoundClusters:
    """X, and what standardises its columns."""

    columns: SubsetColumns
    folds: Folds
    n_clusters: int
    shift: Floats
    scale: Floats

    @classmethod
    def of(cls, X: Any, n_clusters: int) -> BoundClusters:
        rows = np.arange(X.shape[0])
        _, _, mean, variance = class_moments(X, np.zeros(len(rows), np.int64), rows)
        columns = SubsetColumns(X, rows)
        shift = np.ascontiguousarray(mean.T) - _origin(columns)
        return cls(columns, Folds((), len(rows)), n_clusters, shift, _inverse_root(variance[:, 0]))

    def __call__(self, subsets: Subsets) -> Floats:
        n_rows = self.folds.n_rows
        values = np.empty(n_rows * int(subsets.sizes.max(initial=0)))
        whole = np.array([0, n_rows])
        scores = np.empty(len(subsets))
        for k, subset in enumerate(subsets):
            rows = values[: n_rows * len(subset)].reshape(n_rows, len(subset))
            self.columns.take(subset, rows)
            kernels.standardize(rows, whole, self.shift, self.scale, subset)
            scores[k] = kernels.cluster_share(rows, self.n_clusters, ROUNDS)
        return scores


def _covariances(X: Any, order: Any, starts: Any, mean: Floats, scale: Floats, n_tables: int) -> Floats:
    """Covariances of all standardised columns: of each class, or of all rows about their class means if one."""
    table = np.zeros((n_tables, X.shape[1], X.shape[1]))
    with one_blas_thread():
        for c in range(len(starts) - 1):
            for first in range(starts[c], starts[c + 1], ROWS_AT_A_TIME):
                rows = X[order[first : min(first + ROWS_AT_A_TIME, starts[c + 1])]]
                part = ((rows.toarray() if sp.issparse(X) else rows) - mean[:, c]) * scale
                table[c % n_tables] += part.T @ part
    sizes = np.diff(starts) if n_tables > 1 else starts[-1:]
    return table / sizes[:, None, None]


def _inverse_root(variance: Floats) -> Floats:
    """1 / sqrt(variance), and 0 for constant columns."""
    return np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0)


def _origin(columns: SubsetColumns) -> Any:
    return 0.0 if columns.is_sparse else columns.centers.astype(np.float64)
