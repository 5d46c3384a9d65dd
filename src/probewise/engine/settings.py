"""The settings of a run: written to a ledger, read from a ledger, and checked."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fingerprints import fingerprint
from .ledger import Ledger, LedgerError, has_run
from .probes import MIN_EXPECTED_SIZE, ProbePlan, Subsets
from .schedule import Schedule, TournamentPlan
from .units import Units

Floats = NDArray[np.float64]
DEFAULT_PROBE_SIZE = 200
COMMAND: ContextVar[list[str] | None] = ContextVar("COMMAND", default=None)
IDENTITY = ("seed", "inclusion", "criterion", "scoring", "data", "target", "folds", "sample_weight", "adjust", "scale")
NOTES = ("feature_names", "version", "block_size", "check_every", "cv")
OPTIONAL_NOTES = ("command", "uneven", "rows_used")  # only where they are not None
UNNAMED = " (unnamed)"  # ends the description of a function or object that has no name
MAX_BLOCK_FEATURES = 2**30  # features in all probes of a block
MAX_FEATURES = 10**7  # a damaged file may claim more, which would only exhaust the memory
DAMAGE = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError)


@contextmanager
def recording_command(command: list[str]) -> Iterator[None]:
    """Record these command-line arguments in the settings that are made inside this context."""
    token = COMMAND.set(command)
    try:
        yield
    finally:
        COMMAND.reset(token)


@dataclass(frozen=True, eq=False)
class Settings:
    """Everything that determines a run, and the notes that are stored with it."""

    seed: int
    shape: tuple[int, int]  # rows and features of the table
    criterion: str  # description; "" without a ledger file
    units: Units
    max_probe_size: int | None = None
    inclusion: float | None = None
    schedule: Schedule | None = None  # the rounds of a tournament
    categorical: NDArray[np.int64] | None = None  # the categorical columns
    scoring: str | None = None  # name of the score
    # Fingerprints of the data; None without a ledger file.
    data: str | None = None
    target: str | None = None
    folds: str | None = None
    sample_weight: str | None = None
    adjust: str | None = None
    check_every: int = 400
    block_size: int = 50
    feature_names: list[str] | None = None
    cv: str | None = None  # description
    version: str | None = None  # version of Probewise that started the run
    command: list[str] | None = None  # command-line arguments, if the command line started the run
    scale: str | None = None  # transformation of the columns
    missing: str | None = None  # statistic that replaced missing values, where there were any
    uninformative: NDArray[Any] | None = None  # constant or empty columns, which rank last
    rows_used: int | None = None  # size of the sample of rows that probes are scored on; None: all rows
    uneven: tuple[float, float] | None = None  # smallest and largest standard deviation, where wide columns dominate

    @classmethod
    def of_features(cls, n_features: int) -> Settings:
        """Settings of a run without a table, whose units are features."""
        return cls(0, (0, n_features), "", Units.of_features(n_features))

    @property
    def method(self) -> str:
        """Name of the selector that made the run."""
        return "DAF" if self.schedule is None else "Tournament"

    def first_plan(self) -> ProbePlan:
        """The plan, over units, of the first round."""
        n_units = self.units.n_units
        kind = ProbePlan if self.schedule is None else TournamentPlan
        size = DEFAULT_PROBE_SIZE if self.max_probe_size is None else self.max_probe_size
        return kind(n_units, min(size, n_units), self.inclusion, self.seed)

    def effort(self, n_probes: int) -> tuple[float, float]:
        """Work of the first ``n_probes`` in arbitrary units, and the expected seconds of work between probes."""
        if self.schedule is not None:
            return self.schedule.effort(self.first_plan(), n_probes)
        return float(n_probes), 0.0

    def with_data(self, X: Any, y: Any, splits: Any, sample_weight: Any, adjust: Any = None) -> Settings:
        """Add the fingerprints of the data, which reads all of it."""
        return replace(
            self,
            data=fingerprint(X),
            target=None if y is None else fingerprint(y),
            folds=fingerprint(*(part for split in splits for part in split)),
            sample_weight=None if sample_weight is None else fingerprint(sample_weight),
            adjust=None if adjust is None else fingerprint(adjust),
        )

    # ---- writing

    def open_ledger(self, path: str | PathLike[str] | None) -> Ledger:
        """Open the ledger at ``path``, or one in memory; a file that exists must hold a run with these settings."""
        if path is None:
            return Ledger()
        unnamed = [text for text in (self.criterion, self.scoring) if text is not None and UNNAMED in text]
        if unnamed:
            raise LedgerError(
                f"the ledger {fspath(path)} needs a name for {unnamed[0]}, because a function may change between two "
                "runs: use Function(my_function, name='first') or Scorer(estimator, scoring=..., name='first')"
            )
        return Ledger(path, self.identity(), notes=self.notes())

    def identity(self) -> dict[str, Any]:
        """The values that two runs must share to be the same run, as plain JSON."""
        identity: dict[str, Any] = {name: getattr(self, name) for name in IDENTITY}
        identity["shape"], identity["max_probe_size"] = list(self.shape), self.first_plan().max_size
        identity["categorical"] = None if self.categorical is None else self.categorical.tolist() or None
        if self.missing is not None:
            identity["missing"] = self.missing
        if self.schedule is not None:
            identity["tournament"] = [self.schedule.n_probes, *self.schedule.ends]
            protected, paired = fingerprint(self.schedule.protected), fingerprint(self.schedule.paired)
            identity["protected"] = [self.schedule.protected_above, protected, paired]
        members, kept = self.units.members, self.units.kept
        special = self._has_special_units
        identity["units"] = fingerprint(members.indices, members.offsets, kept) if special else None
        return identity

    def notes(self) -> dict[str, Any]:
        """Other values that are stored, so that a ledger alone is enough to make a ranking."""
        notes: dict[str, Any] = {name: getattr(self, name) for name in NOTES}
        notes |= {name: getattr(self, name) for name in OPTIONAL_NOTES if getattr(self, name) is not None}
        if self._has_special_units:
            notes["unit_members"] = _packed(self.units.members.indices)
            notes["unit_sizes"] = _packed(self.units.members.sizes)
            notes["unit_always"] = _packed(self.units.kept)
        if self.schedule is not None:
            notes["protected_units"] = _packed(self.schedule.protected)
            notes["paired_units"] = _packed(self.schedule.paired)
            notes["copied_units"] = _packed(self.schedule.copies)
        if self.uninformative is not None and len(self.uninformative):
            notes["uninformative"] = _packed(self.uninformative)
        return notes

    @property
    def _has_special_units(self) -> bool:
        """Whether there are groups, categorical features or features of ``keep``."""
        return not self.units.are_features or (self.categorical is not None and len(self.categorical) > 0)

    def unit_names(self) -> list[str] | None:
        """Names of the units; a group has the name of its first feature."""
        names, units = self.feature_names, self.units
        if units.are_features:
            return names
        first = units.first_features().tolist()
        return [str(column) if names is None else names[column] for column in first]

    # ---- reading

    @classmethod
    def read(cls, ledger: Ledger) -> Settings:
        """The settings in a ledger. They are checked, because a ledger may be damaged or forged."""
        stored = ledger.settings
        if "shape" not in stored or "seed" not in stored:
            raise ValueError(f"the ledger {ledger.path} does not describe its data, so it cannot be reported")
        try:
            return cls(**_read(stored))
        except DAMAGE as error:
            raise LedgerError(f"{ledger.path} is damaged: its settings are impossible; restore a copy") from error


def saved_settings(path: str | PathLike[str] | None) -> Settings | None:
    """The settings of the run in the ledger at ``path``; None where there is none yet."""
    if path is None or not has_run(Path(fspath(path))):
        return None
    with Ledger(path) as ledger:
        return Settings.read(ledger) if "seed" in ledger.settings else None


def _read(stored: Mapping[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {name: stored.get(name) for name in (*IDENTITY, *NOTES, *OPTIONAL_NOTES, "missing")}
    known["shape"] = n_rows, n_features = tuple(stored["shape"])
    size = known["max_probe_size"] = stored.get("max_probe_size") or None
    seed, inclusion, block_size, used = (known[name] for name in ("seed", "inclusion", "block_size", "rows_used"))
    for number in (n_rows, n_features, size or 1, block_size, known["check_every"], 1 if used is None else used):
        _require(isinstance(number, int), 1 <= number <= MAX_FEATURES)
    _require(isinstance(seed, int), 0 <= seed < 2**64, inclusion is None or 0 < inclusion < 1)
    _require(used is None or used <= n_rows)
    known["check_every"] = math.lcm(known["check_every"], block_size)
    for name in ("data", "target", "folds", "sample_weight", "adjust", "scoring", "cv"):
        _require(known[name] is None or isinstance(known[name], str))
    known["criterion"], version = str(known["criterion"]), known["version"]
    known["version"] = None if version is None else str(version)
    names, command, uneven = known["feature_names"], known["command"], known["uneven"]
    _require(names is None or (len(names) == n_features and all(isinstance(name, str) for name in names)))
    _require(command is None or all(isinstance(word, str) for word in command))
    _require(
        known["scale"] in (None, "standard", "largest", "nonzero", "rank"), known["missing"] in (None, "mean", "median")
    )
    _require(uneven is None or len(uneven) == 2)
    known["uneven"] = None if uneven is None else tuple(float(width) for width in uneven)
    known["categorical"] = np.array(stored.get("categorical") or [], dtype=np.int64)
    known["uninformative"] = _unpacked(stored.get("uninformative", ""))
    for columns in (known["categorical"], known["uninformative"]):
        _require(columns.ndim == 1, ((columns >= 0) & (columns < n_features)).all())
    units = known["units"] = _read_units(stored, n_features)
    _require(inclusion is None or inclusion * units.n_units >= MIN_EXPECTED_SIZE)
    _require(block_size * (units.n_units if inclusion else size or 1) <= MAX_BLOCK_FEATURES)
    return {**known, "schedule": _read_schedule(stored, units)}


def _require(*conditions: Any) -> None:
    if not all(bool(condition) for condition in conditions):
        raise ValueError("impossible")


def _read_units(stored: Mapping[str, Any], n_features: int) -> Units:
    if stored.get("units") is None:
        return Units.of_features(n_features)
    members, sizes = _unpacked(stored["unit_members"]), _unpacked(stored["unit_sizes"])
    kept = _unpacked(stored["unit_always"])
    offsets = np.concatenate([[0], np.cumsum(sizes.astype(np.int64))])
    features = np.concatenate([members, kept])
    _require(len(sizes), (sizes > 0).all(), offsets[-1] == len(members))
    _require(len(np.unique(features)) == len(features), features.min() >= 0, features.max() < n_features)
    return Units(n_features, Subsets(members, offsets), kept)


def _read_schedule(stored: Mapping[str, Any], units: Units) -> Schedule | None:
    if stored.get("tournament") is None:
        return None
    n_probes, *ends = stored["tournament"]
    above, protected = stored["protected"][0], _unpacked(stored["protected_units"])
    paired, copies = _unpacked(stored["paired_units"]), _unpacked(stored["copied_units"])
    for number in (n_probes, *ends, above):
        _require(isinstance(number, int), 0 <= number <= 2**53)
    named = np.concatenate([protected, paired, copies])
    _require((np.diff([0, *ends]) > 0).all(), ((named >= 0) & (named < units.n_units)).all())
    return Schedule(n_probes, tuple(ends), protected, above, paired, copies)


def _packed(values: NDArray[Any]) -> str:
    return base64.b64encode(values.astype("<i4").tobytes()).decode()


def _unpacked(text: str) -> NDArray[np.int32]:
    return np.frombuffer(base64.b64decode(text, validate=True), "<i4").astype(np.int32)
