"""Comparison of two runs: settings that differ, shared top features, rank correlation, and J."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

from ..engine.ledger import Ledger
from .findings import Findings
from .summary import findings_of

TOPS = (5, 10, 20, 50, 100, 200)
N_SHOWN = 20
FINGERPRINTS = ("data", "target", "folds", "units", "protected", "sample_weight")
# Packed arrays and other values that follow from the settings above, or are shown elsewhere.
NOT_SETTINGS = (
    *("feature_names", "stop_reason", "seconds", "protected_units", "paired_units", "copied_units"),
    *("unit_members", "unit_sizes", "unit_always"),
    *("row_shares", "row_unit", "rows", "univariate_p_values", "uninformative", "uneven", "command"),
)
LONGEST = 60  # characters of a setting


def compare_runs(first: str | PathLike[str], second: str | PathLike[str], *, top: int = N_SHOWN) -> dict[str, Any]:
    """Compare the runs in two ledgers; returns a dict of JSON values.

    Features are matched by name. The rank correlation is Spearman's, over the features with a score in both runs.

    Parameters
    ----------
    first, second : path-like
        Ledgers of `DAF` or `Tournament`.
    top : int, default=20
        Number of features to show, from the top of either run, with both of their ranks.

    Returns
    -------
    dict of str to object
        "settings" (name, first and second value of those that differ), "tops" (size, number of shared features, and
        the number expected by chance), "rank_correlation", "features" (number in both), "same_results" (how many of
        the first probes have the same J), "J" and "top".
    """
    runs = [findings_of(path) for path in (first, second)]
    for path, findings in zip((first, second), runs, strict=True):
        if findings.run is None:
            raise ValueError(f"{path} is not the ledger of a run: give files of DAF or Tournament with ledger=...")
    ledgers = [findings.run.ledger for findings in runs if findings.run is not None]
    columns = _shared_columns(*runs)
    ranks = [rankdata(run.ranking[numbers], method="ordinal") for run, numbers in zip(runs, columns, strict=True)]
    scored = np.isfinite(runs[0].scores[columns[0]]) & np.isfinite(runs[1].scores[columns[1]])
    correlation = spearmanr(ranks[0][scored], ranks[1][scored]).statistic if scored.sum() > 2 else np.nan
    settings = [{"method": run.method, **ledger.settings} for run, ledger in zip(runs, ledgers, strict=True)]
    names, n_shared = runs[0].names_of(columns[0]), len(ranks[0])
    return {
        "settings": _different_settings(*settings),
        "features": n_shared,
        "tops": [
            {
                "size": size,
                "shared": int(((ranks[0] <= size) & (ranks[1] <= size)).sum()),
                "by_chance": size**2 / n_shared,
            }
            for size in TOPS
            if 2 * size <= n_shared
        ],
        "rank_correlation": float(correlation) if np.isfinite(correlation) else None,
        "J": [_statistics_of_J(ledger) for ledger in ledgers],
        "same_results": _n_same_results(*ledgers),
        "top": [
            {"feature": names[feature], "first": int(ranks[0][feature]), "second": int(ranks[1][feature])}
            for feature in np.lexsort((ranks[0] + ranks[1], np.minimum(*ranks)))[:top].tolist()
        ],
    }


def _shared_columns(first: Findings, second: Findings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The features with the same name in both runs, as columns of each."""
    column_of = {name: column for column, name in enumerate(second.names)}
    pairs = [(column, column_of[name]) for column, name in enumerate(first.names) if name in column_of]
    if not pairs:
        raise ValueError("the two runs have no feature names in common: they used different tables")
    one, other = np.array(pairs, dtype=np.int64).T
    return one, other


def _different_settings(one: dict[str, Any], other: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "first": _shown(name, one.get(name)), "second": _shown(name, other.get(name))}
        for name in dict.fromkeys([*one, *other])
        if name not in NOT_SETTINGS and one.get(name) != other.get(name)
    ]


def _shown(name: str, value: Any) -> Any:
    """A setting as a reader sees it; fingerprints and long values are truncated."""
    if value is None or isinstance(value, bool | int | float):
        return value
    longest = 8 if name in FINGERPRINTS else LONGEST
    return str(value) if len(str(value)) <= longest else f"{str(value)[:longest]}…"


def _statistics_of_J(ledger: Ledger) -> dict[str, Any]:
    J = ledger.values()
    statistics = {"mean": J.mean(), "std": J.std(), "min": J.min(), "max": J.max()}
    numbers = {name: float(value) for name, value in statistics.items()}
    return {"probes": len(J), "seconds": ledger.seconds, **numbers}


def _n_same_results(first: Ledger, second: Ledger) -> int:
    """Number of probes, counted from the first, with bitwise the same J in both runs."""
    n_common = min(first.n_probes, second.n_probes)
    differ = np.flatnonzero(first.values(0, n_common) != second.values(0, n_common))
    return int(differ[0]) if len(differ) else n_common
