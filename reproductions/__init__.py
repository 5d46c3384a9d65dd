"""Reproductions of four papers: rules, published numbers, experiments and results, a folder for each paper."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from probewise.datasets import Dataset, load
from probewise.validation.errors import ParameterError

from .judge import judge, rules
from .results import Outcome, cells, versions
from .work import Work, unit_seconds

__all__ = ["PAPERS", "reproduce"]

PAPERS = ("daf-2011", "daf-2013", "efs-2004", "fsdd-2008")


def experiment(paper: str) -> Any:
    """The module with the experiments of a paper."""
    if paper not in PAPERS:
        raise ValueError(f"paper={paper!r} is not known: choose one of {', '.join(PAPERS)}")
    return import_module(f".{paper.replace('-', '_')}.experiment", __name__)


def read(paper: str, data: str | PathLike[str] | None, name: str) -> Dataset:
    """A data set from the folder."""
    try:
        return load(name, data)
    except ParameterError as error:
        command = f"python -m reproductions data {paper} --data FOLDER"
        reason = f"{name}.npz is missing: name its folder with --data, or build it with {command}"
        raise ParameterError(reason) from error


def reproduce(
    paper: str,
    *,
    data: str | PathLike[str] | None = None,
    out: str | PathLike[str],
    full: bool = False,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: Any = None,
    device: str = "cpu",
) -> Outcome:
    """Repeat the experiments of a paper, judge its claims, and write the results and the finished units to ``out``.

    The parameters are the options of the command line; ``progress`` is called with a line about the state of the run.
    """
    module, folder = experiment(paper), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    settings = module.PROFILES["full" if full else "quick"]
    work = Work(settings, partial(read, paper, data), folder, not full, n_jobs, seed, device, progress)
    work.tell(f"{paper}: reading the data")
    how = {"paper": paper, "title": module.TITLE, "full": full, "seed": seed, "device": device}
    ours, evidence, pictures = module.run(work)
    how |= {"unit_seconds": round(unit_seconds(folder)), "versions": versions()} | asdict(settings)
    claims = judge(rules(paper), evidence, quick=not full)
    outcome = Outcome(paper, cells(paper, ours), claims, pictures, how)
    outcome.write(folder)
    return outcome
