"""Effects of features on groups of rows: standard errors over rows, conditional p-values, and which rows are helped.

J is a mean over rows, so the coefficient of a feature is the mean of its effects on rows, and the variance of these
effects gives its standard error over other rows. Effects are stored for at most 64 groups of rows.

The standard error has a part for rows and a part for the other features of the probes. The part for rows is inflated:
a row counts when it is predicted and again when other rows are predicted from it, and only the first is visible. With
mutual neighbors this doubles the variance; where all pairs of rows count, it is four times as large. The factors are
measured on repeated samples and on shuffled targets (``python -m benchmarks rows``).
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
from .certainty import moderated_errors
from .ledger import Ledger
from .probes import ProbePlan, Subsets
from .replay import batches, size_groups
from .tally import Tally

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROW_ERROR_INFLATION = 1.7  # for informative features: measured from 1.3 (linear) to 1.8 (10 neighbors, soft votes)
NULL_INFLATION = 1.2  # for uninformative features
ALPHA_SHARE_UNIVARIATE = 0.5  # share of the false discovery rate that is spent on the univariate test
FEATURES_PER_BATCH = 2**15  # times 64 groups: 16 MiB
MIN_FEATURES_FOR_NULL = 50  # with fewer, the middle half may contain many informative features
NORMAL_IQR = 1.349  # interquartile range of the standard normal distribution


@dataclass(frozen=True, eq=False)
class RowEffects:
    """Effects of each unit in some probes of a run, and their standard errors."""

    effects: Floats  # J with the unit minus J without it, in probes of similar size
    row_errors: Floats  # standard errors over other rows
    probe_errors: Floats  # standard errors over other probes
    n_groups: int  # groups of rows

    @classmethod
    def of(cls, plan: ProbePlan, ledger: Ledger, shares: Floats, n_probes: int, unit: float = 1.0) -> RowEffects:
        """Effects in the first ``n_probes``, which must belong to one round."""
        errors, residuals = np.empty(plan.n_features), _residuals(plan, ledger, n_probes, with_rows=False)
        tally = Tally.over(((subsets, values) for subsets, values, _ in residuals), plan.n_features)
        for first in range(0, plan.n_features, FEATURES_PER_BATCH):
            batch = np.arange(first, min(first + FEATURES_PER_BATCH, plan.n_features))
            errors[batch] = _error_of_mean(group_effects(plan, ledger, batch, n_probes), shares)
        return cls(tally.daf0(), unit * errors, moderated_errors(tally, "daf0"), len(shares))

    @property
    def std_errors(self) -> Floats:
        """Standard errors over other rows and other probes."""
        return np.hypot(ROW_ERROR_INFLATION * self.row_errors, self.probe_errors)

    @cached_property
    def p_values(self) -> Floats:
        """p-value of an effect this far above the average, over other rows and probes; 1 where not known."""
        is_known = np.isfinite(self.effects).any()  # a single feature is in every probe
        above = self.effects - (np.nanmean(self.effects) if is_known else 0.0)
        errors = np.hypot(NULL_INFLATION * self.row_errors, self.probe_errors)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(errors > 0, above / errors, 0.0)
        return np.asarray(student_t.sf(np.nan_to_num(ratio) / _width_of_null(ratio), self.n_groups - 1))


def _width_of_null(ratios: Floats) -> float:
    """Width of the empirical null: interquartile range of many ratios relative to the normal distribution, at least 1.

    It is above 1 where classes are unbalanced and votes soft: a feature that makes the rare class more frequent in
    predictions shifts all other rows a little, which differences between rows do not show.
    """
    known = ratios[np.isfinite(ratios)]
    if len(known) < MIN_FEATURES_FOR_NULL:
        return 1.0
    low, high = np.quantile(known, [0.25, 0.75])
    return max(1.0, float(high - low) / NORMAL_IQR)


def combined_p_values(univariate: Floats | None, conditional: Floats | None) -> Floats:
    """Combine the p-values of the univariate and the conditional test by a weighted Bonferroni correction."""
    if univariate is None or conditional is None:
        p_values = conditional if univariate is None else univariate
        assert p_values is not None
        return p_values
    return np.minimum(np.minimum(univariate / ALPHA_SHARE_UNIVARIATE, conditional / (1 - ALPHA_SHARE_UNIVARIATE)), 1.0)


def group_effects(plan: ProbePlan, ledger: Ledger, units: Ints, n_probes: int) -> Floats:
    """Effects of units (ascending) on each group of rows in the first probes: array (units, groups)."""
    table = np.zeros((len(units), ledger.n_row_groups + 1))
    position_of = np.full(plan.n_features, -1)
    position_of[units] = np.arange(len(units))
    total = np.zeros(ledger.n_row_groups)
    for subsets, _, rows in _residuals(plan, ledger, n_probes):
        sums.add_rows(table, position_of, subsets.indices, subsets.offsets, rows)
        total += rows.sum(axis=0)
    inside, outside = table[:, -1:], n_probes - table[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(table[:, :-1] / inside - (total - table[:, :-1]) / outside)


def _error_of_mean(by_group: Floats, shares: Floats) -> Floats:
    """Standard error of a weighted mean over groups."""
    n_groups = len(shares)
    deviations = by_group - (by_group @ shares)[:, None]
    return np.sqrt((deviations**2 @ shares**2) * (n_groups / (n_groups - 1)))


def _residuals(
    plan: ProbePlan, ledger: Ledger, n_probes: int, *, with_rows: bool = True
) -> Iterator[tuple[Subsets, Floats, Floats]]:
    """Yield probes with J and row contributions minus the means of similar sizes; failed probes count as average."""
    group_of_size = size_groups(plan, n_probes)
    failed = np.array([] if ledger.failures is None else ledger.failures.probes, dtype=np.int64)

    def batches_of_values() -> Iterator[tuple[int, Subsets, NDArray[np.int64], Floats]]:
        for low, high in batches(plan, 0, n_probes):
            subsets, values = plan.draw(low, high), ledger.values(low, high)[:, None]
            if with_rows:
                values = np.hstack([values, ledger.rows(low, high)])
            yield low, subsets, group_of_size[subsets.sizes], values

    means = np.zeros((int(group_of_size.max(initial=0)) + 1, 1 + ledger.n_row_groups * with_rows))
    counts = np.zeros(len(means))
    for _, _, size_group, values in batches_of_values():
        np.add.at(means, size_group, values)
        counts += np.bincount(size_group, minlength=len(counts))
    means /= np.maximum(counts, 1)[:, None]
    for low, subsets, size_group, values in batches_of_values():
        values = values - means[size_group]
        values[failed[(failed >= low) & (failed < low + len(values))] - low] = 0.0
        yield subsets, values[:, 0], np.ascontiguousarray(values[:, 1:])


@dataclass(frozen=True, eq=False)
class WhichRows:
    """Effects of features on groups of rows.

    Attributes
    ----------
    names : tuple of str
        The features, best first.
    effects : array of float64 of shape (n_features, n_groups)
        J of the rows of a group with the feature minus J without it, in probes of similar size. The mean over groups is
        the effect of the feature; where it helps only some groups, these rows differ from the others.
    rows : tuple of arrays of int64
        The rows of each group: a single row, rows of one group of ``fit``, or some of each class where there are more
        than 64. Groups are sorted by class, if they have one, and then by which features help them.
    classes : tuple
        The class of the rows of each group; None where it has several classes, or none is known.
    """

    names: tuple[str, ...]
    effects: Floats
    rows: tuple[Ints, ...]
    classes: tuple[Any, ...]

    @property
    def blocks(self) -> list[tuple[Any, int, int]]:
        """The classes in the order of the groups, each with its start and end; empty where groups have no class."""
        starts = [k for k, label in enumerate(self.classes) if k == 0 or label != self.classes[k - 1]]
        ends = [*starts[1:], len(self.classes)]
        return [(self.classes[k], k, end) for k, end in zip(starts, ends, strict=True) if self.classes[k] is not None]


def which_rows(effects: Floats, group_of: Ints, names: Sequence[str], labels: Any = None) -> WhichRows:
    """Sort groups by class and by effects; ``labels`` are the classes of all rows."""
    rows = [np.flatnonzero(group_of == group) for group in range(effects.shape[1])]
    classes = [None if labels is None else _single_label(np.asarray(labels)[group]) for group in rows]
    has_classes = all(label is not None for label in classes)
    block = np.array([str(label) if has_classes else "" for label in classes])
    order = np.lexsort((_by_similarity(effects), block))
    classes_in_order = tuple(classes[group] if has_classes else None for group in order)
    return WhichRows(tuple(names), effects[:, order], tuple(rows[group] for group in order), classes_in_order)


def _single_label(labels: NDArray[Any]) -> Any:
    return labels[0].item() if (labels == labels[0]).all() else None


def _by_similarity(effects: Floats) -> Floats:
    """A number for each group, similar where the same features help: the first principal component."""
    centered = np.nan_to_num(effects - effects.mean(axis=1, keepdims=True))
    component = np.linalg.svd(centered, full_matrices=False)[2][0]
    return np.asarray(np.round(component * np.sign(component @ centered[0] or 1.0), 9))
