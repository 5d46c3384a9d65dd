"""ReliefF and RReliefF: features ranked by how they differ between near rows of the same and of other classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from .._selector import RankingSelector
from ..criteria.base import MOST_CLASSES, Target
from ..executors import Map, one_blas_thread, threads
from ..kernels import relief as kernels
from ..validation.parameters import is_whole, number_of, random_of
from ..validation.tables import discrete_columns, number_categories

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Neighbours = tuple[Rows, Floats]  # (rows, slots): the neighbours as `kernels.relief` keeps them, and how far they are

# Up to 32 jobs keep many threads busy to the end. Of few rows a job sums over some columns for all pairs of rows, where
# at least 8 such jobs of 512 columns can be made; else over all columns for a block of pairs.
JOBS, LEAST_COLUMN_JOBS, LEAST_COLUMNS = 32, 8, 512
LEAST_ROWS, MOST_ROWS = 64, 512  # of a block, and the other rows they are compared with
LEAST_OTHERS, MOST_OTHERS = 256, 4096
MOST_DISTANCES = 2**23  # kept at a time by jobs of columns: 64 MiB
MOST_BYTES = 2**32  # for neighbours in more than MOST_CLASSES classes


@dataclass(eq=False, repr=False)
class ReliefF(RankingSelector):
    """Ranks features by how much more they differ between near rows of different classes than of the same one.

    For each of m rows R, with its k nearest rows of its own class (hits H) and of every other class C (misses M),

        W[f] = sum over R of  - sum over H of diff(f, R, H) / (m k)
                              + sum over C of P(C) / (1 - P(class of R)) sum over M of diff(f, R, M) / (m k),

    where diff is |a - b| / (max - min) of numbers and 0 or 1 of categories, and the distance of two rows is the sum of
    diff over all features. Neighbours are near in all features together, so a feature is seen in the company of the
    others: the halves of an XOR are found, which no filter of single features can do.

    For a continuous y it is RReliefF: with N_dC the sum of diff(y, R, I) / k over the k nearest rows I of every R,
    N_dA[f] that of diff(f, R, I) / k and N_dCdA[f] that of their product,

        W[f] = N_dCdA[f] / N_dC - (N_dA[f] - N_dCdA[f]) / (m - N_dC).

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Features to keep: a number, a share in (0, 1], or None for half. May be changed after ``fit``.
    n_neighbors : int, default=10
        k. Few see fine structure and are swayed by noise; very many turn the method into one that looks at each feature
        alone. Where a class has fewer rows, all of them are taken, and k is their number.
    n_samples : int, float or None, default=None
        m, how many rows R are drawn, without replacement: a number, a share in (0, 1], or None for all rows, which
        leaves nothing to chance. Time grows with it.
    discrete_features : "auto", bool or array-like, default="auto"
        Which features are categories: "auto" (columns of a frame with a category or boolean type, or all of a boolean
        array), True, False, a mask, or numbers or names of columns.
    n_jobs : int or None, default=None
        Threads; the result is the same for any number.
    random_state : int, RandomState or None, default=None
        An int for a draw of rows that can be repeated; not used when all rows are taken.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The weights W, from -1 to 1; 0 for a constant feature.
    ranking_, support_ : array of shape (n_features,)
        Ranks, 1 is best, ties to the lower column; and which features are selected.
    samples_ : array of int of shape (m,)
        The rows R, ascending.
    ranges_ : array of shape (n_features,)
        max - min of each feature.

    Notes
    -----
    Of rows equally far the lower comes first. Distances are summed in float64 and compared to 10 digits, so that sums
    of fractions or decimals that are equal count as equal, whatever the order of the columns.

    A class of a single row has no hits: they add 0. With many irrelevant features distances lose their meaning, and
    the weights their strength.

    Departures: rows are drawn without replacement. In RReliefF all k neighbours count alike, as in Weka unless asked;
    a part whose denominator is 0 adds 0.

    References
    ----------
    I. Kononenko, *Estimating attributes: analysis and extensions of RELIEF*, ECML 1994. M. Robnik-Sikonja,
    I. Kononenko, *Theoretical and empirical analysis of ReliefF and RReliefF*, Machine Learning 53 (2003), figures 2
    and 3. Ten drawn rows and ten neighbours: J. Liang, S. Yang, A. Winstanley, *Invariant optimal feature selection: a
    distance discriminant and feature ranking based solution*, Pattern Recognition 41 (2008), section 3.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import ReliefF
    >>> X, y = load_iris(return_X_y=True)
    >>> relieff = ReliefF(2).fit(X, y)
    >>> relieff.ranking_.tolist()
    [3, 4, 2, 1]
    >>> relieff.transform(X).shape
    (150, 2)
    """

    _takes_categories = True
    _widths = (0.0, float(np.finfo(np.float64).max))

    n_features_to_select: Any = None
    _: KW_ONLY
    n_neighbors: int = 10
    n_samples: Any = None
    discrete_features: Any = "auto"
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> ReliefF:
        """Weigh every feature."""
        X, found = number_categories(X, self.missing_category)
        X, y = self._checked(X, y)
        target = Target.of(y)
        _require_variety(target)
        if not is_whole(self.n_neighbors, 1):
            raise ValueError(f"n_neighbors={self.n_neighbors!r}: give a whole number of at least 1")
        names = getattr(self, "feature_names_in_", None)
        discrete = discrete_columns(self.discrete_features, X.shape[1], names, found)
        self.samples_ = self._draw(X.shape[0])

        map = threads(self.n_jobs)
        groups = Groups.of(target, int(self.n_neighbors))
        groups.require_room(len(self.samples_))
        with one_blas_thread():  # once for the three maps: to set it takes as long as a map
            table = ScaledTable.of(X, discrete, map)
            place = OnCPU(table, groups, map)
            near = place.nearest(self.samples_)
            if target.is_classification:
                weights = class_weights(groups, self.samples_)
            else:
                weights = number_weights(target, self.samples_, near)
            self._keep(place.weighted_diffs(self.samples_, near, weights))
        self.ranges_ = table.ranges
        return self

    def _draw(self, n_rows: int) -> Rows:
        size = number_of("n_samples", self.n_samples, n_rows, "rows", "all")
        if size is None:
            return np.arange(n_rows)
        return np.sort(random_of(self.random_state).permutation(n_rows)[:size]).astype(np.int64)


def _require_variety(target: Target) -> None:
    if len(target.values) < 2:
        raise ValueError("n_samples=1: a row has no neighbours; give at least two rows")
    if np.ptp(target.values) == 0:
        found = f"y has only one value ({target.values[0]}): features cannot be told apart by it"
        raise ValueError(f"{found}; give rows that differ in y")


@dataclass(frozen=True)
class ScaledTable:
    """X with what scales its columns, laid out a tile at a time: no copy of X is made.

    A scaled column is (x - low) / divisor, for which diff is |a - b|. Where there are more than two categories they
    are at least 1 apart, and diff is capped at 1.
    """

    X: Any
    low: Floats
    ranges: Floats
    divisor: Floats
    capped: NDArray[np.bool_]

    @classmethod
    def of(cls, X: Any, discrete: NDArray[np.bool_], map: Map) -> ScaledTable:
        X = X.tocsc() if sp.issparse(X) else X
        parts = map(partial(_extent, X, discrete), pieces(X.shape[1], 64))
        low, ranges, divisor, capped = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return cls(X, low, ranges, divisor, capped)

    def layer(self, rows: Rows) -> Any:
        """A function of (start, tile) that lays these rows of the columns from start on into a tile."""
        scale = self.low, self.divisor
        if not sp.issparse(self.X):
            return lambda start, tile: kernels.lay_dense(self.X, rows, start, *scale, tile)
        place = np.full(self.X.shape[0], -1)
        place[rows] = np.arange(len(rows))
        csc = self.X.data, self.X.indices, self.X.indptr
        return lambda start, tile: kernels.lay_sparse(*csc, place, len(rows), start, *scale, tile)


def _extent(X: Any, discrete: NDArray[np.bool_], columns: slice) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Of some columns: the least value, the range, the divisor, and whether diff is capped."""
    low, high = X[:, columns].min(axis=0), X[:, columns].max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    low, ranges = low.astype(np.float64), high.astype(np.float64) - low.astype(np.float64)
    divisor = np.where(ranges == 0, 1.0, ranges)
    capped = np.zeros(len(low), dtype=bool)
    step = max(1, 2**18 // X.shape[0])
    for start in range(columns.start, columns.stop, step):
        where = np.flatnonzero(discrete[start : min(start + step, columns.stop)]) + start
        if len(where):
            part = X[:, where].toarray() if sp.issparse(X) else X[:, where]
            where -= columns.start
            capped[where] = ((part != low[where]) & (part != high[where])).any(axis=0)
            divisor[where] = np.where(capped[where], _apart(part), divisor[where])
    return low, ranges, divisor, capped


def _apart(categories: NDArray[Any]) -> Floats:
    """For each column a number that different categories are at least apart, with room for rounding if it is not 1."""
    apart = np.ones(categories.shape[1])
    if categories.dtype.kind != "f":
        return apart
    odd = (categories != np.rint(categories)).any(axis=0)
    steps = np.diff(np.sort(categories[:, odd].astype(np.float64), axis=0), axis=0)
    apart[odd] = np.where(steps > 0, steps, np.inf).min(axis=0) / 2
    return apart


@dataclass(frozen=True)
class Groups:
    """The classes that neighbours are looked for in, one if y is a quantity, and the slots for those of each."""

    codes: Rows
    counts: Rows
    k: int

    @classmethod
    def of(cls, target: Target, k: int) -> Groups:
        codes = target.values if target.is_classification else np.zeros(len(target.values), np.int64)
        return cls(codes, np.bincount(codes), k)

    @property
    def starts(self) -> Rows:
        """Where the slots of each class start, and where the last ones end."""
        return np.concatenate([[0], np.cumsum(np.minimum(self.k, self.counts))])

    def require_room(self, n_samples: int) -> None:
        """Neighbours of every class are kept for every sample, and limits of every class for every row."""
        n_classes = len(self.counts)
        numbers = n_classes * (len(self.codes) + n_classes) + 5 * n_samples * int(self.starts[-1])
        if n_classes > MOST_CLASSES and 8 * numbers > MOST_BYTES:
            raise ValueError(
                f"y has {n_classes:,} classes, and ReliefF looks for neighbours in each for {n_samples:,} rows, "
                f"which takes some {8 * numbers / 2**30:.0f} GiB: draw fewer rows (n_samples) or join classes"
            )


@dataclass(frozen=True)
class OnCPU:
    """The nearest rows of every sample, and sums of diff over them, on the CPU."""

    table: ScaledTable
    groups: Groups
    map: Map

    def nearest(self, samples: Rows) -> Rows:
        """The nearest rows of each class to every sample (m, slots), ascending in each class; -1 where there are none.

        ``limits`` (rows, classes) are the distances of the farthest of the neighbours known so far. Threads read them
        while they come down: an old one costs time and changes nothing.
        """
        n_rows, n_columns = self.table.X.shape
        limits = np.full((n_rows, len(self.groups.counts)), np.inf)
        near, far = self._no_neighbours(len(samples))
        both_ways = len(samples) == n_rows
        column_jobs = min(JOBS, MOST_DISTANCES // (len(samples) * n_rows), n_columns // LEAST_COLUMNS)
        if column_jobs >= LEAST_COLUMN_JOBS:
            block = Block(samples, np.arange(n_rows), both_ways)
            parts = self.map(partial(self._distances, block), pieces(n_columns, -(-n_columns // column_jobs)))
            self._choose(block, sum(parts), limits, (near, far), (near, far))
        else:
            for found in self.map(partial(self._neighbours_in, limits), blocks_of(samples, n_rows, both_ways)):
                for rows, more in found:
                    start = np.searchsorted(samples, rows[0])
                    part = slice(start, start + len(rows))
                    kernels.merge(near[part], far[part], *more, self.groups.starts, rows, limits)
        for start, end in zip(self.groups.starts[:-1], self.groups.starts[1:], strict=True):
            near[:, start:end].sort(axis=1)
        return near

    def _no_neighbours(self, n_rows: int) -> Neighbours:
        shape = n_rows, self.groups.starts[-1]
        return np.full(shape, -1), np.full(shape, np.inf)

    def _neighbours_in(self, limits: Floats, block: Block) -> list[tuple[Rows, Neighbours]]:
        """Rows, and the neighbours found for them among the pairs of the block."""
        distances = self._distances(block, slice(0, self.table.X.shape[1]))
        mine = self._no_neighbours(len(block.rows))
        theirs = self._no_neighbours(len(block.others) if block.both_ways else 0)
        self._choose(block, distances, limits, mine, theirs)
        return [(block.rows, mine), (block.others, theirs)] if block.both_ways else [(block.rows, mine)]

    def _distances(self, block: Block, columns: slice) -> Floats:
        """Sums of diff over some columns: (rows, others), with room to spare."""
        height, width = len(block.rows), len(block.others)
        at_a_time = int(np.clip(2**16 // width, 32, 256))
        sums = np.zeros((kernels.room(height), kernels.room(width)))
        lay_others, others = self.table.layer(block.others), np.zeros((at_a_time, kernels.room(width)))
        lay, mine = lay_others, others
        if not (same := np.array_equal(block.rows, block.others)):
            lay, mine = self.table.layer(block.rows), np.zeros((at_a_time, kernels.room(height)))
        for start in range(columns.start, columns.stop, at_a_time):
            n = min(at_a_time, columns.stop - start)
            lay_others(start, others[:n])
            if not same:
                lay(start, mine[:n])
            capped = self.table.capped[start : start + n].any()
            kernels.add_diffs(mine[:n], height, others[:n], width, block.begin, capped, sums)
        return sums

    def _choose(self, block: Block, distances: Any, limits: Floats, mine: Neighbours, theirs: Neighbours) -> None:
        """Put into the slots who is nearest."""
        own_limits, other_limits = limits[block.rows], limits[block.others].T.copy()
        if not block.both_ways:
            other_limits[:] = -np.inf
            _, i, j = np.intersect1d(block.rows, block.others, assume_unique=True, return_indices=True)
            distances[i, j] = np.inf
        kernels.choose(
            distances, block.begin, block.rows, block.others, self.groups.codes, self.groups.starts,
            own_limits, other_limits, *mine, *theirs,
        )  # fmt: skip

    def weighted_diffs(self, samples: Rows, near: Rows, weights: Floats) -> Floats:
        """For each feature the sum of weight * diff over the samples and their neighbours."""
        extra = -near.shape[1] % kernels.ABREAST
        weights = np.pad(np.where(near >= 0, weights, 0), ((0, 0), (0, extra)))
        near = np.pad(near, ((0, 0), (0, extra)), constant_values=-1)
        near = np.where(near >= 0, near, samples[:, None])
        n_rows, n_columns = self.table.X.shape
        at_a_time = int(np.clip(2**17 // n_rows, 8, 512))

        def weigh(columns: slice) -> Floats:
            lay = self.table.layer(np.arange(n_rows))
            tile = np.empty((at_a_time, n_rows))
            sums = np.zeros(columns.stop - columns.start)
            for start in range(0, len(sums), at_a_time):
                part = sums[start : start + at_a_time]
                lay(columns.start + start, tile[: len(part)])
                capped = self.table.capped[columns.start + start :][: len(part)].any()
                by_row = np.ascontiguousarray(tile[: len(part)].T)
                kernels.add_weighted_diffs(by_row, samples, near, weights, capped, part)
            return sums

        return np.concatenate(list(self.map(weigh, pieces(n_columns, 64))))


@dataclass(frozen=True)
class Block:
    """Rows, the others they are compared with, and whether these look for neighbours too."""

    rows: Rows
    others: Rows
    both_ways: bool

    @property
    def begin(self) -> int:
        """The i-th row is compared with others from begin + i on: both ways, a pair is looked at once."""
        return int(self.rows[0] - self.others[0]) + 1 if self.both_ways else -len(self.rows)


def blocks_of(samples: Rows, n_rows: int, both_ways: bool) -> Iterator[Block]:
    """All pairs of a sample and another row, each once; the largest blocks first."""
    height = int(np.clip(len(samples) // 12, LEAST_ROWS, MOST_ROWS))
    width = MOST_OTHERS if both_ways else int(np.clip(n_rows // 16, LEAST_OTHERS, MOST_OTHERS))
    for top in range(0, len(samples), height):
        for start in range(top if both_ways else 0, n_rows, width):
            others = np.arange(start, min(start + width, n_rows))
            yield Block(samples[top : top + height], others, both_ways)


def class_weights(groups: Groups, samples: Rows) -> Floats:
    """What a neighbour's diff counts: -1/(m k) for a hit, P(C) / (1 - P(class of R)) / (m k) for a miss."""
    share = groups.counts / groups.counts.sum()
    hits = np.minimum(groups.k, groups.counts - 1)
    by_class = share / (1 - share)[:, None] / np.minimum(groups.k, groups.counts)
    np.fill_diagonal(by_class, -1 / np.maximum(hits, 1))
    class_of_slot = np.repeat(np.arange(len(groups.counts)), np.diff(groups.starts))
    return by_class[groups.codes[samples][:, None], class_of_slot] / len(samples)


def number_weights(target: Target, samples: Rows, near: Rows) -> Floats:
    """The same for RReliefF, which is linear in a feature's diff as well."""
    y = target.values
    k = np.count_nonzero(near[0] >= 0)
    apart = np.where(near >= 0, np.abs(y[samples][:, None] - y[near]), 0) / np.ptp(y)
    unlike = apart.sum() / k
    like = len(samples) - unlike
    return (apart / (unlike or 1.0) - (1 - apart) / (like or 1.0)) / k


def pieces(n_columns: int, at_least: int) -> list[slice]:
    """The columns, cut into as many pieces as there are jobs, or fewer."""
    return list(gen_batches(n_columns, max(at_least, -(-n_columns // JOBS))))
