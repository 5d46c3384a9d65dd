"""The top features of a fitted selector as a small HTML table, for a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from .words import decimals_of, number, quoted

SHOWN = 10


def top_features(selector: Any) -> str:
    """The best features with their scores, and the standard errors where there are any."""
    order = np.argsort(selector.ranking_, kind="stable")[:SHOWN]
    names = getattr(selector, "feature_names_in_", None)
    shown: dict[str, list[Any]] = {"score": [None if np.isnan(score) else score for score in selector.scores_[order]]}
    errors = getattr(selector, "std_errors_", None)
    if errors is not None:
        shown["std_error"] = [None if np.isnan(error) else error for error in errors[order]]
    decimals = decimals_of(shown)
    head = "".join(
        f'<th scope="col">{escape(title)}</th>' for title in ("rank", "feature", "score", "std error")[: len(shown) + 2]
    )
    rows = []
    for place, column in enumerate(order.tolist()):
        name = f"x{column}" if names is None else quoted(str(names[column]))
        cells = "".join(f"<td>{number(values[place], decimals)}</td>" for values in shown.values())
        rows.append(f'<tr><td>{selector.ranking_[column]}</td><th scope="row">{escape(name)}</th>{cells}</tr>')
    caption = f"The top {len(rows)} of {len(selector.ranking_):,} features"
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
