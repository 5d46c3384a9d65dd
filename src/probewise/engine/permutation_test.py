"""What each feature tells on its own about rows left out, and how often shuffled targets look as good.

A feature alone predicts the target by a straight line (of classes: the indicator of each), each row by the line through
the others; its score is the share of variation so explained, at most 1 and below 0 for most useless features. The same
with the target shuffled says what luck gives, for features as they are: correlated, skewed, of few values. A chance
is the share of all shuffled scores, of all features, that are as high.

Correlated features are lucky together. So chances are multiplied by the least number with which at most a tenth of the
shuffled targets would have anything stand out at a false-discovery rate of a tenth.
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
MOST_SHUFFLES, FEWEST_SHUFFLES = 100, 20
MOST_PRODUCTS = 2e10  # a second or two
MOST_TARGETS, MOST_CELLS = 20, 2**22  # of targets; of these, and of scores, times shuffles
MOST_ROWS = 5000  # of more a part is drawn: what stands out there does so among all
CELLS_AT_A_TIME = 2**18
GRAIN, LOWEST = 10**6, -2000  # scores are whole millionths; none counts as less than this
MOST_COUNTED = 2**21  # different scores: of more, those beyond one are found by sorting
COUNTED_AT_A_TIME = 2**19
STREAM = 0xA10E  # apart from what else is drawn with the same seed


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
    """The chance that luck gives each column of X what it tells about y.

    Rows with the same value in ``together`` are shuffled as one where they have one target, else among themselves.
    Missing values count as the column's mean. Of the rows those ``counted`` are looked at; None: all.
    """
    random = np.random.default_rng([seed, STREAM])
    rows = np.sort(random.permutation(X.shape[0] if counted is None else counted)[:MOST_ROWS])
    target = np.unique(np.asarray(y)[rows], return_inverse=True)[1] if of_classes else np.asarray(y, np.float64)[rows]
    indicators = _indicators(int(target.max()) + 1, random) if of_classes else None
    n_cells = len(rows) * (1 if indicators is None else indicators.shape[1])
    affordable = min(MOST_PRODUCTS / (6.0 * n_cells * X.shape[1]), MOST_CELLS / n_cells, MOST_CELLS / X.shape[1])
    n_shuffles = int(np.clip(affordable, FEWEST_SHUFFLES, MOST_SHUFFLES))
    group = None if together is None else np.unique(np.asarray(together)[rows], return_inverse=True)[1]
    shuffled = [shuffled_target(target, group, random) for _ in range(n_shuffles)]
    targets = np.stack([_columns(values, indicators) for values in (target, *shuffled)], axis=1)
    X = X.tocsc() if sp.issparse(X) else X
    scores = np.empty((1 + n_shuffles, X.shape[1]), np.int32)

    def score(some: slice) -> None:
        explained = _explained(_centred(X[:, some], rows), targets)
        scores[:, some] = np.rint(GRAIN * np.maximum(explained, LOWEST)).T

    with one_blas_thread():  # as fast, and the bits do not depend on how many
        list(map(score, gen_batches(X.shape[1], max(1, CELLS_AT_A_TIME // X.shape[0]))))
    return _chances(scores)


def shuffled_target(target: NDArray[Any], group: Ints | None, random: np.random.Generator) -> NDArray[Any]:
    """Groups, numbered from 0, are shuffled as wholes where each has one target, else each in itself."""
    if group is None:
        return target[random.permutation(len(target))]
    first = np.unique(group, return_index=True)[1]
    if (target == target[first][group]).all():
        return target[first][random.permutation(len(first))][group]
    order, drawn = np.argsort(group, kind="stable"), np.lexsort((random.random(len(group)), group))
    out = np.empty_like(target)
    out[order] = target[drawn]
    return out


def _indicators(n_classes: int, random: np.random.Generator) -> Floats:
    """(classes, targets): the indicator of each class, one for two of them; of many some random halves."""
    if n_classes <= MOST_TARGETS:
        return np.eye(n_classes)[:, 1:] if n_classes == 2 else np.eye(n_classes)
    return random.integers(0, 2, (n_classes, MOST_TARGETS)).astype(np.float64)


def _columns(target: NDArray[Any], indicators: Floats | None) -> Floats:
    """(rows, targets), centred and together of variation 1."""
    columns = target[:, None] if indicators is None else indicators[target]
    centred = columns - columns.mean(axis=0, dtype=np.float64)
    return np.asarray(centred / (np.sqrt((centred**2).sum()) or 1.0))


def _centred(part: Any, rows: Ints) -> Floats:
    """Columns less their means and of length 1 (constant ones 0), missing values 0."""
    part = np.asarray(part.toarray() if sp.issparse(part) else part)[rows].astype(np.float64)
    part -= np.where(np.isfinite(part).any(axis=0), np.nanmean(part, axis=0), 0.0)
    part[np.isnan(part)] = 0.0
    part /= np.maximum(np.abs(part).max(axis=0), np.finfo(float).tiny)
    length = np.sqrt((part**2).sum(axis=0))
    return np.asarray(part / np.where(length > 0, length, 1.0))


def _explained(part: Floats, targets: Floats) -> Floats:
    """(columns, shuffles): the share of variation explained by lines through all rows but the one predicted.

    Leaving out row i changes its residual from e to e / (1 - h), h being its leverage 1 / n + x^2.
    """
    n_rows, n_shuffles, n_targets = targets.shape
    flat = targets.reshape(n_rows, -1)
    weights = 1 / np.maximum(1 - 1 / n_rows - part**2, 1 / n_rows) ** 2
    weighted = weights * part
    slopes = part.T @ flat
    left = weights.T @ flat**2 - 2 * slopes * (weighted.T @ flat) + slopes**2 * (weighted * part).sum(axis=0)[:, None]
    return np.asarray(1 - left.reshape(-1, n_shuffles, n_targets).sum(axis=2))


def _chances(scores: NDArray[np.int32]) -> Floats:
    """From scores (1 + shuffles, columns), of which the first are of the target as it is."""
    n_luck, beyond = scores[1:].size, _beyond(scores[1:])
    needed = sorted(_rate_that_finds(beyond(np.sort(own)[::-1]) / n_luck) for own in scores[1:])
    allowed = max(int(RATE * len(scores)) - 1, 0)
    factor = max(1.0, RATE / max(needed[allowed], 1e-12))
    return np.minimum(factor * (1 + beyond(scores[0])) / (1 + n_luck), 1.0)


def _beyond(luck: NDArray[np.int32]) -> Callable[[NDArray[np.int32]], Ints]:
    """A function that says how many of these scores are at least as high as each of others."""
    low, high = int(luck.min()), int(luck.max())
    if high - low >= min(MOST_COUNTED, 4 * luck.size):
        ordered = np.sort(luck, axis=None)
        return lambda scores: np.asarray(luck.size - np.searchsorted(ordered, scores))
    counts = np.zeros(high - low + 2, np.int64)  # a score has its place, one above all the last
    for some in np.array_split(luck, max(1, luck.size // COUNTED_AT_A_TIME)):
        counts[:-1] += np.bincount(some.ravel() - low, minlength=high - low + 1)
    np.cumsum(counts[::-1], out=counts[::-1])
    return lambda scores: np.asarray(counts[np.clip(scores, low, high + 1) - low])


def _rate_that_finds(chances: Floats) -> float:
    """The least false-discovery rate at which something stands out, from chances in ascending order."""
    return float(np.min(chances * len(chances) / np.arange(1, len(chances) + 1)))
