"""Tables in and out with polars: CSV, TSV and Parquet to arrays and names, and rankings to files."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
COMPRESSED = (".gz", ".zst")
RANKING_FORMATS = (".csv", ".tsv", ".parquet", ".json")
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
UNNAMED = ("", "__index_level_0__")  # how pandas saves a row index to CSV and to Parquet
SHOWN = 3
VALUES_AT_A_TIME = 2**24


class TableError(ValueError):
    """A table that cannot be used, and what to do about it, in one line."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers, one target value each, and the names of the columns."""

    X: NDArray[Any]
    y: NDArray[Any]
    feature_names: list[str]
    target: str

    def frame(self) -> pl.DataFrame:
        """X with its column names, for selectors to know them; shares memory with X where X is by columns."""
        return _polars().from_numpy(self.X, schema=self.feature_names, orient="row")


def read_table(path: str | PathLike[str], *, target: str, ignore: Iterable[str] = ()) -> Table:
    """The table at ``path``, its target column apart.

    CSV, tab-separated text (both also as .gz or .zst) and Parquet. ``target`` and ``ignore`` name columns, or give
    their index from 0 where no column has that name. X is float32 if all features are, integer if all are
    (true and false count as 1 and 0), else float64; y keeps numbers as numbers and text as labels.
    A `TableError` says what is wrong with a table that cannot be ranked.
    """
    path = Path(path)
    frame = _read(path)
    target = _column(target, frame.columns, "target")
    left_out = {_column(name, frame.columns, "ignored") for name in ignore}
    if target in left_out:
        raise TableError(f"column {target!r} cannot be both the target and ignored")
    frame = _without_blank_rows(frame.drop(left_out) if left_out else frame, target)
    if not frame.height:
        raise TableError(f"{path} has a header but no rows")
    features = frame.drop(target)
    if not features.width:
        raise TableError(f"{path} has no columns beside the target {target!r}: is the separator right?")
    _require_names(frame)
    return Table(_matrix(features), _labels(frame[target]), features.columns, target)


def write_ranking(path: str | PathLike[str], columns: dict[str, Any]) -> None:
    """Write equally long columns to a .csv, .tsv, .parquet or .json file; NaN becomes an empty value."""
    path = require_ranking_path(path)
    frame = _polars().DataFrame(columns).fill_nan(None)
    if path.suffix.lower() == ".parquet":
        frame.write_parquet(path)
    elif path.suffix.lower() == ".json":
        frame.write_json(path)
    else:
        frame.write_csv(path, separator=SEPARATORS[path.suffix.lower()])


def require_ranking_path(path: str | PathLike[str]) -> Path:
    """The path, if `write_ranking` can write there: a known format, in a folder that exists."""
    path = Path(path)
    if path.suffix.lower() not in RANKING_FORMATS:
        raise TableError(f"a ranking cannot be written to {path}: name it {_choice(RANKING_FORMATS)}")
    if not path.parent.is_dir():
        raise TableError(f"{path} cannot be written: the folder {path.parent} does not exist")
    if path.is_dir():
        raise TableError(f"{path} cannot be written: it is a folder")
    return path


def _polars() -> Any:
    try:
        import polars
    except ModuleNotFoundError:
        raise ImportError("reading tables needs the cli extra: pip install 'probewise[cli]'") from None
    return polars


def _read(path: Path) -> pl.DataFrame:
    pl = _polars()
    endings = [ending.lower() for ending in path.suffixes]
    packed = bool(endings) and endings[-1] in COMPRESSED
    ending = "".join(endings[-2:-1] if packed else endings[-1:])
    if ending not in SEPARATORS and (packed or ending != ".parquet"):
        known = _choice((*SEPARATORS, ".parquet"))
        raise TableError(f"{path} has no format known here: name it {known} (text also with .gz or .zst)")
    if path.is_dir():
        raise TableError(f"{path} is a folder: give a file")
    if not path.exists():
        raise TableError(f"there is no file {path}")
    try:
        return _read_parquet(path) if ending == ".parquet" else _read_text(path, SEPARATORS[ending])
    except pl.exceptions.PolarsError as error:
        kind = "Parquet" if ending == ".parquet" else f"text separated by {SEPARATORS[ending]!r}"
        raise TableError(f"{path} cannot be read as {kind}: {str(error).splitlines()[0]}") from error


def _read_parquet(path: Path) -> pl.DataFrame:
    return _polars().read_parquet(path, glob=False, hive_partitioning=False)


def _read_text(path: Path, separator: str) -> pl.DataFrame:
    """One column alone is of no use, so then the file may have another separator than its name says."""
    frame = _read_separated(path, separator)
    for other in (",", ";", "\t"):
        if frame.width == 1 and other in frame.columns[0]:
            frame = _read_separated(path, other)
    frame.columns = [name.replace('""', '"') for name in frame.columns]  # polars leaves quotes in names doubled
    text = frame.select(_polars().selectors.string())
    return frame.with_columns([_numbers_if_any(column) for column in text])


def _read_separated(path: Path, separator: str) -> pl.DataFrame:
    pl = _polars()
    try:
        return pl.read_csv(path, separator=separator, glob=False, infer_schema_length=1000)
    except pl.exceptions.ComputeError:  # what the first rows look like is not what follows: look at them all
        return pl.read_csv(path, separator=separator, glob=False, infer_schema_length=None)


def _numbers_if_any(column: pl.Series) -> pl.Series:
    """The column as numbers, if blanks around them or words for missing values are all that hid them."""
    pl = _polars()
    text = column.str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    words = text.filter(numbers.is_null() & text.is_not_null()).str.to_lowercase()
    return numbers if words.is_in(MISSING).all() else column


def _column(asked: str, names: Sequence[str], role: str) -> str:
    """The column meant: by name, else by index."""
    if asked in names:
        return asked
    if asked.isdecimal() and int(asked) < len(names):
        return names[int(asked)]
    close = difflib.get_close_matches(asked.lower(), [name.lower() for name in names], cutoff=0.6)
    likely = [name for match in close for name in names if name.lower() == match]
    hint = f"did you mean {_some(likely)}?" if likely else f"its columns are {_some(names)}"
    raise TableError(f"there is no {role} column {asked!r} in the table: {hint}")


def _without_blank_rows(frame: pl.DataFrame, target: str) -> pl.DataFrame:
    pl = _polars()
    if not frame[target].null_count():
        return frame
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def _require_names(frame: pl.DataFrame) -> None:
    for place, name in enumerate(frame.columns):
        if name in UNNAMED:
            raise TableError(
                f"column {place} has no name and may be a saved row index: ignore it (--ignore {place}) or name it"
            )


def _matrix(features: pl.DataFrame) -> NDArray[Any]:
    pl = _polars()
    numbers = pl.selectors.numeric() | pl.selectors.boolean() | pl.selectors.by_dtype(pl.Null)
    other = features.select(~numbers)
    if other.width:
        kinds = [f"{column.name!r} ({column.dtype})" for column in other]
        raise TableError(
            f"{other.width} of {features.width} feature columns hold no numbers: {_some(kinds, str)}; "
            "encode them as numbers or leave them out (--ignore)"
        )
    casts = _common_type(features.dtypes)
    X = (features.cast(casts) if casts else features).to_numpy(order="fortran")
    _require_finite(X, features.columns)
    return X


def _common_type(kinds: Sequence[Any]) -> dict[Any, Any]:
    """What to cast to what, so that all columns have one type that numpy knows too."""
    pl = _polars()
    if all(kind == kinds[0] for kind in kinds) and kinds[0] in (pl.Float32, pl.Float64):
        return {}
    if all((kind.is_integer() and kind != pl.Int128) or kind == pl.Boolean for kind in kinds):
        return {pl.Boolean: pl.UInt8}
    return {pl.selectors.all(): pl.Float64}


def _require_finite(X: NDArray[Any], names: Sequence[str]) -> None:
    if X.dtype.kind != "f":
        return
    step = max(1, VALUES_AT_A_TIME // len(X))
    starts = range(0, X.shape[1], step)
    fine = np.concatenate([np.isfinite(X[:, start : start + step]).all(axis=0) for start in starts])
    bad = np.flatnonzero(~fine)
    if len(bad):
        row = int(np.argmin(np.isfinite(X[:, bad[0]]))) + 1
        raise TableError(
            f"values are missing or infinite in {len(bad)} of {len(names)} feature columns: "
            f"{_some([names[column] for column in bad.tolist()])} (first in data row {row}); "
            "fill them in, or leave out those rows or columns (--ignore)"
        )


def _labels(target: pl.Series) -> NDArray[Any]:
    pl = _polars()
    missing = target.is_null()
    if target.dtype.is_float():
        missing = missing | ~target.is_finite()
    if missing.any():
        raise TableError(
            f"the target {target.name!r} is missing or infinite in {missing.sum()} of {len(target)} rows "
            f"(first: data row {missing.arg_true()[0] + 1}): fill it in or leave out those rows"
        )
    if target.dtype in (pl.String, pl.Categorical, pl.Enum):
        return np.array(target.cast(pl.String).to_list(), dtype=str)
    if target.dtype.is_decimal():
        target = target.cast(pl.Float64)
    if not target.dtype.is_numeric() and target.dtype != pl.Boolean:
        raise TableError(f"the target {target.name!r} is of type {target.dtype}: give class labels or numbers")
    return target.to_numpy()


def _some(items: Sequence[Any], shown: Any = repr) -> str:
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(map(shown, items[:SHOWN])) + more


def _choice(items: Sequence[str]) -> str:
    return f"{', '.join(items[:-1])} or {items[-1]}"
