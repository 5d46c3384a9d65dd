"""Probes: probe i is a subset of features that is a pure function of (seed, i), so any worker can draw any probe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import draw

GAP_TABLE = 1024
MIN_EXPECTED_SIZE = 0.01  # features per probe with ``inclusion``; with fewer, nearly all probes would be drawn again


@dataclass(frozen=True, eq=False)
class Subsets:
    """A batch of feature subsets: subset k is ``indices[offsets[k]:offsets[k + 1]]``."""

    indices: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, subsets: Iterable[ArrayLike]) -> Subsets:
        """Make a batch from lists of indices."""
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

    def only(self, mask: NDArray[np.bool_]) -> Subsets:
        """Select subsets of the batch by a mask."""
        sizes = self.sizes
        return Subsets(self.indices[np.repeat(mask, sizes)], np.concatenate([[0], np.cumsum(sizes[mask])]))


@dataclass(frozen=True, eq=False)
class Round:
    """A stretch of probes: from probe ``start`` on, features are drawn from ``active`` (ascending) only."""

    start: int
    active: NDArray[np.int32]


@dataclass(frozen=True)
class ProbePlan:
    """The endless list of probes of a run.

    A size is drawn uniformly from 1 to the largest size, then that many distinct features. With ``inclusion`` every
    feature is in a probe with this probability instead (2011, eq. 4), and an empty probe is drawn again.
    """

    n_features: int
    max_size: int | None = None
    inclusion: float | None = None
    seed: int = 0  # 0 <= seed < 2**64

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds; a plain plan has one round with all features."""
        return (Round(0, np.arange(self.n_features, dtype=np.int32)),)

    def last_rounds(self) -> NDArray[np.int64]:
        """Number, from 0, of the last round of each feature."""
        last = np.zeros(self.n_features, np.int64)
        for number, part in enumerate(self.rounds):
            last[part.active] = number
        return last

    @property
    def largest(self) -> int:
        """Largest possible probe size."""
        if self.inclusion is not None or self.max_size is None:
            return self.n_features
        return min(self.n_features, self.max_size)

    def draw(self, start: int, stop: int) -> Subsets:
        """Draw probes start, ..., stop - 1, in time proportional to the features drawn, not to ``n_features``."""
        offsets, seed = self.offsets(start, stop), np.uint64(self.seed)
        if self.inclusion is None:
            return Subsets(draw.uniform_indices(self.n_features, self.largest, seed, start, offsets), offsets)
        return Subsets(draw.bernoulli_indices(self.n_features, self._tail, seed, start, offsets), offsets)

    def offsets(self, start: int, stop: int) -> NDArray[np.int64]:
        """Offsets of probes start, ..., stop - 1 in the array of their indices, with the end."""
        seed = np.uint64(self.seed)
        if self.inclusion is None:
            offsets = draw.uniform_offsets(self.n_features, self.largest, seed, start, stop)
        else:
            offsets = draw.bernoulli_offsets(self.n_features, self._tail, seed, start, stop)
        return np.asarray(offsets)

    def sizes(self, start: int, stop: int) -> NDArray[np.int64]:
        """Sizes of probes start, ..., stop - 1, without drawing them."""
        return np.diff(self.offsets(start, stop))

    def probe(self, i: int) -> NDArray[np.int32]:
        """The features of probe i."""
        return self.draw(i, i + 1)[0]

    @cached_property
    def _tail(self) -> NDArray[np.uint64]:
        """Probabilities, in units of 2**-64, that the next 1, 2, ... features are all left out; exact integers."""
        left_out = round((1 - Fraction(self.inclusion or 0)) * 2**64)
        tail = [left_out]
        while len(tail) < GAP_TABLE:
            tail.append((tail[-1] * left_out) >> 64)
        return np.array([min(probability, 2**64 - 1) for probability in tail], dtype=np.uint64)


def concatenated(batches: list[Subsets]) -> Subsets:
    """Concatenate batches."""
    if len(batches) == 1:
        return batches[0]
    sizes = [np.zeros(1, np.int64), *map(attrgetter("sizes"), batches)]
    indices = [np.empty(0, np.int32), *map(attrgetter("indices"), batches)]
    return Subsets(np.concatenate(indices), np.cumsum(np.concatenate(sizes)))
