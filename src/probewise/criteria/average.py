"""The mean of several criteria as a criterion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..executors import Map, threads
from ..validation.errors import ParameterError
from .base import BoundCriterion, Criterion, Floats, Folds

MOST_THREADS = 16  # two per batch, for all batches that a device works on at a time


def _combined(name: str, combine: Callable[[Iterable[Any]], Any]) -> Any:
    """A property that combines an attribute of all parts."""
    return property(lambda self: combine(map(attrgetter(name), self.parts)))


def _common_widths(widths: Iterable[tuple[float, float] | None]) -> tuple[float, float] | None:
    limits = list(filter(None, widths))
    if not limits:
        return None
    lows, highs = zip(*limits, strict=True)
    return max(lows), min(highs)


@dataclass(eq=False, repr=False)
class Average(Criterion):
    """The mean of the J of several criteria, bound to the same data, folds and score.

    A feature that only one of the models can use still gets a good score; one that all of them can use gets the best.

    Parameters
    ----------
    parts : sequence of Criterion
        The criteria, such as ``(KNN(10), Linear())``. Their J should be on one scale, as all are with
        ``scoring="probability"`` or "accuracy".
    """

    parts: Any

    block_size = _combined("block_size", min)
    prefer = _combined("prefer", min)  # "processes" comes before "threads"
    streams = _combined("streams", all)
    several_targets = _combined("several_targets", all)
    goes_by_width = _combined("goes_by_width", any)
    widths = _combined("widths", _common_widths)
    allow_nan = _combined("allow_nan", all)
    needs_target = _combined("needs_target", any)

    @property
    def task(self) -> str:
        """Task of the first part that is not "auto"."""
        for part in self.parts:
            if (task := getattr(part, "task", "auto")) != "auto":
                return str(task)
        return "auto"

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundAverage:
        if not len(self.parts) or not all(isinstance(part, Criterion) for part in self.parts):
            raise ParameterError(f"parts={self.parts!r}: give one or more criteria, such as (KNN(10), Linear())")
        options = {"groups": groups, "scoring": scoring}
        if sample_weight is not None:
            options["sample_weight"] = sample_weight
        bound: list[BoundCriterion] = []
        for part in self.parts:
            bound.append(part.bind(X, y, cv, **options))
            folds = bound[-1].folds
            # All parts take the same splits: an iterator can be read once, and a splitter without a seed is random.
            if len(folds.splits):
                cv, options["groups"] = "loo" if folds.is_loo else folds.splits, None
        return BoundAverage(tuple(bound), bound[0].folds)

    def describe(self) -> str:
        return f"Average({', '.join(part.describe() for part in self.parts)})"


@dataclass(frozen=True)
class BoundAverage:
    parts: tuple[BoundCriterion, ...]
    folds: Folds  # all parts have the same

    def __call__(self, subsets: Subsets) -> Floats:
        return np.mean([part(subsets) for part in self.parts], axis=0)

    @property
    def exact_share(self) -> float:
        return max(getattr(part, "exact_share", 0.0) for part in self.parts)

    def to(self, device: str) -> DeviceAverage:
        """Scorer on a torch device: a function of (indices, offsets)."""
        return DeviceAverage([part.to(device) for part in self.parts])  # type: ignore[attr-defined]


@dataclass(frozen=True)
class DeviceAverage:
    """Average on a device. Parts run in parallel: while one waits for the device, another sends work to it."""

    parts: list[Any]
    map: Map = field(default_factory=lambda: threads(MOST_THREADS))

    def __call__(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> Floats:
        return np.mean(list(self.map(lambda part: part(indices, offsets), self.parts)), axis=0)
