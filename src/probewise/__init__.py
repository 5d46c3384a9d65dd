"""Finds the few features that matter in very wide data, judging each in the company of others.

The public names; each is loaded when first asked for, so that ``import probewise`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AdaptiveRandomForestClassifier": "forest",
    "BIF": "selectors.bif",
    "CFS": "selectors.cfs",
    "CMIM": "selectors.mrmr",
    "DAF": "selectors.daf",
    "DFE": "selectors.dfe",
    "EFS": "selectors.efs",
    "FCBF": "selectors.fcbf",
    "FSDD": "selectors.fsdd",
    "JMI": "selectors.mrmr",
    "MRMR": "selectors.mrmr",
    "ReliefF": "selectors.relieff",
    "SFFS": "selectors.sffs",
    "Tournament": "selectors.tournament",
}

if TYPE_CHECKING:
    from .forest import AdaptiveRandomForestClassifier as AdaptiveRandomForestClassifier
    from .selectors.bif import BIF as BIF
    from .selectors.cfs import CFS as CFS
    from .selectors.daf import DAF as DAF
    from .selectors.dfe import DFE as DFE
    from .selectors.efs import EFS as EFS
    from .selectors.fcbf import FCBF as FCBF
    from .selectors.fsdd import FSDD as FSDD
    from .selectors.mrmr import CMIM as CMIM
    from .selectors.mrmr import JMI as JMI
    from .selectors.mrmr import MRMR as MRMR
    from .selectors.relieff import ReliefF as ReliefF
    from .selectors.sffs import SFFS as SFFS
    from .selectors.tournament import Tournament as Tournament

__all__ = [
    "BIF",
    "CFS",
    "CMIM",
    "DAF",
    "DFE",
    "EFS",
    "FCBF",
    "FSDD",
    "JMI",
    "MRMR",
    "SFFS",
    "AdaptiveRandomForestClassifier",
    "ReliefF",
    "Tournament",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'probewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
