"""What is known of a run as it goes along its ledger: the growing tally, and what is measured at each look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ..kernels import sums
from ..stopping import ORDER, VALUE, Look, State, Sure, Watch
from .certainty import Certainty
from .ledger import Ledger
from .probes import ProbePlan, Subsets
from .tally import TallySheet, positions

Narrow = Callable[[ProbePlan, Ledger, int], ProbePlan]


class Knowledge:
    """The tally as it grows along the ledger, and what is measured at each look.

    In a run that narrows, looks are at the probes of the round; ``whole`` is the tally of all rounds.
    """

    def __init__(
        self,
        plan: ProbePlan,
        ledger: Ledger,
        *,
        block_size: int,
        check_every: int,
        watch: Watch,
        narrow: Narrow | None = None,
    ) -> None:
        self.plan, self.ledger, self.narrow = plan, ledger, narrow
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

    def catch_up(self) -> State:
        """Learn all the ledger holds, block by block, as when it was first found out."""
        while self.known < self.ledger.n_probes:
            self.learn()
        return self.state()

    def every_look(self) -> Iterator[Look]:
        """The same, with what is measured on the way."""
        while self.known < self.ledger.n_probes:
            self.learn()
            if self.known % self.check_every == 0:
                yield self.looks[-1]

    def learn(self, subsets: Subsets | None = None) -> State:
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
            if self.narrow is not None:
                self._go_on_with(self.narrow(self.plan, self.ledger, stop))
        return self.state()

    def _go_on_with(self, plan: ProbePlan) -> None:
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

    def _sure(self) -> dict[Sure, float]:
        """How probable it is that the top found, of the round's features, is the true one; 0 while one is unknown."""
        asked = [item for item in self.watch if isinstance(item, Sure)]
        if not asked:
            return {}
        tally, active = self.sheet.view(), self.plan.rounds[-1].active
        tally = tally if len(active) == tally.n_features else replace(tally, table=tally.table[active])
        if not tally.covers(1):
            return {item: float(item.top >= len(active)) for item in asked}
        certainty = Certainty.of_tally(tally)
        return {item: certainty.agreement(min(item.top, len(active)), item.overlap) for item in asked}
