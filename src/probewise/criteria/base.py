"""The contract of criteria; the target and the folds, which they share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import type_of_target

from ..engine.probes import Subsets
from ..validation.errors import ForPython, Parameter, ParameterError, Setting, warn
from ..validation.labels import require_finite_target
from ..validation.tables import SQUARED
from .identity import class_text

Floats = NDArray[np.float64]
Split = tuple[NDArray[np.int64], NDArray[np.int64]]
FOR_QUANTITIES = ForPython("a criterion for regression such as KNN(task='regression')", Setting("task", "regression"))
MOST_CLASSES = 1000
FEWEST_SORTED = 12  # numbers that are in order by chance once in 200 million tables


class BoundCriterion(Protocol):
    """A criterion bound to data: a batch of subsets in, one J each out, larger is better.

    J of a subset must not depend on what else is in the batch. ``folds`` is what J was made on, for the
    ledger's fingerprint.
    """

    @property
    def folds(self) -> Folds: ...

    def __call__(self, subsets: Subsets) -> Floats: ...


class Criterion(BaseEstimator):
    """A measure J of how good a feature subset is, and how blocks of it are best run.

    Attributes
    ----------
    block_size : int
        Probes in a block when the user gives none; small where a probe is slow, so that a time limit is kept.
    prefer : {"threads", "processes"}
        "threads" where the work releases the GIL.
    allow_nan : bool
        Whether X may hold NaN; by default where a parameter ``missing`` says what to do with it.
    needs_target : bool
        Whether there must be a y.
    widths : tuple of float or None
        Bounds on max - min of a column that is not constant, beyond which J would be wrong; None where there are none.
    goes_by_width : bool
        Whether wide columns count more than narrow ones, as they do in distances.
    streams : bool
        Whether X may be a `Stored`, of which only ``X[:, columns]`` is asked; if not, X is read as a whole first.
    """

    block_size = 50
    prefer = "threads"
    streams = False
    goes_by_width = False
    needs_target: bool = True
    widths: tuple[float, float] | None = None

    @property
    def allow_nan(self) -> bool:
        return getattr(self, "missing", None) is not None

    def bind(
        self,
        X: Any,
        y: Any,
        cv: Any = 3,
        *,
        groups: Any = None,
        scoring: Any = None,
        sample_weight: Any = None,
    ) -> BoundCriterion:
        """Prepare once what can be prepared for this data.

        Parameters
        ----------
        X : array, sparse matrix or `Stored`, shape (n_samples, n_features)
        y : array of shape (n_samples,), or None for a criterion that needs none
        cv : int, cross-validation splitter, iterable or "loo", default=3
            "loo" leaves out one row at a time.
        groups : array of shape (n_samples,), optional
            Groups of rows for a splitter that keeps them together.
        scoring : str, callable or None
            The score; None is the criterion's usual one.
        sample_weight : array of shape (n_samples,), optional
            Given only where the user gave weights: a criterion that knows none may leave the parameter out.

        Returns
        -------
        BoundCriterion
            A function of batches of subsets.
        """
        raise TypeError(f"{type(self).__name__} does not say how to bind")

    def describe(self) -> str:
        """What the ledger keeps of the criterion: enough to tell two apart, the same in every process."""
        words = [f"{name}={value!r}" for name, value in sorted(self.get_params(deep=False).items())]
        return f"{class_text(type(self))}({', '.join(words)})"


@dataclass(frozen=True)
class Target:
    """y as the arithmetic wants it: class codes (with their labels) or numbers (``classes`` is None)."""

    values: NDArray[Any]
    classes: NDArray[Any] | None

    @property
    def is_classification(self) -> bool:
        return self.classes is not None

    @property
    def n_classes(self) -> int:
        """0 for numbers."""
        return 0 if self.classes is None else len(self.classes)

    @classmethod
    def of(cls, y: Any, task: str = "auto") -> Target:
        """Classes where scikit-learn would see classes, numbers where it would see a continuous target."""
        if task not in ("auto", "classification", "regression"):
            raise ValueError(f"task={task!r}: choose 'auto', 'classification' or 'regression'")
        y = np.asarray(y)
        kind = kind_of_target(y)
        if kind not in ("binary", "multiclass", "continuous"):
            raise ValueError(f"Unknown label type: y is {kind}; give one class label or one number per row")
        if task == "regression" or (task == "auto" and kind == "continuous"):
            return cls(_numbers(y), None)
        classes, codes = _numbered(y)
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class ({classes.tolist()[0]!r}): features cannot be told apart by it; "
                "give rows of at least two classes"
            )
        return cls(codes.astype(np.int64, copy=False), classes)

    @classmethod
    def of_classes(cls, y: Any) -> Target:
        """Classes, for a method that knows nothing else: a continuous target is refused."""
        if kind_of_target(np.asarray(y)).startswith("continuous"):
            raise ValueError(
                "Unknown label type: y is continuous, and this method tells classes apart: cut y into classes, or use "
                "a method for numbers such as DAF, BIF or ReliefF"
            )
        return cls.of(y, "classification")


@dataclass(frozen=True)
class Folds:
    """Train and test rows of each split, fixed once per fit."""

    splits: Sequence[Split]
    n_rows: int

    @classmethod
    def of(cls, cv: Any, y: NDArray[Any], *, is_classification: bool, groups: Any = None) -> Folds:
        """The splits scikit-learn would make: stratified for classes; ``cv`` a number, splitter, iterable or "loo"."""
        check_consistent_length(y, groups)
        if isinstance(cv, str) and cv == "loo":
            if len(y) < 2:
                raise ParameterError(Parameter("cv", cv), f" needs at least 2 rows, n_samples={len(y)}")
            if is_classification:
                _require_company(y)
            folds = cls(OneRowLeftOut(len(y)), len(y))
        else:
            folds = cls(_splits(cv, y, is_classification, groups), len(y))
        if groups is not None and (n_cut := folds.n_cut_apart(groups)):
            splitter = "StratifiedGroupKFold" if is_classification else "GroupKFold"
            warn(
                f"cv cuts {n_cut:,} groups apart: a fold trains and tests on rows of the same group, and columns that "
                f"only tell groups apart look good; give cv={splitter}(3) to keep each group in one fold"
            )
        return folds

    def n_cut_apart(self, groups: Any) -> int:
        """How many groups of rows are both trained and tested on in one split."""
        labels, numbers = np.unique(np.asarray(groups), return_inverse=True)
        if self.is_loo:
            return int((np.bincount(numbers) > 1).sum())
        is_cut = np.zeros(len(labels), dtype=bool)
        for train, test in self.splits:
            is_cut |= np.isin(np.arange(len(labels)), np.intersect1d(numbers[train], numbers[test]))
        return int(is_cut.sum())

    @property
    def is_loo(self) -> bool:
        """Whether one row is left out at a time, and no fold of which has a score of its own."""
        return isinstance(self.splits, OneRowLeftOut)

    @property
    def order(self) -> NDArray[np.int64]:
        """All tested rows, fold after fold."""
        return np.arange(self.n_rows) if self.is_loo else np.concatenate([np.sort(test) for _, test in self.splits])

    @property
    def test_sizes(self) -> NDArray[np.int64]:
        return np.ones(self.n_rows, np.int64) if self.is_loo else np.array([len(test) for _, test in self.splits])

    @property
    def borders(self) -> NDArray[np.int64]:
        """Where the tests of each fold begin, fold after fold, and where the last one ends."""
        return np.cumsum([0, *self.test_sizes])

    @cached_property
    def parts(self) -> list[slice]:
        """The tests of each fold, among all of them."""
        return [slice(start, stop) for start, stop in pairwise(self.borders.tolist())]

    @property
    def row_order(self) -> NDArray[np.int64]:
        """All rows, those tested together side by side where each is tested once."""
        return self.order if self.is_partition else np.arange(self.n_rows)

    @cached_property
    def is_partition(self) -> bool:
        """Whether every row is tested once, against all rows of the other folds."""
        return self.is_loo or (
            np.array_equal(np.sort(self.order), np.arange(self.n_rows))
            and all(
                np.array_equal(np.union1d(train, test), np.arange(self.n_rows))
                and len(train) + len(test) == self.n_rows
                for train, test in self.splits
            )
        )

    @property
    def smallest_train(self) -> int:
        return self.n_rows - 1 if self.is_loo else min(len(train) for train, _ in self.splits)

    @property
    def identity(self) -> Sequence[Split]:
        """What tells these folds from others: the splits, or in a word that each row is left out (none trains on 0)."""
        return ((np.empty(0, np.int64), np.array([self.n_rows])),) if self.is_loo else self.splits


class OneRowLeftOut(Sequence[Split]):
    """The splits that leave out one row each, made when asked for: together they hold n_rows squared numbers."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, k: Any) -> Any:
        row = range(self.n_rows)[k]
        return np.delete(np.arange(self.n_rows), row), np.array([row])


def folds_of_groups(n_folds: int, groups: Any, is_classification: bool) -> Any:
    """A splitter into so many folds, or fewer where groups are, each of whole groups of rows."""
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ParameterError(Parameter("groups"), ": all rows are of one group, so that none is left to test on")
    return (StratifiedGroupKFold if is_classification else GroupKFold)(min(n_folds, n_groups))


def _splits(cv: Any, y: NDArray[Any], is_classification: bool, groups: Any) -> Sequence[Split]:
    if isinstance(cv, int | np.integer) and cv < 2:
        raise ParameterError(
            Parameter("cv", cv),
            " must be at least 2: k-fold cross-validation trains on some folds and tests on the other",
        )
    splitter = check_cv(cv, y, classifier=is_classification)
    if is_classification and isinstance(splitter, StratifiedKFold):
        _require_rows_per_class(y, splitter.n_splits)
    elif isinstance(cv, int | np.integer) and len(y) < cv:
        raise ParameterError(Parameter("cv", cv), f" needs at least {cv} rows, n_samples={len(y)}: use a smaller cv")
    elif isinstance(cv, int | np.integer) and _are_sorted(y):
        warn(
            f"the rows are sorted by y: none of the {cv} folds is trained on numbers such as it is tested on, and "
            "J says nothing; shuffle the rows"
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")  # whether they are cut apart is said
        splits = tuple((np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.empty((len(y), 0)), y, groups))
    if not splits:
        raise ParameterError(Parameter("cv", cv), " gives no split")
    empty = [number for number, split in enumerate(splits) if not all(map(len, split))]
    if empty:
        raise ParameterError(
            Parameter("cv", cv),
            f" leaves no rows to train on, or none to test, in fold {empty[0]}: use fewer folds",
        )
    return splits


def require_few_classes(classes: NDArray[Any] | None, method: str, remedy: str) -> None:
    """For what takes time or memory by the square of the classes, or by classes times rows times rows."""
    if classes is not None and len(classes) > MOST_CLASSES:
        raise ValueError(
            f"y has {len(classes):,} classes, and {method} takes {MOST_CLASSES:,} at most: {remedy}, or join classes"
        )


def kind_of_target(y: NDArray[Any]) -> str:
    """What scikit-learn takes y for: "binary", "multiclass", "continuous", or what is of no use here."""
    with np.errstate(invalid="ignore"):  # it casts numbers of any size to integers, to see whether they are whole
        return str(type_of_target(y, input_name="y"))


def _numbers(y: NDArray[Any]) -> Floats:
    """y as numbers that differ, neither too much nor too little for squares of their differences."""
    if y.dtype.kind not in "biuf":
        raise ValueError(f"y is of type {y.dtype} and regression needs numbers: give numbers, or task='classification'")
    numbers = np.asarray(y, dtype=np.float64)
    require_finite_target(numbers)
    if len(numbers) > 1:
        with np.errstate(over="ignore"):
            width = float(np.ptp(numbers))
        if width == 0:
            raise ValueError(
                f"y has only one value ({numbers[0]:g}): features cannot be told apart by it; "
                "give rows that differ in y"
            )
        if not SQUARED[0] <= width <= SQUARED[1]:
            raise ValueError(
                f"y is too {'large' if width > 1 else 'small'} to be computed with: "
                f"its width, max - min, is {width:.3g}; scale it to a width between {SQUARED[0]:g} and {SQUARED[1]:g}"
            )
    return numbers


def _numbered(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The labels, sorted, and the number of each row's; whole numbers close together need no sort."""
    if y.dtype.kind in "iu" and y.ndim == 1 and len(y) and int(y.max()) - int(y.min()) < len(y):
        steps = (y.astype(np.int64) if y.dtype.kind == "i" else y) - y.min()
        present = np.bincount(steps.astype(np.int64)) > 0
        labels = y.min() + np.flatnonzero(present).astype(np.uint64 if y.dtype.kind == "u" else np.int64)
        return labels.astype(y.dtype), (np.cumsum(present) - 1)[steps]
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def _require_rows_per_class(y: NDArray[Any], n_splits: int) -> None:
    labels, counts = np.unique(y, return_counts=True)
    if counts.min() < n_splits:
        rare = labels[np.argmin(counts)]
        raise ParameterError(
            f"class {rare} has n_samples={counts.min()}, fewer than ",
            Parameter("cv", n_splits),
            " folds: use a smaller cv, leave out or merge rare classes, or, if y is a quantity, use ",
            FOR_QUANTITIES,
        )


def _require_company(y: NDArray[Any]) -> None:
    n_alone = int((np.unique(y, return_counts=True)[1] == 1).sum())
    if 2 * n_alone > len(y):
        raise ParameterError(
            f"{n_alone:,} of {len(y):,} rows are the only ones of their class, and left out they leave nothing to know "
            "it by: merge rare classes, or, if y is a quantity, use ",
            FOR_QUANTITIES,
        )


def _are_sorted(y: NDArray[Any]) -> bool:
    steps = np.diff(y)
    return len(y) >= FEWEST_SORTED and bool(steps.any()) and bool((steps >= 0).all() or (steps <= 0).all())
