"""A summary as one self-contained page: a jinja2 template, plotly.js, and a small script and style of our own."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import import_module
from pathlib import Path
from typing import Any

from ..probing.interactions import IN_WORDS
from .ranking_table import decimals_of, typeset_cell
from .words import count, evidence, number, p_value, percent, quoted, span

TEMPLATES = Path(__file__).parent / "templates"
ROWS_SHOWN = 25
DRAWN = ("sizes", "convergence", "alone", "likeness", "interactions", "study")


def render_html(summary: dict[str, Any]) -> str:
    """The report as one HTML file that needs nothing else: no network, no other file.

    Parameters
    ----------
    summary : dict of str to object
        What `summarize` gave.

    Returns
    -------
    page : str
        With plotly.js inside it, about 5 MB.
    """
    jinja2, offline = require_libraries()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"percent": percent, "number": number, "count": count, "quoted": quoted, "span": span}
    environment.filters |= {"evidence": evidence, "p_value": p_value, "kind": IN_WORDS.get, "cell": typeset_cell}
    scripts = [_one_line_ends(offline.get_plotlyjs()), (TEMPLATES / "report.js").read_text(encoding="utf-8")]
    trusted = jinja2.utils.markupsafe.Markup
    page: str = environment.get_template("report.html").render(
        summary,
        scripts=[trusted(script) for script in scripts],
        hashes=[_hash(script) for script in scripts],
        style=trusted((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        embedded=trusted(_embedded(summary)),
        decimals=decimals_of(summary["ranking"]["columns"]),
        rows_shown=ROWS_SHOWN,
    )
    return page


def require_libraries() -> tuple[Any, Any]:
    """jinja2 and plotly's offline part, loaded when a page is made; one sentence where they are missing."""
    try:
        return import_module("jinja2"), import_module("plotly.offline")
    except ModuleNotFoundError as error:
        name = (error.name or "jinja2").split(".")[0]
        raise ImportError(
            f"an HTML report needs {name}, of the report extra: pip install 'probewise[report]'"
        ) from None


def _one_line_ends(script: str) -> str:
    """What a browser makes of it, so that the hash is the same."""
    return script.replace("\r\n", "\n").replace("\r", "\n")


def _hash(script: str) -> str:
    """For the content security policy: only these two scripts may run, whatever a column is called."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _embedded(summary: dict[str, Any]) -> str:
    """What the script draws, as JSON that cannot end its element."""
    ranking = summary["ranking"]
    columns = {name: [_short(value) for value in values] for name, values in ranking["columns"].items()}
    drawn = {
        **{name: summary[name] for name in DRAWN},
        "ranking": {
            "columns": columns,
            "labels": ranking["labels"],
            "decimals": decimals_of(ranking["columns"]),
            "wholeNumbers": [name for name in columns if not any(isinstance(value, float) for value in columns[name])],
        },
        "rows_shown": ROWS_SHOWN,
    }
    text = json.dumps(drawn, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _short(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return float(f"{value:.5g}") if isinstance(value, float) else value
