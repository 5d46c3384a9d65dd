"""The ranking as a table: columns, labels and cell texts for the terminal, files, notebooks and reports."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._selector import frame_library
from ..engine.settings import DEFAULT_FDR
from ..stopping import TopKConfidence, as_rule
from ..validation.parameters import check_parameter

if TYPE_CHECKING:
    from ..engine.run import Run

TOP = 20
LIBRARIES = ("pandas", "polars")
INTERVAL_ENDS = ("difference_low", "difference_high", "correlation_low", "correlation_high")
DECIMALS = {"in_top": 2, "p_value": 4, **dict.fromkeys(("difference", "correlation", "fold_change", *INTERVAL_ENDS), 2)}
LABELS = {
    "rank": "rank",
    "feature": "feature",
    "score": "score",
    "above_average": "above average",
    "std_error": "std error",
    "probed": "probed",
    "p_value": "p-value",
    "selected": "selected",
    "dropped_in_round": "dropped in round",
    "stands_out": "stands out",
    "rank_low": "rank, 95% CI: from",
    "rank_high": "to",
    "in_top": "probability of top {top}",
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
    """Columns of the ranking of a fitted selector, as in `ranking_columns`.

    ``certainty=True`` adds the rank intervals and the probability of being in the top, which takes a while for many
    features.
    """
    run = getattr(selector, "run_", None)
    columns = ranking_columns(
        selector.ranking_,
        selector.scores_,
        names,
        std_errors=getattr(selector, "std_errors_", None),
        run=run,
        fdr=getattr(selector, "fdr", DEFAULT_FDR),
        top=top_size(run, getattr(selector, "stop", None)) if certainty and run is not None else None,
    )
    if run is not None and isinstance(selector.n_features_to_select, str):
        columns["selected"] = selector.support_[np.argsort(selector.ranking_, kind="stable")]
    return in_label_order(columns)


def frame_of(selector: Any, backend: str | None) -> Any:
    """The ranking as a data frame of this library; None: the library of ``set_output``, else an installed one."""
    check_is_fitted(selector, "ranking_")
    check_parameter("backend", backend, *LIBRARIES, None)
    backend = backend or frame_library(selector)
    installed = [name for name in LIBRARIES if backend in (None, name) and find_spec(name) is not None]
    if not installed:
        needed = backend or "pandas or polars"
        raise ImportError(f"a data frame needs {needed}: pip install {backend or 'polars'}")
    columns = columns_of_selector(selector, selector._names(np.arange(len(selector.ranking_))), certainty=True)
    columns["selected"] = selector.support_[np.argsort(selector.ranking_, kind="stable")]
    return import_module(installed[0]).DataFrame({"feature": columns["feature"], **columns})


def ranking_columns(
    ranking: NDArray[np.int64],
    scores: NDArray[np.float64],
    names: Sequence[str],
    *,
    std_errors: NDArray[np.float64] | None = None,
    run: Run | None = None,
    fdr: float = DEFAULT_FDR,
    top: int | None = None,
) -> dict[str, Any]:
    """Columns of a ranking, best feature first, with the keys of `LABELS`; columns that are not known are left out."""
    order = np.argsort(ranking, kind="stable")
    values: dict[str, Any] = {"score": scores}
    if std_errors is not None:  # a dropped feature has no score and thus no error
        values["std_error"] = np.where(np.isnan(scores), np.nan, std_errors)
    columns: dict[str, Any] = {"rank": ranking[order], "feature": [names[column] for column in order.tolist()]}
    if run is not None:
        coefficients = run.coefficient()[0]
        values |= {
            "above_average": scores - np.nanmean(coefficients) if np.isfinite(scores).any() else None,
            "probed": run.feature_tally.counts,
            "p_value": run.p_values(),
            "stands_out": run.stands_out(fdr),
        }
        columns |= {} if top is None else _certainty_columns(run, ranking, top)
        if run.in_rounds:
            columns["dropped_in_round"] = [number or None for number in run.dropped_in_round()[order].tolist()]
    return columns | {name: column[order] for name, column in values.items() if column is not None}


def display_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns without the score where the score above average is there: it is easier to read."""
    return {name: values for name, values in columns.items() if name != "score" or "above_average" not in columns}


def in_label_order(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: columns[name] for name in LABELS if name in columns}


def _certainty_columns(run: Run, ranking: NDArray[np.int64], top: int) -> dict[str, Any]:
    """The 95% interval of each feature's rank and its probability of being in the top, best feature first.

    None or NaN for features that were not probed up to the last round. No columns at all if the ranking is not the
    order of the coefficient, for example with groups of features.
    """
    certainty, order = run.certainty(), np.argsort(ranking, kind="stable")
    if not certainty.is_of(ranking):
        return {}
    is_known = np.isfinite(certainty.coefficients[order])
    low, high = np.where(is_known, certainty.rank_intervals()[order].T, 0).tolist()
    ranks = {"rank_low": [rank or None for rank in low], "rank_high": [rank or None for rank in high]}
    return {**ranks, "in_top": np.where(is_known, certainty.in_top(top)[order], np.nan)}


def top_size(run: Run, stop: Any = None) -> int:
    """Number of features in the top that the rank certainty and the convergence refer to.

    It is the smallest top that the stopping rule watches, 20 by default, and at most a quarter of the features in the
    last round: two rankings of a few features always share most of a larger top.
    """
    watched = () if stop is None else as_rule(stop).watch
    tops = (item.top if isinstance(item, TopKConfidence) else item for item in watched if not isinstance(item, str))
    return min(min(tops, default=TOP), max(1, len(run.plan.rounds[-1].active) // 4))


# ---- values as text and as JSON


def decimals_of(columns: dict[str, Any]) -> int:
    """Number of decimals that shows two digits of the median standard error, or four of the median score."""
    scores = columns["score"] if "score" in columns else columns.get("above_average", ())
    errors = columns["std_error"] if "std_error" in columns else np.asarray(scores, dtype=float) / 100
    errors = np.abs(np.asarray(errors, dtype=float))
    usable = errors[np.isfinite(errors) & (errors != 0)]
    return int(np.clip(1 - np.floor(np.log10(np.median(usable))), 3, 12)) if len(usable) else 3


def cell(name: str, value: Any, decimals: int, *, blank: str = "-") -> str:
    """Text of a value in the column with this name; ``blank`` if the value is missing."""
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
    """Text of a cell with a dash for a missing value and a typographic minus sign."""
    text = cell(name, value, decimals, blank="–")
    return text if isinstance(value, str) else text.replace("-", "−")


def json_numbers(values: Any) -> list[Any]:
    """An array as nested lists of floats, with None in place of values that are not finite."""
    values = np.asarray(values, dtype=np.float64)
    numbers = values.astype(object)
    numbers[~np.isfinite(values)] = None
    return list(numbers.tolist())
