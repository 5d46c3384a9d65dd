"""FSDD: features ranked by the distance discriminant, the variance between classes minus the variance within them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .._selector import Accepts, Selector
from ..criteria.base import Target
from ..executors import Map, threads
from ..kernels import moments as kernels
from ..kernels.jit import read_only
from ..validation.errors import ParameterError
from ..validation.parameters import is_finite
from ..validation.stores import Stored
from ..validation.tables import SQUARED, canonical, extremes, require_width, some_columns

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CELLS_PER_JOB = 2**24  # for smaller jobs, waking another thread costs more than it saves
STORED_VALUES_PER_JOB = 2**21  # smaller, because each value of a sparse matrix takes longer
CELLS_COPIED = 2**20  # 8 MiB of float64 at a time, where columns must be copied


@dataclass(eq=False, repr=False)
class FSDD(Selector):
    """Rank features by the distance discriminant: high if classes are far apart and each class is narrow.

    score_k = (σ'_k² − β Σ_i ρ_i σ_k²(i)) / σ_k², where σ'_k² is the variance of the class means, σ_k²(i) the variance
    within class i (divided by n_i − 1), σ_k² the variance of all values (divided by N) and ρ_i = n_i / N. Scores lie
    between about −β and 1, and do not change when a feature is shifted or scaled.

    Parameters
    ----------
    n_features_to_select, n_jobs
        See `DFE`.
    beta : float, default=2.0
        Weight of the variance within classes in eq. 2, at least 0. By the paper's definitions, d_b − b d_w corresponds
        to ``beta = 2 b``. The order of features hardly depends on ``beta`` (see Notes).
    overlap : bool, default=False
        Whether the variance within two classes counts less if the classes overlap less (see Notes), so that a feature
        with wide but separate classes is not penalized. The paper suggests this as future work.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The discriminant; NaN for a feature that is constant or has values in fewer than two classes.
    ranking_, support_, classes_
        See `DFE`.
    counts_, means_ : array of shape (n_classes, n_features)
        Number of values that are not missing, and the class means (NaN if a class has no values).
    between_, within_, variances_ : array of shape (n_features,)
        σ'_k², the variance of the class means; Σ_i ρ_i σ_k²(i), to which a class with one sample adds 0; and σ_k², the
        variance of all values.
    moments_ : ClassMoments
        The statistics that the scores are computed from. Moments of different rows can be added.

    Notes
    -----
    If σ_k²(i) were divided by n_i instead of n_i − 1, the variances between and within classes would add up to the
    variance of all values, and the score would be an increasing function of between / within. So, except for the
    factors n_i / (n_i − 1), features are in the order of ANOVA's F. On Iris and Wine both orders are the same for any
    ``beta``.

    Departures: by definitions 1 to 3 of the paper, the distance within classes (eq. 4) is
    2 Σ_k Σ_i ρ_i σ_k²(i) / σ_k², but eq. 2 omits the factor 2. This class follows eq. 2, so d_b − 2 d_w in terms of
    the definitions is ``beta=4``.

    *Overlap.* Eq. 2 is a sum over pairs of classes, ½ Σ_i Σ_j ρ_i ρ_j [(m_i − m_j)² − β (σ²(i) + σ²(j))] / σ². With
    ``overlap``, β is multiplied in each pair by the overlap of the two classes in that feature,
    exp(−(m_i − m_j)² / 4 (σ²(i) + σ²(j))). This is the Bhattacharyya coefficient of two normal distributions with
    these means and the mean of both variances: 1 for a class with itself, and 0 for two classes that are far apart.

    NaN is a missing value: n_i and N of that feature are smaller. Zeros of sparse data are values. Data are read once
    and without a copy; only float16, arrays that are not contiguous and columns with NaN are copied, a few at a time.

    References
    ----------
    J. Liang, S. Yang, A. Winstanley, *Invariant optimal feature selection: a distance discriminant and feature
    ranking based solution*, Pattern Recognition 41 (2008), eq. 2. Moments of parts of the data are combined as in
    T. Chan, G. Golub, R. LeVeque, *Updating formulae and a pairwise algorithm for computing sample variances*,
    COMPSTAT 1982.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import FSDD
    >>> X, y = load_iris(return_X_y=True)
    >>> fsdd = FSDD(2).fit(X, y)
    >>> fsdd.ranking_.tolist()
    [3, 4, 1, 2]
    >>> fsdd.scores_.round(2).tolist()
    [-0.16, -0.82, 0.82, 0.78]

    Data that arrive in parts give the same scores:

    >>> parts = FSDD(2)
    >>> for rows in (slice(0, 60), slice(60, 150)):
    ...     parts = parts.partial_fit(X[rows], y[rows])
    >>> parts.ranking_.tolist()
    [3, 4, 1, 2]
    """

    _accepts = Accepts(nan=True, stores=True)

    n_features_to_select: Any = None
    _: KW_ONLY
    beta: float = 2.0
    overlap: bool = False
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None) -> FSDD:
        """Score every feature with the classes of y."""
        self._check_parameters()
        X, y = self._checked(X, y)
        _require_labels(y)
        target = Target.of(y, "classification")
        assert target.classes is not None
        moments = ClassMoments.of(X, target.values, len(target.classes), threads(self.n_jobs))
        return self._set_scores(target.classes, moments, X)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> FSDD:
        """Add rows to the rows seen so far; the scores are those of ``fit`` with all the rows.

        A part may contain a single class, and a new class may appear in any part. Scores are NaN until there are two
        classes. If ``classes`` lists the possible labels, all of them have rows in ``counts_`` and ``means_``, and any
        other label in y raises an error.
        """
        self._check_parameters()
        is_first = not hasattr(self, "moments_")
        X, y = self._checked(X, y, reset=is_first)
        _require_labels(y)
        known = _known_labels(y, classes, None if is_first else self.classes_)
        moments = ClassMoments.of(X, np.searchsorted(known, y), len(known), threads(self.n_jobs))
        if not is_first:
            moments = self.moments_.with_classes(np.searchsorted(known, self.classes_), len(known)) + moments
        return self._set_scores(known, moments, X)

    def _set_scores(self, classes: NDArray[Any], moments: ClassMoments, X: Any) -> FSDD:
        between, within, total = moments.variances()
        self._require_finite_variances(moments, total)
        self._require_no_underflow(X, total)
        self.classes_, self.moments_ = classes, moments
        self.between_, self.within_, self.variances_ = between, within, total
        # scores = (between - beta * penalty) / total, with one temporary array
        penalty = moments.within_by_overlap(total) if self.overlap else within
        scores = -self.beta * penalty
        scores += between
        with np.errstate(invalid="ignore"):
            scores /= total
        self._rank_by(scores)
        return self

    @property
    def counts_(self) -> Integers:
        check_is_fitted(self, "moments_")
        return np.broadcast_to(self.moments_.counts, self.moments_.offsets.shape).copy()

    @property
    def means_(self) -> Floats:
        check_is_fitted(self, "moments_")
        return np.where(self.moments_.counts > 0, self.moments_.origins + self.moments_.offsets, np.nan)

    def _check_parameters(self) -> None:
        if not is_finite(self.beta) or self.beta < 0:
            raise ParameterError(f"beta={self.beta!r} must be a number of at least 0, such as 2")
        if not isinstance(self.overlap, bool | np.bool_):
            raise ParameterError(f"overlap={self.overlap!r} must be True or False")

    def _require_finite_variances(self, moments: ClassMoments, total: Floats) -> None:
        if np.isfinite(total).all():
            return
        bad = np.flatnonzero(np.isinf(total) | ~np.isfinite(moments.scatters).all(axis=0))
        if len(bad):
            columns = some_columns(bad, len(total), getattr(self, "feature_names_in_", None))
            raise ValueError(
                f"Input X contains infinity, or values too large to be squared, in {columns}: impute, scale or leave "
                "out those columns or rows"
            )

    def _require_no_underflow(self, X: Any, total: Floats) -> None:
        """Raise an error if a column whose variance is about 0 is not constant."""
        suspects = np.flatnonzero(total < SQUARED[0] ** 2) if X.dtype.kind == "f" else np.empty(0, np.int64)
        low, high = np.zeros(len(total)), np.zeros(len(total))
        for columns in _batches(suspects, CELLS_COPIED // X.shape[0]):
            low[columns], high[columns] = extremes(X[:, columns], allow_nan=True)
        require_width(low, high, getattr(self, "feature_names_in_", None), SQUARED)


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Count, mean and scatter (sum of squared distances from the mean) of every feature in every class.

    The sum of the moments of different rows (Chan's formula) is the moments of all these rows.
    """

    origins: Floats  # one value of each feature, from which means are measured
    counts: Integers  # (n_classes, n_features) values that are not NaN; (n_classes, 1) if there is no NaN at all
    offsets: Floats  # mean minus origin (0 if a class has no values)
    scatters: Floats

    @classmethod
    def of(cls, X: Any, codes: Integers, n_classes: int, map: Map) -> ClassMoments:
        """Moments of X (dense, stored, CSR or CSC), with ``codes`` from 0 to n_classes - 1 as classes of its rows."""
        n_rows = np.bincount(codes, minlength=n_classes)
        if sp.issparse(X):
            X = canonical(X)
            read: Any = partial(_read_sparse, X, codes, n_rows)
        elif isinstance(X, Stored):
            read = partial(_read_stored, X, kernels.runs_of_classes(codes, n_classes), n_rows)
        else:
            X = _read_only(X)
            read = partial(_read_dense, X, kernels.runs_of_classes(codes, n_classes), n_rows)
        jobs = _column_slices(X)
        return cls.concatenated(list(map(read, jobs)) if len(jobs) > 1 else [read(jobs[0])])

    @classmethod
    def concatenated(cls, parts: list[ClassMoments]) -> ClassMoments:
        """Moments of all features, from the moments of different features of the same rows."""
        if len(parts) == 1:
            return parts[0]
        counts = [part.counts for part in parts[:1]]
        if any(part.counts.shape[1] > 1 for part in parts):
            counts = [np.broadcast_to(part.counts, part.offsets.shape) for part in parts]
        return cls(
            np.concatenate([part.origins for part in parts]),
            np.hstack(counts),
            np.hstack([part.offsets for part in parts]),
            np.hstack([part.scatters for part in parts]),
        )

    def with_classes(self, new_codes: Integers, n_classes: int) -> ClassMoments:
        """Moments with more classes: class i becomes class new_codes[i], and the other classes have no values."""
        if len(new_codes) == n_classes:
            return self

        def with_more_rows(array: NDArray[Any]) -> NDArray[Any]:
            larger = np.zeros((n_classes, array.shape[1]), array.dtype)
            larger[new_codes] = array
            return larger

        return ClassMoments(self.origins, *map(with_more_rows, (self.counts, self.offsets, self.scatters)))

    def __add__(self, other: ClassMoments) -> ClassMoments:
        if self.offsets.shape != other.offsets.shape:
            raise ValueError(f"moments of shapes {self.offsets.shape} and {other.offsets.shape} cannot be added")
        origins = np.where(self.counts.any(axis=0), self.origins, other.origins)
        counts = self.counts + other.counts
        share = other.counts / np.maximum(counts, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            step = np.where(other.counts > 0, other.offsets + (other.origins - origins), 0.0) - self.offsets
            offsets = self.offsets + step * share
            scatters = self.scatters + other.scatters + step * step * (share * self.counts)
        return ClassMoments(origins, counts, offsets, scatters)

    def variances(self) -> tuple[Floats, Floats, Floats]:
        """Variances of every feature, as in eq. 2: between class means, within classes, and of all values."""
        between, within, total = (np.empty(len(self.origins)) for _ in range(3))
        kernels.variances(self.counts, self.offsets, self.scatters, between, within, total)
        return between, within, total

    def within_by_overlap(self, total: Floats) -> Floats:
        """Variance within classes, with each pair of classes weighted by its overlap; ``total`` are the variances."""
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = self.counts / self.counts.sum(axis=0)
            means = self.offsets / np.sqrt(total)
            within = self.scatters / np.maximum(self.counts - 1, 1) / total
            weighted = (shares * shares * within).sum(axis=0)
            for i, j in combinations(range(len(shares)), 2):
                both, distance = within[i] + within[j], (means[i] - means[j]) ** 2
                weighted += shares[i] * shares[j] * np.where(both > 0, np.exp(-distance / (4 * both)) * both, 0.0)
        return weighted * total


def _column_slices(X: Any) -> list[slice]:
    """Slices of columns, one per job; a single slice for CSR, because its rows contain all columns."""
    n_rows, n_features = X.shape
    if isinstance(X, Stored):
        return X.column_slices()
    if sp.issparse(X):
        width = n_features if X.format == "csr" else STORED_VALUES_PER_JOB * n_features // max(1, X.nnz)
    else:
        width = CELLS_PER_JOB // n_rows
    return list(gen_batches(n_features, max(1, width)))


def _read_dense(X: NDArray[Any], runs: Any, n_rows: Integers, part: slice) -> ClassMoments:
    """Moments of some columns, read in memory order; columns with NaN are then read again, without the NaN."""
    n_features = part.stop - part.start
    origins, offsets, scatters = _zeros(len(n_rows), n_features)
    if X.flags.c_contiguous:
        kernels.moments_of_rows(X, part.start, *runs, origins, offsets, scatters)
        unread = np.flatnonzero(~np.isfinite(scatters).all(axis=0))
        if not len(unread):
            return ClassMoments(origins, n_rows[:, None], offsets, scatters)
    else:
        unread = np.arange(n_features)
    counts = np.repeat(n_rows[:, None], n_features, axis=1)
    if X.flags.f_contiguous and len(unread) == n_features:
        kernels.moments_of_columns(X.T, part.start, unread, *runs, origins, counts, offsets, scatters)
    else:
        for features in _batches(unread, CELLS_COPIED // len(X)):
            columns = _read_only(np.ascontiguousarray(X.T[part.start + features]))
            kernels.moments_of_columns(columns, 0, features, *runs, origins, counts, offsets, scatters)
    return ClassMoments(origins, _compact(counts, n_rows), offsets, scatters)


def _read_stored(X: Stored, runs: Any, n_rows: Integers, part: slice) -> ClassMoments:
    return _read_dense(_read_only(X.read_columns(part)), runs, n_rows, slice(0, part.stop - part.start))


def _read_sparse(X: Any, codes: Integers, n_rows: Integers, part: slice) -> ClassMoments:
    """Moments of some columns of a CSC matrix, or of all columns of a CSR matrix: stored values first, then zeros."""
    by_column = X.format == "csc"
    n_features = part.stop - part.start
    origins, offsets, scatters = _zeros(len(n_rows), n_features)
    n_stored = np.diff(X.indptr[part.start : part.stop + 1]) if by_column else np.bincount(X.indices, None, n_features)
    full = np.flatnonzero(n_stored == X.shape[0])
    if len(full):
        first = X.data[X.indptr[part.start + full]] if by_column else X[[0]].toarray()[0, full]
        origins[full] = np.nan_to_num(first)
    counts, missing = np.zeros(offsets.shape, np.int64), np.zeros(offsets.shape, np.int64)
    indptr = X.indptr[part.start : part.stop + 1] if by_column else X.indptr
    matrix = (_read_only(array) for array in (X.data, X.indices, indptr))
    kernels.moments_of_stored(*matrix, by_column, codes, origins, counts, missing, offsets, scatters)
    kernels.add_zeros(n_rows, missing, origins, counts, offsets, scatters)
    return ClassMoments(origins, _compact(counts, n_rows), offsets, scatters)


def _zeros(n_classes: int, n_features: int) -> tuple[Floats, Floats, Floats]:
    return np.zeros(n_features), np.zeros((n_classes, n_features)), np.zeros((n_classes, n_features))


def _compact(counts: Integers, n_rows: Integers) -> Integers:
    """One column of counts for all features if no value is missing."""
    return n_rows[:, None] if (counts == n_rows[:, None]).all() else counts


def _batches(numbers: Integers, size: int) -> list[Integers]:
    size = max(1, size)
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


def _read_only(array: Any) -> NDArray[Any]:
    """A read-only view, with bytes instead of booleans, so that the kernels are compiled for fewer types."""
    array = np.asarray(array)
    return read_only(array.view(np.uint8) if array.dtype == bool else array)


def _require_labels(y: NDArray[Any]) -> None:
    kind = type_of_target(y, input_name="y") if y.dtype.kind in "fO" else "multiclass"
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: y is {kind}, but FSDD compares classes: give one class label per row "
            "(a quantity can be cut into classes, for instance at its quantiles)"
        )


def _known_labels(y: NDArray[Any], allowed: Any, previous: NDArray[Any] | None) -> NDArray[Any]:
    """Sorted labels of y, of ``allowed`` and of the previous rows; an error if they contradict each other."""
    labels = np.unique(y)
    if allowed is not None:
        allowed = np.unique(np.asarray(allowed))
        others = [label for label in labels.tolist() if label not in allowed.tolist()]
        if others:
            raise ValueError(
                f"y contains labels that are not among classes={allowed.tolist()}: {others[:5]}; "
                "add them to classes, or omit classes"
            )
        labels = allowed
    if previous is None:
        return labels
    if (previous.dtype.kind in "iufb") != (labels.dtype.kind in "iufb"):
        raise ValueError(
            f"the classes so far are {previous[:5].tolist()}, but y now contains {labels[:5].tolist()}: "
            "give labels of one type"
        )
    return np.union1d(previous, labels)
