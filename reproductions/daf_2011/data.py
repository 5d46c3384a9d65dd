"""Somol and Grim 2011: the data sets of table I, and how the paper treats each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from probewise.criteria import KNN, Criterion, Linear
from probewise.datasets import Dataset

from ..linear_svm import LinearSVM

INFORMATIVE_CORRELATION = 0.4


@dataclass(frozen=True)
class Setup:
    """How the paper treats a data set: J, the largest probe, and the two classifiers, J's own first."""

    file: str
    figure: int
    criterion: Criterion
    tau: int
    classifiers: Mapping[str, Any]
    has_search: bool = False


NEIGHBOURS = {"3-NN": KNeighborsClassifier(3), "SVM (rbf)": SVC()}
SETUPS = {
    "Reuters": Setup("reuters", 2, Linear(), 200, {"SVM (linear)": LinearSVM(), "1-NN": KNeighborsClassifier(1)}),
    "Gisette": Setup("gisette_valid", 3, KNN(3), 200, NEIGHBOURS),
    "Madelon": Setup("madelon", 4, KNN(3), 150, NEIGHBOURS, has_search=True),
    "Spambase": Setup("spambase", 5, KNN(3), 57, NEIGHBOURS, has_search=True),
}


def prepared(dataset: Dataset) -> tuple[Any, NDArray[Any]]:
    """The rows the papers use, Spambase scaled to 0..1."""
    X, y = dataset.X, dataset.y
    if dataset.name == "madelon" and dataset.train_index is not None:
        X, y = X[dataset.train_index], y[dataset.train_index]
    if dataset.name == "spambase":
        low, high = X.min(axis=0), X.max(axis=0)
        X = (X - low) / (high - low)
    return (X.astype(np.float64) if sp.issparse(X) else X), y


def informative(madelon: Dataset) -> NDArray[np.int64]:
    """The columns of Madelon that go with another column: the informative ones, found without labels."""
    correlation = np.abs(np.corrcoef(np.asarray(madelon.X, dtype=np.float64).T))
    np.fill_diagonal(correlation, 0)
    return np.flatnonzero(correlation.max(axis=0) > INFORMATIVE_CORRELATION)
