"""Which rows a feature helps: what the best features did for each group of rows, groups alike side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .run import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WhichRows:
    """What features did for groups of rows.

    Attributes
    ----------
    names : tuple of str
        The features, best first.
    effects : array of float64 of shape (n_features, n_groups)
        J of the rows of a group with the feature less without it, in probes of like size. The mean over groups is what
        the feature gives; where it helps some groups only, these are a part of the rows apart.
    rows : tuple of arrays of int64
        The rows of each group: one, those that belong together, or, of more than 64, some of each class. Groups of a
        class, if they have one, are side by side, and among these such that the same features help.
    classes : tuple
        The class of the rows of each group; None where they have several, or none is known.
    """

    names: tuple[str, ...]
    effects: Floats
    rows: tuple[Ints, ...]
    classes: tuple[Any, ...]

    @property
    def blocks(self) -> list[tuple[Any, int, int]]:
        """The classes in the order of the groups, each with where it starts and ends; none where groups have none."""
        starts = [k for k, label in enumerate(self.classes) if k == 0 or label != self.classes[k - 1]]
        ends = [*starts[1:], len(self.classes)]
        return [(self.classes[k], k, end) for k, end in zip(starts, ends, strict=True) if self.classes[k] is not None]


def which_rows(run: Run, group_of: Ints, features: Ints, names: Sequence[str], labels: Any = None) -> WhichRows:
    """What features, which must have been probed, did for groups; ``labels`` are the classes of all rows."""
    assert run.record is not None
    effects = run.record.row_unit * run.effects_by_group(features)
    rows = [np.flatnonzero(group_of == group) for group in range(effects.shape[1])]
    classes = [None if labels is None else _only(np.asarray(labels)[some]) for some in rows]
    has_classes = all(label is not None for label in classes)
    block = np.array([str(label) if has_classes else "" for label in classes])
    order = np.lexsort((_side_by_side(effects), block))
    of_groups = [classes[group] if has_classes else None for group in order]
    return WhichRows(tuple(names), effects[:, order], tuple(rows[group] for group in order), tuple(of_groups))


def _only(labels: NDArray[Any]) -> Any:
    return labels[0].item() if (labels == labels[0]).all() else None


def _side_by_side(effects: Floats) -> Floats:
    """A number for each group, alike where the same features help: the first principal component."""
    centred = np.nan_to_num(effects - effects.mean(axis=1, keepdims=True))
    component = np.linalg.svd(centred, full_matrices=False)[2][0]
    return np.asarray(np.round(component * np.sign(component @ centred[0] or 1.0), 9))
