"""A page about a run that goes on: how far it is, and its ranking so far; renewed until the report takes its place."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.progress import Glimpse, Rarely, shown
from ..engine.tally import positions
from .html import page_environment

FIRST, EVERY = 10.0, 60.0  # seconds
TOP = 30


class LivePage(Rarely[Glimpse]):
    """Writes a page about a run, headed by a question, now and then, when called with what the run shows of itself.

    The page asks the browser to load it again every minute.
    """

    def __init__(self, path: str | PathLike[str], question: str) -> None:
        super().__init__(EVERY, self.write)
        self.path, self.question = Path(path), question
        self.last = time.perf_counter() + FIRST - EVERY  # a run of seconds needs none

    def write(self, glimpse: Glimpse) -> None:
        """The page as of now; as a whole or not at all, and a disk that is full is told of by the report itself."""
        unfinished = self.path.with_name(f"{self.path.name}.part")
        with suppress(OSError):
            unfinished.write_text(self.render(glimpse), encoding="utf-8", errors="backslashreplace", newline="\n")
            os.replace(unfinished, self.path)

    def render(self, glimpse: Glimpse) -> str:
        template = page_environment().get_template("live.html")
        return str(template.render(question=self.question, every=int(EVERY), glimpse=glimpse, top=_top(glimpse)))


def _top(glimpse: Glimpse) -> list[tuple[str, float]]:
    """The best features so far, with how much more probes with them give than those with the average feature."""
    scores = glimpse.state.tally.daf0()
    known = scores[np.isfinite(scores)]
    best = positions(scores).argsort()[: min(TOP, len(known))]
    names: Any = glimpse.names or [f"x{column}" for column in range(len(scores))]
    return [(shown(names[column]), float(scores[column] - known.mean())) for column in best.tolist()]
