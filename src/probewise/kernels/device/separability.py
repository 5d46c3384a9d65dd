"""How far classes are apart in many subsets at a time: covariances looked up or made, and factored in one batch.

All in float64: determinants of nearly singular covariances have no digits to lose.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .columns import Lane, by_size, free_bytes, padded, send

SIZE_STEPS = np.unique([*range(8, 256, 8), *range(256, 1024, 32), *np.round(1024 * 1.25 ** np.arange(40))]).astype(int)
ROWS_AT_A_TIME = 4096


class DeviceSeparability:
    """J of many subsets at a time.

    Lines hold the standardised columns class by class, each about its class mean; where they fit, the covariances of
    all pairs of columns are kept instead, and a subset looks up its own.

    Parameters
    ----------
    order, starts : the rows class by class, and where each class starts.
    prior, mean : shares of the classes, and their means (classes, features) in standard units about the mean of all.
    origin, shift, scale : a column is less its origin and the shift of its class (classes, features), times the scale.
    """

    def __init__(
        self,
        X: Any,
        *,
        measure: str,
        order: NDArray[np.int64],
        starts: NDArray[np.int64],
        prior: NDArray[np.float64],
        mean: NDArray[np.float64],
        origin: Any,
        shift: NDArray[np.float64],
        scale: NDArray[np.float64],
        shrinkage: float,
        ridge: float,
        device: str,
    ) -> None:
        self.device, self.shrinkage, self.ridge = device, shrinkage, ridge
        self.distance = {
            "mahalanobis": self._mahalanobis,
            "bhattacharyya": self._bhattacharyya,
            "divergence": self._divergence,
        }[measure]
        self.lane = Lane(device)
        self.n_features, self.n_classes = X.shape[1], len(prior)
        self.prior = torch.from_numpy(prior).to(device)
        self.mean = torch.nn.functional.pad(torch.from_numpy(np.ascontiguousarray(mean.T)), (0, 0, 0, 1)).to(device)
        edges = starts.tolist() if measure != "mahalanobis" else [0, len(order)]
        self.groups = [slice(first, last) for first, last in pairwise(edges)]
        self.lines = self._standard(X, order, starts, origin, shift, scale)
        self.table = self._all_covariances() if self._covariances_fit() else None
        if self.table is not None:
            self.lines = self.lines.new_empty((len(self.lines), 0))
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    def _standard(self, X: Any, order: Any, starts: Any, origin: Any, shift: Any, scale: Any) -> Tensor:
        lines = send(X, order, self.device, centers=origin, dtype=torch.float64)
        shifts = torch.from_numpy(np.ascontiguousarray(shift.T)).to(self.device)
        for number, (first, last) in enumerate(pairwise(starts)):
            lines[:-1, first:last] -= shifts[:, number, None]
        lines[:-1] *= torch.from_numpy(scale).to(self.device)[:, None]
        return lines

    def _covariances_fit(self) -> bool:
        return 8 * (len(self.groups) + 2) * len(self.lines) ** 2 <= free_bytes(self.device)

    def _all_covariances(self) -> Tensor:
        table = torch.zeros((len(self.groups), *2 * self.lines.shape[:1]), dtype=torch.float64, device=self.device)
        for number, rows in enumerate(self.groups):
            for some in torch.split(self.lines[:, rows], ROWS_AT_A_TIME, dim=1):
                table[number].addmm_(some, some.T)
            table[number] /= rows.stop - rows.start
        return table

    def __call__(self, indices: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        sizes = np.diff(offsets)
        with self.lane():
            features = torch.from_numpy(np.ascontiguousarray(indices)).to(self.device)
            starts = torch.from_numpy(np.ascontiguousarray(offsets)).to(self.device)
            out = torch.zeros(len(sizes), dtype=torch.float64, device=self.device)
            for width, some in by_size(sizes, SIZE_STEPS):
                for batch in np.array_split(some, -(-len(some) // self._batch(width))):
                    chosen = torch.from_numpy(batch).to(self.device)
                    table = padded(features, starts, chosen, width, self.n_features)
                    out[chosen] = self.distance(self._covariances(table), self.mean[table])
            scores: NDArray[np.float64] = out.cpu().numpy()
        return scores

    def _batch(self, width: int) -> int:
        """How many subsets of this width at a time."""
        square = (5 * len(self.groups) + 6) * width**2
        return max(1, free_bytes(self.device) // (8 * (square + width * (self.lines.shape[1] + self.n_classes))))

    def _covariances(self, table: Tensor) -> Tensor:
        """Covariances (groups, subsets, width, width), shrunk, with the ridge; what only fills up has variance 1."""
        if self.table is not None:
            covariances = self.table[:, table[:, :, None], table[:, None, :]]
        else:
            lines = self.lines[table]
            parts = (lines[:, :, rows] for rows in self.groups)
            covariances = torch.stack([part @ part.mT / part.shape[2] for part in parts])
        diagonal = covariances.diagonal(dim1=-2, dim2=-1)
        variance = diagonal + torch.where(table == self.n_features, 1.0, self.ridge)
        covariances *= 1.0 - self.shrinkage
        diagonal.copy_(variance)
        return covariances

    def _mahalanobis(self, covariances: Tensor, mean: Tensor) -> Tensor:
        """Sum over classes p_c m_c' W^-1 m_c; mean (subsets, width, classes) is about the mean of all."""
        return _lengths(_factors(covariances[0]), mean) @ self.prior

    def _bhattacharyya(self, covariances: Tensor, mean: Tensor) -> Tensor:
        """Sum over pairs of classes p_i p_j (1/8 m' A^-1 m + 1/2 ln(|A| / sqrt(|S_i| |S_j|))), A = (S_i + S_j) / 2."""
        logs = _log_determinant(_factors(covariances))
        total = torch.zeros(len(mean), dtype=torch.float64, device=self.device)
        for i, j in self._pairs():
            factors = _factors((covariances[i] + covariances[j]).mul_(0.5))
            away = (mean[:, :, i] - mean[:, :, j]).permute(2, 0, 1)[..., None]
            spread = _log_determinant(factors) - 0.5 * (logs[i] + logs[j])
            distances = 0.125 * _lengths(factors, away)[..., 0] + 0.5 * spread
            total += (self.prior[i] * self.prior[j]) @ distances
        return total

    def _pairs(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Pairs of classes, as many at a time as there are classes."""
        first, second = torch.triu_indices(self.n_classes, self.n_classes, 1, device=self.device)
        yield from zip(torch.split(first, self.n_classes), torch.split(second, self.n_classes), strict=True)

    def _divergence(self, covariances: Tensor, mean: Tensor) -> Tensor:
        """1/2 (sum over classes of p_c (tr(S_c^-1 T) + m_c' S_c^-1 m_c) - d), with T = sum of p_c (S_c + m_c m_c')."""
        weighted = mean * self.prior
        scatter = torch.einsum("g,gbij->bij", self.prior, covariances) + weighted @ mean.mT
        whole = _factors(scatter)
        factors = _factors(covariances)
        ratio = torch.linalg.solve_triangular(factors, whole.expand_as(factors), upper=False)
        lengths = _lengths(factors, mean.permute(2, 0, 1)[..., None])[..., 0]
        return 0.5 * (self.prior @ (ratio.square().sum(dim=(2, 3)) + lengths) - mean.shape[1])


def _factors(covariances: Tensor) -> Tensor:
    """Lower Cholesky factors, without a look at what came out: the ridge keeps covariances positive."""
    return torch.linalg.cholesky_ex(covariances).L


def _lengths(factors: Tensor, vectors: Tensor) -> Tensor:
    """v' (L L')^-1 v of each column v of the vectors (..., width, columns)."""
    return torch.linalg.solve_triangular(factors, vectors, upper=False).square().sum(dim=-2)


def _log_determinant(factors: Tensor) -> Tensor:
    return 2.0 * factors.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
