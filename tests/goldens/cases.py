"""The cases of the goldens, and what is written down of each: shared by the script that makes and the test that reads.

Only the public face is used, so that this file outlives any move of modules.
"""

from __future__ import annotations

import io
import json
import re
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import LogisticRegression

from probewise import BIF, CFS, CMIM, DAF, DFE, EFS, FSDD, JMI, MRMR, SFFS, ReliefF
from probewise.cli import run
from probewise.criteria import KNN, Linear, Tree
from probewise.report import summarize
from probewise.stopping import MaxProbes, Settled

HERE = Path(__file__).parent
ADDED = (
    *("higher_in", "lower_in", "difference", "difference_low", "difference_high", "fold_change", "values"),
    *("correlation", "correlation_low", "correlation_high", "above_average"),
)
NOT_COMPARED = ("versions", "made", "repeat")  # of a summary
TIMES = ("seconds",)  # keys anywhere in a summary
ROWS = 1  # of a matrix in a summary that are kept
OBSERVED = ("ranking_", "scores_", "std_errors_", "support_", "passed_", "p_values_", "subset_", "merit_")


# ---- data: kept in a file, since a matrix product in their making may differ in the last bit elsewhere


@dataclass(frozen=True)
class Data:
    X: Any
    y: Any
    weights: Any


def data(name: str) -> Data:
    with np.load(HERE / "data.npz") as arrays:
        wide = name == "wide"
        X, y, weights = arrays["wide_X" if wide else "X"], arrays["wide_y" if wide else "y"], arrays["weights"]
    if name in ("levels", "frame"):
        X = X.copy()
        X[:, [2, 9]] = np.clip(np.round(X[:, [2, 9]]), -1, 1)
    if name == "frame":
        X = pd.DataFrame(X, columns=[f"f{column:02d}" for column in range(X.shape[1])])
        X["f02"] = pd.Categorical(X["f02"].map({-1.0: "low", 0.0: "middle", 1.0: "high"}))
    if name == "numbers":
        y = X[:, 3] - 2.0 * X[:, 5] + 0.5 * X[:, 8]
    if name == "sparse":
        X = sp.csr_array(np.where(np.abs(X) < 0.7, 0.0, X))
    return Data(X, y, weights)


def apart(X: Any, y: Any) -> float:
    """A criterion that is a function: how far apart the classes are at most."""
    return float(np.abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)).max())


class NearestMean(ClassifierMixin, BaseEstimator):
    """A user's own classifier, which fails on three columns and has no score for four."""

    def fit(self, X: Any, y: Any) -> NearestMean:
        if X.shape[1] == 3:
            raise ZeroDivisionError("three are too many")
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X: Any) -> Any:
        return self.classes_[((X[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)]

    def score(self, X: Any, y: Any) -> float:
        return float("nan") if X.shape[1] == 4 else float(np.mean(self.predict(X) == y))


class Widest(SelectorMixin, BaseEstimator):
    """A user's own selector: the columns that spread most."""

    def __init__(self, k: int = 10) -> None:
        self.k = k

    def fit(self, X: Any, y: Any = None) -> Widest:
        self.scores_ = np.ptp(X, axis=0)
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self) -> Any:
        return np.argsort(np.argsort(-self.scores_, kind="stable"), kind="stable") < self.k


# ---- runs with a ledger


@dataclass(frozen=True)
class Kept:
    """A run that is kept in a ledger; ``exact`` is False where BLAS has a say in the scores.

    ``ties``: rows are at equal distances. The goldens' version took the lower row of them, later ones do not: what was
    in the ledger stays, and what is probed anew has other numbers. Their "later" was recorded again.
    """

    options: dict[str, Any] = field(default_factory=dict)
    data: str = "small"
    n_probes: int = 400
    weighted: bool = False
    exact: bool = True
    first_format: bool = False
    ties: bool = False

    def daf(self, n_probes: int | None = None, ledger: Any = None) -> Any:
        options = {"n_features_to_select": 6, "criterion": KNN(3), "max_probe_size": 8, "check_every": 100}
        options |= {"random_state": 7, **self.options}
        return DAF(**options, stop=MaxProbes(n_probes or self.n_probes), ledger=ledger)

    @property
    def later(self) -> int:
        """How far a run goes on."""
        return self.n_probes + 150

    def fit(self, n_probes: int | None = None, ledger: Any = None) -> tuple[Any, list[str]]:
        """The fitted selector, and what it warned of."""
        given = data(self.data)
        more = {"sample_weight": given.weights} if self.weighted else {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            daf = self.daf(n_probes, ledger).fit(given.X, given.y, **more)
        # What is on its way out says so since; then there was nothing of the kind.
        return daf, [str(warning.message) for warning in caught if warning.category is not FutureWarning]

    def summaries(self, ledger: Any) -> dict[str, Any]:
        """By the ledger alone, and what is different with the data."""
        given, coefficient = data(self.data), self.options.get("coefficient")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = told(summarize(ledger, coefficient=coefficient))
            more = told(summarize(ledger, given.X, given.y, source="table.csv", target="y", coefficient=coefficient))
        return {"alone": alone, "with data": changes(more, alone)}


GROUPS = {"first": [0, 1, 2], "second": [10, 20]}
RUNS = {
    "plain": Kept(),
    "narrowed": Kept({"narrow": 0.6, "max_probe_size": 20}, "wide", 1500),
    "narrowed-regression": Kept(
        {"narrow": 0.6, "coefficient": "regression", "max_probe_size": 20}, "wide", 1500, exact=False
    ),
    "screened-number": Kept({"screen": 12}),
    "screened-share": Kept({"screen": 0.4}),
    "screened-own": Kept({"screen": Widest(10)}),
    "screened-pair": Kept({"screen": (ReliefF(), 0.5)}),
    "screened-kept": Kept({"screen": 12, "keep": [1], "drop": [4]}),
    "grouped": Kept({"feature_groups": GROUPS}),
    "kept-dropped": Kept({"keep": [3, 4], "drop": [0, 23]}),
    "decoys": Kept({"n_features_to_select": "auto", "how_many": "decoys", "fdr": 0.2}),
    "decoys-grouped": Kept(
        {
            "n_features_to_select": "auto",
            "how_many": "decoys",
            "min_features_to_select": 0,
            "feature_groups": GROUPS,
            "keep": [5],
            "drop": [6],
        }
    ),
    "costs": Kept({"costs": {0: 2.5, 7: 0.5, 11: 4.0}}),
    "categories": Kept({"categorical_features": [2, 9]}, "levels", ties=True),
    "categories-frame": Kept({"categorical_features": ["f09"]}, "frame", ties=True),
    "weighted": Kept(weighted=True),
    "inclusion": Kept({"inclusion": 0.2}),
    "daf1": Kept({"coefficient": "daf1"}),
    "daf2": Kept({"coefficient": "daf2"}),
    "regression": Kept({"coefficient": "regression"}, exact=False),
    "scoring": Kept({"scoring": "balanced_accuracy"}),
    "scoring-numbers": Kept({"criterion": KNN(3, task="regression"), "scoring": "r2"}, "numbers", exact=False),
    "failures": Kept({"criterion": NearestMean(), "error_score": -1.0}, n_probes=150),
    "first-plain": Kept(first_format=True),
    "first-screened": Kept({"screen": 12}, first_format=True),
}


def without_added(part: Any) -> Any:
    """Columns of the ranking, their labels, or gaps, without those that version 0.1.0 did not know."""
    return {name: value for name, value in part.items() if name not in ADDED} if isinstance(part, dict) else part


def told(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary without what changes from run to run, and with the first row only of a matrix."""

    def part(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: part(item) for name, item in value.items() if name not in TIMES}
        if isinstance(value, list):
            return [part(item) for item in (value[:ROWS] if value and isinstance(value[0], list) else value)]
        return value

    ranking = {name: without_added(value) for name, value in summary["ranking"].items()}
    summary = {**summary, "gaps": without_added(summary["gaps"]), "ranking": ranking}
    kept = part({name: value for name, value in summary.items() if name not in NOT_COMPARED})
    return json.loads(json.dumps(kept, allow_nan=False))


def changes(more: Any, less: Any) -> Any:
    """What of the first is not so in the second, in two levels."""
    different = {name: value for name, value in more.items() if name not in less or less[name] != value}
    return {
        name: {key: item for key, item in value.items() if key not in less[name] or less[name][key] != item}
        if isinstance(value, dict) and isinstance(less.get(name), dict)
        else value
        for name, value in different.items()
    }


def numbers(values: Any) -> Any:
    """As JSON has it, every bit of a float included; NaN is None."""
    if isinstance(values, list | tuple):
        return [numbers(value) for value in values]
    array = np.asarray(values)
    if array.dtype.kind != "f":
        return array.tolist()
    return np.where(np.isnan(array), None, array.astype(object)).tolist()


def observed(selector: Any, warned: list[str] | None = None) -> dict[str, Any]:
    """What a fitted selector knows, as JSON has it."""
    seen = {name: numbers(getattr(selector, name)) for name in OBSERVED if hasattr(selector, name)}
    if isinstance(selector, DAF):  # at the time standard errors were about probes, and only decoys gave p-values
        seen["std_errors_"] = numbers(selector.probe_std_errors_)
        if not selector.units_.n_decoys:
            seen.pop("p_values_", None)
    if isinstance(selector, DAF):
        history = {name: numbers(part) for name, part in selector.history_.items() if name not in TIMES}
        failures = selector.ledger_.failures
        seen |= {
            "n_probes": selector.n_probes_,
            "seed": selector.plan_.seed,
            "stop_reason": selector.stop_reason_,
            "history": history,
            "failed": None if failures is None else len(failures.probes),
        }
    return json.loads(json.dumps(seen | {"warned": warned or []}, allow_nan=False))


# ---- rankings of every selector


def ranker(**options: Any) -> Any:
    return DAF(6, **({"max_probe_size": 8, "stop": MaxProbes(200), "random_state": 3, "check_every": 100} | options))


# name: selector, data, and whether every bit is compared
RANKINGS: dict[str, tuple[Any, str, bool]] = {
    "DAF": (ranker(), "small", True),
    "DAF on two workers": (ranker(n_jobs=2), "small", True),
    "DAF until settled": (ranker(stop=Settled(5, 0.6) | MaxProbes(1000)), "small", True),
    "DAF by size": (DAF("auto", how_many="size", stop=MaxProbes(200), random_state=3, check_every=100), "small", True),
    "DAF by an estimator": (ranker(criterion=LogisticRegression(), stop=MaxProbes(40)), "small", False),
    "DAF by a function": (ranker(criterion=apart, stop=MaxProbes(100)), "small", False),
    "DAF of sparse data": (ranker(), "sparse", False),
    "DAF, naive_bayes, of sparse data": (ranker(criterion="naive_bayes"), "sparse", False),
    "DAF, scored by roc_auc": (ranker(criterion="linear", scoring="roc_auc"), "small", False),
    **{
        f"DAF, {name}": (ranker(criterion=name), "small", name in ("knn", "tree"))
        for name in ("knn", "linear", "naive_bayes", "tree", "separability")
    },
    **{
        f"DAF, numbers, {type(criterion).__name__}": (ranker(criterion=criterion), "numbers", False)
        for criterion in (KNN(task="regression"), Linear(task="regression"), Tree())
    },
    "DAF, numbers, screened": (ranker(criterion=KNN(task="regression"), screen=10), "numbers", False),
    "BIF": (BIF(6), "small", True),
    "BIF, numbers": (BIF(6, criterion=KNN(task="regression")), "numbers", False),
    "SFFS": (SFFS(5), "small", True),
    "SFFS, numbers": (SFFS(3, criterion=KNN(task="regression")), "numbers", False),
    "EFS": (EFS(6), "small", True),
    "DFE": (DFE(6), "small", True),
    "CFS": (CFS(), "small", True),
    "FSDD": (FSDD(6), "small", True),
    "FSDD of sparse data": (FSDD(6), "sparse", True),
    "ReliefF": (ReliefF(6, random_state=0), "small", True),
    "MRMR": (MRMR(6), "small", True),
    "JMI": (JMI(6), "small", True),
    "CMIM": (CMIM(6), "small", True),
}


def ranked(name: str) -> dict[str, Any]:
    selector, of, _ = RANKINGS[name]
    given = data(of)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = selector.fit(given.X, given.y)
    return observed(fitted, [str(warning.message) for warning in caught])


# ---- the command line

SHORT = (
    "--method",
    "daf",
    "--target",
    "label",
    "--probes",
    "300",
    "--max-probe-size",
    "8",
    "--jobs",
    "1",
    "--top",
    "6",
)
FEATURES = ["--keep-features", "f03", "--feature-groups", "both=f00,f01"]
COMMANDS = {
    "rank": ["rank", "table.csv", *SHORT],
    "together": ["rank", "table.csv", *SHORT, "--together"],
    "decoys": ["rank", "table.csv", *SHORT, "--auto", "decoys"],
    "efs": ["rank", "table.csv", "--target", "label", "--method", "efs", "--jobs", "1", "--out", "efs.csv"],
    "features": [
        "rank",
        "table.csv",
        *SHORT,
        "--keep-features",
        "f03",
        "--feature-groups",
        "both=f00,f01",
        "--out",
        "ranks.csv",
    ],
    "reported": ["rank", "table.csv", *SHORT, "--report", "report.md", "--json", "report.json"],
    "kept": ["rank", "table.csv", *SHORT, "--ledger", "run.ledger"],
    "report": ["report", "run.ledger", "--out", "of-ledger.md", "--json", "of-ledger.json"],  # of the run before
    "compare": [
        *("compare", "table.csv", "--target", "label", "--methods", "daf,fsdd,all", "--classifiers", "knn"),
        *("--trials", "2", "--sizes", "2,5", "--probes", "100", "--jobs", "1", "--out", "trials.csv"),
    ],
    "refused": ["rank", "table.csv", "--target", "none"],
}
WRITTEN = {
    "efs": ["efs.csv"],
    "features": ["ranks.csv"],
    "reported": ["report.md", "report.json"],
    "report": ["of-ledger.md", "of-ledger.json"],
    "compare": ["trials.csv"],
}


def put_table() -> None:
    """The table of the commands, in this folder."""
    given = data("small")
    frame = pd.DataFrame(given.X, columns=[f"f{column:02d}" for column in range(given.X.shape[1])])
    frame.assign(label=np.where(given.y == 1, "yes", "no")).to_csv("table.csv", index=False)


def printed(name: str) -> str:
    """The exit code, standard output, and what is said on standard error, of a command run in this folder."""
    out, err = io.StringIO(), io.StringIO()
    plenty = patch("probewise.evaluation.nested_score.FEWEST_SECONDS", 600.0)  # so that no result is a matter of time
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings(), plenty:
        warnings.simplefilter("ignore")
        code = run(COMMANDS[name])
    said = [line for line in err.getvalue().splitlines() if line.startswith("probewise: ")]
    return timeless("\n".join([f"exit code {code}", out.getvalue(), *said]) + "\n")


def timeless(text: str) -> str:
    """The text without times, dates, versions, and the blocks of code that say how to repeat the run."""
    text = re.sub(r"\n```.*?\n```\n", "\n", text, flags=re.DOTALL)
    text = re.sub(r"\n- versions: .*", "", text)
    text = re.sub(r"\d[\d,.]*(?:e-\d+)? (a second|seconds?|minutes?|ms|s)\b", r"# \1", text)
    text = re.sub(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[+-]\d\d:?\d\d)?)?", "DATE", text)
    lines, timed = [], False
    for line in map(str.rstrip, text.splitlines()):
        timed = line.endswith(" seconds") or (timed and bool(line))
        lines.append(re.sub(r" +[\d.]+$", " #", line) if timed else line)
    return "\n".join(lines) + "\n"


def written(file: str) -> Any:
    """What a command wrote to that file: a summary or a text."""
    text = Path(file).read_text(encoding="utf-8")
    if file.endswith(".json"):
        return told(json.loads(text))
    if file.endswith(".csv"):
        rows = [line.split(",") for line in text.splitlines()]
        kept = [place for place, name in enumerate(rows[0]) if name not in TIMES]
        return "".join(",".join(row[place] for place in kept) + "\n" for row in rows)
    return timeless(text)
