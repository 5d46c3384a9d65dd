"""The comparison of the LassoNet paper (JMLR 22, 2021, table 2) with our methods beside it.

python -m benchmarks published    ISOLET and COIL-20: accuracy of 50 extremely randomized trees with 50 features

A method ranks the features on 80% of the rows, and the trees are tested on the other 20%; five random splits. Our
ISOLET has 1,560 of the paper's 7,797 rows. The pictures of COIL-20 are averaged down to 16 x 16 pixels (the paper has
20 x 20). LassoNet itself runs where it is installed: one hidden layer of a third of the features' number, as in the
paper, and the first model of the path with at most 50 features.
"""

import time
from importlib.util import find_spec

import numpy as np
from joblib import Parallel, delayed

from benchmarks import unseen
from benchmarks.measure import print_table
from benchmarks.tournament import mean_of

PUBLISHED = {  # all features, Fisher score, HSIC lasso, principal feature analysis, LassoNet
    "isolet": {"all features": 95.1, "Fisher": 81.8, "HSIC lasso": 88.8, "PFA": 85.5, "LassoNet": 89.1},
    "coil20": {"all features": 99.6, "Fisher": 99.6, "HSIC lasso": 99.3, "PFA": 99.3, "LassoNet": 99.3},
}
N_FEATURES, N_TREES, SPLITS = 50, 50, 5
OURS = ("Tournament", "EFS", "FCBF", "MRMR", "JMI", "FSDD", "F test", "HSIC lasso", "random forest importance")


def lassonet(X, y, seed):
    import torch
    from lassonet import LassoNetClassifier

    torch.manual_seed(seed)
    model = LassoNetClassifier(hidden_dims=(X.shape[1] // 3,), random_state=seed, verbose=False)
    path = model.path(X, y)
    chosen = next(save.selected for save in path if save.selected.sum() <= N_FEATURES).numpy()
    return np.flatnonzero(chosen)


def table(name):
    X, y = unseen.load(name)
    if name == "coil20":
        X = X.reshape(-1, 16, 2, 16, 2).mean(axis=(2, 4)).reshape(len(X), -1)
    return X, y


def score(name, method, split):
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    X, y = table(name)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=split)
    scaler = StandardScaler().fit(train)
    train, test = scaler.transform(train).astype(np.float32), scaler.transform(test).astype(np.float32)
    started = time.perf_counter()
    if method == "all features":
        chosen = np.arange(X.shape[1])
    else:
        chosen = (lassonet if method == "LassoNet" else unseen.methods()[method])(train, y_train, split)[:N_FEATURES]
    seconds = time.perf_counter() - started
    trees = ExtraTreesClassifier(N_TREES, random_state=split).fit(train[:, chosen], y_train)
    return 100 * trees.score(test[:, chosen], y_test), seconds


def main(only=None, small=False, jobs=2, **_):
    methods = [method for method in OURS if method != "HSIC lasso" or find_spec("pyHSICLasso")]
    methods = ["all features", *methods, *(["LassoNet"] if find_spec("lassonet") else [])]
    methods = only.split(",") if only else methods
    for name, published in PUBLISHED.items():
        cells = [(name, method, split) for method in methods for split in range(1 if small else SPLITS)]
        results = np.array(Parallel(n_jobs=jobs)(delayed(score)(*cell) for cell in cells)).reshape(len(methods), -1, 2)
        rows = []
        for method, (accuracy, seconds) in zip(methods, results.transpose(0, 2, 1), strict=True):
            original = published.get({"FSDD": "Fisher", "F test": "Fisher"}.get(method, method), "")
            rows.append([method, mean_of(accuracy), f"{seconds.min():.1f}", original])
        rows += [["PFA", "", "", published["PFA"]]]
        print_table(
            f"{name}: accuracy (%) with {N_FEATURES} features", ["method", "here", "seconds", "published"], rows
        )
