"""Scaling: a million features, cost per probe by features and rows, millions of probes, and losses of a filter.

    python -m benchmarks scale                    all four parts
    python -m benchmarks scale --only million     one of million, growth, load, filter
    python -m benchmarks scale --small            a hundredth of the data, to see that it works

Each measurement runs in its own process. Memory is the peak of that process, including interpreter, libraries and data.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import in_fresh_process, peak_mib, resident_mib

WORKERS = 2
INFORMATIVE = 50
COVERAGE = 20
TAU = 200
PASSING = 0.02  # share of features that pass the filter
PLOT = Path(__file__).with_name("growth.svg")
PARTS = ("million", "growth", "load", "filter")


def main(only=None, small=False):
    if only not in (None, *PARTS):
        raise SystemExit(f"--only {only}: choose one of {', '.join(PARTS)}")
    for part in PARTS if only is None else (only,):
        {"million": million, "growth": growth, "load": load, "filter": losses_of_a_filter}[part](small)


def measured(function, *arguments):
    """Result of a function of this module, called in a new process."""
    code = f"import json, benchmarks.scale as scale; print(json.dumps(scale.{function.__name__}(*{arguments!r})))"
    return json.loads(in_fresh_process(code).splitlines()[-1])


def show(title, header, rows):
    """Print a table in Markdown."""
    print(f"\n{title}\n")
    for row in [header, ["---"] * len(header), *rows]:
        print(f"| {' | '.join(map(str, row))} |")


def reset_peak():
    """Reset the peak memory of this process."""
    Path("/proc/self/clear_refs").write_text("5")


# ---- a million features


def wide(n_features, order, n_rows=200):
    """A float32 table in Fortran (F) or C order with two classes; the first features are informative."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    X = rng.standard_normal((n_features, n_rows), dtype=np.float32).T
    if order == "C":
        X = np.ascontiguousarray(X)
    X[:, :INFORMATIVE] += np.where(y, 0.7, 0.0).astype(np.float32)[:, None]
    return X, y


def daf(criterion, tau, *, coverage=COVERAGE):
    from probewise import DAF
    from probewise.stopping import MinCoverage

    options = {"max_probe_size": tau, "stop": MinCoverage(coverage)}
    return DAF(INFORMATIVE, criterion=criterion, n_jobs=WORKERS, random_state=0, **options)


def filtered(name, **options):
    import probewise

    return getattr(probewise, name)(n_jobs=WORKERS, **options)


def after_filter(make):
    from sklearn.pipeline import make_pipeline

    return make_pipeline(filtered("FSDD", n_features_to_select=PASSING), make())


def top(selector):
    """The best columns of X."""
    if not hasattr(selector, "steps"):
        return np.argsort(selector.ranking_)[:INFORMATIVE]
    return selector[0].get_support(indices=True)[np.argsort(selector[-1].ranking_)[:INFORMATIVE]]


METHODS = {
    "DAF, Linear, tau = 100": partial(daf, "linear", 100),  # the cost grows with the cube of the probe size
    "DAF, k-NN, tau = 200": partial(daf, "knn", 200),
    "DAF on the best 2% of FSDD, coverage 200": partial(after_filter, partial(daf, "knn", 200, coverage=200)),
    "FSDD": partial(filtered, "FSDD"),
    "MRMR(50)": partial(filtered, "MRMR", n_features_to_select=50),
    "ReliefF": partial(filtered, "ReliefF"),
}


def one_of_a_million(method, n_features, order):
    X, y = wide(n_features, order)
    selector = METHODS[method]()
    selector.fit(np.asarray(X[:, :5000], order=order), y)  # loads or compiles
    reset_peak()
    started = time.perf_counter()
    selector.fit(X, y)
    seconds, peak = time.perf_counter() - started, peak_mib()
    best, last = top(selector), selector[-1] if hasattr(selector, "steps") else selector
    return {
        "seconds": seconds,
        "data": X.nbytes / 2**20,
        "peak": peak,
        "probes": getattr(last, "n_probes_", None),
        "least": int(last.run_.feature_tally.counts.min()) if hasattr(last, "run_") else None,
        "found": int((best < INFORMATIVE).sum()),
    }


def million(small=False):
    n_features = 10_000 if small else 1_000_000
    rows = []
    for method in METHODS:
        for order in ("F", "C"):
            got = measured(one_of_a_million, method, n_features, order)
            probes = "" if got["probes"] is None else f"{got['probes']:,}"
            least = "" if got["least"] is None else got["least"]
            seconds, times = f"{got['seconds']:,.2f}", f"{got['peak'] / got['data']:.2f}"
            rows.append([method, order, seconds, f"{got['peak']:,.0f}", times, probes, least, got["found"]])
            print("  ".join(map(str, rows[-1])), flush=True)
    show(
        f"200 x {n_features:,} float32, {WORKERS} workers; DAF to coverage {COVERAGE}; "
        f"found: number of the {INFORMATIVE} informative features in the top {INFORMATIVE}",
        ["method", "order", "seconds", "peak MiB", "peak / X", "probes", "lowest coverage", "found"],
        rows,
    )


# ---- cost per probe

CRITERIA = {"linear": "Linear", "naive_bayes": "NaiveBayes", "knn": "k-NN"}
MAX_ROWS_OF_KNN = 10_000  # k-NN compares a third of all pairs of rows


@dataclass
class Growth:
    """A quantity that grows, the fixed settings, and the shape (rows, features, tau, memory order) of each point."""

    name: str
    fixed: str
    at: list
    shape: Callable

    def measure(self, seconds):
        self.costs = [
            {criterion: self.cost(criterion, self.shape(n), seconds) for criterion in CRITERIA} for n in self.at
        ]
        rows = [
            [f"{n:,}", *("" if cost is None else f"{cost:,.0f}" for cost in costs.values())]
            for n, costs in zip(self.at, self.costs, strict=True)
        ]
        show(f"Microseconds per probe, one core; {self.fixed}", [self.name, *CRITERIA.values()], rows)

    @staticmethod
    def cost(criterion, shape, seconds):
        if criterion == "knn" and shape[0] > MAX_ROWS_OF_KNN:
            return None
        return measured(microseconds_per_probe, criterion, shape, seconds)


def microseconds_per_probe(criterion, shape, seconds):
    """Cost of a probe in a run of this many seconds on one core, without binding."""
    from probewise import DAF
    from probewise.stopping import MaxProbes, MaxTime

    n_rows, n_features, tau, order = shape
    X, y = wide(n_features, order, n_rows)
    options = {"criterion": criterion, "max_probe_size": tau, "random_state": 0}
    DAF(stop=MaxProbes(50), **options).fit(X, y)  # loads or compiles
    run = DAF(stop=MaxTime(seconds), **options).fit(X, y)
    return 1e6 * run.run_.ledger.seconds / run.n_probes_


def growth(small=False):
    features, rows = [10**3, 10**4, 10**5, 10**6], [10**2, 10**3, 10**4, 10**5]
    if small:
        features, rows = features[:3], rows[:3]
    panels = [
        Growth("features", "200 rows, tau = 100, Fortran order", features, lambda n: (200, n, 100, "F")),
        Growth("features", "200 rows, tau = 100, C order", features, lambda n: (200, n, 100, "C")),
        Growth("rows", "1,000 features, tau = 100", rows, lambda n: (n, 1000, 100, "F")),
        Growth("tau", "2,000 rows, 10,000 features", [20, 40, 80, 160, 320], lambda n: (2000, 10_000, n, "F")),
    ]
    for panel in panels:
        panel.measure(0.3 if small else 4.0)
    if not small:
        draw_growth([panels[0], *panels[2:]])
        print(f"\nThe plot is in {PLOT.name}")


def draw_growth(panels):
    """Plot the cost per probe on logarithmic axes; the dotted line is proportional growth."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(1, len(panels), figsize=(10.5, 3.6), sharey=True, layout="constrained")
    for axis, panel in zip(axes, panels, strict=True):
        for (criterion, word), marker in zip(CRITERIA.items(), "os^", strict=True):
            costs = [each[criterion] for each in panel.costs]
            known = [(n, cost) for n, cost in zip(panel.at, costs, strict=True) if cost is not None]
            axis.loglog(*zip(*known, strict=True), marker=marker, label=word)
        start = panel.costs[0]["naive_bayes"] / 2
        axis.loglog(panel.at, [start * n / panel.at[0] for n in panel.at], ":", color="gray", label="proportional")
        axis.set(xlabel=panel.name, title=panel.fixed.removesuffix(", Fortran order"))
        axis.set_xticks(panel.at, [f"{n:,}" for n in panel.at])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("microseconds per probe")
    axes[0].legend(frameon=False)
    figure.savefig(PLOT, metadata={"Date": None})
    plt.close(figure)


# ---- millions of probes


def long_run(n_probes, n_features):
    """A long run of a criterion that costs nothing, with a ledger and all convergence measures at every look."""
    from probewise.criteria import Criterion
    from probewise.criteria.base import Folds
    from probewise.daf import DAF
    from probewise.engine.run import RunningStats
    from probewise.stopping import MaxProbes, OrderChange, RelativeChange, Settled

    weights = np.random.default_rng(0).uniform(size=n_features)

    class BoundAdditive:
        folds = Folds((), 2)

        def __call__(self, subsets):
            return np.add.reduceat(weights[subsets.indices], subsets.offsets[:-1])

    class Additive(Criterion):
        needs_target = False

        def bind(self, X, y, cv=3, *, groups=None, scoring=None):
            return BoundAdditive()

    look, looks, memory = RunningStats.look, [], []

    def timed_look(stats):
        started = time.perf_counter()
        result = look(stats)
        looks.append(time.perf_counter() - started)
        if stats.n_known % (n_probes // 4) == 0:
            memory.append(resident_mib())
        return result

    never = Settled(20, 1.1) | RelativeChange(1e-12) | OrderChange(1e-12)
    options = {"criterion": Additive(), "max_probe_size": TAU, "random_state": 0}
    X = np.zeros((2, n_features), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        DAF(stop=never | MaxProbes(4000), ledger=Path(folder) / "warm", **options).fit(X)
        RunningStats.look = timed_look
        path = Path(folder) / "run"
        started = time.perf_counter()
        run = DAF(stop=never | MaxProbes(n_probes), ledger=path, **options).fit(X)
        seconds = time.perf_counter() - started
        size = os.stat(path).st_size
    tenth = len(looks) // 10
    return {
        "probes": run.n_probes_,
        "seconds": seconds,
        "memory": memory,
        "bytes": size,
        "looks": len(looks),
        "first": 1e3 * float(np.median(looks[:tenth])),
        "last": 1e3 * float(np.median(looks[-tenth:])),
        "correlation": float(np.corrcoef(run.scores_, weights)[0, 1]),
    }


def load(small=False):
    n_probes, n_features = (80_000 if small else 2_000_000), 10_000
    got = measured(long_run, n_probes, n_features)
    memory = " / ".join(f"{mib:.1f}" for mib in got["memory"])
    show(
        f"{got['probes']:,} probes of a criterion that costs nothing, {n_features:,} features, tau = {TAU}, one core",
        ["quantity", "measured"],
        [
            ["seconds", f"{got['seconds']:.1f}"],
            ["memory after 25 / 50 / 75 / 100% of the probes", f"{memory} MiB"],
            ["ledger", f"{got['bytes'] / 1e6:.1f} MB, {got['bytes'] / got['probes']:.2f} bytes per probe"],
            ["number of looks, each with C, C2 and the agreement of halves", f"{got['looks']:,}"],
            ["median time of a look, first tenth / last tenth", f"{got['first']:.2f} / {got['last']:.2f} ms"],
            ["correlation of scores and true weights", f"{got['correlation']:.4f}"],
        ],
    )


# ---- losses of a filter

SHARES = (0.5, 0.2, 0.1, 0.05)
PAIRS, ALONE = 2, 4


def xor_pairs(n_features, n_rows, seed):
    """Two pairs that are only informative together, four features that are informative on their own, and noise.

    The class is the sign of the sum of the products of the pairs, of the single features (each half of the variance),
    and of a little noise. The factors of a product are symmetric about 0, so on their own they are uninformative.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    first, second, alone = X[:, :PAIRS], X[:, PAIRS : 2 * PAIRS], X[:, 2 * PAIRS : 2 * PAIRS + ALONE]
    signal = (first * second).sum(axis=1) / np.sqrt(PAIRS) + alone.sum(axis=1) / np.sqrt(ALONE)
    y = (signal + 0.3 * rng.standard_normal(n_rows) > 0).astype(int)
    return X, y


def passed_shares(method, n_features, n_rows, draws):
    """Share of features in pairs, of whole pairs, and of single features that pass the filter, for each cut."""
    selector = filtered(method)
    passed = np.zeros((3, len(SHARES)))
    for seed in range(draws):
        X, y = xor_pairs(n_features, n_rows, seed)
        ranking = selector.fit(X, y).ranking_
        for k, share in enumerate(SHARES):
            passes = ranking <= share * n_features
            both = passes[:PAIRS] & passes[PAIRS : 2 * PAIRS]
            passed[:, k] += passes[: 2 * PAIRS].mean(), both.mean(), passes[2 * PAIRS : 2 * PAIRS + ALONE].mean()
    return (passed / draws).tolist()


def losses_of_a_filter(small=False):
    n_rows, draws = 1000, {"FSDD": 4 if small else 400, "ReliefF": 2 if small else 50}
    rows = []
    for n_features in (100, 1000, 10_000):
        for method, n_draws in draws.items():
            shares = measured(passed_shares, method, n_features, n_rows, n_draws)
            for kind, passed in zip(("in a pair", "both of a pair", "informative alone"), shares, strict=True):
                rows.append([f"{n_features:,}", method, n_draws, kind, *(f"{share:.2f}" for share in passed)])
    show(
        f"Share of features that pass a filter, {n_rows:,} rows",
        ["features", "filter", "draws", "kind", *(f"best {share:.0%} kept" for share in SHARES)],
        rows,
    )


if __name__ == "__main__":
    main()
