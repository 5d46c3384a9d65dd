"""The same table mapped, in HDF5 and in Zarr: what a walk through it, a probe's columns and a fit cost.

Takes minutes: python -m benchmarks stores. Memory is what the process holds of its own beside the file; pages of a
mapped file can be given back at any time.
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


def keep(form, folder):
    """The table in a file of that form, if its library is there; where it is."""
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
    """Seconds for a walk through all columns, and for the columns of one probe of 100."""
    from probewise.validation.stores import Stored

    X = Stored(opened(path))
    probes = [np.random.default_rng(i).choice(N_COLUMNS, 100, replace=False) for i in range(10)]

    def walk():
        for part in X.column_slices():
            np.isfinite(X.read_columns(part)).all()

    return best_seconds(walk, 2), best_seconds(lambda: [X.gather(probe) for probe in probes]) / len(probes)


def fitting(path, method):
    """Seconds and MiB, beside what is there before, for a fit."""
    X, y, selector = opened(path), np.arange(N_ROWS) % 2, selector_for(method)
    selector.fit(np.asfortranarray(X[:, :3000]) if Path(path).name == "F.npy" else X[:, :3000], y)  # kernels compiled
    before, highest, done = own_mib(), [0.0], threading.Event()

    def watch():
        while not done.wait(0.005):
            highest[0] = max(highest[0], own_mib())

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

    name, _, what = method.partition(" ")
    if name == "DAF":
        return DAF(criterion=what, stop=MaxProbes(N_PROBES), random_state=0)
    return {"FSDD": FSDD(), "DFE": DFE(discretization="mean"), "MRMR": MRMR(5)}[name]


def own_mib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024


def fresh(call):
    return eval(in_fresh_process(f"from benchmarks import stores; print(stores.{call})"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        rows, memory = [], []
        for form in FORMS:
            with suppress(ModuleNotFoundError):
                path = keep(form, Path(folder))
                walk, probe = fresh(f"reading({str(path)!r})")
                rows.append([form, f"{walk:.1f} s", f"{1000 * probe:.2f} ms"])
                for method in METHODS if form in ("Fortran order", "HDF5") else ["DAF knn"]:
                    seconds, mib = fresh(f"fitting({str(path)!r}, {method!r})")
                    memory.append([form, method, f"{seconds:.1f} s", f"{mib:.0f} MiB"])
        size = N_ROWS * N_COLUMNS * 4 / 2**20
        title = f"{N_ROWS} x {N_COLUMNS:,} float32, {size:.0f} MiB; chunks of {CHUNKS[0]} x {CHUNKS[1]}"
        print_table(title, ["X", "all columns", "100 columns"], rows)
        print_table(f"fits, {N_PROBES} probes for DAF", ["X", "method", "time", "memory beside X"], memory)
