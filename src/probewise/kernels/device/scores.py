"""Scores that are means over rows, for many subsets at a time on a GPU; equal to those of `kernels.scores`.

Sums are computed by adding halves repeatedly: unlike torch's sums, their rounding does not depend on the rest of a
batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..scores import ABSOLUTE_ERROR, BALANCED_ACCURACY, PROBABILITY, R2, SQUARED_ERROR

MOST_PARTS = 64  # up to so many parts, scores are added in order, as on the CPU


def total(values: Tensor) -> Tensor:
    """Sums over the last axis."""
    while (width := values.shape[-1]) > 1:
        half = (width + 1) // 2
        halves = values[..., :half].clone()
        halves[..., : width - half] += values[..., half:]
        values = halves
    return values[..., 0] if values.shape[-1] else values.new_zeros(values.shape[:-1])


@dataclass(frozen=True)
class Parts:
    """Tests of each part, as a table (parts, height), padded with the number of tests."""

    members: Tensor

    @classmethod
    def of(cls, number: NDArray[np.int64], n_parts: int, device: str) -> Parts:
        """Parts from the part of each test, -1 for none."""
        order = np.argsort(number, kind="stable")[np.count_nonzero(number < 0) :]
        sizes = np.bincount(number[order], minlength=n_parts)
        members = np.full((n_parts, int(sizes.max(initial=0))), len(number))
        offset = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        members[number[order], offset] = order
        return cls(torch.from_numpy(members).to(device))

    def total(self, values: Tensor) -> Tensor:
        """Sums (subsets, parts) of values (subsets, tests)."""
        return total(torch.nn.functional.pad(values, (0, 1))[:, self.members])


@dataclass(frozen=True)
class DeviceTests:
    """Tests on a device: the measure, truth and weights, and the parts (folds) that are scored together.

    ``shares`` is the weight of each test in the score of its part, and ``whole`` their sum.
    """

    measure: int
    truth: Tensor
    weights: Tensor
    part_of: Tensor
    parts: Parts
    shares: Tensor
    whole: Tensor

    @classmethod
    def of(
        cls, measure: int, truth: Any, weights: Any, sizes: NDArray[np.int64], shares: Any, device: str
    ) -> DeviceTests:
        """Send the tests, which are sorted by part; ``sizes`` are the sizes of the parts."""
        part_of = np.repeat(np.arange(len(sizes)), sizes)
        parts, arrays = Parts.of(part_of, len(sizes), device), (truth, weights, part_of, shares)
        truth_, weights_, part_of_, shares_ = (torch.from_numpy(np.ascontiguousarray(a)).to(device) for a in arrays)
        whole = torch.ones(1, dtype=torch.float64, device=device)
        if measure != BALANCED_ACCURACY:
            whole = parts.total(weights_[None])[0]
        return cls(measure, truth_, weights_, part_of_, parts, shares_, whole)

    def scores(self, predicted: Tensor) -> Tensor:
        """Mean over parts of their scores, for each subset."""
        if self.measure == R2:
            by_part = self._r2(predicted)
        else:
            by_part = self.parts.total(self.shares * self._by_test(predicted)) / self.whole
        whole = sum(by_part.T) if by_part.shape[1] <= MOST_PARTS else total(by_part)
        return whole / torch.full_like(whole, by_part.shape[1])  # a GPU does not divide exactly by a Python number

    def _by_test(self, predicted: Tensor) -> Tensor:
        if self.measure in (R2, SQUARED_ERROR):
            return -((self.truth - predicted) ** 2)
        if self.measure == ABSOLUTE_ERROR:
            return -(self.truth - predicted).abs()
        return predicted if self.measure == PROBABILITY else (predicted == self.truth).double()

    def _r2(self, predicted: Tensor) -> Tensor:
        errors = -self.parts.total(self.shares * self._by_test(predicted))
        varies = self._scatter > 0
        return torch.where(varies, 1 - errors / torch.where(varies, self._scatter, 1.0), (errors == 0).double())

    @property
    def _scatter(self) -> Tensor:
        """Sum of squared deviations of each part from its mean."""
        mean = self.parts.total((self.weights * self.truth)[None])[0] / self.whole
        return self.parts.total((self.weights * (self.truth - mean[self.part_of]) ** 2)[None])[0]
