"""Scores of feature subsets by ridge regression, on a device, in float64: many systems are solved in one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import gen_batches
from torch import Tensor

from ..engine.probes import Subsets
from ..kernels.device.columns import planned_bytes, send, send_array
from ..kernels.factor import LEAST_PIVOT
from ..kernels.ridge_sums import SLOPE
from ..kernels.scores import PROBABILITY, ROC_AUC
from .base import Floats
from .base_device import BATCH_BYTES, Batch, DeviceScorer, at_a_time

# A table of subsets takes forty kernel launches, which take longer than the kernels where tables are small. The free
# memory does not count, because the last digits of J depend on the number of subsets in a table.
MOST_TABLE_BYTES, MOST_SUBSETS = 2**30, 2048


@dataclass(frozen=True)
class Task:
    """The target as a table (outputs, rows): 1 for rows of the class and -1 for others, or numbers minus their mean.

    Two classes need one output, the output of the second class.
    """

    outputs: Tensor
    n_classes: int

    @classmethod
    def of(cls, targets: NDArray[Any], n_classes: int, device: str) -> Task:
        if not n_classes:
            return cls(send_array(targets - targets.mean(), device)[None], 0)
        labels = np.array([1]) if n_classes == 2 else np.arange(n_classes)
        return cls(send_array(np.where(targets == labels[:, None], 1.0, -1.0), device), n_classes)

    def exclusions(self, known: NDArray[np.bool_], device: str) -> Tensor:
        """Terms to add to each output (folds, outputs) so that a class without training rows is never predicted."""
        terms = np.where(known, 0.0, -np.inf)
        if self.n_classes == 2:
            terms = np.where(known.all(axis=1), 0.0, np.where(known[:, 1], np.inf, -np.inf))[:, None]
        return send_array(terms if self.n_classes else np.zeros((len(known), 1)), device)

    def predicted(self, decisions: Tensor, truth: Tensor, measure: int) -> Tensor:
        """Predictions as the measure needs them, from decisions (..., outputs, tests); the lower class wins ties."""
        first = decisions[..., 0, :]
        if not self.n_classes or measure == ROC_AUC:
            return first
        if measure == PROBABILITY:
            if self.n_classes == 2:
                return torch.sigmoid(2.0 * SLOPE * (2 * truth - 1) * first)
            shares = torch.softmax(SLOPE * decisions, dim=-2)
            index = truth.expand(*shares.shape[:-2], 1, len(truth))
            return shares.gather(-2, index)[..., 0, :]
        return (first > 0).double() if self.n_classes == 2 else decisions.argmax(dim=-2).double()


class DeviceLinear(DeviceScorer):
    """J of many subsets at a time. Where a pivot shows that too few digits are left, J comes from the CPU."""

    # Wider steps than for products, because each width needs a batch of Cholesky factors.
    size_steps = np.unique([*range(16, 257, 16), *np.round(256 * 1.25 ** np.arange(1, 40) / 32) * 32]).astype(int)

    def _prepare(self) -> None:
        bound, columns, folds = self.bound, self.bound.columns, self.bound.folds
        self.n_features, self.n_rows = columns.n_features, folds.n_rows
        centers = None if columns.is_sparse else columns.centers
        XT = send(columns.X, np.arange(self.n_rows), self.device, centers=centers, dtype=torch.float64)
        self.XT, self.table_bytes = XT[:, : self.n_rows], min(MOST_TABLE_BYTES, planned_bytes(XT.nbytes))
        self.ridge = torch.full((len(XT),), bound.alpha, dtype=torch.float64, device=self.device)
        self.task = Task.of(bound.target.values, bound.target.n_classes, self.device)
        self.exclusions = self.task.exclusions(bound.known, self.device)
        self._prepare_folds()

    def _prepare_folds(self) -> None:
        """Send the weights of the rows in each training fold, the test rows, and the replacements of missing values."""
        splits, measure, missing = self.bound.folds.splits, self.bound.measure, self.bound.missing
        weights = measure.weights if measure.is_weighted else np.ones(self.n_rows)
        self.weights = self._send([weights * np.bincount(train, minlength=self.n_rows) for train, _ in splits])
        self.tests = [self._send(np.sort(test)) for _, test in splits]
        self.truth = torch.split(self.measure.truth, [len(test) for test in self.tests])
        self.fills = None
        if len(missing.columns):
            fills = np.zeros((len(splits), len(self.XT)))
            fills[:, missing.columns] = missing.fills
            self.fills = self._send(fills)

    def _scores(self, batch: Batch) -> Floats:
        scores, pivots = np.empty(len(batch.sizes)), np.empty(len(batch.sizes))
        most = max(1, BATCH_BYTES // (8 * self.measure.n_tests))
        for part in gen_batches(len(scores), most) if len(scores) else ():
            subsets = np.arange(part.start, part.stop)
            predicted = torch.empty((len(subsets), self.measure.n_tests), dtype=torch.float64, device=self.device)
            least = torch.empty(len(subsets), dtype=torch.float64, device=self.device)
            for positions, table in self.tables(batch, subsets, self._at_a_time):
                predicted[positions], least[positions] = (values[: len(positions)] for values in self._predicted(table))
            scores[part], pivots[part] = self.measure(predicted).cpu().numpy(), least.cpu().numpy()
        for subset in np.flatnonzero(~(pivots >= LEAST_PIVOT)).tolist():
            features = batch.indices[batch.offsets[subset] : batch.offsets[subset + 1]]
            scores[subset] = self.bound(Subsets.of([features]))[0]
        return scores

    def _at_a_time(self, width: int) -> int:
        n_bytes = 8 * (3 * width * (width + self.n_rows) + (6 * len(self.task.outputs) + 4) * self.n_rows)
        return at_a_time(n_bytes, self.table_bytes, MOST_SUBSETS)

    def _predicted(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """Predictions (subsets, tests) for a table (subsets, width), and the least pivot of each subset."""
        values, predicted, pivots = self.XT[table], [], []
        for fold, (test, truth) in enumerate(zip(self.tests, self.truth, strict=True)):
            filled = values
            if self.fills is not None:
                filled = torch.where(values.isnan(), self.fills[fold][table][..., None], values)
            weights = self.weights[fold]
            level = (self.task.outputs @ weights / weights.sum())[:, None]
            means = (filled @ weights / weights.sum())[..., None]
            centered = (filled - means) * weights.sqrt()
            systems = centered @ centered.mT
            systems.diagonal(dim1=-2, dim2=-1).add_(self.ridge[table])
            factors, least = factorize(systems)
            coefficients = solve(factors, centered @ ((self.task.outputs - level) * weights.sqrt()).mT)
            decisions = coefficients.mT @ (filled[:, :, test] - means) + level + self.exclusions[fold][:, None]
            predicted.append(self.task.predicted(decisions, truth, self.measure.code))
            pivots.append(least)
        return torch.cat(predicted, dim=1), torch.stack(pivots).amin(dim=0)


class DeviceLeftOutLinear(DeviceLinear):
    """J of many subsets with leave-one-out: one system for all rows of a subset.

    Let H be the matrix that maps targets to fitted values, and e the residuals of the fit to all rows. A row that is
    left out has the residual e_i / (1 - H_ii).
    """

    def _prepare_folds(self) -> None:
        self.roots = self._send(self.bound.fit.roots)
        self.shares = self.roots**2 / (self.roots @ self.roots)
        XT = (self.XT - (self.XT @ self.shares)[:, None]) * self.roots
        self.XT = XT - (XT @ self.roots)[:, None] * self.roots / (self.roots @ self.roots)
        self.sides = (self.task.outputs - (self.task.outputs @ self.shares)[:, None]) * self.roots

    def _predicted(self, table: Tensor) -> tuple[Tensor, Tensor]:
        values = self.XT[table]
        systems = values @ values.mT
        systems.diagonal(dim1=-2, dim2=-1).add_(self.ridge[table])
        factors, least = factorize(systems)
        identity = torch.eye(table.shape[1], dtype=torch.float64, device=self.device).expand_as(factors)
        values = torch.linalg.solve_triangular(factors, identity, upper=False) @ values
        residuals = self.sides - (self.sides @ values.mT) @ values
        rest = 1.0 - (values**2).sum(dim=1) - self.shares  # 1 - H_ii
        decisions = self.task.outputs - residuals / (rest * self.roots)[:, None, :] + self.exclusions.T
        predicted = self.task.predicted(decisions, self.measure.truth, self.measure.code)
        return predicted, torch.minimum(least, rest.amin(dim=1))


def factorize(systems: Tensor) -> tuple[Tensor, Tensor]:
    """Lower Cholesky factors (..., width, width), and the least pivot of each as a share of the diagonal."""
    diagonal = systems.diagonal(dim1=-2, dim2=-1).clone()
    factors, failed = torch.linalg.cholesky_ex(systems)
    pivots = (factors.diagonal(dim1=-2, dim2=-1) ** 2 / diagonal).amin(dim=-1)
    return factors, torch.where(failed == 0, pivots, 0.0)


def solve(factors: Tensor, sides: Tensor) -> Tensor:
    """Solutions (..., width, outputs), for all outputs at once."""
    half = torch.linalg.solve_triangular(factors, sides, upper=False)
    return torch.linalg.solve_triangular(factors.mT, half, upper=True)
