"""Scores on a device, from predictions for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.device.scores import DeviceTests
from ..kernels.scores import BALANCED_ACCURACY
from .base import Floats, Target
from .scoring import Measure


class DeviceMeasure:
    """The measure of a bound criterion and its tests on a device; tests are in the order of the folds."""

    def __init__(self, bound: Any, device: str) -> None:
        measure, target, rows = bound.measure, bound.target, bound.folds.order
        self.bound, self.device, self.code, self.n_tests = bound, device, measure.code, len(rows)
        self.mean = 0.0 if target.n_classes else target.values.mean()
        values = target.values if target.n_classes else target.values - self.mean
        weights = measure.weights[rows] if measure.is_weighted else np.ones(len(rows))
        shares = weights
        if measure.code == BALANCED_ACCURACY:
            shares = np.concatenate([_shares_of_classes(measure, target, part) for part in bound.tests])
        sizes = np.array([len(part) for part in bound.tests])
        self.tests = DeviceTests.of(measure.code, values[rows], weights, sizes, shares, device)

    @property
    def truth(self) -> Tensor:
        """Class codes, or numbers minus their mean."""
        return self.tests.truth

    def __call__(self, predicted: Tensor) -> Tensor:
        """Scores (subsets,) of predictions (subsets, tests); those that are no mean over rows come from the CPU."""
        measure = self.bound.measure
        if measure.of_predictions is None and measure.is_mean_over_rows:
            return self.tests.scores(predicted)
        values = predicted.double().cpu().numpy()
        by_name = measure.of_predictions is not None
        scores = self.bound.scores_of(values + self.mean) if by_name else self.bound.scored_tests.score(values)
        return torch.from_numpy(scores).to(self.device)


def _shares_of_classes(measure: Measure, target: Target, rows: NDArray[np.int64]) -> Floats:
    """Share of each row in the balanced accuracy of these rows."""
    weights = measure.weights[rows] if measure.is_weighted else np.ones(len(rows))
    codes = target.values[rows]
    by_class = np.bincount(codes, weights, minlength=target.n_classes)
    return weights / np.where(by_class > 0, by_class, 1.0)[codes] / np.count_nonzero(by_class)
