"""A run of probes: its statistics while it grows; coefficients, ranking, standard errors and convergence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning

from ..kernels import sums
from ..stopping import ORDER, VALUE, Look, State, Watch
from ..validation.errors import ParameterError, warn
from ..validation.parameters import check_parameter
from .certainty import Certainty, moderated_errors
from .ledger import Ledger, LedgerError
from .probes import ProbePlan, Subsets
from .regression import SAME, Regression
from .schedule import FORWARD, Schedule, TournamentPlan
from .settings import Settings
from .tally import COEFFICIENTS, Tally, TallySheet, positions, replay, size_adjusted_tally, size_scaled_tally
from .units import FeaturePlan, Units

Floats = NDArray[np.float64]
FEWEST_COMPARED = 20  # probes, and features, for which similar scores are unusual
FEW_ROWS, MANY_ROWS = 200, 2000  # bounds on the rows by which the spread of J is judged
FLAT = 0.1  # range of J, of which more than half of the probes have the same
LEADING = 10  # features that people read first


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run of probes."""

    plan: ProbePlan  # in units, with the rounds of a tournament; ``feature_plan`` has it in features
    ledger: Ledger  # ``ledger.values()`` are J of probe 0, 1, ...
    tally: Tally  # sums of J per unit; ``feature_tally`` has them per feature
    settings: Settings
    stop_reason: str | None = None  # None for an unfinished run
    interrupted: bool = False  # by something other than the stopping rule
    ranked_by: str = "daf0"  # the coefficient by which features are ranked; the default in all methods
    _coefficients: dict[str, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, ledger: Ledger) -> Run:
        """The run in a ledger."""
        settings = Settings.read(ledger)
        plan = settings.first_plan()
        if settings.schedule is not None:
            for n_probes in range(settings.check_every, ledger.n_probes + 1, settings.check_every):
                plan = settings.schedule(plan, ledger, n_probes)
        tally = Tally.over(replay(plan, ledger), plan.n_features, float(ledger.values(0, 1)[0]))
        ranked_by = "daf0" if settings.schedule is None else "regression"
        return cls(plan, ledger, tally, settings, ledger.stop_reason, ranked_by=ranked_by)

    @property
    def units(self) -> Units:
        return self.settings.units

    @property
    def in_rounds(self) -> bool:
        """Whether this is a tournament."""
        return isinstance(self.plan, TournamentPlan)

    @cached_property
    def feature_plan(self) -> ProbePlan | FeaturePlan:
        """The probes in features: ``feature_plan.probe(i)`` are the features of probe i."""
        return self.units.plan(self.plan)

    @cached_property
    def feature_tally(self) -> Tally:
        """Sums per feature: ``feature_tally.counts`` says in how many probes each feature was."""
        if self.units.are_features:
            return self.tally
        table = self.units.per_feature(self.tally.table, 0.0)
        table[self.units.kept] = self.tally.n_probes, self.tally.total, self.tally.total_square
        return replace(self.tally, table=table)

    def names(self, features: NDArray[np.int64]) -> list[str]:
        """Names of these features; x0, x1, ... where the table has no names."""
        names = self.settings.feature_names
        return [f"x{feature}" if names is None else names[feature] for feature in features.tolist()]

    # ---- coefficients and ranking

    def unit_coefficient(self, name: str | None = None) -> tuple[Floats, Floats]:
        """The coefficient of every unit, and its standard error over other probes."""
        name = self.ranked_by if name is None else name
        if name in self._coefficients:
            return self._coefficients[name]
        if self.in_rounds and name != "regression":
            raise ParameterError(f"coefficient={name!r} is not defined for a tournament: use 'regression'")
        check_parameter("coefficient", name, *COEFFICIENTS)
        if name == "regression":
            schedule = self.settings.schedule
            fitted = Regression.of(self.plan, self.ledger) if schedule is None else schedule.fit(self.plan, self.ledger)
            known = fitted.coefficients, fitted.std_errors
        elif name == "daf1":
            known = self.tally.daf1(), self.tally.std_errors("daf1")
        else:
            tally = self.tally
            if name == "daf0_centered":
                tally = size_adjusted_tally(self.plan, self.ledger)
            elif name != "daf0":
                tally = size_scaled_tally(self.plan, self.ledger, centered=name == "daf2_centered")
            known = tally.daf0(), tally.std_errors()
        self._coefficients[name] = known
        return known

    def coefficient(self, name: str | None = None) -> tuple[Floats, Floats]:
        """The coefficient of every feature, and its standard error over other probes."""
        scores, errors = self.unit_coefficient(name)
        return self.units.per_feature(scores), self.units.per_feature(errors)

    def scores(self) -> Floats:
        """The coefficient of every feature; in a tournament NaN for features dropped before the last round."""
        scores = self.units.per_feature(self.unit_coefficient()[0])
        return np.where(self.dropped_in_round() == 0, scores, np.nan)

    def ranking(self) -> NDArray[np.int64]:
        """Ranks, 1 is best: features of ``keep`` first, then units by their coefficient; a group shares a rank.

        In a tournament units are ranked by the last round that they were in, then by their coefficient. Units whose
        columns are all constant or empty come last.
        """
        units, places = self.units, positions(self.unit_coefficient()[0])
        first = self.ledger.settings.get(FORWARD, [])
        if not isinstance(first, list) or not np.isin(first, self.plan.rounds[-1].active).all():
            raise LedgerError("the ledger is damaged: the order of its last features is impossible; restore a copy")
        places[np.array(first, np.int64)] = np.arange(-len(first), 0)
        positions_of_units = np.argsort(np.lexsort((places, -self.plan.last_rounds())))
        if self.settings.uninformative is not None and len(self.settings.uninformative):
            is_informative = ~np.isin(units.members.indices, self.settings.uninformative)
            is_last = ~np.logical_or.reduceat(is_informative, units.members.offsets[:-1])
            positions_of_units = np.argsort(np.lexsort((positions_of_units, is_last)))
        if units.are_features:
            return positions_of_units + 1
        n_kept, ranking = len(units.kept), units.per_feature(positions_of_units, -1) + 1
        ranking[ranking > 0] += n_kept
        ranking[units.kept] = np.arange(n_kept) + 1
        return ranking

    def dropped_in_round(self) -> NDArray[np.int64]:
        """The round, from 1, after which each feature was dropped; 0 for features of the last round."""
        last = self.plan.last_rounds()
        return self.units.per_feature(np.where(last == len(self.plan.rounds) - 1, 0, last + 1), 0)

    def best(self, top: int | None = None) -> NDArray[np.int64]:
        """The best features that have a score, best first; the first feature stands for its group."""
        first_of_rank = np.unique(self.ranking(), return_index=True)[1]
        return first_of_rank[np.isfinite(self.scores()[first_of_rank])][:top]

    # ---- certainty

    def certainty(self, coefficient: str | None = None) -> Certainty:
        """Confidence intervals of scores and ranks, and the probability that each feature is in the true top k.

        They describe other random probes of the same rows, not new samples: the truth is what infinitely many probes of
        these rows would give. Features that were not probed, or dropped before the last round, are NaN; features of a
        group count one by one. None is the coefficient of the ranking. "regression" is shrunken: its intervals describe
        how stable the number is, not how large the effect is.
        """
        name = self.ranked_by if coefficient is None else coefficient
        scores, errors = self.unit_coefficient(name)
        if self.in_rounds:
            scores = np.where(self.plan.last_rounds() == len(self.plan.rounds) - 1, scores, np.nan)
        elif name in ("daf0", "daf1"):
            errors = moderated_errors(self.tally, name)
        names = self.settings.feature_names
        return Certainty(self.units.per_feature(scores), self.units.per_feature(errors), names)

    def std_errors(self, coefficient: str | None = None) -> Floats:
        """Standard errors of the scores over other random probes of the same rows; NaN after a single probe."""
        errors = self.unit_coefficient(coefficient)[1]
        return np.where(self.feature_tally.counts == 1, np.nan, self.units.per_feature(errors))

    # ---- convergence

    def looks(self, *, check_every: int | None = None, tops: Sequence[int] = ()) -> list[Look]:
        """C, C2 and the agreement of two halves on the top features, at every look or every ``check_every`` probes."""
        first_plan = replace(self.plan, later=()) if isinstance(self.plan, TournamentPlan) else self.plan
        sizes = {"block_size": self.settings.block_size, "check_every": check_every or self.settings.check_every}
        watch: Watch = frozenset({ORDER, VALUE, *tops})
        stats = RunningStats(first_plan, self.ledger, **sizes, watch=watch, schedule=self.settings.schedule)
        looks = list[Look]()
        while stats.n_known < self.ledger.n_probes:
            stats.update()
            if stats.n_known % stats.check_every == 0:
                looks.append(stats.looks[-1])
        return looks

    @cached_property
    def history(self) -> dict[str, NDArray[Any]]:
        """The measures of convergence at every look, as columns; in a tournament also when features were dropped."""
        names = ("n_probes", "seconds", "order_change", "value_change", "relative_change", "left_out")
        looks = self.looks()
        columns = {name: np.array([getattr(look, name) for look in looks]) for name in names}
        columns["probes"] = columns.pop("n_probes")
        if self.in_rounds:
            columns["dropped_in_round"] = self.dropped_in_round()
        return columns


class RunningStats:
    """The tally of a growing ledger, and the measures of convergence at each look.

    In a tournament a look measures the probes of the current round; ``whole`` is the tally of all rounds.
    """

    def __init__(
        self,
        plan: ProbePlan,
        ledger: Ledger,
        *,
        block_size: int,
        check_every: int,
        watch: Watch,
        schedule: Schedule | None = None,
    ) -> None:
        self.plan, self.ledger, self.schedule = plan, ledger, schedule
        self.first_plan = plan
        self.block_size, self.check_every, self.watch = block_size, check_every, watch
        self.tops = sorted(item for item in watch if isinstance(item, int)) if watch else []
        self.sheet = self.whole = TallySheet(plan.n_features)
        self.odd = TallySheet(plan.n_features if self.tops else 0)
        self.n_known = 0
        self.looks: tuple[Look, ...] = ()
        self.coefficients = np.full(plan.n_features if watch & {ORDER, VALUE} else 0, np.nan)
        self.positions_before = np.zeros(plan.n_features if ORDER in watch else 0, np.int64)
        self.first_change = np.nan

    def replay(self) -> State:
        """Update with all probes of the ledger, block by block, as in the run itself."""
        while self.n_known < self.ledger.n_probes:
            self.update()
        return self.state()

    def update(self, subsets: Subsets | None = None) -> State:
        """Add the probes of the next block (drawn again unless passed), and look where a look is due."""
        start = self.n_known
        stop = min((start // self.block_size + 1) * self.block_size, self.ledger.n_probes)
        values = self.ledger.values(start, stop)
        if start == 0:
            self.sheet.shift = self.odd.shift = float(values[0])
        subsets = self.plan.draw(start, stop) if subsets is None else subsets
        self.sheet.add(subsets, values)
        if self.whole is not self.sheet:
            self.whole.add(subsets, values)
        if self.tops and (start // self.block_size) % 2:
            self.odd.add(subsets, values)
        self.n_known = stop
        is_look = stop % self.check_every == 0
        if is_look and self.watch:
            self.looks = (*self.looks[-1:], self.look())
        # The budget of a tournament can end inside a block.
        if self.schedule is not None and (is_look or stop == self.schedule.n_probes):
            self._start_round(self.schedule(self.plan, self.ledger, stop))
        return self.state()

    def _start_round(self, plan: ProbePlan) -> None:
        """Start a round where the plan has changed: the statistics of looks start from zero."""
        if plan is self.plan:
            return
        self.plan = plan
        if self.whole is self.sheet:
            self.whole = TallySheet(plan.n_features, self.sheet.shift)
            self.whole.table[:], self.whole.totals[:] = self.sheet.table, self.sheet.totals
        for sheet in (self.sheet, self.odd):
            sheet.table[:] = sheet.totals[:] = 0
        self.coefficients[:] = np.nan

    def state(self) -> State:
        scores = None if self.schedule is None else partial(self.schedule.scores, self.plan, self.ledger)
        return State(self.n_known, self.ledger.seconds_at(self.n_known), self.whole.view(), self.looks, scores)

    def look(self) -> Look:
        """Measure the watched quantities against the previous look."""
        order = value = np.nan
        left_out = 0
        n_probes, total, _ = self.sheet.totals.tolist()
        coefficients_before = self.coefficients.copy() if ORDER in self.watch else self.coefficients
        if len(self.coefficients):
            value, left_out = sums.renew_differences(self.sheet.table, n_probes, total, self.coefficients)
            if np.isnan(self.first_change):
                self.first_change = value
        if ORDER in self.watch:
            positions_now = positions(self.coefficients)
            known = ~np.isnan(coefficients_before - self.coefficients)
            order = np.abs(positions_now - self.positions_before)[known].mean() if known.any() else np.nan
            self.positions_before = positions_now
        return Look(
            n_probes=self.n_known,
            seconds=self.ledger.seconds_at(self.n_known),
            order_change=float(order),
            value_change=float(value),
            relative_change=float(value / self.first_change) if self.first_change else 0.0,
            left_out=int(left_out),
            overlap={top: self._shared_top(top) for top in self.tops},
        )

    def _shared_top(self, top: int) -> float:
        """Share of the top features that odd and even blocks have in common; unscored features do not count."""
        if top >= self.plan.n_features:
            return 1.0
        (n_probes, total, _), (n_odd, total_odd, _) = self.sheet.totals.tolist(), self.odd.totals.tolist()
        odd = sums.top_features(self.odd.table, n_odd, total_odd, top)
        even = sums.top_features(self.sheet.table - self.odd.table, n_probes - n_odd, total - total_odd, top)
        return len(np.intersect1d(odd, even)) / top


# ---- warnings


def warn_about(run: Run, name: str) -> None:
    """Warn about an interrupted run, failed probes, and features that were in a single probe."""
    failures, n_probes = run.ledger.failures, run.tally.n_probes
    _warn_if_flat(run)
    if run.interrupted:
        warn(f"{name} was {run.stop_reason}: this is the ranking so far", ConvergenceWarning)
    best = np.argsort(run.ranking(), kind="stable")[:LEADING]
    n_single = int((run.feature_tally.counts[best] == 1).sum())
    if n_single and n_probes > LEADING:  # fewer probes are not meant for a ranking
        warn(
            f"{n_single} of the first {len(best)} features were in a single probe, too few to judge them: use more "
            "probes, or larger ones",
            ConvergenceWarning,
        )
    if failures is None:
        return
    n_failed = len(failures.probes)
    message = f"the criterion failed on {n_failed:,} of {n_probes:,} probes, first on {failures.first}"
    if n_failed == n_probes:
        raise ParameterError(f"{message}: with J = error_score={failures.error_score} for all probes nothing is ranked")
    warn(f"{message}; their J is error_score={failures.error_score}", FitFailedWarning)


def _warn_if_flat(run: Run) -> None:
    """Warn where J is the same, or nearly the same, for all probes, so that nothing can be ranked by it."""
    J = run.ledger.values()
    n_units = run.units.n_units
    if len(J) < FEWEST_COMPARED or n_units == 1 or run.ledger.failures is not None:
        return
    low, high = float(J.min()), float(J.max())
    if n_units < FEWEST_COMPARED and high == 1:  # a few features may all be perfect
        return
    if high - low <= SAME * max(abs(low), abs(high)):
        warn(f"J is {low:.6g} for all probes: the scores are tied, and the ranking is the order of the columns")
        return
    if n_units < FEWEST_COMPARED:
        return
    n_rows = min(run.settings.shape[0], MANY_ROWS)
    same = np.unique(J, return_counts=True)[1].max() / len(J)
    is_share = -1 <= low <= high <= 1  # not an error in the units of y
    is_coarse = same > 0.5 and high - low < FLAT
    if is_share and (is_coarse or (n_rows >= FEW_ROWS and J.std() < 0.5 / n_rows)):
        warn(
            f"J hardly varies between probes (from {low:.5g} to {high:.5g}), so the ranking is mostly noise: models "
            "predict nearly the same, often the largest class, from all features; for rare classes use Tournament with "
            "its default scoring, or scoring='roc_auc'"
        )
