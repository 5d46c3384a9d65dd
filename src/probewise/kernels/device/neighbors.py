"""Nearest neighbours in many subsets at a time, from exact distances: those of `kernels.votes` on a device.

A squared distance is a sum in float64 of squared differences of values as they are, feature by feature, so that it has
the bits that it has on the CPU. Of rows equally far away the one with the lower key is nearer.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .scores import total

MANY_ROWS = 4096  # up to so many, tiles are smaller: fewer places to look through at the end
TILE_ROWS = {False: 64, True: 128}  # of a tile; where rows are many
BYTES_PER_PAIR = 40  # distances, keys, and what topk takes
BEFORE = 2**40  # more than any key


class Rows(NamedTuple):
    """Rows among which neighbours are sought: lines (features + 1, rows), groups, keys for ties.

    A row's neighbours are of other groups than its own; those of group -1 only fill up.
    """

    lines: Tensor
    groups: Tensor
    keys: Tensor


def nearest(rows: Rows, table: Tensor, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k nearest rows of other groups (subsets, queries, k), and their squared distances, in ascending order.

    table (subsets, width) has the features of subsets, padded with the line of zeros.
    """
    shape = len(table), len(queries), rows.lines.shape[1]
    apart = torch.zeros(shape, dtype=torch.float64, device=table.device)
    for feature in table.T:
        line = rows.lines[feature].double()
        off = line[:, queries, None] - line[:, None, :]
        apart += off.mul_(off)
    return k_nearest(apart, rows, queries, k)


def k_nearest(apart: Tensor, rows: Rows, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The same from squared distances (..., queries, rows)."""
    others = (rows.groups != rows.groups[queries, None]) & (rows.groups >= 0)
    apart = torch.where(others, apart, torch.inf)
    last = torch.topk(apart, k, largest=False).values[..., -1:]
    keys = rows.keys[queries, None] ^ rows.keys
    keys = torch.where(apart < last, keys - BEFORE, torch.where((apart == last) & others, keys, BEFORE))
    near = torch.topk(keys, k, largest=False).indices
    distances, order = torch.sort(apart.gather(-1, near), stable=True)
    return near.gather(-1, order), distances


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


def soft_votes(right: Tensor, apart: Tensor, typical: Tensor) -> Tensor:
    """The share of the votes (subsets, queries) for the own class, which neighbours count softmax(-apart / T) for.

    right, apart (subsets, queries, k); T is a fifth of the typical distance (subsets).
    """
    temperature = torch.clamp(typical / 5.0, min=1e-300)[:, None, None]
    weights = torch.exp(torch.clamp((apart[:, :, :1] - apart) / temperature, min=-700.0))
    return total(weights * right) / total(weights)
