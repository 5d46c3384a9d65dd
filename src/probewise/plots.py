"""Displays in scikit-learn's manner, drawn with matplotlib: made from a result, drawn by ``plot``."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    stability : the measure to show: "cw_rel", "ati", "anhi" or "nogueira".

    Attributes
    ----------
    figure_ : the matplotlib figure, once drawn.
    axes_ : array of its panels: one for each classifier, then stability.

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

    def __init__(self, result: StudyResult, *, classifiers: Sequence[str], stability: str = "cw_rel") -> None:
        self.result = result
        self.classifiers = classifiers
        self.stability = stability

    @classmethod
    def from_study(
        cls,
        result: StudyResult,
        *,
        classifier: str | None = None,
        stability: str = "cw_rel",
        figure: Figure | None = None,
    ) -> StudyDisplay:
        """Draw a study: with one of its classifiers, or, by default, with all."""
        if classifier is not None and classifier not in result.classifiers:
            known = ", ".join(result.classifiers)
            raise ValueError(f"classifier={classifier!r} is not in this study: choose one of {known}")
        if stability not in STABILITY:
            raise ValueError(f"stability={stability!r} is not known: choose one of {', '.join(STABILITY)}")
        shown = result.classifiers if classifier is None else (classifier,)
        return cls(result, classifiers=shown, stability=stability).plot(figure)

    def plot(self, figure: Figure | None = None) -> StudyDisplay:
        """Draw into the figure, or into a new one of pyplot's."""
        n_panels = len(self.classifiers) + 1
        if figure is None:
            figure = _pyplot().figure(figsize=(WIDTH, HEIGHT * n_panels))
        figure.set_layout_engine("constrained")
        self.figure_ = figure
        self.axes_ = figure.subplots(n_panels, 1, sharex=True)
        for axes, classifier in zip(self.axes_, self.classifiers, strict=False):
            self._draw_accuracy(axes, classifier)
        self._draw_stability(self.axes_[-1])
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

    def _draw_stability(self, axes: Axes) -> None:
        for place, values in enumerate(self.result.stability()[self.stability]):
            if not self._takes_all(place):
                axes.plot(self.result.sizes, values, **self._look(place))
        axes.set_ylabel(f"stability, {MEASURES[self.stability]}")
        axes.set_ylim(top=1.03)
        axes.set_xlabel("number of features")

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


def save_study(result: StudyResult, path: str | PathLike[str], *, stability: str = "cw_rel") -> None:
    """Draw the study with all its classifiers to a file: .png, .svg, .pdf and others. No window system is asked."""
    path = require_picture_path(path)
    figure = _matplotlib_figure()(figsize=(WIDTH, HEIGHT * (len(result.classifiers) + 1)))
    StudyDisplay.from_study(result, stability=stability, figure=figure)
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
