"""Gaussian naive Bayes with one row left out at a time, on a device, in float64.

What a column says of a row without it (mean and variance of the row's own class, variance of all) is found once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..kernels.device.bayes import all_but_each, prediction
from ..kernels.device.columns import require_room, send
from .base import Floats
from .base_device import Batch, DeviceScorer, at_a_time
from .scoring_device import Groups

PIECE = 2**22  # values at a time that moments are made of


class DeviceLeftOutBayes(DeviceScorer):
    """J of many subsets at a time.

    Lines (features + 1, rows) hold the values, and for each row without it: ``off``, how far it is from the mean of its
    class, ``own``, the variance of its class, and ``pooled``, that of all rows.
    """

    def _prepare(self) -> None:
        bound, columns = self.bound, self.bound.columns
        self.n_features, self.n_rows, self.n_classes = columns.n_features, bound.folds.n_rows, bound.target.n_classes
        self.labels, plain = self._send(bound.target.values), np.ones(self.n_rows)
        weights = bound.measure.weights if bound.measure.is_weighted else plain
        require_room(40 * self.n_rows * self.n_features, self.device, f"X ({self.n_rows} x {self.n_features})")
        centers = None if columns.is_sparse else columns.centers
        rows = np.arange(self.n_rows)
        self.lines = send(columns.X, rows, self.device, centers=centers, dtype=torch.float64)[:, : self.n_rows]
        self.off, self.own, self.pooled = (torch.zeros_like(self.lines) for _ in range(3))
        shape = len(self.lines), self.n_classes
        self.mean, self.variance = (torch.zeros(shape, dtype=torch.float64, device=self.device) for _ in range(2))
        for part in torch.split(torch.arange(len(self.lines), device=self.device), max(1, PIECE // self.n_rows)):
            some = slice(int(part[0]), int(part[-1]) + 1)
            self._add_moments(some, weights)
            self.pooled[some] = self._without(self.lines[some], plain)[2] / (self.n_rows - 1)
        self._count(weights)

    def _without(self, lines: Tensor, weights: Any) -> tuple[Tensor, ...]:
        return all_but_each(lines, self._send(np.asarray(weights, np.float64)))

    def _add_moments(self, some: slice, weights: Floats) -> None:
        for number in range(self.n_classes):
            members = np.flatnonzero(self.bound.target.values == number)
            rows, lines = self._send(members), self.lines[some][:, self._send(members)]
            size, mean, square, whole = self._without(lines, weights[members])
            self.off[some, rows] = lines - mean
            self.own[some, rows] = square / torch.where(size > 0, size, 1.0)
            self.mean[some, number] = whole[1]
            self.variance[some, number] = whole[2] / whole[0].clamp(min=1e-300)

    def _count(self, weights: Floats) -> None:
        """What classes cost before any feature is asked (classes, rows): infinitely much those without other rows."""
        own = self.bound.target.values == np.arange(self.n_classes)[:, None]
        sizes, counts = own @ weights, own @ (weights > 0).astype(int)
        left, known = sizes[:, None] - own * weights, counts[:, None] > (own & (weights > 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            start = np.where(known, -np.log(left / (weights.sum() - weights)), np.inf)
        self.start, self.known = self._send(start), self._send(known)

    def _scores(self, batch: Batch, groups: Groups) -> Floats:
        return self._measured(batch, np.arange(len(batch.sizes)), groups, self._predicted, self._at_a_time)[:, :-1]

    def _predicted(self, table: Tensor) -> tuple[Tensor, Tensor]:
        classes = torch.arange(self.n_classes, device=self.device)[None]
        costs = self._costs(table)[None]
        return prediction(costs, self.labels[None, None], classes, self.measure.code)[0], table[:, 0]

    def _at_a_time(self, width: int) -> int:
        return at_a_time(8 * self.n_rows * (10 * width + 4 * self.n_classes))

    def _costs(self, table: Tensor) -> Tensor:
        """(subsets, classes, rows)"""
        values, pooled, off, own = (lines[table] for lines in (self.lines, self.pooled, self.off, self.own))
        epsilon = self.bound.var_smoothing * pooled.amax(dim=1, keepdim=True)
        own += epsilon
        is_own = [self.labels == number for number in range(self.n_classes)]
        least = torch.full_like(own, torch.inf)
        for number, mine in enumerate(is_own):
            variance = torch.where(mine, own, self.variance[table][:, :, number, None] + epsilon)
            least = torch.where(self.known[number], torch.minimum(least, variance), least)
        silent = (pooled == 0) | (least <= 0)
        costs = []
        for number, mine in enumerate(is_own):
            variance = torch.where(mine, own, self.variance[table][:, :, number, None] + epsilon)
            apart = torch.where(mine, off, values - self.mean[table][:, :, number, None])
            cost = 0.5 * (apart**2 / variance + torch.log(variance))
            costs.append(self.start[number] + torch.where(silent | ~self.known[number], 0.0, cost).sum(dim=1))
        return torch.stack(costs, dim=1)
