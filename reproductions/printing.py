"""Terminal tables of a reproduction: published numbers beside ours, then the claims."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .base import Outcome

NARROWEST = 64


def console() -> Console:
    """Standard output; a file or a pipe gets lines of any length."""
    screen = Console()
    screen.width = max(screen.width, NARROWEST) if screen.is_terminal else sys.maxsize
    return screen


def print_outcome(outcome: Outcome) -> None:
    """Print every table that has published numbers, split where the terminal is too narrow, then the claims."""
    screen = console()
    with_published = {cell.where for cell in outcome.cells if cell.published is not None}
    for table in outcome.tables():
        if table.where not in with_published:
            continue
        widest = max(map(len, [*table.columns, *(text for texts in table.rows.values() for text in texts)]))
        room = screen.width - max(map(len, [table.where, *table.rows])) - 4
        n_columns = max(1, room // (widest + 2))
        for start in range(0, len(table.columns), n_columns):
            part = slice(start, start + n_columns)
            rows = [[row, *texts[part]] for row, texts in table.rows.items()]
            screen.print(_drawn([table.where, *table.columns[part]], rows))
    lines = ["Published / ours. Numbers without a published counterpart are in results.csv."]
    for line in [*lines, *(f"{claim.text}: {claim.verdict} ({claim.ours})" for claim in outcome.claims)]:
        screen.print(line, highlight=False, markup=False, emoji=False)


def _drawn(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(header[0], overflow="fold")
    for title in header[1:]:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table
