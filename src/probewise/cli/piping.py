"""Standard output in place of a file: the one thing that is printed there, so that it can be piped."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

STANDARD_OUTPUT = "standard output"


@contextmanager
def piped(given: Any, endings: Mapping[str, str]) -> Iterator[None]:
    """Where one of these options is -, its content is printed, and what is else for people goes to standard error."""
    asked = [name for name in endings if getattr(given, name) in (Path("-"), [Path("-")])]
    if not asked:
        yield
        return
    if len(asked) > 1:
        raise ValueError(f"{', '.join(f'--{name} -' for name in asked)}: one of them can be on standard output")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{STANDARD_OUTPUT}{endings[asked[0]]}"
        is_list = isinstance(getattr(given, asked[0]), list)
        setattr(given, asked[0], [path] if is_list else path)
        with redirect_stdout(io.StringIO() if getattr(given, "quiet", False) else sys.stderr):
            yield
        if path.exists():
            sys.stdout.write(path.read_text(encoding="utf-8"))


def place(path: Path) -> str:
    """The file in words."""
    return STANDARD_OUTPUT if path.stem == STANDARD_OUTPUT else str(path)
