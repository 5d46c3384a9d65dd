"""Liang, Yang, Winstanley 2008: FSDD against mRMR-MID and ReliefF on eight data sets with four classifiers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from ..datasets import Dataset
from ..executors import one_blas_thread
from ..selectors.fsdd import FSDD
from ..selectors.mrmr import MRMR
from ..selectors.relieff import ReliefF
from ..study import Trials, select
from .base import Claim, Line, Outcome, Panel, Picture, Place, Reproduction, ahead, averaged, cells, listed, published
from .fsdd_2008_departures import comparable, distances, mfeat_claim, nearest_reading, of_mfeat

NAME = "fsdd-2008"
TITLE = "Invariant optimal feature selection: a distance discriminant and feature ranking based solution"

BETAS = (0.1, 1, 2, 5, 10, 20, 50, 100)
ORDER = (3, 4, 1, 2)
TIMED = {"Mfeat": 50, "Satimage": 36, "Spambase": 30}
ATTEMPTS = 3
MARGIN = 2.0
UP_TO = 8
METHODS = ("FSDD", "mrmrMID", "ReliefF")
COMPARABLE = {"Iris": 0, "Analcatdata": 5, "Vowel": 3}  # to ReliefF, from this number of features on; ahead up to it
READINGS = "mRMR-MID, distance from the published rows"
MFEAT = "Mfeat, 1-NN with 10 features of FSDD"


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


@dataclass(frozen=True)
class Settings:
    """How much is done: repetitions of cross-validation, and every how many sizes of the figures."""

    repeats: int
    figure_repeats: int
    figure_step: int
    benches: tuple[str, ...] = tuple(bench.name for bench in BENCHES)
    readings: bool = True  # whether other readings of mRMR-MID are tried

    def repetitions(self, bench: Bench) -> int:
        return self.figure_repeats if bench.is_figure else self.repeats

    def sizes(self, bench: Bench) -> tuple[int, ...]:
        """Every figure_step-th size of a figure, and 1."""
        if not bench.is_figure:
            return bench.sizes
        return tuple(size for size in bench.sizes if size == 1 or size % self.figure_step == 0)


PROFILES = {"quick": Settings(5, 1, 5), "full": Settings(20, 5, 1)}


@dataclass(frozen=True)
class Folds(Trials):
    """Trials whose splits are the folds of cross-validation, repeated: trial = repetition * n_folds + fold."""

    n_folds: int = 10

    def split(self, y: NDArray[Any], trial: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        repetition, fold = divmod(trial, self.n_folds)
        seed = self._seeds(repetition)["split"]
        folds = StratifiedKFold(self.n_folds, shuffle=True, random_state=seed).split(y, y)
        return next(rows for number, rows in enumerate(folds) if number == fold)


def selectors(bench: str) -> dict[str, Any]:
    """The three methods as in section 3.1: two levels for mRMR on Mfeat, three on the others."""
    levels = "mean" if bench == "Mfeat" else "sigma"
    return {"FSDD": FSDD(), "mrmrMID": MRMR(levels=levels), "ReliefF": ReliefF(n_neighbors=10, n_samples=10)}


def classifiers() -> dict[str, Any]:
    """The four classifiers of section 3.3."""
    return {
        "KNN": make_pipeline(_scaler(), KNeighborsClassifier(1)),
        "NB": make_pipeline(_scaler(), GaussianNB()),
        "DT": DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2),
        "SVM": make_pipeline(_scaler(), SVC(gamma="auto")),
    }


def _scaler() -> MinMaxScaler:
    return MinMaxScaler((-1, 1))


def table_of(bench: str, data: Dataset) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """X and y as the paper has them."""
    X, y = np.ascontiguousarray(data.X, dtype=np.float64), data.y
    if bench != "Spectrometer":
        return X, y
    y = y.astype(np.int64) // 10
    return X[y < 5], y[y < 5]


def run(reproduction: Reproduction) -> Outcome:
    """The paper's tables and figures."""
    benches = [bench for bench in BENCHES if bench.name in reproduction.settings.benches]
    tables = {bench.name: table_of(bench.name, reproduction.data(bench.file)) for bench in benches}
    ours: dict[Place, float] = {}
    notes: dict[Place, str] = {}
    for bench in benches:
        X, y = tables[bench.name]
        for column, number in (("attributes", X.shape[1]), ("instances", len(y)), ("classes", len(np.unique(y)))):
            ours["Table 1", bench.name, column] = number
        means, deviations = averaged(accuracies(bench, X, y, reproduction))
        ours |= means
        notes |= deviations
    for name in TIMED.keys() & tables.keys():
        ours |= seconds(name, *tables[name])
    if "Iris" in tables:
        ours |= orders(*tables["Iris"])
    if reproduction.settings.readings:
        ours |= other_readings({bench: tables[bench.name] for bench in benches}, reproduction.seed)
    pictures = [picture(bench, ours) for bench in benches if bench.is_figure]
    return Outcome(cells(NAME, ours, notes), claims(ours), pictures=pictures)


# ---- accuracy


def accuracies(
    bench: Bench, X: NDArray[np.float64], y: NDArray[Any], reproduction: Reproduction
) -> dict[Place, list[float]]:
    """Percent of rows classified rightly, a number for each repetition of the cross-validation."""
    sizes, repetitions = reproduction.settings.sizes(bench), reproduction.settings.repetitions(bench)
    trials = Folds(selectors(bench.name), classifiers(), np.array(sizes), 0.5, reproduction.seed, n_folds=bench.folds)
    folds = reproduction.conduct(
        bench.file,
        partial(fold_record, trials, X, y),
        range(repetitions * bench.folds),
        trials.settings(X, y) | {"folds": bench.folds},
        f"{bench.name}, folds",
    )
    return {
        (bench.where, f"{classifier} {method}", str(size)): [
            pooled(folds, repetition, bench.folds, method, classifier, place) for repetition in range(repetitions)
        ]
        for classifier in trials.classifiers
        for method in METHODS
        for place, size in enumerate(sizes)
    }


def fold_record(trials: Folds, X: NDArray[np.float64], y: NDArray[Any], trial: int) -> dict[str, Any]:
    """How many rows were tested, and the accuracy by method, classifier and size."""
    record, _ = trials(X, y, trial)
    accuracy = {method: found["accuracy"] for method, found in record["selectors"].items()}
    return {"n_test": len(trials.split(y, trial)[1]), "accuracy": accuracy}


def pooled(
    folds: Mapping[int, dict[str, Any]], repetition: int, n_folds: int, method: str, classifier: str, place: int
) -> float:
    """Percent over all rows of one cross-validation."""
    tested = [folds[trial] for trial in range(repetition * n_folds, (repetition + 1) * n_folds)]
    right = sum(fold["accuracy"][method][classifier][place] * fold["n_test"] for fold in tested)
    return 100 * right / sum(fold["n_test"] for fold in tested)


# ---- seconds and the order on Iris


def seconds(bench: str, X: NDArray[np.float64], y: NDArray[Any]) -> dict[Place, float]:
    """Table 2: how long each method takes on all rows."""
    found: dict[Place, float] = {("Table 2", "Features required", bench): TIMED[bench]}
    for method, selector in selectors(bench).items():
        if method == "ReliefF":
            selector.set_params(random_state=0)
        attempts = []
        for _ in range(ATTEMPTS + 1):  # the first one may wait for a kernel to be compiled
            started = time.perf_counter()
            with one_blas_thread():
                select(selector, X, y, [TIMED[bench]])
            attempts.append(time.perf_counter() - started)
        found["Table 2", method, bench] = min(attempts[1:])
    return found


def orders(X: NDArray[np.float64], y: NDArray[Any]) -> dict[Place, float]:
    """Section 4: the order of Iris' features, from 1, for each beta."""
    found: dict[Place, float] = {}
    for beta in BETAS:
        order = np.argsort(FSDD(beta=beta).fit(X, y).ranking_) + 1
        found |= {("Section 4", f"Iris, beta {beta:g}", str(k)): float(f) for k, f in enumerate(order, start=1)}
    return found


def other_readings(tables: Mapping[Bench, tuple[NDArray[np.float64], NDArray[Any]]], seed: int) -> dict[Place, float]:
    """Where ours are furthest from the published: mRMR-MID read otherwise, and Mfeat's 1-NN."""
    known = {each.place: each.value for each in published(NAME)}
    models = {name: model for name, model in classifiers().items() if name in ("KNN", "NB")}
    found: dict[Place, float] = {}
    for bench, (X, y) in tables.items():
        if not bench.is_figure:
            apart = distances(bench, X, y, models, known, seed)
            found |= {(READINGS, reading, bench.name): value for reading, value in apart.items()}
        if bench.name == "Mfeat":
            plain = KNeighborsClassifier(1)
            found |= {(MFEAT, row, "accuracy"): value for row, value in of_mfeat(X, y, plain, 10, seed).items()}
    return found


# ---- what comes of it


def picture(bench: Bench, ours: Mapping[Place, float]) -> Picture:
    """Accuracy by number of features, a panel for each classifier."""
    known = {each.place: each.value for each in published(NAME) if each.where == bench.where}
    panels = []
    for classifier in classifiers():
        lines = [Line(method, *curve(ours, bench.where, f"{classifier} {method}")) for method in METHODS]
        points = {method: curve(known, bench.where, f"{classifier} {method}") for method in METHODS}
        lines += [Line(f"{method}, published", x, y, published=True) for method, (x, y) in points.items() if x]
        panels.append(Panel(f"{bench.name}, {classifier}", "number of features", "accuracy (%)", lines))
    return Picture(bench.where, panels)


def curve(found: Mapping[Place, float], where: str, row: str) -> tuple[list[float], list[float]]:
    """Sizes and values of a row."""
    points = sorted((int(place[2]), value) for place, value in found.items() if place[:2] == (where, row))
    return [float(size) for size, _ in points], [value for _, value in points]


def claims(ours: Mapping[Place, float]) -> list[Claim]:
    """What the paper says of its tables, and whether it holds here."""
    found: list[Claim] = []
    if any(place[0] == "Section 4" for place in ours):
        found.append(order_on_iris(ours))
    if ("Table 3", "KNN FSDD", "1") in ours:
        found += [row_on_wine(ours), *(ahead_on_wine(ours, classifier) for classifier in classifiers())]
    found += [
        outperforms(ours, bench, method)
        for bench in BENCHES
        for method in METHODS[1:]
        if (bench.where, "KNN FSDD", "1") in ours
    ]
    if any(place[0] == "Table 2" for place in ours):
        found.append(fastest(ours))
    found += nearest_reading(ours, READINGS)
    by_scaling = {row: value for (where, row, _), value in ours.items() if where == MFEAT}
    known = {each.place: each.value for each in published(NAME)}
    return [*found, *([mfeat_claim(by_scaling, known["Figure 1", "KNN FSDD", "10"])] if by_scaling else [])]


def order_on_iris(ours: Mapping[Place, float]) -> Claim:
    given = {
        beta: tuple(int(ours["Section 4", f"Iris, beta {beta:g}", str(k)]) for k in range(1, len(ORDER) + 1))
        for beta in BETAS
    }
    other = {beta: order for beta, order in given.items() if order != ORDER}
    return Claim(
        "Iris: the order of features is 3, 4, 1, 2 for every beta from 0.1 to 100",
        not other,
        "; ".join(f"beta {beta:g}: {order}" for beta, order in other.items()) or "the same for all 8 values of beta",
        "section 4",
        "all rows",
    )


def row_on_wine(ours: Mapping[Place, float]) -> Claim:
    rows = [each for each in published(NAME) if each.where == "Table 3" and each.row == "KNN FSDD"]
    apart = {each.column: ours[each.place] - each.value for each in rows}
    worst = max(apart, key=lambda size: abs(apart[size]))
    return Claim(
        f"Wine: FSDD's row with 1-NN comes out within {MARGIN:g} points of the published one",
        abs(apart[worst]) <= MARGIN,
        f"furthest at size {worst}: {apart[worst]:+.2f}",
        "table 3",
        "means over repetitions",
    )


def ahead_on_wine(ours: Mapping[Place, float], classifier: str) -> Claim:
    lead = {
        size: ours["Table 3", f"{classifier} FSDD", str(size)] - ours["Table 3", f"{classifier} mrmrMID", str(size)]
        for size in range(1, UP_TO + 1)
    }
    return Claim(
        f"Wine, {classifier}: FSDD is ahead of mRMR-MID at every size to {UP_TO}",
        min(lead.values()) > 0,
        "lead by size: " + ", ".join(f"{value:+z.2f}" for value in lead.values()),
        "section 3.5, table 3",
        "means over repetitions",
    )


def outperforms(ours: Mapping[Place, float], bench: Bench, method: str) -> Claim:
    """As the paper says it: ahead; of ReliefF on three sets ahead with few features, if at all, and then comparable."""
    place = (f"section 3.5, {bench.where.lower()}", "mean over sizes below all features")
    if method != "ReliefF" or bench.name not in COMPARABLE:
        lead = {classifier: mean_lead(ours, bench.where, classifier, method) for classifier in classifiers()}
        return ahead(f"{bench.name}: FSDD is ahead of {method}", lead, *place)
    few = COMPARABLE[bench.name]
    later = {each: mean_lead(ours, bench.where, each, method, above=few) for each in classifiers()}
    holds, words = comparable(list(later.values()), MARGIN), listed(later)
    text = f"{bench.name}: FSDD is comparable to ReliefF (here: within {MARGIN:g} points)"
    if few:
        first = {each: mean_lead(ours, bench.where, each, method, upto=few) for each in classifiers()}
        holds, words = holds and min(first.values()) > 0, f"up to {few}: {listed(first)}; with more: {words}"
        text = (
            f"{bench.name}: FSDD is ahead of ReliefF with few features, comparable with more (here: within {MARGIN:g})"
        )
    return Claim(text, holds, words, *place)


def mean_lead(
    ours: Mapping[Place, float], where: str, classifier: str, method: str, *, above: int = 0, upto: float = np.inf
) -> float:
    """FSDD less the method, in points, over sizes in a range where the two can differ."""
    sizes, first = curve(ours, where, f"{classifier} FSDD")
    second = curve(ours, where, f"{classifier} {method}")[1]
    whole = next(ours["Table 1", bench.name, "attributes"] for bench in BENCHES if bench.where == where)
    apart = {size: a - b for size, a, b in zip(sizes, first, second, strict=True) if size < whole}
    return float(np.mean([lead for size, lead in apart.items() if above < size <= upto]))


def fastest(ours: Mapping[Place, float]) -> Claim:
    names = [name for name in TIMED if ("Table 2", "FSDD", name) in ours]
    times = {name: {method: ours["Table 2", method, name] for method in METHODS} for name in names}
    return Claim(
        "FSDD takes the least time of the three (Table 2)",
        all(each["FSDD"] == min(each.values()) for each in times.values()),
        "; ".join(
            f"{name}: " + ", ".join(f"{method} {value:.4f} s" for method, value in each.items())
            for name, each in times.items()
        ),
        "section 3.4, table 2",
        "one thread, the best of three",
    )
