"""Somol and Grim 2011: what the paper remarks of J, of the data and of floating search, each in a run of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from probewise.bif import BIF
from probewise.daf import DAF
from probewise.engine.fingerprints import fingerprint
from probewise.engine.probes import Subsets
from probewise.engine.run import Run
from probewise.sffs import SFFS
from probewise.stopping import MaxProbes
from probewise.study import corrected_t_test, select, split_rows

from ..base import Claim, Place, listed
from ..work import Reproduction
from .claims import is_better
from .data import SETUPS, informative, prepared

TITLE = "Remarks"
QUARTERS = 4  # of the sizes of probes
REPEATED = ("non-linear", "over-fitting", "contexts", "sizes")
WHERE = {
    "spread": "Section III-A, deviation of J by size",
    "non-linear": "Section V-A, Madelon",
    "over-fitting": "Section V-B, J and accuracy, Spambase",
    "slow": "Section V-B, subsets that SFFS evaluates, Madelon",
    "contexts": "Section V-C, two runs that agree, Madelon",
    "sizes": "Section V-C, two runs that agree by largest probe, Madelon",
}


@dataclass(frozen=True)
class Effort:
    """How much is done: splits, probes, and what is gone through."""

    trials: int
    probes: int  # by which J is looked at, and DAF ranks Spambase
    sizes: tuple[int, ...]  # of subsets of Spambase
    widths: tuple[int, ...]  # columns of Madelon for SFFS
    searched: int  # features SFFS selects of them
    held: tuple[int, ...]  # probes that a feature is in
    taus: tuple[int, ...]


FULL = Effort(5, 2_000, (5, 10, 20), (50, 100, 200, 500), 10, (10, 30, 100, 300), (10, 50, 150, 500))

Found = dict[str, dict[str, dict[str, Any]]]  # by remark, then set or split


def remarks(effort: Effort, reproduction: Reproduction) -> Found:
    """Results of the remarks' experiments; finished ones are read from their file."""
    sets = {name: reproduction.data(SETUPS[name].file) for name in reproduction.settings.parts}
    tables = {name: prepared(each) for name, each in sets.items()}
    truth = informative(sets["Madelon"]) if "Madelon" in sets else np.empty(0, np.int64)
    units = [("spread", name, 0) for name in tables]
    for remark in REPEATED:
        name = "Spambase" if remark == "over-fitting" else "Madelon"
        units += [(remark, name, trial) for trial in range(effort.trials) if name in tables]
    units += [("slow", "Madelon", 0)] if "Madelon" in tables else []
    data = {name: fingerprint(*table) for name, table in tables.items()}
    work = partial(remark_of, effort, tables, truth, reproduction.seed)
    header = {"data": data, "seed": reproduction.seed, "effort": repr(effort)}
    made = reproduction.conduct("remarks", work, units, header, TITLE)
    found: Found = {}
    for (remark, name, trial), values in made.items():
        found.setdefault(remark, {})[str(trial) if remark in REPEATED else name] = values
    return found


def remark_of(
    effort: Effort, tables: Mapping[str, tuple[Any, NDArray[Any]]], truth: Any, seed: int, unit: tuple[str, str, int]
) -> dict[str, Any]:
    """One remark on one split."""
    remark, name, trial = unit
    X, y = tables[name]
    split_seed, seed = np.random.SeedSequence([seed, trial]).generate_state(2).tolist()
    train, test = split_rows(y, 0.5, split_seed)
    if remark == "non-linear":
        return beyond_lines(X[:, truth], y, train, test)
    if remark == "over-fitting":
        return optimism(effort, X, y, train, test, seed)
    here = X[train], y[train]
    if remark == "spread":
        return spread_of_j(daf_run(name, *here, effort.probes, seed=seed))
    if remark == "slow":
        return evaluations(effort, *here, seed)
    if remark == "contexts":
        return {str(held): agreement(*here, held, SETUPS["Madelon"].tau, seed) for held in effort.held}
    held = effort.held[len(effort.held) // 2]
    return {str(tau): agreement(*here, held, min(tau, X.shape[1]), seed) for tau in effort.taus}


# ---- what is measured


def daf_run(name: str, X: Any, y: NDArray[Any], n_probes: int, tau: int | None = None, seed: int = 0) -> Run:
    setup = SETUPS[name]
    largest = min(tau or setup.tau, X.shape[1])
    daf = DAF(
        criterion=setup.criterion,
        max_probe_size=largest,
        stop=MaxProbes(n_probes),
        random_state=seed,
    )
    return daf.fit(X, y).run_


def spread_of_j(run: Run) -> dict[str, float]:
    """Deviation of J about its mean at the probe's size (eq. 11 and 12), pooled over each quarter of the sizes."""
    n_probes, largest = run.ledger.n_probes, run.plan.largest
    sizes, values = run.plan.sizes(0, n_probes), run.ledger.values(0, n_probes)
    counts = np.bincount(sizes, minlength=largest + 1)
    means = np.bincount(sizes, values, minlength=largest + 1) / np.maximum(counts, 1)
    squares = np.bincount(sizes, (values - means[sizes]) ** 2, minlength=largest + 1)
    found = {}
    for low, high in pairwise(np.linspace(0, largest, QUARTERS + 1).round().astype(int)):
        part = slice(low + 1, high + 1)
        free = np.maximum(counts[part] - 1, 0).sum()
        found[f"{low + 1} to {high}"] = float(np.sqrt(squares[part].sum() / free)) if free else np.nan
    return found


def beyond_lines(X: Any, y: NDArray[Any], train: Any, test: Any) -> dict[str, float]:
    """Accuracy with the informative features of 3-NN and of a linear discriminant, and of the best one alone."""

    def right(model: Any, columns: Any) -> float:
        return float(np.mean(model.fit(X[train][:, columns], y[train]).predict(X[test][:, columns]) == y[test]))

    every = np.arange(X.shape[1])
    return {
        "3-NN": right(KNeighborsClassifier(3), every),
        "linear discriminant": right(LinearDiscriminantAnalysis(), every),
        "3-NN, best alone": max(right(KNeighborsClassifier(3), [column]) for column in every),
    }


def optimism(effort: Effort, X: Any, y: NDArray[Any], train: Any, test: Any, seed: int) -> dict[str, list[float]]:
    """By method, J of the subset selected and its accuracy on the test half, means over sizes."""
    criterion, sizes = SETUPS["Spambase"].criterion, [size for size in effort.sizes if size <= X.shape[1]]
    bound = criterion.bind(X[train], y[train])
    daf = DAF(criterion=criterion, stop=MaxProbes(effort.probes), random_state=seed)
    found = {}
    for name, selector in (("SFFS", SFFS(criterion=criterion)), ("DAF0", daf), ("BIF", BIF(criterion=criterion))):
        subsets = select(selector, X[train], y[train], sizes)
        models = [KNeighborsClassifier(3).fit(X[train][:, s], y[train]) for s in subsets]
        right = [np.mean(m.predict(X[test][:, s]) == y[test]) for m, s in zip(models, subsets, strict=True)]
        found[name] = [float(np.mean(bound(Subsets.of(subsets)))), float(np.mean(right))]
    return found


def evaluations(effort: Effort, X: Any, y: NDArray[Any], seed: int) -> dict[str, float]:
    """How many subsets SFFS evaluates by how many features it selects from: to select a tenth of them, and a few."""
    columns = np.random.default_rng(seed).permutation(X.shape[1])
    criterion, found = SETUPS["Madelon"].criterion, {}
    for width in effort.widths:
        here = X[:, np.sort(columns[:width])]
        for to_select, word in ((max(1, width // 10), ""), (effort.searched, f", {effort.searched} of them")):
            search = SFFS(to_select, criterion=criterion).fit(here, y)
            found[f"{width}{word}"] = float(search.n_evaluations_)
    return found


def agreement(X: Any, y: NDArray[Any], held: int, tau: int, seed: int) -> float:
    """Correlation of DAF0 in two runs with other probes, a feature in so many of them in the mean."""
    n_probes = held * 2 * X.shape[1] // (tau + 1)
    runs = [daf_run("Madelon", X, y, n_probes, tau, seed + k) for k in (0, 1)]
    return float(np.corrcoef([run.tally.daf0() for run in runs])[0, 1])


# ---- what the paper says of it


def remark_numbers(found: Found) -> dict[Place, float]:
    numbers: dict[Place, float] = {}
    for remark, by_name in found.items():
        for name, values in by_name.items():
            for row, value in values.items():
                if isinstance(value, Sequence):
                    numbers |= {
                        (WHERE[remark], f"{row}, {w}", f"split {name}"): v
                        for w, v in zip(("J", "accuracy"), value, strict=True)
                    }
                else:
                    row_and_column = (row, f"split {name}") if remark in REPEATED else (name, row)
                    numbers[WHERE[remark], *row_and_column] = value
    return numbers


def remark_claims(found: Found) -> list[Claim]:
    claims = [_spread(name, values) for name, values in found.get("spread", {}).items()]
    for remark, judge in (
        ("non-linear", _non_linear),
        ("over-fitting", _over_fitting),
        ("contexts", _contexts),
        ("sizes", _sizes),
    ):
        if remark in found:
            claims.append(judge(list(found[remark].values())))
    return [*claims, *([_slow(found["slow"]["Madelon"])] if "slow" in found else [])]


def _spread(name: str, by_size: Mapping[str, float]) -> Claim:
    values = list(by_size.values())
    return Claim(
        f"{name}: the variance of J changes in proportion to the probe's size (here: it grows from quarter to quarter "
        "of the sizes)",
        all(a < b for a, b in pairwise(values)),
        f"deviation of J, by size: {listed(by_size, '.4f')}",
        "section III-A",
        "one split; J less its mean at each size",
    )


def _non_linear(splits: Sequence[Mapping[str, float]]) -> Claim:
    mean = {each: 100 * value for each, value in _mean(splits).items()}
    holds = mean["3-NN"] >= mean["linear discriminant"] + 10 and mean["3-NN"] >= mean["3-NN, best alone"] + 10
    text = "Madelon: classes are parted by many features together, and not by a plane (here: 3-NN on the informative "
    text += "ones is ten points ahead of a linear discriminant, and of the best one alone)"
    return Claim(text, holds, f"per cent: {listed(mean, '.1f')}", "section V-A", f"{len(splits)} splits")


def _over_fitting(splits: Sequence[Mapping[str, Sequence[float]]]) -> Claim:
    gaps = {m: np.array([100 * (split[m][0] - split[m][1]) for split in splits]) for m in splits[0]}
    apart = gaps["SFFS"] - gaps["DAF0"]
    mean, p_value = float(apart.mean()), corrected_t_test(apart, 1.0)[1]
    return Claim(
        "Spambase: SFFS's stronger optimisation comes with strong over-fitting (here: its J is further above accuracy "
        "on the test half than DAF0's)",
        is_better(mean, p_value),
        f"J less accuracy, points: {listed({m: float(gap.mean()) for m, gap in gaps.items()})}; SFFS less DAF0 "
        f"{mean:+.2f} (p = {p_value:.2g})",
        "section V-B, figure 5",
        f"{len(splits)} splits, 3-NN, up to 20 features; DAF with fewer probes than in figure 5",
    )


def _slow(counts: Mapping[str, float]) -> Claim:
    tenth = [count for width, count in counts.items() if width.isdigit()]
    few = [count for width, count in counts.items() if not width.isdigit()]
    widths = [int(width) for width in counts if width.isdigit()]
    times, grows, with_few = (each[-1] / each[0] for each in (widths, tenth, few))
    return Claim(
        "Madelon: SFFS slows down rapidly with increasing dimensionality (here: to select a tenth of the features it "
        "evaluates more subsets than in proportion to their number)",
        grows > times,
        f"subsets evaluated, by features to select from: {listed(counts, '.0f')}; {grows:.1f} times to select a tenth, "
        f"{with_few:.1f} times to select as many, for {times:.0f} times the features",
        "section V-B",
        "one split",
    )


def _mean(splits: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {each: float(np.mean([split[each] for split in splits])) for each in splits[0]}


def _contexts(splits: Sequence[Mapping[str, float]]) -> Claim:
    by_held = _mean(splits)
    return Claim(
        "Madelon: a feature must be in many probes, or what it does in general cannot be estimated (here: two runs "
        "agree the better, the more probes it is in)",
        all(a < b for a, b in pairwise(by_held.values())),
        f"correlation of DAF0, by probes with a feature: {listed(by_held, '.3f')}",
        "section V-C, remark",
        f"{len(splits)} splits, two runs of other probes",
    )


def _sizes(splits: Sequence[Mapping[str, float]]) -> Claim:
    by_tau = _mean(splits)
    return Claim(
        "Madelon: what a probe says of its features is the more reliable, the fewer it holds (here: two runs agree the "
        "better, the lower tau)",
        all(a > b for a, b in pairwise(by_tau.values())),
        f"correlation of DAF0, by tau: {listed(by_tau, '.3f')}",
        "section V-C, remark",
        f"{len(splits)} splits, two runs of other probes, a feature in as many for each tau",
    )
