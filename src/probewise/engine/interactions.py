"""Interactions between pairs of features, and groups of redundant features, computed from the probes of a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from ..display import small_table
from .ledger import Ledger
from .probes import ProbePlan
from .replay import adjusted
from .tally import Tally

if TYPE_CHECKING:
    from .run import Run

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]
ALPHA = 0.05  # significance level
MIN_PROBES = 10  # with fewer, a difference of means is too uncertain
REPLACED = 0.9  # share of a feature's gain that a redundant feature takes away
MIN_WORTH = 2  # standard errors
BEYOND_BULK = 3  # standard deviations, estimated by the median, which a few good features do not change
RELATED, SIMILAR, EQUAL = 0.5, 0.9, 1 - 1e-6  # absolute correlations; the last is 1 except for rounding
TOGETHER, INSTEAD = "together", "instead"
IN_WORDS = {TOGETHER: "worth more together", INSTEAD: "worth less together", "": "may be chance"}
PROBES, COLUMNS, BOTH = "probes", "columns", "both"


@dataclass(frozen=True)
class Pair:
    """The interaction of two features.

    Attributes
    ----------
    first, second : str
        Names of the features.
    columns : tuple of int
        Their columns.
    contrast, std_error, z : float
        Mean J of probes with both features, minus probes with only the first, minus probes with only the second, plus
        probes with neither, where J is taken minus the mean of probes of similar size; its standard error; their ratio.
    p : float
        p-value of z over random probes, adjusted for the number of pairs (Holm).
    kind : str
        "together" where the features help each other, "instead" where one makes the other less useful; "" where p is
        0.05 or more, so that it may be chance.
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
    """A group of redundant features; the first one has the best rank and represents the group.

    Attributes
    ----------
    features, names : tuple of int, tuple of str
        Columns and names.
    evidence : tuple of str
        For each feature except the first, why it is redundant with the first: "probes", "columns" (the columns are
        nearly equal), or "both".
    """

    features: tuple[int, ...]
    names: tuple[str, ...]
    evidence: tuple[str, ...]

    def __str__(self) -> str:
        return redundancy_sentence(self.names)


@dataclass(frozen=True, eq=False)
class Interactions:
    """Interactions between the best features of a run, from the probes with both, one, or neither of a pair.

    p-values describe random probes of the same rows: other rows may give other interactions.

    Attributes
    ----------
    features, names : array of int of shape (m,), tuple of str
        Columns, best first, and their names.
    contrast, std_error : array of shape (m, m)
        As in `Pair`; NaN where both, one or none of a pair were in fewer than 10 probes.
    worth, worth_error : array of shape (m, m)
        Mean J of the probes with the feature of the row and without that of the column, minus the probes with neither,
        and its standard error.
    p_values : array of shape (m, m)
        p-values of the contrast (Student's t with Welch's degrees of freedom), not adjusted.
    beyond_bulk : array of bool of shape (m,)
        Whether the feature adds more, in probes of similar size, than most features do.

    Examples
    --------
    >>> import numpy as np
    >>> from probewise import DAF
    >>> from probewise.stopping import MaxProbes
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> y = X[:, 4] * X[:, 9] > 0
    >>> daf = DAF(max_probe_size=8, stop=MaxProbes(2000), random_state=0).fit(X, y)
    >>> pair = daf.run_.interactions(top=10).pairs()[0]
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
        return small_table(
            columns, f"Interactions: {len(pairs):,} pairs of {len(self.names)} features, by descending |z|"
        )

    @cached_property
    def z(self) -> Floats:
        """Contrast over standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.contrast / (self.std_error + self.rounding)

    @cached_property
    def p_adjusted(self) -> Floats:
        """p-values adjusted for the number of known pairs (Holm)."""
        first, second = self._known_pairs
        adjusted = np.full_like(self.p_values, np.nan)
        adjusted[first, second] = adjusted[second, first] = holm(self.p_values[first, second])
        return adjusted

    def kind(self, first: int, second: int) -> str:
        """Kind of the pair at these positions: "together", "instead", or "" where not significant."""
        if not self.p_adjusted[first, second] < ALPHA:
            return ""
        return TOGETHER if self.contrast[first, second] > 0 else INSTEAD

    def pairs(self) -> list[Pair]:
        """All known pairs, by descending absolute z."""
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
        """Groups of redundant features; ``likeness``, the absolute correlations of columns, is further evidence.

        Features are visited by rank. Each feature that is in no group yet collects the features further down that are
        redundant with it. So every member is compared with the representative itself, which prevents chains of features
        in which the ends are not similar.
        """
        redundant, similar = self._redundant(likeness), self._similar(likeness)
        groups, free = [], np.ones(len(self.features), dtype=bool)
        for first in range(len(self.features)):
            members = np.flatnonzero(free & (redundant[first] | similar[first]))
            members = members[members > first] if free[first] else members[:0]
            if len(members):
                evidence = [
                    BOTH if redundant[first, k] and similar[first, k] else PROBES if redundant[first, k] else COLUMNS
                    for k in members
                ]
                group = [first, *members.tolist()]
                free[group] = False
                names = tuple(self.names[k] for k in group)
                groups.append(Group(tuple(self.features[group].tolist()), names, tuple(evidence)))
        return groups

    def _redundant(self, likeness: Floats | None) -> NDArray[np.bool_]:
        """Pairs that are redundant by the probes: each feature helps without the other, and hardly helps with it.

        A negative contrast is not enough: two informative features with different information also lower each other's
        gain, because less is left to explain. And a noise feature that is good on these rows by chance may lose that in
        larger probes, so both features must be better than most features, or their columns related.
        """
        is_real = self.beyond_bulk[:, None] & self.beyond_bulk
        with np.errstate(invalid="ignore"):
            if likeness is not None:
                is_real |= likeness >= RELATED
            worth = self.worth > MIN_WORTH * self.worth_error + self.rounding
            gone = -self.contrast >= REPLACED * np.maximum(self.worth, self.worth.T)
            return is_real & worth & worth.T & gone & (self.p_adjusted < ALPHA)

    def _similar(self, likeness: Floats | None) -> NDArray[np.bool_]:
        """Pairs of equal columns, or of nearly equal columns whose small difference does not help."""
        if likeness is None:
            return np.zeros_like(self.contrast, dtype=bool)
        with np.errstate(invalid="ignore"):
            helps = (self.contrast > 0) & (self.p_adjusted < ALPHA)
            return (likeness >= EQUAL) | ((likeness >= SIMILAR) & ~helps)


def interactions_between(run: Run, columns: Columns, names: Sequence[str]) -> Interactions:
    """Interactions between these columns, computed from the ledger."""
    count, mean, variance = _cells(run.feature_plan, run.ledger, columns)
    unknown = (count.min(axis=0) < MIN_PROBES) | np.eye(len(columns), dtype=bool)
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
    """Mask of the features that add more than the median feature by three median absolute deviations."""
    known = np.minimum(tally.counts, tally.n_probes - tally.counts) >= MIN_PROBES
    gains = np.where(known, tally.daf0(), np.nan)
    if not known.any():
        return known
    center = np.nanmedian(gains)
    deviation = np.nanmedian(np.abs(gains - center)) / ndtri(0.75)
    with np.errstate(invalid="ignore"):
        return gains > center + BEYOND_BULK * deviation


def _cells(plan: ProbePlan, ledger: Ledger, columns: Columns) -> tuple[Floats, Floats, Floats]:
    """Arrays (4, m, m) for each pair: probes with both features, only the first, only the second, and neither.

    Number of probes, mean of J minus the mean of similar sizes, and variance of that mean. In a tournament only the
    rounds with both features count.
    """
    position_of = np.full(plan.n_features, -1)
    position_of[columns] = np.arange(len(columns))
    starts = [part.start for part in plan.rounds]
    active = [np.isin(columns, part.active).astype(np.float64) for part in plan.rounds]
    sums, start = np.zeros((4, 3, len(columns), len(columns))), 0
    for subsets, values in adjusted(plan, ledger):
        drawable = active[int(np.searchsorted(starts, start, side="right")) - 1]
        start += len(subsets)
        position, probe = position_of[subsets.indices], np.repeat(np.arange(len(subsets)), subsets.sizes)
        inside = np.zeros((len(subsets), len(columns)))
        inside[probe[position >= 0], position[position >= 0]] = 1
        outside = drawable - inside
        cells = ((inside, inside), (inside, outside), (outside, inside), (outside, outside))
        sums += [[one.T @ (other * values[:, None] ** power) for power in range(3)] for one, other in cells]
    count, total, square = sums.swapaxes(0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / count
        return count, mean, np.maximum(square / count - mean**2, 0) / count


def correlations(values: Floats) -> Floats:
    """Absolute Pearson correlations of columns, over rows where both are known; NaN for a constant column."""
    known = np.isfinite(values)
    if known.all():
        centered = values - values.mean(axis=0)
        length = np.sqrt((centered**2).sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(centered.T @ centered) / np.outer(length, length)
    out = np.full((values.shape[1], values.shape[1]), np.nan)
    for first in range(values.shape[1]):
        for second in range(first + 1):
            both = values[known[:, first] & known[:, second]][:, [first, second]]
            if len(both) > 1:
                out[first, second] = out[second, first] = correlations(both)[0, 1]
    return out


def redundancy_sentence(names: Sequence[str]) -> str:
    """Describe a group of redundant features in words."""
    return f"{', '.join(names[:-1])} and {names[-1]} are redundant; {names[0]} alone is enough"


def columns_of(X: Any, columns: Columns) -> Floats:
    """Some columns of a table of numbers, dense; a table in a store reads no others."""
    X = np.asarray(X) if isinstance(X, list) else X
    return np.asarray(X.tocsc()[:, columns].toarray() if sp.issparse(X) else X[:, columns], dtype=np.float64)


def holm(p_values: Floats) -> Floats:
    """Holm's adjusted p-values, along the first axis; scipy has no such function."""
    order = np.argsort(p_values, axis=0, kind="stable")
    factors = np.arange(len(p_values), 0, -1).reshape(-1, *[1] * (p_values.ndim - 1))
    stepped = np.maximum.accumulate(np.take_along_axis(p_values, order, axis=0) * factors, axis=0)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, np.minimum(stepped, 1), axis=0)
    return adjusted
