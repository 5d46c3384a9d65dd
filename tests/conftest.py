"""Shared parts of the tests: the real data sets, and the cases of a matrix that are run every time."""

import os
from functools import partial
from itertools import chain
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:  # before numpy: threads of a worker that wait would spin on the other's core
    os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_CBWR", "AUTO")  # as the device "torch-cpu" has it; some tests use torch before

import numpy as np
import pytest
from hypothesis import settings

from sampling import covering

QUICK = settings(max_examples=15, deadline=None, derandomize="CI" in os.environ)  # kernels compile: no deadline
settings.register_profile("quick", QUICK)
settings.register_profile("thorough", QUICK, max_examples=100)
DATA = Path(os.environ.get("PROBEWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def pytest_configure(config):
    settings.load_profile("quick" if "not exhaustive" in config.getoption("markexpr") else "thorough")


@pytest.fixture(scope="session", autouse=True)
def kernels(tmp_path_factory):
    """Kernels that are compiled before the first test, where several workers run the tests."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        from compiling import share_compilation  # only here: the process that starts the workers needs no kernels

        share_compilation(tmp_path_factory.getbasetemp().parent)


@pytest.fixture(scope="session")
def real_data():
    """A loader of the real data sets; tests that use it are skipped where the folder is not there."""

    def load(name):
        path = DATA / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"the data set {name} is not at hand: set PROBEWISE_DATA to the folder that holds {name}.npz")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)

    return load


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    mark_cases_beyond_samples(items)
    yield  # cases are chosen by their marks
    items[:] = slow_ones_first(items)


def mark_cases_beyond_samples(items):
    """Mark the cases of each matrix beyond a covering sample as exhaustive: ``make test-all`` runs them too."""
    matrices = {}
    for item in items:
        if item.get_closest_marker("matrix"):
            matrices.setdefault(item.function, []).append(item)
    for cases in matrices.values():
        kept = covering([parameters(case) for case in cases], **cases[0].get_closest_marker("matrix").kwargs)
        for place, case in enumerate(cases):
            if place not in kept:
                case.add_marker("exhaustive")


def parameters(case):
    """A value identifies itself; checks of scikit-learn are identified by their functions."""
    values = case.callspec.params.values()
    return [id(value.func if isinstance(value, partial) else value) for value in values]


def slow_ones_first(items):
    """Slow tests at the start of each worker's share of the list, so that no worker is left with one at the end."""
    n_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0"))
    slow = [item for item in items if item.get_closest_marker("slow")]
    quick = [item for item in items if not item.get_closest_marker("slow")]
    shares = [share(tests, worker, n_workers) for worker in range(n_workers) for tests in (slow, quick)]
    return list(chain(*shares)) or items


def share(tests, worker, n_workers):
    return tests[len(tests) * worker // n_workers : len(tests) * (worker + 1) // n_workers]


def pytest_terminal_summary(terminalreporter):
    """How large the matrix of odd and bad input was, where it was run."""
    counts = {
        outcome: sum(
            report.when == "call" and "test_bad_input.py" in report.nodeid
            for report in terminalreporter.getreports(outcome)
        )
        for outcome in ("passed", "failed")
    }
    if any(counts.values()):
        terminalreporter.write_line(
            f"input matrix: {counts['passed']:,} cases of odd or bad input with the right answer or a clear error, "
            f"{counts['failed']:,} without"
        )
