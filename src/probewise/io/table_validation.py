"""Validation of the parts of a table: names, finite features, labels, weights and groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..validation.errors import warn
from ..validation.stores import Stored
from ..validation.survival import DTYPE as SURVIVAL_DTYPE
from ..validation.tables import columns_not_finite, extremes
from .table import Source, Table, TableError, first_few, pl
from .text import EXACT

MIN_ROWS_COUNTED = 10  # with fewer rows, a measured column may be 1, 2, 3, ... by chance
UNNAMED = ("", "__index_level_0__")  # the names that pandas gives a row index in CSV and Parquet
RowInWords = Callable[[int], str]  # of a row number, counted from 1


def require_decimal(decimal: str | None) -> None:
    if decimal not in (None, ".", ","):
        raise TableError(f"decimal={decimal!r} must be '.' or ','")


def require_rows(source: Source) -> None:
    if not source.n_rows:
        raise TableError(f"{source.path} has a header but no rows")


def require_names(names: Sequence[str], features: Sequence[int], target: str, what: str = "column") -> None:
    """Refuse features without a name, or with the name of the target or of another feature."""
    index_of: dict[str, int] = {}
    for index in features:
        name = names[index]
        if not name.strip() or name in UNNAMED:
            raise TableError(
                f"{what} {index:,} has no name and may be a saved row index: ignore it (ignore=['{index}']) or name it"
            )
        if name == target:
            raise TableError(f"{what} {index:,} has the same name as the target, {name!r}: rename it or ignore it")
        if index_of.setdefault(name, index) != index:
            remedy = f" or ignore it (ignore=['{index}'])" if what == "column" else ""
            raise TableError(
                f"{what}s {index_of[name]:,} and {index:,} (counted from 0) have the same name, {name!r}: rename one"
                f"{remedy}"
            )


def _require_finite(X: Any, names: Sequence[str], row_in_words: RowInWords, *, allow_missing: bool) -> None:
    bad = columns_not_finite(X, allow_nan=allow_missing)
    if len(bad):
        first = X[:, [bad[0]]]
        first = (first.toarray() if sp.issparse(first) else first).ravel()
        row = 1 + int(np.argmax(np.isinf(first) if allow_missing else ~np.isfinite(first)))
        what, remedy = "infinite", "correct them"
        if not allow_missing:
            what, remedy = "missing or infinite", "fill them in, allow them (allow_missing=True; rank --missing median)"
        raise TableError(
            f"values are {what} in {len(bad):,} of {len(names):,} feature columns: "
            f"{first_few([names[column] for column in bad.tolist()])} (first in {row_in_words(row)}); "
            f"{remedy}, remove these rows, or ignore these columns (ignore=[...])"
        )


def _warn_if_rounded(X: Any, names: Sequence[str]) -> None:
    """Warn of columns of integers that a float rounds by more than a millionth of the column's range."""
    if isinstance(X, np.ndarray) and X.dtype == np.float64 and not isinstance(X, np.memmap) and len(X) > 1:
        low, high = extremes(X, allow_nan=True)
        largest = np.maximum(np.abs(low), np.abs(high))
        is_coarse = (largest > EXACT) & (largest < 2**64) & (high - low < 1e6 * np.spacing(largest))
        coarse = [names[column] for column in np.flatnonzero(is_coarse).tolist()]
        if coarse:
            warn(f"integers above 2**53 are rounded in {first_few(coarse)}: subtract the smallest value of the column")


def _require_none(bad: NDArray[np.bool_], what: str, row_in_words: RowInWords, remedy: str) -> None:
    if bad.any():
        first = row_in_words(int(np.argmax(bad)) + 1)
        raise TableError(f"{what} in {bad.sum():,} of {len(bad):,} rows (first: {first}): {remedy}")


def _validated_weights(column: pl.Series, row_in_words: RowInWords) -> NDArray[np.float64]:
    name, remedy = f"sample_weight={column.name!r}", "weights must be numbers of at least 0"
    if not column.dtype.is_numeric():
        raise TableError(f"{name} has type {column.dtype}: {remedy}")
    weights = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    bad = ~(np.isfinite(weights) & (weights >= 0))
    _require_none(bad, f"{name} is missing, infinite or negative", row_in_words, remedy)
    if not weights.any():
        raise TableError(f"{name} is 0 in all rows: some weights must be above 0")
    return weights


def _validated_groups(column: pl.Series, row_in_words: RowInWords) -> NDArray[Any]:
    missing = column.is_null().to_numpy()
    _require_none(missing, f"groups={column.name!r} is missing", row_in_words, "fill it in or remove these rows")
    is_plain = column.dtype.is_numeric() or column.dtype == pl.Boolean
    return np.unique(np.array((column if is_plain else column.cast(pl.String)).to_list()), return_inverse=True)[1]


VALIDATORS = {"sample_weight": _validated_weights, "groups": _validated_groups}
COVARIATE = "covariate"  # roles of the columns of ``adjust``: covariate 1, covariate 2, ...


def _has_no_target(target: pl.Series) -> NDArray[np.bool_]:
    """Mask of the rows whose target is missing or infinite."""
    missing = target.is_null()
    return np.asarray(missing | ~target.is_finite() if target.dtype.is_float() else missing).astype(bool)


def _validated_target(target: pl.Series, row_in_words: RowInWords) -> NDArray[Any]:
    what = f"the target {target.name!r} is missing or infinite"
    remedy = "fill it in or leave these rows out (drop_unlabeled=True)"
    _require_none(_has_no_target(target), what, row_in_words, remedy)
    if target.dtype in (pl.String, pl.Categorical, pl.Enum):
        return np.array(target.cast(pl.String).to_list(), dtype=str)
    if target.dtype.is_decimal():
        target = target.cast(pl.Float64)
    if not target.dtype.is_numeric() and target.dtype != pl.Boolean:
        raise TableError(f"the target {target.name!r} has type {target.dtype}: it must hold class labels or numbers")
    return target.to_numpy()


def _validated_survival(time: NDArray[Any], event: pl.Series, target: str, row_in_words: RowInWords) -> NDArray[Any]:
    """Events and times as a structured array."""
    remedy = "give 1 or true where the event happened, and 0 or false where the row is censored"
    is_text = event.dtype == pl.String
    values = np.full(len(event), np.nan) if is_text else event.cast(pl.Float64, strict=False).to_numpy()
    _require_none(~np.isin(values, (0, 1)), f"event={event.name!r} is neither 1 nor 0", row_in_words, remedy)
    if time.dtype.kind not in "iuf":
        raise TableError(f"the target {target!r} has to hold the times of event={event.name!r}: give numbers")
    y = np.empty(len(time), SURVIVAL_DTYPE)
    y["event"], y["time"] = values == 1, time
    return y


def _note_on_row_numbers(X: Any, names: Sequence[str]) -> list[str]:
    """A note on columns that count the rows, 1, 2, 3, ...: they are most often row numbers, not measurements."""
    n_rows = X.shape[0]
    if n_rows < MIN_ROWS_COUNTED or not isinstance(X, np.ndarray):
        return []
    candidates = np.flatnonzero((X[1] - X[0] == 1) & (X[-1] - X[0] == n_rows - 1)).tolist()
    counting = [names[c] for c in candidates if np.array_equal(X[:, c] - X[0, c], np.arange(n_rows))]
    if not counting:
        return []
    counts = "counts" if len(counting) == 1 else "count"
    return [f"{first_few(counting)} {counts} the rows: use ignore={counting!r} if these are row numbers"]


def _note_on_similar_classes(y: NDArray[Any]) -> list[str]:
    """A note on classes whose names differ only in case or blanks: they are often one class, typed differently."""
    spellings: dict[str, list[str]] = {}
    for label in np.unique(y).tolist() if y.dtype.kind == "U" else []:
        spellings.setdefault("".join(label.split()).casefold(), []).append(label)
    similar = next((labels for labels in spellings.values() if len(labels) > 1), None)
    if similar is None:
        return []
    return [
        f"the classes {first_few(similar)} differ only in case or blanks and are read as {len(similar)} classes: "
        "use one spelling if they are the same class"
    ]


@dataclass(frozen=True, eq=False)
class Rows:
    """Everything that was read about the rows; ``row_in_words`` locates a row in the file."""

    X: Any
    target: pl.Series
    by_role: dict[str, pl.Series]  # sample weights, groups, events and covariates
    ids: list[str] | None
    row_in_words: RowInWords

    def take(self, rows: NDArray[np.intp]) -> Rows:
        if isinstance(self.X, np.memmap | Stored):
            raise TableError(
                "rows of a mapped table cannot be left out: use drop_unlabeled=False, and fill in the target or "
                "convert a table without these rows"
            )
        X = self.X[rows] if sp.issparse(self.X) or self.X.flags.c_contiguous else np.asfortranarray(self.X[rows])
        ids = None if self.ids is None else [self.ids[row] for row in rows]
        by_role = {role: values[rows] for role, values in self.by_role.items()}
        return Rows(X, self.target[rows], by_role, ids, lambda row: self.row_in_words(int(rows[row - 1]) + 1))


def validated_table(rows: Rows, names: list[str], *, allow_missing: bool, drop_unlabeled: bool) -> Table:
    """The table, if all of it can be used; rows without a target are left out on request."""
    notes, unlabeled = list[str](), _has_no_target(rows.target)
    if "event" in rows.by_role:
        unlabeled = unlabeled | _has_no_target(rows.by_role["event"])
    if drop_unlabeled and unlabeled.any() and not unlabeled.all():
        rows = rows.take(np.flatnonzero(~unlabeled))
        notes.append(
            f"{unlabeled.sum():,} of {len(unlabeled):,} rows have no target {rows.target.name!r} and are left out"
        )
    X, row_in_words = rows.X, rows.row_in_words
    _require_finite(X, names, row_in_words, allow_missing=allow_missing and not sp.issparse(X))
    _warn_if_rounded(X, names)
    y, event = _validated_target(rows.target, row_in_words), rows.by_role.get("event")
    if event is not None:
        y = _validated_survival(y, event, rows.target.name, row_in_words)
    validated = [role for role in rows.by_role if role in VALIDATORS]
    by_role: dict[str, Any] = {role: VALIDATORS[role](rows.by_role[role], row_in_words) for role in validated}
    covariates = [column for role, column in rows.by_role.items() if role.startswith(COVARIATE)]
    adjust = pl.DataFrame(covariates) if covariates else None
    ids = None if rows.ids is None else np.array(rows.ids)
    notes += [*_note_on_similar_classes(y), *_note_on_row_numbers(X, names)]
    event_name = "" if event is None else event.name
    return Table(X, y, names, rows.target.name, ids, notes=tuple(notes), event=event_name, adjust=adjust, **by_role)
