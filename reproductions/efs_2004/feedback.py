"""Wu and Zhang 2004, table 2 and figure 3: relevance feedback on images that replace those of Corel."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import minmax_scale
from sklearn.tree import DecisionTreeClassifier

from probewise.feedback import relevance_feedback
from probewise.filters.cfs import CFS
from probewise.filters.dfe import DFE
from probewise.filters.efs import EFS
from probewise.forest import AdaptiveRandomForestClassifier

from ..judge import Evidence
from ..pictures import Line, Panel, Picture
from ..results import Numbers
from ..work import Work

METHODS = ("Full Space", "EFS", "DFE", "CFS")
IMAGES = {"MSRC-v1": "msrcv1", "COIL-20": "coil20", "Mfeat": "mfeat"}
DIMENSIONS = {("EFS", "ARF"): 20, ("EFS", "CART"): 20, ("DFE", "ARF"): 60, ("DFE", "CART"): 30}  # of table 2
OF_FIGURE_3 = "MSRC-v1"
TREES = (1, 5, 10, 20, 40, 60, 90, 120)
REGULAR = "regular"
Floats = NDArray[np.float64]


def feedback(work: Work, ours: Numbers, evidence: dict[str, dict[str, Evidence]]) -> list[Picture]:
    """Table 2 and figure 3 into ``ours``, the evidence for their claims, and the figures."""
    panels = []
    for name, repeats in work.settings.images.items():
        source = work.data(IMAGES[name])
        shuffled = np.random.default_rng(work.seed).permutation(len(source.y))  # ties go to the lower row number
        X, y = minmax_scale(np.asarray(source.X, dtype=np.float64))[shuffled], source.y[shuffled]
        cells = [(method, model) for model in ("ARF", "CART") for method in METHODS]
        if name == OF_FIGURE_3:
            cells += [("Full Space", f"{trees} trees") for trees in (*TREES, REGULAR)]
        units = [(*cell, repetition) for repetition in range(repeats) for cell in cells]
        function = partial(search, X, y, work.settings.queries, work.seed)
        found = work.units(f"feedback-{IMAGES[name]}", function, units, (X, y), queries=work.settings.queries)
        table = {cell: joined([found[(*cell, repetition)] for repetition in range(repeats)]) for cell in cells}
        for (method, model), columns in table.items():
            row = ("Table 2", f"{name} {method}") if model in ("ARF", "CART") else ("Figure 3", model)
            ours |= {(*row, f"{model} {column}" if row[0] == "Table 2" else column): v for column, v in columns.items()}
        compared(name, table, evidence)
        panels.append(by_round(name, found, repeats))
        if name == OF_FIGURE_3:
            third = figure_3(name, table)
    return [third, Picture("Feedback", panels)]


def search(X: Floats, y: NDArray[Any], queries: int | None, seed: int, unit: tuple[str, str, int]) -> dict[str, Any]:
    """Searches for all classes, or the first few, after other initial rows in each repetition."""
    method, model, repetition = unit
    classifier = {
        "CART": DecisionTreeClassifier(),
        "ARF": AdaptiveRandomForestClassifier(),
        f"{REGULAR} trees": RandomForestClassifier(60),
        **{f"{trees} trees": AdaptiveRandomForestClassifier(trees) for trees in TREES},
    }[model]
    size = min(DIMENSIONS.get((method, model), 1), X.shape[1])
    selectors = {"EFS": EFS(size), "DFE": DFE(size), "CFS": CFS()}
    options = {"selector": selectors.get(method), "random_state": np.random.RandomState([seed, repetition])}
    found = relevance_feedback(X, y, classifier, queries=np.unique(y)[:queries], ranked_by="score", **options)
    with np.errstate(invalid="ignore"):
        relative = found.precision / found.possible
    return {
        "relative": found.relative_precision,
        "rounds": np.where(found.possible > 0, relative, np.nan).T,
        "features": found.n_features[-1],
        "seconds": found.seconds.mean(axis=0),
    }


def joined(results: list[Mapping[str, Any]]) -> dict[str, Floats]:
    """Columns of table 2, one number for each query."""
    columns = {key: np.concatenate([each[key] for each in results]) for key in ("relative", "features", "seconds")}
    return {"relative precision": 100 * columns.pop("relative"), **columns}


def compared(name: str, table: Mapping[Any, Mapping[str, Floats]], evidence: dict[str, dict[str, Evidence]]) -> None:
    def add(claim: str, column: str, first: Any, second: Any) -> None:
        evidence[claim][column] = Evidence(table[first]["relative precision"] - table[second]["relative precision"])

    for model in ("ARF", "CART"):
        add("feedback, EFS is best", f"{name} {model}", ("EFS", model), ("Full Space", model))
    add("feedback, DFE and CFS are comparable", name, ("EFS", "ARF"), ("DFE", "ARF"))
    add("feedback, ARF beats CART", name, ("EFS", "ARF"), ("EFS", "CART"))
    times = [table[method, "ARF"]["seconds"].mean() for method in ("Full Space", "EFS")]
    evidence["feedback, time"][f"{name} ARF"] = Evidence(text=f"{times[0] / times[1]:.2f} times")
    if name == OF_FIGURE_3:
        sixty = ("Full Space", "60 trees")
        add("feedback, 60 trees", "60 - 120 trees", sixty, ("Full Space", "120 trees"))
        add("feedback, 60 trees", "60 - 10 trees", sixty, ("Full Space", "10 trees"))
        add("feedback, ARF is like a regular forest", name, sixty, ("Full Space", f"{REGULAR} trees"))


def figure_3(name: str, table: Mapping[Any, Mapping[str, Floats]]) -> Picture:
    panels = []
    for column, axis in (("relative precision", "relative precision (%)"), ("seconds", "seconds per round")):
        means = [float(table["Full Space", f"{trees} trees"][column].mean()) for trees in TREES]
        panels.append(Panel(name, "number of trees", axis, [Line("adaptive random forest", TREES, means)]))
    return Picture("Figure 3", panels)


def by_round(name: str, found: Mapping[Any, Any], repeats: int) -> Panel:
    """Relative precision by round of feedback; the mean over queries that still have something to find."""
    lines = []
    for method in METHODS:
        parts = [np.array(found[(method, "ARF", r)]["rounds"], dtype=np.float64) for r in range(repeats)]
        values = np.concatenate(parts)
        shown = [k for k in range(values.shape[1]) if np.isfinite(values[:, k]).any()]
        lines.append(Line(method, shown, [100 * float(np.nanmean(values[:, k])) for k in shown]))
    return Panel(f"{name}, ARF", "rounds of feedback", "relative precision (%)", lines)
