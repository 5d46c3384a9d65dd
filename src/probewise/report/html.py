"""A summary as one self-contained page: a jinja2 template, with a script and a style of our own."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..engine.interactions import IN_WORDS
from ..engine.progress import span
from .direction import in_words
from .ranking_table import DECIMALS, ENDS, decimals_of, for_people, typeset_cell
from .verdict import predicts
from .words import count, evidence, number, p_value, percent, quoted

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("charts.js", "plots.js", "table.js", "page.js")
ROWS_SHOWN, DRAWN_FEATURES, TOLD = 25, 30, 200
DRAWN = ("values", "sizes", "convergence", "alone", "likeness", "interactions", "which_rows", "study")
FIRST = "rank feature score above_average std_error stands_out higher_in lower_in difference fold_change correlation"
ON_HOVER = ("rank_high", *ENDS)


def render_html(summary: dict[str, Any]) -> str:
    """The report as one HTML file that needs nothing else: no network, no other file.

    Parameters
    ----------
    summary : dict of str to object
        What `summarize` gave.

    Returns
    -------
    page : str
        Below 200 kB for a few hundred features.
    """
    environment = page_environment()
    trusted = environment.filters["trusted"]
    environment.globals["way"] = partial(in_words, summary["ranking"]["columns"])
    parts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"
    page: str = environment.get_template("report.html").render(
        summary,
        script=trusted(script),
        hash=_hash(script),
        embedded=trusted(_embedded(summary)),
        decimals=decimals_of(summary["ranking"]["columns"]),
        shown=_shown(summary["ranking"]["labels"]),
        rows_shown=ROWS_SHOWN,
        predicts=predicts(summary),
    )
    return page


def page_environment() -> Any:
    """jinja2's, with our filters and the style of our pages; "trusted" text is not escaped."""
    jinja2 = require_libraries()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"percent": percent, "number": number, "count": count, "quoted": quoted, "span": span}
    environment.filters |= {"evidence": evidence, "p_value": p_value, "kind": IN_WORDS.get, "cell": typeset_cell}
    trusted = environment.filters["trusted"] = jinja2.utils.markupsafe.Markup
    environment.globals["style"] = trusted((TEMPLATES / "report.css").read_text(encoding="utf-8"))
    return environment


def require_libraries() -> Any:
    """jinja2, loaded when a page is made; one sentence where it is missing."""
    try:
        return import_module("jinja2")
    except ModuleNotFoundError:
        raise ImportError("an HTML report needs jinja2, of the report extra: pip install 'probewise[report]'") from None


def _shown(labels: dict[str, str]) -> dict[str, str]:
    """The columns of the table and their heads; ends of intervals are shown beside the other end, or on hover."""
    first = [name for name in FIRST.split() if name in labels]
    names = [*first, *(name for name in labels if name not in (*first, *ON_HOVER))]
    shown = for_people({name: labels[name] for name in names})
    if "rank_low" in shown:
        shown["rank_low"] = "95 % sure: rank"
    return shown


def _hash(script: str) -> str:
    """For the content security policy: only this script may run, whatever a column is called."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _embedded(summary: dict[str, Any]) -> str:
    """What the script draws, as JSON that cannot end its element."""
    ranking, labels = summary["ranking"], summary["ranking"]["labels"]
    columns = {name: [_short(value) for value in values] for name, values in ranking["columns"].items()}
    usual, scores = decimals_of(ranking["columns"]), ranking["columns"]["score"][:DRAWN_FEATURES]
    known = [score for score in scores if score is not None]
    drawn = {
        **{name: summary[name] for name in DRAWN},
        "ways": [in_words(ranking["columns"], place, quoted) for place in range(min(TOLD, len(columns["feature"])))],
        "ranking": {
            "columns": columns,
            "labels": labels,
            "shown": list(_shown(labels)),
            "measure": "above_average" if "above_average" in columns else "score",
            "by_score": "std_error" in columns or all(one >= other for one, other in pairwise(known)),
            "decimals": {name: DECIMALS.get(name, usual) for name in columns},
            "wholeNumbers": [name for name in columns if not any(isinstance(value, float) for value in columns[name])],
        },
        "rows_shown": ROWS_SHOWN,
        "predicts": predicts(summary),
    }
    text = json.dumps(drawn, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _short(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return float(f"{value:.5g}") if isinstance(value, float) else value
