"""Scores of predictions for the rows of a fold, of many subsets at a time: scikit-learn's by name, or any scorer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter as Argument
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import check_scoring, get_scorer_names

from ..validation.errors import ForPython, Message, Parameter, ParameterError, Setting
from .base import Floats, Target

NO_WEIGHTS: Floats = np.empty(0)
POSITIVE = 1  # the label whose class "f1" and the like are of, as in scikit-learn


class Counts(NamedTuple):
    """Of each subset and class (subsets, classes), by weight: rightly predicted, predicted, own; and whether it is met.

    ``own`` is the same for all subsets: (1, classes). ``positive`` is the class labelled 1, -1 where there is none.
    """

    hits: Floats
    claims: Floats
    own: Floats
    met: NDArray[np.bool_]
    positive: int

    @classmethod
    def of(cls, truth: NDArray[Any], predicted: NDArray[Any], weights: Floats, target: Target) -> Counts:
        n_subsets, n_classes = len(predicted), target.n_classes
        predicted = predicted.astype(np.int64)
        places = predicted + n_classes * np.arange(n_subsets)[:, None]

        def total(of: NDArray[Any] | slice, of_rows: Floats = weights) -> Floats:
            parts = np.broadcast_to(of_rows, predicted.shape)[of].ravel() if len(of_rows) else None
            return np.bincount(places[of].ravel(), parts, n_subsets * n_classes).reshape(-1, n_classes).astype(float)

        own = np.bincount(truth, weights if len(weights) else None, n_classes)[None].astype(float)
        met = (total(slice(None), NO_WEIGHTS) > 0) | (np.bincount(truth, minlength=n_classes) > 0)
        positive = np.flatnonzero(np.asarray(target.classes) == POSITIVE)
        return cls(total(predicted == truth), total(slice(None)), own, met, int(positive[0]) if len(positive) else -1)


def _ratio(above: Floats, below: Floats) -> Floats:
    """0 where there is nothing to divide by."""
    return np.asarray(above / np.where(below > 0, below, 1.0))


BY_CLASS: dict[str, Callable[[Counts], Floats]] = {
    "f1": lambda counts: _ratio(2 * counts.hits, counts.own + counts.claims),
    "precision": lambda counts: _ratio(counts.hits, counts.claims),
    "recall": lambda counts: _ratio(counts.hits, counts.own),
    "jaccard": lambda counts: _ratio(counts.hits, counts.own + counts.claims - counts.hits),
}


def _macro(name: str) -> Callable[[Counts], Floats]:
    return lambda counts: (BY_CLASS[name](counts) * counts.met).sum(axis=1) / counts.met.sum(axis=1)


def _weighted(name: str) -> Callable[[Counts], Floats]:
    return lambda counts: (BY_CLASS[name](counts) * counts.own).sum(axis=1) / counts.own.sum()


def _positive(name: str) -> Callable[[Counts], Floats]:
    return lambda counts: BY_CLASS[name](counts)[:, counts.positive]


def _jaccard_micro(counts: Counts) -> Floats:
    right = counts.hits.sum(axis=1)
    return np.asarray(right / (2 * counts.own.sum() - right))


def _matthews(counts: Counts) -> Floats:
    """The correlation of classes and predictions (J. Gorodkin, Computational Biology and Chemistry 28, 2004)."""
    total = counts.own.sum()
    by_chance = (counts.own * counts.claims).sum(axis=1)
    variances = (total**2 - (counts.claims**2).sum(axis=1)) * (total**2 - (counts.own**2).sum())
    return _ratio(counts.hits.sum(axis=1) * total - by_chance, np.sqrt(np.maximum(variances, 0.0)))


OF_TWO = tuple(BY_CLASS)
FROM_COUNTS: dict[str, Callable[[Counts], Floats]] = {
    **{name: _positive(name) for name in OF_TWO},
    **{f"{name}_macro": _macro(name) for name in BY_CLASS if name != "f1"},
    **{f"{name}_weighted": _weighted(name) for name in BY_CLASS if name != "recall"},
    "jaccard_micro": _jaccard_micro,
    "matthews_corrcoef": _matthews,
}


def _root_of_squares(truth: Floats, predicted: Floats, weights: Floats) -> Floats:
    return -np.sqrt(np.average((truth - predicted) ** 2, axis=1, weights=weights))


def _explained_variance(truth: Floats, predicted: Floats, weights: Floats) -> Floats:
    def variance(values: Floats) -> Floats:
        middle = np.average(values, axis=1, weights=weights)[:, None]
        return np.asarray(np.average((values - middle) ** 2, axis=1, weights=weights))

    left, whole = variance(truth - predicted), variance(truth[None])
    return np.where(whole > 0, 1 - _ratio(left, whole), np.where(left == 0, 1.0, 0.0))


FROM_ERRORS: dict[str, Callable[[Floats, Floats, Floats], Floats]] = {
    "neg_root_mean_squared_error": _root_of_squares,
    "explained_variance": _explained_variance,
}


@dataclass(frozen=True)
class OfPredictions:
    """A score made from predictions, by name or by a scorer; ``of_decisions`` of two classes asks for those instead."""

    scoring: Any
    target: Target
    of_decisions: bool = False

    def scores(self, truth: NDArray[Any], predicted: Floats, weights: Floats) -> Floats:
        """Of predictions (subsets, rows) for rows that are scored together: class numbers, decisions or numbers."""
        if isinstance(self.scoring, str) and self.scoring in FROM_COUNTS:
            return FROM_COUNTS[self.scoring](Counts.of(truth, predicted, weights, self.target))
        if isinstance(self.scoring, str) and self.scoring in FROM_ERRORS:
            return FROM_ERRORS[self.scoring](truth, predicted, weights if len(weights) else np.ones(len(truth)))
        known, classes = self._labels(truth), self.target.classes
        if self.of_decisions:
            estimators = [_estimator(classes, None, line) for line in predicted]
        else:
            estimators = [_estimator(classes, line) for line in self._labels(predicted)]
        return np.array([_by_scorer(self.scoring, estimator, known, weights) for estimator in estimators])

    def _labels(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.target.classes is None else self.target.classes[values.astype(np.int64)]


def of_predictions(scoring: Any, target: Target, truth: NDArray[Any], weights: Floats, words: Message) -> OfPredictions:
    """The score, tried on the rows of a fold; refused where predictions are not enough for it, or it is no score of y.

    ``words`` are what to do else.
    """
    require_score_of(scoring, target, words)
    if isinstance(scoring, str) and scoring in (FROM_COUNTS if target.is_classification else FROM_ERRORS):
        return OfPredictions(scoring, target)
    asked = _tried(scoring, target, truth, weights)
    if asked not in ({"predict"}, {"decision_function"}):
        raise ParameterError(Parameter("scoring", scoring), " needs more than predictions", *words)
    return OfPredictions(scoring, target, of_decisions="decision_function" in asked)


def require_score_of(scoring: Any, target: Target, words: Message) -> None:
    """Refuse a name that scikit-learn does not know, or that is no score of such a target."""
    if not isinstance(scoring, str):
        return
    if scoring in OF_TWO and target.is_classification:
        _require_positive(scoring, target)
    elif scoring not in get_scorer_names() or _is_of_the_other_kind(scoring, target):
        raise ParameterError(Parameter("scoring", scoring), *words)


class Predicted(BaseEstimator):
    """What a scorer takes for an estimator: its predictions are made already. It remembers what it was asked for."""

    def __init__(self, predicted: Any, classes: Any = None, decisions: Any = None) -> None:
        self.predicted, self.decisions, self.asked = predicted, decisions, set[str]()
        if classes is not None:
            self.classes_ = classes

    def fit(self, X: Any, y: Any) -> Predicted:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        self.asked.add("predict")
        return self.predicted


class PredictedClasses(ClassifierMixin, Predicted):
    pass


class PredictedDecisions(PredictedClasses):
    def decision_function(self, X: Any) -> Any:
        self.asked.add("decision_function")
        return self.decisions


class PredictedNumbers(RegressorMixin, Predicted):
    pass


def _estimator(classes: Any, predicted: Any, decisions: Any = None) -> Predicted:
    if classes is None:
        return PredictedNumbers(predicted)
    if decisions is None:
        return PredictedClasses(predicted, classes)
    return PredictedDecisions(predicted, classes, decisions)


def _by_scorer(scoring: Any, estimator: Predicted, truth: NDArray[Any], weights: Floats) -> float:
    of_rows = {"sample_weight": weights} if len(weights) else {}
    return float(check_scoring(estimator, scoring)(estimator, np.zeros((len(truth), 1)), truth, **of_rows))


def _tried(scoring: Any, target: Target, truth: NDArray[Any], weights: Floats) -> set[str]:
    """What a scorer asks of an estimator that is always right."""
    labels = truth if target.classes is None else target.classes[truth]
    estimator = _estimator(target.classes, labels, truth.astype(np.float64) if target.n_classes == 2 else None)
    if len(weights) and not takes_weights(check_scoring(estimator, scoring), estimator):
        raise ParameterError(
            Parameter("sample_weight"), ": ", Parameter("scoring", scoring), " takes no weights; leave them out"
        )
    try:
        with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
            _by_scorer(scoring, estimator, labels, weights)
    except AttributeError:  # it asked for probabilities, or for what only one estimator has
        return set()
    except (TypeError, ValueError) as error:
        raise ParameterError(
            Parameter("scoring", scoring), f" is no score of this y: {str(error).splitlines()[0]}"
        ) from error
    return estimator.asked


def _is_of_the_other_kind(scoring: str, target: Target) -> bool:
    """Whether a score of numbers is asked for classes, or the reverse: it knows no letters, or no fractions."""
    if target.is_classification and scoring == "average_precision":  # which asks for a class labelled 1
        return False
    values = np.array(list("aabb")) if target.is_classification else np.array([0.25, 0.5, 0.75, 1.5])
    estimator = _estimator(np.unique(values) if target.is_classification else None, values, np.arange(4.0))
    try:
        with warnings.catch_warnings(action="ignore" if target.is_classification else "error"):
            _by_scorer(scoring, estimator, values, NO_WEIGHTS)
    except (TypeError, ValueError, UserWarning):
        return "decision_function" not in estimator.asked
    except AttributeError:
        return not target.is_classification
    return False


def _require_positive(scoring: str, target: Target) -> None:
    if target.n_classes > 2:
        raise ParameterError(
            Parameter("scoring", scoring),
            f" is of two classes and y has {target.n_classes}: use ",
            Setting("scoring", f"{scoring}_macro"),
        )
    labels = np.asarray(target.classes).tolist()
    if POSITIVE not in labels:
        raise ParameterError(
            Parameter("scoring", scoring),
            f" is of the class labelled {POSITIVE}, and y has {labels[0]!r} and {labels[1]!r}: use ",
            Setting("scoring", f"{scoring}_macro"),
            ForPython(f", or scoring=make_scorer({scoring}_score, pos_label={labels[1]!r})", ", or labels 0 and 1"),
        )


def takes_weights(scorer: Any, estimator: Any) -> bool:
    """Whether a scorer takes ``sample_weight``."""
    # scikit-learn says it only by these private names; without them, the scorer's own signature decides
    metric = getattr(scorer, "_score_func", None)
    if metric is not None:
        return _names_weights(metric)
    own = type(scorer).__name__ == "_PassthroughScorer"
    return _names_weights(estimator.score if own else scorer)


def _names_weights(function: Any) -> bool:
    argument = signature(function).parameters.get("sample_weight")
    return argument is not None and argument.kind != Argument.POSITIONAL_ONLY
