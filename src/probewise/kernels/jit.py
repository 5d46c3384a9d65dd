"""Compilation of the kernels by numba: decorators, the disk cache, and a notice while kernels are compiled.

Private attributes of numba are used: the method that stores a kernel, which would end a run on a full disk, and the
source stamp of a cached kernel. numba compares only the file of the kernel itself and would load machine code made from
an older version of a helper in another file. The cache that they keep correct is worth it: a first `probewise rank` on
100 x 2,000 takes 13.5 s of CPU time, later ones 2.6 s.
"""

import gc
import hashlib
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import config, event
from numba.extending import intrinsic

log = logging.getLogger("probewise")
CACHED = "Compiling the numerical kernels for this machine. This takes up to half a minute and is done once."
NOT_CACHED = (
    "Compiling the numerical kernels. This takes up to half a minute in every run because there is no writable "
    "cache folder: set the environment variable NUMBA_CACHE_DIR to one."
)
IS_DISABLED = bool(vars(config)["DISABLE_JIT"])  # NUMBA_DISABLE_JIT=1, for debuggers and coverage
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


class CompileNotice(event.Listener):
    """Log one line when kernels are first compiled, so that a first call does not seem to hang.

    numba announces a compilation only if the disk cache does not contain the kernel.
    """

    def __init__(self) -> None:
        self.is_shown = False
        self.is_cached = True
        self.folder: Path | None = None  # of the cache
        self.depth = 0  # compilations under way, one inside the other
        self.seconds = 0.0  # spent on compilation so far

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.started, self.is_collecting = time.perf_counter(), gc.isenabled()
            gc.disable()  # compilation makes many objects that stay, and takes 1.1 times as long with collections
        # Functions that other packages make by exec, as skglm does, have no module.
        if not self.is_shown and "probewise" in (event.data["dispatcher"].py_func.__module__ or ""):
            self.is_shown = True
            if not (self.is_cached and self._was_shown_before()):
                log.warning(CACHED if self.is_cached else NOT_CACHED)

    def _was_shown_before(self) -> bool:
        """Whether another process has shown the line for this release; later ones compile a few kernels more."""
        if self.folder is None:
            return False
        mark = self.folder / f"compiling-{SOURCE_STAMP}"
        with suppress(OSError):
            mark.touch(exist_ok=False)
            return False
        return mark.exists()

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.started
            if self.is_collecting:
                gc.enable()


notice = CompileNotice()
event.register("numba:compile", notice)


def _digest_of_sources() -> str:
    digest = hashlib.blake2b(digest_size=12)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


SOURCE_STAMP = _digest_of_sources()


def njit_cached(function: Callable[..., Any]) -> Any:
    """Compile a kernel on its first call, cache it on disk where possible, and release the GIL in it.

    With NUMBA_DISABLE_JIT=1 it stays a Python function, which ignores overflow as compiled code does.
    """
    if IS_DISABLED:
        return np.errstate(all="ignore")(function)
    try:
        compiled = numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # there is no writable folder
        notice.is_cached = False
        return numba.njit(**OPTIONS)(function)
    cache = compiled._cache
    notice.folder = Path(cache.cache_path)
    cache._cache_file._source_stamp = SOURCE_STAMP
    cache.save_overload = _ignoring_full_disk(cache.save_overload)
    return compiled


def _ignoring_full_disk(save: Callable[..., None]) -> Callable[..., None]:
    """A kernel that cannot be stored is compiled again by the next process."""

    def save_if_possible(*arguments: Any) -> None:
        with suppress(OSError):
            save(*arguments)

    return save_if_possible


def njit_helper(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call, as a part of each of them."""
    return numba.njit(**OPTIONS)(function)


def njit_fastsum(function: Callable[..., Any]) -> Any:
    """Compile a helper in which the compiler may reorder sums, so that it can use vector instructions."""
    return numba.njit(fastmath={"reassoc", "contract"}, **OPTIONS)(function)


def intrinsic_like(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of an intrinsic, with the Python function that is called in its place under NUMBA_DISABLE_JIT=1."""
    return (lambda definition: plain) if IS_DISABLED else intrinsic


# Inlined before compilation. Best for a large helper with one caller: it is optimized only once.
njit_inline = numba.njit(inline="always")


@njit_helper
def longest(offsets):
    """Largest difference of consecutive offsets (numba takes a second or two to compile np.diff and max)."""
    most = 0
    for k in range(len(offsets) - 1):
        most = max(most, offsets[k + 1] - offsets[k])
    return most


@njit_helper
def sort_few(numbers):
    """Sort a few ``numbers`` in place, in ascending order (numba takes seconds to compile its own sort)."""
    for count in range(1, len(numbers)):
        value, slot = numbers[count], count
        while slot > 0 and numbers[slot - 1] > value:
            numbers[slot] = numbers[slot - 1]
            slot -= 1
        numbers[slot] = value


def read_only(array: Any) -> Any:
    """Read-only view of an array. Kernels are compiled per mutability; with this, one version is enough."""
    view = array.view()
    view.flags.writeable = False
    return view
