"""A long run in short: what it keeps is 8 bytes a probe in memory and little more on disk, and nothing else grows."""

import gc
import time
import tracemalloc
import weakref

import pytest

from probewise.engine.ledger import Ledger
from probewise.engine.loop import run_probes
from probewise.engine.probes import ProbePlan
from probewise.executors import executor
from probewise.stopping import ORDER, VALUE, MaxProbes, MinCoverage, Rule

N_PROBES, N_FEATURES = 60_000, 2_000
THIRD = N_PROBES // 3


def game(subsets):
    return (subsets.indices[subsets.offsets[:-1]] % 97) / 97.0


class Scale(Rule):
    """Never stops; weighs the process at a third, two thirds and the end of the run."""

    watch = frozenset({ORDER, VALUE, 20})

    def __init__(self):
        self.held, self.objects, self.looks_known = {}, {}, set()

    def __call__(self, state):
        if state.n_probes % THIRD == 0:
            gc.collect()
            self.held[state.n_probes] = tracemalloc.get_traced_memory()[0]
            self.objects[state.n_probes] = len(gc.get_objects())
        self.looks_known.add(len(state.looks))
        return False


@pytest.fixture(scope="module")
def weighed(tmp_path_factory):
    path, scale = tmp_path_factory.mktemp("run") / "run.ledger", Scale()
    plan = ProbePlan(N_FEATURES, max_size=40, seed=1)
    tracemalloc.start()
    try:
        with Ledger(path, {"seed": 1}) as ledger:
            run = run_probes(plan, game, stop=scale | MaxProbes(N_PROBES), ledger=ledger)
    finally:
        tracemalloc.stop()
    assert run.tally.n_probes == N_PROBES
    return scale, path


@pytest.mark.slow
def test_memory_grows_by_the_ledgers_number_only(weighed):
    scale, _ = weighed
    grown = scale.held[N_PROBES] - scale.held[THIRD]
    assert grown <= 8 * 2 * THIRD + N_PROBES + 20_000  # an array that grows has an eighth of room ahead
    assert scale.looks_known == {0, 1, 2}


def test_objects_do_not_pile_up(weighed):
    scale, _ = weighed
    assert scale.objects[N_PROBES] - scale.objects[THIRD] <= 100


def test_a_probe_takes_ten_bytes_on_disk(weighed):
    _, path = weighed
    assert path.stat().st_size <= 10 * N_PROBES
    assert not path.with_name(f"{path.name}-wal").exists()
    with Ledger(path) as ledger:
        assert ledger.n_probes == N_PROBES


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_data_are_let_go_of_when_the_run_ends(n_jobs):
    """Blocks are in flight when the rule says enough: what joblib keeps of them must not keep the data."""

    class Game:
        def __call__(self, subsets):
            return game(subsets)

    data = Game()
    kept = weakref.ref(data)
    plan = ProbePlan(100, max_size=10, seed=1)
    gc.disable()
    try:
        run = run_probes(plan, data, stop=MinCoverage(20), map=executor(n_jobs), block_size=10, check_every=10)
        del data
        deadline = time.monotonic() + 20
        while kept() is not None and time.monotonic() < deadline:  # a worker may be at a block still
            time.sleep(0.01)
        assert kept() is None
    finally:
        gc.enable()
    assert run.tally.covers(20)
