"""The rounds of a tournament: when each round ends, which features stay, and the probes of each round.

A budget of probes is split into rounds (`Schedule`). Everything here is a function of the plan and of the ledger up to
a look, so that the result does not depend on the number of workers or on whether a run was resumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ledger import Ledger
from .probes import ProbePlan, Round, Subsets, joined
from .regression import Design, Regression
from .tally import positions

Floats = NDArray[np.float64]
# The share of features that stay after a round, and the number of features in the last round.
SHARE, FEWEST = 0.7, 20
# Of the budget, for the round of all features: what it says of those that leave, and whether anything beats luck, needs
# as many probes as can be had. A third costs nothing beyond chance on unseen rows, a half a point. Less where that
# leaves fewer than 200 to each other round: of Madelon's 20, 1,000 probes then found 18.6 instead of 19.3.
FIRST_SHARE, FEWEST_LATER = 0.25, 200
LARGEST_SHARE = 0.3  # of the features of a round, in its largest probe
RIDGE = 10.0  # a feature that was in ten probes is shrunk by half
# For the time left, measured roughly: what a probe takes beside its features, in features; seconds of a regression, for
# each probe and each tenfold of features beyond 80, and for each feature; and what a GPU adds that makes its sums.
WITHOUT_FEATURES, FEATURES = 80, 80
SECONDS_OF_PROBE, SECONDS_OF_FEATURE, SECONDS_ON_DEVICE = 6.5e-7, 1.5e-8, 0.017
TOLERANCE = 1e-3  # of its solution, which is far below what the luck of probes leaves open


@dataclass(frozen=True, eq=False)
class TournamentPlan(ProbePlan):
    """Probes in rounds, each among fewer features than the round before.

    Sizes are uniform from 1 to ``max_size``, or to three tenths of the features of the round if that is less.

    Examples
    --------
    >>> import numpy as np
    >>> from probewise.engine.schedule import TournamentPlan
    >>> plan = TournamentPlan(1000, 200, seed=7).with_round(400, np.array([3, 14, 15, 92]))
    >>> sorted(set(plan.draw(400, 500).indices.tolist()))
    [3, 14, 15, 92]
    """

    later: tuple[Round, ...] = field(default=(), kw_only=True)

    def with_round(self, start: int, active: NDArray[np.int32]) -> TournamentPlan:
        """The same plan up to probe ``start``, and a round among fewer features from there on."""
        return replace(self, later=(*self.later, Round(start, np.sort(active).astype(np.int32))))

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        return (*super().rounds, *self.later)

    @property
    def largest(self) -> int:
        return self._round_plan(self.rounds[0]).largest

    def draw(self, start: int, stop: int) -> Subsets:
        parts = []
        for part, low, high in self._by_round(start, stop):
            drawn = self._round_plan(part).draw(low, high)
            parts.append(Subsets(part.active[drawn.indices], drawn.offsets))
        return joined(parts)

    def sizes(self, start: int, stop: int) -> NDArray[np.int64]:
        rounds = [self._round_plan(part).sizes(*at) for part, *at in self._by_round(start, stop)]
        return np.concatenate([np.empty(0, np.int64), *rounds])

    def _by_round(self, start: int, stop: int) -> Iterator[tuple[Round, int, int]]:
        """The rounds that these probes are of, with the first of each and the one after its last."""
        for part, end in zip(self.rounds, [*(part.start for part in self.later), stop], strict=True):
            low, high = max(start, part.start), min(stop, end)
            if low < high:
                yield part, low, high

    def _round_plan(self, part: Round) -> ProbePlan:
        size = self.n_features if self.max_size is None else self.max_size
        largest = max(1, min(size, int(LARGEST_SHARE * len(part.active))))
        return ProbePlan(len(part.active), largest, self.inclusion, self.seed)


def ranked(plan: ProbePlan, scores: Floats) -> NDArray[np.int64]:
    """Places, from 0: those still in by their scores, then those that left last, and so on."""
    return np.argsort(np.lexsort((positions(scores), -plan.last_rounds())))


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
    device: str | None = None  # where their sums are made, if not on the CPU
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
        if n_probes not in self.ends[ended - 1 : ended] or not isinstance(plan, TournamentPlan):
            return plan
        so_far = ledger if n_probes == ledger.n_probes else ledger.until(n_probes)
        active = plan.rounds[-1].active
        design = self._design(plan, so_far)
        scores = design.of_features(design.solve(RIDGE, tolerance=TOLERANCE) / design.roots, active)
        scores = np.round(scores, 12 - int(np.ceil(np.log10(np.abs(scores).max() or 1.0))))  # not a matter of BLAS
        n_kept = sizes_of_rounds(plan.n_features, len(self.ends))[ended]
        places = positions(scores)
        if n_kept > self.protected_above:
            places[np.isin(active, self.protected)] -= len(active)
        return plan.with_round(n_probes, active[places <= np.partition(places, n_kept - 1)[n_kept - 1]])

    def end_of_round(self, plan: ProbePlan) -> int | None:
        """The probe before which the present round ends; None in the last one."""
        return next(iter(self.ends[len(plan.rounds) - 1 :]), None)

    def effort(self, plan: ProbePlan, n_probes: int) -> tuple[float, float]:
        """What so many probes take, by their sizes, and the usual seconds of the regressions after them."""
        sizes = np.array(sizes_of_rounds(plan.n_features, len(self.ends)), np.float64)
        largest = np.clip(LARGEST_SHARE * sizes, 1, plan.max_size or plan.n_features)
        n_of_round = np.diff(np.minimum([0, *self.ends, self.n_probes], n_probes))
        n_ended = sum(end <= n_probes for end in self.ends)
        of_round = SECONDS_OF_PROBE * self.n_probes * max(0.5, np.log10(plan.n_features / FEATURES))
        of_round += SECONDS_OF_FEATURE * plan.n_features + (0.0 if self.device is None else SECONDS_ON_DEVICE)
        return float(n_of_round @ (WITHOUT_FEATURES + largest / 2)), float(n_ended * of_round)

    def fit(self, plan: ProbePlan, ledger: Ledger) -> Regression:
        """One regression over the probes of all rounds."""
        design = self._design(plan, ledger)
        return Regression.of_design(design, RIDGE / design.unit, TOLERANCE)

    def _design(self, plan: ProbePlan, ledger: Ledger) -> Design:
        design = Design(plan, ledger, *self._read, n_threads=self.n_threads, device=self.device)
        self._read[:] = [design] if len(plan.rounds) <= len(self.ends) else []
        return design

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_read": [], "device": None}  # there may be none where it is read


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
