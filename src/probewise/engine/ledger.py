"""The ledger of a run: its settings and the J of every probe, in memory or in a SQLite file that survives kill -9."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..validation.errors import ParameterError
from .fingerprints import block_checksum, settings_digest

APPLICATION_ID = 0x50726F62  # "Prob"
FORMAT = 1
SETTINGS_TABLE = "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
BLOCKS_TABLE = (
    "CREATE TABLE blocks (start INTEGER PRIMARY KEY, seconds REAL NOT NULL, j BLOB NOT NULL, failures TEXT, "
    "checksum INTEGER NOT NULL)"
)
CHECKSUM, STOPPED = "checksum", "stopped"
CHECKPOINT_SECONDS = 10.0
NOT_A_DATABASE = 26  # SQLITE_NOTADB

JsonValues = Mapping[str, Any]


class LedgerError(ParameterError):
    """The ledger cannot be used: it belongs to another run, is in use or damaged, or is not a ledger."""


class LedgerWriteError(LedgerError):
    """The ledger can no longer be written (the disk is full, say). Its contents are intact."""


@dataclass(frozen=True)
class Failures:
    """Failed probes: their numbers, the J stored for them, and the first error as text."""

    probes: tuple[int, ...]
    error_score: float
    first: str


class Ledger:
    """J of every probe, in order, in memory and, given a path, in a file with the settings of the run.

    A block is one row of a table, written in one transaction: after a crash the file has every block that was appended,
    complete. An open file is locked; a second process gets an error at once.

    ``settings`` are the identity of the run, as plain JSON values: if the file has a run with other settings, an error
    says what differs. ``notes`` are stored with a new run (feature names, versions) and not compared.
    """

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        settings: JsonValues | None = None,
        *,
        notes: JsonValues | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self._values = array("d")
        self._blocks = array("q")
        self._seconds = array("d")
        self._failures: list[Failures] = []
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
        """Working time of the run up to the last block, over all sessions."""
        return self._seconds[-1] if self._seconds else 0.0

    @property
    def failures(self) -> Failures | None:
        """The probes on which the criterion failed; None where there are none."""
        if not self._failures:
            return None
        first = self._failures[0]
        probes = tuple(probe for failures in self._failures for probe in failures.probes)
        return Failures(probes, first.error_score, first.first)

    @property
    def stop_reason(self) -> str | None:
        """Why the run stopped at the last probe; None for a run that was killed."""
        stopped = self.settings.get(STOPPED) or {}
        return stopped["reason"] if stopped.get("n_probes") == self.n_probes else None

    def values(self, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """J of probes start, ..., stop - 1."""
        return np.array(self._values[start:stop], dtype=np.float64)

    def until(self, n_probes: int) -> Ledger:
        """The first ``n_probes`` as a ledger in memory."""
        part = Ledger(settings=self.settings)
        part._values, part._blocks, part._seconds = self._values[:n_probes], array("q", [n_probes]), array("d", [0.0])
        return part

    def seconds_at(self, n_probes: int) -> float:
        """Working time when the run had that many probes."""
        block = bisect_left(self._blocks, n_probes)
        return self._seconds[block] if block < len(self._seconds) else self.seconds

    def append(self, values: Any, *, seconds: float, failures: Failures | None = None) -> None:
        """Add a block: J of the next probes, the working time at its end, and the failed probes among them."""
        block = np.ascontiguousarray(values, dtype="<f8")
        if self._connection is not None:
            text = None if failures is None else json.dumps(asdict(failures))
            row = self.n_probes, float(seconds), block.tobytes(), text
            if (checksum := block_checksum(*row)) < 0:
                raise LedgerError(
                    f"the block at probe {row[0]:,} cannot be stored: J and seconds must be finite numbers"
                )
            try:
                self._connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)", (*row, checksum))
            except sqlite3.Error as error:
                raise LedgerWriteError(
                    f"the ledger {self.path} cannot be written ({error}); it has {self.n_probes:,} probes: free "
                    "some disk space, or make the file writable, and the same run continues from there"
                ) from error
            if time.monotonic() - self._checkpointed > CHECKPOINT_SECONDS:
                self._checkpoint(self._connection)
        self._remember(block, seconds, failures)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Move SQLite's write-ahead log into the file, so that a copy of the file alone is nearly complete."""
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._checkpointed = time.monotonic()

    def note(self, name: str, value: Any) -> None:
        """Store a plain JSON value with the settings, if the file can be written."""
        self.settings[name] = value
        if self._connection is not None:
            rows = _as_rows(self.settings)
            with suppress(sqlite3.Error), self._connection:
                self._connection.execute("BEGIN")
                _write_settings(self._connection, {name: rows[name] for name in (name, CHECKSUM)})

    def close(self) -> None:
        """Close the file; everything read or appended stays available from this object."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}

    def _remember(self, block: NDArray[np.float64], seconds: float, failures: Failures | None) -> None:
        self._values.frombytes(block.astype("=f8", copy=False).tobytes())
        self._blocks.append(self.n_probes)
        self._seconds.append(seconds)
        if failures is not None:
            self._failures.append(failures)

    def _open(self, path: Path, settings: JsonValues | None, notes: JsonValues) -> None:
        if settings is None and not has_run(path):
            raise LedgerError(f"there is no ledger at {path}" if not path.exists() else f"{path} is empty: no ledger")
        if not path.parent.is_dir():
            raise LedgerError(f"the ledger {path} cannot be created: the folder {path.parent} does not exist")
        # SQLite would treat a very short file as an empty database and overwrite it.
        if path.exists() and (not path.is_file() or _first_bytes(path) not in (b"", b"SQLite format 3\0")):
            raise LedgerError(f"{path} is not a Probewise ledger: choose another file")
        with ExitStack() as stack, self._sqlite_errors_explained():
            if settings is None and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
                path = _copied(path, stack.enter_context(TemporaryDirectory()))
                stack.callback(self.close)
            # In autocommit mode each INSERT is a transaction.
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            self._connection.text_factory = partial(str, encoding="utf-8", errors="backslashreplace")
            try:
                self.settings = self._prepare(self._connection, settings, notes)
                self._read(self._connection)
            except BaseException:
                self.close()
                raise

    def _prepare(
        self, connection: sqlite3.Connection, settings: JsonValues | None, notes: JsonValues
    ) -> dict[str, Any]:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        has_tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
        if has_tables and application != APPLICATION_ID:
            raise LedgerError(f"{self.path} is a database, but not a Probewise ledger: choose another file")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN EXCLUSIVE")  # keeps the lock until closed, and creates all tables or none
        if not has_tables:
            identity = f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {FORMAT}"
            for statement in (*identity, SETTINGS_TABLE, BLOCKS_TABLE):
                connection.execute(statement)
            _write_settings(connection, _as_rows({**(settings or {}), **notes}))
        self._require_format(connection)
        stored = self._read_settings(connection)
        connection.execute("COMMIT")
        self._checkpoint(connection)
        if settings is not None:
            self._refuse_another_run(stored, json.loads(json.dumps(dict(settings))))
        return stored

    def _require_format(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != FORMAT:
            raise LedgerError(f"{self.path} has ledger format {version}; this version reads format {FORMAT}")
        schema = set(connection.execute("SELECT type, name, sql FROM sqlite_master"))
        tables = {("table", "settings", SETTINGS_TABLE), ("table", "blocks", BLOCKS_TABLE)}
        if schema != {*tables, ("index", "sqlite_autoindex_settings_1", None)}:
            raise self._damaged("its tables are not those of a ledger")

    def _read_settings(self, connection: sqlite3.Connection) -> dict[str, Any]:
        rows = dict(connection.execute("SELECT name, value FROM settings"))
        checksum = rows.pop(CHECKSUM, None)
        if checksum != settings_digest(rows):
            raise self._damaged("the checksum of its settings is wrong")
        stored = {name: self._loaded(value) for name, value in rows.items()}
        stopped = stored.get(STOPPED) or {}
        if not isinstance(stopped, dict) or not isinstance(stopped.get("reason", ""), str):
            raise self._damaged("its stop reason cannot be read")
        return stored

    def _refuse_another_run(self, stored: dict[str, Any], requested: dict[str, Any]) -> None:
        different = [name for name in requested if stored.get(name) != requested[name]]
        if different:
            remedy = ". Use the same data and settings to resume that run, or choose another file."
            if "#" in str(requested.get("criterion")) and {"criterion", "scoring"} & {*different}:
                remedy += " A function is identified by its name: see Function(f, name=...)."
            differences = in_words(different, stored, requested)
            raise LedgerError(f"the ledger {self.path} holds another run: {differences}{remedy}")

    def _read(self, connection: sqlite3.Connection) -> None:
        blocks = connection.execute("SELECT start, seconds, j, failures, checksum FROM blocks ORDER BY start")
        for *block, checksum in blocks:
            start, seconds, blob, text = block
            if start != self.n_probes or checksum != block_checksum(*block) or checksum < 0:
                raise self._damaged(f"the checksum of the block at probe {self.n_probes:,} is wrong")
            failures = None if text is None else self._failed(text)
            self._remember(np.frombuffer(blob, dtype="<f8"), seconds, failures)

    def _failed(self, text: str) -> Failures:
        stored = self._loaded(text)
        try:
            return Failures(tuple(map(int, stored["probes"])), float(stored["error_score"]), str(stored["first"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged("its failed probes cannot be read") from error

    def _loaded(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._damaged("its settings cannot be read") from error

    def _damaged(self, reason: str) -> LedgerError:
        return LedgerError(f"the ledger {self.path} is damaged: {reason}; restore a copy, or use another file")

    @contextmanager
    def _sqlite_errors_explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                in_use = f"the ledger {self.path} is in use by another process"
                raise LedgerError(f"{in_use}: wait for it or choose another file") from error
            raise LedgerError(f"the ledger {self.path} cannot be written or read: {error}") from error
        except sqlite3.Error as error:
            if error.sqlite_errorcode == NOT_A_DATABASE:
                raise LedgerError(f"{self.path} is not a Probewise ledger ({error}): choose another file") from error
            raise self._damaged(ascii(str(error))[1:-1]) from error  # the message may quote contents of the file
        except UnicodeDecodeError as error:  # from a name in a message of SQLite
            raise self._damaged("its tables are not those of a ledger") from error


def has_run(path: Path) -> bool:
    """Whether there is a file with contents, possibly in SQLite's write-ahead log next to it."""
    log = path.with_name(f"{path.name}-wal")
    return path.exists() and (not path.is_file() or path.stat().st_size > 0 or log.exists())


def _copied(path: Path, folder: str) -> Path:
    """A copy that SQLite can write to, which it does when reading, with the write-ahead log of a killed run."""
    for log in (path, path.with_name(f"{path.name}-wal")):
        if log.exists():
            shutil.copyfile(log, Path(folder) / log.name)
    return Path(folder) / path.name


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def _as_rows(settings: JsonValues) -> dict[str, str]:
    rows = {name: json.dumps(value) for name, value in settings.items()}
    return {**rows, CHECKSUM: settings_digest(rows)}


def _write_settings(connection: sqlite3.Connection, rows: Mapping[str, str]) -> None:
    connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", list(rows.items()))


def in_words(names: Sequence[str], stored: JsonValues, requested: JsonValues) -> str:
    """How two settings of these names differ, for an error message."""
    texts = [[json.dumps(values.get(name)) for values in (stored, requested)] for name in names]
    shown = [[text if len(text) <= 60 else f"{text[:57]}..." for text in pair] for pair in texts]
    return "; ".join(f"its {name} is {one}, not {other}" for name, (one, other) in zip(names, shown, strict=True))
