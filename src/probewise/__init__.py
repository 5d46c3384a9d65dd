"""Finds the few features that matter in very wide data, judging each in the company of others.

The public names; each is loaded when first asked for, so that ``import probewise`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {"BIF": "selectors.bif", "DAF": "selectors.daf", "SFFS": "selectors.sffs"}

if TYPE_CHECKING:
    from .selectors.bif import BIF as BIF
    from .selectors.daf import DAF as DAF
    from .selectors.sffs import SFFS as SFFS

__all__ = ["BIF", "DAF", "SFFS"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'probewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
