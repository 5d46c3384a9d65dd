"""The options of every command, declared once as data, and how parameters of the library are called among them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import _HOME
from ..validation.errors import UNSAID, Parameter, Setting

METHODS = {name.lower(): name for name, home in _HOME.items() if home != "forest"}
WITHOUT_PROBES = [name for name in METHODS if name not in ("daf", "sffs", "tournament")]
TOP = 20

SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)")

OUTPUT = "What comes out"
RUN = "The run"


@dataclass(frozen=True)
class Option:
    """An option of a command, or an argument given by its place; ``metavar`` stands for its value in the help."""

    name: str
    type: Any
    metavar: str | None
    help: str
    default: Any = None
    panel: str | None = None
    flags: tuple[str, ...] = ()
    at_least: int | None = None
    check: Callable[[Any], Any] | None = None
    is_argument: bool = False
    hidden: bool = False
    is_advanced: bool = False  # shown by --help-all only

    @property
    def flag(self) -> str:
        return self.flags[0] if self.flags else f"--{self.name.replace('_', '-')}"


def panel(title: str, *options: Option) -> tuple[Option, ...]:
    """The options under a heading."""
    return tuple(replace(option, panel=title) for option in options)


def advanced(title: str, *options: Option) -> tuple[Option, ...]:
    """The same for options that few need."""
    return tuple(replace(option, panel=title, is_advanced=not option.hidden) for option in options)


# ---- what single values mean; a ValueError says what is wrong with one


def above_zero(value: float) -> float:
    if not value > 0:
        raise ValueError(f"{value:g} is not above 0.")
    return value


def seconds_in(text: str) -> float:
    """A number of seconds, or lengths of time, one after the other, as 1h30m."""
    text = text.strip().lower()
    if re.fullmatch(rf"(?:{LENGTH.pattern}\s*)+", text):
        return above_zero(sum(float(number) * SECONDS[unit] for number, unit in LENGTH.findall(text)))
    try:
        seconds = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no length of time: write seconds, or as 90s, 5m, 1h30m") from None
    return above_zero(seconds)


def local_path(text: str) -> Path:
    from ..io.input_files import local_path

    return local_path(text)


# ---- of several commands

# fmt: off
DATA = Option("data", str, "DATA",
    "The table: .csv, .tsv, .txt, .arff, .gct (these also as .gz, .bz2, .xz or .zst; - reads text from standard "
    "input), .xlsx, .parquet, .arrow, .feather, .svmlight, .libsvm, .npz, .h5ad, or .npy, which is not read as a whole "
    "(see probewise convert).", is_argument=True, check=local_path)
TARGET = Option("target", str, "COL",
    "The column to predict: its name, or its number, counted from 0. Formats that bring a target need none.")
TARGET_FILE = Option("target_file", str, "FILE", "A second table, which holds the target.", check=local_path)
DROP_UNLABELLED = Option("drop_unlabelled", bool, None, "Leave out rows that have no target.", False)
ID = Option("id_column", str, "COL",
    "The column that names the rows: no feature; finds rows of the target file. Default: a column of text that is "
    "different in every row.", flags=("--id",))
IGNORE = Option("ignore", list[str], "COL", "A column to leave out. May be given repeatedly.")
FEATURES_IN = Option("features_in", str, "columns|rows",
    "rows: a feature in each row, its name first, and a sample in each column; --target is then a row.", "columns")
DECIMAL = Option("decimal", str, "MARK", "The decimal mark of numbers in text, . or , if it is not to be guessed.")
NAMES = Option("names", str, "FILE",
    "A text with a name in each line, for the columns of formats that have none: svmlight, NPZ, NPY.", check=local_path)
TABLE = (TARGET, TARGET_FILE, DROP_UNLABELLED, ID, IGNORE, FEATURES_IN, DECIMAL, NAMES)
CATEGORICAL = Option("categorical", list[str], "COLS",
    "These are categories, of text or numbers: each enters as a whole, a column of 0 and 1 for every level.")
JSON = Option("json", Path, "FILE", "The report's content as .json; - prints it.")
MARKDOWN = Option("markdown", Path, "FILE", "The report as .md.", hidden=True)
QUIET = Option("quiet", bool, None, "Say nothing.", False, flags=("--quiet", "-q"))
QUIET_TABLES = replace(QUIET, help="Print the tables and nothing else.")
JOBS = Option("jobs", int, "N", "Workers; -1 is all cores.", -1, flags=("--jobs", "--n-jobs"))
DEVICE = Option(
    "device", str, "NAME", "Where the arithmetic runs: cpu, cuda (a GPU), or auto, a GPU if there is one.", "cpu"
)

# ---- of each command

DEMO = (
    Option("seed", int, "N", "Another seed: other data, other probes.", 0, at_least=0),
    JOBS,
    Option("time", str, "TIME", "DAF stops then at the latest: seconds, or as 5m, 1h30m.", "2", check=seconds_in),
)
RANK = (
    DATA,
    TARGET,
    ID,
    Option("missing", str, "mean|median|refuse",
        "Fill missing values with the mean or the median of the rows each fold trains on. Default: median, where the "
        "criterion can."),
    Option("method", str, "NAME", "tournament, for the few that predict best; daf, for which matter and how sure "
           f"that is; or a method without probes: {', '.join(WITHOUT_PROBES)}. Default: tournament, or daf where "
           "an option is its own; a resumed run keeps its own.", check=str.lower),
    Option("time", str, "TIME",
        "Stop after this much work: seconds, or as 5m, 1h30m. A resumed run counts on.", check=seconds_in),
    Option("top", int, "N", "How many features to show.", TOP, at_least=1),
    Option("out", Path, "FILE",
        "Write the whole ranking there: .csv, .tsv, .xlsx, .parquet or .json; - prints it as .csv."),
    Option("report", list[Path], "FILE", "Write a page to show: .html or .md. May be repeated."),
    Option("ledger", Path, "FILE", "Keep the run in this file, so that it can go on."),
    Option("resume", bool, None, "Go on with the run in the ledger; begin it, if there is none.", False),
    *advanced("The table",
        TARGET_FILE, DROP_UNLABELLED, IGNORE, FEATURES_IN, DECIMAL, NAMES,
        Option("weights", str, "COL", "The column of weights: how much each row counts. No feature."),
        Option("groups", str, "COL", "The column that says which rows stay in one fold together. No feature.",
            flags=("--row-groups",)),
    ),
    *advanced("The features: names of columns; more than one with commas",
        CATEGORICAL,
        Option("feature_groups", list[str], "NAME=COLS",
            "These enter and leave probes as one, and share a rank. Repeatable; or a table of two columns, feature and "
            "group."),
        Option("keep_features", list[str], "COLS", "These are in every probe, and always selected."),
        Option("drop_features", list[str], "COLS", "These are in no probe and rank last. See also --ignore."),
        Option("costs", Path, "FILE",
            "Rank by benefit per cost: a table of two columns, feature, cost; others cost 1."),
    ),
    *advanced("How many features to keep",
        Option("auto", str, "HOW",
            "Find how many, by daf: stands_out, those that beat luck on other rows as well; decoys, those that beat "
            "shuffled copies; size, the fewest that predict as well as the best number."),
        Option("fdr", float, "Q", "With --auto stands_out or decoys: the share of false ones allowed. Default: 0.1."),
    ),
    *advanced(OUTPUT,
        Option("select", Path, "FILE",
            "Write the best columns and the target there: .csv, .tsv, .parquet, .arrow, .feather."),
        Option("n_features", int, "N",
            "How many features --select writes. Default: those that --auto finds, or as many as shown.", at_least=1),
        JSON,
        MARKDOWN,
        Option("together", bool, None,
            "Also show which features are worth more, or less, together, and which stand in for one another.", False),
        replace(QUIET, help="Print the ranking and nothing else."),
    ),
    *advanced("When to stop, beside --time: at the first of these; all but the first are DAF's",
        Option("probes", int, "N", "Stop after this many probes; a tournament's rounds are planned by it.", at_least=1),
        Option("coverage", int, "N", "Stop when every feature was in, and out of, so many probes.", at_least=1),
        Option("settled", int, "K", "Stop when two halves of the probes agree on 90 % of the top K.", at_least=1),
        Option("confidence", float, "P",
            "With --settled: stop instead when 90 % of the top K truly belong there, with this confidence."),
        Option("relative_change", float, "T",
            "Stop when scores change by less than this share of their first change.", check=above_zero),
        Option("check_every", int, "N", "Probes between two looks at what has changed. Default: 400.", at_least=1),
    ),
    *advanced("How to judge",
        Option("task", str, None,
            "classification, regression, or auto: regression if the target has fractions.", "auto"),
        Option("criterion", str, None,
            "How good a subset is: knn, linear, naive_bayes, svm, tree or separability; auto is knn and linear "
            "together; of daf knn, or linear above 5,000 rows.", "auto", check=str.lower),
        Option("scoring", str, "NAME",
            "Its score: accuracy; for rare classes balanced_accuracy, f1_macro, matthews_corrcoef, or, of two classes, "
            "roc_auc; for numbers r2 or neg_mean_squared_error; or another of scikit-learn's. Default: probability, "
            "of daf accuracy; or r2."),
        Option("cv", str, "N|loo",
            "Folds of its cross-validation; loo leaves out one row at a time. Default: loo for up to 2,000 rows; 3 for "
            "more, and of daf."),
        Option("coefficient", str, None,
            "Of daf: daf0, the default; daf1, wary of unstable features; daf2, balanced over probe sizes; "
            "daf0_centred, daf2_centred, without the luck of the sizes met; regression, without that of companions.",
            check=str.lower),
        Option("max_probe_size", int, "N", "Of daf: most features in a probe. Default: 200.", at_least=1),
        Option("inclusion", float, "P", "Of daf, instead of a size: each feature is in with this chance."),
        Option("screen", str, "N",
            "Of daf, for far more than 100,000 features: probe only the N (or the share, as 0.1) that FSDD ranks "
            "best. What matters only together with others may be lost."),
        Option("narrow", str, "SHARE",
            "Deprecated: use --method tournament. Rounds, each among this share of the features of the one before.",
            hidden=True),
        Option("error_score", float, "J", "Where the criterion fails on a probe, go on with this J. Default: stop."),
    ),
    *advanced(RUN,
        Option("seed", int, "N", "Same seed, same ranking. Default: 0; a resumed run keeps its own.", at_least=0),
        DEVICE,
        replace(JOBS, help="Workers; -1 is all cores. The result does not depend on it."),
        Option("scale", str, "HOW",
            "Bring columns to one scale first: standard, rank or none. Default: standard; of daf none."),
        Option("no_rows", bool, None,
            "Leave out what says how other rows might change the answer: 128 bytes a probe in the ledger.", False),
        Option("dask", str, "ADDRESS",
            "Score the probes on the Dask cluster whose scheduler is there: tcp://host:8786."),
    ),
)
COMPARE = (
    DATA,
    *TABLE,
    *panel("The trials",
        Option("methods", str, "NAMES",
            f"What to compare, with commas: {', '.join(METHODS)}; all: no selection.", "daf,bif,all"),
        Option("classifiers", str, "NAMES",
            "What judges: knn, linear, svm (these on scaled data), naive_bayes, tree, forest.", "knn,linear"),
        Option("trials", int, "N", "Random splits to repeat it on.", 20, at_least=1),
        Option("test_size", float, "SHARE", "Share of the rows to test on.", 0.5),
        Option("sizes", str, "NUMBERS", "How many features, with commas: 5,10,20. Default: from 1 to at most 100."),
        Option("probes", int, "N", "Tournament, DAF and SFFS try so many subsets in each trial.", at_least=1),
        Option("time", str, "TIME", "They stop after so much work in each trial: seconds, or as 5m.", check=seconds_in),
    ),
    *panel(OUTPUT,
        Option("out", Path, "FILE",
            "Write a row per trial, method, classifier and size: .csv, .tsv, .parquet, .json; - prints .csv."),
        Option("plot", Path, "FILE", "Draw the comparison: .png, .svg or .pdf."),
        QUIET_TABLES,
    ),
    *panel(RUN,
        Option("seed", int, "N", "Same seed, same splits. Default: 0; a resumed run keeps its own.", at_least=0),
        replace(JOBS, help="Trials at a time; -1 is all cores."),
        Option("ledger", Path, "FILE", "Keep finished trials in this file, so that it can go on."),
        Option("resume", bool, None,
            "Go on with the trials in that file, more if asked for; begin, if there are none.", False),
    ),
)
REPORT = (
    Option("run", Path, "RUN", "The file that rank --ledger or compare --ledger has kept.", is_argument=True),
    *panel(OUTPUT,
        Option("out", list[Path], "FILE", "Where to: .html or .md; - prints .html. May be repeated."), JSON, MARKDOWN,
    ),
    Option("data", str, "TABLE", "The table of the run: then the report says more.", check=local_path),
    *TABLE,
    *panel("The features: names of columns; more than one with commas", CATEGORICAL),
    Option("coefficient", str, None,
        "Of a ledger: daf0, daf1, daf2, daf0_centred, daf2_centred or regression. Default: regression of a tournament, "
        "else daf0.",
        check=str.lower),
    *panel(OUTPUT, QUIET),
)
DIFF = (
    Option("first", Path, "FIRST", "The file of rank --ledger.", is_argument=True),
    Option("second", Path, "SECOND", "Another one.", is_argument=True),
    *panel(OUTPUT,
        Option("top", int, "N", "How many features to show with both ranks.", TOP, at_least=1),
        Option("json", Path, "FILE", "The same as .json; - prints it."),
    ),
)
CONVERT = (
    DATA,
    Option("out", Path, "OUT", "Where to: a .npy file, and OUT.json beside it.", is_argument=True),
    TARGET,
    ID,
    IGNORE,
    DECIMAL,
    *panel(OUTPUT,
        Option("dtype", str, "TYPE",
            "float32 or float64. Default: float32 or whole numbers if all are, else float64."),
        Option("force", bool, None, "Write over files that are there.", False),
        QUIET,
    ),
)
# fmt: on

# Old names, for one more release.
RENAMED = {
    "rank": {
        "--groups": "--row-groups",
        "--group": "--feature-groups",
        "--groups-file": "--feature-groups",
        "--keep": "--n-features",
        "--keep-feature": "--keep-features",
        "--drop-feature": "--drop-features",
    },
    "compare": {"--run": "--ledger"},
}

# ---- parameters of the library as options

OPTION_OF = {
    "sample_weight": "weights",
    "n_probes": "probes",
    "how_many": "auto",
    "keep": "keep_features",
    "drop": "drop_features",
    "run": "ledger",
    "categorical_features": "categorical",
    "feature_names": "names",
}
_OPTIONS = {option.name: option for option in (*CONVERT, *COMPARE, *RANK)}


def as_flag(parameter: Parameter) -> str:
    """A parameter as the command line has it: its flag, with the value given or to be given."""
    name, value = OPTION_OF.get(parameter.name, parameter.name), parameter.value
    option = _OPTIONS.get(name) or Option(name, str, "VALUE", "")
    if not isinstance(parameter, Setting):
        return option.flag if value is UNSAID else f"{option.flag} {value!r}"
    if value is None:
        return f"no {option.flag}"
    if value is True:
        return option.flag
    if value is UNSAID:
        return f"{option.flag} {option.metavar}"
    return " ".join(
        f"{option.flag} {shlex.quote(str(item))}" for item in (value if isinstance(value, list) else [value])
    )
