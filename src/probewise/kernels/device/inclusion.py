"""Products of the matrix of inclusion, probes by columns, with a vector, on a device, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .columns import send_array

Floats = NDArray[np.float64]


class Inclusion:
    """The matrix, sent once: which columns are in a probe, and which probes a column is in.

    ``place`` is the column of each feature, ``lengths`` are how many probes rounds have, ``shares`` of a probe how much
    of its round's features it holds. Every call gives the same bits.
    """

    def __init__(
        self,
        indices: NDArray[np.int32],
        offsets: NDArray[np.int64],
        place: NDArray[np.int32],
        lengths: Any,
        shares: Floats,
        device: str,
    ) -> None:
        self.device = device
        self.offsets, self.shares = self._send(offsets), self._send(shares)
        self.columns = self._send(place)[self._send(indices)]
        self.sizes = torch.diff(self.offsets)
        of_probe = torch.repeat_interleave(self.sizes, output_size=len(indices))
        ordered, order = torch.sort(self.columns, stable=True)
        self.probes = of_probe[order]
        n_columns = int(place.max()) + 1
        self.starts = torch.searchsorted(ordered, torch.arange(n_columns + 1, device=device, dtype=ordered.dtype))
        self.round_starts = self._send(np.r_[0, np.cumsum(lengths)])
        self.round_of = self._send(np.repeat(np.arange(len(lengths)), lengths))

    def times(self, w: Floats) -> Floats:
        """For each probe the sum of w over its columns."""
        out: Floats = self._times(w).cpu().numpy()
        return out

    def transposed_times(self, values: Floats) -> Floats:
        """For each column the sum of the values of the probes it is in."""
        out: Floats = self._transposed_times(self._send(values)).cpu().numpy()
        return out

    def normal(self, w: Floats, means: Floats) -> tuple[Floats, Floats]:
        """Both, one after the other, probes less their size times the mean of their round; and that times ``shares``,
        summed over each round."""
        centred = self._times(w) - self.sizes * self._send(means)[self.round_of]
        sums = self._transposed_times(centred)
        by_round = torch.segment_reduce(centred * self.shares, "sum", offsets=self.round_starts, initial=0.0)
        both = torch.cat([sums, by_round]).cpu().numpy()
        return both[: len(sums)], both[len(sums) :]

    def _times(self, w: Floats) -> Tensor:
        return torch.segment_reduce(self._send(w)[self.columns], "sum", offsets=self.offsets, initial=0.0)

    def _transposed_times(self, values: Tensor) -> Tensor:
        return torch.segment_reduce(values[self.probes], "sum", offsets=self.starts, initial=0.0)

    def _send(self, values: Any) -> Tensor:
        return send_array(values, self.device)
