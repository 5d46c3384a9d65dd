"""Accuracy of confidence statements, compared with truths known by construction or from many more probes.

python -m benchmarks trust [--only coefficients|ranks|tops] [--small]
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.measure import print_table
from probewise.criteria import KNN
from probewise.datasets import make_madelon
from probewise.engine.certainty import Certainty
from probewise.engine.ledger import Ledger
from probewise.engine.probes import ProbePlan
from probewise.engine.tally import Tally, TallySheet, positions

RUNS, SMALL_RUNS = 200, 20
TOP = 20
LEVELS = (0.9, 0.95)
BINS = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0)


# ---- runs with known truth


@dataclass(frozen=True)
class Game:
    """Artificial criterion: a function of size, a weight per feature, interactions, and noise that grows with size."""

    weights: np.ndarray
    pairs: tuple = ()
    largest: int = 60
    by_size: float = 0.1
    seed: int = 0

    @property
    def n_features(self):
        return len(self.weights)

    def probes(self, run, start, stop):
        """Probes of a run and their J."""
        subsets = ProbePlan(self.n_features, self.largest, seed=1000 * self.seed + run).draw(start, stop)
        inside = np.zeros((len(subsets), self.n_features), dtype=bool)
        inside[np.repeat(np.arange(len(subsets)), subsets.sizes), subsets.indices] = True
        noise = np.random.default_rng([self.seed, run, start]).normal(size=len(subsets))
        values = self._size_part(subsets.sizes) + inside @ self.weights
        values += sum(worth * (inside[:, f] & inside[:, g]) for f, g, worth in self.pairs)
        return subsets, values + noise * (0.02 + 0.03 * subsets.sizes / self.largest)

    @property
    def truth(self):
        """DAF0 in closed form: sizes are uniform, and all subsets of a size are equally probable."""
        size, n = np.arange(1, self.largest + 1), self.n_features
        sides = []
        for drawn, chance in (
            (size - 1, size / n),
            (size, 1 - size / n),
        ):  # number of other features in the probe if f is in, and if f is out
            share = chance / chance.sum()
            base = share @ self._size_part(size)
            sides.append((base, share @ (drawn / (n - 1)), share @ (drawn * (drawn - 1) / ((n - 1) * (n - 2)))))
        (base_in, one_in, two_in), (base_out, one_out, two_out) = sides
        in_pairs = np.zeros(n)
        for f, g, worth in self.pairs:
            in_pairs[[f, g]] += worth
        rest, others = self.weights.sum() - self.weights, sum(worth for _, _, worth in self.pairs) - in_pairs
        with_it = base_in + self.weights + one_in * (rest + in_pairs) + two_in * others
        return with_it - (base_out + one_out * rest + two_out * others)

    def _size_part(self, sizes):
        return 0.5 + self.by_size * np.sqrt(sizes / self.largest)


@dataclass(frozen=True)
class Neighbors:
    """3-NN on the Madelon recipe: one long run cut into many; the whole run is the truth."""

    length: int
    runs: int
    n_features: int = 100
    largest: int = 50

    def probes(self, run, start, stop):
        first = run * self.length
        return self._plan.draw(first + start, first + stop), self._values[first + start : first + stop]

    @property
    def truth(self):
        return self._whole.daf0()

    @property
    def truth_of_daf1(self):
        return self._whole.daf1()

    @property
    def _plan(self):
        return ProbePlan(self.n_features, self.largest, seed=5)

    @property
    def _values(self):
        return _scored(self._plan, self.length * self.runs)

    @property
    def _whole(self):
        sheet = TallySheet(self.n_features, float(self._values[0]))
        for start in range(0, len(self._values), 10_000):
            stop = min(start + 10_000, len(self._values))
            sheet.add(self._plan.draw(start, stop), self._values[start:stop])
        return sheet.view()


@cache
def _scored(plan, n_probes):
    data = make_madelon(n_samples=200, n_features=plan.n_features, random_state=1)
    score = KNN().bind(data.X, data.y)
    return np.concatenate([score(plan.draw(low, min(low + 1000, n_probes))) for low in range(0, n_probes, 1000)])


def sparse(n_features=200, seed=1):
    """Twenty features of different weights, two pairs that only matter together, and many small weights."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, 0.0005, n_features)
    weights[:20] += rng.exponential(0.012, 20)
    return Game(weights, ((20, 21, 0.03), (22, 23, 0.03)), n_features * 3 // 10, seed=seed)


def gapped(n_features=200, seed=1):
    """Twenty features of equal weight, well above the rest."""
    weights = np.random.default_rng(seed).normal(0, 0.0003, n_features)
    weights[:20] += 0.02
    return Game(weights, largest=n_features * 3 // 10, seed=seed)


def dense(n_features=200, seed=1):
    """Normally distributed weights: no gap between good and bad features."""
    weights = np.random.default_rng(seed).normal(0, 0.004, n_features)
    return Game(weights, ((0, 1, 0.02),), n_features * 3 // 10, seed=seed)


def null(n_features=200, seed=1):
    """No weights: all features are equal, and every rank is correct."""
    return Game(np.zeros(n_features), largest=n_features * 3 // 10, seed=seed)


def by_size(n_features=200, seed=1):
    """Sparse, with a dominant effect of the probe size."""
    game = sparse(n_features, seed)
    return Game(game.weights, game.pairs, game.largest, by_size=0.4, seed=seed)


def wide(n_features=2000, seed=1):
    """Sparse, with each feature in only about a dozen probes."""
    game = sparse(n_features, seed)
    return Game(game.weights, game.pairs, 60, seed=seed)


def cases(runs):
    """(name, case, number of probes)."""
    yield from (("sparse", sparse(), 600), ("sparse", sparse(), 3000), ("gapped", gapped(), 600))
    yield from (("gapped", gapped(), 3000), ("dense", dense(), 600), ("dense", dense(), 3000))
    yield from (("null", null(), 2000), ("by size", by_size(), 2000), ("wide", wide(), 800))
    yield from (("3-NN", Neighbors(2000, runs), 400), ("3-NN", Neighbors(2000, runs), 2000))


def tallied(case, run, n_probes):
    subsets, values = case.probes(run, 0, n_probes)
    return Tally.of(subsets, values, case.n_features, float(values[0]))


def true_ranks(truth):
    """First and last true rank of each feature; they differ for ties."""
    order = np.sort(-truth)
    return np.searchsorted(order, -truth) + 1, np.searchsorted(order, -truth, side="right")


# ---- one function per statement; each returns the printed numbers


def coefficient_coverage(case, n_probes, runs, coefficient="daf0", shrunken=True):
    """Coverage of the intervals of coefficients at each level, with shrunken or plain Welch standard errors."""
    truth = case.truth if coefficient == "daf0" else case.truth_of_daf1
    held = {level: [] for level in LEVELS}
    for run in range(runs):
        tally = tallied(case, run, n_probes)
        certainty = Certainty.of_tally(tally, coefficient) if shrunken else Certainty(tally.daf0(), tally.std_errors())
        for level, shares in held.items():
            shares.append(_covers(certainty.intervals(level), truth)[~np.isnan(certainty.coefficients)].mean())
    return {level: float(np.mean(shares)) for level, shares in held.items()}


def jackknife(plan, ledger, block_size, *, groups=50, coefficient="daf0"):
    """DAF0 or DAF1 and its jackknife standard error over groups of blocks, replayed from the ledger.

    Group j contains the blocks whose number is j modulo the number of groups.
    """
    n_probes, values = ledger.n_probes, ledger.values()
    n_blocks = -(-n_probes // block_size)
    groups = min(groups, n_blocks)
    if groups < 2:
        raise ValueError(f"groups={groups!r} of {n_blocks} blocks: a jackknife needs two groups or more")

    def coefficients(blocks):
        sheet = TallySheet(plan.n_features, float(values[0]))
        for block in blocks:
            start, stop = block * block_size, min((block + 1) * block_size, n_probes)
            sheet.add(plan.draw(start, stop), values[start:stop])
        return getattr(sheet.view(), coefficient)()

    without = [coefficients(block for block in range(n_blocks) if block % groups != group) for group in range(groups)]
    return coefficients(range(n_blocks)), np.sqrt((groups - 1) * np.var(without, axis=0))


def jackknife_coverage(case, n_probes, runs, block_size=50):
    """Coverage with jackknife standard errors."""
    held = {level: [] for level in LEVELS}
    for run in range(runs):
        ledger = Ledger()
        ledger.append(case.probes(run, 0, n_probes)[1], seconds=0.0)
        plan = ProbePlan(case.n_features, case.largest, seed=1000 * case.seed + run)
        certainty = Certainty(*jackknife(plan, ledger, block_size))
        for level, shares in held.items():
            shares.append(_covers(certainty.intervals(level), case.truth).mean())
    return {level: float(np.mean(shares)) for level, shares in held.items()}


def rank_coverage(case, n_probes, runs):
    """Coverage of the intervals of ranks: over all features, and over the features ranked first."""
    first, last = true_ranks(case.truth)
    of_all, of_top, widths = {level: [] for level in LEVELS}, {level: [] for level in LEVELS}, []
    for run in range(runs):
        certainty = Certainty.of_tally(tallied(case, run, n_probes))
        on_top = positions(certainty.coefficients) < TOP
        for level in LEVELS:
            low, high = certainty.rank_intervals(level).T
            held = (low <= last) & (first <= high)
            of_all[level].append(held.mean())
            of_top[level].append(held[on_top].mean())
        widths.append((high - low + 1).mean())
    means = [{level: float(np.mean(shares)) for level, shares in coverage.items()} for coverage in (of_all, of_top)]
    return *means, float(np.mean(widths))


def top_calibration(case, n_probes, runs):
    """Number of features, mean stated probability and true share, by stated probability of being in the top 20."""
    first, last = true_ranks(case.truth)
    share = np.clip((TOP + 1 - first) / (last - first + 1), 0, 1)
    stated = np.concatenate([Certainty.of_tally(tallied(case, run, n_probes)).in_top(TOP) for run in range(runs)])
    true = np.tile(share, runs)
    bin_of = np.digitize(stated, BINS[1:-1])
    return [
        (int((bin_of == i).sum()), float(stated[bin_of == i].mean()), float(true[bin_of == i].mean()))
        for i in range(len(BINS) - 1)
        if (bin_of == i).any()
    ]


def _covers(intervals, truth):
    return (intervals[:, 0] <= truth) & (truth <= intervals[:, 1])


# ---- the tables


def main(only=None, small=False):
    runs = SMALL_RUNS if small else RUNS
    parts = {"coefficients": _coefficients, "ranks": _ranks, "tops": _tops}
    for name, part in parts.items():
        if only in (None, name):
            part(runs)


def _coefficients(runs):
    rows = []
    for name, case, n_probes in cases(runs):
        held = coefficient_coverage(case, n_probes, runs)
        rows.append([name, "DAF0", "shrunken Welch", n_probes, *(f"{held[level]:.1%}" for level in LEVELS)])
        if name == "3-NN":
            held = coefficient_coverage(case, n_probes, runs, "daf1")
            rows.append([name, "DAF1", "shrunken Welch", n_probes, *(f"{held[level]:.1%}" for level in LEVELS)])
    held = coefficient_coverage(wide(), 800, runs, shrunken=False)
    rows.append(["wide", "DAF0", "Welch", 800, *(f"{held[level]:.1%}" for level in LEVELS)])
    held = jackknife_coverage(sparse(), 2000, runs)
    rows.append(["sparse", "DAF0", "jackknife", 2000, *(f"{held[level]:.1%}" for level in LEVELS)])
    title = f"Coverage of intervals of coefficients, {runs} runs each"
    print_table(
        title, ["criterion", "coefficient", "standard errors", "probes", *(f"at {level:.0%}" for level in LEVELS)], rows
    )


def _ranks(runs):
    rows = []
    for name, case, n_probes in cases(runs):
        of_all, of_top, width = rank_coverage(case, n_probes, runs)
        shares = [f"{coverage[level]:.1%}" for coverage in (of_all, of_top) for level in LEVELS]
        rows.append([name, case.n_features, n_probes, *shares, f"{width:.0f}"])
    title = f"Coverage of intervals of ranks, {runs} runs each"
    heads = [f"{who}, {level:.0%}" for who in ("all", "top 20") for level in LEVELS]
    print_table(title, ["criterion", "features", "probes", *heads, "mean width at 95%"], rows)


def _tops(runs):
    rows = []
    for name, case, n_probes in cases(runs):
        for count, stated, true in top_calibration(case, n_probes, runs):
            rows.append([name, n_probes, count, f"{stated:.3f}", f"{true:.3f}"])
    title = f"Probability of being in the top {TOP}: stated and true, {runs} runs each"
    print_table(title, ["criterion", "probes", "features", "stated", "true"], rows)
