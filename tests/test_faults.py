"""Failures in the middle of a run: workers, the scheduler, the driver, the disk, the criterion."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.naive_bayes import GaussianNB

from clusters import DaskCluster, fails_on_some, leaves_a_trace, mean_and_more, takes_its_time
from full_disk import files_no_longer_than
from probewise import BIF, DAF, executors
from probewise.criteria import Function
from probewise.datasets import make_madelon
from probewise.engine.ledger import Ledger, LedgerError
from probewise.engine.loop import ProbeError
from probewise.executors import ClusterError, executor, require_complete
from probewise.stopping import MaxProbes, Rule
from probewise.study import Study

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is of POSIX")
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def data():
    made = make_madelon(60, 24, random_state=0)
    return made.X, made.y


def small(stop=None, criterion=mean_and_more, n_probes=400, error_score="raise", **options):
    if not hasattr(criterion, "fit"):
        criterion = Function(criterion, name=getattr(criterion, "__name__", "partial"), error_score=error_score)
    options = {"max_probe_size": 9, "random_state": 0, "check_every": 100, **options}
    return DAF(criterion=criterion, stop=stop or MaxProbes(n_probes), **options)


class At(Rule):
    """Goes to a number of probes, and on the way does what is to be done at a border."""

    def __init__(self, n_probes, deeds):
        self.n_probes, self.deeds = n_probes, dict(deeds)
        self.done = []

    max_probes = None

    def __call__(self, state):
        if state.n_probes in self.deeds and state.n_probes not in self.done:
            self.done.append(state.n_probes)
            self.deeds[state.n_probes]()
        return state.n_probes >= self.n_probes

    def reason(self, state):
        return f"the limit of {self.n_probes:,} probes was reached"


def same_bits(a, b):
    return (
        a.scores_.tobytes() == b.scores_.tobytes()
        and a.run_.ledger.values().tobytes() == b.run_.ledger.values().tobytes()
        and a.stop_reason_ == b.stop_reason_
    )


# ---- a cluster


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory):
    pytest.importorskip("distributed", reason="a Dask cluster needs the dask extra")
    with DaskCluster(tmp_path_factory.mktemp("cluster"), SCHEDULER__ALLOWED_FAILURES=0) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster):
    """With a scheduler, whatever the test before did to it."""
    if shared_cluster.scheduler.poll() is not None:
        shared_cluster.kill(*shared_cluster.workers())
        shared_cluster.start_scheduler()
    return shared_cluster


def staffed(cluster, client, n_workers):
    while len(cluster.workers()) < n_workers:
        cluster.add_worker()
    client.wait_for_workers(n_workers, timeout=120)


def on(client):
    return joblib.parallel_config(backend="dask", client=client)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_workers_are_killed_and_others_come(cluster, data, tmp_path):
    """One, then all, with the data they had; each kill is more than the scheduler itself allows a task."""
    traces = tmp_path / "traces"
    traces.mkdir()
    newcomers = []
    with cluster.client() as client:
        staffed(cluster, client, 2)

        def kill_one():
            cluster.kill(cluster.workers()[0])

        def kill_all():
            cluster.kill(*cluster.workers())
            newcomers.append(cluster.add_worker())

        def add_one():
            newcomers.append(cluster.add_worker())
            client.wait_for_workers(2, timeout=120)

        stop = At(500, {100: kill_one, 200: kill_all, 300: add_one})
        with on(client):
            there = small(stop, partial(leaves_a_trace, str(traces))).fit(*data)
    here = small(n_probes=500).fit(*data)
    assert stop.done == [100, 200, 300]
    assert same_bits(there, here)
    assert {str(worker.pid) for worker in newcomers} <= {trace.name for trace in traces.iterdir()}


DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from distributed import Client
from test_faults import At, make_madelon, on, small, takes_its_time
made = make_madelon(60, 24, random_state=0)
def say():
    print("here", flush=True)
with Client(sys.argv[2]) as client, on(client):
    stop = At(100_000, {100 * k: say for k in range(1, 1000)})
    small(stop, takes_its_time, ledger=sys.argv[3]).fit(made.X, made.y)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_driver_is_killed(cluster, data, tmp_path):
    path = tmp_path / "run.ledger"
    here = small(n_probes=400).fit(*data)
    with cluster.client() as client:
        staffed(cluster, client, 1)
        command = [sys.executable, "-c", DRIVER, str(HERE), cluster.address, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as driver:
            assert driver.stdout.readline() == "here\n"
            os.killpg(driver.pid, signal.SIGKILL)
        with Ledger(path) as ledger:
            assert 100 <= ledger.n_probes < 400
        with on(client):
            again = small(criterion=takes_its_time, n_probes=400, ledger=path).fit(*data)
    assert same_bits(again, here)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_block_that_kills_its_workers_is_named(cluster, monkeypatch):
    monkeypatch.setattr(executors, "MAX_LOSSES", 2)
    with cluster.client() as client:
        staffed(cluster, client, 1)
        watched = threading.Event()

        def keep_staffed():
            while not watched.wait(0.05):
                if not cluster.workers():
                    cluster.add_worker()

        keeper = threading.Thread(target=keep_staffed)
        keeper.start()
        try:
            with on(client), pytest.raises(ClusterError, match=r"lost the worker of \(0, 50\) 2 times: it may need"):
                list(executor()(dies, [(0, 50)]))
        finally:
            watched.set()
            keeper.join()


def dies(block):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_scheduler_is_killed_and_started_again(cluster, data, tmp_path):
    here = small(n_probes=400).fit(*data)
    path = tmp_path / "run.ledger"
    with cluster.client() as client:
        staffed(cluster, client, 1)
        stop = At(400, {200: lambda: cluster.kill(cluster.scheduler)})
        with on(client), pytest.raises(ClusterError) as lost:
            small(stop, ledger=path).fit(*data)
    assert str(lost.value) == (
        f"the Dask scheduler at {cluster.address} does not answer: the ledger {path} holds 200 probes; "
        "start the cluster again, and the same run continues from there"
    )
    with Ledger(path) as ledger:
        assert ledger.values().tobytes() == here.run_.ledger.values(0, 200).tobytes()
    cluster.kill(*cluster.workers())
    cluster.start_scheduler()
    with cluster.client() as client:
        staffed(cluster, client, 1)
        with on(client):
            again = small(n_probes=400, ledger=path).fit(*data)
    assert same_bits(again, here)


@pytest.mark.slow
@pytest.mark.filterwarnings("default:::distributed")
def test_without_a_file_a_lost_cluster_leaves_the_ranking_so_far(cluster, data):
    with cluster.client() as client:
        staffed(cluster, client, 1)
        stop = At(400, {200: lambda: cluster.kill(cluster.scheduler)})
        with on(client), pytest.warns(ConvergenceWarning, match="after 200 probes: the Dask scheduler at .* so far"):
            left = small(stop).fit(*data)
    assert left.scores_.tobytes() == small(n_probes=200).fit(*data).scores_.tobytes()
    assert left.stop_reason_.startswith("interrupted after 200 probes: the Dask scheduler")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_study_loses_its_cluster(cluster, data, tmp_path):
    path = tmp_path / "study.jsonl"
    study = partial(Study, {"bif": BIF()}, {"nb": GaussianNB()}, trials=5, sizes=[2], random_state=0)
    with cluster.client(timeout=5) as client:
        staffed(cluster, client, 1)

        def kill(line):
            assert line.startswith("study: 1 of 5 trials")
            cluster.kill(cluster.scheduler)

        with on(client), pytest.raises(ClusterError, match=r"study.jsonl has 1 of 5 trials; start the cluster"):
            study(ledger=path, verbose=kill).compare(*data)
    assert study(ledger=path).compare(*data).accuracy.tobytes() == study().compare(*data).accuracy.tobytes()


# ---- the disk

FIT = """
import sys
sys.path.insert(0, sys.argv[1])
from clusters import mean_and_more
from probewise import DAF
from probewise.criteria import Function
from probewise.datasets import make_madelon
from probewise.stopping import MaxProbes
made = make_madelon(60, 24, random_state=0)
options = {"max_probe_size": 9, "random_state": 0, "check_every": 100}
criterion = Function(mean_and_more, name="mean_and_more")
DAF(criterion=criterion, stop=MaxProbes(100_000), ledger=sys.argv[2], **options).fit(made.X, made.y)
"""


def test_the_disk_refuses_a_block(tmp_path, data):
    """The kernel allows no longer files."""
    path = tmp_path / "run.ledger"
    with files_no_longer_than() as limit:
        stop = At(100_000, {200: lambda: limit(os.path.getsize(f"{path}-wal"))})
        with pytest.warns(ConvergenceWarning) as warned:
            daf = small(stop, ledger=path).fit(*data)
    (warning,) = warned
    assert daf.stop_reason_ == (
        f"interrupted after 200 probes: the ledger {path} cannot be written (disk I/O error); it has 200 probes: "
        "free some disk space, or make the file writable, and the same run continues from there"
    )
    assert str(warning.message) == f"DAF was {daf.stop_reason_}: this is the ranking so far"
    so_far = small(n_probes=200).fit(*data)
    assert daf.scores_.tobytes() == so_far.scores_.tobytes()
    with Ledger(path) as ledger:
        assert ledger.values().tobytes() == so_far.run_.ledger.values().tobytes()
    again = small(n_probes=400, ledger=path).fit(*data)
    assert same_bits(again, small(n_probes=400).fit(*data))


def test_a_place_that_cannot_be_written(tmp_path, data):
    """A ledger made, then mounted read-only."""
    if subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here without being root")
    disk = tmp_path / "disk"
    disk.mkdir()
    path = disk / "run.ledger"
    made = small(n_probes=200, ledger=path).fit(*data)
    script = f"""
        set -e
        mount --bind {disk} {disk}
        mount -o remount,ro,bind {disk}
        exec "$0" -c "$1" {HERE} {path}
    """
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", textwrap.dedent(script), sys.executable, FIT], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        f"probewise.engine.ledger.LedgerError: the ledger {path} cannot be written"
    )
    with Ledger(path) as ledger:
        assert ledger.values().tobytes() == made.run_.ledger.values().tobytes()


def test_a_disk_that_takes_nothing_at_all_is_an_error(tmp_path, data):
    with files_no_longer_than() as limit:
        limit(100)
        with pytest.raises(LedgerError, match=r"^the ledger .*run\.ledger"):
            small(ledger=tmp_path / "run.ledger").fit(*data)


# ---- the criterion


@pytest.mark.parametrize("kind", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_a_failed_probe_is_named_by_any_worker(data, kind):
    """Always the first in the order of probes, though a later block may fail before it."""
    with pytest.raises(ValueError) as here:
        small(criterion=fails_on_some, check_every=1).fit(*data)
    with joblib.parallel_config(backend=kind, n_jobs=2), pytest.raises(ValueError) as there:
        small(criterion=fails_on_some).fit(*data)
    assert str(there.value) == str(here.value)


@pytest.mark.parametrize("kind", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_an_error_score_gives_the_same_bits_for_any_worker(data, kind):
    with pytest.warns(FitFailedWarning) as warned_here:
        here = small(criterion=fails_on_some, error_score=-1).fit(*data)
    with joblib.parallel_config(backend=kind, n_jobs=2), pytest.warns(FitFailedWarning) as warned_there:
        there = small(criterion=fails_on_some, error_score=-1, check_every=99).fit(*data)
    assert same_bits(here, there)
    assert str(warned_here[0].message) == str(warned_there[0].message)
    sizes = here.run_.feature_plan.draw(0, 400).sizes
    failed = (sizes == 5) | (sizes == 7)
    assert here.run_.ledger.failures.probes == tuple(np.flatnonzero(failed).tolist())
    assert (here.run_.ledger.values()[failed] == -1).all()
    first = int(np.flatnonzero(failed)[0])
    why = "J is nan" if sizes[first] == 5 else "ZeroDivisionError: seven are too many"
    assert str(warned_here[0].message) == (
        f"the criterion failed on {failed.sum()} of 400 probes, first on probe {first} ({sizes[first]} "
        f"features): {why}; their J is error_score=-1.0"
    )


def test_all_that_did_not_fail_is_as_it_would_be(data):
    with pytest.warns(FitFailedWarning):
        some = small(criterion=fails_on_some, error_score=0.0).fit(*data).run_.ledger
    values, whole = some.values(), small().fit(*data).run_.ledger.values()
    fine = np.setdiff1d(np.arange(400), some.failures.probes)
    assert values[fine].tobytes() == whole[fine].tobytes()


class Fails(GaussianNB):
    def fit(self, X, y):
        if X.shape[1] == 6:
            raise ArithmeticError("six\nlines")
        return super().fit(X, y)


@pytest.mark.parametrize("is_frame", [False, True])
def test_a_failed_probe_names_its_columns(data, is_frame):
    X, y = data
    if is_frame:
        X = pytest.importorskip("pandas").DataFrame(X, columns=[f"f{i}" for i in range(24)])
    with pytest.raises(ProbeError, match=r"probe \d+ \(6 features\): ArithmeticError: six lines; the columns") as error:
        small(criterion=Fails(), n_probes=100).fit(X, y)
    plan = small(n_probes=100).fit(*data).run_.feature_plan
    columns = plan.probe(error.value.failure.probe).tolist()
    assert str(error.value).endswith(", ".join(f"'f{column}'" if is_frame else str(column) for column in columns))
    assert "ArithmeticError" in error.value.__notes__[0]


def test_all_probes_failed(data):
    with pytest.raises(ValueError, match=r"failed on 40 of 40 probes, first on probe 0 .*nothing is ranked"):
        small(criterion=no_number, n_probes=40, error_score=0).fit(*data)


def no_number(X, y):
    return np.inf


@pytest.mark.parametrize("error_score", [np.nan, np.inf, "ignore", None, True])
def test_an_impossible_error_score_is_refused(data, error_score):
    with pytest.raises(ValueError, match=r"error_score=.* must be a finite number or 'raise'"):
        small(error_score=error_score).fit(*data)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_a_ledger_with_failures_does_not_mix_error_scores(data, tmp_path):
    path = tmp_path / "run.ledger"
    failing = partial(small, criterion=fails_on_some, ledger=path)
    with pytest.raises(ValueError, match="failed on probe") as error:
        failing().fit(*data)
    with Ledger(path) as ledger:
        before = ledger.n_probes
        assert ledger.failures is None
    first = failing(n_probes=200, error_score=0).fit(*data)  # nothing has failed yet in the ledger
    assert first.run_.ledger.failures.probes[0] >= before
    assert str(first.run_.ledger.failures.first) in str(error.value)
    for other in (1.0, "raise"):
        with pytest.raises(LedgerError, match=f"its error_score is 0.0, not {other!r}"):
            failing(error_score=other).fit(*data)
    again = failing(error_score=0.0).fit(*data)
    whole = small(criterion=fails_on_some, error_score=0).fit(*data)
    assert same_bits(again, whole)
    assert again.run_.ledger.failures == whole.run_.ledger.failures


def test_a_block_that_fails_though_none_of_its_probes_does(data):
    from probewise.engine.loop import run_probes
    from probewise.engine.probes import ProbePlan

    def wants_one(subsets):
        if len(subsets) > 1:
            raise MemoryError("too many")
        return np.ones(len(subsets))

    with pytest.raises(MemoryError, match="too many"):
        run_probes(ProbePlan(24, 9), wants_one, stop=MaxProbes(100), error_score=0.0)


def test_why_it_stopped_is_in_the_ledger(data, tmp_path):
    path = tmp_path / "run.ledger"
    assert small(n_probes=200, ledger=path).fit(*data).run_.ledger.stop_reason == "the limit of 200 probes was reached"
    with Ledger(path) as ledger:
        assert ledger.stop_reason == "the limit of 200 probes was reached"
        assert ledger.settings["check_every"] == 100
        ledger.append([0.5], seconds=99.0)
        assert ledger.stop_reason is None
    with Ledger(path) as ledger:
        assert ledger.stop_reason is None


def test_a_cluster_lost_while_a_size_curve_is_made_is_not_taken_for_ctrl_c():
    """A lost scheduler ended the fit of a fold, and the report with a KeyboardInterrupt without a word."""
    fitted = SimpleNamespace(stop_reason_="interrupted after 200 probes: the Dask scheduler is gone")
    with pytest.raises(ClusterError, match="the Dask scheduler is gone"):
        require_complete(fitted)
    with pytest.raises(KeyboardInterrupt):
        require_complete(SimpleNamespace(stop_reason_="interrupted after 200 probes"))
    require_complete(SimpleNamespace(stop_reason_="the limit of 200 probes was reached"))
