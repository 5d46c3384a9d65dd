"""Progress display for long work: live in a terminal or a notebook, lines in a log, or the caller's function."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .display import shown, span
from .engine.tally import positions
from .stopping import Rule, State

if TYPE_CHECKING:
    from rich.table import Table

REFRESH_SECONDS = 0.25
LINE_SECONDS = 5.0
SOON = 1.0  # seconds; after a first block this short the second one comes soon
TOP, LINE_TOP = 8, 5
PAUSE = 20  # times as long as the current ranking took, before it is computed again
MIN_PROBE_SHARE = 0.2  # share of the time spent on probes, where the work between them is overestimated

Verbose = int | Callable[[str], None]
Effort = Callable[[int], tuple[float, float]]
Item = TypeVar("Item")


@dataclass(frozen=True)
class ProgressState:
    """The values shown during a run; ``share`` is the share that is done, None where not known."""

    state: State
    top: list[str]  # features that rank first now
    title: str
    share: float | None
    estimate: TimeEstimate | None = None

    @property
    def seconds_left(self) -> float | None:
        left = None if self.estimate is None else self.estimate.seconds_left(self.state, self.share)
        return self.state.seconds * (1 / self.share - 1) if left is None and self.share else left


class TimeEstimate:
    """Estimates the remaining time of a run with a known number of probes, without the work that is done only once.

    ``effort`` maps a number of probes to their work in arbitrary units and to the seconds of the work between them.
    """

    def __init__(self, n_probes: int, effort: Effort) -> None:
        self.n_probes, self.effort, self.first = n_probes, effort, (0, 0.0)

    def is_early(self, state: State) -> bool:
        """Whether only a short first block is known, which would give far too long an estimate."""
        if self.first == (0, 0.0):
            self.first = state.n_probes, state.seconds
        return bool(state.n_probes == self.first[0] < self.n_probes and state.seconds < SOON)

    def seconds_left(self, state: State, share: float | None) -> float | None:
        """Remaining seconds; None where another rule, whose progress is ``share``, ends the run earlier."""
        n_first, first_seconds = self.first if self.first[0] < state.n_probes else (0, 0.0)
        if share is None or share > state.n_probes / self.n_probes or not state.n_probes:
            return None
        (work_before, paused_before), (work, paused), (all_work, all_paused) = (
            self.effort(n) for n in (n_first, state.n_probes, self.n_probes)
        )
        elapsed = state.seconds - first_seconds
        probe_seconds = max(elapsed - (paused - paused_before), MIN_PROBE_SHARE * elapsed)
        return probe_seconds * (all_work - work) / (work - work_before) + all_paused - paused


@contextmanager
def live_progress(
    verbose: Verbose,
    names: Sequence[str] | None = None,
    *,
    title: str = "DAF",
    stop: Rule | None = None,
    effort: Effort | None = None,
) -> Iterator[Callable[[State], None] | None]:
    """A callback for the probe loop that shows the state of a run; None where ``verbose`` is 0."""
    if not verbose:
        yield None
        return
    from rich.text import Text

    limit = None if stop is None else stop.max_probes
    estimate = None if limit is None or effort is None else TimeEstimate(limit, effort)
    top_features = TopFeatures(names)

    def progress_state_of(state: State) -> ProgressState:
        share = None if stop is None else stop.share_done(state)
        return ProgressState(state, top_features(state, is_last=share == 1), title, share, estimate)

    with _screen(verbose) as (show, every, takes_tables):
        words = panel if takes_tables else one_line
        progress = Throttled(every, lambda state, speed: show(words(progress_state_of(state), speed)), estimate)
        if takes_tables:
            show(Text(f"{title}: starting"))
        yield progress
        if callable(verbose):
            progress.finish()
    if not callable(verbose) and progress.latest is not None:
        _leave(one_line(progress_state_of(progress.latest), progress.speed(progress.latest)))


def say(verbose: Verbose, line: str) -> None:
    """Print a permanent line in the way that ``verbose`` chooses."""
    if callable(verbose):
        verbose(line)
    elif verbose:
        _leave(line)


def _leave(line: str) -> None:
    """Print the line that remains after a live display."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if console.is_jupyter:
        import_module("IPython.display").display(Text(line))
    elif console.is_terminal:
        print(line, file=sys.stderr)
    else:
        print_to_log(line)


def print_to_log(line: str) -> None:
    """Print a time-stamped line to stderr."""
    print(time.strftime("%Y-%m-%d %H:%M:%S"), line, file=sys.stderr, flush=True)


@contextmanager
def live_line(verbose: Verbose) -> Iterator[Callable[[str], None] | None]:
    """A callback that shows a line of text; None where ``verbose`` is 0."""
    if not verbose:
        yield None
        return
    from rich.text import Text

    with _screen(verbose) as (show, every, takes_tables):
        words = Text if takes_tables else str
        progress: RateLimited[str] = RateLimited(every, lambda line: show(words(line)))
        yield progress
        if callable(verbose):
            progress.finish()


@contextmanager
def _screen(verbose: Verbose) -> Iterator[tuple[Callable[[Any], None], float, bool]]:
    """The caller's function, a live display in a terminal or a notebook, or lines on stderr.

    Yields a function that shows progress, the seconds between two calls, and whether it takes rich renderables.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if callable(verbose):
        yield verbose, REFRESH_SECONDS, False
    elif console.is_jupyter:
        with _notebook_output() as show:
            yield show, REFRESH_SECONDS, True
    elif console.is_terminal:
        with Live(console=console, transient=True, auto_refresh=False) as live, _logged_to(console):
            yield partial(live.update, refresh=True), REFRESH_SECONDS, True
    else:
        yield print_to_log, LINE_SECONDS, False


@contextmanager
def _notebook_output() -> Iterator[Callable[[Any], None]]:
    """One output of a notebook cell that is updated and cleared at the end; rich itself needs ipywidgets."""
    from rich.text import Text

    output = import_module("IPython.display").display(Text(), display_id=True)
    try:
        yield output.update
    finally:
        output.update(Text())


class RateLimited(Generic[Item]):
    """Calls ``show`` at most once every so many seconds; ``finish`` shows the last item if it was held back."""

    def __init__(self, every: float, show: Callable[[Item], None]) -> None:
        self.every, self.show, self.last = every, show, float("-inf")
        self.held: Item | None = None

    def __call__(self, item: Item) -> None:
        self.held = item
        now = time.perf_counter()
        if now - self.last >= self.every:
            self.last = now
            self.finish()

    def finish(self) -> None:
        if self.held is not None:
            held, self.held = self.held, None
            self.show(held)


class Throttled(RateLimited[State]):
    """Rate-limited progress of a run, with the speed since the start of this session; short runs show nothing."""

    def __init__(
        self, every: float, show: Callable[[State, float], None], estimate: TimeEstimate | None = None
    ) -> None:
        super().__init__(every, lambda state: show(state, self.speed(state)))
        self.last, self.estimate = time.perf_counter(), estimate
        self.first: State | None = None
        self.latest: State | None = None

    def __call__(self, state: State) -> None:
        if self.estimate is None or not self.estimate.is_early(state):
            self.first, self.latest = self.first or state, state
            super().__call__(state)

    def speed(self, state: State) -> float:
        first = self.first or state
        worked = state.seconds - first.seconds
        return (state.n_probes - first.n_probes) / worked if worked > 0 else float("nan")


class TopFeatures:
    """Names of the features that rank first now."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self.names, self.best, self.due = names, list[int](), 0.0

    def __call__(self, state: State, *, is_last: bool = False) -> list[str]:
        started = time.perf_counter()
        if is_last or started >= self.due:
            scores = state.tally.daf0() if state.current_scores is None else state.current_scores()
            self.best = positions(scores).argsort()[:TOP].tolist()
            now = time.perf_counter()
            self.due = now + PAUSE * (now - started)
        return [shown(self.names[feature]) if self.names is not None else str(feature) for feature in self.best]


def one_line(progress_state: ProgressState, speed: float) -> str:
    state, left = progress_state.state, progress_state.seconds_left
    parts = [
        f"{progress_state.title}: {state.n_probes:,} probes",
        f"{speed:,.0f}/s" if speed == speed else "",
        f"{state.seconds:.0f} s",
        f"{progress_state.share:.0%} done, about {span(left)} left" if left else "",
        f"top: {', '.join(progress_state.top[:LINE_TOP])}",
    ]
    return ", ".join(filter(None, parts))


def panel(progress_state: ProgressState, speed: float) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    state, look, left = progress_state.state, progress_state.state.look, progress_state.seconds_left
    done = f"{progress_state.share:.0%} done, about {span(left)} left" if left else ""
    speeds = f"{speed:,.0f} probes/s", f"{state.seconds:.1f} s", done
    table.add_row(f"[bold]{progress_state.title}", f"{state.n_probes:,} probes", *speeds)
    measures = "waiting for the first look"
    if look and look.value_change == look.value_change:
        agreement = "".join(f", two halves agree on {share:.0%} of the top {k}" for k, share in look.overlap.items())
        measures = f"mean change of the scores: {look.relative_change:.1%} of the first look{agreement}"
    grid = Table.grid()
    grid.add_row(table)
    grid.add_row(f"[dim]{measures}")
    grid.add_row(Text.assemble(("top now: ", "dim"), ", ".join(progress_state.top)))
    return grid


@contextmanager
def _logged_to(console: object) -> Iterator[None]:
    """Print log messages of the library above the live display."""
    from rich.logging import RichHandler

    log = logging.getLogger("probewise")
    handler = RichHandler(console=console, show_time=False, show_level=False, show_path=False)  # type: ignore[arg-type]
    propagate, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagate
