"""Bound criteria on a device: the same data, folds and subsets; only the kernels differ."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..kernels.device import count, find
from ..validation.errors import ParameterError
from .base import BoundCriterion, Floats, Folds

DEVICE_BLOCK_SIZE = 4000  # probes at a time: enough to keep a GPU busy
MOST_AT_ONCE, ROWS_AT_ONCE = 8000, 16_000_000  # in a long run the host's part in each call counts: probes, and rows
IN_FLIGHT, FEW_IN_FLIGHT = 8, 3  # batches on their way through a device, and through one of less memory
MUCH_MEMORY = 2**35
_sending = threading.Lock()


def to_device(bound: Any, device: str) -> BoundCriterion:
    """The criterion as it is for the CPU, or `OnDevice`; "auto" takes a GPU if there is one and the criterion can."""
    torch_device = find(device)
    parts = getattr(bound, "parts", (bound,))
    only_on_cpu = [type(part).__name__.removeprefix("Bound") for part in parts if not hasattr(part, "to")]
    if torch_device is None or (device == "auto" and only_on_cpu):
        return bound
    if only_on_cpu:
        raise ParameterError(
            f"device={device!r}: {only_on_cpu[0]} runs on the CPU only: use device='cpu', or criterion='knn', 'linear' "
            "or an Average of these two, which run on a GPU"
        )
    return OnDevice(bound, device)


@dataclass(frozen=True)
class OnDevice:
    """Scores on a device; each process sends X there once, when first called."""

    bound: Any
    device: str

    @property
    def folds(self) -> Folds:
        return self.bound.folds

    def __call__(self, subsets: Subsets) -> Floats:
        return self.scorer(subsets.indices, subsets.offsets)

    @property
    def row_shares(self) -> Floats | None:
        return getattr(self.bound, "row_shares", None)

    def outcomes(self, subsets: Subsets, group_of: NDArray[Any]) -> tuple[Floats, NDArray[np.float32]]:
        """J and the mean outcomes of groups of rows, as on the CPU."""
        return self.scorer.outcomes(subsets.indices, subsets.offsets, group_of)

    def plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """J of the subset with each candidate added, all in one batch."""
        return self(Subsets.of([np.append(subset, candidate) for candidate in candidates]))

    @property
    def in_flight(self) -> int:
        """How many batches are worth being on their way at a time."""
        from ..kernels.device.columns import memory

        return IN_FLIGHT if memory(str(find(self.device))) >= MUCH_MEMORY else FEW_IN_FLIGHT

    def warm_up(self, largest: int, group_of: NDArray[Any] | None) -> None:
        """Send X and make the programs for subsets of all sizes beside other work; what fails here fails again."""

        def score_some() -> None:
            sizes = np.unique(np.linspace(1, largest, 12, dtype=int)).tolist()
            subsets = Subsets.of([range(size) for size in sizes])
            with suppress(Exception):
                self(subsets) if group_of is None else self.outcomes(subsets, group_of)

        threading.Thread(target=score_some, daemon=True).start()

    @property
    def n_devices(self) -> int:
        """How many there are to use."""
        return count(self.device)

    @property
    def scorer(self) -> Any:
        """Made by the first thread that comes, for all."""
        with _sending:
            if "_scorer" not in self.__dict__:
                object.__setattr__(self, "_scorer", self.bound.to(find(self.device)))
        return self.__dict__["_scorer"]

    def __getstate__(self) -> dict[str, Any]:
        return {"bound": self.bound, "device": self.device}
