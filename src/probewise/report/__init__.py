"""Reports: the summary of a run as one dict, rendered as HTML, Markdown or JSON."""

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

_MODULES = {"render_html": "html", "render_markdown": "markdown", "summarize": "summary"}
FORMATS = {".html": "render_html", ".htm": "render_html", ".md": "render_markdown", ".json": "render_json"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module 'probewise.report' has no attribute {name!r}")


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
    path.write_text(render(summary), encoding="utf-8", errors="backslashreplace", newline="\n")
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
