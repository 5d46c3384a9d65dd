"""The probe loop: score blocks of probes in order, write them to the ledger, stop when the rule says so."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..executors import ClusterError, Map, serial
from ..kernels import sums
from ..kernels.jit import notice
from ..stopping import ORDER, VALUE, Look, Rule, State, Sure, Watch
from .certainty import Certainty
from .ledger import Failures, Ledger, LedgerError, LedgerWriteError
from .probes import ProbePlan, Subsets
from .tally import Tally, TallySheet, positions, scaled_by_size, size_deviations

Floats = NDArray[np.float64]
Score = Callable[[Subsets], Floats]
Progress = Callable[[State], None]
Block = tuple[int, int]
Narrow = Callable[[ProbePlan, Ledger, int], ProbePlan]
REPLAY_BATCH = 4096
REPLAY_FEATURES = 2**25
LONGEST_ERROR = 300
LIKE_SIZE = 20  # probes that share a mean
LARGEST_J = 1e150  # what is larger cannot be squared, and counts as infinite


@dataclass(frozen=True)
class Failure:
    """A probe on which the criterion raised, or gave no finite number."""

    probe: int
    size: int
    error: str
    trace: str = ""

    def __str__(self) -> str:
        return f"probe {self.probe} ({self.size} {'feature' if self.size == 1 else 'features'}): {self.error}"


class ProbeError(ValueError):
    """The criterion failed on a probe. ``again`` says how to see that, in a line of Python."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure
        self.again = f"score(plan.draw({failure.probe}, {failure.probe + 1}))"
        if failure.trace:
            self.add_note(f"In the worker:\n{failure.trace}")

    def __str__(self) -> str:
        return f"the criterion failed on {self.failure}; see it again with {self.again}"


@dataclass(frozen=True)
class Run:
    """What came out: the tally, why it stopped, and the ledger everything else is replayed from."""

    plan: ProbePlan
    ledger: Ledger
    tally: Tally
    stop_reason: str
    interrupted: bool = False


def run_probes(
    plan: ProbePlan,
    score: Score,
    *,
    stop: Rule,
    map: Map = serial,
    ledger: Ledger | None = None,
    block_size: int = 50,
    check_every: int = 400,
    error_score: float | None = None,
    progress: Progress | None = None,
    narrow: Narrow | None = None,
) -> Run:
    """Score probes, from where the ledger ends, until ``stop`` says enough at a block border, or Ctrl-C.

    ``narrow`` is asked at every look for the plan from there on, a function of the plan and the ledger so far; blocks
    that were begun by the plan before are dropped. The result depends on the plan, the criterion and the rules, never
    on the map (`MaxTime` excepted). Where the criterion fails, J is ``error_score``, or, if that is None, a
    `ProbeError` is raised. A ledger that cannot be written ends the run as Ctrl-C does, and so does a lost cluster
    where the ledger is in memory only.
    """
    if check_every % block_size:
        raise ValueError(f"block_size={block_size} must divide check_every={check_every}")
    ledger = Ledger() if ledger is None else ledger
    _refuse_another_error_score(ledger, error_score)
    watch = stop.watch | {VALUE} if progress else stop.watch
    options: dict[str, Any] = {"block_size": block_size, "check_every": check_every, "narrow": narrow}
    knowledge = Knowledge(plan, ledger, watch=watch, **options)
    state = knowledge.catch_up()
    clock = Clock(ledger.seconds)
    interruption = results = None
    try:
        while not (_is_border(state.n_probes, block_size, stop.max_probes) and stop(state)):
            if results is None or knowledge.plan is not plan:
                getattr(results, "close", bool)()
                plan = knowledge.plan
                results = map(_BlockScorer(plan, score), _blocks_after(ledger.n_probes, block_size, stop.max_probes))
            values, failures = _to_keep(next(results), error_score)
            ledger.append(values, seconds=clock.seconds, failures=failures)
            state = knowledge.learn()
            if progress:
                progress(state)
    except (KeyboardInterrupt, LedgerWriteError, ClusterError) as error:
        interruption = _borne(error, ledger)
        # It may have come in the middle of a sum: count again from the ledger.
        knowledge = Knowledge(knowledge.first_plan, ledger, watch=frozenset(), **options)
        state = knowledge.catch_up()
    finally:
        getattr(results, "close", bool)()
    reason = stop.reason(state) if interruption is None else interruption
    ledger.conclude(reason)
    tally = knowledge.whole.view()  # nobody writes to it any more
    return Run(knowledge.plan, ledger, tally, reason, interruption is not None)


def _refuse_another_error_score(ledger: Ledger, error_score: float | None) -> None:
    """Only where it would make a difference: where the ledger holds one."""
    if ledger.failures is not None and ledger.failures.error_score != error_score:
        kept, asked = ledger.failures.error_score, "raise" if error_score is None else error_score
        raise LedgerError(
            f"the ledger {ledger.path} holds failed probes: its error_score is {kept!r}, not {asked!r}. "
            "Give the same one to go on with it, or choose another file."
        )


def _to_keep(scored: Scored, error_score: float | None) -> tuple[Floats, Failures | None]:
    """The J to keep, and which of them stand for failures."""
    if not scored.failures:
        return scored.values, None
    first = scored.failures[0]
    if error_score is None:
        raise ProbeError(first)
    failures = Failures(tuple(failure.probe for failure in scored.failures), error_score, str(first))
    return np.where(np.isfinite(scored.values), scored.values, error_score), failures


def _borne(error: BaseException, ledger: Ledger) -> str:
    """Why the run ends with what it has; raises where it has nothing, or where the rest can be had later."""
    n_probes = ledger.n_probes
    if not n_probes:
        raise error
    if isinstance(error, ClusterError) and ledger.path is not None:
        raise ClusterError(
            f"{error}: the ledger {ledger.path} holds {n_probes:,} probes; start the cluster again, and the same run "
            "goes on from there"
        ) from error
    why = f": {error}" if str(error) else ""
    return f"interrupted after {n_probes:,} probes{why}"


class Clock:
    """Working time, counted on from earlier sessions; kernels being compiled, once per machine, do not count."""

    def __init__(self, before: float) -> None:
        self.zero = self._now() - before

    @property
    def seconds(self) -> float:
        return self._now() - self.zero

    @staticmethod
    def _now() -> float:
        return time.perf_counter() - notice.seconds


def _is_border(n_probes: int, block_size: int, limit: int | None) -> bool:
    """Whether rules are asked here; a resumed run may begin inside a block, where an unbroken one never asks."""
    return n_probes > 0 and (n_probes % block_size == 0 or (limit is not None and n_probes >= limit))


def _blocks_after(n_probes: int, block_size: int, limit: int | None) -> Iterator[Block]:
    """(start, stop) of the blocks after the first n_probes; the last is cut at the limit, if there is one."""
    start = n_probes
    while limit is None or start < limit:
        stop = (start // block_size + 1) * block_size
        stop = stop if limit is None else min(stop, limit)
        yield start, stop
        start = stop


@dataclass(frozen=True)
class Scored:
    """J of a block's probes, and where the criterion failed."""

    values: Floats
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class _BlockScorer:
    """What a worker does: draw a block's probes and score them. Failures are results too: in order, for any map."""

    plan: ProbePlan
    score: Score

    def __call__(self, block: Block) -> Scored:
        start, stop = block
        try:
            values = self._values(start, stop)
        except Exception:
            scored = self._one_by_one(start, stop)
            if not scored.failures:  # so it is not a probe's fault
                raise
            return scored
        failed = np.flatnonzero(~np.isfinite(values)).tolist()
        return Scored(values, tuple(self._failure(start + i, f"J is {values[i]}") for i in failed))

    def _values(self, start: int, stop: int) -> Floats:
        values = np.asarray(self.score(self.plan.draw(start, stop)), dtype=np.float64)
        if values.shape != (stop - start,):
            raise ValueError(f"the criterion returned {values.shape} values for {stop - start} subsets")
        return np.where(np.abs(values) > LARGEST_J, np.copysign(np.inf, values), values)

    def _one_by_one(self, start: int, stop: int) -> Scored:
        values = np.full(stop - start, np.nan)
        failures: list[Failure] = []
        for probe in range(start, stop):
            try:
                values[probe - start] = value = self._values(probe, probe + 1)[0]
            except Exception as error:
                words = " ".join(f"{type(error).__name__}: {error}".split())
                trace = "" if failures else traceback.format_exc()
                failures.append(self._failure(probe, words[:LONGEST_ERROR], trace))
            else:
                if not math.isfinite(value):
                    failures.append(self._failure(probe, f"J is {value}"))
        return Scored(values, tuple(failures))

    def _failure(self, probe: int, error: str, trace: str = "") -> Failure:
        return Failure(probe, len(self.plan.probe(probe)), error, trace)


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

    def learn(self) -> State:
        """Take in the ledger's next probes, up to a block border, and look if a look is due."""
        start = self.known
        stop = min((start // self.block_size + 1) * self.block_size, self.ledger.n_probes)
        values = self.ledger.values(start, stop)
        if start == 0:
            self.sheet.shift = self.odd.shift = float(values[0])
        subsets = self.plan.draw(start, stop)
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


def history(
    plan: ProbePlan,
    ledger: Ledger,
    *,
    block_size: int,
    check_every: int,
    tops: tuple[int, ...] = (),
    narrow: Narrow | None = None,
) -> dict[str, NDArray[Any]]:
    """C, C2, relative C2 and the rest at every look of the ledger, as columns."""
    watch: Watch = frozenset({ORDER, VALUE, *tops})
    knowledge = Knowledge(plan, ledger, block_size=block_size, check_every=check_every, watch=watch, narrow=narrow)
    rows = []
    while knowledge.known < ledger.n_probes:
        knowledge.learn()
        if knowledge.known % check_every == 0:
            row = asdict(knowledge.looks[-1])
            row.pop("overlap")
            rows.append(row)
    names = ("n_probes", "seconds", "order_change", "value_change", "relative_change", "left_out")
    columns = {name: np.array([row[name] for row in rows]) for name in names}
    columns["probes"] = columns.pop("n_probes")
    return columns


def replay(plan: ProbePlan, ledger: Ledger) -> Iterator[tuple[Subsets, Floats]]:
    """The probes of the ledger with their J, in batches."""
    for start, stop in _batches(plan, 0, ledger.n_probes):
        yield plan.draw(start, stop), ledger.values(start, stop)


def adjusted(plan: ProbePlan, ledger: Ledger, only: int | None = None) -> Iterator[tuple[Subsets, Floats]]:
    """The probes of the ledger with their J less the mean J of the probes of like size in their round, in batches.

    All rounds, or the only one asked for by its number.
    """
    starts = [min(part.start, ledger.n_probes) for part in plan.rounds]
    rounds = list(zip(starts, [*starts[1:], ledger.n_probes], strict=True))
    for first, end in rounds if only is None else [rounds[only]]:
        typical = mean_by_size(plan, ledger, first, end)
        for start, stop in _batches(plan, first, end):
            subsets = plan.draw(start, stop)
            yield subsets, ledger.values(start, stop) - typical[subsets.sizes]


def mean_by_size(plan: ProbePlan, ledger: Ledger, start: int, stop: int) -> Floats:
    """Mean J of the probes of each size, of those from start to stop; neighbouring sizes with few share one."""
    counts, sums_of_j = np.zeros(plan.largest + 1), np.zeros(plan.largest + 1)
    for low, high in _batches(plan, start, stop):
        sizes = plan.draw(low, high).sizes
        counts += np.bincount(sizes, minlength=len(counts))
        sums_of_j += np.bincount(sizes, ledger.values(low, high), minlength=len(counts))
    group = ((np.cumsum(counts) - counts) // LIKE_SIZE).astype(np.int64)
    with np.errstate(invalid="ignore"):
        return (np.bincount(group, sums_of_j) / np.bincount(group, counts))[group]


def _batches(plan: ProbePlan, start: int, stop: int) -> Iterator[Block]:
    batch = max(1, min(REPLAY_BATCH, REPLAY_FEATURES // plan.largest))
    return ((low, min(low + batch, stop)) for low in range(start, stop, batch))


def size_scaled_tally(plan: ProbePlan, ledger: Ledger, *, min_probes: int = 30) -> Tally:
    """The tally of J(S) / sigma(|S|) over the ledger; its mean difference is DAF2."""
    shift = float(ledger.values(0, 1)[0])
    deviations = size_deviations(replay(plan, ledger), plan.largest, shift=shift, min_probes=min_probes)
    sheet = TallySheet(plan.n_features)
    for subsets, values in replay(plan, ledger):
        sheet.add(subsets, scaled_by_size(subsets, values, deviations))
    return sheet.freeze()
