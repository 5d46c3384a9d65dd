"""Scores of the built-in criteria: the measure by name, weights of rows, and scores of predictions.

A "test" is a prediction for a test row of a fold.
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
        if code is None and target.n_targets > 1:
            raise ParameterError(f"scoring={name!r}: for several targets use one of {', '.join(FOR_NUMBERS)}")
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
    def is_mean_over_rows(self) -> bool:
        return self.code not in (kernels.F1_MACRO, kernels.ROC_AUC, kernels.PREDICTION)


class ScoredTests(NamedTuple):
    """Tests in the order of their predictions: code of the score, truth, weights, and borders of the folds."""

    code: int
    truth: Floats
    weights: Floats
    n_classes: int
    borders: NDArray[np.int64]

    def score(self, predicted: Floats) -> Floats:
        """Scores of predictions (subsets, tests)."""
        scores = np.empty(len(predicted))
        tests = self.truth, predicted, self.weights, self.n_classes, self.borders
        kernels.score_probes(self.code, *tests, scores)
        return scores

    def pieces(self, n_subsets: int, n_outputs: int = 1) -> Iterator[slice]:
        """Slices of subsets whose predictions are kept at a time."""
        step = max(1, MOST_PREDICTIONS // max(1, len(self.truth) * n_outputs))
        for start in range(0, n_subsets, step):
            yield slice(start, min(start + step, n_subsets))


class ScoresPredictions(ABC):
    """Base of bound criteria that make predictions for tests and score them."""

    target: Target
    folds: Folds
    measure: Measure

    @abstractmethod
    def __call__(self, subsets: Subsets) -> Floats: ...

    def score(self, predicted: Floats) -> Floats:
        """Scores of predictions (subsets, tests) as kernels make them."""
        if self.measure.of_predictions is None:
            return self.scored_tests.score(predicted)
        return self.scores_of(self._decoded(predicted))

    def scores_of(self, predictions: Floats) -> Floats:
        """Scores of predictions (subsets, tests) by a score that is not built in: means over the folds."""
        assert self.measure.of_predictions is not None
        scores, start, weights = [], 0, self.measure.weights
        for rows in self.tests:
            predicted = predictions[:, start : start + len(rows)]
            fold_weights = weights[rows] if self.measure.is_weighted else weights
            scores.append(self.measure.of_predictions.scores(self.target.values[rows], predicted, fold_weights))
            start += len(rows)
        return np.asarray(np.mean(scores, axis=0))

    def _decoded(self, predictions: Floats) -> Floats:
        """Predictions of kernels as class codes of the target, decisions or numbers."""
        return predictions

    @property
    def truth(self) -> NDArray[Any]:
        """Class codes or numbers of all rows, on the scale of the predictions of kernels."""
        return self.target.values

    @cached_property
    def scored_tests(self) -> ScoredTests:
        """All tests, scored fold by fold; together for leave-one-out, or if J is a mean over all tests.

        The tests of several targets follow each other, so that the mean over folds is also one over targets.
        """
        measure, rows, n_targets = self.measure, self.folds.order, self.target.n_targets
        together = self.folds.is_loo or measure.is_probability
        borders = np.array([0, len(rows)] if together else self.folds.borders, np.int64)
        starts = len(rows) * np.arange(n_targets)[:, None] + borders[:-1]
        borders = np.append(starts, n_targets * len(rows))
        weights = np.tile(measure.weights[rows], n_targets) if measure.is_weighted else measure.weights
        truth = self.truth[rows].T.reshape(-1).astype(np.float64)
        return ScoredTests(measure.code, truth, weights, self.target.n_classes, borders)

    @cached_property
    def tests(self) -> Sequence[NDArray[np.int64]]:
        """Rows that are scored together: folds, or all for leave-one-out or if J is a mean over all tests."""
        if self.folds.is_loo or self.measure.is_probability:
            return (self.folds.order,)
        return tuple(np.sort(test) for _, test in self.folds.splits)


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
            raise ParameterError(f"sample_weight is 0 for all {name}: leave them out, or use fewer or stratified folds")


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
