"""The commands: each parses its options, calls a public function and prints."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Annotated, Any

from .. import __version__
from ..validation.errors import ParameterError
from ..validation.parameters import writable_path
from . import files, options, parsing
from .console import print_demo, print_diff, print_line, print_outcome, warnings_as_lines
from .options import RENAMED, TOP, Option, as_flag
from .results import fitted, give_comparison, give_ranking, write_reports

try:
    import typer
except ModuleNotFoundError:
    print("probewise: the command line needs the cli extra: pip install 'probewise[cli]'", file=sys.stderr)
    raise SystemExit(2) from None

EXAMPLES = """Examples:

probewise demo

probewise rank data.csv --target label

probewise rank data.parquet --target label --time 5m --out ranking.csv

probewise compare data.csv --target label --methods daf,bif,all --plot comparison.png

probewise report run.ledger --data data.csv --target label --out report.html

probewise diff monday.ledger tuesday.ledger

probewise convert wide.parquet wide.npy --target label --dtype float32

probewise reproduce fsdd-2008 --data folder"""
EXIT_CODES = """Exit codes: 0, done; 2, refused, for the reason printed; 3, broken off (Ctrl-C, a full disk, a lost
cluster) with the result so far; 130, interrupted before there was one."""
BROKEN_OFF, INTERRUPTED = 3, 130
PAGES = {"json": ".json", "markdown": ".md"}
UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it

app = typer.Typer(
    help="Find the few features that matter in a wide table. Each is judged in the company of others.",
    epilog=f"{EXAMPLES}\n\n{EXIT_CODES}",
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
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; the exit code. What is wrong with them is printed in one line."""
    code, arguments = 2, _by_new_names(arguments)
    try:
        code = int(app(arguments, prog_name="probewise", standalone_mode=False, obj=arguments) or 0)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except UsageError as error:
        print_line(f"{error.format_message()} (see probewise --help)")
    except ParameterError as error:
        print_line(error.worded(as_flag))
    except (ValueError, ImportError) as error:
        print_line(str(error))
    except OSError as error:
        print_line(f"{error.strerror}: {error.filename}" if error.filename else str(error))
    except MemoryError as error:
        print_line(f"there is not enough memory for this table: use fewer columns or rows ({error or 'out of memory'})")
    if code == INTERRUPTED:
        awaited = "result" if {"compare", "convert", "diff", "reproduce", "report"} & set(arguments[:1]) else "ranking"
        print_line(f"interrupted before there was a {awaited}")
    return code


def _by_new_names(arguments: Sequence[str]) -> list[str]:
    """The arguments, with options under old names by their new ones, and a line about each."""
    renamed = RENAMED.get(arguments[0], {}) if arguments else {}
    words = [word.partition("=") for word in arguments]
    if not {"-q", "--quiet"} & set(arguments):
        for old in dict.fromkeys(flag for flag, _, _ in words if flag in renamed):
            print_line(f"{old} is called {renamed[old]} now")
    return [renamed.get(flag, flag) + equals + value for flag, equals, value in words]


# ---- options as data to commands of typer


def command(
    declared: Sequence[Option], example: str | None = None, dash: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Any], Any]:
    """A command with these options; its function takes their values, and the ``arguments`` as typed, as one object.

    ``dash`` are the options that take - for standard output, with the endings of what is printed there.
    """

    def register(body: Callable[[Any], int | None]) -> Callable[[Any], int | None]:
        def call(context: typer.Context, **values: Any) -> int | None:
            given = SimpleNamespace(**values, arguments=context.obj)
            with files.piped(given, dash):
                return body(given)

        context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        epilog = None if example is None else f"Example: {example}"
        parameters = [context, *map(_parameter, declared)]
        more = {option.name for option in declared if option.is_advanced}
        if more:
            parameters.append(_help_all(more))
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        app.command(body.__name__, help=inspect.getdoc(body), epilog=epilog)(call)
        return body

    return register


def _parameter(option: Option) -> inspect.Parameter:
    if option.is_argument:
        info: Any = typer.Argument(metavar=option.metavar, help=option.help)
    else:
        info = typer.Option(
            *(option.flags or (option.flag,)),
            metavar=option.metavar,
            help=option.help,
            rich_help_panel=option.panel,
            hidden=option.hidden or option.is_advanced,
            min=option.at_least,
        )
    if option.check is not None:
        info.callback = _checking(option.check)
    needs_none = option.default is None and not option.is_argument
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.is_argument else option.default,
        annotation=Annotated[option.type | None if needs_none else option.type, info],
    )


def _help_all(names: set[str]) -> inspect.Parameter:
    """The option that shows these options, too."""

    def show(context: typer.Context, wanted: bool) -> None:
        if wanted:
            more = [parameter for parameter in context.command.params if parameter.name in names]
            for parameter in more:
                parameter.hidden = False  # type: ignore[attr-defined]
            print(context.get_help())
            for parameter in more:
                parameter.hidden = True  # type: ignore[attr-defined]
            raise typer.Exit

    help_text = f"Show {len(names)} more options: how to stop, how to judge, groups, costs, and the like."
    info = typer.Option("--help-all", callback=show, is_eager=True, help=help_text)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter("help_all", kind, default=False, annotation=Annotated[bool, info])


def _checking(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        try:
            return value if value is None else check(value)
        except ParameterError:
            raise
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return checked


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


# ---- the commands


@command(options.DEMO)
def demo(given: Any) -> None:
    """See it work: data whose informative features are known, ranked by Tournament, by DAF and by BIF.

    The data follow Madelon's recipe: 1,000 rows, 500 features, 20 of them informative, mostly only together.
    Takes less than a minute.
    """
    from ..bif import BIF
    from ..daf import DAF
    from ..datasets import make_madelon
    from ..io import Table
    from ..stopping import MaxTime, Settled
    from ..tournament import Tournament

    data = make_madelon(random_state=given.seed)
    table = Table(data.X, data.y, data.feature_names, "class")
    stop = Settled(top=TOP, overlap=0.9) | MaxTime(given.time)
    run = {"n_jobs": given.jobs, "random_state": given.seed, "verbose": 1}
    tournament, daf = fitted(Tournament(**run), table), fitted(DAF(stop=stop, **run), table)
    print_demo(data, tournament, daf, BIF(n_jobs=given.jobs).fit(table.frame(), table.y))


@command(
    options.RANK,
    "probewise rank data.csv --target label --time 5m --out ranking.csv",
    {"out": ".csv", "report": ".html", **PAGES},
)
def rank(given: Any) -> int:
    """Rank the features of a table by what they add to others.

    Random subsets of the features (probes) are scored, in rounds, after each of which the weaker part of the features
    leaves: those that predict best together come first. With --method daf all stay to the end, and each ranks by how
    much better the probes with it are than those without it; with no limit given that stops when the top 20 have
    settled, or after a minute. Ctrl-C ends it at any time with the ranking so far.
    """
    from ..engine.ledger import peek
    from ..engine.settings import begun_by
    from ..executors import on_dask
    from ..io import require_ranking_path, require_table_path
    from ..report import require_report_path

    given.resume = files.goes_on(given.ledger, given, lambda file: peek(file, "seed") is not None)
    asked, given.method = given.method, parsing.method_of(given)
    if given.n_features is not None and given.select is None:
        raise ValueError("--n-features needs --select FILE, the table that holds them")
    reports = files.reports_of(given, "report")
    pages = dict.fromkeys(("report", *PAGES), require_report_path)
    files.check_outputs(given, {"out": require_ranking_path, "select": require_table_path, **pages})
    makes_probes = given.method in ("daf", "tournament")
    with on_dask(given.dask, given.time) if given.dask is not None and makes_probes else nullcontext():
        table = files.table_to_rank(given, makes_probes=makes_probes)
        n_features = len(table.feature_names)
        if given.n_features is not None and given.n_features > n_features:
            raise ValueError(f"--n-features {given.n_features} is more than the {n_features} features of the table")
        make = {"daf": parsing.daf_of, "tournament": parsing.tournament_of}.get(given.method, parsing.without_probes)
        selector = make(given, table)
        with begun_by(_repeatable(given.arguments)):
            fitted(selector, table)
        give_ranking(selector, table, given)
        if asked is None and given.method == "daf" and not (given.resume or given.quiet):
            used = parsing.used_of(given, parsing.OF_DAF)
            print_line(f"ranked by DAF, as only DAF knows {used}; --method daf says so")
        if reports:
            write_reports(selector, reports, given, table, command=shlex.join(["probewise", *given.arguments]))
    return BROKEN_OFF if makes_probes and selector.run_.interrupted else 0


def _repeatable(arguments: Sequence[str]) -> list[str]:
    """The arguments without those that say where the run is kept."""
    kept, rest = [], iter(arguments)
    for word in rest:
        if word == "--ledger":
            next(rest, None)
        elif word != "--resume" and not word.startswith("--ledger="):
            kept.append(word)
    return kept


@command(
    options.COMPARE,
    "probewise compare data.csv --target label --methods daf,bif,all --plot comparison.png",
    {"out": ".csv"},
)
def compare(given: Any) -> int:
    """Compare ways to select features, on rows they have not seen.

    The rows are split at random, again and again. Each method selects on one part; classifiers trained there with the
    features selected are tested on the other. Shown are accuracy and stability by number of features, and for each
    pair of methods whether the difference could be chance. Ctrl-C ends it with the trials done so far.
    """
    from ..io import require_ranking_path
    from ..plots import require_picture_path

    given.resume = files.goes_on(given.ledger, given, lambda file: file.stat().st_size > 0)
    selectors = parsing.selectors_named(given)
    sizes = None if given.sizes is None else parsing.whole_numbers("sizes", given.sizes)
    files.check_outputs(given, {"out": require_ranking_path, "plot": require_picture_path})
    table = files.table_of(given)

    from ..study import CLASSIFIERS, Study

    center = not hasattr(table.X, "tocsr")
    names = parsing.names_in("classifiers", given.classifiers, CLASSIFIERS)
    classifiers = {name: CLASSIFIERS[name](center) for name in names}
    study = Study(
        selectors,
        classifiers,
        **parsing.values_of(given, "trials", "test_size"),
        ledger=given.ledger,
        sizes=sizes,
        random_state=parsing.seed_of(given),
        n_jobs=given.jobs,
        verbose=0 if given.quiet else 1,
    )
    with warnings_as_lines(study.verbose):
        result = study.compare(table.frame(), table.y)
    give_comparison(result, given)
    return BROKEN_OFF if len(result.trials) < given.trials else 0


@command(
    options.REPORT,
    "probewise report run.ledger --data data.csv --target label --out report.html",
    {"out": ".html", **PAGES},
)
def report(given: Any) -> None:
    """Make a report of a run that was kept: one page that needs nothing else.

    With the table it also says how many features are enough, which are alike, and how they rank on their own.
    """
    from ..report import require_report_path

    paths = files.reports_of(given, "out")
    files.check_outputs(given, dict.fromkeys(("out", *PAGES), require_report_path))
    if not paths:
        raise ValueError("a report needs --out FILE: .html, .md or .json")
    of_table = (given.target, given.target_file, given.id_column, given.ignore, given.categorical)
    if given.data is None and any(of_table):
        raise ValueError("--target and what else tells of the table need --data TABLE")
    table = None if given.data is None else files.table_of(given, allow_missing=True)
    write_reports(given.run, paths, given, table)


@command(options.DIFF, "probewise diff monday.ledger tuesday.ledger", {"json": ".json"})
def diff(given: Any) -> None:
    """Two kept runs side by side: settings that differ, what their tops share, rank correlation, and J."""
    from ..report import render_json
    from ..report.diff import compare_runs

    refusal = "{} cannot be written: name it .json"
    files.check_outputs(given, {"json": lambda path: writable_path(path, [".json"], refusal)})
    found = compare_runs(given.first, given.second, top=given.top)
    print_diff(found, given.first.name, given.second.name)
    if given.json is not None:
        given.json.write_text(render_json(found), encoding="utf-8")


@command(options.CONVERT, "probewise convert wide.parquet wide.npy --target label --dtype float32")
def convert(given: Any) -> None:
    """Make a table that need not fit into memory: rank reads only the columns it is at.

    OUT holds the features, column after column; OUT.json their names, the target and the ids. Parquet files are read
    some columns at a time, other formats as a whole.
    """
    from ..engine.progress import live_line
    from ..io import convert_table

    with live_line(0 if given.quiet else 1) as progress:
        asked = parsing.values_of(given, "target", "id_column", "dtype", "decimal", "force")
        rows, columns = convert_table(given.data, given.out, **asked, ignore=given.ignore or (), progress=progress)
    if not given.quiet:
        print_line(f"{rows:,} rows and {columns:,} features are in {given.out}")


@command(options.REPRODUCE, "probewise reproduce fsdd-2008 --data folder --out results")
def reproduce(given: Any) -> None:
    """Make a paper's tables and figures again, beside the published numbers.

    Ended, by Ctrl-C or a kill, it goes on with the same command where it was.
    """
    from .. import papers
    from ..engine.progress import live_line

    if given.full:
        given.profile = "full"
    folder = given.out or Path(f"{given.paper}-{given.profile}")
    verbose = 0 if given.quiet else 1
    with warnings_as_lines(verbose), live_line(verbose) as progress:
        asked = parsing.values_of(given, "data", "openml", "profile", "seed", "device")
        outcome = papers.reproduce(
            given.paper, **asked, out=folder, n_jobs=given.jobs, only=given.only or (), progress=progress
        )
    print_outcome(outcome)
    if not given.quiet:
        print_line(f"in {folder}: {', '.join(path.name for path in outcome.files)}")
