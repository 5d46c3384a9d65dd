"""A linear classifier or regressor by ridge regression, cross-validated in closed form, dense and sparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.tables import SQUARED
from ..kernels import linear as kernels
from ..probing.probes import Subsets
from .base import Columns, Criterion, Floats, Folds, Target
from .gaps import Gaps, require_no_sparse_gaps, require_strategy
from .scoring import Measure

STORED_FOLDS = 16
MOST_TOLD = 2**22  # predictions held at a time
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

    Parameters
    ----------
    alpha : penalty on the squared weights, above 0; in the units of the data, so scale columns of different units.
    task : "classification", "regression", or "auto": regression if y is continuous, that is has fractions.
    missing : what stands in for NaN in dense X: "mean" or "median" of the column among the training rows of each
        fold, as a ``SimpleImputer`` before the ridge model would fill it (0 where a fold knows no value). None: NaN is
        refused.

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

    @property
    def allow_nan(self) -> bool:
        return self.missing is not None

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundLinear:
        if not self.alpha > 0:
            raise ValueError(f"alpha={self.alpha!r} must be above 0; a small value is nearly least squares")
        require_strategy(self.missing)
        require_no_sparse_gaps(X, self.missing)
        target = Target.of(y, self.task)
        folds = Folds.of(cv, np.asarray(y), is_classification=target.is_classification, groups=groups)
        estimator = "RidgeClassifier()" if target.is_classification else "Ridge()"
        measure = Measure.of(scoring, target, folds, sample_weight, criterion="Linear", estimator=estimator)
        order = folds.order if folds.is_partition else np.arange(folds.n_rows)
        columns = Columns(X, order, gaps=self.missing is not None)
        gaps = Gaps.of(columns, folds, self.missing)
        bound = BoundLinear(columns, target, folds, float(self.alpha), folds.is_partition, measure, gaps)
        return replace(bound, sums=bound.all_sums())


@dataclass(frozen=True)
class BoundLinear:
    """X, seen with its rows in fold order if the folds are a partition, and the target in that order.

    A column with gaps is kept as two: its values, less the centre, with 0 in the gaps, and a mark of the gaps. What
    a fold makes of it is their sum, the mark times what fills the gaps in that fold; so sums of rows still add up.
    Marks come after all columns.
    """

    columns: Columns
    target: Target
    folds: Folds
    alpha: float
    is_partition: bool
    measure: Measure
    gaps: Gaps
    sums: tuple[Sums, ...] = ()

    def __call__(self, subsets: Subsets) -> Floats:
        if self.sums and self.columns.is_stored:  # a batch together would hold all its columns
            return np.concatenate([self._scores_from_sums(Subsets.of([subset])) for subset in subsets])
        if self.sums:
            return np.concatenate([self._scores_from_sums(piece) for piece in self._pieces(subsets)])
        table = self._table(subsets)
        return np.array([self._score(table.load(subset)) for subset in subsets], dtype=np.float64)

    def plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """J of the subset with each candidate added: Gram matrices only gain a row."""
        gapped = self.gaps.number[candidates] >= 0
        if gapped.any() and not gapped.all():
            scores = np.empty(len(candidates))
            scores[gapped] = self.plus_each(subset, candidates[gapped])
            scores[~gapped] = self.plus_each(subset, candidates[~gapped])
            return scores
        has_gaps = gapped.any() or self.gaps.any_in(subset)
        if self.columns.is_sparse or not self.is_partition or not len(subset) or has_gaps:
            return self(Subsets.of([np.append(subset, candidate) for candidate in candidates]))
        table = DenseTable(self, len(subset) + 1)
        grown = GrownTable(table, table.load(subset), self._parts(), candidates)
        return np.array([self._score(grown.load(k)) for k in range(len(candidates))], dtype=np.float64)

    @property
    def only_on_cpu(self) -> str | None:
        """What of it no device knows, in words."""
        return "missing values" if len(self.gaps.columns) else self.measure.only_on_cpu

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        from ..kernels.device.linear import DeviceLinear

        return DeviceLinear(
            self.columns.X,
            self.folds.splits,
            is_partition=self.is_partition,
            targets=self.target.values,
            n_classes=0 if self.target.classes is None else len(self.target.classes),
            alpha=self.alpha,
            centers=None if self.columns.is_sparse else self.columns.centers,
            device=device,
        )

    @property
    def targets(self) -> NDArray[Any]:
        return self.target.values[self.columns.rows]

    @property
    def weights(self) -> Floats:
        return self.measure.of_rows(self.columns.rows)

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
        n_columns, parts = self.columns.n_features + len(self.gaps.columns), self._parts()
        if self.columns.is_sparse or not self.is_partition or len(parts) * n_columns > self.folds.n_rows:
            return ()
        kept = [self._sums_by_pieces(part) for part in parts]
        whole = sum(kept[1:], start=kept[0])
        return tuple(whole - part for part in kept)

    def _sums_by_pieces(self, part: slice) -> Sums:
        pieces = []
        for start in range(part.start, part.stop, 1024):
            rows = slice(start, min(start + 1024, part.stop))
            table = DenseTable(replace(self, columns=self.columns.only(rows)), self.columns.n_features)
            table.targets, table.weights = self.targets[rows], self.weights[rows]
            pieces.append(table.load(np.arange(self.columns.n_features, dtype=np.int32)).sums(slice(None)))
        return sum(pieces[1:], start=pieces[0])

    def _scores_from_sums(self, subsets: Subsets) -> Floats:
        n_folds, n_outputs = len(self.sums), self._n_outputs
        weights = np.empty(len(subsets.indices) * n_folds * n_outputs)
        intercepts = np.empty((len(subsets), n_folds, n_outputs))
        system = np.empty((int(subsets.sizes.max(initial=1)), int(subsets.sizes.max(initial=1)) + n_outputs + 1))
        position = 0
        for number, subset in enumerate(subsets):
            gapped = np.flatnonzero(self.gaps.number[subset] >= 0)
            which = self.gaps.number[subset[gapped]]
            known = np.concatenate([subset, self.columns.n_features + which])
            for fold, train in enumerate(self.sums):
                own = weights[position : position + len(subset) * n_outputs].reshape(len(subset), n_outputs)
                filled = train.only(known).filled(gapped, self.gaps.fills[fold, which])
                self._fit(filled, system, own, intercepts[number, fold])
                position += own.size
        return self._batch_scores(subsets, weights, intercepts)

    def _batch_scores(self, subsets: Subsets, weights: Floats, intercepts: Floats) -> Floats:
        columns, targets = self.columns, self.targets
        parts, is_label = self._parts(), self.target.is_classification
        borders = np.array([0, *(part.stop for part in parts)])
        scores = np.empty((len(subsets), len(parts)))
        matrix, indices, centers = columns.held(subsets.indices)
        holes = self.gaps.number[subsets.indices] if len(self.gaps.columns) else self.gaps.columns
        known = (matrix, columns.rows, borders, centers, indices, subsets.offsets, holes, self.gaps.fills)
        fitted = (weights, intercepts, self.allowed)
        if not self.measure.is_plain:
            told = np.empty((len(subsets), int(np.diff(borders).max())))
            measure = (self.measure.code, self.weights, self.n_classes)
            kernels.batch_measured(*known, *fitted, targets, *measure, told, scores)
            return scores.mean(axis=1)
        kernels.batch_scores(*known, *fitted, targets, is_label, scores)
        if is_label:
            return (scores / np.diff(borders)).mean(axis=1)
        spread = np.array([((targets[part] - targets[part].mean()) ** 2).sum() for part in parts])
        with np.errstate(divide="ignore", invalid="ignore"):
            r2 = np.where(spread > 0, 1 - scores / spread, np.where(scores == 0, 1.0, 0.0))
        return r2.mean(axis=1)

    def _pieces(self, subsets: Subsets) -> list[Subsets]:
        """All at once, or as many as there is room for what they tell."""
        at_once = max(1, MOST_TOLD // max(len(test) for _, test in self.folds.splits))
        if self.measure.is_plain or len(subsets) <= at_once:
            return [subsets]
        starts = range(0, len(subsets), at_once)
        return [Subsets.of([subsets[k] for k in range(a, min(a + at_once, len(subsets)))]) for a in starts]

    @property
    def n_classes(self) -> int:
        return 0 if self.target.classes is None else len(self.target.classes)

    @property
    def _n_outputs(self) -> int:
        """Decisions per row: one per class, but one for two classes or a number."""
        return 1 if self.target.classes is None or len(self.target.classes) == 2 else len(self.target.classes)

    def _table(self, subsets: Subsets) -> Table:
        largest = int(subsets.sizes.max(initial=1))
        if self.columns.is_sparse and self.is_partition:
            return SparseTable(self, largest, subsets)
        return DenseTable(self, largest)

    def _parts(self) -> list[slice]:
        borders = np.cumsum([0] + [len(test) for _, test in self.folds.splits])
        return [slice(a, b) for a, b in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)]

    def _score(self, table: Table) -> float:
        scores = []
        for fold, (test, train) in enumerate(self._trainings(table)):
            fills = self.gaps.fills[fold, table.which]
            intercepts = np.empty(self._n_outputs)
            weights = np.empty((table.size, self._n_outputs + table.is_sparse))
            self._fit(train.filled(table.gapped, fills), table.system, weights, intercepts, solve=table.solve)
            if len(fills):
                weights = np.vstack([weights, fills[:, None] * weights[table.gapped]])
            scores.append(table.score(test, weights, intercepts, self.allowed[fold]))
        return float(np.mean(scores))

    def _trainings(self, table: Table) -> Any:
        """Test rows and the sums of the training rows, split by split."""
        if not self.is_partition:
            for train, test in self.folds.splits:
                yield test, table.sums(train)
            return
        parts = self._parts()
        kept = [table.sums(part) for part in parts] if len(parts) <= STORED_FOLDS else None
        whole = table.sums(slice(0, self.folds.n_rows)) if kept is None else sum(kept[1:], start=kept[0])
        for number, part in enumerate(parts):
            yield part, whole - (kept[number] if kept is not None else table.sums(part))

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

    def filled(self, gapped: NDArray[np.int64], fills: Floats) -> Sums:
        """The sums of columns, of which those at ``gapped`` have their marks behind the others, with gaps filled."""
        if not len(gapped):
            return self
        d = len(self.sums) - len(gapped)
        sums, gram, products = self.sums[:d].copy(), self.gram[:d, :d].copy(), self.products[:d].copy()
        mixed = self.gram[:d, d:] * fills
        sums[gapped] += fills * self.sums[d:]
        products[gapped] += fills[:, None] * self.products[d:]
        gram[:, gapped] += mixed
        gram[gapped] += mixed.T
        gram[np.ix_(gapped, gapped)] += np.outer(fills, fills) * self.gram[d:, d:]
        return Sums(self.n, sums, gram, products, self.target_sums)

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.n + other.n,
            self.sums + other.sums,
            self.gram + other.gram,
            self.products + other.products,
            self.target_sums + other.target_sums,
        )

    def __sub__(self, other: Sums) -> Sums:
        return Sums(
            self.n - other.n,
            self.sums - other.sums,
            self.gram - other.gram,
            self.products - other.products,
            self.target_sums - other.target_sums,
        )


class Table:
    """The probe's columns with sums and scores of groups of rows; dense or sparse."""

    is_sparse = False
    solve = staticmethod(kernels.ridge)
    size: int
    gapped = which = np.empty(0, np.int64)  # places of columns with gaps, and which of the gaps these are

    def __init__(self, bound: BoundLinear, largest: int) -> None:
        self.columns, self.target, self.targets = bound.columns, bound.target, bound.targets
        self.measure, self.weights, self.gaps = bound.measure, bound.weights, bound.gaps
        self.n_classes = bound.n_classes
        self.n_targets = 1 if self.target.classes is None else len(self.target.classes)
        self.system = np.empty((largest, largest + self.n_targets + 1))

    def load(self, subset: NDArray[np.int32]) -> Table:
        raise TypeError("Table is a base")

    def sums(self, rows: Rows) -> Sums:
        raise TypeError("Table is a base")

    def score(self, rows: Rows, weights: Floats, intercepts: Floats, allowed: NDArray[np.bool_]) -> float:
        raise TypeError("Table is a base")

    def _target_sums(self, rows: Rows) -> Floats:
        targets = self.targets[rows]
        weights = self.weights[rows] if self.measure.is_weighted else None
        if self.target.classes is None:
            return np.array([targets.sum() if weights is None else weights @ targets])
        return np.bincount(targets, weights, minlength=self.n_targets).astype(np.float64)

    def _worth(self, rows: Rows, told: Floats) -> float:
        """The score of what is told of some rows."""
        weights = self.weights[rows] if self.measure.is_weighted else self.weights
        return self.measure.score(self.targets[rows], told, weights, self.n_classes)


class DenseTable(Table):
    def __init__(self, bound: BoundLinear, largest: int) -> None:
        super().__init__(bound, largest)
        self.room = np.empty(len(self.targets) * (largest + min(largest, len(self.gaps.columns))))

    def load(self, subset: NDArray[np.int32]) -> DenseTable:
        self.size = len(subset)
        if len(self.gaps.columns):
            self.gapped = np.flatnonzero(self.gaps.number[subset] >= 0)
            self.which = self.gaps.number[subset[self.gapped]]
        n_rows, width = len(self.targets), len(subset) + len(self.gapped)
        self.values = self.room[: n_rows * width].reshape(n_rows, width)
        self.columns.take(subset, self.values[:, : self.size] if len(self.gapped) else self.values)
        for mark, place in enumerate(self.gapped.tolist(), start=self.size):
            self.values[:, mark] = np.isnan(self.values[:, place])
            self.values[self.values[:, mark] > 0, place] = 0.0
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
        told = np.empty(len(values))
        kernels.tell(values, weights, intercepts, allowed, self.measure.tells_labels, told)
        return self._worth(rows, told)


class GrownTable(DenseTable):
    """A loaded table that takes on one candidate column at a time; what the others give is not computed again."""

    def __init__(self, table: DenseTable, loaded: Table, parts: list[slice], candidates: NDArray[np.int32]) -> None:
        self.columns, self.target, self.targets = table.columns, table.target, table.targets
        self.measure, self.weights, self.n_classes = table.measure, table.weights, table.n_classes
        self.n_targets, self.system = table.n_targets, table.system
        n_rows, size = table.values.shape
        self.size = size + 1
        self.values = np.empty((n_rows, size + 1))
        self.values[:, :size] = table.values
        self.known = {(part.start, part.stop): loaded.sums(part) for part in parts}
        self.extra = np.empty((n_rows, len(candidates)))
        self.columns.take(candidates, self.extra)
        weighted = self.extra * self.weights[:, None] if self.measure.is_weighted else self.extra
        self.cross = {key: table.values[slice(*key)].T @ weighted[slice(*key)] for key in self.known}

    def load(self, subset: Any) -> GrownTable:
        """Candidate number ``subset`` in the last column."""
        self.candidate = int(subset)
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


class SparseTable(Table):
    """The probe's stored entries, row by row; rows without any cost nothing."""

    is_sparse = True
    solve = staticmethod(kernels.ridge_of_few)

    def __init__(self, bound: BoundLinear, largest: int, subsets: Subsets) -> None:
        super().__init__(bound, largest)
        entries = np.diff(self.columns.X.indptr)
        most = max((int(entries[subset].sum()) for subset in subsets), default=0)
        self.starts = np.empty(len(self.targets) + 1, np.int64)
        self.entries = np.empty(most, np.int64), np.empty(most)

    def load(self, subset: NDArray[np.int32]) -> SparseTable:
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
        told = np.empty(rows.stop - rows.start)
        kernels.sparse_tell(*place, allowed, self.measure.tells_labels, told)
        return self._worth(rows, told)
