"""Permutations of the target: whole groups are exchanged, rows are shuffled within groups and within strata."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..kernels import permutations as kernels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MIN_GROUPS = 6  # groups of one size that are exchanged among themselves; fewer are joined with those of the next size


@dataclass(frozen=True, eq=False)
class Permutations:
    """Random permutations of values of rows that keep the dependence of rows in a group.

    Under the null hypothesis groups of one size are exchangeable, and so are the rows of a group. A group is exchanged
    with groups of its stratum and of its size. Where fewer than 6 groups have a size, groups of similar sizes are
    exchanged: their mean moves, and the deviations from it stay in the group. Without groups each row is a group.
    """

    values: Floats  # (targets, rows)
    means: Floats  # (targets, groups), sorted by bin
    deviations: Floats  # (targets, rows), sorted by group
    group_starts: Ints
    bin_starts: Ints  # the groups of a bin are exchanged with each other
    carries: NDArray[np.bool_]  # for each bin, whether deviations move with the means; else they stay in the group
    rows: Ints  # row numbers, sorted by group
    seed: int

    @classmethod
    def of(cls, values: Floats, groups: Ints | None, strata: Ints, seed: int) -> Permutations:
        n_rows = values.shape[1]
        groups = np.arange(n_rows) if groups is None else groups
        # A group that is in two strata counts as two groups.
        cells = strata * (int(groups.max()) + 1) + groups
        _, group_of, sizes = np.unique(cells, return_inverse=True, return_counts=True)
        stratum_of = np.zeros(len(sizes), np.int64)
        stratum_of[group_of] = strata
        order_of_groups, bin_starts = _bins(stratum_of, sizes)
        place = np.empty(len(sizes), np.int64)
        place[order_of_groups] = np.arange(len(sizes))
        rows = np.argsort(place[group_of], kind="stable")
        sizes = sizes[order_of_groups]
        sums = np.stack([np.bincount(place[group_of], row, minlength=len(sizes)) for row in values])
        means = sums / sizes
        carries = np.array([sizes[low] == sizes[high - 1] for low, high in pairwise(bin_starts)])
        deviations = (values - means[:, place[group_of]])[:, rows]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return cls(values, means, deviations, starts, bin_starts, carries, rows, seed)

    @property
    def are_simple(self) -> bool:
        """Whether all rows are exchanged with each other, without groups and strata."""
        return len(self.bin_starts) == 2 and self.means.shape[1] == len(self.rows)

    @property
    def log_arrangements(self) -> float:
        """Logarithm of the number of different arrangements of the group means."""
        total = 0.0
        for low, high in pairwise(self.bin_starts):
            counts = np.unique(self.means[:, low:high].round(12), axis=1, return_counts=True)[1]
            total += float(gammaln(high - low + 1) - gammaln(counts + 1).sum())
        return total

    def draw(self, start: int, stop: int) -> NDArray[np.float32]:
        """(draws, targets, rows): permuted values of draws start, ..., stop - 1."""
        out = np.empty((stop - start, *self.values.shape), np.float32)
        kernels.permuted(
            self.means,
            self.deviations,
            self.group_starts,
            self.bin_starts,
            self.carries,
            self.rows,
            self.seed,
            start,
            out,
        )
        return out


def permuted_rows(groups: Ints | None, n_rows: int, seed: int) -> Ints:
    """For each row, the row whose target it gets in one random permutation.

    In a group that gets the targets of a group of another size, some of them are left out or repeated.
    """
    groups = np.arange(n_rows) if groups is None else groups
    draws = Permutations.of(groups[None].astype(np.float64), groups, np.zeros(n_rows, np.int64), seed)
    source = draws.draw(0, 1)[0, 0].astype(np.int64)  # the group whose targets each row gets
    sizes, starts = np.bincount(groups), np.searchsorted(np.sort(groups), np.arange(groups.max() + 1))
    by_group = np.argsort(groups, kind="stable")
    place = np.empty(n_rows, np.int64)
    place[by_group] = np.arange(n_rows) - starts[groups[by_group]]
    shuffled = np.lexsort((np.random.default_rng(seed).random(n_rows), groups))
    return np.asarray(shuffled[starts[source] + place % sizes[source]])


def _bins(stratum_of: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """The groups sorted by stratum and size, and where each set of groups that are exchanged begins."""
    order = np.lexsort((sizes, stratum_of))
    stratum, size = stratum_of[order], sizes[order]
    starts = [0]
    for border in (np.flatnonzero(np.diff(stratum) | np.diff(size)) + 1).tolist():
        n_left = int(np.searchsorted(stratum, stratum[border], side="right")) - border
        enough = border - starts[-1] >= MIN_GROUPS and n_left >= MIN_GROUPS
        if enough or stratum[border] != stratum[border - 1]:
            starts.append(border)
    return order, np.array([*starts, len(order)])
