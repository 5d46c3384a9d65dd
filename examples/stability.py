"""Stability: select features on different halves of the rows and compare the subsets, also with random subsets."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import ShuffleSplit

from probewise import EFS, FSDD, ReliefF
from probewise.stability import ati, cw_rel, nogueira

X, y = load_breast_cancer(return_X_y=True)
halves = [rows for rows, _ in ShuffleSplit(20, train_size=0.5, random_state=0).split(X)]
rng = np.random.default_rng(0)
selected = {"random": [rng.choice(30, 5, replace=False) for _ in halves]}
for selector in (FSDD(5), EFS(5), ReliefF(5)):
    selected[type(selector).__name__] = [selector.fit(X[rows], y[rows]).get_support(indices=True) for rows in halves]

print("5 of 30 features   nogueira  cw_rel     ati")
for name, subsets in selected.items():
    values = [measure(subsets, 30) for measure in (nogueira, cw_rel, ati)]
    print(f"{name:16}" + "".join(f"{value:10.2f}" for value in values))

counts = np.bincount(np.concatenate(selected["FSDD"]), minlength=30)
top = {int(feature): int(counts[feature]) for feature in np.argsort(-counts)[:8]}
print("in how many of the 20 halves FSDD selects a feature:", top)
