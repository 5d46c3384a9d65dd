"""Somol, Grim, Filip and Pudil 2013: what the paper proves of DAF, C and C2, in games whose J is known."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

from probewise.engine.probes import ProbePlan
from probewise.engine.tally import TallySheet, positions

from ..base import Claim, Place

Floats = NDArray[np.float64]
EQUALS, LIMIT = "Proposition 1, all features equal", "Equations 5 to 7, eight features"
N_EQUAL, LARGEST = 500, 200
N_LIMIT, LIMIT_COUNTS = 8, (400, 4_000, 40_000)
SHOWN = (0, 1 / 10, 1 / 3, 2 / 3)  # of the run, from which on any two looks are compared


def games(n_looks: int, look: int, seed: int) -> tuple[dict[Place, float], list[Claim]]:
    """Both games: numbers, and what the paper says of them; the first is looked at every so many probes."""
    looked, one_more = all_equal(n_looks, look, seed), one_probe_more(look * n_looks // 2, seed)
    change = [float(np.mean(np.abs(positions(b) - positions(a)))) for a, b in pairwise(looked)]
    apart = {p: furthest(looked[p - 1 :]) for p in (max(1, round(part * n_looks)) for part in SHOWN)}
    limit = to_the_limit(seed)
    numbers: dict[Place, float] = {(EQUALS, f"look {k}", "C"): value for k, value in enumerate(change, start=2)}
    numbers |= {(EQUALS, f"from look {p} on", "largest C2 of any two"): value for p, value in apart.items()}
    numbers |= {(LIMIT, f"{count:,} probes", "furthest from the limit"): value for count, (value, _) in limit.items()}
    return numbers, [
        _order(change, look),
        _values(apart, look),
        _one_probe(*one_more),
        _limit(limit),
    ]


def all_equal(n_looks: int, look: int, seed: int) -> Floats:
    """DAF of features that are all equal, at every look: J is noise, and says nothing of what a probe holds."""
    plan, sheet = ProbePlan(N_EQUAL, LARGEST, seed=seed), TallySheet(N_EQUAL)
    noise, found = np.random.default_rng(seed), []
    for k in range(n_looks):
        sheet.add(plan.draw(k * look, (k + 1) * look), noise.random(look))
        found.append(sheet.view().daf0())
    return np.array(found)


def furthest(looked: Floats) -> float:
    """The largest C2 between any two looks."""
    return max(float(np.abs(looked - each).mean(axis=1).max()) for each in looked)


def one_probe_more(n_probes: int, seed: int) -> tuple[Floats, NDArray[np.bool_]]:
    """By how much one more probe changes each DAF in the game of equal features, and which features it holds."""
    plan, sheet = ProbePlan(N_EQUAL, LARGEST, seed=seed), TallySheet(N_EQUAL)
    values = np.random.default_rng(seed).random(n_probes + 1)
    sheet.add(plan.draw(0, n_probes), values[:-1])
    before = sheet.view().daf0()
    sheet.add(plan.draw(n_probes, n_probes + 1), values[-1:])
    held = np.zeros(N_EQUAL, bool)
    held[plan.probe(n_probes)] = True
    return np.abs(sheet.view().daf0() - before), held


def to_the_limit(seed: int) -> dict[int, tuple[float, float]]:
    """By number of probes the largest distance of a DAF from its limit, and that in standard errors.

    J is drawn once for each of all subsets.
    """
    subsets = [s for size in range(1, N_LIMIT + 1) for s in combinations(range(N_LIMIT), size)]
    worth = dict(zip(subsets, np.random.default_rng(seed).random(len(subsets)), strict=True))
    limit = in_the_limit(worth)
    plan, sheet, found = ProbePlan(N_LIMIT, seed=seed), TallySheet(N_LIMIT), {}
    for start, stop in zip((0, *LIMIT_COUNTS), LIMIT_COUNTS, strict=False):
        drawn = plan.draw(start, stop)
        sheet.add(drawn, np.array([worth[tuple(sorted(probe.tolist()))] for probe in drawn]))
        tally = sheet.view()
        apart = np.abs(tally.daf0() - limit)
        found[stop] = float(apart.max()), float((apart / tally.std_errors()).max())
    return found


def in_the_limit(worth: dict[tuple[int, ...], float]) -> Floats:
    """Eq. 7: the mean of J over subsets with a feature less that over those without, by the chance of each subset."""
    chance = {s: 1 / N_LIMIT / comb(N_LIMIT, len(s)) for s in worth}
    sides = np.zeros((2, 2, N_LIMIT))  # J times chance and chance, without and with, by feature
    for subset, value in worth.items():
        held = np.isin(np.arange(N_LIMIT), subset).astype(int)
        sides[:, held, np.arange(N_LIMIT)] += np.array([value * chance[subset], chance[subset]])[:, None]
    without, with_it = sides[0] / sides[1]
    return np.asarray(with_it - without)


# ---- what the paper says


def _order(change: list[float], look: int) -> Claim:
    shown = {k: change[k - 2] for k in (2, 11, 51, 101, len(change) + 1) if k <= len(change) + 1}
    rooted = [value * np.sqrt(k) for k, value in shown.items()]
    return Claim(
        "C need not go to zero, nor fall below a threshold; the proof's example is features that are all equal (here: "
        "C of these is at the end of a run more than half of what it was)",
        change[-1] > change[0] / 2,
        ", ".join(f"look {k}: {value:.1f}" for k, value in shown.items())
        + f"; times the root of the look {min(rooted):.0f} to {max(rooted):.0f}: it falls, if slowly, below any "
        "threshold but zero",
        "section 3, proposition 1",
        f"J is noise, {N_EQUAL} features, {look * (len(change) + 1):,} probes",
    )


def _values(apart: dict[int, float], look: int) -> Claim:
    return Claim(
        "From some number of probes on C2 of any two systems stays below any threshold (here: the largest of any two "
        "falls along the run)",
        all(a > b for a, b in pairwise(apart.values())),
        "the largest of any two: " + ", ".join(f"from look {p} on {value:.2g}" for p, value in apart.items()),
        "section 3, lemma 1",
        f"J is noise, {N_EQUAL} features, {look} probes a look",
    )


def _one_probe(change: Floats, held: NDArray[np.bool_]) -> Claim:
    return Claim(
        "A single probe cannot affect all features",
        bool(np.count_nonzero(change) < len(change)),
        f"{np.count_nonzero(change)} of {len(change)} DAF change, in the mean by {change[held].mean():.1e} of the "
        f"{np.count_nonzero(held)} features in the probe and {change[~held].mean():.1e} of the others, whose mean "
        "without them has changed",
        "section 4",
        f"J is noise, {N_EQUAL} features",
    )


def _limit(apart: dict[int, tuple[float, float]]) -> Claim:
    values, errors = zip(*apart.values(), strict=True)
    return Claim(
        "DAF has a finite limit: its mean over all admissible subsets, each by its chance (here: within four standard "
        "errors, which shrink)",
        max(errors) < 4 and values[-1] < values[0],
        "furthest from it: " + ", ".join(f"{count:,} probes {value:.4f}" for count, (value, _) in apart.items()),
        "section 2, eq. 5 to 7",
        f"J drawn for each subset of {N_LIMIT} features",
    )
