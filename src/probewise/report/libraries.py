"""jinja2 and plotly, loaded when a page is made; one sentence where they are missing."""

from importlib import import_module
from typing import Any


def require_libraries() -> tuple[Any, Any]:
    """jinja2 and plotly's offline part."""
    try:
        return import_module("jinja2"), import_module("plotly.offline")
    except ModuleNotFoundError as error:
        name = (error.name or "jinja2").split(".")[0]
        raise ImportError(
            f"an HTML report needs {name}, of the report extra: pip install 'probewise[report]'"
        ) from None
