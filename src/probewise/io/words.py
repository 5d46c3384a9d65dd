"""What the words in the cells of a text mean: numbers, truth values, nothing, or themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .table import polars

if TYPE_CHECKING:
    import polars as pl

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
NO_LABEL = ("", "na", "n/a", "nan", "?")


def typed(text: pl.Series) -> pl.Series:
    """Whole numbers, numbers or truth values, if the words are such, else text; null where one is missing."""
    pl = polars()
    low = text.str.to_lowercase()
    given = text.set(low.is_in(MISSING), None)
    is_long = given.str.contains(r"^\s*[+-]?[0-9]{19,}\s*$").any()  # digits that a float would not keep
    for kind in (pl.Int64,) if is_long else (pl.Int64, pl.Float64):
        numbers = given.cast(kind, strict=False)
        if numbers.null_count() == given.null_count():
            return given if _are_codes(given, numbers) else numbers
    if low.filter(given.is_not_null()).is_in(["true", "false"]).all():
        return (low == "true").set(given.is_null(), None).alias(text.name)
    return text.set(low.is_in(NO_LABEL), None)


def _are_codes(given: pl.Series, numbers: pl.Series) -> bool:
    """Whether some of them, as 01234 and 1234, are apart only as words."""
    padded = given.str.contains(r"^[+-]?0[0-9]")
    return bool(padded.any() and numbers.n_unique() < given.n_unique())


def as_float(word: str) -> float | None:
    try:
        return float("nan" if word.lower() in MISSING else word)
    except ValueError:
        return None
