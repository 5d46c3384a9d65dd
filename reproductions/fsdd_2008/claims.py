"""Liang, Yang, Winstanley 2008: every claim of the paper, with the numbers that judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..base import Claim, Place, ahead, listed, published
from .data import BENCHES, METHODS, OVERLAP, PRUNED, Bench, classifiers
from .properties import BY_BETA, GROWTH, INVARIANT, OPTIMAL
from .readings import mfeat_claim, nearest_reading
from .remarks import LARGE, remark_claims

NAME = "fsdd-2008"
BETAS = (0.1, 1, 2, 5, 10, 20, 50, 100)
ORDER = (3, 4, 1, 2)
TIMED = {"Mfeat": 50, "Satimage": 36, "Spambase": 30}
MARGIN = 2.0
UP_TO = 8
COMPARABLE = {"Iris": 0, "Analcatdata": 5, "Vowel": 3}  # to ReliefF, from this number of features on; ahead up to it
READINGS = "mRMR-MID, distance from the published rows"
MFEAT = "Mfeat, 1-NN with 10 features of FSDD"


def curve(found: Mapping[Place, float], where: str, row: str) -> tuple[list[float], list[float]]:
    """Sizes and values of a row."""
    points = sorted((int(place[2]), value) for place, value in found.items() if place[:2] == (where, row))
    return [float(size) for size, _ in points], [value for _, value in points]


def claims(ours: Mapping[Place, float]) -> list[Claim]:
    """Claims of the paper about its tables, and whether they hold here."""
    benches = [bench for bench in BENCHES if (bench.where, "KNN FSDD", "1") in ours]
    found = proved(ours)
    if any(place[0] == "Section 4" for place in ours):
        found.append(order_on_iris(ours))
    if ("Table 3", "KNN FSDD", "1") in ours:
        found += [row_on_wine(ours), *(ahead_on_wine(ours, classifier) for classifier in classifiers())]
    found += [outperforms(ours, bench, method) for bench in benches for method in METHODS[1:]]
    found += [relieff_ahead(ours, bench) for bench in benches if bench.name in COMPARABLE]
    if {bench.name for bench in benches} == {bench.name for bench in BENCHES}:
        found += [*on_mfeat(ours), *over_sets(ours), relieff_is_slow(ours), fluctuates(ours)]
    found += fewer_features(ours, benches)
    if any(place[0] == "Table 2" for place in ours):
        found.append(fastest(ours))
    found += [*less_penalty(ours), *by_overlap(ours, benches), *remark_claims(ours)]
    found += [*with_pruning(ours, benches), *nearest_reading(ours, READINGS)]
    by_scaling = {row: value for (where, row, _), value in ours.items() if where == MFEAT}
    known = {each.place: each.value for each in published(NAME)}
    return [*found, *([mfeat_claim(by_scaling, known["Figure 1", "KNN FSDD", "10"])] if by_scaling else [])]


# ---- sections 2 and 4: what is proved


def proved(ours: Mapping[Place, float]) -> list[Claim]:
    """Optimality, invariance and complexity, and that beta changes little; nothing of what was not counted."""
    better, apart, alike, times = (by_set(ours, where) for where in (OPTIMAL, INVARIANT, BY_BETA, GROWTH))
    rows = [
        (
            better,
            lambda values: max(values) == 0,
            "The first m features are the best subset of m, for every m",
            lambda values: f"{max(values):g} of all subsets exceed them",
            ("abstract, sections 2.2 and 5", "all subsets, distances by definitions 1 to 3, beta 2"),
        ),
        (
            apart,
            lambda values: max(values) < 1e-9,
            "Shifting and scaling features has no effect on the result",
            lambda values: f"{max(values):.0e}",
            (
                "abstract, sections 2.3 and 5",
                "largest difference of a score; z-scores, [0, 1], and -3 x + 7 deviations",
            ),
        ),
        (
            alike,
            lambda values: min(values) >= 0.95,
            "The order of features changes very little with beta (here: rank correlation of at least 0.95 with beta 2)",
            lambda values: f"{min(values):.3f}",
            ("section 4", "the least rank correlation, beta from 0.1 to 100"),
        ),
        (
            times,
            lambda values: max(values) <= 6,
            "The time grows as instances times features (here: 4 times of either take at most 6 times as long)",
            lambda values: ", ".join(f"{value:.1f}" for value in values),
            ("sections 1 and 3.4", "one thread, the best of three; rows, features"),
        ),
    ]
    return [
        Claim(text, all(map(holds, found.values())), "; ".join(f"{name} {say(v)}" for name, v in found.items()), *place)
        for found, holds, text, say, place in rows
        if found
    ]


def by_set(ours: Mapping[Place, float], where: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for (place, name, _), value in ours.items():
        if place == where:
            found.setdefault(name, []).append(value)
    return found


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
    lead = leads(ours, "Table 3", classifier, "mrmrMID", upto=UP_TO)
    return Claim(
        f"Wine, {classifier}: FSDD is ahead of mRMR-MID at every size to {UP_TO}",
        min(lead.values()) > 0,
        "lead by size: " + ", ".join(f"{value:+z.2f}" for value in lead.values()),
        "section 3.5, table 3",
        "means over repetitions",
    )


def outperforms(ours: Mapping[Place, float], bench: Bench, method: str) -> Claim:
    """The paper's claim: ahead; on three sets ahead of ReliefF with few features, if at all, and then comparable."""
    place = (f"section 3.5, {bench.where.lower()}", "mean over sizes below all features")
    if method != "ReliefF" or bench.name not in COMPARABLE:
        return ahead(f"{bench.name}: FSDD is ahead of {method}", mean_leads(ours, bench.where, method), *place)
    few = COMPARABLE[bench.name]
    later = mean_leads(ours, bench.where, method, above=few)
    holds, words = max(map(abs, later.values())) <= MARGIN, listed(later)
    text = f"{bench.name}: FSDD is comparable to ReliefF (here: within {MARGIN:g} points)"
    if few:
        first = mean_leads(ours, bench.where, method, upto=few)
        holds, words = holds and min(first.values()) > 0, f"up to {few}: {listed(first)}; with more: {words}"
        text = (
            f"{bench.name}: FSDD is ahead of ReliefF with few features, comparable with more (here: within {MARGIN:g})"
        )
    return Claim(text, holds, words, *place)


def relieff_ahead(ours: Mapping[Place, float], bench: Bench) -> Claim:
    few = COMPARABLE[bench.name]
    lead = mean_leads(ours, bench.where, "mrmrMID", above=few, first="ReliefF")
    text = f"{bench.name}: ReliefF is ahead of mRMR-MID" + (f" with more than {few} features" if few else "")
    return ahead(text, lead, f"section 3.5, {bench.where.lower()}", "mean over sizes below all features")


def mean_leads(
    ours: Mapping[Place, float],
    where: str,
    method: str,
    *,
    above: int = 0,
    upto: float = np.inf,
    first: str = "FSDD",
) -> dict[str, float]:
    """By classifier: FSDD, or another first, less the method, in points, mean over sizes in a range."""
    found = {each: leads(ours, where, each, method, above, upto, first) for each in classifiers()}
    return {each: float(np.mean(list(by_size.values()))) for each, by_size in found.items()}


def leads(
    ours: Mapping[Place, float],
    where: str,
    classifier: str,
    method: str,
    above: int = 0,
    upto: float = np.inf,
    first: str = "FSDD",
) -> dict[float, float]:
    """Leads of FSDD by size, for sizes at which the two can differ."""
    sizes, one = curve(ours, where, f"{classifier} {first}")
    other = curve(ours, where, f"{classifier} {method}")[1]
    whole = next(ours["Table 1", bench.name, "attributes"] for bench in BENCHES if bench.where == where)
    return {size: a - b for size, a, b in zip(sizes, one, other, strict=True) if size < whole and above < size <= upto}


def on_mfeat(ours: Mapping[Place, float]) -> list[Claim]:
    """Figure 1: ahead at every number of features; with naive Bayes like mRMR-MID with few, ahead with more."""
    place = ("section 3.5, figure 1", "every size")
    found = []
    for method in METHODS[1:]:
        behind = {
            each: sum(lead <= 0 for lead in leads(ours, "Figure 1", each, method).values())
            for each in ("KNN", "DT", "SVM")
        }
        sizes = len(leads(ours, "Figure 1", "KNN", method))
        text = f"Mfeat: FSDD is ahead of {method} at every number of features with 1-NN, the tree and the SVM"
        words = f"not ahead at so many of {sizes} sizes: {listed(behind, 'd')}"
        found.append(Claim(text, not any(behind.values()), words, *place))
    few = mean_leads(ours, "Figure 1", "mrmrMID", upto=10)["NB"]
    more = mean_leads(ours, "Figure 1", "mrmrMID", above=10)["NB"]
    text = f"Mfeat, NB: FSDD is like mRMR-MID with few features (here: up to 10, within {MARGIN:g}), ahead with more"
    words = f"up to 10: {few:+.2f}; with more: {more:+.2f}"
    return [*found, Claim(text, abs(few) <= MARGIN and more > 0, words, *place)]


def over_sets(ours: Mapping[Place, float]) -> list[Claim]:
    """Claims about sets with many instances, about unbalanced sets, and about all sets."""
    lead = {m: {bench.name: mean_leads(ours, bench.where, m) for bench in BENCHES} for m in METHODS[1:]}
    mean = {
        method: {name: float(np.mean(list(values.values()))) for name, values in by_name.items()}
        for method, by_name in lead.items()
    }
    large, small = [[bench.name for bench in BENCHES if bench.is_figure is kind] for kind in (True, False)]
    place = ("section 3.5", "FSDD's lead, mean over classifiers and sizes")

    def apart(method: str) -> tuple[float, float, str]:
        first, second = (float(np.mean([mean[method][name] for name in names])) for names in (large, small))
        words = f"FSDD's lead: {first:+.2f} on those, {second:+.2f} on the others ({listed(mean[method])})"
        return first, second, words

    thousands, hundreds, words = apart("mrmrMID")
    worse, others, more_words = apart("ReliefF")
    ahead_of_both = {
        each: sum(all(lead[method][bench.name][each] > 0 for method in lead) for bench in BENCHES)
        for each in classifiers()
    }
    worst = {f"{name} (to {method})": min(values.values()) for method in lead for name, values in lead[method].items()}
    unbalanced = dict(lead["ReliefF"]["Spectrometer"])
    unbalanced |= {f"{each}, mRMR-MID": value for each, value in lead["mrmrMID"]["Spectrometer"].items()}
    return [
        Claim(
            "mRMR-MID does better on the three sets with thousands of instances than on those with hundreds",
            thousands < hundreds,
            words,
            *place,
        ),
        Claim(
            "ReliefF does worse on Mfeat, Spambase and Satimage than on the other five",
            worse > others,
            more_words,
            *place,
        ),
        Claim(
            f"Spectrometer, whose classes are unbalanced: FSDD does well (here: at most {MARGIN:g} behind the others)",
            min(unbalanced.values()) >= -MARGIN,
            f"lead over ReliefF, then mRMR-MID: {listed(unbalanced)}",
            "section 4, table 6",
            "mean over sizes",
        ),
        Claim(
            f"A good performance can be promised with beta 2 (here: at most {MARGIN:g} behind the others)",
            min(worst.values()) >= -MARGIN,
            f"the least lead of four classifiers: {listed(worst)}",
            "section 4",
            "mean over sizes; other values of beta give nearly the same order",
        ),
        Claim(
            "FSDD outperforms the other two (here: ahead of both with every set and classifier)",
            set(ahead_of_both.values()) == {len(BENCHES)},
            f"ahead of both on so many of {len(BENCHES)} sets: {listed(ahead_of_both, 'd')}",
            "abstract, sections 3.5 and 5",
            "mean over sizes below all features",
        ),
    ]


def fluctuates(ours: Mapping[Place, float]) -> Claim:
    """How often accuracy falls where a feature, or five, are added."""
    falls = {}
    for bench in BENCHES:
        steps = np.concatenate([np.diff(curve(ours, bench.where, f"{each} FSDD")[1]) for each in classifiers()])
        falls[bench.name] = 100 * float(np.mean(steps < -0.5))
    text = "The accuracy by number of features is fluctuant, sometimes (here: falls by more than half a point)"
    words = "per cent of steps: " + listed(falls, ".0f")
    return Claim(text, any(falls.values()), words, "section 4", "FSDD, four classifiers")


def relieff_is_slow(ours: Mapping[Place, float]) -> Claim:
    """How many features each method needs to come near to what it has with most of them."""
    needed: dict[str, dict[str, float]] = {name: {} for name in LARGE}
    for bench in BENCHES:
        for method in ("FSDD", "ReliefF") if bench.name in needed else ():
            curves = [curve(ours, bench.where, f"{each} {method}") for each in classifiers()]
            near = [sizes[int(np.argmax(np.array(values) >= values[-1] - MARGIN))] for sizes, values in curves]
            needed[bench.name][method] = float(np.mean(near))
    text = "ReliefF's accuracy increases slowly with the number of features where they go together (here: on Mfeat, "
    text += f"Satimage and Spambase it needs more than FSDD to come within {MARGIN:g} points of its last)"
    words = "features needed: " + "; ".join(f"{name} {listed(values, '.1f')}" for name, values in needed.items())
    holds = all(values["ReliefF"] > values["FSDD"] for values in needed.values())
    return Claim(text, holds, words, "section 3.5, figures 1 to 3", "mean over four classifiers")


def fewer_features(ours: Mapping[Place, float], benches: Sequence[Bench]) -> list[Claim]:
    """The best of fewer features less all of them, of sets where all were tried."""
    gains: dict[str, dict[str, float]] = {}
    for bench in benches:
        curves = {each: curve(ours, bench.where, f"{each} FSDD") for each in classifiers()}
        if all(sizes[-1] == ours["Table 1", bench.name, "attributes"] for sizes, _ in curves.values()):
            gains[bench.name] = {each: max(values[:-1]) - values[-1] for each, (_, values) in curves.items()}
    text = "Selection degrades accuracy as little as possible, or even improves it (here: the best of fewer features "
    text += "is at most a point behind all)"
    words = "points gained: " + "; ".join(f"{name} {listed(values)}" for name, values in gains.items())
    holds = all(gain >= -1 for values in gains.values() for gain in values.values())
    evidence = "FSDD; the best of many numbers flatters"
    return [Claim(text, holds, words, "section 1", evidence)] if gains else []


def less_penalty(ours: Mapping[Place, float]) -> list[Claim]:
    """A smaller beta can help only where it changes the order."""
    alike = {name: value for (where, name, beta), value in ours.items() if (where, beta) == (BY_BETA, f"{BETAS[0]:g}")}
    text = "Good features whose classes are wide would be preferred with a smaller penalty on d_w (here: with beta "
    text += f"{BETAS[0]:g} the order is another one: a rank correlation below 0.95 with that of beta 2 on some set)"
    evidence = "all rows; between and within add up to the whole, so that beta hardly matters"
    return [Claim(text, min(alike.values()) < 0.95, listed(alike, ".4f"), "section 4", evidence)] if alike else []


def by_overlap(ours: Mapping[Place, float], benches: Sequence[Bench]) -> list[Claim]:
    """The paper's future work: overlap degrees between classes in place of a constant beta."""
    there = [bench for bench in benches if (bench.where, f"KNN {OVERLAP}", "1") in ours]
    if not there:
        return []
    by_name = {bench.name: mean_leads(ours, bench.where, "FSDD", first=OVERLAP) for bench in there}
    lead = {each: {name: values[each] for name, values in by_name.items()} for each in classifiers()}
    mean = {each: float(np.mean(list(values.values()))) for each, values in lead.items()}
    words = "; ".join(f"{each} {mean[each]:+z.2f} ({listed(values)})" for each, values in lead.items())
    text = "The overlap of every two classes in place of a constant beta is reasonable (here: within half a point)"
    evidence = "lead over beta 2, mean over sizes below all features and over sets (each set)"
    return [Claim(text, min(mean.values()) >= -0.5, words, "section 4, future work", evidence)]


def with_pruning(ours: Mapping[Place, float], benches: Sequence[Bench]) -> list[Claim]:
    """Whether the pruned tree comes nearer to the published rows."""
    known = [each for each in published(NAME) if each.row.startswith("DT ")]
    apart: dict[str, tuple[float, float]] = {}
    for bench in benches:
        both = [
            (abs(ours[each.place] - each.value), abs(ours[place] - each.value))
            for each in known
            if (place := (each.where, each.row.replace("DT", PRUNED, 1), each.column)) in ours
            and each.where == bench.where
            if "mrmrMID" not in each.row
        ]
        if both:
            plain, pruned = np.mean(both, axis=0)
            apart[bench.name] = float(plain), float(pruned)
    if not apart:
        return []
    text = "The tree is similar to C4.5 (ours: pruned, it comes nearer to the published rows than unpruned)"
    words = "points off, unpruned and pruned: " + "; ".join(f"{k} {a:.2f}, {b:.2f}" for k, (a, b) in apart.items())
    evidence = "rows of FSDD and ReliefF; cost-complexity by three inner folds"
    return [Claim(text, all(b < a for a, b in apart.values()), words, "section 3.3, tables 3 to 7", evidence)]


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
        "abstract, section 3.4, table 2",
        "one thread, the best of three",
    )
