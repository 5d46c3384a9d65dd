"""Why Tournament is set as it is: each choice varied by itself, what it finds, and which pairs it sees.

python -m benchmarks tournament --only choices    accuracy on unseen rows, by the protocol of unseen
python -m benchmarks tournament --only truth      Madelon's recipe (10 seeds) and UCI Madelon: hits of 20 by probes
python -m benchmarks tournament --only pairs      an XOR pair among 500 and 5,000 features, beside ReliefF and JMI

Answers are kept in benchmarks/tournament.jsonl and not computed again: it goes on where it was. Tables and a picture of
all that is known so far are written to benchmarks/tournament.md and docs/pictures/tournament.svg.
"""

import json
import time
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed

from benchmarks import unseen

HERE = Path(__file__).parent
KEPT = Path(__file__).with_suffix(".jsonl")
SEEDS, MARKS = range(10), (500, 1_000, 2_000, 4_000)
PAIRS = [(n, rows) for n in (500, 5_000) for rows in (250, 500, 1_000)]
BUDGETS = (2_000, 8_000)


def soft_neighbours(temperature):
    """Soft k-NN as a function, with its temperature times this much."""

    def score(X, y):
        squares = (X.astype(np.float64) ** 2).sum(axis=1)
        d = squares[:, None] + squares - 2 * X.astype(np.float64) @ X.T
        np.fill_diagonal(d, np.inf)
        near = np.argsort(d, axis=1)[:, :10]
        d = np.take_along_axis(d, near, axis=1)
        votes = np.exp((d[:, :1] - d) / max(temperature * d[:, 4].mean() / 5, 1e-300))
        return float(((votes * (y[near] == y[:, None])).sum(axis=1) / votes.sum(axis=1)).mean())

    return score


def criteria():
    from probewise.criteria import KNN, Average, Linear, NaiveBayes

    return {
        "k-NN": KNN(10),
        "linear": Linear(),
        "naive Bayes": NaiveBayes(),
        "5 neighbours": Average((KNN(5), Linear())),
        "20 neighbours": Average((KNN(20), Linear())),
        "k-NN, half the temperature": soft_neighbours(0.5),
        "k-NN, twice the temperature": soft_neighbours(2.0),
    }


# what is changed: constants of probing.rounds or selectors.tournament, or parameters of Tournament
CHOICES = {
    "as it is": {},
    "criterion: k-NN": {"criterion": "k-NN"},
    "criterion: linear": {"criterion": "linear"},
    "criterion: naive Bayes": {"criterion": "naive Bayes"},
    "criterion: 5 neighbours, and linear": {"criterion": "5 neighbours"},
    "criterion: 20 neighbours, and linear": {"criterion": "20 neighbours"},
    "criterion: k-NN, half the temperature": {"criterion": "k-NN, half the temperature"},
    "criterion: k-NN, twice the temperature": {"criterion": "k-NN, twice the temperature"},
    "scored by accuracy": {"scoring": "accuracy"},
    "share kept: 0.5": {"SHARE": 0.5},
    "share kept: 0.85": {"SHARE": 0.85},
    "last size: 10": {"FEWEST": 10},
    "last size: 40": {"FEWEST": 40},
    "first round: as long as others": {"FIRST_SHARE": 0.0},
    "first round: 1/3": {"FIRST_SHARE": 1 / 3},
    "first round: 1/2": {"FIRST_SHARE": 0.5},
    "probes up to 40": {"LARGEST_PROBE": 40},
    "probes up to 250": {"LARGEST_PROBE": 250},
    "ridge: 3": {"RIDGE": 3.0},
    "ridge: 30": {"RIDGE": 30.0},
    "protect: always": {"protect": True},
    "protect: never": {"protect": False},
    "protect: 60 of each": {"protect": True, "N_PROTECTED": 60},
    "budget: a quarter": {"budget": 0.25},
    "budget: four times": {"budget": 4.0},
}


def made(choice, n_rows, **options):
    """Tournament with one choice changed, and what must be patched while it is fitted."""
    from probewise import Tournament, tournament
    from probewise.engine import schedule as rounds

    changed, stack = dict(CHOICES[choice]), ExitStack()
    for name in [name for name in changed if name.isupper()]:
        module = rounds if hasattr(rounds, name) else tournament
        stack.enter_context(patch.object(module, name, changed.pop(name)))
    if "criterion" in changed:
        changed["criterion"] = criteria()[changed["criterion"]]
    usual = Tournament()._budget(n_rows)
    if "budget" in changed:
        changed["n_probes"] = int(usual * changed.pop("budget"))
    return Tournament(**changed, **options), stack


# ---- a cell of each part


def choices(choice, name, half):
    def rank(X, y, half):
        selector, stack = made(choice, len(y), random_state=half)
        with stack:
            return np.argsort(selector.fit(X, y).ranking_, kind="stable")

    return unseen.scored(name, None, half, rank=rank)


def truth(choice, seed, n_probes):
    from benchmarks.precision import informative
    from probewise.datasets import load, make_madelon

    if seed == "UCI":
        madelon = load("madelon", unseen.FOLDER)
        X, y, true = (
            madelon.X[madelon.train_index].astype(np.float32),
            madelon.y[madelon.train_index],
            informative(madelon),
        )
    else:
        data = make_madelon(random_state=seed)
        X, y, true = data.X, data.y, data.informative
    selector, stack = made(choice, len(y), n_probes=n_probes, random_state=0 if seed == "UCI" else seed)
    started = time.perf_counter()
    with stack:
        ranking = selector.fit(X, y).ranking_
    return {"hits": int((ranking[true] <= 20).sum()), "seconds": time.perf_counter() - started}


def pairs(method, n_features, n_rows, n_probes, seed):
    from probewise import JMI, ReliefF, Tournament
    from probewise.datasets import make_xor

    data = make_xor(n_rows, n_features, random_state=seed)
    selector = {"ReliefF": ReliefF, "JMI": lambda: JMI(20)}.get(method)
    selector = Tournament(n_probes=n_probes, random_state=seed) if selector is None else selector()
    started = time.perf_counter()
    ranking = selector.fit(data.X, data.y).ranking_
    return {"places": sorted(ranking[data.informative].tolist()), "seconds": time.perf_counter() - started}


def cells(part, small):
    """What is asked in each part, what tells most first."""
    if part == "choices":
        sets, halves = unseen.present(unseen.SETS[:2] if small else unseen.SETS), range(1 if small else unseen.HALVES)
        return [(choice, name, half) for half in halves for choice in CHOICES for name in sets]
    if part == "truth":
        named = (
            "as it is",
            "criterion: k-NN",
            "protect: never",
            "protect: 60 of each",
            "first round: as long as others",
        )
        if small:
            return [("as it is", 0, MARKS[0])]
        seeds = [*SEEDS, *(["UCI"] if unseen.present(["madelon"]) else [])]
        return [(choice, seed, mark) for choice in named for mark in (1_000, 4_000, 2_000, 500) for seed in seeds]
    asked = []
    for seed in range(1 if small else 3):
        for n_features, n_rows in PAIRS[: 1 if small else None]:
            asked += [(method, n_features, n_rows, 0, seed) for method in ("ReliefF", "JMI")]
            asked += [("Tournament", n_features, n_rows, budget, seed) for budget in BUDGETS]
    return asked


PARTS = {"choices": choices, "truth": truth, "pairs": pairs}


def answered(part, cell):
    return {"part": part, "cell": list(cell), **PARTS[part](*cell)}


def main(only=None, small=False, jobs=2, **_):
    known = {}
    if KEPT.exists() and not small:
        for line in KEPT.read_text().splitlines():
            answer = json.loads(line)
            known[answer["part"], *answer["cell"]] = answer
    asked = [(part, cell) for part in (only.split(",") if only else PARTS) for cell in cells(part, small)]
    todo = [(part, cell) for part, cell in asked if (part, *cell) not in known]
    for answer in Parallel(n_jobs=jobs, return_as="generator")(delayed(answered)(*each) for each in todo):
        known[answer["part"], *answer["cell"]] = answer
        if not small:
            with KEPT.open("a") as file:
                file.write(json.dumps(answer) + "\n")
            write(known)
    write(known, to_files=not small)


# ---- tables and the picture


def write(known, to_files=True):
    tables = [*of_choices(known), *of_truth(known), *of_pairs(known)]
    text = "# Why Tournament is set as it is\n\n`python -m benchmarks tournament`, answers so far.\n\n"
    text += "<!-- --8<-- [start:tables] -->\n"
    for title, header, rows in tables:
        lines = [header, ["---"] * len(header), *rows]
        text += f"\n**{title}**\n\n" + "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"
    text += "<!-- --8<-- [end:tables] -->\n"
    if not to_files:
        print(text)
        return
    (HERE / "tournament.md").write_text(text)
    draw(known)


def by_choice(known):
    """{choice: {(set, half): accuracies}}"""
    found = {}
    for (part, *cell), answer in known.items():
        if part == "choices":
            found.setdefault(cell[0], {})[tuple(cell[1:])] = [100 * answer[str(size)] for size in unseen.SIZES]
    return found


def differences(found, choice):
    """Accuracy less that of Tournament as it is, on the sets and halves that both know: a mean for each set."""
    usual, sets = found.get("as it is", {}), {}
    for cell, accuracy in found[choice].items():
        if cell in usual:
            sets.setdefault(cell[0], []).append(np.subtract(accuracy, usual[cell]))
    return np.array([np.mean(values, axis=0) for values in sets.values()])


def of_choices(known):
    found, rows = by_choice(known), []
    for choice in [choice for choice in CHOICES if choice in found]:
        apart = differences(found, choice)
        if not len(apart):
            continue
        error = apart.std(axis=0, ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.full(4, np.nan)
        cells = [f"{mean:+.1f} ± {spread:.1f}" for mean, spread in zip(apart.mean(axis=0), error, strict=True)]
        rows.append([choice, *cells, len(apart), len(found[choice])])
    if rows:
        header = ["choice", *(f"{size} features" for size in unseen.SIZES), "sets", "trials"]
        yield "Accuracy on unseen rows, in points above Tournament as it is", header, rows


def of_truth(known):
    found = {}
    for (part, *cell), answer in known.items():
        if part == "truth":
            where = "UCI Madelon" if cell[1] == "UCI" else "Madelon's recipe"
            found.setdefault((where, cell[0]), {}).setdefault(cell[2], []).append(answer["hits"])
    rows = [
        [
            where,
            choice,
            *(f"{np.mean(marks[mark]):.1f} ({len(marks[mark])})" if mark in marks else "" for mark in MARKS),
        ]
        for (where, choice), marks in sorted(found.items())
    ]
    if rows:
        yield "Informative features of 20 among the first 20, by probes (trials)", ["data", "choice", *MARKS], rows


def of_pairs(known):
    found = {}
    for (part, *cell), answer in known.items():
        if part == "pairs":
            method, n_features, n_rows, budget, _ = cell
            key = f"{method}, {budget:,} probes" if budget else method
            found.setdefault((n_features, n_rows), {}).setdefault(key, []).append(answer["places"][-1] <= 20)
    methods = [*(f"Tournament, {budget:,} probes" for budget in BUDGETS), "ReliefF", "JMI"]
    rows = [
        [f"{n:,}", n_rows, *(f"{sum(hits[m])} of {len(hits[m])}" if m in hits else "" for m in methods)]
        for (n, n_rows), hits in sorted(found.items())
    ]
    if rows:
        yield "An XOR pair, both of it among the first 20", ["features", "rows", *methods], rows


def draw(known):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = by_choice(known)
    shown = [choice for choice in reversed(CHOICES) if choice in found and choice != "as it is"]
    apart = [
        differences(found, choice)[:, unseen.SIZES.index(20)] for choice in shown if len(differences(found, choice))
    ]
    if not apart:
        return
    figure, axes = plt.subplots(figsize=(8, 0.3 * len(apart) + 1.2), layout="constrained")
    for place, values in enumerate(apart):
        axes.plot(values, np.full(len(values), place), ".", color="0.7")
        axes.plot(values.mean(), place, "o", color="teal")
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.set_yticks(range(len(apart)), shown[: len(apart)])
    axes.set_xlabel("points of accuracy at 20 features, above Tournament as it is (grey: each set)")
    plt.rcParams["svg.hashsalt"] = "tournament"
    figure.savefig(HERE.parent / "docs" / "pictures" / "tournament.svg", metadata={"Date": None})
    plt.close(figure)
