"""Cross-validated k-nearest-neighbor scores of feature subsets, on the CPU."""

from __future__ import annotations

from collections import Counter
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engine.probes import Subsets
from ..kernels import votes as kernels
from ..kernels.neighbors import GROUPS, WIDEST, tie_keys
from ..kernels.products import ROWS
from ..validation.errors import ParameterError
from ..validation.tables import SQUARED
from .base import Criterion, Floats
from .columns import BoundToColumns, FeatureMajor, Missing, Probes, refuse_filling, require_fillable
from .scoring import bind_target

FEWEST_ROWS = 500  # for which comparing each pair of rows once pays


@dataclass(eq=False, repr=False)
class KNN(Criterion):
    """Cross-validated score of a k-nearest-neighbor vote (or mean) with Euclidean distances.

    Equal to ``cross_val_score`` of scikit-learn's ``KNeighborsClassifier`` or ``KNeighborsRegressor`` on the same
    folds. ``scoring`` of ``bind``, or of the selector, is "accuracy" for classes or "r2" for numbers if None, or any
    other score of predictions that scikit-learn knows by name or as a scorer. ``sample_weight`` counts in the score;
    neighbors have equal votes. Ties between rows at equal distance are broken at random, once for each pair of rows,
    so that the order of rows does not matter; among equally frequent classes the lowest wins. scikit-learn does not
    define the first, so values can differ where distances tie.

    With ``scoring="probability"`` J is the mean, over tested rows, of the vote for the row's own class: neighbors at
    squared distances d vote with weights softmax(-d / T), where T is a fifth of the mean squared distance of all tested
    rows to their fifth neighbor (or the last, if there are fewer). J then changes with every small change of the
    distances, whereas the accuracy changes only with a vote; ten neighbors are a good number. With ``cv="loo"`` each
    row is left out in turn, and the score is that of all rows together.

    Distances come from products in float32 with a bound of their rounding error; where that leaves a neighbor open,
    differences in float64 decide.

    Parameters
    ----------
    n_neighbors : int, default=3
        Number of neighbors that vote; the papers use 3.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is regression if y has fractions or many distinct whole numbers.
    missing : {"mean", "median"} or None, default=None
        Replacement for NaN in dense X: mean or median of the column among the training rows of each fold, as a
        ``SimpleImputer`` before the classifier would fill it (0 if all training values are missing). Subsets with such
        a column are slower. None refuses NaN.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.criteria import KNN
    >>> from probewise.engine.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> millimeters = (10 * X).round()
    >>> KNN(n_neighbors=3).bind(millimeters, y, cv=3)(Subsets.of([[0, 1], [0, 1, 2, 3]])).round(3)
    array([0.773, 0.973])
    """

    streams = True
    several_targets = True
    goes_by_width = True
    widths = SQUARED

    n_neighbors: int = 3
    _: KW_ONLY
    task: str = "auto"
    missing: str | None = None

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundKNN:
        require_fillable(X, self.missing)
        estimators = f"KNeighborsClassifier({self.n_neighbors})", f"KNeighborsRegressor({self.n_neighbors})"
        target, folds, measure = bind_target(self, y, cv, groups, scoring, sample_weight, estimators=estimators)
        most = folds.n_rows - 1
        if not folds.is_loo:  # for probabilities, a row that is twice in a training set is one neighbor
            count = np.unique if measure.is_probability else np.asarray
            most = min(len(count(train)) for train, _ in folds.splits)
        if not 1 <= self.n_neighbors <= most:
            raise ParameterError(
                f"n_neighbors={self.n_neighbors} must be from 1 to the rows of the smallest training fold, "
                f"n_samples={most}"
            )
        columns, missing = Missing.in_columns(X, folds, self.missing)
        if measure.is_probability and len(missing.columns):
            refuse_filling(self.missing, f"scoring={measure.name!r}")
        return BoundKNN(columns, target, folds, measure, missing, self.n_neighbors)


class Layout(NamedTuple):
    """Folds for the kernel, see `kernels.neighbors`."""

    tests: NDArray[np.int64]
    trains: NDArray[np.int64]
    train: NDArray[np.int64]
    is_loo: bool
    in_pairs: bool


@dataclass(frozen=True)
class BoundKNN(BoundToColumns):
    """Rows are in fold order if each is tested once; otherwise the tested rows follow all rows."""

    n_neighbors: int
    counts: Counter[str] = field(default_factory=Counter, repr=False)  # tests, and tests with exact distances

    def __call__(self, subsets: Subsets) -> Floats:
        if not len(self.missing.columns):
            return self.XT.scored(subsets, self._scores)
        is_incomplete = self.missing.in_each(subsets.indices, subsets.offsets)
        scores = np.empty(len(subsets))
        scores[~is_incomplete] = self.XT.scored(subsets.only(~is_incomplete), self._scores)
        for k in np.flatnonzero(is_incomplete).tolist():
            scores[k] = self._score_filled(subsets[k])
        return scores

    def _scores(self, probes: Probes) -> Floats:
        XT, indices, offsets = probes
        columns, scores = self._with_extents(XT), np.empty(len(offsets) - 1)
        how = self.layout, self.n_neighbors, self.targets, self.precision
        for part in self.scored_tests.pieces(len(scores)):
            predicted = np.empty((part.stop - part.start, len(self.scored_tests.truth)))
            own = indices, offsets[part.start : part.stop + 1]
            self.counts["exact"] += kernels.vote_probes(columns, own, *how, predicted)
            self.counts["tests"] += predicted.size
            scores[part] = self.score(predicted)
        return scores

    def _score_filled(self, subset: NDArray[np.int32]) -> float:
        """J of one subset with missing values: each fold fills them differently and has its own distances."""
        values, predicted = np.empty((self.folds.n_rows, len(subset))), np.empty((1, len(self.scored_tests.truth)))
        self.columns.take(subset, values)
        rows, places = np.nonzero(np.isnan(values))
        which = self.missing.number[subset[places]]
        tests, trains, train = self.layout[:3]
        n_targets = self.target.n_targets
        probe = np.arange(len(subset), dtype=np.int32), np.array([0, len(subset)])
        for fold in range(len(self.folds.splits)):
            values[rows, places] = self.missing.fills[fold, which]
            XT = np.ascontiguousarray(values.T if self.XT.places is None else values.T[:, self.XT.places])
            tested = slice(tests[fold] - tests[0], tests[fold + 1] - tests[0])
            own = np.empty((1, n_targets * (tested.stop - tested.start)))
            layout = Layout(tests[fold : fold + 2], trains[fold : fold + 2], train, False, False)
            columns = XT, *kernels.extents(XT)
            kernels.vote_probes(columns, probe, layout, self.n_neighbors, self.targets, self.precision, own)
            predicted.reshape(n_targets, -1)[:, tested] = own.reshape(n_targets, -1)
        return float(self.score(predicted)[0])

    @cached_property
    def XT(self) -> FeatureMajor:
        places = None if self.folds.is_partition else np.append(np.arange(self.folds.n_rows), self.folds.order)
        return FeatureMajor(self.columns, self.columns.dtype, centered=False, places=places)

    @cached_property
    def precision(self) -> NDArray[Any]:
        """eps and tiny of the floating-point type of the products: float32 for votes, that of X for probabilities."""
        kind: Any = self.columns.dtype if self.measure.is_probability else np.dtype(np.float32)
        return np.array([np.finfo(kind).eps, np.finfo(kind).tiny], kind)

    @cached_property
    def layout(self) -> Layout:
        folds, everything = self.folds, np.arange(self.folds.n_rows)
        largest, smallest = np.diff(folds.borders).max(), np.diff(folds.borders).min()
        is_loo = folds.is_partition and bool(largest == 1) and not len(self.missing.columns)
        if is_loo:
            tests, parts = np.array([0, folds.n_rows]), [everything]
        elif folds.is_partition:
            tests, parts = folds.borders, [np.delete(everything, part) for part in folds.parts]
        else:
            unique = np.unique if self.measure.is_probability else np.asarray
            tests, parts = folds.n_rows + folds.borders, [unique(train) for train, _ in folds.splits]
        is_tall = folds.n_rows >= FEWEST_ROWS and smallest >= WIDEST and self.n_neighbors < GROUPS
        in_pairs = is_tall and folds.is_partition and not is_loo and not self.measure.is_probability
        train = np.concatenate([*parts, np.zeros(ROWS, np.int64)])
        return Layout(tests, np.cumsum([0, *map(len, parts)]), train, is_loo, bool(in_pairs))

    @cached_property
    def targets(self) -> tuple[Any, ...]:
        """Targets, tie keys and the measure for the kernel, in the order of the columns of XT."""
        n, order = self.folds.n_rows, self.folds.order
        rows = order if self.folds.is_partition else np.append(np.arange(n), order)
        keys = np.append(tie_keys(n)[rows], np.zeros(WIDEST, np.int64))
        keepers = np.zeros(1 << (n - 1).bit_length(), np.int64)
        keepers[keys[:n]] = np.arange(n)
        targets = np.atleast_2d(self.target.values[rows].T).astype(np.float64)
        return targets, keys, keepers, self.target.n_classes, self.measure.code

    @property
    def exact_share(self) -> float:
        """Share of the tests so far that needed exact distances, which takes several times as long."""
        return self.counts["exact"] / max(1, self.counts["tests"])

    def _with_extents(self, XT: NDArray[Any]) -> tuple[Any, ...]:
        """XT and its `extents`, which are computed once if XT is kept."""
        known: tuple[Any, ...] | None = self.__dict__.get("_extents")
        if known is None or known[0] is not XT:
            known = self.__dict__["_extents"] = XT, *kernels.extents(XT)
        return known

    def __getstate__(self) -> dict[str, Any]:
        """State without the extents, which another process computes itself."""
        return {name: value for name, value in self.__dict__.items() if name != "_extents"}

    def to(self, device: str) -> Any:
        """The criterion on a torch device: a function of (indices, offsets)."""
        from .knn_device import DeviceKNN

        return DeviceKNN(self, device)
