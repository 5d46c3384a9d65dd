"""Filters on a device, torch's CPU here, give what the ordinary kernels give: counts to the bit, sums to rounding."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

torch = pytest.importorskip("torch", reason="torch is not installed: make test-device")

from probewise import CMIM, EFS, FSDD, JMI, MRMR, ReliefF  # noqa: E402
from probewise.datasets import make_madelon  # noqa: E402
from probewise.information import Codes  # noqa: E402
from probewise.kernels.device import contingency, moments, relief, streaming  # noqa: E402
from probewise.validation.stores import Stored  # noqa: E402
from sampling import examples  # noqa: E402

seeds = st.integers(0, 2**32 - 1)
SELECTORS = {
    "fsdd": FSDD(),
    "mid": MRMR(9),
    "miq": MRMR(9, scheme="quotient"),
    "jmi": JMI(9),
    "cmim": CMIM(9),
    "efs": EFS(9),
    "efs of 20 levels": EFS(9, discretization=20),
    "relieff": ReliefF(),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small tensors: threads that wait for each other would take most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def both(selector, X, y):
    """Fitted by the ordinary kernels, and on the device."""
    one, other = (type(selector)(**selector.get_params()).set_params(device=device) for device in ("cpu", "torch-cpu"))
    return one.fit(X, y), other.fit(X, y)


def madelon(n_rows, n_columns):
    data = make_madelon(n_rows, n_columns, random_state=0)
    return data.X, data.y


def awkward(seed):
    """A table with columns far from zero, constant ones and ties, classes of all sizes; its dtype and layout vary."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns, n_classes = rng.integers(2, 300), rng.integers(1, 40), rng.integers(2, 30)
    codes = rng.choice(n_classes, n_rows, p=rng.dirichlet(np.ones(n_classes)))
    codes[:2] = 0, 1
    X = rng.normal(size=(n_rows, n_columns)) * rng.choice([1, 1e-3, 50], n_columns) + rng.choice([0, 1, 1e4])
    X[:, rng.integers(n_columns)] = 3
    kind = rng.choice([np.float64, np.float32, np.float16, np.int64, np.int16, np.uint16, np.int8, np.bool_])
    with np.errstate(all="ignore"):
        X = np.asarray(X % 100 if kind in (np.int8, np.float16) else np.abs(X) if kind == np.uint16 else X).astype(kind)
    layout = rng.choice(["rows", "columns", "gaps", "csr", "csc", "store", "locked"])
    if layout == "columns":
        X = np.asfortranarray(X)
    elif layout == "gaps":
        X = np.repeat(X, 2, axis=1)[:, ::2]
    elif layout == "store" and X.dtype != np.bool_:
        X = Stored(X)
    elif layout in ("csr", "csc") and X.dtype != np.float16:
        X = sp.csr_matrix(X) if layout == "csr" else sp.csc_matrix(X)
    elif layout == "locked":
        X.flags.writeable = False
    return X, codes


def assert_same_scores(one, other, tolerance=1e-11):
    np.testing.assert_allclose(other.scores_, one.scores_, rtol=tolerance, atol=tolerance)


@examples(50)
@given(seed=seeds)
def test_fsdd_on_any_table(seed):
    X, y = awkward(seed)
    one, other = both(FSDD(), X, y)
    spread = np.sqrt(one.variances_)
    apart = (one.variances_ > 1e-12 * np.nanmax(np.abs(one.means_), axis=0) ** 2) | (one.variances_ == 0)
    np.testing.assert_array_equal(other.counts_, one.counts_)
    np.testing.assert_array_equal(np.isnan(other.scores_), np.isnan(one.scores_))
    np.testing.assert_allclose(other.scores_[apart], one.scores_[apart], rtol=1e-9, atol=1e-9)
    allowed = 1e-11 * np.maximum(spread, np.abs(one.means_)) + 1e-12
    np.testing.assert_array_less(np.abs(other.means_ - one.means_), allowed)


@examples(40)
@given(seed=seeds)
def test_fsdd_leaves_out_nan(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rng.integers(2, 150), 12)) + 5
    y = rng.integers(0, 3, len(X))
    y[:2] = 0, 1
    X[rng.random(X.shape) < rng.choice([0.001, 0.1, 0.7])] = np.nan
    X[y == 1, 2] = X[:, 3] = np.nan
    one, other = both(FSDD(), X, y)
    np.testing.assert_array_equal(other.counts_, one.counts_)
    np.testing.assert_array_equal(np.isnan(other.means_), np.isnan(one.means_))
    assert_same_scores(one, other, 1e-9)


def test_fsdd_in_many_slices_and_runs(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 301)).astype(np.float32), rng.integers(0, 4, 500)
    X[7, 250] = np.nan
    monkeypatch.setattr(streaming, "BYTES", 500 * 40 * 4)
    monkeypatch.setattr(moments, "SHORTEST_RUN", 8)
    monkeypatch.setattr(moments, "free_bytes", lambda device: 500 * 64 * 7)
    for threads in (None, 2):
        one, other = both(FSDD(n_jobs=threads), X, y)
        assert_same_scores(one, other)
        np.testing.assert_array_equal(other.ranking_, one.ranking_)
        assert other.counts_[:, 250].sum() == 499


def test_fsdd_of_parts():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(90, 11)), np.repeat([0, 1, 2], 30)
    parts = FSDD(device="torch-cpu")
    for rows in (slice(0, 40), slice(40, 41), slice(41, 90)):
        parts.partial_fit(X[rows], y[rows])
    assert_same_scores(FSDD().fit(X, y), parts)


def test_fsdd_names_columns_with_infinity():
    X = np.ones((6, 3))
    X[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinity.* 1 of 3 columns \(1\)"):
        FSDD(device="torch-cpu").fit(X, [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("n_classes", [2, 5, 7])
def test_class_moments_of_a_tensor(n_classes):
    rng = np.random.default_rng(n_classes)
    X, codes = rng.normal(size=(123, 77)) + 1e3, rng.integers(0, n_classes - 1, 123)  # the last class is empty
    found = moments.class_moments(torch.from_numpy(X), codes, n_classes)
    for i in range(n_classes - 1):
        own = X[codes == i]
        np.testing.assert_allclose(found.origins + found.offsets[i], own.mean(axis=0), rtol=1e-14)
        np.testing.assert_allclose(found.scatters[i], ((own - own.mean(axis=0)) ** 2).sum(axis=0), rtol=1e-12)
    assert found.counts[:, 0].tolist() == np.bincount(codes, minlength=n_classes).tolist()
    assert not found.scatters[-1].any()
    assert not found.offsets[-1].any()


def tables_of_codes(seed):
    rng = np.random.default_rng(seed)
    n_rows, n_columns = rng.integers(1, 200), rng.integers(1, 30)
    codes = rng.integers(0, rng.integers(1, rng.choice([3, 6, 40, 300]), n_columns), (n_rows, n_columns))
    n_base = int(rng.choice([1, 2, 3, 16, 64, 65, 150]))
    columns = None if rng.random() < 0.5 else rng.permutation(n_columns)[: rng.integers(0, n_columns + 1)]
    return codes, rng.integers(0, n_base, n_rows), n_base, columns


@pytest.mark.parametrize("room", [2**28, 2000], ids=["at once", "by pieces"])
@examples(50)
@given(seed=seeds)
def test_counts_are_the_cpus(room, seed):
    matrix, base, n_base, columns = tables_of_codes(seed)
    codes = Codes.of(matrix)
    on_device = codes.on("torch-cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contingency, "free_bytes", lambda device: room)
        found = on_device.joint(base, n_base, columns)
    for numbers, expected in zip(found, codes.joint(base, n_base, columns), strict=True):
        np.testing.assert_array_equal(numbers, expected)


def test_counts_past_what_float32_holds(monkeypatch):
    monkeypatch.setattr(contingency, "EXACT_FLOATS", 10)
    codes = Codes.of(np.random.default_rng(0).integers(0, 4, (70, 6)))
    base = np.arange(70) % 5
    for numbers, expected in zip(codes.on("torch-cpu").joint(base, 5), codes.joint(base, 5), strict=True):
        np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize("name", ["mid", "miq", "jmi", "cmim", "efs", "efs of 20 levels"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_information_filters_to_the_bit(name, is_sparse):
    X, y = madelon(160, 60)
    X = sp.csr_matrix(np.where(X > 0, X, 0)) if is_sparse else X
    one, other = both(SELECTORS[name], X, y)
    for kept in ("order_", "scores_", "ranking_", "redundancy_", "partners_"):
        np.testing.assert_array_equal(getattr(other, kept), getattr(one, kept), err_msg=kept)


def relief_table(seed):
    """Ties, categories, a constant column, classes of one row or many, or a number to predict."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = rng.integers(4, 60), rng.integers(1, 12)
    X = rng.integers(0, rng.integers(1, 8), (n_rows, n_columns)).astype(float)
    if rng.random() < 0.6:
        X[:, rng.random(n_columns) < 0.5] += rng.standard_normal((n_rows, 1))
    y = rng.choice(4, n_rows, p=rng.dirichlet(np.ones(4))) if rng.random() < 0.7 else rng.normal(size=n_rows)
    y[:2] = 0, 1
    selector = ReliefF(
        n_neighbors=int(rng.integers(1, 13)),
        n_samples=None if rng.random() < 0.5 else int(rng.integers(1, n_rows + 1)),
        discrete_features=rng.random(n_columns) < rng.choice([0, 0.5, 1]),
        random_state=0,
    )
    return selector, sp.csc_matrix(X) if rng.random() < 0.3 else X, y


@pytest.mark.parametrize("room", [2**28, 2000], ids=["at once", "by pieces"])
@examples(60)
@given(seed=seeds)
def test_relieff_on_any_table(room, seed):
    selector, X, y = relief_table(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relief, "free_bytes", lambda device: room)
        patch.setattr(relief, "ROWS_TOGETHER", 2**19 if room > 2000 else 8)
        one, other = both(selector, X, y)
    np.testing.assert_array_equal(other.samples_, one.samples_)
    assert_same_scores(one, other, 1e-12)


def test_relieff_ranks_as_on_the_cpu():
    X, y = madelon(300, 150)
    one, other = both(ReliefF(), X.astype(np.float32), y)
    assert_same_scores(one, other, 1e-12)
    assert spearmanr(one.scores_, other.scores_).statistic >= 0.999
    np.testing.assert_array_equal(np.argsort(one.ranking_)[:20], np.argsort(other.ranking_)[:20])


@pytest.mark.parametrize("name", SELECTORS)
def test_same_bits_on_every_run(name):
    X, y = madelon(150, 40)
    scores = [SELECTORS[name].set_params(device="torch-cpu").fit(X, y).scores_ for _ in range(2)]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("name", SELECTORS)
def test_an_unknown_device_is_refused(name):
    X, y = madelon(30, 20)
    selector = type(SELECTORS[name])(device="abacus")
    with pytest.raises(ValueError, match="device='abacus' is not known"):
        selector.fit(X, y)


def test_triton_kernels_in_the_interpreter():
    pytest.importorskip("triton", reason="Triton is not installed: it is for Linux")
    script = Path(__file__).with_name("interpreted.py")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
