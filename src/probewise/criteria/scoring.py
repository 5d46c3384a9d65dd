"""Scores of the built-in criteria: the measure by name, weights of rows, and the outcome of each row.

Words: a "test" is a prediction for a test row of a fold. The "outcome" of a row is its contribution to a score that is
a mean over rows: 1 if its class is predicted and 0 if not, the probability of its own class, minus its squared or
absolute error, or (R^2) 1 minus its squared error divided by the mean squared deviation of the rows scored with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..kernels import scores as kernels
from ..validation.errors import ParameterError
from .base import Criterion, Floats, Folds, Target
from .predictions import PredictionScorer

FOR_CLASSES = {
    "accuracy": kernels.ACCURACY,
    "balanced_accuracy": kernels.BALANCED_ACCURACY,
    "f1_macro": kernels.F1_MACRO,
    "roc_auc": kernels.ROC_AUC,
}
FOR_NUMBERS = {
    "r2": kernels.R2,
    "neg_mean_squared_error": kernels.SQUARED_ERROR,
    "neg_mean_absolute_error": kernels.ABSOLUTE_ERROR,
}
OF_SINGLE_ROWS = ("accuracy", "neg_mean_squared_error", "neg_mean_absolute_error")
MOST_PREDICTIONS = 2**22  # kept at a time: 32 MiB


@dataclass(frozen=True)
class Measure:
    """A score: its name, its code in the kernels, and a weight for each row of X (empty: all rows count the same).

    Where ``of_predictions`` computes the score, the code says what kernels predict: labels, numbers or decisions.
    """

    name: str
    code: int
    weights: Floats
    of_predictions: PredictionScorer | None = None

    @classmethod
    def of(
        cls,
        scoring: Any,
        target: Target,
        folds: Folds,
        weights: Any = None,
        *,
        criterion: str,
        estimator: str,
        soft: bool = False,
    ) -> Measure:
        """Measure for ``scoring``; ``soft``: the criterion has probabilities. The names go into error messages."""
        codes = FOR_CLASSES if target.is_classification else FOR_NUMBERS
        if soft and target.is_classification:
            codes = codes | {"probability": kernels.PROBABILITY}
        name = next(iter(codes)) if scoring is None else str(scoring)
        if soft and name == "probability" and not target.is_classification:
            raise ParameterError(
                "scoring='probability' is the probability of a row's own class, and y is a quantity here: use "
                "scoring='r2', or task='classification'"
            )
        if name == "roc_auc" and target.n_classes > 2:
            raise ParameterError(
                f"scoring='roc_auc' is for two classes and y has {target.n_classes}: use scoring='balanced_accuracy' "
                "or scoring='f1_macro'"
            )
        if folds.is_loo and not soft and name not in OF_SINGLE_ROWS:
            refuse_one_row(name, criterion)
        weights = np.empty(0) if weights is None else np.asarray(weights, dtype=np.float64)
        if len(weights):
            _require_weight(weights, folds)
        code, of_predictions = codes.get(name), None
        if code is None:
            rows = folds.order if folds.is_loo else np.sort(folds.splits[0][1])
            advice = (
                f": {criterion} measures {', '.join(map(repr, codes))} and scikit-learn's other scores of predictions; "
                f"for one that needs probabilities give the estimator, for example criterion={estimator}"
            )
            fold = target.values[rows], weights[rows] if len(weights) else weights
            of_predictions = PredictionScorer.of(scoring, target, *fold, advice)
            code = kernels.ROC_AUC if of_predictions.of_decisions else kernels.PREDICTION
        if code == kernels.ROC_AUC:
            _require_both_classes(name, target, folds, weights)
        return cls(name, code, weights, of_predictions)

    @property
    def is_weighted(self) -> bool:
        return len(self.weights) > 0

    @property
    def is_probability(self) -> bool:
        return self.code == kernels.PROBABILITY

    @property
    def is_of_labels(self) -> bool:
        """Whether the score needs predicted classes, not decisions or numbers."""
        if self.of_predictions is not None:
            return self.code == kernels.PREDICTION and self.of_predictions.target.is_classification
        return self.code in (kernels.ACCURACY, kernels.BALANCED_ACCURACY, kernels.F1_MACRO)

    def of_rows(self, rows: Any) -> Floats:
        """Weights of some rows."""
        return self.weights[rows] if self.is_weighted else self.weights

    @property
    def is_mean_over_rows(self) -> bool:
        return self.code not in (kernels.F1_MACRO, kernels.ROC_AUC, kernels.PREDICTION)

    def shares(self, rows: NDArray[np.int64], target: Target) -> Floats:
        """Share of each of these rows in their common score, for a score that is a mean over rows."""
        weights = self.weights[rows] if self.is_weighted else np.ones(len(rows))
        if self.code != kernels.BALANCED_ACCURACY:
            return weights / weights.sum()
        codes = target.values[rows]
        by_class = np.bincount(codes, weights, minlength=target.n_classes)
        return weights / np.where(by_class > 0, by_class, 1.0)[codes] / np.count_nonzero(by_class)

    def tests(self, truth: Any, weights: Floats, n_classes: int, borders: Any = None) -> ScoredTests:
        """Tests; those from one border to the next, or all of them, have a score together."""
        borders = np.array([0, len(truth)] if borders is None else borders, np.int64)
        return ScoredTests(self.code, np.asarray(truth, np.float64), weights, n_classes, borders)

    def tests_of(self, folds: Folds, truth: NDArray[Any], n_classes: int) -> ScoredTests:
        """All tests, scored fold by fold; together for leave-one-out, or if J is a mean over all tests."""
        borders = None if folds.is_loo or self.is_probability else folds.borders
        return self.tests(truth[folds.order], self.of_rows(folds.order), n_classes, borders)


class GroupsOfTests(NamedTuple):
    """Group of each test's row, and the test's share in the mean of its group; empty if no groups are requested."""

    group: NDArray[np.int64]
    share: Floats
    n_groups: int

    def outcomes(self, n_subsets: int) -> Outcomes:
        return Outcomes(self.group, self.share, np.zeros((n_subsets, self.n_groups)))


class Outcomes(NamedTuple):
    """Arguments of kernels: groups and shares of tests, and the mean outcomes (subsets, groups) to add to."""

    groups: NDArray[np.int64]
    shares: Floats
    means: Floats

    def of_subsets(self, subsets: Any) -> Outcomes:
        return self._replace(means=self.means[subsets])

    def of_tests(self, tests: slice) -> Outcomes:
        return Outcomes(self.groups[tests], self.shares[tests], self.means)


class ScoredTests(NamedTuple):
    """Tests in the order of their predictions: code of the score, truth, weights, and borders of the folds."""

    code: int
    truth: Floats
    weights: Floats
    n_classes: int
    borders: NDArray[np.int64]

    def score(self, predicted: Floats, by_group: Outcomes, scores: Floats) -> None:
        """Write scores, and add to outcomes of groups, from predictions (subsets, tests)."""
        kernels.score_probes(
            self.code, self.truth, predicted, self.weights, self.n_classes, self.borders, *by_group, scores
        )

    def score_one(self, predicted: Floats, by_group: Outcomes) -> float:
        """Score of one subset, whose mean outcomes are a vector."""
        score = np.empty(1)
        self.score(predicted[None], by_group.of_subsets(None), score)
        return float(score[0])

    def pieces(self, n_subsets: int, n_outputs: int = 1) -> Iterator[slice]:
        """Slices of subsets whose predictions are kept at a time."""
        step = max(1, MOST_PREDICTIONS // max(1, len(self.truth) * n_outputs))
        return (slice(start, min(start + step, n_subsets)) for start in range(0, n_subsets, step))


NO_GROUPS = GroupsOfTests(np.empty(0, np.int64), np.empty(0), 0)


class OutcomesByGroup(ABC):
    """Base of bound criteria: J, and mean outcomes of groups of rows if J is a mean over rows.

    A criterion defines `_scores`. A row that is tested several times has the mean of its outcomes.
    """

    target: Target
    folds: Folds
    measure: Measure

    @abstractmethod
    def _scores(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        """J, and the mean outcomes (subsets, groups)."""

    def __call__(self, subsets: Subsets) -> Floats:
        if self.measure.of_predictions is None:
            return self._scores(subsets, NO_GROUPS)[0]
        # With one group per test and scores that are no mean over rows, "outcomes" are the predictions.
        n_tests = sum(map(len, self.tests))
        each_test = GroupsOfTests(np.arange(n_tests), np.ones(n_tests), n_tests)
        piece = np.arange(len(subsets)) // max(1, MOST_PREDICTIONS // n_tests)
        scores = [np.empty(0)]
        for number in range(piece.max(initial=-1) + 1):
            predictions = self._scores(subsets.only(piece == number), each_test)[1]
            scores.append(self.scores_of(self._decoded(predictions)))
        return np.concatenate(scores)

    def plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """J of the subset with each candidate added."""
        return self(Subsets.of([np.append(subset, candidate) for candidate in candidates]))

    def scores_of(self, predictions: Floats) -> Floats:
        """Scores of predictions (subsets, tests): means over the folds."""
        assert self.measure.of_predictions is not None
        scores, start = [], 0
        for rows in self.tests:
            predicted = predictions[:, start : start + len(rows)]
            fold = self.target.values[rows], predicted, self.measure.of_rows(rows)
            scores.append(self.measure.of_predictions.scores(*fold))
            start += len(rows)
        return np.asarray(np.mean(scores, axis=0))

    def _decoded(self, predictions: Floats) -> Floats:
        """Predictions of kernels as class codes of the target, decisions or numbers."""
        return predictions

    def outcomes(self, subsets: Subsets, group_of: NDArray[Any]) -> tuple[Floats, NDArray[np.float32]]:
        """J, with the same bits as from a plain call, and the mean outcome (subsets, groups) of each group of rows.

        ``group_of`` is the group of each row, from 0, or -1 for none; each group needs a row with a share. Means are
        weighted by shares: if every row has a group, J is the sum over groups of (share of the group) x (mean outcome).
        """
        scores, means = self._scores(subsets, self.groups_of_tests(group_of))
        return scores, means.astype(np.float32)

    @cached_property
    def row_shares(self) -> Floats | None:
        """Weights of the rows of X, with sum 1, by which J is a mean over rows; None if it is not such a mean.

        A row that is never tested has weight 0.
        """
        rows, shares = np.concatenate(self.tests), self._test_shares
        return None if shares is None else np.bincount(rows, shares, self.folds.n_rows).astype(np.float64)

    @cached_property
    def tests(self) -> Sequence[NDArray[np.int64]]:
        """Rows that are scored together: folds, or all for leave-one-out or if J is a mean over all tests."""
        if self.folds.is_loo or self.measure.is_probability:
            return (self.folds.order,)
        return tuple(np.sort(test) for _, test in self.folds.splits)

    @cached_property
    def _test_shares(self) -> Floats | None:
        """Share of each test in J."""
        if not self.measure.is_mean_over_rows:
            return None
        return np.concatenate([self.measure.shares(rows, self.target) for rows in self.tests]) / len(self.tests)

    def groups_of_tests(self, group_of: NDArray[Any]) -> GroupsOfTests:
        """Groups of tests from the groups of rows."""
        shares = self._test_shares
        if shares is None:
            raise ParameterError(f"scoring={self.measure.name!r} is not a mean over rows")
        group = np.asarray(group_of, np.int64)[np.concatenate(self.tests)]
        totals = np.bincount(group + 1, shares)
        return GroupsOfTests(group, shares / np.where(totals > 0, totals, 1.0)[group + 1], len(totals) - 1)


def bind_target(
    criterion: Criterion, y: Any, cv: Any, groups: Any, scoring: Any, weights: Any, *, estimators: tuple[str, str]
) -> tuple[Target, Folds, Measure]:
    """Target, folds and measure of a criterion that has probabilities.

    ``estimators``: scikit-learn's classifier and regressor that an error message recommends for other scores.
    """
    target = Target.of(y, getattr(criterion, "task", "auto"))
    folds = Folds.of(cv, np.asarray(y), is_classification=target.is_classification, groups=groups)
    name, estimator = type(criterion).__name__, estimators[0 if target.is_classification else 1]
    return target, folds, Measure.of(scoring, target, folds, weights, criterion=name, estimator=estimator, soft=True)


def refuse_one_row(scoring: Any, criterion: str) -> None:
    raise ParameterError(
        f"cv='loo': a single row has no {scoring}, which {criterion} computes fold by fold: use a number of folds, or "
        "criterion='knn' or 'linear'"
    )


def _require_weight(weights: Floats, folds: Folds) -> None:
    if weights.shape != (folds.n_rows,):
        raise ParameterError(
            f"sample_weight is of shape {weights.shape}: give one number for each of {folds.n_rows} rows"
        )
    if folds.is_loo and np.count_nonzero(weights > 0) < 2:
        raise ParameterError("sample_weight is above 0 for fewer than two rows, and cv='loo' needs two")
    for rows, name in _sides(folds):
        if not weights[rows].sum() > 0:
            raise ParameterError(
                f"sample_weight is 0 for all {name}: leave those rows out, or use fewer or stratified folds"
            )


def _require_both_classes(name: str, target: Target, folds: Folds, weights: Floats) -> None:
    weights = weights if len(weights) else np.ones(folds.n_rows)
    if folds.is_loo and np.bincount(target.values, weights > 0, minlength=2).min() < 2:
        raise ParameterError(
            f"scoring={name!r} needs two rows of each class with cv='loo': use scoring='balanced_accuracy'"
        )
    for rows, side in _sides(folds):
        if not np.bincount(target.values[rows], weights[rows], minlength=2).all():
            raise ParameterError(
                f"scoring={name!r} needs rows of both classes, but {side} have one class: use a cv that keeps two "
                "classes in every fold, for example StratifiedKFold, or scoring='balanced_accuracy'"
            )


def _sides(folds: Folds) -> Iterator[tuple[NDArray[np.int64], str]]:
    """Rows on each side of each split, with a name for error messages; nothing for leave-one-out."""
    for number, (train, test) in enumerate(() if folds.is_loo else folds.splits):
        yield train, f"training rows of fold {number}"
        yield test, f"test rows of fold {number}"
