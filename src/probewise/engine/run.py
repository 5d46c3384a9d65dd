"""A run: what is known of it as it goes along its ledger, and what follows once it has ended.

That is its coefficients, the ranking, how certain they are, and what luck gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import sums
from ..stopping import ORDER, VALUE, Look, State, TopKConfidence, Watch
from ..validation.errors import ParameterError
from .certainty import Certainty, discoveries, steady_errors
from .ledger import Ledger
from .probes import ProbePlan, Subsets
from .regression import Regression
from .replay import replay, size_adjusted_tally, size_scaled_tally
from .row_effects import ROW_ERROR_INFLATION, RowEffects, combined_p_values, group_effects
from .schedule import TournamentPlan, ranked
from .settings import DEFAULT_FDR, Settings
from .tally import COEFFICIENTS, Tally, TallySheet, positions
from .units import Units

Floats = NDArray[np.float64]
NextPlan = Callable[[ProbePlan, Ledger, int], ProbePlan]
CHANCE = 0.05
LIKE_MOST = 0.9  # the quantile of errors about rows that stands in for one that is not known
MOST_CANDIDATES = 5000  # of the best features, among which a top of other rows is sought
FEWEST_IN_A_CELL = 10  # probes with, or without, a feature or a pair, below which a difference of means is mostly luck


class RunningStats:
    """The tally as it grows along the ledger, and what is measured at each look.

    In a run of several rounds, looks are at the probes of the round; ``whole`` is the tally of all rounds.
    """

    def __init__(
        self,
        plan: ProbePlan,
        ledger: Ledger,
        *,
        block_size: int,
        check_every: int,
        watch: Watch,
        schedule: NextPlan | None = None,
    ) -> None:
        self.plan, self.ledger, self.schedule = plan, ledger, schedule
        self.first_plan = plan
        self.block_size, self.check_every, self.watch = block_size, check_every, watch
        self.tops = sorted(item for item in watch if isinstance(item, int))
        self.sheet = self.whole = TallySheet(plan.n_features)
        self.odd = TallySheet(plan.n_features if self.tops else 0)
        self.known = 0
        self.looks: tuple[Look, ...] = ()
        self.coefficients = np.full(plan.n_features if watch & {ORDER, VALUE} else 0, np.nan)
        self.places = np.zeros(plan.n_features if ORDER in watch else 0, np.int64)
        self.first_change = np.nan

    def replay(self) -> State:
        """Learn all the ledger holds, block by block, as when it was first found out."""
        while self.known < self.ledger.n_probes:
            self.update()
        return self.state()

    def every_look(self) -> Iterator[Look]:
        """The same, with what is measured on the way."""
        while self.known < self.ledger.n_probes:
            self.update()
            if self.known % self.check_every == 0:
                yield self.looks[-1]

    def update(self, subsets: Subsets | None = None) -> State:
        """Take in the ledger's next probes up to a block border, drawn if not given, and look if a look is due."""
        start = self.known
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
        self.known = stop
        if stop % self.check_every == 0:
            self.looks = (*self.looks[-1:], self.look())
            if self.schedule is not None:
                self._start_round(self.schedule(self.plan, self.ledger, stop))
        return self.state()

    def _start_round(self, plan: ProbePlan) -> None:
        """With another plan a round begins, and what is looked at begins again."""
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
        return State(self.known, self.ledger.seconds_at(self.known), self.whole.view(), self.looks)

    def look(self) -> Look:
        """Measure what is watched, against the look before."""
        order = value = np.nan
        left_out = 0
        n_probes, total, _ = self.sheet.totals.tolist()
        before = self.coefficients.copy() if ORDER in self.watch else self.coefficients
        if len(self.coefficients):
            value, left_out = sums.renew_differences(self.sheet.table, n_probes, total, self.coefficients)
            if np.isnan(self.first_change):
                self.first_change = value
        if ORDER in self.watch:
            places = positions(self.coefficients)
            order = sums.order_change(before, self.places, self.coefficients, places)
            self.places = places
        return Look(
            n_probes=self.known,
            seconds=self.ledger.seconds_at(self.known),
            order_change=float(order),
            value_change=float(value),
            relative_change=float(value / self.first_change) if self.first_change else 0.0,
            left_out=int(left_out),
            overlap={top: self._shared_top(top) for top in self.tops},
            sure=self._sure(),
        )

    def _shared_top(self, top: int) -> float:
        """Share of the top features that odd and even blocks have in common; a feature without a score is never in."""
        if top >= self.plan.n_features:
            return 1.0
        table, none = self.sheet.table, np.broadcast_to(0.0, self.sheet.table.shape)
        (n_probes, total, _), (n_odd, total_odd, _) = self.sheet.totals.tolist(), self.odd.totals.tolist()
        odd = sums.top_features(self.odd.table, none, n_odd, total_odd, top)
        even = sums.top_features(table, self.odd.table, n_probes - n_odd, total - total_odd, top)
        return len(np.intersect1d(odd, even)) / top

    def _sure(self) -> dict[TopKConfidence, float]:
        """How probable it is that the top found, of the round's features, is the true one; 0 while one is unknown."""
        asked = [item for item in self.watch if isinstance(item, TopKConfidence)]
        if not asked:
            return {}
        tally, active = self.sheet.view(), self.plan.rounds[-1].active
        tally = tally if len(active) == tally.n_features else replace(tally, table=tally.table[active])
        if not tally.covers(1):
            return {item: float(item.top >= len(active)) for item in asked}
        certainty = Certainty.of_tally(tally)
        return {item: certainty.agreement(min(item.top, len(active)), item.overlap) for item in asked}


@dataclass(frozen=True, eq=False)
class Run:
    """A run of probes that has ended."""

    plan: ProbePlan  # over units, with the rounds that it went through
    ledger: Ledger
    tally: Tally  # of units
    settings: Settings
    stop_reason: str | None = None  # None where it broke off
    interrupted: bool = False  # by something else than its stopping rule
    _coefficients: dict[str, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, ledger: Ledger) -> Run:
        """The run that a ledger holds."""
        settings = Settings.read(ledger)
        plan = settings.first_plan()
        if settings.schedule is not None:
            for n_probes in range(settings.check_every, ledger.n_probes + 1, settings.check_every):
                plan = settings.schedule(plan, ledger, n_probes)
        tally = Tally.over(replay(plan, ledger), plan.n_features, float(ledger.values(0, 1)[0]))
        return cls(plan, ledger, tally, settings, ledger.stop_reason)

    @property
    def units(self) -> Units:
        return self.settings.units

    @property
    def in_rounds(self) -> bool:
        return isinstance(self.plan, TournamentPlan)

    @cached_property
    def feature_plan(self) -> ProbePlan:
        """The probes in features."""
        return self.units.plan(self.plan)

    @cached_property
    def feature_tally(self) -> Tally:
        if self.units.are_features:
            return self.tally
        table = self.units.per_feature(self.tally.table, 0.0)
        table[self.units.kept] = self.tally.n_probes, self.tally.total, self.tally.total_square
        return replace(self.tally, table=table)

    def unit_coefficient(self, name: str) -> tuple[Floats, Floats]:
        """The coefficient of every unit, and its standard error."""
        if name not in self._coefficients:
            self._coefficients[name] = self._coefficient(name)
        return self._coefficients[name]

    def _coefficient(self, name: str) -> tuple[Floats, Floats]:
        require_coefficient(name, in_rounds=self.in_rounds)
        if name == "regression":
            schedule = self.settings.schedule
            fitted = Regression.of(self.plan, self.ledger) if schedule is None else schedule.fit(self.plan, self.ledger)
            return fitted.coefficients, fitted.std_errors
        if name == "daf1":
            return self.tally.daf1(), self.tally.std_errors("daf1")
        if name == "daf0":
            tally = self.tally
        elif name == "daf0_centred":
            tally = size_adjusted_tally(self.plan, self.ledger)
        else:
            tally = size_scaled_tally(self.plan, self.ledger, centred=name == "daf2_centred")
        return tally.daf0(), tally.std_errors()

    def coefficient(self, name: str) -> tuple[Floats, Floats]:
        """The coefficient of every feature, and its standard error."""
        scores, errors = self.unit_coefficient(name)
        return self.units.per_feature(scores), self.units.per_feature(errors)

    def certainty(self, name: str, *, about_rows: bool = False) -> Certainty:
        """How sure the coefficient of every feature is; NaN for those not probed, or not up to the last round."""
        scores, errors = self.unit_coefficient(name)
        if self.in_rounds:
            scores = np.where(self.plan.last_rounds() == len(self.plan.rounds) - 1, scores, np.nan)
        elif name in ("daf0", "daf1"):
            errors = steady_errors(self.tally, name)
        if about_rows and self.row_effects is not None:
            errors = np.hypot(errors, self.unit_row_errors(name))
        return Certainty(self.units.per_feature(scores), self.units.per_feature(errors))

    def ranking(self, name: str) -> NDArray[np.int64]:
        """Ranks, 1 is best: what is kept, units by their coefficient, what is dropped. A group shares a rank."""
        units, scores = self.units, self.unit_coefficient(name)[0]
        places = ranked(self.plan, scores) if self.in_rounds else positions(scores)
        if units.are_features:
            return places + 1
        n_kept, ranking = len(units.kept), units.per_feature(places, -1) + 1
        ranking[ranking > 0] += n_kept
        ranking[units.kept] = np.arange(n_kept) + 1
        ranking[units.dropped] = n_kept + units.n_units + 1 + np.arange(len(units.dropped))
        return ranking

    # ---- other rows

    @cached_property
    def row_effects(self) -> RowEffects | None:
        """What units gave to groups of rows while all took part; None where the ledger does not keep it."""
        shares = self.settings.row_shares
        if shares is None or self.ledger.n_probes < 2:
            return None
        return RowEffects.of(self.plan, self.ledger, shares, self._n_of_all, self.settings.row_unit)

    @property
    def _n_of_all(self) -> int:
        """The number of probes, from the first on, in which all units took part."""
        later = self.plan.rounds[1:2]
        return min([self.ledger.n_probes, *(part.start for part in later)])

    def unit_row_errors(self, name: str) -> Floats:
        """How far the coefficient of each unit may be off for the luck of which rows there are."""
        effects = self.row_effects
        if effects is None:
            return np.full(self.plan.n_features, np.nan)
        errors = ROW_ERROR_INFLATION * effects.row_errors
        known = np.isfinite(errors)
        if known.any():  # a unit that early probes happened to miss has an error like most of the others, not none
            errors = np.where(known, errors, np.quantile(errors[known], LIKE_MOST))
        if name in ("daf1", "daf2", "daf2_centred"):  # in another unit
            with np.errstate(divide="ignore", invalid="ignore"):
                errors = errors * (self.unit_coefficient(name)[1] / self.unit_coefficient("daf0")[1])
        return errors

    def row_errors(self, name: str) -> Floats:
        """Standard errors of the coefficient of every feature, had there been other rows and other probes."""
        errors = np.hypot(self.unit_row_errors(name), self.unit_coefficient(name)[1])
        return self.units.per_feature(errors)

    def std_errors(self, name: str) -> Floats:
        """The same where rows are known, else had there been other probes; NaN of a feature in a single probe."""
        errors = self.coefficient(name)[1] if self.row_effects is None else self.row_errors(name)
        return np.where(self.feature_tally.counts == 1, np.nan, errors)

    def effects_by_group(self, features: NDArray[Any]) -> Floats:
        """What features did for each group of rows: of shape (features, groups)."""
        units, places = np.unique(self.units.unit_of[features], return_inverse=True)
        return group_effects(self.plan, self.ledger, units, self._n_of_all)[places]

    def expected_halves(self, top: int, n_halves: int = 20) -> list[NDArray[np.int64]]:
        """The top units of this many halves of the rows, as if each had been run on its own.

        What groups gave is averaged over half of them; what a run on half of the rows would learn less, and the luck of
        its probes, is drawn.
        """
        effects, row_shares = self.row_effects, self.settings.row_shares
        assert effects is not None
        assert row_shares is not None
        candidates = np.sort(np.argsort(-np.nan_to_num(effects.effects, nan=-np.inf))[: max(MOST_CANDIDATES, 10 * top)])
        by_group = np.nan_to_num(group_effects(self.plan, self.ledger, candidates, self._n_of_all))
        learnt = np.sqrt(2 * (ROW_ERROR_INFLATION**2 - 1)) * effects.row_errors[candidates]
        luck = np.nan_to_num(np.hypot(learnt, effects.probe_errors[candidates]))
        random, n_groups = np.random.default_rng(self.plan.seed), len(row_shares)
        halves = []
        for _ in range(n_halves):
            shares = np.where(random.permutation(n_groups) < n_groups // 2, row_shares, 0.0)
            drawn = by_group @ (shares / shares.sum()) + luck * random.standard_normal(len(candidates))
            halves.append(candidates[np.argsort(-drawn)[:top]])
        return halves

    @cached_property
    def unit_p_values(self) -> Floats | None:
        """P-value of each unit: univariate and conditional tests combined; None where neither is known."""
        univariate = self.settings.univariate_p_values
        conditional = None if self.row_effects is None else self.row_effects.p_values
        return None if univariate is None and conditional is None else combined_p_values(univariate, conditional)

    def p_values(self) -> Floats | None:
        """P-value of each feature; None where it is not known."""
        return None if self.unit_p_values is None else self.units.per_feature(self.unit_p_values)

    def stands_out(self, fdr: float = DEFAULT_FDR) -> NDArray[np.bool_] | None:
        """Which features are discoveries at this false discovery rate; None where p-values are not known."""
        if self.unit_p_values is None:
            return None
        return self.units.per_feature(discoveries(self.unit_p_values, fdr), False)

    # ---- along the ledger

    def looks(self, *, check_every: int | None = None, tops: Sequence[int] = ()) -> list[Look]:
        """C, C2 and the agreement of two halves on the top features, at every look or every so many probes."""
        first_plan = replace(self.plan, later=()) if isinstance(self.plan, TournamentPlan) else self.plan
        stats = RunningStats(
            first_plan,
            self.ledger,
            block_size=self.settings.block_size,
            check_every=check_every or self.settings.check_every,
            watch=frozenset({ORDER, VALUE, *tops}),
            schedule=self.settings.schedule,
        )
        return list(stats.every_look())

    @cached_property
    def history(self) -> dict[str, NDArray[Any]]:
        """What was measured at every look, as columns; in rounds also the round in which each feature left."""
        names = ("n_probes", "seconds", "order_change", "value_change", "relative_change", "left_out")
        looks = self.looks()
        columns = {name: np.array([getattr(look, name) for look in looks]) for name in names}
        columns["probes"] = columns.pop("n_probes")
        if self.in_rounds:
            columns["left_in_round"] = self.rounds_left()
        return columns

    def rounds_left(self) -> NDArray[np.int64]:
        """The number of the round after which each feature left, from 1; 0 for those that stayed."""
        last = self.plan.last_rounds()
        return self.units.per_feature(np.where(last == len(self.plan.rounds) - 1, 0, last + 1), 0)

    @cached_property
    def size_adjusted_tally(self) -> Tally:
        """Of features, with J less the mean of probes of like size: larger probes are better whatever they hold."""
        return size_adjusted_tally(self.feature_plan, self.ledger)


def require_coefficient(name: Any, *, in_rounds: bool) -> None:
    if in_rounds and name != "regression":
        raise ParameterError(f"coefficient={name!r} is not defined for a tournament: use 'regression'")
    if name not in COEFFICIENTS:
        raise ParameterError(f"coefficient={name!r} is not known: choose one of {', '.join(COEFFICIENTS)}")
