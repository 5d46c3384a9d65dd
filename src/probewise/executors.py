"""Ordered, lazy maps over workers: serial, threads, or what joblib is configured for (processes, Dask, Ray)."""

from __future__ import annotations

import atexit
import logging
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from multiprocessing import parent_process
from numbers import Integral
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

from . import __version__

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]  # like the built-in: results in order, lazily
in_turn: Map = map  # one after the other, for work without BLAS
LOG = logging.getLogger("probewise")
MOST_LOSSES = 12  # of one item with its worker; a dead worker is the machine's fault, twelve are the item's
WAIT = 10.0  # seconds for a scheduler to answer, and between two checks whether a cluster is still there
LEAST_PATIENCE = 60.0  # seconds without any worker until a cluster counts as lost
AHEAD = 2  # items submitted per core of a cluster
# What a Dask scheduler says of work it cannot unpickle. It is a plain RuntimeError, as the function's own may be, so
# that only the text tells them apart; where Dask words it otherwise, its own error is raised as it is.
UNPICKLABLE = "deserialization of the task graph"


class ClusterError(ConnectionError):
    """A cluster that is not there, is gone, or cannot do the work."""


def executor(n_jobs: int | None = None, *, prefer: str = "threads") -> Map:
    """A map over workers, whose results come in the order of the items whatever the kind and number of workers.

    Parameters
    ----------
    n_jobs : int, default=None
        Number of workers, up to two a core, or 16; None: 1, or what ``joblib.parallel_config`` says; -1: all cores. The
        joblib backends "dask" and "ray" use the whole cluster, whatever ``n_jobs``.
    prefer : {"threads", "processes"}, default="threads"
        Kind of workers, unless ``joblib.parallel_config(backend=...)`` is active.

    Returns
    -------
    callable
        Like the built-in ``map``.
    """
    if (cluster_map := _cluster_map()) is not None:
        return cluster_map
    n_workers = _n_workers(n_jobs)
    if n_workers == 1:
        return serial
    parallel = partial(joblib.Parallel, n_jobs=n_workers, prefer=prefer, batch_size=1, pre_dispatch="2 * n_jobs")
    try:
        parallel(return_as="generator")
    except ValueError:  # some backends only give whole lists
        return partial(_by_rounds, parallel())
    return partial(_stream, partial(parallel, return_as="generator"))


def _n_workers(n_jobs: int | None) -> int:
    """As many as asked for, but on this machine no more than it can bear: more are not faster, and a crash."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} must be a whole number of workers, -1 for all cores, or None for 1")
    asked = int(joblib.effective_n_jobs(n_jobs))
    backend, _ = joblib.parallel.get_active_backend()
    return min(asked, max(16, 2 * int(joblib.cpu_count()))) if type(backend).__module__.startswith("joblib.") else asked


def stays_here(n_jobs: int | None = None) -> bool:
    """Whether an `executor` that prefers threads keeps to this process, so that data need not travel."""
    if (cluster_map := _cluster_map()) is not None:
        return cluster_map is serial
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False) or joblib.effective_n_jobs(n_jobs) == 1


def _cluster_map() -> Map | None:
    """The map of the cluster that ``joblib.parallel_config`` names; serial inside a task of a Dask cluster."""
    backend, _ = joblib.parallel.get_active_backend()
    is_named = {name: type(backend) is kind for name, kind in joblib.parallel.BACKENDS.items()}
    if is_named.get("dask"):
        return serial if _is_dask_worker() else partial(_map_on, partial(_OnDask, backend))
    return partial(_map_on, _OnRay) if is_named.get("ray") else None


def _stream(parallel: Any, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """With a `Parallel` of its own each time: one that was left before its end mixes up the next one's results."""
    revocable = _Revocable(function)
    with one_blas_thread():
        results = parallel()(joblib.delayed(_pinned)(revocable, item) for item in items)
        try:
            for result in results:  # noqa: UP028 - "yield from" would close the results outside of the filter below
                yield result
        finally:
            with warnings.catch_warnings(action="ignore", category=UserWarning), dropped_calls_unsaid():
                results.close()  # blocks after the last one wanted may be dropped
            revocable.function = None


@contextmanager
def dropped_calls_unsaid() -> Iterator[None]:
    """Without the traceback of loky's thread, which stumbles over calls that are dropped before it gets to them.

    Its workers are killed by then, and the thread was about to end.
    """
    usual = threading.excepthook

    def say(failure: threading.ExceptHookArgs) -> None:
        if failure.exc_type is not KeyError or type(failure.thread).__name__ != "_ExecutorManagerThread":
            usual(failure)

    threading.excepthook = say
    try:
        yield
    finally:
        threading.excepthook = usual


class _Revocable:
    """A function that can be taken back: joblib keeps calls it did not get to, and with them the data."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function: Callable[[Any], Any] | None = function

    def __call__(self, item: Any) -> Any:
        function = self.function
        return None if function is None else function(item)


def _by_rounds(parallel: Any, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    waiting = iter(items)
    with one_blas_thread(), parallel:
        while round_ := list(islice(waiting, joblib.effective_n_jobs(parallel.n_jobs))):
            yield from parallel(joblib.delayed(_pinned)(function, item) for item in round_)


def _map_on(cluster: Any, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """The function goes out once, then an item at a time; joblib's own way would send both with every item."""
    waiting: deque[Any] = deque()
    remaining = iter(items)
    with cluster(_VersionedFunction(function)) as place:
        while True:
            waiting.extend(map(place.submit, islice(remaining, max(0, AHEAD * place.cores() - len(waiting)))))
            if not waiting:
                return
            yield place.result(waiting.popleft())


@dataclass(frozen=True)
class _VersionedFunction:
    """A function for workers that have the same version of this package."""

    function: Callable[[Any], Any]
    version: str = __version__


def _call(versioned: _VersionedFunction, item: Any) -> Any:
    if versioned.version != __version__:
        raise ClusterError(
            f"a worker of the cluster has probewise {__version__}, and here it is {versioned.version}: "
            "install one version"
        )
    return _pinned(versioned.function, item)


@dataclass(eq=False)
class _Submitted:
    """An item submitted to a cluster, with the scattered function it is for."""

    item: Any
    function: Any = None
    future: Any = None
    losses: int = 0


class _OnDask:
    """A Dask cluster through its own client, which can do what joblib's backend does not: go on when workers die.

    The function is scattered, and scattered again where all workers that had it are gone; lost items are submitted
    again, since their results are the same whichever worker gives them.
    """

    def __init__(self, backend: Any, function: _VersionedFunction) -> None:
        self.client, self.function = backend.client, function
        self.address = self.client.scheduler.address
        asked = float(backend.wait_for_workers_timeout or LEAST_PATIENCE)
        self.first_patience, self.patience = asked, max(LEAST_PATIENCE, asked)
        self.n_cores, self.counted = 1, float("-inf")

    def __enter__(self) -> _OnDask:
        if not self._n_threads():
            LOG.warning(
                "the Dask cluster at %s has no worker: waiting %.3g s for one", self.address, self.first_patience
            )
        self._scatter(self.first_patience)
        return self

    def __exit__(self, *error: object) -> None:
        self.scattered = None  # the cluster forgets what nobody here refers to

    def cores(self) -> int:
        """Of all workers, counted now and then: they come and go."""
        if time.monotonic() - self.counted > 1:
            self._count_cores()
        return self.n_cores

    def submit(self, item: Any) -> _Submitted:
        return self._send(_Submitted(item))

    def result(self, submitted: _Submitted) -> Any:
        from distributed import KilledWorker

        while True:
            try:
                return submitted.future.result(timeout=WAIT)
            except (CancelledError, KilledWorker) as loss:
                self._send_again(submitted, loss)
            except OSError as error:
                if submitted.future.status == "error":  # the function's own
                    raise
                if not isinstance(error, TimeoutError):
                    raise self._gone() from error
                self._count_cores()
            except RuntimeError as error:
                if UNPICKLABLE in str(error):
                    raise self._not_understood(error) from error
                raise

    def _send(self, submitted: _Submitted) -> _Submitted:
        if self.client.status != "running":
            raise self._gone()
        submitted.function = self.scattered
        submitted.future = self.client.submit(_call, self.scattered, submitted.item, pure=False)
        return submitted

    def _send_again(self, submitted: _Submitted, loss: Exception) -> None:
        if getattr(loss, "reason", None) == "scheduler-connection-lost":
            raise self._gone() from loss
        submitted.losses += 1
        if submitted.losses == MOST_LOSSES:
            raise ClusterError(
                f"the Dask cluster at {self.address} lost the worker of {submitted.item} {MOST_LOSSES} times: "
                "does it need more memory than a worker has?"
            ) from loss
        if submitted.function is self.scattered:  # else another item's loss has seen to it
            self._scatter(self.patience)
        self._send(submitted)

    def _scatter(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        while True:
            try:
                self.scattered = self.client.scatter(self.function, broadcast=True, hash=False, timeout=patience)
                self.staffed = time.monotonic()
                return
            except OSError as error:
                if self.client.status != "running":
                    raise self._gone() from error
                if time.monotonic() > deadline:
                    raise self._deserted(patience) from error
                time.sleep(0.1)  # a worker died as the function was on its way to it
            except Exception as error:
                raise self._not_understood(error) from error

    def _count_cores(self) -> None:
        n_cores, self.counted = self._n_threads(), time.monotonic()
        if n_cores:
            self.n_cores, self.staffed = n_cores, self.counted
        elif self.counted - self.staffed > self.patience:
            raise self._deserted(self.patience)

    def _n_threads(self) -> int:
        try:
            return sum(self.client.nthreads().values())
        except OSError as error:
            raise self._gone() from error

    def _gone(self) -> ClusterError:
        return ClusterError(f"the Dask scheduler at {self.address} does not answer any more")

    def _deserted(self, seconds: float) -> ClusterError:
        start = f"start some, with dask worker {self.address}"
        return ClusterError(f"the Dask cluster at {self.address} has had no worker for {seconds:.3g} s: {start}")

    def _not_understood(self, error: Exception) -> ClusterError:
        words = " ".join(str(error).split())[:200]
        return ClusterError(
            f"the work cannot be handed to the Dask cluster at {self.address} ({words}): it needs the same packages on "
            "the scheduler and all workers, and a criterion that can be pickled"
        )


def _is_dask_worker() -> bool:
    """Whether this is a task on a worker already, which had better not wait for other tasks."""
    from distributed import get_worker

    try:
        return bool(get_worker())
    except ValueError:
        return False


class _OnRay:
    """A Ray cluster: the function in its object store, from where each machine takes it once."""

    def __init__(self, function: _VersionedFunction) -> None:
        import ray

        if not ray.is_initialized():
            ray.init()
        self.ray = ray
        self.function: Any = ray.put(function)
        self.work = ray.remote(_call).options(num_cpus=1, max_retries=MOST_LOSSES)

    def __enter__(self) -> _OnRay:
        return self

    def __exit__(self, *error: object) -> None:
        self.function = None

    def cores(self) -> int:
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def submit(self, item: Any) -> Any:
        return self.work.remote(self.function, item)

    def result(self, future: Any) -> Any:
        try:
            return self.ray.get(future)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            raise ClusterError(f"the Ray cluster gave up: {str(error).splitlines()[0]}") from error


def serial(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """The map of one worker: this thread."""
    with one_blas_thread():
        yield from map(function, items)


def threads(n_jobs: int | None = None) -> Map:
    """A map over threads of this process whatever the backend, for short work without BLAS on arrays they share.

    A call costs a tenth of what joblib's does (1 ms against 10); the items are all taken at once. How many workers a
    cluster has says nothing of this machine.
    """
    with nullcontext() if _cluster_map() is None else joblib.parallel_config(backend="threading"):
        n_threads = _n_workers(n_jobs)
    return in_turn if n_threads == 1 else ThreadPoolExecutor(n_threads).map


def threads_beside_device() -> int:
    """How many do what is left to this machine while its cores have little else to do."""
    return min(8, int(joblib.cpu_count()))  # more gain little


def begun(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """What the function gives, worked out by a thread from now on, without more for BLAS: call to wait for it."""
    return ThreadPoolExecutor(1).submit(one_blas_thread()(function), *arguments).result


def ahead(n_threads: int, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """A map of this process that keeps some items in flight, so that a device need not wait for the host."""
    waiting: deque[Any] = deque()
    pool = ThreadPoolExecutor(n_threads)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _pinned(function: Callable[[Any], Any], item: Any) -> Any:
    if parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent ends its workers
    with one_blas_thread():
        return function(item)


_lock = threading.Condition()
_users = 0
_limit: Any = None
# Libraries are looked for again when modules have come: it takes 14 ms where many are there.
_libraries = lru_cache(maxsize=1)(lambda n_modules: ThreadpoolController())


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One BLAS thread per worker, so that workers do not fight for cores and results do not depend on them.

    BLAS keeps one setting per process: the first to enter sets it, the last to leave puts it back.
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
                _lock.notify_all()


@atexit.register
def _wait_for_threads() -> None:
    """joblib's threads are daemons: one still inside a kernel when the interpreter ends would abort the process."""
    with _lock:
        _lock.wait_for(lambda: _users == 0, timeout=60)
