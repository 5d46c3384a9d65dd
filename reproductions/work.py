"""Units of work of the reproductions, which are kept in a file: ended, a run goes on with those that are missing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from probewise import __version__
from probewise.datasets import Dataset
from probewise.executors import executor
from probewise.study import TrialLedger

Progress = Callable[[str], None] | None


def kept(folder: Path | None, name: str) -> Path | None:
    """The file of that name where finished units are kept; None where nothing is."""
    if folder is None:
        return None
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    return folder / "runs" / f"{name}.jsonl"


def unit_seconds(folder: Path | None) -> float:
    """How long the units kept there took, all together: more than the clock says where there were more workers."""
    runs = [] if folder is None else sorted((folder / "runs").glob("*.jsonl"))
    records = (json.loads(line) for run in runs for line in run.read_text(encoding="utf-8").splitlines()[1:])
    return sum(record.get("seconds", 0.0) for record in records)


class Elapsed:
    """Seconds by the clock of all calls that had a part in a run, of one that was killed up to its last line.

    Those of ``parts`` made alone are counted apart.
    """

    def __init__(self, folder: Path | None, progress: Progress = None, parts: Sequence[str] = ()) -> None:
        run = kept(folder, "-".join(["seconds", *parts]).lower().replace(" ", "-"))
        self.file = None if run is None else run.with_suffix(".txt")
        self.progress = progress
        text = self.file.read_text() if self.file is not None and self.file.exists() else ""
        self.before = max(map(float, text.split()), default=0.0)  # digits lost to a kill only make one smaller
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self.before + time.perf_counter() - self.started

    def __call__(self, line: str) -> None:
        """Write down the seconds, and pass the line on."""
        if self.file is not None:
            with self.file.open("a") as file:
                file.write(f"\n{self.seconds:.1f}")
        if self.progress:
            self.progress(line)


def least_seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Shortest of three run times."""
    taken = []
    for _ in range(3):
        started = clock()
        work()
        taken.append(clock() - started)
    return min(taken)


def _timed(work: Callable[[Any], Any], unit: Any) -> tuple[Any, float]:
    """Work of one worker: the result of a unit, and its run time."""
    started = time.perf_counter()
    return work(unit), time.perf_counter() - started


@dataclass(frozen=True)
class Reproduction:
    """Arguments of a paper's ``run``: a profile, and how to work. The numbers are the same for any ``n_jobs``."""

    settings: Any
    data: Callable[[str], Dataset]  # loads a data set by its name
    folder: Path | None = None  # where finished units are kept
    n_jobs: int | None = None
    seed: int = 0
    progress: Progress = None
    device: str = "cpu"  # where probes are scored
    only: Sequence[str] = ()  # parts of the paper to be made; all, where none is named

    def includes(self, part: str) -> bool:
        return not self.only or part in self.only

    def conduct(
        self,
        name: str,
        work: Callable[[Any], Any],
        units: Iterable[Hashable],
        settings: Mapping[str, Any],
        title: str,
        before: Callable[[Any], None] | None = None,
    ) -> dict[Any, Any]:
        """work(unit) for each unit, those in the file of that name excepted, which are read from it.

        A unit is a number, text or tuple of these, and what comes of it plain JSON; each is a pure function of the unit
        and the settings, so the results are the same for any number of workers, interrupted or not. A file of other
        settings is refused. ``seconds`` of the units are in the file. ``before`` is called here with each unit in turn,
        before any worker has one.
        """
        units = list(units)
        with TrialLedger(kept(self.folder, name), is_study=False) as file:
            file.begin(json.loads(json.dumps(settings, default=str)), notes={"version": __version__})
            done = {record["unit"]: record["result"] for record in file.trials.values()}
            missing = [unit for unit in units if json.dumps(unit) not in done]
            if before is not None:
                for now, unit in enumerate(missing, start=1):
                    before(unit)
                    self.tell(f"{title}: {now} of {len(missing)} prepared")
            found: Any = executor(self.n_jobs, prefer="processes")(partial(_timed, work), missing)
            started = time.perf_counter()
            with closing(found):
                for now, (unit, (result, seconds)) in enumerate(zip(missing, found, strict=True), start=1):
                    key, result = json.dumps(unit), json.loads(json.dumps(result))  # as it would be read again
                    file.append({"trial": len(file.trials), "unit": key, "seconds": seconds, "result": result})
                    done[key] = result
                    left = (time.perf_counter() - started) / now * (len(missing) - now)
                    self.tell(f"{title}: {len(units) - len(missing) + now} of {len(units)}, about {left:.0f} s left")
        return {unit: done[json.dumps(unit)] for unit in units}

    def tell(self, line: str) -> None:
        """Where it stands."""
        if self.progress:
            self.progress(line)


@contextmanager
def folder_of(reproduction: Reproduction) -> Iterator[Path]:
    """Where it is kept, or, where it is not, a temporary folder."""
    if reproduction.folder is not None:
        yield reproduction.folder
        return
    with TemporaryDirectory() as temporary:
        yield Path(temporary)
