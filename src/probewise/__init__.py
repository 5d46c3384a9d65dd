"""Feature selection in very wide data: each feature is judged together with others.

Public names are imported when they are first used, so that ``import probewise`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AdaptiveRandomForestClassifier": "forest",
    "BIF": "bif",
    "CFS": "filters.cfs",
    "CMIM": "filters.mrmr",
    "DAF": "daf",
    "DFE": "filters.dfe",
    "EFS": "filters.efs",
    "FCBF": "filters.fcbf",
    "FSDD": "filters.fsdd",
    "JMI": "filters.mrmr",
    "MRMR": "filters.mrmr",
    "ReliefF": "filters.relieff",
    "SFFS": "sffs",
    "Tournament": "tournament",
}

if TYPE_CHECKING:
    from .bif import BIF as BIF
    from .daf import DAF as DAF
    from .filters.cfs import CFS as CFS
    from .filters.dfe import DFE as DFE
    from .filters.efs import EFS as EFS
    from .filters.fcbf import FCBF as FCBF
    from .filters.fsdd import FSDD as FSDD
    from .filters.mrmr import CMIM as CMIM
    from .filters.mrmr import JMI as JMI
    from .filters.mrmr import MRMR as MRMR
    from .filters.relieff import ReliefF as ReliefF
    from .forest import AdaptiveRandomForestClassifier as AdaptiveRandomForestClassifier
    from .sffs import SFFS as SFFS
    from .tournament import Tournament as Tournament

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
        value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
        return value
    raise AttributeError(f"module 'probewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
