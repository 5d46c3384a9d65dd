"""k nearest neighbours of every row in many subsets at a time, and how well they vote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .columns import Lane, by_size, free_bytes, padded, send

MOST_NEIGHBORS = 32
FEW_FEATURES = 8
HALF_RANGE = 2.0**-16
HALF_TOP = 2.0**12
LONGEST_FUSED = 512
SIZE_STEPS = np.unique([*range(8, 256, 8), *range(256, 1024, 32), *np.round(1024 * 1.25 ** np.arange(40))]).astype(int)
FAR = 2**62
MOST_SLICES = 64


@dataclass(frozen=True)
class Part:
    """Rows in the order of the columns' lines, each with its group: neighbours are sought in other groups.

    The first ``n_queries`` rows vote; ``fold`` is the fold in which each of them is tested.
    """

    rows: NDArray[np.int64]
    groups: NDArray[np.int64]
    n_queries: int
    fold: NDArray[np.int64]


def parts_of(splits: Any, *, is_partition: bool) -> list[Part]:
    """One part for folds that partition the rows, else one for each split."""
    if is_partition:
        tests = [np.sort(test) for _, test in splits]
        fold = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
        return [Part(np.concatenate(tests), fold, len(fold), fold)]
    return [
        Part(
            np.concatenate([test, train]),
            np.repeat([0, 1], [len(test), len(train)]),
            len(test),
            np.full(len(test), number),
        )
        for number, (train, test) in enumerate(splits)
    ]


class DeviceKNN:
    """J of many subsets at a time: X on the device in float32, and in half precision where that keeps its digits.

    Half precision serves subsets of eight features and more: products of 11-bit numbers summed in float32. Fewer
    features are compared in float32. Among rows at equal distance the first in the order of the folds wins.
    """

    def __init__(
        self,
        X: Any,
        splits: Any,
        *,
        is_partition: bool,
        targets: NDArray[Any],
        n_classes: int,
        n_neighbors: int,
        centers: Any,
        reach: NDArray[np.float64],
        device: str,
    ) -> None:
        if n_neighbors > MOST_NEIGHBORS:
            raise ValueError(
                f"n_neighbors={n_neighbors}: on a device at most {MOST_NEIGHBORS} neighbours; use device='cpu' for more"
            )
        self.device, self.n_neighbors, self.n_classes = device, n_neighbors, n_classes
        self.n_splits = len(splits)
        self.lane = Lane(device)
        used = reach[reach > 0]
        scale = 2.0 ** np.floor(np.log2(HALF_TOP / used.max())) if len(used) else 1.0
        self.halves_serve = bool(len(used)) and used.min() * scale >= HALF_RANGE * HALF_TOP
        self.parts = [
            DevicePart(self, X, part, targets[part.rows], centers, scale)
            for part in parts_of(splits, is_partition=is_partition)
        ]
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    def __call__(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        with self.lane():
            features = torch.from_numpy(np.ascontiguousarray(indices)).to(self.device)
            starts = torch.from_numpy(np.ascontiguousarray(offsets)).to(self.device)
            sizes = np.diff(offsets)
            folds = [part.fold_scores(features, starts, sizes) for part in self.parts]
            scores: NDArray[np.float64] = (torch.cat(folds, dim=1).sum(dim=1) / self.n_splits).cpu().numpy()
        return scores


class DevicePart:
    """The tensors of one `Part`."""

    def __init__(self, whole: DeviceKNN, X: Any, part: Part, targets: NDArray[Any], centers: Any, scale: float) -> None:
        self.device, self.k, self.n_classes = whole.device, whole.n_neighbors, whole.n_classes
        self.n_rows, self.n_queries = len(part.rows), part.n_queries
        self.n_features = X.shape[1]
        self.lines = send(X, part.rows, self.device, centers=centers, scale=scale)
        self.halves = self.lines.half() if whole.halves_serve and self._fused is not None else None
        groups = np.full(self.lines.shape[1], -1)
        groups[: self.n_rows] = part.groups
        self.groups = torch.from_numpy(groups.astype(np.int32)).to(self.device)
        self.layout = None if self._fused is None else self._fused.Layout.of(part.groups, part.n_queries, self.device)
        self.targets = torch.from_numpy(np.ascontiguousarray(targets)).to(self.device)
        folds, fold = np.unique(part.fold, return_inverse=True)
        self.n_folds = len(folds)
        self.fold = torch.from_numpy(fold).to(self.device)
        self.fold_sizes = torch.from_numpy(np.bincount(fold).astype(np.float64)).to(self.device)
        self.ends = np.cumsum(np.bincount(fold)).tolist()
        longest = np.arange(np.bincount(fold).max())
        self.members = torch.from_numpy(  # rows of each fold, which lie together; filled up with one past the last
            np.where(longest < np.bincount(fold)[:, None], np.r_[0, self.ends[:-1]][:, None] + longest, self.n_queries)
        ).to(self.device)

    @cached_property
    def _fused(self) -> Any:
        """The Triton kernels, where there is a GPU for them."""
        if not self.device.startswith("cuda") or find_spec("triton") is None:
            return None
        from . import fused

        return fused

    def fold_scores(self, features: Tensor, starts: Tensor, sizes: NDArray[np.int64]) -> Tensor:
        """Score of each subset in each fold (subsets, folds)."""
        scores = torch.empty((len(sizes), self.n_folds), dtype=torch.float64, device=self.device)
        if self._fused is not None and sizes.max(initial=0) <= LONGEST_FUSED:
            step = max(1, free_bytes(self.device) // (self.lines.shape[1] * (24 * self.k + 8)))
            for start in range(0, len(sizes), step):
                stop = start + step
                near = self._fused.neighbors(self, features, starts[start : stop + 1], sizes[start:stop])
                scores[start:stop] = self._scored(near)
            return scores
        for width, probes in by_size(sizes, SIZE_STEPS):
            step = max(1, free_bytes(self.device) // (40 * self.n_queries * self.lines.shape[1]))
            for some in np.split(probes, range(step, len(probes), step)):
                chosen = torch.from_numpy(some).to(self.device)
                table = padded(features, starts, chosen, width, self.n_features)
                scores[chosen] = self._scored(self._nearest(table))
        return scores

    def _nearest(self, table: Tensor) -> Tensor:
        """The neighbours (subsets, queries, k) by plain products; a piece of the queries at a time if need be."""
        lines = self.lines[table]
        square = (lines * lines).sum(dim=1)
        step = max(1, free_bytes(self.device) // (40 * len(table) * lines.shape[2]))
        near = [
            self._nearest_of(lines, square, slice(start, min(start + step, self.n_queries)))
            for start in range(0, self.n_queries, step)
        ]
        return torch.cat(near, dim=1)

    def _nearest_of(self, lines: Tensor, square: Tensor, queries: slice) -> Tensor:
        own = lines[:, :, queries]
        if lines.shape[1] <= FEW_FEATURES:
            apart = sum((own[:, f, :, None] - lines[:, f, None, :]) ** 2 for f in range(lines.shape[1]))
        else:
            apart = square[:, queries, None] + square[:, None, :] - 2 * torch.bmm(own.transpose(1, 2), lines)
        near = torch.clamp(apart, min=0.0).view(torch.int32).long()  # floats from 0 up sort as their bits
        keys = near * 2**24 + torch.arange(lines.shape[2], device=self.device)
        others = (self.groups[None, :] != self.groups[queries, None]) & (self.groups >= 0)
        return torch.topk(torch.where(others, keys, FAR), self.k, dim=2, largest=False).values % 2**24

    def _scored(self, near: Tensor) -> Tensor:
        """Score of each fold (subsets, folds) from the neighbours (subsets, queries, k)."""
        truth = self.targets[: self.n_queries]
        if not self.n_classes:
            guess = self.targets[near.long()].mean(dim=2)
            mean = self._by_fold(truth[None])[0] / self.fold_sizes
            spread = self._by_fold(((truth - mean[self.fold]) ** 2)[None])
            missed = self._by_fold((truth - guess) ** 2)
            r2 = 1 - missed / torch.where(spread > 0, spread, 1.0)
            return torch.where(spread > 0, r2, (missed == 0).double())
        right = self._votes(self.targets[near.long()]) == truth
        return self._by_fold(right.int()).double() / self.fold_sizes

    def _votes(self, labels: Tensor) -> Tensor:
        """The most frequent label of each row; the lowest of those equally frequent."""
        if self.k == 1:
            return labels[:, :, 0]
        if self.n_classes == 2:
            return (2 * labels.sum(dim=2) > self.k).to(labels.dtype)
        best = torch.full_like(labels[:, :, 0], -1)
        for j in range(self.k):
            times = (labels == labels[:, :, j : j + 1]).sum(dim=2)
            best = torch.maximum(best, times * self.n_classes + (self.n_classes - 1 - labels[:, :, j]))
        return self.n_classes - 1 - best % self.n_classes

    def _by_fold(self, values: Tensor) -> Tensor:
        """Sums over the rows of each fold."""
        if self.n_folds <= MOST_SLICES:
            pieces = zip([0, *self.ends[:-1]], self.ends, strict=True)
            return torch.stack([values[:, start:stop].sum(dim=1) for start, stop in pieces], dim=1)
        return torch.nn.functional.pad(values, (0, 1))[:, self.members].sum(dim=2)
