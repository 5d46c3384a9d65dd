"""The data of a run as a report sees them: checked to be the run's, and described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from .._selector import ANY_NUMBERS
from ..criteria.base import Target
from ..engine.fingerprints import fingerprint
from ..validation.stores import column_slices
from ..validation.tables import extremes, number_categories
from .findings import Findings

NAMED = 10  # columns with missing values, or constant ones


@dataclass(frozen=True, eq=False)
class Data:
    """The rows a ranking was made on, what is to be predicted, and what ``fit`` was given of each row.

    ``given`` is X as it came, with the names of a frame.
    """

    given: Any
    X: Any
    y: NDArray[Any] | None
    target: Target | None
    of_rows: dict[str, Any]

    @property
    def is_classification(self) -> bool:
        return self.target is not None and self.target.is_classification

    @property
    def fewest_of_a_class(self) -> int:
        """Rows of the smallest class."""
        assert self.target is not None
        return int(np.bincount(self.target.values).min())


def checked_data(found: Findings, X: Any, y: Any, **of_rows: Any) -> Data:
    """The data, and what else is known ``of_rows``; refused where the run knows that its own were others."""
    as_given, categories = X, (-1, found.categorical.astype(np.int32)) if len(found.categorical) else ()
    X, _ = number_categories(X, *categories)
    if found.selector is not None:
        X = validate_data(found.selector, X, reset=False, **ANY_NUMBERS)
    else:
        X = check_array(X, **ANY_NUMBERS)
    if found.shape is not None and X.shape != found.shape:
        given, own = (f"{rows:,} rows and {features:,} features" for rows, features in (X.shape, found.shape))
        raise ValueError(f"the data have {given}, those of the run {own}: give the same table")
    if y is not None:
        check_consistent_length(X, y)
        y = np.asarray(y)
    for what, kept, given in zip(("data", "target"), found.fingerprints, (X, y), strict=True):
        if kept is not None and given is not None and fingerprint(given) != kept:
            raise ValueError(
                f"the {what} given are not those of the run: give the same table, target and ignored columns"
            )
    target = None if y is None else Target.of(y, getattr(found.criterion, "task", "auto"))
    known = {name: values for name, values in of_rows.items() if values is not None}
    return Data(as_given, X.tocsc() if sp.issparse(X) else X, y, target, known)


def described(found: Findings, data: Data) -> dict[str, Any]:
    """Shape, classes or values of the target, missing cells and constant columns."""
    X, target = data.X, data.target
    (low, high), missing = extremes(X, allow_nan=True), _missing(X)
    columns = {"missing": np.flatnonzero(missing).tolist(), "constant": np.flatnonzero(low == high).tolist()}
    description: dict[str, Any] = {
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "sparse": bool(sp.issparse(X)),
        "missing_cells": int(missing.sum()),
        **{f"{kind}_columns": len(some) for kind, some in columns.items()},
        **{f"{kind}_names": [found.names[column] for column in some[:NAMED]] for kind, some in columns.items()},
    }
    if target is None:
        return description
    if target.classes is None:
        y = target.values
        measures = {"least": y.min(), "mean": y.mean(), "largest": y.max(), "deviation": y.std()}
        values = {name: float(value) for name, value in measures.items()}
        return {**description, "task": "regression", "target_values": values}
    counts = np.bincount(target.values, minlength=len(target.classes)).tolist()
    classes = [{"label": str(label), "rows": rows} for label, rows in zip(target.classes, counts, strict=True)]
    return {**description, "task": "classification", "classes": classes}


def _missing(X: Any) -> NDArray[np.int64]:
    """How many values are missing in each column."""
    if sp.issparse(X):
        cells = X.tocoo()
        return np.bincount(cells.col[np.isnan(cells.data)], minlength=X.shape[1])
    return np.concatenate([np.isnan(X[:, part]).sum(axis=0) for part in column_slices(X)])
