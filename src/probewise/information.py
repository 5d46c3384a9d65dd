"""Entropy, mutual information and related measures of coded columns: one column against many.

Each measure is computed from counts c of rows, by sums of c log2 c that are stored as whole numbers: values that are
equal on paper are equal here, whatever the order of rows, columns or levels. Equations are those of Y. Wu, A. Zhang,
*Feature selection for classifying high-dimensional numerical data*, CVPR 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .executors import Map, in_turn
from .kernels import contingency as kernels
from .kernels.intervals import entropy_table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
DECIMALS = 12  # to which results are rounded: closer values are equal
COLUMNS_AT_A_TIME = 8192  # counted by one job; fewer columns than that are counted by a single thread
PAIR_BLOCK = 64  # columns of one job over pairs; after each job the best value is known to all


@dataclass(frozen=True)
class Codes:
    """Columns of small whole numbers: bit sets for columns with few levels, arrays of level numbers for the others."""

    n_rows: int
    levels: Integers  # number of possible levels of each column
    starts: Integers  # where the column starts in ``bit_sets``, or its row of ``wide_codes``
    bit_sets: NDArray[np.uint64]
    wide_codes: NDArray[Any]

    @classmethod
    def empty(cls, n_rows: int, levels: Integers) -> Codes:
        """Memory for columns with these numbers of levels."""
        is_wide = levels > kernels.NARROW
        words = np.where(is_wide, 0, (levels - 1) * ((n_rows + 63) // 64))
        starts = np.where(is_wide, np.cumsum(is_wide) - 1, np.cumsum(words) - words)
        dtype = np.uint16 if levels.max(initial=1) <= 2**16 else np.int32
        return cls(n_rows, levels, starts, np.zeros(words.sum(), np.uint64), np.empty((is_wide.sum(), n_rows), dtype))

    @classmethod
    def of(cls, codes: Any) -> Codes:
        """Codes of a matrix of whole numbers (rows x columns), or of one column."""
        matrix = np.asarray(codes)
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
        columns, levels = zip(*map(numbered, matrix.T), strict=True)
        counts = np.array(levels, dtype=np.int64)
        result = cls.empty(len(matrix), counts)
        cuts = np.concatenate([np.arange(count - 1) + 0.5 for count in levels])
        result.fill(np.stack(columns).astype(np.float64), 0, cuts, np.concatenate([[0], np.cumsum(counts - 1)]))
        return result

    def fill(self, values: Floats, start: int, cuts: Floats, offsets: Integers) -> None:
        """Encode the columns from ``start`` on: rows of ``values``, cut at ``cuts[offsets[column]:...]``."""
        kernels.encode(values, start, cuts, offsets, *self._arrays)

    def column(self, number: int) -> Integers:
        """Levels of one column."""
        out = np.empty(self.n_rows, np.int64)
        kernels.decode(number, *self._arrays, out)
        return out

    @property
    def _arrays(self) -> tuple[Integers, Integers, NDArray[np.uint64], NDArray[Any]]:
        return self.levels, self.starts, self.bit_sets, self.wide_codes

    @property
    def n_columns(self) -> int:
        return len(self.levels)

    @cached_property
    def scale(self) -> tuple[Integers, float]:
        """c log2 c as whole numbers, and the whole number that stands for one bit."""
        return entropy_table(self.n_rows)

    @cached_property
    def margins(self) -> tuple[Integers, Integers]:
        """Sum of c log2 c of each column, and the number of its levels that occur."""
        return self.joint(np.zeros(self.n_rows, np.int64), 1)

    @property
    def entropies(self) -> Floats:
        return self.in_bits(self.scale[0][self.n_rows] - self.margins[0])

    @property
    def kappas(self) -> Integers:
        """Number of levels that occur in each column."""
        return self.margins[1]

    def in_bits(self, sums: Any) -> Any:
        return np.round(sums / (self.scale[1] * self.n_rows), DECIMALS) + 0.0

    def joint(
        self, base: Integers, n_base: int, columns: Integers | None = None, *, map: Map = in_turn
    ) -> tuple[Integers, Integers]:
        """Sum of c log2 c over the joint cells of ``base`` and each column, and the number of cells that occur."""
        columns = np.arange(self.n_columns) if columns is None else columns
        sums, cells = np.empty(len(columns), np.int64), np.empty(len(columns), np.int64)

        def count(part: slice) -> None:
            kernels.joint(columns[part], *self._arrays, base, n_base, self.scale[0], sums[part], cells[part])

        parts = [slice(start, start + COLUMNS_AT_A_TIME) for start in range(0, len(columns), COLUMNS_AT_A_TIME)]
        list((map if len(parts) > 1 else in_turn)(count, parts))
        return sums, cells

    def against(self, base: Any, columns: Integers | None = None, *, map: Map = in_turn) -> Shared:
        """Joint counts of ``base``, a column of codes or the number of one, with each column."""
        codes, n_levels = numbered(self.column(base) if np.ndim(base) == 0 else base)
        sums, cells = self.joint(codes, n_levels, columns, map=map)
        base_sum = int(self.scale[0][np.bincount(codes)].sum())
        return Shared(self, base_sum, self.margins[0] if columns is None else self.margins[0][columns], sums, cells)

    def largest_extended_gain(self, columns: Integers, *, map: Map = in_turn) -> float:
        """Largest extended balanced gain of any two of the columns; pairs that cannot win are not counted."""
        table, unit = self.scale
        entropies = table[self.n_rows] - self.margins[0]
        evenness = _balanced(self.in_bits(entropies), self.kappas)[columns]
        order = columns[np.argsort(-evenness, kind="stable")]
        best = np.zeros(1)

        def search(start: int) -> float:
            stop = min(start + PAIR_BLOCK, len(order))
            gain = kernels.largest_gain(order, start, stop, *self._arrays, entropies, self.kappas, table, best)
            best[0] = max(best[0], gain)
            return gain

        largest = max(map(search, range(0, len(order), PAIR_BLOCK)), default=0.0)
        return float(np.round(largest / (unit * self.n_rows), DECIMALS))


@dataclass(frozen=True)
class Shared:
    """Information that one column, the base, shares with many, from sums of c log2 c of each and of both together."""

    codes: Codes
    base: int
    columns: Integers
    joint: Integers
    cells: Integers

    @property
    def _all(self) -> int:
        return int(self.codes.scale[0][self.codes.n_rows])

    @property
    def base_entropy(self) -> float:
        return float(self.codes.in_bits(self._all - self.base))

    @property
    def joint_entropy(self) -> Floats:
        return self.codes.in_bits(self._all - self.joint)

    @property
    def information(self) -> Floats:
        """I(base; column) in bits."""
        return self.codes.in_bits(self._all - self.base - self.columns + self.joint)

    @property
    def uncertainty(self) -> Floats:
        """Symmetrical uncertainty, 2 I / (H + H); 0 where both columns are constant."""
        both = self.codes.in_bits(2 * self._all - self.base - self.columns)
        return np.round(np.divide(2 * self.information, both, out=np.zeros(len(both)), where=both > 0), DECIMALS)

    @property
    def extended_gain(self) -> Floats:
        """Extended balanced information gain, I / log2 of the number of joint cells that occur."""
        return _balanced(self.information, self.cells)

    def add_to(self, sums: Floats, taken: int, redundancy: Floats, partners: Integers) -> None:
        """Add I(base; column) to ``sums``; store the largest uncertainty so far and its column ``taken``."""
        unit = self.codes.scale[1] * self.codes.n_rows
        kernels.add_shared(self.joint, self.base, self.columns, self._all, unit, taken, sums, redundancy, partners)


def entropy(codes: Any) -> Any:
    """Entropy H in bits of a column of codes, or of each column of a matrix."""
    return _one_or_many(codes, _as_codes(codes).entropies)


def mutual_information(base: Any, many: Any) -> Any:
    """Mutual information I(base; column) in bits: a number for one column, an array for the columns of a matrix.

    >>> mutual_information([0, 0, 1, 1], [[0, 0], [0, 1], [1, 0], [1, 1]]).tolist()
    [1.0, 0.0]
    """
    return _one_or_many(many, _as_codes(many).against(base).information)


def symmetrical_uncertainty(base: Any, many: Any) -> Any:
    """Symmetrical uncertainty 2 I / (H(base) + H(column)), from 0 to 1 (eq. 3); 0 where both columns are constant."""
    return _one_or_many(many, _as_codes(many).against(base).uncertainty)


def balanced_gain(many: Any, y: Any) -> Any:
    """Balanced gain B_g = I(y; column) / log2 kappa, kappa the number of levels that occur (eq. 5); 0 for one level."""
    codes = _as_codes(many)
    return _one_or_many(many, _balanced(codes.against(y).information, codes.kappas))


def extended_balanced_gain(base: Any, many: Any) -> Any:
    """Balanced gain of two columns: I(base; column) / log2 of the number of joint cells that occur (eq. 6)."""
    return _one_or_many(many, _as_codes(many).against(base).extended_gain)


def numbered(column: Any) -> tuple[Integers, int]:
    """Values of a column as numbers 0, 1, ... in their order, and how many different values there are."""
    values, numbers = np.unique(np.asarray(column), return_inverse=True)
    return numbers.astype(np.int64), len(values)


def _balanced(information: Floats, kappas: Integers) -> Floats:
    balanced: Floats = np.where(kappas > 1, information / np.log2(np.maximum(kappas, 2.0)), 0.0)
    return np.round(balanced, DECIMALS)


def _as_codes(many: Any) -> Codes:
    return many if isinstance(many, Codes) else Codes.of(many)


def _one_or_many(many: Any, values: Floats) -> Any:
    return values if isinstance(many, Codes) or np.ndim(many) == 2 else float(values[0])
