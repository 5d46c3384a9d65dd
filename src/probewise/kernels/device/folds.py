"""Test rows in a table with a line for each fold, so that all folds of many subsets are told together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

FOLDS_AT_A_TIME = 16


def in_lines(tests: Sequence[Any], *, fill: Any = -1) -> NDArray[Any]:
    """A table (folds, height) of what each fold holds, filled up."""
    height = max(len(test) for test in tests)
    table = np.full((len(tests), height), fill)
    for fold, test in enumerate(tests):
        table[fold, : len(test)] = test
    return table


def some_folds(n_folds: int) -> list[slice]:
    """All folds, a few at a time."""
    starts = range(0, n_folds, FOLDS_AT_A_TIME)
    return [slice(start, min(start + FOLDS_AT_A_TIME, n_folds)) for start in starts]


def take(lines: Tensor, table: Tensor, folds: slice) -> Tensor:
    """The test rows of subsets (folds, subsets, width, height) from lines (features + 1, all folds, height)."""
    numbers = torch.arange(folds.start, folds.stop, device=lines.device)
    return lines[table, numbers[:, None, None]]
