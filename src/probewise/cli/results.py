"""Results of the commands: fitted selectors, their rankings and reports, and comparisons, printed and written."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..validation.tables import columns_not_finite
from .console import TOP as TOP
from .console import print_comparison, print_line, print_ranking, summary_of, warnings_as_lines
from .outputs import shown

if TYPE_CHECKING:
    from ..io import Table
    from .tables import TableOptions

MANY_CLASSES = 25


def fitted(selector: Any, table: Table) -> Any:
    with warnings_as_lines(getattr(selector, "verbose", 0)):
        of_rows = {"sample_weight": table.sample_weight, "groups": table.groups}
        return selector.fit(table.frame(), table.y, **{name: v for name, v in of_rows.items() if v is not None})


def give_ranking(
    selector: Any,
    table: Table,
    *,
    top: int,
    out: Path | None,
    select: Path | None,
    all_selected: bool,
    task: str | None,
    quiet: bool,
) -> None:
    """Write and print the ranking.

    ``select`` is the file for a table of the best features: all selected ones with ``all_selected``, else the top.
    """
    from ..io import write_ranking, write_table
    from ..report.direction import direction_of_selector
    from ..report.ranking_table import columns_of_selector

    columns = columns_of_selector(selector, table.feature_names, certainty=out is not None)
    columns |= direction_of_selector(selector, table.frame(), table.y)
    best = _best_columns(selector, None if all_selected else top)
    try:
        if out is not None:
            write_ranking(out, {"feature": columns["feature"], **columns})
        if select is not None:
            write_table(select, table.take(best))
    finally:  # print the ranking even if it cannot be written, because the disk is full
        print_ranking(columns, top)
    if quiet:
        return
    n_classes = classes_like_a_quantity(table.y) if task is None else None
    if n_classes is not None:
        print_line(f"the target is read as {n_classes} classes; use --task regression if it is a quantity")
    if hasattr(selector, "run_"):
        print_line(summary_of(selector, table.feature_names))
    _print_leaking_features(selector, table)
    if out is not None:
        print_line(f"all {len(selector.ranking_):,} features are in {shown(out)}")
    if select is not None:
        print_line(f"the table of the best {len(best):,} {'feature' if len(best) == 1 else 'features'} is in {select}")


def _print_leaking_features(selector: Any, table: Table) -> None:
    from ..report.direction import target_of_selector
    from ..report.leakage import leaking_columns
    from ..report.sentences import leakage_sentence

    order = np.argsort(selector.ranking_, kind="stable")
    leaking = leaking_columns(selector._numbers_of(table.frame()), target_of_selector(selector, table.y), order)
    if leaking:
        names = [table.feature_names[column] for column in leaking]
        flags = " ".join(f"--ignore {shlex.quote(name)}" for name in names)
        print_line(f"possible target leakage: {leakage_sentence(names)} ({flags}), then rank again")


def classes_like_a_quantity(y: Any) -> int | None:
    """The number of classes, if there are so many whole numbers that they may be a quantity; else None."""
    labels = np.unique(y)
    if np.asarray(y).dtype.kind not in "iuf" or len(labels) < MANY_CLASSES:
        return None
    return len(labels) if (labels == np.round(labels)).all() else None


def _best_columns(selector: Any, top: int | None) -> Any:
    """Columns of the selected features (or of the top ones), best first; features of ``keep`` are always included."""
    is_best = selector.support_ if top is None else selector.ranking_ <= top
    units = getattr(selector, "_units", None)
    if units is not None:
        is_best[units.kept] = True
    order = np.argsort(selector.ranking_, kind="stable")
    return order[is_best[order]]


def write_reports(
    run: Any,
    paths: Sequence[Path],
    reading: TableOptions,
    table: Table | None,
    *,
    command: str | None = None,
    quiet: bool,
) -> None:
    from ..report import save, summarize

    of_table: dict[str, Any] = {}
    if table is not None:
        of_table = {"X": table.frame(), "y": table.y, "target": table.target, "feature_names": table.feature_names}
        of_table |= {"source": reading.path.name, "groups": table.groups, "sample_weight": table.sample_weight}
        of_table["reading"] = reading.code(allow_missing=bool(len(columns_not_finite(table.X))))
    with warnings_as_lines(0 if quiet else 1):
        summary = summarize(run, **of_table, command=command)
        for path in paths:
            save(summary, path)
            if not quiet:
                print_line(f"the report is in {shown(path)}")


def give_comparison(result: Any, *, out: Path | None, plot: Path | None, quiet: bool) -> None:
    from ..io import write_ranking

    try:
        if out is not None:
            write_ranking(out, result.table())
        if plot is not None:
            from ..plots import save_study

            save_study(result, plot)
    finally:
        print_comparison(result)
    for path, what in ((out, "table"), (plot, "plot")):
        if path is not None and not quiet:
            print_line(f"the {what} is in {shown(path)}")
