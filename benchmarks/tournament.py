"""Settings of Tournament: accuracy with one setting changed, informative features found, and XOR pairs found.

python -m benchmarks tournament --only choices    accuracy on held-out rows without a linear classifier, as in unseen
python -m benchmarks tournament --only weights    accuracy on held-out rows by how weights of a linear classifier enter
python -m benchmarks tournament --only truth      Madelon recipe (10 seeds) and UCI Madelon: informative features found
python -m benchmarks tournament --only wide       Madelon recipe with 5,000 features (10 seeds), by the budget
python -m benchmarks tournament --only pairs      an XOR pair among 500 and 5,000 features; also ReliefF and JMI

Results are stored in benchmarks/tournament.jsonl and not computed again. Tables and a plot of all results so far are
written to benchmarks/tournament.md and docs/pictures/tournament.svg.
"""

import json
import time
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed

from benchmarks import linear_weights, unseen

HERE = Path(__file__).parent
STORED = Path(__file__).with_suffix(".jsonl")
SEEDS, MARKS = range(10), (500, 1_000, 2_000, 4_000)
PAIRS = [(n, rows) for n in (500, 5_000) for rows in (250, 500, 1_000)]
BUDGETS = (2_000, 8_000)
WIDE_BUDGETS = ("auto", 3_000, 4_000, 6_000)


def weighted_neighbors(temperature):
    """Distance-weighted k-NN as a function, with the temperature multiplied by this factor."""

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
        "5 neighbors": Average((KNN(5), Linear())),
        "20 neighbors": Average((KNN(20), Linear())),
        "k-NN, half the temperature": weighted_neighbors(0.5),
        "k-NN, twice the temperature": weighted_neighbors(2.0),
    }


# changed constants of engine.schedule or tournament, or changed parameters of Tournament
CHOICES = {
    "default": {},
    "criterion: k-NN": {"criterion": "k-NN"},
    "criterion: linear": {"criterion": "linear"},
    "criterion: naive Bayes": {"criterion": "naive Bayes"},
    "criterion: 5 neighbors and linear": {"criterion": "5 neighbors"},
    "criterion: 20 neighbors and linear": {"criterion": "20 neighbors"},
    "criterion: k-NN, half the temperature": {"criterion": "k-NN, half the temperature"},
    "criterion: k-NN, twice the temperature": {"criterion": "k-NN, twice the temperature"},
    "scoring: accuracy": {"scoring": "accuracy"},
    "share that goes on: 0.5": {"KEPT_SHARE": 0.5},
    "share that goes on: 0.85": {"KEPT_SHARE": 0.85},
    "features in the last round: 10": {"N_LAST": 10},
    "features in the last round: 40": {"N_LAST": 40},
    "first round: as long as the others": {"FIRST_SHARE": 0.0},
    "first round: 1/3 of the budget": {"FIRST_SHARE": 1 / 3},
    "first round: 1/2 of the budget": {"FIRST_SHARE": 0.5},
    "probes up to 40": {"MAX_PROBE_SIZE": 40},
    "probes up to 250": {"MAX_PROBE_SIZE": 250},
    "ridge: 3": {"RIDGE": 3.0},
    "ridge: 30": {"RIDGE": 30.0},
    "protect: always": {"MIN_ROWS_TO_PROTECT": 0},
    "protect: never": {"MIN_ROWS_TO_PROTECT": 10**9},
    "protect: 60 of each": {"MIN_ROWS_TO_PROTECT": 0, "N_PROTECTED": 60},
    "budget: a quarter": {"budget": 0.25},
    "budget: four times": {"budget": 4.0},
}


def changed_tournament(choice, n_rows, **options):
    """Tournament with one setting changed, and the patches that must be active while it is fitted."""
    from probewise import Tournament, tournament
    from probewise.engine import schedule

    changed, stack = dict(CHOICES[choice]), ExitStack()
    for name in [name for name in changed if name.isupper()]:
        module = schedule if hasattr(schedule, name) else tournament
        stack.enter_context(patch.object(module, name, changed.pop(name)))
    if "criterion" in changed:
        changed["criterion"] = criteria()[changed["criterion"]]
    # These settings were compared before Tournament had a linear classifier.
    stack.enter_context(patch.object(tournament, "MAX_PRODUCTS", 0))
    if "budget" in changed:
        default = np.clip(tournament.MAX_PROBES * tournament.USUAL_ROWS // n_rows, 2_000, tournament.MAX_PROBES)
        changed["n_probes"] = int(default * changed.pop("budget"))
    return Tournament(**changed, **options), stack


# ---- one result of each part


def choices(choice, name, half):
    def rank(X, y, half):
        selector, stack = changed_tournament(choice, len(y), random_state=half)
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
    selector, stack = changed_tournament(choice, len(y), n_probes=n_probes, random_state=0 if seed == "UCI" else seed)
    started = time.perf_counter()
    with stack:
        ranking = selector.fit(X, y).ranking_
    return {"hits": int((ranking[true] <= 20).sum()), "seconds": time.perf_counter() - started}


def wide(n_probes, seed):
    """Informative features among the best 20 of 5,000, with 1,000 rows; seconds are those of one core."""
    from probewise import Tournament
    from probewise.datasets import make_madelon

    data, started = make_madelon(1_000, 5_000, random_state=seed), time.process_time()
    tournament = Tournament(n_probes=n_probes, random_state=seed, n_jobs=1).fit(data.X.astype(np.float32), data.y)
    hits = int((tournament.ranking_[data.informative] <= 20).sum())
    return {"hits": hits, "n_probes": tournament.n_probes_, "seconds": time.process_time() - started}


def pairs(method, n_features, n_rows, n_probes, seed):
    from benchmarks.precision import make_xor
    from probewise import JMI, ReliefF, Tournament

    data = make_xor(n_rows, n_features, random_state=seed)
    selector = {"ReliefF": ReliefF, "JMI": lambda: JMI(20)}.get(method)
    selector = Tournament(n_probes=n_probes, random_state=seed) if selector is None else selector()
    started = time.perf_counter()
    ranking = selector.fit(data.X, data.y).ranking_
    return {"places": sorted(ranking[data.informative].tolist()), "seconds": time.perf_counter() - started}


def cells(part, small):
    """The results to compute for each part, the most informative first."""
    if part == "weights":
        return list(linear_weights.cells(small))
    if part == "choices":
        sets, halves = unseen.present(unseen.SETS[:2] if small else unseen.SETS), range(1 if small else unseen.HALVES)
        return [(choice, name, half) for half in halves for choice in CHOICES for name in sets]
    if part == "wide":
        return [(budget, seed) for seed in SEEDS for budget in WIDE_BUDGETS][: 1 if small else None]
    if part == "truth":
        named = (
            "default",
            "criterion: k-NN",
            "protect: never",
            "protect: 60 of each",
            "first round: as long as the others",
        )
        if small:
            return [("default", 0, MARKS[0])]
        seeds = [*SEEDS, *(["UCI"] if unseen.present(["madelon"]) else [])]
        return [(choice, seed, mark) for choice in named for mark in (1_000, 4_000, 2_000, 500) for seed in seeds]
    wanted = []
    for seed in range(1 if small else 3):
        for n_features, n_rows in PAIRS[: 1 if small else None]:
            wanted += [(method, n_features, n_rows, 0, seed) for method in ("ReliefF", "JMI")]
            wanted += [("Tournament", n_features, n_rows, budget, seed) for budget in BUDGETS]
    return wanted


PARTS = {"choices": choices, "weights": linear_weights.score, "truth": truth, "wide": wide, "pairs": pairs}


def computed(part, cell):
    return {"part": part, "cell": list(cell), **PARTS[part](*cell)}


def main(only=None, small=False, jobs=2, **_):
    known = {}
    if STORED.exists() and not small:
        for line in STORED.read_text().splitlines():
            result = json.loads(line)
            known[result["part"], *result["cell"]] = result
    wanted = [(part, cell) for part in (only.split(",") if only else PARTS) for cell in cells(part, small)]
    todo = [(part, cell) for part, cell in wanted if (part, *cell) not in known]
    for result in Parallel(n_jobs=jobs, return_as="generator")(delayed(computed)(*each) for each in todo):
        known[result["part"], *result["cell"]] = result
        if not small:
            with STORED.open("a") as file:
                file.write(json.dumps(result) + "\n")
            write(known)
    write(known, to_files=not small)


# ---- tables and the plot


def write(known, to_files=True):
    tables = [*of_weights(known), *of_choices(known), *of_truth(known), *of_wide(known), *of_pairs(known)]
    text = "# Settings of Tournament\n\nResults of `python -m benchmarks tournament` so far.\n\n"
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


def by_choice(known, of_part="choices"):
    """Accuracies as {choice: {(set, half, ...): values}}."""
    accuracies = {}
    for (part, *cell), result in known.items():
        if part == of_part:
            accuracies.setdefault(cell[0], {})[tuple(cell[1:])] = [100 * result[str(size)] for size in unseen.SIZES]
    return accuracies


def differences(accuracies, choice, of=None, reference="default"):
    """Mean difference of accuracy from the reference for each data set, on the trials that both have."""
    default, sets = accuracies.get(reference, {}), {}
    for cell, accuracy in accuracies.get(choice, {}).items():
        if cell in default and (of is None or cell[0] in of):
            sets.setdefault(cell[0], []).append(np.subtract(accuracy, default[cell]))
    return np.array([np.mean(values, axis=0) for values in sets.values()])


def of_choices(known):
    yield from table_of(by_choice(known), CHOICES, "without a linear classifier")


def of_weights(known):
    """Differences from the mean of all settings: one seed of the default is too noisy to compare with."""
    accuracies = by_choice(known, "weights")
    for name in (*unseen.SETS, *linear_weights.MORE, *linear_weights.TALL):
        of_name = [{c: a for c, a in of_choice.items() if c[0] == name} for of_choice in accuracies.values()]
        of_name = [of_choice for of_choice in of_name if of_choice]
        for cell in set.intersection(*map(set, of_name)) if of_name else ():
            mean = np.mean([of_choice[cell] for of_choice in of_name], axis=0)
            accuracies.setdefault("mean", {})[cell] = mean
    for title, tables in (
        ("the nine wide tables", unseen.SETS),
        ("the nine tables and ten more", (*unseen.SETS, *linear_weights.MORE)),
        ("tall tables", linear_weights.TALL),
    ):
        title = f"weights of the linear classifier and other choices, {title}"
        yield from table_of(accuracies, linear_weights.VARIANTS, title, tables, "mean")


def table_of(accuracies, choices, title, tables=None, reference="default"):
    rows = []
    for choice in choices:
        gains = differences(accuracies, choice, tables, reference)
        if not len(gains):
            continue
        errors = gains.std(axis=0, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.full(4, np.nan)
        cells = [f"{mean:+.1f} ± {error:.1f}" for mean, error in zip(gains.mean(axis=0), errors, strict=True)]
        n_trials = sum((tables is None or c[0] in tables) and c in accuracies[reference] for c in accuracies[choice])
        rows.append([choice, *cells, f"{gains[:, 2].min():+.1f}", len(gains), n_trials])
    if rows:
        header = ["setting", *(f"{size} features" for size in unseen.SIZES), "worst table (20)", "data sets", "trials"]
        of = "the default" if reference == "default" else "the mean of all settings"
        yield f"Accuracy on held-out rows, difference from {of} in percentage points: {title}", header, rows


def of_truth(known):
    hits = {}
    for (part, *cell), result in known.items():
        if part == "truth":
            data = "UCI Madelon" if cell[1] == "UCI" else "Madelon recipe"
            hits.setdefault((data, cell[0]), {}).setdefault(cell[2], []).append(result["hits"])
    rows = [
        [
            data,
            choice,
            *(f"{np.mean(marks[mark]):.1f} ({len(marks[mark])})" if mark in marks else "" for mark in MARKS),
        ]
        for (data, choice), marks in sorted(hits.items())
    ]
    if rows:
        yield (
            "Informative features (of 20) among the best 20, by number of probes (trials)",
            ["data", "setting", *MARKS],
            rows,
        )


def of_wide(known):
    results = {}
    for (part, *cell), result in known.items():
        if part == "wide":
            results.setdefault(cell[0], []).append(result)
    rows = [
        [
            "the default" if budget == "auto" else "",
            f"{of_budget[0]['n_probes']:,}",
            mean_of([result["hits"] for result in of_budget]),
            min(result["hits"] for result in of_budget),
            f"{np.mean([result['seconds'] for result in of_budget]):.0f}",
            len(of_budget),
        ]
        for budget, of_budget in sorted(results.items(), key=lambda item: item[1][0]["n_probes"])
    ]
    if rows:
        header = ["", "probes", "found", "fewest", "seconds on one core", "trials"]
        yield "Informative features (of 20) among the best 20 of 5,000, with 1,000 rows", header, rows


def mean_of(values):
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0:.1f}"


def of_pairs(known):
    found = {}
    for (part, *cell), result in known.items():
        if part == "pairs":
            method, n_features, n_rows, budget, _ = cell
            key = f"{method}, {budget:,} probes" if budget else method
            found.setdefault((n_features, n_rows), {}).setdefault(key, []).append(result["places"][-1] <= 20)
    methods = [*(f"Tournament, {budget:,} probes" for budget in BUDGETS), "ReliefF", "JMI"]
    rows = [
        [f"{n:,}", n_rows, *(f"{sum(hits[m])} of {len(hits[m])}" if m in hits else "" for m in methods)]
        for (n, n_rows), hits in sorted(found.items())
    ]
    if rows:
        yield "Runs in which both features of an XOR pair are among the best 20", ["features", "rows", *methods], rows


def draw(known):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    accuracies = by_choice(known)
    shown = [choice for choice in reversed(CHOICES) if choice in accuracies and choice != "default"]
    gains = {choice: differences(accuracies, choice) for choice in shown}
    gains = [values[:, unseen.SIZES.index(20)] for values in gains.values() if len(values)]
    if not gains:
        return
    figure, axes = plt.subplots(figsize=(8, 0.3 * len(gains) + 1.2), layout="constrained")
    for k, values in enumerate(gains):
        axes.plot(values, np.full(len(values), k), ".", color="0.7")
        axes.plot(values.mean(), k, "o", color="teal")
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.set_yticks(range(len(gains)), shown[: len(gains)])
    axes.set_xlabel(
        "difference of accuracy from the default with 20 features, percentage points (gray: single data sets)"
    )
    plt.rcParams["svg.hashsalt"] = "tournament"
    figure.savefig(HERE.parent / "docs" / "pictures" / "tournament.svg", metadata={"Date": None})
    plt.close(figure)
