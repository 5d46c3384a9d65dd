"""The top features of a fitted selector as a small HTML table, for a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

from .ranking_table import LABELS, columns_of_selector, decimals_of, typeset_cell
from .words import quoted

SHOWN = 10
COLUMNS = ("rank", "feature", "score", "std_error")


def top_features(selector: Any) -> str:
    """The best features with their scores, and the standard errors where there are any."""
    n_features = len(selector.ranking_)
    names = getattr(selector, "feature_names_in_", [f"x{column}" for column in range(n_features)])
    ranking = columns_of_selector(selector, names)
    columns = {name: ranking[name][:SHOWN] for name in COLUMNS if name in ranking}
    columns["feature"] = [quoted(str(name)) for name in columns["feature"]]
    decimals = decimals_of(columns)
    head = "".join(f'<th scope="col">{escape(LABELS[name])}</th>' for name in columns)
    rows = []
    for values in zip(*columns.values(), strict=True):
        cells = [escape(typeset_cell(name, value, decimals)) for name, value in zip(columns, values, strict=True)]
        rest = "".join(f"<td>{text}</td>" for text in cells[2:])
        rows.append(f'<tr><td>{cells[0]}</td><th scope="row">{cells[1]}</th>{rest}</tr>')
    caption = f"The top {len(rows)} of {n_features:,} features"
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
