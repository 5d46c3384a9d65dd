"""Products of the inclusion matrix (probes by features) with vectors on a GPU, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .columns import send_array

Floats = NDArray[np.float64]


class Inclusion:
    """The inclusion matrix on a device, see `engine.regression.Design`. Repeated calls return the same bits."""

    def __init__(
        self,
        indices: NDArray[np.int32],
        offsets: NDArray[np.int64],
        column_of: NDArray[np.int32],
        lengths: Any,
        n_active: NDArray[np.int64],
        n_columns: NDArray[np.int64],
        roots: Floats,
        device: str,
    ) -> None:
        self.device = device
        self.offsets, self.roots, self.n_active = self._send(offsets), self._send(roots), self._send(n_active)
        self.columns = self._send(column_of)[self._send(indices)]
        self.sizes = torch.diff(self.offsets)
        probe_of_index = torch.repeat_interleave(self.sizes, output_size=len(indices))
        ordered, order = torch.sort(self.columns, stable=True)
        self.probes = probe_of_index[order]
        self.starts = torch.searchsorted(ordered, torch.arange(len(roots) + 1, device=device, dtype=ordered.dtype))
        self.round_starts = self._send(np.r_[0, np.cumsum(lengths)])
        self.round_of = self._send(np.repeat(np.arange(len(lengths)), lengths))
        self.shares = self.sizes.double() / self.n_active[self.round_of]
        # Columns sorted by the round after which they were dropped, last round first.
        self.column_starts = self._send(np.r_[0, n_columns[::-1]])
        self.dropped_after = torch.repeat_interleave(self.column_starts.diff(), output_size=len(roots))

    def times(self, w: Floats) -> Floats:
        """Sum of w over the columns of each probe."""
        out: Floats = self._times(self._send(w)).cpu().numpy()
        return out

    def transposed_times(self, values: Floats) -> Floats:
        """Sum over the probes that contain each column."""
        out: Floats = self._transposed_times(self._send(values)).cpu().numpy()
        return out

    def solve(self, right_side: Floats, penalty: float, tolerance: float, max_steps: int) -> Floats:
        """Solve (MᵀM + penalty I) w = right_side by conjugate gradients; M: columns minus their means in each round."""
        residual = self._send(right_side)
        w, direction = torch.zeros_like(residual), torch.zeros_like(residual)
        last_square, limit = torch.ones((), dtype=residual.dtype), tolerance * float(residual.norm())
        for _ in range(max_steps):
            if float(residual.norm()) <= limit:
                break
            square = residual @ residual
            direction = residual + (square / last_square.to(square)) * direction
            last_square, image = square, self._normal(direction) + penalty * direction
            step = square / (direction @ image)
            w += step * direction
            residual -= step * image
        out: Floats = w.cpu().numpy()
        return out

    def _normal(self, w: Tensor) -> Tensor:
        weights = torch.segment_reduce(self.roots * w, "sum", offsets=self.column_starts, initial=0.0)
        means = weights.cumsum(0).flip(0) / self.n_active
        centered = self._times(w) - self.sizes * means[self.round_of]
        sums_by_round = torch.segment_reduce(centered * self.shares, "sum", offsets=self.round_starts, initial=0.0)
        round_sums = sums_by_round.cumsum(0).flip(0)[self.dropped_after]
        return (self._transposed_times(centered) - round_sums) * self.roots

    def _times(self, w: Tensor) -> Tensor:
        return torch.segment_reduce(w[self.columns], "sum", offsets=self.offsets, initial=0.0)

    def _transposed_times(self, values: Tensor) -> Tensor:
        return torch.segment_reduce(values[self.probes], "sum", offsets=self.starts, initial=0.0)

    def _send(self, values: Any) -> Tensor:
        return send_array(values, self.device)
