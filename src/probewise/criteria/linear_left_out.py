"""Ridge regression scores of feature subsets from columns as lines: rows left out one by one, or few rows in folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..kernels import ridge_decisions as ways
from ..kernels import ridge_left_out as kernels
from ..kernels.ridge_decisions import Fit, Problem, decisions_exactly
from .base import Floats
from .columns import BoundLeftOut, Missing, Probes
from .scoring import NO_GROUPS, GroupsOfTests, Outcomes, ScoredTests

NO_WEIGHT = 1e-200  # stands for a weight of 0, as a share of the largest: its row is predicted, and changes nothing


@dataclass(frozen=True)
class LeftOutLinear(BoundLeftOut):
    """Rows of the lines come fold after fold if the folds are a partition, or else in their own order."""

    alpha: float
    missing: Missing

    def _scores(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        scores, means = np.empty(len(subsets)), np.zeros((len(subsets), groups.n_groups))
        incomplete = self.missing.in_each(subsets.indices, subsets.offsets)
        for some in (incomplete, ~incomplete):
            if some.any():
                scores[some], means[some] = super()._scores(subsets.only(some), groups)
        for lost in np.flatnonzero(np.isnan(scores)).tolist():
            own = Outcomes(groups.group, groups.share, means[lost])
            scores[lost] = self.score_exactly(subsets[lost], own)
        return scores, means

    def _score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None:
        lines, indices, offsets = probes
        is_incomplete = self.missing.in_each(indices, offsets).any()
        gaps = self.missing.number[indices] if is_incomplete else self.missing.columns[:0]
        problems = self._apart if is_incomplete else self._problems
        for some in self.scored.pieces(len(scores), len(self.fit.targets)):
            own, decisions = offsets[some.start : some.stop + 1], self._room(scores[some])
            are_sure = ways.decide(lines, indices, own, gaps, self.missing.fills, problems, self.fit, decisions)
            self._score_decisions(decisions, are_sure, by_group.of_subsets(some), scores[some])

    def plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """J of the subset with each candidate added; with more features than rows from the products of these."""
        together = np.concatenate([subset, candidates])
        is_whole = self.folds.is_partition and self.measure.of_predictions is None
        if len(subset) < self.folds.n_rows or not is_whole or self.missing.any_in(together):
            return super().plus_each(subset, candidates)
        scores = np.empty(len(candidates))
        for _, lines, places, _ in self.lines.batches(Subsets.of([together])):
            own, others = places[: len(subset)], places[len(subset) :]
            for some in self.scored.pieces(len(scores), len(self.fit.targets)):
                decisions, are_sure = self._room(scores[some]), np.empty(len(scores[some]), bool)
                ways.by_rows_plus_each(lines, own, others[some], self._problems[0], self.fit, decisions, are_sure)
                self._score_decisions(decisions, are_sure, NO_GROUPS.outcomes(len(are_sure)), scores[some])
        for lost in np.flatnonzero(np.isnan(scores)).tolist():
            scores[lost] = self(Subsets.of([np.append(subset, candidates[lost])]))[0]
        return scores

    def _room(self, scores: Floats) -> Floats:
        """For decisions (subsets, tests, outputs)."""
        return np.empty((len(scores), len(self.scored.truth), len(self.fit.targets)))

    def _score_decisions(
        self, decisions: Floats, are_sure: NDArray[np.bool_], by_group: Outcomes, scores: Floats
    ) -> None:
        """Fill in scores; NaN, and no outcomes, of subsets that are not sure."""
        borders, predicted = self.folds.borders, np.empty(decisions.shape[:2])
        code, truth, _, n_classes, _ = self.scored
        kernels.predict_left_out(decisions, borders, self.known, truth, code, n_classes, predicted)
        self.scored.score(predicted, by_group, scores)
        scores[~are_sure] = np.nan
        by_group.means[~are_sure] = 0.0

    def to(self, device: str) -> Any:
        """The same on a torch device: a function of (indices, offsets)."""
        from .linear_device import DeviceLeftOutLinear, DeviceLinear

        return (DeviceLeftOutLinear if self.folds.is_loo else DeviceLinear)(self, device)

    def score_exactly(self, subset: NDArray[np.int32], by_group: Outcomes) -> float:
        """From orthogonal transformations of the columns, which lose half as many digits, and take far longer."""
        values = np.empty((len(self.lines.columns.rows), len(subset)))
        self.lines.columns.take(subset, values)
        gaps = self.missing.number[subset]
        decisions = []
        for fold, (train, test) in enumerate(self._splits()):
            filled = values.copy() if (gaps >= 0).any() else values
            for column in np.flatnonzero(gaps >= 0):
                filled[np.isnan(filled[:, column]), column] = self.missing.fills[fold, gaps[column]]
            targets, roots = self.fit.targets[:, train], self.fit.roots[train]
            decisions.append(decisions_exactly(filled[train], targets, roots, self.alpha, filled[test]))
        score, sure = np.empty(1), np.ones(1, bool)
        self._score_decisions(np.concatenate(decisions)[None], sure, by_group.of_subsets(None), score)
        return float(score[0])

    @cached_property
    def fit(self) -> Fit:
        """What is fitted: 1 or -1 for each class, of two for the second; or y about its mean."""
        values, weights = self.truth[self.lines.columns.rows], self.measure.weights
        weights = weights if self.measure.is_weighted else np.ones(len(values))
        roots = np.sqrt(np.maximum(weights, NO_WEIGHT * weights.max()))
        if self.target.n_classes:
            labels = np.arange(self.target.n_classes) if self.target.n_classes > 2 else np.array([1])
            values = np.where(values == labels[:, None], 1.0, -1.0)
        return Fit(np.atleast_2d(values), roots[self.lines.columns.rows], self.alpha)

    @cached_property
    def truth(self) -> NDArray[Any]:
        values = self.target.values
        return values if self.target.n_classes else values - values.mean()

    def _decoded(self, predictions: Floats) -> Floats:
        return predictions if self.target.n_classes else predictions + self.target.values.mean()

    @cached_property
    def scored(self) -> ScoredTests:
        return self.measure.tests_of(self.folds, self.truth, self.target.n_classes)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which classes each fold trains on."""
        if not self.target.n_classes:
            return np.ones((len(self.folds.splits), 1), bool)
        own = self.target.values[:, None] == np.arange(self.target.n_classes)
        if self.measure.is_weighted:
            own &= self.measure.weights[:, None] > 0
        if self.folds.is_loo:
            return own.sum(axis=0) > own
        return np.array([own[train].any(axis=0) for train, _ in self.folds.splits])

    def _splits(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Rows to train on and to test, as places in the lines."""
        place = np.empty(self.folds.n_rows, np.int64)
        place[self.lines.columns.rows] = np.arange(self.folds.n_rows)
        for train, test in self.folds.splits:
            yield place[train], place[np.sort(test)]

    @cached_property
    def _problems(self) -> list[Problem]:
        if not self.folds.is_partition:
            return self._apart
        return [Problem(np.arange(self.folds.n_rows), self.folds.borders, 0, True)]

    @cached_property
    def _apart(self) -> list[Problem]:
        """Each split as a problem of its own."""
        return [Problem(np.concatenate(split), np.cumsum([0, *map(len, split)]), 1, False) for split in self._splits()]
