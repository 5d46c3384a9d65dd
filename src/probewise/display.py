"""Plain text for people: small tables, shortened names and lengths of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MAX_TABLE_ROWS = 10
MAX_LENGTH = 40  # of a name or a cell


def small_table(columns: Mapping[str, Sequence[Any]], title: str, max_rows: int = MAX_TABLE_ROWS) -> str:
    """The title and the first rows of the columns, with text aligned to the left and numbers to the right."""
    n_rows = len(next(iter(columns.values())))
    texts = [[name, *(_cell(value) for value in list(values)[:max_rows])] for name, values in columns.items()]
    is_text = [isinstance(next(iter(values), ""), str) for values in columns.values()]
    widths = [max(map(len, column)) for column in texts]
    lines = [title]
    for row in zip(*texts, strict=True):
        cells = zip(row, widths, is_text, strict=True)
        line = "  ".join(text.ljust(width) if left else text.rjust(width) for text, width, left in cells)
        lines.append(line.rstrip())
    return "\n".join([*lines, f"and {n_rows - max_rows:,} more"] if n_rows > max_rows else lines)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return shortened(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def shortened(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"


def shown(name: str) -> str:
    """The name, shortened, with unprintable characters escaped."""
    return plain(shortened(name))


def plain(text: str) -> str:
    """The text with escapes in place of characters that cannot be printed."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def span(seconds: float) -> str:
    """A length of time in words."""
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
