"""Discretization: cut points of numeric columns, and the interval codes that they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from .criteria.base import Target, require_few_classes
from .executors import Map, in_turn, threads
from .information import Codes
from .kernels import columns as kernels
from .kernels import intervals, levels
from .validation.errors import ParameterError
from .validation.parameters import discrete_columns, is_whole
from .validation.stores import Stored, readable_type
from .validation.tables import SQUARED, number_categories, require_finite, validated

Floats = NDArray[np.float64]
SUPERVISED = {"optimal": intervals.optimal, "greedy": intervals.greedy, "mdl": intervals.mdl}
LEVELS = ("mean", "sigma")
CELLS_PER_JOB = 2**18  # 2 MiB of float64 per thread


@dataclass(frozen=True)
class Cuts:
    """Cut points of all columns: those of column f are ``values[offsets[f]:offsets[f + 1]]``, in ascending order."""

    values: Floats
    offsets: NDArray[np.int64]

    def __getitem__(self, column: int) -> Floats:
        return self.values[self.offsets[column] : self.offsets[column + 1]]

    def __len__(self) -> int:
        return len(self.offsets) - 1


def cut_points(
    X: Any,
    y: NDArray[np.int64] | None,
    method: str | int = "optimal",
    *,
    discrete: NDArray[np.bool_] | None = None,
    map: Map = in_turn,
) -> Cuts:
    """Cut points of every column; columns marked ``discrete`` are cut between any two adjacent values.

    ``y`` are class codes 0, 1, ... for the supervised methods "optimal", "greedy" and "mdl". `Discretizer` describes
    all methods.
    """
    require_method("method", method)
    n_rows, n_columns = X.shape
    discrete = np.zeros(n_columns, dtype=bool) if discrete is None else discrete
    find = _cut_finder(method, n_rows, y)
    find_discrete = _cut_finder("every value", n_rows, y)

    def cut(columns: Floats, is_discrete: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.int64]]:
        if not is_discrete.any() or is_discrete.all():
            cuts, counts = (find_discrete if is_discrete.any() else find)(columns)
            return cuts[np.arange(cuts.shape[1]) < counts[:, None]], counts
        single = (cut(columns[c : c + 1], is_discrete[c : c + 1]) for c in range(len(is_discrete)))
        all_cuts, all_counts = zip(*single, strict=True)
        return np.concatenate(all_cuts), np.concatenate(all_counts)

    values, counts = zip(*map(lambda part: cut(load(X, part), discrete[part]), _column_slices(X)), strict=True)
    return Cuts(np.concatenate(values), np.concatenate([[0], np.cumsum(np.concatenate(counts))]))


def encode(X: Any, cuts: Cuts, *, map: Map = in_turn) -> Codes:
    """Codes of the columns of X: the number of cuts below each value."""
    codes = Codes.empty(X.shape[0], np.diff(cuts.offsets) + 1)

    def fill(part: slice) -> None:
        codes.fill(load(X, part), part.start, cuts.values, cuts.offsets)

    list(map(fill, _column_slices(X)))
    return codes


def load(X: Any, part: slice) -> Floats:
    """Some columns of X, each contiguous in memory (columns, rows)."""
    out = np.empty((part.stop - part.start, X.shape[0]))
    if isinstance(X, Stored):
        out[...] = X.read_columns(part).T
    elif sp.issparse(X):
        rows, columns = np.arange(X.shape[0]), np.arange(part.start, part.stop)
        kernels.take_sparse(X.data, X.indices, X.indptr, rows, columns, out.T)
    else:
        out[...] = X[:, part].T
    return out


def _column_slices(X: Any) -> list[slice]:
    if isinstance(X, Stored):
        return X.column_slices(CELLS_PER_JOB)
    step = max(1, CELLS_PER_JOB // max(1, X.shape[0]))
    return list(gen_batches(X.shape[1], step))


def _cut_finder(method: str | int, n_rows: int, y: NDArray[np.int64] | None) -> Callable[[Floats], tuple[Floats, Any]]:
    """A function of columns (columns, rows) that returns their cuts and the numbers of cuts."""
    if method in SUPERVISED or method == "every value":
        table, scale = intervals.entropy_table(n_rows)
        labels = np.zeros(n_rows, np.int64) if y is None else y
        if method in SUPERVISED:
            remedy = "use a method without classes ('mean', 'sigma' or a number)"
            require_few_classes(np.arange(labels.max() + 1), f"the discretization {method!r}", remedy)
        kernel = SUPERVISED.get(str(method), intervals.every_value)

        def find(columns: Floats) -> tuple[Floats, Any]:
            cuts, counts = np.empty(columns.shape), np.zeros(len(columns), np.int64)
            kernel(columns, np.argsort(columns, axis=1), labels, labels.max() + 1, table, scale, cuts, counts)
            return cuts, counts

        return find
    return lambda columns: _levels(columns, method)


def require_method(name: str, method: Any) -> None:
    if not is_whole(method, 2) and not (isinstance(method, str) and method in (*SUPERVISED, *LEVELS)):
        raise ParameterError(
            f"{name}={method!r} must be {', '.join(map(repr, [*SUPERVISED, *LEVELS]))}, or a number of intervals of "
            "equal width, at least 2"
        )


def _levels(columns: Floats, method: str | int) -> tuple[Floats, Any]:
    """Cuts by an unsupervised method.

    Each value of a column with few values gets a level of its own, and so does a value that most rows share.
    """
    means, deviations, low, high, common = np.empty((5, len(columns)))
    levels.describe(columns, means, deviations, low, high, common)
    if method == "mean":
        cuts = means[:, None]
    elif method == "sigma":
        cuts = _one_deviation_from_mean(means, deviations, low, high)
    else:
        cuts = low[:, None] + (high - low)[:, None] * np.arange(1, int(method)) / int(method)
    n_cuts, max_levels = np.full(len(columns), cuts.shape[1]), max(3, cuts.shape[1] + 1)
    cuts = np.concatenate([cuts, np.empty((len(columns), 2))], axis=1)
    levels.keep_values(columns, common, max_levels, cuts, n_cuts)
    return cuts, n_cuts


def _one_deviation_from_mean(means: Floats, deviations: Floats, low: Floats, high: Floats) -> Floats:
    """Cuts at mean ± deviation; a value on a cut is in the middle level, unless the outer level would be empty."""
    rounding = np.spacing(np.maximum(abs(low), abs(high))) + 1e-14 * deviations
    below, above = means - deviations, means + deviations
    below = np.where(abs(low - below) <= rounding, low, below - rounding)
    above = np.where(abs(high - above) <= rounding, np.nextafter(high, -np.inf), above + rounding)
    return np.stack([below, above], axis=1)


@dataclass(eq=False, repr=False)
class Discretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Transform numbers into interval codes 0, 1, ...; the cut points found by ``fit`` are applied to new data.

    Parameters
    ----------
    method : str or int, default="optimal"
        Three supervised methods cut half-way between adjacent values whose samples do not all have the same class:
        "optimal" (the multisplit with the largest balanced information gain, exact), "greedy" (top-down splits as long
        as that gain rises) and "mdl" (Fayyad and Irani's description length). Three methods need no y: "mean" (two
        levels, split at the mean), "sigma" (three levels, split one standard deviation below and above the mean) and a
        number (that many intervals of equal width). With these three, a column with at most three distinct values, or
        at most as many as levels, has one level for each value, and a value that more than half of the rows share has
        a level of its own.
    discrete_features, n_jobs
        See `DFE`.

    Attributes
    ----------
    cut_points_, classes_
        See `DFE`.

    Notes
    -----
    A value on a cut belongs to the interval below it. In a discrete column, a value that ``fit`` has not seen is coded
    by the cuts, which lie half-way between the values seen.

    References
    ----------
    Y. Wu, A. Zhang, *Feature selection for classifying high-dimensional numerical data*, CVPR 2004, sec. 3.1.
    U. Fayyad, K. Irani, *Multi-interval discretization of continuous-valued attributes*, IJCAI 1993.
    T. Elomaa, J. Rousu, *General and efficient multisplitting of numerical attributes*, Machine Learning 36, 1999.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.discretize import Discretizer
    >>> X, y = load_iris(return_X_y=True)
    >>> [cuts.round(2).tolist() for cuts in Discretizer("optimal").fit(X, y).cut_points_]
    [[5.55], [3.35], [2.45], [0.8]]
    """

    method: str | int = "optimal"
    _: KW_ONLY
    discrete_features: Any = "auto"
    n_jobs: int | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.method in SUPERVISED
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> Discretizer:
        """Find the cut points of every column."""
        require_method("method", self.method)
        X, y, is_category = self._checked(X, y, with_target=self.method in SUPERVISED)
        names, codes = getattr(self, "feature_names_in_", None), None
        if self.method in SUPERVISED:
            require_finite(X, names)
            target = Target.of_classes(y)
            self.classes_, codes = target.classes, target.values
        else:
            require_finite(X, names, widths=SQUARED)
        discrete = discrete_columns(self.discrete_features, X.shape[1], names, is_category)
        self.cut_points_ = cut_points(X, codes, self.method, discrete=discrete, map=threads(self.n_jobs))
        return self

    def transform(self, X: Any) -> NDArray[np.int32]:
        """Code of every value: the number of cut points of its column that are below it."""
        check_is_fitted(self)
        X, _, _ = self._checked(X, None, with_target=False, reset=False)
        require_finite(X, getattr(self, "feature_names_in_", None))
        out = np.empty(X.shape, dtype=np.int32)
        for part in _column_slices(X):
            for column, values in zip(range(part.start, part.stop), load(X, part), strict=True):
                out[:, column] = np.searchsorted(self.cut_points_[column], values, side="left")
        return out

    def _checked(self, X: Any, y: Any, *, with_target: bool, reset: bool = True) -> tuple[Any, Any, Any]:
        """X and y as arrays, and the mask of the columns with categories."""
        X, is_category = number_categories(X)
        options: dict[str, Any] = {
            "accept_sparse": "csc",
            "dtype": "numeric",
            "ensure_all_finite": False,
            "reset": reset,
        }
        X, y = validated(self, X, y, with_target=with_target, **options)
        return X.astype(readable_type(X.dtype), copy=False), y, is_category
