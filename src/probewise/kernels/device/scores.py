"""Scores of the predictions for many subsets at a time: the CPU's `kernels.scores` on a device.

predicted (subsets, tests) holds what it holds there. Sums are made by adding halves, again and again: their rounding
does not depend on what else is in a batch, as that of torch's own sums does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..scores import ABSOLUTE_ERROR, BALANCED_ACCURACY, F1_MACRO, PROBABILITY, R2, ROC_AUC, SQUARED_ERROR
from . import score_kernels

MOST_PARTS = 64  # whose scores are added in their order, as on the CPU


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
    """Which tests are of each part, as a table (parts, height), padded with one past the last."""

    members: Tensor

    @classmethod
    def of(cls, number: NDArray[np.int64], n_parts: int, device: str) -> Parts:
        """From the number of the part that each test is of; -1 for none."""
        order = np.argsort(number, kind="stable")[np.count_nonzero(number < 0) :]
        sizes = np.bincount(number[order], minlength=n_parts)
        members = np.full((n_parts, int(sizes.max(initial=0))), len(number))
        offset = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        members[number[order], offset] = order
        return cls(torch.from_numpy(members).to(device))

    def total(self, values: Tensor) -> Tensor:
        """Sums (subsets, parts) of values (subsets, tests)."""
        kernels = score_kernels(str(values.device))
        if kernels is not None:
            sums: Tensor = kernels.sums_of_parts(values.double(), self.members)
            return sums
        return total(torch.nn.functional.pad(values, (0, 1))[:, self.members])


@dataclass(frozen=True)
class Asked:
    """Of the tests: truth and weights, the parts that are scored together, each test's part, and what is measured.

    ``counts`` is how much each test counts in the score of its part, and ``whole`` the sum of that.
    """

    measure: int
    n_classes: int
    truth: Tensor
    weights: Tensor
    part_of: Tensor
    parts: Parts
    counts: Tensor
    whole: Tensor

    def scores(self, predicted: Tensor) -> Tensor:
        """The mean score of all parts, of each subset."""
        if self.measure == ROC_AUC:
            found = torch.stack([self._area(predicted, part) for part in range(len(self.parts.members))], dim=1)
        elif self.measure == F1_MACRO:
            found = self._mean_f1(predicted)
        elif self.measure == R2:
            found = self._r2(predicted)
        else:
            found = self.parts.total(self.counts * self._by_test(predicted)) / self.whole
        whole = sum(found.T) if found.shape[1] <= MOST_PARTS else total(found)
        return whole / torch.full_like(whole, found.shape[1])  # by a plain number a GPU would not divide exactly

    def outcomes(self, predicted: Tensor) -> Tensor:
        """What each test gave (subsets, tests), where the score is a mean over rows."""
        outcomes = self._by_test(predicted)
        if self.measure != R2:
            return outcomes
        scale = torch.where(self._scatter > 0, self.whole / self._scatter, 0.0)
        level = torch.where(self._scatter > 0, 1.0, self._r2(predicted))
        return level[:, self.part_of] + scale[self.part_of] * outcomes

    def _by_test(self, predicted: Tensor) -> Tensor:
        if self.measure in (R2, SQUARED_ERROR):
            return -((self.truth - predicted) ** 2)
        if self.measure == ABSOLUTE_ERROR:
            return -(self.truth - predicted).abs()
        return predicted if self.measure == PROBABILITY else (predicted == self.truth).double()

    def _r2(self, predicted: Tensor) -> Tensor:
        missed = -self.parts.total(self.counts * self._by_test(predicted))
        known = self._scatter > 0
        return torch.where(known, 1 - missed / torch.where(known, self._scatter, 1.0), (missed == 0).double())

    @property
    def _scatter(self) -> Tensor:
        """Of each part, about its mean."""
        mean = self.parts.total((self.weights * self.truth)[None])[0] / self.whole
        return self.parts.total((self.weights * (self.truth - mean[self.part_of]) ** 2)[None])[0]

    def _mean_f1(self, predicted: Tensor) -> Tensor:
        ones = torch.ones_like(self.weights)
        sums, counts = torch.zeros(1, device=predicted.device), torch.zeros(1, device=predicted.device)
        for number in range(self.n_classes):
            own, said = self.truth == number, predicted == number
            hits, claims, owned = (self.parts.total(self.weights * some) for some in (said & own, said, own[None]))
            met = self.parts.total(ones * (said | own)) > 0
            sums = sums + torch.where(owned + claims > 0, 2 * hits / (owned + claims), 0.0)
            counts = counts + met
        return sums / counts

    def _area(self, predicted: Tensor, part: int) -> Tensor:
        """The chance that a test of class 1 has the higher decision than one of class 0; equal ones count a half."""
        tests = torch.nonzero(self.part_of == part)[:, 0]
        zeros, ones = (tests[self.truth[tests] == number] for number in (0, 1))
        values, order = torch.sort(predicted[:, zeros].contiguous(), dim=1)
        own = predicted[:, ones].contiguous()
        below = torch.nn.functional.pad(torch.cumsum(self.weights[zeros][order], dim=1), (1, 0))
        sides = (below.gather(1, torch.searchsorted(values, own, right=right)) for right in (False, True))
        return 0.5 * total(self.weights[ones] * sum(sides)) / (total(self.weights[zeros]) * total(self.weights[ones]))


def asked(
    measure: int, n_classes: int, truth: NDArray[Any], weights: Any, sizes: NDArray[np.int64], counts: Any, device: str
) -> Asked:
    """On a device; tests scored together follow each other, parts of the sizes given."""
    part_of = np.repeat(np.arange(len(sizes)), sizes)
    parts = Parts.of(part_of, len(sizes), device)
    arrays = truth, weights, part_of, counts
    sent, own, part, shares = (torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in arrays)
    whole = torch.ones(1, dtype=torch.float64, device=device)
    whole = whole if measure == BALANCED_ACCURACY else parts.total(own[None])[0]
    return Asked(measure, n_classes, sent, own, part, parts, shares, whole)
