"""The commands: each reads its options, calls public functions, and prints or writes the result."""

from __future__ import annotations

import inspect
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import __version__
from .._selector import DEFAULT_FDR
from ..bif import BIF
from ..daf import DAF
from ..datasets import make_madelon
from ..engine.settings import recording_command
from ..io import Table, convert_table, require_ranking_path, require_table_path
from ..progress import live_line
from ..report import render_json, require_report_path
from ..report.diff import compare_runs
from ..stopping import MaxProbes, Settled
from ..tournament import Tournament
from ..validation.parameters import completed_file, writable_path
from . import inputs
from . import options as o
from .console import (
    STOPPED_EARLY,
    TOP,
    fitted,
    interrupt_afterwards,
    output_comparison,
    output_files,
    output_ranking,
    print_demo,
    print_diff,
    print_line,
    warnings_as_lines,
    write_reports,
)  # fmt: skip
from .inputs import MethodOptions, RowOptions, StoredOptions, TableOptions

EXAMPLES = """Examples:

probewise demo

probewise rank data.csv --target label --report report.html

probewise rank data.parquet --target label --time-limit 5m --out ranking.csv

probewise compare data.csv --target label --methods tournament,fsdd,all --plot comparison.png

probewise report run.ledger --data data.csv --target label --out report.html

probewise diff monday.ledger tuesday.ledger

probewise convert wide.parquet wide.npy --target label --dtype float32

Exit codes: 0, success; 2, an error, with its reason in one line; 3, stopped early (Ctrl-C, a full disk, a lost
cluster) with the result so far; 130, interrupted before there was a result."""
INTERRUPTED = 130
DEMO_PROBES = 2500  # of DAF
UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it

app = typer.Typer(
    help="Find the few features that matter in a wide table. Each feature is judged together with others.",
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command that was typed, and exit."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    code = run(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the result is complete, and workers are being stopped
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name, print errors in one line, and return the exit code."""
    code = 2
    try:
        code = int(app(list(arguments), prog_name="probewise", standalone_mode=False, obj=arguments) or 0)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except UsageError as error:
        print_line(f"{error.format_message()} (see probewise --help)")
    except (ValueError, ImportError) as error:
        print_line(str(error))
    except OSError as error:
        print_line(f"{error.strerror}: {error.filename}" if error.filename else str(error))
    except MemoryError as error:
        print_line(f"there is not enough memory for this table: use fewer columns or rows ({error or 'out of memory'})")
    if code == INTERRUPTED:  # typer turns Ctrl-C into this code
        print_line("interrupted before there was a result")
    return code


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"probewise {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def probewise(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def demo(
    random_state: Annotated[int, typer.Option(metavar="SEED", min=0, help="Use other data and other probes.")] = 0,
    n_jobs: o.NJobs = -1,
) -> None:
    """Rank data whose informative features are known by Tournament, DAF and BIF, and show which are found.

    The data follow the recipe of Madelon: 1,000 rows and 500 features, 20 of them informative, most of them only in
    combination. Takes less than a minute.
    """
    data = make_madelon(random_state=random_state)
    table = Table(data.X, data.y, data.feature_names, "class")
    stop = Settled(top=TOP, overlap=0.9) | MaxProbes(DEMO_PROBES)
    run: dict[str, Any] = {"n_jobs": n_jobs, "random_state": random_state, "verbose": 1}
    tournament, daf = fitted(Tournament(**run), table), fitted(DAF(stop=stop, **run), table)
    print_demo(data, tournament, daf, BIF(n_jobs=n_jobs).fit(table.frame(), table.y))


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with options for all fields of the dataclasses among its parameters."""
    parameters, members = dict[str, inspect.Parameter](), dict[str, tuple[Any, list[str]]]()
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        fields = {name: parameter}
        if is_dataclass(parameter.annotation):
            kind: Any = parameter.annotation
            fields = dict(inspect.signature(kind, eval_str=True).parameters)
            members[name] = kind, list(fields)
        parameters |= {field: each.replace(kind=each.KEYWORD_ONLY) for field, each in fields.items()}

    @wraps(command)
    def call(**values: Any) -> Any:
        for name, (kind, fields) in members.items():
            values[name] = kind(**{field: values.pop(field) for field in fields})
        return command(**values)

    call.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    call.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return call


@app.command(epilog="Example: probewise rank data.csv --target label --time-limit 5m --out ranking.csv")
@expanded
def rank(
    context: typer.Context,
    reading: RowOptions,
    method: MethodOptions,
    top: o.Top = TOP,
    out: o.Out = None,
    select: o.Select = None,
    report: o.Report = None,
    quiet: o.Quiet = False,
) -> int:
    """Rank the features of a table by how much they add to other features.

    Random subsets of the features (probes) are scored in rounds. After each round the weakest features are dropped;
    the features that predict best together come first. With --method daf all features stay to the end, and each is
    ranked by how much better the probes with it are than the probes without it. Ctrl-C stops with the ranking so far.
    """
    outputs = {
        "out": (require_ranking_path, out, ".csv"),
        "select": (require_table_path, select, ""),
        "report": (require_report_path, report, ".json"),
    }
    with output_files(outputs, inputs=[*reading.files, *method.files], run=method.ledger, quiet=quiet) as files:
        table = reading.read(allow_missing=method.allows_missing, quiet=quiet)
        with recording_command(_without_ledger(context.obj)):
            selector = fitted(method.selector(table, top=top, quiet=quiet), table)
        with interrupt_afterwards() as interrupts:
            output_ranking(
                selector, table, top=top, out=files["out"], select=files["select"], fdr=method.rate, quiet=quiet,
                all_selected=method.n_features_to_select is not None,
            )  # fmt: skip
        code = STOPPED_EARLY if method.has_probes and selector.run_.interrupted else 0
        if files["report"]:
            code |= write_reports(
                selector, files["report"], reading, table, command=shlex.join(["probewise", *context.obj]),
                fdr=method.rate, quiet=quiet, is_interrupted=bool(interrupts),
            )  # fmt: skip
    return code


def _without_ledger(arguments: Sequence[str]) -> list[str]:
    """The arguments that repeat a run, without those that say where it is kept."""
    left, rest = [], iter(arguments)
    for word in rest:
        if word == "--ledger":
            next(rest, None)
        elif not word.startswith("--ledger="):
            left.append(word)
    return left


@app.command(epilog="Example: probewise compare data.csv --target label --methods tournament,bif,all --plot plot.png")
@expanded
def compare(
    reading: TableOptions,
    methods: o.Methods = "daf,bif,all",
    classifiers: o.Classifiers = "knn,linear",
    trials: o.Trials = 20,
    test_size: o.TestSize = 0.5,
    sizes: o.Sizes = None,
    n_probes: o.NProbes = None,
    time_limit: o.TimeLimit = None,
    out: o.Out = None,
    plot: o.Plot = None,
    quiet: o.Quiet = False,
    ledger: o.Ledger = None,
    random_state: o.RandomState = None,
    n_jobs: o.NJobs = -1,
) -> int:
    """Compare methods of feature selection on held-out rows.

    The rows are split at random, several times. Each method selects features on one part; classifiers are trained
    there with the selected features and tested on the other part. The tables show accuracy and stability for each
    number of features, and for each pair of methods whether the difference could be chance. Ctrl-C stops with the
    trials done so far.
    """
    from ..plots import require_picture_path

    resumed = ledger is not None and ledger.exists() and ledger.stat().st_size > 0
    compared = inputs.selectors_named(methods, n_probes=n_probes, time_limit=time_limit)
    numbers = None if sizes is None else inputs.whole_numbers("sizes", sizes)
    outputs = {"out": (require_ranking_path, out, ".csv"), "plot": (require_picture_path, plot, "")}
    with output_files(outputs, inputs=reading.files, run=ledger, quiet=quiet) as files:
        table = reading.read(quiet=quiet)

        from ..study import CLASSIFIERS, Study

        center = not hasattr(table.X, "tocsr")
        names = inputs.names_in("classifiers", classifiers, CLASSIFIERS)
        study = Study(
            compared,
            {name: CLASSIFIERS[name](center) for name in names},
            trials=trials,
            test_size=test_size,
            sizes=numbers,
            ledger=ledger,
            random_state=0 if random_state is None and not resumed else random_state,
            n_jobs=n_jobs,
            verbose=0 if quiet else 1,
        )
        with warnings_as_lines(study.verbose):
            result = study.compare(table.frame(), table.y)
        with interrupt_afterwards():
            output_comparison(result, out=files["out"], plot=files["plot"], quiet=quiet)
    return STOPPED_EARLY if len(result.trials) < trials else 0


@app.command(epilog="Example: probewise report run.ledger --data data.csv --target label --out report.html")
@expanded
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The file of rank --ledger or compare --ledger.")],
    reading: StoredOptions,
    out: o.Report = None,
    quiet: o.Quiet = False,
) -> int:
    """Write the report of a stored run: one page that needs no other files.

    With the table the report also says how many features are enough, which features are similar, and how they rank
    on their own.
    """
    if not out:
        raise ValueError("a report needs --out FILE: .html, .md or .json")
    if reading.data is None and reading != StoredOptions(features_in=reading.features_in):
        raise ValueError("--target and the other options of the table need --data DATA")
    outputs = {"out": (require_report_path, out, ".json")}
    with output_files(outputs, inputs=reading.files, run=run, quiet=quiet) as files:
        table = None if reading.data is None else reading.read(allow_missing=True, quiet=quiet)
        return write_reports(run, files["out"], reading, table, fdr=DEFAULT_FDR, quiet=quiet)


@app.command(epilog="Example: probewise diff monday.ledger tuesday.ledger")
def diff(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="The file of rank --ledger.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="The file of another run.")],
    top: o.Top = TOP,
    out: Annotated[Path | None, o.output_option(metavar="FILE", help="Write JSON; - prints it.")] = None,
) -> None:
    """Compare two stored runs: settings that differ, features that both rank high, rank correlation, and scores."""
    require = partial(writable_path, formats=[".json"], refusal="{} cannot be written: name it .json")
    with output_files({"out": (require, out, ".json")}, inputs=[second], run=first, quiet=False) as files:
        comparison = compare_runs(first, second, top=top)
        print_diff(comparison, first.name, second.name)
        if files["out"] is not None:
            with completed_file(files["out"]) as file:
                file.write_text(render_json(comparison), encoding="utf-8")


@app.command(epilog="Example: probewise convert wide.parquet wide.npy --target label --dtype float32")
def convert(
    data: o.Data,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The .npy file to write, with OUT.json next to it.")],
    target: o.Target = None,
    id_column: o.IdColumn = None,
    ignore: o.Ignore = None,
    decimal: o.Decimal = None,
    dtype: Annotated[
        str | None,
        o.output_option(
            metavar="TYPE", help="float32 or float64. Default: float32 or integers if all features are, else float64."
        ),
    ] = None,
    force: Annotated[bool, o.output_option("--force", help="Overwrite existing files.")] = False,
    quiet: o.Quiet = False,
) -> None:
    """Convert a table to a file that is mapped and need not fit into memory.

    OUT contains the features, column by column; OUT.json contains their names, the target and the ids. Parquet files
    are read a few columns at a time, other formats as a whole.
    """
    with live_line(0 if quiet else 1) as progress:
        rows, columns = convert_table(
            data, out, target=target, id_column=id_column, ignore=ignore or (), dtype=dtype, decimal=decimal,
            force=force, progress=progress,
        )  # fmt: skip
    if not quiet:
        print_line(f"{rows:,} rows and {columns:,} features are in {out}")
