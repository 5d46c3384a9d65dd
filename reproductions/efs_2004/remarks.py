"""Wu, Zhang 2004: what the paper says of its data, its measures and its numbers of features beside the tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import minmax_scale
from sklearn.tree import DecisionTreeClassifier

from probewise.engine.fingerprints import fingerprint
from probewise.feedback import relevance_feedback
from probewise.filters.dfe import DFE
from probewise.filters.efs import EFS
from probewise.forest import AdaptiveRandomForestClassifier
from probewise.information import balanced_gain, extended_balanced_gain, mutual_information, symmetrical_uncertainty

from ..base import Claim, Place, listed
from ..work import Reproduction, least_seconds
from .feedback import IMAGES, INITIAL, RETURNED, ROUNDS, asked
from .genes import GENES, THRESHOLD, one_split

Floats = NDArray[np.float64]
Counted = Mapping[str, Any]
DATA, BY_NUMBER = "Section 5.1", "Table 2, by number of features"
PAPERS_NUMBER = 20
LEVELS, DRAWS = (2, 4, 8, 16), 2000
FIRST = 20
LONGER = (20, 40, 80)


# ---- section 5.1: the data


def of_data(reproduction: Reproduction) -> dict[Place, float]:
    """Counts that the paper gives for its gene sets, repeated."""
    found: dict[Place, float] = {}
    names = {"Leukemia": ("ALL", "AML"), "Lymphoma": ("normal", "cancerous")}
    for name, classes in names.items():
        if name not in reproduction.settings.repeats:
            continue
        source = reproduction.data(GENES[name])
        train, test = one_split(name, source, reproduction.seed)
        found[DATA, name, "samples"], found[DATA, name, "genes"] = source.X.shape
        for label, word in zip(np.unique(source.y), classes, strict=True):
            parts = {"": source.y, "training, ": source.y[train], "test, ": source.y[test]}
            found |= {(DATA, name, f"{part}{word}"): int(np.sum(y == label)) for part, y in parts.items()}
    return found


def data_claims(ours: Mapping[Place, float]) -> list[Claim]:
    if (DATA, "Leukemia", "ALL") not in ours:
        return []
    all_, aml = (int(ours[DATA, "Leukemia", word]) for word in ("ALL", "AML"))
    words = f"{aml} AML and {all_} ALL, as the paper's counts of both parts say (27 and 20 ALL, 11 and 14 AML)"
    return [Claim("Leukemia: 47 patients have AML and 25 ALL", (aml, all_) == (47, 25), words, DATA.lower(), "labels")]


# ---- sections 2.2 to 4: the measures


def measured(reproduction: Reproduction) -> dict[str, Counted]:
    """Properties of the measures on the features of each gene set's training part, and on noise features."""
    found = {}
    for name in ("Leukemia", "Lymphoma"):
        if name not in reproduction.settings.repeats:
            continue
        source, seed = reproduction.data(GENES[name]), reproduction.seed
        train, _ = one_split(name, source, seed)
        X, y = np.ascontiguousarray(source.X[train], dtype=np.float64), source.y[train]
        header = {"data": fingerprint(X), "target": fingerprint(y)}
        work = partial(measures, X, y)
        found[name] = reproduction.conduct(f"measures-{GENES[name]}", work, [seed], header, f"{name}, measures")[seed]
    return found


def measures(X: Floats, y: NDArray[Any], seed: int) -> dict[str, Any]:
    size = min(FIRST, X.shape[1] // 2)
    efs, dfe = EFS(size, threshold=THRESHOLD).fit(X, y), DFE(size).fit(X, y)
    codes = np.column_stack([np.searchsorted(dfe.cut_points_[k], X[:, k]) for k in range(X.shape[1])])
    taken = {"EFS": efs.order_[:size], "DFE": np.argsort(dfe.ranking_)[:size]}
    known = efs.redundancy_[np.isfinite(efs.redundancy_)]
    return {
        "likeness": {method: mean_likeness(codes[:, columns]) for method, columns in taken.items()},
        "gain": {method: float(dfe.scores_[columns].mean()) for method, columns in taken.items()},
        "normalised": [float(known.min()), float(known.max())],
        "of noise": of_noise(y, seed),
        "seconds by features to select": seconds_by_size(X, y),
        "seconds by rows": seconds_by_rows(X, y, seed),
        "seconds by threshold": [
            seconds_of(EFS(size, threshold=each, normalize=None), X, y) for each in (THRESHOLD, 0.0)
        ],
    }


def mean_likeness(codes: NDArray[np.int64]) -> float:
    """Mean of eq. 9 over all pairs."""
    n = codes.shape[1]
    return float(np.mean([extended_balanced_gain(codes[:, i], codes[:, j]) for i in range(n) for j in range(i)]))


def of_noise(y: NDArray[Any], seed: int) -> dict[str, list[float]]:
    """Information on the class, balanced gain and symmetrical uncertainty of noise, by its number of values: means."""
    random, target = np.random.default_rng(seed), np.unique(y, return_inverse=True)[1]
    tables = [random.integers(0, levels, (len(y), DRAWS)) for levels in LEVELS]
    judged: dict[str, Callable[[Any], Any]] = {
        "mutual information": partial(mutual_information, target),
        "balanced gain": lambda table: balanced_gain(table, target),
        "symmetrical uncertainty": partial(symmetrical_uncertainty, target),
    }
    return {name: [float(np.mean(judge(table))) for table in tables] for name, judge in judged.items()}


def seconds_of(selector: Any, X: Floats, y: NDArray[Any]) -> float:
    """The processor's, the best of three."""
    return least_seconds(partial(selector.fit, X, y), time.process_time)


def seconds_by_size(X: Floats, y: NDArray[Any]) -> list[float]:
    """Run time of algorithm 1 by number of features to select."""
    sizes = [min(size, X.shape[1]) for size in LONGER]
    return [seconds_of(EFS(size, threshold=THRESHOLD, normalize=None), X, y) for size in sizes]


def seconds_by_rows(X: Floats, y: NDArray[Any], seed: int) -> list[float]:
    """Run time of greedy cut points, for 20, 40 and 80 noisy copies of the rows."""
    random, found = np.random.default_rng(seed), []
    spread = X.std(axis=0) / 10
    for times in (20, 40, 80):
        rows = np.tile(np.arange(len(y)), times)
        table = X[rows, : 2**9] + random.standard_normal((len(rows), min(2**9, X.shape[1]))) * spread[: 2**9]
        found.append(seconds_of(DFE(discretization="greedy"), table, y[rows]))
    return found


def measure_claims(found: Mapping[str, Counted]) -> list[Claim]:
    return [claim for name, counted in found.items() for claim in _of_measures(name, counted)]


def _of_measures(name: str, counted: Counted) -> list[Claim]:
    like, gain, (low, high) = counted["likeness"], counted["gain"], counted["normalised"]
    place = f"{name}'s training part"
    noise = counted["of noise"]
    growth = {measure: values[-1] / values[0] for measure, values in noise.items()}
    by_size, by_rows = counted["seconds by features to select"], counted["seconds by rows"]
    rows = f"greedy cut points, {_seconds(by_rows)} for 1, 2 and 4 times the rows"
    shown = "; ".join(f"{measure} {', '.join(f'{v:.4f}' for v in values)}" for measure, values in noise.items())
    return [
        Claim(
            f"{name}: EFS selects uncorrelated features with large balanced gain (here: less alike than DFE's, at nine "
            "tenths of their gain)",
            like["EFS"] < like["DFE"] and gain["EFS"] >= 0.9 * gain["DFE"],
            f"mean of eq. 9 over pairs of the first {FIRST}: {listed(like, '.3f')}; mean balanced gain: "
            f"{listed(gain, '.3f')}",
            "abstract, sections 1 and 3.2",
            place,
        ),
        Claim(
            f"{name}: normalised correlations lie between 0 and 1",
            low >= 0 and high <= 1,
            f"of undetermined genes with those selected: {low:.3f} to {high:.3f}",
            "section 3.2, eq. 10",
            place,
        ),
        Claim(
            f"{name}: mutual information is biased for features of many values, kappa and symmetrical uncertainty "
            "balance that (here: from 2 to 16 values of noise it grows twice as much as they do)",
            all(growth["mutual information"] >= 2 * growth[each] for each in list(growth)[1:]),
            f"of noise with {', '.join(map(str, LEVELS))} values: {shown}",
            "sections 2.2 and 3.1",
            f"{place}, {DRAWS} features of noise",
        ),
        Claim(
            f"{name}: EFS takes O(M N log N + M* M): in proportion to the features to select, and little more to the "
            "rows (here: 4 times as many of either take at most 6 times as long)",
            by_size[-1] <= 6 * by_size[0] and by_rows[-1] <= 6 * by_rows[0],
            f"{_seconds(by_size)} for {', '.join(map(str, LONGER))} features; {rows}",
            "section 4",
            f"{place}; without the largest correlation of any two (eq. 10); seconds of one processor",
        ),
        Claim(
            f"{name}: the threshold at the 900th gain makes selection faster",
            counted["seconds by threshold"][0] < counted["seconds by threshold"][1],
            f"{_seconds(counted['seconds by threshold'])} with and without it, {FIRST} to select",
            "section 5.2",
            f"{place}; without the largest correlation of any two (eq. 10); seconds of one processor",
        ),
    ]


def _seconds(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f} s" for value in values)


# ---- section 5.3: how many features feedback needs


def by_number(name: str, reproduction: Reproduction) -> dict[tuple[str, str, int], list[float]]:
    """Precision of rows not labelled yet, a number for each repetition, ranked as the authors do."""
    source, settings, seed = reproduction.data(IMAGES[name]), reproduction.settings, reproduction.seed
    shuffled = np.random.default_rng(seed).permutation(len(source.y))
    X, y = minmax_scale(np.asarray(source.X, dtype=np.float64))[shuffled], source.y[shuffled]
    sizes = [size for size in settings.numbers if size <= X.shape[1]]
    compared = list(product(("EFS", "DFE"), ("ARF", "CART"), sizes))
    queries, repetitions = settings.queries[name], range(settings.number_repeats)
    found = reproduction.conduct(
        f"numbers-{IMAGES[name]}",
        partial(search, X, y, queries, seed),
        [(*each, repetition) for repetition in repetitions for each in compared],
        {"data": fingerprint(X), "target": fingerprint(y), "seed": seed, "queries": queries},
        f"{name}, numbers of features",
    )
    return {each: [found[(*each, repetition)] for repetition in repetitions] for each in compared}


def search(X: Floats, y: NDArray[Any], n_queries: int | None, seed: int, unit: tuple[str, str, int, int]) -> float:
    method, classifier, size, repetition = unit
    found = relevance_feedback(
        X,
        y,
        AdaptiveRandomForestClassifier() if classifier == "ARF" else DecisionTreeClassifier(),
        selector=EFS(size) if method == "EFS" else DFE(size),
        initial=INITIAL,
        rounds=ROUNDS,
        returned=RETURNED,
        queries=asked(y, n_queries, repetition),
        ranked_by="distance",
        random_state=np.random.RandomState([seed, repetition]),
    )
    return 100 * float(np.nanmean(found.new_precision))


def number_cells(name: str, found: Mapping[tuple[str, str, int], Sequence[float]]) -> dict[Place, Sequence[float]]:
    return {
        (BY_NUMBER, f"{name} {method}, {classifier}", f"{size} features"): values
        for (method, classifier, size), values in found.items()
    }


def number_claims(name: str, found: Mapping[tuple[str, str, int], Sequence[float]]) -> list[Claim]:
    """Whether 20 features of EFS are optimal, and how many more DFE needs."""
    if not found:
        return []
    mean = {each: float(np.mean(values)) for each, values in found.items()}
    repetitions = len(next(iter(found.values())))
    place = ("section 5.3, table 2", f"{repetitions} repetitions, nearest to the query first; other images")
    claims, needed = [], {}
    for classifier in ("ARF", "CART"):
        curves = {m: {s: v for (a, b, s), v in mean.items() if (a, b) == (m, classifier)} for m in ("EFS", "DFE")}
        for method, curve in curves.items():
            needed[f"{method}, {classifier}"] = min(s for s, v in curve.items() if v >= max(curve.values()) - 1)
        mine = curves["EFS"]
        words = "precision of rows not labelled yet, by number: " + "; ".join(
            f"{method} {listed({str(s): v for s, v in curve.items()}, '.2f')}" for method, curve in curves.items()
        )
        text = (
            f"{name}, {classifier}: optimal precision is reached with {PAPERS_NUMBER} features of EFS (here: within a "
        )
        text += "point of any number's)"
        claims.append(Claim(text, mine.get(PAPERS_NUMBER, -1.0) >= max(mine.values()) - 1, words, *place))
    holds = all(needed[f"DFE, {c}"] >= 1.5 * needed[f"EFS, {c}"] for c in ("ARF", "CART"))
    text = (
        f"{name}: DFE selects three times as many features as EFS, for CART half as many more (here: it needs half as "
    )
    text += "many more to come within a point of its best)"
    return [*claims, Claim(text, holds, "features needed: " + listed(needed, "d"), *place)]
