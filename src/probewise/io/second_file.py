"""The second file of a table: its target, sample weights and groups, matched to the rows by ids or by order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..validation.contents import GROUP_NAME
from .table import Source, TableError, first_few, pl
from .table_validation import require_rows

if TYPE_CHECKING:
    from .reading import Request


def roles_in_second(second: Source, by_role: dict[str, str], target: str | None) -> dict[str, str]:
    """The columns of sample weights and groups that the second file has."""
    roles = {role: name for role, name in by_role.items() if name in second.names}
    for role, name in roles.items():
        if list(roles.values()).count(name) > 1 or name == target:
            raise TableError(
                f"column {name!r} of {second.path} cannot be both the {role} and the target or another role"
            )
    return roles


def notes_on_groups(second: Source, roles: list[str | None]) -> tuple[str, ...]:
    """Hints at columns without a role that look like groups of rows, such as patients with several samples each."""
    notes = []
    for index, name in enumerate(second.names):
        if name in roles or not GROUP_NAME.search(name):
            continue
        n_values = len(set(second.texts(index)))
        if 2 < n_values < second.n_rows:
            notes.append(
                f"column {name!r} of {second.path} has {n_values:,} values in {second.n_rows:,} rows: if rows with the "
                f"same value belong together, use groups={name!r}"
            )
    return tuple(notes)


def columns_of_second_file(
    source: Source, request: Request, ids: list[str] | None, n_rows: int, *, features_in_rows: bool = False
) -> tuple[pl.Series, dict[str, pl.Series]]:
    """The target, and the sample weights and groups, for each row of the table.

    Rows are matched by ids, or by order if there are none.
    """
    require_rows(source)
    key, may_lack_ids = None, request.drop_unlabeled
    if ids is not None:
        key = _column_of_ids(
            source, ids, request.id_column, features_in_rows=features_in_rows, may_lack_ids=may_lack_ids
        )
    labels = source.column(_column_of_target(source, request.target, key))
    by_role = {role: source.column(source.names.index(name)) for role, name in request.in_second.items()}
    if key is not None and ids is not None:
        rows = pl.Series(rows_by_id(source, key, ids, may_lack_ids=may_lack_ids), dtype=pl.UInt32)
        return labels.gather(rows), {role: values.gather(rows) for role, values in by_role.items()}
    if source.n_rows != n_rows:
        lacks_header = source.n_rows == n_rows - 1
        remedy = "does it lack a header?" if lacks_header else "name a column of ids (id_column=...)"
        raise TableError(f"{source.path} has {source.n_rows:,} rows and the table {n_rows:,}: {remedy}")
    return labels, by_role


def _column_of_target(source: Source, target: str | None, key: int | None) -> int:
    name = target or source.target
    if name is not None:
        return source.column_index(name, "target")
    others = [index for index in range(len(source.names)) if index != key]
    if len(others) != 1:
        names = first_few([source.names[index] for index in others])
        raise TableError(f"choose the target column of {source.path} (target=...): it has {names}")
    return others[0]


def _column_of_ids(
    source: Source, ids: list[str], name: str | None, *, features_in_rows: bool, may_lack_ids: bool
) -> int | None:
    """The column with all ids, or with most of them if some may be missing; None if rows are in the same order."""
    if name is not None:
        if features_in_rows or name in source.names:
            return source.column_index(name, "id")
        if len(source.names) == 1:
            raise TableError(f"{source.path} has only one column: id_column={name!r} needs ids in it, too")
        return 0
    wanted = set(ids)
    most, best = len(wanted) / 2, None
    for index in range(len(source.names)):
        n_known = len(wanted.intersection(source.texts(index)))
        if n_known == len(wanted):
            return index
        if n_known > most:
            most, best = n_known, index
    if best is not None and may_lack_ids:
        return best
    if len(source.names) == 1 or not features_in_rows:
        return None
    raise TableError(
        f"no column of {source.path} contains the names of all samples, {first_few(ids)}: name the column that should "
        "(id_column=...)"
    )


def rows_by_id(source: Source, key: int, ids: list[str], *, may_lack_ids: bool = False) -> list[int | None]:
    """The row of each id; None for an id that is missing, if that is allowed."""
    rows: dict[str, int] = {}
    wanted = set(ids)
    for row, name in enumerate(source.texts(key)):
        if rows.setdefault(name, row) != row and name in wanted:
            raise TableError(f"the id {name!r} is in rows {rows[name] + 1:,} and {row + 1:,} of {source.path}")
    missing = [name for name in ids if name not in rows]
    if missing and not may_lack_ids:
        raise TableError(
            f"{len(missing):,} of {len(ids):,} ids are not in column {source.names[key]!r} of {source.path}: "
            f"{first_few(missing)}; add them or leave these rows out (drop_unlabeled=True)"
        )
    return [rows.get(name) for name in ids]
