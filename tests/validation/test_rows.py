"""Rows that belong together: replicates, time order, and columns of ids."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from probewise import DAF, FSDD, Tournament
from probewise.stopping import MaxProbes
from probewise.validation.contents import _runs, note_on_replicates, note_on_time_order


def replicates(n_patients=30, each=3, n_features=200, noise=0.4, seed=0):
    random = np.random.default_rng(seed)
    X = np.repeat(random.standard_normal((n_patients, n_features)), each, axis=0)
    X += noise * random.standard_normal(X.shape)
    return X, np.repeat(random.integers(0, 2, n_patients), each), np.repeat(np.arange(n_patients), each)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("each", [2, 3])
def test_replicates_are_found_whatever_their_order(noise, each):
    X, _, _ = replicates(noise=noise, each=each)
    for rows in (np.arange(len(X)), np.random.default_rng(0).permutation(len(X))):
        assert "100% of the rows are nearly equal to another row" in note_on_replicates(X[rows])
    X[::7, 3] = np.nan
    assert note_on_replicates(X.astype(np.float32)) is not None


@pytest.mark.parametrize("n_features", [5, 20, 300])
def test_independent_rows_are_no_replicates(n_features):
    for seed in range(20):
        random = np.random.default_rng(seed)
        X = random.standard_normal((100, n_features)) + 2 * random.integers(0, 3, 100)[:, None]  # classes
        assert note_on_replicates(X) is None
        assert note_on_replicates((X > 0).astype(float)) is None


@pytest.mark.parametrize("load", [load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine])
def test_ordinary_tables_have_no_replicates(load):
    assert note_on_replicates(load().data) is None


@pytest.mark.parametrize("selector", [Tournament(n_probes=100), DAF(stop=MaxProbes(100))])
def test_replicates_cause_a_warning_unless_there_are_groups(selector):
    X, y, patients = replicates()
    with pytest.warns(UserWarning, match="100% of the rows are nearly equal to another row: .* give groups"):
        selector.fit(X, y)
    assert len(selector.notes_) >= 1
    if isinstance(selector, Tournament):
        assert selector.fit(X, y, groups=patients).notes_ == []


def autocorrelated(n, n_features, seed, rho=0.95):
    random, values = np.random.default_rng(seed), np.zeros((n, n_features))
    for row in range(1, n):
        values[row] = rho * values[row - 1] + random.standard_normal(n_features)
    return values


def test_time_order_causes_a_warning():
    X, y = autocorrelated(300, 100, 0), autocorrelated(300, 1, 1)[:, 0]
    for target in (y, (y > 0).astype(int)):
        with pytest.warns(UserWarning, match="change slowly from row to row"):
            notes = Tournament(n_probes=200, random_state=0).fit(X, target).notes_
        assert "cv=TimeSeriesSplit()" in notes[-1]
    order = np.random.default_rng(0).permutation(300)
    with warnings.catch_warnings(action="error"):
        Tournament(n_probes=200, random_state=0).fit(X[order], y[order])
        Tournament(n_probes=200, random_state=0).fit(X, y, groups=np.arange(300) // 30)


def test_rows_sorted_by_class_are_no_time_series():
    for seed in range(20):
        random = np.random.default_rng(seed)
        y = np.sort(random.integers(0, 3, 90))
        X = random.standard_normal((90, 20)) + y[:, None]
        assert note_on_time_order(X, y, is_classification=True) is None


def test_runs_test_has_its_level():
    random = np.random.default_rng(0)
    for draw in (
        lambda: random.integers(0, 2, 200),
        lambda: random.integers(0, 5, 200),
        lambda: random.random(200) < 0.1,
    ):
        z = np.array([_runs(draw()) for _ in range(2000)])
        assert abs(z.mean()) < 0.15
        assert abs(z.std() - 1) < 0.1


@pytest.mark.parametrize("selector", [Tournament(n_probes=50), FSDD(2)])
@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("patient_id", np.arange(60) // 3, "20 values in 60 rows and looks like groups of rows: give it as groups"),
        ("Batch", np.arange(60) % 4, r"rank --groups Batch\); now it is ranked as a number"),
        ("sample.id", np.arange(60) + 1000, r"looks like an id and is ranked as a number: leave it out"),
        ("customer_id", np.r_[np.nan, np.arange(59)], r"looks like an id and is ranked as a number: leave it out"),
    ],
)
def test_columns_of_ids_cause_a_warning(selector, name, values, message):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.standard_normal((60, 3)), columns=["acid", "batch effect", "patients"])
    frame[name] = values
    y = random.integers(0, 2, 60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector.fit(frame, y)
    assert any(re.search(message, str(each.message)) for each in caught)
    assert any(re.search(message, note) for note in selector.notes_)  # which a report shows first
    with warnings.catch_warnings(action="error"):
        selector.fit(frame.drop(columns=name), y)
    assert selector.notes_ == []
