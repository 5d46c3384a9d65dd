"""Contents of a table: missing values, constant columns, ids, replicates, rows in time order, scales of columns."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.utils import gen_batches

from .errors import ParameterError, warn
from .stores import Stored
from .tables import columns_not_finite, extremes, moments, require_finite, some_columns

STRATEGIES = ("mean", "median")
CELLS_AT_A_TIME = 2**20
SAME_RATIO, SAME = 1e-6, 1e-9  # relative difference of ratios, and 1 - r², below which columns may be or are copies
Floats = NDArray[np.float64]
MIN_ROWS = 20
# ---- replicates
MIN_COLUMNS = 10  # with fewer columns, rows may be equal by chance
N_QUERIES, MAX_CELLS, MAX_COLUMNS = 300, 2**24, 1000
N_NEIGHBORS = 20
REPLICATES, TIME_ORDER = "rows are nearly equal to another row", "change slowly from row to row"
CLOSE = 0.6  # times the expected distance to the nearest row
SHARE_CLOSE = 0.25  # of the rows, above what chance explains
# ---- time order
SIGNIFICANT = 3.3  # standard normal; p = 0.001
SHARE_SMOOTH = 0.5  # of the first features
N_BINS = 10
# ---- columns
UNITS = "patient|subject|donor|individual|participant|animal|mouse|rat|family|batch|plate|replicate|case|site|well"
ID_NAME = re.compile(r"(^|[\s_.-])(id|uuid|guid|barcode|accession)$", re.IGNORECASE)
GROUP_NAME = re.compile(rf"(^|[\s_.-])({UNITS})([\s_.-]?(id|no|nr|num|number|code|name))?$", re.IGNORECASE)
# ---- scales
LARGEST_COPY = 2**30  # bytes, up to which "auto" makes a scaled copy
SIMILAR = 10.0  # ratio to the median deviation; below it columns are left alone: genes of one chip ranked better so
UNEVEN = 100.0  # ratio of large to small deviations, above which the large ones dominate distances
NARROW = 0.1  # median deviation, below which a ridge penalty of 1 would dominate: spectra
SPARSE = 0.1  # share of cells that are not 0, up to which a table is sparse, however it is stored


def filled(
    X: Any,
    missing: str | None,
    *,
    categorical: NDArray[np.bool_],
    weights: NDArray[np.float64] | None = None,
    names: NDArray[Any] | None = None,
) -> Any:
    """A copy of X with missing values replaced by the mean or median of their column, or X if none is missing.

    "auto" is the median, with a warning. The statistics are those of the rows with a weight; a column without values
    is filled with 0. Missing categories stay, because they are levels of their own.
    """
    if missing is None or X.dtype.kind != "f":
        return X
    if sp.issparse(X) or isinstance(X, Stored):
        require_finite(X, names, f"fill them first, because missing={missing!r} only fills dense tables in memory")
        return X
    incomplete = columns_not_finite(X)
    if len(incomplete):
        require_finite(X, names, allow_nan=True)
    incomplete = incomplete[~categorical[incomplete]]
    if not len(incomplete):
        return X
    if missing == "auto":
        empty = np.flatnonzero(np.isnan(X).all(axis=0))
        words = f"; columns without any value rank last: {some_columns(empty, X.shape[1], names)}" if len(empty) else ""
        warn(
            f"missing values in {some_columns(incomplete, X.shape[1], names)} are filled with the median of the "
            f"column (missing='median'); missing=None refuses them{words}"
        )
    X, counts = X.copy(order="K"), slice(None) if weights is None else weights > 0
    imputer = SimpleImputer(strategy="median" if missing == "auto" else missing, keep_empty_features=True)
    for part in gen_batches(len(incomplete), max(1, CELLS_AT_A_TIME // len(X))):
        columns = incomplete[part]
        X[:, columns] = imputer.fit(X[:, columns][counts]).transform(X[:, columns])
    return X


def uninformative_columns(X: Any, *, allow_nan: bool) -> NDArray[np.int64]:
    """Columns that are constant or have no values; an empty list if that is true of all columns."""
    low, high = extremes(X, allow_nan=allow_nan)
    columns = np.flatnonzero((low == high) | np.isnan(low))
    return columns if len(columns) < len(low) else columns[:0]


def copies_of_columns(X: Any) -> NDArray[np.int64]:
    """Columns that are a multiple of an earlier column plus a number: a model that has one gains nothing by another.

    A column and its copies have the same ratio of two random contrasts of the rows.
    """
    n_rows, n_columns = X.shape
    contrasts = np.random.default_rng(0).standard_normal((2, n_rows))
    contrasts -= contrasts.mean(axis=1, keepdims=True)
    sums, step = np.empty((2, n_columns)), max(1, CELLS_AT_A_TIME // n_rows)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for part in gen_batches(n_columns, step):
            sums[:, part] = contrasts @ X[:, part]
        ratios = sums[0] / sums[1]
        order = np.argsort(ratios, kind="stable")
        is_near = np.diff(ratios[order]) <= SAME_RATIO * np.abs(ratios[order[1:]])
    near, is_copy = np.flatnonzero(is_near), np.zeros(n_columns, dtype=bool)  # of the column before it in ``order``
    for start in range(0, len(near), step):
        places = near[start : start + step]
        values = X[:, np.append(order[places], order[places + 1])]
        values = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
        a, b = np.split(values - values.mean(axis=0), 2, axis=1)
        squares = (a**2).sum(axis=0) * (b**2).sum(axis=0)
        is_copy[places + 1] = ((a * b).sum(axis=0) ** 2 >= (1 - SAME) * squares) & (squares > 0)
    is_first = np.zeros(n_columns, dtype=bool)
    is_first[np.minimum.reduceat(order, np.flatnonzero(~is_copy))] = True
    return np.flatnonzero(~is_first)


def notes_on_id_columns(X: Any, names: NDArray[Any] | None) -> list[str]:
    """Warnings about features that identify rows or groups of rows: whole numbers in a column with such a name."""
    notes: list[str] = []
    if names is None or len(X.shape) != 2:
        return notes
    named = [column for column, name in enumerate(names) if GROUP_NAME.search(name) or ID_NAME.search(name)]
    for column in named[:MAX_COLUMNS]:
        values = X[:, [column]]
        values = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64).ravel()
        values = values[np.isfinite(values)]
        n_values = len(np.unique(values))
        if (values != np.round(values)).any() or n_values <= 2:
            continue
        name = str(names[column])
        if n_values == len(values):
            notes.append(
                f"column {name!r} looks like an id and is ranked as a number: leave it out (rank --ignore {name})"
            )
        else:
            notes.append(
                f"column {name!r} has {n_values:,} values in {len(values):,} rows and looks like groups of rows: give "
                f"it as groups to fit and leave it out of X (rank --groups {name}); now it is ranked as a number"
            )
    return notes


def note_on_replicates(X: Any) -> str | None:
    """A warning if many rows are equal, or much closer to another row than neighbors usually are; else None.

    The number of rows within a distance d grows as d to the power of the intrinsic dimension. The distances to the
    tenth and to the twentieth neighbor give this dimension, and so the distance to expect of the nearest row.
    """
    n_rows, n_columns = X.shape
    if sp.issparse(X) or n_rows < MIN_ROWS or n_columns < MIN_COLUMNS:
        return None
    n_used = int(np.clip(MAX_CELLS // n_rows, 1, min(n_columns, MAX_COLUMNS)))
    Z = np.asarray(X[:, np.linspace(0, n_columns - 1, n_used).astype(int)], dtype=np.float64)
    is_known = np.isfinite(Z)
    count = np.maximum(is_known.sum(axis=0), 1)
    Z = np.where(is_known, Z - np.where(is_known, Z, 0.0).sum(axis=0) / count, 0.0)
    deviation = np.sqrt((Z**2).sum(axis=0) / count)
    Z = (Z[:, deviation > 0] / deviation[deviation > 0]).astype(np.float32)
    if Z.shape[1] < MIN_COLUMNS:
        return None
    queries, squares = np.unique(np.linspace(0, n_rows - 1, N_QUERIES).astype(int)), (Z**2).sum(axis=1)
    squared = squares[queries, None] + squares - 2 * Z[queries] @ Z.T
    squared[np.arange(len(queries)), queries] = np.inf
    squared[squared < 1e-5 * squares.mean()] = 0.0  # rounding
    k = min(N_NEIGHBORS, n_rows // 3)
    distances = np.sqrt(np.sort(np.partition(squared, k - 1, axis=1)[:, :k], axis=1))
    near, half, far = distances[:, 0], distances[:, k // 2 - 1], distances[:, k - 1]
    if np.median(half) == 0:  # values that repeat: rows are equal by chance
        return None
    dimension = np.log(k / (k // 2)) / np.log(max(float(np.median(far[half > 0] / half[half > 0])), 1 + 1e-6))
    share = float((near < CLOSE * far * k ** (-1 / dimension)).mean())
    if share < SHARE_CLOSE + 2 * CLOSE**dimension:
        return None
    return (
        f"{share:.0%} of the {REPLICATES}: if they are replicates or copies, give groups (rank "
        "--groups COLUMN), which keeps them in one fold; without groups, scores and tests are too optimistic"
    )


def note_on_time_order(
    X: Any, y: NDArray[Any], *, is_classification: bool, columns: NDArray[np.int64] | None = None
) -> str | None:
    """A warning if y and the first features change slowly from row to row, as in a time series; else None.

    Each is compared with its mean or median: a runs test counts how often it crosses it. Features are compared with
    their mean among rows of similar y, because rows sorted by class are no time series.
    """
    n_rows = len(y)
    values = np.unique(y, return_inverse=True)[1]
    if n_rows < MIN_ROWS or (not is_classification and abs(np.diff(values).clip(-1, 1).sum()) > 0.9 * n_rows):
        return None  # rows sorted by a numeric y have their own warning
    bins = values if is_classification else np.argsort(np.argsort(y, kind="stable")) * N_BINS // n_rows
    if _runs(values if is_classification else y > np.median(y)) < SIGNIFICANT:
        return None
    features = X if columns is None else X.tocsc()[:, columns].toarray() if sp.issparse(X) else X[:, columns]
    features, counts = np.asarray(features, dtype=np.float64), np.bincount(bins)[:, None]
    means = np.array([np.bincount(bins, column) for column in np.nan_to_num(features).T]).T / np.maximum(counts, 1)
    is_smooth = np.array([_runs(column > np.median(column)) for column in (features - means[bins]).T]) > SIGNIFICANT
    if is_smooth.mean() < SHARE_SMOOTH:
        return None
    return (
        f"the target and {is_smooth.sum()} of the first {len(is_smooth)} features {TIME_ORDER} (runs test): "
        "if the rows are in the order of time, neighboring rows are not independent, and scores and tests "
        "are too optimistic; give blocks of time, longer than rows stay similar, as groups, such as "
        "groups=np.arange(len(y)) // 50 (rank --groups with a column of block numbers), or cv=TimeSeriesSplit()"
    )


def _runs(labels: NDArray[Any]) -> float:
    """How many standard errors more often than by chance neighboring rows have the same label.

    Wald and Wolfowitz's runs test; for more than two classes with the variance of the sum over classes.
    """
    n = len(labels)
    shares = np.unique(labels, return_counts=True)[1] / n
    same = float(np.mean(labels[1:] == labels[:-1]))
    expected = float((shares**2).sum())
    variance = (expected + expected**2 - 2 * float((shares**3).sum())) / n
    return (same - expected) / np.sqrt(variance) if variance > 0 else 0.0


# ---- scales


def scale_for(scale: str | None, X: Any) -> str | None:
    """The scale to use in place of "auto", which looks at the values and not at how they are stored.

    Dense tables are standardized if the deviations of columns are very different, or very small. Columns of sparse
    tables are divided by the usual size of their values that are not 0. Divided by their largest value, a common word
    that is frequent in one text would be small, so that the penalty would hide it; divided by their deviation, rare
    words would be large.
    """
    if scale == "rank" and sp.issparse(X):
        raise ParameterError("scale='rank' would fill a sparse table: use scale='standard', or None")
    if scale is not None and scale != "auto" and isinstance(X, Stored):
        raise ParameterError(f"scale={scale!r} copies the table, which is not in memory: use scale=None")
    if scale != "auto":
        return scale
    if isinstance(X, Stored) or not _can_be_copied(X):
        return None
    n_cells = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
    if n_cells <= SPARSE * X.shape[0] * X.shape[1]:
        return "nonzero"
    widths = moments(X)[1]
    widths = widths[widths > 0]
    if not len(widths):
        return None
    ratio = float(np.exp(np.abs(np.log(widths / np.median(widths))).max()))
    return "standard" if ratio >= SIMILAR or np.median(widths) < NARROW else None


def _can_be_copied(X: Any) -> bool:
    n_bytes = X.nnz * 8 if sp.issparse(X) else X.shape[0] * X.shape[1] * max(4, X.dtype.itemsize)
    return bool(n_bytes <= LARGEST_COPY)


def uneven_widths(X: Any, scale: str | None = None) -> tuple[float, float] | None:
    """The 5% and 95% quantiles of the columns' deviations, if they differ so much that large ones dominate distances.

    None if they do not, or if scale "auto" has already found that they do not.
    """
    if isinstance(X, Stored) or sp.issparse(X) or (scale == "auto" and _can_be_copied(X)):
        return None
    deviations = moments(X)[1]
    deviations = deviations[deviations > 0]
    if len(deviations) < 2:
        return None
    low, high = (float(width) for width in np.quantile(deviations, [0.05, 0.95]))
    return (low, high) if high > UNEVEN * low else None
