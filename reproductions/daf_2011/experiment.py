"""Somol and Grim 2011: DAF against best individual features, and against floating search, on four data sets."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from probewise.bif import BIF
from probewise.criteria import SVM
from probewise.daf import DAF
from probewise.engine.fingerprints import fingerprint
from probewise.engine.replay import adjusted
from probewise.sffs import SFFS
from probewise.stopping import MaxProbes
from probewise.study import Study, TrialLedger, Trials, select, split_rows

from ..base import Outcome, Place, cells
from ..linear_svm import LinearSVM
from ..replays import Ledgers, Replay
from ..work import Progress, Reproduction, folder_of, kept
from .claims import BERNOULLI, NAME, Found, claims_of
from .claims import over_sets as over_sets
from .data import SETUPS, informative, prepared
from .numbers import curves, notes, of_features, pictures, protocol, shape
from .remarks import FULL, remark_claims, remark_numbers, remarks
from .remarks import TITLE as REMARKS
from .remarks import Effort as RemarkEffort

TITLE = (
    "Somol, Grim: Fast dependency-aware feature selection in very-high-dimensional pattern recognition problems, 2011"
)
COEFFICIENTS = {
    "DAF0": "daf0",
    "DAF1": "daf1",
    "DAF2": "daf2",
    "DAF0 centred": "daf0_centered",
    "DAF2 centred": "daf2_centered",
}
SVM_AS_J = "SVM as J"
STUDIES = {  # of each set, in the paper's order
    "Reuters": ("Reuters", "Reuters twice", "Reuters tau", SVM_AS_J),
    "Gisette": ("Gisette",),
    "Madelon": ("Madelon", "Figure 6", "Figure 7"),
    "Spambase": ("Spambase",),
}
PARTS = (*(title for titles in STUDIES.values() for title in titles), REMARKS)


@dataclass(frozen=True)
class Effort:
    """How much of a data set's experiment is done.

    ``trials`` where it is not as many as for the others; ``bernoulli``: whether probes of eq. 4 are made, too, with the
    same mean size.
    """

    probes: int
    sizes: tuple[int, ...]
    trials: int | None = None
    bernoulli: bool = True


@dataclass(frozen=True)
class Settings:
    """A profile: splits, probes and subset sizes of each set, those of figures 6 and 7, and of what is said of Reuters.

    For Reuters ``wide_taus`` are largest probes, each with as many probes as put a word into ``wide_held`` of them;
    ``svm_probes`` those of the linear SVM as J, on the first split.
    """

    trials: int
    parts: Mapping[str, Effort]
    figure_6: tuple[int, ...]
    taus: tuple[int, ...]
    tau_probes: int
    tau_trials: int
    twice_trials: int = 2
    wide_taus: tuple[int, ...] = ()
    wide_held: int = 0
    wide_trials: int = 0
    svm_probes: int = 0
    remarks: RemarkEffort | None = None


WIDE = (10, 20, 50, 100, 200, 500, 1000)
FEW = (1, 2, 3, 5, 7, 10, 15, 20)
ALL_57 = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 28, 35, 45, 57)
PROFILES = {
    "quick": Settings(
        trials=4,
        parts={
            "Reuters": Effort(20_000, (20, 100, 500), trials=2, bernoulli=False),
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
            "Reuters": Effort(148_000, WIDE),
            "Gisette": Effort(46_400, (2, 5, *WIDE)),
            "Madelon": Effort(25_000, (*FEW, 30, 50), bernoulli=False),
            "Spambase": Effort(160_000, ALL_57),
        },
        figure_6=(400, 1_000, 2_500, 5_000, 10_000, 16_667, 25_000),
        taus=(2, 5, 10, 20, 50, 100, 150, 300, 500),
        tau_probes=8_000,
        tau_trials=20,
        twice_trials=20,
        wide_taus=(20, 200, 1_000, 3_000, 10_000),
        wide_held=100,
        wide_trials=5,
        svm_probes=16_000,
        remarks=FULL,
    ),
}


def run(reproduction: Reproduction) -> Outcome:
    """The studies of the data sets in the settings: those of figures 2 to 5 first, the shorter ones before others."""
    settings, found = reproduction.settings, Found(device=reproduction.device)
    ours: dict[Place, float] = {}
    with folder_of(reproduction) as folder:
        names = [name for name in settings.parts if any(map(reproduction.includes, STUDIES[name]))]
        sets = {name: Experiments.of(name, reproduction, folder) for name in names}
        studies = [(each, title) for each in sets.values() for title in each.studies if reproduction.includes(title)]
        in_turn = sorted(studies, key=lambda one: (one[1] not in SETUPS, settings.parts[one[0].name].probes))
        with runs_ahead(in_turn, reproduction) as wait_for:
            if "Reuters" in sets and settings.svm_probes and reproduction.includes(SVM_AS_J):
                found.svm = svm_control(sets["Reuters"], reproduction, folder)
            for each, title in in_turn:
                wait_for(title)
                each.conduct(title, replace(reproduction, folder=folder), found)
        for each in sets.values():
            each.clear()
    for each in sets.values():
        ours |= shape(each.name, each.X, each.y)
    found.results = {title: found.results[title] for _, title in studies}
    if "Madelon" in found.results:
        found.truth = informative(reproduction.data("madelon"))
    ours |= protocol(settings.trials, found) | curves(found.results) | of_features(found)
    claims = claims_of(found)
    if settings.remarks and reproduction.includes(REMARKS):
        remarked = remarks(settings.remarks, reproduction)
        ours |= remark_numbers(remarked)
        claims += remark_claims(remarked)
    return Outcome(cells(NAME, ours, notes(ours)), claims, pictures=pictures(found.results))


# ---- the experiments


@dataclass(frozen=True)
class Experiments:
    """A data set, and its studies by title: figures 2 to 5; for Madelon 6 and 7; for Reuters what is said of it."""

    name: str
    X: Any
    y: NDArray[Any]
    studies: dict[str, Study]
    folders: tuple[Path, ...]  # of ledgers

    @classmethod
    def of(cls, name: str, reproduction: Reproduction, folder: Path) -> Experiments:
        setup, settings = SETUPS[name], reproduction.settings
        X, y = prepared(reproduction.data(setup.file))
        effort, tau = settings.parts[name], min(setup.tau, X.shape[1])
        trials = effort.trials or settings.trials
        ledgers = Ledgers(folder / "runs" / f"ledgers-{setup.file}")
        longer = Ledgers(folder / "runs" / f"ledgers-{setup.file}-longer", ledgers.folder)
        by_size = Ledgers(folder / "runs" / f"ledgers-{setup.file}-by-size")
        daf = DAF(
            criterion=setup.criterion,
            max_probe_size=tau,
            stop=MaxProbes(effort.probes),
            device=reproduction.device,
        )
        own = dict([next(iter(setup.classifiers.items()))])
        studies: dict[str, Study] = {}

        def study(
            title: str,
            selectors: dict[str, Any],
            classifiers: Mapping[str, Any] = own,
            trials: int = trials,
        ) -> None:
            file = kept(folder, title.lower().replace(" ", "-"))
            seed, workers = reproduction.seed, reproduction.n_jobs
            studies[title] = Study(
                selectors,
                classifiers,
                trials=trials,
                sizes=effort.sizes,
                random_state=seed,
                n_jobs=workers,
                ledger=file,
            )

        def first(run: DAF, ledgers: Ledgers, *counts: int) -> dict[str, Any]:
            return {f"{count:,} probes": Replay(run, ledgers=ledgers, n_probes=count) for count in counts}

        def by_tau(probes: Mapping[int, int]) -> dict[str, Any]:
            runs = {tau: replaced(daf, max_probe_size=tau, stop=MaxProbes(count)) for tau, count in probes.items()}
            return {f"tau = {tau}": Replay(run, ledgers=by_size) for tau, run in runs.items()}

        selectors: dict[str, Any] = {
            each: Replay(daf, ledgers=ledgers, coefficient=coefficient) for each, coefficient in COEFFICIENTS.items()
        }
        if effort.bernoulli:
            share = (tau + 1) / 2 / X.shape[1]
            selectors[BERNOULLI] = Replay(replaced(daf, inclusion=share, max_probe_size=None), ledgers=ledgers)
        selectors["BIF"] = BIF(criterion=setup.criterion)
        if setup.has_search:
            selectors["SFFS"] = SFFS(criterion=setup.criterion)
        study(name, selectors, setup.classifiers)
        if name == "Madelon":
            study("Figure 6", first(daf, ledgers, *settings.figure_6))
            if settings.taus:
                taus = dict.fromkeys(settings.taus, settings.tau_probes)
                study("Figure 7", by_tau(taus), trials=settings.tau_trials)
        if name == "Reuters":
            if settings.twice_trials:
                twice = replaced(daf, stop=MaxProbes(2 * effort.probes))
                counts = effort.probes, 2 * effort.probes
                study("Reuters twice", first(twice, longer, *counts), trials=settings.twice_trials)
            held = settings.wide_held * 2 * X.shape[1]
            wide = {min(tau, X.shape[1]): held // (min(tau, X.shape[1]) + 1) for tau in settings.wide_taus}
            if wide:
                study("Reuters tau", by_tau(wide), trials=settings.wide_trials)
        return cls(name, X, y, studies, (ledgers.folder, longer.folder, by_size.folder))

    def conduct(self, title: str, reproduction: Reproduction, found: Found) -> None:
        """A study, and what the runs of figures 2 to 5 counted: into what was found."""
        study, tell = self.studies[title], reproduction.progress
        verbose = (lambda line: tell(f"{title}, {line}")) if tell else 0
        found.results[title] = replace(study, verbose=verbose).compare(self.X, self.y)
        if len(found.results[title].trials) < study.trials:
            raise KeyboardInterrupt
        if title == self.name:
            found.runs[title] = self._counted(study, reproduction)

    def clear(self) -> None:
        """Away with the ledgers."""
        for each in self.folders:
            shutil.rmtree(each, ignore_errors=True)

    def _counted(self, study: Study, reproduction: Reproduction) -> list[dict[str, float]]:
        plain = Trials({"DAF0": study.selectors["DAF0"]}, {}, np.array(study.sizes), 0.5, reproduction.seed)
        work, name = partial(counts, plain, self.X, self.y), f"counts-{SETUPS[self.name].file}"
        settings = plain.settings(self.X, self.y)
        found = reproduction.conduct(name, work, range(study.trials), settings, f"{self.name}, counts")
        return list(found.values())

    def make_runs(self, title: str, is_over: Event, progress: Progress = None) -> None:
        """Make the missing runs of a study in sequence: a GPU has no room for several processes."""
        study = self.studies[title]
        selectors = {name: each for name, each in study.selectors.items() if isinstance(each, Replay)}
        trials = Trials(selectors, {}, np.array(study.sizes), study.test_size, study.random_state)
        with TrialLedger(study.ledger) as file:
            missing = [trial for trial in range(study.trials) if trial not in file.trials]
        for trial in missing:
            train, _ = trials.split(self.y, trial)
            for selector in selectors.values():
                if is_over.is_set():
                    return
                trials.seeded(selector, trial).make(self.X[train], self.y[train])
            if progress:
                progress(f"{title}: runs of split {trial}")


@contextmanager
def runs_ahead(
    studies: Sequence[tuple[Experiments, str]], reproduction: Reproduction
) -> Iterator[Callable[[str], Any]]:
    """A function that waits for the runs of a study, which a GPU makes in turn while others are judged."""
    if reproduction.device == "cpu":
        yield lambda title: None
        return
    is_over = Event()
    with ThreadPoolExecutor(1) as pool:
        made = {title: pool.submit(each.make_runs, title, is_over, reproduction.progress) for each, title in studies}
        try:
            yield lambda title: made[title].result()
        finally:
            is_over.set()


def replaced(daf: DAF, **parameters: Any) -> DAF:
    return cast(DAF, clone(daf).set_params(**parameters))


def counts(trials: Trials, X: Any, y: NDArray[Any], trial: int) -> dict[str, float]:
    """Probes per feature in a trial's DAF run, seconds of scoring, and seconds for all three coefficients."""
    train, _ = trials.split(y, trial)
    replay = trials.seeded(trials.selectors["DAF0"], trial).fit(X[train], y[train])
    run, started = replay.run_, time.perf_counter()
    for coefficient in ("daf0", "daf1", "daf2"):
        replace(run, _coefficients={}).coefficient(coefficient)
    return {
        "held": float(run.tally.counts.mean()),
        "least held": float(run.tally.counts.min()),
        "n_probes": run.ledger.n_probes,
        "seconds": run.ledger.seconds,
        "coefficients seconds": time.perf_counter() - started,
    }


def svm_control(reuters: Experiments, reproduction: Reproduction, folder: Path) -> dict[str, Any]:
    """Reuters with the linear SVM as J, its C tuned once on all words of the split; ridge with as many probes."""
    X, y, sizes = reuters.X, reuters.y, reproduction.settings.parts["Reuters"].sizes
    n_probes, seed = reproduction.settings.svm_probes, reproduction.seed
    work = partial(svm_trial, X, y, sizes, n_probes, seed, folder / "runs" / "svm.sqlite", reproduction)
    settings = {"data": fingerprint(X), "target": fingerprint(y), "probes": n_probes, "seed": seed, "sizes": sizes}
    alone = replace(reproduction, n_jobs=None, folder=folder)
    found: dict[str, Any] = alone.conduct("svm", work, [0], settings, SVM_AS_J)[0]
    return found


def svm_trial(
    X: Any, y: NDArray[Any], sizes: Sequence[int], n_probes: int, seed: int, ledger: Path, how: Reproduction, trial: int
) -> dict[str, Any]:
    split_seed, daf_seed = np.random.SeedSequence([seed, trial]).generate_state(2).tolist()
    train, test = split_rows(y, 0.5, split_seed)
    tuned = SVM("linear", tune=True).bind(X[train], y[train]).C
    svm, tau = SVM("linear", C=tuned), min(SETUPS["Reuters"].tau, X.shape[1])
    same = {
        "max_probe_size": tau,
        "stop": MaxProbes(n_probes),
        "random_state": daf_seed,
        "n_jobs": how.n_jobs,
    }
    selectors = {
        "DAF0, SVM as J": DAF(criterion=svm, ledger=ledger, verbose=how.progress or 0, **same),
        "DAF0, ridge as J": DAF(criterion=SETUPS["Reuters"].criterion, **same),
        "BIF, SVM as J": BIF(criterion=svm, n_jobs=how.n_jobs),
        "BIF, ridge as J": BIF(criterion=SETUPS["Reuters"].criterion),
    }
    accuracy, seconds = {}, {}
    for name, selector in selectors.items():
        started = time.perf_counter()
        subsets = select(selector, X[train], y[train], list(sizes))
        seconds[name] = time.perf_counter() - started
        judges = [LinearSVM(tuned).fit(X[train][:, subset], y[train]) for subset in subsets]
        right = [judge.predict(X[test][:, subset]) == y[test] for judge, subset in zip(judges, subsets, strict=True)]
        accuracy[name] = [float(np.mean(each)) for each in right]
    runs = [selectors[f"DAF0, {each} as J"].run_ for each in ("SVM", "ridge")]
    of_like_size = [np.concatenate([values for _, values in adjusted(run.plan, run.ledger)]) for run in runs]
    ledger.unlink(missing_ok=True)
    return {
        "C": tuned,
        "n_probes": n_probes,
        "sizes": list(sizes),
        "accuracy": accuracy,
        "seconds": seconds,
        "agreement": float(np.corrcoef(of_like_size)[0, 1]),
    }
