"""Nearest neighbors in many subsets at a time, from exact distances, on a device.

A squared distance is a float64 sum of squared differences of the original values, feature by feature, so it has the
same bits as on the CPU (`kernels.votes`). Among rows at equal distances the row with the lower key is nearer.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .scores import total

MANY_ROWS = 4096  # above this number of rows, tiles have more columns
TILE_ROWS = 64
BYTES_PER_PAIR = 40  # distances, keys, and the temporary memory of topk
ABOVE_KEYS = 2**40  # larger than any key


class Rows(NamedTuple):
    """Rows to search: XT (features + 1, rows), the group of each row, and keys that break ties.

    The neighbors of a row are in other groups. Rows of group -1 are padding.
    """

    XT: Tensor
    groups: Tensor
    keys: Tensor


def nearest(rows: Rows, table: Tensor, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k nearest rows of other groups (subsets, queries, k), and their squared distances, in ascending order.

    table (subsets, width) has the features of subsets, padded with the number of the feature that is all zeros.
    """
    shape = len(table), len(queries), rows.XT.shape[1]
    distances = torch.zeros(shape, dtype=torch.float64, device=table.device)
    for feature in table.T:
        values = rows.XT[feature].double()
        differences = values[:, queries, None] - values[:, None, :]
        distances += differences.mul_(differences)
    return k_nearest(distances, rows, queries, k)


def k_nearest(distances: Tensor, rows: Rows, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k nearest rows and their squared distances, from all squared distances (..., queries, rows)."""
    is_other = (rows.groups != rows.groups[queries, None]) & (rows.groups >= 0)
    distances = torch.where(is_other, distances, torch.inf)
    last = torch.topk(distances, k, largest=False).values[..., -1:]
    keys = rows.keys[queries, None] ^ rows.keys
    is_tied = (distances == last) & is_other
    keys = torch.where(distances < last, keys - ABOVE_KEYS, torch.where(is_tied, keys, ABOVE_KEYS))
    near = torch.topk(keys, k, largest=False).indices
    near_distances, order = torch.sort(distances.gather(-1, near), stable=True)
    return near.gather(-1, order), near_distances


def vote(labels: Tensor, n_classes: int) -> Tensor:
    """Most frequent label (subsets, queries) of labels (subsets, queries, k); the lowest label among ties."""
    k = labels.shape[2]
    if k == 1:
        return labels[:, :, 0]
    if n_classes == 2:
        return (2 * labels.sum(dim=2) > k).to(labels.dtype)
    best = torch.full_like(labels[:, :, 0], -1)
    for j in range(k):
        counts = (labels == labels[:, :, j : j + 1]).sum(dim=2)
        best = torch.maximum(best, counts * n_classes + (n_classes - 1 - labels[:, :, j]))
    return n_classes - 1 - best % n_classes


def soft_votes(is_same_class: Tensor, distances: Tensor, typical: Tensor) -> Tensor:
    """Share of the votes (subsets, queries) for the class of the query; neighbors have weights softmax(-distance / T).

    is_same_class and distances are (subsets, queries, k); T is a fifth of the typical distance (subsets).
    """
    temperature = torch.clamp(typical / 5.0, min=1e-300)[:, None, None]
    weights = torch.exp(torch.clamp((distances[:, :, :1] - distances) / temperature, min=-700.0))
    return total(weights * is_same_class) / total(weights)
