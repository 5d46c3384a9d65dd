"""Features named at a false discovery rate of 0.1, on tables with a known truth and on tables of noise.

python -m benchmarks discover [--only truth|real|protocol|noise|calibration|praise] [--tables N] [--jobs N] [--small]

For each kind of table: the mean number of named features, the share of them that is false, the share of the ten true
features that is found, and both by neighborhood (a named feature counts as true if it, or a true feature with an
absolute correlation of 0.5 or more with it, is true). "real" takes X from data sets (.npz files in the folder
PROBEWISE_DATA) and draws y. Peers are used where they are installed (ipss, boruta, knockpy), on a tenth of the tables,
Boruta on a thirtieth. Results are stored in benchmarks/discover.jsonl and not computed again; the tables of the docs
are written to benchmarks/discover.md.
The part "praise" counts how often the verdict of a report of `Tournament` praises a table of noise.
"""

import importlib.util
import json
import re
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import false_discovery_control
from sklearn.feature_selection import f_classif, f_regression

from benchmarks.measure import print_table
from benchmarks.unseen import FOLDER, SETS, load
from probewise import Tournament
from probewise.inference import associated, needed, pairs
from probewise.report import summarize
from probewise.validation.survival import Survival

FDR, TABLES, PRAISE_TABLES, SMALL = 0.1, 100, 40, 2
PEERS, SLOW_PEERS = 10, {"Boruta": 30}  # a peer is run on one in so many tables
CHUNK = 10  # tables whose results are stored together
STORED = Path(__file__).with_suffix(".jsonl")
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "calibration.svg"
SHAPES = {
    "linear": lambda x: x,
    "bump": lambda x: np.exp(-(x**2)),
    "step": lambda x: (x > 0.7).astype(float),
}
TRUTH = (
    ("independent", "linear", "number"),
    ("independent", "linear", "class"),
    ("toeplitz", "linear", "number"),
    ("blocks", "linear", "number"),
    ("blocks", "linear", "class"),
    ("toeplitz", "bump", "number"),
    ("toeplitz", "bump", "class"),
    ("toeplitz", "step", "class"),
    ("independent", "pair", "number"),
)
REAL = tuple((name, "linear", response) for name in (*SETS, "riboflavin") for response in ("number", "class"))


# ---- tables


def design(random, kind, n_rows, n_columns):
    """Columns: independent, autocorrelated (0.5), in blocks of 20 with a correlation of 0.7, or of a data set."""
    if (FOLDER / f"{kind}.npz").exists():
        X = load(kind)[0].astype(float)
        varying = np.flatnonzero(X.std(axis=0) > 0)
        X = X[:, random.choice(varying, min(n_columns, len(varying)), replace=False)]
        return (X - X.mean(axis=0)) / X.std(axis=0)
    X = random.standard_normal((n_rows, n_columns))
    if kind == "toeplitz":
        for column in range(1, n_columns):
            X[:, column] = 0.5 * X[:, column - 1] + np.sqrt(0.75) * X[:, column]
    elif kind == "blocks":
        X = np.sqrt(0.7) * np.repeat(random.standard_normal((n_rows, n_columns // 20)), 20, axis=1) + np.sqrt(0.3) * X
    return (X - X.mean(axis=0)) / X.std(axis=0)


def table(kind, shape, response, seed):
    """X, y and the ten true columns; the signal-to-noise ratio of numbers is 2, the logit slope of classes 3."""
    random = np.random.default_rng([seed, *f"{kind}{shape}{response}".encode()])
    n_rows, n_columns = {"linear": (200, 1000), "pair": (500, 200)}.get(shape, (500, 500))
    X = design(random, kind, n_rows, n_columns)
    n_rows = len(X)
    truth = random.choice(n_columns, 10, replace=False)
    if shape == "pair":
        signal = sum(X[:, a] * X[:, b] for a, b in truth.reshape(-1, 2))
    else:
        signs = np.ones(10) if shape == "bump" else random.choice([-1, 1], 10)
        signal = sum(sign * SHAPES[shape](X[:, column]) for sign, column in zip(signs, truth, strict=True))
    signal = (signal - signal.mean()) / signal.std()
    if response == "number":
        return X, signal * np.sqrt(2) + random.standard_normal(n_rows), truth
    return X, (random.random(n_rows) < 1 / (1 + np.exp(-3 * signal))).astype(int), truth


def protocol(response, seed):
    """The protocol of the authors of IPSS: 500 x 500, correlation 0.5, 5 to 15 bumps, random strength of the signal."""
    random = np.random.default_rng([seed, *f"protocol{response}".encode()])
    X = design(random, "toeplitz", 500, 500)
    truth = random.choice(500, random.integers(5, 16), replace=False)
    signal = sum(np.exp(-(X[:, column] ** 2)) for column in truth)
    signal = (signal - signal.mean()) / signal.std()
    if response == "number":
        return X, signal * np.sqrt(random.uniform(0.5, 2)) + random.standard_normal(500), truth
    return X, (random.random(500) < 1 / (1 + np.exp(-random.uniform(1, 3) * signal))).astype(int), truth


def noise(kind, seed):
    """X and y without any relation, and the options of the test."""
    random, options = np.random.default_rng([seed, *kind.encode()]), {}
    n_rows, n_columns = (200, 300) if kind.startswith("rare") else (60, 500)
    X, y = random.standard_normal((n_rows, n_columns)), random.integers(0, 2, n_rows)
    patients = np.repeat(np.arange(20), 3)
    if "number" in kind:
        y = random.standard_normal(n_rows)
    if "skewed" in kind:
        y = random.lognormal(0, 2, n_rows)
    if "Cauchy" in kind:
        X, y = random.standard_cauchy(X.shape), random.standard_cauchy(n_rows)
    if "rare" in kind:
        y = np.zeros(n_rows, int)
        y[random.choice(n_rows, 4 if "2%" in kind else 10, replace=False)] = 1
    if "lognormal" in kind:
        X = random.lognormal(0, 1.5, X.shape)
    if "five classes" in kind:
        y = random.integers(0, 5, n_rows)
    if "blocks" in kind:
        X = design(random, "blocks", n_rows, n_columns)
    if "weights" in kind:
        options["sample_weight"] = np.where(np.arange(n_rows) < 5, 50.0, 1.0)
    if "binary" in kind:
        X = (random.random(X.shape) < random.uniform(0.02, 0.5, n_columns)).astype(float)
    if "counts" in kind:
        X = random.poisson(random.uniform(0.05, 3, n_columns), X.shape).astype(float)
    if "missing" in kind:
        X[random.random(X.shape) < random.uniform(0, 0.4, n_columns)] = np.nan
    if "groups" in kind:
        X += 2 * random.standard_normal((20, n_columns))[patients]
        y, options["groups"] = random.integers(0, 2, 20)[patients], patients
        if "mixed" in kind:
            y[::7] = 1 - y[::7]
    if "covariates" in kind:
        options["adjust"] = np.column_stack([y + random.standard_normal(n_rows), random.standard_normal(n_rows)])
    if "strata" in kind:
        batch = random.integers(0, 3, n_rows)
        X += batch[:, None] * random.standard_normal(n_columns)
        y, options["strata"] = (random.random(n_rows) < 0.2 + 0.3 * batch).astype(int), batch
    batch = random.integers(0, 3, n_rows) if "batch" in kind else np.zeros(n_rows, int)
    if "batch" in kind:  # y and a third of the columns depend on the batch
        X[:, ::3] += 1.5 * batch[:, None]
        options["adjust"] = np.array(["a", "b", "c"], dtype=object)[batch]
        y = y + 1.5 * batch if "number" in kind else (random.random(n_rows) < 0.2 + 0.3 * batch).astype(int)
    if "survival" in kind:
        times, censored = random.exponential(np.exp(-batch)), random.exponential(1.5, n_rows)
        y = Survival(times <= censored, np.minimum(times, censored)).array
    if "targets" in kind:
        y = random.standard_normal((n_rows, 3))
    return X, y, options


NOISE = (
    "two classes", "five classes", "numbers", "skewed numbers", "Cauchy numbers", "rare class, 2%",
    "rare class, 5%, lognormal columns", "weights", "weights, numbers", "blocks", "blocks, numbers", "binary columns",
    "counts, numbers", "binary columns, skewed numbers", "missing values", "missing values, numbers", "groups",
    "mixed groups", "strata", "survival", "within batch", "within batch, numbers", "within batch, survival",
    "three targets",
)  # fmt: skip


# ---- methods

TESTS = {"associated": associated, "needed": needed, "pairs": pairs}


def _ipss(selector):
    def method(X, y, seed):
        from ipss import ipss

        found = ipss(X, y, selector=selector)["q_values"]
        return [column for column, q_value in found.items() if q_value <= FDR]

    return method


def _boruta(X, y, seed):
    from boruta import BorutaPy
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest = (RandomForestClassifier if y.dtype.kind in "iu" else RandomForestRegressor)(max_depth=5)
    return BorutaPy(forest, n_estimators="auto", random_state=0, max_iter=50).fit(X, y).support_


def _knockoffs(X, y, seed):
    from knockpy import KnockoffFilter

    np.random.seed(seed)  # noqa: NPY002 (the package draws from this generator)
    test = KnockoffFilter(ksampler="gaussian", fstat="lasso", knockoff_kwargs={"method": "equicorrelated"})
    return np.flatnonzero(test.forward(X=X, y=y.astype(float), fdr=FDR, shrinkage="ledoitwolf"))


def _f_test(X, y, seed):
    return false_discovery_control((f_classif if y.dtype.kind in "iu" else f_regression)(X, y)[1]) <= FDR


def methods():
    """Ours, and the peers that are installed."""
    known = {
        "needed": lambda X, y, seed: needed(X, y, fdr=FDR, random_state=seed).mask,
        "associated": lambda X, y, seed: associated(X, y, fdr=FDR, random_state=seed).mask,
        "F test, Benjamini-Hochberg": _f_test,
    }
    if importlib.util.find_spec("ipss"):
        known |= {"IPSS, L1": _ipss("l1"), "IPSS, boosting": _ipss("gb")}
    if importlib.util.find_spec("boruta"):
        known["Boruta"] = _boruta
    if importlib.util.find_spec("knockpy"):
        known["knockoffs"] = _knockoffs
    return known


def judged(X, truth, named):
    """Number named, false share, found share, and both shares by neighborhood."""
    named = np.asarray(named)
    named = np.flatnonzero(named) if named.dtype == bool else named.astype(int)
    near = np.abs(X.T @ X[:, truth]) / len(X) >= 0.5
    near[truth, np.arange(len(truth))] = True
    if not len(named):
        return 0, 0.0, 0.0, 0.0, 0.0
    true, found = np.isin(named, truth).mean(), np.isin(truth, named).mean()
    return len(named), 1 - true, found, 1 - near[named].any(axis=1).mean(), near[named].any(axis=0).mean()


def _one(part, kind, name, seed):
    """The cells of one table: those of `judged` and the seconds, or the number of features or pairs named in noise."""
    warnings.simplefilter("ignore")
    if part == "noise":
        X, y, options = noise(kind, seed)
        found = TESTS[name](X, y, fdr=FDR, random_state=seed, **options)
        return [len(found.pairs) if name == "pairs" else int(found.mask.sum())]
    X, y, truth = table(*kind, seed) if part in ("truth", "real") else protocol(*kind, seed)
    start = time.perf_counter()
    named = methods()[name](X, y, seed)
    cells = (*judged(X, truth, named), time.perf_counter() - start)
    return [round(float(cell), 4) for cell in cells]


def stored_cells():
    """(part, kind, method) -> the cells of tables 0, 1, ..."""
    cells = {}
    for line in STORED.read_text().splitlines() if STORED.exists() else ():
        result = json.loads(line)
        key = result["part"], result["kind"], result["method"]
        cells.setdefault(key, {}).update(zip(range(result["first"], 10**9), result["cells"], strict=False))
    return {key: [of_key[seed] for seed in sorted(of_key)] for key, of_key in cells.items()}


def measured(part, kind, name, n_tables, jobs, store=True):
    """The cells of the first tables of a kind; computes and stores those that are missing."""
    words = kind if isinstance(kind, str) else ", ".join(kind)
    cells = stored_cells().get((part, words, name), []) if store else []
    while len(cells) < n_tables:
        seeds = range(len(cells), min(len(cells) + CHUNK, n_tables))
        new = Parallel(n_jobs=jobs)(delayed(_one)(part, kind, name, seed) for seed in seeds)
        if store:
            result = {"part": part, "kind": words, "method": name, "first": len(cells), "cells": new}
            with STORED.open("a") as file:
                file.write(json.dumps(result) + "\n")
        cells += new
    return np.array(cells[:n_tables])


HEADER = ("table", "method", "tables", "named", "false", "found", "false, near", "found, near", "seconds")


def _rows(part, kinds, n_tables, jobs, store):
    for kind in kinds:
        for name in methods():
            share = 1 if name in ("needed", "associated") else SLOW_PEERS.get(name, PEERS)
            cells = measured(part, kind, name, -(-n_tables // share), jobs, store)
            named, *shares, seconds = cells.mean(axis=0)
            errors = cells[:, 1:-1].std(axis=0) / np.sqrt(len(cells))
            texts = [f"{share:.2f} ± {error:.2f}" for share, error in zip(shares, errors, strict=True)]
            yield ", ".join(kind), name, len(cells), f"{named:.1f}", *texts, f"{seconds:.1f}"


def _noise_rows(n_tables, jobs, store):
    shares = np.array(
        [[(measured("noise", kind, name, n_tables, jobs, store) > 0).mean() for name in TESTS] for kind in NOISE]
    )
    for kind, of_kind in zip((*NOISE, "all"), (*shares, shares.mean(axis=0)), strict=True):
        yield kind, *(f"{share:.3f}" for share in of_kind)


PRAISED = ("two classes", "rare class, 5%", "numbers", "groups", "covariates", "covariates, numbers")
PRAISE = {  # words of the verdict
    "related": r"\d features? (is|are) related to",
    "needed": r"\d (is|are) needed given",
    "a pair": "act together|matter only together",
    "enough": r"\d features? (is|are) enough",
    "predict better": "predict better than guessing",
    "add": r"the features add to",
}


def _praise(kind, seed):
    """Which words of praise the verdict has; rows of weight and groups are those of the noise."""
    warnings.simplefilter("ignore")
    X, y, options = noise(kind, seed)
    selector = Tournament(random_state=seed).fit(X, y, **options)
    verdict = " ".join(summarize(selector, X, y, **options)["verdict"])
    return [bool(re.search(words, verdict)) for words in PRAISE.values()]


def _praise_rows(n_tables, jobs):
    for kind in PRAISED:
        found = Parallel(n_jobs=jobs)(delayed(_praise)(kind, seed) for seed in range(n_tables))
        yield kind, *(f"{share:.3f}" for share in np.mean(found, axis=0)), f"{np.any(found, axis=1).mean():.3f}"


NAMES = {
    "independent": "independent columns",
    "toeplitz": "correlation 0.5 between neighbors",
    "blocks": "blocks of 20",
}
SHAPE_NAMES = {"linear": "lines", "bump": "bumps", "step": "steps", "pair": "products of pairs"}
RESPONSES = {"number": "a number", "class": "two classes"}
COLUMNS = ("needed", "associated", "F test, Benjamini-Hochberg", "IPSS, L1", "IPSS, boosting", "knockoffs", "Boruta")


def write_tables():
    """Write the tables of the docs page from the stored results."""
    cells = stored_cells()
    lines = ["<!-- --8<-- [start:truth] -->", "| table | " + " | ".join(COLUMNS) + " |", "|---" * 8 + "|"]
    kinds = [("truth", kind) for kind in TRUTH] + [("protocol", (response,)) for response in RESPONSES]
    kinds += [("real", kind) for kind in REAL if ("real", ", ".join(kind), "needed") in cells]
    for part, kind in kinds:
        of_kind = {name: np.array(cells.get((part, ", ".join(kind), name), np.empty((0, 6)))) for name in COLUMNS}
        title = f"protocol of IPSS, {RESPONSES[kind[-1]]}"
        if part != "protocol":
            title = f"{NAMES.get(kind[0], f'`{kind[0]}`')}, {SHAPE_NAMES[kind[1]]}, {RESPONSES[kind[2]]}"
        by_neighborhood = part == "real" or kind[0] == "blocks"
        for first, suffix in ((1, ""), (3, "; by neighborhood"))[: 1 + by_neighborhood]:
            texts = []
            for values in of_kind.values():
                found = f"{values[:, first + 1].mean():.2f}" if len(values) else ""
                error = f" ± {values[:, first + 1].std() / np.sqrt(len(values)):.2f}" if len(values) else ""
                false = f"{values[:, first].mean():.2f} / " if len(values) else ""
                texts.append(f"{false}{found}{error} ({len(values)})" if len(values) else "")
            lines.append(f"| {title}{suffix} | " + " | ".join(texts) + " |")
    lines += ["<!-- --8<-- [end:truth] -->", "", "<!-- --8<-- [start:noise] -->"]
    lines += [f"| noise | tables | {' | '.join(TESTS)} |", "|---" * (2 + len(TESTS)) + "|"]
    rows = {kind: [np.array(cells.get(("noise", kind, name), [])) > 0 for name in TESTS] for kind in NOISE}
    rows = {kind: is_named for kind, is_named in rows.items() if all(map(len, is_named))}
    every = [np.concatenate([np.ravel(part) for part in column]) for column in zip(*rows.values(), strict=True)]
    for kind, is_named in rows.items():
        shares = " | ".join(f"{part.mean():.2f}" for part in is_named)
        lines.append(f"| {kind} | {len(is_named[0])} | {shares} |")
    lines.append(f"| all | {len(every[0]):,} | {' | '.join(f'{part.mean():.3f}' for part in every)} |")
    STORED.with_suffix(".md").write_text("\n".join([*lines, "<!-- --8<-- [end:noise] -->", ""]))


def draw_calibration(n_tables):
    """Quantiles of the p-values of `associated` on noise against uniform quantiles."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 4.2))
    for kind in ("two classes", "skewed numbers", "rare class, 2%", "counts, numbers", "mixed groups"):
        p_values = []
        for seed in range(n_tables):
            X, y, options = noise(kind, seed)
            p_values.append(associated(X, y, random_state=seed, **options).p_values)
        observed = np.sort(np.concatenate(p_values))
        expected = (np.arange(len(observed)) + 0.5) / len(observed)
        shown = np.unique(np.geomspace(1, len(observed), 300).astype(int)) - 1
        axes.plot(-np.log10(expected[shown]), -np.log10(observed[shown]), label=kind)
    axes.plot([0, 4.5], [0, 4.5], color="gray", linestyle="--", linewidth=1)
    axes.set(xlabel="expected −log10 p", ylabel="observed −log10 p", title="p-values of associated on noise")
    axes.legend(frameon=False)
    figure.savefig(PICTURE, bbox_inches="tight", metadata={"Date": None})
    print(f"drawn: {PICTURE.name}")


def main(only=None, small=False, jobs=2, tables=TABLES):
    n_tables = SMALL if small else tables
    real = [kind for kind in REAL if (FOLDER / f"{kind[0]}.npz").exists()]
    titles = {"truth": "Tables with ten true features", "real": "Real columns, ten of which are true"}
    titles["protocol"] = "The protocol of IPSS"
    kinds = {"truth": TRUTH, "real": real, "protocol": (("number",), ("class",))}
    for part, title in titles.items():
        if only in (None, part):
            print_table(title, HEADER, list(_rows(part, kinds[part], n_tables, jobs, not small)))
    if only in (None, "noise"):
        rows = list(_noise_rows(n_tables, jobs, not small))
        print_table("Share of tables of noise with any named feature", ("noise", *TESTS), rows)
    if only in (None, "praise"):
        rows = list(_praise_rows(min(n_tables, PRAISE_TABLES), jobs))
        print_table("Share of reports of noise with words of praise", ("noise", *PRAISE, "any"), rows)
    if only in (None, "calibration"):
        draw_calibration(n_tables)
    if not small:
        write_tables()
