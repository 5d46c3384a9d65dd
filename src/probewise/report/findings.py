"""What a fitted selector, a ledger or a study found, in the same terms."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product, takewhile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..checks.errors import ForPython, Parameter, ParameterError
from ..criteria import NAMES, Criterion
from ..probing.ledger import Ledger
from ..probing.record import DEFAULT_FDR
from ..probing.run import Run, require_coefficient
from ..probing.tally import COEFFICIENTS, positions
from ..selectors.base import RankingSelector
from ..selectors.probing import ProbingSelector
from ..selectors.size_curve import criterion_of
from ..stopping import MaxProbes, Rule
from ..study import StudyError, StudyResult
from ..study.runfile import DAMAGE, SIGNATURE, require_settings, require_trial
from .ranking_table import TOP, watched_top

Floats = NDArray[np.float64]
WITHOUT_CONSEQUENCE = ("ledger", "n_jobs", "verbose")
FEATURE_PARAMETERS = ("feature_groups", "keep", "drop", "costs", "categorical_features")
LONGEST_LINE = 10_000  # of code that repeats a run
KEPT_SETTINGS = ("max_probe_size", "inclusion", "scoring", "sample_weight", "cv", "screen")
A_KEPT_RUN = (
    "give a file of ",
    ForPython(
        "DAF(ledger=...) or of Study(run=...)", "rank ", Parameter("ledger"), " or of compare ", Parameter("run")
    ),
)


@dataclass(frozen=True, eq=False)
class Findings:
    """The ranking of a run, its probes if it made any, its study if it is one, and how to repeat it.

    ``top`` is how many features at the top the run was watched for, ``fdr`` the false-discovery rate of decoys.
    """

    method: str
    score_name: str
    scores: Floats
    ranking: NDArray[np.int64]
    names: list[str]
    std_errors: Floats | None = None
    selector: RankingSelector | None = None
    criterion: Criterion | None = None
    criterion_text: str | None = None
    run: Run | None = None
    coefficient: str | None = None
    top: int = TOP
    p_values: Floats | None = None
    fdr: float | None = None
    study: StudyResult | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    shape: tuple[int, int] | None = None
    seed: int | None = None
    stop_reason: str | None = None
    code: str | None = None
    command: str | None = None
    fingerprints: tuple[Any, Any] | None = None
    version: str = __version__

    def named(self, names: Sequence[str] | None) -> Findings:
        """The same with these names, if there are any."""
        return self if names is None else replace(self, names=_names(names, len(self.names)))

    @property
    def order(self) -> NDArray[np.int64]:
        """Columns, best first."""
        return np.argsort(self.ranking, kind="stable")

    @property
    def categorical(self) -> NDArray[np.int64]:
        """Columns that are categories."""
        record = None if self.run is None else self.run.record
        return np.empty(0, np.int64) if record is None or record.categorical is None else record.categorical


def findings_of(run: Any, *, coefficient: str | None = None) -> Findings:
    """What a run found: of a fitted selector, a `StudyResult`, or the path of a ledger or a study's file."""
    if isinstance(run, RankingSelector):
        return _of_selector(run)
    if isinstance(run, StudyResult):
        return _of_study(run, {}, None)
    if isinstance(run, str | PathLike):
        return _of_file(Path(run), coefficient or "daf0")
    raise ValueError(f"run={run!r} cannot be reported: give a fitted selector, a StudyResult, or the file of a run")


def _of_file(path: Path, coefficient: str) -> Findings:
    if not path.is_file():
        raise ParameterError(f"there is no run at {path}: ", *A_KEPT_RUN)
    if not path.stat().st_size:
        raise ParameterError(f"{path} is empty: ", *A_KEPT_RUN)
    with path.open("rb") as file:
        is_study = file.read(len(SIGNATURE)) == SIGNATURE
    if is_study:
        return _read_study(path)
    if coefficient not in COEFFICIENTS:
        known = ", ".join(COEFFICIENTS)
        raise ParameterError(Parameter("coefficient", coefficient), f" is not known: choose one of {known}")
    with Ledger(path) as ledger:
        return _of_ledger(ledger, coefficient)


# ---- a fitted selector


def _of_selector(selector: RankingSelector) -> Findings:
    check_is_fitted(selector, "ranking_")
    parameters = selector.get_params(deep=False)
    criterion = criterion_of(selector)
    return Findings(
        method=type(selector).__name__,
        scores=np.asarray(selector.scores_, dtype=np.float64),
        ranking=np.asarray(selector.ranking_),
        names=_names(getattr(selector, "feature_names_in_", None), len(selector.scores_)),
        std_errors=getattr(selector, "std_errors_", None),
        selector=selector,
        criterion=criterion,
        criterion_text=None if criterion is None else criterion.describe(),
        settings={name: _plain(value) for name, value in parameters.items() if name not in WITHOUT_CONSEQUENCE},
        code=_code(selector),
        **(_of_probing(selector) if isinstance(selector, ProbingSelector) else _of_filter(parameters)),
    )


def _of_filter(parameters: dict[str, Any]) -> dict[str, Any]:
    seed = parameters.get("random_state")
    return {"score_name": "score", "seed": int(seed) if isinstance(seed, int | np.integer) else None}


def _of_probing(selector: ProbingSelector) -> dict[str, Any]:
    run = selector.run_
    return {
        "score_name": selector.coefficient.upper(),
        "run": run,
        "coefficient": selector.coefficient,
        "top": watched_top(run, getattr(selector, "stop", None)),
        "p_values": getattr(selector, "p_values_", None),
        "fdr": getattr(selector, "fdr", None),
        "seed": run.plan.seed,
        "stop_reason": run.stop_reason,
    }


def _code(selector: RankingSelector) -> str | None:
    """Python that gives this very result; None where a parameter cannot be written down."""
    again = clone(selector)
    parameters = again.get_params(deep=False)
    neutral: dict[str, Any] = {"ledger": None, "n_jobs": None, "verbose": 0}
    again.set_params(**{name: value for name, value in neutral.items() if name in parameters})
    if isinstance(selector, ProbingSelector):
        again.set_params(stop=MaxProbes(selector.n_probes_), random_state=selector.plan_.seed)
    values = _written_apart(again)
    text = repr(again)
    if " at 0x" in text or any(line is None for line in values):
        return None
    imports = [f"from probewise import {type(selector).__name__}"]
    for parameter in again.get_params(deep=True).values():
        for value in parameter if isinstance(parameter, tuple) else (parameter,):
            if isinstance(value, BaseEstimator | Rule | BaseCrossValidator):
                imports.append(f"from {_public_home(type(value))} import {type(value).__name__}")
    of_rows = "".join(f", {name}={name}" for name in getattr(selector, "fit_arguments_", ()))
    fitted = f"{type(selector).__name__.lower()} = {text}.fit(X, y{of_rows})"
    return "\n".join([*dict.fromkeys(imports), "", *map(str, values), fitted])


class _Name(str):
    """A text that is written without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _written_apart(selector: Any) -> list[str | None]:
    """Lines that say what a parameter about features is, which is put to its name; None for one that is too long."""
    lines: list[str | None] = []
    for name in FEATURE_PARAMETERS:
        value = selector.get_params(deep=False).get(name)
        if value is None or isinstance(value, str):
            continue
        text = repr(_as_plain(value))
        lines.append(f"{name} = {text}" if len(text) <= LONGEST_LINE else None)
        selector.set_params(**{name: _Name(name)})
    return lines


def _as_plain(value: Any) -> Any:
    """Arrays as lists, also inside of dicts and lists."""
    if isinstance(value, Mapping):
        return {_as_plain(key): _as_plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, list | tuple):
        return [_as_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _public_home(kind: type) -> str:
    """Where a class is imported from: its module, up to the first private part."""
    if issubclass(kind, Criterion):
        return "probewise.criteria"
    return ".".join(takewhile(lambda part: not part.startswith("_"), kind.__module__.split(".")))


# ---- a ledger


def _of_ledger(ledger: Ledger, coefficient: str) -> Findings:
    if not ledger.n_probes:
        raise ValueError(f"the ledger {ledger.path} holds no probes yet: go on with the run first")
    run = Run.read(ledger)
    record, kept = run.record, ledger.settings
    assert record is not None
    require_coefficient(coefficient, in_rounds=run.in_rounds)
    scores, errors = run.coefficient(coefficient)
    settings = {name: kept[name] for name in KEPT_SETTINGS if kept.get(name) is not None}
    return Findings(
        method="DAF",
        score_name=coefficient.upper(),
        scores=scores,
        ranking=run.ranking(coefficient),
        names=_names(record.feature_names, record.shape[1]),
        std_errors=errors,
        criterion=_criterion_called(record.criterion),
        criterion_text=kept.get("criterion"),
        run=run,
        coefficient=coefficient,
        top=watched_top(run),
        p_values=run.p_values(coefficient) if run.units.n_decoys else None,
        fdr=DEFAULT_FDR if record.fdr is None else record.fdr,
        settings={"criterion": kept.get("criterion"), "coefficient": coefficient, **settings},
        shape=record.shape,
        seed=record.seed,
        command=None if record.command is None else shlex.join(["probewise", *record.command]),
        fingerprints=(record.data, record.target),
        version=record.version or __version__,
        stop_reason=run.stop_reason,
    )


def _criterion_called(text: str) -> Criterion | None:
    """The built-in criterion with that description, if it has default parameters (task and missing values aside)."""
    for kind in NAMES.values():
        known = kind().get_params()
        tasks = ("auto", "classification", "regression") if "task" in known else ()
        fillings = (None, "mean", "median") if "missing" in known else ()
        for task, missing in product(tasks or (None,), fillings or (None,)):
            given = {"task": task, "missing": missing}
            candidate = kind().set_params(**{name: value for name, value in given.items() if name in known})
            if candidate.describe() == text:
                return candidate
    return None


# ---- a study


def _read_study(path: Path) -> Findings:
    """The finished trials in a study's file; a last line cut short is a trial not finished."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    records: dict[int, dict[str, Any]] = {}
    try:
        header, *lines = [json.loads(line) for line in whole.splitlines()]
        settings, notes = header["settings"], header.get("notes", {})
        require_settings(settings)
        for line in lines:
            require_trial(line, settings)
            records.setdefault(line["trial"], line)
        n_rows, n_features = settings["shape"]
        names = notes.get("feature_names")
        if names is not None and not (len(names) == n_features and all(isinstance(name, str) for name in names)):
            raise ValueError(f"it does not name {n_features:,} features")
    except DAMAGE as error:
        raise StudyError(f"{path} is damaged: {' '.join(str(error).split())}") from error
    if not records:
        raise StudyError(f"{path} holds no finished trial yet: go on with the study first")
    test_size = settings["test_size"]
    n_test = math.ceil(test_size * n_rows) if isinstance(test_size, float) else int(test_size)
    result = StudyResult(
        selectors=tuple(settings["selectors"]),
        classifiers=tuple(settings["classifiers"]),
        sizes=np.array(settings["sizes"], dtype=np.int64),
        n_features=n_features,
        n_train=n_rows - n_test,
        n_test=n_test,
        records=tuple(records[trial] for trial in sorted(records)),
        feature_names=names,
    )
    return _of_study(result, settings, notes.get("version"))


def _of_study(result: StudyResult, settings: dict[str, Any], version: str | None) -> Findings:
    """The ranking of a study is how often its best method selected a feature."""
    method = best_method(result)
    shares = selected_shares(result, method)
    scores = shares.mean(axis=0)
    n_trials = len(result.trials)
    errors = shares.std(axis=0, ddof=1) / math.sqrt(n_trials) if n_trials > 1 else None
    left_out = {"shape", "data", "target", "seed", "selectors", "classifiers", "sizes"}
    return Findings(
        method="study",
        score_name=f"share, {method}",
        scores=scores,
        ranking=positions(scores) + 1,
        names=_names(result.feature_names, result.n_features),
        std_errors=errors,
        study=result,
        settings={
            "selectors": ", ".join(result.selectors),
            "classifiers": ", ".join(result.classifiers),
            "sizes": ", ".join(map(str, result.sizes.tolist())),
            **{name: value for name, value in settings.items() if name not in left_out},
        },
        shape=(result.n_train + result.n_test, result.n_features),
        seed=settings.get("seed"),
        fingerprints=(settings.get("data"), settings.get("target")) if settings else None,
        version=version or __version__,
    )


def best_method(result: StudyResult) -> str:
    """The method with the largest mean accuracy, those that select nothing apart."""
    means = dict(zip(result.selectors, result.accuracy.mean(axis=(0, 2, 3)).tolist(), strict=True))
    return max(selecting(result) or result.selectors, key=lambda name: means[name])


def selecting(result: StudyResult) -> list[str]:
    """The methods that select; the others take all features."""
    return [name for name in result.selectors if any(each["selectors"][name]["subsets"] for each in result.records)]


def selected_shares(result: StudyResult, method: str) -> Floats:
    """Array (trials, features): at what share of the sizes each feature was selected."""
    shares = np.zeros((len(result.trials), result.n_features))
    for size in result.sizes.tolist():
        for trial, subset in enumerate(result.subsets(method, size)):
            shares[trial, subset] += 1 / len(result.sizes)
    return shares


# ---- plain values


def _names(names: Any, n_features: int) -> list[str]:
    if names is None:
        return [f"x{column}" for column in range(n_features)]
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names):,} names for {n_features:,} features: give one for each")
    return [str(name) for name in names]


def _plain(value: Any) -> Any:
    """The value if JSON has it, else its description."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Criterion):
        return value.describe()
    if isinstance(value, BaseEstimator):
        return repr(value)
    return repr(value).split(" at 0x")[0]
