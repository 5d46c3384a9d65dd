"""Validity of statements about other rows: noise, coverage, stability, and cost.

``noise``: how often a feature stands out, and how often the nested score is within two standard errors of guessing, for
shuffled targets of real data (folder PROBEWISE_DATA; at most 250 rows) and for tables of pure noise. ``cover``:
coverage of intervals over rows, for repeated tables from one distribution. ``stability``: expected stability of one run
compared with halves of the rows. ``cost``: probes per second with and without row effects. Results of ``noise`` are
stored in benchmarks/rows.jsonl and not computed again.
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
STORED = Path(__file__).with_suffix(".jsonl")
SETS = (
    *("colon", "leukemia", "lymphoma", "lymphoma_discrete", "prostate_ge", "tox_171", "khan", "gravier", "warpar10p"),
    *("arcene", "wine", "iris", "vowel", "authorship", "spambase", "satimage", "msrcv1", "madelon"),
    *("spectrometer", "mfeat", "coil20", "isolet", "pcmac", "reuters", "gisette_valid"),
)
N_SHUFFLES, MAX_ROWS = 20, 250
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
    "every row twice, without groups": lambda random: (*_twice(random), False),
}


def main(only=None, small=False):
    warnings.simplefilter("ignore")
    parts = {"noise": noise, "cover": cover, "stability": stability, "cost": cost}
    for name, part in parts.items():
        if only in (None, name):
            part(small)


# ---- noise


def noise(small=False):
    stored = _stored()
    tables = {name: (lambda random, name=name: _load(name)) for name in SETS} | NOISES
    rows = []
    for name, make in tables.items():
        for method, selector in METHODS.items():
            results = []
            for shuffle in range(-1 if name in SETS else 0, 3 if small else N_SHUFFLES):
                key = f"{name} {method} {shuffle}"
                if key not in stored:
                    stored[key] = _statements(selector, shuffle, *make(np.random.default_rng(shuffle + 1)))
                    with STORED.open("a") as file:
                        file.write(json.dumps([key, stored[key]]) + "\n")
                results.append((shuffle, stored[key]))
            by_chance = [result for shuffle, result in results if shuffle >= 0]
            rows.append([name, method, *_with_true_target(results), *_by_chance(by_chance)])
    near = [f"{side} two standard errors" for side in ("below by more than", "within", "above by more than")]
    print_table(
        "Noise",
        ["table", "method", "stand out", "nested score (guessing)", "shuffled: something stands out", *near],
        rows,
    )
    for method in METHODS:
        valid = [row for row in rows if row[1] == method and "without groups" not in row[0]]
        print(method, "; ".join(f"{np.mean([float(row[k]) for row in valid]):.3f}" for k in range(4, 8)))


def _with_true_target(results):
    true = [(str(n), f"{score:.2f} ({guess:.2f})") for shuffle, (n, score, _, guess) in results if shuffle < 0]
    return true[0] if true else ("-", "-")


def _by_chance(results):
    n_standing_out, score, error, guess = np.array(results, dtype=float).T
    off = (score - guess) / error
    return [
        f"{share:.2f}"
        for share in (np.mean(n_standing_out > 0), np.mean(off < -2), np.mean(abs(off) <= 2), np.mean(off > 2))
    ]


def _statements(selector, shuffle, X, y, groups=None, use_groups=True):
    """Number of features that stand out; the nested score, its standard error, and the score of guessing."""
    if shuffle >= 0:
        y = shuffled_target(np.asarray(y), groups, np.random.default_rng([shuffle, 7]))
    options = {"groups": groups} if use_groups and groups is not None else {}
    fitted = selector(max(shuffle, 0)).fit(X, y, **options)
    score = nested_score(fitted, X, y, seconds=0.0, **options)
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
    rows = np.sort(order[np.arange(min(MAX_ROWS, len(y))) * len(y) // min(MAX_ROWS, len(y))])
    rows = rows[np.bincount(y[rows])[y[rows]] >= 6]  # nested folds need three rows of each class
    return X[rows], np.unique(y[rows], return_inverse=True)[1]


def _stored():
    return dict(json.loads(line) for line in STORED.read_text().splitlines()) if STORED.exists() else {}


# ---- coverage


def cover(small=False):
    rows = []
    probability = {"cv": "loo", "scoring": "probability"}
    settings = {
        "1-NN, 100 rows": ({"criterion": KNN(1)}, 100, 0.5),
        "3-NN, 40 rows": ({"criterion": KNN(3)}, 40, 0.5),
        "3-NN, 100 rows": ({"criterion": KNN(3)}, 100, 0.5),
        "3-NN, 400 rows": ({"criterion": KNN(3)}, 400, 0.5),
        "3-NN, 100 rows, 15 : 85": ({"criterion": KNN(3)}, 100, 0.15),
        "10-NN probability, leave-one-out, 100 rows": ({"criterion": KNN(10), **probability}, 100, 0.5),
        "default of Tournament, 60 rows": ({"criterion": default_criterion(60), **probability}, 60, 0.5),
        "default of Tournament, 200 rows": ({"criterion": default_criterion(200), **probability}, 200, 0.5),
        "naive Bayes, 100 rows": ({"criterion": "naive_bayes"}, 100, 0.5),
        "linear, 100 rows": ({"criterion": "linear"}, 100, 0.5),
    }
    for name, (options, n_rows, balance) in settings.items():
        effects, errors = [], []
        for seed in range(20 if small else 150):
            random = np.random.default_rng(seed)
            y = (random.random(n_rows) < balance).astype(int)
            y[:6] = [0, 0, 0, 1, 1, 1]
            X = random.standard_normal((n_rows, 40))
            X[:, :5] += y[:, None]
            X[:, 5:10] += 0.7 * X[:, :5]
            fitted = DAF(stop=MaxProbes(800), max_probe_size=20, random_state=seed, **options).fit(X, y)
            estimated = fitted.run_.row_effects
            effects.append(estimated.effects - estimated.effects.mean())
            errors.append(estimated.std_errors)
        inside = np.abs(np.array(effects) - np.mean(effects, axis=0)) < 1.96 * np.array(errors)
        rows.append([name, f"{100 * inside[:, :10].mean():.1f}", f"{100 * inside[:, 10:].mean():.1f}"])
    print_table("Coverage", ["95% intervals over rows", "informative features (%)", "other features (%)"], rows)


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
            by_class = [random.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
            half_rows = np.sort(np.concatenate([members[: len(members) // 2] for members in by_class]))
            part = DAF(20, stop=MaxProbes(4000), scale="standard", random_state=half).fit(X[half_rows], y[half_rows])
            chosen.append(np.flatnonzero(part.support_))
        measured = cw_rel(chosen, X.shape[1])
        rows.append([name, f"{fitted.run_.expected_stability(20):.2f}", f"{measured:.2f}"])
    print_table("Stability", ["CW_rel of the top 20", "expected from one run", "between halves"], rows)


# ---- cost


def cost(small=False):
    random, rows = np.random.default_rng(0), []
    for n_rows, n_features in ((100, 20_000), (1000, 500)):
        X, y = random.standard_normal((n_rows, n_features)).astype(np.float32), np.arange(n_rows) % 3
        best = {}
        for _ in range(2 if small else 9):
            for stores in (False, True):
                daf = DAF(
                    criterion=KNN(3), row_effects=stores, stop=MaxProbes(2000), max_probe_size=100, random_state=0
                )
                daf.fit(X, y)
                best[stores] = min(best.get(stores, np.inf), daf.run_.ledger.seconds)
        speeds = [f"{2000 / best[stores]:,.0f}" for stores in (False, True)]
        rows.append([f"{n_rows} x {n_features:,}", *speeds, f"{best[False] / best[True]:.2f}"])
    print_table("Cost", ["3-NN, tau = 100, one core", "probes/s without row effects", "with", "ratio"], rows)
