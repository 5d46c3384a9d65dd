"""What tests share: the real data sets, where they are at hand."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile(
    "compiled", deadline=None, derandomize="CI" in os.environ
)  # a first example may wait for a kernel to be compiled
settings.load_profile("compiled")

DATA = Path(os.environ.get("PROBEWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))


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
