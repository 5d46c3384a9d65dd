"""Pairs of columns whose product is related to y beyond their main effects: a scan of all pairs by matrix products.

The sum over rows of r * x_j * x_k is the entry (j, k) of the matrix product of r * X and X, so one matrix product gives
all pairs. Here r is what a sparse additive model leaves of y, and columns are normal scores of their ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from ..evaluation.permutations import Permutations
from ..executors import Map, in_turn, one_blas_thread, threads
from ..kernels.device import find
from ..kernels.pairs import strengths, strongest
from ..validation.errors import USUAL_ERROR_STATE
from ..validation.parameters import SHARE, check_parameter, seed_of
from .additive import AdditiveFit
from .association import tail_p_values
from .base import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_PRODUCTS = 2e11  # rows times pairs of columns that take about 20 s on two cores; `needed` and reports scan no more
CELLS_OF_BLOCK, CELLS_ON_DEVICE = 2**24, 2**28  # pairs that are computed at once
MAX_KEPT = 2000  # strongest pairs that are tested one by one
FIRST_CUT = 9.0  # squared standard errors below which a pair is not kept
NULL_PAIRS, NULL_DRAWS = 1000, 1000  # random pairs and permutations of r that calibrate the statistic
DRAWS_AT_A_TIME = 50


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of columns that act together, strongest first.

    Attributes
    ----------
    pairs : array of int of shape (n_pairs, 2)
        Column numbers.
    q_values : array of shape (n_pairs,)
        q-values over all pairs of columns (Benjamini and Hochberg).
    fdr : float
        The allowed expected share of false discoveries.
    """

    pairs: Ints
    q_values: Floats
    fdr: float = 0.1

    @property
    def columns(self) -> Ints:
        """The columns of the named pairs, ascending."""
        return np.unique(self.pairs)

    def __repr__(self) -> str:
        return f"Pairs({len(self.pairs):,} pairs at a false discovery rate of {self.fdr:g})"


@USUAL_ERROR_STATE
def pairs(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    strata: Any = None,
    adjust: Any = None,
    task: str = "auto",
    fdr: float = 0.1,
    device: str = "cpu",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Pairs:
    """Find pairs of columns whose product is related to y beyond what the columns do alone on any smooth scale of y.

    Parameters
    ----------
    X, y, groups, sample_weight, strata, adjust, task, fdr, random_state, n_jobs
        As in `associated`. Missing values in X count as average.
    device : str, default="cpu"
        Where all pairs are scanned: "cpu", "cuda", or "auto", which is a GPU if there is one. The strongest pairs are
        then tested on the CPU.

    Returns
    -------
    Pairs
        The named pairs, strongest first, and their q-values.

    Examples
    --------
    >>> import numpy as np
    >>> from probewise.inference import pairs
    >>> X = np.random.default_rng(0).standard_normal((200, 300))
    >>> y = X[:, 4] * X[:, 9] > 0
    >>> pairs(X, y, random_state=0).pairs
    array([[4, 9]])
    """
    check_parameter("fdr", fdr, SHARE)
    table = Table.of(X, y, groups=groups, sample_weight=sample_weight, strata=strata, adjust=adjust, task=task)
    seed = seed_of(random_state, None)
    run = in_turn if n_jobs in (None, 1) else threads(n_jobs)
    with one_blas_thread():
        return scan(AdditiveFit.of(table, []), fdr, seed, run, device)


def scan(fit: AdditiveFit, fdr: float, seed: int, run: Map = in_turn, device: str = "cpu") -> Pairs:
    """Scan all pairs of columns for what an additive model leaves of y."""
    targets = fit.residuals_on_curved_scales()
    targets -= targets.mean(axis=1, keepdims=True)
    n_columns = fit.columns.shape[1]
    n_pairs = n_columns * (n_columns - 1) // 2
    if not n_pairs:
        return Pairs(np.empty((0, 2), np.int64), np.empty(0), fdr)
    chosen = _strong_pairs(fit.columns, targets, run, device)[:, :2].astype(np.int64)
    products = _products(fit.columns, chosen)
    observed = _squares(products, targets, len(targets))[:, 0]
    random = np.random.default_rng([seed, 0xA1])
    sampled = random.integers(0, n_columns, (NULL_PAIRS, 2))
    null_products = _products(fit.columns, sampled[sampled[:, 0] != sampled[:, 1]])
    draws = Permutations.of(targets, fit.table.groups, fit.table.strata, seed)
    permuted = draws.draw(0, NULL_DRAWS)

    def null_squares(part: slice) -> Floats:
        some = permuted[part].astype(np.float64).reshape(-1, permuted.shape[-1])
        return _squares(null_products, some, len(targets)).ravel()

    null = list(run(null_squares, gen_batches(NULL_DRAWS, DRAWS_AT_A_TIME)))
    p_values = tail_p_values(observed, np.sort(np.concatenate(null)), draws.log_arrangements)
    order = np.argsort(p_values, kind="stable")
    # Benjamini and Hochberg over all pairs; those that were not kept have larger p-values.
    adjusted = p_values[order] * n_pairs / np.arange(1, len(order) + 1)
    q_values = np.minimum(np.minimum.accumulate(adjusted[::-1])[::-1], 1.0)
    named = q_values <= fdr
    return Pairs(np.sort(chosen[order][named], axis=1), q_values[named], fdr)


def _strong_pairs(columns: Floats, targets: Floats, run: Map, device: str) -> Floats:
    """(pairs, 3): columns j < k and an approximate statistic, of the strongest pairs."""
    values = np.asarray(columns, dtype=np.float32)
    lengths = np.sqrt((targets**2).sum(axis=1, keepdims=True))
    scaled = (targets / np.maximum(lengths, 1e-30)).astype(np.float32)
    torch_device = find(device)
    n_cells, n_columns = CELLS_OF_BLOCK if torch_device is None else CELLS_ON_DEVICE, columns.shape[1]
    blocks = list(gen_batches(n_columns, max(1, n_cells // n_columns)))
    if torch_device is None:
        parts = run(
            lambda block: strongest(strengths(values, scaled, block.start, block.stop), FIRST_CUT, MAX_KEPT), blocks
        )
    else:
        from ..kernels.device.pairs import strongest_pairs

        parts = strongest_pairs(values, scaled, blocks, FIRST_CUT, MAX_KEPT, torch_device)
    found = np.concatenate(
        [
            np.column_stack([row + block.start, column + block.start, value])
            for block, (row, column, value) in zip(blocks, parts, strict=True)
        ]
    )
    return found[np.argsort(-found[:, 2], kind="stable")[:MAX_KEPT]]


def _products(columns: Floats, chosen: Ints) -> Floats:
    """(pairs, rows): products of two columns minus what the columns and their squares explain of them, of length 1."""
    one, two = columns[:, chosen[:, 0]].T, columns[:, chosen[:, 1]].T
    directions: list[Floats] = []
    for part in (np.ones_like(one), one, two, one**2, two**2, one * two):
        left = part.copy()
        for direction in directions:
            left -= (left * direction).sum(axis=1, keepdims=True) * direction
        lengths = np.sqrt((left**2).sum(axis=1, keepdims=True))
        is_new = lengths > 1e-6 * np.sqrt((part**2).sum(axis=1, keepdims=True))
        directions.append(np.where(is_new, left / np.maximum(lengths, 1e-300), 0.0))
    return directions[-1]


def _squares(products: Floats, targets: Floats, n_summed: int) -> Floats:
    """Squared statistics of pairs, summed over each ``n_summed`` targets.

    The variance is that of the target without the effect of the pair. It allows for a spread that depends on the
    columns, which other pairs with one of the columns cause.
    """
    effects = products @ targets.T
    squares = products**2
    spread = squares @ (targets**2).T - 2 * effects * ((squares * products) @ targets.T)
    spread += effects**2 * (squares**2).sum(axis=1)[:, None]
    usual = ((targets**2).sum(axis=1) - effects**2) / targets.shape[1]
    ratios = effects**2 / np.maximum(np.maximum(spread, usual), 1e-30)
    logarithms = targets.shape[1] * np.log1p(ratios / targets.shape[1])  # their tail is exponential
    return np.asarray(logarithms.reshape(len(products), len(targets) // n_summed, n_summed).sum(axis=2))
