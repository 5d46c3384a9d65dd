"""Evaluation by repeated fits to some of the rows: nested cross-validation and selection frequencies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, roc_auc_score
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..criteria.base import Target
from ..criteria.columns import on_scaled_columns
from ..validation.errors import warn
from ..validation.parameters import check_parameter, checked_groups, checked_weights, outcome_array, whole_number
from ..validation.tables import is_frame
from .permutations import permuted_rows
from .sizes import (
    CONVINCING,
    FOLDS,
    MISSING_CATEGORY,
    Columns,
    Floats,
    SizeCurve,
    TooFewRows,
    arguments_of_rows,
    columns_at_sizes,
    criterion_of,
    ranked_on_parts,
    require_splittable,
    size_curve,
    splits_for,
    suggested_size,
    warn_if_groups_missing,
)
from .subsets import NUMBER_MODEL, TunedRegressor
from .survival import held_out_risk

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
        For each fold, the number of features by the one-standard-error rule: the smallest one whose mean over the other
        folds of the repetition, which test on rows that this fold trains on, is within one standard error of the best.
        The standard error is that of all repetitions. 0 where guessing, without any feature, is within it, too.
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
        return np.array([self._size(scores.mean(axis=0)) for scores in others])

    def _size(self, means: Floats) -> int:
        best, errors = int(np.argmax(means)), np.nan_to_num(self.curve.std_error)
        if self.guess is not None and means[best] - errors[best] <= self.guess:
            return 0
        return suggested_size(self.curve.sizes, means, errors)

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


def nested_score(
    selector: Any,
    X: Any,
    y: Any,
    *,
    repeats: int | None = None,
    shuffled: bool = False,
    groups: Any = None,
    sample_weight: Any = None,
    adjust: Any = None,
) -> NestedScore:
    """Score of the whole procedure by nested cross-validation: rank, choose the size and train on other rows.

    Parameters
    ----------
    selector : selector
        A fitted selector.
    X, y : array-like
        The data of ``fit``.
    repeats : int or None, default=None
        How often the rows, or whole groups, are divided into five folds. None: three times for up to 500 rows, else
        once; up to five groups are divided once. The result does not depend on the speed of the machine.
    shuffled : bool, default=False
        Whether to score the procedure on a shuffled target as well: what it reaches on noise. The target is shuffled
        as in `probewise.inference.associated`, with its weights, and by exchanging whole groups.
    groups, sample_weight : array-like or None, default=None
        Group and weight of each row, as in ``fit``.
    adjust : array, data frame or None, default=None
        As in `size_curve`; `adjusted_scores` compares the result with models of the covariates.
    """
    y = outcome_array(y)
    if repeats is None:
        is_short = len(y) <= FEW_ROWS and getattr(selector, "time_limit", None) is None
        repeats = REPEATS if is_short else 1
    check_parameter("repeats", repeats, whole_number(1))
    groups = checked_groups(groups, len(y))
    options = {"groups": groups, "sample_weight": sample_weight, "adjust": adjust}
    options["n_probes"] = probes_of_a_copy(selector)
    score = _repeated(repeats, selector, X, y, **options)
    if not shuffled:
        return score
    group_of = None if groups is None else np.unique(groups, return_inverse=True)[1]
    rows = permuted_rows(group_of, len(y), seed=0)
    if (weights := checked_weights(sample_weight, len(y))) is not None:
        options["sample_weight"] = weights[rows]
    return replace(score, shuffled=_repeated(1, selector, X, y[rows], **options).mean)


def automatic_size(selector: Any, X: Any, y: Any, **options: Any) -> SizeCurve:
    """The curve that suggests the number of features; it warns if the selected features may be noise."""
    try:
        score = nested_score(selector, X, y, **options)
    except ValueError as reason:  # few rows, or a list of splits
        warn(f"the number of features was not chosen on held-out rows: {reason}")
        return size_curve(selector, X, y, **options)
    if score.beats_guessing is False:
        warn(
            "no number of features predicts convincingly better than guessing: the "
            f"{score.curve.suggested} selected features may be noise"
        )
    return score.curve


def _repeated(repeats: int, selector: Any, X: Any, y: Any, **options: Any) -> NestedScore:
    """Nested curves with different folds; up to five groups are a fold each, whatever the seed."""
    is_one_division = options["groups"] is not None and len(np.unique(options["groups"])) <= FOLDS
    n_repeats = 1 if is_one_division else repeats
    curves = [size_curve(selector, X, y, nested=True, seed=seed, **options) for seed in range(n_repeats)]
    scores = np.concatenate([curve.scores for curve in curves])
    chosen = [split for curve in curves for split in curve.chosen]
    return NestedScore(replace(curves[0], scores=scores, chosen=chosen), len(curves[0].scores))


def probes_of_a_copy(selector: Any) -> int | None:
    """Number of probes of a nested run, from that of the run itself; fewer if the run had a time limit."""
    run = getattr(selector, "run_", None)
    if run is None:
        return None
    if getattr(selector, "time_limit", None) is not None:
        return max(1, run.ledger.n_probes // (4 * FOLDS))  # all copies together take a quarter of the time
    return max(min(MIN_PROBES, run.ledger.n_probes), run.ledger.n_probes // FOLDS)


# ---- held-out predictions

MODELS = {True: "logistic regression with equal weights of the classes", False: NUMBER_MODEL}


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Predictions of each row by models of other rows; ``decisions`` are those of two classes, else None."""

    target: Target
    size: int
    predicted: NDArray[Any]  # class codes or numbers
    decisions: Floats | None = None
    groups: NDArray[Any] | None = None

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
        """Area under the ROC curve of two classes, and its standard error (Hanley and McNeil, 1982).

        The error counts groups and not their rows, which depend on each other. The error of an area of 1 is that of
        half a row of the smaller class on the wrong side, not 0.
        """
        if self.decisions is None:
            return None
        area, values = float(roc_auc_score(self.target.values, self.decisions)), self.target.values
        groups = np.arange(len(values)) if self.groups is None else np.asarray(self.groups)
        n_first, n_second = (len(np.unique(groups[values == label])) for label in (0, 1))
        margin = 0.5 / min(n_first, n_second)
        inner = min(max(area, margin), 1 - margin)
        first, second = inner / (2 - inner), 2 * inner**2 / (1 + inner)
        spread = (n_second - 1) * (first - inner**2) + (n_first - 1) * (second - inner**2)
        return area, float(np.sqrt((inner * (1 - inner) + spread) / (n_first * n_second)))

    @property
    def rmse(self) -> float:
        """Root mean squared error, in the units of y; of several targets the mean."""
        return float(np.sqrt(np.mean((self.target.values - self.predicted) ** 2)))


def held_out_predictions(curve: SizeCurve, X: Any, target: Target, groups: Any = None) -> HeldOutPredictions | None:
    """Predictions with the suggested number of features, which each fold of a nested curve ranked on its own.

    For a survival outcome they are risks, above the median risk of the training rows. None where the curve has no
    columns, or the folds of its first repetition do not test each row once.
    """
    ends = np.cumsum([len(test) for (_, test), _ in curve.chosen])
    chosen = curve.chosen[: int(np.searchsorted(ends, len(target.values))) + 1]
    tested = np.concatenate([test for (_, test), _ in chosen]) if chosen else np.empty(0, int)
    if not np.array_equal(np.sort(tested), np.arange(len(target.values))):
        return None
    place = curve.sizes.tolist().index(curve.suggested)
    model: Any = LogisticRegression(class_weight="balanced", max_iter=2000)
    model = model if target.is_classification else TunedRegressor()
    predicted, decisions = np.empty_like(target.values), np.empty(len(tested))
    for (train, test), subsets in chosen:
        part = X[:, subsets[place]]
        part = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
        if target.survival is not None:
            predicted[test] = held_out_risk(part, target.survival, train, test)
            continue
        fitted = on_scaled_columns(model).fit(part[train], target.values[train])
        predicted[test] = fitted.predict(part[test])
        if target.n_classes == 2:
            decisions[test] = fitted.decision_function(part[test])
    return HeldOutPredictions(target, curve.suggested, predicted, decisions if target.n_classes == 2 else None, groups)


# ---- selection frequencies

TOP = 20
PAIRS, FEW_PAIRS = 5, 2  # divisions into halves: of up to 500 rows, and of more rows or with a time limit
MIN_PER_HALF = 2  # rows of each class, or groups


@dataclass(frozen=True, eq=False)
class SelectionFrequency:
    """How often each feature is among the best ``top`` on random halves of the rows.

    Attributes
    ----------
    subsets : array of bool of shape (2 * n_pairs, n_features)
        The features selected on each half; rows 2k and 2k + 1 are the two halves of one division.
    top : int
        Number of selected features.
    frequencies : array of shape (n_features,)
        Share of the halves on which each feature is selected. Divisions share their rows, so a feature that is good on
        these rows by chance is selected often, too: tests of features are in `probewise.inference`.
    shared : float
        Mean number of features that two halves of one division have in common. They have no row in common, so this is
        what another sample of half as many rows would confirm.
    shared_by_chance : float
        The same number for random subsets.
    stability : float
        Kuncheva's index of the two halves, averaged over divisions: 1 for equal selections, 0 for chance.

    References
    ----------
    N. Meinshausen, P. Bühlmann, *Stability selection*, JRSS B 72, 2010. R. Shah, R. Samworth, *Variable selection with
    error control: another look at stability selection*, JRSS B 75, 2013: complementary pairs of halves.
    """

    subsets: NDArray[np.bool_]
    top: int

    @property
    def frequencies(self) -> Floats:
        return self.subsets.mean(axis=0)

    @property
    def shared(self) -> float:
        return float((self.subsets[::2] & self.subsets[1::2]).sum(axis=1).mean())

    @property
    def shared_by_chance(self) -> float:
        return float(np.mean(self.subsets.sum(axis=1)) ** 2 / self.subsets.shape[1])

    @property
    def stability(self) -> float:
        n_selected = float(np.mean(self.subsets.sum(axis=1)))
        if n_selected == self.subsets.shape[1]:  # all features
            return 1.0
        return (self.shared - self.shared_by_chance) / (n_selected - self.shared_by_chance)

    def __repr__(self) -> str:
        return (
            f"SelectionFrequency: two halves of the rows share {self.shared:.1f} of their top {self.top} "
            f"({self.shared_by_chance:.1f} by chance), stability {self.stability:.2f}"
        )


def selection_frequency(
    selector: Any,
    X: Any,
    y: Any,
    *,
    top: int | None = None,
    n_pairs: int | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    adjust: Any = None,
) -> SelectionFrequency:
    """Select features again on random halves of the rows.

    A copy of the selector ranks each half, with a fifth of the probes (at least 1,000). Fewer rows and fewer probes
    make a ranking less stable, so the list of all rows is usually more stable than this.

    Parameters
    ----------
    selector : selector
        A fitted selector.
    X, y : array-like
        The data of ``fit``.
    top : int or None, default=None
        Number of features to select. None: ``n_features_to_select`` where it is a number of features, else 20, but at
        most a quarter of the features.
    n_pairs : int or None, default=None
        Number of divisions into two halves, each of which takes two runs. None: 5 for up to 500 rows, else 2.
    groups, sample_weight, adjust : array-like or None, default=None
        Group, weight and covariates of each row, as in ``fit``. Rows of one group are in the same half.
    """
    warn_if_groups_missing(selector, groups)
    check_is_fitted(selector, "ranking_")
    require_splittable(selector)
    n_ranks = int(selector.ranking_.max())
    if top is None:
        top = selector.n_features_to_select if isinstance(selector.n_features_to_select, int) else TOP
        top = min(top, max(1, n_ranks // 4))
    check_parameter("top", top, whole_number(1, n_ranks))
    numbers, y = selector._numbers_of(X, MISSING_CATEGORY), outcome_array(y)
    is_short = len(y) <= FEW_ROWS and getattr(selector, "time_limit", None) is None
    n_pairs = (PAIRS if is_short else FEW_PAIRS) if n_pairs is None else n_pairs
    check_parameter("n_pairs", n_pairs, whole_number(1))
    check_consistent_length(numbers, y)
    target = Target.of(y, getattr(criterion_of(selector, numbers), "task", "auto"))
    of_rows = arguments_of_rows(len(y), groups, sample_weight, adjust)
    table = X if is_frame(X) else numbers

    def selected(copy: Any, _: Columns) -> NDArray[np.bool_]:
        return np.isin(np.arange(numbers.shape[1]), columns_at_sizes(copy, [top])[0])

    parts = [rows for seed in range(n_pairs) for rows in halves(target, of_rows.get("groups"), seed)]
    seeds = range(len(parts))
    subsets = ranked_on_parts(
        selector, table, y, parts, selected, [top], of_rows, n_probes=probes_of_a_copy(selector), seeds=seeds
    )
    return SelectionFrequency(np.array(subsets), top)


def halves(target: Target, groups: Any, seed: int) -> list[Columns]:
    """The rows of two random halves, stratified by class; rows of one group are in the same half."""
    if groups is None:
        if target.is_classification and np.bincount(target.values).min() < 2 * MIN_PER_HALF:
            raise TooFewRows(f"a class has fewer than {2 * MIN_PER_HALF} rows, too few for two halves of the rows")
        return [test for _, test in splits_for(2, target, seed=seed)]
    if len(np.unique(groups)) < 2 * MIN_PER_HALF:
        raise TooFewRows(f"there are fewer than {2 * MIN_PER_HALF} groups, too few for two halves of the rows")
    by_group = StratifiedGroupKFold if target.is_classification else GroupKFold
    folds = by_group(2, shuffle=True, random_state=seed).split(np.empty((len(target.values), 0)), target.values, groups)
    return [test for _, test in folds]
