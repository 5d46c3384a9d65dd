"""Somol and Grim 2011, figure 2a: Reuters with a linear SVM in J, in a ledger that later calls continue."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

from probewise.bif import BIF
from probewise.study import select

from ..linear_svm import LinearSVM, SquaredHingeSVM
from ..work import Work
from .data import SETUPS, accuracy, best_first, halves, prepared, ranked

PAPERS_PROBES = 148_000
C_GRID = (0.01, 0.1, 1.0)


def svm_as_j(work: Work) -> dict[int, dict[str, Any]]:
    """By split: accuracy by size of DAF0 and BIF, ranked by the SVM, and the number of probes."""
    X, y = prepared(work.data("reuters"))
    settings = work.settings
    function = partial(svm_split, X, y, settings.sizes["Reuters"], settings.svm_probes, work.seed, work.runs)
    units = [(settings.svm_probes, split) for split in range(settings.svm_splits)]
    found = work.units("svm-as-j", function, units, (X, y), sizes=settings.sizes["Reuters"])
    return {split: each for (_, split), each in found.items()}


def tuned_C(X: Any, y: NDArray[Any]) -> float:
    """C with the best cross-validated accuracy on all words, tuned once per split as in the paper."""
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return max(C_GRID, key=lambda C: float(np.mean(cross_val_score(LinearSVC(C=C, random_state=0), X, y, cv=3))))


def svm_split(
    X: Any, y: NDArray[Any], sizes: Any, n_probes: int, seed: int, runs: Path, unit: tuple[int, int]
) -> dict[str, Any]:
    train, test, selector = halves(y, seed, unit[1])
    C = tuned_C(X[train], y[train])
    ledger = runs / f"svm-as-j-{unit[1]}.sqlite"
    options = {"tau": SETUPS["Reuters"].tau, "ledger": ledger}
    order = best_first(ranked(SquaredHingeSVM(C), X[train], y[train], n_probes, selector, **options))
    bif = select(BIF(criterion=SquaredHingeSVM(C)), X[train], y[train], list(sizes))
    subsets = {"DAF0": [order[:size] for size in sizes], "BIF": bif}
    judge = LinearSVM(C)
    found = {name: [accuracy(judge, X, y, subset, train, test) for subset in each] for name, each in subsets.items()}
    ledger.unlink()
    return {"C": C, "n_probes": n_probes, "accuracy": found}
