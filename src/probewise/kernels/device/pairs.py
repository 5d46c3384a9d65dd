"""The scan of all pairs of columns on a GPU, with torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ..pairs import strengths


def strongest_pairs(
    columns: Any, targets: Any, blocks: Iterable[slice], cut: float, most: int, device: str
) -> Iterator[tuple[Any, Any, Any]]:
    """The strongest pairs of each block of columns, as `kernels.pairs.strongest` finds them."""
    on_device = torch.as_tensor(columns, device=device), torch.as_tensor(targets, device=device)
    for block in blocks:
        squares = strengths(*on_device, block.start, block.stop, torch)
        row, column = torch.nonzero(squares >= cut, as_tuple=True)
        values = squares[row, column]
        if len(values) > most:
            large = values >= torch.topk(values, most).values[-1]
            row, column, values = row[large], column[large], values[large]
        yield row.cpu().numpy(), column.cpu().numpy(), values.cpu().numpy()
