"""Ridge regression with one row left out at a time, on a device: one system for all rows of a subset, in float64.

As `kernels.ridge_decisions` by columns: with H the matrix that maps targets to fitted values, a row left out has
the residual e_i / (1 - H_ii), e being those of the fit to all rows.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..kernels.device.columns import send
from ..kernels.device.linear import factorize
from ..kernels.factor import LEAST_PIVOT
from .base import Floats
from .base_device import Batch, DeviceScorer, at_a_time
from .linear_device import DeviceLinear, Task, exact_score
from .scoring_device import Groups

ROOM, MOST_AT_A_TIME = 2**30, 2048  # a table takes some forty launches, which take longer than what they launch


class DeviceLeftOutLinear(DeviceScorer):
    """J of many subsets at a time from lines in float64, about their means and in units of about their scatter."""

    size_steps = DeviceLinear.size_steps

    def _prepare(self) -> None:
        bound, columns = self.bound, self.bound.columns
        self.n_features, self.n_rows = columns.n_features, bound.folds.n_rows
        centers = None if columns.is_sparse else columns.centers
        lines = send(columns.X, columns.rows, self.device, centers=centers, dtype=torch.float64)[:, : self.n_rows]
        self.roots = self._send(bound.fit.roots)
        self.shares = self.roots**2 / (self.roots @ self.roots)
        lines = (lines - (lines @ self.shares)[:, None]) * self.roots
        lines -= (lines @ self.roots)[:, None] * self.roots / (self.roots @ self.roots)
        scale = torch.exp2(-torch.round(0.5 * torch.log2((lines**2).sum(dim=1) + bound.alpha)))
        self.lines, self.ridge = (lines * scale[:, None]).contiguous(), bound.alpha * scale**2
        self.ridge[-1] = 1.0
        self.task = Task.of(bound.target.values, bound.target.n_classes, self.device)
        self.outputs = self.task.outputs[self._send(columns.rows)].T
        self.sides = (self.outputs - (self.outputs @ self.shares)[:, None]) * self.roots
        self.never = self.task.exclusions(bound.known, self.device).T if self.task.n_classes else None

    def _scores(self, batch: Batch, groups: Groups) -> Floats:
        found = self._measured(batch, np.arange(len(batch.sizes)), groups, self._predicted, self._at_a_time)
        for lost in np.flatnonzero(~(found[:, -1] >= LEAST_PIVOT)).tolist():
            found[lost, :-1] = exact_score(self.bound, batch, lost, groups)
        return found[:, :-1]

    def _at_a_time(self, width: int) -> int:
        n_bytes = 8 * (3 * width * (width + self.n_rows) + (6 * len(self.outputs) + 4) * self.n_rows)
        return at_a_time(n_bytes, ROOM, MOST_AT_A_TIME)

    def _predicted(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """Predictions (subsets, rows), and the least pivot of each subset."""
        values = self.lines[table]
        systems = values @ values.mT
        systems.diagonal(dim1=-2, dim2=-1).add_(self.ridge[table])
        factors, least = factorize(systems)
        one = torch.eye(table.shape[1], dtype=torch.float64, device=self.device).expand_as(factors)
        values = torch.linalg.solve_triangular(factors, one, upper=False) @ values
        residuals = self.sides - (self.sides @ values.mT) @ values
        rest = 1.0 - (values**2).sum(dim=1) - self.shares
        decisions = self.outputs - residuals / (rest * self.roots)[:, None, :]
        if self.never is not None:
            decisions = decisions + self.never
        predicted = self.task.predicted(decisions, self.measure.truth, self.measure.code)
        return predicted, torch.minimum(least, rest.amin(dim=1))
