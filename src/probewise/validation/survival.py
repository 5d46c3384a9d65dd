"""Survival outcomes: times of events, some of them censored, and the residuals that features are ranked by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ParameterError

Floats = NDArray[np.float64]
DTYPE = np.dtype([("event", "?"), ("time", "<f8")])
EVENT_NAMES = ("event", "status")
REMEDY = "give one event (True or 1: it happened; False or 0: censored) and one time of 0 or more for each row"


@dataclass(frozen=True, eq=False)
class Survival:
    """The time of each row, and whether the event happened at that time; if not, the row is censored.

    Attributes
    ----------
    event : array of bool of shape (n_samples,)
    time : array of float of shape (n_samples,)
    """

    event: NDArray[np.bool_]
    time: Floats

    @classmethod
    def of(cls, y: Any) -> Survival | None:
        """The survival outcome in y, or None if y is no such outcome.

        y is an array with two fields, as scikit-survival's ``Surv`` makes it, or a data frame of two columns. The
        event is the field of booleans, or the column called "event" or "status".
        """
        columns = _two_columns(y)
        if columns is None:
            return None
        event, time = columns
        if event.dtype.kind not in "b" and not np.isin(event, (0, 1)).all():
            other = next(value for value in event.tolist() if value not in (0, 1))
            raise ParameterError(f"y has an event {other!r}: {REMEDY}")
        try:
            time = np.asarray(time, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(f"y has times of type {time.dtype}: {REMEDY}") from None
        bad = np.flatnonzero(~(time >= 0) | np.isinf(time))
        if len(bad):
            raise ParameterError(
                f"y has a time that is negative or not finite in {len(bad)} rows (first: row {bad[0]}, "
                f"{time[bad[0]]:g}): {REMEDY}, and leave out rows without a time"
            )
        return cls(event.astype(bool), time)

    @property
    def array(self) -> NDArray[Any]:
        """The outcome as a structured array of events and times."""
        y = np.empty(len(self.time), DTYPE)
        y["event"], y["time"] = self.event, self.time
        return y

    def take(self, rows: Any) -> Survival:
        return Survival(self.event[rows], self.time[rows])

    def cumulative_hazard(self, risk: Floats | None = None) -> Floats:
        """Cumulative hazard at the time of each row (Nelson and Aalen; Breslow with the relative ``risk`` of rows)."""
        risk = np.ones(len(self.time)) if risk is None else risk
        times, place = np.unique(self.time, return_inverse=True)
        n_events = np.bincount(place, self.event, len(times))
        at_risk = np.cumsum(np.bincount(place, risk, len(times))[::-1])[::-1]
        return np.asarray(np.cumsum(n_events / at_risk)[place])

    def residuals(self, risk: Floats | None = None) -> Floats:
        """Martingale residuals: events minus those expected by the model without features, or with these risks.

        Their covariance with a feature is the score test of the Cox model. A row that has its event early has a
        residual near 1; a row that is observed for long and has none has a negative one.
        """
        self._require_events()
        hazard = self.cumulative_hazard(risk)
        return self.event - (hazard if risk is None else hazard * risk)

    def _require_events(self) -> None:
        if not self.event.any():
            raise ParameterError(
                f"y has no events among {len(self.event):,} rows, so there is nothing to predict: check which value "
                "of the event means that it happened"
            )
        if not (self.time > self.time[self.event].min()).any():
            raise ParameterError(
                "y has no row that was observed for longer than the first event, so no two rows can be compared: "
                "check the times"
            )


def _two_columns(y: Any) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Event and time of an array with two fields or a data frame with two columns; None if y is neither."""
    fields = getattr(getattr(y, "dtype", None), "names", None)
    if fields is not None:
        if len(fields) != 2 or y.ndim != 1:
            raise ParameterError(f"y has the fields {', '.join(fields)}: {REMEDY}, as an array with two fields")
        first, second = (np.asarray(y[name]) for name in fields)
        is_second = second.dtype.kind == "b" and first.dtype.kind != "b"
        return (second, first) if is_second or fields[1] in EVENT_NAMES else (first, second)
    if not hasattr(y, "columns") or len(getattr(y, "shape", ())) != 2 or y.shape[1] != 2:
        return None
    names = list(y.columns)
    first, second = (np.asarray(y[name]) for name in names)
    for event, time, name in ((first, second, names[0]), (second, first, names[1])):
        is_event = event.dtype.kind == "b" or str(name).lower() in EVENT_NAMES
        if is_event and time.dtype.kind in "iuf":
            return event, time
    are_binary = [part.dtype.kind in "iuf" and bool(np.isin(part, (0, 1)).all()) for part in (first, second)]
    number = second if are_binary[0] else first
    if sum(are_binary) == 1 and number.dtype.kind in "iuf" and (number >= 0).all():
        event_name, time_name = names if are_binary[0] else names[::-1]
        raise ParameterError(
            f"y has the columns {event_name!r} of 0 and 1 and {time_name!r} of numbers: for events and times, call the "
            "column of events 'event' or 'status'; for two targets, give y.to_numpy()"
        )
    return None
