"""Cross-validated score of Gaussian naive Bayes: log densities of single features, summed over those of a probe."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..kernels import bayes as kernels
from ..validation.errors import ParameterError
from ..validation.stores import as_dense
from ..validation.tables import SQUARED, canonical
from .base import Criterion, Floats, Folds, Target, kind_of_target
from .scoring import Measure, ScoresPredictions, bind_target

Integers = NDArray[np.int64]
MEMORY_LIMIT = 2**30  # bytes of models
CELLS_AT_A_TIME = 2**20
FEW_DIGITS = 1e-6  # share of a sum of squares below which a difference has lost too many digits
ROUNDING = 2.0**-50  # standard deviations below this share of the mean are rounding errors


@dataclass(eq=False, repr=False)
class NaiveBayes(Criterion):
    """Cross-validated score of a Gaussian naive Bayes classifier.

    A row x is assigned to the class c that maximizes

        log p_c - 1/2 sum over f in S of ( log v_cf + (x_f - m_cf)^2 / v_cf ),

    with the class shares p, the means m and the variances v of the training rows. The score equals ``cross_val_score``
    of scikit-learn's ``GaussianNB`` on the same folds, except where the posteriors of two classes are equal up to
    rounding. Computations are in float64 for any X; scikit-learn computes in float32 if X is float32.

    ``scoring`` and ``cv`` are as in `KNN`. For "roc_auc" rows are ordered by the log odds; scikit-learn orders them
    by the probability, which rounds to 1 for many rows. With ``scoring="probability"`` J is the mean posterior
    probability of the true class over all test rows. ``sample_weight`` counts in the moments, the class shares and the
    score.

    J rewards features that separate the classes on their own; it cannot see those that do so only in combination.

    Parameters
    ----------
    var_smoothing : float, default=1e-9
        Added to every variance, as a share of the largest variance of a column of the subset. Larger values reduce the
        influence of columns of small scale. A column that has no variance in some class of a training fold even then
        is not used in that fold, so a subset of constant columns predicts the most frequent class; scikit-learn has no
        finite answer there.

    Notes
    -----
    The test rows and the moments of all features are stored in float64 if they take at most 1 GiB (``MEMORY_LIMIT``).
    For larger tables the moments of the features of a batch of probes are computed for that batch; J is the same to
    the bit. Sparse X stays sparse: only stored values are visited, except with ``cv="loo"``.
    """

    block_size = 100
    streams = True
    task = "classification"
    widths = SQUARED

    _: KW_ONLY
    var_smoothing: float = 1e-9

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundNaiveBayes:
        if kind_of_target(np.asarray(y)).startswith("continuous"):
            raise ParameterError(
                "y is continuous and NaiveBayes needs classes: give class labels, or use criterion='knn' or 'linear'"
            )
        if not self.var_smoothing >= 0:
            raise ParameterError(f"var_smoothing={self.var_smoothing!r} must be a number of at least 0, such as 1e-9")
        estimators = ("GaussianNB()",) * 2
        target, folds, measure = bind_target(self, y, cv, groups, scoring, sample_weight, estimators=estimators)
        X = canonical(X.tocsc()) if sp.issparse(X) else as_dense(X)
        bound = BoundNaiveBayes(X, target, folds, measure, float(self.var_smoothing))
        per_fold = 3 * len(folds.splits) * target.n_classes
        per_feature = 4 * folds.n_rows if folds.is_loo else len(folds.order) + per_fold
        if 8 * per_feature * X.shape[1] > MEMORY_LIMIT:
            return bound
        return replace(bound, models=bound.models_of(np.arange(X.shape[1])))


@dataclass(frozen=True)
class BoundNaiveBayes(ScoresPredictions):
    """X, and the models of all features, one for each fold, if these fit in memory."""

    X: Any
    target: Target
    folds: Folds
    measure: Measure
    var_smoothing: float
    models: list[kernels.Model] | None = None

    def __call__(self, subsets: Subsets) -> Floats:
        labels = self.target.values[self.folds.order]
        parts = [slice(0, len(labels))] if self.folds.is_loo else self.folds.parts
        scores = np.empty(len(subsets))
        n_columns = 1 if self.models else int(subsets.sizes.max(initial=1))
        for some in self.scored_tests.pieces(len(subsets), n_columns):
            offsets, models = subsets.offsets[some.start : some.stop + 1], self.models
            indices: Any = subsets.indices[offsets[0] : offsets[-1]]
            if models is None:
                features, indices = np.unique(indices, return_inverse=True)
                models = self.models_of(features)
            indices, offsets = indices.astype(np.int32), offsets - offsets[0]
            predicted = np.empty((len(offsets) - 1, len(labels)))
            for model, part in zip(models, parts, strict=True):
                options = self.var_smoothing, self.measure.code, part.start
                kernels.predict(model, indices, offsets, labels[part], *options, predicted)
            scores[some] = self.score(predicted)
        return scores

    @property
    def weights(self) -> Floats:
        return self.measure.weights if self.measure.is_weighted else np.ones(self.folds.n_rows)

    def models_of(self, features: NDArray[Any]) -> list[kernels.Model]:
        """Models of some features, one for each fold, or one for all rows in leave-one-out."""
        if sp.issparse(self.X) and not self.folds.is_loo:
            return [self._sparse_model(self.X[:, features], *split) for split in self.folds.splits]
        rows, weights, ones = np.arange(self.folds.n_rows), self.weights, np.ones(self.folds.n_rows)
        splits = [(rows, rows)] if self.folds.is_loo else self.folds.splits
        models = [self._empty_model(len(features), *split) for split in splits]
        step = max(1, CELLS_AT_A_TIME // len(rows))
        for part in (slice(start, start + step) for start in range(0, len(features), step)):
            columns = dense_columns(self.X, features[part])
            for model, (train, test) in zip(models, splits, strict=True):
                model.data.reshape(len(features), -1)[part] = columns[:, np.sort(test)]
                if self.folds.is_loo:
                    model.pooled[part] = moments_without_each(columns, ones)[1]
                else:
                    model.pooled[part, 0] = moments(columns[:, train], ones[train])[1]
                for c in range(self.target.n_classes):
                    members = train[self.target.values[train] == c]
                    group = columns[:, members], weights[members]
                    model.mean[part, c], model.variance[part, c] = moments(*group)
                    if self.folds.is_loo:
                        model.own_mean[part, members], model.own_variance[part, members] = moments_without_each(*group)
        return models

    def _empty_model(self, n_features: int, train: Integers, test: Integers) -> kernels.Model:
        codes, weights, n_classes = self.target.values, self.weights, self.target.n_classes
        n_models, own_shape = (len(test), (n_features, len(test))) if self.folds.is_loo else (1, (0, 0))
        sizes = np.tile(np.bincount(codes[train], weights[train], n_classes), (n_models, 1))
        if self.folds.is_loo:  # a class of which no other row counts has the size 0, whatever the rounding
            is_known = np.bincount(codes, weights > 0)[codes] > (weights > 0)
            sizes[train, codes] = np.where(is_known, sizes[train, codes] - weights, 0.0)
        with np.errstate(divide="ignore"):
            log_prior = np.log(sizes)  # up to a constant of the row
        data, indptr = np.empty(n_features * len(test)), len(test) * np.arange(n_features + 1)
        mean, variance, pooled = (np.empty((n_features, n)) for n in (n_classes, n_classes, n_models))
        gaussians = mean, variance, pooled, log_prior, np.empty(own_shape), np.empty(own_shape)
        return kernels.Model(False, data, np.empty(0, np.int32), indptr, *gaussians)

    def _sparse_model(self, X: Any, train: Integers, test: Integers) -> kernels.Model:
        codes, times = self.target.values, np.bincount(train, minlength=self.folds.n_rows)
        gaussians = sparse_moments(X, codes, times * self.weights, self.target.n_classes)
        pooled = sparse_moments(X, np.zeros_like(codes), times, 1)[1]
        columns = X[np.sort(test)].astype(np.float64)
        stored = columns.data, columns.indices.astype(np.int32), columns.indptr.astype(np.int64)
        return kernels.Model(True, *stored, *gaussians, pooled, *self._empty_model(0, train, test)[-3:])


def dense_columns(X: Any, features: Any) -> Floats:
    """Some columns of X, which is dense, sparse or stored, as (features, rows) in float64."""
    columns = X[:, features]
    return np.ascontiguousarray((columns.toarray() if sp.issparse(columns) else columns).T, dtype=np.float64)


def moments(columns: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of each line of ``columns`` (features, rows); 0 and 1 without rows.

    The two passes start from the first value: a mean far above the deviations costs no digits, and a constant column
    has a variance of exactly 0.
    """
    columns, weights = columns[:, weights > 0], weights[weights > 0]
    if not len(weights):
        return np.zeros(len(columns)), np.ones(len(columns))
    off = columns - columns[:, :1]
    center = (off * weights).sum(axis=1) / weights.sum()
    off -= center[:, None]
    rest = (off * weights).sum(axis=1) / weights.sum()
    return columns[:, 0] + center, np.maximum(0.0, (off * off * weights).sum(axis=1) / weights.sum() - rest * rest)


def moments_without_each(columns: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and variance (features, rows) of each line of ``columns`` without each of its rows.

    Where subtracting a row leaves few digits of the variance, the moments of the other rows are computed directly.
    """
    (mean, variance), left = moments(columns, weights), np.maximum(weights.sum() - weights, np.finfo(float).tiny)
    off, whole = columns - mean[:, None], variance[:, None] * weights.sum()
    means = mean[:, None] - off * (weights / left)
    squares = whole - off * off * (weights * weights.sum() / left)
    is_lost = squares < FEW_DIGITS * whole
    for row in np.flatnonzero(is_lost.any(axis=0)):
        again, others = is_lost[:, row], np.arange(len(weights)) != row
        means[again, row], variances = moments(columns[again][:, others], weights[others])
        squares[again, row] = variances * left[row]
    return means, squares / left


def sparse_moments(X: Any, codes: Integers, weights: NDArray[Any], n_classes: int) -> tuple[Floats, Floats]:
    """Mean and variance (features, classes) of the columns of a CSC matrix in each class, zeros included."""
    place = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr)) * n_classes + codes[X.indices]
    weight, values = weights[X.indices], X.data.astype(np.float64)

    def total(of_values: NDArray[Any]) -> Floats:
        return np.asarray(np.bincount(place, of_values, X.shape[1] * n_classes), float).reshape(-1, n_classes)

    sizes = np.maximum(np.bincount(codes, weights, n_classes), np.finfo(float).tiny)
    is_full = total(weight > 0) == np.bincount(codes, weights > 0, n_classes)
    zeros = np.where(is_full, 0.0, sizes - total(weight)) / sizes
    mean = total(weight * values) / sizes
    off = values - mean.ravel()[place]
    rest = total(weight * off) / sizes - zeros * mean
    variance = total(weight * off * off) / sizes + zeros * mean * mean - rest * rest
    return mean + rest, np.where(variance > (ROUNDING * mean) ** 2, variance, 0.0)
