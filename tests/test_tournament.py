"""Tournament: its rounds against a literal twin, the laws of probing, protected features, and what it finds."""

import itertools
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive
from probewise import Tournament
from probewise.criteria import Linear
from probewise.datasets import make_madelon
from probewise.engine.ledger import Ledger, LedgerError
from probewise.engine.probes import Subsets
from probewise.engine.run import Run
from probewise.engine.schedule import KEPT_SHARE, N_LAST, LinearModel, Schedule, sizes_of_rounds
from probewise.engine.units import NO_COLUMNS
from probewise.report import render_markdown, summarize
from probewise.tournament import default_criterion, stepwise_columns
from probewise.validation.contents import copies_of_columns

DATA = make_madelon(120, 80, random_state=1)


def tournament(**options):
    return Tournament(10, **{"n_probes": 600, "random_state": 0, **options})


@pytest.fixture(scope="module")
def fitted():
    return tournament().fit(DATA.X, DATA.y)


def same(first, second):
    assert first.run_.ledger.values().tobytes() == second.run_.ledger.values().tobytes()
    assert first.scores_.tobytes() == second.scores_.tobytes()
    assert first.ranking_.tolist() == second.ranking_.tolist()


def shifted(shift):
    """DATA with every eighth column moved in one class, which a linear classifier sees."""
    return DATA.X + shift * DATA.X.std() * np.outer(DATA.y == 1, np.arange(80) % 8 == 0)


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_rounds_are_those_of_a_literal_twin(shift):
    """Who goes on, round by round, by dense ridge regressions over all probes so far, and on the table."""
    X = shifted(shift)
    X[:, [70, 75]] = X[:, [8]] * [1, -2] + [0, 3]
    fitted = tournament().fit(X, DATA.y)
    plan, values, schedule = fitted.run_.plan, fitted.run_.ledger.values(), fitted.run_.settings.schedule
    targets = np.array([DATA.y == label for label in np.unique(DATA.y)], dtype=float).T
    even = np.ones(len(targets))
    skill = naive.linear_skill(X, targets, even)
    assert (skill > 0.5) == (shift > 0)

    def linear_weights(part):
        return naive.linear_weights(X[:, part], targets, even)

    active = naive.tournament_rounds(plan, values, schedule, linear_weights, skill**2)
    assert [part.active.tolist() for part in plan.rounds] == active
    assert not len(schedule.copies)  # they are dropped first for numbers only


@pytest.mark.parametrize("sparse", [False, True])
def test_copies_are_those_of_a_literal_twin(sparse):
    """Multiples, negations and complements of a column, counts of words, columns without copies; no constant column."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(40, 30)), rng.poisson(0.2, size=(40, 60))]).astype(np.float32)
    X[:, [40, 3, 41]] = X[:, [7]] * [1, -1, 2]
    X[:, 50] = 1 - X[:, 60]
    expected = naive.copies_of_columns(X)
    assert {7, 40, 41, 60} <= set(expected)
    X[:, [10, 11]] = 2, 0
    table = sp.csr_matrix(X) if sparse else X
    assert copies_of_columns(table).tolist() == expected
    assert copies_of_columns(table[:, 12:30]).tolist() == []


def test_copies_are_dropped_after_the_first_round(tmp_path):
    """Three copies of each good feature would fill the places of others; protected copies are dropped as well."""
    rng, path = np.random.default_rng(0), tmp_path / "run.ledger"
    X = rng.normal(size=(220, 150)).astype(np.float32)
    y = X[:, :4].sum(axis=1) + 0.3 * rng.normal(size=220)
    X[:, 100:112] = np.tile(X[:, :4], 3)
    whole = tournament(ledger=path).fit(X, y)
    assert set(np.argsort(whole.ranking_)[:4]) == {0, 1, 2, 3}
    assert (whole.history_["dropped_in_round"][100:112] == 1).all()
    schedule = whole.run_.settings.schedule
    assert np.isin(schedule.copies, schedule.protected).any()
    with Ledger(path) as ledger:
        assert Run.read(ledger).ranking().tolist() == whole.ranking_.tolist()
    same(whole, tournament(ledger=path).fit(X, y))


@pytest.mark.parametrize("n_columns", [30, 90])
def test_the_linear_model_is_that_of_a_literal_twin(n_columns):
    """Weights and skill, with row weights, fewer and more columns than rows; blocks of columns; a unit of two."""
    rng = np.random.default_rng(0)
    X, weights, y = rng.normal(size=(50, n_columns)), rng.uniform(0.5, 1.5, 50), rng.integers(0, 3, 50)
    X[:, :5] += 2 * y[:, None]
    targets = (y[:, None] == np.arange(3)).astype(float)
    columns, active = Subsets.of([[0, 1], *[[k] for k in range(2, n_columns)]]), np.arange(n_columns - 1)
    skill = naive.linear_skill(X, targets, weights)
    values = naive.linear_weights(X, targets, weights)
    deviations = np.sqrt(np.average((X - np.average(X, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    assert skill > 0.1
    for table, sizes in ((X, values), (sp.csr_array(X), values * deviations)):
        expected = skill**2 * naive.standardized([sizes[:2].max(), *sizes[2:]])
        model = LinearModel(table, columns, targets, weights, None)
        np.testing.assert_allclose(model(active), expected, rtol=1e-8)
        order = rng.permutation(n_columns)
        moved = Subsets(np.argsort(order)[columns.indices].astype(np.int32), columns.offsets)
        again = LinearModel(table[:, order], moved, targets, weights, None)
        np.testing.assert_allclose(again(active), expected, rtol=1e-8)
    some = np.where(np.arange(50) < 40, weights, 0)
    left_out = LinearModel(X, columns, targets, some, None)
    without = LinearModel(X[:40], columns, targets[:40], weights[:40], None)
    np.testing.assert_allclose(left_out(active), without(active), rtol=1e-5, atol=1e-7)
    copies = np.repeat(np.arange(50), 1 + np.arange(50) % 3)
    copied = LinearModel(X[copies], columns, targets[copies], np.ones(len(copies)), None)
    counted = LinearModel(X, columns, targets, 1.0 + np.arange(50) % 3, None)
    np.testing.assert_allclose(copied(active), counted(active), rtol=1e-8)
    grouped = replace(copied, X=X[copies] + rng.normal(size=(len(copies), n_columns)), groups=copies)
    assert grouped.share < replace(grouped, groups=None).share


def test_the_weights_of_the_linear_classifier_are_in_the_ledger(tmp_path):
    """Any workers, a resumed run and a run that is read without its data rank alike; damage is an error."""
    X, path = shifted(1.0), tmp_path / "run.ledger"
    whole = tournament(ledger=path).fit(X, DATA.y)
    assert whole.run_.settings.schedule.model.share > 0.25
    same(whole, tournament(n_jobs=2).fit(X, DATA.y))
    with Ledger(path) as ledger:
        settings, values, again = ledger.settings, ledger.values(), Run.read(ledger)
    assert again.ranking().tolist() == whole.ranking_.tolist()
    path.unlink()
    first = {name: value for name, value in settings.items() if name not in ("stopped", "weights")}
    with Ledger(path, first | {"weights": settings["weights"][:2]}) as ledger:
        ledger.append(values[:250], seconds=0.1)
    same(whole, tournament(ledger=path).fit(X, DATA.y))
    for damage in (7, ["A"], [7], ["AAAA"], 5 * [""]):
        with Ledger(path) as ledger:
            ledger.settings["weights"] = damage
            with pytest.raises(LedgerError, match="damaged: its weights are impossible"):
                Run.read(ledger)


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "on_device", "expected"),
    [
        (100, 300, False, 12_000),
        (400, 300, False, 4_500),
        (1000, 300, False, 2_000),
        (400, 5000, False, 5_000),
        (2500, 4000, False, 2_500),
        (2500, 1000, True, 4_000),
        (2500, 4000, True, 10_000),
    ],
)
def test_the_default_budget_follows_rows_columns_and_device(n_rows, n_columns, on_device, expected, monkeypatch):
    monkeypatch.setattr(Tournament, "_protected", lambda *_: NO_COLUMNS)  # the filters take seconds
    if on_device:
        monkeypatch.setattr("probewise.tournament.OnDevice", object)  # every score counts as one on a device
    X = np.random.default_rng(0).normal(size=(n_rows, n_columns)).astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="the time limit was reached"):
        stopped = Tournament(10, criterion=Linear(), cv=3, time_limit=1e-9).fit(X, np.arange(n_rows) % 2)
    assert stopped.run_.settings.schedule.n_probes == expected


def test_ranks_go_by_the_round_reached_and_then_by_the_coefficient(fitted):
    left = fitted.history_["dropped_in_round"]
    order = np.argsort(fitted.ranking_)
    reached = np.where(left == 0, 99, left)[order]
    assert (np.diff(reached) <= 0).all()
    coefficients = fitted.run_.coefficient()[0]
    for number in np.unique(reached):
        assert (np.diff(coefficients[order][reached == number]) <= 0).all()
    assert np.isfinite(fitted.scores_).tolist() == (fitted.history_["dropped_in_round"] == 0).tolist()


@given(st.integers(1, 10**6), st.integers(1, 50_000), st.sampled_from([1, 5, 50, 4000]))
def test_a_budget_is_spent_on_rounds_of_whole_blocks(n_units, n_probes, block_size):
    schedule = Schedule.of_budget(n_units, n_probes, block_size)
    sizes = sizes_of_rounds(n_units, len(schedule.ends))
    assert len(sizes) == len(schedule.ends) + 1
    assert sizes[0] == n_units
    assert all(N_LAST <= after < before for before, after in itertools.pairwise(sizes))
    assert all(end % block_size == 0 for end in schedule.ends)
    assert all(before < after for before, after in itertools.pairwise([0, *schedule.ends, n_probes]))
    if n_probes > 100 * block_size:
        assert sizes[-1] == min(n_units, N_LAST)
        assert all(after >= int(KEPT_SHARE * before) for before, after in itertools.pairwise(sizes))


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_any_workers_give_the_same_bits(fitted, backend):
    with joblib.parallel_config(backend=backend):
        same(fitted, tournament(n_jobs=2).fit(DATA.X, DATA.y))


@pytest.mark.parametrize("n_first", [30, 37, 100, 333, 600])
def test_a_run_that_went_on_is_the_run(fitted, tmp_path, n_first):
    """Broken off inside of a round, or of a block."""
    path = tmp_path / "run.ledger"
    tournament(ledger=path).fit(DATA.X, DATA.y)
    with Ledger(path) as whole:
        settings, values = whole.settings, whole.values()
    path.unlink()
    with Ledger(path, {name: value for name, value in settings.items() if name != "stopped"}) as ledger:
        ledger.append(values[:n_first], seconds=0.1)
    same(fitted, tournament(ledger=path).fit(DATA.X, DATA.y))


SESSION = """
import sys
from probewise import Tournament
from probewise.criteria import Linear
from probewise.datasets import make_madelon
data = make_madelon(120, 80, random_state=1)
print("ready", flush=True)
Tournament(10, n_probes=60_000, random_state=0, ledger=sys.argv[1]).fit(data.X, data.y)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is of POSIX")
def test_killed_and_resumed(tmp_path):
    path = tmp_path / "run.ledger"
    with subprocess.Popen(
        [sys.executable, "-c", SESSION, str(path)], stdout=subprocess.PIPE, env=os.environ
    ) as process:
        process.stdout.readline()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not Path(f"{path}-wal").exists():
            time.sleep(0.01)
        time.sleep(0.3)
        process.kill()
    options = {"n_probes": 60_000, "time_limit": 0.2}
    with pytest.warns(ConvergenceWarning, match="the time limit was reached"):
        resumed = tournament(ledger=path, **options).fit(DATA.X, DATA.y)
    with pytest.warns(ConvergenceWarning, match="the time limit was reached"):
        unbroken = tournament(n_probes=60_000, time_limit=1.0).fit(DATA.X, DATA.y)
    n_known = min(resumed.n_probes_, unbroken.n_probes_)
    assert resumed.n_probes_ >= 50
    assert resumed.run_.ledger.values(0, n_known).tobytes() == unbroken.run_.ledger.values(0, n_known).tobytes()


def test_a_ledger_says_what_its_selector_says(tmp_path):
    kept = tournament(ledger=tmp_path / "run.ledger").fit(DATA.X, DATA.y)
    with Ledger(tmp_path / "run.ledger") as ledger:
        again = Run.read(ledger)
    assert again.ranking().tolist() == kept.ranking_.tolist()
    ours, theirs = summarize(kept, inference=False), summarize(tmp_path / "run.ledger", coefficient="regression")
    assert ours["ranking"] == theirs["ranking"]
    assert theirs["header"]["method"] == "Tournament"
    assert "Rounds with 80, 56, 39" in render_markdown(theirs)


def test_filters_protect_features_while_many_are_in():
    data = make_madelon(200, 600, random_state=0)
    fitted = Tournament(20, n_probes=400, random_state=0).fit(data.X, data.y)
    schedule = fitted.run_.settings.schedule
    assert 30 <= len(schedule.protected) <= 150
    for part in fitted.run_.plan.rounds:
        if len(part.active) > max(schedule.protected_above, len(schedule.protected)):
            assert np.isin(schedule.protected, part.active).all()
    few = Tournament(n_probes=40).fit(data.X[:150], data.y[:150])
    assert not len(few.run_.settings.schedule.protected)


def test_a_pair_that_acts_together_stays_until_the_last_round(tmp_path):
    """Two features that are informative only together, among so many that few probes have both; nothing on noise."""
    random = np.random.default_rng(0)
    signs = random.choice([-1.0, 1.0], (220, 2))
    X = random.standard_normal((220, 1500))
    X[:, [7, 900]] = signs + 0.3 * X[:, [7, 900]]
    y = signs.prod(axis=1) > 0
    found = Tournament(n_probes=400, ledger=tmp_path / "run.ledger", random_state=0).fit(X, y)
    with Ledger(tmp_path / "run.ledger") as ledger:
        assert Run.read(ledger).settings.schedule.paired.tolist() == [7, 900]
    assert found.ranking_[[7, 900]].max() <= N_LAST
    noise = Tournament(n_probes=400, random_state=0).fit(X, random.permutation(y))
    assert not len(noise.run_.settings.schedule.paired)


def test_the_protected_features_are_the_same_each_time_where_relieff_looks_at_some_rows(monkeypatch):
    monkeypatch.setattr("probewise.tournament.RELIEF_CELLS", 20 * 60 * 130)
    monkeypatch.setattr("probewise.tournament.MIN_ROWS_TO_PROTECT", 60)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 130)), np.arange(60) % 2
    first, again = (Tournament(5, n_probes=400, random_state=0).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.run_.settings.schedule.protected, again.run_.settings.schedule.protected)
    assert first.scores_.tobytes() == again.scores_.tobytes()


@pytest.mark.slow
def test_it_finds_madelon_with_an_eighth_of_the_probes():
    data = make_madelon(random_state=0)
    found = Tournament(20, n_probes=1000, random_state=0).fit(data.X, data.y)
    assert found.support_[data.informative].sum() >= 17


def test_a_class_of_two_rows():
    X, y = DATA.X[:60], DATA.y[:60].copy()
    y[:2] = 7
    assert tournament(n_probes=100).fit(X, y).n_probes_ == 100


def sampled_rows(selector):
    return selector._sample_of_rows(selector._data, selector.run_.plan.seed)


def test_of_many_rows_a_sample_is_used(tmp_path, monkeypatch):
    """Each class in its share; weights, groups and protected features follow; another seed is another sample."""
    monkeypatch.setattr("probewise.tournament.MAX_ROWS", 60)
    y, weights = np.repeat([0, 1, 2], [60, 40, 20]), np.linspace(0.5, 2, 120)
    options = {"n_probes": 100, "scale": None, "ledger": tmp_path / "run"}
    fitted = tournament(**options).fit(DATA.X, y, sample_weight=weights)
    rows = sampled_rows(fitted)
    assert np.bincount(y[rows]).tolist() == [30, 20, 10]
    criterion = fitted.criterion_.bind(DATA.X[rows], y[rows], "loo", scoring="probability", sample_weight=weights[rows])
    assert criterion(fitted.run_.feature_plan.draw(0, 20)).tobytes() == fitted.run_.ledger.values(0, 20).tobytes()
    resumed = tournament(**options).fit(DATA.X, y, sample_weight=weights)
    same(fitted, resumed)
    assert (sampled_rows(tournament(n_probes=20, random_state=1).fit(DATA.X, y)) != rows).any()
    splits = [(np.arange(60), np.arange(60, 120))]
    assert sampled_rows(tournament(n_probes=20, cv=splits).fit(DATA.X, DATA.y)) is None
    settings = Run.read(Ledger(tmp_path / "run")).settings
    assert (settings.shape, settings.rows_used) == ((120, 80), 60)


def test_numbers_to_predict():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 60))
    y = X[:, 3] - 2 * X[:, 17] + 0.1 * rng.normal(size=80)
    best = Tournament(2, n_probes=400, random_state=0).fit(X, y)
    assert set(best.get_support(indices=True)) == {3, 17}


@pytest.mark.parametrize("n_probes", [600, 605])  # 605 probes end inside a block
def test_the_last_features_for_a_number_are_ranked_by_forward_selection(tmp_path, n_probes):
    """Copies of a good feature do not follow it; the order equals a twin's, for any workers and without the data."""
    rng, path = np.random.default_rng(0), tmp_path / "run.ledger"
    tournament = partial(Tournament, 10, n_probes=n_probes, random_state=0)
    X = rng.normal(size=(60, 40))
    y = 3 * X[:, 0] + 2 * X[:, 1] + 0.3 * rng.normal(size=60)
    X[:, 10:15] = X[:, [0]] + 0.05 * rng.normal(size=(60, 5))
    whole = tournament(ledger=path).fit(X, y)
    order = np.argsort(whole.ranking_)
    by_score = np.argsort(-np.nan_to_num(whole.scores_, nan=-np.inf))[:N_LAST]
    assert 1 in order[:2]
    assert 1 not in by_score[:2]
    score = default_criterion(60).bind(X, y, "loo")
    twin = naive.forward_order(lambda subset: score(Subsets.of([subset]))[0], by_score, 60)
    assert order[:N_LAST].tolist() == twin
    same(whole, tournament(n_jobs=2).fit(X, y))
    with Ledger(path) as ledger:
        settings, values, again = ledger.settings, ledger.values(), Run.read(ledger)
    assert again.ranking().tolist() == whole.ranking_.tolist()
    assert "ranked one at a time" in summarize(whole, inference=False)["header"]["description"]
    path.unlink()
    del settings["stopped"], settings["forward"]
    with Ledger(path, settings) as ledger:
        ledger.append(values, seconds=0.1)
    same(whole, tournament(ledger=path).fit(X, y))
    for damage in (7, [40], [-1], ["a"], {"a": 1}):
        with Ledger(path) as ledger:
            ledger.note("forward", damage)
        with Ledger(path) as ledger, pytest.raises(LedgerError, match="its last features"):
            Run.read(ledger).ranking()
    assert "forward" not in tournament(scoring="neg_mean_squared_error").fit(X, y).run_.ledger.settings


def test_sparse_text():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.poisson(0.2, size=(100, 70)).astype(np.float32))
    y = (X[:, 4].toarray().ravel() > 0).astype(int)
    assert tournament(n_probes=300).fit(X, y).ranking_[4] == 1


def test_any_criterion():
    for criterion in ("knn", "linear", "naive_bayes", LogisticRegression()):
        assert tournament(criterion=criterion, n_probes=60).fit(DATA.X, DATA.y).n_probes_ == 60


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_probes": 0}, "n_probes=0 must be a whole number of at least 1"),
        ({"n_probes": "many"}, "n_probes='many' must be"),
        ({"time_limit": 0}, "time_limit=0 must be a number above 0 or None"),
    ],
)
def test_bad_input_is_named(options, words):
    with pytest.raises(ValueError, match=words):
        tournament(**options).fit(DATA.X, DATA.y)


def test_time_ends_it_with_the_ranking_so_far():
    with pytest.warns(ConvergenceWarning, match="limit was reached after .* of 10,000,000 probes: more probes"):
        fitted = tournament(n_probes=10**7, time_limit=0.5).fit(DATA.X, DATA.y)
    assert 0 < fitted.n_probes_ < 10**7
    assert sorted(fitted.ranking_) == list(range(1, 81))


# With more probes a weighted row differs from copies of it: weights count in the score, but not in the votes of k-NN.
@pytest.mark.filterwarnings("ignore:.*rows are nearly equal")  # the check repeats rows
@parametrize_with_checks([Tournament(n_probes=60, random_state=0)])
def test_sklearn_checks(estimator, check):
    check(estimator)


def test_stepwise_regression_takes_no_copy_of_x():
    random = np.random.default_rng(0)
    X = random.standard_normal((100, 50_000), dtype=np.float32)
    y = X[:, 3] + X[:, 7] + 0.5 * random.standard_normal(100)
    tracemalloc.start()
    try:
        assert set(stepwise_columns(SimpleNamespace(matrix=X, y=y))) >= {3, 7}
        assert tracemalloc.get_traced_memory()[1] < X.nbytes
    finally:
        tracemalloc.stop()
