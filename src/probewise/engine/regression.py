"""The coefficient "regression": ridge regression of J on which features are in the probe, replayed from the ledger.

With z_i the J of probe i minus the mean J of its size, s_i its size, x_if = 1 where it contains feature f, of N
features,

    minimize over w   sum_i ( z_i - sum_f (x_if - s_i / N) w_f )^2 + penalty sum_f w_f^2.

A difference of means credits a feature with the effects of other features in its probes; a regression does not. The
matrix is never built: conjugate gradients only need its products with vectors, which are sums over probes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from ..executors import in_turn, one_blas_thread, threads
from ..kernels import inclusion as kernels
from .ledger import Ledger
from .probes import ProbePlan, Round, Subsets, concatenated
from .tally import adjusted, batches

Floats = NDArray[np.float64]
PENALTIES = tuple(4.0**power for power in range(-3, 6))  # in units of the mean diagonal of the matrix
PENALTY_FOLDS = 4  # to choose the penalty
TOLERANCE, MAX_STEPS = 1e-6, 200  # for conjugate gradients; the tolerance is far below the standard errors
MAX_STORED_INDICES = 2**25  # features of all probes that are stored; larger runs draw their probes again
SAME = 1e-13  # relative differences of J that are rounding errors
INDICES_PER_PIECE = 2**18  # for one thread
PENALTY_INDICES = 2**23  # features of the first probes that are used to choose the penalty


@dataclass(frozen=True)
class Regression:
    """Coefficients of all features, their standard errors, and the penalty.

    The standard errors are exact for orthogonal columns, which the columns of random probes nearly are.
    """

    coefficients: Floats
    std_errors: Floats
    penalty: float

    @classmethod
    def of(cls, plan: ProbePlan, ledger: Ledger, *, penalty: float | None = None) -> Regression:
        """Fit the probes of a ledger. The penalty is in units of the mean diagonal of the matrix.

        If None, it is chosen by four-fold cross-validation over probes.
        """
        design = Design(plan, ledger)
        if penalty is None:
            n_probes = PENALTY_INDICES * 2 // (plan.largest + 1)
            chooser = design if len(design.values) <= n_probes else Design(plan, ledger.until(n_probes))
            penalty = chooser.best_penalty()
        return cls.of_design(design, penalty)

    @classmethod
    def of_design(cls, design: Design, penalty: float, tolerance: float = TOLERANCE) -> Regression:
        """Fit probes that have been read before."""
        w = design.solve(penalty * design.unit, tolerance=tolerance)
        residuals = design.values - design.times(w)
        variance = float(np.mean(residuals**2))
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.sqrt(variance * design.diagonal) / (design.diagonal + penalty * design.unit)
        return cls(design.of_features(w / design.roots), design.of_features(errors), penalty)


@dataclass(frozen=True, eq=False)
class RoundProbes:
    """The probes of a round: J in the ledger, J minus the mean of similar sizes, sizes, and features if stored."""

    part: Round
    ledger_values: Floats
    values: Floats
    sizes: NDArray[np.int64]
    subsets: Subsets | None
    probed: slice | NDArray[np.int32]  # features that are in a probe; all features where probes are not stored


class Design:
    """Products with the centered matrix of inclusion (x_if - s_i / N), over all probes or those of non-zero weight.

    In a tournament, the column of a feature is centered in the rounds of the feature, and 0 in later rounds. Features
    that were in no probe and were dropped after the same round have equal columns and equal weights: they share one
    column, scaled by ``roots``, the square root of their number. Columns are ordered by the last round of their
    features, latest first, so that the columns of a round are the first ones; ``column_of`` is the column of each
    feature.

    Rounds that ``before``, of the same plan and ledger, has read are not read again. Any number of threads gives the
    same bits.
    """

    def __init__(
        self, plan: ProbePlan, ledger: Ledger, before: Design | None = None, *, n_threads: int | None = None
    ) -> None:
        self.plan, self.ledger, self.map = plan, ledger, threads(n_threads)
        self.read: list[RoundProbes] = list(self._read_rounds(before.read if before else ()))
        self.values = np.concatenate([part.values for part in self.read])
        J = np.concatenate([part.ledger_values for part in self.read])
        if np.abs(self.values).max(initial=0.0) <= SAME * np.abs(J).max(initial=0.0):  # a ranking of rounding errors
            self.values[:] = 0.0
        self.sizes = np.concatenate([part.sizes for part in self.read]).astype(np.float64)
        self.lengths = [len(part.values) for part in self.read]
        self.round_of = np.repeat(np.arange(len(self.read)), self.lengths)
        self.weights = np.ones(len(self.values))
        probed = np.zeros(self.plan.n_features, dtype=bool)
        for read in self.read:
            probed[read.probed] = True
        columns = kernels.number_columns(plan.last_rounds(), probed, len(plan.rounds))
        self.column_of, self.shared_by, self.n_columns = columns
        self.roots = np.sqrt(self.shared_by)
        self.n_active = np.array([len(part.active) for part in self.plan.rounds])
        self.n_active_of = np.repeat(self.n_active.astype(np.float64), self.lengths)
        # The columns of all probes; None where they are not stored.
        stored, self._column_subsets = [part.subsets for part in self.read if part.subsets is not None], None
        if len(stored) == len(self.read):
            subsets = concatenated(stored)
            self._column_subsets = Subsets(self.column_of[subsets.indices], subsets.offsets)

    def _read_rounds(self, read_before: Sequence[RoundProbes]) -> Iterator[RoundProbes]:
        """Read the probes of each round; their features are stored while there is room for them."""
        rounds, n_probes, room = self.plan.rounds, self.ledger.n_probes, MAX_STORED_INDICES
        for number, part in enumerate(rounds):
            end = min(n_probes, rounds[number + 1].start) if number + 1 < len(rounds) else n_probes
            J = self.ledger.values(part.start, end)
            before = read_before[number] if number < len(read_before) else None
            if (
                before is not None
                and before.part.start == part.start
                and np.array_equal(before.part.active, part.active)
                and np.array_equal(before.ledger_values, J)
            ):
                room -= int(before.sizes.sum())
                yield before
                continue
            values, sizes, stored = [np.empty(0)], [np.empty(0, np.int64)], list[Subsets]()
            for subsets, adjusted_values in adjusted(self.plan, self.ledger, part.start, end):
                values.append(adjusted_values)
                sizes.append(subsets.sizes)
                room -= len(subsets.indices)
                if room >= 0:
                    stored.append(subsets)
            of_round = concatenated(stored) if room >= 0 else None
            probed = slice(None) if of_round is None else np.unique(of_round.indices)
            yield RoundProbes(part, J, np.concatenate(values), np.concatenate(sizes), of_round, probed)

    def _batches(self) -> Iterator[tuple[slice, Subsets]]:
        """Yield slices of the probes with their columns."""
        if self._column_subsets is not None:
            yield slice(0, len(self.values)), self._column_subsets
            return
        for start, stop in batches(self.plan, 0, self.ledger.n_probes):
            subsets = self.plan.draw(start, stop)
            yield slice(start, stop), Subsets(self.column_of[subsets.indices], subsets.offsets)

    @cached_property
    def diagonal(self) -> Floats:
        """Weighted sum of squares of each feature's column."""
        share = self.sizes / self.n_active_of
        out = self._summed(self.weights * (1 - 2 * share))
        return np.maximum(self._by_round(self.weights * share**2, out), 0.0)

    def _summed(self, values: Floats) -> Floats:
        """For each column, the sum of the values of the probes that contain it."""
        out = np.zeros(len(self.roots))
        if self.map is not in_turn and self._column_subsets is not None:
            starts, probes = self._by_column
            list(self.map(partial(_times, probes, starts, values, out), pieces(starts)))
            return out
        for batch, subsets in self._batches():
            kernels.transposed_times(subsets.indices, subsets.offsets, values[batch], out)
        return out

    @cached_property
    def _by_column(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The probes that contain each column, in order, and where each column starts in that list."""
        assert self._column_subsets is not None
        counts = np.bincount(self._column_subsets.indices, minlength=len(self.roots))
        starts, probes = np.r_[0, np.cumsum(counts)], np.empty(len(self._column_subsets.indices), np.int32)
        fill = partial(kernels.fill_columns, self._column_subsets.indices, self._column_subsets.offsets, starts)
        list(self.map(lambda columns: fill(*columns, probes), pieces(starts)))
        return starts, probes

    def _by_round(self, values: Floats, out: Floats) -> Floats:
        """Add to each column the sum of the values of all probes of its rounds."""
        totals = np.bincount(self.round_of, values, minlength=len(self.n_active))
        for n_columns, total in zip(self.n_columns.tolist(), totals.tolist(), strict=True):
            out[:n_columns] += total
        return out

    @cached_property
    def unit(self) -> float:
        """Mean diagonal over the features of the last round, the unit of the penalty."""
        diagonal = (self.diagonal * self.shared_by)[: self.n_columns[-1]]
        return float(diagonal.sum() / self.n_active[-1]) or 1.0

    def times(self, w: Floats) -> Floats:
        """Matrix times w: for each probe, the sum of the weights of its features minus the mean weight of its round.

        A shared weight is that of one feature times the root of their number, so that the penalty is as for single
        features.
        """
        out = np.empty(len(self.values))
        for probes, subsets in self._batches():
            part, lists = out[probes], (subsets.indices, subsets.offsets)
            if self.map is in_turn:
                kernels.times(*lists, 0, len(subsets), w, part)
            else:
                list(self.map(partial(_times, *lists, w, part), pieces(subsets.offsets)))
        weights, ends = self.roots * w, self.n_columns[::-1].tolist()
        sums = [weights[start:end].sum() for start, end in zip([0, *ends], ends, strict=False)]
        means = np.cumsum(sums)[::-1] / self.n_active  # mean weight of the features of each round
        out -= self.sizes * np.repeat(means, self.lengths)
        return np.asarray(out)

    def transposed_times(self, values: Floats) -> Floats:
        """Transposed matrix times one value per probe."""
        out = self._by_round(-values * self.sizes / self.n_active_of, self._summed(values))
        out *= self.roots
        return out

    def solve(self, penalty: float, guess: Floats | None = None, tolerance: float = TOLERANCE) -> Floats:
        """Solve for the weights by conjugate gradients."""
        target = self.transposed_times(self.weights * self.values)

        def normal(w: Floats) -> Floats:
            return self.transposed_times(self.weights * self.times(w)) + penalty * w

        matrix = LinearOperator((len(target), len(target)), matvec=normal, dtype=np.float64)
        with one_blas_thread():  # faster for short vectors, and the bits do not depend on the number
            return np.asarray(cg(matrix, target, guess, rtol=tolerance, maxiter=MAX_STEPS)[0])

    def of_features(self, values: Floats, features: Any = slice(None)) -> Floats:
        """Values of columns as values of features; NaN where a feature was in no probe, or in all."""
        return np.asarray(np.where(self.diagonal > 0, values, np.nan)[self.column_of[features]])

    def best_penalty(self) -> float:
        """The penalty with the smallest error on left-out probes, in four folds."""
        fold = np.arange(len(self.values)) % PENALTY_FOLDS
        all_weights, errors = self.weights, np.zeros(len(PENALTIES))
        for left_out in range(PENALTY_FOLDS):
            self.weights = np.where(fold == left_out, 0.0, all_weights)
            w = None
            for number in range(len(PENALTIES) - 1, -1, -1):
                w = self.solve(PENALTIES[number] * self.unit * (PENALTY_FOLDS - 1) / PENALTY_FOLDS, w)
                residuals = (self.values - self.times(w))[fold == left_out]
                errors[number] += float(all_weights[fold == left_out] @ residuals**2)
        self.weights = all_weights
        return PENALTIES[int(np.argmin(errors))]


def _times(indices: Any, offsets: Any, w: Floats, out: Floats, probes: tuple[int, int]) -> None:
    kernels.times(indices, offsets, *probes, w, out)


def pieces(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Divide lists that start at ``starts`` into pieces of similar total length."""
    ends = np.arange(INDICES_PER_PIECE, starts[-1] + INDICES_PER_PIECE, INDICES_PER_PIECE)
    cuts = np.unique(np.r_[0, np.searchsorted(starts, ends), len(starts) - 1])
    cuts = cuts[cuts < len(starts)]
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
