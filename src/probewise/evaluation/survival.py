"""Survival models of held-out rows: the Cox model with a ridge penalty, the concordance index, Kaplan-Meier curves."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import CensoredData, ecdf
from sklearn.utils import gen_batches

from ..criteria.base import Criterion, Floats, Folds, Target
from ..criteria.columns import on_scaled_columns
from ..engine.probes import Subsets
from ..validation.errors import ParameterError
from ..validation.survival import Survival

PENALTY = 10.0  # on squared coefficients of standardized columns
MAX_STEPS, CONVERGED = 50, 1e-9  # Newton steps; change of the penalized log likelihood
LARGEST_EXPONENT = 200.0
CELLS_AT_ONCE = 2**22  # pairs of rows that are compared at a time
N_GUESSES = 200  # random risks that give the standard error of the concordance of guessing


def concordance(outcome: Survival, risk: Floats, weights: Floats | None = None) -> float:
    """Harrell's concordance index: share of comparable pairs in which the row with the earlier event has more risk.

    A pair is comparable if the event of one row happened before the time of the other, or at the same time if the other
    is censored. Equal risks count one half. 0.5 if no pair is comparable.
    """
    weights = np.ones(len(risk)) if weights is None else weights
    events, time = np.flatnonzero(outcome.event), outcome.time
    total = agreeing = 0.0
    for batch in gen_batches(len(events), max(1, CELLS_AT_ONCE // max(1, len(risk)))):
        rows = events[batch][:, None]
        pairs = (time > time[rows]) | ((time == time[rows]) & ~outcome.event)
        weight = pairs * (weights[rows] * weights)
        total += weight.sum()
        agreeing += (weight * ((risk < risk[rows]) + 0.5 * (risk == risk[rows]))).sum()
    return float(agreeing / total) if total else 0.5


@dataclass(frozen=True, eq=False)
class Cox:
    """A fitted Cox model: coefficients of the columns, and the inverse of the penalized information matrix."""

    coefficients: Floats
    covariance: Floats

    @classmethod
    def fit(cls, X: Floats, outcome: Survival, penalty: Any = PENALTY, weights: Floats | None = None) -> Cox:
        """Newton's method for the partial likelihood (Breslow's ties) minus half the penalty on squared coefficients.

        ``penalty`` is a number, or one for each column.
        """
        weights = np.ones(len(X)) if weights is None else weights
        times, place = np.unique(outcome.time, return_inverse=True)
        n_events = np.bincount(place, outcome.event * weights, len(times))
        X, penalties = X - X.mean(axis=0), np.broadcast_to(np.asarray(penalty, dtype=np.float64), X.shape[1])
        beta, last = np.zeros(X.shape[1]), -np.inf
        step, scale = np.zeros(X.shape[1]), 1.0
        information = np.diag(penalties + 1.0)
        for _ in range(MAX_STEPS):
            line = X @ (beta + scale * step)
            top = line.max()
            risk = weights * np.exp(np.maximum(line - top, -LARGEST_EXPONENT))
            at_risk = _from_the_end(np.bincount(place, risk, len(times)))
            value = float((outcome.event * weights) @ (line - top) - n_events @ np.log(at_risk))
            value -= 0.5 * float(penalties @ (beta + scale * step) ** 2)
            if value < last - CONVERGED * (1 + abs(last)):  # too long a step
                scale /= 2
                continue
            beta, gain, last = beta + scale * step, value - last, value
            if gain < CONVERGED * (1 + abs(last)):
                break
            hazard = np.cumsum(n_events / at_risk)[place]
            sums = np.zeros((len(times), X.shape[1]))
            np.add.at(sums, place, risk[:, None] * X)
            means = _from_the_end(sums) / at_risk[:, None]
            gradient = X.T @ (outcome.event * weights - risk * hazard) - penalties * beta
            information = (X * (risk * hazard)[:, None]).T @ X - (means * n_events[:, None]).T @ means
            information += np.diag(penalties + 1e-9)
            step, scale = np.linalg.solve(information, gradient), 1.0
        return cls(beta, np.asarray(np.linalg.inv(information), dtype=np.float64))

    def risk(self, X: Floats) -> Floats:
        """The logarithm of the relative risk of each row; larger means earlier events."""
        return np.asarray(X @ self.coefficients)


def _from_the_end(values: Any) -> Floats:
    """Sums of each value and all values after it."""
    return np.cumsum(values[::-1], axis=0)[::-1]


def adjusted_residuals(outcome: Survival, covariates: Floats) -> Floats:
    """Martingale residuals of the Cox model with (standardized) covariates."""
    outcome.residuals()  # refuses outcomes without events
    line = Cox.fit(covariates, outcome, 1e-3).risk(covariates)
    return outcome.residuals(np.exp(np.clip(line - line.mean(), -LARGEST_EXPONENT, LARGEST_EXPONENT)))


def held_out_risk(X: Floats, outcome: Survival, train: Any, test: Any, weights: Floats | None = None) -> Floats:
    """Risk of the test rows by a Cox model of the training rows, above its median over the training rows."""
    scaling = on_scaled_columns()
    part = scaling.fit_transform(X[train])
    model = Cox.fit(part, outcome.take(train), weights=None if weights is None else weights[train])
    return model.risk(scaling.transform(X[test])) - float(np.median(model.risk(part)))


@dataclass(eq=False, repr=False)
class CoxModel(Criterion):
    """Concordance index on held-out rows of a Cox model with a ridge penalty; y is a survival outcome."""

    prefer = "processes"

    _: KW_ONLY
    task: str = "auto"

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundCoxModel:
        outcome = Survival.of(y)
        if outcome is None:
            raise ParameterError("a Cox model needs a survival outcome: give y with events and times")
        folds = Folds.of(cv, outcome.event.astype(np.int64), is_classification=True, groups=groups)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return BoundCoxModel(X, outcome, folds, weights)


@dataclass(frozen=True, eq=False)
class BoundCoxModel:
    X: Any
    outcome: Survival
    folds: Folds
    weights: Floats | None

    def __call__(self, subsets: Subsets) -> Floats:
        return np.array([self._score(subsets[k]) for k in range(len(subsets))])

    def _score(self, subset: NDArray[np.int32]) -> float:
        X = self.X[:, subset]
        X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        scores = []
        for train, test in self.folds.splits:
            risk = held_out_risk(X, self.outcome, train, test, self.weights)
            weights = None if self.weights is None else self.weights[test]
            scores.append(concordance(self.outcome.take(test), risk, weights))
        return float(np.mean(scores))


def error_of_guessing(outcome: Survival) -> float:
    """Standard error of the concordance of a random risk, for all rows."""
    random = np.random.default_rng(0)
    return float(np.std([concordance(outcome, random.random(len(outcome.time))) for _ in range(N_GUESSES)]))


# ---- curves


@dataclass(frozen=True, eq=False)
class KaplanMeier:
    """Estimated share of rows without an event after each time, with its 95% interval (on the log-log scale)."""

    times: Floats
    share: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, outcome: Survival) -> KaplanMeier:
        curve = ecdf(CensoredData.right_censored(outcome.time, ~outcome.event)).sf
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # no interval where the share is 0 or 1
            interval = curve.confidence_interval(method="log-log")
        share = curve.probabilities
        ends = (
            np.where(np.isnan(end.probabilities), share, end.probabilities) for end in (interval.low, interval.high)
        )
        return cls(np.append(0.0, curve.quantiles), *(np.append(1.0, part) for part in (share, *ends)))


def hazard_ratio(x: Floats, outcome: Survival) -> tuple[float, float, float]:
    """Hazard ratio of a column in a Cox model with this column only, and its 95% interval (Wald)."""
    model = Cox.fit(np.asarray(x, dtype=np.float64)[:, None], outcome, 1e-6)
    beta, error = float(model.coefficients[0]), 1.96 * float(np.sqrt(model.covariance[0, 0]))
    ratio, low, high = np.exp(np.clip([beta, beta - error, beta + error], -LARGEST_EXPONENT, LARGEST_EXPONENT))
    return float(ratio), float(low), float(high)


def hazard_ratios(values: Floats, target: Target) -> dict[str, Floats]:
    """Hazard ratio of each column for one standard deviation more, with its 95% interval; NaN for constant columns."""
    assert target.survival is not None
    ratios = np.full((3, values.shape[1]), np.nan)
    for column, cells in enumerate(values.T):
        known = np.isfinite(cells)
        outcome, cells = target.survival.take(known), cells[known]
        if outcome.event.any() and cells.std() > 0:
            ratios[:, column] = hazard_ratio((cells - cells.mean()) / cells.std(), outcome)
    return dict(zip(("hazard_ratio", "hazard_ratio_low", "hazard_ratio_high"), ratios, strict=True))
