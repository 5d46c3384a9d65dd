"""Figures of the reproductions: panels with our lines and the published points, and surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from probewise.plots import line_style, matplotlib_figure

PANEL_WIDTH, PANEL_HEIGHT, PER_ROW = 4.4, 3.0, 2
MARKED = 60  # lines with more points have no markers


class Line(NamedTuple):
    """A curve, and the published points of the same method, which are drawn in its color without a line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    published_x: Sequence[float] = ()
    published_y: Sequence[float] = ()


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Surface:
    """A surface z over x and y, drawn in three dimensions; x and y are equally spaced, as they are in the papers."""

    title: str
    x: tuple[str, Sequence[float]]
    y: tuple[str, Sequence[float]]
    z: tuple[str, Any]


@dataclass(frozen=True)
class Picture:
    """A figure of a paper with its panels; the legend is below the panels, so that it covers no curve."""

    name: str
    panels: Sequence[Panel | Surface]

    def draw(self, folder: Path) -> Path:
        """Write the figure as SVG without a date."""
        import matplotlib

        n_columns = min(PER_ROW, len(self.panels))
        n_rows = -(-len(self.panels) // n_columns)
        with matplotlib.rc_context({"svg.hashsalt": self.name}):
            size = (PANEL_WIDTH * n_columns, PANEL_HEIGHT * n_rows + 0.5)
            figure = matplotlib_figure()(figsize=size, layout="constrained")
            for number, panel in enumerate(self.panels, start=1):
                flat = isinstance(panel, Panel)
                axes: Any = figure.add_subplot(n_rows, n_columns, number, projection=None if flat else "3d")
                (_draw if flat else _draw_surface)(axes, panel)
            labeled: dict[str, Any] = {}
            for axes in figure.axes:
                labeled |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
            if len(labeled) > 1:
                figure.legend(labeled.values(), labeled, loc="outside lower center", ncols=4, frameon=False)
            path = folder / f"{self.name.lower().replace(' ', '-')}.svg"
            figure.savefig(path, metadata={"Date": None})
        return path


def _draw(axes: Any, panel: Panel) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator

    for place, line in enumerate(panel.lines):
        style = line_style(line.name, place) | {"markersize": 3}
        if len(line.x) > MARKED:
            style["marker"] = ""
        axes.plot(line.x, line.y, **style)
        if len(line.published_x):
            name, color = f"{line.name}, published", style["color"]
            axes.plot(line.published_x, line.published_y, "o", mfc="none", color=color, markersize=6, label=name)
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    axes.set(xscale="log" if panel.log_x else "linear", yscale="log" if panel.log_y else "linear")
    decades = np.log10(axes.dataLim.intervalx[1] / axes.dataLim.intervalx[0]) if panel.log_x else 0
    log_ticks = LogLocator(subs=(1, 2, 5) if decades <= 2 else (1,))
    axes.xaxis.set_major_locator(log_ticks if panel.log_x else MaxNLocator("auto", integer=True))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3)


def _draw_surface(axes: Any, surface: Surface) -> None:
    (x_name, x), (y_name, y), (z_name, z) = surface.x, surface.y, surface.z
    grid = np.meshgrid(np.arange(len(x)), np.arange(len(y)), indexing="ij")
    axes.plot_surface(*grid, np.asarray(z), cmap="viridis", edgecolor="0.3", linewidth=0.3)
    axes.set_xticks(range(len(x)), [f"{value:g}" for value in x], fontsize=6)
    axes.set_yticks(range(len(y)), [f"{value:g}" for value in y], fontsize=6)
    axes.set(title=surface.title, xlabel=x_name, ylabel=y_name, zlabel=z_name)
    axes.view_init(elev=28, azim=-125)
