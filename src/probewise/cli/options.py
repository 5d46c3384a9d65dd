"""What the options of a command mean: text from the command line to rules, criteria, selectors and columns."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _HOME
from ..checks.errors import UNSAID, Parameter, Setting

if TYPE_CHECKING:
    from ..io import Table
    from ..stopping import Rule

METHODS = {name.lower(): name for name, home in _HOME.items() if home.startswith("selectors.")}
WITHOUT_PROBES = [name for name in METHODS if name not in ("daf", "sffs")]
TASKS = ("auto", "classification", "regression")
FLAGS = {
    "sample_weight": "--weights",
    "how_many": "--auto",
    "keep": "--keep-feature",
    "drop": "--drop-feature",
    "feature_groups": "--group",
    "categorical_features": "--categorical",
    "id_column": "--id",
}
METAVARS = {"target": "COL", "target_file": "FILE", "id_column": "COL"}


def as_flag(parameter: Parameter) -> str:
    """A parameter as the command line has it: its flag, with the value given or to be given."""
    name, value = parameter.name, parameter.value
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    if isinstance(parameter, Setting):
        if value is None:
            return f"no {flag}"
        if value is True:
            return flag
        if value is UNSAID:
            return f"{flag} {METAVARS[name]}"
        return " ".join(f"{flag} {shlex.quote(str(item))}" for item in (value if isinstance(value, list) else [value]))
    return flag if value is UNSAID else f"{flag} {value!r}"


def selectors_named(methods: str, stop: Rule | None) -> dict[str, Any]:
    """The selectors named, each to stop by the rule if it has one."""
    import probewise

    selectors: dict[str, Any] = {}
    for name in names_in("methods", methods, ("all", *METHODS)):
        selectors[name] = None if name == "all" else getattr(probewise, METHODS[name])()
    stoppable = [selector for selector in selectors.values() if hasattr(selector, "stop")]
    if stop is not None and not stoppable:
        raise ValueError(f"--probes and --time have no meaning for --methods {methods}: none of them stops by a rule")
    for selector in stoppable:
        selector.set_params(stop=stop)
    return selectors


def without_probes(method: str, size: int, jobs: int, device: str, limits: dict[str, Any]) -> Any:
    """A filter, or BIF, that will take ``size`` features; the limits of a run with probes mean nothing to it."""
    if method not in WITHOUT_PROBES:
        raise ValueError(f"--method {method!r} is not known: choose one of daf, {', '.join(WITHOUT_PROBES)}")
    given = [f"--{name}" for name, value in limits.items() if value is not None]
    if given:
        raise ValueError(f"{', '.join(given)}: --method {method} makes no probes; leave it out")
    selector = selectors_named(method, None)[method]
    parameters = {"n_features_to_select": size, "n_jobs": jobs, "device": device}
    known = selector.get_params()
    if device not in ("cpu", "auto") and "device" not in known:
        raise ValueError(f"--device {device}: --method {method} runs on the CPU only; leave it out")
    return selector.set_params(**{name: parameters[name] for name in parameters if name in known})


def names_in(option: str, given: str, known: Collection[str]) -> list[str]:
    names = list(dict.fromkeys(name.strip().lower() for name in given.split(",") if name.strip()))
    for name in names or [given]:
        if name not in known:
            raise ValueError(f"--{option} {name!r} is not known: choose from {', '.join(known)}")
    return names


def whole_numbers(option: str, given: str) -> list[int]:
    try:
        return [int(number) for number in given.split(",")]
    except ValueError:
        raise ValueError(f"--{option} {given!r} is no list of whole numbers: write 5,10,20") from None


def rule_of(
    *,
    probes: int | None,
    time: float | None,
    coverage: int | None = None,
    settled: int | None = None,
    confidence: float | None = None,
    relative_change: float | None = None,
) -> Rule | None:
    """The limits given, whichever comes first; None where none was given."""
    from ..stopping import MaxProbes, MaxTime, MinCoverage, RelativeChange, Settled

    if confidence is not None and settled is None:
        raise ValueError(f"--confidence {confidence:g} needs --settled K, the top that is to be certified")
    if confidence is not None and not 0 < confidence < 1:
        raise ValueError(f"--confidence {confidence:g} must be above 0 and below 1, as 0.95")
    limits: dict[Any, float | None] = {
        MaxProbes: probes,
        MaxTime: time,
        MinCoverage: coverage,
        partial(Settled, confidence=confidence): settled,
        RelativeChange: relative_change,
    }
    rules: list[Rule] = [rule(limit) for rule, limit in limits.items() if limit is not None]
    return reduce(or_, rules) if rules else None


def cut_of(given: str) -> int | float:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(given)
    raise ValueError(f"--screen {given!r} is no number: write how many features pass, as 20000, or a share, as 0.1")


def share_of(given: str) -> Any:
    if given == "auto":
        return given
    with suppress(ValueError):
        if 0 < float(given) < 1:
            return float(given)
    raise ValueError(f"--narrow {given!r}: write the share of features kept after each round, as 0.6, or auto")


def asked_of_features(
    table: Table,
    group: Sequence[str] | None,
    groups_file: Path | None,
    keep_feature: Sequence[str] | None,
    drop_feature: Sequence[str] | None,
    costs: Path | None,
) -> dict[str, Any]:
    """What is said about features, by their numbers, as parameters of DAF."""
    from ..io import read_pairs

    asked: dict[str, Any] = {"keep": _features_of(table, "keep-feature", keep_feature)}
    asked["drop"] = _features_of(table, "drop-feature", drop_feature)
    together: dict[str, list[int]] = {}
    for given in group or ():
        name, equals, columns = given.partition("=")
        if not equals or not columns:
            raise ValueError(f"--group {given!r}: write its name and its columns, as NAME=col1,col2")
        together.setdefault(name, []).extend(_features_of(table, "group", [columns]) or ())
    if groups_file is not None:
        for feature, name in read_pairs(groups_file, "group"):
            together.setdefault(name, []).extend(_features_of(table, "groups-file", [feature]) or ())
    asked["feature_groups"] = together or None
    if costs is not None:
        asked["costs"] = {}
        for feature, cost in read_pairs(costs, "cost"):
            try:
                asked["costs"][_features_of(table, "costs", [feature])[0]] = float(cost)
            except ValueError as error:
                if not str(error).startswith("could not convert"):
                    raise
                raise ValueError(f"--costs {costs}: the cost of {feature!r} is {cost!r}; give a number") from None
    return asked


def _features_of(table: Table, option: str, given: Sequence[str] | None) -> Any:
    """The numbers of the features named, each alone or some with commas; None where none is."""
    if not given:
        return None
    from ..io import TableError

    places = {name: place for place, name in enumerate(table.feature_names)}
    names = [name for item in given for name in ([item] if item in places else item.split(","))]
    for name in names:
        if name not in places:
            raise TableError(f"--{option}: {_no_such(name, table)}")
    return [places[name] for name in names]


def _no_such(name: str, table: Table) -> str:
    from ..io.table import missing

    return str(missing(name, table.feature_names, "feature column"))


def asked_how_many(auto: str | None, fdr: float | None) -> dict[str, Any]:
    if auto is None:
        if fdr is not None:
            raise ValueError("--fdr needs --auto decoys")
        return {}
    if auto not in ("decoys", "size"):
        raise ValueError(f"--auto {auto!r} is not known: choose decoys or size")
    if fdr is not None and auto != "decoys":
        raise ValueError("--fdr needs --auto decoys; --auto size allows for one standard error")
    return {"n_features_to_select": "auto", "how_many": auto, "fdr": 0.1 if fdr is None else fdr}


def folds_of(cv: int, groups: str | None, task: str, table: Table) -> Any:
    """The number of folds, or a splitter that keeps the groups together."""
    if groups is None:
        return cv
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    from ..criteria.base import Target

    assert table.groups is not None
    n_groups = len(np.unique(table.groups))
    if n_groups < cv:
        raise ValueError(f"--groups {groups} has {n_groups} groups, and --cv {cv} needs as many: give a smaller --cv")
    return (StratifiedGroupKFold if Target.of(table.y, task).is_classification else GroupKFold)(cv)


def criterion_of(name: str, task: str, table: Table, missing: str | None = None) -> Any:
    from ..criteria import NAMES, as_criterion

    if name not in ("auto", *NAMES):
        raise ValueError(f"--criterion {name!r} is not known: choose one of auto, {', '.join(NAMES)}")
    if task not in TASKS:
        raise ValueError(f"--task {task!r} is not known: choose one of {', '.join(TASKS)}")
    if task == "regression" and table.y.dtype.kind == "U":
        raise ValueError(f"--task regression needs numbers, and the target {table.target!r} holds text")
    criterion = as_criterion(name, table.X)
    if missing is not None:
        if "missing" not in criterion.get_params():
            raise ValueError(f"--missing {missing} has no meaning for --criterion {name}: use knn or linear")
        criterion.set_params(missing=missing)
    if task == "auto":
        return criterion
    if "task" not in criterion.get_params():
        raise ValueError(f"--task {task} has no meaning for --criterion {name}")
    return criterion.set_params(task=task)
