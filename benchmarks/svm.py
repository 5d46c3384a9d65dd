"""Support vector machines against the loop people write today: ``cross_val_score`` of ``SVC`` per subset.

Both score the same probes of the same arrays in the same run, with two workers each: ours threads, the loop processes.
"""

import os
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.svm import SVC

from benchmarks.measure import print_table
from probewise.criteria.svm import SVM
from probewise.datasets import make_madelon
from probewise.executors import executor
from probewise.probes import ProbePlan, Subsets

WORKERS = 2
DATA = Path(os.environ.get("PROBEWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def madelon():
    data = make_madelon(random_state=0)
    return data.X, data.y


def reuters():
    """A stratified half of Reuters' rows: word counts by columns, 33 classes."""
    with np.load(DATA / "reuters.npz", allow_pickle=False) as arrays:
        parts, y = (arrays["data"], arrays["indices"], arrays["indptr"]), arrays["y"]
        X = sp.csr_matrix(parts, shape=tuple(arrays["shape"]))
    half, _ = train_test_split(np.arange(len(y)), train_size=0.5, stratify=y, random_state=0)
    return X[np.sort(half)].tocsc(), y[np.sort(half)]


def ours(X, y, kernel, plan, n_probes):
    """J of the first probes and how many per second, after a call that compiles."""
    score = SVM(kernel).bind(X, y)
    score(Subsets.of([plan.probe(0)[:5]]))
    blocks = [plan.draw(start, start + SVM.block_size) for start in range(0, n_probes, SVM.block_size)]
    started = time.perf_counter()
    values = np.concatenate(list(executor(WORKERS, prefer=SVM.prefer)(score, blocks)))
    return values, n_probes / (time.perf_counter() - started)


def theirs(X, y, kernel, plan, n_probes):
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1), joblib.Parallel(n_jobs=WORKERS) as pool:
        pool(joblib.delayed(sklearn_score)(X, y, kernel, plan.probe(0)[:5]) for _ in range(WORKERS))
        started = time.perf_counter()
        values = pool(joblib.delayed(sklearn_score)(X, y, kernel, subset) for subset in plan.draw(0, n_probes))
        return np.array(values), n_probes / (time.perf_counter() - started)


def sklearn_score(X, y, kernel, subset):
    return cross_val_score(SVC(kernel=kernel), X[:, subset], y, cv=3).mean()


def compare(name, X, y, kernel, max_size, n_probes):
    plan = ProbePlan(X.shape[1], max_size=max_size, seed=0)
    our_values, our_speed = ours(X, y, kernel, plan, n_probes)
    their_values, their_speed = theirs(X, y, kernel, plan, n_probes)
    worst = np.abs(our_values - their_values).max()
    return [name, n_probes, f"{our_speed:.1f}", f"{their_speed:.1f}", f"{our_speed / their_speed:.1f}", f"{worst:.1e}"]


def main():
    rows = [
        compare("linear, Madelon's recipe, tau = 150", *madelon(), "linear", 150, 40),
        compare("rbf, Madelon's recipe, tau = 150", *madelon(), "rbf", 150, 200),
    ]
    if (DATA / "reuters.npz").exists():
        rows.append(compare("linear, half of Reuters, tau = 200", *reuters(), "linear", 200, 40))
    else:
        print("Reuters is skipped: set PROBEWISE_DATA to the folder that holds reuters.npz.")
    header = ["SVM / loop over SVC", "probes", "probes/s", "loop", "ratio", "max |dJ|"]
    print_table("Support vector machines, 3 folds, two workers each", header, rows)


if __name__ == "__main__":
    sys.exit(main())
