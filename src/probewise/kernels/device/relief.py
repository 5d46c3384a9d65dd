"""What Relief needs of rows on a device: the nearest of each class by sums of differences, and weighted differences.

Columns are scaled as in `kernels.relief` and kept in float64, rows in order of class. Distances are rounded to 34
binary digits, as on the CPU, which leaves the last 19 bits of a float64 free: the row's number stands there, so that of
rows equally far the lower comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from . import filter_kernels
from .columns import Streams, free_bytes, require_room, send_array
from .streaming import column_slices

SPARE_BITS = 19
ROWS_TOGETHER = 2**SPARE_BITS
SPLITTER = 2.0**SPARE_BITS + 1
FAR = 2**63 - 1
ALIGN = 128

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


class DeviceTable:
    """Scaled columns (x - low) / divisor on a device: lines (features, rows), padded to a multiple of 128 rows."""

    def __init__(
        self,
        X: Any,
        low: Floats,
        divisor: Floats,
        capped: bool,
        codes: Rows,
        k: int,
        device: str,
        *,
        map: Callable[..., Any] = map,
    ) -> None:
        n_rows, n_features = X.shape
        self.device, self.capped, self.k = device, capped, k
        self.n_rows, self.n_features = n_rows, n_features
        self.order = np.argsort(codes, kind="stable")
        self.place = np.empty(n_rows, np.int64)
        self.place[self.order] = np.arange(n_rows)
        self.class_ends = np.cumsum(np.bincount(codes))
        self.streams, self.kernels = Streams(device), filter_kernels(device)
        width = -(-n_rows // ALIGN) * ALIGN
        require_room(
            8 * n_features * width, device, f"ReliefF's copy of X in float64 ({n_rows} x {n_features}; lines of rows)"
        )
        with self.streams():
            self.lines = torch.zeros((n_features, width), dtype=torch.float64, device=device)
            order = self._send(self.order)
            for columns, values in column_slices(X, device, map=map):
                scaled = (values.double() - self._send(low[columns])) / self._send(divisor[columns])
                self.lines[columns, :n_rows] = scaled[order].T

    def nearest(self, samples: Rows) -> Rows:
        """The k nearest rows of each class to every sample (samples, slots), ascending in each class; -1 where there
        are none."""
        step = max(1, free_bytes(self.device) // (48 * self.lines.shape[1]))
        with self.streams():
            found = [self._nearest(samples[start : start + step]) for start in range(0, len(samples), step)]
            places: Rows = torch.cat(found).cpu().numpy()
        near = np.where(places >= 0, self.order[places], -1)
        slots = np.minimum(self.k, np.diff(self.class_ends, prepend=0))
        for start, end in zip(np.cumsum(slots) - slots, np.cumsum(slots), strict=True):
            near[:, start:end].sort(axis=1)
        return near

    def _nearest(self, samples: Rows) -> Tensor:
        """Places of the nearest, class after class."""
        own = self._send(self.place[samples])
        large = (distances := self._distances(own)) * SPLITTER
        keys = (large - (large - distances)).view(torch.int64)
        keys.scatter_(1, own[:, None], FAR)
        starts = [0, *self.class_ends[:-1].tolist()]
        ends = self.class_ends.tolist()
        return torch.cat([_least(keys, a, b, self.k) for a, b in zip(starts, ends, strict=True)], dim=1)

    def _distances(self, own: Tensor) -> Tensor:
        """Sums of differences of some rows from all (rows, all rows)."""
        if self.kernels is not None:
            sums: Tensor = self.kernels.sums_of_diffs(self.lines, own, self.n_rows, capped=self.capped)
            return sums
        sums = torch.zeros((len(own), self.n_rows), dtype=torch.float64, device=self.device)
        step = self._features_at_once(len(own) * self.n_rows if self.capped else len(own) + self.n_rows)
        for start in range(0, self.n_features, step):
            values = self.lines[start : start + step, : self.n_rows]
            if self.capped:
                sums += (values[:, own, None] - values[:, None, :]).abs_().clamp_(max=1.0).sum(dim=0)
            else:
                sums += torch.cdist(values[:, own].T.contiguous(), values.T.contiguous(), p=1.0)
        return sums

    def weighted_diffs(self, samples: Rows, near: Rows, weights: Floats) -> Floats:
        """For each feature the sum of weight * diff over the samples and their neighbours; -1 is nobody."""
        own = self.place[samples]
        theirs = np.where(near >= 0, self.place[near], own[:, None])
        weights = np.where(near >= 0, weights, 0.0)
        with self.streams():
            weigh = (
                self.kernels.WeightedPairs.of(own, theirs, weights, self.device) if self.kernels is not None else None
            )
            pairs = self._send(own), self._send(theirs), self._send(weights)
            step = self._features_at_once(self.n_rows + 4 * len(samples))
            parts = []
            for start in range(0, self.n_features, step):
                values = self.lines[start : start + step, : self.n_rows].T.contiguous()
                parts.append(self._weighed(values, *pairs) if weigh is None else weigh(values, capped=self.capped))
            sums: Floats = torch.cat(parts).cpu().numpy()
        return sums

    def _weighed(self, values: Tensor, own: Tensor, theirs: Tensor, weights: Tensor) -> Tensor:
        mine = values[own]
        sums = torch.zeros(values.shape[1], dtype=torch.float64, device=self.device)
        for slot in range(theirs.shape[1]):
            apart = (mine - values[theirs[:, slot]]).abs_()
            apart = apart.clamp_(max=1.0) if self.capped else apart
            sums += apart.mul_(weights[:, slot, None]).sum(dim=0)
        return sums

    def _send(self, values: Any) -> Tensor:
        return send_array(values, self.device)

    def _features_at_once(self, numbers: int) -> int:
        return max(1, free_bytes(self.device) // (16 * numbers))


def _least(keys: Tensor, first: int, last: int, k: int) -> Tensor:
    """The places of the k least of keys[:, first:last], the lower first where keys are equal; -1 for FAR."""
    k = min(k, last - first)
    best, places = None, None
    for start in range(first, last, ROWS_TOGETHER):
        stop = min(start + ROWS_TOGETHER, last)
        numbers = torch.arange(stop - start, device=keys.device)
        some = torch.topk(keys[:, start:stop] | numbers, min(k, stop - start), dim=1, largest=False).values
        at = torch.where(some == FAR, -1, (some & (2**SPARE_BITS - 1)) + start)
        some = some >> SPARE_BITS
        if best is not None:
            some, order = torch.sort(torch.cat([best, some], dim=1), dim=1, stable=True)
            some, at = some[:, :k], torch.cat([places, at], dim=1).gather(1, order[:, :k])
        best, places = some, at
    return places
