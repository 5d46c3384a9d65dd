"""Wrapper criteria against the loop people write today: ``cross_val_score`` of a scikit-learn estimator per subset.

Both run on the same arrays and the same subsets, with two workers each: ours threads, the loop two processes with
one BLAS thread each. Each loop is scikit-learn's fastest setting found for the case.
"""

import os
import time
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import scipy.sparse as sp
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from benchmarks.measure import print_table
from probewise.criteria import KNN, Linear
from probewise.datasets import make_madelon
from probewise.executors import executor
from probewise.probes import ProbePlan

WORKERS = 2
DATA = Path(os.environ.get("PROBEWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def reuters_half():
    """A stratified half of the rows of Reuters: CSR counts and 33 classes; None where the data is not at hand."""
    path = DATA / "reuters.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        y = arrays["y"]
    half, _ = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=0)
    return X[half], y[half]


def blobs(n_rows, n_features, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    X = rng.standard_normal((n_rows, n_features)).astype(np.float32)
    X[:, :20] += 0.4 * rng.standard_normal((n_classes, 20)).astype(np.float32)[y]
    return X, y


def ours(criterion, X, y, plan, n_probes, block=50):
    """J of the first probes, and probes per second, after a first call that compiles."""
    score = criterion.bind(X, y, cv=3)
    score(plan.draw(0, 2))
    started = time.perf_counter()
    blocks = [plan.draw(start, min(start + block, n_probes)) for start in range(0, n_probes, block)]
    values = np.concatenate(list(executor(WORKERS)(score, blocks)))
    return values, n_probes / (time.perf_counter() - started)


def one_loop(estimator, X, y, subset):
    return cross_val_score(estimator, X[:, subset], y, cv=3).mean()


def loop(estimator, X, y, plan, n_probes):
    subsets = list(plan.draw(0, n_probes))
    columns = X.tocsc() if sp.issparse(X) else X
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1), joblib.Parallel(n_jobs=WORKERS) as pool:
        job = joblib.delayed(partial(one_loop, clone(estimator), columns, y))
        pool(job(subset) for subset in subsets[: 2 * WORKERS])
        started = time.perf_counter()
        values = np.array(pool(job(subset) for subset in subsets))
    return values, n_probes / (time.perf_counter() - started)


def compare(name, criterion, estimator, data, max_size, *, probes, loop_probes):
    X, y = data
    plan = ProbePlan(X.shape[1], max_size=max_size, seed=0)
    our_values, our_speed = ours(criterion, X, y, plan, probes)
    their_values, their_speed = loop(estimator, X, y, plan, loop_probes)
    both = min(probes, loop_probes)
    first, second = our_values[:both], their_values[:both]
    return [
        name,
        f"{X.shape[0]:,} x {X.shape[1]:,}",
        len(np.unique(y)),
        f"{our_speed:,.0f}",
        f"{their_speed:,.1f}",
        f"{our_speed / their_speed:.1f}",
        f"{np.abs(first - second).max():.1e}",
        f"{spearmanr(first, second).statistic:.3f}",
    ]


def main():
    madelon = make_madelon(random_state=0)
    knn = KNeighborsClassifier(3, algorithm="brute")
    rows = [
        compare("KNN / KNeighbors(brute)", KNN(3), knn, (madelon.X, madelon.y), 150, probes=4000, loop_probes=600),
        compare("KNN / KNeighbors(brute)", KNN(3), knn, blobs(5000, 1000, 10), 150, probes=400, loop_probes=60),
        compare(
            "Linear / LDA",
            Linear(),
            LinearDiscriminantAnalysis(),
            blobs(20_000, 500, 5),
            150,
            probes=2000,
            loop_probes=60,
        ),
    ]
    reuters = reuters_half()
    if reuters is None:
        print("Reuters is not at hand (set PROBEWISE_DATA to the folder that holds reuters.npz): skipped")
    else:
        rows.append(compare("Linear / LinearSVC", Linear(), LinearSVC(), reuters, 200, probes=6000, loop_probes=300))
    header = ["ours / theirs", "data", "classes", "probes/s", "loop", "ratio", "max |dJ|", "Spearman"]
    print_table("Criteria, two workers each, 3 folds", header, rows)


if __name__ == "__main__":
    main()
