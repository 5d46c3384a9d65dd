"""Tests of features: which ones are related to the target, which are needed given the others, which act in pairs.

The tests use the data only; nothing here depends on probes or on a ranking.
"""

from .association import associated
from .base import Discoveries
from .interactions import Pairs, pairs
from .selection import needed

__all__ = ["Discoveries", "Pairs", "associated", "needed", "pairs"]
