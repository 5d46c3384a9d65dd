"""The command line: parse, call a public function, print."""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from .. import __version__
from ..checks.errors import ParameterError
from .console import (
    TOP,
    plain,
    print_comparison,
    print_demo,
    print_outcome,
    print_ranking,
    print_together,
    ranking_columns,
    summary_of,
    sure_columns,
)
from .options import (
    METHODS,
    WITHOUT_PROBES,
    as_flag,
    asked_how_many,
    asked_of_features,
    criterion_of,
    cut_of,
    folds_of,
    names_in,
    rule_of,
    selectors_named,
    share_of,
    whole_numbers,
    without_probes,
)

try:
    import typer
except ModuleNotFoundError:
    print("probewise: the command line needs the cli extra: pip install 'probewise[cli]'", file=sys.stderr)
    raise SystemExit(2) from None

if TYPE_CHECKING:
    from ..io import Table
    from ..probing.interactions import Group, Interactions
    from ..study import StudyResult

EXAMPLES = """Examples:

probewise demo

probewise rank data.csv --target label

probewise rank data.parquet --target label --time 300 --out ranking.csv

probewise compare data.csv --target label --methods daf,bif,all --plot comparison.png

probewise report run.ledger --data data.csv --target label --out report.html

probewise convert wide.parquet wide.npy --target label --dtype float32

probewise reproduce fsdd-2008 --data folder"""
PAPERS = ("daf-2011", "daf-2013", "efs-2004", "fsdd-2008")
INTERRUPTED = 130
BY_POLARS = (".parquet", ".arrow", ".feather", ".ipc", ".zst")
UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it

app = typer.Typer(
    help="Find the few features that matter in a wide table. Each is judged in the company of others.",
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """The entry point of the ``probewise`` command."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit code. What is wrong with them is said in one line."""
    code = 2
    try:
        code = int(app(list(arguments), prog_name="probewise", standalone_mode=False, obj=arguments) or 0)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except UsageError as error:
        say(f"{error.format_message()} (see probewise --help)")
    except ParameterError as error:
        say(_in_options(error.worded(as_flag)))
    except (ValueError, ImportError) as error:
        say(_in_options(str(error)))
    except OSError as error:
        say(f"{error.strerror}: {error.filename}" if error.filename else str(error))
    except MemoryError as error:
        say(f"there is not enough memory for this table: use fewer columns or rows ({error or 'out of memory'})")
    if code == INTERRUPTED:
        awaited = "result" if {"compare", "convert", "reproduce", "report"} & set(arguments[:1]) else "ranking"
        say(f"interrupted before there was a {awaited}")
    return code


def say(sentence: str) -> None:
    """One line on standard error."""
    lines = (line.strip() for line in sentence.splitlines())
    print("probewise:", plain(" ".join(line for line in lines if line)), file=sys.stderr)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"probewise {__version__}")
        raise typer.Exit


def _above_zero(value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not above 0.")
    return value


_option = typer.Option
_output = partial(typer.Option, rich_help_panel="What comes out")
_stop = partial(typer.Option, rich_help_panel="When to stop: at the first of these")
_judge = partial(typer.Option, rich_help_panel="How to judge")
_run = partial(typer.Option, rich_help_panel="The run")
_trial = partial(typer.Option, rich_help_panel="The trials")
_features = partial(typer.Option, rich_help_panel="The features: names of columns; more than one with commas")
_many = partial(typer.Option, rich_help_panel="How many features to keep")

_Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="The table: .csv, .tsv, .txt, .arff (these also as .gz or .zst), .parquet, .arrow, .feather, "
        ".svmlight, .libsvm, .npz, .h5ad, or .npy, which is not read as a whole (see probewise convert).",
    ),
]
_Target = Annotated[
    str | None,
    _option(
        metavar="COL",
        help="The column to predict: its name, or its number, counted from 0. Formats that bring a target need none.",
    ),
]
_TargetFile = Annotated[Path | None, _option(metavar="FILE", help="A second table, which holds the target.")]
_IdColumn = Annotated[
    str | None,
    _option("--id", metavar="COL", help="The column that names the rows: no feature; finds rows of the target file."),
]
_Ignored = Annotated[list[str] | None, _option(metavar="COL", help="A column to leave out. May be given repeatedly.")]
_Weights = Annotated[
    str | None,
    _option("--weights", metavar="COL", help="The column of weights: how much each row counts. No feature."),
]
_Groups = Annotated[
    str | None,
    _option("--groups", metavar="COL", help="The column that says which rows stay in one fold together. No feature."),
]
_Categorical = Annotated[
    list[str] | None,
    _features(
        "--categorical",
        metavar="COLS",
        help="These are categories, of text or numbers: each enters as a whole, a column of 0 and 1 for every level.",
    ),
]
_Json = Annotated[Path | None, _output("--json", metavar="FILE", help="The report's content as .json.")]
_Markdown = Annotated[Path | None, _output("--markdown", metavar="FILE", help="The report as .md.")]
_FeaturesIn = Annotated[
    str,
    _option(
        metavar="columns|rows",
        help="rows: a feature in each row, its name first, and a sample in each column; --target is then a row.",
    ),
]


@app.callback(invoke_without_command=True)
def probewise(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def demo(
    seed: Annotated[int, _option(min=0, metavar="N", help="Another seed: other data, other probes.")] = 0,
    jobs: Annotated[int, _option(metavar="N", help="Workers; -1 is all cores.")] = -1,
    time: Annotated[
        float, _option(callback=_above_zero, metavar="SECONDS", help="DAF stops then at the latest.")
    ] = 30.0,
) -> None:
    """See it work: data whose informative features are known, ranked by DAF and by BIF.

    The data follow Madelon's recipe: 1,000 rows, 500 features, 20 of them informative, mostly only together.
    Takes less than a minute.
    """
    from ..datasets import make_madelon
    from ..io import Table
    from ..selectors.bif import BIF
    from ..selectors.daf import DAF
    from ..stopping import MaxTime, Settled

    data = make_madelon(random_state=seed)
    table = Table(data.X, data.y, data.feature_names, "class")
    stop = Settled(top=TOP, overlap=0.9) | MaxTime(time)
    daf = _fitted(DAF(stop=stop, n_jobs=jobs, random_state=seed, verbose=1), table)
    bif = BIF(n_jobs=jobs).fit(table.frame(), table.y)
    print_demo(data, daf, bif)


@app.command(epilog="Example: probewise rank data.csv --target label --time 300 --out ranking.csv")
def rank(
    context: typer.Context,
    data: _Data,
    target: _Target = None,
    target_file: _TargetFile = None,
    id_column: _IdColumn = None,
    ignore: _Ignored = None,
    features_in: _FeaturesIn = "columns",
    weights: _Weights = None,
    groups: _Groups = None,
    categorical: _Categorical = None,
    group: Annotated[
        list[str] | None,
        _features(
            "--group", metavar="NAME=COLS", help="These enter and leave probes as one, and share a rank. Repeatable."
        ),
    ] = None,
    groups_file: Annotated[
        Path | None, _features(metavar="FILE", help="The same as a table of two columns: feature, group.")
    ] = None,
    keep_feature: Annotated[
        list[str] | None,
        _features("--keep-feature", metavar="COLS", help="These are in every probe, and always selected."),
    ] = None,
    drop_feature: Annotated[
        list[str] | None,
        _features("--drop-feature", metavar="COLS", help="These are in no probe and rank last. See also --ignore."),
    ] = None,
    costs: Annotated[
        Path | None,
        _features(
            metavar="FILE", help="Rank by benefit per cost: a table of two columns, feature, cost; others cost 1."
        ),
    ] = None,
    auto: Annotated[
        str | None,
        _many(
            metavar="decoys|size",
            help="Find how many: decoys, those that beat shuffled copies; size, the fewest that predict as well as the "
            "best number.",
        ),
    ] = None,
    fdr: Annotated[
        float | None, _many(metavar="Q", help="With --auto decoys: the share of false ones allowed. Default: 0.1.")
    ] = None,
    top: Annotated[int, _output(min=1, metavar="N", help="How many features to show.")] = TOP,
    out: Annotated[
        Path | None,
        _output(metavar="FILE", help="Write the whole ranking there: .csv, .tsv, .parquet or .json."),
    ] = None,
    select: Annotated[
        Path | None,
        _output(
            metavar="FILE", help="Write the best columns and the target there: .csv, .tsv, .parquet, .arrow, .feather."
        ),
    ] = None,
    keep: Annotated[
        int | None,
        _output(
            min=1,
            metavar="N",
            help="How many features --select writes. Default: those that --auto finds, or as many as shown.",
        ),
    ] = None,
    report: Annotated[
        list[Path] | None,
        _output("--report", metavar="FILE", help="Write a report to show: .html, .md or .json. May be repeated."),
    ] = None,
    json: _Json = None,
    markdown: _Markdown = None,
    together: Annotated[
        bool,
        _output(
            "--together",
            help="Also show which features are worth more, or less, together, and which stand in for one another.",
        ),
    ] = False,
    quiet: Annotated[bool, _output("--quiet", "-q", help="Print the ranking and nothing else.")] = False,
    probes: Annotated[int | None, _stop(min=1, metavar="N", help="Stop after this many probes.")] = None,
    time: Annotated[
        float | None,
        _stop(
            callback=_above_zero,
            metavar="SECONDS",
            help="Stop after this much work; a resumed run counts on.",
        ),
    ] = None,
    coverage: Annotated[
        int | None,
        _stop(min=1, metavar="N", help="Stop when every feature was in, and out of, so many probes."),
    ] = None,
    settled: Annotated[
        int | None,
        _stop(min=1, metavar="K", help="Stop when two halves of the probes agree on 90 % of the top K."),
    ] = None,
    confidence: Annotated[
        float | None,
        _stop(
            metavar="P",
            help="With --settled: stop instead when 90 % of the top K truly belong there, with this confidence.",
        ),
    ] = None,
    relative_change: Annotated[
        float | None,
        _stop(
            callback=_above_zero,
            metavar="T",
            help="Stop when scores change by less than this share of their first change.",
        ),
    ] = None,
    check_every: Annotated[int, _stop(min=1, metavar="N", help="Probes between two looks at what has changed.")] = 400,
    method: Annotated[
        str, _judge(metavar="NAME", help=f"daf, or a method without probes: {', '.join(WITHOUT_PROBES)}.")
    ] = "daf",
    task: Annotated[
        str, _judge(help="classification, regression, or auto: regression if the target has fractions.")
    ] = "auto",
    criterion: Annotated[
        str,
        _judge(
            help="How good a subset is: knn, linear, naive_bayes, svm, tree or separability; "
            "auto is knn, or linear above 5,000 rows."
        ),
    ] = "auto",
    scoring: Annotated[
        str | None,
        _judge(
            metavar="NAME",
            help="Its score: accuracy; for rare classes balanced_accuracy, f1_macro, or, of two classes, roc_auc; for "
            "numbers r2 or neg_mean_squared_error. Default: accuracy, or r2.",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        _judge(
            metavar="mean|median",
            help="Fill missing values with the mean or the median of the rows each fold trains on. Default: they are "
            "refused.",
        ),
    ] = None,
    cv: Annotated[int, _judge(min=2, metavar="N", help="Folds of its cross-validation.")] = 3,
    coefficient: Annotated[
        str,
        _judge(
            help="daf0; daf1, wary of unstable features; daf2, balanced over probe sizes; "
            "regression, without the luck of a feature's companions."
        ),
    ] = "daf0",
    max_probe_size: Annotated[
        int | None,
        _judge(min=1, metavar="N", help="Most features in a probe. Default: 200, or all if fewer."),
    ] = None,
    inclusion: Annotated[
        float | None, _judge(metavar="P", help="Instead of a size: each feature is in with this chance.")
    ] = None,
    screen: Annotated[
        str | None,
        _judge(
            metavar="N",
            help="For far more than 100,000 features: probe only the N (or the share, as 0.1) that FSDD ranks best. "
            "What matters only together with others may be lost.",
        ),
    ] = None,
    narrow: Annotated[
        str | None,
        _judge(
            metavar="SHARE",
            help="Probe in rounds, each among this share of the features of the round before, as 0.6, or auto.",
        ),
    ] = None,
    error_score: Annotated[
        float | None,
        _judge(metavar="J", help="Where the criterion fails on a probe, go on with this J. Default: stop."),
    ] = None,
    seed: Annotated[
        int | None,
        _run(min=0, metavar="N", help="Same seed, same ranking. Default: 0; a resumed run keeps its own."),
    ] = None,
    device: Annotated[
        str, _run(metavar="NAME", help="Where the arithmetic runs: cpu, cuda (a GPU), or auto, a GPU if there is one.")
    ] = "cpu",
    jobs: Annotated[int, _run(metavar="N", help="Workers; -1 is all cores. The result does not depend on it.")] = -1,
    ledger: Annotated[
        Path | None, _run(metavar="FILE", help="Keep the run in this file, so that it can go on.")
    ] = None,
    resume: Annotated[bool, _run("--resume", help="Go on with the run in the ledger.")] = False,
    dask: Annotated[
        str | None,
        _run(metavar="ADDRESS", help="Score the probes on the Dask cluster whose scheduler is there: tcp://host:8786."),
    ] = None,
) -> None:
    """Rank the features of a table by what they add to others.

    Random subsets of the features (probes) are scored. A feature ranks high if the probes with it are better than the
    probes without it. With no limit given it stops when the top 20 have settled, or after a minute.
    Ctrl-C ends it at any time with the ranking so far.
    """
    from ..io import require_ranking_path, require_table_path

    _require_kept(ledger, "ledger", resume=resume)
    if out is not None:
        require_ranking_path(out)
        _require_other_file("out", out, data, target_file, ledger)
    if select is not None:
        require_table_path(select)
        _require_other_file("select", select, data, target_file, ledger, out)
    elif keep is not None:
        raise ValueError("--keep needs --select FILE, the table that keeps them")
    report = _reports(report, json, markdown)
    _require_reports("report", report, data, target_file, ledger, out, select)
    if missing not in (None, "mean", "median"):
        raise ValueError(f"--missing {missing!r} is not known: choose mean or median")
    if dask is not None and method == "daf":
        from ..executors import on_dask

        context.with_resource(on_dask(dask))
    gaps = missing is not None or (method == "daf" and criterion == "tree") or method == "fsdd"
    columns = (target, target_file, id_column, ignore, features_in)
    table = _table(data, *columns, weights=weights, groups=groups, categorical=categorical, gaps=gaps, quiet=quiet)
    asked = asked_of_features(table, group, groups_file, keep_feature, drop_feature, costs)
    asked |= asked_how_many(auto, fdr)
    if keep is not None and keep > len(table.feature_names):
        raise ValueError(f"--keep {keep} is more than the {len(table.feature_names)} features of the table")

    writes = keep if keep or auto else min(top, len(table.feature_names))
    if method != "daf":
        limits: dict[str, Any] = {"probes": probes, "time": time, "coverage": coverage, "settled": settled}
        limits |= {"screen": screen, "error-score": error_score, "ledger": ledger, "dask": dask}
        limits |= {"together": together or None, "confidence": confidence, "narrow": narrow, "auto": auto, "fdr": fdr}
        limits |= {"group": group, "groups-file": groups_file, "keep-feature": keep_feature}
        limits |= {"drop-feature": drop_feature, "costs": costs}
        selector = without_probes(method, keep or min(top, len(table.feature_names)), jobs, device, limits)
        if "criterion" in selector.get_params():
            folds = folds_of(cv, groups, task, table)
            selector.set_params(criterion=criterion_of(criterion, task, table, missing), cv=folds, scoring=scoring)
        else:
            judged = {"scoring": scoring, "missing": missing, "weights": weights, "groups": groups}
            given = [f"--{name}" for name, value in judged.items() if value is not None]
            if given:
                raise ValueError(f"{', '.join(given)}: --method {method} has no criterion and no folds; leave it out")
        _give_ranking(_fitted(selector, table), table, top=top, out=out, select=select, keep=writes, quiet=quiet)
        if report:
            _give_reports(selector, report, table, data, command=context.obj, quiet=quiet)
        return

    from ..probing.record import begun_by
    from ..selectors.daf import DAF  # slow to load: faults of the table are shown before

    daf = DAF(
        criterion=criterion_of(criterion, task, table, missing),
        coefficient=coefficient,
        max_probe_size=max_probe_size,
        inclusion=inclusion,
        screen=None if screen is None else cut_of(screen),
        narrow=None if narrow is None else share_of(narrow),
        **asked,
        stop=rule_of(
            probes=probes,
            time=time,
            coverage=coverage,
            settled=settled,
            confidence=confidence,
            relative_change=relative_change,
        ),
        check_every=check_every,
        cv=folds_of(cv, groups, task, table),
        scoring=scoring,
        error_score="raise" if error_score is None else error_score,
        device=device,
        n_jobs=jobs,
        ledger=ledger,
        random_state=0 if seed is None and not resume else seed,
        verbose=0 if quiet else 1,
    )
    with begun_by(_repeatable(context.obj)):
        _fitted(daf, table)
    _give_ranking(daf, table, top=top, out=out, select=select, keep=writes, quiet=quiet)
    if together:
        print_together(*_together(daf, table, max(top, 2)))
    if report:
        _give_reports(daf, report, table, data, command=context.obj, quiet=quiet)


@app.command(epilog="Example: probewise compare data.csv --target label --methods daf,bif,all --plot comparison.png")
def compare(
    data: _Data,
    target: _Target = None,
    target_file: _TargetFile = None,
    id_column: _IdColumn = None,
    ignore: _Ignored = None,
    features_in: _FeaturesIn = "columns",
    methods: Annotated[
        str, _trial(metavar="NAMES", help=f"What to compare, with commas: {', '.join(METHODS)}; all: no selection.")
    ] = "daf,bif,all",
    classifiers: Annotated[
        str,
        _trial(
            metavar="NAMES", help="What judges: knn, linear, svm (these on scaled data), naive_bayes, tree, forest."
        ),
    ] = "knn,linear",
    trials: Annotated[int, _trial(min=1, metavar="N", help="Random splits to repeat it on.")] = 20,
    test_size: Annotated[float, _trial(metavar="SHARE", help="Share of the rows to test on.")] = 0.5,
    sizes: Annotated[
        str | None,
        _trial(metavar="NUMBERS", help="How many features, with commas: 5,10,20. Default: from 1 to at most 100."),
    ] = None,
    probes: Annotated[
        int | None, _trial(min=1, metavar="N", help="DAF and SFFS stop after so many subsets in each trial.")
    ] = None,
    time: Annotated[
        float | None,
        _trial(callback=_above_zero, metavar="SECONDS", help="They stop after so much work in each trial."),
    ] = None,
    out: Annotated[
        Path | None,
        _output(
            metavar="FILE", help="Write a row per trial, method, classifier and size: .csv, .tsv, .parquet, .json."
        ),
    ] = None,
    plot: Annotated[Path | None, _output(metavar="FILE", help="Draw the comparison: .png, .svg or .pdf.")] = None,
    quiet: Annotated[bool, _output("--quiet", "-q", help="Print the tables and nothing else.")] = False,
    seed: Annotated[
        int | None,
        _run(min=0, metavar="N", help="Same seed, same splits. Default: 0; a resumed run keeps its own."),
    ] = None,
    jobs: Annotated[int, _run("--jobs", "--n-jobs", metavar="N", help="Trials at a time; -1 is all cores.")] = -1,
    kept: Annotated[
        Path | None, _run("--run", metavar="FILE", help="Keep finished trials in this file, so that it can go on.")
    ] = None,
    resume: Annotated[
        bool, _run("--resume", help="Go on with the trials in that file; more may be asked for.")
    ] = False,
) -> None:
    """Compare ways to select features, on rows they have not seen.

    The rows are split at random, again and again. Each method selects on one part; classifiers trained there with the
    features selected are tested on the other. Shown are accuracy and stability by number of features, and for each
    pair of methods whether the difference could be chance. Ctrl-C ends it with the trials done so far.
    """
    from ..io import require_ranking_path

    _require_kept(kept, "run", resume=resume)
    selectors = selectors_named(methods, rule_of(probes=probes, time=time))
    wanted_sizes = None if sizes is None else whole_numbers("sizes", sizes)
    if out is not None:
        require_ranking_path(out)
        _require_other_file("out", out, data, target_file, kept, plot)
    if plot is not None:
        from ..plots import require_picture_path

        require_picture_path(plot)
        _require_other_file("plot", plot, data, target_file, kept)
    table = _table(data, target, target_file, id_column, ignore, features_in, quiet=quiet)

    from ..study import CLASSIFIERS, Study

    center = not hasattr(table.X, "tocsr")
    judges = {name: CLASSIFIERS[name](center) for name in names_in("classifiers", classifiers, CLASSIFIERS)}
    study = Study(
        selectors,
        judges,
        trials=trials,
        test_size=test_size,
        sizes=wanted_sizes,
        random_state=0 if seed is None and not resume else seed,
        n_jobs=jobs,
        run=kept,
        verbose=0 if quiet else 1,
    )
    with _in_plain_words(study.verbose):
        result = study.compare(table.frame(), table.y)
    _give_comparison(result, out=out, plot=plot, quiet=quiet)


@app.command(epilog="Example: probewise report run.ledger --data data.csv --target label --out report.html")
def report(
    kept: Annotated[Path, typer.Argument(metavar="RUN", help="The file of rank --ledger or of compare --run.")],
    out: Annotated[
        list[Path] | None, _output(metavar="FILE", help="Where to: .html, .md or .json. May be repeated.")
    ] = None,
    json: _Json = None,
    markdown: _Markdown = None,
    data: Annotated[
        Path | None, _option(metavar="TABLE", help="The table of the run: then the report says more.")
    ] = None,
    target: _Target = None,
    target_file: _TargetFile = None,
    id_column: _IdColumn = None,
    ignore: _Ignored = None,
    features_in: _FeaturesIn = "columns",
    categorical: _Categorical = None,
    coefficient: Annotated[str, _option(help="Of a ledger: daf0, daf1, daf2 or regression.")] = "daf0",
    quiet: Annotated[bool, _output("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Make a report of a run that was kept: one page that needs nothing else.

    With the table it also says how many features are enough, which are alike, and how they rank on their own.
    """
    paths = _reports(out, json, markdown)
    if not paths:
        raise ValueError("a report needs --out FILE: .html, .md or .json")
    _require_reports("out", paths, kept, data, target_file)
    if data is None and any((target, target_file, id_column, ignore, categorical)):
        raise ValueError("--target and what else tells of the table need --data TABLE")
    columns = (target, target_file, id_column, ignore, features_in)
    table = None if data is None else _table(data, *columns, categorical=categorical, gaps=True, quiet=quiet)
    _give_reports(kept, paths, table, data, coefficient=coefficient, quiet=quiet)


@app.command(epilog="Example: probewise convert wide.parquet wide.npy --target label --dtype float32")
def convert(
    data: _Data,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Where to: a .npy file, and OUT.json beside it.")],
    target: _Target = None,
    id_column: _IdColumn = None,
    ignore: _Ignored = None,
    dtype: Annotated[
        str | None,
        _output(metavar="TYPE", help="float32 or float64. Default: float32 or whole numbers if all are, else float64."),
    ] = None,
    force: Annotated[bool, _output("--force", help="Write over files that are there.")] = False,
    quiet: Annotated[bool, _output("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Make a table that need not fit into memory: rank reads only the columns it is at.

    OUT holds the features, column after column; OUT.json their names, the target and the ids. Parquet files are read
    some columns at a time, other formats as a whole.
    """
    from ..io import convert_table
    from ..probing.progress import live_line

    with live_line(0 if quiet else 1) as progress:
        rows, columns = convert_table(
            data,
            out,
            target=target,
            ignore=ignore or (),
            id_column=id_column,
            dtype=dtype,
            force=force,
            progress=progress,
        )
    if not quiet:
        say(f"{rows:,} rows and {columns:,} features are in {out}")


@app.command(epilog="Example: probewise reproduce fsdd-2008 --data folder --out results")
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"One of {', '.join(PAPERS)}.")],
    data: Annotated[
        Path | None,
        _option(metavar="DIR", help="The folder of data sets, as .npz files. Default: what PROBEWISE_DATA says."),
    ] = None,
    openml: Annotated[bool, _option("--openml", help="Fetch sets that are not there from OpenML, if it has them.")] = (
        False
    ),
    profile: Annotated[str, _option(help="quick: minutes; full: the paper's counts.")] = "quick",
    out: Annotated[
        Path | None,
        _output(metavar="FOLDER", help="Results, and finished parts to go on from. Default: PAPER-PROFILE."),
    ] = None,
    quiet: Annotated[bool, _output("--quiet", "-q", help="Print the tables and nothing else.")] = False,
    seed: Annotated[int, _run(min=0, metavar="N", help="Same seed, same numbers.")] = 0,
    jobs: Annotated[int, _run("--jobs", "--n-jobs", metavar="N", help="Workers; -1 is all cores.")] = -1,
) -> None:
    """Make a paper's tables and figures again, beside the published numbers.

    Ended by Ctrl-C, the same command goes on where it was.
    """
    from .. import papers
    from ..probing.progress import live_line

    folder = out or Path(f"{paper}-{profile}")
    verbose = 0 if quiet else 1
    with _in_plain_words(verbose), live_line(verbose) as progress:
        outcome = papers.reproduce(
            paper, data=data, openml=openml, out=folder, profile=profile, n_jobs=jobs, seed=seed, progress=progress
        )
    print_outcome(outcome)
    if not quiet:
        say(f"in {folder}: {', '.join(path.name for path in outcome.files)}")


def _table(
    data: Path,
    target: str | None,
    target_file: Path | None,
    id_column: str | None,
    ignore: list[str] | None,
    features_in: str,
    *,
    weights: str | None = None,
    groups: str | None = None,
    categorical: Sequence[str] | None = None,
    gaps: bool = False,
    quiet: bool,
) -> Table:
    from ..io import read_table
    from ..probing.progress import live_line

    with live_line(0 if quiet else 1) as progress, _panics_unsaid(data, target_file):
        return read_table(
            data,
            target=target,
            ignore=ignore or (),
            target_file=target_file,
            id_column=id_column,
            features_in=features_in,
            weights=weights,
            groups=groups,
            categorical=[name for item in categorical or () for name in item.split(",")],
            gaps=gaps,
            progress=progress,
        )


@contextmanager
def _panics_unsaid(*files: Path | None) -> Iterator[None]:
    """Keep back what polars' own code prints of a file that it cannot read, pages of it: the one line is ours."""
    by_polars = any(file is not None and file.suffix.lower() in BY_POLARS for file in files)
    try:
        kept = os.dup(2) if by_polars else -1
    except OSError:  # there is no standard error
        kept = -1
    if kept < 0:
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as unsaid:
        try:
            os.dup2(unsaid.fileno(), 2)
            yield
        except ValueError:
            unsaid.truncate(0)
            raise
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            unsaid.seek(0)
            for line in unsaid:
                os.write(2, line)


def _require_kept(file: Path | None, option: str, *, resume: bool) -> None:
    if file is None:
        if resume:
            raise ValueError(f"--resume needs --{option} FILE, the file that keeps the run")
    elif resume and not file.exists():
        raise ValueError(f"there is no {option} {file} to go on with: leave --resume out to begin it")
    elif not resume and file.exists():
        raise ValueError(f"{file} exists already: add --resume to go on with it, or choose another file")


def _require_other_file(option: str, written: Path, *others: Path | None) -> None:
    for path in others:
        if path is not None and path.resolve() == written.resolve():
            raise ValueError(f"--{option} {written} would overwrite {path}: choose another file")


def _fitted(selector: Any, table: Table) -> Any:
    with _in_plain_words(getattr(selector, "verbose", 0)):
        of_rows = {"sample_weight": table.weights, "groups": table.groups}
        given = {name: values for name, values in of_rows.items() if values is not None}
        return selector.fit(table.frame(), table.y, **given)


@contextmanager
def _in_plain_words(verbose: int) -> Iterator[None]:
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
        say(message)


def _give_ranking(
    selector: Any, table: Table, *, top: int, out: Path | None, select: Path | None, keep: int | None, quiet: bool
) -> None:
    """``keep`` is how many go into the table selected; None: those that the run found."""
    from ..io import write_ranking, write_table

    columns = ranking_columns(selector, table.feature_names)
    best = _best(selector, keep)
    try:
        if out is not None:
            write_ranking(out, columns | sure_columns(selector, top))
        if select is not None and len(best):
            write_table(select, table.take(best))
    finally:  # a disk that is full takes no ranking, but the screen does
        print_ranking(columns, top)
    if not quiet:
        if hasattr(selector, "ledger_"):
            say(" ".join([*_sentences(selector, table.feature_names), summary_of(selector)]))
        if out is not None:
            say(f"all {len(selector.ranking_):,} features are in {out}")
        if select is not None and len(best):
            say(f"the table of the best {len(best):,} is in {select}")
    if select is not None and not len(best):
        say(f"no feature is kept, so there is no {select}")


def _repeatable(arguments: Sequence[str]) -> list[str]:
    """The arguments without those that say where the run is kept."""
    kept, rest = [], iter(arguments)
    for word in rest:
        if word == "--ledger":
            next(rest, None)
        elif word != "--resume" and not word.startswith("--ledger="):
            kept.append(word)
    return kept


def _sentences(selector: Any, names: Sequence[str]) -> list[str]:
    """What was asked about single features, and what became of it."""
    from ..report.words import decoys_beaten, sentences_on_features

    decoys = decoys_beaten(selector.run_, getattr(selector, "p_values_", None), selector.fdr)
    return [f"{sentence}." for sentence in sentences_on_features(selector.run_, names, decoys)]


def _best(selector: Any, keep: int | None) -> Any:
    """The columns up to a rank, or those selected, best first; what is kept in any case too, what is dropped not."""
    chosen = selector.support_ if keep is None else selector.ranking_ <= keep
    units = getattr(selector, "units_", None)
    if units is not None:
        chosen[units.kept], chosen[units.dropped] = True, False
    order = np.argsort(selector.ranking_, kind="stable")
    return order[chosen[order]]


def _together(daf: Any, table: Table, top: int) -> tuple[Interactions, list[Group]]:
    """Pairs and groups among the best features, with the names of the table."""
    from dataclasses import replace

    from ..probing.interactions import columns_of, correlations

    found = daf.interactions(top)
    found = replace(found, names=tuple(table.feature_names[column] for column in found.features.tolist()))
    return found, found.groups(correlations(columns_of(daf.as_numbers(table.frame()), found.features)))


def _reports(paths: Sequence[Path] | None, json: Path | None, markdown: Path | None) -> list[Path]:
    for option, path, ending in (("json", json, ".json"), ("markdown", markdown, ".md")):
        if path is not None and path.suffix.lower() != ending:
            raise ValueError(f"--{option} {path}: name it *{ending}")
    return [*(paths or ()), *(path for path in (json, markdown) if path is not None)]


def _require_reports(option: str, paths: Sequence[Path] | None, *others: Path | None) -> None:
    from ..report import require_report_path

    for path in paths or ():
        require_report_path(path)
        _require_other_file(option, path, *others)


def _give_reports(
    run: Any,
    paths: Sequence[Path],
    table: Table | None,
    data: Path | None,
    *,
    command: Sequence[str] | None = None,
    coefficient: str | None = None,
    quiet: bool,
) -> None:
    from ..report import save, summarize

    with _in_plain_words(0 if quiet else 1):
        summary = summarize(
            run,
            None if table is None else table.frame(),
            None if table is None else table.y,
            source=None if data is None else data.name,
            target=None if table is None else table.target,
            command=None if command is None else shlex.join(["probewise", *command]),
            feature_names=None if table is None else table.feature_names,
            coefficient=coefficient,
        )
        for path in paths:
            save(summary, path)
            if not quiet:
                say(f"the report is in {path}")


def _give_comparison(result: StudyResult, *, out: Path | None, plot: Path | None, quiet: bool) -> None:
    from ..io import write_ranking

    try:
        if out is not None:
            write_ranking(out, result.table())
        if plot is not None:
            from ..plots import save_study

            save_study(result, plot)
    finally:
        print_comparison(result)
    if not quiet:
        for path, what in ((out, "table"), (plot, "picture")):
            if path is not None:
                say(f"the {what} is in {path}")


def _in_options(message: str) -> str:
    """A message of the library in the words of the command line."""
    message = message.replace("a criterion for regression such as KNN(task='regression')", "--task regression")
    message = message.replace("pass the folder", "give --data the folder").replace("openml=True", "--openml")
    message = re.sub(r"; for another score give the estimator, .*", "", message)
    message = re.sub(r"criterion=\w+\(missing='median'\)", "--missing median", message)
    message = re.sub(r", or give criterion=SV[CR]\(.*?\)", ", or use --criterion linear or knn", message)
    message = message.replace("sample_weight", "--weights")
    names = "max_probe_size|check_every|inclusion|coefficient|criterion|screen|cv|sizes|run|profile|features_in|dtype"
    names += "|error_score|scoring|missing|narrow|fdr"
    message = message.replace(
        "n_features_to_select='auto' by decoys needs narrow=None", "--auto decoys needs no --narrow"
    )
    message = message.replace(
        "n_features_to_select='auto' by decoys needs screen=None", "--auto decoys needs no --screen"
    )
    message = re.sub(r"use how_many='size'( with \w+)?", "use --auto size", message)
    message = message.replace("n_features_to_select='auto' makes", "--auto decoys makes")
    message = re.sub(r"^(keep|drop)( names|$)", r"--\1-feature\2", message).replace("in feature_groups", "in --group")
    message = message.replace("keep and drop", "--keep-feature and --drop-feature")
    message = re.sub(r"^costs must", "--costs must", message)
    message = message.replace("feature_groups", "--group").replace("categorical_features", "--categorical")
    return re.sub(rf"\b({names})=", lambda match: f"--{match[1].replace('_', '-')} ", message)
