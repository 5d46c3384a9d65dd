"""Somol and Grim 2011: DAF against best individual features and floating search on four data sets."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from probewise.bif import BIF
from probewise.daf import DAF
from probewise.engine.probes import Subsets
from probewise.engine.run import Run
from probewise.sffs import SFFS
from probewise.stability import anhi, ati, cw_rel
from probewise.stopping import MaxProbes
from probewise.study import select, split_rows

from ..judge import Evidence, Rule, jackknifed, judge, rules
from ..pictures import Line, Panel, Picture
from ..results import Numbers, Outcome, cells
from ..work import Work, seeds
from .data import SETUPS, accuracy, best_first, first_probes, informative, prepared
from .svm import PAPERS_PROBES, svm_as_j

NAME = "daf-2011"
TITLE = "Fast dependency-aware feature selection in very-high-dimensional pattern recognition problems"
COEFFICIENTS = {"DAF0": "daf0", "DAF1": "daf1", "DAF2": "daf2"}
OF_PAPER = {"Reuters": 148_000, "Gisette": 46_400, "Madelon": 25_000, "Spambase": 160_000}  # table II
STABILITY = {"CW_rel": cw_rel, "ATI": ati, "ANHI": anhi}
N_FEATURES = {"Reuters": 9946, "Gisette": 5000, "Madelon": 500, "Spambase": 57}
SHOWN = ("DAF0", "BIF", "SFFS")  # methods whose subsets are kept
TOP = 20
WIDE = (10, 20, 50, 100, 200, 500, 1000)
FULL_SIZES = {
    "Reuters": WIDE,
    "Gisette": (2, 5, *WIDE),
    "Madelon": (1, 2, 3, 5, 7, 10, 15, 20, 30, 50),
    "Spambase": (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 28, 35, 45, 57),
}
KEPT = {name: sizes for rule in rules(NAME) for name, sizes in rule.sizes.items()} | {"Madelon": (10, 15, 20, 30)}


@dataclass(frozen=True)
class Settings:
    """Splits, probes and subset sizes of each set, and the effort of the other experiments; 0 leaves one out."""

    splits: int
    probes: Mapping[str, int]
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: FULL_SIZES)
    counts: tuple[int, ...] = ()  # figure 6
    taus: tuple[int, ...] = ()  # figure 7, with 8,000 probes each
    twice_splits: int = 0
    wide_taus: tuple[int, ...] = ()  # Reuters, each word in 100 probes
    wide_splits: int = 0
    remark_splits: int = 0
    svm_splits: int = 0
    svm_probes: int = PAPERS_PROBES


PROFILES = {
    "quick": Settings(5, {"Madelon": 2_000}, counts=(200, 500, 2_000)),
    "full": Settings(
        20,
        OF_PAPER,
        counts=(400, 1_000, 2_500, 5_000, 10_000, 16_667, 25_000),
        taus=(2, 5, 10, 20, 50, 100, 150, 300, 500),
        twice_splits=20,
        wide_taus=(20, 200, 1_000, 3_000, 9_946),
        wide_splits=5,
        remark_splits=5,
        svm_splits=5,
    ),
}

Found = Mapping[int, Mapping[str, Any]]  # results by split


def run(work: Work) -> Outcome:
    """Figures 2 to 7, the remarks, and the linear SVM in J."""
    settings = work.settings
    ours: Numbers = {}
    studies: dict[str, Found] = {}
    for name in settings.probes:
        X, y = prepared(work.data(SETUPS[name].file))
        ours |= shape(name, X, y)
        Experiment(name, X, y, work).run(studies)
    if "Madelon" in studies:
        truth = informative(work.data("madelon"))
        ours["Section V", "Madelon", "informative features"] = len(truth)
        ours["Section V", "Madelon", "features without power"] = N_FEATURES["Madelon"] - len(truth)
        hits = {method: hits_of(studies["Madelon"], method, truth) for method in SHOWN}
        ours |= {("Informative features among the top 20", "Madelon", m): each for m, each in hits.items()}
    found = Judge(studies, settings)
    evidence = found.evidence()
    if "Madelon" in studies:
        short = found.short("Madelon")
        evidence["Madelon's features"] = {
            "DAF0 finds 15 of 20": Evidence(hits["DAF0"] - 15, short=short),
            "BIF finds fewer than 10": Evidence(10 - hits["BIF"], short=short),
        }
    if settings.svm_splits:
        studies["SVM as J"] = svm_as_j(work)
        evidence["better than BIF, SVM as J"] = {"Reuters": svm_evidence(studies["SVM as J"], settings, ours)}
    ours |= numbers(studies, settings)
    claims = judge(rules(NAME), evidence, quick=work.quick)
    return Outcome(NAME, cells(NAME, ours), claims, pictures(studies, settings))


# ---- experiments


@dataclass(frozen=True)
class Experiment:
    """The studies of one data set, stored by split."""

    name: str
    X: Any
    y: NDArray[Any]
    work: Work

    def run(self, studies: dict[str, Found]) -> None:
        settings, name = self.work.settings, self.name
        sizes, probes = settings.sizes[name], settings.probes[name]
        studies[name] = self._units(name, self.compare, settings.splits, sizes=sizes, probes=probes)
        if name == "Madelon" and settings.counts:
            studies["Figure 6"] = self._units("Figure 6", self.by_count, settings.splits, counts=settings.counts)
        if name == "Madelon" and settings.taus:
            taus = dict.fromkeys(settings.taus, 8_000)
            studies["Figure 7"] = self._units(
                "Figure 7", partial(self.by_tau, taus), settings.splits, taus=settings.taus
            )
        if name == "Reuters" and settings.twice_splits:
            studies["Reuters twice"] = self._units(
                "Reuters twice", self.twice, settings.twice_splits, probes=2 * probes
            )
        if name == "Reuters" and settings.wide_splits:
            taus = {tau: 200 * self.X.shape[1] // (tau + 1) for tau in settings.wide_taus}
            found = self._units(
                "Reuters tau", partial(self.by_tau, taus), settings.wide_splits, taus=settings.wide_taus
            )
            studies["Reuters tau"] = found
        if name == "Madelon" and settings.remark_splits:
            studies["Agreement"] = self._units("Agreement", self.agreement, settings.remark_splits)
        if name == "Spambase" and settings.remark_splits:
            studies["Over-fitting"] = self._units("Over-fitting", self.optimism, settings.remark_splits)

    def _units(self, title: str, function: Any, splits: int, **options: Any) -> Found:
        return self.work.units(title.lower().replace(" ", "-"), function, range(splits), (self.X, self.y), **options)

    def _split(self, split: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        words = seeds(self.work.seed, split)
        return *split_rows(self.y, 0.5, words["split"]), words["selector"]

    def _daf(self, train: Any, n_probes: int, seed: int, tau: int | None = None, ledger: Path | None = None) -> Run:
        """A run of DAF on the training rows; with a ledger, an interrupted run is continued."""
        setup = SETUPS[self.name]
        options = {"max_probe_size": min(tau or setup.tau, self.X.shape[1]), "device": self.work.device}
        daf = DAF(criterion=setup.criterion, stop=MaxProbes(n_probes), random_state=seed, ledger=ledger, **options)
        run = daf.fit(self.X[train], self.y[train]).run_
        if run.interrupted:
            raise KeyboardInterrupt
        return run

    def _tested(self, order: NDArray[np.int64], train: Any, test: Any) -> list[float]:
        """Accuracy of J's classifier by size."""
        model = next(iter(SETUPS[self.name].classifiers.values()))
        sizes = self.work.settings.sizes[self.name]
        return [accuracy(model, self.X, self.y, order[:size], train, test) for size in sizes]

    def compare(self, split: int) -> dict[str, Any]:
        """Figures 2 to 5: accuracy by method, classifier and size, and subsets of some sizes."""
        setup, sizes = SETUPS[self.name], self.work.settings.sizes[self.name]
        train, test, seed = self._split(split)
        ledger = self.work.runs / f"{setup.file}-{split}.sqlite"
        started = time.perf_counter()
        run = self._daf(train, self.work.settings.probes[self.name], seed, ledger=ledger)
        seconds = {"DAF0": time.perf_counter() - started}
        subsets: dict[str, Sequence[Any]] = {}
        for method, coefficient in COEFFICIENTS.items():
            order = best_first(run, coefficient)
            subsets[method] = [np.sort(order[:size]) for size in sizes]
        searches = {"BIF": BIF(criterion=setup.criterion)}
        searches |= {"SFFS": SFFS(criterion=setup.criterion)} if setup.has_search else {}
        for method, selector in searches.items():
            started = time.perf_counter()
            subsets[method] = select(selector, self.X[train], self.y[train], list(sizes))
            seconds[method] = time.perf_counter() - started
        found = {
            method: {
                name: [accuracy(model, self.X, self.y, subset, train, test) for subset in each]
                for name, model in setup.classifiers.items()
            }
            for method, each in subsets.items()
        }
        kept = {
            method: {str(size): subsets[method][sizes.index(size)] for size in KEPT[self.name] if size in sizes}
            for method in SHOWN
            if method in subsets
        }
        held = float(run.tally.counts.mean())
        ledger.unlink(missing_ok=True)
        return {"accuracy": found, "subsets": kept, "seconds": seconds, "held": held}

    def by_count(self, split: int) -> dict[str, list[float]]:
        """Figure 6: accuracy by number of probes."""
        train, test, seed = self._split(split)
        run = self._daf(train, max(self.work.settings.counts), seed)
        counts = self.work.settings.counts
        return {str(count): self._tested(best_first(first_probes(run, count)), train, test) for count in counts}

    def twice(self, split: int) -> dict[str, Any]:
        """Reuters with the paper's number of probes and twice as many: accuracy, and subsets for the stability."""
        train, test, seed = self._split(split)
        n_probes = self.work.settings.probes[self.name]
        run = self._daf(train, 2 * n_probes, seed)
        orders = {str(count): best_first(first_probes(run, count)) for count in (n_probes, 2 * n_probes)}
        found: dict[str, Any] = {count: self._tested(order, train, test) for count, order in orders.items()}
        kept = {c: {str(size): np.sort(o[:size]) for size in KEPT[self.name]} for c, o in orders.items()}
        return found | {"subsets": kept}

    def by_tau(self, probes: Mapping[int, int], split: int) -> dict[str, list[float]]:
        """Accuracy by largest probe size."""
        train, test, seed = self._split(split)
        runs = ((tau, self._daf(train, count, seed, tau)) for tau, count in probes.items())
        return {str(tau): self._tested(best_first(run), train, test) for tau, run in runs}

    def agreement(self, split: int) -> dict[str, float]:
        """Correlation of DAF0 in two runs of other probes: by probes per feature, and by largest probe."""
        train, _, seed = self._split(split)

        def of(held: int, tau: int) -> float:
            n_probes = held * 2 * self.X.shape[1] // (tau + 1)
            runs = [self._daf(train, n_probes, seed + k, tau) for k in (0, 1)]
            return float(np.corrcoef([run.tally.daf0() for run in runs])[0, 1])

        by_held = {f"{held} probes": of(held, SETUPS[self.name].tau) for held in (10, 30, 100, 300)}
        return by_held | {f"tau {tau}": of(100, tau) for tau in (10, 50, 150, 500)}

    def optimism(self, split: int) -> dict[str, float]:
        """By method, J minus accuracy on the test half, mean over 5, 10 and 20 features; DAF with 2,000 probes."""
        train, test, seed = self._split(split)
        criterion, sizes = SETUPS[self.name].criterion, [5, 10, 20]
        X, y, model = self.X, self.y, KNeighborsClassifier(3)
        order = best_first(self._daf(train, 2_000, seed))
        chosen = {
            "DAF0": [order[:size] for size in sizes],
            "SFFS": select(SFFS(criterion=criterion), X[train], y[train], sizes),
        }
        bound, found = criterion.bind(X[train], y[train]), {}
        for method, subsets in chosen.items():
            right = [accuracy(model, X, y, subset, train, test) for subset in subsets]
            found[method] = 100 * float(np.mean(bound(Subsets.of(subsets))) - np.mean(right))
        return found


# ---- evidence


@dataclass(frozen=True)
class Judge:
    """Evidence for the rules from the studies that were run."""

    studies: Mapping[str, Found]
    settings: Settings

    def short(self, name: str) -> str:
        """Why the search was shorter than the paper's, if it was."""
        probes = self.settings.probes.get(name, 0)
        return "" if probes >= OF_PAPER[name] else f"{probes:,} probes instead of {OF_PAPER[name]:,}"

    def values(self, study: str, key: Sequence[str], sizes: Sequence[int], name: str) -> NDArray[np.float64]:
        """Percent by split, mean over the sizes; ``key`` leads to the list by size."""
        places, found = [self.settings.sizes[name].index(size) for size in sizes], []
        for result in self.studies[study].values():
            here: Any = result
            for each in key:
                here = here[each]
            found.append(100 * np.mean([here[place] for place in places]))
        return np.array(found)

    def lead(self, name: str, first: str, second: str, classifier: int, sizes: Sequence[int]) -> NDArray[np.float64]:
        model = list(SETUPS[name].classifiers)[classifier]
        one, other = (self.values(name, ("accuracy", each, model), sizes, name) for each in (first, second))
        return one - other

    def steadier(self, name: str, first: str, second: str, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Pseudo-values of the difference in CW_rel, mean over the sizes."""
        results, n_features = list(self.studies[name].values()), N_FEATURES[name]

        def difference(splits: Sequence[int]) -> float:
            measured = []
            for size in sizes:
                pair = [[np.array(results[k]["subsets"][m][str(size)]) for k in splits] for m in (first, second)]
                measured.append(cw_rel(pair[0], n_features) - cw_rel(pair[1], n_features))
            return float(np.mean(measured))

        return jackknifed(difference, len(results))

    def evidence(self) -> dict[str, dict[str, Evidence]]:
        by_id = {rule.id: rule for rule in rules(NAME)}
        found: dict[str, dict[str, Evidence]] = {}

        def add(claim: str, column: str, values: Any, short: str = "", text: str = "") -> None:
            found.setdefault(claim, {})[column] = Evidence(values, short=short, text=text)

        def sizes(claim: str, name: str) -> Sequence[int]:
            rule: Rule = by_id[claim]
            return rule.sizes[name]

        here = [name for name in SETUPS if name in self.studies]
        for name in here:
            short = self.short(name)
            for number, claim in enumerate(("better than BIF, classifier of J", "better than BIF, other classifier")):
                add(claim, name, self.lead(name, "DAF0", "BIF", number, sizes(claim, name)), short)
            claim = "no need to norm"
            leads = [self.lead(name, "DAF0", other, 0, sizes(claim, name)) for other in ("DAF1", "DAF2")]
            add(claim, name, min(leads, key=np.mean), short)
            claim = "more stable on Madelon" if name == "Madelon" else "as stable as BIF"
            add(claim, name, self.steadier(name, "DAF0", "BIF", sizes(claim, name)), short)
        claim = "especially in high dimension"
        for column in by_id[claim].columns if len(here) == len(SETUPS) else ():
            pair = [
                np.mean([self.lead(name, "DAF0", "BIF", c, sizes(claim, name)) for c in (0, 1)], axis=0)
                for name in column.split(" - ")
            ]
            add(claim, column, pair[0] - pair[1])
        if "Spambase" in here:
            self._spambase(add, sizes)
        for study, claims in (
            ("Figure 6", {"two hours suffice": {"Madelon": ("16667", "25000")}}),
            (
                "Figure 7",
                {
                    "tau hardly matters": {"tau 50 - 150": ("50", "150"), "tau 300 - 150": ("300", "150")},
                    "tau too low": {"Madelon": ("150", "2")},
                },
            ),
            ("Reuters twice", {"twice the time": {"Reuters": ("296000", "148000")}}),
            ("Reuters tau", {"tau too high": {"Reuters, 1000": ("200", "1000"), "Reuters, 9946": ("200", "9946")}}),
        ):
            name = "Reuters" if study.startswith("Reuters") else "Madelon"
            for claim, columns in claims.items():
                for column, keys in columns.items():
                    if study in self.studies and keys[0] in next(iter(self.studies[study].values())):
                        one, other = (self.values(study, (key,), sizes(claim, name), name) for key in keys)
                        add(claim, column, one - other)
        if "Agreement" in self.studies:
            results = list(self.studies["Agreement"].values())
            for column, keys in (
                ("300 - 10 probes", ("300 probes", "10 probes")),
                ("tau 10 - 150", ("tau 10", "tau 150")),
            ):
                add("many contexts", column, np.array([each[keys[0]] - each[keys[1]] for each in results]))
        self._times(add)
        return found

    def _spambase(self, add: Any, sizes: Any) -> None:
        claim, short = "SFFS optimizes better", self.short("Spambase")
        add(claim, "Spambase", self.lead("Spambase", "SFFS", "DAF0", 0, sizes(claim, "Spambase")), short)
        claim = "DAF generalizes better than SFFS"
        add(claim, "Spambase", self.lead("Spambase", "DAF0", "SFFS", 1, sizes(claim, "Spambase")), short)
        claim = "SFFS is less stable"
        for method in ("DAF0", "BIF"):
            add(claim, f"{method} - SFFS", self.steadier("Spambase", method, "SFFS", sizes(claim, "Spambase")), short)
        if "Over-fitting" in self.studies:
            gaps = [each["SFFS"] - each["DAF0"] for each in self.studies["Over-fitting"].values()]
            add("SFFS over-fits", "Spambase", np.array(gaps))

    def _times(self, add: Any) -> None:
        for method, name in (("BIF", "Reuters"), ("SFFS", "Spambase"), ("SFFS", "Madelon")):
            if name in self.studies:
                seconds = np.mean([result["seconds"][method] for result in self.studies[name].values()])
                add("times", f"{method}, {name}", None, text=f"{seconds:.1f} s per split")


def svm_evidence(found: Found, settings: Settings, ours: Numbers) -> Evidence:
    """The lead of DAF0 over BIF with the SVM in J."""
    rule = next(rule for rule in rules(NAME) if rule.id == "better than BIF, SVM as J")
    sizes = settings.sizes["Reuters"]
    for method in ("DAF0", "BIF"):
        for place, size in enumerate(sizes):
            values = [each["accuracy"][method][place] for each in found.values()]
            ours["Reuters, linear SVM in J", method, str(size)] = 100 * np.array(values)
    places = [sizes.index(size) for size in rule.sizes["Reuters"]]
    leads = [
        100 * np.mean([e["accuracy"]["DAF0"][k] - e["accuracy"]["BIF"][k] for k in places]) for e in found.values()
    ]
    probes = min(each["n_probes"] for each in found.values())
    ours["Reuters, linear SVM in J, summary", "DAF0 minus BIF, mean of 50 to 500 words", "points"] = leads
    ours["Reuters, linear SVM in J, summary", "probes", "number"] = probes
    short = "" if probes >= PAPERS_PROBES else f"{probes:,} probes instead of {PAPERS_PROBES:,}"
    return Evidence(np.array(leads), short=short)


# ---- numbers and figures


def shape(name: str, X: Any, y: NDArray[Any]) -> Numbers:
    sizes = np.unique(y, return_counts=True)[1]
    found: Numbers = {("Table I", name, "features"): X.shape[1], ("Table I", name, "classes"): len(sizes)}
    found["Table I", name, "samples"] = len(y)
    if name == "Reuters":
        found["Section V", name, "largest class"], found["Section V", name, "smallest class"] = max(sizes), min(sizes)
    return found


def hits_of(found: Found, method: str, truth: NDArray[np.int64]) -> NDArray[np.float64]:
    """Informative features among the top 20, by split."""
    subsets = [result["subsets"][method][str(TOP)] for result in found.values()]
    return np.array([len(np.intersect1d(subset, truth)) for subset in subsets], dtype=np.float64)


def numbers(studies: Mapping[str, Found], settings: Settings) -> Numbers:
    """Table II, the curves of figures 2 to 7, and the stability."""
    found: Numbers = {("Section V", "all sets", "random splits"): settings.splits}
    for name in (name for name in SETUPS if name in studies):
        setup, results = SETUPS[name], list(studies[name].values())
        probes, held = settings.probes[name], float(np.mean([result["held"] for result in results]))
        found |= {("Table II", name, "largest probe"): setup.tau, ("Table II", name, "J evaluations"): probes}
        found["Table II", name, "mean probes with a feature"] = held
        found["Table II", name, "mean probes without it"] = probes - held
        for letter, model in zip("ab", setup.classifiers, strict=True):
            for method in results[0]["accuracy"]:
                values = 100 * np.array([result["accuracy"][method][model] for result in results])
                where = f"Figure {setup.figure}{letter}, accuracy of {model}, {name}"
                found |= {(where, method, str(size)): values[:, k] for k, size in enumerate(settings.sizes[name])}
        for method in results[0]["subsets"]:
            for size in results[0]["subsets"][method]:
                subsets = [np.array(result["subsets"][method][size]) for result in results]
                for label, measure in STABILITY.items():
                    where = f"Figure {setup.figure}, {label}, {name}"
                    found[where, method, size] = measure(subsets, N_FEATURES[name]) if len(subsets) > 1 else np.nan
    for study, name in (
        ("Figure 6", "Madelon"),
        ("Figure 7", "Madelon"),
        ("Reuters tau", "Reuters"),
        ("Reuters twice", "Reuters"),
    ):
        for key in [key for key in next(iter(studies.get(study, {0: {}}).values())) if key != "subsets"]:
            values = 100 * np.array([result[key] for result in studies[study].values()])
            for k, size in enumerate(settings.sizes[name]):
                found[f"{study}, accuracy", f"{int(key):,}", str(size)] = values[:, k]
    for key in ("148000", "296000") if "Reuters twice" in studies else ():
        for size in KEPT["Reuters"]:
            subsets = [np.array(result["subsets"][key][str(size)]) for result in studies["Reuters twice"].values()]
            found["Stability by number of probes, CW_rel, Reuters", f"{int(key):,}", str(size)] = cw_rel(subsets, 9946)
    for key in next(iter(studies.get("Agreement", {0: {}}).values())):
        values = [result[key] for result in studies["Agreement"].values()]
        found["Correlation of DAF0 in two runs, Madelon", key, "correlation"] = values
    for method in next(iter(studies.get("Over-fitting", {0: {}}).values())):
        values = [result[method] for result in studies["Over-fitting"].values()]
        found["J minus test accuracy, Spambase", method, "points"] = values
    return found


def pictures(studies: Mapping[str, Found], settings: Settings) -> list[Picture]:
    """Figures 2 to 7."""
    drawn = []
    for name in (name for name in SETUPS if name in studies):
        results, panels = list(studies[name].values()), []
        for model in SETUPS[name].classifiers:
            lines = [
                Line(m, settings.sizes[name], 100 * np.mean([r["accuracy"][m][model] for r in results], axis=0))
                for m in results[0]["accuracy"]
            ]
            panels.append(Panel(f"{name}, {model}", "number of features", "accuracy (%)", lines, log_x=True))
        drawn.append(Picture(f"Figure {SETUPS[name].figure}", panels))
    for study, title in (("Figure 6", "probes"), ("Figure 7", "tau")):
        if study in studies:
            results = list(studies[study].values())
            lines = [
                Line(
                    f"{title} {int(key):,}", settings.sizes["Madelon"], 100 * np.mean([r[key] for r in results], axis=0)
                )
                for key in results[0]
            ]
            drawn.append(
                Picture(study, [Panel("Madelon, 3-NN", "number of features", "accuracy (%)", lines, log_x=True)])
            )
    return drawn
