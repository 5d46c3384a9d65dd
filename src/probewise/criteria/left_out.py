"""Criteria in one compiled call for all probes of a block: probabilities of left-out rows, and one row left out.

`KNN` and `NaiveBayes` bind to these where ``scoring="probability"`` or ``cv="loo"`` asks for it, and so does `Linear`
to what is in `linear_left_out`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import bayes_left_out
from ..probing.probes import Subsets
from .base import Floats, Folds, Target
from .columns import ColumnLines, SubsetColumns
from .missing import refuse_filling
from .scoring import GroupsOfTests, Measure, Outcomes, OutcomesByGroup
from .votes import Probes, Votes, raw_lines, row_order


@dataclass(frozen=True)
class BoundLeftOut(OutcomesByGroup):
    """Columns of X as lines, rows in their own order."""

    lines: ColumnLines
    target: Target
    folds: Folds
    measure: Measure

    def _scores(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        scores, means = np.empty(len(subsets)), np.zeros((len(subsets), groups.n_groups))
        for some, lines, indices, offsets in self.lines.batches(subsets):
            self._score((lines, indices, offsets), (groups.group, groups.share, means[some]), scores[some])
        return scores, means

    @abstractmethod
    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None: ...

    def plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """J of the subset with each candidate added."""
        return self(Subsets.of([np.append(subset, candidate) for candidate in candidates]))

    @property
    def columns(self) -> SubsetColumns:
        return self.lines.columns

    @cached_property
    def tested(self) -> NDArray[np.int64]:
        """The tested rows, fold after fold."""
        return self.folds.order


@dataclass(frozen=True)
class SoftKNN(BoundLeftOut):
    """Mean vote of the nearest rows outside the fold, weighted by distance, for the row's own class."""

    n_neighbors: int

    @cached_property
    def votes(self) -> Votes:
        return Votes(self.target, self.folds, self.measure, self.n_neighbors, self.lines.dtype)

    @property
    def exact_share(self) -> float:
        return self.votes.exact_share

    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None:
        self.votes.score(probes, by_group, scores)

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        from .knn_device import DeviceKNN

        return DeviceKNN(self, device)


@dataclass(frozen=True)
class LeftOutBayes(BoundLeftOut):
    """Gaussian naive Bayes with one row left out."""

    var_smoothing: float

    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None:
        (lines, indices, offsets), (groups, shares, means) = probes, by_group
        known = self.target.values, self.measure.weights, self.target.n_classes
        tests = self.measure.tests(*known)
        for some in tests.pieces(len(scores)):
            predicted, own = np.empty((len(scores[some]), self.folds.n_rows)), offsets[some.start : some.stop + 1]
            model = *known, self.var_smoothing, self.measure.code
            bayes_left_out.predict_one_out(lines, indices, own, *model, predicted)
            tests.score(predicted, (groups, shares, means[some]), scores[some])

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        from .bayes_left_out_device import DeviceLeftOutBayes

        return DeviceLeftOutBayes(self, device)


def column_lines(X: Any, missing: str | None, measure: Measure, *, folds: Folds | None = None) -> ColumnLines:
    """X by columns, which must be complete: centred and in float64, or as they are, in the order of ``folds``."""
    rows = np.arange(X.shape[0]) if folds is None else row_order(folds)
    columns = SubsetColumns(X, rows, missing=missing is not None)
    if not columns.is_sparse and columns.extent.is_incomplete.any():
        refuse_filling(missing, f"scoring={measure.name!r}" if measure.is_probability else "cv='loo'")
    return ColumnLines(columns) if folds is None else raw_lines(columns, folds)
