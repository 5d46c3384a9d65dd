"""The replay of a ledger: its probes drawn again with their J, tallies of them, and statistics that grow with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..kernels import sums
from ..stopping import ORDER, VALUE, Look, State, TopKConfidence, Watch
from .certainty import Certainty
from .ledger import Ledger
from .probes import ProbePlan, Subsets
from .tally import Tally, TallySheet, positions, size_deviations

Floats = NDArray[np.float64]
BATCH_PROBES, BATCH_FEATURES = 4096, 2**25  # limits of a batch
MIN_PROBES_PER_MEAN = 20  # neighboring sizes share a mean until they have this many probes together
NextPlan = Callable[[ProbePlan, Ledger, int], ProbePlan]


def replay(plan: ProbePlan, ledger: Ledger) -> Iterator[tuple[Subsets, Floats]]:
    """Yield the probes of the ledger with their J, in batches."""
    for start, stop in batches(plan, 0, ledger.n_probes):
        yield plan.draw(start, stop), ledger.values(start, stop)


def adjusted(plan: ProbePlan, ledger: Ledger, only: int | None = None) -> Iterator[tuple[Subsets, Floats]]:
    """Yield probes with J minus the mean J of probes of similar size in the same round, in batches.

    ``only`` is the number of a single round; None: all rounds.
    """
    starts = [min(part.start, ledger.n_probes) for part in plan.rounds]
    rounds = list(zip(starts, [*starts[1:], ledger.n_probes], strict=True))
    for first, end in rounds if only is None else [rounds[only]]:
        means = mean_by_size(plan, ledger, first, end)
        for start, stop in batches(plan, first, end):
            subsets = plan.draw(start, stop)
            yield subsets, ledger.values(start, stop) - means[subsets.sizes]


def mean_by_size(plan: ProbePlan, ledger: Ledger, start: int, stop: int) -> Floats:
    """Mean J of each probe size among probes start to stop; neighboring sizes with few probes share a mean."""
    counts, sums_of_j = np.zeros(plan.largest + 1), np.zeros(plan.largest + 1)
    for low, high in batches(plan, start, stop):
        sizes = plan.sizes(low, high)
        counts += np.bincount(sizes, minlength=len(counts))
        sums_of_j += np.bincount(sizes, ledger.values(low, high), minlength=len(counts))
    group = ((np.cumsum(counts) - counts) // MIN_PROBES_PER_MEAN).astype(np.int64)
    with np.errstate(invalid="ignore"):
        return (np.bincount(group, sums_of_j) / np.bincount(group, counts))[group]


def batches(plan: ProbePlan, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Divide a replay into batches, which bounds its memory."""
    batch = max(1, min(BATCH_PROBES, BATCH_FEATURES // plan.largest))
    for low in range(start, stop, batch):
        yield low, min(low + batch, stop)


def size_adjusted_tally(plan: ProbePlan, ledger: Ledger) -> Tally:
    """Tally of J minus the mean J of probes of similar size; its DAF0 is ``daf0_centered``."""
    return Tally.over(adjusted(plan, ledger), plan.n_features)


def size_scaled_tally(plan: ProbePlan, ledger: Ledger, *, min_probes: int = 30, centered: bool = False) -> Tally:
    """Tally of J(S) / sigma(|S|) (2011, eq. 13-15); its DAF0 is DAF2, or with centered J ``daf2_centered``."""
    shift = float(ledger.values(0, 1)[0])
    deviations = size_deviations(replay(plan, ledger), plan.largest, shift=shift, min_probes=min_probes)
    batches = (adjusted if centered else replay)(plan, ledger)
    return Tally.over(((subsets, values / deviations[subsets.sizes]) for subsets, values in batches), plan.n_features)


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
        schedule: NextPlan | None = None,
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

    def every_look(self) -> Iterator[Look]:
        """Replay the ledger and yield every look."""
        while self.n_known < self.ledger.n_probes:
            self.update()
            if self.n_known % self.check_every == 0:
                yield self.looks[-1]

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
        if stop % self.check_every == 0:
            if self.watch:
                self.looks = (*self.looks[-1:], self.look())
            if self.schedule is not None:
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
        scores = getattr(self.schedule, "scores", None)
        scores = None if scores is None else partial(scores, self.plan, self.ledger)
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
            order = sums.order_change(coefficients_before, self.positions_before, self.coefficients, positions_now)
            self.positions_before = positions_now
        return Look(
            n_probes=self.n_known,
            seconds=self.ledger.seconds_at(self.n_known),
            order_change=float(order),
            value_change=float(value),
            relative_change=float(value / self.first_change) if self.first_change else 0.0,
            left_out=int(left_out),
            overlap={top: self._shared_top(top) for top in self.tops},
            confidence=self._top_k_confidence(),
        )

    def _shared_top(self, top: int) -> float:
        """Share of the top features that odd and even blocks have in common; unscored features do not count."""
        if top >= self.plan.n_features:
            return 1.0
        table, none = self.sheet.table, np.broadcast_to(0.0, self.sheet.table.shape)
        (n_probes, total, _), (n_odd, total_odd, _) = self.sheet.totals.tolist(), self.odd.totals.tolist()
        odd = sums.top_features(self.odd.table, none, n_odd, total_odd, top)
        even = sums.top_features(table, self.odd.table, n_probes - n_odd, total - total_odd, top)
        return len(np.intersect1d(odd, even)) / top

    def _top_k_confidence(self) -> dict[TopKConfidence, float]:
        """Probability that the current top features of the round are the true ones; 0 while one has no score."""
        rules = [item for item in self.watch if isinstance(item, TopKConfidence)]
        if not rules:
            return {}
        tally, active = self.sheet.view(), self.plan.rounds[-1].active
        tally = tally if len(active) == tally.n_features else replace(tally, table=tally.table[active])
        if not tally.covers(1):
            return {item: float(item.top >= len(active)) for item in rules}
        certainty = Certainty.of_tally(tally)
        return {item: certainty.agreement(min(item.top, len(active)), item.overlap) for item in rules}
