"""Wu, Zhang 2004: EFS against DFE, CFS and all features, on genes and in relevance feedback on images."""

from __future__ import annotations

import math
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
from .base import Claim, Line, Outcome, Panel, Picture, Place, Reproduction, ahead, averaged, cells, listed, published

NAME = "efs-2004"
TITLE = "Feature selection for classifying high-dimensional numerical data"

METHODS = ("Full Space", "EFS", "DFE", "CFS")
GREEDY, BY_UNCERTAINTY = "EFS, greedy cuts", "Symmetrical uncertainty"
GENE_METHODS = (*METHODS, GREEDY, BY_UNCERTAINTY)
SEEN = ", test rows seen"  # by the selectors
THRESHOLD = ("top", 900)
FIGURE_TREES = 120
FEW, MANY = 100, 900
GENES = {
    "Leukemia": "leukemia",
    "Lymphoma": "lymphoma",
    "Leukemia, random splits": "leukemia",
    f"Leukemia{SEEN}": "leukemia",
    f"Lymphoma{SEEN}": "lymphoma",
}
N_TEST = {"Lymphoma": 36, "Leukemia, random splits": 34, f"Lymphoma{SEEN}": 36}
IN_LOG10 = math.log10(math.e)  # entropies by log10, over the natural logarithm of kappa
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
    forests: tuple[int, ...] = (1, 5, 10, 20, 40, 60, 90, 120)  # trees of figure 3, on the first set of images
    forest_repeats: int = 1


PROFILES = {
    "quick": Settings(
        repeats={
            "Leukemia": 3,
            "Lymphoma": 6,
            "Leukemia, random splits": 4,
            f"Leukemia{SEEN}": 3,
            f"Lymphoma{SEEN}": 3,
        },
        folds=5,
        sizes=(1, 2, 3, 5, 10, 20, 30, 50, 80),
        trees=(10, 20, 30, 40),
        figure_points=12,
        figure_repeats=3,
        feedback_repeats=1,
        queries=4,
    ),
    "full": Settings(
        repeats={
            "Leukemia": 10,
            "Lymphoma": 50,
            "Leukemia, random splits": 30,
            f"Leukemia{SEEN}": 10,
            f"Lymphoma{SEEN}": 20,
        },
        folds=5,
        sizes=(1, 2, 3, 4, 5, 7, 10, 13, 16, 20, 24, 27, 30, 40, 50, 65, 83, 100),
        trees=(8, 11, 14, 20, 30, 40),
        figure_points=30,
        figure_repeats=20,
        feedback_repeats=2,
        queries=None,
        forest_repeats=2,
    ),
}


def run(reproduction: Reproduction) -> Outcome:
    """The paper's tables and figures 2 and 3."""
    settings = reproduction.settings
    trials = {name: genes(name, reproduction) for name in settings.repeats}
    found = {name: feedback(name, reproduction) for name in settings.images}
    figure = figure_2(reproduction) if settings.figure_repeats else None
    forests = figure_3(settings.images[0], reproduction) if settings.images else {}
    tables: dict[Place, Sequence[float]] = {}
    for name, each in trials.items():
        tables |= table_1(name, each) | table_3(name, each)
    for name, queries in found.items():
        tables |= table_2(name, queries)
    tables |= {("Figure 3", settings.images[0], name): values for name, values in forests.items()}
    tables |= scaled_apart(reproduction)
    ours, notes = averaged(tables, lambda place: place[2].split()[-1] in ("accuracy", "precision"))
    panels = [panel for name, queries in found.items() for panel in precision_by_round(name, queries)]
    return Outcome(
        cells=cells(NAME, ours, notes),
        claims=[
            *(claim for name, each in trials.items() for claim in order_of_methods(name, each)),
            *(forest_is_ahead(name, each) for name, each in trials.items()),
            *(claim for name, each in trials.items() for claim in efficiency(name, each)),
            *(gain_against_uncertainty(name, each) for name, each in trials.items()),
            *(greedy_against_optimal(name, each) for name, each in trials.items()),
            *seen_or_not(trials),
            *thresholds(trials),
            *apart_claims(tables),
            *(claim for name, queries in found.items() for claim in order_in_feedback(name, queries)),
            *(claim for name, queries in found.items() for claim in feedback_times(name, queries)),
            *(figure_3_claims(settings.images[0], forests) if forests else ()),
            *(figure_claims(figure) if figure else ()),
        ],
        pictures=[*([picture(figure)] if figure else []), *([Picture("Feedback", panels)] if panels else [])],
    )


def selector(method: str) -> Any:
    """As in sections 5.1 and 5.2, for genes."""
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
        self._keep(codes.against(classes, map=map).uncertainty)
        return self


# ---- table 3: genes


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
    X: Floats, y: NDArray[Any], official: Any, n_test: int, settings: Settings, seed: int, seen: bool, trial: int
) -> dict[str, Any]:
    """One split: for every method and classifier the accuracy, number of features and trees, and seconds.

    Seconds are of selection and of training. If ``seen``, selectors are given the test rows, too.
    """
    split_seed, fold_seed, model_seed = np.random.SeedSequence([seed, trial]).generate_state(3).tolist()
    train, test = official if official is not None else split_rows(y, n_test, split_seed)
    numbers = choose(X[train], y[train], settings, fold_seed, (X, y) if seen else None)
    rows = np.arange(len(y)) if seen else train
    record: dict[str, Any] = {}
    for method in GENE_METHODS:
        fitted, started = selector(method), time.perf_counter()
        subsets = columns_of(fitted, X[rows], y[rows], [size for size, _ in numbers[method].values()])
        selecting = time.perf_counter() - started
        if method == "EFS":
            record["threshold"] = fitted.threshold_
        for columns, (classifier, (_, trees)) in zip(subsets, numbers[method].items(), strict=True):
            started = time.perf_counter()
            model = classifier_of(classifier, trees, model_seed).fit(X[train][:, columns], y[train])
            training = time.perf_counter() - started
            accuracy = float(np.mean(model.predict(X[test][:, columns]) == y[test]))
            record[f"{method} {classifier}"] = [accuracy, len(columns), trees, selecting, training]
    return record


def classifier_of(name: str, trees: int, seed: int) -> Any:
    model = RandomForestClassifier(trees) if name == "RF" else DecisionTreeClassifier()
    return model.set_params(random_state=seed)


def columns_of(selector: Any, X: Floats, y: NDArray[Any], sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """The features selected at each size; all of them without a selector, CFS's own number whatever the size."""
    if selector is None or isinstance(selector, CFS):
        sizes = [X.shape[1]] * len(sizes)
    return [np.arange(X.shape[1])] * len(sizes) if selector is None else select(selector, X, y, sizes)


def choose(
    X: Floats, y: NDArray[Any], settings: Settings, seed: int, seen: tuple[Floats, NDArray[Any]] | None = None
) -> dict[str, dict[str, tuple[int, int]]]:
    """Number of features and of trees for every method and classifier, by cross-validation on these rows.

    Features are selected on the folds' training rows, or once on those ``seen``.
    """
    by_size: dict[str, list[Any]] = {method: [] for method in GENE_METHODS}
    folds = list(StratifiedKFold(settings.folds, shuffle=True, random_state=seed).split(X, y))
    for method in GENE_METHODS:
        sizes = settings.sizes[:1] if method in ("Full Space", "CFS") else settings.sizes
        once = None if seen is None else columns_of(selector(method), *seen, sizes)
        for train, test in folds:
            subsets = once or columns_of(selector(method), X[train], y[train], sizes)
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
    found = [trial["threshold"] for trial in trials]
    scaled = ("Table 1", "threshold, entropies in log10 over ln kappa", name)
    return {("Table 1", "threshold", name): found, scaled: [IN_LOG10 * value for value in found]}


def table_3(name: str, trials: Sequence[Mapping[str, Any]]) -> dict[Place, list[float]]:
    found: dict[Place, list[float]] = {}
    for method in GENE_METHODS:
        for classifier in ("RF", "CART"):
            accuracy, size, trees, selecting, training = np.array(
                [trial[f"{method} {classifier}"] for trial in trials]
            ).T
            columns = {"accuracy": 100 * accuracy, "features": size, "trees": trees, "seconds": selecting + training}
            columns |= {"seconds of selection": selecting, "seconds of training": training}
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
        f"{listed(means, '.2f')}; {'; '.join(steps)} (mean, standard error)",
        "section 5.4, table 3",
        f"{len(trials)} trials",
    )


def _error(differences: Floats) -> str:
    return f" ± {differences.std(ddof=1) / np.sqrt(len(differences)):.2f}" if len(differences) > 1 else ""


def forest_is_ahead(name: str, trials: Sequence[Mapping[str, Any]]) -> Claim:
    lead = {
        method: 100 * float(np.mean([trial[f"{method} RF"][0] - trial[f"{method} CART"][0] for trial in trials]))
        for method in METHODS
    }
    text = f"{name}: random forests are ahead of CART with every method"
    return ahead(text, lead, "section 5.4, table 3", f"{len(trials)} trials")


def _mean(trials: Sequence[Mapping[str, Any]], key: str, place: int) -> float:
    return float(np.mean([trial[key][place] for trial in trials]))


def efficiency(name: str, trials: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """How many times as long all genes take to train on as EFS takes, training alone and with selection."""
    claims = []
    for classifier in ("RF", "CART"):
        whole = _mean(trials, f"Full Space {classifier}", 4)
        selecting, training = (_mean(trials, f"EFS {classifier}", place) for place in (3, 4))
        ours = f"all genes {whole:.4f} s; EFS: selection {selecting:.4f} s, training {training:.4f} s: "
        ours += f"{whole / training:.1f} times for training alone, {whole / (selecting + training):.2f} with selection"
        text = f"{name}, {classifier}: EFS improves the efficiency by at least two orders of magnitude"
        claims.append(Claim(text, whole >= 100 * (selecting + training), ours, "section 5.4", f"{len(trials)} trials"))
    return claims


def _lead(trials: Sequence[Mapping[str, Any]], first: str, second: str, classifier: str) -> Floats:
    return 100 * np.array([trial[f"{first} {classifier}"][0] - trial[f"{second} {classifier}"][0] for trial in trials])


def _leads(name: str, trials: Sequence[Mapping[str, Any]], first: str, second: str) -> tuple[list[float], str]:
    leads = {classifier: _lead(trials, first, second, classifier) for classifier in ("RF", "CART")}
    words = ", ".join(f"{classifier} {lead.mean():+.2f}{_error(lead)}" for classifier, lead in leads.items())
    return [float(lead.mean()) for lead in leads.values()], words


def gain_against_uncertainty(name: str, trials: Sequence[Mapping[str, Any]]) -> Claim:
    means, words = _leads(name, trials, "DFE", BY_UNCERTAINTY)
    text = f"{name}: balanced gain consistently outperforms symmetrical uncertainty"
    ours = f"DFE less ranking by uncertainty, points: {words}"
    return Claim(text, min(means) > 0, ours, "section 3.1", f"{len(trials)} trials; the same cut points")


def greedy_against_optimal(name: str, trials: Sequence[Mapping[str, Any]]) -> Claim:
    means, words = _leads(name, trials, "EFS", GREEDY)
    text = f"{name} (ours): optimal cut points, the default, do no worse than the greedy ones of algorithm 1"
    return Claim(text, min(means) >= 0, f"optimal less greedy, points: {words}", "algorithm 1", f"{len(trials)} trials")


def seen_or_not(trials: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Claim]:
    """Whether the published accuracy of EFS is nearer where the selectors saw the test rows."""
    known, claims = {each.place: each.value for each in published(NAME)}, []
    for name in ("Leukemia", "Lymphoma"):
        if not {name, name + SEEN} <= set(trials):
            continue
        words, nearer = [], []
        for method in ("EFS", "DFE", "CFS"):
            goal = known["Table 3", f"{name} {method}", "RF accuracy"]
            apart, seen = (100 * _mean(trials[which], f"{method} RF", 0) for which in (name, name + SEEN))
            sizes = [_mean(trials[which], f"{method} RF", 1) for which in (name, name + SEEN)]
            few, many = (f"{size:.0f}" for size in sizes)
            words.append(f"{method} published {goal:g}, {apart:.2f} without ({few} genes), {seen:.2f} with ({many})")
            nearer.append(abs(seen - goal) < abs(apart - goal))
        text = f"{name} (ours): the forest's published accuracies are those of selectors that saw the test rows"
        claims.append(Claim(text, all(nearer), "; ".join(words), "table 3", f"{len(trials[name + SEEN])} trials"))
    return claims


def thresholds(trials: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Claim]:
    known = {each.column: each.value for each in published(NAME) if each.where == "Table 1"}
    ratios = {
        name: known[name] / (IN_LOG10 * float(np.mean([trial["threshold"] for trial in trials[name]])))
        for name in ("Leukemia", "Lymphoma")
        if name in trials
    }
    text = "Table 1 (ours): epsilon has entropies by log10 over ln kappa, 0.434 times eq. 5 (here: within 5 %)"
    holds = all(abs(ratio - 1) < 0.05 for ratio in ratios.values())
    ours = "published over ours so scaled: " + listed(ratios, ".3f")
    return [Claim(text, holds, ours, "section 5.2, table 1", "the 900th largest balanced gain")] if ratios else []


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


def apart_claims(tables: Mapping[Place, Sequence[float]]) -> list[Claim]:
    found = {place[2]: values for place, values in tables.items() if place[1].endswith("scaled apart")}
    if not found:
        return []
    ours = "; ".join(f"{name} {min(values):.2f} to {max(values):.2f}" for name, values in found.items())
    one_class = (58.82, 41.18)
    holds = all(min(abs(value - each) for each in one_class) < 0.01 for values in found.values() for value in values)
    text = "Leukemia (ours): all genes' 58.82 and 41.18 are one class for every patient, as of a test part scaled apart"
    return [Claim(text, holds, ours, "table 3", "5 forests of 30 trees, 5 trees")]


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
    """Features of the last round, seconds of a round and of its selection, precision and that of new rows by round.

    Means over queries.
    """
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
    seconds = [float(found.mean_seconds.mean()), float(found.selection_seconds.mean())]
    new = np.nanmean(found.new_precision, axis=1)
    return [found.mean_n_features[-1], *seconds, *found.mean_precision.tolist(), *new.tolist()]


def table_2(name: str, found: Found) -> dict[Place, list[float]]:
    table: dict[Place, list[float]] = {}
    for (method, classifier), rows in found.items():
        features, seconds, selecting, *rounds = np.array(rows).T
        rounds, new = rounds[: ROUNDS + 1], rounds[ROUNDS + 1 :]
        columns = {
            "precision": 100 * rounds[-1],
            "features": features,
            "seconds": seconds,
            "seconds of selection": selecting,
            "mean precision": 100 * np.mean(rounds, axis=0),
            "new precision": 100 * np.mean(new, axis=0),
        }
        for column, values in columns.items():
            table["Table 2", f"{name} {method}", f"{classifier} {column}"] = values.tolist()
    return table


def order_in_feedback(name: str, found: Found) -> list[Claim]:
    """EFS has the highest precision, and the forest a higher one than CART: at the end, and over all rounds."""
    table = {place[1:]: float(np.mean(values)) for place, values in table_2(name, found).items()}
    claims = []
    for column, when in (
        ("precision", "after the last round"),
        ("mean precision", "mean over rounds"),
        ("new precision", "of rows not labelled yet, mean over rounds"),
    ):
        forest, cart = (
            {method: table[f"{name} {method}", f"{classifier} {column}"] for method in METHODS}
            for classifier in ("ARF", "CART")
        )
        for classifier, mean in (("ARF", forest), ("CART", cart)):
            text = f"{name}, {classifier}: EFS has the highest precision, {when}"
            claims.append(Claim(text, mean["EFS"] >= max(mean.values()), listed(mean, ".2f"), *_place(found)))
        lead = {method: forest[method] - cart[method] for method in METHODS}
        claims.append(ahead(f"{name}: the adaptive forest is ahead of CART, {when}", lead, *_place(found)))
    return claims


def _place(found: Found) -> tuple[str, str]:
    return "section 5.3, table 2", f"{len(next(iter(found.values())))} repetitions; other images"


def feedback_times(name: str, found: Found) -> list[Claim]:
    """EFS halves the time of a round with the forest, and takes 40 % off CART's."""
    table = {place[1:]: float(np.mean(values)) for place, values in table_2(name, found).items()}
    claims = []
    for classifier, share, words in (("ARF", 0.5, "doubles the efficiency"), ("CART", 1 / 1.4, "is 40 % faster")):
        whole, mine = (table[f"{name} {method}", f"{classifier} seconds"] for method in ("Full Space", "EFS"))
        selecting = table[f"{name} EFS", f"{classifier} seconds of selection"]
        ours = f"a round: all features {whole:.4f} s; EFS {mine:.4f} s, {selecting:.4f} of it selection, "
        ours += f"{mine - selecting:.4f} training and ranking"
        text = f"{name}, {classifier}: with EFS a round of feedback {words}"
        claims.append(Claim(text, mine <= share * whole, ours, *_place(found)))
    return claims


# ---- figure 3: forests of feedback


def figure_3(name: str, reproduction: Reproduction) -> dict[str, list[float]]:
    """Precision and seconds of a round, by number of trees, all features; 60 trees of a regular forest beside them."""
    source, settings, seed = reproduction.data(IMAGES[name]), reproduction.settings, reproduction.seed
    X, y = minmax_scale(np.asarray(source.X, dtype=np.float64)), source.y
    found = reproduction.conduct(
        f"figure-3-{IMAGES[name]}",
        partial(forest_search, X, y, settings.queries, seed),
        [(trees, repetition) for trees in (*settings.forests, 0) for repetition in range(settings.forest_repeats)],
        {"data": fingerprint(X), "target": fingerprint(y), "seed": seed, "queries": settings.queries},
        "figure 3, searches",
    )
    table: dict[str, list[float]] = {}
    for (trees, _), (precision, new, seconds) in found.items():
        forest = f"{trees} trees" if trees else "60 trees, regular"
        for column, value in (("precision", 100 * precision), ("new precision", 100 * new), ("seconds", seconds)):
            table.setdefault(f"{forest}, {column}", []).append(value)
    return table


def forest_search(
    X: Floats, y: NDArray[Any], n_queries: int | None, seed: int, unit: tuple[int, int]
) -> tuple[float, float, float]:
    """Mean precision over rounds, that of new rows, and seconds of a round; 0 trees: a regular forest of 60."""
    trees, repetition = unit
    forest = AdaptiveRandomForestClassifier(trees) if trees else RandomForestClassifier(60)
    found = relevance_feedback(
        X,
        y,
        forest,
        initial=INITIAL,
        rounds=ROUNDS,
        returned=RETURNED,
        queries=np.unique(y)[:n_queries],
        random_state=np.random.RandomState([seed, repetition]),
    )
    return float(found.precision.mean()), float(np.nanmean(found.new_precision)), float(found.seconds.mean())


def figure_3_claims(name: str, forests: Mapping[str, Sequence[float]]) -> list[Claim]:
    mean = {key: float(np.mean(values)) for key, values in forests.items()}
    by_trees = {key.split()[0]: value for key, value in mean.items() if key.endswith("trees, new precision")}
    fewer = max(value for trees, value in by_trees.items() if int(trees) < 60)
    more = max(value for trees, value in by_trees.items() if int(trees) > 60)
    adaptive, regular = mean["60 trees, seconds"], mean["60 trees, regular, seconds"]
    evidence = f"{len(next(iter(forests.values())))} repetitions, all features; other images"
    return [
        Claim(
            f"{name}: a forest of 60 trees is nearly optimal: better than fewer, as good as 120 (here: within a point)",
            by_trees["60"] >= fewer and by_trees["60"] >= more - 1,
            f"precision of rows not labelled yet, by trees: {listed(by_trees, '.2f')}",
            "section 5.3, figure 3",
            evidence,
        ),
        Claim(
            f"{name}: the adaptive forest is 2 to 3 times faster than a regular one",
            2 * adaptive <= regular,
            f"a round, 60 trees: adaptive {adaptive:.4f} s, regular {regular:.4f} s; precision of rows not labelled "
            f"yet {by_trees['60']:.2f}, {mean['60 trees, regular, new precision']:.2f}",
            "section 2.3",
            evidence,
        ),
    ]


def precision_by_round(name: str, found: Found) -> list[Panel]:
    """A panel for each classifier."""
    rounds, panels = list(range(ROUNDS + 1)), []
    for classifier in ("ARF", "CART"):
        means = {method: 100 * np.mean(found[method, classifier], axis=0)[3 : ROUNDS + 4] for method in METHODS}
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
                "section 5.2, figure 2",
                "Leukemia's official split, 120 trees",
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
