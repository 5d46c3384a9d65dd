"""Nearest neighbours in many subsets at a time, by matrix products of torch."""

from __future__ import annotations

import torch
from torch import Tensor

from .columns import free_bytes

FEW_FEATURES = 8  # up to so many, differences are squared one by one: no digits are lost, and it is as fast
BYTES_PER_PAIR = 40  # distances, keys, and what topk takes
FAR = 2**62


def nearest(lines: Tensor, groups: Tensor, ties: tuple[Tensor, Tensor], n_queries: int, k: int) -> Tensor:
    """The k nearest rows of other groups (subsets, queries, k) to the first rows; keys decide among those equally near.

    lines (subsets, width, rows) holds the subsets' features; rows of group -1 are padding. ties: the key of each row,
    and which row has a key (`kernels.votes.tie_keys`).
    """
    square = (lines * lines).sum(dim=1)
    step = max(1, free_bytes(str(lines.device)) // (BYTES_PER_PAIR * len(lines) * lines.shape[2]))
    queries = (slice(start, min(start + step, n_queries)) for start in range(0, n_queries, step))
    return torch.cat([_nearest_of(lines, square, groups, ties, some, k) for some in queries], dim=1)


def _nearest_of(
    lines: Tensor, square: Tensor, groups: Tensor, ties: tuple[Tensor, Tensor], queries: slice, k: int
) -> Tensor:
    own, (keys_of, row_of) = lines[:, :, queries], ties
    if lines.shape[1] <= FEW_FEATURES:
        apart = sum((own[:, f, :, None] - lines[:, f, None, :]) ** 2 for f in range(lines.shape[1]))
    else:
        apart = square[:, queries, None] + square[:, None, :] - 2 * torch.bmm(own.transpose(1, 2), lines)
    near = torch.clamp(apart, min=0.0).view(torch.int32).long()  # floats from 0 up sort as their bits
    keys = near * 2**24 + (keys_of[queries, None] ^ keys_of)
    others = (groups[None, :] != groups[queries, None]) & (groups >= 0)
    found = torch.topk(torch.where(others, keys, FAR), k, dim=2, largest=False).values % 2**24
    return row_of[found ^ keys_of[queries, None]]


def vote(labels: Tensor, n_classes: int) -> Tensor:
    """The most frequent of the labels (subsets, queries, k); the lowest of those equally frequent."""
    k = labels.shape[2]
    if k == 1:
        return labels[:, :, 0]
    if n_classes == 2:
        return (2 * labels.sum(dim=2) > k).to(labels.dtype)
    best = torch.full_like(labels[:, :, 0], -1)
    for j in range(k):
        times = (labels == labels[:, :, j : j + 1]).sum(dim=2)
        best = torch.maximum(best, times * n_classes + (n_classes - 1 - labels[:, :, j]))
    return n_classes - 1 - best % n_classes
