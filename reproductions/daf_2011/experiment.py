"""Somol and Grim 2011: DAF against best individual features and floating search on four data sets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import product
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from probewise import BIF, SFFS
from probewise.engine.probes import Subsets
from probewise.engine.run import Run
from probewise.stability import anhi, ati, cw_rel
from probewise.study import select

from ..judge import Evidence, jackknifed, rules
from ..pictures import Line, Panel, Picture
from ..results import Findings, Numbers
from ..work import Work
from .data import SETUPS, accuracy, best_first, first_probes, halves, informative, prepared, ranked
from .svm import PAPERS_PROBES, svm_as_j

NAME = "daf-2011"
TITLE = "Fast dependency-aware feature selection in very-high-dimensional pattern recognition problems"
COEFFICIENTS = {"DAF0": "daf0", "DAF1": "daf1", "DAF2": "daf2"}
OF_PAPER = {"Reuters": 148_000, "Gisette": 46_400, "Madelon": 25_000, "Spambase": 160_000}  # table II
STABILITY = {"CW_rel": cw_rel, "ATI": ati, "ANHI": anhi}
N_FEATURES = {"Reuters": 9946, "Gisette": 5000, "Madelon": 500, "Spambase": 57}
SHOWN = ("DAF0", "BIF", "SFFS")  # methods whose subsets are kept
TOP = 20
PROBES_OF_TAU = 8_000  # figure 7
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
    taus: tuple[int, ...] = ()  # figure 7
    twice_splits: int = 0
    wide_taus: tuple[int, ...] = ()  # Reuters, each word in 100 probes
    wide_splits: int = 0
    seeded_splits: int = 0  # Reuters, other probes
    remark_splits: int = 0
    svm_splits: int = 0
    madelon_search: bool = True  # a minute for each split


PROFILES = {
    "quick": Settings(5, {"Madelon": 2_000}, counts=(200, 500, 2_000), madelon_search=False),
    "full": Settings(
        20,
        OF_PAPER,
        counts=(400, 1_000, 2_500, 5_000, 10_000, 16_667, 25_000),
        taus=(2, 5, 10, 20, 50, 100, 150, 300, 500),
        twice_splits=20,
        wide_taus=(20, 200, 1_000, 3_000, 9_946),
        wide_splits=5,
        seeded_splits=2,
        remark_splits=5,
        svm_splits=5,
    ),
}

Found = Mapping[int, Mapping[str, Any]]  # results by split


def run(work: Work) -> Findings:
    """Figures 2 to 7, the remarks, and the linear SVM in J."""
    settings = work.settings
    ours: Numbers = {}
    studies: dict[str, Found] = {}
    for name in settings.probes:
        X, y = prepared(work.data(SETUPS[name].file))
        ours |= shape(name, X, y)
        studies |= Experiment(name, X, y, work).run()
    if settings.svm_splits:
        studies["SVM as J"] = svm_as_j(work)
    evidence = evidence_of(studies, settings)
    if "Madelon" in studies:
        truth, too_short = informative(work.data("madelon")), short("Madelon", settings)
        ours["Section V", "Madelon", "informative features"] = len(truth)
        ours["Section V", "Madelon", "features without power"] = N_FEATURES["Madelon"] - len(truth)
        hits = {
            method: np.array([len(np.intersect1d(subset, truth)) for subset in subsets], dtype=np.float64)
            for method, subsets in kept(studies["Madelon"], str(TOP)).items()
        }
        ours |= {("Informative features among the top 20", "Madelon", method): found for method, found in hits.items()}
        evidence["Madelon's features"] = {
            "DAF0 finds 15 of 20": Evidence(hits["DAF0"] - 15, short=too_short),
            "BIF finds fewer than 10": Evidence(10 - hits["BIF"], short=too_short),
        }
    if found := evidence["better than BIF, SVM as J"].get("Reuters"):
        where = "Reuters, linear SVM in J, summary"
        ours[where, "DAF0 minus BIF, mean of 50 to 500 words", "points"] = found.values
        ours[where, "probes", "number"] = PAPERS_PROBES
        tuned = [result["C"] for result in studies["SVM as J"].values()]
        ours[where, "smallest C of a split", "C"], ours[where, "largest C of a split", "C"] = min(tuned), max(tuned)
    ours |= numbers(studies, settings)
    return ours, evidence, pictures(studies, settings)


def short(name: str, settings: Settings) -> str:
    """Why the search was shorter than the paper's, if it was."""
    probes = settings.probes[name]
    return "" if probes >= OF_PAPER[name] else f"{probes:,} probes instead of {OF_PAPER[name]:,}"


def kept(study: Found, size: str) -> dict[str, list[NDArray[np.int64]]]:
    """By method, the subsets of a size, one for each split."""
    methods = next(iter(study.values()))["subsets"]
    return {method: [np.array(result["subsets"][method][size]) for result in study.values()] for method in methods}


# ---- experiments


@dataclass(frozen=True)
class Experiment:
    """The studies of one data set, stored by split."""

    name: str
    X: Any
    y: NDArray[Any]
    work: Work

    def run(self) -> dict[str, Found]:
        settings, name = self.work.settings, self.name
        sizes, probes, counts = settings.sizes[name], settings.probes[name], settings.counts
        twice = (probes, 2 * probes)
        taus = dict.fromkeys(settings.taus, PROBES_OF_TAU)
        wide = {tau: 200 * self.X.shape[1] // (tau + 1) for tau in settings.wide_taus}
        studies: list[tuple[str, str, Any, int, dict[str, Any]]] = [
            (name, name, self.compare, settings.splits, {"sizes": sizes, "probes": probes}),
            ("Madelon", "Figure 6", partial(self.by_count, counts), settings.splits, {"counts": counts}),
            ("Madelon", "Figure 7", partial(self.by_tau, taus), settings.splits, {"taus": settings.taus}),
            ("Reuters", "Reuters twice", partial(self.by_count, twice), settings.twice_splits, {"probes": 2 * probes}),
            ("Reuters", "Reuters tau", partial(self.by_tau, wide), settings.wide_splits, {"taus": settings.wide_taus}),
            ("Reuters", "Reuters seeds", self.other_probes, settings.seeded_splits, {"probes": probes}),
            ("Madelon", "Agreement", self.agreement, settings.remark_splits, {}),
            ("Spambase", "Over-fitting", self.optimism, settings.remark_splits, {}),
        ]
        return {
            title: self.work.units(
                title.lower().replace(" ", "-"), function, range(splits), (self.X, self.y), **options
            )
            for of, title, function, splits, options in studies
            if of == name and splits and () not in options.values()
        }

    def _split(self, split: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        return halves(self.y, self.work.seed, split)

    def _daf(self, train: Any, n_probes: int, seed: int, tau: int | None = None, ledger: Path | None = None) -> Run:
        """A run of DAF on the training rows."""
        setup = SETUPS[self.name]
        options = {"tau": tau or setup.tau, "ledger": ledger, "device": self.work.device}
        return ranked(setup.criterion, self.X[train], self.y[train], n_probes, seed, **options)

    def _tested(self, order: NDArray[np.int64], train: Any, test: Any) -> list[float]:
        """Accuracy of the first classifier by size."""
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
        orders = {method: best_first(run, coefficient) for method, coefficient in COEFFICIENTS.items()}
        subsets = {method: [np.sort(order[:size]) for size in sizes] for method, order in orders.items()}
        searches = {"BIF": BIF(criterion=setup.criterion)}
        if setup.has_search and (self.name != "Madelon" or self.work.settings.madelon_search):
            searches["SFFS"] = SFFS(criterion=setup.criterion)
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
        of_size = {
            method: {str(size): subsets[method][sizes.index(size)] for size in KEPT[self.name] if size in sizes}
            for method in SHOWN
            if method in subsets
        }
        held = float(run.tally.counts.mean())
        ledger.unlink(missing_ok=True)
        return {"accuracy": found, "subsets": of_size, "seconds": seconds, "held": held}

    def by_count(self, counts: Sequence[int], split: int) -> dict[str, Any]:
        """Accuracy by number of probes, and subsets for the stability."""
        train, test, seed = self._split(split)
        run = self._daf(train, max(counts), seed)
        found: dict[str, Any] = {"subsets": {}}
        for count in counts:
            order = best_first(first_probes(run, count))
            found[str(count)] = self._tested(order, train, test)
            found["subsets"][str(count)] = {str(size): np.sort(order[:size]) for size in KEPT[self.name]}
        return found

    def other_probes(self, split: int) -> dict[str, list[int]]:
        """Reuters: the subsets of `compare` with other probes on the same rows."""
        train, _, seed = self._split(split)
        order = best_first(self._daf(train, self.work.settings.probes[self.name], seed + 1))
        return {str(size): np.sort(order[:size]) for size in KEPT[self.name]}

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
        order = best_first(self._daf(train, 2_000, seed))
        chosen = {
            "DAF0": [order[:size] for size in sizes],
            "SFFS": select(SFFS(criterion=criterion), self.X[train], self.y[train], sizes),
        }
        bound, found = criterion.bind(self.X[train], self.y[train]), {}
        for method, subsets in chosen.items():
            right = [accuracy(KNeighborsClassifier(3), self.X, self.y, subset, train, test) for subset in subsets]
            found[method] = 100 * float(np.mean(bound(Subsets.of(subsets))) - np.mean(right))
        return found


# ---- evidence

LEADS = {  # first method, second method, classifier
    "better than BIF, classifier of J": ("DAF0", "BIF", 0),
    "better than BIF, other classifier": ("DAF0", "BIF", 1),
    "SFFS optimizes better": ("SFFS", "DAF0", 0),
    "DAF generalizes better than SFFS": ("DAF0", "SFFS", 1),
}
STEADIER = {  # by column; "": any data set
    "as stable as BIF": {"": ("DAF0", "BIF")},
    "more stable on Madelon": {"": ("DAF0", "BIF")},
    "SFFS is less stable": {"DAF0 - SFFS": ("DAF0", "SFFS"), "BIF - SFFS": ("BIF", "SFFS")},
}
PAIRS = {  # study, and the two keys in it that are compared
    ("better than BIF, SVM as J", "Reuters"): ("SVM as J", "DAF0", "BIF"),
    ("two hours suffice", "Madelon"): ("Figure 6", "16667", "25000"),
    ("tau hardly matters", "tau 50 - 150"): ("Figure 7", "50", "150"),
    ("tau hardly matters", "tau 300 - 150"): ("Figure 7", "300", "150"),
    ("tau too low", "Madelon"): ("Figure 7", "150", "2"),
    ("twice the time", "Reuters"): ("Reuters twice", "296000", "148000"),
    ("tau too high", "Reuters, 1000"): ("Reuters tau", "200", "1000"),
    ("tau too high", "Reuters, 9946"): ("Reuters tau", "200", "9946"),
    ("many contexts", "300 - 10 probes"): ("Agreement", "300 probes", "10 probes"),
    ("many contexts", "tau 10 - 150"): ("Agreement", "tau 10", "tau 150"),
    ("SFFS over-fits", "Spambase"): ("Over-fitting", "SFFS", "DAF0"),
}


def evidence_of(studies: Mapping[str, Found], settings: Settings) -> dict[str, dict[str, Evidence]]:
    """Evidence for the rules from the studies that were run."""
    by_id = {rule.id: rule for rule in rules(NAME)}
    found: dict[str, dict[str, Evidence]] = {claim: {} for claim in by_id}

    def values(study: str, sizes: Mapping[str, Sequence[int]], *keys: str) -> NDArray[np.float64]:
        """The number that the keys lead to, by split; with sizes the mean of a list over them, in percent."""
        each = np.array([reduce(getitem, keys, result) for result in studies[study].values()])
        for name, chosen in sizes.items():
            each = 100 * each[:, [settings.sizes[name].index(size) for size in chosen]].mean(axis=1)
        return each

    def lead(name: str, first: str, second: str, classifier: int, sizes: Sequence[int]) -> NDArray[np.float64]:
        model = list(SETUPS[name].classifiers)[classifier]
        one, other = (values(name, {name: sizes}, "accuracy", method, model) for method in (first, second))
        return one - other

    def of_sets(claim: str) -> Iterator[tuple[str, Sequence[int]]]:
        return ((name, sizes) for name, sizes in by_id[claim].sizes.items() if name in studies)

    for claim, (first, second, classifier) in LEADS.items():
        for name, sizes in of_sets(claim):
            leads = lead(name, first, second, classifier, sizes)
            found[claim][name] = Evidence(leads, short=short(name, settings))
    for claim, columns in STEADIER.items():
        for name, sizes in of_sets(claim):
            for column, methods in columns.items():
                differences = steadier(name, studies[name], *methods, sizes)
                found[claim][column or name] = Evidence(differences, short=short(name, settings))
    for name, sizes in of_sets("no need to norm"):
        behind = min((lead(name, "DAF0", other, 0, sizes) for other in ("DAF1", "DAF2")), key=np.mean)
        found["no need to norm"][name] = Evidence(behind, short=short(name, settings))
    claim = "especially in high dimension"
    both = {n: np.mean([lead(n, "DAF0", "BIF", c, s) for c in (0, 1)], axis=0) for n, s in of_sets(claim)}
    for column in by_id[claim].columns if len(both) == len(SETUPS) else ():
        first, second = column.split(" - ")
        found[claim][column] = Evidence(both[first] - both[second])
    for (claim, column), (study, *keys) in PAIRS.items():
        if keys[0] in next(iter(studies.get(study, {0: {}}).values())):
            one, other = (values(study, by_id[claim].sizes, key) for key in keys)
            found[claim][column] = Evidence(one - other)
    for column in by_id["times"].columns:
        method, name = column.split(", ")
        seconds = [result["seconds"].get(method) for result in studies.get(name, {}).values()]
        if seconds and seconds[0] is not None:
            found["times"][column] = Evidence(text=f"{np.mean(seconds):.1f} s per split")
    return found


def steadier(name: str, study: Found, first: str, second: str, sizes: Sequence[int]) -> NDArray[np.float64]:
    """Pseudo-values of the difference in CW_rel, mean over the sizes."""
    by_size = [kept(study, str(size)) for size in sizes]

    def difference(splits: Sequence[int]) -> float:
        def stability(subsets: list[NDArray[np.int64]]) -> float:
            return float(cw_rel([subsets[k] for k in splits], N_FEATURES[name]))

        return float(np.mean([stability(subsets[first]) - stability(subsets[second]) for subsets in by_size]))

    return jackknifed(difference, len(study))


# ---- numbers and figures

CURVES = {  # by study, where its accuracy by size is shown, and the data set
    "SVM as J": ("Reuters, linear SVM in J", "Reuters"),
    "Figure 6": ("Figure 6, accuracy", "Madelon"),
    "Figure 7": ("Figure 7, accuracy", "Madelon"),
    "Reuters tau": ("Reuters tau, accuracy", "Reuters"),
    "Reuters twice": ("Reuters twice, accuracy", "Reuters"),
}


def shape(name: str, X: Any, y: NDArray[Any]) -> Numbers:
    sizes = np.unique(y, return_counts=True)[1]
    found: Numbers = {("Table I", name, "features"): X.shape[1], ("Table I", name, "classes"): len(sizes)}
    found["Table I", name, "samples"] = len(y)
    if name == "Reuters":
        found["Section V", name, "largest class"], found["Section V", name, "smallest class"] = max(sizes), min(sizes)
    return found


def numbers(studies: Mapping[str, Found], settings: Settings) -> Numbers:
    """Table II, the curves of figures 2 to 7, and the stability."""
    found: Numbers = {("Section V", "all sets", "random splits"): settings.splits}

    def curve(where: str, row: str, name: str, values: Any) -> None:
        values = 100 * np.array(values)
        found.update({(where, row, str(size)): values[:, k] for k, size in enumerate(settings.sizes[name])})

    for name in (name for name in SETUPS if name in studies):
        setup, results = SETUPS[name], list(studies[name].values())
        probes, held = settings.probes[name], float(np.mean([result["held"] for result in results]))
        found |= {("Table II", name, "largest probe"): setup.tau, ("Table II", name, "J evaluations"): probes}
        found["Table II", name, "mean probes with a feature"] = held
        found["Table II", name, "mean probes without it"] = probes - held
        for letter, model in zip("ab", setup.classifiers, strict=True):
            for method in results[0]["accuracy"]:
                where = f"Figure {setup.figure}{letter}, accuracy of {model}, {name}"
                curve(where, method, name, [result["accuracy"][method][model] for result in results])
        for method, by_size in results[0]["subsets"].items():
            for size, (label, measure) in product(by_size, STABILITY.items()):
                subsets = kept(studies[name], size)[method]
                value = measure(subsets, N_FEATURES[name]) if len(subsets) > 1 else np.nan
                found[f"Figure {setup.figure}, {label}, {name}", method, size] = value
    for study in (study for study in CURVES if study in studies):
        results, (where, name) = list(studies[study].values()), CURVES[study]
        for key in (key for key in results[0] if key not in ("subsets", "C")):
            curve(where, f"{int(key):,}" if key.isdigit() else key, name, [result[key] for result in results])
    for count, size in product(("148000", "296000"), KEPT["Reuters"]) if "Reuters twice" in studies else ():
        subsets = kept(studies["Reuters twice"], str(size))[count]
        where = "Stability by number of probes, CW_rel, Reuters"
        found[where, f"{int(count):,}", str(size)] = cw_rel(subsets, N_FEATURES["Reuters"])
    for size, (split, other) in product(KEPT["Reuters"], studies.get("Reuters seeds", {}).items()):
        pair = [np.array(each[str(size)]) for each in (studies["Reuters"][split]["subsets"]["DAF0"], other)]
        row = "DAF0, other probes of the same rows"
        found.setdefault(("Figure 2, CW_rel, Reuters", row, str(size)), []).append(cw_rel(pair, N_FEATURES["Reuters"]))
    for study, where, unit in (
        ("Agreement", "Correlation of DAF0 in two runs, Madelon", "correlation"),
        ("Over-fitting", "J minus test accuracy, Spambase", "points"),
    ):
        for key in next(iter(studies.get(study, {0: {}}).values())):
            found[where, key, unit] = [result[key] for result in studies[study].values()]
    return found


def pictures(studies: Mapping[str, Found], settings: Settings) -> list[Picture]:
    """Figures 2 to 7."""

    def panel(title: str, name: str, curves: Mapping[str, Any]) -> Panel:
        lines = [Line(label, settings.sizes[name], 100 * np.mean(c, axis=0)) for label, c in curves.items()]
        return Panel(title, "number of features", "accuracy (%)", lines, log_x=True)

    drawn = []
    for name in (name for name in SETUPS if name in studies):
        results = [result["accuracy"] for result in studies[name].values()]
        panels = [
            panel(f"{name}, {model}", name, {m: [result[m][model] for result in results] for m in results[0]})
            for model in SETUPS[name].classifiers
        ]
        drawn.append(Picture(f"Figure {SETUPS[name].figure}", panels))
    for study, title in (("Figure 6", "probes"), ("Figure 7", "tau")):
        if study in studies:
            keys = [key for key in next(iter(studies[study].values())) if key != "subsets"]
            curves = {f"{title} {int(key):,}": [result[key] for result in studies[study].values()] for key in keys}
            drawn.append(Picture(study, [panel("Madelon, 3-NN", "Madelon", curves)]))
    return drawn
