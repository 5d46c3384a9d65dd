"""Somol and Grim 2011: DAF against best individual features, and against floating search, on four data sets."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from ..criteria import KNN, Criterion, Linear
from ..datasets import Dataset
from ..plots import save_study
from ..probing.engine import run_probes
from ..probing.fingerprints import fingerprint
from ..probing.ledger import Ledger
from ..probing.tally import Tally
from ..selectors.base import RankingSelector
from ..selectors.bif import BIF
from ..selectors.daf import DAF
from ..selectors.sffs import SFFS
from ..stability import nogueira_test
from ..stopping import MaxProbes
from ..study import Study, StudyResult, deviation
from .base import Claim, Outcome, Picture, Place, Progress, Reproduction, cells, kept, listed, published

NAME = "daf-2011"
TITLE = (
    "Somol, Grim: Fast dependency-aware feature selection in very-high-dimensional pattern recognition problems, 2011"
)
METHODS = ("DAF0", "DAF1", "DAF2")
NOTES = {
    ("Section V", "time that suffices (Figure 6)"): "ours: the minutes there of the probes that were enough here",
    ("Section V", "accuracy gained by twice the time"): "ours: by twice the probes, in points, mean over sizes",
    ("Section V", "informative features"): "ours: features that correlate with another",
    ("Table II", "time limit"): "ours: minutes a split's DAF run took, on one core",
}
MEASURES = {"c": ("cw_rel", "CW_rel"), "d": ("ati", "ATI"), "e": ("anhi", "ANHI")}
CONVINCING = 0.05
ENOUGH_SPLITS = 5  # to speak of stability
INFORMATIVE_CORRELATION = 0.4
PROBES_A_MINUTE = 25_000 / 180  # the paper's, on Madelon
SUFFICES = 120


@dataclass(frozen=True)
class Setup:
    """How the paper treats a data set: J, the largest probe, and the two classifiers, J's own first."""

    file: str
    figure: int
    criterion: Criterion
    tau: int
    classifiers: Mapping[str, Any]
    has_search: bool = False


NEIGHBOURS = {"3-NN": KNeighborsClassifier(3), "SVM (rbf)": SVC()}
SETUPS = {
    "Reuters": Setup(
        "reuters", 2, Linear(), 200, {"SVM (linear)": SVC(kernel="linear"), "1-NN": KNeighborsClassifier(1)}
    ),
    "Gisette": Setup("gisette_valid", 3, KNN(3), 200, NEIGHBOURS),
    "Madelon": Setup("madelon", 4, KNN(3), 150, NEIGHBOURS),
    "Spambase": Setup("spambase", 5, KNN(3), 57, NEIGHBOURS, has_search=True),
}


@dataclass(frozen=True)
class Effort:
    """How much of a data set's experiment is done; ``trials`` where it is not as many as for the others."""

    probes: int
    sizes: tuple[int, ...]
    trials: int | None = None


@dataclass(frozen=True)
class Settings:
    """A profile: splits, probes and subset sizes of each set, and those of figures 6 and 7."""

    trials: int
    parts: Mapping[str, Effort]
    figure_6: tuple[int, ...]
    taus: tuple[int, ...]
    tau_probes: int
    tau_trials: int


WIDE = (10, 20, 50, 100, 200, 500, 1000)
FEW = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)
PROFILES = {
    "quick": Settings(
        trials=4,
        parts={
            "Reuters": Effort(20_000, (20, 100, 500), trials=2),
            "Gisette": Effort(10_000, (5, 10, 20, 50, 100, 200, 500), trials=2),
            "Madelon": Effort(5_000, FEW),
            "Spambase": Effort(800, (1, 2, 3, 5, 8, 12, 16)),
        },
        figure_6=(200, 500, 1_000, 2_000, 5_000),
        taus=(2, 10, 50, 150, 500),
        tau_probes=2_000,
        tau_trials=2,
    ),
    "full": Settings(
        trials=20,
        parts={
            "Reuters": Effort(148_000, WIDE, trials=6),
            "Gisette": Effort(46_400, (2, 5, *WIDE), trials=12),
            "Madelon": Effort(25_000, FEW),
            "Spambase": Effort(2_000, (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22)),
        },
        figure_6=(400, 1_000, 2_500, 5_000, 10_000, 16_667, 25_000),
        taus=(2, 5, 10, 20, 50, 100, 150, 300, 500),
        tau_probes=8_000,
        tau_trials=4,
    ),
}


def run(reproduction: Reproduction) -> Outcome:
    """The studies of the data sets in the settings, then figures 6 and 7, where Madelon is among them."""
    settings = reproduction.settings
    results: dict[str, StudyResult] = {}
    ours: dict[Place, float] = {}
    with folder_of(reproduction) as folder:
        for name in settings.parts:
            X, y = prepared(reproduction.data(SETUPS[name].file))
            ours |= _shape(name, X, y)
            results |= studies(name, X, y, reproduction, folder)
    truth = informative(reproduction.data("madelon")) if "Madelon" in results else np.empty(0, np.int64)
    ours |= _protocol(settings, results) | _curves(results) | _found(results, truth)
    return Outcome(cells(NAME, ours, _notes(ours)), _claims(results, truth), pictures=_pictures(results))


# ---- the experiments


def studies(name: str, X: Any, y: NDArray[Any], reproduction: Reproduction, folder: Path) -> dict[str, StudyResult]:
    """By name: that of figures 2 to 5; for Reuters half the probes; for Madelon figures 6 and 7."""
    setup, settings = SETUPS[name], reproduction.settings
    effort = settings.parts[name]
    trials = effort.trials or settings.trials
    ledgers = Ledgers(folder / "runs" / f"ledgers-{setup.file}")
    daf = DAF(criterion=setup.criterion, max_probe_size=setup.tau, stop=MaxProbes(effort.probes))
    own = dict([next(iter(setup.classifiers.items()))])

    def study(title: str, selectors: dict[str, Any], classifiers: Mapping[str, Any], trials: int) -> StudyResult:
        file = kept(folder, title.lower().replace(" ", "-"))
        options = {"sizes": effort.sizes, "random_state": reproduction.seed, "n_jobs": reproduction.n_jobs, "run": file}
        return in_steps(Study(selectors, classifiers, trials=trials, **options), X, y, title, reproduction.progress)

    def first(*counts: int) -> dict[str, Any]:
        return {f"{count:,} probes": Replay(daf, ledgers=ledgers, n_probes=count) for count in counts}

    selectors: dict[str, Any] = {each: Replay(daf, ledgers=ledgers, coefficient=each.lower()) for each in METHODS}
    selectors["BIF"] = BIF(criterion=setup.criterion)
    if setup.has_search:
        selectors["SFFS"] = SFFS(criterion=setup.criterion)
    results = {name: study(name, selectors, setup.classifiers, trials)}
    if name == "Reuters":
        results["Reuters halves"] = study("Reuters halves", first(effort.probes // 2, effort.probes), own, trials)
    if name == "Madelon":
        results["Figure 6"] = study("Figure 6", first(*settings.figure_6), own, trials)
        shorter = clone(daf).set_params(stop=MaxProbes(settings.tau_probes))
        taus = {tau: clone(shorter).set_params(max_probe_size=tau) for tau in settings.taus}
        replays = {f"tau = {tau}": Replay(each, ledgers=ledgers) for tau, each in taus.items()}
        results["Figure 7"] = study("Figure 7", replays, own, min(trials, settings.tau_trials))
    shutil.rmtree(ledgers.folder, ignore_errors=True)
    return results


def in_steps(study: Study, X: Any, y: Any, title: str, progress: Progress) -> StudyResult:
    """The study, with a line every four splits on where it stands."""
    if progress is None:
        return study.compare(X, y)
    for trials in [*(range(4, study.trials, 4) if study.run else ()), study.trials]:
        result = replace(study, trials=trials).compare(X, y)
        progress(f"{title}: {trials} of {study.trials} splits")
    return result


@contextmanager
def folder_of(reproduction: Reproduction) -> Iterator[Path]:
    """Where it is kept, or, where it is not, a temporary folder."""
    if reproduction.folder is not None:
        yield reproduction.folder
        return
    with TemporaryDirectory() as temporary:
        yield Path(temporary)


@dataclass(frozen=True)
class Ledgers:
    """Files of DAF runs, each named by its data, the largest probe, the number of probes and the seed."""

    folder: Path = field(repr=False)

    def file(self, X: Any, y: Any, daf: DAF) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{fingerprint(X, y)}-{daf.max_probe_size}-{daf.stop.n_probes}-{daf.random_state}.sqlite"


class Replay(RankingSelector):
    """Ranks by a coefficient of a DAF run, or by DAF0 of its first probes; the run is made once, kept in a file.

    So DAF0, DAF1, DAF2 and every shorter run cost one run, and an interrupted run goes on.
    """

    def __init__(
        self,
        daf: Any = None,
        *,
        ledgers: Any = None,
        coefficient: str = "daf0",
        n_probes: int | None = None,
        n_features_to_select: Any = None,
    ) -> None:
        self.daf = daf
        self.ledgers = ledgers
        self.coefficient = coefficient
        self.n_probes = n_probes
        self.n_features_to_select = n_features_to_select

    def fit(self, X: Any, y: Any = None) -> Replay:
        X, y = self._checked(X, y)
        daf = clone(self.daf).set_params(ledger=self.ledgers.file(X, y, self.daf)).fit(X, y)
        self.stop_reason_, self.n_probes_ = daf.stop_reason_, self.n_probes or daf.n_probes_
        if self.n_probes is None:
            self._keep(daf.coefficients(self.coefficient))
        else:
            self._keep(first_probes(daf, self.n_probes).daf0())
        return self


def first_probes(daf: DAF, n_probes: int) -> Tally:
    """What a fitted DAF knew after its first probes."""
    ledger = Ledger()
    ledger.append(daf.ledger_.values(0, n_probes), seconds=daf.ledger_.seconds_at(n_probes))
    return run_probes(daf.plan_, _nothing_to_score, stop=MaxProbes(n_probes), ledger=ledger).tally


def _nothing_to_score(subsets: Any) -> Any:
    raise RuntimeError("a replay scores no probe")


def prepared(dataset: Dataset) -> tuple[Any, NDArray[Any]]:
    """The rows the papers use, Spambase scaled to 0..1."""
    X, y = dataset.X, dataset.y
    if dataset.name == "madelon" and dataset.train_index is not None:
        X, y = X[dataset.train_index], y[dataset.train_index]
    if dataset.name == "spambase":
        low, high = X.min(axis=0), X.max(axis=0)
        X = (X - low) / (high - low)
    return (X.astype(np.float64) if sp.issparse(X) else X), y


def informative(madelon: Dataset) -> NDArray[np.int64]:
    """The columns of Madelon that go with another column: the informative ones, found without labels."""
    correlation = np.abs(np.corrcoef(np.asarray(madelon.X, dtype=np.float64).T))
    np.fill_diagonal(correlation, 0)
    return np.flatnonzero(correlation.max(axis=0) > INFORMATIVE_CORRELATION)


# ---- the numbers


def _shape(name: str, X: Any, y: NDArray[Any]) -> dict[Place, float]:
    counts = np.unique(y, return_counts=True)[1]
    found: dict[Place, float] = {
        ("Table I", name, "features"): X.shape[1],
        ("Table I", name, "classes"): len(counts),
        ("Table I", name, "samples"): X.shape[0],
    }
    if name == "Reuters":
        found["Section V", name, "largest class"] = int(counts.max())
        found["Section V", name, "smallest class"] = int(counts.min())
    return found


def _protocol(settings: Settings, results: Mapping[str, StudyResult]) -> dict[Place, float]:
    """Table II, and what section V says of splits and times."""
    found: dict[Place, float] = {
        ("Section V", "all sets", "random splits"): settings.trials,
        ("Section V", "all sets", "training share"): 50,
        ("Section V", "all sets", "folds of J"): 3,
    }
    for name in settings.parts:
        result, tau = results[name], min(SETUPS[name].tau, results[name].n_features)
        n_probes = float(result.probes[:, 0].mean())
        held = n_probes * (tau + 1) / 2 / result.n_features
        minutes = dict(zip(result.selectors, result.seconds.mean(axis=0) / 60, strict=True))
        columns = (minutes["DAF0"], 1, tau, n_probes, held, n_probes - held)
        names = [each.column for each in published(NAME) if (each.where, each.row) == ("Table II", name)]
        found |= {("Table II", name, column): value for column, value in zip(names, columns, strict=True)}
        found["Table II", name, "splits"] = len(result.trials)
        found["Section V", name, "BIF takes at most"] = minutes["BIF"]
        if "SFFS" in minutes:
            found["Section V", name, "SFFS takes"] = minutes["SFFS"]
    if "Reuters halves" in results:
        half, whole = 100 * results["Reuters halves"].accuracy.mean(axis=(0, 2, 3))
        found["Section V", "Reuters", "accuracy gained by twice the time"] = whole - half
    if "Figure 6" in results:
        found["Section V", "Madelon", "time that suffices (Figure 6)"] = enough(results["Figure 6"]) / PROBES_A_MINUTE
    return found


def enough(result: StudyResult) -> int:
    """The fewest probes that do not fall behind the most, so far as the splits can tell."""
    counts = {name: int(name.split()[0].replace(",", "")) for name in result.selectors}
    last = result.selectors[-1]
    return next(
        count
        for name, count in counts.items()
        if name == last or not is_better(*compared(result, result.classifiers[0], last, name))
    )


def _notes(ours: Mapping[Place, float]) -> dict[Place, str]:
    return {place: NOTES[place[0], place[2]] for place in ours if (place[0], place[2]) in NOTES}


def _curves(results: Mapping[str, StudyResult]) -> dict[Place, float]:
    """Mean and deviation of accuracy, and stability, by number of features."""
    found: dict[Place, float] = {}
    for name, result in results.items():
        figure = f"Figure {SETUPS[name].figure}" if name in SETUPS else name
        means, deviations = result.accuracy.mean(axis=0), deviation(result.accuracy)
        for c, (letter, classifier) in enumerate(zip("ab", result.classifiers, strict=False)):
            where = f"{figure}{letter if name in SETUPS else ''}, accuracy of {classifier}, {_set(name)}"
            for s, selector in enumerate(result.selectors):
                found |= _by_size(where, selector, result.sizes, means[s, c])
                found |= _by_size(where, f"{selector}, deviation", result.sizes, deviations[s, c])
        if name in SETUPS:
            for letter, (measure, label) in MEASURES.items():
                for selector, values in zip(result.selectors, result.stability()[measure], strict=True):
                    found |= _by_size(f"{figure}{letter}, {label}, {name}", selector, result.sizes, values)
    return found


def _set(name: str) -> str:
    return name if name in SETUPS else ("Reuters" if name == "Reuters halves" else "Madelon")


def _by_size(where: str, row: str, sizes: Sequence[int] | NDArray[Any], values: Any) -> dict[Place, float]:
    return {(where, row, f"d = {size}"): float(value) for size, value in zip(sizes, values, strict=True)}


def _found(results: Mapping[str, StudyResult], truth: NDArray[np.int64]) -> dict[Place, float]:
    """How many of Madelon's informative features each method puts on top, of as many."""
    if "Madelon" not in results:
        return {}
    result = results["Madelon"]
    found: dict[Place, float] = {
        ("Section V", "Madelon", "informative features"): len(truth),
        ("Section V", "Madelon", "features without power"): result.n_features - len(truth),
    }
    for selector, hits in hits_by_method(result, truth).items():
        where = "Figure 4, informative features found, Madelon"
        found[where, selector, f"of the top {_nearest(result, len(truth))}"] = float(np.mean(hits))
    return found


def hits_by_method(result: StudyResult, truth: NDArray[np.int64]) -> dict[str, list[int]]:
    """Of each method and split: informative features among as many selected."""
    size = _nearest(result, len(truth))
    return {
        selector: [len(np.intersect1d(subset, truth)) for subset in result.subsets(selector, size)]
        for selector in result.selectors
    }


def _nearest(result: StudyResult, size: int) -> int:
    return int(result.sizes[np.argmin(np.abs(result.sizes - size))])


# ---- the claims


def _claims(results: Mapping[str, StudyResult], truth: NDArray[np.int64]) -> list[Claim]:
    claims = [_beats_bif(name, results[name], c) for name in SETUPS if name in results for c in (0, 1)]
    if "Madelon" in results:
        claims += [_finds_madelon(results["Madelon"], truth), _suffices(results["Figure 6"])]
        claims += [_tau_matters(results["Figure 7"])]
    if "Spambase" in results:
        claims += _against_search(results["Spambase"])
    claims += [_as_stable_as_bif(name, results[name]) for name in SETUPS if name in results]
    if "Reuters halves" in results:
        claims.append(_more_is_better(results["Reuters halves"]))
    return claims


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


def _beats_bif(name: str, result: StudyResult, c: int) -> Claim:
    classifier, role = result.classifiers[c], ("J's own classifier", "another classifier")[c]
    found = {method: compared(result, classifier, method, "BIF") for method in METHODS}
    evidence = "; ".join(f"{method} {_points(*found[method])}" for method in METHODS)
    accuracy = result.accuracy[:, :, c].mean(axis=0)
    place = int(np.argmax(accuracy[0]))
    evidence += f". At {result.sizes[place]} features: {_shares(result, accuracy[:, place])}"
    text = f"{name}: DAF is considerably better than BIF, with {classifier} ({role})"
    return Claim(text, is_better(*found["DAF0"]), evidence)


def _points(difference: float, p_value: float) -> str:
    return f"{difference:+.2f} points (p = {p_value:.2g})"


def _shares(result: StudyResult, values: Any) -> str:
    return listed(dict(zip(result.selectors, values, strict=True)), ".3f")


def _stability(result: StudyResult) -> tuple[dict[str, dict[str, float]], str]:
    """By measure and selector, the mean over sizes, and the same in words."""
    means = {label: result.stability()[measure].mean(axis=1) for measure, label in MEASURES.values()}
    words = "; ".join(f"{label}: {_shares(result, values)}" for label, values in means.items())
    return {each: dict(zip(result.selectors, values, strict=True)) for each, values in means.items()}, words


def _finds_madelon(result: StudyResult, truth: NDArray[np.int64]) -> Claim:
    hits = hits_by_method(result, truth)
    size = _nearest(result, len(truth))
    chance = size * len(truth) / result.n_features
    evidence = f"informative among the top {size}, mean over splits: " + ", ".join(
        f"{name} {np.mean(values):.1f} (least {min(values)})" for name, values in hits.items()
    )
    holds = bool(np.mean(hits["DAF0"]) >= 0.75 * size and np.mean(hits["BIF"]) < size / 2)
    return Claim(
        "Madelon: BIF failed completely while DAF identified the right features (here: fewer than half found, "
        "against three quarters or more)",
        holds,
        f"{evidence}; {chance:.1f} by chance",
    )


def _suffices(result: StudyResult) -> Claim:
    means = result.accuracy.mean(axis=(0, 2, 3))
    least, most, limit = enough(result), int(result.probes.max()), SUFFICES * PROBES_A_MINUTE
    evidence = f"mean over sizes: {_shares(result, means)}; from {least:,} probes on not below the last "
    evidence += f"(p >= {CONVINCING}), which were {least / PROBES_A_MINUTE:.0f} minutes there"
    holds = least <= round(limit) if most > limit else None
    return Claim("Madelon, figure 6: roughly 2 hours suffice to make the most of the method", holds, evidence)


def _tau_matters(result: StudyResult) -> Claim:
    means = result.accuracy.mean(axis=(0, 2, 3))
    best, ends = result.selectors[int(np.argmax(means))], (result.selectors[0], result.selectors[-1])
    evidence, holds = f"mean over sizes: {_shares(result, means)}", False if best in ends else None
    if best not in ends:
        found = [compared(result, result.classifiers[0], best, end) for end in ends]
        evidence += f"; {best} against {ends[0]} {_points(*found[0])}, against {ends[1]} {_points(*found[1])}"
        holds = True if all(is_better(*each) for each in found) else None
    text = "Madelon, figure 7: the largest probe matters less, but too low and too high values do"
    return Claim(text, holds, evidence)


def _against_search(result: StudyResult) -> list[Claim]:
    own, other = result.classifiers
    stronger, general = compared(result, own, "SFFS", "DAF0"), compared(result, other, "DAF0", "SFFS")
    stability, evidence = _stability(result)
    lower = [values["SFFS"] < min(values["DAF0"], values["BIF"]) for values in stability.values()]
    chance = {each: _least_stable(result, "SFFS", each) for each in ("DAF0", "BIF")}
    sure = ", ".join(f"against {each} at {size} features p = {p:.2g}" for each, (size, p) in chance.items())
    return [
        Claim(
            f"Spambase: SFFS is the stronger optimiser, with {own} (J's own)", is_better(*stronger), _points(*stronger)
        ),
        Claim(
            f"Spambase: DAF generalises better than SFFS to a different classifier, {other}",
            is_better(*general),
            f"DAF0 less SFFS: {_points(*general)}; by size: {_by_sizes(result, other, 'DAF0', 'SFFS')}",
        ),
        Claim(
            "Spambase: SFFS is considerably less stable than DAF and BIF",
            all(lower) if len(result.trials) >= ENOUGH_SPLITS else None,
            f"mean over sizes, {evidence}; Nogueira's test {sure}",
        ),
    ]


def _by_sizes(result: StudyResult, classifier: str, first: str, second: str) -> str:
    accuracy = result.accuracy[:, :, result.classifiers.index(classifier)].mean(axis=0)
    apart = 100 * (accuracy[result.selectors.index(first)] - accuracy[result.selectors.index(second)])
    return ", ".join(f"{size}: {value:+.2f}" for size, value in zip(result.sizes, apart, strict=True))


def _least_stable(result: StudyResult, first: str, second: str) -> tuple[int, float]:
    """The middle size, and the p-value of equal stability there."""
    size = int(result.sizes[len(result.sizes) // 2])
    if len(result.trials) < 2:
        return size, float("nan")
    test = nogueira_test(result.subsets(first, size), result.subsets(second, size), result.n_features)
    return size, test.p_value


def _as_stable_as_bif(name: str, result: StudyResult) -> Claim:
    stability, evidence = _stability(result)
    size, p_value = _least_stable(result, "DAF0", "BIF")
    evidence = f"mean over sizes, {evidence}; Nogueira's test at {size} features p = {p_value:.2g}"
    text, holds = f"{name}: the stability of DAF does not differ significantly from that of BIF", p_value >= CONVINCING
    if name == "Madelon":
        text = "Madelon: DAF is more stable than BIF"
        holds = all(values["DAF0"] > values["BIF"] for values in stability.values())
    return Claim(text, holds if len(result.trials) >= ENOUGH_SPLITS else None, evidence)


def _more_is_better(result: StudyResult) -> Claim:
    half, whole = result.selectors
    found = compared(result, result.classifiers[0], whole, half)
    evidence = f"{whole} against {half}: {_points(*found)}"
    return Claim("Reuters: twice the time gains about 1 % of accuracy", is_better(*found), evidence)


def _pictures(results: Mapping[str, StudyResult]) -> list[Picture]:
    """Figures 2 to 7, of the studies that were conducted."""
    stability = tuple(measure for measure, _ in MEASURES.values())
    names = {name: f"Figure {setup.figure}, {name}" for name, setup in SETUPS.items()}
    names |= {name: f"{name}, Madelon" for name in ("Figure 6", "Figure 7")}
    return [
        Picture(names[name], save=partial(save_study, result, stability=stability, title=names[name]))
        for name, result in results.items()
        if name in names
    ]
