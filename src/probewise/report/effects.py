"""Effects of single features: direction and size, values to draw, and target leakage.

These statistics describe each feature on its own. The ranking measures something else: how much a feature adds to
other features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri
from scipy.stats import rankdata
from sklearn.utils import gen_batches

from ..criteria.base import Target
from ..engine.interactions import columns_of
from .ranking_table import json_numbers

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]

MAX_CELLS = 100_000_000  # in larger tables only the best-ranked features are described
BATCH_CELLS = 4_000_000
INTENSITY_RANGE = 50.0  # intensities and counts span more than this, their logarithms less
N_DRAWN, MAX_CLASSES, MAX_POINTS, MAX_SAMPLES = 12, 6, 40, 200
Z_95 = float(ndtri(0.975))


def direction_columns(X: Any, target: Target, order: Columns, categorical: Columns) -> dict[str, Any]:
    """Columns of the ranking that describe the direction of each effect; None or NaN where it is not known.

    For classes: the class with the highest mean (``higher_in``), the one with the lowest (``lower_in``, for more than
    two classes), Hedges' g between these two with its 95% confidence interval, and the ratio of their means
    (``fold_change``) if all values are positive and span more than 50, as intensities and counts do. For a numeric
    target: Pearson's correlation with Fisher's 95% confidence interval. Categorical features have no direction.
    """
    first = order[: max(1, MAX_CELLS // max(1, X.shape[0]))]
    measure = _compare_classes if target.is_classification else _correlate
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
    return {
        name: _class_labels(column, target) if column.dtype.kind == "i" else column.round(6)
        for name, column in columns.items()
    }


def direction_of_selector(selector: Any, X: Any, y: Any) -> dict[str, Any]:
    """`direction_columns` for a fitted selector and the data it was fitted to."""
    run = getattr(selector, "run_", None)
    categorical = None if run is None else run.settings.categorical
    order = np.argsort(selector.ranking_, kind="stable")
    numbers, target = selector._numbers_of(X), target_of_selector(selector, y)
    return direction_columns(numbers, target, order, np.empty(0, np.int64) if categorical is None else categorical)


def target_of_selector(selector: Any, y: Any) -> Target:
    """y as classes or numbers, as the fitted selector read it."""
    return Target.of(y, getattr(getattr(selector, "criterion_", None), "task", "auto"))


def direction_in_words(columns: dict[str, Any], row: int, shorten: Callable[[str], str] = str) -> str:
    """Direction of the effect in this row of the ranking as text; "" if it is not known."""

    def value_of(name: str) -> Any:
        value = columns[name][row] if name in columns else None
        return None if value is None or value != value else value

    def with_interval(name: str) -> str:
        low, high = value_of(f"{name}_low"), value_of(f"{name}_high")
        interval = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
        return f"{value_of(name):.2f}{interval}".replace("-", "−")

    if value_of("correlation") is not None:
        verb = "increases" if value_of("correlation") > 0 else "decreases"
        return f"{verb} with the target, correlation {with_interval('correlation')}"
    if value_of("higher_in") is None:
        return ""
    words = f"higher in {shorten(value_of('higher_in'))}"
    if value_of("lower_in"):
        words += f" than in {shorten(value_of('lower_in'))}"
    if value_of("difference") is not None:
        words += f" by {with_interval('difference')} standard deviations"
    return words + (f", {value_of('fold_change'):.2f}-fold" if value_of("fold_change") is not None else "")


def _class_labels(codes: Columns, target: Target) -> list[str | None]:
    assert target.classes is not None
    labels = [*map(str, target.classes), None]
    return [labels[code] for code in codes.tolist()]


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


# ---- values to draw


def values_to_draw(X: Any, target: Target, order: Columns, names: list[str], categorical: Columns) -> dict[str, Any]:
    """Values of the first features, by class or against the target, reduced to a number that can be drawn.

    Each class has its quartiles, minimum and maximum, and at most 40 of its values, evenly spaced in sorted order. Of
    more than 6 classes the largest 6 are drawn. For a numeric target at most 200 evenly spaced samples are drawn.
    """
    drawn = order[:N_DRAWN][~np.isin(order[:N_DRAWN], categorical)]
    values, features = columns_of(X, drawn), [names[column] for column in drawn.tolist()]
    if target.classes is None:
        rows = _evenly_spaced(len(values), MAX_SAMPLES)
        y, by_feature = json_numbers(target.values[rows]), json_numbers(values[rows].T)
        return {"features": features, "target": y, "values": by_feature}
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
    return json_numbers(quartiles), json_numbers(known[_evenly_spaced(len(known), MAX_POINTS)])


def _evenly_spaced(n: int, most: int) -> Columns:
    return np.unique(np.linspace(0, n - 1, min(most, n)).round().astype(np.int64))


# ---- target leakage

N_CHECKED = 20  # features from the top of the ranking
EXPECTED_BY_CHANCE = 0.001  # largest expected number of features of the table that determine the target by chance
SAME_ORDER = 0.999  # Spearman's correlation with a numeric target
SAMPLES_PER_VALUE = 5  # on average; rarer values identify samples, not classes


def leaking_columns(X: Any, target: Target, order: NDArray[np.int64]) -> list[int]:
    """Columns among the best-ranked ones that determine the target.

    None is reported if there are so few samples that a column could do so by chance, nor a column that is half empty.
    """
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
