"""Scores of feature subsets by ridge regression, on a device: Gram matrices are looked up and factored in batches.

Every column is centered and multiplied by a power of two that brings the diagonal of its system near 1. Weights and
decisions then have moderate sizes in any units, and float32 is accurate enough. Sums are computed once, in float64.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..engine.probes import Subsets
from ..kernels.device.columns import free_bytes, require_room, send, send_array
from ..kernels.device.linear import factorize, solve
from ..kernels.factor import LEAST_PIVOT as LEAST_FLOAT64_PIVOT
from ..kernels.ridge_sums import SLOPE
from ..kernels.scores import PROBABILITY, ROC_AUC
from .base import Floats
from .base_device import FOLDS_AT_A_TIME, Batch, DeviceScorer, at_a_time, some_folds, stack_folds, take_test_rows

ROWS_AT_A_TIME = 4096
# Pivots, as shares of the diagonal, below which float32 has too few digits left: for a decision, or for a number.
LEAST_PIVOT = {"classes": 1e-3, "numbers": 1e-2}
LEAST_RIDGE = 1e-12
# Batches of the leave-one-out fit are larger: a table takes forty kernel launches, which take longer than the kernels.
LOO_BATCH_BYTES, LOO_MOST_SUBSETS = 2**30, 2048


@dataclass(frozen=True)
class Task:
    """The target as a table (rows, outputs): 1 for rows of the class and -1 for others, or scaled numbers.

    Two classes need one output, the output of the second class.
    """

    outputs: Tensor
    truth: Tensor
    n_classes: int
    unit: float = 1.0

    @classmethod
    def of(cls, targets: NDArray[Any], n_classes: int, device: str) -> Task:
        if not n_classes:
            values = targets - targets.mean()
            unit = float(np.abs(values).max()) or 1.0
            truth = send_array(values / unit, device)
            return cls(truth[:, None], truth, 0, unit)
        truth = send_array(targets, device)
        is_class = torch.nn.functional.one_hot(truth, n_classes).double()
        return cls(2.0 * (is_class[:, 1:] if n_classes == 2 else is_class) - 1.0, truth, n_classes)

    def exclusions(self, known: NDArray[np.bool_], device: str) -> Tensor:
        """Terms to add to each output (folds, outputs) so that a class without training rows is never predicted."""
        if self.n_classes == 2:
            terms = np.where(known.all(axis=1), 0.0, np.where(known[:, 1], np.inf, -np.inf))[:, None]
        else:
            terms = np.where(known, 0.0, -np.inf)
        return send_array(terms, device)

    def predicted(self, decisions: Tensor, truth: Tensor, measure: int) -> Tensor:
        """Predictions as the measure needs them, from decisions (..., outputs, tests); the lower class wins ties."""
        first = decisions[..., 0, :].double()
        if not self.n_classes:
            return first * self.unit
        if measure == ROC_AUC:
            return first
        if measure == PROBABILITY:
            if self.n_classes == 2:
                return torch.sigmoid(2.0 * SLOPE * (2 * truth - 1) * first)
            shares = torch.softmax(SLOPE * decisions.double(), dim=-2)
            index = torch.clamp(truth, min=0)[..., None, :].expand(*shares.shape[:-2], 1, shares.shape[-1])
            return shares.gather(-2, index)[..., 0, :]
        return (first > 0).double() if self.n_classes == 2 else decisions.argmax(dim=-2).double()


class DeviceLinear(DeviceScorer):
    """J of many subsets at a time, from XT in float32.

    If memory allows, the Gram matrix of all features is stored for each training fold, and the system of a subset is
    looked up in it; otherwise it is computed from XT. If a column of a subset is nearly a linear combination of the
    others (a pivot of the Cholesky factor below 1e-3 of its diagonal, 1e-2 for numbers), the subset is predicted again
    in float64, and if that is not accurate enough either, on the CPU.

    ``XT`` for testing holds the test rows, fold after fold, each padded to the same height. Folds that are a partition
    use it for training, too; other splits train on an XT of all rows. ``trains`` has the positions of the training rows
    in it. With missing values, each fold has an XT of its own.
    """

    # Wider steps than for products, because each width needs a batch of Cholesky factors.
    size_steps = np.unique([*range(16, 257, 16), *np.round(256 * 1.25 ** np.arange(1, 40) / 32) * 32]).astype(int)

    def _prepare(self) -> None:
        bound, folds = self.bound, self.bound.folds
        self.incomplete = bound.missing.columns
        self.is_partition = folds.is_partition and not len(self.incomplete)
        self.tests = stack_folds([np.sort(test) for _, test in folds.splits])
        self.is_test = self._send(np.flatnonzero(self.tests.ravel() >= 0))
        self.n_splits, self.height, self.n_features = *self.tests.shape, bound.columns.n_features
        self.task = Task.of(bound.target.values, bound.target.n_classes, self.device)
        self.least_pivot = LEAST_PIVOT["classes" if bound.target.n_classes else "numbers"]
        self._lock, self._XT = threading.Lock(), dict[torch.dtype, tuple[Tensor, Tensor]]()
        self._set_training_rows()
        self._send_scales()
        self._add_up()
        grams_fit = (4 * self.n_splits + 16) * (self.n_features + 1) ** 2 <= free_bytes(self.device)
        self.table = self._all_grams() if grams_fit else None
        truth = bound.target.values[np.maximum(self.tests, 0)] if bound.target.n_classes else np.zeros_like(self.tests)
        self.truth = self._send(truth)

    def _set_training_rows(self) -> None:
        """Set the row of X at each position of the training XT, and the positions and weights of each training fold."""
        trains, n_rows = [train for train, _ in self.bound.folds.splits], self.bound.folds.n_rows
        if self.is_partition:
            fold_of, is_row = np.repeat(np.arange(self.n_splits), self.height), self.tests.ravel() >= 0
            trains = [np.flatnonzero(is_row & (fold_of != fold)) for fold in range(self.n_splits)]
            self.row_of_position = np.maximum(self.tests, 0).ravel()
        else:
            copies = self.n_splits if len(self.incomplete) else 1
            self.row_of_position = np.tile(np.arange(n_rows), copies)
            trains = [train + n_rows * (fold if copies > 1 else 0) for fold, train in enumerate(trains)]
        measure = self.bound.measure
        weights = measure.weights if measure.is_weighted else np.ones(n_rows)
        self.trains = [self._send(train) for train in trains]
        self.weights = [self._send(weights[self.row_of_position[train]]) for train in trains]
        self.n_trains = torch.stack([weights.sum() for weights in self.weights])

    def _XT_in(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """XT for testing and XT for training; the float64 version is sent when a subset first needs it."""
        with self._lock:
            if dtype not in self._XT:
                test_XT, train_XT = self._sent_XT(dtype)
                self.sides[dtype], self.means[dtype], _ = self._sums(train_XT)
                self._XT[dtype] = test_XT, train_XT
                self.streams.synchronize()
        return self._XT[dtype]

    def _sent_XT(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        columns = self.bound.columns
        centers = None if columns.is_sparse else columns.centers
        test_XT = send(columns.X, np.maximum(self.tests, 0).ravel(), self.device, centers=centers, dtype=dtype)
        test_XT[:, : self.tests.size][:, self._send(self.tests.ravel() < 0)] = 0.0
        train_XT = test_XT
        if not self.is_partition:
            train_XT = send(columns.X, self.row_of_position, self.device, centers=centers, dtype=dtype)
        incomplete = self._send(self.incomplete)
        for fold, fills in enumerate(self.bound.missing.fills if len(self.incomplete) else ()):
            fill = self._send(fills).to(dtype)[:, None]
            for XT, size in ((test_XT, self.height), (train_XT, self.bound.folds.n_rows)):
                rows = slice(fold * size, (fold + 1) * size)
                values = XT[incomplete, rows]
                XT[incomplete, rows] = torch.where(torch.isnan(values), fill, values)
        scale = getattr(self, "scale", None)
        if scale is not None:
            test_XT *= scale[:, None].to(dtype)
            if train_XT is not test_XT:
                train_XT *= scale[:, None].to(dtype)
        return test_XT, train_XT

    def _send_scales(self) -> None:
        """Choose the power of two for each feature that brings its scatter near 1, and scale XT by it."""
        test_XT, train_XT = self._sent_XT(torch.float32)
        total = torch.zeros((2, len(train_XT)), dtype=torch.float64, device=self.device)
        for start in range(0, train_XT.shape[1], ROWS_AT_A_TIME):
            values = train_XT[:, start : start + ROWS_AT_A_TIME].double()
            total += torch.stack([values.sum(dim=1), (values**2).sum(dim=1)])
        scatter = torch.clamp(total[1] - total[0] ** 2 / len(self.row_of_position), min=0.0)
        self.scale = torch.exp2(-torch.round(0.5 * torch.log2(scatter + self.bound.alpha)))
        for XT in {id(XT): XT for XT in (test_XT, train_XT)}.values():
            XT *= self.scale[:, None].float()
        self._XT[torch.float32] = test_XT, train_XT
        ridge = self.bound.alpha * self.scale**2
        ridge[-1] = 1.0
        self.ridge = {torch.float32: ridge.float(), torch.float64: torch.clamp(ridge, min=LEAST_RIDGE)}

    def _add_up(self) -> None:
        """Compute the means of features and outputs in each training fold, and the products of features and outputs."""
        outputs = self.task.outputs[self._send(self.row_of_position)]
        pairs = zip(self.trains, self.weights, strict=True)
        levels = [weights @ outputs[train] / weights.sum() for train, weights in pairs]
        self.centered_outputs = [outputs - level for level in levels]
        sides, self._exact_means, spreads = self._sums(self._XT[torch.float32][1])
        self.least_spread = spreads[:-1].cpu().numpy()
        self.sides, self.means = {torch.float32: sides.float()}, {torch.float32: self._exact_means.float()}
        level = torch.stack(levels)
        if self.task.n_classes:
            level = level + self.task.exclusions(self.bound.known, self.device)
        self.level = {dtype: level.to(dtype) for dtype in self.ridge}

    def _sums(self, XT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Products with outputs, means and the least spread of the features of a training XT, in float64.

        The means are those of the rounded values: centering by means of the exact values would leave an offset.
        """
        n_bytes = 24 * self.n_splits * len(XT) * (self.centered_outputs[0].shape[1] + 1)
        require_room(n_bytes, self.device, f"the products of {self.n_features} features in {self.n_splits} folds")
        sides, means, squares, scatters = [], [], [], []
        for fold, outputs in enumerate(self.centered_outputs):
            total = torch.zeros((len(XT), outputs.shape[1] + 1), dtype=torch.float64, device=self.device)
            square = torch.zeros(len(XT), dtype=torch.float64, device=self.device)
            for rows, weights in self._training_rows(fold):
                values = XT[:, rows].double()
                total.addmm_(values, torch.cat([outputs[rows] * weights[:, None], weights[:, None]], dim=1))
                square += values**2 @ weights
            means.append(total[:, -1] / self.n_trains[fold])
            scatters.append(torch.clamp(square - self.n_trains[fold] * means[-1] ** 2, min=0.0))
            squares.append(square)
            sides.append(total[:, :-1])
        return torch.stack(sides), torch.stack(means), least_spread(torch.stack(scatters), torch.stack(squares))

    def _training_rows(self, fold: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Pairs (positions, weights) of the training rows of a fold, some rows at a time."""
        positions, weights = self.trains[fold], self.weights[fold]
        return zip(torch.split(positions, ROWS_AT_A_TIME), torch.split(weights, ROWS_AT_A_TIME), strict=True)

    def _all_grams(self) -> Tensor:
        """Gram matrices of all centered features (folds, features + 1, features + 1)."""
        XT = self._XT[torch.float32][1]
        grams = torch.empty((self.n_splits, len(XT), len(XT)), dtype=torch.float32, device=self.device)
        for fold in range(self.n_splits):
            gram = torch.zeros((len(XT), len(XT)), dtype=torch.float64, device=self.device)
            for rows, weights in self._training_rows(fold):
                values = XT[:, rows].double()
                gram.addmm_(values * weights, values.T)
            mean = self._exact_means[fold]
            gram.addr_(mean, mean, alpha=-float(self.n_trains[fold]))
            grams[fold] = gram
        return grams

    def _scores(self, batch: Batch) -> Floats:
        """J: in float32 where that is accurate, else in float64, else on the CPU."""
        spreads, scores = self._least_spreads(batch), np.empty((len(batch.sizes), 2))
        fits_float32 = spreads >= (LEAST_FLOAT64_PIVOT if self.table is not None else self.least_pivot)
        subsets = np.flatnonzero(fits_float32)
        scores[subsets] = self._scores_in(torch.float32, batch, subsets)
        subsets = np.flatnonzero(~(fits_float32 & (scores[:, -1] >= self.least_pivot)))
        scores[subsets] = self._scores_in(torch.float64, batch, subsets)
        for subset in subsets[~(scores[subsets, -1] * spreads[subsets] >= LEAST_FLOAT64_PIVOT)].tolist():
            scores[subset, 0] = exact_score(self.bound, batch, subset)
        return scores[:, 0]

    def _least_spreads(self, batch: Batch) -> Floats:
        """Least spread of the features of each subset; see `least_spread`."""
        spreads, is_filled = np.ones(len(batch.sizes)), batch.sizes > 0
        if is_filled.any():
            spreads[is_filled] = np.minimum.reduceat(self.least_spread[batch.indices], batch.offsets[:-1][is_filled])
        return spreads

    def _scores_in(self, dtype: torch.dtype, batch: Batch, subsets: NDArray[np.int64]) -> Floats:
        """J and the least pivot of the given subsets, computed in ``dtype``."""
        at_a_time = partial(self._at_a_time, dtype=dtype)
        return self._measured(batch, subsets, partial(self._predicted, dtype=dtype), at_a_time)

    def _at_a_time(self, width: int, dtype: torch.dtype) -> int:
        n_folds, n_outputs = min(self.n_splits, FOLDS_AT_A_TIME), self.task.outputs.shape[1]
        numbers = n_folds * (3 * width * (width + n_outputs) + self.height * (width + 3 * n_outputs))
        gram_numbers = 0 if self._looks_up(dtype) else (n_folds + 1) * width * (width + len(self.row_of_position))
        return at_a_time(dtype.itemsize * (numbers + gram_numbers) + 16 * self.tests.size)

    def _looks_up(self, dtype: torch.dtype) -> bool:
        return self.table is not None and dtype == torch.float32

    def _predicted(self, table: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Predictions (subsets, tests) and least pivots (subsets) for a table of subsets (subsets, width)."""
        predicted = []
        least = torch.full((len(table),), torch.inf, dtype=torch.float64, device=self.device)
        for folds, systems in self._systems(table, dtype):
            factors, pivots = factorize(systems)
            weights = solve(factors, self.sides[dtype][folds][:, table])
            decisions = self._decisions(table, folds, weights, self._values(table, folds, dtype))
            predicted.append(self.task.predicted(decisions, self.truth[folds][:, None], self.measure.code))
            least = torch.minimum(least, pivots.amin(dim=0).double())
        return torch.cat(predicted).transpose(0, 1).reshape(len(table), -1)[:, self.is_test], least

    def _systems(self, table: Tensor, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
        """Pairs (folds, centered Gram matrices plus alpha on the diagonal (folds, subsets, width, width))."""
        for folds, grams in self._looked_up(table) if self._looks_up(dtype) else self._computed(table, dtype):
            grams.diagonal(dim1=-2, dim2=-1).add_(self.ridge[dtype][table])
            yield folds, grams

    def _looked_up(self, table: Tensor) -> Iterator[tuple[slice, Tensor]]:
        assert self.table is not None
        for folds in some_folds(self.n_splits):
            yield folds, self.table[folds][:, table[:, :, None], table[:, None, :]]

    def _computed(self, table: Tensor, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
        """Pairs (folds, centered Gram matrices), computed from XT."""
        values = self._XT_in(dtype)[1][table]
        for folds in some_folds(self.n_splits):
            grams = torch.stack([self._gram(values, table, fold) for fold in range(folds.start, folds.stop)])
            yield folds, grams

    def _gram(self, values: Tensor, table: Tensor, fold: int) -> Tensor:
        mean = self.means[values.dtype][fold][table]
        centered = values[:, :, self.trains[fold]] - mean[:, :, None]
        return torch.bmm(centered * self.weights[fold].to(values.dtype), centered.mT)

    def _values(self, table: Tensor, folds: slice, dtype: torch.dtype) -> Tensor:
        """Values of the test rows (folds, subsets, width, height)."""
        XT = self._XT_in(dtype)[0][:, : self.n_splits * self.height].view(-1, self.n_splits, self.height)
        return take_test_rows(XT, table, folds)

    def _decisions(self, table: Tensor, folds: slice, weights: Tensor, values: Tensor) -> Tensor:
        """Decisions for the test rows (folds, subsets, outputs, height)."""
        means = self.means[weights.dtype][folds][:, table]
        intercepts = self.level[weights.dtype][folds][:, None] - (means[:, :, None] @ weights)[:, :, 0]
        return (weights.mT @ values).add_(intercepts[..., None])


class DeviceLeftOutLinear(DeviceScorer):
    """J of many subsets with leave-one-out: one system for all rows of a subset, in float64.

    Let H be the matrix that maps targets to fitted values, and e the residuals of the fit to all rows. A row that is
    left out has the residual e_i / (1 - H_ii). Features are centered and divided by a power of two near their scatter.
    """

    size_steps = DeviceLinear.size_steps

    def _prepare(self) -> None:
        bound, columns = self.bound, self.bound.columns
        self.n_features, self.n_rows = columns.n_features, bound.folds.n_rows
        centers = None if columns.is_sparse else columns.centers
        XT = send(columns.X, columns.rows, self.device, centers=centers, dtype=torch.float64)[:, : self.n_rows]
        self.roots = self._send(bound.fit.roots)
        self.shares = self.roots**2 / (self.roots @ self.roots)
        XT = (XT - (XT @ self.shares)[:, None]) * self.roots
        XT -= (XT @ self.roots)[:, None] * self.roots / (self.roots @ self.roots)
        scale = torch.exp2(-torch.round(0.5 * torch.log2((XT**2).sum(dim=1) + bound.alpha)))
        self.XT, self.ridge = (XT * scale[:, None]).contiguous(), bound.alpha * scale**2
        self.ridge[-1] = 1.0
        self.task = Task.of(bound.target.values, bound.target.n_classes, self.device)
        self.outputs = self.task.outputs[self._send(columns.rows)].T
        self.sides = (self.outputs - (self.outputs @ self.shares)[:, None]) * self.roots
        self.exclusions = self.task.exclusions(bound.known, self.device).T if self.task.n_classes else None

    def _scores(self, batch: Batch) -> Floats:
        scores = self._measured(batch, np.arange(len(batch.sizes)), self._predicted, self._at_a_time)
        for subset in np.flatnonzero(~(scores[:, -1] >= LEAST_FLOAT64_PIVOT)).tolist():
            scores[subset, 0] = exact_score(self.bound, batch, subset)
        return scores[:, 0]

    def _at_a_time(self, width: int) -> int:
        n_bytes = 8 * (3 * width * (width + self.n_rows) + (6 * len(self.outputs) + 4) * self.n_rows)
        return at_a_time(n_bytes, LOO_BATCH_BYTES, LOO_MOST_SUBSETS)

    def _predicted(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """Predictions (subsets, rows), and the least pivot of each subset."""
        values = self.XT[table]
        systems = values @ values.mT
        systems.diagonal(dim1=-2, dim2=-1).add_(self.ridge[table])
        factors, least = factorize(systems)
        identity = torch.eye(table.shape[1], dtype=torch.float64, device=self.device).expand_as(factors)
        values = torch.linalg.solve_triangular(factors, identity, upper=False) @ values
        residuals = self.sides - (self.sides @ values.mT) @ values
        rest = 1.0 - (values**2).sum(dim=1) - self.shares  # 1 - H_ii
        decisions = self.outputs - residuals / (rest * self.roots)[:, None, :]
        if self.exclusions is not None:
            decisions = decisions + self.exclusions
        predicted = self.task.predicted(decisions, self.measure.truth, self.measure.code)
        return predicted, torch.minimum(least, rest.amin(dim=1))


def least_spread(scatters: Tensor, squares: Tensor) -> Tensor:
    """Scatter of each feature as a share of its sum of squares, in the fold where that is lowest.

    ``scatters`` (about the mean) and ``squares`` are sums over training rows (folds, features). If an outlier that is
    held out in one fold makes up nearly all squares of the others, no scale suits all folds: the share is then that of
    the squares with the outlier.
    """
    shares = torch.where(squares > 0, scatters / squares, 1.0).amin(dim=0)
    least = torch.where(squares > 0, scatters, torch.inf).amin(dim=0) / squares.amax(dim=0)
    return torch.where(least < LEAST_FLOAT64_PIVOT, least, shares)


def exact_score(bound: Any, batch: Batch, subset: int) -> float:
    """J of a subset from the CPU, for subsets that need more digits than float64 has."""
    return float(bound(Subsets.of([batch.indices[batch.offsets[subset] : batch.offsets[subset + 1]]]))[0])
