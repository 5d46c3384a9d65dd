"""Base class of the criteria on a device: batches of subsets as padded tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.device.columns import Streams, by_size, padded, send_array
from .base import Floats
from .scoring import ScoresPredictions
from .scoring_device import DeviceMeasure

# Subsets are padded to the next of these sizes: few tables, and little padding in each.
SIZE_STEPS = np.unique([*range(8, 256, 8), *range(256, 1024, 32), *np.round(1024 * 1.25 ** np.arange(40))]).astype(int)
BATCH_BYTES = 2**28  # memory for the tensors of a batch
MOST_SUBSETS = 256
REMEDY = "use device='cpu', fewer processes on this GPU, or fewer rows or features"


class Batch(NamedTuple):
    """Subsets as (indices, offsets) in main memory and as (features, starts) on the device, and their sizes."""

    indices: NDArray[np.int32]
    offsets: NDArray[np.int64]
    features: Tensor
    starts: Tensor
    sizes: NDArray[np.int64]


class DeviceScorer(ABC):
    """A bound criterion on a device: a function of subsets as (indices, offsets) that returns J of each."""

    size_steps = SIZE_STEPS
    n_features: int
    measure: DeviceMeasure  # if the criterion has one

    def __init__(self, bound: Any, device: str) -> None:
        self.bound, self.device = bound, device
        self.streams = Streams(device)
        if isinstance(bound, ScoresPredictions):
            self.measure = DeviceMeasure(bound, device)
        try:
            self._prepare()
        except torch.cuda.OutOfMemoryError as error:
            raise MemoryError(f"{device} has too little free memory for X: {REMEDY}") from error
        self.streams.free_cache()  # of what only the preparation needed

    @abstractmethod
    def _prepare(self) -> None:
        """Send the tensors that every call needs."""

    def __call__(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> Floats:
        """J of each subset. A batch that runs out of memory is scored again after all others, in parts if necessary."""
        with suppress(torch.cuda.OutOfMemoryError), self.streams():
            return self._on_stream(indices, offsets)
        return self._alone(indices, offsets)

    def _alone(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> Floats:
        """J of each subset, alone on the device. Its bits do not depend on the other subsets of a part."""
        try:
            with self.streams.alone():
                return self._on_stream(indices, offsets)
        except torch.cuda.OutOfMemoryError as error:
            if len(offsets) <= 2:
                raise MemoryError(f"{self.device} has too little free memory for a single probe: {REMEDY}") from error
        middle = len(offsets) // 2
        stop = int(offsets[middle])
        first = self._alone(indices[:stop], offsets[: middle + 1])
        return np.concatenate([first, self._alone(indices[stop:], offsets[middle:] - stop)])

    def _on_stream(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> Floats:
        try:
            batch = Batch(indices, offsets, self._send(indices), self._send(offsets), np.diff(offsets))
            return np.asarray(self._scores(batch))
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            if "out of memory" in str(error) or "ALLOC_FAILED" in str(error):  # of the driver, cuBLAS or cuSOLVER
                raise torch.cuda.OutOfMemoryError(str(error)) from error
            raise RuntimeError(f"{self.device} failed ({error}): {REMEDY}") from error

    @abstractmethod
    def _scores(self, batch: Batch) -> Floats:
        """J of each subset."""

    def _send(self, values: Any) -> Tensor:
        return send_array(values, self.device)

    def tables(
        self, batch: Batch, chosen: NDArray[np.int64], at_a_time: Callable[[int], int]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Pairs (positions among the chosen subsets, features (subsets, width)); a table may have extra subsets.

        On a GPU the rounding of a product depends on the shape of its batch. Therefore all batches of one width have
        the same shape and are filled with any subsets: the bits of J do not depend on the other subsets.
        """
        for width, positions in by_size(batch.sizes[chosen], self.size_steps):
            step = at_a_time(width)
            for start in range(0, len(positions), step):
                part = positions[start : start + step]
                subsets = self._send(np.resize(chosen[part], step) if self.device != "cpu" else chosen[part])
                yield self._send(part), padded(batch.features, batch.starts, subsets, width, self.n_features)


def at_a_time(n_bytes: float, batch_bytes: int = BATCH_BYTES, max_subsets: int = MOST_SUBSETS) -> int:
    """Number of subsets in a batch, from the bytes that each takes: enough to keep a GPU busy."""
    return int(np.clip(batch_bytes // max(1, n_bytes), 1, max_subsets))
