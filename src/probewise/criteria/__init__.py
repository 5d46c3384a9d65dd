"""Criteria: measures J of how good a feature subset is, each bound once to the data, scoring batches of subsets.

A criterion's device half, where it has one, stands beside it (`knn_device` for `knn`); `device` chooses between them.
"""

from typing import Any

from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from .average import Average
from .base import Criterion
from .knn import KNN
from .linear import Linear
from .naive_bayes import NaiveBayes
from .scorer import Function, Scorer
from .separability import Separability
from .svm import SVM
from .tree import Tree

TALL = 5000  # rows beyond which a ridge model is the faster criterion by far
NAMES: dict[str, type[Criterion]] = {
    "knn": KNN,
    "linear": Linear,
    "naive_bayes": NaiveBayes,
    "separability": Separability,
    "svm": SVM,
    "tree": Tree,
}

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
PROSE = {
    KNN: "{n_neighbors} nearest neighbours",
    Linear: "a ridge model",
    NaiveBayes: "naive Bayes",
    SVM: "a linear support vector machine",
    Separability: "how far the classes lie apart",
    Tree: "a decision tree",
}


def as_criterion(criterion: Any, X: Any = None) -> Criterion:
    """The criterion that is meant by a name, a criterion, a scikit-learn estimator or a function of (X_subset, y).

    "auto" is `KNN` for dense X of up to 5,000 rows and `Linear` for sparse or taller X.
    """
    if isinstance(criterion, str):
        if criterion == "auto":
            return Linear() if X is not None and (issparse(X) or X.shape[0] > TALL) else KNN()
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
    """The criterion for a reader: "3 nearest neighbours"; as its parameters say where there are no words for it."""
    if isinstance(criterion, Average):
        return f"the mean of {' and '.join(map(in_prose, criterion.parts))}"
    if type(criterion) not in PROSE:
        return criterion.describe()
    known = criterion.get_params()
    words = PROSE[type(criterion)].format_map(known)
    words = "the nearest neighbour" if words.startswith("1 ") else words
    return f"{words}, gaps filled with the {known['missing']}" if known.get("missing") else words
