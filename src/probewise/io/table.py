"""`Table`, what selectors are given; `Source`, the columns of a file; errors and their words."""

from __future__ import annotations

import difflib
import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..validation.errors import Message, ParameterError, Setting
from ..validation.stores import Stored

if TYPE_CHECKING:
    import polars as pl
else:

    class Polars:
        """polars, loaded when it is first used."""

        def __getattr__(self, name):
            try:
                return getattr(import_module("polars"), name)
            except ModuleNotFoundError:
                raise ImportError("reading tables needs the cli extra: pip install 'probewise[cli]'") from None

    pl = Polars()

Progress = Callable[[str], None]
SHOWN = 3
MOST_COLUMNS = 10_000_000
LONGEST_NUMBER = 18  # digits
LONGEST_NAME = 256  # characters of a file's
MOST_BESIDE = 10_000  # files of a folder that one not there is compared with


class TableError(ParameterError):
    """A table that cannot be used, and what to do about it, in one line."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers, one target value each, and the names of the columns; X may be sparse, or mapped from a file.

    ``weights`` and ``groups`` are those of the rows, where they were asked for. ``levels`` are those of categorical
    features, by column; X holds their numbers, -1 where one is missing. ``notes`` are sentences on what the reader had
    to guess, in parts as of a `ParameterError`.
    """

    X: Any
    y: NDArray[Any]
    feature_names: list[str]
    target: str
    ids: NDArray[Any] | None = None
    id_column: str = "id"
    weights: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None
    levels: dict[int, list[str]] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()

    def frame(self) -> Any:
        """X with its column names, for selectors to know them; shares memory with X where X is by columns.

        A sparse or mapped X has no place for names and is given as it is.
        """
        if sp.issparse(self.X) or isinstance(self.X, np.memmap | Stored):
            return self.X
        return self.with_levels(pl.from_numpy(self.X, schema=self.feature_names, orient="row"))

    def with_levels(self, frame: Any) -> Any:
        """The frame of X with categories in place of their numbers."""
        columns = []
        for place, levels in self.levels.items():
            texts = [None if code < 0 else levels[int(code)] for code in self.X[:, place]]
            columns.append(pl.Series(self.feature_names[place], texts, dtype=pl.Enum(levels)))
        return frame.with_columns(columns)

    def take(self, features: Sequence[int] | NDArray[np.intp]) -> Table:
        """The table of those features, in that order."""
        names = [self.feature_names[place] for place in features]
        levels = {at: self.levels[int(place)] for at, place in enumerate(features) if int(place) in self.levels}
        return replace(self, X=self.X[:, features], feature_names=names, levels=levels)


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """The columns of a file: features first, then those ``beside`` them that are none."""

    path: Path
    names: list[str]
    beside: int = 0
    target: str | None = None  # that the format names, as svmlight does
    notes: tuple[Message, ...] = ()
    annotations: int = 0  # rows at the top that are no features, where features are in rows
    descriptions: int = 0  # columns after the first that are no samples, where features are in rows

    @property
    @abstractmethod
    def n_rows(self) -> int: ...

    @abstractmethod
    def column(self, place: int) -> pl.Series:
        """The column under its name: numbers as numbers, text as text, null where a value is missing."""

    def keys(self, place: int) -> list[str]:
        """The column as text to find rows by."""
        column = self.column(place)
        if column.dtype.is_float() and (column.drop_nulls() % 1 == 0).all():
            column = column.cast(pl.Int64)
        return column.cast(pl.String).fill_null("").to_list()

    def naming(self, places: Sequence[int]) -> list[int]:
        """Those of the columns that hold text, another one in every row."""
        return []

    def row(self, row: int, places: Sequence[int]) -> pl.Series:
        """The values of a row in those columns, as `column` gives them."""
        return pl.Series([self.column(place)[row] for place in places])

    @abstractmethod
    def matrix(self, places: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> Any:
        """Those columns as one array of numbers, or a sparse matrix; a `TableError` where they hold none."""

    def place(self, asked: str, role: str) -> int:
        found = self._places.get(asked)
        return place_of(asked, self.names, role, self.beside) if found is None else found

    @cached_property
    def _places(self) -> dict[str, int]:
        """By name; of two of one name the first, those beside the features before."""
        start = len(self.names) - self.beside
        order = [*range(start - 1, -1, -1), *range(len(self.names) - 1, start - 1, -1)]
        return {self.names[place]: place for place in order}


def place_of(asked: str, names: list[str], role: str, beside: int = 0) -> int:
    """The column meant: by name, else by index; the error names those beside the features, if there are any."""
    if asked in names:
        return names.index(asked)
    if asked.isdecimal() and len(asked) <= LONGEST_NUMBER and int(asked) < len(names):
        return int(asked)
    raise missing(asked, names[len(names) - beside :] or names, f"{role} column")


def missing(asked: str, names: Sequence[str], what: str) -> TableError:
    """The error for a name that is not there, with those that may be meant."""
    close = difflib.get_close_matches(asked.lower(), [name.lower() for name in names], cutoff=0.6)
    likely = [name for match in dict.fromkeys(close) for name in names if name.lower() == match]
    hint: Message = (f"did you mean {some(likely)}?" if likely else f"its {what.split()[-1]}s are {some(names)}",)
    if what.startswith("target") and len(asked) < LONGEST_NAME and Path(asked).is_file():
        hint = ("that is a file: give it as ", Setting("target_file", asked))
    return TableError(f"there is no {what} {asked!r} in the table: ", *hint)


def no_file(path: Path) -> TableError:
    """The error for a file that is not there, with those beside it that may be meant."""
    try:
        beside = [other.name for other in itertools.islice(path.parent.iterdir(), MOST_BESIDE)]
    except OSError:
        return TableError(f"there is no file {path}")
    likely = difflib.get_close_matches(path.name, beside, cutoff=0.75)
    return TableError(f"there is no file {path}" + (f": did you mean {some(likely)}?" if likely else ""))


def numbered(path: Path, start: int, stop: int) -> list[str]:
    """Numbers as names of columns; a file that claims more columns than can be meant is refused."""
    if stop - start > MOST_COLUMNS:
        raise TableError(f"{path} claims {stop:,} columns, and {MOST_COLUMNS:,} can be read: is the file damaged?")
    return [str(place) for place in range(start, stop)]


def require_memory(path: Path, n_bytes: int, times: int = 1) -> None:
    """Refuse what cannot be held, so many times while it is read, before it is unpacked."""
    if 0 < (room := memory()) < times * n_bytes:
        twice = ", twice while it is read" if times == 2 else ""
        raise TableError(
            f"{path} takes {n_bytes / 2**30:,.1f} GiB unpacked{twice}, and this machine has room for "
            f"{room / 2**30:,.1f} GiB: is the file damaged? One that is meant to be so large can be "
            "converted to .npy, and is mapped then"
        )


def memory() -> int:
    """Bytes that this machine, or the part of it that is lent, has for us; 0 where it does not say."""
    pages, size = (os.sysconf(name) if hasattr(os, "sysconf") else 0 for name in ("SC_PHYS_PAGES", "SC_PAGE_SIZE"))
    limits = [pages * size]
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]))
    with suppress(OSError, ValueError):  # "max" where there is none
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


def some(items: Sequence[Any], shown: Any = repr) -> str:
    more = f" and {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""
    return ", ".join(map(shown, items[:SHOWN])) + more


def first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
