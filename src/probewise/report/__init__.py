"""Reports: the summary of a run as one dict, rendered as HTML, Markdown or JSON."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from .._selector import frame_library
from ..validation.parameters import check_parameter
from .findings import findings_of_selector
from .html import InlinePage, render_html
from .markdown import render_markdown
from .ranking_table import discoveries_of, ranking_columns
from .summary import render_json, require_report_path, save, summarize

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
LIBRARIES = ("pandas", "polars")


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
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(
            f"path is of type {type(path).__name__}: give a file name, write_report(selector, 'report.html')"
        )
    path = require_report_path(path)
    return save(summarize(selector, X, y, **options), path)


def show_report(selector: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
    """The report of a fitted selector as an object that a notebook displays; arguments as in `write_report`."""
    return InlinePage(render_html(summarize(selector, X, y, **options)))


def to_frame(selector: Any, backend: str | None = None, *, inference: bool = True) -> Any:
    """The ranking of a fitted selector as a data frame, best feature first.

    Parameters
    ----------
    selector : selector
        A fitted selector.
    backend : {"pandas", "polars"} or None, default=None
        The library; None: the one that ``set_output`` chose, else the one that is installed.
    inference : bool, default=True
        Whether to test the features of a `DAF` or `Tournament`, if that has not been done yet.

    Returns
    -------
    DataFrame
        Columns ``feature``, ``rank``, ``score`` and ``selected``; for methods that use probes also ``std_error``,
        ``above_average`` (the score minus the average score), ``probed`` (number of probes with the feature),
        and, for `DAF`, ``rank_low`` and ``rank_high`` (95% interval of the rank) and ``in_top`` (probability of being
        in the top), which describe other random probes of the same rows. ``related``, ``needed`` and their q-values
        say whether the feature is related to the target and needed given the others (`probewise.inference`).
    """
    findings = findings_of_selector(selector)
    check_parameter("backend", backend, *LIBRARIES, None)
    backend = backend or frame_library(selector)
    installed = [name for name in LIBRARIES if backend in (None, name) and find_spec(name) is not None]
    if not installed:
        needed = backend or "pandas or polars"
        raise ImportError(f"a data frame needs {needed}: pip install {backend or 'polars'}")
    columns = ranking_columns(findings, discoveries_of(selector) if inference else {}, certainty=True)
    columns["selected"] = selector.support_[findings.order]
    return import_module(installed[0]).DataFrame({"feature": columns["feature"], **columns})
