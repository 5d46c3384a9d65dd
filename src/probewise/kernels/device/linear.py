"""Ridge regression of many subsets at a time: Gram matrices looked up, factored in one batch, and test rows told.

A column comes less its centre and times a power of two that brings the diagonal of its system near 1: weights and
decisions are then of moderate size whatever the units, and float32 serves. Sums are made once, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from .columns import Lane, by_size, free_bytes, padded, require_room, send
from .folds import FOLDS_AT_A_TIME, in_lines, some_folds, take

SIZE_STEPS = np.unique([*range(16, 257, 16), *np.round(256 * 1.25 ** np.arange(1, 40) / 32) * 32]).astype(int)
ROWS_AT_A_TIME = 4096
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
        truth = torch.from_numpy(np.ascontiguousarray(targets)).to(device)
        if not n_classes:
            truth = truth.double()
            truth = truth - truth.mean()
            truth = truth / torch.where(truth.abs().max() > 0, truth.abs().max(), 1.0)
            return cls(truth[:, None], truth, 0)
        own = torch.nn.functional.one_hot(truth, n_classes).double()
        return cls(2.0 * (own[:, 1:] if n_classes == 2 else own) - 1.0, truth, n_classes)

    def shut(self, rows: Tensor) -> Tensor:
        """What to add to each output so that a class without training rows is never chosen."""
        if not self.n_classes:
            return torch.zeros(1, dtype=torch.float64, device=rows.device)
        there = torch.bincount(self.truth[rows], minlength=self.n_classes) > 0
        if self.n_classes == 2:
            only = torch.where(there[1], torch.inf, -torch.inf)
            return torch.where(there.all(), 0.0, only)[None].double()
        return torch.where(there, 0.0, -torch.inf).double()


@dataclass(frozen=True)
class Layout:
    """Test rows as a table (folds, height), filled up with -1, and where each fold's training rows are.

    The columns' lines hold the test rows in this order. Folds that are a partition train on the same lines; other
    splits on lines of all rows.
    """

    tests: NDArray[np.int64]
    trains: list[NDArray[np.int64]]
    is_partition: bool

    @classmethod
    def of(cls, splits: Any, *, is_partition: bool) -> Layout:
        tests = in_lines([test for _, test in splits])
        if not is_partition:
            return cls(tests, [train for train, _ in splits], False)
        used = tests.ravel() >= 0
        fold_of = np.repeat(np.arange(len(splits)), tests.shape[1])
        return cls(tests, [np.flatnonzero(used & (fold_of != fold)) for fold in range(len(splits))], True)


class DeviceLinear:
    """J of many subsets at a time from float32 lines, one per feature.

    Where they fit, the Gram matrices of all features for each training fold are kept, and a subset looks up its own;
    else they are made from its lines. The kernels read test rows in half precision where that is exact, as for counts
    up to 2048. A subset with a column that the others nearly give (a pivot of the Cholesky
    factor below 1e-3 of its diagonal, 1e-2 for numbers) is told again in float64.
    """

    def __init__(
        self,
        X: Any,
        splits: Any,
        *,
        is_partition: bool,
        targets: NDArray[Any],
        n_classes: int,
        alpha: float,
        centers: Any = None,
        device: str,
    ) -> None:
        self.device, self.alpha, self.n_splits = device, alpha, len(splits)
        self.lane = Lane(device)
        layout = Layout.of(splits, is_partition=is_partition)
        self.n_features, self.height = X.shape[1], layout.tests.shape[1]
        self.task = Task.of(targets, n_classes, device)
        self.least_pivot = LEAST_PIVOT["classes" if n_classes else "numbers"]
        self.trains = [torch.from_numpy(train).to(device) for train in layout.trains]
        self.n_trains = torch.tensor([len(train) for train in self.trains], device=device)
        self.is_partition = is_partition
        self._send(X, layout.tests, _far_means(X) if centers is None else centers)
        self._add_up(layout.tests)
        self.table = self._all_grams() if self._grams_fit() else None
        tests = torch.from_numpy(layout.tests).to(device)
        self.truth = torch.where(tests >= 0, self.task.truth[tests], -1 if n_classes else torch.nan)
        self.n_tests = (tests >= 0).sum(dim=1).double()
        self.spread = torch.nansum((self.truth - torch.nanmean(self.truth.double(), dim=1)[:, None]) ** 2, dim=1)
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    def _send(self, X: Any, tests: NDArray[np.int64], centers: NDArray[np.float64]) -> None:
        """The lines of the test rows, and those to train on."""
        self.lines = send(X, np.maximum(tests, 0).ravel(), self.device, centers=centers)
        self.lines[:, : tests.size][:, torch.from_numpy(tests.ravel() < 0).to(self.device)] = 0.0
        self.base = self.lines
        if not self.is_partition:
            self.base = send(X, np.arange(X.shape[0]), self.device, centers=centers)
        scale = torch.exp2(-torch.round(0.5 * torch.log2(self._scatter() + self.alpha)))
        self.lines *= scale[:, None].float()
        if self.base is not self.lines:
            self.base *= scale[:, None].float()
        ridge = self.alpha * scale**2
        ridge[-1] = 1.0
        self.ridge = {torch.float32: ridge.float(), torch.float64: torch.clamp(ridge, min=LEAST_RIDGE)}

    def _scatter(self) -> Tensor:
        """Sum of squares of each line about its mean."""
        total = torch.zeros((2, len(self.base)), dtype=torch.float64, device=self.device)
        for start in range(0, self.base.shape[1], ROWS_AT_A_TIME):
            part = self.base[:, start : start + ROWS_AT_A_TIME].double()
            total += torch.stack([part.sum(dim=1), (part**2).sum(dim=1)])
        return torch.clamp(total[1] - total[0] ** 2 / len(self.task.truth), min=0.0)

    def _add_up(self, tests: NDArray[np.int64]) -> None:
        """Of each training fold: the means of the lines, their products with the outputs, and the outputs' means."""
        row_of = np.maximum(tests, 0).ravel() if self.is_partition else np.arange(len(self.task.truth))
        rows = torch.from_numpy(row_of).to(self.device)
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
        shut = [self.task.shut(rows[train]) for train in self.trains]
        level = torch.stack(means) + torch.stack(shut)
        self.level = {dtype: level.to(dtype) for dtype in self.ridge}

    def _grams_fit(self) -> bool:
        return (4 * self.n_splits + 16) * len(self.base) ** 2 <= free_bytes(self.device)

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

    def __call__(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        with self.lane():
            features = torch.from_numpy(np.ascontiguousarray(indices)).to(self.device)
            starts = torch.from_numpy(np.ascontiguousarray(offsets)).to(self.device)
            sizes = np.diff(offsets)
            scores, pivots = self._scores(features, starts, sizes, np.arange(len(sizes)), torch.float32)
            doubtful = np.flatnonzero(~(pivots >= self.least_pivot))
            if len(doubtful):
                scores[doubtful] = self._scores(features, starts, sizes, doubtful, torch.float64)[0]
        return scores

    def _scores(
        self, features: Tensor, starts: Tensor, sizes: NDArray[np.int64], probes: NDArray[np.int64], dtype: torch.dtype
    ) -> NDArray[np.float64]:
        """J and the least pivot of some of the subsets (2, subsets), by plain torch."""
        out = torch.empty((2, len(probes)), dtype=torch.float64, device=self.device)
        for width, some in by_size(sizes[probes], SIZE_STEPS):
            for batch in np.array_split(some, -(-len(some) // self._batch(width, dtype))):
                chosen = torch.from_numpy(probes[batch]).to(self.device)
                table = padded(features, starts, chosen, width, self.n_features)
                out[:, torch.from_numpy(batch).to(self.device)] = self._score(table, dtype)
        return out.cpu().numpy()

    def _batch(self, width: int, dtype: torch.dtype) -> int:
        """How many subsets of this width at a time."""
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
        return take(lines, table, folds).to(dtype)

    def _decisions(self, table: Tensor, folds: slice, weights: Tensor, values: Tensor) -> Tensor:
        """Decisions for the test rows (folds, subsets, outputs, height)."""
        means = self.means[weights.dtype][folds][:, table]
        intercepts = self.level[weights.dtype][folds][:, None] - (means[:, :, None] @ weights)[:, :, 0]
        return (weights.mT @ values).add_(intercepts[..., None])

    def _fold_scores(self, decisions: Tensor, folds: slice) -> Tensor:
        """Accuracy or R^2 (folds, subsets); of equal decisions the lower class's wins."""
        truth = self.truth[folds][:, None]
        if not self.task.n_classes:
            return self.r2(torch.nansum((truth - decisions[:, :, 0]) ** 2, dim=2), self.spread[folds][:, None])
        single = decisions.shape[2] == 1
        chosen = (decisions[:, :, 0] > 0).long() if single else decisions.argmax(dim=2)
        return (chosen == truth).sum(dim=2) / self.n_tests[folds][:, None]

    @staticmethod
    def r2(missed: Tensor, spread: Tensor) -> Tensor:
        return torch.where(spread > 0, 1 - missed / torch.where(spread > 0, spread, 1.0), (missed == 0).double())


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


def _far_means(X: Any) -> NDArray[np.float64]:
    """Means of sparse columns that are far from 0 for their spread; 0 for others, so that zeros stay zeros."""
    assert sp.issparse(X)
    n_rows = X.shape[0]
    values = X.astype(np.float64)
    mean = np.asarray(values.sum(axis=0)).ravel() / n_rows
    square = np.asarray(values.multiply(values).sum(axis=0)).ravel() / n_rows
    return np.where(square < 2 * mean**2, mean, 0.0)
