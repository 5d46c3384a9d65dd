"""The ledger of a run: its settings and what each probe gave, in memory or in a SQLite file that survives kill -9."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import sums
from ..validation.errors import ParameterError
from .fingerprints import block_checksum, settings_digest

APPLICATION_ID = 0x50726F62  # "Prob"
FORMAT = 1
SETTINGS_TABLE = "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
BLOCKS_TABLE = (
    "CREATE TABLE blocks (start INTEGER PRIMARY KEY, seconds REAL NOT NULL, j BLOB NOT NULL, failures TEXT, "
    "rows BLOB, checksum INTEGER NOT NULL)"
)
INSERT_BLOCK = "INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)"
CHECKSUM, STOPPED = "checksum", "stopped"
MOST_ROW_GROUPS = 64
ROW_LEVELS, LAST_LEVEL = (4.0, 3), 2**16 - 1  # see `packed_rows`
ROW_GROUPS = "row_groups"  # the setting that says how many numbers a probe has besides J
CHECKPOINT_SECONDS = 10.0
NOT_A_DATABASE = 26  # SQLITE_NOTADB

JsonValues = Mapping[str, Any]


class LedgerError(ParameterError):
    """A ledger that cannot be used: another run's, in use, damaged, or not a ledger."""


class LedgerInUse(LedgerError):
    """A ledger that another process, or thread, has open."""


class LedgerWriteError(LedgerError):
    """A ledger that takes no more blocks: the disk is full, or it may not be written. What it holds is intact."""


@dataclass(frozen=True)
class Failures:
    """Probes on which the criterion failed: their numbers, what stands for their J, and the first error in words."""

    probes: tuple[int, ...]
    error_score: float
    first: str


class Ledger:
    """J of every probe, in order, kept in memory or, given a path, in a file as well as its settings.

    Where the setting ``row_groups`` is a number, also what each of so many groups of rows gave to J, to 16 bits.

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
    >>> from probewise.engine.ledger import Ledger
    >>> ledger = Ledger(settings={"seed": 7})
    >>> ledger.append([0.5, 0.75], seconds=0.1)
    >>> ledger.n_probes, ledger.values().tolist()
    (2, [0.5, 0.75])
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
        self._rows = bytearray()
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

    @property
    def failures(self) -> Failures | None:
        """The probes whose J is not the criterion's, if there are any."""
        if not self._failures:
            return None
        first = self._failures[0]
        probes = tuple(probe for failures in self._failures for probe in failures.probes)
        return Failures(probes, first.error_score, first.first)

    @property
    def stop_reason(self) -> str | None:
        """Why the run stopped where the ledger ends; None where it was not stopped, but broke off."""
        stopped = self.settings.get(STOPPED) or {}
        return stopped["reason"] if stopped.get("n_probes") == self.n_probes else None

    def values(self, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """J of probes start, ..., stop - 1."""
        return np.array(self._values[start:stop], dtype=np.float64)

    @property
    def n_row_groups(self) -> int:
        """Groups of rows of which the ledger says what they gave; 0 where it does not."""
        return int(self.settings.get(ROW_GROUPS) or 0)

    def rows(self, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """What each group of rows gave in probes start, ..., stop - 1; of shape (probes, groups)."""
        width, stop = self.n_row_groups, self.n_probes if stop is None else stop
        levels = np.frombuffer(self._rows, "<u2", (stop - start) * width, 2 * start * width).reshape(-1, width)
        return unpacked_rows(levels)

    def until(self, n_probes: int) -> Ledger:
        """Its first probes, in memory."""
        part = Ledger(settings=self.settings)
        part._values, part._blocks, part._seconds = self._values[:n_probes], array("q", [n_probes]), array("d", [0.0])
        return part

    def seconds_at(self, n_probes: int) -> float:
        """Working time when that many probes were known."""
        block = bisect_left(self._blocks, n_probes)
        return self._seconds[block] if block < len(self._seconds) else self.seconds

    def append(self, values: Any, *, seconds: float, failures: Failures | None = None, rows: Any = None) -> None:
        """Add a block: the next probes' J, the run's working time at its end, and which of them stand for failures.

        ``rows`` is what the groups of rows gave, if the ledger keeps that; it may be packed already.
        """
        block = np.ascontiguousarray(values, dtype="<f8")
        packed = b"" if rows is None else packed_rows(rows).tobytes()
        if len(packed) != 2 * len(block) * self.n_row_groups:
            raise ValueError(f"rows: give {self.n_row_groups} numbers for each probe, as the ledger's settings say")
        if self._connection is not None:
            text = None if failures is None else json.dumps(asdict(failures))
            try:
                _write_block(self._connection, (self.n_probes, float(seconds), block.tobytes(), text, packed or None))
            except sqlite3.Error as error:
                raise LedgerWriteError(
                    f"the ledger {self.path} cannot be written ({error}); it keeps the {self.n_probes:,} probes it "
                    "holds: make room on the disk, or make the file writable, and the same run goes on from there"
                ) from error
            if time.monotonic() - self._checkpointed > CHECKPOINT_SECONDS:
                self._checkpoint(self._connection)
        self._remember(block, seconds, failures, packed)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """From SQLite's file beside the ledger into the ledger itself: who copies that alone loses little."""
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._checkpointed = time.monotonic()

    def conclude(self, reason: str) -> None:
        """Note why the run stops here, if the file takes it."""
        self.settings[STOPPED] = {"n_probes": self.n_probes, "reason": reason}
        if self._connection is not None:
            rows = _as_rows(self.settings)
            with suppress(sqlite3.Error), self._connection:
                self._connection.execute("BEGIN")
                _write_settings(self._connection, {name: rows[name] for name in (STOPPED, CHECKSUM)})

    def close(self) -> None:
        """Give the file back; what was read or appended stays readable from this object."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}

    def _remember(self, block: NDArray[np.float64], seconds: float, failures: Failures | None, rows: bytes) -> None:
        self._rows += rows
        self._values.frombytes(block.astype("=f8", copy=False).tobytes())
        self._blocks.append(self.n_probes)
        self._seconds.append(seconds)
        if failures is not None:
            self._failures.append(failures)

    def _open(self, path: Path, settings: JsonValues | None, notes: JsonValues) -> None:
        if settings is None and not has_run(path):
            raise LedgerError(f"there is no ledger at {path}" if not path.exists() else f"{path} is empty: no ledger")
        if not path.parent.is_dir():
            raise LedgerError(f"the ledger {path} cannot be made: the folder {path.parent} does not exist")
        # SQLite takes a very short file for an empty database and would write over it: look first.
        if path.exists() and (not path.is_file() or _first_bytes(path) not in (b"", b"SQLite format 3\0")):
            raise LedgerError(f"{path} is not a Probewise ledger: choose another file")
        with ExitStack() as until_read, self._explained():
            if settings is None and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
                path = _copied(path, until_read.enter_context(TemporaryDirectory()))
                until_read.callback(self.close)
            # Autocommit: each INSERT is a transaction of its own.
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
        connection.execute("BEGIN EXCLUSIVE")  # takes the lock for good, and makes creation all or nothing
        if not has_tables:
            _create(connection, {**(settings or {}), **notes})
        self._require_format(connection)
        kept = self._read_settings(connection)
        connection.execute("COMMIT")
        self._checkpoint(connection)
        if settings is not None:
            self._refuse_another_run(kept, json.loads(json.dumps(dict(settings))))
        return kept

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
            raise self._damaged("its settings are not as they were written")
        kept = {name: self._loaded(value) for name, value in rows.items()}
        stopped = kept.get(STOPPED) or {}
        if not isinstance(stopped, dict) or not isinstance(stopped.get("reason", ""), str):
            raise self._damaged("why it stopped cannot be read")
        n_groups = kept.get(ROW_GROUPS) or 0
        if not isinstance(n_groups, int) or not 0 <= n_groups <= MOST_ROW_GROUPS:
            raise self._damaged("it says what no run can be")
        return kept

    def _refuse_another_run(self, kept: dict[str, Any], asked: dict[str, Any]) -> None:
        different = [name for name in asked if kept.get(name) != asked[name]]
        if different:
            parts = [f"its {name} is {_shown(kept.get(name))}, not {_shown(asked[name])}" for name in different]
            remedy = ". Give the same data and settings to go on with it, or choose another file."
            if "#" in str(asked.get("criterion")) and {"criterion", "scoring"} & {*different}:
                remedy += " A function is known by its code and all that it captures; Function(f, name=...) names it."
            raise LedgerError(f"the ledger {self.path} holds another run: {'; '.join(parts)}{remedy}")

    def _read(self, connection: sqlite3.Connection) -> None:
        blocks = connection.execute("SELECT start, seconds, j, failures, rows, checksum FROM blocks ORDER BY start")
        for *block, checksum in blocks:
            start, seconds, blob, text, rows = block
            if start != self.n_probes or checksum != block_checksum(*block) or checksum < 0:
                raise self._damaged(f"the block at probe {self.n_probes:,} is not as it was written")
            if 4 * len(rows or b"") != len(blob) * self.n_row_groups:
                raise self._damaged(f"the block at probe {self.n_probes:,} does not say what rows gave")
            failures = None if text is None else self._failed(text)
            self._remember(np.frombuffer(blob, dtype="<f8"), seconds, failures, rows or b"")

    def _failed(self, text: str) -> Failures:
        kept = self._loaded(text)
        try:
            return Failures(tuple(map(int, kept["probes"])), float(kept["error_score"]), str(kept["first"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged("its failed probes cannot be read") from error

    def _loaded(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._damaged("what it says cannot be read") from error

    def _damaged(self, how: str) -> LedgerError:
        return LedgerError(
            f"the ledger {self.path} is damaged: {how}; put back a copy, or begin again with another file"
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise LedgerInUse(
                    f"the ledger {self.path} is in use by another process: wait for it or choose another file"
                ) from error
            raise LedgerError(f"the ledger {self.path} cannot be written or read: {error}") from error
        except sqlite3.Error as error:
            if error.sqlite_errorcode == NOT_A_DATABASE:
                raise LedgerError(f"{self.path} is not a Probewise ledger ({error}): choose another file") from error
            raise self._damaged(ascii(str(error))[1:-1]) from error  # it may quote what stands in the file
        except UnicodeDecodeError as error:  # in a message of SQLite about a name
            raise self._damaged("its tables are not those of a ledger") from error


def has_run(path: Path) -> bool:
    """Whether there is a file with something in it, be it in what SQLite keeps beside."""
    beside = path.with_name(f"{path.name}-wal")
    return path.exists() and (not path.is_file() or path.stat().st_size > 0 or beside.exists())


def _copied(path: Path, folder: str) -> Path:
    """A copy that SQLite may write to, as it does when it reads; with what a kill -9 left beside it."""
    for beside in (path, path.with_name(f"{path.name}-wal")):
        if beside.exists():
            shutil.copyfile(beside, Path(folder) / beside.name)
    return Path(folder) / path.name


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def _create(connection: sqlite3.Connection, settings: JsonValues) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute(SETTINGS_TABLE)
    connection.execute(BLOCKS_TABLE)
    _write_settings(connection, _as_rows(settings))


def _as_rows(settings: JsonValues) -> dict[str, str]:
    rows = {name: json.dumps(value) for name, value in settings.items()}
    return {**rows, CHECKSUM: settings_digest(rows)}


def _write_settings(connection: sqlite3.Connection, rows: Mapping[str, str]) -> None:
    connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", list(rows.items()))


def _write_block(connection: sqlite3.Connection, block: tuple[int, float, bytes, str | None, bytes | None]) -> None:
    checksum = block_checksum(*block)
    if checksum < 0:
        raise LedgerError(f"the block at probe {block[0]:,} cannot be kept: J and seconds must be finite numbers")
    connection.execute(INSERT_BLOCK, (*block, checksum))


def packed_rows(rows: Any) -> NDArray[np.uint16]:
    """Numbers from -3 to 1 in steps of 1/16,384; what is less becomes -3, so that a few rows far off do not rule.

    What a row gives to an accuracy or a probability is from 0 to 1, to R^2 at most 1.
    """
    if getattr(rows, "dtype", None) == np.uint16:
        return np.asarray(rows)
    scale, shift = ROW_LEVELS
    values = np.ascontiguousarray(rows, dtype=np.float32)
    levels = np.empty(values.shape, np.uint16)
    sums.round_to_levels(values.reshape(-1), float(shift), LAST_LEVEL / scale, levels.reshape(-1))
    return levels.astype("<u2", copy=False)


def unpacked_rows(levels: NDArray[np.uint16]) -> NDArray[np.float32]:
    scale, shift = ROW_LEVELS
    return levels.astype(np.float32) * np.float32(scale / LAST_LEVEL) - np.float32(shift)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
