"""The ledger of a study: a file with its settings and one line of JSON for each finished trial."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ..engine.ledger import in_words
from ..validation.errors import ParameterError
from ..validation.parameters import is_whole

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
MAX_FEATURES = 10**8
DAMAGE = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
SIGNATURE = b'{"probewise study": '

Record = dict[str, Any]


class StudyError(ParameterError):
    """Error for a ledger that holds another study, is in use, is damaged, or is a file of another kind."""


def is_trial_ledger(path: str | PathLike[str]) -> bool:
    """Whether the file starts like the ledger of a study."""
    with open(path, "rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE


class NotWrittenError(OSError):
    """Error for a trial that cannot be written to the ledger, because the disk is full or gone."""


class TrialLedger:
    """Finished trials in a file of JSON lines: a header with the settings, then one line for each trial.

    Each line is written at once and flushed to disk. An incomplete last line, left by a killed process, is removed
    when the file is opened again, and its trial is repeated. The file is locked while it is open, if the system has
    such locks. Without a path the trials stay in memory. ``is_study=False`` skips the checks of the content, for other
    work that is done trial by trial.
    """

    def __init__(self, path: str | PathLike[str] | None, *, is_study: bool = True) -> None:
        self.path = None if path is None else Path(path)
        self.is_study = is_study
        self.settings: dict[str, Any] | None = None
        self.notes: dict[str, Any] = {}
        self.trials: dict[int, Record] = {}
        self._file: int | None = None

    @classmethod
    def read(cls, path: str | PathLike[str]) -> TrialLedger:
        """Read the ledger of a study without changing or locking the file."""
        ledger = cls(path)
        ledger._read(None)
        return ledger

    def __enter__(self) -> TrialLedger:
        if self.path is not None:
            if not self.path.parent.is_dir():
                raise StudyError(f"ledger={str(self.path)!r}: the folder {self.path.parent} does not exist")
            if self.path.exists() and not self.path.is_file():
                raise StudyError(f"{self.path} is not the ledger of a Probewise study: choose another file")
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            try:
                self._lock(self._file)
                self._read(self._file)
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def begin(self, settings: Mapping[str, Any], *, notes: Mapping[str, Any]) -> None:
        """Write the header, or check that the study in the file has the same settings."""
        requested = json.loads(json.dumps(dict(settings), default=float))
        if self.settings is None:
            self.settings = requested
            self._write({"probewise study": FORMAT, "settings": requested, "notes": dict(notes)})
        names = dict.fromkeys([*requested, *self.settings])
        different = [name for name in names if requested.get(name) != self.settings.get(name)]
        if different:
            raise StudyError(
                f"{self.path} holds another study: {in_words(different, self.settings, requested)}. "
                "Give the same data and settings to continue it, or choose another file."
            )

    def append(self, record: Record) -> None:
        """Add a finished trial."""
        self._write(record)
        self.trials[record["trial"]] = record

    def _lock(self, file: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(f"{self.path} is in use by another process: wait for it or choose another file") from None

    def _read(self, file: int | None) -> None:
        assert self.path is not None
        content = self.path.read_bytes()
        if not (content.startswith(SIGNATURE) or SIGNATURE.startswith(content)):
            raise StudyError(f"{self.path} is not the ledger of a Probewise study: choose another file")
        end = content.rfind(b"\n") + 1
        if file is not None and end < len(content):
            os.truncate(file, end)
        for number, line in enumerate(content[:end].splitlines(), start=1):
            try:
                self._read_line(json.loads(line), is_header=number == 1)
            except StudyError:
                raise
            except DAMAGE as error:
                raise StudyError(f"{self.path} is damaged in line {number}: remove that line or the file") from error

    def _read_line(self, line: dict[str, Any], *, is_header: bool) -> None:
        if not is_header:
            if self.is_study:
                _require_trial(line, self.settings)
            self.trials.setdefault(int(line["trial"]), line)
        elif line["probewise study"] != FORMAT:
            raise StudyError(
                f"{self.path} has study format {line['probewise study']}; this version reads format {FORMAT}"
            )
        else:
            self.settings, self.notes = line["settings"], line.get("notes", {})
            if self.is_study:
                _require_settings(self.settings, self.notes.get("feature_names"))

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        data = memoryview(json.dumps(line).encode() + b"\n")
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            raise NotWrittenError(error.errno, error.strerror, str(self.path)) from error


def _require_settings(settings: Any, feature_names: Any) -> None:
    """Raise one of ``DAMAGE`` if these cannot be the settings of a study."""
    n_rows, n_features = settings["shape"]
    _require(settings["sizes"], settings["test_size"] > 0)
    _require(*(is_whole(value, 1, MAX_FEATURES) for value in (n_rows, n_features, *settings["sizes"])))
    for names in (settings["selectors"], settings["classifiers"]):
        _require(names, isinstance(names, list), *(isinstance(name, str) for name in names))
    if feature_names is not None:
        _require(len(feature_names) == n_features, *(isinstance(name, str) for name in feature_names))


def _require_trial(record: Any, settings: Any) -> None:
    """Raise one of ``DAMAGE`` if this cannot be a finished trial of a study with these settings."""
    n_sizes, n_features = len(settings["sizes"]), settings["shape"][1]
    _require(is_whole(record["trial"], 0, MAX_FEATURES))
    for name in settings["selectors"]:
        outcome = record["selectors"][name]
        _require(float(outcome["seconds"]) >= 0, is_whole(outcome["probes"], 0, 2**62))
        if outcome["subsets"] is not None:
            _require(len(outcome["subsets"]) == n_sizes)
            _require(*(is_whole(column, 0, n_features - 1) for subset in outcome["subsets"] for column in subset))
        for classifier in settings["classifiers"]:
            accuracy = outcome["accuracy"][classifier]
            _require(len(accuracy) == n_sizes, *(0 <= float(value) <= 1 for value in accuracy))


def _require(*conditions: Any) -> None:
    if not all(conditions):
        raise ValueError("this cannot be part of a study")
