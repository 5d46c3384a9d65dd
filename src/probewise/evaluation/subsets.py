"""Subsets of features: representatives without near copies, and cross-validated scores of given subsets."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier, RidgeCV
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..criteria import TALL, Average, Criterion, Function, Scorer, Separability, in_prose
from ..criteria.base import Folds, Split, Target
from ..engine.probes import Subsets
from ..validation.errors import ParameterError
from ..validation.parameters import check_parameter, is_whole, whole_number
from ..validation.tables import columns_not_finite
from .survival import CoxModel, error_of_guessing

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]
NEAR, EQUAL = 0.1, 0.9999  # columns are near copies up to this share of the typical 1 - |r|, or from this |r|
MAX_REPRESENTATIVES = 100
NUMBER_MODEL = "ridge regression or 10 nearest neighbors (whichever suits the training samples better)"
MAX_COMPARED, MAX_ROWS, N_TYPICAL = 2000, 2000, 200  # best features, rows, and columns of the typical distance
PENALTIES, N_NEIGHBORS = np.logspace(-3, 4, 15), 10
NUMERIC_NAME = re.compile(r"(-?\d+(?:\.\d+)?)\s*([A-Za-zµ%°][^_]*)?")


class TooFewRows(ValueError):
    """There are too few rows, or too few of a class, to train on some and test on others."""


class TunedRegressor(RegressorMixin, BaseEstimator):
    """Ridge regression or k nearest neighbors on scaled columns, chosen by the leave-one-out error; ridge if tall.

    Few correlated columns, such as wavelengths, need a small ridge penalty, which leave-one-out chooses too.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TunedRegressor:
        self.scaler_ = StandardScaler(with_mean=not sp.issparse(X)).fit(X)
        scaled, n_rows = self.scaler_.transform(X), X.shape[0]
        self.model_ = ridge = RidgeCV(PENALTIES).fit(scaled, y, sample_weight)
        if n_rows <= TALL:
            neighbors = KNeighborsRegressor(min(N_NEIGHBORS, n_rows - 1)).fit(scaled, y)
            left_out = np.asarray(y)[neighbors.kneighbors(return_distance=False)].mean(axis=1)
            if mean_squared_error(y, left_out, sample_weight=sample_weight) < -ridge.best_score_:
                self.model_ = neighbors
        return self

    def predict(self, X: Any) -> Floats:
        return np.asarray(self.model_.predict(self.scaler_.transform(X)))


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
        """A scorer with the criterion of the run if that is cross-validated; else k-NN, or ridge for many rows.

        With the default criterion of a tournament, numbers are predicted by a `TunedRegressor`. Missing values are
        filled inside the folds, as ``missing`` of the selector says.
        """
        if target.survival is not None:
            return cls(CoxModel(), "a Cox model with a ridge penalty", "concordance")
        has_missing = bool(len(columns_not_finite(X)))
        if isinstance(criterion, Average) and not target.is_classification:
            fill = SimpleImputer(strategy=missing if missing == "mean" else "median", keep_empty_features=True)
            model = TunedRegressor()
            return cls(Scorer(make_pipeline(fill, model) if has_missing else model), NUMBER_MODEL, scoring)
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
        folds = by_group(min(cv, n_groups), shuffle=True, random_state=seed)
        return list(folds.split(no_columns, target.values, groups))
    if not target.is_classification:
        return list(KFold(cv, shuffle=True, random_state=seed).split(no_columns))
    rarest = int(np.bincount(target.values).min())
    if rarest < 2:
        raise TooFewRows("a class has a single row, which cannot be both trained and tested on")
    return list(StratifiedKFold(min(cv, rarest), shuffle=True, random_state=seed).split(no_columns, target.values))


# ---- near copies


def representatives(selector: Any, X: Any, *, n_features: int | None = None) -> Columns:
    """The best features of a fitted selector, each of them no near copy of a better one.

    Two columns are near copies if 1 - |r|, with Pearson's correlation r, is at most a tenth of its median over pairs of
    columns. Neighboring wavelengths of a spectrum are near copies, for example.

    Parameters
    ----------
    selector : selector
        A fitted selector.
    X : array-like
        The data of ``fit``.
    n_features : int or None, default=None
        Number of features; None: all that are found, at most 100.

    Returns
    -------
    array of int
        Columns, best first. There may be fewer than ``n_features``.
    """
    check_is_fitted(selector, "ranking_")
    check_parameter("n_features", n_features, whole_number(1), None)
    return _representatives(selector, selector._numbers_of(X))[0][:n_features]


def distinct_ranking(selector: Any, X: Any) -> tuple[Columns, int]:
    """The ranking of a selector with the representatives first, and their number; ``X`` are the data as numbers."""
    ranking = selector.ranking_
    first = np.unique(ranking[_representatives(selector, X)[0]])
    others = np.setdiff1d(np.arange(1, ranking.max() + 1), first)
    position = np.empty(ranking.max(), dtype=np.int64)
    position[np.concatenate([first, others]) - 1] = np.arange(1, ranking.max() + 1)
    return position[ranking - 1], len(first)


def copies_and_bands(selector: Any, X: Any, names: Sequence[str], columns: Columns) -> list[dict[str, Any]]:
    """For each column: its name, the number of its near copies, and its band if names are numbers such as "1202 nm".

    A band is a range of neighboring near copies: "1202–1220 nm".
    """
    _, compared, limit = _representatives(selector, X)
    found = []
    for column in columns.tolist():
        n_copies = int(_are_near(X, column, compared[compared != column], limit).sum())
        found.append({"feature": names[column], "n_copies": n_copies, "band": _band(X, names, column, limit)})
    return found


def _band(X: Any, names: Sequence[str], column: int, limit: float) -> str | None:
    window = np.arange(max(0, column - N_TYPICAL), min(len(names), column + N_TYPICAL + 1))
    matches = [NUMERIC_NAME.fullmatch(names[other].strip()) for other in window.tolist()]
    here = column - int(window[0])
    if (own := matches[here]) is None:
        return None
    values = np.array([float(m[1]) if m is not None and m[2] == own[2] else np.nan for m in matches])
    is_near = _are_near(X, column, window, limit) & np.isfinite(values)
    first, last = here, here
    while first > 0 and is_near[first - 1]:
        first -= 1
    while last + 1 < len(window) and is_near[last + 1]:
        last += 1
    steps = np.diff(values[first : last + 1])
    if first == last or not ((steps > 0).all() or (steps < 0).all()):
        return None
    ends = [names[window[end]].strip() for end in ((first, last) if steps[0] > 0 else (last, first))]
    return f"{ends[0].removesuffix(own[2] or '').rstrip()}–{ends[1]}"


def _representatives(selector: Any, X: Any) -> tuple[Columns, Columns, float]:
    """The representatives, the compared columns (both best first), and the |r| from which columns are near copies.

    Groups of features, kept features and categories are no copies of others.
    """
    ranking = selector.ranking_
    order = np.argsort(ranking, kind="stable")
    compared = order[:MAX_COMPARED]
    units, run = getattr(selector, "_units", None), getattr(selector, "run_", None)
    may_be_copy = (np.bincount(ranking)[ranking] == 1)[compared]
    if units is not None:
        may_be_copy &= ~np.isin(compared, units.kept)
    if run is not None and run.settings.categorical is not None:
        may_be_copy &= ~np.isin(compared, run.settings.categorical)
    some = order[np.unique(np.linspace(0, len(order) - 1, N_TYPICAL).round().astype(np.int64))]
    typical = _unit_columns(X, some)
    distances = 1 - np.abs(typical.T @ typical)[np.triu_indices(len(some), k=1)]
    limit = min(1 - NEAR * float(np.median(distances)), EQUAL) if len(distances) else EQUAL
    Z, is_copy, first = _unit_columns(X, compared), np.zeros(len(compared), dtype=bool), list[int]()
    for place in range(len(compared)):
        if not is_copy[place]:
            first.append(place)
            if len(first) == MAX_REPRESENTATIVES:
                break
            rest = slice(place + 1, None)
            is_copy[rest] |= may_be_copy[rest] & (np.abs(Z[:, place] @ Z[:, rest]) >= limit)
    return compared[first], compared, limit


def _are_near(X: Any, column: int, others: Columns, limit: float) -> NDArray[np.bool_]:
    return np.abs(_unit_columns(X, others).T @ _unit_columns(X, np.array([column]))[:, 0]) >= limit


def _unit_columns(X: Any, columns: Columns) -> Floats:
    """Columns with mean 0 and length 1, of at most 2,000 rows; missing values are 0, and so are constant columns."""
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], MAX_ROWS)).round().astype(np.int64))
    part = (X.tocsc() if sp.issparse(X) else X)[:, columns]
    part = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)[rows]
    is_known = np.isfinite(part)
    part = np.where(is_known, part, 0.0)
    part = np.where(is_known, part - part.sum(axis=0) / np.maximum(is_known.sum(axis=0), 1), 0.0)
    length = np.sqrt((part**2).sum(axis=0))
    return np.asarray(part / np.where(length > 0, length, 1.0))
