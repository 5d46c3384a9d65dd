"""Any scikit-learn estimator, or any function of (X_subset, y), as a criterion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from ..engine.probes import Subsets
from ..kernels.scores import F1_MACRO
from .base import Criterion, Floats, Folds, Target
from .identity import stable_text
from .predictions import NO_WEIGHTS, takes_weights
from .scoring import FOR_CLASSES, FOR_NUMBERS, GroupsOfTests, Measure, Outcomes, OutcomesByGroup, refuse_one_row

ROW_SCORES = {
    name: (FOR_CLASSES | FOR_NUMBERS)[name]
    for name in ("accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error", "neg_mean_absolute_error")
}


class Scorer(Criterion):
    """Mean cross-validated score of a scikit-learn estimator on the subset's columns.

    Parameters
    ----------
    estimator : estimator
        Any classifier or regressor. Where it, or a part of it, has ``random_state=None``, 0 is used: J must be the
        same whenever it is asked.
    scoring : str, callable or None, default=None
        As in scikit-learn; None takes what ``fit`` was given, or the estimator's own score.
    name : str or None, default=None
        What a ledger knows the criterion by, in place of its parameters and code.

    Notes
    -----
    ``sample_weight`` goes to the estimator's ``fit`` (of a pipeline, to its last step) and to the score, where these
    take one; one of them must.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from probewise.criteria import Scorer
    >>> from probewise.engine.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> Scorer(GaussianNB()).bind(X, y, cv=3)(Subsets.of([[2], [2, 3]])).round(3)
    array([0.953, 0.96 ])
    """

    block_size = 5
    prefer = "processes"
    streams = True

    def __init__(self, estimator: Any, *, scoring: Any = None, name: str | None = None) -> None:
        self.estimator = estimator
        self.scoring = scoring
        self.name = name

    @property
    def allow_nan(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.allow_nan)

    @property
    def task(self) -> str:
        return "regression" if is_regressor(self.estimator) else "auto"

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundScorer:
        y, chosen = np.asarray(y), scoring if self.scoring is None else self.scoring
        if is_classifier(self.estimator):
            Target.of(y, "classification")  # at least two classes
        elif chosen is None and not is_regressor(self.estimator) and not hasattr(self.estimator, "score"):
            raise ValueError(f"criterion={self.estimator!r} has no score method: give scoring, for example 'accuracy'")
        folds = Folds.of(cv, y, is_classification=is_classifier(self.estimator), groups=groups)
        if folds.is_loo and (chosen == "r2" or (chosen is None and is_regressor(self.estimator))):
            refuse_one_row("r2", type(self.estimator).__name__)
        if sample_weight is not None:
            _require_use_of_weights(self.estimator, chosen)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return BoundScorer(seeded(self.estimator), _by_columns(X), y, folds, chosen, weights)

    def describe(self) -> str:
        if self.name is not None:
            return f"Scorer(name={self.name!r})"
        return f"Scorer({stable_text(self.estimator)}, scoring={stable_text(self.scoring)})"


@dataclass(frozen=True)
class BoundScorer(OutcomesByGroup):
    """Outcomes of rows are known where the score is a mean over rows that built-in criteria know too."""

    estimator: Any
    X: Any
    y: NDArray[Any]
    folds: Folds
    scoring: Any
    weights: Floats | None = None

    def _scores(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        if not groups.n_groups:
            return np.array([self._score(subset) for subset in subsets], dtype=np.float64), np.empty((len(subsets), 0))
        by_group = groups.outcomes(len(subsets))
        scores = [self._with_outcomes(subset, by_group.of_subsets(k)) for k, subset in enumerate(subsets)]
        return np.array(scores, dtype=np.float64), by_group.means

    @cached_property
    def measure(self) -> Measure:  # type: ignore[override]
        """The score by its name; one that cannot be told row by row counts as F1, which is no mean over rows."""
        own_score = type(self.estimator).score if hasattr(self.estimator, "score") else None
        name = {ClassifierMixin.score: "accuracy", RegressorMixin.score: "r2"}.get(own_score, "other")
        name = name if self.scoring is None else str(self.scoring)
        is_known = name in ROW_SCORES and self.weights is None and self.y.ndim == 1
        return Measure(name, ROW_SCORES[name] if is_known else F1_MACRO, np.empty(0))

    @cached_property
    def target(self) -> Target:  # type: ignore[override]
        return Target.of(self.y, "classification" if self.measure.is_of_labels else "regression")

    def _with_outcomes(self, subset: NDArray[np.int32], by_group: Outcomes) -> float:
        """J as `_score` finds it, and the outcomes of its predictions."""
        columns = self.X[:, subset]
        rows = columns.tocsr() if sp.issparse(columns) else columns
        scorer, scores = check_scoring(self.estimator, self.scoring), []
        for (train, test), own in zip(self.folds.splits, self.folds.parts, strict=True):
            fitted = clone(self.estimator).fit(rows[train], self.y[train])
            scores.append(scorer(fitted, rows[test], self.y[test]))
            truth, predicted = (
                part[np.argsort(test, kind="stable")] for part in (self.y[test], fitted.predict(rows[test]))
            )
            if self.measure.is_of_labels:
                truth, predicted = np.zeros(len(test)), (truth != predicted).astype(np.float64)
            tests = self.measure.tests(truth, NO_WEIGHTS, 0)
            tests.score_one(np.asarray(predicted, np.float64), by_group.of_tests(own))
        return float(np.mean(scores))

    def _score(self, subset: NDArray[np.int32]) -> float:
        if self.weights is not None:
            return self._weighted(self.X[:, subset])
        how = {"cv": self.folds.splits, "scoring": self.scoring, "error_score": "raise"}
        return float(np.mean(cross_val_score(self.estimator, self.X[:, subset], self.y, **how)))

    def _weighted(self, columns: Any) -> float:
        """The same with weights in the fit and in the score, whatever the user's setting of metadata routing."""
        assert self.weights is not None
        rows = columns.tocsr() if sp.issparse(columns) else columns
        name = _weights_of_fit(self.estimator)
        scores = []
        with config_context(enable_metadata_routing=False):
            scorer = check_scoring(self.estimator, self.scoring)
            for train, test in self.folds.splits:
                of_train = {} if name is None else {name: self.weights[train]}
                of_test = {"sample_weight": self.weights[test]} if takes_weights(scorer, self.estimator) else {}
                fitted = clone(self.estimator).fit(rows[train], self.y[train], **of_train)
                scores.append(scorer(fitted, rows[test], self.y[test], **of_test))
        return float(np.mean(scores))


class Function(Criterion):
    """A plain function as a criterion.

    Parameters
    ----------
    function : callable
        Of (X_subset, y), giving J; columns come in the order of the probe, and y may be None.
    name : str or None, default=None
        What a ledger knows the criterion by; None takes the function's code and all that it captures (defaults,
        closures, globals, the functions it calls), so that no run goes on with another criterion. Give a name to what
        changes without consequence, as a function that counts its calls does.
    """

    block_size = 5
    streams = True
    allow_nan = True
    needs_target = False

    def __init__(self, function: Callable[[Any, Any], float], *, name: str | None = None) -> None:
        self.function = function
        self.name = name

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundFunction:
        if scoring is not None:
            raise ValueError(f"scoring={scoring!r} has no meaning for a criterion that is a function: leave it out")
        if sample_weight is not None:
            raise ValueError(
                "sample_weight has no meaning for a criterion that is a function of (X_subset, y): leave it out, or "
                "use the weights inside of the function"
            )
        return BoundFunction(self.function, _by_columns(X), y, Folds((), len(y) if y is not None else X.shape[0]))

    def describe(self) -> str:
        return f"Function({stable_text(self.function) if self.name is None else f'name={self.name!r}'})"


@dataclass(frozen=True)
class BoundFunction:
    function: Callable[[Any, Any], float]
    X: Any
    y: NDArray[Any]
    folds: Folds

    def __call__(self, subsets: Subsets) -> Floats:
        return np.array([float(self.function(self.X[:, subset], self.y)) for subset in subsets])


def _weights_of_fit(estimator: Any) -> str | None:
    """The name under which ``fit`` takes weights; of a pipeline, that of its last step."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = None if isinstance(last, str) or last is None else _weights_of_fit(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def _require_use_of_weights(estimator: Any, scoring: Any) -> None:
    scorer = check_scoring(estimator, scoring)
    if _weights_of_fit(estimator) is None and not takes_weights(scorer, estimator):
        raise ValueError(
            f"sample_weight: neither fit of criterion={type(estimator).__name__}() nor the score takes weights; leave "
            "them out, or use criterion='linear' or 'knn'"
        )


def _by_columns(X: Any) -> Any:
    return X.tocsc() if sp.issparse(X) else X


def seeded(estimator: Any, seed: int = 0) -> Any:
    """A copy of the estimator with a seed wherever a part of it has none."""
    estimator = clone(estimator)
    open_states = [
        name
        for name, value in estimator.get_params().items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    return estimator.set_params(**dict.fromkeys(open_states, seed))
