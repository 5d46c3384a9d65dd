"""Discretize numbers: the cut points of each method on iris, and the number of cut points on pure noise."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline

from probewise.discretize import Discretizer

X, y = load_iris(return_X_y=True)
for method in ("optimal", "greedy", "mdl", "sigma", 3):
    cuts = [column.round(2).tolist() for column in Discretizer(method).fit(X, y).cut_points_]
    bayes = make_pipeline(Discretizer(method), CategoricalNB(min_categories=200))
    accuracy = cross_val_score(bayes, X, y, cv=5).mean()
    print(f"{method!s:8} petal length {cuts[2]!s:20} petal width {cuts[3]!s:15} accuracy {accuracy:.2f}")

rng = np.random.default_rng(0)
noise, labels = rng.standard_normal((50, 100)), rng.integers(0, 2, 50)
for method in ("optimal", "greedy", "mdl"):
    counts = [len(cuts) for cuts in Discretizer(method).fit(noise, labels).cut_points_]
    print(f"{method:8} cut points per column of pure noise (50 rows): {np.mean(counts):.1f}")
