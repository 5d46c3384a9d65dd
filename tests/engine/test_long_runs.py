"""Long runs: 8 bytes per probe in memory, 10 bytes on disk, and no other growth."""

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


def score(subsets):
    return (subsets.indices[subsets.offsets[:-1]] % 97) / 97.0


class MemoryMeter(Rule):
    """Never stops; measures memory at a third, two thirds and the end of the run."""

    watch = frozenset({ORDER, VALUE, 20})

    def __init__(self):
        self.n_bytes, self.n_objects, self.n_looks = {}, {}, set()

    def __call__(self, state):
        if state.n_probes % THIRD == 0:
            gc.collect()
            self.n_bytes[state.n_probes] = tracemalloc.get_traced_memory()[0]
            self.n_objects[state.n_probes] = len(gc.get_objects())
        self.n_looks.add(len(state.looks))
        return False


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    path, meter = tmp_path_factory.mktemp("run") / "run.ledger", MemoryMeter()
    plan = ProbePlan(N_FEATURES, max_size=40, seed=1)
    tracemalloc.start()
    try:
        with Ledger(path, {"seed": 1}) as ledger:
            run = run_probes(plan, score, stop=meter | MaxProbes(N_PROBES), ledger=ledger)
    finally:
        tracemalloc.stop()
    assert run.tally.n_probes == N_PROBES
    return meter, path


@pytest.mark.slow
def test_memory_grows_by_one_number_per_probe(measured):
    meter, _ = measured
    growth = meter.n_bytes[N_PROBES] - meter.n_bytes[THIRD]
    assert growth <= 8 * 2 * THIRD + N_PROBES + 20_000  # a growing array reserves an eighth of its size
    assert meter.n_looks == {0, 1, 2}


@pytest.mark.slow
def test_the_number_of_objects_does_not_grow(measured):
    meter, _ = measured
    assert meter.n_objects[N_PROBES] - meter.n_objects[THIRD] <= 100


def test_a_probe_takes_ten_bytes_on_disk(measured):
    _, path = measured
    assert path.stat().st_size <= 10 * N_PROBES
    assert not path.with_name(f"{path.name}-wal").exists()
    with Ledger(path) as ledger:
        assert ledger.n_probes == N_PROBES


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_data_are_released_at_the_end_of_a_run(n_jobs):
    """Blocks are still being computed when the rule stops the run; joblib must not keep the data alive."""

    class Score:
        def __call__(self, subsets):
            return score(subsets)

    data = Score()
    reference = weakref.ref(data)
    plan = ProbePlan(100, max_size=10, seed=1)
    gc.disable()
    try:
        run = run_probes(plan, data, stop=MinCoverage(20), map=executor(n_jobs), block_size=10, check_every=10)
        del data
        deadline = time.monotonic() + 20
        while reference() is not None and time.monotonic() < deadline:  # a worker may still compute a block
            time.sleep(0.01)
        assert reference() is None
    finally:
        gc.enable()
    assert run.tally.covers(20)
