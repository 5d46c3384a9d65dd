"""Does ``n_features_to_select="auto"`` hold its false-discovery rate, and what does it find? On data planted for it.

python -m benchmarks discoveries [--only naive_bayes|knn] [--small]
"""

import time
import warnings
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
class Planted:
    """Two classes, apart in some columns; the others are noise, alone or in blocks that go together."""

    X: np.ndarray
    y: np.ndarray
    informative: np.ndarray
    neither: np.ndarray  # noise that goes with an informative column: finding it is no mistake, and no merit

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
        neither = np.isin(block, block[informative]) & ~informative & correlated
        return cls(X, y, informative, neither)


def realised(n_features, n_informative, *, correlated, criterion, runs, rate=RATE, n_rows=200):
    """Of each run: how many are kept, the share of them that is false, and the share of the informative found."""
    outcomes = []
    for run in range(runs):
        data = Planted.of(n_features, n_informative, correlated=correlated, seed=run, n_rows=n_rows)
        options = {"criterion": criterion, "stop": MaxProbes(PROBES[n_features]), "random_state": run}
        daf = DAF("stands_out", fdr=rate, min_features_to_select=0, **options)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="no feature stands out")
            kept = daf.fit(data.X, data.y).support_ & ~data.neither
        false, found = (kept & ~data.informative).sum(), (kept & data.informative).sum()
        outcomes.append((kept.sum(), false / max(1, kept.sum()), found / n_informative if n_informative else np.nan))
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
                kept, false, found = realised(n_features, n_informative, **options).T
                error = false.std(ddof=1) / np.sqrt(runs)
                rows.append(
                    [n_features, "in blocks" if correlated else "alone", n_informative, PROBES[n_features], runs]
                )
                rows[-1] += [f"{false.mean():.3f} ± {error:.3f}", f"{found.mean():.2f}" if n_informative else "-"]
                rows[-1] += [f"{kept.mean():.1f}", f"{(time.perf_counter() - started) / runs:.2f}"]
    title = f"Kept at a false-discovery rate of {RATE:g}, criterion {criterion}, 200 rows"
    header = ["features", "noise", "informative", "probes", "runs", "false", "found", "kept", "seconds a run"]
    print_table(title, header, rows)
