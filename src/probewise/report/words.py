"""Numbers and names as a reader wants them."""

from __future__ import annotations

import math
from typing import Any


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def quoted(name: str, longest: int = 60) -> str:
    """The name on one line, cut short."""
    name = " ".join(name.split()) or "(blank)"
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def decimals_of(columns: dict[str, list[Any]]) -> int:
    """Decimals that show two digits of the usual standard error, or four of the largest score."""
    errors = sorted(error for error in columns.get("std_error", ()) if error)
    if errors:
        digits = 1 - math.floor(math.log10(errors[len(errors) // 2]))
    else:
        largest = max((abs(score) for score in columns["score"] if score), default=1.0)
        digits = 3 - math.floor(math.log10(largest))
    return min(max(digits, 2), 10)


def number(value: float | None, decimals: int = 3) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.{decimals}f}".replace("-", "−")


def count(amount: int, noun: str) -> str:
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def span(seconds: float) -> str:
    """A length of time in words."""
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def p_value(p: float | None) -> str:
    return "–" if p is None else "below 0.001" if p < 0.001 else f"{p:.3f}"


def evidence(kinds: list[str]) -> str:
    """What says that features stand in for one another."""
    words = {"probes": "by the probes", "columns": "by the columns", "both": "by the probes and the columns"}
    return words[kinds[0] if len(set(kinds)) == 1 else "both"]
