"""Fixtures of the command-line tests: a small table, and helpers that run a command and check its exit code."""

import signal

import numpy as np
import polars as pl
import pytest

from probewise.cli import run
from probewise.datasets import make_madelon


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A small Madelon table with text labels, as CSV."""
    madelon = make_madelon(90, 30, random_state=0)
    path = tmp_path_factory.mktemp("data") / "madelon.csv"
    labels = pl.Series(np.where(madelon.y == 1, "yes", "no"))
    pl.from_numpy(madelon.X, schema=madelon.feature_names, orient="row").with_columns(label=labels).write_csv(path)
    return path


@pytest.fixture
def sigint():
    """Children receive SIGINT even if this process ignores it, as processes in the background do."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def succeed(capfd):
    """A function that runs a command, checks its exit code, and returns the captured output."""

    def succeed(*arguments, code=0):
        capfd.readouterr()
        assert run([str(argument) for argument in arguments]) == code
        return capfd.readouterr()

    return succeed


@pytest.fixture
def refuse(capfd):
    """A function that runs a command, checks that it fails with one line, and returns that line."""

    def refuse(*arguments):
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        printed = capfd.readouterr()  # of the file descriptors: libraries must not print anything either
        assert (code, printed.out, printed.err.count("\n")) == (2, "", 1), printed.err
        assert printed.err.startswith("probewise: ")
        assert "Traceback" not in printed.err
        return printed.err

    return refuse
