"""Conversion of a table of any format to a memory-mapped one, some columns at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from ..validation.errors import Parameter, Setting
from ..validation.parameters import choice, writable_path
from .checking import checked_decimal, require_names, require_rows
from .formats import LazySource, lies_in_rows, open_by_columns
from .npy import Sidecar, Value, sidecar_of, write_npy
from .table import Progress, Source, TableError, pl, some
from .text import Wanted
from .unpacking import local_path

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
    """Write the table at ``path`` to a .npy file in Fortran order, with a .json file beside it.

    `read_table` and ``np.load(out, mmap_mode="r")`` map such a file, and read only the columns they are asked for.
    The .json file holds the names of the columns, the target and the ids. A Parquet file, or an Arrow file that is no
    stream, is read in groups of columns of 4 million values; other formats are read as a whole.

    Parameters
    ----------
    path, out : path-like
        The table, and the .npy file to be written.
    target, ignore, id_column : optional
        As in `read_table`. Without a target all columns are features; one may be named when the result is read.
    dtype : {"float32", "float64"}, default=None
        Type of all values; None: float32 if all features are, integer if all are, else float64. Missing values
        become NaN.
    decimal : {".", ","}, default=None
        As in `read_table`.
    force : bool, default=False
        Write over files that are there.
    progress : callable, default=None
        Called with a line of text now and then.

    Returns
    -------
    tuple of int
        Rows and columns written.
    """
    path, out = local_path(path), Path(out)
    _require_place(path, out, force=force)
    if dtype is not None and dtype not in DTYPES:
        raise TableError(Parameter("dtype", dtype), f" is not known: choose {choice(DTYPES)}")
    asked = [(name, role) for name, role in ((target, "target"), (id_column, "id")) if name is not None]
    if lies_in_rows(path):
        raise TableError(f"{path} has its features in rows, and only tables with features in columns can be mapped")
    source = open_by_columns(path, Wanted(asked, decimal=checked_decimal(decimal)), progress)
    require_rows(source)
    features, beside = _roles(source, target, list(ignore), id_column)
    if id_column is None and len(found := source.naming(features)) == 1 < len(features):
        features, beside = [place for place in features if place not in found], [*beside, *found]
    names = [source.names[place] for place in features]
    aim = source.target if target is None else source.names[source.place(target, "target")]
    require_names(source.names, features, aim or "")
    sidecar = Sidecar(names, {source.names[place]: _values(source.column(place)) for place in beside}, aim)
    kind, blocks = _blocks(source, np.array(features), None if dtype is None else np.dtype(dtype))
    if progress:
        blocks = _with_progress(blocks, path, len(features), progress)
    write_npy(out, (source.n_rows, len(features)), kind, blocks, sidecar)
    return source.n_rows, len(features)


def _require_place(path: Path, out: Path, *, force: bool) -> None:
    writable_path(out, [".npy"], "{} has no format that can be mapped: name it {}", TableError)
    for file in (out, sidecar_of(out)):
        if file.is_dir():
            raise TableError(f"{file} cannot be written: it is a folder")
        if file.exists() and path.exists() and file.samefile(path):
            raise TableError(f"{file} would be written over the table it is made of: choose another name")
        if file.exists() and not force:
            raise TableError(
                f"{file} exists already: choose another name, or write over it (", Setting("force", True), ")"
            )


def _roles(source: Source, target: str | None, ignore: list[str], id_column: str | None) -> tuple[list[int], list[int]]:
    """The columns that are features, and those kept beside them: what is named, and what the format has beside."""
    n_features = len(source.names) - source.beside
    ignored = {source.place(name, "ignored") for name in ignore}
    named = [source.place(target, "target")] if target is not None else []
    named += [source.place(id_column, "id")] if id_column is not None else []
    if ignored & set(named):
        raise TableError(f"column {source.names[min(ignored & set(named))]!r} cannot be both kept and ignored")
    features = [place for place in range(n_features) if place not in ignored and place not in named]
    if not features:
        raise TableError(f"{source.path} has no columns left to be features: is the separator right?")
    others = [place for place in range(n_features, len(source.names)) if place not in ignored]
    return features, list(dict.fromkeys([*named, *others]))


def _values(column: pl.Series) -> list[Value]:
    """The column as JSON has it: numbers, truth values or text."""
    if column.dtype.is_decimal():
        column = column.cast(pl.Float64)
    plain = column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)
    return (column if plain else column.cast(pl.String)).to_list()


def _blocks(
    source: Source, features: NDArray[np.intp], dtype: np.dtype[Any] | None
) -> tuple[np.dtype[Any], Iterator[NDArray[Any]]]:
    """The type of all features, and the features, some columns at a time."""
    parts = list(gen_batches(len(features), max(1, CELLS_AT_A_TIME // source.n_rows)))
    if isinstance(source, LazySource):
        kind = dtype or source.dtype(features)
        blocks = (source.matrix(features[part]) for part in parts)
    else:
        X = source.matrix(features)
        X = X.tocsc() if sp.issparse(X) else X
        kind = dtype or X.dtype
        blocks = (X[:, part].toarray() if sp.issparse(X) else X[:, part] for part in parts)
    return kind, (_cast(block, kind, source, features[part]) for block, part in zip(blocks, parts, strict=True))


def _cast(block: NDArray[Any], dtype: np.dtype[Any], source: Source, places: NDArray[np.intp]) -> NDArray[Any]:
    if block.dtype.kind == "f" and dtype.kind != "f":
        lost = [source.names[place] for place in places[~np.isfinite(block).all(axis=0)].tolist()]
        raise TableError(
            f"values are missing in columns of whole numbers, {some(lost)}: fill them in, or write floats, which have "
            "NaN (",
            Setting("dtype", "float64"),
            ")",
        )
    try:
        with np.errstate(over="raise"):
            return block.astype(dtype, copy=False)
    except FloatingPointError:
        wide = [source.names[place] for place in places[(np.abs(block) > np.finfo(dtype).max).any(axis=0)].tolist()]
        remedy = Setting("dtype", "float64")
        raise TableError(f"values are too large for {dtype} in {some(wide)}: give ", remedy) from None


def _with_progress(
    blocks: Iterator[NDArray[Any]], path: Path, n_columns: int, progress: Progress
) -> Iterator[NDArray[Any]]:
    done = 0
    for block in blocks:
        yield block
        done += block.shape[1]
        progress(f"converting {path.name}: {done / n_columns:.0%}")
