"""The probes of a ledger drawn again, with their J as it was, or less what probes of like size give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .ledger import Ledger
from .probes import ProbePlan, Subsets
from .tally import Tally, size_deviations

Floats = NDArray[np.float64]
BATCH_PROBES, BATCH_FEATURES = 4096, 2**25  # a batch holds at most so many, to bound memory
LIKE_SIZE = 20  # probes of neighbouring sizes that share a mean, so that no mean is of a few probes


def replay(plan: ProbePlan, ledger: Ledger) -> Iterator[tuple[Subsets, Floats]]:
    """The probes of the ledger with their J, in batches."""
    for start, stop in batches(plan, 0, ledger.n_probes):
        yield plan.draw(start, stop), ledger.values(start, stop)


def adjusted(plan: ProbePlan, ledger: Ledger, only: int | None = None) -> Iterator[tuple[Subsets, Floats]]:
    """The probes of the ledger with their J less the mean J of the probes of like size in their round, in batches.

    All rounds, or the only one asked for by its number.
    """
    starts = [min(part.start, ledger.n_probes) for part in plan.rounds]
    rounds = list(zip(starts, [*starts[1:], ledger.n_probes], strict=True))
    for first, end in rounds if only is None else [rounds[only]]:
        typical = mean_by_size(plan, ledger, first, end)
        for start, stop in batches(plan, first, end):
            subsets = plan.draw(start, stop)
            yield subsets, ledger.values(start, stop) - typical[subsets.sizes]


def mean_by_size(plan: ProbePlan, ledger: Ledger, start: int, stop: int) -> Floats:
    """Mean J of the probes of each size, of those from start to stop; neighbouring sizes with few share one."""
    counts, sums_of_j = np.zeros(plan.largest + 1), np.zeros(plan.largest + 1)
    for low, high in batches(plan, start, stop):
        sizes = plan.sizes(low, high)
        counts += np.bincount(sizes, minlength=len(counts))
        sums_of_j += np.bincount(sizes, ledger.values(low, high), minlength=len(counts))
    group = _alike(counts)
    with np.errstate(invalid="ignore"):
        return (np.bincount(group, sums_of_j) / np.bincount(group, counts))[group]


def sizes_alike(plan: ProbePlan, n_probes: int) -> NDArray[np.int64]:
    """For each size the number of the mean that it shares with neighbouring ones, among the first probes."""
    counts = np.zeros(plan.largest + 1)
    for low, high in batches(plan, 0, n_probes):
        counts += np.bincount(plan.sizes(low, high), minlength=len(counts))
    return _alike(counts)


def _alike(counts: Floats) -> NDArray[np.int64]:
    return ((np.cumsum(counts) - counts) // LIKE_SIZE).astype(np.int64)


def batches(plan: ProbePlan, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Where a replay is cut, so that memory is bounded."""
    batch = max(1, min(BATCH_PROBES, BATCH_FEATURES // plan.largest))
    return ((low, min(low + batch, stop)) for low in range(start, stop, batch))


def size_adjusted_tally(plan: ProbePlan, ledger: Ledger) -> Tally:
    """The tally of J less the mean J of probes of like size; its mean difference is DAF0, centred."""
    return Tally.over(adjusted(plan, ledger), plan.n_features)


def size_scaled_tally(plan: ProbePlan, ledger: Ledger, *, min_probes: int = 30, centered: bool = False) -> Tally:
    """The tally of J(S) / sigma(|S|) over the ledger, or of J less that of like size; its mean difference is DAF2.

    (2011, eq. 13-15)
    """
    shift = float(ledger.values(0, 1)[0])
    deviations = size_deviations(replay(plan, ledger), plan.largest, shift=shift, min_probes=min_probes)
    batches = (adjusted if centered else replay)(plan, ledger)
    return Tally.over(((subsets, values / deviations[subsets.sizes]) for subsets, values in batches), plan.n_features)
