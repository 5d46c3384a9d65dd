"""Criteria in one compiled call for all probes of a block: probabilities of left-out rows, and one row left out.

`NaiveBayes` binds to it where ``cv="loo"`` asks for it, and so does `Linear` to what is in `linear_left_out`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import bayes_left_out
from ..probing.probes import Subsets
from .base import Floats, Folds, Target
from .columns import ColumnLines, SubsetColumns
from .scoring import GroupsOfTests, Measure, Outcomes, OutcomesByGroup
from .votes import Probes


@dataclass(frozen=True)
class BoundLeftOut(OutcomesByGroup):
    """Columns of X as lines, rows in their own order."""

    lines: ColumnLines
    target: Target
    folds: Folds
    measure: Measure

    def _scores(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        return scored_by_lines(self.lines, self._score, subsets, groups)

    @abstractmethod
    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None: ...

    @property
    def columns(self) -> SubsetColumns:
        return self.lines.columns


@dataclass(frozen=True)
class LeftOutBayes(BoundLeftOut):
    """Gaussian naive Bayes with one row left out."""

    var_smoothing: float

    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None:
        (lines, indices, offsets), target, measure = probes, self.target, self.measure
        tests = measure.tests_of(self.folds, target.values, target.n_classes)
        model = target.values, measure.weights, target.n_classes, self.var_smoothing, measure.code
        for some in tests.pieces(len(scores)):
            predicted, own = np.empty((len(scores[some]), self.folds.n_rows)), offsets[some.start : some.stop + 1]
            bayes_left_out.predict_one_out(lines, indices, own, *model, predicted)
            tests.score(predicted, by_group.of_subsets(some), scores[some])

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        from .bayes_left_out_device import DeviceLeftOutBayes

        return DeviceLeftOutBayes(self, device)


def scored_by_lines(
    lines: ColumnLines, score: Callable[[Probes, Outcomes, Floats], None], subsets: Subsets, groups: GroupsOfTests
) -> tuple[Floats, Floats]:
    """J and mean outcomes, which ``score`` fills in for the probes of a batch from their columns as lines."""
    scores, by_group = np.empty(len(subsets)), groups.outcomes(len(subsets))
    for some, held, indices, offsets in lines.batches(subsets):
        score((held, indices, offsets), by_group.of_subsets(some), scores[some])
    return scores, by_group.means
