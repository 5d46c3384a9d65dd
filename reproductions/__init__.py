"""Reproductions of four papers: rules, published numbers, experiments and results, a folder for each paper."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from probewise.datasets import load

from .results import Outcome, versions
from .work import Work, unit_seconds

__all__ = ["PAPERS", "reproduce"]

PAPERS = ("daf-2011", "daf-2013", "efs-2004", "fsdd-2008")


def experiment(paper: str) -> Any:
    """The module with the experiments of a paper."""
    if paper not in PAPERS:
        raise ValueError(f"paper={paper!r} is not known: choose one of {', '.join(PAPERS)}")
    return import_module(f".{paper.replace('-', '_')}.experiment", __name__)


def reproduce(
    paper: str,
    *,
    data: str | PathLike[str] | None = None,
    out: str | PathLike[str],
    full: bool = False,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: Any = None,
    openml: bool = False,
    device: str = "cpu",
) -> Outcome:
    """Repeat the experiments of a paper, judge its claims, and write the results.

    Parameters
    ----------
    paper : str
        One of `PAPERS`.
    data : path-like, default=None
        Folder with the data sets as .npz files; None: the environment variable PROBEWISE_DATA.
    out : path-like
        Folder for the results and the finished units; the same call continues an interrupted run.
    full : bool, default=False
        As many repetitions as the rules ask for; otherwise minutes, with fewer repetitions and probes.
    n_jobs : int, default=None
        Number of workers. Apart from run times, the numbers do not depend on it.
    seed : int, default=0
        Seed of the splits and of everything else that is random.
    progress : callable, default=None
        Called with a line of text about the state of the run.
    openml : bool, default=False
        Fetch data sets that are not in the folder from OpenML, if it has them.
    device : str, default="cpu"
        Device that scores the probes of DAF, as in `DAF`.

    Returns
    -------
    Outcome
        Numbers (published and ours), judged claims, figures and settings.
    """
    module, folder = experiment(paper), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    settings = module.PROFILES["full" if full else "quick"]
    source = partial(load, folder=data, openml=openml)
    work = Work(settings, source, folder, not full, n_jobs, seed, device, progress)
    work.tell(f"{paper}: reading the data")
    outcome = module.run(work)
    how = {"paper": paper, "title": module.TITLE, "full": full, "seed": seed, "device": device}
    how |= {"unit_seconds": round(unit_seconds(folder)), "versions": versions()} | asdict(settings)
    outcome = replace(outcome, settings=how)
    outcome.write(folder)
    return outcome
