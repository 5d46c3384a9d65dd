"""The record of a run: its settings, how they are written to a ledger, read from one, and checked."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fingerprints import fingerprint
from .ledger import ROW_GROUPS, Ledger, LedgerError
from .probes import FEWEST_EXPECTED, ProbePlan, Subsets
from .row_effects import RowGroups
from .schedule import Narrowing, PlanInRounds, Schedule, TournamentPlan
from .units import Screening, Units, one_each

Floats = NDArray[np.float64]
DEFAULT_PROBE_SIZE = 200
COMMAND: ContextVar[list[str] | None] = ContextVar("COMMAND", default=None)
DEFAULT_FDR = 0.1
UNKNOWN = " (unnamed)"  # ends the text of a function or an object that has no id
# What ledgers from before these settings were kept were run with.
CHECK_EVERY, BLOCK_SIZE = 400, 50
MOST_IN_A_BLOCK = 2**30  # features of all its probes
MOST_FEATURES = 10**7  # a file that claims more would only make us run out of memory
DAMAGE = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError)


@contextmanager
def begun_by(command: list[str]) -> Iterator[None]:
    """Records made inside of it keep these arguments of the command line."""
    token = COMMAND.set(command)
    try:
        yield
    finally:
        COMMAND.reset(token)


@dataclass(frozen=True, eq=False)
class Record:
    """What makes a run what it is, and what is kept with it."""

    seed: int
    shape: tuple[int, int]  # rows and features of the table
    criterion: str  # in words; "" where the run is not kept in a file
    units: Units
    max_probe_size: int | None = None
    inclusion: float | None = None
    screening: Screening | None = None
    narrowing: Narrowing | Schedule | None = None  # how the run goes on among fewer features, if it does
    categorical: NDArray[np.int64] | None = None  # the columns that are categories
    scoring: str | None = None  # the score that J is, by name
    # Fingerprints of the data, None where the run is not kept in a file.
    data: str | None = None
    target: str | None = None
    folds: str | None = None
    sample_weight: str | None = None
    check_every: int = CHECK_EVERY
    block_size: int = BLOCK_SIZE
    feature_names: list[str] | None = None
    cv: str | None = None  # in words
    costs: Floats | None = None
    fdr: float | None = None  # of a run with decoys
    decoys_by_groups: bool = False  # shuffled by whole groups of rows
    version: str | None = None  # of Probewise, that began the run
    command: list[str] | None = None  # the arguments of the command line, if it began the run
    row_shares: Floats | None = None  # of J, for each group of rows of which the ledger keeps what it gave
    row_unit: float = 1.0  # in which that is kept
    rows: str | None = None  # which rows are in which group, as a fingerprint
    scale: str | None = None  # on which columns were brought before they were probed
    uneven: tuple[float, float] | None = None  # least and largest deviation, if wide columns rule the criterion
    chances_alone: Floats | None = None  # of each unit, that luck gives as much as it tells on its own

    @classmethod
    def of_features(cls, n_features: int) -> Record:
        """Of probes without a table, whose units are features."""
        return cls(0, (0, n_features), "", Units.of_features(n_features))

    @property
    def method(self) -> str:
        """The selector that the run is of."""
        return "Tournament" if isinstance(self.narrowing, Schedule) else "DAF"

    def first_plan(self) -> ProbePlan:
        """The plan over units that the run begins with."""
        n_units = self.units.n_units
        kinds = {Narrowing: PlanInRounds, Schedule: TournamentPlan}
        kind = ProbePlan if self.narrowing is None else kinds[type(self.narrowing)]
        size = DEFAULT_PROBE_SIZE if self.max_probe_size is None else self.max_probe_size
        return kind(n_units, min(size, n_units), self.inclusion, self.seed)

    def effort(self, n_probes: int) -> tuple[float, float]:
        """What so many probes take, in any unit, and the seconds between them, as far as that is known beforehand."""
        if isinstance(self.narrowing, Schedule):
            return self.narrowing.effort(self.first_plan(), n_probes)
        return float(n_probes), 0.0

    def with_data(self, X: Any, y: Any, splits: Any, sample_weight: Any, rows: RowGroups | None) -> Record:
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

    def write(self, path: str | PathLike[str] | None) -> Ledger:
        """The ledger at ``path``, or in memory, begun with this record; one that is there must hold this very run."""
        if path is None:
            return Ledger(settings={ROW_GROUPS: None if self.row_shares is None else len(self.row_shares)})
        unnamed = [text for text in (self.criterion, self.scoring) if text is not None and UNKNOWN in text]
        if unnamed:
            raise LedgerError(
                f"the ledger {fspath(path)} needs a name for {unnamed[0]}: a function may change between two runs; "
                "give criterion=Function(my_function, name='first'), or Scorer(estimator, scoring=..., name='first')"
            )
        return Ledger(path, self.settings(), notes=self.notes())

    def settings(self) -> dict[str, Any]:
        """What two runs must have in common to be the same run, as plain JSON values."""
        settings: dict[str, Any] = {
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
            "screen": None,
            "units": None,
            "narrow": None,
            "categorical": None if self.categorical is None else self.categorical.tolist() or None,
            ROW_GROUPS: None if self.row_shares is None else len(self.row_shares),
            "rows": self.rows,
            "scale": self.scale,
        }
        if isinstance(self.narrowing, Schedule):
            schedule = self.narrowing
            settings["tournament"] = [schedule.n_probes, *schedule.ends]
            settings["protected"] = [schedule.protected_above, fingerprint(schedule.protected)]
        elif self.narrowing is not None:
            settings["narrow"] = self.narrowing.share
            settings["narrow_to"] = self.narrowing.fewest
            settings["narrow_blocks"] = self.narrowing.block_size
            settings["narrow_looks"] = self.check_every
        if self.screening is not None:
            passed = self.screening.passed
            settings["screen"] = f"{len(passed)} of {self.screening.n_features} by {self.screening.description}"
            settings["screened"] = fingerprint(passed)
        if self._tells_units:
            units = self.units
            parts = (units.members.indices, units.members.offsets, units.kept, units.dropped)
            settings["units"] = fingerprint(*parts) + f"/{units.n_decoys}{' by groups' * self.decoys_by_groups}"
        return settings

    def notes(self) -> dict[str, Any]:
        """What else is kept, so that a ranking can be made from the ledger alone; columns take 5 bytes each."""
        notes: dict[str, Any] = {
            "feature_names": self.feature_names,
            "version": self.version,
            "block_size": self.block_size,
            "check_every": self.check_every,
            "cv": self.cv,
        }
        if self.screening is not None:
            notes["screen_passed"] = _packed(self.screening.passed)
            notes["screen_rest"] = _packed(self.screening.rest)
        if self._tells_units:
            notes["unit_members"] = _packed(self.units.members.indices)
            notes["unit_sizes"] = _packed(self.units.members.sizes)
            notes["unit_always"] = _packed(self.units.kept)
            notes["unit_dropped"] = _packed(self.units.dropped)
            notes["unit_decoys"] = self.units.n_decoys
        if isinstance(self.narrowing, Schedule):
            notes["protected_units"] = _packed(self.narrowing.protected)
        if self.costs is not None:
            notes["costs"] = self.costs.tolist()
        if self.fdr is not None:
            notes["fdr"] = self.fdr
        if self.command is not None:
            notes["command"] = self.command
        if self.row_shares is not None:
            notes["row_shares"], notes["row_unit"] = self.row_shares.tolist(), self.row_unit
        if self.uneven is not None:
            notes["uneven"] = list(self.uneven)
        if self.chances_alone is not None:
            notes["chances_alone"] = _packed(self.chances_alone, "<f4")
        return notes

    @property
    def _tells_units(self) -> bool:
        """Whether units are more than the features, or those that passed the screen."""
        if self.screening is not None:
            return not np.array_equal(self.units.members.indices, self.screening.passed)
        return not self.units.are_features or (self.categorical is not None and len(self.categorical) > 0)

    # ---- read

    @classmethod
    def read(cls, ledger: Ledger) -> Record:
        """The record of a run that was kept. A ledger is a file like any other: what it says must be possible."""
        kept = ledger.settings
        if "shape" not in kept or "seed" not in kept:
            raise ValueError(f"the ledger {ledger.path} does not say what data it is of, so there is nothing to report")
        try:
            return cls(**_read(kept))
        except DAMAGE as error:
            words = "is damaged: it says what no run can be; put back a copy of it"
            raise LedgerError(f"the ledger {ledger.path} {words}") from error


def _read(kept: Mapping[str, Any]) -> dict[str, Any]:
    sizes = _read_sizes(kept)
    n_features = sizes["shape"][1]
    screening = _read_screening(kept, n_features)
    units = _read_units(kept, n_features, screening)
    narrowing = _read_narrowing(kept, units)
    inclusion, fewest = sizes["inclusion"], min(units.n_units, getattr(narrowing, "fewest", units.n_units))
    _require(inclusion is None or inclusion * fewest >= FEWEST_EXPECTED)
    _require(sizes["block_size"] * (units.n_units if inclusion else sizes["max_probe_size"] or 1) <= MOST_IN_A_BLOCK)
    words = {name: kept.get(name) for name in ("data", "target", "folds", "sample_weight", "scoring", "cv")}
    _require(all(text is None or isinstance(text, str) for text in words.values()))
    return {
        **sizes,
        **words,
        **_read_notes(kept, n_features),
        "criterion": str(kept.get("criterion")),
        "screening": screening,
        "units": units,
        "narrowing": narrowing,
        **_read_rows(kept, units),
    }


def _require(*conditions: Any) -> None:
    if not all(bool(condition) for condition in conditions):
        raise ValueError("impossible")


def _read_sizes(kept: Mapping[str, Any]) -> dict[str, Any]:
    n_rows, n_features = kept["shape"]
    seed, inclusion, size = kept["seed"], kept.get("inclusion"), kept.get("max_probe_size")
    block_size, check_every = kept.get("block_size", BLOCK_SIZE), kept.get("check_every", CHECK_EVERY)
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


def _read_screening(kept: Mapping[str, Any], n_features: int) -> Screening | None:
    if kept.get("screen") is None:
        return None
    passed, rest = _unpacked(kept["screen_passed"]), _unpacked(kept["screen_rest"])
    _require(np.array_equal(np.sort(np.concatenate([passed, rest])), np.arange(n_features)))
    _require(len(passed), (np.diff(passed) > 0).all())
    return Screening(passed, rest, str(kept["screen"]).partition(" by ")[2])


def _read_units(kept: Mapping[str, Any], n_features: int, screening: Screening | None) -> Units:
    if kept.get("units") is None:
        return Units.of_features(n_features) if screening is None else Units(n_features, one_each(screening.passed))
    members, sizes = _unpacked(kept["unit_members"]), _unpacked(kept["unit_sizes"])
    always, dropped, n_decoys = _unpacked(kept["unit_always"]), _unpacked(kept["unit_dropped"]), kept["unit_decoys"]
    offsets = np.concatenate([[0], np.cumsum(sizes.astype(np.int64))])
    every = np.concatenate([members, always, dropped])
    _require(isinstance(n_decoys, int), 0 <= n_decoys < len(sizes), (sizes > 0).all(), offsets[-1] == len(members))
    _require(len(np.unique(every)) == len(every), every.min() >= 0, every.max() < n_features + n_decoys)
    return Units(n_features, Subsets(members, offsets), always, dropped, n_decoys)


def _read_narrowing(kept: Mapping[str, Any], units: Units) -> Narrowing | Schedule | None:
    if kept.get("tournament") is not None:
        n_probes, *ends = kept["tournament"]
        above, protected = kept["protected"][0], _unpacked(kept["protected_units"])
        for number in (n_probes, *ends, above):
            _require(isinstance(number, int), 0 <= number <= 2**53)
        _require((np.diff([0, *ends]) > 0).all(), ((protected >= 0) & (protected < units.n_units)).all())
        return Schedule(n_probes, tuple(ends), protected, above)
    if kept.get("narrow") is None:
        return None
    share, fewest = kept["narrow"], kept["narrow_to"]
    _require(isinstance(share, float), 0 < share < 1, isinstance(fewest, int), fewest > 0)
    return Narrowing(share, fewest, int(kept.get("block_size", BLOCK_SIZE)))


def _read_rows(kept: Mapping[str, Any], units: Units) -> dict[str, Any]:
    n_groups, shares, chances = kept.get(ROW_GROUPS), kept.get("row_shares"), kept.get("chances_alone")
    unit = float(kept.get("row_unit", 1.0))
    _require(math.isfinite(unit), unit > 0)
    if n_groups is not None:
        shares = np.array(shares, dtype=np.float64)
        _require(shares.shape == (n_groups,), (shares > 0).all(), abs(shares.sum() - 1) < 1e-6)
    if chances is not None:
        chances = _unpacked(chances, "<f4").astype(np.float64)
        _require(chances.shape == (units.n_units,), ((chances >= 0) & (chances <= 1)).all())
    _require(kept.get("scale") in (None, "standard", "rank"))
    uneven = None if kept.get("uneven") is None else tuple(float(width) for width in kept["uneven"])
    _require(uneven is None or len(uneven) == 2)
    known = {"rows": kept.get("rows"), "scale": kept.get("scale"), "uneven": uneven}
    return {"row_shares": shares, "row_unit": unit, "chances_alone": chances, **known}


def _read_notes(kept: Mapping[str, Any], n_features: int) -> dict[str, Any]:
    names, command, fdr = kept.get("feature_names"), kept.get("command"), kept.get("fdr")
    costs = None if kept.get("costs") is None else np.array(kept["costs"], dtype=np.float64)
    categorical = np.array(kept.get("categorical") or [], dtype=np.int64)
    _require(names is None or (len(names) == n_features and all(isinstance(name, str) for name in names)))
    _require(costs is None or (costs.shape == (n_features,) and (np.isfinite(costs) & (costs > 0)).all()))
    _require(categorical.ndim == 1, ((categorical >= 0) & (categorical < n_features)).all())
    _require(fdr is None or (isinstance(fdr, float) and 0 < fdr < 1))
    _require(command is None or all(isinstance(word, str) for word in command))
    notes = {"feature_names": names, "costs": costs, "categorical": categorical, "fdr": fdr, "command": command}
    version = None if kept.get("version") is None else str(kept["version"])
    return {**notes, "version": version}


def _packed(values: NDArray[Any], dtype: str = "<i4") -> str:
    return base64.b64encode(values.astype(dtype).tobytes()).decode()


def _unpacked(text: str, dtype: str = "<i4") -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype).astype(np.dtype(dtype).newbyteorder("="))
