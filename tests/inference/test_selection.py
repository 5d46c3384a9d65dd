"""`needed`: features that add to all others, clusters of similar features, and nothing on noise."""

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from probewise.inference import associated, needed, pairs
from probewise.inference.additive import AdditiveFit, Atoms
from probewise.inference.base import Table
from probewise.inference.selection import Posterior
from probewise.kernels.variable_selection import sample_models


def blocks(random, n_rows, n_columns, correlation=0.7, size=10):
    shared = np.repeat(random.standard_normal((n_rows, n_columns // size)), size, axis=1)
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * random.standard_normal((n_rows, n_columns))


@pytest.mark.parametrize("n_targets", [1, 3])
def test_sampled_models_have_the_probabilities_of_their_twin(n_targets):
    random = np.random.default_rng(n_targets)
    atoms, targets = random.standard_normal((60, 7)), random.standard_normal((60, n_targets))
    atoms[:, 1] = atoms[:, 0] + 0.3 * atoms[:, 1]  # two that can replace each other
    targets += 0.5 * atoms[:, [0]] + 0.3 * atoms[:, [4]]
    atoms, targets = (values / np.sqrt((values**2).mean(axis=0)) for values in (atoms, targets))
    gram, products = atoms.T @ atoms, np.ascontiguousarray(atoms.T @ targets)
    log_prior, log_size = np.log(np.linspace(0.05, 0.4, 7)), np.log([0.3, 1.5, 2.0, 1.0, 0.5])
    steps, most = 40_000, 4
    models, sizes, weights = np.zeros((steps, most), np.int64), np.zeros(steps, np.int64), np.zeros(steps)
    no_latent = np.empty((0, 0)), np.empty(0), np.zeros(60, np.int64)
    sample_models(gram, products, 60.0, no_latent, log_prior, log_size, 0.2, 0.5, 1, models, sizes, weights)
    is_used = np.arange(most) < sizes[:, None]
    inside = [weights[((models == j) & is_used).any(axis=1)].sum() for j in range(7)]
    expected = naive.inclusion_probabilities(gram, products, 60.0, log_prior, log_size[:4], 0.2)
    assert np.sort(expected)[1] < 0.3 < expected[4]
    np.testing.assert_allclose(np.array(inside) / weights.sum(), expected, atol=0.02)


def test_models_of_two_classes_have_the_probabilities_of_their_twin():
    random = np.random.default_rng(0)
    atoms = random.standard_normal((14, 4))
    atoms[:, 1] = atoms[:, 0] + 0.5 * atoms[:, 1]
    atoms -= atoms.mean(axis=0)
    signs = np.where(atoms[:, 0] + 0.5 * random.standard_normal(14) > 0, 1.0, -1.0)
    gram, products = atoms.T @ atoms, np.zeros((4, 1))
    log_prior, log_size = np.log([0.1, 0.1, 0.2, 0.3]), np.log([0.5, 1.5, 1.0, 1.0])
    steps, most = 100_000, 3
    models, sizes, weights = np.zeros((steps, most), np.int64), np.zeros(steps, np.int64), np.zeros(steps)
    latent_of = np.ascontiguousarray(atoms.T), signs, np.zeros(14, np.int64)
    sample_models(gram, products, 0.0, latent_of, log_prior, log_size, 1.0, 0.5, 1, models, sizes, weights)
    is_used = np.arange(most) < sizes[:, None]
    inside = np.array([weights[((models == j) & is_used).any(axis=1)].sum() for j in range(4)]) / weights.sum()
    expected = naive.inclusion_probabilities_for_classes(atoms, signs, log_prior, log_size[:3], 1.0)
    assert expected[0] > 0.2 > expected[3]
    np.testing.assert_allclose(inside, expected, atol=0.02)


def test_forward_selection_equals_its_twin():
    random = np.random.default_rng(2)
    values = random.standard_normal((80, 30))
    values -= values.mean(axis=0)
    target = values[:, 4] + 0.7 * values[:, 9] + 0.4 * random.standard_normal(80)
    target -= target.mean()
    cost = np.where(np.arange(30) < 20, 0.0, 10.0)
    atoms = Atoms(values, np.column_stack([np.arange(30)] * 2), cost)
    assert atoms.forward(target, 10) == naive.forward_selection(values, target, cost, 10)


def test_only_needed_features_are_named():
    """Columns 10 to 19 are noisy copies of columns 0 to 9: five of them are related to y, and none is needed."""
    n_true = n_false = n_copies_related = 0
    for seed in range(6):
        random = np.random.default_rng(seed)
        X = random.standard_normal((300, 120))
        X[:, 10:20] = X[:, :10] + 1.5 * random.standard_normal((300, 10))
        y = X[:, :5] @ [1, -1, 1, -1, 1] + random.standard_normal(300)
        named = needed(X, y, random_state=seed).mask
        n_true, n_false = n_true + named[:5].sum(), n_false + named[5:].sum()
        n_copies_related += associated(X, y, random_state=seed).mask[10:15].sum()
    assert n_true == 30
    assert n_false <= 0.2 * (n_true + n_false)  # the expected share is 0.1
    assert n_copies_related >= 20


@pytest.mark.parametrize("task", ["numbers", "classes", "three classes"])
def test_shapes_are_found_for_every_kind_of_target(task):
    random = np.random.default_rng(1)
    X = random.standard_normal((500, 80))
    signal = 3 * np.exp(-(X[:, 3] ** 2)) + 1.2 * X[:, 7] + 0.5 * random.standard_normal(500)
    y = {"numbers": signal, "classes": signal > np.median(signal)}.get(task)
    y = np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3])) if y is None else y
    assert {3, 7} <= set(np.flatnonzero(needed(X, y, random_state=0).mask))


def test_a_cluster_is_named_where_single_columns_cannot_be():
    random = np.random.default_rng(3)
    X = blocks(random, 150, 200, correlation=0.95)
    y = X[:, 13] + X[:, 57] + 0.8 * random.standard_normal(150)
    found = needed(X, y, random_state=0)
    clusters = {frozenset(cluster.tolist()) for cluster in found.clusters}
    assert clusters >= {frozenset(range(10, 20)), frozenset(range(50, 60))}
    assert len(clusters) <= 3
    assert all(found.mask[cluster[0]] for cluster in found.clusters)


NOISE = {
    "numbers": lambda random, n: random.standard_normal(n),
    "skewed": lambda random, n: random.lognormal(0, 2, n),
    "classes": lambda random, n: random.integers(0, 2, n),
    "rare": lambda random, n: (np.arange(n) < 6).astype(int),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", NOISE)
def test_noise_is_named_as_rarely_as_stated(kind):
    named = []
    for seed in range(40):
        random = np.random.default_rng([seed, *kind.encode()])
        named.append(needed(blocks(random, 80, 200), NOISE[kind](random, 80), random_state=seed).mask.any())
    assert np.mean(named) <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 40)


def test_replicates_of_noise_are_not_needed():
    """Three nearly equal rows of each patient are one observation of y."""
    named = []
    for seed in range(8):
        random, patients = np.random.default_rng(seed), np.repeat(np.arange(30), 3)
        X = random.standard_normal((30, 300))[patients] + 0.3 * random.standard_normal((90, 300))
        y = random.integers(0, 2, 30)[patients]
        named.append(needed(X, y, groups=patients, random_state=seed).mask.any())
    assert sum(named) <= 2


def test_any_number_of_threads_gives_the_same_bits():
    random = np.random.default_rng(0)
    X = blocks(random, 100, 60)
    y = X[:, 0] + random.standard_normal(100)
    one, two = (needed(X, y, random_state=3, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.p_values, two.p_values)
    assert np.array_equal(one.q_values, two.q_values)


def test_candidates_are_tested_too():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 1000)), random.standard_normal(60)
    table = Table.of(X, y, groups=None, sample_weight=None, strata=None, task="auto")
    screened = Posterior.of(AdditiveFit.of(table, []), 0).columns
    column = int(np.setdiff1d(np.arange(1000), screened)[0])
    assert column in Posterior.of(AdditiveFit.of(table, [column]), 0).columns
    with pytest.raises(ValueError, match="candidates holds 1000"):
        needed(X, y, candidates=[1000])


def test_groups_weights_missing_values_and_constant_columns():
    random = np.random.default_rng(0)
    patients = np.repeat(np.arange(50), 2)
    X = random.standard_normal((100, 40)) + random.standard_normal((50, 40))[patients]
    y = X[:, 2] + 0.5 * random.standard_normal(100)
    X[random.random(X.shape) < 0.1], X[:, 5] = np.nan, 1.0
    weights = random.uniform(0, 2, 100)
    found = needed(X, y, groups=patients, sample_weight=weights, random_state=0)
    assert found.mask[2]
    assert found.p_values[5] == 1


def test_pairs_equal_their_twin():
    random = np.random.default_rng(4)
    X = random.standard_normal((120, 12))
    y = X[:, 2] * X[:, 5] + 0.3 * random.standard_normal(120)
    found = pairs(X, y, random_state=0)
    assert found.pairs[0].tolist() == [2, 5]
    fit = AdditiveFit.of(Table.of(X, y, groups=None, sample_weight=None, strata=None, task="auto"), [])
    assert naive.strongest_pair(fit.columns, fit.residuals()) == (2, 5)


@pytest.mark.parametrize("kind", ["numbers", "two classes", "three classes"])
def test_products_are_found_among_many_columns_and_their_features_are_needed(kind):
    random = np.random.default_rng(0)
    X = random.standard_normal((300, 1000))
    product = X[:, 4] * X[:, 9] + 0.3 * random.standard_normal(300)
    y = {"numbers": product, "two classes": product > 0}.get(kind)
    y = np.digitize(product, [-0.3, 0.3]) if y is None else y
    assert pairs(X, y, random_state=0).pairs[0].tolist() == [4, 9]
    assert {4, 9} <= set(np.flatnonzero(needed(X, y, random_state=0).mask))


@pytest.mark.parametrize("kind", NOISE)
def test_no_pairs_on_noise(kind):
    named = []
    for seed in range(40):
        random = np.random.default_rng([seed, *kind.encode()])
        named.append(len(pairs(random.standard_normal((80, 100)), NOISE[kind](random, 80), random_state=seed).pairs))
    assert np.mean(np.array(named) > 0) <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 40)


def test_effects_that_add_up_on_another_scale_are_no_pairs():
    """With 5% positives the probabilities multiply: without the powers of the fit, all 6 such tables had pairs."""
    y, named = np.arange(1000) % 20 == 0, 0
    for seed in range(6):
        X = np.random.default_rng(seed).standard_normal((1000, 60))
        X[:, :6] += 0.9 * y[:, None]
        named += len(pairs(X, y, random_state=0).pairs) > 0
    assert named <= 1


def test_a_single_column_has_no_pairs():
    X = np.arange(20.0)[:, None]
    assert len(pairs(X, X[:, 0] > 9, random_state=0).pairs) == 0


def test_sparse_and_dense_tables_give_the_same_pairs_and_needed_features():
    random = np.random.default_rng(5)
    X = random.poisson(0.4, (200, 40)).astype(float)
    y = X[:, 3] * X[:, 8] + X[:, 20] + 0.3 * random.standard_normal(200)
    dense, sparse = (pairs(table, y, random_state=0) for table in (X, sp.csr_array(X)))
    assert dense.pairs.tolist() == sparse.pairs.tolist() == [[3, 8]]
    np.testing.assert_allclose(dense.q_values, sparse.q_values)
    dense, sparse = (needed(table, y, random_state=0) for table in (X, sp.csr_array(X)))
    assert {3, 8, 20} <= set(np.flatnonzero(dense.mask))
    np.testing.assert_array_equal(dense.q_values, sparse.q_values)
