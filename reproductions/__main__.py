"""Command line of the reproductions: python -m reproductions [data | article] PAPER [options]."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from probewise.datasets import FOLDER_VARIABLE
from probewise.progress import live_line

from . import PAPERS, experiment, reproduce
from .data import prepare
from .results import print_outcome, write_article

INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """The options, named like the parameters of `reproduce`."""
    options = argparse.ArgumentParser(
        prog="python -m reproductions",
        usage="python -m reproductions [data | article] PAPER [options]",
        description="Repeat the experiments of a paper and judge its claims. After an interruption the same command "
        "continues the run. 'data PAPER' fetches and verifies the data sets; 'article PAPER' writes the page of the "
        "docs site from the stored results.",
    )
    add = options.add_argument
    add("words", nargs="+", metavar="PAPER", help=f"a paper: {', '.join(PAPERS)}")
    add("--data", type=Path, metavar="DIR", help=f"folder of data sets, as .npz files (default: ${FOLDER_VARIABLE})")
    add("--full", action="store_true", help="as many repetitions as the rules ask for (default: a quick run)")
    add("--out", type=Path, metavar="DIR", help="folder for results and finished units (default: PAPER-quick or -full)")
    add("--seed", type=int, default=0, metavar="N", help="the same seed gives the same numbers (default: 0)")
    add("--device", default="cpu", help="where the probes of DAF are scored: cpu (default), cuda, cuda:1, ...")
    add("--n-jobs", type=int, metavar="N", help="number of worker processes")
    add("-q", "--quiet", action="store_true", help="print no progress")
    return options


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; return the exit code."""
    options = vars(parser().parse_args(arguments))
    quiet, (*task, paper) = options.pop("quiet"), options.pop("words")
    try:
        if task not in ([], ["data"], ["article"]):
            raise ValueError(f"{' '.join(task)!r} is not a task: give a paper, or 'data' or 'article' and a paper")
        experiment(paper)
        if task == ["data"]:
            folder = options["data"] or os.environ.get(FOLDER_VARIABLE)
            if folder is None:
                raise ValueError(f"give the folder for the data sets: --data DIR, or the variable {FOLDER_VARIABLE}")
            for line in prepare(paper, Path(folder)):
                print(line, flush=True)
        elif task == ["article"]:
            print("\n".join(str(path) for path in write_article(paper)))
        else:
            options["out"] = options["out"] or Path(f"{paper}-{'full' if options['full'] else 'quick'}")
            with live_line(0 if quiet else 1) as progress:
                outcome = reproduce(paper, **options, progress=progress)
            print_outcome(outcome)
            print(f"\nAll numbers, claims and figures are in {options['out']}.")
    except KeyboardInterrupt:
        print("interrupted: the same command continues the run", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, ImportError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
