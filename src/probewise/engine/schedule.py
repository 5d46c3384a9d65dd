"""Rounds of probes, each among the better part of the features of the round before.

Of a tournament they are planned by a budget of probes (`Schedule`). When `Narrowing`, a round ends once it has found
something: when the coefficients from its odd blocks and from its even blocks go together. Where there is no evidence
nothing is dropped. Everything here is a function of the plan and of the ledger up to a look, so that any number of
workers, and a run that was resumed, narrow alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..validation.errors import Parameter, ParameterError
from .ledger import Ledger
from .probes import ProbePlan, Round, Subsets, joined
from .regression import Design, Regression
from .replay import adjusted
from .tally import TallySheet, positions

Floats = NDArray[np.float64]
# A round of narrowing ends when the coefficients of its two halves correlate by 0.5 among up to 500 features. Among
# more, the few that matter move the correlation less: with a power of 0.7 pairs that tell only together were not lost
# among 5,000.
AGREEMENT, AMONG, POWER = 0.5, 500, 0.7
AUTO = 0.6
PENALTY = 0.5  # of the regression that decides which features stay: rounds are short, so more than is best at the end
FEWEST_FEATURES = 40
FEWEST_MEETINGS = 4  # probes of the round that hold a feature; with fewer its coefficient is mostly luck
# Of a tournament: the share of features that go on after a round, and how many play the last one.
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
class PlanInRounds(ProbePlan):
    """Probes in rounds, each among fewer features than the one before.

    The largest probe holds half of the round's features, or ``max_size``. One probe in four has a size up to that, one
    up to a half, a quarter, an eighth of it: large probes bring together what only shows in company, in small ones a
    single feature shows more.

    Examples
    --------
    >>> import numpy as np
    >>> from probewise.engine.schedule import PlanInRounds
    >>> plan = PlanInRounds(1000, 200, seed=7).narrowed(400, np.array([3, 14, 15, 92]))
    >>> sorted(set(plan.draw(400, 500).indices.tolist()))
    [3, 14, 15, 92]
    """

    later: tuple[Round, ...] = field(default=(), kw_only=True)
    largest_share: ClassVar[float] = 0.5  # of the features of a round, in its largest probe

    def narrowed(self, start: int, active: NDArray[np.int32]) -> PlanInRounds:
        """The same up to probe ``start``, and a round among fewer features from there on."""
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
            plan = self._round_plan(part)
            drawn = plan.filled(low, self._round_offsets(plan, low, high))
            parts.append(Subsets(part.active[drawn.indices], drawn.offsets))
        return joined(parts)

    def sizes(self, start: int, stop: int) -> NDArray[np.int64]:
        rounds = [self._round_offsets(self._round_plan(part), *at) for part, *at in self._by_round(start, stop)]
        return np.concatenate([np.empty(0, np.int64), *map(np.diff, rounds)])

    def _by_round(self, start: int, stop: int) -> Iterator[tuple[Round, int, int]]:
        """The rounds that these probes are of, with the first of each and the one after its last."""
        for part, end in zip(self.rounds, [*(part.start for part in self.later), stop], strict=True):
            low, high = max(start, part.start), min(stop, end)
            if low < high:
                yield part, low, high

    def _round_plan(self, part: Round) -> ProbePlan:
        size = self.n_features if self.max_size is None else self.max_size
        largest = max(1, min(size, int(self.largest_share * len(part.active))))
        return ProbePlan(len(part.active), largest, self.inclusion, self.seed)

    @staticmethod
    def _round_offsets(plan: ProbePlan, start: int, stop: int) -> NDArray[np.int64]:
        offsets = plan.offsets(start, stop)
        if plan.inclusion is not None:
            return offsets
        sizes = np.diff(offsets) >> np.arange(start, stop) % 4
        return np.concatenate([[0], np.cumsum(np.maximum(sizes, 1))])


@dataclass(frozen=True)
class Narrowing:
    """Keeps a share of the features after each round, until so few are left.

    ``block_size`` is the run's number of probes in a block, ``fewest`` the number of features of the last round.
    """

    share: float
    fewest: int = FEWEST_FEATURES
    block_size: int = 50

    def __call__(self, plan: ProbePlan, ledger: Ledger, n_probes: int) -> ProbePlan:
        """The plan after a look at so many probes: the same, or one that goes on with fewer features."""
        last = plan.rounds[-1]
        if not isinstance(plan, PlanInRounds) or len(last.active) <= self.fewest:
            return plan
        if not self._is_due(n_probes - last.start):
            return plan
        so_far = ledger if n_probes == ledger.n_probes else ledger.until(n_probes)
        if self.agreement(plan, so_far) < enough_agreement(len(last.active)):
            return plan
        scores = Regression.of(plan, so_far, penalty=PENALTY).coefficients[last.active]
        scores = np.round(scores, 12 - int(np.ceil(np.log10(np.abs(scores).max() or 1.0))))  # not a matter of BLAS
        n_kept = max(self.fewest, int(self.share * len(last.active)))
        return plan.narrowed(n_probes, last.active[positions(scores) < n_kept])

    def _is_due(self, n_probes: int) -> bool:
        """Whether a round of this length is looked at: the longer it is, the more it grows in between."""
        step = self.block_size * 2 ** max(0, (n_probes // self.block_size).bit_length() - 4)
        return n_probes % step < self.block_size

    def agreement(self, plan: ProbePlan, ledger: Ledger) -> float:
        """Correlation of the coefficients from odd and from even blocks of the last round; 0 where it is too short."""
        last = plan.rounds[-1]
        halves = TallySheet(plan.n_features), TallySheet(plan.n_features)
        start = last.start
        for subsets, rest in adjusted(plan, ledger, len(plan.rounds) - 1):
            is_odd = (np.arange(start, start + len(rest)) // self.block_size) % 2 == 1
            start += len(rest)
            for sheet, chosen in zip(halves, (is_odd, ~is_odd), strict=True):
                sheet.add(subsets.only(chosen), rest[chosen])
        counts = sum(sheet.table[last.active, 0] for sheet in halves)
        if np.min(counts) < FEWEST_MEETINGS:
            return 0.0
        odd, even = (sheet.view().daf0()[last.active] for sheet in halves)
        known = np.isfinite(odd) & np.isfinite(even)
        if known.sum() < 3 or not (odd[known].std() and even[known].std()):
            return 0.0
        return float(np.corrcoef(odd[known], even[known])[0, 1])


def enough_agreement(n_features: int) -> float:
    """The agreement at which a round ends: among many features the few that matter move the correlation less."""
    return AGREEMENT * min(1.0, AMONG / n_features) ** POWER


def as_share(narrow: Any) -> float:
    """The share kept after each round that the parameter asks for."""
    if narrow == "auto":
        return AUTO
    if isinstance(narrow, float | np.floating) and 0 < narrow < 1:
        return float(narrow)
    raise ParameterError(
        Parameter("narrow", narrow), ": give the share of features kept after each round, as 0.6, 'auto', or None"
    )


def ranked(plan: ProbePlan, scores: Floats) -> NDArray[np.int64]:
    """Places, from 0: those still in by their scores, then those that left last, and so on."""
    return np.argsort(np.lexsort((positions(scores), -plan.last_rounds())))


def pooled_differences(plan: ProbePlan, ledger: Ledger) -> tuple[Floats, Floats]:
    """DAF0 of J adjusted for its size and round, over the rounds a feature was in, and its standard error.

    Probes of rounds after it left say nothing about a feature: it could not be in them.
    """
    last, whole = plan.last_rounds(), TallySheet(plan.n_features)
    scores, errors = np.full(plan.n_features, np.nan), np.full(plan.n_features, np.nan)
    for number in range(len(plan.rounds)):
        for subsets, rest in adjusted(plan, ledger, number):
            whole.add(subsets, rest)
        tally, leaving = whole.view(), last == number
        scores[leaving], errors[leaving] = tally.daf0()[leaving], tally.std_errors()[leaving]
    return scores, errors


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
        if n_probes not in self.ends[ended - 1 : ended] or not isinstance(plan, PlanInRounds):
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
        return plan.narrowed(n_probes, active[places <= np.partition(places, n_kept - 1)[n_kept - 1]])

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
