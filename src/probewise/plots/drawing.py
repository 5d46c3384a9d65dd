"""What all displays share: figures and axes, line styles, bands, logarithmic axes, and where a picture is saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..validation.parameters import writable_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

# Okabe and Ito's colours, which the colour-blind can tell apart; without their yellow, too faint for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDTH, HEIGHT = 7.0, 2.6  # inches, of a panel
ROW = 0.2  # inches, of a feature's name
DECADE = 10


class AxesDisplay(ABC):
    """A display of one pair of axes; a subclass has ``_draw``."""

    ax_: Axes
    figure_: Figure

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into the axes, or into a new figure of pyplot's."""
        if ax is None:
            ax = _pyplot().figure(figsize=self._figsize(), layout="constrained").subplots()
        self.ax_, self.figure_ = ax, ax.figure  # type: ignore[assignment]
        self._draw(ax)
        return self

    def _figsize(self) -> tuple[float, float]:
        return WIDTH, 1.5 * HEIGHT

    @abstractmethod
    def _draw(self, ax: Axes) -> None: ...


class PanelsDisplay(ABC):
    """A display of panels on top of each other, which share their x axis; a subclass has ``_draw``."""

    figure_: Figure
    axes_: Any

    def plot(self, figure: Figure | None = None) -> Self:
        """Draw into the figure, or into a new one of pyplot's."""
        self.figure_ = _pyplot().figure(figsize=self._figsize()) if figure is None else figure
        self.figure_.set_layout_engine("constrained")
        self.axes_ = self.figure_.subplots(self._n_panels(), 1, sharex=True)
        self._draw(self.axes_)
        return self

    def save(self, path: str | PathLike[str], *, title: str = "") -> None:
        """Draw into a new figure and write it to a file (.png, .svg, .pdf and others), without a window system."""
        path = require_picture_path(path)
        self.plot(matplotlib_figure()(figsize=self._figsize()))
        if title:
            self.figure_.suptitle(literal(title))
        self.figure_.savefig(path, dpi=150)

    def _figsize(self) -> tuple[float, float]:
        return WIDTH, HEIGHT * self._n_panels()

    def _n_panels(self) -> int:
        return 2

    @abstractmethod
    def _draw(self, panels: Any) -> None: ...


def line_style(name: str, place: int, *, is_selection: bool = True) -> dict[str, Any]:
    """Label, colour, line and marker of the line at that place; what selects nothing is grey, without markers."""
    if not is_selection:
        return {"label": literal(name), "color": "0.45", "linestyle": "--"}
    turn, colour = divmod(place, len(COLOURS))
    return {
        "label": literal(name),
        "color": COLOURS[colour],
        "linestyle": LINES[turn % len(LINES)],
        "marker": MARKERS[colour],
        "markersize": 4,
    }


def draw_band(axes: Axes, x: Any, mean: Floats, deviation: Floats, style: dict[str, Any]) -> None:
    axes.plot(x, mean, **style)
    axes.fill_between(x, mean - deviation, mean + deviation, color=style["color"], alpha=0.15, linewidth=0)


def draw_grid(axes: Axes, *, log: str = "") -> None:
    """A grid; the axes named, of "x" and "y", logarithmic, with 1, 2, 5, 10, ... on them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.grid(alpha=0.3)
    for name in log:
        axes.set(**{f"{name}scale": "log"})
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())


def draw_sizes(axes: Axes, sizes: NDArray[np.int64]) -> None:
    """A grid, numbers of features by ratio where they span more than a decade."""
    draw_grid(axes, log="x" if sizes[-1] > DECADE * sizes[0] else "")


def literal(name: str) -> str:
    """The name with nothing matplotlib would read as mathematics, nor hide from a legend."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def require_picture_path(path: str | PathLike[str]) -> Path:
    """The path, if a picture can be written there: a known format, in a folder that exists."""
    formats = [f".{ending}" for ending in matplotlib_figure()().canvas.get_supported_filetypes()]
    return writable_path(path, formats, "a picture cannot be written to {}: name it {}")


def require_fitted(selector: Any, *attributes: str, remedy: str) -> None:
    """Refuse a selector that is not fitted, or has not what is to be drawn."""
    check_is_fitted(selector)
    missing = [name for name in attributes if not hasattr(selector, name)]
    if missing:
        raise ValueError(f"{type(selector).__name__} has no {' and no '.join(missing)}: {remedy}")


def _pyplot() -> Any:
    matplotlib_figure()
    import matplotlib.pyplot as plt

    return plt


def matplotlib_figure() -> type[Figure]:
    """Matplotlib's class of figures, which needs no window system."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ImportError("drawing needs the report extra: pip install 'probewise[report]'") from None
    return Figure
