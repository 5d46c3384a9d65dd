"""Speed of the criteria compared with a loop that calls ``cross_val_score`` of a scikit-learn estimator per subset.

Both run on the same arrays and the same subsets, each in a fresh process with two workers (the loop: two
processes with one BLAS thread each). Memory is the peak of all processes of a side, data and libraries included.
"""

import json
import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from scipy.stats import spearmanr
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from benchmarks.measure import in_fresh_process, peak_mib, print_table
from probewise.criteria import KNN, SVM, Linear, NaiveBayes
from probewise.datasets import make_madelon
from probewise.engine.probes import ProbePlan
from probewise.executors import executor

WORKERS = 2
DATA = Path(os.environ.get("PROBEWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def madelon():
    data = make_madelon(random_state=0)
    return data.X, data.y


def reuters():
    """A stratified half of the rows of Reuters: a sparse matrix of counts, and 33 classes."""
    with np.load(DATA / "reuters.npz", allow_pickle=False) as arrays:
        X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        y = arrays["y"]
    half, _ = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=0)
    return X[half], y[half]


def blobs(n_rows, n_features, n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows)
    X = rng.standard_normal((n_rows, n_features)).astype(np.float32)
    X[:, :20] += 0.4 * rng.standard_normal((n_classes, 20)).astype(np.float32)[y]
    return X, y


@dataclass
class Case:
    criterion: Any
    estimator: Any
    data: Any
    max_size: int
    probes: int
    loop_probes: int


CASES = {
    "KNN / KNeighbors, brute": Case(KNN(3), KNeighborsClassifier(3, algorithm="brute"), madelon, 150, 6000, 600),
    "KNN / KNeighbors, brute, tall": Case(
        KNN(3), KNeighborsClassifier(3, algorithm="brute"), partial(blobs, 5000, 1000, 10), 150, 600, 80
    ),
    "Linear / LinearSVC": Case(Linear(), LinearSVC(), reuters, 200, 6000, 300),
    "Linear / LDA": Case(Linear(), LinearDiscriminantAnalysis(), partial(blobs, 20_000, 500, 5), 150, 2000, 60),
    "NaiveBayes / GaussianNB": Case(NaiveBayes(), GaussianNB(), madelon, 150, 40_000, 600),
    "SVM(linear) / LinearSVC": Case(SVM("linear"), LinearSVC(random_state=0), madelon, 150, 40, 20),
    "SVM(linear) / LinearSVC, text": Case(SVM("linear"), LinearSVC(random_state=0), reuters, 200, 40, 20),
    "SVM(rbf) / SVC(rbf)": Case(SVM("rbf"), SVC(kernel="rbf"), madelon, 150, 200, 100),
}


def ours(case):
    """J of the probes, probes per second (compilation and the start of workers not counted), and peak memory."""
    X, y = case.data()
    plan = ProbePlan(X.shape[1], max_size=case.max_size, seed=0)
    score = case.criterion.bind(X, y, cv=3)
    map_blocks, block = executor(WORKERS, prefer=case.criterion.prefer), case.criterion.block_size
    list(map_blocks(score, [plan.draw(0, 2)] * WORKERS))
    blocks = [plan.draw(start, min(start + block, case.probes)) for start in range(0, case.probes, block)]
    started = time.perf_counter()
    values = np.concatenate(list(map_blocks(score, blocks)))
    return values, case.probes / (time.perf_counter() - started), peak_mib()


def theirs(case):
    X, y = case.data()
    subsets = list(ProbePlan(X.shape[1], max_size=case.max_size, seed=0).draw(0, case.loop_probes))
    columns = X.tocsc() if sp.issparse(X) else X
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1), joblib.Parallel(n_jobs=WORKERS) as pool:
        job = joblib.delayed(partial(one_subset, case.estimator, columns, y))
        pool(job(subset) for subset in subsets[:WORKERS])
        started = time.perf_counter()
        values = np.array(pool(job(subset) for subset in subsets))
        return values, case.loop_probes / (time.perf_counter() - started), peak_mib()


def one_subset(estimator, X, y, subset):
    return cross_val_score(estimator, X[:, subset], y, cv=3).mean()


def report(side, name):
    values, speed, peak = side(CASES[name])
    print(json.dumps([values.tolist(), speed, peak]))


def compare(name):
    results = []
    for side in ("ours", "theirs"):
        code = f"from benchmarks.criteria import *; report({side}, {name!r})"
        results.append(json.loads(in_fresh_process(code).splitlines()[-1]))
    (our_values, our_speed, our_peak), (their_values, their_speed, their_peak) = results
    both = min(len(our_values), len(their_values))
    first, second = np.array(our_values[:both]), np.array(their_values[:both])
    return [
        name,
        f"{our_speed:,.0f}" if our_speed > 100 else f"{our_speed:.1f}",
        f"{their_speed:,.1f}",
        f"{our_speed / their_speed:.1f}",
        f"{our_peak:,.0f}",
        f"{their_peak:,.0f}",
        f"{np.abs(first - second).max():.1e}",
        f"{spearmanr(first, second).statistic:.3f}",
    ]


def main():
    rows = []
    for name, case in CASES.items():
        if case.data is reuters and not (DATA / "reuters.npz").exists():
            print(f"{name}: skipped; set PROBEWISE_DATA to the folder that contains reuters.npz")
            continue
        rows.append(compare(name))
        print("  ".join(rows[-1]), flush=True)
    header = ["ours / loop", "probes/s", "loop probes/s", "ratio", "MiB", "loop MiB", "max |dJ|", "Spearman"]
    print_table("Criteria, two workers each, 3 folds", header, rows)


if __name__ == "__main__":
    main()
