"""For a notebook: the top features of a fitted selector as a small HTML table, and a whole report inline."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from .findings import checked_names
from .ranking_table import LABELS, columns_of_selector, decimals_of, for_people, typeset_cell
from .words import quoted

SHOWN = 10
COLUMNS = ("rank", "feature", "score", "above_average", "std_error")


@dataclass(frozen=True, repr=False)
class InlinePage:
    """A report that a notebook shows inline: a page of HTML with styles and scripts of its own."""

    html: str

    def __repr__(self) -> str:
        size = f"A report of {len(self.html) // 1000} kB"
        return f"{size}, which a notebook shows; report('report.html', X, y) writes a file"

    def _repr_html_(self) -> str:
        frame = 'title="Report" sandbox="allow-scripts allow-downloads" style="width: 100%; height: 50rem; border: 0"'
        return f'<iframe {frame} srcdoc="{escape(self.html)}"></iframe>'


def top_features(selector: Any) -> str:
    """The best features with their scores, and the standard errors where there are any."""
    n_features = len(selector.ranking_)
    names = checked_names(getattr(selector, "feature_names_in_", None), n_features)
    ranking = for_people(columns_of_selector(selector, names))
    columns = {name: ranking[name][:SHOWN] for name in COLUMNS if name in ranking}
    columns["feature"] = [quoted(name) for name in columns["feature"]]
    decimals = decimals_of(columns)
    head = "".join(f'<th scope="col">{escape(LABELS[name])}</th>' for name in columns)
    rows = []
    for values in zip(*columns.values(), strict=True):
        cells = [escape(typeset_cell(name, value, decimals)) for name, value in zip(columns, values, strict=True)]
        rest = "".join(f"<td>{text}</td>" for text in cells[2:])
        rows.append(f'<tr><td>{cells[0]}</td><th scope="row">{cells[1]}</th>{rest}</tr>')
    caption = f"The top {len(rows)} of {n_features:,} features"
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
