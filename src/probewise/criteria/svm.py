"""Cross-validated score of scikit-learn's support vector machines: liblinear for a linear kernel, libsvm for "rbf"."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from ..engine.probes import Subsets
from ..validation.errors import ParameterError
from ..validation.stores import as_dense
from ..validation.tables import SQUARED
from .base import Criterion, Floats, Folds, Target, require_few_classes
from .naive_bayes import dense_columns
from .scorer import BoundScorer, Scorer
from .scoring import Measure

C_GRID = (0.01, 0.1, 1.0, 10.0)
GAMMA_GRID = (0.25, 1.0, 4.0)  # multiples of gamma="scale" on the features used for tuning
TUNED_FEATURES = 2000


@dataclass(eq=False, repr=False)
class SVM(Criterion):
    """Cross-validated score of a support vector machine with a linear or a Gaussian kernel.

    The score equals ``cross_val_score`` of scikit-learn's estimator on the same folds: ``LinearSVC`` or ``SVC`` for
    classes, and ``SVR`` or, on the target minus its training mean, ``LinearSVR`` for numbers; ``scoring`` as in `KNN`.

    This is the slowest criterion: every probe is fitted in every fold. Training takes longest if the columns differ in
    scale, so scale them first. liblinear stops after 1,000 passes over the rows, converged or not.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default="linear"
        "rbf" is exp(-gamma * squared distance).
    C : float, default=1.0
        Penalty of rows on the wrong side; larger values follow the training rows more closely and take longer.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of "rbf", as in scikit-learn: "scale" and "auto" depend on the columns of each probe.
    tune : bool, default=False
        Choose C from 0.01, 0.1, 1 and 10 (and gamma from 1/4, 1 and 4 times "scale") once per fit by
        cross-validation on the same folds and on all features, or on 2,000 evenly spaced ones if there are more.
        ``C`` and ``gamma`` are then not used; the bound criterion has the chosen values as attributes. Among equal
        scores the smaller C wins, then the smaller gamma.
    task
        As in `KNN`.

    References
    ----------
    P. Somol, J. Grim, research report 2295, UTIA, 2011, section V: parameters chosen "only once per trial on the
    training data part with all features".
    """

    block_size = Scorer.block_size
    prefer = Scorer.prefer
    streams = True
    widths = SQUARED

    kernel: str = "linear"
    _: KW_ONLY
    C: float = 1.0
    gamma: Any = "scale"
    tune: bool = False
    task: str = "auto"

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundSVM:
        if self.kernel not in ("linear", "rbf"):
            raise ParameterError(f"kernel={self.kernel!r}: choose 'linear' or 'rbf'")
        if not (isinstance(self.C, Real) and 0 < float(self.C) < np.inf):
            raise ParameterError(f"C={self.C!r} must be a positive number")
        if self.gamma not in ("scale", "auto") and not (
            isinstance(self.gamma, Real) and 0 <= float(self.gamma) < np.inf
        ):
            raise ParameterError(f"gamma={self.gamma!r}: choose 'scale', 'auto' or a number of at least 0")
        target, y = Target.of(y, self.task), np.asarray(y)
        remedy = "use KNN, or task='regression' if y is a quantity"
        require_few_classes(target.classes, "SVM, which trains on each of them or on each pair,", remedy)
        name = f"{'Linear' if self.kernel == 'linear' else ''}{'SVC' if target.is_classification else 'SVR'}()"
        if sample_weight is not None:
            raise ParameterError(
                f"sample_weight: SVM does not use weights; omit them, or use criterion='linear', 'knn' or {name}"
            )
        folds = Folds.of(cv, y, is_classification=target.is_classification, groups=groups)
        Measure.of(scoring, target, folds, criterion="SVM", estimator=name)  # refuses a scoring that has no meaning
        usual = "accuracy" if target.is_classification else "r2"
        data = X.tocsc() if sp.issparse(X) else as_dense(X), y, folds, usual if scoring is None else scoring, None

        def bound(C: float, gamma: Any) -> BoundSVM:
            return BoundSVM(self._estimator(target, C, gamma), *data, C, gamma)

        if not self.tune:
            return bound(self.C, self.gamma)
        n_tuned = min(X.shape[1], TUNED_FEATURES)
        features = np.arange(n_tuned) * X.shape[1] // n_tuned
        gammas = [self.gamma]
        if self.kernel == "rbf":
            columns = dense_columns(data[0], features)
            gammas = [multiple / (n_tuned * (columns.var() or 1.0)) for multiple in GAMMA_GRID]
        candidates = [bound(C, gamma) for C in C_GRID for gamma in gammas]
        return candidates[int(np.argmax([candidate(Subsets.of([features]))[0] for candidate in candidates]))]

    def _estimator(self, target: Target, C: float, gamma: Any) -> Any:
        if self.kernel == "rbf":
            return (SVC if target.is_classification else SVR)(C=C, gamma=gamma)
        if target.is_classification:
            return LinearSVC(C=C, random_state=0)
        # liblinear penalizes the intercept, which would spoil the fit of a target far from 0
        model = LinearSVR(C=C, epsilon=0.1, random_state=0)
        return TransformedTargetRegressor(model, transformer=StandardScaler(with_std=False))


@dataclass(frozen=True)
class BoundSVM(BoundScorer):
    """An estimator bound to the data, and its parameters."""

    C: float = 1.0
    gamma: Any = "scale"

    def __call__(self, subsets: Subsets) -> Floats:
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            return super().__call__(subsets)
