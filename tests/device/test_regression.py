"""The regression between rounds on a device (here torch on the CPU) equals that of the CPU."""

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-device")
torch.set_num_threads(1)

from probewise import Tournament  # noqa: E402
from probewise.datasets import make_madelon  # noqa: E402
from probewise.engine import regression  # noqa: E402
from probewise.engine.ledger import Ledger  # noqa: E402
from probewise.engine.probes import Subsets  # noqa: E402
from probewise.engine.regression import Design, Regression  # noqa: E402
from probewise.engine.schedule import TournamentPlan  # noqa: E402
from probewise.kernels.device.inclusion import Inclusion  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def a_run(n_features=120, n_probes=300):
    """Plan and ledger of three rounds; some features are in no probe."""
    rng = np.random.default_rng(0)
    plan = TournamentPlan(n_features, 4, seed=1).with_round(n_probes // 2, rng.permutation(n_features)[:70])
    plan = plan.with_round(n_probes * 3 // 4, plan.rounds[-1].active[::2])
    ledger = Ledger()
    ledger.append(rng.normal(size=n_probes), seconds=1.0)
    return plan, ledger


def test_products_and_solution_are_those_of_the_matrix():
    """Three rounds; four features dropped after the first and four after the second are in no probe."""
    rng, n_active, roots = np.random.default_rng(1), np.array([46, 27, 10]), np.ones(40)
    roots[[23, 39]] = 2.0
    n_columns, lengths = np.array([40, 24, 10]), [150, 75, 75]
    n_of_probe = np.repeat(n_columns, lengths)
    probed = [rng.permutation(np.setdiff1d(np.arange(n, dtype=np.int32), [23, 39])) for n in n_of_probe]
    subsets = Subsets.of([columns[: rng.integers(1, 9)] for columns in probed])
    place = rng.permutation(40).astype(np.int32)
    matrix = np.zeros((300, 40))
    for probe, subset in enumerate(subsets):
        matrix[probe, subset] = 1.0
    held = np.argsort(place).astype(np.int32)[subsets.indices]
    ours = Inclusion(held, subsets.offsets, place, lengths, n_active, n_columns, roots, DEVICE)
    w, values = rng.normal(size=40), rng.normal(size=300)
    np.testing.assert_allclose(ours.times(w), matrix @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.transposed_times(values), matrix.T @ values, rtol=1e-12, atol=1e-12)

    shares = subsets.sizes / np.repeat(n_active, lengths)
    is_in_round = np.arange(40) < n_of_probe[:, None]
    centred = (matrix - shares[:, None] * is_in_round) * roots
    whole = centred.T @ centred + 3.0 * np.eye(40)
    solution = ours.solve(whole @ w, 3.0, 1e-12, 200)
    np.testing.assert_allclose(solution, w, rtol=1e-8, atol=1e-9)
    assert solution.tobytes() == ours.solve(whole @ w, 3.0, 1e-12, 200).tobytes()
    assert not ours.solve(np.zeros(40), 3.0, 1e-3, 200).any()


@pytest.mark.parametrize("are_stored", [True, False])
def test_the_regression_equals_that_of_the_cpu(are_stored, monkeypatch):
    if not are_stored:
        monkeypatch.setattr(regression, "MAX_STORED_INDICES", 0)
    plan, ledger = a_run()
    cpu, ours = (Regression.of_design(Design(plan, ledger, device=name), 0.3, 1e-10) for name in (None, DEVICE))
    np.testing.assert_allclose(ours.coefficients, cpu.coefficients, rtol=1e-8)
    np.testing.assert_allclose(ours.std_errors, cpu.std_errors, rtol=1e-8)


def test_rounds_are_replayed_without_the_device(tmp_path):
    data = make_madelon(n_samples=60, n_features=60, random_state=0)
    options = {"n_probes": 400, "random_state": 0, "ledger": tmp_path / "run.ledger"}
    ours = Tournament(10, **options, device="torch-cpu").fit(data.X, data.y)
    assert ours.run_.settings.schedule.device == "cpu"
    other = pickle.loads(pickle.dumps(ours))
    assert other.run_.settings.schedule.device is None
    again = other.run_.settings.schedule.fit(other.run_.plan, other.run_.ledger)
    np.testing.assert_allclose(again.coefficients, ours.run_.coefficient()[0], rtol=1e-9)
    plan = other.run_.settings.first_plan()
    for end in other.run_.settings.schedule.ends:
        plan = other.run_.settings.schedule(plan, other.run_.ledger, end)
    for mine, theirs in zip(plan.rounds, ours.run_.plan.rounds, strict=True):
        np.testing.assert_array_equal(mine.active, theirs.active)
