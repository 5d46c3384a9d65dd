"""A screen before the probes: a cheap method ranks all features, and only the best of them are probed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone

from .criteria import Criterion
from .criteria.base import Target
from .criteria.identity import stable_text
from .engine.tally import positions
from .engine.units import Columns, Screening
from .filters.fsdd import FSDD
from .validation.errors import Parameter, ParameterError
from .validation.parameters import is_whole

GROUPS_OF_NUMBERS = 5


def screened(screen: Any, X: Any, y: Any, *, criterion: Criterion, n_jobs: int | None) -> Screening | None:
    """Fit the screen that a parameter asks for; None where everything passes."""
    method, cut = as_screen(screen)
    n_features = X.shape[1]
    n_passed = None if cut is None else _count(cut, n_features)
    if n_passed == n_features:
        return None
    remark = ""
    if method is None:
        method = FSDD(n_jobs=n_jobs)
        y, remark = _classes(y, criterion, screen)
    method = clone(method).fit(X, y)
    order = _order_of(method, n_features, screen)
    does_pass = np.zeros(n_features, dtype=bool)
    does_pass[method.get_support() if n_passed is None else order[:n_passed]] = True
    if does_pass.all():
        return None
    if not does_pass.any():
        raise ParameterError(
            Parameter("screen", screen), f" let none of {n_features:,} features pass: give a more generous one"
        )
    passed = np.flatnonzero(does_pass).astype(np.int32)
    return Screening(passed, order[~does_pass[order]], _described(method) + remark)


def as_screen(screen: Any) -> tuple[Any, Any]:
    """(method or None for the default, how many pass or None for what the method selects)."""
    if _is_cut(screen):
        return None, screen
    if _is_selector(screen):
        return screen, None
    if isinstance(screen, tuple) and len(screen) == 2 and _is_selector(screen[0]) and _is_cut(screen[1]):
        return screen[0], screen[1]
    raise ParameterError(
        Parameter("screen", screen),
        ": give how many features pass, a number or a share in (0, 1], or a selector such as FSDD(20_000), or a pair "
        "such as (FSDD(), 20_000)",
    )


def _is_cut(value: Any) -> bool:
    return is_whole(value, 1) or (isinstance(value, float | np.floating) and 0 < float(value) <= 1)


def _is_selector(value: Any) -> bool:
    return isinstance(value, BaseEstimator) and hasattr(value, "get_support")


def _count(cut: Any, n_features: int) -> int:
    return min(int(cut), n_features) if isinstance(cut, int | np.integer) else max(1, int(cut * n_features))


def _classes(y: Any, criterion: Criterion, screen: Any) -> tuple[Any, str]:
    """y as FSDD wants it: numbers in five groups from low to high, as equal as ties allow."""
    if y is None:
        raise ParameterError(
            Parameter("screen", screen),
            " ranks features by what they tell about y, and there is no y: give a selector that needs none, for "
            "example (BIF(criterion=Separability('clusters')), 0.1)",
        )
    target = Target.of(y, getattr(criterion, "task", "auto"))
    if target.is_classification:
        return y, ""
    places = (rankdata(target.values) - 0.5) / len(target.values)
    return (places * GROUPS_OF_NUMBERS).astype(np.int64), f" on y in {GROUPS_OF_NUMBERS} groups"


def _order_of(method: Any, n_features: int, screen: Any) -> Columns:
    """All columns, best first, by the fitted method's ranking or else its scores; ties to the lower column."""
    for name in ("ranking_", "scores_"):
        values = getattr(method, name, None)
        if values is not None and np.shape(values) == (n_features,):
            places = values if name == "ranking_" else positions(np.asarray(values, dtype=np.float64))
            return np.argsort(places, kind="stable").astype(np.int32)
    raise ParameterError(
        Parameter("screen", screen), " gives features neither a ranking nor scores: use one that does, as FSDD()"
    )


def _described(method: Any) -> str:
    """The method in words that do not depend on how many workers it has."""
    again = clone(method)
    again.set_params(**{name: None for name in ("n_jobs", "verbose") if name in again.get_params(deep=False)})
    return stable_text(again)
