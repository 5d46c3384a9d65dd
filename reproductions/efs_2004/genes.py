"""Wu, Zhang 2004: tables 1 and 3 and figure 2: EFS against DFE, CFS and all features on genes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import minmax_scale
from sklearn.tree import DecisionTreeClassifier

from probewise.engine.fingerprints import fingerprint
from probewise.filters.cfs import CFS
from probewise.filters.dfe import DFE
from probewise.filters.efs import EFS
from probewise.study import select, split_rows

from ..base import Place
from ..pictures import Line, Panel, Picture
from ..work import Reproduction

NAME = "efs-2004"
METHODS = ("Full Space", "EFS", "DFE", "CFS")
GREEDY, BY_UNCERTAINTY = "EFS, greedy cuts", "Symmetrical uncertainty"
GENE_METHODS = (*METHODS, GREEDY, BY_UNCERTAINTY)
SEEN = ", test rows seen"  # by the selectors
THRESHOLD = ("top", 900)
FIGURE_TREES = 120
GENES = {
    "Leukemia": "leukemia",
    "Lymphoma": "lymphoma",
    "Leukemia, random splits": "leukemia",
    f"Leukemia{SEEN}": "leukemia",
    f"Lymphoma{SEEN}": "lymphoma",
}
N_TEST = {"Lymphoma": 36, "Leukemia, random splits": 34, f"Lymphoma{SEEN}": 36}
SEARCHES = {
    "best first": CFS(),
    "adds only": CFS(search="hill_climbing"),
    "adds or removes, from none": CFS(search="add_or_remove"),
    "adds or removes, from all": CFS(search="add_or_remove", start="full"),
}
BY_SEARCH = "CFS by search"
IN_LOG10 = math.log10(math.e)  # entropies by log10, over the natural logarithm of kappa

Floats = NDArray[np.float64]


def selector(method: str) -> Any:
    """Selector of sections 5.1 and 5.2, for genes."""
    return {
        "EFS": EFS(threshold=THRESHOLD),
        "DFE": DFE(),
        "CFS": CFS(),
        GREEDY: EFS(threshold=THRESHOLD, discretization="greedy"),
        BY_UNCERTAINTY: ByUncertainty(),
    }.get(method)


class ByUncertainty(DFE):
    """Ranks features by symmetrical uncertainty with the class, of the cut points that `DFE` takes."""

    def fit(self, X: Any, y: Any) -> ByUncertainty:
        codes, classes, map = self._encoded(X, y, self.discretization)
        self._rank_by(codes.against(classes, map=map).uncertainty)
        return self


# ---- table 3


def genes(name: str, reproduction: Reproduction) -> list[dict[str, Any]]:
    """The trials of a gene set, each a record of what `gene_trial` finds."""
    source, settings, seed = reproduction.data(GENES[name]), reproduction.settings, reproduction.seed
    X, y = np.ascontiguousarray(source.X, dtype=np.float64), source.y
    official = None if name in N_TEST else (source.train_index, source.test_index)
    chosen = {"folds": settings.folds, "sizes": settings.sizes, "trees": settings.trees}
    found = reproduction.conduct(
        name.lower().replace(", ", "-").replace(" ", "-"),
        partial(gene_trial, X, y, official, N_TEST.get(name, 0), settings, seed, name.endswith(SEEN)),
        range(settings.repeats[name]),
        {"data": fingerprint(X), "target": fingerprint(y), "seed": seed, **chosen},
        f"{name}, trials",
    )
    return list(found.values())


def gene_trial(
    X: Floats, y: NDArray[Any], official: Any, n_test: int, settings: Any, seed: int, seen: bool, trial: int
) -> dict[str, Any]:
    """One split: for every method and classifier the accuracy, numbers of features, trees and nodes of a tree, seconds.

    Seconds are the processor's, of selection and of training. If ``seen``, selectors are given the test rows, too.
    """
    split_seed, fold_seed, model_seed = np.random.SeedSequence([seed, trial]).generate_state(3).tolist()
    train, test = official if official is not None else split_rows(y, n_test, split_seed)
    numbers = choose(X[train], y[train], settings, fold_seed, (X, y) if seen else None)
    rows = np.arange(len(y)) if seen else train
    record: dict[str, Any] = {}
    for method in GENE_METHODS:
        fitted, started = selector(method), time.process_time()
        subsets = columns_of(fitted, X[rows], y[rows], [size for size, _ in numbers[method].values()])
        selecting = time.process_time() - started
        if method == "EFS":
            record["threshold"] = fitted.threshold_
        for columns, (classifier, (_, trees)) in zip(subsets, numbers[method].items(), strict=True):
            started = time.process_time()
            model = classifier_of(classifier, trees, model_seed).fit(X[train][:, columns], y[train])
            training = time.process_time() - started
            accuracy = float(np.mean(model.predict(X[test][:, columns]) == y[test]))
            record[f"{method} {classifier}"] = [accuracy, len(columns), trees, nodes_of(model), selecting, training]
    return record


def nodes_of(model: Any) -> float:
    """Mean number of nodes of a tree."""
    return float(np.mean([tree.tree_.node_count for tree in getattr(model, "estimators_", [model])]))


def classifier_of(name: str, trees: int, seed: int) -> Any:
    model = RandomForestClassifier(trees) if name == "RF" else DecisionTreeClassifier()
    return model.set_params(random_state=seed)


def columns_of(selector: Any, X: Floats, y: NDArray[Any], sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """The features selected at each size; all of them without a selector, CFS's own number whatever the size."""
    if selector is None or isinstance(selector, CFS):
        sizes = [X.shape[1]] * len(sizes)
    return [np.arange(X.shape[1])] * len(sizes) if selector is None else select(selector, X, y, sizes)


def choose(
    X: Floats, y: NDArray[Any], settings: Any, seed: int, seen: tuple[Floats, NDArray[Any]] | None = None
) -> dict[str, dict[str, tuple[int, int]]]:
    """Number of features and of trees for every method and classifier, by cross-validation on these rows.

    Features are selected on the folds' training rows, or once on those ``seen``.
    """
    by_size: dict[str, list[Any]] = {method: [] for method in GENE_METHODS}
    known: dict[tuple[int, bytes], list[int]] = {}
    folds = list(StratifiedKFold(settings.folds, shuffle=True, random_state=seed).split(X, y))
    for method in GENE_METHODS:
        sizes = settings.sizes[:1] if method in ("Full Space", "CFS") else settings.sizes
        once = None if seen is None else columns_of(selector(method), *seen, sizes)
        for fold, (train, test) in enumerate(folds):
            subsets = once or columns_of(selector(method), X[train], y[train], sizes)
            for subset in subsets:
                key = (fold, subset.tobytes())
                if key not in known:  # methods often agree
                    known[key] = right(X[:, subset], y, train, test, settings.trees, seed)
            by_size[method].append([known[fold, subset.tobytes()] for subset in subsets])
    chosen = {}
    for method, counts in by_size.items():
        total = np.sum(counts, axis=0)  # (sizes, CART and each number of trees)
        cart, forest = (int(np.argmax(total[:, column])) for column in (0, -1))
        trees = settings.trees[int(np.argmax(total[forest, 1:]))]
        chosen[method] = {"RF": (settings.sizes[forest], trees), "CART": (settings.sizes[cart], 1)}
    return chosen


def right(
    X: Floats, y: NDArray[Any], train: NDArray[Any], test: NDArray[Any], trees: Sequence[int], seed: int
) -> list[int]:
    """Rows classified rightly by CART, and by forests of these numbers of trees: parts of one forest."""
    cart = classifier_of("CART", 1, seed).fit(X[train], y[train])
    forest = classifier_of("RF", max(trees), seed).fit(X[train], y[train])
    votes = np.cumsum([tree.predict_proba(X[test]) for tree in forest.estimators_], axis=0)
    said = [forest.classes_[votes[number - 1].argmax(axis=1)] for number in trees]
    return [int(np.sum(answer == y[test])) for answer in (cart.predict(X[test]), *said)]


def table_1(name: str, trials: Sequence[Mapping[str, Any]]) -> dict[Place, list[float]]:
    found = [trial["threshold"] for trial in trials]
    scaled = ("Table 1", "threshold, entropies in log10 over ln kappa", name)
    return {("Table 1", "threshold", name): found, scaled: [IN_LOG10 * value for value in found]}


def table_3(name: str, trials: Sequence[Mapping[str, Any]]) -> dict[Place, list[float]]:
    found: dict[Place, list[float]] = {}
    for method in GENE_METHODS:
        for classifier in ("RF", "CART"):
            records = np.array([trial[f"{method} {classifier}"] for trial in trials])
            accuracy, size, trees, nodes, selecting, training = records.T
            columns = {"accuracy": 100 * accuracy, "features": size, "trees": trees, "seconds": selecting + training}
            columns |= {"seconds of selection": selecting, "seconds of training": training, "nodes of a tree": nodes}
            for column, values in columns.items():
                if (classifier, column) != ("CART", "trees"):
                    found["Table 3", f"{name} {method}", f"{classifier} {column}"] = values.tolist()
    return found


def scaled_apart(reproduction: Reproduction) -> dict[Place, list[float]]:
    """Leukemia's official split, all genes, the test part brought to [0, 1] and the training part not."""
    if "Leukemia" not in reproduction.settings.repeats:
        return {}
    source = reproduction.data("leukemia")
    X, y, train, test = np.asarray(source.X, dtype=np.float64), source.y, source.train_index, source.test_index
    odd, found = minmax_scale(X[test]), {}
    for name in ("RF", "CART"):
        models = [classifier_of(name, 30, seed).fit(X[train], y[train]) for seed in range(5)]
        accuracy = [100 * float(np.mean(model.predict(odd) == y[test])) for model in models]
        found["Table 3", "Leukemia Full Space, test rows scaled apart", f"{name} accuracy"] = accuracy
    return found


# ---- figure 2: accuracy by number of genes


@dataclass(frozen=True)
class Curves:
    """Accuracy in percent by number of genes, and the balanced gain of every gene, largest first."""

    sizes: list[int]
    accuracy: dict[str, list[float]]
    gains: list[float]


def figure_2(name: str, reproduction: Reproduction) -> Curves:
    """Leukemia's official split, or Lymphoma's first, genes ranked by balanced gain on the training part."""
    source, settings, seed = reproduction.data(GENES[name]), reproduction.settings, reproduction.seed
    X, y = np.ascontiguousarray(source.X, dtype=np.float64), source.y
    train, test = one_split(name, source, seed)
    ranked = DFE().fit(X[train], y[train])
    order = np.argsort(ranked.ranking_)
    sizes = np.unique(np.geomspace(1, X.shape[1], settings.figure_points).round().astype(int)).tolist()
    points = reproduction.conduct(
        f"figure-2-{GENES[name]}",
        partial(point, X[:, order], y, train, test, settings.figure_repeats, seed),
        sizes,
        {"data": fingerprint(X), "seed": seed, "repeats": settings.figure_repeats, "trees": FIGURE_TREES},
        f"figure 2, {name}, points",
    )
    accuracy = {kind: [points[size][place] for size in sizes] for place, kind in enumerate(("RF", "CART"))}
    return Curves(sizes, accuracy, np.sort(ranked.scores_)[::-1].tolist())


def one_split(name: str, source: Any, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The official split, or the first of the trials' random ones."""
    if name not in N_TEST:
        return source.train_index, source.test_index
    return split_rows(source.y, N_TEST[name], int(np.random.SeedSequence([seed, 0]).generate_state(3)[0]))


def point(X: Floats, y: NDArray[Any], train: Any, test: Any, repeats: int, seed: int, size: int) -> list[float]:
    """Percent with the first genes, by forests and by CART, means over repetitions."""
    here, scores = X[:, :size], []
    for repetition in range(repeats):
        word = int(np.random.SeedSequence([seed, repetition]).generate_state(1)[0])
        models = [classifier_of(name, FIGURE_TREES, word).fit(here[train], y[train]) for name in ("RF", "CART")]
        scores.append([np.mean(model.predict(here[test]) == y[test]) for model in models])
    return (100 * np.mean(scores, axis=0)).tolist()


def picture(figures: Mapping[str, Curves]) -> Picture:
    panels = []
    for data, curves in figures.items():
        gains = Line(data, list(range(1, len(curves.gains) + 1)), curves.gains)
        panels.append(Panel(f"{data}, balanced gain", "rank of the gene", "balanced gain", [gains], log=True))
        names = {"RF": "Random forest", "CART": "CART"}
        lines = [Line(names[kind], curves.sizes, values) for kind, values in curves.accuracy.items()]
        panels.append(Panel(f"{data}, accuracy", "number of genes", "accuracy (%)", lines, log=True))
    return Picture("Figure 2", panels)


def figure_cells(name: str, curves: Curves) -> dict[Place, list[float]]:
    return {
        ("Figure 2", f"{name} {kind}, accuracy by number of genes", str(size)): [value]
        for kind, values in curves.accuracy.items()
        for size, value in zip(curves.sizes, values, strict=True)
    }


# ---- CFS by its searches


def by_search(reproduction: Reproduction) -> dict[Place, list[float]]:
    """Genes, merit and accuracy of CFS for each of its searches, on training rows and on all rows."""
    found: dict[Place, list[float]] = {}
    for name in ("Leukemia", "Lymphoma"):
        if name not in reproduction.settings.repeats:
            continue
        source, seed = reproduction.data(GENES[name]), reproduction.seed
        X, y = np.ascontiguousarray(source.X, dtype=np.float64), source.y
        records = reproduction.conduct(
            f"cfs-{GENES[name]}",
            partial(searched, X, y, *one_split(name, source, seed), seed),
            [(search, seen) for seen in (False, True) for search in SEARCHES],
            {"data": fingerprint(X), "target": fingerprint(y), "seed": seed},
            f"{name}, searches of CFS",
        )
        for (search, seen), record in records.items():
            row = f"{name}, {search}{SEEN if seen else ''}"
            for column, value in zip(("genes", "merit", "RF accuracy", "CART accuracy"), record, strict=True):
                found[BY_SEARCH, row, column] = [value]
    return found


def searched(X: Floats, y: NDArray[Any], train: Any, test: Any, seed: int, unit: tuple[str, bool]) -> list[float]:
    search, seen = unit
    rows = np.arange(len(y)) if seen else train
    fitted = clone(SEARCHES[search]).fit(X[rows], y[rows])
    genes = fitted.get_support(indices=True)
    models = [classifier_of(kind, 30, seed).fit(X[train][:, genes], y[train]) for kind in ("RF", "CART")]
    accuracy = [100 * float(np.mean(model.predict(X[test][:, genes]) == y[test])) for model in models]
    return [len(genes), float(fitted.merits_[-1]), *accuracy]
