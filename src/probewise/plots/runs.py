"""Pictures of a selector's run: scores of the best features, convergence, interactions of pairs, rows helped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..engine.interactions import CHANCE, FEWEST_IN_A_CELL
from ..engine.progress import shown
from ..engine.row_effects import WhichRows
from ..study import deviation
from ..validation.parameters import require_whole
from .drawing import (
    COLOURS,
    ROW,
    WIDTH,
    AxesDisplay,
    Floats,
    PanelsDisplay,
    draw_band,
    draw_grid,
    literal,
    require_fitted,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Histories = Mapping[str, Sequence[Mapping[str, Any]]]
NEEDS_DAF = "give a fitted DAF"


@dataclass(eq=False, repr=False)
class RankingDisplay(AxesDisplay):
    """The scores of the best features, the best on top, with one standard error to each side where it is known.

    Of a selector that makes probes they are drawn less the mean score of all features: the average feature is at 0.

    Parameters
    ----------
    names : sequence of str
        The features, best first.
    scores : ndarray of shape (n_features,)
        The score of each.
    std_errors : ndarray of shape (n_features,), default=None
        The standard error of each score; None draws no bars.
    measure : str, default="score"
        What the score is, for the label.
    average : bool, default=False
        Whether 0 is the average feature, to be marked by a line.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        The axes, once drawn, and their figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import FSDD
    >>> from probewise.plots import RankingDisplay
    >>> iris = load_iris(as_frame=True)
    >>> display = RankingDisplay.from_estimator(FSDD().fit(iris.data, iris.target), top=2)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['petal length (cm)', 'petal width (cm)']
    """

    names: Sequence[str]
    scores: Floats
    _: KW_ONLY
    std_errors: Floats | None = None
    measure: str = "score"
    average: bool = False

    @classmethod
    def from_estimator(cls, selector: Any, *, top: int = 30, ax: Axes | None = None) -> RankingDisplay:
        """Draw the first ``top`` features of a fitted selector."""
        require_fitted(selector, "scores_", "ranking_", remedy="give a fitted selector of Probewise")
        require_whole("top", top, 1)
        best = np.argsort(selector.ranking_, kind="stable")[:top]
        errors = getattr(selector, "std_errors_", None)
        coefficient, scores = getattr(selector, "coefficient", ""), selector.scores_
        makes_probes = bool(coefficient and np.isfinite(scores).any())
        return cls(
            _names(selector, best),
            (scores - np.nanmean(scores) if makes_probes else scores)[best],
            std_errors=None if errors is None else errors[best],
            measure=f"{coefficient.upper()}, above average" if makes_probes else f"score of {type(selector).__name__}",
            average=makes_probes,
        ).plot(ax)

    def _figsize(self) -> tuple[float, float]:
        return WIDTH, 1 + ROW * len(self.names)

    def _draw(self, ax: Axes) -> None:
        places, errors = np.arange(len(self.names)), self.std_errors
        if self.average:
            ax.axvline(0, color="0.45", linewidth=1)
        ax.errorbar(self.scores, places, xerr=errors, fmt="o", color=COLOURS[0], markersize=4)
        ax.set_yticks(places, _labels(self.names))
        ax.set_ylim(len(places) - 0.5, -0.5)
        ax.set(ylabel="feature", xlabel=self.measure + ("" if errors is None else " ± standard error"))
        draw_grid(ax)


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(PanelsDisplay):
    """C and relative C2 by number of probes: mean over runs and shaded deviation, with what C2 does on any data.

    Parameters
    ----------
    histories : dict of str to list of dict
        By name, ``DAF.history_`` of each run; all runs of a name look at the same numbers of probes.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure, once drawn.
    axes_ : ndarray of matplotlib.axes.Axes
        Its two panels.

    References
    ----------
    P. Somol, J. Grim, J. Filip, P. Pudil, *On stopping rules in dependency-aware feature ranking*, CIARP 2013, figures
    1 and 2.

    Examples
    --------
    >>> from probewise import DAF
    >>> from probewise.datasets import make_madelon
    >>> from probewise.plots import ConvergenceDisplay
    >>> from probewise.stopping import MaxProbes
    >>> data = make_madelon(100, 30, random_state=0)
    >>> daf = DAF(stop=MaxProbes(2000), random_state=0).fit(data.X, data.y)
    >>> [panel.get_ylabel() for panel in ConvergenceDisplay.from_estimator(daf).axes_]
    ['C, places', 'C2 / first C2']
    """

    histories: Histories

    @classmethod
    def from_estimator(cls, daf: Any, *, name: str = "DAF", figure: Figure | None = None) -> ConvergenceDisplay:
        """Draw the run of a fitted DAF."""
        require_fitted(daf, "history_", remedy=NEEDS_DAF)
        looks = len(daf.history_["probes"])
        if looks < 3:
            raise ValueError(
                f"C and C2 are drawn from the third look on, and this run of {daf.n_probes_:,} probes had {looks}: "
                f"make more probes, or look more often (check_every={daf.check_every})"
            )
        return cls({name: [daf.history_]}).plot(figure)

    def _draw(self, panels: Any) -> None:
        measures = {"order_change": "C, places", "relative_change": "C2 / first C2"}
        for axes, (measure, label) in zip(panels, measures.items(), strict=True):
            for colour, (name, runs) in zip(COLOURS, self.histories.items(), strict=False):
                values = np.array([run[measure] for run in runs], dtype=np.float64)
                style = {"color": colour, "label": literal(name)}
                draw_band(axes, runs[0]["probes"], values.mean(axis=0), deviation(values), style)
            axes.set_ylabel(label)
            draw_grid(axes, log="xy")
        probes = next(iter(self.histories.values()))[0]["probes"]
        expected = expected_change(len(probes))[1:]
        panels[1].plot(probes[1:], expected, color="0.3", linestyle=":", label="expected on any data")
        panels[1].set_xlabel("number of probes")
        panels[1].legend(frameon=False, fontsize="small")


def expected_change(n_looks: int) -> Floats:
    """Relative C2 at each look when coefficients are averages over equal groups of probes; NaN at the first.

    Between looks k and k + 1 it is sqrt(1 + 1/k) / (k + 1) over its value at k = 1.
    """
    k = np.arange(1, n_looks)
    return np.append(np.nan, np.sqrt(2 * (1 + 1 / k)) / (k + 1))


@dataclass(eq=False, repr=False)
class InteractionDisplay(AxesDisplay):
    """Which of the best features help each other in a probe, and which stand in for each other: a map of pairs.

    The contrast of a pair is mean J of the probes with both, less with only the one, less with only the other, plus
    with neither. J is less the mean of probes of like size, since larger probes hold more pairs and are better anyway.
    A dot is a contrast that luck of the draw would not give (5 % for all pairs together); grey was not probed enough.

    Parameters
    ----------
    names : sequence of str
        The features, best first.
    contrast, std_errors : ndarray of shape (n_features, n_features)
        The contrast of each pair, and its standard error; NaN where it is not known.
    p_values : ndarray of shape (n_features, n_features)
        Adjusted for the number of pairs; a pair below 0.05 gets a dot.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        The axes, once drawn, and their figure.

    Examples
    --------
    >>> from probewise import DAF
    >>> from probewise.datasets import make_madelon
    >>> from probewise.plots import InteractionDisplay
    >>> from probewise.stopping import MaxProbes
    >>> data = make_madelon(100, 30, random_state=0)
    >>> daf = DAF(stop=MaxProbes(1000), random_state=0).fit(data.X, data.y)
    >>> InteractionDisplay.from_estimator(daf, top=5).contrast.shape
    (5, 5)
    """

    names: Sequence[str]
    contrast: Floats
    std_errors: Floats
    p_values: Floats

    @classmethod
    def from_estimator(cls, daf: Any, *, top: int = 15, ax: Axes | None = None) -> InteractionDisplay:
        """Draw the pairs among the first ``top`` features of a fitted DAF, replayed from its ledger."""
        require_fitted(daf, "run_", remedy=NEEDS_DAF)
        found = daf.run_.interactions(top)
        if not np.isfinite(found.contrast).any():
            raise ValueError(
                f"no pair of the top {len(found.names)} features was together, apart and away in {FEWEST_IN_A_CELL} "
                f"probes each: more or larger probes would tell (there were {daf.n_probes_:,})"
            )
        return cls(_names(daf, found.features), found.contrast, found.std_error, found.p_adjusted).plot(ax)

    def _figsize(self) -> tuple[float, float]:
        side = 2.2 + 1.3 * ROW * len(self.names)
        return side + 1, side

    def _draw(self, ax: Axes) -> None:
        _draw_map(ax, self.contrast, "contrast of J")
        ax.set_aspect("equal")
        first, second = np.nonzero(self.is_clear())
        ax.plot(second, first, linestyle="none", marker=".", color="black", markersize=4)
        ax.set_xticks(range(len(self.names)), _labels(self.names), rotation=90)
        ax.set_yticks(range(len(self.names)), _labels(self.names))
        ax.set(xlabel="feature", ylabel="feature")
        ax.set_title("orange: worth more together; blue: worth less", fontsize="small")

    def is_clear(self) -> NDArray[np.bool_]:
        """Which contrasts are further from 0 than luck, at 5 % for all pairs together (Holm)."""
        with np.errstate(invalid="ignore"):
            return self.p_values < CHANCE


@dataclass(eq=False, repr=False)
class RowsDisplay(AxesDisplay):
    """Which rows each of the best features helps: a map of features and groups of rows.

    Orange: rows of the group are predicted better in probes with the feature than without it, blue: worse. Columns of
    the map that differ from the others of their class in the same features are a part of the rows apart.

    Parameters
    ----------
    found : WhichRows
        What ``which_rows`` of a fitted `DAF` or `Tournament` gave.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        The axes, once drawn, and their figure.

    Examples
    --------
    >>> from probewise import DAF
    >>> from probewise.datasets import make_madelon
    >>> from probewise.plots import RowsDisplay
    >>> from probewise.stopping import MaxProbes
    >>> data = make_madelon(60, 30, random_state=0)
    >>> daf = DAF(stop=MaxProbes(500), random_state=0).fit(data.X, data.y)
    >>> RowsDisplay.from_estimator(daf, data.y, top=5).found.effects.shape
    (5, 60)
    """

    found: WhichRows

    @classmethod
    def from_estimator(cls, selector: Any, y: Any = None, *, top: int = 15, ax: Axes | None = None) -> RowsDisplay:
        """Draw it for the first ``top`` features; with y, the target of ``fit``, rows of a class are side by side."""
        require_fitted(selector, "run_", remedy=NEEDS_DAF)
        return cls(selector.run_.which_rows(top, labels=y)).plot(ax)

    def _figsize(self) -> tuple[float, float]:
        return 2.5 + 0.12 * self.found.effects.shape[1], 1.6 + ROW * len(self.found.names)

    def _draw(self, ax: Axes) -> None:
        found = self.found
        _draw_map(ax, found.effects, "J with it less J without")
        ax.set_yticks(range(len(found.names)), _labels(found.names))
        ax.set_xticks(
            [(start + end - 1) / 2 for _, start, end in found.blocks], _labels([of for of, *_ in found.blocks])
        )
        for _, start, _ in found.blocks[1:]:
            ax.axvline(start - 0.5, color="black", linewidth=1)
        ax.set(xlabel="groups of rows" if any(len(some) > 1 for some in found.rows) else "rows", ylabel="feature")
        ax.set_title("orange: predicted better with the feature; blue: worse", fontsize="small")


def _draw_map(ax: Axes, values: Floats, measure: str) -> None:
    """Values as colours, 0 white, grey where there is none, with a bar that says which is which."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("signed", [COLOURS[0], "white", COLOURS[1]])
    limit = float(np.nanmax(np.abs(values), initial=0)) or 1.0
    ax.set_facecolor("0.85")
    image = ax.imshow(values, cmap=colours, vmin=-limit, vmax=limit, aspect="auto")
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label=measure)


def _names(selector: Any, columns: NDArray[np.int64]) -> list[str]:
    """Names of the columns, or their numbers."""
    return [str(name) for name in getattr(selector, "feature_names_in_", np.arange(selector.n_features_in_))[columns]]


def _labels(names: Sequence[str]) -> list[str]:
    return [literal(shown(str(name))) for name in names]
