"""The four papers again: their settings, their published numbers, and a runner for each on public names."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from ..checks.errors import Parameter, ParameterError
from ..datasets import load
from .base import Outcome, unit_seconds, versions

__all__ = ["PAPERS", "Outcome", "reproduce"]

PAPERS = {"daf-2011": "daf_2011", "daf-2013": "daf_2013", "efs-2004": "efs_2004", "fsdd-2008": "fsdd_2008"}


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
) -> Outcome:
    """A paper's tables and figures, as published and as they come out here.

    Parameters
    ----------
    paper : one of `PAPERS`.
    data : the folder that holds the data sets as .npz files; None: the environment variable PROBEWISE_DATA.
    out : a folder for the results, made if need be. Finished parts are kept there too: the same call again goes on
        where it was ended. None: nothing is written.
    profile : "quick", minutes, or "full", the paper's counts.
    n_jobs : workers; the numbers (seconds excepted) are the same for any number of them.
    seed : decides splits and everything drawn.
    progress : called with a line on where it stands.
    openml : fetch data sets that are not in the folder from OpenML, where it has them.

    Returns
    -------
    Outcome: cells (published, ours), claims with their verdict, figures and settings.
    """
    module = _module(paper)
    if profile not in module.PROFILES:
        raise ParameterError(
            Parameter("profile", profile), f" is not known: choose one of {', '.join(module.PROFILES)}"
        )
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    settings, started = module.PROFILES[profile], time.perf_counter()
    source = partial(load, folder=data, openml=openml)
    outcome: Outcome = module.run(settings, source, folder, n_jobs=n_jobs, seed=seed, progress=progress)
    outcome = outcome.with_settings(
        paper=paper,
        title=module.TITLE,
        profile=profile,
        seed=seed,
        seconds=round(time.perf_counter() - started, 1),
        unit_seconds=round(unit_seconds(folder), 1),
        versions=versions(),
    )
    return outcome if folder is None else outcome.write(folder)


def _module(paper: str) -> Any:
    if paper not in PAPERS:
        raise ValueError(f"paper={paper!r} is not known: choose one of {', '.join(PAPERS)}")
    name = f"{__name__}.{PAPERS[paper]}"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ValueError(f"the paper {paper} cannot be reproduced by this version of Probewise") from None
