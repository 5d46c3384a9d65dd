"""Scores, weights and missing values on a device (here torch on the CPU) equal those of the CPU."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

torch = pytest.importorskip("torch", reason="torch is not installed: make test-device")
torch.set_num_threads(1)

from probewise import DAF, Tournament  # noqa: E402
from probewise.criteria import KNN, Average, Linear  # noqa: E402
from probewise.criteria.device import to_device  # noqa: E402
from probewise.datasets import make_madelon  # noqa: E402
from probewise.engine.probes import ProbePlan, Subsets  # noqa: E402
from probewise.kernels.device.scores import total  # noqa: E402
from probewise.stopping import MaxProbes  # noqa: E402

RNG = np.random.default_rng(0)
N, SUBSETS = 60, ProbePlan(14, 10, seed=1).draw(0, 5)
Y = RNG.permutation(np.arange(N) % 3)
X = RNG.normal(size=(N, 14))
X[:, :5] += 0.8 * Y[:, None]
X[:, 5], X[:, 6] = 7.0, X[:, 7]
WEIGHTS = RNG.uniform(size=N)
WEIGHTS[3] = 0.0
TARGETS = {"three": Y, "two": np.minimum(Y, 1), "numbers": X[:, 0] + RNG.normal(size=N)}
SCORES = [
    *(("accuracy", "three"), ("balanced_accuracy", "three"), ("f1_macro", "three"), ("roc_auc", "two")),
    *(("neg_mean_absolute_error", "numbers"), ("matthews_corrcoef", "three"), ("neg_median_absolute_error", "numbers")),
    *(("probability", "three"), ("probability", "two"), ("r2", "numbers"), ("neg_mean_squared_error", "numbers")),
]
SPLITS = {
    "3 folds": 3,
    "one left out": "loo",
    "rows tested twice": [(np.arange(40), np.arange(30, 50)), (np.arange(20, 60), np.arange(25))],
}


def assert_equals_cpu(bound, subsets=SUBSETS, close=1e-12):
    on_device = to_device(bound, "torch-cpu")
    expected = bound(subsets)
    np.testing.assert_allclose(on_device(subsets), expected, atol=close)
    np.testing.assert_array_equal(
        np.concatenate([on_device(subsets.only(np.arange(len(subsets)) == k)) for k in range(len(subsets))]),
        on_device(subsets),
    )


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("criterion", [KNN(3), KNN(6), Linear()], ids=str)
@pytest.mark.parametrize(("scoring", "target"), SCORES)
@pytest.mark.parametrize("cv", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weights"])
def test_every_score_is_that_of_the_cpu(criterion, scoring, target, cv, weights):
    bound = criterion.bind(X, TARGETS[target], cv, scoring=scoring, sample_weight=weights)
    assert_equals_cpu(bound, close=1e-9)


@pytest.mark.parametrize("cv", [3, SPLITS["rows tested twice"]], ids=["3 folds", "rows tested twice"])
@pytest.mark.parametrize("criterion", [KNN(3, missing="mean"), Linear(missing="median")], ids=str)
def test_missing_values_are_filled_in_each_fold(criterion, cv):
    incomplete = X.copy()
    incomplete[RNG.random(X.shape) < 0.1] = np.nan
    incomplete[:, 8:] = X[:, 8:]
    subsets = Subsets.of([[8, 9], [0, 9], [0, 1, 2, 3, 10], [6]])
    assert_equals_cpu(criterion.bind(incomplete, Y, cv), subsets, 1e-12)


def test_sparse_and_averages():
    table = sp.csr_matrix(X * (np.abs(X) > 1))
    for criterion in (KNN(4), Linear(), Average((KNN(4), Linear()))):
        bound = criterion.bind(table, Y, "loo", scoring="probability")
        np.testing.assert_allclose(to_device(bound, "torch-cpu")(SUBSETS), bound(SUBSETS), atol=1e-9)


def test_classes_without_training_rows():
    splits = [(np.flatnonzero(number != Y), np.arange(N)) for number in range(3)]
    for criterion in (KNN(3), Linear()):
        for scoring in ("probability", "f1_macro"):
            bound = criterion.bind(X, Y, splits, scoring=scoring)
            np.testing.assert_allclose(to_device(bound, "torch-cpu")(SUBSETS), bound(SUBSETS), atol=1e-5)
    rare = np.where(np.arange(N) == 7, 3, Y)  # the only row of its class
    for criterion in (KNN(3), Linear()):
        bound = criterion.bind(X, rare, "loo", scoring="probability")
        np.testing.assert_allclose(to_device(bound, "torch-cpu")(SUBSETS), bound(SUBSETS), atol=1e-9)


def test_a_tournament_on_a_device(tmp_path):
    data = make_madelon(n_samples=80, n_features=45, random_state=0)
    options = {"n_probes": 300, "random_state": 0}
    cpu = Tournament(20, **options).fit(data.X, data.y)
    ours = Tournament(20, **options, device="torch-cpu").fit(data.X, data.y)
    np.testing.assert_array_equal(ours.support_, cpu.support_)
    np.testing.assert_allclose(ours.run_.std_errors(), cpu.run_.std_errors(), rtol=1e-3)
    kept = {"device": "torch-cpu", "ledger": tmp_path / "run"}
    with pytest.warns(ConvergenceWarning):
        Tournament(20, **options | kept, time_limit=1e-9).fit(data.X, data.y)
    resumed = Tournament(20, **options | kept).fit(data.X, data.y)
    assert resumed.scores_.tobytes() == ours.scores_.tobytes()


def test_rounds_end_after_the_same_probes_on_any_device():
    """On noise the GPU shared 15 of the top 20 features with the CPU: other blocks, and so other rounds."""
    options = {"n_probes": 6000, "criterion": "linear", "random_state": 0}
    noise = np.random.default_rng(0).standard_normal((24, 60))
    cpu, ours = (Tournament(20, **options, device=device).fit(noise, Y[:24]) for device in ("cpu", "torch-cpu"))
    assert ours.run_.settings.schedule.ends == cpu.run_.settings.schedule.ends
    np.testing.assert_array_equal(ours.support_, cpu.support_)


def test_standard_errors_on_a_device():
    data = make_madelon(n_samples=80, n_features=25, random_state=0)
    options = {"criterion": "knn", "stop": MaxProbes(400), "random_state": 0}
    cpu, ours = (DAF(5, **options, device=device).fit(data.X, data.y) for device in ("cpu", "torch-cpu"))
    np.testing.assert_array_equal(ours.run_.std_errors(), cpu.run_.std_errors())


def test_sums_by_halves():
    values = torch.from_numpy(RNG.integers(0, 9, size=(4, 3, 13)).astype(float))
    for width in (0, 1, 2, 3, 8, 13):
        np.testing.assert_array_equal(total(values[..., :width]), values[..., :width].sum(dim=-1))
