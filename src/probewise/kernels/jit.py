"""How kernels are compiled: once per machine, cached on disk, with a notice that it takes a while."""

import logging
import time
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

log = logging.getLogger("probewise")


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call, keep the machine code on disk, release the GIL."""
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


def part(function: Callable[..., Any]) -> Any:
    """Compile ``function`` as a part of the kernels that call it: it cannot be called from Python."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(nogil=True, error_model="numpy", **options)(function)


inline = numba.njit(inline="always")


def read_only(array: Any) -> Any:
    """The same memory, not to be written: kernels are compiled once for what may be written and what may not."""
    view = array.view()
    view.flags.writeable = False
    return view


class CompileNotice(event.Listener):
    """Says once per process that kernels are being compiled, so that a first call does not seem to hang.

    numba announces a compilation only when the disk cache has nothing to offer.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.seconds = 0.0
        self.said = False

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.started = time.perf_counter()
        if not self.said and "probewise" in event.data["dispatcher"].py_func.__module__:
            self.said = True
            log.warning(
                "Compiling the numerical kernels for this machine: once, up to half a minute; later runs load them."
            )

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.started


notice = CompileNotice()
event.register("numba:compile", notice)
