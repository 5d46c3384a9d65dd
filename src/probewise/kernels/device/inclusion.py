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

    ``place`` is the column of each feature. Of rounds, ``lengths`` are how many probes they have, ``n_active`` features
    and ``n_columns`` columns; ``roots`` of a column is the root of how many features share it. Every call gives the
    same bits.
    """

    def __init__(
        self,
        indices: NDArray[np.int32],
        offsets: NDArray[np.int64],
        place: NDArray[np.int32],
        lengths: Any,
        n_active: NDArray[np.int64],
        n_columns: NDArray[np.int64],
        roots: Floats,
        device: str,
    ) -> None:
        self.device = device
        self.offsets, self.roots, self.n_active = self._send(offsets), self._send(roots), self._send(n_active)
        self.columns = self._send(place)[self._send(indices)]
        self.sizes = torch.diff(self.offsets)
        of_probe = torch.repeat_interleave(self.sizes, output_size=len(indices))
        ordered, order = torch.sort(self.columns, stable=True)
        self.probes = of_probe[order]
        self.starts = torch.searchsorted(ordered, torch.arange(len(roots) + 1, device=device, dtype=ordered.dtype))
        self.round_starts = self._send(np.r_[0, np.cumsum(lengths)])
        self.round_of = self._send(np.repeat(np.arange(len(lengths)), lengths))
        self.shares = self.sizes.double() / self.n_active[self.round_of]
        self.column_starts = self._send(np.r_[0, n_columns[::-1]])  # of those that left after a round, the last first
        self.left_after = torch.repeat_interleave(self.column_starts.diff(), output_size=len(roots))

    def times(self, w: Floats) -> Floats:
        """For each probe the sum of w over its columns."""
        out: Floats = self._times(self._send(w)).cpu().numpy()
        return out

    def transposed_times(self, values: Floats) -> Floats:
        """For each column the sum of the values of the probes it is in."""
        out: Floats = self._transposed_times(self._send(values)).cpu().numpy()
        return out

    def solve(self, goal: Floats, penalty: float, tolerance: float, most_steps: int) -> Floats:
        """w by conjugate gradients, for which the matrix transposed times the matrix times w, each column less its mean
        in each round, plus the penalty times w, is the goal."""
        rest = self._send(goal)
        w, direction, before = torch.zeros_like(rest), torch.zeros_like(rest), torch.ones((), dtype=rest.dtype)
        enough = tolerance * float(rest.norm())
        for _ in range(most_steps):
            if float(rest.norm()) <= enough:
                break
            square = rest @ rest
            direction = rest + (square / before.to(square)) * direction
            before, image = square, self._normal(direction) + penalty * direction
            step = square / (direction @ image)
            w += step * direction
            rest -= step * image
        out: Floats = w.cpu().numpy()
        return out

    def _normal(self, w: Tensor) -> Tensor:
        weights = torch.segment_reduce(self.roots * w, "sum", offsets=self.column_starts, initial=0.0)
        means = weights.cumsum(0).flip(0) / self.n_active
        centred = self._times(w) - self.sizes * means[self.round_of]
        by_round = torch.segment_reduce(centred * self.shares, "sum", offsets=self.round_starts, initial=0.0)
        of_rounds = by_round.cumsum(0).flip(0)[self.left_after]
        return (self._transposed_times(centred) - of_rounds) * self.roots

    def _times(self, w: Tensor) -> Tensor:
        return torch.segment_reduce(w[self.columns], "sum", offsets=self.offsets, initial=0.0)

    def _transposed_times(self, values: Tensor) -> Tensor:
        return torch.segment_reduce(values[self.probes], "sum", offsets=self.starts, initial=0.0)

    def _send(self, values: Any) -> Tensor:
        return send_array(values, self.device)
