"""Command line of the reproductions: python -m reproductions PAPER [options]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from probewise.progress import live_line

from . import PAPERS, reproduce
from .printing import print_outcome

INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """The options, named like the parameters of `reproduce`."""
    options = argparse.ArgumentParser(
        prog="python -m reproductions",
        description="Repeat the experiments of a paper and print its tables, with the published numbers beside ours. "
        "After an interruption the same command continues where the run stopped.",
    )
    add = options.add_argument
    add("paper", metavar="PAPER", help=f"one of {', '.join(PAPERS)}")
    add("--data", type=Path, metavar="DIR", help="folder of data sets, as .npz files (default: $PROBEWISE_DATA)")
    add("--openml", action="store_true", help="fetch data sets that are not in the folder from OpenML, if it has them")
    add("--profile", default="quick", help="quick: minutes (default); full: as many repetitions as in the paper")
    add("--full", dest="profile", action="store_const", const="full", help="short for --profile full")
    add("--only", action="append", default=[], metavar="PART", help="one part of daf-2011; may be repeated")
    add("--out", type=Path, metavar="DIR", help="folder for results and finished parts (default: PAPER-PROFILE)")
    add("--seed", type=int, default=0, metavar="N", help="the same seed gives the same numbers (default: 0)")
    add("--device", default="cpu", help="where the probes of DAF are scored: cpu (default), cuda, cuda:1, ...")
    add("--n-jobs", type=int, metavar="N", help="number of worker processes")
    add("-q", "--quiet", action="store_true", help="print the tables and nothing else")
    return options


def run(arguments: Sequence[str]) -> int:
    """Run the reproduction that the arguments name; return the exit code."""
    options = vars(parser().parse_args(arguments))
    quiet, paper = options.pop("quiet"), options.pop("paper")
    options["out"] = options["out"] or Path(f"{paper}-{options['profile']}")
    try:
        with live_line(0 if quiet else 1) as progress:
            outcome = reproduce(paper, **options, progress=progress)
    except KeyboardInterrupt:
        print("interrupted: the same command continues the run", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, ImportError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print_outcome(outcome)
    if not quiet:
        print(f"in {options['out']}: {', '.join(path.name for path in outcome.files)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
