"""Many tests at once: p-values adjusted for their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's adjustment of p-values for their number, down the first axis."""
    order = np.argsort(p_values, axis=0, kind="stable")
    factors = np.arange(len(p_values), 0, -1).reshape(-1, *[1] * (p_values.ndim - 1))
    stepped = np.maximum.accumulate(np.take_along_axis(p_values, order, axis=0) * factors, axis=0)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, np.minimum(stepped, 1), axis=0)
    return adjusted
