"""File formats by the ending of the file name, and readers of Parquet, Arrow, Excel, svmlight, NPZ, NPY and AnnData."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..validation.parameters import choice
from ..validation.stores import Stored
from .arff import read_arff
from .expression_matrices import is_series_matrix, read_gct, read_series_matrix
from .input_files import COMPRESSIONS, STANDARD_INPUT, no_such_file
from .npy import map_npy, read_header
from .table import Progress, Source, TableError, are_ids, guess_decimal, numbered_names, pl, read_as, require_memory
from .text import EXACT, TextOptions, TextSource, empty_source, not_numeric, read_separated

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
ARROW = (".arrow", ".feather", ".ipc")
SVMLIGHT = (".libsvm", ".svmlight", ".svm")
KNOWN = (*SEPARATORS, ".arff", ".parquet", *ARROW, *SVMLIGHT, ".npz", ".npy", ".h5ad", ".gct", ".xlsx")
TEXT = (*SEPARATORS, ".arff", ".gct")
WITH_FEATURES_IN_ROWS = (*SEPARATORS, ".xlsx", ".gct", ".parquet", *ARROW)
SPARSE_PARTS = ("data", "indices", "indptr", "shape")
SPARSE_FORMATS = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}
EXCEL_SAMPLE_ROWS = 10  # to guess the decimal mark
EXCEL_CELLS_AT_A_TIME = 2**21


def open_source(path: Path, options: TextOptions, progress: Progress | None = None) -> Source:
    """The columns of a file; the options say which columns of a text file stay text."""
    ending = _ending(path)
    if not path.exists() and path != STANDARD_INPUT:
        raise no_such_file(path)
    if options.features_in_rows and ending not in WITH_FEATURES_IN_ROWS:
        raise TableError(f"features_in='rows' works with {choice(WITH_FEATURES_IN_ROWS)} files, not with {ending}")
    if has_features_in_rows(path):
        return (read_gct if ending == ".gct" else read_series_matrix)(path, options, progress)
    if ending in SEPARATORS:
        return read_separated(path, SEPARATORS[ending], options, progress)
    if ending == ".arff":
        return read_arff(path, options, progress)
    if ending == ".xlsx":
        return _read_excel(path, options)
    readers = {".npz": _read_npz, ".npy": _read_npy, ".h5ad": _read_h5ad, **dict.fromkeys(SVMLIGHT, _read_svmlight)}
    return readers[ending](path) if ending in readers else _read_frame(path)


def has_features_in_rows(path: Path) -> bool:
    """Whether the format has its features in rows: GCT, and the series matrices of GEO."""
    ending = _ending(path)
    return ending == ".gct" or (ending == ".txt" and is_series_matrix(path))


def open_lazily(path: Path, options: TextOptions, progress: Progress | None = None) -> Source:
    """`open_source`, but columns of Parquet and Arrow files are read only on request."""
    return _scan_frame(path) or open_source(path, options, progress)


def _ending(path: Path) -> str:
    if path.is_dir():
        raise TableError(f"{path} is a folder: give a file")
    if path == STANDARD_INPUT:
        return ".csv"
    endings = [ending.lower() for ending in path.suffixes]
    is_compressed = bool(endings) and endings[-1] in COMPRESSIONS
    ending = "".join(endings[-2:-1] if is_compressed else endings[-1:])
    if ending not in KNOWN or (is_compressed and ending not in TEXT):
        raise TableError(
            f"{path} has an unknown format: name it {choice(KNOWN)} (text files may also end in {choice(COMPRESSIONS)})"
        )
    return ending


@dataclass(frozen=True, eq=False)
class FrameSource(Source):
    """The columns of a polars frame."""

    frame: Any = None

    @property
    def n_rows(self) -> int:
        return self.frame.height

    def column(self, index: int) -> pl.Series:
        return self._select([index]).to_series()

    def id_columns(self, columns: Sequence[int]) -> list[int]:
        is_text = [dtype == pl.String for dtype in self._dtypes()]
        return [index for index in columns if is_text[index] and are_ids(self.column(index))]

    def matrix(self, columns: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> NDArray[Any]:
        features = self._select(columns.tolist())
        return _as_array(features if rows is None else features[rows.tolist()])

    def _dtypes(self) -> Sequence[Any]:
        return self.frame.dtypes

    def _select(self, columns: list[int]) -> pl.DataFrame:
        series = self.frame.get_columns()
        return pl.DataFrame([series[index] for index in columns])


@dataclass(frozen=True, eq=False)
class LazySource(FrameSource):
    """The columns of a lazy polars frame, read on request."""

    height: int = 0

    @property
    def n_rows(self) -> int:
        return self.height

    def dtype(self, columns: NDArray[np.intp]) -> np.dtype[Any]:
        """The type of `matrix`, without reading it."""
        schema = self.frame.collect_schema()
        names = [self.names[index] for index in columns.tolist()]
        return _as_array(pl.DataFrame(schema={name: schema[name] for name in names})).dtype

    def _dtypes(self) -> Sequence[Any]:
        return self.frame.collect_schema().dtypes()

    def _select(self, columns: list[int]) -> pl.DataFrame:
        with _polars_errors(self.path):
            return self.frame.select([self.names[index] for index in columns]).collect()


def _as_array(features: pl.DataFrame) -> NDArray[Any]:
    """The columns as one array in Fortran order, of a type that numpy has."""
    numeric = pl.selectors.numeric() | pl.selectors.boolean() | pl.selectors.by_dtype(pl.Null)
    others = features.select(~numeric)
    if others.width:
        dates = others.select(pl.selectors.temporal()).columns
        described = [f"{column.name!r} ({column.dtype})" for column in others]
        raise not_numeric(described, features.width, others.columns, dates)
    dtypes = set(features.dtypes)
    if all((dtype.is_integer() and dtype != pl.Int128) or dtype == pl.Boolean for dtype in dtypes):
        features = features.cast({pl.Boolean: pl.UInt8})
    elif dtypes not in ({pl.Float32}, {pl.Float64}):
        features = features.cast(pl.Float64)
    return features.to_numpy(order="fortran")


def _read_frame(path: Path) -> FrameSource:
    """The columns of a Parquet or Arrow file."""
    with _polars_errors(path):
        if path.suffix.lower() == ".parquet":
            _require_memory(path, pl.scan_parquet(path, glob=False, hive_partitioning=False))
            frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
        elif _is_arrow_file(path):
            content = path.read_bytes()
            _require_memory(path, pl.scan_ipc(content))
            frame = pl.read_ipc(content)
        else:
            frame = pl.read_ipc_stream(path.read_bytes())
    return FrameSource(path, frame.columns, frame=frame)


def _scan_frame(path: Path) -> LazySource | None:
    """The columns of a Parquet or Arrow file, read on request; None if the file cannot be read in this way."""
    ending = path.suffix.lower()
    # polars would expand the wildcards in the name of an Arrow file.
    is_arrow = ending in ARROW and not set("*?[") & set(str(path))
    if not path.is_file() or not (ending == ".parquet" or (is_arrow and _is_arrow_file(path))):
        return None
    with _polars_errors(path):
        is_parquet = ending == ".parquet"
        frame = pl.scan_parquet(path, glob=False, hive_partitioning=False) if is_parquet else pl.scan_ipc(path)
        n_rows = frame.select(pl.len()).collect().item()
        return LazySource(path, frame.collect_schema().names(), frame=frame, height=n_rows)


def _require_memory(path: Path, frame: pl.LazyFrame) -> None:
    """Check the size that the file claims: a long column of one repeated value takes little space in it.

    The frame and the matrix made of it are in memory at the same time.
    """
    widths = [
        _as_array(pl.DataFrame(schema={"": dtype})).itemsize if dtype.is_numeric() else 1
        for dtype in frame.collect_schema().dtypes()
    ]
    require_memory(path, frame.select(pl.len()).collect().item() * sum(widths), copies=2)


def _polars_errors(path: Path) -> AbstractContextManager[None]:
    kind = "Parquet" if path.suffix.lower() == ".parquet" else "Arrow"
    return read_as(path, kind, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ImportError)


def _is_arrow_file(path: Path) -> bool:
    """Whether the file is in the Arrow file format, not the Arrow stream format."""
    with path.open("rb") as file:
        return file.read(6) == b"ARROW1"


def _read_excel(path: Path, options: TextOptions) -> TextSource:
    """The cells of the first sheet; its first row holds the names."""
    frame, notes = _first_sheet(path)
    if frame.is_empty():
        raise TableError(f"{path} is empty")
    names = [(name or "").strip() for name in frame.row(0)]
    rows = frame[1:].filter(~pl.all_horizontal(pl.all().is_null()))
    sample = [cell or "" for row in rows.head(EXCEL_SAMPLE_ROWS).rows() for cell in row]
    source = empty_source(path, names, options, guess_decimal(sample))
    for part in rows.iter_slices(max(1, EXCEL_CELLS_AT_A_TIME // len(names))):
        cells = part.fill_null("").to_numpy().ravel()
        source.add_rows(pl.Series(cells.tolist(), dtype=pl.String))
    return replace(source, notes=(*notes, *source.notes))


def _first_sheet(path: Path) -> tuple[Any, tuple[str, ...]]:
    """The first sheet without empty columns, and a note if there are other sheets."""
    try:
        import fastexcel  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError:
        raise ImportError(
            f"{path}: reading Excel needs fastexcel from the excel extra: pip install 'probewise[excel]'"
        ) from None
    with read_as(path, "Excel", zipfile.BadZipFile, fastexcel.FastExcelError, OSError):
        with zipfile.ZipFile(path) as archive:
            require_memory(path, sum(member.file_size for member in archive.infolist()))
        book = fastexcel.read_excel(path)
        frame = book.load_sheet(0, header_row=None, dtypes="string").to_polars()
    notes: tuple[str, ...] = ()
    if len(book.sheet_names) > 1:
        notes = (f"{path} has {len(book.sheet_names)} sheets: the first, {book.sheet_names[0]!r}, is read",)
    return frame[[column.name for column in frame if column.null_count() < len(column)]], notes


@dataclass(frozen=True, eq=False)
class MatrixSource(Source):
    """A matrix, dense or sparse, and extra columns."""

    X: Any = None
    extra_columns: Sequence[Any] = ()
    may_lack_last_columns: bool = False  # svmlight files do not show columns of zeros at the end

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def column(self, index: int) -> pl.Series:
        if index < self.X.shape[1]:
            column = self.X[:, [index]]
            values = (column.toarray() if sp.issparse(column) else column).ravel()
        else:
            values = self.extra_columns[index - self.X.shape[1]]
        return pl.Series(self.names[index], values.tolist(), strict=False)

    def matrix(self, columns: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> Any:
        if self.X.dtype.kind not in "biuf":
            raise TableError(f"X in {self.path} has type {self.X.dtype}: X must be numeric")
        if isinstance(self.X, np.memmap):
            X = self.X.view(np.uint8) if self.X.dtype.kind == "b" else self.X
            return X if len(columns) == X.shape[1] else Stored(X, columns)
        X = self.X if len(columns) == self.X.shape[1] else self.X[:, columns]
        return X.astype(np.uint8) if X.dtype.kind == "b" else X


def _source(
    path: Path, X: Any, names: Sequence[str], extra: Mapping[str, Any], target: str | None = None
) -> MatrixSource:
    return MatrixSource(path, [*names, *extra], len(extra), target, X=X, extra_columns=tuple(extra.values()))


def _read_svmlight(path: Path) -> MatrixSource:
    """Read an svmlight file; its columns are named by numbers, from 1 if the file has no column 0."""
    from sklearn.datasets import load_svmlight_file

    if not path.stat().st_size:
        raise TableError(f"{path} is empty")
    with read_as(path, "svmlight", ValueError, OverflowError):
        X, y = load_svmlight_file(str(path), zero_based=True)
    first = int(X.nnz > 0 and X.indices.min() > 0)
    names = numbered_names(path, first, X.shape[1])
    is_integer = ((y == np.trunc(y)) & (np.abs(y) < EXACT)).all()
    source = _source(path, X[:, first:], names, {"target": y.astype(np.int64) if is_integer else y}, "target")
    return replace(source, may_lack_last_columns=True)


def _read_npz(path: Path) -> MatrixSource:
    """Read X, or the parts of a sparse matrix; every other array with one value per row is an extra column."""
    with read_as(path, "NPZ", Exception):  # zipfile and numpy raise many kinds of errors for damaged files
        arrays = _load_arrays(path)
        is_sparse = all(part in arrays for part in SPARSE_PARTS)
        X = _sparse_matrix(arrays) if is_sparse else arrays.pop("X", None)
    if X is None or X.ndim != 2:
        content = ", ".join(arrays) or "nothing" if X is None else f"X of shape {X.shape}"
        raise TableError(
            f"{path} contains {content}: it needs a matrix X, or data, indices, indptr and shape of a sparse matrix"
        )
    names = arrays.pop("feature_names", None)
    if names is not None and len(names) != X.shape[1]:
        raise TableError(f"{path} contains {len(names):,} feature_names for {X.shape[1]:,} columns of X")
    class_names = arrays.pop("class_names", None)
    extra = {name: _with_class_names(part, class_names) for name, part in arrays.items() if part.shape == X.shape[:1]}
    if "y" in arrays and "y" not in extra:
        raise TableError(f"y in {path} has shape {arrays['y'].shape} and X has shape {X.shape}: give one value per row")
    columns = numbered_names(path, 0, X.shape[1]) if names is None else list(map(str, names))
    return _source(path, X, columns, extra, "y" if "y" in extra else None)


def _load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an NPZ file, after their headers were compared with the file; pickled objects are not loaded."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        require_memory(path, sum(member.file_size for member in members))
        for member in members:
            with archive.open(member) as file:
                shape, _, dtype, start = read_header(file)
            claimed = start + dtype.itemsize * math.prod(shape)
            if claimed != member.file_size and dtype.kind != "O":
                raise ValueError(f"{member.filename} claims {claimed:,} bytes and has {member.file_size:,}")
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _sparse_matrix(arrays: dict[str, NDArray[Any]]) -> Any:
    data, indices, indptr, shape = (arrays.pop(part) for part in SPARSE_PARTS)
    name = str(np.char.decode(arrays.pop("format", np.array(b"csr"))))
    if name not in SPARSE_FORMATS:
        raise ValueError(f"a sparse matrix in the format {name}, not csr or csc")
    X = SPARSE_FORMATS[name]((data, indices, indptr), shape=tuple(shape))
    X.check_format(full_check=True)
    return X.tocsr()


def _with_class_names(values: NDArray[Any], class_names: NDArray[Any] | None) -> NDArray[Any]:
    """Class numbers replaced by class names, if the numbers are 0, 1, ... or 1, 2, ... and there is a name for each."""
    if values.dtype.kind == "S":
        return np.char.decode(values)
    if class_names is None or values.dtype.kind not in "iu":
        return values
    numbers = np.unique(values)
    n_names = len(class_names)
    if len(numbers) == n_names and numbers[0] in (0, 1) and numbers[-1] - numbers[0] == n_names - 1:
        return class_names[values.astype(np.int64) - numbers[0]]
    return values


def _read_npy(path: Path) -> MatrixSource:
    """The mapped matrix; names and extra columns come from its sidecar."""
    X, sidecar = map_npy(path)
    extra = {name: np.array(values, dtype=object) for name, values in sidecar.columns.items()}
    return _source(path, X, sidecar.feature_names, extra, sidecar.target)


def _read_h5ad(path: Path) -> MatrixSource:
    """Read an AnnData file: its genes are the features; obs_names and the columns of obs are extra columns."""
    try:
        import anndata  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError:
        raise ImportError("reading .h5ad files needs anndata: pip install anndata") from None
    with read_as(path, "AnnData", OSError, KeyError, ValueError), warnings.catch_warnings(action="ignore"):
        data = anndata.read_h5ad(path)
    if data.X is None:
        raise TableError(f"{path} contains no X")
    X = sp.csr_matrix(data.X) if sp.issparse(data.X) else np.asarray(data.X)
    extra = {"obs_names": np.asarray(data.obs_names, dtype=object)}
    extra |= {str(name): _pandas_values(data.obs[name]) for name in data.obs.columns}
    return _source(path, X, list(map(str, data.var_names)), extra)


def _pandas_values(column: Any) -> NDArray[Any]:
    """A pandas column as an array; types that numpy does not have become text, None if a value is missing."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return column.to_numpy()
    missing = column.isna()
    return np.array([None if gone else str(value) for value, gone in zip(column, missing, strict=True)], dtype=object)
