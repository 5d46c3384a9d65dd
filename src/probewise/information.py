"""Entropy, mutual information and measures made of them, on integer codes: one column against many.

Counts are whole numbers, and so are the sums of c log2 c made from them: values that are equal on paper are equal here,
whatever the order of rows, columns or levels.
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
DECIMALS = 12  # closer than this is equal
COLUMNS_AT_A_TIME = 8192  # in a job of a thread; for fewer in all there is one job
PAIR_BLOCK = 64  # columns of a job over pairs; after each the best value found is known to all


@dataclass(frozen=True)
class Codes:
    """Columns of small whole numbers: bit sets where a column has few levels, rows of level numbers where many."""

    n_rows: int
    levels: Integers  # that each column may have
    place: Integers  # where its bit sets begin in ``planes``, or its row of ``wide``
    planes: NDArray[np.uint64]
    wide: NDArray[Any]

    @classmethod
    def empty(cls, n_rows: int, levels: Integers) -> Codes:
        """Room for columns of that many levels."""
        is_wide = levels > kernels.NARROW
        words = np.where(is_wide, 0, (levels - 1) * ((n_rows + 63) // 64))
        place = np.where(is_wide, np.cumsum(is_wide) - 1, np.cumsum(words) - words)
        number = np.uint16 if levels.max(initial=1) <= 2**16 else np.int32
        return cls(n_rows, levels, place, np.zeros(words.sum(), np.uint64), np.empty((is_wide.sum(), n_rows), number))

    @classmethod
    def of(cls, codes: Any) -> Codes:
        """From a matrix of whole numbers (rows x columns), or one column."""
        matrix = np.asarray(codes)
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
        numbered = [np.unique(column, return_inverse=True) for column in matrix.T]
        levels = np.array([len(values) for values, _ in numbered], dtype=np.int64)
        room = cls.empty(len(matrix), levels)
        offsets = np.concatenate([[0], np.cumsum(levels - 1)])
        cuts = np.concatenate([np.arange(count - 1) + 0.5 for count in levels])
        for start, (_, numbers) in enumerate(numbered):
            room.fill(numbers[None].astype(np.float64), start, cuts, offsets)
        return room

    def fill(self, values: Floats, start: int, cuts: Floats, offsets: Integers) -> None:
        """Put in the columns from ``start`` on: rows of ``values``, cut at ``cuts[offsets[column]:...]``."""
        kernels.encode(values, start, cuts, offsets, self.levels, self.place, self.planes, self.wide)

    def column(self, number: int) -> Integers:
        out = np.empty(self.n_rows, np.int64)
        kernels.decode(number, self.levels, self.place, self.planes, self.wide, out)
        return out

    @property
    def n_columns(self) -> int:
        return len(self.levels)

    @cached_property
    def scale(self) -> tuple[Integers, float]:
        """c log2 c as whole numbers, and how many make a bit."""
        return entropy_table(self.n_rows)

    @cached_property
    def margins(self) -> tuple[Integers, Integers]:
        """Of each column alone: the sum of c log2 c, and how many of its levels occur."""
        return self.joint(np.zeros(self.n_rows, np.int64), 1)

    @property
    def entropies(self) -> Floats:
        table, _ = self.scale
        return self.in_bits(table[self.n_rows] - self.margins[0])

    @property
    def kappas(self) -> Integers:
        """How many levels of each column occur."""
        return self.margins[1]

    def in_bits(self, sums: Any) -> Any:
        return np.round(sums / (self.scale[1] * self.n_rows), DECIMALS) + 0.0

    def joint(
        self, base: Integers, n_base: int, columns: Integers | None = None, *, map: Map = in_turn
    ) -> tuple[Integers, Integers]:
        """Of ``base`` with each column: the sum of c log2 c over the joint cells, and how many are not empty."""
        columns = np.arange(self.n_columns) if columns is None else columns
        sums, cells = np.empty(len(columns), np.int64), np.empty(len(columns), np.int64)

        def count(part: slice) -> None:
            room = (self.levels, self.place, self.planes, self.wide)
            kernels.joint(columns[part], *room, base, n_base, self.scale[0], sums[part], cells[part])

        parts = [slice(start, start + COLUMNS_AT_A_TIME) for start in range(0, len(columns), COLUMNS_AT_A_TIME)]
        list((map if len(parts) > 1 else in_turn)(count, parts))
        return sums, cells

    def against(self, base: Any, columns: Integers | None = None, *, map: Map = in_turn) -> Shared:
        """What one column of codes, or the one of that number here, shares with each column."""
        codes, n_levels = numbered(self.column(base) if np.ndim(base) == 0 else base)
        sums, cells = self.joint(codes, n_levels, columns, map=map)
        table, _ = self.scale
        own = int(table[np.bincount(codes)].sum())
        return Shared(self, own, self.margins[0] if columns is None else self.margins[0][columns], sums, cells)

    def largest_extended_gain(self, columns: Integers, *, map: Map = in_turn) -> float:
        """The largest extended balanced gain of any two of the columns; pairs that cannot win are not counted."""
        table, _ = self.scale
        entropies = table[self.n_rows] - self.margins[0]
        evenness = _balanced(self.in_bits(entropies), self.kappas)[columns]
        order = columns[np.argsort(-evenness, kind="stable")]
        best = np.zeros(1)

        def search(part: slice) -> float:
            room = (self.levels, self.place, self.planes, self.wide)
            found = kernels.largest_gain(order, part.start, part.stop, *room, entropies, self.kappas, table, best)
            best[0] = max(best[0], found)
            return found

        starts = range(0, len(order), PAIR_BLOCK)
        found = max(map(search, [slice(a, min(a + PAIR_BLOCK, len(order))) for a in starts]), default=0.0)
        return float(np.round(found / (self.scale[1] * self.n_rows), DECIMALS))


@dataclass(frozen=True)
class Shared:
    """One column against many, from the sums of c log2 c of each alone and of both together."""

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
        """I(base; column), bits."""
        return self.codes.in_bits(self._all - self.base - self.columns + self.joint)

    @property
    def uncertainty(self) -> Floats:
        """Symmetrical uncertainty, 2 I / (H + H); 0 where neither varies."""
        both = self.codes.in_bits(2 * self._all - self.base - self.columns)
        return np.round(np.divide(2 * self.information, both, out=np.zeros(len(both)), where=both > 0), DECIMALS)

    def add_to(self, sums: Floats, taken: int, likeness: Floats, partners: Integers) -> None:
        """Add the information to ``sums``; where column ``taken`` is the most alike so far, keep by how much and it."""
        unit = self.codes.scale[1] * self.codes.n_rows
        kernels.add_shared(self.joint, self.base, self.columns, self._all, unit, taken, sums, likeness, partners)

    @property
    def extended_gain(self) -> Floats:
        """Extended balanced information gain, I over log2 of the joint cells that are not empty."""
        return _balanced(self.information, self.cells)


def entropy(codes: Any) -> Any:
    """H in bits of a column of codes, or of each column of a matrix."""
    return _like(codes, _as_codes(codes).entropies)


def mutual_information(base: Any, many: Any) -> Any:
    """I(base; column) in bits, for one column (a number comes back) or each column of a matrix.

    >>> mutual_information([0, 0, 1, 1], [[0, 0], [0, 1], [1, 0], [1, 1]]).tolist()
    [1.0, 0.0]
    """
    return _like(many, _as_codes(many).against(base).information)


def symmetrical_uncertainty(base: Any, many: Any) -> Any:
    """2 I / (H(base) + H(column)), from 0 to 1 (2004, eq. 3); 0 where neither varies."""
    return _like(many, _as_codes(many).against(base).uncertainty)


def balanced_gain(many: Any, y: Any) -> Any:
    """B_g = I(y; column) / log2 kappa, kappa the column's levels that occur (2004, eq. 5); 0 for one level."""
    codes = _as_codes(many)
    return _like(many, _balanced(codes.against(y).information, codes.kappas))


def extended_balanced_gain(base: Any, many: Any) -> Any:
    """I(base; column) / log2 of the joint cells that are not empty (2004, eq. 6); symmetric."""
    return _like(many, _as_codes(many).against(base).extended_gain)


def numbered(column: Any) -> tuple[Integers, int]:
    """A column's values as 0, 1, ... in their order, and how many there are."""
    values, numbers = np.unique(np.asarray(column), return_inverse=True)
    return numbers.astype(np.int64), len(values)


def _balanced(information: Floats, kappas: Integers) -> Floats:
    balanced: Floats = np.where(kappas > 1, information / np.log2(np.maximum(kappas, 2.0)), 0.0)
    return np.round(balanced, DECIMALS)


def _as_codes(many: Any) -> Codes:
    return many if isinstance(many, Codes) else Codes.of(many)


def _like(many: Any, values: Floats) -> Any:
    return values if isinstance(many, Codes) or np.ndim(many) == 2 else float(values[0])
