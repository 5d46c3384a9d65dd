"""Scores on a device: J and mean outcomes of groups of rows, from predictions for the tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..kernels.device.scores import DeviceTests, Parts
from ..kernels.scores import BALANCED_ACCURACY
from .scoring import NO_GROUPS, GroupsOfTests, ScoredTests


class Groups(NamedTuple):
    """Groups of tests; on the device, the tests of each group and the share of each test in the mean of its group."""

    of_tests: GroupsOfTests
    parts: Parts | None = None
    share: Tensor | None = None


class DeviceMeasure:
    """The measure of a bound criterion and its tests on a device; tests are in the order of the folds."""

    def __init__(self, bound: Any, device: str) -> None:
        measure, target, rows = bound.measure, bound.target, bound.folds.order
        self.on_cpu: ScoredTests = measure.tests_of(bound.folds, target.values, target.n_classes)
        self.bound, self.device, self.code, self.n_tests = bound, device, measure.code, len(rows)
        self.mean = 0.0 if target.n_classes else target.values.mean()
        values = target.values if target.n_classes else target.values - self.mean
        weights = measure.of_rows(rows) if measure.is_weighted else np.ones(len(rows))
        shares = weights
        if measure.code == BALANCED_ACCURACY:
            shares = np.concatenate([measure.shares(part, target) for part in bound.tests])
        sizes = np.array([len(part) for part in bound.tests])
        self.tests = DeviceTests.of(measure.code, values[rows], weights, sizes, shares, device)

    @property
    def truth(self) -> Tensor:
        """Class codes, or numbers minus their mean."""
        return self.tests.truth

    def groups(self, groups: GroupsOfTests) -> Groups:
        if not groups.n_groups:
            return Groups(groups)
        parts = Parts.of(groups.group, groups.n_groups, self.device)
        return Groups(groups, parts, torch.from_numpy(groups.share).to(self.device))

    def __call__(self, predicted: Tensor, groups: Groups) -> Tensor:
        """J and mean outcomes of groups (subsets, 1 + groups), from predictions (subsets, tests).

        Scores that are no mean over rows are computed on the CPU.
        """
        measure = self.bound.measure
        if measure.of_predictions is not None:
            return self._send_scores(self.bound.scores_of(predicted.cpu().numpy() + self.mean))
        if not measure.is_mean_over_rows:
            scores = np.empty(len(predicted))
            self.on_cpu.score(predicted.double().cpu().numpy(), NO_GROUPS.outcomes(len(predicted)), scores)
            return self._send_scores(scores)
        scores = self.tests.scores(predicted)[:, None]
        if groups.parts is None:
            return scores
        return torch.cat([scores, groups.parts.total(groups.share * self.tests.outcomes(predicted))], dim=1)

    def _send_scores(self, scores: Any) -> Tensor:
        return torch.from_numpy(scores[:, None]).to(self.device)


WITHOUT = Groups(NO_GROUPS)
