"""ARFF files; nominal values stay text.

scipy.io.arff reads neither text attributes nor compressed files.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

from .input_files import lines_of
from .table import Progress, TableError
from .text import TextOptions, TextSource, add_lines, empty_source

ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.+)""", re.IGNORECASE)


def read_arff(path: Path, options: TextOptions, progress: Progress | None) -> TextSource:
    attributes: list[tuple[str, str]] = []
    with lines_of(path, progress) as lines:
        content = (line for line in lines if line.strip() and not line.lstrip().startswith("%"))
        for line in content:
            if line.lower().lstrip().startswith("@data"):
                break
            if line.lower().lstrip().startswith("@attribute"):
                attributes.append(_attribute(path, line.strip()))
        else:
            raise TableError(f"{path} cannot be read as ARFF: it has no line @data")
        first = next(content, "")
        quote = "'" if any("'" in text for text in (first, *(kind for _, kind in attributes))) else '"'
        if first.lstrip().startswith("{"):
            raise TableError(f"{path} is an ARFF file with sparse rows, which are not read: save it as svmlight")
        source = empty_source(path, [name for name, _ in attributes], options)
        add_lines(source, chain([first], content), ",", quote=quote, escape="\\")
    return source


def _attribute(path: Path, line: str) -> tuple[str, str]:
    """Name and type of an attribute."""
    match = ATTRIBUTE.match(line)
    if match is None or match[2].lower().startswith("relational"):
        raise TableError(f"{path} cannot be read as ARFF: {line!r}")
    name = match[1]
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] in "'\"" else name, match[2].strip()
