"""Is what a run says about other rows true? Shuffled targets and pure noise, tables drawn again, real halves, the cost.

``noise``: how often something stands out, and how often an honest score is within two standard errors of guessing, with
shuffled targets of real sets (folder PROBEWISE_DATA; of more than 250 rows some are drawn) and of tables without any
signal; and what stands out with the true ones. ``cover``: tables drawn again and again from one law: how often
intervals about rows hold the mean effect. ``stability``: what a run says of its own stability against that of real
halves. ``cost``: probes a second with and without groups of rows, bytes of a ledger. Answers of ``noise`` are kept in
benchmarks/rows.jsonl and not computed again.
"""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import print_table
from probewise import DAF, Tournament
from probewise.criteria import KNN
from probewise.engine.permutation_test import shuffled_target
from probewise.evaluation import nested_score
from probewise.stopping import MaxProbes
from probewise.tournament import default_criterion

FOLDER = Path(os.environ.get("PROBEWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
KEPT = Path(__file__).with_suffix(".jsonl")
SETS = (
    *("colon", "leukemia", "lymphoma", "lymphoma_discrete", "prostate_ge", "tox_171", "khan", "gravier", "warpar10p"),
    *("arcene", "wine", "iris", "vowel", "authorship", "spambase", "satimage", "msrcv1", "madelon"),
    *("spectrometer", "mfeat", "coil20", "isolet", "pcmac", "reuters", "gisette_valid"),
)
SHUFFLES, MOST_ROWS = 20, 250
METHODS = {
    "DAF": lambda seed: DAF(stop=MaxProbes(2000), random_state=seed),
    "Tournament": lambda seed: Tournament(n_probes=2000, random_state=seed),
}


def _gaussian(n_rows, n_features):
    return lambda random: (random.standard_normal((n_rows, n_features)), np.arange(n_rows) % 2)


def _of(draw, n_rows=60, n_features=500):
    return lambda random: (draw(random, (n_rows, n_features)), np.arange(n_rows) % 2)


def _factors(random, shape):
    common = random.standard_normal((shape[0], 3)) @ random.standard_normal((3, shape[1]))
    return common + random.standard_normal(shape) / 3


def _patients(random):
    patients = np.arange(100) // 4
    X = random.standard_normal((25, 300))[patients] + random.standard_normal((100, 300)) / 3
    return X, patients % 2, patients


def _twice(random):
    return np.repeat(random.standard_normal((50, 300)), 2, axis=0), np.repeat(np.arange(50) % 2, 2), np.arange(100) // 2


NOISES = {
    "Gaussian, 20 x 500": _gaussian(20, 500),
    "Gaussian, 100 x 1,000": _gaussian(100, 1000),
    "Gaussian, 2,000 x 50": _gaussian(2000, 50),
    "Gaussian, 200 x 300, 95 : 5": lambda random: (random.standard_normal((200, 300)), np.arange(200) % 20 == 0),
    "negative binomial counts": _of(lambda random, shape: random.negative_binomial(1, 0.02, shape)),
    "Poisson counts": _of(lambda random, shape: random.poisson(random.gamma(0.5, 2, shape[1]), shape)),
    "some columns 100 times as wide": _of(
        lambda random, shape: random.standard_normal(shape) * np.where(np.arange(shape[1]) < 10, 100.0, 1.0)
    ),
    "lognormal scales": _of(lambda random, shape: random.standard_normal(shape) * random.lognormal(0, 2, shape[1])),
    "heavy tails (t of 1.5)": _of(lambda random, shape: random.standard_t(1.5, shape)),
    "three factors": _of(_factors),
    "25 patients x 4 rows, groups": _patients,
    "every row twice, groups": _twice,
    "every row twice, not told": lambda random: (*_twice(random), False),
}


def main(only=None, small=False):
    warnings.simplefilter("ignore")
    parts = {"noise": noise, "cover": cover, "stability": stability, "cost": cost}
    for name, part in parts.items():
        if only in (None, name):
            part(small)


# ---- noise


def noise(small=False):
    kept = _kept()
    tables = {name: (lambda random, name=name: _load(name)) for name in SETS} | NOISES
    rows = []
    for name, make in tables.items():
        for method, selector in METHODS.items():
            answers = []
            for shuffle in range(-1 if name in SETS else 0, 3 if small else SHUFFLES):
                key = f"{name} {method} {shuffle}"
                if key not in kept:
                    kept[key] = _told(selector, shuffle, *make(np.random.default_rng(shuffle + 1)))
                    with KEPT.open("a") as file:
                        file.write(json.dumps([key, kept[key]]) + "\n")
                answers.append((shuffle, kept[key]))
            luck = [answer for shuffle, answer in answers if shuffle >= 0]
            rows.append([name, method, *_true(answers), *_by_luck(luck)])
    near = [f"{side} two errors" for side in ("below by more than", "within", "above by more than")]
    print_table("Noise", ["table", "method", "stand out", "honest", "shuffled: something does", *near], rows)
    for method in METHODS:
        told = [row for row in rows if row[1] == method and "not told" not in row[0]]
        print(method, "; ".join(f"{np.mean([float(row[k]) for row in told]):.3f}" for k in range(4, 8)))


def _true(answers):
    true = [(str(n), f"{score:.2f} ({guess:.2f})") for shuffle, (n, score, _, guess) in answers if shuffle < 0]
    return true[0] if true else ("-", "-")


def _by_luck(answers):
    found, score, error, guess = np.array(answers, dtype=float).T
    off = (score - guess) / error
    return [
        f"{share:.2f}" for share in (np.mean(found > 0), np.mean(off < -2), np.mean(abs(off) <= 2), np.mean(off > 2))
    ]


def _told(selector, shuffle, X, y, groups=None, told=True):
    """How many stand out; the honest score, its error, and guessing."""
    if shuffle >= 0:
        y = shuffled_target(np.asarray(y), groups, np.random.default_rng([shuffle, 7]))
    of_rows = {"groups": groups} if told and groups is not None else {}
    fitted = selector(max(shuffle, 0)).fit(X, y, **of_rows)
    score = nested_score(fitted, X, y, seconds=0.0, **of_rows)
    return int(fitted.stands_out().sum()), score.mean, score.std_error, score.guess


def _load(name):
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as arrays:
        y = np.unique(arrays["y"], return_inverse=True)[1]
        if "indptr" in arrays:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            X = sp.csr_array(parts, shape=tuple(arrays["shape"])).astype(np.float32)
        else:
            X = arrays["X"].astype(np.float32)
    order = np.lexsort((np.random.default_rng(0).permutation(len(y)), y))
    some = np.sort(order[np.arange(min(MOST_ROWS, len(y))) * len(y) // min(MOST_ROWS, len(y))])
    some = some[np.bincount(y[some])[y[some]] >= 6]  # so that folds within folds have three
    return X[some], np.unique(y[some], return_inverse=True)[1]


def _kept():
    return dict(json.loads(line) for line in KEPT.read_text().splitlines()) if KEPT.exists() else {}


# ---- coverage


def cover(small=False):
    rows = []
    soft = {"cv": "loo", "scoring": "probability"}
    games = {
        "1-NN, 100 rows": ({"criterion": KNN(1)}, 100, 0.5),
        "3-NN, 40 rows": ({"criterion": KNN(3)}, 40, 0.5),
        "3-NN, 100 rows": ({"criterion": KNN(3)}, 100, 0.5),
        "3-NN, 400 rows": ({"criterion": KNN(3)}, 400, 0.5),
        "3-NN, 100 rows, 15 : 85": ({"criterion": KNN(3)}, 100, 0.15),
        "soft 10-NN, one out, 100 rows": ({"criterion": KNN(10), **soft}, 100, 0.5),
        "Tournament's, 60 rows": ({"criterion": default_criterion(60), **soft}, 60, 0.5),
        "Tournament's, 200 rows": ({"criterion": default_criterion(200), **soft}, 200, 0.5),
        "naive Bayes, 100 rows": ({"criterion": "naive_bayes"}, 100, 0.5),
        "linear, 100 rows": ({"criterion": "linear"}, 100, 0.5),
    }
    for name, (options, n_rows, balance) in games.items():
        effects, errors = [], []
        for seed in range(20 if small else 150):
            random = np.random.default_rng(seed)
            y = (random.random(n_rows) < balance).astype(int)
            y[:6] = [0, 0, 0, 1, 1, 1]
            X = random.standard_normal((n_rows, 40))
            X[:, :5] += y[:, None]
            X[:, 5:10] += 0.7 * X[:, :5]
            fitted = DAF(stop=MaxProbes(800), max_probe_size=20, random_state=seed, **options).fit(X, y)
            found = fitted.run_.row_effects
            effects.append(found.effects - found.effects.mean())
            errors.append(found.std_errors)
        inside = np.abs(np.array(effects) - np.mean(effects, axis=0)) < 1.96 * np.array(errors)
        rows.append([name, f"{100 * inside[:, :10].mean():.1f}", f"{100 * inside[:, 10:].mean():.1f}"])
    print_table("Coverage", ["95 % intervals about rows", "of features that tell something", "of the others"], rows)


# ---- stability


def stability(small=False):
    from probewise.stability import cw_rel

    rows = []
    for name in ("colon", "leukemia", "lymphoma", "prostate_ge", "tox_171", "khan", "gravier", "msrcv1", "madelon"):
        X, y = _load(name)
        fitted = DAF(stop=MaxProbes(4000), scale="standard", random_state=0).fit(X, y)
        chosen = []
        for half in range(4 if small else 10):
            random = np.random.default_rng(half)
            of_class = [random.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
            some = np.sort(np.concatenate([rows_of[: len(rows_of) // 2] for rows_of in of_class]))
            part = DAF(20, stop=MaxProbes(4000), scale="standard", random_state=half).fit(X[some], y[some])
            chosen.append(np.flatnonzero(part.support_))
        real = cw_rel(chosen, X.shape[1])
        rows.append([name, f"{fitted.run_.expected_stability(20):.2f}", f"{real:.2f}"])
    print_table("Stability", ["CW_rel of the top 20", "as one run expects", "of ten real halves"], rows)


# ---- cost


def cost(small=False):
    random, rows = np.random.default_rng(0), []
    for n_rows, n_features in ((100, 20_000), (1000, 500)):
        X, y = random.standard_normal((n_rows, n_features)).astype(np.float32), np.arange(n_rows) % 3
        best = {}
        for _ in range(2 if small else 9):
            for kept in (False, True):
                daf = DAF(criterion=KNN(3), rows=kept, stop=MaxProbes(2000), max_probe_size=100, random_state=0)
                daf.fit(X, y)
                best[kept] = min(best.get(kept, np.inf), daf.run_.ledger.seconds)
        speeds = [f"{2000 / best[kept]:,.0f}" for kept in (False, True)]
        rows.append([f"{n_rows} x {n_features:,}", *speeds, f"{best[False] / best[True]:.2f}"])
    print_table("Cost", ["3-NN, tau = 100, one core", "probes/s without rows", "with", "ratio"], rows)
