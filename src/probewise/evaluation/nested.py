"""Nested cross-validation: rank, choose the number of features and train on some rows, then score other rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import confusion_matrix, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..criteria.base import Target
from ..validation.parameters import check_parameter, whole_number
from ..validation.survival import outcome_array
from .sizes import CONVINCING, FOLDS, Columns, Floats, SizeCurve, size_curve

MIN_PROBES = 1000  # of a nested run; with fewer it would be another method
REPEATS, FEW_ROWS = 3, 500  # more repeats add little, because they share their rows


@dataclass(frozen=True, eq=False)
class NestedScore:
    """Score of the whole procedure on held-out rows.

    Attributes
    ----------
    curve : SizeCurve
        Scores of each fold by number of features, ranked on the training rows of the fold.
    n_folds : int
        Number of folds in each repetition.
    sizes : array of int64
        For each fold, the best number of features in the other folds of the repetition, which test on rows that this
        fold trains on. 0 where guessing, without any feature, is as good.
    scores : array of float64
        Score of each fold with that number of features; the score of guessing where it is 0.
    mean, std_error : float
        Mean of the scores and its standard error, corrected for the training rows that folds share, and at least the
        standard error of guessing.
    guess : float or None
        The score of guessing; None: not known.
    beats_guessing : bool or None
        Whether the mean is above guessing by two standard errors.
    shuffled : float or None
        Mean score with a shuffled target, which is the score on noise; None where not computed.

    References
    ----------
    C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003.
    """

    curve: SizeCurve
    n_folds: int
    shuffled: float | None = None

    def __repr__(self) -> str:
        score = f"NestedScore: {self.curve.measure} {self.mean:.4g} ± {self.std_error:.2g} on held-out rows"
        others = {"guessing": self.guess, "with a shuffled target": self.shuffled}
        return score + "".join(f", {name} {value:.4g}" for name, value in others.items() if value is not None)

    @property
    def sizes(self) -> Columns:
        repetitions = self.curve.scores.reshape(-1, self.n_folds, len(self.curve.sizes))
        others = (np.delete(scores, fold, axis=0) for scores in repetitions for fold in range(self.n_folds))
        return np.array([_best_size(replace(self.curve, scores=scores)) for scores in others])

    @property
    def scores(self) -> Floats:
        curve, sizes = self.curve, self.sizes
        scores = curve.scores[np.arange(len(sizes)), np.searchsorted(curve.sizes, sizes)]
        return scores if curve.guess is None else np.where(sizes > 0, scores, curve.guess)

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def std_error(self) -> float:
        shared = np.sqrt(1 / len(self.scores) + self.curve.test_to_train)
        return float(np.nanmax([self.scores.std(ddof=1) * shared, self.curve.guess_error]))

    @property
    def guess(self) -> float | None:
        return self.curve.guess

    @property
    def beats_guessing(self) -> bool | None:
        return None if self.guess is None else bool(self.mean - CONVINCING * self.std_error > self.guess)


def _best_size(curve: SizeCurve) -> int:
    """The number of features with the best score, smoothed over neighboring sizes; 0 where guessing is as good.

    The one-standard-error rule would choose too few features here, because the error of four folds is large.
    """
    means = np.convolve(np.pad(curve.mean, 1, mode="edge"), (0.25, 0.5, 0.25), mode="valid")
    best = int(np.argmax(means))
    return 0 if curve.guess is not None and means[best] <= curve.guess else int(curve.sizes[best])


def nested_score(
    selector: Any,
    X: Any,
    y: Any,
    *,
    repeats: int | None = None,
    shuffled: bool = False,
    groups: Any = None,
    sample_weight: Any = None,
) -> NestedScore:
    """Score of the whole procedure by nested cross-validation: rank, choose the size and train on other rows.

    Parameters
    ----------
    selector : selector
        A fitted selector.
    X, y : array-like
        The data of ``fit``.
    repeats : int or None, default=None
        How often the rows are divided into five folds. None: three times for up to 500 rows, else once; with
        ``groups``, always once. The result does not depend on the speed of the machine.
    shuffled : bool, default=False
        Whether to score the procedure on a shuffled target as well: what it reaches on noise.
    groups, sample_weight : array-like or None, default=None
        Group and weight of each row, as in ``fit``.

    Returns
    -------
    NestedScore
        With ``mean``, ``std_error``, ``guess`` and ``beats_guessing``.
    """
    if repeats is None:
        is_short = len(y) <= FEW_ROWS and getattr(selector, "time_limit", None) is None
        repeats = REPEATS if is_short else 1
    check_parameter("repeats", repeats, whole_number(1))
    options = {"groups": groups, "sample_weight": sample_weight, "n_probes": _probes_of_a_copy(selector)}
    score = _repeated(repeats, selector, X, y, **options)
    if not shuffled:
        return score
    group_of = None if groups is None else np.unique(groups, return_inverse=True)[1]
    other = shuffled_target(outcome_array(y), group_of, np.random.default_rng(0))
    return replace(score, shuffled=_repeated(1, selector, X, other, **options).mean)


def shuffled_target(target: NDArray[Any], group: NDArray[np.int64] | None, random: np.random.Generator) -> NDArray[Any]:
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


def _repeated(repeats: int, selector: Any, X: Any, y: Any, **options: Any) -> NestedScore:
    """Nested curves with different folds; whole groups have only one division into folds."""
    n_repeats = repeats if options["groups"] is None else 1
    curves = [size_curve(selector, X, y, nested=True, seed=seed, **options) for seed in range(n_repeats)]
    scores = np.concatenate([curve.scores for curve in curves])
    return NestedScore(replace(curves[0], scores=scores), len(curves[0].scores))


def _probes_of_a_copy(selector: Any) -> int | None:
    """Number of probes of a nested run, from that of the run itself; fewer if the run had a time limit."""
    run = getattr(selector, "run_", None)
    if run is None:
        return None
    if getattr(selector, "time_limit", None) is not None:
        return max(1, run.ledger.n_probes // (2 * FOLDS))  # all copies together take half as long as the run
    return max(min(MIN_PROBES, run.ledger.n_probes), run.ledger.n_probes // FOLDS)


# ---- held-out predictions

PENALTIES = np.logspace(-3, 4, 15)
MODELS = {True: "logistic regression with equal weights of the classes", False: "ridge regression"}


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Predictions of each row by models of other rows; ``decisions`` are those of two classes, else None."""

    target: Target
    size: int
    predicted: NDArray[Any]  # class codes or numbers
    decisions: Floats | None = None

    @cached_property
    def confusion(self) -> NDArray[np.int64]:
        """Number of rows by true class and predicted class."""
        return confusion_matrix(self.target.values, self.predicted, labels=np.arange(self.target.n_classes))

    @property
    def recall(self) -> Floats:
        """Share of the rows of each class that are predicted correctly."""
        return np.diag(self.confusion) / self.confusion.sum(axis=1)

    @cached_property
    def auc(self) -> tuple[float, float] | None:
        """Area under the ROC curve of two classes, and its standard error (Hanley and McNeil, 1982)."""
        if self.decisions is None:
            return None
        area = float(roc_auc_score(self.target.values, self.decisions))
        n_second = int(self.target.values.sum())
        n_first = len(self.target.values) - n_second
        first, second = area / (2 - area), 2 * area**2 / (1 + area)
        spread = (n_second - 1) * (first - area**2) + (n_first - 1) * (second - area**2)
        return area, float(np.sqrt((area * (1 - area) + spread) / (n_first * n_second)))

    @property
    def rmse(self) -> float:
        """Root mean squared error, in the units of y."""
        return float(np.sqrt(np.mean((self.target.values - self.predicted) ** 2)))


def held_out_predictions(curve: SizeCurve, X: Any, target: Target) -> HeldOutPredictions | None:
    """Predictions with the suggested number of features, which each fold of a nested curve ranked on its own.

    None where the curve has no columns, or its folds do not test each row once.
    """
    tested = np.concatenate([test for (_, test), _ in curve.chosen]) if curve.chosen else np.empty(0, int)
    if not np.array_equal(np.sort(tested), np.arange(len(target.values))):
        return None
    place = curve.sizes.tolist().index(curve.suggested)
    model: Any = LogisticRegression(class_weight="balanced", max_iter=2000)
    model = model if target.is_classification else RidgeCV(PENALTIES)
    predicted, decisions = np.empty(len(tested), target.values.dtype), np.empty(len(tested))
    for (train, test), subsets in curve.chosen:
        part = X[:, subsets[place]]
        part = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
        imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        fitted = make_pipeline(imputer, StandardScaler(), model).fit(part[train], target.values[train])
        predicted[test] = fitted.predict(part[test])
        if target.n_classes == 2:
            decisions[test] = fitted.decision_function(part[test])
    return HeldOutPredictions(target, curve.suggested, predicted, decisions if target.n_classes == 2 else None)
