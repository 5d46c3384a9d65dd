"""Gaussian naive Bayes scores of feature subsets, on a device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.device.bayes import all_but_each, expanded_costs, prediction, quadratic, squared_costs
from ..kernels.device.columns import require_room, send
from .base import Floats
from .base_device import FOLDS_AT_A_TIME, Batch, DeviceScorer, at_a_time, some_folds, stack_folds, take_test_rows
from .naive_bayes import FoldModel
from .scoring_device import Groups

PIECE = 2**26  # bytes of test rows sent at a time
VALUES_AT_A_TIME = 2**22  # that moments without each row are made of
DOUBT = 0.005  # the largest rounding error of a difference of two costs that float32 is trusted with
SOFT_DOUBT = 1e-4  # the same where a cost itself counts, and not only which is the least
LEAST_DOUBT = 1e-6  # the same for float64


class DeviceNaiveBayes(DeviceScorer):
    """J of many subsets at a time, from test rows in units in which a fold's training rows have variance 1.

    Dense columns are also centred; sparse ones are not, so that zeros stay zeros. float32 predicts where the bound on
    its rounding is small, as on the CPU; else float64; and where that is not enough, as in classes with next to no
    variance in a column, squared distances do, class by class.
    """

    def _prepare(self) -> None:
        self.X, self.is_sparse, self.n_features = self.bound.X, sp.issparse(self.bound.X), self.bound.X.shape[1]
        self.folds = [replace(model, columns=None, standard=None) for model in self.bound.fold_models()]
        self.n_folds, self.n_classes = len(self.folds), max(len(fold.moments.log_prior) for fold in self.folds)
        self._lock = threading.Lock()
        self._send_moments()
        self.tests = stack_folds([fold.rows for fold in self.folds])
        self.truth = self._send(stack_folds([fold.known_truth for fold in self.folds]))
        self.is_test = self._send(np.flatnonzero(self.tests.ravel() >= 0))
        classes = stack_folds([fold.classes for fold in self.folds])
        self.classes = self._send(np.where(classes >= 0, classes, 0))
        self.doubt = DOUBT if self.bound.measure.is_of_labels else SOFT_DOUBT
        self.lines = {torch.float32: self._standardized(torch.float32)}
        self.sizes = self._sizes()

    def _send_moments(self) -> None:
        """Moments in standard units (folds, features + 1, classes); classes that are padding are never chosen."""
        n_bytes = 16 * self.n_folds * (self.n_features + 1) * (self.n_classes + 1)
        require_room(n_bytes, self.device, f"moments of {self.n_features} features in {self.n_folds} folds")
        shape = (self.n_folds, self.n_features + 1, self.n_classes)
        mean, variance, pooled = np.zeros(shape), np.ones(shape), np.zeros(shape[:2])
        log_prior = np.full((self.n_folds, self.n_classes), -np.inf)
        for number, fold in enumerate(self.folds):
            moments, unit, classes = fold.moments, _unit(fold)[:, None], slice(len(fold.moments.log_prior))
            pooled[number, :-1], log_prior[number, classes] = moments.pooled, moments.log_prior
            mean[number, :-1, classes] = (moments.mean - self._origin(fold)[:, None]) * unit
            variance[number, :-1, classes] = moments.variance * unit**2
        self.mean, self.variance, self.pooled, self.log_prior = map(self._send, (mean, variance, pooled, log_prior))

    def _origin(self, fold: FoldModel) -> Floats:
        return np.zeros(self.n_features) if self.is_sparse else fold.moments.mean @ np.exp(fold.moments.log_prior)

    def _standardized(self, dtype: torch.dtype) -> Tensor:
        """The test rows in standard units (features + 1, folds, height), some features at a time."""
        shape = (self.n_features + 1, *self.tests.shape)
        require_room(int(np.prod(shape)) * dtype.itemsize, self.device, f"X ({self.X.shape[0]} x {self.n_features})")
        lines = torch.zeros(shape, dtype=dtype, device=self.device)
        origins = self._send(np.stack([self._origin(fold) for fold in self.folds], axis=1))
        units = self._send(np.stack([_unit(fold) for fold in self.folds], axis=1))
        is_row = self._send(self.tests >= 0)
        step = max(1, PIECE // (8 * self.tests.size))
        for start in range(0, self.n_features, step):
            some = slice(start, min(start + step, self.n_features))
            rows = np.maximum(self.tests, 0).ravel()
            values = send(self.X[:, some], rows, self.device, dtype=torch.float64)[:-1, : self.tests.size]
            values = (values.view(-1, *self.tests.shape) - origins[some, :, None]) * units[some, :, None]
            lines[some] = torch.where(is_row, values, 0.0).to(dtype)
        return lines

    def _lines(self, dtype: torch.dtype) -> Tensor:
        """In float64 only once a subset needs them."""
        with self._lock:
            if dtype not in self.lines:
                self.lines[dtype] = self._standardized(dtype)
                self.streams.synchronize()
        return self.lines[dtype]

    def _sizes(self) -> Floats:
        """Of each feature, how large a row's costs may get that float32 adds up, with no smoothing but its own."""
        reach = self.lines[torch.float32].abs().amax(dim=2).T.double()
        sizes = torch.zeros(self.n_features, dtype=torch.float64, device=self.device)
        for folds in some_folds(self.n_folds):
            variance = self.variance[folds, :-1] + self.bound.var_smoothing
            bend, slope, _ = quadratic(self.mean[folds, :-1], variance, self.pooled[folds, :-1] == 0)
            bend, slope = bend - bend[..., :1], slope - slope[..., :1]
            far = reach[folds, :-1, None]
            sizes = torch.maximum(sizes, ((bend.abs() * far + slope.abs()) * far).amax(dim=(0, 2)))
        return sizes.cpu().numpy()

    def _scores(self, batch: Batch, groups: Groups) -> Floats:
        bounds = self._bounds(batch.indices, batch.offsets)
        quick = bounds <= self.doubt * 2.0**24
        narrow = ~quick & ~(bounds <= LEAST_DOUBT * 2.0**53) & (not self.is_sparse)
        ways = (
            (quick, torch.float32, self._expanded_costs),
            (~quick & ~narrow, torch.float64, self._expanded_costs),
            (narrow, torch.float64, self._squared_costs),
        )
        found = np.empty((len(bounds), 2 + groups.of_tests.n_groups))
        for chosen, dtype, costs in ways:
            subsets = np.flatnonzero(chosen)
            if len(subsets):
                predict = partial(self._predicted, lines=self._lines(dtype), costs=costs)
                at_a_time = partial(self._at_a_time, dtype=dtype)
                found[subsets] = self._measured(batch, subsets, groups, predict, at_a_time)
        return found[:, :-1]

    def _bounds(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> Floats:
        """How far off the difference of two costs may be, in roundings of 1: the same bound as on the CPU."""
        sizes = np.diff(offsets)
        whole = np.zeros(len(sizes))
        whole[sizes > 0] = np.add.reduceat(self.sizes[indices], offsets[:-1][sizes > 0])
        bounds: Floats = 2.0 * (sizes / 4 + 16) * whole
        return bounds

    def _at_a_time(self, width: int, dtype: torch.dtype) -> int:
        model = 8 * 8 * width * self.n_classes
        rows = dtype.itemsize * self.tests.shape[1] * (3 * width + 3 * self.n_classes)
        return at_a_time(min(self.n_folds, FOLDS_AT_A_TIME) * (model + rows) + 16 * self.tests.size)

    def _predicted(self, table: Tensor, lines: Tensor, costs: Callable[..., Tensor]) -> tuple[Tensor, Tensor]:
        """Predictions (subsets, tests) of subsets given as a table (subsets, width)."""
        found = []
        for folds in some_folds(self.n_folds):
            own, truth = costs(table, folds, take_test_rows(lines, table, folds)), self.truth[folds][:, None]
            found.append(prediction(own, truth, self.classes[folds], self.measure.code))
        return torch.cat(found).transpose(0, 1).reshape(len(table), -1)[:, self.is_test], table[:, 0]

    def _model(self, table: Tensor, folds: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Means and variances (folds, subsets, width, classes) with the smoothing, and which columns are silent."""
        pooled = self.pooled[folds][:, table]
        smoothing = self.bound.var_smoothing * pooled.amax(dim=2, keepdim=True)
        constant = pooled == 0
        variance = self.variance[folds][:, table] + (smoothing / torch.where(constant, 1.0, pooled))[..., None]
        return self.mean[folds][:, table], variance, constant | (variance.amin(dim=3) <= 0)

    def _expanded_costs(self, table: Tensor, folds: slice, values: Tensor) -> Tensor:
        """Costs but for a constant of the row; the values given are lost."""
        bend, slope, start = quadratic(*self._model(table, folds))
        start = start.sum(dim=2) - self.log_prior[folds][:, None]
        if not self.is_sparse or values.dtype == torch.float32:  # differences to the first class are smaller
            bend, slope, start = (part - part[..., :1] for part in (bend, slope, start))
        return expanded_costs(bend, slope, start, values)

    def _squared_costs(self, table: Tensor, folds: slice, values: Tensor) -> Tensor:
        return squared_costs(*self._model(table, folds), self.log_prior[folds], values)


def _unit(fold: FoldModel) -> Floats:
    """What makes the variance of a fold's training rows 1; 0 for a constant column."""
    pooled = fold.moments.pooled
    return np.divide(1.0, np.sqrt(pooled), out=np.zeros_like(pooled), where=pooled > 0)


class DeviceLeftOutBayes(DeviceScorer):
    """The same with one row left out at a time, in float64: what a column says of a row without it is found once.

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
        step = max(1, VALUES_AT_A_TIME // self.n_rows)
        for start in range(0, len(self.lines), step):
            some = slice(start, min(start + step, len(self.lines)))
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
