"""What the commands print: tables for people, in as much width as there is."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ..report.ranking_table import INTERVAL_ENDS, cell, columns_of_selector, decimals_of, display_columns
from .options import TOP

if TYPE_CHECKING:
    from rich.console import Console

    from .._probing import ProbingSelector
    from ..bif import BIF
    from ..daf import DAF
    from ..datasets import KnownTruth
    from ..engine.interactions import Group, Interactions
    from ..papers import Outcome
    from ..study import StudyResult
    from ..tournament import Tournament

# Of the terminal, which has room for the rest only.
LEFT_OUT = ("rank_low", "rank_high", "in_top", "lower_in", "fold_change", *INTERVAL_ENDS)
WAYS, WIDE = ("stands_out", "higher_in", "difference", "correlation"), 101  # of a terminal less wide
PAIRS_SHOWN = 10
SIZES_SHOWN = 6
CONVINCING = 0.05
NARROWEST = 64


def print_line(sentence: str) -> None:
    """One line on standard error."""
    lines = (line.strip() for line in sentence.splitlines())
    print("probewise:", plain(" ".join(line for line in lines if line)), file=sys.stderr)


@contextmanager
def warnings_as_lines(verbose: int) -> Iterator[None]:
    """Warnings as plain sentences, at the end; what is logged only where it is wanted."""
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


def print_ranking(columns: dict[str, Any], top: int) -> None:
    """The first rows of what `columns_of_selector` gives."""
    decimals, columns = decimals_of(columns), display_columns(columns)
    left_out = LEFT_OUT if console().width >= WIDE else (*LEFT_OUT, *WAYS)
    names = [name for name in columns if name not in left_out]
    rows = [
        [cell(name, value, decimals) for name, value in zip(names, values, strict=True)]
        for values in islice(zip(*(columns[name] for name in names), strict=True), top)
    ]
    _print_table([name.replace("_", " ") for name in names], rows, name_column=1)


def summary_of(daf: ProbingSelector, names: Sequence[str]) -> str:
    """What was asked about single features, how the run went, and why it ended."""
    from ..engine.settings import DEFAULT_FDR
    from ..report.sentences import notes_on_run, stands_out_sentence

    rate = getattr(daf, "fdr", DEFAULT_FDR)
    stands_out = daf.run_.stands_out(daf.coefficient, rate)
    sentences = []
    if stands_out is not None:
        sentences.append(stands_out_sentence(int(stands_out.sum()), len(names), rate))
    sentences += notes_on_run(daf.run_, names)
    sentences += [] if daf.screen_ is None else [daf.screen_.sentence]
    sentences += [] if daf.sampled_rows_ is None else [f"Scored on a sample of {len(daf.sampled_rows_):,} rows"]
    seconds = daf.ledger_.seconds
    speed = f"{daf.n_probes_ / seconds:,.0f} a second" if seconds else "at once"
    sentences.append(f"{daf.n_probes_:,} probes in {seconds:.1f} s, {speed}, seed {daf.plan_.seed}")
    return " ".join(f"{sentence}." for sentence in [*sentences, f"Stop reason: {daf.stop_reason_}"])


def print_together(found: Interactions, groups: Sequence[Group]) -> None:
    """The strongest pairs, and the groups in words."""
    from ..engine.interactions import FEWEST_IN_A_CELL, IN_WORDS

    pairs = found.pairs()
    if not pairs:
        _print_plain(
            f"No two of the features shown met in {FEWEST_IN_A_CELL} probes: more or larger probes would tell."
        )
    else:
        decimals = decimals_of({"std_error": [pair.std_error for pair in pairs]})
        rows = []
        for pair in pairs[:PAIRS_SHOWN]:
            numbers = [f"{pair.contrast:+.{decimals}f}", _number(pair.std_error, decimals)]
            numbers.append("<0.001" if pair.p < 0.001 else _number(pair.p, 3))
            rows.append([f"{pair.first} + {pair.second}", *numbers, IN_WORDS[pair.kind]])
        _print_table(["pair", "contrast", "std error", "p (Holm)", "what they do"], rows, name_column=0)
    for group in groups:
        _print_plain(f"{plain(str(group))}.")
    if not groups:
        _print_plain(f"None of the {len(found.names)} features shown was seen to stand in for another.")


def print_diff(found: dict[str, Any], first: str, second: str) -> None:
    """What `probewise.report.diff.compare_runs` gives."""
    if found["settings"]:
        settings = ((each["name"], each["first"], each["second"]) for each in found["settings"])
        rows = [["-" if text is None else str(text) for text in setting] for setting in settings]
        _print_table(["settings that differ", first, second], rows, name_column=0)
    else:
        _print_plain("The settings are the same.")
    measures = {"probes": 0, "mean": 4, "std": 4, "min": 4, "max": 4, "seconds": 1}
    rows = [[name, *(_number(run[name], decimals) for run in found["J"])] for name, decimals in measures.items()]
    _print_table(["J", first, second], rows, name_column=0)
    rows = [[f"top {each['size']}", f"{each['shared']}", _number(each["by_chance"], 1)] for each in found["tops"]]
    if rows:
        _print_table(["of the features", "shared", "by chance"], rows, name_column=0)
    rows = [[each["feature"], f"{each['first']:,}", f"{each['second']:,}"] for each in found["top"]]
    _print_table(["on top of either", f"rank, {first}", f"rank, {second}"], rows, name_column=0)
    same, correlation = found["same_results"], found["rank_correlation"]
    known = "" if correlation is None else f", rank correlation (Spearman) {correlation:.3f}"
    _print_plain(f"{found['features']:,} features in both{known}. The first {same:,} probes gave the same J in both.")


def print_demo(data: KnownTruth, tournament: Tournament, daf: DAF, bif: BIF) -> None:
    informative = set(data.informative.tolist())
    tick = "x" if console().options.ascii_only else "✓"
    columns = columns_of_selector(tournament, data.feature_names)
    order = np.argsort(tournament.ranking_)
    shown = {name: columns[name] for name in ("rank", "feature", "score", "above_average", "std_error")}
    shown |= {f"rank_by_{name}": each.ranking_[order].astype(str) for name, each in (("DAF", daf), ("BIF", bif))}
    shown["informative"] = [tick if column in informative else "" for column in order.tolist()]
    print_ranking(shown, TOP)
    tops = (np.flatnonzero(each.ranking_ <= TOP).tolist() for each in (tournament, daf, bif))
    found, by_daf, by_bif = map(informative.intersection, tops)
    missed = ", ".join(data.feature_names[feature] for feature in sorted(found - by_bif))
    top = f"Tournament puts {len(found)} of the {len(informative)} informative features in its top {TOP}"
    _print_plain(f"{top}, DAF {len(by_daf)}, BIF {len(by_bif)}.")
    _print_plain(f"Found by Tournament, missed by BIF: {missed or 'none'}.")
    _print_plain(f"Tournament: {summary_of(tournament, data.feature_names)}")
    _print_plain(f"DAF: {summary_of(daf, data.feature_names)}")


def print_comparison(result: StudyResult) -> None:
    """Accuracy by size with each classifier, stability by size, and a verdict on each pair."""
    from ..report.study import sentences_on_study

    words = sentences_on_study(result)
    places = np.unique(np.linspace(0, len(result.sizes) - 1, SIZES_SHOWN).round().astype(int))
    sizes = [f"{size}" for size in result.sizes[places]]

    def show(what: str, values: Any, last_column: str, last: Any, decimals: int, sentence: str) -> None:
        rows = [
            [name, *(_number(value, 3) for value in row[places]), _number(end, decimals)]
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
        better = (first if difference > 0 else second) if p_holm < CONVINCING else "-"
        numbers = [f"{difference:+z.3f}", _number(p_value, 3), _number(p_holm, 3)]
        rows.append([f"{first} - {second}", classifier, *numbers, better])
    _print_table(["difference in accuracy", "classifier", "mean", "p", "p (Holm)", "better"], rows, name_column=0)
    _print_plain(sentence)
    _print_plain(
        f"{len(result.trials)} trials, means over sizes. p: corrected resampled t-test (Nadeau and Bengio 2003); "
        f"p (Holm): adjusted for the number of pairs. Below {CONVINCING:g} the better one is named."
    )


def print_outcome(outcome: Outcome) -> None:
    """Tables with published numbers, as many columns abreast as there is room for, then the claims."""
    known = {cell.where for cell in outcome.cells if cell.published is not None}
    for table in outcome.tables():
        if table.where not in known:
            continue
        widest = max(map(len, [*table.columns, *(text for texts in table.rows.values() for text in texts)]))
        room = console().width - max(map(len, [table.where, *table.rows])) - 4
        abreast = max(1, room // (widest + 2))
        for start in range(0, len(table.columns), abreast):
            part = slice(start, start + abreast)
            rows = [[row, *texts[part]] for row, texts in table.rows.items()]
            _print_table([table.where, *table.columns[part]], rows, name_column=0)
    words = {True: "holds", False: "does not hold", None: "cannot be told"}
    _print_plain("Published / ours; numbers that are ours alone are in results.csv.")
    for claim in outcome.claims:
        _print_plain(f"{claim.text}: {words[claim.holds]} ({claim.ours})")


def console() -> Console:
    """Standard output, wide enough for the numbers; as wide as need be where it is not a terminal."""
    from rich.console import Console

    screen = Console()
    screen.width = max(screen.width, NARROWEST) if screen.is_terminal else sys.maxsize
    return screen


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, name_column: int) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for place, title in enumerate(header):
        if place == name_column:
            table.add_column(title, overflow="fold")
        else:
            table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console().print(table)


def _print_plain(line: str) -> None:
    console().print(line, highlight=False, markup=False, emoji=False)


def plain(text: str) -> str:
    """The text with what would disturb a terminal or a line spelled out."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _number(value: float, decimals: int) -> str:
    return cell("", value, decimals)
