"""The tally: sums of J per feature over the probes of a ledger, and the DAF coefficients computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels import sums
from .ledger import Ledger
from .probes import ProbePlan, Subsets

Floats = NDArray[np.float64]
COEFFICIENTS = ("daf0", "daf1", "daf2", "daf0_centered", "daf2_centered", "regression")
BATCH_PROBES, BATCH_FEATURES = 4096, 2**25  # limits of a batch of a replay
MIN_PROBES_PER_DEVIATION = 30
MIN_PROBES_PER_MEAN = 20  # neighboring sizes share a mean until they have this many probes together


@dataclass(frozen=True, eq=False)
class Tally:
    """Count, sum and sum of squares of J over all probes, and over the probes that contain each feature.

    Sums are of ``J - shift``, so that no digits are lost where J is large compared with its standard deviation.
    """

    n_probes: int
    total: float
    total_square: float
    table: Floats  # (n_features, 3): count, sum and sum of squares over the probes that contain each feature
    shift: float = 0.0

    @classmethod
    def of(cls, subsets: Subsets, values: Floats, n_features: int, shift: float = 0.0) -> Tally:
        """Tally of one batch of probes and their J."""
        return cls.over([(subsets, values)], n_features, shift)

    @classmethod
    def over(cls, batches: Iterable[tuple[Subsets, Floats]], n_features: int, shift: float = 0.0) -> Tally:
        """Tally of several batches."""
        sheet = TallySheet(n_features, shift)
        for subsets, values in batches:
            sheet.add(subsets, values)
        return sheet.view()

    @property
    def n_features(self) -> int:
        return len(self.table)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of probes that contain each feature."""
        return self.table[:, 0].astype(np.int64)

    @property
    def mean(self) -> float:
        """Mean J over all probes."""
        return self.shift + self.total / self.n_probes if self.n_probes else np.nan

    def covers(self, n_probes: int) -> bool:
        """Whether every feature is in, and out of, at least ``n_probes`` probes (2011, eq. 16)."""
        inside = self.table[:, 0]
        return bool((inside >= n_probes).all() and (self.n_probes - inside >= n_probes).all())

    def daf0(self) -> Floats:
        """Mean J of probes with the feature minus mean J of probes without it (2011, eq. 7)."""
        inside, with_it = self.table[:, 0], self.table[:, 1]
        outside = self.n_probes - inside
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = with_it / inside - (self.total - with_it) / outside
        return np.where((inside > 0) & (outside > 0), difference, np.nan)

    def daf1(self) -> Floats:
        """DAF0 divided by the count-weighted mean of the two standard deviations (2011, eq. 10)."""
        return _ratio(self.daf0(), self.deviation())

    def std_errors(self, coefficient: str = "daf0") -> Floats:
        """Welch's standard error of DAF0; for DAF1 divided by the same deviation as the coefficient."""
        inside, outside = self.sides
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(inside.variance / inside.count + outside.variance / outside.count)
        return _ratio(error, self.deviation()) if coefficient == "daf1" else error

    def deviation(self) -> Floats:
        """Count-weighted mean of the standard deviations of J over the probes with, and without, each feature."""
        inside, outside = self.sides
        with np.errstate(divide="ignore", invalid="ignore"):
            weighted = inside.count * np.sqrt(inside.variance) + outside.count * np.sqrt(outside.variance)
            return weighted / self.n_probes

    @property
    def sides(self) -> tuple[PowerSums, PowerSums]:
        """Sums over the probes with each feature, and over the probes without it."""
        totals = np.array([self.n_probes, self.total, self.total_square])
        return PowerSums(*self.table.T), PowerSums(*(totals - self.table).T)


@dataclass(frozen=True)
class PowerSums:
    """Counts, sums and sums of squares, with the population variance computed from them."""

    count: Floats
    total: Floats
    total_square: Floats

    @property
    def variance(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self.total / self.count
            return np.maximum(self.total_square / self.count - mean * mean, 0.0)


class TallySheet:
    """A tally that grows in place, so that adding a probe costs time in proportion to its size, not to n_features.

    Probes are added in order, so the result does not depend on how they are divided into batches, not by a bit. The
    tally returned by ``view`` shares memory with the sheet.
    """

    def __init__(self, n_features: int, shift: float = 0.0) -> None:
        self.table = np.zeros((n_features, 3))
        self.totals = np.zeros(3)
        self.shift = shift

    def add(self, subsets: Subsets, values: Floats) -> None:
        shifted = np.asarray(values, dtype=np.float64) - self.shift
        sums.add_probes(self.table, self.totals, subsets.indices, subsets.offsets, shifted)

    def view(self) -> Tally:
        n_probes, total, total_square = self.totals.tolist()
        return Tally(int(n_probes), total, total_square, self.table, self.shift)


# ---- replay: the probes of a ledger, drawn again


def replay(plan: ProbePlan, ledger: Ledger) -> Iterator[tuple[Subsets, Floats]]:
    """Yield the probes of the ledger with their J, in batches."""
    for start, stop in batches(plan, 0, ledger.n_probes):
        yield plan.draw(start, stop), ledger.values(start, stop)


def adjusted(plan: ProbePlan, ledger: Ledger, start: int, stop: int) -> Iterator[tuple[Subsets, Floats]]:
    """Yield probes start, ..., stop - 1 with J minus the mean J of those of similar size, in batches."""
    means = mean_by_size(plan, ledger, start, stop)
    for low, high in batches(plan, start, stop):
        subsets = plan.draw(low, high)
        yield subsets, ledger.values(low, high) - means[subsets.sizes]


def mean_by_size(plan: ProbePlan, ledger: Ledger, start: int, stop: int) -> Floats:
    """Mean J of each probe size among probes start to stop; neighboring sizes with few probes share a mean."""
    counts, sums_of_j = np.zeros(plan.largest + 1), np.zeros(plan.largest + 1)
    for low, high in batches(plan, start, stop):
        sizes = plan.sizes(low, high)
        counts += np.bincount(sizes, minlength=len(counts))
        sums_of_j += np.bincount(sizes, ledger.values(low, high), minlength=len(counts))
    group = ((np.cumsum(counts) - counts) // MIN_PROBES_PER_MEAN).astype(np.int64)
    with np.errstate(invalid="ignore"):
        return (np.bincount(group, sums_of_j) / np.bincount(group, counts))[group]


def batches(plan: ProbePlan, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Divide a replay into batches, which bounds its memory."""
    batch = max(1, min(BATCH_PROBES, BATCH_FEATURES // plan.largest))
    for low in range(start, stop, batch):
        yield low, min(low + batch, stop)


def size_adjusted_tally(plan: ProbePlan, ledger: Ledger) -> Tally:
    """Tally of J minus the mean J of probes of similar size; its DAF0 is ``daf0_centered``."""
    return Tally.over(adjusted(plan, ledger, 0, ledger.n_probes), plan.n_features)


def size_scaled_tally(plan: ProbePlan, ledger: Ledger, *, centered: bool = False) -> Tally:
    """Tally of J(S) / sigma(|S|) (2011, eq. 13-15); its DAF0 is DAF2, or with centered J ``daf2_centered``."""
    shift = float(ledger.values(0, 1)[0])
    deviations = size_deviations(replay(plan, ledger), plan.largest, shift=shift)
    probes = adjusted(plan, ledger, 0, ledger.n_probes) if centered else replay(plan, ledger)
    return Tally.over(((subsets, values / deviations[subsets.sizes]) for subsets, values in probes), plan.n_features)


def size_deviations(batches: Iterable[tuple[Subsets, Floats]], largest: int, *, shift: float = 0.0) -> Floats:
    """Standard deviation sigma(d) of J over probes of size d (2011, eq. 12), for d = 0..largest; 1 if J never varies.

    A size with fewer than 30 probes is pooled with neighboring sizes on both sides.
    """
    table = np.zeros((largest + 1, 3))
    for subsets, values in batches:
        shifted = np.asarray(values, dtype=np.float64) - shift
        np.add.at(table, subsets.sizes, np.column_stack([np.ones(len(shifted)), shifted, shifted**2]))
    running = np.vstack([np.zeros(3), np.cumsum(table, axis=0)])
    usable = 1e-12 * PowerSums(*running[-1]).variance
    sizes = np.flatnonzero(table[:, 0])

    def pool(reach: NDArray[np.int64]) -> PowerSums:
        low, high = np.maximum(sizes - reach, 0), np.minimum(sizes + reach, largest) + 1
        sums_in_reach = np.where((reach == 0)[:, None], table[sizes], running[high] - running[low])
        return PowerSums(*sums_in_reach.T)

    # A wider pool has at least as many probes, and a variance above 0 stays above 0: bisect for the smallest reach.
    low, high = np.zeros(len(sizes), np.int64), np.full(len(sizes), largest)
    while np.any(low < high):
        middle = (low + high) // 2
        pooled = pool(middle)
        enough = (pooled.count >= MIN_PROBES_PER_DEVIATION) & (pooled.variance > usable)
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
    deviations = np.ones(largest + 1)
    pooled_deviations = np.sqrt(pool(high).variance)
    deviations[sizes] = np.where(pooled_deviations > 0, pooled_deviations, 1.0)
    return deviations


def positions(scores: Floats) -> NDArray[np.int64]:
    """Position of each feature in descending order of score, from 0; ties go to the lower index, NaN is last."""
    order = np.argsort(-scores)  # not stable, but several times as fast as a stable sort where there are no ties
    ordered = scores[order]
    tie_group = np.zeros(len(scores), np.int64)
    np.cumsum((ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[:-1]), out=tie_group[1:])
    first_key = tie_group * len(scores)
    order = np.sort(first_key + order) - first_key  # ties by index
    ranks = np.empty(len(scores), np.int64)
    ranks[order] = np.arange(len(scores))
    return ranks


def rounded(values: Floats) -> Floats:
    """J to 12 digits: sums of the same numbers in another order are ties."""
    return np.array([float(f"{value:.12g}") for value in values.tolist()])


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = numerator / denominator
    return np.where((denominator == 0) & (numerator == 0), 0.0, ratio)
