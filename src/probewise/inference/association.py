"""Association: a univariate permutation test of every column.

A column is replaced by functions of its ranks: normal scores (a line), their square, and the two tails. The statistic
is the larger of the evidence for a line and of that for the other shapes minus a price. Columns without ties then have
the same null distribution, so one set of permutations of y is exact for all of them. Columns with ties share the null
distribution of columns with similar ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils import gen_batches

from ..evaluation.permutations import Permutations
from ..executors import Map, in_turn, one_blas_thread, threads
from ..kernels import permutations as kernels
from ..validation.errors import USUAL_ERROR_STATE
from ..validation.parameters import SHARE, check_parameter, seed_of
from .base import Discoveries, Table, q_values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SHAPE_PRICE = 5.0  # of shapes, in squared standard errors: at the price of 5 a line is tested at 0.8 of the level
TAIL = 0.8  # normal score at which a tail begins
MAX_DRAWS, MIN_DRAWS, MAX_CELLS = 1_000_000, 5_000, 2e8  # permutations of y; their number times rows times targets
DRAWS_PER_COLUMN = 200  # permutations for each column that is tested, up to the limit above
DRAWS_OF_POOL = 1_000  # permutations of a sample of columns with ties
TIES = (0.02, 0.05, 0.1, 0.2, 0.5, 0.9, 1.0)  # shares of rows outside the largest tie; columns in between share a null
CELLS_PER_BATCH = 2**17
EXCEEDING = 250  # null statistics to which the tail is fitted
NEARLY_EQUAL = 1e-4  # relative rounding error of a statistic


@USUAL_ERROR_STATE
def associated(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    strata: Any = None,
    adjust: Any = None,
    task: str = "auto",
    fdr: float = 0.1,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Discoveries:
    """Test whether each column is related to y, by permutations of y.

    The test is valid for classes of any size, for skewed and heavy-tailed numbers, and for columns with ties. Missing
    values in X count as average.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Class labels, numbers, several columns of numbers, or a survival outcome.
    groups : array of shape (n_samples,), optional
        Rows that depend on each other, such as visits of one patient. Whole groups of similar size are exchanged, and
        rows are shuffled within groups.
    sample_weight : array of shape (n_samples,), optional
        Weights, which are permuted together with y.
    strata : array of shape (n_samples,), optional
        y is permuted within strata only, such as batches: the test then asks for an association within strata.
    adjust : array or data frame of shape (n_samples, n_covariates), optional
        Covariates, numbers or categories, which are regressed out of the columns and of y: the test then asks for an
        association beyond them. The residuals of y are permuted (Freedman and Lane), within the combinations of the
        covariates where these have ten rows or more on average.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether y contains class labels or numbers.
    fdr : float, default=0.1
        The allowed expected share of false discoveries (Benjamini and Hochberg).
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.

    Returns
    -------
    Discoveries
        p-values, q-values and the mask of the named columns.

    Examples
    --------
    >>> import numpy as np
    >>> from probewise.inference import associated
    >>> X = np.random.default_rng(0).standard_normal((100, 50))
    >>> y = X[:, 3] + np.random.default_rng(1).standard_normal(100) > 0
    >>> np.flatnonzero(associated(X, y, random_state=0).mask)
    array([3])
    """
    check_parameter("fdr", fdr, SHARE)
    table = Table.of(X, y, groups=groups, sample_weight=sample_weight, strata=strata, adjust=adjust, task=task)
    seed = seed_of(random_state, None)
    run = in_turn if n_jobs in (None, 1) else threads(n_jobs)
    p_values = association_p_values(table, seed, run)
    return Discoveries(p_values, q_values(p_values), fdr)


def weighted_scores(scores: Floats, weights: Floats | None, strata: Ints) -> Floats:
    """Scores minus their weighted mean in each stratum, times the weights."""
    weights = np.ones(scores.shape[1]) if weights is None else weights
    total = np.bincount(strata, weights)
    means = np.stack([np.bincount(strata, weights * row) / np.where(total > 0, total, 1.0) for row in scores])
    return np.asarray((scores - means[:, strata]) * weights)


def association_p_values(table: Table, seed: int, run: Map = in_turn) -> Floats:
    """The p-value of each column."""
    scores = weighted_scores(table.scores, table.weights, table.strata)
    share = 1 - np.bincount(table.target) / table.n_rows if table.n_classes > 2 else np.ones(len(scores))
    varies = np.abs(scores).max(axis=1) > 1e-9
    if not varies.any():  # y is constant in every stratum
        return np.ones(table.n_columns)
    scores, share = scores[varies], share[varies]
    draws = Permutations.of(scores, table.groups, table.strata, seed)
    basis = rank_functions(table.n_rows)
    statistics, tied = np.empty(table.n_columns), np.empty(table.n_columns, np.int64)

    def observe(batch: slice) -> None:
        functions, tied[batch] = column_functions(table.columns(batch), basis)
        center, error = _moments(functions, draws)
        # Covariates take degrees of freedom from the observed residuals, and none from permuted ones.
        own_share = share * (1 - table.lost_freedom)
        statistics[batch] = _statistics(functions @ draws.values.T, center, error, own_share)

    batches = list(gen_batches(table.n_columns, max(1, CELLS_PER_BATCH // table.n_rows)))
    n_draws = int(np.clip(DRAWS_PER_COLUMN * table.n_columns, MIN_DRAWS, MAX_DRAWS))
    n_draws = min(n_draws, max(MIN_DRAWS, int(MAX_CELLS / draws.values.size)))
    # Outside of the largest tie; columns without ties are a pool of their own.
    p_values = np.ones(table.n_columns)
    with one_blas_thread():
        list(run(observe, batches))
        pools = np.searchsorted(TIES, 1 - tied / table.n_rows) + 1
        pools[tied == 1] = 0
        pools[tied == table.n_rows] = -1  # constant columns
        for pool in np.unique(pools[pools >= 0]).tolist():
            members = np.flatnonzero(pools == pool)
            if pool == 0 and draws.are_simple:
                sample = basis[None]  # the functions of any column without ties
            else:
                n_sampled = max(1, n_draws // DRAWS_OF_POOL)
                chosen = np.random.default_rng([seed, pool]).permutation(members)[:n_sampled]
                sample = column_functions(table.columns(np.sort(chosen)), basis)[0]
            null = _null_statistics(sample, draws, share, -(-n_draws // len(sample)), run)
            p_values[members] = tail_p_values(statistics[members], null, draws.log_arrangements)
    return p_values


def rank_functions(n_rows: int) -> Floats:
    """(functions, ranks): normal scores of the ranks, their square, and indicators of the upper and lower tail."""
    line = ndtri((np.arange(n_rows) + 0.5) / n_rows)
    line /= line.std()
    functions = np.stack([line, line**2, line > TAIL, line < -TAIL]).astype(np.float64)
    functions -= functions.mean(axis=1, keepdims=True)
    deviations = functions.std(axis=1, keepdims=True)
    return np.asarray(functions / np.where(deviations > 0, deviations, 1.0))


def column_functions(columns: Floats, basis: Floats) -> tuple[Floats, Ints]:
    """(columns, functions, rows): functions of the ranks of each column; and the size of its largest tie."""
    functions = np.empty((len(columns), *basis.shape))
    tied = np.empty(len(columns), np.int64)
    kernels.scores_of_ranks(columns, np.argsort(columns, axis=1, kind="stable"), basis, functions, tied)
    return functions, tied


def _moments(functions: Floats, draws: Permutations) -> tuple[Any, Floats]:
    """Mean and standard deviation over permutations of the sum of function times target: (columns, functions, targets).

    Without groups and strata they have a closed form. With them they are estimated from permutations of their own.
    """
    if draws.are_simple:
        n_rows = functions.shape[-1]
        squares = (functions**2).sum(axis=-1)[..., None] * (draws.values**2).sum(axis=-1)
        return 0.0, np.sqrt(squares / (n_rows - 1))
    sums = functions.astype(np.float32) @ draws.draw(-DRAWS_OF_POOL, 0).reshape(-1, functions.shape[-1]).T
    sums = sums.reshape(*functions.shape[:2], DRAWS_OF_POOL, -1)
    return sums.mean(axis=2, dtype=np.float64), sums.std(axis=2, dtype=np.float64)


def _statistics(sums: Any, center: Any, error: Floats, share: Floats) -> Any:
    """Sums (..., functions, targets) to one statistic: the line, or the best other function minus its price."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error > 1e-9, (sums - center) / error, 0.0)
    squares = (z**2) @ share
    return np.maximum(squares[..., 0], squares[..., 1:].max(axis=-1) - SHAPE_PRICE)


def _null_statistics(functions: Floats, draws: Permutations, share: Floats, n_draws: int, run: Map) -> Floats:
    """The statistics of all columns for permuted targets, sorted."""
    center, error = _moments(functions, draws)
    flat = functions.reshape(-1, functions.shape[-1]).astype(np.float32)

    def statistics(batch: slice) -> Floats:
        permuted = draws.draw(batch.start, batch.stop)
        sums = permuted.reshape(-1, permuted.shape[-1]) @ flat.T
        sums = sums.reshape(len(permuted), -1, *functions.shape[:2]).transpose(0, 2, 3, 1)
        return np.asarray(_statistics(sums, center, error, share), dtype=np.float64).ravel()

    size = max(1, CELLS_PER_BATCH // max(draws.values.size, functions.shape[0] * len(share) * 4))
    return np.sort(np.concatenate(list(run(statistics, gen_batches(n_draws, size)))))


def tail_p_values(statistics: Floats, null: Floats, log_arrangements: float = np.inf) -> Floats:
    """Share of null statistics (sorted) that are at least as large, with an exponential tail beyond the last ones.

    Statistics are on the scale of chi-squared, whose tail is nearly exponential. The tail is fitted to the largest 250
    null statistics, and its rate lowered by two standard errors. It is not used where few arrangements exist.
    """
    n_above = len(null) - np.searchsorted(null, statistics - NEARLY_EQUAL * np.abs(statistics))
    p_values = (1 + n_above) / (1 + len(null))
    if log_arrangements < np.log(len(null)) + 7 or len(null) < 4 * EXCEEDING:
        return p_values
    start = null[-EXCEEDING]
    scale = (null[-EXCEEDING:].mean() - start) * (1 + 2 / np.sqrt(EXCEEDING))
    tail = EXCEEDING / len(null) * np.exp(-np.maximum(statistics - start, 0) / max(scale, 1e-12))
    return np.where(n_above < 10, np.minimum(p_values, tail), p_values)
