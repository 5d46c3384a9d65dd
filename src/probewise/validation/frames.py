"""Columns of a raw data frame: dates to days, text to categories; ids, groups of rows and free text are left out."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .contents import GROUP_NAME, ID_NAME
from .errors import ParameterError, warn
from .tables import CATEGORIES, is_frame, kinds_of_columns, require_distinct_names

MAX_LEVELS, ROWS_PER_LEVEL = 20, 2  # of text that is a category
LONGEST_LIST = 8
DECISIONS = {
    "date": "dates, now days since the first one",
    "category": "text, now categories",
    "id": "ids, left out",
    "group": "groups of rows, left out (give one of them to fit as groups)",
    "text": "free text, left out (count its words, for example with CountVectorizer)",
    "empty": "constant or empty, left out",
    "missing": "with missing values, kept: fit fills them with the median, and a missing category is a level",
}


def prepare(frame: Any) -> Any:
    """A frame that every selector can use, made of a raw frame of features; one warning lists all decisions.

    Dates and times become days since the first one. Text with at most 20 values, each on two rows or more on average,
    becomes a category, and text that holds numbers becomes numbers. Left out are ids (text with a different value in
    every row, or whole numbers in a column with such a name), groups of rows such as ``patient_id``, free text, and
    columns that are constant or empty. Missing values stay, because `Tournament` and `DAF` fill them.

    Parameters
    ----------
    frame : pandas or polars data frame
        The features, without the target.

    Returns
    -------
    data frame
        A frame of the same library with the same rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from probewise import prepare
    >>> raw = pd.DataFrame({"dose": ["1", "2", "2", "4"], "level": [0, 1, 1, 0]})
    >>> prepare(raw).to_numpy().tolist()
    [[1.0, 0.0], [2.0, 1.0], [2.0, 1.0], [4.0, 0.0]]
    """
    if not is_frame(frame):
        raise ParameterError(f"frame is of type {type(frame).__name__}: give a data frame of pandas or polars")
    require_distinct_names(frame)
    columns: dict[Any, Any] = {}
    decisions: dict[str, list[str]] = {name: [] for name in DECISIONS}
    kinds: Any = kinds_of_columns(frame)
    for name, kind in zip(frame.columns, kinds, strict=True):
        column, decision, is_missing = _prepared(frame[name], str(name), kind)
        if decision is not None:
            decisions[decision].append(str(name))
        if column is not None:
            columns[name] = column
            decisions["missing"] += [str(name)] if is_missing else []
    sentences = [f"{_listed(names)}: {DECISIONS[decision]}" for decision, names in decisions.items() if names]
    if sentences:
        warn("decisions to check. " + "; ".join(sentences))
    if not columns:
        raise ParameterError("no column of the frame is a feature: see the warning for the reasons")
    if hasattr(frame, "iloc"):
        return type(frame)(columns, index=frame.index)
    return type(frame)(columns)


def _prepared(column: Any, name: str, kind: str) -> tuple[Any, str | None, bool]:
    """The column to keep, or None; the decision about it, or None; and whether values are missing."""
    is_pandas = hasattr(column, "iloc")
    is_missing = np.asarray(column.isna() if is_pandas else column.is_null())
    values = column.astype(object).to_numpy() if is_pandas else np.array([*column.to_list(), None], dtype=object)[:-1]
    known = values[~is_missing]
    n_values = len({str(value) for value in known})
    if n_values <= 1:
        return None, "empty", False
    if (days := _days(known, is_missing, kind)) is not None:
        return days, "date", bool(is_missing.any())
    numbers = _numbers(known)
    if numbers is None:
        if n_values <= min(MAX_LEVELS, len(known) // ROWS_PER_LEVEL):
            decision = None if kind in CATEGORIES else "category"
            category = column.astype("category") if is_pandas else column.cast(_library(column).Categorical)
            return category, decision, bool(is_missing.any())
        return None, "id" if n_values == len(known) and not any(" " in str(v) for v in known) else "text", False
    is_whole = bool((numbers == np.round(numbers)).all())
    if is_whole and n_values > 2 and (GROUP_NAME.search(name) or ID_NAME.search(name)):
        return None, "id" if n_values == len(known) else "group", False
    filled = np.full(len(is_missing), np.nan)
    filled[~is_missing] = numbers
    return filled, None, bool(is_missing.any())


def _numbers(known: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        return known.astype(np.float64)
    except (ValueError, TypeError):
        return None


def _days(known: NDArray[Any], is_missing: NDArray[np.bool_], kind: str) -> NDArray[np.float64] | None:
    """Days since the first value of dates, times and text such as 2024-01-31; None for other columns."""
    is_text = all(isinstance(value, str) and len(value) >= 10 and value[4:5] == value[7:8] == "-" for value in known)
    if not is_text and not kind.lower().startswith(("date", "time", "duration")):
        return None
    unit = "m8[us]" if kind.lower().startswith(("timedelta", "duration")) else "M8[us]"
    plain = [value.removesuffix("Z") if is_text else value for value in known]
    plain = [value.replace(tzinfo=None) if getattr(value, "tzinfo", None) is not None else value for value in plain]
    try:
        times = np.array(plain, dtype=unit)
    except ValueError:  # text such as 2024-99-99, or times of a day
        return None
    days = np.full(len(is_missing), np.nan)
    days[~is_missing] = (times - times.min()) / np.timedelta64(1, "D")
    return days


def _library(column: Any) -> Any:
    return import_module(type(column).__module__.partition(".")[0])


def _listed(names: list[str]) -> str:
    more = f", and {len(names) - LONGEST_LIST:,} more" if len(names) > LONGEST_LIST else ""
    return ", ".join(map(repr, names[:LONGEST_LIST])) + more
