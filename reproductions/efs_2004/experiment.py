"""Wu and Zhang 2004: EFS against DFE, CFS and all features, on genes and in relevance feedback on images."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import minmax_scale
from sklearn.tree import DecisionTreeClassifier

from probewise import CFS, DFE, EFS, AdaptiveRandomForestClassifier
from probewise.feedback import relevance_feedback
from probewise.information import extended_balanced_gain
from probewise.study.trials import seeds, select, split_rows

from ..judge import Evidence
from ..pictures import Line, Panel, Picture
from ..results import Findings, Numbers, published
from ..work import Work, accuracy

NAME = "efs-2004"
TITLE = "Feature selection for classifying high-dimensional numerical data"
METHODS = ("Full Space", "EFS", "DFE", "CFS")
MODELS = ("RF", "CART")
N_TEST = {"Leukemia": 34, "Lymphoma": 36}
THRESHOLD = ("top", 900)
FIGURE_TREES, FIGURE_SIZES, FEW = 120, (1, 5, 20, 50, 200, 1000), 50
SEARCHES = {
    "best first": CFS(),
    "adds only": CFS(search="hill_climbing"),
    "adds or removes, from none": CFS(search="add_or_remove"),
    "adds or removes, from all": CFS(search="add_or_remove", start="full"),
}
IMAGES = {"MSRC-v1": "msrcv1", "COIL-20": "coil20", "Mfeat": "mfeat"}
DIMENSIONS = {("EFS", "ARF"): 20, ("EFS", "CART"): 20, ("DFE", "ARF"): 60, ("DFE", "CART"): 30}  # of table 2
INITIAL, RETURNED = 5, 20  # rows of each class that are labeled from the start; rows of an answer
OF_FIGURE_3 = "MSRC-v1"
TREES = (1, 5, 10, 20, 40, 60, 90, 120)
REGULAR = "regular"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """Random splits of each gene set, repetitions of the official split, grids of cross-validation, feedback."""

    splits: Mapping[str, int]
    official: int
    sizes: tuple[int, ...]
    trees: tuple[int, ...]
    images: Mapping[str, int]  # repetitions of the searches for all classes
    queries: int | None = None  # classes to search for; None: all
    folds: int = 5


PROFILES = {
    "quick": Settings({"Leukemia": 2, "Lymphoma": 2}, 1, (5, 20, 83), (10, 40), {"MSRC-v1": 1}, queries=2),
    "full": Settings(
        {"Leukemia": 20, "Lymphoma": 20},
        5,
        (1, 2, 5, 10, 20, 30, 50, 83, 120),  # the published optimum is 83
        (8, 11, 14, 20, 30, 40),
        {"MSRC-v1": 3, "COIL-20": 1, "Mfeat": 2},  # 21, 20 and 20 queries
    ),
}


def run(work: Work) -> Findings:
    """The tables and figures 2 and 3 of the paper, and the judged claims."""
    ours: Numbers = {}
    evidence: dict[str, dict[str, Evidence]] = defaultdict(dict)
    pictures = genes(work, ours, evidence) + feedback(work, ours, evidence)
    return ours, evidence, pictures


def genes(work: Work, ours: Numbers, evidence: dict[str, dict[str, Evidence]]) -> list[Picture]:
    """Tables 1 and 3 and figure 2 into ``ours``, and the evidence for their claims."""
    panels = []
    for name in work.settings.splits:
        source = work.data(name.lower())
        X, y = np.ascontiguousarray(source.X, dtype=np.float64), source.y
        official = None if source.train_index is None else (source.train_index, source.test_index)
        ours["Section 5.1", name, "samples"], ours["Section 5.1", name, "genes"] = X.shape
        ours["Section 5.1", name, "training samples"] = len(y) - N_TEST[name]
        function = partial(gene_split, X, y, official, N_TEST[name], work.settings, work.seed)
        units: list[Any] = [("random", k) for k in range(work.settings.splits[name])]
        units += [("official", k) for k in range(work.settings.official if official else 0)]
        options = {"folds": work.settings.folds, "sizes": work.settings.sizes, "trees": work.settings.trees}
        found = work.units(name.lower(), function, units, (X, y), **options)
        random = [each for (kind, _), each in found.items() if kind == "random"]
        ours |= table_3(f"{name}, random splits", random)
        ours |= table_3(name, [each for (kind, _), each in found.items() if kind == "official"] if official else random)
        judged(name, random, N_TEST[name] / (len(y) - N_TEST[name]), evidence)
        panels += figure_2(name, random, ours)
        train = official[0] if official else split_rows(y, N_TEST[name], seeds(work.seed, 0)["split"])[0]
        facts(name, X[train], y[train], ours, evidence)
    return [Picture("Figure 2", panels)]


# ---- table 3


class ByUncertainty(DFE):
    """Ranks features by symmetrical uncertainty with the class, with the cut points of `DFE`."""

    def fit(self, X: Any, y: Any) -> ByUncertainty:
        codes, classes, map = self._encoded(X, y, self.discretization)
        self._rank_by(codes.against(classes, map=map).uncertainty)
        return self


def selector(method: str) -> Any:
    return {"EFS": EFS(threshold=THRESHOLD), "DFE": DFE(), "CFS": CFS()}.get(method)


def gene_split(
    X: Floats, y: NDArray[Any], official: Any, n_test: int, settings: Any, seed: int, unit: tuple[str, int]
) -> dict[str, Any]:
    """One split: by method and classifier accuracy, features, trees and seconds; accuracy by number of genes.

    A repetition of the official split has other folds and other forests.
    """
    words = seeds(seed, unit[1])
    train, test = official if unit[0] == "official" else split_rows(y, n_test, words["split"])
    chosen = choose(X[train], y[train], settings, words["selector"])
    record: dict[str, Any] = {}
    for method in METHODS:
        started = time.process_time()
        subsets = columns_of(method, X[train], y[train], [size for size, _ in chosen[method].values()])
        selecting = time.process_time() - started
        for columns, (model, (_, trees)) in zip(subsets, chosen[method].items(), strict=True):
            started = time.process_time()
            fitted = model_of(model, trees, words["classifier"]).fit(X[train][:, columns], y[train])
            taken = selecting + time.process_time() - started
            right = float(np.mean(fitted.predict(X[test][:, columns]) == y[test]))
            record[f"{method} {model}"] = [right, len(columns), trees, taken]

    def by_genes(order: NDArray[np.int64], model: str) -> float:
        return accuracy(model_of(model, FIGURE_TREES, words["classifier"]), X[:, order], y, train, test)

    order = np.argsort(DFE().fit(X[train], y[train]).ranking_)
    sizes = [*FIGURE_SIZES, X.shape[1]]
    record["by genes"] = {model: [by_genes(order[:size], model) for size in sizes] for model in MODELS}
    uncertain = np.argsort(ByUncertainty().fit(X[train], y[train]).ranking_)[:FEW]
    record["by uncertainty"] = {model: by_genes(uncertain, model) for model in MODELS}
    return record


def model_of(name: str, trees: int, seed: int) -> Any:
    model = RandomForestClassifier(trees) if name == "RF" else DecisionTreeClassifier()
    return model.set_params(random_state=seed)


def columns_of(method: str, X: Floats, y: NDArray[Any], sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """The features at each size; all features without a selector, and CFS's own number at any size."""
    if method == "Full Space":
        return [np.arange(X.shape[1])] * len(sizes)
    return select(selector(method), X, y, [X.shape[1]] * len(sizes) if method == "CFS" else list(sizes))


def choose(X: Floats, y: NDArray[Any], settings: Any, seed: int) -> dict[str, dict[str, tuple[int, int]]]:
    """Number of features and of trees for each method and classifier, by cross-validation on these rows."""
    folds = list(StratifiedKFold(settings.folds, shuffle=True, random_state=seed).split(X, y))
    known: dict[tuple[int, bytes], list[int]] = {}
    chosen = {}
    for method in METHODS:
        sizes = settings.sizes[:1] if method in ("Full Space", "CFS") else settings.sizes
        total = np.zeros((len(sizes), 1 + len(settings.trees)))
        for fold, (train, test) in enumerate(folds):
            for place, subset in enumerate(columns_of(method, X[train], y[train], sizes)):
                key = (fold, subset.tobytes())
                if key not in known:  # methods often agree
                    known[key] = right(X[:, subset], y, train, test, settings.trees, seed)
                total[place] += known[key]
        cart, forest = int(np.argmax(total[:, 0])), int(np.argmax(total[:, -1]))
        trees = settings.trees[int(np.argmax(total[forest, 1:]))]
        chosen[method] = {"RF": (settings.sizes[forest], trees), "CART": (settings.sizes[cart], 1)}
    return chosen


def right(X: Floats, y: NDArray[Any], train: Any, test: Any, trees: Sequence[int], seed: int) -> list[int]:
    """Rows classified correctly by CART, and by forests of each number of trees, which are parts of one forest."""
    cart = model_of("CART", 1, seed).fit(X[train], y[train])
    forest = model_of("RF", max(trees), seed).fit(X[train], y[train])
    votes = np.cumsum([tree.predict_proba(X[test]) for tree in forest.estimators_], axis=0)
    said = [forest.classes_[votes[number - 1].argmax(axis=1)] for number in trees]
    return [int(np.sum(answer == y[test])) for answer in (cart.predict(X[test]), *said)]


def table_3(name: str, records: Sequence[Mapping[str, Any]]) -> Numbers:
    found: Numbers = {}
    for method in METHODS if records else ():
        for model in MODELS:
            accuracy, size, trees, taken = np.array([record[f"{method} {model}"] for record in records]).T
            columns = {"accuracy": 100 * accuracy, "features": size, "seconds": taken}
            columns |= {"trees": trees} if model == "RF" else {}
            found |= {("Table 3", f"{name} {method}", f"{model} {column}"): v for column, v in columns.items()}
    return found


def judged(
    name: str, records: Sequence[Mapping[str, Any]], ratio: float, evidence: dict[str, dict[str, Evidence]]
) -> None:
    """Evidence of one set for the claims on genes."""

    def add(claim: str, column: str, values: Any) -> None:
        evidence[claim][column] = Evidence(100 * np.array(values), ratio)

    for model in MODELS:
        column = f"{name} {model}"
        accuracy = {method: np.array([record[f"{method} {model}"][0] for record in records]) for method in METHODS}
        add("EFS beats DFE", column, accuracy["EFS"] - accuracy["DFE"])
        add("DFE beats CFS", column, accuracy["DFE"] - accuracy["CFS"])
        add("EFS beats all genes", column, accuracy["EFS"] - accuracy["Full Space"])
        add("size of the gain", column, accuracy["EFS"] - accuracy["Full Space"])
        few = np.array([record["by genes"][model][FIGURE_SIZES.index(FEW)] for record in records])
        add("few genes", column, few - [record["by genes"][model][-1] for record in records])
        add("gain beats uncertainty", column, few - [record["by uncertainty"][model] for record in records])
        times = [np.mean([record[f"{method} {model}"][3] for record in records]) for method in ("Full Space", "EFS")]
        evidence["two orders of magnitude"][column] = Evidence(text=f"{times[0] / times[1]:.2f} times")
    forest, tree = (np.array([record[f"EFS {model}"][0] for record in records]) for model in MODELS)
    add("forest beats CART", name, forest - tree)


def figure_2(name: str, records: Sequence[Mapping[str, Any]], ours: Numbers) -> list[Panel]:
    sizes = [*FIGURE_SIZES, {"Leukemia": 7129, "Lymphoma": 4026}[name]]
    lines = []
    for model in MODELS:
        accuracy = 100 * np.array([record["by genes"][model] for record in records])
        ours |= {("Figure 2", f"{name} {model}", str(size)): accuracy[:, k] for k, size in enumerate(sizes)}
        ours["Figure 2", f"{name} {model}, by symmetrical uncertainty", str(FEW)] = [
            100 * record["by uncertainty"][model] for record in records
        ]
        lines.append(Line({"RF": "random forest", "CART": "CART"}[model], sizes, accuracy.mean(axis=0)))
    return [Panel(f"{name}, best genes by balanced gain", "number of genes", "accuracy (%)", lines, log_x=True)]


# ---- table 1, the proofs, and the searches of CFS


def facts(name: str, X: Floats, y: NDArray[Any], ours: Numbers, evidence: dict[str, dict[str, Evidence]]) -> None:
    """Count the numbers that need only one training part."""
    known = published(NAME)
    goal, epsilon = known["Table 1", "threshold", name], float(np.sort(DFE().fit(X, y).scores_)[-THRESHOLD[1]])
    ours["Table 1", "threshold", name] = epsilon
    ours["Table 1", "threshold, entropies in log10 divided by ln kappa", name] = epsilon * np.log10(np.e)
    text = f"{epsilon:.4f}, published {goal:g}"
    evidence["threshold of table 1"][name] = Evidence(fact=abs(epsilon / goal - 1) < 0.05, text=text)
    n_genes = {search: int(cfs.fit(X, y).get_support().sum()) for search, cfs in SEARCHES.items()}
    ours |= {("CFS by search", name, search): number for search, number in n_genes.items()}
    goal = known["Table 3", f"{name} CFS", "RF features"]
    near = any(abs(number - goal) <= 3 for search, number in n_genes.items() if "removes" in search)
    text = ", ".join(f"{search} {number}" for search, number in n_genes.items())
    evidence["genes of CFS"][name] = Evidence(fact=near, text=f"{text}; published {goal:g}")
    if name == "Leukemia":
        evidence["what is proved"] = proofs(X, y)
        one, other = (X[y == label] for label in np.unique(y))
        perfect = np.flatnonzero((one.max(axis=0) < other.min(axis=0)) | (other.max(axis=0) < one.min(axis=0)))
        ours["Section 5.4", name, "genes without an error in training"] = len(perfect)
        ours["Section 5.4", name, "its column"] = perfect[0] if len(perfect) else None


def proofs(X: Floats, y: NDArray[Any]) -> dict[str, Evidence]:
    """Theorems 1 and 2 and lemmas 1 and 2, on 500 pairs of genes and the first 50 genes."""
    cuts, random = DFE().fit(X, y).cut_points_, np.random.default_rng(0)
    pairs = random.integers(0, X.shape[1], (500, 2))
    codes = {k: np.searchsorted(cuts[k], X[:, k]) for k in np.unique(pairs).tolist()}
    apart = max(
        abs(extended_balanced_gain(codes[i], codes[j]) - extended_balanced_gain(codes[j], codes[i]))
        for i, j in pairs.tolist()
    )
    steps = [EFS(size, threshold=-1.0).fit(X, y) for size in (1, 2, 5, 10, 20, 50)]
    moved = 0
    for before, after in pairwise(steps):
        left = np.setdiff1d(np.arange(X.shape[1]), after.order_)
        moved += int(np.sum(after.scores_[left] > before.scores_[left] + 1e-12))
        moved += int(np.sum(after.redundancy_[left] < before.redundancy_[left] - 1e-12))
    bounded = EFS(50, threshold=THRESHOLD).fit(X, y)
    worth = steps[-1].order_[steps[-1].importances_ >= bounded.threshold_]
    lost = len(np.setdiff1d(worth, bounded.order_))
    return {
        "theorem 1": Evidence(fact=apart == 0, text=f"largest difference {apart:g}"),
        "lemmas 1 and 2": Evidence(fact=moved == 0, text=f"{moved} exceptions"),
        "theorem 2": Evidence(fact=lost == 0, text=f"{lost} genes lost"),
    }


# ---- table 2 and figure 3: relevance feedback on images that replace those of Corel


def feedback(work: Work, ours: Numbers, evidence: dict[str, dict[str, Evidence]]) -> list[Picture]:
    """Table 2 and figure 3 into ``ours``, the evidence for their claims, and the figures."""
    panels = []
    for name, repeats in work.settings.images.items():
        source = work.data(IMAGES[name])
        shuffled = np.random.default_rng(work.seed).permutation(len(source.y))  # ties go to the lower row number
        X, y = minmax_scale(np.asarray(source.X, dtype=np.float64))[shuffled], source.y[shuffled]
        cells = [(method, model) for model in ("ARF", "CART") for method in METHODS]
        if name == OF_FIGURE_3:
            cells += [("Full Space", f"{trees} trees") for trees in (*TREES, REGULAR)]
        units = [(*cell, repetition) for repetition in range(repeats) for cell in cells]
        function = partial(search, X, y, work.settings.queries, work.seed)
        found = work.units(f"feedback-{IMAGES[name]}", function, units, (X, y), queries=work.settings.queries)
        queries = repeats * len(np.unique(y)[: work.settings.queries])
        to_find = len(y) // len(np.unique(y)) - INITIAL
        counts = {"images": len(y), "features": X.shape[1], "queries": queries, "rows of a class to find": to_find}
        ours |= {("Images", name, column): number for column, number in counts.items()}
        table = {cell: joined([found[(*cell, repetition)] for repetition in range(repeats)]) for cell in cells}
        for (method, model), columns in table.items():
            row = ("Table 2", f"{name} {method}") if model in ("ARF", "CART") else ("Figure 3", model)
            ours |= {(*row, f"{model} {column}" if row[0] == "Table 2" else column): v for column, v in columns.items()}
        compared(name, table, evidence)
        shape = len(y), len(np.unique(y))
        shares = {method: shares_found(found, method, repeats, *shape) for method in METHODS}
        ours |= {("Found after 5 rounds (%)", method, name): values[:, 5] for method, values in shares.items()}
        panels.append(by_round(name, shares))
        if name == OF_FIGURE_3:
            third = figure_3(name, table)
    return [third, Picture("Feedback", panels)]


def search(X: Floats, y: NDArray[Any], queries: int | None, seed: int, unit: tuple[str, str, int]) -> dict[str, Any]:
    """Searches for all classes, or the first few, after other initial rows in each repetition."""
    method, model, repetition = unit
    classifier = {
        "CART": DecisionTreeClassifier(),
        "ARF": AdaptiveRandomForestClassifier(),
        f"{REGULAR} trees": RandomForestClassifier(60),
        **{f"{trees} trees": AdaptiveRandomForestClassifier(trees) for trees in TREES},
    }[model]
    size = min(DIMENSIONS.get((method, model), 1), X.shape[1])
    selectors = {"EFS": EFS(size), "DFE": DFE(size), "CFS": CFS()}
    options = {
        "initial": INITIAL,
        "returned": RETURNED,
        "selector": selectors.get(method),
        "random_state": np.random.RandomState([seed, repetition]),
    }
    found = relevance_feedback(X, y, classifier, queries=np.unique(y)[:queries], **options)
    with np.errstate(invalid="ignore"):
        relative = found.precision / found.possible
    return {
        "relative": found.relative_precision,
        "rounds": np.where(found.possible > 0, relative, np.nan).T,
        "features": found.n_features[found.n_features.nonzero()[0].max()],
        "seconds": np.nanmean(found.seconds, axis=0),
    }


def joined(results: list[Mapping[str, Any]]) -> dict[str, Floats]:
    """Columns of table 2, one number for each query."""
    columns = {key: np.concatenate([each[key] for each in results]) for key in ("relative", "features", "seconds")}
    return {"relative precision": 100 * columns.pop("relative"), **columns}


def compared(name: str, table: Mapping[Any, Mapping[str, Floats]], evidence: dict[str, dict[str, Evidence]]) -> None:
    def add(claim: str, column: str, first: Any, second: Any) -> None:
        evidence[claim][column] = Evidence(table[first]["relative precision"] - table[second]["relative precision"])

    for model in ("ARF", "CART"):
        add("feedback, EFS is best", f"{name} {model}", ("EFS", model), ("Full Space", model))
    add("feedback, DFE and CFS are comparable", name, ("EFS", "ARF"), ("DFE", "ARF"))
    add("feedback, ARF beats CART", name, ("EFS", "ARF"), ("EFS", "CART"))
    times = [table[method, "ARF"]["seconds"].mean() for method in ("Full Space", "EFS")]
    evidence["feedback, time"][f"{name} ARF"] = Evidence(text=f"{times[0] / times[1]:.2f} times")
    if name == OF_FIGURE_3:
        sixty = ("Full Space", "60 trees")
        add("feedback, 60 trees", "60 - 120 trees", sixty, ("Full Space", "120 trees"))
        add("feedback, 60 trees", "60 - 10 trees", sixty, ("Full Space", "10 trees"))
        add("feedback, ARF is like a regular forest", name, sixty, ("Full Space", f"{REGULAR} trees"))


def figure_3(name: str, table: Mapping[Any, Mapping[str, Floats]]) -> Picture:
    panels = []
    for column, axis in (("relative precision", "relative precision (%)"), ("seconds", "seconds per round")):
        means = [float(table["Full Space", f"{trees} trees"][column].mean()) for trees in TREES]
        panels.append(Panel(name, "number of trees", axis, [Line("adaptive random forest", TREES, means)]))
    return Picture("Figure 3", panels)


def shares_found(found: Mapping[Any, Any], method: str, repeats: int, n_rows: int, n_classes: int) -> Floats:
    """Percent of a query's class that is found after each round, among rows that were not labeled from the start.

    The counts follow from the stored relative precision, which is NaN after the last row of the class is found.
    """
    relative = np.concatenate([np.array(found[method, "ARF", r]["rounds"], dtype=np.float64) for r in range(repeats)])
    n_positive, n_unlabeled = n_rows / n_classes - INITIAL, n_rows - INITIAL * n_classes
    left = np.full((len(relative), relative.shape[1] + 1), n_positive)
    for k, each in enumerate(np.nan_to_num(relative).T):
        n_returned = min(RETURNED, max(0, n_unlabeled - k * RETURNED))
        left[:, k + 1] = left[:, k] - each * np.minimum(n_returned, left[:, k])
    return 100 * (1 - left / n_positive)


def by_round(name: str, shares: Mapping[str, Floats]) -> Panel:
    rounds = np.arange(next(iter(shares.values())).shape[1])
    lines = [Line(method, rounds, values.mean(axis=0)) for method, values in shares.items()]
    return Panel(f"{name}, ARF", "rounds", "rows of the class found (%)", lines)
