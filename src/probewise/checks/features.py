"""Checks of what a user says about single features: names of columns, groups of them, costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import Parameter, ParameterError

Columns = NDArray[np.int32]


Names: TypeAlias = NDArray[Any] | dict[str, int] | None  # of columns, or their places by name


def named_columns(asked: Any, parameter: str, names: Names, n_features: int) -> Columns:
    """The columns that a parameter lists, by name or number (or as a mask), ascending."""
    if isinstance(asked, str) or not isinstance(asked, Sequence | np.ndarray | set | frozenset):
        raise ParameterError(Parameter(parameter, asked), ": give a list of column names or numbers")
    asked = sorted(asked, key=str) if isinstance(asked, set | frozenset) else list(asked)
    if len(asked) == n_features and all(isinstance(item, bool | np.bool_) for item in asked):
        return np.flatnonzero(asked).astype(np.int32)
    places = _places(names)
    found = [_column(item, parameter, places, n_features) for item in asked]
    if len(set(found)) < len(found):
        twice = int(np.flatnonzero(np.bincount(found) > 1)[0])
        raise ParameterError(Parameter(parameter), f" names column {_name(twice, places)} twice: name it once")
    return np.array(sorted(found), dtype=np.int32)


def _places(names: Names) -> dict[str, int] | None:
    """Where each name stands, the first time; made once for many that are asked for."""
    if names is None or isinstance(names, dict):
        return names
    return dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))


def _name(column: int, places: dict[str, int] | None) -> Any:
    return column if places is None else next(name for name, place in places.items() if place == column)


def _column(item: Any, parameter: str, places: dict[str, int] | None, n_features: int) -> int:
    if isinstance(item, str):
        if places is None:
            raise ParameterError(
                Parameter(parameter), f" names the column {item!r}, and X has no names: give numbers, or a frame"
            )
        if item not in places:
            raise ParameterError(Parameter(parameter), f" names the column {item!r}, which X does not have")
        return places[item]
    if isinstance(item, int | np.integer) and not isinstance(item, bool) and -n_features <= item < n_features:
        return int(item) % n_features
    raise ParameterError(Parameter(parameter), f" holds {item!r}: give names, or numbers from 0 to {n_features - 1}")


def grouped(feature_groups: Any, names: NDArray[Any] | None, n_features: int) -> list[Columns]:
    """The groups that a parameter asks for: lists of columns, a mapping of names to lists, or a label per feature."""
    if isinstance(feature_groups, Mapping):
        lists = list(feature_groups.values())
    elif isinstance(feature_groups, Sequence | np.ndarray) and not isinstance(feature_groups, str):
        lists = list(feature_groups)
        if lists and not any(isinstance(item, Sequence | np.ndarray) and not isinstance(item, str) for item in lists):
            lists = _by_label(lists, n_features)
    else:
        raise ParameterError(
            Parameter("feature_groups", feature_groups),
            ": give lists of columns, a dict of lists, or a label for each feature",
        )
    places = _places(names)
    groups = [named_columns(item, "feature_groups", places, n_features) for item in lists]
    if any(not len(group) for group in groups):
        raise ParameterError(Parameter("feature_groups"), " holds an empty group: leave it out")
    every = np.concatenate([np.empty(0, np.int32), *groups])
    if len(np.unique(every)) < len(every):
        name = _name(int(np.flatnonzero(np.bincount(every) > 1)[0]), places)
        raise ParameterError(
            Parameter("feature_groups"), f" has column {name} in two groups: a feature enters with one group only"
        )
    return groups


def _by_label(labels: list[Any], n_features: int) -> list[list[int]]:
    if len(labels) != n_features:
        raise ParameterError(
            Parameter("feature_groups"),
            f" has {len(labels)} labels for {n_features} features: give one for each, or lists of columns",
        )
    places: dict[Any, list[int]] = {}
    for column, label in enumerate(labels):
        places.setdefault(label, []).append(column)
    return list(places.values())


def checked_costs(costs: Any, names: NDArray[Any] | None, n_features: int) -> NDArray[np.float64] | None:
    """A cost above 0 for each feature, given as an array or as a dict of those that are not 1; None: no costs."""
    if costs is None:
        return None
    if isinstance(costs, Mapping):
        places = _places(names)
        columns = [_column(key, "costs", places, n_features) for key in costs]
        given = dict(zip(columns, costs.values(), strict=True))
        costs = [given.get(column, 1.0) for column in range(n_features)]
    try:
        values = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n_features,) or not (np.isfinite(values) & (values > 0)).all():
        raise ParameterError(
            Parameter("costs"),
            f" must hold a number above 0 for each of {n_features} features, or be a dict of those that are not 1",
        )
    return values
