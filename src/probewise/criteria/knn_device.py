"""Scores of feature subsets by k nearest neighbors, on a device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.device import has_triton
from ..kernels.device.columns import batch_bytes, send, send_array
from ..kernels.device.neighbors import BYTES_PER_PAIR, TILE_ROWS, Rows, nearest, soft_votes, vote
from ..kernels.device.scores import total
from ..kernels.neighbors import tie_keys
from ..kernels.scores import PROBABILITY, ROC_AUC
from ..kernels.votes import TYPICAL
from .base import Floats, Folds
from .base_device import BATCH_BYTES, Batch, DeviceScorer, at_a_time

MOST_NEIGHBORS = 32
MOST_IN_GRID = 65_535  # subsets at a time: CUDA's limit on the second dimension of a grid


class RowsByFold(NamedTuple):
    """Rows to search and the group of each row, -1 for padding; the neighbors of a row are in other groups.

    ``queries`` are the positions of the rows to test.
    """

    rows: NDArray[np.int64]
    groups: NDArray[np.int64]
    queries: NDArray[np.int64]

    @classmethod
    def of(cls, folds: Folds, *, together: bool, once: bool = False, tile: int = 1) -> list[RowsByFold]:
        """One object for folds that partition the rows (``together``), else one for each split.

        ``once``: a row that a split trains on several times is one neighbor. Each fold is padded to whole tiles if that
        adds few rows.
        """
        if together:
            sizes = np.diff(folds.borders)
            padded = -(-sizes // tile) * tile if 2 * tile * len(sizes) <= folds.n_rows else sizes
            offset = np.arange(padded.sum()) - np.repeat(np.cumsum(padded) - padded, padded)
            is_row = offset < np.repeat(sizes, padded)
            rows = np.zeros(len(is_row), np.int64)
            rows[is_row] = folds.order
            return [cls(rows, np.where(is_row, np.repeat(np.arange(len(sizes)), padded), -1), np.flatnonzero(is_row))]
        return [cls._of_split(train, np.sort(test), once, tile) for train, test in folds.splits]

    @classmethod
    def _of_split(cls, train: NDArray[np.int64], test: NDArray[np.int64], once: bool, tile: int) -> RowsByFold:
        train, padding = np.unique(train) if once else train, np.zeros(-len(test) % tile, np.int64)
        groups = np.repeat([0, -1, 1], [len(test), len(padding), len(train)])
        return cls(np.r_[test, padding, train], groups, np.arange(len(test)))


class DeviceKNN(DeviceScorer):
    """J of many subsets at a time, with the same neighbors as on the CPU.

    On a GPU, neighbors are found by products in half precision and bounds of their errors. Exact distances are used if
    the bounds leave a neighbor undecided, or if J depends on distances. Subsets with missing values are searched fold
    by fold, because each fold fills them with its own values.
    """

    def _prepare(self) -> None:
        bound = self.bound
        if bound.n_neighbors > MOST_NEIGHBORS:
            raise ValueError(
                f"n_neighbors={bound.n_neighbors}: a device supports at most {MOST_NEIGHBORS} "
                "neighbors; use device='cpu' for more"
            )
        self.n_features, self.k, self.n_classes = bound.columns.n_features, bound.n_neighbors, bound.target.n_classes
        once = bound.measure.is_probability
        tile = TILE_ROWS if has_triton(self.device) else 1
        parts = RowsByFold.of(bound.folds, together=bound.folds.is_partition, once=once, tile=tile)
        self.searches = [Search(self, part) for part in parts]
        self.neighbor_bytes = batch_bytes(self.device, sum(search.rows.XT.nbytes for search in self.searches))
        self.missing: Any = getattr(bound, "missing", None)
        self.filled: list[Search] = []
        if self.missing is not None and len(self.missing.columns):
            parts = RowsByFold.of(bound.folds, together=False, tile=tile)
            self.filled = [Search(self, part, fills) for part, fills in zip(parts, self.missing.fills, strict=True)]

    def _scores(self, batch: Batch) -> Floats:
        scores = torch.empty(len(batch.sizes), dtype=torch.float64, device=self.device)
        incomplete = np.zeros(len(batch.sizes), bool)
        if self.filled:
            incomplete = self.missing.in_each(batch.indices, batch.offsets)
        for searches, chosen in ((self.searches, ~incomplete), (self.filled, incomplete)):
            positions = np.flatnonzero(chosen)
            step = self.neighbor_bytes // (self.measure.n_tests * (40 * self.k + 100))
            step = int(np.clip(step, 1, MOST_IN_GRID))
            for start in range(0, len(positions), step):
                chunk = positions[start : start + step]
                scores[self._send(chunk)] = self.measure(self._predicted(searches, batch, chunk))
        return scores.cpu().numpy()

    def _predicted(self, searches: list[Search], batch: Batch, chosen: NDArray[np.int64]) -> Tensor:
        """Predictions (chosen, tests): classes, shares of votes, or means of targets."""
        if self.n_classes and self.bound.measure.code not in (ROC_AUC, PROBABILITY):
            votes = [vote(search.neighbors(batch, chosen)[0], self.n_classes) for search in searches]
            return torch.cat(votes, dim=1)
        neighbors = [search.neighbors(batch, chosen) for search in searches]
        targets, distances = (torch.cat(parts, dim=1) for parts in zip(*neighbors, strict=True))
        if self.bound.measure.is_probability:
            typical = total(distances[:, :, min(TYPICAL, self.k) - 1]) / distances.shape[1]
            return soft_votes(targets == self.measure.truth[:, None], distances, typical)
        return total(targets.double()) / self.k


class Search:
    """The rows to search, on the device; missing values are replaced by ``fills``."""

    def __init__(self, scorer: DeviceKNN, part: RowsByFold, fills: Floats | None = None) -> None:
        bound, columns, self.scorer, self.device = scorer.bound, scorer.bound.columns, scorer, scorer.device
        dtype = torch.float32 if columns.dtype == np.float32 else torch.float64
        XT = send(columns.X, part.rows, self.device, dtype=dtype)
        if fills is not None:
            incomplete = bound.missing.columns
            for column, fill in zip(incomplete.tolist(), (fills + columns.centers[incomplete]).tolist(), strict=True):
                XT[column].nan_to_num_(nan=fill)
        groups, keys = np.full(XT.shape[1], -1), np.zeros(XT.shape[1], np.int64)
        groups[: len(part.rows)], keys[: len(part.rows)] = part.groups, tie_keys(bound.folds.n_rows)[part.rows]
        self.rows = Rows(XT, send_array(groups, self.device), send_array(keys, self.device))
        values = bound.target.values if scorer.n_classes else bound.target.values - bound.target.values.mean()
        self.k, self.targets = scorer.k, send_array(values[part.rows], self.device)
        self.queries = send_array(part.queries, self.device)
        self.quick = self._quick(groups, part.queries)

    def _quick(self, groups: NDArray[np.int64], queries: NDArray[np.int64]) -> Any:
        """Search with Triton kernels, or None without a GPU."""
        if not has_triton(self.device):
            return None
        from ..kernels.device.neighbors_quick import QuickNeighbors

        return QuickNeighbors(self.rows, groups, queries, self.k, self.scorer.bound.measure.is_probability)

    def neighbors(self, batch: Batch, chosen: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Targets and squared distances of neighbors (chosen, queries, k); sorted if J depends on distances."""
        if self.quick is not None:
            near, distances = self.quick.nearest(batch.features, batch.starts, batch.sizes, chosen)
            return self.targets[near.long()], distances
        shape = len(chosen), len(self.queries), self.k
        targets = torch.empty(shape, dtype=self.targets.dtype, device=self.device)
        distances = torch.empty(shape, dtype=torch.float64, device=self.device)
        n_bytes = BYTES_PER_PAIR * self.rows.XT.shape[1]
        step = at_a_time(n_bytes * len(self.queries))
        for positions, table in self.scorer.tables(batch, chosen, lambda _: step):
            numbers = torch.arange(len(self.queries), device=self.device)
            for chunk in torch.split(numbers, max(1, BATCH_BYTES // (n_bytes * len(table)))):
                pair = nearest(self.rows, table, self.queries[chunk], self.k)
                near, near_distances = (part[: len(positions)] for part in pair)
                targets[positions[:, None], chunk] = self.targets[near]
                distances[positions[:, None], chunk] = near_distances
        return targets, distances
