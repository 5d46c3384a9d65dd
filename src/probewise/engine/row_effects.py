"""What a run says about other rows: groups of rows, what each feature gave to each of them, and how far that is luck.

J is a mean over rows, so the coefficient of a feature is the mean of what it does for each row. How much that differs
from row to row says what other rows would say. It is counted by at most 64 groups of rows.

A standard error has two parts: that of rows, and that of the luck of which companions a feature was probed with. The
part of rows is taken larger than it is seen: a row counts when it is predicted and again when others are predicted from
it, and only the first is seen. Where neighbours are mutual that comes to twice the variance, where all pairs of rows
count, as in a mean over pairs, to four times. The factors are measured, by drawing tables again and again and by
shuffled targets (``python -m benchmarks rows``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from ..kernels import sums
from .certainty import steady_errors
from .ledger import MAX_ROW_GROUPS, Ledger
from .probes import ProbePlan, Subsets
from .replay import batches, size_groups
from .tally import Tally

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROW_ERROR_INFLATION = 1.7  # of errors of features that tell something: from 1.3 (linear) to 1.8 (ten neighbours, soft)
NULL_INFLATION = 1.2  # of those that tell nothing
ALPHA_SHARE_UNIVARIATE = 0.5  # of the rate of false discoveries, on the test of features alone
STREAM = 0x0520
FEATURES_AT_A_TIME = 2**15  # times 64 groups: 16 MiB
FEWEST_FOR_A_NULL = 50  # features; of fewer the middle half may be such that tell something
NORMAL_MIDDLE = 1.349  # the middle half of a normal distribution, in deviations
FEWEST_GROUPS = 5  # with fewer, a spread over groups is a guess


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Rows in groups, of which a run keeps what each gave to J."""

    group_of: Ints  # of each row; -1 for a row that J does not count
    shares: Floats  # with which J is the mean over groups
    unit: float = 1.0  # in which what groups gave is kept, so that it is about 1

    @classmethod
    def of(cls, row_shares: Floats, y: Any, together: Any = None, unit: float = 1.0) -> RowGroups | None:
        """Each row a group, or, of more than 64, dealt out, always in the same way, so that groups have like targets.

        Rows with the same value in ``together`` stay in one group. None where so few groups come of it that their
        differences tell nothing.
        """
        counts = np.flatnonzero(row_shares > 0)
        clusters = np.arange(len(counts)) if together is None else _numbered(np.asarray(together)[counts])
        first = np.unique(clusters, return_index=True)[1]
        target = _numbered(np.asarray(y)[counts[first]])
        random = np.random.default_rng(STREAM)
        order = np.lexsort((random.random(len(first)), target))
        places = np.empty(len(first), np.int64)
        places[order] = np.arange(len(first)) % MAX_ROW_GROUPS
        if len(first) < FEWEST_GROUPS:
            return None
        group_of = np.full(len(row_shares), -1)
        group_of[counts] = np.arange(len(first))[clusters] if len(first) <= MAX_ROW_GROUPS else places[clusters]
        shares = np.bincount(group_of[counts], row_shares[counts]).astype(np.float64)
        return cls(group_of, shares, unit)


def _numbered(labels: NDArray[Any]) -> Ints:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class RowEffects:
    """What each unit gave in some probes of a run, by groups of rows."""

    effects: Floats  # J with the unit less J without it, in probes of like size
    row_errors: Floats  # their standard errors, had there been other rows
    probe_errors: Floats  # and other probes
    n_groups: int  # of rows

    @classmethod
    def of(cls, plan: ProbePlan, ledger: Ledger, shares: Floats, n_probes: int, unit: float = 1.0) -> RowEffects:
        """Of the first probes, which must be of one round."""
        errors, residuals = np.empty(plan.n_features), _residuals(plan, ledger, n_probes, with_rows=False)
        tally = Tally.over(((subsets, values) for subsets, values, _ in residuals), plan.n_features)
        for first in range(0, plan.n_features, FEATURES_AT_A_TIME):
            some = np.arange(first, min(first + FEATURES_AT_A_TIME, plan.n_features))
            errors[some] = _error_of_mean(group_effects(plan, ledger, some, n_probes), shares)
        return cls(tally.daf0(), unit * errors, steady_errors(tally, "daf0"), len(shares))

    @property
    def std_errors(self) -> Floats:
        """Had there been other rows and other probes."""
        return np.hypot(ROW_ERROR_INFLATION * self.row_errors, self.probe_errors)

    @cached_property
    def p_values(self) -> Floats:
        """The chance that luck with rows and probes gives an effect as far above the average; 1 for what is unknown."""
        is_known = np.isfinite(self.effects).any()  # a feature without others is in every probe
        above = self.effects - (np.nanmean(self.effects) if is_known else 0.0)
        errors = np.hypot(NULL_INFLATION * self.row_errors, self.probe_errors)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(errors > 0, above / errors, 0.0)
        return np.asarray(student_t.sf(np.nan_to_num(ratio) / _width_of_luck(ratio), self.n_groups - 1))


def _width_of_luck(ratios: Floats) -> float:
    """How much wider than expected the middle half of many features is spread: an empirical null.

    It is wider where classes are uneven and votes soft: a feature that has rows of the rare class named more often
    shifts all other rows a little, which no difference between rows shows.
    """
    known = ratios[np.isfinite(ratios)]
    if len(known) < FEWEST_FOR_A_NULL:
        return 1.0
    low, high = np.quantile(known, [0.25, 0.75])
    return max(1.0, float(high - low) / NORMAL_MIDDLE)


def combined_p_values(alone: Floats | None, company: Floats | None) -> Floats:
    """One chance of two for the same feature, which was tested alone and in company."""
    if alone is None or company is None:
        known = company if alone is None else alone
        assert known is not None
        return known
    return np.minimum(np.minimum(alone / ALPHA_SHARE_UNIVARIATE, company / (1 - ALPHA_SHARE_UNIVARIATE)), 1.0)


def group_effects(plan: ProbePlan, ledger: Ledger, units: Ints, n_probes: int) -> Floats:
    """What units, in ascending order, did for each group of rows in the first probes: of shape (units, groups)."""
    table = np.zeros((len(units), ledger.n_row_groups + 1))
    place = np.full(plan.n_features, -1)
    place[units] = np.arange(len(units))
    total = np.zeros(ledger.n_row_groups)
    for subsets, _, rows in _residuals(plan, ledger, n_probes):
        sums.add_rows(table, place, subsets.indices, subsets.offsets, rows)
        total += rows.sum(axis=0)
    inside, outside = table[:, -1:], n_probes - table[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(table[:, :-1] / inside - (total - table[:, :-1]) / outside)


def _error_of_mean(by_group: Floats, shares: Floats) -> Floats:
    """The standard error of a weighted mean over groups."""
    n_groups = len(shares)
    deviations = by_group - (by_group @ shares)[:, None]
    return np.sqrt((deviations**2 @ shares**2) * (n_groups / (n_groups - 1)))


def _residuals(
    plan: ProbePlan, ledger: Ledger, n_probes: int, *, with_rows: bool = True
) -> Iterator[tuple[Subsets, Floats, Floats]]:
    """Probes with J, and what rows gave, less the means of probes of like size; failed probes count as average."""
    like = size_groups(plan, n_probes)
    failed = np.array([] if ledger.failures is None else ledger.failures.probes, dtype=np.int64)

    def parts() -> Iterator[tuple[int, Subsets, NDArray[np.int64], Floats]]:
        for low, high in batches(plan, 0, n_probes):
            subsets, values = plan.draw(low, high), ledger.values(low, high)[:, None]
            if with_rows:
                values = np.hstack([values, ledger.rows(low, high)])
            yield low, subsets, like[subsets.sizes], values

    means = np.zeros((int(like.max(initial=0)) + 1, 1 + ledger.n_row_groups * with_rows))
    counts = np.zeros(len(means))
    for _, _, kind, values in parts():
        np.add.at(means, kind, values)
        counts += np.bincount(kind, minlength=len(counts))
    means /= np.maximum(counts, 1)[:, None]
    for low, subsets, kind, values in parts():
        values = values - means[kind]
        values[failed[(failed >= low) & (failed < low + len(values))] - low] = 0.0
        yield subsets, values[:, 0], np.ascontiguousarray(values[:, 1:])


@dataclass(frozen=True, eq=False)
class WhichRows:
    """What features did for groups of rows.

    Attributes
    ----------
    names : tuple of str
        The features, best first.
    effects : array of float64 of shape (n_features, n_groups)
        J of the rows of a group with the feature less without it, in probes of like size. The mean over groups is what
        the feature gives; where it helps some groups only, these are a part of the rows apart.
    rows : tuple of arrays of int64
        The rows of each group: one, those that belong together, or, of more than 64, some of each class. Groups of a
        class, if they have one, are side by side, and among these such that the same features help.
    classes : tuple
        The class of the rows of each group; None where they have several, or none is known.
    """

    names: tuple[str, ...]
    effects: Floats
    rows: tuple[Ints, ...]
    classes: tuple[Any, ...]

    @property
    def blocks(self) -> list[tuple[Any, int, int]]:
        """The classes in the order of the groups, each with where it starts and ends; none where groups have none."""
        starts = [k for k, label in enumerate(self.classes) if k == 0 or label != self.classes[k - 1]]
        ends = [*starts[1:], len(self.classes)]
        return [(self.classes[k], k, end) for k, end in zip(starts, ends, strict=True) if self.classes[k] is not None]


def which_rows(effects: Floats, group_of: Ints, names: Sequence[str], labels: Any = None) -> WhichRows:
    """What features did for groups, these in order; ``labels`` are the classes of all rows."""
    rows = [np.flatnonzero(group_of == group) for group in range(effects.shape[1])]
    classes = [None if labels is None else _only(np.asarray(labels)[some]) for some in rows]
    has_classes = all(label is not None for label in classes)
    block = np.array([str(label) if has_classes else "" for label in classes])
    order = np.lexsort((_side_by_side(effects), block))
    of_groups = [classes[group] if has_classes else None for group in order]
    return WhichRows(tuple(names), effects[:, order], tuple(rows[group] for group in order), tuple(of_groups))


def _only(labels: NDArray[Any]) -> Any:
    return labels[0].item() if (labels == labels[0]).all() else None


def _side_by_side(effects: Floats) -> Floats:
    """A number for each group, alike where the same features help: the first principal component."""
    centred = np.nan_to_num(effects - effects.mean(axis=1, keepdims=True))
    component = np.linalg.svd(centred, full_matrices=False)[2][0]
    return np.asarray(np.round(component * np.sign(component @ centred[0] or 1.0), 9))
