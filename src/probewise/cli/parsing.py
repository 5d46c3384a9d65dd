"""What options mean: text from the command line to selectors, stopping rules, criteria and columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import probewise

from ..validation.errors import Parameter
from .options import METHODS, WITHOUT_PROBES, as_flag

if TYPE_CHECKING:
    from ..io import Table
    from ..stopping import Rule

TASKS = ("auto", "classification", "regression")
# Options of rank that mean nothing to a method without probes.
OF_PROBES = (
    "probes", "time", "coverage", "settled", "screen", "error_score", "ledger", "dask", "together", "confidence",
    "narrow", "auto", "fdr", "feature_groups", "keep_features", "drop_features", "costs", "no_rows", "scale",
)  # fmt: skip
OF_DAF = (
    "coverage", "settled", "confidence", "relative_change", "check_every", "coefficient", "max_probe_size", "inclusion",
    "screen", "narrow", "auto", "fdr",
)  # fmt: skip
OF_CRITERIA = ("scoring", "missing", "weights", "groups")


def values_of(given: Any, *names: str) -> dict[str, Any]:
    """The values of options that have the names of parameters."""
    return {name: getattr(given, name) for name in names}


def method_of(given: Any) -> str:
    """The method asked for; else that of the run that goes on, DAF where an option is its own, and Tournament."""
    if given.method is not None:
        return str(given.method)
    if given.resume:
        from ..engine.ledger import peek

        return "daf" if peek(given.ledger, "tournament") is None else "tournament"
    return "daf" if used_of(given, OF_DAF) else "tournament"


def used_of(given: Any, names: Iterable[str]) -> str:
    """The flags of those options that were given, with commas."""
    used = (name for name in names if getattr(given, name) is not None and getattr(given, name) is not False)
    return ", ".join(as_flag(Parameter(name)) for name in used)


def daf_of(given: Any, table: Table) -> Any:
    """DAF as the options of rank say."""
    return probewise.DAF(
        **probing_parameters(given, table),
        **how_many_parameters(given.auto, given.fdr),
        **values_of(given, "max_probe_size", "inclusion"),
        coefficient=given.coefficient or "daf0",
        check_every=given.check_every or 400,
        criterion=criterion_of(given, table),
        screen=None if given.screen is None else number_or_share(given.screen),
        narrow=None if given.narrow is None else narrowing_share(given.narrow),
        scale=_scale_of(given, None),
        stop=stop_rule(given),
        cv=folds_of(given, table, 3),
    )


def tournament_of(given: Any, table: Table) -> Any:
    """Tournament as the options of rank say; those of DAF alone are refused."""
    _require_unused(given, OF_DAF, "only --method daf knows it; --method tournament ends by --probes and --time")
    return probewise.Tournament(
        **probing_parameters(given, table),
        criterion=criterion_of(given, table, of_tournament=True),
        n_probes="auto" if given.probes is None else given.probes,
        time_limit=given.time,
        scale=_scale_of(given, "auto"),
        cv=folds_of(given, table, "auto"),
    )


def probing_parameters(given: Any, table: Table) -> dict[str, Any]:
    """What DAF and Tournament are given alike."""
    return {
        **feature_parameters(given, table),
        **values_of(given, "scoring", "device", "ledger"),
        "rows": not given.no_rows,
        "error_score": "raise" if given.error_score is None else given.error_score,
        "n_jobs": given.jobs,
        "random_state": seed_of(given),
        "verbose": 0 if given.quiet else 1,
    }


def without_probes(given: Any, table: Table) -> Any:
    """A filter, or BIF, as the options of rank say; those that mean nothing to it are refused."""
    method = given.method
    if method not in WITHOUT_PROBES:
        known = ", ".join(["tournament", "daf", *WITHOUT_PROBES])
        raise ValueError(f"--method {method!r} is not known: choose one of {known}")
    _require_unused(given, OF_PROBES, f"--method {method} makes no probes")
    selector = getattr(probewise, METHODS[method])()
    known = selector.get_params()
    if given.device not in ("cpu", "auto") and "device" not in known:
        raise ValueError(f"--device {given.device}: --method {method} runs on the CPU only; leave it out")
    n_features = given.n_features or min(given.top, len(table.feature_names))
    parameters = {"n_features_to_select": n_features, "n_jobs": given.jobs, "device": given.device}
    if "criterion" in known:
        parameters |= {
            "criterion": criterion_of(given, table),
            "cv": folds_of(given, table, 3),
            "scoring": given.scoring,
        }
    else:
        _require_unused(given, OF_CRITERIA, f"--method {method} has no criterion and no folds")
    return selector.set_params(**{name: value for name, value in parameters.items() if name in known})


def _require_unused(given: Any, names: Iterable[str], reason: str) -> None:
    used = used_of(given, names)
    if used:
        raise ValueError(f"{used}: {reason}; leave it out")


def selectors_named(given: Any) -> dict[str, Any]:
    """The selectors that compare names, each with the limits given, if it makes probes."""
    methods, stop = given.methods, stop_rule(given)
    names = names_in("methods", methods, ("all", *METHODS))
    selectors: dict[str, Any] = {name: None if name == "all" else getattr(probewise, METHODS[name])() for name in names}
    limited = [
        selector for selector in selectors.values() if hasattr(selector, "stop") or hasattr(selector, "n_probes")
    ]
    if stop is not None and not limited:
        raise ValueError(f"--probes and --time have no meaning for --methods {methods}: none of them makes probes")
    for selector in limited if stop is not None else ():
        of_budget = {"n_probes": given.probes or "auto", "time_limit": given.time}
        selector.set_params(**({"stop": stop} if hasattr(selector, "stop") else of_budget))
    return selectors


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


def stop_rule(given: Any) -> Rule | None:
    """The limits given, whichever comes first; None where none was given."""
    from ..stopping import MaxProbes, MaxTime, MinCoverage, RelativeChange, Settled

    confidence = getattr(given, "confidence", None)
    if confidence is not None and given.settled is None:
        raise ValueError(f"--confidence {confidence:g} needs --settled K, the top that is to be certified")
    if confidence is not None and not 0 < confidence < 1:
        raise ValueError(f"--confidence {confidence:g} must be above 0 and below 1, as 0.95")
    kinds: dict[str, Callable[[Any], Rule]] = {
        "probes": MaxProbes,
        "time": MaxTime,
        "coverage": MinCoverage,
        "settled": partial(Settled, confidence=confidence),
        "relative_change": RelativeChange,
    }
    limits = {name: getattr(given, name, None) for name in kinds}
    rules = [kinds[name](limit) for name, limit in limits.items() if limit is not None]
    return reduce(or_, rules) if rules else None


def seed_of(given: Any) -> int | None:
    return 0 if given.seed is None and not given.resume else given.seed


def number_or_share(given: str) -> int | float:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(given)
    raise ValueError(f"--screen {given!r} is no number: write how many features pass, as 20000, or a share, as 0.1")


def narrowing_share(given: str) -> float | str:
    if given == "auto":
        return given
    with suppress(ValueError):
        if 0 < float(given) < 1:
            return float(given)
    raise ValueError(f"--narrow {given!r}: write the share of features kept after each round, as 0.6, or auto")


def feature_parameters(given: Any, table: Table) -> dict[str, Any]:
    """What is said about single features, by their numbers, as parameters of DAF."""
    from ..io import read_pairs

    named = partial(_features_named, {name: place for place, name in enumerate(table.feature_names)})
    groups: dict[str, list[int]] = {}
    for text in given.feature_groups or ():
        if is_file_of_groups(text):
            for feature, name in read_pairs(text, "group"):
                groups.setdefault(name, []).extend(named("feature-groups", [feature]))
            continue
        name, _, columns = text.partition("=")
        if not columns:
            raise ValueError(f"--feature-groups {text!r}: write a name and columns, as NAME=col1,col2, or give a table")
        groups.setdefault(name, []).extend(named("feature-groups", [columns]))
    costs = None
    if given.costs is not None:
        costs = {}
        for feature, cost in read_pairs(given.costs, "cost"):
            column = named("costs", [feature])[0]
            try:
                costs[column] = float(cost)
            except ValueError:
                raise ValueError(f"--costs {given.costs}: the cost of {feature!r} is {cost!r}; give a number") from None
    return {
        "keep": named("keep-features", given.keep_features or ()) or None,
        "drop": named("drop-features", given.drop_features or ()) or None,
        "feature_groups": groups or None,
        "costs": costs,
    }


def is_file_of_groups(text: str) -> bool:
    """Whether it names a table of groups, and not a group and its columns."""
    return "=" not in text and bool(Path(text).suffix)


def _features_named(places: dict[str, int], option: str, given: Sequence[str]) -> list[int]:
    """The numbers of the features named, each alone or some with commas."""
    from ..io.table import TableError, unknown_name

    names = [name for item in given for name in ([item] if item in places else item.split(","))]
    for name in names:
        if name not in places:
            raise TableError(f"--{option}: {unknown_name(name, list(places), 'feature column')}")
    return [places[name] for name in names]


def _scale_of(given: Any, usual: str | None) -> str | None:
    return usual if given.scale is None else None if given.scale == "none" else given.scale


def how_many_parameters(auto: str | None, fdr: float | None) -> dict[str, Any]:
    if auto is None:
        if fdr is not None:
            raise ValueError("--fdr needs --auto stands_out or decoys")
        return {}
    from ..daf import HOW_MANY

    if auto not in HOW_MANY:
        raise ValueError(f"--auto {auto!r} is not known: choose one of {', '.join(HOW_MANY)}")
    if fdr is not None and auto == "size":
        raise ValueError("--fdr needs --auto stands_out or decoys; --auto size allows for one standard error")
    found = {"n_features_to_select": "auto", "min_features_to_select": 0, "how_many": auto}
    return {**found, "fdr": 0.1 if fdr is None else fdr}


def folds_of(given: Any, table: Table, usual: Any) -> Any:
    """The folds asked for, or the usual ones; a splitter that keeps the groups of rows together, where there are."""
    cv = usual if given.cv is None else _folds_in(given.cv)
    if table.groups is None:
        return cv
    if cv == "loo":
        raise ValueError(
            "--cv loo leaves out single rows, and --row-groups keeps them together: give a number of folds"
        )
    n_folds = 3 if cv == "auto" else int(cv)
    from ..criteria.base import Target, folds_of_groups

    n_groups = len(np.unique(table.groups))
    if n_groups < n_folds:
        raise ValueError(
            f"--row-groups {given.groups} has {n_groups} groups, and --cv {n_folds} needs as many: give a smaller --cv"
        )
    return folds_of_groups(n_folds, table.groups, Target.of(table.y, given.task).is_classification)


def _folds_in(given: str) -> int | str:
    if given == "loo":
        return given
    with suppress(ValueError):
        if int(given) >= 2:
            return int(given)
    raise ValueError(f"--cv {given!r}: write a number of folds, at least 2, or loo")


def criterion_of(given: Any, table: Table, *, of_tournament: bool = False) -> Any:
    """The criterion named, for the task and the missing values that the options say."""
    from ..criteria import NAMES, as_criterion

    name, task, missing = given.criterion, given.task, given.missing
    if name not in ("auto", *NAMES):
        raise ValueError(f"--criterion {name!r} is not known: choose one of auto, {', '.join(NAMES)}")
    if task not in TASKS:
        raise ValueError(f"--task {task!r} is not known: choose one of {', '.join(TASKS)}")
    if task == "regression" and table.y.dtype.kind == "U":
        raise ValueError(f"--task regression needs numbers, and the target {table.target!r} holds text")
    wanted = {"missing": missing, "task": None if task == "auto" else task}
    wanted = {key: value for key, value in wanted.items() if value is not None}
    if of_tournament and name == "auto":
        from ..tournament import usual_criterion

        return usual_criterion(len(table.y), **wanted)
    criterion = as_criterion(name, table.X)
    known = criterion.get_params()
    if missing is not None and "missing" not in known:
        raise ValueError(f"--missing {missing} has no meaning for --criterion {name}: use knn or linear")
    if task != "auto" and "task" not in known:
        raise ValueError(f"--task {task} has no meaning for --criterion {name}")
    return criterion.set_params(**wanted)
