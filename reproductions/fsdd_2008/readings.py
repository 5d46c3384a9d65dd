"""Liang, Yang, Winstanley 2008: where ours differ most, what other readings of the paper give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import minmax_scale, scale
from sklearn.tree import DecisionTreeClassifier

from probewise.filters.fsdd import FSDD
from probewise.filters.mrmr import MRMR

from ..base import Claim, Place, listed

Floats = NDArray[np.float64]
BLOCKS = {"Fourier": 76, "profiles": 216, "Karhunen-Loeve": 64, "pixels": 240, "Zernike": 47, "morphology": 6}
AS_DEFINED = "three levels, difference"
LARGEST = 40
ALPHAS = 8  # of cost-complexity pruning that are tried


def _signs(X: Floats) -> Floats:
    return (X > 0).astype(np.float64)


def _by_variance(X: Floats) -> Floats:
    """Levels of the paper's text: mu - sigma and mu + sigma, sigma^2 being "the standard deviation"."""
    middle, reach = X.mean(axis=0), X.var(axis=0)
    return np.sign(X - middle) * (np.abs(X - middle) > reach)


def _scaled(levels: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda X: levels(minmax_scale(X, (-1, 1)))


LEVELS: dict[str, tuple[Callable[[Floats], Floats] | None, dict[str, Any]]] = {
    "three levels": (None, {"levels": "sigma"}),
    "two levels": (None, {"levels": "mean"}),
    "signs of the values as they are": (_signs, {"discrete_features": True}),
    "mean and variance": (_by_variance, {"discrete_features": True}),
    "signs, scaled to [-1, 1]": (_scaled(_signs), {"discrete_features": True}),
    "mean and variance, scaled to [-1, 1]": (_scaled(_by_variance), {"discrete_features": True}),
}


class PrunedTree(ClassifierMixin, BaseEstimator):
    """A tree by entropy, cut back by cost-complexity as much as inner folds allow: of equal ones the smallest tree."""

    def __init__(self, folds: int = 3, random_state: Any = None) -> None:
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: Floats, y: NDArray[Any]) -> PrunedTree:
        self.classes_ = np.unique(y)
        right = np.zeros(len(alphas := self._alphas(X, y)))
        for train, test in StratifiedKFold(self.folds, shuffle=True, random_state=self.random_state).split(X, y):
            right += [np.sum(self._tree(a).fit(X[train], y[train]).predict(X[test]) == y[test]) for a in alphas]
        self.alpha_ = float(alphas[np.flatnonzero(right == right.max())[-1]])
        self.tree_ = self._tree(self.alpha_).fit(X, y)
        return self

    def predict(self, X: Floats) -> NDArray[Any]:
        return self.tree_.predict(X)

    def _tree(self, alpha: float) -> DecisionTreeClassifier:
        """The unpruned tree of the comparison, but for what it is cut back by."""
        return DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=2, ccp_alpha=alpha, random_state=self.random_state
        )

    def _alphas(self, X: Floats, y: NDArray[Any]) -> Floats:
        """No pruning, and some between the steps at which the whole tree loses branches."""
        steps = np.unique(np.maximum(self._tree(0.0).cost_complexity_pruning_path(X, y).ccp_alphas, 0.0))
        between = np.append(0.0, np.sqrt(steps[:-1] * steps[1:]))
        return np.unique(np.quantile(between, np.linspace(0, 1, ALPHAS), method="nearest"))


def orders(X: Floats, y: NDArray[Any]) -> dict[str, NDArray[np.int64]]:
    """The features in the order of each reading of mRMR, and as the columns come, which is no selection at all."""
    found = {"columns as they come": np.arange(X.shape[1])}
    for name, (levels, options) in LEVELS.items():
        for scheme in ("difference", "quotient"):
            selector = MRMR(min(LARGEST, X.shape[1]), scheme=scheme, **options)
            found[f"{name}, {scheme}"] = np.argsort(selector.fit(X if levels is None else levels(X), y).ranking_)
    return found


def right(model: Any, X: Floats, y: NDArray[Any], folds: int, seed: int) -> float:
    """Percent of rows classified rightly by cross-validation."""
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y)
    found = sum(int(np.sum(clone(model).fit(X[train], y[train]).predict(X[test]) == y[test])) for train, test in splits)
    return 100 * found / len(y)


def distances(
    bench: Any, X: Floats, y: NDArray[Any], models: Mapping[str, Any], known: Mapping[Place, float], seed: int
) -> dict[str, float]:
    """Mean distance in points from the published rows of mRMR-MID, for each reading; features selected on all rows."""
    found = {}
    for name, order in orders(X, y).items():
        apart = [
            abs(right(model, X[:, order[: int(column)]], y, bench.folds, seed) - value)
            for classifier, model in models.items()
            for (where, row, column), value in known.items()
            if (where, row) == (bench.where, f"{classifier} mrmrMID")
        ]
        found[name] = float(np.mean(apart))
    return found


def nearest_reading(found: Mapping[Place, float], where: str) -> list[Claim]:
    """Whether mRMR-MID as defined is the reading that comes nearest to the published rows, table by table."""
    by_table: dict[str, dict[str, float]] = {}
    for (place, reading, table), value in found.items():
        if place == where:
            by_table.setdefault(table, {})[reading] = value
    nearest = {table: min(values, key=lambda each: values[each]) for table, values in by_table.items()}
    ours = "points off, as defined and by the nearest reading: " + "; ".join(
        f"{table} {values[AS_DEFINED]:.1f}, {values[nearest[table]]:.1f} ({nearest[table]})"
        for table, values in by_table.items()
    )
    text = "The rows of mRMR-MID are those of the levels defined in section 3.1 (ours)"
    holds = all(name == AS_DEFINED for name in nearest.values())
    return [Claim(text, holds, ours, "tables 3 to 7", "1-NN and naive Bayes")] if by_table else []


def of_mfeat(X: Floats, y: NDArray[Any], model: Any, size: int, seed: int) -> dict[str, float]:
    """1-NN with FSDD's first features, by scaling, and by the block of Mfeat they are taken from."""
    order = np.argsort(FSDD().fit(X, y).ranking_)[:size]
    scaled = {"as they are": X, "to [0, 1]": minmax_scale(X), "to deviation 1": scale(X)}
    found = {f"all, {name}": right(model, table[:, order], y, 2, seed) for name, table in scaled.items()}
    stops = np.cumsum(list(BLOCKS.values()))
    if stops[-1] != X.shape[1]:
        return found
    for block, stop in zip(BLOCKS, stops, strict=True):
        columns = slice(stop - BLOCKS[block], stop)
        best = np.argsort(FSDD().fit(X[:, columns], y).ranking_)[:size]
        for name, table in scaled.items():
            found[f"{block}, {name}"] = right(model, table[:, columns][:, best], y, 2, seed)
    return found


def mfeat_claim(found: Mapping[str, float], published: float) -> Claim:
    near = min(found, key=lambda each: abs(found[each] - published))
    text = f"Mfeat, 1-NN with 10 features of FSDD: {published:g} (ours: whether a scaling or a block gives it)"
    holds = abs(found[near] - published) <= 1
    return Claim(text, holds, listed(found, ".2f"), "section 3.5, figure 1a", "one 2-fold cross-validation")
