"""Units of work that are stored as soon as they finish: an interrupted run continues with the missing units."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from probewise import __version__
from probewise.datasets import Dataset
from probewise.engine.fingerprints import fingerprint
from probewise.executors import executor
from probewise.progress import RateLimited
from probewise.study import TrialLedger


@dataclass(frozen=True)
class Work:
    """How a reproduction runs: its profile, its data, the folder of finished units, workers, seed and progress."""

    settings: Any
    data: Callable[[str], Dataset]
    folder: Path
    quick: bool = True
    n_jobs: int | None = None
    seed: int = 0
    device: str = "cpu"
    progress: Callable[[str], None] | None = None

    @property
    def runs(self) -> Path:
        path = self.folder / "runs"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def units(
        self, name: str, function: Callable[[Any], Any], units: Iterable[Hashable], data: Any, **settings: Any
    ) -> dict[Any, Any]:
        """Results of function(unit) for each unit; units that are in the file of that name are read from it.

        A unit is a number, a text or a tuple of these, and its result is plain JSON. Each result is a pure function of
        the unit, the data, the seed and the settings, so the results are the same for any number of workers,
        interrupted or not. A file made with other settings is refused. Each line contains the seconds of its unit.
        """
        units = list(units)
        header = {"seed": self.seed, "data": fingerprint(*data), **json.loads(json.dumps(settings, default=list))}
        with TrialLedger(self.runs / f"{name}.jsonl", is_study=False) as file:
            file.begin(header, notes={"version": __version__})
            done = {record["unit"]: record["result"] for record in file.trials.values()}
            missing = [unit for unit in units if json.dumps(unit) not in done]
            self.tell(f"{name}: {len(units) - len(missing)} of {len(units)} units are finished", now=True)
            results: Any = executor(self.n_jobs, prefer="processes")(partial(_timed, function), missing)
            started = time.perf_counter()
            with closing(results):
                for now, (unit, (result, seconds)) in enumerate(zip(missing, results, strict=True), start=1):
                    key, result = json.dumps(unit), json.loads(json.dumps(result, default=_plain))
                    file.append(
                        {"trial": len(file.trials), "unit": key, "seconds": round(seconds, 2), "result": result}
                    )
                    done[key] = result
                    left = (time.perf_counter() - started) / now * (len(missing) - now)
                    self.tell(f"{name}: {len(units) - len(missing) + now} of {len(units)}, about {left:.0f} s left")
        return {unit: done[json.dumps(unit)] for unit in units}

    def tell(self, line: str, *, now: bool = False) -> None:
        """Show a line of progress; the start of a part is shown even if the line before it is recent."""
        if self.progress:
            self.progress(line)
            if now and isinstance(self.progress, RateLimited):
                self.progress.finish()


def _timed(function: Callable[[Any], Any], unit: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    return function(unit), time.perf_counter() - started


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else list(value)


def accuracy(model: Any, X: Any, y: NDArray[Any], train: Any, test: Any) -> float:
    """Share of the test rows that a copy of the model, trained on the training rows, predicts correctly."""
    return float(np.mean(clone(model).fit(X[train], y[train]).predict(X[test]) == y[test]))


def unit_seconds(folder: Path) -> float:
    """Computing time of all stored units."""
    lines = (line for run in sorted((folder / "runs").glob("*.jsonl")) for line in run.read_text().splitlines()[1:])
    return sum(record.get("seconds", 0.0) for record in map(json.loads, lines))
