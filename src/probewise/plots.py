"""Displays in scikit-learn's manner, drawn with matplotlib: made from a result, drawn by ``plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .study import STABILITY, StudyResult, deviation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by the colour-blind too; yellow is too faint for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
MEASURES = {"cw_rel": "CW$_{rel}$", "ati": "ATI", "anhi": "ANHI", "nogueira": "Nogueira"}
DECADE = 10
WIDTH, HEIGHT = 7.0, 2.6


class StudyDisplay:
    """Accuracy by number of features, a line and a shaded deviation for each selector, and stability beneath.

    Parameters
    ----------
    result : the `StudyResult`.
    classifiers : names of the classifiers to show, a panel each.
    stability : the measure to show: "cw_rel", "ati", "anhi" or "nogueira"; or several, a panel each.

    Attributes
    ----------
    figure_ : the matplotlib figure, once drawn.
    axes_ : array of its panels: one for each classifier, then one for each measure of stability.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from probewise import BIF
    >>> from probewise.plots import StudyDisplay
    >>> from probewise.study import Study
    >>> study = Study({"bif": BIF(), "all": None}, {"naive Bayes": GaussianNB()}, trials=3, random_state=0)
    >>> display = StudyDisplay.from_study(study.compare(*load_iris(return_X_y=True)))
    >>> [panel.get_ylabel() for panel in display.axes_]
    ['accuracy, naive Bayes', 'stability, CW$_{rel}$']
    """

    figure_: Figure
    axes_: Any

    def __init__(
        self, result: StudyResult, *, classifiers: Sequence[str], stability: str | Sequence[str] = "cw_rel"
    ) -> None:
        self.result = result
        self.classifiers = classifiers
        self.stability = stability

    @classmethod
    def from_study(
        cls,
        result: StudyResult,
        *,
        classifier: str | None = None,
        stability: str | Sequence[str] = "cw_rel",
        figure: Figure | None = None,
    ) -> StudyDisplay:
        """Draw a study: with one of its classifiers, or, by default, with all."""
        if classifier is not None and classifier not in result.classifiers:
            known = ", ".join(result.classifiers)
            raise ValueError(f"classifier={classifier!r} is not in this study: choose one of {known}")
        if not _measures(stability) or not all(measure in STABILITY for measure in _measures(stability)):
            raise ValueError(f"stability={stability!r} is not known: choose one of {', '.join(STABILITY)}")
        shown = result.classifiers if classifier is None else (classifier,)
        return cls(result, classifiers=shown, stability=stability).plot(figure)

    def plot(self, figure: Figure | None = None) -> StudyDisplay:
        """Draw into the figure, or into a new one of pyplot's."""
        measures = _measures(self.stability)
        n_panels = len(self.classifiers) + len(measures)
        if figure is None:
            figure = _pyplot().figure(figsize=(WIDTH, HEIGHT * n_panels))
        figure.set_layout_engine("constrained")
        self.figure_ = figure
        self.axes_ = figure.subplots(n_panels, 1, sharex=True)
        for axes, classifier in zip(self.axes_, self.classifiers, strict=False):
            self._draw_accuracy(axes, classifier)
        for axes, measure in zip(self.axes_[len(self.classifiers) :], measures, strict=True):
            self._draw_stability(axes, measure)
        self.axes_[-1].set_xlabel("number of features")
        self._finish(self.axes_)
        return self

    def _draw_accuracy(self, axes: Axes, classifier: str) -> None:
        accuracy = self.result.accuracy[:, :, self.result.classifiers.index(classifier)]
        means, deviations = accuracy.mean(axis=0), deviation(accuracy)
        for place in range(len(self.result.selectors)):
            mean, spread = means[place], deviations[place]
            line = axes.plot(self.result.sizes, mean, **self._look(place))[0]
            axes.fill_between(
                self.result.sizes, mean - spread, mean + spread, color=line.get_color(), alpha=0.15, linewidth=0
            )
        axes.set_ylabel(f"accuracy, {_literal(classifier)}")

    def _draw_stability(self, axes: Axes, measure: str) -> None:
        for place, values in enumerate(self.result.stability()[measure]):
            if not self._takes_all(place):
                axes.plot(self.result.sizes, values, **self._look(place))
        axes.set_ylabel(f"stability, {MEASURES[measure]}")
        axes.set_ylim(top=1.03)

    def _finish(self, panels: Any) -> None:
        from matplotlib.ticker import LogLocator

        sizes = self.result.sizes
        for axes in panels:
            axes.grid(alpha=0.3)
            if sizes[-1] > DECADE * sizes[0]:
                axes.set_xscale("log")
                axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.xaxis.set_major_formatter("{x:g}")
        trials = len(self.result.trials)
        panels[0].set_title(f"{trials} trials: mean and standard deviation", fontsize="medium")
        self.figure_.legend(handles=panels[0].lines, loc="outside right upper", frameon=False)

    def _look(self, place: int) -> dict[str, Any]:
        name = _literal(self.result.selectors[place])
        if self._takes_all(place):
            return {"label": name, "color": "0.45", "linestyle": "--"}
        turn, colour = divmod(place, len(COLOURS))
        line = LINES[turn % len(LINES)]
        return {"label": name, "color": COLOURS[colour], "linestyle": line, "marker": MARKERS[colour], "markersize": 4}

    def _takes_all(self, place: int) -> bool:
        """Whether all features were used at every size: no selection, whose stability would say nothing."""
        name, sizes, n_features = self.result.selectors[place], self.result.sizes, self.result.n_features
        return all(len(subset) == n_features for size in sizes for subset in self.result.subsets(name, size))


def save_study(
    result: StudyResult, path: str | PathLike[str], *, stability: str | Sequence[str] = "cw_rel", title: str = ""
) -> None:
    """Draw the study with all its classifiers to a file: .png, .svg, .pdf and others. No window system is asked."""
    path = require_picture_path(path)
    n_panels = len(result.classifiers) + len(_measures(stability))
    figure = _matplotlib_figure()(figsize=(WIDTH, HEIGHT * n_panels))
    StudyDisplay.from_study(result, stability=stability, figure=figure)
    if title:
        figure.suptitle(_literal(title))
    figure.savefig(path, dpi=150)


class ConvergenceDisplay:
    """C and relative C2 by number of probes: mean over runs and shaded deviation, with what C2 does on any data.

    Parameters
    ----------
    histories : dict of name to a list of ``DAF.history_``, one for each run; all runs of a name look at the same
        numbers of probes.

    Attributes
    ----------
    figure_ : the matplotlib figure, once drawn.
    axes_ : array of its two panels.

    References
    ----------
    P. Somol, J. Grim, J. Filip, P. Pudil, *On stopping rules in dependency-aware feature ranking*, CIARP 2013, figures
    1 and 2.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from probewise import DAF
    >>> from probewise.datasets import make_madelon
    >>> from probewise.plots import ConvergenceDisplay
    >>> from probewise.stopping import MaxProbes
    >>> data = make_madelon(100, 30, random_state=0)
    >>> daf = DAF(stop=MaxProbes(2000), random_state=0).fit(data.X, data.y)
    >>> [panel.get_ylabel() for panel in ConvergenceDisplay.from_estimator(daf).axes_]
    ['C, places', 'C2 / first C2']
    """

    figure_: Figure
    axes_: Any

    def __init__(self, histories: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self.histories = histories

    @classmethod
    def from_estimator(cls, daf: Any, *, name: str = "DAF", figure: Figure | None = None) -> ConvergenceDisplay:
        """Draw the run of a fitted DAF."""
        return cls({name: [daf.history_]}).plot(figure)

    def plot(self, figure: Figure | None = None) -> ConvergenceDisplay:
        """Draw into the figure, or into a new one of pyplot's."""
        if figure is None:
            figure = _pyplot().figure(figsize=(WIDTH, 2 * HEIGHT))
        figure.set_layout_engine("constrained")
        self.figure_ = figure
        self.axes_ = figure.subplots(2, 1, sharex=True)
        panels = (("order_change", "C, places"), ("relative_change", "C2 / first C2"))
        for axes, (measure, label) in zip(self.axes_, panels, strict=True):
            for colour, (name, runs) in zip(COLOURS, self.histories.items(), strict=False):
                self._draw(axes, colour, _literal(name), runs, measure)
            axes.set(ylabel=label, xscale="log", yscale="log")
            axes.grid(alpha=0.3)
        probes = np.asarray(next(iter(self.histories.values()))[0]["probes"])
        expected = self.axes_[1].plot(probes[1:], expected_change(len(probes))[1:], color="0.3", linestyle=":")[0]
        expected.set_label("expected on any data")
        self.axes_[1].set_xlabel("number of probes")
        self.axes_[1].legend(frameon=False, fontsize="small")
        return self

    def _draw(self, axes: Axes, colour: str, name: str, runs: Sequence[Mapping[str, Any]], measure: str) -> None:
        probes, values = np.asarray(runs[0]["probes"]), np.array([run[measure] for run in runs], dtype=np.float64)
        mean, spread = values.mean(axis=0), deviation(values) if len(values) > 1 else np.zeros(len(probes))
        axes.plot(probes, mean, color=colour, label=name)
        axes.fill_between(probes, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)


def expected_change(n_looks: int) -> NDArray[np.float64]:
    """Relative C2 at each look when coefficients are averages over equal groups of probes; NaN at the first.

    Between looks k and k + 1 it is sqrt(1 + 1/k) / (k + 1) over its value at k = 1.
    """
    k = np.arange(1, n_looks)
    return np.append(np.nan, np.sqrt(2 * (1 + 1 / k)) / (k + 1))


def save_convergence(histories: Mapping[str, Sequence[Mapping[str, Any]]], path: str | PathLike[str]) -> None:
    """Draw `ConvergenceDisplay` to a file. No window system is asked."""
    path = require_picture_path(path)
    figure = _matplotlib_figure()(figsize=(WIDTH, 2 * HEIGHT))
    ConvergenceDisplay(histories).plot(figure)
    figure.savefig(path, dpi=150)


def require_picture_path(path: str | PathLike[str]) -> Path:
    """The path, if a picture can be written there: a known format, in a folder that exists."""
    path = Path(path)
    figure = _matplotlib_figure()()
    formats = [f".{ending}" for ending in figure.canvas.get_supported_filetypes()]
    if path.suffix.lower() not in formats:
        raise ValueError(f"a picture cannot be written to {path}: name it {', '.join(formats[:-1])} or {formats[-1]}")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: the folder {path.parent} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} cannot be written: it is a folder")
    return path


def _measures(stability: str | Sequence[str]) -> tuple[str, ...]:
    return (stability,) if isinstance(stability, str) else tuple(stability)


def _pyplot() -> Any:
    _matplotlib_figure()
    import matplotlib.pyplot as plt

    return plt


def _matplotlib_figure() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ImportError("drawing needs the report extra: pip install 'probewise[report]'") from None
    return Figure


def _literal(name: str) -> str:
    """The name with nothing matplotlib would read as mathematics, nor hide from a legend."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name
