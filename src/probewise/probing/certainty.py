"""How sure is a ranking? Intervals for coefficients and ranks, and the chance to be among the truly best.

The truth is the coefficient after endless probes of the same data. What was found is the truth plus noise of a known
size, its standard error; so a feature on top is there partly by luck, and drawing the noise once more would count the
luck twice. Instead, how far the truths lie apart is learned from all coefficients together (empirical Bayes): what
they spread beyond the noise. That and its own coefficient give what is believed of a feature's truth; its rank is one
more than the number of others above it. No random numbers: the same coefficients give the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammainc, gammaincc, logit, ndtri

from ..stopping import least_shared
from .ledger import Ledger
from .probes import ProbePlan
from .tally import Moments, Tally, TallySheet, positions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BORROWED_PROBES = 20
ALIKE, ALIKE_ERRORS, MOST_KINDS = 0.1, 1.05, 2048  # in standard errors; a ratio of standard errors
CELL, REACH, MOST_CELLS = 0.4, 4.0, 1024  # width of a cell and how far they go, in standard errors
LEARNING_STEPS = 100  # fewer leave noise in the prior; many more fit it to the luck of single features
INSIDE = (np.arange(5) + 0.5) / 5
LEAST_CHANCE, ROUNDING = 1e-6, 1e-9
NO_ERROR = 1e-7


@dataclass(frozen=True, eq=False)
class Certainty:
    """How sure coefficients and the ranks they give are, from their standard errors.

    A feature never judged, NaN, is placed last; others are compared with those judged only.

    Parameters
    ----------
    coefficients : array (n_features,), larger is better.
    std_errors : array (n_features,), of each coefficient.

    Notes
    -----
    Intervals of coefficients hold for each feature on its own. What is said of ranks holds on average over the
    features of a run: it is right as often as it says, but not for a feature picked because its truth is known.
    Errors of different features are taken as independent, which those of random probes nearly are.

    Examples
    --------
    >>> from probewise.probing.certainty import Certainty
    >>> sure = Certainty([0.9, 0.5, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1])
    >>> sure.rank_intervals().tolist()
    [[1, 1], [2, 2], [3, 4], [3, 4]]
    >>> sure.in_top(2).round(2).tolist()
    [1.0, 0.99, 0.0, 0.0]
    """

    coefficients: Floats
    std_errors: Floats

    def __post_init__(self) -> None:
        for name in ("coefficients", "std_errors"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64, ndmin=1))
        if self.coefficients.shape != self.std_errors.shape or self.coefficients.ndim != 1:
            shapes = f"{self.coefficients.shape} and {self.std_errors.shape}"
            raise ValueError(f"coefficients and std_errors have shapes {shapes}: give one of each for every feature")
        if (self.std_errors < 0).any():
            raise ValueError(f"std_errors holds {self.std_errors.min()}: standard errors cannot be below 0")

    @classmethod
    def of_tally(cls, tally: Tally, coefficient: str = "daf0") -> Certainty:
        """Of DAF0 or DAF1, with errors that can be trusted where a feature was in few probes."""
        return cls(tally.daf1() if coefficient == "daf1" else tally.daf0(), steady_errors(tally, coefficient))

    @property
    def n_features(self) -> int:
        return len(self.coefficients)

    def intervals(self, level: float = 0.95) -> Floats:
        """Array (n_features, 2): the confidence interval of each coefficient."""
        reach = ndtri(0.5 + _share("level", level) / 2) * self.std_errors
        return np.column_stack([self.coefficients - reach, self.coefficients + reach])

    def rank_intervals(self, level: float = 0.95) -> Ints:
        """Array (n_features, 2): between which ranks, 1 is best, the true rank is with this probability."""
        tail = (1 - _share("level", level)) / 2
        out = np.empty((self.n_features, 2), np.int64)
        out[~self._known] = self._n_known + 1, self.n_features
        if self._n_known:
            out[self._known] = self._beliefs.rank_quantiles(tail)[self._beliefs.kind]
        return out

    def in_top(self, k: int) -> Floats:
        """Array (n_features,): the probability that each is among the true top k. They sum to k."""
        k = self._checked_top(k)
        out = np.empty(self.n_features)
        out[self._known] = 1.0 if k >= self._n_known else self._beliefs.in_top(k)[self._beliefs.kind]
        out[~self._known] = max(k - self._n_known, 0) / max(self.n_features - self._n_known, 1)
        return out

    def agreement(self, k: int, overlap: float = 1.0) -> float:
        """The probability that at least this share of the k features found on top are among the true top k."""
        k = self._checked_top(k)
        if k >= self._n_known:
            return float(k == self.n_features)
        found = positions(self.coefficients)[self._known] < k
        return self._smooth_beliefs.agreement(found, least_shared(k, _share("overlap", overlap, most=True)))

    def is_of(self, ranking: Ints) -> bool:
        """Whether it is these coefficients alone, of features one by one, that the ranking is by."""
        return bool(np.array_equal(ranking[self._known], positions(self.coefficients)[self._known] + 1))

    def table(self, names: Sequence[str] | None = None, *, top: int = 20, level: float = 0.95) -> dict[str, Any]:
        """All of it as columns, best first; ``in_top`` is of the ``top`` best, or of all if they are fewer."""
        if names is not None and len(names) != self.n_features:
            raise ValueError(f"names has {len(names):,} names for {self.n_features:,} features: give one for each")
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
    def _kinds(self) -> Kinds:
        return Kinds.of(self.coefficients[self._known], self.std_errors[self._known])

    @cached_property
    def _beliefs(self) -> Beliefs:
        return Beliefs.of(self._kinds)

    @cached_property
    def _smooth_beliefs(self) -> Beliefs:
        """A claim about many features at once must not rest on a gap that luck has made."""
        return Beliefs.of(self._kinds, smooth=True)


def steady_errors(tally: Tally, coefficient: str = "daf0") -> Floats:
    """Welch's standard errors, each variance joined with that of all features as if seen in 20 probes more.

    A variance from two or three probes is often far too small by chance; one from hundreds is hardly changed.
    """
    totals = np.array([tally.n_probes, tally.total, tally.total_square])
    sides = (Moments(*tally.table.T), Moments(*(totals - tally.table).T))
    errors = np.sqrt(sum(_steady_variance(side) for side in sides))
    if coefficient != "daf1":
        return errors
    spread = sum(np.nan_to_num(side.count * np.sqrt(side.variance)) for side in sides) / tally.n_probes
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(errors == 0, 0.0, errors / spread)


def _steady_variance(side: Moments) -> Floats:
    """The variance of each mean."""
    squares = np.nan_to_num(side.count * side.variance)
    usual = squares.sum() / max(float(np.maximum(side.count - 1, 0).sum()), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (squares + BORROWED_PROBES * usual) / (side.count - 1 + BORROWED_PROBES) / side.count
    return np.where(side.count > 0, variance, np.nan)


def jackknife(
    plan: ProbePlan, ledger: Ledger, block_size: int, *, groups: int = 50, coefficient: str = "daf0"
) -> tuple[Floats, Floats]:
    """DAF0 or DAF1 and its standard error by leaving out one group of blocks at a time, replayed from the ledger.

    It holds where probes of a block depend on each other, which Welch's does not. Group j is every block whose number
    leaves j when divided by the number of groups. Each probe is drawn twice; memory is that of a few tallies.
    """
    n_blocks = -(-ledger.n_probes // block_size)
    groups = min(groups, n_blocks)
    if groups < 2:
        raise ValueError(f"groups={groups!r} of {n_blocks} blocks: a jackknife needs two groups or more")
    measure = Tally.daf1 if coefficient == "daf1" else Tally.daf0
    shift = float(ledger.values(0, 1)[0])

    def tally_of(blocks: range) -> Tally:
        sheet = TallySheet(plan.n_features, shift)
        for block in blocks:
            start, stop = block * block_size, min((block + 1) * block_size, ledger.n_probes)
            sheet.add(plan.draw(start, stop), ledger.values(start, stop))
        return sheet.view()

    whole = tally_of(range(n_blocks))
    coefficients = measure(whole)
    change, square = np.zeros(plan.n_features), np.zeros(plan.n_features)
    for group in range(groups):
        moved = measure(_without(tally_of(range(group, n_blocks, groups)), whole)) - coefficients
        change += moved
        square += moved**2
    variance = np.maximum(square - change**2 / groups, 0.0) * (groups - 1) / groups
    return coefficients, np.sqrt(variance)


def _without(part: Tally, whole: Tally) -> Tally:
    return Tally(
        whole.n_probes - part.n_probes,
        whole.total - part.total,
        whole.total_square - part.total_square,
        whole.table - part.table,
        whole.shift,
    )


# ---- what is believed of the truths


@dataclass(frozen=True, eq=False)
class Kinds:
    """Features whose coefficients and errors hardly differ, taken as one: a million cost little more than thousands.

    Attributes
    ----------
    values, errors : arrays (kinds,), the coefficient, from the least, and the standard error, in units of the widest.
    counts : array (kinds,), how many features are of it. kind : array (n_features,), the kind of each feature.
    """

    values: Floats
    errors: Floats
    counts: Floats
    kind: Ints

    @classmethod
    def of(cls, coefficients: Floats, std_errors: Floats) -> Kinds:
        scale = float(max(np.ptp(coefficients), std_errors.max())) or 1.0
        scaled = (coefficients - coefficients.min()) / scale
        logs = np.log(np.maximum(std_errors / scale, NO_ERROR))
        steps = np.rint(logs / np.log(ALIKE_ERRORS), out=logs).astype(np.int32)
        del logs
        lowest, n_steps, alike = int(steps.min()), int(np.ptp(steps)) + 1, ALIKE
        while True:
            together = np.rint(scaled / (alike * ALIKE_ERRORS**steps)).astype(np.int64)
            together *= n_steps
            together += steps - lowest
            _, first, kind, counts = np.unique(together, return_index=True, return_inverse=True, return_counts=True)
            if len(first) <= MOST_KINDS:
                errors = ALIKE_ERRORS ** steps[first]
                values = np.rint(scaled[first] / (alike * errors)) * alike * errors
                errors[errors < 2 * NO_ERROR] = 0.0
                return cls(values, errors, counts.astype(np.float64), kind)
            alike *= 2


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Where the truths lie: the chance of each cell, of a row of cells, for each kind of feature.

    Inside a cell a truth is anywhere with equal chance.

    Attributes
    ----------
    kind, counts : as of `Kinds`.
    chances : array (kinds, cells), that the truth lies in the cell; cells ascend.
    """

    kind: Ints
    counts: Floats
    chances: Floats

    @classmethod
    def of(cls, kinds: Kinds, *, smooth: bool = False) -> Beliefs:
        cells, width = _cells(kinds.values, kinds.errors)
        likelihoods = _likelihoods(kinds.values, kinds.errors, cells, width)
        return cls(kinds.kind, kinds.counts, _chances(likelihoods, kinds.counts, smooth))

    @cached_property
    def above(self) -> Floats:
        """(kinds, cells): the chance that the truth lies above the cell."""
        return np.maximum(1 - np.cumsum(self.chances, axis=1), 0.0)

    def in_top(self, k: int) -> Floats:
        """(kinds,): the chance to be among the true top k, all features together k."""
        return _summing_to(k, self._rank_chances(np.full(len(self.counts), k)), self.counts)

    def rank_quantiles(self, tail: float) -> Ints:
        """(kinds, 2): the ranks below which, and above which, the true rank is with at most this probability."""
        return np.column_stack([self._least_rank(tail, above=True), self._least_rank(1 - tail)])

    def _least_rank(self, chance: float, *, above: bool = False) -> Ints:
        """(kinds,): the first rank that the true one is at most with this chance, or with a chance above it."""
        low, high = np.ones(len(self.counts), np.int64), np.full(len(self.counts), int(self.counts.sum()))
        while (low < high).any():
            middle = (low + high) // 2
            found = self._rank_chances(middle)
            enough = found > chance + ROUNDING if above else found >= chance - ROUNDING
            low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
        return high

    def _rank_chances(self, ranks: Ints) -> Floats:
        """(kinds,): the chance that the rank of each kind is at most that: that fewer others lie above."""
        kind, chance, others = self._places
        fewer = _fewer_than(ranks[kind], others)
        return np.clip(np.bincount(kind, chance * fewer, minlength=len(self.counts)), 0.0, 1.0)

    @cached_property
    def _places(self) -> tuple[Ints, Floats, Floats]:
        """Where truths may lie: the kind, the chance that it is there, and how many others are above (cumulants).

        Between two places inside a cell the number of others above changes: that is a further variance.
        """
        kind, cell = np.nonzero(self.chances > LEAST_CHANCE)
        chance, above = self.chances[kind, cell], self.above[kind, cell]
        itself = above[:, None] + np.outer(chance, 1 - INSIDE)
        others = self._number_above(self.counts, INSIDE)[:, cell] - _cumulants(itself, itself**2, itself**3)
        others[1] += (((self.counts @ self.chances)[cell] - chance) / len(INSIDE))[:, None] ** 2 / 12
        share = np.repeat(chance / len(INSIDE), len(INSIDE))
        share /= np.bincount(kind, chance)[kind].repeat(len(INSIDE))
        return kind.repeat(len(INSIDE)), share, others.reshape(3, -1)

    def agreement(self, found: NDArray[np.bool_], shared: int) -> float:
        """The chance that so many of the found are among the true top, which is as large as they are many.

        That is so if the last of so many, from the best, of the found beats the first other that must stay out.
        """
        of_found = np.bincount(self.kind[found], minlength=len(self.counts)).astype(np.float64)
        last_found_below = self._fewer_above_each(of_found, shared)
        first_other_below = self._fewer_above_each(self.counts - of_found, int(found.sum()) - shared + 1)
        middle = (first_other_below[1:] + first_other_below[:-1]) / 2
        return float(np.clip(np.diff(last_found_below) @ middle, 0.0, 1.0))

    def _fewer_above_each(self, counts: Floats, number: int) -> Floats:
        """The chance that fewer than the number of these lie above, for places from below all cells to above them."""
        inner = _fewer_than(number, self._number_above(counts, np.arange(8) / 8)).ravel()
        return np.maximum.accumulate(np.concatenate([[0.0], inner[1:], [1.0]]))

    def _number_above(self, counts: Floats, inside: Floats) -> Floats:
        """(3, cells, inside): cumulants of how many of these lie above a place inside a cell."""
        above, here, rest = self.above, self.chances, 1 - inside
        one = [counts @ above, counts @ here]
        two = [counts @ above**2, 2 * counts @ (above * here), counts @ here**2]
        three = [counts @ above**3, 3 * counts @ (above**2 * here), 3 * counts @ (above * here**2), counts @ here**3]
        return _cumulants(
            *(sum(np.outer(term, rest**power) for power, term in enumerate(terms)) for terms in (one, two, three))
        )


def _cells(values: Floats, errors: Floats) -> tuple[Floats, float]:
    """Centres of the cells near any value, and their width."""
    width = CELL * max(float(np.quantile(errors, 0.1)), NO_ERROR)
    points = np.unique(values[:, None] + errors[:, None] * np.arange(-REACH, REACH + CELL / 2, CELL / 2))
    while True:
        cells = np.unique(np.rint(points / width))
        if len(cells) <= MOST_CELLS:
            return cells * width, width
        width *= 1.25


def _likelihoods(values: Floats, errors: Floats, cells: Floats, width: float) -> Floats:
    """(kinds, cells): how likely the value is if the truth is in the cell, the likeliest cell counted as 1."""
    spread = np.sqrt(errors**2 + width**2 / 12)
    logs = -0.5 * ((values[:, None] - cells) / spread[:, None]) ** 2
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _chances(likelihoods: Floats, counts: Floats, smooth: bool) -> Floats:
    """(kinds, cells): Bayes' rule, with a prior learned from all features by expectation and maximisation.

    Smooth: with a step between that evens out neighbouring cells (Silverman et al. 1990).
    """
    shares = counts / counts.sum()
    prior = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    for _ in range(LEARNING_STEPS):
        prior = prior * ((shares / (likelihoods @ prior)) @ likelihoods)
        if smooth:
            edged = np.pad(prior, 1, mode="edge")
            prior = (edged[:-2] + 2 * prior + edged[2:]) / 4
    chances = likelihoods * prior
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _cumulants(one: Any, two: Any, three: Any) -> Floats:
    """Mean, variance and third cumulant of how many events happen, from the sums of their chances and of the powers."""
    return np.stack([one, one - two, one - 3 * two + 2 * three])


def _fewer_than(number: Any, cumulants: Floats) -> Floats:
    """The chance that fewer than the number of independent events happen.

    By a Poisson shifted to mean and variance, which is right for rare events, or by its mirror image, right for those
    that hardly ever fail; mixed by the skewness.
    """
    mean, variance = cumulants[0], np.maximum(cumulants[1], 1e-12)
    skew = np.clip(cumulants[2] / variance, -1.0, 1.0)
    rare = gammaincc(np.maximum(number - mean + variance, 1e-12), variance)
    sure = gammainc(np.maximum(mean + variance - number + 1, 1e-12), variance)
    return np.asarray((1 + skew) / 2 * rare + (1 - skew) / 2 * sure)


def _summing_to(k: int, chances: Floats, counts: Floats) -> Floats:
    """The chances, their odds all multiplied by one number, so that they sum to k."""
    odds = logit(np.clip(chances, 1e-15, 1 - 1e-15))
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if counts @ expit(odds + middle) < k else (low, middle)
    chances = expit(odds + low)
    return np.asarray(np.minimum(chances * (k / (counts @ chances)), 1.0))


def _share(name: str, value: float, *, most: bool = False) -> float:
    if not 0 < value <= 1 or (value == 1 and not most):
        raise ValueError(f"{name}={value!r} must be above 0 and {'at most' if most else 'below'} 1")
    return float(value)
