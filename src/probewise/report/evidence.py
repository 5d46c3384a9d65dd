"""What the ledger and the data say about a ranking: convergence, sizes, likeness, interplay, features on their own.

Each function gives a dict of plain values, or raises `Unknown` with the reason why it cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..criteria import KNN, TALL, Criterion, Function, Linear, NaiveBayes, Scorer, Separability
from ..criteria.base import Target
from ..engine import Knowledge, replay
from ..inputs import columns_not_finite
from ..interactions import FEWEST_IN_A_CELL, mean_by_size, pair_contrasts
from ..probes import Subsets
from ..selectors.base import WrapperSelector
from ..selectors.bif import BIF
from ..selectors.fsdd import FSDD
from ..stopping import ORDER, VALUE
from ..tally import TallySheet
from .findings import Findings, Floats, Probed

LOOKS_SHOWN = 200
CHANCE = 0.05
LARGEST, STEPS, FOLDS = 100, 16, 5
ALIKE, NEARLY_THE_SAME = 30, 0.9
TOGETHER = 20
REFITTED_CELLS = 4_000_000  # a filter is fitted anew in each fold up to this much data
ALONE_CELLS = 500_000_000
ALONE_DISTANCES = 4_000_000_000  # rows² x features, up to which k-NN judges features one at a time
REVEALED, REVEALED_SHOWN = 20, 15

Columns = NDArray[np.int64]


class Unknown(Exception):
    """A part of the report that cannot be made, and why, for the reader."""


@dataclass(frozen=True, eq=False)
class Data:
    """The rows a ranking was made on, and what is to be predicted."""

    X: Any
    target: Target | None
    y: NDArray[Any] | None
    discrete: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, X: Any, y: Any, criterion: Criterion | None, discrete: NDArray[np.bool_] | None = None) -> Data:
        X = X.tocsc() if sp.issparse(X) else X
        y = None if y is None else np.asarray(y)
        return cls(X, None if y is None else Target.of(y, getattr(criterion, "task", "auto")), y, discrete)

    @property
    def is_classification(self) -> bool:
        return self.target is not None and self.target.is_classification

    def take(self, columns: Columns) -> Any:
        return self.X[:, columns]


def described(data: Data) -> dict[str, Any]:
    """Shape, classes, missing cells and constant columns."""
    X = data.X
    low, high, missing = _ranges(X)
    told: dict[str, Any] = {
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "sparse": bool(sp.issparse(X)),
        "missing_cells": int(missing.sum()),
        "missing_columns": np.flatnonzero(missing).tolist(),
        "constant_columns": np.flatnonzero(low == high).tolist(),
    }
    if data.target is None or data.y is None:
        return told
    if data.target.classes is None:
        y = data.target.values
        spread = {"least": y.min(), "mean": y.mean(), "largest": y.max(), "deviation": y.std()}
        return {**told, "task": "regression", "target_values": {name: float(value) for name, value in spread.items()}}
    counts = np.bincount(data.target.values, minlength=len(data.target.classes))
    classes = [
        {"label": str(label), "rows": int(rows)} for label, rows in zip(data.target.classes, counts, strict=True)
    ]
    return {**told, "task": "classification", "classes": classes}


def _ranges(X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Of each column: the least and the largest value, and how many are missing."""
    if not sp.issparse(X):
        step = max(1, 2**22 // max(1, X.shape[0]))
        parts = [_dense_ranges(X[:, start : start + step]) for start in range(0, X.shape[1], step)]
        low, high, missing = (np.concatenate(part) for part in zip(*parts, strict=True))
        return low, high, missing
    missing = np.zeros(X.shape[1], np.int64)
    if X.dtype.kind == "f":
        coordinates = X.tocoo()
        np.add.at(missing, coordinates.col[np.isnan(coordinates.data)], 1)
    return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel(), missing


def _dense_ranges(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    if X.dtype.kind != "f":
        return X.min(axis=0), X.max(axis=0), np.zeros(X.shape[1], np.int64)
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0), np.isnan(X).sum(axis=0)


# ---- from the ledger


def convergence(probed: Probed | None) -> dict[str, Any]:
    """C, C2, and what two halves of the probes share of the top, look by look."""
    if probed is None:
        raise Unknown("this method makes no probes")
    ledger, every = probed.ledger, probed.check_every
    every *= max(1, -(-ledger.n_probes // (every * LOOKS_SHOWN)))
    if ledger.n_probes < 2 * every:
        raise Unknown(f"it takes two looks, and the run of {ledger.n_probes:,} probes had one every {every:,}")
    knowledge = Knowledge(
        probed.plan,
        ledger,
        block_size=probed.block_size,
        check_every=every,
        watch=frozenset({ORDER, VALUE, probed.top}),
    )
    looks = []
    while knowledge.known < ledger.n_probes:
        knowledge.learn()
        if knowledge.known % every == 0:
            looks.append(knowledge.looks[-1])
    return {
        "every": every,
        "top": probed.top,
        "probes": [look.n_probes for look in looks],
        "seconds": numbers([look.seconds for look in looks]),
        "order_change": numbers([look.order_change for look in looks]),
        "value_change": numbers([look.value_change for look in looks]),
        "relative_change": numbers([look.relative_change for look in looks]),
        "overlap": numbers([look.overlap[probed.top] for look in looks]),
    }


def standing_out(probed: Probed) -> NDArray[np.bool_]:
    """Which features do more for a probe than the average feature in their place, by more than the luck of the draw.

    Larger probes are better and hold more features, so that even noise has a score above 0: here J is less the mean of
    probes of like size. Chance is held at 5 % for all features together (Bonferroni).
    """
    plan, ledger = probed.plan, probed.ledger
    typical = mean_by_size(plan, ledger)
    sheet = TallySheet(plan.n_features)
    for subsets, values in replay(plan, ledger):
        sheet.add(subsets, values - typical[subsets.sizes])
    tally = sheet.view()
    enough = np.minimum(tally.counts, tally.n_probes - tally.counts) >= FEWEST_IN_A_CELL
    if not enough.any():
        return enough
    gains = tally.daf0()
    rounding = 1e-9 * float(ledger.values().std())
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (gains - gains[enough].mean()) / (tally.std_errors() + rounding)
    return enough & (ratio > -ndtri(CHANCE / plan.n_features))


def interactions(found: Findings) -> dict[str, Any]:
    """For each pair of the top features: do they help each other, or stand in for each other?

    The contrast is mean J of probes with both, less with only the one, less with only the other, plus with neither. J
    is less the mean of probes of like size, since larger probes hold more pairs and are better anyway.
    """
    if found.probed is None:
        raise Unknown("this method makes no probes")
    plan, ledger = found.probed.plan, found.probed.ledger
    top = found.order[:TOGETHER]
    contrast, errors = pair_contrasts(plan, ledger, top)
    if np.isfinite(contrast).mean() < 0.1:
        raise Unknown(
            f"pairs of the top features met in fewer than {FEWEST_IN_A_CELL} probes: more or larger probes would tell"
        )
    return {
        "features": top.tolist(),
        "contrast": [numbers(row) for row in contrast],
        "std_error": [numbers(row) for row in errors],
        "strongest": _strongest(contrast, errors, top),
    }


def _strongest(contrast: Floats, errors: Floats, top: Columns, shown: int = 10) -> list[dict[str, Any]]:
    """The pairs furthest from 0 for their standard error."""
    first, second = np.triu_indices(len(top), k=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(contrast[first, second] / errors[first, second])
    return [
        {
            "first": int(top[first[pair]]),
            "second": int(top[second[pair]]),
            "contrast": float(contrast[first[pair], second[pair]]),
            "std_error": float(errors[first[pair], second[pair]]),
        }
        for pair in np.argsort(-np.abs(ratio), kind="stable")[:shown].tolist()
        if ratio[pair]
    ]


# ---- from the data


def likeness(found: Findings, data: Data) -> dict[str, Any]:
    """|Pearson correlation| between the top features, and the pairs that are nearly the same."""
    top = found.order[:ALIKE]
    chosen = data.take(top)
    values = np.asarray(chosen.toarray() if sp.issparse(chosen) else chosen, dtype=np.float64)
    correlation = np.abs(_correlations(values))
    first, second = np.triu_indices(len(top), k=1)
    close = np.flatnonzero(correlation[first, second] >= NEARLY_THE_SAME)
    close = close[np.argsort(-correlation[first[close], second[close]], kind="stable")]
    return {
        "features": top.tolist(),
        "correlation": [numbers(row) for row in correlation],
        "nearly_the_same": [
            {
                "first": int(top[first[pair]]),
                "second": int(top[second[pair]]),
                "correlation": float(correlation[first[pair], second[pair]]),
            }
            for pair in close.tolist()
        ],
        "limit": NEARLY_THE_SAME,
    }


def _correlations(values: Floats) -> Floats:
    """Pearson's, over the rows where both are known; NaN for a constant column."""
    known = np.isfinite(values)
    if known.all():
        centred = values - values.mean(axis=0)
        length = np.sqrt((centred**2).sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return (centred.T @ centred) / np.outer(length, length)
    out = np.eye(values.shape[1])
    for first in range(values.shape[1]):
        for second in range(first):
            both = values[known[:, first] & known[:, second]][:, [first, second]]
            out[first, second] = out[second, first] = _correlations(both)[0, 1] if len(both) > 1 else np.nan
    return out


def accuracy_by_size(found: Findings, data: Data) -> dict[str, Any]:
    """Cross-validated score of the best 1, 2, ... features, and the smallest number that is good enough.

    Good enough: within one standard error (over folds) of the best. A filter is fitted anew on the training rows of
    each fold; other rankings were made on all rows, so that their scores are optimistic.
    """
    if data.target is None or data.y is None:
        raise Unknown("there is no target to predict")
    judge, name, scoring = _judge(found, data)
    splits = _splits(data)
    sizes = _sizes(found)
    anew = _is_fitted_anew(found, data)
    scores = []
    for split in splits:
        subsets = _fitted_anew(found, data, split[0], sizes) if anew else _best(found, sizes)
        columns = np.unique(np.concatenate(subsets))
        local = Subsets.of([np.searchsorted(columns, subset) for subset in subsets])
        scores.append(judge.bind(data.take(columns), data.y, [split], scoring=scoring)(local))
    values = np.array(scores)
    means, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(splits))
    best = int(np.argmax(means))
    suggested = int(np.flatnonzero(means >= means[best] - errors[best])[0])
    return {
        "size": sizes,
        "score": numbers(means),
        "std_error": numbers(errors),
        "best": sizes[best],
        "suggested": sizes[suggested],
        "measure": _measure(scoring, data),
        "judge": name,
        "folds": len(splits),
        "honest": anew,
        "guess": _guess(data) if scoring is None else None,
    }


def _judge(found: Findings, data: Data) -> tuple[Criterion, str, Any]:
    """The run's own criterion where it is cross-validated, else k-NN (ridge for many rows) on scaled columns."""
    own = found.criterion
    if own is not None and not isinstance(own, Separability | Function):
        scoring = getattr(own, "scoring", None) or getattr(found.selector, "scoring", None)
        return own, f"the criterion of the run, {own.describe()}", scoring
    estimator: Any
    if data.X.shape[0] > TALL:
        estimator = RidgeClassifier() if data.is_classification else RidgeCV()
    else:
        estimator = KNeighborsClassifier(3) if data.is_classification else KNeighborsRegressor(3)
    scaler = StandardScaler(with_mean=not sp.issparse(data.X))
    has_gaps = bool(len(columns_not_finite(data.X)))
    steps = [SimpleImputer(), scaler, estimator] if has_gaps else [scaler, estimator]
    words = "3 nearest neighbours" if data.X.shape[0] <= TALL else "a ridge model"
    return Scorer(make_pipeline(*steps)), f"{words}, on scaled columns{', gaps filled' if has_gaps else ''}", None


def _splits(data: Data) -> list[tuple[Columns, Columns]]:
    assert data.target is not None
    rows = np.empty((len(data.target.values), 0))
    if len(rows) < 2 * FOLDS:
        raise Unknown(f"{len(rows)} rows are too few to cross-validate")
    if not data.is_classification:
        return list(KFold(FOLDS, shuffle=True, random_state=0).split(rows))
    rarest = _rarest(data)
    if rarest < 2:
        raise Unknown("a class has a single row, so that it cannot be both learnt and tested")
    folds = StratifiedKFold(min(FOLDS, rarest), shuffle=True, random_state=0)
    return list(folds.split(rows, data.target.values))


def _rarest(data: Data) -> int:
    """Rows of the smallest class."""
    assert data.target is not None
    return int(np.bincount(data.target.values).min())


def _sizes(found: Findings) -> list[int]:
    path = getattr(found.selector, "path_", None)
    if path is not None:
        return sorted(path)[: 2 * STEPS]
    usable = int(np.isfinite(found.scores).sum()) or 1
    return np.unique(np.geomspace(1, min(LARGEST, usable), STEPS).round().astype(int)).tolist()


def _best(found: Findings, sizes: list[int]) -> list[Columns]:
    path = getattr(found.selector, "path_", None)
    if path is not None:
        return [np.array(path[size][1], dtype=np.int64) for size in sizes]
    return [found.order[:size] for size in sizes]


def _is_fitted_anew(found: Findings, data: Data) -> bool:
    if found.selector is None or isinstance(found.selector, WrapperSelector):
        return False
    return isinstance(found.selector, FSDD) or data.X.shape[0] * data.X.shape[1] <= REFITTED_CELLS


def _fitted_anew(found: Findings, data: Data, rows: Columns, sizes: list[int]) -> list[Columns]:
    assert data.y is not None
    selector = clone(found.selector)
    parameters = selector.get_params(deep=False)
    if "n_features_to_select" in parameters:
        selector.set_params(n_features_to_select=max(sizes))
    if data.discrete is not None and isinstance(parameters.get("discrete_features"), str):
        selector.set_params(discrete_features=data.discrete)
    X = data.X.tocsr()[rows] if sp.issparse(data.X) else data.X[rows]
    order = np.argsort(selector.fit(X, data.y[rows]).ranking_, kind="stable")
    return [order[:size] for size in sizes]


def _measure(scoring: Any, data: Data) -> str:
    if scoring is not None:
        return scoring if isinstance(scoring, str) else "score"
    return "accuracy" if data.is_classification else "R²"


def _guess(data: Data) -> float:
    """What one gets without any feature."""
    assert data.target is not None
    if not data.is_classification:
        return 0.0
    return float(np.bincount(data.target.values).max() / len(data.target.values))


def alone(found: Findings, clear: NDArray[np.bool_] | None, data: Data) -> dict[str, Any]:
    """The ranks of features judged one at a time (BIF, FSDD), and which of the top only company revealed.

    These are low alone by all such ranks and, where it is known, ``clear`` of chance.
    """
    if data.target is None or data.y is None:
        raise Unknown("there is no target to predict")
    if len(columns_not_finite(data.X)):
        raise Unknown("values are missing")
    ranks: dict[str, Columns] = {}
    words: dict[str, str] = {}
    criterion = _alone_criterion(found, data)
    if found.method != "BIF" and criterion is not None:
        n_jobs = getattr(found.selector, "n_jobs", None)
        cv = min(3, _rarest(data)) if data.is_classification else 3
        ranks["bif"] = BIF(criterion=criterion, cv=cv, n_jobs=n_jobs).fit(data.X, data.y).ranking_
        words["bif"] = f"BIF, {criterion.describe()} on each feature alone"
    if found.method != "FSDD" and data.is_classification:
        ranks["fsdd"] = FSDD().fit(data.X, data.y).ranking_
        words["fsdd"] = "FSDD, how far the classes lie apart in each feature alone"
    if not ranks:
        raise Unknown("the table is too large, or the run judged features alone itself")
    top = found.order[: min(REVEALED, max(1, len(found.order) // 4))]
    best_alone = np.min([rank[top] for rank in ranks.values()], axis=0)
    low_alone = best_alone > 3 * len(top)
    revealed = top[low_alone if clear is None else low_alone & clear[top]]
    return {
        "ranks": {name: rank.tolist() for name, rank in ranks.items()},
        "words": words,
        "top": len(top),
        "shared": {name: int((rank[top] <= len(top)).sum()) for name, rank in ranks.items()},
        "revealed": revealed[:REVEALED_SHOWN].tolist(),
        "n_revealed": len(revealed),
    }


def _alone_criterion(found: Findings, data: Data) -> Criterion | None:
    """The run's own where it is quick on single features, else a quick one; None where there is too much data."""
    rows, features = data.X.shape
    if rows * features > ALONE_CELLS or (data.is_classification and _rarest(data) < 2):
        return None
    own = found.criterion
    if isinstance(own, Linear | NaiveBayes) or (isinstance(own, KNN) and rows**2 * features <= ALONE_DISTANCES):
        return own
    return NaiveBayes() if data.is_classification else Linear(task="regression")


def numbers(values: Any) -> list[float | None]:
    """Plain numbers; what is not finite is None, since JSON has no word for it."""
    return [float(value) if np.isfinite(value) else None for value in values]
