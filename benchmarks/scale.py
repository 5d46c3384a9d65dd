"""What grows with what: a million features, cost per probe by features and rows, millions of probes, and a filter.

    python -m benchmarks scale                    all four parts
    python -m benchmarks scale --only million     one of million, growth, load, filter
    python -m benchmarks scale --small            the same on a hundredth of the data, to see that it works

Each measurement runs in a process of its own. Memory is the most that process held, interpreter, libraries and data
included.
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
PASSING = 0.02  # of the features, those that pass a filter
PLOT = Path(__file__).with_name("growth.svg")
PARTS = ("million", "growth", "load", "filter")


def main(only=None, small=False):
    if only not in (None, *PARTS):
        raise SystemExit(f"--only {only}: choose one of {', '.join(PARTS)}")
    for part in PARTS if only is None else (only,):
        {"million": million, "growth": growth, "load": load, "filter": what_a_filter_loses}[part](small)


def measured(function, *arguments):
    """What a function of this module returns, called in a fresh process."""
    code = f"import json, benchmarks.scale as scale; print(json.dumps(scale.{function.__name__}(*{arguments!r})))"
    return json.loads(in_fresh_process(code).splitlines()[-1])


def show(title, header, rows):
    """A table in Markdown."""
    print(f"\n{title}\n")
    for row in [header, ["---"] * len(header), *rows]:
        print(f"| {' | '.join(map(str, row))} |")


def forget_peak():
    """The peak counts from here."""
    Path("/proc/self/clear_refs").write_text("5")


# ---- a million features


def wide(n_features, order, n_rows=200):
    """Rows of float32 by columns (F) or by rows (C), two classes, the first features informative."""
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
    """The columns of X that rank best."""
    if not hasattr(selector, "steps"):
        return np.argsort(selector.ranking_)[:INFORMATIVE]
    return selector[0].get_support(indices=True)[np.argsort(selector[-1].ranking_)[:INFORMATIVE]]


METHODS = {
    "DAF, Linear, tau = 100": partial(daf, "linear", 100),  # its cost grows with the cube of the size
    "DAF, k-NN, tau = 200": partial(daf, "knn", 200),
    "the same on 2 % after FSDD, coverage 200": partial(after_filter, partial(daf, "knn", 200, coverage=200)),
    "FSDD": partial(filtered, "FSDD"),
    "MRMR(50)": partial(filtered, "MRMR", n_features_to_select=50),
    "ReliefF": partial(filtered, "ReliefF"),
}


def one_of_a_million(method, n_features, order):
    X, y = wide(n_features, order)
    selector = METHODS[method]()
    selector.fit(np.asarray(X[:, :5000], order=order), y)  # loads or compiles
    forget_peak()
    started = time.perf_counter()
    selector.fit(X, y)
    seconds, peak = time.perf_counter() - started, peak_mib()
    best, last = top(selector), selector[-1] if hasattr(selector, "steps") else selector
    return {
        "seconds": seconds,
        "data": X.nbytes / 2**20,
        "peak": peak,
        "probes": getattr(last, "n_probes_", None),
        "least": int(last.run_.feature_tally.counts.min()) if hasattr(last, "tally_") else None,
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
        f"found: of {INFORMATIVE} informative features in the top {INFORMATIVE}",
        ["method", "order", "seconds", "peak MiB", "x data", "probes", "least coverage", "found"],
        rows,
    )


# ---- cost per probe

CRITERIA = {"linear": "Linear", "naive_bayes": "NaiveBayes", "knn": "k-NN"}
MOST_ROWS_OF_KNN = 10_000  # a probe takes a third of all pairs of rows


@dataclass
class Growth:
    """What grows, what stays, and for each point the shape (rows, features, tau, order of memory)."""

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
        if criterion == "knn" and shape[0] > MOST_ROWS_OF_KNN:
            return None
        return measured(microseconds_a_probe, criterion, shape, seconds)


def microseconds_a_probe(criterion, shape, seconds):
    """Of a run of so many seconds on one core, binding to the data not counted."""
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
    grown = [
        Growth("features", "200 rows, tau = 100, X by columns (F)", features, lambda n: (200, n, 100, "F")),
        Growth("features", "200 rows, tau = 100, X by rows (C)", features, lambda n: (200, n, 100, "C")),
        Growth("rows", "1,000 features, tau = 100", rows, lambda n: (n, 1000, 100, "F")),
        Growth("tau", "2,000 rows, 10,000 features", [20, 40, 80, 160, 320], lambda n: (2000, 10_000, n, "F")),
    ]
    for each in grown:
        each.measure(0.3 if small else 4.0)
    if not small:
        draw_growth([grown[0], *grown[2:]])
        print(f"\nThe plot is in {PLOT.name}")


def draw_growth(panels):
    """Cost per probe on doubly logarithmic axes; the dotted line is cost in proportion to what grows."""
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
        axis.loglog(panel.at, [start * n / panel.at[0] for n in panel.at], ":", color="grey", label="in proportion")
        axis.set(xlabel=panel.name, title=panel.fixed.removesuffix(", X by columns (F)"))
        axis.set_xticks(panel.at, [f"{n:,}" for n in panel.at])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("microseconds per probe")
    axes[0].legend(frameon=False)
    figure.savefig(PLOT, metadata={"Date": None})
    plt.close(figure)


# ---- millions of probes


def hours_of_probes(n_probes, n_features):
    """A long run of a game that costs nothing, with a ledger and every measure at every look."""
    from probewise.criteria import Criterion
    from probewise.criteria.base import Folds
    from probewise.daf import DAF
    from probewise.engine import loop as engine
    from probewise.stopping import MaxProbes, OrderChange, RelativeChange, Settled

    weights = np.random.default_rng(0).uniform(size=n_features)

    class Game:
        folds = Folds((), 2)

        def __call__(self, subsets):
            return np.add.reduceat(weights[subsets.indices], subsets.offsets[:-1])

    class AdditiveGame(Criterion):
        needs_target = False

        def bind(self, X, y, cv=3, *, groups=None, scoring=None):
            return Game()

    look, looks, held = engine.RunningStats.look, [], []

    def timed_look(knowledge):
        started = time.perf_counter()
        found = look(knowledge)
        looks.append(time.perf_counter() - started)
        if knowledge.known % (n_probes // 4) == 0:
            held.append(resident_mib())
        return found

    never = Settled(20, 1.1) | RelativeChange(1e-12) | OrderChange(1e-12)
    options = {"criterion": AdditiveGame(), "max_probe_size": TAU, "random_state": 0}
    X = np.zeros((2, n_features), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        DAF(stop=never | MaxProbes(4000), ledger=Path(folder) / "warm", **options).fit(X)
        engine.RunningStats.look = timed_look
        path = Path(folder) / "run"
        started = time.perf_counter()
        run = DAF(stop=never | MaxProbes(n_probes), ledger=path, **options).fit(X)
        seconds = time.perf_counter() - started
        size = os.stat(path).st_size
    tenth = len(looks) // 10
    return {
        "probes": run.n_probes_,
        "seconds": seconds,
        "held": held,
        "bytes": size,
        "looks": len(looks),
        "first": 1e3 * float(np.median(looks[:tenth])),
        "last": 1e3 * float(np.median(looks[-tenth:])),
        "agrees": float(np.corrcoef(run.scores_, weights)[0, 1]),
    }


def load(small=False):
    n_probes, n_features = (80_000 if small else 2_000_000), 10_000
    got = measured(hours_of_probes, n_probes, n_features)
    held = " / ".join(f"{mib:.1f}" for mib in got["held"])
    show(
        f"{got['probes']:,} probes of a game that costs nothing, {n_features:,} features, tau = {TAU}, one core",
        ["what", "measured"],
        [
            ["seconds", f"{got['seconds']:.1f}"],
            ["memory at 25 / 50 / 75 / 100 % of the probes", f"{held} MiB"],
            ["ledger", f"{got['bytes'] / 1e6:.1f} MB, {got['bytes'] / got['probes']:.2f} bytes a probe"],
            ["looks, each with C, C2 and the top of two halves", f"{got['looks']:,}"],
            ["a look, median of the first tenth / the last", f"{got['first']:.2f} / {got['last']:.2f} ms"],
            ["correlation of scores with the game's weights", f"{got['agrees']:.4f}"],
        ],
    )


# ---- what a filter loses

SHARES = (0.5, 0.2, 0.1, 0.05)
PAIRS, ALONE = 2, 4


def xor_pairs(n_features, n_rows, seed):
    """Two pairs that tell something only together, four features that tell something alone, noise.

    The class is the sign of the sum of the pairs' products and of the single features, half each in variance, and of
    a little noise. A factor of a product is symmetric about 0, so that alone it tells nothing of the class.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    first, second, alone = X[:, :PAIRS], X[:, PAIRS : 2 * PAIRS], X[:, 2 * PAIRS : 2 * PAIRS + ALONE]
    signal = (first * second).sum(axis=1) / np.sqrt(PAIRS) + alone.sum(axis=1) / np.sqrt(ALONE)
    y = (signal + 0.3 * rng.standard_normal(n_rows) > 0).astype(int)
    return X, y


def passed_shares(judge, n_features, n_rows, draws):
    """For each cut: the share of features of pairs, of whole pairs, and of single features that pass, over draws."""
    selector = filtered(judge)
    passed = np.zeros((3, len(SHARES)))
    for seed in range(draws):
        X, y = xor_pairs(n_features, n_rows, seed)
        ranking = selector.fit(X, y).ranking_
        for place, share in enumerate(SHARES):
            does = ranking <= share * n_features
            both = does[:PAIRS] & does[PAIRS : 2 * PAIRS]
            passed[:, place] += does[: 2 * PAIRS].mean(), both.mean(), does[2 * PAIRS : 2 * PAIRS + ALONE].mean()
    return (passed / draws).tolist()


def what_a_filter_loses(small=False):
    n_rows, draws = 1000, {"FSDD": 4 if small else 400, "ReliefF": 2 if small else 50}
    rows = []
    for n_features in (100, 1000, 10_000):
        for judge, n_draws in draws.items():
            shares = measured(passed_shares, judge, n_features, n_rows, n_draws)
            for kind, passed in zip(("of a pair", "both of a pair", "alone"), shares, strict=True):
                rows.append([f"{n_features:,}", judge, n_draws, kind, *(f"{share:.2f}" for share in passed)])
    show(
        f"Share that passes a filter, {n_rows:,} rows: features of XOR pairs, both of a pair, features that tell alone",
        ["features", "filter", "draws", "kind", *(f"cut at {share:.0%}" for share in SHARES)],
        rows,
    )


if __name__ == "__main__":
    main()
