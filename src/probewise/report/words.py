"""Numbers, names and sentences as readers of a report see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.run import Run
from .ranking_table import typeset_cell

SHOWN = 8


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def quoted(name: str, longest: int = 60) -> str:
    """The name on one line, cut short."""
    name = " ".join(name.split()) or "(blank)"
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def plain_numbers(values: Any) -> list[Any]:
    """An array as lists of Python's floats; what is not finite is None, since JSON has no word for it."""
    values = np.asarray(values, dtype=np.float64)
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return list(plain.tolist())


def number(value: float | None, decimals: int = 3) -> str:
    return typeset_cell("", value, decimals)


def count(amount: int, noun: str) -> str:
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def p_value(p: float | None) -> str:
    return "–" if p is None else "below 0.001" if p < 0.001 else f"{p:.3f}"


def evidence(kinds: list[str]) -> str:
    """What says that features stand in for one another."""
    words = {"probes": "by the probes", "columns": "by the columns", "both": "by the probes and the columns"}
    return words[kinds[0] if len(set(kinds)) == 1 else "both"]


def sentences_on_features(run: Run, names: Sequence[str]) -> list[str]:
    """What was asked about single features and what became of it, in sentences without their full stops."""
    record, sizes = run.settings, run.units.members.sizes
    n_groups, n_inside = int((sizes > 1).sum()), int(sizes[sizes > 1].sum())
    sentences = []
    if n_groups:
        sentences.append(f"{count(n_groups, 'group')}, of {n_inside:,} features in all, entered and left probes as one")
    sentences += _naming("In every probe, at the user's wish", run.units.kept, names)
    sentences += _naming("In no probe, at the user's wish", run.units.dropped, names)
    if record.categorical is not None:
        sentences += _naming("Categories, level by level", record.categorical, names)
    if record.uneven is not None:
        low, high = record.uneven
        sentences.append(
            f"Columns differ in width (deviations from {low:.3g} to {high:.3g}), and the criterion goes by distances, "
            "in which wide ones rule: scale='standard', or --scale standard, brings them to one width"
        )
    if record.scoring is not None and record.row_shares is None and record.univariate_p_values is not None:
        only = f"Only J is known, not what rows gave to it (it is scored by {record.scoring})"
        sentences.append(f"{only}: errors are about other probes, not about other rows")
    if run.row_effects is not None and record.univariate_p_values is None:
        sentences.append("Features were tested in company only: alone, a table that is not in memory is not tested")
    if run.in_rounds:
        n_units = _abridged([len(part.active) for part in run.plan.rounds])
        starts = _abridged([part.start for part in run.plan.rounds[1:]])
        in_rounds = f"Rounds among {n_units} features; features were dropped after {starts} probes"
        sentences.append(in_rounds if starts else f"One round, among {n_units}: nothing was left out so far")
    return sentences


def beyond_luck(n_standing_out: int, n_features: int, rate: float) -> str:
    """How many features stand out, in words."""
    at_rate = f"at a false-discovery rate of {rate:g}"
    if not n_standing_out:
        return f"Nothing here beats luck: none of the {n_features:,} features stands out, {at_rate}"
    stand = "feature stands" if n_standing_out == 1 else "features stand"
    return f"{n_standing_out:,} {stand} out beyond luck, on other rows as well ({at_rate})"


def _abridged(numbers: list[int]) -> str:
    """Numbers in a row; of many the first three and the last."""
    shown = [f"{number:,}" for number in numbers]
    return ", ".join(shown if len(shown) <= SHOWN else [*shown[:3], "…", shown[-1]])


def _naming(what: str, columns: NDArray[Any], names: Sequence[str]) -> list[str]:
    if not len(columns):
        return []
    shown = ", ".join(names[column] for column in columns[:SHOWN].tolist())
    more = f" and {len(columns) - SHOWN:,} more" if len(columns) > SHOWN else ""
    return [f"{what}: {shown}{more}"]
