"""Separability of classes in feature subsets, on a device: covariances looked up or made, measured in one batch.

All in float64: determinants of nearly singular covariances have no digits to lose.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from ..kernels.device import separability as kernels
from ..kernels.device.columns import free_bytes, send
from .base import Floats
from .base_device import Batch, DeviceScorer, at_a_time
from .scoring_device import Groups
from .separability import RIDGE

MEASURES = {
    "mahalanobis": kernels.mahalanobis,
    "bhattacharyya": kernels.bhattacharyya,
    "divergence": kernels.divergence,
}
ROWS_AT_A_TIME = 4096


class DeviceSeparability(DeviceScorer):
    """J of many subsets at a time.

    Lines hold the standardised columns class by class, each about its class mean; where they fit, the covariances of
    all pairs of columns are kept instead, and a subset looks up its own.
    """

    def _prepare(self) -> None:
        bound = self.bound
        self.n_features, self.prior = bound.columns.n_features, self._send(bound.prior)
        self.mean = self._send(np.pad(bound.mean.T, ((0, 1), (0, 0))))
        edges = bound.starts.tolist() if bound.measure != "mahalanobis" else [0, bound.folds.n_rows]
        self.groups = [slice(first, last) for first, last in pairwise(edges)]
        self.lines = self._standardized()
        fits = 8 * (len(self.groups) + 2) * len(self.lines) ** 2 <= free_bytes(self.device)
        self.table = self._all_covariances() if fits else None
        if self.table is not None:
            self.lines = self.lines.new_empty((len(self.lines), 0))

    def _standardized(self) -> Tensor:
        columns, bound = self.bound.columns, self.bound
        centers = None if columns.is_sparse else columns.centers
        lines = send(columns.X, columns.rows, self.device, centers=centers, dtype=torch.float64)
        shifts = self._send(bound.shift.T)
        for number, (first, last) in enumerate(pairwise(bound.starts)):
            lines[:-1, first:last] -= shifts[:, number, None]
        lines[:-1] *= self._send(bound.scale)[:, None]
        return lines

    def _all_covariances(self) -> Tensor:
        table = torch.zeros((len(self.groups), *2 * self.lines.shape[:1]), dtype=torch.float64, device=self.device)
        for number, rows in enumerate(self.groups):
            for some in torch.split(self.lines[:, rows], ROWS_AT_A_TIME, dim=1):
                table[number].addmm_(some, some.T)
            table[number] /= rows.stop - rows.start
        return table

    def _scores(self, batch: Batch, groups: Groups) -> Floats:
        measure_of = MEASURES[self.bound.measure]
        scores = torch.zeros((len(batch.sizes), 1), dtype=torch.float64, device=self.device)
        for places, table in self.tables(batch, np.arange(len(batch.sizes)), self._at_a_time):
            scores[places, 0] = measure_of(self._covariances(table), self.mean[table], self.prior)[: len(places)]
        return scores.cpu().numpy()

    def _at_a_time(self, width: int) -> int:
        square = (5 * len(self.groups) + 6) * width**2
        return at_a_time(8 * (square + width * (self.lines.shape[1] + len(self.prior))))

    def _covariances(self, table: Tensor) -> Tensor:
        """Covariances (groups, subsets, width, width), shrunk, with the ridge; padding has variance 1."""
        if self.table is not None:
            covariances = self.table[:, table[:, :, None], table[:, None, :]]
        else:
            lines = self.lines[table]
            groups = (lines[:, :, rows] for rows in self.groups)
            covariances = torch.stack([rows @ rows.mT / rows.shape[2] for rows in groups])
        diagonal = covariances.diagonal(dim1=-2, dim2=-1)
        variance = diagonal + torch.where(table == self.n_features, 1.0, RIDGE)
        covariances *= 1.0 - self.bound.shrinkage
        diagonal.copy_(variance)
        return covariances
