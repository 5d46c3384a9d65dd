"""Ordered, lazy maps over workers: this thread, threads, or the joblib backend (processes, Dask)."""

from __future__ import annotations

import atexit
import logging
import operator
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

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]  # like the built-in map: ordered and lazy
in_turn: Map = map  # for work without BLAS
LOG = logging.getLogger("probewise")
MAX_LOSSES = 12  # of workers with the same item, after which the item is the likely cause
WAIT = 10.0  # seconds for a scheduler to answer, and between two checks of a cluster
PATIENCE = 60.0  # seconds without any worker until a cluster counts as lost
AHEAD = 2  # items submitted per core of a cluster
# Part of the message of a Dask scheduler about work that it cannot unpickle. It is a RuntimeError, as the function may
# raise too, so only the text distinguishes them.
UNPICKLABLE = "deserialization of the task graph"


class ClusterError(ConnectionError):
    """The cluster does not exist, is lost, or cannot do the work."""


def require_complete(selector: Any) -> None:
    """Raise the error that ended a fit early: a partial ranking is of no use in a size curve or a trial."""
    reason = str(getattr(selector, "stop_reason_", ""))
    if reason.startswith("interrupted"):
        raise ClusterError(reason) if ": " in reason else KeyboardInterrupt


def executor(n_jobs: int | None = None, *, prefer: str = "threads") -> Map:
    """A map over workers; its results come in the order of the items, for any kind and number of workers.

    ``n_jobs`` is the number of workers, at most two per core or 16; None: 1, or the number that
    ``joblib.parallel_config`` sets; -1: all cores. Its backend replaces the kind that is preferred here ("threads" or
    "processes"); the backend "dask" uses the whole cluster, whatever ``n_jobs``.
    """
    if (cluster_map := _cluster_map()) is not None:
        return cluster_map
    n_workers = _n_workers(n_jobs)
    if n_workers == 1:
        return serial
    parallel = partial(joblib.Parallel, n_jobs=n_workers, prefer=prefer, batch_size=1, pre_dispatch="2 * n_jobs")
    try:
        parallel(return_as="generator")
    except ValueError:  # some backends can only return lists
        return partial(_by_rounds, parallel())
    return partial(_stream, partial(parallel, return_as="generator"))


def _n_workers(n_jobs: int | None) -> int:
    """The requested number; on this machine limited to two workers per core or 16, because more are not faster."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} must be a whole number of workers, -1 for all cores, or None for 1")
    requested = int(joblib.effective_n_jobs(n_jobs))
    backend, _ = joblib.parallel.get_active_backend()
    is_local = type(backend).__module__.startswith("joblib.")
    return min(requested, max(16, 2 * int(joblib.cpu_count()))) if is_local else requested


def runs_in_this_process(n_jobs: int | None = None) -> bool:
    """Whether an `executor` that prefers threads uses this process only, so that data need not be sent."""
    if (cluster_map := _cluster_map()) is not None:
        return cluster_map is serial
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False) or joblib.effective_n_jobs(n_jobs) == 1


def _cluster_map() -> Map | None:
    """The map of the cluster of ``joblib.parallel_config``; serial inside a task of a Dask cluster."""
    backend, _ = joblib.parallel.get_active_backend()
    if type(backend) is not joblib.parallel.BACKENDS.get("dask"):
        return None
    return serial if _is_dask_worker() else partial(_map_on, partial(_OnDask, backend))


def _stream(parallel: Any, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """Map with a new `Parallel` each time, because one that was closed early mixes up later results."""
    revocable = _Revocable(function)
    with one_blas_thread():
        results = parallel()(joblib.delayed(_pinned)(revocable, item) for item in items)
        try:
            for result in results:  # noqa: UP028 - "yield from" would close the results outside the filter below
                yield result
        finally:
            with warnings.catch_warnings(action="ignore", category=UserWarning), silence_loky_shutdown():
                results.close()  # later blocks may be canceled
            revocable.function = None


@contextmanager
def silence_loky_shutdown() -> Iterator[None]:
    """Hide the traceback of loky's management thread, which fails on calls that were canceled before they started."""
    usual_hook = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        if failure.exc_type is not KeyError or type(failure.thread).__name__ != "_ExecutorManagerThread":
            usual_hook(failure)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = usual_hook


class _Revocable:
    """A function that can be revoked: joblib keeps calls that it has not started, and with them the data."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function: Callable[[Any], Any] | None = function

    def __call__(self, item: Any) -> Any:
        function = self.function
        return None if function is None else function(item)


def _by_rounds(parallel: Any, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """Map with a backend that returns lists: as many items at a time as there are workers."""
    waiting = iter(items)
    with one_blas_thread(), parallel:
        while round_ := list(islice(waiting, joblib.effective_n_jobs(parallel.n_jobs))):
            yield from parallel(joblib.delayed(_pinned)(function, item) for item in round_)


def _map_on(cluster: Any, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """Send the function once, and then single items; joblib would send both with every item."""
    waiting: deque[Any] = deque()
    remaining = iter(items)
    with cluster(partial(_call, __version__, function)) as workers:
        while True:
            waiting.extend(map(workers.submit, islice(remaining, max(0, AHEAD * workers.cores() - len(waiting)))))
            if not waiting:
                return
            yield workers.result(waiting.popleft())


def _call(version: str, function: Callable[[Any], Any], item: Any) -> Any:
    """Call the function on a worker, which must have the version of the caller."""
    if version != __version__:
        raise ClusterError(
            f"a worker of the cluster has probewise {__version__}, but this machine has {version}: "
            "install the same version"
        )
    return _pinned(function, item)


@dataclass(eq=False)
class _Submitted:
    """An item that was submitted to a cluster, and the scattered function that is applied to it."""

    item: Any
    function: Any = None
    future: Any = None
    losses: int = 0


class _OnDask:
    """A Dask cluster, used through its client because joblib's backend cannot continue when workers die.

    The function is scattered, and scattered again where all workers that had it are lost. Lost items are submitted
    again, because any worker gives the same result.
    """

    def __init__(self, backend: Any, function: Callable[[Any], Any]) -> None:
        self.client, self.function = backend.client, function
        self.address = self.client.scheduler.address
        self.first_patience = float(backend.wait_for_workers_timeout or PATIENCE)
        self.patience = max(PATIENCE, self.first_patience)
        self.n_cores, self.last_count = 1, float("-inf")

    def __enter__(self) -> _OnDask:
        if not self._n_threads():
            LOG.warning(
                "the Dask cluster at %s has no workers: waiting %.3g s for one", self.address, self.first_patience
            )
        self._scatter(self.first_patience)
        return self

    def __exit__(self, *error: object) -> None:
        self.scattered = None  # the cluster deletes data without references

    def cores(self) -> int:
        """Number of cores of all workers, counted from time to time because workers come and go."""
        if time.monotonic() - self.last_count > 1:
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
                if submitted.future.status == "error":  # raised by the function
                    raise
                if not isinstance(error, TimeoutError):
                    raise self._lost() from error
                self._count_cores()
            except RuntimeError as error:
                if UNPICKLABLE in str(error):
                    raise self._not_sent(error) from error
                raise

    def _send(self, submitted: _Submitted) -> _Submitted:
        if self.client.status != "running":
            raise self._lost()
        submitted.function = self.scattered
        submitted.future = self.client.submit(operator.call, self.scattered, submitted.item, pure=False)
        return submitted

    def _send_again(self, submitted: _Submitted, loss: Exception) -> None:
        if getattr(loss, "reason", None) == "scheduler-connection-lost":
            raise self._lost() from loss
        submitted.losses += 1
        if submitted.losses == MAX_LOSSES:
            raise ClusterError(
                f"the Dask cluster at {self.address} lost the worker of {submitted.item} {MAX_LOSSES} times: "
                "it may need more memory than a worker has"
            ) from loss
        if submitted.function is self.scattered:  # else it was scattered again for another lost item
            self._scatter(self.patience)
        self._send(submitted)

    def _scatter(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        while True:
            try:
                self.scattered = self.client.scatter(self.function, broadcast=True, hash=False, timeout=patience)
                self.last_staffed = time.monotonic()
                return
            except OSError as error:
                if self.client.status != "running":
                    raise self._lost() from error
                if time.monotonic() > deadline:
                    raise self._without_workers(patience) from error
                time.sleep(0.1)  # a worker died while it received the function
            except Exception as error:
                raise self._not_sent(error) from error

    def _count_cores(self) -> None:
        n_cores, self.last_count = self._n_threads(), time.monotonic()
        if n_cores:
            self.n_cores, self.last_staffed = n_cores, self.last_count
        elif self.last_count - self.last_staffed > self.patience:
            raise self._without_workers(self.patience)

    def _n_threads(self) -> int:
        try:
            return sum(self.client.nthreads().values())
        except OSError as error:
            raise self._lost() from error

    def _lost(self) -> ClusterError:
        return ClusterError(f"the Dask scheduler at {self.address} does not answer")

    def _without_workers(self, seconds: float) -> ClusterError:
        return ClusterError(
            f"the Dask cluster at {self.address} has had no workers for {seconds:.3g} s: start some with dask worker "
            f"{self.address}"
        )

    def _not_sent(self, error: Exception) -> ClusterError:
        words = " ".join(str(error).split())[:200]
        return ClusterError(
            f"the work cannot be sent to the Dask cluster at {self.address} ({words}): the scheduler and all workers "
            "need the same packages, and the criterion must be picklable"
        )


def _is_dask_worker() -> bool:
    """Whether this code runs in a task of a Dask worker, which must not wait for other tasks."""
    from distributed import get_worker

    try:
        return bool(get_worker())
    except ValueError:
        return False


@contextmanager
def on_dask(address: str) -> Iterator[None]:
    """Inside this context, `executor` maps over the Dask cluster whose scheduler is at the address."""
    try:
        from distributed import Client
        from distributed.comm import resolve_address
    except ModuleNotFoundError:
        raise ImportError("a Dask cluster needs the dask extra: pip install 'probewise[dask]'") from None
    try:
        client = Client(resolve_address(address), timeout=WAIT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address or 'an empty address'}: use the address that the command dask "
            "scheduler prints, such as tcp://host:8786"
        ) from error
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # lost items are submitted again, and a lost cluster raises ClusterError
    try:
        with client, joblib.parallel_config(backend="dask", client=client, wait_for_workers_timeout=PATIENCE):
            yield
    finally:
        log.setLevel(level)


def serial(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """A map with one worker, this thread."""
    with one_blas_thread():
        yield from map(function, items)


def threads(n_jobs: int | None = None) -> Map:
    """A map over threads of this process, for any backend, for short work on shared arrays without BLAS.

    A call takes a tenth of the time of a joblib call (1 ms instead of 10).
    """
    with nullcontext() if _cluster_map() is None else joblib.parallel_config(backend="threading"):
        n_threads = _n_workers(n_jobs)
    return in_turn if n_threads == 1 else ThreadPoolExecutor(n_threads).map


def threads_beside_device() -> int:
    """Number of threads for work on the CPU while a GPU scores probes."""
    return min(8, int(joblib.cpu_count()))  # more threads gain little


def keep_in_flight(n_threads: int, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """A map over a few threads of this process, so that a GPU does not wait for the CPU between two items."""
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
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent stops its workers
    with one_blas_thread():
        return function(item)


_lock = threading.Condition()
_users = 0
_limit: Any = None
# The search for libraries takes up to 14 ms, so it is repeated only when modules have been imported.
_libraries = lru_cache(maxsize=1)(lambda n_modules: ThreadpoolController())


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, so that workers do not compete for cores and results do not depend on them.

    BLAS has one setting per process: the first user sets it, and the last one restores it.
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
    """Wait for joblib's daemon threads: one inside a kernel at interpreter exit would abort the process."""
    with _lock:
        _lock.wait_for(lambda: _users == 0, timeout=60)
