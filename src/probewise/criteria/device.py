"""Bound criteria on a device, with the data, folds and subsets of the CPU and kernels of their own."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.probes import Subsets
from ..kernels.device import find
from ..validation.errors import ParameterError
from .base import BoundCriterion, Floats, Folds

DEVICE_BLOCK_SIZE = 4000  # probes at a time, enough to keep a GPU busy
MOST_AT_ONCE, ROWS_AT_ONCE = 8000, 16_000_000  # most probes, and most probes x rows, per call in a long run
IN_FLIGHT, FEW_IN_FLIGHT = 8, 3  # batches that a device works on at a time, with much and with little memory
MUCH_MEMORY = 2**35
_scorer_lock = threading.Lock()


def to_device(bound: Any, device: str) -> BoundCriterion:
    """The bound criterion itself for the CPU, else an `OnDevice`; "auto" uses a GPU if possible."""
    torch_device = find(device)
    parts = getattr(bound, "parts", (bound,))
    only_on_cpu = [type(part).__name__.removeprefix("Bound") for part in parts if not hasattr(part, "to")]
    if torch_device is None or (device == "auto" and only_on_cpu):
        return bound
    if only_on_cpu:
        raise ParameterError(
            f"device={device!r}: {only_on_cpu[0]} runs on the CPU only: use device='cpu', or criterion='knn', 'linear' "
            "or an Average of these, which run on a GPU"
        )
    return OnDevice(bound, device)


@dataclass(frozen=True)
class OnDevice:
    """A bound criterion that scores on a device. Each process sends X there once, on its first call."""

    bound: Any
    device: str

    @property
    def folds(self) -> Folds:
        return self.bound.folds

    def __call__(self, subsets: Subsets) -> Floats:
        return self.scorer(subsets.indices, subsets.offsets)

    @property
    def in_flight(self) -> int:
        """Number of batches to keep the device busy with at a time."""
        from ..kernels.device.columns import memory

        return IN_FLIGHT if memory(str(find(self.device))) >= MUCH_MEMORY else FEW_IN_FLIGHT

    def warm_up(self, largest: int) -> None:
        """Send X and compile for subsets of all sizes in the background; an error here will occur again later."""

        def score_samples() -> None:
            sizes = np.unique(np.linspace(1, largest, 12, dtype=int)).tolist()
            subsets = Subsets.of([range(size) for size in sizes])
            with suppress(Exception):
                self(subsets)

        threading.Thread(target=score_samples, daemon=True).start()

    @property
    def scorer(self) -> Any:
        """The scorer on the device, made by the first thread that needs it."""
        with _scorer_lock:
            if "_scorer" not in self.__dict__:
                object.__setattr__(self, "_scorer", self.bound.to(find(self.device)))
        return self.__dict__["_scorer"]

    def __getstate__(self) -> dict[str, Any]:
        return {"bound": self.bound, "device": self.device}
