"""Feature selection for very wide data: features are judged together with other features.

Public names are imported on first use, so that ``import probewise`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULE_OF = {
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
    "prepare": "validation.frames",
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
    from .validation.frames import prepare as prepare

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = globals()[name] = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
        return value
    raise AttributeError(f"module 'probewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
