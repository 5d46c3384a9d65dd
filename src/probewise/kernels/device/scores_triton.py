"""Triton kernels for votes of neighbors and for sums over parts of the tests; torch needs a dozen kernels for each."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

CELLS = 1024  # numbers that a program adds in parallel
PAIRS = 128  # pairs of subset and test whose votes a program counts


def vote(near: Tensor, labels: Tensor, n_classes: int) -> Tensor:
    """Most frequent label of the rows in ``near`` (subsets, tests, k); the lowest one among ties."""
    k, predicted = near.shape[2], torch.empty(near.shape[:2], dtype=labels.dtype, device=near.device)
    _vote[(triton.cdiv(predicted.numel(), PAIRS),)](
        near, labels, predicted, predicted.numel(), n_classes, k, WIDTH=triton.next_power_of_2(k), BLOCK=PAIRS
    )
    return predicted


def sums_of_parts(values: Tensor, members: Tensor) -> Tensor:
    """Sums (subsets, parts) of values (subsets, tests) over members (parts, height), padded with the number of tests.

    Rounding does not depend on the rest of the batch.
    """
    values = values if values.stride(1) == 1 else values.contiguous()
    n_parts, height = members.shape
    block = min(CELLS // 4, triton.next_power_of_2(max(1, height)))
    parts = min(CELLS // block, triton.next_power_of_2(n_parts))
    sums = torch.empty((len(values), n_parts), dtype=torch.float64, device=values.device)
    if sums.numel():
        _sums[(len(values), triton.cdiv(n_parts, parts))](
            values, members, sums, values.stride(0), values.shape[1], n_parts, height, PARTS=parts, BLOCK=block
        )
    return sums


@triton.jit
def _vote(near, labels, predicted, n_pairs, n_classes, k, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    number = tl.arange(0, WIDTH)
    is_near = (pair < n_pairs)[:, None] & (number < k)[None, :]
    row = tl.load(near + pair[:, None] * k + number[None, :], mask=is_near, other=0)
    label = tl.load(labels + row, mask=is_near, other=-1).to(tl.int32)
    best = tl.zeros([BLOCK], tl.int32) - 1
    for q in range(k):
        candidate = tl.sum(tl.where(number[None, :] == q, label, 0), axis=1)
        count = tl.sum((label == candidate[:, None]).to(tl.int32), axis=1)
        best = tl.maximum(best, count * n_classes + (n_classes - 1 - candidate))
    tl.store(predicted + pair, n_classes - 1 - best % n_classes, mask=pair < n_pairs)


@triton.jit
def _sums(
    values, members, sums, stride, n_tests, n_parts, height, PARTS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    subset = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1) * PARTS + tl.arange(0, PARTS)
    total = tl.zeros([PARTS, BLOCK], tl.float64)
    for start in range(0, height, BLOCK):
        position = start + tl.arange(0, BLOCK)
        is_member = (part < n_parts)[:, None] & (position < height)[None, :]
        member = tl.load(members + part[:, None] * height + position[None, :], mask=is_member, other=n_tests)
        total += tl.load(values + subset * stride + member, mask=member < n_tests, other=0.0)
    tl.store(sums + subset * n_parts + part, tl.sum(total, axis=1), mask=part < n_parts)
