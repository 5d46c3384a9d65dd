"""A custom criterion: any function of (X_subset, y), or any scikit-learn estimator with any score."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import HuberRegressor

from probewise import DAF
from probewise.stopping import MaxProbes

frame, y = load_diabetes(return_X_y=True, as_frame=True)


def adjusted_r2(X, y):
    """Adjusted R^2 of least squares: corrected for the number of features."""
    design = np.column_stack([np.ones(len(y)), X])
    residuals = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    share = (residuals @ residuals) / ((y - y.mean()) @ (y - y.mean()))
    return 1 - share * (len(y) - 1) / (len(y) - design.shape[1])


by_function = DAF(3, criterion=adjusted_r2, stop=MaxProbes(500), random_state=0).fit(frame, y)
by_estimator = DAF(
    3,
    criterion=HuberRegressor(max_iter=1000),
    scoring="neg_median_absolute_error",
    stop=MaxProbes(100),
    random_state=0,
).fit(frame, y)
print("adjusted R²:          ", list(by_function.get_feature_names_out()))
print("median absolute error:", list(by_estimator.get_feature_names_out()))
