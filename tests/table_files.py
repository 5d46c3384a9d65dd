"""Helpers for tests of readers: compressed text files, and the message of a refused table."""

import gzip

import pyarrow as pa
import pytest

from probewise.io import TableError, read_table


def write_text(path, text):
    """Write text, compressed as the ending says."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".zst":
        with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as compressed:
            compressed.write(text.encode())
    else:
        path.write_text(text)


def refusal(path, *, function=read_table, **options):
    """The one line of a `TableError`."""
    with pytest.raises(TableError) as caught:
        function(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message
