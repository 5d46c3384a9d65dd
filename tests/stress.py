"""Columns of any size and place beside each other, for criteria on the CPU and on devices."""

import numpy as np

from probewise.criteria.base import Folds

SIZES = {"ratio": [1e0, 1e4, 1e6, 1e8, 1e9, 1e12], "offset": [1e0, 1e4, 1e9, 1e12]}
SIZES |= {"sentinel": [99.0, 9999.0, 999_999_999.0], "sentinels in one fold": [9999.0, 999_999_999.0]}
SIZES |= {"constant in a class": [1e0, 1e6, 1e9], "copies": [1e0, 1e6, 1e9], "nearly copies": [1e4, 1e6]}
CASES = [(kind, size) for kind, sizes in SIZES.items() for size in sizes]
SHAPES = {"tall": (120, 8, (3, 7)), "few rows": (36, 60, (5, 20, 50)), "loo": (18, 40, (4, 12, 36))}


def table(kind, size, n, n_features, n_classes=3):
    """Columns of whole numbers, of which the first six tell the classes; one in three is as the kind says."""
    rng = np.random.default_rng(7)
    y = np.arange(n) % n_classes
    X = np.round(8 * rng.standard_normal((n, n_features)))
    X[:, :6] += 6 * y[:, None]
    odd = np.arange(1, n_features, 3)
    if kind == "ratio":
        X[:, odd] = np.round(size * X[:, odd])
    elif kind == "offset":
        X[:, odd] += size
    elif kind == "sentinel":
        X[rng.integers(n, size=len(odd)), odd] = -size
    elif kind == "sentinels in one fold":
        X[: n // 3 - 2, odd] = -size
    elif kind == "constant in a class":
        X[:, odd] = np.where(y[:, None] == 1, size, X[:, odd])
        X[:, odd[0]] = size + y
    elif kind == "constant in every class":
        X[:, odd] = size + y[:, None]
    else:
        X[:, odd] *= size
        X[:, odd + (odd < n_features - 1)] = X[:, odd] + (X[:, odd - 1] if kind == "nearly copies" else 0)
    return X, y


def subsets_of(n_features, sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [np.sort(rng.permutation(n_features)[:size]).astype(np.int32) for size in sizes]


def folds_of(shape, y):
    cv = "loo" if shape == "loo" else 3
    folds = Folds.of(cv, y, is_classification=True)
    return cv, list(folds.splits)
