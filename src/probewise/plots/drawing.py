"""Base classes of the displays, line styles, bands, logarithmic axes, and checks of file names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..validation.parameters import completed_file, writable_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

# Okabe and Ito's colors, which color-blind readers can distinguish; without yellow, which is too faint for a line.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDTH, HEIGHT = 7.0, 2.6  # size of a panel in inches
ROW_HEIGHT = 0.2  # inches for the name of a feature
DECADE = 10


class AxesDisplay(ABC):
    """A display in one pair of axes, ``ax_`` of ``figure_`` after ``plot``; a subclass implements ``_draw``."""

    ax_: Axes
    figure_: Figure

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into the axes, or into a new pyplot figure."""
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
    """A display in panels with a shared x axis, ``axes_`` of ``figure_`` after ``plot``; a subclass draws them."""

    figure_: Figure
    axes_: Any

    def plot(self, figure: Figure | None = None) -> Self:
        """Draw into the figure, or into a new pyplot figure."""
        self.figure_ = _pyplot().figure(figsize=self._figsize()) if figure is None else figure
        self.figure_.set_layout_engine("constrained")
        self.axes_ = self.figure_.subplots(self._n_panels(), 1, sharex=True)
        self._draw(self.axes_)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Draw into a new figure and write it to a file (.png, .svg, .pdf, ...); needs no window system."""
        path = require_picture_path(path)
        self.plot(matplotlib_figure()(figsize=self._figsize()))
        with completed_file(path) as file:
            self.figure_.savefig(file, dpi=150)

    def _figsize(self) -> tuple[float, float]:
        return WIDTH, HEIGHT * self._n_panels()

    def _n_panels(self) -> int:
        return 2

    @abstractmethod
    def _draw(self, panels: Any) -> None: ...


def line_style(name: str, index: int, *, is_selection: bool = True) -> dict[str, Any]:
    """Label, color, line style and marker of a line; methods that select no features are gray without markers."""
    if not is_selection:
        return {"label": literal(name), "color": "0.45", "linestyle": "--"}
    cycle, color = divmod(index, len(COLORS))
    return {
        "label": literal(name),
        "color": COLORS[color],
        "linestyle": LINES[cycle % len(LINES)],
        "marker": MARKERS[color],
        "markersize": 4,
    }


def draw_band(axes: Axes, x: Any, mean: Floats, error: Floats, style: dict[str, Any]) -> None:
    axes.plot(x, mean, **style)
    axes.fill_between(x, mean - error, mean + error, color=style["color"], alpha=0.15, linewidth=0)


def draw_grid(axes: Axes, *, log: str = "") -> None:
    """Draw a grid; the axes named in ``log`` ("x", "y" or "xy") are logarithmic with ticks at 1, 2, 5, 10, ..."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.grid(alpha=0.3)
    for name in log:
        axes.set(**{f"{name}scale": "log"})
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())


def draw_sizes(axes: Axes, sizes: NDArray[np.int64]) -> None:
    """Draw a grid; the x axis is logarithmic if the numbers of features span more than a decade."""
    draw_grid(axes, log="x" if sizes[-1] > DECADE * sizes[0] else "")


def literal(name: str) -> str:
    """The name without anything that matplotlib would read as mathematics or hide from a legend."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def require_picture_path(path: str | PathLike[str]) -> Path:
    """Check that a picture can be written to the path: known format, existing folder."""
    formats = [f".{ending}" for ending in matplotlib_figure()().canvas.get_supported_filetypes()]
    return writable_path(path, formats, "a picture cannot be written to {}: name it {}")


def require_fitted(selector: Any, *attributes: str, remedy: str) -> None:
    """Raise an error if the selector is not fitted or lacks one of the attributes."""
    check_is_fitted(selector)
    missing = [name for name in attributes if not hasattr(selector, name)]
    if missing:
        raise ValueError(f"{type(selector).__name__} has no {' and no '.join(missing)}: {remedy}")


def _pyplot() -> Any:
    matplotlib_figure()
    import matplotlib.pyplot as plt

    return plt


def matplotlib_figure() -> type[Figure]:
    """The Figure class of matplotlib, which needs no window system."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ImportError("plots need the report extra: pip install 'probewise[report]'") from None
    return Figure
