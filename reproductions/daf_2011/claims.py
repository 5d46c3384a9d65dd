"""Claims of Somol and Grim 2011 about their experiments, and whether they hold in ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probewise.study import StudyResult

from ..base import Cell, Claim, listed

NAME = "daf-2011"
SETS = ("Reuters", "Gisette", "Madelon", "Spambase")  # figures 2 to 5
METHODS = ("DAF0", "DAF1", "DAF2")
CENTRED = {"DAF0": "DAF0 centred", "DAF2": "DAF2 centred"}
BERNOULLI = "DAF0, Bernoulli"
MEASURES = {"c": ("cw_rel", "CW_rel"), "d": ("ati", "ATI"), "e": ("anhi", "ANHI")}
CONVINCING = 0.05
ENOUGH_SPLITS = 5  # to speak of stability
ALIKE = 0.1  # of stability, whose measures end at 1
PROBES_A_MINUTE = 25_000 / 180  # the paper's, on Madelon
SUFFICES = 120
OPEN_IN_ONE_SPLIT = 0.01  # two standard errors of an accuracy on half of Reuters
SMALL_SHARE = 0.1  # of a run's time


@dataclass
class Found:
    """Results of the experiments: studies by name, DAF's runs by set, Madelon's informative features, the SVM as J.

    ``device`` is where probes were scored.
    """

    results: dict[str, StudyResult] = field(default_factory=dict)
    runs: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    truth: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    svm: dict[str, Any] | None = None
    device: str = "cpu"

    def run_mean(self, name: str, column: str) -> float:
        return float(np.mean([each[column] for each in self.runs[name]]))


def claims_of(found: Found) -> list[Claim]:
    """Claims about each data set that was run."""
    results = found.results
    here = [name for name in SETS if name in results]
    claims = [_beats_bif(name, results[name], c) for name in here for c in (0, 1)]
    if "Madelon" in results:
        claims += [
            _finds_madelon(results["Madelon"], found.truth),
            _search_is_slow(results["Madelon"], found.truth),
        ]
    claims += [_quick_bif(name, results[name]) for name in here if name == "Reuters"]
    claims += [_as_stable_as_bif(name, results[name]) for name in here]
    if "Spambase" in results:
        claims += _against_search(results["Spambase"])
    if "Reuters twice" in results:
        claims.append(_more_is_better(results["Reuters twice"]))
    if "Figure 6" in results:
        claims.append(_suffices(results["Figure 6"]))
    if "Figure 7" in results:
        claims += [_tau_too_low(results["Figure 7"]), _tau_too_high(results["Figure 7"], "Figure 7")]
        claims += [_lower_is_faster(results["Figure 7"])] if found.device == "cpu" else []
    if "Reuters tau" in results:
        claims.append(_tau_too_high(results["Reuters tau"], "Reuters tau"))
    claims += [_plain_suffices(name, results[name]) for name in here]
    claims += [_coefficients_are_cheap(found, name) for name in here if name in found.runs]
    if found.svm is not None:
        claims.append(_svm_as_j(found.svm))
    claims += [_bernoulli(name, results[name]) for name in here if BERNOULLI in results[name].selectors]
    return claims + [_centred(name, results[name]) for name in here]


def over_sets(cells: Sequence[Cell]) -> list[Claim]:
    """Claims about all data sets, from the numbers of their figures, which may come from several calls."""
    features = {cell.row: cell.ours for cell in cells if (cell.where, cell.column) == ("Table I", "features")}
    lead = {}
    for name in SETS:
        of_figure = [each for each in cells if re.fullmatch(rf"Figure \d[ab], accuracy of .*, {name}", each.where)]
        if not of_figure:
            return []
        daf, bif = (np.mean([each.ours for each in of_figure if each.row == method]) for method in ("DAF0", "BIF"))
        lead[f"{name} ({features[name]:,.0f} features)"] = 100 * float(daf - bif)
    values = list(lead.values())
    claim = Claim(
        "DAF generalises well especially in very-high-dimensional problems (here: its lead over BIF is larger on "
        "Reuters and on Gisette than on Madelon and on Spambase)",
        min(values[:2]) > max(values[2:]),
        f"DAF0 less BIF, points: {listed(lead)}",
        "abstract, section VI",
        "figures 2 to 5, a and b: mean over sizes and both classifiers",
    )
    return [claim]


def compared(result: StudyResult, classifier: str, first: str, second: str) -> tuple[float, float]:
    """How much more accurate one selector is, in points, mean over sizes, and the p-value of that."""
    verdict = result.verdict()
    for k, names in enumerate(zip(verdict["classifier"], verdict["first"], verdict["second"], strict=True)):
        if names == (classifier, first, second):
            return 100 * float(verdict["difference"][k]), float(verdict["p_value"][k])
        if names == (classifier, second, first):
            return -100 * float(verdict["difference"][k]), float(verdict["p_value"][k])
    raise ValueError(f"{first} and {second} with {classifier} are not in this study")


def is_better(difference: float, p_value: float) -> bool | None:
    """Better, worse, or, None, by chance perhaps."""
    return difference > 0 if p_value < CONVINCING else None


def enough(result: StudyResult) -> int:
    """The fewest probes that do not fall behind the most, so far as the splits can tell."""
    counts = {name: int(name.split()[0].replace(",", "")) for name in result.selectors}
    last = result.selectors[-1]
    return next(
        count
        for name, count in counts.items()
        if name == last or not is_better(*compared(result, result.classifiers[0], last, name))
    )


def nearest(result: StudyResult, size: int) -> int:
    return int(result.sizes[np.argmin(np.abs(result.sizes - size))])


def hits_by_method(result: StudyResult, truth: NDArray[np.int64]) -> dict[str, list[int]]:
    """Number of informative features among as many selected ones, by method and split."""
    size = nearest(result, len(truth))
    return {
        selector: [len(np.intersect1d(subset, truth)) for subset in result.subsets(selector, size)]
        for selector in result.selectors
    }


def mean_stability(result: StudyResult) -> dict[str, dict[str, float]]:
    """By measure and selector, the mean over sizes below all features."""
    below = result.sizes < result.n_features
    means = {label: result.stability()[measure][:, below].mean(axis=1) for measure, label in MEASURES.values()}
    return {each: dict(zip(result.selectors, values.tolist(), strict=True)) for each, values in means.items()}


# ---- words


def _points(difference: float, p_value: float) -> str:
    return f"{difference:+.2f} points (p = {p_value:.2g})"


def _shares(result: StudyResult, values: Any) -> str:
    return listed(dict(zip(result.selectors, values, strict=True)), ".3f")


def _stability(means: Mapping[str, Mapping[str, float]]) -> str:
    return "mean over sizes, " + "; ".join(f"{label}: {listed(values, '.3f')}" for label, values in means.items())


def _splits(result: StudyResult) -> str:
    return f"{len(result.trials)} splits"


def _figure(name: str) -> int:
    return 2 + SETS.index(name)


def _by_sizes(result: StudyResult, classifier: str, first: str, second: str) -> str:
    accuracy = result.accuracy[:, :, result.classifiers.index(classifier)].mean(axis=0)
    apart = 100 * (accuracy[result.selectors.index(first)] - accuracy[result.selectors.index(second)])
    return ", ".join(f"{size}: {value:+.2f}" for size, value in zip(result.sizes, apart, strict=True))


# ---- section III


def _plain_suffices(name: str, result: StudyResult) -> Claim:
    found = {
        f"{method}, {classifier}": compared(result, classifier, method, "DAF0")
        for method in METHODS[1:]
        for classifier in result.classifiers
    }
    return Claim(
        f"{name}: there is no strong reason to norm, DAF0 is well justifiable (here: neither DAF1 nor DAF2 is better)",
        not any(is_better(*each) for each in found.values()),
        "less DAF0: " + "; ".join(f"{which} {_points(*each)}" for which, each in found.items()),
        "section III-A, remark",
        _splits(result),
    )


# ---- section V-B


def _beats_bif(name: str, result: StudyResult, c: int) -> Claim:
    classifier, role = result.classifiers[c], ("J's own classifier", "another classifier")[c]
    found = {method: compared(result, classifier, method, "BIF") for method in METHODS}
    ours = "; ".join(f"{method} {_points(*found[method])}" for method in METHODS)
    ours += f". DAF0 less BIF by size: {_by_sizes(result, classifier, 'DAF0', 'BIF')}"
    text = f"{name}: DAF is considerably better than BIF, with {classifier} ({role})"
    where = f"abstract, sections V-B and VI, figure {_figure(name)}{'ab'[c]}"
    return Claim(text, is_better(*found["DAF0"]), ours, where, f"{_splits(result)}; DAF0 decides, mean over sizes")


def _finds_madelon(result: StudyResult, truth: NDArray[np.int64]) -> Claim:
    hits = hits_by_method(result, truth)
    size = nearest(result, len(truth))
    chance = size * len(truth) / result.n_features
    ours = f"informative among the top {size}, mean over splits: " + ", ".join(
        f"{name} {np.mean(values):.1f} (least {min(values)})" for name, values in hits.items()
    )
    holds = bool(np.mean(hits["DAF0"]) >= 0.75 * size and np.mean(hits["BIF"]) < size / 2)
    return Claim(
        "Madelon: BIF failed completely while DAF identified the right features (here: fewer than half found, "
        "against three quarters or more)",
        holds,
        f"{ours}; {chance:.1f} by chance",
        "section V-B, figure 4",
        _splits(result),
    )


def minutes_of(result: StudyResult, method: str) -> float:
    return float(result.seconds[:, result.selectors.index(method)].mean()) / 60


def _search_is_slow(result: StudyResult, truth: NDArray[np.int64]) -> Claim:
    minutes, days = minutes_of(result, "SFFS"), 5
    hits = np.mean(hits_by_method(result, truth)["SFFS"])
    differences = [compared(result, classifier, "DAF0", "SFFS") for classifier in result.classifiers]
    ours = (
        f"{60 * minutes:.1f} s a split to {result.sizes[-1]} features, {hits:.1f} of the top "
        f"{nearest(result, len(truth))} informative; DAF0 less SFFS: "
    )
    ours += ", ".join(f"{c} {_points(*d)}" for c, d in zip(result.classifiers, differences, strict=True))
    text = f"Madelon: SFFS is not applicable, a trial does not end in {days} days"
    return Claim(text, minutes > days * 24 * 60, ours, "section V-B, figure 4", _splits(result))


def _quick_bif(name: str, result: StudyResult) -> Claim:
    minutes = minutes_of(result, "BIF")
    text = f"{name}: BIF takes less than 5 minutes, the time of all sets that is longest"
    return Claim(text, minutes < 5, f"{60 * minutes:.1f} s a split", "section V-B", _splits(result))


def _as_stable_as_bif(name: str, result: StudyResult) -> Claim:
    means = mean_stability(result)
    lead = [values["DAF0"] - values["BIF"] for values in means.values()]
    text = f"{name}: the stability of DAF does not seem to differ significantly from that of BIF "
    text += f"(here: by at most {ALIKE:g} by each measure)"
    holds = max(map(abs, lead)) <= ALIKE
    if name == "Madelon":
        text, holds = "Madelon: DAF is more stable than BIF, which fails", min(lead) > 0
    where = f"section V-B, figure {_figure(name)}c-e"
    enough_splits = len(result.trials) >= ENOUGH_SPLITS
    return Claim(text, holds if enough_splits else None, _stability(means), where, f"{_splits(result)}; {NO_TEST}")


SAME_PROBES = "as many probes for each tau"
NO_TEST = "no p-value: splits share their rows, which the tests of stability do not allow for"


def _against_search(result: StudyResult) -> list[Claim]:
    own, other = result.classifiers
    stronger, general = compared(result, own, "SFFS", "DAF0"), compared(result, other, "DAF0", "SFFS")
    means = mean_stability(result)
    lead = {label: min(values["DAF0"], values["BIF"]) - values["SFFS"] for label, values in means.items()}
    is_less = min(lead.values()) > 0 and lead["CW_rel"] > ALIKE
    return [
        Claim(
            f"Spambase: SFFS is the stronger optimiser, with {own} (J's own)",
            is_better(*stronger),
            f"SFFS less DAF0: {_points(*stronger)}; by size: {_by_sizes(result, own, 'SFFS', 'DAF0')}",
            "section V-B, figure 5a",
            _splits(result),
        ),
        Claim(
            f"Spambase: DAF generalises better than SFFS to a different classifier, {other}",
            is_better(*general),
            f"DAF0 less SFFS: {_points(*general)}; by size: {_by_sizes(result, other, 'DAF0', 'SFFS')}",
            "section V-B, figure 5b",
            _splits(result),
        ),
        Claim(
            f"Spambase: SFFS is considerably less stable than DAF and BIF (here: by all measures, CW_rel by {ALIKE:g})",
            is_less if len(result.trials) >= ENOUGH_SPLITS else None,
            _stability(means),
            "section V-B, figure 5c-e",
            f"{_splits(result)}; {NO_TEST}",
        ),
    ]


def _more_is_better(result: StudyResult) -> Claim:
    once, twice = result.selectors
    found = compared(result, result.classifiers[0], twice, once)
    text = "Reuters: twice the time (400 minutes for 200) gains about 1 % of accuracy (here: between 0.5 and 1.5)"
    holds = (0.5 <= found[0] <= 1.5) if found[1] < CONVINCING else None
    by_size = _by_sizes(result, result.classifiers[0], twice, once)
    ours = f"{twice} against {once}: {_points(*found)}; by size: {by_size}"
    return Claim(text, holds, ours, "section V-B, remark", _splits(result))


# ---- sections IV and V-C


def _suffices(result: StudyResult) -> Claim:
    means = result.accuracy.mean(axis=(0, 2, 3))
    least, most, limit = enough(result), int(result.probes.max()), SUFFICES * PROBES_A_MINUTE
    ours = f"mean over sizes: {_shares(result, means)}; from {least:,} probes on not below the last "
    ours += f"(p >= {CONVINCING}), which were {least / PROBES_A_MINUTE:.0f} minutes there"
    holds = least <= round(limit) if most > limit else None
    text = "Madelon: roughly 2 hours suffice to make the most of the method"
    return Claim(text, holds, ours, "section V-C, figure 6", _splits(result))


def _behind_the_best(result: StudyResult, end: str) -> tuple[bool | None, str]:
    """Whether the largest probe at an end of those tried is worse than the best of them, and the numbers."""
    means = result.accuracy.mean(axis=(0, 2, 3))
    best, ours = result.selectors[int(np.argmax(means))], f"mean over sizes: {_shares(result, means)}"
    if best == end:
        return False, ours
    found = compared(result, result.classifiers[0], best, end)
    return is_better(*found), f"{ours}; {best} against {end} {_points(*found)}"


def _tau_too_low(result: StudyResult) -> Claim:
    holds, ours = _behind_the_best(result, result.selectors[0])
    text = "Madelon: the largest probe matters little, except that too low values cannot show what features do together"
    return Claim(text, holds, ours, "section V-C, figure 7", f"{_splits(result)}; {SAME_PROBES}")


def _tau_too_high(result: StudyResult, name: str) -> Claim:
    holds, ours = _behind_the_best(result, result.selectors[-1])
    if name == "Reuters tau":
        text = "Reuters: a largest probe of 1,000 to 10,000 words generalises poorly"
        return Claim(text, holds, ours, "section V-C", f"{_splits(result)}; every word in as many probes for each tau")
    text = "Madelon: a largest probe that is too high may hide what a feature does (here: that of all features does)"
    return Claim(text, holds, ours, "section V-C, figure 7", f"{_splits(result)}; {SAME_PROBES}")


def _lower_is_faster(result: StudyResult) -> Claim:
    """Nothing is said where a GPU made the runs ahead of the trials, whose seconds are of reading them."""
    seconds = result.seconds.mean(axis=0)
    return Claim(
        "Madelon: in a given time more probes are evaluated for a lower tau, fewer for a higher one "
        "(here: the highest takes longer than the lowest for as many)",
        bool(seconds[-1] > seconds[0]),
        f"seconds a split: {listed(dict(zip(result.selectors, seconds, strict=True)), '.0f')}",
        "section V-C, remark",
        f"{_splits(result)}; {SAME_PROBES}, J on one core",
    )


def _coefficients_are_cheap(found: Found, name: str) -> Claim:
    scoring, reading = found.run_mean(name, "seconds"), found.run_mean(name, "coefficients seconds")
    is_small = reading <= SMALL_SHARE * scoring
    return Claim(
        f"{name}: computing DAF0, DAF1 and DAF2 is negligible beside J (here: a tenth of its time at most)",
        is_small if found.device == "cpu" else is_small or None,  # a GPU's time is less than J takes on that core
        f"probes {scoring:.1f} s, all three coefficients from their J {reading:.2f} s",
        "section IV, remark",
        f"{len(found.runs[name])} splits; J on {found.device}, coefficients on one core",
    )


# ---- beyond the paper


def _svm_as_j(control: Mapping[str, Any]) -> Claim:
    sizes, accuracy = control["sizes"], control["accuracy"]
    rows = "; ".join(
        f"{name}: " + ", ".join(f"{size}: {value:.3f}" for size, value in zip(sizes, values, strict=True))
        for name, values in accuracy.items()
    )
    lead = float(np.mean(np.subtract(accuracy["DAF0, SVM as J"], accuracy["BIF, SVM as J"])))
    ours = f"{rows}; DAF0 less BIF, SVM as J: {100 * lead:+.2f} points; {control['n_probes']:,} probes, "
    ours += f"C = {control['C']:g} tuned on all words; J of ridge and J of the SVM, each less its mean at the probe's "
    ours += f"size, correlate by {control['agreement']:.2f}"
    text = "Reuters, the linear SVM itself as J: DAF is better than BIF"
    evidence = (
        "one split, which leaves a point open, with fewer probes than the paper's, which can only show that it is; "
        "ridge with as many beside it"
    )
    return Claim(text, lead >= OPEN_IN_ONE_SPLIT or None, ours, "section V-B, figure 2a", evidence)


def _bernoulli(name: str, result: StudyResult) -> Claim:
    found = {each: compared(result, each, BERNOULLI, "DAF0") for each in result.classifiers}
    stability = {each: values[BERNOULLI] - values["DAF0"] for each, values in mean_stability(result).items()}
    ours = "; ".join(f"{classifier} {_points(*each)}" for classifier, each in found.items())
    holds = all(is_better(*each) is None for each in found.values())
    return Claim(
        f"{name} (ours): probes of eq. 4, each feature in by chance, do as well as sizes that are uniform",
        holds,
        f"accuracy, Bernoulli less uniform: {ours}; stability: {listed(stability, '+.3f')}",
        "section III, eq. 4",
        f"{_splits(result)}; as many probes, the same mean size",
    )


def _centred(name: str, result: StudyResult) -> Claim:
    own, stability = result.classifiers[0], mean_stability(result)["CW_rel"]
    found = {plain: compared(result, own, centred, plain) for plain, centred in CENTRED.items()}
    ours = "; ".join(
        f"{plain}: {_points(*found[plain])}, CW_rel {stability[plain]:.3f} -> {stability[centred]:.3f}"
        for plain, centred in CENTRED.items()
    )
    text = f"{name} (ours): J less its mean at the probe's size makes DAF0 and DAF2 no worse, and steadier"
    holds = all(stability[CENTRED[plain]] >= stability[plain] for plain in CENTRED) and not any(
        is_better(*each) is False for each in found.values()
    )
    return Claim(text, holds, f"with {own}, {ours}", "section III, eq. 13-15", _splits(result))
