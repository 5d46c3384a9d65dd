"""Selection inside a pipeline: the effect of leakage on pure noise, and a grid search over the number of features."""

import numpy as np
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from probewise import DAF, FSDD
from probewise.datasets import make_madelon
from probewise.stopping import MaxProbes

rng = np.random.default_rng(0)
X, y = rng.standard_normal((60, 2000)), np.repeat([0, 1], 30)  # no feature is informative
knn = KNeighborsClassifier(3)
with_leakage = cross_val_score(knn, FSDD(10).fit_transform(X, y), y, cv=5).mean()
without_leakage = cross_val_score(Pipeline([("select", FSDD(10)), ("classify", knn)]), X, y, cv=5).mean()
print(f"accuracy on pure noise: {with_leakage:.2f} if selected before splitting, {without_leakage:.2f} in the pipeline")

data = make_madelon(500, 60, n_dimensions=3, n_combinations=7, random_state=0)
pipeline = Pipeline([("select", DAF(stop=MaxProbes(400), random_state=0)), ("classify", knn)])
search = GridSearchCV(pipeline, {"select__n_features_to_select": [2, 5, 10, 30]}, cv=3)
nested = cross_val_score(search, data.X, data.y, cv=3)
print(f"recipe of Madelon: {search.fit(data.X, data.y).best_params_}")
print(f"accuracy by nested cross-validation: {nested.mean():.2f}")
print(f"accuracy with all features: {cross_val_score(knn, data.X, data.y, cv=3).mean():.2f}")
