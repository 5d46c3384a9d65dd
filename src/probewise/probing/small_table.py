"""Results as small tables of plain text, for somebody at a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SHOWN, LONGEST = 10, 40


def small_table(columns: Mapping[str, Sequence[Any]], first_line: str, most: int = SHOWN) -> str:
    """The first rows of the columns, texts to the left and numbers to the right."""
    n_rows = len(next(iter(columns.values())))
    texts = [[name, *(_cell(value) for value in list(values)[:most])] for name, values in columns.items()]
    is_text = [isinstance(next(iter(values), ""), str) for values in columns.values()]
    widths = [max(map(len, column)) for column in texts]
    lines = [first_line]
    for row in zip(*texts, strict=True):
        cells = zip(row, widths, is_text, strict=True)
        line = "  ".join(text.ljust(width) if left else text.rjust(width) for text, width, left in cells)
        lines.append(line.rstrip())
    return "\n".join([*lines, f"and {n_rows - most:,} more"] if n_rows > most else lines)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
