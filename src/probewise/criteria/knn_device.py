"""k-nearest-neighbour scores of feature subsets, on a device."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.device import has_triton
from ..kernels.device.columns import free_bytes, send, send_array
from ..kernels.device.neighbors import BYTES_PER_PAIR, nearest, vote
from ..kernels.votes import tie_keys
from .base import Floats
from .base_device import Batch, DeviceScorer, r2

MOST_NEIGHBORS = 32
HALF_RANGE = 2.0**-16  # of the largest column's reach: below, half precision would lose digits of a column
HALF_TOP = 2.0**12
LONGEST_IN_TRITON = 512  # features of a subset: more do not fit into registers
MOST_SLICES = 64  # folds summed one by one; more are gathered into a table


class RowsByFold(NamedTuple):
    """Rows, each with its group: neighbours are sought in other groups.

    The first ``n_queries`` rows vote; ``fold`` is the fold in which each of them is tested.
    """

    rows: NDArray[np.int64]
    groups: NDArray[np.int64]
    n_queries: int
    fold: NDArray[np.int64]

    @classmethod
    def of(cls, splits: Any, *, is_partition: bool) -> list[RowsByFold]:
        """One for folds that partition the rows, else one for each split."""
        if is_partition:
            tests = [np.sort(test) for _, test in splits]
            fold = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
            return [cls(np.concatenate(tests), fold, len(fold), fold)]
        return [
            cls(np.r_[test, train], np.repeat([0, 1], [len(test), len(train)]), len(test), np.full(len(test), fold))
            for fold, (train, test) in enumerate(splits)
        ]


class DeviceKNN(DeviceScorer):
    """J of many subsets at a time: X on the device in float32, and in half precision where that keeps its digits.

    Half precision serves subsets of eight features and more: products of 11-bit numbers summed in float32. Fewer
    features are compared in float32. Ties are broken as on the CPU, but by Triton's kernels, which take the first in
    the order of the folds.
    """

    def _prepare(self) -> None:
        bound, columns = self.bound, self.bound.columns
        if bound.n_neighbors > MOST_NEIGHBORS:
            raise ValueError(
                f"n_neighbors={bound.n_neighbors}: on a device at most {MOST_NEIGHBORS} neighbours; "
                "use device='cpu' for more"
            )
        self.n_features, self.k, self.n_classes = columns.n_features, bound.n_neighbors, bound.target.n_classes
        reach = abs(columns.X).max(axis=0).toarray().ravel() if columns.is_sparse else columns.extent.reach
        used = reach[reach > 0].astype(np.float64)
        self.scale = 2.0 ** np.floor(np.log2(HALF_TOP / used.max())) if len(used) else 1.0
        self.halves_serve = bool(len(used)) and used.min() * self.scale >= HALF_RANGE * HALF_TOP
        groups = RowsByFold.of(bound.folds.splits, is_partition=bound.fold_end is not None)
        self.searches = [Search(self, rows) for rows in groups]

    def _scores(self, batch: Batch) -> Floats:
        folds = [search.fold_scores(batch) for search in self.searches]
        scores: Floats = (torch.cat(folds, dim=1).sum(dim=1) / len(self.bound.folds.splits)).cpu().numpy()
        return scores


class Search:
    """The tensors of rows among which neighbours are sought, and scores from these."""

    def __init__(self, scorer: DeviceKNN, part: RowsByFold) -> None:
        columns, self.scorer, self.device = scorer.bound.columns, scorer, scorer.device
        self.k, self.n_features = scorer.k, scorer.n_features
        self.n_rows, self.n_queries = len(part.rows), part.n_queries
        centers = None if columns.is_sparse else columns.centers
        self.lines = send(columns.X, part.rows, self.device, centers=centers, scale=scorer.scale)
        self.halves = self.lines.half() if scorer.halves_serve and self._triton is not None else None
        groups = np.full(self.lines.shape[1], -1)
        groups[: self.n_rows] = part.groups
        self.groups = send_array(groups.astype(np.int32), self.device)
        self.ties = self._ties(part.rows)
        self.layout = self._triton and self._triton.Layout.of(part.groups, part.n_queries, self.device)
        self.targets = send_array(scorer.bound.target.values[part.rows], self.device)
        _, fold, sizes = np.unique(part.fold, return_inverse=True, return_counts=True)
        self.fold = send_array(fold, self.device)
        self.fold_sizes = send_array(sizes.astype(np.float64), self.device)
        self.starts, self.stops = np.cumsum(sizes) - sizes, np.cumsum(sizes)
        longest = np.arange(sizes.max())  # rows of each fold, which lie together; padded with one past the last
        members = np.where(longest < sizes[:, None], self.starts[:, None] + longest, self.n_queries)
        self.members = send_array(members, self.device)

    def _ties(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Keys of rows for ties, and the row that has a key; of one that is tested and trained on, the latter."""
        of_rows = tie_keys(self.scorer.bound.folds.n_rows)
        keys, row_of = np.zeros(self.lines.shape[1], np.int64), np.zeros(1 << len(of_rows).bit_length(), np.int64)
        keys[: len(rows)] = of_rows[rows]
        row_of[keys[: len(rows)]] = np.arange(len(rows))
        return send_array(keys, self.device), send_array(row_of, self.device)

    @cached_property
    def _triton(self) -> Any:
        """The Triton kernels, where there is a GPU for them."""
        if not has_triton(self.device):
            return None
        from ..kernels.device import neighbors_triton

        return neighbors_triton

    def fold_scores(self, batch: Batch) -> Tensor:
        """Score of each subset in each fold (subsets, folds)."""
        sizes = batch.sizes
        scores = torch.empty((len(sizes), len(self.stops)), dtype=torch.float64, device=self.device)
        if self._triton is not None and sizes.max(initial=0) <= LONGEST_IN_TRITON:
            step = max(1, free_bytes(self.device) // (self.lines.shape[1] * (24 * self.k + 8)))
            for start in range(0, len(sizes), step):
                stop = start + step
                near = self._triton.neighbors(self, batch.features, batch.starts[start : stop + 1], sizes[start:stop])
                scores[start:stop] = self._score_folds(near)
            return scores
        step = max(1, free_bytes(self.device) // (BYTES_PER_PAIR * self.n_queries * self.lines.shape[1]))
        for places, table in self.scorer.tables(batch, np.arange(len(sizes)), lambda width: step):
            near = nearest(self.lines[table], self.groups, self.ties, self.n_queries, self.k)
            scores[places] = self._score_folds(near)
        return scores

    def _score_folds(self, near: Tensor) -> Tensor:
        """Score of each fold (subsets, folds) from the neighbours (subsets, queries, k)."""
        truth, said = self.targets[: self.n_queries], self.targets[near.long()]
        if self.scorer.n_classes:
            right = vote(said, self.scorer.n_classes) == truth
            return self._sum_folds(right.int()).double() / self.fold_sizes
        mean = self._sum_folds(truth[None])[0] / self.fold_sizes
        scatter = self._sum_folds(((truth - mean[self.fold]) ** 2)[None])
        return r2(self._sum_folds((truth - said.mean(dim=2)) ** 2), scatter)

    def _sum_folds(self, values: Tensor) -> Tensor:
        """Sums over the rows of each fold."""
        if len(self.stops) <= MOST_SLICES:
            pieces = zip(self.starts.tolist(), self.stops.tolist(), strict=True)
            return torch.stack([values[:, start:stop].sum(dim=1) for start, stop in pieces], dim=1)
        return torch.nn.functional.pad(values, (0, 1))[:, self.members].sum(dim=2)
