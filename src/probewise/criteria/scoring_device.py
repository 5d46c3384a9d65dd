"""One scoring for all criteria on a device: J, and what each group of rows gave, from predictions for the tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..kernels.device.scores import Parts, asked
from ..kernels.scores import BALANCED_ACCURACY
from .scoring import NO_GROUPS, GroupsOfTests


class Groups(NamedTuple):
    """Groups of tests, also on the device: which are of each, and the share of each test in the mean of its group."""

    of_tests: GroupsOfTests
    parts: Parts | None = None
    share: Tensor | None = None


class DeviceMeasure:
    """The measure of a bound criterion, and its tests: rows in the order of its folds."""

    def __init__(self, bound: Any, device: str) -> None:
        measure, target, rows = bound.measure, bound.target, bound.folds.order
        self.bound, self.device, self.code, self.n_tests = bound, device, measure.code, len(rows)
        self.mean = 0.0 if target.n_classes else target.values.mean()
        values = target.values if target.n_classes else target.values - self.mean
        weights = measure.of_rows(rows) if measure.is_weighted else np.ones(len(rows))
        counts = weights
        if measure.code == BALANCED_ACCURACY:
            counts = np.concatenate([measure.shares(own, target) for own in bound.tests])
        sizes = np.array([len(own) for own in bound.tests])
        self.asked = asked(measure.code, target.n_classes, values[rows], weights, sizes, counts, device)

    @property
    def truth(self) -> Tensor:
        """Class numbers, or numbers less their mean."""
        return self.asked.truth

    def groups(self, groups: GroupsOfTests) -> Groups:
        if not groups.n_groups:
            return Groups(groups)
        parts = Parts.of(groups.group, groups.n_groups, self.device)
        return Groups(groups, parts, torch.from_numpy(groups.share).to(self.device))

    def __call__(self, predicted: Tensor, groups: Groups) -> Tensor:
        """J and the mean outcomes of groups (subsets, 1 + groups), from predictions (subsets, tests)."""
        if self.bound.measure.of_predictions is not None:
            scores = self.bound.scores_of(predicted.cpu().numpy() + self.mean)
            return torch.from_numpy(scores[:, None]).to(self.device)
        scores = self.asked.scores(predicted)[:, None]
        if groups.parts is None:
            return scores
        return torch.cat([scores, groups.parts.total(groups.share * self.asked.outcomes(predicted))], dim=1)


WITHOUT = Groups(NO_GROUPS)
