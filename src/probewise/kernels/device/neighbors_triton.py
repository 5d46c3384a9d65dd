"""Nearest neighbours in one Triton kernel: products and search fused, tile by tile, the nearest kept in registers.

The table of distances is never written. A distance and its place in the tile share 32 bits: the lowest bits of the
distance give way to the place, so the least of a row is found with its place in one comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from .columns import ALIGN

ROWS = 64
COLUMNS = 64
WARPS = 4
STAGES = 2
ALWAYS = 4  # up to so many neighbours, look so many times at every tile; for more, only as long as it holds nearer ones
LARGEST: tl.constexpr = tl.constexpr(0x7FFFFFFF)
# A subset's features are read in two pieces, each a power of two long: (first, second) for sizes up to their sum.
FEW_FEATURES = 8
PIECES = (
    (16, 0), (32, 0), (32, 16), (64, 0), (64, 32), (128, 0), (128, 32), (128, 64), (128, 128), (256, 128), (256, 256),
)  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """Per tile of rows, the tiles of columns that hold no other group: (first, how many)."""

    skip: Tensor
    n_column_tiles: int
    n_row_tiles: int

    @classmethod
    def of(cls, groups: NDArray[np.int64], n_queries: int, device: str) -> Layout:
        n_row_tiles = -(-n_queries // ROWS)
        n_column_tiles = -(-len(groups) // COLUMNS)
        skip = np.zeros((n_row_tiles, 2), np.int32)
        for tile in range(n_row_tiles):
            own = np.unique(groups[tile * ROWS : min((tile + 1) * ROWS, n_queries)])
            if len(own) == 1:
                inside = np.flatnonzero(groups == own[0])
                first, last = -(-inside[0] // COLUMNS), (inside[-1] + 1) // COLUMNS
                if len(inside) == inside[-1] - inside[0] + 1 and last > first:
                    skip[tile] = first, last - first
        return cls(torch.from_numpy(skip).to(device), n_column_tiles, n_row_tiles)


def neighbors(search: Any, features: Tensor, starts: Tensor, sizes: NDArray[np.int64]) -> Tensor:
    """The k nearest rows of other groups (subsets, queries, k), as places among the rows of the search."""
    width = search.lines.shape[1]
    near = torch.empty((len(sizes), search.n_queries, search.k), dtype=torch.int32, device=features.device)
    square = torch.empty((len(sizes), width), dtype=torch.float32, device=features.device)
    steps = np.array([sum(pieces) for pieces in PIECES])
    group = np.where(sizes < FEW_FEATURES, -1, np.searchsorted(steps, sizes))
    order = np.argsort(group, kind="stable").astype(np.int32)
    ordered = torch.from_numpy(order).to(features.device, non_blocking=True)
    numbers, counts = np.unique(group, return_counts=True)
    begin = 0
    slots = triton.next_power_of_2(max(search.k, 2))
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        chosen = ordered[begin : begin + count]
        begin += count
        lines = search.lines if number < 0 or search.halves is None else search.halves
        common = (lines, features, starts, chosen)
        first, second = PIECES[max(number, 0)]
        _squares[(count, width // ALIGN)](
            *common, square, search.n_features, search.n_rows, width, BLOCK=ALIGN, DEEP=16
        )
        _nearest[(search.layout.n_row_tiles, count)](
            *common, square, search.groups, search.layout.skip, near, search.n_features, search.n_queries, width,
            search.layout.n_column_tiles, K=search.k, SLOTS=slots, FIRST=first, SECOND=second, FEW=number < 0,
            ALWAYS=ALWAYS, ROWS=ROWS, COLUMNS=COLUMNS, num_warps=WARPS, num_stages=STAGES,
        )  # fmt: skip
    return near


@triton.jit
def _squares(
    lines, features, starts, chosen, square, zero_line, n_rows, width, BLOCK: tl.constexpr, DEEP: tl.constexpr
):
    """Squared lengths of the rows in each subset; infinite for rows that only fill up."""
    subset = tl.load(chosen + tl.program_id(0))
    rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    total = tl.zeros([BLOCK], tl.float32)
    deep = tl.arange(0, DEEP)
    for k in range(0, size, DEEP):
        feature = tl.load(features + start + k + deep, mask=k + deep < size, other=zero_line).to(tl.int64)
        values = tl.load(lines + feature[:, None] * width + rows[None, :]).to(tl.float32)
        total += tl.sum(values * values, axis=0)
    tl.store(square + subset.to(tl.int64) * width + rows, tl.where(rows < n_rows, total, float("inf")))


@triton.jit
def _keep(kept, place, slot, least, base, COLUMNS: tl.constexpr):
    """The least key of each row in the place of the farthest kept, where it is nearer."""
    distance = least & (-COLUMNS)
    hit = (slot == tl.argmax(kept, axis=1)[:, None]) & (distance < tl.max(kept, axis=1))[:, None]
    kept = tl.where(hit, distance[:, None], kept)
    return kept, tl.where(hit, (base + (least & (COLUMNS - 1)))[:, None], place)


@triton.jit
def _nearest(
    lines, features, starts, chosen, square, groups, skip, near, zero_line, n_queries, width, n_tiles,
    K: tl.constexpr, SLOTS: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, FEW: tl.constexpr,
    ALWAYS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    subset = tl.load(chosen + tl.program_id(1)).to(tl.int64)
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    rows = tile * ROWS + tl.arange(0, ROWS)
    local = tl.arange(0, COLUMNS)
    own_square = tl.load(square + subset * width + rows)
    own_group = tl.load(groups + rows)
    skip_first = tl.load(skip + 2 * tile)
    skipped = tl.load(skip + 2 * tile + 1)

    if not FEW:
        deep = tl.arange(0, FIRST)
        feature = tl.load(features + start + deep, mask=deep < size, other=zero_line).to(tl.int64)
        own = tl.load(lines + feature[None, :] * width + rows[:, None])
        line = lines + feature[:, None] * width + local[None, :]
        if SECOND > 0:
            deep_2 = FIRST + tl.arange(0, SECOND)
            feature_2 = tl.load(features + start + deep_2, mask=deep_2 < size, other=zero_line).to(tl.int64)
            own_2 = tl.load(lines + feature_2[None, :] * width + rows[:, None])
            line_2 = lines + feature_2[:, None] * width + local[None, :]

    kept = tl.full([ROWS, SLOTS], LARGEST, tl.int32)
    slot = tl.arange(0, SLOTS)[None, :]
    kept = tl.where(slot < K, kept, -1)
    place = tl.zeros([ROWS, SLOTS], tl.int32)

    for step in range(n_tiles - skipped):
        base = tl.where(step < skip_first, step, step + skipped) * COLUMNS
        if FEW:
            apart = tl.zeros([ROWS, COLUMNS], tl.float32)
            for k in range(size):
                one = lines + tl.load(features + start + k).to(tl.int64) * width
                difference = tl.load(one + rows)[:, None] - tl.load(one + base + local)[None, :]
                apart += difference * difference
            is_row = tl.load(square + subset * width + base + local) < float("inf")
            apart = tl.where(is_row[None, :], apart, float("inf"))
        else:
            products = tl.dot(own, tl.load(line + base))
            if SECOND > 0:
                products = tl.dot(own_2, tl.load(line_2 + base), products)
            other_square = tl.load(square + subset * width + base + local)
            apart = tl.maximum(own_square[:, None] + other_square[None, :] - 2.0 * products, 0.0)
        keys = (apart.to(tl.int32, bitcast=True) & (-COLUMNS)) | local[None, :]
        keys = tl.where(own_group[:, None] != tl.load(groups + base + local)[None, :], keys, LARGEST)
        if K <= ALWAYS:
            for _ in tl.static_range(K):
                least = tl.min(keys, axis=1)
                keys = tl.where(keys == least[:, None], LARGEST, keys)
                kept, place = _keep(kept, place, slot, least, base, COLUMNS)
        else:
            least = tl.min(keys, axis=1)
            while tl.max(((least & (-COLUMNS)) < tl.max(kept, axis=1)).to(tl.int32), axis=0) > 0:
                kept, place = _keep(kept, place, slot, least, base, COLUMNS)
                keys = tl.where(keys == least[:, None], LARGEST, keys)
                least = tl.min(keys, axis=1)
    out = near + (subset * n_queries + rows[:, None]) * K + slot
    tl.store(out, place, mask=(slot < K) & (rows[:, None] < n_queries))
