"""The plan of a tournament: what each round draws, J adjusted by round and size, and ranks by round."""

import numpy as np
import pytest

from probewise import Tournament
from probewise.datasets import make_madelon
from probewise.engine.ledger import Ledger, LedgerError
from probewise.engine.probes import ProbePlan
from probewise.engine.regression import Design
from probewise.engine.run import Run
from probewise.engine.schedule import FORWARD, Schedule, TournamentPlan
from probewise.engine.settings import Settings
from probewise.engine.tally import TallySheet

MADELON = make_madelon(n_samples=250, n_features=120, random_state=3)


@pytest.fixture(scope="module")
def whole():
    return Tournament(10, n_probes=1000, random_state=0).fit(MADELON.X, MADELON.y)


def test_a_plan_in_rounds_draws_what_each_round_may_hold():
    active = np.array([5, 1, 9, 30, 31, 32, 33, 34, 40, 41])
    plan = TournamentPlan(100, 40, seed=5).with_round(200, active).with_round(300, active[:4])
    together = plan.draw(0, 400)
    assert [len(part.active) for part in plan.rounds] == [100, 10, 4]
    assert together.sizes[:200].max() == 30
    assert together.sizes[200:300].max() == 3
    assert together.sizes[300:].max() == 1
    assert set(together.indices[together.offsets[200] : together.offsets[300]].tolist()) == set(active.tolist())
    assert set(together.indices[together.offsets[300] :].tolist()) == set(active[:4].tolist())
    for start, stop in ((0, 1), (150, 250), (199, 201), (290, 400)):
        part = plan.draw(start, stop)
        for i in range(start, stop):
            assert part[i - start].tolist() == together[i].tolist() == plan.probe(i).tolist()


def test_adjusted_is_by_round_and_size(whole):
    plan, ledger = whole.run_.feature_plan, whole.run_.ledger
    second = plan.rounds[1].start
    rest = Design(plan, ledger).values
    assert abs(rest[:second].mean()) < 1e-12
    assert abs(rest[second : plan.rounds[2].start].mean()) < 1e-12


def test_ctrl_c_keeps_the_rounds():
    def until(n_calls):
        calls = iter(range(n_calls))

        def criterion(X, y):
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return X.mean()

        return Tournament(10, n_probes=600, criterion=criterion, random_state=0)

    unbroken = until(600).fit(MADELON.X, MADELON.y)
    with pytest.warns(Warning, match="interrupted after 300 probes"):
        fitted = until(300).fit(MADELON.X, MADELON.y)
    started = [part for part in unbroken.run_.feature_plan.rounds if part.start <= 300]
    assert len(started) > 1
    assert [part.active.tolist() for part in fitted.run_.feature_plan.rounds] == [
        part.active.tolist() for part in started
    ]
    assert fitted.run_.ledger.values().tolist() == unbroken.run_.ledger.values()[:300].tolist()


def test_every_feature_is_probed_and_the_history_says_when_it_was_dropped(whole):
    left = whole.history_["dropped_in_round"]
    assert (left == 0).sum() == 20
    assert (whole.run_.feature_tally.counts > 0).all()


def test_a_group_leaves_as_one():
    options = {"feature_groups": [[0, 1, 2], [10, 11]], "random_state": 0}
    fitted = Tournament(10, n_probes=600, **options).fit(MADELON.X, MADELON.y)
    assert len(set(fitted.ranking_[[0, 1, 2]].tolist())) == 1
    assert fitted.history_["dropped_in_round"][0] == fitted.history_["dropped_in_round"][1]


def test_only_regression_is_a_coefficient_of_a_tournament(whole):
    with pytest.raises(ValueError, match="coefficient='daf0' is not defined for a tournament: use 'regression'"):
        whole.run_.coefficient("daf0")[0]


def test_the_ranking_puts_later_rounds_first():
    plan, scores = TournamentPlan(4, 2).with_round(50, np.array([1, 2])), np.array([9.0, 1.0, 2.0, 8.0])
    known = {"regression": (scores, scores)}
    run = Run(
        plan, Ledger(), TallySheet(4).view(), Settings.of_features(4), ranked_by="regression", _coefficients=known
    )
    assert run.ranking().tolist() == [3, 2, 1, 4]
    run.ledger.note(FORWARD, [1])
    assert run.ranking().tolist() == [3, 1, 2, 4]
    run.ledger.note(FORWARD, [0])
    with pytest.raises(LedgerError, match="order of its last features is impossible"):
        run.ranking()


def test_a_plain_plan_is_left_alone():
    ledger = Ledger()
    ledger.append(np.arange(400.0), seconds=1.0)
    plan = ProbePlan(100, 10)
    assert Schedule(800, (400,))(plan, ledger, 400) is plan
