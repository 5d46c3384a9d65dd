"""Interactions of pairs of features, and groups of features that replace each other, replayed from a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from .certainty import holm
from .ledger import Ledger
from .probes import ProbePlan
from .progress import small_table
from .replay import adjusted
from .tally import Tally

if TYPE_CHECKING:
    from .run import Run

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]
CHANCE = 0.05  # significance level
FEWEST_IN_A_CELL = 10  # probes; with fewer, a difference of means says nothing
REPLACED = 0.9  # of what a feature is worth without the other, gone with it: then the other replaces it
WORTH_SOMETHING = 2  # standard errors
BEYOND_THE_BULK = 3  # standard deviations, estimated from the median one, which a few good features do not move
RELATED, ALIKE, THE_SAME = 0.5, 0.9, 1 - 1e-6  # |correlation|; the last is 1 but for rounding
TOGETHER, INSTEAD = "together", "instead"
IN_WORDS = {TOGETHER: "worth more together", INSTEAD: "worth less together", "": "may be chance"}
PROBES, COLUMNS, BOTH = "probes", "columns", "both"


@dataclass(frozen=True)
class Pair:
    """Two features and what they do together.

    Attributes
    ----------
    first, second : str
        Their names.
    columns : tuple of int
        Their columns.
    contrast, std_error, z : float
        Mean J of the probes with both, less with only the one, less with only the other, plus with neither, where J is
        less the mean of probes of like size; its standard error, and their ratio.
    p : float
        Chance of so large a z by the luck of the probes alone, adjusted for the number of pairs (Holm).
    kind : str
        "together" where they help each other, "instead" where one makes the other worth less; "" where p is 0.05 or
        more: it may be luck.
    """

    first: str
    second: str
    columns: tuple[int, int]
    contrast: float
    std_error: float
    z: float
    p: float
    kind: str


@dataclass(frozen=True)
class Group:
    """Features that stand in for one another, the best ranked, which represents them, first.

    Attributes
    ----------
    features, names : tuple of int, tuple of str
        Their columns and their names.
    evidence : tuple of str
        For each but the first, what says that it and the first replace each other: "probes", "columns" (they are
        nearly the same), or "both".
    """

    features: tuple[int, ...]
    names: tuple[str, ...]
    evidence: tuple[str, ...]

    def __str__(self) -> str:
        return stand_in(self.names)


@dataclass(frozen=True, eq=False)
class Interactions:
    """What the best features of a run do in pairs, from the probes that hold both, one, or neither.

    The luck it allows for is that of the probes: other rows may give other answers.

    Attributes
    ----------
    features, names : array of int of shape (m,), tuple of str
        Columns, best first, and their names.
    contrast, std_error : array of shape (m, m)
        As in `Pair`; NaN where a pair was together, apart or away in fewer than 10 probes.
    worth, worth_error : array of shape (m, m)
        Mean J of the probes with the feature of the row and without that of the column, less with neither, and its
        standard error.
    p_values : array of shape (m, m)
        Of the contrast (Student's t with Welch's degrees of freedom), not adjusted.
    beyond_bulk : array of bool of shape (m,)
        Which features gain more, in probes of like size, than most of all features do.

    Examples
    --------
    >>> import numpy as np
    >>> from probewise import DAF
    >>> from probewise.stopping import MaxProbes
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> y = X[:, 4] * X[:, 9] > 0
    >>> daf = DAF(max_probe_size=8, stop=MaxProbes(2000), random_state=0).fit(X, y)
    >>> pair = daf.interactions(top=10).pairs()[0]
    >>> sorted(pair.columns), pair.kind
    ([4, 9], 'together')
    """

    features: Columns
    names: tuple[str, ...]
    contrast: Floats
    std_error: Floats
    worth: Floats
    worth_error: Floats
    p_values: Floats
    beyond_bulk: NDArray[np.bool_]
    rounding: float = 0.0

    def __repr__(self) -> str:
        pairs, measures = self.pairs(), ("first", "second", "contrast", "std_error", "p")
        columns = {name: [getattr(pair, name) for pair in pairs] for name in measures}
        columns["together"] = [IN_WORDS[pair.kind] for pair in pairs]
        of_what = f"{len(pairs):,} pairs of {len(self.names)} features"
        return small_table(columns, f"Interactions: {of_what}, the clearest first")

    @cached_property
    def z(self) -> Floats:
        """Contrast over standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.contrast / (self.std_error + self.rounding)

    @cached_property
    def p_adjusted(self) -> Floats:
        """p-values adjusted for the number of pairs that are known (Holm)."""
        first, second = self._known_pairs
        adjusted = np.full_like(self.p_values, np.nan)
        adjusted[first, second] = adjusted[second, first] = holm(self.p_values[first, second])
        return adjusted

    def kind(self, first: int, second: int) -> str:
        """What two features, by their places here, do: "together", "instead", or "", not known."""
        if not self.p_adjusted[first, second] < CHANCE:
            return ""
        return TOGETHER if self.contrast[first, second] > 0 else INSTEAD

    def pairs(self) -> list[Pair]:
        """All pairs that are known, those furthest from 0 for their standard error first."""
        first, second = self._known_pairs
        order = np.argsort(-np.abs(self.z[first, second]), kind="stable")
        return [self._pair(int(first[k]), int(second[k])) for k in order]

    def _pair(self, first: int, second: int) -> Pair:
        return Pair(
            self.names[first],
            self.names[second],
            (int(self.features[first]), int(self.features[second])),
            float(self.contrast[first, second]),
            float(self.std_error[first, second]),
            float(self.z[first, second]),
            float(self.p_adjusted[first, second]),
            self.kind(first, second),
        )

    @property
    def _known_pairs(self) -> tuple[Columns, Columns]:
        first, second = np.triu_indices(len(self.features), k=1)
        known = np.isfinite(self.contrast[first, second])
        return first[known], second[known]

    def groups(self, likeness: Floats | None = None) -> list[Group]:
        """Features that stand in for one another; with |correlations| of the columns, if given, as further evidence.

        Down the ranking, each feature that is in no group yet gathers those further down that it replaces. Each member
        is so held against the representative itself: chains from a feature to one quite unlike it cannot form, and no
        group falls apart for want of one among many pairs.
        """
        replace, alike = self._replace(likeness), self._alike(likeness)
        groups, left = [], np.ones(len(self.features), dtype=bool)
        for first in range(len(self.features)):
            members = np.flatnonzero(left & (replace[first] | alike[first]))
            members = members[members > first] if left[first] else members[:0]
            if len(members):
                evidence = [
                    BOTH if replace[first, k] and alike[first, k] else PROBES if replace[first, k] else COLUMNS
                    for k in members
                ]
                group = [first, *members.tolist()]
                left[group] = False
                names = tuple(self.names[k] for k in group)
                groups.append(Group(tuple(self.features[group].tolist()), names, tuple(evidence)))
        return groups

    def _replace(self, likeness: Floats | None) -> NDArray[np.bool_]:
        """By the probes: each is worth something without the other, and next to nothing with it.

        That the contrast is below 0 is not enough: of two features that say different things each is worth less beside
        the other, too, because less is left to say. And noise that is good on these rows by luck may lose that luck
        in company: both must be better than the bulk of the features, or their columns related.
        """
        no_luck = self.beyond_bulk[:, None] & self.beyond_bulk
        with np.errstate(invalid="ignore"):
            if likeness is not None:
                no_luck |= likeness >= RELATED
            worth = self.worth > WORTH_SOMETHING * self.worth_error + self.rounding
            gone = -self.contrast >= REPLACED * np.maximum(self.worth, self.worth.T)
            return no_luck & worth & worth.T & gone & (self.p_adjusted < CHANCE)

    def _alike(self, likeness: Floats | None) -> NDArray[np.bool_]:
        """By the columns: nearly the same, unless it is the small difference that helps; or the same altogether."""
        if likeness is None:
            return np.zeros_like(self.contrast, dtype=bool)
        with np.errstate(invalid="ignore"):
            helps = (self.contrast > 0) & (self.p_adjusted < CHANCE)
            return (likeness >= THE_SAME) | ((likeness >= ALIKE) & ~helps)


def interactions_between(run: Run, columns: Columns, names: Sequence[str]) -> Interactions:
    """What these columns do in pairs, replayed from the ledger."""
    count, mean, variance = _cells(run.feature_plan, run.ledger, columns)
    unknown = (count.min(axis=0) < FEWEST_IN_A_CELL) | np.eye(len(columns), dtype=bool)
    contrast = np.where(unknown, np.nan, mean[0] - mean[1] - mean[2] + mean[3])
    error = np.where(unknown, np.nan, np.sqrt(variance.sum(axis=0)))
    worth, worth_variance = mean[1] - mean[3], variance[1] + variance[3]
    rounding = 1e-9 * float(run.ledger.values().std())
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(contrast) / (error + rounding)
        freedom = error**4 / (variance**2 / (count - 1)).sum(axis=0)
        p_values = 2 * stdtr(np.where(np.isfinite(freedom), freedom, 1e9), -z)
        worth_error = np.sqrt(worth_variance)
    p_values[~np.isfinite(contrast)] = np.nan
    beyond = _beyond_bulk(run.size_adjusted_tally)[columns]
    return Interactions(columns, tuple(names), contrast, error, worth, worth_error, p_values, beyond, rounding)


def _beyond_bulk(tally: Tally) -> NDArray[np.bool_]:
    """Which features gain more, in probes of like size, than three median deviations above the median feature."""
    known = np.minimum(tally.counts, tally.n_probes - tally.counts) >= FEWEST_IN_A_CELL
    gains = np.where(known, tally.daf0(), np.nan)
    if not known.any():
        return known
    centre = np.nanmedian(gains)
    deviation = np.nanmedian(np.abs(gains - centre)) / ndtri(0.75)
    with np.errstate(invalid="ignore"):
        return gains > centre + BEYOND_THE_BULK * deviation


def _cells(plan: ProbePlan, ledger: Ledger, columns: Columns) -> tuple[Floats, Floats, Floats]:
    """Arrays (4, m, m) of each pair: over the probes that hold both, the first only, the second only, and neither.

    How many probes, their mean J less that of probes of like size, and the variance of that mean. Of a run in rounds
    over the rounds in which both could be drawn.
    """
    place = np.full(plan.n_features, -1)
    place[columns] = np.arange(len(columns))
    starts = [part.start for part in plan.rounds]
    active = [np.isin(columns, part.active).astype(np.float64) for part in plan.rounds]
    sums, start = np.zeros((4, 3, len(columns), len(columns))), 0
    for subsets, rest in adjusted(plan, ledger):
        drawable = active[int(np.searchsorted(starts, start, side="right")) - 1]
        start += len(subsets)
        spot, probe = place[subsets.indices], np.repeat(np.arange(len(subsets)), subsets.sizes)
        held = np.zeros((len(subsets), len(columns)))
        held[probe[spot >= 0], spot[spot >= 0]] = 1
        without = drawable - held
        cells = ((held, held), (held, without), (without, held), (without, without))
        sums += [[one.T @ (other * rest[:, None] ** power) for power in range(3)] for one, other in cells]
    count, total, square = sums.swapaxes(0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / count
        return count, mean, np.maximum(square / count - mean**2, 0) / count


def correlations(values: Floats) -> Floats:
    """|Pearson's| between columns, over the rows where both are known; NaN for a constant column."""
    known = np.isfinite(values)
    if known.all():
        centred = values - values.mean(axis=0)
        length = np.sqrt((centred**2).sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(centred.T @ centred) / np.outer(length, length)
    out = np.full((values.shape[1], values.shape[1]), np.nan)
    for first in range(values.shape[1]):
        for second in range(first + 1):
            both = values[known[:, first] & known[:, second]][:, [first, second]]
            if len(both) > 1:
                out[first, second] = out[second, first] = correlations(both)[0, 1]
    return out


def stand_in(names: Sequence[str]) -> str:
    """What a group of these names is, in words."""
    return f"{', '.join(names[:-1])} and {names[-1]} stand in for one another; {names[0]} alone is enough"


def columns_of(X: Any, columns: Columns) -> Floats:
    """Some columns of a table of numbers, dense; of a table in a store no others are read."""
    chosen = X.tocsc()[:, columns].toarray() if sp.issparse(X) else X[:, columns]
    return np.asarray(chosen, dtype=np.float64)
