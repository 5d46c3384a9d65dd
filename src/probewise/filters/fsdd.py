"""FSDD: features ranked by the distance discriminant, the variance between class means against that inside classes."""

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
from ..validation.parameters import is_finite
from ..validation.stores import Stored
from ..validation.tables import SQUARED, canonical, extremes, require_width, some_columns

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CELLS_READ = 2**24  # in one piece of work: for less, waking another thread costs more than it saves
STORED_READ = 2**21  # the same for the values of a sparse matrix, which take longer
CELLS_COPIED = 2**20  # at a time, where columns must be copied to be read: 8 MiB of float64


@dataclass(eq=False, repr=False)
class FSDD(Selector):
    """Ranks features by the distance discriminant: classes far apart, and narrow, against the whole variance.

    score_k = (σ'_k² − β Σ_i ρ_i σ_k²(i)) / σ_k², with σ'_k² the variance of the class means, σ_k²(i) the variance
    inside class i (divided by n_i − 1), σ_k² the variance of all values (divided by N) and ρ_i = n_i / N. Scores lie
    between about −β and 1, and do not change when a feature is shifted or scaled.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Features to keep: a number, a share in (0, 1], or None for half. May be changed after ``fit``.
    beta : float, default=2.0
        What the width of classes costs in eq. 2, at least 0; the paper's d_b − b d_w, by its definitions, is
        ``beta = 2 b``. The order of features hardly depends on it (see Notes).
    overlap : bool, default=False
        Whether the width of two classes costs the less, the less they overlap (see Notes): a feature whose classes are
        wide but apart is not held back. The paper names it as future work.
    n_jobs : int or None, default=None
        Threads; the result is the same for any number.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The discriminant; NaN for a feature that is constant or has values in fewer than two classes.
    ranking_, support_ : array of shape (n_features,)
        Ranks, 1 is best, ties to the lower column, NaN last; and which features are selected.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    counts_, means_ : array of shape (n_classes, n_features)
        How many values were used, missing ones are not; and the class means, NaN where a class has no value.
    between_, within_, variances_ : array of shape (n_features,)
        σ'_k², the variance of the class means; Σ_i ρ_i σ_k²(i), to which a class of one sample adds 0; and σ_k², the
        variance of all values.
    moments_ : ClassMoments
        All that is kept of the data; moments of different rows add.

    Notes
    -----
    With σ_k²(i) divided by n_i instead of n_i − 1, between and within would add up to the whole variance, and the
    score would be a rising function of between / within: the order of features is that of ANOVA's F but for the
    factors n_i / (n_i − 1). On Iris and Wine the two orders are the same for any ``beta``.

    Departures: by definitions 1 to 3 the distance within classes, eq. 4, is 2 Σ_k Σ_i ρ_i σ_k²(i) / σ_k²; eq. 2 has it
    without the 2. Here it is eq. 2 that holds, so that d_b − 2 d_w in the sense of the definitions is ``beta=4``.

    *Overlap.* Eq. 2 is a sum over pairs of classes, ½ Σ_i Σ_j ρ_i ρ_j [(m_i − m_j)² − β (σ²(i) + σ²(j))] / σ². With
    ``overlap``, β is multiplied in each pair by the degree to which the two overlap in that feature,
    exp(−(m_i − m_j)² / 4 (σ²(i) + σ²(j))): the Bhattacharyya coefficient of two normal distributions with these means
    and one width, the mean of both variances. It is 1 for a class with itself, and 0 for two that are far apart. With
    widths of their own, a class of zeros alone would overlap with no other, which does harm where most values are zero.

    Each feature is scored alone, and two copies of a good feature are both good.

    NaN is a missing value: that feature's n_i and N are smaller. Zeros of sparse data are values. Data are read once,
    as they are; only float16, arrays that are not contiguous and columns with NaN are copied, a few columns at a time.
    Fortran order takes two to three times as long as C order. A feature that is not constant and whose
    values span less than about 1e-150 is refused: its squares would vanish.

    References
    ----------
    J. Liang, S. Yang, A. Winstanley, *Invariant optimal feature selection: a distance discriminant and feature
    ranking based solution*, Pattern Recognition 41 (2008), eq. 2. Moments of parts of the data are put together as in
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

    Data that come in parts give the same scores:

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
        """Score every feature by the classes of y."""
        self._check_parameters()
        X, y = self._checked(X, y)
        _require_labels(y)
        target = Target.of(y, "classification")
        assert target.classes is not None
        return self._learn(target.classes, self._moments(X, target.values, len(target.classes)), X)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> FSDD:
        """Add rows to those seen so far, as if all had been given to ``fit`` at once.

        Classes are those seen so far: a part may hold one class only, and a class may come later than the first part.
        Until there are two, features have no score (NaN). With ``classes``, the labels that may come, those not seen
        have rows in ``counts_`` and ``means_`` too, and any other label in y is refused.
        """
        self._check_parameters()
        is_first = not hasattr(self, "moments_")
        X, y = self._checked(X, y, reset=is_first)
        _require_labels(y)
        known = _known_labels(y, classes, None if is_first else self.classes_)
        moments = self._moments(X, np.searchsorted(known, y), len(known))
        if not is_first:
            moments = self.moments_.among(np.searchsorted(known, self.classes_), len(known)) + moments
        return self._learn(known, moments, X)

    def _moments(self, X: Any, codes: Integers, n_classes: int) -> ClassMoments:
        return ClassMoments.of(X, codes, n_classes, threads(self.n_jobs))

    def _learn(self, classes: NDArray[Any], moments: ClassMoments, X: Any) -> FSDD:
        between, within, whole = moments.variances()
        self._require_finite_variances(moments, whole)
        self._require_no_underflow(X, whole)
        self.classes_, self.moments_ = classes, moments
        self.between_, self.within_, self.variances_ = between, within, whole
        cost = moments.overlapping(whole) if self.overlap else within
        scores = -self.beta * cost
        scores += between
        with np.errstate(invalid="ignore"):
            scores /= whole
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
            raise ValueError(f"beta={self.beta!r}: give a number of at least 0, such as 2")
        if not isinstance(self.overlap, bool | np.bool_):
            raise ValueError(f"overlap={self.overlap!r}: give True or False")

    def _require_finite_variances(self, moments: ClassMoments, whole: Floats) -> None:
        if np.isfinite(whole).all():
            return
        bad = np.flatnonzero(np.isinf(whole) | ~np.isfinite(moments.scatters).all(axis=0))
        if len(bad):
            where = some_columns(bad, len(whole), getattr(self, "feature_names_in_", None))
            raise ValueError(
                f"Input X contains infinity, or values too large to be squared, in {where}: impute, scale or leave out "
                "those columns or rows"
            )

    def _require_no_underflow(self, X: Any, whole: Floats) -> None:
        """Columns without a variance to speak of must be constant."""
        still = np.flatnonzero(whole < SQUARED[0] ** 2) if X.dtype.kind == "f" else np.empty(0, np.int64)
        low, high = np.zeros(len(whole)), np.zeros(len(whole))
        for places in _some_at_a_time(still, CELLS_COPIED // X.shape[0]):
            low[places], high[places] = extremes(X[:, places], allow_nan=True)
        require_width(low, high, getattr(self, "feature_names_in_", None), SQUARED)


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Count, mean and scatter (sum of squared distances from the mean) of every feature in every class.

    Moments of different rows add, by Chan's formula, to those of all the rows.

    Attributes
    ----------
    origins : array of shape (n_features,)
        A value of each feature; means are counted from it.
    counts : array of int of shape (n_classes, n_features)
        Values that are not NaN; or (n_classes, 1) where there is no NaN at all.
    offsets, scatters : array of shape (n_classes, n_features)
        Mean less origin, 0 where a class has no value; and the scatter.
    """

    origins: Floats
    counts: Integers
    offsets: Floats
    scatters: Floats

    @classmethod
    def of(cls, X: Any, codes: Integers, n_classes: int, map: Map) -> ClassMoments:
        """Of the rows of X, dense, stored, CSR or CSC, whose classes are ``codes`` in 0..n_classes-1."""
        n_rows = np.bincount(codes, minlength=n_classes)
        if sp.issparse(X):
            X = canonical(X)
            read: Any = partial(_read_sparse, X, codes, n_rows)
        elif isinstance(X, Stored):
            read = partial(_read_stored, X, kernels.runs_of_classes(codes, n_classes), n_rows)
        else:
            X = _locked(X)
            read = partial(_read_dense, X, kernels.runs_of_classes(codes, n_classes), n_rows)
        pieces = _pieces(X)
        return cls.side_by_side(list(map(read, pieces)) if len(pieces) > 1 else [read(pieces[0])])

    @classmethod
    def side_by_side(cls, parts: list[ClassMoments]) -> ClassMoments:
        """Moments of different features of the same rows, together."""
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

    def among(self, places: Integers, n_classes: int) -> ClassMoments:
        """The same with rows for more classes: class i at row places[i], no values in the others."""
        if len(places) == n_classes:
            return self

        def with_more_rows(array: NDArray[Any]) -> NDArray[Any]:
            wider = np.zeros((n_classes, array.shape[1]), array.dtype)
            wider[places] = array
            return wider

        return ClassMoments(self.origins, *map(with_more_rows, (self.counts, self.offsets, self.scatters)))

    def __add__(self, other: ClassMoments) -> ClassMoments:
        if self.offsets.shape != other.offsets.shape:
            raise ValueError(f"moments of {self.offsets.shape} and {other.offsets.shape} classes and features: no sum")
        origins = np.where(self.counts.any(axis=0), self.origins, other.origins)
        counts = self.counts + other.counts
        share = other.counts / np.maximum(counts, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            step = np.where(other.counts > 0, other.offsets + (other.origins - origins), 0.0) - self.offsets
            offsets = self.offsets + step * share
            scatters = self.scatters + other.scatters + step * step * (share * self.counts)
        return ClassMoments(origins, counts, offsets, scatters)

    def variances(self) -> tuple[Floats, Floats, Floats]:
        """Of every feature: of the class means, inside classes, and of all values, as in eq. 2."""
        between, within, whole = (np.empty(len(self.origins)) for _ in range(3))
        kernels.variances(self.counts, self.offsets, self.scatters, between, within, whole)
        return between, within, whole

    def overlapping(self, whole: Floats) -> Floats:
        """What is inside classes, each pair of them weighted by how much the two overlap; ``whole`` sets the scale."""
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = self.counts / self.counts.sum(axis=0)
            means = self.offsets / np.sqrt(whole)
            inside = self.scatters / np.maximum(self.counts - 1, 1) / whole
            total = (shares * shares * inside).sum(axis=0)
            for i, j in combinations(range(len(shares)), 2):
                both, apart = inside[i] + inside[j], (means[i] - means[j]) ** 2
                total += shares[i] * shares[j] * np.where(both > 0, np.exp(-apart / (4 * both)) * both, 0.0)
        return total * whole


def _pieces(X: Any) -> list[slice]:
    """Columns to be read as one piece of work; all of them for CSR, whose rows hold them all."""
    n_rows, n_features = X.shape
    if isinstance(X, Stored):
        return X.column_slices()
    if sp.issparse(X):
        width = n_features if X.format == "csr" else STORED_READ * n_features // max(1, X.nnz)
    else:
        width = CELLS_READ // n_rows
    return list(gen_batches(n_features, max(1, width)))


def _read_dense(X: NDArray[Any], runs: Any, n_rows: Integers, piece: slice) -> ClassMoments:
    """Of some columns: in the order of memory, then those that hold NaN again, with care."""
    n_features = piece.stop - piece.start
    origins, offsets, scatters = _nothing_yet(len(n_rows), n_features)
    if X.flags.c_contiguous:
        kernels.moments_of_rows(X, piece.start, *runs, origins, offsets, scatters)
        again = np.flatnonzero(~np.isfinite(scatters).all(axis=0))
        if not len(again):
            return ClassMoments(origins, n_rows[:, None], offsets, scatters)
    else:
        again = np.arange(n_features)
    counts = np.repeat(n_rows[:, None], n_features, axis=1)
    if X.flags.f_contiguous and len(again) == n_features:
        kernels.moments_of_columns(X.T, piece.start, again, *runs, origins, counts, offsets, scatters)
    else:
        for places in _some_at_a_time(again, CELLS_COPIED // len(X)):
            columns = _locked(np.ascontiguousarray(X.T[piece.start + places]))
            kernels.moments_of_columns(columns, 0, places, *runs, origins, counts, offsets, scatters)
    return ClassMoments(origins, _narrowed(counts, n_rows), offsets, scatters)


def _read_stored(X: Stored, runs: Any, n_rows: Integers, piece: slice) -> ClassMoments:
    return _read_dense(_locked(X.read_columns(piece)), runs, n_rows, slice(0, piece.stop - piece.start))


def _read_sparse(X: Any, codes: Integers, n_rows: Integers, piece: slice) -> ClassMoments:
    """Of some columns of a CSC matrix, or all of a CSR one: stored values one by one, then the zeros at once."""
    by_column = X.format == "csc"
    n_features = piece.stop - piece.start
    origins, offsets, scatters = _nothing_yet(len(n_rows), n_features)
    stored = np.diff(X.indptr[piece.start : piece.stop + 1]) if by_column else np.bincount(X.indices, None, n_features)
    full = np.flatnonzero(stored == X.shape[0])
    if len(full):
        first = X.data[X.indptr[piece.start + full]] if by_column else X[[0]].toarray()[0, full]
        origins[full] = np.nan_to_num(first)
    counts, missing = np.zeros(offsets.shape, np.int64), np.zeros(offsets.shape, np.int64)
    lines = X.indptr[piece.start : piece.stop + 1] if by_column else X.indptr
    stored_values = (_locked(array) for array in (X.data, X.indices, lines))
    kernels.moments_of_stored(*stored_values, by_column, codes, origins, counts, missing, offsets, scatters)
    kernels.join_zeros(n_rows, missing, origins, counts, offsets, scatters)
    return ClassMoments(origins, _narrowed(counts, n_rows), offsets, scatters)


def _nothing_yet(n_classes: int, n_features: int) -> tuple[Floats, Floats, Floats]:
    return np.zeros(n_features), np.zeros((n_classes, n_features)), np.zeros((n_classes, n_features))


def _narrowed(counts: Integers, n_rows: Integers) -> Integers:
    """One column for all features where none misses a value."""
    return n_rows[:, None] if (counts == n_rows[:, None]).all() else counts


def _some_at_a_time(places: Integers, size: int) -> list[Integers]:
    size = max(1, size)
    return [places[start : start + size] for start in range(0, len(places), size)]


def _locked(array: Any) -> NDArray[Any]:
    """The same memory, not to be written, with bytes for truth values."""
    array = np.asarray(array)
    return read_only(array.view(np.uint8) if array.dtype == bool else array)


def _require_labels(y: NDArray[Any]) -> None:
    kind = type_of_target(y, input_name="y") if y.dtype.kind in "fO" else "multiclass"
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: y is {kind}, and FSDD compares classes: give one class label per row "
            "(a quantity can be cut into classes, for instance at its quantiles)"
        )


def _known_labels(y: NDArray[Any], allowed: Any, before: NDArray[Any] | None) -> NDArray[Any]:
    """The sorted labels of y, of ``allowed`` and of the rows before; an error where they cannot be together."""
    labels = np.unique(y)
    if allowed is not None:
        allowed = np.unique(np.asarray(allowed))
        others = [label for label in labels.tolist() if label not in allowed.tolist()]
        if others:
            raise ValueError(
                f"y holds labels that are not among classes={allowed.tolist()}: {others[:5]}: "
                "add them to classes, or leave out classes"
            )
        labels = allowed
    if before is None:
        return labels
    if (before.dtype.kind in "iufb") != (labels.dtype.kind in "iufb"):
        raise ValueError(
            f"classes so far are {before[:5].tolist()}, y now holds {labels[:5].tolist()}: give labels of one kind"
        )
    return np.union1d(before, labels)
