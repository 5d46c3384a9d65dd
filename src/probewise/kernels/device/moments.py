"""Mean and scatter of every column inside every class, each value read once: the CPU's `kernels.moments` on a device.

Rows are visited class after class through a table of their order. A run, some rows of one class, is summed in float64
as distances from its first value; runs of a class are joined by their counts. Where a sum is not finite, the column
is read again and NaN left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from . import filter_kernels
from .columns import Streams, free_bytes
from .streaming import column_slices

LONGEST_RUN = 4096  # rows: rounding stays small
SHORTEST_RUN = 64
PROGRAMS = 1024  # enough to keep a GPU busy
COLUMNS = 512  # about what a program reads of a row
ROWS_AT_ONCE = 4  # on their way together: 4 and 4 stages were the fastest of six on an H200


class ColumnMoments(NamedTuple):
    """As in `probewise.filters.fsdd.ClassMoments`: origins (features,); counts, int64, (classes, features) or
    (classes, 1) where nothing is missing; offsets and scatters (classes, features)."""

    origins: Any
    counts: Any
    offsets: Any
    scatters: Any


def moments_of(
    X: Any, codes: NDArray[np.int64], n_classes: int, device: str, *, map: Callable[..., Any] = map
) -> list[ColumnMoments]:
    """Of the rows of X in this machine's memory, sent slice by slice: arrays for each slice of columns."""
    with Streams(device)():
        return [
            ColumnMoments(*(table.cpu().numpy() for table in class_moments(values, codes, n_classes)))
            for _, values in column_slices(X, device, map=map)
        ]


def class_moments(X: Tensor, codes: NDArray[np.int64], n_classes: int) -> ColumnMoments:
    """Of the rows of a tensor (rows, features) where it lies; codes are the classes of rows, 0 to n_classes - 1."""
    return moments_of_runs(X, Runs.of(codes, n_classes, X.shape[1], X.device))


@dataclass(frozen=True)
class Runs:
    """Rows in order of class, cut into runs of one class each.

    table : the rows of run after run, each padded with its first row to a multiple of ROWS_AT_ONCE: a row at
        distance 0 adds nothing.
    begins : where runs begin in the table, and where the last one ends. counts, lengths : how many rows they have.
    rows_of_classes : how many rows classes have. own : where the runs of each begin, and where the last ones end.
    """

    table: Tensor
    begins: Tensor
    counts: Tensor
    rows_of_classes: Tensor
    lengths: NDArray[np.int64]
    own: NDArray[np.int64]

    @classmethod
    def of(cls, codes: NDArray[np.int64], n_classes: int, n_columns: int, device: Any) -> Runs:
        codes = np.asarray(codes)
        sizes = np.bincount(codes, minlength=n_classes)
        longest = _run_length(len(codes), n_columns)
        n_runs = -(-sizes // longest)
        offset = np.arange(n_runs.sum()) - np.repeat(np.cumsum(n_runs) - n_runs, n_runs)
        lengths = np.minimum(longest, np.repeat(sizes, n_runs) - longest * offset)
        rows = np.argsort(codes, kind="stable")
        room = -(-lengths // ROWS_AT_ONCE) * ROWS_AT_ONCE
        begins, firsts = np.cumsum(room) - room, np.cumsum(lengths) - lengths
        table = np.repeat(rows[firsts], room)
        table[np.arange(len(rows)) + np.repeat(begins - firsts, lengths)] = rows
        arrays = (table, np.append(begins, len(table)), lengths, sizes)
        sent = torch.from_numpy(np.concatenate(arrays).astype(np.int64)).to(device)  # once: each sending takes its time
        order, starts, counts, of_classes = torch.split(sent, [len(array) for array in arrays])
        return cls(order, starts, counts, of_classes, lengths, np.concatenate([[0], np.cumsum(n_runs)]))

    @property
    def is_one_per_class(self) -> bool:
        return len(self.lengths) == len(self.own) - 1 and bool((np.diff(self.own) == 1).all())


def _run_length(n_rows: int, n_columns: int) -> int:
    stripes = -(-n_columns // COLUMNS)
    return int(np.clip(n_rows * stripes // PROGRAMS, SHORTEST_RUN, LONGEST_RUN))


def moments_of_runs(X: Tensor, runs: Runs) -> ColumnMoments:
    """The same once the order of rows is on the device; X is read once."""
    kernels = filter_kernels(X.device.type)
    origins, offsets, scatters, is_finite = (kernels.sums_of_runs if kernels else _sums_of_runs)(X, runs)
    counts = runs.rows_of_classes[:, None]
    if not runs.is_one_per_class:
        _, offsets, scatters = _joined(runs, runs.counts[:, None], offsets, scatters)
    if is_finite:
        return ColumnMoments(origins, counts, offsets, scatters)
    again = torch.nonzero(~torch.isfinite(scatters).all(dim=0))[:, 0]
    counts = counts.repeat(1, X.shape[1])
    step = _columns_at_once(X)
    for start in range(0, len(again), step):
        some = again[start : start + step]
        origins[some], *found = _of_known(X[:, some], runs)
        counts[:, some], offsets[:, some], scatters[:, some] = _joined(runs, *found)
    if (counts == counts[:, :1]).all() and (counts[:, 0] == runs.rows_of_classes).all():
        counts = counts[:, :1]
    return ColumnMoments(origins, counts, offsets, scatters)


def _sums_of_runs(X: Tensor, runs: Runs) -> tuple[Tensor, Tensor, Tensor, bool]:
    """Origins (features,), offsets and scatters (runs, features), and whether all are finite; NaN gives NaN."""
    origins = X[runs.table[0]].double()
    offsets = torch.empty((len(runs.lengths), X.shape[1]), dtype=torch.float64, device=X.device)
    scatters = torch.empty_like(offsets)
    step = _columns_at_once(X)
    for start in range(0, X.shape[1], step):
        columns = slice(start, start + step)
        for run, (begin, length) in enumerate(zip(runs.begins[:-1].tolist(), runs.lengths.tolist(), strict=True)):
            values = X[:, columns][runs.table[begin : begin + length]].double()
            shift = values[0]
            apart = values - shift
            total = apart.sum(dim=0)
            mean = total / length
            offsets[run, columns] = (shift - origins[columns]) + mean
            scatters[run, columns] = (apart * apart).sum(dim=0) - total * mean
    return origins, offsets, scatters, bool(torch.isfinite(scatters).all())


def _of_known(X: Tensor, runs: Runs) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Origins, and of runs the counts, offsets and scatters, without NaN."""
    tables = []
    origins = torch.full((X.shape[1],), torch.nan, dtype=torch.float64, device=X.device)
    for begin, length in zip(runs.begins[:-1].tolist(), runs.lengths.tolist(), strict=True):
        values = X[runs.table[begin : begin + length]].double()
        known = ~torch.isnan(values)
        count = known.sum(dim=0)
        shift = _or_0(values.gather(0, known.int().argmax(dim=0)[None])[0])
        origins = torch.where(torch.isnan(origins) & (count > 0), shift, origins)
        apart = torch.where(known, values - shift, 0.0)
        total = apart.sum(dim=0)
        mean = total / count.clamp(min=1)
        offset = torch.where(count > 0, (shift - origins) + mean, 0.0)
        tables.append((count, offset, (apart * apart).sum(dim=0) - total * mean))
    counts, offsets, scatters = (torch.stack(table) for table in zip(*tables, strict=True))
    return _or_0(origins), counts, offsets, scatters


def _or_0(values: Tensor) -> Tensor:
    return torch.where(torch.isnan(values), 0.0, values)


def _joined(runs: Runs, counts: Tensor, offsets: Tensor, scatters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Counts, offsets and scatters of classes from those of their runs; 0 for a class without rows."""
    shape = len(runs.own) - 1, offsets.shape[1]
    means, sums = (torch.zeros(shape, dtype=torch.float64, device=offsets.device) for _ in range(2))
    totals = torch.zeros((shape[0], counts.shape[1]), dtype=torch.int64, device=offsets.device)
    for i, (first, last) in enumerate(zip(runs.own[:-1].tolist(), runs.own[1:].tolist(), strict=True)):
        if first == last:
            continue
        n, offset = counts[first:last], offsets[first:last]
        totals[i] = n.sum(dim=0)
        means[i] = offset[0] + (n * (offset - offset[0])).sum(dim=0) / totals[i].clamp(min=1)
        sums[i] = (scatters[first:last] + n * (offset - means[i]) ** 2).sum(dim=0)
    return totals, means, sums


def _columns_at_once(X: Tensor) -> int:
    return max(1, free_bytes(str(X.device)) // (64 * min(len(X), LONGEST_RUN) + 2 * X.element_size() * len(X)))
