"""Ridge regression in two Triton kernels: one factors and solves a subset's system, one tells the test rows.

The first looks up a subset's part of the Gram matrix block by block, so that the system is never written: only its
factor is. Diagonal blocks are inverted in registers; all else are products of blocks. The second keeps the decisions of
a tile of rows in registers until the class is chosen. What a program does depends on its subset alone: J is the same to
the bit in whatever batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from .columns import free_bytes

BLOCK = 32
OUTPUTS = 64
TINY: tl.constexpr = tl.constexpr(1e-30)
MOST: tl.constexpr = tl.constexpr(0x7FFFFFFF)
HIGH_BITS: tl.constexpr = tl.constexpr(-0x2000)  # of a float32, those that TF32 keeps


class Tuning:
    """What may be tried on a GPU: how products of float32 are made, how large tiles are, and who shares one."""

    fit_precision = "ieee"
    fit_warps = 4
    tell_precision = "tf32x3"
    tell_warps = 4
    tell_stages = 1
    rows = 64
    deep = 32
    halves = True


def scores(
    model: Any, features: Tensor, starts: Tensor, sizes: NDArray[np.int64], subsets: NDArray[np.int64]
) -> Tensor:
    """J of some of the subsets, and the least pivot of each (2, subsets)."""
    out = []
    for some in _that_fit(model, sizes[subsets]):
        batch = Batch(features, starts, sizes, subsets[some])
        fitted = fit(model, batch)
        folds = fold_scores(model, tell(model, batch, fitted))
        out.append(torch.stack([folds.mean(dim=1), fitted.pivots.amin(dim=1)]))
    return torch.cat(out, dim=1)


class Batch:
    """Some subsets, and where each one's factor and weights go; the largest are taken up first."""

    def __init__(self, features: Tensor, starts: Tensor, sizes: NDArray[np.int64], subsets: NDArray[np.int64]) -> None:
        self.features, self.starts = features, starts
        self.n_subsets = len(subsets)
        blocks = -(-sizes[subsets] // BLOCK)
        factors = blocks * (blocks + 1) // 2
        self.n_block_rows, self.n_factor_blocks = int(blocks.sum()), int(factors.sum())
        order = np.argsort(-blocks, kind="stable")
        places = [subsets, np.arange(len(subsets)), np.cumsum(blocks) - blocks, np.cumsum(factors) - factors]
        self.places = torch.from_numpy(np.stack([place[order] for place in places])).to(features.device)


def _that_fit(model: Any, sizes: NDArray[np.int64]) -> Iterator[slice]:
    """Slices of the subsets that fit into free memory together."""
    blocks = -(-sizes // BLOCK)
    numbers = blocks * (blocks + 1) // 2 * BLOCK**2 + (blocks * BLOCK + 2) * _padded_outputs(model) + model.height
    number = np.cumsum(4 * model.n_splits * numbers) // max(1, free_bytes(model.device))
    edges = [*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), len(sizes)]
    for first, last in pairwise(edges):
        yield slice(first, last)


class Fitted:
    """Weights of each subset and fold (block rows x 32, outputs), intercepts, and the least pivots."""

    def __init__(self, model: Any, batch: Batch) -> None:
        outputs, device = _padded_outputs(model), batch.features.device
        folds, subsets = model.n_splits, batch.n_subsets
        self.outputs = outputs
        self.weights = torch.empty((batch.n_block_rows * folds * BLOCK, outputs), dtype=torch.float32, device=device)
        self.intercepts = torch.empty((subsets, folds, outputs), dtype=torch.float32, device=device)
        self.pivots = torch.empty((subsets, folds), dtype=torch.float32, device=device)


def fit(model: Any, batch: Batch) -> Fitted:
    """Weights and intercepts of every subset and fold."""
    fitted = Fitted(model, batch)
    n_factor = batch.n_factor_blocks * model.n_splits * BLOCK**2
    factors = torch.empty(n_factor, dtype=torch.float32, device=batch.features.device)
    _fit[(batch.n_subsets, model.n_splits)](
        model.table, model.sides[torch.float32], model.means[torch.float32], model.level[torch.float32],
        model.ridge[torch.float32], batch.features, batch.starts, batch.places, factors,
        fitted.weights, fitted.intercepts, fitted.pivots,
        batch.n_subsets, model.n_splits, model.n_features, model.task.outputs.shape[1], fitted.outputs,
        BLOCK=BLOCK, OUTPUTS=min(fitted.outputs, OUTPUTS), PRECISION=Tuning.fit_precision,
        num_warps=Tuning.fit_warps, num_stages=1,
    )  # fmt: skip
    return fitted


def tell(model: Any, batch: Batch, fitted: Fitted) -> Tensor:
    """Rows told right, or the sum of squared errors, of every subset and tile of test rows."""
    tiles_of_fold = model.height // Tuning.rows
    shape = (batch.n_subsets, model.n_splits * tiles_of_fold)
    told = torch.empty(shape, dtype=torch.float64, device=batch.features.device)
    n_outputs = model.task.outputs.shape[1]
    is_half = model.halves is not None and Tuning.halves
    _tell[shape](
        model.halves if is_half else model.lines, model.truth, batch.features, batch.starts, batch.places,
        fitted.weights, fitted.intercepts, told,
        batch.n_subsets, model.n_splits, model.n_features, model.lines.shape[1], tiles_of_fold,
        n_outputs, fitted.outputs,
        BLOCK=BLOCK, ROWS=Tuning.rows, DEEP=Tuning.deep, OUTPUTS=min(fitted.outputs, OUTPUTS), SINGLE=n_outputs == 1,
        IS_LABEL=model.task.n_classes > 0, PRECISION="tf32x2" if is_half else Tuning.tell_precision,
        num_warps=Tuning.tell_warps, num_stages=Tuning.tell_stages,
    )  # fmt: skip
    return told


def fold_scores(model: Any, told: Tensor) -> Tensor:
    """Accuracy or R^2 of every subset and fold."""
    by_fold = told.view(len(told), model.n_splits, -1).sum(dim=2)
    return by_fold / model.n_tests if model.task.n_classes else model.r2(by_fold, model.spread)


def _padded_outputs(model: Any) -> int:
    """Outputs filled up: to a power of two from 16, or to a multiple of 64."""
    outputs = model.task.outputs.shape[1]
    return -(-outputs // OUTPUTS) * OUTPUTS if outputs > OUTPUTS else max(16, triton.next_power_of_2(outputs))


@triton.jit(do_not_specialize=["n_subsets"])
def _fit(
    grams, sides, means, level, ridge, features, starts, places, factors, weights, intercepts, pivots,
    n_subsets, n_folds, n_features, n_outputs, stride,
    BLOCK: tl.constexpr, OUTPUTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    fold = tl.program_id(1).to(tl.int64)
    place = places + tl.program_id(0)
    start = tl.load(starts + tl.load(place))
    size = (tl.load(starts + tl.load(place) + 1) - start).to(tl.int32)
    slot = tl.load(place + n_subsets)
    n_blocks = (size + BLOCK - 1) // BLOCK
    own_row = tl.load(place + 2 * n_subsets) * n_folds + fold * n_blocks
    own_factor = tl.load(place + 3 * n_subsets) * n_folds + fold * (n_blocks * (n_blocks + 1) // 2)
    own = factors + own_factor * BLOCK * BLOCK
    out = weights + own_row * BLOCK * stride
    gram = grams + fold * (n_features + 1) * (n_features + 1)

    least = _factorize(gram, ridge, features + start, size, n_features, own, BLOCK, PRECISION)
    tl.store(pivots + slot * n_folds + fold, least)
    for first in range(0, n_outputs, OUTPUTS):
        outputs = first + tl.arange(0, OUTPUTS)
        side = sides + fold * (n_features + 1) * n_outputs + outputs[None, :]
        mean = means + fold * (n_features + 1)
        total = _substitute(
            own, side, mean, features + start, size, n_features, n_outputs, outputs < n_outputs,
            out + outputs[None, :], stride, BLOCK, OUTPUTS, PRECISION,
        )  # fmt: skip
        height = tl.load(level + fold * n_outputs + outputs, mask=outputs < n_outputs, other=float("-inf"))
        tl.store(intercepts + (slot * n_folds + fold) * stride + outputs, height - total)


@triton.jit
def _factorize(gram, ridge, features, size, n_features, own, BLOCK: tl.constexpr, PRECISION: tl.constexpr):
    """The lower Cholesky factor by blocks, the diagonal ones inverted; returns the least pivot."""
    rows = tl.arange(0, BLOCK)
    inside = rows[:, None] * BLOCK + rows[None, :]
    n_blocks = (size + BLOCK - 1) // BLOCK
    least = 1.0
    for j in range(n_blocks):
        across = tl.load(features + j * BLOCK + rows, mask=j * BLOCK + rows < size, other=n_features).to(tl.int64)
        block = tl.load(gram + across[:, None] * (n_features + 1) + across[None, :])
        extra = tl.load(ridge + across)
        block = tl.where(rows[:, None] == rows[None, :], block + extra[:, None], block)
        diagonal = tl.sum(tl.where(rows[:, None] == rows[None, :], block, 0.0), axis=1)
        for k in range(j):
            left = tl.load(own + (j * (j + 1) // 2 + k) * BLOCK * BLOCK + inside)
            block -= tl.dot(left, tl.trans(left), input_precision=PRECISION)
        inverse, lowest = _invert(block, diagonal, BLOCK)
        least = tl.minimum(least, lowest)
        tl.store(own + (j * (j + 1) // 2 + j) * BLOCK * BLOCK + inside, inverse)
        for i in range(j + 1, n_blocks):
            down = tl.load(features + i * BLOCK + rows, mask=i * BLOCK + rows < size, other=n_features).to(tl.int64)
            block = tl.load(gram + down[:, None] * (n_features + 1) + across[None, :])
            for k in range(j):
                left = tl.load(own + (i * (i + 1) // 2 + k) * BLOCK * BLOCK + inside)
                right = tl.load(own + (j * (j + 1) // 2 + k) * BLOCK * BLOCK + inside)
                block -= tl.dot(left, tl.trans(right), input_precision=PRECISION)
            block = tl.dot(block, tl.trans(inverse), input_precision=PRECISION)
            tl.store(own + (i * (i + 1) // 2 + j) * BLOCK * BLOCK + inside, block)
        tl.debug_barrier()
    return least


@triton.jit
def _invert(block, diagonal, BLOCK: tl.constexpr):
    """The inverse of a block's lower Cholesky factor, and the least pivot as a share of the diagonal."""
    rows = tl.arange(0, BLOCK)
    inverse = tl.where(rows[:, None] == rows[None, :], 1.0, 0.0)
    least = 1.0
    for step in range(BLOCK):
        here = rows == step
        down = tl.sum(tl.where(here[None, :], block, 0.0), axis=1)
        across = tl.sum(tl.where(here[:, None], block, 0.0), axis=0)
        pivot = tl.sum(tl.where(here, down, 0.0), axis=0)
        least = tl.minimum(least, pivot / tl.sum(tl.where(here, diagonal, 0.0), axis=0))
        root = tl.rsqrt(tl.maximum(pivot, TINY))
        line = tl.sum(tl.where(here[:, None], inverse, 0.0), axis=0) * root
        factor = tl.where(rows > step, down, 0.0) * root
        block -= factor[:, None] * (across * root)[None, :]
        inverse = tl.where(here[:, None], line[None, :], inverse - factor[:, None] * line[None, :])
    return inverse, least


@triton.jit
def _substitute(
    own, side, mean, features, size, n_features, n_outputs, kept, out, stride,
    BLOCK: tl.constexpr, OUTPUTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Weights for some outputs, by forward and backward substitution; returns the sum of means times weights."""
    rows = tl.arange(0, BLOCK)
    inside = rows[:, None] * BLOCK + rows[None, :]
    n_blocks = (size + BLOCK - 1) // BLOCK
    for i in range(n_blocks):
        feature = tl.load(features + i * BLOCK + rows, mask=i * BLOCK + rows < size, other=n_features).to(tl.int64)
        part = tl.load(side + feature[:, None] * n_outputs, mask=kept[None, :], other=0.0)
        for k in range(i):
            left = tl.load(own + (i * (i + 1) // 2 + k) * BLOCK * BLOCK + inside)
            known = tl.load(out + (k * BLOCK + rows)[:, None] * stride)
            part -= tl.dot(left, known, input_precision=PRECISION)
        inverse = tl.load(own + (i * (i + 1) // 2 + i) * BLOCK * BLOCK + inside)
        part = tl.dot(inverse, part, input_precision=PRECISION)
        tl.store(out + (i * BLOCK + rows)[:, None] * stride, part)
        tl.debug_barrier()
    total = tl.zeros([OUTPUTS], tl.float32)
    for back in range(n_blocks):
        i = n_blocks - 1 - back
        part = tl.load(out + (i * BLOCK + rows)[:, None] * stride)
        for k in range(i + 1, n_blocks):
            left = tl.load(own + (k * (k + 1) // 2 + i) * BLOCK * BLOCK + inside)
            known = tl.load(out + (k * BLOCK + rows)[:, None] * stride)
            part -= tl.dot(tl.trans(left), known, input_precision=PRECISION)
        inverse = tl.load(own + (i * (i + 1) // 2 + i) * BLOCK * BLOCK + inside)
        part = tl.dot(tl.trans(inverse), part, input_precision=PRECISION)
        tl.debug_barrier()
        tl.store(out + (i * BLOCK + rows)[:, None] * stride, part)
        tl.debug_barrier()
        feature = tl.load(features + i * BLOCK + rows, mask=i * BLOCK + rows < size, other=n_features).to(tl.int64)
        total += tl.sum(tl.load(mean + feature)[:, None] * part, axis=0)
    return total


@triton.jit(do_not_specialize=["n_subsets"])
def _tell(
    lines, truth, features, starts, places, weights, intercepts, told,
    n_subsets, n_folds, n_features, width, tiles_of_fold, n_outputs, stride,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, DEEP: tl.constexpr, OUTPUTS: tl.constexpr, SINGLE: tl.constexpr,
    IS_LABEL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(1)
    fold = (tile // tiles_of_fold).to(tl.int64)
    place = places + tl.program_id(0)
    start = tl.load(starts + tl.load(place))
    size = (tl.load(starts + tl.load(place) + 1) - start).to(tl.int32)
    slot = tl.load(place + n_subsets)
    own_row = tl.load(place + 2 * n_subsets) * n_folds + fold * ((size + BLOCK - 1) // BLOCK)
    own = weights + own_row * BLOCK * stride
    base = intercepts + (slot * n_folds + fold) * stride
    rows = tile * ROWS + tl.arange(0, ROWS)
    deep = tl.arange(0, DEEP)
    wanted = tl.load(truth + rows)

    if SINGLE:
        decision = tl.zeros([ROWS], tl.float32) + tl.load(base)
        for k in range(0, size, DEEP):
            there = k + deep < size
            feature = tl.load(features + start + k + deep, mask=there, other=n_features).to(tl.int64)
            values = tl.load(lines + feature[:, None] * width + rows[None, :]).to(tl.float32)
            weight = tl.load(own + (k + deep) * stride, mask=there, other=0.0)
            decision += tl.sum(values * weight[:, None], axis=0)
        if IS_LABEL:
            result = tl.sum(tl.where((decision > 0).to(tl.int64) == wanted, 1.0, 0.0), axis=0)
        else:
            missed = tl.where(wanted == wanted, wanted - decision.to(tl.float64), 0.0)
            result = tl.sum(missed * missed, axis=0)
    else:
        highest = tl.full([ROWS], float("-inf"), tl.float32)
        chosen = tl.zeros([ROWS], tl.int32)
        for first in range(0, n_outputs, OUTPUTS):
            outputs = first + tl.arange(0, OUTPUTS)
            decisions = tl.zeros([ROWS, OUTPUTS], tl.float32)
            for k in range(0, size, DEEP):
                there = k + deep < size
                feature = tl.load(features + start + k + deep, mask=there, other=n_features).to(tl.int64)
                values = tl.load(lines + feature[:, None] * width + rows[None, :]).to(tl.float32)
                weight = tl.load(own + (k + deep)[:, None] * stride + outputs[None, :], mask=there[:, None], other=0.0)
                if PRECISION == "tf32x2":  # values are exact in TF32, weights are the sum of two numbers that are
                    high = (weight.to(tl.int32, bitcast=True) & HIGH_BITS).to(tl.float32, bitcast=True)
                    decisions = tl.dot(tl.trans(values), weight - high, decisions, input_precision="tf32")
                    decisions = tl.dot(tl.trans(values), high, decisions, input_precision="tf32")
                else:
                    decisions = tl.dot(tl.trans(values), weight, decisions, input_precision=PRECISION)
            decisions += tl.load(base + outputs)[None, :]
            best = tl.max(decisions, axis=1)
            at = tl.min(tl.where(decisions == best[:, None], outputs[None, :], MOST), axis=1)
            chosen = tl.where(best > highest, at, chosen)
            highest = tl.maximum(highest, best)
        result = tl.sum(tl.where(chosen == wanted, 1.0, 0.0), axis=0)
    tl.store(told + slot * (n_folds * tiles_of_fold) + tile, result.to(tl.float64))
