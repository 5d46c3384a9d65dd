"""Writers of rankings and tables; the ending of the file name is the format."""

from __future__ import annotations

from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from ..validation.parameters import completed_file, writable_path
from .table import Table, TableError, first_line, pl

RANKING_FORMATS = (".csv", ".tsv", ".xlsx", ".parquet", ".json")
TABLE_FORMATS = (".csv", ".tsv", ".parquet", ".arrow", ".feather")


def write_ranking(path: str | PathLike[str], columns: dict[str, Any]) -> None:
    """Write columns of equal length to a .csv, .tsv, .xlsx, .parquet or .json file; NaN becomes an empty value.

    In text files, a ' is put before names that a spreadsheet would run as a formula, such as names that begin with =.
    """
    frame, path = pl.DataFrame(columns).fill_nan(None), require_ranking_path(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        frame = frame.with_columns(pl.col(pl.String).str.replace(r"^([=@\t\r]|[+-].*[(|!])", "'${1}"))
    _write(frame, path)


def write_table(path: str | PathLike[str], table: Table) -> None:
    """Write the ids (if any), the features and the target to a .csv, .tsv, .parquet, .arrow or .feather file.

    A sparse table is written as a dense one: select the columns with `Table.take` first.
    """
    path = require_table_path(path)
    X = table.X.toarray() if sp.issparse(table.X) else table.X
    frame = table.with_categories(pl.from_numpy(X, schema=table.feature_names, orient="row"))
    ids = [] if table.ids is None else [pl.Series(table.id_column, table.ids.tolist())]
    try:
        fields = {"time": table.target, "event": table.event} if table.event else {}
        targets = [pl.Series(name, table.y[field]) for field, name in fields.items()]
        targets = targets or [pl.Series(table.target, table.y.tolist())]
        columns = [*ids, *frame.get_columns(), *targets]
        frame = pl.DataFrame(columns)
    except pl.exceptions.DuplicateError:
        names = repr(table.target) if table.ids is None else f"{table.id_column!r} or {table.target!r}"
        raise TableError(f"{path} cannot be written: {names} is the name of two columns") from None
    _write(frame, path)


def require_ranking_path(path: str | PathLike[str]) -> Path:
    """The path, if `write_ranking` can write it: a known format in an existing folder."""
    checked = writable_path(path, RANKING_FORMATS, error=TableError)
    if checked.suffix.lower() == ".xlsx" and find_spec("xlsxwriter") is None:
        raise ImportError(f"{path}: writing Excel needs xlsxwriter, in the excel extra: pip install 'probewise[excel]'")
    return checked


def require_table_path(path: str | PathLike[str]) -> Path:
    """The path, if `write_table` can write it."""
    return writable_path(path, TABLE_FORMATS, error=TableError)


def _write(frame: pl.DataFrame, path: Path) -> None:
    ending = path.suffix.lower()
    try:
        with completed_file(path) as file:
            if ending == ".parquet":
                frame.write_parquet(file)
            elif ending == ".json":
                frame.write_json(file)
            elif ending == ".xlsx":
                frame.write_excel(file, worksheet="ranking", float_precision=6, autofit=True, freeze_panes=(1, 1))
            elif ending in (".arrow", ".feather"):
                frame.write_ipc(file)
            else:
                frame.write_csv(file, separator="\t" if ending == ".tsv" else ",")
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        # polars and xlsxwriter have errors of their own, without a number, for a full or read-only disk
        raise TableError(f"{path} cannot be written: {first_line(error)}") from error
