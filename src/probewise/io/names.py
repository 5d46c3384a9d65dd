"""Names for the columns of formats that have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

from ..validation.errors import Parameter
from .formats import MatrixSource
from .table import Source, TableError, no_file
from .unpacking import lines_of, local_path


def names_in(given: str | PathLike[str] | Sequence[str]) -> list[str]:
    """Names as they are, or one from each line of a file: what stands before the first tab."""
    if not isinstance(given, str | PathLike):
        return [str(name) for name in given]
    path = local_path(given)
    if not path.is_file():
        raise no_file(path)
    with lines_of(path) as lines:
        names = [line.split("\t", 1)[0].strip() for line in lines]
    while names and not names[-1]:
        names.pop()
    return names


def with_names(source: Source, names: list[str] | None) -> Source:
    """With these names for its columns, where it has none."""
    if names is None:
        return source
    n_columns, given = len(source.names) - source.beside, Parameter("feature_names")
    if not isinstance(source, MatrixSource):
        raise TableError(f"{source.path} has names in itself: leave ", given, " out")
    is_longer = len(names) > n_columns and source.may_end_early
    if len(names) != n_columns and not is_longer:
        raise TableError(given, f" has {len(names):,} names for the {n_columns:,} columns of {source.path}")
    ends = source.names[0], source.names[n_columns - 1]
    said = f"{names[0]!r} is taken to name column {ends[0]}, and {names[n_columns - 1]!r} the last one, {ends[1]}"
    named = [*names[:n_columns], *source.names[n_columns:]]
    return replace(source, names=named, notes=((said,),) if is_longer else ())
