"""Naive Bayes on a device equals the CPU's, but for rows whose two best classes cost the same to within 0.005.

That is the bound on rounding up to which subsets are told in float32; of those told in float64, rows may differ whose
costs are equal to within 1e-6. Costs are minus the logarithms of posteriors.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, StratifiedKFold

from probewise.criteria import NaiveBayes
from probewise.criteria import naive_bayes as criterion
from probewise.criteria.device import to_device
from probewise.engine.probes import ProbePlan, Subsets
from sampling import examples

torch = pytest.importorskip("torch", reason="torch is not installed: make test-device")
torch.set_num_threads(1)

from probewise.criteria import base_device  # noqa: E402
from probewise.criteria import naive_bayes_device as bayes  # noqa: E402

SUBSETS = ProbePlan(30, max_size=25, seed=1).draw(0, 12)


def table(n=120, d=30, n_classes=3, seed=0):
    return columns(np.random.default_rng(seed).permutation(np.arange(n) % n_classes), d, seed)


def counts(n_classes=3, seed=0):
    """Small whole numbers, most of them 0; classes of different size, so that posteriors do not tie."""
    y = np.repeat(np.arange(n_classes), 6 + 3 * np.arange(n_classes))
    X, y = columns(np.random.default_rng(seed).permutation(y), 30, seed)
    return np.maximum(0, np.rint((X - X.mean(axis=0)) / X.std(axis=0).clip(1e-9))), y


def columns(y, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((len(y), d)) * rng.uniform(1, 20, d) + 40
    X[:, : d // 2] += 6 * y[:, None] * rng.uniform(size=d // 2)
    X[:, 3] = 0.1  # constant
    X[:, 4] = X[:, 5]  # duplicate
    X[:, 6] *= 1000
    X[y == 0, 7] = 0.3  # constant in one class
    return X, y


def leads(X, y, splits, subset, smoothing):
    """By how much the cheapest class of every test row is cheaper than the next, split by split, in float64."""
    values = (X.toarray() if sp.issparse(X) else X)[:, subset].astype(np.float64)
    for train, test in splits:
        classes = np.unique(y[train])
        variance = np.stack([values[train][y[train] == c].var(axis=0) for c in classes])
        variance += smoothing * values[train].var(axis=0).max()
        heard = (variance > 0).all(axis=0) & (np.ptp(values[train], axis=0) > 0)
        costs = []
        for c, v in zip(classes, variance[:, heard], strict=True):
            own = values[train][y[train] == c][:, heard]
            square = (values[test][:, heard] - own.mean(axis=0)) ** 2 / v + np.log(v)
            costs.append(0.5 * square.sum(axis=1) - np.log(len(own) / len(train)))
        ordered = np.sort(costs, axis=0)
        yield ordered[1] - ordered[0] if len(classes) > 1 else np.full(len(test), np.inf)


def assert_equals_cpu(bound, device, subsets, X, y):
    expected, actual = bound(subsets), device(subsets.indices, subsets.offsets)
    quick = device._bounds(subsets.indices, subsets.offsets) <= bayes.DOUBT * 2.0**24
    for k, subset in enumerate(subsets):
        if abs(actual[k] - expected[k]) > 1e-12:
            least = bayes.DOUBT if quick[k] else bayes.LEAST_DOUBT
            close = [np.mean(lead < least) for lead in leads(X, y, bound.folds.splits, subset, bound.var_smoothing)]
            assert abs(actual[k] - expected[k]) <= np.mean(close) + 1e-12, subset


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("data", [table, counts])
@pytest.mark.parametrize("n_classes", [2, 3, 33])
@pytest.mark.parametrize("smoothing", [0, 1e-9, 1e-3])
def test_equals_the_cpu(make, data, n_classes, smoothing):
    X, y = data(n_classes=n_classes)
    bound = NaiveBayes(var_smoothing=smoothing).bind(make(X), y)
    assert_equals_cpu(bound, bound.to("cpu"), SUBSETS, X, y)


def test_subsets_are_told_in_every_way():
    X, y = table()
    X[:, 12] = 100 * y + 0.2 * np.random.default_rng(0).standard_normal(120)
    bound = NaiveBayes().bind(X, y)
    device = bound.to("cpu")
    ways = [Subsets.of(subsets) for subsets in ([[8], [8, 9, 10]], [[12], [8, 12]], [[7], [7, 8, 12]])]
    wide, close, constant = (device._bounds(subsets.indices, subsets.offsets) for subsets in ways)
    assert wide.max() <= bayes.DOUBT * 2.0**24 < close.min()
    assert close.max() <= bayes.LEAST_DOUBT * 2.0**53 < constant.min()
    for subsets in ways:
        assert_equals_cpu(bound, device, subsets, X, y)


@pytest.mark.matrix
@pytest.mark.parametrize("make", [np.asarray, sp.csc_matrix])
@pytest.mark.parametrize(
    "cv",
    [
        StratifiedKFold(20),
        KFold(3),
        LeaveOneOut(),
        ShuffleSplit(3, random_state=0),
        [(np.arange(120) % 50, np.arange(40)), (np.arange(60, 120), np.arange(50, 70))],
    ],
    ids=["20 folds", "not stratified", "leave one out", "shuffled", "rows taken twice"],
)
def test_any_splitter(make, cv, monkeypatch):
    X, y = table()
    monkeypatch.setattr(base_device, "BATCH_BYTES", 2**16)
    bound = NaiveBayes().bind(make(X), y, cv)
    assert_equals_cpu(bound, bound.to("cpu"), SUBSETS, X, y)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_classes_without_training_rows_are_never_chosen(n_classes):
    X, y = table(n_classes=n_classes)
    splits = [(np.flatnonzero(y != c), np.arange(120)) for c in range(n_classes)]
    bound = NaiveBayes().bind(X, y, splits)
    assert_equals_cpu(bound, bound.to("cpu"), SUBSETS, X, y)
    alone = NaiveBayes().bind(X, y, [(train, np.flatnonzero(y == c)) for c, (train, _) in enumerate(splits)])
    np.testing.assert_array_equal(alone.to("cpu")(SUBSETS.indices, SUBSETS.offsets), 0)


@st.composite
def problems(draw):
    n, d, n_classes = draw(st.integers(8, 60)), draw(st.integers(1, 12)), draw(st.sampled_from([2, 3, 4]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d)
    X += rng.integers(0, 3, d) * y[:, None] * np.std(X, axis=0)
    X = np.round(X, draw(st.sampled_from([0, 3, 12])))
    for column in draw(st.lists(st.integers(0, d - 1), max_size=3)):
        X[y != 0 if draw(st.booleans()) else slice(None), column] = X[0, column]
    X[:, -1] = X[:, 0]
    subsets = [[0], *(rng.choice(d, rng.integers(1, d + 1), replace=False).tolist() for _ in range(3))]
    return X, y, Subsets.of(subsets), draw(st.sampled_from([1e-9, 1e-3]))


@examples(100)
@given(problems(), st.sampled_from([np.asarray, sp.csr_matrix, "far from 0"]), st.booleans())
def test_equals_the_cpu_on_whatever_data(problem, make, shuffled):
    X, y, subsets, smoothing = problem
    if make == "far from 0":
        X, make = X + 1000, np.asarray
    cv = ShuffleSplit(2, test_size=0.4, random_state=0) if shuffled else 2
    bound = NaiveBayes(var_smoothing=smoothing).bind(make(X), y, cv)
    assert_equals_cpu(bound, bound.to("cpu"), subsets, X, y)


def test_moments_that_the_cpu_does_not_keep(monkeypatch):
    X, y = table()
    expected = NaiveBayes().bind(X, y)(SUBSETS)
    monkeypatch.setattr(criterion, "MEMORY_LIMIT", 0)
    monkeypatch.setattr(bayes, "PIECE", 5000)  # a few features at a time
    device = NaiveBayes().bind(X, y).to("cpu")
    np.testing.assert_allclose(device(SUBSETS.indices, SUBSETS.offsets), expected, atol=1e-12)


def test_same_bits_twice_and_nothing_for_an_empty_batch():
    X, y = table()
    bound = NaiveBayes().bind(X, y)
    device, other = bound.to("cpu"), bound.to("cpu")
    first = device(SUBSETS.indices, SUBSETS.offsets)
    np.testing.assert_array_equal(device(SUBSETS.indices, SUBSETS.offsets), first)
    np.testing.assert_array_equal(other(SUBSETS.indices, SUBSETS.offsets), first)
    assert len(device(np.empty(0, np.int32), np.zeros(1, np.int64))) == 0


def test_as_a_criterion_of_a_search():
    X, y = table()
    bound = NaiveBayes().bind(X, np.minimum(y, 1))
    scores = to_device(bound, "torch-cpu")(Subsets.of([[8], [], [8, 9]]))
    np.testing.assert_allclose(scores[[0, 2]], bound(Subsets.of([[8], [8, 9]])), atol=1e-12)
    assert scores[1] == pytest.approx(2 / 3)  # the most frequent class
