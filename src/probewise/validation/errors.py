"""The error for wrong parameters, and warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings

import numpy as np

# Decorates public functions: numpy's usual error state, even where the caller's np.errstate raises.
USUAL_ERROR_STATE = np.errstate(all="warn", under="ignore")
INTERNAL_PACKAGES = ("probewise", "sklearn", "numpy")  # a decorator of numpy sets the error state


class ParameterError(ValueError):
    """A parameter, or the data given with it, cannot be used; the message says what to do about it."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: the nearest caller outside this package, scikit-learn and numpy."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INTERNAL_PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
