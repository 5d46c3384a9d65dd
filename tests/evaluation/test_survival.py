"""Survival outcomes: residuals, concordance, the Cox model, and selectors on events and times."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import naive
from probewise import DAF, Tournament
from probewise.datasets import load
from probewise.evaluation import nested_score, size_curve
from probewise.evaluation.survival import Cox, KaplanMeier, concordance, error_of_guessing, hazard_ratio
from probewise.inference import associated
from probewise.report import summarize
from probewise.report.html import render_html
from probewise.report.markdown import render_markdown
from probewise.stopping import MaxProbes
from probewise.validation.parameters import outcome_array
from probewise.validation.survival import Survival

DTYPE = [("died", "?"), ("days", "f8")]


def outcome(n_rows, seed=0, *, ties=False, risk=0.0, censored=0.4):
    random = np.random.default_rng(seed)
    time = random.exponential(np.exp(-np.broadcast_to(risk, n_rows)))
    time = np.ceil(time * 4) if ties else time
    return Survival(random.random(n_rows) > censored, time)


def table(n_rows=120, n_features=40, seed=0, effect=1.2):
    """Features 0 and 1 change the hazard."""
    X = np.random.default_rng(seed).standard_normal((n_rows, n_features))
    return X, outcome(n_rows, seed + 1, risk=effect * (X[:, 0] - X[:, 1])).array


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("censored", [0.0, 0.6])
def test_residuals_and_concordance_equal_their_twins(ties, censored):
    y = outcome(40, ties=ties, censored=censored)
    residuals = y.residuals()
    np.testing.assert_allclose(residuals, naive.martingale_residuals(y.event, y.time), atol=1e-12)
    assert abs(residuals.sum()) < 1e-9
    risk = np.random.default_rng(1).integers(0, 6, 40).astype(float)
    assert concordance(y, risk) == pytest.approx(naive.concordance(y.event, y.time, risk))
    assert ties or concordance(y, -y.time) == 1.0


@pytest.mark.parametrize("ties", [False, True])
def test_cox_has_the_largest_likelihood(ties):
    X = np.random.default_rng(0).standard_normal((50, 3))
    y = outcome(50, ties=ties, risk=X[:, 0])
    model = Cox.fit(X, y, 2.0)

    def loss(beta):
        return -naive.cox_log_likelihood(beta, X, y.event, y.time, 2.0)

    np.testing.assert_allclose(model.coefficients, minimize(loss, np.zeros(3), tol=1e-12).x, atol=1e-4)


def test_cox_survives_separation_and_huge_values():
    y = Survival(np.ones(30, bool), np.arange(30.0))
    model = Cox.fit(np.column_stack([-y.time, 1e6 * y.time]), y, 1e-6)
    assert np.isfinite(model.coefficients).all()
    assert concordance(y, model.risk(np.column_stack([-y.time, 1e6 * y.time]))) > 0.99


def test_hazard_ratio_covers_the_true_one():
    x = np.random.default_rng(0).standard_normal(2000)
    ratio, low, high = hazard_ratio(x, outcome(2000, risk=0.7 * x))
    assert low < np.exp(0.7) < high
    assert high / low < 1.3
    assert low < ratio < high


def test_kaplan_meier_by_hand():
    curve = KaplanMeier.of(Survival(np.array([True, False, True, True]), np.array([1.0, 2.0, 3.0, 3.0])))
    at = np.searchsorted(curve.times, [0.5, 1.0, 2.5, 3.0], side="right") - 1
    np.testing.assert_allclose(curve.share[at], [1.0, 0.75, 0.75, 0.0])
    assert (curve.low <= curve.share).all()
    assert (curve.share <= curve.high).all()


@pytest.mark.parametrize(
    ("event", "time", "message"),
    [
        ([False, False, False], [1, 2, 3], "no events"),
        ([True, True, True], [2, 2, 2], "no two rows can be compared"),
        ([True, False, True], [1, -2, 3], "first: row 1, -2"),
        ([True, False, True], [1, np.nan, 3], "first: row 1, nan"),
    ],
)
def test_outcomes_without_information_are_refused(event, time, message):
    y = np.array(list(zip(event, time, strict=True)), dtype=DTYPE)
    with pytest.raises(ValueError, match=message):
        Tournament(1).fit(np.arange(6.0).reshape(3, 2), y)


def test_other_codes_of_the_event_are_refused():
    pandas = pytest.importorskip("pandas")
    y = pandas.DataFrame({"time": [1.0, 2.0, 3.0], "status": [1, 2, 2]})
    with pytest.raises(ValueError, match="event 2"):
        Tournament(1).fit(np.arange(6.0).reshape(3, 2), y)


@pytest.mark.parametrize("order", [["months", "died"], ["died", "months"]])
def test_a_frame_that_may_be_a_survival_outcome_is_not_taken_for_two_targets(order):
    pandas = pytest.importorskip("pandas")
    X, y = table(40, 6)
    frame = pandas.DataFrame({"months": y["time"], "died": y["event"].astype(int)})
    with pytest.raises(ValueError, match="'died' of 0 and 1 and 'months' of numbers: for events and times, call"):
        Tournament(1, n_probes=100).fit(X, frame[order])
    Tournament(1, n_probes=100).fit(X, frame[order].to_numpy())
    Tournament(1, n_probes=100).fit(X, pandas.DataFrame({"a": X[:, 0] > 0, "b": X[:, 1] > 0}).astype(int))
    Tournament(1, n_probes=100).fit(X, pandas.DataFrame(X[:, :2]))


def test_workers_and_interruptions_do_not_change_a_run(tmp_path):
    X, y = table(60, 30)
    options = {"n_probes": 400, "random_state": 0}
    whole, path = Tournament(2, **options).fit(X, y), tmp_path / "run.ledger"
    with pytest.warns(ConvergenceWarning, match="time limit"):
        Tournament(2, ledger=path, time_limit=1e-9, **options).fit(X, y)
    for again in (Tournament(2, ledger=path, **options), Tournament(2, n_jobs=2, **options)):
        again.fit(X, y)
        np.testing.assert_array_equal(again.scores_, whole.scores_)
        np.testing.assert_array_equal(again.ranking_, whole.ranking_)


def test_a_time_of_zero_and_events_in_all_rows_are_legal():
    X, y = table(40, 6)
    y["event"], y["time"][:2] = True, 0.0
    assert Tournament(2, n_probes=200, random_state=0).fit(X, y).support_[:2].all()


def test_arrays_and_frames_are_the_same_outcome():
    pandas = pytest.importorskip("pandas")
    X, y = table()
    frame = pandas.DataFrame({"time": y["time"], "event": y["event"].astype(int)})
    renamed = np.array(list(zip(y["time"], y["event"], strict=True)), dtype=[("t", "f8"), ("d", "?")])
    expected = Tournament(2, n_probes=500, random_state=0).fit(X, y)
    assert expected.support_[:2].all()
    for other in (frame, renamed, y.view()):
        np.testing.assert_array_equal(
            Tournament(2, n_probes=500, random_state=0).fit(X, other).scores_, expected.scores_
        )
    np.testing.assert_array_equal(outcome_array(frame), y)


def test_a_file_with_times_and_events_is_a_data_set(tmp_path):
    X, y = table(20, 3)
    np.savez(tmp_path / "trial.npz", X=X, time=y["time"], event=y["event"].astype(np.int8))
    np.testing.assert_array_equal(load("trial", tmp_path).y, y)


def test_daf_and_inference_take_survival():
    X, y = table()
    assert DAF(2, stop=MaxProbes(500), criterion="linear", random_state=0).fit(X, y).support_[:2].all()
    assert np.flatnonzero(associated(X, y, random_state=0).mask)[:2].tolist() == [0, 1]


def test_the_nested_score_is_a_concordance_index():
    X, y = table()
    tournament = Tournament(2, n_probes=500, random_state=0).fit(X, y)
    score = nested_score(tournament, X, y, repeats=1)
    assert score.curve.measure == "concordance"
    assert score.guess == 0.5
    assert score.mean > 0.7
    assert score.beats_guessing
    shuffled = y[np.random.default_rng(0).permutation(len(y))]
    noise = nested_score(Tournament(2, n_probes=500, random_state=0).fit(X, shuffled), X, shuffled, repeats=1)
    assert not noise.beats_guessing
    assert abs(noise.mean - 0.5) < 0.1
    assert size_curve(tournament, X, y, nested=True, n_probes=500).suggested <= 5
    assert 0.02 < error_of_guessing(Survival.of(y)) < 0.08


def test_the_report_compares_the_halves_by_predicted_risk():
    X, y = table()
    summary = summarize(Tournament(2, n_probes=500, random_state=0).fit(X, y), X, y)
    assert "ranked one at a time" not in summary["header"]["description"]  # by forward selection
    low, high = summary["survival"]["halves"]
    assert low["rows"] + high["rows"] == low["at_risk"][0] + high["at_risk"][0] == len(y)
    assert low["curve"]["y"][-1] > high["curve"]["y"][-1]
    ratio, lower, _ = summary["survival"]["hazard_ratio"]
    assert ratio > lower > 1
    columns = summary["ranking"]["columns"]
    row = columns["feature"].index("x0")
    assert columns["hazard_ratio"][row] > columns["hazard_ratio_low"][row] > 1
    for page in (render_html(summary), render_markdown(summary)):
        assert "higher is worse, hazard ratio" in page
        assert "the hazard of the half with the higher predicted risk is" in page


def test_too_few_events_cannot_be_cross_validated():
    X, y = table()
    y["event"] = np.arange(len(y)) < 6
    tournament = Tournament(2, n_probes=200, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="6 events are too few"):
        size_curve(tournament, X, y)


def test_scikit_survival_agrees():
    sksurv = pytest.importorskip("sksurv.linear_model")
    from sksurv.metrics import concordance_index_censored
    from sksurv.util import Surv

    X, y = table(effect=0.8)
    surv = Surv.from_arrays(y["event"], y["time"])
    model = sksurv.CoxPHSurvivalAnalysis(alpha=10.0).fit(X, surv)
    ours = Cox.fit(X, Survival.of(surv), 10.0)
    np.testing.assert_allclose(ours.coefficients, model.coef_, atol=1e-8)
    risk = ours.risk(X)
    assert concordance(Survival.of(y), risk) == concordance_index_censored(y["event"], y["time"], risk)[0]
