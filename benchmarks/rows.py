"""Is what a run says about other rows true? Shuffled targets and pure noise, tables drawn again, real halves, the cost.

``noise``: how often something stands out, and how often an honest score is within two standard errors of guessing, with
shuffled targets of real sets (folder PROBEWISE_DATA) and five shapes of pure noise; and what stands out with the true
ones. ``cover``: tables drawn again and again from one law: how often intervals about rows hold the mean effect.
``stability``: what a run says of its own stability against that of real halves. ``cost``: probes a second with and
without groups of rows. Answers of ``noise`` are kept in benchmarks/rows.jsonl and not computed again.
"""

import json
import os
import warnings
from pathlib import Path

import numpy as np

from benchmarks.measure import print_table
from probewise import DAF, Tournament
from probewise.criteria import KNN
from probewise.stopping import MaxProbes

FOLDER = Path(os.environ.get("PROBEWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
KEPT = Path(__file__).with_suffix(".jsonl")
SETS = (
    "colon",
    "leukemia",
    "lymphoma",
    "prostate_ge",
    "tox_171",
    "khan",
    "gravier",
    "warpar10p",
    "msrcv1",
    "wine",
    "iris",
)
SHUFFLES = 20
METHODS = {
    "DAF": lambda seed: DAF(stop=MaxProbes(2000), scale="standard", random_state=seed),
    "Tournament": lambda seed: Tournament(n_probes=2000, random_state=seed),
}
NOISES = {
    "Gaussian, 100 x 1,000": lambda random: (random.standard_normal((100, 1000)), None),
    "counts, 60 x 500": lambda random: (
        random.negative_binomial(1, 0.02, (60, 500)) * random.lognormal(0, 1, 500),
        None,
    ),
    "heavy tails, 60 x 500": lambda random: (random.standard_t(1.5, (60, 500)), None),
    "three factors, 60 x 500": lambda random: (
        random.standard_normal((60, 3)) @ random.standard_normal((3, 500)) + random.standard_normal((60, 500)) / 3,
        None,
    ),
    "25 patients x 4 rows, 300": lambda random: (
        np.repeat(random.standard_normal((25, 300)), 4, axis=0) + random.standard_normal((100, 300)) / 3,
        np.arange(100) // 4,
    ),
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
    tables = {name: (lambda random, name=name: (*_load(name), None)) for name in SETS}
    tables |= {name: (lambda random, make=make: _with_target(random, *make(random))) for name, make in NOISES.items()}
    rows = []
    for name, make in tables.items():
        for method, selector in METHODS.items():
            answers = []
            for shuffle in range(-1 if name in SETS else 0, 3 if small else SHUFFLES):
                key = f"{name} {method} {shuffle}"
                if key not in kept:
                    kept[key] = _told(selector, *make(np.random.default_rng(shuffle + 1)), shuffle)
                    with KEPT.open("a") as file:
                        file.write(json.dumps([key, kept[key]]) + "\n")
                answers.append((shuffle, kept[key]))
            luck = [answer for shuffle, answer in answers if shuffle >= 0]
            true = [str(answer[0]) for shuffle, answer in answers if shuffle < 0]
            near = np.mean([abs(score - guess) <= 2 * error for _, score, error, guess in luck])
            rows.append([name, method, *(true or ["-"]), f"{np.mean([n > 0 for n, *_ in luck]):.2f}", f"{near:.2f}"])
    print_table(
        "Noise", ["table", "method", "stand out", "runs in which noise does", "honest score near guessing"], rows
    )


def _told(selector, X, y, groups, shuffle):
    """How many stand out; the honest score, its error, and guessing."""
    if shuffle >= 0:
        y = _shuffled(np.random.default_rng([shuffle, 7]), y, groups)
    of_rows = {} if groups is None else {"groups": groups}
    fitted = selector(max(shuffle, 0)).fit(X, y, **of_rows)
    score = fitted.honest_score(X, y, seconds=0.0, **of_rows)
    return int(fitted.stands_out().sum()), score.mean, score.std_error, score.guess


def _shuffled(random, y, groups):
    if groups is None:
        return random.permutation(y)
    first = np.unique(groups, return_index=True)[1]
    return random.permutation(y[first])[groups]


def _with_target(random, X, groups):
    y = np.arange(len(X)) % 2 if groups is None else (groups % 2)
    return X, y, groups


def _load(name):
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as arrays:
        return arrays["X"].astype(np.float32), np.unique(arrays["y"], return_inverse=True)[1]


def _kept():
    return dict(json.loads(line) for line in KEPT.read_text().splitlines()) if KEPT.exists() else {}


# ---- coverage


def cover(small=False):
    rows = []
    games = {
        "3-NN, 40 rows": ({"criterion": KNN(3)}, 40, 0.5),
        "3-NN, 100 rows": ({"criterion": KNN(3)}, 100, 0.5),
        "3-NN, 400 rows": ({"criterion": KNN(3)}, 400, 0.5),
        "3-NN, 100 rows, 15 : 85": ({"criterion": KNN(3)}, 100, 0.15),
        "soft 10-NN, one out, 100 rows": (
            {"criterion": KNN(10), "cv": "loo", "scoring": "probability"},
            100,
            0.5,
        ),
        "naive Bayes, 100 rows": ({"criterion": "naive_bayes"}, 100, 0.5),
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
    for name in ("colon", "lymphoma", "khan"):
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
        rows.append([name, f"{fitted.expected_stability(20):.2f}", f"{real:.2f}"])
    print_table("Stability", ["CW_rel of the top 20", "as one run expects", "of ten real halves"], rows)


# ---- cost


def cost(small=False):
    random, rows = np.random.default_rng(0), []
    for n_rows, n_features in ((100, 20_000), (1000, 500)):
        X, y = random.standard_normal((n_rows, n_features)).astype(np.float32), np.arange(n_rows) % 3
        best = {}
        for _ in range(2 if small else 5):
            for kept in (False, True):
                daf = DAF(criterion=KNN(3), rows=kept, stop=MaxProbes(2000), max_probe_size=100, random_state=0)
                daf.fit(X, y)
                best[kept] = min(best.get(kept, np.inf), daf.ledger_.seconds)
        speeds = [f"{2000 / best[kept]:,.0f}" for kept in (False, True)]
        rows.append([f"{n_rows} x {n_features:,}", *speeds, f"{best[False] / best[True]:.2f}"])
    print_table("Cost", ["3-NN, tau = 100, one core", "probes/s without rows", "with", "ratio"], rows)
