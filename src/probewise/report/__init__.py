"""Reports: the summary of a run as one dict, rendered as HTML, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..validation.parameters import completed_file, writable_path

if TYPE_CHECKING:
    from .html import render_html as render_html
    from .markdown import render_markdown as render_markdown
    from .summary import summarize as summarize

__all__ = [
    "render_html",
    "render_json",
    "render_markdown",
    "require_report_path",
    "save",
    "show_report",
    "summarize",
    "to_frame",
    "write_report",
]

_MODULES = {"render_html": "html", "render_markdown": "markdown", "summarize": "summary"}
FORMATS = {".html": "render_html", ".htm": "render_html", ".md": "render_markdown", ".json": "render_json"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module 'probewise.report' has no attribute {name!r}")


def write_report(selector: Any, path: str | PathLike[str], X: Any = None, y: Any = None, **options: Any) -> Path:
    """Write the report of a fitted selector.

    Parameters
    ----------
    selector : selector
        A fitted selector.
    path : path-like
        The file; its ending decides the format: .html, .md or .json.
    X, y : array-like or None, default=None
        The data of ``fit``: with them the report also shows the direction of effects, how many features are enough,
        which features are similar, and how they rank on their own.
    **options
        Further arguments of `summarize`, such as ``feature_names``, ``groups`` and ``sample_weight``.

    Returns
    -------
    Path
        The path of the file.
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(
            f"path is of type {type(path).__name__}: give a file name, write_report(selector, 'report.html')"
        )
    path = require_report_path(path)
    return save(__getattr__("summarize")(selector, X, y, **options), path)


def show_report(selector: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
    """The report of a fitted selector as an object that a notebook displays; arguments as in `write_report`."""
    html = import_module(".html", __name__)
    return html.InlinePage(html.render_html(__getattr__("summarize")(selector, X, y, **options)))


def to_frame(selector: Any, backend: str | None = None) -> Any:
    """The ranking of a fitted selector as a data frame, best feature first.

    Parameters
    ----------
    selector : selector
        A fitted selector.
    backend : {"pandas", "polars"} or None, default=None
        The library; None: the one that ``set_output`` chose, else the one that is installed.

    Returns
    -------
    DataFrame
        Columns ``feature``, ``rank``, ``score`` and ``selected``; for methods that use probes also ``std_error``,
        ``above_average`` (the score minus the average score), ``probed`` (number of probes with the feature),
        ``rank_low`` and ``rank_high`` (95% interval of the rank), ``in_top`` (probability of being in the true top),
        and ``p_value`` and ``stands_out`` where they are known.
    """
    return import_module(".ranking_table", __name__).frame_of(selector, backend)


def save(summary: dict[str, Any], path: str | PathLike[str]) -> Path:
    """Write a report.

    Parameters
    ----------
    summary : dict of str to object
        The result of `summarize`.
    path : path-like
        The file; its ending decides the format: .html, .md or .json.

    Returns
    -------
    Path
        The path of the file.
    """
    path = require_report_path(path)
    name = FORMATS[path.suffix.lower()]
    render: Callable[[dict[str, Any]], str] = render_json if name == "render_json" else __getattr__(name)
    text = render(summary)
    with completed_file(path) as file:
        file.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    return path


def render_json(summary: dict[str, Any]) -> str:
    """Render a summary as one line of JSON with all features."""
    return json.dumps(summary, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def require_report_path(path: str | PathLike[str]) -> Path:
    """Check that `save` can write to the path: known format, installed libraries, existing folder."""
    path = writable_path(path, list(FORMATS), "a report cannot be written to {}: name it .html, .md or .json")
    if FORMATS[path.suffix.lower()] == "render_html":
        import_module(".html", __name__).require_libraries()
    return path
