"""ReliefF and RReliefF: features ranked by how much they differ between near samples of different classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from .._selector import MISSING_CATEGORY, Accepts, Selector
from ..criteria.base import MOST_CLASSES, Target
from ..executors import Map, threads
from ..kernels import relief as kernels
from ..validation.parameters import check_parameter, discrete_columns, number_of, random_of, whole_number
from ..validation.tables import number_categories

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Neighbors = tuple[Rows, Rows, Floats]  # samples (n,), their neighbors (n, slots), and the distances (n, slots)

# At most 32 jobs, which keep many threads busy to the end. With few rows a job sums all pairs of rows over a slice of
# the columns, provided that there are at least 8 slices of 512 columns; with more it sums a block of pairs over all.
JOBS, LEAST_SLICES, LEAST_COLUMNS = 32, 8, 512
MOST_DISTANCES = 2**23  # held at a time by jobs over slices of columns: 64 MiB
LEAST_ROWS, MOST_ROWS = 64, 512  # number of rows of a block
LEAST_OTHERS, MOST_OTHERS = 256, 4096  # number of other rows that the rows of a block are compared with
MOST_BYTES = 2**32  # memory limit for the neighbors in more than MOST_CLASSES classes


@dataclass(eq=False, repr=False)
class ReliefF(Selector):
    """Rank features by how much more they differ between near samples of different classes than of the same class.

    For each of m samples R, with its k nearest samples of its class (hits H) and of every other class C (misses M),

        W[f] = sum over R of  - sum over H of diff(f, R, H) / (m k)
                              + sum over C of P(C) / (1 - P(class of R)) sum over M of diff(f, R, M) / (m k),

    where diff is |a - b| / (max - min) for numbers and 0 or 1 for categories, and the distance of two samples is the
    sum of diff over all features. Because distances use all features together, ReliefF finds features that only matter
    in combination, such as both halves of an XOR, which no univariate filter can find.

    For a continuous y it is RReliefF: with N_dC the sum of diff(y, R, I) / k over the k nearest samples I of every R,
    N_dA[f] the sum of diff(f, R, I) / k and N_dCdA[f] the sum of their products,

        W[f] = N_dCdA[f] / N_dC - (N_dA[f] - N_dCdA[f]) / (m - N_dC).

    Parameters
    ----------
    n_features_to_select, discrete_features, n_jobs
        See `DFE`; discrete features are categories.
    n_neighbors : int, default=10
        k. Few neighbors see fine structure but follow noise; with very many the method becomes univariate. Where a
        class has fewer samples, all of them are used, and k is their number.
    n_samples : int, float or None, default=None
        m, the number of samples R drawn without replacement, a share in (0, 1], or None for all samples, which removes
        the randomness. Run time is proportional to it.
    random_state : int, RandomState or None, default=None
        Seed for drawing samples; not used if all samples are taken.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The weights W, from -1 to 1; 0 for a constant feature.
    ranking_, support_
        See `DFE`.
    samples_ : array of int of shape (m,)
        The samples R, in ascending order.
    ranges_ : array of shape (n_features,)
        max - min of each feature.

    Notes
    -----
    Of equally distant samples the lower row comes first. Distances are summed in float64 and compared to 10 digits, so
    that equal sums of fractions or decimals count as equal, whatever the order of the columns.

    Departures: samples are drawn without replacement. In RReliefF all k neighbors have the same weight, which is also
    Weka's default; a part whose denominator is 0 adds 0.

    References
    ----------
    I. Kononenko, *Estimating attributes: analysis and extensions of RELIEF*, ECML 1994. M. Robnik-Sikonja,
    I. Kononenko, *Theoretical and empirical analysis of ReliefF and RReliefF*, Machine Learning 53 (2003), figures 2
    and 3. Ten drawn samples and ten neighbors: J. Liang, S. Yang, A. Winstanley, *Invariant optimal feature selection:
    a distance discriminant and feature ranking based solution*, Pattern Recognition 41 (2008), section 3.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import ReliefF
    >>> X, y = load_iris(return_X_y=True)
    >>> ReliefF(2).fit(X, y).ranking_.tolist()
    [3, 4, 2, 1]
    """

    _accepts = Accepts(categories=True, widths=(0.0, float(np.finfo(np.float64).max)))

    n_features_to_select: Any = None
    _: KW_ONLY
    n_neighbors: int = 10
    n_samples: Any = None
    discrete_features: Any = "auto"
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> ReliefF:
        """Compute the weight of every feature."""
        X, is_category = number_categories(X, MISSING_CATEGORY)
        X, y = self._checked(X, y)
        target = Target.of(y)
        if len(y) < 2:
            raise ValueError("X has a single row (n_samples=1), which has no neighbors: give at least two rows")
        check_parameter("n_neighbors", self.n_neighbors, whole_number(1))
        names = getattr(self, "feature_names_in_", None)
        discrete = discrete_columns(self.discrete_features, X.shape[1], names, is_category)
        self.samples_ = self._draw(X.shape[0])
        groups = Groups.of(target, int(self.n_neighbors))
        groups.require_memory(len(self.samples_))

        map = threads(self.n_jobs)
        table = ScaledTable.of(X, discrete, map)
        near = nearest(table, groups, self.samples_, map)
        if target.is_classification:
            weights = class_weights(groups, self.samples_)
        else:
            weights = regression_weights(target, self.samples_, near)
        self.ranges_ = table.ranges
        self._rank_by(weighted_diffs(table, self.samples_, near, weights, map))
        return self

    def _draw(self, n_rows: int) -> Rows:
        size = number_of("n_samples", self.n_samples, n_rows, "rows", "all")
        if size is None:
            return np.arange(n_rows)
        return np.sort(random_of(self.random_state).permutation(n_rows)[:size]).astype(np.int64)


@dataclass(frozen=True)
class ScaledTable:
    """X and the scaling (x - low) / divisor of its columns, after which diff is |a - b|; tiles are scaled on demand.

    In columns with more than two categories, different categories are at least 1 apart after scaling. If there are
    such columns, ``capped``, diff is min(|a - b|, 1).
    """

    X: Any
    low: Floats
    ranges: Floats
    divisor: Floats
    capped: bool

    @classmethod
    def of(cls, X: Any, discrete: NDArray[np.bool_], map: Map) -> ScaledTable:
        X = X.tocsc() if sp.issparse(X) else X
        parts = map(partial(_scaling, X, discrete), pieces(X.shape[1], 64))
        low, ranges, divisor, capped = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return cls(X, low, ranges, divisor, bool(capped.any()))

    def tile_filler(self, rows: Rows) -> Any:
        """A function of (start, tile) that sets tile[f, r] to the scaled value X[rows[r], start + f]."""
        scaling = self.low, self.divisor
        if not sp.issparse(self.X):
            return lambda start, tile: kernels.fill_dense(self.X, rows, start, *scaling, tile)
        slots = np.full(self.X.shape[0], -1)
        slots[rows] = np.arange(len(rows))
        csc = self.X.data, self.X.indices, self.X.indptr
        return lambda start, tile: kernels.fill_sparse(*csc, slots, len(rows), start, *scaling, tile)


def _scaling(X: Any, discrete: NDArray[np.bool_], columns: slice) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Minimum, range, divisor, and whether diff is capped, for some columns."""
    low, high = X[:, columns].min(axis=0), X[:, columns].max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    low, ranges = low.astype(np.float64), high.astype(np.float64) - low.astype(np.float64)
    divisor = np.where(ranges == 0, 1.0, ranges)
    capped = np.zeros(len(low), dtype=bool)
    step = max(1, 2**18 // X.shape[0])
    for start in range(0, len(low), step):
        chosen = np.flatnonzero(discrete[columns][start : start + step]) + start
        if len(chosen):
            values = X[:, chosen + columns.start]
            values = np.sort(values.toarray() if sp.issparse(X) else values, axis=0).astype(np.float64)
            steps = np.diff(values, axis=0)
            capped[chosen] = (steps > 0).sum(axis=0) > 1
            smallest_step = np.where(steps > 0, steps, np.inf).min(axis=0)
            divisor[chosen] = np.where(capped[chosen], smallest_step / 2, divisor[chosen])  # half: room for rounding
    return low, ranges, divisor, capped


@dataclass(frozen=True)
class Groups:
    """Classes in which neighbors are searched, a single one if y is continuous, with the slots for the neighbors."""

    codes: Rows
    counts: Rows
    k: int

    @classmethod
    def of(cls, target: Target, k: int) -> Groups:
        codes = target.values if target.is_classification else np.zeros(len(target.values), np.int64)
        return cls(codes, np.bincount(codes), k)

    @property
    def starts(self) -> Rows:
        """First slot of each class, and the number of all slots."""
        return np.concatenate([[0], np.cumsum(np.minimum(self.k, self.counts))])

    def empty_slots(self, n_rows: int) -> tuple[Rows, Floats]:
        shape = n_rows, self.starts[-1]
        return np.full(shape, -1), np.full(shape, np.inf)

    def require_memory(self, n_samples: int) -> None:
        """Refuse very many classes: every sample has neighbors in every class."""
        n_classes = len(self.counts)
        n_bytes = 8 * (n_classes * n_classes + 5 * n_samples * int(self.starts[-1]))
        if n_classes > MOST_CLASSES and n_bytes > MOST_BYTES:
            raise ValueError(
                f"y has {n_classes:,} classes, and ReliefF searches for neighbors of {n_samples:,} rows in each class, "
                f"which takes about {n_bytes / 2**30:.0f} GiB: draw fewer rows (n_samples) or join classes"
            )


@dataclass(frozen=True)
class Block:
    """Pairs of samples: ``rows`` and the ``others`` that they are compared with."""

    rows: Rows
    others: Rows
    both_ways: bool

    def distances(self, table: ScaledTable, columns: slice) -> Floats:
        """Sums of diff over some columns (rows, others)."""
        height, width = len(self.rows), len(self.others)
        at_a_time = int(np.clip(2**16 // width, 32, 256))
        begin = int(self.rows[0] - self.others[0]) + 1 if self.both_ways else -height
        sums = np.zeros((kernels.padded(height), kernels.padded(width)))
        fill_right, right = table.tile_filler(self.others), np.zeros((at_a_time, kernels.padded(width)))
        fill_left, left = fill_right, right
        if not (is_square := np.array_equal(self.rows, self.others)):
            fill_left, left = table.tile_filler(self.rows), np.zeros((at_a_time, kernels.padded(height)))
        for start in range(columns.start, columns.stop, at_a_time):
            n = min(at_a_time, columns.stop - start)
            fill_right(start, right[:n])
            if not is_square:
                fill_left(start, left[:n])
            kernels.add_diffs(left[:n], height, right[:n], width, begin, table.capped, sums)
        return np.ascontiguousarray(sums[:height, :width])

    def exclude(self, distances: Floats) -> None:
        """Set the distances of pairs that are not compared to infinity."""
        rows = self.rows[:, None]
        np.copyto(distances, np.inf, where=rows >= self.others if self.both_ways else rows == self.others)


def blocks_of(samples: Rows, n_rows: int, both_ways: bool) -> Iterator[Block]:
    """Blocks that cover every pair of a sample and another row once, the largest blocks first."""
    height = int(np.clip(len(samples) // 12, LEAST_ROWS, MOST_ROWS))
    width = MOST_OTHERS if both_ways else int(np.clip(n_rows // 16, LEAST_OTHERS, MOST_OTHERS))
    for top in range(0, len(samples), height):
        for start in range(top if both_ways else 0, n_rows, width):
            yield Block(samples[top : top + height], np.arange(start, min(start + width, n_rows)), both_ways)


def nearest(table: ScaledTable, groups: Groups, samples: Rows, map: Map) -> Rows:
    """Nearest rows of each class to every sample (m, slots), ascending within each class; -1 in unused slots."""
    n_rows, n_columns = table.X.shape
    both_ways = len(samples) == n_rows
    near, far = groups.empty_slots(len(samples))

    def part(rows: Rows) -> slice:
        start = int(np.searchsorted(samples, rows[0]))
        return slice(start, start + len(rows))

    def choose(rows: Rows, others: Rows, distances: Floats) -> Neighbors:
        # Threads read the distances in ``far`` while they fall: an old limit costs time but changes nothing.
        limits = far[part(rows)][:, groups.starts[:-1]]
        slots = groups.empty_slots(len(rows))
        kernels.choose(distances, others, groups.codes[others], groups.starts, limits, *slots)
        return rows, *slots

    def search(block: Block) -> list[Neighbors]:
        distances = block.distances(table, slice(0, n_columns))
        block.exclude(distances)
        neighbors = [choose(block.rows, block.others, distances)]
        return [*neighbors, choose(block.others, block.rows, distances.T.copy())] if both_ways else neighbors

    n_slices = min(JOBS, MOST_DISTANCES // (len(samples) * n_rows), n_columns // LEAST_COLUMNS)
    if n_slices >= LEAST_SLICES:
        block = Block(samples, np.arange(n_rows), both_ways)
        distances: Any = sum(map(partial(block.distances, table), pieces(n_columns, -(-n_columns // n_slices))))
        block.exclude(distances)
        if both_ways:
            distances = np.minimum(distances, distances.T)
        _, near, _ = choose(samples, block.others, distances)
    else:
        for neighbors in map(search, blocks_of(samples, n_rows, both_ways)):
            for rows, block_near, block_far in neighbors:
                kernels.merge(near[part(rows)], far[part(rows)], block_near, block_far, groups.starts)
    for start, end in zip(groups.starts[:-1], groups.starts[1:], strict=True):
        near[:, start:end].sort(axis=1)
    return near


def weighted_diffs(table: ScaledTable, samples: Rows, near: Rows, weights: Floats, map: Map) -> Floats:
    """Sum of weight * diff over the samples and their neighbors, for each feature."""
    padding = (0, 0), (0, -near.shape[1] % 4)
    weights = np.pad(np.where(near >= 0, weights, 0), padding)
    near = np.pad(near, padding, constant_values=-1)
    near = np.where(near >= 0, near, samples[:, None])
    n_rows, n_columns = table.X.shape
    at_a_time = int(np.clip(2**17 // n_rows, 8, 512))

    def weigh(columns: slice) -> Floats:
        fill = table.tile_filler(np.arange(n_rows))
        tile, sums = np.empty((at_a_time, n_rows)), np.zeros(columns.stop - columns.start)
        for start in range(0, len(sums), at_a_time):
            part = sums[start : start + at_a_time]
            fill(columns.start + start, tile[: len(part)])
            rows = np.ascontiguousarray(tile[: len(part)].T)
            kernels.add_weighted_diffs(rows, samples, near, weights, part)
        return sums

    return np.concatenate(list(map(weigh, pieces(n_columns, 64))))


def class_weights(groups: Groups, samples: Rows) -> Floats:
    """Weight of every neighbor: -1/(m k) for a hit, P(C) / (1 - P(class of R)) / (m k) for a miss."""
    share = groups.counts / groups.counts.sum()
    n_hits = np.minimum(groups.k, groups.counts - 1)
    by_class = share / (1 - share)[:, None] / np.minimum(groups.k, groups.counts)
    np.fill_diagonal(by_class, -1 / np.maximum(n_hits, 1))
    class_of_slot = np.repeat(np.arange(len(groups.counts)), np.diff(groups.starts))
    return by_class[groups.codes[samples][:, None], class_of_slot] / len(samples)


def regression_weights(target: Target, samples: Rows, near: Rows) -> Floats:
    """Weight of every neighbor in RReliefF, whose W is linear in the feature's diff as well."""
    y = target.values
    k = np.count_nonzero(near[0] >= 0)
    y_diff = np.where(near >= 0, np.abs(y[samples][:, None] - y[near]), 0) / np.ptp(y)
    n_dc = y_diff.sum() / k
    return (y_diff / (n_dc or 1.0) - (1 - y_diff) / ((len(samples) - n_dc) or 1.0)) / k


def pieces(n_columns: int, at_least: int) -> list[slice]:
    """Slices of the columns, one for each job, with ``at_least`` columns each."""
    return list(gen_batches(n_columns, max(at_least, -(-n_columns // JOBS))))
