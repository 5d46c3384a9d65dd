"""Two runs side by side: settings that differ, what their tops share, rank correlation, and J."""

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
SHOWN = 20
FINGERPRINTS = ("data", "target", "folds", "units", "protected", "sample_weight")
NOT_SETTINGS = ("feature_names", "stop_reason", "seconds")


def compare_runs(first: str | PathLike[str], second: str | PathLike[str], *, top: int = SHOWN) -> dict[str, Any]:
    """What differs between the runs in two ledgers, as a dict of JSON values.

    Features are matched by their names. The rank correlation is Spearman's, over the features that have a score in
    both runs.

    Parameters
    ----------
    first, second : path-like
        Ledgers of `DAF` or `Tournament`.
    top : int, default=20
        How many of the features that either run has on top are shown with both their ranks.

    Returns
    -------
    dict of str to object
        "settings" (name, first and second where they differ), "tops" (size, how many features are shared, and how many
        chance would share), "rank_correlation", "features" in both, "same_probes" and "same_results" (how many of the
        first probes have the same J), "J" and "top".
    """
    runs = [findings_of(path) for path in (first, second)]
    for path, run in zip((first, second), runs, strict=True):
        if run.run is None:
            raise ValueError(f"{path} holds no ledger: give files of rank --ledger or of DAF(ledger=...)")
    ledgers = [run.run.ledger for run in runs if run.run is not None]
    columns = _shared_columns(*runs)
    one, other = (rankdata(run.ranking[some], method="ordinal") for run, some in zip(runs, columns, strict=True))
    scored = np.isfinite(runs[0].scores[columns[0]]) & np.isfinite(runs[1].scores[columns[1]])
    correlation = spearmanr(one[scored], other[scored]).statistic if scored.sum() > 2 else np.nan
    return {
        "settings": _settings_that_differ(
            *({"method": run.method, **ledger.settings} for run, ledger in zip(runs, ledgers, strict=True))
        ),
        "features": len(one),
        "tops": [
            {"size": size, "shared": int(((one <= size) & (other <= size)).sum()), "by_chance": size**2 / len(one)}
            for size in TOPS
            if 2 * size <= len(one)
        ],
        "rank_correlation": float(correlation) if np.isfinite(correlation) else None,
        "J": [_results(ledger) for ledger in ledgers],
        "same_results": _same_results(*ledgers),
        "top": _top([runs[0].names[column] for column in columns[0]], one, other, top),
    }


def _shared_columns(first: Findings, second: Findings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The features of both, by name, as columns of each."""
    places = {name: column for column, name in enumerate(second.names)}
    pairs = [(column, places[name]) for column, name in enumerate(first.names) if name in places]
    if not pairs:
        raise ValueError("the two runs have no feature in common, by their names: they are of different tables")
    one, other = np.array(pairs, dtype=np.int64).T
    return one, other


def _settings_that_differ(one: dict[str, Any], other: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "first": _said(name, one.get(name)), "second": _said(name, other.get(name))}
        for name in dict.fromkeys([*one, *other])
        if name not in NOT_SETTINGS and one.get(name) != other.get(name)
    ]


def _said(name: str, value: Any) -> Any:
    """A setting for a reader: fingerprints are long, and tell only that they differ."""
    if value is not None and (name in FINGERPRINTS or (isinstance(value, list) and len(value) > SHOWN)):
        return f"{str(value)[:8]}…"
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _results(ledger: Ledger) -> dict[str, Any]:
    values = ledger.values()
    measures = {"mean": values.mean(), "deviation": values.std(), "least": values.min(), "largest": values.max()}
    known = {"probes": len(values), "seconds": ledger.seconds}
    return known | {name: float(value) for name, value in measures.items()}


def _same_results(first: Ledger, second: Ledger) -> int:
    """How many probes from the first on gave the same J, to the bit, in both."""
    shorter = min(first.n_probes, second.n_probes)
    differ = np.flatnonzero(first.values(0, shorter) != second.values(0, shorter))
    return int(differ[0]) if len(differ) else shorter


def _top(names: list[str], first: NDArray[np.int64], second: NDArray[np.int64], top: int) -> list[dict[str, Any]]:
    """The features on top of either run, by the better of their two ranks, with both."""
    order = np.lexsort((first + second, np.minimum(first, second)))[:top]
    return [{"feature": names[k], "first": int(first[k]), "second": int(second[k])} for k in order.tolist()]
