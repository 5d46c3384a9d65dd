"""What selectors share that rank by a run of probes: units of features, settings, ledger, and what the run says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.utils.validation import check_is_fitted

from . import __version__
from ._run_results import ShowsRun
from .criteria.base import Target
from .criteria.device import DEVICE_BLOCK_SIZE, IN_FLIGHT, MOST_AT_ONCE, ROWS_AT_ONCE, OnDevice
from .criteria.identity import stable_text
from .engine.ledger import Ledger, peek
from .engine.loop import ProbeError, run_probes
from .engine.permutation_test import univariate_p_values
from .engine.probes import FEWEST_EXPECTED, Subsets
from .engine.progress import Verbose, live_progress, say
from .engine.row_effects import RowGroups
from .engine.run import Run
from .engine.schedule import Schedule
from .engine.settings import COMMAND, Settings
from .engine.tally import Tally
from .engine.units import NO_COLUMNS, Units, UnitTable, one_hot, unit_table, units_of
from .executors import Map, start_in_background, threads, threads_beside_device
from .kernels.device import find
from .stopping import Rule
from .validation.errors import Parameter, ParameterError, warn
from .validation.labels import checked_weights
from .validation.parameters import grouped, is_finite, named_columns, seed_of
from .validation.scaling import require_scale, scale_for, scaled, uneven_widths
from .validation.stores import Stored
from .validation.tables import are_categories, kinds_of_columns, number_categories

Rows = NDArray[np.int64]
LEADING = 10  # features that people read first

MUCH_DOUBT = 0.02  # of the tests: about a tenth of the time, and more
DOUBT = (
    "values that repeat, or lie far from all others, left the nearest rows of {:.0%} of the tests open: exact "
    "distances decided, which takes longer; scale='rank', or --scale rank, brings far ones nearer, if they mean nothing"
)


class Rounds(NamedTuple):
    """Probes between two looks and in a block, and the schedule, which says which features go on."""

    check_every: int
    block_size: int
    schedule: Schedule | None = None


@dataclass(eq=False, repr=False)
class ProbingSelector(ShowsRun):
    """A selector whose ``fit`` calls ``_probe``; the subclass says by which coefficient it ranks and when it stops."""

    _: KW_ONLY
    feature_groups: Any = None
    keep: Any = None
    drop: Any = None
    categorical_features: Any = "from_dtype"
    scale: str | None = None
    error_score: Any = "raise"
    ledger: Any = None
    random_state: Any = None
    row_effects: bool = True
    verbose: Verbose = 0

    # ---- probing

    def _probe(self, X: Any, y: Any, *, default_size: int, groups: Any = None, sample_weight: Any = None) -> None:
        """Check, bind, probe until the rule says enough, and rank."""
        X, y = self._checked(X, y)
        self.criterion_, self.scale_ = self._criterion_for(X), scale_for(self.scale, X)
        seed = seed_of(self.random_state, self._kept("seed"))
        seen = scaled(X, self.scale_, self._is_category, sample_weight)
        table = self._unit_table(seen)
        self._n_selected_of(table.units)

        self.sampled_rows_ = self._sampled(X, y, seed)
        X_used, y_used, matrix, groups_used, weights_used = self._used(seen, y, table.matrix, groups, sample_weight)
        score = self._bound(self.criterion_, matrix, y_used, groups_used, weights_used)
        largest = default_size if self.max_probe_size is None else int(self.max_probe_size)
        row_groups, on_device = self._row_groups(score, y_used, groups_used), isinstance(score, OnDevice)
        self.row_groups_ = self._of_all_rows(row_groups, X.shape[0])
        if on_device and self.n_jobs in (None, 1):
            score.warm_up(min(largest, matrix.shape[1]), None if row_groups is None else row_groups.group_of)

        start = start_in_background if on_device else partial
        univariate_p_values = start(self._univariate_p_values, table, y, seed, groups, sample_weight)
        rounds = self._rounds(X_used, y_used, table.units, on_device)
        how = self._folds_and_score(self.criterion_, y_used, groups_used)
        settings = self._new_settings(X, how, table.units, seed, largest, rounds, on_device)
        settings = replace(settings, univariate_p_values=univariate_p_values())
        if row_groups is not None:
            settings = replace(settings, row_shares=row_groups.shares, row_unit=row_groups.unit)
        if self.ledger is not None:
            folds = [*score.folds.identity, *([] if self.sampled_rows_ is None else [(self.sampled_rows_,)])]
            settings = settings.with_data(X, y, folds, checked_weights(sample_weight, X.shape[0]), row_groups)

        with self._explained_failure(settings, groups, sample_weight):
            map = self._map(self.criterion_, matrix, score)
            self.run_ = self._run(settings, table, score, row_groups, map)
        self.scores_ = self.run_.coefficient(self.coefficient)[0]
        self.ranking_ = self.run_.ranking(self.coefficient)
        self._warn()

    def _run(self, settings: Settings, table: UnitTable, score: Any, row_groups: RowGroups | None, map: Map) -> Run:
        """The probes scored, from where the ledger ends, until the rule says enough."""
        stop, names = self._stop_rule(settings.shape[0]), _unit_names(settings)
        display: Any = nullcontext()
        if self.verbose:
            display = live_progress(self.verbose, names, title=settings.method, stop=stop, effort=settings.effort)
        with settings.open_ledger(self.ledger) as ledger, display as progress:
            run = run_probes(
                settings.first_plan(),
                table.score_of_units(score),
                stop=stop,
                map=map,
                ledger=ledger,
                block_size=settings.block_size,
                check_every=settings.check_every,
                error_score=None if self.error_score == "raise" else float(self.error_score),
                progress=progress,
                schedule=settings.schedule,
                settings=settings,
                row_groups=row_groups,
                blocks_at_once=_blocks_at_once(settings, stop) if isinstance(score, OnDevice) else 1,
            )
        if self.verbose and getattr(score, "exact_share", 0.0) > MUCH_DOUBT:
            say(self.verbose, DOUBT.format(score.exact_share))
        return run

    def _kept(self, setting: str) -> Any:
        """A setting of the run in the ledger; None where there is none."""
        return None if self.ledger is None else peek(self.ledger, setting)

    def _sampled(self, X: Any, y: Any, seed: int) -> Rows | None:
        """The rows that probes are scored on; None where these are all."""
        return None

    def _used(self, *parts: Any) -> list[Any]:
        """Arrays over rows, or None, at the rows that are used."""
        if self.sampled_rows_ is None:
            return list(parts)
        return [
            None if part is None else (part if sp.issparse(part) else np.asarray(part))[self.sampled_rows_]
            for part in parts
        ]

    def _check_probing_parameters(self) -> None:
        """Refuse what cannot be meant before any work is done."""
        find(self.device)
        require_scale(self.scale)
        for name in ("max_probe_size", "check_every", "block_size"):
            value = getattr(self, name)
            if value is None and name != "check_every":
                continue
            if not is_finite(value) or value != int(value) or value < 1:
                raise ParameterError(Parameter(name, value), " must be a whole number of at least 1")
        if self.error_score != "raise" and not is_finite(self.error_score):
            raise ParameterError(
                Parameter("error_score", self.error_score), " must be 'raise' or a finite number, which becomes J"
            )
        if self.inclusion is not None and not (is_finite(self.inclusion) and 0 < self.inclusion < 1):
            raise ParameterError(Parameter("inclusion", self.inclusion), " must be a probability above 0 and below 1")
        if self.ledger is not None and not isinstance(self.ledger, str | PathLike):
            raise ParameterError(Parameter("ledger", self.ledger), " must be the path of a file, or None")
        if self.block_size is not None and self.check_every % self.block_size:
            raise ValueError(
                f"block_size={self.block_size} must divide check_every={self.check_every}, "
                "so that looks fall on block borders"
            )

    def _new_settings(
        self, X: Any, how: tuple[Any, Any], units: Units, seed: int, largest: int, rounds: Rounds, on_device: bool
    ) -> Settings:
        """``how``: folds and scoring."""
        cv, scoring = how
        if self.inclusion is not None and self.inclusion * units.n_units < FEWEST_EXPECTED:
            raise ParameterError(
                f"inclusion={self.inclusion!r} leaves most probes of {units.n_units:,} features empty, and those "
                f"are drawn again: give at least {FEWEST_EXPECTED / units.n_units:.1g}"
            )
        names = getattr(self, "feature_names_in_", None)
        return Settings(
            seed=seed,
            shape=X.shape,
            criterion=self._criterion_text(on_device),
            units=units,
            max_probe_size=min(largest, units.n_units),
            inclusion=self.inclusion,
            schedule=rounds.schedule,
            categorical=np.flatnonzero(self._is_category),
            scoring=scoring if scoring is None or isinstance(scoring, str) else stable_text(scoring),
            check_every=rounds.check_every,
            block_size=rounds.block_size,
            feature_names=None if names is None else [str(name) for name in names],
            cv=str(cv) if isinstance(cv, int | np.integer | str) or hasattr(cv, "split") else "splits",
            version=__version__,
            command=COMMAND.get(),
            scale=self.scale_,
            uneven=uneven_widths(X, self.scale) if self.scale_ is None and self.criterion_.goes_by_width else None,
        )

    def _criterion_text(self, on_device: bool) -> str:
        """By which a ledger knows the criterion; without one nobody asks, and all that a function captures is read."""
        if self.ledger is None:
            return ""
        return ("on a device: " if on_device else "") + self.criterion_.describe()

    def _row_groups(self, score: Any, y: Any, groups: Any) -> RowGroups | None:
        """Groups of rows, if J is a mean over rows."""
        shares = getattr(score, "row_shares", None) if self.row_effects and y is not None else None
        if shares is None:
            return None
        units = {"neg_mean_squared_error": np.var, "neg_mean_absolute_error": np.std}
        scoring = self._folds_and_score(self.criterion_, y)[1]
        unit_of = units.get(scoring) if isinstance(scoring, str) else None
        return RowGroups.of(shares, y, groups, 1.0 if unit_of is None else float(unit_of(y)))

    def _of_all_rows(self, groups: RowGroups | None, n_rows: int) -> Rows | None:
        if groups is None or self.sampled_rows_ is None:
            return None if groups is None else groups.group_of
        every = np.full(n_rows, -1)
        every[self.sampled_rows_] = groups.group_of
        return every

    @property
    def _n_threads(self) -> int | None:
        """Of what is computed here beside probes: as many as workers, or, beside a device, which leaves cores free."""
        return threads_beside_device() if self.n_jobs is None and find(self.device) is not None else self.n_jobs

    def _univariate_p_values(
        self, table: UnitTable, y: Any, seed: int, groups: Any, sample_weight: Any
    ) -> NDArray[np.float64] | None:
        """Of each unit by its columns; of several the least, times their number. Rows of weight 0 have no say."""
        if not self.row_effects or y is None or isinstance(table.matrix, Stored):  # a store would be read once more
            return None
        try:
            of_classes = Target.of(y, getattr(self.criterion_, "task", "auto")).is_classification
        except (TypeError, ValueError):  # a function of the user's own may take any y
            return None
        weights = checked_weights(sample_weight, len(y))
        counted = None if weights is None or weights.all() else np.flatnonzero(weights)
        options: dict[str, Any] = {"of_classes": of_classes, "seed": seed, "together": groups, "counted": counted}
        columns = univariate_p_values(table.matrix, y, **options, map=threads(self._n_threads))
        least = np.minimum.reduceat(columns[table.columns.indices], table.columns.offsets[:-1])
        chances = np.minimum(least * table.columns.sizes, 1.0)
        return chances.astype(np.float32).astype(np.float64)  # as a ledger keeps them

    def _stop_rule(self, n_rows: int) -> Rule:
        """When enough is known: a matter of the subclass."""
        raise TypeError(f"{type(self).__name__} does not say when it stops")

    def _rounds(self, X: Any, y: Any, units: Units, on_device: bool) -> Rounds:
        """How often is looked, and what happens then: a matter of the subclass."""
        raise TypeError(f"{type(self).__name__} does not say how it looks")

    def _usual_block(self, on_device: bool) -> int:
        return DEVICE_BLOCK_SIZE if on_device else self.criterion_.block_size

    def _warn(self) -> None:
        run, failures = self.run_, self.run_.ledger.failures
        name = type(self).__name__
        if run.interrupted:
            warn(f"{name} was {run.stop_reason}: this is the ranking so far", ConvergenceWarning)
        self._warn_of_thin()
        if failures is None:
            return
        n_failed, n_probes = len(failures.probes), run.tally.n_probes
        failed = f"the criterion failed on {n_failed:,} of {n_probes:,} probes, the first time on {failures.first}"
        if n_failed == n_probes:
            raise ParameterError(
                f"{failed}; with no J but ",
                Parameter("error_score", failures.error_score),
                " there is nothing to rank by",
            )
        warn(f"{failed}; their J is error_score={failures.error_score}", FitFailedWarning)

    def _warn_of_thin(self) -> None:
        """A score by a single probe is luck, and has no standard error."""
        best = np.argsort(self.ranking_, kind="stable")[:LEADING]
        n_thin = int((self.run_.feature_tally.counts[best] == 1).sum())
        if n_thin and self.n_probes_ > LEADING:  # fewer are a trial, which nobody takes for a ranking
            message = (
                f"of the first {len(best)} features {n_thin} were in a single probe, which tells next to nothing: "
                "give more probes, or larger ones"
            )
            warn(message, ConvergenceWarning)

    @contextmanager
    def _explained_failure(self, settings: Settings, groups: Any, sample_weight: Any) -> Iterator[None]:
        """A failed probe in terms of what the user has at hand."""
        try:
            yield
        except ProbeError as error:
            self.run_ = Run(settings.first_plan(), Ledger(), Tally.empty(settings.units.n_units), settings)
            name = type(self).__name__.lower()
            data = "np.asarray(X)" if hasattr(self, "feature_names_in_") else "X"
            options = "" if groups is None else ", groups=groups"
            options += "" if self.scoring is None else f", scoring={name}.scoring"
            options += "" if sample_weight is None else ", sample_weight=sample_weight"
            draw = f"{name}.plan_.draw({error.failure.probe}, {error.failure.probe + 1})"
            error.again = f"{name}.criterion_.bind({data}, y, {name}.cv{options})({draw})"
            if self._is_category.any() or self.sampled_rows_ is not None:  # not the X at hand
                error.again = "the same fit and n_jobs=1"
            raise

    # ---- units

    def _unit_table(self, X: Any) -> UnitTable:
        """The units that groups, keep, drop and categories make of the features of X."""
        names, n_features = getattr(self, "feature_names_in_", None), X.shape[1]
        groups = [] if self.feature_groups is None else grouped(self.feature_groups, names, n_features)
        keep = NO_COLUMNS if self.keep is None else named_columns(self.keep, "keep", names, n_features)
        drop = NO_COLUMNS if self.drop is None else named_columns(self.drop, "drop", names, n_features)
        self._is_category[drop] = False
        units = units_of(n_features, groups=groups, keep=keep, drop=drop, names=names)
        return unit_table(X, units, categorical=self._is_category, names=names)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "ranking_")
        units = self.units_
        selected = self.ranking_ <= self._n_selected_of(units)
        selected[units.kept], selected[units.dropped] = True, False
        return selected

    def _n_selected_of(self, units: Units) -> int:
        n_selected = self._n_selected(units.n_ranks)
        if n_selected < len(units.kept):
            raise ValueError(
                f"n_features_to_select={self.n_features_to_select!r} is less than the {len(units.kept)} features of "
                "keep: give at least as many"
            )
        return n_selected

    # ---- categories

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        """Categories of a frame become numbers here, -1 where one is missing."""
        X, found = self._numbered(X)
        X, y = super()._checked(X, y, reset=reset)
        if reset:
            self._is_category = self._which_categorical(found, X.shape[1])
        return X, y

    def _numbered(self, X: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        """X with numbers for categories, and which columns of a frame they were in."""
        kinds = kinds_of_columns(X) if self.categorical_features is not None else None
        if kinds is None:
            return X, None
        asked, also = self.categorical_features, None
        if not isinstance(asked, str):
            names = np.array([str(name) for name in X.columns])
            also = named_columns(asked, "categorical_features", names, len(names))
        found = are_categories(kinds, also)
        return number_categories(X, -1, also)[0] if found.any() else X, found

    def _which_categorical(self, found: NDArray[np.bool_] | None, n_features: int) -> NDArray[np.bool_]:
        asked = self.categorical_features
        if asked is None:
            return np.zeros(n_features, dtype=bool)
        if isinstance(asked, str):
            if asked != "from_dtype":
                raise ParameterError(
                    Parameter("categorical_features", asked),
                    ": give 'from_dtype', a list of columns, or None for no categories",
                )
            return np.zeros(n_features, dtype=bool) if found is None else found
        columns = named_columns(asked, "categorical_features", getattr(self, "feature_names_in_", None), n_features)
        return np.isin(np.arange(n_features), columns) | (False if found is None else found)

    def criterion_input(self, X: Any) -> tuple[Any, Subsets | None]:
        """As of any selector; a category has a column for each of its values."""
        names, X = getattr(self, "feature_names_in_", None), scaled(X, self.scale_, self._is_category)
        return one_hot(X, self._is_category, names) if self._is_category.any() else (X, None)


def _unit_names(settings: Settings) -> list[str] | None:
    """Names of the units as the run numbers them: a group by its first feature."""
    names, units = settings.feature_names, settings.units
    if units.are_features:
        return names
    return [str(column) if names is None else names[column] for column in units.first_features().tolist()]


def _blocks_at_once(settings: Settings, stop: Rule) -> int:
    """So many that a device is busy, and of a long run each of the batches in flight has several."""
    n_probes = DEVICE_BLOCK_SIZE
    if settings.schedule is None and stop.max_probes is not None:
        most = min(MOST_AT_ONCE, ROWS_AT_ONCE // settings.shape[0])
        n_probes = max(n_probes, min(most, stop.max_probes // (2 * IN_FLIGHT)))
    return max(1, n_probes // settings.block_size)
