"""k-NN on a device, torch's CPU here, gives what the ordinary kernels give; the Triton kernel is interpreted."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut, RepeatedStratifiedKFold, ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

torch = pytest.importorskip("torch", reason="torch is not installed: make test-device")

from probewise import BIF, DAF, SFFS  # noqa: E402
from probewise.cli import run  # noqa: E402
from probewise.criteria import KNN, Linear, knn_device  # noqa: E402
from probewise.criteria.base import Folds  # noqa: E402
from probewise.criteria.device import to_device  # noqa: E402
from probewise.criteria.knn_device import RowsByFold  # noqa: E402
from probewise.datasets import make_madelon  # noqa: E402
from probewise.engine.ledger import LedgerError  # noqa: E402
from probewise.engine.probes import ProbePlan, Subsets  # noqa: E402
from probewise.kernels.device import columns, count, find  # noqa: E402
from probewise.stopping import MaxProbes  # noqa: E402
from probewise.study import Study  # noqa: E402
from sampling import examples  # noqa: E402

HERE = Path(__file__).parent


def both(criterion, X, y, subsets, cv=3):
    """J from the ordinary kernels and from torch."""
    bound = criterion.bind(X, y, cv)
    return bound(subsets), to_device(bound, "torch-cpu")(subsets)


@examples(30)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 2, 3, 5, 8]), n_classes=st.integers(2, 5))
def test_votes_are_those_of_the_cpu(seed, k, n_classes):
    rng = np.random.default_rng(seed)
    n_rows, n_features = rng.integers(6 * n_classes, 90), rng.integers(2, 40)
    y = np.arange(n_rows) % n_classes
    X = rng.normal(size=(n_rows, n_features)) + y[:, None] * rng.random(n_features)
    subsets = ProbePlan(int(n_features), 30, seed=seed % 1000).draw(0, 25)
    truth, ours = both(KNN(k), X, y, subsets)
    np.testing.assert_array_equal(ours, truth)


@pytest.mark.parametrize("cv", [3, [(np.arange(40), np.arange(30, 60)), (np.arange(20, 60), np.arange(25))]])
def test_ties_of_whole_numbers_are_broken_as_on_the_cpu(cv):
    rng = np.random.default_rng(0)
    y, X = rng.permutation(np.arange(60) % 2), rng.integers(0, 3, size=(60, 6)).astype(float)
    bound, subsets = KNN(3).bind(X, y, cv), Subsets.of([[0], [0, 1, 2], [0, 1, 2, 3, 4, 5]])
    np.testing.assert_array_equal(to_device(bound, "torch-cpu")(subsets), bound(subsets))


def test_numbers_to_predict():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 15)).astype(np.float32)
    y = X[:, 0] + 0.1 * rng.normal(size=120)
    truth, ours = both(KNN(5), X, y, ProbePlan(15, 15, seed=3).draw(0, 60))
    np.testing.assert_allclose(ours, truth, atol=1e-9)
    flat = np.where(np.arange(120) < 40, 1.0, y)  # one fold without spread
    truth, ours = both(KNN(5, task="regression"), X, flat, ProbePlan(15, 15, seed=3).draw(0, 20))
    np.testing.assert_allclose(ours, truth, atol=1e-9)


@pytest.mark.parametrize(
    "cv",
    [LeaveOneOut(), ShuffleSplit(4, random_state=0), RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)],
    ids=["leave-one-out", "shuffle", "repeated"],
)
def test_any_splits(cv):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(80, 12)), np.arange(80) % 3
    truth, ours = both(KNN(3), X, y, ProbePlan(12, 12, seed=0).draw(0, 30), cv)
    np.testing.assert_allclose(ours, truth, atol=1e-12)


@pytest.mark.parametrize("kind", ["int8", "uint16", "bool", "F", "read-only", "sparse"])
def test_any_table(kind):
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 120, size=(90, 20)), np.arange(90) % 2
    tables = {
        "F": np.asfortranarray(X.astype(float)),
        "read-only": X.astype(float),
        "sparse": sp.csr_matrix(X * (X > 80)),
        "bool": X > 60,
    }
    table = tables[kind] if kind in tables else X.astype(kind)
    if kind == "read-only":
        table.flags.writeable = False
    cv = [(np.r_[30:90], np.r_[0:30]), (np.r_[0:30, 60:90], np.r_[30:60]), (np.r_[0:60], np.r_[60:90])]
    truth, ours = both(KNN(1), table, y, ProbePlan(20, 20, seed=0).draw(0, 40), cv)
    np.testing.assert_allclose(ours, truth, atol=1e-12)


def test_batches_that_do_not_fit_are_cut(monkeypatch):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(150, 30)), np.arange(150) % 2
    scorer = to_device(KNN(3).bind(X, y, 3), "torch-cpu")
    subsets = ProbePlan(30, 30, seed=0).draw(0, 50)
    whole = scorer(subsets)
    monkeypatch.setattr(knn_device, "BATCH_BYTES", 2**19)
    monkeypatch.setattr(scorer.scorer, "neighbor_bytes", 2**17)
    np.testing.assert_array_equal(scorer(subsets), whole)


def test_selectors_on_a_device(tmp_path):
    data = make_madelon(n_samples=120, n_features=40, random_state=0)
    options = {"criterion": "knn", "stop": MaxProbes(400), "random_state": 0}
    cpu = DAF(20, **options).fit(data.X, data.y)
    ours = DAF(20, **options, device="torch-cpu", ledger=tmp_path / "run").fit(data.X, data.y)
    workers = DAF(20, **options, device="torch-cpu", n_jobs=2).fit(data.X, data.y)
    assert ours.scores_.tobytes() == workers.scores_.tobytes()
    np.testing.assert_array_equal(cpu.support_, ours.support_)
    with pytest.raises(LedgerError, match='its criterion is "on a device: KNN'):
        clone(ours).set_params(device="cpu").fit(data.X, data.y)
    on_device = {"criterion": "knn", "device": "torch-cpu"}
    np.testing.assert_array_equal(
        BIF(20, criterion="knn").fit(data.X, data.y).support_, BIF(20, **on_device).fit(data.X, data.y).support_
    )
    searched, sought = (
        SFFS(3, **options).fit(data.X, data.y).path_[3] for options in (on_device, {"criterion": "knn"})
    )
    assert searched == sought


def test_a_study_of_selectors_on_a_device():
    data = make_madelon(n_samples=120, n_features=25, random_state=0)
    options = {"criterion": "knn", "stop": MaxProbes(400), "random_state": 0}
    selectors = {"cpu": DAF(**options), "device": DAF(**options, device="torch-cpu")}
    study = Study(selectors, {"3-NN": KNeighborsClassifier(3)}, trials=2, sizes=[5, 10], random_state=0)
    table = study.compare(data.X, data.y).table()
    on_cpu, on_device = (table["accuracy"][table["selector"] == name] for name in selectors)
    assert len(on_cpu) == 4
    np.testing.assert_array_equal(on_cpu, on_device)


def test_resumed_equals_uninterrupted(tmp_path):
    data = make_madelon(n_samples=100, n_features=30, random_state=0)
    options = {"criterion": "knn", "random_state": 0, "device": "torch-cpu", "ledger": tmp_path / "run"}
    DAF(stop=MaxProbes(200), **options).fit(data.X, data.y)
    resumed = DAF(stop=MaxProbes(500), **options).fit(data.X, data.y)
    whole = DAF(stop=MaxProbes(500), **options | {"ledger": None}).fit(data.X, data.y)
    assert resumed.scores_.tobytes() == whole.scores_.tobytes()


@pytest.mark.parametrize("kind", ["two values", "far from 0", "sentinels", "any units", "binary, rows by class"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hostile_columns_have_the_neighbours_of_the_cpu(kind, dtype):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 8)), np.arange(60) // 30
    tables = {
        "two values": np.where(X > 0, 1e5, 0.0) + X,
        "far from 0": X + 1e6,
        "sentinels": np.where(rng.random(X.shape) < 0.1, -999_999_999, X),
        "any units": X * 10.0 ** np.arange(0, 16, 2),
        "binary, rows by class": (X + 0.5 * y[:, None] > 0).astype(float),
    }
    bound = KNN(3).bind(tables[kind].astype(dtype), y, 3)
    subsets = Subsets.of([[0], [0, 1], [2, 3, 4], [0, 2, 4, 6], [0, 1, 2, 3, 4, 5, 6, 7]])
    np.testing.assert_array_equal(to_device(bound, "torch-cpu")(subsets), bound(subsets))


def test_what_cannot_be_is_said():
    data = make_madelon(n_samples=200, n_features=25, random_state=0)
    with pytest.raises(ValueError, match="device='tpu' is not known: choose 'cpu'"):
        DAF(device="tpu").fit(data.X, data.y)
    with pytest.raises(ValueError, match="SVM runs on the CPU only: use device='cpu', or criterion='knn'"):
        DAF(criterion="svm", device="torch-cpu").fit(data.X, data.y)
    with pytest.raises(ValueError, match="a device supports at most 32 neighbors; use device='cpu'"):
        DAF(criterion=KNN(33), device="torch-cpu").fit(data.X, data.y)
    if not torch.cuda.is_available():
        assert find("auto") is None
        with pytest.raises(ValueError, match="sees no GPU: check the driver"):
            DAF(device="cuda").fit(data.X, data.y)


def test_a_gpu_for_each_process(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert find("cuda") == "cuda:0"
    assert find("cuda:3") == "cuda:3"
    with pytest.raises(ValueError, match="device='cuda:4': there are GPUs 0 to 3 here"):
        find("cuda:4")

    class Process:
        name = "LokyProcess-6"

    monkeypatch.setattr("probewise.kernels.device.current_process", Process)
    assert find("cuda") == "cuda:2"
    assert [count(name) for name in ("cuda", "auto", "cuda:1", "torch-cpu")] == [4, 4, 1, 1]


def test_the_command_line(tmp_path, capsys):
    data = make_madelon(n_samples=120, n_features=25, random_state=0)
    table = np.column_stack([data.X, data.y])
    names = ",".join([f"f{number}" for number in range(25)] + ["label"])
    np.savetxt(tmp_path / "data.csv", table, delimiter=",", header=names, comments="")
    options = ["rank", str(tmp_path / "data.csv"), "--target", "label", "--quiet", "--device", "torch-cpu"]
    written = ["--out", str(tmp_path / "r.csv"), "--report", str(tmp_path / "r.json")]
    assert run([*options, "--n-probes", "120", *written]) == 0
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 26
    assert '"Tournament"' in (tmp_path / "r.json").read_text()
    assert run([*options, "--method", "fsdd"]) == 2
    assert "--device: FSDD has no such parameter; leave it out" in capsys.readouterr().err


def test_too_little_memory_is_said_before_anything_is_sent(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**30, 2**31))
    with pytest.raises(
        MemoryError, match=r"X \(100 x 10000000\) needs 4.8 GiB on cuda:0, where 1.0 of 2.0 GiB are free"
    ):
        columns.send(np.broadcast_to(np.float32(0), (100, 10_000_000)), np.arange(100), "cuda:0")


def test_solvers_are_loaded_once_by_threads_that_begin_together(monkeypatch):
    """torch fails where two threads load them at once: "lazy wrapper should be called at most once"."""
    at_work, together, loaded = threading.Lock(), threading.Barrier(4), []

    @cache
    def load(device):
        assert at_work.acquire(blocking=False), "two at once"
        time.sleep(0.02)
        loaded.append(device)
        at_work.release()

    def begin(number):
        together.wait()
        columns.Streams("cuda:0")

    monkeypatch.setattr(columns, "_load_solvers", load)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(begin, range(4)))
    assert loaded == ["cuda:0"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_process_may_begin_with_threads_on_the_gpu():
    script = """
import threading
from concurrent.futures import ThreadPoolExecutor
from probewise.kernels.device.columns import Streams
together = threading.Barrier(8)
with ThreadPoolExecutor(8) as pool:
    list(pool.map(lambda number: (together.wait(), Streams("cuda:0")), range(8)))
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]


def test_the_triton_kernel_interpreted():
    pytest.importorskip("triton", reason="triton is not installed: make test-device")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, str(HERE / "interpreted_knn.py")], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["done"]


def test_groups_of_rows():
    folds = Folds(((np.array([1, 3, 4]), np.array([2, 0])), (np.array([0, 2]), np.array([3, 1, 4]))), 5)
    (part,) = RowsByFold.of(folds, together=True)
    assert part.rows.tolist() == [0, 2, 1, 3, 4]
    assert part.groups.tolist() == [0, 0, 1, 1, 1]
    first, second = RowsByFold.of(folds, together=False, tile=4)
    assert first.rows.tolist() == [0, 2, 0, 0, 1, 3, 4]
    assert first.groups.tolist() == [0, 0, -1, -1, 1, 1, 1]
    assert (first.queries.tolist(), second.queries.tolist()) == ([0, 1], [0, 1, 2])


def test_folds_begin_tiles_where_that_adds_few_rows():
    folds = Folds.of(3, np.arange(600) % 2, is_classification=True)
    (part,) = RowsByFold.of(folds, together=True, tile=64)
    assert len(part.rows) == 3 * 256
    np.testing.assert_array_equal(part.rows[part.queries], folds.order)
    np.testing.assert_array_equal(part.groups[part.queries], np.repeat([0, 1, 2], 200))
    assert (np.diff(np.flatnonzero(np.diff(part.groups.clip(-1)) > 0) + 1) % 64 == 0).all()
    (few,) = RowsByFold.of(Folds.of(20, np.arange(600) % 2, is_classification=True), together=True, tile=64)
    assert len(few.rows) == 600


def test_no_grid_exceeds_the_limits_of_cuda(monkeypatch):
    """On 100 rows that are mostly zero, 262,144 undecided pairs made one grid: "invalid argument"."""
    quick = pytest.importorskip("probewise.kernels.device.neighbors_quick", reason="triton is not installed")
    bound = KNN(3).bind(np.zeros((100, 30)), np.arange(100) % 2, 3)
    device = bound.to("cpu")
    rows = device.searches[0].rows
    neighbors = quick.QuickNeighbors(rows, rows.groups.numpy(), device.searches[0].queries.numpy(), 3, False)
    grids, pairs = [], []

    def run(program):
        grids.append(program.grid)
        if program.kernel is quick.kernels.select_nearest:
            pairs.extend(program.arguments[4].tolist())

    monkeypatch.setattr(quick.Program, "run", run)
    monkeypatch.setattr(neighbors, "_compile", lambda programs: None)
    monkeypatch.setattr(quick.SubsetSearch, "_undecided_pairs", lambda self: torch.arange(self.is_undecided.numel()))
    subsets = Subsets.of([[0, 1]] * 4000)
    features, starts = torch.from_numpy(subsets.indices), torch.from_numpy(subsets.offsets)
    neighbors.nearest(features, starts, subsets.sizes, np.arange(4000))
    assert pairs == list(range(400_000))
    assert all(grid[0] < 2**31 and max(grid[1:], default=1) <= 65_535 and min(grid) > 0 for grid in grids)


@pytest.mark.parametrize(
    "error", [torch.cuda.OutOfMemoryError(""), RuntimeError("CUBLAS_STATUS_ALLOC_FAILED")], ids=str
)
@pytest.mark.parametrize("criterion", [KNN(3), Linear()])
def test_out_of_memory_halves_the_batch_and_keeps_the_bits(criterion, error, monkeypatch):
    data = make_madelon(90, 20, random_state=0)
    scorer = criterion.bind(data.X, data.y, 3).to("cpu")
    subsets, scores, tried, limit = ProbePlan(20, 9, seed=1).draw(0, 50), scorer._scores, [], {}
    expected = scorer(subsets.indices, subsets.offsets)

    def failing(batch):
        tried.append(len(batch.sizes))
        if len(batch.sizes) > limit["most"]:
            raise error
        return scores(batch)

    monkeypatch.setattr(scorer, "_scores", failing)
    for limit["most"] in (49, 12, 1):
        np.testing.assert_array_equal(scorer(subsets.indices, subsets.offsets), expected)
    assert {50, 25, 13, 1} <= set(tried)
    limit["most"] = 0
    with pytest.raises(MemoryError, match="cpu has too little free memory for a single probe: use device='cpu', fewer"):
        scorer(subsets.indices, subsets.offsets)


def test_batches_that_do_not_fit_beside_each_other_run_one_after_the_other(monkeypatch):
    """Halves of a batch, and then single probes, failed as long as other threads had the memory."""
    data = make_madelon(60, 20, random_state=0)
    scorer = KNN(3).bind(data.X, data.y, 3).to("cpu")
    subsets, scores, running = ProbePlan(20, 9, seed=1).draw(0, 20), scorer._scores, []
    expected = scorer(subsets.indices, subsets.offsets)

    def failing(batch):
        running.append(batch)
        try:
            time.sleep(0.01)
            if len(running) > 1:
                raise torch.cuda.OutOfMemoryError
            return scores(batch)
        finally:
            running.pop()

    monkeypatch.setattr(scorer, "_scores", failing)
    with ThreadPoolExecutor(6) as pool:
        for values in pool.map(lambda _: scorer(subsets.indices, subsets.offsets), range(30)):
            np.testing.assert_array_equal(values, expected)


def test_fits_share_their_streams(monkeypatch):
    """Each fit had its own streams, and torch keeps a cache for each: 41 GiB after a few fits that needed 3.8 GiB."""
    made = []
    for name in ("device", "stream"):
        monkeypatch.setattr(torch.cuda, name, nullcontext)
    monkeypatch.setattr(torch.cuda, "Stream", made.append)
    monkeypatch.setattr(columns, "_load_solvers", str)
    monkeypatch.setattr(columns.Streams, "_free", {})
    for _ in range(3):
        streams = columns.Streams("cuda:0")
        with streams(), streams():
            pass
    assert made == ["cuda:0", "cuda:0"]


def test_other_failures_of_a_device_say_what_to_do(monkeypatch):
    scorer = KNN(3).bind(np.eye(12), np.arange(12) % 2, 3).to("cpu")

    def failing(batch):
        raise RuntimeError("Triton Error [CUDA]: invalid argument")

    monkeypatch.setattr(scorer, "_scores", failing)
    with pytest.raises(RuntimeError, match=r"cpu failed \(Triton Error .*\): use device='cpu'"):
        scorer(np.array([0], np.int32), np.array([0, 1]))


def test_batches_are_in_proportion_to_the_data_and_to_the_environment(monkeypatch):
    monkeypatch.setattr(columns, "free_bytes", lambda device: 2**40)
    assert columns.batch_bytes("cuda:0", 1000) == 2**28
    assert columns.batch_bytes("cuda:0", 2**30) == 2**32
    monkeypatch.setenv("PROBEWISE_BATCH_MIB", "8192")
    assert columns.batch_bytes("cuda:0", 1000) == 2**33
    monkeypatch.setattr(columns, "free_bytes", lambda device: 2**30)
    assert columns.batch_bytes("cuda:0", 1000) == 2**27
    monkeypatch.setenv("PROBEWISE_BATCH_MIB", "much")
    with pytest.raises(ValueError, match="PROBEWISE_BATCH_MIB='much' must be a whole number of MiB"):
        columns.batch_bytes("cuda:0", 1000)


def test_small_batches_have_the_bits_of_large_ones(monkeypatch):
    data = make_madelon(90, 20, random_state=0)
    bound, subsets = KNN(3).bind(data.X, data.y, 3), ProbePlan(20, 9, seed=1).draw(0, 300)
    expected = bound.to("cpu")(subsets.indices, subsets.offsets)
    monkeypatch.setattr(knn_device, "batch_bytes", lambda device, data_bytes: 2**16)
    np.testing.assert_array_equal(bound.to("cpu")(subsets.indices, subsets.offsets), expected)
