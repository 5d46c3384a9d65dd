"""Kernels compiled in a process of their own, beside the one that has begun to rank and compiles others.

Only the first run with a version of the kernels needs it: `begin` leaves a mark beside what is compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np

from ..criteria import KNN, Linear
from ..kernels.jit import VERSION, elsewhere
from ..kernels.ridge_decisions import by_columns
from ..probing.probes import Subsets


def begin(*names: str) -> None:
    """Start it for some of `COMPILED`, unless this version has been compiled here; it ends by itself."""
    folder = by_columns.stats.cache_path
    if folder is None or (os.cpu_count() or 1) < 2:
        return
    mark = Path(folder) / f"compiled-{'-'.join([*names, VERSION])}"
    if mark.exists():
        return
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError:  # no place for a mark: all is compiled when it is needed
        return
    quiet, command = subprocess.DEVNULL, [sys.executable, "-m", __name__, *names]
    options = {"stdin": quiet, "stdout": quiet, "stderr": quiet, "check": False}
    other = threading.Thread(target=subprocess.run, args=(command,), kwargs=options, daemon=True)
    other.start()
    elsewhere.begin([kernel for name in names for kernel in KERNELS[name]], other.is_alive)


def compile_linear() -> None:
    """What `Linear` is made of where rows are left out one by one: fewer features than rows, and more."""
    _score(Linear(), n_rows=6, sizes=(2, 9), cv="loo", scoring="probability")


def compile_neighbors() -> None:
    """What `KNN` is made of for many rows."""
    _score(KNN(), n_rows=600, sizes=(8,))


def _score(criterion: KNN | Linear, n_rows: int, sizes: tuple[int, ...], **how: str) -> None:
    X, y = np.random.default_rng(0).standard_normal((n_rows, max(sizes))), np.arange(n_rows) % 2
    criterion.bind(X, y, **how).outcomes(Subsets.of([np.arange(size) for size in sizes]), np.arange(n_rows))


COMPILED = {"linear": compile_linear, "neighbors": compile_neighbors}
KERNELS = {"linear": ("by_columns", "by_rows"), "neighbors": ("vote_by_integers",)}  # worth waiting for

if __name__ == "__main__":
    for name in sys.argv[1:]:
        COMPILED[name]()
