"""FSDD: equal to the literal equation, stable, invariant, and the same for every layout and type of data."""

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.feature_selection import f_classif

import naive
from probewise.executors import serial
from probewise.filters import fsdd
from probewise.filters.fsdd import FSDD, ClassMoments
from probewise.kernels import moments as kernels
from sampling import examples

MAKERS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "swapped bytes": lambda X: X.astype(X.dtype.newbyteorder()),
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "CSR": sp.csr_matrix,
    "CSC": sp.csc_array,
}
DTYPES = ["f2", "f4", "f8", "longdouble", "i1", "u1", "i4", "u8", "bool"]


def table(n_rows=90, n_features=12, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    y[:n_classes] = np.arange(n_classes)
    return rng.standard_normal((n_rows, n_features)) + y[:, None] * rng.standard_normal(n_features), y


def scores(X, y, **options):
    return FSDD(**options).fit(X, y).scores_


@st.composite
def cases(draw):
    """Small whole numbers of every type and layout, with a rare class, a constant column and, for floats, NaN."""
    dtype, make = np.dtype(draw(st.sampled_from(DTYPES))), draw(st.sampled_from(sorted(MAKERS)))
    if make.startswith("CS") and dtype == np.float16:
        dtype = np.dtype("f4")
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows, n_features = draw(st.integers(2, 30)), draw(st.integers(1, 6))
    y = rng.integers(0, draw(st.integers(1, 4)), n_rows)
    y[0] = 9
    y[1] = 0
    X = rng.integers(0, draw(st.sampled_from([2, 5, 100])), (n_rows, n_features)) * (rng.random(n_features) < 0.9)
    X = X.astype(dtype)
    if dtype.kind == "f":
        X[rng.random(X.shape) < draw(st.sampled_from([0, 0.2, 0.9]))] = np.nan
    return X, y, MAKERS[make]


@given(cases(), st.sampled_from([0, 0.5, 2.0, 30]))
@examples(400)
def test_equals_the_literal_equation(case, beta):
    X, y, make = case
    np.testing.assert_allclose(scores(make(X), y, beta=beta), naive.fsdd(X, y, beta), rtol=1e-10, atol=1e-12)


@given(cases(), st.sampled_from([0, 2.0, 30]))
@examples(100)
def test_overlap_equals_the_literal_sum_over_pairs(case, beta):
    X, y, make = case
    found = scores(make(X), y, beta=beta, overlap=True)
    np.testing.assert_allclose(found, naive.fsdd_overlap(X, y, beta), rtol=1e-9, atol=1e-11)
    assert not (found < scores(make(X), y, beta=beta) - 1e-9).any()  # an overlap is 1 at most


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["leukemia", "lymphoma"])
def test_equals_the_literal_equation_on_genes(real_data, name):
    data = real_data(name)
    X, y = data["X"], data["y"]
    some = np.random.default_rng(0).choice(X.shape[1], 40, replace=False)
    fitted = FSDD(10).fit(X, y)
    np.testing.assert_allclose(fitted.scores_[some], naive.fsdd(X[:, some], y), rtol=1e-11, equal_nan=True)
    np.testing.assert_allclose(fitted.scores_, scores(np.asfortranarray(X), y), rtol=1e-11, equal_nan=True)
    assert fitted.transform(X).shape == (len(X), 10)


@pytest.mark.parametrize("beta", [0.1, 1, 2, 5, 10, 20, 50, 100])
def test_iris_in_the_published_order(beta):
    X, y = load_iris(return_X_y=True)
    assert (1 + np.argsort(FSDD(beta=beta).fit(X, y).ranking_)).tolist() == [3, 4, 1, 2]


def test_orders_as_anova_does_where_classes_are_equally_large():
    X, _ = table(90)
    y = np.arange(90) % 3
    np.testing.assert_array_equal(np.argsort(scores(X + y[:, None], y)), np.argsort(f_classif(X + y[:, None], y)[0]))


def test_what_is_kept_is_what_it_says():
    X, y = table()
    X[5, 3] = np.nan
    fitted = FSDD().fit(X, np.array(["low", "mid", "top"])[y])
    inside = [X[y == i] for i in range(3)]
    assert fitted.classes_.tolist() == ["low", "mid", "top"]
    np.testing.assert_array_equal(fitted.counts_, [np.isfinite(part).sum(axis=0) for part in inside])
    np.testing.assert_allclose(fitted.means_, [np.nanmean(part, axis=0) for part in inside])
    np.testing.assert_allclose(fitted.variances_, np.nanvar(X, axis=0))
    np.testing.assert_allclose((fitted.between_ - 2 * fitted.within_) / fitted.variances_, fitted.scores_)
    share = fitted.counts_ / fitted.counts_.sum(axis=0)
    np.testing.assert_allclose(fitted.within_, sum(share * [np.nanvar(part, axis=0, ddof=1) for part in inside]))
    np.testing.assert_allclose(pickle.loads(pickle.dumps(fitted)).means_, fitted.means_)


@given(
    st.floats(1e-30, 1e30) | st.floats(1e-3, 1e3),
    st.floats(-1e6, 1e6),
    st.booleans(),
    st.sampled_from(["C", "F", "CSR", "CSC"]),
)
def test_shift_and_scale_change_nothing(a, b, negative, make):
    X, y = table(40, 5)
    moved = (-a if negative else a) * (X + b)
    np.testing.assert_allclose(scores(MAKERS[make](moved), y), scores(X, y), rtol=1e-8)
    overlap = {"overlap": True}
    np.testing.assert_allclose(scores(MAKERS[make](moved), y, **overlap), scores(X, y, **overlap), rtol=1e-7)


def test_wide_classes_that_are_apart_cost_less_with_overlap():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.standard_normal((400, 2)) + np.outer(y, [6.0, 0.0])
    plain, weighted = (scores(X, y, overlap=overlap) for overlap in (False, True))
    within = FSDD().fit(X, y).within_ / X.var(axis=0)
    assert weighted[0] - plain[0] == pytest.approx(within[0], rel=0.1)  # half of beta: a class overlaps with itself
    assert weighted[1] == pytest.approx(plain[1], abs=0.02)
    parts = FSDD(overlap=True).partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    np.testing.assert_allclose(parts.scores_, weighted, rtol=1e-12)


@pytest.mark.matrix
@pytest.mark.parametrize("make", ["C", "F", "CSR", "CSC"])
@pytest.mark.parametrize("far", [1e8, -1e8, 1e11])
def test_no_digits_are_lost_far_from_zero(make, far):
    X, y = table(2500, 3)
    X += far
    found = scores(MAKERS[make](X), y)
    np.testing.assert_allclose(found, naive.fsdd(X, y), rtol=1e-12)
    parts = FSDD()
    for rows in np.array_split(np.arange(2500), 7):
        parts.partial_fit(MAKERS[make](X[rows]), y[rows])
    np.testing.assert_allclose(parts.scores_, found, rtol=1e-12)


@pytest.mark.parametrize("make", ["C", "F", "CSC"])
def test_no_digits_are_lost_to_an_outlier_in_front(make):
    X, y = table(2000, 2)
    X[0] = 1e7
    np.testing.assert_allclose(scores(MAKERS[make](X), y), naive.fsdd(X, y), rtol=1e-11)


@given(st.data())
@examples(60)
def test_parts_in_any_cut_equal_the_whole(data):
    X, y = table(60, 5, n_classes=4, seed=data.draw(st.integers(0, 99)))
    X[np.random.default_rng(0).random(X.shape) < data.draw(st.sampled_from([0, 0.3]))] = np.nan
    X[:, 1] = 7.7
    labels = np.array(["a", "bb", "ccc", "d"])[y]
    order = np.argsort(y, kind="stable") if data.draw(st.booleans()) else np.arange(60)
    cuts = sorted(data.draw(st.sets(st.integers(1, 59), max_size=6)))
    parts = FSDD()
    for rows in np.split(order, cuts):
        parts.partial_fit(MAKERS[data.draw(st.sampled_from(sorted(MAKERS)))](X[rows]), labels[rows])
    whole = FSDD().fit(X, labels)
    np.testing.assert_allclose(parts.scores_, whole.scores_, rtol=1e-10)
    np.testing.assert_allclose(parts.means_, whole.means_, rtol=1e-10)
    np.testing.assert_array_equal(parts.counts_, whole.counts_)
    np.testing.assert_array_equal(parts.classes_, whole.classes_)
    assert np.isnan(parts.scores_[1])


def test_moments_add_in_any_order():
    X, y = table(60, 5)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    X[:20, 4] = np.nan
    parts = [ClassMoments.of(X[rows], y[rows], 3, serial) for rows in np.split(np.arange(60), [20, 25])]
    whole = ClassMoments.of(X, y, 3, serial)
    for a, b, c in itertools.permutations(parts):
        for total in ((a + b) + c, a + (b + c)):
            np.testing.assert_array_equal(total.counts, whole.counts)
            np.testing.assert_allclose(total.variances(), whole.variances(), rtol=1e-12)
    with pytest.raises(ValueError, match="cannot be added"):
        whole + ClassMoments.of(X[:, :4], y, 3, serial)


def test_one_class_at_a_time_and_classes_given_in_advance():
    X, y = table()
    fitted = FSDD().partial_fit(X[y == 2], y[y == 2])
    assert np.isnan(fitted.scores_).all()
    assert fitted.ranking_.tolist() == list(range(1, 13))
    fitted.partial_fit(X[y == 0], y[y == 0])
    assert fitted.classes_.tolist() == [0, 2]
    np.testing.assert_allclose(fitted.scores_, scores(X[y != 1], y[y != 1]), rtol=1e-12)
    told = FSDD().partial_fit(X[y != 1], y[y != 1], classes=[2, 1, 0])
    assert told.counts_[1].tolist() == [0] * 12
    assert np.isnan(told.means_[1]).all()
    np.testing.assert_allclose(told.scores_, fitted.scores_, rtol=1e-12)
    np.testing.assert_array_equal(fitted.fit(X, y).scores_, scores(X, y))


@pytest.mark.parametrize("make", ["C", "F", "every other row", "CSC"])
def test_same_bits_for_any_number_of_threads(make, monkeypatch):
    X, y = table(50, 300)
    X[3, 150:170] = np.nan
    whole = FSDD().fit(MAKERS[make](X), y)
    monkeypatch.setattr(fsdd, "CELLS_PER_JOB", 50 * 40)
    monkeypatch.setattr(fsdd, "STORED_VALUES_PER_JOB", 50 * 40)
    monkeypatch.setattr(fsdd, "CELLS_COPIED", 50 * 7)
    for n_jobs in (1, 2, 4):
        fitted = FSDD(n_jobs=n_jobs).fit(MAKERS[make](X), y)
        assert fitted.scores_.tobytes() == whole.scores_.tobytes()
        np.testing.assert_array_equal(fitted.counts_, whole.counts_)


@pytest.mark.parametrize("make", list(MAKERS))
def test_permuted_columns_give_permuted_scores(make):
    X, y = table(70, 2 * kernels.STRIP + 100)
    X[4, ::5] = np.nan
    order = np.random.default_rng(3).permutation(X.shape[1])
    np.testing.assert_array_equal(scores(MAKERS[make](X[:, order]), y), scores(MAKERS[make](X), y)[order])


@pytest.mark.parametrize("make", list(MAKERS))
def test_many_rows_and_many_strips(make):
    X, y = table(2 * kernels.ROWS + 77, 5)
    np.testing.assert_allclose(scores(MAKERS[make](X), y), naive.fsdd(X, y), rtol=1e-12)
    wide, y = table(30, 2 * kernels.STRIP + 77)
    some = [0, kernels.STRIP - 1, kernels.STRIP, 2 * kernels.STRIP, 2 * kernels.STRIP + 76]
    np.testing.assert_allclose(scores(MAKERS[make](wide), y)[some], naive.fsdd(wide[:, some], y), rtol=1e-12)


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_data_are_not_copied(make, dtype):
    X, y = make(np.ones((600, 40_000), dtype)), np.arange(600) % 2
    X[::2, 5] = 0
    FSDD().fit(X[:, :50], y)
    tracemalloc.start()
    FSDD().fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * X.nbytes + (2**24 if dtype == np.float16 else 0)


def test_features_without_a_score_come_last():
    X, y = table(n_classes=2)
    X[:, 0] = 0.1
    X[:, 1] = np.nan
    X[y == 1, 2] = np.nan
    fitted = FSDD().fit(X, y)
    assert np.flatnonzero(np.isnan(fitted.scores_)).tolist() == [0, 1, 2]
    assert fitted.ranking_[:3].tolist() == [10, 11, 12]
    assert fitted.counts_[:, 1].tolist() == [0, 0]


@pytest.mark.matrix(times=2)
@pytest.mark.parametrize("make", ["C", "F", "CSR", "CSC", "every other row"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("row", [0, 40])
def test_infinity_is_named(make, bad, row):
    X, y = table()
    X[row, 4] = bad
    X[row + 1, [2, 4]] = np.nan
    with pytest.raises(ValueError, match=r"infinity, or values too large to be squared, in 1 of 12 columns \(4\)"):
        FSDD().fit(MAKERS[make](X), y)
    fitted = FSDD().partial_fit(X[50:], y[50:])
    before = fitted.scores_.copy()
    with pytest.raises(ValueError, match="infinity"):
        fitted.partial_fit(X, y)
    np.testing.assert_array_equal(fitted.scores_, before)
    np.testing.assert_array_equal(fitted.counts_.sum(), X[50:].size)


def test_bad_input_is_refused():
    X, y = table()
    with pytest.raises(ValueError, match=r"y is continuous.*cut into classes"):
        FSDD().fit(X, X[:, 0])
    for beta in (-1, np.nan, np.inf, "2", None, True):
        with pytest.raises(ValueError, match=f"beta={beta!r} must be a number of at least 0"):
            FSDD(beta=beta).fit(X, y)
    with pytest.raises(ValueError, match="overlap='yes' must be True or False"):
        FSDD(overlap="yes").fit(X, y)
    with pytest.raises(ValueError, match="y is continuous"):
        FSDD().partial_fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"not among classes=\[0, 1\]: \[2\]"):
        FSDD().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="labels of one type"):
        FSDD().partial_fit(X, y).partial_fit(X, y.astype(str))
    with pytest.raises(ValueError, match="11 features"):
        FSDD().partial_fit(X, y).partial_fit(X[:, :11], y)


# ---- the paper's definitions


def by_definitions(X, y, columns):
    """d_b and d_w of these features, by definitions 1 to 3, eq. 4 and 5: distances between points, nothing else."""
    variance = X.var(axis=0)

    def distance(a, b):
        return sum((a[k] - b[k]) ** 2 / variance[k] for k in columns)

    classes = [X[y == label] for label in np.unique(y)]
    shares, centres = [len(rows) / len(y) for rows in classes], [rows.mean(axis=0) for rows in classes]
    inside = [
        sum(distance(a, b) for a, b in itertools.combinations(rows, 2)) * 2 / (len(rows) * (len(rows) - 1))
        for rows in classes
    ]
    pairs = itertools.product(range(len(classes)), repeat=2)
    between = sum(shares[i] * shares[j] * distance(centres[i], centres[j]) for i, j in pairs) / 2
    return between, sum(share * each for share, each in zip(shares, inside, strict=True))


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_eq_2_drops_a_factor_of_2_that_the_definitions_give(beta):
    X, y = table(40, 5)
    between, within = by_definitions(X, y, range(5))
    assert between - beta * within == pytest.approx(scores(X, y, beta=2 * beta).sum())  # not beta, as eq. 2 has it
    assert between - beta * within / 2 == pytest.approx(scores(X, y, beta=beta).sum())


def test_the_best_subset_of_every_size_is_that_of_the_best_features():
    """Section 2.2: what an exhaustive search finds."""
    X, y = table(30, 6)
    order = np.argsort(FSDD(beta=4.0).fit(X, y).ranking_)
    for size in range(1, 7):
        merits = {}
        for columns in itertools.combinations(range(6), size):
            between, within = by_definitions(X, y, columns)
            merits[columns] = between - 2 * within
        assert max(merits, key=merits.get) == tuple(sorted(order[:size].tolist()))
