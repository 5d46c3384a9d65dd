"""Reading of text: separated values, however wide, and ARFF; a row or cell that does not fit is named."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..validation.errors import ForPython, Message, Parameter, Setting
from .parse_cells import MISSING, WITH_COMMA, WITH_POINT, as_float, decimal_of, name_rows, typed, with_points
from .table import LONGEST_NUMBER, Progress, Source, TableError, pl, place_of, some
from .unpacking import CHARACTERS_AT_A_TIME, lines_of

LOOKED_AT, CHARACTERS_LOOKED_AT = 100, 2**18  # lines, to see what decimals look like
MOST_WORDY = 8
COMMAS_READ: Message = (
    "numbers are read with decimal commas (",
    Setting("decimal", ","),
    "); ",
    Setting("decimal", "."),
    " if they are none",
)
OTHER_SEPARATORS = (",", ";", "\t")
EXACT = 2.0**53  # whole numbers below it are exact as float64
ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.+)""", re.IGNORECASE)


@dataclass(frozen=True)
class Wanted:
    """What is to be kept as text: columns as (asked for, role), all of them, or also rows, by their first cells."""

    columns: Sequence[tuple[str, str]] = ()
    all: bool = False
    by_rows: bool = False
    rows: frozenset[str] = frozenset()
    decimal: str | None = None

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
    wordy: list[int] = field(default_factory=list)  # columns that begin with a word, of which the text is kept, too
    decimal: str = "."

    @property
    def n_rows(self) -> int:
        return sum(map(len, self.blocks))

    def column(self, place: int) -> pl.Series:
        return typed(self.text(place), self.decimal)

    def keys(self, place: int) -> list[str]:
        return self.text(place).to_list()

    def naming(self, places: Sequence[int]) -> list[int]:
        among = set(places) & self.strays.keys()
        return [place for place in self.wordy if place in among and name_rows(self.text(place))]

    def row(self, row: int, places: Sequence[int]) -> pl.Series:
        return typed(pl.Series([self.rows[row][place] for place in places]), self.decimal)

    def matrix(self, places: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> NDArray[Any]:
        self._require_numbers(places)
        X = np.empty((self.n_rows, len(places)), order="F")
        start, everything = 0, len(places) == len(self.names)
        for block in self.blocks:
            X[start : start + len(block)] = block if everything else block[:, places]
            start += len(block)
        X = X if rows is None else X[rows]
        return X.astype(np.int64) if self.whole[places].all() else X

    def take(self, cells: pl.Series) -> None:
        """Add whole rows of cells."""
        width, first = len(self.names), self.n_rows
        numbers = with_points(cells, self.decimal).cast(pl.Float64, strict=False)
        unread = numbers.is_null().arg_true().to_numpy()
        block = numbers.to_numpy().copy()
        if not self.blocks and not self.kept_rows:
            self._note_words(cells.head(width))
        for place in self.kept.union(self.wordy):
            self.texts.setdefault(place, []).append(cells.gather_every(width, place))
        if self.kept_rows:
            for row in self.texts[0][-1].str.strip_chars().is_in(list(self.kept_rows)).arg_true().to_list():
                self.rows[first + row] = cells.slice(row * width, width).str.strip_chars().to_list()
        if len(unread):
            block[unread] = self._second_look(cells.gather(unread), unread)
        self.blocks.append(block.reshape(-1, width))
        self._note_whole(cells)

    def _note_words(self, row: pl.Series) -> None:
        low = row.str.strip_chars().str.to_lowercase()
        known = with_points(low, self.decimal).cast(pl.Float64, strict=False).is_not_null() | low.is_in(MISSING)
        wordy = (~known).arg_true().to_list()
        self.wordy.extend([place for place in wordy if place not in self.kept][:MOST_WORDY])

    def _second_look(self, cells: pl.Series, places: NDArray[Any]) -> NDArray[np.float64]:
        """Numbers among blanks, truth values, and NaN for the rest; a word that does not say "missing" is noted."""
        words = cells.str.strip_chars()
        low = words.str.to_lowercase()
        numbers = with_points(words, self.decimal).cast(pl.Float64, strict=False).to_numpy().copy()
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
        """A column stays whole while no number in it has a fraction, a decimal mark or an exponent."""
        block = self.blocks[-1]
        places = np.flatnonzero(self.whole)
        if not len(places):
            return
        values = block if len(places) == block.shape[1] else block[:, places]
        places = places[((values == np.trunc(values)) & (np.abs(values) < EXACT)).all(axis=0)]
        at = (np.arange(len(block))[:, None] * block.shape[1] + places).ravel()
        pointed = cells.gather(at).str.contains(r"[.,]|[0-9][eE]").to_numpy().reshape(len(block), -1).any(axis=0)
        self.whole[:] = False
        self.whole[places[~pointed]] = True

    def _require_numbers(self, places: NDArray[np.intp]) -> None:
        bad = [place for place in places.tolist() if place in self.strays]
        if bad:
            _require_decimal([self.strays[place] for place in bad], self.decimal)
            cells = [f"{self.names[place]!r} ({_cell(*self.strays[place])})" for place in bad]
            raise text_columns(cells, len(places), [self.names[place] for place in bad])

    def text(self, place: int) -> pl.Series:
        return pl.concat(self.texts[place]).str.strip_chars().alias(self.names[place])


def text_columns(described: Sequence[str], n_columns: int, names: Sequence[str]) -> TableError:
    """The error for columns that hold more than numbers, with the settings to copy where these are few and plain."""
    is_plain = len(names) <= MOST_WORDY and all(name.isprintable() and "," not in name for name in names)
    remedies = [Setting(each, list(names)) if is_plain else Parameter(each) for each in ("ignore", "categorical")]
    return TableError(
        f"{len(described):,} of {n_columns:,} columns hold other than numbers: {some(described, str)}; "
        "encode them as numbers or leave them out (",
        remedies[0],
        "" if is_plain else ", for each",
        "); ",
        ForPython("they can also be read as categories", "rank can also take them as categories"),
        " (",
        remedies[1],
        ")",
    )


def read_separated(path: Path, separator: str, wanted: Wanted, progress: Progress | None) -> TextSource:
    """The cells of a text with a header; the separator may be another one than the ending of the file says."""
    with lines_of(path, progress) as lines:
        header = _quoted(next(lines, "").lstrip("\ufeff"), lines)
        if not header.strip():
            raise TableError(f"{path} is empty" if not header else f"{path} has no header: its first line is blank")
        first = list(_some_lines(lines))
        filled = [line for line in first if line.strip()]
        separator = _separator_of(header, filled, separator)
        names, rows = split(header, separator), list(csv.reader(filled, delimiter=separator))
        if [len(row) for row in rows[:2]] == [len(names) + 1] * 2:
            names = ["", *names]  # R leaves the name of its column of row names out
        content = chain(first, lines)
        _require_target(names, wanted, (line.split(separator, 1)[0].strip(' "') for line in content))
        source = text_source(path, names, wanted, decimal_of(chain.from_iterable(rows)))
        fill(source, content, separator)
    if not wanted.by_rows and _are_data(names, source):
        raise TableError(f"the first line of {path}, {some(names, str)}, holds data, not names: put a header above it")
    return source


def _separator_of(header: str, lines: list[str], usual: str) -> str:
    """The usual separator, or another one that cuts the header and the rows below it into more columns, alike."""
    others = [other for other in OTHER_SEPARATORS if other != usual and other in header]
    if len(split(header, usual)) > 1:  # else it may be any that the header holds
        others = [other for other in others if other in "".join(lines[:1])]
        others = [other for other in others if _cut_alike(header, lines, other)]
        if not _cut_alike(header, lines, usual):
            return others[0] if others else usual
    return max((usual, *others), key=lambda separator: len(split(header, separator)))


def _cut_alike(header: str, lines: list[str], separator: str) -> bool:
    """Whether the first rows have as many cells as the header, or one more, as where R leaves out a name."""
    try:
        width, rows = len(split(header, separator)), islice(csv.reader(lines, delimiter=separator), 2)
        return all(len(row) - width in (0, 1) for row in rows)
    except csv.Error:  # a cell without end
        return False


def _some_lines(lines: Iterator[str]) -> Iterator[str]:
    """Enough of them to see what decimals look like."""
    length = n_rows = 0
    for line in islice(lines, LOOKED_AT):
        yield line
        length, n_rows = length + len(line), n_rows + bool(line.strip())
        if length > CHARACTERS_LOOKED_AT and n_rows > 1:
            return


def _require_target(names: list[str], wanted: Wanted, firsts: Iterator[str]) -> None:
    """Refuse a target that is no column; where it is a row, say so, before the table is read."""
    for asked, role in wanted.columns:
        try:
            place_of(asked, names, role)
        except TableError as error:
            raise in_rows(asked) if role == "target" and asked in firsts else error from None


def in_rows(target: str) -> TableError:
    """The error for a table that lies the other way round."""
    return TableError(
        f"there is no target column {target!r}, but a row: the features seem to be in rows (",
        Setting("features_in", "rows"),
        ")",
    )


def _are_data(names: list[str], source: TextSource) -> bool:
    """Whether names look like one more row: words that occur in their columns, numbers mostly between those of theirs.

    Not all of them: any row has extremes of its own. A word above words that all differ, and nothing, tell neither way.
    Numbers from 0 or 1 on are names that other programs give.
    """
    if not source.n_rows or names in ([str(place + first) for place in range(len(names))] for first in (0, 1)):
        return False
    low, high = (extreme.reduce([extreme.reduce(block) for block in source.blocks]) for extreme in (np.fmin, np.fmax))
    between, names_rows = [], False
    for place, name in enumerate(names):
        word = name.strip()
        value = as_float(word, source.decimal)
        if word.lower() in MISSING or (place in source.texts and word in source.keys(place)):
            continue
        if value is not None:
            between.append(low[place] <= value <= high[place])
        elif place in source.texts and name_rows(source.text(place)):
            names_rows = True
        else:
            return False
    return 2 * sum(between) > len(between) if between else not names_rows


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
    with lines_of(path, progress) as lines:
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
        source = text_source(path, names, wanted)
        fill(source, chain([first], content), ",", quote=quote, escape="\\")
    return source


@dataclass(frozen=True, eq=False)
class SparseSource(TextSource):
    """A sparse matrix, and as in a `TextSource` the columns kept as text."""

    X: Any = None

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def matrix(self, places: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> Any:
        self._require_numbers(places)
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
        for cell in split(body, ",", quote=quote, escape="\\") if body.strip() else []:
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
    columns = {place: [pl.Series(words, dtype=pl.String)] for place, words in texts.items()}
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
    words = split(kind.strip("{}").strip(), ",", quote="'" if "'" in kind else '"', escape="\\")
    return words[0].strip() if words else "?"


def _require_decimal(strays: Sequence[tuple[int, str]], decimal: str) -> None:
    other, form = (",", WITH_COMMA) if decimal == "." else (".", WITH_POINT)
    for row, word in strays:
        if form.fullmatch(word):
            name = "comma" if other == "," else "point"
            raise TableError(
                f"{_cell(row, word)} is a number only if its {name} is the decimal mark: say so (",
                Setting("decimal", other),
                "), or write numbers one way",
            )


def text_source(path: Path, names: list[str], wanted: Wanted, decimal: str = ".") -> TextSource:
    """With nothing in it yet; a decimal comma that was not asked for is noted."""
    kept, whole = wanted.places(names), np.ones(len(names), bool)
    notes = (COMMAS_READ,) if wanted.decimal is None and decimal == "," else ()
    decimal = wanted.decimal or decimal
    return TextSource(path, names, notes=notes, kept=kept, kept_rows=wanted.rows, whole=whole, decimal=decimal)


def fill(
    source: TextSource, lines: Iterator[str], separator: str, *, quote: str = '"', escape: str | None = None
) -> None:
    """Rows by the batch: cut at separators or, from the first quote on, by the rules of quoting."""
    words = partial(pl.Series, dtype=pl.String)
    blank, at_a_time = f"{separator} \t\r\n", 1
    while batch := list(islice(lines, at_a_time)):
        at_a_time = max(1, CHARACTERS_AT_A_TIME // (1 + sum(map(len, batch)) // len(batch)))
        if any(quote in line for line in batch):
            break
        rows = words([line.rstrip("\r\n") for line in batch if line.strip(blank)])
        cut = rows.str.split(separator)
        _require_width(source, cut.list.len().to_numpy())
        if len(rows):
            source.take(cut.explode())
    rows_in_quotes = _quoted_rows(source, chain(batch, lines), separator, quote, escape)
    filled = (row for row in rows_in_quotes if any(cell.strip() for cell in row))
    while table := list(islice(filled, at_a_time)):
        _require_width(source, np.array([len(row) for row in table]))
        source.take(words([cell for row in table for cell in row]))


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


def split(line: str, separator: str, *, quote: str = '"', escape: str | None = None) -> list[str]:
    return next(csv.reader([line], delimiter=separator, quotechar=quote, escapechar=escape), [""])


def _cell(row: int, word: str) -> str:
    shown = word if len(word) <= 20 else f"{word[:19]}…"
    return f"{shown!r} in data row {row:,}"
