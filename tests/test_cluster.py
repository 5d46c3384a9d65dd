"""A real cluster: the same bits as one thread, the data sent once, and sentences where something is missing."""

import os
import sys
import threading
from functools import partial

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from joblib._parallel_backends import ThreadingBackend
from sklearn.exceptions import FitFailedWarning
from sklearn.naive_bayes import GaussianNB

from clusters import CountingProxy, DaskCluster, fails_on_some, leaves_a_trace, mean_and_more
from probewise import BIF, DAF, Tournament, executors
from probewise.criteria import Function
from probewise.datasets import make_madelon
from probewise.executors import ClusterError, executor
from probewise.stopping import MaxProbes, Settled
from probewise.study import Study

pytest.importorskip("distributed", reason="a Dask cluster needs the dask extra")


@pytest.fixture(scope="module")
def data():
    made = make_madelon(90, 24, random_state=0)
    return made.X.astype(np.float32), made.y


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers, of one thread and of two."""
    with DaskCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.add_worker(threads=1)
        cluster.add_worker(threads=2)
        with cluster.client() as client:
            client.wait_for_workers(2)
        yield cluster


@pytest.fixture
def client(cluster):
    with cluster.client() as client:
        yield client


def on(client, **options):
    return joblib.parallel_config(backend="dask", client=client, **options)


@pytest.mark.slow
def test_rounds_are_the_same_bits_too(client):
    made = make_madelon(250, 120, random_state=3)
    tournament = Tournament(10, n_probes=500, random_state=0)
    here = tournament.fit(made.X, made.y)
    expected = here.run_.ledger.values().tobytes(), [part.active.tolist() for part in here.run_.feature_plan.rounds]
    with on(client):
        there = tournament.fit(made.X, made.y)
    assert (
        there.run_.ledger.values().tobytes(),
        [part.active.tolist() for part in there.run_.feature_plan.rounds],
    ) == expected
    assert len(expected[1]) > 1


CRITERIA = {"knn": "knn", "an estimator": GaussianNB(), "a function": mean_and_more, "linear": "linear"}


@pytest.mark.slow
@pytest.mark.parametrize("name", CRITERIA)
def test_the_same_bits_as_one_thread(client, data, name):
    X, y = data
    daf = partial(DAF, criterion=CRITERIA[name], stop=Settled(5, 0.8) | MaxProbes(150), check_every=50, random_state=0)
    one = daf().fit(X, y)
    with on(client):
        many = daf(n_jobs=2).fit(X, y)
    assert many.scores_.tobytes() == one.scores_.tobytes()
    assert many.run_.ledger.values().tobytes() == one.run_.ledger.values().tobytes()
    assert many.stop_reason_ == one.stop_reason_


@pytest.mark.slow
def test_sparse_data_and_other_selectors(client, data):
    X, y = sp.csr_matrix(data[0].round()), data[1]
    one = DAF(criterion="linear", stop=MaxProbes(100), random_state=0).fit(X, y), BIF().fit(data[0], y)
    with on(client):
        many = DAF(criterion="linear", stop=MaxProbes(100), random_state=0).fit(X, y), BIF().fit(data[0], y)
    assert [a.scores_.tobytes() for a in one] == [a.scores_.tobytes() for a in many]


@pytest.mark.slow
def test_a_study(client, data):
    study = Study(
        {"daf": DAF(stop=MaxProbes(100)), "bif": BIF()}, {"nb": GaussianNB()}, trials=4, sizes=[1, 5], random_state=3
    )
    one = study.compare(*data)
    with on(client):
        many = study.compare(*data)
    assert many.accuracy.tobytes() == one.accuracy.tobytes()
    for name in study.selectors:
        for ours, theirs in zip(one.subsets(name, 5), many.subsets(name, 5), strict=True):
            assert ours.tolist() == theirs.tolist()


@pytest.mark.slow
def test_all_workers_work_and_the_driver_does_not(client, data, tmp_path):
    with on(client):
        criterion = partial(leaves_a_trace, str(tmp_path))
        DAF(criterion=criterion, stop=MaxProbes(200), random_state=0).fit(*data)
    workers = {worker["pid"] for worker in client.run(lambda: {"pid": os.getpid()}).values()}
    assert {int(trace.name) for trace in tmp_path.iterdir()} == workers


@pytest.mark.slow
def test_the_data_travel_once_and_a_block_takes_a_few_kilobytes(cluster):
    """From here to the scheduler and back; the workers get the data from there."""
    X = np.random.default_rng(0).standard_normal((200, 5000)).astype(np.float32)
    y = np.arange(200) % 2
    proxy = CountingProxy(cluster.address)
    sent, received = [], []
    with cluster.client(proxy.address) as client, on(client):
        for n_probes in (50, 1000):
            there, back = proxy.there, proxy.back
            DAF(criterion=mean_and_more, stop=MaxProbes(n_probes), random_state=0).fit(X, y)
            sent.append(proxy.there - there)
            received.append(proxy.back - back)
    proxy.close()
    assert X.nbytes < sent[0] < 1.05 * X.nbytes
    assert sent[1] - sent[0] < 190 * 4096
    assert received[1] - received[0] < 190 * 4096


def fitted_there(X, y):
    with joblib.parallel_config(backend="dask"):
        return DAF(criterion=mean_and_more, stop=MaxProbes(50), random_state=0).fit(X, y).scores_


@pytest.mark.slow
def test_a_fit_that_is_a_task_itself_waits_for_no_other_task(client, data):
    """There is a task for each thread, so tasks that waited for tasks of their own would never finish."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        fits = [client.submit(fitted_there, *data, pure=False) for _ in range(3)]
        scores = [fit.result(timeout=120) for fit in fits]
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    here = DAF(criterion=mean_and_more, stop=MaxProbes(50), random_state=0).fit(*data).scores_
    assert {found.tobytes() for found in scores} == {here.tobytes()}


@pytest.mark.slow
def test_a_criterion_that_fails(client, data):
    daf = partial(DAF, criterion=fails_on_some, max_probe_size=9, stop=MaxProbes(100), random_state=0)
    with pytest.raises(ValueError) as here:
        daf().fit(*data)
    with on(client), pytest.raises(ValueError) as there:
        daf().fit(*data)
    assert str(there.value) == str(here.value)
    with pytest.warns(FitFailedWarning) as warned_here:
        one = daf(criterion=Function(fails_on_some, error_score=0.5)).fit(*data)
    with on(client), pytest.warns(FitFailedWarning) as warned_there:
        many = daf(criterion=Function(fails_on_some, error_score=0.5)).fit(*data)
    assert many.scores_.tobytes() == one.scores_.tobytes()
    assert [str(w.message) for w in warned_there] == [str(w.message) for w in warned_here]


@pytest.mark.slow
def test_errors_of_the_function_are_its_own(client):
    for error in (TimeoutError, OSError, KeyError):
        with on(client), pytest.raises(error, match="mine"):
            list(executor()(partial(raises, error), range(3)))


def raises(error, item):
    raise error("mine")


@pytest.mark.slow
def test_a_cluster_without_workers_says_so_at_once_and_waits_for_the_given_time(tmp_path, data, caplog):
    daf = DAF(criterion=mean_and_more, stop=MaxProbes(50), random_state=0)
    with DaskCluster(tmp_path) as cluster, cluster.client() as client:
        with (
            on(client, wait_for_workers_timeout=0.5),
            pytest.raises(ClusterError, match=r"no workers for 0\.5 s: start"),
        ):
            daf.fit(*data)
        assert "has no workers: waiting 0.5 s for one" in caplog.messages[0]


@pytest.mark.slow
def test_what_cannot_be_sent(client):
    with (
        on(client),
        pytest.raises(ClusterError, match=r"the work cannot be sent to the Dask cluster at .*(pickl|serialize)"),
    ):
        list(executor()(partial(raises, threading.Lock()), range(3)))


BARE = "import sys; sys.modules['probewise'] = None; from dask.__main__ import main; main()"


@pytest.mark.slow
def test_a_worker_without_our_package(tmp_path):
    with DaskCluster(tmp_path) as cluster, cluster.client() as client:
        cluster.add_worker(code=BARE)
        with (
            on(client),
            pytest.raises(ClusterError, match=r"probewise.*the scheduler and all workers need the same packages"),
        ):
            list(executor()(abs, range(3)))


def test_another_version_on_a_worker():
    with pytest.raises(ClusterError, match=r"a worker of the cluster has probewise .*, but this machine has 0\.0\.1"):
        executors._call("0.0.1", abs, -1)


# ---- other engines


class ListsOnly(ThreadingBackend):
    """A backend that cannot give results as they come."""

    supports_return_generator = False


def test_a_backend_that_gives_lists_only_goes_by_rounds(data):
    joblib.register_parallel_backend("lists only", ListsOnly)
    daf = partial(DAF, criterion=mean_and_more, stop=MaxProbes(200), random_state=0)
    with joblib.parallel_config(backend="lists only", n_jobs=2):
        rounds = daf().fit(*data)
    assert rounds.scores_.tobytes() == daf().fit(*data).scores_.tobytes()
