"""A screen before the probes: a cheap method ranks all features, the best are probed, the rest follow in its order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone

from ..checks.stores import Stored
from ..criteria import Criterion
from ..criteria.base import Target
from ..criteria.scorer import stable_text
from ..probing.ledger import LedgerError, fingerprint
from ..probing.tally import positions
from ..probing.units import Columns, packed, unpacked
from .fsdd import FSDD

GROUPS_OF_NUMBERS = 5
COPIED_SHARE, COPIED_BYTES = 8, 2**28  # one in so many columns, and no more than this


@dataclass(frozen=True, eq=False)
class Screening:
    """What a screen did.

    Attributes
    ----------
    passed : the columns that are probed, ascending. rest : those that are not, best first.
    judge : the method, with its parameters, in words.
    """

    passed: Columns
    rest: Columns
    judge: str

    @classmethod
    def of(cls, screen: Any, X: Any, y: Any, *, criterion: Criterion, n_jobs: int | None) -> Screening | None:
        """Fit the screen that a parameter asks for; None where everything passes."""
        judge, cut = as_screen(screen)
        n_features = X.shape[1]
        n_passed = None if cut is None else _count(cut, n_features)
        if n_passed == n_features:
            return None
        words = ""
        if judge is None:
            judge = FSDD(n_jobs=n_jobs)
            y, words = _classes(y, criterion, screen)
        judge = clone(judge).fit(X, y)
        order = _order_of(judge, n_features, screen)
        does_pass = np.zeros(n_features, dtype=bool)
        does_pass[judge.get_support() if n_passed is None else order[:n_passed]] = True
        if does_pass.all():
            return None
        if not does_pass.any():
            raise ValueError(f"screen={screen!r} let none of {n_features:,} features pass: give a more generous one")
        return cls(np.flatnonzero(does_pass).astype(np.int32), order[~does_pass[order]], _described(judge) + words)

    @classmethod
    def of_ledger(cls, settings: Mapping[str, Any], n_features: int) -> Screening | None:
        """The screen of a run that was kept; None where it had none."""
        if settings.get("screen") is None:
            return None
        try:
            passed, rest = (unpacked(settings[name]) for name in ("screen_passed", "screen_rest"))
            is_whole = np.array_equal(np.sort(np.concatenate([passed, rest])), np.arange(n_features))
        except (KeyError, ValueError, TypeError):
            is_whole = False
        if not is_whole or not len(passed) or (np.diff(passed) <= 0).any():
            raise LedgerError(f"the ledger is damaged: it does not say which of {n_features:,} features were probed")
        return cls(passed, rest, str(settings["screen"]).partition(" by ")[2])

    @property
    def n_features(self) -> int:
        return len(self.passed) + len(self.rest)

    @property
    def method(self) -> str:
        return self.judge.partition("(")[0]

    @property
    def is_default(self) -> bool:
        """Whether it is what a number alone asks for."""
        return self.judge.startswith(_described(FSDD()))

    @property
    def sentence(self) -> str:
        return f"{self.n_features:,} features were screened by {self.method} to {len(self.passed):,} before probing"

    @property
    def settings(self) -> dict[str, Any]:
        """What two runs must have in common to be the same run."""
        kept = f"{len(self.passed)} of {self.n_features} by {self.judge}"
        return {"screen": kept, "screened": fingerprint(self.passed)}

    @property
    def notes(self) -> dict[str, str]:
        """What the ledger keeps so that the ranking can be told from it alone: 5 bytes a feature."""
        return {"screen_passed": packed(self.passed), "screen_rest": packed(self.rest)}

    def seen(self, X: Any) -> tuple[Any, Columns | None]:
        """What of X the criterion is bound to, and which of its columns passed (None: all).

        Where it is small, a copy of the columns that passed: they lie close together, each in one piece, and less goes
        to other processes. Else X as it is, of which no other column is asked for.
        """
        n_passed = len(self.passed)
        if isinstance(X, Stored) or COPIED_SHARE * n_passed > self.n_features:
            return X, self.passed
        if sp.issparse(X):
            return X.tocsc()[:, self.passed], None
        if n_passed * X.shape[0] * X.itemsize > COPIED_BYTES:
            return X, self.passed
        return np.asfortranarray(X[:, self.passed]), None


def as_screen(screen: Any) -> tuple[Any, Any]:
    """(method or None for the default, how many pass or None for what the method selects)."""
    if _is_cut(screen):
        return None, screen
    if _is_selector(screen):
        return screen, None
    if isinstance(screen, tuple) and len(screen) == 2 and _is_selector(screen[0]) and _is_cut(screen[1]):
        return screen[0], screen[1]
    raise ValueError(
        f"screen={screen!r}: give how many features pass, a number or a share in (0, 1], or a selector such as "
        "FSDD(20_000), or a pair such as (FSDD(), 20_000)"
    )


def _is_cut(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int | np.integer):
        return int(value) >= 1
    return isinstance(value, float | np.floating) and 0 < float(value) <= 1


def _is_selector(value: Any) -> bool:
    return isinstance(value, BaseEstimator) and hasattr(value, "get_support")


def _count(cut: Any, n_features: int) -> int:
    return min(int(cut), n_features) if isinstance(cut, int | np.integer) else max(1, int(cut * n_features))


def _classes(y: Any, criterion: Criterion, screen: Any) -> tuple[Any, str]:
    """y as FSDD wants it: numbers in five groups from low to high, as equal as ties allow."""
    if y is None:
        raise ValueError(
            f"screen={screen!r} ranks features by what they tell about y, and there is no y: give a selector that "
            "needs none, for example (BIF(criterion=Separability('clusters')), 0.1)"
        )
    target = Target.of(y, getattr(criterion, "task", "auto"))
    if target.is_classification:
        return y, ""
    places = (rankdata(target.values) - 0.5) / len(target.values)
    return (places * GROUPS_OF_NUMBERS).astype(np.int64), f" on y in {GROUPS_OF_NUMBERS} groups"


def _order_of(judge: Any, n_features: int, screen: Any) -> Columns:
    """All columns, best first, by the fitted method's ranking or else its scores; ties to the lower column."""
    for name in ("ranking_", "scores_"):
        values = getattr(judge, name, None)
        if values is not None and np.shape(values) == (n_features,):
            places = values if name == "ranking_" else positions(np.asarray(values, dtype=np.float64))
            return np.argsort(places, kind="stable").astype(np.int32)
    raise ValueError(f"screen={screen!r} gives features neither a ranking nor scores: use one that does, as FSDD()")


def _described(judge: Any) -> str:
    """The method in words that do not depend on how many workers it has."""
    again = clone(judge)
    again.set_params(**{name: None for name in ("n_jobs", "verbose") if name in again.get_params(deep=False)})
    return stable_text(again)
