"""Expression matrices with a feature in each row: GCT files and the series matrices of GEO."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from .input_files import STANDARD_INPUT, lines_of
from .table import Progress, TableError, pl
from .text import TextOptions, TextSource, add_lines, empty_source, split

SERIES = "!Series"
TABLE_BEGIN, TABLE_END = "!series_matrix_table_begin", "!series_matrix_table_end"
SAMPLE = "!Sample_"
GCT_DEFAULT_SIZES = (0, 0, 1, 0)  # rows, samples, description columns, annotation rows; version 1.2 states only two
LABELED_VALUE = re.compile(r"([^:]{1,60}):\s*(.*)")  # such as "tissue: liver"


def is_series_matrix(path: Path) -> bool:
    """Whether a text file begins as the series matrices of GEO do."""
    if path == STANDARD_INPUT or path.suffix.lower() == ".zst" or not path.is_file():
        return False
    with suppress(TableError), lines_of(path) as lines:
        return next(lines, "").startswith(SERIES)
    return False


def read_gct(path: Path, options: TextOptions, progress: Progress | None) -> TextSource:
    """The rows of a GCT file; rows that annotate the samples come first."""
    with lines_of(path, progress) as lines:
        version, sizes, header = (next(lines, "").strip("\r\n") for _ in range(3))
        if version.strip() not in ("#1.2", "#1.3"):
            raise TableError(f"{path} cannot be read as GCT: its first line is {version[:20]!r}, not #1.2 or #1.3")
        stated = [int(size) for size in sizes.split("\t") if re.fullmatch(r"\d{1,9}", size.strip())]
        stated = stated[: 2 if version.strip() == "#1.2" else 4]
        n_rows, n_samples, n_descriptions, n_annotations = [*stated, *GCT_DEFAULT_SIZES[len(stated) :]]
        names = split(header, "\t")
        if len(names) != 1 + n_descriptions + n_samples:
            raise TableError(f"{path} claims sizes {sizes.strip()!r}, and its header has {len(names):,} cells")
        annotations = list(islice(lines, n_annotations))
        source = _with_text_rows(path, names, options, [line.split("\t", 1)[0].strip() for line in annotations])
        add_lines(source, chain(annotations, lines), "\t")
    n_read = source.n_rows - n_annotations
    if n_read != n_rows:
        raise TableError(f"{path} claims {n_rows:,} rows and has {n_read:,}: is the file complete?")
    return replace(source, n_annotation_rows=n_annotations, n_description_columns=n_descriptions)


def read_series_matrix(path: Path, options: TextOptions, progress: Progress | None) -> TextSource:
    """The rows of a series matrix; annotations of the samples come first, named as in GEO."""
    with lines_of(path, progress) as lines:
        annotations = list(_annotations(lines))
        names = split(next(lines, "").strip("\r\n"), "\t")
        rows = [[name, *values] for name, values in _renamed(annotations) if len(values) == len(names) - 1]
        source = _with_text_rows(path, names, options, [row[0] for row in rows])
        if rows:
            source.add_rows(pl.Series([cell for row in rows for cell in row], dtype=pl.String))
        add_lines(source, _until_table_end(path, lines), "\t")
    if source.n_rows == len(rows):
        raise TableError(f"{path} contains no values: the values of this study are in its supplementary files")
    return replace(source, n_annotation_rows=len(rows))


def _with_text_rows(path: Path, names: list[str], options: TextOptions, rows: Sequence[str]) -> TextSource:
    return empty_source(path, names, replace(options, rows=options.rows.union(rows)))


def _annotations(lines: Iterator[str]) -> Iterator[tuple[str, list[str]]]:
    """Name and values of each annotation of the samples, up to the beginning of the table."""
    for line in lines:
        if line.lower().startswith(TABLE_BEGIN):
            return
        if line.startswith(SAMPLE):
            name, *values = split(line.strip("\r\n"), "\t")
            yield name.removeprefix(SAMPLE), values


def _renamed(annotations: Sequence[tuple[str, list[str]]]) -> Iterator[tuple[str, list[str]]]:
    """Unique names: values "tissue: liver" become liver under the name tissue; repeated names are numbered."""
    n_seen: dict[str, int] = {}
    for name, values in annotations:
        matches = [LABELED_VALUE.fullmatch(value) for value in values]
        labels = {match[1].strip() for match in matches if match}
        if len(labels) == 1 and all(match or not value for match, value in zip(matches, values, strict=True)):
            name, values = labels.pop(), [match[2] if match else "" for match in matches]
        n_seen[name] = n_seen.get(name, 0) + 1
        yield (name if n_seen[name] == 1 else f"{name} {n_seen[name]}"), values


def _until_table_end(path: Path, lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line.lower().startswith(TABLE_END):
            return
        yield line
    raise TableError(f"{path} ends before {TABLE_END}: is the file complete?")
