"""Criteria in one compiled call for all probes of a block: probabilities of left-out rows, and one row left out.

`KNN`, `Linear` and `NaiveBayes` bind to these where ``scoring="probability"`` or ``cv="loo"`` asks for it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import bayes_left_out, ridge_left_out
from ..probing.probes import Subsets
from .base import Floats, Folds, Target
from .columns import ColumnLines, SubsetColumns
from .missing import refuse_filling
from .scoring import Measure, Outcomes, OutcomesByGroup, RowGroups
from .votes import Probes, Votes, raw_lines, row_order

NO_WEIGHT = 1e-200  # stands for a weight of 0, as a share of the largest: its row is predicted, and changes nothing


@dataclass(frozen=True)
class BoundLeftOut(OutcomesByGroup):
    """Columns of X as lines, rows in their own order."""

    lines: ColumnLines
    target: Target
    folds: Folds
    measure: Measure

    def _scores(self, subsets: Subsets, groups: RowGroups) -> tuple[Floats, Floats]:
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
    def only_on_cpu(self) -> str:
        """What of it no device knows, in words."""
        return self.measure.only_on_cpu or "cv='loo'"

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

    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None:
        self.votes.score(probes, by_group, scores)


@dataclass(frozen=True)
class LeftOutLinear(BoundLeftOut):
    """Ridge regression: one row left out in closed form, or the probabilities of any folds."""

    alpha: float

    @cached_property
    def targets(self) -> Floats:
        """What is fitted: 1 or -1 for each class, of two for the second; or y."""
        values, n_classes = self.target.values, self.target.n_classes
        if not n_classes:
            return values[:, None].astype(np.float64)
        labels = np.arange(n_classes) if n_classes > 2 else np.array([1])
        return np.where(values[:, None] == labels, 1.0, -1.0)

    @cached_property
    def roots(self) -> Floats:
        """Square roots of the weights."""
        weights = self.measure.weights if self.measure.is_weighted else np.ones(self.folds.n_rows)
        return np.sqrt(np.maximum(weights, NO_WEIGHT * weights.max()) if self.folds.is_loo else weights)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        return self.measure.weights > 0 if self.measure.is_weighted else np.ones(self.folds.n_rows, bool)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which classes each fold trains on."""
        trained = (train[self.counted[train]] for train, _ in self.folds.splits)
        return np.array(
            [np.bincount(self.target.values[rows], minlength=self.target.n_classes) > 0 for rows in trained]
        )

    @cached_property
    def training(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Training rows, fold after fold, and where each fold starts."""
        trains = [np.asarray(train, np.int64) for train, _ in self.folds.splits]
        return np.concatenate(trains), np.cumsum([0, *map(len, trains)])

    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None:
        fit = (*probes, self.targets, self.roots, self.alpha, self.target.values)
        if self.folds.is_loo:
            codes, n_classes = self.target.values, self.target.n_classes
            counts = np.bincount(codes[self.counted], minlength=n_classes) if n_classes else np.empty(0, np.int64)
            ridge_left_out.one_out_scores(*fit, counts, self.measure.code, self.measure.weights, *by_group, scores)
        else:
            tests = np.cumsum([0, *self.folds.test_sizes])
            weights = self.measure.of_rows(self.tested)
            ridge_left_out.fold_probabilities(
                *fit, self.known, *self.training, self.tested, tests, weights, *by_group, scores
            )


@dataclass(frozen=True)
class LeftOutBayes(BoundLeftOut):
    """Gaussian naive Bayes with one row left out."""

    var_smoothing: float

    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None:
        bayes_left_out.one_out_scores(
            *probes, self.target.values, self.measure.weights, self.target.n_classes, self.var_smoothing,
            self.measure.code, *by_group, scores,
        )  # fmt: skip


def column_lines(X: Any, missing: str | None, measure: Measure, *, folds: Folds | None = None) -> ColumnLines:
    """X by columns, which must be complete: centred and in float64, or as they are, in the order of ``folds``."""
    rows = np.arange(X.shape[0]) if folds is None else row_order(folds)
    columns = SubsetColumns(X, rows, missing=missing is not None)
    if not columns.is_sparse and columns.extent.is_incomplete.any():
        refuse_filling(missing, f"scoring={measure.name!r}" if measure.is_probability else "cv='loo'")
    return ColumnLines(columns) if folds is None else raw_lines(columns, folds)
