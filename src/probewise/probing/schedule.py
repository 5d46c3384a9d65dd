"""Rounds of a tournament, planned by a budget of probes: after each the weaker part of the features leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ledger import Ledger
from .probes import ProbePlan
from .regression import Design, Regression
from .rounds import PlanInRounds
from .tally import positions

SHARE, FEWEST = 0.7, 20  # of the features that go on after a round, and how many play the last one
# Of the budget, for the round of all features: what it says of those that leave, and whether anything beats luck, needs
# as many probes as can be had. A third costs nothing beyond chance on unseen rows, a half a point. Less where that
# leaves fewer than 200 to each other round: of Madelon's 20, 1,000 probes then found 18.6 instead of 19.3.
FIRST_SHARE, FEWEST_LATER = 0.25, 200
LARGEST_SHARE = 0.3  # of the features of a round, in its largest probe
RIDGE = 10.0  # a feature that was in ten probes is shrunk by half
# For the time left, measured roughly: what a probe takes beside its features, in features; of a regression, seconds.
WITHOUT_FEATURES, SECONDS_OF_ROUND, SECONDS_OF_FEATURE = 80, 0.02, 1e-7
TOLERANCE = 1e-3  # of its solution, which is far below what the luck of probes leaves open


@dataclass(frozen=True, eq=False)
class TournamentPlan(PlanInRounds):
    """Probes of uniform size, up to ``max_size`` or three tenths of the features of their round."""

    largest_share = LARGEST_SHARE

    @staticmethod
    def _round_offsets(plan: ProbePlan, start: int, stop: int) -> NDArray[np.int64]:
        return plan.offsets(start, stop)


@dataclass(frozen=True, eq=False)
class Schedule:
    """When rounds end and who goes on; a function of the plan and of the ledger up to there.

    The first round has a quarter of the probes, less where that leaves the others too few, or more where rounds are
    few; the others have as many each, to a block, and the last one the rest.
    """

    n_probes: int  # the budget
    ends: tuple[int, ...]  # probes after which features leave
    # Units that cannot leave while more than so many go on.
    protected: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    protected_above: int = 0
    n_threads: int | None = None  # of the regressions between rounds, which are the same to the bit for any number
    _read: list[Design] = field(default_factory=list, init=False, repr=False)  # the last one, for the next to go on

    @classmethod
    def of_budget(cls, n_units: int, n_probes: int, block_size: int) -> Schedule:
        """Rounds until few are left, each of whole blocks; with few probes, fewer rounds in which more leave."""
        n_blocks = n_probes // block_size
        n_rounds = min(len(sizes_of_rounds(n_units)) - 1, max(0, n_blocks // 2 - 1))
        most = n_blocks - n_rounds * FEWEST_LATER // block_size
        first = max(n_blocks // (n_rounds + 1), min(most, int(FIRST_SHARE * n_blocks)))
        ends = first + np.arange(n_rounds) * (n_blocks - first) // max(1, n_rounds)
        return cls(n_probes, tuple((block_size * ends).tolist()))

    def __call__(self, plan: ProbePlan, ledger: Ledger, n_probes: int) -> ProbePlan:
        """The plan after a look at so many probes: the same, or one that goes on with fewer features."""
        ended = len(plan.rounds)
        if n_probes not in self.ends[ended - 1 : ended] or not isinstance(plan, PlanInRounds):
            return plan
        so_far = ledger if n_probes == ledger.n_probes else ledger.until(n_probes)
        active = plan.rounds[-1].active
        scores = self.fit(plan, so_far).coefficients[active]
        scores = np.round(scores, 12 - int(np.ceil(np.log10(np.abs(scores).max() or 1.0))))  # not a matter of BLAS
        n_kept = sizes_of_rounds(plan.n_features, len(self.ends))[ended]
        order = np.argsort(positions(scores))
        if n_kept > self.protected_above:
            order = order[np.argsort(~np.isin(active[order], self.protected), kind="stable")]
        return plan.narrowed(n_probes, active[order[:n_kept]])

    def end_of_round(self, plan: ProbePlan) -> int | None:
        """The probe before which the present round ends; None in the last one."""
        return next(iter(self.ends[len(plan.rounds) - 1 :]), None)

    def effort(self, plan: ProbePlan, n_probes: int) -> tuple[float, float]:
        """What so many probes take, by their sizes, and the usual seconds of the regressions after them."""
        sizes = np.array(sizes_of_rounds(plan.n_features, len(self.ends)), np.float64)
        largest = np.clip(LARGEST_SHARE * sizes, 1, plan.max_size or plan.n_features)
        n_of_round = np.diff(np.minimum([0, *self.ends, self.n_probes], n_probes))
        n_ended = sum(end <= n_probes for end in self.ends)
        seconds = n_ended * (SECONDS_OF_ROUND + SECONDS_OF_FEATURE * plan.n_features)
        return float(n_of_round @ (WITHOUT_FEATURES + largest / 2)), seconds

    def fit(self, plan: ProbePlan, ledger: Ledger) -> Regression:
        """One regression over the probes of all rounds."""
        design = Design(plan, ledger, *self._read, n_threads=self.n_threads)
        self._read[:] = [design] if len(plan.rounds) <= len(self.ends) else []
        return Regression.of_design(design, RIDGE / design.unit, TOLERANCE)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_read": []}


def sizes_of_rounds(n_units: int, n_rounds: int | None = None) -> list[int]:
    """Units in each round, of which the first has all; where rounds are fewer than 0.7 asks for, more leave in each."""
    sizes = _sizes(n_units, SHARE)
    if n_rounds is None or len(sizes) - 1 <= n_rounds:
        return sizes
    return [*_sizes(n_units, (FEWEST / n_units) ** (1 / n_rounds))[:n_rounds], FEWEST] if n_rounds else [n_units]


def _sizes(n_units: int, share: float) -> list[int]:
    sizes = [n_units]
    while sizes[-1] > FEWEST:
        sizes.append(max(FEWEST, int(share * sizes[-1])))
    return sizes
