"""Scores of predictions by any scikit-learn scorer that needs only predictions or decisions."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import check_scoring, get_scorer_names

from ..validation.errors import ParameterError
from .base import Floats, Target

NO_WEIGHTS: Floats = np.empty(0)
RATIOS = [f"{ratio}{mean}" for ratio in ("f1", "precision", "recall") for mean in ("", "_macro", "_weighted")]
FROM_COUNTS = (*RATIOS, "matthews_corrcoef")
POSITIVE = 1  # label of the class that "f1", "precision" and "recall" are about, as in scikit-learn
FOR_NUMBERS = re.compile("r2|error|variance|deviance")  # occurs in the names of scikit-learn's regression scores


@dataclass(frozen=True)
class PredictionScorer:
    """A scikit-learn scorer, by name or as an object, applied to predictions that were made before.

    ``of_decisions``: whether it needs decisions (of two classes) instead of predictions.
    """

    scoring: Any
    target: Target
    of_decisions: bool = False

    @classmethod
    def of(
        cls, scoring: Any, target: Target, truth: NDArray[Any], weights: Floats, advice: str = ""
    ) -> PredictionScorer:
        """Try the scorer on the true values of a fold; refuse it if it needs more than predictions or decisions."""
        require_score_for(target, scoring, advice)
        labels = truth if target.classes is None else target.classes[truth]
        predicted = labels + 0.5 if target.classes is None else labels  # refuses scores of classes for whole numbers
        estimator = _estimator(target.classes, predicted, truth.astype(np.float64) if target.n_classes == 2 else None)
        try:
            with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
                _score(scoring, estimator, labels, weights)
        except AttributeError:  # it needs probabilities or the attributes of one estimator
            estimator.called.clear()
        except (TypeError, ValueError) as error:
            if "sample_weight" in str(error):
                raise ParameterError(f"sample_weight: scoring={scoring!r} takes no weights; leave them out") from error
            if scoring in ("f1", "precision", "recall") and target.n_classes == 2:
                first, second = np.asarray(target.classes).tolist()
                raise ParameterError(
                    f"scoring={scoring!r} scores the class labeled {POSITIVE}, and the classes of y are {first!r} and "
                    f"{second!r}: use scoring='{scoring}_macro', or make_scorer({scoring}_score, pos_label={second!r})"
                ) from error
            raise ParameterError(f"scoring={scoring!r} cannot score this y: {str(error).splitlines()[0]}") from error
        if estimator.called not in ({"predict"}, {"decision_function"}):
            raise ParameterError(f"scoring={scoring!r} needs more than predictions{advice}")
        return cls(scoring, target, of_decisions="decision_function" in estimator.called)

    def scores(self, truth: NDArray[Any], predicted: Floats, weights: Floats) -> Floats:
        """Score of each row of ``predicted`` (subsets, tests): class codes, decisions or numbers."""
        if isinstance(self.scoring, str) and self.scoring in FROM_COUNTS:
            return _score_from_counts(self.scoring, truth, predicted.astype(np.int64), weights, self.target)
        classes = self.target.classes
        if self.of_decisions:
            estimators = [_estimator(classes, None, decisions) for decisions in predicted]
        else:
            estimators = [_estimator(classes, values) for values in self._labels(predicted)]
        labels = self._labels(truth)
        return np.array([_score(self.scoring, estimator, labels, weights) for estimator in estimators])

    def _labels(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.target.classes is None else self.target.classes[values.astype(np.int64)]


def require_score_for(target: Target, scoring: Any, advice: str = "") -> None:
    """Refuse a name that scikit-learn does not know, a score for numbers if y has classes, and the reverse."""
    if isinstance(scoring, str) and (
        scoring not in get_scorer_names() or bool(FOR_NUMBERS.search(scoring)) == target.is_classification
    ):
        kind = "classes" if target.is_classification else "numbers"
        advice = advice or f" is not a score for {kind} that scikit-learn knows"
        raise ParameterError(f"scoring={scoring!r}{advice}")


def _score_from_counts(
    name: str, truth: NDArray[Any], predicted: NDArray[np.int64], weights: Floats, target: Target
) -> Floats:
    """Scores of predicted class codes (subsets, tests): tens of times faster than a scikit-learn scorer per subset."""
    n_subsets, n_classes = len(predicted), target.n_classes
    cell = (np.arange(n_subsets)[:, None] * n_classes + truth) * n_classes + predicted

    def confusion(of_tests: Floats) -> Floats:
        """Weight of tests (subsets, true class, predicted class)."""
        all_weights = np.broadcast_to(of_tests, cell.shape).ravel()
        sums = np.bincount(cell.ravel(), all_weights, n_subsets * n_classes**2).astype(np.float64)
        return sums.reshape(-1, n_classes, n_classes)

    table = confusion(weights if len(weights) else np.ones(len(truth)))
    hits, true, claimed = table.diagonal(axis1=1, axis2=2), table.sum(axis=2), table.sum(axis=1)
    if name == "matthews_corrcoef":
        total = true.sum(axis=1)
        covariance = hits.sum(axis=1) * total - (true * claimed).sum(axis=1)
        variances = (total**2 - (claimed**2).sum(axis=1)) * (total**2 - (true**2).sum(axis=1))
        return _ratio(covariance, np.sqrt(np.maximum(variances, 0.0)))
    kind, _, average = name.partition("_")
    by_class = _ratio(hits, {"f1": (true + claimed) / 2, "precision": claimed, "recall": true}[kind])
    if average == "":
        return by_class[:, np.flatnonzero(np.asarray(target.classes) == POSITIVE)[0]]
    counts = confusion(np.ones(len(truth))) if average == "macro" else table
    share = (counts.sum(axis=1) + counts.sum(axis=2) > 0).astype(float) if average == "macro" else true
    return (by_class * share).sum(axis=1) / share.sum(axis=1)


def _ratio(above: Floats, below: Floats) -> Floats:
    """Quotients, 0 where the denominator is 0."""
    return np.asarray(above / np.where(below > 0, below, 1.0))


class Predicted(BaseEstimator):
    """A fitted estimator whose predictions are given. It records which methods a scorer calls."""

    def __init__(self, predicted: Any, classes: Any = None, decisions: Any = None) -> None:
        self.predicted, self.decisions, self.called = predicted, decisions, set[str]()
        if classes is not None:
            self.classes_ = classes

    def fit(self, X: Any, y: Any) -> Predicted:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        self.called.add("predict")
        return self.predicted


class PredictedClasses(ClassifierMixin, Predicted):
    pass


class PredictedDecisions(PredictedClasses):
    def decision_function(self, X: Any) -> Any:
        self.called.add("decision_function")
        return self.decisions


class PredictedNumbers(RegressorMixin, Predicted):
    pass


def _estimator(classes: Any, predicted: Any, decisions: Any = None) -> Predicted:
    if classes is None:
        return PredictedNumbers(predicted)
    if decisions is None:
        return PredictedClasses(predicted, classes)
    return PredictedDecisions(predicted, classes, decisions)


def _score(scoring: Any, estimator: Predicted, truth: NDArray[Any], weights: Floats) -> float:
    options = {"sample_weight": weights} if len(weights) else {}
    return float(check_scoring(estimator, scoring)(estimator, np.zeros((len(truth), 1)), truth, **options))
