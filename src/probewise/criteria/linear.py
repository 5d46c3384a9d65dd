"""Cross-validated ridge regression scores of feature subsets, in closed form, on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..kernels import ridge, ridge_sums
from ..validation.errors import ParameterError
from ..validation.tables import SQUARED
from .base import Criterion, Floats
from .columns import BoundToColumns, FeatureMajor, Missing, Probes, about_middles, require_fillable
from .scoring import bind_target

NO_WEIGHT = 1e-200  # stands for a weight of 0, relative to the largest: the row is predicted and changes nothing


@dataclass(eq=False, repr=False)
class Linear(Criterion):
    """Cross-validated score of a ridge classifier (accuracy) or ridge regression (R^2).

    Equal to ``cross_val_score`` of scikit-learn's ``RidgeClassifier(alpha)`` or ``Ridge(alpha)`` on the same folds, up
    to rounding; all sums are in float64. Columns of any units may be mixed: if pivots show that too many digits were
    lost, the probe is solved again by a QR factorization. On text, J is close to that of a linear SVM.

    ``scoring`` and ``cv`` are as in `KNN`. ``sample_weight`` counts in the fit and in the score.

    With ``scoring="probability"`` J is the mean, over tested rows, of the probability of the row's own class,
    softmax(2 f), where the decisions f are fitted to targets 1 and -1.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty on the squared weights, above 0; in the units of the data, so scale columns of different units.
    task, missing
        As in `KNN`, which has an example.
    """

    streams = True
    several_targets = True
    widths = SQUARED

    alpha: float = 1.0
    _: KW_ONLY
    task: str = "auto"
    missing: str | None = None

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundLinear:
        if not self.alpha > 0:
            raise ParameterError(f"alpha={self.alpha!r} must be above 0; a small value is nearly least squares")
        require_fillable(X, self.missing)
        estimators = ("RidgeClassifier()", "Ridge()")
        target, folds, measure = bind_target(self, y, cv, groups, scoring, sample_weight, estimators=estimators)
        columns, missing = Missing.in_columns(about_middles(X) if sp.issparse(X) else X, folds, self.missing)
        bound = BoundLinear(columns, target, folds, measure, missing, float(self.alpha))
        if bound.has_sums and not columns.is_sparse:
            _ = bound.moments  # once, before threads share the criterion
        return bound


@dataclass(frozen=True)
class BoundLinear(BoundToColumns):
    """Rows are in fold order if each is tested once, otherwise in their own order."""

    alpha: float

    def __call__(self, subsets: Subsets) -> Floats:
        if self.has_sums or len(self.missing.columns):
            scores = self._scores_by_kind(subsets)
        else:
            scores = self.XT.scored(subsets, self._scores)
        for k in np.flatnonzero(np.isnan(scores)).tolist():
            scores[k] = self._score_by_qr(subsets[k])
        return scores

    def _scores_by_kind(self, subsets: Subsets) -> Floats:
        """J of subsets by sums of folds, with missing values, or neither; NaN where too few digits are left."""
        scores = np.empty(len(subsets))
        is_incomplete = self.missing.in_each(subsets.indices, subsets.offsets)
        by_sums = ~is_incomplete & (subsets.sizes < self.folds.n_rows) & self.has_sums
        rest = ~is_incomplete & ~by_sums
        if by_sums.any():
            scores[by_sums] = self._scores_by_sums(subsets.only(by_sums))
        if rest.any():
            scores[rest] = self.XT.scored(subsets.only(rest), self._scores)
        for k in np.flatnonzero(is_incomplete).tolist():
            scores[k] = self._score_filled(subsets[k])
        return scores

    def _scores(self, probes: Probes) -> Floats:
        """J of probes; NaN where too few digits are left."""
        XT, indices, offsets = probes
        scores = np.empty(len(offsets) - 1)
        for part in self.scored_tests.pieces(len(scores), len(self.fit.targets)):
            decisions = np.empty((part.stop - part.start, self.folds.borders[-1], len(self.fit.targets)))
            own = offsets[part.start : part.stop + 1]
            are_sure = ridge.decide(XT, indices, own, self._problems, self.fit, decisions)
            scores[part] = np.where(are_sure, self._scores_of_decisions(decisions), np.nan)
        return scores

    def _scores_of_decisions(self, decisions: Floats) -> Floats:
        if self.target.n_targets > 1:
            return self.score(decisions.transpose(0, 2, 1).reshape(len(decisions), -1))
        predicted = np.empty(decisions.shape[:2])
        ridge_sums.predict(decisions, self.folds.borders, self._tests_for_kernels, predicted)
        return self.score(predicted)

    @cached_property
    def has_sums(self) -> bool:
        """Whether sums of folds are used, for sparse X, or of all features, if there are far fewer than rows."""
        n_folds, n_rows = len(self.folds.splits), self.folds.n_rows
        is_tall = self.XT.are_few and not len(self.missing.columns) and n_folds * self.columns.n_features <= n_rows
        is_possible = self.folds.is_partition and n_folds <= ridge.MOST_SEGMENTS and self.target.n_targets == 1
        return is_possible and (self.columns.is_sparse or is_tall)

    @cached_property
    def moments(self) -> tuple[Floats, Floats, Floats]:
        """Moments of all features in each fold."""
        everything = Subsets.of([np.arange(self.columns.n_features)])
        XT = next(self.XT.batches(everything))[1]
        return ridge_sums.moments(XT, self.folds.borders, self.fit)

    def _scores_by_sums(self, subsets: Subsets) -> Floats:
        scores, numbers = np.empty(len(subsets)), np.arange(len(subsets))
        for part in self.scored_tests.pieces(len(subsets)):
            own = subsets.only((numbers >= part.start) & (numbers < part.stop))
            predicted, are_sure = np.empty((len(own), self.folds.n_rows)), np.ones(len(own), bool)
            self._predict_by_sums(own, predicted, are_sure)
            scores[part] = np.where(are_sure, self.score(predicted), np.nan)
        return scores

    def _predict_by_sums(self, subsets: Subsets, predicted: Floats, are_sure: NDArray[np.bool_]) -> None:
        borders, tests, X = self.folds.borders, self._tests_for_kernels, self.columns.X
        if self.columns.is_sparse:
            probes = (X.data, X.indices, X.indptr), self.columns.place, subsets.indices, subsets.offsets
            ridge_sums.predict_sparse(*probes, borders, self.fit, tests, predicted, are_sure)
            return
        for part, XT, indices, offsets in self.XT.batches(subsets):
            features = subsets.indices[subsets.offsets[part.start] : subsets.offsets[part.stop]]
            columns = XT, indices, features, offsets
            ridge_sums.predict_tall(*columns, self.moments, borders, self.alpha, tests, predicted[part], are_sure[part])

    def _score_filled(self, subset: NDArray[np.int32]) -> float:
        """J of a subset with missing values, which each fold fills differently; NaN if too few digits are left."""
        decisions = np.empty((1, self.folds.borders[-1], len(self.fit.targets)))
        probe, start, is_sure = (np.arange(len(subset), dtype=np.int32), np.array([0, len(subset)])), 0, True
        for problem, values in zip(self._splits_as_problems, self._filled(subset), strict=True):
            own = decisions[:, start : start + problem.n_tested]
            is_sure &= bool(ridge.decide(np.ascontiguousarray(values.T), *probe, [problem], self.fit, own)[0])
            start += problem.n_tested
        return float(self._scores_of_decisions(decisions)[0]) if is_sure else np.nan

    def _score_by_qr(self, subset: NDArray[np.int32]) -> float:
        """J from a QR factorization of the columns, which loses half as many digits and takes far longer."""
        decisions = []
        for problem, values in zip(self._splits_as_problems, self._filled(subset), strict=True):
            train, test = np.split(problem.rows, problem.borders[1:2])
            targets, roots = self.fit.targets[:, train], self.fit.roots[train]
            decisions.append(ridge.by_qr(values[train], targets, roots, self.alpha, values[test]))
        return float(self._scores_of_decisions(np.concatenate(decisions)[None])[0])

    def _filled(self, subset: NDArray[np.int32]) -> Iterator[Floats]:
        """The columns of a subset (rows, features), with missing values filled for each fold in turn."""
        values = np.empty((len(self.columns.rows), len(subset)))
        self.columns.take(subset, values)
        rows, places = np.nonzero(np.isnan(values))
        for fold in range(len(self.folds.splits)):
            values[rows, places] = self.missing.fills[fold, self.missing.number[subset[places]]]
            yield values

    @cached_property
    def XT(self) -> FeatureMajor:
        return FeatureMajor(self.columns)

    @cached_property
    def fit(self) -> ridge.Fit:
        """Targets are 1 or -1 for each class (for two classes only of the second), or y minus its mean."""
        values, weights = self.truth[self.columns.rows], self.measure.weights
        weights = weights if self.measure.is_weighted else np.ones(len(values))
        roots = np.sqrt(np.maximum(weights, NO_WEIGHT * weights.max()))
        if self.target.n_classes:
            labels = np.arange(self.target.n_classes) if self.target.n_classes > 2 else np.array([1])
            values = np.where(values == labels[:, None], 1.0, -1.0)
        targets = np.ascontiguousarray(values.T) if self.target.n_targets > 1 else np.atleast_2d(values)
        return ridge.Fit(targets, roots[self.columns.rows], self.alpha)

    @property
    def truth(self) -> NDArray[Any]:
        """Class codes, or y minus its mean."""
        values = self.target.values
        return values if self.target.n_classes else values - values.mean(axis=0)

    def _decoded(self, predictions: Floats) -> Floats:
        return predictions if self.target.n_classes else predictions + self.target.values.mean()

    @cached_property
    def _tests_for_kernels(self) -> tuple[Any, ...]:
        return self.known, self.scored_tests.truth, self.measure.code, self.target.n_classes

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Classes that each fold trains on (folds, classes)."""
        if not self.target.n_classes:
            return np.ones((len(self.folds.splits), 1), bool)
        is_own = self.target.values[:, None] == np.arange(self.target.n_classes)
        if self.measure.is_weighted:
            is_own &= self.measure.weights[:, None] > 0
        if self.folds.is_loo:
            return is_own.sum(axis=0) > is_own
        return np.array([is_own[train].any(axis=0) for train, _ in self.folds.splits])

    @cached_property
    def _problems(self) -> list[ridge.Problem]:
        if not self.folds.is_partition:
            return list(self._splits_as_problems)
        return [ridge.Problem(np.arange(self.folds.n_rows), self.folds.borders, 0, True)]

    @property
    def _splits_as_problems(self) -> Iterator[ridge.Problem]:
        """Each split as a problem of its own: rows to train on, then rows to test."""
        place = np.empty(self.folds.n_rows, np.int64)
        place[self.columns.rows] = np.arange(self.folds.n_rows)
        for train, test in self.folds.splits:
            rows = np.concatenate([place[train], place[np.sort(test)]])
            yield ridge.Problem(rows, np.array([0, len(train), len(rows)]), 1, False)

    def to(self, device: str) -> Any:
        """The criterion on a torch device: a function of (indices, offsets)."""
        from .linear_device import DeviceLeftOutLinear, DeviceLinear

        return (DeviceLeftOutLinear if self.folds.is_loo else DeviceLinear)(self, device)
