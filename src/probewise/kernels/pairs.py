"""Strength of the products of two columns, on arrays of numpy or torch."""

from typing import Any

import numpy as np


def strengths(columns: Any, targets: Any, start: int, stop: int, library: Any = np) -> Any:
    """Squared correlations, times the rows, of the targets with the product of columns j < k; j = start, ..., stop - 1.

    ``columns`` are standardized, and ``targets`` (targets, rows) have length 1. The result has a row for each j and a
    column for each k >= start, with 0 where k <= j. The variance of a product is that of two normal variables.
    """
    first, others = columns[:, start:stop], columns[:, start:]
    total = 0.0
    for target in targets:
        total += ((first * target[:, None]).T @ others) ** 2
    total /= 1 + (first.T @ others / len(columns)) ** 2
    own = total[:, : first.shape[1]]
    own[:] = library.triu(own, 1)
    return total


def strongest(squares: Any, cut: float, most: int) -> tuple[Any, Any, Any]:
    """Row, column and value of each cell of at least ``cut``; only the ``most`` largest, and ties with the last one."""
    row, column = np.nonzero(squares >= cut)
    values = squares[row, column]
    if len(values) > most:
        large = values >= np.partition(values, -most)[-most]
        row, column, values = row[large], column[large], values[large]
    return row, column, values
