"""The scores that built-in criteria give to predictions for a fold, by name, with the weights of the rows.

And what each row gives to them, where they are means over rows.
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
from ..validation.errors import ForPython, Message, Parameter, ParameterError, Setting
from .base import Criterion, Floats, Folds, Target
from .predictions import FROM_COUNTS, FROM_ERRORS, OfPredictions, of_predictions, require_score_of

FOR_CLASSES = {
    "accuracy": kernels.ACCURACY,
    "balanced_accuracy": kernels.BALANCED_ACCURACY,
    "f1_macro": kernels.F1_MACRO,
    "roc_auc": kernels.ROC_AUC,
}
SAME_AS_ACCURACY = dict.fromkeys(("f1_micro", "precision_micro", "recall_micro", "recall_weighted"), kernels.ACCURACY)
SOFT = {"probability": kernels.PROBABILITY}
FOR_NUMBERS = {
    "r2": kernels.R2,
    "neg_mean_squared_error": kernels.SQUARED_ERROR,
    "neg_mean_absolute_error": kernels.ABSOLUTE_ERROR,
}
BY_ROW = ("accuracy", *SAME_AS_ACCURACY, "neg_mean_squared_error", "neg_mean_absolute_error")  # a single row has one
MOST_PREDICTIONS = 2**22  # held at a time: 32 MiB


def scoring_code(scoring: Any, target: Target, *, soft: bool = False) -> int | None:
    """The number in the kernels of the score asked for, or of the usual one; None where kernels only predict.

    ``soft``: whether the criterion has probabilities.
    """
    known = FOR_CLASSES | (SOFT if soft else {}) | SAME_AS_ACCURACY if target.is_classification else FOR_NUMBERS
    if scoring is None:
        return next(iter(known.values()))
    if soft and isinstance(scoring, str) and scoring in SOFT and not target.is_classification:
        raise ParameterError(
            Parameter("scoring", scoring),
            " is that of a row's own class, and y is a quantity here: use ",
            Setting("scoring", "r2"),
            ", or ",
            Setting("task", "classification"),
        )
    if isinstance(scoring, str) and scoring == "roc_auc" and target.n_classes > 2:
        raise ParameterError(
            Parameter("scoring", scoring),
            f" is of two classes and y has {target.n_classes}: use ",
            Setting("scoring", "balanced_accuracy"),
            " or ",
            Setting("scoring", "f1_macro"),
        )
    return known.get(scoring) if isinstance(scoring, str) else None


@dataclass(frozen=True)
class Measure:
    """The score by name, its number in the kernels, and a weight for each row of X (none: all count alike).

    Where ``of_predictions`` makes the score, the number says what kernels predict: labels, numbers or decisions.
    """

    name: str
    code: int
    weights: Floats
    of_predictions: OfPredictions | None = None

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
        code, score = scoring_code(scoring, target, soft=soft), None
        usual = next(iter(FOR_CLASSES if target.is_classification else FOR_NUMBERS))
        name = usual if scoring is None else scoring if isinstance(scoring, str) else str(scoring)
        if folds.is_loo and not soft and name not in BY_ROW:
            refuse_one_row(name, criterion)
        own = np.empty(0) if weights is None else np.asarray(weights, dtype=np.float64)
        if len(own):
            _require_weight(own, folds)
        if code is None:
            rows = folds.order if folds.is_loo else np.sort(folds.splits[0][1])
            words = _measured_here(target, criterion, estimator, soft=soft)
            score = of_predictions(scoring, target, target.values[rows], own[rows] if len(own) else own, words)
            code = kernels.ROC_AUC if score.of_decisions else kernels.PREDICTION
        if code == kernels.ROC_AUC:
            _require_both_classes(name, target, folds, own)
        return cls(name, code, own, score)

    @property
    def is_weighted(self) -> bool:
        return len(self.weights) > 0

    @property
    def is_probability(self) -> bool:
        return self.code == kernels.PROBABILITY

    @property
    def is_of_labels(self) -> bool:
        """Whether it is made of predicted classes, and not of decisions or numbers."""
        if self.of_predictions is not None:
            return self.code == kernels.PREDICTION and self.of_predictions.target.is_classification
        return self.code in (kernels.ACCURACY, kernels.BALANCED_ACCURACY, kernels.F1_MACRO)

    def of_rows(self, rows: Any) -> Floats:
        """The weights of some rows."""
        return self.weights[rows] if self.is_weighted else self.weights

    @property
    def is_mean_over_rows(self) -> bool:
        return self.code not in (kernels.F1_MACRO, kernels.ROC_AUC, kernels.PREDICTION)

    def shares(self, rows: NDArray[np.int64], target: Target) -> Floats:
        """How much each of some rows counts in the score of them together, where that is a mean over rows."""
        weights = self.weights[rows] if self.is_weighted else np.ones(len(rows))
        if self.code != kernels.BALANCED_ACCURACY:
            return weights / weights.sum()
        own = target.values[rows]
        by_class = np.bincount(own, weights, minlength=target.n_classes)
        return weights / np.where(by_class > 0, by_class, 1.0)[own] / np.count_nonzero(by_class)

    def tests(self, truth: Any, weights: Floats, n_classes: int, borders: Any = None) -> ScoredTests:
        """Tests that are scored together from border to border, or all."""
        borders = np.array([0, len(truth)] if borders is None else borders, np.int64)
        return ScoredTests(self.code, np.asarray(truth, np.float64), weights, n_classes, borders)

    def tests_of(self, folds: Folds, truth: NDArray[Any], n_classes: int) -> ScoredTests:
        """All tests, fold after fold, scored together where one row is left out or J is a mean over all tests."""
        borders = None if folds.is_loo or self.is_probability else folds.borders
        return self.tests(truth[folds.order], self.of_rows(folds.order), n_classes, borders)


class GroupsOfTests(NamedTuple):
    """Of each test, in the order of `OutcomesByGroup.tests`: the group of its row, and its share in that group's mean.

    Without entries, and with 0 groups, where outcomes of groups are not asked for.
    """

    group: NDArray[np.int64]
    share: Floats
    n_groups: int

    def outcomes(self, n_subsets: int) -> Outcomes:
        return Outcomes(self.group, self.share, np.zeros((n_subsets, self.n_groups)))


class Outcomes(NamedTuple):
    """For kernels: groups and shares of tests, and the means (subsets, groups) to add to."""

    groups: NDArray[np.int64]
    shares: Floats
    means: Floats

    def of_subsets(self, some: Any) -> Outcomes:
        return self._replace(means=self.means[some])

    def of_tests(self, some: slice) -> Outcomes:
        return Outcomes(self.groups[some], self.shares[some], self.means)


class ScoredTests(NamedTuple):
    """Tests in the order in which they are predicted: the score, what is true, their weights, and where folds end."""

    code: int
    truth: Floats
    weights: Floats
    n_classes: int
    borders: NDArray[np.int64]

    def score(self, predicted: Floats, by_group: Outcomes, scores: Floats) -> None:
        """Fill in scores, and add to outcomes of groups, from predictions (subsets, tests)."""
        kernels.score_probes(
            self.code, self.truth, predicted, self.weights, self.n_classes, self.borders, *by_group, scores
        )

    def score_one(self, predicted: Floats, by_group: Outcomes) -> float:
        """The score of one subset; its outcomes of groups are a line."""
        score = np.empty(1)
        self.score(predicted[None], by_group.of_subsets(None), score)
        return float(score[0])

    def pieces(self, n_subsets: int, n_outputs: int = 1) -> Iterator[slice]:
        """Subsets whose predictions are held at a time."""
        step = max(1, MOST_PREDICTIONS // max(1, len(self.truth) * n_outputs))
        return (slice(start, min(start + step, n_subsets)) for start in range(0, n_subsets, step))


NO_GROUPS = GroupsOfTests(np.empty(0, np.int64), np.empty(0), 0)


class OutcomesByGroup(ABC):
    """J, and what each row gave to it where J is a mean of outcomes of rows, from one method that a criterion owes.

    The outcome of a row is 1 if its class is predicted and 0 if not, or the probability of its own class; of a number
    minus its squared error, or (R^2) 1 less its squared error as a multiple of the mean squared distance from the mean
    of the rows scored with it. A row that is tested several times has the mean of its outcomes.
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
        at_once = max(1, MOST_PREDICTIONS // sum(map(len, self.tests)))
        number = np.arange(len(subsets)) // at_once
        pieces = [subsets.only(number == piece) for piece in range(number.max(initial=-1) + 1)]
        return np.concatenate([np.empty(0), *map(self._from_predictions, pieces)])

    def plus_each(self, subset: NDArray[np.int32], candidates: NDArray[np.int32]) -> Floats:
        """J of the subset with each candidate added."""
        return self(Subsets.of([np.append(subset, candidate) for candidate in candidates]))

    def _from_predictions(self, subsets: Subsets) -> Floats:
        n_tests = sum(map(len, self.tests))
        each = GroupsOfTests(np.arange(n_tests), np.ones(n_tests), n_tests)
        return self.scores_of(self._decoded(self._scores(subsets, each)[1]))

    def scores_of(self, predictions: Floats) -> Floats:
        """Mean of the scores of rows that are scored together, from predictions (subsets, tests) for all."""
        assert self.measure.of_predictions is not None
        scores, start = [], 0
        for rows in self.tests:
            own = predictions[:, start : start + len(rows)]
            known = self.target.values[rows], own, self.measure.of_rows(rows)
            scores.append(self.measure.of_predictions.scores(*known))
            start += len(rows)
        return np.asarray(np.mean(scores, axis=0))

    def _decoded(self, predictions: Floats) -> Floats:
        """Predictions (subsets, tests) of kernels as class numbers of the target, decisions or numbers."""
        return predictions

    def outcomes(self, subsets: Subsets, group_of: NDArray[Any]) -> tuple[Floats, NDArray[np.float32]]:
        """J, the same bits as by a plain call, and the mean outcome (subsets, groups) of each group of rows.

        ``group_of`` has the group of each row, from 0 on, -1 for none; each group needs a row with a share. A mean is
        by shares, so that J is the sum over groups of (share of the group) x (mean outcome), where all rows are in one.
        """
        scores, table = self._scores(subsets, self.groups_of_tests(group_of))
        return scores, table.astype(np.float32)

    @cached_property
    def row_shares(self) -> Floats | None:
        """The weights (n_rows,), summing to 1, with which J is a mean over rows; None where it is not such a mean.

        Rows are in the order of X; those never tested have 0.
        """
        rows, shares = np.concatenate(self.tests), self._test_shares
        return None if shares is None else np.bincount(rows, shares, self.folds.n_rows).astype(np.float64)

    @cached_property
    def tests(self) -> Sequence[NDArray[np.int64]]:
        """The rows that are scored together: folds, or all where a row is left out or J is a mean over all tests."""
        if self.folds.is_loo or self.measure.is_probability:
            return (self.folds.order,)
        return tuple(np.sort(test) for _, test in self.folds.splits)

    @cached_property
    def _test_shares(self) -> Floats | None:
        """Of each test in J."""
        if not self.measure.is_mean_over_rows:
            return None
        return np.concatenate([self.measure.shares(rows, self.target) for rows in self.tests]) / len(self.tests)

    def groups_of_tests(self, group_of: NDArray[Any]) -> GroupsOfTests:
        """The tests of rows in groups, which are numbered from 0 on, -1 for none."""
        shares = self._test_shares
        if shares is None:
            raise ParameterError(Parameter("scoring", self.measure.name), " is not a mean over rows")
        group = np.asarray(group_of, np.int64)[np.concatenate(self.tests)]
        totals = np.bincount(group + 1, shares)
        return GroupsOfTests(group, shares / np.where(totals > 0, totals, 1.0)[group + 1], len(totals) - 1)


def _measured_here(target: Target, criterion: str, estimator: str, *, soft: bool) -> Message:
    own = (*FOR_CLASSES, *(SOFT if soft else ())) if target.is_classification else FOR_NUMBERS
    names = ", ".join(map(repr, (*own, *(FROM_COUNTS if target.is_classification else FROM_ERRORS))))
    remedy = f"; for one that needs probabilities give the estimator, for example criterion={estimator}"
    return f": {criterion} measures {names} here, and other scores of predictions that scikit-learn knows", ForPython(
        remedy
    )


def require_scoring(scoring: Any, target: Target, *, criterion: str, estimator: str) -> None:
    """Of a criterion that leaves the score to scikit-learn."""
    if scoring_code(scoring, target) is None:
        require_score_of(scoring, target, _measured_here(target, criterion, estimator, soft=False))


def bind_target(
    criterion: Criterion, y: Any, cv: Any, groups: Any, scoring: Any, weights: Any, *, estimators: tuple[str, str]
) -> tuple[Target, Folds, Measure]:
    """Target, folds and measure of a criterion that has probabilities too.

    ``estimators`` are its remedies for other scores, for either task.
    """
    target = Target.of(y, getattr(criterion, "task", "auto"))
    folds = Folds.of(cv, np.asarray(y), is_classification=target.is_classification, groups=groups)
    name, estimator = type(criterion).__name__, estimators[0 if target.is_classification else 1]
    return target, folds, Measure.of(scoring, target, folds, weights, criterion=name, estimator=estimator, soft=True)


def refuse_one_row(scoring: Any, criterion: str) -> None:
    """Where scores are made fold by fold, and a fold of one row has none."""
    raise ParameterError(
        Parameter("cv", "loo"),
        f": a single row has no {scoring}, which {criterion} finds fold by fold: use a number of folds, or ",
        Setting("criterion", "knn"),
        " or 'linear'",
    )


def _require_weight(weights: Floats, folds: Folds) -> None:
    if weights.shape != (folds.n_rows,):
        raise ParameterError(
            Parameter("sample_weight"),
            f" is of shape {weights.shape}: give one number for each of {folds.n_rows} rows",
        )
    if folds.is_loo:
        if np.count_nonzero(weights > 0) < 2:
            raise ParameterError(
                Parameter("sample_weight"),
                " is above 0 for fewer than two rows: one is left out, and none to train on remains",
            )
        return
    for number, split in enumerate(folds.splits):
        for rows, what in zip(split, ("train on", "test"), strict=True):
            if not weights[rows].sum() > 0:
                raise ParameterError(
                    Parameter("sample_weight"),
                    f" is 0 for all rows to {what} of fold {number}: leave those rows out, or use fewer or stratified "
                    "folds",
                )


def _require_both_classes(name: str, target: Target, folds: Folds, weights: Floats) -> None:
    share = weights if len(weights) else np.ones(folds.n_rows)
    if folds.is_loo:
        if np.bincount(target.values, share > 0, minlength=2).min() < 2:
            raise ParameterError(
                Parameter("scoring", name),
                " needs two rows of each class where one is left out: use ",
                Setting("scoring", "balanced_accuracy"),
            )
        return
    for number, split in enumerate(folds.splits):
        for rows, what in zip(split, ("train on", "test"), strict=True):
            if not np.bincount(target.values[rows], share[rows], minlength=2).all():
                raise ParameterError(
                    Parameter("scoring", name),
                    f" needs rows of both classes, and those to {what} of fold {number} are of one only: use a cv that "
                    "keeps two classes in every fold, for example StratifiedKFold, or ",
                    Setting("scoring", "balanced_accuracy"),
                )
