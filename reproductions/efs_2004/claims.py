"""Wu, Zhang 2004: what the paper says of genes, and whether it holds in our trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..base import Claim, Place, ahead, listed, published
from .genes import BY_SEARCH, BY_UNCERTAINTY, FIGURE_TREES, GREEDY, IN_LOG10, METHODS, NAME, SEEN, Curves

GAINS = {"Leukemia": {"RF": 42.0, "CART": 42.0}, "Lymphoma": {"RF": 19.0, "CART": 23.0}}
NEAR = 5.0  # points
FEW, MANY = 100, 900
ORDER = ("EFS", "DFE", "CFS", "Full Space")
CLEAR = "clear of two standard errors"

Trials = Sequence[Mapping[str, Any]]


# ---- table 3


def gene_claims(name: str, trials: Trials) -> list[Claim]:
    """Claims of the paper about table 3, for one gene set."""
    return [
        *order_of_methods(name, trials),
        *gains(name, trials),
        forest_is_ahead(name, trials),
        *efficiency(name, trials),
        gain_against_uncertainty(name, trials),
        greedy_against_optimal(name, trials),
    ]


class Lead:
    """By how many points one method is ahead of another with a classifier: mean over trials, and its error."""

    def __init__(self, trials: Trials, first: str, second: str, classifier: str) -> None:
        apart = [trial[f"{first} {classifier}"][0] - trial[f"{second} {classifier}"][0] for trial in trials]
        self.mean = round(100 * float(np.mean(apart)), 9)  # equal ones lead by 0
        self.error = 100 * float(np.std(apart, ddof=1) / np.sqrt(len(apart))) if len(apart) > 1 else 0.0
        self.n_trials = len(apart)

    def __str__(self) -> str:
        return f"{self.mean:+z.2f}" + (f" ± {self.error:.2f}" if self.n_trials > 1 else "")

    @property
    def is_ahead(self) -> bool | None:
        """None within two standard errors."""
        if self.mean > 0 and self.mean >= 2 * self.error:
            return True
        return False if self.mean + 2 * self.error <= 0 else None

    @property
    def is_level(self) -> bool | None:
        """True if the method is not behind; None if it is behind by less than two standard errors."""
        return True if self.mean >= 0 else False if -self.mean >= 2 * self.error else None


def leads_of(trials: Trials, first: str, second: str) -> dict[str, Lead]:
    return {classifier: Lead(trials, first, second, classifier) for classifier in ("RF", "CART")}


def in_words(leads: Mapping[str, Lead]) -> str:
    return ", ".join(f"{name} {lead}" for name, lead in leads.items())


def all_hold(verdicts: Sequence[bool | None]) -> bool | None:
    """False if one is False, else None if one cannot be told."""
    return False if False in verdicts else None if None in verdicts else True


def order_of_methods(name: str, trials: Trials) -> list[Claim]:
    """EFS at least DFE, that at least CFS, and that at least all genes."""
    claims = []
    for classifier in ("RF", "CART"):
        means = {method: 100 * _mean(trials, f"{method} {classifier}", 0) for method in ORDER}
        steps = {f"{a} - {b}": Lead(trials, a, b, classifier) for a, b in pairwise(ORDER)}
        words = "; ".join(f"{step} {lead}" for step, lead in steps.items())
        claims.append(
            Claim(
                f"{name}, {classifier}: EFS >= DFE >= CFS >= all features",
                all_hold([lead.is_level for lead in steps.values()]),
                f"{listed(means, '.2f')}; {words} (mean, standard error)",
                "section 5.4, table 3",
                f"{len(trials)} trials; behind if {CLEAR}",
            )
        )
    return claims


def gains(name: str, trials: Trials) -> list[Claim]:
    """By how much EFS is ahead of all genes, EFS of DFE, and DFE of CFS: the paper's words, beside our leads."""
    place, found = ("section 5.4, table 3", f"{len(trials)} trials"), []
    if name in GAINS:
        leads = leads_of(trials, "EFS", "Full Space")
        near = [abs(lead.mean - GAINS[name][classifier]) <= NEAR for classifier, lead in leads.items()]
        text = f"{name}: EFS gains about {listed(GAINS[name], 'g')} points on all genes (here: within {NEAR:g})"
        found.append(Claim(text, all(near), in_words(leads), *place))
    for first, second, said in (("EFS", "DFE", "about 3"), ("DFE", "CFS", "3 to 6")):
        leads = leads_of(trials, first, second)
        text = f"{name}: {first} is noticeably ahead of {second}, by {said} points (here: {CLEAR})"
        found.append(Claim(text, all_hold([lead.is_ahead for lead in leads.values()]), in_words(leads), *place))
    return found


def forest_is_ahead(name: str, trials: Trials) -> Claim:
    lead = {method: 100 * (_mean(trials, f"{method} RF", 0) - _mean(trials, f"{method} CART", 0)) for method in METHODS}
    text = f"{name}: random forests are ahead of CART with every method (published: by 9 to 15 points)"
    return ahead(text, lead, "section 5.4, table 3", f"{len(trials)} trials")


def _mean(trials: Trials, key: str, place: int) -> float:
    return float(np.mean([trial[key][place] for trial in trials]))


def efficiency(name: str, trials: Trials) -> list[Claim]:
    """How many times as long all genes take to train on as EFS takes, training alone and with selection."""
    claims = []
    for classifier in ("RF", "CART"):
        whole = _mean(trials, f"Full Space {classifier}", 5)
        selecting, training = (_mean(trials, f"EFS {classifier}", place) for place in (4, 5))
        ours = f"all genes {whole:.4f} s; EFS: selection {selecting:.4f} s, training {training:.4f} s: "
        ours += f"{whole / training:.1f} times for training alone, {whole / (selecting + training):.2f} with selection"
        text = f"{name}, {classifier}: EFS improves the efficiency by at least two orders of magnitude"
        evidence = f"{len(trials)} trials; seconds of one processor"
        claims.append(Claim(text, whole >= 100 * (selecting + training), ours, "section 5.4, table 3", evidence))
    return claims


def gain_against_uncertainty(name: str, trials: Trials) -> Claim:
    leads = leads_of(trials, "DFE", BY_UNCERTAINTY)
    text = f"{name}: balanced gain consistently outperforms symmetrical uncertainty (here: {CLEAR})"
    ours = f"DFE less ranking by uncertainty, points: {in_words(leads)}"
    holds = all_hold([lead.is_ahead for lead in leads.values()])
    return Claim(text, holds, ours, "section 3.1", f"{len(trials)} trials; the same cut points")


def greedy_against_optimal(name: str, trials: Trials) -> Claim:
    leads = leads_of(trials, "EFS", GREEDY)
    text = f"{name} (ours): optimal cut points, the default, do no worse than the greedy ones of algorithm 1 "
    text += f"(here: worse if {CLEAR})"
    ours = f"optimal less greedy, points: {in_words(leads)}"
    return Claim(
        text, all_hold([lead.is_level for lead in leads.values()]), ours, "algorithm 1", f"{len(trials)} trials"
    )


def seen_or_not(trials: Mapping[str, Trials]) -> list[Claim]:
    """Whether the published accuracy of EFS is nearer where the selectors saw the test rows."""
    known, claims = {each.place: each.value for each in published(NAME)}, []
    for name in ("Leukemia", "Lymphoma"):
        if not {name, name + SEEN} <= set(trials):
            continue
        words, nearer = [], []
        for method in ("EFS", "DFE", "CFS"):
            goal = known["Table 3", f"{name} {method}", "RF accuracy"]
            apart, seen = (100 * _mean(trials[which], f"{method} RF", 0) for which in (name, name + SEEN))
            sizes = [_mean(trials[which], f"{method} RF", 1) for which in (name, name + SEEN)]
            few, many = (f"{size:.0f}" for size in sizes)
            words.append(f"{method} published {goal:g}, {apart:.2f} without ({few} genes), {seen:.2f} with ({many})")
            nearer.append(abs(seen - goal) < abs(apart - goal))
        text = f"{name} (ours): the forest's published accuracies are those of selectors that saw the test rows"
        claims.append(Claim(text, all(nearer), "; ".join(words), "table 3", f"{len(trials[name + SEEN])} trials"))
    return claims


def thresholds(trials: Mapping[str, Trials]) -> list[Claim]:
    known = {each.column: each.value for each in published(NAME) if each.where == "Table 1"}
    ratios = {
        name: known[name] / (IN_LOG10 * float(np.mean([trial["threshold"] for trial in trials[name]])))
        for name in ("Leukemia", "Lymphoma")
        if name in trials
    }
    text = "Table 1 (ours): epsilon has entropies by log10 over ln kappa, 0.434 times eq. 5 (here: within 5 %)"
    holds = all(abs(ratio - 1) < 0.05 for ratio in ratios.values())
    ours = "published over ours so scaled: " + listed(ratios, ".3f")
    return [Claim(text, holds, ours, "section 5.2, table 1", "the 900th largest balanced gain")] if ratios else []


def apart_claims(tables: Mapping[Place, Sequence[float]]) -> list[Claim]:
    found = {place[2]: values for place, values in tables.items() if place[1].endswith("scaled apart")}
    if not found:
        return []
    ours = "; ".join(f"{name} {min(values):.2f} to {max(values):.2f}" for name, values in found.items())
    one_class = (58.82, 41.18)
    holds = all(min(abs(value - each) for each in one_class) < 0.01 for values in found.values() for value in values)
    text = "Leukemia (ours): all genes' 58.82 and 41.18 are one class for every patient, as of a test part scaled apart"
    return [Claim(text, holds, ours, "table 3", "5 forests of 30 trees, 5 trees")]


# ---- figure 2, and the searches of CFS


def figure_claims(data: str, curves: Curves) -> list[Claim]:
    """Few genes are best; nothing is said of a table that has no more than 900."""
    sizes, claims = np.array(curves.sizes), []
    if sizes[-1] <= MANY:
        return []
    for name, values in curves.accuracy.items():
        accuracy = np.array(values)
        few, many = accuracy[sizes < FEW].max(), accuracy[sizes > MANY].max()
        claims.append(
            Claim(
                f"Figure 2, {data}, {name}: best with fewer than {FEW} genes, least with more than {MANY}",
                bool(few == accuracy.max() and many < few),
                f"largest accuracy {few:.2f} below {FEW} genes, {many:.2f} above {MANY}, {accuracy[-1]:.2f} with all",
                "section 5.2, figure 2" if data == "Leukemia" else "section 5.2, footnote 1",
                f"one split, {FIGURE_TREES} trees",
            )
        )
    return claims


def search_claims(tables: Mapping[Place, Sequence[float]]) -> list[Claim]:
    """Whether a search of CFS gives the published number of genes."""
    known, claims = {each.place: each.value for each in published(NAME)}, []
    for name in ("Leukemia", "Lymphoma"):
        genes = {place[1]: each[0] for place, each in tables.items() if place[0::2] == (BY_SEARCH, "genes")}
        mine = {row.removeprefix(f"{name}, "): value for row, value in genes.items() if row.startswith(name)}
        if not mine:
            continue
        goal = known["Table 3", f"{name} CFS", "RF features"]
        text = f"{name}: CFS, which adds or removes, from no or all genes, selects {goal:g} (here: within 3)"
        near = any(abs(value - goal) <= 3 for search, value in mine.items() if "removes" in search)
        claims.append(Claim(text, near, "genes: " + listed(mine, "g"), "section 2.2, table 3", "one split"))
    return claims
