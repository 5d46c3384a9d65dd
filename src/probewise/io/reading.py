"""Reading of tables: features, target, ids, weights and groups of a file, checked to be usable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..validation.errors import Message, Parameter, Setting
from ..validation.stores import Stored
from .checking import Rows, checked_decimal, checked_table, require_names, require_rows
from .formats import MatrixSource, lies_in_rows, open_source
from .names import names_in, with_names
from .table import SHOWN, Progress, Source, Table, TableError, missing, pl, some
from .text import Wanted, in_rows
from .unpacking import STANDARD_INPUT, local_path

FEATURES_IN = ("columns", "rows")


def read_table(
    path: str | PathLike[str],
    *,
    target: str | None = None,
    ignore: Iterable[str] = (),
    target_file: str | PathLike[str] | None = None,
    drop_unlabelled: bool = False,
    id_column: str | None = None,
    features_in: str = "columns",
    weights: str | None = None,
    groups: str | None = None,
    categorical: Iterable[str] = (),
    feature_names: str | PathLike[str] | Sequence[str] | None = None,
    decimal: str | None = None,
    gaps: bool = False,
    progress: Progress | None = None,
) -> Table:
    """Read the table at ``path``.

    Text (.csv, .tsv, .txt, .arff, .gct, all also as .gz, .bz2, .xz or .zst), Excel (.xlsx, with the excel extra),
    Parquet, Arrow (.arrow, .feather, .ipc), svmlight (.svmlight, .libsvm, .svm), NPZ, NPY and AnnData (.h5ad, with
    anndata installed). X is float32 if all features are, integer if all are (true and false count as 1 and 0), else
    float64; what is sparse stays sparse (CSR). y keeps numbers as numbers and text as labels. A `TableError` says what
    is wrong with a table that cannot be ranked; what had to be guessed is in the table's ``notes``.

    Parameters
    ----------
    path : path-like
        The file; "-" for text from standard input.
    target : str, default=None
        The column to predict, by name, or by index from 0 where no column has that name. None: the one that the
        format names (svmlight; y in NPZ; a converted table's), or the only one there is in ``target_file``.
    ignore : iterable of str, default=()
        Columns to leave out, named in the same way.
    target_file : path-like, default=None
        A second file that holds the target, its rows in the same order if there is no ``id_column``.
    drop_unlabelled : bool, default=False
        Whether rows without a target are left out, with a note; else they are an error. In ``target_file`` a row may
        then be missing altogether.
    id_column : str, default=None
        Names the rows, and is no feature; rows of ``target_file`` are found by its column of that name, else by its
        first. None: a column of text that is different in every row, if there is one.
    features_in : {"columns", "rows"}, default="columns"
        "rows" for a file with a sample in each column and the names of the features in the first. Its target is a
        row of that name, or in ``target_file``, found by the names of the samples. GCT files and GEO's series matrices
        (.txt) are always read so; what they say of the samples, such as "tissue: liver", can be the target.
    weights, groups : str, default=None
        A column of the table (a row, if ``features_in`` is "rows"), by name or by index, that is no feature: weights
        of the rows, or labels of the rows that belong together.
    categorical : iterable of str, default=()
        Features that are categories, named in the same way: text, or numbers that stand for kinds. X holds their
        numbers, and the table their levels.
    feature_names : path-like or sequence of str, default=None
        Names of the columns where the format has none, as svmlight: in order, or a text file with one in each line.
    decimal : {".", ","}, default=None
        The decimal mark of numbers in text. None: a comma if numbers have one and none has a point.
    gaps : bool, default=False
        Whether features may have missing values, which are NaN then. Infinite ones are always refused.
    progress : callable, default=None
        Called with a line of text now and then while a large text is read.

    Returns
    -------
    Table

    Notes
    -----
    An NPZ file holds X, or data, indices, indptr and shape of a CSR matrix; y; and optionally feature_names and
    class_names. An NPY file is mapped, not read: X is a `numpy.memmap`; names, target and ids are those that
    `convert_table` wrote beside it, or columns have their numbers for names. The columns of an AnnData file are its
    genes, its target is a column of obs, and obs_names may be the ``id_column``.
    """
    if features_in not in FEATURES_IN:
        raise TableError(
            Parameter("features_in", features_in), f" is not known: choose one of {', '.join(FEATURES_IN)}"
        )
    path, second = local_path(path), None if target_file is None else local_path(target_file)
    if path == second == STANDARD_INPUT:
        raise TableError("the table and the target cannot both be standard input: name a file for one of them")
    names = None if feature_names is None else names_in(feature_names)
    of_rows = {role: name for role, name in (("weights", weights), ("groups", groups)) if name is not None}
    asked = _Request(
        target, list(ignore), second, drop_unlabelled, id_column, of_rows, tuple(categorical), names,
        checked_decimal(decimal), gaps, progress,
    )  # fmt: skip
    by_rows = features_in == "rows" or lies_in_rows(path)
    if asked.categorical and by_rows:
        raise TableError(
            "categorical features are read from columns: leave ",
            Parameter("categorical"),
            " or ",
            Setting("features_in", "rows"),
            " out",
        )
    return (_by_rows if by_rows else _by_columns)(path, asked)


def read_pairs(path: str | PathLike[str], what: str) -> list[tuple[str, str]]:
    """The rows of a small table of two columns, as text: a feature, and ``what`` is said of it."""
    path = local_path(path)
    source = open_source(path, Wanted(all=True))
    names = [name.strip().lower() for name in source.names]
    places = [names.index(name) if name in names else at for at, name in enumerate(("feature", what))]
    if len(names) < 2 or places[0] == places[1]:
        raise TableError(
            f"{path} must have two columns, with a header: feature and {what}; it has {some(source.names)}"
        )
    require_rows(source)
    return list(zip(*(source.keys(place) for place in places), strict=True))


@dataclass(frozen=True)
class _Request:
    target: str | None
    ignore: list[str]
    target_file: Path | None
    drop_unlabelled: bool
    id_column: str | None
    of_rows: dict[str, str]  # what else is asked of the rows, by its role
    categorical: tuple[str, ...]
    names: list[str] | None
    decimal: str | None
    gaps: bool
    progress: Progress | None

    @property
    def how(self) -> dict[str, bool]:
        """How what was read is checked."""
        return {"gaps": self.gaps, "drop_unlabelled": self.drop_unlabelled}

    @property
    def inside(self) -> str | None:
        """The target, if it is asked for in the table itself."""
        return self.target if self.target_file is None else None


def _by_columns(path: Path, asked: _Request) -> Table:
    roles = [(asked.inside, "target"), (asked.id_column, "id"), *((name, role) for role, name in asked.of_rows.items())]
    roles += [(name, "categorical") for name in asked.categorical]
    wanted = Wanted([(name, role) for name, role in roles if name is not None], decimal=asked.decimal)
    source = with_names(open_source(path, wanted, asked.progress), asked.names)
    place = None if asked.target_file is not None else _target_place(source, asked)
    id_place = None if asked.id_column is None else source.place(asked.id_column, "id")
    ignored = {source.place(name, "ignored") for name in asked.ignore}
    of_rows = {role: source.place(name, role) for role, name in asked.of_rows.items()}
    _require_one_role({**of_rows, "target": place}, asked, ignored)
    require_rows(source)
    taken = {place, id_place, *ignored, *of_rows.values()}
    features = [column for column in range(len(source.names) - source.beside) if column not in taken]
    if not features:
        beside = "" if place is None else f" beside the target {source.names[place]!r}"
        raise TableError(f"{path} has no columns{beside}: is the separator right?")
    categorical = _categorical_among(features, source, asked)
    notes = source.notes
    if asked.id_column is None and (found := _naming(source, [at for at in features if at not in categorical])):
        id_place, features = found[0], [at for at in features if at not in found]
        notes = (*notes, _taken_as_id(source.names[id_place] or str(id_place)))
    ids = None if id_place is None else source.keys(id_place)
    labels = _labels_beside(source, asked, ids) if place is None else source.column(place)
    require_names(source.names, features, labels.name)
    names = [source.names[column] for column in features]
    X, levels = _with_levels(source, features, categorical) if categorical else (source.matrix(np.array(features)), {})
    more = {role: source.column(found) for role, found in of_rows.items()}
    table = checked_table(Rows(X, labels, more, ids, "data row {0:,}".format), names, **asked.how)
    id_column = "id" if id_place is None else asked.id_column or source.names[id_place] or "id"
    return replace(table, id_column=id_column, levels=levels, notes=(*notes, *table.notes))


def _target_place(source: Source, asked: _Request) -> int:
    try:
        return source.place(asked.inside or _target_of(source), "target")
    except TableError:
        is_matrix = isinstance(source, MatrixSource)
        if asked.inside is not None and not is_matrix and source.n_rows and asked.inside in source.keys(0):
            raise in_rows(asked.inside) from None
        raise


def _naming(source: Source, features: Sequence[int]) -> list[int]:
    """The column that names the rows, if there is one that must be meant; two of them are refused."""
    found = source.naming(features)
    if len(found) > 1:
        names = [source.names[place] for place in found]
        raise TableError(
            f"{some(names)} hold text that is different in every row: say which of them names the rows (",
            Setting("id_column", names[0]),
            "), and leave out the others (",
            Setting("ignore", names[1:]),
            ")",
        )
    return found if len(features) > len(found) else []


def _taken_as_id(name: str) -> Message:
    return (
        f"column {name!r}, text that is different in every row, is taken to name the rows (",
        Setting("id_column", name),
        ")",
    )


def _labels_beside(source: Source, asked: _Request, ids: list[str] | None) -> pl.Series:
    """The target of the second file; where it has the names of columns for ids, the features are in rows."""
    try:
        return _labels_from(asked, ids, source.n_rows)
    except TableError:
        assert asked.target_file is not None
        second = open_source(asked.target_file, Wanted(all=True))
        samples = set(source.names[1:])
        if any(samples <= set(second.keys(place)) for place in range(len(second.names))):
            raise TableError(
                f"{asked.target_file} names the columns of {source.path}, not its rows: the features seem to be in "
                "rows (",
                Setting("features_in", "rows"),
                ")",
            ) from None
        raise


def _categorical_among(features: list[int], source: Source, asked: _Request) -> list[int]:
    """The places in the file of features that are categories."""
    places = [source.place(name, "categorical") for name in asked.categorical]
    among = set(features)
    for name, place in zip(asked.categorical, places, strict=True):
        if place not in among:
            raise TableError(f"column {name!r} cannot be categorical: it is the target, ignored, or no feature")
    return places


def _with_levels(source: Source, features: list[int], categorical: list[int]) -> tuple[Any, dict[int, list[str]]]:
    """The features as numbers, those of a category -1 where it is missing, and the levels of each category."""
    X = np.empty((source.n_rows, len(features)), order="F")
    numbers = [place for place in features if place not in categorical]
    if numbers:
        rest = source.matrix(np.array(numbers))
        if sp.issparse(rest) or isinstance(rest, np.memmap | Stored):
            raise TableError(f"{source.path} is a sparse or mapped table: encode its categorical columns first")
        X[:, [place not in categorical for place in features]] = rest
    levels = {}
    for at, place in enumerate(features):
        if place in categorical:
            texts = source.column(place).cast(pl.String)
            levels[at] = texts.drop_nulls().unique().sort().to_list()
            X[:, at] = (texts.rank("dense").cast(pl.Float64) - 1).fill_null(-1).to_numpy()
    return X, levels


def _by_rows(path: Path, asked: _Request) -> Table:
    """As if the file were turned: its first column names the features, its other columns are the samples."""
    as_text = frozenset([*asked.ignore, *([] if asked.inside is None else [asked.inside]), *asked.of_rows.values()])
    source = open_source(path, Wanted(by_rows=True, rows=as_text, decimal=asked.decimal), asked.progress)
    require_rows(source)
    names = source.keys(0)
    if asked.target is None and asked.target_file is None:
        said = f": {path} says of its samples {some(names[: source.annotations])}" if source.annotations else ""
        remedy = Setting("target"), ") or a second file (", Setting("target_file"), f"){said}"
        raise TableError("say where the target is: a row (", *remedy)
    place = None if asked.inside is None else _row_of(asked.inside, names)
    rows = {name for name in asked.ignore if name in names}
    columns = {source.place(name, "ignored") for name in asked.ignore if name not in rows}
    of_rows = {role: _row_of(name, names, role) for role, name in asked.of_rows.items()}
    _require_one_role({**of_rows, "target": place}, asked, {names.index(name) for name in rows}, "row")
    samples = [column for column in range(1 + source.descriptions, len(source.names)) if column not in columns]
    taken = {place, *of_rows.values(), *range(source.annotations)}
    features = [row for row, name in enumerate(names) if row not in taken and name not in rows]
    if not samples or not features:
        raise TableError(f"{path} has no {'rows' if samples else 'columns'} left to be features and samples")
    ids = [source.names[column] for column in samples]
    labels = (
        _labels_from(asked, ids, len(ids), by_rows=True)
        if place is None
        else source.row(place, samples).alias(names[place])
    )
    require_names(names, features, labels.name, "row")
    X = np.asfortranarray(source.matrix(np.array(samples), np.array(features)).T)
    more = {role: source.row(row, samples).alias(names[row]) for role, row in of_rows.items()}
    rows_read = Rows(X, labels, more, ids, lambda row: f"sample {ids[row - 1]!r}")
    table = checked_table(rows_read, [names[row] for row in features], **asked.how)
    return replace(table, id_column=asked.id_column or "sample", notes=(*source.notes, *table.notes))


def _row_of(asked: str, names: list[str], role: str = "target") -> int:
    if asked not in names:
        raise missing(asked, names, f"{role} row")
    return names.index(asked)


def _require_one_role(roles: dict[str, int | None], asked: _Request, ignored: set[int], what: str = "column") -> None:
    """Weights, groups and target are columns of their own; groups may be the ids, which are read as text."""
    names = {**asked.of_rows, "target": asked.target}
    for role, place in roles.items():
        if place in ignored:
            raise TableError(f"{what} {names[role]!r} cannot be both the {role} and ignored")
    for (role, place), (other, same) in combinations(roles.items(), 2):
        if place == same:
            raise TableError(f"{what} {names[role]!r} cannot be both the {role} and the {other}")


def _target_of(source: Source) -> str:
    """The target that the format names."""
    if source.target is None:
        named = source.names[len(source.names) - source.beside :] or source.names
        between = [] if len(named) <= 2 * SHOWN else [f"{len(named) - 2 * SHOWN:,} more"]
        ends = [repr(name) for name in (*named[:SHOWN], *named[max(SHOWN, len(named) - SHOWN) :])]
        raise TableError(
            "say which column is the target (",
            Setting("target"),
            "), or give a second file that holds it (",
            Setting("target_file"),
            f"): {source.path} has {', '.join([*ends[:SHOWN], *between, *ends[SHOWN:]])}",
        )
    return source.target


def _labels_from(asked: _Request, ids: list[str] | None, n_rows: int, *, by_rows: bool = False) -> pl.Series:
    """The target column of the second file, a value for each row of the first."""
    path = asked.target_file
    assert path is not None
    source = open_source(path, Wanted(all=True))
    require_rows(source)
    key = None if ids is None else _key(source, ids, asked, by_rows=by_rows)
    target = asked.target or source.target
    if target is not None:
        place = source.place(target, "target")
    else:
        others = [place for place in range(len(source.names)) if place != key]
        if len(others) != 1:
            named = [source.names[place] for place in others]
            raise TableError(
                f"say which column of {path} is the target (", Setting("target"), f"): it has {some(named)}"
            )
        place = others[0]
    labels = source.column(place)
    if key is not None and ids is not None:
        return labels.gather(pl.Series(_found(source, key, ids, may_lack=asked.drop_unlabelled), dtype=pl.UInt32))
    if len(labels) != n_rows:
        remedy: Message = ("is its first line no header?",)
        if len(labels) != n_rows - 1:
            remedy = ("give a column of ids (", Setting("id_column"), ")")
        raise TableError(f"{path} has {len(labels):,} rows and the table {n_rows:,}: ", *remedy)
    return labels


def _key(source: Source, ids: list[str], asked: _Request, *, by_rows: bool) -> int | None:
    """The column of the second file that holds the ids, or most of them where rows without a target are left out;
    None: its rows are in the same order."""
    if (id_column := asked.id_column) is not None:
        if by_rows or id_column in source.names:
            return source.place(id_column, "id")
        if len(source.names) == 1:
            raise TableError(
                f"{source.path} has one column only: to find rows by ",
                Setting("id_column", id_column),
                " it needs ids too",
            )
        return 0
    wanted = set(ids)
    most, best = len(wanted) / 2, None
    for place in range(len(source.names)):
        n_known = len(wanted.intersection(source.keys(place)))
        if n_known == len(wanted):
            return place
        if n_known > most:
            most, best = n_known, place
    if best is not None and asked.drop_unlabelled:
        return best
    if len(source.names) == 1 or not by_rows:
        return None
    raise TableError(
        f"no column of {source.path} holds the names of all samples, {some(ids)}: name the one that should (",
        Setting("id_column"),
        ")",
    )


def _found(source: Source, key: int, ids: list[str], *, may_lack: bool = False) -> list[int | None]:
    """The row of each id; None where it may lack and does."""
    rows: dict[str, int] = {}
    wanted = set(ids)
    for row, name in enumerate(source.keys(key)):
        if rows.setdefault(name, row) != row and name in wanted:
            raise TableError(f"the id {name!r} stands in rows {rows[name] + 1:,} and {row + 1:,} of {source.path}")
    lost = [name for name in ids if name not in rows]
    if lost and not may_lack:
        raise TableError(
            f"{len(lost):,} of {len(ids):,} ids are not in column {source.names[key]!r} of {source.path}: {some(lost)}",
            "; add them or leave out those rows (",
            Setting("drop_unlabelled", True),
            ")",
        )
    return [rows.get(name) for name in ids]
