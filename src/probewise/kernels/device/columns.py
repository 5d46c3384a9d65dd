"""X on a device, a line for each feature; the columns of many subsets as padded tables; memory and streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

PIECE = 2**26  # bytes of X sent at a time
SHARE = 0.4  # of the free memory that a batch may take: threads share a GPU
CPU_BYTES = 2**28
ALIGN = 128  # rows: lines start where a GPU reads whole segments of memory
PLAIN = (np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8)  # that torch knows
LOADING = threading.Lock()


def free_bytes(device: str) -> int:
    """How much memory a batch may take: a share of what is free on the GPU, or a fixed amount on the CPU."""
    if not device.startswith("cuda"):
        return CPU_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(SHARE * (free + cached))


def require_room(n_bytes: int, device: str, what: str) -> None:
    """A clear sentence where the device is too small, before anything is sent."""
    if not device.startswith("cuda"):
        return
    free, total = torch.cuda.mem_get_info(device)
    if n_bytes > free:
        raise MemoryError(
            f"{what} needs {n_bytes / 2**30:.1f} GiB on {device}, where {free / 2**30:.1f} of {total / 2**30:.1f} GiB "
            "are free: use device='cpu', fewer rows or features, or a GPU with more memory"
        )


def send_array(values: Any, device: str) -> Tensor:
    """Without waiting for what runs there: of memory that is not pinned CUDA takes a copy before it returns."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(device, non_blocking=True)


def send(
    X: Any, rows: NDArray[np.int64], device: str, *, centers: Any = None, scale: float = 1.0, dtype: Any = torch.float32
) -> Tensor:
    """X, less the centres and times the scale, as a tensor (features + 1, rows): a line for each feature, a last of
    zeros. Rows come in the order given and are filled up with zeros to a multiple of 128."""
    n_features = X.shape[1]
    width = -(-len(rows) // ALIGN) * ALIGN
    require_room((n_features + 1) * width * dtype.itemsize, device, f"X ({X.shape[0]} x {n_features})")
    lines = torch.zeros((n_features + 1, width), dtype=dtype, device=device)
    order = send_array(rows, device)
    for start, values in _pieces(X, device):
        values = values.double()
        if centers is not None:
            values -= send_array(centers[start : start + len(values)], device)[:, None]
        lines[start : start + len(values), : len(rows)] = (values[:, order] * scale).to(dtype)
    return lines


def _pieces(X: Any, device: str) -> Iterator[tuple[int, Tensor]]:
    """X in pieces of some features, as (first feature, tensor (features, rows))."""
    n_rows, n_features = X.shape
    step = max(1, PIECE // (8 * max(1, n_rows)))
    for start in range(0, n_features, step):
        stop = min(start + step, n_features)
        if sp.issparse(X):
            yield start, _dense(X, start, stop, device)
        else:
            piece = np.array(X[:, start:stop], order="C", dtype=X.dtype if X.dtype in PLAIN else np.float64)
            yield start, torch.from_numpy(piece).to(device).T


def _dense(X: Any, start: int, stop: int, device: str) -> Tensor:
    """Some columns of compressed columns, a line each."""
    first, last = X.indptr[start], X.indptr[stop]
    values = send_array(X.data[first:last].astype(np.float64), device)
    lines = send_array(np.repeat(np.arange(stop - start), np.diff(X.indptr[start : stop + 1])), device)
    places = send_array(X.indices[first:last].astype(np.int64), device)
    out = torch.zeros((stop - start, X.shape[0]), dtype=torch.float64, device=device)
    return out.index_put_((lines, places), values, accumulate=True)


@cache
def _load_solvers(device: str) -> None:
    """torch loads those of CUDA at their first call, and fails if two threads make it at once."""
    one = torch.eye(1, device=device)
    torch.linalg.solve_triangular(torch.linalg.cholesky_ex(one).L, one, upper=False)


def memory(device: str) -> int:
    """Bytes of a GPU; of a CPU, as much as a small one has."""
    return torch.cuda.get_device_properties(device).total_memory if device.startswith("cuda") else 2**33


class Streams:
    """A CUDA stream for each thread, so that one's results do not wait for another's work."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._own = threading.local()
        if device.startswith("cuda"):
            with LOADING:
                _load_solvers(device)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if not self.device.startswith("cuda"):
            yield
            return
        if not hasattr(self._own, "stream"):
            self._own.stream = torch.cuda.Stream(self.device)
        with torch.cuda.device(self.device), torch.cuda.stream(self._own.stream):
            yield

    def synchronize(self) -> None:
        """Wait until all that was sent is there, for other threads to use."""
        if self.device.startswith("cuda"):
            torch.cuda.synchronize(self.device)


def padded(indices: Tensor, offsets: Tensor, subsets: Tensor, width: int, fill: int) -> Tensor:
    """The features of some subsets as a table (subsets, width), padded with ``fill``."""
    starts, stops = offsets[subsets, None], offsets[subsets + 1, None]
    places = starts + torch.arange(width, device=indices.device)
    features = indices[torch.clamp(places, max=max(len(indices) - 1, 0))].long()
    return torch.where(places < stops, features, fill)


def by_size(sizes: NDArray[np.int64], steps: Any) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """(width, subsets) for subsets whose size is at most that width and above the one before."""
    steps = np.asarray(steps)
    group = np.searchsorted(steps, sizes)
    for number in np.unique(group):
        yield int(steps[number]), np.flatnonzero(group == number)
