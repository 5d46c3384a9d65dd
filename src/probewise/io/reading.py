"""Reading of tables: features, target, ids, weights and groups of a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..validation.stores import Stored
from .formats import MatrixSource, has_features_in_rows, open_source
from .input_files import STANDARD_INPUT, lines_of, local_path, no_such_file
from .second_file import columns_of_second_file, notes_on_groups, roles_in_second
from .table import N_SHOWN, Progress, Source, Table, TableError, first_few, pl, unknown_name
from .table_validation import COVARIATE, Rows, require_decimal, require_names, require_rows, validated_table
from .text import TextOptions, target_is_row

FEATURES_IN = ("columns", "rows")


def read_table(
    path: str | PathLike[str],
    *,
    target: str | None = None,
    ignore: Iterable[str] = (),
    target_file: str | PathLike[str] | None = None,
    drop_unlabeled: bool = False,
    id_column: str | None = None,
    features_in: str = "columns",
    sample_weight: str | None = None,
    groups: str | None = None,
    event: str | None = None,
    adjust: Iterable[str] = (),
    categorical_features: Iterable[str] = (),
    feature_names: str | PathLike[str] | Sequence[str] | None = None,
    decimal: str | None = None,
    allow_missing: bool = False,
    progress: Progress | None = None,
) -> Table:
    """Read the table at ``path``.

    Formats: text (.csv, .tsv, .txt, .arff, .gct, also compressed as .gz, .bz2, .xz or .zst), Excel (.xlsx, with the
    excel extra), Parquet, Arrow (.arrow, .feather, .ipc), svmlight (.svmlight, .libsvm, .svm), NPZ, NPY and AnnData
    (.h5ad, with anndata installed). X is float32 if all features are float32, an integer type if all are integers
    (true and false are 1 and 0), else float64; a sparse table stays sparse (CSR). y contains numbers or labels. A
    `TableError` says what is wrong with a table that cannot be used; the ``notes`` of the table list all guesses.

    Parameters
    ----------
    path : path-like
        The file; "-" for text from standard input.
    target : str, default=None
        The column to predict, by name, or by index from 0 if no column has that name. None means the target that the
        format declares (svmlight; y in NPZ; converted tables), or the only column of ``target_file``.
    ignore : iterable of str, default=()
        Columns to leave out, by name or index.
    target_file : path-like, default=None
        A second file that contains the target. Without ``id_column`` its rows are in the same order.
    drop_unlabeled : bool, default=False
        Whether rows without a target, or not in ``target_file``, are left out, with a note. Otherwise they are an
        error.
    id_column : str, default=None
        The column that names the rows; it is not a feature. Rows of ``target_file`` are matched by its column of the
        same name, or by its first column. None means a column of text that differs in every row, if there is one.
    features_in : {"columns", "rows"}, default="columns"
        "rows" for a file with a sample in each column and the feature names in the first column. The target is then a
        row of the file, or in ``target_file``, matched by the sample names. GCT files and GEO's series matrices (.txt)
        are always read in this way; an annotation of the samples, such as "tissue: liver", can be the target.
    sample_weight, groups : str, default=None
        The column (the row, with features in rows) of sample weights, or of labels of rows that belong together; it is
        not a feature. A column of ``target_file`` with this name is used first.
    event : str, default=None
        For survival outcomes: the column that is 1 (or true) where the event happened at the time in ``target``, and 0
        where the row is censored. y is then an array of events and times, as scikit-survival makes it.
    adjust : iterable of str, default=()
        Columns of covariates, numbers or categories, that features are adjusted for; they are not features.
    categorical_features : iterable of str, default=()
        Features that are categories, by name or index: text, or numbers that stand for categories. X contains their
        codes, and the table their levels.
    feature_names : path-like or sequence of str, default=None
        Names of the columns for formats without names, such as svmlight: a sequence, or a text file with a name per
        line.
    decimal : {".", ","}, default=None
        Decimal mark of numbers in text files. None means a comma if numbers contain commas and none contains a point.
    allow_missing : bool, default=False
        Whether features may have missing values, which become NaN. Infinite values are always refused.
    progress : callable, default=None
        Called with a line of text from time to time while a large text file is read.

    Notes
    -----
    An NPZ file contains X, or data, indices, indptr and shape of a CSR matrix; y; and optionally feature_names and
    class_names. An NPY file is mapped, not loaded: X is a `numpy.memmap`, and names, target and ids come from the .json
    file that `convert_table` wrote; without it, columns are named by their numbers. The features of an AnnData file are
    its genes, its target is a column of obs, and obs_names can be the ``id_column``.
    """
    if features_in not in FEATURES_IN:
        raise TableError(f"features_in={features_in!r} must be 'columns' or 'rows'")
    require_decimal(decimal)
    path, second_path = local_path(path), None if target_file is None else local_path(target_file)
    if path == second_path == STANDARD_INPUT:
        raise TableError("the table and the target_file cannot both be standard input: give a file for one of them")
    roles = {"sample_weight": sample_weight, "groups": groups, "event": event}
    roles |= {f"{COVARIATE} {number}": name for number, name in enumerate(adjust, start=1)}
    by_role = {role: name for role, name in roles.items() if name is not None}
    names = None if feature_names is None else names_in(feature_names)
    second = None if second_path is None else open_source(second_path, TextOptions(all_columns=True))
    in_second = {} if second is None else roles_in_second(second, by_role, target)
    by_role = {role: name for role, name in by_role.items() if role not in in_second}
    request = Request(
        target, list(ignore), second, drop_unlabeled, id_column, by_role, in_second, tuple(categorical_features), names,
        decimal, allow_missing, progress,
    )  # fmt: skip
    by_columns = features_in == "columns" and not has_features_in_rows(path)
    if request.categorical_features and not by_columns:
        raise TableError("categorical_features cannot be used with features_in='rows'")
    table = _read_by_columns(path, request) if by_columns else _read_by_rows(path, request)
    if second is None or groups is not None:
        return table
    return replace(table, notes=(*table.notes, *notes_on_groups(second, [target, id_column, *roles.values()])))


def read_pairs(path: str | PathLike[str], value_name: str) -> list[tuple[str, str]]:
    """The rows of a table with the columns "feature" and ``value_name``, as text."""
    path = local_path(path)
    source = open_source(path, TextOptions(all_columns=True))
    names = [name.strip().lower() for name in source.names]
    columns = [names.index(name) if name in names else index for index, name in enumerate(("feature", value_name))]
    if len(names) < 2 or columns[0] == columns[1]:
        raise TableError(
            f"{path} must have a header and two columns, feature and {value_name}; it has {first_few(source.names)}"
        )
    require_rows(source)
    return list(zip(*(source.texts(index) for index in columns), strict=True))


@dataclass(frozen=True)
class Request:
    """The validated arguments of `read_table`."""

    target: str | None
    ignore: list[str]
    second: Source | None  # the second file, with the target
    drop_unlabeled: bool
    id_column: str | None
    by_role: dict[str, str]  # names of the columns of sample weights, groups, events and covariates
    in_second: dict[str, str]  # those that are columns of the second file
    categorical_features: tuple[str, ...]
    feature_names: list[str] | None
    decimal: str | None
    allow_missing: bool
    progress: Progress | None

    @property
    def target_in_table(self) -> str | None:
        return self.target if self.second is None else None

    def validated(self, rows: Rows, names: list[str]) -> Table:
        return validated_table(rows, names, allow_missing=self.allow_missing, drop_unlabeled=self.drop_unlabeled)


def _read_by_columns(path: Path, request: Request) -> Table:
    roles = [(request.target_in_table, "target"), (request.id_column, "id")]
    roles += [(name, role) for role, name in request.by_role.items()]
    roles += [(name, "categorical") for name in request.categorical_features]
    options = TextOptions([(name, role) for name, role in roles if name is not None], decimal=request.decimal)
    source = _with_feature_names(open_source(path, options, request.progress), request.feature_names)
    target = None if request.second is not None else _target_column(source, request)
    id_index = None if request.id_column is None else source.column_index(request.id_column, "id")
    ignored = {source.column_index(name, "ignored") for name in request.ignore}
    by_role = {role: source.column_index(name, role) for role, name in request.by_role.items()}
    _require_one_role({**by_role, "target": target}, request, ignored)
    require_rows(source)
    not_features = {target, id_index, *ignored, *by_role.values()}
    features = [index for index in range(source.n_features) if index not in not_features]
    if not features:
        besides = "" if target is None else f" besides the target {source.names[target]!r}"
        raise TableError(f"{path} has no columns{besides}: is the separator right?")
    categorical = [source.column_index(name, "categorical") for name in request.categorical_features]
    if bad := [source.names[index] for index in categorical if index not in features]:
        raise TableError(f"column {bad[0]!r} cannot be categorical: it is the target, ignored, or not a feature")
    notes = source.notes
    if request.id_column is None:
        id_index = _guess_id_column(source, [index for index in features if index not in categorical])
        if id_index is not None:
            features.remove(id_index)
            name = source.names[id_index] or str(id_index)
            notes = (*notes, f"column {name!r} has a different text in every row: it is read as id_column={name!r}")
    ids = None if id_index is None else source.texts(id_index)
    labels, in_second = _from_second_file(source, request, ids) if target is None else (source.column(target), {})
    require_names(source.names, features, labels.name)
    X, levels = _with_codes(source, features, categorical) if categorical else (source.matrix(np.array(features)), {})
    columns = in_second | {role: source.column(index) for role, index in by_role.items()}
    rows = Rows(X, labels, columns, ids, "data row {0:,}".format)
    table = request.validated(rows, [source.names[index] for index in features])
    id_column = "id" if id_index is None else request.id_column or source.names[id_index] or "id"
    return replace(table, id_column=id_column, levels=levels, notes=(*notes, *table.notes))


def names_in(names: str | PathLike[str] | Sequence[str]) -> list[str]:
    """The names, or the first tab-separated cell of each line of a file."""
    if not isinstance(names, str | PathLike):
        return [str(name) for name in names]
    path = local_path(names)
    if not path.is_file():
        raise no_such_file(path)
    with lines_of(path) as lines:
        return [line.split("\t", 1)[0].strip() for line in "".join(lines).rstrip().splitlines()]


def _with_feature_names(source: Source, names: list[str] | None) -> Source:
    if names is None:
        return source
    n_features = source.n_features
    if not isinstance(source, MatrixSource):
        raise TableError(f"{source.path} has feature names: do not use feature_names")
    has_more_names = len(names) > n_features and source.may_lack_last_columns
    if len(names) != n_features and not has_more_names:
        raise TableError(f"feature_names has {len(names):,} names for the {n_features:,} columns of {source.path}")
    first, last = source.names[0], source.names[n_features - 1]
    note = f"{names[0]!r} is read as the name of column {first}, and {names[n_features - 1]!r} of the last one, {last}"
    all_names = [*names[:n_features], *source.names[n_features:]]
    return replace(source, names=all_names, notes=(note,) if has_more_names else ())


def _target_column(source: Source, request: Request) -> int:
    name = request.target_in_table
    try:
        return source.column_index(name or _declared_target(source), "target")
    except TableError:
        is_matrix = isinstance(source, MatrixSource)
        if name is not None and not is_matrix and source.n_rows and name in source.texts(0):
            raise target_is_row(name) from None
        raise


def _declared_target(source: Source) -> str:
    if source.target is None:
        names = source.names[source.n_features :] or source.names
        middle = [] if len(names) <= 2 * N_SHOWN else [f"{len(names) - 2 * N_SHOWN:,} more"]
        ends = [repr(name) for name in (*names[:N_SHOWN], *names[max(N_SHOWN, len(names) - N_SHOWN) :])]
        raise TableError(
            "choose the target column (target=...) or a second file that contains the target (target_file=...): "
            f"{source.path} has {', '.join([*ends[:N_SHOWN], *middle, *ends[N_SHOWN:]])}"
        )
    return source.target


def _guess_id_column(source: Source, features: Sequence[int]) -> int | None:
    """The column that must hold the ids, if there is one; two candidates are refused."""
    candidates = source.id_columns(features)
    if len(candidates) > 1:
        names = [source.names[index] for index in candidates]
        raise TableError(
            f"{first_few(names)} have a different text in every row: choose the one that names the rows "
            f"(id_column={names[0]!r}) and ignore the others (ignore={names[1:]!r})"
        )
    return candidates[0] if candidates and len(features) > 1 else None


def _from_second_file(
    source: Source, request: Request, ids: list[str] | None
) -> tuple[pl.Series, dict[str, pl.Series]]:
    """Columns of the second file; an error says so if that file names the columns of the table, not its rows."""
    second = request.second
    assert second is not None
    try:
        return columns_of_second_file(second, request, ids, source.n_rows)
    except TableError:
        samples = set(source.names[1:])
        if any(samples <= set(second.texts(index)) for index in range(len(second.names))):
            raise TableError(
                f"{second.path} names the columns of {source.path}, not its rows: the features seem to be in rows "
                "(features_in='rows')"
            ) from None
        raise


def _with_codes(source: Source, features: list[int], categorical: list[int]) -> tuple[Any, dict[int, list[str]]]:
    """The features with categories as codes, -1 for a missing value, and the levels of each categorical feature."""
    X = np.empty((source.n_rows, len(features)), order="F")
    numeric = [index for index in features if index not in categorical]
    if numeric:
        numbers = source.matrix(np.array(numeric))
        if sp.issparse(numbers) or isinstance(numbers, np.memmap | Stored):
            raise TableError(f"{source.path} is a sparse or mapped table: encode its categorical columns first")
        X[:, [index not in categorical for index in features]] = numbers
    levels = {}
    for column, index in enumerate(features):
        if index in categorical:
            texts = source.column(index).cast(pl.String)
            levels[column] = texts.drop_nulls().unique().sort().to_list()
            X[:, column] = (texts.rank("dense").cast(pl.Float64) - 1).fill_null(-1).to_numpy()
    return X, levels


def _read_by_rows(path: Path, request: Request) -> Table:
    """The transposed table: the first column of the file names the features, its other columns are the samples."""
    target_name = request.target_in_table
    text_rows = frozenset([*request.ignore, *filter(None, [target_name]), *request.by_role.values()])
    options = TextOptions(features_in_rows=True, rows=text_rows, decimal=request.decimal)
    source = open_source(path, options, request.progress)
    require_rows(source)
    names = source.texts(0)
    if request.target is None and request.second is None:
        annotations = names[: source.n_annotation_rows]
        hint = f": {path} annotates its samples with {first_few(annotations)}" if annotations else ""
        raise TableError(f"choose the target: a row (target=...) or a second file (target_file=...){hint}")
    target = None if target_name is None else _row_index(target_name, names)
    ignored_rows = {name for name in request.ignore if name in names}
    ignored_columns = {source.column_index(name, "ignored") for name in request.ignore if name not in ignored_rows}
    by_role = {role: _row_index(name, names, role) for role, name in request.by_role.items()}
    _require_one_role({**by_role, "target": target}, request, {names.index(name) for name in ignored_rows}, "row")
    first_sample = 1 + source.n_description_columns
    samples = [index for index in range(first_sample, len(source.names)) if index not in ignored_columns]
    not_features = {target, *by_role.values(), *range(source.n_annotation_rows)}
    features = [row for row, name in enumerate(names) if row not in not_features and name not in ignored_rows]
    if not samples or not features:
        raise TableError(f"{path} has no {'rows left as features' if samples else 'columns left as samples'}")
    ids = [source.names[index] for index in samples]
    in_second: dict[str, pl.Series] = {}
    if target is not None:
        labels = source.row(target, samples).alias(names[target])
    elif request.second is not None:
        labels, in_second = columns_of_second_file(request.second, request, ids, len(ids), features_in_rows=True)
    require_names(names, features, labels.name, "row")
    X = np.asfortranarray(source.matrix(np.array(samples), np.array(features)).T)
    columns = in_second | {role: source.row(row, samples).alias(names[row]) for role, row in by_role.items()}
    rows = Rows(X, labels, columns, ids, lambda row: f"sample {ids[row - 1]!r}")
    table = request.validated(rows, [names[row] for row in features])
    return replace(table, id_column=request.id_column or "sample", notes=(*source.notes, *table.notes))


def _row_index(name: str, names: list[str], role: str = "target") -> int:
    if name not in names:
        raise unknown_name(name, names, f"{role} row")
    return names.index(name)


def _require_one_role(roles: dict[str, int | None], request: Request, ignored: set[int], what: str = "column") -> None:
    """Refuse a column with two roles; only groups may also be the ids."""
    names = {**request.by_role, "target": request.target}
    for role, index in roles.items():
        if index in ignored:
            raise TableError(f"{what} {names[role]!r} cannot be both the {role} and ignored")
    for (role, index), (other, other_index) in combinations(roles.items(), 2):
        if index == other_index:
            raise TableError(f"{what} {names[role]!r} cannot be both the {role} and the {other}")
