"""Checks of parameters that are whole numbers or shares."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_whole(value: Any, least: float = -np.inf, most: float = np.inf) -> bool:
    """Whether it is an integer between the two, and no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def number_of(name: str, asked: Any, total: int, what: str, otherwise: str) -> int | None:
    """How many of the total are asked for by a number from 1 or a share in (0, 1]; None stays None.

    ``what`` there are in total, and what None stands for, ``otherwise``, are said in the error.
    """
    if asked is None:
        return None
    if is_whole(asked, 1, total):
        return int(asked)
    if isinstance(asked, float | np.floating) and 0 < asked <= 1:
        return max(1, int(asked * total))
    raise ValueError(
        f"{name}={asked!r} with {total} {what}: "
        f"give a number from 1 to {total}, a share in (0, 1], or None for {otherwise}"
    )
