"""Reproductions of four papers: settings, published numbers, experiments and results, a folder for each paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from probewise.datasets import load

from .base import Outcome, departures, versions
from .daf_2011 import experiment as daf_2011_experiment
from .daf_2013 import experiment as daf_2013_experiment
from .efs_2004 import experiment as efs_2004_experiment
from .fsdd_2008 import experiment as fsdd_2008_experiment
from .work import Elapsed, Reproduction, unit_seconds

__all__ = ["PAPERS", "Outcome", "reproduce"]

EXPERIMENTS = (daf_2011_experiment, daf_2013_experiment, efs_2004_experiment, fsdd_2008_experiment)
PAPERS: dict[str, Any] = {module.NAME: module for module in EXPERIMENTS}


def reproduce(
    paper: str,
    *,
    data: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    profile: str = "quick",
    n_jobs: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
    openml: bool = False,
    device: str = "cpu",
    only: Sequence[str] = (),
) -> Outcome:
    """Repeat the experiments of a paper and compare its tables and figures with ours.

    Parameters
    ----------
    paper : str
        One of `PAPERS`.
    data : path-like, default=None
        The folder that holds the data sets as .npz files; None: the environment variable PROBEWISE_DATA.
    out : path-like, default=None
        Folder for the results and the finished parts; it is created if necessary. After an interruption the same call
        continues where the run stopped. None: nothing is written.
    profile : {"quick", "full"}, default="quick"
        "quick" takes minutes; "full" uses as many repetitions as the paper.
    n_jobs : int, default=None
        Number of workers. Apart from run times, the numbers do not depend on it.
    seed : int, default=0
        Seed of the splits and of everything else that is random.
    progress : callable, default=None
        Called with a line of text about the state of the run.
    openml : bool, default=False
        Fetch data sets that are not in the folder from OpenML, where it has them.
    device : str, default="cpu"
        Device on which the probes of the DAF papers are scored, as in `DAF`. A full run takes half an hour on a GPU and
        a day on two cores.
    only : sequence of str, default=()
        Parts to run, for a paper that has parts (``daf_2011.experiment.PARTS``). The results of other parts in ``out``
        stay there.

    Returns
    -------
    Outcome
        Cells (published, ours), claims with their verdict, figures and settings.
    """
    if paper not in PAPERS:
        raise ValueError(f"paper={paper!r} is not known: choose one of {', '.join(PAPERS)}")
    module = PAPERS[paper]
    if profile not in module.PROFILES:
        raise ValueError(f"profile={profile!r} is not known: choose one of {', '.join(module.PROFILES)}")
    parts = getattr(module, "PARTS", ())
    if not set(only) <= set(parts):
        remedy = f"choose from {', '.join(parts)}" if parts else "this paper has no parts to choose from"
        raise ValueError(f"only={list(only)!r}: {remedy}")
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    settings, elapsed = module.PROFILES[profile], Elapsed(folder, progress, only)
    source = partial(load, folder=data, openml=openml)
    outcome = module.run(Reproduction(settings, source, folder, n_jobs, seed, elapsed, device, only))
    elapsed("")
    how = {
        "paper": paper,
        "title": module.TITLE,
        "profile": profile,
        "seed": seed,
        "device": device,
        "seconds": round(elapsed.seconds, 1),
        "unit_seconds": round(unit_seconds(folder), 1),
        "versions": versions(),
    }
    outcome = replace(outcome, departures=departures(paper), settings=how | asdict(settings))
    if folder is not None and only:
        outcome = outcome.beside(folder, only)
    if hasattr(module, "over_sets"):
        outcome = outcome.claiming(module.over_sets(outcome.cells))
    return outcome if folder is None else outcome.write(folder)
