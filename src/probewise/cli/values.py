"""What single values of options mean; a `ValueError` says what is wrong with one."""

from __future__ import annotations

import re
from pathlib import Path

SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)")


def above_zero(value: float) -> float:
    if not value > 0:
        raise ValueError(f"{value:g} is not above 0.")
    return value


def seconds_in(text: str) -> float:
    """A number of seconds, or lengths of time, one after the other, as 1h30m."""
    text = text.strip().lower()
    if re.fullmatch(rf"(?:{LENGTH.pattern}\s*)+", text):
        return above_zero(sum(float(number) * SECONDS[unit] for number, unit in LENGTH.findall(text)))
    try:
        return above_zero(float(text))
    except ValueError as error:
        if "above" in str(error):
            raise
        raise ValueError(f"{text!r} is no length of time: write seconds, or as 90s, 5m, 1h30m") from None


def local_path(text: str) -> Path:
    from ..io.unpacking import local_path

    return local_path(text)
