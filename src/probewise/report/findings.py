"""What a report reads of a fitted selector or a ledger, in the same terms."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from .._probing import ProbingSelector
from .._selector import Selector
from ..criteria import NAMES, Criterion
from ..engine.ledger import Ledger
from ..engine.run import Run, require_coefficient
from ..engine.settings import DEFAULT_FDR, Settings
from ..evaluation.sizes import criterion_of
from ..study import StudyResult
from ..tournament import NEIGHBORS, usual_criterion
from .code import WITHOUT_CONSEQUENCE
from .ranking_table import watched_top

Floats = NDArray[np.float64]
LEDGER_SETTINGS = ("max_probe_size", "inclusion", "scoring", "sample_weight", "cv")


@dataclass(frozen=True, eq=False)
class Findings:
    """A ranking and what it was made from: a fitted selector, a ledger (a run without a selector) or a study."""

    method: str
    score_name: str
    scores: Floats
    ranking: NDArray[np.int64]
    names: list[str]
    std_errors: Floats | None
    settings: dict[str, Any]
    seed: int | None = None
    criterion: Criterion | None = None
    selector: Selector | None = None
    run: Run | None = None
    coefficient: str | None = None
    study: StudyResult | None = None
    shape: tuple[int, int] | None = None
    fingerprints: tuple[str | None, str | None] = (None, None)
    version: str = __version__

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Columns, best first."""
        return np.argsort(self.ranking, kind="stable")

    @property
    def record(self) -> Settings | None:
        return None if self.run is None else self.run.settings

    @property
    def top(self) -> int:
        """How many features at the top the run was watched for."""
        assert self.run is not None
        return watched_top(self.run, getattr(self.selector, "stop", None))

    @property
    def categorical(self) -> NDArray[np.int64]:
        """Columns that are categories."""
        columns = None if self.record is None else self.record.categorical
        return np.empty(0, np.int64) if columns is None else columns

    @property
    def criterion_text(self) -> str | None:
        if self.selector is None:
            return None if self.record is None else self.record.criterion
        return None if self.criterion is None else self.criterion.describe()

    @cached_property
    def p_values(self) -> Floats | None:
        """The chance of each feature that luck gives as much; None where that is not known."""
        return None if self.run is None or self.coefficient is None else self.run.p_values()

    @cached_property
    def stands_out(self) -> NDArray[np.bool_] | None:
        """Which features beat luck, on other rows as well; None where that is not known."""
        if self.run is None or self.coefficient is None:
            return None
        return self.run.stands_out(self.fdr)

    @property
    def fdr(self) -> float:
        """The false-discovery rate asked for."""
        return getattr(self.selector, "fdr", DEFAULT_FDR)

    @property
    def command(self) -> str | None:
        """The command line that began the run in a ledger."""
        if self.selector is not None or self.record is None or self.record.command is None:
            return None
        return shlex.join(["probewise", *self.record.command])


def findings_of_selector(selector: Selector) -> Findings:
    """What a fitted selector found."""
    check_is_fitted(selector, "ranking_")
    parameters = selector.get_params(deep=False)
    seed, run, coefficient = parameters.get("random_state"), None, None
    if isinstance(selector, ProbingSelector):
        run, coefficient = selector.run_, selector.coefficient
        seed = run.plan.seed
    return Findings(
        method=type(selector).__name__,
        score_name="score" if coefficient is None else coefficient.upper(),
        scores=np.asarray(selector.scores_, dtype=np.float64),
        ranking=np.asarray(selector.ranking_),
        names=checked_names(getattr(selector, "feature_names_in_", None), len(selector.scores_)),
        std_errors=getattr(selector, "std_errors_", None),
        settings={name: _as_json(value) for name, value in parameters.items() if name not in WITHOUT_CONSEQUENCE},
        seed=int(seed) if isinstance(seed, int | np.integer) else None,
        criterion=criterion_of(selector),
        selector=selector,
        run=run,
        coefficient=coefficient,
    )


def findings_of_ledger(ledger: Ledger, coefficient: str | None = None) -> Findings:
    """What the run in a ledger found, by this coefficient or the usual one of its method."""
    if not ledger.n_probes:
        raise ValueError(f"the ledger {ledger.path} holds no probes yet: go on with the run first")
    run, kept = Run.read(ledger), ledger.settings
    record = run.settings
    assert record is not None
    coefficient = coefficient or ("regression" if record.method == "Tournament" else "daf0")
    require_coefficient(coefficient, in_rounds=run.in_rounds)
    scores = run.coefficient(coefficient)[0]
    settings = {name: kept[name] for name in LEDGER_SETTINGS if kept.get(name) is not None}
    return Findings(
        method=record.method,
        score_name=coefficient.upper(),
        scores=scores,
        ranking=run.ranking(coefficient),
        names=checked_names(record.feature_names, record.shape[1]),
        std_errors=run.std_errors(coefficient),
        settings={"criterion": record.criterion, "coefficient": coefficient, **settings},
        seed=record.seed,
        criterion=_criterion_described(record.criterion),
        run=run,
        coefficient=coefficient,
        shape=record.shape,
        fingerprints=(record.data, record.target),
        version=record.version or __version__,
    )


def _criterion_described(text: str) -> Criterion | None:
    """The built-in criterion with that description, if it has default parameters (task and missing values aside)."""
    for task, missing in product(("auto", "classification", "regression"), (None, "mean", "median")):
        given = {"task": task, "missing": missing}
        known: list[Criterion] = [usual_criterion(2 * k, **given) for k in range(1, NEIGHBORS + 1)]
        for criterion in (kind() for kind in NAMES.values()):
            names = criterion.get_params()
            known.append(criterion.set_params(**{name: value for name, value in given.items() if name in names}))
        found = next((criterion for criterion in known if criterion.describe() == text), None)
        if found is not None:
            return found
    return None


def checked_names(names: Sequence[Any] | None, n_features: int) -> list[str]:
    """One name for each feature: x0, x1, ... where none are given."""
    if names is None:
        return [f"x{column}" for column in range(n_features)]
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names):,} names for {n_features:,} features: give one for each")
    return [str(name) for name in names]


def _as_json(value: Any) -> Any:
    """The value if JSON has it, else its description."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Criterion):
        return value.describe()
    return repr(value) if isinstance(value, BaseEstimator) else repr(value).split(" at 0x")[0]
