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
from .ledger import STOPPED, Failures, Ledger, LedgerError, LedgerWriteError
from .probes import ProbePlan, Subsets
from .run import Run, RunningStats
from .schedule import Schedule
from .settings import Settings

Floats = NDArray[np.float64]
Score = Callable[[Subsets], Floats]
Progress = Callable[[State], None]
Block = tuple[int, int]
MAX_ERROR_LENGTH = 300
MAX_J = 1e150  # larger values cannot be squared and count as infinite


@dataclass(frozen=True)
class Failure:
    """A probe on which the criterion raised an error or returned a number that is not finite."""

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
    schedule: Schedule | None = None,
    settings: Settings | None = None,
    blocks_at_once: int = 1,
) -> Run:
    """Score probes, from where the ledger ends, until ``stop`` holds at a block border or the user presses Ctrl-C.

    ``schedule`` is called at every look and returns the plan for the following probes, a function of the plan and the
    ledger so far; blocks of the previous plan that are still being scored are dropped. ``blocks_at_once`` is the number
    of blocks scored in one call. The result depends on the plan, the criterion and the rule, but not on
    ``blocks_at_once`` or ``map`` (except for `MaxTime`). Where the criterion fails, J is ``error_score``; if that is
    None, a `ProbeError` is raised. A ledger that can no longer be written ends the run as Ctrl-C does, and so does a
    lost cluster if the ledger is in memory only.
    """
    if check_every % block_size:
        raise ValueError(f"block_size={block_size} must divide check_every={check_every}")
    ledger = Ledger() if ledger is None else ledger
    if ledger.failures is not None and ledger.failures.error_score != error_score:
        stored, requested = ledger.failures.error_score, "raise" if error_score is None else error_score
        raise LedgerError(
            f"the ledger {ledger.path} holds failed probes: its error_score is {stored!r}, not {requested!r}. "
            "Use the same error_score to resume the run, or choose another file."
        )
    watch = stop.watch | {VALUE} if progress else stop.watch
    options: dict[str, Any] = {"block_size": block_size, "check_every": check_every, "schedule": schedule}
    stats = RunningStats(plan, ledger, watch=watch, **options)
    state = stats.replay()
    started = working_time() - ledger.seconds  # the time of earlier sessions counts
    interruption = results = None
    try:
        while not (_is_border(state.n_probes, block_size, stop.max_probes) and stop(state)):
            if results is None or stats.plan is not plan:
                getattr(results, "close", bool)()
                plan = stats.plan
                # Blocks after the end of a round would be dropped.
                round_end = None if schedule is None else schedule.end_of_round(plan)
                end = min(filter(None, (stop.max_probes, round_end)), default=None)
                spans = _blocks_after(ledger.n_probes, block_size * blocks_at_once, end)
                results = map(_BlockScorer(plan, score), spans)
                results = results if blocks_at_once == 1 else _in_blocks(results, block_size)
            scored = next(results)
            values, failures = _with_failures(scored, error_score) if scored.failures else (scored.values, None)
            ledger.append(values, seconds=working_time() - started, failures=failures)
            state = stats.update(scored.subsets)
            if progress:
                progress(state)
    except (KeyboardInterrupt, LedgerWriteError, ClusterError) as error:
        interruption = _reason_of(error, ledger)
        # The interruption may have come in the middle of an update: compute the statistics again from the ledger.
        stats = RunningStats(stats.first_plan, ledger, watch=frozenset(), **options)
        state = stats.replay()
    finally:
        getattr(results, "close", bool)()
    reason = stop.reason(state) if interruption is None else interruption
    ledger.note(STOPPED, {"n_probes": ledger.n_probes, "reason": reason})
    tally = stats.whole.view()  # not written to any more
    settings = Settings.of_features(plan.n_features) if settings is None else settings
    return Run(stats.plan, ledger, tally, settings, reason, interruption is not None)


def _with_failures(scored: Scored, error_score: float | None) -> tuple[Floats, Failures]:
    """The J to store, and the failed probes among them."""
    first = scored.failures[0]
    if error_score is None:
        raise ProbeError(first)
    failures = Failures(tuple(failure.probe for failure in scored.failures), error_score, str(first))
    return np.where(np.isfinite(scored.values), scored.values, error_score), failures


def _reason_of(error: BaseException, ledger: Ledger) -> str:
    """Why the run ends early; raises the error where there are no probes, or where the run can be resumed."""
    n_probes = ledger.n_probes
    if not n_probes:
        raise error
    if isinstance(error, ClusterError) and ledger.path is not None:
        raise ClusterError(
            f"{error}: the ledger {ledger.path} holds {n_probes:,} probes; start the cluster again, and "
            "the same run continues from there"
        ) from error
    why = f": {error}" if str(error) else ""
    return f"interrupted after {n_probes:,} probes{why}"


def working_time() -> float:
    """Seconds on a clock that does not count the compilation of kernels, which happens once per machine."""
    return time.perf_counter() - notice.seconds


def _is_border(n_probes: int, block_size: int, limit: int | None) -> bool:
    """Whether rules are evaluated here. A resumed run may start inside a block, where rules are not evaluated."""
    return n_probes > 0 and (n_probes % block_size == 0 or (limit is not None and n_probes >= limit))


def _blocks_after(n_probes: int, block_size: int, limit: int | None) -> Iterator[Block]:
    """(start, stop) of the blocks after the first n_probes; the last block ends at the limit, if there is one."""
    start = n_probes
    while limit is None or start < limit:
        stop = (start // block_size + 1) * block_size
        stop = stop if limit is None else min(stop, limit)
        yield start, stop
        start = stop


@dataclass(frozen=True)
class Scored:
    """Scores of consecutive probes: J, failures, and the probes themselves."""

    start: int
    values: Floats
    failures: tuple[Failure, ...] = ()
    subsets: Subsets | None = None

    def part(self, start: int, stop: int) -> Scored:
        """The scores of probes start, ..., stop - 1."""
        block, subsets = slice(start - self.start, stop - self.start), self.subsets
        if subsets is not None:
            offsets = subsets.offsets[block.start : block.stop + 1]
            subsets = Subsets(subsets.indices[offsets[0] : offsets[-1]], offsets - offsets[0])
        failures = tuple(failure for failure in self.failures if start <= failure.probe < stop)
        return Scored(start, self.values[block], failures, subsets)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"subsets": None}


def _in_blocks(results: Iterator[Scored], block_size: int) -> Iterator[Scored]:
    """Divide scores of several blocks into single blocks."""
    try:
        for scored in results:
            stop = scored.start + len(scored.values)
            for block in _blocks_after(scored.start, block_size, stop):
                yield scored.part(*block)
    finally:
        getattr(results, "close", bool)()


@dataclass(frozen=True)
class _BlockScorer:
    """Draws and scores the probes of a block. Failures are returned as results, so they too arrive in order."""

    plan: ProbePlan
    score: Any

    def __call__(self, block: Block) -> Scored:
        start, stop = block
        try:
            values, subsets = self._values(start, stop)
        except Exception:
            scored = self._one_by_one(start, stop)
            if not scored.failures:  # no single probe causes the error
                raise
            return scored
        is_finite = np.isfinite(values)
        if is_finite.all():
            return Scored(start, values, (), subsets)
        failed = np.flatnonzero(~is_finite).tolist()
        failures = tuple(self._failure(start + i, f"J is {values[i]}") for i in failed)
        return Scored(start, values, failures, subsets)

    def _values(self, start: int, stop: int) -> tuple[Floats, Subsets]:
        subsets = self.plan.draw(start, stop)
        values = np.asarray(self.score(subsets), dtype=np.float64)
        if values.shape != (stop - start,):
            raise ValueError(f"the criterion returned {values.shape} values for {stop - start} subsets")
        return np.where(np.abs(values) > MAX_J, np.copysign(np.inf, values), values), subsets

    def _one_by_one(self, start: int, stop: int) -> Scored:
        values, failures = np.full(stop - start, np.nan), list[Failure]()
        for probe in range(start, stop):
            try:
                (value,), _ = self._values(probe, probe + 1)
            except Exception as error:
                words = " ".join(f"{type(error).__name__}: {error}".split())
                trace = "" if failures else traceback.format_exc()
                failures.append(self._failure(probe, words[:MAX_ERROR_LENGTH], trace))
                continue
            values[probe - start] = value
            if not math.isfinite(value):
                failures.append(self._failure(probe, f"J is {value}"))
        return Scored(start, values, tuple(failures))

    def _failure(self, probe: int, error: str, trace: str = "") -> Failure:
        return Failure(probe, len(self.plan.probe(probe)), error, trace)
