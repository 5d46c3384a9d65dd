"""Gaussian naive Bayes of many subsets at a time: minus the log posteriors ("costs") of rows in classes.

They are quadratic in a row's values: two batched products give those of all rows, classes and subsets. Models are
tensors (folds, subsets, width, classes); values, which have variance 1, are (folds, subsets, width, height); start
(folds, subsets, classes) is what no value changes. Columns that are ``silent`` (folds, subsets, width) say nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..scores import PROBABILITY, ROC_AUC


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


def prediction(costs: Tensor, truth: Tensor, classes: Tensor, measure: int) -> Tensor:
    """What the measure is of (folds, subsets, height), from costs (folds, subsets, classes, height).

    truth (folds, 1, height) is the place of the own class among those of the fold, whose numbers are classes (folds,
    classes); -1 for none. The first of the cheapest classes wins.
    """
    if measure == ROC_AUC:
        return (costs[:, :, 0] - costs[:, :, 1]).double()
    if measure == PROBABILITY:
        shares = torch.softmax(-costs.double(), dim=2)
        own = torch.clamp(truth, min=0)[:, :, None].expand(-1, costs.shape[1], 1, -1)
        return torch.where(truth >= 0, shares.gather(2, own)[:, :, 0], 0.0)
    winner = costs.argmin(dim=2)
    return classes[:, None].expand(-1, costs.shape[1], -1).gather(2, winner).double()


def all_but_each(lines: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
    """Weights, means and sums of squares of all rows of lines (features, rows) but each; and those of all rows.

    Rows are joined two by two, then pairs, and so on; on the way back each part is given what the others are. Nothing
    is ever taken off a sum, so no digits are lost, and of equal values the sum of squares is exactly 0.
    """
    n_rows = lines.shape[1]
    room = (1 << (n_rows - 1).bit_length()) - n_rows
    pad = torch.nn.functional.pad
    values = pad(torch.where(weights > 0, lines, 0.0), (0, room))  # the mean of nothing is 0, here and below
    part: tuple[Tensor, ...] = pad(weights, (0, room))[None], values, torch.zeros_like(values)
    levels = []
    while part[1].shape[1] > 1:
        levels.append(part)
        part = _joined(*(tuple(table[:, side::2] for table in part) for side in (0, 1)))
    whole = part
    part = tuple(torch.zeros_like(table) for table in part)
    for level in reversed(levels):
        sides = [tuple(table[:, side::2] for table in level) for side in (1, 0)]
        both = [_joined(part, other) for other in sides]
        part = tuple(torch.stack(tables, dim=2).flatten(1) for tables in zip(*both, strict=True))
    weight, mean, square = (table[:, :n_rows] for table in part)
    return weight, mean, square, tuple(table[:, 0] for table in whole)


def _joined(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor]:
    (n, mean, square), (m, apart, more) = one, other
    share = m / torch.clamp(n + m, min=1e-300)
    apart = apart - mean
    return n + m, mean + apart * share, square + more + apart**2 * n * share
