"""Validation of y, sample weights and parameters: constraints, seeds, lists and groups of columns, output paths."""

from __future__ import annotations

import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_non_negative

from .errors import ParameterError, warn
from .survival import Survival

Columns = NDArray[np.int32]
Names: TypeAlias = NDArray[Any] | dict[str, int] | None  # column names, or the column number of each name


# ---- constraints


@dataclass(frozen=True)
class Constraint:
    """A set of allowed values, with the words that describe it in an error message."""

    description: str
    allows: Callable[[Any], bool]


PATH = Constraint("the path of a file", lambda value: isinstance(value, str | PathLike))
SHARE = Constraint("a share above 0 and below 1", lambda value: is_finite(value) and 0 < value < 1)


def whole_number(least: int, most: int | None = None) -> Constraint:
    words = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    return Constraint(words, lambda value: is_whole(value, least, np.inf if most is None else most))


def number(*, above: float = -np.inf) -> Constraint:
    words = f"a number above {above:g}" if math.isfinite(above) else "a finite number"
    return Constraint(words, lambda value: is_finite(value) and value > above)


def check_parameters(estimator: Any, constraints: Mapping[str, Iterable[Any]]) -> None:
    """Check the attributes of an estimator by `check_parameter`; ``constraints`` has the alternatives of each."""
    for name, alternatives in constraints.items():
        check_parameter(name, getattr(estimator, name), *alternatives)


def check_parameter(name: str, value: Any, *alternatives: Any) -> None:
    """Refuse a value that is none of the alternatives: constraints, and single values such as None or "auto"."""
    for allowed in alternatives:
        if isinstance(allowed, Constraint):
            is_allowed = allowed.allows(value)
        else:
            is_same_type = isinstance(value, type(allowed)) and isinstance(value, bool) == isinstance(allowed, bool)
            is_allowed = is_same_type and value == allowed  # of the same type, because True == 1
        if is_allowed:
            return
    ordered = sorted(alternatives, key=lambda each: not isinstance(each, Constraint))
    words = [each.description if isinstance(each, Constraint) else repr(each) for each in ordered]
    raise ParameterError(f"{name}={value!r} must be {choice(words)}")


# ---- numbers and seeds


def is_whole(value: Any, least: float = -np.inf, most: float = np.inf) -> bool:
    """Whether the value is an integer from least to most, and not a boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def is_finite(value: Any) -> bool:
    """Whether the value is a finite number, and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def number_of(name: str, value: Any, total: int, what: str, meaning_of_none: str) -> int | None:
    """Number of items that a parameter requests: a whole number, or a share of the total in (0, 1]; None stays None."""
    if value is None:
        return None
    if is_whole(value, 1, total):
        return int(value)
    if isinstance(value, float | np.floating) and 0 < value <= 1:
        return max(1, int(value * total))
    raise ParameterError(
        f"{name}={value!r} with {total} {what}: "
        f"give a number from 1 to {total}, a share in (0, 1], or None for {meaning_of_none}"
    )


def seed_of(random_state: Any, stored: Any) -> int:
    """The seed of a run: by ``random_state``; if that is None, the seed stored with the run, or a new one."""
    if random_state is None:
        return secrets.randbits(32) if stored is None else int(stored)
    if is_whole(random_state, 0, 2**32 - 1):
        return int(random_state)
    return int(random_of(random_state).randint(2**31 - 1))


def random_of(random_state: Any) -> np.random.RandomState:
    """scikit-learn's random generator for ``random_state``."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ParameterError(
            f"random_state={random_state!r} cannot be used: {error}; give a whole number, or None"
        ) from error


# ---- columns


def named_columns(columns: Any, parameter: str, names: Names, n_features: int) -> Columns:
    """Column numbers, ascending, of columns that a parameter lists by name, by number, or as a mask."""
    if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray | set | frozenset):
        raise ParameterError(f"{parameter}={columns!r}: give a list of column names or numbers")
    items = sorted(columns, key=str) if isinstance(columns, set | frozenset) else list(columns)
    if len(items) == n_features and all(isinstance(item, bool | np.bool_) for item in items):
        return np.flatnonzero(items).astype(np.int32)
    by_name = _numbers_by_name(names)
    numbers = [_column_number(item, parameter, by_name, n_features) for item in items]
    if (repeated := _repeated(numbers, by_name)) is not None:
        raise ParameterError(f"{parameter} names column {repeated} twice: name it once")
    return np.array(sorted(numbers), dtype=np.int32)


def discrete_columns(
    discrete_features: Any, n_features: int, names: NDArray[Any] | None, detected: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """Mask of the discrete columns: by True, False, a mask, numbers or names; "auto" means the detected ones."""
    if isinstance(discrete_features, str) and discrete_features == "auto":
        return np.zeros(n_features, dtype=bool) if detected is None else detected
    if isinstance(discrete_features, bool | np.bool_):
        return np.full(n_features, bool(discrete_features))
    try:
        columns = named_columns(discrete_features, "discrete_features", names, n_features)
    except ParameterError:
        raise ParameterError(
            f"discrete_features={discrete_features!r} with {n_features} features: give 'auto', True, False, a mask of "
            f"{n_features} booleans, column numbers from 0 to {n_features - 1}, or, for a frame, column names"
        ) from None
    return np.isin(np.arange(n_features), columns)


def grouped(feature_groups: Any, names: NDArray[Any] | None, n_features: int) -> list[Columns]:
    """Columns of each feature group, from lists of columns, a mapping of names to lists, or a label per feature."""
    if isinstance(feature_groups, Mapping):
        lists = list(feature_groups.values())
    elif isinstance(feature_groups, Sequence | np.ndarray) and not isinstance(feature_groups, str):
        lists = list(feature_groups)
        if lists and not any(isinstance(item, Sequence | np.ndarray) and not isinstance(item, str) for item in lists):
            lists = _columns_by_label(lists, n_features)
    else:
        raise ParameterError(
            f"feature_groups={feature_groups!r}: give lists of columns, a dict of lists, or a label for each feature"
        )
    by_name = _numbers_by_name(names)
    groups = [named_columns(item, "feature_groups", by_name, n_features) for item in lists]
    if any(not len(group) for group in groups):
        raise ParameterError("feature_groups holds an empty group: leave it out")
    if (repeated := _repeated(np.concatenate([np.empty(0, np.int32), *groups]), by_name)) is not None:
        raise ParameterError(f"feature_groups has column {repeated} in two groups: a feature can be in one group only")
    return groups


def _numbers_by_name(names: Names) -> dict[str, int] | None:
    """Number of the first column of each name."""
    if names is None or isinstance(names, dict):
        return names
    return dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))


def _repeated(columns: Any, by_name: dict[str, int] | None) -> Any:
    """The name, or number, of the first column that occurs twice; None if there is none."""
    if len(set(columns)) == len(columns):
        return None
    column = int(np.flatnonzero(np.bincount(columns) > 1)[0])
    return column if by_name is None else next(name for name, number in by_name.items() if number == column)


def _column_number(item: Any, parameter: str, by_name: dict[str, int] | None, n_features: int) -> int:
    if isinstance(item, str):
        if by_name is None:
            raise ParameterError(
                f"{parameter} names the column {item!r}, and X has no names: give numbers, or a data frame"
            )
        if item not in by_name:
            raise ParameterError(f"{parameter} names the column {item!r}, which X does not have")
        return by_name[item]
    if is_whole(item, -n_features, n_features - 1):
        return int(item) % n_features
    raise ParameterError(f"{parameter} holds {item!r}: give names, or numbers from 0 to {n_features - 1}")


def _columns_by_label(labels: list[Any], n_features: int) -> list[list[int]]:
    if len(labels) != n_features:
        raise ParameterError(
            f"feature_groups has {len(labels)} labels for {n_features} features: "
            "give one for each feature, or lists of columns"
        )
    columns: dict[Any, list[int]] = {}
    for column, label in enumerate(labels):
        columns.setdefault(label, []).append(column)
    return list(columns.values())


# ---- paths


def writable_path(
    path: str | PathLike[str],
    formats: Sequence[str] = (),
    refusal: str = "{} has no format that can be written: name it {}",
    error: type[ValueError] = ValueError,
) -> Path:
    """The path, if its ending is one of the formats (if any), its folder exists, and it is not a folder itself."""
    path = Path(path)
    if formats and path.suffix.lower() not in formats:
        raise error(refusal.format(path, choice(formats)))
    if not path.parent.is_dir():
        raise error(f"{path} cannot be written: the folder {path.parent} does not exist")
    if path.is_dir():
        raise error(f"{path} cannot be written: it is a folder")
    return path


@contextmanager
def completed_file(path: Path) -> Iterator[Path]:
    """Yield a new file that replaces ``path`` when it is complete; after an error, an older file is as before."""
    try:
        if (path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK):  # a pipe; only the file
            yield path
            return
        path = path.resolve()  # the file that a link points to
        part = path.with_name(f".{path.stem[:64]}-{os.getpid()}{path.suffix}")
        try:
            yield part
            if path.exists():
                shutil.copymode(path, part)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)
        raise


def choice(items: Sequence[str]) -> str:
    """The items in words: "a, b or c"."""
    return " or ".join(filter(None, (", ".join(items[:-1]), items[-1])))


# ---- labels and weights


def require_finite_target(y: NDArray[Any]) -> None:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        bad = np.flatnonzero(~np.isfinite(y.reshape(len(y), -1)).all(axis=1))
        raise ValueError(
            f"Input y contains NaN or infinity in {len(bad)} rows (first: row {bad[0]}): leave those rows out"
        )


def survival_in(y: Any) -> Survival | None:
    """The survival outcome in y; None for classes and numbers."""
    has_parts = hasattr(y, "columns") or getattr(getattr(y, "dtype", None), "names", None) is not None
    return Survival.of(y) if has_parts else None


def outcome_array(y: Any) -> NDArray[Any]:
    """y as a checked array, with one dimension for one target; a survival outcome as a structured array."""
    if y is None:
        raise ParameterError("y=None: a target is needed")
    if (survival := survival_in(y)) is not None:
        return survival.array
    y = plain_labels(y, several=True)
    return y.ravel() if y.ndim == 2 and y.shape[1] == 1 else y


def plain_labels(y: Any, *, several: bool = False) -> NDArray[Any]:
    """y as an array of one kind; numbers stored as objects become numbers, missing and mixed labels are refused.

    A survival outcome becomes its martingale residuals. With ``several``, y may have several columns of numbers.
    """
    if (survival := survival_in(y)) is not None:
        return survival.residuals()
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1 and several:
        return _several_targets(y)
    if y.ndim == 2 and y.shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {y.shape}: y has {y.shape[1]} columns, and features are "
            "ranked for one target; give one column at a time, such as y[:, 0]"
        )
    if y.dtype.kind != "O":
        require_finite_target(y)
        return y
    missing = np.flatnonzero([_is_missing(label) for label in y.ravel()])
    if len(missing):
        raise ValueError(
            f"Input y contains NaN or None in {len(missing)} rows (first: row {missing[0]}): leave those rows out"
        )
    kinds = {_kind(label) for label in y.ravel()}
    if len(kinds) > 1:
        raise ValueError(
            f"Unknown label type: y holds labels of several kinds ({', '.join(sorted(kinds))}): "
            "give labels of one kind, for example y.astype(str)"
        )
    return np.array(y.tolist()) if kinds == {"number"} else y


def _several_targets(y: NDArray[Any]) -> NDArray[np.float64]:
    try:
        targets = y.astype(np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"y has {y.shape[1]} columns, of which some are not numbers: give numbers, or a column of 0 and 1 for each "
            "label"
        ) from None
    require_finite_target(targets)
    return targets


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        return True


def _kind(label: Any) -> str:
    if isinstance(label, bool | int | float | np.number | np.bool_):
        return "number"
    return "str" if isinstance(label, str) else type(label).__name__


def warn_of_another_order(X: Any, y: Any) -> None:
    """Warn if X and y are pandas objects with the same index in a different order: rows are matched by position."""
    modules = {type(X).__module__.split(".")[0], type(y).__module__.split(".")[0]}
    if modules != {"pandas"} or X.index.equals(y.index):
        return
    try:
        same_rows = X.index.is_unique and X.index.sort_values().equals(y.index.sort_values())
    except TypeError:  # an index of mixed types cannot be sorted
        return
    if same_rows:
        warn(
            "y has the index of X in another order, and rows are matched by position, not by index: "
            "give y.loc[X.index] if they should be matched by index"
        )


def checked_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Weights as an array, or None if there are none; an error if one is negative or all are 0."""
    if sample_weight is None:
        return None
    try:
        values = np.full(n_rows, sample_weight) if np.isscalar(sample_weight) else sample_weight
        weights = check_array(values, dtype=np.float64, ensure_2d=False, copy=True, input_name="sample_weight")
        if weights.shape != (n_rows,):
            raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
        check_non_negative(weights, "`sample_weight`")
        if not weights.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
    except (ValueError, TypeError) as error:
        raise ParameterError(
            f"sample_weight cannot be used: {' '.join(str(error).split())} "
            f"Give a number of 0 or more for each of the {n_rows} rows, not all 0"
        ) from error
    return weights


def checked_groups(groups: Any, n_rows: int, name: str = "groups") -> NDArray[Any] | None:
    """The group of each row as an array, or None if there are none; an error unless each row has one label."""
    if groups is None:
        return None
    remedy = f"give one label for each of the {n_rows} rows"
    try:
        labels = np.asarray(groups)
    except ValueError:  # lists of different lengths
        labels = np.empty((0, 0))
    if labels.ndim != 1:
        shape = f" (shape {labels.shape})" if labels.size else ""
        raise ParameterError(f"{name} has {labels.ndim} dimensions{shape}: {remedy}")
    if len(labels) != n_rows:
        raise ParameterError(f"{name} has inconsistent numbers of samples, {len(labels)}: {remedy}")
    missing = [row for row, label in enumerate(labels) if labels.dtype.kind in "OfmM" and _is_missing(label)]
    if missing:
        raise ParameterError(
            f"{name} has no label (None or NaN) in {len(missing)} rows (first: row {missing[0]}): {remedy}"
        )
    kinds = {_kind(label) for label in labels} if labels.dtype.kind == "O" else set()
    if len(kinds) > 1:
        raise ParameterError(
            f"{name} has labels of several kinds ({', '.join(sorted(kinds))}): {remedy}, all of one kind"
        )
    return labels


def require_two_weighted(y: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
    """Refuse weights that are 0 for all classes, or all values of y, but one."""
    if weights is not None and len(left := np.unique(y[weights > 0])) == 1:
        raise ParameterError(
            f"sample_weight is 0 for all rows but those with y = {left.tolist()[0]!r}: no feature can distinguish them"
        )
