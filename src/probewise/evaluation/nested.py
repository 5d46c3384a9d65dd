"""An honest score: rank, choose how many features and train on some rows, then score on others, over and over."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.ledger import Ledger
from ..engine.permutation_test import shuffled_target
from .sizes import CONVINCING, FOLDS, Columns, Floats, SizeCurve, fewest_enough, size_curve

FEWEST_SECONDS = 1.0
FEWEST_PROBES = 1000  # of a copy of the run; with fewer it would be another method
MOST_ROUNDS = 4  # of five folds: more tell little, since they share their rows


@dataclass(frozen=True, eq=False)
class NestedScore:
    """What the whole procedure reaches on rows that it has not seen.

    Attributes
    ----------
    curve : SizeCurve
        The scores of each fold by number of features, ranked on its other rows; ``curve.suggested`` are enough.
    n_folds : int
        Into which the rows were dealt each time.
    sizes : array of int64
        As many features as the other folds of the same deal say are enough, for each fold: these test on rows that it
        trains on. 0 where they say that guessing, without any feature, does as well.
    scores : array of float64
        Of each fold with as many features; of guessing where there are none.
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
    n_folds: int
    shuffled: float | None = None

    def __repr__(self) -> str:
        said = f"NestedScore: {self.curve.measure} {self.mean:.4g} ± {self.std_error:.2g} on rows not seen"
        others = {"guessing": self.guess, "with the target shuffled": self.shuffled}
        return said + "".join(f", {name} {value:.4g}" for name, value in others.items() if value is not None)

    @property
    def sizes(self) -> Columns:
        deals = self.curve.scores.reshape(-1, self.n_folds, len(self.curve.sizes))
        others = (np.delete(deal, fold, axis=0) for deal in deals for fold in range(self.n_folds))
        return np.array([_enough(replace(self.curve, scores=scores)) for scores in others])

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
        return float(np.nanmax([self.scores.std(ddof=1) * shared, self.curve.chance]))

    @property
    def guess(self) -> float | None:
        return self.curve.guess

    @property
    def beats_guessing(self) -> bool | None:
        return None if self.guess is None else bool(self.mean - CONVINCING * self.std_error > self.guess)


def _enough(curve: SizeCurve) -> int:
    """The fewest features that are good enough, none of them included where it is known what guessing gives."""
    sizes, means, errors = curve.sizes, curve.mean, curve.std_error
    if curve.guess is None:
        return fewest_enough(sizes, means, errors)
    return fewest_enough(np.append(0, sizes), np.append(curve.guess, means), np.append(0.0, errors))


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
        seconds = max(FEWEST_SECONDS, 0.0 if run is None else run.ledger.seconds)
    options = {**rows, "n_probes": None if run is None else _probes_of_a_copy(run.ledger, seconds)}
    score = _repeated(seconds, selector, X, y, **options)
    if not shuffled:
        return score
    together = None if groups is None else np.unique(groups, return_inverse=True)[1]
    other = shuffled_target(np.asarray(y), together, np.random.default_rng(0))
    return replace(score, shuffled=_repeated(0.0, selector, X, other, **options).mean)


def _repeated(seconds: float, selector: Any, X: Any, y: Any, **options: Any) -> NestedScore:
    """By a nested curve, and while time lasts more of its kind with other folds; whole groups are dealt out one way."""
    begun = time.perf_counter()
    curve = size_curve(selector, X, y, nested=True, **options)
    scores = [curve.scores]
    for seed in range(1, MOST_ROUNDS if options["groups"] is None else 1):
        if (time.perf_counter() - begun) * (seed + 1) / seed > seconds:
            break
        scores.append(size_curve(selector, X, y, nested=True, seed=seed, **options).scores)
    return NestedScore(replace(curve, scores=np.concatenate(scores)), len(curve.scores))


def _probes_of_a_copy(ledger: Ledger, seconds: float) -> int:
    """As many as the run has if five copies then fit the time, else fewer."""
    share = min(1.0, seconds / max(FOLDS * ledger.seconds, 1e-9))
    return max(min(FEWEST_PROBES, ledger.n_probes), int(share * ledger.n_probes))
