"""Input files: local paths, standard input, and the lines of text files, which may be compressed."""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import io
import itertools
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

from .table import Progress, TableError, first_few, first_line, pl

STANDARD_INPUT = Path("standard input")
URL = re.compile(r"[a-z][a-z0-9+.-]+://|(https?|ftp|s3|gs):/", re.IGNORECASE)
DOWNLOADED_BY_CURL = ("http", "ftp")
MAX_FILES_COMPARED = 10_000
CHARACTERS_AT_A_TIME = 2**24
QUIET_SECONDS = 1.0  # time before progress is shown
MAX_LINE_LENGTH = 2**28
SAMPLE_BYTES = 64
DECOMPRESSORS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
COMPRESSIONS = (*DECOMPRESSORS, ".zst")
FIRST_BYTES = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ", ".zst": b"\x28\xb5\x2f\xfd"}
DECOMPRESSION_ERRORS = (zlib.error, lzma.LZMAError, EOFError, OSError)


def local_path(path: str | PathLike[str]) -> Path:
    """The path of a file to read; "-" is standard input, and URLs are refused."""
    text = str(path)
    if URL.match(text):
        name = re.split(r"[?#]", text)[0].rstrip("/").rpartition("/")[2]
        is_known = text.lower().startswith(DOWNLOADED_BY_CURL)
        command = f" (curl -L -o {shlex.quote(name)} {shlex.quote(text)})" if is_known else ""
        raise TableError(f"{text} is a URL: download the file first{command}")
    return STANDARD_INPUT if text == "-" else Path(path)


def no_such_file(path: Path) -> TableError:
    """The error for a file that does not exist, with files of similar names in its folder."""
    try:
        others = [other.name for other in itertools.islice(path.parent.iterdir(), MAX_FILES_COMPARED)]
    except OSError:
        return TableError(f"there is no file {path}")
    similar = difflib.get_close_matches(path.name, others, cutoff=0.75)
    return TableError(f"there is no file {path}" + (f": did you mean {first_few(similar)}?" if similar else ""))


@contextmanager
def lines_of(path: Path, progress: Progress | None = None) -> Iterator[Iterator[str]]:
    """The lines of a text file, decompressed; a `TableError` if it is damaged or not text."""
    try:
        if path.suffix.lower() == ".zst":
            yield _lines_of_zst(path)
            return
        opened: Any = nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else path.open("rb")
        with opened as raw:
            stream = _decompressed(raw, path)
            start = stream.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]
            encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            if encoding == "utf-8-sig" and b"\0" in start.strip(b"\0"):
                raise TableError(f"{path} has zero bytes, as UTF-16 text without a byte order mark: save it as UTF-8")
            text = io.TextIOWrapper(stream, encoding=encoding, newline="")
            try:
                lines = _with_limited_length(text, path)
                if progress is not None and path != STANDARD_INPUT:
                    lines = _with_progress(lines, raw.tell, path, progress)
                yield lines
            finally:
                text.detach()  # or it would close standard input
    except UnicodeError as error:
        raise TableError(f"{path} is not UTF-8 text ({_position(error)}): save it as UTF-8") from error
    except DECOMPRESSION_ERRORS as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the disk; gzip and bz2 set no number
            raise
        raise TableError(f"{path} cannot be decompressed ({error}): is the file complete?") from error
    except csv.Error as error:
        reason = str(error)
        if "field limit" in reason:
            reason = f"a cell is longer than {csv.field_size_limit():,} characters"
        raise TableError(f"{path} cannot be read as separated text ({reason}): is a quote left open?") from error


def _decompressed(raw: Any, path: Path) -> Any:
    """The stream decompressed according to the file name, or to the first bytes of standard input."""
    compression = path.suffix.lower()
    if path == STANDARD_INPUT:
        start = raw.peek(6)
        compression = next((ending for ending, first in FIRST_BYTES.items() if start.startswith(first)), "")
        if compression == ".zst":
            raise TableError(f"{path} is compressed with zstd: decompress it first, zstd -dc FILE | probewise rank -")
    return DECOMPRESSORS[compression](raw) if compression in DECOMPRESSORS else raw


def _with_limited_length(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    """The lines; a line that does not end, such as in a compressed file of zeros, is not read to its end."""
    while line := text.readline(MAX_LINE_LENGTH):
        if len(line) == MAX_LINE_LENGTH and not line.endswith(("\n", "\r")):
            raise TableError(f"{path} has a line of more than {MAX_LINE_LENGTH:,} characters: is it a text table?")
        yield line


def _lines_of_zst(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        if (start := file.read(4)) and start != FIRST_BYTES[".zst"]:
            raise TableError(f"{path} cannot be decompressed (not a zst file): is the file complete?")
    try:
        lines = pl.read_csv(
            path, has_header=False, separator="\x1f", quote_char=None, infer_schema_length=0, glob=False
        )
    except pl.exceptions.NoDataError:
        return iter(())
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = first_line(error)
        if "utf" in reason.lower():
            raise TableError(f"{path} is not UTF-8 text: save it as UTF-8") from error
        raise TableError(f"{path} cannot be decompressed ({reason}): is the file complete?") from error
    return (f"{line or ''}\n" for line in lines.to_series())


def _with_progress(lines: Iterator[str], tell: Callable[[], int], path: Path, progress: Progress) -> Iterator[str]:
    size, next_report, start = path.stat().st_size, CHARACTERS_AT_A_TIME, time.monotonic()
    for line in lines:
        if (position := tell()) >= next_report and time.monotonic() - start >= QUIET_SECONDS:
            progress(f"reading {path.name}: {position / size:.0%}")
            next_report = position + CHARACTERS_AT_A_TIME
        yield line


def _position(error: UnicodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        before = error.object[max(0, error.start - 12) : error.start].decode("ascii", "replace")
        return f"byte 0x{error.object[error.start]:02x} after {before!r}"
    return str(error)
