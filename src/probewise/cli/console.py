"""Outputs of the commands: checks of output files, and rankings, reports and comparisons, printed and written."""

from __future__ import annotations

import io
import logging
import shlex
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bif import BIF
from ..criteria.base import Target
from ..daf import DAF
from ..datasets import KnownTruth
from ..display import plain
from ..inference import Discoveries
from ..io import Table, write_ranking, write_table
from ..report import save, summarize
from ..report.findings import findings_of_selector
from ..report.ranking_table import (
    INTERVAL_ENDS,
    TOP,
    cell,
    decimals_of,
    direction_columns,
    discoveries_of,
    display_columns,
    leaking_columns,
    named_clusters,
    ranking_columns,
)
from ..report.sentences import inference_sentence, leakage_sentence, notes_on_run, with_assumption
from ..tournament import Tournament
from ..validation.tables import columns_not_finite

if TYPE_CHECKING:
    from rich.console import Console

    from ..study import StudyResult
    from .inputs import TableOptions

# Columns of the ranking that only files have, and those that only a wide terminal has room for.
FILE_COLUMNS = ("dropped_in_round", "rank_low", "rank_high", "in_top", "lower_in", "fold_change", *INTERVAL_ENDS)
WIDE_COLUMNS, WIDE = (
    ("q_related", "needed", "q_needed", "cluster", "higher_in", "difference", "correlation", "hazard_ratio"),
    101,
)
SIZES_SHOWN = 6
SIGNIFICANT = 0.05
NARROWEST = 64
STOPPED_EARLY = 3  # exit code
STANDARD_OUTPUT, DASH = "standard output", Path("-")


def print_line(sentence: str) -> None:
    """Print one line to standard error."""
    lines = (line.strip() for line in sentence.splitlines())
    print("probewise:", plain(" ".join(line for line in lines if line)), file=sys.stderr)


@contextmanager
def warnings_as_lines(verbose: int) -> Iterator[None]:
    """Print warnings as plain sentences at the end, and log messages only if verbose."""
    log = logging.getLogger("probewise")
    level = log.level
    log.setLevel(level if verbose else logging.ERROR)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default", UserWarning)
            yield
    finally:
        log.setLevel(level)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print_line(message)


# ---- output files


@contextmanager
def output_files(
    outputs: Mapping[str, tuple[Callable[[Path], Any], Any, str]],
    *,
    inputs: Sequence[Path],
    run: Path | None,
    quiet: bool,
) -> Iterator[dict[str, Any]]:
    """Yield the path, or list of paths, of each flag; "-" becomes a temporary file, which is printed at the end.

    ``outputs`` holds for each flag a function that refuses paths of an unknown format, the paths, and the ending of
    standard output. Outputs that would overwrite an input, the run or another output are refused. Until the end
    everything else that the command prints goes to standard error.
    """
    used = list(inputs)
    if run is not None:
        used += [run, *(run.with_name(run.name + ending) for ending in ("-wal", "-journal", "-shm"))]
    listed = {flag: [paths] if isinstance(paths, Path) else paths or () for flag, (_, paths, _) in outputs.items()}
    printed = [flag for flag, (_, _, ending) in outputs.items() if ending and DASH in listed[flag]]
    if len(printed) > 1:
        flags = " and ".join(f"--{flag} -" for flag in printed)
        raise ValueError(f"{flags}: only one of them can go to standard output")
    with tempfile.TemporaryDirectory() if printed else nullcontext("") as folder, ExitStack() as stack:
        file = Path(folder, STANDARD_OUTPUT + (outputs[printed[0]][2] if printed else ""))
        files: dict[str, Any] = {}
        for flag, (require, paths, ending) in outputs.items():
            replaced = [file if path == DASH and ending else path for path in listed[flag]]
            for path in replaced:
                require(path)
                for other in used:
                    if other.resolve() == path.resolve() or (other.exists() and path.exists() and other.samefile(path)):
                        raise ValueError(f"--{flag} {path} would overwrite {other}: choose another file")
                used.append(path)
            files[flag] = replaced[0] if isinstance(paths, Path) else replaced or None
        if printed:
            stack.enter_context(redirect_stdout(io.StringIO() if quiet else sys.stderr))
        yield files
        stack.close()
        if printed and file.exists():
            sys.stdout.write(file.read_text(encoding="utf-8"))


# ---- rankings and reports


def fitted(selector: Any, table: Table) -> Any:
    with warnings_as_lines(getattr(selector, "verbose", 0)):
        of_rows = {"sample_weight": table.sample_weight, "groups": table.groups, "adjust": table.adjust}
        return selector.fit(table.frame(), table.y, **{name: v for name, v in of_rows.items() if v is not None})


@contextmanager
def interrupt_afterwards() -> Iterator[list[bool]]:
    """Put off Ctrl-C until the end of the block, which yields a list with an entry if it was pressed.

    Ctrl-C pressed twice interrupts the block.
    """
    pressed: list[bool] = []

    def note(signum: int, frame: Any) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(True)

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # only the main thread receives signals
        yield pressed
        return
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def output_ranking(
    selector: Any,
    table: Table,
    *,
    top: int,
    out: Path | None,
    select: Path | None,
    all_selected: bool,
    fdr: float | None,
    quiet: bool,
) -> None:
    """Write and print the ranking. Features are tested at the rate ``fdr``, unless it is None.

    ``select`` is the file for a table of the best features: all selected ones with ``all_selected``, else the top.
    """
    tests = {} if fdr is None else discoveries_of(selector, fdr)
    findings = findings_of_selector(selector, table.feature_names)
    columns = ranking_columns(findings, tests, certainty=out is not None)
    X, target = selector._numbers_of(table.frame()), Target.of(table.y, getattr(findings.criterion, "task", "auto"))
    columns |= direction_columns(X, target, findings.order, findings.categorical)
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
    if hasattr(selector, "run_"):
        print_line(summary_of(selector, table.feature_names, tests))
    if leaking := findings.names_of(leaking_columns(X, target, findings.order)):
        flags = " ".join(f"--ignore {shlex.quote(name)}" for name in leaking)
        print_line(f"possible target leakage: {leakage_sentence(leaking)} ({flags}), then rank again")
    if out is not None:
        print_line(f"all {len(selector.ranking_):,} features are in {shown(out)}")
    if select is not None:
        print_line(f"the table of the best {len(best):,} {'feature' if len(best) == 1 else 'features'} is in {select}")


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
    fdr: float | None = None,
    quiet: bool,
    is_interrupted: bool = False,
) -> int:
    """Write the reports that are complete before Ctrl-C, and return the exit code."""
    of_table: dict[str, Any] = {}
    if table is not None:
        of_table = {"X": table.frame(), "y": table.y, "target": table.target, "feature_names": table.feature_names}
        of_table |= {"source": reading.path.name, "groups": table.groups, "sample_weight": table.sample_weight}
        of_table["adjust"] = table.adjust
        of_table["reading"] = reading.code(allow_missing=bool(len(columns_not_finite(table.X))))
    n_written = 0
    try:
        if is_interrupted:
            raise KeyboardInterrupt
        with warnings_as_lines(0 if quiet else 1):
            tests = {"inference": False} if fdr is None else {"fdr": fdr}
            summary = summarize(run, **of_table, **tests, command=command)
            for path in paths:
                save(summary, path)
                n_written += 1
                if not quiet:
                    print_line(f"the report is in {shown(path)}")
    except KeyboardInterrupt:
        if command is None and not n_written:  # without a ranking there is no result
            raise
        print_line(f"interrupted before there was a report in {', '.join(map(shown, paths[n_written:]))}")
        return STOPPED_EARLY
    return 0


def shown(path: Path) -> str:
    """The name of an output file in messages."""
    return STANDARD_OUTPUT if path.stem == STANDARD_OUTPUT else str(path)


def print_ranking(columns: dict[str, Any], top: int) -> None:
    """Print the first rows of the columns of `ranking_columns`."""
    decimals, columns = decimals_of(columns), display_columns(columns)
    hidden = FILE_COLUMNS if console().width >= WIDE else (*FILE_COLUMNS, *WIDE_COLUMNS)
    names = [name for name in columns if name not in hidden]
    rows = [
        [cell(name, value, decimals) for name, value in zip(names, values, strict=True)]
        for values in islice(zip(*(columns[name] for name in names), strict=True), top)
    ]
    _print_table([name.replace("_", " ") for name in names], rows, name_column=1)


def summary_of(selector: Any, names: Sequence[str], tests: Mapping[str, Discoveries]) -> str:
    """Sentences on the features, on the run, and on the reason why it stopped."""
    run = selector.run_
    n_named = {name: int(found.mask.sum()) for name, found in tests.items()}
    sentences = []
    if tests:
        n_clusters = len(named_clusters(tests))
        words = inference_sentence(n_named["related"], n_named["needed"], tests["related"].fdr, n_clusters=n_clusters)
        sentences.append(with_assumption(words, selector.notes_))
    sentences += notes_on_run(run, names)
    seconds = run.ledger.seconds
    speed = f", {selector.n_probes_ / seconds:,.0f} per second" if seconds else ""
    sentences.append(f"{selector.n_probes_:,} probes in {seconds:.1f} s{speed}, seed {run.plan.seed}")
    return " ".join(f"{sentence}." for sentence in [*sentences, f"Stop reason: {selector.stop_reason_}"])


# ---- differences, the demonstration and comparisons


def print_diff(comparison: dict[str, Any], first: str, second: str) -> None:
    """Print the comparison of two runs by `probewise.report.diff.compare_runs`."""
    if comparison["settings"]:
        settings = ((each["name"], each["first"], each["second"]) for each in comparison["settings"])
        rows = [["-" if text is None else str(text) for text in setting] for setting in settings]
        _print_table(["settings that differ", first, second], rows, name_column=0)
    else:
        _print_plain("The settings are the same.")
    measures = {"probes": 0, "mean": 4, "std": 4, "min": 4, "max": 4, "seconds": 1}
    rows = [[name, *(_number(run[name], decimals) for run in comparison["J"])] for name, decimals in measures.items()]
    _print_table(["J", first, second], rows, name_column=0)
    tops = comparison["tops"]
    rows = [[f"top {each['size']}", f"{each['shared']}", _number(each["by_chance"], 1)] for each in tops]
    if rows:
        _print_table(["features", "shared", "expected by chance"], rows, name_column=0)
    rows = [[each["feature"], f"{each['first']:,}", f"{each['second']:,}"] for each in comparison["top"]]
    _print_table(["best in either run", f"rank, {first}", f"rank, {second}"], rows, name_column=0)
    same, correlation = comparison["same_results"], comparison["rank_correlation"]
    spearman = "" if correlation is None else f", rank correlation (Spearman) {correlation:.3f}"
    _print_plain(f"{comparison['features']:,} features in both{spearman}. The first {same:,} probes have the same J.")


def print_demo(data: KnownTruth, tournament: Tournament, daf: DAF, bif: BIF) -> None:
    """Print the top of the tournament, with the ranks by the other methods, and how many features each one found."""
    informative = set(data.informative.tolist())
    tick = "x" if console().options.ascii_only else "✓"
    columns = ranking_columns(findings_of_selector(tournament), {})
    order = np.argsort(tournament.ranking_)
    shown = {name: columns[name] for name in ("rank", "feature", "score", "above_average", "std_error")}
    shown |= {f"rank_by_{name}": each.ranking_[order].astype(str) for name, each in (("DAF", daf), ("BIF", bif))}
    shown["informative"] = [tick if column in informative else "" for column in order.tolist()]
    print_ranking(shown, TOP)
    tops = (np.flatnonzero(each.ranking_ <= TOP).tolist() for each in (tournament, daf, bif))
    by_tournament, by_daf, by_bif = map(informative.intersection, tops)
    missed = ", ".join(data.feature_names[feature] for feature in sorted(by_tournament - by_bif))
    top = f"Tournament puts {len(by_tournament)} of the {len(informative)} informative features in its top {TOP}"
    _print_plain(f"{top}, DAF {len(by_daf)}, BIF {len(by_bif)}.")
    _print_plain(f"Found by Tournament, missed by BIF: {missed or 'none'}.")
    _print_plain(f"Tournament: {summary_of(tournament, data.feature_names, discoveries_of(tournament))}")
    _print_plain(f"DAF: {summary_of(daf, data.feature_names, {})}")


def output_comparison(result: Any, *, out: Path | None, plot: Path | None, quiet: bool) -> None:
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


def print_comparison(result: StudyResult) -> None:
    """Print accuracy and stability by the number of features, and a test of each pair of methods."""
    from ..report.study import sentences_on_study

    words = sentences_on_study(result)
    shown = np.unique(np.linspace(0, len(result.sizes) - 1, SIZES_SHOWN).round().astype(int))
    sizes = [f"{size}" for size in result.sizes[shown]]

    def show(what: str, values: Any, last_column: str, last: Any, decimals: int, sentence: str) -> None:
        rows = [
            [name, *(_number(value, 3) for value in row[shown]), _number(end, decimals)]
            for name, row, end in zip(result.selectors, values, last, strict=True)
        ]
        _print_table([what, *sizes, last_column], rows, name_column=0)
        _print_plain(sentence)

    means = np.moveaxis(result.accuracy.mean(axis=0), 1, 0)
    for classifier, by_size, sentence in zip(result.classifiers, means, words["accuracy"], strict=True):
        show(f"accuracy, {classifier}", by_size, "mean", by_size.mean(axis=1), 3, sentence)
    stability, seconds = result.stability()["cw_rel"], result.seconds.mean(axis=0)
    show("stability, CW_rel", stability, "seconds", seconds, 2, words["stability"]["cw_rel"])
    if len(result.selectors) > 1:
        _print_verdict(result, words["pairs"])


def _print_verdict(result: StudyResult, sentence: str) -> None:
    rows = []
    for classifier, first, second, difference, _, p_value, p_holm in zip(*result.verdict().values(), strict=True):
        better = (first if difference > 0 else second) if p_holm < SIGNIFICANT else "-"
        numbers = [f"{difference:+z.3f}", _number(p_value, 3), _number(p_holm, 3)]
        rows.append([f"{first} - {second}", classifier, *numbers, better])
    _print_table(["difference in accuracy", "classifier", "mean", "p", "p (Holm)", "better"], rows, name_column=0)
    _print_plain(sentence)
    _print_plain(
        f"{len(result.trials)} trials, means over sizes. p: corrected resampled t-test (Nadeau and Bengio 2003); "
        f"p (Holm): adjusted for the number of pairs. The better method is named if p (Holm) is below {SIGNIFICANT:g}."
    )


# ---- the terminal


def console() -> Console:
    """Standard output, at least wide enough for the numbers; without a terminal its width is unlimited."""
    from rich.console import Console

    screen = Console()
    screen.width = max(screen.width, NARROWEST) if screen.is_terminal else sys.maxsize
    return screen


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, name_column: int) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for number, title in enumerate(header):
        if number == name_column:
            table.add_column(title, overflow="fold")
        else:
            table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console().print(table)


def _print_plain(line: str) -> None:
    console().print(line, highlight=False, markup=False, emoji=False)


def _number(value: float, decimals: int) -> str:
    return cell("", value, decimals)
