"""Sums for scores of many subsets at a time on a device.

Sums are computed by adding halves repeatedly: unlike torch's sums, their rounding does not depend on the rest of a
batch.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def total(values: Tensor) -> Tensor:
    """Sums over the last axis."""
    while (width := values.shape[-1]) > 1:
        half = (width + 1) // 2
        halves = values[..., :half].clone()
        halves[..., : width - half] += values[..., half:]
        values = halves
    return values[..., 0] if values.shape[-1] else values.new_zeros(values.shape[:-1])


def members_of_parts(sizes: NDArray[np.int64], device: str) -> Tensor:
    """Tests of each part as a table (parts, height), padded with the number of tests, which are sorted by part."""
    place = np.arange(int(sizes.max(initial=0)))
    members = (np.cumsum(sizes) - sizes)[:, None] + place
    return torch.from_numpy(np.where(place < sizes[:, None], members, sizes.sum())).to(device)


def sums_of_parts(values: Tensor, members: Tensor) -> Tensor:
    """Sums (subsets, parts) of values (subsets, tests)."""
    return total(torch.nn.functional.pad(values, (0, 1))[:, members])
