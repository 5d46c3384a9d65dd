"""Stopping rules: predicates of the state of a run, combined with ``|`` and ``&``.

A rule is evaluated at every block border. C, C2 and the agreement of the two halves change only at a *look*, every
``check_every`` probes, as in the 2013 paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

ORDER, VALUE = "order", "value"


Watch = frozenset[str | int]


@dataclass(frozen=True)
class Look:
    """Measures of convergence at a look, compared with the previous look; NaN where undefined or not watched."""

    n_probes: int
    seconds: float  # working time so far
    # C, C2, and C2 divided by the first C2 (2013, definitions 1, 2 and condition 2a), all for DAF0.
    order_change: float = float("nan")
    value_change: float = float("nan")
    relative_change: float = float("nan")
    left_out: int = 0  # features without a coefficient at one of the two looks
    # For each watched k, the share of the top k that odd and even blocks have in common.
    overlap: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """The state of a run at a block border."""

    n_probes: int
    seconds: float  # working time so far
    tally: Any  # a `Tally`, such as ``tally.mean``, ``tally.covers(10)`` and ``tally.daf0()``
    looks: tuple[Look, ...] = ()  # the last two looks, the later one last
    # In a tournament: a function that returns the coefficient of each unit now, NaN for dropped units.
    current_scores: Callable[[], Any] | None = None

    @property
    def look(self) -> Look | None:
        return self.looks[-1] if self.looks else None


class Rule:
    """Base of all rules: a pure predicate of a `State`, with a reason in words.

    ``watch`` has the measures that the rule needs at looks: "order" (C), "value" (C2), or a number k (the agreement of
    the two halves on the top k). Other measures are not computed during the run.
    """

    watch: Watch = frozenset()
    max_probes: int | None = None  # a number of probes that must not be exceeded, if the rule has one

    def __call__(self, state: State) -> bool:
        raise TypeError("Rule is a base class: use a rule such as MaxProbes(1000)")

    def reason(self, state: State) -> str:
        return repr(self)

    def share_done(self, state: State) -> float | None:
        """Share of the run that is done, at least; None where it is not known in advance."""
        return None

    def __or__(self, other: Rule) -> Rule:
        return AnyOf(self, other)

    def __and__(self, other: Rule) -> Rule:
        return AllOf(self, other)


@dataclass(frozen=True)
class _Combined(Rule):
    first: Rule
    second: Rule

    @property
    def watch(self) -> Watch:  # type: ignore[override]
        return self.first.watch | self.second.watch


class AnyOf(_Combined):
    """Stops when either rule does."""

    @property
    def max_probes(self) -> int | None:  # type: ignore[override]
        limits = [rule.max_probes for rule in (self.first, self.second) if rule.max_probes is not None]
        return min(limits, default=None)

    def __call__(self, state: State) -> bool:
        return self.first(state) or self.second(state)

    def share_done(self, state: State) -> float | None:
        known = [share for rule in (self.first, self.second) if (share := rule.share_done(state)) is not None]
        return max(known, default=None)

    def reason(self, state: State) -> str:
        return "; ".join(rule.reason(state) for rule in (self.first, self.second) if rule(state))


class AllOf(_Combined):
    """Stops when both rules do."""

    def __call__(self, state: State) -> bool:
        return self.first(state) and self.second(state)

    def share_done(self, state: State) -> float | None:
        first, second = self.first.share_done(state), self.second.share_done(state)
        return None if first is None or second is None else min(first, second)

    def reason(self, state: State) -> str:
        return f"{self.first.reason(state)} and {self.second.reason(state)}"


@dataclass(frozen=True)
class MaxTime(Rule):
    """Stops at the first block border after this many seconds of work, including earlier sessions of the run.

    The time to compile kernels, in the first run on a machine, does not count.
    """

    seconds: float

    def __post_init__(self) -> None:
        _require_positive(self, seconds=self.seconds)

    def __call__(self, state: State) -> bool:
        return state.seconds >= self.seconds

    def share_done(self, state: State) -> float:
        return min(1.0, state.seconds / self.seconds)

    def reason(self, state: State) -> str:
        return f"the time limit of {self.seconds:g} s was reached"


@dataclass(frozen=True)
class _ProbesRule(Rule):
    n_probes: int

    def __post_init__(self) -> None:
        _require_positive(self, n_probes=self.n_probes)


class MaxProbes(_ProbesRule):
    """Stops after exactly this many probes; combined with ``&``, at the first block border after them."""

    @property
    def max_probes(self) -> int:  # type: ignore[override]
        return self.n_probes

    def __call__(self, state: State) -> bool:
        return state.n_probes >= self.n_probes

    def share_done(self, state: State) -> float:
        return min(1.0, state.n_probes / self.n_probes)

    def reason(self, state: State) -> str:
        return f"the limit of {self.n_probes:,} probes was reached"


class MinCoverage(_ProbesRule):
    """Stops once every feature was in, and out of, at least this many probes (2011, eq. 16)."""

    def __call__(self, state: State) -> bool:
        return state.n_probes >= 2 * self.n_probes and state.tally.covers(self.n_probes)

    def reason(self, state: State) -> str:
        return f"every feature was in and out of at least {self.n_probes:,} probes"


@dataclass(frozen=True)
class _ChangeRule(Rule):
    """Stops when a change since the previous look falls below the threshold."""

    threshold: float
    measure: ClassVar[str]
    words: ClassVar[str]

    def __post_init__(self) -> None:
        _require_positive(self, threshold=self.threshold)

    def __call__(self, state: State) -> bool:
        return state.look is not None and getattr(state.look, self.measure) < self.threshold

    def reason(self, state: State) -> str:
        change = getattr(state.look, self.measure, float("nan"))
        return f"{self.words.format(f'{change:.3g}')}, below {self.threshold:g}"


class OrderChange(_ChangeRule):
    """Stops when C, the mean change of a feature's position between looks, falls below the threshold.

    It may never stop (2013, proposition 1): combine it with a limit.
    """

    watch = frozenset({ORDER})
    measure, words = "order_change", "features moved by {} positions on average since the previous look"


class ValueChange(_ChangeRule):
    """Stops when C2, the mean change of the coefficients between looks, falls below the threshold."""

    watch = frozenset({VALUE})
    measure, words = "value_change", "coefficients changed by {} on average since the previous look"


@dataclass(frozen=True)
class RelativeChange(_ChangeRule):
    """Stops when C2 falls below this share of the first C2 (2013, condition 2a).

    Coefficients are means over equal numbers of probes, so at look k C2 is about sqrt(1 + 1/k) / (k + 1) of its first
    value, whatever the data: 0.01 is reached near look 141, which is 56,000 probes with 400 probes per look. The rule
    is therefore a number of probes in another form; `Settled` depends on the data.
    """

    threshold: float = 0.01
    watch = frozenset({VALUE})
    measure, words = "relative_change", "C2 fell to {} of its first value"


@dataclass(frozen=True)
class Settled(Rule):
    """Stops when odd and even blocks agree on this share of the top features at two looks in a row.

    The two halves of the ledger are independent runs, so a feature that ranks high in both does not do so by chance.
    With ``top`` at or above the number of features, two looks are enough; with an overlap above 1 the rule never stops.
    """

    top: int = 20
    overlap: float = 0.9

    def __post_init__(self) -> None:
        _require_positive(self, top=self.top, overlap=self.overlap)

    @property
    def watch(self) -> Watch:  # type: ignore[override]
        return frozenset({self.top})

    def __call__(self, state: State) -> bool:
        agreed = [look.overlap.get(self.top, 0.0) >= self.overlap for look in state.looks]
        return len(agreed) >= 2 and agreed[-1] and agreed[-2]

    def reason(self, state: State) -> str:
        share = state.look.overlap.get(self.top, 0.0) if state.look else 0.0
        return f"settled: two halves of the probes agree on {share:.0%} of the top {self.top} at two looks in a row"


@dataclass(frozen=True)
class FunctionRule(Rule):
    """A rule made of a function of a State; C and C2 are measured for it."""

    function: Callable[[State], bool]
    watch = frozenset({ORDER, VALUE})

    def __call__(self, state: State) -> bool:
        return bool(self.function(state))

    def reason(self, state: State) -> str:
        return f"{getattr(self.function, '__name__', 'the stopping function')} returned True"


def as_rule(stop: Rule | Callable[[State], bool]) -> Rule:
    """The rule itself, or a rule made of a function of a State."""
    if isinstance(stop, Rule):
        return stop
    if callable(stop) and not isinstance(stop, type):
        return FunctionRule(stop)
    raise ValueError(
        f"stop={stop!r} is not a stopping rule: use a rule of probewise.stopping, "
        "for example MaxProbes(8000) | MaxTime(60), or a function of a State"
    )


def _require_positive(rule: Rule, **values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{type(rule).__name__}({name}={value!r}): {name} must be above 0")
