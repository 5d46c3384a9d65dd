"""Checks of parameters that are whole numbers or shares."""

from __future__ import annotations

import math
import secrets
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .errors import Parameter, ParameterError


def is_whole(value: Any, least: float = -np.inf, most: float = np.inf) -> bool:
    """Whether it is an integer between the two, and no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def is_finite(value: Any) -> bool:
    """Whether it is a number, no boolean, and neither NaN nor infinite."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def seed_of(random_state: Any, kept: Any) -> int:
    """The seed asked for; without one, that of a run that was kept, if there is one, else a new one."""
    if random_state is None:
        return secrets.randbits(32) if kept is None else int(kept)
    state = check_random_state(random_state)  # scikit-learn's bounds and message
    return int(random_state) if is_whole(random_state) else int(state.randint(2**31 - 1))


def require_whole(name: str, value: Any, least: int) -> None:
    if not is_whole(value, least):
        raise ParameterError(Parameter(name, value), f" must be a whole number of at least {least}")


def require_rate(name: str, value: Any) -> None:
    if not is_finite(value) or not 0 < value < 1:
        raise ParameterError(Parameter(name, value), " must be a share above 0 and below 1")


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
