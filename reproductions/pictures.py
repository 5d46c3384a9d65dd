"""Figures of the reproductions: panels with lines, ours and the published points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from probewise.plots import line_style, matplotlib_figure

PANEL_WIDTH, PANEL_HEIGHT, PANELS_ABREAST = 4.2, 3.0, 2
MARKED = 200  # points of a line, at most, that are marked


class Line(NamedTuple):
    """A curve of a panel; ``published`` ones are drawn as points, without a line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    published: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes with its lines."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    log: bool = False  # the x axis


@dataclass(frozen=True)
class Picture:
    """A figure: its name in the paper, and its panels; or, in their place, a function that saves it to a file."""

    name: str
    panels: Sequence[Panel] = ()
    save: Callable[[Path], None] | None = None
    drawn: str = ""  # the file of one that was drawn before, and is left as it is

    @property
    def file(self) -> str:
        if self.drawn:
            return self.drawn
        ending = "svg" if self.save is None else "png"
        return f"{self.name.split(',')[0].lower().replace(' ', '-')}.{ending}"

    def draw(self, path: Path) -> None:
        """Write it to a file, panels without a date."""
        if self.drawn:
            return
        if self.save is not None:
            self.save(path)
            return
        n_abreast = min(PANELS_ABREAST, len(self.panels))
        n_rows = -(-len(self.panels) // n_abreast)
        figure = matplotlib_figure()(figsize=(PANEL_WIDTH * n_abreast, PANEL_HEIGHT * n_rows), layout="constrained")
        grid = figure.subplots(n_rows, n_abreast, squeeze=False).ravel()
        for axes, panel in zip(grid, self.panels, strict=False):
            _draw(axes, panel)
        for axes in grid[len(self.panels) :]:
            axes.set_visible(False)
        figure.suptitle(self.name)
        figure.savefig(path, metadata={"Date": None})


def _draw(axes: Any, panel: Panel) -> None:
    for place, line in enumerate(panel.lines):
        style = line_style(line.name, place) | {"markersize": 3}
        if len(line.x) > MARKED:
            style["marker"] = ""
        if line.published:
            style["linestyle"] = ""
        axes.plot(line.x, line.y, **style)
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y, xscale="log" if panel.log else "linear")
    axes.grid(alpha=0.3)
    if len(panel.lines) > 1:
        axes.legend(fontsize="x-small", frameon=False)
