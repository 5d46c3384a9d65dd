"""ReliefF and RReliefF: equal to their twins on awkward and on real data, and what must not change their results."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

import naive
from probewise.filters import relieff as module
from probewise.filters.relieff import ReliefF
from sampling import examples

to_fractions = np.vectorize(lambda value: Fraction(float(value)), otypes=[object])


def awkward(seed, n_classes=None):
    """A small table with ties, a constant column, unequal classes, and perhaps a class of one row."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = rng.integers(6, 30), rng.integers(1, 12)
    X = rng.integers(0, rng.integers(1, 8), (n_rows, n_columns)).astype(float)
    if rng.random() < 0.4:
        X[:, rng.random(n_columns) < 0.5] += np.rint(64 * rng.standard_normal((n_rows, 1))) / 64  # sums stay exact
    X[:, rng.integers(n_columns)] = 3
    X *= rng.choice([1, 1, 7, 0.25], n_columns)
    n_classes = n_classes or rng.integers(2, 6)
    y = rng.choice(n_classes, n_rows, p=rng.dirichlet(np.ones(n_classes)))
    y[:n_classes] = np.arange(n_classes)
    discrete = rng.random(n_columns) < rng.choice([0, 0.5, 1])
    return X, y, discrete, int(rng.integers(1, 13))


def form(X, seed):
    """A copy of the table in another layout, or in another type if that can hold it."""
    kinds = [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix, sp.csc_array]
    if (np.float32(X) == X).all():
        kinds += [np.float32, lambda X: np.asfortranarray(X, dtype=np.float32), lambda X: sp.csr_matrix(np.float32(X))]
    if (np.rint(X) == X).all():
        kinds += [np.int64, np.uint8, np.float16, lambda X: sp.csc_matrix(np.int32(X))]
    return kinds[seed % len(kinds)](X)


WAYS = {
    "at once": {},
    "by rows": {"LEAST_ROWS": 3, "MOST_ROWS": 5, "LEAST_OTHERS": 2, "MOST_OTHERS": 7},
    "by columns": {"LEAST_COLUMNS": 2, "LEAST_SLICES": 1},
}
seeds = st.integers(0, 2**32 - 1)


def fitted(way, relieff, X, y):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAYS[way].items():
            patch.setattr(module, name, value)
        return relieff.fit(X, y)


@pytest.mark.parametrize("way", WAYS)
@examples(100)
@given(seed=seeds)
def test_equals_the_textbook(way, seed):
    """Small data go every way that large data go; several classes, some rarer than k."""
    X, y, discrete, k = awkward(seed)
    rng = np.random.default_rng(seed)
    n_samples = None if seed % 2 else int(rng.integers(1, len(X) + 1))
    relieff = ReliefF(n_neighbors=k, n_samples=n_samples, discrete_features=discrete, random_state=seed)
    fitted(way, relieff, form(X, seed), y)
    truth = naive.relieff(to_fractions(X), y, k, relieff.samples_, discrete)
    np.testing.assert_allclose(relieff.scores_, truth, atol=1e-12)
    np.testing.assert_array_equal(relieff.ranges_, np.ptp(X, axis=0))
    assert len(relieff.samples_) == len(set(relieff.samples_)) == (n_samples or len(X))


@pytest.mark.parametrize("way", WAYS)
@examples(60)
@given(seed=seeds)
def test_equals_the_textbook_for_a_quantity(way, seed):
    X, _, discrete, k = awkward(seed)
    rng = np.random.default_rng(seed)
    y = rng.choice([rng.standard_normal(len(X)), rng.integers(0, 3, len(X)) / 2])
    y[:2] = 0.5, 2.5
    relieff = ReliefF(n_neighbors=k, n_samples=None if seed % 2 else 0.5, discrete_features=discrete)
    fitted(way, relieff, form(X, seed), y)
    truth = naive.rrelieff(to_fractions(X), y, k, relieff.samples_, discrete)
    np.testing.assert_allclose(relieff.scores_, truth, atol=1e-12)


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["leukemia", "lymphoma"])
def test_equals_the_textbook_on_genes(real_data, name):
    data = real_data(name)
    X, y = data["X"], data["y"]
    fitted = ReliefF(n_jobs=2).fit(X, y)
    none = np.zeros(X.shape[1], dtype=bool)
    truth = naive.relieff(X.astype(float), y, 10, range(len(X)), none)
    np.testing.assert_allclose(fitted.scores_, truth, atol=1e-12)
    drawn = ReliefF(n_samples=10, random_state=0).fit(np.asfortranarray(X), y)
    assert len(drawn.samples_) == 10
    np.testing.assert_allclose(drawn.scores_, naive.relieff(X.astype(float), y, 10, drawn.samples_, none), atol=1e-12)


def clusters(n_rows=700, n_columns=90, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(4, n_rows, p=[0.5, 0.3, 0.18, 0.02])
    X = rng.standard_normal((n_rows, n_columns))
    X[:, :5] += y[:, None]
    return X, y


def test_many_rows_and_columns_equal_the_textbook():
    X, y = clusters()
    X[:, 40:] = np.rint(X[:, 40:])
    discrete = np.arange(90) >= 60
    fitted = ReliefF(n_jobs=2, discrete_features=discrete).fit(X, y)
    np.testing.assert_allclose(fitted.scores_, naive.relieff(X, y, 10, range(len(X)), discrete), atol=1e-12)


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("shape", [(700, 90), (80, 3000)])
@pytest.mark.parametrize("target", ["classes", "quantity"])
@pytest.mark.parametrize("n_samples", [None, 50])
def test_same_bits_for_any_number_of_threads(shape, target, n_samples):
    X, y = clusters(*shape)
    X[:, 10:] = np.rint(2 * X[:, 10:])
    y = y if target == "classes" else X[:, 0] + y
    one, two, four = (
        ReliefF(n_jobs=n, n_samples=n_samples, random_state=0).fit(X, y).scores_.tobytes() for n in (1, 2, 4)
    )
    assert one == two == four


@given(seed=seeds)
def test_permuted_columns_give_permuted_scores(seed):
    X, y, discrete, k = awkward(seed)
    order = np.random.default_rng(seed).permutation(X.shape[1])
    plain = ReliefF(n_neighbors=k, discrete_features=discrete).fit(X, y)
    permuted = ReliefF(n_neighbors=k, discrete_features=discrete[order]).fit(X[:, order], y)
    np.testing.assert_allclose(permuted.scores_, plain.scores_[order], atol=1e-12)


@given(seed=seeds)
def test_scaled_and_shifted_features_and_other_codes_give_the_same_scores(seed):
    X, y, discrete, k = awkward(seed)
    rng = np.random.default_rng(seed)
    moved = X * rng.choice([-8, 0.5, 1024], X.shape[1]) + rng.choice([0, 64, -512], X.shape[1])
    moved[:, discrete] = X[:, discrete] ** 3 / 7
    plain, other = (ReliefF(n_neighbors=k, discrete_features=discrete).fit(data, y) for data in (X, moved))
    np.testing.assert_allclose(other.scores_, plain.scores_, atol=1e-9)


def test_equal_distances_go_to_the_lower_row():
    X = np.array([[0.0, 0], [3, 1], [1, 3], [1, 3], [3, 1]]) / 3
    y = np.array([0, 0, 0, 1, 1])
    fitted = ReliefF(n_neighbors=1).fit(X, y)
    np.testing.assert_allclose(fitted.scores_, naive.relieff(to_fractions(3 * X), y, 1, range(5), [False, False]))


def test_sums_of_fractions_that_are_equal_are_ties():
    """1/3 + 2/3 and 3/3, and the like, in any order of the columns: the lower of two rows is nearer."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, [4, 6, 7, 8, 10, 11], (60, 6))
    X[:2] = np.zeros(6), [3, 5, 6, 7, 9, 10]
    y = np.arange(60) % 3
    truth = naive.relieff(to_fractions(X), y, 3, range(60), np.zeros(6, dtype=bool))
    for order in (np.arange(6), np.arange(6)[::-1], rng.permutation(6)):
        np.testing.assert_allclose(ReliefF(n_neighbors=3).fit(X[:, order], y).scores_, truth[order], atol=1e-12)


def test_both_halves_of_an_xor_are_found_among_noise():
    rng = np.random.default_rng(0)
    X = rng.random((400, 30))
    y = (X[:, 7] > 0.5) ^ (X[:, 21] > 0.5)
    fitted = ReliefF(2).fit(X, y)
    assert fitted.get_support(indices=True).tolist() == [7, 21]
    bits = X > 0.5
    assert ReliefF(2).fit(bits, y).get_support(indices=True).tolist() == [7, 21]


def test_a_product_is_found_by_rrelieff():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 12))
    fitted = ReliefF(2).fit(X, X[:, 3] * X[:, 8])
    assert fitted.get_support(indices=True).tolist() == [3, 8]


def test_a_class_of_one_row_and_constant_columns():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.full(150, 7.0)])
    y[3] = 9
    fitted = ReliefF().fit(X, y)
    assert fitted.scores_[4] == 0
    assert fitted.ranges_[4] == 0
    tenths = to_fractions(np.rint(10 * X))  # decimals that are as far apart as others are not so as binary numbers
    np.testing.assert_allclose(fitted.scores_, naive.relieff(tenths, y, 10, range(150), np.zeros(5, bool)))


def test_rows_are_drawn_by_random_state():
    X, y = clusters(100, 5)
    first, same, other = (ReliefF(n_samples=10, random_state=seed).fit(X, y).samples_ for seed in (0, 0, 1))
    assert first.tolist() == same.tolist() == sorted(set(first))
    assert first.tolist() != other.tolist()
    assert len(ReliefF(n_samples=0.25).fit(X, y).samples_) == 25
    assert ReliefF(n_samples=1.0).fit(X, y).samples_.tolist() == list(range(100))


def test_discrete_features_by_mask_number_name_or_type():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.random(60), "colour": rng.integers(0, 5, 60), "kind": rng.integers(0, 4, 60)})
    y = np.arange(60) % 2
    scores = [
        ReliefF(discrete_features=said).fit(frame, y).scores_.tolist()
        for said in ([False, True, True], [1, 2], np.array([2, 1]), ["kind", "colour"])
    ]
    typed = frame.astype({"colour": "category", "kind": "category"})
    scores.append(ReliefF().fit(typed, y).scores_.tolist())
    assert all(one == scores[0] for one in scores)
    numbers = ReliefF().fit(frame, y).scores_
    assert numbers.tolist() != scores[0]
    np.testing.assert_array_equal(ReliefF(discrete_features=[]).fit(frame, y).scores_, numbers)
    everything = ReliefF(discrete_features=True).fit(frame, y).scores_
    truth = naive.relieff(to_fractions(frame.to_numpy()), y, 10, range(60), np.ones(3, dtype=bool))
    np.testing.assert_allclose(everything, truth, atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0 must be a whole number of at least 1"),
        ({"n_neighbors": 2.5}, "n_neighbors=2.5"),
        ({"n_neighbors": True}, "n_neighbors=True"),
        ({"n_samples": 61}, "n_samples=61 with 60 rows: give a number from 1 to 60, a share in .0, 1., or None"),
        ({"n_samples": 0}, "n_samples=0"),
        ({"n_samples": 1.5}, "n_samples=1.5"),
        ({"n_samples": "ten"}, "n_samples='ten'"),
        ({"discrete_features": [0, 5]}, "discrete_features=.0, 5. with 5 features"),
        ({"discrete_features": [True, False]}, "discrete_features=.True, False. with 5 features"),
        ({"discrete_features": "some"}, "discrete_features='some' with 5 features"),
    ],
)
def test_impossible_parameters_are_named(wrong, words):
    X, y = clusters(60, 5)
    with pytest.raises(ValueError, match=words):
        ReliefF(**wrong).fit(X, y)


def test_impossible_data_are_named():
    X, y = clusters(60, 5)
    holes = X.copy()
    holes[3, 2] = np.nan
    for data, target, words in [
        (holes, y, "NaN or infinity in 1 of 5 columns .2."),
        (sp.csr_matrix(holes), y, "NaN or infinity in 1 of 5 columns .2."),
        (X, np.zeros(60), "only one class"),
        (X, np.full(60, 0.5), "y has only one value .0.5., .*: give rows that differ in y"),
        (X[:1], np.array([0.5]), "at least two rows"),
        (X, None, "y"),
    ]:
        with pytest.raises(ValueError, match=words):
            ReliefF().fit(data, target)
