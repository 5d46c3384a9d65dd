"""Liang, Yang, Winstanley 2008: every claim of the paper, with the numbers that judge it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .base import Claim, Place, ahead, listed, published
from .fsdd_2008_departures import comparable, mfeat_claim, nearest_reading
from .fsdd_2008_sets import BENCHES, METHODS, Bench, classifiers

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
