"""Time and memory of mapped files, HDF5 and Zarr: a pass over all columns, the columns of a probe, and fits.

Takes minutes: python -m benchmarks stores. Memory is the anonymous memory of the process; pages of a mapped file do not
count, because the operating system can reclaim them.
"""

import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from benchmarks.measure import best_seconds, in_fresh_process, print_table

N_ROWS, N_COLUMNS, N_PROBES = 200, 500_000, 400
CHUNKS = (N_ROWS, 64)
FORMS = ("Fortran order", "C order", "HDF5", "Zarr")
METHODS = ("DAF knn", "DAF linear", "FSDD", "DFE mean", "MRMR 5")


def write_table(form, folder):
    """Write the table in this format; returns its path."""
    name = {"HDF5": "X.h5", "Zarr": "X.zarr"}.get(form, f"{form[0]}.npy")
    X, path = created(form, folder / name), folder / name
    block = np.random.default_rng(0).standard_normal((N_ROWS, 6400), dtype=np.float32)
    for start in range(0, N_COLUMNS, 6400):
        X[:, start : start + 6400] = block[:, : N_COLUMNS - start] + start
    return path


def created(form, path):
    shape = (N_ROWS, N_COLUMNS)
    if form == "Zarr":
        import zarr

        return zarr.create_array(store=str(path), shape=shape, dtype="f4", chunks=CHUNKS)
    if form == "HDF5":
        import h5py

        return h5py.File(path, "w").create_dataset("X", shape, "f4", chunks=CHUNKS)
    return np.lib.format.open_memmap(path, "w+", np.float32, shape, fortran_order=form == "Fortran order")


def opened(path):
    path = Path(path)
    if path.suffix == ".npy":
        return np.load(path, mmap_mode="r")
    if path.suffix == ".zarr":
        import zarr

        return zarr.open_array(str(path), mode="r")
    import h5py

    return h5py.File(path, "r")["X"]


def reading(path):
    """Seconds for a pass over all columns, and for the 100 columns of a probe."""
    from probewise.validation.stores import Stored

    X = Stored(opened(path))
    probes = [np.random.default_rng(i).choice(N_COLUMNS, 100, replace=False) for i in range(10)]

    def read_all():
        for part in X.column_slices():
            np.isfinite(X.read_columns(part)).all()

    return best_seconds(read_all, 2), best_seconds(lambda: [X.gather(probe) for probe in probes]) / len(probes)


def fitting(path, method):
    """Seconds of a fit, and the memory in MiB that it adds."""
    X, y, selector = opened(path), np.arange(N_ROWS) % 2, selector_for(method)
    selector.fit(np.asfortranarray(X[:, :3000]) if Path(path).name == "F.npy" else X[:, :3000], y)  # compiles
    before, highest, done = anonymous_mib(), [0.0], threading.Event()

    def watch():
        while not done.wait(0.005):
            highest[0] = max(highest[0], anonymous_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    selector.fit(X, y)
    seconds = time.perf_counter() - started
    done.set()
    watcher.join()
    return seconds, highest[0] - before


def selector_for(method):
    from probewise import DAF, DFE, FSDD, MRMR
    from probewise.stopping import MaxProbes

    name, _, criterion = method.partition(" ")
    if name == "DAF":
        return DAF(criterion=criterion, stop=MaxProbes(N_PROBES), random_state=0)
    return {"FSDD": FSDD(), "DFE": DFE(discretization="mean"), "MRMR": MRMR(5)}[name]


def anonymous_mib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024


def fresh(call):
    return eval(in_fresh_process(f"from benchmarks import stores; print(stores.{call})"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        rows, memory = [], []
        for form in FORMS:
            with suppress(ModuleNotFoundError):
                path = write_table(form, Path(folder))
                one_pass, probe = fresh(f"reading({str(path)!r})")
                rows.append([form, f"{one_pass:.1f} s", f"{1000 * probe:.2f} ms"])
                for method in METHODS if form in ("Fortran order", "HDF5") else ["DAF knn"]:
                    seconds, mib = fresh(f"fitting({str(path)!r}, {method!r})")
                    memory.append([form, method, f"{seconds:.1f} s", f"{mib:.0f} MiB"])
        size = N_ROWS * N_COLUMNS * 4 / 2**20
        title = f"{N_ROWS} x {N_COLUMNS:,} float32, {size:.0f} MiB; chunks of {CHUNKS[0]} x {CHUNKS[1]}"
        print_table(title, ["X", "a pass over all columns", "100 columns"], rows)
        print_table(f"Fits, DAF with {N_PROBES} probes", ["X", "method", "time", "memory besides X"], memory)
