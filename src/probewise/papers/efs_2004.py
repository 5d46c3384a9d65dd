"""Wu, Zhang 2004: EFS against DFE, CFS and all features, on genes and in relevance feedback on images."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import minmax_scale
from sklearn.tree import DecisionTreeClassifier

from ..feedback import relevance_feedback
from ..forest import AdaptiveRandomForestClassifier
from ..probing.fingerprints import fingerprint
from ..selectors.cfs import CFS
from ..selectors.dfe import DFE
from ..selectors.efs import EFS
from ..study import select, split_rows
from .base import Claim, Line, Outcome, Panel, Picture, Place, Reproduction, ahead, averaged, cells, listed

NAME = "efs-2004"
TITLE = "Feature selection for classifying high-dimensional numerical data"

METHODS = ("Full Space", "EFS", "DFE", "CFS")
THRESHOLD = ("top", 900)
FIGURE_TREES = 120
FEW, MANY = 100, 900
GENES = {"Leukemia": "leukemia", "Lymphoma": "lymphoma", "Leukemia, random splits": "leukemia"}
N_TEST = {"Lymphoma": 36, "Leukemia, random splits": 34}
IMAGES = {"MSRC-v1": "msrcv1", "COIL-20": "coil20", "Mfeat": "mfeat"}
DIMENSIONS = {("EFS", "ARF"): 20, ("EFS", "CART"): 20, ("DFE", "ARF"): 60, ("DFE", "CART"): 30}
INITIAL, ROUNDS, RETURNED = 5, 10, 20

Floats = NDArray[np.float64]
Found = Mapping[tuple[str, str], Sequence[Sequence[float]]]  # by method and classifier


@dataclass(frozen=True)
class Settings:
    """How much is done."""

    repeats: Mapping[str, int]  # trials of each gene set: repetitions of the official split, or random splits
    folds: int  # of the cross-validation that chooses the number of features, from sizes, and of trees
    sizes: tuple[int, ...]
    trees: tuple[int, ...]
    figure_points: int  # numbers of genes in figure 2
    figure_repeats: int  # forests for each
    feedback_repeats: int  # times that initial rows are drawn
    queries: int | None  # classes searched for in each set, at most
    images: tuple[str, ...] = tuple(IMAGES)


PROFILES = {
    "quick": Settings(
        repeats={"Leukemia": 3, "Lymphoma": 6, "Leukemia, random splits": 4},
        folds=5,
        sizes=(1, 2, 3, 5, 10, 20, 30, 50, 80),
        trees=(10, 20, 30, 40),
        figure_points=12,
        figure_repeats=3,
        feedback_repeats=1,
        queries=4,
    ),
    "full": Settings(
        repeats={"Leukemia": 10, "Lymphoma": 50, "Leukemia, random splits": 30},
        folds=5,
        sizes=(1, 2, 3, 4, 5, 7, 10, 13, 16, 20, 24, 27, 30, 40, 50, 65, 83, 100),
        trees=(8, 11, 14, 20, 30, 40),
        figure_points=30,
        figure_repeats=20,
        feedback_repeats=2,
        queries=None,
    ),
}


def run(reproduction: Reproduction) -> Outcome:
    """The paper's tables and figure 2."""
    settings = reproduction.settings
    trials = {name: genes(name, reproduction) for name in settings.repeats}
    found = {name: feedback(name, reproduction) for name in settings.images}
    figure = figure_2(reproduction) if settings.figure_repeats else None
    tables: dict[Place, Sequence[float]] = {}
    for name, each in trials.items():
        tables |= table_1(name, each) | table_3(name, each)
    for name, queries in found.items():
        tables |= table_2(name, queries)
    ours, notes = averaged(tables, lambda place: place[2].split()[-1] in ("accuracy", "precision"))
    panels = [panel for name, queries in found.items() for panel in precision_by_round(name, queries)]
    return Outcome(
        cells=cells(NAME, ours, notes),
        claims=[
            *(claim for name, each in trials.items() for claim in order_of_methods(name, each)),
            *(forest_is_ahead(name, each) for name, each in trials.items()),
            *(claim for name, queries in found.items() for claim in order_in_feedback(name, queries)),
            *(figure_claims(figure) if figure else ()),
        ],
        pictures=[*([picture(figure)] if figure else []), *([Picture("Feedback", panels)] if panels else [])],
    )


def selector(method: str) -> Any:
    """As in sections 5.1 and 5.2, for genes."""
    return {"EFS": EFS(threshold=THRESHOLD), "DFE": DFE(), "CFS": CFS()}.get(method)


# ---- table 3: genes


def genes(name: str, reproduction: Reproduction) -> list[dict[str, Any]]:
    """The trials of a gene set, each a record of what `gene_trial` finds."""
    source, settings, seed = reproduction.data(GENES[name]), reproduction.settings, reproduction.seed
    X, y = np.ascontiguousarray(source.X, dtype=np.float64), source.y
    official = None if name in N_TEST else (source.train_index, source.test_index)
    chosen = {"folds": settings.folds, "sizes": settings.sizes, "trees": settings.trees}
    found = reproduction.conduct(
        name.lower().replace(", ", "-").replace(" ", "-"),
        partial(gene_trial, X, y, official, N_TEST.get(name, 0), settings, seed),
        range(settings.repeats[name]),
        {"data": fingerprint(X), "target": fingerprint(y), "seed": seed, **chosen},
        f"{name}, trials",
    )
    return list(found.values())


def gene_trial(
    X: Floats, y: NDArray[Any], official: Any, n_test: int, settings: Settings, seed: int, trial: int
) -> dict[str, Any]:
    """One split: for every method and classifier the accuracy, number of features and trees, and seconds."""
    split_seed, fold_seed, model_seed = np.random.SeedSequence([seed, trial]).generate_state(3).tolist()
    train, test = official if official is not None else split_rows(y, n_test, split_seed)
    numbers = choose(X[train], y[train], settings, fold_seed)
    record: dict[str, Any] = {}
    for method in METHODS:
        fitted, started = selector(method), time.perf_counter()
        subsets = columns_of(fitted, X[train], y[train], [size for size, _ in numbers[method].values()])
        selecting = time.perf_counter() - started
        if method == "EFS":
            record["threshold"] = fitted.threshold_
        for columns, (classifier, (_, trees)) in zip(subsets, numbers[method].items(), strict=True):
            started = time.perf_counter()
            model = classifier_of(classifier, trees, model_seed).fit(X[train][:, columns], y[train])
            seconds = selecting + time.perf_counter() - started
            accuracy = float(np.mean(model.predict(X[test][:, columns]) == y[test]))
            record[f"{method} {classifier}"] = [accuracy, len(columns), trees, seconds]
    return record


def classifier_of(name: str, trees: int, seed: int) -> Any:
    model = RandomForestClassifier(trees) if name == "RF" else DecisionTreeClassifier()
    return model.set_params(random_state=seed)


def columns_of(selector: Any, X: Floats, y: NDArray[Any], sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """The features selected at each size; all of them without a selector, CFS's own number whatever the size."""
    if selector is None or isinstance(selector, CFS):
        sizes = [X.shape[1]] * len(sizes)
    return [np.arange(X.shape[1])] * len(sizes) if selector is None else select(selector, X, y, sizes)


def choose(X: Floats, y: NDArray[Any], settings: Settings, seed: int) -> dict[str, dict[str, tuple[int, int]]]:
    """Number of features and of trees for every method and classifier, by cross-validation on these rows alone."""
    by_size: dict[str, list[Any]] = {method: [] for method in METHODS}
    folds = StratifiedKFold(settings.folds, shuffle=True, random_state=seed)
    for train, test in folds.split(X, y):
        for method in METHODS:
            sizes = settings.sizes if method in ("EFS", "DFE") else settings.sizes[:1]
            subsets = columns_of(selector(method), X[train], y[train], sizes)
            by_size[method].append([right(X[:, subset], y, train, test, settings.trees, seed) for subset in subsets])
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
    return {("Table 1", "threshold", name): [trial["threshold"] for trial in trials]}


def table_3(name: str, trials: Sequence[Mapping[str, Any]]) -> dict[Place, list[float]]:
    found: dict[Place, list[float]] = {}
    for method in METHODS:
        for classifier in ("RF", "CART"):
            accuracy, size, trees, seconds = np.array([trial[f"{method} {classifier}"] for trial in trials]).T
            columns = {"accuracy": 100 * accuracy, "features": size, "trees": trees, "seconds": seconds}
            for column, values in columns.items():
                if (classifier, column) != ("CART", "trees"):
                    found["Table 3", f"{name} {method}", f"{classifier} {column}"] = values.tolist()
    return found


def order_of_methods(name: str, trials: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """EFS at least DFE, that at least CFS, and that at least all genes."""
    return [_ordered(name, classifier, trials) for classifier in ("RF", "CART")]


def _ordered(name: str, classifier: str, trials: Sequence[Mapping[str, Any]]) -> Claim:
    order = ("EFS", "DFE", "CFS", "Full Space")
    accuracy = {method: np.array([trial[f"{method} {classifier}"][0] for trial in trials]) for method in order}
    means = {method: 100 * float(np.mean(accuracy[method])) for method in order}
    steps = []
    for first, second in pairwise(order):
        differences = 100 * (accuracy[first] - accuracy[second])
        steps.append(f"{first} - {second} {differences.mean():+z.2f}{_error(differences)}")
    return Claim(
        f"{name}, {classifier}: EFS >= DFE >= CFS >= all features",
        all(a >= b for a, b in pairwise(means.values())),
        f"{listed(means, '.2f')}; {'; '.join(steps)} (mean of {len(differences)}, standard error)",
    )


def _error(differences: Floats) -> str:
    return f" ± {differences.std(ddof=1) / np.sqrt(len(differences)):.2f}" if len(differences) > 1 else ""


def forest_is_ahead(name: str, trials: Sequence[Mapping[str, Any]]) -> Claim:
    lead = {
        method: 100 * float(np.mean([trial[f"{method} RF"][0] - trial[f"{method} CART"][0] for trial in trials]))
        for method in METHODS
    }
    return ahead(f"{name}: random forests are ahead of CART with every method", lead)


# ---- table 2: relevance feedback


def feedback(name: str, reproduction: Reproduction) -> Found:
    """For every method and classifier a row for each repetition, as `search` gives it."""
    source, settings, seed = reproduction.data(IMAGES[name]), reproduction.settings, reproduction.seed
    shuffled = np.random.default_rng(seed).permutation(len(source.y))
    X, y = minmax_scale(np.asarray(source.X, dtype=np.float64))[shuffled], source.y[shuffled]
    repetitions, pairs = range(settings.feedback_repeats), list(product(METHODS, ("ARF", "CART")))
    found = reproduction.conduct(
        f"feedback-{IMAGES[name]}",
        partial(search, X, y, settings.queries, seed),
        [(*pair, repetition) for repetition in repetitions for pair in pairs],
        {"data": fingerprint(X), "target": fingerprint(y), "seed": seed, "queries": settings.queries},
        f"{name}, searches",
    )
    return {pair: [found[(*pair, repetition)] for repetition in repetitions] for pair in pairs}


def search(X: Floats, y: NDArray[Any], n_queries: int | None, seed: int, unit: tuple[str, str, int]) -> list[float]:
    """Features of the last round, seconds of a round, and precision before and after each, means over queries."""
    method, classifier, repetition = unit
    model = AdaptiveRandomForestClassifier() if classifier == "ARF" else DecisionTreeClassifier()
    size = min(DIMENSIONS.get((method, classifier), 1), X.shape[1])
    found = relevance_feedback(
        X,
        y,
        model,
        selector={"EFS": EFS(size), "DFE": DFE(size), "CFS": CFS()}.get(method),
        initial=INITIAL,
        rounds=ROUNDS,
        returned=RETURNED,
        queries=np.unique(y)[:n_queries],
        random_state=np.random.RandomState([seed, repetition]),
    )
    return [found.mean_n_features[-1], float(found.mean_seconds.mean()), *found.mean_precision.tolist()]


def table_2(name: str, found: Found) -> dict[Place, list[float]]:
    table: dict[Place, list[float]] = {}
    for (method, classifier), rows in found.items():
        features, seconds, *rounds = np.array(rows).T
        columns = {
            "precision": 100 * rounds[-1],
            "features": features,
            "seconds": seconds,
            "mean precision": 100 * np.mean(rounds, axis=0),
        }
        for column, values in columns.items():
            table["Table 2", f"{name} {method}", f"{classifier} {column}"] = values.tolist()
    return table


def order_in_feedback(name: str, found: Found) -> list[Claim]:
    """EFS has the highest precision, and the forest a higher one than CART: at the end, and over all rounds."""
    table = {place[1:]: float(np.mean(values)) for place, values in table_2(name, found).items()}
    claims = []
    for column, when in (("precision", "after the last round"), ("mean precision", "mean over rounds")):
        forest, cart = (
            {method: table[f"{name} {method}", f"{classifier} {column}"] for method in METHODS}
            for classifier in ("ARF", "CART")
        )
        for classifier, mean in (("ARF", forest), ("CART", cart)):
            text = f"{name}, {classifier}: EFS has the highest precision, {when}"
            claims.append(Claim(text, mean["EFS"] >= max(mean.values()), listed(mean, ".2f")))
        lead = {method: forest[method] - cart[method] for method in METHODS}
        claims.append(ahead(f"{name}: the adaptive forest is ahead of CART, {when}", lead))
    return claims


def precision_by_round(name: str, found: Found) -> list[Panel]:
    """A panel for each classifier."""
    rounds, panels = list(range(ROUNDS + 1)), []
    for classifier in ("ARF", "CART"):
        means = {method: 100 * np.mean(found[method, classifier], axis=0)[2:] for method in METHODS}
        lines = [Line(method, rounds, mean.tolist()) for method, mean in means.items()]
        panels.append(Panel(f"{name}, {classifier}", "rounds of feedback", "precision (%)", lines))
    return panels


# ---- figure 2: accuracy by number of genes


@dataclass(frozen=True)
class Curves:
    """Accuracy in percent by number of genes, and the balanced gain of every gene, largest first."""

    sizes: list[int]
    accuracy: dict[str, list[float]]
    gains: list[float]


def figure_2(reproduction: Reproduction) -> Curves:
    """Leukemia's official split, genes ranked by balanced gain on the training part."""
    source, settings, seed = reproduction.data("leukemia"), reproduction.settings, reproduction.seed
    X, y = np.ascontiguousarray(source.X, dtype=np.float64), source.y
    train, test = source.train_index, source.test_index
    ranked = DFE().fit(X[train], y[train])
    order = np.argsort(ranked.ranking_)
    sizes = np.unique(np.geomspace(1, X.shape[1], settings.figure_points).round().astype(int)).tolist()
    points = reproduction.conduct(
        "figure-2",
        partial(point, X[:, order], y, train, test, settings.figure_repeats, seed),
        sizes,
        {"data": fingerprint(X), "seed": seed, "repeats": settings.figure_repeats, "trees": FIGURE_TREES},
        "figure 2, points",
    )
    accuracy = {name: [points[size][place] for size in sizes] for place, name in enumerate(("RF", "CART"))}
    return Curves(sizes, accuracy, np.sort(ranked.scores_)[::-1].tolist())


def point(X: Floats, y: NDArray[Any], train: Any, test: Any, repeats: int, seed: int, size: int) -> list[float]:
    """Percent with the first genes, by forests and by CART, means over repetitions."""
    here, scores = X[:, :size], []
    for repetition in range(repeats):
        word = int(np.random.SeedSequence([seed, repetition]).generate_state(1)[0])
        models = [classifier_of(name, FIGURE_TREES, word).fit(here[train], y[train]) for name in ("RF", "CART")]
        scores.append([np.mean(model.predict(here[test]) == y[test]) for model in models])
    return (100 * np.mean(scores, axis=0)).tolist()


def figure_claims(curves: Curves) -> list[Claim]:
    """Few genes are best; nothing is said of a table that has no more than 900."""
    sizes, claims = np.array(curves.sizes), []
    if sizes[-1] <= MANY:
        return []
    for name, values in curves.accuracy.items():
        accuracy = np.array(values)
        few, many = accuracy[sizes < FEW].max(), accuracy[sizes > MANY].max()
        claims.append(
            Claim(
                f"Figure 2, {name}: best with fewer than {FEW} genes, worse with more than {MANY}",
                bool(few == accuracy.max() and many < few),
                f"largest accuracy {few:.2f} below {FEW} genes, {many:.2f} above {MANY}, {accuracy[-1]:.2f} with all",
            )
        )
    return claims


def picture(curves: Curves) -> Picture:
    ranks, names = list(range(1, len(curves.gains) + 1)), {"RF": "Random forest", "CART": "CART"}
    gains = Line("Leukemia", ranks, curves.gains)
    lines = [Line(names[name], curves.sizes, values) for name, values in curves.accuracy.items()]
    return Picture(
        "Figure 2",
        [
            Panel("Balanced gain", "rank of the gene", "balanced gain", [gains], log=True),
            *(Panel(line.name, "number of genes", "accuracy (%)", [line], log=True) for line in lines),
        ],
    )
