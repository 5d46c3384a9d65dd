"""What users say in parameters: numbers, shares and seeds; columns and groups of them; files to write."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .errors import Parameter, ParameterError

Columns = NDArray[np.int32]
Names: TypeAlias = NDArray[Any] | dict[str, int] | None  # of columns, or their places by name


def is_whole(value: Any, least: float = -np.inf, most: float = np.inf) -> bool:
    """Whether it is an integer between the two, and no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def is_finite(value: Any) -> bool:
    """Whether it is a number, no boolean, and neither NaN nor infinite."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def seed_of(random_state: Any, kept: Any) -> int:
    """The seed asked for; without one, that of a run that was kept, if there is one, else a new one."""
    if random_state is None:
        return secrets.randbits(32) if kept is None else int(kept)
    state = random_of(random_state)
    return int(random_state) if is_whole(random_state) else int(state.randint(2**31 - 1))


def random_of(random_state: Any) -> np.random.RandomState:
    """As scikit-learn takes it."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ParameterError(
            Parameter("random_state", random_state), f" cannot be used: {error}; give a whole number, or None"
        ) from error


def require_whole(name: str, value: Any, least: int) -> None:
    if not is_whole(value, least):
        raise ParameterError(Parameter(name, value), f" must be a whole number of at least {least}")


def require_rate(name: str, value: Any) -> None:
    if not is_finite(value) or not 0 < value < 1:
        raise ParameterError(Parameter(name, value), " must be a share above 0 and below 1")


def number_of(name: str, asked: Any, total: int, what: str, otherwise: str) -> int | None:
    """How many of the total are asked for by a number from 1 or a share in (0, 1]; None stays None.

    ``what`` there are in total, and what None stands for, ``otherwise``, are said in the error.
    """
    if asked is None:
        return None
    if is_whole(asked, 1, total):
        return int(asked)
    if isinstance(asked, float | np.floating) and 0 < asked <= 1:
        return max(1, int(asked * total))
    raise ValueError(
        f"{name}={asked!r} with {total} {what}: "
        f"give a number from 1 to {total}, a share in (0, 1], or None for {otherwise}"
    )


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


def writable_path(
    path: str | PathLike[str],
    formats: Sequence[str],
    refusal: str = "{} has no format that can be written: name it {}",
    error: type[ValueError] = ValueError,
) -> Path:
    """The path, if it ends in one of the formats, is no folder, and its folder exists."""
    path = Path(path)
    if path.suffix.lower() not in formats:
        raise error(refusal.format(path, choice(formats)))
    if not path.parent.is_dir():
        raise error(f"{path} cannot be written: the folder {path.parent} does not exist")
    if path.is_dir():
        raise error(f"{path} cannot be written: it is a folder")
    return path


def choice(items: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(items[:-1]), items[-1])))
