"""Target leakage: features that determine the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import rankdata

from ..criteria.base import Target
from ..engine.interactions import columns_of

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
