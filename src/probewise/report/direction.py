"""Which way a feature goes: the class in which it is higher and by how much, or its correlation with the target.

All of it describes the rows at hand, each feature on its own. What decides the ranking is something else: what a
feature adds to others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils import gen_batches

from ..criteria.base import Target
from ..engine.interactions import columns_of
from .words import plain_numbers

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]

MOST_CELLS = 100_000_000  # beyond, only the first features are looked at
CELLS_AT_A_TIME = 4_000_000
SPAN_OF_INTENSITIES = 50.0  # logarithms of intensities or counts span less
DRAWN, CLASSES_DRAWN, POINTS_DRAWN, ROWS_DRAWN = 12, 6, 40, 200
SURE = float(ndtri(0.975))


def direction_columns(X: Any, target: Target, order: Columns, categorical: Columns) -> dict[str, Any]:
    """Columns of the ranking, best first, that say which way each feature goes; None or NaN where that is not known.

    Of classes: where the mean is highest (``higher_in``, against ``lower_in``, where it is lowest), Hedges' g between
    these two with its interval of 95 %, and the ratio of their means (``fold_change``) where all values are above 0 and
    span more than 50, as intensities and counts do and their logarithms do not. Of numbers: Pearson's correlation with
    the target, with Fisher's interval. Features that are ``categorical`` go no way: their numbers mean nothing.
    """
    first = order[: max(1, MOST_CELLS // max(1, X.shape[0]))]
    measure = _between_classes if target.is_classification else _with_numbers
    some = gen_batches(len(first), max(1, CELLS_AT_A_TIME // max(1, X.shape[0])))
    parts = [measure(columns_of(X, first[part]), target) for part in some]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    is_category = np.isin(first, categorical)
    for name, column in columns.items():
        column[is_category] = -1 if column.dtype.kind == "i" else np.nan
        blank = np.full(len(order) - len(first), -1 if column.dtype.kind == "i" else np.nan)
        columns[name] = np.concatenate([column, blank.astype(column.dtype)])
    if target.classes is not None and len(target.classes) == 2:
        del columns["lower_in"]
    if "fold_change" in columns and not np.isfinite(columns["fold_change"]).any():
        del columns["fold_change"]
    return {name: _labels(part, target) if part.dtype.kind == "i" else part.round(6) for name, part in columns.items()}


def direction_of(selector: Any, X: Any, y: Any) -> dict[str, Any]:
    """The same for a fitted selector and its data."""
    record = getattr(getattr(selector, "run_", None), "settings", None)
    categorical = np.empty(0, np.int64) if record is None or record.categorical is None else record.categorical
    order = np.argsort(selector.ranking_, kind="stable")
    return direction_columns(selector.as_numbers(X), target_of(selector, y), order, categorical)


def target_of(selector: Any, y: Any) -> Target:
    """y as a fitted selector took it: classes or numbers."""
    return Target.of(y, getattr(getattr(selector, "criterion_", None), "task", "auto"))


def in_words(columns: dict[str, Any], place: int, names: Callable[[str], str] = str) -> str:
    """Which way the feature at that place of the ranking goes; "" where that is not known."""

    def of(name: str) -> Any:
        value = columns[name][place] if name in columns else None
        return None if value is None or value != value else value

    if of("correlation") is not None:
        way = "rises" if of("correlation") > 0 else "falls"
        return f"{way} with the target, correlation {_interval(of, 'correlation')}"
    if of("higher_in") is None:
        return ""
    than = f" than in {names(of('lower_in'))}" if of("lower_in") else ""
    by = f", by {_interval(of, 'difference')} standard deviations" if of("difference") is not None else ""
    fold = f", {of('fold_change'):.2f}-fold" if of("fold_change") is not None else ""
    return f"higher in {names(of('higher_in'))}{than}{by}{fold}"


def _interval(of: Callable[[str], Any], name: str) -> str:
    low, high = of(f"{name}_low"), of(f"{name}_high")
    text = f"{of(name):.2f}" + ("" if low is None or high is None else f" ({low:.2f} to {high:.2f})")
    return text.replace("-", "−")


def _labels(codes: Columns, target: Target) -> list[str | None]:
    assert target.classes is not None
    names = [*map(str, target.classes), None]
    return [names[code] for code in codes.tolist()]


def _between_classes(values: Floats, target: Target) -> dict[str, NDArray[Any]]:
    """Highest and lowest class (-1 where no two have values), the difference of these two, and their ratio."""
    assert target.classes is not None
    known, every = np.isfinite(values), np.arange(values.shape[1])
    count, mean, square = (np.zeros((len(target.classes), values.shape[1])) for _ in range(3))
    for code in range(len(target.classes)):
        rows = target.values == code
        inside, part = known[rows], values[rows]
        count[code] = inside.sum(axis=0)
        with np.errstate(invalid="ignore"):
            mean[code] = np.where(inside, part, 0.0).sum(axis=0) / count[code]
        square[code] = (np.where(inside, part - mean[code], 0.0) ** 2).sum(axis=0)
    high = np.where(count > 0, mean, -np.inf).argmax(axis=0)
    low = np.where(count > 0, mean, np.inf).argmin(axis=0)
    apart = ~np.isclose(mean[high, every], mean[low, every], rtol=1e-12, atol=0)
    n_high, n_low = count[high, every], count[low, every]
    freedom = n_high + n_low - 2
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.sqrt((square[high, every] + square[low, every]) / freedom)
        g = (1 - 3 / (4 * freedom - 1)) * (mean[high, every] - mean[low, every]) / deviation
        error = np.sqrt((n_high + n_low) / (n_high * n_low) + g**2 / (2 * freedom))
        least, most = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
        fold = np.where(
            (least > 0) & (most - least > SPAN_OF_INTENSITIES), mean[high, every] / mean[low, every], np.nan
        )
    g[~apart | ~np.isfinite(error)] = np.nan
    return {
        "higher_in": np.where(apart, high, -1),
        "lower_in": np.where(apart, low, -1),
        "difference": g,
        "difference_low": g - SURE * error,
        "difference_high": g + SURE * error,
        "fold_change": fold,
    }


def _with_numbers(values: Floats, target: Target) -> dict[str, NDArray[Any]]:
    """Pearson's correlation with the target over the rows where the feature is known."""
    known = np.isfinite(values)
    count, y = known.sum(axis=0), np.where(known, target.values[:, None], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(known, values - np.where(known, values, 0).sum(axis=0) / count, 0.0)
        y = np.where(known, y - np.where(known, y, 0).sum(axis=0) / count, 0.0)
        r = (x * y).sum(axis=0) / np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
        r = np.where(np.isfinite(r), np.clip(r, -1, 1), np.nan)
        error = np.where(count > 3, 1 / np.sqrt(count - 3.0), np.nan)
        low, high = np.tanh(np.arctanh(r) - SURE * error), np.tanh(np.arctanh(r) + SURE * error)
    return {"correlation": r, "correlation_low": low, "correlation_high": high}


# ---- drawn


def values_drawn(X: Any, target: Target, order: Columns, names: list[str], categorical: Columns) -> dict[str, Any]:
    """The values of the first features by class, or against the target, few enough to be drawn.

    A class has its quartiles with the least and the largest value, and of its values, in order, at most 40 evenly
    spaced ones; of more than 6 classes the largest are drawn. Of numbers at most 200 rows are, evenly spaced.
    """
    shown = order[:DRAWN][~np.isin(order[:DRAWN], categorical)]
    values, features = columns_of(X, shown), [names[column] for column in shown.tolist()]
    if target.classes is None:
        rows = np.unique(np.linspace(0, len(values) - 1, ROWS_DRAWN).round().astype(int))
        return {
            "features": features,
            "target": plain_numbers(target.values[rows]),
            "values": plain_numbers(values[rows].T),
        }
    sizes = np.bincount(target.values, minlength=len(target.classes))
    codes = np.sort(np.argsort(-sizes, kind="stable")[:CLASSES_DRAWN])
    drawn = [[_box_and_points(column[target.values == code]) for code in codes] for column in values.T]
    return {
        "features": features,
        "classes": [str(target.classes[code]) for code in codes],
        "left_out": len(sizes) - len(codes),
        "boxes": [[box for box, _ in of_feature] for of_feature in drawn],
        "points": [[points for _, points in of_feature] for of_feature in drawn],
    }


def _box_and_points(values: Floats) -> tuple[list[float] | None, list[float]]:
    known = np.sort(values[np.isfinite(values)])
    if not len(known):
        return None, []
    places = np.unique(np.linspace(0, len(known) - 1, min(POINTS_DRAWN, len(known))).round().astype(int))
    return plain_numbers(np.quantile(known, (0, 0.25, 0.5, 0.75, 1))), plain_numbers(known[places])
