"""What a run is about: the matrix that the criterion sees, and the units that probes are made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..checks.stores import Stored
from ..probing.decoys import Decoys
from ..probing.probes import ProbePlan, Subsets, joined
from ..probing.units import Columns, Units, UnitScore, spelled_out, units_of
from .screening import Screening

MOST_LEVELS = 1000
NONE = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class Scene:
    """The matrix, and the units in it.

    Attributes
    ----------
    units : None where each column of the matrix is a feature, and each feature a unit.
    columns : of each unit in the matrix. always : columns that are in every probe.
    """

    matrix: Any
    units: Units | None = None
    columns: Subsets = field(default_factory=lambda: Subsets.of([]))
    always: Columns = field(default_factory=lambda: NONE)

    @property
    def n_units(self) -> int:
        return int(self.matrix.shape[1]) if self.units is None else self.units.n_units

    def asking(self, score: Any) -> Any:
        """The criterion, bound to the matrix, as a function of units."""
        return score if self._is_plain else UnitScore(score, self.columns, self.always)

    def plan(self, within: ProbePlan) -> ProbePlan:
        """The plan of the run in features."""
        return within if self.units is None else self.units.plan(within)

    @property
    def _is_plain(self) -> bool:
        """Whether units are the columns of the matrix, in their order."""
        if self.units is None:
            return True
        n_units = self.units.n_units
        return not len(self.always) and np.array_equal(self.columns.indices, np.arange(n_units))


def set_up(
    X: Any,
    *,
    categorical: NDArray[np.bool_],
    groups: list[Columns],
    keep: Columns,
    drop: Columns,
    screening: Screening | None,
    decoys_from: int | None,
    names: NDArray[Any] | None = None,
) -> Scene:
    """The scene of a run over X; ``decoys_from`` is the seed of decoys, if there are to be any."""
    n_features = X.shape[1]
    passed = None if screening is None else screening.passed
    units = units_of(n_features, groups=groups, keep=keep, drop=drop, passed=passed, names=names)
    if units is None and not categorical.any() and decoys_from is None:
        return Scene(X)
    if units is None:
        units = Units(n_features, Subsets.of(np.arange(n_features)[:, None]))
    matrix, cells = _matrix(X, categorical, screening if not len(keep) else None, names)
    always = spelled_out(Subsets(keep, np.array([0, len(keep)])), cells, NONE).indices
    scene = Scene(matrix, units, spelled_out(units.members, cells, NONE), always)
    return scene if decoys_from is None else _with_decoys(scene, decoys_from)


def _matrix(
    X: Any, categorical: NDArray[np.bool_], screening: Screening | None, names: NDArray[Any] | None
) -> tuple[Any, Subsets]:
    """What the criterion is bound to, and the columns of each feature in it."""
    n_features = X.shape[1]
    if categorical.any():
        return one_hot(X, categorical, names)
    places = np.arange(n_features, dtype=np.int32)
    if screening is not None:
        matrix, columns = screening.seen(X)
        if columns is None:
            places[:] = 0
            places[screening.passed] = np.arange(len(screening.passed))
        return matrix, Subsets(places, np.arange(n_features + 1))
    return X, Subsets(places, np.arange(n_features + 1))


def one_hot(X: Any, categorical: NDArray[np.bool_], names: NDArray[Any] | None = None) -> tuple[Any, Subsets]:
    """A matrix with a column for each level of a category, of 1 and 0, and the columns of each feature.

    A level that a fold does not train on tells its model nothing: all rows have 0 there. So it makes no difference
    whether levels are found before or inside of the folds. What is missing is a level of its own, as in scikit-learn.
    """
    if sp.issparse(X) or isinstance(X, Stored):
        raise ValueError("categorical_features needs a frame or a dense array: encode the columns of this table first")
    parts, sizes = [], np.ones(X.shape[1], np.int64)
    for column in np.flatnonzero(categorical):
        values = X[:, column]
        levels = np.unique(values)
        if len(levels) > MOST_LEVELS:
            name = column if names is None else repr(str(names[column]))
            raise ValueError(
                f"categorical column {name} has {len(levels):,} levels, and at most {MOST_LEVELS:,} can be told apart: "
                "leave it out, or join rare levels"
            )
        sizes[column] = len(levels)
        parts.append((values[:, None] == levels) | (np.isnan(values)[:, None] & np.isnan(levels)))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty((X.shape[0], offsets[-1]), np.result_type(X.dtype, np.float32), order="F")
    out[:, offsets[:-1][~categorical]] = X[:, ~categorical]
    for column, part in zip(np.flatnonzero(categorical), parts, strict=True):
        out[:, offsets[column] : offsets[column + 1]] = part
    return out, Subsets(np.arange(offsets[-1], dtype=np.int32), offsets)


def _with_decoys(scene: Scene, seed: int) -> Scene:
    assert scene.units is not None
    if isinstance(scene.matrix, Stored):
        raise ValueError(
            "n_features_to_select='auto' makes decoys, which takes a table in memory: use how_many='size', or load it"
        )
    made, units = Decoys.of(scene.matrix, scene.columns, seed), scene.units
    n_decoys = len(made.originals)
    numbers = units.n_features + np.arange(n_decoys, dtype=np.int32)
    members = joined([units.members, Subsets(numbers, np.arange(n_decoys + 1))])
    columns = joined([scene.columns, made.columns])
    return replace(scene, matrix=made.matrix, units=replace(units, members=members, n_decoys=n_decoys), columns=columns)
