"""Files of finished trials: a line of JSON each, safe from a kill, refused to another study."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ..validation.errors import Parameter, ParameterError
from ..validation.parameters import is_whole

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
MOST_FEATURES = 10**8
DAMAGE = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
SIGNATURE = b'{"probewise study": '

Record = dict[str, Any]


class StudyError(ParameterError):
    """A run file that cannot be used: another study's, in use, damaged, or not a study's."""


class RunFile:
    """Finished trials in a file of JSON lines: a header with the study's settings, then a line per trial.

    A line is written at once and forced to the disk. What a kill -9 leaves of a last line is cut off at the
    next opening, and that trial done again. While open the file is locked, where the system has such locks.
    Without a path trials are kept in memory. Lines are checked to be a study's, unless they are of other work done
    trial by trial.
    """

    def __init__(self, path: str | PathLike[str] | None, *, is_study: bool = True) -> None:
        self.path = None if path is None else Path(path)
        self.is_study = is_study
        self.settings: dict[str, Any] | None = None
        self.notes: dict[str, Any] = {}
        self.trials: dict[int, Record] = {}
        self._file: int | None = None

    @classmethod
    def look(cls, path: str | PathLike[str]) -> RunFile:
        """What the file of a study holds; it is left as it is."""
        found = cls(path)
        found._read(None)
        return found

    def __enter__(self) -> RunFile:
        if self.path is not None:
            if not self.path.parent.is_dir():
                raise StudyError(Parameter("run", str(self.path)), f": the folder {self.path.parent} does not exist")
            if self.path.exists() and not self.path.is_file():
                raise StudyError(f"{self.path} is not the run of a Probewise study: choose another file")
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
        """Go on with the study in the file if it has these settings, or begin it."""
        asked = json.loads(json.dumps(dict(settings), default=float))
        if self.settings is None:
            self.settings = asked
            self._write({"probewise study": FORMAT, "settings": asked, "notes": dict(notes)})
        names = dict.fromkeys([*asked, *self.settings])
        different = [name for name in names if asked.get(name) != self.settings.get(name)]
        if different:
            differences = "; ".join(
                f"its {name} is {_shown(self.settings.get(name))}, not {_shown(asked.get(name))}" for name in different
            )
            raise StudyError(
                f"{self.path} holds another study: {differences}. "
                "Give the same data and settings to go on with it, or choose another file."
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
            raise StudyError(f"{self.path} is not the run of a Probewise study: choose another file")
        whole = content.rfind(b"\n") + 1
        if file is not None and whole < len(content):
            os.truncate(file, whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                self._take(json.loads(line), is_header=number == 1)
            except StudyError:
                raise
            except DAMAGE as error:
                raise StudyError(f"{self.path} is damaged in line {number}: remove that line or the file") from error

    def _take(self, line: dict[str, Any], *, is_header: bool) -> None:
        if not is_header:
            if self.is_study:
                require_trial(line, self.settings)
            self.trials.setdefault(int(line["trial"]), line)
        elif line["probewise study"] != FORMAT:
            raise StudyError(
                f"{self.path} has study format {line['probewise study']}; this version reads format {FORMAT}"
            )
        else:
            self.settings, self.notes = line["settings"], line.get("notes", {})
            if self.is_study:
                require_settings(self.settings, self.notes.get("feature_names"))

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        data = memoryview(json.dumps(line).encode() + b"\n")
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)


def require_settings(settings: Any, feature_names: Any) -> None:
    """Raise one of ``DAMAGE`` where these cannot be a study's."""
    n_rows, n_features = settings["shape"]
    sizes, test_size = settings["sizes"], settings["test_size"]
    fine = (
        sizes and test_size > 0 and all(is_whole(number, 1, MOST_FEATURES) for number in (n_rows, n_features, *sizes))
    )
    for role in ("selectors", "classifiers"):
        names = settings[role]
        fine = fine and isinstance(names, list) and names and all(isinstance(name, str) for name in names)
    if feature_names is not None:
        fine = fine and len(feature_names) == n_features and all(isinstance(name, str) for name in feature_names)
    if not fine:
        raise ValueError("settings that no study has")


def require_trial(record: Any, settings: Any) -> None:
    """Raise one of ``DAMAGE`` where this is not a finished trial of a study of those settings."""
    n_sizes, n_features = len(settings["sizes"]), settings["shape"][1]
    fine = is_whole(record["trial"], 0, MOST_FEATURES)
    for name in settings["selectors"]:
        outcome = record["selectors"][name]
        subsets = outcome["subsets"]
        fine = fine and float(outcome["seconds"]) >= 0 and is_whole(outcome["probes"], 0, 2**62)
        if subsets is not None:
            fine = fine and len(subsets) == n_sizes
            fine = fine and all(is_whole(feature, 0, n_features - 1) for subset in subsets for feature in subset)
        for classifier in settings["classifiers"]:
            accuracy = outcome["accuracy"][classifier]
            fine = fine and len(accuracy) == n_sizes and all(0 <= float(value) <= 1 for value in accuracy)
    if not fine:
        raise ValueError("a line that no trial has")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
