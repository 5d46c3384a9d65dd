"""What two features do together that neither does alone: a replay of the ledger over pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .engine import replay
from .ledger import Ledger
from .probes import ProbePlan

Floats = NDArray[np.float64]
FEWEST_IN_A_CELL = 10
LIKE_SIZE = 20  # probes that share a mean


def pair_contrasts(plan: ProbePlan, ledger: Ledger, columns: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """The contrast of each pair of columns and its standard error; NaN where a cell has fewer than 10 probes."""
    typical = mean_by_size(plan, ledger)
    place = np.full(plan.n_features, -1)
    place[columns] = np.arange(len(columns))
    sums = np.zeros((4, 3, len(columns), len(columns)))
    for subsets, values in replay(plan, ledger):
        rest = values - typical[subsets.sizes]
        spot, probe = place[subsets.indices], np.repeat(np.arange(len(subsets)), subsets.sizes)
        held = np.zeros((len(subsets), len(columns)))
        held[probe[spot >= 0], spot[spot >= 0]] = 1
        cells = ((held, held), (held, 1 - held), (1 - held, held), (1 - held, 1 - held))
        sums += [[one.T @ (other * rest[:, None] ** power) for power in range(3)] for one, other in cells]
    count, total, square = sums.swapaxes(0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / count
        error = np.sqrt((np.maximum(square / count - mean**2, 0) / count).sum(axis=0))
    contrast = mean[0] - mean[1] - mean[2] + mean[3]
    unknown = (count.min(axis=0) < FEWEST_IN_A_CELL) | np.eye(len(columns), dtype=bool)
    contrast[unknown] = error[unknown] = np.nan
    return contrast, error


def mean_by_size(plan: ProbePlan, ledger: Ledger) -> Floats:
    """Mean J of the probes of each size; neighbouring sizes with few probes share one."""
    counts, sums = np.zeros(plan.largest + 1), np.zeros(plan.largest + 1)
    for subsets, values in replay(plan, ledger):
        counts += np.bincount(subsets.sizes, minlength=len(counts))
        sums += np.bincount(subsets.sizes, values, minlength=len(sums))
    group = ((np.cumsum(counts) - counts) // LIKE_SIZE).astype(np.int64)
    with np.errstate(invalid="ignore"):
        return (np.bincount(group, sums) / np.bincount(group, counts))[group]
