"""The probes of a ledger, drawn again: with their J, or with J minus the mean J of probes of similar size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .ledger import Ledger
from .probes import ProbePlan, Subsets
from .tally import Tally, size_deviations

Floats = NDArray[np.float64]
BATCH_PROBES, BATCH_FEATURES = 4096, 2**25  # limits of a batch
MIN_PROBES_PER_MEAN = 20  # neighboring sizes share a mean until they have this many probes together


def replay(plan: ProbePlan, ledger: Ledger) -> Iterator[tuple[Subsets, Floats]]:
    """Yield the probes of the ledger with their J, in batches."""
    for start, stop in batches(plan, 0, ledger.n_probes):
        yield plan.draw(start, stop), ledger.values(start, stop)


def adjusted(plan: ProbePlan, ledger: Ledger, only: int | None = None) -> Iterator[tuple[Subsets, Floats]]:
    """Yield probes with J minus the mean J of probes of similar size in the same round, in batches.

    ``only`` is the number of a single round; None: all rounds.
    """
    starts = [min(part.start, ledger.n_probes) for part in plan.rounds]
    rounds = list(zip(starts, [*starts[1:], ledger.n_probes], strict=True))
    for first, end in rounds if only is None else [rounds[only]]:
        means = mean_by_size(plan, ledger, first, end)
        for start, stop in batches(plan, first, end):
            subsets = plan.draw(start, stop)
            yield subsets, ledger.values(start, stop) - means[subsets.sizes]


def mean_by_size(plan: ProbePlan, ledger: Ledger, start: int, stop: int) -> Floats:
    """Mean J of each probe size among probes start to stop; neighboring sizes with few probes share a mean."""
    counts, sums_of_j = np.zeros(plan.largest + 1), np.zeros(plan.largest + 1)
    for low, high in batches(plan, start, stop):
        sizes = plan.sizes(low, high)
        counts += np.bincount(sizes, minlength=len(counts))
        sums_of_j += np.bincount(sizes, ledger.values(low, high), minlength=len(counts))
    group = _group_sizes(counts)
    with np.errstate(invalid="ignore"):
        return (np.bincount(group, sums_of_j) / np.bincount(group, counts))[group]


def size_groups(plan: ProbePlan, n_probes: int) -> NDArray[np.int64]:
    """For each size, the number of the group of sizes that share a mean, among the first probes."""
    counts = np.zeros(plan.largest + 1)
    for low, high in batches(plan, 0, n_probes):
        counts += np.bincount(plan.sizes(low, high), minlength=len(counts))
    return _group_sizes(counts)


def _group_sizes(counts: Floats) -> NDArray[np.int64]:
    return ((np.cumsum(counts) - counts) // MIN_PROBES_PER_MEAN).astype(np.int64)


def batches(plan: ProbePlan, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Divide a replay into batches, which bounds its memory."""
    batch = max(1, min(BATCH_PROBES, BATCH_FEATURES // plan.largest))
    return ((low, min(low + batch, stop)) for low in range(start, stop, batch))


def size_adjusted_tally(plan: ProbePlan, ledger: Ledger) -> Tally:
    """Tally of J minus the mean J of probes of similar size; its DAF0 is ``daf0_centered``."""
    return Tally.over(adjusted(plan, ledger), plan.n_features)


def size_scaled_tally(plan: ProbePlan, ledger: Ledger, *, min_probes: int = 30, centered: bool = False) -> Tally:
    """Tally of J(S) / sigma(|S|) (2011, eq. 13-15); its DAF0 is DAF2, or with centered J ``daf2_centered``."""
    shift = float(ledger.values(0, 1)[0])
    deviations = size_deviations(replay(plan, ledger), plan.largest, shift=shift, min_probes=min_probes)
    batches = (adjusted if centered else replay)(plan, ledger)
    return Tally.over(((subsets, values / deviations[subsets.sizes]) for subsets, values in batches), plan.n_features)
