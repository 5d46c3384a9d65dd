"""What a run found, whether it is a fitted selector, a ledger or a study, told in the same terms."""

from __future__ import annotations

import json
import math
import re
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
from ..criteria.scoring import FOR_CLASSES, FOR_NUMBERS
from ..probing.certainty import Certainty
from ..probing.ledger import Ledger, LedgerError
from ..probing.probes import PlanInRounds, ProbePlan
from ..probing.rounds import FEWEST_FEATURES, Narrowing
from ..probing.tally import COEFFICIENTS, positions
from ..selectors.base import RankingSelector
from ..selectors.daf import DAF, DEFAULT_STOP
from ..selectors.outcome import Outcome, check_every_of, require_coefficient
from ..selectors.screening import Screening
from ..selectors.size_curve import criterion_of
from ..stopping import MaxProbes, Rule, Sure, as_rule
from ..study import StudyError, StudyResult
from ..study.runfile import DAMAGE, MOST_FEATURES, SIGNATURE, require_settings, require_trial

Floats = NDArray[np.float64]
TOP = 20
RATE = 0.1
CHECK_EVERY = 400
WITHOUT_CONSEQUENCE = ("ledger", "n_jobs", "verbose")
SAID_OF_FEATURES = ("feature_groups", "keep", "drop", "costs", "categorical_features")
LONGEST_LINE = 10_000  # of code that repeats a run
A_KEPT_RUN = (
    "give a file of ",
    ForPython(
        "DAF(ledger=...) or of Study(run=...)", "rank ", Parameter("ledger"), " or of compare ", Parameter("run")
    ),
)


@dataclass(frozen=True, eq=False)
class Probed:
    """The probes of a run: which they were, what they gave, and when they were looked at.

    ``within`` is the plan as the run began with it, over what enters and leaves as one.
    """

    plan: ProbePlan
    ledger: Ledger
    check_every: int
    block_size: int
    top: int
    within: ProbePlan
    narrow: Narrowing | None = None


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
    certainty: Certainty | None = None
    screening: Screening | None = None
    outcome: Outcome | None = None
    categorical: NDArray[np.bool_] | None = None
    costs: Floats | None = None
    p_values: Floats | None = None
    rate: float | None = None
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
    ledger = getattr(selector, "ledger_", None)
    parameters = selector.get_params(deep=False)
    criterion = criterion_of(selector)
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
        certainty=selector.certainty() if isinstance(selector, DAF) else None,
        screening=getattr(selector, "screen_", None),
        **(_said_to(selector) if isinstance(selector, DAF) else {}),
        settings={name: _plain(value) for name, value in parameters.items() if name not in WITHOUT_CONSEQUENCE},
        seed=selector.plan_.seed if ledger is not None else _whole(parameters.get("random_state")),
        stop_reason=getattr(selector, "stop_reason_", None),
        code=_code(selector),
    )


def _probed_by(daf: Any) -> Probed:
    watched = as_rule(daf.stop or DEFAULT_STOP).watch
    tops = sorted(item.top if isinstance(item, Sure) else item for item in watched if not isinstance(item, str))
    top = tops[0] if tops else TOP
    top, within = _telling_top(top, _n_ranked(daf._outcome)), _as_begun(daf._within)
    return Probed(daf.plan_, daf.ledger_, daf.check_every, daf._block, top, within, daf._narrowing())


def _said_to(daf: DAF) -> dict[str, Any]:
    """What the user said about features, and what decoys said."""
    return {
        "outcome": daf._outcome,
        "categorical": daf._categorical,
        "costs": daf._checked_costs(),
        "p_values": getattr(daf, "p_values_", None),
        "rate": daf.fdr,
    }


def _as_begun(plan: ProbePlan) -> ProbePlan:
    return replace(plan, later=()) if isinstance(plan, PlanInRounds) else plan


def _n_ranked(outcome: Outcome) -> int:
    """What was probed and has a rank of its own."""
    return outcome.within.n_features if outcome.units is None else outcome.units.n_real


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
    values = _written_apart(again)
    text = repr(again)
    if " at 0x" in text or any(line is None for line in values):
        return None
    imports = [f"from probewise import {type(selector).__name__}"]
    for parameter in again.get_params(deep=True).values():
        for value in parameter if isinstance(parameter, tuple) else (parameter,):
            if isinstance(value, BaseEstimator | Rule | BaseCrossValidator):
                imports.append(f"from {_public_home(type(value))} import {type(value).__name__}")
    of_rows = "".join(f", {name}={name}" for name in getattr(selector, "_fitted_with", ()))
    fitted = f"{type(selector).__name__.lower()} = {text}.fit(X, y{of_rows})"
    return "\n".join([*dict.fromkeys(imports), "", *map(str, values), fitted])


class _Name(str):
    """A text that is written without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _written_apart(selector: Any) -> list[str | None]:
    """Lines that say what a parameter about features is, which is put to its name; None for one that is too long."""
    lines: list[str | None] = []
    for name in SAID_OF_FEATURES:
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
    kept = ledger.settings
    if not ledger.n_probes:
        raise ValueError(f"the ledger {ledger.path} holds no probes yet: go on with the run first")
    if "shape" not in kept or "seed" not in kept:
        raise ValueError(f"the ledger {ledger.path} does not say what data it is of, so there is nothing to report")
    _require_possible(ledger)
    n_features = int(kept["shape"][1])
    outcome = Outcome.of_ledger(ledger)
    require_coefficient(coefficient, in_rounds=outcome.in_rounds)
    plan, screening, tally = outcome.plan, outcome.screening, outcome.tally_of_features
    block, check_every = int(kept.get("block_size", 50)), check_every_of(kept)
    scores, errors = outcome.coefficient(coefficient)
    has_decoys = outcome.units is not None and outcome.units.n_decoys > 0
    costs, categorical, rate = _said_in(ledger)
    criterion = _criterion_called(str(kept.get("criterion")))
    told = ("max_probe_size", "inclusion", "scoring", "sample_weight", "cv", "screen")
    settings = {name: kept[name] for name in told if kept.get(name) is not None}
    return Findings(
        method="DAF",
        score_name=coefficient.upper(),
        scores=outcome.spread(scores),
        ranking=outcome.ranking(scores, costs),
        names=_names(kept.get("feature_names"), n_features),
        std_errors=outcome.spread(errors),
        counts=tally.counts,
        criterion=criterion,
        criterion_text=kept.get("criterion"),
        probed=Probed(
            plan,
            ledger,
            check_every,
            block,
            _telling_top(TOP, _n_ranked(outcome)),
            _as_begun(outcome.within),
            outcome.narrowing,
        ),
        certainty=outcome.certainty(coefficient),
        screening=screening,
        outcome=outcome,
        categorical=categorical,
        costs=costs,
        p_values=outcome.chances(scores) if has_decoys else None,
        rate=rate,
        settings={"criterion": kept.get("criterion"), "coefficient": coefficient, **settings},
        shape=(int(kept["shape"][0]), n_features),
        seed=plan.seed,
        options=_options(plan, ledger, criterion, coefficient, outcome),
        fingerprints=(kept.get("data"), kept.get("target")),
        version=str(kept.get("version", __version__)),
        stop_reason=ledger.stop_reason,
    )


def _said_in(ledger: Ledger) -> tuple[Floats | None, NDArray[np.bool_], float]:
    """Costs, which features are categories, and the false-discovery rate, as the ledger keeps them."""
    kept, n_features = ledger.settings, int(ledger.settings["shape"][1])
    categorical = np.zeros(n_features, dtype=bool)
    try:
        costs = None if kept.get("costs") is None else np.array(kept["costs"], dtype=np.float64)
        columns, rate = np.array(kept.get("categorical") or [], dtype=np.int64), float(kept.get("fdr", RATE))
        fine = costs is None or (costs.shape == (n_features,) and bool((np.isfinite(costs) & (costs > 0)).all()))
        fine = fine and bool(((columns >= 0) & (columns < n_features)).all()) and 0 < rate < 1
        categorical[columns if fine else []] = True
    except DAMAGE:
        fine = False
    if not fine:
        raise LedgerError(f"the ledger {ledger.path} is damaged: it says what no run can be; put back a copy of it")
    return costs, categorical, rate


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


def _options(
    plan: ProbePlan, ledger: Ledger, criterion: Criterion | None, coefficient: str, outcome: Outcome
) -> list[str] | None:
    """What ``probewise rank`` needs to give the same ranking."""
    judged, said, screening = _judged(ledger), _said_again(ledger, outcome), outcome.screening
    if criterion is None or judged is None or said is None:
        return None
    if screening is not None and not screening.is_default:
        return None
    name = next(name for name, kind in NAMES.items() if type(criterion) is kind)
    options = ["--criterion", name]
    task = criterion.get_params().get("task", "auto")
    options += [] if task == "auto" else ["--task", task]
    missing = criterion.get_params().get("missing")
    options += [] if missing is None else ["--missing", missing]
    options += judged
    options += [] if coefficient == "daf0" else ["--coefficient", coefficient]
    if plan.inclusion is not None:
        options += ["--inclusion", repr(plan.inclusion)]
    else:
        options += ["--max-probe-size", str(plan.max_size)]
    options += [] if screening is None else ["--screen", str(len(screening.passed))]
    options += said
    return [*options, "--seed", str(plan.seed), "--probes", str(ledger.n_probes)]


def _said_again(ledger: Ledger, outcome: Outcome) -> list[str] | None:
    """What was said about features, as options; None where the command line cannot say it without a file."""
    kept, units, narrow = ledger.settings, outcome.units, outcome.narrowing
    names: list[str] | None = kept.get("feature_names")
    options = []
    if narrow is not None:
        options += ["--narrow", repr(narrow.share)]
    if units is not None and units.n_decoys:
        options += ["--auto", "decoys", *([] if kept.get("fdr", RATE) == RATE else ["--fdr", repr(kept["fdr"])])]
    groups = [] if units is None else [unit.tolist() for unit in units.members if len(unit) > 1]
    kept_in, dropped = ([], []) if units is None else (units.always.tolist(), units.dropped.tolist())
    said = [("--keep-feature", column) for column in kept_in] + [("--drop-feature", column) for column in dropped]
    said += [("--categorical", column) for column in kept.get("categorical") or ()]
    named = [column for _, column in said] + [column for group in groups for column in group]
    if kept.get("costs") is not None or (narrow is not None and narrow.fewest != FEWEST_FEATURES):
        return None
    if not named:
        return options
    if names is None or any("," in names[column] for column in named):
        return None
    for place, group in enumerate(groups, start=1):
        options += ["--group", f"{place}={','.join(names[column] for column in group)}"]
    return options + [word for option, column in said for word in (option, names[column])]


def _judged(ledger: Ledger) -> list[str] | None:
    """How the criterion was asked to judge, as options; the ledger does not know the names of columns."""
    kept = ledger.settings
    scoring, cv = kept.get("scoring"), str(kept.get("cv", 3))
    by_groups = re.fullmatch(r"(?:Stratified)?GroupKFold\(n_splits=(\d+)(?:, random_state=None, shuffle=False)?\)", cv)
    if scoring not in (None, *FOR_CLASSES, *FOR_NUMBERS) or not (cv.isdecimal() or by_groups):
        return None
    options = [] if scoring is None else ["--scoring", str(scoring)]
    options += [] if kept.get("sample_weight") is None else ["--weights", "WEIGHTS"]
    options += [] if by_groups is None else ["--groups", "GROUPS"]
    folds = cv if by_groups is None else by_groups[1]
    return options + ([] if folds == "3" else ["--cv", folds])


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
