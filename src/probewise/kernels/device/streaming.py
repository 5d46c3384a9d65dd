"""X sent to a device a slice of columns at a time, the next one while the device works on the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .columns import require_room

BYTES = 2**27
ALIGN = 16  # columns: a slice starts where 16 bytes start
ROWS_COPIED = 64


def column_slices(X: Any, device: str, *, map: Callable[..., Any] = map) -> Iterator[tuple[slice, Tensor]]:
    """(columns, tensor (rows, columns) on the device) over all columns of X: an array, a sparse matrix or a store.

    ``map`` shares the copying of rows among threads.
    """
    X = X.tocsc() if hasattr(X, "tocsc") else X
    sender = Sender(device, map)
    behind: tuple[slice, Callable[[], Tensor]] | None = None
    for columns in _slices(X):
        ahead = columns, sender.send(X[:, columns])
        if behind is not None:
            yield behind[0], behind[1]()
        behind = ahead
    if behind is not None:
        yield behind[0], behind[1]()


def _slices(X: Any) -> list[slice]:
    n_rows, n_columns = X.shape
    cells = BYTES // X.dtype.itemsize
    if hasattr(X, "column_slices"):
        slices: list[slice] = X.column_slices(cells)
        return slices
    step = max(ALIGN, cells // max(1, n_rows) // ALIGN * ALIGN)
    return [slice(start, min(start + step, n_columns)) for start in range(0, n_columns, step)]


class Sender:
    """Sends arrays: to a GPU through two page-locked buffers in turn and on a stream of its own."""

    def __init__(self, device: str, map: Callable[..., Any]) -> None:
        self.device, self.map = device, map
        self.is_gpu = device.startswith("cuda")
        self.stream = torch.cuda.Stream(device) if self.is_gpu else None
        self.buffers: list[Tensor | None] = [None, None]
        self.sent: list[Any] = [None, None]
        self.turn = 0

    def send(self, values: Any) -> Callable[[], Tensor]:
        """A function that waits for the tensor (rows, columns), in C order."""
        values = values.toarray() if hasattr(values, "toarray") else values
        by_columns = not values.flags.c_contiguous and values.flags.f_contiguous
        lines = values.T if by_columns else values
        arrived = self._send(lines) if self.is_gpu else partial(self._copied, lines, self._room(lines))
        return lambda: arrived().T.contiguous() if by_columns else arrived()

    def _send(self, lines: NDArray[Any]) -> Callable[[], Tensor]:
        require_room(2 * lines.nbytes, self.device, f"a slice of X ({lines.shape[0]} x {lines.shape[1]})")
        self.turn = 1 - self.turn
        if self.sent[self.turn] is not None:
            self.sent[self.turn].synchronize()
        room = self._copied(lines, self._room(lines))
        with torch.cuda.stream(self.stream):
            tensor = room.to(self.device, non_blocking=True)
            sent = self.sent[self.turn] = torch.cuda.Event()
            sent.record()

        def arrived() -> Tensor:
            work = torch.cuda.current_stream(self.device)
            work.wait_event(sent)
            tensor.record_stream(work)
            return tensor

        return arrived

    def _room(self, lines: NDArray[Any]) -> Tensor:
        """A tensor of that shape: new on the CPU, part of a buffer for the GPU."""
        kind = torch.from_numpy(np.empty(0, sendable(lines.dtype))).dtype
        if not self.is_gpu:
            return torch.empty(lines.shape, dtype=kind)
        buffer = self.buffers[self.turn]
        if buffer is None or len(buffer) < lines.size or buffer.dtype != kind:
            buffer = self.buffers[self.turn] = torch.empty(lines.size, dtype=kind, pin_memory=True)
        return buffer[: lines.size].view(lines.shape)

    def _copied(self, lines: NDArray[Any], room: Tensor) -> Tensor:
        into = room.numpy()

        def copy(start: int) -> None:
            into[start : start + ROWS_COPIED] = lines[start : start + ROWS_COPIED]

        for _ in self.map(copy, range(0, len(lines), ROWS_COPIED)):
            pass
        return room


def sendable(dtype: Any) -> np.dtype[Any]:
    """The type in which values of a type are sent: torch has bytes, signed integers and floats."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    if dtype.kind == "u" and dtype.itemsize > 1:
        return np.dtype(np.float64)
    return np.dtype(np.float64) if dtype.itemsize > 8 else dtype.newbyteorder("=")
