"""Feature-major X on a GPU, columns of many subsets as padded tables, memory, and streams."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

PIECE_BYTES = 2**26  # bytes of X sent at a time
BATCH_SHARE = 0.4  # share of the free memory that a batch may take: threads share a GPU
CPU_BYTES = 2**28  # memory of a batch on the CPU
# Memory of each of the batches in flight: a multiple of the data, and at least enough to keep a GPU busy.
BATCH_PER_DATA, LEAST_BATCH_BYTES, BATCHES_IN_FLIGHT = 4, 2**28, 8
BATCH_VARIABLE = "PROBEWISE_BATCH_MIB"
ALIGN = 128  # each row of XT is padded to a multiple, because a GPU reads aligned segments of memory
TORCH_DTYPES = (np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8)
_loading = threading.Lock()


def free_bytes(device: str) -> int:
    """Memory that a batch may take: a share of the free memory of the GPU, or a fixed amount on the CPU."""
    if not device.startswith("cuda"):
        return CPU_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(BATCH_SHARE * (free + cached))


def planned_bytes(data_bytes: int) -> int:
    """Memory planned for one batch: in proportion to the data, or as the environment says."""
    stated = os.environ.get(BATCH_VARIABLE, "")
    if stated and not stated.isdigit():
        raise ValueError(f"{BATCH_VARIABLE}={stated!r} must be a whole number of MiB")
    return int(stated) * 2**20 if stated else max(LEAST_BATCH_BYTES, BATCH_PER_DATA * data_bytes)


def batch_bytes(device: str, data_bytes: int) -> int:
    """The planned memory of one batch, within the free memory."""
    return max(1, min(planned_bytes(data_bytes), free_bytes(device) // BATCHES_IN_FLIGHT))


def require_room(n_bytes: int, device: str, name: str) -> None:
    """Raise an error before anything is sent if the device has too little memory."""
    if not device.startswith("cuda"):
        return
    free, total = torch.cuda.mem_get_info(device)
    if n_bytes > free:
        raise MemoryError(
            f"{name} needs {n_bytes / 2**30:.1f} GiB on {device}, where {free / 2**30:.1f} of {total / 2**30:.1f} GiB "
            "are free: use device='cpu', fewer rows or features, or a GPU with more memory"
        )


def send_array(values: Any, device: str) -> Tensor:
    """Send an array without waiting for the device; CUDA copies unpinned memory before it returns."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(device, non_blocking=True)


def send(X: Any, rows: NDArray[np.int64], device: str, *, centers: Any = None, dtype: Any = torch.float32) -> Tensor:
    """XT, X - centers as a tensor (features + 1, rows), with zeros in the last row.

    Rows of X come in the order of ``rows`` and are padded with zeros to a multiple of 128.
    """
    n_features = X.shape[1]
    width = -(-len(rows) // ALIGN) * ALIGN
    require_room((n_features + 1) * width * dtype.itemsize, device, f"X ({X.shape[0]} x {n_features})")
    XT = torch.zeros((n_features + 1, width), dtype=dtype, device=device)
    order = send_array(rows, device)
    for start, values in _pieces(X, device):
        values = values.double()
        if centers is not None:
            values -= send_array(centers[start : start + len(values)], device)[:, None]
        XT[start : start + len(values), : len(rows)] = values[:, order].to(dtype)
    return XT


def _pieces(X: Any, device: str) -> Iterator[tuple[int, Tensor]]:
    """Pieces of X as (first feature, tensor (features, rows))."""
    n_rows, n_features = X.shape
    step = max(1, PIECE_BYTES // (8 * max(1, n_rows)))
    for start in range(0, n_features, step):
        stop = min(start + step, n_features)
        if sp.issparse(X):
            yield start, _dense(X, start, stop, device)
        else:
            piece = np.array(X[:, start:stop], order="C", dtype=X.dtype if X.dtype in TORCH_DTYPES else np.float64)
            yield start, torch.from_numpy(piece).to(device).T


def _dense(X: Any, start: int, stop: int, device: str) -> Tensor:
    """Columns of a CSC matrix as a dense tensor (features, rows)."""
    first, last = X.indptr[start], X.indptr[stop]
    values = send_array(X.data[first:last].astype(np.float64), device)
    features = send_array(np.repeat(np.arange(stop - start), np.diff(X.indptr[start : stop + 1])), device)
    rows = send_array(X.indices[first:last].astype(np.int64), device)
    out = torch.zeros((stop - start, X.shape[0]), dtype=torch.float64, device=device)
    return out.index_put_((features, rows), values, accumulate=True)


@cache
def _load_solvers(device: str) -> None:
    """Load CUDA's solvers, which torch does on the first call and fails to do from two threads at once."""
    one = torch.eye(1, device=device)
    torch.linalg.solve_triangular(torch.linalg.cholesky_ex(one).L, one, upper=False)


def memory(device: str) -> int:
    """Bytes of memory of a GPU; 8 GiB for a CPU."""
    return torch.cuda.get_device_properties(device).total_memory if device.startswith("cuda") else 2**33


class Streams:
    """CUDA streams: one for each batch in flight, so that no batch waits for the work of another.

    All fits of a process share the streams, because torch keeps a cache of memory for each stream.
    """

    _free: ClassVar[dict[str, list[Any]]] = {}  # streams of each device that no batch uses
    _turn, _batches, _n_batches = threading.Lock(), threading.Condition(), 0

    def __init__(self, device: str) -> None:
        self.device = device
        if device.startswith("cuda"):
            with _loading:
                _load_solvers(device)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """The block runs beside other batches."""
        with self._turn, self._batches:
            Streams._n_batches += 1
        try:
            with self._stream():
                yield
        finally:
            with self._batches:
                Streams._n_batches -= 1
                self._batches.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """The block runs when all other batches have ended, with the memory that they and the cache have freed."""
        with self._turn:
            with self._batches:
                self._batches.wait_for(lambda: not self._n_batches)
            self.free_cache()
            with self._stream():
                yield

    @contextmanager
    def _stream(self) -> Iterator[None]:
        if not self.device.startswith("cuda"):
            yield
            return
        free = self._free.setdefault(self.device, [])
        stream = free.pop() if free else torch.cuda.Stream(self.device)
        try:
            with torch.cuda.device(self.device), torch.cuda.stream(stream):
                yield
        finally:
            free.append(stream)

    def free_cache(self) -> None:
        """Wait for everything sent, so that other threads can use it, and return unused memory to the GPU."""
        if self.device.startswith("cuda"):
            torch.cuda.synchronize(self.device)
            torch.cuda.empty_cache()


def padded(indices: Tensor, offsets: Tensor, subsets: Tensor, width: int, fill: int) -> Tensor:
    """Features of subsets as a table (subsets, width), padded with ``fill``."""
    starts, stops = offsets[subsets, None], offsets[subsets + 1, None]
    positions = starts + torch.arange(width, device=indices.device)
    features = indices[torch.clamp(positions, max=max(len(indices) - 1, 0))].long()
    return torch.where(positions < stops, features, fill)


def by_size(sizes: NDArray[np.int64], steps: Any) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Pairs (width, subsets): each subset goes with the smallest width that holds it."""
    steps = np.asarray(steps)
    group = np.searchsorted(steps, sizes)
    for number in np.unique(group):
        yield int(steps[number]), np.flatnonzero(group == number)
