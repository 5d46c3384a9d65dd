"""The settings of a run: how they are written to a ledger, read from one, and checked."""

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
from .ledger import ROW_GROUPS, Ledger, LedgerError, has_run
from .probes import FEWEST_EXPECTED, ProbePlan, Subsets
from .row_effects import RowGroups
from .schedule import Schedule, TournamentPlan
from .units import Units

Floats = NDArray[np.float64]
DEFAULT_PROBE_SIZE = 200
COMMAND: ContextVar[list[str] | None] = ContextVar("COMMAND", default=None)
DEFAULT_FDR = 0.1
UNKNOWN = " (unnamed)"  # ends the text of a function or an object that has no id
MOST_IN_A_BLOCK = 2**30  # features of all its probes
MOST_FEATURES = 10**7  # a file that claims more would only make us run out of memory
DAMAGE = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError)


@contextmanager
def begun_by(command: list[str]) -> Iterator[None]:
    """Settings made inside of it keep these arguments of the command line."""
    token = COMMAND.set(command)
    try:
        yield
    finally:
        COMMAND.reset(token)


@dataclass(frozen=True, eq=False)
class Settings:
    """What makes a run what it is, and what is kept with it."""

    seed: int
    shape: tuple[int, int]  # rows and features of the table
    criterion: str  # in words; "" where the run is not kept in a file
    units: Units
    max_probe_size: int | None = None
    inclusion: float | None = None
    schedule: Schedule | None = None  # of the rounds of a tournament
    categorical: NDArray[np.int64] | None = None  # the columns that are categories
    scoring: str | None = None  # the score that J is, by name
    # Fingerprints of the data, None where the run is not kept in a file.
    data: str | None = None
    target: str | None = None
    folds: str | None = None
    sample_weight: str | None = None
    check_every: int = 400
    block_size: int = 50
    feature_names: list[str] | None = None
    cv: str | None = None  # in words
    version: str | None = None  # of Probewise, that began the run
    command: list[str] | None = None  # the arguments of the command line, if it began the run
    row_shares: Floats | None = None  # of J, for each group of rows of which the ledger keeps what it gave
    row_unit: float = 1.0  # in which that is kept
    rows: str | None = None  # which rows are in which group, as a fingerprint
    scale: str | None = None  # on which columns were brought before they were probed
    uneven: tuple[float, float] | None = None  # least and largest deviation, if wide columns rule the criterion
    univariate_p_values: Floats | None = None  # of each unit, by the permutation test

    @classmethod
    def of_features(cls, n_features: int) -> Settings:
        """Of probes without a table, whose units are features."""
        return cls(0, (0, n_features), "", Units.of_features(n_features))

    @property
    def method(self) -> str:
        """The selector that the run is of."""
        return "DAF" if self.schedule is None else "Tournament"

    def first_plan(self) -> ProbePlan:
        """The plan over units that the run begins with."""
        n_units = self.units.n_units
        kind = ProbePlan if self.schedule is None else TournamentPlan
        size = DEFAULT_PROBE_SIZE if self.max_probe_size is None else self.max_probe_size
        return kind(n_units, min(size, n_units), self.inclusion, self.seed)

    def effort(self, n_probes: int) -> tuple[float, float]:
        """What so many probes take, in any unit, and the seconds between them, as far as that is known beforehand."""
        if self.schedule is not None:
            return self.schedule.effort(self.first_plan(), n_probes)
        return float(n_probes), 0.0

    def with_data(self, X: Any, y: Any, splits: Any, sample_weight: Any, rows: RowGroups | None) -> Settings:
        """The same with the fingerprints of the data: reads all of them."""
        return replace(
            self,
            data=fingerprint(X),
            target=None if y is None else fingerprint(y),
            folds=fingerprint(*(part for split in splits for part in split)),
            sample_weight=None if sample_weight is None else fingerprint(sample_weight),
            rows=None if rows is None else fingerprint(rows.group_of),
        )

    # ---- written

    def open_ledger(self, path: str | PathLike[str] | None) -> Ledger:
        """Open the ledger at ``path``, or one in memory; a file that exists must hold a run with these settings."""
        if path is None:
            return Ledger(settings={ROW_GROUPS: None if self.row_shares is None else len(self.row_shares)})
        unnamed = [text for text in (self.criterion, self.scoring) if text is not None and UNKNOWN in text]
        if unnamed:
            raise LedgerError(
                f"the ledger {fspath(path)} needs a name for {unnamed[0]}: a function may change between two runs; "
                "give criterion=Function(my_function, name='first'), or Scorer(estimator, scoring=..., name='first')"
            )
        return Ledger(path, self.identity(), notes=self.notes())

    def identity(self) -> dict[str, Any]:
        """What two runs must have in common to be the same run, as plain JSON values."""
        identity: dict[str, Any] = {
            "seed": self.seed,
            "shape": list(self.shape),
            "max_probe_size": self.first_plan().max_size,
            "inclusion": self.inclusion,
            "criterion": self.criterion,
            "scoring": self.scoring,
            "data": self.data,
            "target": self.target,
            "folds": self.folds,
            "sample_weight": self.sample_weight,
            "units": None,
            "categorical": None if self.categorical is None else self.categorical.tolist() or None,
            ROW_GROUPS: None if self.row_shares is None else len(self.row_shares),
            "rows": self.rows,
            "scale": self.scale,
        }
        if self.schedule is not None:
            schedule = self.schedule
            identity["tournament"] = [schedule.n_probes, *schedule.ends]
            identity["protected"] = [schedule.protected_above, fingerprint(schedule.protected)]
        if self._tells_units:
            units = self.units
            parts = (units.members.indices, units.members.offsets, units.kept)
            identity["units"] = fingerprint(*parts)
        return identity

    def notes(self) -> dict[str, Any]:
        """What else is kept, so that a ranking can be made from the ledger alone; columns take 5 bytes each."""
        notes: dict[str, Any] = {
            "feature_names": self.feature_names,
            "version": self.version,
            "block_size": self.block_size,
            "check_every": self.check_every,
            "cv": self.cv,
        }
        if self._tells_units:
            notes["unit_members"] = _packed(self.units.members.indices)
            notes["unit_sizes"] = _packed(self.units.members.sizes)
            notes["unit_always"] = _packed(self.units.kept)
        if self.schedule is not None:
            notes["protected_units"] = _packed(self.schedule.protected)
        if self.command is not None:
            notes["command"] = self.command
        if self.row_shares is not None:
            notes["row_shares"], notes["row_unit"] = self.row_shares.tolist(), self.row_unit
        if self.uneven is not None:
            notes["uneven"] = list(self.uneven)
        if self.univariate_p_values is not None:
            notes["univariate_p_values"] = _packed(self.univariate_p_values, "<f4")
        return notes

    @property
    def _tells_units(self) -> bool:
        """Whether units are more than the features."""
        return not self.units.are_features or (self.categorical is not None and len(self.categorical) > 0)

    def unit_names(self) -> list[str] | None:
        """Names of the units; a group has the name of its first feature."""
        names, units = self.feature_names, self.units
        if units.are_features:
            return names
        first = units.first_features().tolist()
        return [str(column) if names is None else names[column] for column in first]

    # ---- read

    @classmethod
    def read(cls, ledger: Ledger) -> Settings:
        """The settings of the run in a ledger. A ledger is a file like any other: what it says must be possible."""
        kept = ledger.settings
        if "shape" not in kept or "seed" not in kept:
            raise ValueError(f"the ledger {ledger.path} does not say what data it is of, so there is nothing to report")
        try:
            return cls(**_read(kept))
        except DAMAGE as error:
            words = "is damaged: it says what no run can be; put back a copy of it"
            raise LedgerError(f"the ledger {ledger.path} {words}") from error


def saved_settings(path: str | PathLike[str] | None) -> Settings | None:
    """The settings of the run in the ledger at ``path``; None where there is none yet."""
    if path is None or not has_run(Path(fspath(path))):
        return None
    with Ledger(path) as ledger:
        return Settings.read(ledger) if "seed" in ledger.settings else None


def _read(kept: Mapping[str, Any]) -> dict[str, Any]:
    sizes = _read_sizes(kept)
    n_features = sizes["shape"][1]
    units = _read_units(kept, n_features)
    inclusion = sizes["inclusion"]
    _require(inclusion is None or inclusion * units.n_units >= FEWEST_EXPECTED)
    _require(sizes["block_size"] * (units.n_units if inclusion else sizes["max_probe_size"] or 1) <= MOST_IN_A_BLOCK)
    words = {name: kept.get(name) for name in ("data", "target", "folds", "sample_weight", "scoring", "cv")}
    _require(all(text is None or isinstance(text, str) for text in words.values()))
    return {
        **sizes,
        **words,
        **_read_notes(kept, n_features),
        "criterion": str(kept.get("criterion")),
        "units": units,
        "schedule": _read_schedule(kept, units),
        **_read_rows(kept, units),
    }


def _require(*conditions: Any) -> None:
    if not all(bool(condition) for condition in conditions):
        raise ValueError("impossible")


def _read_sizes(kept: Mapping[str, Any]) -> dict[str, Any]:
    n_rows, n_features = kept["shape"]
    seed, inclusion, size = kept["seed"], kept.get("inclusion"), kept.get("max_probe_size")
    block_size, check_every = kept["block_size"], kept["check_every"]
    for number in (n_rows, n_features, size or 1, block_size, check_every):
        _require(isinstance(number, int), 1 <= number <= MOST_FEATURES)
    _require(isinstance(seed, int), 0 <= seed < 2**64, inclusion is None or 0 < inclusion < 1)
    return {
        "seed": seed,
        "shape": (n_rows, n_features),
        "max_probe_size": size or None,
        "inclusion": inclusion,
        "block_size": block_size,
        "check_every": math.lcm(check_every, block_size),
    }


def _read_units(kept: Mapping[str, Any], n_features: int) -> Units:
    if kept.get("units") is None:
        return Units.of_features(n_features)
    members, sizes = _unpacked(kept["unit_members"]), _unpacked(kept["unit_sizes"])
    always = _unpacked(kept["unit_always"])
    offsets = np.concatenate([[0], np.cumsum(sizes.astype(np.int64))])
    every = np.concatenate([members, always])
    _require(len(sizes), (sizes > 0).all(), offsets[-1] == len(members))
    _require(len(np.unique(every)) == len(every), every.min() >= 0, every.max() < n_features)
    return Units(n_features, Subsets(members, offsets), always)


def _read_schedule(kept: Mapping[str, Any], units: Units) -> Schedule | None:
    if kept.get("tournament") is None:
        return None
    n_probes, *ends = kept["tournament"]
    above, protected = kept["protected"][0], _unpacked(kept["protected_units"])
    for number in (n_probes, *ends, above):
        _require(isinstance(number, int), 0 <= number <= 2**53)
    _require((np.diff([0, *ends]) > 0).all(), ((protected >= 0) & (protected < units.n_units)).all())
    return Schedule(n_probes, tuple(ends), protected, above)


def _read_rows(kept: Mapping[str, Any], units: Units) -> dict[str, Any]:
    n_groups, shares, p_values = kept.get(ROW_GROUPS), kept.get("row_shares"), kept.get("univariate_p_values")
    unit = float(kept.get("row_unit", 1.0))
    _require(math.isfinite(unit), unit > 0)
    if n_groups is not None:
        shares = np.array(shares, dtype=np.float64)
        _require(shares.shape == (n_groups,), (shares > 0).all(), abs(shares.sum() - 1) < 1e-6)
    if p_values is not None:
        p_values = _unpacked(p_values, "<f4").astype(np.float64)
        _require(p_values.shape == (units.n_units,), ((p_values >= 0) & (p_values <= 1)).all())
    _require(kept.get("scale") in (None, "standard", "rank"))
    uneven = None if kept.get("uneven") is None else tuple(float(width) for width in kept["uneven"])
    _require(uneven is None or len(uneven) == 2)
    known = {"rows": kept.get("rows"), "scale": kept.get("scale"), "uneven": uneven}
    return {"row_shares": shares, "row_unit": unit, "univariate_p_values": p_values, **known}


def _read_notes(kept: Mapping[str, Any], n_features: int) -> dict[str, Any]:
    names, command = kept.get("feature_names"), kept.get("command")
    categorical = np.array(kept.get("categorical") or [], dtype=np.int64)
    _require(names is None or (len(names) == n_features and all(isinstance(name, str) for name in names)))
    _require(categorical.ndim == 1, ((categorical >= 0) & (categorical < n_features)).all())
    _require(command is None or all(isinstance(word, str) for word in command))
    version = None if kept.get("version") is None else str(kept["version"])
    return {"feature_names": names, "categorical": categorical, "command": command, "version": version}


def _packed(values: NDArray[Any], dtype: str = "<i4") -> str:
    return base64.b64encode(values.astype(dtype).tobytes()).decode()


def _unpacked(text: str, dtype: str = "<i4") -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype).astype(np.dtype(dtype).newbyteorder("="))
