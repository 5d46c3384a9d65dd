"""Class distances on a device equal the CPU's to rounding of float64, which near-singular covariances make larger."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from probewise.criteria.device import to_device
from probewise.criteria.separability import Separability
from probewise.engine.probes import ProbePlan, Subsets
from sampling import examples

torch = pytest.importorskip("torch", reason="torch is not installed: make test-device")
torch.set_num_threads(1)

from probewise.criteria import separability_device as separability  # noqa: E402

DISTANCES = ["mahalanobis", "bhattacharyya", "divergence"]
SUBSETS = ProbePlan(20, max_size=12, seed=1).draw(0, 10)


def table(n=150, d=20, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_classes), 1 + np.arange(n_classes) * 2)[np.arange(n) % n_classes**2])
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) * rng.uniform(0.1, 10, d)
    X[:, : d // 2] += 3 * y[:, None] * rng.uniform(size=d // 2)
    X[y == 1, 1] *= 3
    X[:, 3] = 7  # constant
    X[:, 4] = X[:, 5]  # duplicate
    return X, y


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("kept", [True, False], ids=["looked up", "made"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("measure", DISTANCES)
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("shrinkage", [0, 0.1, 1])
def test_equals_the_cpu(make, measure, n_classes, shrinkage, kept, monkeypatch):
    X, y = table(n_classes=n_classes)
    bound = Separability(measure, shrinkage=shrinkage).bind(make(X), y)
    if not kept:
        monkeypatch.setattr(separability, "free_bytes", lambda device: 3000)
    device = bound.to("cpu")
    assert (device.table is not None) == kept
    np.testing.assert_allclose(device(SUBSETS.indices, SUBSETS.offsets), bound(SUBSETS), rtol=1e-8)


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(6, 60), st.integers(1, 12), st.integers(2, 4), st.sampled_from(DISTANCES))
def test_equals_the_cpu_on_whatever_data(seed, n, d, n_classes, measure):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d), int(rng.integers(0, 4)))
    X[:, rng.integers(d)] = 5
    X[:, rng.integers(d)] = X[:, 0]
    y = rng.permutation(np.arange(n) % n_classes)
    subsets = Subsets.of([[0], np.arange(d), rng.permutation(d)[: rng.integers(1, d + 1)]])
    bound = Separability(measure).bind(X + 100 * rng.integers(0, 2), y)
    np.testing.assert_allclose(bound.to("cpu")(subsets.indices, subsets.offsets), bound(subsets), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("measure", DISTANCES)
def test_same_bits_twice_and_nothing_for_no_features(measure):
    X, y = table()
    bound = Separability(measure).bind(X, y)
    device, other = bound.to("cpu"), bound.to("cpu")
    first = device(SUBSETS.indices, SUBSETS.offsets)
    np.testing.assert_array_equal(device(SUBSETS.indices, SUBSETS.offsets), first)
    np.testing.assert_array_equal(other(SUBSETS.indices, SUBSETS.offsets), first)
    assert len(device(np.empty(0, np.int32), np.zeros(1, np.int64))) == 0
    two = Subsets.of([[], [0]])
    np.testing.assert_allclose(to_device(bound, "torch-cpu")(two), bound(two), atol=1e-12)


def test_clusters_stay_on_the_cpu():
    X, _ = table()
    bound = Separability("clusters").bind(X, None)
    with pytest.raises(ValueError, match="Clusters runs on the CPU only"):
        to_device(bound, "torch-cpu")
    assert to_device(bound, "auto") is bound
