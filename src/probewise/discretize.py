"""Discretisation: cut points of numeric columns, and the interval codes they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from .validation.parameters import is_whole
from .validation.stores import Stored, readable_type
from .validation.tables import SQUARED, discrete_columns, number_categories, require_finite, require_widths, validated

Floats = NDArray[np.float64]
SUPERVISED = {"optimal": intervals.optimal, "greedy": intervals.greedy, "mdl": intervals.mdl}
LEVELS = ("mean", "sigma")
CELLS_AT_A_TIME = 2**18  # 2 MiB of float64 for a thread


@dataclass(frozen=True)
class Cuts:
    """Where each column is cut: those of column f are ``values[offsets[f]:offsets[f + 1]]``, ascending."""

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
    """Cut points of every column; columns marked ``discrete`` are cut between any two values that occur.

    ``y`` are class codes 0, 1, ...; the methods that look at classes are "optimal", "greedy" and "mdl". "mean" cuts
    in two at the mean, "sigma" in three at the mean less and plus the standard deviation (1/N), a whole number in
    that many parts of equal width; of these a column of no more values, or of three, has a level for each, and a value
    that more than half of the rows share has one of its own.
    """
    require_method("method", method)
    n_rows, n_columns = X.shape
    discrete = np.zeros(n_columns, dtype=bool) if discrete is None else discrete
    find = _method(method, n_rows, y)
    as_it_is = _method("every value", n_rows, y)

    def cut(columns: Floats, own: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.int64]]:
        if not own.any() or own.all():
            found, counts = (as_it_is if own.any() else find)(columns)
            return found[np.arange(found.shape[1]) < counts[:, None]], counts
        pieces, all_counts = zip(*(cut(columns[c : c + 1], own[c : c + 1]) for c in range(len(own))), strict=True)
        return np.concatenate(pieces), np.concatenate(all_counts)

    values, counts = zip(*map(lambda part: cut(load(X, part), discrete[part]), _parts(X)), strict=True)
    return Cuts(np.concatenate(values), np.concatenate([[0], np.cumsum(np.concatenate(counts))]))


def encode(X: Any, cuts: Cuts, *, map: Map = in_turn) -> Codes:
    """The columns of X as codes: the number of cuts below each value."""
    codes = Codes.empty(X.shape[0], np.diff(cuts.offsets) + 1)

    def fill(part: slice) -> None:
        codes.fill(load(X, part), part.start, cuts.values, cuts.offsets)

    for _ in map(fill, _parts(X)):
        pass
    return codes


def load(X: Any, part: slice) -> Floats:
    """Some columns of X, one after the other in memory."""
    out = np.empty((part.stop - part.start, X.shape[0]))
    if isinstance(X, Stored):
        out[...] = X.read_columns(part).T
    elif sp.issparse(X):
        kernels.load_sparse(X.data, X.indices, X.indptr, part.start, out)
    elif X.flags.f_contiguous:
        out[...] = X[:, part].T
    else:
        kernels.load_dense(X, part.start, out)
    return out


def _parts(X: Any) -> list[slice]:
    if isinstance(X, Stored):
        return X.column_slices(CELLS_AT_A_TIME)
    step = max(1, CELLS_AT_A_TIME // max(1, X.shape[0]))
    return list(gen_batches(X.shape[1], step))


def _method(method: str | int, n_rows: int, y: NDArray[np.int64] | None) -> Callable[[Floats], tuple[Floats, Any]]:
    """A function of columns (one a row) that gives their cuts and how many."""
    if method in SUPERVISED or method == "every value":
        table, scale = intervals.entropy_table(n_rows)
        labels = np.zeros(n_rows, np.int64) if y is None else y
        if method in SUPERVISED:
            remedy = "take levels that do not look at classes ('mean', 'sigma' or a number)"
            require_few_classes(np.arange(labels.max() + 1), f"the way to cut {method!r}", remedy)
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
            f"{name}={method!r} is not a discretization: choose {', '.join(map(repr, [*SUPERVISED, *LEVELS]))} or a "
            "number of equal widths, at least 2"
        )


def _levels(columns: Floats, method: str | int) -> tuple[Floats, Any]:
    """Cuts that do not look at classes; few values, and one that most rows share, are levels of their own."""
    means, deviations, low, high, common = np.empty((5, len(columns)))
    levels.describe(columns, means, deviations, low, high, common)
    if method == "mean":
        cuts = means[:, None]
    elif method == "sigma":
        cuts = _at_one_deviation(means, deviations, low, high)
    else:
        cuts = low[:, None] + (high - low)[:, None] * np.arange(1, int(method)) / int(method)
    n_cuts, n_kept = np.full(len(columns), cuts.shape[1]), max(3, cuts.shape[1] + 1)
    cuts = np.concatenate([cuts, np.empty((len(columns), 2))], axis=1)
    levels.keep_values(columns, common, n_kept, cuts, n_cuts)
    return cuts, n_cuts


def _at_one_deviation(means: Floats, deviations: Floats, low: Floats, high: Floats) -> Floats:
    """A value on a border is within, unless there were none without."""
    rounding = np.spacing(np.maximum(abs(low), abs(high))) + 1e-14 * deviations
    below, above = means - deviations, means + deviations
    below = np.where(abs(low - below) <= rounding, low, below - rounding)
    above = np.where(abs(high - above) <= rounding, np.nextafter(high, -np.inf), above + rounding)
    return np.stack([below, above], axis=1)


class Discretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Turns numbers into interval codes 0, 1, ...; the cut points found in ``fit`` apply to new data.

    Parameters
    ----------
    method : str or int, default="optimal"
        "optimal", the multisplit with the largest balanced information gain, exact; "greedy", top-down as long as that
        gain rises; "mdl", Fayyad and Irani's description length; these three look at y and cut only between values
        whose samples do not all share one class, half-way. "mean": two levels, above the mean or not; "sigma": three
        levels, below the mean less one standard deviation, up to the mean plus one, above; a number: that many parts of
        equal width. The last three need no y, and keep what their borders would lose: a column of no more values, or of
        three, has a level for each, and a value that more than half of the rows share is a level of its own.
    discrete_features : "auto", bool or array-like, default="auto"
        Columns whose values are used as they are, one code each: "auto" for category and boolean columns of a frame
        (and arrays of booleans), True, False, a mask, column numbers or names.
    n_jobs : int or None, default=None
        Threads; the result is the same for any number.

    Attributes
    ----------
    cut_points_ : sequence of arrays
        The cut points of each column, ascending; empty where no cut pays.
    classes_ : array
        The labels of y, for methods that look at it.

    Notes
    -----
    A value on a cut goes to the interval below it. A value of a discrete column not seen in ``fit`` gets the code of
    the largest seen value below or nearest to it.

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

    cut_points_: Cuts

    def __init__(
        self, method: str | int = "optimal", *, discrete_features: Any = "auto", n_jobs: int | None = None
    ) -> None:
        self.method = method
        self.discrete_features = discrete_features
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.method in SUPERVISED
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> Discretizer:
        """Find the cut points of every column."""
        require_method("method", self.method)
        X, y, found = self._checked(X, y, with_target=self.method in SUPERVISED)
        names, codes = getattr(self, "feature_names_in_", None), None
        if self.method in SUPERVISED:
            require_finite(X, names)
            target = Target.of_classes(y)
            self.classes_, codes = target.classes, target.values
        else:
            require_widths(X, names, SQUARED)
        discrete = discrete_columns(self.discrete_features, X.shape[1], names, found)
        self.cut_points_ = cut_points(X, codes, self.method, discrete=discrete, map=threads(self.n_jobs))
        return self

    def transform(self, X: Any) -> NDArray[np.int32]:
        """The code of every value: how many of its column's cut points are below it."""
        check_is_fitted(self)
        X, _, _ = self._checked(X, None, with_target=False, reset=False)
        require_finite(X, getattr(self, "feature_names_in_", None))
        out = np.empty(X.shape, dtype=np.int32)
        for part in _parts(X):
            for column, values in zip(range(part.start, part.stop), load(X, part), strict=True):
                out[:, column] = np.searchsorted(self.cut_points_[column], values, side="left")
        return out

    def _checked(self, X: Any, y: Any, *, with_target: bool, reset: bool = True) -> tuple[Any, Any, Any]:
        """X and y as arrays, and which columns of X were found to be categories."""
        X, found = number_categories(X)
        options = {"accept_sparse": "csc", "dtype": "numeric", "ensure_all_finite": False, "reset": reset}
        X, y = validated(self, X, y, with_target=with_target, **options)
        return X.astype(readable_type(X.dtype), copy=False), y, found
