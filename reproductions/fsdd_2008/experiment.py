"""Liang, Yang, Winstanley 2008: FSDD against mRMR-MID and ReliefF on eight data sets with four classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from probewise.engine.fingerprints import fingerprint
from probewise.executors import one_blas_thread
from probewise.filters.fsdd import FSDD
from probewise.study import Trials, select

from ..base import Outcome, Place, averaged, cells, published
from ..pictures import Line, Panel, Picture
from ..work import Reproduction, least_seconds
from .claims import BETAS, MFEAT, NAME, READINGS, TIMED, claims, curve
from .data import BENCHES, METHODS, OVERLAP, Bench, by_overlap, classifiers, pruned, selectors, table_of
from .properties import growth, properties
from .readings import distances, of_mfeat
from .remarks import remarks

TITLE = "Invariant optimal feature selection: a distance discriminant and feature ranking based solution"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """How much is done: repetitions of cross-validation, and every how many sizes of the figures."""

    repeats: int
    figure_repeats: int
    figure_step: int
    benches: tuple[str, ...] = tuple(bench.name for bench in BENCHES)
    readings: bool = True  # whether other readings of mRMR-MID are tried
    pruned_repeats: int = 1  # repetitions with the pruned tree, on tables; one on figures, every fifth size

    def repetitions(self, bench: Bench) -> int:
        return self.figure_repeats if bench.is_figure else self.repeats

    def sizes(self, bench: Bench, step: int | None = None) -> tuple[int, ...]:
        """Every figure_step-th size of a figure, and 1."""
        if not bench.is_figure:
            return bench.sizes
        return tuple(size for size in bench.sizes if size == 1 or size % (step or self.figure_step) == 0)


PROFILES = {"quick": Settings(5, 1, 5), "full": Settings(10, 1, 1, pruned_repeats=2)}


@dataclass(frozen=True)
class Folds(Trials):
    """Trials whose splits are the folds of cross-validation, repeated: trial = repetition * n_folds + fold."""

    n_folds: int = 10

    def split(self, y: NDArray[Any], trial: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        repetition, fold = divmod(trial, self.n_folds)
        seed = self._seeds(repetition)["split"]
        folds = StratifiedKFold(self.n_folds, shuffle=True, random_state=seed).split(y, y)
        return next(rows for number, rows in enumerate(folds) if number == fold)


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
    for bench in benches:
        ours |= remarked(bench, *tables[bench.name], reproduction) | aside(bench, *tables[bench.name], reproduction)
    return Outcome(
        cells(NAME, ours, notes),
        claims(ours),
        pictures=[picture(bench, ours) for bench in benches if bench.is_figure],
    )


# ---- accuracy


def accuracies(bench: Bench, X: Floats, y: NDArray[Any], reproduction: Reproduction) -> dict[Place, list[float]]:
    """Percent of rows classified rightly, a number for each repetition of the cross-validation."""
    settings = reproduction.settings
    sizes, repetitions = settings.sizes(bench), settings.repetitions(bench)
    rare = min(1, settings.pruned_repeats) if bench.is_figure else settings.pruned_repeats
    found: dict[Place, list[float]] = {}
    for part, compared, judges, at, times in (
        ("", selectors(bench.name), classifiers(), sizes, repetitions),
        ("-overlap", by_overlap(), classifiers(), sizes, repetitions),
        ("-pruned", selectors(bench.name), pruned(), settings.sizes(bench, 5), rare),
    ):
        trials = Folds(compared, judges, np.array(at), 0.5, reproduction.seed, n_folds=bench.folds)
        found |= cross_validated(bench, f"{bench.file}{part}", trials, X, y, times, reproduction)
    return found


def cross_validated(
    bench: Bench, name: str, trials: Folds, X: Floats, y: NDArray[Any], repetitions: int, reproduction: Reproduction
) -> dict[Place, list[float]]:
    folds = reproduction.conduct(
        name,
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
        for method in trials.selectors
        for place, size in enumerate(trials.sizes)
        if repetitions
    }


def fold_record(trials: Folds, X: Floats, y: NDArray[Any], trial: int) -> dict[str, Any]:
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


# ---- seconds, properties, and other readings


def aside(bench: Bench, X: Floats, y: NDArray[Any], reproduction: Reproduction) -> dict[Place, float]:
    """Experiments without repetitions: table 2, properties of sections 2 to 4, other readings of mRMR and Mfeat."""
    found = reproduction.conduct(
        f"{bench.file}-aside",
        partial(aside_record, bench, X, y, reproduction.settings.readings),
        [reproduction.seed],
        {"data": fingerprint(X), "target": fingerprint(y), "readings": reproduction.settings.readings},
        f"{bench.name}, aside",
    )
    return {tuple(place): value for place, value in found[reproduction.seed]}


def aside_record(
    bench: Bench, X: Floats, y: NDArray[Any], readings: bool, seed: int
) -> list[tuple[tuple[str, str, str], float]]:
    found = properties(bench.name, X, y)
    if bench.name in TIMED:
        found |= seconds(bench.name, X, y) | growth(bench.name, X, y)
    if bench.name == "Iris":
        found |= orders(X, y)
    return list((found | (other_readings(bench, X, y, seed) if readings else {})).items())


def remarked(bench: Bench, X: Floats, y: NDArray[Any], reproduction: Reproduction) -> dict[Place, float]:
    """Numbers for the paper's remarks outside its tables."""
    found = reproduction.conduct(
        f"{bench.file}-remarks",
        partial(remarks_record, bench, X, y),
        [reproduction.seed],
        {"data": fingerprint(X), "target": fingerprint(y)},
        f"{bench.name}, remarks",
    )
    return {tuple(place): value for place, value in found[reproduction.seed]}


def remarks_record(bench: Bench, X: Floats, y: NDArray[Any], seed: int) -> list[tuple[tuple[str, str, str], float]]:
    return list(remarks(bench, X, y, seed).items())


def seconds(bench: str, X: Floats, y: NDArray[Any]) -> dict[Place, float]:
    """Table 2: how long each method takes on all rows."""
    found: dict[Place, float] = {("Table 2", "Features required", bench): TIMED[bench]}
    for method in METHODS:
        selector = selectors(bench)[method]
        if method == "ReliefF":
            selector.set_params(random_state=0)
        with one_blas_thread():
            work = partial(select, selector, X, y, [TIMED[bench]])
            work()  # may wait for a kernel to be compiled
            found["Table 2", method, bench] = least_seconds(work)
    return found


def orders(X: Floats, y: NDArray[Any]) -> dict[Place, float]:
    """Section 4: the order of Iris' features, from 1, for each beta."""
    found: dict[Place, float] = {}
    for beta in BETAS:
        order = np.argsort(FSDD(beta=beta).fit(X, y).ranking_) + 1
        found |= {("Section 4", f"Iris, beta {beta:g}", str(k)): float(f) for k, f in enumerate(order, start=1)}
    return found


def other_readings(bench: Bench, X: Floats, y: NDArray[Any], seed: int) -> dict[Place, float]:
    """Where ours are furthest from the published: mRMR-MID read otherwise, and Mfeat's 1-NN."""
    if bench.name == "Mfeat":
        plain = KNeighborsClassifier(1)
        return {(MFEAT, row, "accuracy"): value for row, value in of_mfeat(X, y, plain, 10, seed).items()}
    if bench.is_figure:
        return {}
    known = {each.place: each.value for each in published(NAME)}
    models = {name: model for name, model in classifiers().items() if name in ("KNN", "NB")}
    apart = distances(bench, X, y, models, known, seed)
    return {(READINGS, reading, bench.name): value for reading, value in apart.items()}


# ---- what comes of it


def picture(bench: Bench, ours: Mapping[Place, float]) -> Picture:
    """Accuracy by number of features, a panel for each classifier."""
    known = {each.place: each.value for each in published(NAME) if each.where == bench.where}
    panels = []
    for classifier in classifiers():
        lines = [Line(method, *curve(ours, bench.where, f"{classifier} {method}")) for method in (*METHODS, OVERLAP)]
        points = {method: curve(known, bench.where, f"{classifier} {method}") for method in METHODS}
        lines += [Line(f"{method}, published", x, y, published=True) for method, (x, y) in points.items() if x]
        panels.append(Panel(f"{bench.name}, {classifier}", "number of features", "accuracy (%)", lines))
    return Picture(bench.where, panels)
