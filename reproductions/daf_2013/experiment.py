"""Somol, Grim, Filip and Pudil 2013: when to stop adding probes, by C and C2, on Reuters and Madelon."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probewise.engine.probes import ProbePlan
from probewise.engine.run import Run, RunningStats
from probewise.engine.tally import TallySheet, positions
from probewise.plots import expected_change
from probewise.stopping import OrderChange, RelativeChange, Rule, Settled

from ..daf_2011.data import SETUPS, accuracy, best_first, first_probes, halves, informative, prepared, ranked
from ..judge import Evidence, rules
from ..pictures import Line, Panel, Picture, Surface
from ..results import Findings, Numbers
from ..work import Work

NAME = "daf-2013"
TITLE = "On stopping rules in dependency-aware feature ranking"
LARGEST_PROBE, LOOK, TOP, AGREEMENT = 200, 400, 20, 0.9
RULES: dict[str, Rule] = {
    "C < 1": OrderChange(1.0),
    "relative C2 < 0.01": RelativeChange(0.01),
    "settled, top 20": Settled(TOP, AGREEMENT),
}
PUBLISHED_RULE = "relative C2 < 0.01"
HISTORY = ("order_change", "value_change", "relative_change")
AT_STOPS = {"Reuters": 500, "Madelon": 20}
FULL_PROBES = 60_000
EARLY, HALF, SHOWN_LOOK = 3_200, 25_600, 30  # probes, probes, look after 12,000 probes
N_EQUAL, N_LIMIT, LIMIT_COUNTS = 500, 8, (400, 4_000, 40_000)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """Splits, probes, the sets, and where accuracy is measured."""

    splits: int
    probes: int
    sizes: Mapping[str, tuple[int, ...]]
    counts: tuple[int, ...] = (200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 60_000)


SIZES = {"Reuters": (10, 20, 50, 100, 200, 500, 1000), "Madelon": (2, 5, 10, 15, 20, 30, 50, 100, 200)}
PROFILES = {
    "quick": Settings(5, 4_000, {"Madelon": SIZES["Madelon"]}, (200, 400, 800, 1_600, 4_000)),
    "full": Settings(5, FULL_PROBES, SIZES),
}


def run(work: Work) -> Findings:
    """A long run on each split of each set: accuracy, C and C2 along it, and where each rule would have stopped."""
    settings = work.settings
    ours: Numbers = {
        ("Section 4", "all sets", "largest probe"): LARGEST_PROBE,
        ("Section 4", "all sets", "probes between looks"): LOOK,
        ("Section 4", "all sets", "relative C2 to stop at"): RelativeChange().threshold,
        ("Section 4", "all sets", "agreement of settled features (%)"): 100 * AGREEMENT,
        ("Section 4", "all sets", "data sets shown"): len(settings.sizes),
        ("Section 4", "any data", "probes until relative C2 is below 1%"): LOOK
        * int(1 + np.argmax(expected_change(FULL_PROBES // LOOK) < RelativeChange().threshold)),
    }
    evidence: dict[str, dict[str, Evidence]] = defaultdict(dict)
    panels: list[Any] = []
    for name, sizes in settings.sizes.items():
        X, y = prepared(work.data(SETUPS[name].file))
        ours["Section 4", name, "classes"], ours["Section 4", name, "features"] = len(np.unique(y)), X.shape[1]
        if name == "Madelon":
            n_informative = len(informative(work.data("madelon")))
            ours["Section 4", name, "informative features"] = n_informative
            ours["Section 4", name, "noise features"] = X.shape[1] - n_informative
        function = partial(watched_split, name, X, y, work)
        options = {"probes": settings.probes, "counts": settings.counts, "sizes": sizes}
        results = list(work.units(SETUPS[name].file, function, range(settings.splits), (X, y), **options).values())
        ours |= numbers(name, results, settings)
        compared(name, results, settings, evidence)
        panels += drawn(name, results, settings)
    games(work.seed, ours, evidence)
    surfaces, curves = panels[::2], panels[1::2]
    pictures = [Picture(f"Figure {1 + (panel.title == 'Madelon')}", [panel]) for panel in surfaces]
    return ours, evidence, [*pictures, Picture("C and C2", curves)]


# ---- the experiment


def watched_split(name: str, X: Any, y: NDArray[Any], work: Work, split: int) -> dict[str, Any]:
    """A run on one split, looked at after every 400 probes."""
    settings, (train, test, seed) = work.settings, halves(y, work.seed, split)
    ledger = work.runs / f"{SETUPS[name].file}-{split}.sqlite"
    options = {"tau": LARGEST_PROBE, "ledger": ledger, "check_every": LOOK, "device": work.device}
    run = ranked(SETUPS[name].criterion, X[train], y[train], settings.probes, seed, **options)
    history, stops = watched(run, RULES)
    model = next(iter(SETUPS[name].classifiers.values()))

    @cache  # later subsets are often equal
    def tested(features: tuple[int, ...]) -> float:
        return accuracy(model, X, y, list(features), train, test)

    def reached(count: int, size: int) -> float:
        """Accuracy with the best features after so many probes."""
        return tested(tuple(np.sort(best_first(first_probes(run, count))[:size]).tolist()))

    result = {
        "accuracy": [[reached(count, size) for size in settings.sizes[name]] for count in settings.counts],
        "history": history,
        "stops": stops,
        "at stops": {rule: reached(count, AT_STOPS[name]) for rule, count in stops.items()},
        "at end": reached(settings.probes, AT_STOPS[name]),
    }
    ledger.unlink(missing_ok=True)
    return result


def watched(run: Run, rules: Mapping[str, Rule]) -> tuple[dict[str, list[float]], dict[str, int]]:
    """C, C2 and relative C2 at every look of a run, and the number of probes at which each rule would have stopped."""
    watch = frozenset().union(*(rule.watch for rule in rules.values()))
    stats = RunningStats(run.plan, run.ledger, block_size=run.settings.block_size, check_every=LOOK, watch=watch)
    history: dict[str, list[float]] = {name: [] for name in ("probes", *HISTORY)}
    stops: dict[str, int] = {}
    while stats.n_known < run.ledger.n_probes:
        state = stats.update()
        for name, rule in rules.items():
            if name not in stops and rule(state):
                stops[name] = state.n_probes
        if state.look is not None and state.look.n_probes == state.n_probes:
            look = asdict(state.look)
            history["probes"].append(state.n_probes)
            for name in HISTORY:
                history[name].append(look[name])
    return history, stops


def compared(name: str, results: list[Any], settings: Settings, evidence: dict[str, dict[str, Evidence]]) -> None:
    """Evidence of one set."""
    counts, short = list(settings.counts), ""
    if settings.probes < FULL_PROBES:
        short = f"{settings.probes:,} probes instead of {FULL_PROBES:,}"

    def add(claim: str, values: Any) -> None:
        evidence[claim][name] = Evidence(np.array(values), short=short)

    for rule in rules(NAME) if short else ():
        if name in rule.columns:
            evidence[rule.id][name] = Evidence(short=short)
    means = 100 * np.array([result["accuracy"] for result in results]).mean(axis=2)  # split, count
    if not short:
        early, half = means[:, counts.index(EARLY)], means[:, counts.index(HALF)]
        add("quick, then slow", (early - means[:, 0]) - (means[:, -1] - early))
        add("no excessive number of probes", half - means[:, -1])
        stopped = [result["at stops"].get(PUBLISHED_RULE) for result in results]
        ends = [result["at end"] for result in results]
        add("threshold of 1%", [100 * (at - end) for at, end in zip(stopped, ends, strict=True) if at is not None])
        relative = []
        for result in results:
            c, c2 = result["history"]["order_change"], result["history"]["relative_change"]
            relative.append(c[SHOWN_LOOK - 1] / c[1] - c2[SHOWN_LOOK - 1])
        add("C2 converges, C hardly", relative)
        least = min(min(result["history"]["order_change"][1:]) for result in results)
        text = f"smallest C at any look: {least:.2f} places"
        evidence["the order never rests"][name] = Evidence(fact=least > 0, text=text)
    if name == "Madelon":
        place = settings.sizes[name].index(TOP)
        steps = 100 * np.abs(np.diff([[row[place] for row in result["accuracy"]] for result in results], axis=1))
        earlier, later = np.array_split(steps, [steps.shape[1] // 2], axis=1)
        add("later probes stabilize", earlier.mean(axis=1) - later.mean(axis=1))


def numbers(name: str, results: list[Any], settings: Settings) -> Numbers:
    found: Numbers = {}
    values = 100 * np.array([result["accuracy"] for result in results])
    for k, count in enumerate(settings.counts):
        for s, size in enumerate(settings.sizes[name]):
            found[f"Accuracy on {name} by probes", f"{count:,} probes", str(size)] = values[:, k, s]
        found[f"Accuracy on {name} by probes", f"{count:,} probes", "mean"] = values[:, k].mean(axis=1)
    probes = results[0]["history"]["probes"]
    expected = expected_change(len(probes))
    for look in sorted({2, 3, 6, 11, 21, 31, 51, 101, len(probes)} & set(range(2, len(probes) + 1))):
        row = f"{int(probes[look - 1]):,} probes"
        for column, measure in (("C", "order_change"), ("C2", "value_change"), ("relative C2", "relative_change")):
            found[f"C and C2 on {name}", row, column] = [r["history"][measure][look - 1] for r in results]
        found[f"C and C2 on {name}", row, "relative C2 expected on any data"] = float(expected[look - 1])
    for rule in RULES:
        at = [result["stops"][rule] for result in results if rule in result["stops"]]
        found[f"Where rules stop on {name}", rule, "splits stopped"] = len(at)
        if at:
            found[f"Where rules stop on {name}", rule, "probes"] = at
            right = [100 * result["at stops"][rule] for result in results if rule in result["at stops"]]
            found[f"Where rules stop on {name}", rule, "accuracy (%)"] = right
    found[f"Where rules stop on {name}", "end of the run", "accuracy (%)"] = [100 * r["at end"] for r in results]
    return found


def drawn(name: str, results: list[Any], settings: Settings) -> list[Any]:
    """The surface of figure 1 or 2, and C and C2 along the run."""
    mean = 100 * np.array([result["accuracy"] for result in results]).mean(axis=0)
    axes = ("probes", settings.counts), ("subset size d", settings.sizes[name]), ("accuracy (%)", mean)
    surface = Surface(name, *axes)
    probes, lines = np.array(results[0]["history"]["probes"])[1:], []
    for title, measure in (("C", "order_change"), ("C2", "value_change")):
        values = np.mean([result["history"][measure][1:] for result in results], axis=0)
        lines.append(Line(f"{title} / first {title}", probes, values / values[0]))
    expected = expected_change(len(probes) + 1)[1:]
    lines.append(Line("expected C2 on any data", probes, expected))
    return [surface, Panel(f"{name}", "probes", "relative change", lines, log_y=True)]


# ---- what the paper proves, in games whose J is known


def games(seed: int, ours: Numbers, evidence: dict[str, dict[str, Evidence]]) -> None:
    n_looks = FULL_PROBES // LOOK
    plan, sheet, noise = ProbePlan(N_EQUAL, LARGEST_PROBE, seed=seed), TallySheet(N_EQUAL), np.random.default_rng(seed)
    looked = []
    for k in range(n_looks):
        sheet.add(plan.draw(k * LOOK, (k + 1) * LOOK), noise.random(LOOK))
        looked.append(sheet.view().daf0())
    change = [float(np.mean(np.abs(positions(b) - positions(a)))) for a, b in pairwise(looked)]
    for look in (2, 11, 51, 101, n_looks):
        ours["C of 500 equal features", f"look {look}", "C"] = change[look - 2]
    text = f"C falls from {change[0]:.1f} to {change[-1]:.1f} places"
    facts = {"C need not go to zero": Evidence(fact=change[-1] > change[0] / 2, text=text)}
    starts = (0, n_looks // 10, n_looks // 3, 2 * n_looks // 3)
    table = np.array(looked)
    furthest = [max(float(np.abs(table[s:] - each).mean(axis=1).max()) for each in table[s:]) for s in starts]
    parts = (f"from look {start + 1} on {value:.2g}" for start, value in zip(starts, furthest, strict=True))
    text = f"largest C2 of any two: {', '.join(parts)}"
    facts["C2 falls below any threshold"] = Evidence(fact=all(a > b for a, b in pairwise(furthest)), text=text)
    sheet.add(plan.draw(FULL_PROBES, FULL_PROBES + 1), noise.random(1))
    changed = int(np.count_nonzero(sheet.view().daf0() - looked[-1]))
    facts["one probe"] = Evidence(fact=changed < N_EQUAL, text=f"{changed} of {N_EQUAL} coefficients change")
    evidence.update({claim: {f"{N_EQUAL} equal features": fact} for claim, fact in facts.items()})
    errors = to_the_limit(seed)
    text = f"standard errors from the limit: {', '.join(f'{error:.1f}' for error in errors)}"
    evidence["finite limit"] = {f"{N_LIMIT} features": Evidence(fact=max(errors) < 4, text=text)}


def to_the_limit(seed: int) -> list[float]:
    """Largest distance of a coefficient from its limit (eq. 7), in standard errors, by number of probes."""
    subsets = [s for size in range(1, N_LIMIT + 1) for s in combinations(range(N_LIMIT), size)]
    worth = dict(zip(subsets, np.random.default_rng(seed).random(len(subsets)), strict=True))
    limit = in_the_limit(worth)
    plan, sheet, found = ProbePlan(N_LIMIT, seed=seed), TallySheet(N_LIMIT), []
    for start, stop in zip((0, *LIMIT_COUNTS), LIMIT_COUNTS, strict=False):
        probes = plan.draw(start, stop)
        sheet.add(probes, np.array([worth[tuple(sorted(probe.tolist()))] for probe in probes]))
        tally = sheet.view()
        found.append(float((np.abs(tally.daf0() - limit) / tally.std_errors()).max()))
    return found


def in_the_limit(worth: Mapping[tuple[int, ...], float]) -> Floats:
    """Eq. 7: the mean of J over subsets with a feature minus that without, by the probability of each subset."""
    chance = {s: 1 / N_LIMIT / comb(N_LIMIT, len(s)) for s in worth}
    sides = np.zeros((2, 2, N_LIMIT))  # J times probability, and probability; without and with; by feature
    for subset, value in worth.items():
        held = np.isin(np.arange(N_LIMIT), subset).astype(int)
        sides[:, held, np.arange(N_LIMIT)] += np.array([value * chance[subset], chance[subset]])[:, None]
    without, with_it = sides[0] / sides[1]
    return np.asarray(with_it - without)
