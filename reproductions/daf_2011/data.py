"""Somol and Grim 2011: the data sets of table I and how the paper treats each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from probewise import DAF
from probewise.criteria import KNN, Criterion, Linear
from probewise.datasets import Dataset
from probewise.engine.loop import run_probes
from probewise.engine.run import Run
from probewise.engine.tally import positions
from probewise.stopping import MaxProbes
from probewise.study.trials import seeds, split_rows

from .. import work

INFORMATIVE_CORRELATION = 0.4


@dataclass(frozen=True)
class Setup:
    """Treatment of a data set: J, the largest probe, and the two classifiers, first the one meant by J."""

    file: str
    figure: int
    criterion: Criterion
    tau: int
    classifiers: Mapping[str, Any]
    has_search: bool = False


NEIGHBORS = {"3-NN": KNeighborsClassifier(3), "SVM (rbf)": SVC()}
AS_CLASSES = Linear(task="classification")  # the rarest of the 33 classes is so small that they look like a quantity
SETUPS = {
    "Reuters": Setup(
        "reuters", 2, AS_CLASSES, 200, {"SVM (linear)": SVC(kernel="linear"), "1-NN": KNeighborsClassifier(1)}
    ),
    "Gisette": Setup("gisette_valid", 3, KNN(3), 200, NEIGHBORS),
    "Madelon": Setup("madelon", 4, KNN(3), 150, NEIGHBORS, has_search=True),
    "Spambase": Setup("spambase", 5, KNN(3), 57, NEIGHBORS, has_search=True),
}


def prepared(dataset: Dataset) -> tuple[Any, NDArray[Any]]:
    """The rows that the papers use; Spambase is scaled to [0, 1]."""
    X, y = dataset.X, dataset.y
    if dataset.name == "madelon" and dataset.train_index is not None:
        X, y = X[dataset.train_index], y[dataset.train_index]
    if dataset.name == "spambase":
        low, high = X.min(axis=0), X.max(axis=0)
        X = (X - low) / (high - low)
    return (X.astype(np.float64) if sp.issparse(X) else X), y


def informative(madelon: Dataset) -> NDArray[np.int64]:
    """The informative columns of Madelon, found without labels: those that correlate with another column."""
    correlation = np.abs(np.corrcoef(np.asarray(madelon.X, dtype=np.float64).T))
    np.fill_diagonal(correlation, 0)
    return np.flatnonzero(correlation.max(axis=0) > INFORMATIVE_CORRELATION)


def halves(y: NDArray[Any], seed: int, split: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Training and test rows of a split, and the seed of the selectors on it."""
    words = seeds(seed, split)
    return *split_rows(y, 0.5, words["split"]), words["selector"]


def ranked(criterion: Criterion, X: Any, y: NDArray[Any], n_probes: int, seed: int, *, tau: int, **options: Any) -> Run:
    """A run of DAF; with a ledger, an interrupted run is continued."""
    tau = min(tau, X.shape[1])
    daf = DAF(criterion=criterion, max_probe_size=tau, stop=MaxProbes(n_probes), random_state=seed, **options)
    run = daf.fit(X, y).run_
    if run.interrupted:
        raise KeyboardInterrupt
    return run


def first_probes(run: Run, n_probes: int) -> Run:
    """The run as it was after its first probes; nothing is scored again."""

    def nothing_to_score(subsets: Any) -> Any:
        raise RuntimeError("the ledger has fewer probes than asked for")

    return run_probes(run.plan, nothing_to_score, stop=MaxProbes(n_probes), ledger=run.ledger.until(n_probes))


def best_first(run: Run, coefficient: str = "daf0") -> NDArray[np.int64]:
    """All features, in the order of a coefficient."""
    return np.argsort(positions(run.coefficient(coefficient)[0]))


def accuracy(model: Any, X: Any, y: NDArray[Any], subset: Any, train: Any, test: Any) -> float:
    """Accuracy on the test rows with the features of the subset."""
    return work.accuracy(model, X[:, np.sort(subset)], y, train, test)
