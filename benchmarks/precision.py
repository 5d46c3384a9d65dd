"""Quality of rankings by number of probes, for each coefficient and sampler, compared with filters.

python -m benchmarks precision                   all parts; each writes precision-PART.md and a plot in this folder
python -m benchmarks precision --only truth      Madelon recipe (10 seeds) and UCI Madelon: informative features found
python -m benchmarks precision --only xor        an XOR pair among 500, 5,000, 50,000 features; on a GPU if there is one
python -m benchmarks precision --only accuracy   Gisette, Leukemia, Lymphoma, Reuters: accuracy on held-out rows
python -m benchmarks precision --only samplers   paired and balanced probes compared with independent ones
"""

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MaxAbsScaler

from benchmarks.measure import machine
from probewise import DAF, JMI, ReliefF
from probewise.criteria import KNN, Linear
from probewise.datasets import KnownTruth, load, make_madelon
from probewise.engine.probes import ProbePlan, Subsets
from probewise.engine.run import Run
from probewise.engine.settings import Settings
from probewise.engine.tally import Tally, positions
from probewise.kernels.device import find
from probewise.stopping import MaxProbes
from reproductions.daf_2011.data import informative

HERE = Path(__file__).parent
MARKS = (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
COEFFICIENTS = ("daf0", "daf1", "daf2", "regression")
FILTERS = {"ReliefF": ReliefF, "JMI": JMI}


def make_xor(n_samples, n_features, *, spread=0.3, random_state):
    """Two classes: whether the signs of two features are equal, each uninformative on its own, among columns of noise.

    The two features are -1 or 1, plus normal noise with deviation ``spread``, scaled to variance 1.
    """
    random = np.random.RandomState(random_state)
    signs = 2.0 * random.randint(0, 2, (n_samples, 2)) - 1.0
    X = random.standard_normal((n_samples, n_features)).astype(np.float32)
    informative = random.permutation(n_features)[:2]
    X[:, informative] = (signs + spread * X[:, informative]) / np.sqrt(1 + spread**2)
    y = (signs.prod(axis=1) > 0).astype(np.int64)
    return KnownTruth(X, y, informative.astype(np.int64), [f"f{column}" for column in range(n_features)])


@dataclass(frozen=True)
class Case:
    """Data and settings; the best ``top`` features are evaluated by the truth or on held-out rows."""

    name: str
    X: Any
    y: Any
    top: int
    truth: frozenset[int] = frozenset()
    held_out: Any = None
    classifier: Any = None
    criterion: Any = None
    tau: int | None = None
    marks: tuple[int, ...] = MARKS
    options: dict[str, Any] | None = None
    filters: tuple[str, ...] = ("ReliefF", "JMI")
    coefficients: tuple[str, ...] = COEFFICIENTS

    def quality(self, ranking):
        """Share of the informative features in the top, or accuracy of the top features on held-out rows."""
        top = np.argsort(ranking, kind="stable")[: self.top]
        if self.truth:
            return len(self.truth & set(top.tolist())) / len(self.truth)
        X, y = self.held_out
        return float(self.classifier.fit(self.X[:, top], self.y).score(X[:, top], y))


def main(only=None, small=False):
    parts = {"truth": truth_cases, "xor": xor_cases, "accuracy": accuracy_cases}
    for name in [*parts, "samplers"] if only is None else [only]:
        if name == "samplers":
            store("samplers", sampler_lines(2 if small else 10))
            continue
        results = {}
        for case in parts[name](small):
            for method, curve in curves(case).items():
                results.setdefault(case.name, {}).setdefault(method, []).append(curve)
            print(case.name, {method: runs[-1][-1][1:] for method, runs in results[case.name].items()}, flush=True)
        store(name, table_lines(results))
        draw(name, results)


# ---- data


def truth_cases(small):
    for seed in range(2 if small else 10):
        data = make_madelon(random_state=seed)
        yield Case("Madelon recipe", data.X, data.y, 20, frozenset(data.informative.tolist()), tau=150)
    madelon = load("madelon")
    rows, truth = madelon.train_index, frozenset(informative(madelon).tolist())
    yield Case("UCI Madelon", madelon.X[rows].astype(np.float32), madelon.y[rows], 20, truth, tau=150)


def xor_cases(small):
    sizes = ((500, 3), (5_000, 2), (50_000, 1))
    for n_features, n_seeds in sizes[:1] if small else sizes:
        for seed in range(n_seeds):
            data = make_xor(1_000, n_features, random_state=seed)
            many = n_features > 500
            marks = (4_000, 16_000, 64_000, 128_000) if many else MARKS
            options = {"device": "cuda", "check_every": 2_000} if many and find("auto") is not None else None
            tau = min(n_features // 2, 5_000)  # probes of 200, the default, rarely contain a given pair
            filters = ("ReliefF",) if n_features > 5_000 else ("ReliefF", "JMI")
            coefficients = ("daf0",) if many else COEFFICIENTS
            truth, name = frozenset(data.informative.tolist()), f"XOR pair, N = {n_features:,}"
            yield Case(name, data.X, data.y, 2, truth, None, None, None, tau, marks, options, filters, coefficients)


def accuracy_cases(small):
    neighbors, ridge = KNeighborsClassifier(3), RidgeClassifier()
    sets = {
        "Leukemia": ("leukemia", 20, neighbors, KNN(3), MARKS[:-1], 6),
        "Lymphoma": ("lymphoma", 20, neighbors, KNN(3), MARKS[:-1], 6),
        "Gisette": ("gisette_valid", 50, neighbors, KNN(3), MARKS[:-1], 2),
        "Reuters": ("reuters", 200, ridge, Linear(), MARKS[:4], 1),
    }
    for name, (file, top, classifier, criterion, marks, n_splits) in sets.items():
        data = load(file)
        for seed in range(1 if small else n_splits):
            split = train_test_split(np.arange(len(data.y)), test_size=0.5, stratify=data.y, random_state=seed)
            scaler = MaxAbsScaler().fit(data.X[split[0]])
            (X, y), held_out = ((scaler.transform(data.X[rows]), data.y[rows]) for rows in split)
            filters = () if name == "Reuters" else ("ReliefF", "JMI")
            options = {"held_out": held_out, "classifier": classifier, "criterion": criterion, "marks": marks}
            yield Case(name, X, y, top, filters=filters, **options)


# ---- curves


def curves(case):
    """(probes, quality, seconds) at each mark, by method; a filter has one entry with 0 probes."""
    results = {}
    daf = fitted(case)
    print(f"{case.name}: DAF in {daf.run_.ledger.seconds:.0f} s", flush=True)
    for name in case.coefficients:
        results[name] = [at_mark(case, daf, name, mark) for mark in case.marks]
    for name in case.filters:
        started = time.perf_counter()
        ranking = FILTERS[name](case.top, n_jobs=-1).fit(case.X, case.y).ranking_
        results[name] = [(0, case.quality(ranking), time.perf_counter() - started)]
    return results


def fitted(case):
    criterion = KNN(3) if case.criterion is None else case.criterion
    stop = MaxProbes(case.marks[-1])
    daf = DAF(case.top, criterion=criterion, max_probe_size=case.tau, stop=stop, random_state=0, n_jobs=-1)
    return daf.set_params(**(case.options or {})).fit(case.X, case.y)


def at_mark(case, daf, coefficient, mark):
    """Quality of the ranking if the run had ended at this number of probes."""
    ledger, plan = daf.run_.ledger.until(mark), daf.run_.feature_plan
    run = Run(plan, ledger, tally(plan, ledger), Settings.of_features(plan.n_features), ranked_by=coefficient)
    return mark, case.quality(run.ranking()), daf.run_.ledger.seconds_at(mark)


def tally(plan, ledger):
    return Tally.of(plan.draw(0, ledger.n_probes), ledger.values(), plan.n_features)


# ---- samplers


def sampler_lines(n_seeds):
    """Informative features found (of 20) on the Madelon recipe by DAF0 and regression, for three samplers."""
    lines = ["| sampler | coefficient | " + " | ".join(f"{mark:,}" for mark in MARKS[:5]) + " |"]
    lines.append("|" + " --- |" * 7)
    hits = {}
    for seed in range(n_seeds):
        data = make_madelon(random_state=seed)
        bound, truth = KNN(3).bind(data.X, data.y, 3), set(data.informative.tolist())
        for name, sampler in {"independent": independent, "balanced": balanced, "paired": paired}.items():
            subsets = sampler(500, 150, MARKS[4], seed)
            values = bound(subsets)
            for coefficient in ("daf0", "regression"):
                for mark in MARKS[:5]:
                    top = np.flatnonzero(positions(of_probes(subsets, values, mark, coefficient)) < 20)
                    hits.setdefault((name, coefficient, mark), []).append(len(truth & set(top.tolist())))
    for name in ("independent", "balanced", "paired"):
        for coefficient in ("daf0", "regression"):
            means = [f"{np.mean(hits[name, coefficient, mark]):.1f}" for mark in MARKS[:5]]
            lines.append(f"| {name} | {coefficient} | {' | '.join(means)} |")
    return lines


def of_probes(subsets, values, mark, coefficient):
    """DAF0, or ridge regression by normal equations, of the first probes."""
    part = Subsets(subsets.indices[: subsets.offsets[mark]], subsets.offsets[: mark + 1])
    if coefficient == "daf0":
        return Tally.of(part, values[:mark], 500).daf0()
    sizes, contains = part.sizes, np.zeros((mark, 500))
    contains[np.repeat(np.arange(mark), sizes), part.indices] = 1
    contains -= sizes[:, None] / 500
    group = (sizes - 1) // 5
    centered = values[:mark] - (np.bincount(group, values[:mark]) / np.maximum(np.bincount(group), 1))[group]
    gram = contains.T @ contains
    return np.linalg.solve(gram + 0.5 * gram.trace() / 500 * np.eye(500), contains.T @ centered)


def independent(n_features, tau, n_probes, seed):
    return ProbePlan(n_features, tau, seed=seed).draw(0, n_probes)


def balanced(n_features, tau, n_probes, seed):
    """Probes that use up shuffled features in turn, so that the numbers of probes per feature differ by at most one."""
    random, deck, out = np.random.default_rng(seed), np.empty(0, np.int32), []
    for size in random.integers(1, tau + 1, n_probes):
        while len(deck) < size:
            fresh = random.permutation(n_features).astype(np.int32)
            deck = np.concatenate([deck, fresh[~np.isin(fresh, deck)], fresh[np.isin(fresh, deck)]])
        chosen = np.array(list(dict.fromkeys(deck.tolist()))[:size], np.int32)
        positions_in_deck = {feature: k for k, feature in reversed(list(enumerate(deck.tolist())))}
        deck = np.delete(deck, [positions_in_deck[feature] for feature in chosen.tolist()])
        out.append(chosen)
    return Subsets.of(out)


def paired(n_features, tau, n_probes, seed):
    """Pairs of probes of equal size without a common feature."""
    random, out = np.random.default_rng(seed), []
    for size in random.integers(1, tau + 1, n_probes // 2):
        both = random.permutation(n_features)[: 2 * size].astype(np.int32)
        out += [both[:size], both[size:]]
    return Subsets.of(out)


# ---- output


def table_lines(results):
    """Table of the mean quality over runs at each mark, and the seconds at the last mark."""
    lines = []
    for name, methods in results.items():
        marks = [mark for mark, _, _ in methods["daf0"][0]]
        n_runs = len(methods["daf0"])
        lines += ["", f"**{name}** ({n_runs} {'run' if n_runs == 1 else 'runs'})", ""]
        lines.append("| method | " + " | ".join(f"{mark:,}" for mark in marks) + " | seconds |")
        lines.append("|" + " --- |" * (len(marks) + 2))
        for method, runs in methods.items():
            quality, seconds = (np.mean([[entry[k] for entry in run] for run in runs], axis=0) for k in (1, 2))
            cells = [f"{value:.3f}" for value in quality]
            cells = cells if len(cells) > 1 else ["", *[""] * (len(marks) - 2), cells[0]]
            lines.append(f"| {method} | {' | '.join(cells)} | {seconds[-1]:.1f} |")
    return lines


def store(name, lines):
    text = "\n".join([f"`python -m benchmarks precision --only {name}` on {machine()}", *lines]).strip() + "\n"
    (HERE / f"precision-{name}.md").write_text(text)
    print(text)


def draw(name, results):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    styles = {method: f"C{k}" for k, method in enumerate([*COEFFICIENTS, *FILTERS])}
    figure, axes = plt.subplots(1, len(results), figsize=(4.2 * len(results), 3.6), squeeze=False, layout="constrained")
    for axis, (title, methods) in zip(axes[0], results.items(), strict=True):
        for method, runs in methods.items():
            mean = np.mean(runs, axis=0)
            if len(mean) == 1:
                axis.axhline(mean[0, 1], color=styles[method], linestyle=":", label=method)
            else:
                axis.semilogx(mean[:, 0], mean[:, 1], color=styles[method], label=method)
        axis.set(title=title, xlabel="probes")
    axes[0, 0].set_ylabel(
        "accuracy on held-out rows" if name == "accuracy" else "share of informative features in the top"
    )
    axes[0, -1].legend(fontsize=7)
    figure.savefig(HERE / f"precision-{name}.svg", metadata={"Date": None})
    plt.close(figure)


warnings.simplefilter("ignore")
