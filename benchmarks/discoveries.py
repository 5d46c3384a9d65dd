"""False discovery rate and power of ``DAF.stands_out`` on artificial data with known informative features.

python -m benchmarks discoveries [--only naive_bayes|knn] [--small]
"""

import time
from dataclasses import dataclass

import numpy as np

from benchmarks.measure import print_table
from probewise import DAF
from probewise.stopping import MaxProbes

RUNS = {"naive_bayes": {200: 200, 1000: 200}, "knn": {200: 100, 1000: 100}}
SMALL = {200: 10, 1000: 10}
RATE = 0.1
BLOCK, CORRELATION = 20, 0.5
PROBES = {200: 2000, 1000: 3000}
INFORMATIVE = (0, 5, 10)


@dataclass(frozen=True)
class PlantedData:
    """Two classes that differ in some columns; the other columns are independent or correlated noise."""

    X: np.ndarray
    y: np.ndarray
    informative: np.ndarray
    uncounted: np.ndarray  # noise correlated with an informative column: selecting it is neither right nor wrong

    @classmethod
    def of(cls, n_features, n_informative, *, correlated, seed, n_rows=200):
        rng = np.random.default_rng(seed)
        y = np.arange(n_rows) % 2
        X = rng.standard_normal((n_rows, n_features))
        block = np.arange(n_features) // BLOCK
        if correlated:
            common = rng.standard_normal((n_rows, block[-1] + 1))[:, block]
            X = np.sqrt(1 - CORRELATION) * X + np.sqrt(CORRELATION) * common
        informative = np.zeros(n_features, dtype=bool)
        informative[rng.choice(n_features, n_informative, replace=False)] = True
        X[:, informative] += 0.8 * y[:, None]
        uncounted = np.isin(block, block[informative]) & ~informative & correlated
        return cls(X, y, informative, uncounted)


def outcomes_of(n_features, n_informative, *, correlated, criterion, runs, rate=RATE, n_rows=200):
    """Number selected, share of false discoveries, and share of informative features found, for each run."""
    outcomes = []
    for run in range(runs):
        data = PlantedData.of(n_features, n_informative, correlated=correlated, seed=run, n_rows=n_rows)
        options = {"criterion": criterion, "stop": MaxProbes(PROBES[n_features]), "random_state": run}
        selected = DAF(**options).fit(data.X, data.y).stands_out(rate) & ~data.uncounted
        n_selected = selected.sum()
        n_false, n_found = (selected & ~data.informative).sum(), (selected & data.informative).sum()
        power = n_found / n_informative if n_informative else np.nan
        outcomes.append((n_selected, n_false / max(1, n_selected), power))
    return np.array(outcomes)


def main(only=None, small=False):
    for criterion, runs in RUNS.items():
        if only in (None, criterion):
            _table(criterion, SMALL if small else runs)


def _table(criterion, runs_of):
    rows = []
    for n_features, runs in runs_of.items():
        for correlated in (False, True):
            for n_informative in INFORMATIVE:
                started = time.perf_counter()
                options = {"correlated": correlated, "criterion": criterion, "runs": runs}
                selected, false, power = outcomes_of(n_features, n_informative, **options).T
                error = false.std(ddof=1) / np.sqrt(runs)
                rows.append(
                    [n_features, "correlated" if correlated else "independent", n_informative, PROBES[n_features], runs]
                )
                rows[-1] += [f"{false.mean():.3f} ± {error:.3f}", f"{power.mean():.2f}" if n_informative else "-"]
                rows[-1] += [f"{selected.mean():.1f}", f"{(time.perf_counter() - started) / runs:.2f}"]
    title = f"Features selected at a false discovery rate of {RATE:g}, criterion {criterion}, 200 rows"
    header = ["features", "noise", "informative", "probes", "runs", "false", "power", "selected", "seconds per run"]
    print_table(title, header, rows)
