"""The regression between rounds on a device, torch's CPU here: the matrix solved as it stands, and the CPU's rounds."""

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-device")
torch.set_num_threads(1)

from probewise import Tournament  # noqa: E402
from probewise.datasets import make_madelon  # noqa: E402
from probewise.kernels.device.inclusion import Inclusion  # noqa: E402
from probewise.probing import regression  # noqa: E402
from probewise.probing.ledger import Ledger  # noqa: E402
from probewise.probing.regression import Design, Regression  # noqa: E402
from probewise.probing.rounds import TournamentPlan  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def a_run(n_features=120, n_probes=300):
    """Three rounds; some features are in no probe."""
    rng = np.random.default_rng(0)
    plan = TournamentPlan(n_features, 4, seed=1).narrowed(n_probes // 2, rng.permutation(n_features)[:70])
    plan = plan.narrowed(n_probes * 3 // 4, plan.rounds[-1].active[::2])
    ledger = Ledger()
    ledger.append(rng.normal(size=n_probes), seconds=1.0)
    return plan, ledger


def test_products_are_those_of_the_matrix():
    rng, (plan, ledger) = np.random.default_rng(1), a_run()
    subsets = plan.draw(0, ledger.n_probes)
    place, lengths = rng.permutation(120).astype(np.int32), [150, 75, 75]
    matrix = np.zeros((300, 120))
    for probe, subset in enumerate(subsets):
        matrix[probe, place[subset]] = 1.0
    shares, w, means, values = (rng.normal(size=size) for size in (300, 120, 3, 300))
    ours = Inclusion(subsets.indices, subsets.offsets, place, lengths, shares, DEVICE)
    np.testing.assert_allclose(ours.times(w), matrix @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.transposed_times(values), matrix.T @ values, rtol=1e-12, atol=1e-12)
    centred = matrix @ w - subsets.sizes * np.repeat(means, lengths)
    sums, totals = ours.normal(w, means)
    np.testing.assert_allclose(sums, matrix.T @ centred, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(totals, np.add.reduceat(centred * shares, [0, 150, 225]), rtol=1e-11, atol=1e-11)
    assert sums.tobytes() == ours.normal(w, means)[0].tobytes()


@pytest.mark.parametrize("are_kept", [True, False])
def test_the_regression_is_the_cpus(are_kept, monkeypatch):
    if not are_kept:
        monkeypatch.setattr(regression, "KEPT_INDICES", 0)
    plan, ledger = a_run()
    found = [Regression.of_design(Design(plan, ledger, device=place), 0.3, 1e-10) for place in (None, DEVICE)]
    np.testing.assert_allclose(found[1].coefficients, found[0].coefficients, rtol=1e-8)
    np.testing.assert_allclose(found[1].std_errors, found[0].std_errors, rtol=1e-8)


def test_rounds_are_replayed_without_the_device(tmp_path):
    data = make_madelon(n_samples=60, n_features=60, random_state=0)
    options = {"n_probes": 400, "random_state": 0, "ledger": tmp_path / "run.ledger"}
    ours = Tournament(10, **options, device="torch-cpu").fit(data.X, data.y)
    assert ours.run_.record.narrowing.device == "cpu"
    other = pickle.loads(pickle.dumps(ours))
    assert other.run_.record.narrowing.device is None
    again = other.run_.record.narrowing.fit(other.run_.plan, other.run_.ledger)
    np.testing.assert_allclose(again.coefficients, ours.scores_, rtol=1e-9)
    plan = other.run_.record.first_plan()
    for end in other.run_.record.narrowing.ends:
        plan = other.run_.record.narrowing(plan, other.run_.ledger, end)
    for mine, theirs in zip(plan.rounds, ours.run_.plan.rounds, strict=True):
        np.testing.assert_array_equal(mine.active, theirs.active)
