"""Kernels compiled beside a first ranking are those that the ranking asks for, and are compiled once."""

import subprocess
from typing import ClassVar

import numpy as np
import pytest

from probewise.cli import ahead
from probewise.criteria import KNN, Linear
from probewise.kernels import neighbors, ridge_decisions, ridge_left_out
from probewise.kernels.jit import Elsewhere
from probewise.probing.probes import Subsets


class Unstarted:
    """A thread that is only written down."""

    started: ClassVar[list] = []

    def __init__(self, *, target, args, kwargs, daemon):
        assert target is subprocess.run
        assert daemon
        self.args = args

    def start(self):
        self.started.append(self.args)

    def is_alive(self):
        return False


@pytest.mark.slow
def test_what_is_compiled_ahead_is_what_criteria_call():
    ahead.compile_linear()
    ahead.compile_neighbors()
    kernels = ridge_decisions.by_columns, ridge_decisions.by_rows, ridge_left_out.predict_left_out
    kernels = *kernels, neighbors.vote_by_integers
    known = [list(kernel.signatures) for kernel in kernels]
    X, y = np.random.default_rng(0).standard_normal((700, 20)), np.arange(700) % 2
    for table in (X, X.astype(np.float32)):
        Linear().bind(table[:9], y[:9], cv="loo", scoring="probability")(Subsets.of([[0, 1], np.arange(15)]))
        KNN().bind(table, y)(Subsets.of([np.arange(12)]))
    assert [list(kernel.signatures) for kernel in kernels] == known


def test_a_version_of_the_kernels_is_compiled_ahead_once(monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(ahead, "elsewhere", Elsewhere())
    monkeypatch.setattr(ahead.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(ahead.threading, "Thread", Unstarted)
    monkeypatch.setattr(Unstarted, "started", started)
    monkeypatch.setattr(ahead, "by_columns", type("Kernel", (), {"stats": type("Stats", (), {"cache_path": tmp_path})}))
    for _ in range(2):
        ahead.begin("linear")
    assert ahead.elsewhere.names == {"by_columns", "by_rows"}
    assert [command[1:] for (command,) in started] == [["-m", "probewise.cli.ahead", "linear"]]
    ahead.begin("linear", "neighbors")
    monkeypatch.setattr(ahead, "VERSION", "other")
    ahead.begin("linear")
    assert len(started) == 3


@pytest.mark.parametrize("folder", [None, "/proc/no folder to write in"])
def test_without_a_folder_for_it_nothing_is_compiled_ahead(monkeypatch, folder):
    monkeypatch.setattr(ahead.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(ahead.threading, "Thread", lambda **_: pytest.fail("started"))
    monkeypatch.setattr(ahead, "by_columns", type("Kernel", (), {"stats": type("Stats", (), {"cache_path": folder})}))
    ahead.begin()


@pytest.mark.exhaustive
def test_it_runs_as_a_process(tmp_path):
    subprocess.run([ahead.sys.executable, "-m", "probewise.cli.ahead", "linear", "neighbors"], check=True, timeout=300)
