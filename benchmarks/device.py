"""GPU compared with the CPU: J, ranking and repeatability on new random data, then probes per second.

Probes per second are measured for complete fits (wall-clock time after compilation): validation, transfer, probes,
tally and a ledger on disk. ``python -m benchmarks device``; ``--only`` runs one part: ``knn``, ``tall``, ``linear``,
``others``, ``default``, ``rounds``, ``papers``, or a part of `benchmarks.device_faults`: ``equal``, ``sparse``,
``agree``, ``memory`` and ``pairs``.
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from benchmarks.criteria import reuters
from benchmarks.device_faults import DEVICE, agree, all_pairs, equal, memory, sparse
from benchmarks.measure import print_table
from probewise import DAF, Tournament
from probewise.criteria import KNN, Linear
from probewise.criteria.device import to_device
from probewise.datasets import load, make_madelon
from probewise.engine.probes import ProbePlan
from probewise.stopping import MaxProbes

DATA = Path(os.environ.get("PROBEWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
SIZE_GROUPS = ((1, 2), (3, 7), (8, 10_000))


def main(only=None, small=False):
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    print(f"{name}, torch {torch.__version__}")
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"random data from seed {seed}")
    if torch.cuda.is_available() and only is None:
        print_peak_rates()
    parts = {"knn": knn, "tall": tall, "linear": linear, "others": others, "default": default, "rounds": rounds}
    parts |= {"papers": papers, "equal": equal, "sparse": sparse, "agree": agree, "memory": memory, "pairs": all_pairs}
    for part, run in parts.items():
        if only in (None, part):
            run(seed, small)


def print_peak_rates():
    """Print the peak rates of this GPU: a large copy, and large matrix products."""
    source = torch.empty(2**30, dtype=torch.float32, device="cuda").normal_()
    target = torch.empty_like(source)
    copy = _gpu_seconds(lambda: target.copy_(source))
    half = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    single = torch.randn(8192, 8192, device="cuda")
    print(
        f"copy {8 * len(source) / copy / 1e12:.2f} TB/s (read and written); products "
        f"{2 * 8192**3 / _gpu_seconds(lambda: half @ half) / 1e12:.0f} TFLOP/s in half precision, "
        f"{2 * 8192**3 / _gpu_seconds(lambda: single @ single) / 1e12:.0f} in float32"
    )


def _gpu_seconds(job, repeats=10):
    job()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        job()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return float(np.median(times))


def knn(seed, small):
    madelon = make_madelon(n_samples=1000, random_state=seed % 2**31)
    _compare("k-NN, Madelon recipe (1,000 x 500, tau = 150)", KNN(3), madelon.X, madelon.y, 150, seed, small)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 5000)
    X = rng.standard_normal((5000, 5000), dtype=np.float32)
    X[:, :20] += (0.3 * y[:, None]).astype(np.float32)
    many = 200 if small else 60_000
    _compare("k-NN, 5,000 x 5,000, tau = 200", KNN(3), X, y, 200, seed, small, n_ranked=0, n_checked=100, n_timed=many)


def tall(seed, small):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 20_000)
    X = rng.standard_normal((20_000, 1000), dtype=np.float32)
    X[:, :20] += (0.3 * y[:, None]).astype(np.float32)
    sizes = {"n_ranked": 1200, "n_checked": 60, "n_timed": 400 if small else 30_000}
    _compare("k-NN, 20,000 x 1,000, tau = 100", KNN(3), X, y, 100, seed, small, **sizes)


def default(seed, small):
    """Complete fits of DAF with default settings; the first one compiles."""
    data = make_madelon(n_samples=1000, random_state=seed % 2**31)
    rows = []
    for n_probes in (25_000, 25_000, 2000 if small else 400_000, 2000 if small else 400_000):
        started = time.perf_counter()
        daf = DAF(20, stop=MaxProbes(n_probes), device=DEVICE, random_state=seed).fit(data.X, data.y)
        seconds = time.perf_counter() - started
        rows.append((f"{n_probes:,}", f"{seconds:.3f}", f"{n_probes / seconds:,.0f}", daf.run_.settings.block_size))
    print_table(
        "DAF with default settings, Madelon recipe, complete fit",
        ("probes", "seconds", "probes/s", "block"),
        rows,
    )


def rounds(seed, small):
    """Complete fits of Tournament with default settings; the first one compiles."""
    n_features, n_probes = (500, 2000) if small else (5000, 60_000)
    data = make_madelon(n_samples=1000, n_features=n_features, random_state=seed % 2**31)
    rows = []
    for _ in range(3):
        started = time.perf_counter()
        tournament = Tournament(20, n_probes=n_probes, device=DEVICE, random_state=seed).fit(data.X, data.y)
        hits = tournament.support_[data.informative].sum()
        rows.append((f"{time.perf_counter() - started:.2f}", f"{tournament.run_.ledger.seconds:.2f}", hits))
    title = f"Tournament, 1,000 x {n_features:,}, {n_probes:,} probes"
    print_table(title, ("seconds, complete fit", "seconds, rounds", "informative features found (of 20)"), rows)


def linear(seed, small):
    X, y = reuters()
    _compare("Linear, half of Reuters (4,470 x 9,946, 33 classes, tau = 200)", Linear(), X, y, 200, seed, small)


def others(seed, small):
    data = make_madelon(n_samples=1000, random_state=seed % 2**31)
    options = {"cv": "loo", "scoring": "probability"}
    for criterion in (KNN(10), Linear()):
        name = f"{type(criterion).__name__}, probabilities, leave-one-out, Madelon recipe"
        _compare(name, criterion, data.X, data.y, 100, seed, small, n_ranked=4000, n_checked=200, **options)
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((1000, 500)), rng.standard_normal(1000)
    y += X[:, :10].sum(axis=1)
    _compare("k-NN with k = 10, regression", KNN(10), X, y, 150, seed, small, n_checked=2000)


def _compare(title, criterion, X, y, tau, seed, small, *, n_ranked=20_000, n_checked=4000, n_timed=400_000, **binding):
    """Compare J and the ranking with the CPU, check that results repeat, and measure the speed."""
    if small:
        n_ranked, n_checked, n_timed = min(n_ranked, 800), min(n_checked, 200), min(n_timed, 2000)
    bound = criterion.bind(X, y, binding.get("cv", 3), scoring=binding.get("scoring"))
    device = to_device(bound, DEVICE)
    subsets = ProbePlan(X.shape[1], tau, seed=seed).draw(0, n_checked)
    truth, ours, again = bound(subsets), device(subsets), device(subsets)
    differences = []
    for low, high in SIZE_GROUPS:
        inside = (subsets.sizes >= low) & (subsets.sizes <= high)
        if inside.any():
            off = np.abs(truth - ours)[inside]
            differences.append(
                (f"{low} to {high}", inside.sum(), f"{off.max():.2g}", f"{np.sqrt((off**2).mean()):.2g}")
            )
    print_table(
        f"{title}: difference of J from float64 on the CPU, {n_checked:,} probes",
        ("features", "probes", "max", "rms"),
        differences,
    )
    print(f"standard deviation of J {truth.std():.3g}; same bits when repeated: {np.array_equal(ours, again)}")
    if n_ranked:
        options = {
            "criterion": criterion,
            "max_probe_size": tau,
            "stop": MaxProbes(n_ranked),
            "random_state": seed,
        } | binding
        cpu = DAF(20, **options, n_jobs=-1).fit(X, y)
        gpu = DAF(20, **options, device=DEVICE).fit(X, y)
        agreement = spearmanr(cpu.scores_, gpu.scores_).statistic
        swapped = np.flatnonzero(cpu.support_ != gpu.support_)
        limit = np.sort(cpu.scores_)[-20]
        distance = np.abs(cpu.scores_[swapped] - limit) / cpu.std_errors_[swapped]
        print(
            f"ranking from {n_ranked:,} probes: Spearman {agreement:.5f}, "
            f"{20 - len(swapped) // 2} of the top 20 are the same"
            + (f", the others are within {distance.max():.2f} standard errors of the 20th" if len(swapped) else "")
        )
    with tempfile.TemporaryDirectory() as folder:
        seconds = []
        for run in range(3):
            daf = DAF(20, criterion=criterion, max_probe_size=tau, stop=MaxProbes(n_timed), random_state=seed + run,
                      device=DEVICE, ledger=f"{folder}/{run}.ledger", check_every=4000, **binding)  # fmt: skip
            started = time.perf_counter()
            daf.fit(X, y)
            seconds.append(time.perf_counter() - started)
    rate = n_timed / min(seconds[1:])
    print(f"complete fit: {rate:,.0f} probes/s ({n_timed:,} probes, block {daf.run_.settings.block_size})")


def papers(seed, small):
    """The DAF runs of the 2011 paper, each on a random half of the rows, with the paper's number of probes."""
    del seed
    rows, total = [], 0.0
    three, rbf = KNeighborsClassifier(3), SVC()
    cases = [
        ("reuters", Linear(), 200, 148_000, (LinearSVC(), KNeighborsClassifier(1)), 500),
        ("gisette_valid", KNN(3), 200, 46_400, (three, rbf), 100),
        ("madelon", KNN(3), 150, 25_000, (three, rbf), 20),
        ("spambase", KNN(3), 57, 160_000, (three, rbf), 10),
    ]
    for name, criterion, tau, n_probes, classifiers, size in cases:
        data = load(name, DATA)
        X = data.X / np.maximum(abs(data.X).max(axis=0), 1e-12) if name == "spambase" else data.X
        train, test = train_test_split(np.arange(len(data.y)), test_size=0.5, stratify=data.y, random_state=0)
        options = {"criterion": criterion, "max_probe_size": tau, "random_state": 0, "device": DEVICE}
        DAF(size, stop=MaxProbes(8000), check_every=4000, **options).fit(X[train], data.y[train])  # compiles
        stop = MaxProbes(2000 if small else n_probes)
        started = time.perf_counter()
        daf = DAF(size, stop=stop, check_every=4000, **options).fit(X[train], data.y[train])
        seconds = time.perf_counter() - started
        total += seconds
        chosen = np.flatnonzero(daf.support_)
        accuracy = [
            classifier.fit(X[train][:, chosen], data.y[train]).score(X[test][:, chosen], data.y[test])
            for classifier in classifiers
        ]
        probed = f"{daf.run_.feature_tally.counts.mean():,.0f}"
        rows.append(
            (name, f"{daf.n_probes_:,}", probed, f"{seconds:.2f}", size, *(f"{value:.3f}" for value in accuracy))
        )
    header = ("data", "probes", "probes per feature", "seconds", "features", "accuracy, first classifier", "second")
    print_table("The four DAF runs of the 2011 paper", header, rows)
    print(f"{total:.1f} s in total, including the transfer of X; the paper: 780 minutes on 8 to 24 threads")
