"""Gaussian naive Bayes of many subsets at a time: minus the log posteriors ("costs") of rows in classes.

They are quadratic in a row's values: two batched products give those of all rows, classes and subsets. Models are
tensors (folds, subsets, width, classes); values, which have variance 1, are (folds, subsets, width, height); start
(folds, subsets, classes) is what no value changes. Columns that are ``silent`` (folds, subsets, width) say nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor


def quadratic(mean: Tensor, variance: Tensor, silent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a value z costs in a class: (bend z + slope) z + start."""
    variance = torch.where(silent[..., None], 1.0, variance)
    precision = torch.where(silent[..., None], 0.0, 1.0 / variance)
    return 0.5 * precision, -precision * mean, 0.5 * (precision * mean**2 + torch.log(variance))


def expanded_costs(bend: Tensor, slope: Tensor, start: Tensor, values: Tensor) -> Tensor:
    """Costs (folds, subsets, classes, height); the values given are lost."""
    costs = slope.mT.to(values.dtype) @ values
    costs += bend.mT.to(values.dtype) @ values.square_()
    return costs.add_(start[..., None].to(values.dtype))


def squared_costs(mean: Tensor, variance: Tensor, silent: Tensor, log_prior: Tensor, values: Tensor) -> Tensor:
    """Costs (folds, subsets, classes, height) as sums of squares: no digits are lost in narrow classes."""
    variance = torch.where(silent[..., None], 1.0, variance)
    scale = torch.where(silent[..., None], 0.0, torch.sqrt(0.5 / variance))
    start = 0.5 * torch.log(variance).sum(dim=2) - log_prior[:, None]
    classes = range(mean.shape[-1])
    costs = [((values - mean[..., c, None]) * scale[..., c, None]).square_().sum(dim=2) for c in classes]
    return torch.stack(costs, dim=2).add_(start[..., None])
