"""Inputs of a report: the ranking of a selector, ledger or study, the data behind it, and the code that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import __version__
from .._selector import ANY_NUMBERS, Selector
from ..criteria import NAMES, Criterion
from ..criteria.base import Target
from ..engine.fingerprints import fingerprint
from ..engine.ledger import Ledger
from ..engine.run import Run
from ..evaluation.sizes import criterion_of
from ..stopping import MaxProbes, Rule
from ..tournament import N_NEIGHBORS, default_criterion
from ..validation.parameters import outcome_array
from ..validation.tables import number_categories
from .ranking_table import top_size

if TYPE_CHECKING:
    from ..study import StudyResult

Floats = NDArray[np.float64]
LEDGER_PARAMETERS = ("max_probe_size", "inclusion", "scoring", "sample_weight", "cv")
NO_EFFECT = ("ledger", "n_jobs", "verbose")  # parameters that do not change the ranking
LONGEST_LINE = 10_000


@dataclass(frozen=True, eq=False)
class Findings:
    """A ranking and its origin: a fitted selector, a ledger (a run without a selector) or a study."""

    method: str
    score_name: str
    scores: Floats
    ranking: NDArray[np.int64]
    names: list[str]
    std_errors: Floats | None
    parameters: dict[str, Any]
    seed: int | None = None
    criterion: Criterion | None = None
    selector: Selector | None = None
    run: Run | None = None
    coefficient: str | None = None
    study: StudyResult | None = None
    shape: tuple[int, int] | None = None
    fingerprints: tuple[str | None, str | None] = (None, None)  # of the data and the target
    version: str = __version__

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Columns, best first."""
        return np.argsort(self.ranking, kind="stable")

    @property
    def top(self) -> int | None:
        """Number of features in the top that certainty and convergence refer to."""
        return None if self.run is None else top_size(self.run, getattr(self.selector, "stop", None))

    @property
    def categorical(self) -> NDArray[np.int64]:
        """Columns that are categories."""
        columns = None if self.run is None else self.run.settings.categorical
        return np.empty(0, np.int64) if columns is None else columns

    @property
    def criterion_text(self) -> str | None:
        if self.selector is None:
            return None if self.run is None else self.run.settings.criterion
        return None if self.criterion is None else self.criterion.describe()

    @property
    def command(self) -> str | None:
        """The command line that started the run in a ledger."""
        if self.selector is not None or self.run is None or self.run.settings.command is None:
            return None
        return shlex.join(["probewise", *self.run.settings.command])

    def names_of(self, columns: Any) -> list[str]:
        return [self.names[column] for column in columns]


def findings_of_selector(selector: Selector, names: Sequence[str] | None = None) -> Findings:
    """Findings of a fitted selector; ``names`` are the names of the features if ``fit`` saw none."""
    check_is_fitted(selector, "ranking_")
    parameters = selector.get_params(deep=False)
    run = getattr(selector, "run_", None)
    coefficient = None if run is None else run.ranked_by
    seed = parameters.get("random_state") if run is None else run.plan.seed
    return Findings(
        method=type(selector).__name__,
        score_name="score" if coefficient is None else coefficient.upper(),
        scores=np.asarray(selector.scores_, dtype=np.float64),
        ranking=np.asarray(selector.ranking_),
        names=checked_names(getattr(selector, "feature_names_in_", names), len(selector.scores_)),
        std_errors=getattr(selector, "std_errors_", None),
        parameters={name: _as_json(value) for name, value in parameters.items() if name not in NO_EFFECT},
        seed=int(seed) if isinstance(seed, int | np.integer) else None,
        criterion=criterion_of(selector),
        selector=selector,
        run=run,
        coefficient=coefficient,
    )


def findings_of_ledger(ledger: Ledger, coefficient: str | None = None) -> Findings:
    """Findings of the run in a ledger, ranked by this coefficient or by the default one of its method."""
    if not ledger.n_probes:
        raise ValueError(f"the ledger {ledger.path} has no probes yet: continue the run first")
    run = Run.read(ledger)
    settings, coefficient = run.settings, coefficient or run.ranked_by
    run = replace(run, ranked_by=coefficient)
    values = ledger.settings
    parameters = {name: values[name] for name in LEDGER_PARAMETERS if values.get(name) is not None}
    return Findings(
        method=settings.method,
        score_name=coefficient.upper(),
        scores=run.scores(),
        ranking=run.ranking(),
        names=checked_names(settings.feature_names, settings.shape[1]),
        std_errors=run.std_errors(),
        parameters={"criterion": settings.criterion, "coefficient": coefficient, **parameters},
        seed=settings.seed,
        criterion=_criterion_with_description(settings.criterion),
        run=run,
        coefficient=coefficient,
        shape=settings.shape,
        fingerprints=(settings.data, settings.target),
        version=settings.version or __version__,
    )


def _criterion_with_description(text: str) -> Criterion | None:
    """The built-in criterion with this description and default parameters, apart from ``task`` and ``missing``."""
    for task, missing in product(("auto", "classification", "regression"), (None, "mean", "median")):
        parameters: dict[str, Any] = {"task": task, "missing": missing}
        candidates: list[Criterion] = [default_criterion(2 * k, **parameters) for k in range(1, N_NEIGHBORS + 1)]
        for criterion in (kind() for kind in NAMES.values()):
            known = criterion.get_params()
            candidates.append(criterion.set_params(**{name: parameters[name] for name in parameters if name in known}))
        match = next((criterion for criterion in candidates if criterion.describe() == text), None)
        if match is not None:
            return match
    return None


def checked_names(names: Sequence[Any] | None, n_features: int) -> list[str]:
    """One name for each feature, by default x0, x1, ..."""
    if names is None:
        return [f"x{column}" for column in range(n_features)]
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names):,} names for {n_features:,} features: give one for each")
    return [str(name) for name in names]


def _as_json(value: Any) -> Any:
    """The value if JSON can represent it, else its description."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Criterion):
        return value.describe()
    return repr(value) if isinstance(value, BaseEstimator) else repr(value).split(" at 0x")[0]


# ---- the data


@dataclass(frozen=True, eq=False)
class Data:
    """The data of a run: X as numbers and as the user gave it, y, the target, and further arguments of ``fit``."""

    original: Any
    X: Any
    y: NDArray[Any] | None
    target: Target | None
    fit_arguments: dict[str, Any]
    target_names: list[str] | None = None

    @property
    def is_classification(self) -> bool:
        return self.target is not None and self.target.is_classification

    @property
    def smallest_class(self) -> int:
        """Number of samples of the smallest class."""
        assert self.target is not None
        return int(np.bincount(self.target.values).min())


def checked_data(findings: Findings, X: Any, y: Any, **fit_arguments: Any) -> Data:
    """The data as numbers; an error if the run is known to have used other data."""
    original, categories = X, (-1, findings.categorical.astype(np.int32)) if len(findings.categorical) else ()
    X, _ = number_categories(X, *categories)
    if findings.selector is not None:
        X = validate_data(findings.selector, X, reset=False, **ANY_NUMBERS)
    else:
        X = check_array(X, **ANY_NUMBERS)
    if findings.shape is not None and X.shape != findings.shape:
        here, there = (f"{rows:,} samples and {features:,} features" for rows, features in (X.shape, findings.shape))
        raise ValueError(f"the data have {here}, the data of the run {there}: give the same table")
    names = [str(name) for name in y.columns] if hasattr(y, "columns") else None
    if y is not None:
        check_consistent_length(X, y)
        y = outcome_array(y)
    for name, expected, values in zip(("X", "y"), findings.fingerprints, (X, y), strict=True):
        if expected is not None and values is not None and fingerprint(values) != expected:
            raise ValueError(f"{name} differs from the data of the run: give the same table, target and columns")
    target = None if y is None else Target.of(y, getattr(findings.criterion, "task", "auto"))
    fit_arguments = {name: values for name, values in fit_arguments.items() if values is not None}
    return Data(original, X.tocsc() if sp.issparse(X) else X, y, target, fit_arguments, names)


# ---- the code


def code_to_repeat(selector: Selector, reading: str | None = None) -> str | None:
    """Python code that gives the same ranking; None if a parameter cannot be written as code.

    ``reading`` contains the lines that create X and y.
    """
    defaults = type(selector)().get_params(deep=False)
    parameters = {name: value for name, value in selector.get_params(deep=False).items() if name not in NO_EFFECT}
    if hasattr(selector, "run_"):
        run = selector.run_
        schedule = run.settings.schedule
        limit = {"stop": MaxProbes(selector.n_probes_)} if schedule is None else {"n_probes": schedule.n_probes}
        parameters |= {**limit, "random_state": run.plan.seed}
    texts = {name: repr(_without_arrays(value)) for name, value in parameters.items()}
    call = ", ".join(f"{name}={text}" for name, text in texts.items() if text != repr(defaults[name]))
    if " at 0x" in call or len(call) > LONGEST_LINE:
        return None
    name = type(selector).__name__
    imports = [f"from probewise import {name}"]
    for parameter in clone(selector).set_params(**parameters).get_params(deep=True).values():
        for value in parameter if isinstance(parameter, tuple) else (parameter,):
            if isinstance(value, BaseEstimator | Rule | BaseCrossValidator):
                imports.append(f"from {_public_module(type(value))} import {type(value).__name__}")
    arguments = "".join(f", {argument}={argument}" for argument in getattr(selector, "fit_arguments_", ()))
    lines = (reading or "# X, y: the data of the run").splitlines()
    imports += [line for line in lines if line.startswith("from ")]
    lines = [*(line for line in lines if line not in imports), f"{name.lower()} = {name}({call}).fit(X, y{arguments})"]
    return "\n".join([*dict.fromkeys(imports), "", *lines])


def _without_arrays(value: Any) -> Any:
    """The value with arrays as lists, also inside dicts and lists."""
    if isinstance(value, Mapping):
        return {_without_arrays(key): _without_arrays(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, list | tuple):
        return type(value)(map(_without_arrays, value))
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _public_module(kind: type) -> str:
    """The module to import a class from: its own, up to the first private part."""
    if issubclass(kind, Criterion):
        return "probewise.criteria"
    return ".".join(takewhile(lambda part: not part.startswith("_"), kind.__module__.split(".")))
