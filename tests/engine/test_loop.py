"""The laws: the answer depends on the seed and the settings, not on workers, interruptions or column order."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from itertools import pairwise

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from probewise import executors
from probewise.engine.ledger import Ledger
from probewise.engine.loop import run_probes
from probewise.engine.probes import ProbePlan
from probewise.engine.run import Run, RunningStats
from probewise.engine.schedule import Schedule, TournamentPlan
from probewise.engine.settings import Settings
from probewise.engine.tally import Tally, TallySheet
from probewise.engine.units import Units
from probewise.executors import executor, one_blas_thread, serial, silence_loky_shutdown, threads
from probewise.stopping import MaxProbes, MaxTime, MinCoverage, OrderChange, RelativeChange, Rule, Settled, ValueChange
from sampling import examples


def history(plan, ledger, **options):
    record = Settings(plan.seed, (1, plan.n_features), "a game", Units.of_features(plan.n_features), **options)
    return Run(plan, ledger, TallySheet(plan.n_features).view(), record).history


def additive_game(weights, subsets):
    return np.array([weights[subset].sum() for subset in subsets])


def slow_game(weights, seconds, subsets):
    time.sleep(seconds * len(subsets))
    return additive_game(weights, subsets)


def weights(n, seed=0):
    return np.random.default_rng(seed).uniform(size=n)


PLAN = ProbePlan(30, max_size=8, seed=11)
GAME = partial(additive_game, weights(30))


THOUSAND = MaxProbes(1000)


def run(stop=THOUSAND, **options):
    options.setdefault("block_size", 50)
    options.setdefault("check_every", 200)
    return run_probes(PLAN, GAME, stop=stop, **options)


def same_bits(a, b):
    return (
        a.ledger.values().tobytes() == b.ledger.values().tobytes()
        and a.tally.table.tobytes() == b.tally.table.tobytes()
        and (a.tally.n_probes, a.tally.total, a.tally.total_square, a.tally.shift, a.stop_reason)
        == (b.tally.n_probes, b.tally.total, b.tally.total_square, b.tally.shift, b.stop_reason)
    )


@pytest.mark.parametrize("at_once", [2, 3, 20])
@pytest.mark.parametrize("stop", [THOUSAND, MaxProbes(777), MinCoverage(40)], ids=str)
def test_blocks_scored_at_once_change_nothing(at_once, stop):
    whole, ledger = run(stop), Ledger()
    assert same_bits(whole, run(stop, blocks_at_once=at_once))
    run(MaxProbes(130), ledger=ledger)
    assert same_bits(whole, run(stop, blocks_at_once=at_once, ledger=ledger, map=partial(executors.keep_in_flight, 3)))


def test_blocks_at_once_end_with_the_round_and_fail_in_their_turn():
    seen = []

    def game(subsets):
        seen.append(len(subsets))
        return additive_game(weights(40), subsets)

    plan, schedule = TournamentPlan(40, max_size=8, seed=11), Schedule(600, (100, 250))
    options = {"stop": MaxProbes(600), "block_size": 50, "check_every": 50, "schedule": schedule}
    once = run_probes(plan, game, blocks_at_once=8, **options)
    assert seen == [100, 150, 150, 200]
    assert same_bits(once, run_probes(plan, game, **options))

    def failing(subsets):
        if any(3 in subset for subset in subsets):
            raise ValueError("three")
        return additive_game(weights(30), subsets)

    with_failures = {"stop": MaxProbes(200), "error_score": 0.0, "block_size": 50, "check_every": 200}
    alone, together = (run_probes(PLAN, failing, blocks_at_once=n, **with_failures) for n in (1, 4))
    assert same_bits(alone, together)
    assert alone.ledger.failures == together.ledger.failures


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_jobs"),
    [
        *(("threading", n) for n in (2, 4)),
        *(("multiprocessing", n) for n in (2, 4)),
        ("loky", 2),
        pytest.param("loky", 4, marks=pytest.mark.exhaustive),
    ],
)
def test_any_kind_and_number_of_workers_gives_the_same_bits(kind, n_jobs):
    rule = Settled(top=5, overlap=0.8) | MaxProbes(3000)
    with joblib.parallel_config(backend=kind):
        parallel = run(rule, map=executor(n_jobs))
    assert same_bits(run(rule), parallel)


@pytest.mark.parametrize("block_size", [1, 8, 200])
def test_the_length_of_a_block_changes_nothing(block_size):
    assert same_bits(run(), run(block_size=block_size))


stops = st.sampled_from(
    [MaxProbes(1), MaxProbes(777), MinCoverage(40), ValueChange(0.05), OrderChange(1.0), Settled(5, 0.8)]
)


@examples(25)
@given(stops, st.lists(st.integers(1, 900), min_size=1, max_size=3))
def test_stopped_and_resumed_equals_uninterrupted(tmp_path_factory, stop, stages):
    path = tmp_path_factory.mktemp("ledger") / "run"
    whole = run(stop | MaxProbes(3000))
    for n_probes in stages:
        with Ledger(path, {"seed": 11}) as ledger:
            run(MaxProbes(min(n_probes, whole.tally.n_probes)), ledger=ledger)
    with Ledger(path, {"seed": 11}) as ledger:
        assert same_bits(whole, run(stop | MaxProbes(3000), ledger=ledger))


SESSION = """
import os, sys, time
from functools import partial
from itertools import pairwise
sys.path[:0] = [sys.argv[2], os.path.dirname(sys.argv[2])]
from test_loop import PLAN, slow_game, weights
from probewise.engine.loop import run_probes
from probewise.executors import executor
from probewise.engine.ledger import Ledger
from probewise.stopping import MaxProbes
if __name__ == "__main__":
    with Ledger(sys.argv[1], {}) as ledger:
        print("ready", flush=True)
        run_probes(PLAN, partial(slow_game, weights(30), 0.0002), stop=MaxProbes(6000), ledger=ledger,
                   map=executor(2), block_size=10, check_every=200)
    print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is of POSIX")
def test_killed_and_resumed_equals_uninterrupted(tmp_path):
    path, here = tmp_path / "run", os.path.dirname(__file__)
    rng = random.Random(1)
    for _ in range(2):  # one that began, and one that went on
        command = [sys.executable, "-c", SESSION, str(path), here]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.05, 0.4))
            process.kill()
        assert process.returncode == -signal.SIGKILL
    with Ledger(path, {}) as ledger:
        assert same_bits(run(MaxProbes(6000)), run(MaxProbes(6000), ledger=ledger))


class Relabelled:
    """A plan whose probes hold other labels for the same features."""

    def __init__(self, plan, labels):
        self.plan, self.labels = plan, labels
        self.n_features, self.rounds = plan.n_features, plan.rounds

    def draw(self, start, stop):
        subsets = self.plan.draw(start, stop)
        return type(subsets)(self.labels[subsets.indices], subsets.offsets)


@examples(20)
@given(st.permutations(range(30)))
def test_permuted_columns_give_permuted_scores(permutation):
    labels = np.array(permutation, dtype=np.int32)
    renamed_weights = np.empty(30)
    renamed_weights[labels] = weights(30)
    renamed = run_probes(
        Relabelled(PLAN, labels), partial(additive_game, renamed_weights), stop=MaxProbes(400), block_size=50
    )
    assert renamed.tally.daf0()[labels].tolist() == run(MaxProbes(400)).tally.daf0().tolist()


@pytest.mark.parametrize("size", [1, 5, 20])
def test_the_additive_game_has_its_closed_form(size):
    """With probes of one size, DAF0(f) tends to w_f less the mean of the other weights."""
    plan = ProbePlan(30, max_size=30, seed=3)
    w = weights(30, seed=2)

    class OneSize(Relabelled):
        def draw(self, start, stop):
            subsets = self.plan.draw(start, stop)
            return type(subsets).of([s for s in subsets if len(s) == size] or [[]])

    subsets = OneSize(plan, None).draw(0, 60_000)
    tally = Tally.of(subsets, additive_game(w, subsets), 30)
    expected = w - (w.sum() - w) / 29
    z = (tally.daf0() - expected) / tally.std_errors() if size > 1 else (tally.daf0() - expected) / 0.02
    assert np.abs(z).max() < 4


def test_bernoulli_half_gives_the_weights_themselves():
    """DAF0 with Bernoulli(1/2) probes estimates the Banzhaf value, which of an additive game is the weight."""
    w = weights(25, seed=4)
    plan = ProbePlan(25, inclusion=0.5, seed=8)
    result = run_probes(plan, partial(additive_game, w), stop=MaxProbes(20_000))
    assert np.abs((result.tally.daf0() - w) / result.tally.std_errors()).max() < 4


def test_looks_equal_the_twin():
    result = run(MaxProbes(1000))
    columns = history(PLAN, result.ledger, block_size=50, check_every=200)
    subsets, values = list(PLAN.draw(0, 1000)), result.ledger.values()
    daf0 = [naive.daf0(subsets[:n], values[:n], 30) for n in range(200, 1001, 200)]
    changes = [naive.value_change(a, b)[0] for a, b in pairwise(daf0)]
    orders = [naive.order_change(a, b) for a, b in pairwise(daf0)]
    assert columns["probes"].tolist() == [200, 400, 600, 800, 1000]
    assert columns["left_out"].tolist() == [30, 0, 0, 0, 0]
    np.testing.assert_allclose(columns["value_change"], [np.nan, *changes])
    np.testing.assert_allclose(columns["order_change"], [np.nan, *orders])
    np.testing.assert_allclose(columns["relative_change"], [np.nan, *(c / changes[0] for c in changes)])
    assert np.all(np.diff(columns["seconds"]) >= 0)


def test_features_without_a_coefficient_are_left_out_and_counted():
    plan = ProbePlan(400, max_size=2, seed=0)
    result = run_probes(plan, partial(additive_game, weights(400)), stop=MaxProbes(600), block_size=50)
    columns = history(plan, result.ledger, block_size=50, check_every=200)
    subsets, values = list(plan.draw(0, 600)), result.ledger.values()
    daf0 = [naive.daf0(subsets[:n], values[:n], 400) for n in (200, 400, 600)]
    twins = [naive.value_change(a, b) for a, b in pairwise(daf0)]
    assert all(0 < count < 400 for _, count in twins)
    assert columns["left_out"].tolist() == [400, *(count for _, count in twins)]
    np.testing.assert_allclose(columns["value_change"][1:], [change for change, _ in twins])
    np.testing.assert_allclose(columns["order_change"][1], naive.order_change(daf0[0], daf0[1]))


def test_settled_compares_odd_and_even_blocks():
    knowledge = RunningStats(PLAN, run(MaxProbes(400)).ledger, block_size=50, check_every=200, watch=frozenset({4}))
    knowledge.replay()
    subsets, values = list(PLAN.draw(0, 400)), knowledge.ledger.values()
    odd = [i for i in range(400) if (i // 50) % 2]
    even = [i for i in range(400) if not (i // 50) % 2]
    tops = [set(naive.order(naive.daf0([subsets[i] for i in half], values[half], 30))[:4]) for half in (odd, even)]
    assert knowledge.looks[-1].overlap == {4: len(tops[0] & tops[1]) / 4}


def test_relative_change_counts_probes_in_disguise():
    """spec: C2 at look k over its first value is about sqrt(1 + 1/k)/(k + 1) over that at k = 1."""
    columns = history(PLAN, run(MaxProbes(4200)).ledger, block_size=50, check_every=200)
    for k in (10, 20):
        predicted = np.sqrt(1 + 1 / k) / (k + 1) / (np.sqrt(2) / 2)
        assert columns["relative_change"][k] == pytest.approx(predicted, rel=0.5)


@pytest.mark.parametrize("n_probes", [1, 7, 50, 51, 1234])
def test_max_probes_is_exact(n_probes):
    assert run(MaxProbes(n_probes)).tally.n_probes == n_probes


def test_max_time_is_kept_to_within_a_block():
    game = partial(slow_game, weights(30), 0.004)
    started = time.perf_counter()
    result = run_probes(PLAN, game, stop=MaxTime(0.5), map=executor(2), block_size=10)
    assert result.ledger.seconds >= 0.5
    assert result.ledger.seconds_at(result.tally.n_probes - 10) < 0.5
    assert time.perf_counter() - started < 5
    assert result.stop_reason == "the time limit of 0.5 s was reached"


def test_the_time_of_earlier_sessions_counts(tmp_path):
    game = partial(slow_game, weights(30), 0.002)
    with Ledger(tmp_path / "run", {}) as ledger:
        first = run_probes(PLAN, game, stop=MaxTime(0.2), ledger=ledger, block_size=10)
    with Ledger(tmp_path / "run", {}) as ledger:
        again = run_probes(PLAN, game, stop=MaxTime(0.2), ledger=ledger, block_size=10)
        assert again.tally.n_probes == first.tally.n_probes
        more = run_probes(PLAN, game, stop=MaxTime(0.3), ledger=ledger, block_size=10)
        assert more.tally.n_probes > first.tally.n_probes


def test_relative_change_and_coverage_stop_at_the_first_border_where_they_hold():
    result = run(RelativeChange(0.2))
    relative = history(PLAN, result.ledger, block_size=50, check_every=200)["relative_change"]
    assert relative[-1] < 0.2
    assert not (relative[:-1] < 0.2).any()
    covered = run(MinCoverage(30))
    assert covered.tally.covers(30)
    assert naive.coverage(list(PLAN.draw(0, covered.tally.n_probes - 50)), 30) < 30


def test_a_rule_that_holds_at_the_start(tmp_path):
    with Ledger(tmp_path / "run", {}) as ledger:
        run(MaxProbes(500), ledger=ledger)
        shorter = run(MaxProbes(100), ledger=ledger)
    assert shorter.tally.n_probes == 500


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_the_finished_probes(n_jobs):
    class Interrupt(Rule):
        def __call__(self, state):
            if state.n_probes >= 300:
                raise KeyboardInterrupt
            return False

    result = run(Interrupt(), map=executor(n_jobs))
    assert result.interrupted
    assert result.stop_reason == "interrupted after 300 probes"
    assert same_bits_but_reason(result, run(MaxProbes(300)))


def same_bits_but_reason(a, b):
    return a.tally.table.tobytes() == b.tally.table.tobytes() and a.tally.n_probes == b.tally.n_probes


def test_ctrl_c_before_the_first_block_is_an_interrupt():
    def interrupted(subsets):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_probes(PLAN, interrupted, stop=MaxProbes(10))


def nan_at_77(subsets):
    values = np.ones(len(subsets))
    values[[i for i, subset in enumerate(subsets) if subset.tolist() == PLAN.probe(77).tolist()]] = np.nan
    return values


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_criterion_that_fails_names_the_probe(n_jobs):
    size = len(PLAN.probe(77))
    words = rf"failed on probe 77 \({size} features\): J is nan"
    with pytest.raises(ValueError, match=words):
        run_probes(PLAN, nan_at_77, stop=MaxProbes(200), map=executor(n_jobs), block_size=10)
    assert np.isnan(nan_at_77(PLAN.draw(77, 78)))


def test_a_criterion_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"\(1,\) values for 50 subsets"):
        run_probes(PLAN, lambda subsets: np.ones(1), stop=MaxProbes(200))


def test_block_size_must_divide_check_every():
    with pytest.raises(ValueError, match="block_size=30 must divide check_every=200"):
        run(block_size=30)


def test_progress_sees_every_block():
    seen = []
    run(MaxProbes(420), progress=lambda state: seen.append((state.n_probes, state.look and state.look.value_change)))
    assert [n for n, _ in seen] == [*range(50, 401, 50), 420]
    assert seen[-1][1] > 0


def test_blas_is_pinned_inside_and_put_back():
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads(_=None):
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        with one_blas_thread():
            assert threads() == {1}
            assert list(executor(2)(threads, range(4))) == [{1}] * 4
            assert threads() == {1}
        assert list(serial(threads, range(1))) == [{1}]
        assert threads() == {2}


def test_the_map_is_lazy_and_in_order():
    taken = []

    def items():
        for i in range(10**6):
            taken.append(i)
            yield i

    def slow_square(i):
        time.sleep(0.01)
        return i * i

    results = executor(2)(slow_square, items())
    assert [next(results) for _ in range(20)] == [i * i for i in range(20)]
    results.close()
    assert len(taken) < 30


def test_the_number_of_workers_is_limited():
    most = max(16, 2 * joblib.cpu_count())
    assert executors._n_workers(100_000) == most
    assert executors._n_workers(3) == 3
    with joblib.parallel_config(backend="loky", n_jobs=10**6):
        assert executors._n_workers(None) == most
    assert list(threads(100_000)(abs, range(3))) == list(executor(100_000)(abs, range(3))) == [0, 1, 2]


class _ExecutorManagerThread(threading.Thread):
    """A thread with the name of loky's management thread."""


@pytest.mark.parametrize(
    ("thread", "failure", "is_said"),
    [
        (_ExecutorManagerThread, KeyError, False),
        (_ExecutorManagerThread, OSError, True),
        (threading.Thread, KeyError, True),
    ],
)
def test_only_errors_of_canceled_calls_in_lokys_thread_are_hidden(monkeypatch, thread, failure, is_said):
    said = []
    monkeypatch.setattr(threading, "excepthook", lambda failed: said.append(failed.exc_type))
    usual = threading.excepthook

    def fail():
        raise failure(92)

    with silence_loky_shutdown():
        started = thread(target=fail)
        started.start()
        started.join()
    assert said == [failure] * is_said
    assert threading.excepthook is usual
