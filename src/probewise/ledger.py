"""The run on disk: a seed, its settings, and one number per probe, in a SQLite file that survives a kill -9."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

APPLICATION_ID = 0x50726F62  # "Prob"
FORMAT = 1

Settings = Mapping[str, Any]


class LedgerError(ValueError):
    """A ledger that cannot be used: another run's, in use, damaged, or not a ledger."""


class Ledger:
    """One number per probe, in order, kept in memory or, given a path, in a file as well as its settings.

    A block is one row, written in one transaction: after a crash the file holds every block that was
    appended, whole. While open the file is locked; a second process gets a clear error at once.

    Parameters
    ----------
    path : the file; None keeps the run in memory, 8 bytes a probe.
    settings : what makes the run what it is (plain JSON values). A file that already holds a run must
        have been written with the same settings, or it is refused with a sentence that says what differs.
    notes : more to keep with a new run (feature names, versions), not compared.

    Examples
    --------
    >>> from probewise.ledger import Ledger
    >>> ledger = Ledger(settings={"seed": 7})
    >>> ledger.append([0.5, 0.75], seconds=0.1)
    >>> ledger.n_probes, ledger.values().tolist()
    (2, [0.5, 0.75])
    """

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        settings: Settings | None = None,
        *,
        notes: Settings | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self._values = array("d")
        self._blocks = array("q")
        self._seconds = array("d")
        self._connection: sqlite3.Connection | None = None
        if self.path is None:
            self.settings = {**(settings or {}), **(notes or {})}
        else:
            self._open(self.path, settings, notes or {})

    @property
    def n_probes(self) -> int:
        return len(self._values)

    @property
    def seconds(self) -> float:
        """Working time of the run up to the last block, all sessions together."""
        return self._seconds[-1] if self._seconds else 0.0

    def values(self, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """J of probes start, ..., stop - 1."""
        return np.array(self._values[start:stop], dtype=np.float64)

    def seconds_at(self, n_probes: int) -> float:
        """Working time when that many probes were known."""
        block = int(np.searchsorted(np.frombuffer(self._blocks, np.int64), n_probes)) if self._blocks else 0
        return self._seconds[block] if block < len(self._seconds) else self.seconds

    def append(self, values: Any, *, seconds: float) -> None:
        """Add a block: the next probes' J, and the run's working time at its end."""
        block = np.ascontiguousarray(values, dtype="<f8")
        if self._connection is not None:
            with self._explained():
                self._connection.execute(
                    "INSERT INTO blocks VALUES (?, ?, ?)", (self.n_probes, seconds, block.tobytes())
                )
        self._remember(block, seconds)

    def close(self) -> None:
        """Give the file back; what was read or appended stays readable from this object."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}

    def _remember(self, block: NDArray[np.float64], seconds: float) -> None:
        self._values.frombytes(block.astype("=f8", copy=False).tobytes())
        self._blocks.append(self.n_probes)
        self._seconds.append(seconds)

    def _open(self, path: Path, settings: Settings | None, notes: Settings) -> None:
        if settings is None and not path.exists():
            raise LedgerError(f"there is no ledger at {path}")
        if not path.parent.is_dir():
            raise LedgerError(f"the ledger {path} cannot be made: the folder {path.parent} does not exist")
        # SQLite takes a very short file for an empty database and would write over it: look first.
        if path.exists() and _first_bytes(path) not in (b"", b"SQLite format 3\0"):
            raise LedgerError(f"{path} is not a Probewise ledger: choose another file")
        with self._explained():
            # Autocommit: each INSERT is a transaction of its own.
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                self.settings = self._prepare(self._connection, settings, notes)
                self._read(self._connection)
            except BaseException:
                self.close()
                raise

    def _prepare(self, connection: sqlite3.Connection, settings: Settings | None, notes: Settings) -> dict[str, Any]:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        has_tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
        if has_tables and application != APPLICATION_ID:
            raise LedgerError(f"{self.path} is a database, but not a Probewise ledger: choose another file")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN EXCLUSIVE")  # takes the lock for good, and makes creation all or nothing
        if not has_tables:
            _create(connection, {**(settings or {}), **notes})
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != FORMAT:
            raise LedgerError(f"{self.path} has ledger format {version}; this version reads format {FORMAT}")
        kept = {name: json.loads(value) for name, value in connection.execute("SELECT name, value FROM settings")}
        connection.execute("COMMIT")
        if settings is not None:
            self._refuse_another_run(kept, json.loads(json.dumps(dict(settings))))
        return kept

    def _refuse_another_run(self, kept: dict[str, Any], asked: dict[str, Any]) -> None:
        different = [name for name in asked if kept.get(name) != asked[name]]
        if different:
            differences = "; ".join(
                f"its {name} is {_shown(kept.get(name))}, not {_shown(asked[name])}" for name in different
            )
            raise LedgerError(
                f"the ledger {self.path} holds another run: {differences}. "
                "Give the same data and settings to go on with it, or choose another file."
            )

    def _read(self, connection: sqlite3.Connection) -> None:
        for start, seconds, blob in connection.execute("SELECT start, seconds, j FROM blocks ORDER BY start"):
            if start != self.n_probes or len(blob) % 8:
                raise LedgerError(f"the ledger {self.path} is damaged: the block at probe {self.n_probes} is not whole")
            self._remember(np.frombuffer(blob, dtype="<f8"), seconds)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise LedgerError(
                    f"the ledger {self.path} is in use by another process: wait for it or choose another file"
                ) from error
            raise LedgerError(f"the ledger {self.path} cannot be written or read: {error}") from error
        except sqlite3.DatabaseError as error:
            raise LedgerError(f"{self.path} is not a Probewise ledger ({error}): choose another file") from error


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def _create(connection: sqlite3.Connection, settings: Settings) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    connection.execute("CREATE TABLE blocks (start INTEGER PRIMARY KEY, seconds REAL NOT NULL, j BLOB NOT NULL)")
    rows = [(name, json.dumps(value)) for name, value in settings.items()]
    connection.executemany("INSERT INTO settings VALUES (?, ?)", rows)


def peek(path: str | PathLike[str], name: str) -> Any:
    """A setting of the ledger at path, or None where there is no file or no such setting."""
    if not Path(fspath(path)).exists():
        return None
    with Ledger(path) as ledger:
        return ledger.settings.get(name)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def fingerprint(*parts: Any) -> str:
    """A short digest of arrays (dense, sparse, text): the same for equal shape, type and content."""
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        if sp.issparse(part):
            columns = part.tocsc()
            pieces: Iterable[Any] = (columns.data, columns.indices, columns.indptr)
        else:
            array = np.asarray(part)
            array = array.astype(str) if array.dtype.kind in "OSU" else array
            step = max(1, 2**22 // max(1, array[:1].nbytes))
            pieces = (array[start : start + step] for start in range(0, len(array), step))
        digest.update(f"{part.shape} {part.dtype.str};".encode())
        for piece in pieces:
            digest.update(np.ascontiguousarray(piece).tobytes())
    return digest.hexdigest()
