"""Short digests: of data, by which a run knows its own again; of what a ledger holds, by which it knows damage."""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..validation.stores import as_dense, row_blocks, tiles

TILED_BYTES = 2**30


def fingerprint(*parts: Any) -> str:
    """A short digest of arrays (dense, stored, sparse, text): the same for equal shape, type and content.

    In memory or not, in whatever order: it is read in the order in which it is kept, 64 MiB at a time.
    """
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        if sp.issparse(part):
            columns = part.tocsc()
            pieces: Iterable[Any] = (columns.data, columns.indices, columns.indptr)
        else:
            array = as_dense(part)
            array = array.astype(str) if array.dtype.kind in "OSU" else array
            pieces = _digests(array) if _n_bytes(array) > TILED_BYTES else row_blocks(array)
        digest.update(f"{part.shape} {part.dtype.str};".encode())
        for piece in pieces:
            if piece.nbytes:
                digest.update(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _digests(table: Any) -> Iterator[NDArray[np.uint8]]:
    """Of squares of a table: a large one, whatever its order, is read once, and not once for every few rows."""
    for tile in tiles(table):
        yield np.frombuffer(hashlib.blake2b(tile.tobytes(), digest_size=12).digest(), np.uint8)


def _n_bytes(array: Any) -> int:
    """Of a table; 0 for anything else."""
    return array.dtype.itemsize * array.shape[0] * array.shape[1] if array.ndim == 2 else 0


def settings_digest(rows: Mapping[str, str]) -> str:
    return hashlib.blake2b(repr(sorted(rows.items(), key=repr)).encode(), digest_size=12).hexdigest()


def block_checksum(start: int, seconds: float, values: bytes, failures: str | None, rows: bytes | None) -> int:
    """0 to 2**32 - 1; -1 for what cannot be a block."""
    try:
        header = struct.pack("<qd", start, seconds)
        if len(values) % 8 == 0 and math.isfinite(seconds) and np.isfinite(np.frombuffer(values, "<f8")).all():
            said = zlib.crc32((failures or "").encode(), zlib.crc32(values, zlib.crc32(header)))
            return zlib.crc32(rows or b"", said)
    except (TypeError, AttributeError, struct.error):
        pass
    return -1
