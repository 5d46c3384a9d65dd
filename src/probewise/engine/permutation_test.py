"""Univariate permutation test: how well each feature alone predicts the target, compared with shuffled targets.

Each feature predicts the target by simple linear regression (for classes: the indicator of each class), with every row
left out in turn. Its score is the share of variance explained, at most 1, and below 0 for most useless features. The
scores of all features for shuffled targets are the null distribution, so correlated, skewed or discrete features need
no assumptions. The p-value of a feature is the share of null scores that are at least as high.

Correlated features have high null scores together. Therefore p-values are multiplied by the smallest factor with which
at most a tenth of the shuffled targets has any discovery at a false discovery rate of 0.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from ..executors import Map, in_turn, one_blas_thread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RATE = 0.1
MAX_SHUFFLES, MIN_SHUFFLES = 100, 20
MAX_PRODUCTS = 2e10  # a second or two
MAX_TARGETS = 20
MAX_CELLS = 2**22  # of the targets, and of the scores, times shuffles
MAX_ROWS = 5000  # a larger table is sampled
CELLS_PER_BATCH = 2**18
GRAIN, MIN_SCORE = 10**6, -2000  # scores are rounded to millionths and cut off below
MAX_DISTINCT = 2**21  # distinct scores that are counted in a table; more are sorted
SCORES_PER_BATCH = 2**19
STREAM = 0xA10E  # separates these random numbers from others with the same seed


def univariate_p_values(
    X: Any,
    y: Any,
    *,
    of_classes: bool,
    seed: int,
    together: Any = None,
    counted: Ints | None = None,
    map: Map = in_turn,
) -> Floats:
    """The p-value of each column of X.

    Rows with the same value in ``together`` are shuffled as one where they have one target, else among themselves.
    Missing values count as the mean of the column. ``counted`` are the rows to use; None: all rows.
    """
    random = np.random.default_rng([seed, STREAM])
    rows = np.sort(random.permutation(X.shape[0] if counted is None else counted)[:MAX_ROWS])
    target = np.unique(np.asarray(y)[rows], return_inverse=True)[1] if of_classes else np.asarray(y, np.float64)[rows]
    indicators = _indicators(int(target.max()) + 1, random) if of_classes else None
    n_cells = len(rows) * (1 if indicators is None else indicators.shape[1])
    affordable = min(MAX_PRODUCTS / (6.0 * n_cells * X.shape[1]), MAX_CELLS / n_cells, MAX_CELLS / X.shape[1])
    n_shuffles = int(np.clip(affordable, MIN_SHUFFLES, MAX_SHUFFLES))
    group = None if together is None else np.unique(np.asarray(together)[rows], return_inverse=True)[1]
    shuffled = [shuffled_target(target, group, random) for _ in range(n_shuffles)]
    targets = np.stack([_columns(values, indicators) for values in (target, *shuffled)], axis=1)
    X = X.tocsc() if sp.issparse(X) else X
    scores = np.empty((1 + n_shuffles, X.shape[1]), np.int32)

    def score(batch: slice) -> None:
        explained = _explained(_centered(X[:, batch], rows), targets)
        scores[:, batch] = np.rint(GRAIN * np.maximum(explained, MIN_SCORE)).T

    with one_blas_thread():  # as fast, and the bits do not depend on the number
        list(map(score, gen_batches(X.shape[1], max(1, CELLS_PER_BATCH // X.shape[0]))))
    return _p_values(scores)


def shuffled_target(target: NDArray[Any], group: Ints | None, random: np.random.Generator) -> NDArray[Any]:
    """Shuffle whole groups (numbered from 0) where each has a single target, else the rows within each group."""
    if group is None:
        return target[random.permutation(len(target))]
    first = np.unique(group, return_index=True)[1]
    if (target == target[first][group]).all():
        return target[first][random.permutation(len(first))][group]
    order, shuffled_order = np.argsort(group, kind="stable"), np.lexsort((random.random(len(group)), group))
    out = np.empty_like(target)
    out[order] = target[shuffled_order]
    return out


def _indicators(n_classes: int, random: np.random.Generator) -> Floats:
    """(classes, targets): indicators of the classes, a single one for two classes, random halves for many classes."""
    if n_classes <= MAX_TARGETS:
        return np.eye(n_classes)[:, 1:] if n_classes == 2 else np.eye(n_classes)
    return random.integers(0, 2, (n_classes, MAX_TARGETS)).astype(np.float64)


def _columns(target: NDArray[Any], indicators: Floats | None) -> Floats:
    """(rows, targets): target columns, centered, with a total variance of 1."""
    columns = target[:, None] if indicators is None else indicators[target]
    centered = columns - columns.mean(axis=0, dtype=np.float64)
    return np.asarray(centered / (np.sqrt((centered**2).sum()) or 1.0))


def _centered(part: Any, rows: Ints) -> Floats:
    """Centered columns of length 1 (0 where constant); missing values are 0."""
    part = np.asarray(part.toarray() if sp.issparse(part) else part)[rows].astype(np.float64)
    part -= np.where(np.isfinite(part).any(axis=0), np.nanmean(part, axis=0), 0.0)
    part[np.isnan(part)] = 0.0
    part /= np.maximum(np.abs(part).max(axis=0), np.finfo(float).tiny)
    length = np.sqrt((part**2).sum(axis=0))
    return np.asarray(part / np.where(length > 0, length, 1.0))


def _explained(part: Floats, targets: Floats) -> Floats:
    """(columns, shuffles): share of variance explained by lines fitted to all rows except the predicted one.

    Leaving out row i changes its residual from e to e / (1 - h), where h is its leverage 1 / n + x^2.
    """
    n_rows, n_shuffles, n_targets = targets.shape
    flat = targets.reshape(n_rows, -1)
    weights = 1 / np.maximum(1 - 1 / n_rows - part**2, 1 / n_rows) ** 2
    weighted = weights * part
    slopes = part.T @ flat
    unexplained = (
        weights.T @ flat**2 - 2 * slopes * (weighted.T @ flat) + slopes**2 * (weighted * part).sum(axis=0)[:, None]
    )
    return np.asarray(1 - unexplained.reshape(-1, n_shuffles, n_targets).sum(axis=2))


def _p_values(scores: NDArray[np.int32]) -> Floats:
    """p-values from scores (1 + shuffles, columns); the first row has the scores of the real target."""
    n_null, n_at_least = scores[1:].size, _count_at_least(scores[1:])
    rates = sorted(_smallest_rate(n_at_least(np.sort(shuffle)[::-1]) / n_null) for shuffle in scores[1:])
    factor = max(1.0, RATE / max(rates[max(int(RATE * len(scores)) - 1, 0)], 1e-12))
    return np.minimum(factor * (1 + n_at_least(scores[0])) / (1 + n_null), 1.0)


def _count_at_least(null_scores: NDArray[np.int32]) -> Callable[[NDArray[np.int32]], Ints]:
    """A function that returns how many null scores are at least as high as each score."""
    low, high = int(null_scores.min()), int(null_scores.max())
    if high - low >= min(MAX_DISTINCT, 4 * null_scores.size):
        ordered = np.sort(null_scores, axis=None)
        return lambda scores: np.asarray(null_scores.size - np.searchsorted(ordered, scores))
    counts = np.zeros(high - low + 2, np.int64)  # the last entry is for scores above all
    for batch in np.array_split(null_scores, max(1, null_scores.size // SCORES_PER_BATCH)):
        counts[:-1] += np.bincount(batch.ravel() - low, minlength=high - low + 1)
    np.cumsum(counts[::-1], out=counts[::-1])
    return lambda scores: np.asarray(counts[np.clip(scores, low, high + 1) - low])


def _smallest_rate(p_values: Floats) -> float:
    """Smallest false discovery rate with a discovery, from p-values in ascending order."""
    return float(np.min(p_values * len(p_values) / np.arange(1, len(p_values) + 1)))
