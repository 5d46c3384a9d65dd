"""A linear classifier or regressor by ridge regression, cross-validated in closed form, dense and sparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inputs import SQUARED
from ..kernels import linear as kernels
from ..probes import Subsets
from .base import Columns, Criterion, Floats, Folds, Target

STORED_FOLDS = 16
Rows = slice | NDArray[np.int64]


class Linear(Criterion):
    """Cross-validated score of a ridge classifier (accuracy) or ridge regression (R^2).

    Equal to ``cross_val_score`` of scikit-learn's ``RidgeClassifier(alpha)`` or ``Ridge(alpha)`` on the same folds, to
    rounding; all sums are in float64. Nothing is fitted twice: the Gram matrix of the probe's columns is summed per
    fold, what a fold leaves for training is the whole less the fold, and one Cholesky factor serves all classes.
    On text its J goes with that of a linear SVM.

    Parameters
    ----------
    alpha : penalty on the squared weights, above 0; in the units of the data, so scale columns of different units.
    task : "classification", "regression", or "auto": regression if y is continuous, that is has fractions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.criteria import Linear
    >>> from probewise.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> Linear(alpha=1.0).bind(X, y, cv=3)(Subsets.of([[1], [0, 1, 2, 3]])).round(3)
    array([0.56 , 0.813])
    """

    streams = True
    widths = SQUARED

    def __init__(self, alpha: float = 1.0, *, task: str = "auto") -> None:
        self.alpha = alpha
        self.task = task

    def bind(self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None) -> BoundLinear:
        if not self.alpha > 0:
            raise ValueError(f"alpha={self.alpha!r} must be above 0; a small value is nearly least squares")
        target = Target.of(y, self.task)
        default = "accuracy" if target.is_classification else "r2"
        if scoring not in (None, default):
            raise ValueError(
                f"scoring={scoring!r}: Linear measures {default!r} here; for another score give the estimator, "
                "for example criterion=RidgeClassifier()"
            )
        folds = Folds.of(cv, np.asarray(y), is_classification=target.is_classification, groups=groups)
        order = folds.order if folds.is_partition else np.arange(folds.n_rows)
        bound = BoundLinear(Columns(X, order), target, folds, float(self.alpha), folds.is_partition)
        return replace(bound, sums=bound.all_sums())


@dataclass(frozen=True)
class BoundLinear:
    """X, seen with its rows in fold order if the folds are a partition, and the target in that order."""

    columns: Columns
    target: Target
    folds: Folds
    alpha: float
    is_partition: bool
    sums: tuple[Sums, ...] = ()

    def __call__(self, subsets: Subsets) -> Floats:
        if self.sums and self.columns.is_stored:  # a batch together would hold all its columns
            return np.concatenate([self._scores_from_sums(Subsets.of([subset])) for subset in subsets])
        if self.sums:
            return self._scores_from_sums(subsets)
        table = self._table(subsets)
        return np.array([self._score(table.load(subset)) for subset in subsets], dtype=np.float64)

    def plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """J of the subset with each candidate added: Gram matrices only gain a row."""
        if self.columns.is_sparse or not self.is_partition or not len(subset):
            return self(Subsets.of([np.append(subset, candidate) for candidate in candidates]))
        table = DenseTable(self, len(subset) + 1)
        grown = GrownTable(table, table.load(subset), self._parts(), candidates)
        return np.array([self._score(grown.load(k)) for k in range(len(candidates))], dtype=np.float64)

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

    def all_sums(self) -> tuple[Sums, ...]:
        """Sums of each fold's training rows over all features, where they are not much larger than the data."""
        n_features, parts = self.columns.n_features, self._parts()
        if self.columns.is_sparse or not self.is_partition or len(parts) * n_features > self.folds.n_rows:
            return ()
        kept = [self._sums_by_pieces(part) for part in parts]
        whole = sum(kept[1:], start=kept[0])
        return tuple(whole - part for part in kept)

    def _sums_by_pieces(self, part: slice) -> Sums:
        pieces = []
        for start in range(part.start, part.stop, 1024):
            rows = slice(start, min(start + 1024, part.stop))
            table = DenseTable(replace(self, columns=self.columns.only(rows)), self.columns.n_features)
            table.targets = self.targets[rows]
            pieces.append(table.load(np.arange(self.columns.n_features, dtype=np.int32)).sums(slice(None)))
        return sum(pieces[1:], start=pieces[0])

    def _scores_from_sums(self, subsets: Subsets) -> Floats:
        n_folds, n_outputs = len(self.sums), self._n_outputs
        weights = np.empty(len(subsets.indices) * n_folds * n_outputs)
        intercepts = np.empty((len(subsets), n_folds, n_outputs))
        system = np.empty((int(subsets.sizes.max(initial=1)), int(subsets.sizes.max(initial=1)) + n_outputs + 1))
        position = 0
        for number, subset in enumerate(subsets):
            for fold, train in enumerate(self.sums):
                own = weights[position : position + len(subset) * n_outputs].reshape(len(subset), n_outputs)
                self._fit(train.only(subset), system, own, intercepts[number, fold])
                position += own.size
        return self._batch_scores(subsets, weights, intercepts)

    def _batch_scores(self, subsets: Subsets, weights: Floats, intercepts: Floats) -> Floats:
        columns, targets = self.columns, self.targets
        parts, is_label = self._parts(), self.target.is_classification
        borders = np.array([0, *(part.stop for part in parts)])
        allowed = np.array([train.target_sums > 0 for train in self.sums])
        scores = np.empty((len(subsets), len(parts)))
        matrix, indices, centers = columns.held(subsets.indices)
        kernels.batch_scores(
            matrix, columns.rows, borders, centers, indices, subsets.offsets,
            weights, intercepts, allowed, targets, is_label, scores,
        )  # fmt: skip
        if is_label:
            return (scores / np.diff(borders)).mean(axis=1)
        spread = np.array([((targets[part] - targets[part].mean()) ** 2).sum() for part in parts])
        with np.errstate(divide="ignore", invalid="ignore"):
            r2 = np.where(spread > 0, 1 - scores / spread, np.where(scores == 0, 1.0, 0.0))
        return r2.mean(axis=1)

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
        for test, train in self._trainings(table):
            intercepts = np.empty(self._n_outputs)
            weights = np.empty((len(train.sums), self._n_outputs + table.is_sparse))
            self._fit(train, table.system, weights, intercepts, solve=table.solve)
            scores.append(table.score(test, weights, intercepts, train.target_sums > 0))
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

    n: int
    sums: Floats
    gram: Floats
    products: Floats
    target_sums: Floats

    def only(self, subset: NDArray[np.int32]) -> Sums:
        """The sums of some of the columns."""
        gram = self.gram[subset[:, None], subset]
        return Sums(self.n, self.sums[subset], gram, self.products[subset], self.target_sums)

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

    def __init__(self, bound: BoundLinear, largest: int) -> None:
        self.columns, self.target, self.targets = bound.columns, bound.target, bound.targets
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
        if self.target.classes is None:
            return np.array([targets.sum()])
        return np.bincount(targets, minlength=self.n_targets).astype(np.float64)


class DenseTable(Table):
    def __init__(self, bound: BoundLinear, largest: int) -> None:
        super().__init__(bound, largest)
        self.room = np.empty(len(self.targets) * largest)

    def load(self, subset: NDArray[np.int32]) -> DenseTable:
        self.values = self.room[: len(self.targets) * len(subset)].reshape(len(self.targets), len(subset))
        self.columns.take(subset, self.values)
        return self

    def sums(self, rows: Rows) -> Sums:
        values = self.values[rows]
        products = np.empty((values.shape[1], self.n_targets))
        if self.target.classes is None:
            products[:, 0] = self.targets[rows] @ values
        else:
            kernels.label_products(values, self.targets[rows], products)
        return Sums(len(values), values.sum(axis=0), values.T @ values, products, self._target_sums(rows))

    def score(self, rows: Rows, weights: Floats, intercepts: Floats, allowed: NDArray[np.bool_]) -> float:
        if self.target.classes is None:
            return kernels.r2(self.values[rows], weights, intercepts, self.targets[rows])
        return kernels.accuracy(self.values[rows], weights, intercepts, self.targets[rows], allowed)


class GrownTable(DenseTable):
    """A loaded table that takes on one candidate column at a time; what the others give is not computed again."""

    def __init__(self, table: DenseTable, loaded: Table, parts: list[slice], candidates: NDArray[np.int32]) -> None:
        self.columns, self.target, self.targets = table.columns, table.target, table.targets
        self.n_targets, self.system = table.n_targets, table.system
        n_rows, size = table.values.shape
        self.values = np.empty((n_rows, size + 1))
        self.values[:, :size] = table.values
        self.known = {(part.start, part.stop): loaded.sums(part) for part in parts}
        self.extra = np.empty((n_rows, len(candidates)))
        self.columns.take(candidates, self.extra)
        self.cross = {key: table.values[slice(*key)].T @ self.extra[slice(*key)] for key in self.known}

    def load(self, subset: Any) -> GrownTable:
        """Candidate number ``subset`` in the last column."""
        self.candidate = int(subset)
        self.values[:, -1] = self.extra[:, self.candidate]
        return self

    def sums(self, rows: Rows) -> Sums:
        if not isinstance(rows, slice) or (rows.start, rows.stop) not in self.known:
            return super().sums(rows)
        old, column = self.known[rows.start, rows.stop], self.values[rows, -1]
        d = len(old.sums)
        gram = np.empty((d + 1, d + 1))
        gram[:d, :d] = old.gram
        gram[:d, d] = gram[d, :d] = self.cross[rows.start, rows.stop][:, self.candidate]
        gram[d, d] = column @ column
        if self.target.classes is None:
            last = np.array([[column @ self.targets[rows]]])
        else:
            last = np.bincount(self.targets[rows], column, minlength=self.n_targets)[None, :]
        sums = np.append(old.sums, column.sum())
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
            self.starts, *self.entries, rows.start, rows.stop, self.targets, is_label, sums, gram, products
        )
        return Sums(rows.stop - rows.start, sums, gram, products, self._target_sums(rows))

    def score(self, rows: Rows, weights: Floats, intercepts: Floats, allowed: NDArray[np.bool_]) -> float:
        assert isinstance(rows, slice)
        place = (self.starts, *self.entries, rows.start, rows.stop, weights, intercepts)
        if self.target.classes is None:
            return kernels.sparse_r2(*place, self.targets)
        return kernels.sparse_accuracy(*place, self.targets, self._target_sums(rows), allowed)
