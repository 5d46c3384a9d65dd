"""Paths of files to be written."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path


def writable_path(
    path: str | PathLike[str],
    formats: Sequence[str],
    refusal: str = "{} has no format that can be written: name it {}",
    error: type[ValueError] = ValueError,
) -> Path:
    """The path, if it ends in one of the formats, is no folder, and its folder exists."""
    path = Path(path)
    if path.suffix.lower() not in formats:
        raise error(refusal.format(path, choice(formats)))
    if not path.parent.is_dir():
        raise error(f"{path} cannot be written: the folder {path.parent} does not exist")
    if path.is_dir():
        raise error(f"{path} cannot be written: it is a folder")
    return path


def choice(items: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(items[:-1]), items[-1])))
