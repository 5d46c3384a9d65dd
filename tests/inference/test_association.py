"""`associated`: exact p-values, nothing on noise, and the features that are there."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import naive
from probewise.evaluation.permutations import Permutations
from probewise.inference import associated, needed, pairs
from probewise.inference.association import tail_p_values


@pytest.mark.parametrize("kind", ["numbers", "classes", "three classes", "weights"])
def test_p_values_are_those_of_all_permutations(kind):
    random = np.random.default_rng(5)
    X = random.standard_normal((7, 6))
    y = {"numbers": random.standard_normal(7), "classes": [0, 1, 1, 0, 1, 0, 0], "weights": random.standard_normal(7)}
    y = np.array(y.get(kind, [0, 1, 2, 0, 1, 2, 0]))
    weights = np.array([1.0, 2, 3, 1, 1, 5, 1]) if kind == "weights" else None
    found = associated(X, y, sample_weight=weights, random_state=0).p_values
    np.testing.assert_allclose(found, naive.association_p_values(X, y, weights), atol=0.025)


def noise(kind, seed):
    """A table without any relation between X and y."""
    random, options = np.random.default_rng([seed, *kind.encode()]), {}
    X, y = random.standard_normal((60, 200)), random.integers(0, 2, 60)
    patients = np.repeat(np.arange(20), 3)
    if kind == "skewed":
        y = random.lognormal(0, 2, 60)
    elif kind == "rare":
        X, y = random.lognormal(0, 1, (150, 200)), np.zeros(150, int)
        y[random.choice(150, 4, replace=False)] = 1
    elif kind == "weights":
        options["sample_weight"] = np.where(np.arange(60) < 5, 50.0, 1.0)
    elif kind == "ties":
        X, y = random.poisson(random.uniform(0.05, 3, 200), (60, 200)).astype(float), random.standard_normal(60)
    elif kind == "missing":
        X[random.random(X.shape) < random.uniform(0, 0.4, 200)] = np.nan
    elif kind in ("groups", "mixed groups"):
        X += 2 * random.standard_normal((20, 200))[patients]
        y, options["groups"] = random.integers(0, 2, 20)[patients], patients
        if kind == "mixed groups":
            y[::7] = 1 - y[::7]
    elif kind == "strata":
        batch = random.integers(0, 3, 60)
        X += batch[:, None] * random.standard_normal(200)
        y, options["strata"] = (random.random(60) < 0.2 + 0.3 * batch).astype(int), batch
    return X, y, options


KINDS = ["balanced", "skewed", "rare", "weights", "ties", "missing", "groups", "mixed groups", "strata"]


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_named_as_rarely_as_stated(kind):
    named = []
    for seed in range(40):
        X, y, options = noise(kind, seed)
        named.append(associated(X, y, random_state=seed, **options).mask.any())
    assert np.mean(named) <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 40)


def test_grouped_noise_is_named_without_groups():
    """The table of the test above can fail: replicates that pass as independent rows look significant."""
    named = [associated(*noise("groups", seed)[:2], random_state=seed).mask.any() for seed in range(10)]
    assert np.mean(named) > 0.5


def test_lines_bumps_and_steps_are_found():
    random = np.random.default_rng(0)
    X = random.standard_normal((400, 300))
    y = X[:, 3] + 3 * np.exp(-(X[:, 5] ** 2)) + 2 * (X[:, 8] > 0.7) + random.standard_normal(400)
    assert {3, 5, 8} <= set(np.flatnonzero(associated(X, y, random_state=0).mask))


def test_a_relabeled_visit_hides_nothing():
    random = np.random.default_rng(1)
    patients = np.repeat(np.arange(40), 3)
    X = random.standard_normal((120, 300)) + random.standard_normal((40, 300))[patients]
    y = random.integers(0, 2, 40)[patients]
    X[:, :5] += 2.5 * y[:, None]
    before = associated(X, y, groups=patients, fdr=0.01, random_state=0)
    y[7] = 1 - y[7]
    after = associated(X, y, groups=patients, fdr=0.01, random_state=0)
    assert set(range(5)) == set(np.flatnonzero(before.mask)) == set(np.flatnonzero(after.mask))


def test_any_number_of_threads_gives_the_same_bits():
    X, y, options = noise("ties", 0)
    one, two = (associated(X, y, random_state=3, n_jobs=n, **options).p_values for n in (1, 2))
    assert np.array_equal(one, two)


def test_permuted_columns_and_monotone_functions_give_permuted_p_values():
    X, y, _ = noise("skewed", 0)
    order = np.random.default_rng(0).permutation(X.shape[1])
    found = associated(X, y, random_state=0).p_values
    assert np.array_equal(associated(np.exp(X[:, order]), y, random_state=0).p_values, found[order])


def test_sparse_and_dense_are_equal_and_x_is_not_changed():
    X, y, _ = noise("ties", 1)
    before = X.copy()
    dense = associated(X, y, random_state=0).p_values
    assert np.array_equal(dense, associated(sp.csr_matrix(X), y, random_state=0).p_values)
    assert np.array_equal(X, before)


def test_constant_and_missing_columns_have_a_p_value_of_one():
    X, y, _ = noise("balanced", 0)
    X[:, 0], X[:, 1] = 3.0, np.nan
    assert associated(X, y, random_state=0).p_values[:2].tolist() == [1, 1]


def test_rows_of_weight_zero_do_not_count():
    X, y, _ = noise("skewed", 2)
    weights = np.where(np.arange(60) < 20, 0.0, 1.0)
    assert np.array_equal(
        associated(X, y, sample_weight=weights, random_state=0).p_values,
        associated(X[20:], y[20:], random_state=0).p_values,
    )


def test_another_rate():
    X, y, _ = noise("balanced", 0)
    X[:, 0] += 3 * y
    found = associated(X, y, random_state=0)
    assert found.at(0.5).mask.sum() >= found.mask.sum() >= 1
    with pytest.raises(ValueError, match=r"fdr=2 must be a share"):
        found.at(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": np.zeros((60, 2))}, "groups has 2 dimensions"),
        ({"fdr": 0}, "fdr=0 must be a share"),
        ({"task": "guess"}, "task='guess'"),
        ({"strata": [1, 2]}, "inconsistent numbers of samples"),
    ],
)
def test_bad_input(options, message):
    X, y, _ = noise("balanced", 0)
    with pytest.raises(ValueError, match=message):
        associated(X, y, **options)


TESTS = [associated, needed, pairs]
REFUSED = {
    "no target": (lambda X, y: (X, None), "y=None: a target is needed"),
    "masked": (lambda X, y: (np.ma.masked_array(X, X > 1), y), "X is a masked array"),
    "nothing": (lambda X, y: (None, y), "X is of type NoneType"),
    "records": (lambda X, y: (np.zeros(60, dtype=[("a", "f8")]), y), "X is an array of records"),
    "objects": (lambda X, y: (np.where(X > 2, "a", X.astype(object)), y), r"holds other than numbers in 150 of 200"),
    "text": (lambda X, y: (pd.DataFrame({"x": X[:, 0], "c": list("ab" * 30)}), y), r"1 of 2 columns \('c'\)"),
    "categories": (lambda X, y: (pl.DataFrame({"c": list("ab" * 30)}).cast(pl.Categorical), y), "takes categories"),
    "dates": (lambda X, y: (pd.DataFrame({"d": pd.date_range("2020", periods=60)}), y), "holds dates or times"),
    "repeated names": (lambda X, y: (pd.DataFrame(X[:, :2], columns=["a", "a"]), y), "2 columns of the name 'a'"),
}


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("name", REFUSED)
def test_tables_that_cannot_be_tested_are_refused(test, name):
    change, message = REFUSED[name]
    X, y, _ = noise("balanced", 0)
    with pytest.raises((ValueError, TypeError), match=message):
        test(*change(X[:60], y[:60]))


@pytest.mark.parametrize("test", TESTS)
def test_a_target_of_one_column_and_an_error_state_that_raises_change_nothing(test):
    random = np.random.default_rng(0)
    X, age = random.standard_normal((60, 8)), random.standard_normal(60)
    X[:, 1] *= 1e-300
    y, options = (X[:, 0] + 0.5 * age > 0).astype(int), {"adjust": age, "random_state": 0}
    expected = test(X, y, **options)
    with np.errstate(all="raise"):
        found = test(X, y[:, None], **options)
    np.testing.assert_array_equal(found.q_values, expected.q_values)


@pytest.mark.parametrize("test", TESTS)
def test_strata_that_leave_nothing_of_the_target(test):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((90, 6)), np.arange(90) % 3
    X[:, 2] += 2 * (y == 1)
    with pytest.raises(ValueError, match="y has one value in each stratum"):
        test(X, y, strata=y)
    found = test(X, y, strata=y == 2, random_state=0)  # a class that is a stratum says nothing, the others do
    assert np.isfinite(found.q_values).all()
    assert test is pairs or np.flatnonzero(found.mask).tolist() == [2]


def test_tail_of_the_null_distribution():
    """p-values beyond the sample of null statistics stay in order, and are not far from the truth."""
    null = np.sort(np.random.default_rng(0).exponential(2.0, 100_000))
    p_values = tail_p_values(np.array([10.0, 30.0, 40.0]), null)
    assert np.exp(-5) * 0.9 < p_values[0] < np.exp(-5) * 1.1
    assert np.exp(-15) < p_values[1] < 10 * np.exp(-15)
    assert p_values[2] < p_values[1]
    assert tail_p_values(np.array([40.0]), null, log_arrangements=3.0)[0] == 1 / 100_001


def test_permutations_keep_groups_and_strata():
    """A draw exchanges whole groups of one size within a stratum and shuffles the rows of a group."""
    groups, strata = np.repeat(np.arange(12), 3), np.repeat([0, 1], 18)
    values = np.arange(36.0)[None]
    for draw in Permutations.of(values, groups, strata, seed=1).draw(0, 20)[:, 0]:
        rows = np.rint(draw).astype(int)
        assert sorted(rows) == list(range(36))
        assert np.array_equal(strata[rows], strata)
        assert all(len(set(groups[rows[groups == group]])) == 1 for group in range(12))
