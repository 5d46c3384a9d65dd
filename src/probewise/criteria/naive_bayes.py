"""Cross-validated Gaussian naive Bayes scores of feature subsets, from class means and variances made once, on CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..kernels import bayes as kernels
from ..kernels import bayes_left_out
from ..validation.errors import ParameterError
from ..validation.stores import Stored, as_dense, column_blocks
from ..validation.tables import SQUARED, canonical
from .base import FOR_QUANTITIES, Criterion, Floats, Folds, Split, Target
from .columns import BoundLeftOut, ColumnLines, Probes, SubsetColumns
from .predictions import NO_WEIGHTS
from .scoring import GroupsOfTests, Measure, Outcomes, OutcomesByGroup, ScoredTests, bind_target

MEMORY_LIMIT = 2**30


class NaiveBayes(Criterion):
    """Cross-validated score of a Gaussian naive Bayes classifier.

    A row x goes to the class c that maximises

        log p_c - 1/2 sum over f in S of ( log v_cf + (x_f - m_cf)^2 / v_cf ),

    with p, m and v from the training rows: the share of the class, its means, and its variances plus
    ``var_smoothing`` times the largest variance of a column of S. Equal to ``cross_val_score`` of
    scikit-learn's ``GaussianNB`` on the same folds, except where two classes' posteriors tie to rounding. The
    answer is that of float64 for any X; scikit-learn's is that of float32 if X is.

    ``scoring`` of ``bind``, or of the selector, is "accuracy" if None, or any other score of predictions that
    scikit-learn knows by name or as a scorer. For "roc_auc", rows are ordered by the log of the
    odds: scikit-learn takes the probability, and where that comes out as 1 for many rows it sees them as equal.
    ``sample_weight`` counts in the moments, the shares of the classes, and
    the score.

    With ``scoring="probability"`` J is the mean, over tested rows, of the posterior of the row's own class. With
    ``cv="loo"`` each row is left out by itself, in closed form, and a score is that of all rows together.

    The classifier never looks at two features together, so all it knows of a feature is found once, and a probe
    costs little more than a pass over its columns. For the same reason J rewards features that separate the
    classes each by itself, and sees nothing in two that do so only together.

    Parameters
    ----------
    var_smoothing : float, default=1e-9
        Added to every variance, as a share of the largest of the subset. Larger values make columns of small scale
        count less. A column for which nothing is left to divide by (variance and smoothing both 0 in some class of a
        training fold) is left out of that fold, so that a subset of constant columns scores what the most frequent
        class scores; scikit-learn has no finite answer there.

    Notes
    -----
    Posteriors are compared in float32, from columns in standard units, and once more in float64 for the few rows
    where the bound on the rounding leaves doubt; or for all rows, where a class has next to no variance in a column.

    The test rows of each fold (12 bytes per value) and the moments (32 bytes per fold, feature and class) are kept
    up to ``MEMORY_LIMIT``, 1 GiB: some 80 million values of X. Beyond, test rows are gathered from X probe by
    probe; and if the moments alone are more (as in leave-one-out on wide data) they are made again for every block.
    J is the same, to the bit. Sparse X stays sparse: zeros are a constant, only stored values are visited.

    References
    ----------
    T. F. Chan, G. H. Golub, R. J. LeVeque, *Algorithms for computing the sample variance*, The American
    Statistician 37, 1983 (the corrected two-pass variance).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.criteria import NaiveBayes
    >>> from probewise.engine.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> NaiveBayes().bind(X, y, cv=3)(Subsets.of([[0, 1], [2], [2, 3]])).round(3)
    array([0.793, 0.953, 0.96 ])
    """

    block_size = 100
    streams = True
    widths = SQUARED

    def __init__(self, *, var_smoothing: float = 1e-9) -> None:
        self.var_smoothing = var_smoothing

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundNaiveBayes | LeftOutBayes:
        if not Target.of(y).is_classification:
            raise ParameterError(
                "y is continuous and NaiveBayes needs classes: give class labels, or use ", FOR_QUANTITIES
            )
        if not self.var_smoothing >= 0:
            raise ValueError(f"var_smoothing={self.var_smoothing!r} must be 0 or more; scikit-learn's is 1e-9")
        remedy = ("GaussianNB()",) * 2
        target, folds, measure = bind_target(self, y, cv, groups, scoring, sample_weight, estimators=remedy)
        if folds.is_loo:
            lines = ColumnLines(SubsetColumns(X, np.arange(X.shape[0])))
            return LeftOutBayes(lines, target, folds, measure, float(self.var_smoothing))
        return BoundNaiveBayes.of(X, target, folds, float(self.var_smoothing), measure)


@dataclass(frozen=True)
class BoundNaiveBayes(OutcomesByGroup):
    """X by columns, and the model of every fold where they fit in memory."""

    X: Any
    target: Target
    folds: Folds
    var_smoothing: float
    measure: Measure
    models: tuple[FoldModel, ...] | None

    @classmethod
    def of(cls, X: Any, target: Target, folds: Folds, var_smoothing: float, measure: Measure) -> BoundNaiveBayes:
        codes = target.values
        X = canonical(X.tocsc()) if sp.issparse(X) else as_dense(X)
        moments = 32 * len(folds.splits) * X.shape[1] * int(codes.max() + 1)
        row = 12 * (X.nnz // len(codes) if sp.issparse(X) else X.shape[1])
        keep = moments + row * sum(len(test) for _, test in folds.splits) <= MEMORY_LIMIT
        if not keep and (sp.issparse(X) or moments > MEMORY_LIMIT):
            return cls(X, target, folds, var_smoothing, measure, None)
        models = tuple(FoldModel.of(X, codes, split, measure, keep=keep) for split in folds.splits)
        return cls(X, target, folds, var_smoothing, measure, models)

    def _scores(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        total, by_group = np.zeros(len(subsets)), groups.outcomes(len(subsets))
        if not len(subsets):
            return total, by_group.means
        shares = self._fold_shares()
        for model, share, own in zip(self.fold_models(), shares, self.folds.parts, strict=True):
            total += share * model.scores(self.X, subsets, self.var_smoothing, by_group.of_tests(own))
        return total / sum(shares), by_group.means

    def _decoded(self, predictions: Floats) -> Floats:
        """Folds number the classes that they know first."""
        if not self.measure.is_of_labels:
            return predictions
        decoded, codes = np.empty_like(predictions), self.target.values
        for (train, _), own in zip(self.folds.splits, self.folds.parts, strict=True):
            labels = known_first(np.unique(codes[_counted(train, self.measure.weights)]), self.target.n_classes)
            decoded[:, own] = labels[predictions[:, own].astype(np.int64)]
        return decoded

    def _fold_shares(self) -> list[float]:
        """How much each fold counts: alike, but probabilities are averaged over rows."""
        if not self.measure.is_probability:
            return [1.0] * len(self.folds.splits)
        if not self.measure.is_weighted:
            return [float(len(test)) for _, test in self.folds.splits]
        return [float(self.measure.weights[test].sum()) for _, test in self.folds.splits]

    def fold_models(self) -> Iterator[FoldModel]:
        """Those kept, or made again, one after the other."""
        codes = self.target.values
        made = (FoldModel.of(self.X, codes, split, self.measure, keep=False) for split in self.folds.splits)
        yield from self.models or made

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        from .naive_bayes_device import DeviceNaiveBayes

        return DeviceNaiveBayes(self, device)


@dataclass(frozen=True)
class FoldModel:
    """What one fold's training rows say of every feature, and the rows it is tested on.

    Moments are of the ``classes`` among the training rows, ``truth`` counts those first.
    ``columns`` holds the test rows (features, rows), also in standard units; both None if they are to be gathered from
    X.
    """

    moments: kernels.Gaussians
    rows: NDArray[np.int64]
    truth: NDArray[np.int64]
    classes: NDArray[np.int64]
    tests: ScoredTests
    columns: Any = None
    standard: kernels.Standard | None = None

    @classmethod
    def of(cls, X: Any, codes: NDArray[np.int64], split: Split, measure: Measure, *, keep: bool) -> FoldModel:
        train, test = split[0], np.sort(split[1])
        classes, share, mean, variance = class_moments(X, codes, train, measure.weights)
        pooled = pooled_variance(mean, variance, share)
        if measure.is_weighted:  # the smoothing of GaussianNB is a share of the variance without weights
            _, plain_share, plain_mean, plain_variance = class_moments(X, codes, train)
            pooled = pooled_variance(plain_mean, plain_variance, plain_share)
        moments = kernels.Gaussians(mean, variance, pooled, np.log(share))
        number = np.empty(codes.max() + 1, np.int64)
        number[known_first(classes, len(number))] = np.arange(len(number))
        truth = number[codes[test]]
        known = moments, test, truth, classes, measure.tests(truth, measure.of_rows(test), len(number))
        if sp.issparse(X):
            return cls(*known, X[test].astype(np.float64, copy=False))
        if not keep:
            return cls(*known)
        columns = np.empty((X.shape[1], len(test)))
        for part, matrix in column_blocks(X):
            kernels.take_columns(matrix, test, np.arange(matrix.shape[1]), columns[part])
        return cls(*known, columns, _standard(columns, moments, share))

    @property
    def known_truth(self) -> NDArray[np.int64]:
        """The classes of the test rows, -1 for those without training rows."""
        return np.where(self.truth < len(self.moments.log_prior), self.truth, -1)

    def scores(self, X: Any, subsets: Subsets, smoothing: float, by_group: Outcomes) -> Floats:
        """The score of the test rows, for each subset."""
        scores = np.empty(len(subsets))
        for some in self.tests.pieces(len(subsets)):
            own = Subsets(subsets.indices, subsets.offsets[some.start : some.stop + 1])
            self.tests.score(self._predicted(X, own, smoothing), by_group.of_subsets(some), scores[some])
        return scores

    def _predicted(self, X: Any, subsets: Subsets, smoothing: float) -> Floats:
        """Predictions (subsets, test rows)."""
        features, offsets, predicted = subsets.indices, subsets.offsets, np.empty((len(subsets), len(self.rows)))
        model = self.moments, smoothing, self.tests.code
        if self.standard is not None:
            known = self.columns, self.standard, self.truth
            kernels.predict_by_standard(*known, features, offsets, *model, predicted)
        elif self.columns is not None:
            stored = (self.columns.data, self.columns.indices, self.columns.indptr)
            kernels.predict_sparse(*stored, self.truth, features, offsets, *model, predicted)
        else:
            room = np.empty((int(subsets.sizes.max()), len(self.rows)))
            places = np.arange(len(room), dtype=np.int32)
            for k, subset in enumerate(subsets):
                matrix, own = X.gather(subset) if isinstance(X, Stored) else (X, subset)
                kernels.take_columns(matrix, self.rows, own, room)
                one, line = np.array([0, len(subset)]), predicted[k : k + 1]
                kernels.predict_dense(room, self.truth, places, subset, one, *model, line)
        return predicted


@dataclass(frozen=True)
class LeftOutBayes(BoundLeftOut):
    """Gaussian naive Bayes with one row left out."""

    var_smoothing: float

    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None:
        (lines, indices, offsets), target, measure = probes, self.target, self.measure
        tests = measure.tests_of(self.folds, target.values, target.n_classes)
        model = target.values, measure.weights, target.n_classes, self.var_smoothing, measure.code
        for some in tests.pieces(len(scores)):
            predicted, own = np.empty((len(scores[some]), self.folds.n_rows)), offsets[some.start : some.stop + 1]
            bayes_left_out.predict_one_out(lines, indices, own, *model, predicted)
            tests.score(predicted, by_group.of_subsets(some), scores[some])

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        from .naive_bayes_device import DeviceLeftOutBayes

        return DeviceLeftOutBayes(self, device)


def _standard(columns: Floats, moments: kernels.Gaussians, share: Floats) -> kernels.Standard:
    """Test rows and moments in units in which the training rows have mean 0 and variance 1."""
    pooled = np.where(moments.pooled > 0, moments.pooled, np.inf)[:, None]
    origin = moments.mean @ share
    short, reach = np.empty(columns.shape, np.float32), np.empty(len(columns), np.float32)
    kernels.to_standard(columns, origin, moments.pooled, short, reach)
    mean = (moments.mean - origin[:, None]) / np.sqrt(pooled)
    with np.errstate(divide="ignore", over="ignore"):
        precision, logarithm = pooled / moments.variance, np.log(moments.variance / pooled)
    return kernels.Standard(short, reach, mean, precision, logarithm)


def class_moments(
    X: Any, codes: NDArray[np.int64], rows: NDArray[np.int64], weights: Floats = NO_WEIGHTS
) -> tuple[Any, Floats, Floats, Floats]:
    """The classes among the rows, their shares, and mean and variance of every column in each (features, classes).

    With weights of all rows of X, those of weight 0 are no rows at all.
    """
    rows = _counted(rows, weights)
    classes, counts = np.unique(codes[rows], return_counts=True)
    sizes = np.bincount(codes[rows], weights[rows])[classes] if len(weights) else counts
    mean, variance = np.empty((X.shape[1], len(classes))), np.empty((X.shape[1], len(classes)))
    if sp.issparse(X):
        data = X.data.astype(np.float64, copy=False)
        class_of = np.searchsorted(classes, codes)
        times = np.bincount(rows, weights[rows] if len(weights) else None, minlength=len(codes))
        distinct = np.bincount(codes[times > 0])[classes]
        kernels.sparse_moments(data, X.indices, X.indptr, class_of, times, distinct, sizes, mean, variance)
    else:
        by_class = rows[np.argsort(codes[rows], kind="stable")]
        starts = np.concatenate([[0], np.cumsum(counts)])
        for part, matrix in column_blocks(X):
            kernels.dense_moments(matrix, by_class, starts, weights, mean[part], variance[part])
    return classes, sizes / (sizes.sum() if len(weights) else len(rows)), mean, variance


def known_first(classes: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """The classes that a fold trains on, then all others."""
    return np.concatenate([classes, np.setdiff1d(np.arange(n_classes), classes)])


def _counted(rows: NDArray[np.int64], weights: Floats) -> NDArray[np.int64]:
    return rows[weights[rows] > 0] if len(weights) else rows


def pooled_variance(mean: Floats, variance: Floats, share: Floats) -> Floats:
    """The variance of every column over all classes together; exactly 0 for a constant one."""
    away = mean - mean[:, :1]
    return (variance + (away - (away @ share)[:, None]) ** 2) @ share
