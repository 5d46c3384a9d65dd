"""Rules stop when they say they do, join by | and &, and give their reason in words."""

import numpy as np
import pytest

from probewise.engine.probes import Subsets
from probewise.engine.tally import Tally
from probewise.stopping import (
    Look,
    MaxProbes,
    MaxTime,
    MinCoverage,
    OrderChange,
    RelativeChange,
    Settled,
    State,
    ValueChange,
    as_rule,
)


def state(n_probes=100, seconds=1.0, subsets=((0,), (1,)), **looked):
    tally = Tally.of(Subsets.of(subsets), np.zeros(len(subsets)), 2)
    looks = tuple(Look(n_probes=n_probes, seconds=seconds, **look) for look in looked.get("looks", ()))
    return State(n_probes, seconds, tally, looks)


@pytest.mark.parametrize(
    ("rule", "holds", "fails", "words"),
    [
        (MaxTime(5), state(seconds=5.0), state(seconds=4.9), "time limit of 5 s"),
        (MaxProbes(1000), state(1000), state(999), "limit of 1,000 probes"),
        (MinCoverage(2), state(4, subsets=[(0,), (1,)] * 2), state(4, subsets=[(0,), (1,), (0,)]), "at least 2"),
        (OrderChange(0.5), state(looks=[{"order_change": 0.4}]), state(looks=[{"order_change": 0.5}]), "0.4 positions"),
        (ValueChange(0.5), state(looks=[{"value_change": 0.4}]), state(looks=[{"value_change": 0.5}]), "by 0.4"),
        (RelativeChange(), state(looks=[{"relative_change": 0.009}]), state(looks=[{}]), "0.009 of its first"),
        (
            Settled(top=3, overlap=0.6),
            state(looks=[{"overlap": {3: 0.7}}, {"overlap": {3: 0.6}}]),
            state(looks=[{"overlap": {3: 0.5}}, {"overlap": {3: 1.0}}]),
            "60% of the top 3",
        ),
    ],
)
def test_each_rule(rule, holds, fails, words):
    assert rule(holds)
    assert not rule(fails)
    assert words in rule.reason(holds)


def test_rules_of_changes_wait_for_a_look():
    for rule in (OrderChange(1), ValueChange(1), RelativeChange(1), Settled(1)):
        assert not rule(state())
    assert not Settled(1)(state(looks=[{"overlap": {1: 1.0}}]))


def test_or_and_and():
    either, both = MaxProbes(10) | MaxTime(5), MaxProbes(10) & MaxTime(5)
    late, long, done = state(5, 6.0), state(20, 1.0), state(20, 6.0)
    assert [either(s) for s in (late, long, done)] == [True, True, True]
    assert [both(s) for s in (late, long, done)] == [False, False, True]
    assert either.reason(late) == "the time limit of 5 s was reached"
    assert both.reason(done) == "the limit of 10 probes was reached and the time limit of 5 s was reached"
    assert either.max_probes == 10
    assert both.max_probes is None
    assert (MaxProbes(10) | MaxProbes(7)).max_probes == 7
    assert (Settled(3) | OrderChange(1) & ValueChange(1)).watch == {3, "order", "value"}


def test_a_plain_function_is_a_rule():
    rule = as_rule(lambda state: state.n_probes > 50)
    assert rule(state(51))
    assert not rule(state(50))
    assert rule.watch == {"order", "value"}


@pytest.mark.parametrize("bad", ["soon", 100, MaxProbes])
def test_what_is_no_rule_is_refused(bad):
    with pytest.raises(ValueError, match="not a stopping rule"):
        as_rule(bad)


@pytest.mark.parametrize(
    "make", [lambda: MaxTime(0), lambda: MaxProbes(-1), lambda: ValueChange(0), lambda: Settled(0)]
)
def test_limits_must_be_positive(make):
    with pytest.raises(ValueError, match="must be above 0"):
        make()
