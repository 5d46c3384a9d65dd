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
        classes = self.target.classes
        if self.of_decisions:
            estimators = [_estimator(classes, None, decisions) for decisions in predicted]
        else:
            estimators = [_estimator(classes, values) for values in self._labels(predicted)]
        labels = self._labels(truth)
        with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
            return np.array([_score(self.scoring, estimator, labels, weights) for estimator in estimators])

    def _labels(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.target.classes is None else self.target.classes[values.astype(np.int64)]


def require_score_for(target: Target, scoring: Any, advice: str = "") -> None:
    """Refuse a name that scikit-learn does not know, a score for numbers if y has classes, and the reverse."""
    is_name = isinstance(scoring, str)
    if is_name and (scoring not in get_scorer_names() or bool(FOR_NUMBERS.search(scoring)) == target.is_classification):
        kind = "classes" if target.is_classification else "numbers"
        advice = advice or f" is not a score for {kind} that scikit-learn knows"
        raise ParameterError(f"scoring={scoring!r}{advice}")


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
