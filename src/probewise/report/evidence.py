"""Parts of a report that are computed: convergence, interactions, correlations, accuracy by size, features alone.

Each function gives a dict of JSON values, or raises `Unknown` with the reason why it cannot.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._selector import WrapperSelector
from ..bif import BIF
from ..criteria import KNN, Criterion, Linear, NaiveBayes, in_prose
from ..engine.interactions import (
    ALIKE,
    FEWEST_IN_A_CELL,
    best_probed,
    columns_of,
    correlations,
    interactions_between,
    stand_in,
)
from ..engine.probes import Subsets
from ..engine.units import one_hot
from ..evaluation import sizes as size_curve
from ..filters.fsdd import FSDD
from ..validation.tables import columns_not_finite
from .data import Data
from .findings import Findings, Floats
from .words import plain_numbers, quoted

NEEDS_DATA, NO_TARGET = "the data were not given", "there is no target to predict"
LOOKS_SHOWN = 200
LIKENED = 30
TOGETHER, STRONGEST = 20, 10
HELPING, MOST_ROWS_NAMED = 15, 2000
QUICK_SECONDS = 5.0  # of a run that is repeated on shuffled targets, too
REFITTED_CELLS = 4_000_000  # a filter is fitted anew in each fold up to this much data
ALONE_CELLS = 500_000_000
ALONE_DISTANCES = 4_000_000_000  # rows² x features, up to which k-NN scores features one at a time
REVEALED, REVEALED_SHOWN = 20, 15

Columns = NDArray[np.int64]


class Unknown(Exception):
    """A part of the report that cannot be made, and why, for the reader."""


# ---- from the ledger


def convergence(found: Findings) -> dict[str, Any]:
    """C, C2, and what two halves of the probes share of the top, look by look."""
    run, top = found.run, found.top
    assert run is not None
    n_probes, every = run.ledger.n_probes, run.settings.check_every
    if run.settings.schedule is None:  # which needs every look
        every *= max(1, -(-n_probes // (every * LOOKS_SHOWN)))
    if n_probes < 2 * every:
        raise Unknown(f"it takes two looks, and the run of {n_probes:,} probes had one every {every:,}")
    looks = run.looks(check_every=every, tops=[top])
    step = 1 + len(looks) // LOOKS_SHOWN
    looks = looks[(len(looks) - 1) % step :: step]
    measures = ("seconds", "order_change", "value_change", "relative_change")
    return {
        "every": every,
        "top": top,
        "probes": [look.n_probes for look in looks],
        **{name: plain_numbers([getattr(look, name) for look in looks]) for name in measures},
        "overlap": plain_numbers([look.overlap[top] for look in looks]),
    }


def interactions(found: Findings, data: Data | None = None) -> dict[str, Any]:
    """What each pair of the top features does together, and which groups of them stand in for one another.

    The contrast is mean J of probes with both, less with only the one, less with only the other, plus with neither. J
    is less the mean of probes of like size, since larger probes hold more pairs and are better anyway. The columns, if
    there are data, are further evidence for the groups.
    """
    assert found.run is not None
    top = best_probed(found.ranking, found.scores)[:TOGETHER]
    names = [found.names[column] for column in top.tolist()]
    known = interactions_between(found.run, top, names)
    if np.isfinite(known.contrast).mean() < 0.1:
        raise Unknown(
            f"pairs of the top features met in fewer than {FEWEST_IN_A_CELL} probes: more or larger probes would tell"
        )
    pairs, measures = known.pairs(), ("first", "second", "contrast", "std_error", "z", "kind")
    groups = known.groups(None if data is None else _correlations(found, data, top))
    return {
        "features": names,
        "contrast": plain_numbers(known.contrast),
        "std_error": plain_numbers(known.std_error),
        "pairs": len(pairs),
        "strongest": [
            {"p_holm": pair.p, **{name: getattr(pair, name) for name in measures}} for pair in pairs[:STRONGEST]
        ],
        "groups": [
            {"features": list(names), "evidence": list(evidence), "words": stand_in([quoted(name) for name in names])}
            for names, evidence in ((group.names, group.evidence) for group in groups)
        ],
        "by_columns": data is not None,
    }


def helped_rows(found: Findings, data: Data | None = None) -> dict[str, Any]:
    """What the top features did for each group of rows, groups of a class, and such that are alike, side by side."""
    assert found.run is not None
    if found.run.row_effects is None:
        raise Unknown("this run kept nothing about rows, or its criterion gives one number for all of them")
    if found.selector is None:
        raise Unknown("a ledger does not hold which rows are in which group: use report() of a fitted selector")
    known = found.selector.which_rows(HELPING, y=None if data is None else data.y)
    n_rows = sum(len(rows) for rows in known.rows)
    return {
        "features": list(known.names),
        "effects": plain_numbers(known.effects),
        "rows": [rows.tolist() for rows in known.rows] if n_rows <= MOST_ROWS_NAMED else None,
        "n_rows": [len(rows) for rows in known.rows],
        "classes": None if not known.blocks else [str(label) for label in known.classes],
    }


# ---- from the data


def likeness(found: Findings, data: Data) -> dict[str, Any]:
    """|Pearson correlation| between the top features, and the pairs that are nearly the same."""
    top = found.order[:LIKENED]
    names = [found.names[column] for column in top.tolist()]
    correlation = _correlations(found, data, top)
    pairs = zip(*np.triu_indices(len(top), k=1), strict=True)
    close = [
        {"first": names[first], "second": names[second], "correlation": float(correlation[first, second])}
        for first, second in pairs
        if correlation[first, second] >= ALIKE
    ]
    return {
        "features": names,
        "correlation": plain_numbers(correlation),
        "nearly_the_same": sorted(close, key=lambda pair: -pair["correlation"]),
        "limit": ALIKE,
    }


def _correlations(found: Findings, data: Data, columns: Columns) -> Floats:
    """|Pearson correlation| of columns; the numbers of a category mean nothing, and go with no others."""
    related = correlations(columns_of(data.X, columns))
    is_category = np.isin(columns, found.categorical)
    related[is_category], related[:, is_category] = 0.0, 0.0
    related[is_category, is_category] = 1.0
    return related


def accuracy_by_size(found: Findings, honest: size_curve.SizeCurve | None, data: Data | None) -> dict[str, Any]:
    """Cross-validated score of the best 1, 2, ... features, and the smallest number that is good enough.

    It is the curve that the run made itself, if it did, or the honest one. Other rankings were made on all rows, so
    that their scores are optimistic.
    """
    curve = getattr(found.selector, "size_curve_", None) or honest or _size_curve(found, data)
    return {
        "size": curve.sizes.tolist(),
        "score": plain_numbers(curve.mean),
        "std_error": plain_numbers(curve.std_error),
        "best": curve.best,
        "suggested": curve.suggested,
        "measure": curve.measure,
        "judge": curve.scored_by,
        "folds": len(curve.scores),
        "honest": curve.nested,
        "guess": curve.guess,
        "beats_guessing": curve.beats_guessing,
        "checked": None if curve.check is None else plain_numbers(curve.check.mean),
    }


def honest(found: Findings, data: Data) -> dict[str, Any]:
    """What the method reaches on rows kept apart, with all that is chosen chosen on the others."""
    if found.selector is None:
        raise Unknown("the method is run again for it: use rank --report, or report() of a fitted selector")
    if data.y is None:
        raise Unknown(NO_TARGET)
    if found.run is None and not _is_refitted(found, data):
        raise Unknown("it takes as long as five fits: honest_score() of the selector makes it")
    more = [name for name in getattr(found.selector, "fit_arguments_", []) if name not in data.of_rows]
    if more:
        raise Unknown(f"fit was given {' and '.join(more)}: give them here, too")
    try:
        is_quick = found.run is not None and found.run.ledger.seconds <= QUICK_SECONDS
        score = found.selector.honest_score(data.given, data.y, shuffled=is_quick, **data.of_rows)
    except ValueError as reason:
        raise Unknown(str(reason)) from None
    return {
        "score": score.mean,
        "std_error": score.std_error,
        "measure": score.curve.measure,
        "guess": score.guess,
        "beats_guessing": score.beats_guessing,
        "folds": len(score.scores),
        "shuffled": score.shuffled,
        "curve": score.curve,
    }


def _size_curve(found: Findings, data: Data | None) -> size_curve.SizeCurve:
    if data is None:
        raise Unknown(NEEDS_DATA)
    if data.target is None or data.y is None:
        raise Unknown(NO_TARGET)
    try:
        splits = size_curve.splits_for(size_curve.FOLDS, data.target)
    except size_curve.TooFewRows as reason:
        raise Unknown(str(reason)) from None
    if found.selector is None:
        sizes = size_curve.spaced_sizes(size_curve.ranks_known(found.ranking, found.scores))
        subsets, scoring = size_curve.up_to_rank(found.ranking, sizes.tolist()), found.settings.get("scoring")
    else:
        sizes = size_curve.as_sizes(found.selector)
        subsets, scoring = size_curve.chosen(found.selector, sizes.tolist()), getattr(found.selector, "scoring", None)
    matrix: tuple[Any, Subsets | None] = (data.X, None)
    if len(found.categorical):  # as the criterion saw them
        matrix = one_hot(data.X, np.isin(np.arange(data.X.shape[1]), found.categorical))
    scoring = None if scoring == "probability" else scoring  # people ask how many rows are right
    scorer = size_curve.SubsetScorer.like(found.criterion, data.X, data.target, scoring)
    return size_curve.curve_along(lambda _: subsets, matrix, data.y, data.target, sizes, splits, scorer, nested=False)


def _is_refitted(found: Findings, data: Data) -> bool:
    """Whether a filter is quick enough to be fitted anew in each fold."""
    if found.selector is None or isinstance(found.selector, WrapperSelector):
        return False
    return isinstance(found.selector, FSDD) or data.X.shape[0] * data.X.shape[1] <= REFITTED_CELLS


def alone(found: Findings, data: Data) -> dict[str, Any]:
    """The ranks of features scored one at a time (BIF, FSDD), which of the top only probes revealed, and the reverse.

    Those revealed are low by all such ranks, those outdone high by all and low here; and, where that is known, both
    stand out.
    """
    if data.target is None or data.y is None:
        raise Unknown(NO_TARGET)
    if len(columns_not_finite(data.X)):
        raise Unknown("values are missing")
    if len(found.categorical):
        raise Unknown("some columns are categories, which these methods do not know")
    ranks: dict[str, Columns] = {}
    words: dict[str, str] = {}
    criterion = _alone_criterion(found, data)
    if found.method != "BIF" and criterion is not None:
        n_jobs = getattr(found.selector, "n_jobs", None)
        cv = min(3, data.fewest_of_a_class) if data.is_classification else 3
        ranks["bif"] = BIF(criterion=criterion, cv=cv, n_jobs=n_jobs).fit(data.X, data.y).ranking_
        words["bif"] = f"BIF, {in_prose(criterion)} on each feature alone"
    if found.method != "FSDD" and data.is_classification:
        ranks["fsdd"] = FSDD().fit(data.X, data.y).ranking_
        words["fsdd"] = "FSDD, how far the classes lie apart in each feature alone"
    if not ranks:
        raise Unknown("the table is too large, or the run judged features alone itself")
    n_top = min(REVEALED, max(1, len(found.order) // 4))
    every, here = np.array(list(ranks.values())), np.argsort(found.order) + 1
    beyond_luck = np.ones(len(here), dtype=bool) if found.stands_out is None else found.stands_out
    revealed = (here <= n_top) & (every.min(axis=0) > 3 * n_top) & beyond_luck
    outdone = (here > 3 * n_top) & (every.max(axis=0) <= n_top) & beyond_luck

    def named(which: NDArray[np.bool_]) -> list[str]:
        return [found.names[column] for column in found.order[which[found.order]][:REVEALED_SHOWN].tolist()]

    return {
        "ranks": ranks,
        "words": words,
        "top": n_top,
        "shared": {name: int(((here <= n_top) & (rank <= n_top)).sum()) for name, rank in ranks.items()},
        "revealed": named(revealed),
        "n_revealed": int(revealed.sum()),
        "outdone": named(outdone),
        "n_outdone": int(outdone.sum()),
    }


def _alone_criterion(found: Findings, data: Data) -> Criterion | None:
    """The run's own where it is quick on single features, else a quick one; None where there is too much data."""
    rows, features = data.X.shape
    if rows * features > ALONE_CELLS or (data.is_classification and data.fewest_of_a_class < 2):
        return None
    own = found.criterion
    if isinstance(own, Linear | NaiveBayes) or (isinstance(own, KNN) and rows**2 * features <= ALONE_DISTANCES):
        return own
    return NaiveBayes() if data.is_classification else Linear(task="regression")
