"""Short digests: fingerprints of data that identify a run, and checksums that detect a damaged ledger."""

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
    """Digest of arrays (dense, stored, sparse or text) by shape, type and content.

    Arrays are read in blocks of 64 MiB, in the order in which they are stored.
    """
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        if sp.issparse(part):
            columns = part.tocsc()
            pieces: Iterable[Any] = (columns.data, columns.indices, columns.indptr)
        else:
            array = as_dense(part)
            array = array.astype(str) if array.dtype.kind in "OSU" else array
            n_bytes = array.dtype.itemsize * math.prod(array.shape) if array.ndim == 2 else 0
            pieces = _digests(array) if n_bytes > TILED_BYTES else row_blocks(array)
        digest.update(f"{part.shape} {part.dtype.str};".encode())
        for piece in pieces:
            if piece.nbytes:
                digest.update(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _digests(table: Any) -> Iterator[NDArray[np.uint8]]:
    """Digests of tiles of a large table, so that a table in any memory order is read only once."""
    for tile in tiles(table):
        yield np.frombuffer(hashlib.blake2b(tile.tobytes(), digest_size=12).digest(), np.uint8)


def settings_digest(rows: Mapping[str, str]) -> str:
    return hashlib.blake2b(repr(sorted(rows.items(), key=repr)).encode(), digest_size=12).hexdigest()


def block_checksum(start: int, seconds: float, values: bytes, failures: str | None) -> int:
    """Checksum of a block, 0 to 2**32 - 1; -1 where the values cannot be a block."""
    try:
        header = struct.pack("<qd", start, seconds)
        if len(values) % 8 == 0 and math.isfinite(seconds) and np.isfinite(np.frombuffer(values, "<f8")).all():
            return zlib.crc32((failures or "").encode(), zlib.crc32(values, zlib.crc32(header)))
    except (TypeError, AttributeError, struct.error):
        pass
    return -1
