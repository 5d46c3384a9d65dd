"""Lines of text, from files that may be packed and from standard input; an address is refused with how to fetch it."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import shlex
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

from .table import Progress, TableError, pl

CHARACTERS_AT_A_TIME = 2**24
QUIET_SECONDS = 1.0  # of reading before progress is shown
LONGEST_LINE = 2**28
STANDARD_INPUT = Path("standard input")
UNPACKED_BY: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
PACKED = (*UNPACKED_BY, ".zst")
BEGINS = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ", ".zst": b"\x28\xb5\x2f\xfd"}
DAMAGED = (zlib.error, lzma.LZMAError, EOFError, OSError)  # gzip's and bz2's have no number
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://|(https?|ftp|s3|gs):/", re.IGNORECASE)
FETCHED = ("http", "ftp")


def local_path(path: str | PathLike[str]) -> Path:
    """The path of a table to be read: - is standard input, and an address is none."""
    text = str(path)
    if ADDRESS.match(text):
        name = re.split(r"[?#]", text)[0].rstrip("/").rpartition("/")[2]
        fetch = f" (curl -L -o {shlex.quote(name)} {shlex.quote(text)})" if text.lower().startswith(FETCHED) else ""
        raise TableError(f"{text} is an address: download it{fetch}, and give the file")
    return STANDARD_INPUT if text == "-" else Path(path)


@contextmanager
def lines_of(path: Path, progress: Progress | None = None) -> Iterator[Iterator[str]]:
    """The lines of a text file, unpacked; a `TableError` where it is no text or damaged."""
    try:
        if path.suffix.lower() == ".zst":
            yield _unpacked_by_polars(path)
            return
        opened: Any = nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else path.open("rb")
        with opened as raw:
            packed = _unpacked(raw, path)
            encoding = "utf-16" if packed.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            text = io.TextIOWrapper(packed, encoding=encoding, newline="")
            try:
                lines = _of_bounded_length(text, path)
                is_timed = progress is not None and path != STANDARD_INPUT
                yield _with_progress(lines, raw.tell, path, progress) if is_timed and progress else lines
            finally:
                text.detach()  # or it would close standard input
    except UnicodeError as error:
        raise TableError(f"{path} is no text in UTF-8 ({_where(error)}): save it as UTF-8") from error
    except DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise TableError(f"{path} cannot be unpacked ({error}): is the file whole?") from error
    except csv.Error as error:
        raise TableError(f"{path} cannot be read as separated text ({error}): is a quote left open?") from error


def _unpacked(raw: Any, path: Path) -> Any:
    """By the ending of the name or, of standard input, by its first bytes."""
    kind = path.suffix.lower()
    if path == STANDARD_INPUT:
        start = raw.peek(6)
        kind = next((kind for kind, begin in BEGINS.items() if start.startswith(begin)), "")
        if kind == ".zst":
            raise TableError(f"{path} is packed (zst): unpack it on the way, as in zstd -dc FILE | probewise rank -")
    return UNPACKED_BY[kind](raw) if kind in UNPACKED_BY else raw


def _of_bounded_length(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    """The lines; one that does not end, such as in a file of zeros that was packed, is not read to its end."""
    while line := text.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith(("\n", "\r")):
            raise TableError(f"{path} has a line of more than {LONGEST_LINE:,} characters: is it a table in text?")
        yield line


def _unpacked_by_polars(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        if (start := file.read(4)) and start != BEGINS[".zst"]:
            raise TableError(f"{path} cannot be unpacked (not a zst file): is the file whole?")
    try:
        lines = pl.read_csv(
            path, has_header=False, separator="\x1f", quote_char=None, infer_schema_length=0, glob=False
        )
    except pl.exceptions.NoDataError:
        return iter(())
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        if "utf" in reason.lower():
            raise TableError(f"{path} is no text in UTF-8: save it as UTF-8") from error
        raise TableError(f"{path} cannot be unpacked ({reason}): is the file whole?") from error
    return (f"{line or ''}\n" for line in lines.to_series())


def _with_progress(text: Iterator[str], tell: Callable[[], int], path: Path, progress: Progress) -> Iterator[str]:
    """The lines; ``progress`` is called every so many bytes, if it takes long."""
    size, due, start = path.stat().st_size, CHARACTERS_AT_A_TIME, time.monotonic()
    for line in text:
        if (at := tell()) >= due and time.monotonic() - start >= QUIET_SECONDS:
            progress(f"reading {path.name}: {at / size:.0%}")
            due = at + CHARACTERS_AT_A_TIME
        yield line


def _where(error: UnicodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        near = error.object[max(0, error.start - 12) : error.start + 1]
        return f"byte 0x{error.object[error.start]:02x} after {near[:-1].decode('ascii', 'replace')!r}"
    return str(error)
