"""Cross-validated support vector machine scores of feature subsets: libsvm's own solution, on CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.svm import SVC, SVR

from ..engine.probes import Subsets
from ..kernels import smo
from ..validation.errors import ForPython, Parameter, ParameterError, Setting
from ..validation.stores import as_dense
from .base import Criterion, Floats, Folds, Target, require_few_classes
from .scorer import BoundScorer
from .scoring import GroupsOfTests, Measure, Outcomes, OutcomesByGroup

C_GRID = (0.01, 0.1, 1.0, 10.0)
GAMMA_GRID = (0.25, 1.0, 4.0)  # times gamma="scale" of the features tuned on
TUNED_FEATURES = 2000
MOST_ROWS = 5000  # whose kernel matrix takes 200 MB, as much as libsvm's own cache


class SVM(Criterion):
    """Cross-validated score of a support vector machine with a linear or a Gaussian kernel.

    Equal to ``cross_val_score`` of scikit-learn's ``SVC`` (one against one for more than two classes) or ``SVR`` on the
    same folds. ``scoring`` of ``bind``, or of the selector, is "accuracy" for classes or "r2" for numbers if None,
    or any other score of predictions that scikit-learn knows by name or as a scorer.

    libsvm stops at a tolerance, so that a few rows near the border depend on its path: the same path is taken here,
    step for step, from the same kernel values ("linear": to the bit; "rbf": to rounding). Hence equal J, not only equal
    optima, where scikit-learn was compiled without fused multiply-add (as for x86-64; elsewhere a row at the border may
    fall to the other side).

    The kernel matrix of a probe is made once for all folds, and takes 8 bytes per pair of rows (16 for "rbf");
    rows of sparse data that are empty in the probe count as one. Probes with more than 5,000 such rows, and
    two classes with more than 5,000 training rows together (numbers: 2,500), are left to scikit-learn itself.
    The time grows with the scale of the columns: bring them to a common one first.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default="linear"
        "rbf" is exp(-gamma * squared distance).
    C : float, default=1.0
        The price of a row on the wrong side; larger follows the training rows more closely, and takes longer.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of "rbf", as in scikit-learn: "scale" and "auto" follow each probe's size, a number stays.
    tune : bool, default=False
        Choose C from 0.01, 0.1, 1, 10 (and gamma from 1/4, 1, 4 times "scale") once per fit, by the same folds, on all
        features; of more than 2,000 features, on 2,000 evenly spaced ones. The values given are then not used. The
        first of equal values is taken, that is the smaller C, then the smaller gamma.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is regression if y is continuous, that is has fractions.

    Notes
    -----
    What ``bind`` returns has the attributes ``C`` and ``gamma``, given or tuned, and ``folds``.

    References
    ----------
    P. Somol, J. Grim, research report 2295, UTIA, 2011, section V: parameters chosen "only once per trial on the
    training data part with all features". R.-E. Fan, P.-H. Chen, C.-J. Lin, *Working set selection using second
    order information for training support vector machines*, JMLR 6, 2005: the steps libsvm takes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.criteria import SVM
    >>> from probewise.engine.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> SVM("linear").bind(X, y, cv=3)(Subsets.of([[0, 1], [0, 1, 2, 3]])).round(3)
    array([0.787, 0.993])
    """

    block_size = 5
    prefer = "threads"
    streams = True

    def __init__(
        self, kernel: str = "linear", *, C: float = 1.0, gamma: Any = "scale", tune: bool = False, task: str = "auto"
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.tune = tune
        self.task = task

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundSVM:
        self._check()
        target = Target.of(y, self.task)
        remedy = "use KNN, or task='regression' if y is a quantity"
        require_few_classes(target.classes, "SVM, which trains on every two of them,", remedy)
        estimator = f"{'SVC' if target.is_classification else 'SVR'}(kernel={self.kernel!r})"
        if sample_weight is not None:
            raise ParameterError(
                Parameter("sample_weight"),
                ": SVM knows no weights; leave them out, or ",
                ForPython(f"give criterion={estimator}", "use ", Setting("criterion", "linear"), " or knn"),
            )
        folds = Folds.of(cv, np.asarray(y), is_classification=target.is_classification, groups=groups)
        measure = Measure.of(scoring, target, folds, criterion="SVM", estimator=estimator)
        splits = tuple(SplitByClass.of(target, train, np.sort(test)) for train, test in folds.splits)
        X = X.tocsc() if sp.issparse(X) else as_dense(X)
        bound = BoundSVM(X, target, folds, splits, self.kernel, float(self.C), self.gamma, measure)
        return bound.tuned() if self.tune else bound

    def _check(self) -> None:
        if self.kernel not in ("linear", "rbf"):
            raise ValueError(f"kernel={self.kernel!r}: choose 'linear' or 'rbf'")
        if not (isinstance(self.C, Real) and 0 < float(self.C) < np.inf):
            raise ValueError(f"C={self.C!r} must be a positive number")
        number = isinstance(self.gamma, Real) and 0 <= float(self.gamma) < np.inf
        if not number and not (isinstance(self.gamma, str) and self.gamma in ("scale", "auto")):
            raise ValueError(f"gamma={self.gamma!r}: choose 'scale', 'auto' or a number from 0")


class SplitByClass(NamedTuple):
    """One split: rows to test, rows to train on, and these again class by class, as libsvm takes them."""

    test: NDArray[np.int64]
    train: NDArray[np.int64]
    by_class: NDArray[np.int64]
    starts: NDArray[np.int64]
    classes: NDArray[np.int64]

    @classmethod
    def of(cls, target: Target, train: NDArray[np.int64], test: NDArray[np.int64]) -> SplitByClass:
        if target.classes is None:
            return cls(test, train, train, np.array([0, len(train)]), np.zeros(1, np.int64))
        codes = target.values[train]
        classes, starts = np.unique(np.sort(codes), return_index=True)
        if len(classes) < 2:
            raise ValueError(
                f"a training fold holds only class {target.classes[classes[0]]}: "
                "use a cv that keeps two classes in every fold, for example StratifiedKFold"
            )
        return cls(test, train, train[np.argsort(codes, kind="stable")], np.append(starts, len(train)), classes)

    @property
    def longest(self) -> int:
        """Variables of the largest problem: the two largest classes, or two per row for numbers."""
        return 2 * len(self.train) if len(self.classes) == 1 else int(np.sort(np.diff(self.starts))[-2:].sum())


@dataclass(frozen=True)
class BoundSVM(OutcomesByGroup):
    """X by columns, the splits, and the parameters in use."""

    X: Any
    target: Target
    folds: Folds
    splits: tuple[SplitByClass, ...]
    kernel: str
    C: float
    gamma: Any
    measure: Measure

    def _scores(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        longest = max(split.longest for split in self.splits)
        if longest > MOST_ROWS:
            return self._by_sklearn(subsets, groups)
        room, scores, by_group = smo.Room.of(longest), np.empty(len(subsets)), groups.outcomes(len(subsets))
        for k, subset in enumerate(subsets):
            scores[k] = self._score(subset, room, groups, by_group.of_subsets(k))
        return scores, by_group.means

    def tuned(self) -> BoundSVM:
        """The same with the best C, and gamma, of the grid."""
        n_features = self.X.shape[1]
        n_tuned = min(n_features, TUNED_FEATURES)
        features = np.arange(n_tuned) * n_features // n_tuned
        gammas = [self.gamma]
        if self.kernel == "rbf":
            matrix, place = self._rows(features)
            gammas = [share * _scale(matrix[place]) for share in GAMMA_GRID]
        bounds = [replace(self, C=C, gamma=gamma) for C in C_GRID for gamma in gammas]
        scores = [bound(Subsets.of([features]))[0] for bound in bounds]
        return bounds[int(np.argmax(scores))]

    def _score(self, subset: NDArray[np.int32], room: smo.Room, groups: GroupsOfTests, by_group: Outcomes) -> float:
        matrix, place = self._rows(subset)
        if matrix.shape[0] > MOST_ROWS:
            scores, table = self._by_sklearn(Subsets.of([subset]), groups)
            by_group.means[:] = table[0]
            return float(scores[0])
        scores = np.empty(len(self.splits))
        for fold, (split, values) in enumerate(self._kernels(matrix, place)):
            scores[fold] = self._fold(split, values, place, room, by_group.of_tests(self.folds.parts[fold]))
        return float(np.mean(scores))

    def _kernels(self, matrix: Any, place: NDArray[np.int64]) -> Iterator[tuple[SplitByClass, Floats]]:
        """Each split with its kernel matrix; one is made anew only where gamma changes."""
        values = _products(matrix, exactly=self.kernel == "linear")
        if not values.diagonal().max() < np.finfo(np.float32).max:
            raise ValueError("columns are too large for a support vector machine: scale them, as StandardScaler does")
        if self.kernel == "linear":
            yield from ((split, values) for split in self.splits)
            return
        distances, last = _squared_distances(values), None
        for split in self.splits:
            gamma = self._gamma(matrix, place[split.train])
            if gamma != last:
                np.exp(np.multiply(distances, -gamma, out=values), out=values)
            last = gamma
            yield split, values

    def _rows(self, subset: NDArray[Any]) -> tuple[Any, NDArray[np.int64]]:
        """The subset's columns as float64, and where each row of X is in there: empty ones share the last."""
        n_rows = self.X.shape[0]
        if not sp.issparse(self.X):
            return np.ascontiguousarray(self.X[:, subset], dtype=np.float64), np.arange(n_rows)
        columns = self.X[:, subset].astype(np.float64).tocsr()
        sizes = np.diff(columns.indptr)
        used, empty = np.flatnonzero(sizes), np.flatnonzero(sizes == 0)
        place = np.full(n_rows, len(used))
        place[used] = np.arange(len(used))
        return columns[np.append(used, empty[:1])], place

    def _gamma(self, matrix: Any, train: NDArray[np.int64]) -> float:
        if self.gamma == "scale":
            return _scale(matrix[train])
        return 1 / matrix.shape[1] if self.gamma == "auto" else float(self.gamma)

    def _fold(
        self, split: SplitByClass, values: Floats, place: NDArray[np.int64], room: smo.Room, by_group: Outcomes
    ) -> float:
        seen, which = np.unique(place[split.test], return_inverse=True)
        rows = place[split.by_class]
        predictions = np.empty(len(seen))
        if self.target.classes is None:
            smo.regress(values, rows, self.target.values[split.train], seen, self.C, *room, predictions)
        elif self.measure.is_of_labels:
            winners = np.empty(len(seen), np.int64)
            smo.vote(values, rows, split.starts, seen, self.C, *room, winners)
            predictions = split.classes[winners].astype(np.float64)
        else:
            smo.margins(values, rows, split.starts, seen, self.C, *room, predictions)
        truth, weights, n_classes = self.target.values[split.test], self.measure.weights, self.target.n_classes
        return self.measure.tests(truth, weights, n_classes).score_one(predictions[which], by_group)

    def _by_sklearn(self, subsets: Subsets, groups: GroupsOfTests) -> tuple[Floats, Floats]:
        machine = SVC if self.target.is_classification else SVR
        estimator = machine(kernel=self.kernel, C=self.C, gamma=self.gamma)
        if self.measure.of_predictions is not None:
            return np.zeros(len(subsets)), np.array([self._predictions(estimator, subset) for subset in subsets])
        return BoundScorer(estimator, self.X, self.target.values, self.folds, self.measure.name)._scores(
            subsets, groups
        )

    def _predictions(self, estimator: Any, subset: NDArray[np.int32]) -> Floats:
        columns = self.X[:, subset].tocsr() if sp.issparse(self.X) else self.X[:, subset]
        of_labels = self.measure.is_of_labels or not self.target.is_classification
        found = []
        for split in self.splits:
            fitted = estimator.fit(columns[split.train], self.target.values[split.train])
            found.append((fitted.predict if of_labels else fitted.decision_function)(columns[split.test]))
        return np.concatenate(found)


def _scale(rows: Any) -> float:
    """What gamma="scale" is for these training rows."""
    variance = rows.multiply(rows).mean() - rows.mean() ** 2 if sp.issparse(rows) else rows.var()
    return 1.0 / (rows.shape[1] * variance) if variance > 0 else 1.0


def _products(matrix: Any, *, exactly: bool) -> Floats:
    """Products of all pairs of rows; exactly: summed in libsvm's order, to the bit, as scipy does for sparse ones."""
    if sp.issparse(matrix):
        return (matrix @ matrix.T).toarray()
    if not exactly:
        return matrix @ matrix.T
    products = np.empty((len(matrix), len(matrix)))
    smo.dot_all(matrix, products)
    return products


def _squared_distances(products: Floats) -> Floats:
    norms = products.diagonal()
    return np.add.outer(norms, norms) - 2 * products
