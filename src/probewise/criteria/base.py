"""The contract of criteria, their ids, the target y as class codes or numbers, and cross-validation folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils.multiclass import type_of_target

from ..engine.fingerprints import fingerprint
from ..engine.probes import Subsets
from ..engine.settings import UNNAMED
from ..validation.errors import ParameterError, warn
from ..validation.parameters import checked_groups, require_finite_target, survival_in
from ..validation.survival import Survival
from ..validation.tables import SQUARED

if TYPE_CHECKING:  # mypy accepts any argument of a dataclass whose base it cannot see

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Any: ...
else:
    from sklearn.base import BaseEstimator

Floats = NDArray[np.float64]
MOST_CLASSES = 1000
LIBRARIES = frozenset(("builtins", "numpy", "scipy", "sklearn", "probewise"))
Split = tuple[NDArray[np.int64], NDArray[np.int64]]
FOR_QUANTITIES = "a criterion for regression such as KNN(task='regression')"
FEW_CLASSES, MANY_VALUES, BORDERLINE = 10, 20, 50  # distinct whole numbers: classes, quantities, and either
ROWS_OF_A_CLASS = 3  # counts have rarer values or gaps in their tails
FEWEST_SORTED = 12  # numbers that are in order by chance once in 200 million tables


class BoundCriterion(Protocol):
    """A criterion bound to data: takes a batch of subsets and returns one J per subset; larger is better.

    J of a subset must not depend on the other subsets of the batch. ``folds`` goes into the ledger's fingerprint.
    """

    @property
    def folds(self) -> Folds: ...

    def __call__(self, subsets: Subsets) -> Floats: ...


class Criterion(BaseEstimator):
    """A measure J of how good a feature subset is, with hints on how to run it."""

    block_size = 50  # probes in a block; small where a probe is slow, so that a time limit is kept
    prefer = "threads"  # if the work releases the GIL, else "processes"
    streams = False  # whether ``bind`` takes a `Stored` table, reading only ``X[:, columns]``
    several_targets = False  # whether y may have several columns of numbers, over which J is the mean
    goes_by_width = False  # whether wide columns count more than narrow ones, as in distances
    needs_target: bool = True
    widths: tuple[float, float] | None = None  # limits of max - min of a column that is not constant

    @property
    def allow_nan(self) -> bool:
        """Whether X may contain NaN; by default if the parameter ``missing`` is set."""
        return getattr(self, "missing", None) is not None

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundCriterion:
        """The criterion bound to this data: a function of batches of subsets.

        X is an array, a sparse matrix or a `Stored`; y is None for a criterion that needs none. ``cv``, ``groups`` and
        ``scoring`` are as in `DAF`; ``cv="loo"`` leaves out one row at a time. ``sample_weight`` is passed only if the
        user gave weights: a criterion without weights may omit the parameter.
        """
        raise TypeError(f"{type(self).__name__} must define bind")

    def describe(self) -> str:
        """Text id for the ledger: class and parameters, the same in every process."""
        return stable_text(self)


@dataclass(frozen=True)
class Target:
    """y as class codes, with the labels in ``classes``, or as numbers, with ``classes`` None.

    The numbers of a survival outcome are its martingale residuals. Several targets are the columns of ``values``.
    """

    values: NDArray[Any]
    classes: NDArray[Any] | None
    survival: Survival | None = None

    @property
    def is_classification(self) -> bool:
        return self.classes is not None

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for numbers."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def n_targets(self) -> int:
        return 1 if self.values.ndim == 1 else int(self.values.shape[1])

    @classmethod
    def of(cls, y: Any, task: str = "auto") -> Target:
        """Target of a task; "auto" is regression if y is continuous or looks like a quantity in whole numbers."""
        if task not in ("auto", "classification", "regression"):
            raise ValueError(f"task={task!r}: choose 'auto', 'classification' or 'regression'")
        if (survival := survival_in(y)) is not None:
            return cls(survival.residuals(), None, survival)
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] > 1:
            return cls(np.column_stack([_numbers(column) for column in y.T]), None)
        kind = kind_of_target(y)
        if kind not in ("binary", "multiclass", "continuous"):
            raise ValueError(f"Unknown label type: y is {kind}; give one class label or one number per row")
        if task == "regression" or (task == "auto" and (kind == "continuous" or is_whole_quantity(y))):
            return cls(_numbers(y), None)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class ({classes.tolist()[0]!r}), so there is nothing to predict: give rows of two"
            )
        return cls(codes.astype(np.int64, copy=False), classes)

    @classmethod
    def of_classes(cls, y: Any) -> Target:
        """Target of a method that only knows classes; a continuous y is an error."""
        if kind_of_target(np.asarray(y)).startswith("continuous"):
            raise ValueError(
                "Unknown label type: y is continuous, and this method needs classes: cut y into classes, or use a "
                "method for numbers such as DAF, BIF or ReliefF"
            )
        return cls.of(y, "classification")


def is_whole_quantity(y: NDArray[Any]) -> bool:
    """Whether whole numbers look like a quantity: more than 20 of them, or more than 10 and a tenth of the rows.

    Labels that count the classes, 0, 1, 2, ... or 1, 2, 3, ..., with three rows or more of each class, are classes.
    """
    if y.dtype.kind not in "iuf":
        return False
    values, counts = np.unique(y, return_counts=True)
    if len(values) <= max(FEW_CLASSES, min(MANY_VALUES, len(y) // 10)):
        return False
    are_labels = values[0] in (0, 1) and values[-1] - values[0] == len(values) - 1
    return not (are_labels and counts.min() >= ROWS_OF_A_CLASS)


def note_on_task(y: Any, *, is_classification: bool) -> str | None:
    """A sentence that says how whole numbers were read, where they may be either classes or a quantity."""
    y = np.asarray(y)
    n_values = len(np.unique(y)) if y.ndim == 1 and y.dtype.kind in "iuf" else 0
    if not FEW_CLASSES < n_values <= BORDERLINE or (y != np.round(y)).any():
        return None
    read = f"y has {n_values} distinct whole numbers and is read as"
    if is_classification:
        return f"{read} classes; if it is a quantity, use task='regression' of the criterion (rank --task regression)"
    return f"{read} a quantity; if these are classes, give them as text (y.astype(str); rank --task classification)"


def require_few_classes(classes: NDArray[Any] | None, method: str, remedy: str) -> None:
    """Refuse many classes, for methods whose time or memory grows with their square or with classes x rows x rows."""
    if classes is not None and len(classes) > MOST_CLASSES:
        raise ValueError(
            f"y has {len(classes):,} classes, and {method} takes {MOST_CLASSES:,} at most: {remedy}, or merge classes"
        )


def kind_of_target(y: NDArray[Any]) -> str:
    """Type of y by scikit-learn's `type_of_target`: "binary", "multiclass", "continuous" or another."""
    with np.errstate(invalid="ignore"):  # type_of_target casts numbers of any size to integers
        return str(type_of_target(y, input_name="y"))


def _numbers(y: NDArray[Any]) -> Floats:
    """y as float64; constant, not finite, or too wide or narrow values are errors."""
    if y.dtype.kind not in "biuf":
        raise ValueError(f"y is of type {y.dtype} and regression needs numbers: give numbers, or task='classification'")
    numbers = np.asarray(y, dtype=np.float64)
    require_finite_target(numbers)
    if len(numbers) > 1:
        with np.errstate(over="ignore"):
            width = float(np.ptp(numbers))
        if width == 0:
            raise ValueError(
                f"y has only one value ({numbers[0]:g}), so there is nothing to predict: give rows that differ in y"
            )
        if not SQUARED[0] <= width <= SQUARED[1]:
            raise ValueError(
                f"y is too {'large' if width > 1 else 'small'} to be computed with: its width, max - min, is "
                f"{width:.3g}; scale it to a width between {SQUARED[0]:g} and {SQUARED[1]:g}"
            )
    return numbers


# ---- folds


@dataclass(frozen=True)
class Folds:
    """Training and test rows of each split. "Tests" are the test rows of all splits, one split after the other."""

    splits: Sequence[Split]
    n_rows: int

    @classmethod
    def of(cls, cv: Any, y: NDArray[Any], *, is_classification: bool, groups: Any = None) -> Folds:
        """Splits as scikit-learn makes them, stratified for classes; ``cv``: a number, splitter, iterable or "loo"."""
        groups = checked_groups(groups, len(y))
        if isinstance(cv, str) and cv == "loo":
            if len(y) < 2:
                raise ParameterError(f"cv={cv!r} needs at least 2 rows, n_samples={len(y)}")
            n_single = int((np.unique(y, return_counts=True)[1] == 1).sum()) if is_classification else 0
            if 2 * n_single > len(y):
                raise ParameterError(
                    f"{n_single:,} of {len(y):,} rows are the only ones of their class, so no model can learn their "
                    f"class from the other rows: merge rare classes, or, if y is a quantity, use {FOR_QUANTITIES}"
                )
            folds = cls(LeaveOneOutSplits(len(y)), len(y))
        else:
            folds = cls(_splits(cv, y, is_classification, groups), len(y))
        if groups is not None and (n_split := folds.n_split_groups(groups)):
            splitter = "StratifiedGroupKFold" if is_classification else "GroupKFold"
            warn(
                f"cv splits {n_split:,} groups: a fold trains and tests on rows of the same group, and features that "
                f"only identify the group look good; give cv={splitter}(3) to keep each group in one fold"
            )
        return folds

    def n_split_groups(self, groups: Any) -> int:
        """Number of groups of rows that occur on both sides of a split."""
        labels, codes = np.unique(np.asarray(groups), return_inverse=True)
        if self.is_loo:
            return int((np.bincount(codes) > 1).sum())
        is_split = np.zeros(len(labels), dtype=bool)
        for train, test in self.splits:
            is_split[np.intersect1d(codes[train], codes[test])] = True
        return int(is_split.sum())

    @property
    def is_loo(self) -> bool:
        """Whether each split leaves out a single row, so that a split has no score of its own."""
        return isinstance(self.splits, LeaveOneOutSplits)

    @property
    def order(self) -> NDArray[np.int64]:
        """Row of each test."""
        return np.arange(self.n_rows) if self.is_loo else np.concatenate([np.sort(test) for _, test in self.splits])

    @cached_property
    def borders(self) -> NDArray[np.int64]:
        """First test of each split, and the number of all tests."""
        if self.is_loo:
            return np.arange(self.n_rows + 1)
        return np.cumsum([0, *(len(test) for _, test in self.splits)])

    @cached_property
    def parts(self) -> list[slice]:
        """Tests of each split."""
        return [slice(start, stop) for start, stop in pairwise(self.borders.tolist())]

    @cached_property
    def is_partition(self) -> bool:
        """Whether every row is tested once, by a model trained on all rows of the other folds."""
        rows = np.arange(self.n_rows)
        return self.is_loo or (
            np.array_equal(np.sort(self.order), rows)
            and all(np.array_equal(np.sort(np.concatenate(split)), rows) for split in self.splits)
        )

    @property
    def identity(self) -> Sequence[Split]:
        """Arrays for the fingerprint of the folds; for leave-one-out a short stand-in that no other splits have."""
        return ((np.empty(0, np.int64), np.array([self.n_rows])),) if self.is_loo else self.splits


@dataclass(frozen=True)
class LeaveOneOutSplits(Sequence[Split]):
    """Splits that leave out one row each, computed on access: together they contain n_rows squared numbers."""

    n_rows: int

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, k: Any) -> Any:
        row = range(self.n_rows)[k]
        return np.delete(np.arange(self.n_rows), row), np.array([row])


def folds_of_groups(n_folds: int, groups: Any, is_classification: bool) -> Any:
    """Splitter that keeps each group of rows in one fold, with at most as many folds as groups."""
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ParameterError("groups: all rows are of one group, so none is left to test on")
    return (StratifiedGroupKFold if is_classification else GroupKFold)(min(n_folds, n_groups))


def _splits(cv: Any, y: NDArray[Any], is_classification: bool, groups: Any) -> Sequence[Split]:
    is_number = isinstance(cv, int | np.integer)
    if is_number and cv < 2:
        raise ParameterError(f"cv={cv!r} must be at least 2: a fold is tested by a model trained on the others")
    splitter = check_cv(cv, y, classifier=is_classification)
    if is_classification and isinstance(splitter, StratifiedKFold):
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < splitter.n_splits:
            raise ParameterError(
                f"class {labels[np.argmin(counts)]} has n_samples={counts.min()}, fewer than cv={splitter.n_splits} "
                "folds: use a smaller cv, leave out or merge rare classes, or, if y is a quantity, use "
                f"{FOR_QUANTITIES}"
            )
    elif is_number and len(y) < cv:
        raise ParameterError(f"cv={cv!r} needs at least {cv} rows, n_samples={len(y)}: use a smaller cv")
    elif is_number and _are_sorted(y):
        warn(
            f"the rows are sorted by y: none of the {cv} folds is trained on numbers like those it is tested on, and "
            "scores are meaningless; shuffle the rows"
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")  # `of` warns if groups are split
        splits = tuple((np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.empty((len(y), 0)), y, groups))
    if not splits:
        raise ParameterError(f"cv={cv!r} gives no split")
    for number, split in enumerate(splits):
        if not all(map(len, split)):
            raise ParameterError(f"cv={cv!r} leaves no rows to train on, or to test, in fold {number}: use fewer folds")
    return splits


def require_trainable(splits: Sequence[Split], y: NDArray[Any], is_classification: bool, cause: str) -> None:
    """Refuse folds from which no model can learn: with one value of y to train on, or without the tested classes.

    ``cause`` is the parameter to change.
    """
    what = "class" if is_classification else "value of y"
    for number, (train, _) in enumerate(splits):
        if len(values := np.unique(y[train])) == 1:
            raise ParameterError(
                f"{cause}: fold {number} is trained on rows of a single {what} ({values.tolist()[0]!r}), from which no "
                f"model can learn: use {cause} that leave two or more in every training fold"
            )
    if is_classification and not any(np.isin(y[test], y[train]).any() for train, test in splits):
        raise ParameterError(
            f"{cause}: no fold is trained on the classes that it is tested on, so nothing can be predicted; use "
            f"{cause} that do not coincide with the classes"
        )


def _are_sorted(y: NDArray[Any]) -> bool:
    steps = np.diff(y if y.ndim == 1 else y[:, 0])
    return len(y) >= FEWEST_SORTED and bool(steps.any()) and bool((steps >= 0).all() or (steps <= 0).all())


# ---- ids


def stable_text(value: Any) -> str:
    """Id of a criterion or an estimator, by which ledgers and studies know it: its class and parameters as text.

    A user's function or object has no id, because its code may change between two runs: its text ends in ``UNNAMED``.
    It is given a name instead, `Function(f, name="first")`.
    """
    if isinstance(value, BaseEstimator):
        parameters = sorted(value.get_params(deep=False).items())
        return f"{type(value).__name__}({', '.join(f'{name}={stable_text(item)}' for name, item in parameters)})"
    if isinstance(value, list):
        return f"[{', '.join(map(stable_text, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(stable_text, value))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{stable_text(key)}: {stable_text(item)}' for key, item in value.items())}}}"
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"array {fingerprint(value)}"
    if isinstance(value, np.ufunc):
        return value.__name__
    if isinstance(value, type | FunctionType):
        return value.__name__ + ("" if _is_in_library(value) else UNNAMED)
    text = repr(value)
    # "<" begins a memory address. A scorer shows only the name of its function, which may be the user's.
    if isinstance(value, str) or (_is_in_library(type(value)) and "<" not in text and "make_scorer(" not in text):
        return text
    return type(value).__name__ + UNNAMED


def _is_in_library(value: type | FunctionType) -> bool:
    """Whether a class or function can be found in a library by its name."""
    return value.__module__.partition(".")[0] in LIBRARIES and "<" not in value.__qualname__
