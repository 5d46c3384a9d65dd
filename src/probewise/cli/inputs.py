"""Inputs of the commands: tables, and selectors made from options with their criteria, folds and stopping rules."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import probewise

from .. import _MODULE_OF
from .._selector import DEFAULT_FDR
from ..criteria import as_criterion
from ..criteria.base import Target, folds_of_groups
from ..engine.settings import saved_settings
from ..io import Table, TableError, read_pairs, read_table
from ..io.input_files import local_path
from ..io.table import unknown_name
from ..progress import live_line
from ..stopping import MaxProbes, MaxTime, Rule
from ..tournament import default_criterion
from ..validation.contents import STRATEGIES
from ..validation.parameters import check_parameter, whole_number
from . import options as o
from .console import print_line

METHODS = {name.lower(): name for name, home in _MODULE_OF.items() if home not in ("forest", "validation.frames")}
RANKING_METHODS = ["tournament", "daf", *(name for name in METHODS if name not in ("tournament", "daf", "sffs"))]
ROW_ARGUMENTS = ("sample_weight", "groups", "adjust")  # arguments of fit with a value for each row
ERROR = "error"  # --missing error: missing values are refused
READ_BY_POLARS = (".parquet", ".arrow", ".feather", ".ipc", ".zst")


# ---- tables


@dataclass(frozen=True)
class TableOptions:
    """Options that say how a table is read."""

    data: o.Data
    target: o.Target = None
    target_file: o.TargetFile = None
    id_column: o.IdColumn = None
    ignore: o.Ignore = None
    features_in: o.FeaturesIn = "columns"
    feature_names: o.FeatureNames = None

    @property
    def path(self) -> Path:
        return local_path(self.data)

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        read = [local_path(file) for file in (self.data, self.target_file, self.feature_names) if file is not None]
        # an .npy table has a second file with its names
        return [*read, *(path.with_name(f"{path.name}.json") for path in read if path.suffix.lower() == ".npy")]

    def read(self, *, allow_missing: bool = False, quiet: bool = False) -> Table:
        """Read the table, and print every guess that was made."""
        with nullcontext() if quiet else live_line(1) as progress, _without_panics(self.files):
            table = read_table(self.path, **self._arguments(allow_missing=allow_missing), progress=progress)
        for note in () if quiet else table.notes:
            print_line(note)
        return table

    def _arguments(self, *, allow_missing: bool) -> dict[str, Any]:
        """The arguments of `read_table` that differ from its defaults."""
        arguments = {**vars(self), "data": None, "allow_missing": allow_missing}
        arguments["features_in"] = None if self.features_in == "columns" else self.features_in
        arguments["drop_unlabeled"] = self.path.suffix.lower() != ".npy"  # the rows of a mapped table are fixed
        if categories := arguments.get("categorical_features"):
            arguments["categorical_features"] = [name for item in categories for name in item.split(",")]
        return {name: value for name, value in arguments.items() if value not in (None, [], False)}

    def code(self, *, allow_missing: bool) -> str:
        """The Python code that reads the same table."""
        arguments = self._arguments(allow_missing=allow_missing)
        written = ", ".join([repr(self.data), *(f"{name}={value!r}" for name, value in arguments.items())])
        of_rows = [f"{name} = table.{name}" for name in ROW_ARGUMENTS if getattr(self, name, None)]
        lines = ["from probewise.io import read_table", f"table = read_table({written})"]
        return "\n".join([*lines, "X, y = table.frame(), table.y", *of_rows])


@dataclass(frozen=True)
class RowOptions(TableOptions):
    """Options of a table with columns of weights, groups, events and covariates."""

    sample_weight: o.SampleWeight = None
    groups: o.Groups = None
    event: o.Event = None
    adjust: o.Adjust = None
    categorical_features: o.CategoricalFeatures = None


@dataclass(frozen=True)
class StoredOptions(RowOptions):
    """Options of the table of a stored run; the table is optional."""

    data: Annotated[
        str | None, o.table_option(metavar="DATA", help="The table of the run, for a more complete report.")
    ] = None  # type: ignore[assignment]


@contextmanager
def _without_panics(files: Sequence[Path]) -> Iterator[None]:
    """Hide the stack traces that polars prints to standard error for a file that it cannot read."""
    try:
        stderr = os.dup(2) if any(file.suffix.lower() in READ_BY_POLARS for file in files) else -1
    except OSError:  # there is no standard error
        stderr = -1
    if stderr < 0:
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as captured:
        try:
            os.dup2(captured.fileno(), 2)
            yield
        except ValueError:
            captured.truncate(0)
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            captured.seek(0)
            for line in captured:
                os.write(2, line)


# ---- methods


@dataclass(frozen=True)
class MethodOptions:
    """Options of a method and its run; None means that an option was not given."""

    missing: o.Missing = None
    feature_groups: o.FeatureGroups = None
    keep: o.Keep = None
    method: Annotated[
        str | None,
        o.method_option(
            metavar="NAME",
            help="tournament (the default) to predict with few features; daf to learn how much each feature adds to "
            f"others; or a method without probes: {', '.join(RANKING_METHODS[2:])}.",
        ),
    ] = None
    criterion: o.Criterion = None
    scoring: o.Scoring = None
    cv: o.Cv = None
    task: o.Task = None
    n_probes: o.NProbes = None
    time_limit: o.TimeLimit = None
    n_features_to_select: o.NFeaturesToSelect = None
    fdr: o.Fdr = str(DEFAULT_FDR)
    ledger: o.Ledger = None
    random_state: o.RandomState = None
    n_jobs: o.NJobs = -1
    device: o.Device = None

    @cached_property
    def name(self) -> str:
        """The requested method; else the method of the resumed run, or tournament."""
        if self.method is None:
            return "daf" if self._saved is not None and self._saved.schedule is None else "tournament"
        if self.method.lower() not in RANKING_METHODS:
            raise ValueError(f"--method {self.method!r} is not known: choose one of {', '.join(RANKING_METHODS)}")
        return self.method.lower()

    @property
    def has_probes(self) -> bool:
        return self.name in ("tournament", "daf")

    @property
    def allows_missing(self) -> bool:
        """Whether the table may have missing values: unless they are refused, or the method cannot use them."""
        if self.missing not in (None, *STRATEGIES, ERROR):
            raise ValueError(f"missing={self.missing!r} must be 'mean', 'median' or 'error'")
        return self.missing in STRATEGIES or (self.missing is None and (self.has_probes or self.name == "fsdd"))

    @property
    def rate(self) -> Any:
        """The false discovery rate; None for no tests."""
        return None if self.fdr.lower() == "none" else number_in(self.fdr)

    @property
    def files(self) -> list[Path]:
        return [Path(text) for text in self.feature_groups or () if _is_file_of_groups(text)]

    @cached_property
    def _saved(self) -> Any:
        return saved_settings(self.ledger)

    def selector(self, table: Table, *, top: int, quiet: bool) -> Any:
        """The selector; an option that it does not have is refused."""
        selector = getattr(probewise, METHODS[self.name])()
        known, missing = selector.get_params(deep=False), self.missing
        options = {
            name: getattr(self, name) for name in ("scoring", "cv", "n_probes", "time_limit", "ledger", "device")
        }
        options |= _column_options(table, self.feature_groups, self.keep)
        options |= {"n_features_to_select": number_in(self.n_features_to_select)}
        options |= {"criterion": self.criterion and self.criterion.lower()}
        if "stop" in known:
            options["stop"] = stopping_rule(options.pop("n_probes"), options.pop("time_limit"))
        if missing is not None and "missing" in known:
            options["missing"], missing = None if missing == ERROR else missing, None
        if "criterion" not in known:
            options |= {name: getattr(table, name) for name in ROW_ARGUMENTS} | {"task": self.task, "missing": missing}
        stated = {name: value for name, value in options.items() if value is not None}
        unknown = [f"--{name.replace('_', '-')}" for name in stated if name not in known]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: {METHODS[self.name]} has no such parameter; leave it out")
        if "criterion" in known:
            criterion = _criterion(stated.get("criterion", "auto"), self.name, table, task=self.task, missing=missing)
            stated |= {"criterion": criterion, "cv": _folds(stated.get("cv", known["cv"]), table, self.task)}
        seed = 0 if self.random_state is None and self._saved is None else self.random_state
        usual: dict[str, Any] = {
            "n_jobs": self.n_jobs,
            "random_state": seed,
            "scale": "auto",
            "verbose": int(not quiet),
        }
        usual["fdr"] = DEFAULT_FDR if self.rate is None else self.rate
        if not self.has_probes:
            usual["n_features_to_select"] = min(top, len(table.feature_names))
        return selector.set_params(**{name: value for name, value in usual.items() if name in known} | stated)


def _criterion(name: str, method: str, table: Table, *, task: str | None, missing: str | None) -> Any:
    """The criterion of this name; an object if it has a task or fills missing values."""
    options = {key: value for key, value in {"task": task, "missing": missing}.items() if value is not None}
    if not options:
        return name
    if name == "auto" and method == "tournament":
        return default_criterion(len(table.y), is_sparse=hasattr(table.X, "tocsr"), **options)
    criterion = as_criterion(name, table.X)
    for option, value in options.items():
        if option not in criterion.get_params(deep=False):
            raise ValueError(f"--{option} {value} has no meaning for criterion={name!r}: use 'knn' or 'linear'")
    return criterion.set_params(**options)


def _folds(cv: Any, table: Table, task: str | None) -> Any:
    """The folds; a splitter that keeps the groups of rows together if the table has groups."""
    n_folds = number_in(cv)
    check_parameter("cv", n_folds, whole_number(2), "loo", "auto")
    if table.groups is None or n_folds == "auto":
        return n_folds
    if n_folds == "loo":
        raise ValueError("cv='loo' leaves out single rows, but groups keeps rows together: give a number of folds")
    n_groups = len(np.unique(table.groups))
    if n_groups < n_folds:
        raise ValueError(f"cv={n_folds} needs at least as many groups, and there are {n_groups}: use a smaller cv")
    return folds_of_groups(n_folds, table.groups, Target.of(table.y, task or "auto").is_classification)


# ---- stopping rules


def stopping_rule(n_probes: int | None, time_limit: float | None) -> Rule | None:
    """The rule that stops at the first of these limits; None if there is none."""
    rules: list[Rule] = [] if n_probes is None else [MaxProbes(n_probes)]
    rules += [] if time_limit is None else [MaxTime(time_limit)]
    return reduce(or_, rules) if rules else None


# ---- columns


def _column_options(table: Table, feature_groups: Sequence[str] | None, keep: Sequence[str] | None) -> dict[str, Any]:
    """The parameters ``feature_groups`` and ``keep``, with columns as numbers."""
    numbers = {name: number for number, name in enumerate(table.feature_names)}
    groups: dict[str, list[int]] = {}
    for text in feature_groups or ():
        for name, columns in _named_groups(text):
            groups.setdefault(name, []).extend(_columns_named(numbers, "feature_groups", [columns]))
    return {"feature_groups": groups or None, "keep": _columns_named(numbers, "keep", keep or ()) or None}


def _is_file_of_groups(text: str) -> bool:
    """Whether the text is the name of a table of groups, and not NAME=COLUMNS."""
    return "=" not in text and bool(Path(text).suffix)


def _named_groups(text: str) -> list[tuple[str, str]]:
    """Pairs of a group's name and its columns."""
    if _is_file_of_groups(text):
        return [(group, feature) for feature, group in read_pairs(text, "group")]
    name, _, columns = text.partition("=")
    if not columns:
        raise ValueError(f"--feature-groups {text!r}: write NAME=col1,col2, or give a table")
    return [(name, columns)]


def _columns_named(numbers: Mapping[str, int], parameter: str, items: Sequence[str]) -> list[int]:
    """Numbers of the named features; an item is one name, or several names separated by commas."""
    names = [name for item in items for name in ([item] if item in numbers else item.split(","))]
    for name in names:
        if name not in numbers:
            raise TableError(f"{parameter}: {unknown_name(name, list(numbers), 'feature column')}")
    return [numbers[name] for name in names]


# ---- compare


def selectors_named(methods: str, *, n_probes: int | None, time_limit: float | None) -> dict[str, Any]:
    """The selectors to compare; None means no selection. Limits apply to the methods that have them."""
    rule = stopping_rule(n_probes, time_limit)
    selectors: dict[str, Any] = {
        name: None if name == "all" else getattr(probewise, METHODS[name])()
        for name in names_in("methods", methods, ("all", *METHODS))
    }
    n_limited = 0
    for selector in selectors.values() if rule is not None else ():
        if hasattr(selector, "stop"):
            selector.set_params(stop=rule)
        elif hasattr(selector, "n_probes"):
            selector.set_params(n_probes=n_probes or "auto", time_limit=time_limit)
        n_limited += hasattr(selector, "stop") or hasattr(selector, "n_probes")
    if rule is not None and not n_limited:
        raise ValueError(f"--n-probes and --time-limit have no meaning for --methods {methods}: leave them out")
    return selectors


def names_in(flag: str, text: str, known: Collection[str]) -> list[str]:
    """Names separated by commas, each of which must be known."""
    names = list(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    for name in names or [text]:
        if name not in known:
            raise ValueError(f"--{flag} {name!r} is not known: choose from {', '.join(known)}")
    return names


def whole_numbers(flag: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"--{flag} {text!r} is not a list of whole numbers: write 5,10,20") from None


def number_in(text: Any) -> Any:
    """A whole number or a share if the text is one; other text, such as "auto", stays text."""
    for kind in (int, float):
        with suppress(TypeError, ValueError):
            return kind(text)
    return text
