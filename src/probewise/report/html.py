"""HTML: the report as one self-contained page, inline in a notebook, and the table of top features in a notebook."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..display import span
from .findings import findings_of_selector
from .ranking_table import (
    DECIMALS,
    INTERVAL_ENDS,
    LABELS,
    decimals_of,
    direction_in_words,
    display_columns,
    ranking_columns,
    typeset_cell,
)
from .sentences import (
    adjustment_sentence,
    cluster_notes,
    count,
    inference_words,
    number,
    one_line,
    pair_sentence,
    percent,
    predicts,
    selection_sentence,
    standing_for,
    survival_sentence,
)

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("charts.js", "plots.js", "table.js", "page.js")
N_ROWS, N_DRAWN, N_DIRECTIONS, N_TOP_FEATURES = 25, 30, 200, 10
DRAWN_SECTIONS = ["values", "sizes", "survival", "convergence", "univariate", "redundancy", "interactions", "study"]
FIRST_COLUMNS = (
    *("rank", "feature", "score", "above_average", "std_error", "related", "needed", "higher_in", "lower_in"),
    *("difference", "fold_change", "correlation", "hazard_ratio"),
)
NOTEBOOK_COLUMNS = ("rank", "feature", "score", "above_average", "std_error")


def render_html(summary: dict[str, Any]) -> str:
    """Render the result of `summarize` as one HTML file that needs no network and no other file.

    It has less than 200 kB for a few hundred features.
    """
    jinja2 = require_libraries()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"percent": percent, "number": number, "count": count, "one_line": one_line, "span": span}
    environment.filters |= {"pair": pair_sentence, "selection": selection_sentence, "standing_for": standing_for}
    environment.filters["cell"] = typeset_cell
    unescaped = jinja2.utils.markupsafe.Markup
    columns, labels = summary["ranking"]["columns"], summary["ranking"]["labels"]
    script = '"use strict";\n(() => {\n' + "\n".join(map(_template, SCRIPTS)) + "})();\n"
    page: str = environment.get_template("report.html").render(
        summary,
        style=unescaped(_template("report.css")),
        script=unescaped(script),
        # for the content security policy: only this script may run, whatever a feature is called
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        embedded=unescaped(_embedded_json(summary)),
        direction=partial(direction_in_words, columns),
        decimals=decimals_of(columns),
        shown=_shown_columns(labels),
        rows_shown=N_ROWS,
        predicts=predicts(summary),
        cluster_notes=cluster_notes(summary["inference"]) if summary["inference"] else [],
        inference_words=inference_words(summary),
        adjustment_words=adjustment_sentence(summary) if summary["adjustment"] else "",
        survival_words=survival_sentence(summary["survival"]) if summary["survival"] else "",
    )
    return page


def require_libraries() -> Any:
    """Import jinja2; an error with the install command if it is missing."""
    try:
        return import_module("jinja2")
    except ModuleNotFoundError:
        raise ImportError("an HTML report needs jinja2: pip install 'probewise[report]'") from None


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _shown_columns(labels: dict[str, str]) -> dict[str, str]:
    """Columns of the table and their headings; the ends of intervals are shown next to the value or on hover."""
    first = [name for name in FIRST_COLUMNS if name in labels]
    names = [*first, *(name for name in labels if name not in (*first, "rank_high", *INTERVAL_ENDS))]
    names = [name for name in names if name not in ("related", "needed", "unadjusted")]  # the q-values say so
    shown = display_columns({name: labels[name] for name in names})
    if "rank_low" in shown:
        shown["rank_low"] = "rank (95% CI)"
    return shown


def _embedded_json(summary: dict[str, Any]) -> str:
    """The values that the script draws, as JSON that cannot close its script element."""
    ranking, labels = summary["ranking"], summary["ranking"]["labels"]
    columns = {name: [_rounded(value) for value in values] for name, values in ranking["columns"].items()}
    decimals = decimals_of(ranking["columns"])
    scores = [score for score in ranking["columns"]["score"][:N_DRAWN] if score is not None]
    n_directions = min(N_DIRECTIONS, len(columns["feature"]))
    embedded = {
        **{name: summary[name] for name in DRAWN_SECTIONS},
        "directions": [direction_in_words(ranking["columns"], row, one_line) for row in range(n_directions)],
        "ranking": {
            "columns": columns,
            "labels": labels,
            "shown": list(_shown_columns(labels)),
            "measure": "above_average" if "above_average" in columns else "score",
            "by_score": "std_error" in columns or all(one >= other for one, other in pairwise(scores)),
            "decimals": {name: DECIMALS.get(name, decimals) for name in columns},
            "integers": [name for name in columns if not any(isinstance(value, float) for value in columns[name])],
        },
        "rows_shown": N_ROWS,
        "predicts": predicts(summary),
    }
    text = json.dumps(embedded, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _rounded(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return float(f"{value:.5g}") if isinstance(value, float) else value


# ---- notebooks


@dataclass(frozen=True, repr=False)
class InlinePage:
    """A report that a notebook shows inline."""

    html: str

    def __repr__(self) -> str:
        size = f"A report of {len(self.html) // 1000} kB"
        return f"{size} that a notebook shows inline; write_report(selector, 'report.html', X, y) writes a file"

    def _repr_html_(self) -> str:
        frame = 'title="Report" sandbox="allow-scripts allow-downloads" style="width: 100%; height: 50rem; border: 0"'
        return f'<iframe {frame} srcdoc="{escape(self.html)}"></iframe>'


def top_features_table(selector: Any) -> str:
    """HTML table of the best features with their scores and, where known, standard errors."""
    ranking = display_columns(ranking_columns(findings_of_selector(selector), {}))
    columns = {name: ranking[name][:N_TOP_FEATURES] for name in NOTEBOOK_COLUMNS if name in ranking}
    columns["feature"] = [one_line(name) for name in columns["feature"]]
    decimals = decimals_of(columns)
    head = "".join(f'<th scope="col">{escape(LABELS[name])}</th>' for name in columns)
    rows = []
    for values in zip(*columns.values(), strict=True):
        cells = [escape(typeset_cell(name, value, decimals)) for name, value in zip(columns, values, strict=True)]
        rest = "".join(f"<td>{text}</td>" for text in cells[2:])
        rows.append(f'<tr><td>{cells[0]}</td><th scope="row">{cells[1]}</th>{rest}</tr>')
    caption = f"Top {len(rows)} of {len(ranking['feature']):,} features"
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
