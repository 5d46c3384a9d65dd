"""The tally: sums of J over probes for every feature, which add up, and the DAF coefficients they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..kernels import sums
from .probes import Subsets

Floats = NDArray[np.float64]
COEFFICIENTS = ("daf0", "daf1", "daf2", "daf0_centered", "daf2_centered", "regression")
FEATURES_AT_A_TIME = 2**16


@dataclass(frozen=True, eq=False)
class Tally:
    """Count, sum and sum of squares of J over all probes, and over the probes that hold each feature.

    Sums are of ``J - shift``, so that a J that is large against its deviation loses no digits. Tallies of
    different probes add; with one shift the sum is exact to rounding, with two it is brought to the first's.

    Attributes
    ----------
    n_probes, total, total_square : over all probes.
    table : array (n_features, 3), the same three numbers over the probes that hold the feature.
    shift : what was taken off every J.
    """

    n_probes: int
    total: float
    total_square: float
    table: Floats
    shift: float = 0.0

    @classmethod
    def empty(cls, n_features: int, shift: float = 0.0) -> Tally:
        return cls(0, 0.0, 0.0, np.zeros((n_features, 3)), shift)

    @classmethod
    def of(cls, subsets: Subsets, values: Floats, n_features: int, shift: float = 0.0) -> Tally:
        """The tally of a batch of probes and their J."""
        return cls.over([(subsets, values)], n_features, shift)

    @classmethod
    def over(cls, batches: Iterable[tuple[Subsets, Floats]], n_features: int, shift: float = 0.0) -> Tally:
        """The tally of one batch after the other."""
        sheet = TallySheet(n_features, shift)
        for subsets, values in batches:
            sheet.add(subsets, values)
        return sheet.view()

    def __add__(self, other: Tally) -> Tally:
        if self.n_features != other.n_features:
            raise ValueError(f"tallies of {self.n_features} and {other.n_features} features do not add")
        other = other.shifted(self.shift)
        return Tally(
            self.n_probes + other.n_probes,
            self.total + other.total,
            self.total_square + other.total_square,
            self.table + other.table,
            self.shift,
        )

    def shifted(self, shift: float) -> Tally:
        """The same knowledge, counted from another zero."""
        if shift == self.shift:
            return self
        move = self.shift - shift
        table = self.table.copy()
        table[:, 2] += move * (2 * table[:, 1] + move * table[:, 0])
        table[:, 1] += move * table[:, 0]
        total_square = self.total_square + move * (2 * self.total + move * self.n_probes)
        return Tally(self.n_probes, self.total + move * self.n_probes, total_square, table, shift)

    @property
    def n_features(self) -> int:
        return len(self.table)

    @property
    def counts(self) -> NDArray[np.int64]:
        """In how many probes each feature was."""
        return self.table[:, 0].astype(np.int64)

    @property
    def mean(self) -> float:
        """Mean J over all probes."""
        return self.shift + self.total / self.n_probes if self.n_probes else np.nan

    @property
    def coverage(self) -> int:
        """The least, over features, of the probes with it and the probes without it (2011, eq. 16)."""
        return int(min(self.table[:, 0].min(initial=self.n_probes), self.n_probes - self.table[:, 0].max(initial=0)))

    def covers(self, n_probes: int) -> bool:
        """Whether ``coverage`` is at least this; while it is not, the answer does not take a look at every feature."""
        return bool(sums.is_covered(self.table, self.n_probes, n_probes))

    def daf0(self) -> Floats:
        """Mean J with the feature less mean J without it (2011, eq. 7)."""
        out = np.empty(self.n_features)
        sums.mean_differences(self.table, self.n_probes, self.total, out)
        return out

    def daf1(self) -> Floats:
        """DAF0 over the count-weighted mean of the two standard deviations (2011, eq. 10)."""
        return self._by_pieces(lambda part: _ratio(part.daf0(), part._deviation()))

    def std_errors(self, coefficient: str = "daf0") -> Floats:
        """Welch's standard error of DAF0; for DAF1 divided by the same deviation as the coefficient."""
        return self._by_pieces(lambda part: part._errors(coefficient))

    def _by_pieces(self, measure: Callable[[Tally], Floats]) -> Floats:
        """A measure of every feature, made for some at a time: what is needed on the way stays small."""
        out = np.empty(self.n_features)
        for start in range(0, self.n_features, FEATURES_AT_A_TIME):
            piece = slice(start, start + FEATURES_AT_A_TIME)
            out[piece] = measure(replace(self, table=self.table[piece]))
        return out

    def _errors(self, coefficient: str) -> Floats:
        inside, outside = self.sides
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(inside.variance / inside.count + outside.variance / outside.count)
        return _ratio(error, self._deviation()) if coefficient == "daf1" else error

    def _deviation(self) -> Floats:
        inside, outside = self.sides
        with np.errstate(divide="ignore", invalid="ignore"):
            weighted = inside.count * np.sqrt(inside.variance) + outside.count * np.sqrt(outside.variance)
            return weighted / self.n_probes

    @property
    def sides(self) -> tuple[PowerSums, PowerSums]:
        """Of the probes with each feature, and of those without it."""
        totals = np.array([self.n_probes, self.total, self.total_square])
        return PowerSums(*self.table.T), PowerSums(*(totals - self.table).T)


@dataclass(frozen=True)
class PowerSums:
    """Counts, sums and sums of squares, and the population variance they give."""

    count: Floats
    total: Floats
    total_square: Floats

    @property
    def variance(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self.total / self.count
            return np.maximum(self.total_square / self.count - mean * mean, 0.0)


class TallySheet:
    """A tally being written: the one mutable place, so that a probe costs its size and not n_features.

    Probes are added one after the other in the order given, so how they are cut into batches does not
    change a bit of the result. ``view`` shares memory with the sheet.
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


def size_deviations(
    batches: Iterable[tuple[Subsets, Floats]], largest: int, *, shift: float = 0.0, min_probes: int = 30
) -> Floats:
    """sigma(d), the population standard deviation of J over probes of size d (2011, eq. 12), for d = 0..largest.

    A size seen in fewer than ``min_probes`` probes takes in its neighbours on both sides, one step at a
    time, until the pool holds enough probes and a deviation above zero. Where J never varies, 1.
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

    # A wider pool never holds fewer probes nor, if it varies, stops varying: bisect for the least reach.
    low, high = np.zeros(len(sizes), np.int64), np.full(len(sizes), largest)
    while np.any(low < high):
        middle = (low + high) // 2
        pooled = pool(middle)
        enough = (pooled.count >= min_probes) & (pooled.variance > usable)
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
    deviations = np.ones(largest + 1)
    found = np.sqrt(pool(high).variance)
    deviations[sizes] = np.where(found > 0, found, 1.0)
    return deviations


def positions(scores: Floats) -> NDArray[np.int64]:
    """Place of each feature in descending order of score, from 0; ties to the lower index, NaN last."""
    order = np.argsort(-scores)  # not stable, but without ties several times as fast as numpy's stable sort
    ordered = scores[order]
    tie_group = np.zeros(len(scores), np.int64)
    np.cumsum((ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[:-1]), out=tie_group[1:])
    first_key = tie_group * len(scores)
    order = np.sort(first_key + order) - first_key  # ties by index
    places = np.empty(len(scores), np.int64)
    places[order] = np.arange(len(scores))
    return places


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = numerator / denominator
    return np.where((denominator == 0) & (numerator == 0), 0.0, ratio)
