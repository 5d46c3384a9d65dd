"""What the criteria share on a device: batches of subsets as padded tables, and test rows fold by fold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.device.columns import Streams, by_size, padded, send_array
from .base import Floats

# Subsets are padded to the next of these sizes: few tables, and little of each is padding.
SIZE_STEPS = np.unique([*range(8, 256, 8), *range(256, 1024, 32), *np.round(1024 * 1.25 ** np.arange(40))]).astype(int)
FOLDS_AT_A_TIME = 16


class Batch(NamedTuple):
    """Subsets as (indices, offsets), the same on the device, and their sizes."""

    indices: NDArray[np.int32]
    offsets: NDArray[np.int64]
    features: Tensor
    starts: Tensor
    sizes: NDArray[np.int64]


class DeviceScorer(ABC):
    """A bound criterion on a device: a function of subsets as (indices, offsets) that gives J of each."""

    size_steps = SIZE_STEPS
    n_features: int

    def __init__(self, bound: Any, device: str) -> None:
        self.bound, self.device = bound, device
        self.streams = Streams(device)
        self._prepare()
        self.streams.synchronize()

    @abstractmethod
    def _prepare(self) -> None:
        """Send what every call needs."""

    def __call__(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> Floats:
        with self.streams():
            return self._scores(Batch(indices, offsets, self._send(indices), self._send(offsets), np.diff(offsets)))

    @abstractmethod
    def _scores(self, batch: Batch) -> Floats: ...

    def _send(self, values: Any) -> Tensor:
        return send_array(values, self.device)

    def tables(
        self, batch: Batch, chosen: NDArray[np.int64], at_a_time: Callable[[int], int]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """(places among those chosen, features (subsets, width)), ``at_a_time(width)`` subsets or fewer."""
        for width, places in by_size(batch.sizes[chosen], self.size_steps):
            for some in np.array_split(places, -(-len(places) // at_a_time(width))):
                subsets = self._send(chosen[some])
                yield self._send(some), padded(batch.features, batch.starts, subsets, width, self.n_features)


def stack_folds(tests: Sequence[Any]) -> NDArray[Any]:
    """A table (folds, height) of what each fold holds, padded with -1."""
    height = max(len(test) for test in tests)
    table = np.full((len(tests), height), -1)
    for fold, test in enumerate(tests):
        table[fold, : len(test)] = test
    return table


def some_folds(n_folds: int) -> list[slice]:
    """All folds, a few at a time."""
    starts = range(0, n_folds, FOLDS_AT_A_TIME)
    return [slice(start, min(start + FOLDS_AT_A_TIME, n_folds)) for start in starts]


def take_test_rows(lines: Tensor, table: Tensor, folds: slice) -> Tensor:
    """The test rows of subsets (folds, subsets, width, height) from lines (features + 1, all folds, height)."""
    numbers = torch.arange(folds.start, folds.stop, device=lines.device)
    return lines[table, numbers[:, None, None]]


def r2(missed: Tensor, scatter: Tensor) -> Tensor:
    """R^2 from sums of squared errors and of squared distances from the mean; 1 or 0 where the latter is 0."""
    return torch.where(scatter > 0, 1 - missed / torch.where(scatter > 0, scatter, 1.0), (missed == 0).double())
