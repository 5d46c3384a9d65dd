"""Text ids of criteria and estimators, the same in every process: ledgers and studies compare them.

A criterion or an estimator is identified by its class and its parameters. A user's function has no id: its code may
change between two runs. It is given a name instead, `Function(f, name="first")`.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..engine.fingerprints import fingerprint
from ..engine.settings import UNNAMED

LIBRARIES = frozenset(("builtins", "numpy", "scipy", "sklearn", "probewise"))


def stable_text(value: Any) -> str:
    """Class and parameters of an estimator, or a plain value, as text without memory addresses.

    Text of a user's function or object, which has no id, ends in ``UNNAMED``.
    """
    if isinstance(value, BaseEstimator):
        parameters = sorted(value.get_params(deep=False).items())
        return f"{type(value).__name__}({', '.join(f'{name}={stable_text(item)}' for name, item in parameters)})"
    if isinstance(value, list):
        return f"[{', '.join(map(stable_text, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(stable_text, value))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{stable_text(key)}: {stable_text(item)}' for key, item in value.items())}}}"
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"array {fingerprint(value)}"
    if isinstance(value, np.ufunc):
        return value.__name__
    if isinstance(value, type | FunctionType):
        return value.__name__ + ("" if _is_in_library(value) else UNNAMED)
    text = repr(value)
    # "<" begins a memory address. A scorer shows only the name of its function, which may be the user's.
    if isinstance(value, str) or (_is_in_library(type(value)) and "<" not in text and "make_scorer(" not in text):
        return text
    return type(value).__name__ + UNNAMED


def _is_in_library(value: type | FunctionType) -> bool:
    """Whether a class or function can be found in a library by its name."""
    return value.__module__.partition(".")[0] in LIBRARIES and "<" not in value.__qualname__
