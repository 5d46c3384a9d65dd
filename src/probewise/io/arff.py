"""ARFF files, dense or sparse; nominal values stay text.

scipy.io.arff reads neither sparse rows nor text attributes nor compressed files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .input_files import lines_of
from .table import MAX_INDEX_DIGITS, Progress, Source, TableError, as_float, pl
from .text import TextOptions, TextSource, add_lines, empty_source, split

ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.+)""", re.IGNORECASE)


def read_arff(path: Path, options: TextOptions, progress: Progress | None) -> Source:
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
        rows = chain([first], content)
        if first.lstrip().startswith("{"):
            return _read_sparse_rows(path, names, [_default(kind) for _, kind in attributes], rows, quote, options)
        source = empty_source(path, names, options)
        add_lines(source, rows, ",", quote=quote, escape="\\")
    return source


def _attribute(path: Path, line: str) -> tuple[str, str]:
    """Name and type of an attribute."""
    match = ATTRIBUTE.match(line)
    if match is None or match[2].lower().startswith("relational"):
        raise TableError(f"{path} cannot be read as ARFF: {line!r}")
    name = match[1]
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] in "'\"" else name, match[2].strip()


def _default(kind: str) -> str:
    """The value that a sparse row omits: 0, or the first nominal value."""
    if not kind.startswith("{"):
        return "0"
    values = split(kind.strip("{}").strip(), ",", quote="'" if "'" in kind else '"', escape="\\")
    return values[0].strip() if values else "?"


@dataclass(frozen=True, eq=False)
class SparseTextSource(TextSource):
    """A sparse matrix, and the text of some columns."""

    X: Any = None

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def matrix(self, columns: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> Any:
        self.require_numbers(columns)
        return self.X[:, columns]


def _read_sparse_rows(
    path: Path, names: list[str], defaults: list[str], lines: Iterator[str], quote: str, options: TextOptions
) -> SparseTextSource:
    texts: dict[int, list[str]] = {column: [] for column in options.text_columns(names)}
    # A numeric column whose omitted value is not 0 cannot be read as sparse.
    bad_cells = {c: (1, default) for c, default in enumerate(defaults) if c not in texts and as_float(default) != 0}
    data, indices, ends = [], [], [0]
    for row, line in enumerate(lines, start=1):
        for column, text in texts.items():
            text.append(defaults[column])
        body = line.strip().removeprefix("{").removesuffix("}")
        for cell in split(body, ",", quote=quote, escape="\\") if body.strip() else []:
            index, value = [*cell.split(None, 1), "", ""][:2]
            if not index.isdecimal() or len(index) > MAX_INDEX_DIGITS or int(index) >= len(names):
                raise TableError(f"{path} cannot be read as sparse ARFF: {cell.strip()!r} in data row {row}")
            column, value = int(index), value.strip().strip(quote)
            if column in texts:
                texts[column][-1] = value
            elif (number := as_float(value)) is None:
                bad_cells.setdefault(column, (row, value))
            else:
                data.append(number)
                indices.append(column)
        ends.append(len(data))
    X = sp.csr_matrix((np.array(data, float), np.array(indices, np.int32), ends), shape=(len(ends) - 1, len(names)))
    X.sort_indices()
    column_texts = {column: [pl.Series(values, dtype=pl.String)] for column, values in texts.items()}
    return SparseTextSource(path, names, X=X, column_texts=column_texts, bad_cells=bad_cells)
