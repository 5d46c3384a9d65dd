"""Somol and Grim 2011: the numbers of its tables and figures, from what the experiments gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probewise.plots import save_study
from probewise.study import StudyResult, deviation

from ..base import Place, published
from ..pictures import Picture
from .claims import MEASURES, NAME, PROBES_A_MINUTE, Found, enough, hits_by_method, nearest
from .data import SETUPS

NOTES = {
    ("Section V", "time that suffices (Figure 6)"): "ours: the minutes there of the probes that were enough here",
    ("Section V", "accuracy gained by twice the time"): "ours: by twice the probes, in points, mean over sizes",
    ("Section V", "informative features"): "ours: features that correlate with another",
    ("Table II", "time limit"): "ours: minutes a split's DAF run took, on one core or a GPU",
}


def shape(name: str, X: Any, y: NDArray[Any]) -> dict[Place, float]:
    counts = np.unique(y, return_counts=True)[1]
    found: dict[Place, float] = {
        ("Table I", name, "features"): X.shape[1],
        ("Table I", name, "classes"): len(counts),
        ("Table I", name, "samples"): X.shape[0],
    }
    if name == "Reuters":
        found["Section V", name, "largest class"] = int(counts.max())
        found["Section V", name, "smallest class"] = int(counts.min())
    return found


def protocol(trials: int, found_here: Found) -> dict[Place, float]:
    """Table II, and what section V says of splits and times."""
    results = found_here.results
    found: dict[Place, float] = {
        ("Section V", "all sets", "random splits"): trials,
        ("Section V", "all sets", "training share"): 50,
        ("Section V", "all sets", "folds of J"): 3,
    }
    for name in found_here.runs:
        result, tau = results[name], min(SETUPS[name].tau, results[name].n_features)
        n_probes, held = (found_here.run_mean(name, column) for column in ("n_probes", "held"))
        minutes = dict(zip(result.selectors, result.seconds.mean(axis=0) / 60, strict=True))
        columns = (found_here.run_mean(name, "seconds") / 60, 1, tau, n_probes, held, n_probes - held)
        names = [each.column for each in published(NAME) if (each.where, each.row) == ("Table II", name)]
        found |= {("Table II", name, column): value for column, value in zip(names, columns, strict=True)}
        found["Table II", name, "splits"] = len(result.trials)
        found["Table II", name, "least probes with a feature"] = found_here.run_mean(name, "least held")
        found["Section V", name, "BIF takes at most"] = minutes["BIF"]
        if name == "Spambase":
            found["Section V", name, "SFFS takes"] = minutes["SFFS"]
        if name == "Madelon":
            found["Section V", name, "SFFS takes more than"] = minutes["SFFS"] / 1440
    if "Reuters twice" in results:
        once, twice = 100 * results["Reuters twice"].accuracy.mean(axis=(0, 2, 3))
        found["Section V", "Reuters", "accuracy gained by twice the time"] = twice - once
    if "Figure 6" in results:
        found["Section V", "Madelon", "largest probe of Figure 6"] = min(
            SETUPS["Madelon"].tau, results["Figure 6"].n_features
        )
        found["Section V", "Madelon", "time that suffices (Figure 6)"] = enough(results["Figure 6"]) / PROBES_A_MINUTE
    return found


def notes(ours: Mapping[Place, float]) -> dict[Place, str]:
    return {place: NOTES[place[0], place[2]] for place in ours if (place[0], place[2]) in NOTES}


def curves(results: Mapping[str, StudyResult]) -> dict[Place, float]:
    """Mean and deviation of accuracy, and stability, by number of features."""
    found: dict[Place, float] = {}
    for name, result in results.items():
        figure = f"Figure {SETUPS[name].figure}" if name in SETUPS else name
        means, deviations = result.accuracy.mean(axis=0), deviation(result.accuracy)
        for c, (letter, classifier) in enumerate(zip("ab", result.classifiers, strict=False)):
            where = f"{figure}{letter if name in SETUPS else ''}, accuracy of {classifier}, {_set(name)}"
            for s, selector in enumerate(result.selectors):
                found |= _by_size(where, selector, result.sizes, means[s, c])
                found |= _by_size(where, f"{selector}, deviation", result.sizes, deviations[s, c])
        if name in SETUPS:
            for letter, (measure, label) in MEASURES.items():
                for selector, values in zip(result.selectors, result.stability()[measure], strict=True):
                    found |= _by_size(f"{figure}{letter}, {label}, {name}", selector, result.sizes, values)
    return found


def _set(name: str) -> str:
    return name if name in SETUPS else ("Reuters" if name.startswith("Reuters") else "Madelon")


def _by_size(where: str, row: str, sizes: Sequence[int] | NDArray[Any], values: Any) -> dict[Place, float]:
    return {(where, row, f"d = {size}"): float(value) for size, value in zip(sizes, values, strict=True)}


def of_features(found_here: Found) -> dict[Place, float]:
    """How many of Madelon's informative features each method puts on top, of as many; Reuters by the SVM as J."""
    found: dict[Place, float] = {}
    if "Madelon" in found_here.results:
        result, truth = found_here.results["Madelon"], found_here.truth
        found["Section V", "Madelon", "informative features"] = len(truth)
        found["Section V", "Madelon", "features without power"] = result.n_features - len(truth)
        for selector, hits in hits_by_method(result, truth).items():
            where = "Figure 4, informative features found, Madelon"
            found[where, selector, f"of the top {nearest(result, len(truth))}"] = float(np.mean(hits))
    if found_here.svm is not None:
        for row, values in found_here.svm["accuracy"].items():
            found |= _by_size("Reuters, the SVM as J, one split", row, found_here.svm["sizes"], values)
            found["Reuters, the SVM as J, one split", row, "seconds"] = found_here.svm["seconds"][row]
    return found


def pictures(results: Mapping[str, StudyResult]) -> list[Picture]:
    """Figures 2 to 7, of the studies that were conducted."""
    stability = tuple(measure for measure, _ in MEASURES.values())
    names = {name: f"Figure {setup.figure}, {name}" for name, setup in SETUPS.items()}
    names |= {name: f"{name}, Madelon" for name in ("Figure 6", "Figure 7")}
    return [
        Picture(names[name], save=partial(save_study, result, stability=stability, title=names[name]))
        for name, result in results.items()
        if name in names
    ]
