"""Gaussian naive Bayes of many subsets at a time: what a row costs in a class is a quadratic of its values.

So the costs of all rows, classes and subsets are two batched products: of squares and of values.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from .columns import Lane, by_size, free_bytes, padded, require_room, send
from .folds import FOLDS_AT_A_TIME, in_lines, some_folds, take

SIZE_STEPS = np.unique([*range(8, 256, 8), *range(256, 1024, 32), *np.round(1024 * 1.25 ** np.arange(40))]).astype(int)
PIECE = 2**26
DOUBT = 0.005
LEAST_DOUBT = 1e-6


@dataclass(frozen=True)
class Fold:
    """Test rows and their classes (-1 for one without training rows), and what the training rows say.

    mean and variance (features, classes), the variance over all classes, and the logarithm of the classes' shares.
    """

    rows: NDArray[np.int64]
    truth: NDArray[np.int64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    spread: NDArray[np.float64]
    log_prior: NDArray[np.float64]

    @property
    def unit(self) -> NDArray[np.float64]:
        """What makes the variance 1; 0 for a constant column."""
        return np.divide(1.0, np.sqrt(self.spread), out=np.zeros_like(self.spread), where=self.spread > 0)


class DeviceBayes:
    """J of many subsets at a time, from test rows in units in which a fold's training rows have variance 1.

    Dense columns are also centred; sparse ones are not, so that zeros stay zeros. Subsets are told in float32 where
    the bound on its rounding is small, as on the CPU; else in float64; and where that is not enough, as in classes with
    next to no variance in a column, by squared distances, class by class.
    """

    def __init__(self, X: Any, folds: Sequence[Fold], *, smoothing: float, device: str) -> None:
        self.X, self.folds, self.smoothing, self.device = X, folds, smoothing, device
        self.n_features, self.n_folds = X.shape[1], len(folds)
        self.n_classes = max(len(fold.log_prior) for fold in folds)
        self.is_sparse = sp.issparse(X)
        self.lane, self._lock = Lane(device), threading.Lock()
        self._send_moments()
        self.tests = in_lines([fold.rows for fold in folds])
        self.truth = torch.from_numpy(in_lines([fold.truth for fold in folds])).to(device)
        self.n_tests = torch.tensor([len(fold.rows) for fold in folds], dtype=torch.float64, device=device)
        self.lines = {torch.float32: self._standard(torch.float32)}
        self.sizes = self._sizes()
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    def _send_moments(self) -> None:
        """Moments in standard units (folds, features + 1, classes); classes that only fill up are never chosen."""
        n_bytes = 16 * self.n_folds * (self.n_features + 1) * (self.n_classes + 1)
        require_room(n_bytes, self.device, f"moments of {self.n_features} features in {self.n_folds} folds")
        shape = (self.n_folds, self.n_features + 1, self.n_classes)
        mean, variance, spread = np.zeros(shape), np.ones(shape), np.zeros(shape[:2])
        log_prior = np.full((self.n_folds, self.n_classes), -np.inf)
        for number, fold in enumerate(self.folds):
            n_classes = len(fold.log_prior)
            spread[number, :-1] = fold.spread
            log_prior[number, :n_classes] = fold.log_prior
            mean[number, :-1, :n_classes] = (fold.mean - self._origin(fold)[:, None]) * fold.unit[:, None]
            variance[number, :-1, :n_classes] = fold.variance * (fold.unit**2)[:, None]
        self.mean, self.variance, self.spread, self.log_prior = (
            torch.from_numpy(values).to(self.device) for values in (mean, variance, spread, log_prior)
        )

    def _origin(self, fold: Fold) -> NDArray[np.float64]:
        return np.zeros(self.n_features) if self.is_sparse else fold.mean @ np.exp(fold.log_prior)

    def _standard(self, dtype: torch.dtype) -> Tensor:
        """The test rows in standard units (features + 1, folds, height), some features at a time."""
        shape = (self.n_features + 1, *self.tests.shape)
        require_room(int(np.prod(shape)) * dtype.itemsize, self.device, f"X ({self.X.shape[0]} x {self.n_features})")
        lines = torch.zeros(shape, dtype=dtype, device=self.device)
        origins = torch.from_numpy(np.stack([self._origin(fold) for fold in self.folds], axis=1)).to(self.device)
        units = torch.from_numpy(np.stack([fold.unit for fold in self.folds], axis=1)).to(self.device)
        used = torch.from_numpy(self.tests >= 0).to(self.device)
        step = max(1, PIECE // (8 * self.tests.size))
        for start in range(0, self.n_features, step):
            some = slice(start, min(start + step, self.n_features))
            rows = np.maximum(self.tests, 0).ravel()
            values = send(self.X[:, some], rows, self.device, dtype=torch.float64)[:-1, : self.tests.size]
            values = (values.view(-1, *self.tests.shape) - origins[some, :, None]) * units[some, :, None]
            lines[some] = torch.where(used, values, 0.0).to(dtype)
        return lines

    def _lines(self, dtype: torch.dtype) -> Tensor:
        """In float64 only once a subset needs them."""
        with self._lock:
            if dtype not in self.lines:
                self.lines[dtype] = self._standard(dtype)
                if self.device.startswith("cuda"):
                    torch.cuda.synchronize(self.device)
        return self.lines[dtype]

    def _sizes(self) -> NDArray[np.float64]:
        """Of each feature, how large a row's costs may get that float32 adds up, with no smoothing but its own."""
        reach = self.lines[torch.float32].abs().amax(dim=2).T.double()
        sizes = torch.zeros(self.n_features, dtype=torch.float64, device=self.device)
        for folds in some_folds(self.n_folds):
            variance = self.variance[folds, :-1] + self.smoothing
            bend, slope, _ = _quadratic(self.mean[folds, :-1], variance, self.spread[folds, :-1] == 0)
            bend, slope = bend - bend[..., :1], slope - slope[..., :1]
            far = reach[folds, :-1, None]
            sizes = torch.maximum(sizes, ((bend.abs() * far + slope.abs()) * far).amax(dim=(0, 2)))
        return sizes.cpu().numpy()

    def __call__(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        sizes = np.diff(offsets)
        bounds = self._bounds(indices, offsets)
        quick = bounds <= DOUBT * 2.0**24
        narrow = ~quick & ~(bounds <= LEAST_DOUBT * 2.0**53) & (not self.is_sparse)
        ways = (
            (quick, torch.float32, self._expanded),
            (~quick & ~narrow, torch.float64, self._expanded),
            (narrow, torch.float64, self._squared),
        )
        out = np.empty(len(sizes))
        with self.lane():
            features = torch.from_numpy(np.ascontiguousarray(indices)).to(self.device)
            starts = torch.from_numpy(np.ascontiguousarray(offsets)).to(self.device)
            for chosen, dtype, costs in ways:
                probes = np.flatnonzero(chosen)
                if len(probes):
                    out[probes] = self._scores(features, starts, sizes, probes, dtype, costs).cpu().numpy()
        return out

    def _bounds(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """How far off the difference of two costs may be, in roundings of 1: the same bound as on the CPU."""
        sizes = np.diff(offsets)
        whole = np.zeros(len(sizes))
        whole[sizes > 0] = np.add.reduceat(self.sizes[indices], offsets[:-1][sizes > 0])
        bounds: NDArray[np.float64] = 2.0 * (sizes / 4 + 16) * whole
        return bounds

    def _scores(
        self,
        features: Tensor,
        starts: Tensor,
        sizes: NDArray[np.int64],
        probes: NDArray[np.int64],
        dtype: torch.dtype,
        costs: Callable[[Tensor, slice, Tensor], Tensor],
    ) -> Tensor:
        out = torch.empty(len(probes), dtype=torch.float64, device=self.device)
        lines = self._lines(dtype)
        for width, some in by_size(sizes[probes], SIZE_STEPS):
            for batch in np.array_split(some, -(-len(some) // self._batch(width, dtype))):
                chosen = torch.from_numpy(probes[batch]).to(self.device)
                table = padded(features, starts, chosen, width, self.n_features)
                out[torch.from_numpy(batch).to(self.device)] = self._score(table, lines, costs)
        return out

    def _batch(self, width: int, dtype: torch.dtype) -> int:
        """How many subsets of this width at a time."""
        height = self.tests.shape[1]
        model = 8 * 8 * width * self.n_classes
        rows = dtype.itemsize * height * (3 * width + 3 * self.n_classes)
        return max(1, free_bytes(self.device) // (min(self.n_folds, FOLDS_AT_A_TIME) * (model + rows)))

    def _score(self, table: Tensor, lines: Tensor, costs: Callable[[Tensor, slice, Tensor], Tensor]) -> Tensor:
        """Accuracy of subsets given as a table (subsets, width): the cheapest class wins, the first of equals."""
        total = torch.zeros(len(table), dtype=torch.float64, device=self.device)
        for folds in some_folds(self.n_folds):
            chosen = costs(table, folds, take(lines, table, folds)).argmin(dim=2)
            right = (chosen == self.truth[folds][:, None]).sum(dim=2)
            total += (right / self.n_tests[folds, None]).sum(dim=0)
        return total / self.n_folds

    def _model(self, table: Tensor, folds: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Means and variances (folds, subsets, width, classes) with the smoothing, and which columns say nothing."""
        spread = self.spread[folds][:, table]
        smoothing = self.smoothing * spread.amax(dim=2, keepdim=True)
        constant = spread == 0
        variance = self.variance[folds][:, table] + (smoothing / torch.where(constant, 1.0, spread))[..., None]
        return self.mean[folds][:, table], variance, constant | (variance.amin(dim=3) <= 0)

    def _expanded(self, table: Tensor, folds: slice, values: Tensor) -> Tensor:
        """Costs (folds, subsets, classes, height), but for a constant of the row; the values given are lost."""
        bend, slope, start = _quadratic(*self._model(table, folds))
        start = start.sum(dim=2) - self.log_prior[folds][:, None]
        if not self.is_sparse or values.dtype == torch.float32:  # differences to the first class are smaller
            bend, slope, start = (part - part[..., :1] for part in (bend, slope, start))
        costs = slope.mT.to(values.dtype) @ values
        costs += bend.mT.to(values.dtype) @ values.square_()
        return costs.add_(start[..., None].to(values.dtype))

    def _squared(self, table: Tensor, folds: slice, values: Tensor) -> Tensor:
        """Costs (folds, subsets, classes, height) as sums of squares: no digits are lost in narrow classes."""
        mean, variance, silent = self._model(table, folds)
        variance = torch.where(silent[..., None], 1.0, variance)
        scale = torch.where(silent[..., None], 0.0, torch.sqrt(0.5 / variance))
        start = 0.5 * torch.log(variance).sum(dim=2) - self.log_prior[folds][:, None]
        costs = [
            ((values - mean[..., c, None]) * scale[..., c, None]).square_().sum(dim=2) for c in range(self.n_classes)
        ]
        return torch.stack(costs, dim=2).add_(start[..., None])


def _quadratic(mean: Tensor, variance: Tensor, silent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a value z costs in a class: (bend z + slope) z + start."""
    variance = torch.where(silent[..., None], 1.0, variance)
    precision = torch.where(silent[..., None], 0.0, 1.0 / variance)
    return 0.5 * precision, -precision * mean, 0.5 * (precision * mean**2 + torch.log(variance))
