"""Kernels of a ranking compiled in a process of their own, beside the one that has begun to rank and compiles others.

Only the first run with a version of the kernels needs it: `begin` leaves a mark beside what is compiled.
"""

import os
import platform
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np

from .jit import SOURCES
from .ridge_decisions import Fit, Problem, by_columns, decide
from .ridge_left_out import predict_left_out
from .scores import PROBABILITY


def begin() -> None:
    """Start it, unless this version has been compiled here; it ends by itself."""
    folder = by_columns.stats.cache_path
    if folder is None or (os.cpu_count() or 1) < 2:
        return
    mark = Path(folder) / f"compiled-{SOURCES}-{numba.__version__}-{platform.python_version()}"
    if mark.exists():
        return
    quiet = subprocess.DEVNULL
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError:  # no place for a mark: all is compiled when it is needed
        return
    command = [sys.executable, "-m", __name__]
    options = {"stdin": quiet, "stdout": quiet, "stderr": quiet, "check": False}
    threading.Thread(target=subprocess.run, args=(command,), kwargs=options, daemon=True).start()


def compile_linear() -> None:
    """What `Linear` is made of where rows are left out one by one: fewer features than rows, and more."""
    n_rows, sizes = 4, (2, 6)
    lines = np.arange(8.0 * n_rows).reshape(8, n_rows) % 7
    indices, offsets = np.arange(sum(sizes), dtype=np.int32), np.cumsum([0, *sizes])
    problem = Problem(np.arange(n_rows), np.arange(n_rows + 1), 0, True)
    fit = Fit(np.array([[1.0, -1.0, 1.0, -1.0]]), np.ones(n_rows), 1.0)
    decisions, predicted = np.empty((len(sizes), n_rows, 1)), np.empty((len(sizes), n_rows))
    decide(lines, indices, offsets, indices[:0].astype(np.int64), np.empty((0, 0)), [problem], fit, decisions)
    known, truth = np.ones((n_rows, 2), np.bool_), np.arange(n_rows) % 2.0
    predict_left_out(decisions, problem.borders, known, truth, PROBABILITY, 2, predicted)


if __name__ == "__main__":
    compile_linear()
