"""Ridge regression on a device equals the CPU's, in float64."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit

from probewise.criteria import Linear
from probewise.criteria.device import to_device
from probewise.engine.probes import ProbePlan, Subsets
from sampling import examples

torch = pytest.importorskip("torch", reason="torch is not installed: make test-device")
torch.set_num_threads(1)

SUBSETS = ProbePlan(30, max_size=25, seed=1).draw(0, 12)
FEW = ProbePlan(30, max_size=25, seed=2).draw(0, 4)


def table(n=120, d=30, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % max(n_classes, 3))
    X = 3 * rng.standard_normal((n, d)) + 5
    X[:, : d // 2] += 2 * (y[:, None] == np.arange(d // 2) % max(n_classes, 2))
    X[:, 3] = 7  # constant
    X[:, 4] = X[:, 5]  # duplicate
    X[np.abs(X) < 2] = 0
    if n_classes == 2:
        y = y % 2
    return X, y if n_classes else X[:, 0] + rng.standard_normal(n)


def assert_equals_cpu(bound, device, subsets):
    np.testing.assert_allclose(device(subsets.indices, subsets.offsets), bound(subsets), rtol=1e-9, atol=1e-9)


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("make", [np.asfortranarray, sp.csr_matrix])
@pytest.mark.parametrize("n_classes", [0, 2, 33])
@pytest.mark.parametrize("alpha", [0.01, 100.0])
def test_equals_the_cpu(make, n_classes, alpha):
    X, y = table(n_classes=n_classes)
    bound = Linear(alpha).bind(make(X), y)
    assert_equals_cpu(bound, bound.to("cpu"), SUBSETS)


@pytest.mark.matrix(times=2)
@pytest.mark.parametrize(("make", "n_classes"), [(np.asarray, 0), (np.asarray, 3), (sp.csc_matrix, 2)])
@pytest.mark.parametrize(
    "cv",
    [
        KFold(20),
        LeaveOneOut(),
        ShuffleSplit(3, random_state=0),
        [(np.arange(90), np.arange(90, 120))],
        [(np.arange(120) % 50, np.arange(40)), (np.arange(60, 120), np.arange(50, 70))],
    ],
    ids=["20 folds", "leave one out", "shuffled", "one split", "rows taken twice"],
)
def test_any_splitter(make, n_classes, cv):
    X, y = table(n_classes=n_classes)
    bound = Linear().bind(make(X), y, cv)
    assert_equals_cpu(bound, bound.to("cpu"), FEW)


@st.composite
def problems(draw):
    """Whole numbers times powers of two; the penalty is above the largest column's rounding."""
    n, d = draw(st.integers(12, 60)), draw(st.integers(1, 12))
    n_classes = draw(st.sampled_from([0, 2, 3, 5]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = np.rint(draw(st.sampled_from([2, 50, 1000])) * rng.standard_normal((n, d)))
    if draw(st.booleans()):
        X += rng.integers(0, 10_000, d)
    for column in draw(st.lists(st.integers(0, d - 1), max_size=3)):
        X[:, column] = X[:, 0] if draw(st.booleans()) else X[0, column]
    X *= 2.0 ** (draw(st.integers(-40, 40)) + rng.integers(-4, 5, d))
    y = rng.permutation(np.arange(n) % n_classes) if n_classes else rng.standard_normal(n) + (X[:, 0] > X[0, 0])
    subsets = [[0], *(rng.choice(d, rng.integers(1, d + 1), replace=False).tolist() for _ in range(3))]
    penalty = 10.0 ** draw(st.integers(-6, 1)) * n * max(X.var(axis=0).max(), 1e-3 * (X**2).max(), 1e-30)
    return X, y, Subsets.of(subsets), penalty


@examples(100)
@given(problems(), st.sampled_from([np.asarray, sp.csr_matrix]), st.booleans())
def test_equals_the_cpu_on_whatever_data(problem, make, shuffled):
    X, y, subsets, alpha = problem
    bound = Linear(alpha).bind(make(X), y, ShuffleSplit(2, test_size=0.4, random_state=0) if shuffled else 2)
    assert_equals_cpu(bound, bound.to("cpu"), subsets)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_class_that_is_not_in_training_is_never_chosen(n_classes):
    X, y = table(n=60, n_classes=n_classes)
    splits = [(np.flatnonzero(y != 0), np.flatnonzero(y == 0)), (np.flatnonzero(y == 0), np.flatnonzero(y != 0))]
    device = Linear().bind(X, y, splits).to("cpu")
    np.testing.assert_array_equal(device(SUBSETS.indices, SUBSETS.offsets), 0)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_columns_that_others_give(n_classes):
    X, y = table(n=40, d=200, n_classes=n_classes)
    bound = Linear(1e-3).bind(X, y)
    assert_equals_cpu(bound, bound.to("cpu"), ProbePlan(200, seed=0).draw(0, 8))


def test_any_units_give_the_same():
    X, y = table()
    expected = Linear(1e-6).bind(X, y)(SUBSETS)
    for power in (-30, 30):
        device = Linear(1e-6 * 4.0**power).bind(X * 2.0**power, y).to("cpu")
        np.testing.assert_allclose(device(SUBSETS.indices, SUBSETS.offsets), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["scales", "time stamp", "one far off", "nearly the same"])
def test_columns_of_any_units_beside_each_other(kind):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 9)), np.arange(90) % 2
    X[:, :3] += 0.7 * y[:, None]
    if kind == "scales":
        X[:, 4:] *= 1e9
    elif kind == "time stamp":
        X[:, 4] = 1.7e9 + 1e5 * X[:, 0]
    elif kind == "one far off":
        X[rng.integers(0, 90, 4), [0, 1, 4, 5]] = -999_999_999
    else:
        X[:, 4] = X[:, 0] + 1e-7 * X[:, 4]
    subsets = Subsets.of([[0, 1, 2], [0, 4], list(range(9)), [0, 1, 4, 5], [4, 5, 6, 7, 8]])
    for alpha, cv in ((1.0, 3), (1e-9, 3), (1.0, "loo")):
        bound = Linear(alpha).bind(X, y, cv)
        np.testing.assert_allclose(bound.to("cpu")(subsets.indices, subsets.offsets), bound(subsets), atol=1e-12)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_same_bits_twice_and_nothing_for_an_empty_batch(n_classes):
    X, y = table(n_classes=n_classes)
    bound = Linear().bind(X, y)
    device, other = bound.to("cpu"), bound.to("cpu")
    first = device(SUBSETS.indices, SUBSETS.offsets)
    np.testing.assert_array_equal(device(SUBSETS.indices, SUBSETS.offsets), first)
    np.testing.assert_array_equal(other(SUBSETS.indices, SUBSETS.offsets), first)
    assert len(device(np.empty(0, np.int32), np.zeros(1, np.int64))) == 0


def test_an_empty_subset_predicts_the_shares_of_the_classes():
    X, y = table()
    bound, empty = Linear().bind(X, np.minimum(y, 1)), Subsets.of([[], [0], []])
    np.testing.assert_allclose(bound.to("cpu")(empty.indices, empty.offsets), bound(empty), atol=1e-12)


def test_as_a_criterion():
    X, y = table()
    bound = Linear().bind(X, y)
    on_device = to_device(bound, "torch-cpu")
    assert_equals_cpu(bound, lambda indices, offsets: on_device(SUBSETS), SUBSETS)
