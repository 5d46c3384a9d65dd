"""Ridge regression scores of feature subsets, on a device: Gram matrices looked up and factored in one batch.

A column comes less its centre and times a power of two that brings the diagonal of its system near 1: weights and
decisions are then of moderate size whatever the units, and float32 serves. Sums are made once, in float64.
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
from ..kernels.factor import LEAST_PIVOT as LEAST_PIVOT_OF_ALL
from ..kernels.ridge_sums import SLOPE
from ..kernels.scores import PROBABILITY, ROC_AUC
from .base import Floats
from .base_device import FOLDS_AT_A_TIME, Batch, DeviceScorer, at_a_time, some_folds, stack_folds, take_test_rows
from .scoring_device import Groups

ROWS_AT_A_TIME = 4096
# Pivots, as shares of the diagonal, below which float32 has too few digits left: for a decision, or for a number.
LEAST_PIVOT = {"classes": 1e-3, "numbers": 1e-2}
LEAST_RIDGE = 1e-12
ROOM, MOST_AT_A_TIME = 2**30, 2048  # of one row left out: a table takes forty launches, longer than what they launch


@dataclass(frozen=True)
class Task:
    """The target as a table (rows, outputs): 1 for a class's own rows and -1 for others, or numbers in standard units.

    Two classes need one output, that of the second.
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
        own = torch.nn.functional.one_hot(truth, n_classes).double()
        return cls(2.0 * (own[:, 1:] if n_classes == 2 else own) - 1.0, truth, n_classes)

    def exclusions(self, known: NDArray[np.bool_], device: str) -> Tensor:
        """What to add to each output (folds, outputs) so that a class without training rows is never chosen."""
        if self.n_classes == 2:
            known = np.where(known.all(axis=1), 0.0, np.where(known[:, 1], np.inf, -np.inf))[:, None]
        else:
            known = np.where(known, 0.0, -np.inf)
        return send_array(known, device)

    def predicted(self, decisions: Tensor, truth: Tensor, measure: int) -> Tensor:
        """What the measure is of, from decisions (..., outputs, tests); the lower class's of equal ones wins."""
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
    """J of many subsets at a time from lines in float32, one per feature.

    Where they fit, the Gram matrices of all features for each training fold are kept, and a subset looks up its own;
    else they are made from its lines. A subset with a column that the others nearly give (a pivot of the Cholesky
    factor below 1e-3 of its diagonal, 1e-2 for numbers) is predicted again in float64, and where that is not enough
    either, by the CPU.

    The lines to test hold the test rows, fold after fold, each padded to the same height. Folds that are a partition
    train on the same lines, other splits on lines of all rows; ``trains`` says on which places of these. Where gaps
    are filled, each fold has lines of its own.
    """

    # Wider steps than for products: every width is a batch of Cholesky factors of its own.
    size_steps = np.unique([*range(16, 257, 16), *np.round(256 * 1.25 ** np.arange(1, 40) / 32) * 32]).astype(int)

    def _prepare(self) -> None:
        bound, folds = self.bound, self.bound.folds
        self.gaps = bound.missing.columns
        self.is_partition = folds.is_partition and not len(self.gaps)
        self.tests = stack_folds([np.sort(test) for _, test in folds.splits])
        self.is_test = self._send(np.flatnonzero(self.tests.ravel() >= 0))
        self.n_splits, self.height, self.n_features = *self.tests.shape, bound.columns.n_features
        self.task = Task.of(bound.target.values, bound.target.n_classes, self.device)
        self.least_pivot = LEAST_PIVOT["classes" if bound.target.n_classes else "numbers"]
        self._lock, self._lines = threading.Lock(), dict[torch.dtype, tuple[Tensor, Tensor]]()
        self._place_rows()
        self._send_scales()
        self._add_up()
        grams_fit = (4 * self.n_splits + 16) * (self.n_features + 1) ** 2 <= free_bytes(self.device)
        self.table = self._all_grams() if grams_fit else None
        truth = bound.target.values[np.maximum(self.tests, 0)] if bound.target.n_classes else np.zeros_like(self.tests)
        self.truth = self._send(truth)

    def _place_rows(self) -> None:
        """Which row of X each place to train on holds, and on which places each fold trains, by what weights."""
        trains, n_rows = [train for train, _ in self.bound.folds.splits], self.bound.folds.n_rows
        if self.is_partition:
            fold_of, is_row = np.repeat(np.arange(self.n_splits), self.height), self.tests.ravel() >= 0
            trains = [np.flatnonzero(is_row & (fold_of != fold)) for fold in range(self.n_splits)]
            self.row_at = np.maximum(self.tests, 0).ravel()
        else:
            copies = self.n_splits if len(self.gaps) else 1
            self.row_at = np.tile(np.arange(n_rows), copies)
            trains = [train + n_rows * (fold if copies > 1 else 0) for fold, train in enumerate(trains)]
        measure = self.bound.measure
        weights = measure.weights if measure.is_weighted else np.ones(n_rows)
        self.trains = [self._send(train) for train in trains]
        self.weights = [self._send(weights[self.row_at[train]]) for train in trains]
        self.n_trains = torch.stack([own.sum() for own in self.weights])

    def _lines_in(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The lines to test and those to train on; in float64 only once a subset needs them."""
        with self._lock:
            if dtype not in self._lines:
                lines, base = self._sent_lines(dtype)
                self.sides[dtype], self.means[dtype], _ = self._sums(base)
                self._lines[dtype] = lines, base
                self.streams.synchronize()
        return self._lines[dtype]

    def _sent_lines(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        columns = self.bound.columns
        centers = None if columns.is_sparse else columns.centers
        lines = send(columns.X, np.maximum(self.tests, 0).ravel(), self.device, centers=centers, dtype=dtype)
        lines[:, : self.tests.size][:, self._send(self.tests.ravel() < 0)] = 0.0
        base = lines if self.is_partition else send(columns.X, self.row_at, self.device, centers=centers, dtype=dtype)
        for fold, fills in enumerate(self.bound.missing.fills if len(self.gaps) else ()):
            for part, size in ((lines, self.height), (base, self.bound.folds.n_rows)):
                own = part[self._send(self.gaps), fold * size : (fold + 1) * size]
                fill = self._send(fills).to(dtype)[:, None]
                part[self._send(self.gaps), fold * size : (fold + 1) * size] = torch.where(torch.isnan(own), fill, own)
        scale = getattr(self, "scale", None)
        if scale is not None:
            lines *= scale[:, None].to(dtype)
            if base is not lines:
                base *= scale[:, None].to(dtype)
        return lines, base

    def _send_scales(self) -> None:
        """The power of two for each line, which brings its scatter near 1."""
        lines, base = self._sent_lines(torch.float32)
        total = torch.zeros((2, len(base)), dtype=torch.float64, device=self.device)
        for start in range(0, base.shape[1], ROWS_AT_A_TIME):
            part = base[:, start : start + ROWS_AT_A_TIME].double()
            total += torch.stack([part.sum(dim=1), (part**2).sum(dim=1)])
        scatter = torch.clamp(total[1] - total[0] ** 2 / len(self.row_at), min=0.0)
        self.scale = torch.exp2(-torch.round(0.5 * torch.log2(scatter + self.bound.alpha)))
        for part in {id(part): part for part in (lines, base)}.values():
            part *= self.scale[:, None].float()
        self._lines[torch.float32] = lines, base
        ridge = self.bound.alpha * self.scale**2
        ridge[-1] = 1.0
        self.ridge = {torch.float32: ridge.float(), torch.float64: torch.clamp(ridge, min=LEAST_RIDGE)}

    def _add_up(self) -> None:
        """Of each training fold: the means of the lines, their products with the outputs, and the outputs' means.

        ``kept`` is how much of a line's squares is left, at least, when its mean is taken off.
        """
        outputs = self.task.outputs[self._send(self.row_at)]
        levels = [own @ outputs[train] / own.sum() for train, own in zip(self.trains, self.weights, strict=True)]
        self.about = [outputs - level for level in levels]
        sides, self._exact_means, kept = self._sums(self._lines[torch.float32][1])
        self.kept = kept[:-1].cpu().numpy()
        self.sides, self.means = {torch.float32: sides.float()}, {torch.float32: self._exact_means.float()}
        level = torch.stack(levels)
        if self.task.n_classes:
            level = level + self.task.exclusions(self.bound.known, self.device)
        self.level = {dtype: level.to(dtype) for dtype in self.ridge}

    def _sums(self, base: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """In float64, of lines as they are: an inexact one is to be told from itself, not from an exact one."""
        n_bytes = 24 * self.n_splits * len(base) * (self.about[0].shape[1] + 1)
        require_room(n_bytes, self.device, f"the products of {self.n_features} features in {self.n_splits} folds")
        sides, means, kept = [], [], torch.ones(len(base), dtype=torch.float64, device=self.device)
        for train, weights, about in zip(self.trains, self.weights, self.about, strict=True):
            total = torch.zeros((len(base), about.shape[1] + 1), dtype=torch.float64, device=self.device)
            square = torch.zeros_like(kept)
            for some, own in zip(torch.split(train, ROWS_AT_A_TIME), torch.split(weights, ROWS_AT_A_TIME), strict=True):
                part = base[:, some].double()
                total.addmm_(part, torch.cat([about[some] * own[:, None], own[:, None]], dim=1))
                square += part**2 @ own
            means.append(total[:, -1] / weights.sum())
            rest = torch.clamp(square - weights.sum() * means[-1] ** 2, min=0.0)
            kept = torch.where(square > 0, torch.minimum(kept, rest / square), kept)
            sides.append(total[:, :-1])
        return torch.stack(sides), torch.stack(means), kept

    def _all_grams(self) -> Tensor:
        """Gram matrices of all lines about their means (folds, features + 1, features + 1)."""
        base = self._lines[torch.float32][1]
        grams = torch.empty((self.n_splits, len(base), len(base)), dtype=torch.float32, device=self.device)
        for fold, (train, weights) in enumerate(zip(self.trains, self.weights, strict=True)):
            gram = torch.zeros((len(base), len(base)), dtype=torch.float64, device=self.device)
            for some, own in zip(torch.split(train, ROWS_AT_A_TIME), torch.split(weights, ROWS_AT_A_TIME), strict=True):
                part = base[:, some].double()
                gram.addmm_(part * own, part.T)
            mean = self._exact_means[fold]
            gram.addr_(mean, mean, alpha=-float(self.n_trains[fold]))
            grams[fold] = gram
        return grams

    def _scores(self, batch: Batch, groups: Groups) -> Floats:
        kept, found = self._kept(batch), np.empty((len(batch.sizes), 2 + groups.of_tests.n_groups))
        quick = kept >= (LEAST_PIVOT_OF_ALL if self.table is not None else self.least_pivot)
        some = np.flatnonzero(quick)
        found[some] = self._found_in(torch.float32, batch, some, groups)
        again = np.flatnonzero(~(quick & (found[:, -1] >= self.least_pivot)))
        found[again] = self._found_in(torch.float64, batch, again, groups)
        for lost in again[~(found[again, -1] * kept[again] >= LEAST_PIVOT_OF_ALL)].tolist():
            found[lost, :-1] = exact_score(self.bound, batch, lost, groups)
        return found[:, :-1]

    def _kept(self, batch: Batch) -> Floats:
        """Of each subset's squares, how much is left in every line when its mean is taken off."""
        kept, is_filled = np.ones(len(batch.sizes)), batch.sizes > 0
        if is_filled.any():
            kept[is_filled] = np.minimum.reduceat(self.kept[batch.indices], batch.offsets[:-1][is_filled])
        return kept

    def _found_in(self, dtype: torch.dtype, batch: Batch, subsets: NDArray[np.int64], groups: Groups) -> Floats:
        """What is asked of some of the subsets, and the least pivot of each."""
        at_a_time = partial(self._at_a_time, dtype=dtype)
        return self._measured(batch, subsets, groups, partial(self._predicted, dtype=dtype), at_a_time)

    def _at_a_time(self, width: int, dtype: torch.dtype) -> int:
        n_folds, n_outputs = min(self.n_splits, FOLDS_AT_A_TIME), self.task.outputs.shape[1]
        numbers = n_folds * (3 * width * (width + n_outputs) + self.height * (width + 3 * n_outputs))
        made = 0 if self._looks_up(dtype) else (n_folds + 1) * width * (width + len(self.row_at))
        return at_a_time(dtype.itemsize * (numbers + made) + 16 * self.tests.size)

    def _looks_up(self, dtype: torch.dtype) -> bool:
        return self.table is not None and dtype == torch.float32

    def _predicted(self, table: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Predictions (subsets, tests) and the least pivots of subsets given as a table (subsets, width)."""
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
        """(folds, Gram matrices about the means with alpha on the diagonal (folds, subsets, width, width))."""
        for folds, grams in self._looked_up(table) if self._looks_up(dtype) else self._made(table, dtype):
            grams.diagonal(dim1=-2, dim2=-1).add_(self.ridge[dtype][table])
            yield folds, grams

    def _looked_up(self, table: Tensor) -> Iterator[tuple[slice, Tensor]]:
        assert self.table is not None
        for folds in some_folds(self.n_splits):
            yield folds, self.table[folds][:, table[:, :, None], table[:, None, :]]

    def _made(self, table: Tensor, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
        """From the subsets' own lines, about the means."""
        lines = self._lines_in(dtype)[1][table]
        for folds in some_folds(self.n_splits):
            grams = torch.stack([self._gram(lines, table, fold) for fold in range(folds.start, folds.stop)])
            yield folds, grams

    def _gram(self, lines: Tensor, table: Tensor, fold: int) -> Tensor:
        mean = self.means[lines.dtype][fold][table]
        own = lines[:, :, self.trains[fold]] - mean[:, :, None]
        return torch.bmm(own * self.weights[fold].to(lines.dtype), own.mT)

    def _values(self, table: Tensor, folds: slice, dtype: torch.dtype) -> Tensor:
        """The subsets' lines of the test rows (folds, subsets, width, height)."""
        lines = self._lines_in(dtype)[0][:, : self.n_splits * self.height].view(-1, self.n_splits, self.height)
        return take_test_rows(lines, table, folds)

    def _decisions(self, table: Tensor, folds: slice, weights: Tensor, values: Tensor) -> Tensor:
        """Decisions for the test rows (folds, subsets, outputs, height)."""
        means = self.means[weights.dtype][folds][:, table]
        intercepts = self.level[weights.dtype][folds][:, None] - (means[:, :, None] @ weights)[:, :, 0]
        return (weights.mT @ values).add_(intercepts[..., None])


class DeviceLeftOutLinear(DeviceScorer):
    """The same with one row left out at a time: one system for all rows of a subset, in float64.

    As `kernels.ridge_decisions` by columns: with H the matrix that maps targets to fitted values, a row left out has
    the residual e_i / (1 - H_ii), e being those of the fit to all rows. Lines are about their means and in units of
    about their scatter.
    """

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
        for lost in np.flatnonzero(~(found[:, -1] >= LEAST_PIVOT_OF_ALL)).tolist():
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


def exact_score(bound: Any, batch: Batch, subset: int, groups: Groups) -> Floats:
    """J and mean outcomes of a subset for which float64 has too few digits, as the CPU finds them."""
    subsets = Subsets.of([batch.indices[batch.offsets[subset] : batch.offsets[subset + 1]]])
    if not groups.of_tests.n_groups:
        return np.asarray(bound(subsets))
    scores, means = bound._scores(subsets, groups.of_tests)
    return np.concatenate([scores, means[0]])
