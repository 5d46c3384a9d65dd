"""Scores on a device, from predictions for the tests; equal to those of `kernels.scores`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.device.columns import send_array
from ..kernels.device.scores import members_of_parts, sums_of_parts, total
from ..kernels.scores import ABSOLUTE_ERROR, BALANCED_ACCURACY, PROBABILITY, R2, SQUARED_ERROR
from .base import Floats, Target
from .scoring import Measure

MOST_PARTS = 64  # up to so many parts, scores are added in order, as on the CPU


class DeviceMeasure:
    """The measure of a bound criterion and its tests on a device; tests are in the order of the folds.

    A part is the tests that are scored together, such as a fold. ``shares`` is the weight of each test in the score of
    its part, and ``whole`` their sum. ``truth`` is class codes, or numbers minus their mean.
    """

    def __init__(self, bound: Any, device: str) -> None:
        measure, target, rows = bound.measure, bound.target, bound.folds.order
        self.bound, self.device, self.code, self.n_tests = bound, device, measure.code, len(rows)
        self.mean = 0.0 if target.n_classes else target.values.mean()
        weights = measure.weights[rows] if measure.is_weighted else np.ones(len(rows))
        sizes = np.array([len(part) for part in bound.tests])
        self.members = members_of_parts(sizes, device)
        self.part_of = send_array(np.repeat(np.arange(len(sizes)), sizes), device)
        self.truth = send_array(target.values[rows] if target.n_classes else target.values[rows] - self.mean, device)
        self.weights = self.shares = send_array(weights, device)
        self.whole = sums_of_parts(self.weights[None], self.members)[0]
        if measure.code == BALANCED_ACCURACY:
            shares = np.concatenate([_shares_of_classes(measure, target, part) for part in bound.tests])
            self.shares, self.whole = send_array(shares, device), torch.ones_like(self.whole)

    def __call__(self, predicted: Tensor) -> Tensor:
        """Scores (subsets,) of predictions (subsets, tests); those that are no mean over rows come from the CPU."""
        measure = self.bound.measure
        if measure.of_predictions is None and measure.is_mean_over_rows:
            return self._mean_over_parts(predicted)
        values = predicted.double().cpu().numpy()
        by_name = measure.of_predictions is not None
        scores = self.bound.scores_of(values + self.mean) if by_name else self.bound.scored_tests.score(values)
        return torch.from_numpy(scores).to(self.device)

    def _mean_over_parts(self, predicted: Tensor) -> Tensor:
        sums = sums_of_parts(self.shares * self._by_test(predicted), self.members)
        by_part = self._r2(-sums) if self.code == R2 else sums / self.whole
        whole = sum(by_part.T) if by_part.shape[1] <= MOST_PARTS else total(by_part)
        return whole / torch.full_like(whole, by_part.shape[1])  # a GPU does not divide exactly by a Python number

    def _by_test(self, predicted: Tensor) -> Tensor:
        if self.code in (R2, SQUARED_ERROR):
            return -((self.truth - predicted) ** 2)
        if self.code == ABSOLUTE_ERROR:
            return -(self.truth - predicted).abs()
        return predicted if self.code == PROBABILITY else (predicted == self.truth).double()

    def _r2(self, errors: Tensor) -> Tensor:
        mean = sums_of_parts((self.weights * self.truth)[None], self.members)[0] / self.whole
        deviations = self.weights * (self.truth - mean[self.part_of]) ** 2
        scatter = sums_of_parts(deviations[None], self.members)[0]
        varies = scatter > 0
        return torch.where(varies, 1 - errors / torch.where(varies, scatter, 1.0), (errors == 0).double())


def _shares_of_classes(measure: Measure, target: Target, rows: NDArray[np.int64]) -> Floats:
    """Share of each row in the balanced accuracy of these rows."""
    weights = measure.weights[rows] if measure.is_weighted else np.ones(len(rows))
    codes = target.values[rows]
    by_class = np.bincount(codes, weights, minlength=target.n_classes)
    return weights / np.where(by_class > 0, by_class, 1.0)[codes] / np.count_nonzero(by_class)
