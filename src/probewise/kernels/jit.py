"""How kernels are compiled: once per machine, cached on disk, with a notice that it takes a while."""

import hashlib
import logging
import platform
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

log = logging.getLogger("probewise")
KEPT = "Compiling the numerical kernels for this machine: once, half a minute or so; later runs load them."
NOT_KEPT = (
    "Compiling the numerical kernels, half a minute or so in every run: there is no folder to keep them in; name one "
    "that may be written in the environment variable NUMBA_CACHE_DIR."
)


class CompileNotice(event.Listener):
    """Says once per process that kernels are being compiled, so that a first call does not seem to hang.

    numba announces a compilation only when the disk cache has nothing to offer.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.seconds = 0.0
        self.said = False
        self.is_kept = True

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.started = time.perf_counter()
        if not self.said and "probewise" in event.data["dispatcher"].py_func.__module__:
            self.said = True
            log.warning(KEPT if self.is_kept else NOT_KEPT)

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.started


notice = CompileNotice()
event.register("numba:compile", notice)


def _sources() -> str:
    """A digest of all kernels: one may be made of parts that stand in other files."""
    digest = hashlib.blake2b(digest_size=12)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


SOURCES = _sources()
VERSION = f"{SOURCES}-{numba.__version__}-{platform.python_version()}"  # what compiled kernels are good for


class Elsewhere:
    """Kernels that another process is compiling: who needs one waits for it instead of doing the same work."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        self.is_at_work: Callable[[], bool] = bool

    def begin(self, names: Iterable[str], is_at_work: Callable[[], bool]) -> None:
        self.names, self.is_at_work = frozenset(names), is_at_work

    def loading(self, name: str, load: Callable[..., Any]) -> Callable[..., Any]:
        """``load``, which gives None for what is not on disk, and tries again while it may come."""

        def load_or_wait(*signature: Any) -> Any:
            found = load(*signature)
            while found is None and name in self.names and self.is_at_work():
                time.sleep(0.1)
                found = load(*signature)
            return found

        return load_or_wait


elsewhere = Elsewhere()


def njit_cached(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call, keep the machine code on disk where that can be, release the GIL."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that may be written
        notice.is_kept = False
        return numba.njit(**options)(function)
    # numba looks at the function's own file only, and has no public way to say more.
    cache = compiled._cache
    cache._cache_file._source_stamp = SOURCES
    cache.load_overload = elsewhere.loading(function.__name__, cache.load_overload)
    return compiled


def njit_helper(function: Callable[..., Any]) -> Any:
    """Compile ``function`` as a part of the kernels that call it: it cannot be called from Python."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(nogil=True, error_model="numpy", **options)(function)


def njit_fastsum(function: Callable[..., Any]) -> Any:
    """As `njit_helper`, for sums whose order the compiler may choose: vector instructions."""
    return numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})(function)


njit_inline = numba.njit(inline="always")  # a piece of its callers: a large one with one caller is optimised only once


@njit_helper
def longest(offsets):
    """The largest distance from an offset to the next; numba's own ways take a second or two to compile."""
    most = 0
    for place in range(len(offsets) - 1):
        most = max(most, offsets[place + 1] - offsets[place])
    return most


def read_only(array: Any) -> Any:
    """The same memory, not to be written: kernels are compiled once for what may be written and what may not."""
    view = array.view()
    view.flags.writeable = False
    return view
