"""Displays of a run: scores of the top features, and convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..display import shown
from ..validation.parameters import check_parameter, whole_number
from .drawing import (
    COLORS,
    ROW_HEIGHT,
    WIDTH,
    AxesDisplay,
    Floats,
    PanelsDisplay,
    draw_grid,
    literal,
    require_fitted,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(eq=False, repr=False)
class RankingDisplay(AxesDisplay):
    """Scores of the top features, best first, with one standard error on each side if it is known.

    For selectors with probes, the scores are drawn minus the average over all features: the average feature is at 0.

    Parameters
    ----------
    names : sequence of str
        The features, best first.
    scores : ndarray of shape (n_features,)
        Their scores.
    std_errors : ndarray of shape (n_features,), default=None
        Standard errors of the scores; None draws no error bars.
    measure : str, default="score"
        Label of the score.
    average : bool, default=False
        Whether 0 is the average feature and is marked by a line.
    """

    names: Sequence[str]
    scores: Floats
    _: KW_ONLY
    std_errors: Floats | None = None
    measure: str = "score"
    average: bool = False

    @classmethod
    def from_estimator(cls, selector: Any, *, top: int = 30, ax: Axes | None = None) -> RankingDisplay:
        """Draw the first ``top`` features of a fitted selector that have a score."""
        require_fitted(selector, "scores_", "ranking_", remedy="give a fitted selector of Probewise")
        check_parameter("top", top, whole_number(1))
        order = np.argsort(selector.ranking_, kind="stable")
        best = order[np.isfinite(selector.scores_[order])][:top]
        errors = getattr(selector, "std_errors_", None)
        run = getattr(selector, "run_", None)
        average = 0.0 if run is None else np.nanmean(run.coefficient()[0])
        measure = f"score of {type(selector).__name__}" if run is None else f"{run.ranked_by.upper()}, above average"
        return cls(
            selector._names(best),
            selector.scores_[best] - average,
            std_errors=None if errors is None else errors[best],
            measure=measure,
            average=run is not None,
        ).plot(ax)

    def _figsize(self) -> tuple[float, float]:
        return WIDTH, 1 + ROW_HEIGHT * len(self.names)

    def _draw(self, ax: Axes) -> None:
        rows, errors = np.arange(len(self.names)), self.std_errors
        if self.average:
            ax.axvline(0, color="0.45", linewidth=1)
        ax.errorbar(self.scores, rows, xerr=errors, fmt="o", color=COLORS[0], markersize=4)
        ax.set_yticks(rows, [literal(shown(str(name))) for name in self.names])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set(ylabel="feature", xlabel=self.measure + ("" if errors is None else " ± standard error"))
        draw_grid(ax)


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(PanelsDisplay):
    """C and relative C2 of a run by number of probes, and the C2 expected on any data.

    Parameters
    ----------
    history : dict of str to sequence of float
        ``history_`` of a fitted `DAF`.

    References
    ----------
    P. Somol, J. Grim, J. Filip, P. Pudil, *On stopping rules in dependency-aware feature ranking*, CIARP 2013, figures
    1 and 2.
    """

    history: Mapping[str, Any]

    @classmethod
    def from_estimator(cls, daf: Any, *, figure: Figure | None = None) -> ConvergenceDisplay:
        """Draw the run of a fitted DAF."""
        require_fitted(daf, "history_", remedy="give a fitted DAF")
        n_checks = len(daf.history_["probes"])
        if n_checks < 3:
            raise ValueError(
                f"C and C2 need at least three checks, and this run of {daf.n_probes_:,} probes had {n_checks}: "
                f"use more probes or a smaller check_every (now {daf.check_every})"
            )
        return cls(daf.history_).plot(figure)

    def _draw(self, panels: Any) -> None:
        measures = {"order_change": "C (positions)", "relative_change": "C2 / first C2"}
        probes = self.history["probes"]
        for axes, (measure, label) in zip(panels, measures.items(), strict=True):
            axes.plot(probes, self.history[measure], color=COLORS[0], label="DAF")
            axes.set_ylabel(label)
            draw_grid(axes, log="xy")
        expected = expected_change(len(probes))[1:]
        panels[1].plot(probes[1:], expected, color="0.3", linestyle=":", label="expected on any data")
        panels[1].set_xlabel("number of probes")
        panels[1].legend(frameon=False, fontsize="small")


def expected_change(n_checks: int) -> Floats:
    """Expected relative C2 at each check if coefficients are averages over equal groups of probes; NaN at the first.

    Between checks k and k + 1 it is sqrt(1 + 1/k) / (k + 1), divided by its value at k = 1.
    """
    k = np.arange(1, n_checks)
    return np.append(np.nan, np.sqrt(2 * (1 + 1 / k)) / (k + 1))
