"""Tables that are read by columns and never loaded as a whole: Zarr, HDF5 and memory-mapped arrays."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

CELLS_AT_A_TIME = 2**20
WIDER_CHUNKS = 8  # a chunk with up to this many times CELLS_AT_A_TIME is still read as one slice
ROW_BYTES = 2**22
TRANSPOSED_BYTES = 2**26  # larger than ROW_BYTES, because each block of rows is gathered from all columns
TILE = 1024
CANNOT_TRAVEL = (
    "X is an HDF5 dataset and cannot be sent to another process: work in threads "
    "(joblib.parallel_config(backend='threading')), or store X as .npy or Zarr"
)


class Stored:
    """A table with ``shape``, ``dtype`` and ``[:, columns]``, whose columns are read when they are needed.

    The source supports ``[a:b, c:d]`` and ``[:, numbers]`` with an ascending list of numbers; ``places`` are its
    columns that belong to the table (None: all). Columns are returned as numpy arrays in C order, in types that kernels
    can read: native byte order, float16 as float32, and long double as float64.
    """

    ndim = 2

    def __init__(self, source: Any, places: Any = None) -> None:
        self.source = source
        self.places: NDArray[np.int64] | None = None if places is None else np.asarray(places, dtype=np.int64)
        n_columns = source.shape[1] if self.places is None else len(self.places)
        self.shape = int(source.shape[0]), int(n_columns)
        self.dtype = readable_type(source.dtype)
        self.extremes: dict[bool, Any] = {}  # of the columns, by whether NaN is ignored; they are read once

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """``[:, columns]`` as in numpy: columns may be a number, a slice, numbers or a mask."""
        rows, columns = key
        if not isinstance(rows, slice) or rows != slice(None):
            raise TypeError(f"rows {rows!r} of a stored table: request all rows of some columns, X[:, columns]")
        if isinstance(columns, slice) and columns.step in (None, 1):
            return self.read_columns(slice(*columns.indices(self.shape[1])))
        numbers = np.arange(self.shape[1])[columns]
        matrix, places = self.gather(np.atleast_1d(numbers))
        return matrix[:, places] if numbers.ndim else matrix[:, places[0]]

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
        """Whether the table can be sent to another process; an open HDF5 file cannot."""
        return not type(self.source).__module__.startswith("h5py")

    def column_slices(self, cells: int | None = None) -> list[slice]:
        """All columns in slices of about so many cells, aligned with the chunks of the store."""
        cells = cells or CELLS_AT_A_TIME
        step, width = max(1, cells // max(1, self.shape[0])), self._chunk_width
        if width <= step:
            step -= step % width
        elif self.shape[0] * width <= WIDER_CHUNKS * cells:
            step = width
        return [slice(a, min(a + step, self.shape[1])) for a in range(0, self.shape[1], step)]

    def read_columns(self, columns: slice) -> NDArray[Any]:
        """Adjacent columns."""
        if self.places is None:
            return self._as_dense(self.source[:, columns])
        matrix, places = Stored.gather(self, np.arange(columns.start, columns.stop))
        return np.ascontiguousarray(matrix[:, places])

    def gather(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """A small matrix that contains the columns of these numbers, and the place of each of them in it."""
        wanted = numbers if self.places is None else self.places[numbers]
        ascending, places = np.unique(wanted, return_inverse=True)
        return self._as_dense(self.source[:, ascending.tolist()]), places.astype(np.int32)

    def rows(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """All columns of some rows; all rows between the first and the last of them are read."""
        first, last = int(numbers.min()), int(numbers.max()) + 1
        out = np.empty((len(numbers), self.shape[1]), self.dtype)
        for part in self.column_slices():
            out[:, part] = self.block(slice(first, last), part)[numbers - first]
        return out

    def block(self, rows: slice, columns: slice) -> NDArray[Any]:
        """Adjacent columns of adjacent rows."""
        if self.places is not None:
            return self.read_columns(columns)[rows]
        return self._as_dense(self.source[rows, columns])

    def _as_dense(self, values: Any) -> NDArray[Any]:
        with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, and is refused as such
            return np.ascontiguousarray(values, dtype=self.dtype)

    @property
    def _chunk_width(self) -> int:
        chunks = getattr(self.source, "shards", None) or getattr(self.source, "chunks", None)
        if not chunks or self.places is not None:
            return 1
        return int(np.max(chunks[1]))  # Dask has a tuple of widths


class ReadAhead(Stored):
    """A stored table for reading column after column: it reads a slice of columns and keeps the last slice."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored.source, stored.places)
        self.parts = self.column_slices()
        self.cache = threading.local()  # each thread reads another slice

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "cache": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "cache": threading.local()}

    def gather(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        part = self.parts[int(numbers[0]) // self.parts[0].stop]
        if numbers.min() < part.start or numbers.max() >= part.stop:
            return super().gather(numbers)
        if getattr(self.cache, "part", None) != part:
            self.cache.part, self.cache.matrix = part, self.read_columns(part)
        return self.cache.matrix, (numbers - part.start).astype(np.int32)


def is_stored(X: Any) -> bool:
    """Whether X should be read by columns: it has chunks and a numpy dtype, but is not a numpy array."""
    if isinstance(X, Stored):
        return True
    has_both = hasattr(X, "chunks") and isinstance(getattr(X, "dtype", None), np.dtype) and hasattr(X, "shape")
    return has_both and not isinstance(X, np.ndarray)


def as_dense(X: Any) -> Any:
    """X as a numpy array, or as a `Stored` if it should be read by columns."""
    if isinstance(X, Stored):
        return X
    return Stored(X) if is_stored(X) else np.asarray(X)


def readable_type(dtype: Any) -> np.dtype[Any]:
    """The type in which kernels read values of this type."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    return dtype.newbyteorder("=")


def lies_by_columns(X: NDArray[Any]) -> bool:
    """Whether cells of one column are closer in memory than cells of one row."""
    return X.ndim == 2 and abs(X.strides[0]) < abs(X.strides[1])


def column_slices(X: Any) -> list[slice]:
    """All columns of a dense table in slices of a size that is efficient to read."""
    return (X if isinstance(X, Stored) else Stored(X)).column_slices()


def row_blocks(X: Any) -> Iterator[NDArray[Any]]:
    """X in blocks of whole rows in C order; each block is valid until the next one."""
    row_bytes = max(1, X.dtype.itemsize * int(np.prod(X.shape[1:])))
    if not isinstance(X, Stored) and not lies_by_columns(X):
        step = max(1, ROW_BYTES // row_bytes)
        for start in range(0, len(X), step):
            yield np.ascontiguousarray(X[start : start + step])
        return
    step = max(1, TRANSPOSED_BYTES // row_bytes)
    buffer = np.empty((min(step, len(X)), X.shape[1]), X.dtype)
    for start in range(0, len(X), step):
        rows = slice(start, min(start + step, len(X)))
        block = buffer[: rows.stop - rows.start]
        for part in column_slices(X):
            block[:, part] = _block(X, rows, part)
        yield block


def tiles(X: Any) -> Iterator[NDArray[Any]]:
    """X in square tiles in C order; the order does not depend on how X is stored."""
    n_rows, n_columns = X.shape
    for top in range(0, n_rows, TILE):
        rows = slice(top, min(top + TILE, n_rows))
        for left in range(0, n_columns, TILE):
            yield np.ascontiguousarray(_block(X, rows, slice(left, min(left + TILE, n_columns))))


def _block(X: Any, rows: slice, columns: slice) -> NDArray[Any]:
    return X.block(rows, columns) if isinstance(X, Stored) else X[rows, columns]
