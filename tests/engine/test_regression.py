"""The regression coefficient: equal to its dense twin, and right where the truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from probewise import DAF
from probewise.datasets import make_madelon
from probewise.engine import regression
from probewise.engine.ledger import Ledger
from probewise.engine.probes import ProbePlan
from probewise.engine.regression import PENALTIES, Design, Regression
from probewise.engine.schedule import Schedule, TournamentPlan
from probewise.engine.tally import mean_by_size
from probewise.stopping import MaxProbes
from sampling import examples


def run_of(plan, game, n_probes):
    """A ledger of a game: a function of a subset."""
    ledger = Ledger()
    ledger.append([game(subset) for subset in plan.draw(0, n_probes)], seconds=1.0)
    return ledger


def adjusted(plan, ledger):
    subsets, typical = plan.draw(0, ledger.n_probes), mean_by_size(plan, ledger, 0, ledger.n_probes)
    return subsets, ledger.values() - typical[subsets.sizes]


@examples(25)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_features=st.integers(2, 25),
    n_probes=st.integers(2, 120),
    penalty=st.sampled_from([0.05, 1.0, 30.0]),
    inclusion=st.sampled_from([None, 0.3]),
)
def test_equals_the_dense_twin(seed, n_features, n_probes, penalty, inclusion):
    rng = np.random.default_rng(seed)
    plan = ProbePlan(n_features, max(1, n_features // 2), inclusion, seed % 1000)
    weights = rng.normal(size=n_features)
    ledger = run_of(plan, lambda subset: weights[subset].sum() + rng.normal(), n_probes)
    subsets, z = adjusted(plan, ledger)
    truth = naive.regression(subsets, z, n_features, penalty)
    ours = Regression.of(plan, ledger, penalty=penalty).coefficients
    seen = np.isfinite(ours)
    np.testing.assert_allclose(ours[seen], truth[seen], rtol=1e-4, atol=1e-4 * np.abs(truth).max() + 1e-12)


def test_the_penalty_is_the_one_that_predicts_best():
    rng = np.random.default_rng(0)
    plan = ProbePlan(20, 10, seed=1)
    weights = rng.normal(size=20)
    ledger = run_of(plan, lambda subset: weights[subset].sum() + 3 * rng.normal(), 200)
    subsets, z = adjusted(plan, ledger)
    unit = Design(plan, ledger).unit
    missed = []
    for penalty in PENALTIES:
        total = 0.0
        for out in range(4):
            inside = np.arange(200) % 4 != out
            matrix = np.array([[float(f in set(s)) - len(s) / 20 for f in range(20)] for s in subsets])
            system = matrix[inside].T @ matrix[inside] + penalty * unit * 0.75 * np.eye(20)
            w = np.linalg.solve(system, matrix[inside].T @ z[inside])
            total += ((z - matrix @ w)[~inside] ** 2).sum()
        missed.append(total)
    assert Regression.of(plan, ledger).penalty == PENALTIES[int(np.argmin(missed))]


def test_an_additive_game_is_solved_where_a_difference_of_means_is_not():
    rng = np.random.default_rng(1)
    weights = rng.normal(size=40)
    plan = ProbePlan(40, 20, seed=2)
    ledger = run_of(plan, lambda subset: weights[subset].sum(), 400)
    ours = Regression.of(plan, ledger)
    daf0 = naive.daf0(list(plan.draw(0, 400)), ledger.values(), 40)
    truth = weights - weights.mean()
    assert 2 * np.std(ours.coefficients - truth) < np.std(daf0 - truth)


def test_standard_errors_are_those_of_repeated_runs():
    weights = np.linspace(-1, 1, 15)
    found, errors = [], []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        plan = ProbePlan(15, 8, seed=seed)
        ledger = run_of(plan, lambda subset, rng=rng: weights[subset].sum() + 2 * rng.normal(), 300)
        fitted = Regression.of(plan, ledger, penalty=0.01)
        found.append(fitted.coefficients)
        errors.append(fitted.std_errors)
    ratio = np.mean(errors, axis=0) / np.std(found, axis=0)
    assert 0.8 < ratio.mean() < 1.2


def test_probes_need_not_be_kept(monkeypatch):
    rng = np.random.default_rng(3)
    plan = ProbePlan(30, 10, seed=0)
    ledger = run_of(plan, lambda subset: subset.sum() + rng.normal(), 500)
    kept = Regression.of(plan, ledger)
    monkeypatch.setattr(regression, "MAX_STORED_INDICES", 0)
    replayed = Regression.of(plan, ledger)
    np.testing.assert_array_equal(kept.coefficients, replayed.coefficients)


@pytest.mark.parametrize("n_probes", [40, 400])
def test_features_in_no_probe_of_several_rounds(n_probes):
    """They share a column of the matrix: the weights are those of one column each."""
    rng, n_features = np.random.default_rng(0), 120
    plan = TournamentPlan(n_features, 4, seed=1).with_round(n_probes // 2, rng.permutation(n_features)[:70])
    plan = plan.with_round(n_probes * 3 // 4, plan.rounds[-1].active[::2])
    ledger = run_of(plan, lambda subset: subset.sum() + rng.normal(), n_probes)
    design = Design(plan, ledger)
    assert (len(design.roots) < n_features) == (n_probes == 40)
    ends, rows, z = [*(part.start for part in plan.rounds[1:]), n_probes], [], []
    for part, stop in zip(plan.rounds, ends, strict=True):
        typical = mean_by_size(plan, ledger, part.start, stop)
        for probe in range(part.start, stop):
            row, subset = np.zeros(n_features), plan.probe(probe)
            row[part.active] = -len(subset) / len(part.active)
            row[subset] += 1
            rows.append(row)
            z.append(ledger.values(probe, probe + 1)[0] - typical[len(subset)])
    matrix = np.array(rows)
    for ridge in (0.1, 10.0):
        truth = np.linalg.solve(matrix.T @ matrix + ridge * np.eye(n_features), matrix.T @ np.array(z))
        ours = Regression.of_design(design, ridge / design.unit, 1e-12)
        np.testing.assert_allclose(ours.coefficients, truth, atol=1e-9 * np.abs(truth).max())
    assert Design(plan, ledger).unit == pytest.approx(np.square(matrix).sum(axis=0)[plan.rounds[-1].active].mean())


def test_threads_and_what_was_read_before_change_no_bit(monkeypatch):
    monkeypatch.setattr(regression, "INDICES_PER_PIECE", 50)
    rng = np.random.default_rng(0)
    plan = TournamentPlan(60, 20, seed=1)
    schedule, threaded = (Schedule(500, (200, 300, 400), n_threads=n) for n in (None, 3))
    ledger = run_of(plan, lambda subset: subset.sum() + rng.normal(), 200)
    for n_probes in (200, 300, 400):
        fresh = Schedule(500, schedule.ends)(plan, ledger, n_probes)
        after = schedule(plan, ledger, n_probes)
        for other in (fresh, threaded(plan, ledger, n_probes)):
            np.testing.assert_array_equal(other.rounds[-1].active, after.rounds[-1].active)
        plan = after
        ledger.append([subset.sum() + rng.normal() for subset in plan.draw(n_probes, n_probes + 100)], seconds=1.0)
    before = schedule._last_design[0]
    assert Design(plan, ledger, before).read[2] is before.read[2]
    one, two, three = (rule.fit(plan, ledger) for rule in (schedule, threaded, Schedule(500, schedule.ends)))
    assert one.coefficients.tobytes() == two.coefficients.tobytes() == three.coefficients.tobytes()
    assert not schedule._last_design
    other = run_of(plan, lambda subset: rng.normal(), 500)
    assert not any(mine is theirs for mine, theirs in zip(Design(plan, other, before).read, before.read, strict=False))


def test_a_feature_never_probed_has_no_coefficient():
    plan = ProbePlan(1000, 2, seed=0)
    fitted = Regression.of(plan, run_of(plan, lambda subset: float(len(subset)), 20))
    seen = np.bincount(plan.draw(0, 20).indices, minlength=1000) > 0
    assert np.isfinite(fitted.coefficients[seen]).all()


def test_daf_ranks_by_it():
    data = make_madelon(n_samples=300, n_features=60, random_state=0)
    daf = DAF(20, coefficient="regression", stop=MaxProbes(1200), random_state=0).fit(data.X, data.y)
    np.testing.assert_array_equal(daf.scores_, daf.run_.coefficient("regression")[0])
    assert daf.support_[data.informative].sum() >= 15
    assert np.isfinite(daf.std_errors_).all()
    other = DAF(20, stop=MaxProbes(1200), random_state=0).fit(data.X, data.y)
    np.testing.assert_array_equal(other.run_.coefficient("regression")[0], daf.scores_)
    with pytest.raises(ValueError, match="coefficient='ols' must be 'daf0', 'daf1'"):
        DAF(coefficient="ols").fit(data.X, data.y)
