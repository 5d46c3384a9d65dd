"""Where blocks run: one ordered, lazy map, serial or through joblib (threads, processes, Dask, Ray)."""

from __future__ import annotations

import atexit
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import parent_process
from typing import Any, Protocol

import joblib
from threadpoolctl import threadpool_limits


class Map(Protocol):
    """Like the built-in ``map``: results in order, made as they are asked for."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]: ...


def executor(n_jobs: int | None = None, *, prefer: str = "threads") -> Map:
    """A map over ``n_jobs`` workers (None: 1, or what ``joblib.parallel_config`` says; -1: all cores).

    ``prefer`` is "threads" or "processes"; an active ``joblib.parallel_config(backend=...)`` overrides it.
    Whatever the kind and number of workers, results come in the order of the items.
    """
    if joblib.effective_n_jobs(n_jobs) == 1:
        return serial
    options = {"n_jobs": n_jobs, "prefer": prefer, "batch_size": 1, "pre_dispatch": "2 * n_jobs"}
    try:
        return partial(_stream, joblib.Parallel(return_as="generator", **options))
    except ValueError:  # some backends only give whole lists
        return partial(_by_rounds, joblib.Parallel(**options))


def _stream(parallel: Any, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    with one_blas_thread():
        results = parallel(joblib.delayed(_pinned)(function, item) for item in items)
        try:
            for result in results:  # noqa: UP028 - "yield from" would close the results outside of the filter below
                yield result
        finally:
            with warnings.catch_warnings():  # that blocks after the last one wanted are dropped is meant
                warnings.simplefilter("ignore", UserWarning)
                results.close()


def _by_rounds(parallel: Any, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    waiting = iter(items)
    with one_blas_thread(), parallel:
        while round_ := list(islice(waiting, joblib.effective_n_jobs(parallel.n_jobs))):
            yield from parallel(joblib.delayed(_pinned)(function, item) for item in round_)


def serial(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """The map of one worker: this thread."""
    with one_blas_thread():
        yield from map(function, items)


in_turn: Map = map  # one after the other, for work without BLAS


def threads(n_jobs: int | None = None) -> Map:
    """A map over threads of this process whatever the backend, for short work without BLAS on arrays they share.

    A call costs a tenth of what joblib's does (1 ms against 10); the items are all taken at once.
    """
    n_threads = joblib.effective_n_jobs(n_jobs)
    return in_turn if n_threads == 1 else ThreadPoolExecutor(n_threads).map


def _pinned(function: Callable[[Any], Any], item: Any) -> Any:
    if parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent ends its workers
    with one_blas_thread():
        return function(item)


_lock = threading.Condition()
_users = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One BLAS thread per worker, so that workers do not fight for cores and results do not depend on them.

    BLAS keeps one setting per process: the first to enter sets it, the last to leave puts it back.
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = threadpool_limits(limits=1, user_api="blas")
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
