"""Everything known about a run as one plain dict of JSON values, and the verdict in words."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from .. import __version__
from ..checks.tables import number_categories
from ..probing.ledger import fingerprint
from ..probing.run import Run
from ..probing.units import Screening
from ..selectors.size_curve import fewest_enough
from ..study import StudyResult, deviation
from .evidence import (
    CHANCE,
    NEEDS_DATA,
    Data,
    Unknown,
    accuracy_by_size,
    alone,
    convergence,
    described,
    interactions,
    likeness,
    numbers,
)
from .findings import Findings, best_method, findings_of, selected_shares, selecting
from .ranking_table import LABELS, certainty_columns
from .words import count, decoys_beaten, listed, percent, quoted, sentences_on_features

FORMAT = 1
SETTLED = 0.9
CERTIFIED = "certified: "
WAYS = {
    "DAF": "Random groups of features are tried. A feature ranks high if groups with it do better than groups without.",
    "BIF": "Each feature is tried alone.",
    "SFFS": "A group of features is built one by one, each step the best there is, with steps back where they pay.",
    "EFS": "Features are taken one by one: each tells much about the target and is unlike those taken before.",
    "DFE": "Each feature is cut into intervals and judged alone by what these tell about the target.",
    "CFS": "A group is sought whose features go with the target but not with each other.",
    "FSDD": "Each feature is judged alone: classes far apart and narrow are good.",
    "MRMR": "Features are taken one by one: each tells much about the target and little that is known already.",
    "JMI": "Features are taken one by one by what they tell about the target together with those taken before.",
    "CMIM": "Features are taken one by one by what they tell about the target that no feature taken before tells.",
    "ReliefF": "A feature is good if rows that are alike but differ in the target differ in it.",
    "study": "The rows are split at random, again and again. Methods select features on one part; classifiers trained "
    "there with these features are tested on the other part.",
}


def summarize(
    run: Any,
    X: Any = None,
    y: Any = None,
    *,
    source: str | None = None,
    target: str | None = None,
    command: str | None = None,
    feature_names: Sequence[str] | None = None,
    coefficient: str | None = None,
) -> dict[str, Any]:
    """Everything known about a run, as one dict of JSON values; what is not known is None, with the reason in "gaps".

    Parameters
    ----------
    run : a fitted selector, a `StudyResult`, or the path of a ledger or of a study's file.
    X, y : the data of the run. Without them there is no accuracy by size, no likeness and no comparison with
        features judged alone.
    source, target : what the data and the target are called.
    command : the command line that made the run, to be shown.
    feature_names : names for a run that does not know them, as of sparse data.
    coefficient : for a ledger: "daf0", "daf1", "daf2" or "regression".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import FSDD
    >>> from probewise.report import summarize
    >>> X, y = load_iris(return_X_y=True)
    >>> summary = summarize(FSDD(2).fit(X, y), X, y)
    >>> summary["ranking"]["columns"]["feature"]
    ['x2', 'x3', 'x0', 'x1']
    >>> summary["sizes"]["suggested"]
    3
    """
    found = findings_of(run, coefficient=coefficient)
    clear = None if found.run is None else found.run.stands_out()[: len(found.names)]
    data = None if X is None else _data(found, X, y)
    found = found.named(feature_names)
    gaps: dict[str, str] = {}

    def part(name: str, make: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any] | None:
        try:
            return make(*arguments)
        except Unknown as reason:
            gaps[name] = str(reason)
            return None

    def of_data(make: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
        if data is None:
            raise Unknown(NEEDS_DATA)
        return make(*arguments, data)

    summary: dict[str, Any] = {
        "format": FORMAT,
        "asked": _asked(found, source, target),
        "data": _known_data(found, part("data", of_data, described)),
        "convergence": part("convergence", convergence, found) if found.run else None,
        "sizes": None if found.study else part("sizes", accuracy_by_size, found, data),
        "alone": part("alone", of_data, alone, found, clear),
        "likeness": part("likeness", of_data, likeness, found),
        "interactions": part("interactions", interactions, found, data) if found.run else None,
        "study": None if found.study is None else _study(found.study),
        "screen": _screen(_screening(found)),
        "features": None if found.run is None else _features(found, found.run),
        "run": _run(found),
        "repeat": {"command": command or found.command, "code": found.code},
        "versions": _versions(found),
        "made": datetime.now().astimezone().isoformat(timespec="minutes"),
        "gaps": gaps,
    }
    summary["ranking"] = _ranking(found, clear, (summary["alone"] or {}).pop("ranks", {}))
    for name in ("alone", "likeness", "interactions"):
        summary[name] = _named(summary[name], found.names)
    summary["verdict"] = verdict(summary)
    return summary


def _data(found: Findings, X: Any, y: Any) -> Data:
    """The data, checked to be those of the run as far as it knows them."""
    if len(found.categorical):
        X, discrete = number_categories(X, -1, found.categorical.astype(np.int32))
    else:
        X, discrete = number_categories(X)
    options: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": "numeric", "ensure_all_finite": False}
    if found.selector is not None:
        X = validate_data(found.selector, X, reset=False, **options)
    else:
        X = check_array(X, **options)
        if found.shape is not None and X.shape != found.shape:
            raise ValueError(f"the data have {_by(X.shape)}, those of the run {_by(found.shape)}: give the same table")
    if y is not None:
        check_consistent_length(X, y)
    for kept, given, what in zip(found.fingerprints or (), (X, y), ("data", "target"), strict=False):
        if (
            kept is not None
            and given is not None
            and fingerprint(np.asarray(given) if what == "target" else given) != kept
        ):
            raise ValueError(
                f"the {what} given are not those of the run: give the same table, target and ignored columns"
            )
    return Data.of(X, y, found.criterion, discrete)


def _by(shape: tuple[int, ...]) -> str:
    return f"{shape[0]:,} rows and {shape[1]:,} features"


# ---- parts told from what is at hand


def _asked(found: Findings, source: str | None, target: str | None) -> dict[str, Any]:
    of = f" of {source}" if source else ""
    for_what = f" to predict {target}" if target else ""
    if found.study is not None:
        question = f"Which way to select features{of} works best{for_what}, and is it stable?"
    else:
        question = f"Which features{of} matter{for_what}?"
    return {
        "method": found.method,
        "way": _way(found),
        "question": question,
        "source": source,
        "target": target,
        "criterion": _criterion_words(found),
        "score": found.score_name,
    }


def _way(found: Findings) -> str:
    way = WAYS.get(found.method, "")
    screening = _screening(found)
    if screening is None:
        return way
    return f"{screening.sentence}; what did not pass was never tried together with others. {way}"


def _known_data(found: Findings, told: dict[str, Any] | None) -> dict[str, Any]:
    if told is not None:
        names = {
            kind: [found.names[column] for column in told[f"{kind}_columns"][:10]] for kind in ("missing", "constant")
        }
        counts = {f"{kind}_columns": len(told[f"{kind}_columns"]) for kind in names}
        return {**told, **counts, **{f"{kind}_names": some for kind, some in names.items()}}
    rows = None if found.shape is None else found.shape[0]
    return {"rows": rows, "features": len(found.names)}


def _named(part: Any, names: list[str], key: str | None = None) -> Any:
    """The part with names in place of column numbers."""
    if isinstance(part, dict):
        return {name: _named(value, names, name) for name, value in part.items()}
    if isinstance(part, list):
        return [_named(value, names, key) for value in part]
    return names[part] if key in ("features", "first", "second", "revealed") else part


def _ranking(found: Findings, clear: NDArray[np.bool_] | None, alone_ranks: dict[str, list[int]]) -> dict[str, Any]:
    """The whole ranking as columns, best first."""
    order = found.order
    columns: dict[str, list[Any]] = {
        "rank": found.ranking[order].tolist(),
        "feature": [found.names[column] for column in order.tolist()],
        "score": numbers(found.scores[order]),
    }
    labels = {"rank": "rank", "feature": "feature", "score": found.score_name}
    if found.std_errors is not None:
        columns["std_error"], labels["std_error"] = numbers(found.std_errors[order]), "std error"
    for name, label, values in _sureness(found):
        columns[name], labels[name] = values, label
    record = None if found.run is None else found.run.record
    if found.run is not None:
        columns["probed"], labels["probed"] = found.run.feature_tally.counts[order].tolist(), "probed"
    if record is not None and record.costs is not None:
        columns["cost"], labels["cost"] = numbers(record.costs[order]), "cost"
    if found.p_values is not None:
        columns["p_value"], labels["p_value"] = numbers(found.p_values[order]), "p, by decoys"
    if found.run is not None and found.run.in_rounds:
        rounds = found.run.rounds_left()[order].tolist()
        columns["left_in_round"], labels["left_in_round"] = [part or None for part in rounds], "left after round"
    if clear is not None:
        columns["stands_out"], labels["stands_out"] = clear[order].tolist(), "stands out"
    for name, ranks in alone_ranks.items():
        columns[name], labels[name] = np.asarray(ranks)[order].tolist(), f"rank by {name.upper()}"
    if found.study is not None:
        best = best_method(found.study)
        for place, name in enumerate(selecting(found.study)):
            if name != best:
                shares = selected_shares(found.study, name).mean(axis=0)
                columns[f"share_{place}"], labels[f"share_{place}"] = numbers(shares[order]), f"share, {name}"
    return {
        "columns": columns,
        "labels": labels,
        "column_numbers": order.tolist(),
        "standing_out": None if clear is None else int(clear.sum()),
    }


def _sureness(found: Findings) -> list[tuple[str, str, list[Any]]]:
    """Between which ranks a feature truly is, and how probably it is in the top: for those judged, best first."""
    if found.run is None or found.coefficient is None:
        return []
    columns = certainty_columns(found.run, found.coefficient, found.ranking, found.top)
    return [
        (name, LABELS[name].format(top=found.top), numbers(values) if name == "in_top" else values)
        for name, values in columns.items()
    ]


def _study(result: StudyResult) -> dict[str, Any]:
    best = best_method(result)
    means = result.accuracy.mean(axis=0)[result.selectors.index(best)]
    classifier, size = np.unravel_index(int(np.argmax(means)), means.shape)
    error = deviation(result.accuracy)[result.selectors.index(best), classifier, size] / np.sqrt(len(result.trials))
    enough = fewest_enough(result.sizes, means[classifier], np.full(len(result.sizes), error))
    return {
        "trials": len(result.trials),
        "rows_to_train": result.n_train,
        "rows_to_test": result.n_test,
        "selectors": list(result.selectors),
        "classifiers": list(result.classifiers),
        "sizes": result.sizes.tolist(),
        "best": best,
        "classifier": result.classifiers[classifier],
        "suggested": enough,
        "accuracy": [[numbers(sizes) for sizes in selector] for selector in result.accuracy.mean(axis=0)],
        "deviation": [[numbers(sizes) for sizes in selector] for selector in deviation(result.accuracy)],
        "stability": {name: [numbers(sizes) for sizes in values] for name, values in result.stability().items()},
        "seconds": numbers(result.seconds.mean(axis=0)),
        "pairs": {
            name: numbers(values) if values.dtype.kind == "f" else [str(value) for value in values]
            for name, values in result.verdict().items()
        },
    }


def _screening(found: Findings) -> Screening | None:
    return None if found.run is None or found.run.record is None else found.run.record.screening


def _screen(screening: Screening | None) -> dict[str, Any] | None:
    if screening is None:
        return None
    return {
        "by": screening.description,
        "method": screening.method,
        "features": screening.n_features,
        "passed": len(screening.passed),
    }


def _features(found: Findings, run: Run) -> dict[str, Any]:
    """What was asked about single features, and what became of it; ``told`` has it in sentences."""
    units, names = run.units, found.names
    decoys = decoys_beaten(run, found.p_values, found.fdr)
    rounds = [{"from_probe": part.start, "features": len(part.active)} for part in run.plan.rounds]
    return {
        "told": sentences_on_features(run, names, decoys),
        "groups": [[names[column] for column in unit.tolist()] for unit in units.members if len(unit) > 1],
        "kept": [names[column] for column in units.kept.tolist()],
        "dropped": [names[column] for column in units.dropped.tolist()],
        "categorical": [names[column] for column in found.categorical.tolist()],
        "decoys": decoys,
        "rounds": rounds if run.in_rounds else None,
    }


def _run(found: Findings) -> dict[str, Any]:
    ledger = None if found.run is None else found.run.ledger
    return {
        "probes": None if ledger is None else ledger.n_probes,
        "seconds": None if ledger is None else ledger.seconds,
        "seed": found.seed,
        "stop_reason": found.stop_reason,
        "settings": found.settings,
    }


def _criterion_words(found: Findings) -> str | None:
    scoring = found.settings.get("scoring")
    return found.criterion_text if scoring is None else f"{found.criterion_text}, scored by {scoring}"


def _versions(found: Findings) -> dict[str, str]:
    versions = {"probewise": __version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    return versions if found.version == __version__ else {"probewise, of the run": found.version, **versions}


# ---- the verdict


def verdict(summary: dict[str, Any]) -> list[str]:
    """Two sentences for somebody who reads nothing else."""
    if summary["study"] is not None:
        return _verdict_on_methods(summary["study"])
    return [_which(summary), _how_many(summary)]


def _which(summary: dict[str, Any]) -> str:
    ranking = summary["ranking"]
    features, scores = ranking["columns"]["feature"], ranking["columns"]["score"]
    judged = [name for name, score in zip(features, scores, strict=True) if score is not None]
    names = listed([quoted(name) for name in (judged or features)[:3]])
    target, n_features = summary["asked"]["target"], summary["data"]["features"]
    screen = summary["screen"]
    probed = f" ({screen['passed']:,} of them probed, after a screen by {screen['method']})" if screen else ""
    aim = f"predict {quoted(target)}" if target else "predict the target"
    n_clear = ranking["standing_out"]
    if n_clear is None:
        return f"Of {n_features:,} features, {names} rank first for what they tell about {target or 'the target'}."
    if not n_clear:
        return (
            f"None of the {n_features:,} features{probed} stands out beyond chance; {names} rank first, "
            "and more probes may tell whether they matter."
        )
    stand = "stands" if n_clear == 1 else "stand"
    found = f"{n_clear:,} clearly {stand} out in helping to {aim}, led by {names}"
    return f"Of {n_features:,} features{probed}, {found}{_how_settled(summary)}."


def _how_settled(summary: dict[str, Any]) -> str:
    for reason in (summary["run"]["stop_reason"] or "").split("; "):
        if reason.startswith(CERTIFIED):
            return f"; {reason.removeprefix(CERTIFIED)}"
    looks = summary["convergence"]
    if looks is None:
        return ""
    share, top = looks["overlap"][-1], looks["top"]
    halves = f"two independent halves of the run share {percent(share)} of their top {top}"
    return f"; {halves}, so the top of the ranking is {'settled' if share >= SETTLED else 'not settled yet'}"


def _how_many(summary: dict[str, Any]) -> str:
    sizes = summary["sizes"]
    if sizes is None:
        return f"How many of them are enough cannot be said here: {summary['gaps']['sizes']}."
    size, score, best = (
        sizes["suggested"],
        *(sizes["score"][sizes["size"].index(sizes[k])] for k in ("suggested", "best")),
    )
    if sizes["beats_guessing"] is False:
        return f"No number of features predicts convincingly better than guessing: at best {_reach(sizes, best)}."
    if sizes["checked"] is not None:
        score = sizes["checked"][sizes["size"].index(size)]
    honest = sizes["honest"] or sizes["checked"] is not None
    caution = "" if honest else ", somewhat optimistic since the ranking has seen all rows"
    told = f"{_reach(sizes, score)}{caution}"
    if summary["ranking"]["standing_out"] == 0:
        return f"With the first {count(size, 'feature')} {told}."
    return f"{count(size, 'feature')} {'are' if size > 1 else 'is'} enough: with {'them' if size > 1 else 'it'} {told}."


def _reach(sizes: dict[str, Any], score: float) -> str:
    guess = sizes["guess"]
    if sizes["measure"] == "accuracy" and guess is not None:
        guessing = f"{percent(guess)} by always guessing the most frequent class"
        return f"{percent(score)} of rows are predicted correctly, against {guessing}"
    if sizes["measure"] == "R²":
        return f"{percent(score)} of the target's variation is explained"
    return f"the score ({sizes['measure']}) is {score:.3g}"


def _verdict_on_methods(study: dict[str, Any]) -> list[str]:
    best, place = study["best"], study["selectors"].index(study["best"])
    size = study["sizes"].index(study["suggested"])
    accuracy = study["accuracy"][place][study["classifiers"].index(study["classifier"])][size]
    splits, features = count(study["trials"], "random split"), count(study["suggested"], "feature")
    first = (
        f"Over {splits} {best} selected best: with {features} "
        f"{study['classifier']} predicted {percent(accuracy)} of unseen rows correctly{_lead(study, best)}."
    )
    stability = study["stability"]["nogueira"][place][size]
    if stability is None:
        return [first, "How stable its choice of features is cannot be said: that takes two splits or more."]
    word = "stable" if stability >= 0.75 else "fairly stable" if stability >= 0.4 else "not stable"
    return [
        first,
        f"Its choice of features is {word} from split to split "
        f"(Nogueira's measure is {stability:.2f}; 1 is the same choice each time, 0 is chance).",
    ]


def _lead(study: dict[str, Any], best: str) -> str:
    """Whom the best method is ahead of for sure, by the paired test with any classifier."""
    pairs = study["pairs"]
    beaten = []
    for other in study["selectors"]:
        tests = [
            (difference if first == best else -difference, p)
            for first, second, difference, p in zip(
                pairs["first"], pairs["second"], pairs["difference"], pairs["p_holm"], strict=True
            )
            if {first, second} == {best, other} and p is not None
        ]
        if any(p < CHANCE and difference > 0 for difference, p in tests):
            beaten.append(other)
    if len(study["selectors"]) < 2:
        return ""
    rest = [name for name in study["selectors"] if name not in (best, *beaten)]
    ahead = f", clearly ahead of {listed(beaten)}" if beaten else ""
    return ahead + (f"{';' if beaten else ', but'} its lead over {listed(rest)} may be chance" if rest else "")
