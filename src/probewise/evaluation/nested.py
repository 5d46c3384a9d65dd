"""Nested cross-validation: rank, choose the number of features and train on some rows, then score on other rows."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.ledger import Ledger
from .sizes import CONVINCING, FOLDS, Columns, Floats, SizeCurve, size_curve, suggested_size

MIN_SECONDS = 1.0
MIN_PROBES = 1000  # of a nested run; with fewer it would be another method
MAX_REPETITIONS = 4  # of five folds; more add little, because they share their rows


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
        For each fold, the number of features that the other folds of the repetition suggest; they test on rows that
        this fold trains on. 0 where they suggest that guessing, without any feature, is as good.
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
        return np.array([_suggested_size(replace(self.curve, scores=scores)) for scores in others])

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


def _suggested_size(curve: SizeCurve) -> int:
    """The suggested number of features; it may be 0 where the score of guessing is known."""
    sizes, means, errors = curve.sizes, curve.mean, curve.std_error
    if curve.guess is None:
        return suggested_size(sizes, means, errors)
    return suggested_size(np.append(0, sizes), np.append(curve.guess, means), np.append(0.0, errors))


def nested_score(
    selector: Any,
    X: Any,
    y: Any,
    *,
    seconds: float | None = None,
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
    seconds : float or None, default=None
        Time for repetitions after the first five folds, which are always made; with little time the nested runs have
        fewer probes. None: as long as ``fit`` took, at least 1.
    shuffled : bool, default=False
        Whether to score the procedure on a shuffled target as well: what it reaches on noise.
    groups, sample_weight : array-like or None, default=None
        Group and weight of each row, as in ``fit``.

    Returns
    -------
    NestedScore
        With ``mean``, ``std_error``, ``guess`` and ``beats_guessing``.
    """
    rows = {"groups": groups, "sample_weight": sample_weight}
    run = getattr(selector, "run_", None)
    if seconds is None:
        seconds = max(MIN_SECONDS, 0.0 if run is None else run.ledger.seconds)
    options = {**rows, "n_probes": None if run is None else _probes_of_a_copy(run.ledger, seconds)}
    score = _repeated(seconds, selector, X, y, **options)
    if not shuffled:
        return score
    group_of = None if groups is None else np.unique(groups, return_inverse=True)[1]
    other = shuffled_target(np.asarray(y), group_of, np.random.default_rng(0))
    return replace(score, shuffled=_repeated(0.0, selector, X, other, **options).mean)


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


def _repeated(seconds: float, selector: Any, X: Any, y: Any, **options: Any) -> NestedScore:
    """Nested curves with different folds, repeated while there is time; whole groups have only one division."""
    started = time.perf_counter()
    curve = size_curve(selector, X, y, nested=True, **options)
    scores = [curve.scores]
    for seed in range(1, MAX_REPETITIONS if options["groups"] is None else 1):
        if (time.perf_counter() - started) * (seed + 1) / seed > seconds:
            break
        scores.append(size_curve(selector, X, y, nested=True, seed=seed, **options).scores)
    return NestedScore(replace(curve, scores=np.concatenate(scores)), len(curve.scores))


def _probes_of_a_copy(ledger: Ledger, seconds: float) -> int:
    """Number of probes of a nested run: those of the run itself if five copies fit into the time, else fewer."""
    share = min(1.0, seconds / max(FOLDS * ledger.seconds, 1e-9))
    return max(min(MIN_PROBES, ledger.n_probes), int(share * ledger.n_probes))
