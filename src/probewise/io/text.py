"""Text tables of any width: separated values, parsed in batches of rows; errors name the row and the cell."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .input_files import CHARACTERS_AT_A_TIME, lines_of
from .table import (
    HEXADECIMAL,
    MISSING,
    NUMBER_WITH_COMMA,
    NUMBER_WITH_POINT,
    Progress,
    Source,
    TableError,
    are_ids,
    as_float,
    column_index,
    first_few,
    guess_decimal,
    pl,
    typed_column,
    with_decimal_point,
)

SAMPLE_LINES, SAMPLE_CHARACTERS = 100, 2**18  # read first, to guess the separator and the decimal mark
MAX_ID_COLUMNS = 8  # columns whose text is kept because they may hold row ids
DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./](\d\d){1,2}\b")
MAX_NAMES_TO_COPY = 8  # columns listed in full in a remedy
SEPARATORS = (",", ";", "\t")
EXACT = 2.0**53  # integers below it are exact as float64


@dataclass(frozen=True)
class TextOptions:
    """Options to read text: the columns, as (name, role), and rows, by name, that stay text; the decimal mark."""

    columns: Sequence[tuple[str, str]] = ()
    all_columns: bool = False
    features_in_rows: bool = False
    rows: frozenset[str] = frozenset()
    decimal: str | None = None

    def text_columns(self, names: list[str]) -> set[int]:
        if self.all_columns:
            return set(range(len(names)))
        first = {0} if self.features_in_rows else set()
        return first | {column_index(name, names, role) for name, role in self.columns}


@dataclass(frozen=True, eq=False)
class TextSource(Source):
    """The cells of a text table as numbers, NaN if a cell is not a number, and the text of some columns and rows."""

    text_columns: set[int] = field(default_factory=set)
    text_row_names: frozenset[str] = frozenset()
    blocks: list[NDArray[np.float64]] = field(default_factory=list)  # rows of numbers
    column_texts: dict[int, list[Any]] = field(default_factory=dict)
    row_texts: dict[int, list[str]] = field(default_factory=dict)
    bad_cells: dict[int, tuple[int, str]] = field(default_factory=dict)  # by column: first row (from 1) and cell
    is_integer: NDArray[np.bool_] = field(default_factory=lambda: np.ones(0, bool))
    possible_ids: list[int] = field(default_factory=list)  # columns that begin with text
    decimal: str = "."
    has_row_names: bool = False  # R's header has no name for the first column, which names the rows

    @property
    def n_rows(self) -> int:
        return sum(map(len, self.blocks))

    def column(self, index: int) -> pl.Series:
        return typed_column(self.text(index), self.decimal)

    def texts(self, index: int) -> list[str]:
        return self.text(index).to_list()

    def text(self, index: int) -> pl.Series:
        return pl.concat(self.column_texts[index]).str.strip_chars().alias(self.names[index])

    def id_columns(self, columns: Sequence[int]) -> list[int]:
        if self.has_row_names and 0 in columns:
            return [0]
        candidates = set(columns) & self.bad_cells.keys()
        return [index for index in self.possible_ids if index in candidates and are_ids(self.text(index))]

    def row(self, row: int, columns: Sequence[int]) -> pl.Series:
        return typed_column(pl.Series([self.row_texts[row][index] for index in columns]), self.decimal)

    def matrix(self, columns: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> NDArray[Any]:
        self.require_numbers(columns)
        X = np.empty((self.n_rows, len(columns)), order="F")
        start, takes_all = 0, len(columns) == len(self.names)
        for block in self.blocks:
            X[start : start + len(block)] = block if takes_all else block[:, columns]
            start += len(block)
        X = X if rows is None else X[rows]
        return X.astype(np.int64) if self.is_integer[columns].all() else X

    def add_rows(self, cells: pl.Series) -> None:
        """Append complete rows, given as one series of cells."""
        width, n_before = len(self.names), self.n_rows
        numbers = with_decimal_point(cells, self.decimal).cast(pl.Float64, strict=False)
        unparsed = numbers.is_null().arg_true().to_numpy()
        block = numbers.to_numpy().copy()
        if not self.blocks and not self.text_row_names:
            self._note_possible_ids(cells.head(width))
        for index in self.text_columns.union(self.possible_ids):
            self.column_texts.setdefault(index, []).append(cells.gather_every(width, index))
        if self.text_row_names:
            for row in self.column_texts[0][-1].str.strip_chars().is_in(list(self.text_row_names)).arg_true().to_list():
                self.row_texts[n_before + row] = cells.slice(row * width, width).str.strip_chars().to_list()
        if len(unparsed):
            block[unparsed] = self._parse_remaining(cells.gather(unparsed), unparsed)
        self.blocks.append(block.reshape(-1, width))
        self._note_integers(cells)

    def _note_possible_ids(self, first_row: pl.Series) -> None:
        lower = first_row.str.strip_chars().str.to_lowercase()
        is_number = with_decimal_point(lower, self.decimal).cast(pl.Float64, strict=False).is_not_null()
        with_text = (~(is_number | lower.is_in(MISSING))).arg_true().to_list()
        if 0 not in with_text and len(lower) and HEXADECIMAL.fullmatch(lower[0] or ""):
            with_text = [0, *with_text]  # an id such as 12345678 looks like a number
        self.possible_ids.extend([index for index in with_text if index not in self.text_columns][:MAX_ID_COLUMNS])

    def _parse_remaining(self, cells: pl.Series, positions: NDArray[Any]) -> NDArray[np.float64]:
        """Numbers surrounded by blanks, booleans, and NaN for the others; a cell that is not missing is recorded."""
        stripped = cells.str.strip_chars()
        lower = stripped.str.to_lowercase()
        numbers = with_decimal_point(stripped, self.decimal).cast(pl.Float64, strict=False).to_numpy().copy()
        numbers[(lower == "true").to_numpy()] = 1
        numbers[(lower == "false").to_numpy()] = 0
        rows, columns = np.divmod(positions, len(self.names))
        rows += self.n_rows
        is_text = np.isin(rows, list(self.row_texts)) | np.isin(columns, list(self.text_columns))
        bad = np.flatnonzero(np.isnan(numbers) & ~lower.is_in(MISSING).to_numpy() & ~is_text)
        for cell in bad[np.unique(columns[bad], return_index=True)[1]].tolist():
            self.bad_cells.setdefault(int(columns[cell]), (int(rows[cell]) + 1, stripped[cell]))
        return numbers

    def _note_integers(self, cells: pl.Series) -> None:
        """Update ``is_integer``: false from the first cell with a fraction, a decimal mark or an exponent."""
        block = self.blocks[-1]
        columns = np.flatnonzero(self.is_integer)
        if not len(columns):
            return
        values = block if len(columns) == block.shape[1] else block[:, columns]
        columns = columns[((values == np.trunc(values)) & (np.abs(values) < EXACT)).all(axis=0)]
        positions = (np.arange(len(block))[:, None] * block.shape[1] + columns).ravel()
        has_mark = cells.gather(positions).str.contains(r"[.,]|[0-9][eE]").to_numpy()
        self.is_integer[:] = False
        self.is_integer[columns[~has_mark.reshape(len(block), -1).any(axis=0)]] = True

    def require_numbers(self, columns: NDArray[np.intp]) -> None:
        bad = [index for index in columns.tolist() if index in self.bad_cells]
        if bad:
            _refuse_other_decimal([self.bad_cells[index] for index in bad], self.decimal)
            cells = [f"{self.names[index]!r} ({_cell_in_words(*self.bad_cells[index])})" for index in bad]
            dates = [self.names[index] for index in bad if DATE.match(self.bad_cells[index][1])]
            raise not_numeric(cells, len(columns), [self.names[index] for index in bad], dates)


def not_numeric(
    described: Sequence[str], n_columns: int, names: Sequence[str], dates: Sequence[str] = ()
) -> TableError:
    """The error for columns that are not numeric, with arguments to copy if the names are few and plain."""
    verb, them = ("is", "it") if len(described) == 1 else ("are", "them")
    others = [name for name in names if name not in dates]
    categories = f"or read {them} as categories (categorical_features={_to_copy(others)})"
    remedy = f"encode {them} as numbers, ignore {them} (ignore={_to_copy(names)}), {categories}"
    if dates:
        remedy = f"ignore {them} (ignore={_to_copy(names)}), or encode dates as numbers of days"
        remedy += f" and read the others as categories (categorical_features={_to_copy(others)})" if others else ""
        remedy += "; probewise.prepare does this for a data frame"
    return TableError(
        f"{len(described):,} of {n_columns:,} columns {verb} not numeric: {first_few(described, str)}; {remedy}"
    )


def _to_copy(names: Sequence[str]) -> str:
    is_plain = len(names) <= MAX_NAMES_TO_COPY and all(name.isprintable() and "," not in name for name in names)
    return repr(list(names)) if is_plain else "[...]"


def _refuse_other_decimal(bad_cells: Sequence[tuple[int, str]], decimal: str) -> None:
    other, pattern = (",", NUMBER_WITH_COMMA) if decimal == "." else (".", NUMBER_WITH_POINT)
    for row, cell in bad_cells:
        if pattern.fullmatch(cell):
            name = "comma" if other == "," else "point"
            raise TableError(
                f"{_cell_in_words(row, cell)} is a number only if the {name} is the decimal mark: use "
                f"decimal={other!r} (probewise convert --decimal {other}), or write all numbers in the same way"
            )


def _cell_in_words(row: int, cell: str) -> str:
    shown = cell if len(cell) <= 20 else f"{cell[:19]}…"
    return f"{shown!r} in data row {row:,}"


def read_separated(path: Path, separator: str, options: TextOptions, progress: Progress | None) -> TextSource:
    """The cells of a text with a header; its separator may differ from that of the file's ending."""
    with lines_of(path, progress) as lines:
        header = _complete_header(next(lines, "").lstrip("\ufeff"), lines)
        if not header.strip():
            raise TableError(f"{path} is empty" if not header else f"{path} has no header: its first line is blank")
        sample = list(_sample(lines))
        filled = [line for line in sample if line.strip()]
        separator = _guess_separator(header, filled, separator)
        names, rows = split(header, separator), list(csv.reader(filled, delimiter=separator))
        has_row_names = [len(row) for row in rows[:2]] == [len(names) + 1] * 2
        if has_row_names:
            names = ["", *names]
        content = chain(sample, lines)
        _require_columns(names, options, (line.split(separator, 1)[0].strip(' "') for line in content))
        source = empty_source(path, names, options, guess_decimal(chain.from_iterable(rows)))
        if has_row_names and not options.features_in_rows:
            source = replace(source, has_row_names=True, text_columns={0, *source.text_columns})
        add_lines(source, content, separator)
    if not options.features_in_rows and _look_like_data(names, source):
        raise TableError(f"the first line of {path}, {first_few(names, str)}, looks like data: add a header above it")
    return source


def _guess_separator(header: str, lines: list[str], usual: str) -> str:
    """The usual separator, or another that splits the header and the first rows into more columns."""
    others = [other for other in SEPARATORS if other != usual and other in header]
    if not others and len(split(header, usual)) == 1 and " " in header and _splits_alike(header, lines, " "):
        return " "  # as R's write.table writes by default
    if len(split(header, usual)) > 1:  # otherwise any separator in the header will do
        others = [other for other in others if other in "".join(lines[:1])]
        others = [other for other in others if _splits_alike(header, lines, other)]
        if not _splits_alike(header, lines, usual):
            return others[0] if others else usual
    return max((usual, *others), key=lambda separator: len(split(header, separator)))


def _splits_alike(header: str, lines: list[str], separator: str) -> bool:
    """Whether the first rows have as many cells as the header, or one more, as in tables written by R."""
    try:
        width, rows = len(split(header, separator)), islice(csv.reader(lines, delimiter=separator), 2)
        return all(len(row) - width in (0, 1) for row in rows)
    except csv.Error:  # a cell that does not end
        return False


def _sample(lines: Iterator[str]) -> Iterator[str]:
    """The first lines, enough to guess the separator and the decimal mark."""
    n_characters = n_rows = 0
    for line in islice(lines, SAMPLE_LINES):
        yield line
        n_characters, n_rows = n_characters + len(line), n_rows + bool(line.strip())
        if n_characters > SAMPLE_CHARACTERS and n_rows > 1:
            return


def _require_columns(names: list[str], options: TextOptions, first_cells: Iterator[str]) -> None:
    """Refuse columns that do not exist before the table is read; a target that is a row gets its own error."""
    for name, role in options.columns:
        try:
            column_index(name, names, role)
        except TableError as error:
            raise target_is_row(name) if role == "target" and name in first_cells else error from None


def target_is_row(target: str) -> TableError:
    return TableError(
        f"the target {target!r} is a row, not a column: the features seem to be in rows (features_in='rows')"
    )


def _look_like_data(names: list[str], source: TextSource) -> bool:
    """Whether the header looks like one more row of data.

    Its texts occur in their columns, and most of its numbers lie within the range of their columns (not all: any row
    may hold an extreme value). Missing cells, and texts above row ids, count neither way. The numbers 0, 1, ... or
    1, 2, ... are names that other programs write.
    """
    if not source.n_rows or names in ([str(index + first) for index in range(len(names))] for first in (0, 1)):
        return False
    low, high = (extreme.reduce([extreme.reduce(block) for block in source.blocks]) for extreme in (np.fmin, np.fmax))
    within_range, has_ids = [], False
    for index, name in enumerate(names):
        cell = name.strip()
        value = as_float(cell, source.decimal)
        if cell.lower() in MISSING or (index in source.column_texts and cell in source.texts(index)):
            continue
        if value is not None:
            within_range.append(low[index] <= value <= high[index])
        elif index in source.column_texts and are_ids(source.text(index)):
            has_ids = True
        else:
            return False
    return 2 * sum(within_range) > len(within_range) if within_range else not has_ids


def _complete_header(line: str, lines: Iterator[str]) -> str:
    """The header with the lines that follow, until its quotes are closed."""
    pieces, n_quotes = [line], line.count('"')
    while n_quotes % 2 and (more := next(lines, "")):
        pieces.append(more)
        n_quotes += more.count('"')
    return "".join(pieces)


def empty_source(path: Path, names: list[str], options: TextOptions, decimal: str = ".") -> TextSource:
    """A source without rows; a note says so if a decimal comma was guessed."""
    is_guessed = options.decimal is None and decimal == ","
    remedy = "use decimal='.' (probewise convert --decimal .) if this is wrong"
    notes = (f"numbers are read with decimal commas (decimal=','); {remedy}",)
    return TextSource(
        path,
        names,
        notes=notes if is_guessed else (),
        text_columns=options.text_columns(names),
        text_row_names=options.rows,
        is_integer=np.ones(len(names), bool),
        decimal=options.decimal or decimal,
    )


def add_lines(
    source: TextSource, lines: Iterator[str], separator: str, *, quote: str = '"', escape: str | None = None
) -> None:
    """Add lines in batches: split at separators, or, from the first quote on, parsed by the rules of quoting."""
    as_series = partial(pl.Series, dtype=pl.String)
    blank, n_lines = f"{separator} \t\r\n", 1
    while batch := list(islice(lines, n_lines)):
        n_lines = max(1, CHARACTERS_AT_A_TIME // (1 + sum(map(len, batch)) // len(batch)))
        if any(quote in line for line in batch):
            break
        rows = as_series([line.rstrip("\r\n") for line in batch if line.strip(blank)])
        cells = rows.str.split(separator)
        _require_width(source, cells.list.len().to_numpy())
        if len(rows):
            source.add_rows(cells.explode())
    quoted_rows = _quoted_rows(source, chain(batch, lines), separator, quote, escape)
    filled = (row for row in quoted_rows if any(cell.strip() for cell in row))
    while table := list(islice(filled, n_lines)):
        _require_width(source, np.array([len(row) for row in table]))
        source.add_rows(as_series([cell for row in table for cell in row]))


def _quoted_rows(
    source: TextSource, lines: Iterator[str], separator: str, quote: str, escape: str | None
) -> Iterator[list[str]]:
    """Rows parsed by the rules of quoting; a quote that is never closed would swallow rows and is refused."""
    current: list[str] = []  # the lines of the current row
    last = ""

    def recorded() -> Iterator[str]:
        for line in lines:
            current.append(line)
            yield line

    rules: dict[str, Any] = {"delimiter": separator, "quotechar": quote, "escapechar": escape, "skipinitialspace": True}
    for row in csv.reader(recorded(), **rules):
        last = current[0] if len(current) == 1 else "".join(current)
        current.clear()
        yield row
    try:
        list(csv.reader([last], strict=True, **rules))
    except csv.Error as error:
        if "end of data" in str(error):
            shown = last.strip()[:40]
            raise TableError(f"{source.path}: close the quote in the last data row, {shown!r}") from error


def _require_width(source: TextSource, widths: NDArray[Any]) -> None:
    bad = np.flatnonzero(widths != len(source.names))
    if len(bad):
        row = source.n_rows + int(bad[0]) + 1
        raise TableError(
            f"{source.path}: data row {row:,} has {widths[bad[0]]:,} cells and the header {len(source.names):,}: "
            "correct the row, or quote cells that contain the separator"
        )


def split(line: str, separator: str, *, quote: str = '"', escape: str | None = None) -> list[str]:
    return next(csv.reader([line], delimiter=separator, quotechar=quote, escapechar=escape), [""])
