"""The ranking as one table: its columns, labels, rounding and words, for the terminal, files, notebooks and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..engine.settings import DEFAULT_FDR
from ..stopping import TopKConfidence, as_rule

if TYPE_CHECKING:
    from ..engine.run import Run

TOP = 20
ENDS = ("difference_low", "difference_high", "correlation_low", "correlation_high")
DECIMALS = {"in_top": 2, "p_value": 4, **dict.fromkeys(("difference", "correlation", "fold_change", *ENDS), 2)}
LABELS = {
    "rank": "rank",
    "feature": "feature",
    "score": "score",
    "above_average": "above average",
    "std_error": "std error",
    "rank_low": "95 % sure: from rank",
    "rank_high": "to rank",
    "in_top": "chance, top {top}",
    "probed": "probed",
    "p_value": "p",
    "kept": "kept",
    "left_in_round": "left after round",
    "stands_out": "stands out",
    "higher_in": "higher in",
    "lower_in": "lower in",
    "difference": "difference (SD)",
    "difference_low": "difference, from",
    "difference_high": "difference, to",
    "fold_change": "fold change",
    "correlation": "correlation",
    "correlation_low": "correlation, from",
    "correlation_high": "correlation, to",
}


def columns_of_selector(selector: Any, names: Sequence[str], *, certainty: bool = False) -> dict[str, Any]:
    """The whole ranking of a fitted selector as columns, best first, by the names of `LABELS`.

    What a method does not have is left out. ``certainty`` adds between which ranks a feature is, and its chance to be
    in the top, which takes a while for many features.
    """
    run = getattr(selector, "run_", None)
    columns = ranking_columns(
        selector.ranking_,
        selector.scores_,
        names,
        std_errors=getattr(selector, "std_errors_", None),
        run=run,
        p_values=getattr(selector, "p_values_", None),
        kept=selector.support_ if run is not None and selector.n_features_to_select == "auto" else None,
    )
    stands_out = None if run is None else run.stands_out(getattr(selector, "fdr", DEFAULT_FDR))
    if stands_out is not None:
        columns["stands_out"] = stands_out[np.argsort(selector.ranking_, kind="stable")]
    if certainty and run is not None:
        columns |= certainty_columns(
            run, selector.coefficient, selector.ranking_, watched_top(run, getattr(selector, "stop", None))
        )
    return columns


def ranking_columns(
    ranking: NDArray[np.int64],
    scores: NDArray[np.float64],
    names: Sequence[str],
    *,
    std_errors: NDArray[np.float64] | None = None,
    run: Run | None = None,
    p_values: NDArray[np.float64] | None = None,
    kept: NDArray[np.bool_] | None = None,
) -> dict[str, Any]:
    """The whole ranking as columns, best first; what is None is left out."""
    order = np.argsort(ranking, kind="stable")
    known = scores[np.isfinite(scores)]
    values = {
        "score": scores,
        "above_average": None if run is None or not len(known) else scores - known.mean(),
        "std_error": std_errors,
        "probed": None if run is None else run.feature_tally.counts,
        "p_value": p_values,
        "kept": kept,
    }
    columns: dict[str, Any] = {"rank": ranking[order], "feature": [names[column] for column in order.tolist()]}
    return columns | {name: column[order] for name, column in values.items() if column is not None}


def for_people(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns of a display: scores of a run are shown against the average feature, which has 0."""
    return {name: values for name, values in columns.items() if name != "score" or "above_average" not in columns}


def in_order(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns in the order of every display."""
    return {name: columns[name] for name in LABELS if name in columns}


def certainty_columns(run: Run, coefficient: str, ranking: NDArray[np.int64], top: int) -> dict[str, Any]:
    """Between which ranks each feature is, 95 % sure, and its chance to be in the top, best first.

    None or NaN for features that were not probed, or not to the end; nothing at all where the ranking is not by the
    coefficient alone.
    """
    certainty, order = run.certainty(coefficient, about_rows=True), np.argsort(ranking, kind="stable")
    if not certainty.is_of(ranking):
        return {}
    is_known = np.isfinite(certainty.coefficients[order])
    low, high = np.where(is_known, certainty.rank_intervals()[order].T, 0).tolist()
    ranks = {"rank_low": [rank or None for rank in low], "rank_high": [rank or None for rank in high]}
    return {**ranks, "in_top": np.where(is_known, certainty.in_top(top)[order], np.nan)}


def watched_top(run: Run, stop: Any = None) -> int:
    """The top that a chance to be in it is about.

    The smallest that the stopping rule watched, else 20, and at most a quarter of the features probed: two halves of
    a run always share most of few features.
    """
    watched = () if stop is None else as_rule(stop).watch
    tops = (item.top if isinstance(item, TopKConfidence) else item for item in watched if not isinstance(item, str))
    return min(min(tops, default=TOP), max(1, run.units.n_units // 4))


def decimals_of(columns: dict[str, Any]) -> int:
    """Decimals that show two digits of the usual standard error, or four of the usual score."""
    scores = columns["score"] if "score" in columns else columns.get("above_average", ())
    errors = columns["std_error"] if "std_error" in columns else np.asarray(scores, dtype=float) / 100
    errors = np.abs(np.asarray(errors, dtype=float))
    usable = errors[np.isfinite(errors) & (errors != 0)]
    return int(np.clip(1 - np.floor(np.log10(np.median(usable))), 3, 12)) if len(usable) else 3


def cell(name: str, value: Any, decimals: int, *, blank: str = "-") -> str:
    """A value of the column of that name in words; ``blank`` where there is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else ""
    if value is None or np.isnan(value):
        return blank
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if name == "p_value" and value < 0.0001:
        return "<0.0001"
    return f"{value:.{DECIMALS.get(name, decimals)}f}"


def typeset_cell(name: str, value: Any, decimals: int) -> str:
    """The same with a dash where there is none, and a true minus sign."""
    text = cell(name, value, decimals, blank="–")
    return text if isinstance(value, str) else text.replace("-", "−")
