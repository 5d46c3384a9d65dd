"""Sections of a report on tests of features: which are related, which are needed, and which pairs act together."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._selector import discoveries_of_units, pairs_of_units
from ..engine.units import unit_table
from ..inference import Discoveries
from ..inference.interactions import MAX_PRODUCTS
from .findings import Data, Findings
from .ranking_table import columns_of, json_numbers, named_clusters
from .sections import Unavailable, evenly_spaced

EXPLANATION = (
    "A feature is related to the target if the two vary together more than chance would explain; every near "
    "copy of a related feature is related, too. A feature is needed if it adds to all other features; near copies are "
    "tested as one cluster, which one of them represents. The q-value is the smallest false discovery rate (expected "
    "share of false ones among the named features) at which a feature is named."
)
TESTS = {"related": "associated", "needed": "needed"}
N_PAIRS, N_DRAWN_PAIRS, MAX_SAMPLES = 20, 4, 300


def inference(findings: Findings, data: Data | None, fdr: float | None) -> dict[str, Any]:
    """Which features are related to the target and which are needed given the others, tested on the data of the run."""
    tests = {name: _tested(test, findings, data, fdr) for name, test in TESTS.items()}
    if data is not None and "adjust" in data.fit_arguments and fdr is not None:
        without = {name: values for name, values in data.fit_arguments.items() if name != "adjust"}
        tests["unadjusted"] = _tested_on("associated", findings, data, **without).at(fdr)
    clusters = [findings.names_of(cluster) for cluster in named_clusters(tests)]
    return {
        "tests": tests,
        "fdr": fdr,
        **{f"n_{name}": int(found.mask.sum()) for name, found in tests.items()},
        "clusters": clusters,
        "explanation": EXPLANATION,
    }


def interactions(
    findings: Findings, data: Data | None, fdr: float | None, related: Discoveries | None
) -> dict[str, Any]:
    """Pairs of features whose product is related to the target beyond what the two do alone."""
    rows, features = findings.shape or (0, len(findings.names)) if data is None else data.X.shape
    is_hurried = getattr(findings.selector, "time_limit", None) is not None
    if rows * features**2 / 2 > (MAX_PRODUCTS / 10 if is_hurried else MAX_PRODUCTS):
        raise Unavailable(f"the pairs of {features:,} features are too many (call probewise.inference.pairs)")
    found = _tested("pairs", findings, data, fdr)
    shown = found.pairs[:N_PAIRS]
    alone = np.zeros(features, bool) if related is None else related.mask
    pairs = [
        {"first": findings.names[one], "second": findings.names[two], "only_together": not (alone[one] or alone[two])}
        for one, two in shown.tolist()
    ]
    q_values = json_numbers(found.q_values[:N_PAIRS])
    pairs = [pair | {"q_value": q} for pair, q in zip(pairs, q_values, strict=True)]
    drawn = None if data is None or data.target is None or not len(shown) else _points(data, shown[:N_DRAWN_PAIRS])
    return {"fdr": fdr, "n_pairs": len(found.pairs), "pairs": pairs, "drawn": drawn}


def _points(data: Data, pairs: Any) -> dict[str, Any]:
    """Values of both features of each pair, and the class of each sample; a numeric target is cut at its median."""
    assert data.target is not None
    rows = evenly_spaced(data.X.shape[0], MAX_SAMPLES)
    if data.target.classes is None:
        target = data.target.values if data.target.n_targets == 1 else data.target.values[:, 0]
        middle = float(np.median(target))
        codes, classes = (target > middle).astype(int), [f"up to {middle:.3g}", f"above {middle:.3g}"]
    else:
        codes, classes = data.target.values, [str(label) for label in data.target.classes]
    values = [[json_numbers(column[rows]) for column in columns_of(data.X, pair).T] for pair in pairs]
    return {"classes": classes, "class_of": codes[rows].tolist(), "values": values}


def _tested(test: str, findings: Findings, data: Data | None, fdr: float | None) -> Any:
    """The discoveries of a test, or the pairs of "pairs": on the data of the selector, or on the given data."""
    selector = findings.selector
    if fdr is None:
        raise Unavailable("the tests of features were switched off")
    is_known = selector is not None and test in selector._tests
    if selector is not None and (is_known or getattr(selector, "_data", None) is not None):
        return selector.interactions(fdr) if test == "pairs" else selector._tested(test).at(fdr)
    if data is None:
        raise Unavailable("features are tested on the data of the run, which were not given")
    if test == "pairs":
        return _tested_on(test, findings, data, fdr=fdr, **data.fit_arguments)
    return _tested_on(test, findings, data, **data.fit_arguments).at(fdr)


def _tested_on(test: str, findings: Findings, data: Data, **options: Any) -> Any:
    """The test on the given data, with the options of `discoveries_of_units` or, for "pairs", of `pairs_of_units`."""
    assert findings.run is not None
    is_categorical = np.isin(np.arange(data.X.shape[1]), findings.categorical)
    table = unit_table(data.X, findings.run.units, categorical=is_categorical)
    work: Any = pairs_of_units if test == "pairs" else partial(discoveries_of_units, test)
    return work(table, data.y, None if data.target is None else data.is_classification, findings.run, **options)
