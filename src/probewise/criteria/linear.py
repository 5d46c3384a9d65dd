"""Cross-validated ridge regression scores of feature subsets, in closed form, on CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..kernels import linear as kernels
from ..validation.tables import SQUARED
from .base import Criterion, Floats
from .columns import BoundToColumns, ColumnLines, Missing, SubsetColumns, about_middles, require_fillable
from .linear_designs import DenseDesign, Design, GrownDesign, Moments, Rows, SparseDesign
from .linear_left_out import LeftOutLinear
from .scoring import MOST_PREDICTIONS, NO_GROUPS, GroupsOfTests, Outcomes, bind_target

STORED_FOLDS = 16  # folds whose sums are kept; with more, these would be larger than the data, and are made twice
ROWS_AT_A_TIME = 1024  # rows whose sums are added up in the cache
FEW_PRODUCTS = 2**20  # n d^2, for which a whole probe takes less time than Python does to let one grow


class Linear(Criterion):
    """Cross-validated score of a ridge classifier (accuracy) or ridge regression (R^2).

    Equal to ``cross_val_score`` of scikit-learn's ``RidgeClassifier(alpha)`` or ``Ridge(alpha)`` on the same folds, to
    rounding; all sums are in float64. Nothing is fitted twice: products of the probe's columns are summed per fold,
    what a fold leaves for training is the sum of the others, and one Cholesky factor serves all classes. With as many
    features as rows or more it is that of the products of rows, one for all folds. Columns of any units may stand
    beside each other: where pivots say that digits were lost, the probe is solved again by a QR factorisation.
    On text its J goes with that of a linear SVM.

    ``scoring`` of ``bind``, or of the selector, is "accuracy" for classes or "r2" for numbers if None, or any other
    score of predictions that scikit-learn knows by name or as a scorer. ``sample_weight`` counts in the fit and in the
    score.

    With ``scoring="probability"`` J is the mean, over tested rows, of the share of the row's own class in
    softmax(2 f), f being the decisions, fitted to 1 and -1. With ``cv="loo"`` each row is left out by itself, in
    closed form, and a score is that of all rows together.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty on the squared weights, above 0; in the units of the data, so scale columns of different units.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is regression if y is continuous, that is has fractions.
    missing : {"mean", "median"} or None, default=None
        What stands in for NaN in dense X: mean or median of the column among the training rows of each fold, as a
        ``SimpleImputer`` before the ridge model would fill it (0 where a fold knows no value). None refuses NaN, and
        ``cv="loo"`` takes none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.criteria import Linear
    >>> from probewise.engine.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> Linear(alpha=1.0).bind(X, y, cv=3)(Subsets.of([[1], [0, 1, 2, 3]])).round(3)
    array([0.56 , 0.813])
    """

    streams = True
    widths = SQUARED

    def __init__(self, alpha: float = 1.0, *, task: str = "auto", missing: str | None = None) -> None:
        self.alpha = alpha
        self.task = task
        self.missing = missing

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundLinear | LeftOutLinear:
        if not self.alpha > 0:
            raise ValueError(f"alpha={self.alpha!r} must be above 0; a small value is nearly least squares")
        require_fillable(X, self.missing)
        estimators = ("RidgeClassifier()", "Ridge()")
        target, folds, measure = bind_target(self, y, cv, groups, scoring, sample_weight, estimators=estimators)
        X = about_middles(X) if sp.issparse(X) else X
        columns = SubsetColumns(X, folds.row_order, missing=self.missing is not None)
        missing = Missing.of(columns, folds, self.missing)
        if folds.is_loo or measure.is_probability:
            return LeftOutLinear(ColumnLines(columns), target, folds, measure, float(self.alpha), missing)
        bound = BoundLinear(columns, target, folds, measure, missing, float(self.alpha))
        return replace(bound, sums=bound.all_sums())


@dataclass(frozen=True)
class BoundLinear(BoundToColumns):
    """X, seen with its rows in fold order if the folds are a partition, and the target in that order.

    A column with missing values is kept as two: its values less the centre, 0 where they are missing, and an indicator
    of these. What a fold makes of it is their sum, the indicator times what fills it in that fold; so sums of rows
    still add up. Indicators come after all columns.
    """

    alpha: float
    sums: tuple[Moments, ...] = ()

    def _scores(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        scores, by_group = np.empty(len(subsets)), groups.outcomes(len(subsets))
        by_lines = self._by_lines(subsets.sizes)
        if by_lines.any():
            scores[by_lines], by_group.means[by_lines] = self.lines._scores(subsets.only(by_lines), groups)
        rest = np.flatnonzero(~by_lines)
        if self.sums:
            for some in self._pieces(rest):
                own = Subsets.of([subsets[k] for k in some])
                scores[some], by_group.means[some] = self._scores_from_sums(own, groups)
        elif len(rest):
            design = self._design(subsets.only(~by_lines))
            for k in rest.tolist():
                scores[k] = self._score(design.load(subsets[k]), subsets[k], by_group.of_subsets(k))
        return scores, by_group.means

    def _by_lines(self, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which probes are scored from columns as lines: where they are few, and those with more features than rows."""
        held = self.lines.lines.are_few and not self.columns.is_sparse and not self.sums
        return np.full(len(sizes), held) | (sizes >= self.folds.n_rows)

    @cached_property
    def lines(self) -> LeftOutLinear:
        """The same criterion, from lines."""
        known = self.target, self.folds, self.measure, self.alpha, self.missing
        return LeftOutLinear(ColumnLines(self.columns), *known)

    @cached_property
    def targets(self) -> NDArray[Any]:
        return self.lines.truth[self.columns.rows]

    @cached_property
    def weights(self) -> Floats:
        return self.measure.of_rows(self.columns.rows)

    def _plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """From lines, which candidates share, where these are little work; else scatters only gain a row."""
        n, size = self.folds.n_rows, len(subset) + 1
        are_lines = not (self.columns.is_sparse or self.sums)
        if size > n or (are_lines and n * size**2 <= FEW_PRODUCTS):
            return self.lines.plus_each(subset, candidates)
        is_incomplete = self.missing.any_in(candidates) or self.missing.any_in(subset)
        from_scratch = self.columns.is_sparse or not self.folds.is_partition or self.measure.of_predictions is not None
        if from_scratch or not len(subset) or is_incomplete:
            return super()._plus_each(subset, candidates)
        grown = GrownDesign(DenseDesign(self, size).load(subset), self.folds.parts, candidates)
        subsets = (np.append(subset, candidate) for candidate in candidates)
        none = NO_GROUPS.outcomes(1).of_subsets(0)
        return np.array([self._score(grown.load(k), own, none) for k, own in enumerate(subsets)], dtype=np.float64)

    def _decoded(self, predictions: Floats) -> Floats:
        return self.lines._decoded(predictions)

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        return self.lines.to(device)

    def all_sums(self) -> tuple[Moments, ...]:
        """Moments of each fold's training rows over all features, where they are not much larger than the data."""
        n_columns, parts = self.columns.n_features + len(self.missing.columns), self.folds.parts
        if self.columns.is_sparse or not self.folds.is_partition or len(parts) * n_columns > self.folds.n_rows:
            return ()
        kept = {part.start: self._sums_by_pieces(part) for part in parts}
        return tuple(train for _, train in _all_but_each(parts, lambda run: reduce(add, (kept[p.start] for p in run))))

    def _sums_by_pieces(self, part: slice) -> Moments:
        pieces = []
        for start in range(part.start, part.stop, ROWS_AT_A_TIME):
            rows = slice(start, min(start + ROWS_AT_A_TIME, part.stop))
            design = DenseDesign(replace(self, columns=self.columns.only(rows)), self.columns.n_features)
            design.targets, design.weights = self.targets[rows], self.weights[rows]
            pieces.append(design.load(np.arange(self.columns.n_features, dtype=np.int32)).sums(slice(None)))
        return reduce(add, pieces)

    def _scores_from_sums(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        n_folds, n_outputs = len(self.sums), self._n_outputs
        weights = np.empty(len(subsets.indices) * n_folds * n_outputs)
        intercepts = np.empty((len(subsets), n_folds, n_outputs))
        position, is_sure = 0, np.ones(len(subsets), bool)
        for number, subset in enumerate(subsets):
            incomplete = np.flatnonzero(self.missing.number[subset] >= 0)
            which = self.missing.number[subset[incomplete]]
            known = np.concatenate([subset, self.columns.n_features + which])
            for fold, train in enumerate(self.sums):
                own = weights[position : position + len(subset) * n_outputs].reshape(len(subset), n_outputs)
                filled = train.only(known).filled(incomplete, self.missing.fills[fold, which])
                is_sure[number] &= filled.fit(self.target.n_classes, self.alpha, own, intercepts[number, fold])
                position += own.size
        by_group = groups.outcomes(len(subsets))
        scores = self._batch_scores(subsets, weights, intercepts, by_group)
        for number in np.flatnonzero(~is_sure).tolist():
            by_group.means[number] = 0.0
            scores[number] = self.lines.score_exactly(subsets[number], by_group.of_subsets(number))
        return scores, by_group.means

    def _batch_scores(self, subsets: Subsets, weights: Floats, intercepts: Floats, by_group: Outcomes) -> Floats:
        columns, measure, n_classes = self.columns, self.measure, self.target.n_classes
        scores, predictions = np.empty(len(subsets)), np.empty((len(subsets), self.folds.n_rows))
        matrix, indices, centers = columns.held(subsets.indices)
        missing = self.missing.number[subsets.indices] if len(self.missing.columns) else self.missing.columns
        kernels.predict_probes(
            matrix, columns.rows, self.folds.borders, centers, indices, subsets.offsets, missing, self.missing.fills,
            weights, intercepts, self.lines.known, measure.is_of_labels, predictions,
        )  # fmt: skip
        measure.tests(self.targets, self.weights, n_classes, self.folds.borders).score(predictions, by_group, scores)
        return scores

    def _pieces(self, numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """As many at once as there is room for their predictions; from a store, which would read all, one."""
        at_once = 1 if self.columns.is_stored else max(1, MOST_PREDICTIONS // self.folds.n_rows)
        return [numbers[start : start + at_once] for start in range(0, len(numbers), at_once)]

    @property
    def _n_outputs(self) -> int:
        """Decisions per row: one per class, but one for two classes or a number."""
        return self.target.n_classes if self.target.n_classes > 2 else 1

    def _design(self, subsets: Subsets) -> Design:
        if self.columns.is_sparse and self.folds.is_partition:
            return SparseDesign(self, subsets)
        return DenseDesign(self, int(subsets.sizes.max(initial=1)))

    def _score(self, design: Design, subset: NDArray[np.int32], by_group: Outcomes) -> float:
        scores = []
        for fold, (test, train) in enumerate(self._trainings(design)):
            fills = self.missing.fills[fold, design.which]
            intercepts = np.empty(self._n_outputs)
            weights = np.empty((design.size, self._n_outputs))
            filled = train.filled(design.incomplete, fills)
            if not filled.fit(self.target.n_classes, self.alpha, weights, intercepts):
                by_group.means[:] = 0.0
                return self.lines.score_exactly(subset, by_group)
            if len(fills):
                weights = np.vstack([weights, fills[:, None] * weights[design.incomplete]])
            own = by_group.of_tests(self.folds.parts[fold])
            scores.append(design.score(test, weights, intercepts, self.lines.known[fold], own))
        return float(np.mean(scores))

    def _trainings(self, design: Design) -> Iterator[tuple[Rows, Any]]:
        """Test rows and the moments of the training rows, split by split."""
        if not self.folds.is_partition:
            for train, test in self.folds.splits:
                yield np.sort(test), design.sums(train)
            return
        parts = self.folds.parts
        if len(parts) > STORED_FOLDS:
            yield from _all_but_each(parts, lambda run: design.sums(slice(run[0].start, run[-1].stop)))
            return
        kept = {part.start: design.sums(part) for part in parts}
        yield from _all_but_each(parts, lambda run: reduce(add, (kept[part.start] for part in run)))


def _all_but_each(
    parts: list[slice], total: Callable[[list[slice]], Any], outside: Any = None
) -> Iterator[tuple[slice, Any]]:
    """Each part with the total of all others, by halves: sums from which a part is subtracted would lose digits."""
    if len(parts) == 1:
        yield parts[0], outside
        return
    half = len(parts) // 2
    for own, rest in ((parts[:half], parts[half:]), (parts[half:], parts[:half])):
        more = total(rest)
        yield from _all_but_each(own, total, more if outside is None else outside + more)
