"""Kernels compiled in a process of their own, beside the one that has begun to rank and compiles others.

Only the first run with a version of the kernels needs it: `begin` leaves a mark beside what is compiled. Kernels are
called here with as little as they take, and nothing but them is imported: that would take seconds in either process.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..kernels import draw, inclusion, neighbors, scores, sums, votes
from ..kernels.jit import VERSION, elsewhere
from ..kernels.ridge_decisions import Fit, Problem, by_columns, decide
from ..kernels.ridge_left_out import predict_left_out


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


def compile_draws() -> None:
    """What makes probes."""
    seed, offsets = np.uint64(0), np.array([0, 1])
    draw.uniform_offsets(1, 1, seed, 0, 1)
    draw.uniform_indices(1, 1, seed, 0, offsets)


def compile_linear() -> None:
    """What `Linear` is made of where rows are left out one by one: fewer features than rows, and more."""
    n, most = 6, 9
    lines, no_gaps = _numbers(most, n), np.empty(0, np.int64)
    problems = [Problem(np.arange(n), np.arange(n + 1), 0, True)]
    fit = Fit(np.where(np.arange(n) % 2, 1.0, -1.0)[None], np.ones(n), 1.0)
    for size in (2, most):
        indices, offsets = np.arange(size, dtype=np.int32), np.array([0, size])
        decide(lines, indices, offsets, no_gaps, np.empty((1, 0)), problems, fit, np.empty((1, n, 1)))


def compile_neighbors() -> None:
    """What `KNN` is made of for many rows."""
    (_vote_by_integers if neighbors.INTEGERS_AVAILABLE else _vote_probes)(n=64, size=8, k=3)


def _vote_by_integers(n: int, size: int, k: int) -> None:
    width, padded = size // 2, n + 2 * neighbors.BLOCK
    wholes, packed = np.zeros(2 * padded * width, np.int16), np.zeros(padded * width, np.int32)
    squares, products = np.zeros(padded, np.int32), np.empty(neighbors.TILE * padded, np.float32)
    fold_end, truth = np.repeat([n // 2, n], n // 2), ((np.arange(n) % 2).astype(np.float64), 2, scores.ACCURACY)
    neighbors.vote_by_integers(
        _numbers(n, size), np.zeros(size), 100.0, 0.1, fold_end, np.arange(n), k, truth, np.empty(n),
        wholes, packed, squares, products, neighbors.room_to_work(n, k, np.float32),
    )  # fmt: skip


def _vote_probes(n: int, size: int, k: int) -> None:
    lines, middles, reach, is_whole = _numbers(size, n), np.empty(size), np.empty(size), np.empty(size, bool)
    votes.extents(lines, middles, reach, is_whole)
    probe = np.arange(size, dtype=np.int32), np.array([0, size])
    train = np.append(np.arange(n // 2, n), np.zeros(votes.ROWS, np.int64))
    folds = np.array([0, n // 2]), np.array([0, n // 2]), train, False
    keys, targets = np.append(np.arange(n), np.zeros(votes.WIDEST, np.int64)), (np.arange(n) % 2).astype(np.float64)
    truth, precision = (targets, keys, np.arange(n), 2, scores.ACCURACY), np.array([1e-7, 1e-38], np.float32)
    votes.vote_probes((lines, middles, reach, is_whole), probe, folds, k, truth, precision, np.empty((1, n // 2)))


def compile_rest() -> None:
    """What a ranking comes to later: predictions and their scores, and sums over probes."""
    measure, n_classes, borders, groups, shares = scores.PROBABILITY, 2, np.array([0, 1]), np.zeros(1, int), np.ones(1)
    truth, predicted, no_weights = np.zeros(1), np.zeros((1, 1)), np.empty(0)
    predict_left_out(np.zeros((1, 1, 1)), borders, np.ones((1, 2), bool), truth, measure, n_classes, predicted)
    asked = measure, truth, predicted, no_weights, n_classes, borders
    scores.score_probes(*asked, groups, shares, np.zeros((1, 1)), np.empty(1))
    indices, offsets, values, table = np.zeros(1, np.int32), np.array([0, 1]), np.ones(1), np.zeros((1, 3))
    sums.round_to_levels(np.ones(1, np.float32), 0.0, 1.0, np.empty(1, np.uint16))
    sums.add_probes(table, np.zeros(3), indices, offsets, values)
    sums.renew_differences(table, 1.0, 1.0, np.empty(1))
    sums.mean_differences(table, 1, 1.0, np.empty(1))
    sums.add_rows(table, np.zeros(1, int), indices, offsets, np.ones((1, 1)))
    inclusion.number_columns(np.zeros(1, int), np.ones(1, bool), 1, np.empty(1, np.int32), np.ones(1))
    inclusion.fill_columns(indices, offsets, offsets, 0, 1, np.empty(1, np.int32))
    inclusion.summed(offsets, indices, 0, 1, values, np.empty(1))
    inclusion.times(indices, offsets, 0, 1, values, np.empty(1))


def _numbers(*shape: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).standard_normal(shape)


COMPILED = {
    "draws": compile_draws,
    "linear": compile_linear,
    "neighbors": compile_neighbors,
    "rest": compile_rest,
}
KERNELS: dict[str, tuple[str, ...]] = {  # worth waiting for
    "draws": ("uniform_offsets", "uniform_indices"),
    "linear": ("by_columns", "by_rows"),
    "neighbors": ("vote_by_integers",),
    "rest": (),
}

if __name__ == "__main__":
    gc.disable()  # it lives for seconds
    for name in sys.argv[1:]:
        COMPILED[name]()
