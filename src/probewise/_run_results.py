"""What a fitted selector shows of its run of probes: ledger, errors about rows and probes, luck, certainty, pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ._selector import WrapperSelector
from .criteria.base import Criterion, Target
from .engine.certainty import Certainty
from .engine.interactions import Group, Interactions, best_probed, columns_of, correlations, interactions_between
from .engine.ledger import Ledger
from .engine.probes import ProbePlan
from .engine.row_effects import WhichRows, which_rows
from .engine.run import Run
from .engine.settings import DEFAULT_FDR
from .engine.tally import Tally
from .engine.units import Units
from .stability import cw_rel
from .validation.parameters import is_whole, require_rate, require_whole


class ShowsRun(WrapperSelector):
    """Attributes and methods of a selector that has a ``run_``, a ranking and scores by a coefficient."""

    run_: Run
    row_groups_: NDArray[np.int64] | None
    criterion_: Criterion

    # Parameters, or the same in every run of a method.
    coefficient: str
    max_probe_size: int | None
    inclusion: float | None
    check_every: int
    block_size: int | None

    @property
    def plan_(self) -> ProbePlan:
        return self.run_.feature_plan

    @property
    def ledger_(self) -> Ledger:
        return self.run_.ledger

    @property
    def tally_(self) -> Tally:
        return self.run_.feature_tally

    @property
    def n_probes_(self) -> int:
        return self.run_.tally.n_probes

    @property
    def stop_reason_(self) -> str:
        return self.run_.stop_reason or ""

    @property
    def units_(self) -> Units:
        return self.run_.units

    @property
    def history_(self) -> dict[str, NDArray[Any]]:
        """C, C2, relative C2 and the features left out, at every look; and the round in which each feature left."""
        check_is_fitted(self, "run_")
        return self.run_.history

    @property
    def std_errors_(self) -> NDArray[np.float64]:
        """About other rows and other probes where that is known, else about other probes."""
        return self.run_.std_errors(self.coefficient)

    @property
    def probe_std_errors_(self) -> NDArray[np.float64]:
        """How far the scores may be off for the luck of which probes were drawn."""
        return self.run_.coefficient(self.coefficient)[1]

    @property
    def row_std_errors_(self) -> NDArray[np.float64]:
        """How far they may be off for the luck of which rows, and which probes, there are."""
        self._require_rows("row_std_errors_", self.run_.row_effects)
        return self.run_.row_errors(self.coefficient)

    @property
    def p_values_(self) -> NDArray[np.float64]:
        """P-value of each feature: univariate and conditional tests combined."""
        p_values = self.run_.p_values()
        self._require_rows("p_values_", p_values)
        assert p_values is not None
        return p_values

    def stands_out(self, fdr: float = DEFAULT_FDR) -> NDArray[np.bool_]:
        """Which features beat luck, on other rows as well.

        Parameters
        ----------
        fdr : float, default=0.1
            The share of false ones among them that is allowed, on average.
        """
        check_is_fitted(self, "run_")
        require_rate("fdr", fdr)
        found = self.run_.stands_out(fdr)
        self._require_rows("stands_out", found)
        assert found is not None
        return found

    def expected_stability(self, top: int = 20) -> float:
        """How much of its top features the same method would share between halves of the rows, from this run alone.

        CW_rel, 0 to 1, of `probewise.stability`; a study of repeated halves measures it. Features of a group count as
        one. Of a tournament it is that of its first round.
        """
        check_is_fitted(self, "run_")
        n_units = self.run_.units.n_units
        if not is_whole(top, 1, n_units - 1):
            raise ValueError(
                f"top={top!r} must be a whole number from 1 to {n_units - 1}, fewer than there are features"
            )
        self._require_rows("expected_stability", self.run_.row_effects)
        return cw_rel(self.run_.expected_halves(int(top)), self.run_.plan.n_features)

    def which_rows(self, top: int = 20, *, y: Any = None) -> WhichRows:
        """Which rows the first ``top`` features help: what each did for every group of rows.

        With y, the target of ``fit``, groups of a class are side by side. Of a tournament it is what they did in the
        first round.
        """
        check_is_fitted(self, "run_")
        require_whole("top", top, 1)
        self._require_rows("which_rows", self.run_.row_effects)
        assert self.row_groups_ is not None
        best = best_probed(self.ranking_, self.scores_)
        best = best[self.run_.units.unit_of[best] >= 0][:top]
        is_of_classes = y is not None and Target.of(y, getattr(self.criterion_, "task", "auto")).is_classification
        effects = self.run_.settings.row_unit * self.run_.effects_by_group(best)
        return which_rows(effects, self.row_groups_, self._named(best), y if is_of_classes else None)

    def _require_rows(self, name: str, known: Any) -> None:
        if known is None:
            raise AttributeError(
                f"{name} is not known: this run kept nothing about rows (row_effects=False, or a criterion and score "
                "that give J only)"
            )

    def coefficients(self, name: str) -> NDArray[np.float64]:
        """Another coefficient of the same run, replayed from the ledger."""
        check_is_fitted(self, "run_")
        return self.run_.coefficient(name)[0]

    def certainty(self, coefficient: str | None = None, *, about: str = "rows") -> Certainty:
        """How sure the ranking is: intervals of coefficients and ranks, and the chance to be in the true top k.

        Of the coefficient of the run, or another one. True is what endless probes of endless rows like these would
        give, or, about "probes" and where nothing is known of rows, endless probes of these rows. For
        "daf2" that is with J scaled by the deviations found so far; "regression" is shrunken, and its intervals are of
        what the penalty leaves: they say how steady the number is, not how large the effect. Features that were not
        probed, or not up to the last round, are NaN, and those of a group count one by one.
        """
        check_is_fitted(self, "run_")
        if about not in ("rows", "probes"):
            raise ValueError(f"about={about!r}: choose 'rows' or 'probes'")
        names = getattr(self, "feature_names_in_", None)
        known = self.run_.certainty(coefficient or self.coefficient, about_rows=about == "rows")
        return known if names is None else replace(known, names=[str(name) for name in names])

    def interactions(self, top: int = 20) -> Interactions:
        """What the first ``top`` features do in pairs, by the ledger: which help, and which replace each other."""
        check_is_fitted(self, "run_")
        if not is_whole(top, 2):
            raise ValueError(f"top={top!r} must be a whole number of at least 2: pairs are made of them")
        best = best_probed(self.ranking_, self.scores_)[:top]
        return interactions_between(self.run_, best, self._named(best))

    def redundancy(self, X: Any = None, top: int = 20) -> list[Group]:
        """Groups among the first ``top`` features that stand in for one another, the best of each group first.

        By the probes: what one is worth is gone where the other is. With X, the data of ``fit``, also by the columns:
        those that are nearly the same (|correlation| of 0.9 and more).
        """
        found = self.interactions(top)
        return found.groups(None if X is None else correlations(columns_of(self.as_numbers(X), found.features)))
