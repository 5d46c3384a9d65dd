"""Is it stable? The same selection on different halves of the rows, and what random choice would score."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import ShuffleSplit

from probewise import EFS, FSDD, ReliefF
from probewise.stability import ati, cw_rel, nogueira

X, y = load_breast_cancer(return_X_y=True)
halves = [rows for rows, _ in ShuffleSplit(20, train_size=0.5, random_state=0).split(X)]
rng = np.random.default_rng(0)
chosen = {"random": [rng.choice(30, 5, replace=False) for _ in halves]}
for selector in (FSDD(5), EFS(5), ReliefF(5)):
    chosen[type(selector).__name__] = [selector.fit(X[rows], y[rows]).get_support(indices=True) for rows in halves]

print("5 of 30 features   nogueira  cw_rel     ati")
for name, subsets in chosen.items():
    values = [measure(subsets, 30) for measure in (nogueira, cw_rel, ati)]
    print(f"{name:16}" + "".join(f"{value:10.2f}" for value in values))

times = np.bincount(np.concatenate(chosen["FSDD"]), minlength=30)
print("FSDD's choices:", {int(feature): int(times[feature]) for feature in np.argsort(-times)[:8]}, "of 20 halves")
