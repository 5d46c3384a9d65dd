"""What of a table can be used: names that are there once, finite numbers, labels, weights and groups without gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..validation.errors import ForPython, Message, Parameter, Setting
from ..validation.stores import Stored
from ..validation.tables import columns_not_finite
from .table import Source, Table, TableError, pl, some

FEWEST_COUNTED = 10  # rows that a column counts by chance in no table
UNNAMED = ("", "__index_level_0__")  # how pandas saves a row index to CSV and to Parquet
Spot = Callable[[int], str]  # a row, counted from 1, in words
LEFT_TO_CRITERION = ForPython(
    "let them be NaN where they are missing (gaps=True)",
    "let rank do so where they are missing (",
    Setting("missing", "median"),
    ")",
)


def checked_decimal(decimal: str | None) -> str | None:
    if decimal not in (None, ".", ","):
        raise TableError(Parameter("decimal", decimal), " is not known: give . or ,")
    return decimal


def require_rows(source: Source) -> None:
    if not source.n_rows:
        raise TableError(f"{source.path} has a header but no rows")


def require_names(names: Sequence[str], features: Sequence[int], target: str, what: str = "column") -> None:
    places: dict[str, int] = {}
    for place in features:
        name = names[place]
        if not name.strip() or name in UNNAMED:
            raise TableError(
                f"{what} {place:,} has no name and may be a saved row index: ignore it (",
                Setting("ignore", [str(place)]),
                ") or name it",
            )
        if name == target:
            raise TableError(f"{what} {place:,} has the name of the target, {name!r}: rename it or leave it out")
        if places.setdefault(name, place) != place:
            raise TableError(
                f"the name {name!r} stands for {what}s {places[name]:,} and {place:,}, counted from 0: rename one",
                *((" or leave it out (", Setting("ignore", [str(place)]), ")") if what == "column" else ()),
            )


def require_finite(X: Any, names: Sequence[str], spot: Spot, *, allow_nan: bool) -> None:
    bad = columns_not_finite(X, allow_nan=allow_nan)
    if len(bad):
        first = X[:, [bad[0]]]
        first = (first.toarray() if sp.issparse(first) else first).ravel()
        row = 1 + int(np.argmax(np.isinf(first) if allow_nan else ~np.isfinite(first)))
        what = "infinite" if allow_nan else "missing or infinite"
        raise TableError(
            f"values are {what} in {len(bad):,} of {len(names):,} feature "
            f"columns: {some([names[column] for column in bad.tolist()])} (first in {spot(row)}); fill them in, ",
            *(() if allow_nan else (LEFT_TO_CRITERION, ", ")),
            "or leave out those rows or columns (",
            Parameter("ignore"),
            ")",
        )


def _require_none(bad: NDArray[np.bool_], what: str, spot: Spot, *remedy: Any) -> None:
    if bad.any():
        first = spot(int(np.argmax(bad)) + 1)
        raise TableError(f"{what} in {bad.sum():,} of {len(bad):,} rows (first: {first}): ", *remedy)


def _checked_weights(column: pl.Series, spot: Spot) -> NDArray[np.float64]:
    if not column.dtype.is_numeric():
        raise TableError(f"the weights {column.name!r} are of type {column.dtype}: give numbers")
    weights = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    bad = ~(np.isfinite(weights) & (weights >= 0))
    what = f"the weights {column.name!r} are missing, infinite or negative"
    _require_none(bad, what, spot, "give numbers of 0 or more")
    if not weights.any():
        raise TableError(f"the weights {column.name!r} are all 0: give numbers of 0 or more, some above 0")
    return weights


def _checked_groups(column: pl.Series, spot: Spot) -> NDArray[Any]:
    lost = column.is_null().to_numpy()
    _require_none(lost, f"the groups {column.name!r} are missing", spot, "fill them in or leave out those rows")
    plain = column.dtype.is_numeric() or column.dtype == pl.Boolean
    return np.unique(np.array((column if plain else column.cast(pl.String)).to_list()), return_inverse=True)[1]


CHECKED = {"weights": _checked_weights, "groups": _checked_groups}


def unlabelled(target: pl.Series) -> NDArray[np.bool_]:
    """The rows whose target is missing or infinite."""
    lost = target.is_null()
    return np.asarray(lost | ~target.is_finite() if target.dtype.is_float() else lost).astype(bool)


def checked_labels(target: pl.Series, spot: Spot) -> NDArray[Any]:
    what = f"the target {target.name!r} is missing or infinite"
    remedy = "fill it in or leave out those rows (", Setting("drop_unlabelled", True), ")"
    _require_none(unlabelled(target), what, spot, *remedy)
    if target.dtype in (pl.String, pl.Categorical, pl.Enum):
        return np.array(target.cast(pl.String).to_list(), dtype=str)
    if target.dtype.is_decimal():
        target = target.cast(pl.Float64)
    if not target.dtype.is_numeric() and target.dtype != pl.Boolean:
        raise TableError(f"the target {target.name!r} is of type {target.dtype}: give class labels or numbers")
    return target.to_numpy()


def rows_counted(X: Any, names: Sequence[str]) -> tuple[Message, ...]:
    """A note on columns that count the rows, 1, 2, 3, ...: most often their numbers, which are no measurement."""
    n_rows = X.shape[0]
    if n_rows < FEWEST_COUNTED or not isinstance(X, np.ndarray):
        return ()
    may_count = np.flatnonzero((X[1] - X[0] == 1) & (X[-1] - X[0] == n_rows - 1)).tolist()
    found = [names[at] for at in may_count if np.array_equal(X[:, at] - X[0, at], np.arange(n_rows))]
    if not found:
        return ()
    verb, them = ("counts", "it") if len(found) == 1 else ("count", "them")
    what = f"{some(found)} {verb} the rows, and would be ranked as if measured: leave {them} out if that is all"
    return ((f"{what} (", Setting("ignore", found), ")"),)


def classes_alike(y: NDArray[Any]) -> tuple[Message, ...]:
    """A note on classes whose names differ in case or blanks only: often one class, typed in several ways."""
    spellings: dict[str, list[str]] = {}
    for label in np.unique(y).tolist() if y.dtype.kind == "U" else []:
        spellings.setdefault("".join(label.split()).casefold(), []).append(label)
    alike = next((labels for labels in spellings.values() if len(labels) > 1), None)
    if alike is None:
        return ()
    many = f"{some(alike)} differ in case or blanks only, and are taken for {len(alike)} classes"
    return ((f"the target's {many}: spell them alike if they are one",),)


@dataclass(frozen=True, eq=False)
class Rows:
    """All that was read of the rows; ``spot`` says where one is in the file."""

    X: Any
    labels: pl.Series
    of_rows: dict[str, pl.Series]
    ids: list[str] | None
    spot: Spot

    def only(self, kept: NDArray[np.intp]) -> Rows:
        if isinstance(self.X, np.memmap | Stored):
            raise TableError(
                "a mapped table has its rows as they are: leave out ",
                Parameter("drop_unlabelled"),
                ", and fill in the target or convert a table without those rows",
            )
        X = self.X[kept] if sp.issparse(self.X) or self.X.flags.c_contiguous else np.asfortranarray(self.X[kept])
        ids = None if self.ids is None else [self.ids[row] for row in kept]
        of_rows = {role: values[kept] for role, values in self.of_rows.items()}
        return Rows(X, self.labels[kept], of_rows, ids, lambda row: self.spot(int(kept[row - 1]) + 1))


def checked_table(rows: Rows, names: list[str], *, gaps: bool, drop_unlabelled: bool) -> Table:
    """The table, if all of it can be used, or all but rows without a target."""
    notes, lost = list[Message](), unlabelled(rows.labels)
    if drop_unlabelled and lost.any() and not lost.all():
        rows = rows.only(np.flatnonzero(~lost))
        notes.append((f"{lost.sum():,} of {len(lost):,} rows have no target {rows.labels.name!r}, and are left out",))
    X, spot = rows.X, rows.spot
    require_finite(X, names, spot, allow_nan=gaps and not sp.issparse(X))
    y = checked_labels(rows.labels, spot)
    more: dict[str, Any] = {role: CHECKED[role](values, spot) for role, values in rows.of_rows.items()}
    ids = None if rows.ids is None else np.array(rows.ids)
    notes += [*classes_alike(y), *rows_counted(X, names)]
    return Table(X, y, names, rows.labels.name, ids, notes=tuple(notes), **more)
