"""Inputs of the commands: tables, and selectors made from options with their criteria, folds and stopping rules."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import probewise

from .. import _MODULE_OF
from ..validation.contents import STRATEGIES
from ..validation.parameters import check_parameter, whole_number
from .console import print_line

if TYPE_CHECKING:
    from ..io import Table
    from ..stopping import Rule

METHODS = {name.lower(): name for name, home in _MODULE_OF.items() if home not in ("forest", "validation.frames")}
RANKING_METHODS = ["tournament", "daf", *(name for name in METHODS if name not in ("tournament", "daf", "sffs"))]
ROW_ARGUMENTS = ("sample_weight", "groups", "adjust")  # arguments of fit with a value for each row
ERROR = "error"  # --missing error: missing values are refused
PROBING = ("tournament", "daf")
READ_BY_POLARS = (".parquet", ".arrow", ".feather", ".ipc", ".zst")


# ---- tables


@dataclass(frozen=True)
class TableOptions:
    """Options that say how a table is read, with the names of their flags."""

    data: str
    target: str | None = None
    target_file: str | None = None
    id_column: str | None = None
    ignore: Sequence[str] | None = None
    features_in: str = "columns"
    feature_names: str | None = None
    sample_weight: str | None = None
    groups: str | None = None
    categorical_features: Sequence[str] | None = None
    event: str | None = None
    adjust: Sequence[str] | None = None

    @property
    def path(self) -> Path:
        from ..io.input_files import local_path

        return local_path(self.data)

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        from ..io.input_files import local_path

        read = [local_path(file) for file in (self.data, self.target_file, self.feature_names) if file is not None]
        # an .npy table has a second file with its names
        return [*read, *(path.with_name(f"{path.name}.json") for path in read if path.suffix.lower() == ".npy")]

    def read(self, *, allow_missing: bool = False, quiet: bool = False) -> Table:
        """Read the table, and print every guess that was made."""
        from ..io import read_table
        from ..progress import live_line

        with nullcontext() if quiet else live_line(1) as progress, _without_panics(self.files):
            table = read_table(self.path, **self._arguments(allow_missing=allow_missing), progress=progress)
        for note in () if quiet else table.notes:
            print_line("".join(note))
        return table

    def _arguments(self, *, allow_missing: bool) -> dict[str, Any]:
        """The arguments of `read_table` that differ from its defaults."""
        categories = [name for item in self.categorical_features or () for name in item.split(",")]
        arguments = {
            "target": self.target,
            "target_file": self.target_file,
            "id_column": self.id_column,
            "ignore": list(self.ignore or ()),
            "features_in": None if self.features_in == "columns" else self.features_in,
            "feature_names": self.feature_names,
            "sample_weight": self.sample_weight,
            "groups": self.groups,
            "categorical_features": categories,
            "event": self.event,
            "adjust": list(self.adjust or ()),
            "allow_missing": allow_missing,
            "drop_unlabeled": self.path.suffix.lower() != ".npy",  # the rows of a mapped table are fixed
        }
        return {name: value for name, value in arguments.items() if value not in (None, [], False)}

    def code(self, *, allow_missing: bool) -> str:
        """The Python code that reads the same table."""
        arguments = self._arguments(allow_missing=allow_missing)
        written = ", ".join([repr(self.data), *(f"{name}={value!r}" for name, value in arguments.items())])
        lines = [
            "from probewise.io import read_table",
            f"table = read_table({written})",
            "X, y = table.frame(), table.y",
        ]
        lines += [f"{name} = table.{name}" for name in ROW_ARGUMENTS if getattr(self, name)]
        return "\n".join(lines)


def table_to_rank(options: TableOptions, method: str, *, missing: str | None, quiet: bool) -> Table:
    """The table, with missing values unless they are refused or the method cannot use them."""
    if missing not in (None, *STRATEGIES, ERROR):
        raise ValueError(f"missing={missing!r} must be 'mean', 'median' or 'error'")
    takes_missing = missing in STRATEGIES or (missing is None and method in (*PROBING, "fsdd"))
    return options.read(allow_missing=takes_missing, quiet=quiet)


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


def method_of(method: str | None, ledger: Path | None, *, resumed: bool) -> str:
    """The requested method; else the method of the resumed run, or tournament."""
    if method is not None:
        if method.lower() not in RANKING_METHODS:
            raise ValueError(f"--method {method!r} is not known: choose one of {', '.join(RANKING_METHODS)}")
        return method.lower()
    if resumed and ledger is not None:
        from ..engine.settings import saved_settings

        saved = saved_settings(ledger)
        return "daf" if saved is not None and saved.schedule is None else "tournament"
    return "tournament"


def make_selector(
    method: str,
    table: Table,
    options: Mapping[str, Any],
    *,
    task: str | None,
    missing: str | None,
    usual: Mapping[str, Any],
) -> Any:
    """The selector of a method.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    table : Table
        The table to rank.
    options : mapping of str to object
        Values of the flags by the names of the parameters; None means that a flag was not given. A flag that is not a
        parameter of the selector is refused.
    task : str or None
        Parameter of the criterion.
    missing : str or None
        Parameter of the selector, or of its criterion.
    usual : mapping of str to object
        Parameters that every method takes if it has them, such as n_jobs.
    """
    selector = getattr(probewise, METHODS[method])()
    known = selector.get_params(deep=False)
    stated = {name: value for name, value in options.items() if value is not None}
    if "stop" in known:
        rule = stopping_rule(stated.pop("n_probes", None), stated.pop("time_limit", None))
        stated |= {} if rule is None else {"stop": rule}
    if missing is not None and "missing" in known:
        stated["missing"], missing = None if missing == ERROR else missing, None
    of_rows = {"sample_weight": table.sample_weight, "groups": table.groups, "adjust": table.adjust}
    of_rows |= {"task": task, "missing": missing}
    if "criterion" not in known:
        stated |= {name: value for name, value in of_rows.items() if value is not None}
    unknown = [f"--{name.replace('_', '-')}" for name in stated if name not in known]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: {METHODS[method]} has no such parameter; leave it out")
    if "criterion" in known:
        criterion = _criterion(stated.get("criterion", "auto"), method, table, task=task, missing=missing)
        stated |= {"criterion": criterion, "cv": _folds(stated.get("cv", known["cv"]), table, task)}
    usual_here = {name: value for name, value in usual.items() if name in known}
    return selector.set_params(**usual_here | stated)


def _criterion(name: str, method: str, table: Table, *, task: str | None, missing: str | None) -> Any:
    """The criterion of this name; an object if it has a task or fills missing values."""
    options = {key: value for key, value in {"task": task, "missing": missing}.items() if value is not None}
    if not options:
        return name
    if name == "auto" and method == "tournament":
        from ..tournament import default_criterion

        return default_criterion(len(table.y), is_sparse=hasattr(table.X, "tocsr"), **options)
    from ..criteria import as_criterion

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
    from ..criteria.base import Target, folds_of_groups

    n_groups = len(np.unique(table.groups))
    if n_groups < n_folds:
        raise ValueError(f"cv={n_folds} needs at least as many groups, and there are {n_groups}: use a smaller cv")
    return folds_of_groups(n_folds, table.groups, Target.of(table.y, task or "auto").is_classification)


# ---- stopping rules


def stopping_rule(n_probes: int | None, time_limit: float | None) -> Rule | None:
    """The rule that stops at the first of these limits; None if there is none."""
    from ..stopping import MaxProbes, MaxTime

    rules: list[Rule] = [] if n_probes is None else [MaxProbes(n_probes)]
    rules += [] if time_limit is None else [MaxTime(time_limit)]
    return reduce(or_, rules) if rules else None


# ---- columns


def column_options(table: Table, feature_groups: Sequence[str] | None, keep: Sequence[str] | None) -> dict[str, Any]:
    """The parameters ``feature_groups`` and ``keep``, with columns as numbers."""
    numbers = {name: number for number, name in enumerate(table.feature_names)}
    groups: dict[str, list[int]] = {}
    for text in feature_groups or ():
        for name, columns in _named_groups(text):
            groups.setdefault(name, []).extend(_columns_named(numbers, "feature_groups", [columns]))
    return {"feature_groups": groups or None, "keep": _columns_named(numbers, "keep", keep or ()) or None}


def is_file_of_groups(text: str) -> bool:
    """Whether the text is the name of a table of groups, and not NAME=COLUMNS."""
    return "=" not in text and bool(Path(text).suffix)


def _named_groups(text: str) -> list[tuple[str, str]]:
    """Pairs of a group's name and its columns."""
    if is_file_of_groups(text):
        from ..io import read_pairs

        return [(group, feature) for feature, group in read_pairs(text, "group")]
    name, _, columns = text.partition("=")
    if not columns:
        raise ValueError(f"--feature-groups {text!r}: write NAME=col1,col2, or give a table")
    return [(name, columns)]


def _columns_named(numbers: Mapping[str, int], parameter: str, items: Sequence[str]) -> list[int]:
    """Numbers of the named features; an item is one name, or several names separated by commas."""
    from ..io.table import TableError, unknown_name

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
