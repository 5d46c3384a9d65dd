"""Probes: probe i is a subset of features that is a pure function of (seed, i), so any worker can draw any probe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import draw

GAP_TABLE = 1024
FEWEST_EXPECTED = 0.01  # features in a probe by inclusion; with less it is drawn again and again


@dataclass(frozen=True, eq=False)
class Subsets:
    """A batch of feature subsets: subset k is ``indices[offsets[k]:offsets[k + 1]]``."""

    indices: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, subsets: Iterable[ArrayLike]) -> Subsets:
        """The batch of the given index lists."""
        parts = [np.asarray(subset, dtype=np.int32).ravel() for subset in subsets]
        sizes = np.array([0] + [len(part) for part in parts], dtype=np.int64)
        indices = np.concatenate(parts) if parts else np.empty(0, np.int32)
        return cls(indices, np.cumsum(sizes))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, k: int) -> NDArray[np.int32]:
        return self.indices[self.offsets[k] : self.offsets[k + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[k] for k in range(len(self)))

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def only(self, chosen: NDArray[np.bool_]) -> Subsets:
        """Those of the batch that are chosen."""
        sizes = self.sizes
        return Subsets(self.indices[np.repeat(chosen, sizes)], np.concatenate([[0], np.cumsum(sizes[chosen])]))


@dataclass(frozen=True, eq=False)
class Round:
    """From probe ``start`` on, subsets are drawn of the ``active`` features (ascending) only."""

    start: int
    active: NDArray[np.int32]


@dataclass(frozen=True)
class ProbePlan:
    """The endless list of probes of a run.

    Parameters
    ----------
    n_features : number of features N.
    max_size : largest probe size tau; sizes are uniform in 1..min(N, tau), then that many distinct features.
    inclusion : if given, every feature is in with this probability instead (2011 paper, eq. 4); an empty
        draw is drawn again, and ``max_size`` plays no part.
    seed : 0 <= seed < 2**64.

    Examples
    --------
    >>> from probewise.engine.probes import ProbePlan
    >>> plan = ProbePlan(n_features=1000, max_size=5, seed=7)
    >>> plan.probe(3).tolist() == plan.draw(0, 10)[3].tolist()
    True
    """

    n_features: int
    max_size: int | None = None
    inclusion: float | None = None
    seed: int = 0

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Stretches of probes that are drawn alike; here one, of all features."""
        return (Round(0, np.arange(self.n_features, dtype=np.int32)),)

    def last_rounds(self) -> NDArray[np.int64]:
        """The number of the last round each feature was in, from 0."""
        last = np.zeros(self.n_features, np.int64)
        for number, part in enumerate(self.rounds):
            last[part.active] = number
        return last

    @property
    def largest(self) -> int:
        """The largest size a probe can have."""
        if self.inclusion is not None or self.max_size is None:
            return self.n_features
        return min(self.n_features, self.max_size)

    def draw(self, start: int, stop: int) -> Subsets:
        """Probes start, ..., stop - 1. The cost grows with the features drawn, not with ``n_features``."""
        offsets, seed = self.offsets(start, stop), np.uint64(self.seed)
        if self.inclusion is None:
            return Subsets(draw.uniform_indices(self.n_features, self.largest, seed, start, offsets), offsets)
        return Subsets(draw.bernoulli_indices(self.n_features, self._tail, seed, start, offsets), offsets)

    def offsets(self, start: int, stop: int) -> NDArray[np.int64]:
        """Where the features of each probe begin, if those of ``start`` do at 0; and the end."""
        seed = np.uint64(self.seed)
        if self.inclusion is None:
            offsets = draw.uniform_offsets(self.n_features, self.largest, seed, start, stop)
        else:
            offsets = draw.bernoulli_offsets(self.n_features, self._tail, seed, start, stop)
        return np.asarray(offsets)

    def sizes(self, start: int, stop: int) -> NDArray[np.int64]:
        """How many features probes start, ..., stop - 1 hold, without drawing them."""
        return np.diff(self.offsets(start, stop))

    def probe(self, i: int) -> NDArray[np.int32]:
        """The features of probe i."""
        return self.draw(i, i + 1)[0]

    @cached_property
    def _tail(self) -> NDArray[np.uint64]:
        """Chances, in units of 2**-64, that the next 1, 2, ... features are all passed over; exact integers."""
        passed_over = round((1 - Fraction(self.inclusion or 0)) * 2**64)
        tail = [passed_over]
        while len(tail) < GAP_TABLE:
            tail.append((tail[-1] * passed_over) >> 64)
        return np.array([min(chance, 2**64 - 1) for chance in tail], dtype=np.uint64)


def joined(batches: list[Subsets]) -> Subsets:
    """One batch of several, one after the other."""
    if len(batches) == 1:
        return batches[0]
    sizes = [np.zeros(1, np.int64), *(batch.sizes for batch in batches)]
    indices = [np.empty(0, np.int32), *(batch.indices for batch in batches)]
    return Subsets(np.concatenate(indices), np.cumsum(np.concatenate(sizes)))
