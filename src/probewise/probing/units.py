"""What enters and leaves a probe as one: a feature, a group of features, a category in its columns, or a decoy.

A run numbers units and knows of nothing else. Here units become features, as the user numbers them, and columns of the
matrix that the criterion sees.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ledger import LedgerError, fingerprint
from .probes import ProbePlan, Round, Subsets

Columns = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a run over ``n_features`` features.

    Attributes
    ----------
    members : the features of each unit; decoys come last, as features numbered on from ``n_features``.
    always : features that are in every probe. dropped : those that are in none, at the user's wish.
    n_decoys : how many of the last units are decoys.
    """

    n_features: int
    members: Subsets
    always: Columns = field(default_factory=lambda: np.empty(0, np.int32))
    n_decoys: int = 0
    dropped: Columns = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def n_units(self) -> int:
        return len(self.members)

    @property
    def n_real(self) -> int:
        return self.n_units - self.n_decoys

    def plan(self, within: ProbePlan) -> UnitPlan:
        """The plan of a run over the units, told in features."""
        total = self.n_features + self.n_decoys
        return UnitPlan(total, within.max_size, within.inclusion, within.seed, units=self, within=within)

    def features_of(self, subsets: Subsets) -> Subsets:
        return spelled_out(subsets, self.members, self.always)

    @cached_property
    def unit_of(self) -> NDArray[np.int64]:
        """The unit of each feature; -1 for one that is in none."""
        units = np.full(self.n_features, -1)
        real = self.members.offsets[self.n_real]
        units[self.members.indices[:real]] = np.repeat(np.arange(self.n_real), self.members.sizes[: self.n_real])
        return units

    def spread(self, values: NDArray[Any], empty: Any = np.nan) -> NDArray[Any]:
        """A value of each unit as one of each of its features."""
        shape = (self.n_features, *values.shape[1:])
        out = np.full(shape, empty, dtype=np.result_type(values.dtype, type(empty)))
        inside = self.unit_of >= 0
        out[inside] = values[self.unit_of[inside]]
        return out

    @property
    def settings(self) -> dict[str, Any]:
        """What two runs must have in common to be the same run."""
        parts = (self.members.indices, self.members.offsets, self.always, self.dropped)
        return {"units": fingerprint(*parts) + f"/{self.n_decoys}"}

    @property
    def notes(self) -> dict[str, Any]:
        """What the ledger keeps so that probes can be told from it alone."""
        return {
            "unit_members": packed(self.members.indices),
            "unit_sizes": packed(self.members.sizes),
            "unit_always": packed(self.always),
            "unit_dropped": packed(self.dropped),
            "unit_decoys": self.n_decoys,
        }

    @classmethod
    def of_ledger(cls, settings: Mapping[str, Any], n_features: int) -> Units | None:
        """The units of a run that was kept; None where each feature was one."""
        if settings.get("units") is None:
            return None
        try:
            members, sizes = (unpacked(settings[f"unit_{name}"]) for name in ("members", "sizes"))
            always, dropped = (unpacked(settings[f"unit_{name}"]) for name in ("always", "dropped"))
            n_decoys = settings["unit_decoys"]
            offsets = np.concatenate([[0], np.cumsum(sizes.astype(np.int64))])
            total = n_features + n_decoys
            fine = bool(isinstance(n_decoys, int) and 0 <= n_decoys < len(sizes) and (sizes > 0).all())
            together = np.concatenate([members, always, dropped])
            fine = fine and bool(offsets[-1] == len(members)) and len(np.unique(together)) == len(together)
            fine = fine and bool(together.min() >= 0 and together.max() < total)
        except (KeyError, ValueError, TypeError):
            fine = False
        if not fine:
            raise LedgerError(f"the ledger is damaged: it does not say which of {n_features:,} features were probed")
        return cls(n_features, Subsets(members, offsets), always, n_decoys, dropped)


@dataclass(frozen=True, eq=False)
class UnitPlan(ProbePlan):
    """The probes of a run over units, in features: probe i holds the features of the units of probe i ``within``."""

    units: Units = field(kw_only=True, repr=False)
    within: ProbePlan = field(kw_only=True, repr=False)

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        every = np.sort(np.concatenate([self.units.members.indices, self.units.always]))
        whole = Round(0, every)
        return (whole, *(Round(part.start, self._features(part.active)) for part in self.within.rounds[1:]))

    def _features(self, units: Columns) -> Columns:
        return np.sort(self.units.features_of(Subsets(units, np.array([0, len(units)]))).indices)

    @cached_property
    def largest(self) -> int:
        sizes = np.sort(self.units.members.sizes)
        return int(sizes[-self.within.largest :].sum()) + len(self.units.always)

    def draw(self, start: int, stop: int) -> Subsets:
        return self.units.features_of(self.within.draw(start, stop))


@dataclass(frozen=True, eq=False)
class UnitScore:
    """A criterion bound to a matrix, asked about subsets of units."""

    score: Any
    columns: Subsets
    always: Columns

    def __call__(self, subsets: Subsets) -> Any:
        return self.score(spelled_out(subsets, self.columns, self.always))


def spelled_out(subsets: Subsets, lists: Subsets, always: Columns) -> Subsets:
    """Each number in the subsets replaced by its list, after what is always in."""
    if len(lists.indices) == len(lists):  # lists of one
        indices, offsets = lists.indices[subsets.indices], subsets.offsets
    else:
        sizes = lists.sizes[subsets.indices]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        shift = np.repeat(lists.offsets[subsets.indices] - ends[:-1], sizes)
        indices, offsets = lists.indices[shift + np.arange(ends[-1])], ends[subsets.offsets]
    if not len(always):
        return Subsets(indices, offsets)
    moved = offsets + len(always) * np.arange(len(offsets))
    out = np.empty(moved[-1], np.int32)
    is_always = np.zeros(len(out), dtype=bool)
    is_always[moved[:-1, None] + np.arange(len(always))] = True
    out[is_always], out[~is_always] = np.tile(always, len(subsets)), indices
    return Subsets(out, moved)


# ---- what the user says about features


def named_columns(asked: Any, parameter: str, names: NDArray[Any] | None, n_features: int) -> Columns:
    """The columns that a parameter lists, by name or number (or as a mask), ascending."""
    if isinstance(asked, str) or not isinstance(asked, Sequence | np.ndarray | set | frozenset):
        raise ValueError(f"{parameter}={asked!r}: give a list of column names or numbers")
    asked = sorted(asked, key=str) if isinstance(asked, set | frozenset) else list(asked)
    if len(asked) == n_features and all(isinstance(item, bool | np.bool_) for item in asked):
        return np.flatnonzero(asked).astype(np.int32)
    found = [_column(item, parameter, names, n_features) for item in asked]
    if len(set(found)) < len(found):
        twice = next(column for column in found if found.count(column) > 1)
        raise ValueError(f"{parameter} names column {twice if names is None else names[twice]} twice: name it once")
    return np.array(sorted(found), dtype=np.int32)


def _column(item: Any, parameter: str, names: NDArray[Any] | None, n_features: int) -> int:
    if isinstance(item, str):
        if names is None:
            raise ValueError(f"{parameter} names the column {item!r}, and X has no names: give numbers, or a frame")
        places = np.flatnonzero(np.asarray(names) == item)
        if not len(places):
            raise ValueError(f"{parameter} names the column {item!r}, which X does not have")
        return int(places[0])
    if isinstance(item, int | np.integer) and not isinstance(item, bool) and -n_features <= item < n_features:
        return int(item) % n_features
    raise ValueError(f"{parameter} holds {item!r}: give names, or numbers from 0 to {n_features - 1}")


def grouped(feature_groups: Any, names: NDArray[Any] | None, n_features: int) -> list[Columns]:
    """The groups that a parameter asks for: lists of columns, a mapping of names to lists, or a label per feature."""
    if isinstance(feature_groups, Mapping):
        lists = list(feature_groups.values())
    elif isinstance(feature_groups, Sequence | np.ndarray) and not isinstance(feature_groups, str):
        lists = list(feature_groups)
        if lists and not any(isinstance(item, Sequence | np.ndarray) and not isinstance(item, str) for item in lists):
            lists = _by_label(lists, n_features)
    else:
        raise ValueError(
            f"feature_groups={feature_groups!r}: give lists of columns, a dict of lists, or a label for each feature"
        )
    groups = [named_columns(item, "feature_groups", names, n_features) for item in lists]
    if any(not len(group) for group in groups):
        raise ValueError("feature_groups holds an empty group: leave it out")
    every = np.concatenate([np.empty(0, np.int32), *groups])
    if len(np.unique(every)) < len(every):
        twice = int(np.flatnonzero(np.bincount(every) > 1)[0])
        name = twice if names is None else names[twice]
        raise ValueError(f"feature_groups has column {name} in two groups: a feature enters with one group only")
    return groups


def _by_label(labels: list[Any], n_features: int) -> list[list[int]]:
    if len(labels) != n_features:
        raise ValueError(
            f"feature_groups has {len(labels)} labels for {n_features} features: give one for each, or lists of columns"
        )
    places: dict[Any, list[int]] = {}
    for column, label in enumerate(labels):
        places.setdefault(label, []).append(column)
    return list(places.values())


def units_of(
    n_features: int,
    *,
    groups: list[Columns],
    keep: Columns,
    drop: Columns,
    passed: Columns | None,
    names: NDArray[Any] | None = None,
) -> Units | None:
    """The units of a run; None where they are the features themselves."""
    both = np.intersect1d(keep, drop)
    if both.size:
        raise ValueError(f"keep and drop both name column {both[0] if names is None else names[both[0]]}: name it once")
    if not groups and not len(keep) and not len(drop) and passed is None:
        return None
    free = np.ones(n_features, dtype=bool) if passed is None else np.isin(np.arange(n_features), passed)
    free[keep] = free[drop] = False
    label = np.arange(n_features)
    for group in groups:
        for part, parameter in ((keep, "keep"), (drop, "drop")):
            inside = np.intersect1d(part, group)
            if 0 < len(inside) < len(group):
                name = inside[0] if names is None else names[inside[0]]
                raise ValueError(
                    f"{parameter} names column {name} and not all others of its group in feature_groups: name all of "
                    "them, or leave it out of the group"
                )
        label[group] = group[0]
    columns = np.flatnonzero(free)
    order = columns[np.argsort(label[columns], kind="stable")].astype(np.int32)
    if not len(order):
        raise ValueError(f"keep and drop leave none of {n_features} features to be ranked: name fewer")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(label[order]) != 0]))
    return Units(n_features, Subsets(order, np.append(starts, len(order)).astype(np.int64)), keep, dropped=drop)


def packed(values: NDArray[Any]) -> str:
    """Whole numbers as text for the ledger, 5 bytes each."""
    return base64.b64encode(values.astype("<i4").tobytes()).decode()


def unpacked(text: str) -> Columns:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<i4").astype(np.int32)
