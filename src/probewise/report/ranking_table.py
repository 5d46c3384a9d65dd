"""The ranking as a table: columns, directions of effects, labels and cell texts for the terminal, files and reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri
from scipy.stats import rankdata
from sklearn.utils import gen_batches

from .._selector import DEFAULT_FDR
from ..criteria.base import Target
from ..evaluation.survival import hazard_ratios
from ..inference import Discoveries
from ..stopping import as_rule
from ..validation.errors import ParameterError

if TYPE_CHECKING:
    from ..engine.run import Run
    from .findings import Findings

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]

TOP = 20
MAX_CELLS = 100_000_000  # in larger tables only the best-ranked features are described
BATCH_CELLS = 4_000_000
N_HAZARDS = 200  # best features that have a Cox model each
INTENSITY_RANGE = 50.0  # intensities and counts span more than this, their logarithms less
Z_95 = float(ndtri(0.975))
EFFECTS = ("difference", "correlation", "hazard_ratio")
INTERVAL_ENDS = tuple(f"{name}_{end}" for name in EFFECTS for end in ("low", "high"))
DECIMALS = {
    "in_top": 2,
    **dict.fromkeys(("q_related", "q_needed", "q_unadjusted"), 4),
    **dict.fromkeys((*EFFECTS, "fold_change", *INTERVAL_ENDS), 2),
}
LABELS = {
    "rank": "rank",
    "feature": "feature",
    "score": "score",
    "above_average": "above average",
    "std_error": "std error",
    "probed": "probed",
    "related": "related",
    "q_related": "related, q-value",
    "needed": "needed",
    "q_needed": "needed, q-value",
    "unadjusted": "related without adjustment",
    "q_unadjusted": "without adjustment, q-value",
    "cluster": "cluster of",
    "selected_in": "selected in halves",
    "selected": "selected",
    "dropped_in_round": "dropped in round",
    "rank_low": "rank, 95% CI: from",
    "rank_high": "to",
    "in_top": "probability of top {top}",
    "higher_in": "higher in",
    "lower_in": "lower in",
    "difference": "difference (SD)",
    "difference_low": "difference, from",
    "difference_high": "difference, to",
    "fold_change": "fold change",
    "correlation": "correlation",
    "correlation_low": "correlation, from",
    "correlation_high": "correlation, to",
    "hazard_ratio": "hazard ratio (per SD)",
    "hazard_ratio_low": "hazard ratio, from",
    "hazard_ratio_high": "hazard ratio, to",
}


def ranking_columns(findings: Findings, tests: Mapping[str, Discoveries], *, certainty: bool = False) -> dict[str, Any]:
    """Columns of a ranking, best feature first, with the keys of `LABELS`; columns that are not known are left out.

    ``tests`` are the tests to show, from `discoveries_of`. ``certainty=True`` adds rank intervals and the probability
    of being in the top for a `DAF`, which takes a while for many features.
    """
    order, names, scores, run = findings.order, findings.names, findings.scores, findings.run
    selector: Any = findings.selector
    values: dict[str, Any] = {"score": scores}
    if findings.std_errors is not None:  # a dropped feature has no score and thus no error
        values["std_error"] = np.where(np.isnan(scores), np.nan, findings.std_errors)
    columns: dict[str, Any] = {"rank": findings.ranking[order], "feature": findings.names_of(order)}
    for name, found in tests.items():
        values |= {name: found.mask, f"q_{name}": found.q_values}
    if clusters := named_clusters(tests):
        represented_by = {column: names[cluster[0]] for cluster in clusters for column in cluster.tolist()}
        columns["cluster"] = [represented_by.get(column) for column in order.tolist()]
    if run is not None:
        coefficients = run.coefficient()[0]
        values |= {
            "above_average": scores - np.nanmean(coefficients) if np.isfinite(scores).any() else None,
            "probed": run.feature_tally.counts,
        }
        if isinstance(getattr(selector, "n_features_to_select", None), str):
            values["selected"] = selector.support_
        if run.in_rounds:
            columns["dropped_in_round"] = [number or None for number in run.dropped_in_round()[order].tolist()]
        elif certainty and findings.top is not None:
            columns |= _certainty_columns(run, findings.ranking, findings.top)
    return in_label_order(columns | {name: column[order] for name, column in values.items() if column is not None})


def discoveries_of(selector: Any, fdr: float = DEFAULT_FDR) -> dict[str, Discoveries]:
    """Which features of a fitted `DAF` or `Tournament` are related and needed; empty where they cannot be tested."""
    if not hasattr(selector, "run_"):
        return {}
    try:
        return {"related": selector._tested("associated").at(fdr), "needed": selector._tested("needed").at(fdr)}
    except ParameterError:  # without the data, without a single target, or with a table in a store
        return {}


def named_clusters(tests: Mapping[str, Discoveries]) -> list[Columns]:
    """Clusters of similar features of which one is needed; the first feature represents the cluster."""
    needed = tests.get("needed")
    return [] if needed is None else [cluster for cluster in needed.clusters if needed.mask[cluster[0]]]


def display_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns without the score where the score above average is there: it is easier to read."""
    return {name: values for name, values in columns.items() if name != "score" or "above_average" not in columns}


def in_label_order(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: columns[name] for name in LABELS if name in columns}


def _certainty_columns(run: Run, ranking: NDArray[np.int64], top: int) -> dict[str, Any]:
    """The 95% interval of each feature's rank and its probability of being in the top, best feature first.

    They describe other random probes of the same rows. None or NaN for features that were not probed. No columns at all
    if the ranking is not the order of the coefficient, for example with groups of features.
    """
    certainty, order = run.certainty(), np.argsort(ranking, kind="stable")
    if not certainty.is_of(ranking):
        return {}
    is_known = np.isfinite(certainty.coefficients[order])
    low, high = np.where(is_known, certainty.rank_intervals()[order].T, 0).tolist()
    ranks = {"rank_low": [rank or None for rank in low], "rank_high": [rank or None for rank in high]}
    return {**ranks, "in_top": np.where(is_known, certainty.in_top(top)[order], np.nan)}


def top_size(run: Run, stop: Any = None) -> int:
    """Number of features in the top that the rank certainty and the convergence refer to.

    It is the smallest top that the stopping rule watches, 20 by default, and at most a quarter of the features: two
    rankings of a few features always share most of a larger top.
    """
    watched = () if stop is None else as_rule(stop).watch
    tops = (item for item in watched if isinstance(item, int))
    return min(min(tops, default=TOP), max(1, len(run.plan.rounds[-1].active) // 4))


def columns_of(X: Any, columns: Columns) -> Floats:
    """Some columns of a table of numbers, dense; a table in a store reads no others."""
    X = np.asarray(X) if isinstance(X, list) else X
    return np.asarray(X.tocsc()[:, columns].toarray() if sp.issparse(X) else X[:, columns], dtype=np.float64)


# ---- direction of effects
#
# These statistics describe each feature on its own. The ranking measures something else: how much a feature adds to
# other features.


def direction_columns(X: Any, target: Target, order: Columns, categorical: Columns) -> dict[str, Any]:
    """Columns of the ranking that describe the direction of each effect; None or NaN where it is not known.

    For classes: those with the highest and (of more than two) the lowest mean, Hedges' g between these two with its 95%
    interval, and the ratio of their means if all values are positive and span more than 50, as intensities do. For
    numbers: Pearson's correlation with Fisher's 95% interval. For survival: the hazard ratio of one standard deviation
    more, for the first features. Categories and several targets have no direction.
    """
    if target.n_targets > 1:
        return {}
    first = order[: max(1, MAX_CELLS // max(1, X.shape[0]))]
    measure: Any = _compare_classes if target.is_classification else _correlate
    if target.survival is not None:
        first, measure = order[:N_HAZARDS], hazard_ratios
    batches = gen_batches(len(first), max(1, BATCH_CELLS // max(1, X.shape[0])))
    parts = [measure(columns_of(X, first[batch]), target) for batch in batches]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    is_categorical = np.isin(first, categorical)
    for name, column in columns.items():
        missing = -1 if column.dtype.kind == "i" else np.nan
        column[is_categorical] = missing
        rest = np.full(len(order) - len(first), missing, dtype=column.dtype)
        columns[name] = np.concatenate([column, rest])
    if target.classes is not None and len(target.classes) == 2:
        del columns["lower_in"]
    if "fold_change" in columns and not np.isfinite(columns["fold_change"]).any():
        del columns["fold_change"]
    labels = [*map(str, () if target.classes is None else target.classes), None]  # code -1: no class
    return {
        name: [labels[code] for code in column.tolist()] if column.dtype.kind == "i" else column.round(6)
        for name, column in columns.items()
    }


def direction_in_words(columns: dict[str, Any], row: int, shorten: Callable[[str], str] = str) -> str:
    """Direction of the effect in this row of the ranking as text; "" if it is not known."""
    known = {name: column[row] for name, column in columns.items() if column[row] is not None}
    known = {name: value for name, value in known.items() if value == value}

    def with_interval(name: str) -> str:
        ends = [known[end] for end in (f"{name}_low", f"{name}_high") if end in known]
        interval = f" ({ends[0]:.2f} to {ends[1]:.2f})" if len(ends) == 2 else ""
        return f"{known[name]:.2f}{interval}".replace("-", "−")

    def direction(name: str, none: float, above: str, below: str) -> str:
        is_unclear = known.get(f"{name}_low", np.inf) <= none <= known.get(f"{name}_high", -np.inf)
        return "no clear direction" if is_unclear else above if known[name] > none else below

    if "correlation" in known:
        words = direction("correlation", 0.0, "increases with the target", "decreases with the target")
        return f"{words}, correlation {with_interval('correlation')}"
    if "hazard_ratio" in known:
        words = direction("hazard_ratio", 1.0, "higher is worse", "higher is better")
        return f"{words}, hazard ratio {with_interval('hazard_ratio')} per standard deviation"
    if "higher_in" not in known:
        return ""
    words = f"higher in {shorten(known['higher_in'])}"
    words += f" than in {shorten(known['lower_in'])}" if "lower_in" in known else ""
    words += f" by {with_interval('difference')} standard deviations" if "difference" in known else ""
    return words + (f", {known['fold_change']:.2f}-fold" if "fold_change" in known else "")


def _compare_classes(values: Floats, target: Target) -> dict[str, NDArray[Any]]:
    """The classes with the highest and the lowest mean (-1 if the means are equal), their difference and ratio."""
    assert target.classes is not None
    is_known, every = np.isfinite(values), np.arange(values.shape[1])
    count, mean, square = (np.zeros((len(target.classes), values.shape[1])) for _ in range(3))
    for code in range(len(target.classes)):
        rows = target.values == code
        known, part = is_known[rows], values[rows]
        count[code] = known.sum(axis=0)
        with np.errstate(invalid="ignore"):
            mean[code] = np.where(known, part, 0.0).sum(axis=0) / count[code]
        square[code] = (np.where(known, part - mean[code], 0.0) ** 2).sum(axis=0)
    high = np.where(count > 0, mean, -np.inf).argmax(axis=0)
    low = np.where(count > 0, mean, np.inf).argmin(axis=0)
    differ = ~np.isclose(mean[high, every], mean[low, every], rtol=1e-12, atol=0)
    n_high, n_low = count[high, every], count[low, every]
    freedom = n_high + n_low - 2
    with np.errstate(divide="ignore", invalid="ignore"):
        std = np.sqrt((square[high, every] + square[low, every]) / freedom)
        g = (1 - 3 / (4 * freedom - 1)) * (mean[high, every] - mean[low, every]) / std
        error = np.sqrt((n_high + n_low) / (n_high * n_low) + g**2 / (2 * freedom))
        smallest, largest = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
        are_intensities = (smallest > 0) & (largest - smallest > INTENSITY_RANGE)
        fold = np.where(are_intensities, mean[high, every] / mean[low, every], np.nan)
    g[~differ | ~np.isfinite(error)] = np.nan
    return {
        "higher_in": np.where(differ, high, -1),
        "lower_in": np.where(differ, low, -1),
        "difference": g,
        "difference_low": g - Z_95 * error,
        "difference_high": g + Z_95 * error,
        "fold_change": fold,
    }


def _correlate(values: Floats, target: Target) -> dict[str, NDArray[Any]]:
    """Pearson's correlation with the target over the samples where the feature is known."""
    is_known = np.isfinite(values)
    count, y = is_known.sum(axis=0), np.where(is_known, target.values[:, None], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(is_known, values - np.where(is_known, values, 0).sum(axis=0) / count, 0.0)
        y = np.where(is_known, y - np.where(is_known, y, 0).sum(axis=0) / count, 0.0)
        r = (x * y).sum(axis=0) / np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
        r = np.where(np.isfinite(r), np.clip(r, -1, 1), np.nan)
        error = np.where(count > 3, 1 / np.sqrt(count - 3.0), np.nan)
        low, high = np.tanh(np.arctanh(r) - Z_95 * error), np.tanh(np.arctanh(r) + Z_95 * error)
    return {"correlation": r, "correlation_low": low, "correlation_high": high}


# ---- values as text and as JSON


def decimals_of(columns: dict[str, Any]) -> int:
    """Number of decimals that shows two digits of the median standard error, or four of the median score."""
    scores = columns["score"] if "score" in columns else columns.get("above_average", ())
    errors = columns["std_error"] if "std_error" in columns else np.asarray(scores, dtype=float) / 100
    errors = np.abs(np.asarray(errors, dtype=float))
    usable = errors[np.isfinite(errors) & (errors != 0)]
    return int(np.clip(1 - np.floor(np.log10(np.median(usable))), 3, 12)) if len(usable) else 3


def cell(name: str, value: Any, decimals: int, *, blank: str = "-") -> str:
    """Text of a value in the column with this name; ``blank`` if the value is missing."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else ""
    if value is None or np.isnan(value):
        return blank
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if name in ("q_related", "q_needed", "q_unadjusted") and value < 0.0001:
        return "<0.0001"
    if name == "selected_in":
        return f"{100 * value:.0f}%"
    return f"{value:.{DECIMALS.get(name, decimals)}f}"


def typeset_cell(name: str, value: Any, decimals: int) -> str:
    """Text of a cell with a dash for a missing value and a typographic minus sign."""
    text = cell(name, value, decimals, blank="–")
    return text if isinstance(value, str) else text.replace("-", "−")


def json_numbers(values: Any) -> list[Any]:
    """An array as nested lists of floats, with None in place of values that are not finite."""
    values = np.asarray(values, dtype=np.float64)
    numbers = values.astype(object)
    numbers[~np.isfinite(values)] = None
    return list(numbers.tolist())


# ---- target leakage

N_CHECKED = 20  # features from the top of the ranking
EXPECTED_BY_CHANCE = 0.001  # largest expected number of features of the table that determine the target by chance
SAME_ORDER = 0.999  # Spearman's correlation with a numeric target
SAMPLES_PER_VALUE = 5  # on average; rarer values identify samples, not classes


def leaking_columns(X: Any, target: Target, order: NDArray[np.int64]) -> list[int]:
    """Columns among the best-ranked ones that determine the target.

    None is reported if there are so few samples that a column could do so by chance, nor a column that is half empty.
    """
    if target.n_targets > 1:
        return []
    first = order[:N_CHECKED]
    values = columns_of(X, first)
    return [column for column, cells in zip(first.tolist(), values.T, strict=True) if _leaks(cells, target, len(order))]


def _leaks(cells: NDArray[np.float64], target: Target, n_features: int) -> bool:
    is_known = np.isfinite(cells)
    cells, y = cells[is_known], target.values[is_known]
    n_values = len(np.unique(y))
    if 2 * len(cells) < len(is_known) or n_values < max(2, target.n_classes) or np.ptp(cells) == 0:
        return False
    if n_features * _chance_of_sorted_order(y, target.n_classes) >= EXPECTED_BY_CHANCE:
        return False
    if target.classes is None:
        return bool(abs(np.corrcoef(rankdata(cells), rankdata(y))[0, 1]) >= SAME_ORDER)
    return _separates_classes(cells, y, n_values)


def _separates_classes(cells: NDArray[np.float64], codes: NDArray[Any], n_classes: int) -> bool:
    """Whether no value occurs in two classes, and each class covers one interval or there are few values."""
    values, value_of_sample = np.unique(cells, return_inverse=True)
    class_of_value = np.unique(np.column_stack([value_of_sample, codes]), axis=0)[:, 1]
    one_interval_each = np.count_nonzero(np.diff(class_of_value)) == n_classes - 1
    few_values = SAMPLES_PER_VALUE * len(values) <= len(cells)
    return len(class_of_value) == len(values) and bool(one_interval_each or few_values)


def _chance_of_sorted_order(y: NDArray[Any], n_classes: int) -> float:
    """Probability that samples in random order are sorted by y (ascending or descending), or by class in any order."""
    sizes = np.unique(y, return_counts=True)[1]
    orders = gammaln(n_classes + 1) if n_classes else np.log(2)
    return float(np.exp(orders + gammaln(sizes + 1).sum() - gammaln(len(y) + 1)))
