"""Outcome of a reproduction: published numbers beside ours, judged claims, files, and the article of the docs site."""

from __future__ import annotations

import csv
import json
import platform
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from probewise import __version__

from .judge import FAILS, HOLDS, Judged, Results, count, rules
from .pictures import Picture

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "papers"
COLUMNS = ("where", "row", "column", "published", "ours", "deviation")
CLAIM_COLUMNS = ("claim", "verdict", "column", "verdict of the column", "ours")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")
FIRST = 5  # claims that are shown first

Place = tuple[str, str, str]  # where, row, column
Numbers = dict[Place, Any]  # a number, or the numbers of the repetitions
Findings = tuple[Numbers, Results, list[Picture]]  # what an experiment returns


def folder_of(paper: str) -> Path:
    return HERE / paper.replace("-", "_")


def published(paper: str) -> dict[Place, float]:
    """The numbers of the paper's tables and text, in their order there."""
    lines = _lines(folder_of(paper) / "published.csv")
    return {(line["where"], line["row"], line["column"]): float(line["value"]) for line in lines}


def _lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@dataclass(frozen=True)
class Cell:
    """One number as published and as it came out here, with its standard deviation over repetitions."""

    published: float | None = None
    ours: float | None = None
    deviation: float | None = None

    @classmethod
    def of(cls, known: float | None, values: Any) -> Cell:
        if values is None:
            return cls(known)
        values = np.atleast_1d(np.asarray(values, dtype=np.float64))
        return cls(known, float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None)

    def __str__(self) -> str:
        """Published / ours ± deviation; only one number where there is only one."""
        spread = "" if self.deviation is None else f" ± {shown(self.deviation)}"
        parts = [shown(self.published)] if self.published is not None else []
        return " / ".join(parts + ([shown(self.ours) + spread] if self.ours is not None else []))


def cells(paper: str, ours: Numbers) -> dict[Place, Cell]:
    """A cell for each published number, then one for each of our other numbers."""
    known = published(paper)
    return {place: Cell.of(known.get(place), ours.get(place)) for place in dict.fromkeys([*known, *ours])}


@dataclass(frozen=True)
class Outcome:
    """Results of a reproduction: cells, judged claims, figures, settings."""

    paper: str
    cells: dict[Place, Cell]
    claims: list[Judged]
    pictures: list[Picture] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> list[Path]:
        """Write results.csv, claims.csv, settings.json and the figures."""
        numbers = [[*place, *map(_exact, vars(cell).values())] for place, cell in self.cells.items()]
        claims = [
            [claim.rule.id, claim.verdict, column, claim.verdicts[column], claim.shown[column]]
            for claim in self.claims
            for column in claim.rule.columns
        ]
        for name, rows in (("results.csv", [COLUMNS, *numbers]), ("claims.csv", [CLAIM_COLUMNS, *claims])):
            with (folder / name).open("w", encoding="utf-8", newline="") as lines:
                csv.writer(lines, lineterminator="\n").writerows(rows)
        (folder / "settings.json").write_text(json.dumps(self.settings, indent=2, default=str) + "\n", encoding="utf-8")
        names = ("results.csv", "claims.csv", "settings.json")
        return [*(folder / name for name in names), *(picture.draw(folder) for picture in self.pictures)]


def stored(paper: str) -> Outcome:
    """The outcome in the results folder of a paper, for its article."""
    folder = folder_of(paper) / "results"
    found = {
        (line["where"], line["row"], line["column"]): Cell(*(float(line[c]) if line[c] else None for c in COLUMNS[3:]))
        for line in _lines(folder / "results.csv")
    }
    verdicts: dict[str, dict[str, str]] = defaultdict(dict)
    evidence: dict[str, dict[str, str]] = defaultdict(dict)
    for line in _lines(folder / "claims.csv"):
        verdicts[line["claim"]][line["column"]] = line["verdict of the column"]
        evidence[line["claim"]][line["column"]] = line["ours"]
    claims = [Judged(rule, verdicts[rule.id], evidence[rule.id]) for rule in rules(paper)]
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    return Outcome(paper, found, claims, settings=settings)


# ---- for readers


def print_outcome(outcome: Outcome) -> None:
    """Print the count of verdicts, then the claims, the most important first and with their evidence."""
    print(f"{outcome.paper}: {count(outcome.claims)}")
    for number, claim in enumerate(outcome.claims):
        if number == FIRST:
            print("\nThe other claims:")
        print(f"  {claim.verdict:<14} {claim.rule.sentence}")
        for column in claim.rule.columns if number < FIRST else ():
            print(f"{'':19}{column}: {claim.verdicts[column]} ({claim.shown[column] or 'not measured'})")
    if not outcome.settings.get("full", True):
        print(f"\nThis is a quick run. {agreement(outcome)}")


def agreement(outcome: Outcome) -> str:
    """How the verdicts of a quick run compare with those of the stored full run, by column of every claim."""
    full = {claim.rule.id: claim.verdicts for claim in stored(outcome.paper).claims}
    found = [(c.rule.id, column, v) for c in outcome.claims for column, v in c.verdicts.items() if v in (HOLDS, FAILS)]
    other = [f"{claim}, {column}" for claim, column, verdict in found if full[claim].get(column) != verdict]
    n_columns = sum(len(claim.verdicts) for claim in outcome.claims)
    differ = f"{len(other)} differ from the stored full run: {'; '.join(other)}" if other else ""
    agree = "all agree with the stored full run" if found else "the others need the full run"
    return f"{len(found)} of {n_columns} columns are decided; {differ or agree}."


def matrix(cells: Mapping[Place, Cell], where: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table at a place."""
    here = {place[1:]: str(cell) for place, cell in cells.items() if place[0] == where}
    columns = list(dict.fromkeys(column for _, column in here))
    if all(column.isdigit() for column in columns):
        columns.sort(key=int)
    rows = dict.fromkeys(row for row, _ in here)
    return [where, *columns], [[row, *(here.get((row, column), "") for column in columns)] for row in rows]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(["", *(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows]), ""])


def article(paper: str) -> str:
    """The article: the template with every placeholder replaced by what is stored in the results.

    Placeholders are {{where | row | column}} for one of our numbers, {{published: where | row | column}} for one of the
    paper's, {{table: where}} for a table, {{count}}, {{minutes}} of computing, {{claims}}, {{younger rules}} and
    {{departures}}.
    """
    outcome, folder = stored(paper), folder_of(paper)
    parts = {
        "count": count(outcome.claims),
        "minutes": f"{outcome.settings['unit_seconds'] / 60:,.0f}",
        "claims": _claims(outcome.claims),
        "younger rules": markdown(
            ("claim", "verdict before", "verdict now"),
            [(claim.rule.id, claim.rule.was, claim.verdict) for claim in outcome.claims if claim.rule.was],
        ),
        "departures": "\n".join(f"- {line}" for line in (folder / "departures.txt").read_text().splitlines()),
    }

    def filled(match: re.Match[str]) -> str:
        key = match[1].strip()
        if key in parts:
            return parts[key]
        if key.startswith("table:"):
            return markdown(*matrix(outcome.cells, key.removeprefix("table:").strip()))
        whose = "published" if key.startswith("published:") else "ours"
        place = tuple(part.strip() for part in key.removeprefix("published:").split("|"))
        value = getattr(outcome.cells.get(place), whose, None)  # type: ignore[call-overload]
        if value is None:
            raise ValueError(f"{folder.name}/article.md: {{{{{key}}}}} is not in results.csv")
        return f"{value:g}" if whose == "published" else shown(value)

    return re.sub(r"\{\{(.+?)\}\}", filled, (folder / "article.md").read_text(encoding="utf-8"))


def write_article(paper: str, folder: Path = DOCS) -> list[Path]:
    """Write the article and its figures for the docs site."""
    page = folder / f"{paper}.md"
    page.write_text(article(paper), encoding="utf-8")
    figures = sorted((folder_of(paper) / "results").glob("*.svg"))
    copies = [folder / f"{paper}-{figure.name}" for figure in figures]
    for figure, copy in zip(figures, copies, strict=True):
        copy.write_bytes(figure.read_bytes())
    return [page, *copies]


def _claims(claims: Sequence[Judged]) -> str:
    rows = []
    for claim in claims:
        found = {column: claim.shown[column] or "not measured" for column in claim.rule.columns}
        if len(set(claim.verdicts.values())) > 1:
            found = {column: f"{claim.verdicts[column]} ({text})" for column, text in found.items()}
        evidence = "; ".join(f"{column}: {text}" for column, text in found.items())
        rule = f"{claim.rule.sentence} *{claim.rule.where}*"
        rows.append((rule, f"**{claim.verdict}**", f"{claim.rule.statistic}. {evidence}"))
    return markdown(("sentence", "verdict", "statistic and result"), rows)


def shown(value: float | None) -> str:
    """A number for a reader: two decimals, more for small numbers and none for large ones; a dash if there is none."""
    if value is None or value != value:
        return "-"
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.3g}"


def _exact(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.10g}"


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that the numbers depend on."""
    of_libraries = {name: version(name) for name in LIBRARIES}
    return {"probewise": __version__, "python": platform.python_version(), **of_libraries}
