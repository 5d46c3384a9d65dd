"""The result of a test of all features: p-values, q-values and the features that are named."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from ..validation.parameters import SHARE, check_parameter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Discoveries:
    """p-values and q-values of all columns, and the columns named at a false discovery rate.

    Attributes
    ----------
    p_values, q_values : array of shape (n_features,)
        q-values are p-values adjusted by the method of Benjamini and Hochberg.
    clusters : list of arrays of int
        Neighborhoods of columns that are so similar that they are named as one; the first column represents the
        neighborhood.
    fdr : float
        The allowed expected share of false discoveries.
    mask : array of bool of shape (n_features,)
        The named columns.
    """

    p_values: Floats
    q_values: Floats
    fdr: float = 0.1
    clusters: list[Ints] = field(default_factory=list)

    @property
    def mask(self) -> NDArray[np.bool_]:
        return np.asarray(self.q_values <= self.fdr)

    def at(self, fdr: float) -> Discoveries:
        """The same tests at another false discovery rate."""
        check_parameter("fdr", fdr, SHARE)
        return replace(self, fdr=fdr)

    def __repr__(self) -> str:
        n_named = int(self.mask.sum())
        return f"Discoveries({n_named:,} of {len(self.p_values):,} features at a false discovery rate of {self.fdr:g})"


def q_values(p_values: Floats) -> Floats:
    """p-values adjusted by the method of Benjamini and Hochberg."""
    return np.asarray(false_discovery_control(p_values)) if len(p_values) else p_values
