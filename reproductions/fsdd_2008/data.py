"""Liang, Yang, Winstanley 2008: the data sets, methods and classifiers of sections 3.1 to 3.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from probewise.datasets import Dataset
from probewise.filters.fsdd import FSDD
from probewise.filters.mrmr import MRMR
from probewise.filters.relieff import ReliefF

from .readings import PrunedTree

METHODS = ("FSDD", "mrmrMID", "ReliefF")
OVERLAP = "FSDD by overlap"  # section 4, future work
PRUNED = "DT pruned"


@dataclass(frozen=True)
class Bench:
    """A data set of the paper: its file, where its numbers stand, its folds, and the sizes looked at."""

    name: str
    file: str
    where: str
    folds: int
    sizes: tuple[int, ...]

    @property
    def is_figure(self) -> bool:
        return self.where.startswith("Figure")


SIZES_OF_TABLES = (1, *range(5, 41, 5))
BENCHES = (
    Bench("Wine", "wine", "Table 3", 10, tuple(range(1, 14))),
    Bench("Vowel", "vowel", "Table 4", 10, tuple(range(1, 11))),
    Bench("Analcatdata", "authorship", "Table 5", 10, SIZES_OF_TABLES),
    Bench("Spectrometer", "spectrometer", "Table 6", 2, SIZES_OF_TABLES),
    Bench("Iris", "iris", "Table 7", 10, tuple(range(1, 5))),
    Bench("Mfeat", "mfeat", "Figure 1", 2, tuple(range(1, 51))),
    Bench("Satimage", "satimage", "Figure 2", 2, tuple(range(1, 37))),
    Bench("Spambase", "spambase", "Figure 3", 2, tuple(range(1, 31))),
)


def selectors(bench: str) -> dict[str, Any]:
    """The three methods as in section 3.1: two levels for mRMR on Mfeat, three on the others."""
    levels = "mean" if bench == "Mfeat" else "sigma"
    return {"FSDD": FSDD(), "mrmrMID": MRMR(levels=levels), "ReliefF": ReliefF(n_neighbors=10, n_samples=10)}


def by_overlap() -> dict[str, Any]:
    """FSDD as section 4 would have it in the future."""
    return {OVERLAP: FSDD(overlap=True)}


def classifiers() -> dict[str, Any]:
    """The four classifiers of section 3.3."""
    return {
        "KNN": make_pipeline(_scaler(), KNeighborsClassifier(1)),
        "NB": make_pipeline(_scaler(), GaussianNB()),
        "DT": DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2),
        "SVM": make_pipeline(_scaler(), SVC(gamma="auto")),
    }


def pruned() -> dict[str, Any]:
    """The tree again, pruned as C4.5's is, if in another way."""
    return {PRUNED: PrunedTree()}


def _scaler() -> MinMaxScaler:
    return MinMaxScaler((-1, 1))


def table_of(bench: str, data: Dataset) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """X and y as the paper has them."""
    X, y = np.ascontiguousarray(data.X, dtype=np.float64), data.y
    if bench != "Spectrometer":
        return X, y
    y = y.astype(np.int64) // 10
    return X[y < 5], y[y < 5]
