"""Steps that `DAF` and `Tournament` share: prepare the data, bind the criterion, run the probes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from itertools import compress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from . import __version__
from ._selector import Accepts, n_selected_units
from .criteria import Average, Criterion, as_criterion
from .criteria.base import Target, note_on_task, require_trainable, stable_text
from .criteria.device import DEVICE_BLOCK_SIZE, IN_FLIGHT, MOST_AT_ONCE, ROWS_AT_ONCE, OnDevice, to_device
from .engine.loop import ProbeError, run_probes
from .engine.probes import MIN_EXPECTED_SIZE
from .engine.run import Run, warn_about
from .engine.schedule import Schedule
from .engine.settings import COMMAND, Settings
from .engine.units import NO_COLUMNS, UnitTable, unit_table, units_of
from .evaluation.covariates import Covariates
from .executors import Map, executor, keep_in_flight, runs_in_this_process, serial
from .kernels.device import count, free_cache
from .progress import live_progress, say
from .stopping import Rule
from .validation.contents import (
    REPLICATES,
    STRATEGIES,
    filled,
    note_on_replicates,
    note_on_time_order,
    scale_for,
    uneven_widths,
    uninformative_columns,
)
from .validation.errors import ParameterError, warn
from .validation.parameters import (
    PATH,
    Constraint,
    checked_groups,
    checked_weights,
    grouped,
    named_columns,
    require_two_weighted,
    survival_in,
)
from .validation.stores import CANNOT_TRAVEL, Stored, is_stored
from .validation.tables import REMEDY, scaled, some_columns

MAX_NAMED = 10  # features in an error message
N_COMPARED_IN_ORDER = 20  # features whose values are followed from row to row
MANY_EXACT_TESTS = 0.02  # share of k-NN tests decided by exact distances that costs about a tenth of the time
TIES = (
    "Many ties or outliers: {:.0%} of the k-NN tests needed exact distances, which takes longer. "
    "scale='rank' reduces outliers."
)
SEQUENCE = Constraint("a list of columns", lambda value: np.iterable(value) and not isinstance(value, str))
SHARED_PARAMETERS = {
    "categorical_features": ("from_dtype", None, SEQUENCE),
    "scale": ("standard", "largest", "nonzero", "rank", "auto", None),
    "missing": ("auto", None, *STRATEGIES),
    "ledger": (None, PATH),
}


@dataclass(frozen=True, eq=False)
class Data:
    """Validated input of a fit: the matrix that the criterion sees, its units, and the values per row."""

    X: Any  # as validated, before scaling; of all rows
    table: UnitTable  # scaled columns, categories as columns of 0 and 1, and the columns of each unit
    y: NDArray[Any] | None
    is_classification: bool | None  # None where y is neither classes nor numbers
    groups: NDArray[Any] | None
    sample_weight: NDArray[np.float64] | None
    names: NDArray[Any] | None
    categorical: NDArray[np.bool_]  # one value per feature
    scale: str | None
    missing: str | None  # statistic that replaced missing values, where there were any
    uninformative: NDArray[np.int64]  # columns that are constant or empty
    arguments: list[str]  # names of the optional arguments that ``fit`` had
    notes: list[str]  # sentences on the data, given as warnings too
    outcome: Any  # y as given: labels, numbers, or events and times
    adjust: NDArray[np.float64] | None  # encoded covariates, which are regressed out of ``table`` and ``y``
    rows: NDArray[np.int64] | None = None  # the rows taken from a larger table; None: all rows

    @property
    def matrix(self) -> Any:
        return self.table.matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.matrix.shape[0], self.table.units.n_features

    def take(self, rows: NDArray[np.int64] | None) -> Data:
        """The data of these rows; None: all rows."""
        if rows is None:
            return self
        matrix = self.matrix if sp.issparse(self.matrix) else np.asarray(self.matrix)
        values = {"y": self.y, "groups": self.groups, "sample_weight": self.sample_weight}
        of_rows: dict[str, Any] = {name: None if value is None else value[rows] for name, value in values.items()}
        return replace(self, rows=rows, table=replace(self.table, matrix=matrix[rows]), **of_rows)


def accepted_by(criterion: Criterion, device: str, missing: str | None = None) -> Accepts:
    """The input that a selector with this criterion can use; ``missing``: how the selector fills missing values."""
    remedy = REMEDY
    if missing is None and "missing" in criterion.get_params(deep=False) and not criterion.allow_nan:
        fill = f"criterion={type(criterion).__name__}(missing='median')"
        remedy = f"fill missing values inside the folds with {fill}, or {REMEDY}"
    return Accepts(
        nan=criterion.allow_nan or missing is not None,
        no_target=not criterion.needs_target,
        stores=criterion.streams and device == "cpu",
        several=criterion.several_targets and device == "cpu",
        widths=criterion.widths,
        remedy=remedy,
    )


def criterion_or_default(criterion: Any) -> Criterion:
    """The criterion, or k-NN in place of an invalid one: scikit-learn reads tags before ``fit`` checks parameters."""
    try:
        return as_criterion(criterion)
    except ValueError:
        return as_criterion("auto")


def prepare(
    selector: Any,
    criterion: Criterion,
    X: Any,
    y: Any,
    *,
    groups: Any,
    sample_weight: Any,
    adjust: Any = None,
    saved: Settings | None = None,
    stores: bool = True,
) -> Data:
    """Validate the input of ``fit`` and bring it into the form that the criterion sees.

    ``saved`` are the settings of a run to resume. With ``stores=False`` a table in a store is loaded.
    """
    # BIF and SFFS have some of these parameters, or none.
    options = {"categorical_features": None, "feature_groups": None, "keep": None, "scale": None, "missing": None}
    options |= selector.get_params(deep=False)
    # A criterion that fills or uses missing values itself gets them; a table in a store is not copied.
    takes_missing = is_stored(X) or (criterion.allow_nan and options["missing"] == "auto")
    missing = None if takes_missing else options["missing"]
    accepts = accepted_by(criterion, selector.device, missing)
    X, is_category = selector._numbered(X)
    raw_y = y
    X, y = selector._checked(X, y, replace(accepts, stores=accepts.stores and stores))
    survival = survival_in(raw_y)
    n_rows, n_features = X.shape
    groups = checked_groups(groups, n_rows)
    weights = checked_weights(sample_weight, n_rows)
    names = getattr(selector, "feature_names_in_", None)
    categorical = categorical_columns(options["categorical_features"], is_category, names, n_features)
    groups_of_features, keep = options["feature_groups"], options["keep"]
    units = units_of(
        n_features,
        groups=[] if groups_of_features is None else grouped(groups_of_features, names, n_features),
        keep=NO_COLUMNS if keep is None else named_columns(keep, "keep", names, n_features),
        names=names,
    )
    n_selected_units(selector, units)
    complete = filled(X, missing, categorical=categorical, weights=weights, names=names)
    missing = None if complete is X else "median" if missing == "auto" else missing
    fills = "missing" in selector.get_params(deep=False)  # DAF and Tournament
    uninformative = uninformative_columns(X, allow_nan=accepts.nan) if fills else np.empty(0, np.int64)
    if len(uninformative):
        say(selector.verbose, f"Constant or empty columns rank last: {some_columns(uninformative, n_features, names)}.")
    outcome = y if survival is None else survival.array
    # A resumed run keeps the scale that "auto" chose when it began.
    scale = saved.scale if saved and options["scale"] == "auto" else scale_for(options["scale"], complete)
    table = unit_table(scaled(complete, scale, categorical, weights), units, categorical=categorical, names=names)
    is_given = groups is not None, weights is not None, adjust is not None
    is_classification = None if y is None else _is_classification(y, criterion)
    possible_notes = []
    if getattr(criterion, "task", "auto") == "auto" and is_classification is not None:
        possible_notes.append(note_on_task(y, is_classification=is_classification))
    if groups is None and y is not None and fills and not isinstance(X, Stored):  # a store is read once
        possible_notes.append(note_on_replicates(X))
    notes = list(filter(None, possible_notes))
    if adjust is not None:
        covariates = Covariates.of(adjust, n_rows, weights)
        target = Target.of(outcome, getattr(criterion, "task", "auto"))
        table = replace(table, matrix=covariates.residual_columns(table.matrix))
        y, is_classification, adjust = covariates.residual_target(target), False, covariates.values
    for note in notes:
        warn(note)
    return Data(
        X=X,
        table=table,
        y=y,
        is_classification=is_classification,
        groups=groups,
        sample_weight=weights,
        names=names,
        categorical=categorical,
        scale=scale,
        missing=missing,
        uninformative=uninformative,
        arguments=list(compress(("groups", "sample_weight", "adjust"), is_given)),
        notes=notes,
        outcome=outcome,
        adjust=adjust,
    )


def _is_classification(y: NDArray[Any], criterion: Criterion) -> bool | None:
    try:
        return Target.of(y, getattr(criterion, "task", "auto")).is_classification
    except (TypeError, ValueError):
        # A function of the user may take any y; a built-in criterion raises the same error when it is bound.
        return None


def for_numbers(criterion: Criterion) -> Criterion:
    """The criterion for a target of numbers."""
    if isinstance(criterion, Average):
        return Average(tuple(map(for_numbers, criterion.parts)))
    has_task = "task" in criterion.get_params(deep=False)
    return clone(criterion).set_params(task="regression") if has_task else criterion


def categorical_columns(
    categorical_features: Any, is_category: NDArray[np.bool_] | None, names: NDArray[Any] | None, n_features: int
) -> NDArray[np.bool_]:
    """Mask of the categorical features: those that the data frame has as such, and those named by the user."""
    mask = np.zeros(n_features, dtype=bool) if is_category is None else is_category.copy()
    if categorical_features is not None and not isinstance(categorical_features, str):
        mask[named_columns(categorical_features, "categorical_features", names, n_features)] = True
    return mask


def bind(criterion: Criterion, data: Any, *, cv: Any, scoring: Any, device: str, warm_up: int | None = None) -> Any:
    """The criterion bound to the data, on its device.

    With ``warm_up``, the largest probe size, a GPU loads X and compiles its kernels while the CPU prepares the run.
    """
    options = {"groups": data.groups, "scoring": scoring}
    if data.adjust is not None:
        criterion = for_numbers(criterion)
    if data.sample_weight is not None:
        if "sample_weight" not in signature(criterion.bind).parameters:
            raise ParameterError(
                f"sample_weight: {type(criterion).__name__}.bind takes no weights; leave them out, or use "
                "criterion='linear' or 'knn'"
            )
        options["sample_weight"] = data.sample_weight
        require_two_weighted(data.y, data.sample_weight)
    bound = criterion.bind(data.matrix, data.y, cv, **options)
    if data.is_classification is not None and len(bound.folds.splits) and not bound.folds.is_loo:
        cause = "cv" if data.groups is None else "groups"
        require_trainable(bound.folds.splits, data.y, data.is_classification, cause)
    bound = bound if device == "cpu" else to_device(bound, device)
    if warm_up is not None and isinstance(bound, OnDevice):
        bound.warm_up(min(warm_up, data.matrix.shape[1]))
    return bound


def map_for(criterion: Criterion, X: Any, score: Any, n_jobs: int | None) -> Map:
    """Workers for the criterion: threads where X cannot be sent to another process.

    A GPU is one worker that several threads feed; several workers are processes with a GPU each.
    """
    if isinstance(score, OnDevice):
        workers = executor(count(score.device) if n_jobs is not None and n_jobs < 0 else n_jobs, prefer="processes")
        return partial(keep_in_flight, score.in_flight) if workers is serial else workers
    if isinstance(X, Stored) and not X.can_travel:
        if not runs_in_this_process(n_jobs):
            raise ValueError(CANNOT_TRAVEL)
        return executor(n_jobs, prefer="threads")
    return executor(n_jobs, prefer=criterion.prefer)


def usual_block_size(criterion: Criterion, score: Any) -> int:
    """Probes in a block: enough to keep a GPU busy, else the criterion's choice."""
    return DEVICE_BLOCK_SIZE if isinstance(score, OnDevice) else criterion.block_size


def new_settings(
    selector: Any,
    data: Data,
    criterion: Criterion,
    score: Any,
    *,
    seed: int,
    max_probe_size: int,
    check_every: int,
    block_size: int,
    cv: Any,
    scoring: Any,
    inclusion: float | None = None,
    schedule: Schedule | None = None,
) -> Settings:
    """The settings of a run that begins."""
    n_units = data.table.units.n_units
    if inclusion is not None and inclusion * n_units < MIN_EXPECTED_SIZE:
        raise ParameterError(
            f"inclusion={inclusion!r} leaves most probes of {n_units:,} features empty: give at least "
            f"{MIN_EXPECTED_SIZE / n_units:.1g}"
        )
    # Only a ledger needs the criterion in words.
    words = "" if selector.ledger is None else "on a device: " * isinstance(score, OnDevice) + criterion.describe()
    checks_widths = data.scale is None and criterion.goes_by_width
    return Settings(
        seed=seed,
        shape=data.shape,
        criterion=words,
        units=data.table.units,
        max_probe_size=min(max_probe_size, n_units),
        inclusion=inclusion,
        schedule=schedule,
        categorical=np.flatnonzero(data.categorical),
        scoring=scoring if scoring is None or isinstance(scoring, str) else stable_text(scoring),
        check_every=check_every,
        block_size=block_size,
        feature_names=None if data.names is None else [str(name) for name in data.names],
        cv=str(cv) if isinstance(cv, int | np.integer | str) or hasattr(cv, "split") else "splits",
        version=__version__,
        command=COMMAND.get(),
        scale=data.scale,
        missing=data.missing,
        uninformative=data.uninformative,
        uneven=uneven_widths(data.X, selector.scale) if checks_widths else None,
    )


def run_with(
    selector: Any, data: Data, used: Data, criterion: Criterion, score: Any, settings: Settings, stop: Rule
) -> Run:
    """Score probes from where the ledger ends until ``stop`` holds; ``used`` has the rows that are scored."""
    settings = settings if used.rows is None else replace(settings, rows_used=len(used.rows))
    if selector.ledger is not None:
        folds = [*score.folds.identity, *([] if used.rows is None else [(used.rows,)])]
        settings = settings.with_data(data.X, data.outcome, folds, data.sample_weight, data.adjust)
    on_device, table = isinstance(score, OnDevice), used.table
    error_score = getattr(criterion, "error_score", "raise")
    watched: Any = nullcontext()
    if selector.verbose:
        title, effort = type(selector).__name__, settings.effort
        watched = live_progress(selector.verbose, settings.unit_names(), title=title, stop=stop, effort=effort)
    with settings.open_ledger(selector.ledger) as ledger, watched as progress:
        try:
            run = run_probes(
                settings.first_plan(),
                table.score_of_units(score),
                stop=stop,
                map=map_for(criterion, table.matrix, score, selector.n_jobs),
                ledger=ledger,
                block_size=settings.block_size,
                check_every=settings.check_every,
                schedule=settings.schedule,
                error_score=None if error_score == "raise" else float(error_score),
                progress=progress,
                settings=settings,
                blocks_at_once=_blocks_at_once(settings, stop) if on_device else 1,
            )
        except ProbeError as error:
            probe, names = settings.units.plan(settings.first_plan()).probe(error.failure.probe), settings.feature_names
            error.features = [str(f if names is None else repr(names[f])) for f in probe[:MAX_NAMED].tolist()]
            raise
    if on_device:
        free_cache()
    if selector.verbose and getattr(score, "exact_share", 0.0) > MANY_EXACT_TESTS:
        say(selector.verbose, TIES.format(score.exact_share))
    return replace(run, ranked_by=getattr(selector, "coefficient", "regression"))


def _blocks_at_once(settings: Settings, stop: Rule) -> int:
    """Enough blocks to keep a GPU busy; in a long run each of the batches in flight has several."""
    n_probes = DEVICE_BLOCK_SIZE
    if settings.schedule is None and stop.max_probes is not None:
        most = min(MOST_AT_ONCE, ROWS_AT_ONCE // settings.shape[0])
        n_probes = max(n_probes, min(most, stop.max_probes // (2 * IN_FLIGHT)))
    return max(1, n_probes // settings.block_size)


def set_results(selector: Any, run: Run, criterion: Criterion, data: Data) -> None:
    """Set the attributes of a fitted `DAF` or `Tournament`, and warn where the run or the data look wrong."""
    selector.run_, selector.criterion_, selector.fit_arguments_ = run, criterion, data.arguments
    selector._data, selector._tests = data, {}
    selector.scores_, selector.ranking_ = run.scores(), run.ranking()
    selector.notes_ = [*selector.notes_, *data.notes]
    # Replicates in adjacent rows look like a slow change.
    is_plain = data.groups is None and data.is_classification is not None and not isinstance(data.X, Stored)
    if is_plain and data.y is not None and data.y.ndim == 1 and REPLICATES not in " ".join(data.notes):
        top = np.argsort(selector.ranking_, kind="stable")[:N_COMPARED_IN_ORDER]
        note = note_on_time_order(data.X, data.y, is_classification=bool(data.is_classification), columns=top)
        if note is not None:
            selector.notes_.append(note)
            warn(note)
    warn_about(run, type(selector).__name__)
