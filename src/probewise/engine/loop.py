"""The probe loop: score blocks of probes in order, write them to the ledger, stop when the rule says so."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..executors import ClusterError, Map, serial
from ..kernels.jit import notice
from ..stopping import VALUE, Rule, State
from .ledger import Failures, Ledger, LedgerError, LedgerWriteError, packed_rows
from .probes import ProbePlan, Subsets
from .row_effects import RowGroups
from .run import Run
from .running_stats import NextPlan, RunningStats
from .settings import Settings

Floats = NDArray[np.float64]
Score = Callable[[Subsets], Floats]
Progress = Callable[[State], None]
Block = tuple[int, int]
LONGEST_ERROR = 300
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
    """The criterion failed on a probe. ``features`` are the names of the probe's features, where known."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure
        self.features: list[str] = []
        if failure.trace:
            self.add_note(f"In the worker:\n{failure.trace}")

    def __str__(self) -> str:
        columns = f"; the columns were {', '.join(self.features)}" if self.features else ""
        return f"the criterion failed on {self.failure}{columns}"


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
    schedule: NextPlan | None = None,
    settings: Settings | None = None,
    row_groups: RowGroups | None = None,
    blocks_at_once: int = 1,
) -> Run:
    """Score probes, from where the ledger ends, until ``stop`` says enough at a block border, or Ctrl-C.

    ``schedule`` is asked at every look for the plan from there on, a function of the plan and the ledger so far; blocks
    that were started by the plan before are dropped. With ``row_groups``, ``score.outcomes`` is asked what these groups
    gave, too, and the ledger keeps it. ``blocks_at_once`` are scored in one call. The result depends on the plan, the
    criterion and the rules, never on that number or on the map (`MaxTime` excepted). Where the criterion fails, J is
    ``error_score``, or, if that is None, a `ProbeError` is raised. A ledger that cannot be written ends the run as
    Ctrl-C does, and so does a lost cluster where the ledger is in memory only.
    """
    if check_every % block_size:
        raise ValueError(f"block_size={block_size} must divide check_every={check_every}")
    ledger = Ledger() if ledger is None else ledger
    _refuse_another_error_score(ledger, error_score)
    watch = stop.watch | {VALUE} if progress else stop.watch
    options: dict[str, Any] = {"block_size": block_size, "check_every": check_every, "schedule": schedule}
    stats = RunningStats(plan, ledger, watch=watch, **options)
    state = stats.replay()
    began = working_time() - ledger.seconds  # counted on from earlier sessions
    interruption = results = None
    try:
        while not (_is_border(state.n_probes, block_size, stop.max_probes) and stop(state)):
            if results is None or stats.plan is not plan:
                getattr(results, "close", bool)()
                plan = stats.plan
                ends = [end for end in (stop.max_probes, _end_of_round(schedule, plan)) if end is not None]
                spans = _blocks_after(ledger.n_probes, block_size * blocks_at_once, min(ends, default=None))
                results = _in_blocks(map(_BlockScorer(plan, score, row_groups), spans), block_size)
            scored = next(results)
            values, failures = _to_keep(scored, error_score)
            ledger.append(values, seconds=working_time() - began, failures=failures, rows=scored.rows)
            state = stats.update(scored.subsets)
            if progress:
                progress(state)
    except (KeyboardInterrupt, LedgerWriteError, ClusterError) as error:
        interruption = _reason_of(error, ledger)
        # It may have come in the middle of a sum: count again from the ledger.
        stats = RunningStats(stats.first_plan, ledger, watch=frozenset(), **options)
        state = stats.replay()
    finally:
        getattr(results, "close", bool)()
    reason = stop.reason(state) if interruption is None else interruption
    ledger.conclude(reason)
    tally = stats.whole.view()  # nobody writes to it any more
    settings = Settings.of_features(plan.n_features) if settings is None else settings
    return Run(stats.plan, ledger, tally, settings, reason, interruption is not None)


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


def _reason_of(error: BaseException, ledger: Ledger) -> str:
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


def working_time() -> float:
    """Seconds since any moment; kernels being compiled, once per machine, do not count."""
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


def _end_of_round(schedule: Any, plan: ProbePlan) -> int | None:
    """The probe before which the plan changes, where that is known: work beyond it would be dropped."""
    end_of: Callable[[ProbePlan], int | None] | None = getattr(schedule, "end_of_round", None)
    return None if end_of is None else end_of(plan)


@dataclass(frozen=True)
class Scored:
    """J of probes, where the criterion failed, what each group of rows gave (packed), and what probes hold.

    The latter only in the process that drew them: they are drawn again in less time than they are sent.
    """

    start: int
    values: Floats
    failures: tuple[Failure, ...] = ()
    rows: NDArray[np.uint16] | None = None
    subsets: Subsets | None = None

    def part(self, start: int, stop: int) -> Scored:
        """Of some of the probes."""
        own, subsets = slice(start - self.start, stop - self.start), self.subsets
        if subsets is not None:
            offsets = subsets.offsets[own.start : own.stop + 1]
            subsets = Subsets(subsets.indices[offsets[0] : offsets[-1]], offsets - offsets[0])
        failures = tuple(failure for failure in self.failures if start <= failure.probe < stop)
        return Scored(start, self.values[own], failures, None if self.rows is None else self.rows[own], subsets)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"subsets": None}


def _in_blocks(results: Iterator[Scored], block_size: int) -> Iterator[Scored]:
    """What was scored together, block by block."""
    try:
        for scored in results:
            stop = scored.start + len(scored.values)
            for block in _blocks_after(scored.start, block_size, stop):
                yield scored.part(*block)
    finally:
        getattr(results, "close", bool)()


@dataclass(frozen=True)
class _BlockScorer:
    """What a worker does: draw a block's probes and score them. Failures are results too: in order, for any map."""

    plan: ProbePlan
    score: Any
    rows: RowGroups | None = None

    def __call__(self, block: Block) -> Scored:
        start, stop = block
        try:
            values, rows, subsets = self._values(start, stop)
        except Exception:
            scored = self._one_by_one(start, stop)
            if not scored.failures:  # so it is not a probe's fault
                raise
            return scored
        failed = np.flatnonzero(~np.isfinite(values)).tolist()
        failures = tuple(self._failure(start + i, f"J is {values[i]}") for i in failed)
        return Scored(start, values, failures, rows, subsets)

    def _values(self, start: int, stop: int) -> tuple[Floats, NDArray[np.uint16] | None, Subsets]:
        subsets, rows = self.plan.draw(start, stop), None
        if self.rows is None:
            scores = self.score(subsets)
        else:
            scores, rows = self.score.outcomes(subsets, self.rows.group_of)
            rows = packed_rows(rows / np.float32(self.rows.unit))
        values = np.asarray(scores, dtype=np.float64)
        if values.shape != (stop - start,):
            raise ValueError(f"the criterion returned {values.shape} values for {stop - start} subsets")
        return np.where(np.abs(values) > LARGEST_J, np.copysign(np.inf, values), values), rows, subsets

    def _one_by_one(self, start: int, stop: int) -> Scored:
        values, failures = np.full(stop - start, np.nan), list[Failure]()
        rows = None if self.rows is None else packed_rows(np.zeros((stop - start, len(self.rows.shares))))
        for probe in range(start, stop):
            try:
                (value,), given, _ = self._values(probe, probe + 1)
            except Exception as error:
                words = " ".join(f"{type(error).__name__}: {error}".split())
                trace = "" if failures else traceback.format_exc()
                failures.append(self._failure(probe, words[:LONGEST_ERROR], trace))
                continue
            values[probe - start] = value
            if rows is not None and given is not None:
                rows[probe - start] = given[0]
            if not math.isfinite(value):
                failures.append(self._failure(probe, f"J is {value}"))
        return Scored(start, values, tuple(failures), rows)

    def _failure(self, probe: int, error: str, trace: str = "") -> Failure:
        return Failure(probe, len(self.plan.probe(probe)), error, trace)
