"""The four papers again: their settings, their published numbers, and a runner for each on public names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from ..datasets import load
from ..validation.errors import Parameter, ParameterError
from . import daf_2011, daf_2013, efs_2004, fsdd_2008
from .base import Outcome, departures, versions
from .work import Elapsed, Reproduction, unit_seconds

__all__ = ["PAPERS", "Outcome", "reproduce"]

PAPERS: dict[str, Any] = {module.NAME: module for module in (daf_2011, daf_2013, efs_2004, fsdd_2008)}


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
    """A paper's tables and figures, as published and as they come out here.

    Parameters
    ----------
    paper : str
        One of `PAPERS`.
    data : path-like, default=None
        The folder that holds the data sets as .npz files; None: the environment variable PROBEWISE_DATA.
    out : path-like, default=None
        A folder for the results, made if need be. Finished parts are kept there too: the same call again goes on where
        it was ended. None: nothing is written.
    profile : {"quick", "full"}, default="quick"
        Minutes, or the paper's counts.
    n_jobs : int, default=None
        Workers; the numbers (seconds excepted) are the same for any number of them.
    seed : int, default=0
        Decides splits and everything drawn.
    progress : callable, default=None
        Called with a line on where it stands.
    openml : bool, default=False
        Fetch data sets that are not in the folder from OpenML, where it has them.
    device : str, default="cpu"
        Where the DAF papers' probes are scored, as in `DAF`. A full run: half an hour on a GPU, a day on two cores.
    only : sequence of str, default=()
        Parts to be made, of a paper that has them (``daf_2011.PARTS``): what ``out`` holds of others stays there.

    Returns
    -------
    Outcome
        Cells (published, ours), claims with their verdict, figures and settings.
    """
    if paper not in PAPERS:
        raise ValueError(f"paper={paper!r} is not known: choose one of {', '.join(PAPERS)}")
    module = PAPERS[paper]
    if profile not in module.PROFILES:
        raise ParameterError(
            Parameter("profile", profile), f" is not known: choose one of {', '.join(module.PROFILES)}"
        )
    parts = getattr(module, "PARTS", ())
    if not set(only) <= set(parts):
        remedy = f"choose some of {', '.join(parts)}" if parts else "this paper is made as a whole"
        raise ParameterError(Parameter("only", list(only)), f": {remedy}")
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    settings, elapsed = module.PROFILES[profile], Elapsed(folder, progress, only)
    source = partial(load, folder=data, openml=openml)
    outcome = module.run(Reproduction(settings, source, folder, n_jobs, seed, elapsed, device, only))
    elapsed("")
    said = {
        "paper": paper,
        "title": module.TITLE,
        "profile": profile,
        "seed": seed,
        "device": device,
        "seconds": round(elapsed.seconds, 1),
        "unit_seconds": round(unit_seconds(folder), 1),
        "versions": versions(),
    }
    outcome = replace(outcome, departures=departures(paper), settings=said | asdict(settings))
    if folder is not None and only:
        outcome = outcome.beside(folder, only)
    if hasattr(module, "over_sets"):
        outcome = outcome.claiming(module.over_sets(outcome.cells))
    return outcome if folder is None else outcome.write(folder)
