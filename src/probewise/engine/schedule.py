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
from .probes import ProbePlan, Round, Subsets, concatenated
from .regression import Design, Regression
from .tally import positions

Floats = NDArray[np.float64]
NO_UNITS: NDArray[np.int32] = np.empty(0, np.int32)
# The share of features that stay after a round, and the number of features in the last round.
KEPT_SHARE, N_LAST = 0.7, 20
# The first round, with all features, decides max_first: it gets a quarter of the budget. On held-out rows a third is as
# good as a quarter and a half is a point worse. It gets less where later rounds would have fewer than 200 probes each:
# with 1,000 probes that finds 19.3 instead of 18.6 of the 20 informative features of Madelon.
FIRST_SHARE, MIN_LATER_PROBES = 0.25, 200
MAX_SHARE = 0.3  # largest probe of a round, as a share of its features
RIDGE = 10.0  # shrinks the coefficient of a feature that was in ten probes by half
# Rough measurements for the estimate of the remaining time: the fixed cost of a probe, in features; the seconds of a
# regression per probe (for each factor of 10 in features above 80), per feature, and for a GPU.
PROBE_OVERHEAD, BASE_FEATURES = 80, 80
SECONDS_PER_PROBE, SECONDS_PER_FEATURE, SECONDS_ON_DEVICE = 6.5e-7, 1.5e-8, 0.017
TOLERANCE = 1e-3  # of the solution; far below its standard errors


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
        """Add a round with fewer features that starts at probe ``start``."""
        return replace(self, later=(*self.later, Round(start, np.sort(active).astype(np.int32))))

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        return (*super().rounds, *self.later)

    @property
    def largest(self) -> int:
        ((first_plan, *_),) = self._by_round(0, 1)
        return first_plan.largest

    def draw(self, start: int, stop: int) -> Subsets:
        parts = []
        for plan, active, low, high in self._by_round(start, stop):
            drawn = plan.draw(low, high)
            parts.append(Subsets(active[drawn.indices], drawn.offsets))
        return concatenated(parts)

    def sizes(self, start: int, stop: int) -> NDArray[np.int64]:
        sizes = [np.empty(0, np.int64)]
        for plan, _, low, high in self._by_round(start, stop):
            sizes.append(plan.sizes(low, high))
        return np.concatenate(sizes)

    def _by_round(self, start: int, stop: int) -> Iterator[tuple[ProbePlan, NDArray[np.int32], int, int]]:
        """Yield the plan and the features of each round that these probes belong to, with its part of the range."""
        for number, part in enumerate(self.rounds):
            end = self.later[number].start if number < len(self.later) else stop
            low, high = max(start, part.start), min(stop, end)
            if low < high:
                size = self.n_features if self.max_size is None else self.max_size
                largest = max(1, min(size, int(MAX_SHARE * len(part.active))))
                yield ProbePlan(len(part.active), largest, self.inclusion, self.seed), part.active, low, high


def ranked(plan: ProbePlan, scores: Floats) -> NDArray[np.int64]:
    """Positions from 0: features of the last round by score, then features dropped in earlier rounds, latest first."""
    return np.argsort(np.lexsort((positions(scores), -plan.last_rounds())))


@dataclass(frozen=True, eq=False)
class Schedule:
    """The rounds of a tournament: when each round ends and which features stay.

    The first round has a quarter of the probes; less where the other rounds would have too few, and more where there
    are few rounds. The other rounds have equal numbers of whole blocks, and the last round also the rest.
    """

    n_probes: int  # the budget
    ends: tuple[int, ...]  # probes after which features are dropped
    # Units that stay while more than ``protected_above`` units are left.
    protected: NDArray[np.int32] = field(default_factory=NO_UNITS.copy)
    protected_above: int = 0
    n_threads: int | None = None  # for the regressions between rounds; any number gives the same bits
    device: str | None = None  # where the sums of the regressions are computed; None: on the CPU
    # The design matrix of the last regression, which the next one extends.
    _last_design: list[Design] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of_budget(cls, n_units: int, n_probes: int, block_size: int) -> Schedule:
        """Plan rounds of whole blocks until few features are left; a small budget has fewer rounds."""
        n_blocks = n_probes // block_size
        n_rounds = min(len(sizes_of_rounds(n_units)) - 1, max(0, n_blocks // 2 - 1))
        max_first = n_blocks - n_rounds * MIN_LATER_PROBES // block_size
        first = max(n_blocks // (n_rounds + 1), min(max_first, int(FIRST_SHARE * n_blocks)))
        ends = first + np.arange(n_rounds) * (n_blocks - first) // max(1, n_rounds)
        return cls(n_probes, tuple((block_size * ends).tolist()))

    def __call__(self, plan: ProbePlan, ledger: Ledger, n_probes: int) -> ProbePlan:
        """The plan after ``n_probes``: unchanged, or with a new round where a round ends here."""
        n_rounds = len(plan.rounds)
        if n_probes not in self.ends[n_rounds - 1 : n_rounds] or not isinstance(plan, TournamentPlan):
            return plan
        so_far = ledger if n_probes == ledger.n_probes else ledger.until(n_probes)
        active = plan.rounds[-1].active
        design = self._design(plan, so_far)
        scores = design.of_features(design.solve(RIDGE, tolerance=TOLERANCE) / design.roots, active)
        scores = np.round(scores, 12 - int(np.ceil(np.log10(np.abs(scores).max() or 1.0))))  # the same for every BLAS
        n_kept = sizes_of_rounds(plan.n_features, len(self.ends))[n_rounds]
        positions_of_units = positions(scores)
        if n_kept > self.protected_above:
            positions_of_units[np.isin(active, self.protected)] -= len(active)
        return plan.with_round(
            n_probes, active[positions_of_units <= np.partition(positions_of_units, n_kept - 1)[n_kept - 1]]
        )

    def scores(self, plan: ProbePlan, ledger: Ledger) -> Floats:
        """The coefficient of each unit so far, for a display of progress; NaN for dropped units."""
        design, active = Design(plan, ledger, n_threads=self.n_threads), plan.rounds[-1].active
        out = np.full(plan.n_features, np.nan)
        out[active] = design.of_features(design.solve(RIDGE, tolerance=TOLERANCE) / design.roots, active)
        return out

    def end_of_round(self, plan: ProbePlan) -> int | None:
        """The probe at which the current round ends; None in the last round."""
        return next(iter(self.ends[len(plan.rounds) - 1 :]), None)

    def effort(self, plan: ProbePlan, n_probes: int) -> tuple[float, float]:
        """Work of the first ``n_probes`` in arbitrary units, and the seconds of the regressions between rounds."""
        sizes = np.array(sizes_of_rounds(plan.n_features, len(self.ends)), np.float64)
        largest = np.clip(MAX_SHARE * sizes, 1, plan.max_size or plan.n_features)
        n_probes_of_round = np.diff(np.minimum([0, *self.ends, self.n_probes], n_probes))
        n_ended = sum(end <= n_probes for end in self.ends)
        seconds_of_round = SECONDS_PER_PROBE * self.n_probes * max(0.5, np.log10(plan.n_features / BASE_FEATURES))
        seconds_of_round += SECONDS_PER_FEATURE * plan.n_features + (0.0 if self.device is None else SECONDS_ON_DEVICE)
        return float(n_probes_of_round @ (PROBE_OVERHEAD + largest / 2)), float(n_ended * seconds_of_round)

    def fit(self, plan: ProbePlan, ledger: Ledger) -> Regression:
        """One ridge regression over the probes of all rounds."""
        design = self._design(plan, ledger)
        return Regression.of_design(design, RIDGE / design.unit, TOLERANCE)

    def _design(self, plan: ProbePlan, ledger: Ledger) -> Design:
        design = Design(plan, ledger, *self._last_design, n_threads=self.n_threads, device=self.device)
        self._last_design[:] = [design] if len(plan.rounds) <= len(self.ends) else []
        return design

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last_design": [], "device": None}  # another machine may have no such device


def sizes_of_rounds(n_units: int, n_rounds: int | None = None, share: float = KEPT_SHARE) -> list[int]:
    """Number of units in each round; with fewer rounds than needed, more units are dropped in each."""
    sizes = [n_units]
    while sizes[-1] > N_LAST:
        sizes.append(max(N_LAST, int(share * sizes[-1])))
    if n_rounds is None or len(sizes) - 1 <= n_rounds:
        return sizes
    if not n_rounds:
        return [n_units]
    return [*sizes_of_rounds(n_units, share=(N_LAST / n_units) ** (1 / n_rounds))[:n_rounds], N_LAST]
