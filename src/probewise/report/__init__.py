"""Reports: everything known about a run as one dict, and that dict as HTML, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..validation.parameters import writable_path

if TYPE_CHECKING:
    from .html import render_html as render_html
    from .markdown import render_markdown as render_markdown
    from .summary import summarize as summarize

__all__ = ["render_html", "render_json", "render_markdown", "require_report_path", "save", "summarize"]

_HOME = {"render_html": "html", "render_markdown": "markdown", "summarize": "summary"}
FORMATS = {".html": "render_html", ".htm": "render_html", ".md": "render_markdown", ".json": "render_json"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'probewise.report' has no attribute {name!r}")


def save(summary: dict[str, Any], path: str | PathLike[str]) -> Path:
    """Write a report.

    Parameters
    ----------
    summary : dict of str to object
        What `summarize` gave.
    path : path-like
        Its ending is the format: .html, .md or .json.

    Returns
    -------
    Path
        Of the file written.
    """
    path = require_report_path(path)
    name = FORMATS[path.suffix.lower()]
    render: Callable[[dict[str, Any]], str] = render_json if name == "render_json" else __getattr__(name)
    path.write_text(render(summary), encoding="utf-8", errors="backslashreplace", newline="\n")
    return path


def render_json(summary: dict[str, Any]) -> str:
    """What `summarize` gave as JSON, with all features, on one line."""
    return json.dumps(summary, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def require_report_path(path: str | PathLike[str]) -> Path:
    """The path, if `save` can write there: a known format whose libraries are installed, in a folder that exists."""
    path = writable_path(path, list(FORMATS), "a report cannot be written to {}: name it .html, .md or .json")
    if FORMATS[path.suffix.lower()] == "render_html":
        import_module(".html", __name__).require_libraries()
    return path
