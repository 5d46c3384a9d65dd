"""What the words in the cells of a text mean: numbers, truth values, nothing, or themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .table import pl

MISSING = ("", "na", "n/a", "nan", "null", "none", "?", ".")
NO_LABEL = ("", "na", "n/a", "nan", "?", ".")
WITH_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
WITH_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")


def typed(text: pl.Series, decimal: str = ".") -> pl.Series:
    """Whole numbers, numbers or truth values, if the words are such, else text; null where one is missing."""
    low = text.str.to_lowercase()
    given = text.set(low.is_in(MISSING), None)
    is_long = given.str.contains(r"^\s*[+-]?[0-9]{19,}\s*$").any()  # digits that a float would not keep
    for kind in (pl.Int64,) if is_long else (pl.Int64, pl.Float64):
        numbers = with_points(given, decimal).cast(kind, strict=False)
        if numbers.null_count() == given.null_count():
            return given if _are_codes(given, numbers) else numbers
    if low.filter(given.is_not_null()).is_in(["true", "false"]).all():
        return (low == "true").set(given.is_null(), None).alias(text.name)
    return text.set(low.is_in(NO_LABEL), None)


def with_points(words: pl.Series, decimal: str) -> pl.Series:
    """Numbers as they are parsed; null where one with decimal commas has a point, too."""
    if decimal == ".":
        return words
    pointed = words.str.contains(".", literal=True)
    return words.str.replace_all(",", ".", literal=True).set(pointed, None)


def decimal_of(cells: Iterable[str]) -> str:
    """The decimal mark of these cells: a comma where no number has a point, and they cannot be thousands."""
    cells = list(cells)
    commas = [cell for cell in cells if "," in cell and WITH_COMMA.fullmatch(cell)]
    if not commas or any(map(WITH_POINT.fullmatch, cells)):
        return "."
    may_be_thousands = all(map(THOUSANDS.fullmatch, commas)) and any(cell.strip().isdecimal() for cell in cells)
    return "." if may_be_thousands else ","


def name_rows(text: pl.Series) -> bool:
    """Whether each is a word, no number, and another in every row."""
    low = text.str.strip_chars().str.to_lowercase()
    if len(text) < 2 or low.null_count() or low.is_in(MISSING).any() or text.n_unique() < len(text):
        return False
    numbers = low.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    return not numbers.is_not_null().any()


def _are_codes(given: pl.Series, numbers: pl.Series) -> bool:
    """Whether some of them, as 01234 and 1234, are apart only as words."""
    padded = given.str.contains(r"^[+-]?0[0-9]")
    return bool(padded.any() and numbers.n_unique() < given.n_unique())


def as_float(word: str, decimal: str = ".") -> float | None:
    try:
        return float("nan" if word.lower() in MISSING else word.replace(decimal, "."))
    except ValueError:
        return None
