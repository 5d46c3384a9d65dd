"""Cholesky factors and solutions of many ridge systems in one batch."""

from __future__ import annotations

import torch
from torch import Tensor


def factorize(systems: Tensor) -> tuple[Tensor, Tensor]:
    """Lower Cholesky factors (..., width, width), and the least pivot of each as a share of the diagonal."""
    diagonal = systems.diagonal(dim1=-2, dim2=-1).clone()
    factors, failed = torch.linalg.cholesky_ex(systems)
    pivots = (factors.diagonal(dim1=-2, dim2=-1) ** 2 / diagonal).amin(dim=-1)
    return factors, torch.where(failed == 0, pivots, 0.0)


def solve(factors: Tensor, sides: Tensor) -> Tensor:
    """Solutions (..., width, outputs), for all outputs at once."""
    half = torch.linalg.solve_triangular(factors, sides, upper=False)
    return torch.linalg.solve_triangular(factors.mT, half, upper=True)
