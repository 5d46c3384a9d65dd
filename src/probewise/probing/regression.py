"""The coefficient "regression": ridge regression of J on which features are in the probe, replayed from the ledger.

With z_i the J of probe i less the mean J of its size, s_i its size, x_if whether it holds f, of N features,

    minimise over w   sum_i ( z_i - sum_f (x_if - s_i / N) w_f )^2 + penalty sum_f w_f^2.

A difference of means counts the luck of a feature's companions as its own merit; here they answer for themselves. The
matrix is never made: conjugate gradients need only its products with vectors, which are sums over probes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from ..executors import one_blas_thread
from ..kernels import inclusion as kernels
from .ledger import Ledger
from .probes import ProbePlan, Subsets, joined
from .replay import adjusted

Floats = NDArray[np.float64]
PENALTIES = tuple(4.0**power for power in range(-3, 6))  # in units of the mean diagonal of the matrix
PARTS = 4  # one in so many probes is left out, in turn, to choose the penalty
TOLERANCE, MOST_STEPS = 1e-6, 200  # of conjugate gradients; far below the standard errors
KEPT_INDICES = 2**26  # probes are drawn once and kept up to so many features in all (256 MiB), else drawn again
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
    def of(
        cls,
        plan: ProbePlan,
        ledger: Ledger,
        *,
        penalty: float | None = None,
        ridge: float | None = None,
        tolerance: float = TOLERANCE,
    ) -> Regression:
        """Over the ledger's probes; the penalty, in units of the matrix's mean diagonal, chosen by them unless given.

        It is chosen by leaving out one probe in four, four times: the penalty that predicts the J left out best.
        ``ridge`` is a penalty in units of a probe instead.
        """
        design = Design(plan, ledger)
        if ridge is not None:
            penalty = ridge / design.unit
        elif penalty is None:
            few = CHOOSING_INDICES * 2 // (plan.largest + 1)
            penalty = (design if len(design.values) <= few else Design(plan, ledger.until(few))).best_penalty()
        w = design.solve(penalty * design.unit, tolerance=tolerance)
        rest = design.values - design.times(w)
        spread = float(np.mean(rest**2))
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.sqrt(spread * design.diagonal) / (design.diagonal + penalty * design.unit)
        seen = design.diagonal > 0
        return cls(np.where(seen, w, np.nan)[design.place], np.where(seen, errors, np.nan)[design.place], penalty)


class Design:
    """Products with the centred matrix of inclusion, over all probes or those of non-zero weight.

    In a run of several rounds a feature's column is centred in the rounds it took part in, and 0 in others. Features
    are numbered here by ``place``, those that stayed longest first, so that those of a round are the first so many.
    """

    def __init__(self, plan: ProbePlan, ledger: Ledger) -> None:
        self.plan, self.ledger = plan, ledger
        last = np.zeros(plan.n_features, np.int64)
        for number, part in enumerate(plan.rounds):
            last[part.active] = number
        self.place = np.empty(plan.n_features, np.int32)
        self.place[np.argsort(-last, kind="stable")] = np.arange(plan.n_features)
        self.n_active = np.array([len(part.active) for part in plan.rounds])
        self.values, self.sizes, self._kept = self._read()
        starts = [part.start for part in plan.rounds]
        self.round_of = np.searchsorted(starts, np.arange(len(self.values)), side="right") - 1
        self.weights = np.ones(len(self.values))

    def _read(self) -> tuple[Floats, NDArray[np.int64], Subsets | None]:
        """J of the probes, less that of like size, their sizes, and where they are few enough what they hold."""
        values, sizes, kept, n_indices = [], [], [], 0
        for subsets, part in adjusted(self.plan, self.ledger):
            values.append(part)
            sizes.append(subsets.sizes)
            n_indices += len(subsets.indices)
            if n_indices <= KEPT_INDICES:
                kept.append(self._placed(subsets))
        return np.concatenate(values), np.concatenate(sizes), joined(kept) if n_indices <= KEPT_INDICES else None

    def _placed(self, subsets: Subsets) -> Subsets:
        return Subsets(self.place[subsets.indices], subsets.offsets)

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
        """Weighted sum of squares of each column."""
        share = self.sizes / self.n_active[self.round_of]
        out = self._summed(self.weights * (1 - 2 * share))
        return np.maximum(self._by_round(self.weights * share**2, out), 0.0)

    def _summed(self, values: Floats) -> Floats:
        """For each feature, the sum of the values of the probes that hold it."""
        out = np.zeros(self.plan.n_features)
        for probes, subsets in self._batches():
            kernels.transposed_times(subsets.indices, subsets.offsets, values[probes], out)
        return out

    def _by_round(self, values: Floats, out: Floats) -> Floats:
        """To each feature, add the sum of the values of the probes of its rounds."""
        totals = np.bincount(self.round_of, values, minlength=len(self.n_active))
        for n_active, total in zip(self.n_active.tolist(), totals.tolist(), strict=True):
            out[:n_active] += total
        return out

    @cached_property
    def unit(self) -> float:
        return float(self.diagonal[: self.n_active[-1]].mean()) or 1.0

    def times(self, w: Floats) -> Floats:
        """The matrix times w: for each probe, the sum of its features' weights above the mean of its round's."""
        means = np.cumsum(w)[self.n_active - 1] / self.n_active
        out = np.empty(len(self.values))
        for probes, subsets in self._batches():
            kernels.times(subsets.indices, subsets.offsets, w, out[probes])
        out -= self.sizes * means[self.round_of]
        return out

    def transposed_times(self, values: Floats) -> Floats:
        """The transposed matrix times a number for each probe."""
        return self._by_round(-values * self.sizes / self.n_active[self.round_of], self._summed(values))

    def solve(self, penalty: float, guess: Floats | None = None, tolerance: float = TOLERANCE) -> Floats:
        """Weights by conjugate gradients."""

        def normal(w: Floats) -> Floats:
            return self.transposed_times(self.weights * self.times(w)) + penalty * w

        n_features = self.plan.n_features
        matrix = LinearOperator((n_features, n_features), matvec=normal, dtype=np.float64)
        goal = self.transposed_times(self.weights * self.values)
        with one_blas_thread():  # vectors this short are slower with two, and the bits do not depend on how many
            w: Floats = cg(matrix, goal, guess, rtol=tolerance, maxiter=MOST_STEPS)[0]
        return w

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
