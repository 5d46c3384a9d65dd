"""What a report reads of a study: from its file or its result, its ranking, and the comparison of its methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..engine.run import CHANCE
from ..engine.tally import positions
from ..evaluation.sizes import fewest_enough
from ..study import RunFile, StudyError, StudyResult, deviation
from .findings import Findings, Floats, checked_names
from .words import listed, plain_numbers

NOT_SHOWN = ("shape", "data", "target", "seed")


def read_study(path: Path) -> Findings:
    """What the finished trials in a study's file found; a last line cut short is a trial not finished."""
    found = RunFile.look(path)
    if found.settings is None or not found.trials:
        raise StudyError(f"{path} holds no finished trial yet: go on with the study first")
    result = StudyResult.of_run(found, found.notes.get("feature_names"))
    return findings_of_study(result, found.settings, found.notes.get("version"))


def findings_of_study(result: StudyResult, settings: dict[str, Any], version: str | None = None) -> Findings:
    """What a study found; its ranking is how often its best method selected a feature."""
    method = best_method(result)
    shares = selected_shares(result, method)
    scores = shares.mean(axis=0)
    n_trials = len(result.trials)
    texts = {name: ", ".join(map(str, getattr(result, name))) for name in ("selectors", "classifiers", "sizes")}
    others = {name: value for name, value in settings.items() if name not in (*NOT_SHOWN, *texts)}
    return Findings(
        method="study",
        score_name=f"share, {method}",
        scores=scores,
        ranking=positions(scores) + 1,
        names=checked_names(result.feature_names, result.n_features),
        std_errors=shares.std(axis=0, ddof=1) / math.sqrt(n_trials) if n_trials > 1 else None,
        settings=texts | others,
        seed=settings.get("seed"),
        study=result,
        shape=(result.n_train + result.n_test, result.n_features),
        fingerprints=(settings.get("data"), settings.get("target")),
        version=version or __version__,
    )


def best_method(result: StudyResult) -> str:
    """The method with the largest mean accuracy, those that take all features apart."""
    means = dict(zip(result.selectors, result.accuracy.mean(axis=(0, 2, 3)).tolist(), strict=True))
    return max(_selecting(result) or result.selectors, key=lambda name: means[name])


def _selecting(result: StudyResult) -> list[str]:
    """The methods that select; the others take all features."""
    return [name for name in result.selectors if any(each["selectors"][name]["subsets"] for each in result.records)]


def selected_shares(result: StudyResult, method: str) -> Floats:
    """Array (trials, features): at what share of the sizes each feature was selected."""
    shares = np.zeros((len(result.trials), result.n_features))
    for size in result.sizes.tolist():
        for trial, subset in enumerate(result.subsets(method, size)):
            shares[trial, subset] += 1 / len(result.sizes)
    return shares


def other_shares(result: StudyResult) -> dict[str, tuple[str, Floats]]:
    """By the key of a column of the ranking: its label, and how often another method selected each feature."""
    best = best_method(result)
    return {
        f"share_{place}": (f"share, {name}", selected_shares(result, name).mean(axis=0))
        for place, name in enumerate(_selecting(result))
        if name != best
    }


def comparison(result: StudyResult) -> dict[str, Any]:
    """Accuracy and stability by size, the tests of pairs, and the size at which the best method is good enough."""
    best = best_method(result)
    accuracy, deviations = result.accuracy.mean(axis=0), deviation(result.accuracy)
    place = result.selectors.index(best)
    classifier, size = np.unravel_index(int(np.argmax(accuracy[place])), accuracy[place].shape)
    error = deviations[place, classifier, size] / np.sqrt(len(result.trials))
    return {
        "trials": len(result.trials),
        "rows_to_train": result.n_train,
        "rows_to_test": result.n_test,
        "selectors": list(result.selectors),
        "classifiers": list(result.classifiers),
        "sizes": result.sizes.tolist(),
        "best": best,
        "classifier": result.classifiers[classifier],
        "suggested": fewest_enough(result.sizes, accuracy[place, classifier], np.full(len(result.sizes), error)),
        "accuracy": plain_numbers(accuracy),
        "deviation": plain_numbers(deviations),
        "stability": {name: plain_numbers(values) for name, values in result.stability().items()},
        "seconds": plain_numbers(result.seconds.mean(axis=0)),
        "told": sentences(result),
        "pairs": {
            name: plain_numbers(values) if values.dtype.kind == "f" else [str(value) for value in values]
            for name, values in result.verdict().items()
        },
    }


def sentences(result: StudyResult) -> dict[str, Any]:
    """A sentence for each table of a comparison: on accuracy by classifier, on stability by measure, on all pairs."""
    verdict, means = result.verdict(), result.accuracy.mean(axis=(0, 3))
    return {
        "accuracy": [
            _on_accuracy(result.selectors, means[:, place], beyond_chance(verdict, name))
            for place, name in enumerate(result.classifiers)
        ],
        "stability": {name: _on_stability(result, values) for name, values in result.stability().items()},
        "pairs": _on_pairs(len(verdict["first"]), len(beyond_chance(verdict)), len(result.trials)),
    }


def beyond_chance(verdict: dict[str, Any], classifier: str | None = None) -> list[tuple[str, str]]:
    """The better and the worse method of each pair whose difference is beyond chance."""
    pairs = zip(*(verdict[name] for name in ("classifier", "first", "second", "difference", "p_holm")), strict=True)
    return [
        (first, second) if difference > 0 else (second, first)
        for by, first, second, difference, p in pairs
        if p is not None and p < CHANCE and classifier in (None, by)
    ]


def _on_accuracy(selectors: Sequence[str], means: Floats, beyond: list[tuple[str, str]]) -> str:
    best = selectors[int(np.argmax(means))]
    if len(selectors) == 1:
        return f"{best} has a mean over sizes of {means.max():.3f}."
    leads = f"{best} has the highest mean over sizes, {means.max():.3f}"
    beaten = [worse for better, worse in beyond if better == best]
    if beaten:
        return f"{leads}; it is better than {listed(beaten)} beyond chance."
    return f"{leads}; no difference is beyond chance." if not beyond else f"{leads}, but its lead may be chance."


def _on_stability(result: StudyResult, values: Floats) -> str:
    means = values.mean(axis=1)
    if not np.isfinite(means).any():
        return "How stable a choice is takes two splits or more to say."
    if len(means) == 1:
        return f"It is {means[0]:.3f} on average over sizes."
    place = int(np.nanargmax(means))
    return (
        f"{result.selectors[place]} chooses most alike from split to split, {means[place]:.3f} on average over sizes."
    )


def _on_pairs(n_pairs: int, n_beyond: int, n_trials: int) -> str:
    if n_trials < 2:
        return "A single split cannot tell a difference from chance."
    if not n_beyond:
        return "No difference is beyond chance."
    return f"{n_beyond} of {n_pairs} differences {'is' if n_beyond == 1 else 'are'} beyond chance."
