"""How far apart classes are in many subsets at a time, from means and covariances factored in one batch.

covariances is (groups, subsets, width, width), mean (subsets, width, classes) about the mean of all, prior (classes).
"""

from __future__ import annotations

import torch
from torch import Tensor


def mahalanobis(covariances: Tensor, mean: Tensor, prior: Tensor) -> Tensor:
    """Sum over classes p_c m_c' W^-1 m_c, with the one covariance W."""
    return _squared_lengths(_factorize(covariances[0]), mean) @ prior


def bhattacharyya(covariances: Tensor, mean: Tensor, prior: Tensor) -> Tensor:
    """Sum over pairs of classes p_i p_j (1/8 m' A^-1 m + 1/2 ln(|A| / sqrt(|S_i| |S_j|))), A = (S_i + S_j) / 2."""
    logs = _log_determinant(_factorize(covariances))
    total, n_classes = torch.zeros(len(mean), dtype=torch.float64, device=mean.device), len(prior)
    first, second = torch.triu_indices(n_classes, n_classes, 1, device=mean.device)
    for i, j in zip(torch.split(first, n_classes), torch.split(second, n_classes), strict=True):
        factors = _factorize((covariances[i] + covariances[j]).mul_(0.5))
        away = (mean[:, :, i] - mean[:, :, j]).permute(2, 0, 1)[..., None]
        ratio = _log_determinant(factors) - 0.5 * (logs[i] + logs[j])
        total += (prior[i] * prior[j]) @ (0.125 * _squared_lengths(factors, away)[..., 0] + 0.5 * ratio)
    return total


def divergence(covariances: Tensor, mean: Tensor, prior: Tensor) -> Tensor:
    """1/2 (sum over classes of p_c (tr(S_c^-1 T) + m_c' S_c^-1 m_c) - d), with T = sum of p_c (S_c + m_c m_c')."""
    whole = _factorize(torch.einsum("g,gbij->bij", prior, covariances) + (mean * prior) @ mean.mT)
    factors = _factorize(covariances)
    ratio = torch.linalg.solve_triangular(factors, whole.expand_as(factors), upper=False)
    lengths = _squared_lengths(factors, mean.permute(2, 0, 1)[..., None])[..., 0]
    return 0.5 * (prior @ (ratio.square().sum(dim=(2, 3)) + lengths) - mean.shape[1])


def _factorize(covariances: Tensor) -> Tensor:
    """Lower Cholesky factors, without a look at what came out: the ridge keeps covariances positive."""
    return torch.linalg.cholesky_ex(covariances).L


def _squared_lengths(factors: Tensor, vectors: Tensor) -> Tensor:
    """v' (L L')^-1 v of each column v of the vectors (..., width, columns)."""
    return torch.linalg.solve_triangular(factors, vectors, upper=False).square().sum(dim=-2)


def _log_determinant(factors: Tensor) -> Tensor:
    return 2.0 * factors.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
