"""Cross-validated scores of given subsets: the folds, the criterion that scores, and the score of guessing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier, RidgeCV
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..criteria import TALL, Average, Criterion, Function, Scorer, Separability, in_prose
from ..criteria.base import Folds, Split, Target
from ..engine.probes import Subsets
from ..validation.errors import ParameterError
from ..validation.parameters import is_whole
from ..validation.tables import columns_not_finite
from .survival import CoxModel, error_of_guessing

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]


class TooFewRows(ValueError):
    """There are too few rows, or too few of a class, to train on some and test on others."""


@dataclass(frozen=True)
class SubsetScorer:
    """A criterion that scores the subsets of a curve, with its description and its scoring."""

    criterion: Criterion
    words: str
    scoring: Any = None

    @classmethod
    def like(
        cls, criterion: Criterion | None, X: Any, target: Target, scoring: Any = None, missing: str | None = None
    ) -> SubsetScorer:
        """The run's criterion if it is cross-validated; else k-NN, or ridge for many rows, on scaled columns.

        Missing values are filled inside the folds, as ``missing`` of the selector says.
        """
        if target.survival is not None:
            return cls(CoxModel(), "a Cox model with a ridge penalty", "concordance")
        has_missing = bool(len(columns_not_finite(X)))
        if criterion is not None and has_missing and not criterion.allow_nan:
            criterion = with_missing(criterion, missing)
        if criterion is not None and not isinstance(criterion, Separability | Function):
            words = f"the criterion of the run, {in_prose(criterion)}"
            return cls(criterion, words, getattr(criterion, "scoring", None) or scoring)
        is_tall = X.shape[0] > TALL
        models = (RidgeClassifier(), RidgeCV()) if is_tall else (KNeighborsClassifier(3), KNeighborsRegressor(3))
        steps = [StandardScaler(with_mean=not sp.issparse(X)), models[0 if target.is_classification else 1]]
        words = f"{'a ridge model' if is_tall else '3 nearest neighbors'}, on scaled columns"
        if has_missing:
            return cls(Scorer(make_pipeline(SimpleImputer(), *steps)), f"{words}, missing values filled")
        return cls(Scorer(make_pipeline(*steps)), words)

    def scores(
        self, X: Any, y: NDArray[Any], split: Split, subsets: list[Columns], sample_weight: Any = None
    ) -> Floats:
        """J of each subset of columns on the test rows of one split; other columns are not read."""
        columns = np.unique(np.concatenate(subsets))
        local = Subsets.of([np.searchsorted(columns, subset) for subset in subsets])
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.criterion.bind(X[:, columns], y, [split], scoring=self.scoring, **options)(local)

    def measure(self, target: Target) -> str:
        if self.scoring is not None:
            return self.scoring if isinstance(self.scoring, str) else "score"
        return "accuracy" if target.is_classification else "R²"

    def guessing(
        self, y: NDArray[Any], target: Target, splits: Sequence[Split], sample_weight: Any = None, groups: Any = None
    ) -> tuple[float | None, float]:
        """J without any feature and its standard error over rows, or over groups; None and NaN where not known."""
        if self.measure(target) == "accuracy":
            weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
            total = weights.sum()
            of_class = np.bincount(target.values, weights)
            share = float(of_class.max() / total)
            if groups is not None:
                deviations = weights * ((target.values == of_class.argmax()) - share)
                of_group = np.bincount(np.unique(groups, return_inverse=True)[1], deviations)
                return share, float(np.sqrt((of_group**2).sum()) / total)
            return share, float(np.sqrt(share * (1 - share) * (weights**2).sum()) / total)
        if target.survival is not None:
            return 0.5, error_of_guessing(target.survival)
        if self.scoring is None:
            return 0.0, np.nan
        if not isinstance(self.scoring, str):
            return None, np.nan
        guesser = Scorer(DummyClassifier(strategy="prior") if target.is_classification else DummyRegressor())
        constant = np.zeros((len(y), 1))
        try:
            with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
                score = guesser.bind(constant, y, splits, scoring=self.scoring)(Subsets.of([[0]]))[0]
        except ValueError:  # the score is not defined for guessing
            return None, np.nan
        return (float(score), np.nan) if np.isfinite(score) else (None, np.nan)


def with_missing(criterion: Criterion, missing: str | None) -> Criterion | None:
    """The criterion with missing values filled inside the folds; None where it cannot fill them."""
    if isinstance(criterion, Average):
        parts = [with_missing(part, missing) for part in criterion.parts]
        return None if None in parts else Average(tuple(parts))
    if "missing" not in criterion.get_params(deep=False):
        return None
    return clone(criterion).set_params(missing="mean" if missing == "mean" else "median")


def splits_for(cv: Any, target: Target, groups: Any = None, *, seed: int = 0) -> list[Split]:
    """The folds; a number of folds is shuffled by the seed, and stratified by class or made of whole groups."""
    if not is_whole(cv):
        return list(Folds.of(cv, target.values, is_classification=target.is_classification, groups=groups).splits)
    if cv < 2:
        raise ParameterError(f"cv={cv!r} must be at least 2")
    n_rows = len(target.values)
    if n_rows < 2 * cv:
        raise TooFewRows(f"{n_rows} rows are too few to cross-validate in {cv} folds")
    no_columns = np.empty((n_rows, 0))
    if target.survival is not None:
        event = target.survival.event.astype(np.int64)
        if event.sum() < 2 * cv:
            raise TooFewRows(f"{event.sum()} events are too few to cross-validate in {cv} folds")
        if event.sum() <= n_rows - cv:  # each fold has its share of the events
            target = Target(event, np.array([False, True]))
    if groups is not None:
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise TooFewRows("groups: all rows are in one group, so there are no test rows")
        by_group = StratifiedGroupKFold if target.is_classification else GroupKFold
        return list(by_group(min(cv, n_groups)).split(no_columns, target.values, groups))
    if not target.is_classification:
        return list(KFold(cv, shuffle=True, random_state=seed).split(no_columns))
    rarest = int(np.bincount(target.values).min())
    if rarest < 2:
        raise TooFewRows("a class has a single row, which cannot be both trained and tested on")
    return list(StratifiedKFold(min(cv, rarest), shuffle=True, random_state=seed).split(no_columns, target.values))
