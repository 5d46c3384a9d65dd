"""Certainty of a ranking: intervals of coefficients and ranks, and the probability of being in the true top k.

The intervals describe other random probes of the same rows, not new samples: the true coefficient is that of
infinitely many probes of the same rows, and an estimate is the truth plus normal noise with
a known standard error. Features are on top partly by chance, so the prior distribution of the true coefficients is
estimated from all coefficients together (empirical Bayes); it turns the estimate of each feature into a posterior
distribution of its true coefficient, here called the truth. The true rank of a feature is one more than the number of
larger truths. No random numbers are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammainc, gammaincc, logit, ndtri

from ..display import small_table
from .tally import PowerSums, Tally, positions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BORROWED_PROBES = 20  # see `moderated_errors`
# Widths are in standard errors: features of a bin differ by a tenth of one, and their errors by 5%. 2048 bins and 1024
# cells make tables of 16 MiB. Beyond a reach of 4 standard errors lies a probability of 6e-5.
BIN_WIDTH, ERROR_RATIO, MAX_BINS = 0.1, 1.05, 2048
CELL_WIDTH, REACH, MAX_CELLS = 0.4, 4.0, 1024
PRIOR_STEPS = 100  # fewer steps leave noise in the prior; many more fit it to single features
IN_CELL = (np.arange(5) + 0.5) / 5  # five equally probable points in a cell
MIN_PROBABILITY = 1e-6  # cells with a lower probability are left out
ROUNDING = 1e-9  # of sums of probabilities
NO_ERROR = 1e-7  # smaller standard errors, relative to the widest scale, count as 0


@dataclass(frozen=True, eq=False)
class Certainty:
    """Intervals of coefficients and ranks, computed from coefficients and their standard errors.

    Features without a coefficient (NaN) are ranked last.

    Intervals of coefficients hold for each feature separately. Statements about ranks hold on average over the features
    of a run, but not for a feature chosen because its truth is known. Errors of different features are treated as
    independent, which those of random probes nearly are.

    >>> certainty = Certainty([0.9, 0.5, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1])
    >>> certainty.rank_intervals().tolist()
    [[1, 1], [2, 2], [3, 4], [3, 4]]
    >>> certainty.in_top(2).round(2).tolist()
    [1.0, 0.99, 0.0, 0.0]
    """

    coefficients: Floats
    std_errors: Floats
    names: Sequence[str] | None = None

    def __repr__(self) -> str:
        top = min(20, self.n_features)
        columns = self.table(top=top)
        columns |= {name: values.tolist() for name, values in columns.items() if name != "feature"}
        legend = f"low to high: 95% intervals; in_top: probability of being in the true top {top}"
        return small_table(columns, f"Certainty of {self.n_features:,} coefficients; {legend}")

    def __post_init__(self) -> None:
        for name in ("coefficients", "std_errors"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64, ndmin=1))

    @classmethod
    def of_tally(cls, tally: Tally, coefficient: str = "daf0") -> Certainty:
        """Certainty of DAF0 or DAF1, with moderated standard errors."""
        return cls(tally.daf1() if coefficient == "daf1" else tally.daf0(), moderated_errors(tally, coefficient))

    @property
    def n_features(self) -> int:
        return len(self.coefficients)

    def intervals(self, level: float = 0.95) -> Floats:
        """Array (n_features, 2): the confidence interval of each coefficient."""
        reach = ndtri(0.5 + _checked_level(level) / 2) * self.std_errors
        return np.column_stack([self.coefficients - reach, self.coefficients + reach])

    def rank_intervals(self, level: float = 0.95) -> Ints:
        """Array (n_features, 2): the ranks, 1 is best, that contain the true rank with this probability."""
        tail = (1 - _checked_level(level)) / 2
        out = np.empty((self.n_features, 2), np.int64)
        out[~self._known] = self._n_known + 1, self.n_features
        if self._n_known:
            low, high = self._posterior.rank_quantile(tail, above=True), self._posterior.rank_quantile(1 - tail)
            out[self._known] = np.column_stack([low, high])[self._bins.of_feature]
        return out

    def in_top(self, k: int) -> Floats:
        """Array (n_features,): the probability that each feature is in the true top k. They sum to k."""
        k = self._checked_top(k)
        out = np.empty(self.n_features)
        out[self._known] = 1.0 if k >= self._n_known else self._posterior.in_top(k)[self._bins.of_feature]
        out[~self._known] = max(k - self._n_known, 0) / max(self.n_features - self._n_known, 1)
        return out

    def is_of(self, ranking: Ints) -> bool:
        """Whether ``ranking`` is the order of these coefficients."""
        return bool(np.array_equal(ranking[self._known], positions(self.coefficients)[self._known] + 1))

    def table(self, names: Sequence[str] | None = None, *, top: int = 20, level: float = 0.95) -> dict[str, Any]:
        """All values as columns, best feature first; ``in_top`` is for the ``top`` best, or for all if fewer."""
        names = self.names if names is None else names
        if names is not None and len(names) != self.n_features:
            raise ValueError(f"names has {len(names):,} names, but there are {self.n_features:,} features")
        order = np.argsort(positions(self.coefficients))
        interval, ranks = self.intervals(level)[order], self.rank_intervals(level)[order]
        return {
            "feature": [str(f) if names is None else names[f] for f in order.tolist()],
            "rank": np.arange(1, self.n_features + 1),
            "coefficient": self.coefficients[order],
            "low": interval[:, 0],
            "high": interval[:, 1],
            "rank_low": ranks[:, 0],
            "rank_high": ranks[:, 1],
            "in_top": self.in_top(min(top, self.n_features))[order],
        }

    def _checked_top(self, k: int) -> int:
        if isinstance(k, bool) or k != int(k) or not 1 <= k <= self.n_features:
            raise ValueError(f"k={k!r} must be a whole number from 1 to the {self.n_features:,} features")
        return int(k)

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        return np.isfinite(self.coefficients) & np.isfinite(self.std_errors)

    @cached_property
    def _n_known(self) -> int:
        return int(self._known.sum())

    @cached_property
    def _bins(self) -> Bins:
        return Bins.of(self.coefficients[self._known], self.std_errors[self._known])

    @cached_property
    def _posterior(self) -> Posterior:
        return Posterior.of(self._bins)


def moderated_errors(tally: Tally, coefficient: str = "daf0") -> Floats:
    """Moderated standard errors: Welch's, with every variance pooled with that of all features, as 20 more probes.

    The variance of two or three probes is often far too small by chance; that of hundreds hardly changes.
    """
    errors = np.sqrt(sum(_moderated_variance(side) for side in tally.sides))
    if coefficient != "daf1":
        return errors
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(errors == 0, 0.0, errors / tally.deviation())


def _moderated_variance(side: PowerSums) -> Floats:
    """Moderated variance of each mean."""
    squares = np.nan_to_num(side.count * side.variance)
    pooled = squares.sum() / max(float(np.maximum(side.count - 1, 0).sum()), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (squares + BORROWED_PROBES * pooled) / (side.count - 1 + BORROWED_PROBES) / side.count
    return np.where(side.count > 0, variance, np.nan)


class Bins(NamedTuple):
    """Bins of features with nearly equal coefficients and errors, so that a million features take seconds."""

    values: Floats  # the coefficient, ascending, in units of the range
    errors: Floats  # the standard error, in the same units
    counts: Floats  # the number of features
    of_feature: Ints  # (n_features,) the bin of each feature

    @classmethod
    def of(cls, coefficients: Floats, std_errors: Floats) -> Bins:
        scale = float(max(np.ptp(coefficients), std_errors.max())) or 1.0
        scaled = (coefficients - coefficients.min()) / scale
        logs = np.log(np.maximum(std_errors / scale, NO_ERROR))
        steps = np.rint(logs / np.log(ERROR_RATIO), out=logs).astype(np.int32)
        del logs
        lowest, n_steps, bin_width = int(steps.min()), int(np.ptp(steps)) + 1, BIN_WIDTH
        while True:
            keys = np.rint(scaled / (bin_width * ERROR_RATIO**steps)).astype(np.int64)
            keys *= n_steps
            keys += steps - lowest
            _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
            if len(first) <= MAX_BINS:
                errors = ERROR_RATIO ** steps[first]
                values = np.rint(scaled[first] / (bin_width * errors)) * bin_width * errors
                errors[errors < 2 * NO_ERROR] = 0.0
                return cls(values, errors, counts.astype(np.float64), inverse)
            bin_width *= 2


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior of the true coefficients: ``probabilities`` (bins, cells) that a truth lies in a cell.

    Cells are ascending; inside a cell the truth is uniformly distributed.
    """

    bins: Bins
    probabilities: Floats

    @classmethod
    def of(cls, bins: Bins) -> Posterior:
        """Apply Bayes' rule with a prior estimated from all features by the EM algorithm."""
        likelihoods = _likelihoods(bins)
        shares = bins.counts / bins.counts.sum()
        prior = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
        for _ in range(PRIOR_STEPS):
            prior = prior * ((shares / (likelihoods @ prior)) @ likelihoods)
        joint = likelihoods * prior
        return cls(bins, np.asarray(joint / joint.sum(axis=1, keepdims=True)))

    @cached_property
    def above(self) -> Floats:
        """(bins, cells): the probability that the truth lies above the cell."""
        return np.maximum(1 - np.cumsum(self.probabilities, axis=1), 0.0)

    def in_top(self, k: int) -> Floats:
        """(bins,): the probability of being in the true top k.

        The odds of all features are multiplied by one number, so that the probabilities sum to k.
        """
        counts = self.bins.counts
        odds = logit(np.clip(self._rank_at_most(np.full(len(counts), k)), 1e-15, 1 - 1e-15))
        low, high = -50.0, 50.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if counts @ expit(odds + middle) < k else (low, middle)
        probabilities = expit(odds + low)
        return np.asarray(np.minimum(probabilities * (k / (counts @ probabilities)), 1.0))

    def rank_quantile(self, probability: float, *, above: bool = False) -> Ints:
        """(bins,): the first rank whose cumulative probability reaches (or, with ``above``, exceeds) this one."""
        low = np.ones(len(self.bins.counts), np.int64)
        high = np.full(len(low), int(self.bins.counts.sum()))
        while (low < high).any():
            middle = (low + high) // 2
            at_most = self._rank_at_most(middle)
            enough = at_most > probability + ROUNDING if above else at_most >= probability - ROUNDING
            low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
        return high

    def _rank_at_most(self, ranks: Ints) -> Floats:
        """(bins,): the probability that the rank is at most this number, i.e. that fewer truths lie above."""
        bins, probability, others = self._points
        fewer = _probability_of_fewer(ranks[bins], others)
        return np.clip(np.bincount(bins, probability * fewer, minlength=len(ranks)), 0.0, 1.0)

    @cached_property
    def _points(self) -> tuple[Ints, Floats, Floats]:
        """Points where truths may lie: bin, probability, and cumulants of the number of other truths above.

        The number of other truths above changes between two points of a cell, which adds to the variance.
        """
        bins, cell = np.nonzero(self.probabilities > MIN_PROBABILITY)
        here, above = self.probabilities[bins, cell], self.above[bins, cell]
        itself = above[:, None] + np.outer(here, 1 - IN_CELL)
        others = self._number_above(self.bins.counts, IN_CELL)[:, cell] - _cumulants(itself, itself**2, itself**3)
        others[1] += (((self.bins.counts @ self.probabilities)[cell] - here) / len(IN_CELL))[:, None] ** 2 / 12
        share = np.repeat(here / len(IN_CELL), len(IN_CELL))
        share /= np.bincount(bins, here)[bins].repeat(len(IN_CELL))
        return bins.repeat(len(IN_CELL)), share, others.reshape(3, -1)

    def _number_above(self, counts: Floats, inside: Floats) -> Floats:
        """(3, cells, inside): cumulants of the number of these features that lie above a point in a cell."""
        above, here, rest = self.above, self.probabilities, 1 - inside
        one = [counts @ above, counts @ here]
        two = [counts @ above**2, 2 * counts @ (above * here), counts @ here**2]
        three = [counts @ above**3, 3 * counts @ (above**2 * here), 3 * counts @ (above * here**2), counts @ here**3]
        return _cumulants(
            *(sum(np.outer(term, rest**power) for power, term in enumerate(terms)) for terms in (one, two, three))
        )


def _likelihoods(bins: Bins) -> Floats:
    """(bins, cells): likelihood of the value if the truth is in the cell, relative to the most likely cell."""
    values, errors = bins.values[:, None], bins.errors[:, None]
    width = CELL_WIDTH * max(float(np.quantile(errors, 0.1)), NO_ERROR)
    points = np.unique(values + errors * np.arange(-REACH, REACH + CELL_WIDTH / 2, CELL_WIDTH / 2))
    while len(cells := np.unique(np.rint(points / width))) > MAX_CELLS:
        width *= 1.25
    logs = -0.5 * ((values - cells * width) / np.sqrt(errors**2 + width**2 / 12)) ** 2
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _cumulants(one: Any, two: Any, three: Any) -> Floats:
    """Mean, variance and third cumulant of the number of events, from sums of powers of their probabilities."""
    return np.stack([one, one - two, one - 3 * two + 2 * three])


def _probability_of_fewer(number: Any, cumulants: Floats) -> Floats:
    """Probability that fewer than ``number`` of independent events happen.

    A Poisson distribution shifted to the mean and variance is right for rare events, and its mirror image for nearly
    certain events; the two are mixed by the skewness.
    """
    mean, variance = cumulants[0], np.maximum(cumulants[1], 1e-12)
    skew = np.clip(cumulants[2] / variance, -1.0, 1.0)
    rare = gammaincc(np.maximum(number - mean + variance, 1e-12), variance)
    sure = gammainc(np.maximum(mean + variance - number + 1, 1e-12), variance)
    return np.asarray((1 + skew) / 2 * rare + (1 - skew) / 2 * sure)


def _checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must be above 0 and below 1")
    return level
