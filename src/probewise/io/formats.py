"""Opening of files by the ending of their names: text, Parquet, Arrow, ARFF, GCT, Excel, svmlight, NPZ and AnnData."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..validation.parameters import choice
from ..validation.stores import Stored
from .expression import is_series, read_gct, read_series
from .npy import map_npy, read_header
from .parse_cells import decimal_of, name_rows
from .table import Message, Progress, Source, TableError, first_line, no_file, numbered, pl, require_memory
from .text import EXACT, TextSource, Wanted, read_arff, read_separated, text_columns, text_source
from .unpacking import PACKED, STANDARD_INPUT

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
ARROW = (".arrow", ".feather", ".ipc")
SVMLIGHT = (".libsvm", ".svmlight", ".svm")
KNOWN = (*SEPARATORS, ".arff", ".parquet", *ARROW, *SVMLIGHT, ".npz", ".npy", ".h5ad", ".gct", ".xlsx")
TEXTS = (*SEPARATORS, ".arff", ".gct")
SPARSE = ("data", "indices", "indptr", "shape")
EXCEL_ROWS_SEEN, EXCEL_CELLS = 10, 2**21  # to see what decimals look like; at a time


def open_source(path: Path, wanted: Wanted, progress: Progress | None = None) -> Source:
    """The columns of a file; ``wanted`` says which columns of a text are to stay text."""
    ending = _ending(path)
    if path.is_dir():
        raise TableError(f"{path} is a folder: give a file")
    if not path.exists() and path != STANDARD_INPUT:
        raise no_file(path)
    if wanted.by_rows and ending not in (*SEPARATORS, ".parquet", *ARROW, ".gct", ".xlsx"):
        raise TableError(
            f"features in rows are known in .csv, .tsv, .txt, .xlsx, .gct, .parquet and Arrow files, not in {ending}"
        )
    if lies_in_rows(path):
        return (read_gct if ending == ".gct" else read_series)(path, wanted, progress)
    if ending in SEPARATORS:
        return read_separated(path, SEPARATORS[ending], wanted, progress)
    if ending == ".arff":
        return read_arff(path, wanted, progress)
    if ending == ".xlsx":
        return _read_excel(path, wanted)
    if ending in SVMLIGHT:
        return _read_svmlight(path)
    if ending == ".npz":
        return _read_npz(path)
    if ending == ".npy":
        return _read_npy(path)
    return _read_h5ad(path) if ending == ".h5ad" else _read_frame(path, ending)


def lies_in_rows(path: Path) -> bool:
    """Whether the format has its features in rows: GCT, and series matrices of GEO."""
    ending = _ending(path)
    return ending == ".gct" or (ending == ".txt" and is_series(path))


def open_by_columns(path: Path, wanted: Wanted, progress: Progress | None = None) -> Source:
    """The same, but columns of Parquet and Arrow files are read only when they are asked for."""
    ending = path.suffix.lower()
    if path.is_file() and ending == ".parquet":
        scan = partial(pl.scan_parquet, path, glob=False, hive_partitioning=False)
    elif path.is_file() and ending in ARROW and _is_arrow_file(path) and not set("*?[") & set(str(path)):
        scan = partial(pl.scan_ipc, path)
    else:
        return open_source(path, wanted, progress)
    with _explained(path, ending):
        frame = scan()
        n_rows = frame.select(pl.len()).collect().item()
        return LazySource(path, frame.collect_schema().names(), frame=frame, height=n_rows)


def _ending(path: Path) -> str:
    if path == STANDARD_INPUT:
        return ".csv"
    endings = [ending.lower() for ending in path.suffixes]
    packed = bool(endings) and endings[-1] in PACKED
    ending = "".join(endings[-2:-1] if packed else endings[-1:])
    if ending not in KNOWN or (packed and ending not in TEXTS):
        raise TableError(f"{path} has no format known here: name it {choice(KNOWN)} (text also with {choice(PACKED)})")
    return ending


@dataclass(frozen=True, eq=False)
class FrameSource(Source):
    """A polars frame."""

    frame: Any = None

    @property
    def n_rows(self) -> int:
        return self.frame.height

    def column(self, place: int) -> pl.Series:
        return self._take([place]).to_series()

    def naming(self, places: Sequence[int]) -> list[int]:
        is_text = [kind == pl.String for kind in self._kinds()]
        return [place for place in places if is_text[place] and name_rows(self.column(place))]

    def _kinds(self) -> Sequence[Any]:
        return self.frame.dtypes

    def matrix(self, places: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> NDArray[Any]:
        features = self._take(places.tolist())
        return _numbers(features if rows is None else features[rows.tolist()])

    def _take(self, places: list[int]) -> pl.DataFrame:
        columns = self.frame.get_columns()
        return pl.DataFrame([columns[place] for place in places])


@dataclass(frozen=True, eq=False)
class LazySource(FrameSource):
    """A polars frame that is not read yet: columns are read when they are asked for."""

    height: int = 0

    @property
    def n_rows(self) -> int:
        return self.height

    def _kinds(self) -> Sequence[Any]:
        return self.frame.collect_schema().dtypes()

    def dtype(self, places: NDArray[np.intp]) -> np.dtype[Any]:
        schema = self.frame.collect_schema()
        names = [self.names[place] for place in places.tolist()]
        return _numbers(pl.DataFrame(schema={name: schema[name] for name in names})).dtype

    def _take(self, places: list[int]) -> pl.DataFrame:
        with _explained(self.path, self.path.suffix.lower()):
            return self.frame.select([self.names[place] for place in places]).collect()


def _numbers(features: pl.DataFrame) -> NDArray[Any]:
    """The columns as one array by columns, of one type that numpy knows too."""
    numbers = pl.selectors.numeric() | pl.selectors.boolean() | pl.selectors.by_dtype(pl.Null)
    other = features.select(~numbers)
    if other.width:
        described = [f"{column.name!r} ({column.dtype})" for column in other]
        raise text_columns(described, features.width, other.columns)
    kinds = set(features.dtypes)
    if all((kind.is_integer() and kind != pl.Int128) or kind == pl.Boolean for kind in kinds):
        features = features.cast({pl.Boolean: pl.UInt8})
    elif kinds not in ({pl.Float32}, {pl.Float64}):
        features = features.cast(pl.Float64)
    return features.to_numpy(order="fortran")


@dataclass(frozen=True, eq=False)
class MatrixSource(Source):
    """A matrix, dense or sparse, and columns beside it."""

    X: Any = None
    columns: Sequence[Any] = ()
    may_end_early: bool = False  # columns after the last that occurs are not seen in the file, as in svmlight

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def column(self, place: int) -> pl.Series:
        if place < self.X.shape[1]:
            column = self.X[:, [place]]
            values = (column.toarray() if sp.issparse(column) else column).ravel()
        else:
            values = self.columns[place - self.X.shape[1]]
        return pl.Series(self.names[place], values.tolist(), strict=False)

    def matrix(self, places: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> Any:
        if self.X.dtype.kind not in "biuf":
            raise TableError(f"X in {self.path} is of type {self.X.dtype}: give numbers")
        if isinstance(self.X, np.memmap):
            X = self.X.view(np.uint8) if self.X.dtype.kind == "b" else self.X
            return X if len(places) == X.shape[1] else Stored(X, places)
        X = self.X if len(places) == self.X.shape[1] else self.X[:, places]
        return X.astype(np.uint8) if X.dtype.kind == "b" else X


def _matrix_source(
    path: Path, X: Any, names: Sequence[str], beside: Mapping[str, Any], target: str | None = None
) -> MatrixSource:
    return MatrixSource(path, [*names, *beside], len(beside), target, X=X, columns=tuple(beside.values()))


def _read_frame(path: Path, ending: str) -> FrameSource:
    with _explained(path, ending):
        if ending == ".parquet":
            _require_room(path, pl.scan_parquet(path, glob=False, hive_partitioning=False))
            frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
        elif _is_arrow_file(path):
            content = path.read_bytes()
            _require_room(path, pl.scan_ipc(content))
            frame = pl.read_ipc(content)
        else:
            frame = pl.read_ipc_stream(path.read_bytes())
    return FrameSource(path, frame.columns, frame=frame)


def _require_room(path: Path, frame: pl.LazyFrame) -> None:
    """By what the file claims before it is unpacked: a column of one value takes no room in it, however long.

    The matrix is made beside the frame.
    """
    widths = [
        _numbers(pl.DataFrame(schema={"": kind})).itemsize if kind.is_numeric() else 1
        for kind in frame.collect_schema().dtypes()
    ]
    require_memory(path, frame.select(pl.len()).collect().item() * sum(widths), times=2)


@contextmanager
def _explained(path: Path, ending: str) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ImportError) as error:
        kind = "Parquet" if ending == ".parquet" else "Arrow"
        raise TableError(f"{path} cannot be read as {kind}: {first_line(error)}") from error


def _is_arrow_file(path: Path) -> bool:
    """Whether it is an Arrow file and no Arrow stream."""
    with path.open("rb") as file:
        return file.read(6) == b"ARROW1"


def _read_excel(path: Path, wanted: Wanted) -> TextSource:
    """The cells of the first sheet; its first row holds the names."""
    frame, notes = _first_sheet(path)
    if frame.is_empty():
        raise TableError(f"{path} is empty")
    names = [(name or "").strip() for name in frame.row(0)]
    rows = frame[1:].filter(~pl.all_horizontal(pl.all().is_null()))
    looked_at = [cell or "" for row in rows.head(EXCEL_ROWS_SEEN).rows() for cell in row]
    source = text_source(path, names, wanted, decimal_of(looked_at))
    for part in rows.iter_slices(max(1, EXCEL_CELLS // len(names))):
        cells = part.fill_null("").to_numpy().ravel()
        source.take(pl.Series(cells.tolist(), dtype=pl.String))
    return replace(source, notes=(*notes, *source.notes))


def _first_sheet(path: Path) -> tuple[Any, tuple[Message, ...]]:
    """Without the columns that are empty, and a note where there are other sheets."""
    try:
        import fastexcel  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError:
        raise ImportError(
            f"{path}: reading Excel needs fastexcel, of the excel extra: pip install 'probewise[excel]'"
        ) from None
    try:
        with zipfile.ZipFile(path) as packed:
            require_memory(path, sum(member.file_size for member in packed.infolist()))
        book = fastexcel.read_excel(path)
        frame = book.load_sheet(0, header_row=None, dtypes="string").to_polars()
    except (zipfile.BadZipFile, fastexcel.FastExcelError, OSError) as error:
        raise TableError(f"{path} cannot be read as Excel: {first_line(error)}") from error
    notes: tuple[Message, ...] = ()
    if len(book.sheet_names) > 1:
        notes = ((f"{path} has {len(book.sheet_names)} sheets: the first, {book.sheet_names[0]!r}, is read",),)
    return frame[[column.name for column in frame if column.null_count() < len(column)]], notes


def _read_svmlight(path: Path) -> MatrixSource:
    """Columns have the numbers of the file for names; no column 0 means that they count from 1."""
    from sklearn.datasets import load_svmlight_file

    if not path.stat().st_size:
        raise TableError(f"{path} is empty")
    try:
        X, y = load_svmlight_file(str(path), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise TableError(f"{path} cannot be read as svmlight: {first_line(error)}") from error
    first = int(X.nnz > 0 and X.indices.min() > 0)
    names = numbered(path, first, X.shape[1])
    whole = ((y == np.trunc(y)) & (np.abs(y) < EXACT)).all()
    source = _matrix_source(path, X[:, first:], names, {"target": y.astype(np.int64) if whole else y}, "target")
    return replace(source, may_end_early=True)


def _read_npz(path: Path) -> MatrixSource:
    """X, or the parts of a sparse matrix; every other array with a value for each row is a column beside it."""
    try:
        arrays = _arrays(path)
        X = _sparse(arrays) if all(part in arrays for part in SPARSE) else arrays.pop("X", None)
    except TableError:
        raise
    except Exception as error:  # what zipfile's and numpy's parsers raise depends on what the damage looks like
        raise TableError(f"{path} cannot be read as NPZ: {first_line(error)}") from error
    if X is None or X.ndim != 2:
        held = ", ".join(arrays) or "nothing" if X is None else f"X of shape {X.shape}"
        raise TableError(
            f"{path} holds {held}: it needs a matrix X, or data, indices, indptr and shape of a sparse one"
        )
    names = arrays.pop("feature_names", None)
    if names is not None and len(names) != X.shape[1]:
        raise TableError(f"{path} holds {len(names):,} feature_names for {X.shape[1]:,} columns of X")
    named = arrays.pop("class_names", None)
    beside = {name: _named(values, named) for name, values in arrays.items() if values.shape == X.shape[:1]}
    if "y" in arrays and "y" not in beside:
        raise TableError(f"y in {path} is of shape {arrays['y'].shape} and X of shape {X.shape}: give one value a row")
    columns = numbered(path, 0, X.shape[1]) if names is None else list(map(str, names))
    return _matrix_source(path, X, columns, beside, "y" if "y" in beside else None)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an NPZ file. None is made before its header was held against what is there; no object is loaded."""
    with zipfile.ZipFile(path) as packed:
        members = packed.infolist()
        require_memory(path, sum(member.file_size for member in members))
        for member in members:
            with packed.open(member) as file:
                shape, _, dtype, start = read_header(file)
            claimed = start + dtype.itemsize * math.prod(shape)
            if claimed != member.file_size and dtype.kind != "O":
                raise ValueError(f"{member.filename} claims {claimed:,} bytes and has {member.file_size:,}")
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _read_npy(path: Path) -> MatrixSource:
    """Mapped, not read; its names, and the columns beside it, from the .json file beside it."""
    X, sidecar = map_npy(path)
    beside = {name: np.array(values, dtype=object) for name, values in sidecar.columns.items()}
    return _matrix_source(path, X, sidecar.feature_names, beside, sidecar.target)


def _sparse(arrays: dict[str, NDArray[Any]]) -> Any:
    data, indices, indptr, shape = (arrays.pop(part) for part in SPARSE)
    kind = str(np.char.decode(arrays.pop("format", np.array(b"csr"))))
    made = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}
    if kind not in made:
        raise ValueError(f"a sparse matrix of the kind {kind}, not csr or csc")
    X = made[kind]((data, indices, indptr), shape=tuple(shape))
    X.check_format(full_check=True)
    return X.tocsr()


def _named(values: NDArray[Any], names: NDArray[Any] | None) -> NDArray[Any]:
    """Numbers of classes as names of classes, where they are all there: 0, 1, ... or 1, 2, ..."""
    if values.dtype.kind == "S":
        return np.char.decode(values)
    if names is None or values.dtype.kind not in "iu":
        return values
    seen = np.unique(values)
    if len(seen) == len(names) and seen[0] in (0, 1) and seen[-1] - seen[0] == len(names) - 1:
        return names[values.astype(np.int64) - seen[0]]
    return values


def _read_h5ad(path: Path) -> MatrixSource:
    """Genes are the features; the columns of obs, and obs_names, stand beside them."""
    try:
        import anndata  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError:
        raise ImportError("reading .h5ad files needs anndata: pip install anndata") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = anndata.read_h5ad(path)
    except (OSError, KeyError, ValueError) as error:
        raise TableError(f"{path} cannot be read as AnnData: {first_line(error)}") from error
    if data.X is None:
        raise TableError(f"{path} holds no X")
    X = sp.csr_matrix(data.X) if sp.issparse(data.X) else np.asarray(data.X)
    beside = {"obs_names": np.asarray(data.obs_names, dtype=object)}
    beside |= {str(name): _values(data.obs[name]) for name in data.obs.columns}
    return _matrix_source(path, X, list(map(str, data.var_names)), beside)


def _values(column: Any) -> NDArray[Any]:
    """A column of pandas as an array; what numpy has no type for as text, None where it is missing."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return column.to_numpy()
    lost = column.isna()
    return np.array([None if gone else str(value) for value, gone in zip(column, lost, strict=True)], dtype=object)
