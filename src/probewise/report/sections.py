"""Computed sections of a report: data, convergence, redundancy, scores by size, held-out predictions, stability.

Each function returns a dict of JSON values, or raises `Unavailable` with the reason why the section cannot be computed.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..bif import BIF
from ..criteria import KNN, Criterion, Linear, NaiveBayes, in_prose
from ..engine.probes import Subsets
from ..engine.units import one_hot
from ..evaluation import nested_score as evaluate_nested
from ..evaluation import selection_frequency
from ..evaluation import sizes as size_curve
from ..evaluation.nested import FEW_ROWS, MODELS, HeldOutPredictions, held_out_predictions
from ..evaluation.subsets import copies_and_bands, distinct_ranking
from ..filters.fsdd import FSDD
from ..validation.stores import column_slices
from ..validation.tables import columns_not_finite, extremes
from .findings import Data, Findings, Floats
from .ranking_table import columns_of, json_numbers
from .sentences import MEASURES

NO_DATA, NO_TARGET = "the data were not given", "there is no target to predict"
MAX_CONFUSED = 10  # classes of a confusion matrix
IMBALANCED = 0.4  # share of the rarest class, relative to an equal share
N_NAMED = 10  # columns with missing values, and constant columns
MAX_CHECKS = 200
N_STANDING = 20  # suggested features of which near copies are shown
N_CORRELATED, SIMILAR = 30, 0.9  # absolute correlation of nearly identical features
N_DRAWN, MAX_CLASSES, MAX_POINTS, MAX_SAMPLES = 12, 6, 40, 200
REFIT_CELLS = 4_000_000  # filters are refitted in each fold for tables up to this size
UNIVARIATE_CELLS = 500_000_000
UNIVARIATE_DISTANCES = 4_000_000_000  # rows² x features up to which k-NN scores single features
N_UNIVARIATE = 20

Columns = NDArray[np.int64]


class Unavailable(ValueError):
    """A section that cannot be computed; the message is the reason shown to the reader."""


# ---- from the ledger


def convergence(findings: Findings) -> dict[str, Any]:
    """C, C2 and the share of the top on which two halves of the probes agree, at each check."""
    run, top = findings.run, findings.top
    assert run is not None
    assert top is not None
    if run.in_rounds:
        raise Unavailable("the features change from round to round, so two checks cannot be compared")
    n_probes, every = run.ledger.n_probes, run.settings.check_every
    every *= max(1, -(-n_probes // (every * MAX_CHECKS)))
    if n_probes < 2 * every:
        raise Unavailable(f"two checks are needed, and this run of {n_probes:,} probes had one check every {every:,}")
    checks = run.looks(check_every=every, tops=[top])
    measures = ("seconds", "order_change", "value_change", "relative_change")
    return {
        "every": every,
        "top": top,
        "probes": [check.n_probes for check in checks],
        **{name: json_numbers([getattr(check, name) for check in checks]) for name in measures},
        "overlap": json_numbers([check.overlap[top] for check in checks]),
    }


# ---- from the data


def description(findings: Findings, data: Data) -> dict[str, Any]:
    """Shape, classes or values of the target, missing cells and constant columns."""
    X, target = data.X, data.target
    (low, high), missing = extremes(X, allow_nan=True), _missing_cells(X)
    columns = {"missing": np.flatnonzero(missing), "constant": np.flatnonzero(low == high)}
    result: dict[str, Any] = {
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "sparse": bool(sp.issparse(X)),
        "missing_cells": int(missing.sum()),
        **{f"{kind}_columns": len(numbers) for kind, numbers in columns.items()},
        **{f"{kind}_names": findings.names_of(numbers[:N_NAMED]) for kind, numbers in columns.items()},
    }
    if target is None:
        return result
    if target.classes is None:
        y = target.values
        statistics = {"min": y.min(), "mean": y.mean(), "max": y.max(), "std": y.std()}
        values = {name: float(value) for name, value in statistics.items()}
        if target.survival is not None:
            time = target.survival.time
            times = {"min": float(time.min()), "median": float(np.median(time)), "max": float(time.max())}
            return {**result, "task": "survival", "events": int(target.survival.event.sum()), "times": times}
        return {**result, "task": "regression", "target_values": None if target.n_targets > 1 else values}
    counts = np.bincount(target.values, minlength=len(target.classes)).tolist()
    classes = [{"label": str(label), "rows": rows} for label, rows in zip(target.classes, counts, strict=True)]
    return {**result, "task": "classification", "classes": classes}


def _missing_cells(X: Any) -> NDArray[np.int64]:
    """Number of missing values in each column."""
    if sp.issparse(X):
        cells = X.tocoo()
        return np.bincount(cells.col[np.isnan(cells.data)], minlength=X.shape[1])
    return np.concatenate([np.isnan(X[:, part]).sum(axis=0) for part in column_slices(X)])


def values(findings: Findings, data: Data) -> dict[str, Any]:
    """Values of the first features, by class or against the target, reduced to a number that can be drawn.

    Each class has its quartiles, minimum and maximum, and at most 40 of its values, evenly spaced in sorted order. Of
    more than 6 classes the largest 6 are drawn. For a numeric target at most 200 evenly spaced samples are drawn.
    """
    if data.target is None:
        raise Unavailable(NO_TARGET)
    if data.target.n_targets > 1:
        raise Unavailable("there are several targets")
    drawn, target = findings.order[:N_DRAWN], data.target
    drawn = drawn[~np.isin(drawn, findings.categorical)]
    values, features = columns_of(data.X, drawn), findings.names_of(drawn)
    if target.classes is None:
        rows = evenly_spaced(len(values), MAX_SAMPLES)
        y, by_feature = json_numbers(target.values[rows]), json_numbers(values[rows].T)
        what = "the target" if target.survival is None else "the martingale residual (high: an early event)"
        return {"features": features, "target": y, "values": by_feature, "what": what}
    sizes = np.bincount(target.values, minlength=len(target.classes))
    codes = np.sort(np.argsort(-sizes, kind="stable")[:MAX_CLASSES])
    by_class = [[_box_and_points(column[target.values == code]) for code in codes] for column in values.T]
    return {
        "features": features,
        "classes": [str(target.classes[code]) for code in codes],
        "left_out": len(sizes) - len(codes),
        "boxes": [[box for box, _ in classes] for classes in by_class],
        "points": [[points for _, points in classes] for classes in by_class],
    }


def _box_and_points(values: Floats) -> tuple[list[float] | None, list[float]]:
    known = np.sort(values[np.isfinite(values)])
    if not len(known):
        return None, []
    quartiles = np.quantile(known, (0, 0.25, 0.5, 0.75, 1))
    return json_numbers(quartiles), json_numbers(known[evenly_spaced(len(known), MAX_POINTS)])


def evenly_spaced(n: int, most: int) -> Columns:
    return np.unique(np.linspace(0, n - 1, min(most, n)).round().astype(np.int64))


def redundancy(findings: Findings, data: Data) -> dict[str, Any]:
    """|Pearson correlation| between the top features, and the pairs that are nearly identical."""
    top = findings.order[:N_CORRELATED]
    names = findings.names_of(top)
    correlation = _correlations(findings, data, top)
    pairs = zip(*np.triu_indices(len(top), k=1), strict=True)
    close = [
        {"first": names[first], "second": names[second], "correlation": float(correlation[first, second])}
        for first, second in pairs
        if correlation[first, second] >= SIMILAR
    ]
    return {
        "features": names,
        "correlation": json_numbers(correlation),
        "close_pairs": sorted(close, key=lambda pair: -pair["correlation"]),
        "limit": SIMILAR,
    }


def absolute_correlations(values: Floats) -> Floats:
    """Absolute Pearson correlations of columns, over rows where both are known; NaN for a constant column."""
    known = np.isfinite(values)
    if known.all():
        centered = values - values.mean(axis=0)
        length = np.sqrt((centered**2).sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(centered.T @ centered) / np.outer(length, length)
    out = np.full((values.shape[1], values.shape[1]), np.nan)
    for first in range(values.shape[1]):
        for second in range(first + 1):
            both = values[known[:, first] & known[:, second]][:, [first, second]]
            if len(both) > 1:
                out[first, second] = out[second, first] = absolute_correlations(both)[0, 1]
    return out


def _correlations(findings: Findings, data: Data, columns: Columns) -> Floats:
    """|Pearson correlation| of columns; 0 for categorical columns, whose numbers are arbitrary codes."""
    matrix = absolute_correlations(columns_of(data.X, columns))
    is_categorical = np.isin(columns, findings.categorical)
    matrix[is_categorical], matrix[:, is_categorical] = 0.0, 0.0
    matrix[is_categorical, is_categorical] = 1.0
    return matrix


def _require_repeatable(findings: Findings, data: Data, function: str) -> None:
    """Raise `Unavailable` where the selector cannot be fitted again to some of the rows, or would take too long."""
    if findings.selector is None:
        raise Unavailable("the method has to be run again (use rank --report, or report a fitted selector)")
    if data.y is None:
        raise Unavailable(NO_TARGET)
    if findings.run is None and not _is_quick_filter(findings, data):
        raise Unavailable(f"it takes as long as five fits (call probewise.evaluation.{function})")
    forgotten = [name for name in getattr(findings.selector, "fit_arguments_", []) if name not in data.fit_arguments]
    if forgotten:
        raise Unavailable(f"fit was given {' and '.join(forgotten)}, which the report needs too")


def selection(findings: Findings, data: Data) -> dict[str, Any]:
    """How often each feature is selected on random halves of the samples, and how stable the selection is."""
    _require_repeatable(findings, data, "selection_frequency")
    found = selection_frequency(findings.selector, data.original, data.y, **data.fit_arguments)
    measures = ("frequencies", "top", "shared", "shared_by_chance", "stability")
    return {"halves": len(found.subsets), **{name: getattr(found, name) for name in measures}}


def nested_score(findings: Findings, data: Data) -> dict[str, Any]:
    """Score on held-out samples, with ranking and choice of features repeated inside each fold."""
    _require_repeatable(findings, data, "nested_score")
    assert data.y is not None
    # By the number of samples and not by the run time, so that every machine writes the same report.
    shuffled = len(data.y) <= FEW_ROWS and getattr(findings.selector, "time_limit", None) is None
    score = evaluate_nested(findings.selector, data.original, data.y, shuffled=shuffled, **data.fit_arguments)
    measures = ("std_error", "guess", "beats_guessing", "shuffled")
    numbers = {"score": score.mean, **{name: getattr(score, name) for name in measures}}
    return {**numbers, "measure": score.curve.measure, "folds": len(score.scores), "nested": score}


def held_out(findings: Findings, curve: size_curve.SizeCurve | None, data: Data | None) -> HeldOutPredictions:
    """Held-out predictions with the suggested number of features."""
    if curve is None or data is None or data.target is None or findings.selector is None:
        raise Unavailable(NO_DATA if data is None else "it needs the score on held-out samples")
    target = data.target
    if target.n_classes > MAX_CONFUSED:
        raise Unavailable(f"there are more than {MAX_CONFUSED} classes")
    X, groups = findings.selector._criterion_input(data.X)[0], data.fit_arguments.get("groups")
    found = held_out_predictions(curve, X, target, groups)
    if found is None:
        raise Unavailable("the folds do not test each sample once")
    return found


def predictions(found: HeldOutPredictions | None) -> dict[str, Any] | None:
    """AUC, recall and confusion of held-out predictions, or their RMSE in units of y; None for times and several y."""
    if found is None or found.target.survival is not None or found.target.n_targets > 1:
        return None
    target = found.target
    shared = {"size": found.size, "model": MODELS[target.is_classification]}
    if target.classes is None:
        rows, spread = evenly_spaced(len(target.values), MAX_SAMPLES), float(target.values.std())
        pairs = {"measured": json_numbers(target.values[rows]), "predicted": json_numbers(found.predicted[rows])}
        return {**shared, "rmse": found.rmse, "std": spread, "r2": 1 - (found.rmse / spread) ** 2, **pairs}
    counts = np.bincount(target.values)
    return {
        **shared,
        "classes": [str(label) for label in target.classes],
        "confusion": found.confusion.tolist(),
        "recall": json_numbers(found.recall),
        "balanced_accuracy": float(found.recall.mean()),
        "auc": None if found.auc is None else found.auc[0],
        "auc_error": None if found.auc is None else found.auc[1],
        "base_rate": float(counts.max() / counts.sum()),
        "is_imbalanced": bool(counts.min() * len(counts) < IMBALANCED * counts.sum()),
    }


def _is_quick_filter(findings: Findings, data: Data) -> bool:
    """Whether the selector is a filter that can be refitted in each fold in little time."""
    if findings.selector is None or "criterion" in findings.selector.get_params(deep=False):
        return False
    return isinstance(findings.selector, FSDD) or data.X.shape[0] * data.X.shape[1] <= REFIT_CELLS


def score_by_size(findings: Findings, nested: size_curve.SizeCurve | None, data: Data | None) -> dict[str, Any]:
    """Cross-validated score of the best 1, 2, ... features, and the smallest number that is good enough.

    The curve comes from the run itself or from the nested score if there is one. Otherwise the ranking was made on all
    samples, so the scores are optimistic.
    """
    curve = getattr(findings.selector, "size_curve_", None) or nested or _curve_of_ranking(findings, data)
    features: list[dict[str, Any]] = []
    if curve.ranking is not None and findings.selector is not None and data is not None:
        columns = size_curve.columns_at_sizes(findings.selector, [curve.suggested], curve.ranking)[0][:N_STANDING]
        features = copies_and_bands(findings.selector, data.X, findings.names, columns)
    plain = ("best", "suggested", "scored_by", "nested", "guess", "beats_guessing")
    return {
        "features": features,
        "size": curve.sizes.tolist(),
        "score": json_numbers(curve.mean),
        "std_error": json_numbers(curve.std_error),
        "measure": MEASURES.get(curve.measure, curve.measure),
        "folds": len(curve.scores),
        **{name: getattr(curve, name) for name in plain},
    }


def _curve_of_ranking(findings: Findings, data: Data | None) -> size_curve.SizeCurve:
    """Score by size along the ranking, which was made on all samples."""
    if data is None:
        raise Unavailable(NO_DATA)
    if data.target is None or data.y is None:
        raise Unavailable(NO_TARGET)
    splits = size_curve.splits_for(size_curve.FOLDS, data.target)
    selector = findings.selector
    if selector is None:
        sizes = size_curve.spaced_sizes(size_curve.ranks_known(findings.ranking, findings.scores))
        subsets, scoring = size_curve.up_to_rank(findings.ranking, sizes.tolist()), findings.parameters.get("scoring")
    else:
        ranking, n_representatives = distinct_ranking(selector, data.X)
        sizes, scoring = size_curve.as_sizes(selector, None, n_representatives), getattr(selector, "scoring", None)
        subsets = size_curve.columns_at_sizes(selector, sizes.tolist(), ranking)
    matrix: tuple[Any, Subsets | None] = (data.X, None)
    if len(findings.categorical):  # the criterion scored them one-hot encoded
        matrix = one_hot(data.X, np.isin(np.arange(data.X.shape[1]), findings.categorical))
    scoring = None if scoring == "probability" else scoring  # readers expect the share of correct predictions
    scorer = size_curve.SubsetScorer.like(
        findings.criterion, data.X, data.target, scoring, getattr(selector, "missing", None)
    )
    curve = size_curve.curve_along(
        lambda parts: [subsets] * len(parts), matrix, data.y, data.target, sizes, splits, scorer, nested=False
    )
    return curve if selector is None else replace(curve, ranking=ranking)


def univariate(findings: Findings, data: Data) -> dict[str, Any]:
    """Ranks of single features (BIF, FSDD), compared with the ranking.

    "missed" are features at the top of this ranking that rank low in all univariate ones; "univariate_only" are at the
    top of all univariate ones and rank low here.
    """
    if data.target is None or data.y is None:
        raise Unavailable(NO_TARGET)
    if len(columns_not_finite(data.X)):
        raise Unavailable("values are missing")
    if len(findings.categorical):
        raise Unavailable("some columns are categorical, which these methods do not support")
    ranks: dict[str, Columns] = {}
    methods: dict[str, str] = {}
    criterion = _univariate_criterion(findings, data)
    if findings.method != "BIF" and criterion is not None:
        cv = min(3, data.smallest_class) if data.is_classification else 3
        bif = BIF(criterion=criterion, cv=cv, n_jobs=getattr(findings.selector, "n_jobs", None))
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # the run itself has warned
            ranks["bif"] = bif.fit(data.X, data.y).ranking_
        methods["bif"] = f"BIF ({in_prose(criterion)} on each feature)"
    if findings.method != "FSDD" and data.is_classification:
        ranks["fsdd"] = FSDD().fit(data.X, data.y).ranking_
        methods["fsdd"] = "FSDD (distance between the classes in each feature)"
    if not ranks:
        raise Unavailable("the table is too large, or the method itself is univariate")
    top = min(N_UNIVARIATE, max(1, len(findings.order) // 4))
    all_ranks, here = np.array(list(ranks.values())), np.argsort(findings.order) + 1
    missed = (here <= top) & (all_ranks.min(axis=0) > 3 * top)
    univariate_only = (here > 3 * top) & (all_ranks.max(axis=0) <= top)
    return {
        "ranks": ranks,
        "methods": methods,
        "top": top,
        "shared": {name: int(((here <= top) & (rank <= top)).sum()) for name, rank in ranks.items()},
        "missed": findings.names_of(findings.order[missed[findings.order]]),
        "univariate_only": findings.names_of(findings.order[univariate_only[findings.order]]),
    }


def _univariate_criterion(findings: Findings, data: Data) -> Criterion | None:
    """The criterion of the run, or a part of it, if it is fast on single features, else a fast one.

    None if the table is too large.
    """
    rows, features = data.X.shape
    if rows * features > UNIVARIATE_CELLS or (data.is_classification and data.smallest_class < 2):
        return None
    for criterion in getattr(findings.criterion, "parts", (findings.criterion,)):
        is_quick_knn = isinstance(criterion, KNN) and rows**2 * features <= UNIVARIATE_DISTANCES
        if isinstance(criterion, Linear | NaiveBayes) or is_quick_knn:
            return criterion
    return NaiveBayes() if data.is_classification else Linear(task="regression")
