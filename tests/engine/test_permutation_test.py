"""The univariate permutation test equals its naive twin, and noise seldom stands out."""

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from probewise import DAF, Tournament
from probewise.engine.certainty import discoveries
from probewise.engine.permutation_test import univariate_p_values
from probewise.stopping import MaxProbes


def table(n_rows=40, n_features=12, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n_rows) % 2
    X = random.standard_normal((n_rows, n_features))
    X[:, :2] += 1.5 * y[:, None]
    return X, y


@pytest.mark.parametrize("kind", ["two classes", "three classes", "numbers"])
def test_what_a_feature_tells_alone_equals_its_twin(kind, monkeypatch):
    monkeypatch.setattr("probewise.engine.permutation_test.MAX_SHUFFLES", 20)
    X, y = table(24, 7)
    y = {"two classes": y, "three classes": np.arange(24) % 3, "numbers": X[:, 1] + y}[kind]
    ours = univariate_p_values(X, y, of_classes=kind != "numbers", seed=3)
    np.testing.assert_allclose(ours, naive.univariate_p_values(X, y, kind != "numbers", 3, 20), rtol=1e-9)
    assert univariate_p_values(sp.csc_array(X), y, of_classes=kind != "numbers", seed=3).tolist() == ours.tolist()


@pytest.mark.parametrize("odd", [0.0, 1e6])
def test_counted_or_sorted_the_chances_are_the_same(odd, monkeypatch):
    X, y = np.random.default_rng(0).standard_normal((40, 60)), np.arange(40) % 2
    X[0, :20] += odd  # rows with all the leverage have scores far below 0
    counted = univariate_p_values(X, y, of_classes=True, seed=0)
    monkeypatch.setattr("probewise.engine.permutation_test.MAX_DISTINCT", 0)
    assert univariate_p_values(X, y, of_classes=True, seed=0).tolist() == counted.tolist()


def test_permuted_columns_have_permuted_chances():
    X, y = table(30, 20)
    order = np.random.default_rng(1).permutation(20)
    plain = univariate_p_values(X, y, of_classes=True, seed=0)
    assert univariate_p_values(X[:, order], y, of_classes=True, seed=0).tolist() == plain[order].tolist()


NOISES = {
    "gaussian": lambda random, shape: random.standard_normal(shape),
    "counts": lambda random, shape: random.negative_binomial(1, 0.02, shape) * random.lognormal(0, 1, shape[1]),
    "heavy": lambda random, shape: random.standard_t(1.5, shape),
    "binary": lambda random, shape: random.random(shape) < random.uniform(0.02, 0.5, shape[1]),
    "correlated": lambda random, shape: random.standard_normal((shape[0], 3)) @ random.standard_normal((3, shape[1])),
    "patients": lambda random, shape: np.repeat(random.standard_normal((shape[0] // 4, shape[1])), 4, axis=0),
}


@pytest.mark.parametrize("noise", NOISES)
def test_noise_seldom_stands_out(noise):
    """Nominally a tenth of the tables; more than 13 of 60 happen by chance once in a thousand trials."""
    found = 0
    for trial in range(60):
        random = np.random.default_rng(trial)
        X = np.asarray(NOISES[noise](random, (48, 100)), dtype=float)
        patients = np.arange(48) // 4 if noise == "patients" else None
        y = random.permutation(np.arange(48) % 2)
        y = y if patients is None else random.permutation(np.arange(12) % 2)[patients]
        found += discoveries(univariate_p_values(X, y, of_classes=True, seed=trial, together=patients), 0.1).any()
    assert found <= 13


@pytest.mark.parametrize("selector", [DAF(stop=MaxProbes(400)), Tournament(n_probes=400)], ids=["DAF", "Tournament"])
def test_signal_stands_out_and_noise_does_not(selector):
    X, y = table(60, 100)
    fitted = selector.set_params(random_state=0).fit(X, y)
    assert fitted.stands_out()[:2].all()
    assert fitted.stands_out().sum() <= 4
    assert (fitted.stands_out(1e-9) <= fitted.stands_out()).all()
    with pytest.raises(ValueError, match="fdr=2 must be a share above 0 and below 1"):
        fitted.stands_out(2)
    noise = selector.fit(X, np.random.default_rng(5).permutation(y))
    assert not noise.stands_out().any()


def test_auto_keeps_what_stands_out_and_at_least_one():
    X, y = table(60, 30)
    auto = DAF("stands_out", stop=MaxProbes(300), random_state=0).fit(X, y)
    assert auto.support_.tolist() == (auto.stands_out() | (auto.ranking_ == 1)).tolist()
    shuffled = np.random.default_rng(5).permutation(y)
    with pytest.warns(UserWarning, match="no feature stands out at a false discovery rate of 0.1: the best one is"):
        nothing = DAF("stands_out", stop=MaxProbes(300), random_state=0).fit(X, shuffled)
    assert nothing.transform(X).shape == (60, 1)
