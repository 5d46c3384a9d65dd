"""Stored tables (mapped files, Zarr, HDF5): the same bits as in memory, and only the needed columns are read."""

import subprocess
import sys

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from probewise import BIF, CFS, CMIM, DAF, DFE, EFS, FSDD, JMI, MRMR, SFFS, ReliefF
from probewise.criteria import KNN, Criterion, Linear, Separability
from probewise.criteria.columns import column_centers
from probewise.engine import fingerprints
from probewise.engine.fingerprints import fingerprint
from probewise.stopping import MaxProbes
from probewise.validation import stores
from probewise.validation.stores import ReadAhead, Stored, column_slices, is_stored
from sampling import examples

ESTIMATOR = DecisionTreeClassifier(max_depth=2, random_state=0)
STORES = ("C order", "Fortran order", "Zarr", "HDF5")


def daf(criterion, **options):
    return DAF(criterion=criterion, stop=MaxProbes(40), check_every=10, max_probe_size=9, random_state=0, **options)


def spread(X, y):
    return float(X.std())


STREAMING = {
    "DAF knn": daf("knn"),
    "DAF linear": daf("linear"),
    "DAF linear numbers": daf(Linear(task="regression")),
    "BIF knn": BIF(criterion="knn"),
    "BIF linear": BIF(criterion="linear"),
    "FSDD": FSDD(),
    "DFE": DFE(),
    "DFE greedy": DFE(discretization="greedy", discrete_features=[0, 5]),
    "MRMR": MRMR(8),
    "JMI": JMI(8),
    "CMIM": CMIM(8),
    "EFS": EFS(8),
    "CFS": CFS(),
}
OTHER_CRITERIA = {
    "naive Bayes": daf("naive_bayes"),
    "SVM": daf("svm"),
    "separability": daf("separability"),
    "clusters": daf(Separability("clusters")),
    "estimator": daf(ESTIMATOR),
    "function": daf(spread),
    "BIF naive Bayes": BIF(criterion="naive_bayes"),
    "BIF estimator": BIF(criterion=ESTIMATOR),
}
LOADING = {"ReliefF": ReliefF(), "SFFS": SFFS(2, criterion="linear")}


def table(n=60, d=48, seed=0, dtype=np.float32):
    """Columns of all kinds: far from zero, integer, constant, informative."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d)) * rng.exponential(3, d) + 100 * rng.standard_normal(d)
    X[:, [2, 7]] += 2.0 * y[:, None]
    X[:, 5::6] = np.rint(X[:, 5::6])
    X[:, 11:12] = 3.25
    return X.astype(dtype), y


def save(store, X, folder):
    """X in a file, as a user would open it, and the same X in memory."""
    if store in ("C order", "Fortran order"):
        X = np.asfortranarray(X) if store == "Fortran order" else X
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r"), X
    if store == "Zarr":
        zarr = pytest.importorskip("zarr", reason="zarr is not installed")
        array = zarr.create_array(store=str(folder / "X.zarr"), shape=X.shape, dtype=X.dtype, chunks=(25, 7))
        array[:] = X
        return zarr.open_array(str(folder / "X.zarr"), mode="r"), X
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(folder / "X.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(len(X), 5), compression="gzip")
    return h5py.File(folder / "X.h5", "r")["X"], X


def by_name(selectors):
    return pytest.mark.parametrize("selector", selectors.values(), ids=selectors.keys())


all_stores = pytest.mark.parametrize("store", STORES)
chunked_stores = pytest.mark.parametrize("store", ["Zarr", "HDF5"])


def assert_same_bits(selector, stored, X, y):
    there, here = clone(selector).fit(stored, y), clone(selector).fit(X, y)
    assert there.scores_.tobytes() == here.scores_.tobytes()
    assert there.ranking_.tolist() == here.ranking_.tolist()
    assert there.n_features_in_ == X.shape[1]
    return there


@pytest.mark.matrix
@all_stores
@by_name(STREAMING | OTHER_CRITERIA | LOADING)
def test_same_bits_as_in_memory(store, selector, tmp_path):
    X, y = table(d=30)
    stored, X = save(store, X, tmp_path)
    assert_same_bits(selector, stored, X, y)


@pytest.mark.matrix
@all_stores
@pytest.mark.parametrize("criterion", ["knn", Linear(), Linear(task="regression")], ids=["knn", "linear", "numbers"])
def test_same_bits_with_many_rows(store, criterion, tmp_path):
    """With many rows, Linear uses the sums of all features."""
    X, y = table(n=160, d=24)
    stored, X = save(store, X, tmp_path)
    assert Linear().bind(stored, y).has_sums
    assert_same_bits(daf(criterion), stored, X, y)
    assert_same_bits(BIF(criterion=criterion), stored, X, y)


@pytest.mark.matrix
@all_stores
@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.uint8, np.bool_])
def test_types(store, dtype, tmp_path):
    rng = np.random.default_rng(1)
    X, y = (20 * rng.random((45, 20))).astype(np.uint8).astype(dtype), np.arange(45) % 2
    stored, X = save(store, X, tmp_path)
    for selector in (daf("knn"), FSDD(), MRMR(4)):
        assert_same_bits(selector, stored, X, y)


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i4", "f2", "longdouble"])
def test_types_that_kernels_cannot_read_are_converted(dtype):
    X, y = table(d=14)
    X = np.rint(4 * X).clip(-1000, 1000).astype(dtype)
    plain = X.astype({"f2": np.float32, ">f4": np.float32, ">i4": np.int32}.get(dtype, np.float64))
    for selector in (daf("knn"), daf("linear"), BIF(), FSDD(), MRMR(4), ReliefF()):
        assert_same_bits(selector, X, plain, y)


@pytest.mark.matrix
@all_stores
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_change_nothing(store, n_jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "CELLS_AT_A_TIME", 600)
    X, y = table()
    stored, X = save(store, X, tmp_path)
    for selector in (daf("knn"), BIF(), FSDD(), DFE(), MRMR(5)):
        assert_same_bits(clone(selector).set_params(n_jobs=n_jobs), stored, X, y)


def test_missing_values_in_a_store(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "CELLS_AT_A_TIME", 600)
    X, y = table()
    X[3:9, 4], X[:, 20] = np.nan, np.nan
    stored, X = save("Zarr", X, tmp_path)
    there, here = FSDD().fit(stored, y), FSDD().fit(X, y)
    assert there.scores_.tobytes() == here.scores_.tobytes()
    np.testing.assert_array_equal(there.counts_, here.counts_)
    np.testing.assert_array_equal(there.means_, here.means_)
    with pytest.raises(ValueError, match=r"NaN or infinity in 2 of 48 columns \(4, 20\)"):
        daf("knn").fit(stored, y)


def test_parts_of_a_table_in_stores(tmp_path):
    X, y = table()
    whole = FSDD()
    for rows in (slice(0, 25), slice(25, 60)):
        folder = tmp_path / str(rows.start)
        folder.mkdir()
        whole.partial_fit(save("Zarr", X[rows], folder)[0], y[rows])
    np.testing.assert_allclose(whole.scores_, FSDD().fit(X, y).scores_, rtol=1e-10)


# ---- columns that are read


class Spy:
    """A store that records which columns are read."""

    chunks = None

    def __init__(self, X):
        self.X, self.shape, self.dtype, self.reads = X, X.shape, X.dtype, []

    def __getitem__(self, key):
        rows, columns = key
        assert isinstance(rows, slice)
        assert isinstance(columns, slice | list)
        self.reads.append(columns)
        return self.X[rows, columns]

    def take_reads(self):
        reads, self.reads = self.reads, []
        return reads


@pytest.mark.parametrize(
    "criterion", ["knn", "linear", "svm", ESTIMATOR, spread], ids=["knn", "linear", "svm", "estimator", "function"]
)
def test_only_the_columns_of_probes_are_read_after_the_first_pass(criterion, monkeypatch):
    monkeypatch.setattr(stores, "CELLS_AT_A_TIME", 600)
    X, y = table()
    spy = Spy(X)
    fitted = daf(criterion).fit(spy, y)
    all_reads = spy.take_reads()
    probes = [sorted(fitted.run_.feature_plan.probe(i).tolist()) for i in range(40)]
    reads = [columns for columns in all_reads if isinstance(columns, list)]
    passes = all_reads[: len(all_reads) - len(reads)]
    if criterion in ("knn", "linear"):  # a batch of probes at a time
        assert len(reads) <= 40
        assert {column for columns in reads for column in columns} == {column for probe in probes for column in probe}
    else:
        assert reads == probes
    assert all(isinstance(columns, slice) and columns.stop - columns.start <= 10 for columns in passes)
    for first in range(0, len(passes), 5):  # each pass reads all columns once
        assert [columns.indices(48)[:2] for columns in passes[first : first + 5]] == [
            (0, 10), (10, 20), (20, 30), (30, 40), (40, 48)
        ]  # fmt: skip
    assert len(passes) <= 3 * 5


@by_name({name: STREAMING[name] for name in ("BIF knn", "BIF linear", "FSDD", "DFE", "MRMR", "JMI", "CMIM", "EFS")})
def test_other_selectors_read_all_columns_a_few_times_in_slices(selector, monkeypatch):
    monkeypatch.setattr(stores, "CELLS_AT_A_TIME", 600)
    X, y = table()
    spy = Spy(X)
    clone(selector).fit(spy, y)
    reads = [columns for columns in spy.take_reads() if columns != [11]]  # FSDD reads a constant column again
    assert all(isinstance(columns, slice) for columns in reads)
    n_reads = np.zeros(48, int)
    for columns in reads:
        n_reads[columns] += 1
    assert set(n_reads) <= {1, 2, 3}


def test_transform_reads_the_selected_columns():
    X, y = table()
    spy = Spy(X)
    fitted = FSDD(3).fit(spy, y)
    spy.take_reads()
    out = fitted.transform(spy)
    assert spy.take_reads() == [fitted.get_support(indices=True).tolist()]
    np.testing.assert_array_equal(out, fitted.transform(X))
    assert FSDD(3).set_output(transform="pandas").fit(X, y).transform(spy).shape == (60, 3)
    with pytest.raises(ValueError, match="48 features"):
        fitted.transform(Spy(X[:, :40]))


def test_a_custom_criterion_gets_an_array():
    class Custom(Criterion):
        def bind(self, X, y, cv=3, *, groups=None, scoring=None):
            assert type(X) is np.ndarray
            return KNN().bind(X, y, cv)

    X, y = table(d=10)
    assert_same_bits(daf(Custom()), Spy(X), X, y)


# ---- Stored and ReadAhead


@given(
    st.integers(1, 40),
    st.integers(1, 60),
    st.one_of(st.none(), st.tuples(st.integers(1, 40), st.integers(1, 80))),
    st.integers(1, 500),
)
def test_column_slices_cover_all_columns_and_start_at_chunks(n_rows, n_columns, chunks, cells):
    source = Spy(np.zeros((n_rows, n_columns)))
    source.chunks = chunks
    parts = Stored(source).column_slices(cells)
    assert [column for part in parts for column in range(part.start, part.stop)] == list(range(n_columns))
    widest = max(part.stop - part.start for part in parts)
    assert widest * n_rows <= max(8 * cells, n_rows)
    if chunks and chunks[1] * n_rows <= 8 * cells:
        assert all(part.start % chunks[1] == 0 for part in parts)


@examples(50)
@given(st.lists(st.integers(0, 19), min_size=1, max_size=30), st.booleans(), st.booleans())
def test_indexing_as_in_numpy(columns, is_part, is_ahead):
    X = np.arange(140.0).reshape(7, 20)
    places = np.random.default_rng(0).permutation(20)[:20]
    stored, X = (Stored(Spy(X), places), np.ascontiguousarray(X[:, places])) if is_part else (Stored(Spy(X)), X)
    stored = ReadAhead(stored) if is_ahead else stored
    np.testing.assert_array_equal(stored[:, columns], X[:, columns])
    np.testing.assert_array_equal(stored[:, columns[0]], X[:, columns[0]])
    np.testing.assert_array_equal(stored[:, min(columns) : max(columns)], X[:, min(columns) : max(columns)])
    mask = np.isin(np.arange(20), columns)
    np.testing.assert_array_equal(stored[:, mask], X[:, mask])
    np.testing.assert_array_equal(np.asarray(stored), X)
    np.testing.assert_array_equal(stored.rows(np.array([5, 2, 3])), X[[5, 2, 3]])
    assert stored[:, columns].flags.f_contiguous == X[:, columns].flags.f_contiguous
    with pytest.raises(TypeError, match="all rows of some columns"):
        stored[2:4, columns]


def test_is_stored():
    X, _ = table()
    assert is_stored(Spy(X))
    assert is_stored(Stored(X))
    for other in (X, X.tolist(), memoryview(X), None):
        assert not is_stored(other)


def test_dask_arrays_are_read_by_columns():
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    X, y = table()
    assert_same_bits(FSDD(), array.from_array(X, chunks=(30, 11)), X, y)
    assert [part.start for part in column_slices(Stored(array.from_array(X, chunks=(30, 11))))] == [0]


@examples(50)
@given(st.integers(1, 30), st.integers(1, 30), st.sampled_from([np.float32, np.float64, np.int8]), st.integers(0, 99))
def test_extents_do_not_depend_on_the_store(n_rows, n_columns, dtype, seed):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n_rows, n_columns)) * 30 + 10).astype(dtype)
    here, _ = column_centers(X)
    for other in (np.asfortranarray(X), Stored(X), np.repeat(X, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(column_centers(other)[0], here)
    deviation = np.abs(X - X.mean(axis=0, dtype=float)).mean(axis=0)
    assert (np.abs(here - X.mean(axis=0, dtype=float)) <= deviation + 1e-9).all()


# ---- ledgers


def test_fingerprints_do_not_depend_on_the_store(tmp_path):
    X = np.arange(12 * 9, dtype=np.float32).reshape(12, 9) ** 2
    assert fingerprint(X) == "2ba999feff6d756dfb4124b2"  # as stored in ledgers
    for store in STORES:
        folder = tmp_path / store
        folder.mkdir()
        stored, _ = save(store, X, folder)
        assert fingerprint(stored) == fingerprint(X)
    assert fingerprint(X + 1) != fingerprint(X)
    assert fingerprint(X.T) != fingerprint(X)


def test_fingerprints_of_large_tables(tmp_path, monkeypatch):
    """Large tables are read in tiles, some of them incomplete."""
    X = np.arange(12 * 9, dtype=np.float32).reshape(12, 9) ** 2
    small = fingerprint(X)
    monkeypatch.setattr(fingerprints, "TILED_BYTES", 100)
    monkeypatch.setattr(stores, "TILE", 5)
    for store in STORES:
        folder = tmp_path / store
        folder.mkdir()
        assert fingerprint(save(store, X, folder)[0]) == fingerprint(X)
    assert fingerprint(X) != small
    changed = X.copy()
    changed[11, 8] += 1
    assert fingerprint(changed) != fingerprint(X)


def test_a_run_started_in_memory_continues_from_a_file(tmp_path):
    X, y = table()
    whole = daf("knn").fit(X, y)
    first = daf("knn", ledger=tmp_path / "run.ledger")
    first.set_params(stop=MaxProbes(10)).fit(X, y)
    for store, n_probes in zip(STORES, (10, 20, 30, 40), strict=True):
        folder = tmp_path / store
        folder.mkdir()
        stored, _ = save(store, X, folder)
        later = daf("knn", ledger=tmp_path / "run.ledger").set_params(stop=MaxProbes(n_probes)).fit(stored, y)
    assert later.scores_.tobytes() == whole.scores_.tobytes()


# ---- errors


@chunked_stores
def test_bad_input_is_refused(store, tmp_path):
    X, y = table()
    stored, X = save(store, X, tmp_path)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        FSDD().fit(stored, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        MRMR().fit(stored, None)
    with pytest.raises(ValueError, match="n_features_to_select=49 with 48 features"):
        MRMR(49).fit(stored, y)
    with pytest.raises(ValueError, match="NaN or infinity in 1 rows"):
        daf("knn").fit(stored, np.where(np.arange(60) == 3, np.nan, y))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(5), "Expected 2D array, got 1D array instead"),
        (np.zeros((3, 2, 2)), "Expected 2D array, got 3D array instead"),
        (np.zeros((0, 2)), r"0 sample\(s\)"),
        (np.zeros((3, 0)), r"0 feature\(s\)"),
        (np.zeros((3, 2), "U3"), "X holds values of type <U3: give numbers"),
        (np.zeros((3, 2), complex), "X holds values of type complex128: give numbers"),
    ],
    ids=["one dimension", "three dimensions", "no rows", "no columns", "text", "complex"],
)
def test_a_store_that_is_not_a_numeric_table(X, message):
    for selector in (FSDD(), daf("knn"), ReliefF()):
        with pytest.raises(ValueError, match=message):
            clone(selector).fit(Spy(X), np.zeros(len(X)))


def test_an_hdf5_file_cannot_be_sent_to_processes(tmp_path):
    X, y = table(d=10)
    stored, X = save("HDF5", X, tmp_path)
    here = daf(ESTIMATOR).fit(X, y)
    threads = daf(ESTIMATOR, n_jobs=2).fit(stored, y)  # would be processes if X could be sent to them
    assert threads.scores_.tobytes() == here.scores_.tobytes()
    with (
        joblib.parallel_config(backend="loky", n_jobs=2),
        pytest.raises(ValueError, match="HDF5 dataset and cannot be sent to another process: work in threads"),
    ):
        daf("knn").fit(stored, y)
    with pytest.raises(TypeError, match="cannot be sent to another process"):
        Stored(stored).__getstate__()


@pytest.mark.slow
def test_mapped_files_and_zarr_can_be_sent_to_processes(tmp_path):
    X, y = table(d=10)
    here, univariate = daf(ESTIMATOR).fit(X, y), BIF().fit(X, y)
    for store in ("Fortran order", "Zarr"):
        folder = tmp_path / store
        folder.mkdir()
        stored, _ = save(store, X, folder)
        with joblib.parallel_config(backend="loky", n_jobs=2):
            assert daf(ESTIMATOR).fit(stored, y).scores_.tobytes() == here.scores_.tobytes()
            assert BIF().fit(stored, y).scores_.tobytes() == univariate.scores_.tobytes()


# ---- memory

BOUNDED = """
import resource, sys
import numpy as np
from probewise import DAF, DFE, FSDD, MRMR
from probewise.stopping import MaxProbes

def selectors():
    for criterion in ("knn", "linear"):
        yield DAF(criterion=criterion, stop=MaxProbes(40), check_every=40, random_state=0)
    yield FSDD()
    if sys.argv[3] == "F":
        yield from (DFE(discretization="mean"), MRMR(2))

X = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(X)) % 2
for selector in selectors():  # compile or load the kernels
    selector.fit(X[:, :3000], y)
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))
limit = 1024 * used + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
for selector in selectors():
    print(selector.fit(X, y).ranking_[:3])
try:
    np.ones(X.shape, np.float32)
except MemoryError:
    print("the whole table does not fit")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory limit works only on Linux")
@pytest.mark.parametrize("order", ["F", pytest.param("C", marks=pytest.mark.exhaustive)])
def test_memory_stays_far_below_the_size_of_the_file(order, tmp_path):
    """137 MiB of data and 50 MiB of additional memory: mapped pages do not count, copies do."""
    n_rows, n_columns, step = 400, 90_000, 5000
    path = tmp_path / "X.npy"
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_columns), order == "F")
    block = np.random.default_rng(0).standard_normal((n_rows, step), dtype=np.float32)
    for start in range(0, n_columns, step):
        X[:, start : start + step] = block + start
    del X
    command = [sys.executable, "-c", BOUNDED, str(path), str(50 * 2**20), order]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    path.unlink()
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("[") == (5 if order == "F" else 3)
    assert "the whole table does not fit" in done.stdout
