"""Reading of Excel files: the first sheet, its cells as text."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from .table import Message, TableError, first_line, pl, require_memory
from .text import TextSource, Wanted, text_source
from .words import decimal_of

ROWS_LOOKED_AT = 10
CELLS_AT_A_TIME = 2**21


def read_excel(path: Path, wanted: Wanted) -> TextSource:
    """The cells of the first sheet; its first row holds the names."""
    frame, notes = _first_sheet(path)
    if frame.is_empty():
        raise TableError(f"{path} is empty")
    names = [(name or "").strip() for name in frame.row(0)]
    rows = frame[1:].filter(~pl.all_horizontal(pl.all().is_null()))
    looked_at = [cell or "" for row in rows.head(ROWS_LOOKED_AT).rows() for cell in row]
    source = text_source(path, names, wanted, decimal_of(looked_at))
    for part in rows.iter_slices(max(1, CELLS_AT_A_TIME // len(names))):
        cells = part.fill_null("").to_numpy().ravel()
        source.take(pl.Series(cells.tolist(), dtype=pl.String))
    return replace(source, notes=(*notes, *source.notes))


def _first_sheet(path: Path) -> tuple[Any, tuple[Message, ...]]:
    """Without the columns that are empty, and a note where there are other sheets."""
    try:
        import fastexcel  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError:
        raise ImportError(
            f"{path}: reading Excel needs fastexcel, of the excel extra: pip install 'probewise[excel]'"
        ) from None
    try:
        with zipfile.ZipFile(path) as packed:
            require_memory(path, sum(member.file_size for member in packed.infolist()))
        book = fastexcel.read_excel(path)
        frame = book.load_sheet(0, header_row=None, dtypes="string").to_polars()
    except (zipfile.BadZipFile, fastexcel.FastExcelError, OSError) as error:
        raise TableError(f"{path} cannot be read as Excel: {first_line(error)}") from error
    notes: tuple[Message, ...] = ()
    if len(book.sheet_names) > 1:
        notes = ((f"{path} has {len(book.sheet_names)} sheets: the first, {book.sheet_names[0]!r}, is read",),)
    return frame[[column.name for column in frame if column.null_count() < len(column)]], notes
