"""The contract of criteria, and the target y as class codes or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import type_of_target

from ..engine.probes import Subsets
from ..validation.labels import require_finite_target
from ..validation.tables import SQUARED
from .folds import FOR_QUANTITIES, Folds, Split, folds_of_groups
from .identity import stable_text

__all__ = [
    "FOR_QUANTITIES",
    "MOST_CLASSES",
    "BoundCriterion",
    "Criterion",
    "Floats",
    "Folds",
    "Split",
    "Target",
    "folds_of_groups",
    "kind_of_target",
    "require_few_classes",
]
Floats = NDArray[np.float64]
MOST_CLASSES = 1000


class BoundCriterion(Protocol):
    """A criterion bound to data: takes a batch of subsets and returns one J per subset; larger is better.

    J of a subset must not depend on the other subsets of the batch. ``folds`` goes into the ledger's fingerprint.
    """

    @property
    def folds(self) -> Folds: ...

    def __call__(self, subsets: Subsets) -> Floats: ...


class Criterion(BaseEstimator):
    """A measure J of how good a feature subset is, with hints on how to run it.

    Attributes
    ----------
    block_size : int
        Default number of probes in a block; small where a probe is slow, so that a time limit is kept.
    prefer : {"threads", "processes"}
        "threads" if the work releases the GIL.
    allow_nan : bool
        Whether X may contain NaN; by default if the parameter ``missing`` is set.
    needs_target : bool
        Whether y is required.
    widths : tuple of float or None
        Smallest and largest allowed max - min of a column that is not constant; None for no limits.
    goes_by_width : bool
        Whether wide columns count more than narrow ones, as in distances.
    streams : bool
        Whether ``bind`` takes a `Stored` table, reading only ``X[:, columns]``; otherwise X is first read into memory.
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
        """Prepare the criterion for this data.

        Parameters
        ----------
        X : array, sparse matrix or `Stored`, shape (n_samples, n_features)
        y : array of shape (n_samples,), or None for a criterion that needs none
        cv : int, cross-validation splitter, iterable or "loo", default=3
            "loo" leaves out one row at a time.
        groups : array of shape (n_samples,), optional
            Groups of rows for a splitter that keeps them together.
        scoring : str, callable or None
            The score; None is the criterion's default score.
        sample_weight : array of shape (n_samples,), optional
            Passed only if the user gave weights: a criterion without weights may omit the parameter.

        Returns
        -------
        BoundCriterion
            A function of batches of subsets.
        """
        raise TypeError(f"{type(self).__name__} must define bind")

    def describe(self) -> str:
        """Text id for the ledger: class and parameters, the same in every process."""
        return stable_text(self)


@dataclass(frozen=True)
class Target:
    """y as class codes, with the labels in ``classes``, or as numbers, with ``classes`` None."""

    values: NDArray[Any]
    classes: NDArray[Any] | None

    @property
    def is_classification(self) -> bool:
        return self.classes is not None

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for numbers."""
        return 0 if self.classes is None else len(self.classes)

    @classmethod
    def of(cls, y: Any, task: str = "auto") -> Target:
        """Target of a task; "auto" is regression if scikit-learn finds y continuous."""
        if task not in ("auto", "classification", "regression"):
            raise ValueError(f"task={task!r}: choose 'auto', 'classification' or 'regression'")
        y = np.asarray(y)
        kind = kind_of_target(y)
        if kind not in ("binary", "multiclass", "continuous"):
            raise ValueError(f"Unknown label type: y is {kind}; give one class label or one number per row")
        if task == "regression" or (task == "auto" and kind == "continuous"):
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
