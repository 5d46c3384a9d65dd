"""The coefficient "regression": ridge regression of J on which features are in the probe, replayed from the ledger.

With z_i the J of probe i less the mean J of its size, s_i its size, x_if whether it holds f, of N features,

    minimise over w   sum_i ( z_i - sum_f (x_if - s_i / N) w_f )^2 + penalty sum_f w_f^2.

A difference of means counts the luck of a feature's companions as its own merit; here they answer for themselves. The
matrix is never made: conjugate gradients need only its products with vectors, which are sums over probes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from ..executors import in_turn, one_blas_thread, threads
from ..kernels import inclusion as kernels
from .ledger import Ledger
from .probes import ProbePlan, Round, Subsets, concatenated
from .replay import adjusted

Floats = NDArray[np.float64]
PENALTIES = tuple(4.0**power for power in range(-3, 6))  # in units of the mean diagonal of the matrix
PARTS = 4  # one in so many probes is left out, in turn, to choose the penalty
TOLERANCE, MOST_STEPS = 1e-6, 200  # of conjugate gradients; far below the standard errors
KEPT_INDICES = 2**25  # probes are drawn once and kept, twice, up to so many features in all, else drawn again
INDICES_AT_A_TIME = 2**18  # of a thread
CHOOSING_INDICES = 2**23  # the first probes, up to so many features in all, are enough to choose the penalty


@dataclass(frozen=True)
class Regression:
    """Coefficients of all features, their standard errors, and the penalty they were made with.

    Errors are those of a design whose columns are orthogonal, which those of random probes nearly are.
    """

    coefficients: Floats
    std_errors: Floats
    penalty: float

    @classmethod
    def of(cls, plan: ProbePlan, ledger: Ledger, *, penalty: float | None = None) -> Regression:
        """Over the ledger's probes; the penalty, in units of the matrix's mean diagonal, chosen by them unless given.

        It is chosen by leaving out one probe in four, four times: the penalty that predicts the J left out best.
        """
        design = Design(plan, ledger)
        if penalty is None:
            few = CHOOSING_INDICES * 2 // (plan.largest + 1)
            penalty = (design if len(design.values) <= few else Design(plan, ledger.until(few))).best_penalty()
        return cls.of_design(design, penalty)

    @classmethod
    def of_design(cls, design: Design, penalty: float, tolerance: float = TOLERANCE) -> Regression:
        """The same over probes that were read before."""
        w = design.solve(penalty * design.unit, tolerance=tolerance)
        rest = design.values - design.times(w)
        variance = float(np.mean(rest**2))
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.sqrt(variance * design.diagonal) / (design.diagonal + penalty * design.unit)
        return cls(design.of_features(w / design.roots), design.of_features(errors), penalty)


@dataclass(frozen=True, eq=False)
class ReadRound:
    """The probes of a round: J as the ledger has it, less that of like size, sizes, and what probes hold, if kept."""

    part: Round
    ledger_values: Floats
    values: Floats
    sizes: NDArray[np.int64]
    subsets: Subsets | None

    @cached_property
    def probed(self) -> slice | NDArray[np.int32]:
        """The features in some probe; where that was not kept, nearly all are."""
        return slice(None) if self.subsets is None else np.unique(self.subsets.indices)

    def is_of(self, part: Round, values: Floats) -> bool:
        same = self.part.start == part.start and np.array_equal(self.part.active, part.active)
        return same and np.array_equal(self.ledger_values, values)


class Design:
    """Products with the centred matrix of inclusion, over all probes or those of non-zero weight.

    In a run of several rounds a feature's column is centred in the rounds it took part in, and 0 in others. Features
    that were in no probe and left after the same round have equal columns, and so equal weights: they share one, which
    counts as ``roots``, the square root of their number. Features are numbered here by ``place``, those that stayed
    longest first, so that those of a round are the first so many.

    Rounds that ``before``, of the same plan and ledger, has read are taken from there. Any number of threads gives the
    same bits. On a torch ``device``, where all weights are 1, sums are rounded in another order.
    """

    def __init__(
        self,
        plan: ProbePlan,
        ledger: Ledger,
        before: Design | None = None,
        *,
        n_threads: int | None = None,
        device: str | None = None,
    ) -> None:
        self.plan, self.ledger, self.map = plan, ledger, threads(n_threads)
        self.read: list[ReadRound] = list(self._read_rounds(before.read if before else []))
        self.values = np.concatenate([part.values for part in self.read])
        self.sizes = np.concatenate([part.sizes for part in self.read]).astype(np.float64)
        self.lengths = [len(part.values) for part in self.read]
        self.round_of = np.repeat(np.arange(len(self.read)), self.lengths)
        self.weights = np.ones(len(self.values))
        self.last = self._last_rounds(before)
        self._number()
        self._on_device = None if device is None else self._sent(device)

    def _read_rounds(self, known: list[ReadRound]) -> Iterator[ReadRound]:
        starts = [min(part.start, self.ledger.n_probes) for part in self.plan.rounds] + [self.ledger.n_probes]
        n_indices = 0
        for number, part in enumerate(self.plan.rounds):
            values = self.ledger.values(starts[number], starts[number + 1])
            if number < len(known) and known[number].is_of(part, values):
                read = known[number]
            else:
                read = self._read(number, part, values, KEPT_INDICES - n_indices)
            n_indices += int(read.sizes.sum())
            yield read

    def _read(self, number: int, part: Round, ledger_values: Floats, room: int) -> ReadRound:
        """A round, and what its probes hold where there is room for it."""
        values, sizes, kept = [np.empty(0)], [np.empty(0, np.int64)], list[Subsets]()
        for subsets, rest in adjusted(self.plan, self.ledger, number):
            values.append(rest)
            sizes.append(subsets.sizes)
            room -= len(subsets.indices)
            if room >= 0:
                kept.append(subsets)
        held = concatenated(kept) if room >= 0 else None
        return ReadRound(part, ledger_values, np.concatenate(values), np.concatenate(sizes), held)

    def _last_rounds(self, before: Design | None) -> NDArray[np.int64]:
        """Of each feature, the last round it was in; only rounds that were not in ``before`` are looked at."""
        n_known = 0 if before is None else len(before.read)
        if before is None or n_known > len(self.read) or not all(map(is_, before.read, self.read)):
            return self.plan.last_rounds()
        last = before.last.copy()
        for number in range(n_known, len(self.read)):
            last[self.read[number].part.active] = number
        return last

    def _number(self) -> None:
        """Columns of the matrix: where those of features are, how many features share one, how many a round has."""
        probed = np.zeros(self.plan.n_features, dtype=bool)
        for read in self.read:
            probed[read.probed] = True
        self.place, shared_by = np.empty(self.plan.n_features, np.int32), np.ones(self.plan.n_features)
        self.n_columns = kernels.number_columns(self.last, probed, len(self.plan.rounds), self.place, shared_by)
        self.shared_by = shared_by[: self.n_columns[0]]
        self.roots = np.sqrt(self.shared_by)
        self.n_active = np.array([len(part.active) for part in self.plan.rounds])
        self.n_active_of = np.repeat(self.n_active.astype(np.float64), self.lengths)

    @cached_property
    def _held(self) -> Subsets | None:
        """What all probes hold, where there was room for it."""
        parts = [part.subsets for part in self.read if part.subsets is not None]
        return concatenated(parts) if len(parts) == len(self.read) else None

    @cached_property
    def _kept(self) -> Subsets | None:
        """The same, in columns."""
        return None if self._held is None else self._placed(self._held)

    def _placed(self, subsets: Subsets) -> Subsets:
        return Subsets(self.place[subsets.indices], subsets.offsets)

    def _sent(self, device: str) -> Any:
        if self._held is None:
            return None
        from ..kernels.device.inclusion import Inclusion

        held, of_rounds = self._held, (self.lengths, self.n_active, self.n_columns)
        return Inclusion(held.indices, held.offsets, self.place, *of_rounds, self.roots, device)

    def _batches(self) -> Iterator[tuple[slice, Subsets]]:
        """Which probes, and what they hold."""
        if self._kept is not None:
            yield slice(0, len(self.values)), self._kept
            return
        start = 0
        for subsets, _ in adjusted(self.plan, self.ledger):
            yield slice(start, start + len(subsets)), self._placed(subsets)
            start += len(subsets)

    @cached_property
    def diagonal(self) -> Floats:
        """Weighted sum of squares of each feature's column."""
        share = self.sizes / self.n_active_of
        out = self._summed(self.weights * (1 - 2 * share))
        return np.maximum(self._by_round(self.weights * share**2, out), 0.0)

    def _summed(self, values: Floats) -> Floats:
        """For each feature, the sum of the values of the probes that hold it."""
        if self._on_device is not None:
            return self._on_device.transposed_times(values)
        out = np.zeros(len(self.roots))
        if self.map is not in_turn and self._kept is not None:
            starts, probes = self._by_column
            list(self.map(lambda columns: kernels.summed(starts, probes, *columns, values, out), pieces(starts)))
            return out
        for some, subsets in self._batches():
            kernels.transposed_times(subsets.indices, subsets.offsets, values[some], out)
        return out

    @cached_property
    def _by_column(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where the probes that hold a feature begin, and these, in order."""
        assert self._kept is not None
        counts = np.bincount(self._kept.indices, minlength=len(self.roots))
        starts, probes = np.r_[0, np.cumsum(counts)], np.empty(len(self._kept.indices), np.int32)
        fill = partial(kernels.fill_columns, self._kept.indices, self._kept.offsets, starts)
        list(self.map(lambda columns: fill(*columns, probes), pieces(starts)))
        return starts, probes

    def _by_round(self, values: Floats, out: Floats) -> Floats:
        """To each feature, add the sum of the values of the probes of its rounds."""
        totals = np.bincount(self.round_of, values, minlength=len(self.n_active))
        for n_columns, total in zip(self.n_columns.tolist(), totals.tolist(), strict=True):
            out[:n_columns] += total
        return out

    @cached_property
    def unit(self) -> float:
        of_features = (self.diagonal * self.shared_by)[: self.n_columns[-1]]
        return float(of_features.sum() / self.n_active[-1]) or 1.0

    def times(self, w: Floats) -> Floats:
        """The matrix times w: for each probe, the sum of its features' weights above the mean of its round's.

        Weights that several features share are those of one times the root of their number: so the penalty is as it
        is for features of their own.
        """
        out = self._sums_of_probes(w)
        out -= self.sizes * np.repeat(self._means(w), self.lengths)
        return out

    def _means(self, w: Floats) -> Floats:
        """The mean weight of the features of each round."""
        weights, ends = self.roots * w, self.n_columns[::-1].tolist()
        parts = [weights[start:end].sum() for start, end in zip([0, *ends], ends, strict=False)]
        return np.asarray(np.cumsum(parts)[::-1] / self.n_active)

    def _sums_of_probes(self, w: Floats) -> Floats:
        """For each probe, the sum of its features' weights."""
        if self._on_device is not None:
            return self._on_device.times(w)
        out = np.empty(len(self.values))
        for some, subsets in self._batches():
            parts = [(0, len(subsets))] if self.map is in_turn else pieces(subsets.offsets)
            list(self.map(partial(_times, subsets, w, out[some]), parts))
        return out

    def transposed_times(self, values: Floats) -> Floats:
        """The transposed matrix times a number for each probe."""
        out = self._by_round(-values * self.sizes / self.n_active_of, self._summed(values))
        out *= self.roots
        return out

    def solve(self, penalty: float, guess: Floats | None = None, tolerance: float = TOLERANCE) -> Floats:
        """Weights by conjugate gradients."""
        goal = self.transposed_times(self.weights * self.values)
        if self._on_device is not None:
            return np.asarray(self._on_device.solve(goal, penalty, tolerance, MOST_STEPS))

        def normal(w: Floats) -> Floats:
            """The transposed matrix times the matrix times w, probes by their weights."""
            return self.transposed_times(self.weights * self.times(w)) + penalty * w

        matrix = LinearOperator((len(goal), len(goal)), matvec=normal, dtype=np.float64)
        with one_blas_thread():  # vectors this short are slower with two, and the bits do not depend on how many
            return np.asarray(cg(matrix, goal, guess, rtol=tolerance, maxiter=MOST_STEPS)[0])

    def of_features(self, values: Floats, features: Any = slice(None)) -> Floats:
        """Values of columns as those of features; NaN where no probe tells anything."""
        return np.asarray(np.where(self.diagonal > 0, values, np.nan)[self.place[features]])

    def best_penalty(self) -> float:
        """The one, of a few, whose coefficients from three quarters of the probes predict the fourth best."""
        part = np.arange(len(self.values)) % PARTS
        whole, missed = self.weights, np.zeros(len(PENALTIES))
        for out in range(PARTS):
            self.weights = np.where(part == out, 0.0, whole)
            w = None
            for number in range(len(PENALTIES) - 1, -1, -1):
                w = self.solve(PENALTIES[number] * self.unit * (PARTS - 1) / PARTS, w)
                missed[number] += float(whole[part == out] @ (self.values - self.times(w))[part == out] ** 2)
        self.weights = whole
        return PENALTIES[int(np.argmin(missed))]


def _times(subsets: Subsets, w: Floats, out: Floats, probes: tuple[int, int]) -> None:
    kernels.times(subsets.indices, subsets.offsets, *probes, w, out)


def pieces(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cuts of what begins at ``starts`` into pieces of like length."""
    ends = np.arange(INDICES_AT_A_TIME, starts[-1] + INDICES_AT_A_TIME, INDICES_AT_A_TIME)
    cuts = np.unique(np.r_[0, np.searchsorted(starts, ends), len(starts) - 1])
    cuts = cuts[cuts < len(starts)]
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
