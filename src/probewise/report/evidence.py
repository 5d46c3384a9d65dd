"""What the ledger and the data say about a ranking: convergence, sizes, likeness, interplay, features on their own.

Each function gives a dict of plain values, or raises `Unknown` with the reason why it cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from ..checks.tables import columns_not_finite
from ..criteria import KNN, Criterion, Linear, NaiveBayes
from ..criteria.base import Target
from ..probing.interactions import (
    ALIKE,
    FEWEST_IN_A_CELL,
    Pair,
    best_probed,
    correlations,
    interactions_between,
    stand_in,
)
from ..probing.probes import Subsets
from ..probing.run import CHANCE as CHANCE
from ..probing.units import one_hot
from ..selectors.base import WrapperSelector
from ..selectors.bif import BIF
from ..selectors.fsdd import FSDD
from ..selectors.size_curve import (
    FOLDS,
    SizeCurve,
    SubsetScorer,
    TooFewRows,
    as_sizes,
    chosen,
    curve_along,
    ranked_anew,
    ranks_known,
    spaced_sizes,
    splits_for,
    up_to_rank,
)
from .findings import Findings, Floats
from .words import quoted

NEEDS_DATA = "the data were not given"
LOOKS_SHOWN = 200
LIKENED = 30
TOGETHER, STRONGEST = 20, 10
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

    def numbers(self, columns: Columns) -> Floats:
        """Some columns, dense."""
        chosen = self.X[:, columns]
        return np.asarray(chosen.toarray() if sp.issparse(chosen) else chosen, dtype=np.float64)


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


def convergence(found: Findings) -> dict[str, Any]:
    """C, C2, and what two halves of the probes share of the top, look by look."""
    run, top = found.run, found.top
    assert run is not None
    assert run.record is not None
    n_probes, every = run.ledger.n_probes, run.record.check_every
    if run.record.narrowing is None:  # which asks at every look
        every *= max(1, -(-n_probes // (every * LOOKS_SHOWN)))
    if n_probes < 2 * every:
        raise Unknown(f"it takes two looks, and the run of {n_probes:,} probes had one every {every:,}")
    looks = run.looks(check_every=every, tops=[top])
    looks = looks[(len(looks) - 1) % (1 + len(looks) // LOOKS_SHOWN) :: 1 + len(looks) // LOOKS_SHOWN]
    measures = ("seconds", "order_change", "value_change", "relative_change")
    return {
        "every": every,
        "top": top,
        "probes": [look.n_probes for look in looks],
        **{name: numbers([getattr(look, name) for look in looks]) for name in measures},
        "overlap": numbers([look.overlap[top] for look in looks]),
    }


def interactions(found: Findings, data: Data | None = None) -> dict[str, Any]:
    """For each pair of the top features: do they help each other, or stand in for each other? And in what groups?

    The contrast is mean J of probes with both, less with only the one, less with only the other, plus with neither. J
    is less the mean of probes of like size, since larger probes hold more pairs and are better anyway. The columns, if
    there are data, are further evidence for the groups.
    """
    run = found.run
    assert run is not None
    top = best_probed(found.ranking, found.scores)[:TOGETHER]
    pairs = interactions_between(run, top, [found.names[k] for k in top.tolist()])
    if np.isfinite(pairs.contrast).mean() < 0.1:
        raise Unknown(
            f"pairs of the top features met in fewer than {FEWEST_IN_A_CELL} probes: more or larger probes would tell"
        )
    return {
        "features": top.tolist(),
        "contrast": [numbers(row) for row in pairs.contrast],
        "std_error": [numbers(row) for row in pairs.std_error],
        "pairs": len(pairs.pairs()),
        "strongest": [_pair(pair) for pair in pairs.pairs()[:STRONGEST]],
        "groups": [
            {
                "features": list(group.features),
                "evidence": list(group.evidence),
                "words": stand_in([quoted(name) for name in group.names]),
            }
            for group in pairs.groups(None if data is None else _correlations(found, data, top))
        ],
        "by_columns": data is not None,
    }


def _pair(pair: Pair) -> dict[str, Any]:
    first, second = pair.columns
    kept = {"contrast": pair.contrast, "std_error": pair.std_error, "z": pair.z, "p_holm": pair.p, "kind": pair.kind}
    return {"first": first, "second": second, **kept}


# ---- from the data


def likeness(found: Findings, data: Data) -> dict[str, Any]:
    """|Pearson correlation| between the top features, and the pairs that are nearly the same."""
    top = found.order[:LIKENED]
    correlation = _correlations(found, data, top)
    first, second = np.triu_indices(len(top), k=1)
    close = np.flatnonzero(correlation[first, second] >= ALIKE)
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
        "limit": ALIKE,
    }


def _correlations(found: Findings, data: Data, columns: Columns) -> Floats:
    """|Pearson correlation| of columns; the numbers of a category mean nothing, and go with no others."""
    related = correlations(data.numbers(columns))
    if len(found.categorical):
        kinds = np.isin(columns, found.categorical)
        related[kinds], related[:, kinds] = 0.0, 0.0
        related[kinds, kinds] = 1.0
    return related


def accuracy_by_size(found: Findings, data: Data | None) -> dict[str, Any]:
    """Cross-validated score of the best 1, 2, ... features, and the smallest number that is good enough.

    It is the curve that the run made itself, if it did. Else a filter is fitted anew on the training rows of each fold;
    other rankings were made on all rows, so that their scores are optimistic.
    """
    curve = getattr(found.selector, "size_curve_", None) or _size_curve(found, data)
    return {
        "size": curve.sizes.tolist(),
        "score": numbers(curve.mean),
        "std_error": numbers(curve.std_error),
        "best": curve.best,
        "suggested": curve.suggested,
        "measure": curve.measure,
        "judge": curve.scored_by,
        "folds": len(curve.scores),
        "honest": curve.nested,
        "guess": curve.guess,
        "beats_guessing": curve.beats_guessing,
        "checked": None if curve.check is None else numbers(curve.check.mean),
    }


def _size_curve(found: Findings, data: Data | None) -> SizeCurve:
    if data is None:
        raise Unknown(NEEDS_DATA)
    if data.target is None or data.y is None:
        raise Unknown("there is no target to predict")
    try:
        splits = splits_for(FOLDS, data.target)
    except TooFewRows as reason:
        raise Unknown(str(reason)) from None
    selector, anew = found.selector, _is_fitted_anew(found, data)
    known = ranks_known(found.ranking, found.scores)
    sizes = spaced_sizes(known) if selector is None else as_sizes(selector)

    def choose(rows: Columns) -> list[Columns]:
        if selector is None:
            return up_to_rank(found.ranking, sizes.tolist())
        return chosen(_fitted_anew(found, data, rows, sizes.tolist()) if anew else selector, sizes.tolist())

    return curve_along(
        choose,
        *_criterion_input(found, data),
        data.y,
        data.target,
        sizes=sizes,
        splits=splits,
        scorer=SubsetScorer.like(found.criterion, data.X, data.target, _scoring(found)),
        nested=anew,
    )


def _criterion_input(found: Findings, data: Data) -> tuple[Any, Subsets | None]:
    """What the criterion sees of the data, also where there is a ledger only."""
    if len(found.categorical):
        return one_hot(data.X, np.isin(np.arange(data.X.shape[1]), found.categorical))
    return data.X, None


def _scoring(found: Findings) -> Any:
    """The score asked for; a ledger has it by name."""
    return found.settings.get("scoring") if found.selector is None else getattr(found.selector, "scoring", None)


def _is_fitted_anew(found: Findings, data: Data) -> bool:
    if found.selector is None or isinstance(found.selector, WrapperSelector):
        return False
    return isinstance(found.selector, FSDD) or data.X.shape[0] * data.X.shape[1] <= REFITTED_CELLS


def _fitted_anew(found: Findings, data: Data, rows: Columns, sizes: list[int]) -> Any:
    """A copy of a filter, fitted to some rows; which columns are discrete it is told, since names are lost."""
    assert data.y is not None
    selector = clone(found.selector)
    if data.discrete is not None and isinstance(selector.get_params(deep=False).get("discrete_features"), str):
        selector.set_params(discrete_features=data.discrete)
    return ranked_anew(selector, data.X, data.y, rows, sizes, {})


def alone(found: Findings, clear: NDArray[np.bool_] | None, data: Data) -> dict[str, Any]:
    """The ranks of features judged one at a time (BIF, FSDD), and which of the top only company revealed.

    These are low alone by all such ranks and, where it is known, ``clear`` of chance.
    """
    if data.target is None or data.y is None:
        raise Unknown("there is no target to predict")
    if len(columns_not_finite(data.X)):
        raise Unknown("values are missing")
    if len(found.categorical):
        raise Unknown("some columns are categories, which these methods do not know")
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


def _rarest(data: Data) -> int:
    """Rows of the smallest class."""
    assert data.target is not None
    return int(np.bincount(data.target.values).min())


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
