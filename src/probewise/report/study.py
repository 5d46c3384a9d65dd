"""Reports on studies: the ranking, the comparison of the methods, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..engine.tally import positions
from ..evaluation.sizes import suggested_size
from ..study import StudyError, StudyResult, TrialLedger, deviation
from .findings import Findings, Floats, checked_names
from .ranking_table import json_numbers
from .sentences import count, listed, percent

ALPHA = 0.05  # significance level
NOT_SHOWN = ("shape", "data", "target", "seed")
STABLE, FAIRLY_STABLE = 0.75, 0.4  # Nogueira's measure; the limits of Fleiss for agreement


def read_study(path: Path) -> Findings:
    """Findings of the finished trials in the ledger of a study; an incomplete last line is an unfinished trial."""
    ledger = TrialLedger.read(path)
    if ledger.settings is None or not ledger.trials:
        raise StudyError(f"{path} has no finished trials yet: continue the study first")
    result = StudyResult.from_ledger(ledger, ledger.notes.get("feature_names"))
    return findings_of_study(result, ledger.settings, ledger.notes.get("version"))


def findings_of_study(result: StudyResult, settings: dict[str, Any], version: str | None = None) -> Findings:
    """Findings of a study; the ranking is by how often its best method selected each feature."""
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
        parameters=texts | others,
        seed=settings.get("seed"),
        study=result,
        shape=(result.n_train + result.n_test, result.n_features),
        fingerprints=(settings.get("data"), settings.get("target")),
        version=version or __version__,
    )


def best_method(result: StudyResult) -> str:
    """The method with the highest mean accuracy among those that select features."""
    means = dict(zip(result.selectors, result.accuracy.mean(axis=(0, 2, 3)).tolist(), strict=True))
    return max(result.selecting or result.selectors, key=lambda name: means[name])


def selected_shares(result: StudyResult, method: str) -> Floats:
    """Array (trials, features): the share of the sizes at which each feature was selected."""
    shares = np.zeros((len(result.trials), result.n_features))
    for size in result.sizes.tolist():
        for trial, subset in enumerate(result.subsets(method, size)):
            shares[trial, subset] += 1 / len(result.sizes)
    return shares


def shares_of_other_methods(result: StudyResult) -> dict[str, tuple[str, Floats]]:
    """Further columns of the ranking: label, and how often each of the other methods selected each feature."""
    best = best_method(result)
    return {
        f"share_{index}": (f"share, {name}", selected_shares(result, name).mean(axis=0))
        for index, name in enumerate(result.selecting)
        if name != best
    }


def comparison(result: StudyResult) -> dict[str, Any]:
    """Accuracy and stability by size, the tests of pairs, and the smallest size that is good enough."""
    best = best_method(result)
    accuracy, stds = result.accuracy.mean(axis=0), deviation(result.accuracy)
    index = result.selectors.index(best)
    classifier, size = np.unravel_index(int(np.argmax(accuracy[index])), accuracy[index].shape)
    error = stds[index, classifier, size] / np.sqrt(len(result.trials))
    return {
        "trials": len(result.trials),
        "n_train": result.n_train,
        "n_test": result.n_test,
        "selectors": list(result.selectors),
        "classifiers": list(result.classifiers),
        "sizes": result.sizes.tolist(),
        "best": best,
        "classifier": result.classifiers[classifier],
        "suggested": suggested_size(result.sizes, accuracy[index, classifier], np.full(len(result.sizes), error)),
        "accuracy": json_numbers(accuracy),
        "std": json_numbers(stds),
        "stability": {name: json_numbers(values) for name, values in result.stability().items()},
        "seconds": json_numbers(result.seconds.mean(axis=0)),
        "sentences": sentences_on_study(result),
        "pairs": {
            name: json_numbers(values) if values.dtype.kind == "f" else [str(value) for value in values]
            for name, values in result.verdict().items()
        },
    }


# ---- sentences


def verdict_on_study(study: dict[str, Any]) -> list[str]:
    """The best method and how stable its selection is, from the dict of `comparison`."""
    best, size = study["selectors"].index(study["best"]), study["sizes"].index(study["suggested"])
    accuracy = study["accuracy"][best][study["classifiers"].index(study["classifier"])][size]
    features, splits = count(study["suggested"], "feature"), count(study["trials"], "random split")
    reached = f"{study['classifier']} with its best {features} has {percent(accuracy)} accuracy on held-out samples"
    first = f"{study['best']} selected the best features in {splits}: {reached}{_lead(study)}."
    stability = study["stability"]["nogueira"][best][size]
    if stability is None:
        return [first, "The stability of its selection is not known: at least two splits are needed."]
    word = "stable" if stability >= STABLE else "fairly stable" if stability >= FAIRLY_STABLE else "not stable"
    scale = "1 means the same selection in every split, 0 means chance"
    return [first, f"Its selection is {word} from split to split (Nogueira's measure is {stability:.2f}; {scale})."]


def _lead(study: dict[str, Any]) -> str:
    """The methods that the best one is significantly better than with any classifier, and the others."""
    best = study["best"]
    beaten = {worse for better, worse in significant_pairs(study["pairs"]) if better == best}
    others = [name for name in study["selectors"] if name not in (best, *beaten)]
    words = f". It is clearly better than {listed([*sorted(beaten, key=study['selectors'].index)])}" if beaten else ""
    return words + (f"{';' if beaten else ', but'} its lead over {listed(others)} may be chance" if others else "")


def sentences_on_study(result: StudyResult) -> dict[str, Any]:
    """A sentence for each table of a comparison: accuracy by classifier, stability by measure, and all pairs."""
    pairs, means = result.verdict(), result.accuracy.mean(axis=(0, 3))
    return {
        "accuracy": [
            _on_accuracy(result.selectors, means[:, index], significant_pairs(pairs, name))
            for index, name in enumerate(result.classifiers)
        ],
        "stability": {name: _on_stability(result, values) for name, values in result.stability().items()},
        "pairs": _on_pairs(len(pairs["first"]), len(significant_pairs(pairs)), len(result.trials)),
    }


def significant_pairs(pairs: dict[str, Any], classifier: str | None = None) -> list[tuple[str, str]]:
    """The better and the worse method of each pair with a significant difference."""
    rows = zip(*(pairs[name] for name in ("classifier", "first", "second", "difference", "p_holm")), strict=True)
    return [
        (first, second) if difference > 0 else (second, first)
        for by, first, second, difference, p in rows
        if p is not None and p < ALPHA and classifier in (None, by)
    ]


def _on_accuracy(selectors: Sequence[str], means: Floats, significant: list[tuple[str, str]]) -> str:
    best = selectors[int(np.argmax(means))]
    if len(selectors) == 1:
        return f"{best} has a mean over sizes of {means.max():.3f}."
    lead = f"{best} has the highest mean over sizes, {means.max():.3f}"
    beaten = [worse for better, worse in significant if better == best]
    if beaten:
        return f"{lead}; it is significantly better than {listed(beaten)}."
    return f"{lead}; no difference is significant." if not significant else f"{lead}, but its lead may be chance."


def _on_stability(result: StudyResult, values: Floats) -> str:
    if len(result.trials) < 2:
        return "Stability needs at least two splits."
    rows = {name: values[result.selectors.index(name)] for name in result.selecting}
    means = {name: np.nanmean(row) for name, row in rows.items() if np.isfinite(row).any()}
    if not means:
        return "No method selects features."
    best = max(means, key=lambda name: means[name])
    return f"{best} has the most stable selection, {means[best]:.3f} on average over sizes."


def _on_pairs(n_pairs: int, n_significant: int, n_trials: int) -> str:
    if n_trials < 2:
        return "A single split cannot show whether a difference is significant."
    if not n_significant:
        return "No difference is significant."
    return f"{n_significant} of {n_pairs} differences {'is' if n_significant == 1 else 'are'} significant."
