"""How many features are real? Decoys, copies with their rows shuffled, take part in the probes and say what luck does.

A decoy tells nothing about y but by chance, as a useless feature does, so the scores of decoys are what luck gives.
The chance p that luck gives a score c or more is counted among the decoys up to their best fifth, and beyond by an
exponential tail through that fifth, whose mean is taken one standard error larger than it came out:

    p(c) = 1/5 exp(-(c - u) / b),   c > u, the decoys' quantile of 4/5.

With a tail p can be as small as many features ask for, so that a large number of them alone does not make the answer
empty; an exponential one is heavier than the scores', which keeps it on the safe side. Then the false-discovery rate is
held at q as Benjamini and Hochberg do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .probes import Subsets

Floats = NDArray[np.float64]
FEWEST, MOST = 100, 1000
TAIL = 5  # one in so many decoys is in the tail
STREAM = 0xDEC0  # apart from what else is drawn with the same seed


@dataclass(frozen=True, eq=False)
class Decoys:
    """Which units have a decoy, and where decoys are in the matrix."""

    originals: NDArray[np.int64]  # the unit that each decoy was made of
    columns: Subsets  # of each decoy in the matrix
    matrix: Any  # the columns of X first

    @classmethod
    def of(cls, X: Any, columns: Subsets, seed: int, groups: Any = None) -> Decoys:
        """Decoys of units, whose columns of X are given: of all, of some if they are many, of each more if few.

        Each is shuffled on its own, the columns of a unit alike, and groups of rows as wholes: rows of a patient are
        alike in their decoys, too. The result holds a copy of X.
        """
        random = np.random.default_rng([seed, STREAM])
        n_units = len(columns)
        n_decoys = int(np.clip(n_units, FEWEST, MOST))
        whole, rest = divmod(n_decoys, n_units)
        originals = np.concatenate([np.tile(np.arange(n_units), whole), random.permutation(n_units)[:rest]])
        numbers = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        parts = [X[:, columns[unit]][_order(X.shape[0], numbers, random)] for unit in originals.tolist()]
        offsets = np.concatenate([[0], np.cumsum(columns.sizes[originals])])
        indices = X.shape[1] + np.arange(offsets[-1], dtype=np.int32)
        return cls(originals, Subsets(indices, offsets), _side_by_side(X, parts))


def _order(n_rows: int, numbers: NDArray[np.int64] | None, random: np.random.Generator) -> NDArray[np.int64]:
    """Any, or, with groups by number: rows one group after the other come from those of groups in another order."""
    if numbers is None:
        return random.permutation(n_rows)
    shuffled = random.permutation(numbers.max() + 1)[numbers]
    order = np.empty(n_rows, np.int64)
    order[np.argsort(numbers, kind="stable")] = np.argsort(shuffled, kind="stable")
    return order


def _side_by_side(X: Any, parts: list[Any]) -> Any:
    if sp.issparse(X):
        return sp.hstack([X, *parts], format="csc")
    out = np.empty((X.shape[0], X.shape[1] + sum(part.shape[1] for part in parts)), X.dtype, order="F")
    out[:, : X.shape[1]] = X
    out[:, X.shape[1] :] = np.hstack(parts)
    return out


def chances(scores: Floats, decoys: Floats) -> Floats:
    """The chance that luck gives a score as high, by the scores of decoys; 1 for a feature without a score."""
    decoys = np.sort(decoys[np.isfinite(decoys)])
    n_tail = len(decoys) // TAIL
    if n_tail < 2:
        return np.ones(len(scores))
    border = decoys[-n_tail - 1]
    mean = (decoys[-n_tail:] - border).mean() * (1 + 1 / np.sqrt(n_tail))
    known = np.where(np.isfinite(scores), scores, -np.inf)
    counted = (1 + len(decoys) - np.searchsorted(decoys, known)) / (1 + len(decoys))
    if mean <= 0:
        return counted
    beyond = np.maximum(known - border, 0.0)
    return np.where(beyond > 0, n_tail / len(decoys) * np.exp(-beyond / mean), counted)
