"""Faults that once occurred on a GPU: ties, shared memory, other rankings than on the CPU, and a slow first tournament.

``python -m benchmarks device --only PART``, where PART is

- ``equal``: J on the GPU and on the CPU, for many settings, and whether J depends on the other subsets of a batch;
- ``sparse``: tables that are mostly zero or full of ties;
- ``agree``: how many of the top 20 features of a tournament on noise are those of the CPU;
- ``memory``: reserved memory, limits on memory, fifteen processes, and the first tournament without cached kernels;
- ``pairs``: the scan of all pairs of 100,000 columns.

Each line is printed at once. A part ends after two minutes, ``memory`` after four.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import product

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import ShuffleSplit

from probewise import DAF, Tournament
from probewise.criteria import KNN, Average, Linear
from probewise.criteria.device import to_device
from probewise.engine.probes import ProbePlan
from probewise.inference import pairs
from probewise.stopping import MaxProbes

DEVICE = os.environ.get("PROBEWISE_DEVICE", "cuda")
LIMIT = 100  # seconds after which the rest of a part is left out
SHAPES = [
    (300, 20_000), (2000, 100_000), (100, 5000), (50, 1000), (600, 20_000), (1000, 4000), (150, 40), (2000, 20_000),
]  # fmt: skip
MANY_CELLS = 10_000_000  # larger tables get a run of DAF: the filters of a tournament would take most of the time


def equal(seed, small):
    """Compare J with that of the CPU, in one batch and subset by subset."""
    rng, started, n_cases, wrong, largest = np.random.default_rng(seed), time.perf_counter(), 0, [], 0.0
    criteria = [KNN(1), KNN(3), KNN(10), KNN(32), Linear(), Average((KNN(10), Linear()))]
    shapes = [(60, 30), (130, 300), (600, 40), (1100, 200)][: 2 if small else None]
    kinds = ["normal", "whole numbers", "two values", "mostly zero", "float32", "any units", "sparse"]
    splits = [3, "loo", ShuffleSplit(2, random_state=0)]
    cases = list(product(shapes, kinds, (0, 2, 3), criteria, splits, (None, "probability")))
    for number in rng.permutation(len(cases)).tolist()[: 60 if small else None]:
        shape, kind, n_classes, criterion, cv, scoring = cases[number]
        if (scoring and not n_classes) or time.perf_counter() - started > LIMIT:
            continue
        X, y = _table(rng, *shape, kind), rng.permutation(np.arange(shape[0]) % max(n_classes, 2))
        y = y if n_classes else rng.standard_normal(shape[0])
        subsets = ProbePlan(shape[1], min(100, shape[1]), seed=number).draw(0, 20)
        bound = criterion.bind(X, y, cv, scoring=scoring)
        on_device, expected = to_device(bound, DEVICE), bound(subsets)
        name = f"{criterion!r}, {shape}, {kind}, {n_classes} classes, cv={cv}, scoring={scoring}"
        n_cases += 1
        try:
            ours = on_device(subsets)
            one_by_one = [on_device(subsets.only(np.arange(20) == number))[0] for number in (0, 7, 19)]
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:100]}")
            continue
        off = float(np.abs(ours - expected).max())
        if not (ours[[0, 7, 19]] == one_by_one).all():
            wrong.append(f"{name}: J depends on the batch, by {np.abs(ours[[0, 7, 19]] - one_by_one).max():.2g}")
        # The accuracy of a linear model may differ by a row where a decision is a tie within rounding.
        if n_classes and not scoring:
            is_wrong = off > (0 if isinstance(criterion, KNN) else 1.5 / shape[0])
        else:
            largest = max(largest, off)
            is_wrong = off > 2e-6
        if is_wrong:
            wrong.append(f"{name}: J differs by {off:.2g}")
    print(f"equal: {n_cases} cases, {len(wrong)} wrong, largest difference of J {largest:.2g}")
    print(*wrong[:20], sep="\n")


def _table(rng, n_rows, n_features, kind):
    if kind == "normal":
        return rng.standard_normal((n_rows, n_features))
    if kind == "float32":
        return rng.standard_normal((n_rows, n_features), dtype=np.float32)
    if kind == "any units":
        return rng.standard_normal((n_rows, n_features)) * 10.0 ** rng.integers(-6, 7, n_features)
    if kind == "whole numbers":
        return rng.integers(0, 5, (n_rows, n_features)).astype(np.float32)
    if kind == "two values":
        return rng.integers(0, 2, (n_rows, n_features)).astype(np.float32)
    if kind == "all zero but one":
        X = np.zeros((n_rows, n_features), np.float32)
        X[:, 0] = rng.standard_normal(n_rows)
        return X
    n_words = max(n_rows, int(0.005 * n_rows * n_features))  # 0.5% of the cells
    cells = rng.integers(0, n_rows, n_words), rng.integers(0, n_features, n_words)
    words = sp.csr_matrix((rng.integers(1, 4, n_words).astype(np.float64), cells), shape=(n_rows, n_features))
    return words if kind == "sparse" else words.toarray()


def sparse(seed, small):
    """Compare J of k-NN with the CPU, and run a tournament or DAF; each line must say that J is the same."""
    rng, started = np.random.default_rng(seed), time.perf_counter()
    tables = [
        *((f"sp.random, {density:.1%}", sp.random(*shape, density=density, random_state=rng, format="csr"))
          for shape, density in (((100, 5000), 0.01), ((300, 20_000), 0.005))),
        *((kind, shape) for shape in SHAPES for kind in ("sparse", "mostly zero", "two values", "all zero but one")),
    ]  # fmt: skip
    for kind, table in tables[: 6 if small else None]:
        shape = table if isinstance(table, tuple) else table.shape
        line = f"{shape[0]:,} x {shape[1]:,}, {kind}"
        if time.perf_counter() - started > LIMIT:
            print(f"{line}: left out for want of time", flush=True)
            continue
        X = _table(rng, *shape, kind) if isinstance(table, tuple) else table
        y, is_large = np.arange(shape[0]) % 2, shape[0] * shape[1] > MANY_CELLS
        bound, subsets = KNN(3).bind(X, y, 3), ProbePlan(shape[1], 100, seed=seed).draw(0, 60)
        jobs = {
            "J": lambda bound=bound, subsets=subsets: np.array_equal(bound(subsets), to_device(bound, DEVICE)(subsets)),
            "k-NN": lambda X=X, y=y, is_large=is_large: _fit(X, y, is_large, criterion="knn"),
            "default": lambda X=X, y=y, is_large=is_large: _fit(X, y, is_large),
        }
        print(f"{line}: {', '.join(f'{name} {_outcome(job)}' for name, job in jobs.items())}", flush=True)


def _fit(X, y, is_large, **options):
    started = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        if is_large:
            DAF(20, stop=MaxProbes(2000), device=DEVICE, random_state=0, **options).fit(X, y)
        else:
            Tournament(20, n_probes=2000, device=DEVICE, random_state=0, **options).fit(X, y)
    return f"{time.perf_counter() - started:.1f} s"


def _outcome(job):
    try:
        outcome = job()
    except Exception as error:
        return f"FAILED ({type(error).__name__}: {str(error).splitlines()[0][:150]})"
    return {True: "same", False: "DIFFERENT"}.get(outcome, outcome)


def agree(seed, small):
    """Compare the top 20 features of tournaments on noise."""
    for number in range(3):
        rng = np.random.default_rng([seed, number])
        X, y = rng.standard_normal((100, 500 if small else 20_000), dtype=np.float32), np.arange(100) % 2
        options = {"n_probes": 600 if small else "auto", "random_state": 0}
        started = time.perf_counter()
        cpu = Tournament(20, **options, n_jobs=-1).fit(X, y)
        middle = time.perf_counter()
        gpu = Tournament(20, **options, device=DEVICE).fit(X, y)
        seconds = middle - started, time.perf_counter() - middle
        first = cpu.run_.settings.schedule.ends[0]
        off = np.abs(cpu.run_.ledger.values()[:first] - gpu.run_.ledger.values()[:first]).max()
        print(
            f"agree, noise {X.shape[0]} x {X.shape[1]:,}: {(cpu.support_ & gpu.support_).sum()} of the top 20 shared, "
            f"{(cpu.ranking_ == gpu.ranking_).mean():.0%} of all ranks the same, J of the first round differs by "
            f"{off:.1g}; CPU {seconds[0]:.1f} s, GPU {seconds[1]:.1f} s",
            flush=True,
        )


ONE_FIT = """
import json, sys, time, numpy as np, torch
from probewise import Tournament
fraction, n_fits, device = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
on_gpu = torch.cuda.is_available() and device.startswith("cuda")
if on_gpu and fraction < 1:
    torch.cuda.set_per_process_memory_fraction(fraction)
rng = np.random.default_rng(0)
X, y = rng.standard_normal((1000, int(sys.argv[5])), dtype=np.float32), np.arange(1000) % 2
seconds = []
for _ in range(n_fits):
    started = time.perf_counter()
    fitted = Tournament(20, n_probes=int(sys.argv[4]), device=device, random_state=0).fit(X, y)
    seconds.append(time.perf_counter() - started)
names = "max_memory_allocated", "max_memory_reserved", "memory_reserved"
gib = [getattr(torch.cuda, name)() / 2**30 if on_gpu else 0 for name in names]
print(json.dumps([fitted.ranking_.tolist(), *gib, seconds[0], seconds[-1]]))
"""


def memory(seed, small):
    """Each line must say that the ranking is the same; most reserved memory should be below 1.5 times the peak."""
    del seed
    n_probes, n_features = ("40", "50") if small else ("20000", "5000")
    started, expected = time.perf_counter(), None

    def start(fraction, n_fits, triton_folder, numba_folder):
        folders = {"TRITON_CACHE_DIR": triton_folder, "NUMBA_CACHE_DIR": numba_folder}
        arguments = [sys.executable, "-c", ONE_FIT, str(fraction), str(n_fits), DEVICE, n_probes, n_features]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": os.environ | folders}
        return subprocess.Popen(arguments, **options)

    with tempfile.TemporaryDirectory() as folder:
        numba, triton, empty = (f"{folder}/{name}" for name in ("numba", "triton", "empty"))
        cases = [
            ("no cached kernels of Triton or numba", [(1, 1, triton, numba)]),
            ("no cached kernels of Triton", [(1, 1, empty, numba)]),
            ("five fits", [(1, 5, triton, numba)]),
            ("fifteen processes", [(1, 1, triton, numba)] * (2 if small else 15)),
            ("5% of the memory", [(0.05, 1, triton, numba)]),
            ("2% of the memory", [(0.02, 1, triton, numba)]),
            ("1% of the memory", [(0.01, 1, triton, numba)]),
        ]
        for name, processes in cases:
            running = [start(*arguments) for arguments in processes]
            outputs = []
            for process in running:
                try:
                    outputs.append(process.communicate(timeout=max(1, started + 2 * LIMIT - time.perf_counter())))
                except subprocess.TimeoutExpired:
                    process.kill()
                    outputs.append((process.communicate()[0], "Error: left out for want of time"))
            failed = [(err.strip().splitlines() or ["Error"])[-1][:200] for out, err in outputs if not out]
            done = [json.loads(out) for out, _ in outputs if out]
            expected = done[0][0] if expected is None and done else expected
            same = sum(ranking == expected for ranking, *_ in done)
            most = np.max([numbers[1:] for numbers in done], axis=0) if done else np.full(5, np.nan)
            print(
                f"memory, 1,000 x {n_features}, {name}: same ranking {same} of {len(running)}, peak {most[0]:.2f} GiB, "
                f"most reserved {most[1]:.2f}, reserved afterwards {most[2]:.2f}; first fit {most[3]:.1f} s, last "
                f"{most[4]:.1f} s{'; '.join(['', *failed[:2]])}",
                flush=True,
            )


def all_pairs(seed, small):
    """Find the two columns whose product decides the class."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 2000 if small else 100_000), dtype=np.float32)
    y = X[:, 7] * X[:, 11] > 0
    for device in (DEVICE, DEVICE):
        started = time.perf_counter()
        found = pairs(X, y, device=device, random_state=0, n_jobs=-1)
        seconds = time.perf_counter() - started
        print(f"pairs, {X.shape[0]} x {X.shape[1]:,}: {found.pairs.tolist()[:3]} in {seconds:.1f} s", flush=True)
