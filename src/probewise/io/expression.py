"""Reading of expression matrices, a feature in each row: GCT, and the series matrices of GEO."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from .table import Progress, TableError, pl
from .text import TextSource, Wanted, fill, split, text_source
from .unpacking import STANDARD_INPUT, lines_of

SERIES = "!Series"
BEGIN, END = "!series_matrix_table_begin", "!series_matrix_table_end"
SAMPLE = "!Sample_"
UNSAID = (0, 0, 1, 0)  # a description of each row, and nothing of the samples, in version 1.2
LABELLED = re.compile(r"([^:]{1,60}):\s*(.*)")  # as in "tissue: liver"


def is_series(path: Path) -> bool:
    """Whether a text file begins as series matrices of GEO do."""
    if path == STANDARD_INPUT or path.suffix.lower() == ".zst" or not path.is_file():
        return False
    with suppress(TableError), lines_of(path) as lines:
        return next(lines, "").startswith(SERIES)
    return False


def read_gct(path: Path, wanted: Wanted, progress: Progress | None) -> TextSource:
    """The rows of a GCT file, those that say something of the samples first."""
    with lines_of(path, progress) as lines:
        version, sizes, header = (next(lines, "").strip("\r\n") for _ in range(3))
        if version.strip() not in ("#1.2", "#1.3"):
            raise TableError(f"{path} cannot be read as GCT: its first line is {version[:20]!r}, not #1.2 or #1.3")
        claims = [int(size) for size in sizes.split("\t") if re.fullmatch(r"\d{1,9}", size.strip())]
        claims = claims[: 2 if version.strip() == "#1.2" else 4]
        n_rows, n_samples, n_described, n_annotations = [*claims, *UNSAID[len(claims) :]]
        names = split(header, "\t")
        if len(names) != 1 + n_described + n_samples:
            raise TableError(f"{path} claims sizes {sizes.strip()!r}, and its header has {len(names):,} cells")
        above = list(islice(lines, n_annotations))
        source = _with_rows_as_text(path, names, wanted, [line.split("\t", 1)[0].strip() for line in above])
        fill(source, chain(above, lines), "\t")
    if source.n_rows != n_rows + n_annotations:
        raise TableError(f"{path} claims {n_rows:,} rows and has {source.n_rows - n_annotations:,}: is the file whole?")
    return replace(source, annotations=n_annotations, descriptions=n_described)


def read_series(path: Path, wanted: Wanted, progress: Progress | None) -> TextSource:
    """The rows of a series matrix; what is said of the samples stands above, under the names that GEO gives it."""
    with lines_of(path, progress) as lines:
        said = list(_said_of_samples(lines))
        names = split(next(lines, "").strip("\r\n"), "\t")
        rows = [[name, *values] for name, values in _named(said) if len(values) == len(names) - 1]
        source = _with_rows_as_text(path, names, wanted, [row[0] for row in rows])
        if rows:
            source.take(pl.Series([cell for row in rows for cell in row], dtype=pl.String))
        fill(source, _up_to_the_end(path, lines), "\t")
    if source.n_rows == len(rows):
        raise TableError(f"{path} holds no values: those of this study are in its supplementary files")
    return replace(source, annotations=len(rows))


def _with_rows_as_text(path: Path, names: list[str], wanted: Wanted, rows: Sequence[str]) -> TextSource:
    return text_source(path, names, replace(wanted, rows=wanted.rows.union(rows)))


def _said_of_samples(lines: Iterator[str]) -> Iterator[tuple[str, list[str]]]:
    """Names and values, up to where the table begins."""
    for line in lines:
        if line.lower().startswith(BEGIN):
            return
        if line.startswith(SAMPLE):
            name, *values = split(line.strip("\r\n"), "\t")
            yield name.removeprefix(SAMPLE), values


def _named(said: Sequence[tuple[str, list[str]]]) -> Iterator[tuple[str, list[str]]]:
    """With names of their own: "tissue: liver" is liver, under tissue; those of one name are counted."""
    times: dict[str, int] = {}
    for name, values in said:
        found = [LABELLED.fullmatch(value) for value in values]
        labels = {match[1].strip() for match in found if match}
        if len(labels) == 1 and all(match or not value for match, value in zip(found, values, strict=True)):
            name, values = labels.pop(), [match[2] if match else "" for match in found]
        times[name] = times.get(name, 0) + 1
        yield (name if times[name] == 1 else f"{name} {times[name]}"), values


def _up_to_the_end(path: Path, lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line.lower().startswith(END):
            return
        yield line
    raise TableError(f"{path} ends before {END}: is the file whole?")
