"""The filters' Triton kernels: class moments in one pass, bits counted together, sums of differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from .moments import ROWS_AT_ONCE

STAGES = 3  # what is read next is copied to shared memory two steps ahead
ROW_STAGES = 4  # rows of X three
THREADS, BYTES = 128, 16  # a program's threads, and what each reads of a row
LINES = 512  # bit sets of a program
ROWS, OTHERS = 32, 32  # rows of a program, and a quarter of the others that they are compared with
FEATURES = 256  # of a program that weighs differences
ABREAST = 8  # neighbours weighed at a time
ENOUGH = 1056  # programs to keep a GPU busy
LEAST_SPAN, LEAST_GROUPS = 64, 32  # features, and groups of neighbours, that make a program worth its while


def sums_of_runs(
    X: Tensor, runs: Any, *, deep: int = ROWS_AT_ONCE, stages: int = ROW_STAGES
) -> tuple[Tensor, Tensor, Tensor, bool]:
    """Origins (features,), offsets and scatters (runs, features), and whether all are finite; NaN gives NaN."""
    X = X if X.stride(1) == 1 else X.contiguous()
    n_runs, n_columns = len(runs.lengths), X.shape[1]
    block = max(4 * THREADS, THREADS * BYTES // X.element_size())
    stripes = triton.cdiv(n_columns, block)
    origins = torch.empty(n_columns, dtype=torch.float64, device=X.device)
    offsets = torch.empty((n_runs, n_columns), dtype=torch.float64, device=X.device)
    scatters = torch.empty_like(offsets)
    broken = torch.empty(stripes * n_runs, dtype=torch.int32, device=X.device)
    _moments[(stripes * n_runs,)](
        X, runs.table, runs.begins, runs.counts, origins, offsets, scatters, broken, n_columns, X.stride(0), n_runs,
        BLOCK=block, DEEP=deep, STAGES=stages, num_warps=THREADS // 32,
    )  # fmt: skip
    return origins, offsets, scatters, not broken.any()


@triton.jit
def _moments(
    X, table, begins, counts, origins, offsets, scatters, broken, n_columns, stride, n_runs,
    BLOCK: tl.constexpr, DEEP: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A run of rows in a stripe of columns. The runs of a stripe are neighbours: they share its first row."""
    run = tl.program_id(0) % n_runs
    columns = (tl.program_id(0) // n_runs).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < n_columns
    line = X + columns
    deep = tl.arange(0, DEEP)
    begin = tl.load(begins + run)
    end = tl.load(begins + run + 1)
    shift = tl.load(line + tl.load(table + begin) * stride, mask=inside, other=0).to(tl.float64)
    total = tl.zeros([BLOCK], tl.float64)
    square = tl.zeros([BLOCK], tl.float64)
    for place in tl.range(begin, end, DEEP, num_stages=STAGES):
        rows = tl.load(table + place + deep)
        values = tl.load(line[None, :] + rows[:, None] * stride, mask=inside[None, :], other=0)
        apart = values.to(tl.float64) - shift[None, :]
        total += tl.sum(apart, axis=0)
        square += tl.sum(apart * apart, axis=0)
    mean = total / tl.load(counts + run).to(tl.float64)
    origin = tl.load(line + tl.load(table) * stride, mask=inside, other=0).to(tl.float64)
    scatter = square - total * mean
    out = run.to(tl.int64) * n_columns + columns
    tl.store(offsets + out, (shift - origin) + mean, mask=inside)
    tl.store(scatters + out, scatter, mask=inside)
    tl.store(origins + columns, origin, mask=inside & (run == 0))
    whole = (tl.abs(scatter) < float("inf")) | ~inside
    tl.store(broken + tl.program_id(0), 1 - tl.min(whole.to(tl.int32), axis=0))


def in_both(lines: Tensor, masks: Tensor) -> Tensor:
    """How many bits each line (words, lines) has in common with each mask (words, masks): (masks, lines)."""
    n_words, n_lines = lines.shape
    n_masks = masks.shape[1]
    out = torch.empty((n_masks, n_lines), dtype=torch.int32, device=lines.device)
    at_once = min(8, triton.next_power_of_2(n_masks))
    _count_in_both[(triton.cdiv(n_lines, LINES), triton.cdiv(n_masks, at_once))](
        lines, masks, out, n_lines, n_words, n_masks,
        LINES=LINES, MASKS=at_once, IN_HARDWARE=lines.is_cuda, num_warps=THREADS // 32,
    )  # fmt: skip
    return out


@triton.jit
def _count_in_both(
    lines, masks, out, n_lines, n_words, n_masks,
    LINES: tl.constexpr, MASKS: tl.constexpr, IN_HARDWARE: tl.constexpr,
):  # fmt: skip
    line = tl.program_id(0).to(tl.int64) * LINES + tl.arange(0, LINES)[None, :]
    mask = tl.program_id(1) * MASKS + tl.arange(0, MASKS)[:, None]
    own, theirs = lines + line, masks + mask
    counts = tl.zeros([MASKS, LINES], tl.int32)
    for _ in range(n_words):
        bits = tl.load(own, mask=line < n_lines, other=0) & tl.load(theirs, mask=mask < n_masks, other=0)
        counts += _popcount(bits, IN_HARDWARE)
        own += n_lines
        theirs += n_masks
    tl.store(out + mask.to(tl.int64) * n_lines + line, counts, mask=(line < n_lines) & (mask < n_masks))


@triton.jit
def _popcount(bits, IN_HARDWARE: tl.constexpr):
    """How many bits are set in each int32."""
    if IN_HARDWARE:
        return tl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [bits], dtype=tl.int32, is_pure=True, pack=1)
    pairs = bits - ((bits >> 1) & 0x55555555)
    fours = (pairs & 0x33333333) + ((pairs >> 2) & 0x33333333)
    eights = (fours + (fours >> 4)) & 0x0F0F0F0F
    return ((eights * 0x01010101) >> 24) & 0xFF


def sums_of_diffs(lines: Tensor, own: Tensor, n_rows: int, *, capped: bool) -> Tensor:
    """Sums of differences over all features (lines) of some rows from all (rows, all rows)."""
    n_features, width = lines.shape
    tiles = triton.cdiv(len(own), ROWS), triton.cdiv(n_rows, 4 * OTHERS)
    spans = max(1, min(ENOUGH // (tiles[0] * tiles[1]), n_features // LEAST_SPAN))
    mine = lines[:, torch.nn.functional.pad(own, (0, tiles[0] * ROWS - len(own)))]
    sums = torch.empty((spans, len(own), n_rows), dtype=torch.float64, device=lines.device)
    _sum_diffs[(*tiles, spans)](
        mine, lines, sums, len(own), n_rows, mine.shape[1], width, n_features, triton.cdiv(n_features, spans),
        ROWS=ROWS, OTHERS=OTHERS, CAPPED=capped, num_warps=THREADS // 32,
    )  # fmt: skip
    return sums.sum(dim=0)


@triton.jit
def _sum_diffs(
    mine, theirs, sums, n_own, n_rows, mine_width, width, n_features, span,
    ROWS: tl.constexpr, OTHERS: tl.constexpr, CAPPED: tl.constexpr,
):  # fmt: skip
    """Sums of some rows and four blocks of others over a span of features; the last spans may have none."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    other = tl.program_id(1) * 4 * OTHERS + tl.arange(0, OTHERS)
    first = tl.program_id(2) * span
    last = tl.minimum(first + span, n_features)
    mine += first.to(tl.int64) * mine_width
    theirs += first.to(tl.int64) * width
    a = tl.zeros([ROWS, OTHERS], tl.float64)
    b = tl.zeros([ROWS, OTHERS], tl.float64)
    c = tl.zeros([ROWS, OTHERS], tl.float64)
    d = tl.zeros([ROWS, OTHERS], tl.float64)
    for _ in range(first, last):
        own = tl.load(mine + row)[:, None]
        a += _apart(own, tl.load(theirs + other)[None, :], CAPPED)
        b += _apart(own, tl.load(theirs + other + OTHERS)[None, :], CAPPED)
        c += _apart(own, tl.load(theirs + other + 2 * OTHERS)[None, :], CAPPED)
        d += _apart(own, tl.load(theirs + other + 3 * OTHERS)[None, :], CAPPED)
        mine += mine_width
        theirs += width
    out = sums + (tl.program_id(2).to(tl.int64) * n_own + row[:, None]) * n_rows + other[None, :]
    inside = (row < n_own)[:, None]
    left = n_rows - other[None, :]
    tl.store(out, a, mask=inside & (left > 0))
    tl.store(out + OTHERS, b, mask=inside & (left > OTHERS))
    tl.store(out + 2 * OTHERS, c, mask=inside & (left > 2 * OTHERS))
    tl.store(out + 3 * OTHERS, d, mask=inside & (left > 3 * OTHERS))


@triton.jit
def _apart(one, other, CAPPED: tl.constexpr):
    apart = tl.abs(one - other)
    return tl.minimum(apart, 1.0) if CAPPED else apart


@dataclass(frozen=True)
class WeightedPairs:
    """Pairs of rows with weights, eight neighbours of one row at a time: own (groups,), theirs and weights (groups,
    8)."""

    own: Tensor
    theirs: Tensor
    weights: Tensor

    @classmethod
    def of(
        cls, own: NDArray[np.int64], theirs: NDArray[np.int64], weights: NDArray[np.float64], device: str
    ) -> WeightedPairs:
        """Of rows (samples,), neighbours and weights (samples, slots), filled up with the row itself."""
        extra = ((0, 0), (0, -theirs.shape[1] % ABREAST))
        theirs = np.where(np.pad(theirs, extra, constant_values=-1) >= 0, np.pad(theirs, extra), own[:, None])
        weights = np.pad(weights, extra)
        own = np.repeat(own, theirs.shape[1] // ABREAST)
        return cls(*(torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in (own, theirs, weights)))

    def __call__(self, values: Tensor, *, capped: bool) -> Tensor:
        """For each column of values (rows, features) the sum of weight * difference."""
        n_features = values.shape[1]
        n_groups = len(self.own)
        stripes = triton.cdiv(n_features, FEATURES)
        parts = max(1, min(ENOUGH // stripes, n_groups // LEAST_GROUPS))
        sums = torch.empty((parts, n_features), dtype=torch.float64, device=values.device)
        _weigh_diffs[(stripes, parts)](
            values, self.own, self.theirs, self.weights, sums, n_features, n_groups, triton.cdiv(n_groups, parts),
            FEATURES=FEATURES, ABREAST=ABREAST, CAPPED=capped, STAGES=STAGES, num_warps=THREADS // 32,
        )  # fmt: skip
        return sums.sum(dim=0)


@triton.jit
def _weigh_diffs(
    values, own, theirs, weights, sums, n_features, n_groups, span,
    FEATURES: tl.constexpr, ABREAST: tl.constexpr, CAPPED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    feature = tl.program_id(0) * FEATURES + tl.arange(0, FEATURES)
    inside = feature < n_features
    slot = tl.arange(0, ABREAST)
    first = tl.program_id(1) * span
    last = tl.minimum(first + span, n_groups)
    column = values + feature
    total = tl.zeros([FEATURES], tl.float64)
    for group in tl.range(first, last, num_stages=STAGES):
        mine = tl.load(column + tl.load(own + group) * n_features, mask=inside, other=0.0)
        row = tl.load(theirs + group * ABREAST + slot)
        other = tl.load(column[None, :] + row[:, None] * n_features, mask=inside[None, :], other=0.0)
        apart = _apart(mine[None, :], other, CAPPED)
        total += tl.sum(tl.load(weights + group * ABREAST + slot)[:, None] * apart, axis=0)
    tl.store(sums + tl.program_id(1).to(tl.int64) * n_features + feature, total, mask=inside)
