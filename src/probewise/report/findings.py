"""What a run found, whether it is a fitted selector, a ledger or a study, told in the same terms."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..criteria import NAMES, Criterion, as_criterion
from ..engine import replay, size_scaled_tally
from ..ledger import Ledger, LedgerError
from ..probes import ProbePlan
from ..selectors.base import RankingSelector
from ..selectors.daf import DEFAULT_PROBE_SIZE, DEFAULT_STOP
from ..selectors.screening import Screening
from ..stopping import MaxProbes, Rule, as_rule
from ..study import StudyError, StudyResult
from ..study.runfile import DAMAGE, MOST_FEATURES, SIGNATURE, require_settings, require_trial
from ..tally import TallySheet, positions

Floats = NDArray[np.float64]
TOP = 20
CHECK_EVERY = 400
REPLAYED = ("daf0", "daf1", "daf2")
WITHOUT_CONSEQUENCE = ("ledger", "n_jobs", "verbose")


@dataclass(frozen=True, eq=False)
class Probed:
    """The probes of a run: which they were, what they gave, and when they were looked at."""

    plan: ProbePlan
    ledger: Ledger
    check_every: int
    block_size: int
    top: int


@dataclass(frozen=True, eq=False)
class Findings:
    """The ranking of a run, its probes if it made any, its study if it is one, and how to repeat it."""

    method: str
    score_name: str
    scores: Floats
    ranking: NDArray[np.int64]
    names: list[str]
    std_errors: Floats | None = None
    counts: NDArray[np.int64] | None = None
    selector: RankingSelector | None = None
    criterion: Criterion | None = None
    criterion_text: str | None = None
    probed: Probed | None = None
    screening: Screening | None = None
    study: StudyResult | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    shape: tuple[int, int] | None = None
    seed: int | None = None
    stop_reason: str | None = None
    code: str | None = None
    options: list[str] | None = None
    fingerprints: tuple[Any, Any] | None = None
    version: str = __version__

    def named(self, names: Sequence[str] | None) -> Findings:
        """The same with these names, if there are any."""
        return self if names is None else replace(self, names=_names(names, len(self.names)))

    @property
    def order(self) -> NDArray[np.int64]:
        """Columns, best first."""
        return np.argsort(self.ranking, kind="stable")


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
        raise ValueError(f"there is no run at {path}: give a file of rank --ledger or of compare --run")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty: give a file of rank --ledger or of compare --run")
    with path.open("rb") as file:
        is_study = file.read(len(SIGNATURE)) == SIGNATURE
    if is_study:
        return _read_study(path)
    if coefficient not in REPLAYED:
        raise ValueError(f"coefficient={coefficient!r} is not known: choose one of {', '.join(REPLAYED)}")
    with Ledger(path) as ledger:
        return _of_ledger(ledger, coefficient)


# ---- a fitted selector


def _of_selector(selector: RankingSelector) -> Findings:
    check_is_fitted(selector, "ranking_")
    ledger = getattr(selector, "ledger_", None)
    parameters = selector.get_params(deep=False)
    criterion = None
    if "criterion" in parameters:
        criterion = getattr(selector, "criterion_", None) or as_criterion(parameters["criterion"])
    coefficient = getattr(selector, "coefficient", None)
    return Findings(
        method=type(selector).__name__,
        score_name=coefficient.upper() if coefficient else "score",
        scores=np.asarray(selector.scores_, dtype=np.float64),
        ranking=np.asarray(selector.ranking_),
        names=_names(getattr(selector, "feature_names_in_", None), len(selector.scores_)),
        std_errors=getattr(selector, "std_errors_", None),
        counts=selector.tally_.counts if hasattr(selector, "tally_") else None,
        selector=selector,
        criterion=criterion,
        criterion_text=None if criterion is None else criterion.describe(),
        probed=None if ledger is None else _probed_by(selector),
        screening=getattr(selector, "screen_", None),
        settings={name: _plain(value) for name, value in parameters.items() if name not in WITHOUT_CONSEQUENCE},
        seed=selector.plan_.seed if ledger is not None else _whole(parameters.get("random_state")),
        stop_reason=getattr(selector, "stop_reason_", None),
        code=_code(selector),
    )


def _probed_by(daf: Any) -> Probed:
    watched = as_rule(daf.stop or DEFAULT_STOP).watch
    tops = sorted(item for item in watched if isinstance(item, int))
    top = tops[0] if tops else TOP
    return Probed(daf.plan_, daf.ledger_, daf.check_every, daf._block, _telling_top(top, int(daf.passed_.sum())))


def _telling_top(top: int, n_features: int) -> int:
    """A top that says something: of few features two halves always share most."""
    return min(top, max(1, n_features // 4))


def _code(selector: RankingSelector) -> str | None:
    """Python that gives this very result; None where a parameter cannot be written down."""
    again = clone(selector)
    parameters = again.get_params(deep=False)
    neutral: dict[str, Any] = {"ledger": None, "n_jobs": None, "verbose": 0}
    again.set_params(**{name: value for name, value in neutral.items() if name in parameters})
    if hasattr(selector, "plan_"):
        again.set_params(stop=MaxProbes(selector.n_probes_), random_state=selector.plan_.seed)
    text = repr(again)
    if " at 0x" in text:
        return None
    imports = [f"from probewise import {type(selector).__name__}"]
    for parameter in again.get_params(deep=True).values():
        for value in parameter if isinstance(parameter, tuple) else (parameter,):
            if isinstance(value, BaseEstimator | Rule):
                imports.append(f"from {_public_home(type(value))} import {type(value).__name__}")
    return "\n".join([*dict.fromkeys(imports), "", f"{type(selector).__name__.lower()} = {text}.fit(X, y)"])


def _public_home(kind: type) -> str:
    """Where a class is imported from: its module, up to the first private part."""
    if issubclass(kind, Criterion):
        return "probewise.criteria"
    return ".".join(takewhile(lambda part: not part.startswith("_"), kind.__module__.split(".")))


# ---- a ledger


def _of_ledger(ledger: Ledger, coefficient: str) -> Findings:
    kept = ledger.settings
    if not ledger.n_probes:
        raise ValueError(f"the ledger {ledger.path} holds no probes yet: go on with the run first")
    if "shape" not in kept or "seed" not in kept:
        raise ValueError(f"the ledger {ledger.path} does not say what data it is of, so there is nothing to report")
    _require_possible(ledger)
    n_features = int(kept["shape"][1])
    size = kept.get("max_probe_size") or DEFAULT_PROBE_SIZE
    plan = ProbePlan(n_features, min(int(size), n_features), kept.get("inclusion"), int(kept["seed"]))
    screening = Screening.of_ledger(kept, n_features)
    if screening is not None:
        plan = screening.plan(int(size), plan.inclusion, plan.seed)
    sheet = TallySheet(n_features, float(ledger.values(0, 1)[0]))
    for subsets, values in replay(plan, ledger):
        sheet.add(subsets, values)
    block = int(kept.get("block_size", 50))
    n_probed = n_features if screening is None else len(screening.passed)
    check_every = math.lcm(int(kept.get("check_every", CHECK_EVERY)), block)
    tally = sheet.freeze()
    scaled = size_scaled_tally(plan, ledger) if coefficient == "daf2" else tally
    scores = tally.daf1() if coefficient == "daf1" else scaled.daf0()
    criterion = _criterion_called(str(kept.get("criterion")))
    told = ("max_probe_size", "inclusion", "scoring", "screen")
    settings = {name: kept[name] for name in told if kept.get(name) is not None}
    return Findings(
        method="DAF",
        score_name=coefficient.upper(),
        scores=scores,
        ranking=positions(scores) + 1 if screening is None else screening.ranking(scores),
        names=_names(kept.get("feature_names"), n_features),
        std_errors=scaled.std_errors("daf1" if coefficient == "daf1" else "daf0"),
        counts=tally.counts,
        criterion=criterion,
        criterion_text=kept.get("criterion"),
        probed=Probed(plan, ledger, check_every, block, _telling_top(TOP, n_probed)),
        screening=screening,
        settings={"criterion": kept.get("criterion"), "coefficient": coefficient, **settings},
        shape=(int(kept["shape"][0]), n_features),
        seed=plan.seed,
        options=_options(plan, ledger, criterion, coefficient, screening),
        fingerprints=(kept.get("data"), kept.get("target")),
        version=str(kept.get("version", __version__)),
        stop_reason=ledger.stop_reason,
    )


def _require_possible(ledger: Ledger) -> None:
    """A ledger is a file like any other: what it says must be such as a run can have."""
    kept = ledger.settings
    names, inclusion = kept.get("feature_names"), kept.get("inclusion")
    try:
        n_rows, n_features = kept["shape"]
        sizes = [n_rows, n_features, *(kept.get(name) or 1 for name in ("max_probe_size", "block_size", "check_every"))]
        fine = all(isinstance(size, int) and 1 <= size <= MOST_FEATURES for size in sizes)
        fine = fine and isinstance(kept["seed"], int) and 0 <= kept["seed"] < 2**64
        fine = fine and (inclusion is None or 0 < inclusion < 1)
        fine = fine and (names is None or (len(names) == n_features and all(isinstance(name, str) for name in names)))
    except DAMAGE:
        fine = False
    if not fine:
        raise LedgerError(f"the ledger {ledger.path} is damaged: it says what no run can be; put back a copy of it")


def _criterion_called(text: str) -> Criterion | None:
    """The built-in criterion with that description, if it is one with default parameters (the task aside)."""
    for kind in NAMES.values():
        for task in ("auto", "classification", "regression"):
            candidate = kind()
            if "task" in candidate.get_params():
                candidate.set_params(task=task)
            if candidate.describe() == text:
                return candidate
    return None


def _options(
    plan: ProbePlan, ledger: Ledger, criterion: Criterion | None, coefficient: str, screening: Screening | None
) -> list[str] | None:
    """What ``probewise rank`` needs to give the same ranking."""
    if criterion is None or ledger.settings.get("scoring") is not None:
        return None
    if screening is not None and not screening.is_default:
        return None
    name = next(name for name, kind in NAMES.items() if type(criterion) is kind)
    options = ["--criterion", name]
    task = criterion.get_params().get("task", "auto")
    options += [] if task == "auto" else ["--task", task]
    options += [] if coefficient == "daf0" else ["--coefficient", coefficient]
    if plan.inclusion is not None:
        options += ["--inclusion", repr(plan.inclusion)]
    else:
        options += ["--max-probe-size", str(plan.max_size)]
    options += [] if screening is None else ["--screen", str(len(screening.passed))]
    return [*options, "--seed", str(plan.seed), "--probes", str(ledger.n_probes)]


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


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


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
