"""Outcome of a reproduction: published numbers beside ours, claims, and the files they are written to."""

from __future__ import annotations

import csv
import json
import platform
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from probewise import __version__

from .pictures import Picture

HERE = Path(__file__).parent

Place = tuple[str, str, str]  # where, row, column

COLUMNS = ("where", "row", "column", "published", "ours", "difference", "note")
CLAIM_COLUMNS = ("claim", "where", "ours", "verdict", "evidence")
VERDICTS = {True: "holds", False: "does not hold", None: "cannot be told"}
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Published:
    """A number as it stands in the paper."""

    where: str
    row: str
    column: str
    value: float
    unit: str

    @property
    def place(self) -> Place:
        return self.where, self.row, self.column


def published(paper: str) -> list[Published]:
    """The numbers of the paper's tables, in their order there."""
    return [
        Published(line["where"], line["row"], line["column"], float(line["value"]), line["unit"])
        for line in csv.DictReader(_lines(paper, "published.csv"))
    ]


def departures(paper: str) -> list[str]:
    """Sentences on where its reproduction departs from the paper, or the paper is silent."""
    return _lines(paper, "departures.txt")


def _lines(paper: str, name: str) -> list[str]:
    """Lines of a file in the paper's folder."""
    return (HERE / paper.replace("-", "_") / name).read_text(encoding="utf-8").splitlines()


@dataclass(frozen=True)
class Cell:
    """One number: where it stands, as published and as it came out here; None where there is none."""

    where: str
    row: str
    column: str
    published: float | None = None
    ours: float | None = None
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less published."""
        return None if self.published is None or self.ours is None else self.ours - self.published


def cells(paper: str, ours: Mapping[Place, float], notes: Mapping[Place, str] | None = None) -> list[Cell]:
    """A cell for every published number, with ours beside it, then one for each of ours that was not published."""
    notes = notes or {}
    known = {each.place: each.value for each in published(paper)}
    places = dict.fromkeys([*known, *ours])
    return [Cell(*place, known.get(place), ours.get(place), notes.get(place, "")) for place in places]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, whether it holds here (None: cannot be told), the numbers that say so, and its places.

    ``where`` is the paper's section, table or figure, ``evidence`` what was run, and the table of the results.
    """

    text: str
    holds: bool | None
    ours: str
    where: str = ""
    evidence: str = ""

    @property
    def verdict(self) -> str:
        return VERDICTS[self.holds]

    @property
    def row(self) -> list[str]:
        """Row of the claims table: text, where, ours, verdict, evidence."""
        return [self.text, self.where, self.ours, self.verdict, self.evidence]

    @classmethod
    def of_row(cls, text: str, where: str, ours: str, verdict: str, evidence: str) -> Claim:
        return cls(text, {word: holds for holds, word in VERDICTS.items()}[verdict], ours, where, evidence)


class CellTable(NamedTuple):
    """Cells by row and column, as text: published / ours, and the note."""

    where: str
    columns: list[str]
    rows: dict[str, list[str]]

    @classmethod
    def of(cls, where: str, cells: Sequence[Cell]) -> CellTable:
        columns = list(dict.fromkeys(cell.column for cell in cells))
        if all(column.isdigit() for column in columns):
            columns.sort(key=int)
        rows = {cell.row: [""] * len(columns) for cell in cells}
        for cell in cells:
            text = f"{shown(cell.published)} / {shown(cell.ours)} {cell.note}".rstrip()
            rows[cell.row][columns.index(cell.column)] = text
        return cls(where, columns, rows)


@dataclass(frozen=True)
class Outcome:
    """Results of a reproduction.

    Attributes
    ----------
    cells : list of Cell
        The numbers, published and ours.
    claims : list of Claim
        What the paper says, and whether it holds.
    departures : list of str
        Sentences, where the paper was departed from or is silent.
    pictures : list of Picture
        Figures, as numbers.
    settings : dict
        Seed, profile, versions, counts and durations, in plain JSON values.
    files : list of Path
        What was written, once it was.
    """

    cells: list[Cell]
    claims: list[Claim] = field(default_factory=list)
    departures: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)

    def write(self, folder: Path) -> Outcome:
        """Numbers and claims as CSV, both for a reader, the settings, and figures where matplotlib can draw them."""
        names = ("results.csv", "results.md", "settings.json", "claims.csv", "claims.md")
        results, text, settings, claims, page = written = [folder / name for name in names]
        _write_table(results, COLUMNS, map(self._row, self.cells))
        _write_table(claims, CLAIM_COLUMNS, (claim.row for claim in self.claims))
        text.write_text(self.markdown(), encoding="utf-8")
        settings.write_text(json.dumps(self.settings, indent=2, default=str) + "\n", encoding="utf-8")
        page.write_text(self.page(), encoding="utf-8")
        return replace(self, files=[*written, *self._draw(folder)])

    def beside(self, folder: Path, parts: Sequence[str]) -> Outcome:
        """Results of earlier calls in the folder, updated with the parts of this call, which the settings list."""
        if not (folder / "claims.csv").exists():
            return self
        cells = {(cell.where, cell.row, cell.column): cell for cell in _kept_cells(folder / "results.csv")}
        cells |= {(cell.where, cell.row, cell.column): cell for cell in self.cells if cell.ours is not None}
        settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        since = {part: made for part, made in settings.get("since", {}).items() if part not in parts}
        settings["since"] = since | dict.fromkeys(parts, self.settings)
        pictures = {each.name: each for each in [*_kept_pictures(folder / "results.md"), *self.pictures]}
        kept = replace(self, claims=_kept_claims(folder / "claims.csv"))
        return replace(
            kept.claiming(self.claims), cells=list(cells.values()), pictures=list(pictures.values()), settings=settings
        )

    def claiming(self, claims: Sequence[Claim]) -> Outcome:
        """With claims more, or in the place of those with their text."""
        by_text = {claim.text: claim for claim in [*self.claims, *claims]}
        return replace(self, claims=list(by_text.values()))

    def _draw(self, folder: Path) -> list[Path]:
        paths = [folder / picture.file for picture in self.pictures]
        try:
            for picture, path in zip(self.pictures, paths, strict=True):
                picture.draw(path)
        except ImportError as error:
            warnings.warn(f"the figures were left out: {error}", UserWarning, stacklevel=4)
            return []
        return paths

    @staticmethod
    def _row(cell: Cell) -> list[str]:
        numbers = (cell.published, cell.ours, cell.difference)
        return [cell.where, cell.row, cell.column, *map(_exact, numbers), cell.note]

    def tables(self) -> list[CellTable]:
        """The cells as they stand in the paper, a table for each place."""
        return [
            CellTable.of(where, [cell for cell in self.cells if cell.where == where])
            for where in dict.fromkeys(cell.where for cell in self.cells)
        ]

    def _claims(self) -> list[str]:
        head = _row_of_table(CLAIM_COLUMNS) + "\n|" + " --- |" * len(CLAIM_COLUMNS)
        return [head, *(_row_of_table(claim.row) for claim in self.claims)]

    def _places(self) -> list[str]:
        """A row for every table and figure: how many numbers, and how far apart."""
        rows = []
        for where in dict.fromkeys(cell.where for cell in self.cells):
            here = [cell for cell in self.cells if cell.where == where]
            both = [abs(cell.difference) for cell in here if cell.difference is not None]
            counts = [
                sum(each is not None for each in values)
                for values in zip(*((c.published, c.ours) for c in here), strict=True)
            ]
            rows.append([where, *map(str, counts), shown(float(np.median(both))) if both else "-"])
        return [
            "| table or figure | numbers published | ours | median distance |\n|" + " --- |" * 4,
            *map(_row_of_table, rows),
        ]

    def page(self) -> str:
        """Markdown for the documentation page: claims, tables and figures, departures, run time."""
        parts = ["## Claims\n", *self._claims(), "\n## Tables and figures\n", *self._places()]
        parts.extend(["\n## Departures\n", *(f"- {sentence}" for sentence in self.departures)])
        parts.append(f"\nMade with {_how(self.settings)}.")
        parts.extend(f"{part}, made since: {_how(how)}." for part, how in self.settings.get("since", {}).items())
        return "\n".join(parts) + "\n"

    def markdown(self) -> str:
        """All of it for a reader: claims, tables (published / ours), departures, figures."""
        parts = [f"# {self.settings.get('title', 'Results')}\n"]
        if self.claims:
            parts.extend(["## Claims\n", *self._claims()])
        for table in self.tables():
            parts.append(f"\n## {table.where}\n\nPublished / ours.\n")
            parts.append(f"| | {' | '.join(table.columns)} |\n| --- |{' --- |' * len(table.columns)}")
            parts.extend(f"| {row} | {' | '.join(texts)} |" for row, texts in table.rows.items())
        if self.departures:
            parts.append("\n## Departures\n")
            parts.extend(f"- {sentence}" for sentence in self.departures)
        if self.pictures:
            parts.append("\n## Figures\n")
            parts.extend(f"![{picture.name}]({picture.file})" for picture in self.pictures)
        return "\n".join(parts) + "\n"


def _how(settings: Mapping[str, Any]) -> str:
    known = [name for name in ("profile", "seed", "device", "seconds") if name in settings]
    return ", ".join(f"{name} {settings[name]}" for name in known)


def _write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(columns)
        table.writerows(rows)


def _rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))[1:]


def _kept_cells(path: Path) -> list[Cell]:
    def number(text: str) -> float | None:
        return float(text) if text else None

    rows = _rows_of(path)
    return [
        Cell(where, row, column, number(known), number(ours), note) for where, row, column, known, ours, _, note in rows
    ]


def _kept_claims(path: Path) -> list[Claim]:
    return [Claim.of_row(*row) for row in _rows_of(path)]


def _kept_pictures(path: Path) -> list[Picture]:
    """Pictures that results.md shows."""
    shown = re.findall(r"^!\[(.*)\]\((.*)\)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [Picture(name, drawn=file) for name, file in shown if (path.parent / file).exists()]


def _row_of_table(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def shown(value: float | None) -> str:
    """A number for a reader: two decimals, more for small ones; a dash where there is none."""
    if value is None or value != value:
        return "-"
    if float(value).is_integer():
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.3g}"


def _exact(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.10g}"


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that the numbers depend on."""
    return {
        "probewise": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
    }


def listed(values: Mapping[str, float], form: str = "+z.2f") -> str:
    """Names and numbers in a line, by default with their sign."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def ahead(text: str, lead: Mapping[str, float], where: str = "", evidence: str = "") -> Claim:
    """The claim that all leads are above 0."""
    return Claim(text, min(lead.values()) > 0, listed(lead), where, evidence)


def averaged(
    found: Mapping[Place, Sequence[float]], is_noted: Callable[[Place], bool] = lambda place: True
) -> tuple[dict[Place, float], dict[Place, str]]:
    """Means of repeated numbers, and notes of their standard deviation where there are several."""
    means = {place: float(np.mean(values)) for place, values in found.items()}
    several = {place: values for place, values in found.items() if len(values) > 1 and is_noted(place)}
    return means, {place: f"± {np.std(values, ddof=1):.2f}" for place, values in several.items()}
