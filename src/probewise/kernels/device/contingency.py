"""Joint counts of one column of codes with all others on a device: the CPU's `kernels.contingency`, number by number.

A narrow column is a bit set for each level but the first. All bit sets lie side by side, word after word, and are met
by the bit sets of the other column: how many bits two have in common is a count. Wide columns, and any against a
column of very many levels, are counted by sorting pairs of codes. All numbers are whole, so the sums of c log2 c are
those of the CPU to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from . import filter_kernels
from .columns import Streams, free_bytes, require_room

MOST_BASES = 64  # levels of a column that is met as bit sets
EXACT_FLOATS = 2**24

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """Columns of equally many levels. bits (words, levels - 1, columns), int32; own (levels - 1, columns), how many
    bits each holds."""

    columns: Integers
    bits: Tensor
    own: Tensor


class DeviceCodes:
    """Codes as `probewise.information.Codes` keeps them, on a device; called with one more column, it counts."""

    def __init__(
        self,
        n_rows: int,
        levels: Integers,
        place: Integers,
        planes: NDArray[np.uint64],
        wide: NDArray[Any],
        table: Integers,
        *,
        narrow: int,
        device: str,
    ) -> None:
        require_room(3 * planes.nbytes + 4 * wide.size, device, f"the codes of {len(levels)} columns")
        self.n_rows, self.device, self.streams = n_rows, device, Streams(device)
        self.n_columns, self.room = len(levels), free_bytes(device)
        self.group_of = np.full(len(levels), -1)
        self.number = np.empty(len(levels), np.int64)
        self.groups: list[Group] = []
        with self.streams():
            self.table = torch.from_numpy(table).to(device)
            for n_levels in np.unique(levels[levels <= narrow]).tolist():
                self._add(np.flatnonzero(levels == n_levels), n_levels, place, planes)
            self.wide_columns = np.flatnonzero(levels > narrow)
            self.number[self.wide_columns] = place[self.wide_columns]
            self.wide = torch.from_numpy(wide.astype(np.int32)).to(device)

    def _add(self, columns: Integers, n_levels: int, place: Integers, planes: NDArray[np.uint64]) -> None:
        n_words = -(-self.n_rows // 64)
        words = planes[place[columns][:, None] + np.arange((n_levels - 1) * n_words)].view(np.int32)
        bits = torch.from_numpy(words.reshape(len(columns), n_levels - 1, 2 * n_words)).to(self.device)
        bits = bits.permute(2, 1, 0).contiguous()
        everyone = self._bit_sets(torch.ones(self.n_rows, dtype=torch.int64, device=self.device), 2)
        own = self._in_both(bits, everyone)[0] if n_levels > 1 else bits.new_zeros((0, len(columns)))
        self.group_of[columns], self.number[columns] = len(self.groups), np.arange(len(columns))
        self.groups.append(Group(columns, bits, own))

    def __call__(self, base: Integers, n_base: int, columns: Integers | None = None) -> tuple[Integers, Integers]:
        """Of ``base`` with each column: the sum of c log2 c over the joint cells, and how many are not empty."""
        n = self.n_columns if columns is None else len(columns)
        sums, cells = np.empty(n, np.int64), np.empty(n, np.int64)
        with self.streams():
            codes = torch.from_numpy(np.ascontiguousarray(base)).to(self.device)
            for group, where, chosen in self._chosen(columns):
                found = self._met(group, chosen, codes, n_base)
                sums[where], cells[where] = (numbers.cpu().numpy() for numbers in found)
        return sums, cells

    def _chosen(self, columns: Integers | None) -> Any:
        """(group, places among the columns asked for, their numbers in the group or None for all)."""
        groups: list[Group | None] = [*self.groups, None]
        for number, group in enumerate(groups):
            if columns is None:
                where = self.wide_columns if group is None else group.columns
                chosen = None
            else:
                where = np.flatnonzero(self.group_of[columns] == (-1 if group is None else number))
                chosen = torch.from_numpy(self.number[columns[where]]).to(self.device)
            if len(where):
                yield group, where, chosen

    def _met(self, group: Group | None, chosen: Tensor | None, base: Tensor, n_base: int) -> tuple[Tensor, Tensor]:
        if group is None:
            return self._by_sorting(self.wide if chosen is None else self.wide[chosen], base, n_base)
        bits = group.bits if chosen is None else group.bits[:, :, chosen]
        own = group.own if chosen is None else group.own[:, chosen]
        if n_base > MOST_BASES:
            return self._together(bits.shape[2], 32 * len(bits), lambda some: self._by_sorting(
                self._levels(bits[:, :, some]), base, n_base))  # fmt: skip
        margin = torch.bincount(base, minlength=n_base)
        masks = self._bit_sets(base, n_base)
        cost = 16 * n_base * (bits.shape[1] + 1)
        return self._together(
            bits.shape[2], cost, lambda some: self._by_bits(bits[:, :, some], own[:, some], masks, margin)
        )

    def _together(self, n_columns: int, cost: int, count: Any) -> tuple[Tensor, Tensor]:
        """Some columns at a time, each of which takes ``cost`` bytes."""
        step = max(1, self.room // (2 * cost))
        if step >= n_columns:
            return count(slice(None))
        found = [count(slice(start, start + step)) for start in range(0, n_columns, step)]
        return torch.cat([sums for sums, _ in found]), torch.cat([cells for _, cells in found])

    def _by_bits(self, bits: Tensor, own: Tensor, masks: Tensor, margin: Tensor) -> tuple[Tensor, Tensor]:
        """What no bit set holds is the rest: of the column's levels, of the other's, of both."""
        both = self._in_both(bits, masks)
        rest = own - both.sum(dim=0)
        first = margin[1:, None] - both.sum(dim=1)
        corner = margin[0] - rest.sum(dim=0)
        sums = self.table[corner] + self.table[first].sum(dim=0) + self.table[rest].sum(dim=0)
        cells = (corner > 0).int() + (first > 0).sum(dim=0) + (rest > 0).sum(dim=0)
        return sums + self.table[both].sum(dim=(0, 1)), cells + (both > 0).sum(dim=(0, 1))

    def _in_both(self, bits: Tensor, masks: Tensor) -> Tensor:
        """How many bits each bit set (words, levels, columns) has in common with each mask (words, masks): (masks,
        levels, columns)."""
        if not masks.shape[1] or not bits.shape[1]:
            return bits.new_zeros((masks.shape[1], *bits.shape[1:]))
        lines = bits.flatten(1)
        kernels = filter_kernels(self.device)
        both = self._products(lines, masks) if kernels is None else kernels.in_both(lines, masks)
        return both.view(masks.shape[1], *bits.shape[1:])

    def _products(self, lines: Tensor, masks: Tensor) -> Tensor:
        """The same by products of zeros and ones, in floats that hold such sums exactly."""
        kind = torch.float32 if self.n_rows < EXACT_FLOATS else torch.float64
        left = _unpacked(masks).to(kind).T
        step = max(1, self.room // (320 * len(lines)))
        parts = [left @ _unpacked(lines[:, a : a + step]).to(kind) for a in range(0, lines.shape[1], step)]
        return torch.cat(parts, dim=1).to(torch.int32)

    def _bit_sets(self, base: Tensor, n_base: int) -> Tensor:
        """Of each level of a column but the first, its rows as bits (words, levels - 1)."""
        n_words = -(-self.n_rows // 64) * 2
        bits = torch.zeros((32 * n_words, n_base - 1), dtype=torch.int64, device=self.device)
        bits[: self.n_rows] = base[:, None] == torch.arange(1, n_base, device=self.device)
        weights = 1 << torch.arange(32, device=self.device)
        return (bits.view(n_words, 32, n_base - 1) * weights[None, :, None]).sum(dim=1).to(torch.int32)

    def _levels(self, bits: Tensor) -> Tensor:
        """The level of every row of each column (columns, rows)."""
        codes = torch.zeros((32 * len(bits), bits.shape[2]), dtype=torch.int32, device=self.device)
        for level in range(bits.shape[1]):
            codes += (level + 1) * _unpacked(bits[:, level])
        return codes[: self.n_rows].T.contiguous()

    def _by_sorting(self, codes: Tensor, base: Tensor, n_base: int) -> tuple[Tensor, Tensor]:
        """For codes (columns, rows): equal pairs lie together once they are sorted."""
        return self._together(len(codes), 64 * self.n_rows, lambda some: self._sorted(codes[some], base, n_base))

    def _sorted(self, codes: Tensor, base: Tensor, n_base: int) -> tuple[Tensor, Tensor]:
        pairs = torch.sort(codes.long() * n_base + base, dim=1).values
        is_first = torch.ones_like(pairs, dtype=torch.bool)
        is_first[:, 1:] = pairs[:, 1:] != pairs[:, :-1]
        places = torch.nonzero(is_first.flatten())[:, 0]
        counts = torch.diff(places, append=places.new_tensor([pairs.numel()]))
        sums = torch.zeros(len(codes), dtype=torch.int64, device=self.device)
        return sums.index_add_(0, places // self.n_rows, self.table[counts]), is_first.sum(dim=1)


def _unpacked(words: Tensor) -> Tensor:
    """(words, lines) as one bit after the other (32 words, lines)."""
    shifts = torch.arange(32, dtype=torch.int32, device=words.device)
    return ((words[:, None] >> shifts[None, :, None]) & 1).flatten(0, 1)
