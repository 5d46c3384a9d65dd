"""Features that give the target away: alone they tell it of every row, as the target in other words would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import rankdata

from ..criteria.base import Target
from ..engine.interactions import columns_of
from .words import listed, quoted

LOOKED_AT, NAMED = 20, 3
BY_LUCK = 0.001  # features of the table that may do so by luck
IN_ORDER = 0.999  # Spearman's correlation with a target of numbers
ROWS_A_VALUE = 5  # on average; values that are met less often tell rows apart, not classes


def giveaways(X: Any, target: Target, order: NDArray[np.int64]) -> list[int]:
    """Which of the first columns do; none where so few rows may be told by luck, or a column is half empty."""
    first = order[:LOOKED_AT]
    values = columns_of(X, first)
    return [column for column, cells in zip(first.tolist(), values.T, strict=True) if _tells(cells, target, len(order))]


def giveaway_sentence(names: Sequence[str]) -> str:
    """What to make of these features, without the full stop."""
    shown = [quoted(name) for name in names[:NAMED]]
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    one = len(names) == 1
    tell = "tells the target of every row on its own" if one else "each tell the target of every row on their own"
    meant = "it is the target in other words, or was" if one else "they are the target in other words, or were"
    return f"{listed([*shown, *more])} {tell}: if {meant} noted after it, leave {'it' if one else 'them'} out"


def _tells(cells: NDArray[np.float64], target: Target, n_features: int) -> bool:
    known = np.isfinite(cells)
    cells, goal = cells[known], target.values[known]
    n_values = len(np.unique(goal))
    if 2 * len(cells) < len(known) or n_values < max(2, target.n_classes) or np.ptp(cells) == 0:
        return False
    if n_features * _chance_of_order(goal, target.n_classes) >= BY_LUCK:
        return False
    return _goes_with_numbers(cells, goal) if target.classes is None else _tells_classes(cells, goal, n_values)


def _tells_classes(cells: NDArray[np.float64], codes: NDArray[Any], n_classes: int) -> bool:
    """Whether no value is met in two classes, and classes lie side by side, or values are few."""
    values, at = np.unique(cells, return_inverse=True)
    met = np.unique(np.column_stack([at, codes]), axis=0)[:, 1]
    side_by_side = np.count_nonzero(np.diff(met)) == n_classes - 1
    return len(met) == len(values) and bool(side_by_side or ROWS_A_VALUE * len(values) <= len(cells))


def _goes_with_numbers(cells: NDArray[np.float64], goal: NDArray[Any]) -> bool:
    return bool(abs(np.corrcoef(rankdata(cells), rankdata(goal))[0, 1]) >= IN_ORDER)


def _chance_of_order(goal: NDArray[Any], n_classes: int) -> float:
    """That rows in random order are sorted by the target, up or down, or class by class in any order."""
    sizes = np.unique(goal, return_counts=True)[1]
    orders = gammaln(n_classes + 1) if n_classes else np.log(2)
    return float(np.exp(orders + gammaln(sizes + 1).sum() - gammaln(len(goal) + 1)))
