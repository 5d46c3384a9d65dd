"""Criteria made of a scikit-learn estimator, a decision tree, or a function of (X_subset, y)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from ..engine.probes import Subsets
from ..validation.parameters import check_parameter, number
from .base import Criterion, Floats, Folds, Target, require_few_classes, stable_text
from .predictions import require_score_for
from .scoring import refuse_one_row

ERROR_SCORE = (number(), "raise")


@dataclass(eq=False, repr=False)
class Scorer(Criterion):
    """Mean cross-validated score of a scikit-learn estimator on the columns of the subset.

    Parameters
    ----------
    estimator : estimator
        Any classifier or regressor. Where it, or a part of it, has ``random_state=None``, 0 is used, so that J of a
        subset is always the same.
    scoring : str, callable or None, default=None
        As in scikit-learn; None takes the ``scoring`` of the selector, or the estimator's own score.
    name : str or None, default=None
        Id of the criterion in a ledger, instead of the estimator's class and parameters. Required with a ledger if
        the estimator or the scoring contains a function.
    error_score : float or "raise", default="raise"
        J of a subset on which the estimator fails or its score is not finite; "raise" ends the fit with an error.

    Notes
    -----
    ``sample_weight`` is passed to the estimator's ``fit`` (of a pipeline, to its last step) and to the score if they
    take it; one of them must.
    """

    block_size = 5
    prefer = "processes"
    streams = True

    estimator: Any
    _: KW_ONLY
    scoring: Any = None
    name: str | None = None
    error_score: float | str = "raise"

    @property
    def allow_nan(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.allow_nan)

    @property
    def task(self) -> str:
        if is_classifier(self.estimator):
            return "classification"
        return "regression" if is_regressor(self.estimator) else "auto"

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundScorer:
        check_parameter("error_score", self.error_score, *ERROR_SCORE)
        y, scoring = np.asarray(y), scoring if self.scoring is None else self.scoring
        if is_classifier(self.estimator):
            Target.of(y, "classification")  # at least two classes
        elif scoring is None and not is_regressor(self.estimator) and not hasattr(self.estimator, "score"):
            raise ValueError(f"criterion={self.estimator!r} has no score method: give scoring, for example 'accuracy'")
        folds = Folds.of(cv, y, is_classification=is_classifier(self.estimator), groups=groups)
        if folds.is_loo and (scoring == "r2" or (scoring is None and is_regressor(self.estimator))):
            refuse_one_row("r2", type(self.estimator).__name__)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return BoundScorer(seeded(self.estimator), _by_columns(X), y, folds, scoring, weights)

    def describe(self) -> str:
        if self.name is not None:
            return f"Scorer(name={self.name!r})"
        return f"Scorer({stable_text(self.estimator)}, scoring={stable_text(self.scoring)})"


@dataclass(frozen=True)
class BoundScorer:
    """An estimator bound to the data."""

    estimator: Any
    X: Any
    y: NDArray[Any]
    folds: Folds
    scoring: Any
    weights: Floats | None = None

    def __call__(self, subsets: Subsets) -> Floats:
        return np.array([self._score(subset) for subset in subsets], dtype=np.float64)

    def _score(self, subset: NDArray[np.int32]) -> float:
        """Mean score of the folds, as `cross_val_score` computes it."""
        columns, scores = self.X[:, subset], []
        rows = columns.tocsr() if sp.issparse(columns) else columns
        with config_context(enable_metadata_routing=False):
            scorer, weight_name = check_scoring(self.estimator, self.scoring), _weight_name(self.estimator)
            for train, test in self.folds.splits:
                options = {} if self.weights is None or weight_name is None else {weight_name: self.weights[train]}
                fitted = clone(self.estimator).fit(rows[train], self.y[train], **options)
                scores.append(self._score_fold(scorer, fitted, rows[test], test))
        return float(np.mean(scores))

    def _score_fold(self, scorer: Any, fitted: Any, rows: Any, test: NDArray[np.int64]) -> float:
        if self.weights is None:
            return scorer(fitted, rows, self.y[test])
        try:
            return scorer(fitted, rows, self.y[test], sample_weight=self.weights[test])
        except TypeError as error:
            if "sample_weight" not in str(error):
                raise
            if _weight_name(self.estimator) is None:
                raise ValueError(
                    f"sample_weight: neither fit of criterion={type(self.estimator).__name__}() nor the score takes "
                    "weights; leave them out, or use criterion='linear' or 'knn'"
                ) from error
            return scorer(fitted, rows, self.y[test])


@dataclass(eq=False, repr=False)
class Tree(Criterion):
    """Cross-validated score of a decision tree: accuracy for classes, R^2 for numbers.

    Equal to ``cross_val_score`` of scikit-learn's ``DecisionTreeClassifier`` or ``DecisionTreeRegressor`` with
    ``random_state=0``. X may contain NaN. Columns narrower than 1e-7 that are not constant are refused, because
    scikit-learn's trees treat them as constant. ``sample_weight`` counts in the fit and in the score.

    Parameters
    ----------
    max_depth : int or None, default=None
        Largest depth; None grows the tree until its leaves are pure, which also fits noise.
    min_samples_leaf : int, default=1
        Fewest rows of a leaf; larger is smoother and faster.
    task
        As in `KNN`.

    """

    block_size = Scorer.block_size
    prefer = Scorer.prefer
    streams = Scorer.streams
    allow_nan = True
    widths = (1e-7, 1e38)  # scikit-learn's trees use float32 and see no difference in a narrower column

    _: KW_ONLY
    max_depth: int | None = None
    min_samples_leaf: int = 1
    task: str = "auto"

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundScorer:
        target = Target.of(y, self.task)
        remedy = "use KNN, or task='regression' if y is a quantity"
        require_few_classes(target.classes, "Tree, which counts all of them in every leaf,", remedy)
        require_score_for(target, scoring)
        tree = DecisionTreeClassifier if target.is_classification else DecisionTreeRegressor
        estimator = tree(max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf, random_state=0)
        return Scorer(estimator).bind(X, y, cv, groups=groups, scoring=scoring, sample_weight=sample_weight)


@dataclass(eq=False, repr=False)
class Function(Criterion):
    """A plain function as a criterion.

    Parameters
    ----------
    function : callable
        Function of (X_subset, y) that returns J; columns come in the order of the probe, and y may be None.
    name, error_score
        As in `Scorer`. A name is required with a ledger, because the code of a function may change between two runs.
    """

    block_size = 5
    streams = True
    allow_nan = True
    needs_target = False

    function: Callable[[Any, Any], float]
    _: KW_ONLY
    name: str | None = None
    error_score: float | str = "raise"

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundFunction:
        check_parameter("error_score", self.error_score, *ERROR_SCORE)
        if scoring is not None:
            raise ValueError(f"scoring={scoring!r} has no meaning for a criterion that is a function: leave it out")
        if sample_weight is not None:
            raise ValueError(
                "sample_weight has no meaning for a criterion that is a function of (X_subset, y): leave it out, or "
                "use the weights inside the function"
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


def _weight_name(estimator: Any) -> str | None:
    """Name of the argument by which ``fit`` takes weights, if any; of a pipeline, that of its last step."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = None if isinstance(last, str) or last is None else _weight_name(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def _by_columns(X: Any) -> Any:
    return X.tocsc() if sp.issparse(X) else X


def seeded(estimator: Any, seed: int = 0) -> Any:
    """Copy of an estimator with a seed wherever a part of it has ``random_state=None``."""
    estimator = clone(estimator)
    open_states = [
        name
        for name, value in estimator.get_params().items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    return estimator.set_params(**dict.fromkeys(open_states, seed))
