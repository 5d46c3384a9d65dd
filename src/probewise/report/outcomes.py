"""Sections of a report on survival outcomes, on covariates, and on several targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..evaluation import NestedScore, adjusted_scores
from ..evaluation.adjusted import NAMES
from ..evaluation.nested import HeldOutPredictions
from ..evaluation.survival import KaplanMeier, hazard_ratio
from ..validation.survival import Survival
from ..validation.tables import is_frame
from .findings import Data, Findings, Floats
from .ranking_table import columns_of, json_numbers

N_TIMES, MAX_STEPS = 5, 200
N_FEATURES = 20  # of the heat map


def survival(found: HeldOutPredictions, outcome: Survival) -> dict[str, Any]:
    """Kaplan-Meier curves of the halves with the higher and the lower predicted risk, on held-out samples."""
    is_high = found.predicted > 0
    longest = float(outcome.time.max())
    times = np.linspace(0, longest, N_TIMES)
    halves = []
    for name, rows in (("lower risk", ~is_high), ("higher risk", is_high)):
        own = outcome.take(rows)
        curves = [KaplanMeier.of(own)] if rows.any() else []
        steps = [_steps(each.times, part, longest) for each in curves for part in (each.share, each.low, each.high)]
        half = {"name": name, "rows": int(rows.sum()), "events": int(own.event.sum())}
        half["at_risk"] = [int((own.time >= time).sum()) for time in times]
        halves.append({**half, "curve": steps[0] if steps else [], "band": steps[1:]})
    are_compared = all(half["events"] for half in halves)
    ratio = json_numbers(hazard_ratio(is_high.astype(np.float64), outcome)) if are_compared else None
    return {
        "size": found.size,
        "model": "a Cox model with a ridge penalty",
        "rows": len(outcome.time),
        "events": int(outcome.event.sum()),
        "times": json_numbers(times),
        "halves": halves,
        "hazard_ratio": ratio,
    }


def _steps(times: Floats, shares: Floats, longest: float) -> list[list[float]]:
    """Corners of a step function: shares of the longest time, and values; at most 200 steps."""
    changes = np.flatnonzero(np.diff(shares, prepend=np.nan) != 0)
    changes = changes[np.unique(np.linspace(0, len(changes) - 1, MAX_STEPS).astype(int))]
    x = np.append(times[changes], times[-1]) / (longest or 1.0)
    corners = [(x[i + k], shares[at]) for i, at in enumerate(changes) for k in (0, 1)]
    return [[round(float(a), 4), round(float(b), 4)] for a, b in corners]


def names_of_covariates(adjust: Any) -> list[str]:
    """Names of the columns of ``adjust``, or numbers."""
    if is_frame(adjust):
        return [str(name) for name in adjust.columns]
    shape = np.shape(adjust)
    return [f"covariate {number}" for number in range(1, 1 + (1 if len(shape) == 1 else shape[1]))]


def adjustment(findings: Findings, data: Data, score: NestedScore | None) -> dict[str, Any]:
    """The covariates, and held-out scores of models of the covariates, of the features, and of both."""
    found: dict[str, Any] = {"names": names_of_covariates(data.fit_arguments["adjust"]), "scores": None, "adds": None}
    if score is None or findings.selector is None or data.target is None or data.y is None:
        return found
    matrix = findings.selector._criterion_input(data.X)[0]
    scores = adjusted_scores(score, matrix, data.y, data.target, data.fit_arguments["adjust"])
    found["scores"] = {name: json_numbers(scores.summary(name)) for name in NAMES}
    return {**found, "measure": scores.measure, "adds": scores.adds}


def several(findings: Findings, data: Data, found: HeldOutPredictions | None) -> dict[str, Any]:
    """Held-out R² of each target, and the correlation of the best features with each target."""
    target = data.target
    assert target is not None
    top = findings.order[:N_FEATURES]
    values, scores = columns_of(data.X, top), None
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = ((part - part.mean(axis=0)) / part.std(axis=0) for part in (values, target.values))
        heat = x.T @ y / len(y)
    if found is not None:
        errors = ((found.predicted - target.values) ** 2).mean(axis=0)
        scores = {"r2": json_numbers(1 - errors / target.values.var(axis=0)), "rmse": json_numbers(np.sqrt(errors))}
    names = data.target_names or [f"target {number}" for number in range(1, target.n_targets + 1)]
    return {"targets": names, "features": findings.names_of(top), "correlation": json_numbers(heat), "scores": scores}
