"""Narrowing: equal to its literal twin, the laws of a run, and what it must not lose."""

import numpy as np
import pytest
from joblib import parallel_config

import naive
from probewise import DAF
from probewise.criteria import KNN
from probewise.datasets import make_madelon, make_xor
from probewise.engine.ledger import Ledger, LedgerError
from probewise.engine.probes import ProbePlan
from probewise.engine.replay import adjusted
from probewise.engine.schedule import (
    PENALTY,
    Narrowing,
    PlanInRounds,
    enough_agreement,
    pooled_differences,
    ranked,
)
from probewise.report import summarize
from probewise.stopping import MaxProbes, Settled

MADELON = make_madelon(n_samples=250, n_features=120, random_state=3)


def narrowed(n_probes=3000, **options):
    options = {"narrow": 0.6, "criterion": KNN(3), "stop": MaxProbes(n_probes), "random_state": 0} | options
    return DAF(10, **options)


@pytest.fixture(scope="module")
def whole():
    return narrowed().fit(MADELON.X, MADELON.y)


# ---- the plan


def test_a_plan_in_rounds_draws_what_each_round_may_hold():
    active = np.array([5, 1, 9, 30, 31, 32, 33, 34])
    plan = PlanInRounds(100, 40, seed=5).narrowed(200, active).narrowed(300, active[:4])
    together = plan.draw(0, 400)
    assert [len(part.active) for part in plan.rounds] == [100, 8, 4]
    assert together.sizes[:200].max() <= 40
    assert together.sizes[200:300].max() <= 4
    assert set(together.indices[together.offsets[200] : together.offsets[300]].tolist()) == set(active.tolist())
    assert set(together.indices[together.offsets[300] :].tolist()) == set(active[:4].tolist())
    for start, stop in ((0, 1), (150, 250), (199, 201), (290, 400)):
        part = plan.draw(start, stop)
        for i in range(start, stop):
            assert part[i - start].tolist() == together[i].tolist() == plan.probe(i).tolist()


def test_one_probe_in_four_is_of_each_scale():
    sizes = PlanInRounds(1000, 400, seed=1).draw(0, 4000).sizes
    for remainder, largest in enumerate((400, 200, 100, 50)):
        mine = sizes[remainder::4]
        assert mine.min() == 1
        assert largest * 0.9 < mine.max() <= largest
        assert abs(mine.mean() - largest / 2) < 0.05 * largest


# ---- the twin


def test_rounds_equal_the_literal_twin(whole):
    plan, values = whole.plan_, whole.ledger_.values()
    assert len(plan.rounds) >= 3
    rounds = [(0, list(range(120)))]
    for n_probes in range(400, 2801, 400):
        so_far = PlanInRounds(120, plan.max_size, seed=plan.seed)
        for first, features in rounds[1:]:
            so_far = so_far.narrowed(first, np.array(features))
        subsets = list(so_far.draw(0, n_probes))
        ledger = Ledger()
        ledger.append(values[:n_probes], seconds=0.0)
        rest = np.concatenate([part for _, part in adjusted(so_far, ledger)])
        options = {"block_size": whole.run_.record.block_size, "share": 0.6, "fewest": 40, "penalty": PENALTY}
        enough = enough_agreement(len(rounds[-1][1]))
        kept = naive.next_round(subsets, rest, rounds, 120, enough=enough, **options)
        if kept is not None:
            rounds.append((n_probes, kept))
    ours = [(part.start, part.active.tolist()) for part in plan.rounds]
    assert ours == rounds


@pytest.mark.slow
def test_pooled_differences_count_the_rounds_a_feature_was_in(whole):
    plan, ledger = whole.plan_, whole.ledger_
    scores, errors = pooled_differences(plan, ledger)
    subsets, rest = [], []
    for part, values in adjusted(plan, ledger):
        subsets += list(part)
        rest += values.tolist()
    last, ends = plan.last_rounds(), [*(part.start for part in plan.rounds[1:]), ledger.n_probes]
    for number, end in enumerate(ends):
        mine = last == number
        np.testing.assert_allclose(
            scores[mine], naive.daf0(subsets[:end], rest[:end], 120)[mine], rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(errors[mine], naive.welch(subsets[:end], rest[:end], 120)[mine], rtol=1e-6)
    np.testing.assert_array_equal(whole.scores_, scores)


def test_adjusted_is_by_round_and_size(whole):
    plan, ledger = whole.plan_, whole.ledger_
    second = plan.rounds[1].start
    rest = np.concatenate([values for _, values in adjusted(plan, ledger)])
    assert abs(rest[:second].mean()) < 1e-12
    assert abs(rest[second : plan.rounds[2].start].mean()) < 1e-12


# ---- laws


@pytest.mark.parametrize(
    ("n_jobs", "backend"), [(3, "threading"), pytest.param(2, "loky", marks=pytest.mark.exhaustive)]
)
def test_any_number_and_kind_of_workers(whole, n_jobs, backend):
    """Processes are made anew for each round: in what is run every time those of Tournament are enough."""
    with parallel_config(backend=backend):
        fitted = narrowed(n_jobs=n_jobs).fit(MADELON.X, MADELON.y)
    assert fitted.ledger_.values().tobytes() == whole.ledger_.values().tobytes()
    assert fitted.ranking_.tolist() == whole.ranking_.tolist()


def test_stopped_and_resumed_equals_uninterrupted(tmp_path, whole):
    path = tmp_path / "run"
    for n_probes in (130, 400, 1777, 3000):  # inside a block, at a look, in a later round
        fitted = narrowed(n_probes, ledger=path).fit(MADELON.X, MADELON.y)
    assert fitted.ledger_.values().tobytes() == whole.ledger_.values().tobytes()
    assert fitted.scores_.tobytes() == whole.scores_.tobytes()
    assert [part.active.tolist() for part in fitted.plan_.rounds] == [
        part.active.tolist() for part in whole.plan_.rounds
    ]
    for options in ({"check_every": 800}, {"block_size": 100}):  # rounds would begin elsewhere, or of other halves
        with pytest.raises(LedgerError, match=r"narrow_(looks|blocks)"):
            narrowed(ledger=path, **options).fit(MADELON.X, MADELON.y)
    with pytest.raises(LedgerError, match="narrow"):
        narrowed(narrow=0.7, ledger=path).fit(MADELON.X, MADELON.y)
    with pytest.raises(LedgerError, match="narrow"):
        narrowed(narrow=None, ledger=path).fit(MADELON.X, MADELON.y)


def test_the_ledger_alone_tells_the_same(tmp_path, whole):
    narrowed(ledger=tmp_path / "run").fit(MADELON.X, MADELON.y)
    told = summarize(tmp_path / "run")["ranking"]["columns"]
    assert told["feature"] == [f"x{column}" for column in np.argsort(whole.ranking_, kind="stable")]


def test_ctrl_c_keeps_the_rounds(whole):
    probes = []

    def until(state):
        probes.append(state.n_probes)
        if state.n_probes >= 2050:
            raise KeyboardInterrupt
        return False

    with pytest.warns(Warning, match="interrupted after 2,050 probes"):
        fitted = narrowed(stop=until).fit(MADELON.X, MADELON.y)
    started = [part for part in whole.plan_.rounds if part.start <= 2050]
    assert [part.active.tolist() for part in fitted.plan_.rounds] == [part.active.tolist() for part in started]
    assert fitted.ledger_.values().tolist() == whole.ledger_.values()[:2050].tolist()


# ---- what comes out


def test_those_that_left_rank_behind_with_their_round_in_the_history(whole):
    left = whole.history_["left_in_round"]
    n_rounds = len(whole.plan_.rounds)
    assert (left == 0).sum() == 40
    order = np.argsort(whole.ranking_)
    lasted = np.where(left[order] == 0, n_rounds, left[order])
    assert (np.diff(lasted) <= 0).all()
    assert (whole.tally_.counts > 0).all()
    assert len(whole.history_["probes"]) == 7


@pytest.mark.filterwarnings("error")
def test_narrow_is_on_its_way_out():
    with pytest.raises(FutureWarning, match="narrow leaves DAF with the next release: use Tournament"):
        narrowed().fit(MADELON.X, MADELON.y)


def test_ranked_puts_later_rounds_first():
    plan = PlanInRounds(4, 2).narrowed(50, np.array([1, 2]))
    assert ranked(plan, np.array([9.0, 1.0, 2.0, 8.0])).tolist() == [2, 1, 0, 3]


@pytest.mark.exhaustive  # docs/fewer-probes.md prints the same, and is run every time
def test_it_finds_more_of_the_truth():
    data = make_madelon(n_samples=500, n_features=200, random_state=0)
    truth, found = set(data.informative.tolist()), {}
    for narrow, coefficient in ((None, "daf0"), ("auto", "regression")):
        daf = DAF(20, narrow=narrow, coefficient=coefficient, criterion=KNN(3), stop=MaxProbes(6000), random_state=1)
        kept = np.flatnonzero(daf.fit(data.X, data.y).support_)
        found[narrow] = len(truth & set(kept.tolist()))
    assert found["auto"] >= 17 > found[None] + 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_an_xor_pair_is_not_lost(seed):
    data = make_xor(600, 150, random_state=seed)
    daf = narrowed(8000, max_probe_size=75, coefficient="regression").fit(data.X, data.y)
    assert len(daf.plan_.rounds) > 1
    assert sorted(daf.ranking_[data.informative].tolist()) == [1, 2]


def test_without_evidence_nothing_is_dropped():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(4000)
    ledger = Ledger()
    ledger.append(values, seconds=1.0)
    plan = PlanInRounds(200, 100, seed=1)
    assert all(Narrowing(0.6)(plan, ledger, n_probes) is plan for n_probes in range(400, 4001, 400))


def test_few_features_are_never_narrowed_and_many_asked_for_stay():
    X, y = MADELON.X, MADELON.y
    assert len(narrowed().fit(X[:, :40], y).plan_.rounds) == 1
    fitted = narrowed(n_probes=3000).set_params(n_features_to_select=45).fit(X, y)
    assert min(len(part.active) for part in fitted.plan_.rounds) >= 90


def test_groups_and_settled_go_with_it():
    groups = [[0, 1, 2], [10, 11]]
    stop = Settled(10, 0.8) | MaxProbes(3000)
    fitted = narrowed(stop=stop, feature_groups=groups, drop=[5]).fit(MADELON.X, MADELON.y)
    assert len(set(fitted.ranking_[[0, 1, 2]].tolist())) == 1
    assert fitted.history_["left_in_round"][0] == fitted.history_["left_in_round"][1]


def test_a_plain_plan_is_left_alone():
    ledger = Ledger()
    ledger.append(np.arange(400.0), seconds=1.0)
    plan = ProbePlan(100, 10)
    assert Narrowing(0.6)(plan, ledger, 400) is plan
