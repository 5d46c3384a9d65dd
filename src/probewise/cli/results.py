"""Selectors fitted, and their results written to files and printed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..validation.tables import columns_not_finite
from .console import print_comparison, print_line, print_ranking, print_together, summary_of, warnings_as_lines
from .files import place, reading_code

if TYPE_CHECKING:
    from ..io import Table

MANY_CLASSES = 25


def fitted(selector: Any, table: Table) -> Any:
    with warnings_as_lines(getattr(selector, "verbose", 0)):
        of_rows = {"sample_weight": table.sample_weight, "groups": table.groups}
        known = {name: values for name, values in of_rows.items() if values is not None}
        return selector.fit(table.frame(), table.y, **known)


def give_ranking(selector: Any, table: Table, given: Any) -> None:
    from ..io import write_ranking, write_table
    from ..report.direction import direction_of
    from ..report.ranking_table import columns_of_selector

    columns = columns_of_selector(selector, table.feature_names, certainty=given.out is not None)
    columns |= direction_of(selector, table.frame(), table.y)
    best = _best(selector, given.n_features if given.n_features or given.auto else given.top)
    try:
        if given.out is not None:
            write_ranking(given.out, {"feature": columns["feature"], **columns})
        if given.select is not None and len(best):
            write_table(given.select, table.take(best))
    finally:  # a disk that is full takes no ranking, but the screen does
        print_ranking(columns, given.top)
    if not given.quiet:
        n_classes = classes_like_a_quantity(table.y) if given.task == "auto" else None
        if n_classes is not None:
            print_line(f"the target is read as {n_classes} classes; --task regression if it is a quantity")
        if hasattr(selector, "run_"):
            print_line(summary_of(selector, table.feature_names))
        _print_giveaways(selector, table)
        if given.out is not None:
            print_line(f"all {len(selector.ranking_):,} features are in {place(given.out)}")
        if given.select is not None and len(best):
            print_line(f"the table of the best {len(best):,} is in {given.select}")
    if given.select is not None and not len(best):
        print_line(f"no feature is kept, so there is no {given.select}")
    if given.together:
        print_together(*_together(selector, table, max(given.top, 2)))


def _print_giveaways(selector: Any, table: Table) -> None:
    from ..report.direction import target_of
    from ..report.leakage import giveaway_sentence, giveaways

    order = np.argsort(selector.ranking_, kind="stable")
    found = giveaways(selector.as_numbers(table.frame()), target_of(selector, table.y), order)
    if found:
        names = [table.feature_names[column] for column in found]
        options = " ".join(f"--ignore {shlex.quote(name)}" for name in names)
        print_line(f"beware: {giveaway_sentence(names)} ({options}) and rank again")


def classes_like_a_quantity(y: Any) -> int | None:
    """How many classes whole numbers make, where they are so many that they may be meant as a quantity."""
    labels = np.unique(y)
    if np.asarray(y).dtype.kind not in "iuf" or len(labels) < MANY_CLASSES:
        return None
    return len(labels) if (labels == np.round(labels)).all() else None


def _best(selector: Any, n_best: int | None) -> Any:
    """The first columns, or those selected, best first; what is always kept too, what is dropped not."""
    chosen = selector.support_ if n_best is None else selector.ranking_ <= n_best
    units = getattr(selector, "units_", None)
    if units is not None:
        chosen[units.kept], chosen[units.dropped] = True, False
    order = np.argsort(selector.ranking_, kind="stable")
    return order[chosen[order]]


def _together(daf: Any, table: Table, top: int) -> tuple[Any, list[Any]]:
    """Pairs and groups among the best features, with the names of the table."""
    from ..engine.interactions import columns_of, correlations

    found = daf.interactions(top)
    found = replace(found, names=tuple(table.feature_names[column] for column in found.features.tolist()))
    return found, found.groups(correlations(columns_of(daf.as_numbers(table.frame()), found.features)))


def live_pages(reports: Sequence[Path], given: Any, table: Table) -> list[Any]:
    """What renews the pages asked for while the run goes on."""
    pages = [path for path in reports if path.suffix.lower() in (".html", ".htm")]
    if not pages:
        return []
    from ..report.live import LivePage
    from ..report.summary import question_of

    return [LivePage(path, question_of(given.data.name, table.target)) for path in pages]


def write_reports(run: Any, paths: Sequence[Path], given: Any, table: Table | None, command: str | None = None) -> None:
    from ..report import save, summarize

    of_table: dict[str, Any] = {}
    if table is None and given.names is not None:
        from ..io.reading import names_in

        of_table["feature_names"] = names_in(given.names)
    if table is not None:
        of_table = {"X": table.frame(), "y": table.y, "target": table.target, "feature_names": table.feature_names}
        of_table |= {"source": given.data.name, "groups": table.groups, "sample_weight": table.sample_weight}
        of_table["reading"] = reading_code(given, allow_missing=bool(len(columns_not_finite(table.X))))
    with warnings_as_lines(0 if given.quiet else 1):
        summary = summarize(run, **of_table, command=command, coefficient=given.coefficient)
        for path in paths:
            save(summary, path)
            if not given.quiet:
                print_line(f"the report is in {place(path)}")


def give_comparison(result: Any, given: Any) -> None:
    from ..io import write_ranking

    try:
        if given.out is not None:
            write_ranking(given.out, result.table())
        if given.plot is not None:
            from ..plots import save_study

            save_study(result, given.plot)
    finally:
        print_comparison(result)
    if not given.quiet:
        for path, what in ((given.out, "table"), (given.plot, "picture")):
            if path is not None:
                print_line(f"the {what} is in {place(path)}")
