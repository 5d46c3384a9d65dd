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

MAX_STEPS = 200
N_FEATURES = 20  # of the heat map


def survival(found: HeldOutPredictions, outcome: Survival) -> dict[str, Any]:
    """Kaplan-Meier curves of the halves with the higher and the lower predicted risk, on held-out samples."""
    is_high = found.predicted > 0
    times = _round_times(float(outcome.time.max()))
    halves = []
    for name, rows in (("lower risk", ~is_high), ("higher risk", is_high)):
        if not rows.any():
            continue
        half = outcome.take(rows)
        halves.append(
            {
                "name": name,
                "rows": int(rows.sum()),
                "events": int(half.event.sum()),
                "at_risk": [int((half.time >= time).sum()) for time in times],
                "curve": _steps(KaplanMeier.of(half)),
            }
        )
    are_compared = len(halves) == 2 and all(half["events"] for half in halves)
    return {
        "size": found.size,
        "rows": len(outcome.time),
        "events": int(outcome.event.sum()),
        "times": json_numbers(times),
        "halves": halves,
        "hazard_ratio": json_numbers(hazard_ratio(is_high.astype(np.float64), outcome)) if are_compared else None,
    }


def _round_times(longest: float) -> Floats:
    """Three to six times from 0 with a round distance."""
    unit = 10.0 ** np.floor(np.log10(longest / 4))
    step = unit * next(factor for factor in (1, 2, 5, 10) if factor * unit >= longest / 4)
    return np.arange(0.0, longest, step)


def _steps(curve: KaplanMeier) -> dict[str, Any]:
    """Corners of the curve and of its interval; at most 200 steps are drawn."""
    changes = np.flatnonzero(np.diff(curve.share, prepend=np.nan) != 0)
    changes = changes[np.unique(np.linspace(0, len(changes) - 1, MAX_STEPS).astype(int))]
    x = np.repeat(np.append(curve.times[changes], curve.times[-1]), 2)[1:-1]
    ends = {"y": curve.share, "low": curve.low, "high": curve.high}
    return {"x": json_numbers(x), **{name: json_numbers(np.repeat(end[changes], 2)) for name, end in ends.items()}}


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
