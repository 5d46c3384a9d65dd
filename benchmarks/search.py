"""Speed of floating and sequential search compared with mlxtend and scikit-learn, and the 2011 paper's Madelon run.

Both sides use the same arrays and folds and two workers. The table also shows whether their results agree.
"""

import time

import numpy as np
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.criteria import DATA, WORKERS
from benchmarks.measure import print_table
from probewise import DAF, SFFS
from probewise.criteria import KNN
from probewise.datasets import make_madelon
from probewise.stopping import MaxProbes

SIZE = 20
SKLEARN_SIZE = 5  # scikit-learn is slow: a shorter search is enough for the ratio


def timed(job):
    started = time.perf_counter()
    result = job()
    return result, time.perf_counter() - started


def against_mlxtend(X, y, *, floating):
    """Compare with mlxtend: floating="strict" is its rule; True, our default, is the rule of Pudil et al."""
    from mlxtend.feature_selection import SequentialFeatureSelector as Sequential

    knn = KNeighborsClassifier(3, algorithm="brute")
    SFFS(2, criterion=KNN(3)).fit(X, y)
    ours, seconds = timed(lambda: SFFS(SIZE, criterion=KNN(3), floating=floating, n_jobs=WORKERS).fit(X, y))
    search = Sequential(knn, k_features=SIZE, floating=bool(floating), cv=StratifiedKFold(3), n_jobs=WORKERS)
    theirs, their_seconds = timed(lambda: search.fit(X, y))
    differences = [ours.path_[size][0] - theirs.subsets_[size]["avg_score"] for size in range(1, SIZE + 1)]
    name = f"{'SFFS' if floating else 'SFS'} to {SIZE} / mlxtend"
    agreement = f"J at each size within {np.abs(differences).max():.0e}"
    return [name, f"{seconds:.2f} s", f"{their_seconds:.1f} s", f"{their_seconds / seconds:.1f}", agreement]


def against_sklearn(X, y):
    knn = KNeighborsClassifier(3, algorithm="brute")
    ours, seconds = timed(lambda: SFFS(SKLEARN_SIZE, criterion=KNN(3), floating=False, n_jobs=WORKERS).fit(X, y))
    search = SequentialFeatureSelector(knn, n_features_to_select=SKLEARN_SIZE, cv=3, n_jobs=WORKERS)
    theirs, their_seconds = timed(lambda: search.fit(X, y))
    agreement = "same features" if ours.support_.tolist() == theirs.support_.tolist() else "different features"
    row = [f"SFS to {SKLEARN_SIZE} / scikit-learn", f"{seconds:.2f} s", f"{their_seconds:.1f} s"]
    return [*row, f"{their_seconds / seconds:.1f}", agreement]


def paper_run():
    """25,000 probes of 3-NN with tau = 150 on half of Madelon's 2,000 training rows."""
    path = DATA / "madelon.npz"
    if not path.exists():
        print("\nMadelon is skipped; set PROBEWISE_DATA to the folder that contains madelon.npz")
        return
    with np.load(path, allow_pickle=False) as arrays:
        X, y = arrays["X"][arrays["train_index"]], arrays["y"][arrays["train_index"]]
    X, _, y, _ = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    for dtype in (X.dtype, np.float32):
        daf = DAF(criterion="knn", max_probe_size=150, stop=MaxProbes(25_000), n_jobs=WORKERS, random_state=0)
        _, seconds = timed(lambda daf=daf, dtype=dtype: daf.fit(X.astype(dtype), y))
        shape = f"{X.shape[0]} x {X.shape[1]} {np.dtype(dtype)}"
        print(f"\nThe 2011 paper's Madelon run, {shape}, 25,000 probes: {seconds:.1f} s")
    print("(the paper: 180 minutes on 16 threads)")


def main():
    data = make_madelon(random_state=0)
    rows = [against_mlxtend(data.X, data.y, floating=floating) for floating in ("strict", False)]
    rows.append(against_sklearn(data.X, data.y))
    header = ["ours / theirs", "ours", "theirs", "ratio", "agreement"]
    print_table("Search, 3-NN on 1,000 x 500, two workers each, 3 folds", header, rows)
    paper_run()


if __name__ == "__main__":
    main()
