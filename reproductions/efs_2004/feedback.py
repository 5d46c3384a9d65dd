"""Wu, Zhang 2004: table 2 and figure 3: relevance feedback on images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import minmax_scale
from sklearn.tree import DecisionTreeClassifier

from probewise.engine.fingerprints import fingerprint
from probewise.feedback import relevance_feedback
from probewise.filters.cfs import CFS
from probewise.filters.dfe import DFE
from probewise.filters.efs import EFS
from probewise.forest import AdaptiveRandomForestClassifier

from ..base import Claim, Place, ahead, listed
from ..pictures import Line, Panel, Picture
from ..work import Reproduction

METHODS = ("Full Space", "EFS", "DFE", "CFS")
IMAGES = {"MSRC-v1": "msrcv1", "COIL-20": "coil20", "Mfeat": "mfeat"}
DIMENSIONS = {("EFS", "ARF"): 20, ("EFS", "CART"): 20, ("DFE", "ARF"): 60, ("DFE", "CART"): 30}
INITIAL, ROUNDS, RETURNED = 5, 10, 20
RANKINGS = {"distance": "nearest to the query first", "score": "by score"}  # the authors' way first
COLUMNS = ("features", "seconds", "seconds of selection", "seconds of training")
PUBLISHED_LEAD = 30  # points, of the forest over CART

Floats = NDArray[np.float64]
Found = Mapping[tuple[str, str, str], Sequence[Sequence[float]]]  # by ranking, method and classifier
Table = Mapping[tuple[str, str, str], Mapping[str, float]]  # the same, means by column


# ---- table 2: relevance feedback


def feedback(name: str, reproduction: Reproduction) -> Found:
    """For every ranking, method and classifier a row for each repetition, as `search` gives it."""
    source, settings, seed = reproduction.data(IMAGES[name]), reproduction.settings, reproduction.seed
    shuffled = np.random.default_rng(seed).permutation(len(source.y))
    X, y = minmax_scale(np.asarray(source.X, dtype=np.float64))[shuffled], source.y[shuffled]
    repetitions, compared = range(settings.feedback_repeats), list(product(RANKINGS, METHODS, ("ARF", "CART")))
    queries = settings.queries[name]
    found = reproduction.conduct(
        f"feedback-{IMAGES[name]}",
        partial(search, X, y, queries, seed),
        [(*each, repetition) for repetition in repetitions for each in compared],
        {"data": fingerprint(X), "target": fingerprint(y), "seed": seed, "queries": queries},
        f"{name}, searches",
    )
    return {each: [found[(*each, repetition)] for repetition in repetitions] for each in compared}


def asked(y: NDArray[Any], n_queries: int | None, repetition: int) -> NDArray[Any]:
    """Classes to search for: all, or so many, others in each repetition, in turn."""
    classes = np.unique(y)
    return classes if n_queries is None else np.roll(classes, -repetition * n_queries)[:n_queries]


def search(
    X: Floats, y: NDArray[Any], n_queries: int | None, seed: int, unit: tuple[str, str, str, int]
) -> list[float]:
    """COLUMNS, features of the last round; then by round precision, and that of new rows: means over queries."""
    ranking, method, classifier, repetition = unit
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
        queries=asked(y, n_queries, repetition),
        ranked_by=ranking,
        random_state=np.random.RandomState([seed, repetition]),
    )
    parts = (found.seconds, found.selection_seconds, found.training_seconds)
    new = np.nanmean(found.new_precision, axis=1)
    means = [float(part.mean()) for part in parts]
    return [found.mean_n_features[-1], *means, *found.mean_precision.tolist(), *new.tolist()]


def table_2(name: str, found: Found) -> dict[Place, list[float]]:
    table: dict[Place, list[float]] = {}
    for (ranking, method, classifier), rows in found.items():
        for column, values in columns_of(rows).items():
            table["Table 2", f"{name} {method}, {RANKINGS[ranking]}", f"{classifier} {column}"] = values.tolist()
    return table


def columns_of(rows: Sequence[Sequence[float]]) -> dict[str, Floats]:
    """A number for each repetition."""
    first, rest = np.split(np.array(rows), [len(COLUMNS)], axis=1)
    precision, new = 100 * rest[:, : ROUNDS + 1], 100 * rest[:, ROUNDS + 1 :]
    return {
        "precision": precision[:, -1],
        **dict(zip(COLUMNS, first.T, strict=True)),
        "mean precision": precision.mean(axis=1),
        "new precision": new.mean(axis=1),
    }


def means_of(found: Found) -> Table:
    return {
        each: {column: float(values.mean()) for column, values in columns_of(rows).items()}
        for each, rows in found.items()
    }


def feedback_claims(name: str, found: Found) -> list[Claim]:
    """Claims of section 5.3 about table 2, for each ranking if about precision, else for the authors' ranking."""
    table, repetitions = means_of(found), len(next(iter(found.values())))
    place = ("section 5.3, table 2", f"{repetitions} repetitions; other images")
    claims = [claim for ranking in RANKINGS for claim in of_precision(name, table, ranking, *place)]
    return [*claims, *of_times(name, table, *place), *of_features(name, table, *place)]


def of_precision(name: str, table: Table, ranking: str, *place: str) -> list[Claim]:
    """EFS has the highest precision, the forest a higher one than CART: at the end, and of rows not labelled yet."""
    claims = []
    for column, when in (("precision", "after the last round"), ("new precision", "of rows not labelled yet")):
        means = {
            classifier: {method: table[ranking, method, classifier][column] for method in METHODS}
            for classifier in ("ARF", "CART")
        }
        how = f"{when}, {RANKINGS[ranking]}"
        for classifier, mean in means.items():
            text = f"{name}, {classifier}: EFS has the highest precision, {how}"
            claims.append(Claim(text, mean["EFS"] >= max(mean.values()), listed(mean, ".2f"), *place))
        lead = {method: means["ARF"][method] - means["CART"][method] for method in METHODS}
        text = f"{name}: the adaptive forest is ahead of CART (published: by {PUBLISHED_LEAD} points), {how}"
        claims.append(ahead(text, lead, *place))
    gain = {kind: mean["EFS"] - mean["Full Space"] for kind, mean in means.items()}
    text = f"{name}: EFS improves precision by 1 to 2 points, {how} (here: by 1 at least)"
    claims.append(Claim(text, min(gain.values()) >= 1, listed(gain), *place))
    nearly = means["ARF"]["Full Space"] >= max(means["ARF"].values()) - 1
    text = f"{name}: the forest's precision is nearly optimal with all features, {how} (here: within a point)"
    return [*claims, Claim(text, nearly, listed(means["ARF"], ".2f"), *place)]


def comparable_claims(name: str, found: Found) -> list[Claim]:
    """Claims that CFS and DFE are as precise as EFS, with more features."""
    table, claims = means_of(found), []
    for ranking, how in RANKINGS.items():
        lead = {
            f"{method}, {classifier}": table[ranking, "EFS", classifier]["new precision"]
            - table[ranking, method, classifier]["new precision"]
            for classifier in ("ARF", "CART")
            for method in ("DFE", "CFS")
        }
        text = f"{name}: CFS and DFE achieve comparable precision, of rows not labelled yet, {how} (here: within 2)"
        evidence = f"{len(next(iter(found.values())))} repetitions; other images"
        holds = max(map(abs, lead.values())) <= 2
        claims.append(Claim(text, holds, f"EFS less {listed(lead)}", "section 5.3, table 2", evidence))
    return claims


def of_times(name: str, table: Table, *place: str) -> list[Claim]:
    """EFS halves the time of a round with the forest, takes 40 % off CART's, and a third off that with CFS."""
    at = {(m, c): table["distance", m, c] for m in METHODS for c in ("ARF", "CART")}
    claims = []
    for classifier, times, words in (("ARF", 2.0, "doubles the efficiency"), ("CART", 1.4, "is 40 % faster")):
        text = f"{name}, {classifier}: with EFS a round of feedback {words}"
        holds = times * at["EFS", classifier]["seconds"] <= at["Full Space", classifier]["seconds"]
        claims.append(Claim(text, holds, apart(at, ("Full Space", "EFS"), classifier), *place))
    for classifier in ("ARF", "CART"):
        text = f"{name}, {classifier}: a round with EFS is 30 to 40 % faster than with CFS (here: by 20 % at least)"
        holds = 1.2 * at["EFS", classifier]["seconds"] <= at["CFS", classifier]["seconds"]
        claims.append(Claim(text, holds, apart(at, ("CFS", "EFS"), classifier), *place))
    selecting = {m: at[m, "ARF"]["seconds of selection"] for m in METHODS[1:]}
    text = f"{name}: DFE takes the least time to select"
    ours = ", ".join(f"{method} {seconds:.4f} s" for method, seconds in selecting.items())
    claims.append(Claim(text, selecting["DFE"] == min(selecting.values()), ours, *place))
    text = f"{name}, ARF: DFE, with its 60 features, is about 20 % slower than EFS and a point less precise"
    slower = at["DFE", "ARF"]["seconds"] >= 1.1 * at["EFS", "ARF"]["seconds"]
    less = at["EFS", "ARF"]["precision"] - at["DFE", "ARF"]["precision"]
    ours = f"{apart(at, ('DFE', 'EFS'), 'ARF')}; precision {-less:+.2f}"
    return [*claims, Claim(f"{text} (here: 10 % and half a point)", slower and less >= 0.5, ours, *place)]


def apart(at: Mapping[tuple[str, str], Mapping[str, float]], methods: Sequence[str], classifier: str) -> str:
    """The time of a round with each method, and what it goes to."""
    words = []
    for method in methods:
        whole, selecting, training = (at[method, classifier][column] for column in COLUMNS[1:])
        parts = f"selection {selecting:.4f}, training {training:.4f}, ranking {whole - selecting - training:.4f}"
        words.append(f"{method} {whole:.4f} s a round ({parts})")
    return "; ".join(words)


def of_features(name: str, table: Table, *place: str) -> list[Claim]:
    """How many features CFS selects; DFE's number is the paper's here."""
    chosen = {c: table["distance", "CFS", c]["features"] for c in ("ARF", "CART")}
    text = f"{name}: CFS selects three times as many features as EFS, 60 (here: 50 at least)"
    return [Claim(text, min(chosen.values()) >= 50, "CFS, last round: " + listed(chosen, ".1f"), *place)]


# ---- figure 3: forests of feedback


def figure_3(name: str, reproduction: Reproduction) -> dict[str, list[float]]:
    """Precision and seconds of a round, by number of trees, all features; 60 trees of a regular forest beside them."""
    source, settings, seed = reproduction.data(IMAGES[name]), reproduction.settings, reproduction.seed
    X, y, queries = minmax_scale(np.asarray(source.X, dtype=np.float64)), source.y, settings.queries[name]
    found = reproduction.conduct(
        f"figure-3-{IMAGES[name]}",
        partial(forest_search, X, y, queries, seed),
        [(trees, repetition) for trees in (*settings.forests, 0) for repetition in range(settings.forest_repeats)],
        {"data": fingerprint(X), "target": fingerprint(y), "seed": seed, "queries": queries},
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
        queries=asked(y, n_queries, repetition),
        random_state=np.random.RandomState([seed, repetition]),
    )
    return float(found.precision.mean()), float(np.nanmean(found.new_precision)), float(found.seconds.mean())


def figure_3_claims(name: str, forests: Mapping[str, Sequence[float]]) -> list[Claim]:
    mean = {key: float(np.mean(values)) for key, values in forests.items()}
    by_trees = curve(mean, "new precision")
    fewer = max(value for trees, value in by_trees.items() if trees < 60)
    more = max(value for trees, value in by_trees.items() if trees > 60)
    place = ("section 5.3, figure 3", f"{len(next(iter(forests.values())))} repetitions, all features; other images")
    seconds, precise = curve(mean, "seconds"), mean["60 trees, regular, new precision"]
    regular, most = mean["60 trees, regular, seconds"], max(seconds)
    words = f"precision of rows not labelled yet, by trees: {listed({str(k): v for k, v in by_trees.items()}, '.2f')}"
    return [
        Claim(
            f"{name}: a forest of 60 trees is nearly optimal: better than fewer, as good as 120 (here: within a point)",
            by_trees[60] >= fewer and by_trees[60] >= more - 1,
            words,
            *place,
        ),
        Claim(
            f"{name}: the forest's time grows with its number of trees (here: {most} trees take 1.5 to 2.5 times 60's)",
            1.5 <= seconds[most] / seconds[60] * 120 / most <= 2.5,
            "seconds a round, by trees: " + listed({str(k): v for k, v in seconds.items()}, ".3f"),
            *place,
        ),
        Claim(
            f"{name}: the adaptive forest is 2 to 3 times faster than a regular one",
            2 * seconds[60] <= regular,
            f"a round, 60 trees: adaptive {seconds[60]:.4f} s, regular {regular:.4f} s",
            "section 2.3",
            place[1],
        ),
        Claim(
            f"{name}: the adaptive forest retrieves as well as a regular one (here: within 2 points)",
            abs(by_trees[60] - precise) <= 2,
            f"precision of rows not labelled yet: adaptive {by_trees[60]:.2f}, regular {precise:.2f}",
            "section 2.3",
            place[1],
        ),
    ]


def curve(mean: Mapping[str, float], column: str) -> dict[int, float]:
    """A column of figure 3 by number of trees."""
    return {int(key.split()[0]): value for key, value in mean.items() if key.endswith(f"trees, {column}")}


def figure_3_picture(name: str, forests: Mapping[str, Sequence[float]]) -> Picture:
    mean = {key: float(np.mean(values)) for key, values in forests.items()}
    panels = []
    for column, axis in (("precision", "precision (%)"), ("new precision", "precision (%)"), ("seconds", "seconds")):
        points = curve(mean, column)
        lines = [Line("adaptive forest", list(points), list(points.values()))]
        title = {"new precision": "rows not labelled yet", "seconds": "a round"}.get(column, "all rows")
        panels.append(Panel(f"{name}, {title}", "number of trees", axis, lines))
    return Picture("Figure 3", panels)


def precision_by_round(name: str, found: Found) -> list[Panel]:
    """A panel for each classifier and kind of rows, ranked as the authors do."""
    rounds, panels = list(range(ROUNDS + 1)), []
    for classifier, (kind, start) in product(("ARF", "CART"), (("", 0), (", new rows", ROUNDS + 1))):
        lines = []
        for method in METHODS:
            mean = 100 * np.mean(found["distance", method, classifier], axis=0)[len(COLUMNS) :]
            lines.append(Line(method, rounds, mean[start : start + ROUNDS + 1].tolist()))
        panels.append(Panel(f"{name}, {classifier}{kind}", "rounds of feedback", "precision (%)", lines))
    return panels
