"""Parsing of text cells: numbers, booleans, missing values, labels, decimal marks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .table import pl

MISSING = ("", "na", "n/a", "nan", "null", "none", "?", ".")
MISSING_LABELS = ("", "na", "n/a", "nan", "?", ".")  # "none" and "null" may be class labels
NUMBER_WITH_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
NUMBER_WITH_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")


def typed_column(text: pl.Series, decimal: str = ".") -> pl.Series:
    """The column as integers, floats or booleans if all its cells are, else as text; null for a missing value."""
    lower = text.str.to_lowercase()
    values = text.set(lower.is_in(MISSING), None)
    is_long = values.str.contains(r"^\s*[+-]?[0-9]{19,}\s*$").any()  # more digits than a float keeps
    for dtype in (pl.Int64,) if is_long else (pl.Int64, pl.Float64):
        numbers = with_decimal_point(values, decimal).cast(dtype, strict=False)
        if numbers.null_count() == values.null_count():
            return values if _differ_only_as_text(values, numbers) else numbers
    if lower.filter(values.is_not_null()).is_in(["true", "false"]).all():
        return (lower == "true").set(values.is_null(), None).alias(text.name)
    return text.set(lower.is_in(MISSING_LABELS), None)


def with_decimal_point(cells: pl.Series, decimal: str) -> pl.Series:
    """The cells with a point as decimal mark; null if the mark is a comma and a cell has a point as well."""
    if decimal == ".":
        return cells
    has_point = cells.str.contains(".", literal=True)
    return cells.str.replace_all(",", ".", literal=True).set(has_point, None)


def guess_decimal(cells: Iterable[str]) -> str:
    """The decimal mark: a comma if numbers have commas that cannot separate thousands, and none has a point."""
    cells = list(cells)
    commas = [cell for cell in cells if "," in cell and NUMBER_WITH_COMMA.fullmatch(cell)]
    if not commas or any(map(NUMBER_WITH_POINT.fullmatch, cells)):
        return "."
    may_be_thousands = all(map(THOUSANDS.fullmatch, commas)) and any(cell.strip().isdecimal() for cell in cells)
    return "." if may_be_thousands else ","


def are_ids(text: pl.Series) -> bool:
    """Whether the cells are all different, and none is missing or a number."""
    lower = text.str.strip_chars().str.to_lowercase()
    if len(text) < 2 or lower.null_count() or lower.is_in(MISSING).any() or text.n_unique() < len(text):
        return False
    numbers = lower.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    return not numbers.is_not_null().any()


def _differ_only_as_text(values: pl.Series, numbers: pl.Series) -> bool:
    """Whether some cells, such as 01234 and 1234, are the same number but different codes."""
    has_leading_zero = values.str.contains(r"^[+-]?0[0-9]")
    return bool(has_leading_zero.any() and numbers.n_unique() < values.n_unique())


def as_float(cell: str, decimal: str = ".") -> float | None:
    try:
        return float("nan" if cell.lower() in MISSING else cell.replace(decimal, "."))
    except ValueError:
        return None
