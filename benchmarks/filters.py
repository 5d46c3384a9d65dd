"""Speed of the filters compared with scikit-learn, mrmrs, mrmr_selection, fast-select, skrebate and Weka.

Each case runs in its own process on the same arrays. Seconds are the best of several runs after a small one, which
loads or compiles. Memory is the peak of the process beyond interpreter, libraries and data.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import peak_mib, resident_mib

WORKERS = 2
WEKA = Path("/usr/share/java/weka.jar")
TIMER = Path(__file__).with_name("WekaTimer.java")


def wide(n_features=200_000):
    """200 rows of float32, the first fifty features informative."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, n_features), dtype=np.float32)
    y = np.arange(200) % 2
    X[:, :50] += np.where(y, 0.7, 0.0).astype(np.float32)[:, None]
    return X, y


def genes():
    """100 x 20,000: 50 informative features, 200 noisy copies of them, noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 20_000), dtype=np.float32)
    y = np.arange(100) % 2
    X[:, :50] += np.where(y, 1.0, 0.0).astype(np.float32)[:, None]
    X[:, 50:250] = X[:, np.arange(200) % 50] + 0.3 * X[:, 50:250]
    return X, y


def tall():
    """20,000 x 500, five classes, a tenth of the features informative."""
    from sklearn.datasets import make_classification

    X, y = make_classification(20_000, 500, n_informative=30, n_redundant=20, n_classes=5, random_state=0)
    return X.astype(np.float32), y


def madelon():
    from probewise.datasets import make_madelon

    data = make_madelon(2000, random_state=0)
    return data.X, data.y


def text():
    """9,000 x 10,000 counts, 0.4% of them nonzero, ten classes."""
    X = sp.random(9_000, 10_000, 0.004, format="csr", dtype=np.float32, random_state=0)
    X.data = np.ceil(3 * X.data)
    y = np.random.default_rng(0).integers(0, 10, 9_000)
    return X, y


def ours(name, **parameters):
    import probewise

    selector = getattr(probewise, name)(**parameters)
    return lambda X, y: selector.fit(X, y)


def f_classif():
    from sklearn.feature_selection import f_classif

    return f_classif


def mutual_information():
    from sklearn.feature_selection import mutual_info_classif

    return lambda X, y: mutual_info_classif(X, y, random_state=0, n_jobs=WORKERS)


def mrmrs():
    import mrmrs
    import polars

    def select(X, y):
        frame = polars.DataFrame(X, schema=[f"f{i}" for i in range(X.shape[1])])
        target = polars.Series("target", y)
        started = time.perf_counter()
        mrmrs.mrmr(frame, target, 50, "classification")
        return time.perf_counter() - started  # without creating the data frame

    return select


def mrmr_selection():
    import pandas
    from mrmr import mrmr_classif

    return lambda X, y: mrmr_classif(pandas.DataFrame(X), pandas.Series(y), K=50, show_progress=False, n_jobs=WORKERS)


def fast_select():
    from fast_select import ReliefF

    return lambda X, y: ReliefF(n_features_to_select=10, n_neighbors=10, backend="cpu").fit(X, y)


def skrebate():
    from skrebate import ReliefF

    return lambda X, y: ReliefF(n_features_to_select=10, n_neighbors=10, n_jobs=WORKERS).fit(X, y)


def total():
    return lambda X, y: X.sum()


def weka(evaluator):
    def select(X, y):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.arff"
            with path.open("w") as file:
                file.write("@relation data\n")
                file.writelines(f"@attribute f{i} numeric\n" for i in range(X.shape[1]))
                file.write(f"@attribute class {{{','.join(map(str, np.unique(y)))}}}\n@data\n")
                file.writelines(
                    ",".join(map(repr, row)) + f",{label}\n" for row, label in zip(X.tolist(), y, strict=True)
                )
            command = ["java", "-Xmx8g", "-cp", str(WEKA), str(TIMER), str(path), evaluator]
            return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])

    return lambda: select


CASES = {
    "FSDD": lambda: ours("FSDD", n_jobs=WORKERS),
    "f_classif": f_classif,
    "sum": total,
    "mutual_info_classif": mutual_information,
    "MRMR": lambda: ours("MRMR", n_features_to_select=50, n_jobs=WORKERS),
    "JMI": lambda: ours("JMI", n_features_to_select=20, n_jobs=WORKERS),
    "mrmrs": mrmrs,
    "mrmr_selection": mrmr_selection,
    "ReliefF": lambda: ours("ReliefF", n_jobs=WORKERS),
    "fast-select ReliefF": fast_select,
    "skrebate ReliefF": skrebate,
    "Weka ReliefF": weka("relieff"),
    "CFS": lambda: ours("CFS", n_jobs=WORKERS),
    "Weka CFS": weka("cfs"),
    "EFS": lambda: ours("EFS", n_features_to_select=50, n_jobs=WORKERS),
    "DFE": lambda: ours("DFE", n_jobs=WORKERS),
    "DFE greedy": lambda: ours("DFE", discretization="greedy", n_jobs=WORKERS),
}
DATA = {
    "2,000 x 500 (Madelon recipe)": madelon,
    "100 x 20,000 (genes)": genes,
    "20,000 x 500 (5 classes)": tall,
    "200 x 200,000 float32": wide,
    "200 x 100,000 float32": lambda: wide(100_000),
    "200 x 1,000,000 float32": lambda: wide(1_000_000),
    "9,000 x 10,000 sparse": text,
}
COMPARED = [
    ("200 x 200,000 float32", "FSDD", ["sum", "f_classif"]),
    ("20,000 x 500 (5 classes)", "FSDD", ["sum", "f_classif"]),
    ("200 x 1,000,000 float32", "FSDD", ["f_classif"]),
    ("9,000 x 10,000 sparse", "FSDD", ["f_classif"]),
    ("200 x 200,000 float32", "MRMR", ["mrmrs"]),
    ("100 x 20,000 (genes)", "MRMR", ["mrmrs", "mutual_info_classif"]),
    ("2,000 x 500 (Madelon recipe)", "MRMR", ["mrmrs", "mrmr_selection"]),
    ("9,000 x 10,000 sparse", "MRMR", []),
    ("2,000 x 500 (Madelon recipe)", "JMI", []),
    ("2,000 x 500 (Madelon recipe)", "ReliefF", ["fast-select ReliefF", "skrebate ReliefF", "Weka ReliefF"]),
    ("200 x 100,000 float32", "ReliefF", ["fast-select ReliefF"]),
    ("2,000 x 500 (Madelon recipe)", "CFS", ["Weka CFS"]),
    ("100 x 20,000 (genes)", "CFS", []),
    ("100 x 20,000 (genes)", "EFS", []),
    ("20,000 x 500 (5 classes)", "DFE", []),
    ("20,000 x 500 (5 classes)", "DFE greedy", []),
]


def run(case, data):
    """Print seconds and MiB of one case; called in its own process."""
    warnings.simplefilter("ignore")
    job = CASES[case]()
    X, y = DATA[data]()
    if not case.startswith("Weka"):
        job(*((X[:60, :80], y[:60]) if not sp.issparse(X) else (X[:60], y[:60])))
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    held, times, spent = resident_mib(), [], 0.0
    while not times or (spent < 3.0 and len(times) < 15):
        started = time.perf_counter()
        result = job(X, y)
        spent += time.perf_counter() - started
        times.append(result if isinstance(result, float) else time.perf_counter() - started)
    print(json.dumps([min(times), peak_mib() - held]))


def measured(case, data):
    if case.startswith("Weka") and not (WEKA.exists() and shutil.which("java")):
        return None
    code = f"from benchmarks.filters import run; run({case!r}, {data!r})"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    print(f"\nFilters, {WORKERS} threads, all rows, one process each: seconds, memory beyond the data")
    for data, case, peers in COMPARED:
        seconds, mib = measured(case, data)
        print(f"{data} | {case} | {seconds:.4f} s | {mib:.0f} MiB", flush=True)
        for peer in peers:
            theirs = measured(peer, data)
            if theirs is None:
                print(f"    {peer} is not installed", flush=True)
            else:
                ratio = f"theirs / ours {theirs[0] / seconds:.1f}"
                print(f"    {peer} | {theirs[0]:.4f} s | {theirs[1]:.0f} MiB | {ratio}", flush=True)


if __name__ == "__main__":
    main()
