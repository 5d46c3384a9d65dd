"""Criteria: measures J of how good a feature subset is, bound once to the data, scoring batches of subsets.

The GPU version of a criterion is in the module beside it (`knn_device` for `knn`); `device` chooses between them.
"""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from .average import Average
from .base import Criterion
from .knn import KNN
from .linear import Linear
from .naive_bayes import NaiveBayes
from .scorer import Function, Scorer, Tree
from .separability import Separability
from .svm import SVM

TALL = 5000  # number of rows above which "auto" is a ridge model, which is much faster there
NAMES: dict[str, type[Criterion]] = {
    "knn": KNN,
    "linear": Linear,
    "naive_bayes": NaiveBayes,
    "separability": Separability,
    "svm": SVM,
    "tree": Tree,
}
PROSE = {
    KNN: "{n_neighbors} nearest neighbors",
    Linear: "a ridge model",
    NaiveBayes: "naive Bayes",
    SVM: "a linear support vector machine",
    Separability: "how far apart the classes are",
    Tree: "a decision tree",
}
FILLED = ", with missing values filled with the {}"
__all__ = [
    "KNN",
    "NAMES",
    "SVM",
    "Average",
    "Criterion",
    "Function",
    "Linear",
    "NaiveBayes",
    "Scorer",
    "Separability",
    "Tree",
    "as_criterion",
    "in_prose",
]


def as_criterion(criterion: Any, X: Any = None) -> Criterion:
    """Criterion for a name, a criterion, a scikit-learn estimator or a function of (X_subset, y).

    "auto" is `KNN` for dense X of up to 5,000 rows and `Linear` for sparse or taller X.
    """
    if isinstance(criterion, str):
        if criterion == "auto":
            shape = () if X is None else getattr(X, "shape", None) or np.asarray(X).shape
            return Linear() if issparse(X) or (shape and shape[0] > TALL) else KNN()
        if criterion in NAMES:
            return NAMES[criterion]()
    elif isinstance(criterion, Criterion):
        return criterion
    elif isinstance(criterion, BaseEstimator):
        return Scorer(criterion)
    elif callable(criterion) and not isinstance(criterion, type):
        return Function(criterion)
    names = ", ".join(repr(name) for name in ("auto", *NAMES))
    raise ValueError(
        f"criterion={criterion!r} is not known: give one of {names}, a criterion such as KNN(3), "
        "a scikit-learn estimator, or a function of (X_subset, y)"
    )


def in_prose(criterion: Criterion) -> str:
    """Description of a criterion for readers, such as "3 nearest neighbors"; by default its class and parameters."""
    if isinstance(criterion, Average):
        text = f"the mean of {' and '.join(map(in_prose, criterion.parts))}"
        shared = next((words for words in map(FILLED.format, ("mean", "median")) if text.endswith(words)), "")
        return f"{text.replace(shared, '')}{shared}" if shared else text
    if type(criterion) not in PROSE:
        return criterion.describe()
    parameters = criterion.get_params()
    text = PROSE[type(criterion)].format_map(parameters)
    text = "the nearest neighbor" if text.startswith("1 ") else text
    missing = parameters.get("missing")
    return f"{text}{FILLED.format(missing)}" if missing else text
