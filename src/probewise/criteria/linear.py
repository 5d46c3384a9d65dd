"""Cross-validated ridge regression scores of feature subsets, in closed form, on CPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from operator import add, sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.tables import SQUARED
from ..kernels import linear as kernels
from ..probing.probes import Subsets
from .base import Criterion, Floats
from .columns import ColumnLines, SubsetColumns
from .linear_left_out import LeftOutLinear
from .missing import BoundToColumns, Missing, require_fillable
from .scoring import bind_target

STORED_FOLDS = 16  # folds whose sums are kept; with more, these would be larger than the data, and are made twice
ROWS_AT_A_TIME = 1024  # rows whose sums are added up in the cache
MOST_PREDICTIONS = 2**22  # held at a time: 32 MiB
Rows = slice | NDArray[np.int64]


class Linear(Criterion):
    """Cross-validated score of a ridge classifier (accuracy) or ridge regression (R^2).

    Equal to ``cross_val_score`` of scikit-learn's ``RidgeClassifier(alpha)`` or ``Ridge(alpha)`` on the same folds, to
    rounding; all sums are in float64. Nothing is fitted twice: the Gram matrix of the probe's columns is summed per
    fold, what a fold leaves for training is the whole less the fold, and one Cholesky factor serves all classes.
    On text its J goes with that of a linear SVM.

    ``scoring`` of ``bind``, or of the selector, is "accuracy", "balanced_accuracy", "f1_macro" or "roc_auc" for
    classes, "r2" or "neg_mean_squared_error" for numbers, the first of each if None. ``sample_weight`` counts in the
    fit and in the score.

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
        ``SimpleImputer`` before the ridge model would fill it (0 where a fold knows no value). None refuses NaN.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.criteria import Linear
    >>> from probewise.probing.probes import Subsets
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
        order = folds.order if folds.is_partition else np.arange(folds.n_rows)
        columns = SubsetColumns(X, order, missing=self.missing is not None)
        missing = Missing.of(columns, folds, self.missing)
        if folds.is_loo or measure.is_probability:
            return LeftOutLinear(ColumnLines(columns), target, folds, measure, float(self.alpha), missing)
        bound = BoundLinear(columns, target, folds, measure, missing, float(self.alpha), folds.is_partition)
        return replace(bound, sums=bound.all_sums())


@dataclass(frozen=True)
class BoundLinear(BoundToColumns):
    """X, seen with its rows in fold order if the folds are a partition, and the target in that order.

    A column with missing values is kept as two: its values less the centre, 0 where they are missing, and an indicator
    of these. What a fold makes of it is their sum, the indicator times what fills it in that fold; so sums of rows
    still add up. Indicators come after all columns.
    """

    alpha: float
    is_partition: bool
    sums: tuple[Sums, ...] = ()

    def __call__(self, subsets: Subsets) -> Floats:
        if self.sums and self.columns.is_stored:  # a batch together would hold all its columns
            return np.concatenate([self._scores_from_sums(Subsets.of([subset])) for subset in subsets])
        if self.sums:
            return np.concatenate([self._scores_from_sums(piece) for piece in self._pieces(subsets)])
        scores, by_lines = np.empty(len(subsets)), self._by_lines(subsets.sizes)
        if by_lines.any():
            scores[by_lines] = self.lines(subsets.only(by_lines))
        if not by_lines.all():
            rest = subsets.only(~by_lines)
            design = self._design(rest)
            scores[~by_lines] = [self._score(design.load(subset)) for subset in rest]
        return scores

    def _by_lines(self, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which probes are scored from columns as lines: all where these are held, and those of few rows."""
        held = self.lines.lines.are_held and not self.columns.is_sparse
        return np.full(len(sizes), held) | (sizes >= self.folds.n_rows)

    @cached_property
    def lines(self) -> LeftOutLinear:
        """The same criterion, from lines."""
        return LeftOutLinear(
            ColumnLines(self.columns), self.target, self.folds, self.measure, self.alpha, self.missing
        )

    def _plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """Gram matrices only gain a row."""
        is_incomplete = self.missing.any_in(candidates) or self.missing.any_in(subset)
        if self.columns.is_sparse or not self.is_partition or not len(subset) or is_incomplete:
            return super()._plus_each(subset, candidates)
        grown = GrownDesign(DenseDesign(self, len(subset) + 1).load(subset), self._parts(), candidates)
        return np.array([self._score(grown.load(k)) for k in range(len(candidates))], dtype=np.float64)

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        from .linear_device import DeviceLinear

        return DeviceLinear(self, device)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Which classes each fold has rows, and weight, of to train on: it predicts no other."""
        if self.target.classes is None:
            return np.ones((len(self.folds.splits), 1), bool)
        counted = self.measure.weights > 0 if self.measure.is_weighted else np.ones(self.folds.n_rows, bool)
        codes, n_classes = self.target.values, len(self.target.classes)
        trained = (train[counted[train]] for train, _ in self.folds.splits)
        return np.array([np.bincount(codes[rows], minlength=n_classes) > 0 for rows in trained])

    def all_sums(self) -> tuple[Sums, ...]:
        """Sums of each fold's training rows over all features, where they are not much larger than the data."""
        n_columns, parts = self.columns.n_features + len(self.missing.columns), self._parts()
        if self.columns.is_sparse or not self.is_partition or len(parts) * n_columns > self.folds.n_rows:
            return ()
        kept = [self._sums_by_pieces(part) for part in parts]
        whole = sum(kept[1:], start=kept[0])
        return tuple(whole - part for part in kept)

    def _sums_by_pieces(self, part: slice) -> Sums:
        pieces = []
        for start in range(part.start, part.stop, ROWS_AT_A_TIME):
            rows = slice(start, min(start + ROWS_AT_A_TIME, part.stop))
            design = DenseDesign(replace(self, columns=self.columns.only(rows)), self.columns.n_features)
            design.targets, design.weights = self.targets[rows], self.weights[rows]
            pieces.append(design.load(np.arange(self.columns.n_features, dtype=np.int32)).sums(slice(None)))
        return sum(pieces[1:], start=pieces[0])

    def _scores_from_sums(self, subsets: Subsets) -> Floats:
        n_folds, n_outputs = len(self.sums), self._n_outputs
        weights = np.empty(len(subsets.indices) * n_folds * n_outputs)
        intercepts = np.empty((len(subsets), n_folds, n_outputs))
        system = np.empty((int(subsets.sizes.max(initial=1)), int(subsets.sizes.max(initial=1)) + n_outputs + 1))
        position = 0
        for number, subset in enumerate(subsets):
            incomplete = np.flatnonzero(self.missing.number[subset] >= 0)
            which = self.missing.number[subset[incomplete]]
            known = np.concatenate([subset, self.columns.n_features + which])
            for fold, train in enumerate(self.sums):
                own = weights[position : position + len(subset) * n_outputs].reshape(len(subset), n_outputs)
                filled = train.only(known).filled(incomplete, self.missing.fills[fold, which])
                self._fit(filled, system, own, intercepts[number, fold])
                position += own.size
        return self._batch_scores(subsets, weights, intercepts)

    def _batch_scores(self, subsets: Subsets, weights: Floats, intercepts: Floats) -> Floats:
        columns, targets, parts, measure = self.columns, self.targets, self._parts(), self.measure
        borders = self.borders
        scores = np.empty((len(subsets), len(parts)))
        predictions = np.empty((0, 0) if measure.is_plain else (len(subsets), int(np.diff(borders).max())))
        matrix, indices, centers = columns.held(subsets.indices)
        missing = self.missing.number[subsets.indices] if len(self.missing.columns) else self.missing.columns
        kernels.batch_scores(
            matrix, columns.rows, borders, centers, indices, subsets.offsets, missing, self.missing.fills,
            weights, intercepts, self.allowed, targets, measure.code, self.weights, self.target.n_classes,
            predictions, scores,
        )  # fmt: skip
        if measure.is_plain and self.target.is_classification:
            scores /= np.diff(borders)
        elif measure.is_plain:
            scatter = np.array([((targets[part] - targets[part].mean()) ** 2).sum() for part in parts])
            with np.errstate(divide="ignore", invalid="ignore"):
                scores = np.where(scatter > 0, 1 - scores / scatter, np.where(scores == 0, 1.0, 0.0))
        return scores.mean(axis=1)

    def _pieces(self, subsets: Subsets) -> list[Subsets]:
        """All at once, or as many as there is room for their predictions."""
        at_once = max(1, MOST_PREDICTIONS // max(len(test) for _, test in self.folds.splits))
        if self.measure.is_plain or len(subsets) <= at_once:
            return [subsets]
        starts = range(0, len(subsets), at_once)
        return [Subsets.of([subsets[k] for k in range(a, min(a + at_once, len(subsets)))]) for a in starts]

    @property
    def _n_outputs(self) -> int:
        """Decisions per row: one per class, but one for two classes or a number."""
        return self.target.n_classes if self.target.n_classes > 2 else 1

    def _design(self, subsets: Subsets) -> Design:
        largest = int(subsets.sizes.max(initial=1))
        if self.columns.is_sparse and self.is_partition:
            return SparseDesign(self, largest, subsets)
        return DenseDesign(self, largest)

    def _parts(self) -> list[slice]:
        return [slice(start, stop) for start, stop in pairwise(self.borders.tolist())]

    def _score(self, design: Design) -> float:
        scores = []
        for fold, (test, train) in enumerate(self._trainings(design)):
            fills = self.missing.fills[fold, design.which]
            intercepts = np.empty(self._n_outputs)
            weights = np.empty((design.size, self._n_outputs + design.is_sparse))
            self._fit(train.filled(design.incomplete, fills), design.system, weights, intercepts, solve=design.solve)
            if len(fills):
                weights = np.vstack([weights, fills[:, None] * weights[design.incomplete]])
            scores.append(design.score(test, weights, intercepts, self.allowed[fold]))
        return float(np.mean(scores))

    def _trainings(self, design: Design) -> Any:
        """Test rows and the sums of the training rows, split by split."""
        if not self.is_partition:
            for train, test in self.folds.splits:
                yield test, design.sums(train)
            return
        parts = self._parts()
        kept = [design.sums(part) for part in parts] if len(parts) <= STORED_FOLDS else None
        whole = design.sums(slice(0, self.folds.n_rows)) if kept is None else sum(kept[1:], start=kept[0])
        for number, part in enumerate(parts):
            yield part, whole - (kept[number] if kept is not None else design.sums(part))

    def _fit(
        self, train: Sums, system: Floats, weights: Floats, intercepts: Floats, *, solve: Any = kernels.ridge
    ) -> None:
        """Weights and intercepts from what is known of the training rows."""
        if self.target.classes is None:
            targets, products = train.target_sums, train.products
        else:  # of class c, the target is 1 for its rows and -1 for all others
            own = slice(1, 2) if len(self.target.classes) == 2 else slice(None)
            targets = 2 * train.target_sums[own] - train.n
            products = 2 * train.products[:, own] - train.sums[:, None]
        solve(train.n, train.sums, train.gram, targets, products, self.alpha, system, weights, intercepts)


@dataclass(frozen=True)
class Sums:
    """What ridge regression needs to know of a group of rows; ``products`` and ``target_sums`` by class, or of y."""

    n: float
    sums: Floats
    gram: Floats
    products: Floats
    target_sums: Floats

    def only(self, subset: NDArray[np.int32]) -> Sums:
        """The sums of some of the columns."""
        gram = self.gram[subset[:, None], subset]
        return Sums(self.n, self.sums[subset], gram, self.products[subset], self.target_sums)

    def filled(self, incomplete: NDArray[np.int64], fills: Floats) -> Sums:
        """The sums of columns with those at ``incomplete`` filled; their indicators come after all columns."""
        if not len(incomplete):
            return self
        d = len(self.sums) - len(incomplete)
        sums, gram, products = self.sums[:d].copy(), self.gram[:d, :d].copy(), self.products[:d].copy()
        mixed = self.gram[:d, d:] * fills
        sums[incomplete] += fills * self.sums[d:]
        products[incomplete] += fills[:, None] * self.products[d:]
        gram[:, incomplete] += mixed
        gram[incomplete] += mixed.T
        gram[np.ix_(incomplete, incomplete)] += np.outer(fills, fills) * self.gram[d:, d:]
        return Sums(self.n, sums, gram, products, self.target_sums)

    def __add__(self, other: Sums) -> Sums:
        return self._with(other, add)

    def __sub__(self, other: Sums) -> Sums:
        return self._with(other, sub)

    def _with(self, other: Sums, operation: Callable[[Any, Any], Any]) -> Sums:
        names = [field.name for field in fields(self)]
        return Sums(*(operation(getattr(self, name), getattr(other, name)) for name in names))


class Design(ABC):
    """The design matrix of a probe, with sums and scores of groups of rows; dense or sparse."""

    is_sparse = False
    solve = staticmethod(kernels.ridge)
    size: int
    incomplete = which = np.empty(0, np.int64)  # places of columns with missing values, and which of those they are

    def __init__(self, bound: BoundLinear, largest: int) -> None:
        self.columns, self.target, self.targets = bound.columns, bound.target, bound.targets
        self.measure, self.weights, self.missing = bound.measure, bound.weights, bound.missing
        self.n_targets = max(1, self.target.n_classes)
        self.system = np.empty((largest, largest + self.n_targets + 1))

    @abstractmethod
    def load(self, subset: Any) -> Design: ...

    @abstractmethod
    def sums(self, rows: Rows) -> Sums: ...

    @abstractmethod
    def score(self, rows: Rows, weights: Floats, intercepts: Floats, allowed: NDArray[np.bool_]) -> float: ...

    def _target_sums(self, rows: Rows) -> Floats:
        targets = self.targets[rows]
        weights = self.weights[rows] if self.measure.is_weighted else None
        if self.target.classes is None:
            return np.array([targets.sum() if weights is None else weights @ targets])
        return np.bincount(targets, weights, minlength=self.n_targets).astype(np.float64)

    def _score_predictions(self, rows: Rows, predictions: Floats) -> float:
        weights = self.weights[rows] if self.measure.is_weighted else self.weights
        return self.measure.score(self.targets[rows], predictions, weights, self.target.n_classes)


class DenseDesign(Design):
    def __init__(self, bound: BoundLinear, largest: int) -> None:
        super().__init__(bound, largest)
        self.room = np.empty(len(self.targets) * (largest + min(largest, len(self.missing.columns))))

    def load(self, subset: NDArray[np.int32]) -> DenseDesign:
        self.size = len(subset)
        if len(self.missing.columns):
            self.incomplete = np.flatnonzero(self.missing.number[subset] >= 0)
            self.which = self.missing.number[subset[self.incomplete]]
        n_rows, width = len(self.targets), len(subset) + len(self.incomplete)
        self.values = self.room[: n_rows * width].reshape(n_rows, width)
        self.columns.take(subset, self.values[:, : self.size] if len(self.incomplete) else self.values)
        for indicator, place in enumerate(self.incomplete.tolist(), start=self.size):
            self.values[:, indicator] = np.isnan(self.values[:, place])
            self.values[self.values[:, indicator] > 0, place] = 0.0
        return self

    def sums(self, rows: Rows) -> Sums:
        values = self.values[rows]
        weights = self.weights[rows] if self.measure.is_weighted else None
        weighted = values if weights is None else values * weights[:, None]
        products = np.empty((values.shape[1], self.n_targets))
        if self.target.classes is None:
            products[:, 0] = self.targets[rows] @ weighted
        else:
            kernels.label_products(weighted, self.targets[rows], products)
        n = len(values) if weights is None else weights.sum()
        return Sums(n, weighted.sum(axis=0), values.T @ weighted, products, self._target_sums(rows))

    def score(self, rows: Rows, weights: Floats, intercepts: Floats, allowed: NDArray[np.bool_]) -> float:
        values = self.values[rows]
        predictions = np.empty(len(values))
        kernels.predict(values, weights, intercepts, allowed, self.measure.is_of_labels, predictions)
        return self._score_predictions(rows, predictions)


class GrownDesign(DenseDesign):
    """A loaded design that takes on one candidate column at a time; what the others give is not computed again."""

    def __init__(self, loaded: DenseDesign, parts: list[slice], candidates: NDArray[np.int32]) -> None:
        vars(self).update(vars(loaded))
        n_rows, size = loaded.values.shape
        self.size = size + 1
        self.values = np.empty((n_rows, size + 1))
        self.values[:, :size] = loaded.values
        self.known = {(part.start, part.stop): loaded.sums(part) for part in parts}
        self.extra = np.empty((n_rows, len(candidates)))
        self.columns.take(candidates, self.extra)
        weighted = self.extra * self.weights[:, None] if self.measure.is_weighted else self.extra
        self.cross = {key: loaded.values[slice(*key)].T @ weighted[slice(*key)] for key in self.known}

    def load(self, candidate: Any) -> GrownDesign:
        """The candidate of this number in the last column."""
        self.candidate = int(candidate)
        self.values[:, -1] = self.extra[:, self.candidate]
        return self

    def sums(self, rows: Rows) -> Sums:
        if not isinstance(rows, slice) or (rows.start, rows.stop) not in self.known:
            return super().sums(rows)
        old, column = self.known[rows.start, rows.stop], self.values[rows, -1]
        weighted = column * self.weights[rows] if self.measure.is_weighted else column
        d = len(old.sums)
        gram = np.empty((d + 1, d + 1))
        gram[:d, :d] = old.gram
        gram[:d, d] = gram[d, :d] = self.cross[rows.start, rows.stop][:, self.candidate]
        gram[d, d] = column @ weighted
        if self.target.classes is None:
            last = np.array([[weighted @ self.targets[rows]]])
        else:
            last = np.bincount(self.targets[rows], weighted, minlength=self.n_targets)[None, :]
        sums = np.append(old.sums, weighted.sum())
        return Sums(old.n, sums, gram, np.vstack([old.products, last]), old.target_sums)


class SparseDesign(Design):
    """The probe's stored entries, row by row; rows without any cost nothing."""

    is_sparse = True
    solve = staticmethod(kernels.ridge_of_few)

    def __init__(self, bound: BoundLinear, largest: int, subsets: Subsets) -> None:
        super().__init__(bound, largest)
        entries = np.diff(self.columns.X.indptr)
        most = max((int(entries[subset].sum()) for subset in subsets), default=0)
        self.starts = np.empty(len(self.targets) + 1, np.int64)
        self.entries = np.empty(most, np.int64), np.empty(most)

    def load(self, subset: NDArray[np.int32]) -> SparseDesign:
        X = self.columns.X
        kernels.rows_of_columns(X.data, X.indices, X.indptr, self.columns.place, subset, self.starts, *self.entries)
        self.size = len(subset)
        return self

    def sums(self, rows: Rows) -> Sums:
        assert isinstance(rows, slice)
        sums, gram = np.empty(self.size), np.empty((self.size, self.size))
        products = np.empty((self.size, self.n_targets))
        is_label = self.target.classes is not None
        kernels.sparse_sums(
            self.starts, *self.entries, rows.start, rows.stop, self.targets, self.weights, is_label,
            sums, gram, products,
        )  # fmt: skip
        n = self.weights[rows].sum() if self.measure.is_weighted else rows.stop - rows.start
        return Sums(n, sums, gram, products, self._target_sums(rows))

    def score(self, rows: Rows, weights: Floats, intercepts: Floats, allowed: NDArray[np.bool_]) -> float:
        assert isinstance(rows, slice)
        place = (self.starts, *self.entries, rows.start, rows.stop, weights, intercepts)
        if self.target.classes is not None and self.measure.is_plain:
            return kernels.sparse_accuracy(*place, self.targets, self._target_sums(rows), allowed)
        predictions = np.empty(rows.stop - rows.start)
        kernels.sparse_predict(*place, allowed, self.measure.is_of_labels, predictions)
        return self._score_predictions(rows, predictions)
