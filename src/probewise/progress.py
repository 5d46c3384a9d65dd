"""Long work shows itself: probes, speed, time, C2 and the current top features, on standard error."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .stopping import State
from .tally import positions

if TYPE_CHECKING:
    from rich.table import Table

REFRESH_SECONDS = 0.25
LINE_SECONDS = 5.0
TOP = 8


@contextmanager
def live_progress(
    verbose: int, names: Sequence[str] | None = None, *, title: str = "DAF"
) -> Iterator[Callable[[State], None] | None]:
    """A callback for the engine that draws a live display, or a line now and then where there is no terminal."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Throttled(LINE_SECONDS, lambda state, speed: print(one_line(state, speed, names, title), file=sys.stderr))
        return
    with Live(console=console, transient=True, auto_refresh=False) as live, _logged_to(console):
        live.update(f"{title}: starting", refresh=True)
        yield Throttled(
            REFRESH_SECONDS, lambda state, speed: live.update(panel(state, speed, names, title), refresh=True)
        )


class Throttled:
    """Calls ``show`` at most once in so many seconds, with the speed since the start of this session."""

    def __init__(self, every: float, show: Callable[[State, float], None]) -> None:
        self.every, self.show = every, show
        self.last = time.perf_counter()
        self.first: State | None = None

    def __call__(self, state: State) -> None:
        if self.first is None:
            self.first = state
        now = time.perf_counter()
        if now - self.last >= self.every:
            self.last = now
            worked = state.seconds - self.first.seconds
            self.show(state, (state.n_probes - self.first.n_probes) / worked if worked > 0 else float("nan"))


def top_names(state: State, names: Sequence[str] | None, top: int = TOP) -> list[str]:
    scores = state.tally.daf0()
    best = positions(scores).argsort()[:top]
    return [_shown(names[feature]) if names is not None else str(feature) for feature in best.tolist()]


def _shown(name: str, longest: int = 40) -> str:
    """The name cut short, with what would disturb a terminal or a line spelled out."""
    name = name if len(name) <= longest else f"{name[: longest - 1]}…"
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name)


def one_line(state: State, speed: float, names: Sequence[str] | None, title: str) -> str:
    change = f", C2 {state.look.value_change:.2e}" if state.look else ""
    return (
        f"{title}: {state.n_probes:,} probes, {speed:,.0f}/s, {state.seconds:.0f} s{change}, "
        f"top: {', '.join(top_names(state, names, 5))}"
    )


def panel(state: State, speed: float, names: Sequence[str] | None, title: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    look = state.look
    table.add_row(f"[bold]{title}", f"{state.n_probes:,} probes", f"{speed:,.0f} probes/s", f"{state.seconds:.1f} s")
    measures = "waiting for the first looks"
    if look and look.value_change == look.value_change:
        measures = f"C2 {look.value_change:.2e} ({look.relative_change:.1%} of the first)"
        measures += "".join(f", halves share {share:.0%} of the top {k}" for k, share in look.overlap.items())
    grid = Table.grid()
    grid.add_row(table)
    grid.add_row(f"[dim]{measures}")
    grid.add_row(Text.assemble(("top now: ", "dim"), ", ".join(top_names(state, names))))
    return grid


@contextmanager
def _logged_to(console: object) -> Iterator[None]:
    """Messages of the library (kernels being compiled) above the live display, not through it."""
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


@contextmanager
def live_line(verbose: int) -> Iterator[Callable[[str], None] | None]:
    """A callback that shows where a search stands: one line, renewed, or a line now and then without a terminal."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Rarely(LINE_SECONDS, lambda line: print(line, file=sys.stderr))
        return
    with Live(console=console, transient=True, auto_refresh=False) as live, _logged_to(console):
        yield Rarely(REFRESH_SECONDS, lambda line: live.update(Text(line), refresh=True))


class Rarely:
    """Calls ``show`` at most once in so many seconds."""

    def __init__(self, every: float, show: Callable[[str], None]) -> None:
        self.every, self.show, self.last = every, show, float("-inf")

    def __call__(self, line: str) -> None:
        now = time.perf_counter()
        if now - self.last >= self.every:
            self.last = now
            self.show(line)
