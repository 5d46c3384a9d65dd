"""Units: what enters a probe as one (a feature, a group of features, or a categorical feature).

A run knows only the numbers of units. This module translates units into features of the user's table and into columns
of the matrix that the criterion sees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..validation.errors import ParameterError
from ..validation.stores import Stored
from .probes import ProbePlan, Subsets

Columns = NDArray[np.int32]
NO_COLUMNS: Columns = np.empty(0, np.int32)
MAX_LEVELS = 1000


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a run and the features of each unit."""

    n_features: int
    members: Subsets  # the features of each unit
    kept: Columns = field(default_factory=NO_COLUMNS.copy)  # features that are in every probe (``keep``)

    @classmethod
    def of_features(cls, n_features: int) -> Units:
        """Make every feature a unit."""
        return cls(n_features, Subsets(np.arange(n_features, dtype=np.int32), np.arange(n_features + 1)))

    @property
    def n_units(self) -> int:
        return len(self.members)

    @cached_property
    def are_features(self) -> bool:
        """Whether every feature is a unit of its own."""
        return self.n_units == self.n_features and np.array_equal(self.members.indices, np.arange(self.n_features))

    def plan(self, unit_plan: ProbePlan) -> ProbePlan | FeaturePlan:
        """Translate a plan over units into a plan over features."""
        return unit_plan if self.are_features else FeaturePlan(self, unit_plan)

    def features_of(self, subsets: Subsets) -> Subsets:
        return expanded(subsets, self.members, self.kept)

    @cached_property
    def unit_of(self) -> NDArray[np.int64]:
        """The unit of each feature; -1 for a feature that is in no unit."""
        units = np.full(self.n_features, -1)
        units[self.members.indices] = np.repeat(np.arange(self.n_units), self.members.sizes)
        return units

    def per_feature(self, values: NDArray[Any], empty: Any = np.nan) -> NDArray[Any]:
        """Give every feature the value of its unit; ``empty`` for features in no unit."""
        if self.are_features:
            return values
        shape = (self.n_features, *values.shape[1:])
        out = np.full(shape, empty, dtype=np.result_type(values.dtype, type(empty)))
        inside = self.unit_of >= 0
        out[inside] = values[self.unit_of[inside]]
        return out

    def first_features(self) -> Columns:
        """The first feature of each unit."""
        return self.members.indices[self.members.offsets[:-1]]


@dataclass(frozen=True, eq=False)
class FeaturePlan:
    """The probes of a plan over units, written as features."""

    units: Units
    unit_plan: ProbePlan

    def draw(self, start: int, stop: int) -> Subsets:
        return self.units.features_of(self.unit_plan.draw(start, stop))

    def probe(self, i: int) -> Columns:
        """The features of probe i."""
        return self.draw(i, i + 1)[0]


@dataclass(frozen=True, eq=False)
class UnitTable:
    """The matrix that the criterion sees, and the columns of each unit in it."""

    matrix: Any
    units: Units
    columns: Subsets  # the columns of each unit
    kept: Columns = field(default_factory=NO_COLUMNS.copy)  # columns that are in every probe

    def score_of_units(self, score: Any) -> Any:
        """Turn a criterion bound to the matrix into a function of subsets of units."""
        if not len(self.kept) and np.array_equal(self.columns.indices, np.arange(self.units.n_units)):
            return score
        return partial(_score_of_units, score, self.columns, self.kept)


def _score_of_units(score: Any, columns: Subsets, kept: Columns, subsets: Subsets) -> Any:
    return score(expanded(subsets, columns, kept))


def unit_table(
    X: Any,
    units: Units,
    *,
    categorical: NDArray[np.bool_] | None = None,
    names: NDArray[Any] | None = None,
) -> UnitTable:
    """Make the matrix that the criterion sees: X with one column of 0 and 1 per level of a categorical feature."""
    if categorical is not None and categorical.any():
        matrix, columns = one_hot(X, categorical, names)
    else:
        matrix, columns = X, Units.of_features(X.shape[1]).members
    if units.are_features:
        return UnitTable(matrix, units, columns)
    kept = expanded(Subsets(units.kept, np.array([0, len(units.kept)])), columns, NO_COLUMNS).indices
    return UnitTable(matrix, units, expanded(units.members, columns, NO_COLUMNS), kept)


def one_hot(X: Any, categorical: NDArray[np.bool_], names: NDArray[Any] | None = None) -> tuple[Any, Subsets]:
    """Encode categorical columns as one column of 0 and 1 per level; also return the columns of each feature.

    Levels are found in all rows. That is the same as finding them inside each fold: a level without training rows is a
    column of zeros there, which no model can use. A missing value is a level of its own, as in scikit-learn.
    """
    if sp.issparse(X) or isinstance(X, Stored):
        raise ParameterError("categorical_features needs a frame or a dense array: encode the columns first")
    parts, sizes = [], np.ones(X.shape[1], np.int64)
    for column in np.flatnonzero(categorical):
        values = X[:, column]
        levels = np.unique(values)
        if len(levels) > MAX_LEVELS:
            name = column if names is None else repr(str(names[column]))
            raise ValueError(
                f"categorical column {name} has {len(levels):,} levels, more than the maximum of {MAX_LEVELS:,}: "
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


def expanded(subsets: Subsets, lists: Subsets, kept: Columns) -> Subsets:
    """Replace each number in the subsets by its list, and put the ``kept`` columns in front of every subset."""
    if len(lists.indices) == len(lists):  # every list has one number
        indices, offsets = lists.indices[subsets.indices], subsets.offsets
    else:
        sizes = lists.sizes[subsets.indices]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        shift = np.repeat(lists.offsets[subsets.indices] - ends[:-1], sizes)
        indices, offsets = lists.indices[shift + np.arange(ends[-1])], ends[subsets.offsets]
    if not len(kept):
        return Subsets(indices, offsets)
    moved = offsets + len(kept) * np.arange(len(offsets))
    out = np.empty(moved[-1], np.int32)
    is_kept = np.zeros(len(out), dtype=bool)
    is_kept[moved[:-1, None] + np.arange(len(kept))] = True
    out[is_kept], out[~is_kept] = np.tile(kept, len(subsets)), indices
    return Subsets(out, moved)


def units_of(n_features: int, *, groups: list[Columns], keep: Columns, names: NDArray[Any] | None = None) -> Units:
    """Make the units from the groups of features and the features of ``keep``."""
    if not groups and not len(keep):
        return Units.of_features(n_features)
    label = np.arange(n_features)
    for group in groups:
        inside = np.intersect1d(keep, group)
        if 0 < len(inside) < len(group):
            name = inside[0] if names is None else names[inside[0]]
            raise ParameterError(
                f"keep has column {name} but not all other columns of its group in feature_groups: add them, or "
                "leave the column out of the group"
            )
        label[group] = group[0]
    columns = np.setdiff1d(np.arange(n_features), keep)
    order = columns[np.argsort(label[columns], kind="stable")].astype(np.int32)
    if not len(order):
        raise ParameterError(f"keep has all {n_features} features, so none is left to rank: use a shorter list")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(label[order]) != 0]))
    return Units(n_features, Subsets(order, np.append(starts, len(order)).astype(np.int64)), keep)
