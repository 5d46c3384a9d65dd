"""Conversion of tables of any format to memory-mapped .npy files, a group of columns at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from ..validation.parameters import choice, writable_path
from .formats import LazySource, has_features_in_rows, open_lazily
from .input_files import local_path
from .npy import Sidecar, Value, sidecar_of, write_npy
from .table import Progress, Source, TableError, first_few, pl
from .table_validation import require_decimal, require_names, require_rows
from .text import TextOptions

DTYPES = ("float32", "float64")
CELLS_AT_A_TIME = 2**22


def convert_table(
    path: str | PathLike[str],
    out: str | PathLike[str],
    *,
    target: str | None = None,
    ignore: Iterable[str] = (),
    id_column: str | None = None,
    dtype: str | None = None,
    decimal: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Write the table at ``path`` to a .npy file in Fortran order, and its names and target to a .json file.

    `read_table` and ``np.load(out, mmap_mode="r")`` map such a file and read only the columns that are used. Parquet
    files, and Arrow files that are not streams, are converted in groups of columns of 4 million values; files of other
    formats are loaded as a whole. Returns the numbers of rows and columns written.

    Parameters
    ----------
    path, out : path-like
        The table, and the .npy file to write. The .json file is written next to it.
    target, ignore, id_column : optional
        The same parameters as in `read_table`. Without a target all columns are features; `read_table` can choose the
        target later.
    dtype : {"float32", "float64"}, default=None
        Type of all values. None means float32 if all features are float32, an integer type if all are integers, else
        float64. Missing values become NaN.
    decimal : {".", ","}, default=None
        Decimal mark of numbers in text files; None guesses it.
    force : bool, default=False
        Whether existing files are overwritten.
    progress : callable, default=None
        Called with a line of text from time to time.
    """
    path, out = local_path(path), Path(out)
    _require_output(path, out, force=force)
    require_decimal(decimal)
    if dtype is not None and dtype not in DTYPES:
        raise TableError(f"dtype={dtype!r} must be {choice(DTYPES)}")
    if has_features_in_rows(path):
        raise TableError(f"{path} has its features in rows: only tables with features in columns can be converted")
    text_columns = [(name, role) for name, role in ((target, "target"), (id_column, "id")) if name is not None]
    source = open_lazily(path, TextOptions(text_columns, decimal=decimal), progress)
    require_rows(source)
    features, extra = _columns(source, target, list(ignore), id_column)
    if id_column is None and len(ids := source.id_columns(features)) == 1 < len(features):
        features, extra = [index for index in features if index not in ids], [*extra, *ids]
    names = [source.names[index] for index in features]
    target_name = source.target if target is None else source.names[source.column_index(target, "target")]
    require_names(source.names, features, target_name or "")
    sidecar = Sidecar(names, {source.names[index]: _json_values(source.column(index)) for index in extra}, target_name)
    common_dtype, blocks = _blocks(source, np.array(features), None if dtype is None else np.dtype(dtype), progress)
    write_npy(out, (source.n_rows, len(features)), common_dtype, blocks, sidecar)
    return source.n_rows, len(features)


def _require_output(path: Path, out: Path, *, force: bool) -> None:
    writable_path(out, [".npy"], "{} cannot be mapped: name it {}", TableError)
    for file in (out, sidecar_of(out)):
        if file.is_dir():
            raise TableError(f"{file} cannot be written: it is a folder")
        if file.exists() and path.exists() and file.samefile(path):
            raise TableError(f"{file} would overwrite the table that is converted: choose another name")
        if file.exists() and not force:
            raise TableError(f"{file} already exists: choose another name or overwrite it (force=True)")


def _columns(
    source: Source, target: str | None, ignore: list[str], id_column: str | None
) -> tuple[list[int], list[int]]:
    """The columns that are features, and the extra columns: target, ids, and those of the format."""
    ignored = {source.column_index(name, "ignored") for name in ignore}
    named = [source.column_index(target, "target")] if target is not None else []
    named += [source.column_index(id_column, "id")] if id_column is not None else []
    if ignored & set(named):
        raise TableError(f"column {source.names[min(ignored & set(named))]!r} cannot be both used and ignored")
    features = [index for index in range(source.n_features) if index not in ignored and index not in named]
    if not features:
        raise TableError(f"{source.path} has no columns left as features: is the separator right?")
    others = [index for index in range(source.n_features, len(source.names)) if index not in ignored]
    return features, list(dict.fromkeys([*named, *others]))


def _json_values(column: pl.Series) -> list[Value]:
    """The column as numbers, booleans or text."""
    if column.dtype.is_decimal():
        column = column.cast(pl.Float64)
    is_plain = column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)
    return (column if is_plain else column.cast(pl.String)).to_list()


def _blocks(
    source: Source, features: NDArray[np.intp], dtype: np.dtype[Any] | None, progress: Progress | None
) -> tuple[np.dtype[Any], Iterator[NDArray[Any]]]:
    """The common type of the features, and the features in groups of columns."""
    X: Any = None if isinstance(source, LazySource) else source.matrix(features)
    X = X.tocsc() if sp.issparse(X) else X
    common = dtype or (source.dtype(features) if isinstance(source, LazySource) else X.dtype)

    def blocks() -> Iterator[NDArray[Any]]:
        for part in gen_batches(len(features), max(1, CELLS_AT_A_TIME // source.n_rows)):
            block = source.matrix(features[part]) if X is None else X[:, part]
            yield _cast(block.toarray() if sp.issparse(block) else block, common, source, features[part])
            if progress:
                progress(f"converting {source.path.name}: {part.stop / len(features):.0%}")

    return common, blocks()


def _cast(block: NDArray[Any], dtype: np.dtype[Any], source: Source, columns: NDArray[np.intp]) -> NDArray[Any]:
    if block.dtype.kind == "f" and dtype.kind != "f":
        bad = [source.names[index] for index in columns[~np.isfinite(block).all(axis=0)].tolist()]
        raise TableError(
            f"values are missing in the integer columns {first_few(bad)}: fill them in, or use dtype='float64', "
            "which has NaN"
        )
    try:
        with np.errstate(over="raise"):
            return block.astype(dtype, copy=False)
    except FloatingPointError:
        bad = [source.names[index] for index in columns[(np.abs(block) > np.finfo(dtype).max).any(axis=0)].tolist()]
        raise TableError(f"values are too large for {dtype} in {first_few(bad)}: use dtype='float64'") from None
