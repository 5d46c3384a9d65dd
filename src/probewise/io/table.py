"""`Table`, the result of reading a file; `Source`, the columns of an open file; and the parsing of text cells."""

from __future__ import annotations

import difflib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..validation.errors import ParameterError
from ..validation.stores import Stored

if TYPE_CHECKING:
    import polars as pl
else:

    class Polars:
        """The module polars, imported on first use."""

        def __getattr__(self, name):
            try:
                return getattr(import_module("polars"), name)
            except ModuleNotFoundError:
                raise ImportError("reading tables needs the cli extra: pip install 'probewise[cli]'") from None

    pl = Polars()

Progress = Callable[[str], None]
N_SHOWN = 3  # items of a list that a message shows
MISSING = ("", "na", "n/a", "nan", "null", "none", "?", ".")
MISSING_LABELS = ("", "na", "n/a", "nan", "?", ".")  # "none" and "null" may be class labels
HEXADECIMAL = re.compile("[0-9a-fA-F]{4,}")  # of ids
NUMBER_WITH_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
NUMBER_WITH_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")
MAX_COLUMNS = 10_000_000
MAX_INDEX_DIGITS = 18  # so that the index fits into 64 bits
MAX_NAME_LENGTH = 256  # a longer name is not looked up as a file


class TableError(ParameterError):
    """Error for a table that cannot be used; the message is one line and says what to do about it."""


@dataclass(frozen=True, eq=False)
class Table:
    """Features, target and names of a table.

    Attributes
    ----------
    X : {ndarray, sparse matrix, memmap} of shape (n_samples, n_features)
        Categorical features are coded as integers, -1 for a missing value.
    y : ndarray of shape (n_samples,)
    feature_names : list of str
    target : str
        Name of the target.
    ids : ndarray of shape (n_samples,) or None
        Names of the rows; ``id_column`` is the name of their column.
    sample_weight, groups : ndarray of shape (n_samples,) or None
        Weights and groups of the rows, if they were requested.
    event : str
        Name of the column of events of a survival outcome, else "".
    adjust : polars.DataFrame or None
        The covariates, if they were requested.
    levels : dict of int to list of str
        Levels of the categorical features, by column of X.
    notes : tuple of str
        Guesses that the reader made, a sentence each.
    """

    X: Any
    y: NDArray[Any]
    feature_names: list[str]
    target: str
    ids: NDArray[Any] | None = None
    id_column: str = "id"
    sample_weight: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None
    event: str = ""
    adjust: Any = None
    levels: dict[int, list[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def frame(self) -> Any:
        """X as a polars frame with column names; it shares memory with X if X is in Fortran order.

        A sparse or mapped X cannot carry names and is returned as it is.
        """
        if sp.issparse(self.X) or isinstance(self.X, np.memmap | Stored):
            return self.X
        return self.with_categories(pl.from_numpy(self.X, schema=self.feature_names, orient="row"))

    def with_categories(self, frame: Any) -> Any:
        """A frame of X with the levels of categorical features in place of their codes."""
        columns = []
        for column, levels in self.levels.items():
            texts = [None if code < 0 else levels[int(code)] for code in self.X[:, column]]
            columns.append(pl.Series(self.feature_names[column], texts, dtype=pl.Enum(levels)))
        return frame.with_columns(columns)

    def take(self, features: Sequence[int] | NDArray[np.intp]) -> Table:
        """The table with only these features, in this order."""
        names = [self.feature_names[feature] for feature in features]
        levels = {new: self.levels[int(old)] for new, old in enumerate(features) if int(old) in self.levels}
        return replace(self, X=self.X[:, features], feature_names=names, levels=levels)


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """The columns of a file: the features first, then ``n_extra`` columns that are not features."""

    path: Path
    names: list[str]
    n_extra: int = 0
    target: str | None = None  # the target that the format declares, as svmlight does
    notes: tuple[str, ...] = ()
    n_annotation_rows: int = 0  # rows at the top that are not features, if features are in rows
    n_description_columns: int = 0  # columns after the first that are not samples, if features are in rows

    @property
    @abstractmethod
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int:
        return len(self.names) - self.n_extra

    @abstractmethod
    def column(self, index: int) -> pl.Series:
        """A named series: numbers as numbers, text as text, null for a missing value."""

    def texts(self, index: int) -> list[str]:
        """The column as text, to match rows of two files by."""
        column = self.column(index)
        if column.dtype.is_float() and (column.drop_nulls() % 1 == 0).all():
            column = column.cast(pl.Int64)
        return column.cast(pl.String).fill_null("").to_list()

    def id_columns(self, columns: Sequence[int]) -> list[int]:
        """The columns that hold a different text in every row."""
        return []

    def row(self, row: int, columns: Sequence[int]) -> pl.Series:
        """The values of a row, typed as in `column`."""
        return pl.Series([self.column(index)[row] for index in columns])

    @abstractmethod
    def matrix(self, columns: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> Any:
        """The columns as one array of numbers or a sparse matrix; a `TableError` if they are not numeric."""

    def column_index(self, name: str, role: str) -> int:
        index = self._index_of_name.get(name)
        return column_index(name, self.names, role, self.n_extra) if index is None else index

    @cached_property
    def _index_of_name(self) -> dict[str, int]:
        """The first column of each name; extra columns take precedence over features."""
        order = [*reversed(range(self.n_features)), *reversed(range(self.n_features, len(self.names)))]
        return {self.names[index]: index for index in order}


def column_index(name: str, names: list[str], role: str, n_extra: int = 0) -> int:
    """The column of this name, or with this index; the error lists the extra columns, if there are any."""
    if name in names:
        return names.index(name)
    if name.isdecimal() and len(name) <= MAX_INDEX_DIGITS and int(name) < len(names):
        return int(name)
    raise unknown_name(name, names[len(names) - n_extra :] or names, f"{role} column")


def unknown_name(name: str, names: Sequence[str], what: str) -> TableError:
    """The error for a name that the table does not have, with similar names."""
    close = difflib.get_close_matches(name.lower(), [other.lower() for other in names], cutoff=0.6)
    similar = [other for match in dict.fromkeys(close) for other in names if other.lower() == match]
    hint = f"did you mean {first_few(similar)}?" if similar else f"its {what.split()[-1]}s are {first_few(names)}"
    if what.startswith("target") and len(name) < MAX_NAME_LENGTH and Path(name).is_file():
        hint = f"this is a file: use target_file={name!r}"
    return TableError(f"there is no {what} {name!r} in the table: {hint}")


def numbered_names(path: Path, start: int, stop: int) -> list[str]:
    """Numbers as column names; a file that claims too many columns is refused."""
    if stop - start > MAX_COLUMNS:
        raise TableError(f"{path} claims {stop:,} columns, more than the limit of {MAX_COLUMNS:,}: is it damaged?")
    return [str(index) for index in range(start, stop)]


def require_memory(path: Path, n_bytes: int, copies: int = 1) -> None:
    """Refuse a file whose contents do not fit into memory, before it is decompressed."""
    if 0 < (available := available_memory()) < copies * n_bytes:
        twice = ", twice while it is read" if copies == 2 else ""
        raise TableError(
            f"{path} needs {n_bytes / 2**30:,.1f} GiB of memory{twice}, and {available / 2**30:,.1f} GiB are "
            "available: is it damaged? If it is meant to be this large, convert it to .npy, which is not loaded"
        )


def available_memory() -> int:
    """Bytes of memory available to this process or its container; 0 if unknown."""
    pages, size = (os.sysconf(name) if hasattr(os, "sysconf") else 0 for name in ("SC_PHYS_PAGES", "SC_PAGE_SIZE"))
    limits = [pages * size]
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]))
    with suppress(OSError, ValueError):  # "max" if there is no limit
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


def first_few(items: Sequence[Any], show: Callable[[Any], str] = repr) -> str:
    """The first items in words, and the number of the others."""
    more = f" and {len(items) - N_SHOWN:,} more" if len(items) > N_SHOWN else ""
    return ", ".join(map(show, items[:N_SHOWN])) + more


def first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextmanager
def read_as(path: Path, kind: str, *errors: type[BaseException]) -> Iterator[None]:
    """Turn these errors into a `TableError`."""
    try:
        yield
    except TableError:
        raise
    except errors as error:
        raise TableError(f"{path} cannot be read as {kind}: {first_line(error)}") from error


# ---- text cells


def typed_column(text: pl.Series, decimal: str = ".") -> pl.Series:
    """The column as integers, floats or booleans if all its cells are, else as text; null for a missing value."""
    lower = text.str.to_lowercase()
    values = text.set(lower.is_in(MISSING), None)
    is_long = values.str.contains(r"^\s*[+-]?[0-9]{19,}\s*$").any()  # more digits than a float keeps
    for dtype in (pl.Int64,) if is_long else (pl.Int64, pl.Float64):
        numbers = with_decimal_point(values, decimal).cast(dtype, strict=False)
        if numbers.null_count() == values.null_count():
            # Cells such as 01234 and 1234 are the same number but different codes.
            has_leading_zero = values.str.contains(r"^[+-]?0[0-9]").any()
            return values if has_leading_zero and numbers.n_unique() < values.n_unique() else numbers
    if lower.filter(values.is_not_null()).is_in(["true", "false"]).all():
        return (lower == "true").set(values.is_null(), None).alias(text.name)
    return text.set(lower.is_in(MISSING_LABELS), None)


def with_decimal_point(cells: pl.Series, decimal: str) -> pl.Series:
    """The cells with a point as decimal mark; null if the mark is a comma and a cell has a point as well."""
    if decimal == ".":
        return cells
    has_point = cells.str.contains(".", literal=True)
    return cells.str.replace_all(",", ".", literal=True).set(has_point, None)


def guess_decimal(cells: Iterable[str]) -> str:
    """The decimal mark: a comma if numbers have commas that cannot separate thousands, and none has a point."""
    cells = list(cells)
    commas = [cell for cell in cells if "," in cell and NUMBER_WITH_COMMA.fullmatch(cell)]
    if not commas or any(map(NUMBER_WITH_POINT.fullmatch, cells)):
        return "."
    may_be_thousands = all(map(THOUSANDS.fullmatch, commas)) and any(cell.strip().isdecimal() for cell in cells)
    return "." if may_be_thousands else ","


def are_ids(text: pl.Series) -> bool:
    """Whether the cells are all different, and none is missing or a number; hexadecimal ids may look like numbers."""
    lower = text.str.strip_chars().str.to_lowercase()
    if len(text) < 2 or lower.null_count() or lower.is_in(MISSING).any() or text.n_unique() < len(text):
        return False
    numbers = lower.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    is_hexadecimal = bool(lower.str.contains(f"^{HEXADECIMAL.pattern}$").all())
    return not (numbers.is_not_null().all() if is_hexadecimal else numbers.is_not_null().any())


def as_float(cell: str, decimal: str = ".") -> float | None:
    try:
        return float("nan" if cell.lower() in MISSING else cell.replace(decimal, "."))
    except ValueError:
        return None
