"""Somol, Grim, Filip and Pudil 2013: when to stop adding probes, by C and C2, on Reuters and Madelon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from probewise.daf import DAF
from probewise.engine.replay import RunningStats
from probewise.engine.run import Run
from probewise.engine.tally import positions
from probewise.plots import ConvergenceDisplay, expected_change
from probewise.stopping import MaxProbes, MinCoverage, OrderChange, RelativeChange, Rule, Settled, ValueChange
from probewise.study import split_rows

from ..base import Claim, Outcome, Place, cells
from ..daf_2011.data import SETUPS, informative, prepared
from ..pictures import Line, Panel, Picture
from ..replays import Ledgers, Replay, first_probes
from ..work import Reproduction, folder_of
from .games import games

NAME = "daf-2013"
TITLE = "Somol, Grim, Filip, Pudil: On stopping rules in dependency-aware feature ranking, 2013"
SETS = ("Reuters", "Madelon")
LARGEST_PROBE = 200
LOOK = 400
TOP = 20
SETTLED = f"settled, top {TOP}"
NEVER = 1e-9  # C below this: no feature moved
RULES: dict[str, Rule] = {
    "C = 0": OrderChange(NEVER),
    "C < 1": OrderChange(1.0),
    "C2 < 0.0001": ValueChange(1e-4),
    "relative C2 < 0.1": RelativeChange(0.1),
    "relative C2 < 0.01": RelativeChange(0.01),
    "every feature in 100 probes": MinCoverage(100),
    SETTLED: Settled(TOP, 0.9),
}
PUBLISHED_RULE = "relative C2 < 0.01"
HISTORY = ("order_change", "value_change", "relative_change", "left_out")
NEARLY = 0.01  # accuracy: a point
SHORT = 0.1  # of a run
QUICKER = 10  # times
TENTH = 0.1


@dataclass(frozen=True)
class Settings:
    """A profile: splits, and for each set probes, when accuracy is measured, and at which subset sizes."""

    trials: int
    probes: Mapping[str, int]
    counts: tuple[int, ...]
    sizes: Mapping[str, tuple[int, ...]]
    at_stops: Mapping[str, int]


SIZES = {"Reuters": (20, 100, 500), "Madelon": (5, 10, 20, 50, 100)}
AT_STOPS = {"Reuters": 500, "Madelon": 20}
COUNTS = (200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 60_000)
PROFILES = {
    "quick": Settings(1, {"Reuters": 60_000, "Madelon": 60_000}, COUNTS, SIZES, AT_STOPS),
    "full": Settings(
        5,
        {"Reuters": 60_000, "Madelon": 60_000},
        COUNTS,
        {"Reuters": (10, 20, 50, 100, 200, 500, 1000), "Madelon": (2, 5, 10, 15, 20, 30, 50, 100, 200)},
        AT_STOPS,
    ),
}


def run(reproduction: Reproduction) -> Outcome:
    """A long run on each split of each set in the settings, and what every rule would have made of it."""
    settings, seed, data = reproduction.settings, reproduction.seed, reproduction.data
    tables = {name: prepared(data(SETUPS[name].file)) for name in settings.probes}
    with folder_of(reproduction) as folder:
        work = Watched(settings, tables, Ledgers(folder / "runs" / "ledgers"), seed, reproduction.device)
        runs = reproduction.conduct(
            "watched",
            work,
            [(name, trial) for trial in range(settings.trials) for name in tables],
            asdict(settings) | {"seed": seed, "rules": {name: repr(rule) for name, rule in RULES.items()}},
            "runs",
            before=None if reproduction.device == "cpu" else work.make,
        )
    found = {name: Found.of(name, settings, [runs[name, trial] for trial in range(settings.trials)]) for name in tables}
    ours: dict[Place, float] = {
        ("Section 4", "all sets", "largest probe"): LARGEST_PROBE,
        ("Section 4", "all sets", "probes between looks"): LOOK,
        ("Section 4", "all sets", "relative C2 to stop at"): RelativeChange().threshold,
        ("Section 4", "all sets", "data sets shown"): len(tables),
    }
    for name, (X, y) in tables.items():
        ours["Section 4", name, "classes"] = len(np.unique(y))
        ours["Section 4", name, "features"] = X.shape[1]
        if name == "Madelon":
            truth = informative(data("madelon"))
            ours["Section 4", name, "informative features"] = len(truth)
            ours["Section 4", name, "noise features"] = X.shape[1] - len(truth)
        ours |= found[name].numbers()
    played, proved = games(max(settings.probes.values()) // LOOK, LOOK, seed)
    ours |= played
    claims = [*(claim for each in found.values() for claim in each.claims()), *proved, _interpretable()]
    histories = {name: each.histories for name, each in found.items()}
    convergence = Picture("C and C2", save=ConvergenceDisplay(histories).save)
    return Outcome(cells(NAME, ours), claims, pictures=[_surface(found), convergence])


# ---- the experiment


@dataclass(frozen=True)
class Watched:
    """Work of one worker: a run on one split, examined at regular intervals."""

    settings: Settings
    tables: Mapping[str, tuple[Any, NDArray[Any]]]
    ledgers: Ledgers = field(repr=False)
    seed: int = 0
    device: str = "cpu"

    def _planned(self, unit: tuple[str, int]) -> tuple[Replay, NDArray[np.int64], NDArray[np.int64]]:
        """The run, and the rows to train and to test on."""
        name, trial = unit
        X, y = self.tables[name]
        split_seed, daf_seed = np.random.SeedSequence([self.seed, trial]).generate_state(2).tolist()
        daf = DAF(
            criterion=SETUPS[name].criterion,
            max_probe_size=min(LARGEST_PROBE, X.shape[1]),
            stop=MaxProbes(self.settings.probes[name]),
            check_every=LOOK,
            random_state=daf_seed,
            device=self.device,
        )
        return Replay(daf, ledgers=self.ledgers), *split_rows(y, 0.5, split_seed)

    def make(self, unit: tuple[str, int]) -> None:
        """Only the run."""
        replay, train, _ = self._planned(unit)
        X, y = self.tables[unit[0]]
        replay.make(X[train], y[train])

    def __call__(self, unit: tuple[str, int]) -> dict[str, Any]:
        name, settings = unit[0], self.settings
        X, y = self.tables[name]
        replay, train, test = self._planned(unit)
        run, classifier = replay.made(X[train], y[train]), next(iter(SETUPS[name].classifiers.values()))
        n_probes = run.ledger.n_probes
        history, stops = watched(run, RULES)

        @cache  # later subsets are often equal
        def accuracy(features: tuple[int, ...]) -> float:
            here = X[:, list(features)]
            return float(np.mean(clone(classifier).fit(here[train], y[train]).predict(here[test]) == y[test]))

        def reached(count: int, *sizes: int) -> list[float]:
            """With the best features, of each number, after so many probes."""
            best = np.argsort(positions(first_probes(run, count).tally.daf0()))
            return [accuracy(tuple(np.sort(best[:size]).tolist())) for size in sizes]

        counts, at = [count for count in settings.counts if count <= n_probes], settings.at_stops[name]
        result = {
            "counts": counts,
            "accuracy": [reached(count, *settings.sizes[name]) for count in counts],
            "history": history,
            "stops": stops,
            "accuracy_at_stops": {rule: reached(count, at)[0] for rule, count in stops.items()},
            "accuracy_at_end": reached(n_probes, at)[0],
            "n_probes": n_probes,
            "seconds": run.ledger.seconds,
        }
        self.ledgers.file(X[train], y[train], replay.daf).unlink(missing_ok=True)
        return result


def watched(run: Run, rules: Mapping[str, Rule]) -> tuple[dict[str, list[float]], dict[str, int]]:
    """C, C2 and relative C2 at every look of a run, and the probes at which each rule first said stop."""
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


# ---- what came out


@dataclass(frozen=True)
class Found:
    """The runs of one set: accuracy (splits, counts, sizes), histories, and where each rule stopped."""

    name: str
    settings: Settings
    counts: list[int]
    accuracy: NDArray[np.float64]
    histories: list[dict[str, NDArray[np.float64]]]
    runs: list[dict[str, Any]]

    @classmethod
    def of(cls, name: str, settings: Settings, runs: list[dict[str, Any]]) -> Found:
        histories = [
            {key: np.array(values, dtype=np.float64) for key, values in each["history"].items()} for each in runs
        ]
        return cls(name, settings, runs[0]["counts"], np.array([each["accuracy"] for each in runs]), histories, runs)

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.settings.sizes[self.name]

    @property
    def figure(self) -> str:
        return f"Figure {1 + SETS.index(self.name)}"

    def mean(self, measure: str) -> NDArray[np.float64]:
        """Mean of C, C2 or relative C2 at each look, over the splits."""
        return np.mean([history[measure] for history in self.histories], axis=0)

    def stops(self, rule: str) -> list[float]:
        """Probes at which the rule stopped, of each split where it did."""
        return [each["stops"][rule] for each in self.runs if rule in each["stops"]]

    def reached(self, rule: str) -> float:
        """Mean accuracy where the rule stopped."""
        return float(np.mean([run["accuracy_at_stops"][rule] for run in self.runs if rule in run["stops"]]))

    @property
    def at_end(self) -> float:
        return float(np.mean([run["accuracy_at_end"] for run in self.runs]))

    def numbers(self) -> dict[Place, float]:
        where = f"{self.figure}, accuracy on {self.name} by probes"
        found: dict[Place, float] = {}
        for k, count in enumerate(self.counts):
            for s, size in enumerate(self.sizes):
                found[where, f"{count:,} probes", f"d = {size}"] = float(self.accuracy[:, k, s].mean())
        where, probes = f"{self.figure}, C and C2 on {self.name}", self.histories[0]["probes"]
        expected = expected_change(len(probes))
        for look in sorted({2, 3, 6, 11, 21, 51, 101, len(probes)} & set(range(2, len(probes) + 1))):
            row = f"look {look}, {int(probes[look - 1]):,} probes"
            for column, measure in (("C", "order_change"), ("C2", "value_change"), ("relative C2", "relative_change")):
                found[where, row, column] = float(self.mean(measure)[look - 1])
            found[where, row, "relative C2 expected on any data"] = float(expected[look - 1])
        where, at = f"Where rules stop on {self.name}", self.settings.at_stops[self.name]
        for rule in RULES:
            if stops := self.stops(rule):
                found[where, rule, "probes"] = float(np.mean(stops))
                found[where, rule, f"accuracy with {at} features"] = self.reached(rule)
            found[where, rule, "splits stopped"] = len(stops)
        found[where, "end of the run", "probes"] = float(np.mean([each["n_probes"] for each in self.runs]))
        found[where, "end of the run", f"accuracy with {at} features"] = self.at_end
        found[where, "end of the run", "splits stopped"] = len(self.runs)
        return found

    def claims(self) -> list[Claim]:
        return [
            self._quick_gain(),
            *([self._stabilises()] if self.name == "Madelon" else []),
            self._few_probes(),
            self._order_never_rests(),
            self._values_settle(),
            self._same_on_any_data(),
            self._threshold(),
        ]

    def _quick_gain(self) -> Claim:
        """A probe of the first tenth of the run brings many times what one of the rest does."""
        means, counts = self.accuracy.mean(axis=(0, 2)), self.counts
        at = max(1, int(np.searchsorted(counts, SHORT * counts[-1], side="right")) - 1)
        early = (means[at] - means[0]) / (counts[at] - counts[0])
        late = (means[-1] - means[at]) / (counts[-1] - counts[at])
        shown = ", ".join(f"{count:,}: {mean:.3f}" for count, mean in zip(counts, means, strict=True))
        later = "very slow" if self.name == "Reuters" else "negligible"
        return Claim(
            f"{self.name}: accuracy improves very quickly after a small number of probes, the rest brings {later} "
            f"improvement (here: a probe of the first tenth brings {QUICKER} times as much as one of the rest)",
            bool(early > 0 and late < early / QUICKER),
            f"mean over sizes by probes: {shown}; points a thousand probes: {1e5 * early:+.2f} up to {counts[at]:,}, "
            f"{1e5 * late:+.3f} from there on",
            f"section 4, figure {1 + SETS.index(self.name)}",
            self._evidence,
        )

    def _stabilises(self) -> Claim:
        """With about as many features as are informative, accuracy changes less from count to count later on."""
        place = int(np.argmin(np.abs(np.array(self.sizes) - TOP)))
        steps = 100 * np.abs(np.diff(self.accuracy[:, :, place], axis=1)).mean(axis=0)
        half = len(steps) // 2
        shown = ", ".join(f"{count:,}: {step:.2f}" for count, step in zip(self.counts[1:], steps, strict=True))
        text = f"{self.name}: later probes stabilise accuracy for subsets of about {TOP}, the informative features "
        return Claim(
            text + "(here: it changes less in the later half of the steps)",
            bool(steps[half:].mean() < steps[:half].mean()),
            f"with {self.sizes[place]} features, points from the count before, mean over splits: {shown}",
            "section 4, figure 2",
            self._evidence,
        )

    def _few_probes(self) -> Claim:
        """Claim that accuracy is within a point of its final value before half of the run."""
        means, counts = self.accuracy.mean(axis=(0, 2)), self.counts
        least = counts[int(np.argmax(means >= means[-1] - NEARLY))]
        return Claim(
            f"{self.name}: no excessive number of probes is needed for a ranking that works well on independent data "
            "(here: half of the run for all but a point)",
            least <= counts[-1] / 2,
            f"mean over sizes within a point of {means[-1]:.3f} from {least:,} probes on",
            "section 5",
            self._evidence,
        )

    @property
    def _evidence(self) -> str:
        return f"{len(self.runs)} splits, {self.runs[0]['n_probes']:,} probes each"

    def _order_never_rests(self) -> Claim:
        change, n_probes = self.mean("order_change"), self.runs[0]["n_probes"]
        evidence = (
            f"C is {change[1]:.2f} places at the second look, {change[len(change) // 2]:.2f} half-way and "
            f"{change[-1]:.2f} after {n_probes:,} probes; rules stopped: C < 1 in {len(self.stops('C < 1'))}, "
            f"C = 0 in {len(self.stops('C = 0'))} of {len(self.runs)} splits"
        )
        text = f"{self.name}: C converges very slowly, and no change of order at all is unrealistic"
        return Claim(text, not self.stops("C = 0"), evidence, "section 4, proposition 1", self._evidence)

    def _values_settle(self) -> Claim:
        """C2 falls to a tenth of what it first was before C does, and in a fifth of the run."""
        looks, n_probes = self.histories[0]["probes"], self.runs[0]["n_probes"]
        shares = {"C2": self.mean("relative_change"), "C": self.mean("order_change") / self.mean("order_change")[1]}
        tenth = {name: min(looks[share <= TENTH], default=np.inf) for name, share in shares.items()}
        at = {name: f"after {probes:,.0f} probes" if probes < np.inf else "never" for name, probes in tenth.items()}
        return Claim(
            f"{self.name}: C2 converges reasonably fast (here: to a tenth within a fifth of the run, and before C)",
            bool(tenth["C2"] <= min(n_probes / 5, tenth["C"])),
            f"C2 is a tenth of its first value {at['C2']}, C {at['C']}; at the end they are {shares['C2'][-1]:.4f} and "
            f"{shares['C'][-1]:.3f} of it",
            "section 4, lemma 1",
            self._evidence,
        )

    def _same_on_any_data(self) -> Claim:
        relative, expected = self.mean("relative_change")[1:], expected_change(len(self.histories[0]["probes"]))[1:]
        ratio = relative / expected
        text = f"{self.name} (ours): relative C2 follows sqrt(1 + 1/k) / (k + 1) over its first value, "
        text += "whatever the data (here: within a fifth at every look)"
        evidence = f"measured / expected: median {np.median(ratio):.3f}, from {ratio.min():.3f} to {ratio.max():.3f} "
        holds = bool((np.abs(ratio - 1) < 0.2).all())
        return Claim(text, holds, evidence + f"over {len(ratio)} looks", "stopping condition 2a", self._evidence)

    def _threshold(self) -> Claim:
        stops = self.stops(PUBLISHED_RULE)
        predicted = predicted_stop()
        text = f"{self.name}: stopping where C2 falls to 1 % of its first value is practical"
        if not stops:
            evidence = f"not reached within the run; expected after {predicted:,} probes on any data"
            return Claim(text, None, evidence, "section 4", self._evidence)
        at, reached = self.settings.at_stops[self.name], self.reached(PUBLISHED_RULE)
        evidence = f"stops after {min(stops):,} to {max(stops):,} probes (expected on any data: {predicted:,}), "
        evidence += f"accuracy there with {at} features {reached:.3f}, {self.at_end:.3f} at the end of the run; "
        settled = self.stops(SETTLED)
        evidence += (
            f"two halves of the probes agree on 90 % of the top {TOP} after {np.mean(settled):,.0f} probes in "
            f"{len(settled)} of {len(self.runs)} splits (accuracy {self.reached(SETTLED):.3f})"
            if settled
            else f"two halves of the probes never agree on 90 % of the top {TOP}"
        )
        return Claim(text, bool(reached >= self.at_end - NEARLY), evidence, "section 4", self._evidence)


def predicted_stop() -> int:
    """Probes after which relative C2 is expected below its threshold, on any data."""
    return LOOK * (1 + int(np.argmax(expected_change(1000) < RelativeChange().threshold)))


def _interpretable() -> Claim:
    return Claim(
        "A threshold on the averaged change of DAF values is preferable to other stopping rules in interpretability",
        None,
        f"a judgement, not a measurement; relative C2 is expected below {RelativeChange().threshold:g} after "
        f"{predicted_stop():,} probes whatever the data, so that it says how many probes there were",
        "section 5",
        "the law of averages, which the rows on C2 bear out",
    )


# ---- the figures


def _surface(found: Mapping[str, Found]) -> Picture:
    panels = []
    for each in found.values():
        means = each.accuracy.mean(axis=0)
        lines = [Line(f"d = {size}", each.counts, means[:, s].tolist()) for s, size in enumerate(each.sizes)]
        panels.append(Panel(f"{each.figure}, {each.name}", "probes", "accuracy on the test half", lines, log=True))
    return Picture("Figures 1 and 2", panels)
