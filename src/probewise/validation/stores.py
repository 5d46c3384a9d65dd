"""Tables read in columns: Zarr, HDF5 and memory-mapped arrays, never loaded as a whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

CELLS_AT_A_TIME = 2**20
WIDER_CHUNKS = 8  # a chunk of so many times the cells is still read at once
ROW_BYTES = 2**22
TURNED_BYTES = 2**26  # larger than ROW_BYTES: each block of rows is gathered from all columns
TILE = 1024
CANNOT_TRAVEL = (
    "X is an HDF5 dataset and cannot be sent to another process: work in threads "
    "(joblib.parallel_config(backend='threading')), or store X as .npy or Zarr"
)


class Stored:
    """A table behind an array interface: ``shape``, ``dtype`` and ``[:, columns]``.

    Columns come as numpy arrays in C order, in types that kernels can read: in this machine's byte order, float16 as
    float32 and long double as float64.

    Parameters
    ----------
    source : array-like of shape (n_rows, n_columns)
        A Zarr array, an h5py dataset, a numpy array, or what reads like one: ``[a:b, c:d]`` and ``[:, numbers]``
        with a list of ascending numbers are all it is asked for.
    places : array-like of int, default=None
        The columns of the source that the table has, in their order; None: all.
    """

    ndim = 2

    def __init__(self, source: Any, places: Any = None) -> None:
        self.source = source
        self.places: NDArray[np.int64] | None = None if places is None else np.asarray(places, dtype=np.int64)
        n_columns = source.shape[1] if self.places is None else len(self.places)
        self.shape = int(source.shape[0]), int(n_columns)
        self.dtype = readable_type(source.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """``[:, columns]`` as numpy would give it: columns a number, a slice, numbers or a mask."""
        rows, columns = key
        if not isinstance(rows, slice) or rows != slice(None):
            raise TypeError(f"rows {rows!r} of a stored table: ask for all rows of some columns, X[:, columns]")
        if isinstance(columns, slice) and columns.step in (None, 1):
            return self.read_columns(slice(*columns.indices(self.shape[1])))
        asked = np.arange(self.shape[1])[columns]
        read, places = self.gather(np.atleast_1d(asked))
        return read[:, places] if asked.ndim else read[:, places[0]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = np.empty(self.shape, self.dtype)
        for part in self.column_slices():
            whole[:, part] = self.read_columns(part)
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __getstate__(self) -> dict[str, Any]:
        if not self.can_travel:
            raise TypeError(CANNOT_TRAVEL)
        return self.__dict__

    @property
    def can_travel(self) -> bool:
        """Whether it can be sent to another process; an open HDF5 file cannot."""
        return not type(self.source).__module__.startswith("h5py")

    def column_slices(self, cells: int | None = None) -> list[slice]:
        """All columns in slices of about so many cells that begin where chunks of the store begin."""
        cells = cells or CELLS_AT_A_TIME
        step, width = max(1, cells // max(1, self.shape[0])), self._chunk_width
        if width <= step:
            step -= step % width
        elif self.shape[0] * width <= WIDER_CHUNKS * cells:
            step = width
        return [slice(a, min(a + step, self.shape[1])) for a in range(0, self.shape[1], step)]

    def read_columns(self, columns: slice) -> NDArray[Any]:
        """Neighbouring columns."""
        if self.places is None:
            return self._as_dense(self.source[:, columns])
        read, places = Stored.gather(self, np.arange(columns.start, columns.stop))
        return np.ascontiguousarray(read[:, places])

    def gather(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """A small array that holds those columns, and where in it each of them is."""
        asked = numbers if self.places is None else self.places[numbers]
        ascending, places = np.unique(asked, return_inverse=True)
        return self._as_dense(self.source[:, ascending.tolist()]), places.astype(np.int32)

    def rows(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """All columns of some rows, best not far apart: what lies between them is read too."""
        first, last = int(numbers.min()), int(numbers.max()) + 1
        out = np.empty((len(numbers), self.shape[1]), self.dtype)
        for part in self.column_slices():
            out[:, part] = self.block(slice(first, last), part)[numbers - first]
        return out

    def block(self, rows: slice, columns: slice) -> NDArray[Any]:
        """Neighbouring columns of neighbouring rows."""
        if self.places is not None:
            return self.read_columns(columns)[rows]
        return self._as_dense(self.source[rows, columns])

    def _as_dense(self, read: Any) -> NDArray[Any]:
        with np.errstate(over="ignore"):  # what float64 cannot hold becomes infinite, and is refused as such
            return np.ascontiguousarray(read, dtype=self.dtype)

    @property
    def _chunk_width(self) -> int:
        chunks = getattr(self.source, "shards", None) or getattr(self.source, "chunks", None)
        if not chunks or self.places is not None:
            return 1
        return int(np.max(chunks[1]))  # Dask has a tuple of widths


class ReadAhead(Stored):
    """A stored table for column after column: a slice of columns is read at a time, and the last one kept."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored.source, stored.places)
        self.parts = self.column_slices()
        self.kept = threading.local()  # each thread is elsewhere

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "kept": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "kept": threading.local()}

    def gather(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        part = self.parts[int(numbers[0]) // self.parts[0].stop]
        if numbers.min() < part.start or numbers.max() >= part.stop:
            return super().gather(numbers)
        if getattr(self.kept, "part", None) != part:
            self.kept.part, self.kept.read = part, self.read_columns(part)
        return self.kept.read, (numbers - part.start).astype(np.int32)


def is_stored(X: Any) -> bool:
    """Whether X is to be read by columns: it has chunks, and a dtype of numpy's, and is no array of numpy's."""
    if isinstance(X, Stored):
        return True
    has_both = hasattr(X, "chunks") and isinstance(getattr(X, "dtype", None), np.dtype) and hasattr(X, "shape")
    return has_both and not isinstance(X, np.ndarray)


def as_dense(X: Any) -> Any:
    """X as a numpy array, or a `Stored` where it is to be read by columns."""
    if isinstance(X, Stored):
        return X
    return Stored(X) if is_stored(X) else np.asarray(X)


def readable_type(dtype: Any) -> np.dtype[Any]:
    """The type in which kernels read values of a type."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    return dtype.newbyteorder("=")


def lies_by_columns(X: NDArray[Any]) -> bool:
    """Whether neighbours in a column are nearer in memory than neighbours in a row."""
    return X.ndim == 2 and abs(X.strides[0]) < abs(X.strides[1])


def column_slices(X: Any) -> list[slice]:
    """All columns of a dense table in slices that are good to read together."""
    return (X if isinstance(X, Stored) else Stored(X)).column_slices()


def column_blocks(X: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Slices of columns and what they hold: one of all columns for an array, several where X is stored."""
    if not isinstance(X, Stored):
        yield slice(0, X.shape[1]), X
        return
    for part in X.column_slices():
        yield part, X.read_columns(part)


def row_blocks(X: Any) -> Iterator[NDArray[Any]]:
    """X in blocks of whole rows in C order, read in the order in which it is kept; each is good until the next."""
    row_bytes = max(1, X.dtype.itemsize * int(np.prod(X.shape[1:])))
    if not isinstance(X, Stored) and not lies_by_columns(X):
        step = max(1, ROW_BYTES // row_bytes)
        yield from (np.ascontiguousarray(X[start : start + step]) for start in range(0, len(X), step))
        return
    step = max(1, TURNED_BYTES // row_bytes)
    parts = column_slices(X)
    room = np.empty((min(step, len(X)), X.shape[1]), X.dtype)
    for start in range(0, len(X), step):
        rows = slice(start, min(start + step, len(X)))
        piece = room[: rows.stop - rows.start]
        for part in parts:
            piece[:, part] = _block(X, rows, part)
        yield piece


def tiles(X: Any) -> Iterator[NDArray[Any]]:
    """X in squares of some rows and columns, in C order: what is kept by rows and by columns is read alike."""
    n_rows, n_columns = X.shape
    for top in range(0, n_rows, TILE):
        for left in range(0, n_columns, TILE):
            yield np.ascontiguousarray(
                _block(X, slice(top, min(top + TILE, n_rows)), slice(left, min(left + TILE, n_columns)))
            )


def _block(X: Any, rows: slice, columns: slice) -> NDArray[Any]:
    return X.block(rows, columns) if isinstance(X, Stored) else X[rows, columns]
