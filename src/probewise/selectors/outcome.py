"""What a run over units says about features: their tally, coefficients and ranking, replayed from the ledger."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..probing.certainty import Certainty, steady_errors
from ..probing.decoys import chances
from ..probing.engine import replay, size_scaled_tally
from ..probing.ledger import Ledger, LedgerError
from ..probing.multiplicity import discoveries
from ..probing.probes import PlanInRounds, ProbePlan, Subsets
from ..probing.regression import Regression
from ..probing.rounds import PENALTY, Narrowing, last_rounds, pooled_differences, ranked
from ..probing.tally import COEFFICIENTS, Tally, TallySheet, positions
from ..probing.units import Units, named_columns
from .screening import Screening

Floats = NDArray[np.float64]
DEFAULT_PROBE_SIZE = 200
CHECK_EVERY, BLOCK_SIZE = 400, 50
IN_ROUNDS = ("daf0", "regression")
SHOWN = 8


@dataclass(frozen=True, eq=False)
class Outcome:
    """A run that has ended.

    Attributes
    ----------
    within : the plan over units. tally : of units. units : None where they are the features themselves.
    screening : what a screen did, if there was one.
    """

    within: ProbePlan
    ledger: Ledger
    tally: Tally
    units: Units | None = None
    screening: Screening | None = None

    @classmethod
    def of_ledger(cls, ledger: Ledger) -> Outcome:
        """The outcome of a run that was kept."""
        kept = ledger.settings
        n_features, size = int(kept["shape"][1]), int(kept.get("max_probe_size") or DEFAULT_PROBE_SIZE)
        screening, units = Screening.of_ledger(kept, n_features), Units.of_ledger(kept, n_features)
        if screening is not None and units is None:
            units = Units(n_features, Subsets.of(screening.passed[:, None]))
        n_units = n_features if units is None else units.n_units
        narrow = _narrowing_of(kept)
        kind = ProbePlan if narrow is None else PlanInRounds
        plan = kind(n_units, min(size, n_units), kept.get("inclusion"), int(kept["seed"]))
        if narrow is not None:
            plan = narrow.rounds_of(plan, ledger, check_every_of(kept))
        sheet = TallySheet(n_units, float(ledger.values(0, 1)[0]))
        for subsets, values in replay(plan, ledger):
            sheet.add(subsets, values)
        return cls(plan, ledger, sheet.view(), units, screening)

    @cached_property
    def plan(self) -> ProbePlan:
        """The plan in features."""
        return self.within if self.units is None else self.units.plan(self.within)

    @property
    def n_features(self) -> int:
        return self.within.n_features if self.units is None else self.units.n_features

    @property
    def in_rounds(self) -> bool:
        return isinstance(self.within, PlanInRounds)

    @property
    def narrowing(self) -> Narrowing | None:
        """How a run that was kept narrowed."""
        return _narrowing_of(self.ledger.settings)

    def spread(self, values: NDArray[Any], empty: Any = np.nan) -> NDArray[Any]:
        """A value of each unit as one of each feature."""
        return values if self.units is None else self.units.spread(values, empty)

    @cached_property
    def tally_of_features(self) -> Tally:
        if self.units is None:
            return self.tally
        table = self.units.spread(self.tally.table, 0.0)
        table[self.units.always] = self.tally.n_probes, self.tally.total, self.tally.total_square
        return replace(self.tally, table=table)

    def coefficient(self, name: str) -> tuple[Floats, Floats]:
        """The coefficient of every unit, and its standard error."""
        if name == "regression":
            fitted = Regression.of(self.within, self.ledger, penalty=PENALTY if self.in_rounds else None)
            return fitted.coefficients, fitted.std_errors
        if name == "daf0" and self.in_rounds:
            return pooled_differences(self.within, self.ledger)
        if name == "daf0":
            return self.tally.daf0(), self.tally.std_errors()
        if name == "daf1" and not self.in_rounds:
            return self.tally.daf1(), self.tally.std_errors("daf1")
        if name == "daf2" and not self.in_rounds:
            scaled = size_scaled_tally(self.within, self.ledger)
            return scaled.daf0(), scaled.std_errors()
        require_coefficient(name, in_rounds=self.in_rounds)
        raise AssertionError(name)

    def certainty(self, name: str) -> Certainty:
        """How sure the coefficient of every feature is; NaN for those not probed, or not up to the last round."""
        scores, errors = self.coefficient(name)
        if self.in_rounds:
            scores = np.where(last_rounds(self.within) == len(self.within.rounds) - 1, scores, np.nan)
        elif name in ("daf0", "daf1"):
            errors = steady_errors(self.tally, name)
        return Certainty(self.spread(scores), self.spread(errors))

    def ranking(self, scores: Floats, costs: Floats | None = None) -> NDArray[np.int64]:
        """1 is best: what is always in, units by their scores, what did not pass the screen, what is dropped.

        Features of a group share a rank. With costs, units rank by what they give per cost.
        """
        real = scores if self.units is None else scores[: self.units.n_real]
        if costs is not None:
            real = _per_cost(real, self._costs_of_units(costs))
        places = ranked(self.within, real) if self.in_rounds else positions(real)
        if self.units is None:
            return places + 1
        n_kept, ranking = len(self.units.always), self.units.spread(places, -1) + 1
        ranking[ranking > 0] += n_kept
        ranking[self.units.always] = np.arange(n_kept) + 1
        rest = np.empty(0, np.int64) if self.screening is None else self.screening.rest
        rest = rest[(ranking[rest] == 0) & ~np.isin(rest, self.units.dropped)]
        rest = np.concatenate([rest, self.units.dropped])
        ranking[rest] = n_kept + self.units.n_real + 1 + np.arange(len(rest))
        return ranking

    def _costs_of_units(self, costs: Floats) -> Floats:
        """A group costs what its features do together."""
        if self.units is None:
            return costs
        members, n_real = self.units.members, self.units.n_real
        return np.add.reduceat(costs[members.indices[: members.offsets[n_real]]], members.offsets[:n_real])

    def chances(self, scores: Floats) -> Floats:
        """The chance of each feature that luck alone gives it its score, by the decoys."""
        assert self.units is not None
        n_real = self.units.n_real
        return self.spread(chances(scores[:n_real], scores[n_real:]))

    def discovered(self, p: Floats, rate: float) -> NDArray[np.bool_]:
        """Which features beat the decoys at a false-discovery rate, by the chances of features."""
        assert self.units is not None
        members = self.units.members
        kept = discoveries(p[members.indices[members.offsets[: self.units.n_real]]], rate)
        return self.spread(kept, False)

    def told(
        self,
        names: Sequence[str],
        *,
        categorical: NDArray[np.bool_] | None = None,
        costs: Floats | None = None,
        beaten: tuple[int, float] | None = None,
    ) -> list[str]:
        """What was said of features and what became of it, in sentences without their full stops.

        ``beaten`` is how many features beat the decoys, and at which rate.
        """
        sentences = []
        if self.units is not None:
            sizes = self.units.members.sizes[: self.units.n_real]
            n_groups, n_inside = int((sizes > 1).sum()), int(sizes[sizes > 1].sum())
            if n_groups:
                groups = f"{n_groups:,} {'group' if n_groups == 1 else 'groups'}, of {n_inside:,} features in all,"
                sentences.append(f"{groups} entered and left probes as one")
            sentences += _listing("In every probe, at the user's wish", self.units.always, names)
            sentences += _listing("In no probe, at the user's wish", self.units.dropped, names)
        if categorical is not None:
            sentences += _listing("Categories, level by level", np.flatnonzero(categorical), names)
        if costs is not None:
            sentences.append(f"Ranked by benefit per cost; costs are from {costs.min():g} to {costs.max():g}")
        if self.units is not None and self.units.n_decoys and beaten is not None:
            found, rate = beaten
            beat = f"{found:,} {'feature beats' if found == 1 else 'features beat'} them"
            sentences.append(f"{self.units.n_decoys:,} decoys took part; {beat} at a false-discovery rate of {rate:g}")
        if self.in_rounds:
            n_units = [f"{len(part.active):,}" for part in self.within.rounds]
            starts = [f"{part.start:,}" for part in self.within.rounds[1:]]
            after = f", narrowed after {', '.join(starts)} probes" if starts else "; nothing was left out yet"
            sentences.append(f"Rounds among {', '.join(n_units)} features{after}")
        return sentences

    def rounds_left(self) -> NDArray[np.int64]:
        """The number of the round after which each feature left, from 1; 0 for those that stayed."""
        last = last_rounds(self.within)
        return self.spread(np.where(last == len(self.within.rounds) - 1, 0, last + 1), 0)


def _listing(what: str, columns: NDArray[Any], names: Sequence[str]) -> list[str]:
    if not len(columns):
        return []
    shown = ", ".join(names[column] for column in columns[:SHOWN].tolist())
    more = f" and {len(columns) - SHOWN:,} more" if len(columns) > SHOWN else ""
    return [f"{what}: {shown}{more}"]


def require_coefficient(name: Any, *, in_rounds: bool) -> None:
    known = IN_ROUNDS if in_rounds else COEFFICIENTS
    if name not in known:
        where = " with narrow" if in_rounds else ""
        raise ValueError(f"coefficient={name!r} is not known{where}: choose one of {', '.join(known)}")


def check_every_of(kept: Mapping[str, Any]) -> int:
    """Probes between two looks, of a run that was kept."""
    return math.lcm(int(kept.get("check_every", CHECK_EVERY)), int(kept.get("block_size", BLOCK_SIZE)))


def checked_costs(costs: Any, names: NDArray[Any] | None, n_features: int) -> Floats:
    """A cost above 0 for each feature: an array, or a dict of those that are not 1."""
    if isinstance(costs, Mapping):
        columns = [int(named_columns([key], "costs", names, n_features)[0]) for key in costs]
        given = dict(zip(columns, costs.values(), strict=True))
        costs = [given.get(column, 1.0) for column in range(n_features)]
    try:
        values = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n_features,) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(
            f"costs must hold a number above 0 for each of {n_features} features, or be a dict of those that are not 1"
        )
    return values


def _per_cost(scores: Floats, costs: Floats) -> Floats:
    """What a unit gives beyond the middle one, per cost; what it takes counts times its cost."""
    if (costs == costs[0]).all() or not np.isfinite(scores).any():
        return scores
    benefit = scores - np.nanmedian(scores)
    return np.where(benefit > 0, benefit / costs, benefit * costs)


def _narrowing_of(kept: Mapping[str, Any]) -> Narrowing | None:
    share, fewest = kept.get("narrow"), kept.get("narrow_to")
    if share is None:
        return None
    if not (isinstance(share, float) and 0 < share < 1 and isinstance(fewest, int) and fewest > 0):
        raise LedgerError("the ledger is damaged: it does not say how the run narrowed")
    return Narrowing(share, fewest, int(kept.get("block_size", BLOCK_SIZE)))
