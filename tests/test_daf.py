"""DAF end to end: the features it finds, the results it stores, and resumed runs."""

import sys
import time

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, train_test_split
from sklearn.naive_bayes import GaussianNB

import naive
from probewise import BIF, DAF
from probewise.criteria import KNN
from probewise.datasets import make_madelon
from probewise.engine.ledger import LedgerError
from probewise.stopping import MaxProbes, MaxTime, Settled

MADELON = [28, 48, 64, 105, 128, 153, 241, 281, 318, 336, 338, 378, 433, 442, 451, 453, 455, 472, 475, 493]


def table(n=90, d=12, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d))
    X[:, [2, 7]] += 2.0 * y[:, None]
    return X, y


def daf(**options):
    options.setdefault("stop", MaxProbes(800))
    options.setdefault("random_state", 0)
    return DAF(**options)


@pytest.mark.parametrize("sampler", [{"max_probe_size": 4}, {"inclusion": 0.3}])
def test_coefficients_equal_the_twin_on_the_ledgers_probes(sampler):
    X, y = table()
    fitted = daf(**sampler).fit(X, y)
    subsets = [fitted.run_.feature_plan.probe(i) for i in range(800)]
    values = KNN(3).bind(X, y)(type(fitted.run_.feature_plan.draw(0, 1)).of(subsets))
    np.testing.assert_array_equal(fitted.run_.ledger.values(), values)
    for name in ("daf0", "daf1", "daf2", "daf0_centered", "daf2_centered"):
        twin = getattr(naive, name)(subsets, values, 12)
        np.testing.assert_allclose(fitted.run_.coefficient(name)[0], twin, rtol=1e-9)
        again = daf(coefficient=name, **sampler).fit(X, y)
        np.testing.assert_array_equal(again.scores_, fitted.run_.coefficient(name)[0])
        assert (again.run_.std_errors() > 0).all()
    np.testing.assert_allclose(fitted.run_.std_errors(), naive.welch(subsets, values, 12), rtol=1e-8)
    assert fitted.run_.feature_tally.counts.tolist() == [sum(f in s for s in subsets) for f in range(12)]


def test_attributes():
    X, y = table()
    fitted = daf().fit(X, y)
    assert fitted.n_probes_ == 800
    assert fitted.stop_reason_ == "the limit of 800 probes was reached"
    assert fitted.history_["probes"].tolist() == [400, 800]
    assert set(fitted.history_) == {"probes", "seconds", "order_change", "value_change", "relative_change", "left_out"}
    assert fitted.history_ is fitted.history_


def test_the_seed_decides():
    X, y = table()
    assert daf().fit(X, y).scores_.tolist() == daf().fit(X, y).scores_.tolist()
    assert daf().fit(X, y).scores_.tolist() != daf(random_state=1).fit(X, y).scores_.tolist()
    assert (
        daf(random_state=None).fit(X, y).run_.feature_plan.seed
        != daf(random_state=None).fit(X, y).run_.feature_plan.seed
    )
    states = [np.random.RandomState(4) for _ in range(2)]
    assert (
        daf(random_state=states[0]).fit(X, y).run_.feature_plan.seed
        == daf(random_state=states[1]).fit(X, y).run_.feature_plan.seed
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("criterion", "backend"),
    [
        ("knn", "threading"),
        (GaussianNB(), "threading"),
        ("knn", "loky"),
        pytest.param(GaussianNB(), "loky", marks=pytest.mark.exhaustive),
    ],
)
def test_any_kind_of_worker(criterion, backend):
    X, y = table()
    stop = MaxProbes(60)
    one = daf(criterion=criterion, stop=stop).fit(X, y)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        two = daf(criterion=criterion, stop=stop).fit(X, y)
    assert one.scores_.tobytes() == two.scores_.tobytes()


def test_permuted_columns_give_the_same_scores_within_their_errors():
    X, y = table()
    permutation = np.random.default_rng(3).permutation(12)
    plain, permuted = daf(stop=MaxProbes(4000)).fit(X, y), daf(stop=MaxProbes(4000)).fit(X[:, permutation], y)
    error = np.hypot(plain.std_errors_[permutation], permuted.std_errors_)
    assert (np.abs(permuted.scores_ - plain.scores_[permutation]) / error).max() < 4


def test_a_run_goes_on_from_its_ledger(tmp_path):
    X, y = table()
    path = tmp_path / "run.ledger"
    daf(stop=MaxProbes(130), ledger=path).fit(X, y)
    resumed = daf(ledger=str(path), n_jobs=2).fit(X, y)
    whole = daf().fit(X, y)
    assert resumed.scores_.tobytes() == whole.scores_.tobytes()
    assert resumed.run_.ledger.values().tobytes() == whole.run_.ledger.values().tobytes()
    seeded = daf(ledger=path, random_state=None).fit(X, y)
    assert seeded.run_.feature_plan.seed == 0
    assert seeded.run_.ledger.settings["version"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"random_state": 1}, "its seed is 0, not 1"),
        ({"criterion": KNN(5)}, "its criterion is"),
        ({"cv": 4}, "its folds is"),
        ({"max_probe_size": 3}, "its max_probe_size is 12, not 3"),
        ({"X": table(seed=9)[0]}, "its data is"),
        ({"y": 2 - table()[1]}, "its target is"),
    ],
)
def test_a_ledger_of_another_run_is_refused(tmp_path, change, words):
    X, y = table()
    daf(stop=MaxProbes(50), ledger=tmp_path / "run").fit(X, y)
    data = change.get("X", X), change.get("y", y)
    options = {name: value for name, value in change.items() if name not in ("X", "y")}
    with pytest.raises(LedgerError, match=words):
        daf(ledger=tmp_path / "run", **options).fit(*data)


def test_groups_and_other_splitters():
    X, y = table()
    groups = np.arange(90) // 9
    fitted = daf(cv=GroupKFold(3), stop=MaxProbes(50)).fit(X, y, groups=groups)
    expected = KNN(3).bind(X, y, GroupKFold(3), groups=groups)(fitted.run_.feature_plan.draw(0, 50))
    np.testing.assert_array_equal(fitted.run_.ledger.values(), expected)


def test_ctrl_c_gives_the_ranking_so_far():
    X, y = table()
    calls = []

    def interrupting(X, y):
        calls.append(1)
        if len(calls) > 203:
            raise KeyboardInterrupt
        return float(X.std())

    with pytest.warns(ConvergenceWarning, match="interrupted after 200 probes: this is the ranking so far"):
        fitted = daf(criterion=interrupting, stop=None).fit(X, y)
    assert fitted.n_probes_ == 200
    assert np.isfinite(fitted.scores_).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"coefficient": "daf3"}, "coefficient='daf3'"),
        ({"max_probe_size": 0}, "max_probe_size=0"),
        ({"max_probe_size": 2.5}, "max_probe_size=2.5"),
        ({"check_every": 0}, "check_every=0"),
        ({"inclusion": 0.0}, "inclusion=0.0"),
        ({"inclusion": 1.0}, "inclusion=1.0"),
        ({"stop": "soon"}, "stop='soon'"),
        ({"device": "gpu"}, "device='gpu' is not known: choose 'cpu', 'auto'"),
        ({"fdr": 0}, "fdr=0"),
        ({"cv": 1}, "cv=1 must be at least 2"),
        ({"scoring": "f1"}, "scoring='f1'"),
    ],
)
def test_bad_parameters_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        daf(**options).fit(*table())


def test_one_feature_has_no_coefficient_but_a_rank():
    X, y = table(d=12)
    fitted = DAF(random_state=0).fit(X[:, :1], y)
    assert np.isnan(fitted.scores_).all()
    assert fitted.ranking_.tolist() == [1]


def test_the_default_stop_settles():
    data = make_madelon(n_samples=200, n_features=60, random_state=1)
    fitted = DAF(20, random_state=0).fit(data.X, data.y)
    assert "settled" in fitted.stop_reason_ or "time limit" in fitted.stop_reason_
    assert fitted.n_probes_ % 400 == 0 or "time limit" in fitted.stop_reason_


def test_max_time_with_a_slow_criterion():
    X, y = table()

    def slow(X, y):
        time.sleep(0.02)
        return float(X.std())

    fitted = daf(criterion=slow, stop=MaxTime(0.5) | Settled(3)).fit(X, y)
    assert fitted.stop_reason_ == "the time limit of 0.5 s was reached"
    assert fitted.run_.ledger.seconds_at(fitted.n_probes_ - 5) < 0.5


@pytest.mark.slow
def test_daf_finds_what_bif_misses_on_madelons_recipe():
    data = make_madelon(n_samples=600, n_features=300, random_state=0)
    found = DAF(20, max_probe_size=150, stop=MaxProbes(3000), n_jobs=2, random_state=0).fit(data.X, data.y)
    alone = BIF(20, n_jobs=2).fit(data.X, data.y)
    assert found.support_[data.informative].sum() >= 15
    assert alone.support_[data.informative].sum() <= 8


@pytest.mark.slow
@pytest.mark.shared_data
def test_uci_madelon(real_data):
    """The 2011 paper's data: 4,000 probes put at least 16 of the 20 informative features into the top 20."""
    data = real_data("madelon")
    X, _, y, _ = train_test_split(data["X"], data["y"], test_size=0.5, stratify=data["y"], random_state=0)
    found = DAF(20, criterion="knn", max_probe_size=150, stop=MaxProbes(4000), n_jobs=2, random_state=0).fit(X, y)
    alone = BIF(20, criterion="knn", n_jobs=2).fit(X, y)
    assert found.support_[MADELON].sum() >= 16
    assert alone.support_[MADELON].sum() <= 10


def test_a_device_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    data = make_madelon(n_samples=60, n_features=20, random_state=0)
    for name in ("cuda", "torch-cpu"):
        with pytest.raises(ImportError, match=r"pip install 'probewise\[gpu\]', or use device='cpu'"):
            DAF(device=name).fit(data.X, data.y)
    options = {"criterion": "knn", "stop": MaxProbes(100), "random_state": 0}
    auto = DAF(device="auto", **options).fit(data.X, data.y)
    np.testing.assert_array_equal(auto.scores_, DAF(**options).fit(data.X, data.y).scores_)


def test_leaders_by_a_single_probe_are_warned_of():
    X, y = np.random.default_rng(0).standard_normal((30, 200)), np.arange(30) % 2
    with pytest.warns(ConvergenceWarning, match=r"\d+ of the first 10 features were in a single probe"):
        thin = DAF(stop=MaxProbes(40), max_probe_size=6, random_state=0).fit(X, y)
    assert np.isnan(thin.std_errors_[thin.run_.feature_tally.counts == 1]).all()


def test_time_that_is_over_unsettled_is_warned_of(monkeypatch):
    monkeypatch.setattr("probewise.daf.DEFAULT_STOP", Settled(top=20, overlap=1.0) | MaxTime(0.05))
    X, y = np.random.default_rng(0).standard_normal((60, 300)), np.arange(60) % 2
    with pytest.warns(ConvergenceWarning, match="the top 20 features had not settled after 60 s"):
        DAF(random_state=0).fit(X, y)
