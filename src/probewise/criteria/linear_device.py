"""Ridge regression scores of feature subsets, on a device: Gram matrices looked up and factored in one batch.

A column comes less its centre and times a power of two that brings the diagonal of its system near 1: weights and
decisions are then of moderate size whatever the units, and float32 serves. Sums are made once, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.device.columns import free_bytes, require_room, send, send_array
from ..kernels.device.linear import factorize, solve
from .base import Floats
from .base_device import FOLDS_AT_A_TIME, Batch, DeviceScorer, r2, some_folds, stack_folds, take_test_rows

ROWS_AT_A_TIME = 4096
# Pivots, as shares of the diagonal, below which float32 has too few digits left: for a decision, or for a number.
LEAST_PIVOT = {"classes": 1e-3, "numbers": 1e-2}
LEAST_RIDGE = 1e-12


@dataclass(frozen=True)
class Task:
    """The target as a table (rows, outputs): 1 for a class's own rows and -1 for others, or numbers in standard units.

    Two classes need one output, that of the second.
    """

    outputs: Tensor
    truth: Tensor
    n_classes: int

    @classmethod
    def of(cls, targets: NDArray[Any], n_classes: int, device: str) -> Task:
        truth = send_array(targets, device)
        if not n_classes:
            truth = truth.double()
            truth = truth - truth.mean()
            truth = truth / torch.where(truth.abs().max() > 0, truth.abs().max(), 1.0)
            return cls(truth[:, None], truth, 0)
        own = torch.nn.functional.one_hot(truth, n_classes).double()
        return cls(2.0 * (own[:, 1:] if n_classes == 2 else own) - 1.0, truth, n_classes)

    def exclusions(self, rows: Tensor) -> Tensor:
        """What to add to each output so that a class without training rows is never chosen."""
        if not self.n_classes:
            return torch.zeros(1, dtype=torch.float64, device=rows.device)
        there = torch.bincount(self.truth[rows], minlength=self.n_classes) > 0
        if self.n_classes == 2:
            only = torch.where(there[1], torch.inf, -torch.inf)
            return torch.where(there.all(), 0.0, only)[None].double()
        return torch.where(there, 0.0, -torch.inf).double()


class DeviceLinear(DeviceScorer):
    """J of many subsets at a time from float32 lines, one per feature.

    Where they fit, the Gram matrices of all features for each training fold are kept, and a subset looks up its own;
    else they are made from its lines. A subset with a column that the others nearly give (a pivot of the Cholesky
    factor below 1e-3 of its diagonal, 1e-2 for numbers) is predicted again in float64.

    ``lines`` holds the test rows, fold after fold, each padded to the same height. Folds that are a partition train on
    the same lines, other splits on ``base``, lines of all rows; ``trains`` says on which places of these.
    """

    # Wider steps than for products: every width is a batch of Cholesky factors of its own.
    size_steps = np.unique([*range(16, 257, 16), *np.round(256 * 1.25 ** np.arange(1, 40) / 32) * 32]).astype(int)

    def _prepare(self) -> None:
        bound, X = self.bound, self.bound.columns.X
        splits, self.is_partition = bound.folds.splits, bound.is_partition
        tests = stack_folds([test for _, test in splits])
        self.n_splits, self.height, self.n_features = *tests.shape, X.shape[1]
        self.task = Task.of(bound.target.values, bound.target.n_classes, self.device)
        self.least_pivot = LEAST_PIVOT["classes" if bound.target.n_classes else "numbers"]
        trains = [train for train, _ in splits]
        if self.is_partition:
            fold_of = np.repeat(np.arange(self.n_splits), self.height)
            is_row = tests.ravel() >= 0
            trains = [np.flatnonzero(is_row & (fold_of != fold)) for fold in range(self.n_splits)]
        self.trains = [self._send(train) for train in trains]
        self.n_trains = self._send([len(train) for train in trains])
        self._send_lines(X, tests, _far_means(X) if bound.columns.is_sparse else bound.columns.centers)
        self._add_up(tests)
        grams_fit = (4 * self.n_splits + 16) * len(self.base) ** 2 <= free_bytes(self.device)
        self.table = self._all_grams() if grams_fit else None
        places = self._send(tests)
        self.truth = torch.where(places >= 0, self.task.truth[places], -1 if bound.target.n_classes else torch.nan)
        self.n_tests = (places >= 0).sum(dim=1).double()
        self.scatter = torch.nansum((self.truth - torch.nanmean(self.truth.double(), dim=1)[:, None]) ** 2, dim=1)

    def _send_lines(self, X: Any, tests: NDArray[np.int64], centers: Floats) -> None:
        """The lines of the test rows, and those to train on."""
        self.lines = send(X, np.maximum(tests, 0).ravel(), self.device, centers=centers)
        self.lines[:, : tests.size][:, self._send(tests.ravel() < 0)] = 0.0
        self.base = self.lines
        if not self.is_partition:
            self.base = send(X, np.arange(X.shape[0]), self.device, centers=centers)
        scale = torch.exp2(-torch.round(0.5 * torch.log2(self._line_scatter() + self.bound.alpha)))
        self.lines *= scale[:, None].float()
        if self.base is not self.lines:
            self.base *= scale[:, None].float()
        ridge = self.bound.alpha * scale**2
        ridge[-1] = 1.0
        self.ridge = {torch.float32: ridge.float(), torch.float64: torch.clamp(ridge, min=LEAST_RIDGE)}

    def _line_scatter(self) -> Tensor:
        """Sum of squares of each line about its mean."""
        total = torch.zeros((2, len(self.base)), dtype=torch.float64, device=self.device)
        for start in range(0, self.base.shape[1], ROWS_AT_A_TIME):
            part = self.base[:, start : start + ROWS_AT_A_TIME].double()
            total += torch.stack([part.sum(dim=1), (part**2).sum(dim=1)])
        return torch.clamp(total[1] - total[0] ** 2 / len(self.task.truth), min=0.0)

    def _add_up(self, tests: NDArray[np.int64]) -> None:
        """Of each training fold: the means of the lines, their products with the outputs, and the outputs' means."""
        row_of = np.maximum(tests, 0).ravel() if self.is_partition else np.arange(len(self.task.truth))
        rows = self._send(row_of)
        outputs = self.task.outputs[rows]
        n_bytes = 24 * self.n_splits * len(self.base) * (outputs.shape[1] + 1)
        require_room(n_bytes, self.device, f"the products of {self.n_features} features in {self.n_splits} folds")
        means, sides = [], []
        for train in self.trains:
            means.append(outputs[train].mean(dim=0))
            total = torch.zeros((len(self.base), outputs.shape[1] + 1), dtype=torch.float64, device=self.device)
            for some in torch.split(train, ROWS_AT_A_TIME):
                with_one = torch.nn.functional.pad(outputs[some] - means[-1], (0, 1), value=1.0 / len(train))
                total.addmm_(self.base[:, some].double(), with_one)
            sides.append(total)
        both = torch.stack(sides)
        self.sides = {dtype: both[:, :, :-1].to(dtype).contiguous() for dtype in self.ridge}
        self.means = {dtype: both[:, :, -1].to(dtype).contiguous() for dtype in self.ridge}
        exclusions = [self.task.exclusions(rows[train]) for train in self.trains]
        level = torch.stack(means) + torch.stack(exclusions)
        self.level = {dtype: level.to(dtype) for dtype in self.ridge}

    def _all_grams(self) -> Tensor:
        """Gram matrices of all lines about their means (folds, features + 1, features + 1)."""
        n_lines = len(self.base)
        grams = torch.empty((self.n_splits, n_lines, n_lines), dtype=torch.float32, device=self.device)
        for fold, train in enumerate(self.trains):
            gram = torch.zeros((n_lines, n_lines), dtype=torch.float64, device=self.device)
            for some in torch.split(train, ROWS_AT_A_TIME):
                part = self.base[:, some].double()
                gram.addmm_(part, part.T)
            mean = self.means[torch.float64][fold]
            gram.addr_(mean, mean, alpha=-float(len(train)))
            grams[fold] = gram
        return grams

    def _scores(self, batch: Batch) -> Floats:
        scores, pivots = self._scores_and_pivots(batch, np.arange(len(batch.sizes)), torch.float32)
        doubtful = np.flatnonzero(~(pivots >= self.least_pivot))
        if len(doubtful):
            scores[doubtful] = self._scores_and_pivots(batch, doubtful, torch.float64)[0]
        return scores

    def _scores_and_pivots(self, batch: Batch, subsets: NDArray[np.int64], dtype: torch.dtype) -> Floats:
        """J and the least pivot of some of the subsets (2, subsets)."""
        found = torch.empty((2, len(subsets)), dtype=torch.float64, device=self.device)
        for places, table in self.tables(batch, subsets, lambda width: self._at_a_time(width, dtype)):
            found[:, places] = self._score(table, dtype)
        return found.cpu().numpy()

    def _at_a_time(self, width: int, dtype: torch.dtype) -> int:
        n_folds, n_outputs = min(self.n_splits, FOLDS_AT_A_TIME), self.task.outputs.shape[1]
        numbers = n_folds * (3 * width * (width + n_outputs) + self.height * (width + 3 * n_outputs))
        made = 0 if self._looks_up(dtype) else (n_folds + 1) * width * (width + self.base.shape[1])
        return max(1, free_bytes(self.device) // (dtype.itemsize * (numbers + made)))

    def _looks_up(self, dtype: torch.dtype) -> bool:
        return self.table is not None and dtype == torch.float32

    def _score(self, table: Tensor, dtype: torch.dtype) -> Tensor:
        """J and the least pivot of subsets given as a table (subsets, width)."""
        total = torch.zeros(len(table), dtype=torch.float64, device=self.device)
        least = torch.full_like(total, torch.inf)
        for folds, systems in self._systems(table, dtype):
            factors, pivots = factorize(systems)
            weights = solve(factors, self.sides[dtype][folds][:, table])
            decisions = self._decisions(table, folds, weights, self._values(table, folds, dtype))
            total += self._fold_scores(decisions, folds).sum(dim=0)
            least = torch.minimum(least, pivots.amin(dim=0).double())
        return torch.stack([total / self.n_splits, least])

    def _systems(self, table: Tensor, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
        """(folds, Gram matrices about the means with alpha on the diagonal (folds, subsets, width, width))."""
        for folds, grams in self._looked_up(table) if self._looks_up(dtype) else self._made(table, dtype):
            grams.diagonal(dim1=-2, dim2=-1).add_(self.ridge[dtype][table])
            yield folds, grams

    def _looked_up(self, table: Tensor) -> Iterator[tuple[slice, Tensor]]:
        assert self.table is not None
        for folds in some_folds(self.n_splits):
            yield folds, self.table[folds][:, table[:, :, None], table[:, None, :]]

    def _made(self, table: Tensor, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
        """From the subsets' own lines: for a partition, what a fold leaves is the whole less the fold."""
        lines = self.base[table].to(dtype)
        whole = torch.bmm(lines, lines.mT) if self.is_partition else None
        for folds in some_folds(self.n_splits):
            grams = torch.stack([self._gram(lines, whole, fold) for fold in range(folds.start, folds.stop)])
            means = self.means[dtype][folds][:, table]
            sizes = self.n_trains[folds].to(dtype)
            yield folds, grams - (sizes[:, None, None] * means)[:, :, :, None] * means[:, :, None, :]

    def _gram(self, lines: Tensor, whole: Tensor | None, fold: int) -> Tensor:
        if whole is None:
            own = lines[:, :, self.trains[fold]]
            return torch.bmm(own, own.mT)
        own = lines[:, :, fold * self.height : (fold + 1) * self.height]
        return whole - torch.bmm(own, own.mT)

    def _values(self, table: Tensor, folds: slice, dtype: torch.dtype) -> Tensor:
        """The subsets' lines of the test rows (folds, subsets, width, height)."""
        lines = self.lines[:, : self.n_splits * self.height].view(-1, self.n_splits, self.height)
        return take_test_rows(lines, table, folds).to(dtype)

    def _decisions(self, table: Tensor, folds: slice, weights: Tensor, values: Tensor) -> Tensor:
        """Decisions for the test rows (folds, subsets, outputs, height)."""
        means = self.means[weights.dtype][folds][:, table]
        intercepts = self.level[weights.dtype][folds][:, None] - (means[:, :, None] @ weights)[:, :, 0]
        return (weights.mT @ values).add_(intercepts[..., None])

    def _fold_scores(self, decisions: Tensor, folds: slice) -> Tensor:
        """Accuracy or R^2 (folds, subsets); of equal decisions the lower class's wins."""
        truth = self.truth[folds][:, None]
        if not self.task.n_classes:
            return r2(torch.nansum((truth - decisions[:, :, 0]) ** 2, dim=2), self.scatter[folds][:, None])
        single = decisions.shape[2] == 1
        chosen = (decisions[:, :, 0] > 0).long() if single else decisions.argmax(dim=2)
        return (chosen == truth).sum(dim=2) / self.n_tests[folds][:, None]


def _far_means(X: Any) -> Floats:
    """Means of sparse columns that are large beside the standard deviation; 0 for others: their zeros stay zeros."""
    n_rows = X.shape[0]
    values = X.astype(np.float64)
    mean = np.asarray(values.sum(axis=0)).ravel() / n_rows
    square = np.asarray(values.multiply(values).sum(axis=0)).ravel() / n_rows
    return np.where(square < 2 * mean**2, mean, 0.0)
