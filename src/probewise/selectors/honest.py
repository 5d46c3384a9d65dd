"""An honest score: rank, choose how many features and train on some rows, then score on others, over and over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..criteria.base import Split, Target
from .size_curve import (
    CONVINCING,
    FOLDS,
    SizeCurve,
    SubsetScorer,
    as_sizes,
    chosen,
    columns_of_each,
    criterion_of,
    has_names,
    ranked_anew,
    require_splittable,
    splits_for,
)

Floats = NDArray[np.float64]
FEWEST_SECONDS = 1.0
FEWEST_PROBES = 1000  # of a copy of the run; with fewer it would be another method
MOST_SCORES = 20  # four times five folds: more tell little, since they share their rows


@dataclass(frozen=True, eq=False)
class HonestScore:
    """What the whole procedure reaches on rows that it has not seen.

    Attributes
    ----------
    curve : SizeCurve
        The scores of each fold by number of features, ranked on its other rows; ``curve.suggested`` are enough.
    scores : array of float64
        Of each fold, with as many features as the other folds say are enough.
    mean, std_error : float
        Of the scores. The error is larger than of independent ones, since folds share the rows they train on, and not
        less than that of a guesser who is scored on every row once.
    guess : float or None
        What the score is without any feature; None: not known.
    beats_guessing : bool or None
        Whether the mean is above guessing by two standard errors.
    shuffled : float or None
        The mean with the target shuffled: how good it looks on noise; None where that was not tried.

    References
    ----------
    C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003.
    """

    curve: SizeCurve
    shuffled: float | None = None

    @property
    def scores(self) -> Floats:
        curve, folds = self.curve, np.arange(len(self.curve.scores))
        others = (replace(curve, scores=curve.scores[folds != fold]) for fold in folds)
        places = [np.searchsorted(curve.sizes, other.suggested) for other in others]
        return np.asarray(curve.scores[folds, places])

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def std_error(self) -> float:
        shared = np.sqrt(1 / len(self.scores) + self.curve.test_to_train)
        return float(np.nanmax([self.scores.std(ddof=1) * shared, self.curve.chance]))

    @property
    def guess(self) -> float | None:
        return self.curve.guess

    @property
    def beats_guessing(self) -> bool | None:
        return None if self.guess is None else bool(self.mean - CONVINCING * self.std_error > self.guess)


def honest_score_of(
    selector: Any,
    X: Any,
    y: Any,
    *,
    seconds: float | None = None,
    shuffled: bool = False,
    groups: Any = None,
    sample_weight: Any = None,
) -> HonestScore:
    """Parameters as in `RankingSelector.honest_score`."""
    check_is_fitted(selector, "ranking_")
    if y is None:
        raise ValueError("y=None: an honest score is of what features predict; give y")
    require_splittable(selector)
    y = np.asarray(y)
    check_consistent_length(X, y, groups, sample_weight)
    of_rows = {"groups": groups, "sample_weight": sample_weight}
    of_rows = {name: np.asarray(values) for name, values in of_rows.items() if values is not None}
    time_limit = _seconds(selector, seconds)
    work = _Procedure(selector, X, y, of_rows, _probes_of_a_copy(selector, time_limit))
    curve, noise = work.curve(time_limit), None
    if shuffled:
        order = np.random.default_rng(0).permutation(len(y))
        noise = HonestScore(_Procedure(selector, X, y[order], of_rows, work.n_probes).curve(0.0)).mean
    return HonestScore(curve, noise)


def _seconds(selector: Any, asked: float | None) -> float:
    """As long as the run itself took, and at least a while."""
    run = getattr(selector, "run_", None)
    return asked if asked is not None else max(FEWEST_SECONDS, 0.0 if run is None else run.ledger.seconds)


def _probes_of_a_copy(selector: Any, seconds: float) -> int | None:
    """As many as the run has if five copies then fit the time, else fewer; None for a method without probes."""
    run = getattr(selector, "run_", None)
    if run is None:
        return None
    share = min(1.0, seconds / max(FOLDS * run.ledger.seconds, 1e-9))
    return max(min(FEWEST_PROBES, run.ledger.n_probes), int(share * run.ledger.n_probes))


class _Procedure:
    """What is repeated on the training rows of every fold."""

    def __init__(self, selector: Any, X: Any, y: NDArray[Any], of_rows: dict[str, Any], n_probes: int | None) -> None:
        seen = selector.as_numbers(X, selector.missing_category)
        self.selector, self.y, self.of_rows, self.n_probes = selector, y, of_rows, n_probes
        self.given = X if has_names(X) else seen
        self.matrix, self.columns = selector.criterion_input(seen)
        criterion = criterion_of(selector, seen)
        self.target = Target.of(y, getattr(criterion, "task", "auto"))
        self.scorer = SubsetScorer.like(criterion, seen, self.target, getattr(selector, "scoring", None))
        self.sizes = as_sizes(selector)
        self.first_splits = splits_for(FOLDS, self.target, of_rows.get("groups"))

    def curve(self, seconds: float) -> SizeCurve:
        """Of the first folds in any case, then of others while time lasts."""
        begun, scores = time.perf_counter(), []
        for number, split in enumerate(self._splits()):
            spent = time.perf_counter() - begun
            if number >= len(self.first_splits) and spent * (number + 1) / number > seconds:
                break
            scores.append(self._scores(split))
        guess, chance = self.scorer.guessing(self.y, self.target, self.first_splits)
        share = float(np.mean([len(test) / len(train) for train, test in self.first_splits]))
        measure = self.scorer.measure(self.target)
        return SizeCurve(self.sizes, np.array(scores), measure, self.scorer.words, True, guess, chance, share)

    def _splits(self) -> Iterator[Split]:
        yield from self.first_splits
        if "groups" in self.of_rows:  # whole groups are dealt out in one way only
            return
        for seed in range(1, MOST_SCORES // len(self.first_splits)):
            yield from splits_for(FOLDS, self.target, seed=seed)

    def _scores(self, split: Split) -> Floats:
        asked = self.sizes.tolist()
        copy = ranked_anew(self.selector, self.given, self.y, split[0], asked, self.of_rows, n_probes=self.n_probes)
        subsets = columns_of_each(chosen(copy, asked), self.columns)
        return self.scorer.scores(self.matrix, self.y, split, subsets, self.of_rows.get("sample_weight"))
