"""Kernels compiled beside a first ranking are those that the ranking asks for, and are compiled once."""

import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest

from probewise.cli import precompile as ahead
from probewise.criteria import KNN, Linear
from probewise.engine.probes import Subsets
from probewise.kernels import draw, inclusion, neighbors, ridge_decisions, ridge_left_out, scores, sums, votes
from probewise.kernels.jit import Elsewhere
from probewise.tournament import Tournament


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


def signatures(*kernels):
    return {kernel.__name__: list(kernel.signatures) for kernel in kernels}


@pytest.mark.slow
@pytest.mark.parametrize("has_integers", sorted({False, neighbors.INTEGERS_AVAILABLE}))
def test_what_is_compiled_ahead_is_what_criteria_call(monkeypatch, has_integers):
    monkeypatch.setattr(neighbors, "INTEGERS_AVAILABLE", has_integers)
    for compile_some in ahead.COMPILED.values():
        compile_some()
    kernels = ridge_decisions.by_columns, ridge_decisions.by_rows, ridge_left_out.predict_left_out
    kernels = *kernels, neighbors.vote_by_integers, votes.vote_probes
    known = signatures(*kernels)
    X, y = np.random.default_rng(0).standard_normal((700, 20)), np.arange(700) % 2
    for table in (X, X.astype(np.float32)):
        Linear().bind(table[:9], y[:9], cv="loo", scoring="probability")(Subsets.of([[0, 1], np.arange(15)]))
        if has_integers or table is X:  # without integers each type of X has votes of its own
            KNN().bind(table, y)(Subsets.of([np.arange(12)]))
    assert signatures(*kernels) == known


@pytest.mark.slow
def test_what_is_compiled_ahead_is_what_a_ranking_calls():
    ahead.compile_draws()
    ahead.compile_linear()
    ahead.compile_rest()
    kernels = draw.uniform_offsets, draw.uniform_indices
    kernels = *kernels, ridge_decisions.by_columns, ridge_decisions.by_rows, ridge_left_out.predict_left_out
    kernels = *kernels, scores._score_by_rows, scores._add_outcomes, inclusion.fill_columns, inclusion.summed
    kernels = *kernels, inclusion.times, sums.round_to_levels, sums.add_probes, sums.add_rows, sums.mean_differences
    kernels = *kernels, sums.renew_differences
    known = signatures(*kernels)
    assert all(known.values())
    X, y = np.random.default_rng(0).standard_normal((60, 100)), np.arange(60) % 2
    Tournament(n_probes=2000, random_state=0, verbose=1).fit(X, y)
    assert signatures(*kernels) == known


def test_kernels_are_compiled_ahead_before_anything_else_is_imported():
    code = (
        "import sys, probewise.cli.precompile; print({'sklearn', 'scipy.sparse', 'typer', 'polars'} & {*sys.modules})"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told == "set()\n"


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
    assert [command[1:] for (command,) in started] == [["-m", "probewise.cli.precompile", "linear"]]
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
    subprocess.run([ahead.sys.executable, "-m", "probewise.cli.precompile", *ahead.COMPILED], check=True, timeout=300)
