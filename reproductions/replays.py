"""DAF runs made once and kept in files, and rankings read from them."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.base import clone

from probewise._selector import Selector
from probewise.daf import DAF
from probewise.engine.fingerprints import fingerprint
from probewise.engine.ledger import Ledger, LedgerInUse
from probewise.engine.loop import run_probes
from probewise.engine.run import Run
from probewise.stopping import MaxProbes

PATIENCE = 60.0  # seconds for others to have read the same run


@dataclass(frozen=True)
class Ledgers:
    """Files of DAF runs, each named by its data, how probes are drawn, and the seed; a longer run goes on with one."""

    folder: Path = field(repr=False)
    begun: Path | None = field(default=None, repr=False)  # where shorter runs are, of which copies go on

    def file(self, X: Any, y: Any, daf: DAF) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        drawn = daf.max_probe_size if daf.inclusion is None else f"{daf.inclusion:.6f}"
        file = self.folder / f"{fingerprint(X, y)}-{drawn}-{daf.random_state}.sqlite"
        if self.begun is not None and not file.exists() and (self.begun / file.name).exists():
            half = shutil.copyfile(self.begun / file.name, file.with_suffix(".copy"))
            half.replace(file)
        return file


class Replay(Selector):
    """Ranks by a coefficient of a DAF run, or of its first probes; the run is made once, kept in a file.

    So all coefficients and every shorter run cost one run, and an interrupted run goes on.
    """

    def __init__(
        self,
        daf: Any = None,
        *,
        ledgers: Any = None,
        coefficient: str = "daf0",
        n_probes: int | None = None,
        n_features_to_select: Any = None,
    ) -> None:
        self.daf = daf
        self.ledgers = ledgers
        self.coefficient = coefficient
        self.n_probes = n_probes
        self.n_features_to_select = n_features_to_select

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters except ``ledgers``: where the runs are stored does not change the results of a study."""
        return {name: value for name, value in super().get_params(deep).items() if name != "ledgers"}

    def __sklearn_clone__(self) -> Replay:
        parameters = {name: clone(value, safe=False) for name, value in self.get_params(deep=False).items()}
        return Replay(**parameters, ledgers=self.ledgers)

    def fit(self, X: Any, y: Any = None) -> Replay:
        X, y = self._checked(X, y)
        run = self.made(X, y)
        self.n_probes_ = self.n_probes or self.daf.stop.n_probes
        self.run_ = run if run.ledger.n_probes == self.n_probes_ else first_probes(run, self.n_probes_)
        self._rank_by(self.run_.coefficient(self.coefficient)[0])
        return self

    def made(self, X: Any, y: Any) -> Run:
        """The run, read from its file."""
        self.make(X, y)
        with opened(self.ledgers.file(X, y, self.daf)) as ledger:
            return Run.read(ledger)

    def make(self, X: Any, y: Any) -> None:
        """The run, unless its file holds all of it."""
        file = self.ledgers.file(X, y, self.daf)
        if file.exists():
            with opened(file) as ledger:
                if ledger.n_probes >= self.daf.stop.n_probes:
                    return
        if clone(self.daf).set_params(ledger=file).fit(X, y).run_.interrupted:
            raise KeyboardInterrupt


def opened(file: Path) -> Ledger:
    """A ledger, as soon as nobody else has it open: who makes runs ahead looks at those that workers read."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return Ledger(file)
        except LedgerInUse:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def first_probes(run: Run, n_probes: int) -> Run:
    """The run as it was after its first probes."""
    ledger = run.ledger.until(n_probes)
    return run_probes(run.plan, _nothing_to_score, stop=MaxProbes(n_probes), ledger=ledger)


def _nothing_to_score(subsets: Any) -> Any:
    raise RuntimeError("a replay scores no probe")
