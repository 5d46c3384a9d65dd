"""Reading of text: separated values, however wide, and ARFF; a row or cell that does not fit is named."""

from __future__ import annotations

import csv
import gzip
import io
import re
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..checks.errors import ForPython, Message, Parameter, Setting
from .table import LONGEST_NUMBER, Progress, Source, TableError, place_of, polars, some
from .words import MISSING, as_float, typed

if TYPE_CHECKING:
    import polars as pl

OTHER_SEPARATORS = (",", ";", "\t")
CHARACTERS_AT_A_TIME = 2**24
QUIET_SECONDS = 1.0  # of reading before progress is shown
LONGEST_LINE = 2**28
ZSTANDARD = b"\x28\xb5\x2f\xfd"
EXACT = 2.0**53  # whole numbers below it are exact as float64
ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.+)""", re.IGNORECASE)


@dataclass(frozen=True)
class Wanted:
    """What is to be kept as text: columns as (asked for, role), all of them, or also rows, by their first cells."""

    columns: Sequence[tuple[str, str]] = ()
    all: bool = False
    by_rows: bool = False
    rows: frozenset[str] = frozenset()

    def places(self, names: list[str]) -> set[int]:
        if self.all:
            return set(range(len(names)))
        return {place_of(asked, names, role) for asked, role in self.columns} | ({0} if self.by_rows else set())


@dataclass(frozen=True, eq=False)
class TextSource(Source):
    """Numbers, NaN where a cell holds none, the columns kept as text, and the first stray cell of each other column."""

    kept: set[int] = field(default_factory=set)
    kept_rows: frozenset[str] = frozenset()
    blocks: list[NDArray[np.float64]] = field(default_factory=list)
    texts: dict[int, list[Any]] = field(default_factory=dict)
    rows: dict[int, list[str]] = field(default_factory=dict)
    strays: dict[int, tuple[int, str]] = field(default_factory=dict)
    whole: NDArray[np.bool_] = field(default_factory=lambda: np.ones(0, bool))

    @property
    def n_rows(self) -> int:
        return sum(map(len, self.blocks))

    def column(self, place: int) -> pl.Series:
        return typed(self._text(place))

    def keys(self, place: int) -> list[str]:
        return self._text(place).to_list()

    def row(self, row: int, places: Sequence[int]) -> pl.Series:
        return typed(polars().Series([self.rows[row][place] for place in places]))

    def matrix(self, places: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> NDArray[Any]:
        _require_numbers(self.strays, self.names, places)
        X = np.empty((self.n_rows, len(places)), order="F")
        start, everything = 0, len(places) == len(self.names)
        for block in self.blocks:
            X[start : start + len(block)] = block if everything else block[:, places]
            start += len(block)
        X = X if rows is None else X[rows]
        return X.astype(np.int64) if self.whole[places].all() else X

    def take(self, cells: pl.Series) -> None:
        """Add whole rows of cells."""
        pl = polars()
        width, first = len(self.names), self.n_rows
        numbers = cells.cast(pl.Float64, strict=False)
        unread = numbers.is_null().arg_true().to_numpy()
        block = numbers.to_numpy().copy()
        for place in self.kept:
            self.texts.setdefault(place, []).append(cells.gather_every(width, place))
        if self.kept_rows:
            for row in self.texts[0][-1].str.strip_chars().is_in(list(self.kept_rows)).arg_true().to_list():
                self.rows[first + row] = cells.slice(row * width, width).str.strip_chars().to_list()
        if len(unread):
            block[unread] = self._second_look(cells.gather(unread), unread)
        self.blocks.append(block.reshape(-1, width))
        self._note_whole(cells)

    def _second_look(self, cells: pl.Series, places: NDArray[Any]) -> NDArray[np.float64]:
        """Numbers among blanks, truth values, and NaN for the rest; a word that does not say "missing" is noted."""
        pl = polars()
        words = cells.str.strip_chars()
        low = words.str.to_lowercase()
        numbers = words.cast(pl.Float64, strict=False).to_numpy().copy()
        numbers[(low == "true").to_numpy()] = 1
        numbers[(low == "false").to_numpy()] = 0
        rows, columns = np.divmod(places, len(self.names))
        rows += self.n_rows
        meant = np.isin(rows, list(self.rows)) | np.isin(columns, list(self.kept))
        stray = np.flatnonzero(np.isnan(numbers) & ~low.is_in(MISSING).to_numpy() & ~meant)
        for at in stray[np.unique(columns[stray], return_index=True)[1]].tolist():
            self.strays.setdefault(int(columns[at]), (int(rows[at]) + 1, words[at]))
        return numbers

    def _note_whole(self, cells: pl.Series) -> None:
        """A column stays whole while no number in it has a fraction, a decimal point or an exponent."""
        block = self.blocks[-1]
        places = np.flatnonzero(self.whole)
        if not len(places):
            return
        values = block if len(places) == block.shape[1] else block[:, places]
        places = places[((values == np.trunc(values)) & (np.abs(values) < EXACT)).all(axis=0)]
        at = (np.arange(len(block))[:, None] * block.shape[1] + places).ravel()
        pointed = cells.gather(at).str.contains(r"\.|[0-9][eE]").to_numpy().reshape(len(block), -1).any(axis=0)
        self.whole[:] = False
        self.whole[places[~pointed]] = True

    def _text(self, place: int) -> pl.Series:
        return polars().concat(self.texts[place]).str.strip_chars().alias(self.names[place])


def text_columns(described: Sequence[str], n_columns: int, first: str) -> TableError:
    """The error for columns that hold more than numbers."""
    is_plain = len(described) == 1 and first.isprintable()
    remedy: Message = (Setting("ignore", [first]),) if is_plain else (Parameter("ignore"), ", for each")
    return TableError(
        f"{len(described):,} of {n_columns:,} columns hold other than numbers: {some(described, str)}; "
        "encode them as numbers or leave them out (",
        *remedy,
        "); ",
        ForPython("they can also be read as categories", "rank can also take them as categories"),
        " (",
        Parameter("categorical"),
        ")",
    )


def read_separated(path: Path, separator: str, wanted: Wanted, progress: Progress | None) -> TextSource:
    """The cells of a text with a header. One column alone is of no use: then its separator may be another one."""
    with _lines(path, progress) as lines:
        header = _quoted(next(lines, "").lstrip("\ufeff"), lines)
        if not header.strip():
            raise TableError(f"{path} is empty" if not header else f"{path} has no header: its first line is blank")
        names = _split(header, separator)
        for other in OTHER_SEPARATORS:
            if len(names) == 1 and other in header:
                names, separator = _split(header, other), other
        first = list(islice((line for line in lines if line.strip()), 2))
        if [len(_split(line, separator)) for line in first] == [len(names) + 1] * 2:
            names = ["", *names]  # R leaves the name of its column of row names out
        source = _source(path, names, wanted)
        _fill(source, chain(first, lines), separator)
    if not wanted.by_rows and _are_data(names, source):
        raise TableError(f"the first line of {path}, {some(names, str)}, holds data, not names: put a header above it")
    return source


def _are_data(names: list[str], source: TextSource) -> bool:
    """Whether names look like one more row: each is a number between those of its column, or a word that occurs there.

    Numbers from 0 or 1 on are names that other programs give.
    """
    if not source.n_rows or names in ([str(place + first) for place in range(len(names))] for first in (0, 1)):
        return False
    low, high = (extreme.reduce([extreme.reduce(block) for block in source.blocks]) for extreme in (np.fmin, np.fmax))
    for place, name in enumerate(names):
        value = as_float(name.strip())
        if value is None or place in source.texts:
            if place not in source.texts or name.strip() not in source.keys(place):
                return False
        elif not low[place] <= value <= high[place]:
            return False
    return True


def _quoted(line: str, lines: Iterator[str]) -> str:
    """A line with those that follow, up to where its quotes are closed."""
    pieces, quotes = [line], line.count('"')
    while quotes % 2 and (more := next(lines, "")):
        pieces.append(more)
        quotes += more.count('"')
    return "".join(pieces)


def read_arff(path: Path, wanted: Wanted, progress: Progress | None) -> Source:
    """The cells of an ARFF file, dense or sparse; names of nominal values stay text.

    Not by scipy.io.arff, which reads no sparse rows, no text attributes and no packed files.
    """
    attributes: list[tuple[str, str]] = []
    with _lines(path, progress) as lines:
        content = (line for line in lines if line.strip() and not line.lstrip().startswith("%"))
        for line in content:
            if line.lower().lstrip().startswith("@data"):
                break
            if line.lower().lstrip().startswith("@attribute"):
                attributes.append(_attribute(path, line.strip()))
        else:
            raise TableError(f"{path} cannot be read as ARFF: it has no line @data")
        first = next(content, "")
        quote = "'" if any("'" in text for text in (first, *(kind for _, kind in attributes))) else '"'
        names = [name for name, _ in attributes]
        if first.lstrip().startswith("{"):
            defaults = [_default(kind) for _, kind in attributes]
            return _sparse_arff(path, names, defaults, chain([first], content), quote, wanted)
        source = _source(path, names, wanted)
        _fill(source, chain([first], content), ",", quote=quote, escape="\\")
    return source


@dataclass(frozen=True, eq=False)
class SparseSource(TextSource):
    """A sparse matrix, and as in a `TextSource` the columns kept as text."""

    X: Any = None

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def matrix(self, places: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> Any:
        _require_numbers(self.strays, self.names, places)
        return self.X[:, places]


def _sparse_arff(
    path: Path, names: list[str], defaults: list[str], lines: Iterator[str], quote: str, wanted: Wanted
) -> SparseSource:
    texts: dict[int, list[str]] = {place: [] for place in wanted.places(names)}
    strays = {place: (1, word) for place, word in enumerate(defaults) if place not in texts and as_float(word) != 0}
    data, indices, ends = [], [], [0]
    for row, line in enumerate(lines, start=1):
        for text, default in ((texts[place], defaults[place]) for place in texts):
            text.append(default)
        body = line.strip().removeprefix("{").removesuffix("}")
        for cell in _split(body, ",", quote=quote, escape="\\") if body.strip() else []:
            at, word = [*cell.split(None, 1), "", ""][:2]
            if not at.isdecimal() or len(at) > LONGEST_NUMBER or int(at) >= len(names):
                raise TableError(f"{path} cannot be read as sparse ARFF: {cell.strip()!r} in data row {row}")
            place, word = int(at), word.strip().strip(quote)
            if place in texts:
                texts[place][-1] = word
                continue
            value = as_float(word)
            if value is None:
                strays.setdefault(place, (row, word))
                continue
            data.append(value)
            indices.append(place)
        ends.append(len(data))
    X = sp.csr_matrix((np.array(data, float), np.array(indices, np.int32), ends), shape=(len(ends) - 1, len(names)))
    X.sort_indices()
    columns = {place: [polars().Series(words, dtype=polars().String)] for place, words in texts.items()}
    return SparseSource(path, names, X=X, texts=columns, strays=strays)


def _attribute(path: Path, line: str) -> tuple[str, str]:
    """The name of an attribute and what is said of its kind."""
    match = ATTRIBUTE.match(line)
    if match is None or match[2].lower().startswith("relational"):
        raise TableError(f"{path} cannot be read as ARFF: {line!r}")
    name = match[1]
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] in "'\"" else name, match[2].strip()


def _default(kind: str) -> str:
    """What a sparse row leaves out: 0, or the first of the values there are."""
    if not kind.startswith("{"):
        return "0"
    words = _split(kind.strip("{}").strip(), ",", quote="'" if "'" in kind else '"', escape="\\")
    return words[0].strip() if words else "?"


def _require_numbers(strays: dict[int, tuple[int, str]], names: Sequence[str], places: NDArray[np.intp]) -> None:
    bad = [place for place in places.tolist() if place in strays]
    if bad:
        cells = [f"{names[place]!r} ({_cell(*strays[place])})" for place in bad]
        raise text_columns(cells, len(places), names[bad[0]])


def _source(path: Path, names: list[str], wanted: Wanted) -> TextSource:
    return TextSource(path, names, kept=wanted.places(names), kept_rows=wanted.rows, whole=np.ones(len(names), bool))


def _fill(
    source: TextSource, lines: Iterator[str], separator: str, *, quote: str = '"', escape: str | None = None
) -> None:
    """Rows by the batch: cut at separators or, from the first quote on, by the rules of quoting."""
    pl = polars()
    blank = f"{separator} \t\r\n"
    at_a_time = 1
    while batch := list(islice(lines, at_a_time)):
        at_a_time = max(1, CHARACTERS_AT_A_TIME // (1 + sum(map(len, batch)) // len(batch)))
        if any(quote in line for line in batch):
            break
        rows = pl.Series([line.rstrip("\r\n") for line in batch if line.strip(blank)], dtype=pl.String)
        cut = rows.str.split(separator)
        _require_width(source, cut.list.len().to_numpy())
        if len(rows):
            source.take(cut.explode())
    rows_in_quotes = _quoted_rows(source, chain(batch, lines), separator, quote, escape)
    filled = (row for row in rows_in_quotes if any(cell.strip() for cell in row))
    while table := list(islice(filled, at_a_time)):
        _require_width(source, np.array([len(row) for row in table]))
        source.take(pl.Series([cell for row in table for cell in row], dtype=pl.String))


def _quoted_rows(
    source: TextSource, lines: Iterator[str], separator: str, quote: str, escape: str | None
) -> Iterator[list[str]]:
    """Rows by the rules of quoting. The last one must not end inside a quote: it would have swallowed rows."""
    taken: list[str] = []
    last = ""

    def noted() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    rules: dict[str, Any] = {"delimiter": separator, "quotechar": quote, "escapechar": escape, "skipinitialspace": True}
    for row in csv.reader(noted(), **rules):
        last = taken[0] if len(taken) == 1 else "".join(taken)
        taken.clear()
        yield row
    try:
        list(csv.reader([last], strict=True, **rules))
    except csv.Error as error:
        if "end of data" in str(error):
            raise TableError(
                f"{source.path}: the quote in the last data row, {last.strip()[:40]!r}, is never closed: close it"
            ) from error


def _require_width(source: TextSource, widths: NDArray[Any]) -> None:
    bad = np.flatnonzero(widths != len(source.names))
    if len(bad):
        row = source.n_rows + int(bad[0]) + 1
        raise TableError(
            f"{source.path}: data row {row:,} has {widths[bad[0]]:,} cells and the header {len(source.names):,}: "
            "mend that row, or put cells that hold the separator in quotes"
        )


def _split(line: str, separator: str, *, quote: str = '"', escape: str | None = None) -> list[str]:
    return next(csv.reader([line], delimiter=separator, quotechar=quote, escapechar=escape), [""])


@contextmanager
def _lines(path: Path, progress: Progress | None) -> Iterator[Iterator[str]]:
    """The lines of a text file, unpacked; a `TableError` where it is no text or damaged."""
    try:
        if path.suffix.lower() == ".zst":
            yield _unpacked_by_polars(path)
            return
        with path.open("rb") as raw:
            packed: Any = gzip.GzipFile(fileobj=raw) if path.suffix.lower() == ".gz" else raw
            encoding = "utf-16" if packed.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            packed.seek(0)
            with io.TextIOWrapper(packed, encoding=encoding, newline="") as text:
                lines = _of_bounded_length(text, path)
                yield _with_progress(lines, raw.tell, path, progress) if progress else lines
    except UnicodeError as error:
        raise TableError(f"{path} is no text in UTF-8 ({_where(error)}): save it as UTF-8") from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise TableError(f"{path} cannot be unpacked ({error}): is the file whole?") from error
    except csv.Error as error:
        raise TableError(f"{path} cannot be read as separated text ({error}): is a quote left open?") from error


def _of_bounded_length(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    """The lines; one that does not end, such as in a file of zeros that was packed, is not read to its end."""
    while line := text.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith(("\n", "\r")):
            raise TableError(f"{path} has a line of more than {LONGEST_LINE:,} characters: is it a table in text?")
        yield line


def _unpacked_by_polars(path: Path) -> Iterator[str]:
    pl = polars()
    with path.open("rb") as file:
        if (start := file.read(4)) and start != ZSTANDARD:
            raise TableError(f"{path} cannot be unpacked (not a zst file): is the file whole?")
    try:
        lines = pl.read_csv(
            path, has_header=False, separator="\x1f", quote_char=None, infer_schema_length=0, glob=False
        )
    except pl.exceptions.NoDataError:
        return iter(())
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        if "utf" in reason.lower():
            raise TableError(f"{path} is no text in UTF-8: save it as UTF-8") from error
        raise TableError(f"{path} cannot be unpacked ({reason}): is the file whole?") from error
    return (f"{line or ''}\n" for line in lines.to_series())


def _with_progress(text: Iterator[str], tell: Callable[[], int], path: Path, progress: Progress) -> Iterator[str]:
    """The lines; ``progress`` is called every so many bytes, if it takes long."""
    size, due, start = path.stat().st_size, CHARACTERS_AT_A_TIME, time.monotonic()
    for line in text:
        if (at := tell()) >= due and time.monotonic() - start >= QUIET_SECONDS:
            progress(f"reading {path.name}: {at / size:.0%}")
            due = at + CHARACTERS_AT_A_TIME
        yield line


def _where(error: UnicodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        near = error.object[max(0, error.start - 12) : error.start + 1]
        return f"byte 0x{error.object[error.start]:02x} after {near[:-1].decode('ascii', 'replace')!r}"
    return str(error)


def _cell(row: int, word: str) -> str:
    shown = word if len(word) <= 20 else f"{word[:19]}…"
    return f"{shown!r} in data row {row:,}"
